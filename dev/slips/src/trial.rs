//! Runs the tests against one slip.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::tree::TreeError;

/// Signal that ends a program whose processor time is used up.
const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;

/// Result of the tests for a slip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// A test failed.
    Failed,
    /// The tests did not end.
    Hung,
    /// All tests passed.
    Survived,
}

/// Tests, the fast ones first, with their times without a slip.
#[derive(Debug)]
pub(crate) struct Trial {
    tests: Vec<(PathBuf, Duration)>,
    folder: PathBuf,
}

impl Trial {
    /// Runs the tests without a slip.
    pub(crate) fn rehearse(tests: Vec<PathBuf>, folder: PathBuf) -> Result<Self, TreeError> {
        let mut timed = Vec::new();
        for test in tests {
            let start = Instant::now();
            if run(&test, &folder, 0, Duration::from_secs(3600)) != Outcome::Survived {
                return Err(TreeError::Tests(test));
            }
            timed.push((test, start.elapsed()));
        }
        timed.sort_by_key(|&(_, time)| time);
        Ok(Trial { tests: timed, folder })
    }

    /// Returns the time of all tests without a slip.
    pub(crate) fn time(&self) -> Duration {
        self.tests.iter().map(|&(_, time)| time).sum()
    }

    /// Runs the tests against a slip until one of them catches it.
    pub(crate) fn of(&self, slip: u32) -> Outcome {
        self.tests
            .iter()
            .map(|(test, time)| run(test, &self.folder, slip, *time * 4 + Duration::from_secs(10)))
            .find(|&outcome| outcome != Outcome::Survived)
            .unwrap_or(Outcome::Survived)
    }
}

/// Runs one test program, with limits of memory and processor time, up to the first failing test.
/// For a program that does not wait, the limit is ten times its usual time.
fn run(test: &Path, folder: &Path, slip: u32, limit: Duration) -> Outcome {
    let seconds = limit.as_secs().max(1);
    let child = Command::new("sh")
        .args(["-c", "ulimit -v 6000000; ulimit -t \"$1\"; exec \"$0\" --test-threads=1"])
        .arg(test)
        .arg(seconds.to_string())
        .current_dir(folder)
        .env("SLIP", slip.to_string())
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    match child {
        Ok(child) => follow(child, limit * 10),
        Err(_) => Outcome::Failed,
    }
}

fn follow(mut child: Child, limit: Duration) -> Outcome {
    let deadline = Instant::now() + limit;
    let (sender, lines) = mpsc::channel();
    let stdout = child.stdout.take().expect("it is piped");
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let early = loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) if line.ends_with("FAILED") => break Some(Outcome::Failed),
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => break Some(Outcome::Hung),
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    if early.is_some() {
        // The process may have ended by itself in the meantime.
        let _ = child.kill();
    }
    let status = child.wait().ok();
    early.unwrap_or(match status {
        Some(status) if status.success() => Outcome::Survived,
        Some(status) if [SIGKILL, SIGXCPU].map(Some).contains(&status.signal()) => Outcome::Hung,
        _ => Outcome::Failed,
    })
}
