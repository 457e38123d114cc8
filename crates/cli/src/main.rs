//! The `consistory` command line: arguments, exit codes, progress.

mod again;
mod anomalies;
mod args;
mod atlas;
mod certify;
mod check;
mod contrast;
mod convert;
mod digest;
mod error;
mod generate;
mod infer;
#[cfg(debug_assertions)]
mod inject;
mod interrupt;
mod kernel;
mod level_contrast;
mod limits;
mod litmus;
mod man;
mod merge;
mod models;
mod output;
mod pages;
mod part;
mod progress;
mod reading;
mod record;
mod report;
mod resume;
mod run;
mod serve;
mod simulate;
mod test;
mod units;
mod verify;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::{Cli, Command};
use crate::error::{CLOSED, CliError, OK, UNREADABLE, report};

fn main() -> ExitCode {
    limits::tame_allocator();
    let command = Cli::command();
    let matches = command.clone().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // Memory that the program itself uses is not charged to any history.
    limits::gauge();
    #[cfg(debug_assertions)]
    inject::arm();
    anstream::ColorChoice::from(cli.color).write_global();
    // These commands complete a partial result when they are interrupted.
    if !matches!(cli.command, Command::Verify(_) | Command::Test(_) | Command::Serve(_)) {
        interrupt::end_between_writes();
    }
    let result = args::refuse_ineffective(&command, &matches).and_then(|()| run(&cli));
    #[cfg(debug_assertions)]
    inject::tell();
    match result {
        Ok(code) => ExitCode::from(code),
        Err(CliError::Closed) => ExitCode::from(CLOSED),
        Err(error) => {
            report(&error);
            ExitCode::from(UNREADABLE)
        }
    }
}

/// Runs the command, and returns the exit code.
fn run(cli: &Cli) -> Result<u8, CliError> {
    match &cli.command {
        Command::Check(args) => check::check(args),
        Command::Certify(args) => certify::certify(args),
        Command::Convert(args) => convert::convert(args),
        Command::Generate(args) => generate::generate_histories(args),
        Command::Record(args) => record::record(args),
        Command::Litmus(args) => litmus::litmus(args),
        Command::Watch(args) => watch::watch(args),
        Command::Test(args) => test::test(args),
        Command::Verify(args) => verify::verify(args),
        Command::Simulate(args) => simulate::simulate(args),
        Command::Serve(args) => serve::serve(args),
        Command::Models(args) => models::models(args),
        Command::Contrast(args) => contrast::contrast(args),
        Command::Atlas(args) => atlas::atlas(args),
        Command::Kernel(args) => kernel::kernels(args),
        Command::Merge(args) => merge::merge(args),
        Command::Man { output } => man::man(output.as_deref()),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "consistory", &mut text);
            output::print(&text).map(|()| OK)
        }
    }
}
