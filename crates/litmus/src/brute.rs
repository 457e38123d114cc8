//! Outcomes by executing the definition literally: every total order is tried.
//!
//! For a store-atomic model, every total order of all events, including full fences, that preserves
//! the pairs of the table is tried; otherwise every choice of one such order per thread. Each read
//! returns the latest of the writes to its address that are before it in the order of its thread or
//! in program order. This is for very small programs: there are n! orders of n events, and as many
//! choices again for each thread with its own view. Tests compare the other engines with this one.

use consistory_verdict::Budget;

use crate::program::{LocationId, Outcomes, Program};
use crate::semantics::OutcomesError;
use crate::skeleton::{Skeleton, Source, skeletons};
use crate::table::{Causality, FenceAgreement, Forwarding, Order, Table, Views};

/// Finds every outcome by trying all total orders.
pub fn brute_force(
    program: &Program,
    table: &Table,
    budget: &Budget,
) -> Result<Outcomes, OutcomesError> {
    let mut outcomes = Outcomes::new();
    for skeleton in skeletons(program)? {
        let orders = orders(&skeleton, table, budget)?;
        let (views, rule) = match table.order {
            Order::Memory(forwarding) => (1, Rule::Memory(forwarding)),
            Order::Views(views) => (program.threads.len(), Rule::Views(views)),
        };
        let mut search =
            BruteForceSearch { program, skeleton: &skeleton, orders: &orders, rule, budget };
        search.choose(&mut Vec::new(), views, &mut outcomes)?;
    }
    Ok(outcomes)
}

/// A total order, as the position of each event. Partial fences are not part of it; they only
/// exclude orders.
type Places = Vec<usize>;

enum Rule {
    Memory(Forwarding),
    Views(Views),
}

/// Returns every total order that preserves the pairs of the table.
fn orders(
    skeleton: &Skeleton,
    table: &Table,
    budget: &Budget,
) -> Result<Vec<Places>, OutcomesError> {
    let kept = table.kept(skeleton);
    let size = skeleton.events.len();
    let is_ordered =
        |&at: &usize| skeleton.events[at].location.is_some() || skeleton.events[at].is_full_fence();
    let events: Vec<usize> = (0..size).filter(is_ordered).collect();
    let mut all = Vec::new();
    let mut open: Vec<Vec<usize>> = vec![Vec::new()];
    while let Some(order) = open.pop() {
        if all.len() % 1024 == 0 {
            budget.check()?;
        }
        if order.len() == events.len() {
            let mut places = vec![0; size];
            for (place, &event) in order.iter().enumerate() {
                places[event] = place;
            }
            all.push(places);
            continue;
        }
        for &next in &events {
            let is_open =
                |&earlier: &usize| kept[earlier] & (1 << next) != 0 && !order.contains(&earlier);
            if !order.contains(&next) && !events.iter().any(is_open) {
                open.push([&order[..], &[next]].concat());
            }
        }
    }
    Ok(all)
}

struct BruteForceSearch<'a> {
    program: &'a Program,
    skeleton: &'a Skeleton,
    orders: &'a [Places],
    rule: Rule,
    budget: &'a Budget,
}

impl BruteForceSearch<'_> {
    /// Chooses an order for each view that has none yet.
    fn choose(
        &mut self,
        chosen: &mut Vec<usize>,
        views: usize,
        outcomes: &mut Outcomes,
    ) -> Result<(), OutcomesError> {
        if chosen.len() == views {
            if let Some(outcome) = self.outcome(chosen) {
                outcomes.insert(outcome);
            }
            return Ok(());
        }
        self.budget.check()?;
        for at in 0..self.orders.len() {
            chosen.push(at);
            if self.agrees(chosen) {
                self.choose(chosen, views, outcomes)?;
            }
            chosen.pop();
        }
        Ok(())
    }

    /// Checks whether the last view agrees with the previous ones.
    fn agrees(&self, chosen: &[usize]) -> bool {
        let Rule::Views(views) = self.rule else { return true };
        let last = chosen.len() - 1;
        let before = |view: usize, a: usize, b: usize| {
            self.orders[chosen[view]][a] < self.orders[chosen[view]][b]
        };
        let events = &self.skeleton.events;
        let is_fence = |at: usize| events[at].is_full_fence() || events[at].is_atomic;
        let ordered = |at: &usize| events[*at].location.is_some() || events[*at].is_full_fence();
        let all: Vec<usize> = (0..events.len()).filter(ordered).collect();
        let agree_on = |a: usize, b: usize| {
            let share_address =
                events[a].location.is_some() && events[a].location == events[b].location;
            let write_one_address = events[a].writes() && events[b].writes() && share_address;
            write_one_address
                || match views.fences {
                    FenceAgreement::Local => false,
                    FenceAgreement::Fences => is_fence(a) && is_fence(b),
                    FenceAgreement::Everything => is_fence(a) || is_fence(b),
                }
        };
        let is_causal = |read: usize, write: usize| {
            events[read].reads()
                && events[write].writes()
                && match views.causality {
                    Causality::Free => false,
                    Causality::SameAddress => events[read].location == events[write].location,
                    Causality::Full => true,
                }
        };
        (0..last).all(|view| {
            all.iter().all(|&a| {
                all.iter().filter(|&&b| a != b).all(|&b| {
                    if agree_on(a, b) && before(view, a, b) != before(last, a, b) {
                        return false;
                    }
                    // a read before b in b's own view is before b in every view.
                    let owner = events[b].thread;
                    let breaks = |own: usize, other: usize| {
                        owner == own && before(own, a, b) && !before(other, a, b)
                    };
                    !(is_causal(a, b) && (breaks(view, last) || breaks(last, view)))
                })
            })
        })
    }

    fn outcome(&self, chosen: &[usize]) -> Option<crate::program::Outcome> {
        let events = &self.skeleton.events;
        let mut sources = vec![Source::Initial; events.len()];
        for read in (0..events.len()).filter(|&at| events[at].reads()) {
            let view = if chosen.len() == 1 { 0 } else { events[read].thread };
            let places = &self.orders[chosen[view]];
            let location = events[read].location?;
            let seen = self.skeleton.writes_of(location).filter(|&write| {
                write != read && (places[write] < places[read] || self.skeleton.po(write, read))
            });
            if let Some(write) = seen.max_by_key(|&write| places[write]) {
                sources[read] = Source::Event(write);
                if matches!(self.rule, Rule::Memory(Forwarding::Sober)) {
                    let is_late = |other: usize| {
                        events[other].thread != events[read].thread
                            && places[other] < places[write]
                            && places[other] > places[read]
                    };
                    if self.skeleton.writes_of(location).any(is_late) {
                        return None;
                    }
                }
            }
        }
        let values = self.skeleton.values(&sources)?;
        let last = |location: LocationId| {
            let places = &self.orders[chosen[0]];
            let last = self.skeleton.writes_of(location).max_by_key(|&write| places[write]);
            last.map_or(Source::Initial, Source::Event)
        };
        Some(self.skeleton.outcome(self.program, &values, last))
    }
}
