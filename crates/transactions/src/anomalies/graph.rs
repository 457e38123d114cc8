//! The dependencies between the transactions of a history, cyclic or not.
//!
//! A `ww` leads from a version to any later one, an `rw` to any later version, an `so` to any later
//! transaction of the session, and an `rt` to any transaction that starts later. To represent all
//! of them without a quadratic number of edges, the graph has auxiliary nodes, through which edges
//! pass at no cost: versions, initial versions of keys, positions in sessions, and moments of real
//! time.
//!
//! ```text
//!   t ──ww──> version 2 ──> version 3 ──> version 4
//!                │             │             │
//!                v             v             v
//!             writer 2      writer 3      writer 4
//! ```

use consistory_history::{KeyId, KeyKind};
use consistory_verdict::{Budget, ClientOrder, Dependency, Level, Relates, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use super::after;
use super::cycles::components;
use crate::graph::{Adjacency, Link, Sorted, Why};
use crate::problem::Problem;
use crate::saturate::Saturation;
use crate::view::{INITIAL, OPEN};
use crate::weak::Forced;

/// Largest number of steps of the search for contradicting version orders of one history. Beyond
/// it, only the orders of lists are used, and the graph is incomplete.
const MAX_VERSION_STEPS: usize = 1_000_000;

/// Number of transactions processed between two checks of the budget.
const NODES_PER_CHECK: usize = 1024;

/// Kind of a dependency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    So,
    Rt,
    Wr,
    Ww,
    Rw,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [Kind::So, Kind::Rt, Kind::Wr, Kind::Ww, Kind::Rw];
}

/// Kinds of dependencies that do not need a version order.
const CAUSES: &[Kind] = &[Kind::So, Kind::Rt, Kind::Wr];

/// Evidence that one version comes before another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Evidence {
    /// A list that was read contains both.
    List,
    /// The second writer reads from the first one.
    Reads { read: u32 },
    /// The second writer follows the first one in its session.
    Session,
    /// The second writer depends on the first one through other transactions.
    Causes,
    /// The reader knows the first writer, but reads from the second one.
    Known { read: u32, level: Level },
}

impl Evidence {
    /// Returns the weakest level at which the evidence counts.
    fn level(self) -> Level {
        match self {
            Evidence::Known { level, .. } => level,
            _ => Level::ReadCommitted,
        }
    }
}

/// A later version, with the evidence for its order.
#[derive(Clone, Copy, Debug)]
struct Version {
    to: u32,
    evidence: Evidence,
}

/// Transactions and their dependencies, as a graph with auxiliary nodes.
#[derive(Debug)]
pub(super) struct DependencyGraph<'p, 't> {
    pub(super) problem: &'p Problem<'t>,
    /// Reads that read from each transaction.
    readers: Adjacency,
    reader_of: Vec<u32>,
    /// Writer of each version; versions are numbered like `Transactions::writes`.
    writer_of: Vec<u32>,
    /// Version that each read returned, or [`INITIAL`] or [`OPEN`].
    version_read: Vec<u32>,
    later: Vec<Vec<Version>>,
    /// Whether all evidence was used; `false` if the step limit was reached.
    is_whole: bool,
    /// Versions of each key.
    versions_of: Adjacency,
    /// Times at which transactions ended, sorted.
    moments: Vec<i64>,
    /// Transactions that start after each moment and not after the next one.
    starting: Vec<Vec<u32>>,
}

impl<'p, 't> DependencyGraph<'p, 't> {
    pub(super) fn new(problem: &'p Problem<'t>, budget: &Budget) -> Result<Self, Stopped> {
        let tx = problem.tx;
        let mut reader_of = vec![0; tx.reads().len()];
        let mut writer_of = vec![0; tx.writes().len()];
        for node in 0..tx.len() as u32 {
            tx.reads_of(node).for_each(|read| reader_of[read] = node);
            tx.writes_of(node).for_each(|write| writer_of[write] = node);
        }
        let counted = |&(source, _): &(u32, u32)| source < OPEN;
        let pairs: Vec<(u32, u32)> =
            problem.sources.iter().copied().zip(0u32..).filter(counted).collect();
        let readers = Adjacency::of_pairs(tx.len(), &pairs);
        let versions: Vec<(u32, u32)> = (0..tx.writes().len())
            .filter(|&write| problem.counts[writer_of[write] as usize])
            .map(|write| (tx.writes()[write].key.0, write as u32))
            .collect();
        let versions_of = Adjacency::of_pairs(tx.history().key_count(), &versions);
        let mut graph = DependencyGraph {
            problem,
            readers,
            reader_of,
            writer_of,
            version_read: Vec::new(),
            later: vec![Vec::new(); tx.writes().len()],
            is_whole: true,
            versions_of,
            moments: Vec::new(),
            starting: Vec::new(),
        };
        let version_read = |(read, &source): (usize, &u32)| match source {
            INITIAL | OPEN => source,
            node => graph.version(node, problem.key_of(read as u32)).unwrap_or(OPEN),
        };
        graph.version_read = problem.sources.iter().enumerate().map(version_read).collect();
        graph.order_versions(budget)?;
        graph.add_moments();
        Ok(graph)
    }

    /// Checks whether all evidence for version orders was used.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn version(&self, node: u32, key: KeyId) -> Option<u32> {
        let tx = self.problem.tx;
        tx.writes_of(node).find(|&write| tx.writes()[write].key == key).map(|write| write as u32)
    }

    pub(super) fn key_of_version(&self, version: u32) -> KeyId {
        self.problem.tx.writes()[version as usize].key
    }

    /// Collects the evidence for version orders, and drops evidence that contradicts earlier
    /// evidence.
    fn order_versions(&mut self, budget: &Budget) -> Result<(), Stopped> {
        let mut edges: Vec<(u32, Version)> = Vec::new();
        self.order_by_lists(&mut edges);
        self.order_by_writers(&mut edges);
        let known = self.order_by_causes(&mut edges, budget)?;
        self.order_by_reads(&mut edges, budget)?;
        edges.extend(known);
        for &(from, version) in &edges {
            self.later[from as usize].push(version);
        }
        let cyclic = self.keys_with_cycles();
        if cyclic.is_empty() {
            return Ok(());
        }
        edges.retain(|&(from, _)| cyclic.contains(&self.key_of_version(from)));
        for &(from, _) in &edges {
            self.later[from as usize].clear();
        }
        let mut steps = 0;
        for (from, version) in edges {
            let closes = self.comes_later(version.to, from, &mut steps);
            if !closes && (steps < MAX_VERSION_STEPS || version.evidence == Evidence::List) {
                self.later[from as usize].push(version);
            }
        }
        self.is_whole = steps < MAX_VERSION_STEPS;
        Ok(())
    }

    fn order_by_lists(&self, edges: &mut Vec<(u32, Version)>) {
        let tx = self.problem.tx;
        let evidence = Evidence::List;
        for key in tx.history().keys() {
            let order: Vec<u32> =
                tx.lists().order(key).iter().filter_map(|&node| self.version(node, key)).collect();
            edges.extend(order.windows(2).map(|pair| (pair[0], Version { to: pair[1], evidence })));
            let Some(&last) = order.last() else { continue };
            let read: FxHashSet<u32> = order.iter().copied().collect();
            let unread =
                self.versions_of.at(key.0).iter().filter(|version| !read.contains(version));
            edges.extend(unread.map(|&to| (last, Version { to, evidence })));
        }
    }

    /// Orders the versions of registers whose writers depend on each other.
    fn order_by_writers(&self, edges: &mut Vec<(u32, Version)>) {
        let problem = self.problem;
        let tx = problem.tx;
        let is_register = |key: KeyId| tx.history().key_kind(key) != KeyKind::List;
        let mut latest: FxHashMap<KeyId, u32> = FxHashMap::default();
        let mut session = u32::MAX;
        for node in (0..tx.len() as u32).filter(|&node| problem.counts[node as usize]) {
            if tx.session_of(node) != session {
                session = tx.session_of(node);
                latest.clear();
            }
            for to in tx.writes_of(node).map(|write| write as u32) {
                let key = self.key_of_version(to);
                if !is_register(key) {
                    continue;
                }
                for (read, source) in problem.read_sources(node) {
                    if let Some(from) = self.version(source, key) {
                        let evidence = Evidence::Reads { read };
                        edges.push((from, Version { to, evidence }));
                    }
                }
                if problem.order != ClientOrder::None
                    && let Some(from) = latest.insert(key, to)
                {
                    edges.push((from, Version { to, evidence: Evidence::Session }));
                }
            }
        }
    }

    /// Orders the versions of registers of which readers know one without reading it.
    fn order_by_reads(
        &self,
        edges: &mut Vec<(u32, Version)>,
        budget: &Budget,
    ) -> Result<(), Stopped> {
        for level in [Level::ReadCommitted, Level::ReadAtomic] {
            let mut forced = Forced::new(self.problem);
            forced.by_reads(level, budget)?;
            if level == Level::ReadAtomic {
                forced.by_sessions(budget)?;
                forced.by_real_time(budget)?;
            }
            edges.extend(forced.links.iter().filter_map(|link| self.known(*link, level)));
        }
        Ok(())
    }

    /// Returns the order of two versions of a register that a level forces.
    fn known(&self, link: Link, level: Level) -> Option<(u32, Version)> {
        let Why::Known { read } = link.why else { return None };
        let key = self.problem.key_of(read);
        if self.problem.tx.history().key_kind(key) == KeyKind::List {
            return None;
        }
        let (from, to) = (self.version(link.from, key)?, self.version(link.to, key)?);
        Some((from, Version { to, evidence: Evidence::Known { read, level } }))
    }

    /// Orders the versions of registers whose writers depend on each other through other
    /// transactions, and returns the orders of versions that readers know through other
    /// transactions. Reads that are part of a cycle of reads and sessions are ignored.
    fn order_by_causes(
        &self,
        edges: &mut Vec<(u32, Version)>,
        budget: &Budget,
    ) -> Result<Vec<(u32, Version)>, Stopped> {
        let problem = self.problem;
        let tx = problem.tx;
        if tx.history().keys().all(|key| tx.history().key_kind(key) == KeyKind::List) {
            return Ok(Vec::new());
        }
        let mut saturation = Saturation::new(problem, Level::Causal);
        if saturation.graph.sort(budget)? == Sorted::Cyclic {
            let components = components(self, CAUSES, budget)?;
            saturation.graph.retain_links(|link| {
                let component = |node: u32| components[node as usize];
                !matches!(link.why, Why::ReadsFrom { .. })
                    || component(link.from) != component(link.to)
            });
            if saturation.graph.sort(budget)? == Sorted::Cyclic {
                return Ok(Vec::new());
            }
        }
        budget.reserve(saturation.graph.clock_bytes() / 2)?;
        saturation.graph.sweep_past(budget)?;
        let base = saturation.graph.links.len();
        // Latest writer of each key in the current chain.
        let mut latest: FxHashMap<KeyId, u32> = FxHashMap::default();
        let mut chain = u32::MAX;
        for (count, &node) in problem.nodes_by_chain().iter().enumerate() {
            if count % NODES_PER_CHECK == 0 {
                budget.check()?;
            }
            // A read of an overwritten initial value is a cycle that needs no version order.
            let _ = saturation.derive_known(node);
            if problem.chain_of[node as usize] != chain {
                chain = problem.chain_of[node as usize];
                latest.clear();
            }
            if !problem.counts[node as usize] {
                continue;
            }
            let knows = saturation.graph.past_of(node);
            for to in tx.writes_of(node).map(|write| write as u32) {
                let key = self.key_of_version(to);
                if tx.history().key_kind(key) == KeyKind::List {
                    continue;
                }
                let earlier = latest.insert(key, node);
                for &group in problem.groups(key) {
                    let (column, own) = (group.chain as usize, group.chain == chain);
                    let known = if own { problem.place_of[node as usize] } else { knows[column] };
                    // The previous writer of the key in this chain has handled earlier positions.
                    let seen =
                        earlier.map_or(0, |earlier| saturation.graph.past_of(earlier)[column]);
                    let places = problem.writer_places(group);
                    let Some(at) = places.partition_point(|&place| place < known).checked_sub(1)
                    else {
                        continue;
                    };
                    if !own && places[at] < seen {
                        continue;
                    }
                    if let Some(from) = self.version(problem.writers(group)[at], key) {
                        edges.push((from, Version { to, evidence: Evidence::Causes }));
                    }
                }
            }
        }
        saturation.keep_fresh();
        let links = &saturation.graph.links[base..];
        Ok(links.iter().filter_map(|link| self.known(*link, Level::Causal)).collect())
    }

    /// Finds the keys for which the evidence on version orders is cyclic.
    fn keys_with_cycles(&self) -> FxHashSet<KeyId> {
        let mut waits = vec![0u32; self.later.len()];
        self.later.iter().flatten().for_each(|version| waits[version.to as usize] += 1);
        let mut ready: Vec<u32> =
            (0..waits.len() as u32).filter(|&version| waits[version as usize] == 0).collect();
        while let Some(version) = ready.pop() {
            for next in &self.later[version as usize] {
                waits[next.to as usize] -= 1;
                if waits[next.to as usize] == 0 {
                    ready.push(next.to);
                }
            }
        }
        let stuck = (0u32..).zip(&waits).filter(|(_, waits)| **waits > 0);
        stuck.map(|(version, _)| self.key_of_version(version)).collect()
    }

    fn comes_later(&self, from: u32, to: u32, steps: &mut usize) -> bool {
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut open = vec![from];
        while let Some(version) = open.pop() {
            if version == to || *steps >= MAX_VERSION_STEPS {
                return true;
            }
            *steps += 1;
            let later = self.later[version as usize].iter().map(|next| next.to);
            open.extend(later.filter(|&next| seen.insert(next)));
        }
        false
    }

    fn add_moments(&mut self) {
        let tx = self.problem.tx;
        if self.problem.order != ClientOrder::Realtime {
            return;
        }
        let time = |node: u32| tx.time(node);
        let ends = (0..tx.len() as u32).filter_map(|node| time(node)?.1);
        self.moments = ends.collect();
        self.moments.sort_unstable();
        self.moments.dedup();
        self.starting = vec![Vec::new(); self.moments.len()];
        for node in (0..tx.len() as u32).filter(|&node| self.problem.counts[node as usize]) {
            let Some((start, _)) = time(node) else { continue };
            let ended = self.moments.partition_point(|&end| end < start);
            if let Some(moment) = ended.checked_sub(1) {
                self.starting[moment].push(node);
            }
        }
    }

    /// Counts the transactions and auxiliary nodes.
    pub(super) fn len(&self) -> usize {
        self.place(0) as usize + self.transactions() + self.moments.len()
    }

    pub(super) fn transactions(&self) -> usize {
        self.problem.tx.len()
    }

    fn version_node(&self, version: u32) -> u32 {
        self.transactions() as u32 + version
    }

    fn initial_node(&self, key: KeyId) -> u32 {
        self.version_node(self.later.len() as u32) + key.0
    }

    /// Returns the auxiliary node for a transaction and the later ones of its session.
    fn place(&self, node: u32) -> u32 {
        self.version_node(self.later.len() as u32)
            + self.problem.tx.history().key_count() as u32
            + node
    }

    fn moment_node(&self, moment: usize) -> u32 {
        self.place(self.transactions() as u32) + moment as u32
    }

    /// Calls a function for each dependency that starts at a transaction: its kind, its target node
    /// and, for `wr` and `rw`, the read. The evidence of versions must count at `level`.
    pub(super) fn dependencies(
        &self,
        node: u32,
        level: Level,
        mut pass: impl FnMut(Kind, u32, u32),
    ) {
        let (problem, tx) = (self.problem, self.problem.tx);
        for &read in self.readers.at(node) {
            pass(Kind::Wr, self.reader_of[read as usize], read);
        }
        if problem.order != ClientOrder::None
            && (node as usize + 1) < tx.len()
            && tx.session_of(node + 1) == tx.session_of(node)
        {
            pass(Kind::So, self.place(node + 1), 0);
        }
        if let Some((_, Some(end))) = tx.time(node)
            && let Ok(moment) = self.moments.binary_search(&end)
        {
            pass(Kind::Rt, self.moment_node(moment), 0);
        }
        let counts = |next: &&Version| next.evidence.level() <= level;
        if problem.counts[node as usize] {
            for write in tx.writes_of(node) {
                for next in self.later[write].iter().filter(counts) {
                    pass(Kind::Ww, self.version_node(next.to), 0);
                }
            }
        }
        for read in tx.reads_of(node) {
            match self.version_read[read] {
                OPEN => {}
                INITIAL => {
                    pass(Kind::Rw, self.initial_node(problem.key_of(read as u32)), read as u32)
                }
                version => {
                    for next in self.later[version as usize].iter().filter(counts) {
                        pass(Kind::Rw, self.version_node(next.to), read as u32);
                    }
                }
            }
        }
    }

    /// Calls a function for each node that follows an auxiliary node at no cost; a transaction ends
    /// the dependency.
    pub(super) fn passages(&self, node: u32, level: Level, mut pass: impl FnMut(u32)) {
        let n = self.transactions() as u32;
        if node >= self.moment_node(0) {
            let moment = (node - self.moment_node(0)) as usize;
            self.starting[moment].iter().for_each(|&node| pass(node));
            if moment + 1 < self.moments.len() {
                pass(node + 1);
            }
        } else if node >= self.place(0) {
            let at = node - self.place(0);
            let tx = self.problem.tx;
            if self.problem.counts[at as usize] {
                pass(at);
            }
            if at + 1 < n && tx.session_of(at + 1) == tx.session_of(at) {
                pass(node + 1);
            }
        } else if node >= self.initial_node(KeyId(0)) {
            let key = node - self.initial_node(KeyId(0));
            self.versions_of
                .at(key)
                .iter()
                .for_each(|&version| pass(self.writer_of[version as usize]));
        } else {
            let version = node - n;
            pass(self.writer_of[version as usize]);
            let later = self.later[version as usize].iter();
            let counted = later.filter(|next| next.evidence.level() <= level);
            counted.for_each(|next| pass(self.version_node(next.to)));
        }
    }

    /// Returns the key if the node is a version.
    pub(super) fn key_at(&self, node: u32) -> Option<KeyId> {
        let version = node.checked_sub(self.transactions() as u32)?;
        ((version as usize) < self.later.len()).then(|| self.key_of_version(version))
    }

    /// Returns a dependency between two transactions with its evidence.
    pub(super) fn dependency(
        &self,
        (from, to): (u32, u32),
        kind: Kind,
        read: u32,
        key: Option<KeyId>,
        level: Level,
    ) -> Option<Dependency> {
        let problem = self.problem;
        let tx = problem.tx;
        let (first, last) = (tx.first_op(from), tx.first_op(to));
        let given = |relation| Dependency::given(first, last, relation);
        match kind {
            Kind::So => Some(given(Relates::So)),
            Kind::Rt => Some(given(Relates::Rt)),
            Kind::Wr => Some(given(Relates::Wr { read: problem.op_of(read) })),
            Kind::Ww => self.version_order((from, to), key?, level),
            Kind::Rw => {
                let mut found = given(Relates::Rw { read: problem.op_of(read) });
                let source = problem.sources[read as usize];
                if source != INITIAL {
                    let order = self.version_order((source, to), problem.key_of(read), level)?;
                    found.because.push(order);
                }
                Some(found)
            }
        }
    }

    /// Returns `ww` between two writers of a key, derived from the shortest chain of evidence.
    fn version_order(
        &self,
        (from, to): (u32, u32),
        key: KeyId,
        level: Level,
    ) -> Option<Dependency> {
        let tx = self.problem.tx;
        let (first, last) = (tx.first_op(from), tx.first_op(to));
        let mut found = Dependency::given(first, last, Relates::Ww { key });
        if tx.history().key_kind(key) == KeyKind::List {
            found.list = tx.lists().shown_by(key);
            return Some(found);
        }
        let (start, end) = (self.version(from, key)?, self.version(to, key)?);
        let mut before: FxHashMap<u32, (u32, Evidence)> = FxHashMap::default();
        let mut open = std::collections::VecDeque::from([start]);
        while let Some(version) = open.pop_front() {
            let later = self.later[version as usize].iter();
            for next in later.filter(|next| next.evidence.level() <= level) {
                before.entry(next.to).or_insert_with(|| {
                    open.push_back(next.to);
                    (version, next.evidence)
                });
            }
        }
        let mut steps = Vec::new();
        let mut at = end;
        while at != start {
            let (earlier, evidence) = *before.get(&at)?;
            steps.push(self.evident((earlier, at), key, evidence)?);
            at = earlier;
        }
        steps.reverse();
        if steps.len() == 1 {
            return steps.pop();
        }
        steps.push(Dependency::given(last, first, Relates::Ww { key }));
        found.because = steps;
        Some(found)
    }

    /// Returns `ww` between two versions of a register that the evidence orders.
    fn evident(
        &self,
        (from, to): (u32, u32),
        key: KeyId,
        evidence: Evidence,
    ) -> Option<Dependency> {
        let problem = self.problem;
        let tx = problem.tx;
        let (from, to) = (self.writer_of[from as usize], self.writer_of[to as usize]);
        let (first, last) = (tx.first_op(from), tx.first_op(to));
        let found = match evidence {
            Evidence::List => Dependency::given(first, last, Relates::Ww { key }),
            Evidence::Reads { read } => {
                after(first, last, key, Relates::Wr { read: problem.op_of(read) })
            }
            Evidence::Session => after(first, last, key, Relates::So),
            Evidence::Causes => {
                let mut found = Dependency::given(first, last, Relates::Ww { key });
                found.because = self.causes(from, to)?;
                found.because.push(Dependency::given(last, first, Relates::Ww { key }));
                found
            }
            Evidence::Known { read, level: Level::Causal } => {
                let reader = self.reader_of[read as usize];
                let misses = Relates::Rw { read: problem.op_of(read) };
                let mut found = Dependency::given(first, last, Relates::Ww { key });
                found.because = self.causes(from, reader)?;
                found.because.push(Dependency::given(tx.first_op(reader), first, misses));
                found
            }
            Evidence::Known { read, .. } => {
                let reader = self.reader_of[read as usize];
                let seen = problem.read_sources(reader).find(|&(_, source)| source == from);
                let relation = match seen {
                    Some((read, _)) => Relates::Wr { read: problem.op_of(read) },
                    None if tx.session_of(from) == tx.session_of(reader) && from < reader => {
                        Relates::So
                    }
                    None => Relates::Rt,
                };
                let knows = tx.first_op(reader);
                let mut found = Dependency::given(first, last, Relates::Ww { key });
                let misses = Relates::Rw { read: problem.op_of(read) };
                found.because = vec![
                    Dependency::given(first, knows, relation),
                    Dependency::given(knows, first, misses),
                ];
                found
            }
        };
        Some(found)
    }

    /// Returns a shortest path of `so`, `rt` and `wr` between two transactions.
    fn causes(&self, from: u32, to: u32) -> Option<Vec<Dependency>> {
        let is_transaction = |node: u32| (node as usize) < self.transactions();
        let mut arrivals: FxHashMap<u32, (u32, Kind, u32)> = FxHashMap::default();
        let mut open = std::collections::VecDeque::new();
        let mut node = from;
        while node != to {
            if is_transaction(node) {
                self.dependencies(node, Level::ReadCommitted, |kind, next, read| {
                    if CAUSES.contains(&kind) {
                        open.push_back((next, (node, kind, read)));
                    }
                });
            } else {
                let arrival = arrivals[&node];
                self.passages(node, Level::ReadCommitted, |next| open.push_front((next, arrival)));
            }
            loop {
                let (next, arrival) = open.pop_front()?;
                if let std::collections::hash_map::Entry::Vacant(slot) = arrivals.entry(next) {
                    slot.insert(arrival);
                    node = next;
                    break;
                }
            }
        }
        let mut path = Vec::new();
        while node != from {
            let (earlier, kind, read) = *arrivals.get(&node)?;
            path.push(self.dependency((earlier, node), kind, read, None, Level::ReadCommitted)?);
            node = earlier;
        }
        path.reverse();
        Some(path)
    }
}
