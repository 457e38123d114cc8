//! `consistory watch`: judges an object's calls or transactions online, and stops at the first call
//! that nothing explains, or when every isolation level is violated.

mod client;
mod levels;
mod lines;
mod watcher;

use std::sync::Arc;

use consistory::{Level, NamedObject};
use consistory_formats::parse_event;
use consistory_history::{Value, escaped};
use consistory_objects::{Online, OnlineOptions};

use crate::args::{OutputFormat, WatchArgs};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION};
use crate::output;
use crate::report::quoted;
use client::Clients;
use levels::{LevelState, LevelWatcher};
use lines::{Incoming, Precheck, lines};
use watcher::{Finding, Summary, Watcher, WrongLine};

/// Number of complete calls that wait for one that ends later, and number of transactions kept.
const DEFAULT_WAITING_CALLS: usize = 1000;
const DEFAULT_KEPT_TRANSACTIONS: usize = 10_000;

pub(crate) fn watch(args: &WatchArgs) -> Result<u8, CliError> {
    let Some(object) = &args.object else { return watch_levels(args) };
    let object = Arc::clone(NamedObject::load(object)?.object());
    let options = OnlineOptions {
        configurations: args.configurations,
        whole: args.whole,
        pending: args.pending,
        overdue: args.overdue,
    };
    let mut watcher =
        Watcher::new(Online::new(object, options), args.window.unwrap_or(DEFAULT_WAITING_CALLS));
    let mut finding = None;
    let mut clients = Clients::default();
    let precheck: Precheck = |text, number, source| {
        parse_event(text, number, source).map(drop).map_err(|error| error.into())
    };
    for incoming in lines(args, precheck)? {
        match incoming? {
            Incoming::Opened { source, client } => clients.open(source, client),
            Incoming::Line { source, number, text } if clients.counts(&source) => {
                finding = watcher.line(&text, number, &source)?;
            }
            Incoming::Line { .. } => {}
            Incoming::Wrong { source, error } => {
                clients.reject(&source, error)?;
                watcher.closed(&source)?;
            }
            Incoming::Closed { source } => {
                watcher.closed(&source)?;
                clients.close(&source);
            }
        }
        for WrongLine { source, error } in watcher.wrong_lines() {
            clients.reject(&source, error)?;
            watcher.closed(&source)?;
        }
        if finding.is_some() {
            break;
        }
    }
    while finding.is_none() {
        finding = watcher.end()?;
        let wrong = watcher.wrong_lines();
        if wrong.is_empty() {
            break;
        }
        wrong.into_iter().try_for_each(|line| clients.reject(&line.source, line.error))?;
    }
    let summary = watcher.summary(clients.rejected);
    let text = match args.format {
        OutputFormat::Text => output::for_terminal(page(finding.as_ref(), &summary)),
        OutputFormat::Json => json(finding.as_ref(), &summary),
    };
    output::print(text)?;
    Ok(match finding {
        Some(Finding::Undecided { .. }) | None if clients.rejected > 0 => UNREADABLE,
        None => OK,
        Some(Finding::Violation { .. }) => VIOLATION,
        Some(Finding::Undecided { .. }) => UNDECIDED,
    })
}

/// Judges isolation levels of transactions online.
fn watch_levels(args: &WatchArgs) -> Result<u8, CliError> {
    let mut levels = Vec::new();
    for name in &args.model {
        let Some(level) = Level::find(&name.to_lowercase()) else {
            let known: Vec<&str> = Level::ALL.iter().map(|level| level.id()).collect();
            return Err(CliError::with_hint(
                format!("{name} is not an isolation level, and no other model is judged online"),
                format!("the levels are {}; use `check` for other models", known.join(", ")),
            ));
        };
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let capacity = args.window.unwrap_or(DEFAULT_KEPT_TRANSACTIONS);
    let mut watcher = LevelWatcher::new(levels, args.order.into(), capacity);
    let show = |watcher: &LevelWatcher, rejected: u64, found: Vec<usize>| {
        let states = found.into_iter().map(|i| &watcher.levels[i]);
        let text: String =
            states.map(|state| level_text(state, watcher, rejected, args.format)).collect();
        output::print(match args.format {
            OutputFormat::Text => output::for_terminal(text),
            OutputFormat::Json => text,
        })
    };
    let mut clients = Clients::default();
    let precheck: Precheck = |text, number, source| {
        let is_operation = text.contains("\"op\"");
        let parsed =
            if is_operation { Ok(()) } else { parse_event(text, number, source).map(drop) };
        parsed.map_err(|error| error.into())
    };
    for incoming in lines(args, precheck)? {
        let mut found = Vec::new();
        match incoming? {
            Incoming::Opened { source, client } => clients.open(source, client),
            Incoming::Line { source, number, text } if clients.counts(&source) => {
                found = watcher.line(&text, number, &source)?;
            }
            Incoming::Line { .. } => {}
            Incoming::Wrong { source, error } => {
                clients.reject(&source, error)?;
                watcher.closed(&source);
            }
            Incoming::Closed { source } => {
                watcher.closed(&source);
                clients.close(&source);
            }
        }
        reject_wrong(&mut watcher, &mut clients)?;
        show(&watcher, clients.rejected, found)?;
        if watcher.is_over() {
            break;
        }
    }
    if !watcher.is_over() {
        let found = watcher.end()?;
        reject_wrong(&mut watcher, &mut clients)?;
        show(&watcher, clients.rejected, found)?;
    }
    let rest = (0..watcher.levels.len()).filter(|&i| watcher.levels[i].violation.is_none());
    show(&watcher, clients.rejected, rest.collect())?;
    if args.format == OutputFormat::Text {
        let text = level_summary(&watcher, capacity) + &rejected_text(clients.rejected);
        output::print(output::for_terminal(text))?;
    }
    let unexplained = watcher.size().unexplained_reads > 0;
    let is_violated = watcher.levels.iter().any(|state| state.violation.is_some());
    let is_undecided =
        |state: &LevelState| state.violation.is_none() && (unexplained || state.undecided > 0);
    Ok(match watcher.levels.iter().any(is_undecided) {
        _ if is_violated => VIOLATION,
        _ if clients.rejected > 0 => UNREADABLE,
        true => UNDECIDED,
        false => OK,
    })
}

/// Rejects the wrong lines, whose clients' transactions that are still open become indeterminate.
fn reject_wrong(watcher: &mut LevelWatcher, clients: &mut Clients) -> Result<(), CliError> {
    loop {
        let wrong = watcher.wrong_lines();
        if wrong.is_empty() {
            return Ok(());
        }
        for WrongLine { source, error } in wrong {
            clients.reject(&source, error)?;
            watcher.closed(&source);
        }
    }
}

/// Tells how many lines were rejected, if any were.
fn rejected_text(rejected: u64) -> String {
    match rejected {
        0 => String::new(),
        1 => {
            "1 line was rejected, and its connection closed: the verdict is about the other lines\n"
                .to_owned()
        }
        count => format!(
            "{count} lines were rejected, and their connections closed: the verdict is about the \
             other lines\n"
        ),
    }
}

/// Describes the state of a level.
fn level_text(
    state: &LevelState,
    watcher: &LevelWatcher,
    rejected: u64,
    format: OutputFormat,
) -> String {
    let id = state.level.id();
    let size = watcher.size();
    let unexplained = size.unexplained_reads;
    let reason = match (state.undecided, unexplained) {
        (0, 0) => None,
        (0, count) => {
            Some(format!("{count} reads of versions that were forgotten or never written"))
        }
        (count, _) => Some(format!("{count} windows were not decided: {}", state.reason)),
    };
    match format {
        OutputFormat::Text => match (&state.violation, reason) {
            (Some(found), _) => {
                let (session, line) = (escaped(&found.session), found.line);
                let indented = |text: &str| -> String {
                    text.lines().map(|line| format!("    {line}\n")).collect()
                };
                let (part, why) = (indented(&found.history), &found.explanation);
                let pattern = &found.pattern;
                format!(
                    "{id}: violation {pattern}, complete with the transaction of {session} that ends in line \
                     {line}\n\n{part}\n{why}\n"
                )
            }
            (None, Some(reason)) => format!("{id}: undecided: {}\n", escaped(&reason)),
            (None, None) => format!("{id}: consistent\n"),
        },
        OutputFormat::Json => {
            let mut line = serde_json::json!({
                "model": id,
                "verdict": "consistent",
                "transactions": watcher.transactions,
                "lines": watcher.lines,
                "kept": size.kept,
                "forgotten": size.forgotten,
                "unexplained_reads": unexplained,
            });
            if rejected > 0 {
                line["rejected"] = rejected.into();
            }
            match (&state.violation, reason) {
                (Some(found), _) => {
                    line["verdict"] = "violation".into();
                    line["pattern"] = found.pattern.as_str().into();
                    line["session"] = found.session.as_str().into();
                    line["line"] = found.line.into();
                    line["history"] = found.history.as_str().into();
                    line["explanation"] = found.explanation.as_str().into();
                }
                (None, Some(reason)) => {
                    line["verdict"] = "undecided".into();
                    line["reason"] = reason.into();
                }
                (None, None) => {}
            }
            format!("{line}\n")
        }
    }
}

/// Describes the extent of the input, and the violations that only a check of the whole recording
/// can find.
fn level_summary(watcher: &LevelWatcher, capacity: usize) -> String {
    let (transactions, lines) = (watcher.transactions, watcher.lines);
    let size = watcher.size();
    let mut text = format!("({transactions} transactions in {lines} lines)\n");
    if size.forgotten > 0 {
        text += &format!(
            "{} transactions were forgotten: contradictions between transactions more than about \
             {} apart are found only by `consistory check`, or with a larger --window\n",
            size.forgotten,
            capacity / 2
        );
    }
    text
}

/// Describes the finding as text.
fn page(finding: Option<&Finding>, summary: &Summary) -> String {
    verdict_text(finding, summary) + &rejected_text(summary.rejected)
}

fn verdict_text(finding: Option<&Finding>, summary: &Summary) -> String {
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
                // Without configurations, their number is not shown.
                0 => format!("({seen})\n"),
                &explained => {
                    let explained = plural(&(explained as u64), "configuration");
                    format!("({seen}; {explained} explained the calls before)\n")
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

/// Describes the finding as a line of JSON.
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
    let Summary { operations, lines, most, kept, calls, given_up, overdue, rejected } = summary;
    let rejected = match rejected {
        0 => String::new(),
        count => format!(",\"rejected\":{count}"),
    };
    format!(
        "{{{found},\"operations\":{operations},\"lines\":{lines},\"configurations\":{{\"most\":{most},\"kept\":{kept}}},\"calls\":{{\"kept\":{calls},\"given_up\":{given_up},\"overdue\":{overdue}}}{rejected}}}\n"
    )
}
