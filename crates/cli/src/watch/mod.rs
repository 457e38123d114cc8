//! `consistory watch`: judges an object's calls or transactions online, and stops at the first call
//! that nothing explains, or when every isolation level is violated.

mod client;
mod levels;
mod lines;
mod watcher;

use std::sync::Arc;
use std::time::Duration;

use consistory::{Court, Level, NamedObject, Outcome};
use consistory_formats::parse_event;
use consistory_history::{History, Value, escaped};
use consistory_objects::{Online, OnlineOptions, WeakOnline, WeakOptions};
use consistory_spec::{NAMED, ObjectModel};
use consistory_verdict::Budget;

use crate::args::{OutputFormat, WatchArgs};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION};
use crate::output;
use crate::report::quoted;
use client::Clients;
use levels::{LevelState, LevelWatcher};
use lines::{Incoming, Precheck, lines};
use watcher::{Ended, Finding, Judge, Stored, Summary, Watcher, WrongLine};

/// Number of complete calls that wait for one that ends later, and number of transactions kept.
const DEFAULT_WAITING_CALLS: usize = 1000;
const DEFAULT_KEPT_TRANSACTIONS: usize = 10_000;

/// Time of the search for an explanation at one return, and of a certification.
const SEARCH_BUDGET: Duration = Duration::from_secs(10);
/// Memory of the tables of a search, in bytes.
const SEARCH_MEMORY: u64 = 1 << 29;
/// Largest number of calls whose violation is certified and shrunk.
const MAX_CERTIFIED_CALLS: usize = 200;

pub(crate) fn watch(args: &WatchArgs) -> Result<u8, CliError> {
    let Some(name) = &args.object else { return watch_levels(args) };
    let object = NamedObject::load(name)?;
    let judges = object_models(&args.model)?.into_iter().map(|model| judge(args, &object, model));
    let mut watcher = Watcher::new(judges.collect(), args.window.unwrap_or(DEFAULT_WAITING_CALLS));
    // Without a choice of models, the finding is shown in the form for one model.
    let is_plain = watcher.judges.iter().all(|judge| judge.model.is_linearizability());
    let mut shown = vec![false; watcher.judges.len()];
    let mut clients = Clients::default();
    let precheck: Precheck = |text, number, source| {
        parse_event(text, number, source).map(drop).map_err(|error| error.into())
    };
    for incoming in lines(args, precheck)? {
        match incoming? {
            Incoming::Opened { source, client } => clients.open(source, client),
            Incoming::Line { source, number, text } if clients.counts(&source) => {
                watcher.line(&text, number, &source)?;
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
        if !is_plain {
            show_found(&watcher, clients.rejected, &mut shown, args, &object)?;
        }
        if watcher.is_over() {
            break;
        }
    }
    while !watcher.is_over() {
        watcher.end()?;
        let wrong = watcher.wrong_lines();
        if wrong.is_empty() {
            break;
        }
        wrong.into_iter().try_for_each(|line| clients.reject(&line.source, line.error))?;
    }
    let summary = watcher.summary(clients.rejected);
    if is_plain {
        for judge in &watcher.judges {
            let (finding, stored) = (judge.finding.as_ref(), judge.stored());
            let text = match args.format {
                OutputFormat::Text => output::for_terminal(page(finding, &summary, &stored)),
                OutputFormat::Json => json(None, finding, &summary, &stored),
            };
            output::print(text)?;
        }
    } else {
        show_found(&watcher, clients.rejected, &mut shown, args, &object)?;
        let mut text = String::new();
        for judge in watcher.judges.iter().filter(|judge| judge.finding.is_none()) {
            let stored = judge.stored();
            text += &match args.format {
                OutputFormat::Text => format!("{}: consistent{}\n", judge.model.id, kept(&stored)),
                OutputFormat::Json => json(Some(&judge.model), None, &summary, &stored),
            };
        }
        if args.format == OutputFormat::Text {
            text = output::for_terminal(format!(
                "{text}({})\n{}",
                extent(&summary),
                rejected_text(clients.rejected)
            ));
        }
        output::print(text)?;
    }
    let findings = || watcher.judges.iter().filter_map(|judge| judge.finding.as_ref());
    Ok(match findings().any(|finding| matches!(finding, Finding::Violation { .. })) {
        true => VIOLATION,
        false if clients.rejected > 0 => UNREADABLE,
        false if findings().next().is_some() => UNDECIDED,
        false => OK,
    })
}

/// Finds the models of objects to judge by; linearizability if none is named.
fn object_models(names: &[String]) -> Result<Vec<ObjectModel>, CliError> {
    let mut ids: Vec<String> = Vec::new();
    for name in names {
        match name.to_lowercase().as_str() {
            "all" => ids.extend(NAMED.iter().map(ToString::to_string)),
            id => ids.push(id.to_owned()),
        }
    }
    if ids.is_empty() {
        ids.push("linearizability".to_owned());
    }
    let mut models: Vec<ObjectModel> = Vec::new();
    for id in ids {
        let Some(model) = ObjectModel::named(&id) else {
            let hint = match Level::find(&id) {
                Some(_) => "isolation levels judge transactions: leave out --object".to_owned(),
                None => format!("the models of objects are {}, or all", NAMED.join(", ")),
            };
            return Err(CliError::with_hint(format!("{id} is not a model of objects"), hint));
        };
        if !models.iter().any(|known| known.id == model.id) {
            models.push(model);
        }
    }
    // Only linearizability may reject a call, so it comes first.
    models.sort_by_key(|model| !model.is_linearizability());
    Ok(models)
}

/// Builds the engine that judges by a model.
fn judge(args: &WatchArgs, object: &NamedObject, model: ObjectModel) -> Judge {
    let object = Arc::clone(object.object());
    if model.is_linearizability() {
        let options = OnlineOptions {
            configurations: args.configurations,
            whole: args.whole,
            pending: args.pending,
            overdue: args.overdue,
        };
        return Judge::linearizability(model, Online::new(object, options));
    }
    let options = WeakOptions {
        states: args.configurations,
        calls: args.kept,
        pending: args.pending,
        overdue: args.overdue,
        budget: Budget::unlimited().with_time(SEARCH_BUDGET).with_memory(SEARCH_MEMORY),
    };
    let online = WeakOnline::new(object, &model, options);
    Judge::weak(model, online)
}

/// Prints the findings that were not shown before.
fn show_found(
    watcher: &Watcher,
    rejected: u64,
    shown: &mut [bool],
    args: &WatchArgs,
    object: &NamedObject,
) -> Result<(), CliError> {
    let summary = watcher.summary(rejected);
    for (judge, shown) in watcher.judges.iter().zip(shown) {
        let Some(finding) = judge.finding.as_ref().filter(|_| !*shown) else { continue };
        *shown = true;
        let text = match args.format {
            OutputFormat::Json => {
                json(Some(&judge.model), Some(finding), &summary, &judge.stored())
            }
            OutputFormat::Text => {
                let mut text = model_page(judge, finding);
                if let Finding::Violation { .. } = finding
                    && !judge.model.is_linearizability()
                {
                    text += &certified(judge, object)?;
                }
                output::for_terminal(text)
            }
        };
        output::print(text)?;
    }
    Ok(())
}

/// Describes the finding of one of several models.
fn model_page(judge: &Judge, finding: &Finding) -> String {
    let id = &judge.model.id;
    match finding {
        Finding::Undecided { operation, reason } => {
            let (operation, reason) = (escaped(operation), escaped(reason));
            format!("{id}: undecided at {operation}: {reason}\n")
        }
        Finding::Violation { operation, call, line, ended, possible, running, .. } => {
            let (operation, call) = (escaped(operation), escaped(call));
            let why = match ended {
                Ended::Returned => {
                    format!("Line {line} is its return; nothing that happened before explains it.")
                }
                Ended::Failed => format!(
                    "Line {line} says that it failed; without it, nothing explains the calls before."
                ),
            };
            let text = format!("{id}: violation: {operation} {call}\n{why}\n");
            text + &alternatives(possible, running)
        }
    }
}

/// Judges the calls kept by an engine again, certifies the violation, and shows the smallest part of
/// them that is one.
fn certified(judge: &Judge, object: &NamedObject) -> Result<String, CliError> {
    let Some(history) = judge.history() else {
        return Ok("Not certified: calls were forgotten.\n".to_owned());
    };
    if history.len() > MAX_CERTIFIED_CALLS {
        return Ok(format!(
            "Not certified: {} calls are more than {MAX_CERTIFIED_CALLS}; `check` decides the \
             recording.\n",
            history.len()
        ));
    }
    certified_violation(judge, object, &history)
}

fn certified_violation(
    judge: &Judge,
    object: &NamedObject,
    history: &History,
) -> Result<String, CliError> {
    let court = Court::own_object(object.name(), Arc::clone(object.object()));
    let court = court.object_model(judge.model.clone())?.budget(SEARCH_BUDGET);
    let report = court.judge(history)?;
    let Some(verdict) = report.iter().next() else { return Ok(String::new()) };
    match verdict.outcome() {
        Outcome::Violation => {}
        Outcome::Undecided => {
            return Ok(format!("Not certified: {}\n", escaped(&verdict.explain_line())));
        }
        Outcome::Consistent => {
            return Err(CliError::with_hint(
                format!("{}: the violation has an explanation", judge.model.id),
                "this is a bug in Consistory",
            ));
        }
    }
    let shrunk = verdict.shrink()?;
    if !shrunk.is_violation() {
        return Ok("The violation is certified.\n".to_owned());
    }
    let part: String = shrunk.text().lines().map(|line| format!("    {line}\n")).collect();
    Ok(format!("The violation is certified. Its smallest part:\n\n{part}\n"))
}

/// Describes the values that a call could have returned, and the other running calls.
fn alternatives(possible: &[Value], running: &[String]) -> String {
    let mut text = String::new();
    let shown: Vec<String> = possible.iter().map(ToString::to_string).collect();
    if !shown.is_empty() {
        text += &format!("It could have returned {}.\n", shown.join(" or "));
    }
    if !running.is_empty() {
        text += &format!("Running at that time: {}.\n", escaped(&running.join(", ")));
    }
    text
}

/// Describes the calls that a weak model's engine disregarded.
fn kept(stored: &Stored) -> String {
    let mut notes = Vec::new();
    if stored.given_up > 0 {
        notes.push(format!("{} forgotten: see --kept", plural(&stored.given_up, "call")));
    }
    if stored.overdue > 0 {
        let calls = plural(&stored.overdue, "call");
        notes.push(format!("{calls} overdue, with returns that were ignored: see --overdue"));
    }
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

fn plural(count: &u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// Describes the extent of the input.
fn extent(summary: &Summary) -> String {
    let Summary { operations, lines, .. } = summary;
    format!("{} in {}", plural(operations, "operation"), plural(lines, "line"))
}

/// Judges isolation levels of transactions online.
fn watch_levels(args: &WatchArgs) -> Result<u8, CliError> {
    let mut levels = Vec::new();
    for name in &args.model {
        if ObjectModel::named(&name.to_lowercase()).is_some() {
            return Err(CliError::with_hint(
                format!("{name} is a model of objects, and no object is named"),
                format!("name it, as in `watch --object queue --model {name}`"),
            ));
        }
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

/// Describes the finding for linearizability as text.
fn page(finding: Option<&Finding>, summary: &Summary, stored: &Stored) -> String {
    verdict_text(finding, summary, stored) + &rejected_text(summary.rejected)
}

fn verdict_text(finding: Option<&Finding>, summary: &Summary, stored: &Stored) -> String {
    let Stored { most, given_up, overdue, .. } = stored;
    let seen = extent(summary);
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
        Some(Finding::Violation {
            operation, call, line, possible, running, explained, ..
        }) => {
            let text = format!(
                "violation: {} {} is not linearizable\n\
                 Line {line} is its return; nothing that happened before explains it.\n{}",
                escaped(operation),
                escaped(call),
                alternatives(possible, running)
            );
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

/// Describes the finding as a line of JSON; `model` is named if several may be judged.
fn json(
    model: Option<&ObjectModel>,
    finding: Option<&Finding>,
    summary: &Summary,
    stored: &Stored,
) -> String {
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
    let Summary { operations, lines, rejected } = summary;
    let rejected = match rejected {
        0 => String::new(),
        count => format!(",\"rejected\":{count}"),
    };
    let Stored { most, kept, calls, given_up, overdue } = stored;
    let (model, configurations) = match model {
        None => (String::new(), format!(r#""configurations":{{"most":{most},"kept":{kept}}}"#)),
        Some(model) if model.is_linearizability() => (
            format!(r#""model":{},"#, quoted(&model.id)),
            format!(r#""configurations":{{"most":{most},"kept":{kept}}}"#),
        ),
        Some(model) => {
            (format!(r#""model":{},"#, quoted(&model.id)), format!(r#""states":{{"kept":{kept}}}"#))
        }
    };
    format!(
        "{{{model}{found},\"operations\":{operations},\"lines\":{lines},{configurations},\"calls\":{{\"kept\":{calls},\"given_up\":{given_up},\"overdue\":{overdue}}}{rejected}}}\n"
    )
}
