//! One measurement in a separate process.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use consistory_benches::measure::{median, once, peak_memory, user_time};
use consistory_certify::certify;
use consistory_formats::{Input, read};
use consistory_registers::{CausalModel, Options, decide};
use consistory_verdict::Verdict;
use serde_json::{Value, json};

/// A measurement to perform.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Task {
    /// Parsing.
    Parse,
    /// Parsing, deciding CC and checking the certificate.
    Cc,
    /// Parsing, deciding CCv and checking the certificate.
    Ccv,
    /// Parsing, deciding CM and checking the certificate.
    Cm,
}

impl Task {
    fn as_str(self) -> &'static str {
        match self {
            Task::Parse => "parse",
            Task::Cc => "cc",
            Task::Ccv => "ccv",
            Task::Cm => "cm",
        }
    }

    fn model(self) -> Option<CausalModel> {
        match self {
            Task::Parse => None,
            Task::Cc => Some(CausalModel::Cc),
            Task::Ccv => Some(CausalModel::Ccv),
            Task::Cm => Some(CausalModel::Cm),
        }
    }
}

/// Measurements; steps that the task does not include take no time.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Measured {
    /// Number of operations of the history.
    pub(crate) operations: u64,
    pub(crate) parse: Duration,
    pub(crate) decide: Duration,
    pub(crate) certify: Duration,
    /// Peak memory after deciding, and after checking the certificate, in bytes.
    pub(crate) peak_decided: u64,
    pub(crate) peak_certified: u64,
    /// User time of all threads from the start of the process until the decision.
    pub(crate) user_decided: Duration,
}

/// Performs a measurement in this process.
pub(crate) fn measure(path: &Path, task: Task, jobs: usize) -> Result<Measured, Box<dyn Error>> {
    let mut measured = Measured::default();
    let (history, time) = once(|| read(&Input::File(path.into()), None).next());
    let history = history.ok_or("there is no history in the file")??;
    measured.operations = history.len() as u64;
    measured.parse = time;
    let mut judgement = None;
    if let Some(model) = task.model() {
        let options = Options { jobs, ..Options::default() };
        let (mut timed, time) = once(|| decide(&history, &[model], &options));
        measured.decide = time;
        judgement = timed.pop().map(|timed| timed.judgement);
    }
    measured.user_decided = user_time().ok_or("the system does not tell the user time")?;
    measured.peak_decided = peak_memory().ok_or("the system does not tell the peak memory")?;
    if let Some(judgement) = judgement {
        if judgement.verdict() != Verdict::Consistent {
            return Err(format!("{}: {}", task.as_str(), judgement.verdict().as_str()).into());
        }
        let certificate = judgement.certificate().ok_or("a verdict without a certificate")?;
        let (accepted, time) =
            once(|| certify(&history, task.as_str(), judgement.verdict(), certificate));
        accepted?;
        measured.certify = time;
    }
    measured.peak_certified = peak_memory().ok_or("the system does not tell the peak memory")?;
    Ok(measured)
}

/// Performs a measurement in separate processes, one after the other; returns the median of each
/// time and the largest of each peak.
pub(crate) fn in_processes(
    path: &Path,
    task: Task,
    jobs: usize,
    repeat: usize,
) -> Result<Measured, Box<dyn Error>> {
    let mut all = Vec::new();
    for _ in 0..repeat.max(1) {
        let output = Command::new(std::env::current_exe()?)
            .args(["--task", task.as_str(), "--jobs", &jobs.to_string(), "--measure"])
            .arg(path)
            .output()?;
        let read = serde_json::from_slice(&output.stdout).ok().and_then(Measured::from_json);
        all.push(read.ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())?);
    }
    let time = |of: fn(&Measured) -> Duration| median(all.iter().map(of).collect());
    let peak = |of: fn(&Measured) -> u64| all.iter().map(of).max().unwrap_or(0);
    Ok(Measured {
        operations: all[0].operations,
        parse: time(|m| m.parse),
        decide: time(|m| m.decide),
        certify: time(|m| m.certify),
        peak_decided: peak(|m| m.peak_decided),
        peak_certified: peak(|m| m.peak_certified),
        user_decided: time(|m| m.user_decided),
    })
}

impl Measured {
    /// Writes the measurements for the parent process.
    pub(crate) fn to_json(self) -> Value {
        json!({
            "operations": self.operations,
            "parse": self.parse.as_secs_f64(),
            "decide": self.decide.as_secs_f64(),
            "certify": self.certify.as_secs_f64(),
            "peak_decided": self.peak_decided,
            "peak_certified": self.peak_certified,
            "user_decided": self.user_decided.as_secs_f64(),
        })
    }

    fn from_json(json: Value) -> Option<Self> {
        let time = |name| json[name].as_f64().map(Duration::from_secs_f64);
        let number = |name| json[name].as_u64();
        Some(Measured {
            operations: number("operations")?,
            parse: time("parse")?,
            decide: time("decide")?,
            certify: time("certify")?,
            peak_decided: number("peak_decided")?,
            peak_certified: number("peak_certified")?,
            user_decided: time("user_decided")?,
        })
    }
}
