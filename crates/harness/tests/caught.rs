//! Deliberately wrong collections are found and shrunk to small programs; correct ones pass.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use consistory_harness::{Clock, Fault, Harness, Program};
use consistory_history::Value;
use consistory_spec::Specification;

/// Time limit that is long enough on busy machines; a test ends with the first failure.
const LONG: Duration = Duration::from_secs(60);

fn shape(text: &str) -> Program {
    text.parse::<Program>().unwrap().shape()
}

/// A counter whose increment is a read and a write.
fn racy_counter() -> Harness<AtomicI64> {
    Harness::new(|| AtomicI64::new(0))
        .object("counter")
        .method("incrementAndGet", |counter, ()| {
            let next = counter.load(Ordering::SeqCst) + 1;
            std::hint::black_box(next);
            counter.store(next, Ordering::SeqCst);
            next
        })
        .method("get", |counter, ()| counter.load(Ordering::SeqCst))
}

/// A map whose update is a removal and an insertion.
fn gaping_map() -> Harness<Mutex<BTreeMap<i64, i64>>> {
    Harness::new(Mutex::default)
        .object("map")
        .method("put", |map: &Mutex<BTreeMap<i64, i64>>, (key, value): (i64, i64)| {
            let old = map.lock().unwrap().remove(&key);
            map.lock().unwrap().insert(key, value);
            old
        })
        .method("get", |map, key: i64| map.lock().unwrap().get(&key).copied())
}

/// A map that is locked as a whole.
fn locked_map() -> Harness<Mutex<BTreeMap<i64, i64>>> {
    Harness::new(Mutex::default)
        .object("map")
        .method("put", |map: &Mutex<BTreeMap<i64, i64>>, (key, value): (i64, i64)| {
            map.lock().unwrap().insert(key, value)
        })
        .method("get", |map, key: i64| map.lock().unwrap().get(&key).copied())
        .method("remove", |map, key: i64| map.lock().unwrap().remove(&key))
        .method("remove", |map, (key, value): (i64, i64)| {
            let mut map = map.lock().unwrap();
            map.get(&key) == Some(&value) && map.remove(&key).is_some()
        })
        .method("len", |map, ()| map.lock().unwrap().len())
        .method("iter", |map, ()| map.lock().unwrap().clone().into_iter().collect::<Vec<_>>())
}

#[test]
fn a_counter_that_reads_then_writes_is_caught() {
    let report = racy_counter().run(LONG);
    let failure = &report.failures[0];
    assert_eq!(
        failure.program.shape(),
        shape("t0: incrementAndGet()\nt1: incrementAndGet()"),
        "{report}"
    );
    let ones = failure.outcome.returns().iter().flatten().filter(|value| **value == Value::Int(1));
    assert_eq!(ones.count(), 2, "{report}");
    assert!(failure.svg().unwrap().starts_with("<svg"));
    let shown = report.to_string();
    assert!(shown.contains("├ incrementAndGet() => 1"), "{shown}");
    assert!(shown.contains("harness().replay(") && !shown.contains('\u{1b}'), "{shown}");
    let test = failure.reproduction();
    let program = "        \"t0: incrementAndGet()\\n\\\n        t1: incrementAndGet()\",\n";
    assert!(test.starts_with("#[test]\n") && test.contains(program), "{test}");
    // The program in the report fails again.
    let again = racy_counter().replay(&failure.program.to_string(), 100_000_000);
    assert_eq!(again.failures.len(), 1, "{again}");
}

#[test]
fn an_update_that_removes_first_is_caught() {
    let report = gaping_map().run(LONG);
    let found = report.failures[0].program.shape();
    let smallest = [
        // A reader sees the gap.
        shape("t0: put(0,1) put(0,2)\nt1: get(0)"),
        // Another writer sees it.
        shape("t0: put(0,1) put(0,2)\nt1: put(0,3)"),
        // Two first writers both find no value.
        shape("t0: put(0,1)\nt1: put(0,2)"),
    ];
    assert!(smallest.contains(&found), "{report}");
}

#[test]
fn a_locked_map_is_never_wrong() {
    let time = Duration::from_secs(2);
    locked_map().threads(3).calls(3).run(time).assert_linearizable();
    let clocked = locked_map().clock(Clock::Monotonic).run(time);
    clocked.assert_linearizable();
    let levels = locked_map().infer_levels().run(time).levels.unwrap();
    assert!(levels.iter().all(|(_, level)| level == consistory_spec::Level::Complete));
}

#[test]
fn a_clock_catches_too() {
    let report = racy_counter().clock(Clock::Monotonic).run(LONG);
    assert_eq!(report.failures.len(), 1, "{report}");
}

#[test]
fn a_promise_that_is_weaker_is_kept() {
    // The length is updated late.
    type Stale = (Mutex<VecDeque<i64>>, AtomicI64);
    let stale = || {
        Harness::new(Stale::default)
            .object("queue")
            .method("push", |(queue, length): &Stale, value: i64| {
                queue.lock().unwrap().push_back(value);
                length.fetch_add(1, Ordering::SeqCst);
            })
            .method("peek", |(queue, _): &Stale, ()| queue.lock().unwrap().front().copied())
            .method("len", |(_, length): &Stale, ()| length.load(Ordering::SeqCst))
    };
    let report = stale().infer_levels().run(LONG);
    assert_eq!(report.failures.len(), 1, "{report}");
    let length = report.failures[0].program.threads.iter().flatten();
    assert!(length.clone().any(|call| &*call.method == "len"), "{report}");
    stale().levels("len=weak").run(Duration::from_secs(1)).assert_consistent();
}

#[test]
fn a_specification_of_ones_own_is_tested_against() {
    struct Flag;
    impl Specification for Flag {
        type State = bool;

        fn initial(&self) -> bool {
            false
        }

        fn invoke(&self, raised: &mut bool, method: &str, _args: &[Value]) -> Option<Value> {
            (method == "raise").then(|| Value::Bool(!std::mem::replace(raised, true)))
        }
    }
    let right = Harness::new(|| AtomicI64::new(0))
        .specification(Flag)
        .method("raise", |flag, ()| flag.swap(1, Ordering::SeqCst) == 0);
    right.run(Duration::from_millis(500)).assert_linearizable();
    let wrong =
        Harness::new(|| AtomicI64::new(0)).specification(Flag).method("raise", |flag, ()| {
            let first = flag.load(Ordering::SeqCst) == 0;
            flag.store(1, Ordering::SeqCst);
            first
        });
    let report = wrong.run(LONG);
    assert_eq!(report.failures[0].program.shape(), shape("t0: raise()\nt1: raise()"), "{report}");
}

#[test]
fn texts_are_keys_too() {
    let report = Harness::new(|| Mutex::new(BTreeMap::new()))
        .object("map")
        .method("put", |map, (key, value): (String, bool)| map.lock().unwrap().insert(key, value))
        .method("get", |map, key: String| map.lock().unwrap().get(&key).copied())
        .argument("get", 0, ["a", "z"])
        .run(Duration::from_millis(300));
    report.assert_linearizable();
}

#[test]
fn a_panic_is_a_failure() {
    let report = Harness::new(|| AtomicI64::new(0))
        .object("counter")
        .method("increment", |counter, ()| {
            assert!(counter.fetch_add(1, Ordering::SeqCst) < 2, "too many");
        })
        .calls(2)
        .run(LONG);
    let failure = &report.failures[0];
    assert!(matches!(&failure.fault, Fault::Panic { message } if message == "too many"));
    assert_eq!(failure.program.len(), 3, "{report}");
}

#[test]
fn what_cannot_be_tested_is_said() {
    let counter = || Harness::new(|| AtomicI64::new(0));
    let get = |counter: &AtomicI64, ()| counter.load(Ordering::SeqCst);
    let error = |harness: Harness<AtomicI64>| harness.try_run(LONG).unwrap_err().to_string();
    let cases = [
        (counter().method("get", get), "nothing says what the object should do"),
        (counter().object("bag").method("get", get), "there is no object `bag`"),
        (counter().object("counter"), "there is no method to call"),
        (counter().object("counter").method("got", get), "there is no method `got`"),
        (counter().object("counter").method("get", get).weight("set", 2), "`set`: no such method"),
        (counter().object("counter").method("get", get).threads(0), "the number of threads is 0"),
        (counter().object("counter").method("get", get).model("vis >= x"), "expected a relation"),
    ];
    for (harness, expected) in cases {
        let error = error(harness);
        assert!(error.contains(expected), "{error}");
    }
    let broken = Harness::new(|| -> AtomicI64 { panic!("no room") }).object("counter");
    assert_eq!(
        error(broken.method("get", get)),
        "the object could not be made or dropped: no room"
    );
    static STICKS: AtomicBool = AtomicBool::new(true);
    struct Sticky;
    impl Drop for Sticky {
        fn drop(&mut self) {
            assert!(!STICKS.swap(false, Ordering::SeqCst), "it sticks");
        }
    }
    let sticky = Harness::new(|| Sticky).object("counter").method("get", |_, ()| 0);
    let error = sticky.try_run(LONG).unwrap_err().to_string();
    assert_eq!(error, "the object could not be made or dropped: it sticks");
    let replay = |program: &str| {
        let harness = counter().object("counter").method("get", get);
        harness.try_replay(program, 10).unwrap_err().to_string()
    };
    assert!(replay("t0: get(1)").contains("`get` takes 0 arguments, not 1"));
    assert!(replay("t0: increment()").contains("no method was given for increment()"));
}
