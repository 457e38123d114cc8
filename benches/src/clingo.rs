//! Runs clingo on a program in a separate process, with limits of time and memory.
//!
//! clingo is the solver used in the thesis. `benches/setup` installs its Python package, which
//! contains the same solver.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// An installed clingo.
#[derive(Clone, Debug)]
pub struct Clingo {
    python: PathBuf,
    /// Limits of a run.
    pub limits: Limits,
}

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time limit.
    pub time: Duration,
    /// Largest size of the address space, in bytes.
    pub memory: u64,
}

/// Result of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Outcome {
    /// It decided.
    Decided {
        /// Whether there is an answer set: the history is consistent.
        satisfiable: bool,
        /// Time measured by clingo itself: reading, grounding and solving, without starting Python.
        time: Duration,
    },
    /// The time limit was reached.
    OutOfTime,
    /// The memory limit was reached.
    OutOfMemory,
}

/// Reason why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClingoError {
    /// clingo could not be started.
    #[error("clingo could not be run: {0}")]
    Io(#[from] io::Error),
    /// The output of clingo was not understood.
    #[error("clingo printed no result: {output}")]
    NoResult {
        /// Output of clingo.
        output: String,
    },
}

impl Clingo {
    /// Finds the clingo that `benches/setup` installs.
    pub fn find(limits: Limits) -> Option<Self> {
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("out/clingo/bin/python");
        python.exists().then_some(Clingo { python, limits })
    }

    /// Returns the version.
    pub fn version(&self) -> Result<String, ClingoError> {
        let output = Command::new(&self.python).args(["-m", "clingo", "--version"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    /// Decides whether a program has an answer set.
    pub fn run(&self, program: &str) -> Result<Outcome, ClingoError> {
        let limit = format!("ulimit -v {} && exec \"$@\"", self.limits.memory >> 10);
        let mut child = Command::new("sh")
            .args(["-c", &limit, "sh"])
            .arg(&self.python)
            .args(["-m", "clingo", "--outf=2", "--quiet=2", "--warn=none", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let started = Instant::now();
        let (mut input, mut output, mut complaints) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        thread::scope(|scope| {
            // A clingo that ends early closes the pipe; its output then contains the reason.
            scope.spawn(move || input.take().map(|mut pipe| pipe.write_all(program.as_bytes())));
            let printed = scope.spawn(move || read_all(output.as_mut()));
            let complained = scope.spawn(move || read_all(complaints.as_mut()));
            let in_time = wait(&mut child, started + self.limits.time)?;
            let printed = printed.join().expect("reading does not panic")?;
            let complained = complained.join().expect("reading does not panic")?;
            if !in_time {
                return Ok(Outcome::OutOfTime);
            }
            outcome(&printed, &complained)
        })
    }
}

/// Waits for a process; at the deadline ends it and returns `false`.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<bool> {
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(true)
}

fn read_all(pipe: Option<&mut impl Read>) -> io::Result<String> {
    let mut text = String::new();
    if let Some(pipe) = pipe {
        pipe.read_to_string(&mut text)?;
    }
    Ok(text)
}

fn outcome(printed: &str, complained: &str) -> Result<Outcome, ClingoError> {
    if complained.contains("bad_alloc") || complained.contains("MemoryError") {
        return Ok(Outcome::OutOfMemory);
    }
    let result: Value = serde_json::from_str(printed).unwrap_or_default();
    let satisfiable = match result["Result"].as_str() {
        Some("SATISFIABLE") => Some(true),
        Some("UNSATISFIABLE") => Some(false),
        _ => None,
    };
    match (satisfiable, result["Time"]["Total"].as_f64()) {
        (Some(satisfiable), Some(seconds)) => {
            Ok(Outcome::Decided { satisfiable, time: Duration::from_secs_f64(seconds) })
        }
        _ => Err(ClingoError::NoResult { output: format!("{printed}{complained}") }),
    }
}
