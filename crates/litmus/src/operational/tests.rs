//! The reduced search against plain exploration, and the machines against the literature.

use std::collections::HashSet;

use consistory_verdict::Budget;

use crate::notation::parse_notation;
use crate::operational::compile::Tables;
use crate::operational::{Explorer, Machine};
use crate::program::{Outcome, Outcomes, Program};

/// Every outcome by plain exploration: all steps in every state, nothing left out.
fn plain(program: &Program, machine: &Machine) -> Outcomes {
    let mut tables = Tables::new(program, machine).unwrap();
    let mut seen = HashSet::from([tables.initial.clone()]);
    let mut todo = vec![tables.initial.clone()];
    let (mut steps, mut outcome, mut all) = (Vec::new(), Vec::new(), Outcomes::new());
    while let Some(state) = todo.pop() {
        tables.steps(&state, false, &mut steps);
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

/// Says whether the machine allows the outcome, given in the order of the registers.
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
