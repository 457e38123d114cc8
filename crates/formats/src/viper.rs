//! Viper's logs: a folder of files `J0.log`, `J1.log` and so on, one per session.
//!
//! ```text
//! {"value": [["r", 1, 2, true], ["w", 1, 3, true]]}
//! ```
//!
//! A line is a committed transaction. Its operations consist of `"r"` or `"w"`, the key, the value,
//! and whether the operation succeeded, which may be missing. `null` is the initial value. Other
//! fields are ignored.

use consistory_history::{Action, Details, HistoryBuilder, SessionId, Status};

use crate::jsonl::{Object, list, offset_in, syntax_fault, text_of, value_of};
use crate::parse::{Fault, Line, Parse, Sink};

/// The parser of one of these files.
#[derive(Default)]
pub(crate) struct Viper {
    builder: HistoryBuilder,
    last_line: u64,
}

impl Parse for Viper {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        if line.text.trim().is_empty() {
            return;
        }
        let session = self.builder.session("0");
        if let Err(fault) = transaction(line.text, session, &mut self.builder) {
            sink.report(line, fault);
        }
    }

    fn end(&mut self, sink: &mut Sink) {
        self.builder.null_is_not_zero();
        sink.finish(&mut self.builder, Line { number: self.last_line, text: "" });
    }
}

const TRANSACTION: &str = "a line is {\"value\": [[\"r\", 1, 2, true], [\"w\", 1, 3, true]]}";

/// Adds the transaction of a line to a session.
pub(crate) fn transaction(
    text: &str,
    session: SessionId,
    builder: &mut HistoryBuilder,
) -> Result<(), Fault> {
    let fault =
        |part: &str, message: &str| Fault::new(offset_in(text, part), message).hint(TRANSACTION);
    let Object(fields) = serde_json::from_str(text)
        .map_err(|error| syntax_fault(text, &error).or_hint(TRANSACTION))?;
    let mut values = fields.iter().filter(|(name, _)| *name == "\"value\"");
    let Some(&(_, steps)) = values.next() else {
        return Err(fault(text.trim(), "\"value\" is missing"));
    };
    if values.next().is_some() {
        return Err(fault(text.trim(), "a second \"value\""));
    }
    let steps = list(steps).ok_or_else(|| fault(steps, "expected a list of operations"))?;
    let transaction = (steps.len() > 1).then(|| builder.begin_transaction());
    for step in steps {
        let parts = list(step).unwrap_or_default();
        let (kind, key, value, has_succeeded) = match parts[..] {
            [kind, key, value] => (kind, key, value, "true"),
            [kind, key, value, has_succeeded] => (kind, key, value, has_succeeded),
            _ => return Err(fault(step, "malformed operation")),
        };
        let status = match has_succeeded {
            "true" => Status::Ok,
            "false" => Status::Fail,
            other => return Err(fault(other, "expected true or false")),
        };
        let key = text_of(key).ok_or_else(|| fault(key, "a key is a number or a string"))?;
        let key = builder.key(&key);
        let value = value_of(value, offset_in(text, value))?;
        let value = builder.value(value);
        let action = match kind {
            "\"r\"" => Action::Read { key, value },
            "\"w\"" => Action::Write { key, value },
            other => return Err(fault(other, "an operation is \"r\" or \"w\"")),
        };
        builder.push_with(session, action, Details { status, time: None, transaction });
    }
    Ok(())
}

/// Checks whether a text begins like such a file.
pub(crate) fn looks_like(beginning: &str) -> bool {
    let line = beginning.trim_start().lines().next().unwrap_or_default();
    let value = line.strip_prefix('{').and_then(|rest| rest.trim_start().strip_prefix("\"value\""));
    value.and_then(|rest| rest.trim_start().strip_prefix(':')).is_some_and(|rest| {
        let steps = rest.trim_start();
        let inside = steps.strip_prefix('[').map(str::trim_start);
        inside.is_some_and(|inside| inside.starts_with(['[', ']']))
    })
}
