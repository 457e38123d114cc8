//! Closures: wSC and wTSO.
//!
//! A weak model holds if and only if the least relations that its rules derive have no cycle. The
//! certificate lists pairs of operations. Together with the model's part of program order and with
//! `wr`, they form one relation for wSC, and two for wTSO. The checker sorts each topologically,
//! computes its transitive closure, and checks that the rules derive no pair that is missing:
//!
//! | rule | if | then |
//! | --- | --- | --- |
//! | `cf` | a write w2 is before a read of another write w of its key | w2 is before w |
//! | `rw` | a write w2 is after a write w of its key | w2 is after every read of w |
//! | `st` | a write is before another of its key in one relation | the same holds in the other relation |
//!
//! Relations that are closed under the rules contain the least ones, so the least ones have no
//! cycle either.
//!
//! Each operation has a clock: for each chain of totally ordered operations, the last one before
//! it. Among the writes of a key in a chain only the last one before an operation matters, and
//! among the reads of a write only the last of each session; the others follow by transitivity.
//!
//! Cost: operations times chains; a chain is a session, or its writes and the rest.

use consistory_history::OpId;
use consistory_verdict::Stopped;
use consistory_work::side_by_side;

use crate::limits::Limits;
use crate::reads_from::ReadsFrom;
use crate::store_order::{
    Memory, Role, key, preserved_program_order, program_order_per_key, role, sorted,
};
use crate::{Rejection, exists, name};

/// Checks that the pairs, together with preserved program order and `wr`, are acyclic and closed
/// under the rules.
pub(crate) fn closed(
    wr: &ReadsFrom<'_>,
    memory: Memory,
    pairs: &[(OpId, OpId)],
    limits: Limits<'_>,
) -> Result<(), Rejection> {
    let history = wr.history;
    for (i, &(a, b)) in pairs.iter().enumerate() {
        for op in [a, b] {
            if !exists(history, op) || history.is_initial(op) || !wr.counts(op) {
                let part = format!("pairs[{i}]");
                return Err(Rejection::NotRecorded { part, op: name(history, op) });
            }
        }
    }
    let sources = sources(wr, memory)?;
    // Edges of `poloc` never leave their key, and its clocks rely on that.
    let one_key = |&(a, b): &(OpId, OpId)| key(wr, a) == key(wr, b);
    let within_keys: Vec<(OpId, OpId)> = pairs.iter().copied().filter(one_key).collect();
    let order = |i: usize| match (i, memory) {
        (0, Memory::Sequential) => ("po | wr", program_order(wr), Columns::Sessions, pairs),
        (0, _) => ("ppo | wre", preserved_program_order(wr, memory), Columns::Buffers, pairs),
        _ => ("poloc | wre", program_order_per_key(wr), Columns::Sessions, &within_keys[..]),
    };
    let relations = if memory == Memory::Sequential { 1 } else { 2 };
    let clocks = side_by_side(relations, limits.0.jobs, |i| {
        let (relation, own, columns, pairs) = order(i);
        Clocks::new(wr, columns, &[&own, &sources, pairs], limits)?
            .ok_or(Rejection::Cyclic { relation })
    });
    let clocks = clocks.into_iter().collect::<Result<Vec<Clocks<'_>>, Rejection>>()?;
    let readers = Readers::new(wr);
    for (i, clock) in clocks.iter().enumerate() {
        is_closed(wr, clock, clocks.get(1 - i.min(1)), &readers, limits)?;
    }
    Ok(())
}

/// Checks that the rules derive no pair that is missing from this relation or from the other one.
fn is_closed(
    wr: &ReadsFrom<'_>,
    clock: &Clocks<'_>,
    other: Option<&Clocks<'_>>,
    readers: &Readers,
    limits: Limits<'_>,
) -> Result<(), Rejection> {
    let history = wr.history;
    let missing = |a: OpId, b: OpId| Rejection::NotClosed {
        before: name(history, a),
        after: name(history, b),
    };
    let writers = Writers::new(wr, clock);
    limits.each(history.len(), |op| {
        let op = OpId(op as u32);
        if let Some(source) = wr.source(op) {
            let key = wr.reads(op).expect("what has a source is a read");
            for write in writers.last_before(clock, key.index(), op) {
                if write != source && (history.is_initial(source) || !clock.before(write, source)) {
                    return Err(missing(write, source));
                }
            }
        }
        let Some(key) = wr.writes(op) else { return Ok(()) };
        for write in writers.last_before(clock, key.index(), op) {
            if let Some(read) = readers.of(write).find(|&r| r != op && !clock.before(r, op)) {
                return Err(missing(read, op));
            }
            if other.is_some_and(|other| !other.before(write, op)) {
                return Err(missing(write, op));
            }
        }
        let initial = history.initial_write(key);
        if writers.is_first(key.index(), op)
            && let Some(read) = readers.of(initial).find(|&r| r != op && !clock.before(r, op))
        {
            return Err(missing(read, op));
        }
        Ok(())
    })
}

/// Returns the edges of `wr` between recorded operations; with store buffers, only those between
/// sessions.
pub(crate) fn sources(wr: &ReadsFrom<'_>, memory: Memory) -> Result<Vec<(OpId, OpId)>, Rejection> {
    let history = wr.history;
    let mut sources = Vec::new();
    for read in history.ops() {
        let Some(write) = wr.source(read).filter(|&write| !history.is_initial(write)) else {
            continue;
        };
        let is_internal = history.session_of(read) == history.session_of(write);
        if is_internal && write > read {
            let (read, write) = (name(history, read), name(history, write));
            return Err(Rejection::BeforeItsWrite { part: "wr".into(), read, write });
        }
        if memory == Memory::Sequential || !is_internal {
            sources.push((write, read));
        }
    }
    Ok(sources)
}

pub(crate) fn program_order(wr: &ReadsFrom<'_>) -> Vec<(OpId, OpId)> {
    let mut pairs = Vec::new();
    for session in wr.history.sessions() {
        let mut last = None;
        for op in wr.history.session_ops(session).filter(|&op| wr.counts(op)) {
            pairs.extend(last.map(|before| (before, op)));
            last = Some(op);
        }
    }
    pairs
}

/// Assignment of operations to columns. Operations of one column are totally ordered wherever they
/// are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Columns {
    /// One column per session.
    Sessions,
    /// Two columns per session: its plain writes, and its other operations.
    Buffers,
}

/// For each operation and column, one more than the id of the column's last operation before it, or
/// 0.
pub(crate) struct Clocks<'a> {
    wr: &'a ReadsFrom<'a>,
    columns: Columns,
    width: usize,
    entries: Vec<u32>,
}

impl<'a> Clocks<'a> {
    /// Computes the transitive closure of a relation, or returns `None` if it has a cycle.
    pub(crate) fn new(
        wr: &'a ReadsFrom<'a>,
        columns: Columns,
        parts: &[&[(OpId, OpId)]],
        limits: Limits<'_>,
    ) -> Result<Option<Self>, Stopped> {
        let size = wr.history.len();
        let width = wr.history.session_count() * if columns == Columns::Buffers { 2 } else { 1 };
        limits.reserve::<u32>(size * width)?;
        let mut clocks = Clocks { wr, columns, width, entries: vec![0; size * width] };
        let done = sorted(size, parts, limits, |from, to| {
            let (a, b) = (from.index() * width, to.index() * width);
            let column = clocks.column(from);
            // `from` or a later operation of its column is already before `to`, and with it
            // everything before `from`.
            if clocks.entries[b + column] > from.0 {
                return;
            }
            let [own, other] = clocks
                .entries
                .get_disjoint_mut([b..b + width, a..a + width])
                .expect("no operation is before itself");
            for (entry, other) in own.iter_mut().zip(other) {
                *entry = (*entry).max(*other);
            }
            let entry = &mut clocks.entries[b + column];
            *entry = (*entry).max(from.0 + 1);
        })?;
        Ok(done.then_some(clocks))
    }

    fn column(&self, op: OpId) -> usize {
        let session = self.wr.history.session_of(op).index();
        match self.columns {
            Columns::Sessions => session,
            Columns::Buffers => 2 * session + usize::from(role(self.wr, op) == Role::Write),
        }
    }

    fn entry(&self, op: OpId, column: usize) -> u32 {
        self.entries[op.index() * self.width + column]
    }

    pub(crate) fn before(&self, a: OpId, b: OpId) -> bool {
        self.entry(b, self.column(a)) > a.0
    }
}

/// Writes of each key by column, in the order of the column.
pub(crate) struct Writers {
    by_key: Vec<Vec<(usize, Vec<OpId>)>>,
}

impl Writers {
    pub(crate) fn new(wr: &ReadsFrom<'_>, clock: &Clocks<'_>) -> Self {
        let mut by_key: Vec<Vec<(usize, Vec<OpId>)>> = vec![Vec::new(); wr.history.key_count()];
        for op in wr.history.ops() {
            let Some(key) = wr.writes(op) else { continue };
            let column = clock.column(op);
            // The operations of a session are consecutive, so its lists are among the last ones.
            let lists = &mut by_key[key.index()];
            match lists.iter_mut().rev().take(2).find(|(known, _)| *known == column) {
                Some((_, writes)) => writes.push(op),
                None => lists.push((column, vec![op])),
            }
        }
        Writers { by_key }
    }

    /// Iterates over the last write of a key before an operation in each column.
    pub(crate) fn last_before<'w>(
        &'w self,
        clock: &'w Clocks<'_>,
        key: usize,
        op: OpId,
    ) -> impl Iterator<Item = OpId> + 'w {
        self.by_key[key].iter().filter_map(move |(column, writes)| {
            let known = clock.entry(op, *column);
            let passed = writes.partition_point(|write| write.0 < known);
            writes[..passed].last().copied()
        })
    }

    /// Iterates over the last write of a key in each column that satisfies a predicate, which must
    /// hold for a prefix of the column's writes.
    pub(crate) fn last_of_each<'w>(
        &'w self,
        key: usize,
        holds: impl Fn(OpId) -> bool + 'w,
    ) -> impl Iterator<Item = OpId> + 'w {
        self.by_key[key].iter().filter_map(move |(_, writes)| {
            let passed = writes.partition_point(|&write| holds(write));
            writes[..passed].last().copied()
        })
    }

    /// Returns whether a write is the first of its key in its column.
    fn is_first(&self, key: usize, write: OpId) -> bool {
        self.by_key[key].iter().any(|(_, writes)| writes[0] == write)
    }
}

/// Last read of each write in each session.
pub(crate) struct Readers {
    starts: Vec<u32>,
    reads: Vec<OpId>,
}

impl Readers {
    pub(crate) fn new(wr: &ReadsFrom<'_>) -> Self {
        let history = wr.history;
        let session = |op: OpId| history.session_of(op);
        let mut pairs: Vec<(OpId, OpId)> =
            history.ops().filter_map(|read| Some((wr.source(read)?, read))).collect();
        // The reads of each write are now sorted by id, that is, session by session.
        pairs.sort_by_key(|&(write, _)| write);
        let mut starts = vec![0; history.len() + history.key_count() + 1];
        let mut reads: Vec<OpId> = Vec::new();
        for same in pairs.chunk_by(|a, b| a.0 == b.0 && session(a.1) == session(b.1)) {
            let (write, last) = same[same.len() - 1];
            starts[write.index() + 1] += 1;
            reads.push(last);
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        Readers { starts, reads }
    }

    pub(crate) fn of(&self, write: OpId) -> impl Iterator<Item = OpId> + '_ {
        let (start, end) = (self.starts[write.index()], self.starts[write.index() + 1]);
        self.reads[start as usize..end as usize].iter().copied()
    }
}
