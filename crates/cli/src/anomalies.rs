//! `consistory check --anomalies`: every class of anomaly in histories of transactions.

use std::fmt::Write as _;

use consistory::{Budget, anomalies, read_all};
use serde_json::json;

use crate::args::{CheckArgs, OutputFormat};
use crate::error::{CliError, OK, UNREADABLE, VIOLATION, report};
use crate::output::StandardOutput;

/// Lists the classes of anomalies of every history.
pub(crate) fn list(args: &CheckArgs) -> Result<u8, CliError> {
    let mut out = StandardOutput::open()?;
    let mut code = OK;
    for case in read_all(&args.input.paths, args.input.from) {
        let budget = Budget::unlimited().with_time(args.budget).with_memory(args.memory);
        let found = case.and_then(|case| {
            let found = anomalies(&case.history, args.order.into(), &budget);
            Ok((case.source.clone(), case.index, found?))
        });
        let (source, index, found) = match found {
            Ok(found) => found,
            Err(error) => {
                report(&error.into());
                code = UNREADABLE;
                continue;
            }
        };
        if !found.is_empty() && code != UNREADABLE {
            code = VIOLATION;
        }
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
                json!({"source": &*source, "index": index, "anomalies": list}).to_string() + "\n"
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
                text
            }
        };
        out.write(text.as_bytes(), args.format).map_err(CliError::output)?;
    }
    Ok(code)
}
