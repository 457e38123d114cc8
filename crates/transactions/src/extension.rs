//! An arbitrary version order for `psi`, checked afterwards.
//!
//! At `psi` a transaction reads from a snapshot that need not be a prefix of the commit order, so
//! events cannot be scheduled along one line. Instead the forced edges are extended to any order,
//! the versions of each key are taken in that order, and each read is checked against the writers
//! that its transaction then knows. A read that knows a later version names a pair of writers whose
//! order was a wrong guess; one extension names many such pairs.

use consistory_history::KeyId;
use consistory_verdict::{Budget, Stopped};
use rustc_hash::FxHashSet;

use crate::graph::{Graph, Link, Sorted, Why};
use crate::search::are_ordered;
use crate::view::{INITIAL, OPEN};

/// Result of an extension.
pub(crate) enum Extended {
    /// All events, in an order whose versions satisfy `psi`.
    Complete(Vec<u32>),
    /// Versions of these keys should be in the given orders instead.
    Conflicts(Vec<(KeyId, [u32; 2])>),
}

/// Largest number of conflicts that one extension reports.
const MAX_CONFLICTS: usize = 256;

/// Extends a closed graph of `psi`.
pub(crate) fn extend(graph: &Graph<'_, '_>, budget: &Budget) -> Result<Extended, Stopped> {
    let problem = graph.problem;
    let mut at = vec![0u32; graph.events()];
    for (place, &event) in graph.order.iter().enumerate() {
        at[event as usize] = place as u32;
    }
    let version = |node: u32| at[graph.commit(node) as usize];
    let mut extended = Graph::new(problem, graph.shape);
    extended.links.clone_from(&graph.links);
    let mut guesses = Vec::new();
    for key in problem.tx.history().keys() {
        let mut writers: Vec<u32> = problem.writers_of(key).collect();
        writers.sort_unstable_by_key(|&writer| version(writer));
        for pair in writers.windows(2) {
            let (from, to) = (extended.commit(pair[0]), extended.commit(pair[1]));
            extended.links.push(Link { from, to, why: Why::Assumed { key } });
            if !are_ordered(graph, pair[0], pair[1]) {
                guesses.push((key, pair[0], pair[1]));
            }
        }
    }
    let sorted = extended.sort(budget)?;
    debug_assert_eq!(sorted, Sorted::Acyclic, "versions were taken along an extension");
    extended.sweep_past(budget)?;
    let mut conflicts: Vec<(KeyId, [u32; 2])> = Vec::new();
    let mut paired = FxHashSet::default();
    for node in 0..problem.tx.len() as u32 {
        let knows = extended.past_of(extended.snapshot(node));
        for read in problem.tx.reads_of(node) {
            let source = problem.sources[read];
            if source == OPEN {
                continue;
            }
            let key = problem.key_of(read as u32);
            for &group in problem.groups(key) {
                let writers = problem.writers(group);
                let known = knows[group.chain as usize];
                let mut count = writers.partition_point(|&w| extended.commit_place(w) < known);
                if count > 0 && writers[count - 1] == node {
                    count -= 1;
                }
                let Some(&writer) = writers[..count].last() else { continue };
                if source != INITIAL {
                    if writer == source || version(writer) < version(source) {
                        continue;
                    }
                    if !are_ordered(graph, source, writer) {
                        // The version order places the source before a known writer, which was a
                        // guess. A pair is reported once, in one order.
                        let pair = (key, writer.min(source), writer.max(source));
                        if paired.insert(pair) {
                            conflicts.push((key, [writer, source]));
                        }
                        if conflicts.len() == MAX_CONFLICTS {
                            return Ok(Extended::Conflicts(conflicts));
                        }
                        continue;
                    }
                }
                if !conflicts.is_empty() {
                    continue;
                }
                // The reader knows the writer through a guess.
                let is_known = |node: u32| {
                    knows[problem.chain_of[node as usize] as usize] > extended.commit_place(node)
                };
                let guess = guesses.iter().find(|&&(_, _, second)| is_known(second));
                let &(key, first, second) = guess.expect("a closed graph does not know it itself");
                return Ok(Extended::Conflicts(vec![(key, [second, first])]));
            }
        }
    }
    Ok(match conflicts.is_empty() {
        true => Extended::Complete(extended.order),
        false => Extended::Conflicts(conflicts),
    })
}
