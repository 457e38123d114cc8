//! States as text for people.

use consistory_history::Value;

/// Largest number of elements of a state that are written.
const MAX_ELEMENTS: usize = 24;

/// Writes elements in their order, as `[1, 2]`.
pub(crate) fn list<'a>(elements: impl IntoIterator<Item = &'a Value>) -> Option<String> {
    Some(format!("[{}]", joined(elements.into_iter().map(ToString::to_string))))
}

/// Writes elements without an order, as `{1, 2}`.
pub(crate) fn set(elements: impl IntoIterator<Item = String>) -> Option<String> {
    Some(format!("{{{}}}", joined(elements.into_iter())))
}

/// Writes keys with their values, such as `{x: 1, y: 2}`.
pub(crate) fn map<'a, V: ToString>(
    entries: impl IntoIterator<Item = (&'a Value, V)>,
) -> Option<String> {
    set(entries.into_iter().map(|(key, value)| format!("{key}: {}", value.to_string())))
}

fn joined(mut words: impl Iterator<Item = String>) -> String {
    let mut shown: Vec<String> = words.by_ref().take(MAX_ELEMENTS).collect();
    let more = words.count();
    if more > 0 {
        shown.push(format!("… {more} more"));
    }
    shown.join(", ")
}
