//! Orders in real time: linearizability of reads and writes.
//!
//! A history is linearizable iff its operations have a total order in which each read takes the last
//! write of its key, and an operation that returned before another one started comes before it. An
//! operation of unknown status never returned: it comes before nothing in real time.
//!
//! An order respects real time iff no operation returned before the start of an operation that
//! precedes it in the order. So the checker remembers only the latest start so far.
//!
//! Cost: linear in the length of the order.

use consistory_history::{History, OpId, Status};

use crate::limits::Limits;
use crate::reads_from::ReadsFrom;
use crate::{Rejection, name};

/// Checks an order of all operations that count.
pub(crate) fn linear(
    wr: &ReadsFrom<'_>,
    order: &[OpId],
    limits: Limits<'_>,
) -> Result<(), Rejection> {
    let history = wr.history;
    let mut last: Vec<OpId> = history.keys().map(|key| history.initial_write(key)).collect();
    let mut is_taken = vec![false; history.len()];
    // Last operation of each session that is known to have taken effect.
    let mut of_session: Vec<Option<OpId>> = vec![None; history.session_count()];
    let mut latest: Option<(i64, OpId)> = None;
    for (i, &op) in order.iter().enumerate() {
        limits.step(i)?;
        let part = || format!("order[{i}]");
        if op.index() >= history.len() || !wr.counts(op) {
            return Err(Rejection::NotRecorded { part: part(), op: name(history, op) });
        }
        if std::mem::replace(&mut is_taken[op.index()], true) {
            return Err(Rejection::OutOfOrder { part: part(), op: name(history, op) });
        }
        let Some(time) = history.time(op) else { return Err(untimed()) };
        if let Some((start, later)) = latest
            && returned(history, op).is_some_and(|end| end < start)
        {
            let (before, after) = (name(history, op), name(history, later));
            return Err(Rejection::NotInRealTime { part: part(), before, after });
        }
        if latest.is_none_or(|(start, _)| start < time.start) {
            latest = Some((time.start, op));
        }
        if history.is_certain(op) {
            let before = of_session[history.session_of(op).index()].replace(op);
            if before.is_some_and(|before| before > op) {
                return Err(Rejection::OutOfOrder { part: part(), op: name(history, op) });
            }
        }
        if let (Some(write), Some(key)) = (wr.source(op), wr.reads(op))
            && last[key.index()] != write
        {
            return Err(Rejection::Overwritten {
                read: name(history, op),
                write: name(history, write),
                last: name(history, last[key.index()]),
            });
        }
        if let Some(key) = wr.writes(op) {
            last[key.index()] = op;
        }
    }
    match history.ops().find(|&op| wr.counts(op) && !is_taken[op.index()]) {
        Some(op) => Err(Rejection::Missing { part: "order".into(), op: name(history, op) }),
        None => Ok(()),
    }
}

/// Returns the time at which an operation is known to have returned, if any.
fn returned(history: &History, op: OpId) -> Option<i64> {
    history.time(op)?.end.filter(|_| history.status(op) != Status::Unknown)
}

/// Checks whether an operation returned before another one started; an initial write precedes every
/// other operation. If a session's next operation starts at the time at which one returns, the
/// session order decides.
pub(crate) fn returned_before(history: &History, before: OpId, after: OpId) -> bool {
    if history.is_initial(before) || history.is_initial(after) {
        return history.is_initial(before) && !history.is_initial(after);
    }
    let (Some(end), Some(time)) = (returned(history, before), history.time(after)) else {
        return false;
    };
    let is_next = history.session_of(before) == history.session_of(after) && before < after;
    end < time.start || (is_next && end == time.start)
}

fn untimed() -> Rejection {
    Rejection::Unsupported { what: "operations without times" }
}
