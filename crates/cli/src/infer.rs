//! `consistory check --infer-levels`: the visibility level that each method kept.

use consistory::{Court, read_all_within};
use consistory_objects::{Inference, Levels};

use crate::args::{CheckArgs, OutputFormat};
use crate::check::{code_of, worse};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report};
use crate::limits;
use crate::output::{StandardOutput, table};
use crate::report::quoted;

/// Infers the visibility level that each method kept in all histories, and prints it.
pub(crate) fn infer(args: &CheckArgs) -> Result<u8, CliError> {
    let name = args.objects.object.as_deref().expect("clap demands an object");
    let court = Court::object(name)?.budget(args.budget).memory(args.memory);
    let court = court.jobs(args.jobs.count()).gauge(limits::gauge());
    let mut levels = Levels::default();
    // For each method, the last history that lowered it.
    let mut because: Vec<(Box<str>, String)> = Vec::new();
    let (mut code, mut histories) = (OK, 0u64);
    for case in read_all_within(&args.input.paths, args.input.from, court.reading_budget()) {
        let inferred = case.map(|case| {
            let place = format!("{} [{}]", case.source, case.index);
            (court.infer_levels(&case.history, &mut levels), place)
        });
        let (inferred, place) = match inferred {
            Ok((Ok(inferred), place)) => (inferred, place),
            Ok((Err(error), place)) => {
                let message = format!("{place}: {error}");
                report(&error.hint().map_or_else(
                    || CliError::usage(&message),
                    |hint| CliError::with_hint(&message, hint),
                ));
                code = worse(code, UNREADABLE);
                continue;
            }
            Err(error) => {
                code = worse(code, code_of(&error));
                report(&error.into());
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
