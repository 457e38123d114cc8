//! Histories that are not differentiated: a search over the possible sources of each read.
//!
//! A model holds if it holds for some choice of `wr`; deciding this is NP-complete for the causal
//! models (Bouajjani et al., POPL 2017). The search starts with guesses: it replays the history on
//! simulated memories ([`crate::repeated_values::replay`]). For a correct store, one of these
//! guesses usually works.
//!
//! Otherwise the search chooses a source read by read. A partial choice that already violates the
//! model is cut off, since the relations only grow with `wr`. The proof of a violation names the
//! choices it depends on. If it does not depend on the last choice, it holds for all other
//! candidates too, and the search jumps back over them. The result is a tree of cases, each closed
//! by a cycle.
//!
//! The causal order of the choices so far determines what to choose next. A candidate of a read is
//! *out* if it is after the read, or if the read has seen a write that overwrote it. Every read
//! with one remaining candidate takes it at once. If there is no such read, the next is one with
//! few remaining candidates on which many proofs have depended (Boussemart et al., ECAI 2004),
//! among equals one that is early in its session, and the candidate chosen by a replay comes first.
//! This is advice only: a candidate that is out comes last, and must be refuted like any other,
//! which is quick if the model implies CC.
//!
//! For models with a store order, the search also chooses the last write of a key if several writes
//! have the key's final value ([`crate::store_order::finals`]).
//!
//! The search stops without an answer when the budget runs out.

use std::cell::LazyCell;

use crate::Judgement;
use consistory_history::{History, KeyId, OpId};
use consistory_verdict::{Budget, Certificate, Pattern, Relation, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::order::ChainOrder;
use crate::reads_from::{Candidates, Source};
use crate::registers::Registers;
use crate::repeated_values::replay::{Memory, replay};

/// The subject of a choice.
#[derive(Clone, Copy)]
enum Question {
    /// The source of a read.
    Source(OpId),
    /// The last write of a key.
    Last(KeyId),
}

/// A question with its candidates.
struct CaseFrame {
    question: Question,
    /// The candidates in the order in which they are tried.
    candidates: Vec<OpId>,
    /// The refutations of the candidates before the current one.
    closed: Vec<(OpId, CaseProof)>,
}

/// Refutation of a choice.
struct CaseProof {
    certificate: Certificate,
    pattern: Pattern,
}

/// A choice, partial or total.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'c> {
    /// Source of each read, if it is determined or chosen.
    pub(crate) source: &'c [Source],
    /// Chosen sources, as `wr` pairs.
    pub(crate) wr: &'c [(OpId, OpId)],
    /// The writes chosen as the last of their keys.
    pub(crate) last: &'c [OpId],
    /// Whether every open read and key has been chosen.
    pub(crate) is_total: bool,
}

/// Decides a history with ambiguous reads. `judge` decides a partial or complete choice, and
/// `memories` are used for the first guesses.
pub(crate) fn search(
    history: &History,
    candidates: &Candidates,
    memories: &[Memory],
    budget: &Budget,
    judge: impl Fn(&[Source], &[(OpId, OpId)]) -> Result<Judgement, Stopped>,
) -> Result<Judgement, Stopped> {
    let judge = |choice: Choice<'_>| {
        let judgement = judge(choice.source, choice.wr)?;
        let is_open = matches!(judgement, Judgement::Consistent(_)) && !choice.is_total;
        Ok((!is_open).then_some(judgement))
    };
    let mut guesses = Vec::new();
    for memory in memories {
        budget.check()?;
        let guess = replay(history, candidates, *memory, budget)?;
        let wr = &chosen(candidates, &guess);
        let total = Choice { source: &guess, wr, last: &[], is_total: true };
        if let Some(consistent @ Judgement::Consistent(_)) = judge(total)? {
            return Ok(consistent);
        }
        guesses.push(guess);
    }
    let guess = || Ok(guesses.first().unwrap_or(&candidates.source).clone());
    search_from(history, candidates, &[], guess, &FxHashMap::default(), budget, judge)
}

/// Decides a history with ambiguous reads and several last writes of keys with final values.
///
/// `judge` decides a choice; it returns nothing if the choice is partial and not refuted. The
/// source that `guess` returns for a read is tried first, and reads with large `weights` are chosen
/// first.
pub(crate) fn search_from(
    history: &History,
    candidates: &Candidates,
    finals: &[(KeyId, Vec<OpId>)],
    guess: impl Fn() -> Result<Vec<Source>, Stopped>,
    weights: &FxHashMap<OpId, u64>,
    budget: &Budget,
    judge: impl Fn(Choice<'_>) -> Result<Option<Judgement>, Stopped>,
) -> Result<Judgement, Stopped> {
    let questions = candidates.ambiguous.len() + finals.len();
    let guess = LazyCell::new(guess);
    let mut source = candidates.source.clone();
    // The last writes of the first keys are chosen before any source.
    let mut last: Vec<OpId> = Vec::new();
    let mut frames: Vec<CaseFrame> = Vec::new();
    // Number of proofs that have depended on each read.
    let mut weights: Vec<u64> =
        history.ops().map(|op| 1 + weights.get(&op).copied().unwrap_or_default()).collect();
    loop {
        budget.check()?;
        let (wr, is_total) = (&chosen(candidates, &source), frames.len() == questions);
        let mut proof = match judge(Choice { source: &source, wr, last: &last, is_total })? {
            Some(Judgement::Violation { certificate, pattern }) => {
                CaseProof { certificate, pattern }
            }
            Some(Judgement::Undecided(stopped)) => return Err(stopped),
            Some(consistent) => return Ok(consistent),
            None => {
                assert!(!is_total, "a total choice that nothing is against is consistent");
                if let Some((key, writes)) = finals.get(last.len()) {
                    last.push(writes[0]);
                    let (question, candidates) = (Question::Last(*key), writes.clone());
                    frames.push(CaseFrame { question, candidates, closed: Vec::new() });
                    continue;
                }
                let guess = guess.as_ref().map_err(Stopped::clone)?;
                let next = next_choices(history, candidates, &source, guess, &weights);
                for (read, candidates) in next {
                    source[read.index()] = Source::new(candidates[0]);
                    let question = Question::Source(read);
                    frames.push(CaseFrame { question, candidates, closed: Vec::new() });
                }
                continue;
            }
        };
        // Go back to the last choice on which the proof depends and that has another candidate.
        loop {
            let Some(mut frame) = frames.pop() else {
                let CaseProof { certificate, pattern } = proof;
                return Ok(Judgement::Violation { pattern, certificate });
            };
            let choice = match frame.question {
                Question::Source(read) => {
                    std::mem::replace(&mut source[read.index()], Source::NONE).get()
                }
                Question::Last(_) => last.pop(),
            };
            let choice = choice.expect("the question of a frame is decided");
            if !rests_on(&proof, history, frame.question, choice) {
                continue;
            }
            if let Question::Source(read) = frame.question {
                weights[read.index()] += 1;
            }
            frame.closed.push((choice, proof));
            if let Some(&next) = frame.candidates.get(frame.closed.len()) {
                match frame.question {
                    Question::Source(read) => source[read.index()] = Source::new(next),
                    Question::Last(_) => last.push(next),
                }
                frames.push(frame);
                break;
            }
            proof = frame.close();
        }
    }
}

impl CaseFrame {
    /// Combines the refutations of all candidates.
    fn close(self) -> CaseProof {
        let pattern = self.closed[0].1.pattern.clone();
        let branch = |(write, proof): (OpId, CaseProof)| (write, proof.certificate);
        let branches = self.closed.into_iter().map(branch).collect();
        let certificate = match self.question {
            Question::Source(read) => Certificate::SplitRead { read, branches },
            Question::Last(key) => Certificate::SplitLast { key, branches },
        };
        CaseProof { certificate, pattern }
    }
}

/// Returns the reads to decide next, at least one, with the candidates of each in the order to try
/// them.
fn next_choices(
    history: &History,
    candidates: &Candidates,
    source: &[Source],
    guess: &[Source],
    weights: &[u64],
) -> Vec<(OpId, Vec<OpId>)> {
    let registers = &Registers::new(history, source);
    // A model that does not imply CC may hold without a causal order; then no candidate is out.
    let order = ChainOrder::build(registers.chains(), registers.wr_edges()).ok();
    let is_out = |read: OpId, write: OpId| {
        order.as_ref().is_some_and(|order| is_out(registers, order, read, write))
    };
    // The open reads with their number of candidates that are not out.
    let open: Vec<(u64, &(OpId, Vec<OpId>))> = candidates
        .ambiguous
        .iter()
        .filter(|(read, _)| source[read.index()].get().is_none())
        .map(|entry| {
            let (read, sources) = entry;
            (sources.iter().filter(|&&write| !is_out(*read, write)).count() as u64, entry)
        })
        .collect();
    let decided = |(read, sources): &(OpId, Vec<OpId>)| {
        let mut sources = sources.clone();
        let guessed = guess[read.index()].get();
        sources.sort_by_key(|&write| (is_out(*read, write), Some(write) != guessed));
        (*read, sources)
    };
    if let Some((_, hopeless)) = open.iter().find(|(left, _)| *left == 0) {
        return vec![decided(hopeless)];
    }
    let forced = open.iter().filter(|(left, _)| *left == 1);
    let forced: Vec<_> = forced.map(|(_, entry)| decided(entry)).collect();
    if !forced.is_empty() {
        return forced;
    }
    let next = open.iter().min_by(|(a_left, (a, _)), (b_left, (b, _))| {
        let by_weight = (a_left * weights[b.index()]).cmp(&(b_left * weights[a.index()]));
        by_weight.then(history.index_in_session(*a).cmp(&history.index_in_session(*b)))
    });
    next.map(|(_, entry)| decided(entry)).into_iter().collect()
}

/// Returns whether a read cannot have read from a write in any history that is CC.
fn is_out(registers: &Registers<'_>, order: &ChainOrder, read: OpId, write: OpId) -> bool {
    let history = registers.history;
    let is_initial = history.is_initial(write);
    if !is_initial && order.before(read, write) {
        return true;
    }
    let chains = order.chains();
    registers.segments(registers.read_key(read)).iter().any(|&segment| {
        let known = match segment.chain == chains.chain_of(read) {
            true => chains.place_of(read),
            false => order.count_until(read, segment.chain),
        };
        let passed = registers.places(segment).partition_point(|&place| place < known);
        let last = registers.writes(segment)[..passed].last();
        last.is_some_and(|&last| is_initial || order.before(write, last))
    })
}

/// Lists the choices made for the ambiguous reads.
pub(crate) fn chosen(candidates: &Candidates, source: &[Source]) -> Vec<(OpId, OpId)> {
    candidates
        .ambiguous
        .iter()
        .filter_map(|(read, _)| Some((*read, source[read.index()].get()?)))
        .collect()
}

/// Returns the choices of sources and last writes that a proof uses.
pub(crate) fn used(
    certificate: &Certificate,
    choice: Choice<'_>,
) -> (Vec<(OpId, OpId)>, Vec<OpId>) {
    let mut reads: FxHashSet<OpId> = FxHashSet::default();
    let mut last: FxHashSet<OpId> = FxHashSet::default();
    for edge in certificate.edges() {
        match edge.relation {
            Relation::Wr | Relation::Wre => drop(reads.insert(edge.to)),
            Relation::Final => drop(last.insert(edge.to)),
            _ => {}
        }
    }
    let sources = choice.wr.iter().copied().filter(|(read, _)| reads.contains(read)).collect();
    (sources, choice.last.iter().copied().filter(|write| last.contains(write)).collect())
}

/// Returns whether a proof uses a choice: the source of a read by a `wr` edge, or because a write
/// of unknown status counts only if it is read; the last write of a key by an edge to that write.
fn rests_on(proof: &CaseProof, history: &History, question: Question, choice: OpId) -> bool {
    let uncertain = !history.is_initial(choice) && !history.is_certain(choice);
    proof.certificate.edges().any(|edge| match question {
        Question::Source(read) => {
            let reads = matches!(edge.relation, Relation::Wr | Relation::Wre) && edge.to == read;
            reads || (uncertain && (edge.from == choice || edge.to == choice))
        }
        Question::Last(_) => edge.relation == Relation::Final && edge.to == choice,
    })
}
