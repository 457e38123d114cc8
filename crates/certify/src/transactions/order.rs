//! Proofs of consistency: a commit order is replayed.
//!
//! `ser`, `si` and `pc` are checked by positions alone: the source of a read must precede the
//! transaction or be in its snapshot, and the next version must not. `rc` and `ra` depend on the
//! direct predecessors of a transaction. `tcc` and `psi` depend on its transitive predecessors:
//! clocks are computed along the order, for a few chains of transactions at a time, so that memory
//! stays linear.

use consistory_history::{KeyId, OpId};
use consistory_verdict::{ClientOrder, Level};

use super::view::{Fate, INITIAL, Source, View};
use super::{TransactionRejection, name};

/// Largest number of later versions that are examined one by one, before the writers are looked up
/// chain by chain.
const MAX_VERSIONS_WALKED: usize = 16;

/// Number of chains for which one pass computes clocks.
const CHAINS_PER_PASS: usize = 64;

const NOWHERE: u32 = u32::MAX;

/// An external read with its source.
#[derive(Clone, Copy)]
struct Read {
    op: OpId,
    key: KeyId,
    source: u32,
}

struct Replay<'v, 'h> {
    view: &'v View<'h>,
    order: ClientOrder,
    /// Units in commit order, and the position of each unit, or `NOWHERE`.
    commits: Vec<u32>,
    place: Vec<u32>,
    reads: Vec<Read>,
    /// Index of the first read of each unit.
    read_starts: Vec<u32>,
    /// For each last write, the unit that wrote the next version and the one that wrote the
    /// previous version, or `NOWHERE`.
    next: Vec<u32>,
    previous: Vec<u32>,
    /// Unit that wrote the first version of each key.
    first: Vec<u32>,
}

/// Accepts a commit order under which the level holds.
pub(super) fn replay(
    view: &View<'_>,
    level: Level,
    order: ClientOrder,
    commits: &[OpId],
    snapshots: &[u32],
    wr: &[(OpId, OpId)],
) -> Result<(), TransactionRejection> {
    let replay = Replay::new(view, order, commits, wr)?;
    match level {
        Level::Serializable => {
            let all: Vec<u32> = (0..commits.len() as u32).collect();
            replay.prefixes(&all, false)
        }
        Level::Snapshot | Level::Prefix => {
            if snapshots.len() != commits.len() {
                return Err(TransactionRejection::Claim);
            }
            replay.prefixes(snapshots, level == Level::Snapshot)
        }
        _ => {
            let all: Vec<u32> = (0..commits.len() as u32).collect();
            replay.observed(&all)?;
            match level {
                Level::ReadCommitted => replay.direct(false),
                Level::ReadAtomic => replay.direct(true),
                Level::Causal => replay.clocks(false),
                _ => replay.clocks(true),
            }
        }
    }
}

impl<'v, 'h> Replay<'v, 'h> {
    fn new(
        view: &'v View<'h>,
        order: ClientOrder,
        commits: &[OpId],
        wr: &[(OpId, OpId)],
    ) -> Result<Self, TransactionRejection> {
        let history = view.history;
        let mut replay = Replay {
            view,
            order,
            commits: Vec::with_capacity(commits.len()),
            place: vec![NOWHERE; view.units.len()],
            reads: Vec::new(),
            read_starts: vec![0],
            next: vec![NOWHERE; view.last_write_count()],
            previous: vec![NOWHERE; view.last_write_count()],
            first: vec![NOWHERE; history.key_count()],
        };
        replay.collect_reads(wr)?;
        for &op in commits {
            let misplaced = || TransactionRejection::Misplaced { op: name(history, op) };
            let unit = view.unit(op).ok_or_else(misplaced)?;
            if replay.place[unit as usize] != NOWHERE {
                return Err(misplaced());
            }
            replay.place[unit as usize] = replay.commits.len() as u32;
            replay.commits.push(unit);
        }
        replay.check_members()?;
        let mut latest = vec![NOWHERE; history.key_count()];
        for &unit in &replay.commits {
            for &(key, _) in view.last_writes(unit) {
                let at = view.last_write(unit, key).expect("it was just listed");
                let before = std::mem::replace(&mut latest[key.index()], unit);
                replay.previous[at] = before;
                match before {
                    NOWHERE => replay.first[key.index()] = unit,
                    before => {
                        let write = view.last_write(before, key).expect("it wrote the key");
                        replay.next[write] = unit;
                    }
                }
            }
        }
        replay.check_lists()?;
        Ok(replay)
    }

    /// Finds the source of every read.
    fn collect_reads(&mut self, wr: &[(OpId, OpId)]) -> Result<(), TransactionRejection> {
        let view = self.view;
        let history = view.history;
        let mut choices = wr.to_vec();
        choices.sort_unstable();
        let mut used = 0;
        let mut failed = None;
        for unit in 0..view.units.len() as u32 {
            view.step(unit)?;
            view.reads(unit, |op, key, source| {
                let source = match source {
                    Err(_) => {
                        let read = name(history, op);
                        failed.get_or_insert(TransactionRejection::BadRead { read });
                        return;
                    }
                    Ok(Source::Own) => return,
                    Ok(Source::One(source)) => source,
                    Ok(Source::Any(candidates)) => {
                        let at = choices.partition_point(|&(read, _)| read < op);
                        let chosen = choices.get(at).filter(|&&(read, _)| read == op);
                        let source = chosen.map(|&(_, write)| {
                            if write == history.initial_write(key) {
                                INITIAL
                            } else {
                                let unit = view.unit_of.get(write.index()).copied();
                                let unit = unit.unwrap_or(NOWHERE - 1);
                                let writes = unit < NOWHERE - 1
                                    && view.last_writes(unit).contains(&(key, write));
                                if writes { unit } else { NOWHERE - 1 }
                            }
                        });
                        let Some(source) = source.filter(|source| candidates.contains(source))
                        else {
                            let read = name(history, op);
                            failed.get_or_insert(TransactionRejection::Source { read });
                            return;
                        };
                        used += 1;
                        source
                    }
                };
                self.reads.push(Read { op, key, source });
            });
            self.read_starts.push(self.reads.len() as u32);
        }
        if let Some(failed) = failed {
            return Err(failed);
        }
        match choices.first() {
            Some(&(read, _)) if used != choices.len() => {
                Err(TransactionRejection::Source { read: name(history, read) })
            }
            _ => Ok(()),
        }
    }

    /// Checks that the order contains exactly the transactions that count.
    fn check_members(&self) -> Result<(), TransactionRejection> {
        let view = self.view;
        let mut counts: Vec<bool> =
            view.units.iter().map(|unit| unit.fate == Fate::Committed).collect();
        for read in &self.reads {
            if read.source != INITIAL {
                counts[read.source as usize] = true;
            }
        }
        // Every append that a list shows was read.
        if view.units.iter().any(|unit| unit.fate == Fate::Indeterminate) {
            for read in &self.reads {
                if let Some((key, list)) = view.external_list(read.op) {
                    let written = list.iter().filter_map(|element| view.appender(key, element));
                    written.for_each(|written| counts[written.unit as usize] = true);
                }
            }
        }
        for (unit, counts) in counts.into_iter().enumerate() {
            let op = || name(view.history, view.first_op(unit as u32));
            match (counts, self.place[unit] != NOWHERE) {
                (true, false) => return Err(TransactionRejection::Missing { op: op() }),
                (false, true) => return Err(TransactionRejection::Misplaced { op: op() }),
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that the versions of each list are in the order of every list that was read.
    fn check_lists(&self) -> Result<(), TransactionRejection> {
        let view = self.view;
        let history = view.history;
        if !history.has_lists() {
            return Ok(());
        }
        let mut longest: Vec<Option<(OpId, &[consistory_history::Value])>> =
            vec![None; history.key_count()];
        for read in &self.reads {
            let Some((key, list)) = view.external_list(read.op) else { continue };
            let bad = || TransactionRejection::BadRead { read: name(history, read.op) };
            match &mut longest[key.index()] {
                Some((_, known)) if known.len() >= list.len() => {
                    if !known.starts_with(list) {
                        return Err(bad());
                    }
                }
                slot => {
                    if slot.is_some_and(|(_, known)| !list.starts_with(known)) {
                        return Err(bad());
                    }
                    *slot = Some((read.op, list));
                }
            }
        }
        for (key, longest) in history.keys().zip(longest) {
            let Some((read, list)) = longest else { continue };
            if !view.is_well_formed(key, list) {
                return Err(TransactionRejection::BadRead { read: name(history, read) });
            }
            let mut expected = self.first[key.index()];
            let mut last = NOWHERE;
            for element in &list[view.initial(key).len()..] {
                let unit = view.appender(key, element).map_or(NOWHERE, |written| written.unit);
                if unit == last {
                    continue;
                }
                if unit != expected || unit == NOWHERE {
                    return Err(TransactionRejection::Read { read: name(history, read) });
                }
                last = unit;
                let write = view.last_write(unit, key).expect("it appended to the key");
                expected = self.next[write];
            }
        }
        Ok(())
    }

    /// Returns the unit that wrote the version after the one that a read returned.
    fn overwriter(&self, read: &Read) -> u32 {
        match read.source {
            INITIAL => self.first[read.key.index()],
            source => {
                let write = self.view.last_write(source, read.key);
                self.next[write.expect("a source writes the key")]
            }
        }
    }

    fn reads_of(&self, unit: u32) -> &[Read] {
        let unit = unit as usize;
        &self.reads[self.read_starts[unit] as usize..self.read_starts[unit + 1] as usize]
    }

    /// Checks that every transaction sees its sources and all transactions that the clients
    /// observed before it; `seen` contains the number of transactions of the order that each one
    /// sees.
    fn observed(&self, seen: &[u32]) -> Result<(), TransactionRejection> {
        let view = self.view;
        let wrong =
            |unit: u32| TransactionRejection::Order { op: name(view.history, view.first_op(unit)) };
        let (mut session, mut last) = (NOWHERE, NOWHERE);
        for (unit, facts) in (0u32..).zip(&view.units) {
            view.step(unit)?;
            if facts.session != session {
                (session, last) = (facts.session, NOWHERE);
            }
            let place = self.place[unit as usize];
            if place == NOWHERE {
                continue;
            }
            let sees = seen[place as usize];
            if self.order != ClientOrder::None && last != NOWHERE && last >= sees {
                return Err(wrong(unit));
            }
            last = place;
            for read in self.reads_of(unit) {
                if read.source != INITIAL && self.place[read.source as usize] >= sees {
                    return Err(TransactionRejection::Read { read: name(view.history, read.op) });
                }
            }
        }
        if self.order != ClientOrder::Realtime {
            return Ok(());
        }
        let mut starts: Vec<(i64, u32)> = Vec::new();
        let mut ends: Vec<(i64, u32)> = Vec::new();
        for &unit in &self.commits {
            if let Some((start, end)) = view.units[unit as usize].time {
                starts.push((start, unit));
                ends.extend(end.map(|end| (end, unit)));
            }
        }
        starts.sort_unstable();
        ends.sort_unstable();
        let (mut at, mut latest) = (0, None);
        for (start, unit) in starts {
            while at < ends.len() && ends[at].0 < start {
                latest = latest.max(Some(self.place[ends[at].1 as usize]));
                at += 1;
            }
            if latest.is_some_and(|latest| latest >= seen[self.place[unit as usize] as usize]) {
                return Err(wrong(unit));
            }
        }
        Ok(())
    }

    /// Checks `ser`, `si` and `pc`: each transaction sees a prefix of the order.
    fn prefixes(&self, seen: &[u32], no_overlap: bool) -> Result<(), TransactionRejection> {
        self.observed(seen)?;
        let view = self.view;
        for (&unit, (&sees, at)) in self.commits.iter().zip(seen.iter().zip(0u32..)) {
            view.step(at)?;
            let snapshot =
                || TransactionRejection::Snapshot { op: name(view.history, view.first_op(unit)) };
            if sees > at {
                return Err(snapshot());
            }
            for read in self.reads_of(unit) {
                let next = self.overwriter(read);
                if next != NOWHERE && next != unit && self.place[next as usize] < sees {
                    return Err(TransactionRejection::Read { read: name(view.history, read.op) });
                }
            }
            if !no_overlap {
                continue;
            }
            for &(key, _) in view.last_writes(unit) {
                let write = view.last_write(unit, key).expect("it was just listed");
                let before = self.previous[write];
                if before != NOWHERE && self.place[before as usize] >= sees {
                    return Err(snapshot());
                }
            }
        }
        Ok(())
    }

    fn place_of(&self, source: u32) -> Option<u32> {
        (source != INITIAL).then(|| self.place[source as usize])
    }

    /// Checks `rc`, or `ra` if `whole` is true, by the direct predecessors of each transaction.
    fn direct(&self, whole: bool) -> Result<(), TransactionRejection> {
        let view = self.view;
        let wrong = |read: &Read| TransactionRejection::Read { read: name(view.history, read.op) };
        let keys = view.history.key_count();
        // For each key, a session and the latest writer of the key in that session.
        let mut session = vec![(NOWHERE, NOWHERE); keys];
        let by_end = if whole && self.order == ClientOrder::Realtime {
            self.writers_by_end()
        } else {
            Vec::new()
        };
        let mut known: Vec<u32> = Vec::new();
        for unit in 0..view.units.len() as u32 {
            view.step(unit)?;
            if self.place[unit as usize] == NOWHERE {
                continue;
            }
            let facts = &view.units[unit as usize];
            let reads = self.reads_of(unit);
            known.clear();
            if whole {
                known.extend(reads.iter().map(|read| read.source).filter(|&s| s != INITIAL));
                known.sort_unstable();
                known.dedup();
            }
            for read in reads {
                let is_later = |other: u32| self.place_of(other) > self.place_of(read.source);
                let knows =
                    |&other: &u32| is_later(other) && view.last_write(other, read.key).is_some();
                if known.iter().any(knows) {
                    return Err(wrong(read));
                }
                if whole && self.order != ClientOrder::None {
                    let (by, writer) = session[read.key.index()];
                    if by == facts.session && is_later(writer) {
                        return Err(wrong(read));
                    }
                }
                if let (Some(list), Some((start, _))) = (by_end.get(read.key.index()), facts.time) {
                    let ended = list.partition_point(|&(end, _)| end < start);
                    let latest = ended.checked_sub(1).map(|at| list[at].1);
                    if latest > self.place_of(read.source) {
                        return Err(wrong(read));
                    }
                }
                if !whole && read.source != INITIAL && !known.contains(&read.source) {
                    known.push(read.source);
                }
            }
            for &(key, _) in view.last_writes(unit) {
                session[key.index()] = (facts.session, unit);
            }
        }
        Ok(())
    }

    /// Returns for each key the ends of its writers in ascending order, each with the latest
    /// position of the writers that ended up to then.
    fn writers_by_end(&self) -> Vec<Vec<(i64, u32)>> {
        let view = self.view;
        let mut lists = vec![Vec::new(); view.history.key_count()];
        for &unit in &self.commits {
            let Some((_, Some(end))) = view.units[unit as usize].time else { continue };
            for &(key, _) in view.last_writes(unit) {
                lists[key.index()].push((end, self.place[unit as usize]));
            }
        }
        for list in &mut lists {
            list.sort_unstable();
            let mut latest = 0;
            for (_, place) in list.iter_mut() {
                latest = latest.max(*place);
                *place = latest;
            }
        }
        lists
    }

    /// Checks `tcc`, or `psi` if `versions` is true, by the transitive predecessors of each
    /// transaction.
    fn clocks(&self, versions: bool) -> Result<(), TransactionRejection> {
        let (chain, count) = self.chains();
        for first in (0..count).step_by(CHAINS_PER_PASS) {
            Pass::new(self, &chain, first as u32..(first + CHAINS_PER_PASS).min(count) as u32)
                .run(versions)?;
        }
        Ok(())
    }

    /// Assigns every unit to a chain: its session or, without session order, the chain of one of
    /// its sources.
    fn chains(&self) -> (Vec<u32>, usize) {
        let view = self.view;
        if self.order != ClientOrder::None {
            let sessions = view.units.iter().map(|unit| unit.session).collect();
            return (sessions, view.history.session_count());
        }
        let mut chain = vec![NOWHERE; view.units.len()];
        let mut tail: Vec<u32> = Vec::new();
        for &unit in &self.commits {
            let mut sources = self.reads_of(unit).iter().map(|read| read.source);
            let found = sources.find(|&s| s != INITIAL && tail[chain[s as usize] as usize] == s);
            chain[unit as usize] = match found {
                Some(source) => chain[source as usize],
                None => {
                    tail.push(unit);
                    tail.len() as u32 - 1
                }
            };
            tail[chain[unit as usize] as usize] = unit;
        }
        (chain, tail.len())
    }
}

/// Result of examining the versions that are later than the one that was read.
enum Walk {
    NoneKnown,
    Known,
    /// There are too many versions to examine one by one.
    TooMany,
}

/// Writers of a key by chain, with their positions in the order.
type WritersOfKey = Vec<(u32, Vec<u32>)>;

/// Clocks of all transactions for some of the chains.
///
/// An entry is one more than the position, in the commit order, of the last known transaction of
/// the chain; chains run along the commit order.
struct Pass<'r, 'v, 'h> {
    replay: &'r Replay<'v, 'h>,
    chain: &'r [u32],
    chains: std::ops::Range<u32>,
    rows: Vec<u32>,
    /// For real time: the units by end, and in `moments` the joined clocks of the units ended so
    /// far.
    ends: Vec<(i64, u32)>,
    moments: Vec<u32>,
}

impl<'r, 'v, 'h> Pass<'r, 'v, 'h> {
    fn new(replay: &'r Replay<'v, 'h>, chain: &'r [u32], chains: std::ops::Range<u32>) -> Self {
        let rows = vec![0; replay.commits.len() * chains.len()];
        let mut ends = Vec::new();
        if replay.order == ClientOrder::Realtime {
            for &unit in &replay.commits {
                if let Some((_, Some(end))) = replay.view.units[unit as usize].time {
                    ends.push((end, unit));
                }
            }
            ends.sort_unstable();
        }
        Pass { replay, chain, chains, rows, ends, moments: Vec::new() }
    }

    fn run(mut self, versions: bool) -> Result<(), TransactionRejection> {
        let replay = self.replay;
        let view = replay.view;
        let width = self.chains.len();
        let wrong = |read: &Read| TransactionRejection::Read { read: name(view.history, read.op) };
        // Writers of each key in each chain of this pass, by their positions in the order.
        let mut writers: Option<Vec<WritersOfKey>> = None;
        let mut last_of_session = vec![NOWHERE; view.history.session_count()];
        let mut row = vec![0u32; width];
        for (&unit, at) in replay.commits.iter().zip(0u32..) {
            view.step(at)?;
            row.fill(0);
            let facts = &view.units[unit as usize];
            if replay.order != ClientOrder::None {
                let before = std::mem::replace(&mut last_of_session[facts.session as usize], unit);
                self.join(&mut row, before);
            }
            for read in replay.reads_of(unit) {
                if read.source != INITIAL {
                    self.join(&mut row, read.source);
                }
            }
            if let (false, Some((start, _))) = (self.ends.is_empty(), facts.time) {
                let ended = self.ends.partition_point(|&(end, _)| end < start);
                self.join_moment(&mut row, ended);
            }
            if versions {
                for &(key, _) in view.last_writes(unit) {
                    let write = view.last_write(unit, key).expect("it was just listed");
                    self.join(&mut row, replay.previous[write]);
                }
            }
            for read in replay.reads_of(unit) {
                if versions {
                    // A transaction that knows a later version also knows the next one.
                    let next = replay.overwriter(read);
                    if next != NOWHERE && next != unit && self.is_known(&row, next) {
                        return Err(wrong(read));
                    }
                    continue;
                }
                match self.walk_versions(&row, unit, at, read) {
                    Walk::NoneKnown => continue,
                    Walk::Known => return Err(wrong(read)),
                    Walk::TooMany => {}
                }
                let source = replay.place_of(read.source);
                let list = &writers.get_or_insert_with(|| self.writers())[read.key.index()];
                for &(column, ref places) in list {
                    let known = places.partition_point(|&place| place < row[column as usize]);
                    let latest = known.checked_sub(1).map(|last| places[last]);
                    if latest > source {
                        return Err(wrong(read));
                    }
                }
            }
            if self.chains.contains(&self.chain[unit as usize]) {
                row[(self.chain[unit as usize] - self.chains.start) as usize] = at + 1;
            }
            self.rows[at as usize * width..][..width].copy_from_slice(&row);
        }
        Ok(())
    }

    /// Checks whether a version between the one that a read returned and the reader is known.
    fn walk_versions(&self, row: &[u32], unit: u32, at: u32, read: &Read) -> Walk {
        let replay = self.replay;
        let mut next = replay.overwriter(read);
        for _ in 0..MAX_VERSIONS_WALKED {
            if next == NOWHERE || replay.place[next as usize] >= at {
                return Walk::NoneKnown;
            }
            if next != unit && self.is_known(row, next) {
                return Walk::Known;
            }
            let write = replay.view.last_write(next, read.key);
            next = replay.next[write.expect("it wrote the key")];
        }
        Walk::TooMany
    }

    fn writers(&self) -> Vec<WritersOfKey> {
        let view = self.replay.view;
        let mut lists: Vec<WritersOfKey> = vec![Vec::new(); view.history.key_count()];
        for (&unit, place) in self.replay.commits.iter().zip(0u32..) {
            let chain = self.chain[unit as usize];
            if !self.chains.contains(&chain) {
                continue;
            }
            let column = chain - self.chains.start;
            for &(key, _) in view.last_writes(unit) {
                let list = &mut lists[key.index()];
                match list.iter_mut().find(|(c, _)| *c == column) {
                    Some((_, places)) => places.push(place),
                    None => list.push((column, vec![place])),
                }
            }
        }
        lists
    }

    fn join(&self, row: &mut [u32], unit: u32) {
        if unit == NOWHERE {
            return;
        }
        let width = self.chains.len();
        let other = &self.rows[self.replay.place[unit as usize] as usize * width..][..width];
        row.iter_mut().zip(other).for_each(|(a, &b)| *a = (*a).max(b));
    }

    /// Joins the clocks of the `ended` units that ended first; they all come earlier in the order.
    fn join_moment(&mut self, row: &mut [u32], ended: usize) {
        let width = self.chains.len();
        while self.moments.len() < ended * width {
            let at = self.moments.len() / width;
            let mut moment = vec![0; width];
            if at > 0 {
                moment.copy_from_slice(&self.moments[(at - 1) * width..]);
            }
            self.join(&mut moment, self.ends[at].1);
            self.moments.extend(moment);
        }
        if let Some(last) = ended.checked_sub(1) {
            let moment = &self.moments[last * width..][..width];
            row.iter_mut().zip(moment).for_each(|(a, &b)| *a = (*a).max(b));
        }
    }

    fn is_known(&self, row: &[u32], unit: u32) -> bool {
        let chain = self.chain[unit as usize];
        self.chains.contains(&chain)
            && row[(chain - self.chains.start) as usize] > self.replay.place[unit as usize]
    }
}
