//! Memory limits hold: an allocator counts the memory used by every search, decider and checker.
//!
//! This program contains a single test, so that no other test allocates meanwhile.

mod common;

use std::sync::Arc;

use consistory_certify::{ObjectRejection, certify_object};
use consistory_generate::{ObjectWorkload, SharedObject, generate_calls};
use consistory_history::{Action, Call, Details, History, HistoryBuilder, Interval, Value};
use consistory_objects::{Calls, Engine, Judgement, Options, Task, Tuning, judge_object};
use consistory_spec::{Object, ObjectModel, find};
use consistory_verdict::{Budget, ObjectCertificate, Stopped, Unexplained};

use common::Chance;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Runs a closure, and returns the peak of its memory in bytes.
fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = run();
    (result, ALLOCATOR.peak_usage().saturating_sub(before))
}

/// Builds a hard history: clients call in turns and always overlap, and values repeat.
fn hard(
    object: &dyn Object,
    takes: &[&str],
    gives: &[&str],
    clients: usize,
    calls: usize,
) -> History {
    let mut chance = Chance(3);
    let mut state = object.initial();
    let mut b = HistoryBuilder::new();
    let sessions: Vec<_> = (0..clients).map(|i| b.session(&format!("t{i}"))).collect();
    // The calls of a round overlap and take effect in the order of their clients.
    for round in 0..calls / clients {
        for (i, &session) in sessions.iter().enumerate() {
            let takes_out = chance.one_in(2);
            let method = if takes_out { chance.pick(takes) } else { chance.pick(gives) };
            let arg = (!takes_out).then(|| Value::Int(chance.below(3) as i64));
            let args: Vec<Value> = arg.into_iter().collect();
            let returned = object.invoke(&mut state, method, &args);
            let returns = returned.map(|value| b.value(value));
            let args = args.into_iter().map(|arg| b.value(arg)).collect();
            let call = b.call(Call { method: (*method).into(), args, returns });
            let start = (round * 2 * clients + i) as i64;
            // A pending call would overlap with most of the rounds before and after.
            let end = Some(start + 3 * clients as i64 / 2 + chance.below(clients) as i64);
            let time = Some(Interval { start, end });
            b.push_with(session, Action::Call(call), Details { time, ..Details::default() });
        }
    }
    b.finish().unwrap()
}

/// Replaces the last return by a value that was never inserted, so that every order must be tried.
fn with_wrong_return(history: &History, value: i64) -> History {
    let mut b = HistoryBuilder::new();
    let last = history.ops().filter(|&op| {
        let Action::Call(call) = history.action(op) else { return false };
        history.call(call).args.is_empty()
    });
    let last = last.max_by_key(|&op| history.time(op).and_then(|time| time.end));
    for op in history.ops() {
        let Action::Call(call) = history.action(op) else { panic!("a history of calls") };
        let call = history.call(call);
        let session = b.session(history.session_name(history.session_of(op)));
        let args = call.args.iter().map(|&arg| b.value(history.value(arg).clone())).collect();
        let returns = match Some(op) == last {
            true => Some(b.value(Value::Int(value))),
            false => call.returns.map(|value| b.value(history.value(value).clone())),
        };
        let call = b.call(Call { method: call.method.clone(), args, returns });
        let details = Details { time: history.time(op), ..Details::default() };
        b.push_with(session, Action::Call(call), details);
    }
    b.finish().unwrap()
}

const MIB: usize = 1 << 20;

/// Returns the memory that a run may use in excess of its limit: a fifth, and the size of the
/// history and its calls.
fn allowed(limit: usize, history: &History) -> usize {
    limit + limit / 5 + 2000 * history.len() + MIB / 4
}

/// Judges within a limit; asserts that the limit holds and that the verdict is undecided only for
/// lack of memory.
fn judge_within(
    name: &str,
    history: &History,
    model: &str,
    limit: usize,
    (jobs, alone): (usize, u64),
) -> Option<Judgement> {
    let object = find(name).unwrap();
    let model = ObjectModel::named(model).unwrap();
    let task = Task::new(Calls::new(history).unwrap(), object).unwrap();
    let budget =
        Budget::unlimited().with_memory(limit as u64).with_time(std::time::Duration::from_secs(1));
    let engine = Engine::Fastest;
    let options = Options { budget, jobs, tuning: Tuning { engine, alone } };
    let (ruling, peak) = peak(|| judge_object(&task, &model, &options));
    let most = allowed(limit, history);
    assert!(
        peak <= most,
        "{name}, {}, {jobs} jobs, {alone} alone: {peak} bytes instead of {most}: {:?}",
        model.id,
        ruling.judgement.verdict()
    );
    match ruling.judgement {
        Judgement::Undecided(stopped) => {
            assert!(matches!(stopped, Stopped::Memory { .. } | Stopped::Time { .. }), "{stopped}");
            None
        }
        judgement => Some(judgement),
    }
}

#[test]
fn memory_limits_hold() {
    let objects: [(&str, &[&str], &[&str]); 4] = [
        ("queue", &["dequeue"], &["enqueue"]),
        ("stack", &["pop"], &["push"]),
        ("deque", &["pollFirst", "pollLast"], &["addFirst", "addLast"]),
        ("priority-queue", &["poll"], &["insert"]),
    ];
    let mut undecided = 0;
    for (name, takes, gives) in objects {
        let object = find(name).unwrap();
        let right = hard(&*object, takes, gives, 16, 160);
        let wrong = with_wrong_return(&right, 7);
        for limit in [2 * MIB, 8 * MIB] {
            // Depth-first search alone; depth first and waves; all threads.
            for way in [(1, u64::MAX), (1, 100), (2, 100)] {
                let found = judge_within(name, &wrong, "linearizability", limit, way);
                undecided += usize::from(found.is_none());
            }
            let small = hard(&*object, takes, gives, 16, 48);
            for model in ["return-value", "causal-convergence", "monotonic-reads"] {
                let found =
                    judge_within(name, &with_wrong_return(&small, 7), model, limit, (1, 100));
                undecided += usize::from(found.is_none());
            }
            undecided += usize::from(!checked_within(&object, &wrong, "linearizability", limit));
            let wrong = with_wrong_return(&small, 7);
            undecided += usize::from(!checked_within(&object, &wrong, "return-value", limit));
            undecided += usize::from(!checked_within(&object, &wrong, "causal-convergence", limit));
        }
    }
    assert!(undecided > 20, "{undecided}: the histories are too easy to say anything");
    registers_within_their_limit();
    deciders_within_their_limit();
}

/// Passes the claim that nothing explains a history to the checker; returns whether the check
/// finished.
fn checked_within(object: &Arc<dyn Object>, history: &History, model: &str, limit: usize) -> bool {
    let model = ObjectModel::named(model).unwrap();
    let mut returned: Vec<_> = history.ops().collect();
    returned.sort_by_key(|&op| history.time(op).and_then(|time| time.end));
    let claim = Unexplained { returned, attempts: vec![], before: None };
    let claim = ObjectCertificate::Unexplained(claim);
    let budget =
        Budget::unlimited().with_memory(limit as u64).with_time(std::time::Duration::from_secs(1));
    let (accepted, peak) = peak(|| certify_object(history, &**object, &model, &claim, &budget));
    let most = allowed(limit, history);
    assert!(peak <= most, "checker, {}: {peak} bytes instead of {most}: {accepted:?}", model.id);
    match accepted {
        Err(ObjectRejection::Stopped(_)) => false,
        accepted => {
            assert_eq!(accepted, Ok(()));
            true
        }
    }
}

/// Registers with repeated values are searched in waves.
fn registers_within_their_limit() {
    let workload = ObjectWorkload {
        object: SharedObject::Register,
        sessions: 40,
        operations: 4000,
        read_share: 0.5,
        pending_share: 0.05,
        plants: 1,
        distance: 50,
        seed: 5,
    };
    let history = generate_calls(&workload);
    for limit in [MIB, 8 * MIB] {
        judge_within("register", &history, "linearizability", limit, (1, 100));
        judge_within("cas-register", &history, "linearizability", limit, (2, 100));
    }
}

/// The polynomial deciders use memory in proportion to the history.
fn deciders_within_their_limit() {
    for object in SharedObject::ALL {
        let workload = ObjectWorkload {
            object,
            sessions: 8,
            operations: 20_000,
            read_share: 0.5,
            pending_share: 0.0,
            plants: 0,
            distance: 5,
            seed: 1,
        };
        let history = generate_calls(&workload);
        let found = judge_within(object.name(), &history, "linearizability", MIB, (1, 100));
        assert!(found.is_none() || history.len() < 2000, "{object}: a decider ignored its limit");
    }
}
