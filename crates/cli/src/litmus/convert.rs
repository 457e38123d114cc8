//! `consistory litmus convert`: rewrites and translates tests.

use std::path::Path;

use consistory_litmus::{
    Arch, Language, Mapping, Test, find_mapping, isa_language, program_of_isa, read_isa_test,
    read_test, translate_test, write_isa_test, write_test,
};

use super::mapped::load_table;
use super::{find_tests, load_text};
use crate::args::LitmusConvertArgs;
use crate::error::{CliError, OK, UNREADABLE, report};
use crate::output;

/// Writes each test to standard output, or into a folder.
pub(crate) fn convert(args: &LitmusConvertArgs) -> Result<u8, CliError> {
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder).map_err(|error| CliError::file("create", folder, error))?;
    }
    let mut worst = OK;
    for path in find_tests(&args.paths)? {
        let text = match converted(&path, args.to.as_deref()) {
            Ok(text) => text,
            Err(error) => {
                report(&error);
                worst = UNREADABLE;
                continue;
            }
        };
        match &args.output {
            None => output::print(text)?,
            Some(folder) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                let to = folder.join(name);
                std::fs::write(&to, text).map_err(|error| CliError::file("write", &to, error))?;
            }
        }
    }
    Ok(worst)
}

fn converted(path: &Path, to: Option<&str>) -> Result<String, CliError> {
    let text = load_text(path)?;
    let name = path.display().to_string();
    let language = isa_language(&text);
    let why = |why: String| CliError::usage(format!("{name}: {why}"));
    let Some(to) = to else { return write_isa_test(&name, &text).map_err(CliError::from) };
    if language == Some(Language::C) {
        let table = table(to)?;
        return translate_test(&read_isa_test(&name, &text)?, &table).map_err(why);
    }
    let arch = match to {
        "lisa" => Arch::Lisa,
        "x86" => Arch::X86,
        _ => {
            let message = "only tests of C11 are translated by a table".to_owned();
            return Err(CliError::with_hint(
                format!("{name}: {message}"),
                "for others there are `--to lisa` and `--to x86`".to_owned(),
            ));
        }
    };
    let read = match language {
        None | Some(Language::X86 | Language::Lisa) => read_test(&name, &text).ok(),
        _ => None,
    };
    let test = match read {
        Some(test) => test,
        None => program_of_isa(&read_isa_test(&name, &text)?).map_err(why)?,
    };
    write_test(&Test { arch, ..test }).map_err(|error| why(error.to_string()))
}

/// Finds the table that implements C11 on an architecture, or reads one.
fn table(name: &str) -> Result<Mapping, CliError> {
    find_mapping(&format!("c11-{name}")).map_or_else(|| load_table(name), Ok)
}
