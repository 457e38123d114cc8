//! Limits hold in every phase: when start states are built, representatives are computed, or rules
//! run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use consistory_protocol::{Explorer, Model, Options, Outcome, System, Unfinished};
use consistory_verdict::{Budget, Stopped};

const PREFETCH: &str = include_str!("../../../corpus/protocols/serial-prefetch.m");

fn stopped(system: &System, budget: Budget, symmetry: bool) -> Stopped {
    let options = Options { symmetry, jobs: 2, ..Options::default() };
    let explored = Explorer::new(system).options(options).budget(budget).run().unwrap();
    match explored.outcome {
        Outcome::Undecided { reason: Unfinished::Budget(stopped) } => stopped,
        other => panic!("{other:?}"),
    }
}

/// The representative of the start state alone takes minutes, because all 65,536 blocks are equal.
#[test]
fn many_alike_values_end_when_the_budget_ends() {
    let text = PREFETCH.replace("BLOCKS: 2", "BLOCKS: 65536");
    let system = Model::parse("many.m", &text).unwrap().plain();
    let time = Budget::unlimited().with_time(Duration::from_millis(20));
    for symmetry in [true, false] {
        let stopped = stopped(&system, time.clone(), symmetry);
        assert!(matches!(stopped, Stopped::Time { .. }), "{stopped}");
    }
    let memory = Budget::unlimited().with_memory(1 << 20);
    assert!(matches!(stopped(&system, memory, true), Stopped::Memory { .. }));
    let interrupted = Budget::unlimited().with_interrupt(Arc::new(AtomicBool::new(true)));
    assert_eq!(stopped(&system, interrupted, true), Stopped::Interrupted);
}

/// One rule runs ten million rounds, and so does a start state.
#[test]
fn long_loops_end_when_the_budget_ends() {
    let long = "for i := 0 to 2000 do for j := 0 to 4000 do x := (i + j) % 3; end; end;";
    for text in [
        format!("var x: 0..2; startstate x := 0; end; rule true ==> {long} end;"),
        format!(
            "var x: 0..2; ruleset k: 0..99 do startstate {long} end; end; rule x < 2 ==> x := 2; end;"
        ),
        format!(
            "var x: 0..2; function f(): boolean; begin {} return true; end;\n\
             startstate x := 0; end; rule x < 2 ==> x := 2; end; invariant f();",
            "for i := 0 to 2000 do for j := 0 to 4000 do assert i + j < 9000; end; end;"
        ),
    ] {
        let system = Model::parse("long.m", &text).unwrap().plain();
        let stopped =
            stopped(&system, Budget::unlimited().with_time(Duration::from_millis(5)), true);
        assert!(matches!(stopped, Stopped::Time { .. }), "{stopped}");
    }
}
