//! Each memory generates only histories of its model, and some that no stronger model allows.

use std::collections::BTreeSet;

use crate::oracles::{Small, is_cc, is_ccv, is_cm, is_pso, is_sc, is_tso};
use consistory_generate::{Memory, Workload};

/// Varies small workloads with the seed.
fn workloads(operations: u32, seeds: u64) -> impl Iterator<Item = Workload> {
    (0..seeds).map(move |seed| {
        let (rmw_share, fence_share) =
            [(0.0, 0.0), (0.15, 0.0), (0.0, 0.15), (0.1, 0.1)][(seed / 2 % 4) as usize];
        Workload {
            sessions: 2 + (seed % 2) as u32,
            operations,
            variables: 1 + (seed / 8 % 3) as u32,
            read_share: 0.5,
            rmw_share,
            fence_share,
            lag: [1, 2, 16][(seed % 3) as usize],
            seed,
            ..Workload::default()
        }
    })
}

/// Counts the histories that `model` does not allow.
fn violations(
    memory: Memory,
    workloads: impl Iterator<Item = Workload>,
    model: fn(&Small) -> bool,
) -> usize {
    workloads.filter(|workload| !model(&Small::generate(workload, memory))).count()
}

fn assert_all(
    memory: Memory,
    workloads: impl Iterator<Item = Workload>,
    name: &str,
    model: fn(&Small) -> bool,
) {
    for workload in workloads {
        let history = Small::generate(&workload, memory);
        assert!(model(&history), "{memory} violates {name} with {workload:?}:\n{history}");
    }
}

#[test]
fn oracles_know_the_classics() {
    type Row = (&'static str, &'static str, [bool; 6]);
    const T: bool = true;
    const F: bool = false;
    // The name of each history, and whether it satisfies SC, TSO, PSO, CC, CCv and CM.
    let rows: [Row; 14] = [
        ("store buffering", "w(0,1) r(1,0) | w(1,1) r(0,0)", [F, T, T, T, T, T]),
        ("it with fences", "w(0,1) f r(1,0) | w(1,1) f r(0,0)", [F, F, F, T, T, T]),
        ("it with updates", "rmw(0,0,1) r(1,0) | w(1,1) f r(0,0)", [F, F, F, T, T, T]),
        ("message passing", "w(0,1) w(1,1) | r(1,1) r(0,0)", [F, F, T, F, F, F]),
        ("it with a fence", "w(0,1) f w(1,1) | r(1,1) r(0,0)", [F, F, F, F, F, F]),
        ("it done right", "w(0,1) w(1,1) | r(1,1) r(0,1)", [T, T, T, T, T, T]),
        ("incoherence", "w(0,1) w(0,2) | r(0,2) r(0,1)", [F, F, F, F, F, F]),
        ("IRIW", "w(0,1) | w(1,1) | r(0,1) r(1,0) | r(1,1) r(0,0)", [F, F, F, T, T, T]),
        ("crossed writes", "w(0,1) r(0,2) | w(0,2) r(0,1)", [F, F, F, T, F, T]),
        (
            "CCv but not CM",
            "w(0,1) w(1,1) w(2,1) | w(1,2) r(0,0) r(2,1) r(1,2)",
            [F, T, T, T, T, F],
        ),
        ("two updates at once", "rmw(0,0,1) | rmw(0,0,2)", [F, F, F, T, T, T]),
        ("thin air", "r(0,7)", [F, F, F, F, F, F]),
        ("the future", "r(0,1) w(0,1)", [F, F, F, F, F, F]),
        ("nothing", "", [T, T, T, T, T, T]),
    ];
    for (name, text, expected) in rows {
        let history = Small::parse(text);
        let found = [is_sc, is_tso, is_pso, is_cc, is_ccv, is_cm].map(|model| model(&history));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn memories_reach_all_that_their_model_allows() {
    let programs = [
        "w(0,1) r(1,0) | w(1,1) r(0,0)",
        "w(0,1) w(1,1) | r(1,0) r(0,0)",
        "r(0,0) w(1,1) | r(1,0) w(0,1)",
        "w(0,1) r(0,0) | w(0,2) r(0,0)",
        "w(0,1) w(0,2) | r(0,0) r(0,0)",
    ]
    .map(Small::parse);
    type Model = fn(&Small) -> bool;
    let models: [(Memory, Model); 5] = [
        (Memory::Sc, is_sc),
        (Memory::Tso, is_tso),
        (Memory::Pso, is_pso),
        (Memory::Ccv, is_ccv),
        (Memory::Cm, is_cm),
    ];
    for (memory, model) in models {
        let mut seen = programs.each_ref().map(|_| BTreeSet::new());
        for seed in 0..120_000 {
            let size = Workload { sessions: 2, operations: 4, variables: 2, ..Workload::default() };
            let history = Small::generate(&Workload { seed, ..size }, memory).renumbered();
            let blank = history.with_reads(&mut std::iter::repeat(0));
            if let Some(at) = programs.iter().position(|p| p.sessions == blank.sessions) {
                seen[at].insert(history.to_string());
            }
        }
        for (program, seen) in programs.iter().zip(seen) {
            let choices = (0..9).map(|n| program.with_reads(&mut [n / 3, n % 3].into_iter()));
            let allowed = choices.filter(model).map(|history| history.to_string());
            assert_eq!(seen, allowed.collect(), "{memory}");
        }
    }
}

#[test]
fn sc_is_sequentially_consistent() {
    assert_all(Memory::Sc, workloads(6, 4000), "SC", is_sc);
}

#[test]
fn tso_is_tso_and_no_more() {
    assert_all(Memory::Tso, workloads(6, 4000), "TSO", is_tso);
    assert_ne!(violations(Memory::Tso, workloads(6, 4000), is_sc), 0);
}

#[test]
fn pso_is_pso_and_no_more() {
    assert_all(Memory::Pso, workloads(6, 4000), "PSO", is_pso);
    assert_ne!(violations(Memory::Pso, workloads(6, 4000), is_tso), 0);
}

#[test]
fn ccv_is_causally_convergent_and_no_more() {
    assert_all(Memory::Ccv, workloads(8, 3000), "CCv", is_ccv);
    assert_all(Memory::Ccv, workloads(24, 500), "CCv", is_ccv);
    assert_ne!(violations(Memory::Ccv, workloads(8, 1000), is_sc), 0);
    assert_ne!(violations(Memory::Ccv, workloads(24, 500), is_cm), 0);
}

#[test]
fn cm_is_causal_memory_and_no_more() {
    assert_all(Memory::Cm, workloads(8, 3000), "CM", is_cm);
    assert_all(Memory::Cm, workloads(24, 500), "CM", is_cm);
    assert_ne!(violations(Memory::Cm, workloads(8, 1000), is_sc), 0);
    assert_ne!(violations(Memory::Cm, workloads(8, 1000), is_ccv), 0);
}

#[test]
fn broken_is_not_even_causal() {
    let broken = violations(Memory::Broken, workloads(8, 1000), is_cc);
    assert!((100..1000).contains(&broken), "{broken}");
}

#[test]
fn nothing_that_never_lags_is_weak() {
    for memory in [Memory::Tso, Memory::Pso, Memory::Ccv, Memory::Cm] {
        let workloads = workloads(8, 500).map(|workload| Workload { lag: 0, ..workload });
        assert_all(memory, workloads, "SC", is_sc);
    }
}
