//! `consistory litmus`: outcomes of tests, and tests that separate two models.

mod contrast;
mod convert;
mod generate;
mod isa;
mod machines;
mod mapped;
mod outcomes;
mod protocol;
mod run;
mod select;

use std::path::{Path, PathBuf};

use consistory_formats::files_below;

use crate::args::{LitmusArgs, LitmusCommand};
use crate::error::CliError;
use consistory_formats::{read_text, text_of};

/// Runs one of the commands on litmus tests.
pub(crate) fn litmus(args: &LitmusArgs) -> Result<u8, CliError> {
    match &args.command {
        LitmusCommand::Outcomes(args) => outcomes::outcomes(args),
        LitmusCommand::Contrast(args) => contrast::contrast_models(args),
        LitmusCommand::Generate(args) => generate::generate(args),
        LitmusCommand::Convert(args) => convert::convert(args),
        LitmusCommand::Run(args) => run::run_tests(args),
        LitmusCommand::Machines(args) => machines::machines(args),
    }
}

/// Finds the tests that paths denote: a file itself, the `.litmus` files of a folder, and the tests
/// that an index file lists.
fn find_tests(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut found = Vec::new();
    for path in paths {
        if is_index(path) {
            found.extend(find_tests(&listed(path, &mut Vec::new())?)?);
            continue;
        }
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let inside = files_below(path, |path| path.extension().is_some_and(|e| e == "litmus"))?;
        if inside.is_empty() {
            let message = format!("there is no .litmus file in {}", path.display());
            return Err(CliError::usage(message));
        }
        found.extend(inside);
    }
    Ok(found)
}

/// Checks whether a path is that of an index file, as herd has them: its name begins with `@`.
fn is_index(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with('@')) && path.is_file()
}

/// Returns the paths that an index file lists, one per line, relative to its folder. Index files in
/// it are followed; `open` has those on the way here.
fn listed(path: &Path, open: &mut Vec<PathBuf>) -> Result<Vec<PathBuf>, CliError> {
    if open.iter().any(|known| known == path) {
        return Err(CliError::usage(format!("the index file {} lists itself", path.display())));
    }
    let text = read_text(path).map_err(|error| CliError::file("read", path, error))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    open.push(path.to_owned());
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let inside = folder.join(line);
        if is_index(&inside) {
            found.extend(listed(&inside, open)?);
        } else {
            found.push(inside);
        }
    }
    open.pop();
    Ok(found)
}

/// Reads the text of a test, from standard input if the path is `-`.
fn load_text(path: &Path) -> Result<String, CliError> {
    let text = if path == Path::new("-") { text_of(std::io::stdin()) } else { read_text(path) };
    text.map_err(|error| CliError::file("read", path, error))
}
