//! Writes the text notation.

use std::fmt::{self, Write as _};
use std::io;

use consistory_history::{
    Action, History, KeyId, OpId, SessionId, Status, ValueId, is_plain_word, is_unruly,
    write_quoted,
};

use super::looks_like_register;
use crate::write::starts_by_default;

/// Writes a history's lines.
pub(crate) fn write(history: &History, out: &mut dyn io::Write) -> io::Result<()> {
    let mut text = String::new();
    bindings(history, "init", initial(history), &mut text);
    for session in history.sessions() {
        write_session(history, session, &mut text).expect(NO_ERROR);
        out.write_all(text.as_bytes())?;
        text.clear();
    }
    bindings(history, "final", history.finals().iter().copied(), &mut text);
    out.write_all(text.as_bytes())
}

/// Writes the line that starts a history, with its name.
pub(crate) fn write_separator(name: Option<&str>, out: &mut dyn io::Write) -> io::Result<()> {
    let Some(name) = name else { return writeln!(out, "---") };
    let is_plain = !name.is_empty()
        && name.trim() == name
        && !name.starts_with('"')
        && !name.contains(|c: char| c == '#' || is_unruly(c));
    if is_plain {
        return writeln!(out, "--- {name}");
    }
    let mut quoted = String::new();
    write_quoted(name, &mut quoted).expect(NO_ERROR);
    writeln!(out, "--- {quoted}")
}

const NO_ERROR: &str = "writing to a string does not fail";

/// Iterates over the initial values that must be written: those that differ from the default, and
/// those of keys that no operation mentions.
fn initial(history: &History) -> impl Iterator<Item = (KeyId, ValueId)> + use<'_> {
    let mut is_mentioned = vec![false; history.key_count()];
    for op in history.ops() {
        if let Some(key) = history.key_of(op) {
            is_mentioned[key.index()] = true;
        }
    }
    history.keys().filter_map(move |key| {
        let value = history.initial_value(key);
        let is_needed = !starts_by_default(history, key) || !is_mentioned[key.index()];
        is_needed.then_some((key, value))
    })
}

fn bindings(
    history: &History,
    word: &str,
    bindings: impl Iterator<Item = (KeyId, ValueId)>,
    text: &mut String,
) {
    let mut is_first = true;
    for (key, value) in bindings {
        if std::mem::take(&mut is_first) {
            text.push_str(word);
            text.push(':');
        }
        text.push(' ');
        write_name(history.key_name(key), text).expect(NO_ERROR);
        write!(text, "={}", history.value(value)).expect(NO_ERROR);
    }
    if !is_first {
        text.push('\n');
    }
}

fn write_session(history: &History, session: SessionId, text: &mut String) -> fmt::Result {
    match history.session_name(session) {
        // Without quotes, this would be a line of bindings.
        name @ "final" => write!(text, "\"{name}\":")?,
        name => {
            write_name(name, text)?;
            text.push(':');
        }
    }
    for op in history.session_ops(session) {
        let transaction = history.transaction_of(op).map(|id| history.transaction(id));
        text.push(' ');
        if transaction.is_some_and(|t| t.ops.start == op.0) {
            text.push_str("[ ");
        }
        write_operation(history, op, text)?;
        if let Some(transaction) = transaction.filter(|t| t.ops.end == op.0 + 1) {
            text.push_str(" ]");
            text.push_str(suffix(transaction.status));
        }
    }
    text.push('\n');
    Ok(())
}

fn write_operation(history: &History, op: OpId, text: &mut String) -> fmt::Result {
    let mut has_return = false;
    if let Action::Call(id) = history.action(op) {
        let call = history.call(id);
        if is_plain_word(&call.method) {
            text.push_str(&call.method);
        } else {
            write_quoted(&call.method, text)?;
        }
        text.push('(');
        for (i, &arg) in call.args.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(text, "{comma}{}", history.value(arg))?;
        }
        text.push(')');
        has_return = call.returns.is_some() || looks_like_register(&call.method, call.args.len());
        match call.returns {
            Some(value) => write!(text, " => {}", history.value(value))?,
            None if has_return => text.push_str(" => ?"),
            None => {}
        }
    } else {
        write!(text, "{}", history.show(op))?;
    }
    text.push_str(suffix(history.own_status(op)));
    if let Some(time) = history.time(op) {
        let space = if has_return { " " } else { "" };
        write!(text, "{space}@{}..", time.start)?;
        if let Some(end) = time.end {
            write!(text, "{end}")?;
        }
    }
    Ok(())
}

fn suffix(status: Status) -> &'static str {
    match status {
        Status::Ok => "",
        Status::Fail => "!",
        Status::Unknown => "?",
    }
}

/// Writes the name of a key or session, quoted unless it is a plain word or a number.
fn write_name(name: &str, text: &mut String) -> fmt::Result {
    let is_number = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    if is_number || is_plain_word(name) {
        text.push_str(name);
        return Ok(());
    }
    write_quoted(name, text)
}
