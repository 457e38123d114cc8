//! Budgets of time and memory.
//!
//! # Time
//!
//! A budget of time limits work: on a loaded machine, a question that takes one second of processor
//! time must not become undecided because the processor was busy elsewhere. So a budget with a
//! [`Meter`] ends when the limit has passed on the clock *and* the process has used as much
//! processor time; at the latest, it ends when [`MAX_STRETCH`] times the limit has passed on the
//! clock, so that a waiting user gets an answer. On an idle machine both are the same. Without a
//! meter only the clock counts. If several histories are in progress, each is charged its share of
//! the processor time, because it does not do the work of the others. The time that deciding leaves
//! to the check of a certificate is measured in the same way ([`Stopwatch`]). [`Budget::of_thread`]
//! counts the processor time of one thread alone, for work that also waits for other threads, such
//! as reading from a pipe.
//!
//! # Memory
//!
//! [`Budget::reserve`] is called before a large table is allocated, so that a table that is too
//! large is not allocated at all. [`Budget::check`] compares the allocated bytes of the process
//! with the limit, if there is a meter; this also covers memory that was not reserved.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use consistory_faults::{Point, fails};

/// Largest factor between the clock time and the limit of a budget, if the process does not get a
/// processor.
pub const MAX_STRETCH: u32 = 4;

/// Measures the resources that this process uses.
pub trait Meter: fmt::Debug + Send + Sync {
    /// Returns the processor time of the process, if the system provides it.
    fn processor_time(&self) -> Option<Duration>;

    /// Returns the processor time of the calling thread, if the system provides it.
    fn thread_time(&self) -> Option<Duration>;

    /// Returns the number of allocated bytes.
    fn allocated(&self) -> u64;
}

/// A meter, and the number of histories that share its measurements.
#[derive(Clone, Debug)]
pub struct Gauge(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    meter: Arc<dyn Meter>,
    /// Number of histories in memory: those being judged, and one that is being read.
    tenants: AtomicUsize,
    /// Number of histories being judged.
    judged: AtomicUsize,
    /// Origin of the times of samples.
    origin: Instant,
    /// Time of the last reading of the processor time, relative to the origin, and the reading.
    sample: Mutex<Option<(Duration, Option<Duration>)>>,
}

/// Largest age of a sample of the processor time. Reading it takes half a microsecond, and a batch
/// of small histories starts very many budgets.
const MAX_SAMPLE_AGE: Duration = Duration::from_millis(1);

impl Gauge {
    /// Builds a gauge. Every history may use the whole memory limit, so the process may use the
    /// limit once per history in progress.
    pub fn new(meter: Arc<dyn Meter>) -> Self {
        let (tenants, judged, sample) = Default::default();
        Gauge(Arc::new(Shared { meter, tenants, judged, origin: Instant::now(), sample }))
    }

    /// Counts one more history as being judged, until the result is dropped.
    #[must_use]
    pub fn enter(&self) -> Tenant {
        self.0.tenants.fetch_add(1, Ordering::Relaxed);
        self.0.judged.fetch_add(1, Ordering::Relaxed);
        Tenant { gauge: self.clone(), is_judged: true }
    }

    /// Returns a reading of the processor time of the process that is at most a millisecond old.
    fn processor_time(&self) -> Option<Duration> {
        let Shared { meter, origin, sample, .. } = &*self.0;
        let now = origin.elapsed();
        let mut sample = sample.lock().unwrap_or_else(PoisonError::into_inner);
        match *sample {
            Some((at, time)) if now.saturating_sub(at) < MAX_SAMPLE_AGE => time,
            _ => {
                let time = meter.processor_time();
                *sample = Some((now, time));
                time
            }
        }
    }

    /// Returns the number of histories that share the processor time, at least 1.
    fn judged(&self) -> u32 {
        u32::try_from(self.0.judged.load(Ordering::Relaxed)).unwrap_or(u32::MAX).max(1)
    }

    /// Fails if the process has allocated more than the histories in progress may use together.
    fn check(&self, limit: u64) -> Result<(), Stopped> {
        let tenants = self.0.tenants.load(Ordering::Relaxed).max(1) as u64;
        match self.0.meter.allocated() / tenants {
            needed if needed > limit => Err(Stopped::Memory { limit, needed }),
            _ => Ok(()),
        }
    }
}

/// Measures how much of the clock time since its start was work, that is, time for which the
/// process had a processor.
#[derive(Clone, Debug)]
pub struct Stopwatch {
    gauge: Option<Gauge>,
    started: Instant,
    /// Processor time at the start, if it is measured.
    processor: Option<Duration>,
}

impl Stopwatch {
    /// Starts the measurement; without a gauge, all time counts as work.
    pub fn start(gauge: Option<&Gauge>) -> Self {
        let processor = gauge.and_then(|gauge| gauge.0.meter.processor_time());
        Stopwatch { gauge: gauge.cloned(), started: Instant::now(), processor }
    }

    /// Returns the part of a span of clock time since the start that counts as work.
    ///
    /// Only the share of work in the whole time since the start is known, so every span is assumed
    /// to have the same share.
    pub fn work_in(&self, span: Duration) -> Duration {
        let used = self.gauge.as_ref().and_then(|gauge| {
            let used = gauge.0.meter.processor_time()?.saturating_sub(self.processor?);
            Some(used.div_f64(f64::from(gauge.judged())))
        });
        let passed = self.started.elapsed();
        match used {
            Some(used) if used < passed => span.mul_f64(used.as_secs_f64() / passed.as_secs_f64()),
            _ => span,
        }
    }
}

/// A history in progress.
#[derive(Debug)]
pub struct Tenant {
    gauge: Gauge,
    is_judged: bool,
}

impl Drop for Tenant {
    fn drop(&mut self) {
        self.gauge.0.tenants.fetch_sub(1, Ordering::Relaxed);
        if self.is_judged {
            self.gauge.0.judged.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Reasons why a search stopped without an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// The time ran out.
    Time {
        /// The limit.
        limit: Duration,
    },
    /// The next step would have taken more memory than allowed.
    Memory {
        /// The limit in bytes.
        limit: u64,
        /// The bytes that the next step needs.
        needed: u64,
    },
    /// The history is larger than this decider supports.
    Size {
        /// Number of operations.
        operations: usize,
        /// Largest supported number of operations.
        limit: usize,
    },
    /// The definition of a model expands to more steps than can be compiled.
    Expansion {
        /// The largest number of steps.
        limit: usize,
    },
    /// The caller asked to stop.
    Interrupted,
    /// The independent checker did not accept the certificate.
    Rejected,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Time { limit } => write!(f, "the time budget of {limit:?} ran out"),
            Stopped::Memory { limit, needed } => {
                write!(f, "it needs {} MiB, the memory budget is {} MiB", needed >> 20, limit >> 20)
            }
            Stopped::Size { operations, limit } => write!(
                f,
                "it has {operations} operations, this way of deciding takes at most {limit}"
            ),
            Stopped::Expansion { limit } => {
                write!(f, "the definition expands to more than {limit} steps")
            }
            Stopped::Interrupted => f.write_str("it was interrupted"),
            Stopped::Rejected => f.write_str("the certificate was rejected"),
        }
    }
}

/// Limits of time and memory for a search; unlimited by default.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    deadline: Option<Deadline>,
    memory: Option<u64>,
    /// Limit of the bytes that the process may allocate per history.
    measured: Option<u64>,
    gauge: Option<Gauge>,
    scope: Scope,
    interrupts: Vec<Arc<AtomicBool>>,
}

/// Processor time that counts against the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Scope {
    #[default]
    Process,
    Thread,
}

/// End of the time of a budget.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// Limit that messages name.
    limit: Duration,
    /// Part of the limit that may be used from the start on.
    time: Duration,
    /// Start on the clock.
    started: Instant,
    /// End on the clock.
    at: Instant,
    /// Processor time that may be used, and its reading when the time began; `None` if it is not
    /// measured.
    processor: Option<(Duration, Duration)>,
}

impl Budget {
    /// Builds an unlimited budget.
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// Measures time and memory by a gauge. Must be called before the limits are set.
    #[must_use]
    pub fn with_gauge(mut self, gauge: Gauge) -> Self {
        self.gauge = Some(gauge);
        self
    }

    /// Counts one more history as being read, until the result is dropped, if there is a gauge. The
    /// history takes memory in addition to the histories that are judged, but it uses the time of
    /// its own thread.
    pub fn enter(&self) -> Option<Tenant> {
        let gauge = self.gauge.clone()?;
        gauge.0.tenants.fetch_add(1, Ordering::Relaxed);
        Some(Tenant { gauge, is_judged: false })
    }

    /// Counts only the processor time of the calling thread, from now; without a gauge, the clock
    /// time.
    ///
    /// The budget must then be checked on this thread.
    #[must_use]
    pub fn of_thread(mut self) -> Self {
        self.scope = Scope::Thread;
        self.renewed()
    }

    /// Returns the processor time that counts against the limit.
    fn processor_time(&self) -> Option<Duration> {
        let gauge = self.gauge.as_ref()?;
        match self.scope {
            Scope::Process => gauge.processor_time(),
            Scope::Thread => gauge.0.meter.thread_time(),
        }
    }

    /// Limits the time, counted from now.
    #[must_use]
    pub fn with_time(mut self, limit: Duration) -> Self {
        let processor = self.processor_time().map(|now| (limit, now));
        let started = Instant::now();
        let at = started.checked_add(limit);
        self.deadline = at.map(|at| Deadline { limit, time: limit, started, at, processor });
        self
    }

    /// Sets the limit that messages name.
    fn naming(mut self, limit: Duration) -> Self {
        if let Some(deadline) = &mut self.deadline {
            deadline.limit = limit;
        }
        self
    }

    /// Returns the same budget with its time counted from now.
    #[must_use]
    pub fn renewed(&self) -> Self {
        match self.deadline {
            Some(Deadline { limit, time, .. }) => self.clone().with_time(time).naming(limit),
            None => self.clone(),
        }
    }

    /// Returns the same budget with a share of its time, counted from now.
    #[must_use]
    pub fn share(&self, one_in: u32) -> Self {
        let one_in = one_in.max(1);
        match self.deadline {
            Some(Deadline { limit, time, .. }) => {
                self.clone().with_time(time / one_in).naming(limit / one_in)
            }
            None => self.clone(),
        }
    }

    /// Returns the time that was used since the start, as the budget counts it.
    pub fn spent(&self) -> Duration {
        let Some(deadline) = self.deadline else { return Duration::ZERO };
        match deadline.processor.zip(self.processor_time()) {
            Some(((_, start), used)) => used.saturating_sub(start) / self.sharing(),
            None => deadline.started.elapsed(),
        }
    }

    /// Returns the number of histories that share the processor time that counts.
    fn sharing(&self) -> u32 {
        match (&self.gauge, self.scope) {
            (Some(gauge), Scope::Process) => gauge.judged(),
            _ => 1,
        }
    }

    /// Returns the same budget with its end extended by a share of its time, to complete a result.
    #[must_use]
    pub fn extended(&self, one_in: u32) -> Self {
        let deadline = self.deadline.map(|Deadline { limit, time, started, at, processor }| {
            let more = time / one_in.max(1);
            let at = at.checked_add(more).unwrap_or(at);
            let longer = |(time, start): (Duration, Duration)| (time.saturating_add(more), start);
            Deadline { limit, time, started, at, processor: processor.map(longer) }
        });
        Budget { deadline, ..self.clone() }
    }

    /// Returns the same budget with its time counted from now, minus the time already spent. At
    /// least a tenth of the time remains, to complete a result.
    #[must_use]
    pub fn after(&self, spent: Duration) -> Self {
        let Some(Deadline { limit, time, .. }) = self.deadline else { return self.clone() };
        let left = time.saturating_sub(spent).max(limit / 10);
        self.clone().with_time(left).naming(limit)
    }

    /// Limits the memory of tables in bytes; with a gauge, also that of the whole process.
    #[must_use]
    pub fn with_memory(mut self, limit: u64) -> Self {
        self.memory = Some(limit);
        self.measured = self.gauge.is_some().then_some(limit);
        self
    }

    /// Returns the same budget with a share of its memory, for one of several parallel tasks.
    #[must_use]
    pub fn with_part_of_memory(&self, one_in: usize) -> Self {
        let memory = self.memory.map(|limit| limit / one_in.max(1) as u64);
        Budget { memory, ..self.clone() }
    }

    /// Stops as soon as this flag, or one that was given before, is set.
    #[must_use]
    pub fn with_interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupts.push(flag);
        self
    }

    /// Fails if the time or the memory is used up or a stop was requested. Because this reads the
    /// clock, call it only once every few thousand steps.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.interrupts.iter().any(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Stopped::Interrupted);
        }
        if let (Some(limit), Some(gauge)) = (self.measured, &self.gauge) {
            gauge.check(limit)?;
        }
        match self.deadline {
            Some(deadline) if self.is_over(&deadline) || fails(Point::Clock) => {
                Err(Stopped::Time { limit: deadline.limit })
            }
            _ => Ok(()),
        }
    }

    /// Checks whether the time is over; the module documentation defines which time counts.
    fn is_over(&self, deadline: &Deadline) -> bool {
        let now = Instant::now();
        if now < deadline.at {
            return false;
        }
        let Some(((time, start), used)) = deadline.processor.zip(self.processor_time()) else {
            return true;
        };
        let stretched = deadline.at.checked_add(deadline.time * (MAX_STRETCH - 1));
        let is_kept_waiting = self.scope == Scope::Thread || stretched.is_none_or(|at| now < at);
        used.saturating_sub(start) / self.sharing() >= time || !is_kept_waiting
    }

    /// Fails if a table of `needed` bytes exceeds the budget.
    pub fn reserve(&self, needed: u64) -> Result<(), Stopped> {
        match self.memory {
            Some(limit) if needed > limit || fails(Point::Memory) => {
                Err(Stopped::Memory { limit, needed })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that gets a processor for a fixed share of the clock time.
    #[derive(Debug)]
    struct Loaded {
        started: Instant,
        percent: u32,
    }

    impl Meter for Loaded {
        fn processor_time(&self) -> Option<Duration> {
            Some(self.started.elapsed() * self.percent / 100)
        }

        fn thread_time(&self) -> Option<Duration> {
            self.processor_time()
        }

        fn allocated(&self) -> u64 {
            0
        }
    }

    fn gauge(percent: u32) -> Gauge {
        Gauge::new(Arc::new(Loaded { started: Instant::now(), percent }))
    }

    /// Waits until a budget is used up, and returns the clock time by then, divided by the limit.
    fn stretch(gauge: &Gauge) -> f64 {
        const LIMIT: Duration = Duration::from_millis(60);
        let budget = Budget::unlimited().with_gauge(gauge.clone()).with_time(LIMIT);
        let started = Instant::now();
        while budget.check().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        started.elapsed().as_secs_f64() / LIMIT.as_secs_f64()
    }

    #[test]
    fn waiting_for_a_processor_is_not_counted() {
        assert!(stretch(&gauge(100)) >= 1.0);
        assert!(stretch(&gauge(50)) >= 1.8, "half of a processor takes twice as long");
        assert!(
            stretch(&gauge(1)) >= f64::from(MAX_STRETCH) * 0.95,
            "a user does not wait for ever"
        );
    }

    #[test]
    fn the_work_of_other_histories_is_not_counted() {
        // Two histories share one processor, so each has half of it.
        let shared = gauge(100);
        let first = shared.enter();
        let second = shared.enter();
        let reading = Budget::unlimited().with_gauge(shared.clone()).enter();
        let both = stretch(&shared);
        assert!(both >= 1.8, "{both}");
        drop((first, second, reading));
        assert_eq!(shared.judged(), 1);
    }

    #[test]
    fn only_work_is_taken_from_what_comes_after() {
        let span = Duration::from_millis(100);
        for (percent, least, most) in [(100, 95, 100), (25, 20, 30), (200, 100, 100)] {
            let watch = Stopwatch::start(Some(&gauge(percent)));
            std::thread::sleep(Duration::from_millis(30));
            let work = watch.work_in(span).as_millis();
            assert!((least..=most).contains(&work), "{percent} %: {work} ms");
        }
        assert_eq!(Stopwatch::start(None).work_in(span), span);
    }
}
