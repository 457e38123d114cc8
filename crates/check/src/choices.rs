//! Histories that are not differentiated: a search over what each read may have read from.
//!
//! A model holds if it holds for some choice of `wr`, which is NP-complete for the causal models
//! (Bouajjani et al., POPL 2017). The search starts with guesses: it replays the history on simulated
//! memories ([`crate::replay`]). A store that is not broken mostly passes with one of them.
//!
//! Otherwise it chooses read by read. A partial choice that already violates the model is cut off,
//! since the relations only grow with `wr`. The proof of a violation names the choices that it rests
//! on; if it does not rest on the last one, it stands for all the other candidates too and the search
//! jumps back over them. What remains is a tree of cases, each closed by a cycle.
//!
//! What to choose next, the causal order of the choices so far tells. A candidate of a read is *out*
//! if it is behind the read, or if the read has seen a write that overwrote it. All reads with one
//! candidate left take it at once; if there is no such read, the next is one with few left that proofs
//! have often rested on (Boussemart et al., ECAI 2004), among equals one that is early in its session,
//! and the candidate that a replay chose comes first. This is advice only: a candidate that is out comes
//! last, and has to be refuted like any other, which is quick where the model implies CC.
//!
//! It stops without an answer when the budget runs out.

use consistory_history::{History, OpId};
use consistory_order::ChainOrder;
use consistory_verdict::{Budget, Certificate, Edge, Judgement, Stopped};

use crate::reads_from::{Candidates, Source};
use crate::registers::Registers;
use crate::replay::{Memory, replay};

/// A read that is decided.
struct Frame {
    read: OpId,
    /// Its candidates in the order in which they are tried.
    sources: Vec<OpId>,
    /// What the candidates before the current one met.
    closed: Vec<(OpId, Certificate, String)>,
}

/// Decides a history with ambiguous reads; `judge` decides a partial or total choice, and
/// `memories` are those to replay it on first.
pub(crate) fn search(
    history: &History,
    candidates: &Candidates,
    memories: &[Memory],
    budget: &Budget,
    judge: impl Fn(&[Source], &[(OpId, OpId)]) -> Result<Judgement, Stopped>,
) -> Result<Judgement, Stopped> {
    let mut guesses = Vec::new();
    for memory in memories {
        budget.check()?;
        let guess = replay(history, candidates, *memory);
        let guessed = chosen(candidates, &guess);
        if let consistent @ Judgement::Consistent(_) = judge(&guess, &guessed)? {
            return Ok(consistent);
        }
        guesses.push(guess);
    }
    let guess = guesses.first().unwrap_or(&candidates.source);
    let mut source = candidates.source.clone();
    let mut frames: Vec<Frame> = Vec::new();
    // How many proofs have rested on each read.
    let mut weights = vec![1u64; history.len()];
    loop {
        budget.check()?;
        let (mut certificate, mut pattern) = match judge(&source, &chosen(candidates, &source))? {
            Judgement::Violation { certificate, pattern } => (certificate, pattern),
            consistent if frames.len() == candidates.ambiguous.len() => return Ok(consistent),
            Judgement::Undecided(stopped) => return Err(stopped),
            Judgement::Consistent(_) => {
                let next = next_choices(history, candidates, &source, guess, &weights);
                for (read, sources) in next {
                    source[read.index()] = Source::new(sources[0]);
                    frames.push(Frame { read, sources, closed: Vec::new() });
                }
                continue;
            }
        };
        // Go back to the last choice that the proof rests on and has another candidate.
        loop {
            let Some(mut frame) = frames.pop() else {
                return Ok(Judgement::Violation { pattern, certificate });
            };
            let read = frame.read;
            let choice = source[read.index()].get().expect("the read of a frame has a source");
            source[read.index()] = Source::NONE;
            if !rests_on(&certificate, history, read, choice) {
                continue;
            }
            weights[read.index()] += 1;
            frame.closed.push((choice, certificate, pattern));
            if let Some(&next) = frame.sources.get(frame.closed.len()) {
                source[read.index()] = Source::new(next);
                frames.push(frame);
                break;
            }
            pattern = frame.closed[0].2.clone();
            let branches =
                frame.closed.into_iter().map(|(write, proof, _)| (write, proof)).collect();
            certificate = Certificate::SplitRead { read, branches };
        }
    }
}

/// Says which reads to decide next, at least one, and the candidates of each in the order in which to
/// try them.
fn next_choices(
    history: &History,
    candidates: &Candidates,
    source: &[Source],
    guess: &[Source],
    weights: &[u64],
) -> Vec<(OpId, Vec<OpId>)> {
    let registers = &Registers::new(history, source);
    // A model that does not imply CC may hold where there is no causal order; then nothing is out.
    let order = ChainOrder::build(registers.chains(), registers.wr_edges()).ok();
    let is_out = |read: OpId, write: OpId| {
        order.as_ref().is_some_and(|order| is_out(registers, order, read, write))
    };
    // The open reads with the number of their candidates that are not out.
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

/// Says whether a read cannot have read from a write in any history that is CC.
fn is_out(registers: &Registers<'_>, order: &ChainOrder, read: OpId, write: OpId) -> bool {
    let history = registers.history;
    let is_initial = history.is_initial(write);
    if !is_initial && order.before(read.0, write.0) {
        return true;
    }
    let chains = order.chains();
    registers.segments(registers.read_key(read.0)).iter().any(|&segment| {
        let known = match segment.chain == chains.chain_of(read.0) {
            true => chains.place_of(read.0),
            false => order.count_until(read.0, segment.chain),
        };
        let passed = registers.places(segment).partition_point(|&place| place < known);
        let last = registers.writes(segment)[..passed].last();
        last.is_some_and(|&last| is_initial || order.before(write.0, last))
    })
}

/// Lists what was chosen for the ambiguous reads.
fn chosen(candidates: &Candidates, source: &[Source]) -> Vec<(OpId, OpId)> {
    candidates
        .ambiguous
        .iter()
        .filter_map(|(read, _)| Some((*read, source[read.index()].get()?)))
        .collect()
}

/// Says whether a proof uses the choice made for a read: by an edge of `wr`, or because a write of
/// unknown status counts only if it is read.
fn rests_on(certificate: &Certificate, history: &History, read: OpId, choice: OpId) -> bool {
    let uncertain = !history.is_initial(choice) && !history.is_certain(choice);
    let mut certificates = vec![certificate];
    let mut edges: Vec<&Edge> = Vec::new();
    while let Some(certificate) = certificates.pop() {
        match certificate {
            Certificate::Cycle { edges: cycle, .. } => edges.extend(cycle),
            Certificate::SplitRead { branches, .. } => {
                certificates.extend(branches.iter().map(|(_, proof)| proof));
            }
            Certificate::SplitOrder { branches, .. } => certificates.extend(branches.iter()),
            _ => {}
        }
        while let Some(edge) = edges.pop() {
            let reads = matches!(&*edge.relation, "wr" | "wre") && edge.to == read;
            if reads || (uncertain && (edge.from == choice || edge.to == choice)) {
                return true;
            }
            edges.extend(&edge.because);
        }
    }
    false
}
