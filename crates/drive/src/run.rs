//! A run: starts the system, lets sessions send requests while faults happen, records them, heals
//! the system, and reads the final state.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use consistory_faults::{Point, fail};
use consistory_random::Random;
use consistory_work::{each, spawn_scoped};

use crate::clock::Clock;
use crate::cluster::{Cluster, NodeId};
use crate::error::DriveError;
use crate::journal::{Journal, SessionRule, Style};
use crate::nemesis::{FaultEvent, Pace, READY_LIMIT, Site, carry_out};
use crate::processes::step_back;
use crate::recorder::{Recorder, Row};
use crate::request::{Outcome, Reply, Request};
use crate::schedule::Schedule;
use crate::sql::BROKEN;
use crate::system::{Client, System};
use crate::workloads::{Family, Program, Workload, WorkloadKind};

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The workload of the sessions.
    pub workload: WorkloadKind,
    /// Time for which the sessions send requests.
    pub time: Duration,
    /// Seed of the sessions' programs.
    pub seed: u64,
    /// The number of sessions.
    pub sessions: u32,
    /// The number of keys in use at a time.
    pub keys: u32,
    /// Number of the first key: runs on the same running system use different keys.
    pub first_key: u32,
    /// Number of requests after which each session stops; `None` if only time limits it.
    pub requests: Option<u32>,
    /// Requests per second of all sessions together; 0 for as many as possible.
    pub rate: u32,
    /// Time after which the outcome of a request counts as indeterminate.
    pub timeout: Duration,
    /// The rule by which operations are grouped into sessions.
    pub session_rule: SessionRule,
    /// Whether a session uses a random node for every request, instead of always the same.
    pub moves: bool,
    /// Whether to continue after a violation.
    pub keeps_going: bool,
    /// The folder of the history and the log of faults.
    pub folder: PathBuf,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The history as JSON lines.
    pub history: String,
    /// The number of operations in it.
    pub operations: u64,
    /// All requests with their outcomes, in the order of their ends.
    pub rows: Vec<Row>,
    /// The faults that happened.
    pub faults: Vec<FaultEvent>,
    /// Time for which the sessions sent requests.
    pub time: Duration,
    /// Time that the system took to start.
    pub start_time: Duration,
    /// The reason why the system did not recover from a fault, if it did not.
    pub trouble: Option<String>,
}

/// Callbacks of a run: progress, judging, interruption.
pub trait Observer: Sync {
    /// Receives a message about the progress of the run.
    fn progress(&self, _message: &str) {}

    /// Judges the history so far. Returns whether it violates the promise.
    ///
    /// A separate thread calls it repeatedly while the history grows.
    fn judge(&self, _history: &str) -> bool {
        false
    }

    /// Returns whether to stop early.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Interval at which recorded rows are collected.
const COLLECT_EVERY: Duration = Duration::from_millis(20);

/// Time for which sessions continue after the last fault has ended, or after a violation was seen.
const SETTLE: Duration = Duration::from_secs(1);

/// Largest number of reads of the whole set, which end when two consecutive ones agree.
const STABLE_TRIES: u32 = 20;

/// Starts a system whose cluster is up, records sessions while faults happen, and tears the system
/// down.
pub fn run(
    system: &dyn System,
    cluster: &Cluster,
    schedule: &Schedule,
    options: &RunOptions,
    observer: &dyn Observer,
) -> Result<Run, DriveError> {
    let start_time = boot(system, cluster, observer)?;
    let run = record(system, cluster, schedule, options, observer)?;
    system.tear_down(cluster);
    Ok(Run { start_time, ..run })
}

/// Starts a system. Returns the time until a write through every node worked.
pub fn boot(
    system: &dyn System,
    cluster: &Cluster,
    observer: &dyn Observer,
) -> Result<Duration, DriveError> {
    let begun = Instant::now();
    observer.progress("preparing");
    system.prepare(cluster)?;
    observer.progress("starting");
    system.boot(cluster)?;
    system.ready(cluster, READY_LIMIT)?;
    system.set_up(cluster)?;
    Ok(begun.elapsed())
}

/// Runs the sessions on a started system while faults happen, and records them.
///
/// A system may be recorded more than once, each time with other keys.
pub fn record(
    system: &dyn System,
    cluster: &Cluster,
    schedule: &Schedule,
    options: &RunOptions,
    observer: &dyn Observer,
) -> Result<Run, DriveError> {
    let mut faults_file = create(&options.folder.join("faults.jsonl"))?;
    write!(faults_file, "{}", schedule.to_lines(system.verbs()))?;
    faults_file.flush()?;
    let history_file = create(&options.folder.join("history.jsonl"))?;
    observer.progress("running");
    let clock = Clock::start();
    let mut run = Run::default();
    let workload = options.workload.build(options.keys);
    let homes = system.homes();
    let session = Session { system, cluster, workload: &*workload, options };
    let recorder = Recorder::new(clock, options.sessions as usize + homes);
    let style = match options.workload {
        WorkloadKind::CasRegister => Style::Calls,
        _ => Style::Operations,
    };
    let keeper = Keeper {
        journal: Mutex::new(Journal::new(options.session_rule, style)),
        text: Mutex::new(String::new()),
        file: Mutex::new(history_file),
    };
    let is_over = AtomicBool::new(false);
    let at_work = AtomicU32::new(options.sessions);
    let is_recorded = AtomicBool::new(false);
    let violated: Mutex<Option<Instant>> = Mutex::new(None);
    let pace = || {
        let seen = violated.lock().unwrap_or_else(PoisonError::into_inner);
        let has_settled = seen.is_some_and(|at: Instant| at.elapsed() > SETTLE);
        if has_settled && !options.keeps_going || observer.is_interrupted() {
            Pace::AtOnce
        } else if clock.elapsed() >= options.time || at_work.load(Ordering::SeqCst) == 0 {
            Pace::TimeIsOver
        } else {
            Pace::GoOn
        }
    };
    let site = Site::new(system, cluster);
    let (outcome, time, rows) = std::thread::scope(|scope| {
        let collector =
            spawn_scoped(scope, || keeper.collect(&recorder, &is_recorded)).map_err(no_thread)?;
        // If this thread cannot be started, the history is judged only after the run.
        let _ = spawn_scoped(scope, || watch(&keeper, observer, &violated, &is_recorded));
        let mut refused = Vec::new();
        for number in 0..options.sessions {
            let (session, recorder, is_over, at_work) = (&session, &recorder, &is_over, &at_work);
            let started = spawn_scoped(scope, move || {
                session.work(number, recorder, clock, is_over);
                at_work.fetch_sub(1, Ordering::SeqCst);
            });
            if let Err(error) = started {
                // The other sessions continue.
                at_work.fetch_sub(1, Ordering::SeqCst);
                refused.push(error);
            }
        }
        let left = options.sessions as usize - refused.len();
        if let Some(error) = refused.pop() {
            observer.progress(&format!("running with {left} sessions: {error}"));
            if left == 0 {
                is_recorded.store(true, Ordering::SeqCst);
                return Err(no_thread(error));
            }
        }
        let events = &mut run.faults;
        let outcome = carry_out(&site, schedule, clock, &mut faults_file, events, |wait| {
            let until = Instant::now() + wait;
            while Instant::now() < until && pace() == Pace::GoOn {
                std::thread::sleep(Duration::from_millis(5).min(wait));
            }
            pace()
        });
        while pace() == Pace::GoOn {
            std::thread::sleep(Duration::from_millis(5));
        }
        // After the last fault, sessions observe the healed system; without faults this is not
        // needed.
        let is_healed = outcome.is_ok() && pace() == Pace::TimeIsOver;
        if !schedule.faults.is_empty() && is_healed {
            std::thread::sleep(SETTLE);
        }
        is_over.store(true, Ordering::SeqCst);
        // The run does not include the collection of its last rows.
        let time = clock.elapsed();
        if is_healed {
            observer.progress("reading on every node");
            session.look_once_more(&recorder, clock);
        }
        is_recorded.store(true, Ordering::SeqCst);
        let rows = collector.join().expect("the collector does not panic");
        Ok::<_, DriveError>((outcome, time, rows))
    })?;
    run.trouble = outcome.err().map(|error| error.to_string());
    run.time = time;
    run.rows = rows?;
    keeper.add_members(&run.rows, options.sessions)?;
    run.operations = keeper.journal.lock().unwrap_or_else(PoisonError::into_inner).lines();
    run.history = keeper.text.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(run)
}

fn no_thread(error: io::Error) -> DriveError {
    DriveError::setup(format!("cannot start a thread: {error}"))
}

fn create(path: &Path) -> Result<BufWriter<Journaled>, DriveError> {
    let file = File::create(path).map_err(|error| DriveError::file(path, error))?;
    Ok(BufWriter::new(Journaled { file, path: path.to_owned(), length: 0 }))
}

/// A file of a run. A text is written completely or not at all, so lines stay whole if the disk is
/// full.
struct Journaled {
    file: File,
    path: PathBuf,
    /// Number of bytes written.
    length: u64,
}

impl Write for Journaled {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = fail(Point::Write).and_then(|()| self.file.write_all(bytes));
        if let Err(error) = written {
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
            return Err(io::Error::new(error.kind(), format!("{}: {error}", self.path.display())));
        }
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// State shared by the sessions.
struct Session<'a> {
    system: &'a dyn System,
    cluster: &'a Cluster,
    workload: &'a dyn Workload,
    options: &'a RunOptions,
}

impl Session<'_> {
    /// Sends one request after the other.
    fn work(&self, number: u32, recorder: &Recorder, clock: Clock, is_over: &AtomicBool) {
        let options = self.options;
        let mut program = Program::new(options.seed, number, options.sessions);
        let mut choice = Random::new(options.seed, (1 << 33) + u64::from(number));
        let mut clients: HashMap<NodeId, Box<dyn Client>> = HashMap::new();
        let homes = self.system.homes() as u32;
        let pause = match options.rate {
            0 => Duration::ZERO,
            rate => Duration::from_secs_f64(f64::from(options.sessions) / f64::from(rate)),
        };
        // All sessions send transactions at the same moments, because anomalies need overlapping
        // transactions. Single requests are sent in turn, because stale reads are visible when
        // operations do not overlap.
        let turn = match options.workload.family() {
            Family::Transactions => 0,
            _ => number,
        };
        let mut due = Instant::now() + pause * turn / options.sessions.max(1);
        let mut generation = 0;
        let limit = options.requests.unwrap_or(u32::MAX);
        while !is_over.load(Ordering::SeqCst) && program.requests < limit {
            let now = Instant::now();
            if now < due {
                std::thread::sleep((due - now).min(Duration::from_millis(50)));
                continue;
            }
            due = (due + pause).max(now.checked_sub(pause).unwrap_or(now));
            let node = NodeId(match options.moves {
                true => choice.below(homes) as usize,
                false => (number % homes) as usize,
            });
            let client = match clients.remove(&node) {
                Some(client) => client,
                None => match self.system.connect(self.cluster, node, now + options.timeout) {
                    Ok(client) => client,
                    Err(_) => {
                        std::thread::sleep(Duration::from_millis(20));
                        continue;
                    }
                },
            };
            let request = self.workload.next(&mut program).shifted(options.first_key);
            program.requests += 1;
            let (client, outcome) =
                self.send(recorder, clock, (number, generation), node, client, request);
            match client {
                Some(client) => drop(clients.insert(node, client)),
                None => generation += 1,
            }
            if matches!(outcome, Sent::Refused) {
                // Refusals arrive at once; this avoids a busy loop.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Sends a request and records its outcome. Returns the client if it can be used again.
    fn send(
        &self,
        recorder: &Recorder,
        clock: Clock,
        (session, generation): (u32, u32),
        node: NodeId,
        mut client: Box<dyn Client>,
        request: Request,
    ) -> (Option<Box<dyn Client>>, Sent) {
        let start = recorder.begin(session);
        let outcome = client.run(&request, Instant::now() + self.options.timeout);
        let end = clock.now();
        let is_broken = match &outcome {
            Outcome::Ok(_) => false,
            Outcome::Failed(reason) => reason.starts_with(BROKEN),
            Outcome::Unknown { .. } => true,
        };
        let sent = match &outcome {
            Outcome::Ok(replies) => Sent::Answered(replies.first().cloned()),
            _ => Sent::Refused,
        };
        let server = client.sent_to().unwrap_or(node);
        let row = Row { session, generation, node, server, request, outcome, start, end };
        recorder.end(session, Some(row));
        ((!is_broken).then_some(client), sent)
    }

    /// Sends the workload's final requests to every node.
    fn look_once_more(&self, recorder: &Recorder, clock: Clock) {
        let first_key = self.options.first_key;
        let requests: Vec<Request> =
            self.workload.last().into_iter().map(|request| request.shifted(first_key)).collect();
        each((0..self.system.homes()).collect(), |home| {
            let session = self.options.sessions + home as u32;
            for request in &requests {
                self.ask_until_stable(recorder, clock, session, NodeId(home), request);
            }
        });
    }

    fn ask_until_stable(
        &self,
        recorder: &Recorder,
        clock: Clock,
        session: u32,
        node: NodeId,
        request: &Request,
    ) {
        let mut last = None;
        for _ in 0..STABLE_TRIES {
            let deadline = Instant::now() + self.options.timeout;
            let Ok(client) = self.system.connect(self.cluster, node, deadline) else {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            let (_, sent) = self.send(recorder, clock, (session, 0), node, client, request.clone());
            if let Sent::Answered(reply) = sent {
                if !matches!(request, Request::Members) || last == Some(reply.clone()) {
                    return;
                }
                last = Some(reply);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The answer of a client.
enum Sent {
    Answered(Option<Reply>),
    Refused,
}

/// Collects the history, in memory and in its file.
struct Keeper {
    journal: Mutex<Journal>,
    text: Mutex<String>,
    file: Mutex<BufWriter<Journaled>>,
}

impl Keeper {
    /// Collects rows until the recording has ended, and returns them.
    fn collect(
        &self,
        recorder: &Recorder,
        is_recorded: &AtomicBool,
    ) -> Result<Vec<Row>, DriveError> {
        step_back();
        let (mut rows, mut held) = (Vec::new(), Vec::new());
        loop {
            let is_last = is_recorded.load(Ordering::SeqCst);
            let released = recorder.release(&mut held);
            let mut lines = String::new();
            {
                let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
                for row in &released {
                    journal.append(row, &mut lines);
                }
            }
            self.write(&lines)?;
            rows.extend(released);
            if is_last && held.is_empty() {
                return Ok(rows);
            }
            std::thread::sleep(COLLECT_EVERY);
        }
    }

    fn write(&self, lines: &str) -> Result<(), DriveError> {
        if lines.is_empty() {
            return Ok(());
        }
        self.text.lock().unwrap_or_else(PoisonError::into_inner).push_str(lines);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(lines.as_bytes())?;
        Ok(file.flush()?)
    }

    /// Adds the last read of the set on each node to the history.
    fn add_members(&self, rows: &[Row], sessions: u32) -> Result<(), DriveError> {
        let is_members = |row: &&Row| {
            row.session >= sessions
                && row.request == Request::Members
                && matches!(row.outcome, Outcome::Ok(_))
        };
        let mut last: HashMap<u32, &Row> = HashMap::new();
        for row in rows.iter().filter(is_members) {
            last.insert(row.session, row);
        }
        let added: Vec<i64> = rows
            .iter()
            .filter(|row| !matches!(row.outcome, Outcome::Failed(_)))
            .filter_map(|row| match row.request {
                Request::Add(element) => Some(element),
                _ => None,
            })
            .collect();
        let mut lines = String::new();
        let mut nodes: Vec<&Row> = last.into_values().collect();
        nodes.sort_by_key(|row| row.session);
        for row in nodes {
            let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
            journal.members(row, &added, &mut lines);
        }
        self.write(&lines)
    }
}

/// Judges the history while it grows, using at most a fifth of one processor's time.
fn watch(
    keeper: &Keeper,
    observer: &dyn Observer,
    violated: &Mutex<Option<Instant>>,
    is_recorded: &AtomicBool,
) {
    step_back();
    let (mut judged, mut rest) = (0, Duration::from_millis(500));
    let mut last = Instant::now();
    while !is_recorded.load(Ordering::SeqCst) {
        std::thread::sleep(COLLECT_EVERY);
        if last.elapsed() < rest {
            continue;
        }
        let text = {
            let text = keeper.text.lock().unwrap_or_else(PoisonError::into_inner);
            if text.len() < judged + judged / 10 + 1 {
                continue;
            }
            text.clone()
        };
        judged = text.len();
        let begun = Instant::now();
        if observer.judge(&text) {
            *violated.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            return;
        }
        rest = (begun.elapsed() * 4).max(Duration::from_millis(250));
        last = Instant::now();
    }
}
