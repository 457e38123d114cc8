//! Repeated register values: chooses the write from which each ambiguous read reads.
//!
//! A level holds if it holds for some choice. Sources are chosen read by read. After each choice,
//! the history is saturated with the sources chosen so far; a read without a chosen source is
//! ignored, which only weakens the constraints, so a cycle rules out all completions of the choice.
//! A candidate whose refutation does not use the read rules out the other candidates too.

use consistory_verdict::{
    Budget, ClientOrder, Dependency, Level, Relates, Stopped, TransactionCertificate,
};

use crate::problem::Problem;
use crate::proof;
use crate::saturate::{Saturated, Saturation};
use crate::search::{CommitOrder, Decision, commit_order};
use crate::view::{INITIAL, Transactions};
use crate::{search, weak};

/// A decision with the choices that it holds for.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) decision: Decision,
    pub(crate) choices: Vec<(u32, u32)>,
}

/// An ambiguous read, with its refuted candidates.
struct Choice {
    ruled_out: Vec<TransactionCertificate>,
}

/// Decides a level for histories with or without ambiguous reads.
pub(crate) fn decide(
    tx: &Transactions<'_>,
    order: ClientOrder,
    level: Level,
    budget: &Budget,
) -> Result<Chosen, Stopped> {
    let ambiguous = tx.ambiguous();
    let mut chosen: Vec<(u32, u32)> = Vec::new();
    let mut open: Vec<Choice> = Vec::new();
    loop {
        budget.check()?;
        let problem = Problem::new(tx, order, &chosen);
        let is_whole = chosen.len() == ambiguous.len();
        let decision = match is_whole {
            true => Some(decide_resolved(&problem, level, budget)?),
            false => refute(&problem, level, budget)?.map(Decision::Violation),
        };
        let mut refutation = match decision {
            Some(Decision::Violation(refutation)) => refutation,
            Some(decision) => return Ok(Chosen { decision, choices: chosen }),
            None => {
                let next = &ambiguous[chosen.len()];
                chosen.push((next.read, next.candidates[0]));
                open.push(Choice { ruled_out: Vec::new() });
                continue;
            }
        };
        loop {
            let Some(mut choice) = open.pop() else {
                let decision = Decision::Violation(refutation);
                return Ok(Chosen { decision, choices: Vec::new() });
            };
            let (read, source) = chosen.pop().expect("as many as are open");
            let op = tx.reads()[read as usize].op;
            let is_certain = source == INITIAL || !tx.is_indeterminate(source);
            if is_certain && !mentions(&refutation, op) {
                continue;
            }
            choice.ruled_out.push(refutation);
            let candidates = &ambiguous[chosen.len()].candidates;
            if let Some(&next) = candidates.get(choice.ruled_out.len()) {
                chosen.push((read, next));
                open.push(choice);
                break;
            }
            let key = tx.reads()[read as usize].key;
            let write = |&source: &u32| match source {
                INITIAL => tx.history().initial_write(key),
                node => tx.last_write(node, key).expect("a candidate writes the key"),
            };
            let branches = candidates.iter().map(write).zip(choice.ruled_out).collect();
            refutation = TransactionCertificate::SplitRead { read: op, branches };
        }
    }
}

/// Decides a level when every read has one source.
fn decide_resolved(
    problem: &Problem<'_>,
    level: Level,
    budget: &Budget,
) -> Result<Decision, Stopped> {
    if level > Level::Causal {
        return search::decide(problem, level, budget);
    }
    let (graph, found) = weak::decide(problem, level, budget)?;
    Ok(match proof::refutation(&graph, found) {
        Some(refutation) => Decision::Violation(refutation),
        None => Decision::Consistent(commit_order(&graph.graph, &graph.graph.order)),
    })
}

/// Refutes a level without a search, if possible.
fn refute(
    problem: &Problem<'_>,
    level: Level,
    budget: &Budget,
) -> Result<Option<TransactionCertificate>, Stopped> {
    if level > Level::Causal {
        let mut saturation = Saturation::new(problem, level);
        let found = saturation.run(budget)?;
        return Ok(match found {
            Saturated::Closed => None,
            found => proof::refutation(&saturation, found),
        });
    }
    let (graph, found) = weak::decide(problem, level, budget)?;
    Ok(proof::refutation(&graph, found))
}

/// Checks whether a refutation uses a read.
fn mentions(refutation: &TransactionCertificate, op: consistory_history::OpId) -> bool {
    let mut open: Vec<&Dependency> = refutation.cycles().flatten().collect();
    while let Some(edge) = open.pop() {
        if let Relates::Wr { read } | Relates::Rw { read } = edge.relation
            && read == op
        {
            return true;
        }
        open.extend(&edge.because);
    }
    false
}

/// Converts a commit order of nodes to a certificate.
pub(crate) fn certificate(
    tx: &Transactions<'_>,
    order: &CommitOrder,
    choices: &[(u32, u32)],
) -> TransactionCertificate {
    let write = |&(read, source): &(u32, u32)| {
        let read = tx.reads()[read as usize];
        let write = match source {
            INITIAL => tx.history().initial_write(read.key),
            node => tx.last_write(node, read.key).expect("a source writes the key"),
        };
        (read.op, write)
    };
    TransactionCertificate::Order {
        order: order.order.iter().map(|&node| tx.first_op(node)).collect(),
        snapshots: order.snapshots.clone(),
        wr: choices.iter().map(write).collect(),
    }
}
