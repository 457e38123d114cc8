//! Measures histories of up to a million operations in 50 sessions, and 200,000 small histories.
//!
//! Each measurement runs in its own process, this program started again (`row`), so that its peak
//! memory is its own. `batch` measures many small histories.

mod batch;
mod row;
mod tables;

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;

use clap::Parser;
use consistory_benches::measure::show_count;
use consistory_benches::publish::{Docs, Machine, goals, markdown, provenance};
use consistory_draw::table;
use consistory_formats::{Format, write_history};
use consistory_generate::{Memory, Workload, generate};
use row::{Measured, Task};
use tables::Section;

/// Measures the deciders on large histories and on many histories.
#[derive(Debug, Parser)]
struct Args {
    /// Numbers of operations, each twice the previous one.
    #[arg(long, value_delimiter = ',', default_value = "62500,125000,250000,500000,1000000")]
    operations: Vec<u32>,
    /// Number of sessions.
    #[arg(long, default_value_t = 50)]
    sessions: u32,
    /// Number of variables.
    #[arg(long, default_value_t = 1000)]
    variables: u32,
    /// The memories on which the clients run.
    #[arg(long, value_delimiter = ',', default_value = "sc,ccv")]
    on: Vec<Memory>,
    /// Number of threads [default: one per core].
    #[arg(long)]
    jobs: Option<usize>,
    /// Number of processes that repeat each measurement; the median counts.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Number of histories of 10 operations in the batch.
    #[arg(long, default_value_t = 200_000)]
    batch: u64,
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
    /// Internal: perform one measurement and print it.
    #[arg(long, hide = true, requires = "measure")]
    task: Option<Task>,
    /// File that is measured.
    #[arg(long, hide = true, requires = "task")]
    measure: Option<PathBuf>,
}

/// Measurements of one history and number of threads.
struct Row {
    memory: Memory,
    operations: u32,
    jobs: usize,
    hist: Measured,
    jsonl: Measured,
    cc: Measured,
    ccv: Measured,
    cm: Measured,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let jobs = args.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get()));
    if let (Some(task), Some(path)) = (args.task, &args.measure) {
        println!("{}", row::measure(path, task, jobs)?.to_json());
        return Ok(());
    }
    let machine = Machine::here();
    let mut rows = Vec::new();
    for &memory in &args.on {
        for (at, &operations) in args.operations.iter().enumerate() {
            let files = write_files(&args, memory, operations)?;
            rows.push(measure(&args, &files, jobs)?);
            // The largest history again, on one thread.
            if at + 1 == args.operations.len() && jobs > 1 {
                rows.push(measure(&args, &files, 1)?);
            }
        }
    }
    let batch = batch::run(&out()?, args.batch, jobs)?;

    let intro = intro(&args, &machine);
    let mut report = format!("# Scale\n\n{intro}");
    for Section { title, header, rows, note } in tables::sections(&rows, jobs, &batch) {
        println!("{title}\n{}", table(header, &rows));
        report += &format!("\n## {title}\n\n{}\n{note}\n", markdown(header, &rows));
    }
    let docs = Docs::new(args.docs.clone());
    docs.figure("scale.md", &report)?;
    docs.figure("scale.svg", &tables::plot(args.sessions, &rows, jobs))?;
    let found = goals(&tables::aims(&rows, jobs, &batch));
    println!("{found}");
    docs.refresh("scale", &format!("{intro}\n{found}"))?;
    Ok(())
}

/// A history on disk.
struct Files {
    memory: Memory,
    operations: u32,
    hist: PathBuf,
    jsonl: PathBuf,
}

fn out() -> Result<PathBuf, Box<dyn Error>> {
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("out");
    fs::create_dir_all(&out)?;
    Ok(out)
}

fn write_files(args: &Args, memory: Memory, operations: u32) -> Result<Files, Box<dyn Error>> {
    let &Args { sessions, variables, .. } = args;
    let workload = Workload { sessions, operations, variables, ..Workload::default() };
    workload.validate()?;
    let history = generate(&workload, memory);
    let write = |format: Format, extension: &str| -> Result<PathBuf, Box<dyn Error>> {
        let path = out()?.join(format!("{memory}-{operations}.{extension}"));
        let mut file = BufWriter::new(File::create(&path)?);
        write_history(&history, format, &mut file)?;
        file.flush()?;
        Ok(path)
    };
    let (hist, jsonl) = (write(Format::Hist, "hist")?, write(Format::Jsonl, "jsonl")?);
    Ok(Files { memory, operations, hist, jsonl })
}

fn measure(args: &Args, files: &Files, jobs: usize) -> Result<Row, Box<dyn Error>> {
    let Files { memory, operations, hist, jsonl } = files;
    eprintln!("{operations} operations, {memory}, {jobs} threads");
    let run = |path: &Path, task| -> Result<Measured, Box<dyn Error>> {
        let measured = row::in_processes(path, task, jobs, args.repeat)?;
        if measured.operations != u64::from(*operations) {
            return Err(format!("{} has lost operations", path.display()).into());
        }
        Ok(measured)
    };
    Ok(Row {
        memory: *memory,
        operations: *operations,
        jobs,
        hist: run(hist, Task::Parse)?,
        jsonl: run(jsonl, Task::Parse)?,
        cc: run(hist, Task::Cc)?,
        ccv: run(hist, Task::Ccv)?,
        cm: run(hist, Task::Cm)?,
    })
}

fn intro(args: &Args, machine: &Machine) -> String {
    let memories: Vec<String> = args.on.iter().map(|memory| format!("`{memory}`")).collect();
    format!(
        "{}\nValid histories of {} sessions and {} variables, half of the operations reads, on the \
         memories {}. Each measurement is a process of its own, each time the median of {} and each \
         peak the greatest. A model is decided from the parsed history alone.\n",
        provenance("scale", machine),
        args.sessions,
        show_count(args.variables.into()),
        memories.join(" and "),
        args.repeat
    )
}
