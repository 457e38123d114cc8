//! Histories that are not differentiated: a search over what each read may have read from.
//!
//! A model holds if it holds for some choice of `wr`, which is NP-complete for the causal models
//! (Bouajjani et al., POPL 2017). The search starts with guesses: it replays the history on simulated
//! memories ([`crate::replay`]). A store that is not broken mostly passes with one of them.
//!
//! Otherwise it goes read by read, the read with the fewest candidates first. A partial choice that
//! already violates the model is cut off, since the relations only grow with `wr`. The proof of a
//! violation names the choices that it rests on; if it does not rest on the last one, it stands for
//! all the other candidates too and the search jumps back over them. What remains is a tree of
//! cases, each closed by a cycle.
//!
//! It stops without an answer when the budget runs out.

use consistory_history::{History, OpId};
use consistory_verdict::{Budget, Certificate, Edge, Judgement, Stopped};

use crate::reads_from::{Candidates, Source};
use crate::replay::{Memory, replay};

/// Decides a history with ambiguous reads; `judge` decides a partial or total choice, and
/// `memories` are those to replay it on first.
pub(crate) fn search(
    history: &History,
    candidates: &Candidates,
    memories: &[Memory],
    budget: &Budget,
    judge: impl Fn(&[Source], &[(OpId, OpId)]) -> Result<Judgement, Stopped>,
) -> Result<Judgement, Stopped> {
    for memory in memories {
        budget.check()?;
        let guess = replay(history, candidates, *memory);
        let guessed = chosen(candidates, &guess);
        if let consistent @ Judgement::Consistent(_) = judge(&guess, &guessed)? {
            return Ok(consistent);
        }
    }
    let mut reads: Vec<&(OpId, Vec<OpId>)> = candidates.ambiguous.iter().collect();
    reads.sort_by_key(|(_, sources)| sources.len());

    let mut source = candidates.source.clone();
    // One frame for each read that is decided: what its candidates before the current one met.
    let mut frames: Vec<Vec<(OpId, Certificate, String)>> = Vec::new();
    loop {
        budget.check()?;
        let (mut certificate, mut pattern) = match judge(&source, &chosen(candidates, &source))? {
            Judgement::Violation { certificate, pattern } => (certificate, pattern),
            consistent if frames.len() == reads.len() => return Ok(consistent),
            Judgement::Undecided(stopped) => return Err(stopped),
            Judgement::Consistent(_) => {
                let (read, sources) = reads[frames.len()];
                source[read.index()] = Source::new(sources[0]);
                frames.push(Vec::new());
                continue;
            }
        };
        // Go back to the last choice that the proof rests on and has another candidate.
        loop {
            let Some(mut closed) = frames.pop() else {
                return Ok(Judgement::Violation { pattern, certificate });
            };
            let (read, sources) = reads[frames.len()];
            let choice = source[read.index()].get().expect("the read of a frame has a source");
            if !rests_on(&certificate, history, *read, choice) {
                source[read.index()] = Source::NONE;
                continue;
            }
            closed.push((sources[closed.len()], certificate, pattern));
            if let Some(&next) = sources.get(closed.len()) {
                source[read.index()] = Source::new(next);
                frames.push(closed);
                break;
            }
            source[read.index()] = Source::NONE;
            pattern = closed[0].2.clone();
            let branches = closed.into_iter().map(|(write, proof, _)| (write, proof)).collect();
            certificate = Certificate::SplitRead { read: *read, branches };
        }
    }
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
