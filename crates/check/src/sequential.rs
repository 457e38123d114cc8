//! SC, gradually: saturate, search from there, split cases where the search fails.
//!
//! The saturated order ([`crate::saturation`]) refutes most histories that are not sequentially
//! consistent, with one cycle as proof. Where it finds nothing, the frontier search
//! ([`crate::frontier`]) starts from it and mostly finds an order at once. If it finds none, the
//! history is refuted by cases: two writes of a key that are not ordered come in one order or in the
//! other, and each case is saturated again, until every case is closed by a cycle. A case whose
//! proof does not use its assumption closes the split above it as well.
//!
//! SC is NP-complete (Gibbons and Korach 1997): it stops without an answer when the budget runs
//! out.

use consistory_history::OpId;
use consistory_order::ChainOrder;
use consistory_verdict::{Budget, Certificate, Edge, Judgement, Stopped};

use crate::frontier::{self, Found};
use crate::registers::Registers;
use crate::saturation::{Readers, Saturation};

/// Decides SC of a history whose causal order has no cycle and whose `wr` is settled.
pub(crate) fn judge(
    registers: &Registers<'_>,
    co: &ChainOrder,
    budget: &Budget,
    wr: &[(OpId, OpId)],
) -> Result<Judgement, Stopped> {
    let readers = Readers::new(registers);
    let mut case = Saturation::new(registers, &readers, co.clone());
    if case.saturate(budget)?.is_err() {
        return Ok(violation(closed(&case)));
    }
    match frontier::search(registers, &mut case, budget)? {
        Found::Order(order) => {
            let order = frontier::counting(registers, &order);
            Ok(Judgement::Consistent(Certificate::Order { order, wr: wr.to_vec() }))
        }
        Found::Nothing => split(registers, case, budget).map(violation),
    }
}

fn violation(certificate: Certificate) -> Judgement {
    Judgement::Violation { pattern: "CyclicSC".to_owned(), certificate }
}

/// Refutes a saturated history of which it is known that it has no sequential order.
fn split(
    registers: &Registers<'_>,
    mut case: Saturation<'_>,
    budget: &Budget,
) -> Result<Certificate, Stopped> {
    // The cases above the current one: the two writes, and what closed the first.
    let mut frames: Vec<Frame<'_>> = Vec::new();
    loop {
        budget.check()?;
        if case.saturate(budget)?.is_ok() {
            let writes = unordered_pair(registers, &case.order)
                .expect("a history whose writes are all ordered has a sequential order or a cycle");
            let second = case.clone();
            frames.push(Frame { writes, second: Some(second), first_proof: None });
            case = assume(case, writes);
            continue;
        }
        let mut certificate = closed(&case);
        // Close cases until one has its other half left to do.
        loop {
            let Some(frame) = frames.last_mut() else { return Ok(certificate) };
            let [a, b] = frame.writes;
            let assumed = if frame.second.is_some() { (a, b) } else { (b, a) };
            if !rests_on(&certificate, assumed) {
                frames.pop();
                continue;
            }
            if let Some(second) = frame.second.take() {
                frame.first_proof = Some(certificate);
                case = assume(second, [b, a]);
                break;
            }
            let first = frame.first_proof.take().expect("the first half was closed before");
            let writes = [OpId(a), OpId(b)];
            certificate =
                Certificate::SplitOrder { writes, branches: Box::new([first, certificate]) };
            frames.pop();
        }
    }
}

struct Frame<'a> {
    writes: [u32; 2],
    /// The case before the assumption, until its second half is taken.
    second: Option<Saturation<'a>>,
    first_proof: Option<Certificate>,
}

/// Adds an assumption; a cycle that it closes shows when the case is solved.
fn assume<'a>(mut case: Saturation<'a>, [first, second]: [u32; 2]) -> Saturation<'a> {
    case.assume(first, second);
    case
}

/// Gives the proof of a contradiction.
fn closed(case: &Saturation<'_>) -> Certificate {
    Certificate::Cycle { edges: case.explain(), observer: None, check: None }
}

/// Chooses two writes of a key that are not ordered: of the key whose writes are read most.
fn unordered_pair(registers: &Registers<'_>, order: &ChainOrder) -> Option<[u32; 2]> {
    let mut best: Option<(usize, [u32; 2])> = None;
    for key in registers.history.keys() {
        let segments = registers.segments(key);
        for (i, &a) in segments.iter().enumerate() {
            for &b in &segments[i + 1..] {
                for &w in registers.writes(a) {
                    let open = registers
                        .writes(b)
                        .iter()
                        .find(|&&v| !order.before(w, v) && !order.before(v, w));
                    if let Some(&v) = open {
                        let weight = |op: u32| {
                            (0..order.chains().len() as u32)
                                .map(|chain| order.count_until(op, chain) as usize)
                                .sum::<usize>()
                        };
                        // The earliest open pair: what is behind it depends on it.
                        let at = weight(w) + weight(v);
                        if best.is_none_or(|(known, _)| at < known) {
                            best = Some((at, [w, v]));
                        }
                        break;
                    }
                }
            }
        }
    }
    best.map(|(_, pair)| pair)
}

/// Says whether a proof uses an assumed order of two writes.
fn rests_on(certificate: &Certificate, (first, second): (u32, u32)) -> bool {
    let mut certificates = vec![certificate];
    let mut edges: Vec<&Edge> = Vec::new();
    while let Some(certificate) = certificates.pop() {
        match certificate {
            Certificate::Cycle { edges: cycle, .. } => edges.extend(cycle),
            Certificate::SplitOrder { branches, .. } => certificates.extend(branches.iter()),
            _ => {}
        }
        while let Some(edge) = edges.pop() {
            if edge.relation == "ww" && edge.from.0 == first && edge.to.0 == second {
                return true;
            }
            edges.extend(&edge.because);
        }
    }
    false
}
