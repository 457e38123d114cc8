//! The graph of events that a level orders, with its clocks.
//!
//! A transaction is one event or, for `pc` and `si`, two: its snapshot, at which it reads, and its
//! commit, at which it writes. The events of a chain are ordered. Real time is an additional chain,
//! of the moments at which transactions ended. All other constraints are edges, each with its
//! reason.
//!
//! ```text
//!   session 0    s0 ── c0 ── s1 ── c1         s: snapshot, c: commit
//!                        ╲ end      ╱ start
//!   real time      ─────── e0 ───────
//! ```
//!
//! Every event has two clocks: for each chain, the number of its events that come before, and the
//! first one that comes after. One sweep over the events in each direction computes them. From
//! sweep to sweep they only grow (or shrink), and the sweep marks the columns that changed. After
//! few new edges the order and the clocks are repaired instead ([`crate::repair`]).

use consistory_history::KeyId;
use consistory_verdict::{Budget, ClientOrder, Stopped};

use crate::problem::Problem;
use crate::repair::{Repair, Way};

/// Number of events processed between two checks of the budget.
const EVENTS_PER_CHECK: usize = 4096;

/// Reason of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// The target reads from the start.
    ReadsFrom { read: u32 },
    /// A transaction ends: an edge into the chain of real time.
    Ends,
    /// A transaction starts: an edge out of the chain of real time.
    Starts,
    /// `ww`: a list that was read contains both values in this order.
    List { key: KeyId },
    /// `ww`: the reader knows the start, but reads from the target.
    Known { read: u32 },
    /// `ww`: both write the key, and the opposite order would close a cycle.
    Writers { key: KeyId },
    /// `rw`: the read returned a version that the target overwrote.
    Overwrites { read: u32 },
    /// `ww`, assumed in the current case.
    Assumed { key: KeyId },
}

/// An edge between two events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) why: Why,
}

/// Number of events per transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// One event per transaction.
    Whole,
    /// A snapshot and a commit per transaction.
    Split,
}

/// Events, edges and clocks of a level.
#[derive(Debug)]
pub(crate) struct Graph<'p, 't> {
    pub(crate) problem: &'p Problem<'t>,
    pub(crate) shape: Shape,
    pub(crate) links: Vec<Link>,
    /// First event of real time; these come after the events of transactions.
    first_moment: u32,
    moments: u32,
    /// Number of columns of a clock: the chains, and real time.
    pub(crate) width: usize,
    /// For each event and chain, the number of the chain's events that come before it or equal it.
    pub(crate) past: Clocks,
    /// For each event and chain, the first of the chain's events that comes after it or equals it.
    pub(crate) future: Clocks,
    /// Events in an order that extends the graph's, from the last successful sort.
    pub(crate) order: Vec<u32>,
    /// Number of links that the order is known to respect.
    pub(crate) sorted_links: usize,
    pub(crate) repair: Repair,
}

/// Clocks of all events in one direction.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    /// One row per event, with one column per chain.
    pub(crate) rows: Vec<u32>,
    /// Columns of each event's row that the last sweep changed; column `c` is bit `c % 64`.
    pub(crate) changed: Vec<u64>,
    /// Number of links that the rows account for.
    pub(crate) links: usize,
}

/// Result of sorting the events along the edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sorted {
    Acyclic,
    Cyclic,
}

impl<'p, 't> Graph<'p, 't> {
    /// Builds the graph of sessions, reads-from, real time and the version orders of lists.
    pub(crate) fn new(problem: &'p Problem<'t>, shape: Shape) -> Self {
        let events = (problem.tx.len() as u32) << shape.shift();
        let mut graph = Graph {
            problem,
            shape,
            links: Vec::new(),
            first_moment: events,
            moments: 0,
            width: problem.chain_count(),
            past: Clocks::default(),
            future: Clocks::default(),
            order: Vec::new(),
            sorted_links: 0,
            repair: Repair::default(),
        };
        for node in 0..problem.tx.len() as u32 {
            let mut last = u32::MAX;
            for (read, source) in problem.read_sources(node) {
                let is_chained = problem.links.get(node as usize) == Some(&read);
                if source != last && !is_chained {
                    let (from, to) = (graph.commit(source), graph.snapshot(node));
                    graph.links.push(Link { from, to, why: Why::ReadsFrom { read } });
                }
                last = source;
            }
        }
        if problem.order == ClientOrder::Realtime {
            graph.add_real_time();
        }
        graph
    }

    fn add_real_time(&mut self) {
        let tx = self.problem.tx;
        // A transaction that does not count orders nothing, so no path leads through it.
        let counted = || (0..tx.len() as u32).filter(|&node| self.problem.counts[node as usize]);
        let nodes = || counted().filter_map(|node| Some((node, tx.time(node)?)));
        let mut ends: Vec<i64> = nodes().filter_map(|(_, (_, end))| end).collect();
        ends.sort_unstable();
        ends.dedup();
        // A moment after which no transaction starts before the next end has no effect; such
        // moments are few.
        self.moments = ends.len() as u32;
        self.width += 1;
        for (node, (start, end)) in nodes() {
            if let Some(end) = end {
                let at = ends.partition_point(|&e| e < end) as u32;
                let link =
                    Link { from: self.commit(node), to: self.first_moment + at, why: Why::Ends };
                self.links.push(link);
            }
            let before = ends.partition_point(|&e| e < start) as u32;
            if before > 0 {
                let link = Link {
                    from: self.first_moment + before - 1,
                    to: self.snapshot(node),
                    why: Why::Starts,
                };
                self.links.push(link);
            }
        }
    }

    /// Returns the event at which a transaction reads.
    #[inline]
    pub(crate) fn snapshot(&self, node: u32) -> u32 {
        node << self.shape.shift()
    }

    /// Returns the event at which a transaction writes.
    #[inline]
    pub(crate) fn commit(&self, node: u32) -> u32 {
        ((node + 1) << self.shape.shift()) - 1
    }

    /// Returns the transaction of an event, or `None` for a moment of real time.
    #[inline]
    pub(crate) fn node(&self, event: u32) -> Option<u32> {
        (event < self.first_moment).then(|| event >> self.shape.shift())
    }

    /// Returns the position of a commit in its chain.
    #[inline]
    pub(crate) fn commit_place(&self, node: u32) -> u32 {
        ((self.problem.place_of[node as usize] + 1) << self.shape.shift()) - 1
    }

    /// Counts the events.
    pub(crate) fn events(&self) -> usize {
        (self.first_moment + self.moments) as usize
    }

    /// Returns the chain and position of an event.
    pub(crate) fn spot(&self, event: u32) -> (u32, u32) {
        match self.node(event) {
            Some(node) => {
                let shift = self.shape.shift();
                let within = event - (node << shift);
                let place = (self.problem.place_of[node as usize] << shift) + within;
                (self.problem.chain_of[node as usize], place)
            }
            None => (self.width as u32 - 1, event - self.first_moment),
        }
    }

    /// Returns the event at a position of a chain, if the chain is long enough.
    pub(crate) fn event_at(&self, chain: u32, place: u32) -> Option<u32> {
        if chain as usize >= self.problem.chain_count() {
            return (place < self.moments).then(|| self.first_moment + place);
        }
        let shift = self.shape.shift();
        let within = place - (place >> shift << shift);
        let member = self.problem.members(chain).get((place >> shift) as usize);
        member.map(|&node| (node << shift) + within)
    }

    /// Returns the event right before another in its chain.
    pub(crate) fn predecessor(&self, event: u32) -> Option<u32> {
        match self.node(event) {
            Some(node) if event > self.snapshot(node) => Some(event - 1),
            Some(node) => {
                let place = self.problem.place_of[node as usize];
                let members = self.problem.members(self.problem.chain_of[node as usize]);
                place.checked_sub(1).map(|before| self.commit(members[before as usize]))
            }
            None => (event > self.first_moment).then(|| event - 1),
        }
    }

    /// Returns the event right after another in its chain.
    pub(crate) fn successor(&self, event: u32) -> Option<u32> {
        match self.node(event) {
            Some(node) if event == self.snapshot(node) && self.shape == Shape::Split => {
                Some(event + 1)
            }
            Some(node) => {
                let place = self.problem.place_of[node as usize];
                let members = self.problem.members(self.problem.chain_of[node as usize]);
                members.get(place as usize + 1).map(|&after| self.snapshot(after))
            }
            None => (event + 1 < self.first_moment + self.moments).then_some(event + 1),
        }
    }

    /// Returns the events chain by chain, and the number of each event's chain.
    pub(crate) fn chains(&self) -> consistory_order::Chains {
        let chain = |event| consistory_order::ChainId(self.spot(event).0);
        let chain_of: Vec<_> = (0..self.events() as u32).map(chain).collect();
        let events = self.problem.nodes_by_chain().iter();
        let events = events.flat_map(|&node| self.snapshot(node)..=self.commit(node));
        let moments = self.first_moment..self.first_moment + self.moments;
        consistory_order::Chains::along(events.chain(moments), &chain_of)
    }

    /// Returns the size of both clocks of all events in bytes.
    pub(crate) fn clock_bytes(&self) -> u64 {
        self.events() as u64 * self.width as u64 * 8
    }

    /// Sorts the events along the edges, or finds that there is a cycle.
    pub(crate) fn sort(&mut self, budget: &Budget) -> Result<Sorted, Stopped> {
        budget.check()?;
        if !self.order.is_empty() && self.are_few_since(self.sorted_links) {
            return Ok(self.repair_order());
        }
        let events = self.events();
        let mut waits = vec![0u32; events];
        for link in &self.links {
            waits[link.to as usize] += 1;
        }
        let outgoing = Adjacency::new(events, &self.links, |link| (link.from, link.to));
        let mut follower = vec![u32::MAX; events];
        for event in 0..events as u32 {
            if let Some(before) = self.predecessor(event) {
                follower[before as usize] = event;
                waits[event as usize] += 1;
            }
        }
        let mut order: Vec<u32> = Vec::with_capacity(events);
        order.extend((0..events as u32).filter(|&event| waits[event as usize] == 0));
        let mut at = 0;
        while at < order.len() {
            let event = order[at];
            at += 1;
            let next = follower[event as usize];
            let next = if next == u32::MAX { &[][..] } else { std::slice::from_ref(&next) };
            for &to in outgoing.at(event).iter().chain(next) {
                waits[to as usize] -= 1;
                if waits[to as usize] == 0 {
                    order.push(to);
                }
            }
        }
        let acyclic = order.len() == events;
        if !acyclic {
            order.clear();
        }
        self.order = order;
        self.sorted_links = self.links.len();
        self.repair.forget_order();
        Ok(if acyclic { Sorted::Acyclic } else { Sorted::Cyclic })
    }

    /// Updates the clocks of the past, along the order of the last sort.
    pub(crate) fn sweep_past(&mut self, budget: &Budget) -> Result<(), Stopped> {
        if self.past.links > 0 && self.are_few_since(self.past.links) {
            return self.repair_clocks(Way::Past, budget);
        }
        let incoming = Adjacency::new(self.events(), &self.links, |link| (link.to, link.from));
        let Clocks { rows: mut past, mut changed, links } = std::mem::take(&mut self.past);
        past.resize(self.events() * self.width, 0);
        changed.resize(self.events(), 0);
        let mut old = vec![0; self.width];
        for (i, &event) in self.order.iter().enumerate() {
            if i.is_multiple_of(EVENTS_PER_CHECK) {
                budget.check()?;
            }
            let (chain, place) = self.spot(event);
            let row = event as usize * self.width;
            old.copy_from_slice(&past[row..row + self.width]);
            past[row + chain as usize] = place + 1;
            let before = self.predecessor(event);
            for &from in incoming.at(event).iter().chain(&before) {
                let [into, other] = rows(&mut past, self.width, event, from);
                for (a, &b) in into.iter_mut().zip(other.iter()) {
                    *a = (*a).max(b);
                }
            }
            changed[event as usize] = match links {
                0 => u64::MAX,
                _ => changed_columns(&old, &past[row..row + self.width]),
            };
        }
        self.past = Clocks { rows: past, changed, links: self.links.len() };
        Ok(())
    }

    /// Updates the clocks of the future, along the order of the last sort.
    pub(crate) fn sweep_future(&mut self, budget: &Budget) -> Result<(), Stopped> {
        if self.future.links > 0 && self.are_few_since(self.future.links) {
            return self.repair_clocks(Way::Future, budget);
        }
        let outgoing = Adjacency::new(self.events(), &self.links, |link| (link.from, link.to));
        let mut follower = vec![u32::MAX; self.events()];
        for event in 0..self.events() as u32 {
            if let Some(before) = self.predecessor(event) {
                follower[before as usize] = event;
            }
        }
        let Clocks { rows: mut future, mut changed, links } = std::mem::take(&mut self.future);
        future.resize(self.events() * self.width, u32::MAX);
        changed.resize(self.events(), 0);
        let mut old = vec![0; self.width];
        for (i, &event) in self.order.iter().rev().enumerate() {
            if i.is_multiple_of(EVENTS_PER_CHECK) {
                budget.check()?;
            }
            let (chain, place) = self.spot(event);
            let row = event as usize * self.width;
            old.copy_from_slice(&future[row..row + self.width]);
            future[row + chain as usize] = place;
            let next = follower[event as usize];
            let next = (next != u32::MAX).then_some(next);
            for &to in outgoing.at(event).iter().chain(&next) {
                let [into, other] = rows(&mut future, self.width, event, to);
                for (a, &b) in into.iter_mut().zip(other.iter()) {
                    *a = (*a).min(b);
                }
            }
            changed[event as usize] = match links {
                0 => u64::MAX,
                _ => changed_columns(&old, &future[row..row + self.width]),
            };
        }
        self.future = Clocks { rows: future, changed, links: self.links.len() };
        Ok(())
    }

    /// Returns the clock of an event's past.
    #[inline]
    pub(crate) fn past_of(&self, event: u32) -> &[u32] {
        &self.past.rows[event as usize * self.width..][..self.width]
    }

    /// Returns the clock of an event's future.
    #[inline]
    pub(crate) fn future_of(&self, event: u32) -> &[u32] {
        &self.future.rows[event as usize * self.width..][..self.width]
    }

    /// Removes all edges after the first `count`, and forgets the clocks.
    pub(crate) fn truncate_links(&mut self, count: usize) {
        self.repair.unlist(&self.links[count.min(self.links.len())..], count);
        self.links.truncate(count);
        self.sorted_links = self.sorted_links.min(count);
        self.past.rows.fill(0);
        self.past.links = 0;
        self.future.rows.fill(u32::MAX);
        self.future.links = 0;
    }

    /// Keeps some of the edges; there must not be clocks yet.
    pub(crate) fn retain_links(&mut self, keep: impl FnMut(&Link) -> bool) {
        self.links.retain(keep);
        self.order.clear();
        self.repair = Repair::default();
    }
}

impl Shape {
    /// Returns the binary logarithm of the number of events of a transaction.
    #[inline]
    pub(crate) fn shift(self) -> u32 {
        match self {
            Shape::Whole => 0,
            Shape::Split => 1,
        }
    }
}

/// Returns the columns in which two rows differ, as bits.
pub(crate) fn changed_columns(old: &[u32], new: &[u32]) -> u64 {
    let words = old.chunks(64).zip(new.chunks(64));
    let differ = |(old, new): (&[u32], &[u32])| {
        let pairs = old.iter().zip(new).enumerate();
        pairs.fold(0, |bits, (column, (a, b))| bits | u64::from(a != b) << column)
    };
    words.map(differ).fold(0, |all, bits| all | bits)
}

/// Checks whether a column may be among the changed ones.
#[inline]
pub(crate) fn has_changed(columns: u64, column: usize) -> bool {
    columns >> (column % 64) & 1 == 1
}

/// Returns the mutable row of an event and that of another one.
#[inline]
pub(crate) fn rows(table: &mut [u32], width: usize, event: u32, other: u32) -> [&mut [u32]; 2] {
    let (a, b) = (event as usize * width, other as usize * width);
    if a < b {
        let (left, right) = table.split_at_mut(b);
        [&mut left[a..a + width], &mut right[..width]]
    } else {
        let (left, right) = table.split_at_mut(a);
        [&mut right[..width], &mut left[b..b + width]]
    }
}

/// Second members of pairs, grouped by the first: for example, the neighbours of each event.
#[derive(Debug)]
pub(crate) struct Adjacency {
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl Adjacency {
    pub(crate) fn new(
        events: usize,
        links: &[Link],
        ends_of: impl Fn(&Link) -> (u32, u32) + Clone,
    ) -> Self {
        Self::group(events, links.iter().map(ends_of))
    }

    /// Groups the second members of pairs by the first.
    pub(crate) fn of_pairs(groups: usize, pairs: &[(u32, u32)]) -> Self {
        Self::group(groups, pairs.iter().copied())
    }

    fn group(groups: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0u32; groups + 1];
        let mut count = 0;
        for (at, _) in pairs.clone() {
            starts[at as usize + 1] += 1;
            count += 1;
        }
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut ends = vec![0u32; count];
        for (at, end) in pairs {
            let slot = &mut next[at as usize];
            ends[*slot as usize] = end;
            *slot += 1;
        }
        Adjacency { starts, ends }
    }

    #[inline]
    pub(crate) fn at(&self, event: u32) -> &[u32] {
        let event = event as usize;
        &self.ends[self.starts[event] as usize..self.starts[event + 1] as usize]
    }
}
