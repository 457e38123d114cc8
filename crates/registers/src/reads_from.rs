//! The candidates of each read: the writes that it may have read from.
//!
//! A candidate of a read is a write of the same key and value. The initial write counts, a failed
//! write does not, and a write of unknown status does. In a differentiated history every read has
//! at most one candidate, and `wr` follows from the values. Reads and writes are grouped by key,
//! and for each key a table holds the writes of each value. All candidates are found in linear
//! time, whether values are unique in the whole history or only within each key.

use std::iter::successors;

use consistory_history::{Action, History, KeyId, OpId, ValueId};
use consistory_verdict::{Budget, Stopped};

/// The candidates of every read.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    /// Source of each operation, if it is determined.
    pub(crate) source: Vec<Source>,
    /// The reads with more than one candidate, by operation.
    pub(crate) ambiguous: Vec<(OpId, Vec<OpId>)>,
    /// The first read without a candidate.
    pub(crate) thin_air: Option<OpId>,
}

/// Source of an operation, packed into one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Source(u32);

impl Source {
    /// The operation is not a read, or its source is open.
    pub(crate) const NONE: Source = Source(u32::MAX);

    pub(crate) fn new(write: OpId) -> Self {
        Source(write.0)
    }

    #[inline]
    pub(crate) fn get(self) -> Option<OpId> {
        (self != Self::NONE).then_some(OpId(self.0))
    }
}

/// Finds the candidates of every read. If few values are written many times, their number is the
/// product of reads and writes.
pub(crate) fn candidates(history: &History, budget: &Budget) -> Result<Candidates, Stopped> {
    let mut listed = 0;
    let mut found = Candidates {
        source: vec![Source::NONE; history.len()],
        ambiguous: Vec::new(),
        thin_air: None,
    };
    budget.check()?;
    let accesses = Accesses::new(history);
    let mut visited = 0;
    // For the current key: the first write of each value, and for each write the next one of its
    // value.
    let mut first = vec![NONE; history.values().len()];
    let mut next = Vec::new();
    let some = |at: u32| (at != NONE).then_some(at);
    for key in history.keys() {
        let (writes, reads) =
            (accesses.of(SourceKind::Write, key), accesses.of(SourceKind::Read, key));
        visited += writes.len() + reads.len();
        if visited >= VISITED_PER_CHECK {
            visited = 0;
            budget.check()?;
        }
        next.clear();
        next.resize(writes.len(), NONE);
        for (at, write) in writes.iter().enumerate().rev() {
            next[at] = std::mem::replace(&mut first[write.value.index()], at as u32);
        }
        for &Access { op: read, value } in reads {
            let initial = (history.initial_value(key) == value).then(|| history.initial_write(key));
            // A read-modify-write that writes the value it reads does not read from itself.
            let mut written = successors(some(first[value.index()]), |&at| some(next[at as usize]))
                .map(|at| writes[at as usize].op)
                .filter(|&op| op != read);
            let one = initial.or_else(|| written.next());
            let rest: Vec<OpId> = written.collect();
            match (one, rest.is_empty()) {
                (None, _) => {
                    found.thin_air = Some(found.thin_air.map_or(read, |other| other.min(read)));
                }
                (Some(write), true) => found.source[read.index()] = Source::new(write),
                (Some(write), false) => {
                    let before = listed / LISTED_PER_CHECK;
                    listed += rest.len() + LIST_WORDS;
                    if listed / LISTED_PER_CHECK > before {
                        budget.check()?;
                        budget.reserve((listed * size_of::<OpId>()) as u64)?;
                    }
                    found.ambiguous.push((read, std::iter::once(write).chain(rest).collect()));
                }
            }
        }
        for write in writes {
            first[write.value.index()] = NONE;
        }
    }
    found.ambiguous.sort_unstable_by_key(|&(read, _)| read);
    Ok(found)
}

/// Accesses visited between two checks of the budget.
const VISITED_PER_CHECK: usize = 1 << 17;
/// Candidates listed between two checks of the budget.
const LISTED_PER_CHECK: usize = 1 << 16;
/// Overhead of one list, in candidates.
const LIST_WORDS: usize = 12;

/// No write.
const NONE: u32 = u32::MAX;

/// Writes by key, then reads by key, each group in operation order.
struct Accesses {
    keys: usize,
    /// Index of each group's first element, followed by the end of the last group.
    starts: Vec<u32>,
    accesses: Vec<Access>,
}

#[derive(Clone, Copy)]
enum SourceKind {
    Write,
    Read,
}

#[derive(Clone, Copy)]
struct Access {
    op: OpId,
    value: ValueId,
}

impl Accesses {
    fn new(history: &History) -> Self {
        let keys = history.key_count();
        let mut starts = vec![0u32; 2 * keys + 1];
        each_access(history, |kind, key, _| starts[kind as usize * keys + key.index() + 1] += 1);
        for group in 1..starts.len() {
            starts[group] += starts[group - 1];
        }
        let mut next = starts.clone();
        let nothing = Access { op: OpId(0), value: ValueId(0) };
        let mut accesses = vec![nothing; starts[2 * keys] as usize];
        each_access(history, |kind, key, access| {
            let slot = &mut next[kind as usize * keys + key.index()];
            accesses[*slot as usize] = access;
            *slot += 1;
        });
        Accesses { keys, starts, accesses }
    }

    fn of(&self, kind: SourceKind, key: KeyId) -> &[Access] {
        let group = kind as usize * self.keys + key.index();
        &self.accesses[self.starts[group] as usize..self.starts[group + 1] as usize]
    }
}

/// Calls `visit` for every read that counts and every write that may be read.
fn each_access(history: &History, mut visit: impl FnMut(SourceKind, KeyId, Access)) {
    for op in history.ops() {
        let action = history.action(op);
        // Plain reads and writes share one path without an unpredictable branch.
        if let Action::Read { key, value } | Action::Write { key, value } = action
            && history.is_certain(op)
        {
            let is_read = matches!(action, Action::Read { .. });
            let kind = if is_read { SourceKind::Read } else { SourceKind::Write };
            visit(kind, key, Access { op, value });
            continue;
        }
        if let Some((key, value)) = history.reads(op) {
            visit(SourceKind::Read, key, Access { op, value });
        }
        if let Some((key, value)) = history.writes(op) {
            visit(SourceKind::Write, key, Access { op, value });
        }
    }
}
