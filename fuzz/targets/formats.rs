//! Formats: every parser takes any bytes, and what it reads comes back from every format that can
//! express it.

#![no_main]

use std::io::Cursor;

use consistory_formats::{Format, ReadError, WriteError, parse_str, read_from, write_history};
use consistory_fuzz::text;
use consistory_history::{Action, History, Value};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    // A small compressed input may stand for a very long one.
    if bytes.starts_with(b"\x1f\x8b")
        || bytes.get(1..4).is_some_and(|b| matches!(b, b"\xb5\x2f\xfd" | b"\x2a\x4d\x18"))
    {
        return;
    }
    // A digit is a place in the list of formats; behind the last, the format is told from the text.
    let format = Format::ALL.get(usize::from(choice % 8)).copied();
    let histories: Result<Vec<History>, ReadError> =
        read_from(Box::new(Cursor::new(bytes.to_vec())), "input", format).collect();
    match histories {
        Ok(histories) => {
            assert!(!histories.is_empty());
            histories.iter().for_each(comes_back);
        }
        Err(ReadError::Malformed(diagnostics)) => {
            assert!(diagnostics.count() > 0);
            drop(diagnostics.render(true));
        }
        Err(error) => drop(error.to_string()),
    }
});

fn comes_back(history: &History) {
    let original = text(history);
    for format in Format::ALL {
        let mut out = Vec::new();
        match write_history(history, format, &mut out) {
            Ok(()) => {}
            Err(WriteError::NotExpressible { .. }) if format != Format::Hist => continue,
            Err(error) => panic!("{error}\n{original}"),
        }
        // Only the text notation has words for sessions and keys alone.
        if history.is_empty() && format != Format::Hist {
            continue;
        }
        let written = String::from_utf8(out).expect("every format is text");
        let back = match parse_str(&written, format, "written") {
            Ok(mut back) if back.len() == 1 => back.remove(0),
            Ok(back) => panic!("{format}: {} histories\n{written}\n{original}", back.len()),
            Err(errors) => panic!("{format}: {}\n{original}", errors.render(false)),
        };
        match format {
            Format::Hist => assert_eq!(text(&back), original),
            Format::Jsonl => assert_eq!(described(&back), described(history), "{written}"),
            _ => assert_eq!(outlined(&back), outlined(history), "{format}:\n{written}\n{original}"),
        }
    }
}

/// Describes all but sessions without operations and keys that only an initial 0 mentions.
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

/// Describes what formats keep that have numbers for names: each operation without its key.
fn outlined(history: &History) -> Vec<String> {
    let line = |op| {
        let action = match history.action(op) {
            Action::Read { value, .. } => format!("r {}", history.value(value)),
            Action::Write { value, .. } => format!("w {}", history.value(value)),
            Action::Rmw { read, write, .. } => {
                format!("rmw {} {}", history.value(read), history.value(write))
            }
            Action::Fence => "f".to_owned(),
            Action::Call(id) => format!("{:?}", history.call(id)),
        };
        format!("{} {action} {:?}", history.index_in_session(op), history.status(op))
    };
    history.ops().map(line).collect()
}
