//! All choices of `wr` and `ww` for a tiny history, by brute force.

use std::collections::BTreeMap;

use consistory_certify::certify_definition;
use consistory_history::{History, KeyId, OpId};
use consistory_models::Definition;
use consistory_verdict::{Certificate, Verdict};

/// A choice of everything that is open.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    pub(crate) wr: BTreeMap<OpId, OpId>,
    /// Empty if the definition has no store order.
    pub(crate) ww: Vec<(KeyId, Vec<OpId>)>,
}

impl Completion {
    pub(crate) fn witness(&self) -> Certificate {
        let wr = self.wr.iter().map(|(&read, &write)| (read, write)).collect();
        Certificate::Witness { ww: self.ww.clone(), wr }
    }

    pub(crate) fn satisfies(&self, h: &History, definition: &Definition) -> bool {
        certify_definition(h, definition, Verdict::Consistent, &self.witness()).is_ok()
    }

    /// Returns whether one write comes before another, if both count.
    fn orders(&self, first: OpId, second: OpId) -> Option<bool> {
        self.ww.iter().find_map(|(_, writes)| {
            let place = |op: OpId| writes.iter().position(|&write| write == op);
            Some(place(first)? < place(second)?)
        })
    }
}

/// Lists every choice of a source for each read, including writes in its own future, and of an
/// order of the writes of each key, the initial write first; returns nothing if there are more than
/// `most`.
pub(crate) fn completions(
    h: &History,
    has_store_order: bool,
    most: usize,
) -> Option<Vec<Completion>> {
    let all = || h.ops().chain(h.keys().map(|key| h.initial_write(key)));
    let mut wrs = vec![BTreeMap::new()];
    for read in h.ops() {
        let Some(found) = h.reads(read) else { continue };
        let candidates = || all().filter(|&w| w != read && h.writes(w) == Some(found));
        let with = |wr: &BTreeMap<OpId, OpId>, write| {
            let mut wr = wr.clone();
            wr.insert(read, write);
            wr
        };
        wrs = wrs.iter().flat_map(|wr| candidates().map(|write| with(wr, write))).collect();
        if wrs.len() > most {
            return None;
        }
    }
    let mut found = Vec::new();
    for wr in wrs {
        let mut wws = vec![Vec::new()];
        for key in h.keys().filter(|_| has_store_order) {
            let counts = |write: OpId| h.is_certain(write) || wr.values().any(|&w| w == write);
            let writes: Vec<OpId> = h
                .ops()
                .filter(|&op| h.writes(op).is_some_and(|(k, _)| k == key) && counts(op))
                .collect();
            let orders = permutations(&writes);
            let with = |ww: &Vec<(KeyId, Vec<OpId>)>, order: &Vec<OpId>| {
                let order = [&[h.initial_write(key)], &order[..]].concat();
                [&ww[..], &[(key, order)]].concat()
            };
            wws = wws
                .iter()
                .flat_map(|ww| orders.iter().map(|order| with(ww, order)))
                .take(most + 1)
                .collect();
        }
        found.extend(wws.into_iter().map(|ww| Completion { wr: wr.clone(), ww }));
        if found.len() > most {
            return None;
        }
    }
    Some(found)
}

fn permutations(list: &[OpId]) -> Vec<Vec<OpId>> {
    let Some((&first, rest)) = list.split_first() else { return vec![Vec::new()] };
    let with_first = |order: Vec<OpId>| {
        (0..=order.len()).map(move |i| [&order[..i], &[first], &order[i..]].concat())
    };
    permutations(rest).into_iter().flat_map(with_first).collect()
}

/// Returns whether a violation's certificate rules out each of the given completions: the cases
/// must cover them all, and `is_ruled_out` must hold for each with the check that closes its case.
pub(crate) fn rules_out(
    certificate: &Certificate,
    remaining: &[&Completion],
    is_ruled_out: &mut dyn FnMut(&Completion, Option<u32>) -> bool,
) -> bool {
    match certificate {
        Certificate::ThinAirRead { .. } => remaining.iter().all(|c| is_ruled_out(c, None)),
        Certificate::Cycle { check, .. } => remaining.iter().all(|c| is_ruled_out(c, *check)),
        Certificate::SplitOrder { writes: [first, second], branches } => {
            let orders: Option<Vec<bool>> =
                remaining.iter().map(|c| c.orders(*first, *second)).collect();
            let Some(orders) = orders else { return false };
            branches.iter().zip([true, false]).all(|(branch, order)| {
                let here = remaining.iter().zip(&orders).filter(|(_, o)| **o == order);
                rules_out(branch, &here.map(|(c, _)| *c).collect::<Vec<_>>(), is_ruled_out)
            })
        }
        Certificate::SplitRead { read, branches } => {
            let is_listed =
                |c: &&Completion| branches.iter().any(|(w, _)| c.wr.get(read) == Some(w));
            remaining.iter().all(is_listed)
                && branches.iter().all(|(write, branch)| {
                    let here = remaining.iter().copied().filter(|c| c.wr.get(read) == Some(write));
                    rules_out(branch, &here.collect::<Vec<_>>(), is_ruled_out)
                })
        }
        _ => false,
    }
}
