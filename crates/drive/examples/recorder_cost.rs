//! Measures what recording adds to the latency of a request: `recorder_cost [REQUESTS PER SECOND]`.
//!
//! Four sessions ask an echo server on the loopback interface, for two seconds with the recorder and
//! for two seconds without it, in turns; prints the median latencies and their ratio.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use consistory_drive::{
    Clock, Journal, Key, NodeId, Outcome, Recorder, Reply, Request, Row, SessionRule, Step, Style,
};

const SESSIONS: u32 = 4;
const ROUND: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;

fn main() -> std::io::Result<()> {
    let rate: f64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(10_000.0);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = [0; 64];
                let _ = socket.set_nodelay(true);
                while let Ok(count @ 1..) = socket.read(&mut buffer) {
                    if socket.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    let mut medians = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (at, is_recorded) in [false, true].into_iter().enumerate() {
            medians[at].push(round(address, rate, is_recorded)?);
        }
    }
    let best = |values: &[f64]| values.iter().copied().fold(f64::MAX, f64::min);
    let [bare, recorded] = [best(&medians[0]), best(&medians[1])];
    println!("{rate} requests per second, median latency of the best of {ROUNDS} rounds:");
    println!("bare {bare:.2} µs, recorded {recorded:.2} µs, ratio {:.3}", recorded / bare);
    Ok(())
}

/// Runs all sessions once and returns the median latency in microseconds.
fn round(address: std::net::SocketAddr, rate: f64, is_recorded: bool) -> std::io::Result<f64> {
    let clock = Clock::start();
    let recorder = Recorder::new(clock, SESSIONS as usize);
    let is_over = AtomicBool::new(false);
    let pause = Duration::from_secs_f64(f64::from(SESSIONS) / rate);
    let mut all: Vec<u64> = std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let recorder = &recorder;
                scope.spawn(move || -> std::io::Result<Vec<u64>> {
                    let mut socket = TcpStream::connect(address)?;
                    socket.set_nodelay(true)?;
                    let (mut latencies, begun) = (Vec::new(), Instant::now());
                    let mut due = begun;
                    while begun.elapsed() < ROUND {
                        while Instant::now() < due {
                            std::thread::sleep(due.saturating_duration_since(Instant::now()));
                        }
                        due += pause;
                        let before = Instant::now();
                        let start = is_recorded.then(|| recorder.begin(session));
                        let mut buffer = [0; 16];
                        socket.write_all(&buffer)?;
                        socket.read_exact(&mut buffer)?;
                        if let Some(start) = start {
                            let request = Request::Single(Step::Read(Key(session)));
                            let outcome = Outcome::Ok(vec![Reply::Value(Some(1))]);
                            let node = NodeId(0);
                            let end = clock.now();
                            let row =
                                Row { session, generation: 0, node, request, outcome, start, end };
                            recorder.end(session, Some(row));
                        }
                        latencies.push(before.elapsed().as_nanos() as u64);
                    }
                    Ok(latencies)
                })
            })
            .collect();
        let collector = scope.spawn(|| {
            let mut journal = Journal::new(SessionRule::Client, Style::Operations);
            let (mut held, mut text) = (Vec::new(), String::new());
            while !is_over.load(Ordering::SeqCst) {
                for row in recorder.release(&mut held) {
                    journal.append(&row, &mut text);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            text.len()
        });
        let latencies: std::io::Result<Vec<Vec<u64>>> = sessions
            .into_iter()
            .map(|session| session.join().expect("sessions do not panic"))
            .collect();
        is_over.store(true, Ordering::SeqCst);
        collector.join().expect("the collector does not panic");
        latencies.map(|all| all.concat())
    })?;
    all.sort_unstable();
    Ok(all[all.len() / 2] as f64 / 1e3)
}
