//! Properties of a parser that must hold for any text.

use std::io::Cursor;
use std::sync::LazyLock;
use std::time::Duration;

use consistory_certify::{Rejection, certify_definition};
use consistory_formats::{Format, ReadError, Style, WriteError, read_from, write_history};
use consistory_history::{
    Action, History, OpId, Value, is_of_transaction_calls, transactions_of_calls,
};
use consistory_litmus::operational::Machine;
use consistory_litmus::{Program, Semantics, Table, read_test, write_test};
use consistory_models::{EvaluateOptions, evaluate, load};
use consistory_verdict::Budget;

use crate::{history, text};

/// Largest number of diagnostics that are rendered, since rendering takes time.
const RENDERED: u64 = 20;

/// Reads histories in a given or recognised format: reading must end, and the histories must be
/// unchanged after writing and reading in every format that can express them.
pub fn read_histories(bytes: Vec<u8>, format: Option<Format>) {
    let bytes = Box::new(Cursor::new(bytes));
    let histories: Result<Vec<History>, ReadError> = read_from(bytes, "input", format).collect();
    match histories {
        Ok(histories) => {
            assert!(!histories.is_empty());
            histories.iter().for_each(comes_back);
        }
        Err(ReadError::Malformed(diagnostics)) => {
            assert!(!diagnostics.is_empty());
            if diagnostics.count() <= RENDERED {
                diagnostics.render(Style::Styled);
            }
        }
        Err(error) => drop(error.to_string()),
    }
}

/// Reads a litmus test: reading must end, a test must have the same outcomes after writing and
/// reading, and the machine of TSO must find the outcomes of its axioms.
pub fn read_litmus(text: &str) {
    let test = match read_test("input", text) {
        Ok(test) => test,
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            if diagnostics.count() <= RENDERED {
                diagnostics.render(Style::Styled);
            }
            return;
        }
    };
    let budget = Budget::unlimited().with_time(Duration::from_millis(200));
    let outcomes = |program: &Program| Table::tso().outcomes(program, &budget.renewed());
    let Ok(expected) = outcomes(&test.program) else { return };
    if let Ok(found) = Machine::TSO.outcomes(&test.program, &budget.renewed()) {
        assert_eq!(found, expected, "{text}");
    }
    // Some tests that can be read cannot be written, such as one with more registers than x86 has
    // names for.
    let Ok(written) = write_test(&test) else { return };
    let back = match read_test("written", &written) {
        Ok(back) => back,
        Err(errors) => panic!("{}\n{written}\n{text}", errors.render(Style::Plain)),
    };
    if let Ok(found) = outcomes(&back.program) {
        assert_eq!(found, expected, "{written}\n{text}");
        assert_eq!(back.holds(&found), test.holds(&expected), "{written}\n{text}");
    }
}

fn comes_back(history: &History) {
    let original = text(history);
    for format in Format::ALL {
        let mut out = Vec::new();
        match write_history(history, format, &mut out) {
            Ok(()) => {}
            Err(WriteError::NotExpressible { .. }) if format != Format::Hist => continue,
            Err(error) => panic!("{error}\n{original}"),
        }
        // Only the text notation can express sessions and keys without operations.
        if history.is_empty() && format != Format::Hist {
            continue;
        }
        let written = String::from_utf8_lossy(&out).into_owned();
        // Bytes are used because one of the formats is not text.
        let stream = Box::new(std::io::Cursor::new(out));
        let back: Result<Vec<History>, ReadError> =
            read_from(stream, "written", Some(format)).collect();
        let back = match back {
            Ok(mut back) if back.len() == 1 => back.remove(0),
            Ok(back) => panic!("{format}: {} histories\n{written}\n{original}", back.len()),
            Err(error) => panic!("{format}: {error}\n{written}\n{original}"),
        };
        match format {
            Format::Hist => assert_eq!(text(&back), original),
            Format::Jsonl => assert_eq!(described(&back), described(history), "{written}"),
            // Sessions are in the order of their first events, and times are ranks.
            Format::Edn
            | Format::JepsenJson
            | Format::Jepsen
            | Format::Limo
            | Format::Fastlin
            | Format::Fptlin => {
                // Calls of `txn` are read back as the transactions that they represent.
                let transactions = match is_of_transaction_calls(history) {
                    true => transactions_of_calls(history).ok(),
                    false => None,
                };
                let history = transactions.as_ref().unwrap_or(history);
                assert_eq!(back.len(), history.len(), "{format}:\n{written}\n{original}");
                if matches!(format, Format::Edn | Format::JepsenJson) {
                    assert_eq!(
                        actions(&back),
                        actions(history),
                        "{format}:\n{written}\n{original}"
                    );
                }
            }
            _ => assert_eq!(outlined(&back), outlined(history), "{format}:\n{written}\n{original}"),
        }
    }
}

/// Lists the writes and appends, without sessions and times, in a fixed order; events do not record
/// the reads of a transaction that did not commit.
fn actions(history: &History) -> Vec<String> {
    let is_plain =
        |op: &OpId| !matches!(history.action(*op), Action::Call(_) | Action::Read { .. });
    let mut found: Vec<String> =
        history.ops().filter(is_plain).map(|op| history.show(op).to_string()).collect();
    found.sort_unstable();
    found
}

/// Describes a history without sessions that have no operations and keys with only an initial 0.
fn described(history: &History) -> Vec<String> {
    let mut lines = vec![format!("name {:?}", history.name())];
    for op in history.ops() {
        let action = match history.action(op) {
            Action::Call(id) => {
                let call = history.call(id);
                let args: Vec<_> = call.args.iter().map(|&arg| history.value(arg)).collect();
                format!("{:?} {args:?} {:?}", call.method, call.returns.map(|v| history.value(v)))
            }
            _ => history.show(op).to_string(),
        };
        let session = history.session_name(history.session_of(op));
        let bracket = history.transaction_of(op).map(|id| history.transaction(id));
        let (status, time) = (history.status(op), history.time(op));
        lines.push(format!("{session:?} {action} {status:?} {time:?} {bracket:?}"));
    }
    let initial = history.keys().map(|key| ("init", key, history.initial_value(key)));
    let finals = history.finals().iter().map(|&(key, value)| ("final", key, value));
    let mut bindings: Vec<String> = initial
        .filter(|&(_, _, value)| *history.value(value) != Value::Int(0))
        .chain(finals)
        .map(|(word, key, value)| {
            format!("{word} {:?} {:?}", history.key_name(key), history.value(value))
        })
        .collect();
    bindings.sort();
    lines.extend(bindings);
    lines
}

/// Describes the content preserved by formats with numeric names: each operation without its key.
fn outlined(history: &History) -> Vec<String> {
    let line = |op| {
        let action = match history.action(op) {
            Action::Read { value, .. } => format!("r {}", history.value(value)),
            Action::Write { value, .. } => format!("w {}", history.value(value)),
            Action::Rmw { read, write, .. } => {
                format!("rmw {} {}", history.value(read), history.value(write))
            }
            Action::Append { value, .. } => format!("append {}", history.value(value)),
            Action::Fence => "f".to_owned(),
            Action::Call(id) => format!("{:?}", history.call(id)),
        };
        format!("{} {action} {:?}", history.index_in_session(op), history.status(op))
    };
    history.ops().map(line).collect()
}

/// Store buffering, and a history with repeated values, a read-modify-write and an unknown status.
static HISTORIES: LazyLock<[History; 2]> = LazyLock::new(|| {
    [
        history("t0: w(x,1) r(y,0)\nt1: w(y,1) f r(x,0)\n"),
        history("t0: w(x,1) rmw(x,1,2)\nt1: w(x,1)? r(x,2)\nt2: w(x,4) r(x,1)\n"),
    ]
});

/// Reads a definition: reading and evaluating it must end, and the independent evaluator must
/// accept the result.
pub fn read_definition(text: &str) {
    let include = |path: &str| match path {
        "own.cat" => Some(text.to_owned()),
        "other.cat" => Some("let other = po & loc".to_owned()),
        _ => None,
    };
    let definition = match load("own.cat", text, include) {
        Ok(definition) => definition,
        Err(error) => {
            assert!(!error.is_empty());
            if error.count() <= RENDERED {
                error.render(Style::Styled);
            }
            return drop(error.to_string());
        }
    };
    assert!(definition.checks().all(|check| !check.text.is_empty()));
    for history in &*HISTORIES {
        let budget = Budget::unlimited().with_time(Duration::from_millis(50));
        let options = EvaluateOptions { budget, ..EvaluateOptions::default() };
        let Ok(judgement) = evaluate(&definition, history, &options) else { continue };
        let Some(certificate) = judgement.certificate() else { continue };
        match certify_definition(history, &definition, judgement.verdict(), certificate) {
            Ok(()) | Err(Rejection::TooMuchWork) => {}
            Err(rejection) => panic!(
                "{:?}: {rejection}\n{certificate:?}\n{}\n{text}",
                judgement.verdict(),
                crate::text(history)
            ),
        }
    }
}
