//! Display of names and operations: operations in words, in one line, of bounded length.
//!
//! If sessions and keys have numbers as names, as in traces of hardware, the text distinguishes
//! them: session 0, v0. References stay as in the certificate.

use consistory_history::{
    Action, History, KeyId, OpId, SessionId, Status, ValueId, is_plain_word, is_unruly,
    write_quoted,
};

/// Largest width of the name of a session, key or value, in columns.
const MAX_NAME_COLUMNS: usize = 24;
/// Largest width of an operation, in columns.
const MAX_OPERATION_COLUMNS: usize = 40;
/// Largest width of a name or value that is shown in full, in columns.
const MAX_DETAIL_COLUMNS: usize = 200;

/// Makes `text` one line of at most `longest` columns: control characters and those that change the
/// direction of writing are escaped, and a text that is too long ends with an ellipsis.
pub(crate) fn clean(text: &str, longest: usize) -> String {
    // Most texts are printable ASCII and short.
    if text.len() <= longest && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut columns = 0;
    for c in text.chars() {
        let piece = if is_unruly(c) { c.escape_default().to_string() } else { c.to_string() };
        columns += width(&piece);
        if columns > longest {
            while width(&out) >= longest {
                out.pop();
            }
            out.push('…');
            break;
        }
        out.push_str(&piece);
    }
    out
}

/// Counts the columns that `text` takes in a terminal: two for the wide characters of East Asia
/// and for emoji, none for combining marks.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Formats a number with thousands separators, as `1,204`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a number with a noun, as `1 edge` or `1,204 edges`.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Returns an operation's reference, as `t1:0`.
pub(crate) fn reference(history: &History, op: OpId) -> String {
    if history.is_initial(op) {
        let Action::Write { key, .. } = history.action(op) else { return "init".into() };
        return format!("init:{}", clean(history.key_name(key), MAX_NAME_COLUMNS));
    }
    let name = clean(history.session_name(history.session_of(op)), MAX_NAME_COLUMNS);
    format!("{name}:{}", history.index_in_session(op))
}

/// Returns the display name of an operation's session.
pub(crate) fn session(history: &History, op: OpId) -> String {
    session_name(history, history.session_of(op))
}

/// Returns the display name of a session: its name, preceded by `session` if the name is a number.
pub(crate) fn session_name(history: &History, session: SessionId) -> String {
    let name = clean(history.session_name(session), MAX_NAME_COLUMNS);
    if is_number(&name) { format!("session {name}") } else { name }
}

/// Returns an operation in the text notation, as `w(x,1)`.
pub(crate) fn notation(history: &History, op: OpId) -> String {
    let key = |key| key_name(history, key);
    let shown = match history.action(op) {
        Action::Read { key: k, value } => format!("r({},{})", key(k), history.value(value)),
        Action::Write { key: k, value } => format!("w({},{})", key(k), history.value(value)),
        Action::Rmw { key: k, read, write } => {
            format!("rmw({},{},{})", key(k), history.value(read), history.value(write))
        }
        Action::Append { key: k, value } => format!("append({},{})", key(k), history.value(value)),
        Action::Call(_) => return call_notation(&history.show(op).to_string()),
        Action::Fence => history.show(op).to_string(),
    };
    clean(&shown, MAX_OPERATION_COLUMNS)
}

/// Shortens a call to [`MAX_OPERATION_COLUMNS`]: its arguments are cut before its return.
fn call_notation(shown: &str) -> String {
    let whole = clean(shown, usize::MAX);
    if width(&whole) <= MAX_OPERATION_COLUMNS {
        return whole;
    }
    let Some((call, result)) = whole.rsplit_once(" => ") else {
        return clean(&whole, MAX_OPERATION_COLUMNS);
    };
    let (method, _) = call.split_once('(').unwrap_or((call, ""));
    let least = (width(method) + 3).min(MAX_OPERATION_COLUMNS / 2);
    let result = clean(result, MAX_OPERATION_COLUMNS - 4 - least);
    let room = MAX_OPERATION_COLUMNS - 4 - width(&result);
    let call = if width(call) <= room { call.to_owned() } else { clean(call, room - 1) + ")" };
    format!("{call} => {result}")
}

/// Returns an operation with its reference, as `t1:0 r(y,1)`.
pub(crate) fn quoted(history: &History, op: OpId) -> String {
    if history.is_initial(op) {
        return format!("the initial {}", initial(history, op, "="));
    }
    format!("{} {}", reference(history, op), notation(history, op))
}

/// Returns an initial write, as `x=0` or `x was 0`.
pub(crate) fn initial(history: &History, op: OpId, is: &str) -> String {
    match history.action(op) {
        Action::Write { key, value } => {
            let value = clean(&history.value(value).to_string(), MAX_NAME_COLUMNS);
            format!("{}{is}{value}", key_name(history, key))
        }
        _ => notation(history, op),
    }
}

/// Describes the effect of an operation, as `wrote x=1`.
pub(crate) fn deed(history: &History, op: OpId) -> String {
    let value = |id| clean(&history.value(id).to_string(), MAX_NAME_COLUMNS);
    match history.action(op) {
        Action::Read { key, value: v } => format!("read {}={}", key_name(history, key), value(v)),
        Action::Write { key, value: v } => format!("wrote {}={}", key_name(history, key), value(v)),
        Action::Rmw { key, read, write } => {
            format!("changed {} from {} to {}", key_name(history, key), value(read), value(write))
        }
        Action::Append { key, value: v } => {
            format!("appended {} to {}", value(v), key_name(history, key))
        }
        Action::Fence => "passed a fence".into(),
        Action::Call(_) => format!("called {}", notation(history, op)),
    }
}

/// Describes an operation in full for a tooltip: its effect with its values, and its outcome.
pub(crate) fn described(history: &History, op: OpId) -> String {
    let long = |id| clean(&history.value(id).to_string(), MAX_DETAIL_COLUMNS);
    let key = |id: KeyId| clean(history.key_name(id), MAX_DETAIL_COLUMNS);
    let mut text = match history.action(op) {
        Action::Read { key: k, value } => format!("read of {}: {}", key(k), long(value)),
        Action::Write { key: k, value } => format!("write of {}: {}", key(k), long(value)),
        Action::Rmw { key: k, read, write } => {
            format!("read-modify-write of {}: {}, then {}", key(k), long(read), long(write))
        }
        Action::Append { key: k, value } => format!("append to {}: {}", key(k), long(value)),
        Action::Fence => "fence".to_owned(),
        Action::Call(_) => {
            format!("call {}", clean(&history.show(op).to_string(), 2 * MAX_DETAIL_COLUMNS))
        }
    };
    text += match history.status(op) {
        Status::Ok => "",
        Status::Fail => "\nfailed: it did not take effect",
        Status::Unknown => "\nits outcome is unknown",
    };
    text
}

/// Describes an operation that read the initial value, as `read x=0 (t0:1), the initial value`,
/// with an optional text in parentheses.
pub(crate) fn deed_at_first(history: &History, op: OpId, place: Option<&str>) -> String {
    let place = place.map_or(String::new(), |place| format!(" ({place})"));
    let Action::Rmw { key, read, write } = history.action(op) else {
        return format!("{}{place}, the initial value", deed(history, op));
    };
    let value = |id| clean(&history.value(id).to_string(), MAX_NAME_COLUMNS);
    let (key, read, write) = (key_name(history, key), value(read), value(write));
    format!("changed {key} from its initial value {read} to {write}{place}")
}

/// Describes a key's final value, as `x is 1 in the end`.
pub(crate) fn ended(history: &History, key: KeyId) -> String {
    let given = history.finals().iter().find(|&&(of, _)| of == key);
    let value = given.map_or("?".into(), |&(_, value)| history.value(value).to_string());
    format!("{} is {} in the end", key_name(history, key), clean(&value, MAX_NAME_COLUMNS))
}

/// Describes a final value that no write can have left, as
/// `x is 2 in the end, but no write of that value can be the last`.
pub(crate) fn never_ended(history: &History) -> Option<String> {
    let finals = history.finals();
    let two = finals.iter().enumerate().find_map(|(i, &(key, value))| {
        let other = finals[..i].iter().find(|&&(of, other)| of == key && other != value)?;
        let shown = |value| clean(&history.value(value).to_string(), MAX_NAME_COLUMNS);
        let (one, other) = (shown(other.1), shown(value));
        Some(format!("{} cannot be both {one} and {other} in the end", key_name(history, key)))
    });
    let none = |is_written: &dyn Fn(OpId) -> bool| {
        let is_missing = |&&(key, value): &&(KeyId, ValueId)| {
            let writes = |op: OpId| history.writes(op) == Some((key, value)) && is_written(op);
            history.initial_value(key) != value && !history.ops().any(writes)
        };
        let &(key, _) = finals.iter().find(is_missing)?;
        Some(format!("{}, but no write of that value can be the last", ended(history, key)))
    };
    // An indeterminate write counts only if it was read.
    two.or_else(|| none(&|op| history.status(op) != Status::Fail))
        .or_else(|| none(&|op| history.status(op) == Status::Ok))
}

/// Returns a key in the text notation, quoted unless it is a plain word; a number is preceded by
/// `v`, unless another key has this name.
pub(crate) fn key_name(history: &History, key: KeyId) -> String {
    let name = history.key_name(key);
    if is_number(name) {
        let variable = format!("v{name}");
        let is_taken = history.find_key(&variable).is_some();
        return clean(if is_taken { name } else { &variable }, MAX_NAME_COLUMNS);
    }
    if is_plain_word(name) {
        return clean(name, MAX_NAME_COLUMNS);
    }
    let mut out = String::new();
    write_quoted(name, &mut out).expect("a string takes all that is written to it");
    clean(&out, MAX_NAME_COLUMNS)
}

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
}

fn char_width(c: char) -> usize {
    match c as u32 {
        0x300..=0x36F | 0x200B..=0x200F | 0x20D0..=0x20FF | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0x303E
        | 0x3041..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F900..=0x1F9FF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_call_keeps_its_result() {
        let put = "put(\"a key that is far too long for a label\",1) => 17";
        assert_eq!(call_notation(put), "put(\"a key that is far too long …) => 17");
        assert_eq!(width(&call_notation(put)), MAX_OPERATION_COLUMNS);
        assert_eq!(call_notation("poll() => 3"), "poll() => 3");
        let long = call_notation(&format!("poll() => {}", "x".repeat(90)));
        assert!(long.starts_with("poll() => xxxxxxxx") && width(&long) <= 40, "{long}");
        let list = call_notation(&format!("{}({}) => {}", "m".repeat(60), "a", "x".repeat(90)));
        assert!(list.contains(" => xxxxxx") && width(&list) <= 40, "{list}");
    }

    #[test]
    fn what_is_shown_is_one_line_of_bounded_width() {
        assert_eq!(clean("a\nb\u{202E}c", 40), "a\\nb\\u{202e}c");
        assert_eq!(clean("abcdef", 6), "abcdef");
        assert_eq!(clean("abcdefg", 6), "abcde…");
        assert_eq!(clean("日本語", 5), "日本…");
        assert_eq!(width(&clean(&"日".repeat(99), 24)), 23);
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!([0, 999, 1_204, 1_000_000].map(grouped), ["0", "999", "1,204", "1,000,000"]);
        assert_eq!(counted(1, "edge"), "1 edge");
        assert_eq!(counted(2, "edge"), "2 edges");
    }
}
