//! Runs programs on threads of this process, with as little interference as possible.
//!
//! The threads live for the whole campaign, each pinned to a core if there are enough; on a loaded
//! machine they could otherwise share a core and never run at the same time. For each program they
//! receive their calls once, and then process one object after another on their own. The first
//! thread creates each batch of objects, and before each object the threads wait for each other in
//! a loop that reads one variable. From there to the end of its last call, a thread takes no lock,
//! allocates nothing beyond what calls and their returns need, and shares nothing but the counters
//! of `precedence.rs`, each on its own cache line:
//!
//! ```text
//!   all arrive   a little, at random        a little, now and then
//!   t0: | ────────── wait ── read, call, count ── wait ── read, call, count ──
//!   t1: | ── read, call, count ── read, call, count ──────────────────────────
//! ```
//!
//! The lengths of the waits are drawn from all orders of magnitude up to a microsecond, since the
//! one that makes calls overlap is not known in advance. The observations of a thread are stored in
//! a table of its own; only numbers of entries are stored for each run, and equal runs are counted
//! at the end. A call that panics ends its thread's run.
//!
//! A call that never returns blocks the campaign: a thread cannot be stopped from outside.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::{black_box, spin_loop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use consistory_faults::{Point, fail};
use consistory_history::Value;
use consistory_random::QuickRandom;
use rustc_hash::FxHashMap;

use crate::outcome::Outcome;
use crate::pin::{cores, pin};
use crate::program::Program;
use crate::runner::Runner;

/// Number of objects created at a time.
const OBJECTS_PER_BATCH: u64 = 64;

/// The way in which the start and end of a call are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clock {
    /// A counter per thread, which the others read before each call: the recorded order is a
    /// happens-before of the memory model, with almost no interference.
    #[default]
    Counters,
    /// The system's monotonic clock, read before and after each call: orders calls that do not know
    /// of each other, but reading it takes longer than many calls.
    Monotonic,
}

/// The reason why a program cannot be run on threads.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ThreadError {
    /// The harness has no method for a call.
    #[error("no method was given for {call}")]
    Method {
        /// The call.
        call: String,
    },
    /// The arguments of a call do not have the types that its method takes.
    #[error("the arguments of {call} do not have the types that its method takes")]
    Arguments {
        /// The call.
        call: String,
    },
    /// Creating or dropping the object panicked.
    #[error("the object could not be made or dropped: {message}")]
    Constructor {
        /// The message of the panic.
        message: String,
    },
    /// A thread could not be started.
    #[error("a thread could not be started: {reason}")]
    Thread {
        /// The error of the system.
        reason: String,
    },
}

/// Performs a call on an object.
pub(crate) type Perform<T> = Arc<dyn Fn(&T, &[Value]) -> Value + Send + Sync>;

/// The calls of a thread.
type Part<T> = Vec<(Perform<T>, Vec<Value>)>;

/// A method with its adapter for threads.
pub(crate) struct Callable<T> {
    pub(crate) name: Box<str>,
    pub(crate) arity: usize,
    /// Checks whether arguments have the right types.
    pub(crate) fits: fn(&[Value]) -> bool,
    pub(crate) perform: Perform<T>,
}

/// Runs programs on threads; built by [`Harness::build`](crate::Harness::build).
pub struct ThreadRunner(Box<dyn Runner<Error = ThreadError> + Send>);

impl ThreadRunner {
    pub(crate) fn new<T: Send + Sync + 'static>(
        make: Arc<dyn Fn() -> T + Send + Sync>,
        methods: Vec<Callable<T>>,
        clock: Clock,
    ) -> Self {
        // Several harnesses in one process should not all use the same cores.
        let mut hasher = DefaultHasher::new();
        std::thread::current().id().hash(&mut hasher);
        let mut cores = cores();
        if !cores.is_empty() {
            let first = hasher.finish() as usize % cores.len();
            cores.rotate_left(first);
        }
        let (workers, programs) = (Vec::new(), 0);
        ThreadRunner(Box::new(Pool { make, methods, clock, cores, workers, programs }))
    }
}

impl Runner for ThreadRunner {
    type Error = ThreadError;

    fn run(&mut self, program: &Program, rounds: u64) -> Result<Vec<(Outcome, u64)>, ThreadError> {
        self.0.run(program, rounds)
    }
}

/// Threads that wait for programs.
struct Pool<T> {
    make: Arc<dyn Fn() -> T + Send + Sync>,
    methods: Vec<Callable<T>>,
    clock: Clock,
    /// The cores for the threads; empty if unknown.
    cores: Vec<usize>,
    workers: Vec<Worker<T>>,
    /// Number of programs run.
    programs: u64,
}

/// A thread that waits for programs. It ends when its sender is dropped.
struct Worker<T> {
    jobs: Sender<Arc<Job<T>>>,
    logs: Receiver<Log>,
}

/// A program for the threads, and their shared state while it runs.
struct Job<T> {
    make: Arc<dyn Fn() -> T + Send + Sync>,
    calls: Vec<Part<T>>,
    rounds: u64,
    clock: Clock,
    epoch: Instant,
    /// Seed of the waits.
    seed: u64,
    /// Number of loop turns that a thread waits for others before it yields.
    turns: u32,
    barrier: Line,
    counters: Vec<Line>,
    /// The objects of this batch.
    objects: Mutex<Arc<Vec<T>>>,
    failed: Mutex<Option<String>>,
    stop: AtomicBool,
}

/// A number on its own cache line; some processors fetch two lines at once.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// The observations of a thread in one run.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Record {
    returns: Vec<Value>,
    /// The others' counters that it read before each call, thread by thread.
    seen: Vec<u32>,
    panic: Option<String>,
}

/// The observations of a thread in all runs.
#[derive(Default)]
struct Log {
    /// The different observations, and the index of the one in each run.
    records: Vec<Record>,
    rounds: Vec<u32>,
    /// Start and end of each call of each run, if there is a clock.
    times: Vec<(i64, i64)>,
}

impl<T: Send + Sync + 'static> Runner for Pool<T> {
    type Error = ThreadError;

    fn run(&mut self, program: &Program, rounds: u64) -> Result<Vec<(Outcome, u64)>, ThreadError> {
        let calls = self.compile(program)?;
        let threads = calls.len();
        while self.workers.len() < threads {
            let number = self.workers.len();
            // If there are more threads than cores, the system schedules them.
            let core = self.cores.get(number).copied().filter(|_| threads <= self.cores.len());
            self.workers.push(Worker::start(number, core)?);
        }
        self.programs += 1;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let job = Arc::new(Job {
            make: self.make.clone(),
            calls,
            rounds,
            clock: self.clock,
            epoch: Instant::now(),
            seed: self.programs,
            turns: if threads > cores { 32 } else { 2_048 },
            barrier: Line::default(),
            counters: std::iter::repeat_with(Line::default).take(threads).collect(),
            objects: Mutex::default(),
            failed: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let workers = &self.workers[..threads];
        for worker in workers {
            worker.jobs.send(job.clone()).map_err(|_| ended())?;
        }
        let logs: Result<Vec<Log>, _> = workers.iter().map(|worker| worker.logs.recv()).collect();
        let logs = logs.map_err(|_| ended())?;
        if let Some(message) = job.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(ThreadError::Constructor { message });
        }
        Ok(match self.clock {
            Clock::Counters => count(&logs, program),
            Clock::Monotonic => timed(&logs, program),
        })
    }
}

fn ended() -> ThreadError {
    ThreadError::Thread { reason: "it ended before its time".to_owned() }
}

impl<T> Pool<T> {
    /// Finds the methods that a program calls.
    fn compile(&self, program: &Program) -> Result<Vec<Part<T>>, ThreadError> {
        let compile = |call: &crate::program::Call| {
            let is_it = |m: &&Callable<T>| m.name == call.method && m.arity == call.args.len();
            match self.methods.iter().find(is_it) {
                None => Err(ThreadError::Method { call: call.to_string() }),
                Some(method) if !(method.fits)(&call.args) => {
                    Err(ThreadError::Arguments { call: call.to_string() })
                }
                Some(method) => Ok((method.perform.clone(), call.args.clone())),
            }
        };
        program.threads.iter().map(|calls| calls.iter().map(compile).collect()).collect()
    }
}

impl<T: Send + Sync + 'static> Worker<T> {
    /// Starts the thread with this number.
    fn start(number: usize, core: Option<usize>) -> Result<Self, ThreadError> {
        let (jobs, inbox) = channel::<Arc<Job<T>>>();
        let (outbox, logs) = channel();
        let work = move || {
            if let Some(core) = core {
                pin(core);
            }
            while let Ok(job) = inbox.recv() {
                let log = job.work(number);
                // The objects are dropped before the end is reported.
                drop(job);
                if outbox.send(log).is_err() {
                    break;
                }
            }
        };
        let started = fail(Point::Thread)
            .and_then(|()| std::thread::Builder::new().name(format!("t{number}")).spawn(work));
        started.map_err(|error| ThreadError::Thread { reason: error.to_string() })?;
        Ok(Worker { jobs, logs })
    }
}

impl<T> Job<T> {
    /// Performs a thread's part of every run.
    fn work(&self, own: usize) -> Log {
        let mut log = Log::default();
        let mut known: FxHashMap<Record, u32> = FxHashMap::default();
        let mut record = Record::default();
        let mut random = QuickRandom::new(self.seed.wrapping_mul(64).wrapping_add(own as u64));
        let mut arrivals = 0;
        let mut round = 0;
        while round < self.rounds {
            let size = OBJECTS_PER_BATCH.min(self.rounds - round);
            if !self.arrive(&mut arrivals) {
                break;
            }
            if own == 0 {
                self.guarded(|| {
                    let objects = Arc::new((0..size).map(|_| (self.make)()).collect());
                    *self.objects.lock().unwrap_or_else(PoisonError::into_inner) = objects;
                });
            }
            if !self.arrive(&mut arrivals) {
                break;
            }
            let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for object in &objects[..] {
                if !self.arrive(&mut arrivals) {
                    return log;
                }
                self.play(own, round, object, &mut random, &mut record, &mut log.times);
                let number = match known.get(&record) {
                    Some(&number) => number,
                    None => {
                        known.insert(record.clone(), log.records.len() as u32);
                        log.records.push(record.clone());
                        log.records.len() as u32 - 1
                    }
                };
                log.rounds.push(number);
                round += 1;
            }
            self.guarded(|| drop(objects));
        }
        if own == 0 {
            self.guarded(|| {
                *self.objects.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
            });
        }
        log
    }

    /// Runs code outside a call that may panic; after a panic, all threads stop.
    fn guarded(&self, act: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(act)) {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            *failed = Some(message(&*panic));
            self.stop.store(true, Ordering::Release);
        }
    }

    /// Performs the calls of a thread in one run, and records their returns and observations.
    fn play(
        &self,
        own: usize,
        round: u64,
        object: &T,
        random: &mut QuickRandom,
        record: &mut Record,
        times: &mut Vec<(i64, i64)>,
    ) {
        record.returns.clear();
        record.seen.clear();
        record.panic = None;
        let calls = &self.calls[own];
        let first = round * calls.len() as u64;
        let mut returned = first;
        wait(turns(random, 10));
        for (i, (perform, args)) in calls.iter().enumerate() {
            if i > 0 && random.below(4) == 0 {
                wait(turns(random, 8));
            }
            let mut start = 0;
            match self.clock {
                Clock::Counters => {
                    for (s, counter) in self.counters.iter().enumerate() {
                        // The returns of earlier runs are not counted. A thread that continued
                        // after a panic may be recorded with more returns than it had.
                        let before = round * self.calls[s].len() as u64;
                        let count = counter.0.load(Ordering::Acquire).saturating_sub(before);
                        record.seen.push(if s == own { 0 } else { count as u32 });
                    }
                }
                Clock::Monotonic => start = self.now(),
            }
            let result = catch_unwind(AssertUnwindSafe(|| perform(object, args)));
            match self.clock {
                Clock::Counters => {
                    returned += 1;
                    self.counters[own].0.store(returned, Ordering::Release);
                }
                Clock::Monotonic => times.push((start, self.now())),
            }
            match result {
                Ok(value) => record.returns.push(value),
                Err(panic) => {
                    record.panic = Some(message(&*panic));
                    break;
                }
            }
        }
        self.counters[own].0.store(first + calls.len() as u64, Ordering::Release);
        // Every run has the same number of times.
        if self.clock == Clock::Monotonic {
            times.resize((first as usize) + calls.len(), (i64::MAX, i64::MAX));
        }
    }

    fn now(&self) -> i64 {
        i64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// Waits until all threads have arrived. Returns `false` if they will not.
    fn arrive(&self, arrivals: &mut u64) -> bool {
        *arrivals += self.calls.len() as u64;
        self.barrier.0.fetch_add(1, Ordering::AcqRel);
        let mut turns = 0;
        while self.barrier.0.load(Ordering::Acquire) < *arrivals {
            turns += 1;
            if turns == self.turns {
                if self.stop.load(Ordering::Acquire) {
                    return false;
                }
                // The other threads may need this core.
                std::thread::yield_now();
                turns = 0;
            }
            spin_loop();
        }
        !self.stop.load(Ordering::Acquire)
    }
}

/// Waits for `turns` turns of a loop, about a nanosecond each.
fn wait(turns: u32) {
    for turn in 0..turns {
        black_box(turn);
    }
}

/// Returns the message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it did not say why".to_owned())
}

/// Draws a number of turns of any magnitude up to two to the power of `max_magnitude`.
fn turns(random: &mut QuickRandom, max_magnitude: u64) -> u32 {
    let drawn = random.next();
    let magnitude = drawn % (max_magnitude + 1);
    ((drawn >> 8) % (1 << magnitude)) as u32
}

/// Counts equal runs.
fn count(logs: &[Log], program: &Program) -> Vec<(Outcome, u64)> {
    let rounds = logs.iter().map(|log| log.rounds.len()).min().unwrap_or(0);
    // Thread by thread, runs with equal observations so far get equal numbers.
    let mut combined = vec![0u32; rounds];
    let mut parts: Vec<Vec<u32>> = vec![Vec::new()];
    for log in logs {
        let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut extended: Vec<Vec<u32>> = Vec::new();
        for (number, &record) in combined.iter_mut().zip(&log.rounds) {
            *number = *numbers.entry((*number, record)).or_insert_with_key(|&(before, record)| {
                let mut part = parts[before as usize].clone();
                part.push(record);
                extended.push(part);
                extended.len() as u32 - 1
            });
        }
        parts = extended;
    }
    let mut counts = vec![0; parts.len()];
    for number in combined {
        counts[number as usize] += 1;
    }
    let outcome = |part: &Vec<u32>| {
        let records: Vec<&Record> =
            logs.iter().zip(part).map(|(log, &record)| &log.records[record as usize]).collect();
        let threads = program.threads.len();
        let seen: Vec<Vec<Vec<u32>>> = records
            .iter()
            .map(|record| record.seen.chunks(threads).map(<[u32]>::to_vec).collect())
            .collect();
        let returns = records.iter().map(|record| record.returns.clone()).collect();
        let outcome = Outcome::from_counters(returns, &seen);
        with_panic(outcome, &records)
    };
    parts.iter().map(outcome).zip(counts).collect()
}

/// Returns the runs one by one, with the times of their calls.
fn timed(logs: &[Log], program: &Program) -> Vec<(Outcome, u64)> {
    let rounds = logs.iter().map(|log| log.rounds.len()).min().unwrap_or(0);
    let mut counts: FxHashMap<Outcome, u64> = FxHashMap::default();
    for round in 0..rounds {
        let records: Vec<&Record> =
            logs.iter().map(|log| &log.records[log.rounds[round] as usize]).collect();
        let times: Vec<Vec<(i64, i64)>> = logs
            .iter()
            .zip(&program.threads)
            .zip(&records)
            .map(|((log, calls), record)| {
                let made = record.returns.len() + usize::from(record.panic.is_some());
                log.times[round * calls.len()..][..made].to_vec()
            })
            .collect();
        let returns = records.iter().map(|record| record.returns.clone()).collect();
        let outcome = Outcome::from_clock(returns, &times);
        *counts.entry(with_panic(outcome, &records)).or_default() += 1;
    }
    counts.into_iter().collect()
}

fn with_panic(outcome: Outcome, records: &[&Record]) -> Outcome {
    match records.iter().find_map(|record| record.panic.clone()) {
        Some(message) => outcome.with_panic(message),
        None => outcome,
    }
}
