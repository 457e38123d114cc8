//! Measures the cost of recording: the latency of a client, with and without recording, at the same
//! rate.
//!
//! ```text
//! cargo run --release -p consistory-benches --bin recorder -- [ROUNDS] [RATE]
//! ```
//!
//! A separate process serves registers over TCP. Sessions send it requests at a fixed rate, 10,000
//! per second together by default, in turns of half a second: as a bare loop that stores only its
//! latencies, by [`record`] with journal and file, and by [`record`] with online judging too. All
//! use the same client, programs and pacing, and turns alternate, so that other load on the machine
//! affects all of them.
//!
//! The reported overhead is the median, over all rounds, of the ratio of a turn's median latency to
//! that of the bare turn of the same round, with its 95 % confidence interval. A second bare turn
//! in each round is compared in the same way: its ratio differs from 1 only because of other load
//! on the machine. On a busy machine, run it as root with `chrt -r 10`, before everything else.
//!
//! The recorded latency is the time between the stamps of the rows. The cost of announcing and
//! handing over a row outside of the stamps is measured in the same process and added to it. The
//! goal is at most 5 % more than bare. The second goal is that judging keeps up: judging a complete
//! recording takes less time than recording it took.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use consistory::Court;
use consistory_drive::{
    Action, Client, Clock, Cluster, DriveError, NodeId, Observer, Outcome, Program, Recorder,
    Reply, Request, Row, RunOptions, Schedule, SessionRule, System, WorkloadKind, record,
};

type Failure = Box<dyn std::error::Error>;

const SESSIONS: u32 = 16;
const KEYS: u32 = 16;
const TURN: Duration = Duration::from_millis(500);

/// Size of a request and of a response in bytes.
const MESSAGE: usize = 16;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "serve") {
        return serve();
    }
    let number = |at: usize, default: u32| {
        words.get(at).and_then(|word| word.parse().ok()).unwrap_or(default)
    };
    let (rounds, rate) = (number(0, 40), number(1, 10_000));
    let folder = std::env::temp_dir().join(format!("consistory-recorder-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let result = compare(&folder, rounds, rate);
    std::fs::remove_dir_all(&folder)?;
    result
}

/// Serves registers: a request is a key and a value, or a negative value to read.
fn serve() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let registers: &'static Mutex<Vec<i64>> = Box::leak(Box::new(Mutex::new(vec![0; 1 << 20])));
    for connection in listener.incoming() {
        let mut connection = connection?;
        connection.set_nodelay(true)?;
        std::thread::spawn(move || {
            let mut message = [0; MESSAGE];
            while connection.read_exact(&mut message).is_ok() {
                let (key, value) = decode(&message);
                let answer = {
                    let mut registers = registers.lock().expect("no thread panics with it");
                    if value >= 0 {
                        registers[key as usize] = value;
                    }
                    registers[key as usize]
                };
                if connection.write_all(&encode(key, answer)).is_err() {
                    break;
                }
            }
        });
    }
    Ok(())
}

fn encode(key: u64, value: i64) -> [u8; MESSAGE] {
    let mut message = [0; MESSAGE];
    message[..8].copy_from_slice(&key.to_le_bytes());
    message[8..].copy_from_slice(&value.to_le_bytes());
    message
}

fn decode(message: &[u8; MESSAGE]) -> (u64, i64) {
    let (key, value) = message.split_at(8);
    let key = u64::from_le_bytes(key.try_into().expect("eight bytes"));
    (key, i64::from_le_bytes(value.try_into().expect("eight bytes")))
}

/// The server, killed when it is dropped.
struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start() -> Result<Server, Failure> {
        let mut process =
            Command::new(std::env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
        let mut line = Vec::new();
        let mut output = process.stdout.take().ok_or("the output is piped")?;
        let mut byte = [0];
        while output.read(&mut byte)? == 1 && byte != [b'\n'] {
            line.push(byte[0]);
        }
        let address = String::from_utf8(line)?.parse()?;
        Ok(Server { process, address })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl System for Server {
    fn name(&self) -> &str {
        "registers"
    }

    fn version(&self) -> Result<String, DriveError> {
        Ok(String::new())
    }

    fn nodes(&self) -> usize {
        0
    }

    fn commands(&self, _cluster: &Cluster, _node: NodeId) -> Result<Vec<Command>, DriveError> {
        Ok(Vec::new())
    }

    fn connect(
        &self,
        _cluster: &Cluster,
        _node: NodeId,
        _deadline: Instant,
    ) -> Result<Box<dyn Client>, DriveError> {
        let connection = TcpStream::connect(self.address)?;
        connection.set_nodelay(true)?;
        Ok(Box::new(Connection(connection)))
    }
}

struct Connection(TcpStream);

impl Connection {
    fn exchange(&mut self, key: u64, value: i64) -> std::io::Result<i64> {
        self.0.write_all(&encode(key, value))?;
        let mut message = [0; MESSAGE];
        self.0.read_exact(&mut message)?;
        Ok(decode(&message).1)
    }
}

impl Client for Connection {
    fn run(&mut self, request: &Request, _deadline: Instant) -> Outcome {
        let Request::Single(step) = request else { return Outcome::failed("no such request") };
        let answer = match step {
            Action::Write(key, value) => self.exchange(key.0.into(), *value).map(|_| Reply::Done),
            step => {
                let value = self.exchange(step.key().0.into(), -1);
                value.map(|value| Reply::Value((value != 0).then_some(value)))
            }
        };
        match answer {
            Ok(reply) => Outcome::Ok(vec![reply]),
            Err(error) => Outcome::unknown(error),
        }
    }
}

/// Judges like `consistory test` while it runs.
struct Judge;

impl Judge {
    fn is_violated(history: &str) -> bool {
        let Ok(history) = consistory::parse(history) else { return true };
        let courts =
            [Court::registers().models(["cc", "sc"]), Court::new().models(["linearizability"])];
        courts.into_iter().any(|court| {
            let court = court.expect("the models are known");
            let report = court.without_certification().jobs(1).judge(&history);
            report.is_ok_and(|report| report.iter().any(|verdict| verdict.is_violation()))
        })
    }
}

impl Observer for Judge {
    fn judge(&self, history: &str) -> bool {
        Judge::is_violated(history)
    }
}

/// Sends requests without recording them; returns the latencies in nanoseconds.
fn bare(
    server: &Server,
    cluster: &Cluster,
    rate: u32,
    first_key: u32,
) -> Result<Vec<u64>, Failure> {
    let workload = WorkloadKind::Register.build(KEYS);
    let pause = Duration::from_secs_f64(f64::from(SESSIONS) / f64::from(rate));
    let begun = Instant::now();
    let lanes: Vec<Result<Vec<u64>, DriveError>> = std::thread::scope(|scope| {
        let session = |number: u32| {
            let workload = &*workload;
            scope.spawn(move || {
                let mut client = server.connect(cluster, NodeId(0), begun)?;
                let mut program = Program::new(1, number, SESSIONS);
                let mut due = begun + pause * number / SESSIONS;
                let mut latencies = Vec::new();
                while begun.elapsed() < TURN {
                    let now = Instant::now();
                    if now < due {
                        std::thread::sleep((due - now).min(Duration::from_millis(50)));
                        continue;
                    }
                    due = (due + pause).max(now.checked_sub(pause).unwrap_or(now));
                    let request = workload.next(&mut program).shifted(first_key);
                    program.requests += 1;
                    let start = Instant::now();
                    let outcome = client.run(&request, start + Duration::from_secs(1));
                    latencies.push(start.elapsed().as_nanos() as u64);
                    std::hint::black_box(outcome);
                }
                Ok(latencies)
            })
        };
        let threads: Vec<_> = (0..SESSIONS).map(session).collect();
        threads.into_iter().map(|thread| thread.join().expect("sessions do not panic")).collect()
    });
    let mut latencies = Vec::new();
    for lane in lanes {
        latencies.extend(lane?);
    }
    Ok(latencies)
}

/// Returns the cost of the recorder for a session per request outside of the stamps, in
/// nanoseconds.
fn cost_on_path() -> f64 {
    const BATCHES: u32 = 200;
    const BATCH: u32 = 1_000;
    let clock = Clock::start();
    let recorder = Recorder::new(clock, 1);
    let mut held = Vec::new();
    let mut times: Vec<f64> = Vec::new();
    for batch in 0..BATCHES {
        let begun = Instant::now();
        for number in 0..BATCH {
            let start = recorder.begin(0);
            let value = i64::from(batch * BATCH + number);
            let request = Request::Single(Action::Write(consistory_drive::Key(1), value));
            let outcome = Outcome::Ok(Vec::new());
            let end = clock.now();
            let node = NodeId(0);
            let row =
                Row { session: 0, generation: 0, node, server: node, request, outcome, start, end };
            recorder.end(0, Some(row));
        }
        times.push(begun.elapsed().as_nanos() as f64 / f64::from(BATCH));
        held.clear();
        std::hint::black_box(recorder.release(&mut held));
    }
    // The median, so that a batch interrupted by another process does not count.
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Mode of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Bare,
    BareAgain,
    Recorded,
    Judged,
}

const WAYS: [(Way, &str); 4] = [
    (Way::Bare, "bare"),
    (Way::BareAgain, "bare, again"),
    (Way::Recorded, "recorded"),
    (Way::Judged, "recorded and judged"),
];

fn compare(folder: &std::path::Path, rounds: u32, rate: u32) -> Result<(), Failure> {
    let server = Server::start()?;
    let cluster = Cluster::embedded(folder);
    let mut latencies: [Vec<u64>; WAYS.len()] = Default::default();
    let mut medians: [Vec<f64>; WAYS.len()] = Default::default();
    for round in 0..rounds {
        for turn in 0..WAYS.len() {
            // The order changes, so that no mode is always the first.
            let at = (turn + round as usize) % WAYS.len();
            let first_key = (round * WAYS.len() as u32 + turn as u32) * KEYS;
            let options = options(folder, rate, TURN, first_key);
            let found = match WAYS[at].0 {
                Way::Bare | Way::BareAgain => bare(&server, &cluster, rate, first_key)?,
                way => {
                    let observer: &dyn Observer = if way == Way::Judged { &Judge } else { &Quiet };
                    let run = record(&server, &cluster, &Schedule::default(), &options, observer)?;
                    run.rows.iter().map(|row| row.end - row.start).collect()
                }
            };
            medians[at].push(summary(&found).median);
            latencies[at].extend(found);
        }
    }
    let on_path = cost_on_path();
    let seconds = TURN.as_secs_f64() * f64::from(rounds);
    println!(
        "| client | requests per second | first quartile | median | mean | 99 % | added per round | 95 % interval |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut all_added = Vec::new();
    for (at, ((way, name), latencies)) in WAYS.iter().zip(&latencies).enumerate() {
        let more = if matches!(way, Way::Bare | Way::BareAgain) { 0.0 } else { on_path };
        let Summary { first_quartile, median, mean, late } = summary(latencies);
        let ratios = medians[at].iter().zip(&medians[0]).map(|(own, bare)| (own + more) / bare);
        let [low, added, high] = median_with_interval(ratios.collect()).map(|r| (r - 1.0) * 100.0);
        all_added.push(added);
        println!(
            "| {name} | {:.0} | {:.1} µs | {:.1} µs | {:.1} µs | {:.0} µs | {added:+.1} % | \
             {low:+.1} to {high:+.1} % |",
            latencies.len() as f64 / seconds,
            (first_quartile + more) / 1e3,
            (median + more) / 1e3,
            (mean + more) / 1e3,
            (late + more) / 1e3,
        );
    }
    println!();
    println!("on the path of a request outside of the stamps: {on_path:.0} ns");
    for ((_, name), added) in WAYS.iter().zip(&all_added).skip(2) {
        let answer = if *added <= 5.0 { "yes" } else { "no" };
        println!("goal, {name}: at most 5 % more than a bare client: {answer}");
    }
    judging(&server, &cluster, folder, rate)
}

fn options(folder: &std::path::Path, rate: u32, time: Duration, first_key: u32) -> RunOptions {
    RunOptions {
        workload: WorkloadKind::Register,
        time,
        seed: 1,
        sessions: SESSIONS,
        keys: KEYS,
        first_key,
        requests: None,
        rate,
        timeout: Duration::from_secs(1),
        session_rule: SessionRule::Client,
        moves: false,
        keeps_going: true,
        folder: folder.to_owned(),
    }
}

struct Quiet;
impl Observer for Quiet {}

/// Measures whether judging is faster than recording.
fn judging(
    server: &Server,
    cluster: &Cluster,
    folder: &std::path::Path,
    rate: u32,
) -> Result<(), Failure> {
    let options = options(folder, rate, Duration::from_secs(10), 1 << 19);
    let run = record(server, cluster, &Schedule::default(), &options, &Quiet)?;
    let begun = Instant::now();
    let is_violated = Judge::is_violated(&run.history);
    let time = begun.elapsed();
    println!(
        "judging {} operations, recorded in {:.1} s, by cc, sc and linearizability: {:.2} s{}",
        run.operations,
        run.time.as_secs_f64(),
        time.as_secs_f64(),
        if is_violated { ", VIOLATED" } else { "" }
    );
    println!(
        "goal, judging keeps up with recording: {}",
        if time < run.time { "yes" } else { "no" }
    );
    Ok(())
}

/// Returns the median with the bounds of its 95 % confidence interval, for any distribution: order
/// statistics around the middle.
fn median_with_interval(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let at = |rank: f64| {
        let index = rank.clamp(0.0, (count - 1.0).max(0.0)) as usize;
        values.get(index).copied().unwrap_or(f64::NAN)
    };
    let reach = 0.98 * count.sqrt();
    [at(count / 2.0 - reach), at(count / 2.0), at((count / 2.0 + reach).ceil())]
}

/// Latencies in nanoseconds.
struct Summary {
    first_quartile: f64,
    median: f64,
    mean: f64,
    /// 99th percentile of the latency.
    late: f64,
}

fn summary(latencies: &[u64]) -> Summary {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let at = |share: f64| {
        let index = (sorted.len() as f64 * share) as usize;
        sorted.get(index).copied().unwrap_or(0) as f64
    };
    let mean = sorted.iter().sum::<u64>() as f64 / sorted.len().max(1) as f64;
    Summary { first_quartile: at(0.25), median: at(0.5), mean, late: at(0.99) }
}
