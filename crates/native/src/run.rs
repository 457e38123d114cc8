//! Runs a test millions of times, in batches, on pinned threads.
//!
//! Each run of a batch has its own cells. The threads perform the runs in parallel and wait for
//! each other at regular intervals ([`Pace`]). After the last run of a batch, its outcomes are
//! counted. A waiting thread polls and then yields, because there may be fewer cores than threads
//! and other programs may need them.

use std::collections::BTreeMap;
use std::hint::spin_loop;
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use consistory_litmus::{IsaTest, Observable, Outcome, Program, ThreadId, Value, frame_of_isa};
use consistory_random::QuickRandom;
use consistory_verdict::{Budget, Stopped};
use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::arm_test::{Needs, assemble_test};
use crate::code::Code;
use crate::layout::{Pace, place, words};
use crate::lower::{Architecture, AssembleError, assemble};

/// Options of a run of a test.
#[derive(Clone, Debug)]
pub struct Options {
    /// Total number of runs.
    pub runs: u64,
    /// Number of runs per batch. The budget is checked, and layout and timing are chosen, once per
    /// batch.
    pub batch: usize,
    /// Seed of the layouts and timings.
    pub seed: u64,
    /// Budget of all runs; when it is used up, the runs stop.
    pub budget: Budget,
}

impl Default for Options {
    fn default() -> Self {
        Options { runs: 1_000_000, batch: 2_000, seed: 1, budget: Budget::unlimited() }
    }
}

/// The number of times that each outcome was observed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    /// The observed outcomes with their numbers of runs.
    pub counts: BTreeMap<Outcome, u64>,
    /// Number of runs.
    pub runs: u64,
    /// Number of cores that the threads ran on.
    pub cores: usize,
    /// The architecture of the processor.
    pub architecture: Architecture,
    /// Total time.
    pub elapsed: Duration,
    /// The reason why there were fewer runs than requested, if there were.
    pub stopped: Option<Stopped>,
}

/// The reason why a test was not run.
#[derive(Debug, Error)]
pub enum NativeError {
    /// There is no assembler for this processor and system.
    #[error("running tests needs Linux on x86-64 or AArch64")]
    Architecture,
    /// A thread has no machine code.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// A test of an instruction set contains something that cannot be run.
    #[error("{0}")]
    Test(String),
    /// The system does not provide executable memory.
    #[error("no executable memory: {0}")]
    Memory(#[source] io::Error),
}

/// A thread of the test: its code, and its share of the batch.
struct Worker<'a> {
    code: Code,
    /// The locations to which the code expects pointers.
    locations: Vec<usize>,
    initial: Vec<Value>,
    part: Mutex<Part<'a>>,
}

/// A worker's share of a batch: a row of cells and a row of registers for each run.
#[derive(Default)]
struct Part<'a> {
    cells: Vec<&'a AtomicI64>,
    registers: Vec<Value>,
    core: Option<usize>,
    seed: u64,
}

/// State shared by the workers.
struct Shared {
    /// Barrier at the beginning and at the end of each batch.
    gate: Barrier,
    /// Number of arrivals of all workers at the meeting points of this batch.
    arrived: AtomicU64,
    /// The number of runs of the batch, and its timing; no runs stand for the end.
    plan: Mutex<(usize, Pace)>,
}

/// Runs a program on this processor and counts its outcomes.
pub fn run(program: &Program, options: &Options) -> Result<Histogram, NativeError> {
    let architecture = Architecture::host().ok_or(NativeError::Architecture)?;
    let mut code = Vec::with_capacity(program.threads.len());
    for index in 0..program.threads.len() {
        code.push(assemble(program, ThreadId::new(index), architecture)?);
    }
    run_code(program, code, architecture, options)
}

/// Runs a test of AArch64 on this processor, with the test's own accesses, and counts the final
/// states, restricted to what the test observes.
pub fn run_test(test: &IsaTest, options: &Options) -> Result<Histogram, NativeError> {
    let architecture = Architecture::host().ok_or(NativeError::Architecture)?;
    if architecture != Architecture::Aarch64 {
        let message = format!("this processor does not run tests of {}", test.language.as_str());
        return Err(NativeError::Test(message));
    }
    let mut program = frame_of_isa(test).map_err(NativeError::Test)?.program;
    let isa = test.code();
    for location in &mut program.locations {
        if isa.locate(location.initial).is_some() {
            let message = format!("`{}` holds an address", location.name);
            return Err(NativeError::Test(message));
        }
    }
    let mut code = Vec::with_capacity(program.threads.len());
    for index in 0..program.threads.len() {
        let thread = assemble_test(test, ThreadId::new(index)).map_err(NativeError::Test)?;
        lacks(thread.needs).map_or(Ok(()), |what| Err(NativeError::Test(what.to_owned())))?;
        code.push((thread.bytes, (0..program.locations.len()).collect()));
    }
    let mut histogram = run_code(&program, code, architecture, options)?;
    let mut counts = BTreeMap::new();
    for (Outcome(values), count) in std::mem::take(&mut histogram.counts) {
        let cut = values.iter().enumerate().map(|(at, &value)| test.truncated(at, value)).collect();
        if let Some(state) = test.seen(cut) {
            *counts.entry(Outcome(state.into())).or_insert(0) += count;
        }
    }
    histogram.counts = counts;
    Ok(histogram)
}

/// Returns the extension that the code needs and the processor lacks, if there is one.
#[cfg(target_arch = "aarch64")]
fn lacks(needs: Needs) -> Option<&'static str> {
    if needs.atomics && !std::arch::is_aarch64_feature_detected!("lse") {
        Some("this processor has no atomic instructions (LSE)")
    } else if needs.weak_acquire && !std::arch::is_aarch64_feature_detected!("rcpc") {
        Some("this processor has no LDAPR (RCPC)")
    } else {
        None
    }
}

/// Returns the extension that the code needs and the processor lacks, if there is one.
#[cfg(not(target_arch = "aarch64"))]
fn lacks(_: Needs) -> Option<&'static str> {
    Some("this processor does not run tests of AArch64")
}

/// Runs the code of each thread, which expects pointers to the given locations.
fn run_code(
    program: &Program,
    assembled: Vec<(Vec<u8>, Vec<usize>)>,
    architecture: Architecture,
    options: &Options,
) -> Result<Histogram, NativeError> {
    let start = Instant::now();
    let cores = cores();
    let locations = program.locations.len();
    let batch = (options.batch.max(1) as u64).min(options.runs.max(1)) as usize;
    let memory: Vec<AtomicI64> = (0..words(batch, locations)).map(|_| AtomicI64::new(0)).collect();
    let mut workers = Vec::with_capacity(program.threads.len());
    for (thread, (bytes, locations)) in program.threads.iter().zip(assembled) {
        let initial: Vec<Value> = thread.registers.iter().map(|r| r.initial).collect();
        let code = Code::new(&bytes, locations.len(), initial.len());
        let code = code.map_err(NativeError::Memory)?;
        workers.push(Worker { code, locations, initial, part: Mutex::default() });
    }
    let shared = Shared {
        gate: Barrier::new(workers.len() + 1),
        arrived: AtomicU64::new(0),
        plan: Mutex::new((0, Pace::default())),
    };
    let mut counts: FxHashMap<Box<[Value]>, u64> = FxHashMap::default();
    let mut random = QuickRandom::new(options.seed);
    let (mut done, mut stopped) = (0, None);
    std::thread::scope(|scope| {
        for worker in &workers {
            scope.spawn(|| work(worker, workers.len(), &shared));
        }
        let mut cells = Vec::with_capacity(batch * locations);
        loop {
            stopped = options.budget.check().err();
            let left = if stopped.is_some() { 0 } else { options.runs - done };
            let runs = left.min(batch as u64) as usize;
            let crowded = workers.len() > cores.len();
            *lock(&shared.plan) = (runs, Pace::choose(&mut random, crowded));
            if runs > 0 {
                place(&memory, runs, locations, &mut random, &mut cells);
                prepare(program, &workers, &cells, &cores, runs, &mut random);
                shared.arrived.store(0, Ordering::Relaxed);
            }
            shared.gate.wait();
            if runs == 0 {
                break;
            }
            shared.gate.wait();
            count(program, &workers, &cells, runs, &mut counts);
            done += runs as u64;
        }
    });
    let counts = counts.into_iter().map(|(values, count)| (Outcome(values), count)).collect();
    let cores = cores.len().max(1).min(workers.len());
    Ok(Histogram { counts, runs: done, cores, architecture, elapsed: start.elapsed(), stopped })
}

/// Initializes the cells and registers of a batch, and assigns the cores.
fn prepare<'a>(
    program: &Program,
    workers: &[Worker<'a>],
    cells: &[&'a AtomicI64],
    cores: &[usize],
    runs: usize,
    random: &mut QuickRandom,
) {
    let locations = program.locations.len();
    if locations > 0 {
        for run in cells.chunks_exact(locations) {
            for (cell, location) in run.iter().zip(&program.locations) {
                cell.store(location.initial, Ordering::Relaxed);
            }
        }
    }
    let shift = random.below(cores.len());
    for (index, worker) in workers.iter().enumerate() {
        let mut part = lock(&worker.part);
        part.seed = random.below(usize::MAX) as u64;
        part.core = cores.get((index + shift) % cores.len().max(1)).copied();
        part.cells.clear();
        part.registers.clear();
        for run in 0..runs {
            let row = &cells[run * locations..(run + 1) * locations];
            part.cells.extend(worker.locations.iter().map(|location| row[*location]));
            part.registers.extend_from_slice(&worker.initial);
        }
    }
}

/// Runs a worker's share of each batch until there are no more runs.
fn work(worker: &Worker<'_>, workers: usize, shared: &Shared) {
    let (width, registers) = (worker.locations.len(), worker.initial.len());
    let mut here = None;
    loop {
        shared.gate.wait();
        let (runs, pace) = *lock(&shared.plan);
        if runs == 0 {
            return;
        }
        let mut part = lock(&worker.part);
        let Part { cells, registers: values, core, seed } = &mut *part;
        if *core != here {
            here = *core;
            pin(here);
        }
        let mut random = QuickRandom::new(*seed);
        let mut meetings = 0;
        for run in 0..runs {
            if run % pace.period == 0 {
                meetings += workers as u64;
                meet(&shared.arrived, meetings, pace.patience);
                for _ in 0..random.below(pace.skew) {
                    spin_loop();
                }
            }
            let cells = &cells[run * width..(run + 1) * width];
            worker.code.call(cells, &mut values[run * registers..(run + 1) * registers]);
        }
        drop(part);
        shared.gate.wait();
    }
}

/// Waits until all workers have arrived; yields after every `patience` polls.
fn meet(arrived: &AtomicU64, all: u64, patience: u32) {
    arrived.fetch_add(1, Ordering::AcqRel);
    let mut looks = 0;
    while arrived.load(Ordering::Acquire) < all {
        looks += 1;
        if looks % patience == 0 {
            std::thread::yield_now();
        } else {
            spin_loop();
        }
    }
}

/// Counts the outcomes of a batch.
fn count(
    program: &Program,
    workers: &[Worker<'_>],
    cells: &[&AtomicI64],
    runs: usize,
    counts: &mut FxHashMap<Box<[Value]>, u64>,
) {
    let locations = program.locations.len();
    let parts: Vec<_> = workers.iter().map(|worker| lock(&worker.part)).collect();
    let mut outcome = Vec::with_capacity(program.observed.len());
    for run in 0..runs {
        outcome.clear();
        outcome.extend(program.observed.iter().map(|observable| match *observable {
            Observable::Register(thread, register) => {
                let width = workers[thread.index()].initial.len();
                parts[thread.index()].registers[run * width + register.index()]
            }
            Observable::Location(location) => {
                cells[run * locations + location.index()].load(Ordering::Relaxed)
            }
        }));
        match counts.get_mut(outcome.as_slice()) {
            Some(count) => *count += 1,
            None => {
                counts.insert(outcome.as_slice().into(), 1);
            }
        }
    }
}

/// Locks a mutex. A panic of another worker ends the run anyway, so poisoning is ignored.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lists the cores that this process may use.
#[cfg(target_os = "linux")]
fn cores() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Pins the calling thread to a core, if the system allows it.
#[cfg(target_os = "linux")]
fn pin(core: Option<usize>) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let Some(core) = core else { return };
    let mut set = CpuSet::new();
    set.set(core);
    // If pinning fails, the system chooses the cores.
    let _ = sched_setaffinity(None, &set);
}

#[cfg(not(target_os = "linux"))]
fn cores() -> Vec<usize> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn pin(_: Option<usize>) {}
