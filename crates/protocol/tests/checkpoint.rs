//! Checkpoints: a search that is stopped and continued ends like one that is not stopped.

use consistory_diagnostic::Style;
use consistory_protocol::{
    Checkpoint, CheckpointError, Exploration, ExploreError, Explorer, Mismatch, Model, Options,
    Outcome, Snapshot, System,
};
use consistory_verdict::Budget;

const GERMAN: &str = include_str!("models/german.m");
const LAZY: &str = include_str!("../../../corpus/protocols/lazy-caching.m");

fn model(text: &str) -> Model {
    Model::parse("test.m", text).unwrap_or_else(|d| panic!("{}", d.render(Style::Plain)))
}

/// Writes the checkpoint of the round in which a search ends undecided.
fn keep(bytes: &mut Vec<u8>) -> impl FnMut(&Snapshot<'_>) {
    |snapshot| {
        if snapshot.is_last() {
            bytes.clear();
            snapshot.write(bytes).unwrap();
        }
    }
}

/// Explores, starting from a checkpoint if one is given.
fn explore(system: &System, options: &Options, from: Option<Checkpoint>) -> Exploration {
    let explorer = Explorer::new(system).options(options.clone());
    let explorer = match from {
        Some(checkpoint) => explorer.resume(checkpoint),
        None => explorer,
    };
    explorer.run().unwrap()
}

fn read(bytes: &[u8]) -> Checkpoint {
    Checkpoint::read(&mut &*bytes).unwrap()
}

/// Explores in parts, with a growing limit of states and a number of threads for each part.
fn in_parts(system: &System, options: &Options, limits: &[(u64, usize)]) -> Exploration {
    let mut bytes = Vec::new();
    let mut known = None;
    for &(states, jobs) in limits {
        let options = Options { states: Some(states), jobs, ..options.clone() };
        let explorer = Explorer::new(system).options(options).report(keep(&mut bytes));
        let explorer = match known {
            Some(checkpoint) => explorer.resume(checkpoint),
            None => explorer,
        };
        let found = explorer.run().unwrap();
        assert!(matches!(found.outcome, Outcome::Undecided { .. }), "{:?}", found.outcome);
        known = Some(read(&bytes));
    }
    explore(system, options, known)
}

#[test]
fn what_goes_on_ends_as_what_never_stopped() {
    let right = GERMAN.replace("CLIENTS: 4", "CLIENTS: 3");
    let broken = right.replace("sharers[c] := true;", "");
    for text in [&right, &broken] {
        let system = model(text).plain();
        for (symmetry, compaction) in [(false, false), (false, true), (true, false), (true, true)] {
            let options = Options { symmetry, compaction, jobs: 2, ..Options::default() };
            let whole = explore(&system, &options, None);
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
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/protocols");
    let overtaking = crate::variants::read(&folder.join("lazy-caching-overtaking.patch"));
    for text in [LAZY, &overtaking] {
        let system = model(text).tracked().unwrap();
        let options = Options { deadlock: false, jobs: 2, ..Options::default() };
        let whole = explore(&system, &options, None);
        let mut bytes = Vec::new();
        let limited = Options { states: Some(1000), jobs: 1, ..options.clone() };
        Explorer::new(&system).options(limited).report(keep(&mut bytes)).run().unwrap();
        let parts = explore(&system, &options, Some(read(&bytes)));
        let numbers = |v: &Exploration| (v.progress.states, v.progress.fired, v.progress.depth);
        assert_eq!(numbers(&parts), numbers(&whole));
        match (parts.outcome, whole.outcome) {
            (Outcome::Holds, Outcome::Holds) => {}
            (Outcome::Violated { run, .. }, Outcome::Violated { run: wanted, .. }) => {
                assert_eq!(run, wanted);
            }
            (parts, whole) => panic!("{parts:?}, but {whole:?}"),
        }
    }
}

/// Returns the checkpoint of a small search.
fn small(text: &str, options: &Options) -> Vec<u8> {
    let mut bytes = Vec::new();
    let options = Options { states: Some(60), ..options.clone() };
    let system = model(text).plain();
    Explorer::new(&system).options(options).report(keep(&mut bytes)).run().unwrap();
    bytes
}

#[test]
fn a_stop_in_the_middle_of_a_round_is_one_at_its_start() {
    let system = model(&GERMAN.replace("CLIENTS: 4", "CLIENTS: 2")).plain();
    let options = Options::default();
    let mut bytes = Vec::new();
    let over = Budget::unlimited().with_time(std::time::Duration::ZERO);
    let explorer = Explorer::new(&system).budget(over).report(keep(&mut bytes));
    let found = explorer.run().unwrap();
    assert!(matches!(found.outcome, Outcome::Undecided { .. }));
    let found = explore(&system, &options, Some(read(&bytes)));
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
        let explorer = Explorer::new(&system).options(options.clone()).resume(read(&bytes));
        match explorer.run().unwrap_err() {
            ExploreError::Mismatch(mismatch) => mismatch,
            other => panic!("{other}"),
        }
    };
    let other = GERMAN.replace("CLIENTS: 4", "CLIENTS: 5");
    assert_eq!(refused(&other, &options), Mismatch::Description);
    for (options, message) in [
        (
            Options { symmetry: false, ..options.clone() },
            "the checkpoint was made with symmetry, but this search runs without symmetry",
        ),
        (
            Options { compaction: true, ..options.clone() },
            "the checkpoint was made with exact states, but this search runs with hash compaction",
        ),
    ] {
        assert_eq!(refused(GERMAN, &options).to_string(), message);
    }
}
