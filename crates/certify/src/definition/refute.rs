//! Violations of a definition: cases, each closed for all choices that it leaves open.
//!
//! A case assumes the source of a read (one case per candidate) or the order of two counting writes
//! of one key. The assumptions of a case and the cases around it, together with the choices that
//! the values, the initial writes and the final values settle, form a partial choice. The case is
//! closed if no completion of the partial choice makes all checks hold. There are five ways to show
//! this:
//!
//! | certificate | what is checked |
//! | --- | --- |
//! | a thin-air read | it has no candidate |
//! | a cycle of `po` and `wr`, without a check | the read comes before its source |
//! | no edges, without a check | nothing wrote a final value, or a key has two |
//! | `ww` and back by `final`, without a check | a write comes after all writes of the final value |
//! | a cycle, with a check | the check fails under the partial choice, and its relation only grows |
//!
//! In the last two rows the shown edges must exist too (see `walk`).
//!
//! Cases may contradict each other, for example two cases about one read. Such cases have no
//! completion, so whatever closes them is sound.

use consistory_definition::Definition;
use consistory_history::{KeyId, OpId};
use consistory_verdict::{Budget, Certificate, Edge, Relation};

use super::affordable;
use super::choice::{Choice, po};
use super::evaluate::{Evaluator, holds};
use super::walk::{Labels, rejected, shows};
use crate::cases::{Cases, Rules, no_proof};
use crate::finals::Finals;
use crate::reads_from::Candidates;
use crate::{Flaw, Rejection, exists};

/// Checks the proof of a violation.
pub(super) fn refute<'a>(
    candidates: &'a Candidates<'a>,
    definition: &'a Definition,
    certificate: &'a Certificate,
    budget: &'a Budget,
) -> Result<(), Rejection> {
    let mut proof = DefinitionProof {
        definition,
        finals: Finals::new(candidates.history),
        evaluator: None,
        budget,
        labels: Labels::new(candidates.history, definition),
    };
    Cases::new(candidates).check(certificate, &mut proof)
}

struct DefinitionProof<'a> {
    definition: &'a Definition,
    finals: Finals,
    /// Evaluator of the previous case, if there was one.
    evaluator: Option<Evaluator<'a>>,
    budget: &'a Budget,
    labels: Labels<'a>,
}

impl<'a> Rules<'a> for DefinitionProof<'a> {
    fn admits(&self, cases: &Cases<'a>, split: &Certificate) -> Result<(), Rejection> {
        match split {
            // The last write is determined by cases that order two writes.
            Certificate::SplitLast { .. } => Err(no_proof(split)),
            _ if self.definition.has_store_order() => Ok(()),
            _ => Err(Rejection::NoStoreOrder { part: cases.part("split") }),
        }
    }

    fn closes(
        &mut self,
        cases: &Cases<'a>,
        edges: &'a [Edge],
        observer: Option<OpId>,
        check: Option<u32>,
    ) -> Result<(), Rejection> {
        match check {
            Some(check) => self.failing_check(cases, edges, observer, check as usize),
            None if observer.is_some() => {
                Err(Rejection::NoSuchCheck { part: cases.part("observer") })
            }
            None => self.without_check(cases, edges),
        }
    }
}

impl<'a> DefinitionProof<'a> {
    /// Checks a violation of every definition, or of every definition with a store order.
    fn without_check(&mut self, cases: &Cases<'a>, edges: &[Edge]) -> Result<(), Rejection> {
        let [there, back] = edges else {
            if edges.is_empty() && self.finals.are_impossible() {
                return Ok(());
            }
            return Err(Rejection::NotACycle { part: cases.part("edges") });
        };
        if (there.to, back.to) != (back.from, there.from) {
            return Err(Rejection::NotACycle { part: cases.part("edges") });
        }
        match (&there.relation, &back.relation) {
            (Relation::Po, Relation::Wr) => self.future_read(cases, there, back),
            (Relation::Wr, Relation::Po) => self.future_read(cases, back, there),
            (Relation::Ww, Relation::Final) => self.not_last(cases, there, back),
            _ => Err(Rejection::AllowedCycle { part: cases.part("edges") }),
        }
    }

    fn future_read(&self, cases: &Cases<'a>, there: &Edge, back: &Edge) -> Result<(), Rejection> {
        let (read, write) = (there.from, there.to);
        let history = cases.wr.history;
        let flawed = |edge: &Edge| rejected(history, edge, cases.part("edges"), Flaw::NotGiven);
        let is_future = cases.candidates.transactions.is_none()
            && exists(history, read)
            && exists(history, write)
            && po(history, read, write);
        if !is_future {
            return Err(flawed(there));
        }
        if cases.wr.source(read) != Some(write) {
            return Err(flawed(back));
        }
        Ok(())
    }

    /// Checks that a write comes after all writes of its key's final value.
    fn not_last(&mut self, cases: &Cases<'a>, there: &Edge, back: &Edge) -> Result<(), Rejection> {
        let history = cases.wr.history;
        let mut evaluator = self.evaluator(cases)?;
        let key = exists(history, there.to).then(|| cases.wr.writes(there.to)).flatten();
        let ww = &evaluator.choice().ww;
        let is_before = |last: &OpId| ww.contains(last.index(), there.to.index());
        let is_final = |(of, writes): &(KeyId, Vec<OpId>)| {
            Some(*of) == key && writes.contains(&there.from) && writes.iter().all(is_before)
        };
        if !self.finals.last.iter().any(is_final) {
            return Err(rejected(history, back, cases.part("edges[1]"), Flaw::NotGiven));
        }
        // The edge back was checked above; its premises and the edge there remain.
        for edge in std::iter::once(there).chain(&back.because) {
            let part = || cases.part("edges");
            self.labels.are_true(edge, &mut evaluator, &self.finals.before, part)?;
        }
        self.evaluator = Some(evaluator);
        Ok(())
    }

    /// Checks that a check fails in all completions, and that the edges show it.
    fn failing_check(
        &mut self,
        cases: &Cases<'a>,
        edges: &[Edge],
        observer: Option<OpId>,
        at: usize,
    ) -> Result<(), Rejection> {
        let definition = self.definition;
        let mut checks = definition.program().checks.iter().zip(definition.checks());
        let Some((check, shown)) = checks.nth(at) else {
            return Err(Rejection::NoSuchCheck { part: cases.part("check") });
        };
        let observer = observer.map(OpId::index);
        if check.forall.is_some() != observer.is_some() {
            return Err(Rejection::NoSuchCheck { part: cases.part("observer") });
        }
        let mut evaluator = self.evaluator(cases)?;
        let mut grows = true;
        if let Some((_, set, _)) = &check.forall {
            let set = evaluator.value(*set)?;
            if !set.pairs.elements().any(|element| Some(element) == observer) {
                return Err(Rejection::NoSuchCheck { part: cases.part("observer") });
            }
            grows = set.facts.grows;
        }
        let subject = evaluator.subject(check, observer)?;
        if holds(check.kind, &subject.pairs) {
            let (part, check) = (cases.part("check"), shown.name.into());
            return Err(Rejection::CheckHolds { part, check });
        }
        if !grows || !subject.facts.grows {
            let (part, check) = (cases.part("check"), shown.name.into());
            return Err(Rejection::Unsettled { part, check });
        }
        for (i, edge) in edges.iter().enumerate() {
            let part = || cases.part(&format!("edges[{i}]"));
            self.labels.are_true(edge, &mut evaluator, &self.finals.before, part)?;
        }
        shows(check.kind, &subject.pairs, edges, || cases.part("edges"))?;
        self.evaluator = Some(evaluator);
        Ok(())
    }

    /// Moves the evaluator to the choices that the current case assumes.
    fn evaluator(&mut self, cases: &Cases<'a>) -> Result<Evaluator<'a>, Rejection> {
        let history = cases.wr.history;
        affordable(history)?;
        let initial = |write: OpId| {
            let key = cases.wr.writes(write)?;
            Some((history.initial_write(key), write))
        };
        let before = cases.ww.iter().copied();
        let before = before.chain(self.finals.before.iter().copied());
        let listed = cases.candidates.transactions.iter().flat_map(|t| &t.listed).copied();
        let counts = |&(a, b): &(OpId, OpId)| cases.wr.counts(a) && cases.wr.counts(b);
        let before = before.chain(listed.filter(counts));
        let before = before.chain(history.ops().filter_map(initial));
        let choice = Choice::new(cases.candidates, &cases.wr, before);
        let mut evaluator = match self.evaluator.take() {
            Some(mut evaluator) => {
                evaluator.choose(choice)?;
                evaluator
            }
            None => {
                let transactions = cases.candidates.transactions;
                Evaluator::new(history, transactions, self.definition, choice, self.budget)
            }
        };
        evaluator.spend(cases.ww.len() as u64)?;
        evaluator.bind_globals()?;
        Ok(evaluator)
    }
}
