//! A register history in the form that the deciders use: chains, sources, and the writes of each
//! key.

use std::ops::Range;
use std::sync::OnceLock;

use consistory_history::{Action, History, KeyId, OpId};
use consistory_order::ChainId;

use crate::order::{Chains, Edge};
use crate::reads_from::Source;
use crate::reason::Reason;

/// Key of an operation without a key, or of one that is ignored.
const NO_KEY: u32 = u32::MAX;

/// Flag added to the key of an operation that does not count as a write.
const ONLY_READ: u32 = 1 << 31;

/// A register history with the sources of its reads, as far as they are determined.
#[derive(Debug)]
pub(crate) struct Registers<'h> {
    pub(crate) history: &'h History,
    pub(crate) source: &'h [Source],
    /// Key of each operation that counts.
    keys: Vec<u32>,
    /// Number of writes of smaller keys, for each key and after the last.
    starts: Vec<u32>,
    /// Built on first use.
    by_session: OnceLock<Segments>,
}

/// The writes of each key, chain by chain. The chains are sessions or parts of sessions.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// Index of each key's first segment, followed by the number of segments.
    segment_starts: Vec<u32>,
    segments: Vec<Segment>,
    /// The writes by key, then chain, then position.
    writes: Vec<OpId>,
    /// Position of each of `writes` in its chain.
    places: Vec<u32>,
    /// Number of the segment for each key and column of a clock, if there is one. Empty if the
    /// table would be too large.
    in_column: Vec<u32>,
    width: usize,
    /// Position of the next write of each write's segment, or `NONE`. Entries of writes that are
    /// close in a chain are close here, unlike the positions in a segment.
    next_places: Vec<u32>,
}

/// No segment, or no place.
const NONE: u32 = u32::MAX;

/// Largest size of the table of segments by column, in entries per write.
const COLUMNS_PER_WRITE: usize = 64;

/// The writes of one key, while they are collected.
struct KeyWrites {
    end: u32,
    /// Chain and position of the last write.
    last: Option<(ChainId, u32)>,
    /// Whether the writes were added in the order of chains and positions.
    is_sorted: bool,
}

/// The writes of one key in one chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) chain: ChainId,
    start: u32,
    end: u32,
}

impl<'h> Registers<'h> {
    /// Prepares a history. A write of unknown status counts if it is the source of a read.
    pub(crate) fn new(history: &'h History, source: &'h [Source]) -> Self {
        let mut uncertain = false;
        let counted = |op: OpId| {
            let action = history.action(op);
            let (Action::Read { key, .. } | Action::Write { key, .. } | Action::Rmw { key, .. }) =
                action
            else {
                return NO_KEY;
            };
            if !history.is_certain(op) {
                uncertain = true;
                return NO_KEY;
            }
            if matches!(action, Action::Read { .. }) { key.0 | ONLY_READ } else { key.0 }
        };
        let mut keys: Vec<u32> = history.ops().map(counted).collect();
        if uncertain {
            for op in source.iter().filter_map(|s| s.get()).filter(|&w| !history.is_initial(w)) {
                let (key, _) = history.writes(op).expect("a source is a write");
                keys[op.index()] = key.0;
            }
        }
        let starts = starts_by_key(history.key_count(), &keys);
        Registers { history, source, keys, starts, by_session: OnceLock::new() }
    }

    /// Returns the sessions as chains.
    pub(crate) fn chains(&self) -> Chains {
        Chains::consecutive(self.history.sessions().map(|s| self.history.session_ops(s).len()))
    }

    /// Returns the `wr` edges between recorded operations.
    pub(crate) fn wr_edges(&self) -> Vec<Edge> {
        let recorded = self.history.len() as u32;
        self.source
            .iter()
            .enumerate()
            .filter_map(|(read, source)| Some((OpId::new(read), source.get()?)))
            .filter(|&(_, write)| write.0 < recorded)
            .map(|(read, write)| Edge { from: write, to: read, reason: Reason::Wr.pack() })
            .collect()
    }

    /// Counts the writes of smaller keys, for each key and after the last.
    pub(crate) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Returns the key that an operation writes, if it counts as a write.
    #[inline]
    pub(crate) fn written_key(&self, op: OpId) -> Option<KeyId> {
        let key = self.keys[op.index()];
        (key < ONLY_READ).then_some(KeyId(key))
    }

    /// Returns the key that an operation writes, or reads from a known source.
    #[inline]
    pub(crate) fn accessed_key(&self, op: OpId) -> Option<KeyId> {
        match self.source[op.index()].get() {
            Some(_) => Some(self.read_key(op)),
            None => self.written_key(op),
        }
    }

    /// Returns the key of a read.
    #[inline]
    pub(crate) fn read_key(&self, read: OpId) -> KeyId {
        KeyId(self.keys[read.index()] & !ONLY_READ)
    }

    /// Lists the reads that have a source, by key.
    pub(crate) fn reads_by_key(&self) -> Vec<OpId> {
        let has_source = |&read: &OpId| self.source[read.index()].get().is_some();
        let reads = || self.history.ops().filter(has_source);
        let mut next = vec![0u32; self.history.key_count() + 1];
        for read in reads() {
            next[self.read_key(read).index() + 1] += 1;
        }
        for key in 1..next.len() {
            next[key] += next[key - 1];
        }
        let mut sorted = vec![OpId(0); next[next.len() - 1] as usize];
        for read in reads() {
            let slot = &mut next[self.read_key(read).index()];
            sorted[*slot as usize] = read;
            *slot += 1;
        }
        sorted
    }

    /// Returns whether an operation counts.
    pub(crate) fn counts(&self, op: OpId) -> bool {
        self.history.is_certain(op) || self.written_key(op).is_some()
    }

    fn by_session(&self) -> &Segments {
        self.by_session.get_or_init(|| {
            Segments::new(
                &self.starts,
                &self.keys,
                |op| ChainId(self.history.session_of(op).0),
                |op| self.history.index_in_session(op),
            )
        })
    }

    /// Returns the segments of a key, one for each session that writes it.
    #[inline]
    pub(crate) fn segments(&self, key: KeyId) -> &[Segment] {
        self.by_session().of(key)
    }

    /// Returns the writes of a segment in program order.
    #[inline]
    pub(crate) fn writes(&self, segment: Segment) -> &[OpId] {
        self.by_session().writes(segment)
    }

    /// Returns the positions of a segment's writes in their session.
    #[inline]
    pub(crate) fn places(&self, segment: Segment) -> &[u32] {
        self.by_session().places(segment)
    }

    /// Returns the writes of each key by the chains of an order other than program order.
    pub(crate) fn segments_by(&self, chains: &Chains) -> Segments {
        let (chain_of, place_of) = (|op| chains.chain_of(op), |op| chains.place_of(op));
        Segments::new(&self.starts, &self.keys, chain_of, place_of).by_column(chains)
    }
}

impl Segments {
    /// Groups the writes. `keys` holds the key of each operation, and `starts` the number of writes
    /// of smaller keys.
    fn new(
        starts: &[u32],
        keys: &[u32],
        chain_of: impl Fn(OpId) -> ChainId,
        place_of: impl Fn(OpId) -> u32,
    ) -> Self {
        let count = starts[starts.len() - 1] as usize;
        let (mut writes, mut places) = (vec![OpId(0); count], vec![0u32; count]);
        let mut groups: Vec<KeyWrites> =
            starts.iter().map(|&end| KeyWrites { end, last: None, is_sorted: true }).collect();
        for (op, &key) in (0..).map(OpId).zip(keys) {
            if key < ONLY_READ {
                let (group, at) = (&mut groups[key as usize], Some((chain_of(op), place_of(op))));
                group.is_sorted &= group.last < at;
                group.last = at;
                writes[group.end as usize] = op;
                places[group.end as usize] = place_of(op);
                group.end += 1;
            }
        }
        let mut segment_starts = Vec::with_capacity(starts.len());
        segment_starts.push(0);
        let mut segments: Vec<Segment> = Vec::new();
        for (range, group) in starts.windows(2).zip(&groups) {
            let range = range[0] as usize..range[1] as usize;
            let (writes, places) = (&mut writes[range.clone()], &mut places[range.clone()]);
            if !group.is_sorted {
                writes.sort_unstable_by_key(|&op| (chain_of(op), place_of(op)));
                places.iter_mut().zip(&*writes).for_each(|(place, &op)| *place = place_of(op));
            }
            let mut start = 0;
            while let Some(&first) = writes.get(start) {
                let chain = chain_of(first);
                let end = start + writes[start..].partition_point(|&op| chain_of(op) == chain);
                let (from, to) = ((range.start + start) as u32, (range.start + end) as u32);
                segments.push(Segment { chain, start: from, end: to });
                start = end;
            }
            segment_starts.push(segments.len() as u32);
        }
        let (in_column, width, next_places) = (Vec::new(), 0, Vec::new());
        Segments { segment_starts, segments, writes, places, in_column, width, next_places }
    }

    /// Builds the table of next positions, and the table of segments by column unless it would be
    /// too large.
    fn by_column(mut self, chains: &Chains) -> Self {
        self.next_places = vec![NONE; chains.nodes()];
        for &Segment { start, end, .. } in &self.segments {
            for at in start as usize + 1..end as usize {
                self.next_places[self.writes[at - 1].index()] = self.places[at];
            }
        }
        self.width = chains.width();
        let size = (self.segment_starts.len() - 1) * self.width;
        if size <= self.writes.len().saturating_mul(COLUMNS_PER_WRITE) {
            self.in_column = vec![NONE; size];
            for key in 0..self.segment_starts.len() - 1 {
                for number in self.numbers(KeyId(key as u32)) {
                    let column = chains.column_of(self.segments[number].chain) as usize;
                    self.in_column[key * self.width + column] = number as u32;
                }
            }
        }
        self
    }

    /// Returns the number of a key's segment in a column of a clock, if there is one and the table
    /// was built.
    #[inline]
    pub(crate) fn in_column(&self, key: KeyId, column: u32) -> Option<Option<usize>> {
        let number = *self.in_column.get(key.index() * self.width + column as usize)?;
        Some((number != NONE).then_some(number as usize))
    }

    /// Returns the position of the next write of a write's segment, if these are the segments of an
    /// order; `u32::MAX` if there is none.
    #[inline]
    pub(crate) fn next_place(&self, write: OpId) -> u32 {
        self.next_places[write.index()]
    }

    /// Returns the segments of a key, one for each chain that writes it.
    #[inline]
    pub(crate) fn of(&self, key: KeyId) -> &[Segment] {
        &self.segments[self.numbers(key)]
    }

    /// Counts the segments.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Returns the numbers of the segments of a key.
    #[inline]
    pub(crate) fn numbers(&self, key: KeyId) -> Range<usize> {
        let (start, end) = (self.segment_starts[key.index()], self.segment_starts[key.index() + 1]);
        start as usize..end as usize
    }

    /// Returns a segment by its number.
    #[inline]
    pub(crate) fn numbered(&self, number: usize) -> Segment {
        self.segments[number]
    }

    /// Returns the writes of a segment in the order of its chain.
    #[inline]
    pub(crate) fn writes(&self, segment: Segment) -> &[OpId] {
        &self.writes[segment.start as usize..segment.end as usize]
    }

    /// Returns the positions of a segment's writes in their chain.
    #[inline]
    pub(crate) fn places(&self, segment: Segment) -> &[u32] {
        &self.places[segment.start as usize..segment.end as usize]
    }
}

fn starts_by_key(count: usize, keys: &[u32]) -> Vec<u32> {
    // Operations that are not writes are counted after the last key, which avoids a branch.
    let mut starts = vec![0u32; count + 2];
    for &key in keys {
        starts[(key as usize).min(count) + 1] += 1;
    }
    starts.truncate(count + 1);
    for key in 1..starts.len() {
        starts[key] += starts[key - 1];
    }
    starts
}

/// Counts the positions before a given one, by galloping from a guess.
pub(crate) fn passed(places: &[u32], known: u32, guess: usize) -> usize {
    let guess = guess.min(places.len());
    let (before, behind) = places.split_at(guess);
    let is_passed = |&place: &u32| place < known;
    let mut far = 1;
    if behind.first().is_some_and(is_passed) {
        while behind.get(far).is_some_and(is_passed) {
            far *= 2;
        }
        let (start, end) = (far / 2 + 1, far.min(behind.len()));
        return guess + start + behind[start..end].partition_point(is_passed);
    }
    while far <= guess && !is_passed(&before[guess - far]) {
        far *= 2;
    }
    let (start, end) = ((guess + 1).saturating_sub(far), guess - far / 2);
    start + before[start..end].partition_point(is_passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_passed_is_counted_from_any_guess() {
        for length in 0..20u32 {
            let places: Vec<u32> = (0..length).map(|i| 2 * i + 1).collect();
            for known in 0..2 * length + 2 {
                for guess in 0..25 {
                    assert_eq!(
                        passed(&places, known, guess),
                        known as usize / 2,
                        "{known} {guess}"
                    );
                }
            }
        }
    }
}
