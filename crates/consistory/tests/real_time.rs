//! Linearizability of reads and writes: judged as registers, as calls, and by the search over
//! calls.

use std::sync::Arc;

use consistory::{Court, NamedObject};
use consistory_history::{Action, Details, History, HistoryBuilder, Interval, Status};
use consistory_objects::{Calls, Options, Task, judge_objects};
use consistory_spec::ObjectModel;
use consistory_testkit::{Random, rounds};
use consistory_verdict::{Family, Verdict};

/// Builds a random history of clients that read and write two registers; some operations fail.
fn random_history(random: &mut Random, distinct: bool) -> History {
    let mut b = HistoryBuilder::new();
    let mut fresh = 0;
    for client in 0..2 + random.below(4) {
        let session = b.session(&format!("c{client}"));
        let mut now = random.below(8) as i64;
        for _ in 0..random.below(5) {
            let key = b.key(["x", "y"][random.below(2)]);
            let writes = random.chance(50);
            fresh += 1;
            let most = if distinct { 8 } else { 2 };
            let value = match (writes, distinct) {
                (true, true) => fresh,
                _ => i64::from(writes).max(random.below(most + 1) as i64),
            };
            let value = b.int(value);
            let end = now + random.below(12) as i64;
            let (status, end) = match random.below(8) {
                0 => (Status::Unknown, None),
                _ => (Status::Ok, Some(end)),
            };
            let action = match writes {
                true => Action::Write { key, value },
                false => Action::Read { key, value },
            };
            let time = Some(Interval { start: now, end });
            b.push_with(session, action, Details { status, time, ..Details::default() });
            now = end.unwrap_or(now) + 1 + random.below(5) as i64;
        }
    }
    b.finish().unwrap()
}

#[test]
fn the_engines_of_registers_and_of_calls_agree() {
    let mut random = Random(3);
    let (mut tally, mut routed) = ([0, 0], 0);
    for round in 0..rounds(3_000, 100_000) {
        let history = random_history(&mut random, round % 3 > 0);
        if history.is_empty() {
            continue;
        }
        let show = || consistory_testkit::text(&history);
        let kv = || NamedObject::load("kv").unwrap();
        let (calls, named) = kv().as_calls(&history).unwrap();
        let calls = calls.unwrap();
        let task = Task::new(Calls::new(&calls).unwrap(), Arc::clone(named.object())).unwrap();
        let model = ObjectModel::named("linearizability").unwrap();
        let expected = judge_objects(&task, &[model], &Options::default()).remove(0).judgement;
        let court = Court::new().models(["linearizability"]).unwrap();
        let report = court.judge(&history).unwrap();
        assert_eq!(report[0].outcome(), expected.verdict(), "{}", show());
        assert_eq!(report[0].model().family(), Family::Registers, "{}", show());
        tally[usize::from(expected.verdict() == Verdict::Violation)] += 1;
        // The same history as calls, of a store that is empty at first.
        let (_, named) = kv().as_calls(&calls).unwrap();
        let task = Task::new(Calls::new(&calls).unwrap(), Arc::clone(named.object())).unwrap();
        let model = ObjectModel::named("linearizability").unwrap();
        let expected = judge_objects(&task, &[model], &Options::default()).remove(0).judgement;
        let court = Court::object("kv").unwrap().models(["linearizability"]).unwrap();
        let as_calls = court.judge(&calls).unwrap();
        assert_eq!(as_calls[0].outcome(), expected.verdict(), "as calls\n{}", show());
        routed += usize::from(as_calls[0].model().family() == Family::Registers);
    }
    assert!(tally[0] > 300 && tally[1] > 300 && routed > 300, "{tally:?} {routed}");
}

#[test]
fn a_stale_read_is_explained_drawn_and_shrunk() {
    let history = consistory::parse(
        "t0: w(x,1) @1..2 w(x,2) @5..6 w(y,7) @7..8\nt1: r(x,2) @7..8\nt2: r(x,1) @9..12 r(y,7) @13..14",
    )
    .unwrap();
    let court = Court::new().models(["linearizability"]).unwrap();
    let report = court.judge(&history).unwrap();
    let verdict = &report[0];
    assert!(verdict.is_violation());
    let text = verdict.explain();
    assert!(text.contains("returned at 6, before"), "{text}");
    assert!(text.contains("(rt)"), "{text}");
    assert!(verdict.draw().contains("<svg"));
    let shrunk = verdict.shrink().unwrap();
    assert!(shrunk.is_minimal());
    assert_eq!(shrunk.history().len(), 3, "{}", shrunk.explain());
}

#[test]
fn it_stands_beside_other_models_and_needs_times() {
    let timed = consistory::parse("t0: w(x,1) @1..2\nt1: r(x,0) @3..4").unwrap();
    let court = Court::new().models(["sc", "linearizability"]).unwrap();
    let report = court.judge(&timed).unwrap();
    let outcomes: Vec<bool> = report.iter().map(|verdict| verdict.is_consistent()).collect();
    assert_eq!(outcomes, [true, false]);
    let turned = Court::new().models(["linearizability", "sc"]).unwrap().judge(&timed).unwrap();
    assert!(turned[0].is_violation() && turned[1].is_consistent());

    let untimed = consistory::parse("t0: w(x,1)\nt1: r(x,0)").unwrap();
    let error = court.judge(&untimed).unwrap_err().to_string();
    assert!(error.contains("not recorded when"), "{error}");
    // Alone it is judged as calls, in the order of the sessions.
    let alone = Court::new().models(["linearizability"]).unwrap();
    assert!(alone.judge(&untimed).unwrap()[0].is_consistent());
}

#[test]
fn other_calls_and_overlapping_sessions_are_judged_as_calls() {
    let court = Court::object("map").unwrap().models(["linearizability"]).unwrap();
    let family = |text: &str| {
        let history = consistory::parse(text).unwrap();
        let report = court.judge(&history).unwrap();
        assert!(report[0].is_consistent(), "{text}");
        report[0].model().family()
    };
    assert_eq!(family("t0: put(1,5) @1..2\nt1: get(1) => 5 @1..4"), Family::Registers);
    assert_eq!(family("t0: put(1,5) => null @1..2\nt1: get(1) => 5 @1..4"), Family::Objects);
    assert_eq!(family("t0: put(1,5) @1..2\nt1: remove(1) => 5 @1..4"), Family::Objects);
    assert_eq!(family("t0: put(1,5) @1..5 get(1) => null @2..3"), Family::Objects);
    assert_eq!(family("t0: put(1,5) @1..2 get(1) => 5 @2..3"), Family::Objects);
}
