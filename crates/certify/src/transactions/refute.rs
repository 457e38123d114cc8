//! Proofs of violations: cycles of dependencies, cases, and bad reads.

use consistory_history::{KeyId, OpId};
use consistory_verdict::{
    BadRead, ClientOrder, Dependency, Level, Relates, TransactionCertificate,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::view::{Fate, INITIAL, Source, View};
use super::{TransactionRejection, name};

/// Accepts a certificate of a violation.
pub(super) fn refute(
    view: &View<'_>,
    level: Level,
    order: ClientOrder,
    certificate: &TransactionCertificate,
) -> Result<(), TransactionRejection> {
    let mut read_from = vec![false; view.units.len()];
    let is_open = view.units.iter().any(|unit| unit.fate == Fate::Indeterminate);
    let units = if is_open { view.units.len() as u32 } else { 0 };
    for unit in 0..units {
        view.reads(unit, |read, _, source| {
            if let Ok(Source::One(source)) = source
                && source != INITIAL
            {
                read_from[source as usize] = true;
            }
            // Every append that a list shows was read.
            if let Some((key, list)) = view.external_list(read) {
                for written in list.iter().filter_map(|element| view.appender(key, element)) {
                    read_from[written.unit as usize] = true;
                }
            }
        });
    }
    let mut refuter = Refuter {
        view,
        level,
        order,
        read_from,
        choices: FxHashMap::default(),
        assumed: FxHashSet::default(),
        proven: Vec::new(),
        is_proven: FxHashSet::default(),
    };
    refuter.certificate(certificate)
}

/// An edge of `ww`: the unit of the earlier version, the unit of the later one, and the key.
type Version = (u32, u32, KeyId);

struct Refuter<'v, 'h> {
    view: &'v View<'h>,
    level: Level,
    order: ClientOrder,
    /// For each unit, whether an unambiguous read reads from it.
    read_from: Vec<bool>,
    /// Sources of ambiguous reads that this case assumes.
    choices: FxHashMap<OpId, u32>,
    /// Edges of `ww` that this case assumes.
    assumed: FxHashSet<Version>,
    /// Edges of `ww` that were proved in this case, oldest first.
    proven: Vec<Version>,
    is_proven: FxHashSet<Version>,
}

impl Refuter<'_, '_> {
    fn certificate(
        &mut self,
        certificate: &TransactionCertificate,
    ) -> Result<(), TransactionRejection> {
        match certificate {
            TransactionCertificate::Order { .. } => Err(TransactionRejection::Claim),
            TransactionCertificate::BadRead { kind, read, other } => {
                self.bad_read(*kind, *read, *other)
            }
            TransactionCertificate::Cycle { edges } => self.cycle(edges, None),
            TransactionCertificate::SplitOrder { key, writers, branches } => {
                let [a, b] = [self.unit(writers[0])?, self.unit(writers[1])?];
                let both_write = |unit| self.view.last_write(unit, *key).is_some();
                if a == b || !both_write(a) || !both_write(b) {
                    let op = name(self.view.history, writers[0]);
                    return Err(TransactionRejection::Cases { op });
                }
                for ((from, to), branch) in [(a, b), (b, a)].into_iter().zip(branches.iter()) {
                    let is_new = self.assumed.insert((from, to, *key));
                    self.branch(branch)?;
                    if is_new {
                        self.assumed.remove(&(from, to, *key));
                    }
                }
                Ok(())
            }
            TransactionCertificate::SplitRead { read, branches } => {
                let cases = || TransactionRejection::Cases { op: name(self.view.history, *read) };
                let Some((key, Ok(Source::Any(mut candidates)))) = self.view.source_of(*read)
                else {
                    return Err(cases());
                };
                if self.choices.contains_key(read) {
                    return Err(cases());
                }
                let history = self.view.history;
                for (write, branch) in branches {
                    let source = if history.is_initial(*write) {
                        INITIAL
                    } else {
                        self.view.unit_of[write.index()]
                    };
                    let is_write_of = match source {
                        INITIAL => *write == history.initial_write(key),
                        unit => self.view.last_writes(unit).contains(&(key, *write)),
                    };
                    let Some(at) = candidates.iter().position(|&c| c == source && is_write_of)
                    else {
                        return Err(cases());
                    };
                    candidates.swap_remove(at);
                    self.choices.insert(*read, source);
                    self.branch(branch)?;
                    self.choices.remove(read);
                }
                if candidates.is_empty() { Ok(()) } else { Err(cases()) }
            }
        }
    }

    /// Checks a case, and then drops the facts that were proved in it.
    fn branch(&mut self, branch: &TransactionCertificate) -> Result<(), TransactionRejection> {
        let known = self.proven.len();
        self.certificate(branch)?;
        for version in self.proven.drain(known..) {
            self.is_proven.remove(&version);
        }
        Ok(())
    }

    /// Checks that edges form a cycle that the level forbids; the edges may use `opposite` as a
    /// premise.
    fn cycle(
        &mut self,
        edges: &[Dependency],
        opposite: Option<Version>,
    ) -> Result<(), TransactionRejection> {
        for edge in edges {
            self.edge(edge, opposite)?;
        }
        let closes = edges.iter().zip(edges.iter().cycle().skip(1)).all(|(a, b)| a.to == b.from);
        if !closes || !forbids(self.level, edges) {
            let from = edges.first().map(|edge| name(self.view.history, edge.from));
            return Err(TransactionRejection::Cycle { from: from.unwrap_or_default() });
        }
        Ok(())
    }

    fn edge(
        &mut self,
        edge: &Dependency,
        opposite: Option<Version>,
    ) -> Result<(), TransactionRejection> {
        let (from, to) = (self.unit(edge.from)?, self.unit(edge.to)?);
        let history = self.view.history;
        let wrong = || TransactionRejection::Edge {
            from: name(history, edge.from),
            to: name(history, edge.to),
            relation: edge.relation.name(),
        };
        let (first, second) = (&self.view.units[from as usize], &self.view.units[to as usize]);
        let holds = from != to
            && match edge.relation {
                Relates::So => {
                    let in_order = first.session == second.session && from < to;
                    self.order != ClientOrder::None && in_order
                }
                Relates::Rt => {
                    let end = first.time.and_then(|(_, end)| end);
                    let start = second.time.map(|(start, _)| start);
                    let in_order = end.zip(start).is_some_and(|(end, start)| end < start);
                    self.order == ClientOrder::Realtime && in_order
                }
                Relates::Wr { read } => {
                    self.is_in(read, to)
                        && self.source(read).is_some_and(|(_, source)| source == from)
                }
                Relates::Ww { key } => return self.version(edge, (from, to, key), opposite),
                Relates::Rw { read } => {
                    let Some((key, source)) = self.source(read) else { return Err(wrong()) };
                    let writes = self.view.last_write(to, key).is_some();
                    if !self.is_in(read, from) || !writes || source == to {
                        return Err(wrong());
                    }
                    if source == INITIAL {
                        true
                    } else if let [premise] = &edge.because[..] {
                        let ends = (self.unit(premise.from)?, self.unit(premise.to)?);
                        if premise.relation != (Relates::Ww { key }) || ends != (source, to) {
                            return Err(wrong());
                        }
                        return self.edge(premise, opposite);
                    } else {
                        self.is_known((source, to, key), opposite)
                    }
                }
            };
        if holds { Ok(()) } else { Err(wrong()) }
    }

    fn is_known(&self, version: Version, opposite: Option<Version>) -> bool {
        opposite == Some(version)
            || self.assumed.contains(&version)
            || self.is_proven.contains(&version)
    }

    /// Checks an edge of `ww`, and adds it to the known ones if a cycle proves it.
    fn version(
        &mut self,
        edge: &Dependency,
        version: Version,
        opposite: Option<Version>,
    ) -> Result<(), TransactionRejection> {
        let (from, to, key) = version;
        let both_write =
            self.view.last_write(from, key).is_some() && self.view.last_write(to, key).is_some();
        let holds = if let Some(list) = edge.list {
            both_write && self.is_shown(list, version)
        } else if edge.because.is_empty() {
            both_write && self.is_known(version, opposite)
        } else {
            self.cycle(&edge.because, Some((to, from, key)))?;
            if both_write && self.is_proven.insert(version) {
                self.proven.push(version);
            }
            both_write
        };
        if holds {
            return Ok(());
        }
        Err(TransactionRejection::Edge {
            from: name(self.view.history, edge.from),
            to: name(self.view.history, edge.to),
            relation: "ww",
        })
    }

    /// Checks whether a list that was read contains the appends of the first transaction, and
    /// contains those of the second later or not at all.
    fn is_shown(&self, list: OpId, (from, to, key): Version) -> bool {
        let Some((read, elements)) = self.view.external_list(list) else { return false };
        if read != key {
            return false;
        }
        let place = |unit: u32| {
            let mut units = elements.iter().map(|element| self.view.appender(key, element));
            units.position(|written| written.is_some_and(|written| written.unit == unit))
        };
        place(from).is_some_and(|first| place(to).is_none_or(|second| first < second))
    }

    /// Returns the transaction with a given first operation, if it counts in this case.
    fn unit(&self, first: OpId) -> Result<u32, TransactionRejection> {
        let unit =
            self.view.unit(first).filter(|&unit| match self.view.units[unit as usize].fate {
                Fate::Committed => true,
                Fate::Aborted => false,
                Fate::Indeterminate => {
                    self.read_from[unit as usize]
                        || self.choices.values().any(|&source| source == unit)
                }
            });
        let misplaced = || TransactionRejection::Misplaced { op: name(self.view.history, first) };
        unit.ok_or_else(misplaced)
    }

    fn is_in(&self, op: OpId, unit: u32) -> bool {
        self.view.unit_of.get(op.index()) == Some(&unit)
    }

    /// Returns the key and the source of an external read in this case.
    fn source(&self, read: OpId) -> Option<(KeyId, u32)> {
        match self.view.source_of(read)? {
            (key, Ok(Source::One(source))) => Some((key, source)),
            (key, Ok(Source::Any(_))) => Some((key, *self.choices.get(&read)?)),
            _ => None,
        }
    }

    fn bad_read(
        &self,
        kind: BadRead,
        read: OpId,
        other: Option<OpId>,
    ) -> Result<(), TransactionRejection> {
        let good = || TransactionRejection::GoodRead { read: name(self.view.history, read) };
        let (key, source) = self.view.source_of(read).ok_or_else(good)?;
        if source == Err(kind) {
            return Ok(());
        }
        if kind != BadRead::IncompatibleOrder {
            return Err(good());
        }
        let (_, list) = self.view.external_list(read).ok_or_else(good)?;
        if other.is_none_or(|other| other == read) {
            return if self.view.is_well_formed(key, list) { Err(good()) } else { Ok(()) };
        }
        let (other_key, other) = other.and_then(|o| self.view.external_list(o)).ok_or_else(good)?;
        let fit = list.starts_with(other) || other.starts_with(list);
        if key == other_key && !fit { Ok(()) } else { Err(good()) }
    }
}

/// Checks whether a level forbids a cycle; see the table of the module above.
fn forbids(level: Level, cycle: &[Dependency]) -> bool {
    let is_rw = |edge: &Dependency| matches!(edge.relation, Relates::Rw { .. });
    let is_ww = |edge: &Dependency| matches!(edge.relation, Relates::Ww { .. });
    let anti = cycle.iter().filter(|edge| is_rw(edge)).count();
    let has_ww = cycle.iter().any(is_ww);
    let before = |at: usize| &cycle[(at + cycle.len() - 1) % cycle.len()];
    let preceded = |fits: &dyn Fn(&Dependency) -> bool| {
        (0..cycle.len()).all(|at| !is_rw(&cycle[at]) || fits(before(at)))
    };
    if cycle.len() < 2 || anti == 0 {
        return cycle.len() >= 2;
    }
    match level {
        Level::ReadCommitted => match cycle {
            [a, b] => match (a.relation, b.relation) {
                (Relates::Wr { read: first }, Relates::Rw { read: later })
                | (Relates::Rw { read: later }, Relates::Wr { read: first }) => first < later,
                _ => false,
            },
            _ => false,
        },
        Level::ReadAtomic => anti == 1 && !has_ww && cycle.len() == 2,
        Level::Causal => anti == 1 && !has_ww,
        Level::ParallelSnapshot => anti == 1,
        Level::Prefix => preceded(&|edge| !is_rw(edge) && !is_ww(edge)),
        Level::Snapshot => preceded(&|edge| !is_rw(edge)),
        Level::Serializable => true,
    }
}
