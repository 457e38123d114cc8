//! Runs tests on the processor of this machine.
//!
//! Which outcomes occur depends on chance and on the load of the machine, so these tests only
//! assert that forbidden outcomes do not occur. They are short; the histograms in the docs are from
//! long runs.

#[path = "../../litmus/tests/random/mod.rs"]
mod random;

use std::collections::BTreeSet;
use std::time::Duration;

use consistory_litmus::{
    LocationId, Observable, Outcome, OutcomesError, Program, Semantics, Table, parse_notation,
};
use consistory_native::{Architecture, Histogram, NativeError, Options, run};
use consistory_verdict::Budget;

/// Returns the model of the processor: TSO for x86, and RMO, which allows all outcomes of Arm.
fn promise() -> Option<Table> {
    match Architecture::host()? {
        Architecture::X86_64 => Some(Table::tso()),
        Architecture::Aarch64 => Some(Table::rmo()),
    }
}

/// Runs a test and asserts that its outcomes are allowed; returns `None` if there is no assembler.
fn keeps_its_promise(program: &Program, runs: u64, seed: u64) -> Option<Histogram> {
    let budget = Budget::unlimited().with_time(Duration::from_secs(10));
    let options = Options { runs, seed, budget, ..Options::default() };
    let seen = match run(program, &options) {
        Ok(seen) => seen,
        Err(NativeError::Architecture) => return None,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(seen.counts.values().sum::<u64>(), seen.runs);
    assert!(seen.runs == runs || seen.stopped.is_some());
    let promise = promise()?;
    let allowed = match promise.outcomes(program, &Budget::unlimited()) {
        Ok(allowed) => allowed,
        Err(OutcomesError::Unsupported { .. }) => return Some(seen),
        Err(error) => panic!("{error}"),
    };
    let seen_outcomes: BTreeSet<Outcome> = seen.counts.keys().cloned().collect();
    let forbidden: Vec<_> = seen_outcomes.difference(&allowed).collect();
    assert!(forbidden.is_empty(), "{promise} forbids {forbidden:?} of {program:?}");
    Some(seen)
}

#[test]
fn classic_tests() {
    for text in [
        "X=1; r1=Y // Y=1; r2=X",
        "X=1; fence; r1=Y // Y=1; fence; r2=X",
        "r1=xchg(X,1); r2=Y // r3=xchg(Y,1); r4=X",
        "X=1; Y=1 // r1=Y; r2=X",
        "r1=X; Y=1 // r2=Y; X=1",
        "X=1; Y=2 // Y=1; X=2",
        "X=1; r1=X; r2=Y // Y=1; r3=Y; r4=X",
        "X=1; Y=2; r1=Y // Y=3; r2=Y; r3=X",
        "X=1 // Y=1 // r1=X; r2=Y // r3=Y; r4=X",
        "r1=add(X,1) // r2=add(X,1)",
    ] {
        let mut program = parse_notation(text).unwrap();
        for location in 0..program.locations.len() {
            program.observed.push(Observable::Location(LocationId::new(location)));
        }
        keeps_its_promise(&program, 20_000, 7);
    }
}

#[test]
fn store_buffering_shows_and_a_fence_hides_it() {
    let program = parse_notation("X=1; r1=Y // Y=1; r2=X").unwrap();
    let relaxed = Outcome([0, 0].into());
    let mut found = false;
    for seed in 0..20 {
        let Some(seen) = keeps_its_promise(&program, 10_000, seed) else { return };
        found |= seen.counts.contains_key(&relaxed);
        if found || seen.stopped.is_some() || seen.cores < 2 {
            break;
        }
    }
    // On a loaded machine the two threads may never overlap; then nothing is asserted.
    if found {
        let fenced = parse_notation("X=1; fence; r1=Y // Y=1; fence; r2=X").unwrap();
        let Some(seen) = keeps_its_promise(&fenced, 50_000, 1) else { return };
        assert!(!seen.counts.contains_key(&relaxed));
    }
}

#[test]
fn random_programs_do_what_they_say() {
    for seed in 0..600 {
        let mut program = random::program(seed);
        keeps_its_promise(&program, 50, seed);
        // A single thread has one outcome, which checks the arithmetic of the assembler.
        program.threads.truncate(1);
        program.observed = program.read_registers();
        let alone = Table::sc().outcomes(&program, &Budget::unlimited()).unwrap();
        let options = Options { runs: 3, seed, ..Options::default() };
        if let Ok(seen) = run(&program, &options) {
            assert!(seen.counts.keys().eq(&alone), "seed {seed}: {program:?}");
        }
    }
}

#[test]
fn a_spent_budget_stops_the_runs() {
    let program = parse_notation("X=1 // r1=X").unwrap();
    let budget = Budget::unlimited().with_time(Duration::ZERO);
    if let Ok(seen) = run(&program, &Options { budget, ..Options::default() }) {
        assert_eq!(seen.runs, 0);
        assert!(seen.stopped.is_some());
    }
}
