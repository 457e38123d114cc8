//! Orders that show the causal order to be one: CC and CCv.
//!
//! An order that extends `po` and `wr` proves that `co = (po | wr)+` is irreflexive, and replaying
//! it gives each operation's causal past: for each session how much of it is in the past. CC then
//! asks that no read of x from w has another write of x causally between w and itself, and CCv that
//! w is the last, in the order given, of all writes of x in the read's past. In each session only
//! the last write of x that is in the past matters: the ones before it are overwritten, or ordered
//! before it, too.
//!
//! Cost: a step for each read and each session that writes its key, each with a binary search. A
//! past is stored only where it is not that of the session's previous operation, that is where a
//! read finds something new: at most four bytes for each such read and each session.

use consistory_history::{OpId, SessionId};

use crate::reads_from::ReadsFrom;
use crate::replay::Cursor;
use crate::{Rejection, name};

/// Checks an order for CC.
pub(crate) fn weak(wr: &ReadsFrom<'_>, order: &[OpId]) -> Result<(), Rejection> {
    let pasts = Pasts::new(wr, order)?;
    let writers = Writers::new(wr);
    for (read, write) in reads(wr) {
        for last in writers.last_in_past(wr, &pasts, read) {
            // What comes earlier in the order has no later write in its past: a cheaper test first.
            if last != write && !pasts.comes_earlier(last, write) && pasts.holds(last, write) {
                return Err(overwritten(wr, read, write, last));
            }
        }
    }
    Ok(())
}

/// Checks an order for CCv.
pub(crate) fn convergent(wr: &ReadsFrom<'_>, order: &[OpId]) -> Result<(), Rejection> {
    let pasts = Pasts::new(wr, order)?;
    let writers = Writers::new(wr);
    for (read, write) in reads(wr) {
        let latest =
            writers.last_in_past(wr, &pasts, read).max_by_key(|last| pasts.place[last.index()]);
        // Nothing in the past: `pasts` has shown that a recorded write would be there.
        if let Some(latest) = latest
            && latest != write
        {
            return Err(overwritten(wr, read, write, latest));
        }
    }
    Ok(())
}

/// Iterates over the reads and what they read from.
fn reads(wr: &ReadsFrom<'_>) -> impl Iterator<Item = (OpId, OpId)> {
    wr.history.ops().filter_map(|read| wr.source(read).map(|write| (read, write)))
}

fn overwritten(wr: &ReadsFrom<'_>, read: OpId, write: OpId, last: OpId) -> Rejection {
    let [read, write, last] = [read, write, last].map(|op| name(wr.history, op));
    Rejection::Overwritten { read, write, last }
}

/// What is causally before each operation.
struct Pasts<'a> {
    wr: &'a ReadsFrom<'a>,
    /// Rows of one entry a session: operations of the session with a smaller id are in the past.
    /// An operation's own session is not looked up there, all that precedes it is in its past.
    rows: Vec<u32>,
    /// For each operation its row.
    row: Vec<u32>,
    /// For each operation its place in the order.
    place: Vec<u32>,
}

impl<'a> Pasts<'a> {
    /// Replays an order, which has to list all that counts and to extend `po` and `wr`.
    fn new(wr: &'a ReadsFrom<'a>, order: &[OpId]) -> Result<Self, Rejection> {
        let history = wr.history;
        let width = history.session_count();
        let mut cursor = Cursor::new(wr);
        let zeros = vec![0; history.len()];
        let mut pasts = Pasts { wr, rows: vec![0; width], row: zeros.clone(), place: zeros };
        let mut current = vec![0; width];
        for (i, &op) in order.iter().enumerate() {
            cursor.take(op, "order", i)?;
            let session = history.session_of(op).index();
            if let Some(write) = wr.source(op).filter(|&write| !history.is_initial(write)) {
                pasts.row[op.index()] = current[session];
                if !pasts.holds(op, write) {
                    current[session] = pasts.join(current[session], write);
                }
            }
            pasts.row[op.index()] = current[session];
            pasts.place[op.index()] = i as u32;
        }
        for session in history.sessions() {
            cursor.complete(session, "order")?;
        }
        Ok(pasts)
    }

    /// Adds a row: what is in a row, and a write with its past.
    fn join(&mut self, row: u32, write: OpId) -> u32 {
        let width = self.wr.history.session_count();
        let (a, b) = (row as usize * width, self.row[write.index()] as usize * width);
        let start = self.rows.len();
        self.rows.extend_from_within(a..a + width);
        let (old, new) = self.rows.split_at_mut(start);
        for (bound, other) in new.iter_mut().zip(&old[b..b + width]) {
            *bound = (*bound).max(*other);
        }
        new[self.wr.history.session_of(write).index()] = write.0 + 1;
        (start / width) as u32
    }

    /// Says whether a recorded operation comes earlier in the order than a write.
    #[inline]
    fn comes_earlier(&self, op: OpId, write: OpId) -> bool {
        self.place.get(write.index()).is_some_and(|&place| self.place[op.index()] < place)
    }

    /// Gives the smallest id of a session's operations that are not before an operation.
    #[inline]
    fn bound(&self, op: OpId, session: SessionId) -> u32 {
        let history = self.wr.history;
        if history.session_of(op) == session {
            return op.0;
        }
        self.rows[self.row[op.index()] as usize * history.session_count() + session.index()]
    }

    /// Says whether a write is before an operation.
    #[inline]
    fn holds(&self, op: OpId, write: OpId) -> bool {
        let history = self.wr.history;
        history.is_initial(write) || write.0 < self.bound(op, history.session_of(write))
    }
}

/// The recorded writes that count, of each key, of each session, in program order.
struct Writers(Vec<Vec<(SessionId, Vec<OpId>)>>);

impl Writers {
    fn new(wr: &ReadsFrom<'_>) -> Self {
        let mut writers: Vec<Vec<(SessionId, Vec<OpId>)>> =
            vec![Vec::new(); wr.history.key_count()];
        for op in wr.history.ops() {
            if let Some(key) = wr.writes(op) {
                let session = wr.history.session_of(op);
                match writers[key.index()].last_mut() {
                    Some((last, writes)) if *last == session => writes.push(op),
                    _ => writers[key.index()].push((session, vec![op])),
                }
            }
        }
        Writers(writers)
    }

    /// Iterates over each session's last write of the read's key that is before the read.
    fn last_in_past(
        &self,
        wr: &ReadsFrom<'_>,
        pasts: &Pasts<'_>,
        read: OpId,
    ) -> impl Iterator<Item = OpId> {
        let of_key = wr.reads(read).map_or(&[][..], |key| &self.0[key.index()]);
        of_key.iter().filter_map(move |(session, writes)| {
            let bound = pasts.bound(read, *session);
            let before = writes.partition_point(|write| write.0 < bound);
            before.checked_sub(1).map(|last| writes[last])
        })
    }
}
