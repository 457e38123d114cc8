//! Known defects of popular collections are found, and correct collections pass.
#![cfg(feature = "collections")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use consistory_harness::collections::find;
use consistory_harness::{Program, Report};

/// Tests some methods of a collection, or all of them, until a failure is found.
fn test(name: &str, methods: &[&str], time: Duration) -> Report {
    let (mut campaign, mut runner) = find(name).unwrap().build().unwrap();
    campaign.programs.signatures.retain(|s| methods.is_empty() || methods.contains(&&*s.method));
    campaign.time = time;
    campaign.run(&mut runner, |_| ()).unwrap()
}

fn shape(text: &str) -> Program {
    text.parse::<Program>().unwrap().shape()
}

#[test]
fn both_defects_of_the_skip_list_are_found() {
    // While a value is being replaced, a reader finds none.
    let gap =
        [shape("t0: set(0,1) set(0,2)\nt1: get(0)"), shape("t0: set(0,1) get(0)\nt1: set(0,2)")];
    // Two removals both return the same entry.
    let twice = shape("t0: set(0,1) remove(0)\nt1: remove(0)");
    let are_both_found = |report: &Report| {
        let found: Vec<Program> = report.failures.iter().map(|f| f.program.shape()).collect();
        gap.iter().any(|program| found.contains(program)) && found.contains(&twice)
    };
    let (mut campaign, mut runner) = find("crossbeam-skiplist").unwrap().build().unwrap();
    let methods = ["set", "get", "remove"];
    campaign.programs.signatures.retain(|s| methods.contains(&&*s.method));
    campaign.failures = usize::MAX;
    campaign.time = Duration::from_secs(60);
    let done = Arc::new(AtomicBool::new(false));
    campaign.interrupt = Some(done.clone());
    let progress = |report: &Report| done.store(are_both_found(report), Ordering::Relaxed);
    let report = campaign.run(&mut runner, progress).unwrap();
    assert!(are_both_found(&report), "{report}");
}

#[test]
fn a_removal_beside_an_update_of_the_tree_index_finds_nothing_to_remove() {
    let methods = ["set", "tryInsert", "removeKey"];
    let report = test("scc::TreeIndex", &methods, Duration::from_secs(60));
    assert_eq!(report.failures.len(), 1, "{report}");
    assert_eq!(report.failures[0].program.len(), 3, "{report}");
}

#[test]
fn a_walk_over_shards_is_not_atomic() {
    let report = test("dashmap", &["put", "iter", "len"], Duration::from_secs(60));
    assert_eq!(report.failures.len(), 1, "{report}");
}

#[test]
fn nothing_is_wrong_with_those_that_lock() {
    let by_key = ["put", "get", "remove", "tryInsert", "getOrPut", "containsKey"];
    let time = Duration::from_secs(2);
    for (name, methods) in [
        ("scc::HashMap", &by_key[..]),
        ("dashmap", &by_key[..]),
        ("std::Mutex<BTreeMap>", &[]),
        ("std::Mutex<VecDeque>", &[]),
        ("std::mpsc", &[]),
    ] {
        let report = test(name, methods, time);
        assert!(report.is_clean(), "{name}: {report}");
    }
}
