//! What each read may have read from.
//!
//! A candidate of a read is a write of the same key and value; the initial write counts, a write
//! that failed does not, and one of unknown status does. In a differentiated history every read has
//! one candidate at most and `wr` follows from the values. Writes are grouped by value, and within
//! a value sorted by key, so that finding the candidates of all reads is about linear: recorders
//! either never repeat a value, or count up for each key.

use consistory_history::{History, KeyId, OpId, ValueId};

/// The candidates of every read.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// For each operation the write that it reads from, where that is settled.
    pub(crate) source: Vec<Source>,
    /// The reads with more than one candidate, in the order of operations.
    pub(crate) ambiguous: Vec<(OpId, Vec<OpId>)>,
    /// The first read without any.
    pub(crate) thin_air: Option<OpId>,
}

/// The write that an operation reads from, packed into a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Source(u32);

impl Source {
    /// The operation is not a read, or its source is still open.
    pub(crate) const NONE: Source = Source(u32::MAX);

    pub(crate) fn new(write: OpId) -> Self {
        Source(write.0)
    }

    #[inline]
    pub(crate) fn get(self) -> Option<OpId> {
        (self != Self::NONE).then_some(OpId(self.0))
    }
}

/// Finds the candidates of every read.
pub(crate) fn candidates(history: &History) -> Candidates {
    let index = WritesByValue::new(history);
    let mut found = Candidates {
        source: vec![Source::NONE; history.len()],
        ambiguous: Vec::new(),
        thin_air: None,
    };
    for read in history.ops() {
        let Some((key, value)) = history.reads(read) else { continue };
        let initial = (history.initial_value(key) == value).then(|| history.initial_write(key));
        // A read-modify-write that writes what it reads does not read from itself.
        let mut written = index.find(key, value).iter().map(|w| w.op).filter(|&op| op != read);
        let first = initial.or_else(|| written.next());
        let rest: Vec<OpId> = written.collect();
        match (first, rest.is_empty()) {
            (None, _) => found.thin_air = found.thin_air.or(Some(read)),
            (Some(write), true) => found.source[read.index()] = Source::new(write),
            (Some(write), false) => {
                found.ambiguous.push((read, std::iter::once(write).chain(rest).collect()));
            }
        }
    }
    found
}

/// Recorded writes grouped by value and sorted by key, then by operation.
struct WritesByValue {
    starts: Vec<u32>,
    writes: Vec<KeyedWrite>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct KeyedWrite {
    key: KeyId,
    op: OpId,
}

impl WritesByValue {
    fn new(history: &History) -> Self {
        let mut starts = vec![0u32; history.values().len() + 1];
        for op in history.ops() {
            if let Some((_, value)) = history.writes(op) {
                starts[value.index() + 1] += 1;
            }
        }
        for value in 1..starts.len() {
            starts[value] += starts[value - 1];
        }
        let mut next = starts.clone();
        let nothing = KeyedWrite { key: KeyId(0), op: OpId(0) };
        let mut writes = vec![nothing; starts[starts.len() - 1] as usize];
        for op in history.ops() {
            if let Some((key, value)) = history.writes(op) {
                let slot = &mut next[value.index()];
                writes[*slot as usize] = KeyedWrite { key, op };
                *slot += 1;
            }
        }
        for range in starts.windows(2) {
            if range[1] - range[0] > 1 {
                writes[range[0] as usize..range[1] as usize].sort_unstable();
            }
        }
        WritesByValue { starts, writes }
    }

    fn find(&self, key: KeyId, value: ValueId) -> &[KeyedWrite] {
        let group = &self.writes
            [self.starts[value.index()] as usize..self.starts[value.index() + 1] as usize];
        let start = group.partition_point(|write| write.key < key);
        let length = group[start..].iter().take_while(|write| write.key == key).count();
        &group[start..start + length]
    }
}
