//! `consistory check --infer-levels`: the visibility level that each method kept.

use consistory_draw::table;
use consistory_formats::read;
use consistory_objects::{Inference, Levels, infer_levels};

use super::{Named, options, prepare, task};
use crate::args::{CheckArgs, OutputFormat};
use crate::check::worse;
use crate::convert::find_inputs;
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report};
use crate::output::StandardOutput;
use crate::report::quoted;

/// Infers the visibility level that each method kept in all histories, and prints it.
pub(crate) fn infer(args: &CheckArgs) -> Result<u8, CliError> {
    let name = args.objects.object.as_deref().expect("clap demands an object");
    let named = Named::load(name)?;
    let options = options(args);
    let mut levels = Levels::default();
    // For each method the history that lowered it last.
    let mut because: Vec<(Box<str>, String)> = Vec::new();
    let (mut code, mut histories) = (OK, 0u64);
    for input in find_inputs(&args.input.paths) {
        let input = match input {
            Ok(input) => input,
            Err(error) => {
                report(&error.into());
                code = worse(code, UNREADABLE);
                continue;
            }
        };
        for (index, history) in read(&input, args.input.from).enumerate() {
            let place = format!("{input} [{index}]");
            let inferred = history.map_err(CliError::from).and_then(|history| {
                let (calls, named) =
                    prepare(&history, named.clone()).map_err(|error| error.at(&place))?;
                let task = task(calls.as_ref().unwrap_or(&history), &named.object)
                    .map_err(|reason| CliError::usage(format!("{place}: {reason}")))?;
                Ok(infer_levels(&task, &mut levels, &options))
            });
            let inferred = match inferred {
                Ok(inferred) => inferred,
                Err(error) => {
                    report(&error);
                    code = worse(code, UNREADABLE);
                    continue;
                }
            };
            histories += 1;
            match inferred {
                Ok(Inference::Kept) => {}
                Ok(Inference::Lowered(methods)) => {
                    for (method, _) in methods {
                        because.retain(|(known, _)| *known != method);
                        because.push((method, place.clone()));
                    }
                }
                Ok(Inference::Unexplained) => {
                    report(&CliError::usage(format!("{place}: no levels explain this history")));
                    code = worse(code, VIOLATION);
                }
                Err(stopped) => {
                    report(&CliError::usage(format!("{place}: undecided, {stopped}")));
                    code = worse(code, UNDECIDED);
                }
            }
        }
    }
    let because_of = |method: &str| {
        because.iter().find(|(known, _)| **known == *method).map(|(_, place)| place.as_str())
    };
    let mut text = Vec::new();
    match args.format {
        OutputFormat::Text => {
            let rows: Vec<Vec<String>> = levels
                .iter()
                .map(|(method, level)| {
                    let place = because_of(method).unwrap_or_default().to_owned();
                    vec![method.to_owned(), level.to_string(), place]
                })
                .collect();
            let plural = if histories == 1 { "y" } else { "ies" };
            text = format!("{histories} histor{plural} of {name}\n").into_bytes();
            text.extend(table(&["method", "level", "lowered by"], &rows).into_bytes());
        }
        OutputFormat::Json => {
            let entries: Vec<String> = levels
                .iter()
                .map(|(method, level)| {
                    let because = because_of(method)
                        .map_or(String::new(), |place| format!(",\"because\":{}", quoted(place)));
                    format!("{}:{{\"level\":\"{level}\"{because}}}", quoted(method))
                })
                .collect();
            let (object, entries) = (quoted(name), entries.join(","));
            let line = format!(
                "{{\"object\":{object},\"histories\":{histories},\"levels\":{{{entries}}}}}\n"
            );
            text.extend(line.into_bytes());
        }
    }
    StandardOutput::open()?.write(&text, args.format).map_err(CliError::output)?;
    Ok(code)
}
