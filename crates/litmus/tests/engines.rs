//! The engines agree with the definition on all small programs, and on random ones with every kind
//! of instruction.

mod random;

use consistory_litmus::{
    Bound, Redundant, Semantics, Shape, Table, Value, brute_force, parse_notation, shapes,
    witnesses,
};
use consistory_verdict::Budget;

fn programs(bound: &Bound) -> Vec<Shape> {
    (1..=bound.accesses).flat_map(|n| shapes(bound, n, Redundant::Keep)).collect()
}

fn compare(bound: &Bound, tables: &[Table]) {
    let budget = Budget::unlimited();
    for shape in programs(bound) {
        let program = shape.program();
        for table in tables {
            let expected = brute_force(&program, table, &budget).unwrap();
            let found = table.outcomes(&program, &budget).unwrap();
            assert_eq!(found, expected, "{table}: {program:?}");
        }
    }
}

#[test]
fn saturation_is_the_definition_for_store_atomic_models() {
    let tables: Vec<Table> = Table::all().into_iter().filter(Table::is_store_atomic).collect();
    compare(&Bound { per_thread: 3, ..Bound::accesses(4) }, &tables);
}

#[test]
fn saturation_is_the_definition_for_views() {
    let mut tables = vec![Table::ntso(), Table::nrmo()];
    tables.extend(Table::npso_drafts());
    compare(&Bound { threads: 2, ..Bound::accesses(3) }, &tables);
}

#[test]
fn witnesses_have_the_outcome_that_they_are_of() {
    let budget = Budget::unlimited();
    for shape in programs(&Bound { threads: 3, ..Bound::accesses(4) }) {
        let program = shape.program();
        for table in [Table::tso(), Table::rmo(), Table::npso()] {
            let outcomes = table.outcomes(&program, &budget).unwrap();
            let all = witnesses(&program, &table, &budget).unwrap();
            assert!(all.keys().eq(&outcomes), "{table}: {program:?}");
            for (outcome, execution) in all {
                let read: Vec<Value> = execution.events.iter().filter_map(|e| e.read).collect();
                assert_eq!(read, outcome.0.to_vec(), "{table}: {program:?}");
                // Each read returns the latest write before it in its order or its thread.
                for (at, event) in execution.events.iter().enumerate() {
                    let Some(value) = event.read else { continue };
                    let view = if table.is_store_atomic() { 0 } else { event.thread };
                    let order = &execution.orders[view];
                    let place = |e: usize| order.iter().position(|&o| o == e).unwrap();
                    let latest = (0..execution.events.len())
                        .filter(|&w| execution.events[w].written.is_some())
                        .filter(|&w| execution.events[w].location == event.location)
                        .filter(|&w| {
                            let own = execution.events[w].thread == event.thread && w < at;
                            own || place(w) < place(at)
                        })
                        .max_by_key(|&w| place(w));
                    let expected = latest.map_or(0, |w| execution.events[w].written.unwrap());
                    assert_eq!(value, expected);
                }
            }
        }
    }
}

#[test]
fn many_events_in_views_are_no_different() {
    // Outcomes of one memory order are not searched again in views; witnesses are found in another
    // way.
    let budget = Budget::unlimited();
    let text = "X=1; r1=Y; X=2; r2=Y; X=3; r3=Y // Y=1; r4=X; Y=2; r5=X; Y=3; r6=X // r7=X; r8=Y";
    let program = parse_notation(text).unwrap();
    for table in [Table::ntso(), Table::npso()] {
        let outcomes = table.outcomes(&program, &budget).unwrap();
        assert!(witnesses(&program, &table, &budget).unwrap().keys().eq(&outcomes), "{table}");
    }
}

#[test]
fn saturation_is_the_definition_on_random_programs() {
    let budget = Budget::unlimited();
    for seed in 0..1500 {
        let program = random::program(seed);
        for table in Table::all() {
            let size: usize = program.threads.iter().map(|thread| thread.code.len()).sum();
            let is_small = size <= 3 && program.threads.len() == 2;
            if table.is_store_atomic() || is_small {
                let expected = brute_force(&program, &table, &budget).unwrap();
                let found = table.outcomes(&program, &budget).unwrap();
                assert_eq!(found, expected, "{table}, seed {seed}: {program:?}");
            }
        }
    }
}
