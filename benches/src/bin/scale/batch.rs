//! Many small histories: one file is read, decided by CC, CCv and CM, and certified.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use consistory_benches::measure::once;
use consistory_certify::certify;
use consistory_formats::{Format, Histories, Input, Writer, read};
use consistory_generate::{Memory, Workload, generate};
use consistory_history::History;
use consistory_registers::{CausalModel, Options, decide};

/// Number of histories that a thread takes at once.
const TAKEN: usize = 256;

/// Number of operations of each history.
const OPERATIONS: u32 = 10;

const MODELS: [(CausalModel, &str); 3] =
    [(CausalModel::Cc, "cc"), (CausalModel::Ccv, "ccv"), (CausalModel::Cm, "cm")];

/// Throughput of judging a batch.
pub(crate) struct Throughput {
    /// Judging program: `library` or `binary`.
    pub(crate) through: &'static str,
    pub(crate) histories: u64,
    pub(crate) time: Duration,
}

impl Throughput {
    /// Returns the number of histories per minute.
    pub(crate) fn a_minute(&self) -> u64 {
        (self.histories as f64 * 60.0 / self.time.as_secs_f64()) as u64
    }
}

/// Writes the batch into a folder and measures it.
pub(crate) fn run(
    folder: &Path,
    histories: u64,
    jobs: usize,
) -> Result<Vec<Throughput>, Box<dyn Error>> {
    eprintln!("{histories} histories of {OPERATIONS} operations");
    let path = write(folder, histories)?;
    let (judged, time) = once(|| by_library(&path, jobs));
    judged?;
    let mut all = vec![Throughput { through: "library", histories, time }];
    let binary = std::env::current_exe()?.with_file_name("consistory");
    if binary.exists() {
        let (judged, time) = once(|| by_binary(&binary, &path, jobs));
        if judged? != histories {
            return Err("the binary did not report on every history".into());
        }
        all.push(Throughput { through: "binary", histories, time });
    }
    Ok(all)
}

fn write(folder: &Path, histories: u64) -> Result<PathBuf, Box<dyn Error>> {
    let path = folder.join("batch.hist");
    let mut writer = Writer::new(Format::Hist, BufWriter::new(File::create(&path)?));
    for (seed, memory) in (0..histories).zip(Memory::ALL.into_iter().cycle()) {
        let workload = Workload {
            sessions: 3,
            operations: OPERATIONS,
            variables: 3,
            seed,
            ..Workload::default()
        };
        writer.write(&generate(&workload, memory))?;
    }
    writer.into_inner().flush()?;
    Ok(path)
}

/// Judges every history; each thread takes some, judges them and takes more.
fn by_library(path: &Path, jobs: usize) -> Result<(), String> {
    let histories = Mutex::new(read(&Input::File(path.into()), None));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| work(&histories))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a judge does not panic"))
    })
}

fn work(histories: &Mutex<Histories>) -> Result<(), String> {
    loop {
        let taken: Result<Vec<History>, _> =
            histories.lock().expect("reading does not panic").by_ref().take(TAKEN).collect();
        let taken = taken.map_err(|error| error.to_string())?;
        if taken.is_empty() {
            return Ok(());
        }
        taken.iter().try_for_each(judge)?;
    }
}

fn judge(history: &History) -> Result<(), String> {
    let judgements = decide(history, &MODELS.map(|(model, _)| model), &Options::default());
    for (timed, (_, id)) in judgements.iter().zip(MODELS) {
        let certificate = timed.judgement.certificate().ok_or("a decider did not decide")?;
        certify(history, id, timed.judgement.verdict(), certificate)
            .map_err(|rejection| rejection.to_string())?;
    }
    Ok(())
}

/// Counts the reports of the binary.
fn by_binary(binary: &Path, path: &Path, jobs: usize) -> Result<u64, Box<dyn Error>> {
    let mut child = Command::new(binary)
        .args(["check", "--model", "cc,ccv,cm", "--format", "json", "--jobs", &jobs.to_string()])
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()?;
    let reports = child.stdout.take().map(BufReader::new).ok_or("no output of the binary")?;
    let count = reports.split(b'\n').try_fold(0, |count, line| line.map(|_| count + 1))?;
    child.wait()?;
    Ok(count)
}
