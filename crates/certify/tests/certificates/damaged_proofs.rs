//! Proofs of violations, found by brute force for every violated model and damaged in every way: a
//! damaged one is accepted only if it is still a proof.

use consistory_certify::certify;
use consistory_history::{History, OpId};
use consistory_verdict::{Certificate, Edge, Verdict};

use super::naive::{self, World, worlds};
use super::prover::prove;
use super::support::{MODELS, Random, Shape, history, json, random_history, text};

/// Checks by definition, for the causal models, whether every edge holds and the model forbids
/// every cycle, in all worlds that the enclosing cases leave.
fn holds(h: &History, model: &str, certificate: &Certificate, worlds: &[&World<'_>]) -> bool {
    match certificate {
        Certificate::ThinAirRead { read } => {
            let mut others = (0..h.len() + h.key_count()).map(OpId::new).filter(|op| op != read);
            h.reads(*read).is_some() && others.all(|op| h.writes(op) != h.reads(*read))
        }
        Certificate::SplitRead { read, branches } => branches.iter().all(|(write, branch)| {
            let chosen = |world: &&World<'_>| world.source[read.index()] == Some(*write);
            let left: Vec<&World<'_>> = worlds.iter().copied().filter(chosen).collect();
            holds(h, model, branch, &left)
        }),
        Certificate::SplitOrder { branches, .. } => {
            branches.iter().any(|branch| holds(h, model, branch, worlds))
        }
        Certificate::Cycle { edges, observer, .. } => {
            let count = |relation| edges.iter().filter(|edge| edge.relation == relation).count();
            let closed = (0..edges.len()).all(|i| edges[i].to == edges[(i + 1) % edges.len()].from);
            let given = count("po") + count("wr");
            let shape = given + count("rw") == edges.len() && count("rw") <= 1
                || (model == "ccv" && given + count("cf") == edges.len())
                || (model == "cm" && given + count("hb") == edges.len());
            closed
                && !edges.is_empty()
                && shape
                && worlds
                    .iter()
                    .all(|world| edges.iter().all(|edge| true_in(world, edge, *observer)))
        }
        _ => false,
    }
}

fn true_in(world: &World<'_>, edge: &Edge, observer: Option<OpId>) -> bool {
    let co = world.co();
    let relation = match edge.relation.as_str() {
        "po" => world.po(),
        "wr" => world.wr(),
        "rw" => world.rw(&co),
        "cf" => world.cf(&co),
        "hb" => match observer {
            Some(observer) => world.hb(observer.index()),
            None => return false,
        },
        _ => return false,
    };
    // The checker takes `po` from the record, also through operations that do not count.
    let recorded = edge.relation == "po"
        && world.same_session(edge.from.index(), edge.to.index())
        && edge.from < edge.to;
    (recorded || relation[edge.from.index()][edge.to.index()])
        && edge.because.iter().all(|premise| true_in(world, premise, observer))
}

/// Returns every list of edges that differs by one error, at any depth.
fn damaged_edges(h: &History, edges: &[Edge]) -> Vec<Vec<Edge>> {
    const RELATIONS: [&str; 9] = ["po", "wr", "rw", "cf", "hb", "ww", "ppo", "poloc", "wre"];
    let mut all = Vec::new();
    for i in 0..edges.len() {
        let mut with = |damage: &dyn Fn(&mut Vec<Edge>)| {
            let mut edges = edges.to_vec();
            damage(&mut edges);
            all.push(edges);
        };
        with(&|edges| drop(edges.remove(i)));
        with(&|edges| edges.insert(i, edges[i].clone()));
        with(&|edges| edges.swap(0, i));
        for id in (0..h.len() + h.key_count()).map(OpId::new) {
            with(&|edges| edges[i].from = id);
            with(&|edges| edges[i].to = id);
        }
        for relation in RELATIONS {
            with(&|edges| edges[i].relation = relation.into());
        }
        for because in damaged_edges(h, &edges[i].because) {
            with(&|edges| edges[i].because.clone_from(&because));
        }
    }
    all
}

/// Returns every list of edges that lacks one premise, or all premises of an edge, at any depth.
fn with_a_gap(edges: &[Edge]) -> Vec<Vec<Edge>> {
    let mut all = Vec::new();
    for (i, edge) in edges.iter().enumerate().filter(|(_, edge)| !edge.because.is_empty()) {
        let mut because = with_a_gap(&edge.because);
        because.push(Vec::new());
        for gap in 0..edge.because.len() {
            let mut left = edge.because.clone();
            left.remove(gap);
            because.push(left);
        }
        for because in because {
            let mut edges = edges.to_vec();
            edges[i].because = because;
            all.push(edges);
        }
    }
    all
}

/// Applies damage to the cycles of a certificate, and to its cases.
fn damaged(
    certificate: &Certificate,
    damage: &dyn Fn(&[Edge]) -> Vec<Vec<Edge>>,
) -> Vec<Certificate> {
    match certificate {
        Certificate::Cycle { edges, observer, check } => damage(edges)
            .into_iter()
            .map(|edges| Certificate::Cycle { edges, observer: *observer, check: *check })
            .collect(),
        Certificate::SplitOrder { writes, branches } => {
            let mut all = Vec::new();
            for (i, branch) in branches.iter().enumerate() {
                for damaged in damaged(branch, damage) {
                    let mut branches = branches.clone();
                    branches[i] = damaged;
                    all.push(Certificate::SplitOrder { writes: *writes, branches });
                }
            }
            all
        }
        Certificate::SplitRead { read, branches } => {
            let mut all = Vec::new();
            for (i, (_, branch)) in branches.iter().enumerate() {
                for damaged in damaged(branch, damage) {
                    let mut branches = branches.clone();
                    branches[i].1 = damaged;
                    all.push(Certificate::SplitRead { read: *read, branches });
                }
            }
            all
        }
        _ => Vec::new(),
    }
}

/// Damages the cases themselves and the fields of a cycle other than its edges.
fn damaged_cases(h: &History, certificate: &Certificate) -> Vec<Certificate> {
    let ids = || (0..h.len() + h.key_count()).map(OpId::new);
    match certificate {
        Certificate::ThinAirRead { .. } => {
            ids().map(|read| Certificate::ThinAirRead { read }).collect()
        }
        Certificate::Cycle { edges, .. } => std::iter::once(None)
            .chain(ids().map(Some))
            .map(|observer| Certificate::Cycle { edges: edges.clone(), observer, check: None })
            .collect(),
        Certificate::SplitOrder { writes: [a, b], branches } => {
            let [first, second] = &**branches;
            let swapped = Box::new([second.clone(), first.clone()]);
            let doubled = Box::new([first.clone(), first.clone()]);
            let mut all = vec![first.clone(), second.clone()];
            for branches in [swapped, doubled] {
                all.push(Certificate::SplitOrder { writes: [*a, *b], branches });
            }
            for id in ids() {
                for writes in [[id, *b], [*a, id]] {
                    all.push(Certificate::SplitOrder { writes, branches: branches.clone() });
                }
            }
            all
        }
        Certificate::SplitRead { read, branches } => {
            let mut all: Vec<Certificate> =
                branches.iter().map(|(_, proof)| proof.clone()).collect();
            for i in 0..branches.len() {
                let mut dropped = branches.clone();
                dropped.remove(i);
                all.push(Certificate::SplitRead { read: *read, branches: dropped });
                for id in ids() {
                    let mut other = branches.clone();
                    other[i].0 = id;
                    all.push(Certificate::SplitRead { read: *read, branches: other });
                }
            }
            for read in ids() {
                all.push(Certificate::SplitRead { read, branches: branches.clone() });
            }
            all
        }
        _ => Vec::new(),
    }
}

/// Builds a history of the same shape that differs in one number or one mark.
fn altered(h: &History, random: &mut Random) -> History {
    let written = text(h);
    let places: Vec<usize> = written.match_indices([')']).map(|(at, _)| at).collect();
    let Some(&at) = places.get(random.below(places.len().max(1))) else { return h.clone() };
    let mut bytes = written.into_bytes();
    if random.chance(80) {
        bytes[at - 1] = b'0' + random.below(4) as u8;
    } else if bytes.get(at + 1).is_none_or(|next| !matches!(next, b'!' | b'?')) {
        bytes.insert(at + 1, if random.chance(50) { b'!' } else { b'?' });
    }
    history(&String::from_utf8(bytes).unwrap())
}

/// Histories each of which violates some model in its own way.
const VIOLATING: &[&str] = &[
    // CC: WriteCORead, WriteCOInitRead, CyclicCO.
    "t0: w(x,1) w(x,2) w(y,1); t1: r(y,1) r(x,1)",
    "t0: w(x,1) w(y,1); t1: r(y,1) r(x,0)",
    "t0: r(x,1) w(y,1); t1: r(y,1) w(x,1)",
    "t0: rmw(x,0,1) w(y,1); t1: r(y,1) rmw(x,0,2)",
    // CCv: CyclicCF.
    "t0: w(x,1) r(x,2); t1: w(x,2) r(x,1)",
    "t0: w(x,1); t1: w(x,2); t2: r(x,1) r(x,2); t3: r(x,2) r(x,1)",
    // CM: WriteHBInitRead, CyclicHB.
    "t0: w(z,1) w(x,1) w(y,1); t1: w(x,2) r(z,0) r(y,1) r(x,2)",
    "t0: w(x,1) r(y,1) w(x,3)?; t1: w(z,1) w(x,2) w(y,1); t2: r(x,2) r(x,1) r(x,2)",
    "t0: w(x,1) w(y,1); t1: w(x,2) r(y,1) w(z,1); t2: r(z,1) r(x,2) r(x,1) r(x,2)",
    "t0: w(z,1) w(x,1) w(y,1); t1: w(x,2) r(z,0) r(y,1) r(x,2) w(u,1); t2: r(u,1) r(u,1)",
    // SC: store buffering and similar histories.
    "t0: w(x,1) r(y,0); t1: w(y,1) r(x,0)",
    "t0: w(x,1) f r(y,0); t1: w(y,1) rmw(z,0,1) r(x,0)",
    "t0: w(x,1) w(y,2); t1: w(y,1) w(x,2); t2: r(x,2) r(x,1) r(y,2) r(y,1)",
    "t0: w(x,1); t1: w(y,1); t2: r(x,1) r(y,0); t3: r(y,1) r(x,0)",
    // Ambiguous reads and writes of unknown status.
    "t0: r(x,1) w(x,1) w(x,1)",
    "t0: w(x,1) w(x,2) w(y,1); t1: w(x,1) r(y,1) r(x,1) r(x,2) r(x,1)",
    "t0: w(x,1)? w(x,2) w(y,1); t1: r(y,1) r(x,1)",
];

/// Returns the histories above, followed by random ones.
fn histories(seed: u64, count: usize) -> impl Iterator<Item = History> {
    let mut random = Random(seed);
    let random = (0..count).map(move |round| {
        let shape =
            Shape { sessions: 2 + round % 3, ops: 5 + round % 4, keys: 2, plain: round % 3 != 0 };
        random_history(&mut random, shape)
    });
    VIOLATING.iter().map(|text| history(text)).chain(random)
}

#[test]
fn each_of_these_histories_violates_something() {
    for h in VIOLATING {
        assert!(MODELS.iter().any(|model| prove(&history(h), model).is_some()), "{h}");
    }
}

fn accepted(h: &History, model: &str, certificate: &Certificate) -> bool {
    certify(h, model, Verdict::Violation, certificate).is_ok()
}

#[test]
fn a_model_is_violated_exactly_if_a_proof_is_accepted() {
    let mut random = Random(0xbead);
    let mut seen = [[0; 2]; 5];
    for round in 0..1_500 {
        let shape = Shape {
            sessions: 2 + round % 3,
            ops: 5 + round % 4,
            keys: 1 + round % 2,
            plain: round % 3 != 0,
        };
        let h = random_history(&mut random, shape);
        for (m, model) in MODELS.into_iter().enumerate() {
            let proof = prove(&h, model);
            assert_eq!(proof.is_none(), naive::satisfies(&h, model), "{model}; {}", text(&h));
            if let Some(proof) = &proof {
                let verdict = certify(&h, model, Verdict::Violation, proof);
                assert_eq!(verdict, Ok(()), "{model}; {}; {}", text(&h), json(&h, proof));
            }
            seen[m][usize::from(proof.is_some())] += 1;
        }
    }
    assert!(seen.iter().flatten().all(|&count| count > 100), "one-sided: {seen:?}");
}

#[test]
fn a_proof_with_a_gap_is_rejected() {
    let mut gaps = 0;
    for h in histories(0xfee1, 600) {
        for model in MODELS {
            let Some(proof) = prove(&h, model) else { continue };
            for damaged in damaged(&proof, &with_a_gap) {
                assert!(
                    !accepted(&h, model, &damaged),
                    "{model}; {}; {}",
                    text(&h),
                    json(&h, &damaged)
                );
                gaps += 1;
            }
        }
    }
    assert!(gaps > 1_000, "{gaps}");
}

#[test]
fn a_damaged_proof_is_rejected_unless_all_of_it_still_holds() {
    let (mut rejected, mut hb) = (0, 0);
    for h in histories(0xd00d, 600) {
        let all = worlds(&h);
        // A read-modify-write that reads from itself is not a case that a proof has to cover.
        let own = |world: &&World<'_>| h.ops().any(|op| world.source[op.index()] == Some(op));
        let all: Vec<&World<'_>> = all.iter().filter(|world| !own(world)).collect();
        for model in ["cc", "ccv", "cm"] {
            let Some(proof) = prove(&h, model) else { continue };
            assert!(holds(&h, model, &proof, &all), "{model}; {}; {}", text(&h), json(&h, &proof));
            hb += usize::from(json(&h, &proof).contains("\"hb\""));
            let edges = |edges: &[Edge]| damaged_edges(&h, edges);
            for damaged in damaged(&proof, &edges).iter().chain(&damaged_cases(&h, &proof)) {
                if accepted(&h, model, damaged) {
                    let still = holds(&h, model, damaged, &all);
                    assert!(still, "{model}; {}; {}", text(&h), json(&h, damaged));
                } else {
                    rejected += 1;
                }
            }
        }
    }
    assert!(rejected > 10_000 && hb > 5, "{rejected} {hb}");
}

#[test]
fn whatever_is_accepted_is_a_violation() {
    let mut random = Random(0xace5);
    let mut proved = 0;
    for h in histories(0xbe11, 600) {
        let others: Vec<History> = (0..4).map(|_| altered(&h, &mut random)).collect();
        for model in MODELS {
            let Some(proof) = prove(&h, model) else { continue };
            let edges = |edges: &[Edge]| {
                let mut damaged = damaged_edges(&h, edges);
                damaged.push(edges.to_vec());
                damaged
            };
            let mut damaged = damaged(&proof, &edges);
            damaged.extend(damaged_cases(&h, &proof));
            for other in &others {
                let violated: Vec<bool> =
                    MODELS.iter().map(|model| !naive::satisfies(other, model)).collect();
                for certificate in &damaged {
                    for (claim, violated) in MODELS.iter().zip(&violated) {
                        if accepted(other, claim, certificate) {
                            proved += 1;
                            assert!(
                                violated,
                                "{claim}; {}; {}",
                                text(other),
                                json(other, certificate)
                            );
                        }
                    }
                }
            }
        }
    }
    assert!(proved > 1_000, "{proved}");
}
