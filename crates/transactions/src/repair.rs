//! Repairs the order and the clocks of a graph after few new edges.
//!
//! Saturation takes many rounds, most of which find few edges, and a new edge changes the clocks of
//! few events: the others knew it through other transactions. So after few new edges
//!
//! - only those parts of the order are sorted again that an edge violates: from the position of its
//!   target to the position of its start, overlapping parts together. No edge leads backwards
//!   between a part and the rest, so a cycle lies within one part (after Pearce and Kelly, JEA
//!   2007);
//! - clocks are joined along new edges and along edges from events whose clocks changed, each event
//!   once, in the order. Events that may change are marked by their positions.
//!
//! The result is the same as that of a sort and a sweep over all events. A round costs the size of
//! the changes, and one inspection of each mark.

use std::ops::Range;

use consistory_verdict::{Budget, Stopped};

use crate::graph::{Clocks, Graph, Link, Sorted, changed_columns, rows};

/// Smallest ratio of all edges to new edges for which the new edges count as few.
const FEW_OF: usize = 8;

/// Number of events repaired between two checks of the budget.
const EVENTS_PER_CHECK: usize = 4096;

const NONE: u32 = u32::MAX;

/// Clocks that are repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Past,
    Future,
}

/// Tables for repairs, built at the first repair.
#[derive(Debug, Default)]
pub(crate) struct Repair {
    incoming: Lists,
    outgoing: Lists,
    /// Position of each event in the order; empty if unknown.
    places: Vec<u32>,
    /// Number of missing predecessors of each event; 0 between repairs.
    waits: Vec<u32>,
}

/// Links at each event, newest first.
#[derive(Debug, Default)]
struct Lists {
    heads: Vec<u32>,
    next: Vec<u32>,
}

impl Lists {
    fn push(&mut self, event: u32) {
        let link = self.next.len() as u32;
        self.next.push(std::mem::replace(&mut self.heads[event as usize], link));
    }

    fn pop(&mut self, event: u32) {
        let before = self.next.pop().expect("the link is listed");
        self.heads[event as usize] = before;
    }

    /// Iterates over the links at an event.
    #[inline]
    fn at(&self, event: u32) -> impl Iterator<Item = u32> {
        let some = |link: u32| (link != NONE).then_some(link);
        std::iter::successors(some(self.heads[event as usize]), move |&link| {
            some(self.next[link as usize])
        })
    }
}

impl Repair {
    /// Forgets the positions of events after the order has changed.
    pub(crate) fn forget_order(&mut self) {
        self.places.clear();
    }

    /// Removes the links that come after the first `count`.
    pub(crate) fn unlist(&mut self, removed: &[Link], count: usize) {
        let listed = self.incoming.next.len().saturating_sub(count);
        for link in removed[..listed].iter().rev() {
            self.incoming.pop(link.to);
            self.outgoing.pop(link.from);
        }
    }

    /// Adds the new links to the lists.
    fn list(&mut self, events: usize, links: &[Link]) {
        self.incoming.heads.resize(events, NONE);
        self.outgoing.heads.resize(events, NONE);
        for link in &links[self.incoming.next.len()..] {
            self.incoming.push(link.to);
            self.outgoing.push(link.from);
        }
    }

    fn locate(&mut self, order: &[u32]) {
        if self.places.is_empty() {
            self.places.resize(order.len(), 0);
            for (place, &event) in order.iter().enumerate() {
                self.places[event as usize] = place as u32;
            }
        }
    }
}

impl Graph<'_, '_> {
    /// Prepares for [`Graph::place_in_order`].
    pub(crate) fn locate_events(&mut self) {
        self.repair.locate(&self.order);
    }

    /// Returns the position of an event in the order.
    #[inline]
    pub(crate) fn place_in_order(&self, event: u32) -> u32 {
        self.repair.places[event as usize]
    }

    /// Checks whether the edges after the first `old` are so few that a repair pays.
    pub(crate) fn are_few_since(&self, old: usize) -> bool {
        (self.links.len() - old) * FEW_OF < self.links.len()
    }

    /// Changes the order so that it respects all edges, or finds that there is a cycle.
    pub(crate) fn repair_order(&mut self) -> Sorted {
        self.repair.list(self.events(), &self.links);
        self.repair.locate(&self.order);
        self.repair.waits.resize(self.events(), 0);
        let place = |event: u32| self.repair.places[event as usize];
        let against = |link: &Link| {
            let (start, end) = (place(link.to), place(link.from));
            (start <= end).then_some((start, end))
        };
        let mut parts: Vec<(u32, u32)> =
            self.links[self.sorted_links..].iter().filter_map(against).collect();
        parts.sort_unstable();
        let mut parts = parts.into_iter().peekable();
        while let Some((start, mut end)) = parts.next() {
            while let Some((_, other)) = parts.next_if(|&(start, _)| start <= end) {
                end = end.max(other);
            }
            if self.sort_part(start..end + 1) == Sorted::Cyclic {
                return Sorted::Cyclic;
            }
        }
        self.sorted_links = self.links.len();
        Sorted::Acyclic
    }

    /// Sorts the events at some positions of the order; if there is a cycle, leaves them as they
    /// are.
    fn sort_part(&mut self, part: Range<u32>) -> Sorted {
        let mut repair = std::mem::take(&mut self.repair);
        let events = &self.order[part.start as usize..part.end as usize];
        let is_inside = |&event: &u32| part.contains(&repair.places[event as usize]);
        let mut waits = std::mem::take(&mut repair.waits);
        let after = |event: u32| {
            let ends = repair.outgoing.at(event).map(|link| self.links[link as usize].to);
            ends.chain(self.successor(event)).filter(is_inside)
        };
        for &event in events {
            after(event).for_each(|to| waits[to as usize] += 1);
        }
        let mut sorted: Vec<u32> = Vec::with_capacity(events.len());
        sorted.extend(events.iter().filter(|&&event| waits[event as usize] == 0));
        let mut at = 0;
        while let Some(&event) = sorted.get(at) {
            at += 1;
            for to in after(event) {
                waits[to as usize] -= 1;
                if waits[to as usize] == 0 {
                    sorted.push(to);
                }
            }
        }
        let is_acyclic = sorted.len() == events.len();
        if is_acyclic {
            for (&event, place) in sorted.iter().zip(part.clone()) {
                repair.places[event as usize] = place;
            }
            self.order[part.start as usize..part.end as usize].copy_from_slice(&sorted);
        } else {
            events.iter().for_each(|&event| waits[event as usize] = 0);
        }
        repair.waits = waits;
        self.repair = repair;
        if is_acyclic { Sorted::Acyclic } else { Sorted::Cyclic }
    }

    /// Updates the clocks of one direction, starting from new edges.
    pub(crate) fn repair_clocks(&mut self, way: Way, budget: &Budget) -> Result<(), Stopped> {
        self.repair.list(self.events(), &self.links);
        self.repair.locate(&self.order);
        let clocks = match way {
            Way::Past => std::mem::take(&mut self.past),
            Way::Future => std::mem::take(&mut self.future),
        };
        let Clocks { rows: mut table, mut changed, links: old } = clocks;
        changed.fill(0);
        let last = self.order.len() - 1;
        // Events are processed in the order of these positions.
        let place = |event: u32| match way {
            Way::Past => self.repair.places[event as usize] as usize,
            Way::Future => last - self.repair.places[event as usize] as usize,
        };
        let mut marks = Marks::new(self.order.len());
        for link in &self.links[old..] {
            marks.set(place(if way == Way::Past { link.to } else { link.from }));
        }
        let mut before = vec![0; self.width];
        let mut met = 0;
        let mut at = 0;
        while let Some(here) = marks.next(at) {
            at = here + 1;
            met += 1;
            if met % EVENTS_PER_CHECK == 0 {
                budget.check()?;
            }
            let event = self.order[if way == Way::Past { here } else { last - here }];
            let row = event as usize * self.width..(event as usize + 1) * self.width;
            before.copy_from_slice(&table[row.clone()]);
            let mut join = |other: u32| {
                let [into, other] = rows(&mut table, self.width, event, other);
                let pairs = into.iter_mut().zip(other.iter());
                match way {
                    Way::Past => pairs.for_each(|(a, &b)| *a = (*a).max(b)),
                    Way::Future => pairs.for_each(|(a, &b)| *a = (*a).min(b)),
                }
            };
            let (sources, beside) = match way {
                Way::Past => (&self.repair.incoming, self.predecessor(event)),
                Way::Future => (&self.repair.outgoing, self.successor(event)),
            };
            for link in sources.at(event) {
                let Link { from, to, .. } = self.links[link as usize];
                let other = if way == Way::Past { from } else { to };
                if link as usize >= old || changed[other as usize] != 0 {
                    join(other);
                }
            }
            if let Some(other) = beside
                && changed[other as usize] != 0
            {
                join(other);
            }
            let columns = changed_columns(&before, &table[row]);
            if columns == 0 {
                continue;
            }
            changed[event as usize] = columns;
            let (targets, beside) = match way {
                Way::Past => (&self.repair.outgoing, self.successor(event)),
                Way::Future => (&self.repair.incoming, self.predecessor(event)),
            };
            for link in targets.at(event) {
                let Link { from, to, .. } = self.links[link as usize];
                marks.set(place(if way == Way::Past { to } else { from }));
            }
            if let Some(other) = beside {
                marks.set(place(other));
            }
        }
        let clocks = Clocks { rows: table, changed, links: self.links.len() };
        match way {
            Way::Past => self.past = clocks,
            Way::Future => self.future = clocks,
        }
        Ok(())
    }
}

/// A set of positions that is traversed in ascending order while it grows.
struct Marks {
    words: Vec<u64>,
}

impl Marks {
    fn new(places: usize) -> Self {
        Marks { words: vec![0; places.div_ceil(64)] }
    }

    #[inline]
    fn set(&mut self, place: usize) {
        self.words[place / 64] |= 1 << (place % 64);
    }

    /// Returns the first marked position from `start` on.
    #[inline]
    fn next(&self, start: usize) -> Option<usize> {
        let mut at = start / 64;
        let mut word = self.words.get(at)? & (!0 << (start % 64));
        while word == 0 {
            at += 1;
            word = *self.words.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use consistory_history::{Action, HistoryBuilder};
    use consistory_verdict::{Budget, ClientOrder};

    use crate::graph::{Graph, Link, Shape, Sorted, Why, has_changed};
    use crate::problem::Problem;
    use crate::view::Transactions;

    const SESSIONS: u32 = 5;
    const WRITES: u32 = 12;

    /// Returns the next random number below a bound.
    fn draw(state: &mut u64, bound: u32) -> u32 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        ((*state >> 33) % u64::from(bound)) as u32
    }

    fn is_extension(graph: &Graph<'_, '_>) -> bool {
        let mut places = vec![0; graph.events()];
        graph.order.iter().zip(0..).for_each(|(&event, place)| places[event as usize] = place);
        let mut sorted = graph.order.clone();
        sorted.sort_unstable();
        let is_before = |a: u32, b: u32| places[a as usize] < places[b as usize];
        sorted.into_iter().eq(0..graph.events() as u32)
            && graph.links.iter().all(|link| is_before(link.from, link.to))
            && (0..graph.events() as u32)
                .all(|event| graph.predecessor(event).is_none_or(|before| is_before(before, event)))
    }

    /// Adds random edges a few at a time, undoes some of them, and compares the order and the
    /// clocks with those of a full computation.
    #[test]
    fn repairs_find_what_sweeps_find() {
        let mut b = HistoryBuilder::new();
        for session in 0..SESSIONS {
            let (session, key) = (b.session(&format!("s{session}")), b.key("x"));
            for _ in 0..WRITES {
                let value = b.int(1);
                b.push(session, Action::Write { key, value });
            }
        }
        let history = b.finish().unwrap();
        let tx = Transactions::new(&history).unwrap();
        let problem = Problem::new(&tx, ClientOrder::Session, &[]);
        let budget = Budget::unlimited();
        let (mut cycles, mut repairs) = (0, 0);
        for seed in 0..60 {
            let mut state = seed;
            let shape = if seed % 2 == 0 { Shape::Whole } else { Shape::Split };
            let mut graph = Graph::new(&problem, shape);
            let events = graph.events() as u32;
            let edge = |state: &mut u64| {
                // Mostly along the sessions, so that cycles are rare.
                let from = draw(state, events);
                let limit = if draw(state, 60) == 0 { events } else { events / SESSIONS };
                let length = events / SESSIONS;
                let to = draw(state, SESSIONS) * length
                    + (from % length + draw(state, 9)).min(length - 1);
                let to = if limit == events { draw(state, events) } else { to };
                Link { from, to, why: Why::Ends }
            };
            for round in 0..60 {
                let before = graph.links.len();
                for _ in 0..1 + draw(&mut state, 3) + if round == 0 { 20 } else { 0 } {
                    let link = edge(&mut state);
                    if link.from % (events / SESSIONS) < link.to % (events / SESSIONS)
                        || draw(&mut state, 12) == 0
                    {
                        graph.links.push(link);
                    }
                }
                repairs += usize::from(before > 0 && graph.are_few_since(before));
                let mut anew = Graph::new(&problem, shape);
                anew.links.clone_from(&graph.links);
                let sorted = anew.sort(&budget).unwrap();
                assert_eq!(graph.sort(&budget).unwrap(), sorted, "seed {seed}, round {round}");
                if sorted == Sorted::Cyclic {
                    cycles += 1;
                    graph.truncate_links(before);
                    assert_eq!(graph.sort(&budget).unwrap(), Sorted::Acyclic);
                    anew = Graph::new(&problem, shape);
                    anew.links.clone_from(&graph.links);
                    assert_eq!(anew.sort(&budget).unwrap(), Sorted::Acyclic);
                }
                assert!(is_extension(&graph), "seed {seed}, round {round}");
                let old = (graph.past.rows.clone(), graph.future.rows.clone());
                for graph in [&mut graph, &mut anew] {
                    graph.sweep_past(&budget).unwrap();
                    graph.sweep_future(&budget).unwrap();
                }
                assert_eq!(graph.past.rows, anew.past.rows, "seed {seed}, round {round}");
                assert_eq!(graph.future.rows, anew.future.rows, "seed {seed}, round {round}");
                for (old, clocks) in [(old.0, &graph.past), (old.1, &graph.future)] {
                    for (at, (old, new)) in old.iter().zip(&clocks.rows).enumerate() {
                        let columns = clocks.changed[at / graph.width];
                        let is_marked = has_changed(columns, at % graph.width);
                        assert!(old == new || is_marked, "seed {seed}, round {round}");
                    }
                }
            }
        }
        assert!(cycles > 20 && repairs > 1000, "{cycles} cycles, {repairs} repairs");
    }
}
