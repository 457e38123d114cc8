//! Violations of a definition: cases, each closed for all choices that it leaves open.
//!
//! The cases say what a read reads from, one case for each candidate, or which of two writes of one
//! key that count comes first. What is assumed around a case, together with what the values, the
//! initial writes and the final values settle, is a part of a choice; the case is closed if no
//! completion of that part makes all checks hold. There are five ways to show it:
//!
//! | certificate | what is checked |
//! | --- | --- |
//! | a thin-air read | it has no candidate |
//! | a cycle of `po` and `wr`, without a check | the read comes before what it reads from |
//! | no edges, without a check | nothing wrote a final value, or a key has two |
//! | `ww` and back by `final`, without a check | a write comes after all those of the final value |
//! | a cycle, with a check | the check fails under the part, and what it is about only grows |
//!
//! In the last two the edges that are shown have to be there, too, as `walk` tells.
//!
//! Cases may contradict each other, such as two about one read. Then there is no completion, and
//! whatever closes them is right.
//!
//! Nothing recurses over the certificate, however deep cases and premises are nested.

use consistory_history::{KeyId, OpId};
use consistory_models::Definition;
use consistory_verdict::{Certificate, Edge, Verdict};
use rustc_hash::FxHashSet;

use super::affordable;
use super::choice::{Choice, Finals, po};
use super::evaluate::{Evaluator, holds};
use super::walk::{Labels, rejected, shows};
use crate::reads_from::{Candidates, ReadsFrom};
use crate::{Flaw, Rejection, exists, name};

/// Checks the proof of a violation.
pub(super) fn refute<'a>(
    candidates: &'a Candidates<'a>,
    definition: &'a Definition,
    certificate: &'a Certificate,
) -> Result<(), Rejection> {
    let mut proof = Proof {
        candidates,
        definition,
        wr: ReadsFrom::unambiguous(candidates),
        before: Vec::new(),
        finals: Finals::new(candidates.history),
        evaluator: None,
        labels: Labels::new(candidates.history, definition),
        assumptions: Vec::new(),
        branches: Vec::new(),
    };
    proof.check(certificate)
}

/// What is to be done next.
enum Step<'a> {
    Prove(&'a Certificate),
    /// Enters a branch, counting from 0.
    Assume(usize, Case),
    /// Leaves it.
    Retract,
}

#[derive(Clone, Copy)]
enum Case {
    ReadsFrom(OpId, OpId),
    Before(OpId, OpId),
}

/// How an assumption is taken back.
enum Undo {
    Source(OpId, Option<OpId>),
    Before,
}

struct Proof<'a> {
    candidates: &'a Candidates<'a>,
    definition: &'a Definition,
    /// The `wr` that follows from the values, and what the cases around assume.
    wr: ReadsFrom<'a>,
    /// The pairs of `ww` that the cases around assume.
    before: Vec<(OpId, OpId)>,
    finals: Finals,
    /// What was evaluated for the last case, if any was.
    evaluator: Option<Evaluator<'a>>,
    labels: Labels<'a>,
    assumptions: Vec<Undo>,
    /// The branches around, outermost first.
    branches: Vec<usize>,
}

impl<'a> Proof<'a> {
    fn check(&mut self, certificate: &'a Certificate) -> Result<(), Rejection> {
        let mut steps = vec![Step::Prove(certificate)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Assume(branch, case) => self.assume(branch, case),
                Step::Retract => self.retract(),
                Step::Prove(Certificate::ThinAirRead { read }) => self.thin_air(*read)?,
                Step::Prove(Certificate::Cycle { edges, observer, check }) => match check {
                    Some(check) => self.failing_check(edges, *observer, *check as usize)?,
                    None if observer.is_some() => {
                        return Err(Rejection::NoSuchCheck { part: self.part("observer") });
                    }
                    None => self.without_check(edges)?,
                },
                Step::Prove(Certificate::SplitOrder { writes: [first, second], branches }) => {
                    self.writes_of_one_key(*first, *second)?;
                    let cases = [Case::Before(*first, *second), Case::Before(*second, *first)];
                    for (i, (case, proof)) in cases.into_iter().zip(&**branches).enumerate().rev() {
                        steps.extend([Step::Retract, Step::Prove(proof), Step::Assume(i, case)]);
                    }
                }
                Step::Prove(Certificate::SplitRead { read, branches }) => {
                    self.all_candidates(*read, branches)?;
                    for (i, (write, proof)) in branches.iter().enumerate().rev() {
                        let case = Case::ReadsFrom(*read, *write);
                        steps.extend([Step::Retract, Step::Prove(proof), Step::Assume(i, case)]);
                    }
                }
                Step::Prove(other) => {
                    let claim = Verdict::Violation.as_str();
                    return Err(Rejection::Kind { kind: other.kind(), claim });
                }
            }
        }
        Ok(())
    }

    fn assume(&mut self, branch: usize, case: Case) {
        self.branches.push(branch);
        self.assumptions.push(match case {
            Case::ReadsFrom(read, write) => Undo::Source(read, self.wr.set(read, Some(write))),
            Case::Before(first, second) => {
                self.before.push((first, second));
                Undo::Before
            }
        });
    }

    fn retract(&mut self) {
        self.branches.pop();
        match self.assumptions.pop() {
            Some(Undo::Source(read, write)) => {
                self.wr.set(read, write);
            }
            Some(Undo::Before) => {
                self.before.pop();
            }
            None => {}
        }
    }

    /// A completion chooses among all candidates of a read.
    fn all_candidates(
        &self,
        read: OpId,
        branches: &[(OpId, Certificate)],
    ) -> Result<(), Rejection> {
        let history = self.wr.history;
        if history.is_initial(read) {
            let (part, op) = (self.part("read"), name(history, read));
            return Err(Rejection::NotRecorded { part, op });
        }
        let mut missing: FxHashSet<OpId> = self.candidates.of(read).collect();
        let none = missing.is_empty().then_some(read);
        let extra = branches.iter().map(|(write, _)| *write).find(|write| !missing.remove(write));
        match none.or(extra).or_else(|| missing.into_iter().min()) {
            None => Ok(()),
            Some(write) => Err(Rejection::BadCases {
                part: self.part("sources"),
                read: name(history, read),
                write: name(history, write),
            }),
        }
    }

    /// A completion orders two writes of one key if both count, and they do in all completions if
    /// they do by what is assumed.
    fn writes_of_one_key(&self, first: OpId, second: OpId) -> Result<(), Rejection> {
        let history = self.wr.history;
        if !self.definition.has_store_order() {
            return Err(Rejection::NoStoreOrder { part: self.part("split") });
        }
        let key = |op: OpId| exists(history, op).then(|| self.wr.writes(op)).flatten();
        if first != second && key(first).is_some() && key(first) == key(second) {
            return Ok(());
        }
        let (first, second) = (name(history, first), name(history, second));
        Err(Rejection::BadSplit { part: self.part("split"), first, second })
    }

    fn thin_air(&self, read: OpId) -> Result<(), Rejection> {
        let history = self.wr.history;
        if exists(history, read)
            && history.reads(read).is_some()
            && self.candidates.of(read).next().is_none()
        {
            return Ok(());
        }
        Err(Rejection::NotThinAir { part: self.part("read"), op: name(history, read) })
    }

    /// Checks what rules out every definition, or every store order.
    fn without_check(&mut self, edges: &[Edge]) -> Result<(), Rejection> {
        let [there, back] = edges else {
            if edges.is_empty() && self.finals.are_impossible() {
                return Ok(());
            }
            return Err(Rejection::NotACycle { part: self.part("edges") });
        };
        if (there.to, back.to) != (back.from, there.from) {
            return Err(Rejection::NotACycle { part: self.part("edges") });
        }
        match (&*there.relation, &*back.relation) {
            ("po", "wr") => self.future_read(there, back),
            ("wr", "po") => self.future_read(back, there),
            ("ww", "final") => self.not_last(there, back),
            _ => Err(Rejection::AllowedCycle { part: self.part("edges") }),
        }
    }

    fn future_read(&self, there: &Edge, back: &Edge) -> Result<(), Rejection> {
        let (read, write) = (there.from, there.to);
        let history = self.wr.history;
        let flawed = |edge: &Edge| rejected(history, edge, self.part("edges"), Flaw::NotGiven);
        if !exists(history, read) || !exists(history, write) || !po(history, read, write) {
            return Err(flawed(there));
        }
        if self.wr.source(read) != Some(write) {
            return Err(flawed(back));
        }
        Ok(())
    }

    /// Checks that a write comes after all writes of its key's final value.
    fn not_last(&mut self, there: &Edge, back: &Edge) -> Result<(), Rejection> {
        let history = self.wr.history;
        let mut evaluator = self.evaluator()?;
        let key = exists(history, there.to).then(|| self.wr.writes(there.to)).flatten();
        let ww = &evaluator.choice().ww;
        let is_before = |last: &OpId| ww.contains(last.index(), there.to.index());
        let is_final = |(of, writes): &(KeyId, Vec<OpId>)| {
            Some(*of) == key && writes.contains(&there.from) && writes.iter().all(is_before)
        };
        if !self.finals.last.iter().any(is_final) {
            return Err(rejected(history, back, self.part("edges[1]"), Flaw::NotGiven));
        }
        // The step back was checked just now, what is left is what leads to it.
        for edge in std::iter::once(there).chain(&back.because) {
            let part = || self.part("edges");
            self.labels.are_true(edge, &mut evaluator, &self.finals.before, part)?;
        }
        self.evaluator = Some(evaluator);
        Ok(())
    }

    /// Checks that a check fails in all completions, and that the edges show it.
    fn failing_check(
        &mut self,
        edges: &[Edge],
        observer: Option<OpId>,
        at: usize,
    ) -> Result<(), Rejection> {
        let definition = self.definition;
        let mut checks = definition.program().checks().iter().zip(definition.checks());
        let Some((check, shown)) = checks.nth(at) else {
            return Err(Rejection::NoSuchCheck { part: self.part("check") });
        };
        let observer = observer.map(OpId::index);
        if check.forall.is_some() != observer.is_some() {
            return Err(Rejection::NoSuchCheck { part: self.part("observer") });
        }
        let mut evaluator = self.evaluator()?;
        let mut grows = true;
        if let Some((_, set, _)) = &check.forall {
            let set = evaluator.value(*set)?;
            if !set.pairs.elements().any(|element| Some(element) == observer) {
                return Err(Rejection::NoSuchCheck { part: self.part("observer") });
            }
            grows = set.facts.grows;
        }
        let subject = evaluator.subject(check, observer)?;
        if holds(check.kind, &subject.pairs) {
            let (part, check) = (self.part("check"), shown.name.into());
            return Err(Rejection::CheckHolds { part, check });
        }
        if !grows || !subject.facts.grows {
            let (part, check) = (self.part("check"), shown.name.into());
            return Err(Rejection::Unsettled { part, check });
        }
        for (i, edge) in edges.iter().enumerate() {
            let part = || self.part(&format!("edges[{i}]"));
            self.labels.are_true(edge, &mut evaluator, &self.finals.before, part)?;
        }
        shows(check.kind, &subject.pairs, edges, || self.part("edges"))?;
        self.evaluator = Some(evaluator);
        Ok(())
    }

    /// Makes the evaluator go on to what the present case assumes.
    fn evaluator(&mut self) -> Result<Evaluator<'a>, Rejection> {
        let history = self.wr.history;
        affordable(history)?;
        let initial = |write: OpId| {
            let key = self.wr.writes(write)?;
            Some((history.initial_write(key), write))
        };
        let before = self.before.iter().copied();
        let before = before.chain(self.finals.before.iter().copied());
        let before = before.chain(history.ops().filter_map(initial));
        let choice = Choice::new(self.candidates, &self.wr, before);
        let mut evaluator = match self.evaluator.take() {
            Some(mut evaluator) => {
                evaluator.choose(choice)?;
                evaluator
            }
            None => Evaluator::new(history, self.definition, choice),
        };
        evaluator.spend(self.before.len() as u64)?;
        evaluator.bind_globals()?;
        Ok(evaluator)
    }

    /// Gives the path of a part of the certificate that is being proved.
    fn part(&self, field: &str) -> String {
        let around: String = self.branches.iter().map(|i| format!("branches[{i}].")).collect();
        around + field
    }
}
