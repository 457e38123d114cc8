//! Orders that are replayed: SC and CM.
//!
//! A history satisfies SC iff its operations have a total order that extends `po` and in which each
//! read takes the last write of its key. It satisfies CM iff for each session there is such an
//! order of the operations causally before the session's last operation, in which only the
//! session's own reads need to take the last write; every such order contains `hb_o`. An order that
//! contains more than the causal past is an equally good proof.
//!
//! Cost: linear in the length of the orders. Threads share the orders of CM.

use consistory_history::{OpId, SessionId};
use consistory_work::side_by_side;

use crate::limits::Limits;
use crate::reads_from::ReadsFrom;
use crate::{Rejection, name};

/// Number of groups of sessions for each thread.
const ORDERS_PER_THREAD: usize = 8;

/// Checks an order for SC.
pub(crate) fn all(wr: &ReadsFrom<'_>, order: &[OpId], limits: Limits<'_>) -> Result<(), Rejection> {
    Replay::new(wr).run(order, None, "order", limits)
}

/// Checks the orders of all sessions for CM.
pub(crate) fn sessions(
    wr: &ReadsFrom<'_>,
    orders: &[(SessionId, Vec<OpId>)],
    limits: Limits<'_>,
) -> Result<(), Rejection> {
    let history = wr.history;
    let mut order_of: Vec<Option<&[OpId]>> = vec![None; history.session_count()];
    for (session, order) in orders {
        match order_of.get_mut(session.index()) {
            Some(slot @ None) => *slot = Some(order),
            _ => return Err(Rejection::BadName { part: format!("orders.#{}", session.0) }),
        }
    }
    // Each piece takes every `pieces`-th session; if there are few sessions, each order is a piece
    // by itself.
    let pieces = history.session_count().min(ORDERS_PER_THREAD * limits.0.jobs.max(1));
    let replayed = side_by_side(pieces, limits.0.jobs, |piece| {
        let mut replay = Replay::new(wr);
        for session in history.sessions().skip(piece).step_by(pieces) {
            let part = format!("orders.{}", history.session_name(session));
            let order = order_of[session.index()].unwrap_or_default();
            replay.run(order, Some(session), &part, limits)?;
        }
        Ok(())
    });
    replayed.into_iter().collect()
}

/// State of a replay.
struct Replay<'a> {
    wr: &'a ReadsFrom<'a>,
    cursor: Cursor<'a>,
    /// Last write of each key.
    last: Vec<OpId>,
}

impl<'a> Replay<'a> {
    fn new(wr: &'a ReadsFrom<'a>) -> Self {
        let last = wr.history.keys().map(|key| wr.history.initial_write(key)).collect();
        Replay { wr, cursor: Cursor::new(wr), last }
    }

    /// Replays an order and then returns to the start. With a session, the order must contain all
    /// its operations, and its reads must take the last write; without one, this applies to every
    /// session.
    fn run(
        &mut self,
        order: &[OpId],
        session: Option<SessionId>,
        part: &str,
        limits: Limits<'_>,
    ) -> Result<(), Rejection> {
        let (wr, history) = (self.wr, self.wr.history);
        for (i, &op) in order.iter().enumerate() {
            limits.step(i)?;
            self.cursor.take(op, part, i)?;
            if let Some(write) = wr.source(op)
                && session.is_none_or(|session| session == history.session_of(op))
                && let Some(key) = wr.reads(op)
                && self.last[key.index()] != write
            {
                return Err(Rejection::Overwritten {
                    read: name(history, op),
                    write: name(history, write),
                    last: name(history, self.last[key.index()]),
                });
            }
            if let Some(key) = wr.writes(op) {
                self.last[key.index()] = op;
            }
        }
        match session {
            Some(session) => self.cursor.complete(session, part)?,
            None => {
                for session in history.sessions() {
                    self.cursor.complete(session, part)?;
                }
            }
        }
        self.reset(order);
        Ok(())
    }

    /// Returns to the start; undoing only the changes of the order keeps many short orders cheap.
    fn reset(&mut self, order: &[OpId]) {
        let history = self.wr.history;
        if order.len() > self.last.len() + self.cursor.next.len() {
            *self = Replay::new(self.wr);
            return;
        }
        for &op in order {
            let session = history.session_of(op).index();
            self.cursor.next[session] = self.cursor.first[session];
            if let Some(key) = self.wr.writes(op) {
                self.last[key.index()] = history.initial_write(key);
            }
        }
    }
}

/// Next operation of each session, in an order that extends `po` and `wr`.
pub(crate) struct Cursor<'a> {
    wr: &'a ReadsFrom<'a>,
    /// First counting operation of each session, or the end of the session.
    first: Vec<OpId>,
    /// Next counting operation of each session, or the end of the session.
    next: Vec<OpId>,
    /// End of each session: the id after its last operation.
    end: Vec<OpId>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(wr: &'a ReadsFrom<'a>) -> Self {
        let history = wr.history;
        let end: Vec<OpId> = history
            .sessions()
            .map(|session| history.op_at(session, history.session_ops(session).len() as u32))
            .collect();
        let first: Vec<OpId> = history
            .sessions()
            .map(|session| counting(wr, history.op_at(session, 0), end[session.index()]))
            .collect();
        Cursor { wr, next: first.clone(), first, end }
    }

    /// Takes the `i`th operation of the order, or fails if the operation cannot come now.
    #[inline]
    pub(crate) fn take(&mut self, op: OpId, part: &str, i: usize) -> Result<(), Rejection> {
        let history = self.wr.history;
        let part = || format!("{part}[{i}]");
        if history.is_initial(op) {
            return Err(Rejection::NotRecorded { part: part(), op: name(history, op) });
        }
        let session = history.session_of(op).index();
        if self.next[session] != op {
            return Err(Rejection::OutOfOrder { part: part(), op: name(history, op) });
        }
        if let Some(write) = self.wr.source(op)
            && !history.is_initial(write)
            && self.next[history.session_of(write).index()] <= write
        {
            let (read, write) = (name(history, op), name(history, write));
            return Err(Rejection::BeforeItsWrite { part: part(), read, write });
        }
        self.next[session] = counting(self.wr, OpId(op.0 + 1), self.end[session]);
        Ok(())
    }

    /// Fails if not all operations of a session were taken.
    pub(crate) fn complete(&self, session: SessionId, part: &str) -> Result<(), Rejection> {
        let next = self.next[session.index()];
        if next == self.end[session.index()] {
            return Ok(());
        }
        Err(Rejection::Missing { part: part.into(), op: name(self.wr.history, next) })
    }
}

/// Returns the first counting operation from `from` on, or `end`.
#[inline]
fn counting(wr: &ReadsFrom<'_>, from: OpId, end: OpId) -> OpId {
    let mut op = from;
    while op < end && !wr.counts(op) {
        op.0 += 1;
    }
    op
}
