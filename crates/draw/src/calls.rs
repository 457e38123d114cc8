//! Histories of an object's calls in words: the reason of a verdict, and the calls on a time line.

use consistory_history::{History, OpId, Value};
use consistory_verdict::{
    Attempt, Instead, Linearization, ObjectCertificate, Stopped, Unexplained,
};

use crate::intervals::{self, Bar, Diagram, Look, diagram, shown_attempt};
use crate::text::{clean, counted, notation, quoted, reference, width};

/// Largest number of operations of an order that are listed.
const MAX_LISTED_OPERATIONS: usize = 12;
/// Largest number of attempts that are described.
const MAX_ATTEMPTS_SHOWN: usize = 3;
/// Default width of the diagram, in columns.
pub(crate) const USUAL_COLUMNS: usize = 116;
/// Largest number of calls in the diagram.
const MAX_CALLS: usize = 24;

/// The certificate of a verdict on calls, or the reason why there is none.
pub(crate) type CallProof<'a> = Result<&'a ObjectCertificate, &'a Stopped>;

/// Explains in plain sentences the reason of a verdict on a history of calls.
///
/// `instead` has an entry for each attempt of a violation, as far as they are known.
pub(crate) fn explain_calls(
    history: &History,
    model: &str,
    proof: CallProof<'_>,
    instead: &[Option<Instead>],
    columns: usize,
) -> String {
    let model = clean(model, 80);
    let mut text = String::new();
    match proof {
        Ok(ObjectCertificate::Linearization(linearization)) => {
            text += &format!("{model}: consistent. {}\n", tell_order(history, linearization));
        }
        Ok(ObjectCertificate::Unexplained(unexplained)) => {
            text += &format!("{model}: violation. {}.\n\n", culprit(history, unexplained));
            text += &calls_text(history, proof, columns);
            text += "\n";
            for (i, attempt) in unexplained.attempts.iter().enumerate().take(MAX_ATTEMPTS_SHOWN) {
                let instead = instead.get(i).and_then(Option::as_ref);
                text += &tell_attempt(history, &model, attempt, instead);
            }
            let further = unexplained.attempts.len().saturating_sub(MAX_ATTEMPTS_SHOWN);
            if further > 0 {
                text += &format!("  And {} like these.\n", counted(further, "attempt"));
            }
        }
        Ok(ObjectCertificate::Core(core)) => {
            let pattern = clean(core.pattern.as_str(), 60);
            let culprit = core.prefix.as_ref().map_or_else(String::new, |prefix| {
                let last = quoted(history, prefix.last);
                format!("Nothing explains {last}, but all that returned before it is explained. ")
            });
            text += &format!("{model}: violation, {pattern}. {culprit}These calls show it:\n\n");
            text += &calls_text(history, proof, columns);
        }
        Err(stopped) => text += &format!("{model}: undecided, {stopped}.\n"),
    }
    text
}

/// Explains in one line the reason of a verdict on a history of calls.
pub(crate) fn explain_calls_line(history: &History, proof: CallProof<'_>) -> String {
    match proof {
        Ok(ObjectCertificate::Linearization(linearization)) => {
            format!("consistent: {}", tell_order(history, linearization))
        }
        Ok(ObjectCertificate::Unexplained(unexplained)) => culprit(history, unexplained),
        Ok(ObjectCertificate::Core(core)) => {
            let ops: Vec<String> = core
                .operations
                .iter()
                .take(MAX_LISTED_OPERATIONS)
                .map(|&op| quoted(history, op))
                .collect();
            let dots = if core.operations.len() > MAX_LISTED_OPERATIONS { ", …" } else { "" };
            format!("{}: {}{dots}", clean(core.pattern.as_str(), 60), ops.join(", "))
        }
        Err(stopped) => format!("undecided: {stopped}"),
    }
}

fn culprit(history: &History, unexplained: &Unexplained) -> String {
    match unexplained.returned.split_last() {
        None => "Nothing explains the history".to_owned(),
        Some((&last, [])) => format!("Nothing explains {}", quoted(history, last)),
        Some((&last, [_])) => {
            format!(
                "Nothing explains {} after the call that returned before it",
                quoted(history, last)
            )
        }
        Some((&last, before)) => format!(
            "Nothing explains {} after the {} that returned before it",
            quoted(history, last),
            counted(before.len(), "call"),
        ),
    }
}

fn tell_order(history: &History, linearization: &Linearization) -> String {
    let order = &linearization.order;
    let listed: Vec<String> =
        order.iter().take(MAX_LISTED_OPERATIONS).map(|&op| reference(history, op)).collect();
    let dots = if order.len() > MAX_LISTED_OPERATIONS { ", …" } else { "" };
    match order.len() {
        0 => "Nothing took effect".to_owned(),
        n => format!("{} in the order {}{dots}", counted(n, "call"), listed.join(", ")),
    }
}

fn tell_attempt(
    history: &History,
    model: &str,
    attempt: &Attempt,
    instead: Option<&Instead>,
) -> String {
    let order = &attempt.linearization.order;
    let skipped = order.len().saturating_sub(MAX_LISTED_OPERATIONS);
    let listed: Vec<String> = order[skipped..].iter().map(|&op| reference(history, op)).collect();
    let mut text = match (order.len(), skipped) {
        (0, _) => "  At the start,".to_owned(),
        (_, 0) => format!("  After {},", listed.join(" ")),
        (_, skipped) => {
            format!("  After {} and {},", counted(skipped, "call"), listed.join(" "))
        }
    };
    let it = reference(history, attempt.unexplained);
    let shown = |value: &Option<Value>| match value {
        Some(value) => format!("{it} would return {}", clean(&value.to_string(), 40)),
        None => format!("{it} would not be possible"),
    };
    match instead {
        None => text += &format!(" {it} cannot come next.\n"),
        Some(Instead { least, most }) if least == most && model == "linearizability" => {
            text += &format!(" {}.\n", shown(most));
        }
        Some(Instead { least, most }) if least == most => {
            text += &format!(
                " {}, whether it sees all of these calls or only those that it must see; no \
                 choice in between explains it.\n",
                shown(most)
            );
        }
        Some(Instead { least, most }) => {
            text += &format!(
                " {} if it sees all of these calls, and {} if it sees only those that it must \
                 see; no choice in between explains it.\n",
                shown(most),
                shown(least)
            );
        }
    }
    text
}

/// Draws the relevant calls as bars on a time line, for a terminal.
///
/// A number after a call is its position in the shown linearization, `?` marks the call that cannot
/// be explained, which is also red, and a bar that ends with dots has not returned. If three calls
/// do not fit next to each other, each has its own line.
fn calls_text(history: &History, proof: CallProof<'_>, columns: usize) -> String {
    let needs = |bar: &Bar| (width(&label(history, bar)) + 3) as f64;
    let mut most = MAX_CALLS;
    let (diagram, places, names, margin) = loop {
        let diagram = diagram(history, proof, most);
        let places = diagram.places(2.0, needs);
        let names: Vec<String> = diagram.lanes.iter().map(|name| clean(name, 16)).collect();
        let margin = names.iter().map(|name| width(name)).max().unwrap_or(0);
        // The end of a bar and the margin with the names need additional room.
        let room = columns.saturating_sub(margin + 6) as f64;
        if places.last().is_none_or(|&end| end <= room) {
            break (diagram, places, names, margin);
        }
        if diagram.bars.len() <= 3 {
            return calls_list(history, &intervals::diagram(history, proof, MAX_CALLS), columns);
        }
        most = diagram.bars.len() - 1;
    };
    let mut text = String::new();
    for (lane, name) in names.iter().enumerate() {
        text += &format!("  {name}{} ", " ".repeat(margin - width(name)));
        let mut column = 0;
        for bar in diagram.bars.iter().filter(|bar| bar.lane == lane) {
            let (from, to) = (places[bar.from] as usize, places[bar.to] as usize);
            text += &" ".repeat(from.saturating_sub(column));
            let label = label(history, bar);
            let filling = (to - from).saturating_sub(width(&label) + 2);
            let end = if bar.look == Look::Open { "╌" } else { "┤" };
            let drawn = format!("├ {label} {}{end}", "─".repeat(filling.saturating_sub(1)));
            text += &match bar.look {
                Look::Failing => format!("\u{1b}[31m{drawn}\u{1b}[0m"),
                Look::Open => format!("\u{1b}[2m{drawn}\u{1b}[0m"),
                Look::Returned => drawn.clone(),
            };
            column = from + width(&drawn);
        }
        text.push('\n');
    }
    text + &hidden_note(&diagram)
}

/// Lists calls in the order of their starts, one per line.
fn calls_list(history: &History, diagram: &Diagram, columns: usize) -> String {
    let mut bars: Vec<&Bar> = diagram.bars.iter().collect();
    bars.sort_by_key(|bar| (bar.from, bar.to));
    let mut text = String::new();
    for bar in bars {
        let open = if bar.look == Look::Open { " ╌" } else { "" };
        let line = format!("  {} {}{open}", reference(history, bar.op), label(history, bar));
        let line = clean(&line, columns.max(16));
        text += &match bar.look {
            Look::Failing => format!("\u{1b}[31m{line}\u{1b}[0m\n"),
            Look::Open => format!("\u{1b}[2m{line}\u{1b}[0m\n"),
            Look::Returned => format!("{line}\n"),
        };
    }
    text + &hidden_note(diagram)
}

fn hidden_note(diagram: &Diagram) -> String {
    match diagram.hidden {
        0 => String::new(),
        n => format!("  ({} before these not shown)\n", counted(n, "call")),
    }
}

/// Returns the label of a bar.
pub(crate) fn label(history: &History, bar: &Bar) -> String {
    let call = match bar.look {
        // Its return is ignored.
        Look::Open => {
            let shown = notation(history, bar.op);
            shown.split(" => ").next().unwrap_or_default().to_owned()
        }
        _ => notation(history, bar.op),
    };
    match (bar.number, bar.look) {
        (_, Look::Failing) => format!("{call} ?"),
        (Some(number), _) => format!("{call} #{number}"),
        (None, _) => call,
    }
}

/// Lists the calls visible to each call in the shown attempt or execution, for calls that do not
/// see all others.
pub(crate) fn tell_visibility(history: &History, proof: CallProof<'_>) -> Vec<String> {
    let linearization = match proof {
        Ok(ObjectCertificate::Linearization(linearization)) => Some(linearization),
        _ => shown_attempt(proof).map(|attempt| &attempt.linearization),
    };
    let Some(Linearization { order, vis: Some(vis) }) = linearization else { return Vec::new() };
    let names = |ops: &[OpId]| match ops {
        [] => "nothing".to_owned(),
        ops => ops.iter().map(|&op| reference(history, op)).collect::<Vec<_>>().join(", "),
    };
    order
        .iter()
        .zip(vis)
        .enumerate()
        .filter(|(i, (_, seen))| seen.len() < *i)
        .take(MAX_LISTED_OPERATIONS)
        .map(|(_, (&op, seen))| format!("{} sees {}", reference(history, op), names(seen)))
        .collect()
}
