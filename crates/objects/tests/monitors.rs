//! The polynomial deciders agree with the definition, on all small histories and many random ones;
//! their orders replay, and their cores are violations by themselves.

use std::sync::Arc;

use consistory_certify::{ObjectRejection, certify_object};
use consistory_history::{Action, Call, Details, History, HistoryBuilder, Interval, Value};
use consistory_objects::{CallIndex, Calls, Outcome, Unsuitable, monitor};
use consistory_spec::{Family, Object, ObjectModel, State, find};
use consistory_testkit::{Random, rounds};
use consistory_verdict::{Budget, Core, Linearization, ObjectCertificate};

/// A call that is not yet part of a history.
#[derive(Clone, Debug)]
struct Sketch {
    method: &'static str,
    arg: Option<i64>,
    returns: Option<Value>,
    start: i64,
    end: Option<i64>,
}

fn history(sketches: &[Sketch]) -> History {
    let mut b = HistoryBuilder::new();
    for (i, sketch) in sketches.iter().enumerate() {
        let session = b.session(&i.to_string());
        let args = sketch.arg.map(|arg| b.int(arg)).into_iter().collect();
        let returns = sketch.returns.clone().filter(|_| sketch.end.is_some());
        let returns = returns.map(|value| b.value(value));
        let call = b.call(Call { method: sketch.method.into(), args, returns });
        let time = Some(Interval { start: sketch.start, end: sketch.end });
        b.push_with(session, Action::Call(call), Details { time, ..Details::default() });
    }
    b.finish().unwrap()
}

/// Performs a call on a state, and checks whether it returns the recorded value.
fn perform(calls: &Calls<'_>, object: &dyn Object, state: &mut State, place: CallIndex) -> bool {
    let args: Vec<Value> = calls.args(place).iter().map(|&id| calls.value(id).clone()).collect();
    let method = object.resolve(calls.method(place), args.len()).unwrap().unwrap();
    let returned = object.invoke(state, &method.name, &args);
    let recorded = calls.returns(place).map(|id| calls.value(id).clone());
    returned.is_some() && (recorded.is_none() || recorded == returned)
}

/// Checks linearizability of some calls by trying every order.
fn by_definition(calls: &Calls<'_>, object: &dyn Object, some: &[CallIndex]) -> bool {
    fn search(
        calls: &Calls<'_>,
        object: &dyn Object,
        some: &[CallIndex],
        done: u32,
        state: &State,
        seen: &mut Vec<(u32, State)>,
    ) -> bool {
        let is_left = |i: usize| done & (1 << i) == 0;
        let is_over = |i: usize| !is_left(i) || calls.get(some[i]).is_pending;
        if (0..some.len()).all(is_over) {
            return true;
        }
        if seen.iter().any(|(d, s)| *d == done && s == state) {
            return false;
        }
        seen.push((done, state.clone()));
        (0..some.len()).filter(|&i| is_left(i)).any(|i| {
            let is_first =
                (0..some.len()).all(|j| !is_left(j) || !calls.happens_before(some[j], some[i]));
            let mut next = state.clone();
            is_first
                && perform(calls, object, &mut next, some[i])
                && search(calls, object, some, done | 1 << i, &next, seen)
        })
    }
    search(calls, object, some, 0, &object.initial(), &mut Vec::new())
}

/// Checks whether an order of calls is a linearization.
fn replays(calls: &Calls<'_>, object: &dyn Object, order: &[CallIndex]) -> Result<(), String> {
    let mut state = object.initial();
    let mut at = vec![usize::MAX; calls.len()];
    for (i, &place) in order.iter().enumerate() {
        if at[place.index()] != usize::MAX {
            return Err(format!("{place:?} twice"));
        }
        at[place.index()] = i;
        if !perform(calls, object, &mut state, place) {
            return Err(format!("{place:?} does not return what it did"));
        }
    }
    for place in calls.places() {
        if !calls.get(place).is_pending && at[place.index()] == usize::MAX {
            return Err(format!("{place:?} is missing"));
        }
    }
    // Every call must start before all later calls end.
    let mut first_end = i64::MAX;
    for &place in order.iter().rev() {
        if calls.get(place).start > first_end {
            return Err(format!("{place:?} starts after the end of what follows it"));
        }
        if !calls.get(place).is_pending {
            first_end = first_end.min(calls.get(place).end);
        }
    }
    Ok(())
}

/// Passes a verdict to the independent checker.
fn certify(
    history: &History,
    object: &dyn Object,
    certificate: &ObjectCertificate,
) -> Result<(), ObjectRejection> {
    let model = ObjectModel::named("linearizability").unwrap();
    certify_object(history, object, &model, certificate, &Budget::default())
}

/// Counts of the results of a comparison.
#[derive(Default, Debug, PartialEq, Eq)]
struct Tally {
    consistent: usize,
    violations: usize,
    skipped: usize,
}

/// A family with its object and the labels that its calls may have.
struct Subject {
    family: Family,
    object: Arc<dyn Object>,
    inserts: bool,
    insert: &'static str,
    remove: &'static str,
}

fn compare(subject: &Subject, sketches: &[Sketch], tally: &mut Tally) {
    let history = history(sketches);
    let calls = Calls::new(&history).unwrap();
    let all: Vec<CallIndex> = calls.places().collect();
    let show = || {
        let line = |op| format!("{} @{:?}\n", history.show(op), history.time(op).unwrap());
        history.ops().map(line).collect::<String>()
    };
    let object = &*subject.object;
    match monitor(&calls, object) {
        Outcome::Linearizable(order) => {
            replays(&calls, object, &order)
                .unwrap_or_else(|e| panic!("{:?}: {e}, {order:?}\n{}", subject.family, show()));
            // The checker replays the order as well; this is tested for a few histories.
            if tally.consistent.is_multiple_of(16) {
                let order = order.iter().map(|&place| calls.get(place).id).collect();
                let certificate = Linearization { order, vis: None };
                let certificate = ObjectCertificate::Linearization(certificate);
                assert_eq!(certify(&history, object, &certificate), Ok(()), "{}", show());
            }
            tally.consistent += 1;
        }
        Outcome::Violation(violation) => {
            assert!(
                !by_definition(&calls, object, &all),
                "{:?} is linearizable, not {violation:?}\n{}",
                subject.family,
                show()
            );
            assert!(
                !by_definition(&calls, object, &violation.core),
                "{:?}: the core {violation:?} is linearizable\n{}",
                subject.family,
                show()
            );
            if tally.violations.is_multiple_of(4) {
                let operations = violation.core.iter().map(|&p| calls.get(p).id).collect();
                let pattern = violation.pattern.to_string();
                let certificate = ObjectCertificate::Core(Core {
                    pattern: pattern.into(),
                    operations,
                    prefix: None,
                });
                assert_eq!(certify(&history, object, &certificate), Ok(()), "{}", show());
            }
            tally.violations += 1;
        }
        Outcome::NotApplicable(reason) => {
            let is_expected = matches!(
                reason,
                Unsuitable::PendingRemovals | Unsuitable::NotDifferentiated { .. }
            );
            assert!(is_expected, "{:?}: {reason}\n{}", subject.family, show());
            tally.skipped += 1;
        }
    }
}

fn subjects() -> Vec<Subject> {
    let subject = |family, name: &str, inserts, insert, remove| Subject {
        family,
        object: find(name).unwrap(),
        inserts,
        insert,
        remove,
    };
    vec![
        subject(Family::Register(Value::Null), "register", false, "write", "read"),
        subject(Family::Set, "set", false, "add", "remove"),
        subject(Family::Queue, "queue", true, "enqueue", "dequeue"),
        subject(Family::Stack, "stack", true, "push", "pop"),
        subject(Family::LeastFirst, "priority-queue", true, "insert", "poll"),
        subject(Family::GreatestFirst, "priority-queue(max)", true, "insert", "poll"),
    ]
}

/// Returns every way in which `count` calls may overlap, as the times of their starts and ends.
fn patterns(count: usize) -> Vec<Vec<(i64, Option<i64>)>> {
    fn go(
        count: usize,
        clock: i64,
        calls: &mut Vec<(i64, Option<i64>)>,
        open: &mut Vec<usize>,
        found: &mut Vec<Vec<(i64, Option<i64>)>>,
    ) {
        if calls.len() == count {
            // Every call that is still open may end or not; the order of these ends affects
            // nothing.
            for ended in 0..1 << open.len() {
                let mut done = calls.clone();
                for (i, &call) in open.iter().enumerate() {
                    if ended & (1 << i) != 0 {
                        done[call].1 = Some(clock + i as i64);
                    }
                }
                found.push(done);
            }
            return;
        }
        calls.push((clock, None));
        open.push(calls.len() - 1);
        go(count, clock + 1, calls, open, found);
        calls.pop();
        open.pop();
        for i in 0..open.len() {
            let call = open.remove(i);
            calls[call].1 = Some(clock);
            go(count, clock + 1, calls, open, found);
            calls[call].1 = None;
            open.insert(i, call);
        }
    }
    let mut found = Vec::new();
    go(count, 0, &mut Vec::new(), &mut Vec::new(), &mut found);
    found
}

/// Returns every label that a call may have, given the values inserted before.
fn labels(
    subject: &Subject,
    inserted: i64,
    values: i64,
    is_pending: bool,
) -> Vec<(&'static str, Option<i64>, Option<Value>)> {
    let mut labels = Vec::new();
    match subject.family {
        Family::Set => {
            // One element suffices; each element is an independent object.
            for method in ["add", "remove", "contains"] {
                for truth in [true, false] {
                    if !(is_pending && truth) {
                        labels.push((method, Some(1), Some(Value::Bool(truth))));
                    }
                }
            }
        }
        _ => {
            if inserted < values {
                labels.push((subject.insert, Some(inserted + 1), None));
            }
            if is_pending {
                labels.push((subject.remove, None, None));
            } else {
                labels.push((subject.remove, None, Some(Value::Null)));
                for value in 1..=values {
                    labels.push((subject.remove, None, Some(Value::Int(value))));
                }
            }
        }
    }
    labels
}

fn all_labellings(
    subject: &Subject,
    pattern: &[(i64, Option<i64>)],
    sketches: &mut Vec<Sketch>,
    inserted: i64,
    tally: &mut Tally,
) {
    let Some(&(start, end)) = pattern.get(sketches.len()) else {
        // For priority queues the order of the values matters too.
        compare(subject, sketches, tally);
        if matches!(subject.family, Family::LeastFirst) && inserted > 1 {
            let turned: Vec<Sketch> = sketches.iter().cloned().map(|s| turn(s, inserted)).collect();
            compare(subject, &turned, tally);
        }
        return;
    };
    let values = pattern.len() as i64 / 2 + 1;
    for (method, arg, returns) in labels(subject, inserted, values, end.is_none()) {
        let inserts = subject.inserts || matches!(subject.family, Family::Register(_));
        let next = inserted + i64::from(inserts && arg.is_some());
        sketches.push(Sketch { method, arg, returns, start, end });
        all_labellings(subject, pattern, sketches, next, tally);
        sketches.pop();
    }
}

/// Reverses the order of the values.
fn turn(mut sketch: Sketch, values: i64) -> Sketch {
    let turned = |value: i64| if value <= values { values + 1 - value } else { value };
    sketch.arg = sketch.arg.map(turned);
    if let Some(Value::Int(value)) = sketch.returns {
        sketch.returns = Some(Value::Int(turned(value)));
    }
    sketch
}

#[test]
fn deciders_agree_with_the_definition_on_all_small_histories() {
    // One more call would take minutes.
    let most: usize = std::env::var("MONITOR_CALLS").map_or(4, |n| n.parse().unwrap());
    for subject in subjects() {
        let mut tally = Tally::default();
        for count in 1..=most {
            for pattern in patterns(count) {
                all_labellings(&subject, &pattern, &mut Vec::new(), 0, &mut tally);
            }
        }
        println!("{:?}: {tally:?}", subject.family);
        assert!(tally.consistent > 150 && tally.violations > 150, "{tally:?}");
    }
}

/// Builds a random history of calls: a run of the object, then a few changes.
fn random(subject: &Subject, random: &mut Random, count: usize) -> Vec<Sketch> {
    let processes = 2 + random.below(3);
    let object = &*subject.object;
    let mut state = object.initial();
    let mut sketches: Vec<Sketch> = Vec::new();
    let mut running: Vec<Option<usize>> = vec![None; processes];
    let mut values: Vec<i64> = (1..=count as i64).collect();
    for i in (1..values.len()).rev() {
        values.swap(i, random.below(i + 1));
    }
    let mut done = vec![false; count];
    let mut clock = 0;
    let inserts = 30 + random.below(40);
    while sketches.len() < count || running.iter().any(Option::is_some) {
        clock += 1 + random.below(2) as i64;
        let p = random.below(processes);
        match running[p] {
            None if sketches.len() < count => {
                let is_insert = random.below(100) < inserts;
                let (method, arg) = match (&subject.family, random.below(3)) {
                    (Family::Set, 0) => ("contains", Some(1 + random.below(2) as i64)),
                    (Family::Set, _) if is_insert => ("add", Some(1 + random.below(2) as i64)),
                    (Family::Set, _) => ("remove", Some(1 + random.below(2) as i64)),
                    _ if is_insert => (subject.insert, values.pop()),
                    _ => (subject.remove, None),
                };
                running[p] = Some(sketches.len());
                sketches.push(Sketch { method, arg, returns: None, start: clock, end: None });
            }
            None => {}
            Some(i) if !done[i] => {
                let args: Vec<Value> = sketches[i].arg.map(Value::Int).into_iter().collect();
                sketches[i].returns = object.invoke(&mut state, sketches[i].method, &args);
                done[i] = true;
            }
            Some(i) => {
                running[p] = None;
                // Some calls never return.
                if random.below(8) > 0 {
                    sketches[i].end = Some(clock);
                }
            }
        }
    }
    // Some calls return the value of another call, or nothing.
    for _ in 0..random.below(3) {
        let (i, j) = (random.below(count), random.below(count));
        if sketches[i].method == sketches[j].method {
            let returns = sketches[i].returns.clone();
            sketches[i].returns = std::mem::replace(&mut sketches[j].returns, returns);
        }
    }
    if random.below(6) == 0 {
        let i = random.below(count);
        if sketches[i].method == subject.remove && subject.inserts {
            sketches[i].returns = Some(Value::Null);
        }
    }
    sketches
}

#[test]
fn deciders_agree_with_the_definition_on_random_histories() {
    for subject in subjects() {
        let mut tally = Tally::default();
        let mut numbers = Random(7);
        for round in 0..rounds(6_000, 40_000) as usize {
            let count = 5 + round % 8;
            let sketches = random(&subject, &mut numbers, count);
            compare(&subject, &sketches, &mut tally);
        }
        println!("{:?}: {tally:?}", subject.family);
        assert!(tally.consistent > 150 && tally.violations > 150, "{tally:?}");
    }
}

#[test]
fn registers_are_decided_where_time_tells_equal_writes_apart() {
    for (name, initial) in [("register", Value::Null), ("register(0)", Value::Int(0))] {
        let register = Subject {
            family: Family::Register(initial),
            object: find(name).unwrap(),
            inserts: false,
            insert: "write",
            remove: "read",
        };
        let mut tally = Tally::default();
        let mut numbers = Random(11);
        for round in 0..rounds(6_000, 40_000) as usize {
            let mut sketches = random(&register, &mut numbers, 5 + round % 8);
            for sketch in &mut sketches {
                sketch.arg = sketch.arg.map(|value| value % 3);
                if let Some(Value::Int(value)) = &mut sketch.returns {
                    *value %= 3;
                }
            }
            compare(&register, &sketches, &mut tally);
        }
        println!("{name}: {tally:?}");
        let Tally { consistent, violations, skipped } = tally;
        assert!(consistent > 150 && violations > 150 && skipped > 150, "{tally:?}");
    }
}

#[test]
fn the_checker_rejects_a_core_that_is_not_closed_or_can_be_linearized() {
    let call = |method, arg: Option<i64>, returns: Option<i64>, start, end| Sketch {
        method,
        arg,
        returns: returns.map(Value::Int),
        start,
        end,
    };
    let queue = find("queue").unwrap();
    let history = history(&[
        call("enqueue", Some(1), None, 0, Some(1)),
        call("enqueue", Some(2), None, 2, Some(3)),
        call("dequeue", None, Some(2), 4, Some(5)),
        call("dequeue", None, Some(1), 6, Some(7)),
        call("enqueue", Some(3), None, 8, Some(9)),
        call("dequeue", None, None, 10, None),
    ]);
    let ops: Vec<_> = history.ops().collect();
    let verdict = |places: &[usize]| {
        let operations = places.iter().map(|&i| ops[i]).collect();
        let core = Core { pattern: "out-of-order".into(), operations, prefix: None };
        certify(&history, &*queue, &ObjectCertificate::Core(core))
    };
    let not_closed = |op: &str| Err(ObjectRejection::NotClosed { op: op.into() });
    assert_eq!(verdict(&[0, 1, 2, 3]), Ok(()));
    assert_eq!(verdict(&[0, 1, 2, 3, 4]), Ok(()), "the pending removal starts too late");
    assert_eq!(verdict(&[1, 2]), Err(ObjectRejection::Explained));
    assert_eq!(verdict(&[0, 1, 2]), not_closed("3:0"), "a value without its removal");
    assert_eq!(verdict(&[2, 3]), not_closed("0:0"), "values without their insertions");
    assert_eq!(
        verdict(&[0, 0]),
        Err(ObjectRejection::Misplaced { part: "operations", op: "0:0".into() })
    );
}

/// Parses calls, one per word, in the form `method(arg) => return @start..end`.
fn sketch(text: &str) -> Sketch {
    let (call, time) = text.split_once('@').unwrap();
    let (start, end) = time.split_once("..").unwrap();
    let (call, returns) = call.split_once("=>").unwrap_or((call, ""));
    let (method, arg) = call.trim_end_matches(')').split_once('(').unwrap();
    let method =
        ["write", "read", "add", "remove", "contains", "enqueue", "dequeue", "push", "pop"]
            .into_iter()
            .chain(["insert", "poll"])
            .find(|known| *known == method)
            .unwrap();
    let returns = match returns {
        "" => None,
        "null" => Some(Value::Null),
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        number => Some(Value::Int(number.parse().unwrap())),
    };
    Sketch {
        method,
        arg: arg.parse().ok(),
        returns,
        start: start.parse().unwrap(),
        end: end.parse().ok(),
    }
}

#[test]
fn patterns_have_names_and_small_cores() {
    for (object, text, pattern, core) in [
        ("register", "write(1)@0..1 read()=>2@2..3", "thin-air", 1),
        ("register", "read()=>1@0..1 write(1)@2..3", "before-its-insertion", 2),
        (
            "register",
            "write(1)@0..1 write(2)@2..3 read()=>1@4..5 read()=>2@6..7",
            "two-values-at-once",
            4,
        ),
        ("register", "write(1)@0..1 write(2)@2..3 read()=>1@4..5", "interrupted", 3),
        ("set", "add(1)=>true@0..1 contains(1)=>false@2..3", "missing-though-there", 2),
        (
            "set",
            "add(1)=>true@0..1 remove(1)=>true@2..3 contains(1)=>true@4..5",
            "found-though-gone",
            3,
        ),
        (
            "queue",
            "enqueue(1)@0..1 enqueue(2)@2..3 enqueue(9)@0..9 dequeue()=>2@4..5 dequeue()=>1@6..7",
            "out-of-order",
            4,
        ),
        ("queue", "enqueue(1)@0..1 dequeue()=>1@2..3 dequeue()=>1@4..5", "removed-twice", 3),
        // Two values remain, and the pending removal may have taken one of them.
        (
            "queue",
            "enqueue(1)@0..1 enqueue(2)@0..1 enqueue(3)@2..3 dequeue()=>3@4..5 dequeue()@4..",
            "out-of-order",
            5,
        ),
        // Two values, one after the other, cover the whole call.
        (
            "queue",
            "enqueue(1)@0..1 dequeue()=>null@2..9 dequeue()=>1@5..6 enqueue(2)@3..4 dequeue()=>2@10..11",
            "empty-though-not",
            5,
        ),
        ("stack", "push(1)@0..1 push(2)@2..3 pop()=>1@4..5 pop()=>2@6..7", "no-bottom", 4),
        (
            "priority-queue",
            "insert(1)@0..1 insert(2)@2..3 poll()=>2@4..5 poll()=>1@6..7 insert(7)@0..9",
            "overtaken",
            4,
        ),
    ] {
        let sketches: Vec<Sketch> = text.split_whitespace().map(sketch).collect();
        let history = history(&sketches);
        let calls = Calls::new(&history).unwrap();
        let Outcome::Violation(found) = monitor(&calls, &*find(object).unwrap()) else {
            panic!("{object}: {text}");
        };
        assert_eq!((found.pattern.name(), found.core.len()), (pattern, core), "{object}: {text}");
        assert!(!found.pattern.about().is_empty());
    }
}

#[test]
fn what_does_not_apply_is_left_to_the_search() {
    for (object, text, expected) in [
        ("queue", "enqueue(1)@0..1 enqueue(1)@2..3", "1 is inserted more than once"),
        ("counter", "add(1)@0..1", "the object has no polynomial decider"),
        (
            "queue",
            "enqueue(1)@0..1 dequeue()@2..3",
            "the return value of a `dequeue` is missing, or no `dequeue` can return it",
        ),
    ] {
        let sketches: Vec<Sketch> = text.split_whitespace().map(sketch).collect();
        let history = history(&sketches);
        let calls = Calls::new(&history).unwrap();
        match monitor(&calls, &*find(object).unwrap()) {
            Outcome::NotApplicable(reason) => assert_eq!(reason.to_string(), expected, "{text}"),
            outcome => panic!("{text}: {outcome:?}"),
        }
    }
}
