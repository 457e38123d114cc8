//! Common parts of printed pages and lines.

use consistory_history::{History, escaped};

/// Writes a text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the line above the verdicts.
pub(crate) fn heading(source: &str, index: u64, history: &History) -> String {
    let mut page = format!("\u{1b}[1m{}\u{1b}[0m", escaped(source));
    match (history.name(), index) {
        (Some(name), _) => page += &format!(" [{}]", escaped(name)),
        (None, 0) => {}
        (None, index) => page += &format!(" [{index}]"),
    }
    page += &format!(
        ": {}, {}\n",
        counted(history.session_count(), "session"),
        counted(history.len(), "operation")
    );
    page
}

/// Formats a number with a noun, as in `1 session` or `2 sessions`.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Colours the verdicts of a table.
pub(crate) fn coloured(table: &str) -> String {
    [("consistent", "32"), ("violation", "31"), ("undecided", "33")].iter().fold(
        table.to_owned(),
        |table, (word, colour)| {
            table.replace(&format!(" {word} "), &format!(" \u{1b}[{colour}m{word}\u{1b}[0m "))
        },
    )
}
