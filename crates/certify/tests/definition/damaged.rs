//! Damaged certificates are rejected, unless they still prove their claim.
//!
//! Whether a damaged certificate is still a proof is decided by brute force over all choices of
//! `wr` and `ww`: a damaged witness must still be one of them; the cases of a damaged violation
//! must still cover all of them, and the check that closes a case must fail for every choice in it.

use std::collections::BTreeMap;

use consistory_certify::certify_definition;
use consistory_history::{History, OpId};
use consistory_models::{CheckKind, Definition};
use consistory_verdict::{Certificate, Edge, Verdict};

use super::completions::{Completion, completions, rules_out};
use super::support::{
    Model, Random, SHAPES, Shape, all_models, history, json, judge, random_history, verdict,
};

struct Damaged {
    certificate: Certificate,
    what: &'static str,
    /// Whether the damage certainly destroys the proof.
    is_fatal: bool,
}

/// Damages certificates in many ways, one at a time.
struct Vandal<'a> {
    h: &'a History,
    definition: &'a Definition,
    damaged: Vec<Damaged>,
}

impl Vandal<'_> {
    fn other(&self, op: OpId) -> OpId {
        OpId((op.0 + 1) % (self.h.len() + self.h.key_count()) as u32)
    }

    /// Damages a certificate; `put` inserts a damaged part into the whole certificate.
    fn damage(&mut self, certificate: &Certificate, put: &dyn Fn(Certificate) -> Certificate) {
        match certificate {
            Certificate::Witness { ww, wr } => {
                self.choices(wr, &|wr| put(Certificate::Witness { ww: ww.clone(), wr }));
                for (key, (_, writes)) in ww.iter().enumerate() {
                    self.list(writes, &|list| {
                        let mut ww = ww.clone();
                        ww[key].1 = list;
                        put(Certificate::Witness { ww, wr: wr.clone() })
                    });
                    let doubled = [&ww[..], &[ww[key].clone()]].concat();
                    let certificate = Certificate::Witness { ww: doubled, wr: wr.clone() };
                    self.push("a key twice", true, put(certificate));
                }
            }
            Certificate::Order { order, wr } => {
                self.choices(wr, &|wr| put(Certificate::Order { order: order.clone(), wr }));
                self.list(order, &|order| put(Certificate::Order { order, wr: wr.clone() }));
            }
            Certificate::ThinAirRead { read } => {
                let read = self.other(*read);
                self.push("another read", false, put(Certificate::ThinAirRead { read }));
            }
            Certificate::Cycle { edges, observer, check } => {
                self.cycle(edges, *observer, *check, put);
            }
            Certificate::SplitOrder { writes, branches } => {
                let [a, b] = *writes;
                let split = |writes, branches: [Certificate; 2]| {
                    put(Certificate::SplitOrder { writes, branches: Box::new(branches) })
                };
                let [first, second] = &**branches;
                let both = || [first.clone(), second.clone()];
                self.push("one write twice", true, split([a, a], both()));
                self.push("another write", false, split([a, self.other(b)], both()));
                self.push("branches swapped", false, split([b, a], both()));
                for branch in [first, second] {
                    self.push("one branch only", false, put(branch.clone()));
                    self.push(
                        "one branch twice",
                        false,
                        split([a, b], [branch.clone(), branch.clone()]),
                    );
                }
                self.damage(first, &|first| split([a, b], [first, second.clone()]));
                self.damage(second, &|second| split([a, b], [first.clone(), second]));
            }
            Certificate::SplitRead { read, branches } => {
                let split = |read, branches| put(Certificate::SplitRead { read, branches });
                self.push("another read", false, split(self.other(*read), branches.clone()));
                for (i, (write, branch)) in branches.iter().enumerate() {
                    let mut fewer = branches.clone();
                    fewer.remove(i);
                    self.push("a branch less", true, split(*read, fewer));
                    let mut more = branches.clone();
                    more.push(branches[i].clone());
                    self.push("a branch twice", true, split(*read, more));
                    let mut moved = branches.clone();
                    moved[i].0 = self.other(*write);
                    self.push("another source", true, split(*read, moved));
                    self.push("one branch only", false, put(branch.clone()));
                    self.damage(branch, &|branch| {
                        let mut branches = branches.clone();
                        branches[i].1 = branch;
                        split(*read, branches)
                    });
                }
            }
            Certificate::SplitLast { .. }
            | Certificate::SessionOrders { .. }
            | Certificate::Closure { .. }
            | Certificate::Views { .. } => {
                unreachable!("definitions are not proved by these")
            }
        }
    }

    fn choices(&mut self, wr: &[(OpId, OpId)], put: &dyn Fn(Vec<(OpId, OpId)>) -> Certificate) {
        for (i, &(read, write)) in wr.iter().enumerate() {
            let mut fewer = wr.to_vec();
            fewer.remove(i);
            self.push("a choice less", true, put(fewer));
            for choice in [(read, self.other(write)), (self.other(read), write)] {
                let mut changed = wr.to_vec();
                changed[i] = choice;
                self.push("another choice", false, put(changed));
            }
        }
    }

    fn list(&mut self, list: &[OpId], put: &dyn Fn(Vec<OpId>) -> Certificate) {
        for (i, &op) in list.iter().enumerate() {
            let mut changed = list.to_vec();
            changed.remove(i);
            self.push("an operation less", true, put(changed.clone()));
            changed.insert(0, op);
            if i > 0 {
                self.push("an operation first", false, put(changed));
            }
            self.push("an operation twice", true, put([list, &[op]].concat()));
            let mut changed = list.to_vec();
            changed[i] = self.other(op);
            self.push("another operation", true, put(changed));
        }
    }

    fn cycle(
        &mut self,
        edges: &[Edge],
        observer: Option<OpId>,
        check: Option<u32>,
        put: &dyn Fn(Certificate) -> Certificate,
    ) {
        let cycle =
            |edges: Vec<Edge>, observer, check| put(Certificate::Cycle { edges, observer, check });
        let kind = check.and_then(|check| self.definition.checks().nth(check as usize));
        let is_walk = kind.is_none_or(|check| check.kind != CheckKind::Empty);
        for check in [None, Some(0), Some(1), Some(2)].into_iter().filter(|&other| other != check) {
            self.push("another check", false, cycle(edges.to_vec(), observer, check));
        }
        self.push("no such check", true, cycle(edges.to_vec(), observer, Some(99)));
        for changed in [None, Some(OpId(0)), Some(OpId(1))] {
            if changed != observer {
                let is_fatal = changed.is_some() != observer.is_some();
                self.push("another observer", is_fatal, cycle(edges.to_vec(), changed, check));
            }
        }
        if !edges.is_empty() {
            self.push("no edges", check.is_some(), cycle(Vec::new(), observer, check));
        }
        let hides = |name: &str| {
            self.definition.program().variables.iter().any(|variable| variable.name == name)
        };
        let hidden = ["po", "ww"].map(hides);
        for i in 0..edges.len() {
            let mut changed = edges.to_vec();
            changed[i].to = self.other(edges[i].to);
            self.push("an edge's end", is_walk, cycle(changed.clone(), observer, check));
            changed[i].to = OpId(9_999);
            self.push("an edge to nowhere", true, cycle(changed, observer, check));
            let mut changed = edges.to_vec();
            changed[i].from = self.other(edges[i].from);
            self.push("an edge's start", is_walk, cycle(changed, observer, check));
            let mut changed = edges.to_vec();
            changed.remove(i);
            self.push("an edge less", false, cycle(changed, observer, check));
            // One premise, on the leftmost path, is reversed.
            for (name, is_hidden) in ["po", "ww"].into_iter().zip(hidden) {
                let mut changed = edges.to_vec();
                let mut at = &mut changed[i];
                while at.relation.as_str() != name && !at.because.is_empty() {
                    at = &mut at.because[0];
                }
                if at.relation.as_str() == name && !is_hidden {
                    std::mem::swap(&mut at.from, &mut at.to);
                    self.push("a premise turned around", true, cycle(changed, observer, check));
                }
            }
        }
    }

    fn push(&mut self, what: &'static str, is_fatal: bool, certificate: Certificate) {
        self.damaged.push(Damaged { certificate, what, is_fatal });
    }
}

/// Brute-force knowledge of which completions satisfy which checks.
struct Truth<'a> {
    h: &'a History,
    model: &'a Model,
    all: &'a [Completion],
    /// The definition reduced to each single check.
    checks: BTreeMap<Option<u32>, Definition>,
}

impl Truth<'_> {
    fn is_proof(&mut self, claim: Verdict, certificate: &Certificate) -> bool {
        let (h, model, all) = (self.h, self.model, self.all);
        match certificate {
            Certificate::Witness { ww, wr } if claim == Verdict::Consistent => {
                let is_it = |completion: &&Completion| {
                    completion.ww.iter().all(|(key, writes)| {
                        let listed = ww.iter().find(|(other, _)| other == key);
                        listed.map_or(writes.len() == 1, |(_, listed)| listed == writes)
                    }) && wr.iter().all(|(read, write)| completion.wr.get(read) == Some(write))
                };
                let found: Vec<&Completion> = all.iter().filter(is_it).collect();
                found.len() == 1 && found[0].satisfies(h, &model.definition)
            }
            Certificate::Order { order, .. } if claim == Verdict::Consistent => {
                let mut sorted = order.clone();
                sorted.sort();
                sorted.dedup();
                sorted.len() == order.len() && all.iter().any(|c| c.satisfies(h, &model.definition))
            }
            _ => rules_out(certificate, &all.iter().collect::<Vec<_>>(), &mut |completion, at| {
                let alone = self.checks.entry(at).or_insert_with(|| match at {
                    Some(at) => model.check(at as usize),
                    None => model.nothing(),
                });
                !completion.satisfies(h, alone)
            }),
        }
    }
}

#[test]
fn a_damaged_certificate_is_rejected_or_is_still_a_proof() {
    let models = all_models();
    let mut counts: BTreeMap<&str, [u32; 2]> = BTreeMap::new();
    for seed in 0..250u64 {
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let shape = Shape { operations: shape.operations.min(6), ..shape };
        let mut random = Random(seed + 30_000);
        let text = random_history(&mut random, shape);
        let h = history(&text);
        for model in &models {
            let Some(judgement) = judge(&model.definition, &h) else { continue };
            let (claim, certificate) = verdict(&judgement);
            let has_store_order = model.definition.has_store_order();
            let Some(all) = completions(&h, has_store_order, 100) else { continue };
            let mut vandal = Vandal { h: &h, definition: &model.definition, damaged: Vec::new() };
            vandal.damage(certificate, &|whole| whole);
            let mut truth = Truth { h: &h, model, all: &all, checks: BTreeMap::new() };
            assert!(truth.is_proof(claim, certificate), "{} of seed {seed}\n{text}", model.name);
            let mut damaged = vandal.damaged;
            while damaged.len() > 25 {
                damaged.swap_remove(random.below(damaged.len()));
            }
            for Damaged { certificate, what, is_fatal } in damaged {
                let accepted = certify_definition(&h, &model.definition, claim, &certificate);
                let shown = || format!("{}, {what}\n{text}{:?}", model.name, certificate);
                if accepted.is_ok() {
                    assert!(!is_fatal, "{}", shown());
                    assert!(truth.is_proof(claim, &certificate), "{}", shown());
                }
                counts.entry(what).or_default()[usize::from(accepted.is_err())] += 1;
            }
        }
    }
    // Each kind of damage occurred, and nearly all of it was detected.
    assert_eq!(counts.len(), 25, "{counts:?}");
    let sum = |at: usize| counts.values().map(|count| count[at]).sum::<u32>();
    assert!(sum(1) > 20 * sum(0) && counts.values().all(|count| count[1] > 20), "{counts:?}");
}

#[test]
fn a_certificate_for_one_definition_proves_no_wrong_verdict_of_another() {
    let models = all_models();
    let (mut accepted, mut rejected) = (0, 0);
    for seed in 0..140u64 {
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let text = random_history(&mut Random(seed + 40_000), shape);
        let h = history(&text);
        let judged =
            || models.iter().filter_map(|model| Some((model, judge(&model.definition, &h)?)));
        let judgements: Vec<_> = judged().collect();
        for (from, judgement) in &judgements {
            let (_, certificate) = verdict(judgement);
            for (to, truth) in &judgements {
                for claim in [Verdict::Consistent, Verdict::Violation] {
                    let answer = certify_definition(&h, &to.definition, claim, certificate);
                    let shown = || {
                        format!("{} for {}\n{text}{}", from.name, to.name, json(&h, certificate))
                    };
                    assert!(answer.is_err() || truth.verdict() == claim, "{}", shown());
                    *(if answer.is_ok() { &mut accepted } else { &mut rejected }) += 1;
                }
            }
        }
    }
    assert!(accepted > 5_000 && rejected > 20_000, "{accepted} {rejected}");
}
