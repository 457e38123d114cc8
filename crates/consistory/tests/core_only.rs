//! The page of a report shows the core of an object's violation: the calls that it needs, and no
//! others.

use std::collections::BTreeSet;

use consistory::{Court, parse};
use serde_json::Value;

/// Builds the page of a history for linearizability; returns its only picture.
fn picture(text: &str, object: &str) -> Value {
    let court = Court::object(object).unwrap().models(["linearizability"]).unwrap();
    let history = parse(text).unwrap();
    let page = serde_json::to_value(court.judge(&history).unwrap().page(&[])).unwrap();
    page["scenes"][0].clone()
}

fn ids(picture: &Value) -> BTreeSet<&str> {
    let nodes = picture["scene"]["nodes"].as_array().unwrap();
    nodes.iter().map(|node| node["id"].as_str().unwrap()).collect()
}

#[test]
fn the_core_has_the_calls_that_are_needed() {
    // 1 and 2 are dequeued in the wrong order, whatever else was enqueued.
    let text = "t0: enqueue(1) @10..11 enqueue(2) @12..13\n\
                t1: dequeue() => 2 @20..21 dequeue() => 1 @22..23\n\
                t2: enqueue(7) @14..15 enqueue(8) @16..17 enqueue(9) @18..19\n";
    let whole = picture(text, "queue");
    let core = &whole["core"];
    assert_eq!(ids(core), BTreeSet::from(["t0:0", "t0:1", "t1:0"]));
    assert!(ids(&whole).is_superset(&ids(core)) && ids(&whole).len() == 6);
    // The picture of all calls highlights the calls of the core.
    for node in whole["scene"]["nodes"].as_array().unwrap() {
        let is_core = ids(core).contains(node["id"].as_str().unwrap());
        assert_eq!(["proof", "wrong"].contains(&node["emphasis"].as_str().unwrap()), is_core);
    }
    // The steps through the core have their own states.
    let steps = core["scene"]["steps"].as_array().unwrap();
    let states: Vec<&str> = steps.iter().filter_map(|s| s["state"][0][1].as_str()).collect();
    assert_eq!(states, ["[1]", "[1, 2]", "[1, 2]"]);
    assert!(steps.last().unwrap()["sentence"].as_str().unwrap().contains("t1:0"));
    let note = core["scene"]["notes"].to_string();
    assert!(note.contains("The other 4 calls of the history cannot help"), "{note}");
}

#[test]
fn a_history_that_is_its_own_core_has_no_other() {
    let text = "t0: enqueue(1) @1..2 enqueue(2) @3..4\nt1: dequeue() => 2 @5..6\n";
    assert!(picture(text, "queue").get("core").is_none());
    let text = "t0: enqueue(1) @1..2\nt1: dequeue() => 1 @5..6\n";
    assert!(picture(text, "queue").get("core").is_none());
}

/// The returns in a core are wrong whatever the other calls returned: without them, or with other
/// returns, the history is still a violation.
#[test]
fn the_other_calls_cannot_help() {
    let mut cores = 0;
    for seed in 0..60u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        // Random calls of a counter in random intervals; most such histories are violations.
        let mut lines = Vec::new();
        for session in 0..3 {
            let mut time = next(4);
            let mut line = format!("t{session}:");
            for _ in 0..4 {
                let (start, end) = (time, time + 1 + next(4));
                time = end + 1 + next(3);
                line += &match next(3) {
                    0 => format!(" get() => {} @{start}..{end}", next(5)),
                    _ => format!(" increment() @{start}..{end}"),
                };
            }
            lines.push(line);
        }
        let text = lines.join("\n");
        let whole = picture(&text, "counter");
        let Some(core) = whole.get("core") else { continue };
        cores += 1;
        let core = ids(core);
        // Every other `get` may return any value.
        let mut relaxed = String::new();
        for (session, line) in lines.iter().enumerate() {
            let words: Vec<&str> = line.split(' ').collect();
            relaxed += words[0];
            let mut index = 0;
            let mut at = 1;
            while at < words.len() {
                let is_read = words[at] == "get()";
                let length = if is_read { 4 } else { 2 };
                if !is_read || core.contains(&*format!("t{session}:{index}")) {
                    relaxed += &format!(" {}", words[at..at + length].join(" "));
                }
                index += 1;
                at += length;
            }
            relaxed.push('\n');
        }
        let court = Court::object("counter").unwrap().models(["linearizability"]).unwrap();
        let history = parse(&relaxed).unwrap();
        let report = court.judge(&history).unwrap();
        assert!(report.iter().all(|verdict| verdict.is_violation()), "{text}\n\n{relaxed}");
    }
    assert!(cores > 10, "{cores}");
}
