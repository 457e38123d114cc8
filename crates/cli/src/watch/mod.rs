//! `consistory watch`: judges an object's calls as they come, and stops at the first that nothing
//! explains.

mod lines;
mod watcher;

use std::sync::Arc;

use consistory::NamedObject;
use consistory_history::{Value, escaped};
use consistory_objects::{Online, OnlineOptions};

use crate::args::{OutputFormat, WatchArgs};
use crate::error::{CliError, OK, UNDECIDED, VIOLATION};
use crate::output;
use crate::report::quoted;
use lines::{Incoming, lines};
use watcher::{Finding, Summary, Watcher};

pub(crate) fn watch(args: &WatchArgs) -> Result<u8, CliError> {
    let object = Arc::clone(NamedObject::load(&args.object)?.object());
    let options = OnlineOptions {
        configurations: args.configurations,
        whole: args.whole,
        pending: args.pending,
        overdue: args.overdue,
    };
    let mut watcher = Watcher::new(Online::new(object, options), args.window);
    let mut finding = None;
    for incoming in lines(args)? {
        finding = match incoming? {
            Incoming::Line { source, number, text } => watcher.line(&text, number, &source)?,
            Incoming::Closed { source } => {
                watcher.closed(&source)?;
                None
            }
        };
        if finding.is_some() {
            break;
        }
    }
    if finding.is_none() {
        finding = watcher.end()?;
    }
    let summary = watcher.summary();
    let text = match args.format {
        OutputFormat::Text => page(finding.as_ref(), &summary),
        OutputFormat::Json => json(finding.as_ref(), &summary),
    };
    output::print(text)?;
    Ok(match finding {
        None => OK,
        Some(Finding::Violation { .. }) => VIOLATION,
        Some(Finding::Undecided { .. }) => UNDECIDED,
    })
}

/// Shows what was found to people.
fn page(finding: Option<&Finding>, summary: &Summary) -> String {
    let Summary { operations, lines, most, given_up, overdue, .. } = summary;
    let plural = |count: &u64, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let seen = format!("{} in {}", plural(operations, "operation"), plural(lines, "line"));
    match finding {
        None => {
            let most = plural(&(*most as u64), "configuration");
            let mut text = format!("consistent: {seen}, at most {most} at a time\n");
            if *overdue > 0 {
                let calls = plural(overdue, "call");
                text +=
                    &format!("{calls} overdue, with returns that were ignored: see --overdue\n");
            }
            if *given_up > 0 {
                let calls = plural(given_up, "call");
                text += &format!("{calls} indeterminate and given up: see --pending\n");
            }
            text
        }
        Some(Finding::Undecided { operation, reason }) => {
            format!("undecided at {}: {}\n({seen})\n", escaped(operation), escaped(reason))
        }
        Some(Finding::Violation { operation, call, line, possible, running, explained }) => {
            let mut text = format!(
                "violation: {} {} is not linearizable\n\
                 Line {line} is its return; nothing that happened before explains it.\n",
                escaped(operation),
                escaped(call)
            );
            let shown: Vec<String> = possible.iter().map(ToString::to_string).collect();
            if !shown.is_empty() {
                text += &format!("It could have returned {}.\n", shown.join(" or "));
            }
            if !running.is_empty() {
                text += &format!("Running at that time: {}.\n", escaped(&running.join(", ")));
            }
            text + &match explained {
                // Calls were judged without configurations.
                0 => format!("({seen})\n"),
                &explained => {
                    let explained = plural(&(explained as u64), "configuration");
                    format!("({seen}; up to then {explained} explained it all)\n")
                }
            }
        }
    }
}

/// Returns a value as JSON.
pub(crate) fn json_value(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(truth) => (*truth).into(),
        Value::Int(number) => (*number).into(),
        Value::Str(text) => (**text).into(),
        Value::List(items) => items.iter().map(json_value).collect(),
    }
}

/// Shows what was found as a line of JSON.
fn json(finding: Option<&Finding>, summary: &Summary) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(","));
    let found = match finding {
        None => r#""verdict":"consistent""#.to_owned(),
        Some(Finding::Undecided { operation, reason }) => format!(
            r#""verdict":"undecided","operation":{},"reason":{}"#,
            quoted(operation),
            quoted(reason)
        ),
        Some(Finding::Violation { operation, call, line, possible, running, .. }) => format!(
            r#""verdict":"violation","operation":{},"call":{},"line":{line},"possible":{},"running":{}"#,
            quoted(operation),
            quoted(call),
            list(possible.iter().map(|value| json_value(value).to_string()).collect()),
            list(running.iter().map(|call| quoted(call)).collect()),
        ),
    };
    let Summary { operations, lines, most, kept, calls, given_up, overdue } = summary;
    format!(
        "{{{found},\"operations\":{operations},\"lines\":{lines},\"configurations\":{{\"most\":{most},\"kept\":{kept}}},\"calls\":{{\"kept\":{calls},\"given_up\":{given_up},\"overdue\":{overdue}}}}}\n"
    )
}
