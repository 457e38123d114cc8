//! The split engine: two unordered writes of a key come in one order or in the other.
//!
//! Each case is saturated, and a case that saturation leaves open is split again, until every case
//! is closed by a cycle, or all writes of some case are ordered, which is a witness. A case whose
//! proof does not use its assumption also closes the split above it. Assumptions are undone from a
//! trail; nothing is copied. The tree of cases is a refutation that a person can read.
//!
//! Exponential in the number of splits at worst. Each split costs one saturation, and the choice of
//! a pair costs about the number of writes times the number of chains.

use consistory_history::OpId;
use consistory_order::topological_order;
use consistory_verdict::{Budget, Certificate, Edge, Relation, Stopped};

use crate::registers::Registers;
use crate::store_order::completion::{Complete, Completed};
use crate::store_order::layers::Layer;
use crate::store_order::saturation::{Contradiction, Point, Saturation};

/// The engine of this module.
pub(crate) struct Split;

impl Complete for Split {
    fn complete(
        &self,
        registers: &Registers<'_>,
        saturation: &mut Saturation<'_>,
        budget: &Budget,
    ) -> Result<Completed, Stopped> {
        split_by(saturation, budget, |layer| unordered_pair(registers, layer))
    }
}

/// Completes a saturated history by cases. `choose` returns two unordered writes of a key, or none
/// if all are ordered.
pub(crate) fn split_by(
    case: &mut Saturation<'_>,
    budget: &Budget,
    mut choose: impl FnMut(&Layer) -> Option<[OpId; 2]>,
) -> Result<Completed, Stopped> {
    // The cases around the current one, outermost first.
    let mut frames: Vec<SplitFrame> = Vec::new();
    let mut closed: Result<(), Contradiction> = Ok(());
    loop {
        budget.check()?;
        if closed.is_ok() {
            closed = case.saturate(budget)?;
        }
        if closed.is_ok() {
            let Some(writes) = choose(case.layer()) else {
                return Ok(Completed::Order(extension(case.layer())));
            };
            frames.push(SplitFrame { writes, before: case.mark(), first: None });
            closed = case.put(writes[0], writes[1]);
            continue;
        }
        let mut proof = leaf(case);
        // Close cases until one has a second half to try.
        loop {
            let Some(frame) = frames.last_mut() else { return Ok(Completed::Refuted(proof)) };
            let [a, b] = frame.writes;
            let assumed = if frame.first.is_none() { (a, b) } else { (b, a) };
            if !rests_on(&proof.certificate, assumed) {
                frames.pop();
                continue;
            }
            let Some(first) = frame.first.take() else {
                frame.first = Some(proof);
                case.undo(frame.before);
                closed = case.put(b, a);
                break;
            };
            let branches = Box::new([first.certificate, proof.certificate]);
            let certificate = Certificate::SplitOrder { writes: [a, b], branches };
            proof = Refutation { certificate, pattern: first.pattern };
            frames.pop();
        }
    }
}

/// The refutation of a case.
pub(crate) struct Refutation {
    pub(crate) certificate: Certificate,
    pub(crate) pattern: &'static str,
}

struct SplitFrame {
    writes: [OpId; 2],
    /// State of the saturation before the assumption.
    before: Point,
    /// The refutation of the first half, once it is closed.
    first: Option<Refutation>,
}

/// Returns the proof of a contradiction.
pub(crate) fn leaf(case: &Saturation<'_>) -> Refutation {
    let certificate = Certificate::Cycle { edges: case.explain(), observer: None, check: None };
    Refutation { certificate, pattern: case.pattern() }
}

/// Returns an order of all operations that a layer allows.
pub(crate) fn extension(layer: &Layer) -> Vec<OpId> {
    topological_order(layer.order.chains(), layer.order.edges()).expect("there is no contradiction")
}

/// Chooses the earliest two unordered writes of a key: later operations depend on them.
pub(crate) fn unordered_pair(registers: &Registers<'_>, layer: &Layer) -> Option<[OpId; 2]> {
    let Layer { order, segments, .. } = layer;
    let chains = order.chains().ids();
    let behind = |op| chains.clone().map(|c| u64::from(order.count_until(op, c))).sum::<u64>();
    let mut best: Option<(u64, [OpId; 2])> = None;
    for key in registers.history.keys() {
        let segments_of_key = segments.of(key);
        for (i, &a) in segments_of_key.iter().enumerate() {
            for &b in &segments_of_key[i + 1..] {
                for &w in segments.writes(a) {
                    // The first write of b that is not before w.
                    let known = order.count_until(w, b.chain);
                    let next = segments.places(b).partition_point(|&place| place < known);
                    let Some(&v) = segments.writes(b).get(next) else { break };
                    if !order.before(w, v) {
                        let at = behind(w) + behind(v);
                        if best.is_none_or(|(known, _)| at < known) {
                            best = Some((at, [w, v]));
                        }
                        // Later pairs of the two chains have more operations before them.
                        break;
                    }
                }
            }
        }
    }
    best.map(|(_, pair)| pair)
}

/// Returns whether a proof uses an assumed order of two writes.
fn rests_on(certificate: &Certificate, (first, second): (OpId, OpId)) -> bool {
    let is_it =
        |edge: &Edge| edge.relation == Relation::Ww && edge.from == first && edge.to == second;
    certificate.edges().any(is_it)
}
