//! `consistory check --anomalies`: every class of anomaly in histories of transactions.

use std::fmt::Write as _;

use consistory::{anomalies, read_all_within};
use serde_json::json;

use crate::args::{CheckArgs, OutputFormat};
use crate::check::{code_of, worse};
use crate::error::{CliError, OK, UNDECIDED, VIOLATION, report};
use crate::limits;
use crate::output::StandardOutput;

/// Lists the classes of anomalies of every history.
pub(crate) fn list(args: &CheckArgs) -> Result<u8, CliError> {
    let mut out = StandardOutput::open()?;
    let mut code = OK;
    let budget = || limits::budget(args.budget).with_memory(args.memory);
    for case in read_all_within(
        &args.input.paths,
        args.input.from,
        limits::reading_budget(args.budget, args.memory),
    ) {
        let budget = budget();
        let found = case.and_then(|case| {
            let found = anomalies(&case.history, args.order.into(), &budget);
            Ok((case.source.clone(), case.index, found?))
        });
        let (source, index, listed) = match found {
            Ok(found) => found,
            Err(error) => {
                code = worse(code, code_of(&error));
                report(&error.into());
                continue;
            }
        };
        let (found, undecided) = (listed.found, listed.undecided);
        if !found.is_empty() {
            code = worse(code, VIOLATION);
        } else if !undecided.is_empty() {
            code = worse(code, UNDECIDED);
        }
        let undecided: Vec<&str> = undecided.iter().map(|level| level.id()).collect();
        let text = match args.format {
            OutputFormat::Json => {
                let list: Vec<_> = found
                    .iter()
                    .map(|anomaly| {
                        json!({
                            "anomaly": anomaly.class.name(),
                            "level": anomaly.level.id(),
                            "explanation": anomaly.explanation,
                        })
                    })
                    .collect();
                let mut line = json!({"source": &*source, "index": index, "anomalies": list});
                if !undecided.is_empty() {
                    line["undecided"] = json!(undecided);
                }
                line.to_string() + "\n"
            }
            OutputFormat::Text => {
                let mut text = format!("{source} [{index}]: ");
                let _ = match found.len() {
                    0 => writeln!(text, "no anomaly"),
                    1 => writeln!(text, "1 class of anomalies"),
                    many => writeln!(text, "{many} classes of anomalies"),
                };
                for anomaly in &found {
                    let _ = writeln!(text, "\n{}", anomaly.class.name());
                    text += &anomaly.explanation;
                }
                if !undecided.is_empty() {
                    let levels = undecided.join(", ");
                    let _ = writeln!(text, "\nundecided within the budget: {levels}");
                }
                text
            }
        };
        out.write(text.as_bytes(), args.format).map_err(CliError::output)?;
    }
    Ok(code)
}
