//! CC and CCv: an order proves that the causal order is acyclic.
//!
//! An order that extends `po` and `wr` proves that `co = (po | wr)+` is irreflexive. Replaying it
//! computes the causal past of each operation: the length of the prefix of each session that it
//! contains. CC then requires that no read of x from w has another write of x causally between w
//! and itself; CCv requires that w is the last, in the given order, of all writes of x in the
//! read's past.
//!
//! ```text
//!   the writes of x in the order:   ... w  w1  w2  w3 ... r
//!                                          └────────┘
//!                                        only these can be causally after w and before r
//! ```
//!
//! The given order extends the causal order. So both conditions concern only the writes of x
//! between w and r in the order, and usually there are few of them. If there are many, the checker
//! looks up the last write of each session in the read's past instead: the session's earlier writes
//! are overwritten by it or ordered before it.
//!
//! Cost: one replay, and for each read the writes of its key between w and r, or one binary search
//! per session if that is less. The threads share the reads. A past is stored only where it differs
//! from that of the session's previous operation, that is, where a read finds something new: four
//! bytes per such read and session.

use std::sync::OnceLock;

use consistory_history::{KeyId, OpId, SessionId};

use crate::limits::Limits;
use crate::reads_from::ReadsFrom;
use crate::replay::Cursor;
use crate::{Rejection, name};

/// Number of writes between a source and its read that are examined one by one, for each session
/// that writes the key.
const WRITES_PER_SESSION: usize = 4;

/// Checks an order for CC.
pub(crate) fn weak(
    wr: &ReadsFrom<'_>,
    order: &[OpId],
    limits: Limits<'_>,
) -> Result<(), Rejection> {
    let replayed = Replayed::new(wr, order, limits)?;
    limits.each(wr.history.len(), |read| {
        replayed.each_known_between(OpId(read as u32), |write, last| replayed.holds(last, write))
    })
}

/// Checks an order for CCv.
pub(crate) fn convergent(
    wr: &ReadsFrom<'_>,
    order: &[OpId],
    limits: Limits<'_>,
) -> Result<(), Rejection> {
    let replayed = Replayed::new(wr, order, limits)?;
    limits
        .each(wr.history.len(), |read| replayed.each_known_between(OpId(read as u32), |_, _| true))
}

/// A replayed order, with the causal past of each operation and the writes of each key.
struct Replayed<'a> {
    wr: &'a ReadsFrom<'a>,
    /// Rows with one entry per session: operations of the session with smaller ids are in the past.
    /// The entry for an operation's own session is not used, because all its predecessors in its
    /// session are in its past.
    rows: Vec<u32>,
    /// Row of each operation.
    row: Vec<u32>,
    /// For each write, its position among the writes of all keys. For each plain read, the position
    /// after the last write of its key that precedes the read in the order.
    place: Vec<u32>,
    writes: Writes,
}

impl<'a> Replayed<'a> {
    /// Replays an order that must list every operation that counts and extend `po` and `wr`.
    fn new(wr: &'a ReadsFrom<'a>, order: &[OpId], limits: Limits<'_>) -> Result<Self, Rejection> {
        let history = wr.history;
        let width = history.session_count();
        limits.reserve::<u32>(4 * history.len())?;
        let mut cursor = Cursor::new(wr);
        let zeros = vec![0; history.len()];
        let writes = Writes::new(wr);
        let mut ends = writes.starts.clone();
        let mut replayed =
            Replayed { wr, rows: vec![0; width], row: zeros.clone(), place: zeros, writes };
        // The row of each session's next operation.
        let mut current = vec![0; width];
        for (i, &op) in order.iter().enumerate() {
            limits.step(i)?;
            cursor.take(op, "order", i)?;
            let session = history.session_of(op);
            let row = &mut current[session.index()];
            if let Some(write) = wr.source(op).filter(|&write| !history.is_initial(write)) {
                let from = history.session_of(write);
                if from != session && replayed.rows[*row as usize * width + from.index()] <= write.0
                {
                    if replayed.rows.len() == replayed.rows.capacity() {
                        // The vector is about to grow to twice its size.
                        limits.reserve::<u32>(3 * replayed.rows.len())?;
                    }
                    *row = replayed.join(*row, write);
                }
            }
            replayed.row[op.index()] = *row;
            if let Some(key) = wr.writes(op) {
                let place = &mut ends[key.index()];
                replayed.place[op.index()] = *place;
                replayed.writes.writes[*place as usize] = op;
                *place += 1;
            } else if let Some(key) = wr.reads(op) {
                replayed.place[op.index()] = ends[key.index()];
            }
        }
        for session in history.sessions() {
            cursor.complete(session, "order")?;
        }
        Ok(replayed)
    }

    /// Adds a row that joins an existing row with a write and its past.
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

    /// Returns the smallest id of a session's operations that are not causally before an operation.
    #[inline]
    fn bound(&self, op: OpId, session: SessionId) -> u32 {
        let history = self.wr.history;
        if history.session_of(op) == session {
            return op.0;
        }
        self.rows[self.row[op.index()] as usize * history.session_count() + session.index()]
    }

    /// Returns whether a write is causally before an operation.
    #[inline]
    fn holds(&self, op: OpId, write: OpId) -> bool {
        let history = self.wr.history;
        history.is_initial(write) || write.0 < self.bound(op, history.session_of(write))
    }

    /// Rejects a read if `is_bad` holds for a write of its key that lies between its source and the
    /// read in the order and is causally before the read. The last such write of each session may
    /// stand for all of them.
    #[inline]
    fn each_known_between(
        &self,
        read: OpId,
        is_bad: impl Fn(OpId, OpId) -> bool,
    ) -> Result<(), Rejection> {
        let (Some(source), Some(key)) = (self.wr.source(read), self.wr.reads(read)) else {
            return Ok(());
        };
        let start = match self.wr.history.is_initial(source) {
            true => self.writes.starts[key.index()],
            false => self.place[source.index()] + 1,
        };
        let between = &self.writes.writes[start as usize..self.place[read.index()] as usize];
        let sessions = self.wr.history.session_count();
        let bad = if between.len() <= WRITES_PER_SESSION * sessions {
            between.iter().copied().find(|&last| self.holds(read, last) && is_bad(source, last))
        } else {
            let known =
                |session| self.writes.last_of(self.wr, key, session, self.bound(read, session));
            let is_between = |last: &OpId| self.place[last.index()] >= start;
            let mut lasts = self.wr.history.sessions().filter_map(known).filter(is_between);
            lasts.find(|&last| is_bad(source, last))
        };
        match bad {
            None => Ok(()),
            Some(last) => {
                let [read, write, last] = [read, source, last].map(|op| name(self.wr.history, op));
                Err(Rejection::Overwritten { read, write, last })
            }
        }
    }
}

/// Recorded writes that count, grouped by key.
struct Writes {
    /// For each key, the number of writes of smaller keys; finally, the number of all writes.
    starts: Vec<u32>,
    /// Writes of each key, in the order of the certificate.
    writes: Vec<OpId>,
    /// Writes of each key by id, that is, session by session in program order; built when first
    /// needed.
    by_id: OnceLock<Vec<OpId>>,
}

impl Writes {
    /// Allocates space for the writes of each key.
    fn new(wr: &ReadsFrom<'_>) -> Self {
        let mut starts = vec![0; wr.history.key_count() + 1];
        for key in wr.history.ops().filter_map(|op| wr.writes(op)) {
            starts[key.index() + 1] += 1;
        }
        for key in 1..starts.len() {
            starts[key] += starts[key - 1];
        }
        let writes = vec![OpId(0); starts[wr.history.key_count()] as usize];
        Writes { starts, writes, by_id: OnceLock::new() }
    }

    /// Returns the last write of a key among a session's operations with ids below a bound.
    fn last_of(
        &self,
        wr: &ReadsFrom<'_>,
        key: KeyId,
        session: SessionId,
        bound: u32,
    ) -> Option<OpId> {
        let all = self.by_id.get_or_init(|| {
            let mut by_id = self.writes.clone();
            let mut next = self.starts.clone();
            for op in wr.history.ops() {
                let Some(key) = wr.writes(op) else { continue };
                by_id[next[key.index()] as usize] = op;
                next[key.index()] += 1;
            }
            by_id
        });
        let (start, end) = (self.starts[key.index()], self.starts[key.index() + 1]);
        let of_key = &all[start as usize..end as usize];
        let below = of_key.partition_point(|write| write.0 < bound);
        let last = of_key[..below].last().copied();
        last.filter(|&last| wr.history.session_of(last) == session)
    }
}
