//! Checkpoints: a search that stops and goes on ends as one that does not stop.

use consistory_diagnostic::Style;
use consistory_protocol::{
    Checkpoint, CheckpointError, Exploration, Mismatch, Model, Options, Outcome, Sequential,
    Snapshot, System, Verification, explore, explore_from, verify, verify_from,
};
use consistory_verdict::Budget;

const GERMAN: &str = include_str!("models/german.m");
const LAZY: &str = include_str!("../../../corpus/protocols/lazy-caching.m");
const OVERTAKING: &str = include_str!("../../../corpus/protocols/lazy-caching-overtaking.m");

fn model(text: &str) -> Model {
    Model::parse("test.m", text).unwrap_or_else(|d| panic!("{}", d.render(Style::Plain)))
}

/// Keeps the checkpoint of the round in which a search ends undecided.
fn keep(bytes: &mut Vec<u8>) -> impl FnMut(&Snapshot<'_>) {
    |snapshot| {
        if snapshot.is_last() {
            bytes.clear();
            snapshot.write(bytes).unwrap();
        }
    }
}

fn read(bytes: &[u8]) -> Checkpoint {
    Checkpoint::read(&mut &*bytes).unwrap()
}

/// Explores in parts: with a limit of states that grows, and a number of threads for each part.
fn in_parts(system: &System, options: &Options, limits: &[(u64, usize)]) -> Exploration {
    let mut bytes = Vec::new();
    let mut known = None;
    for &(states, jobs) in limits {
        let options = Options { states: Some(states), jobs, ..options.clone() };
        let budget = Budget::unlimited();
        let found =
            explore_from(known, system, None, &options, &budget, &mut keep(&mut bytes)).unwrap();
        assert!(matches!(found.outcome, Outcome::Undecided { .. }), "{:?}", found.outcome);
        known = Some(read(&bytes));
    }
    let budget = Budget::unlimited();
    explore_from(known, system, None, options, &budget, &mut |_| {}).unwrap()
}

#[test]
fn what_goes_on_ends_as_what_never_stopped() {
    let right = GERMAN.replace("CLIENTS: 4", "CLIENTS: 3");
    let broken = right.replace("sharers[c] := true;", "");
    for text in [&right, &broken] {
        let system = model(text).plain();
        for (symmetry, compaction) in [(false, false), (false, true), (true, false), (true, true)] {
            let options = Options { symmetry, compaction, jobs: 2, ..Options::default() };
            let whole = explore(&system, None, &options, &Budget::unlimited(), &mut |_| {});
            for limits in [&[(100, 2), (250, 2)][..], &[(50, 1), (150, 3), (151, 2)], &[(200, 4)]] {
                let parts = in_parts(&system, &options, limits);
                assert_eq!(parts.progress.states, whole.progress.states, "{limits:?}");
                assert_eq!(parts.progress.depth, whole.progress.depth, "{limits:?}");
                assert_eq!(parts.progress.fired, whole.progress.fired, "{limits:?}");
                match (&parts.outcome, &whole.outcome) {
                    (Outcome::Holds, Outcome::Holds) => {}
                    (Outcome::Violated { run, .. }, Outcome::Violated { run: wanted, .. }) => {
                        assert_eq!(run, wanted, "{limits:?}");
                    }
                    (parts, whole) => panic!("{parts:?}, but {whole:?}"),
                }
            }
        }
    }
}

#[test]
fn proofs_go_on_as_well() {
    for text in [LAZY, OVERTAKING] {
        let system = model(text).tracked().unwrap();
        let options = Options { deadlock: false, jobs: 2, ..Options::default() };
        let whole = verify(&system, &options, &Budget::unlimited(), &mut |_| {}).unwrap();
        let mut bytes = Vec::new();
        let limited = Options { states: Some(1000), jobs: 1, ..options.clone() };
        let unlimited = Budget::unlimited();
        verify(&system, &limited, &unlimited, &mut keep(&mut bytes)).unwrap();
        let going_on = read(&bytes);
        let parts =
            verify_from(Some(going_on), &system, &options, &unlimited, &mut |_| {}).unwrap();
        let numbers = |v: &Verification| (v.progress.states, v.progress.fired, v.progress.depth);
        assert_eq!(numbers(&parts), numbers(&whole));
        match (parts.outcome, whole.outcome) {
            (Sequential::Proved, Sequential::Proved) => {}
            (Sequential::Refused { run, .. }, Sequential::Refused { run: wanted, .. }) => {
                assert_eq!(run, wanted);
            }
            (parts, whole) => panic!("{parts:?}, but {whole:?}"),
        }
    }
}

/// A checkpoint of a small search.
fn small(text: &str, options: &Options) -> Vec<u8> {
    let mut bytes = Vec::new();
    let options = Options { states: Some(60), ..options.clone() };
    let system = model(text).plain();
    explore(&system, None, &options, &Budget::unlimited(), &mut keep(&mut bytes));
    bytes
}

#[test]
fn a_stop_in_the_middle_of_a_round_is_one_at_its_start() {
    let system = model(&GERMAN.replace("CLIENTS: 4", "CLIENTS: 2")).plain();
    let options = Options::default();
    let mut bytes = Vec::new();
    let over = Budget::unlimited().with_time(std::time::Duration::ZERO);
    let found = explore(&system, None, &options, &over, &mut keep(&mut bytes));
    assert!(matches!(found.outcome, Outcome::Undecided { .. }));
    let going_on = Some(read(&bytes));
    let budget = Budget::unlimited();
    let found = explore_from(going_on, &system, None, &options, &budget, &mut |_| {}).unwrap();
    assert_eq!(found.progress.states, 852);
}

#[test]
fn damage_is_found() {
    for compaction in [false, true] {
        let bytes = small(GERMAN, &Options { compaction, ..Options::default() });
        assert!(Checkpoint::read(&mut &bytes[..]).is_ok());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let found = Checkpoint::read(&mut &damaged[..]);
            match found {
                Err(CheckpointError::Foreign) => assert!(at < 8),
                found => assert!(matches!(found, Err(CheckpointError::Damaged)), "byte {at}"),
            }
            assert!(Checkpoint::read(&mut &bytes[..at]).is_err(), "only {at} bytes");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(matches!(Checkpoint::read(&mut &longer[..]), Err(CheckpointError::Damaged)));
    }
}

#[test]
fn a_checkpoint_of_something_else_is_refused() {
    let options = Options::default();
    let bytes = small(GERMAN, &options);
    let refused = |text: &str, options: &Options| -> Mismatch {
        let system = model(text).plain();
        let budget = Budget::unlimited();
        explore_from(Some(read(&bytes)), &system, None, options, &budget, &mut |_| {}).unwrap_err()
    };
    let other = GERMAN.replace("CLIENTS: 4", "CLIENTS: 5");
    assert_eq!(refused(&other, &options), Mismatch::Description);
    for (options, message) in [
        (
            Options { symmetry: false, ..options.clone() },
            "the checkpoint was made with symmetry, and this search is without symmetry",
        ),
        (
            Options { compaction: true, ..options.clone() },
            "the checkpoint was made with exact states, and this search is with hash compaction",
        ),
    ] {
        assert_eq!(refused(GERMAN, &options).to_string(), message);
    }
}
