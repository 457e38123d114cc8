//! The machines and the axioms allow the same outcomes.

mod random;

use std::path::Path;

use consistory_litmus::operational::Machine;
use consistory_litmus::{
    Bound, OutcomesError, Redundant, Semantics, Shape, Table, read_test, shapes,
};
use consistory_verdict::Budget;

fn pairs() -> Vec<(Table, Machine)> {
    vec![
        (Table::sc(), Machine::SC),
        (Table::ibm370(), Machine::IBM370),
        (Table::tso(), Machine::TSO),
        (Table::pso(), Machine::PSO),
        (Table::pslo(), Machine::PSLO),
        (Table::rmo(), Machine::RMO),
        (Table::ntso(), Machine::NTSO),
        (Table::npso(), Machine::NPSO),
        (Table::nrmo(), Machine::NRMO),
    ]
}

fn agree(bound: &Bound, pairs: &[(Table, Machine)]) {
    let budget = Budget::unlimited();
    let all = (1..=bound.accesses).flat_map(|n| shapes(bound, n, Redundant::Keep));
    for program in all.map(|shape: Shape| shape.program()) {
        for (table, machine) in pairs {
            let axioms = table.outcomes(&program, &budget).unwrap();
            let runs = machine.outcomes(&program, &budget).unwrap();
            assert_eq!(runs, axioms, "machine (left) and axioms of {table}: {program:?}");
        }
    }
}

/// Returns a bound from the environment, so that a larger one can be tried by hand.
fn bound(variable: &str, usual: u64) -> u64 {
    let asked = std::env::var(variable).ok();
    asked.and_then(|number| number.parse().ok()).unwrap_or(usual)
}

fn accesses() -> usize {
    bound("CONSISTORY_AGREEMENT", 5) as usize
}

#[test]
fn on_all_programs_of_reads_writes_and_fences() {
    agree(&Bound::accesses(accesses()), &pairs());
}

#[test]
fn on_all_programs_with_dependencies() {
    // PSLO's machine does not support addresses that depend on reads.
    let pairs: Vec<_> = pairs().into_iter().filter(|(_, machine)| machine.id != "pslo").collect();
    agree(&Bound { dependencies: true, ..Bound::accesses(accesses() - 1) }, &pairs);
}

#[test]
fn on_random_programs_with_all_that_there_is() {
    let budget = Budget::unlimited();
    let mut compared = 0;
    for seed in 0..bound("CONSISTORY_AGREEMENT_SEEDS", 3000) {
        let program = random::program(seed);
        for (table, machine) in pairs() {
            let runs = match machine.outcomes(&program, &budget) {
                Ok(runs) => runs,
                Err(OutcomesError::Unsupported { .. }) => continue,
                Err(error) => panic!("seed {seed}: {error}"),
            };
            let Ok(axioms) = table.outcomes(&program, &budget) else { continue };
            compared += 1;
            assert_eq!(
                runs, axioms,
                "seed {seed}, machine (left) and axioms of {table}: {program:#?}"
            );
        }
    }
    assert!(compared > 20_000, "only {compared} were compared");
}

#[test]
fn on_the_corpus() {
    let budget = Budget::unlimited();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus");
    let mut compared = 0;
    for folder in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let Ok(test) = read_test("test", &text) else { panic!("{}", path.display()) };
            for (table, machine) in pairs() {
                let runs = match machine.outcomes(&test.program, &budget) {
                    Ok(runs) => runs,
                    Err(OutcomesError::Unsupported { .. }) => continue,
                    Err(error) => panic!("{}: {error}", path.display()),
                };
                let axioms = table.outcomes(&test.program, &budget).unwrap();
                assert_eq!(runs, axioms, "{}, machine (left), {table}", path.display());
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "only {compared} were compared");
}
