//! Histories that are not differentiated: a search over what each read may have read from.
//!
//! A model holds if it holds for some choice of `wr`, which is NP-complete for the causal models
//! (Bouajjani et al., POPL 2017). The search starts with a guess: it replays the sessions on one
//! memory, as far as the reads let it, and lets each read read from what is there. A store that is
//! not broken mostly passes with that guess.
//!
//! Otherwise it goes read by read, the read with the fewest candidates first. A partial choice that
//! already violates the model is cut off, since the relations only grow with `wr`. The proof of a
//! violation names the choices that it rests on; if it does not rest on the last one, it stands for
//! all the other candidates too and the search jumps back over them. What remains is a tree of
//! cases, each closed by a cycle.
//!
//! It stops without an answer when the budget runs out.

use consistory_history::{Action, History, KeyId, OpId, SessionId};
use consistory_verdict::{Budget, Certificate, Edge, Judgement, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::reads_from::{Candidates, Source};

/// Decides a history with ambiguous reads; `judge` decides a partial or total choice.
pub(crate) fn search(
    history: &History,
    candidates: &Candidates,
    budget: &Budget,
    judge: impl Fn(&[Source], &[(OpId, OpId)]) -> Result<Judgement, Stopped>,
) -> Result<Judgement, Stopped> {
    let guess = replay(history, candidates);
    let guessed = chosen(candidates, &guess);
    if let consistent @ Judgement::Consistent(_) = judge(&guess, &guessed)? {
        return Ok(consistent);
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
            let reads = edge.relation == "wr" && edge.to == read;
            if reads || (uncertain && (edge.from == choice || edge.to == choice)) {
                return true;
            }
            edges.extend(&edge.because);
        }
    }
    false
}

/// Guesses what each ambiguous read reads from by running the sessions on one memory.
///
/// Reads that find their value run first, then writes that a waiting read asks for, then any
/// write. When all sessions wait, the one that got least far goes on, and its read takes the last
/// candidate that was written, or any.
fn replay(history: &History, candidates: &Candidates) -> Vec<Source> {
    let mut source = candidates.source.clone();
    let options: FxHashMap<OpId, &[OpId]> =
        candidates.ambiguous.iter().map(|(read, sources)| (*read, sources.as_slice())).collect();
    let mut memory: Vec<OpId> = history.keys().map(|key| history.initial_write(key)).collect();
    let mut written_at = vec![0u32; history.len()];
    let mut clock = 0;
    let ends: Vec<u32> = history
        .sessions()
        .map(|s| history.op_at(s, history.session_ops(s).len() as u32).0)
        .collect();
    let mut heads: Vec<u32> = history.sessions().map(|s| history.op_at(s, 0).0).collect();
    let value_in = |memory: &[OpId], key: KeyId| match history.action(memory[key.index()]) {
        Action::Write { value, .. } | Action::Rmw { write: value, .. } => value,
        _ => unreachable!("memory holds writes"),
    };
    let mut run = |op: OpId, memory: &mut Vec<OpId>, source: &mut Vec<Source>, forced: bool| {
        if let Some((key, _)) = history.reads(op)
            && let Some(options) = options.get(&op)
        {
            let here = memory[key.index()];
            let write = if !forced && options.contains(&here) {
                here
            } else {
                let when =
                    |w: &OpId| if history.is_initial(*w) { 0 } else { written_at[w.index()] };
                *options.iter().max_by_key(|w| when(w)).expect("an ambiguous read has candidates")
            };
            source[op.index()] = Source::new(write);
        }
        if let Some((key, _)) = history.writes(op) {
            clock += 1;
            written_at[op.index()] = clock;
            memory[key.index()] = op;
        }
    };
    loop {
        let mut moved = false;
        // Everything that needs no write to come first.
        for session in 0..heads.len() {
            while heads[session] < ends[session] {
                let op = OpId(heads[session]);
                let runs = match history.reads(op) {
                    Some((key, value)) => value_in(&memory, key) == value,
                    None => history.writes(op).is_none(),
                };
                if !runs {
                    break;
                }
                run(op, &mut memory, &mut source, false);
                heads[session] += 1;
                moved = true;
            }
        }
        if moved {
            continue;
        }
        let waiting: FxHashSet<_> = (0..heads.len())
            .filter(|&s| heads[s] < ends[s])
            .filter_map(|s| history.reads(OpId(heads[s])))
            .collect();
        let progress = |s: &usize| {
            let start = history.op_at(SessionId::new(*s), 0).0;
            u64::from(heads[*s] - start) * 1_000_000 / u64::from(ends[*s] - start)
        };
        let next = (0..heads.len()).filter(|&s| heads[s] < ends[s]).min_by_key(|s| {
            let op = OpId(heads[*s]);
            let class = match history.reads(op) {
                Some(_) => 2,
                None if history.writes(op).is_some_and(|kv| waiting.contains(&kv)) => 0,
                None => 1,
            };
            (class, progress(s))
        });
        let Some(session) = next else { return source };
        run(OpId(heads[session]), &mut memory, &mut source, true);
        heads[session] += 1;
    }
}
