//! `consistory litmus`: outcomes of tests, and what tells two models apart.

mod contrast;
mod generate;
mod machines;
mod outcomes;
mod run;
mod select;

use std::path::{Path, PathBuf};

use consistory_litmus::{Test, read_test};

use crate::args::{LitmusArgs, LitmusCommand};
use crate::error::CliError;

/// Runs one of the commands on litmus tests.
pub(crate) fn litmus(args: &LitmusArgs) -> Result<u8, CliError> {
    match &args.command {
        LitmusCommand::Outcomes(args) => outcomes::outcomes(args),
        LitmusCommand::Contrast(args) => contrast::contrast_models(args),
        LitmusCommand::Generate(args) => generate::generate(args),
        LitmusCommand::Run(args) => run::run_tests(args),
        LitmusCommand::Machines(args) => machines::machines(args),
    }
}

/// Finds the tests behind paths: files as they are, and what ends in `.litmus` in folders.
fn find_tests(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let mut open = vec![path.clone()];
        let mut inside = Vec::new();
        while let Some(folder) = open.pop() {
            let entries = std::fs::read_dir(&folder)
                .map_err(|error| CliError::file("read", &folder, error))?;
            for entry in entries {
                let entry = entry.map_err(|error| CliError::file("read", &folder, error))?;
                let kind = entry.file_type().map_err(|e| CliError::file("read", &folder, e))?;
                if kind.is_dir() {
                    open.push(entry.path());
                } else if entry.path().extension().is_some_and(|e| e == "litmus") {
                    inside.push(entry.path());
                }
            }
        }
        if inside.is_empty() {
            let message = format!("there is no .litmus file in {}", path.display());
            return Err(CliError::usage(message));
        }
        inside.sort();
        found.extend(inside);
    }
    Ok(found)
}

/// Reads a test, from standard input if the path is `-`.
fn load_test(path: &Path) -> Result<Test, CliError> {
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|error| CliError::file("read", path, error))?;
    read_test(&path.display().to_string(), &text).map_err(CliError::from)
}
