//! The recorded order of calls is contained in their real order.

use std::sync::atomic::{AtomicI64, Ordering};

use consistory_harness::{Clock, Harness, Runner};
use consistory_history::{History, Value};
use consistory_objects::{CallIndex, Calls};
use consistory_spec::Specification;

/// Tickets from one shared counter; every order of calls is correct by this specification.
struct Tickets;

impl Specification for Tickets {
    type State = ();

    fn initial(&self) {}

    fn invoke(&self, _state: &mut (), _method: &str, _args: &[Value]) -> Option<Value> {
        None
    }
}

/// Returns the two tickets of a call: drawn at its start and just before its return.
fn tickets(history: &History, calls: &Calls<'_>, place: CallIndex) -> (i64, i64) {
    match calls.returns(place).map(|id| history.value(id)) {
        Some(Value::List(pair)) => match pair[..] {
            [Value::Int(start), Value::Int(end)] => (start, end),
            _ => panic!("a call returns two tickets"),
        },
        _ => panic!("a call returns two tickets"),
    }
}

/// Runs calls that draw a ticket at their start and at their end. If a call is recorded as before
/// another, its last ticket must be less than the first ticket of the other.
fn check(clock: Clock, threads: usize) {
    let harness = Harness::new(|| AtomicI64::new(0))
        .specification(Tickets)
        .method("draw", |roll, ()| {
            let start = roll.fetch_add(1, Ordering::SeqCst);
            (start, roll.fetch_add(1, Ordering::SeqCst))
        })
        .threads(threads)
        .calls(3)
        .clock(clock);
    let (campaign, mut runner) = harness.build().unwrap();
    let program = campaign.programs.get(0);
    let mut ordered = 0;
    for (outcome, _) in runner.run(&program, 20_000).unwrap() {
        let history = outcome.history(&program);
        let calls = Calls::new(&history).unwrap();
        assert_eq!(calls.len(), 3 * threads);
        for a in calls.places() {
            for b in calls.places() {
                let (first, second) = (tickets(&history, &calls, a), tickets(&history, &calls, b));
                let is_same = calls.get(a).session == calls.get(b).session;
                if calls.happens_before(a, b) {
                    assert!(first.1 < second.0, "{clock:?}: {first:?} is not before {second:?}");
                    ordered += usize::from(!is_same);
                } else if is_same {
                    assert!(a == b || second.1 < first.0, "a thread's calls keep their order");
                }
            }
        }
    }
    // An empty order would be sound as well.
    assert!(ordered > 0, "{clock:?}: nothing was ordered");
}

#[test]
fn counters_claim_what_was_so() {
    check(Clock::Counters, 2);
    check(Clock::Counters, 3);
}

#[test]
fn a_clock_claims_what_was_so() {
    check(Clock::Monotonic, 2);
}
