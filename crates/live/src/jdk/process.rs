//! Runs the Java program as a child process.
//!
//! The sources of the Java program are part of this crate. `javac` compiles them once, into a
//! folder that the caller chooses, under a name that contains their hash.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use consistory_harness::{Outcome, Program, Runner};
use consistory_work::spawn;

use super::collections::JdkCollection;
use crate::pin::pin_named;

use super::protocol::{Answer, answer, threads};

const SOURCES: [(&str, &str); 2] = [
    ("Clients.java", include_str!("Clients.java")),
    ("Methods.java", include_str!("Methods.java")),
];

/// Prefix of the names of the Java program's threads; a number follows.
const THREAD: &str = "client-";

/// The oldest Java that runs the program.
const RELEASE: &str = "11";

/// Largest number of bytes kept of the program's standard error.
const MAX_STDERR_BYTES: u64 = 1 << 14;

/// The way in which the order of calls is observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clock {
    /// A counter per thread, which the other threads read. It takes no fence and adds no order
    /// between calls.
    #[default]
    Counters,
    /// `System.nanoTime`, read before and after each call.
    Plain,
}

/// Options of the Java program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JdkOptions {
    /// The collection to test.
    pub collection: &'static JdkCollection,
    /// The folder for compiled classes; created if it does not exist.
    pub classes: PathBuf,
    /// The folder of `java` and `javac`; `None` for those of the search path.
    pub home: Option<PathBuf>,
    /// The way in which the order of calls is observed.
    pub clock: Clock,
    /// Time limit for the rounds of one program.
    pub time: Duration,
    /// Additional time before a program that does not end is given up.
    pub patience: Duration,
    /// Seed of the threads' waits before they start.
    pub seed: u64,
}

impl JdkOptions {
    /// Returns the default options.
    pub fn new(collection: &'static JdkCollection, classes: PathBuf) -> Self {
        JdkOptions {
            collection,
            classes,
            home: None,
            clock: Clock::default(),
            time: Duration::from_secs(1),
            patience: Duration::from_secs(30),
            seed: 0,
        }
    }
}

/// The reason why a collection of the JDK cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum JdkError {
    /// There is no such command.
    #[error("there is no `{command}`")]
    Missing {
        /// The command.
        command: String,
    },
    /// The compiler does not accept the program.
    #[error("`javac` failed:\n{output}")]
    Compilation {
        /// The output of the compiler.
        output: String,
    },
    /// The program ended by itself.
    #[error("the Java program ended ({status}){}", said(.output))]
    Died {
        /// The exit status.
        status: String,
        /// The output on standard error.
        output: String,
    },
    /// A program does not end.
    #[error("a call has not returned after {} s, in this program:\n{program}", .after.as_secs())]
    Stuck {
        /// The program.
        program: Program,
        /// Time for which the program has run.
        after: Duration,
    },
    /// The Java program does not accept a client program.
    #[error("the Java program rejected a client program: {message}")]
    Refused {
        /// The answer of the Java program.
        message: String,
    },
    /// The Java program sent an answer that the protocol does not allow.
    #[error("the Java program answers `{line}`")]
    Garbled {
        /// The answer.
        line: String,
    },
    /// A file or a pipe failed.
    #[error("{what}: {error}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
}

fn said(output: &str) -> String {
    match output.trim() {
        "" => String::new(),
        output => format!(":\n{output}"),
    }
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> JdkError {
    let what = what.into();
    |error| JdkError::Io { what, error }
}

/// A running Java program; dropping the value ends it.
#[derive(Debug)]
pub struct Jdk {
    options: JdkOptions,
    child: Child,
    input: ChildStdin,
    lines: Receiver<io::Result<String>>,
    complaints: Arc<Mutex<String>>,
    programs: u64,
    /// Number of its threads that are pinned to cores.
    pinned: usize,
}

impl Jdk {
    /// Compiles the Java program if necessary, and starts it.
    pub fn start(options: JdkOptions) -> Result<Jdk, JdkError> {
        let classes = compile(&options)?;
        let mut child = command(&options, "java")
            // Rounds leave only short-lived garbage, and threads of a parallel collector would
            // interfere.
            .args(["-XX:+UseSerialGC", "-Xms256m", "-Xmx512m", "-cp"])
            .arg(&classes)
            .arg("Clients")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(spawning("java"))?;
        let input = child.stdin.take().expect("its input is a pipe");
        let output = child.stdout.take().expect("its output is a pipe");
        let errors = child.stderr.take().expect("its errors are a pipe");
        let (sender, lines) = sync_channel(1024);
        let listening = spawn(move || {
            for line in BufReader::new(output).lines() {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let complaints = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&complaints);
        let collecting = spawn(move || {
            let mut errors = BufReader::new(errors);
            let mut text = Vec::new();
            // Text that cannot be read is left out.
            let _ = errors.by_ref().take(MAX_STDERR_BYTES).read_to_end(&mut text);
            if let Ok(mut kept) = kept.lock() {
                kept.push_str(&String::from_utf8_lossy(&text));
            }
            let _ = io::copy(&mut errors, &mut io::sink());
        });
        // If starting fails, dropping `jdk` ends the child process.
        let jdk = Jdk { options, child, input, lines, complaints, programs: 0, pinned: 0 };
        listening.and(collecting).map_err(spawning("a thread"))?;
        Ok(jdk)
    }

    /// Returns the error for a program that sends no more answers.
    fn died(&mut self) -> JdkError {
        let status = self
            .child
            .wait()
            .map_or("with an unknown status".to_owned(), |status| status.to_string());
        // The end of its standard error may arrive a moment later.
        for _ in 0..50 {
            if self.complaints.lock().is_ok_and(|complaints| !complaints.is_empty()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let output = self.complaints.lock().map_or(String::new(), |complaints| complaints.clone());
        JdkError::Died { status, output }
    }
}

impl Runner for Jdk {
    type Error = JdkError;

    fn run(&mut self, program: &Program, rounds: u64) -> Result<Vec<(Outcome, u64)>, JdkError> {
        let options = &self.options;
        let clock = match options.clock {
            Clock::Counters => "counters",
            Clock::Plain => "plain",
        };
        let (millis, name) = (options.time.as_millis(), options.collection.name);
        let seed = options.seed.wrapping_add(self.programs) & i64::MAX as u64;
        let calls = threads(program);
        let line = format!("{name} {clock} {rounds} {millis} {seed} {calls}\n");
        self.programs += 1;
        if self.input.write_all(line.as_bytes()).and_then(|()| self.input.flush()).is_err() {
            return Err(self.died());
        }
        let mut outcomes = Vec::new();
        let after = options.time + options.patience;
        loop {
            let line = match self.lines.recv_timeout(after) {
                Ok(line) => line.map_err(failed("cannot read what the Java program says"))?,
                Err(RecvTimeoutError::Disconnected) => return Err(self.died()),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(JdkError::Stuck { program: program.clone(), after });
                }
            };
            match answer(&line, program) {
                Some(Answer::Outcome(outcome, count)) => outcomes.push((outcome, count)),
                Some(Answer::Done) => {
                    // The threads exist from their first use on. Two threads on one core would take
                    // turns and never overlap; if there are more threads than cores, scheduling is
                    // left to the system.
                    let threads = program.threads.len();
                    if threads > self.pinned && threads <= consistory_harness::cores().len() {
                        pin_named(self.child.id(), THREAD);
                        self.pinned = threads;
                    }
                    return Ok(outcomes);
                }
                Some(Answer::Refused(message)) => return Err(JdkError::Refused { message }),
                None => return Err(JdkError::Garbled { line }),
            }
        }
    }
}

impl Drop for Jdk {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(options: &JdkOptions, name: &str) -> Command {
    match &options.home {
        Some(home) => Command::new(home.join(name)),
        None => Command::new(name),
    }
}

fn spawning(name: &str) -> impl FnOnce(io::Error) -> JdkError {
    let command = name.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::NotFound => JdkError::Missing { command },
        _ => JdkError::Io { what: format!("cannot run `{command}`"), error },
    }
}

/// Returns the folder of the compiled program.
///
/// The program is compiled in a temporary folder, which is then renamed. So the final folder is
/// always complete, and several processes may compile at the same time.
fn compile(options: &JdkOptions) -> Result<PathBuf, JdkError> {
    let mut hasher = DefaultHasher::new();
    (SOURCES, RELEASE).hash(&mut hasher);
    let place = options.classes.join(format!("clients-{:016x}", hasher.finish()));
    if place.is_dir() {
        return Ok(place);
    }
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let partial = options.classes.join(format!("partial-{}-{number}", std::process::id()));
    let result = compile_into(options, &partial).and_then(|()| {
        match fs::rename(&partial, &place) {
            // Another process was faster.
            Err(_) if place.is_dir() => Ok(()),
            moved => moved.map_err(failed(format!("cannot create {}", place.display()))),
        }
    });
    // The folder does not exist any more if it was renamed.
    let _ = fs::remove_dir_all(&partial);
    result.map(|()| place)
}

fn compile_into(options: &JdkOptions, folder: &Path) -> Result<(), JdkError> {
    fs::create_dir_all(folder).map_err(failed(format!("cannot create {}", folder.display())))?;
    let mut sources = Vec::new();
    for (name, text) in SOURCES {
        let source = folder.join(name);
        fs::write(&source, text).map_err(failed(format!("cannot write {}", source.display())))?;
        sources.push(source);
    }
    let output = command(options, "javac")
        .args(["--release", RELEASE, "-d"])
        .arg(folder)
        .args(&sources)
        .stdin(Stdio::null())
        .output()
        .map_err(spawning("javac"))?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(JdkError::Compilation { output });
    }
    Ok(())
}
