//! Counts the models of four digits, and checks that two threads and six accesses separate them.
//!
//! Mador-Haim, Alur and Martin (DAC 2011) prove this for their class of models. This test checks
//! that models which no such program separates are not separated by a program of more threads
//! within the bound either.

use consistory_litmus::{
    Bound, Outcomes, Redundant, Semantics, Shape, Table, shapes, sufficient_bound,
};
use consistory_verdict::Budget;

/// Splits classes of models by the outcomes of a program; classes with one member are dropped.
fn split(classes: &mut Vec<Vec<Table>>, shape: &Shape) -> usize {
    let program = shape.program();
    let mut singles = 0;
    let mut next: Vec<Vec<Table>> = Vec::new();
    for class in classes.drain(..) {
        let mut parts: Vec<(Outcomes, Vec<Table>)> = Vec::new();
        for table in class {
            let outcomes = table.outcomes(&program, &Budget::unlimited()).unwrap();
            match parts.iter_mut().find(|(known, _)| *known == outcomes) {
                Some((_, part)) => part.push(table),
                None => parts.push((outcomes, vec![table])),
            }
        }
        for (_, part) in parts {
            match part.len() {
                1 => singles += 1,
                _ => next.push(part),
            }
        }
    }
    *classes = next;
    singles
}

fn names(classes: &[Vec<Table>]) -> Vec<Vec<String>> {
    let name = |class: &Vec<Table>| class.iter().map(|table| table.name.clone()).collect();
    let mut all: Vec<Vec<String>> = classes.iter().map(name).collect();
    all.sort();
    all
}

/// Returns every model of four digits that keeps each location coherent.
fn models() -> Vec<Table> {
    let mut models = Vec::new();
    for ww in "14".chars() {
        for wr in "014".chars() {
            for rw in "134".chars() {
                for rr in "01234".chars() {
                    models.push(Table::find(&format!("{ww}{wr}{rw}{rr}")).unwrap());
                }
            }
        }
    }
    models
}

#[test]
fn ninety_models_are_eighty_two() {
    let models = models();
    assert_eq!(models.len(), 90);
    let enough = sufficient_bound(&Table::rmo(), &Table::pso()).unwrap();
    assert!(enough.dependencies);
    let mut classes = vec![models];
    let mut singles = 0;
    for accesses in 1..=5 {
        for shape in shapes(&enough, accesses, Redundant::Drop) {
            singles += split(&mut classes, &shape);
        }
    }
    // Forwarding is observable only if an event waits for the read that does not wait for the write
    // anyway.
    let pairs = ["1010", "1011", "4010", "4011", "4030", "4031", "4040", "4041"];
    let pairs =
        pairs.map(|first| vec![first.to_owned(), format!("{}1{}", &first[..1], &first[2..])]);
    assert_eq!(singles, 74);
    assert_eq!(names(&classes), pairs);

    // Neither six accesses nor a third thread separates them.
    let is_thorough = std::env::var_os("CONSISTORY_AGREEMENT").is_some();
    let mut bounds = vec![
        (Bound { fences: false, dependencies: false, ..enough }, 6),
        (Bound { threads: 3, fences: false, dependencies: false, ..enough }, 5),
    ];
    if is_thorough {
        bounds.extend([(enough, 6), (Bound { threads: 4, dependencies: false, ..enough }, 6)]);
    }
    for (bound, accesses) in bounds {
        for shape in shapes(&bound, accesses, Redundant::Drop) {
            assert_eq!(split(&mut classes, &shape), 0, "{shape:?}");
        }
    }
}
