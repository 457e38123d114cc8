//! The evaluator agrees with an independent reading of the definitions, and the lattice with both.

use crate::support::plain::{Machine, brute_force, operations};
use crate::support::{Random, Shape, every_history, history, random_history, verdict};
use consistory_models::{catalogue, implications, load};
use consistory_verdict::Verdict;

/// Compares all models on a history, including implications; returns the models that it satisfies.
fn compare(text: &str, seed: u64) -> Vec<&'static str> {
    let h = history(text);
    let mut satisfied = Vec::new();
    for model in catalogue() {
        let expected = brute_force(model.id, &h);
        let found = verdict(&model.definition, &h) == Verdict::Consistent;
        assert_eq!(found, expected, "{} of (seed {seed})\n{text}", model.id);
        if found {
            satisfied.push(model.id);
        }
    }
    for implication in implications() {
        assert!(
            !satisfied.contains(&implication.from) || satisfied.contains(&implication.to),
            "{} but not {} (seed {seed})\n{text}",
            implication.from,
            implication.to
        );
    }
    satisfied
}

#[test]
fn every_small_history() {
    let mut count = 0;
    for operations in 0..=4 {
        every_history(operations, &mut |text| {
            count += 1;
            compare(text, 0);
        });
    }
    assert_eq!(count, 2_633);
}

fn compare_random(shape: Shape, count: u64) {
    let satisfied: Vec<Vec<&str>> =
        (0..count).map(|seed| compare(&random_history(&mut Random(seed), shape), seed)).collect();
    // A comparison in which a model always has the same verdict would prove little.
    for model in catalogue() {
        let holds = satisfied.iter().filter(|ids| ids.contains(&model.id)).count() as u64;
        assert!(holds > 0 && holds < count, "{}: {holds} of {count}", model.id);
    }
}

const PLAIN: Shape = Shape {
    sessions: 3,
    operations: 8,
    keys: 2,
    values: 0,
    with_rmw: false,
    with_fences: false,
    with_unknown: false,
};

#[test]
fn random_histories() {
    compare_random(PLAIN, 200);
    compare_random(Shape { sessions: 2, ..PLAIN }, 200);
    compare_random(Shape { keys: 1, sessions: 4, ..PLAIN }, 200);
}

#[test]
fn random_histories_with_fences_and_read_modify_writes() {
    compare_random(Shape { with_fences: true, with_rmw: true, ..PLAIN }, 200);
    compare_random(Shape { with_fences: true, with_rmw: true, keys: 1, ..PLAIN }, 200);
}

#[test]
fn random_histories_with_values_written_twice() {
    compare_random(Shape { values: 2, operations: 7, ..PLAIN }, 200);
    compare_random(Shape { values: 1, with_rmw: true, operations: 6, ..PLAIN }, 200);
}

#[test]
fn random_histories_with_unknown_writes() {
    compare_random(Shape { with_unknown: true, with_rmw: true, with_fences: true, ..PLAIN }, 200);
    compare_random(Shape { with_unknown: true, values: 2, operations: 7, ..PLAIN }, 200);
}

#[test]
fn initial_values() {
    for (seed, init) in (0..200).zip(["x=1", "x=2 y=1"].into_iter().cycle()) {
        let text = random_history(&mut Random(seed), Shape { values: 2, operations: 6, ..PLAIN });
        compare(&format!("{text}\ninit: {init}"), seed);
    }
}

#[test]
fn what_the_machines_accept() {
    let ops = |text| operations(&history(text));
    let buffering = ops("t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)");
    assert!(Machine::accepts(&buffering, true) && !Machine::accepts(&buffering, false));
    assert!(!Machine::accepts(&ops("t0: w(x,1) f r(y,0)\nt1: w(y,1) f r(x,0)"), true));
}

/// A check that subtracts only a term in which `wr` or `ww` occurs must not be used for pruning.
#[test]
fn what_may_not_prune_decides_alike() {
    let definitions = ["wr", "ww"].map(|minus| {
        let text = format!(
            "include \"relations.cat\"
            with ww from store-orders
            acyclic (po | wr | ww | rw(ww)) \\ (0 & {minus})"
        );
        load("slow.cat", &text, |_| None).unwrap()
    });
    let shape = Shape { values: 2, operations: 6, with_rmw: true, ..PLAIN };
    for seed in 0..100 {
        let with_unknown = seed % 2 == 0;
        let text = random_history(&mut Random(seed), Shape { with_unknown, ..shape });
        let h = history(&text);
        for definition in &definitions {
            let found = verdict(definition, &h) == Verdict::Consistent;
            assert_eq!(found, brute_force("sc", &h), "seed {seed}\n{text}");
        }
    }
}
