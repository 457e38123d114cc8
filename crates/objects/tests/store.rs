//! The polynomial decider of key-value stores agrees with the search, on all small histories and
//! many random ones; its orders replay, and its cores are accepted.

use std::sync::Arc;

use crate::common::{Chance, Recorded, history, shown};
use consistory_certify::certify_object;
use consistory_generate::{Recording, RecordingWorkload, record};
use consistory_history::{Action, Interval, Status, Value};
use consistory_objects::{
    Calls, Options, Outcome, Task, Unsuitable, decide_by_definition, judge_object, monitor,
};
use consistory_spec::{Object, ObjectModel, find};
use consistory_verdict::{Budget, Core, Judgement, Linearization, ObjectCertificate, Verdict};

#[derive(Default, Debug)]
struct Tally {
    consistent: usize,
    violations: usize,
    skipped: usize,
}

/// Compares the decider with the expected result, of the search or of the definition.
fn compare(
    calls: &[Recorded],
    object: &Arc<dyn Object>,
    is_linearizable: impl Fn(&Task<'_>) -> bool,
    tally: &mut Tally,
) {
    let history = history(calls);
    let model = ObjectModel::named("linearizability").unwrap();
    let task = Task::new(Calls::new(&history).unwrap(), object.clone()).unwrap();
    let calls = task.calls();
    let ids = |places: &[consistory_objects::CallIndex]| -> Vec<_> {
        places.iter().map(|&place| calls.get(place).id).collect()
    };
    let (expected, certificate) = match monitor(calls, &**object) {
        Outcome::Linearizable(order) => {
            tally.consistent += 1;
            let linearization = Linearization { order: ids(&order), vis: None };
            (true, ObjectCertificate::Linearization(linearization))
        }
        Outcome::Violation(violation) => {
            tally.violations += 1;
            let (pattern, operations) = (violation.pattern.to_string(), ids(&violation.core));
            (
                false,
                ObjectCertificate::Core(Core { pattern: pattern.into(), operations, prefix: None }),
            )
        }
        Outcome::NotApplicable(reason) => {
            let is_expected = matches!(
                reason,
                Unsuitable::Ambiguous { .. }
                    | Unsuitable::NotDifferentiated { .. }
                    | Unsuitable::CoarseClock
            );
            assert!(is_expected, "{reason}:\n{}", shown(&history));
            tally.skipped += 1;
            return;
        }
    };
    assert_eq!(is_linearizable(&task), expected, "{certificate:?}:\n{}", shown(&history));
    let accepted = certify_object(&history, &**object, &model, &certificate, &Budget::default());
    assert_eq!(accepted, Ok(()), "{certificate:?}:\n{}", shown(&history));
}

fn by_search(task: &Task<'_>) -> bool {
    assert!(task.len() <= 64, "larger histories are not searched");
    let model = ObjectModel::named("linearizability").unwrap();
    match judge_object(task, &model, &Options::default()).judgement.verdict() {
        Verdict::Consistent => true,
        Verdict::Violation => false,
        Verdict::Undecided => panic!("there is no limit"),
    }
}

fn text(text: &str) -> Value {
    Value::Str(text.into())
}

/// Returns every way in which `count` calls may overlap, by the order of their starts.
fn overlaps(count: usize) -> Vec<Vec<(i64, i64)>> {
    fn go(
        open: &mut Vec<usize>,
        calls: &mut Vec<(i64, i64)>,
        count: usize,
        clock: i64,
    ) -> Vec<Vec<(i64, i64)>> {
        if calls.len() == count && open.is_empty() {
            return vec![calls.clone()];
        }
        let mut found = Vec::new();
        if calls.len() < count {
            calls.push((clock, 0));
            open.push(calls.len() - 1);
            found.extend(go(open, calls, count, clock + 1));
            open.pop();
            calls.pop();
        }
        for i in 0..open.len() {
            let call = open.remove(i);
            calls[call].1 = clock;
            found.extend(go(open, calls, count, clock + 1));
            open.insert(i, call);
        }
        found
    }
    go(&mut Vec::new(), &mut Vec::new(), count, 0)
}

/// Returns every sequence of different pieces.
fn sequences(pieces: &[&str]) -> Vec<String> {
    let mut all = vec![String::new()];
    for (i, piece) in pieces.iter().enumerate() {
        let mut rest = pieces.to_vec();
        rest.remove(i);
        all.extend(sequences(&rest).into_iter().map(|behind| format!("{piece}{behind}")));
    }
    all.sort();
    all.dedup();
    all
}

/// All histories of up to three calls, and a part of those of four: with pieces that are not
/// prefixes of each other, pieces that are, and equal pieces.
#[test]
fn all_small_histories() {
    let store = find("kv").unwrap();
    let linearizability = ObjectModel::named("linearizability").unwrap();
    let by_definition = |task: &Task<'_>| decide_by_definition(task, &linearizability).is_some();
    for pieces in
        [["a", "b", "c"], ["a", "aa", "b"], ["a", "a", "b"], ["a", "b", "a"], ["a", "a", "a"]]
    {
        let mut tally = Tally::default();
        let mut turn = 0;
        for count in 1..=4usize {
            for intervals in overlaps(count) {
                // A call is a put, an append or a get.
                for kinds in 0..3usize.pow(count as u32) {
                    let kind = |i: usize| kinds / 3usize.pow(i as u32) % 3;
                    let writes = (0..count).filter(|&i| kind(i) < 2).count();
                    if writes > 3 {
                        continue;
                    }
                    let texts = sequences(&pieces[..writes]);
                    let gets = count - writes;
                    for choice in 0..texts.len().pow(gets as u32) << writes {
                        turn += 1;
                        if count == 4 && turn % 71 != 0 {
                            continue;
                        }
                        let (mut choice, mut pending, mut written) = (choice >> writes, choice, 0);
                        let calls: Vec<Recorded> = (0..count)
                            .map(|i| {
                                let (start, end) = intervals[i];
                                let mut args = vec![Value::Int(0)];
                                let mut returns = None;
                                let mut end = Some(end);
                                if kind(i) < 2 {
                                    args.push(text(pieces[written]));
                                    written += 1;
                                    end = end.filter(|_| pending % 2 == 0);
                                    pending /= 2;
                                } else {
                                    returns = Some(text(&texts[choice % texts.len()]));
                                    choice /= texts.len();
                                }
                                Recorded {
                                    session: i,
                                    method: ["put", "append", "get"][kind(i)].into(),
                                    args,
                                    returns,
                                    time: Some(Interval { start, end }),
                                    status: Status::Ok,
                                }
                            })
                            .collect();
                        compare(&calls, &store, by_definition, &mut tally);
                    }
                }
            }
        }
        assert!(tally.consistent > 500 && tally.violations > 500, "{pieces:?}: {tally:?}");
        assert_eq!(tally.skipped == 0, pieces == ["a", "b", "c"], "{pieces:?}: {tally:?}");
    }
}

/// Builds a random history of some keys: each call takes effect at a time in its interval; a few
/// calls return the value of another call, or a prefix of the right one. Pieces repeat after a
/// given number.
fn random(
    chance: &mut Chance,
    is_list: bool,
    calls: usize,
    keys: usize,
    pieces: usize,
) -> Vec<Recorded> {
    let sessions = 1 + chance.below(6);
    let mut clocks = vec![0i64; sessions];
    let mut recorded: Vec<(i64, Recorded)> = Vec::new();
    let puts = chance.below(4);
    for i in 0..calls {
        let session = chance.below(sessions);
        let start = clocks[session] + 1 + chance.below(6) as i64;
        let end = start + 1 + chance.below(30) as i64;
        clocks[session] = end;
        // All starts and ends have different times.
        let (start, end) = (start * 100 + i as i64, end * 100 + 50 + i as i64);
        let key = Value::Int(chance.below(keys) as i64);
        let piece = match is_list {
            true => Value::Int((i % pieces) as i64),
            false => text(&format!("x{}y", i % pieces)),
        };
        let (method, args) = match chance.below(10) {
            n if n < puts && is_list => ("put", vec![key, Value::List(vec![piece])]),
            n if n < puts => ("put", vec![key, piece]),
            n if n < 6 => ("append", vec![key, piece]),
            _ => ("get", vec![key]),
        };
        let is_pending = chance.one_in(12);
        let time = Some(Interval { start, end: (!is_pending).then_some(end) });
        let point = start + chance.below((end - start) as usize) as i64;
        let call = Recorded {
            session: recorded.len(),
            method: method.into(),
            args,
            returns: None,
            time,
            status: Status::Ok,
        };
        recorded.push((point, call));
    }
    let mut order: Vec<usize> = (0..calls).collect();
    order.sort_by_key(|&i| recorded[i].0);
    let store = find(if is_list { "kv(null)" } else { "kv" }).unwrap();
    let mut state = store.initial();
    for &i in &order {
        let call = &mut recorded[i].1;
        let is_lost = call.time.unwrap().end.is_none() && chance.one_in(2);
        if !is_lost {
            let returned = store.invoke(&mut state, &call.method, &call.args).unwrap();
            call.returns = (call.method == "get").then_some(returned);
        }
    }
    let gets: Vec<usize> = (0..calls).filter(|&i| recorded[i].1.returns.is_some()).collect();
    for _ in 0..chance.below(3).min(gets.len()) {
        let (one, other) = (*chance.pick(&gets), *chance.pick(&gets));
        let mut value = recorded[other].1.returns.clone();
        if chance.one_in(2) {
            value = match value {
                Some(Value::List(mut list)) if list.len() > 1 => {
                    let (i, j) = (chance.below(list.len()), chance.below(list.len()));
                    list.swap(i, j);
                    Some(Value::List(list))
                }
                Some(Value::Str(read)) if !read.is_empty() => {
                    let pieces: Vec<&str> = read.split_inclusive('y').collect();
                    let gone = chance.below(pieces.len());
                    Some(text(&[&pieces[..gone], &pieces[gone + 1..]].concat().concat()))
                }
                value => value,
            };
        }
        recorded[one].1.returns = value;
    }
    recorded.into_iter().map(|(_, call)| call).collect()
}

#[test]
fn random_histories() {
    let rounds = std::env::var("CONSISTORY_ROUNDS").map_or(250, |n| n.parse().unwrap());
    let mut chance = Chance(5);
    for is_list in [false, true] {
        let store = find(if is_list { "kv(null)" } else { "kv" }).unwrap();
        let mut tally = Tally::default();
        for _ in 0..rounds {
            let (calls, keys) = (2 + chance.below(30), 1 + chance.below(3));
            let calls = random(&mut chance, is_list, calls, keys, usize::MAX);
            compare(&calls, &store, by_search, &mut tally);
        }
        assert_eq!(tally.skipped, 0, "{tally:?}");
        let least = rounds / 5;
        assert!(tally.consistent > least && tally.violations > least, "{tally:?}");
    }
}

/// Pieces repeat: the decider's verdicts are correct, and it decides most histories in which equal
/// pieces are far apart.
#[test]
fn random_histories_of_equal_pieces() {
    let rounds = std::env::var("CONSISTORY_ROUNDS").map_or(400, |n| n.parse().unwrap());
    let mut chance = Chance(11);
    for is_list in [false, true] {
        let store = find(if is_list { "kv(null)" } else { "kv" }).unwrap();
        for pieces in [2, 4, 10] {
            let mut tally = Tally::default();
            for _ in 0..rounds {
                let (calls, keys) = (2 + chance.below(18), 1 + chance.below(2));
                let calls = random(&mut chance, is_list, calls, keys, pieces);
                compare(&calls, &store, by_search, &mut tally);
            }
            let least = rounds / 20;
            assert!(tally.violations > least, "{pieces}: {tally:?}");
            assert!(tally.consistent > least, "{pieces}: {tally:?}");
            assert!(pieces < 10 || tally.skipped < rounds / 2, "{pieces}: {tally:?}");
        }
    }
}

/// Values of any kind that are only put and read.
#[test]
fn without_appends_a_key_is_a_register() {
    let store = find("kv(0)").unwrap();
    let mut chance = Chance(6);
    let mut tally = Tally::default();
    for round in 0..600 {
        // Every other history has few values, so that they repeat, and some are prefixes of others.
        let few = [Value::Int(0), Value::Int(1), text("a"), text("ab")];
        let mut calls = random(&mut chance, false, 7, 2, usize::MAX);
        calls.retain(|call| call.method != "append");
        let mut values = vec![Value::Int(0), Value::Int(0)];
        for call in calls.iter_mut().filter(|call| call.method == "put") {
            if round % 2 == 1 {
                call.args[1] = chance.pick(&few).clone();
            } else if chance.one_in(2) {
                call.args[1] = Value::Int(values.len() as i64);
            }
            values.push(call.args[1].clone());
        }
        for call in calls.iter_mut().filter(|call| call.returns.is_some()) {
            call.returns = Some(chance.pick(&values).clone());
        }
        compare(&calls, &store, by_search, &mut tally);
    }
    assert!(tally.consistent > 50 && tally.violations > 50, "{tally:?}");
}

/// Logs of 50 clients on two keys, which no search would finish; in one an earlier text is read
/// again, in another a text of the other key.
#[test]
fn logs_of_many_clients_are_decided() {
    let store = find("kv").unwrap();
    let model = ObjectModel::named("linearizability").unwrap();
    let mut violations = 0;
    for seed in 0..8 {
        let recorded = record(&RecordingWorkload {
            recording: Recording::KeyValue,
            clients: 50,
            calls: 400,
            keys: 2,
            lost: 0.02,
            seed,
        });
        let mut calls: Vec<Recorded> = Vec::new();
        for op in recorded.ops() {
            let Action::Call(id) = recorded.action(op) else { panic!("it is a call") };
            let call = recorded.call(id);
            calls.push(Recorded {
                session: recorded.session_of(op).index(),
                method: call.method.to_string(),
                args: call.args.iter().map(|&arg| recorded.value(arg).clone()).collect(),
                returns: call.returns.map(|value| recorded.value(value).clone()),
                time: recorded.time(op),
                status: recorded.own_status(op),
            });
        }
        let gets: Vec<usize> = (0..calls.len())
            .filter(|&i| calls[i].method == "get" && calls[i].returns.is_some())
            .collect();
        if seed % 4 > 0 {
            let from = gets[gets.len() / 4 + seed as usize];
            calls[gets[gets.len() / 2]].returns = calls[from].returns.clone();
        }
        let history = history(&calls);
        let task = Task::new(Calls::new(&history).unwrap(), store.clone()).unwrap();
        let judgement = judge_object(&task, &model, &Options::default()).judgement;
        let certificate = judgement.certificate().expect("it is decided");
        let accepted = certify_object(&history, &*store, &model, certificate, &Budget::default());
        assert_eq!(accepted, Ok(()), "seed {seed}: {certificate:?}");
        if let Judgement::Violation { certificate: ObjectCertificate::Core(core), .. } = &judgement
        {
            assert!(core.prefix.is_some(), "seed {seed}: {core:?}");
            violations += 1;
        }
        assert!(seed % 4 > 0 || judgement.verdict() == Verdict::Consistent, "seed {seed}");
    }
    assert!(violations >= 4, "{violations}");
}
