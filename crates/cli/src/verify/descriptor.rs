//! Recorded descriptors of constraint graphs, checked symbol by symbol.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use consistory_formats::Diagnostics;
use consistory_protocol::Checker;
use consistory_protocol::descriptor::{DescriptorError, parse_line};
use serde_json::json;

use super::{ProtocolVerdict, Report};
use crate::error::CliError;
use crate::reading::{self, Reading};

/// Checks a descriptor while reading it; memory depends only on the number of nodes in use.
pub(super) fn check_descriptor(path: &Path) -> Result<Report, CliError> {
    let is_stream = path == Path::new("-");
    let input: Box<dyn BufRead> = if is_stream {
        Box::new(BufReader::new(Reading(io::stdin().lock())))
    } else {
        Box::new(BufReader::new(reading::open(path)?))
    };
    let source: Arc<str> = path.display().to_string().into();
    let mut errors = Diagnostics::default();
    let mut checker = Checker::new();
    let mut symbols = 0u64;
    let mut last = 0;
    let mut rejection = None;
    for (number, line) in (1u64..).zip(reading::lines(input)) {
        let line = line.map_err(|e| CliError::file("read", path, e))?;
        let symbol = match parse_line(number, &line) {
            Ok(Some(symbol)) => symbol,
            Ok(None) => continue,
            Err(error) => {
                push(&mut errors, &source, &error);
                // For a stream the first error is reported at once; for a file all errors are
                // shown.
                if is_stream { break } else { continue }
            }
        };
        symbols += 1;
        last = number;
        if errors.is_empty()
            && rejection.is_none()
            && let Err(reason) = checker.step(symbol)
        {
            rejection = Some((number, line.trim().to_owned(), reason.to_string()));
            if is_stream {
                break;
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors.into());
    }
    if rejection.is_none() {
        let end = checker.finish();
        rejection = end.err().map(|reason| (last, "the end".to_owned(), reason.to_string()));
    }
    let peak = checker.peak();
    Ok(match rejection {
        None if symbols == 0 => Report {
            verdict: ProtocolVerdict::Unproved,
            headline: "nothing is proved: the descriptor is empty".to_owned(),
            text: "nothing is proved: the descriptor is empty\n".to_owned(),
            json: json!({ "symbols": symbols, "nodes": peak, "reason": "the descriptor is empty" }),
            case: None,
        },
        None => Report {
            verdict: ProtocolVerdict::Proved,
            headline: "an acyclic constraint graph".to_owned(),
            text: format!(
                "an acyclic constraint graph: {symbols} symbols, at most {peak} nodes at once\n"
            ),
            json: json!({ "symbols": symbols, "nodes": peak }),
            case: None,
        },
        Some((line, symbol, reason)) => Report {
            verdict: ProtocolVerdict::Violation,
            headline: format!("rejected at line {line}"),
            text: format!("rejected at line {line}, `{symbol}`: {reason}\n"),
            json: json!({ "symbols": symbols, "nodes": peak, "line": line, "symbol": symbol,
                          "reason": reason }),
            case: None,
        },
    })
}

/// Adds an error; its position is in bytes.
fn push(errors: &mut Diagnostics, source: &Arc<str>, error: &DescriptorError) {
    let DescriptorError { line, place, text, problem } = error;
    let byte = |column: usize| text.char_indices().nth(column).map_or(text.len(), |(at, _)| at);
    let span = byte(place.start)..byte(place.end);
    errors.push(source, *line, text, span, problem.to_string(), None);
}
