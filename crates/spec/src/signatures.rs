//! The methods of the built-in objects, written as a readable table.
//!
//! A line is `[read] name(parameters) [-> result] [as alias, alias]`. Without `->` the method
//! returns nothing and a recorded return is ignored; `-> unordered` returns a list whose order has
//! no meaning. Some words denote the kind of a value: `bool`, `count`, `integer`, `delta`, `index`,
//! `elements`, `unordered`.

use crate::specification::{Effect, Method, Returns};

/// Parses a table of signatures, which is part of this crate's source and so has no errors.
pub(crate) fn signatures(table: &str) -> Vec<Method> {
    table.lines().map(str::trim).filter(|line| !line.is_empty()).map(signature).collect()
}

fn signature(line: &str) -> Method {
    let (line, aliases) = line.split_once(" as ").unwrap_or((line, ""));
    let (line, result) = line.split_once(" -> ").unwrap_or((line, ""));
    let (effect, line) = match line.strip_prefix("read ") {
        Some(rest) => (Effect::Reads, rest),
        None => (Effect::Writes, line),
    };
    let (name, parameters) = line.split_once('(').expect("a signature has parentheses");
    Method {
        name: name.trim().into(),
        parameters: names(parameters.trim_end().trim_end_matches(')')),
        aliases: names(aliases),
        effect,
        result: result.trim().into(),
        returns: match result.trim() {
            "" => Returns::Nothing,
            "unordered" => Returns::Unordered,
            _ => Returns::Value,
        },
    }
}

fn names(list: &str) -> Vec<Box<str>> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Into::into).collect()
}
