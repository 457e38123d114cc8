//! The reduced search agrees with plain exploration, and the machines agree with the literature.

use std::collections::HashSet;

use consistory_verdict::{Budget, Stopped};
use expect_test::{expect, expect_file};

use crate::enumerate::{Bound, Redundant, shapes};
use crate::notation::parse_notation;
use crate::operational::compile::Tables;
use crate::operational::future;
use crate::operational::machine::{Component, Each, Part};
use crate::operational::step::Choice;
use crate::operational::{
    Explorer, Machine, MachineError, WiringError, diagram, outcomes, svg_diagram,
};
use crate::program::{Instruction, LocationId, Observable, Outcome, Outcomes, Program, RegisterId};

/// Finds every outcome by plain exploration: all steps in every state.
fn plain(program: &Program, machine: &Machine) -> Outcomes {
    let mut tables = Tables::new(program, machine).unwrap();
    let mut seen = HashSet::from([tables.initial.clone()]);
    let mut todo = vec![tables.initial.clone()];
    let (mut steps, mut outcome, mut all) = (Vec::new(), Vec::new(), Outcomes::new());
    while let Some(state) = todo.pop() {
        tables.steps(&state, Choice::All, &mut steps);
        if steps.is_empty() {
            assert!(tables.is_final(&state), "the machine is stuck");
            tables.outcome(&state, &mut outcome);
            all.insert(Outcome(outcome.iter().map(|small| tables.values.value(*small)).collect()));
        }
        for step in &steps {
            let mut next = state.clone();
            tables.apply(&mut next, *step);
            if seen.insert(next.clone()) {
                todo.push(next);
            }
        }
    }
    all
}

fn reduced(program: &Program, machine: &Machine) -> Outcomes {
    Explorer::new().outcome_set(program, machine, &Budget::unlimited()).unwrap()
}

fn compare(program: &Program, machine: &Machine) {
    let expected = match Explorer::new().outcome_set(program, machine, &Budget::unlimited()) {
        Ok(all) => {
            let expected = plain(program, machine);
            assert_eq!(all, expected, "{}: {program:?}", machine.id);
            expected
        }
        Err(error) => {
            assert!(matches!(error, MachineError::Unsupported(_)), "{error}");
            return;
        }
    };
    // Both searches are run, whichever one would be chosen.
    let mut tables = Tables::new(program, machine).unwrap();
    if future::is_for(&tables) {
        let (mut seen, budget) = (Default::default(), Budget::unlimited());
        let (all, _) = future::outcomes(&mut tables, &mut seen, &budget).unwrap();
        assert_eq!(all, expected, "{}: {program:?}", machine.id);
    }
}

#[test]
fn nothing_is_lost_on_all_small_programs() {
    let bound = Bound::accesses(4);
    for shape in (1..=4).flat_map(|n| shapes(&bound, n, Redundant::Keep)) {
        for machine in &Machine::ALL {
            compare(&shape.program(), machine);
        }
    }
}

#[test]
fn nothing_is_lost_with_dependencies() {
    let bound = Bound { dependencies: true, ..Bound::accesses(4) };
    for shape in (2..=4).flat_map(|n| shapes(&bound, n, Redundant::Drop)) {
        for machine in [&Machine::RMO, &Machine::NRMO] {
            compare(&shape.program(), machine);
        }
    }
}

#[test]
fn nothing_is_lost_on_larger_programs() {
    for text in [
        "X=1; r1=Y; X=2; r2=Y // Y=1; r3=X; Y=2; r4=X",
        "r1=X; X=1; r2=Y; r3=X // r4=Y; Y=1; r5=X; r6=Y",
        "X=1; r1=xchg(Y,3); r2=X; r3=Y // Y=1; r4=X; fence; r5=Y; r5=X; r6=X",
        "X=1; Y=1; fence; r1=Z // Z=1; X=2; r2=Y; r3=X",
        "r1=xchg(X,1); r2=Y; Y=r1 // Y=2; r3=add(X,2); r4=Y",
        "X=1; r1=xchg(Y,1) // Y=2; r2=xchg(X,2); r3=Y // r4=X; r5=Y",
        "r1=X; Y=r1; r2=Z // r3=Y; Z=r3; X=1",
        "X=1; Y=1 // r1=Y; Z=1 // r2=Z; r3=Y; r4=X",
    ] {
        let mut program = parse_notation(text).unwrap();
        for machine in &Machine::ALL {
            compare(&program, machine);
        }
        program.observed.extend((0..2).map(|l| Observable::Location(LocationId::new(l))));
        for machine in &Machine::ALL {
            compare(&program, machine);
        }
    }
}

#[test]
fn a_run_shows_its_outcome() {
    let program = parse_notation("X=1; r1=Y // Y=1; r2=X").unwrap();
    let all = outcomes(&program, &Machine::TSO, &Budget::unlimited()).unwrap();
    assert_eq!(all.len(), 4);
    let (outcome, run) = &all[0];
    assert_eq!(outcome.to_string(), "0 0");
    expect![[r#"
        Pr[0]  X=1 goes into WQ[0]
        Pr[1]  Y=1 goes into WQ[1]
        Pr[0]  r1=Y reads 0 from M[Y]
        WQ[1]  Y=1 goes to M[Y]
        Pr[1]  r2=X reads 0 from M[X]
    "#]]
    .assert_eq(&run.narrate(&program, &Machine::TSO));
}

#[test]
fn past_and_future_in_runs() {
    let program = parse_notation("r1=X; Y=1; r3=Y // r2=Y; X=1").unwrap();
    let all = outcomes(&program, &Machine::NRMO, &Budget::unlimited()).unwrap();
    let (_, run) = all.iter().find(|(outcome, _)| outcome.to_string() == "1 1 1").unwrap();
    expect![[r#"
        FR[0,X]  r1=X is left for later in WQ[0,X]
        Pr[0]    Y=1 goes into WQ[0,Y]
        Pr[0]    r3=Y reads 1 from WQ[0,Y]
        FR[1,Y]  r2=Y is left for later in WQ[1,Y]
        Pr[1]    X=1 goes into WQ[1,X]
        WQ[0,Y]  Y=1 goes to M[0,Y] and on its way to the others in CQ
        WQ[1,X]  X=1 goes to M[1,X] and on its way to the others in CQ
        CQ[0,X]  X=1 goes to M[0,X]
        FR[0,X]  r1=X reads 1 from M[0,X]
        CQ[1,Y]  Y=1 goes to M[1,Y]
        FR[1,Y]  r2=Y reads 1 from M[1,Y]
    "#]]
    .assert_eq(&run.narrate(&program, &Machine::NRMO));
    let program = parse_notation("X=1; fence; X=2 // r1=X; r2=X").unwrap();
    let all = outcomes(&program, &Machine::RMO, &Budget::unlimited()).unwrap();
    let (_, run) = all.iter().find(|(outcome, _)| outcome.to_string() == "2 1").unwrap();
    expect![[r#"
        Pr[0]    X=1 goes into WQ[0,X]
        WQ[0,X]  X=1 goes to M[X]
        Pr[0]    fence is passed
        Pr[0]    X=2 goes into WQ[0,X]
        WQ[0,X]  X=2 goes to M[X]
        Pr[1]    r1=X reads 2 from M[X]
        Pr[1]    r2=X reads 1 from SR[1,X], the past
    "#]]
    .assert_eq(&run.narrate(&program, &Machine::RMO));
}

/// Wirings that the paper mentions.
#[test]
fn other_wirings() {
    let bound = Bound::accesses(4);
    let all = || (1..=4).flat_map(|n| shapes(&bound, n, Redundant::Drop)).map(|s| s.program());
    // With future reads, past reads add no outcome in RMO.
    const PR: Part = Part { name: "Pr", component: Component::Processor, each: Each::Thread };
    const FR: Part =
        Part { name: "FR", component: Component::FutureRead, each: Each::ThreadAddress };
    const WQ: Part =
        Part { name: "WQ", component: Component::WriteQueue, each: Each::ThreadAddress };
    const CQ: Part = Part { name: "CQ", component: Component::WriteQueue, each: Each::ViewAddress };
    const MEMORY: Part = Part { name: "M", component: Component::SimpleMem, each: Each::Address };
    const VIEW: Part = Part { name: "M", component: Component::SimpleMem, each: Each::ViewAddress };
    let no_past = Machine { stages: &[&[PR], &[FR], &[WQ], &[MEMORY]], ..Machine::RMO };
    for program in all() {
        assert_eq!(reduced(&program, &no_past), reduced(&program, &Machine::RMO), "{program:?}");
    }
    // Queues to the views that are connected to the processors directly are too strong: they do not
    // let the writes of a thread pass each other on the way to the common order.
    let direct = Machine { stages: &[&[PR], &[CQ], &[VIEW]], ..Machine::NPSO };
    assert!(all().any(|program| reduced(&program, &direct) != reduced(&program, &Machine::NPSO)));
    let twice = Machine { stages: &[&[PR], &[MEMORY], &[MEMORY]], ..Machine::SC };
    assert_eq!(
        outcomes(&Program::default(), &twice, &Budget::unlimited()).unwrap_err(),
        MachineError::Wiring(WiringError::Misplaced {
            machine: "sc",
            part: "M",
            component: Component::SimpleMem,
            each: Each::Address
        })
    );
}

#[test]
fn what_a_machine_cannot_follow_is_named() {
    let mut program = parse_notation("r1=X; r2=Y // X=1").unwrap();
    let Instruction::Read { address, .. } = &mut program.threads[0].code[1] else { panic!() };
    address.depends.push(RegisterId::new(0));
    let error = outcomes(&program, &Machine::PSLO, &Budget::unlimited()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "thread 0, instruction 1, `r2=Y+0*r1`: this machine reorders reads and does not follow \
         addresses that depend on them (pslo)"
    );
}

#[test]
fn a_spent_budget_stops_the_search() {
    let thread = |x: &str, y: &str| format!("{x}=1; r1={y}; {x}=2; r2={y}; {x}=3; r3={y}");
    let text = format!("{} // {} // {}", thread("X", "Y"), thread("Y", "Z"), thread("Z", "X"));
    let program = parse_notation(&text).unwrap();
    let budget = Budget::unlimited().with_memory(100_000);
    let error = outcomes(&program, &Machine::RMO, &budget).unwrap_err();
    assert!(matches!(error, MachineError::Stopped(Stopped::Memory { .. })), "{error}");
}

/// Checks whether the machine allows the outcome, given in the order of the registers.
fn allows(machine: &Machine, program: &str, outcome: &[i64]) -> bool {
    let program = parse_notation(program).unwrap();
    let all = reduced(&program, machine);
    assert_eq!(all, plain(&program, machine), "{}", machine.id);
    all.contains(&Outcome(outcome.into()))
}

#[test]
fn the_papers_figure_1() {
    let table: &[(&str, &[i64], &[&str])] = &[
        (
            "Y=1; r1=X // X=1; r2=Y",
            &[0, 0],
            &["ibm370", "tso", "pso", "pslo", "rmo", "ntso", "npso", "nrmo"],
        ),
        ("X=1; Y=1 // r1=Y; fence; r2=X", &[1, 0], &["pso", "pslo", "rmo", "npso", "nrmo"]),
        ("X=1; fence; X=2 // r1=X; r2=X", &[2, 1], &["pslo", "rmo", "nrmo"]),
        ("r1=X; Y=1 // r2=Y; X=1", &[1, 1], &["rmo", "nrmo"]),
        ("X=1 // Y=1 // r1=X; fence; r2=Y // r3=Y; fence; r4=X", &[1, 0, 1, 0], &[]),
        (
            "X=1 // Y=1 // r1=X; r2=Y // r3=Y; r4=X",
            &[1, 0, 1, 0],
            &["pslo", "rmo", "ntso", "npso", "nrmo"],
        ),
        ("X=1 // X=2 // r1=X; fence; r2=X // r3=X; fence; r4=X", &[1, 2, 2, 1], &[]),
        (
            "X=1; Y=2 // Y=1; X=2 // r1=X; fence; r2=X; r3=Y; fence; r4=Y",
            &[2, 1, 2, 1],
            &["pso", "pslo", "rmo", "npso", "nrmo"],
        ),
        (
            "X=1; Y=2; r1=Y // Y=3; r2=Y; r3=X",
            &[3, 3, 0],
            &["tso", "pso", "pslo", "rmo", "ntso", "npso", "nrmo"],
        ),
        (
            "X=1; fence; r1=Y // Y=2; r2=Y; r3=X",
            &[0, 2, 0],
            &["tso", "pso", "pslo", "rmo", "ntso", "npso", "nrmo"],
        ),
    ];
    for (program, outcome, allowed) in table {
        for machine in &Machine::ALL {
            assert_eq!(
                allows(machine, program, outcome),
                allowed.contains(&machine.id),
                "{} on {program}",
                machine.id
            );
        }
    }
}

#[test]
fn diagrams() {
    expect![[r#"
        RMO: reads and writes in any order, except around fences, dependencies, and a write behind an access to its location

          Pr[t]     Processor for each thread
            │ ▲
            ▼ ┊
          FR[t,x]   FutureRead for each thread and location
            │ ▲
            ▼ ┊
          WQ[t,x]   WriteQueue for each thread and location
            │ ▲
            ▼ ┊
          SR[t,x]   SetRead for each thread and location
            │ ▲
            ▼ ┊
          M[x]      SimpleMem for each location
    "#]]
    .assert_eq(&diagram(&Machine::RMO));
    expect![[r#"
        NTSO: as TSO, and threads may see the writes of different threads at different times

          Pr[t]               Processor for each thread
            │ ▲
            ▼ ┊
          WQ[t]               WriteQueue for each thread
            │ ▲  to every view at once, and on when first in both queues
            ▼ ┊
          VQ[t,v] & CQ[v,x]   WriteQueue for each thread and view and WriteQueue for each view and location
            │ ▲
            ▼ ┊
          M[v,x]              SimpleMem for each view and location
    "#]]
    .assert_eq(&diagram(&Machine::NTSO));
    for machine in &Machine::ALL {
        let svg = svg_diagram(machine);
        for part in machine.parts() {
            let count = match part.each {
                Each::Thread | Each::Address => 2,
                Each::ThreadAddress | Each::ThreadView | Each::ViewAddress => 4,
            };
            let boxes = svg.matches(&format!(">{}[", part.name)).count();
            assert_eq!(boxes, count, "{} of {}", part.name, machine.id);
        }
        let picture = format!("../../../../docs/figures/machine-{}.svg", machine.id);
        expect_file![picture].assert_eq(&svg);
    }
}
