//! A verdict in one line.

use consistory_history::{History, OpId};
use consistory_verdict::{Certificate, Edge, Judgement, Pattern};

use crate::judgement::RegisterJudgement;

use crate::narrative::shown_by;
use crate::proof::{Derivations, Kind, Reason, Shape, kind, leaves, reason, shape, turned};
use crate::text::{clean, counted, ended, grouped, never_ended, quoted, reference, width};

/// Largest width of the line, in columns.
const MAX_SUMMARY_COLUMNS: usize = 200;

/// Explains in one line, of at most 200 columns, the judgement and its reason.
pub(crate) fn explain_registers_line(
    history: &History,
    model: &str,
    judgement: &RegisterJudgement<'_>,
) -> String {
    let line = match judgement {
        Judgement::Consistent(certificate) => {
            format!("consistent: {}", shown_by(model, certificate))
        }
        Judgement::Violation { pattern, certificate } => {
            let name = clean(pattern.as_str(), 60);
            let room = MAX_SUMMARY_COLUMNS - width(&name) - 2;
            format!("{name}: {}", violation(history, pattern, certificate, room))
        }
        Judgement::Undecided(stopped) => format!("undecided: {stopped}"),
    };
    clean(&line, MAX_SUMMARY_COLUMNS)
}

fn violation(h: &History, pattern: &Pattern, certificate: &Certificate, room: usize) -> String {
    match certificate {
        Certificate::ThinAirRead { read } => {
            format!("{} reads a value that was never written", quoted(h, *read))
        }
        Certificate::Cycle { edges, .. } => {
            let derivations = Derivations::of(edges);
            let cycle = turned(derivations.flatten(edges.iter(), &mut Default::default()));
            bad_read(h, pattern, &cycle, &derivations).unwrap_or_else(|| around(h, &cycle, room))
        }
        Certificate::SplitOrder { writes: [a, b], .. } => format!(
            "neither of {} and {} can come first ({})",
            quoted(h, *a),
            quoted(h, *b),
            counted(leaves(certificate, 0).1, "case")
        ),
        Certificate::SplitRead { read, branches } => format!(
            "{} can have read from none of {} ({})",
            quoted(h, *read),
            counted(branches.len(), "write"),
            counted(leaves(certificate, 0).1, "case")
        ),
        Certificate::SplitLast { key, branches } if branches.is_empty() => {
            format!("{}, but no write of that value can be the last", ended(h, *key))
        }
        Certificate::SplitLast { key, branches } => format!(
            "{}, and none of {} can be the last ({})",
            ended(h, *key),
            counted(branches.len(), "write"),
            counted(leaves(certificate, 0).1, "case")
        ),
        Certificate::Order { .. }
        | Certificate::SessionOrders { .. }
        | Certificate::Witness { .. }
        | Certificate::Closure { .. }
        | Certificate::Views { .. } => "the certificate proves no violation".into(),
    }
}

/// Describes a pattern of one bad read.
fn bad_read<'a>(
    h: &History,
    pattern: &Pattern,
    cycle: &[&'a Edge],
    derivations: &Derivations<'a>,
) -> Option<String> {
    let past = match pattern {
        Pattern::FutureRead => {
            let is_late = |e: &&&Edge| {
                kind(&e.relation) == Kind::ReadsFrom && e.from > e.to && !h.is_initial(e.from)
            };
            let wr = cycle.iter().find(is_late)?;
            let (read, write) = (quoted(h, wr.to), quoted(h, wr.from));
            return Some(format!("{read} reads {write}, which follows it in its own session"));
        }
        Pattern::WriteCoInitRead | Pattern::WriteCoRead => "in its causal past",
        Pattern::WriteHbInitRead => "before it, by what its session had seen",
        _ => return None,
    };
    let (read, source, write) = cycle.iter().find_map(|edge| overwritten(edge, derivations))?;
    let (read, write) = (quoted(h, read), quoted(h, write));
    Some(match source {
        Some(source) if !h.is_initial(source) => {
            format!("{read} reads {}, but {write} had overwritten it {past}", quoted(h, source))
        }
        Some(_) => format!("{read} reads the initial value, but {write} is {past}"),
        None => format!("{read} reads what {write} had overwritten {past}"),
    })
}

/// Finds in an edge a read, its value, and the write that overwrites its source.
fn overwritten<'a>(
    edge: &'a Edge,
    derivations: &Derivations<'a>,
) -> Option<(OpId, Option<OpId>, OpId)> {
    match reason(edge, derivations.premises(edge)) {
        Reason::Overwritten { source, .. } => Some((edge.from, Some(source), edge.to)),
        Reason::Seen { read, .. } => Some((read, Some(edge.to), edge.from)),
        Reason::Other { .. } if kind(&edge.relation) == Kind::Overwritten => {
            Some((edge.from, None, edge.to))
        }
        Reason::Other { .. } => None,
    }
}

/// Writes a cycle, or the path to a pair that must not exist, as a chain; the middle is cut if it
/// is too long.
fn around(h: &History, cycle: &[&Edge], room: usize) -> String {
    let link =
        |edge: &Edge| format!("{} -{}-> ", quoted(h, edge.from), clean(edge.relation.as_str(), 12));
    let Some((first, last)) = cycle.first().zip(cycle.last()) else {
        return never_ended(h).unwrap_or("the certificate lists no edges".into());
    };
    let end = match shape(cycle) {
        Shape::Member(op) => {
            let set = clean(first.relation.as_str(), 80);
            return format!("{} is in {set}, which the check does not allow", quoted(h, op));
        }
        Shape::Pair(_, to) => format!("{}, in a relation that must be empty", quoted(h, to)),
        Shape::Cycle | Shape::Nothing => reference(h, first.from),
    };
    let closing = link(last);
    // After the links that fit there must be room for the count, the last link and the end.
    let reserved = width(&closing) + width(&end) + 16;
    let mut text = String::new();
    for (i, edge) in cycle[..cycle.len() - 1].iter().enumerate() {
        let next = link(edge);
        if i > 0 && width(&text) + width(&next) + reserved > room {
            text += &format!("... {} more ... ", grouped(cycle.len() - 1 - i));
            break;
        }
        text += &next;
    }
    text + &closing + &end
}
