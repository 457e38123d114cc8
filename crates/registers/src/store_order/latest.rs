//! The latest writes of a key before an operation: the maximal ones among the writes before it.
//!
//! The rules of saturation ask for these writes again and again. In each chain only the last write
//! before the operation matters, and a clock gives the position in the chain. Operations that are
//! processed in sequence are close in time, so a cursor stores for each segment the last write, the
//! one before it, and the range of clock entries for which they are the last. Usually one of the
//! two is the next answer too, since some sessions receive a new write sooner than others. The
//! cursors of a key are stored together, whatever the number of writes. The segment that held the
//! latest write in the previous search is searched first, since that write is after most others.

use consistory_history::{KeyId, OpId};
use consistory_order::{ChainId, Growth};

use crate::order::{ChainOrder, Chains};
use crate::registers::{Segments, passed};

/// Finds the latest writes of a key before an operation.
#[derive(Clone)]
pub(crate) struct Latest {
    /// A cursor for each segment.
    cursors: Vec<Cursor>,
    /// Segment to search first, for each key.
    first: Vec<u32>,
    found: Vec<LatestWrite>,
    /// Part of each column that is before a write already found.
    covered: Vec<u32>,
    /// Writes that the last search found.
    pub(crate) writes: Vec<OpId>,
}

#[derive(Clone, Copy)]
struct Cursor {
    chain: ChainId,
    column: u32,
    /// Number of writes of the segment that have passed, valid for positions in the chain from just
    /// after the last of them up to the second bound.
    passed: u32,
    from: u32,
    until: u32,
    /// Position from which all of them but the last have passed.
    earlier: u32,
}

/// A write that may be among the latest.
#[derive(Clone, Copy)]
struct LatestWrite {
    write: OpId,
    column: usize,
    place: u32,
    segment: u32,
}

impl Latest {
    /// Builds the cursors for the segments of some chains and for `keys` keys.
    pub(crate) fn new(chains: &Chains, segments: &Segments, keys: usize) -> Self {
        let cursor = |number: usize| {
            let segment = segments.numbered(number);
            let column = chains.column_of(segment.chain);
            let until = segments.places(segment)[0];
            Cursor { chain: segment.chain, column, passed: 0, from: 0, until, earlier: 0 }
        };
        let first = (0..keys as u32).map(|key| segments.numbers(KeyId(key)).start as u32);
        Latest {
            cursors: (0..segments.len()).map(cursor).collect(),
            first: first.collect(),
            found: Vec::new(),
            covered: vec![0; chains.width()],
            writes: Vec::new(),
        }
    }

    /// Finds the maximal ones among the writes of a key before an operation.
    pub(crate) fn find(
        &mut self,
        order: &ChainOrder,
        segments: &Segments,
        key: KeyId,
        op: OpId,
    ) -> &[OpId] {
        let Latest { cursors, first, found, covered, writes } = self;
        let row = order.row(op);
        let (own, place) = (order.chains().chain_of(op), order.chains().place_of(op));
        let numbers = segments.numbers(key);
        let middle = first[key.index()] as usize;
        found.clear();
        covered.fill(0);
        for number in (middle..numbers.end).chain(numbers.start..middle) {
            let cursor = &mut cursors[number];
            // The operation itself is not before itself.
            let known = match row {
                _ if cursor.chain == own => place,
                Some(row) => row[cursor.column as usize],
                None => 0,
            };
            let surpassed = covered[cursor.column as usize];
            if known <= surpassed {
                continue;
            }
            // There is no such write, or one that was found is after it.
            let from = cursor.behind_last(order.chains(), segments, number, known);
            if from <= surpassed {
                continue;
            }
            let place = from - 1;
            let new = LatestWrite {
                write: order.chains().members(cursor.chain)[place as usize],
                column: cursor.column as usize,
                place,
                segment: number as u32,
            };
            if let Some(row) = order.row(new.write) {
                cover(covered, row);
            }
            found.push(new);
        }
        if let Some(last) = found.last() {
            first[key.index()] = last.segment;
        }
        writes.clear();
        // A clock contains only earlier operations of its own chain.
        let is_latest = |found: &&LatestWrite| covered[found.column] <= found.place;
        writes.extend(found.iter().filter(is_latest).map(|found| found.write));
        writes
    }

    /// Returns whether a clock has grown by a write of a key, as far as this is known.
    #[inline]
    pub(crate) fn may_gain(&self, segments: &Segments, key: KeyId, growth: Growth) -> bool {
        let Some(number) = segments.in_column(key, growth.column) else { return true };
        let Some(number) = number else { return false };
        let cursor = &self.cursors[number];
        if (cursor.from..=cursor.until).contains(&growth.had) {
            return cursor.until < growth.has;
        }
        if growth.had < cursor.from && cursor.from <= growth.has {
            return true;
        }
        if (cursor.earlier..cursor.from).contains(&growth.had) {
            return false;
        }
        let places = segments.places(segments.numbered(number));
        let first = passed(places, growth.had, cursor.passed as usize);
        places.get(first).is_some_and(|&place| place < growth.has)
    }
}

impl Cursor {
    /// Returns the position after the segment's last write that has passed at a position in the
    /// chain; 0 if none has.
    #[inline]
    fn behind_last(
        &mut self,
        chains: &Chains,
        segments: &Segments,
        number: usize,
        known: u32,
    ) -> u32 {
        if known > self.until {
            self.step(chains, segments);
        }
        if !(self.earlier..=self.until).contains(&known) {
            self.go(segments, number, known);
        }
        if known < self.from { self.earlier } else { self.from }
    }

    /// Advances by one write; usually one is enough.
    fn step(&mut self, chains: &Chains, segments: &Segments) {
        let write = chains.members(self.chain)[self.until as usize];
        self.passed += 1;
        (self.earlier, self.from) = (self.from, self.until + 1);
        self.until = segments.next_place(write);
    }

    /// Moves to a position in the chain.
    fn go(&mut self, segments: &Segments, number: usize, known: u32) {
        let places = segments.places(segments.numbered(number));
        let mut count = passed(places, known, self.passed as usize);
        // The search will ask for the next position again; there is a next write, just before
        // `from`.
        if known < self.from {
            count += 1;
        }
        let behind_last = |count: usize| places[..count].last().map_or(0, |last| last + 1);
        self.passed = count as u32;
        self.until = places.get(count).copied().unwrap_or(u32::MAX);
        self.from = behind_last(count);
        self.earlier = behind_last(count.saturating_sub(1));
    }
}

/// Joins a clock into another one.
fn cover(covered: &mut [u32], row: &[u32]) {
    for (covered, &known) in covered.iter_mut().zip(row) {
        *covered = known.max(*covered);
    }
}
