//! Plants slips into a crate, one at a time, and reports those that its tests do not catch.
//!
//! The usual method builds the crate once per slip, and the deciders have more than a thousand
//! slips. Here all slips are built at once: each mutated place reads the number of the planted slip
//! (`plant`), a copy of the workspace is built once (`tree`), and the tests run once per slip with
//! its number in the environment (`trial`). A slip is caught if a test fails, crashes or does not
//! end.

mod plant;
mod tree;
mod trial;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;

use crate::plant::Slip;
use crate::tree::{Tree, TreeError};
use crate::trial::{Outcome, Trial};

/// Plants slips into a crate of the workspace and reports which ones its tests catch.
#[derive(Debug, Parser)]
struct Cli {
    /// The folder of a crate, such as crates/registers.
    #[arg(value_name = "CRATE")]
    package: PathBuf,
    /// Only slips in files with one of these names.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    files: Vec<String>,
    /// Only these test programs, such as agreement,corpus [default: all of the crate].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tests: Vec<String>,
    /// Only every N-th slip.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Number of slips tried at a time.
    #[arg(long, short, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Only list the slips.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<(), TreeError> {
    let tree = Tree::copy(&cli.package)?;
    let (slips, mut tests) = build(&tree)?;
    tests.retain(|path| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = file.rsplit_once('-').map_or(&*file, |(name, _)| name);
        cli.tests.is_empty() || cli.tests.iter().any(|wanted| wanted == name)
    });
    let chosen: Vec<&Slip> = slips
        .iter()
        .filter(|slip| cli.files.is_empty() || cli.files.iter().any(|name| slip.is_in(name)))
        .filter(|slip| slip.id % cli.every == 0)
        .collect();
    if cli.list {
        chosen.iter().for_each(|slip| println!("{slip}"));
        return Ok(());
    }
    let trial = Trial::rehearse(tests, tree.package())?;
    eprintln!("{} slips; without one the tests pass in {:?}", chosen.len(), trial.time());

    let outcomes = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..cli.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slip) = chosen.get(number) else { break };
                    if number > 0 && number.is_multiple_of(100) {
                        eprintln!("{number} slips tried");
                    }
                    let outcome = trial.of(slip.id);
                    if outcome == Outcome::Survived {
                        println!("survived: {slip}");
                    }
                    outcomes.lock().expect("no worker panics").push((*slip, outcome));
                }
            });
        }
    });
    print_table(&outcomes.into_inner().expect("no worker panics"));
    Ok(())
}

/// Builds the tests with all slips that compile.
fn build(tree: &Tree) -> Result<(Vec<Slip>, Vec<PathBuf>), TreeError> {
    let mut refused = HashSet::new();
    loop {
        let slips = tree.plant(&refused)?;
        match tree.build()? {
            Ok(tests) => return Ok((slips, tests)),
            Err(ill_typed) => {
                eprintln!("{} slips do not compile and are left out", ill_typed.len());
                refused.extend(ill_typed);
            }
        }
    }
}

/// Prints the number of caught slips per file.
fn print_table(outcomes: &[(&Slip, Outcome)]) {
    let mut files: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for (slip, outcome) in outcomes {
        let counts = files.entry(slip.file()).or_default();
        counts[*outcome as usize] += 1;
    }
    let sum = files.values().fold([0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
    println!("\n| file | slips | caught | of these by not ending | survived | caught |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (file, [failed, hung, survived]) in files.into_iter().chain([("all", sum)]) {
        let (caught, all) = (failed + hung, failed + hung + survived);
        let share = 100.0 * caught as f64 / all.max(1) as f64;
        println!("| {file} | {all} | {caught} | {hung} | {survived} | {share:.1} % |");
    }
}
