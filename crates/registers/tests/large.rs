//! Tests of code paths that only large histories reach: longer turns, wide counts, and orders in
//! which writes move far. The independent checker accepts every verdict.

use consistory_certify::certify;
use consistory_formats::{Format, parse_str};
use consistory_generate::{Memory, PlantOptions, Workload, generate, plant};
use consistory_history::History;
use consistory_registers::{CausalModel, Options, decide};
use consistory_verdict::Verdict;

/// Decides CC, CCv and CM, passes the verdicts to the checker, and returns which models hold.
fn decided(history: &History) -> [bool; 3] {
    let models = [(CausalModel::Cc, "cc"), (CausalModel::Ccv, "ccv"), (CausalModel::Cm, "cm")];
    let together = decide(history, &models.map(|(model, _)| model), &Options::default());
    let mut timed = together.into_iter();
    models.map(|(model, id)| {
        let judgement = timed.next().unwrap().judgement;
        let alone = &decide(history, &[model], &Options::default())[0].judgement;
        assert_eq!(alone.verdict(), judgement.verdict(), "{id}");
        let threads = Options { jobs: 3, ..Options::default() };
        assert_eq!(alone, &decide(history, &[model], &threads)[0].judgement, "{id} on threads");
        let certificate = judgement.certificate().expect("it is decided");
        certify(history, id, judgement.verdict(), certificate).unwrap();
        judgement.verdict() == Verdict::Consistent
    })
}

#[test]
fn what_a_memory_promises_holds_and_what_is_planted_is_found() {
    let mut found = [[0; 2]; 2];
    // With few variables writes move far in the order, with many they do not; with few sessions a
    // replica that converges often shows writes in another order than a causal memory may.
    let shapes = [(3, 20, 0.0), (20, 2, 0.0), (20, 20, 0.0), (20, 1_000, 0.0), (20, 1_000, 1.0)];
    for (sessions, variables, skew) in shapes {
        for memory in [Memory::Sc, Memory::Ccv, Memory::Cm] {
            let workload = Workload {
                sessions,
                operations: 22_000,
                variables,
                skew,
                rmw_share: if memory == Memory::Sc { 0.1 } else { 0.0 },
                seed: u64::from(variables),
                ..Workload::default()
            };
            let history = generate(&workload, memory);
            let [cc, ccv, cm] = decided(&history);
            assert!(cc, "{memory} has {variables} variables");
            assert!(ccv || memory == Memory::Cm, "{memory} has {variables} variables");
            assert!(cm || memory == Memory::Ccv, "{memory} has {variables} variables");
            found[usize::from(ccv)][usize::from(cm)] += 1;
            let plants = PlantOptions { distance: 2_000, ..PlantOptions::default() };
            decided(&plant(&history, &plants));
        }
    }
    assert!(found[0][1] > 0 && found[1][0] > 0 && found[1][1] > 3, "{found:?}");
}

#[test]
fn sessions_whose_counts_need_more_than_two_bytes() {
    let workload = Workload { sessions: 2, operations: 140_000, ..Workload::default() };
    let history = generate(&workload, Memory::Ccv);
    assert_eq!(decided(&history), [true, true, false]);
}

#[test]
fn the_next_of_many_writes_overwrites() {
    // The reader waits for q while the writer advances; then it knows only two writes of x.
    let mut text: String = "w: ".into();
    text.extend((1..=100).map(|value| format!("w(x,{value}) ")));
    text += "\nt: ";
    text.extend((1..=300).map(|value| format!("w(y,{value}) ")));
    for (last, holds) in [(1, false), (2, true), (3, true)] {
        let text = format!("{text} w(q,1)\nr: r(q,1) r(x,2) r(x,{last})\n");
        let history = parse_str(&text, Format::Hist, "next").unwrap().remove(0);
        assert_eq!(decided(&history), [holds; 3], "{last}");
    }
}

#[test]
fn a_read_far_behind_costs_no_more_than_the_sessions() {
    // One session writes, the other reads values that were overwritten long ago; one read is too
    // old.
    let history = |last: i64| {
        let mut b = consistory_history::HistoryBuilder::new();
        let (writer, reader, x) = (b.session("w"), b.session("r"), b.key("x"));
        for i in 1..=40_000 {
            let value = b.int(i);
            b.push(writer, consistory_history::Action::Write { key: x, value });
        }
        for value in (1..=20_000).chain([last]) {
            let value = b.int(value);
            b.push(reader, consistory_history::Action::Read { key: x, value });
        }
        b.finish().unwrap()
    };
    assert_eq!(decided(&history(20_001)), [true; 3]);
    assert_eq!(decided(&history(19_999)), [false; 3]);
}
