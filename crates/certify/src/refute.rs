//! Violations: cases, each closed by a cycle, each of whose edges follows by a rule.
//!
//! The history itself provides some edges: `po` (with each initial write before everything
//! recorded), `wr` where it is known, and for TSO `ppo`, `poloc` and `wre`. The other edges follow
//! from premises. A path is a sequence of edges, each starting where the previous one ends.
//!
//! | edge | premises | side conditions |
//! | --- | --- | --- |
//! | `rw` r → w2 | `wr` w → r, and a path w → w2 | w2 is not w and not r |
//! | `cf`, `hb` w2 → w | a path w2 → r, and `wr` w → r | w2 is not w |
//! | `ww` w → w2 | a path w → w2; or none, if a case assumes it or w is initial | w2 is not w |
//!
//! For SC, TSO and PSO an edge `final` w2 → w needs no premises if w is the only write of its key's
//! final value, or a case assumes that it is the last; it may occur in paths and cycles wherever
//! `ww` may. The initial write is never the last of several.
//!
//! In all rules w, w2 and r are of one key, and w and w2 count. The model determines which edges a
//! path may have and which cycles are forbidden:
//!
//! | model | paths of premises | forbidden cycles |
//! | --- | --- | --- |
//! | CC | `po wr` | `po wr` with at most one `rw` |
//! | CCv | `po wr` | those of CC; `po wr cf` |
//! | CM | `rw`: `po wr`; `hb`: `po wr hb` | those of CC; `po wr hb` |
//! | CCM | `hb`: `po wr hb`; `cf`: `po wr hb`; `rw`, `ww`: `po wr hb cf ww` | `po wr hb cf ww rw` |
//! | wCCM | the same with `ppo wre hb-ppo` or `poloc wre hb-poloc`; `rw`, `ww`: all of these | `ppo wre` or `poloc wre`, and `hb-ppo hb-poloc cf ww rw` |
//! | wSC, SC | `po wr ww rw cf hb` | the same |
//! | wTSO, TSO, PSO | `ppo wre ww rw cf`, or `poloc wre ww rw cf` | the same |
//!
//! For CM there is an observer o: r must be o or before o in `po`, and every operation must be in
//! the causal past of o. For CCM and wCCM an edge `hb` belongs to the session of r, and any `hb`
//! among its premises must belong to the same session. In premises of `rw` and `ww`, each `cf` and
//! `ww` must be of the key of w; for wCCM, r in `cf` must read from another session. For SC every
//! rule is sound without restrictions, because all edges lie in one total order. For TSO a path
//! within one of the two relations shows that the reverse `ww` would close a cycle, which is all
//! that the rules need. The weak models are exactly what these rules derive without cases, so a
//! proof for one of them has no case that orders two writes.
//!
//! A derived edge may be used again, without premises, after its derivation in the same cycle. A
//! case that chooses the source of a read makes that `wr` known, and a case that orders two writes
//! makes that `ww` known, for everything inside the case.
//!
//! Cost: linear in the certificate; each cycle of CM also costs the size of the causal past of its
//! observer. Nothing recurses, however deeply cases and premises are nested.

use consistory_history::{OpId, SessionId};
use consistory_verdict::Relation::{
    self, Cf, Final, Hb, HbPoloc, HbPpo, Po, Poloc, Ppo, Rt, Rw, Wr, Wre, Ww,
};
use consistory_verdict::{Certificate, Edge};
use rustc_hash::FxHashSet;

use crate::cases::{Cases, Rules, no_proof};
use crate::limits::Limits;
use crate::reads_from::{Candidates, ReadsFrom};
use crate::real_time::returned_before;
use crate::store_order::{Memory, Role, key, role};
use crate::{Flaw, Model, Rejection, exists, name};

/// Checks the proof of a violation.
pub(crate) fn refute<'a>(
    candidates: &'a Candidates<'a>,
    model: Model,
    certificate: &'a Certificate,
    limits: Limits<'a>,
) -> Result<(), Rejection> {
    let mut cases = Cases::new(candidates);
    let ends = model.ends(candidates.history);
    let mut proof = CycleProof { model, barriers: Vec::new(), ends, limits, cycles: 0 };
    if model.memory() != Memory::Sequential {
        proof.barriers = count_barriers(&cases.wr);
    }
    cases.check(certificate, &mut proof)
}

type Relations = &'static [Relation];
const CAUSAL: &[Relations] = &[&[Po, Wr]];
const CONVERGENT: &[Relations] = &[&[Po, Wr, Cf]];
const OBSERVED: &[Relations] = &[&[Po, Wr, Hb]];
const SEEN: &[Relations] = &[&[Po, Wr, Hb]];
const AGREED: &[Relations] = &[&[Po, Wr, Hb, Cf, Ww]];
const CONVERGENT_MEMORY: &[Relations] = &[&[Po, Wr, Hb, Cf, Ww, Rw]];
const SEEN_BUFFERED: &[Relations] = &[&[Ppo, Wre, HbPpo]];
const SEEN_PER_KEY: &[Relations] = &[&[Poloc, Wre, HbPoloc]];
const SEEN_EITHER: &[Relations] = &[&[Ppo, Wre, HbPpo], &[Poloc, Wre, HbPoloc]];
const AGREED_BUFFERED: &[Relations] = &[&[Ppo, Poloc, Wre, HbPpo, HbPoloc, Cf, Ww]];
const WEAK_CONVERGENT_MEMORY: &[Relations] =
    &[&[Ppo, Wre, HbPpo, HbPoloc, Cf, Ww, Rw], &[Poloc, Wre, HbPpo, HbPoloc, Cf, Ww, Rw]];
const TOTAL: &[Relations] = &[&[Po, Wr, Ww, Rw, Cf, Hb, Final]];
const REAL_TIME: &[Relations] = &[&[Rt, Wr, Ww, Rw, Cf]];
const BUFFERED: &[Relations] = &[&[Ppo, Wre, Ww, Rw, Cf, Final], &[Poloc, Wre, Ww, Rw, Cf, Final]];

impl Model {
    /// Returns the sets of relations that a path among the premises of a derived relation may use.
    fn premises(self, relation: &Relation) -> Option<&'static [Relations]> {
        match (self, relation) {
            (Model::Cc | Model::Ccv | Model::Cm, Rw) | (Model::Ccv, Cf) => Some(CAUSAL),
            (Model::Cm, Hb) => Some(OBSERVED),
            (Model::Ccm, Hb | Cf) => Some(SEEN),
            (Model::Ccm, Rw | Ww) => Some(AGREED),
            (Model::Wccm, HbPpo) => Some(SEEN_BUFFERED),
            (Model::Wccm, HbPoloc) => Some(SEEN_PER_KEY),
            (Model::Wccm, Cf) => Some(SEEN_EITHER),
            (Model::Wccm, Rw | Ww) => Some(AGREED_BUFFERED),
            (Model::Wsc | Model::Sc, Rw | Cf | Hb | Ww) => Some(TOTAL),
            (Model::Wtso | Model::Tso | Model::Pso, Rw | Cf | Ww) => Some(BUFFERED),
            (Model::Lin, Rw | Cf | Ww) => Some(REAL_TIME),
            _ => None,
        }
    }

    /// Returns whether the model forbids a cycle of these edges.
    fn forbids(self, cycle: &[Edge]) -> bool {
        let future_read = |first: &Relation, second: &Relation| {
            // For linearizability, operations of one session may overlap.
            self != Model::Lin
                && cycle.len() == 2
                && cycle[0].relation == *first
                && cycle[1].relation == *second
        };
        let forbidden = match self {
            Model::Cc => CAUSAL,
            Model::Ccv => CONVERGENT,
            Model::Cm => OBSERVED,
            Model::Ccm => CONVERGENT_MEMORY,
            Model::Wccm => WEAK_CONVERGENT_MEMORY,
            Model::Wsc | Model::Sc => TOTAL,
            Model::Wtso | Model::Tso | Model::Pso => BUFFERED,
            Model::Lin => REAL_TIME,
            Model::Other => &[],
        };
        future_read(&Po, &Wr)
            || future_read(&Wr, &Po)
            || are_of(cycle.iter(), forbidden)
            || (matches!(self, Model::Cc | Model::Ccv | Model::Cm)
                && cycle.iter().filter(|edge| edge.relation == Rw).count() == 1
                && are_of(cycle.iter().filter(|edge| edge.relation != Rw), CAUSAL))
    }
}

struct CycleProof<'a> {
    model: Model,
    limits: Limits<'a>,
    /// Number of cycles that were checked.
    cycles: usize,
    /// With store buffers: for each operation, the number of fences and read-modify-writes with
    /// smaller ids.
    barriers: Vec<u32>,
    /// Whether the rules for final values apply.
    ends: bool,
}

/// Facts that are known inside one cycle.
struct Inside<'a> {
    derived: FxHashSet<(OpId, OpId, &'a Relation)>,
    /// Edges of `hb`, each with the session whose reads show it.
    shown: FxHashSet<(OpId, OpId, &'a Relation, SessionId)>,
    observer: Option<OpId>,
    /// For each session, the smallest id that is not in the causal past of the observer.
    past: Option<Vec<u32>>,
}

impl<'a> Rules<'a> for CycleProof<'_> {
    fn admits(&self, _: &Cases<'a>, split: &Certificate) -> Result<(), Rejection> {
        let is_admitted = match split {
            Certificate::SplitLast { .. } => self.ends,
            _ => !matches!(self.model, Model::Ccm | Model::Wccm | Model::Wsc | Model::Wtso),
        };
        if is_admitted { Ok(()) } else { Err(no_proof(split)) }
    }

    fn closes(
        &mut self,
        cases: &Cases<'a>,
        edges: &'a [Edge],
        observer: Option<OpId>,
        _: Option<u32>,
    ) -> Result<(), Rejection> {
        self.limits.step(self.cycles)?;
        self.cycles += 1;
        Closing { proof: self, cases }.cycle(edges, observer)
    }
}

/// Rules of the model, with the facts of the current case.
struct Closing<'p, 'a> {
    proof: &'p CycleProof<'p>,
    cases: &'p Cases<'a>,
}

impl<'a> Closing<'_, 'a> {
    fn cycle(&self, edges: &'a [Edge], observer: Option<OpId>) -> Result<(), Rejection> {
        let history = self.cases.wr.history;
        if !edges.first().is_some_and(|first| is_path(edges, first.from, first.from)) {
            return Err(Rejection::NotACycle { part: self.cases.part("edges") });
        }
        let past = match observer {
            Some(op) if history.is_initial(op) => {
                let (part, op) = (self.cases.part("observer"), name(history, op));
                return Err(Rejection::NotRecorded { part, op });
            }
            Some(op) if self.proof.model == Model::Cm => Some(self.past(op)),
            _ => None,
        };
        let mut inside =
            Inside { derived: FxHashSet::default(), shown: FxHashSet::default(), observer, past };
        for (i, edge) in edges.iter().enumerate() {
            self.derive(edge, i, &mut inside)?;
        }
        if self.proof.model.forbids(edges) {
            return Ok(());
        }
        Err(Rejection::AllowedCycle { part: self.cases.part("edges") })
    }

    /// Checks an edge of a cycle, premises before conclusions.
    fn derive(&self, edge: &'a Edge, at: usize, inside: &mut Inside<'a>) -> Result<(), Rejection> {
        let mut around = vec![(edge, 0)];
        while let Some((edge, premise)) = around.last_mut() {
            if let Some(next) = edge.because.get(*premise) {
                *premise += 1;
                around.push((next, 0));
                continue;
            }
            let edge = *edge;
            if let Err(flaw) = self.follows(edge, inside) {
                let inner: String = around[..around.len() - 1]
                    .iter()
                    .map(|(_, next)| format!(".because[{}]", next - 1))
                    .collect();
                return Err(Rejection::Edge {
                    part: self.cases.part(&format!("edges[{at}]{inner}")),
                    relation: edge.relation.to_string(),
                    from: name(self.cases.wr.history, edge.from),
                    to: name(self.cases.wr.history, edge.to),
                    flaw,
                });
            }
            around.pop();
        }
        Ok(())
    }

    /// Checks that an edge follows from its premises, which were checked before.
    fn follows(&self, edge: &'a Edge, inside: &mut Inside<'a>) -> Result<(), Flaw> {
        let (history, from, to) = (self.cases.wr.history, edge.from, edge.to);
        if !exists(history, from) || !exists(history, to) {
            return Err(Flaw::NotGiven);
        }
        if let Some(past) = &inside.past {
            let holds =
                |op: OpId| history.is_initial(op) || op.0 < past[history.session_of(op).index()];
            if !holds(from) || !holds(to) {
                return Err(Flaw::OutsidePast);
            }
        }
        let buffered = self.proof.model.memory() != Memory::Sequential;
        let given = match &edge.relation {
            Po => Some(self.po(from, to)),
            Wr => Some(self.cases.wr.source(to) == Some(from)),
            Wre if buffered => {
                Some(self.cases.wr.source(to) == Some(from) && !self.same_session(from, to))
            }
            Ppo if buffered => Some(self.ppo(from, to)),
            Poloc if buffered => Some(self.poloc(from, to)),
            Rt if self.proof.model == Model::Lin => {
                let counts = |op| history.is_initial(op) || self.cases.wr.counts(op);
                Some(returned_before(history, from, to) && counts(from) && counts(to))
            }
            Final => Some(self.proof.ends && self.cases.ends(from, to)),
            _ => None,
        };
        if let Some(given) = given {
            return if given && edge.because.is_empty() { Ok(()) } else { Err(Flaw::NotGiven) };
        }
        let Some(paths) = self.proof.model.premises(&edge.relation) else {
            return Err(Flaw::NoRule);
        };
        let conclusion = (from, to, &edge.relation);
        if edge.because.is_empty() {
            let known = edge.relation == Ww
                && (self.cases.ww.contains(&(from, to))
                    || (history.is_initial(from) && self.cases.overwrite(from, to)));
            let proved = known || inside.derived.contains(&conclusion);
            return if proved { Ok(()) } else { Err(Flaw::Unproved) };
        }
        let mut shown_by = None;
        let concludes = match &edge.relation {
            Rw => parts(&edge.because).any(|(wr, path)| {
                wr.to == from
                    && is_path(path, wr.from, to)
                    && are_of(path.iter(), paths)
                    && self.cases.overwrite(wr.from, to)
                    && self.agrees(path, to)
                    && from != to
            }),
            Cf | Hb | HbPpo | HbPoloc => parts(&edge.because).any(|(wr, path)| {
                wr.from == to
                    && is_path(path, from, wr.to)
                    && are_of(path.iter(), paths)
                    && self.cases.overwrite(from, to)
                    && (self.proof.model != Model::Cm || self.observes(inside.observer, wr.to))
                    && self.sees(edge, wr, path, inside, &mut shown_by)
            }),
            _ => {
                is_path(&edge.because, from, to)
                    && are_of(edge.because.iter(), paths)
                    && self.cases.overwrite(from, to)
                    && self.agrees(&edge.because, to)
            }
        };
        if !concludes {
            return Err(Flaw::Premises);
        }
        inside.derived.insert(conclusion);
        if let Some(session) = shown_by {
            inside.shown.insert((from, to, &edge.relation, session));
        }
        Ok(())
    }

    fn po(&self, a: OpId, b: OpId) -> bool {
        let history = self.cases.wr.history;
        !history.is_initial(b) && (history.is_initial(a) || (self.same_session(a, b) && a < b))
    }

    /// Returns whether `ppo` orders two operations. Unlike `po`, it orders only operations that
    /// count: a chain through any other operation would prove nothing.
    fn ppo(&self, a: OpId, b: OpId) -> bool {
        if !self.po(a, b) || !self.cases.wr.counts(a) || !self.cases.wr.counts(b) {
            return false;
        }
        let may_come_first = match role(&self.cases.wr, b) {
            Role::Read => true,
            Role::Write => {
                self.proof.model == Model::Pso && self.cases.wr.writes(a) != self.cases.wr.writes(b)
            }
            Role::Barrier => false,
        };
        self.cases.wr.history.is_initial(a)
            || role(&self.cases.wr, a) != Role::Write
            || !may_come_first
            || self.proof.barriers[b.index()] > self.proof.barriers[a.index()]
    }

    fn poloc(&self, a: OpId, b: OpId) -> bool {
        self.po(a, b)
            && key(&self.cases.wr, a).is_some_and(|shared| key(&self.cases.wr, b) == Some(shared))
    }

    fn same_session(&self, a: OpId, b: OpId) -> bool {
        let history = self.cases.wr.history;
        !history.is_initial(a)
            && !history.is_initial(b)
            && history.session_of(a) == history.session_of(b)
    }

    /// Checks, for CCM and wCCM, that the session of a read shows the path to it, and stores that
    /// session in `shown_by`.
    fn sees(
        &self,
        edge: &Edge,
        wr: &Edge,
        path: &[Edge],
        inside: &Inside<'a>,
        shown_by: &mut Option<SessionId>,
    ) -> bool {
        if !matches!(self.proof.model, Model::Ccm | Model::Wccm) {
            return true;
        }
        if edge.relation == Cf {
            return self.proof.model == Model::Ccm || !self.same_session(wr.from, wr.to);
        }
        let session = self.cases.wr.history.session_of(wr.to);
        *shown_by = Some(session);
        path.iter()
            .filter(|step| matches!(step.relation, Hb | HbPpo | HbPoloc))
            .all(|step| inside.shown.contains(&(step.from, step.to, &step.relation, session)))
    }

    /// Checks, for CCM and wCCM, that all `cf` and `ww` edges of a path are of the key of its end.
    fn agrees(&self, path: &[Edge], end: OpId) -> bool {
        !matches!(self.proof.model, Model::Ccm | Model::Wccm)
            || path
                .iter()
                .filter(|step| matches!(&step.relation, Cf | Ww))
                .all(|step| self.cases.wr.writes(step.from) == self.cases.wr.writes(end))
    }

    /// Returns whether a read is the observer or precedes it in its session.
    fn observes(&self, observer: Option<OpId>, read: OpId) -> bool {
        observer.is_some_and(|observer| read == observer || self.po(read, observer))
    }

    /// Returns for each session the smallest id that is neither `op` nor known to be causally
    /// before it.
    fn past(&self, op: OpId) -> Vec<u32> {
        let history = self.cases.wr.history;
        let mut past: Vec<u32> =
            history.sessions().map(|session| history.op_at(session, 0).0).collect();
        let mut found = vec![op];
        while let Some(op) = found.pop() {
            let bound = &mut past[history.session_of(op).index()];
            let new = *bound..op.0 + 1;
            *bound = (*bound).max(op.0 + 1);
            found.extend(
                new.filter_map(|op| self.cases.wr.source(OpId(op)))
                    .filter(|&op| !history.is_initial(op)),
            );
        }
        past
    }
}

/// Returns whether edges form a path from one operation to another.
fn is_path(edges: &[Edge], from: OpId, to: OpId) -> bool {
    edges.first().is_some_and(|first| first.from == from)
        && edges.windows(2).all(|pair| pair[0].to == pair[1].from)
        && edges.last().is_some_and(|last| last.to == to)
}

/// Returns whether all edges belong to one of several sets of relations.
fn are_of<'a>(edges: impl Iterator<Item = &'a Edge> + Clone, sets: &[Relations]) -> bool {
    sets.iter().any(|set| edges.clone().all(|edge| set.contains(&edge.relation)))
}

/// Splits premises into a `wr` edge, which comes first or last, and a path; iterates over both
/// splits.
fn parts(premises: &[Edge]) -> impl Iterator<Item = (&Edge, &[Edge])> {
    [premises.split_first(), premises.split_last()]
        .into_iter()
        .flatten()
        .filter(|(edge, _)| matches!(&edge.relation, Wr | Wre))
}

/// Counts, for each operation, the fences and read-modify-writes that have smaller ids.
fn count_barriers(wr: &ReadsFrom<'_>) -> Vec<u32> {
    let mut count = 0;
    wr.history
        .ops()
        .map(|op| {
            let before = count;
            count += u32::from(wr.counts(op) && role(wr, op) == Role::Barrier);
            before
        })
        .collect()
}
