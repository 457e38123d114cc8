//! Proofs by cases: the assumption of each case, and the check that a split has all cases.
//!
//! A case assumes the source of a read (one case per candidate), the order of two counting writes
//! of one key, or the last write of a key with a final value (one case per candidate). Inside the
//! case the assumption is known. A case without a further split is closed by the rules of the
//! model, unless a read has no candidate.
//!
//! Nothing recurses, however deeply cases are nested.

use consistory_history::{KeyId, OpId};
use consistory_verdict::{Certificate, Edge, Verdict};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::finals::Finals;
use crate::reads_from::{Candidates, ReadsFrom};
use crate::{Rejection, exists, name};

/// Rules of a model, as far as proofs by cases need them.
pub(crate) trait Rules<'a> {
    /// Checks that the model supports a split by the order of two writes or by a last write.
    fn admits(&self, cases: &Cases<'a>, split: &Certificate) -> Result<(), Rejection>;

    /// Checks the cycle that closes the current case.
    fn closes(
        &mut self,
        cases: &Cases<'a>,
        edges: &'a [Edge],
        observer: Option<OpId>,
        check: Option<u32>,
    ) -> Result<(), Rejection>;
}

/// Facts that are known in the current case.
pub(crate) struct Cases<'a> {
    pub(crate) candidates: &'a Candidates<'a>,
    /// Edges of `wr` that follow from the values or that the enclosing cases assume.
    pub(crate) wr: ReadsFrom<'a>,
    /// Edges of `ww` that the enclosing cases assume.
    pub(crate) ww: FxHashSet<(OpId, OpId)>,
    finals: Finals,
    /// Last write of each key with a final value, if only one write can be the last or the
    /// enclosing cases assume one.
    last: FxHashMap<KeyId, OpId>,
    assumptions: Vec<Before>,
    /// Indices of the enclosing branches, outermost first.
    branches: Vec<usize>,
}

/// Next step of a check.
enum CaseStep<'a> {
    Prove(&'a Certificate),
    /// Enters a branch, counting from 0.
    Assume(usize, Case),
    /// Leaves the innermost branch.
    Retract,
}

#[derive(Clone, Copy)]
enum Case {
    ReadsFrom(OpId, OpId),
    Before(OpId, OpId),
    Last(KeyId, OpId),
}

/// State that an assumption replaced, to be restored when the assumption is retracted.
enum Before {
    Source(OpId, Option<OpId>),
    Unordered(OpId, OpId),
    Ordered,
    Last(KeyId, Option<OpId>),
}

impl<'a> Cases<'a> {
    pub(crate) fn new(candidates: &'a Candidates<'a>) -> Self {
        let finals = Finals::new(candidates.history);
        let only = |(key, writes): &(KeyId, Vec<OpId>)| match writes[..] {
            [only] => Some((*key, only)),
            _ => None,
        };
        let last = finals.candidates.iter().filter_map(only).collect();
        Cases {
            candidates,
            wr: ReadsFrom::unambiguous(candidates),
            ww: FxHashSet::default(),
            finals,
            last,
            assumptions: Vec::new(),
            branches: Vec::new(),
        }
    }

    /// Checks a proof by cases; the rules check the cycle that closes each case.
    pub(crate) fn check(
        &mut self,
        certificate: &'a Certificate,
        rules: &mut impl Rules<'a>,
    ) -> Result<(), Rejection> {
        let mut steps = vec![CaseStep::Prove(certificate)];
        while let Some(step) = steps.pop() {
            let proof = match step {
                CaseStep::Assume(branch, case) => {
                    self.assume(branch, case);
                    continue;
                }
                CaseStep::Retract => {
                    self.retract();
                    continue;
                }
                CaseStep::Prove(proof) => proof,
            };
            let mut split = |i, case, proof| {
                steps.extend([
                    CaseStep::Retract,
                    CaseStep::Prove(proof),
                    CaseStep::Assume(i, case),
                ]);
            };
            match proof {
                Certificate::ThinAirRead { read } => self.thin_air(*read)?,
                Certificate::Cycle { edges, observer, check } => {
                    rules.closes(self, edges, *observer, *check)?;
                }
                Certificate::SplitOrder { writes: [first, second], branches } => {
                    rules.admits(self, proof)?;
                    self.writes_of_one_key(*first, *second)?;
                    split(1, Case::Before(*second, *first), &branches[1]);
                    split(0, Case::Before(*first, *second), &branches[0]);
                }
                Certificate::SplitRead { read, branches } => {
                    self.all_candidates(*read, branches)?;
                    for (i, (write, proof)) in branches.iter().enumerate().rev() {
                        split(i, Case::ReadsFrom(*read, *write), proof);
                    }
                }
                Certificate::SplitLast { key, branches } => {
                    rules.admits(self, proof)?;
                    self.all_that_may_be_last(*key, branches)?;
                    for (i, (write, proof)) in branches.iter().enumerate().rev() {
                        split(i, Case::Last(*key, *write), proof);
                    }
                }
                other => return Err(no_proof(other)),
            }
        }
        Ok(())
    }

    /// Returns whether two operations are different writes of one key that both count.
    pub(crate) fn overwrite(&self, a: OpId, b: OpId) -> bool {
        a != b && self.wr.writes(a).is_some_and(|shared| self.wr.writes(b) == Some(shared))
    }

    /// Returns whether `last` is known to be the last write of its key and `write` is another write
    /// of that key.
    pub(crate) fn ends(&self, write: OpId, last: OpId) -> bool {
        let is_last = |key: KeyId| self.last.get(&key) == Some(&last);
        self.wr.writes(last).is_some_and(is_last) && self.overwrite(write, last)
    }

    /// Returns the path, within the certificate, of a field of the current case.
    pub(crate) fn part(&self, field: &str) -> String {
        let around: String = self.branches.iter().map(|i| format!("branches[{i}].")).collect();
        around + field
    }

    fn assume(&mut self, branch: usize, case: Case) {
        self.branches.push(branch);
        self.assumptions.push(match case {
            Case::ReadsFrom(read, write) => Before::Source(read, self.wr.set(read, Some(write))),
            Case::Before(first, second) if self.ww.insert((first, second)) => {
                Before::Unordered(first, second)
            }
            Case::Before(..) => Before::Ordered,
            Case::Last(key, write) => Before::Last(key, self.last.insert(key, write)),
        });
    }

    fn retract(&mut self) {
        self.branches.pop();
        match self.assumptions.pop() {
            Some(Before::Source(read, write)) => {
                self.wr.set(read, write);
            }
            Some(Before::Unordered(first, second)) => {
                self.ww.remove(&(first, second));
            }
            Some(Before::Last(key, Some(write))) => {
                self.last.insert(key, write);
            }
            Some(Before::Last(key, None)) => {
                self.last.remove(&key);
            }
            Some(Before::Ordered) | None => {}
        }
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

    /// Checks that two operations are different writes of one key that both count; such writes are
    /// always ordered.
    fn writes_of_one_key(&self, first: OpId, second: OpId) -> Result<(), Rejection> {
        let history = self.wr.history;
        if exists(history, first) && exists(history, second) && self.overwrite(first, second) {
            return Ok(());
        }
        let (first, second) = (name(history, first), name(history, second));
        Err(Rejection::BadSplit { part: self.part("split"), first, second })
    }

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

    fn all_that_may_be_last(
        &self,
        key: KeyId,
        branches: &[(OpId, Certificate)],
    ) -> Result<(), Rejection> {
        let history = self.wr.history;
        let Some(candidates) = self.finals.candidates(key) else {
            return Err(Rejection::NoFinalValue { part: self.part("key") });
        };
        let mut missing: FxHashSet<OpId> = candidates.iter().copied().collect();
        let extra = branches.iter().map(|(write, _)| *write).find(|write| !missing.remove(write));
        match extra.or_else(|| missing.into_iter().min()) {
            None => Ok(()),
            Some(write) => Err(Rejection::BadLast {
                part: self.part("last"),
                key: history.key_name(key).into(),
                write: name(history, write),
            }),
        }
    }
}

/// Returns the rejection of a certificate whose kind proves no violation.
pub(crate) fn no_proof(certificate: &Certificate) -> Rejection {
    Rejection::Kind { kind: certificate.kind(), claim: Verdict::Violation.as_str() }
}
