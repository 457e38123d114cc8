//! Records histories of the processor's memory.
//!
//! Each thread is pinned to a core and runs its program with relaxed atomic loads and stores, which
//! compile to plain load and store instructions. The compiler must not reorder any two steps; the
//! processor may. A fence is a full fence, and a read-modify-write is an exchange. A running
//! program takes no lock, shares nothing but the variables and allocates nothing: the values read
//! go to a buffer of the thread, which is handed over after the round.
//!
//! ```text
//!             all arrive          all arrive               all start
//!   t0: program | clear the memory | read the whole memory | wait a little, run the program |
//!   t1: program |                  | read the whole memory | wait a little, run the program |
//! ```
//!
//! Every thread reads the whole memory before it starts. Its later reads then hit the cache, while
//! its writes wait until the other caches have given up their copies, which makes store buffers
//! observable. The start takes two barriers in a row, so that a thread that was descheduled at the
//! first one is running again before any thread starts.
//!
//! The seed determines the programs and how long each thread waits, but not the values that reads
//! return.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence, fence};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use consistory_faults::{Point, fail};
use consistory_harness::{cores, pin};
use consistory_history::{Action, History, HistoryBuilder};

use crate::program::{Deed, Step, write_program};

/// Options of a recording.
#[derive(Clone, PartialEq, Debug)]
pub struct CpuOptions {
    /// Number of threads.
    pub threads: u32,
    /// Number of operations of each thread in a round.
    pub operations: u32,
    /// Number of variables.
    pub variables: u32,
    /// Whether variables share cache lines, instead of having one each.
    pub packed: bool,
    /// The share of reads among reads and writes.
    pub read_share: f64,
    /// Share of fences among all operations.
    pub fence_share: f64,
    /// Share of read-modify-writes among all operations.
    pub rmw_share: f64,
    /// Longest wait of a thread before it starts, in turns of a loop.
    pub skew: u32,
    /// Number of rounds.
    pub rounds: u64,
    /// Seed of the programs.
    pub seed: u64,
}

impl Default for CpuOptions {
    fn default() -> Self {
        CpuOptions {
            threads: 2,
            operations: 16,
            variables: 4,
            packed: false,
            read_share: 0.5,
            fence_share: 0.0,
            rmw_share: 0.0,
            skew: 64,
            rounds: 1000,
            seed: 0,
        }
    }
}

/// The reason why nothing can be recorded.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RecordError {
    /// A number is 0 or too large.
    #[error("{what} is {value}, it must be from 1 to {most}")]
    OutOfRange {
        /// The name of the option.
        what: &'static str,
        /// The number.
        value: u64,
        /// The largest value that is possible.
        most: u64,
    },
    /// A share is not between 0 and 1, or the shares add up to more than 1.
    #[error(
        "the shares of fences and read-modify-writes are {sum} together, they must be at most 1"
    )]
    Shares {
        /// The sum of the shares.
        sum: f64,
    },
    /// A thread could not be started.
    #[error("thread {thread} could not be started: {reason}")]
    Thread {
        /// The number of the thread.
        thread: u32,
        /// The error of the system.
        reason: String,
    },
}

/// The result of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuReport {
    /// Number of recorded histories.
    pub histories: u64,
    /// Whether every thread was pinned to its own core.
    pub pinned: bool,
}

/// A value in its own cache line; some processors fetch two lines at once.
#[repr(align(128))]
#[derive(Default)]
struct Line([AtomicU64; WORDS]);

const WORDS: usize = 16;

/// Number of barriers in a round.
const BARRIERS: u64 = 4;

/// A barrier for the threads of a recording.
#[repr(align(128))]
#[derive(Default)]
struct Barrier(AtomicU64);

impl Barrier {
    /// Waits until threads have arrived `count` times in total; returns early if a stop was
    /// requested.
    fn wait(&self, count: u64, stop: &AtomicBool) -> bool {
        self.0.fetch_add(1, Ordering::AcqRel);
        let mut turns = 0u32;
        while self.0.load(Ordering::Acquire) < count {
            turns += 1;
            if turns.is_multiple_of(4096) {
                if stop.load(Ordering::Relaxed) {
                    return false;
                }
                // If there are more threads than cores, another thread may need this one.
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        true
    }
}

/// State shared by the threads of a recording.
struct Machine<'a> {
    options: &'a CpuOptions,
    memory: Vec<Line>,
    barrier: Barrier,
    stop: AtomicBool,
}

/// A thread's program in a round, and the value that each step read.
type Done = (Vec<Step>, Vec<u64>);

/// Runs rounds and passes the history of each to `each`, until all are done or `each` returns
/// `false`.
pub fn record_cpu(
    options: &CpuOptions,
    mut each: impl FnMut(History) -> bool,
) -> Result<CpuReport, RecordError> {
    validate(options)?;
    let cores = cores();
    let lines = match options.packed {
        true => (options.variables as usize).div_ceil(WORDS),
        false => options.variables as usize,
    };
    let machine = Machine {
        options,
        memory: std::iter::repeat_with(Line::default).take(lines).collect(),
        barrier: Barrier::default(),
        stop: AtomicBool::new(false),
    };
    let mut report = CpuReport { histories: 0, pinned: cores.len() >= options.threads as usize };
    std::thread::scope(|scope| {
        let mut receivers: Vec<Receiver<Done>> = Vec::new();
        let mut threads = Vec::new();
        for thread in 0..options.threads {
            // Large enough that threads do not wait for the code that consumes the histories.
            let (sender, receiver) = sync_channel(1024);
            receivers.push(receiver);
            let core = cores.get(thread as usize % cores.len().max(1)).copied();
            let machine = &machine;
            let started = fail(Point::Thread).and_then(|()| {
                std::thread::Builder::new()
                    .name(format!("t{thread}"))
                    .spawn_scoped(scope, move || machine.work(thread, core, &sender))
            });
            match started {
                Ok(started) => threads.push(started),
                Err(error) => {
                    machine.stop.store(true, Ordering::Relaxed);
                    return Err(RecordError::Thread { thread, reason: error.to_string() });
                }
            }
        }
        for _ in 0..options.rounds {
            let done: Result<Vec<Done>, _> = receivers.iter().map(Receiver::recv).collect();
            let Ok(done) = done else { break };
            report.histories += 1;
            if !each(history(&done)) {
                break;
            }
        }
        // A thread that is still waiting to send its results gets an error.
        machine.stop.store(true, Ordering::Relaxed);
        drop(receivers);
        for thread in threads {
            report.pinned &= thread.join().unwrap_or(false);
        }
        Ok(report)
    })
}

fn validate(options: &CpuOptions) -> Result<(), RecordError> {
    let numbers = [
        ("the number of threads", u64::from(options.threads), 1024),
        ("the number of operations", u64::from(options.operations), 10_000_000),
        ("the number of variables", u64::from(options.variables), 10_000_000),
    ];
    for (what, value, most) in numbers {
        if !(1..=most).contains(&value) {
            return Err(RecordError::OutOfRange { what, value, most });
        }
    }
    let shares = [options.read_share, options.fence_share, options.rmw_share];
    let sum = options.fence_share + options.rmw_share;
    if !(shares.iter().all(|share| (0.0..=1.0).contains(share)) && sum <= 1.0) {
        return Err(RecordError::Shares { sum });
    }
    Ok(())
}

impl Machine<'_> {
    /// Runs a thread's part of every round. Returns whether the thread was pinned to its core.
    fn work(&self, thread: u32, core: Option<usize>, sender: &SyncSender<Done>) -> bool {
        let is_pinned = core.is_some_and(pin);
        let threads = u64::from(self.options.threads);
        for round in 0..self.options.rounds {
            let mut steps = Vec::with_capacity(self.options.operations as usize);
            let wait = write_program(self.options, round, thread, &mut steps);
            let mut found = vec![0; steps.len()];
            let mut arrivals = round * BARRIERS * threads;
            let mut arrive = || {
                arrivals += threads;
                self.barrier.wait(arrivals, &self.stop)
            };
            if !arrive() {
                break;
            }
            if thread == 0 {
                for word in self.words() {
                    word.store(0, Ordering::SeqCst);
                }
            }
            if !arrive() {
                break;
            }
            for word in self.words() {
                black_box(word.load(Ordering::Relaxed));
            }
            if !arrive() || !arrive() {
                break;
            }
            for turn in 0..wait {
                black_box(turn);
            }
            self.run(&steps, &mut found);
            if sender.send((steps, found)).is_err() {
                // The other threads must not wait for a thread that stops here.
                self.stop.store(true, Ordering::Relaxed);
                break;
            }
        }
        is_pinned
    }

    fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        self.memory.iter().flat_map(|line| &line.0)
    }

    /// Runs a program; the value that step `i` reads is stored in `found[i]`.
    fn run(&self, steps: &[Step], found: &mut [u64]) {
        for (step, found) in steps.iter().zip(found) {
            let variable = step.variable as usize;
            let (line, word) = match self.options.packed {
                true => (variable / WORDS, variable % WORDS),
                false => (variable, 0),
            };
            let cell = &self.memory[line].0[word];
            compiler_fence(Ordering::SeqCst);
            match step.deed {
                Deed::Read => *found = cell.load(Ordering::Relaxed),
                Deed::Write => cell.store(step.value, Ordering::Relaxed),
                Deed::Rmw => *found = cell.swap(step.value, Ordering::SeqCst),
                Deed::Fence => fence(Ordering::SeqCst),
            }
            compiler_fence(Ordering::SeqCst);
        }
    }
}

/// Builds the history of a round, with sessions t0, t1, ... and keys x0, x1, ...
fn history(done: &[Done]) -> History {
    let mut builder = HistoryBuilder::new();
    for (thread, (steps, found)) in done.iter().enumerate() {
        let session = builder.session(&format!("t{thread}"));
        for (step, &found) in steps.iter().zip(found) {
            if step.deed == Deed::Fence {
                builder.push(session, Action::Fence);
                continue;
            }
            let key = builder.key(&format!("x{}", step.variable));
            // Values are counters of 64 bits and never reach the limits of `i64`.
            let (own, found) = (builder.int(step.value as i64), builder.int(found as i64));
            let action = match step.deed {
                Deed::Read => Action::Read { key, value: found },
                Deed::Rmw => Action::Rmw { key, read: found, write: own },
                Deed::Write | Deed::Fence => Action::Write { key, value: own },
            };
            builder.push(session, action);
        }
    }
    builder.finish().expect("single operations are a history")
}
