//! The definitions under `models/litmus` agree with the models, for every engine.

mod random;

use consistory_litmus::{
    Bound, Redundant, Semantics, Shape, Table, parse_notation, shapes, try_candidates,
};
use consistory_models::{find_memory_model, load_memory_model, memory_models};
use consistory_verdict::Budget;

fn programs(bound: &Bound) -> Vec<Shape> {
    (1..=bound.accesses).flat_map(|n| shapes(bound, n, Redundant::Drop)).collect()
}

#[test]
fn every_table_has_its_definition() {
    let ids: Vec<String> = Table::all().iter().map(|table| table.name.to_lowercase()).collect();
    let defined: Vec<&str> = memory_models().iter().filter_map(|model| model.id()).collect();
    assert_eq!(ids, defined);
}

#[test]
fn the_solver_agrees_with_saturation() {
    let budget = Budget::unlimited();
    let mut all = programs(&Bound { fences: false, ..Bound::accesses(4) });
    all.extend(programs(&Bound { threads: 2, locations: 2, ..Bound::accesses(4) }));
    for shape in all {
        let program = shape.program();
        for table in Table::all() {
            let model = find_memory_model(&table.name.to_lowercase()).unwrap();
            let expected = table.outcomes(&program, &budget).unwrap();
            let found = model.outcomes(&program, &budget).unwrap();
            assert_eq!(found, expected, "{table}: {program:?}");
        }
    }
}

#[test]
fn the_solver_agrees_with_saturation_on_dependencies() {
    let budget = Budget::unlimited();
    let bound =
        Bound { dependencies: true, fences: false, locations: 2, threads: 2, ..Bound::accesses(4) };
    for shape in programs(&bound) {
        let program = shape.program();
        for (id, table) in [("rmo", Table::rmo()), ("nrmo", Table::nrmo())] {
            let model = find_memory_model(id).unwrap();
            let expected = table.outcomes(&program, &budget).unwrap();
            let found = model.outcomes(&program, &budget).unwrap();
            assert_eq!(found, expected, "{table}: {program:?}");
        }
    }
}

#[test]
fn the_solver_agrees_with_the_letter_of_the_definition() {
    let budget = Budget::unlimited();
    for shape in programs(&Bound { threads: 2, ..Bound::accesses(3) }) {
        let program = shape.program();
        for model in memory_models() {
            let size = shape.accesses() + shape.fences();
            if model.program().has_views && size > 3 {
                continue;
            }
            let expected = try_candidates(&program, model, &budget).unwrap();
            let found = model.outcomes(&program, &budget).unwrap();
            assert_eq!(found, expected, "{}: {program:?}", model.title());
        }
    }
}

/// Models in cat's own syntax.
const CAT: [(&str, &str); 2] = [
    ("sc", "\"SC\"\ninclude \"cos.cat\"\nacyclic po | rf | co | fr as sc\n"),
    (
        "tso",
        "\"X86 TSO\"\n(* as herd's users write it *)\ninclude \"x86fences.cat\"\ninclude \"filters.cat\"\ninclude \"cos.cat\"\n\
         let com = rf | fr | co\nacyclic po-loc | com as uniproc\nempty rmw & (fre;coe) as atomic\n\
         let ppo = WW(po) | RM(po)\nlet implied = po & ((RMW * M) | (M * RMW))\n\
         let ghb = mfence | implied | ppo | rfe | fr | co\nacyclic ghb as tso\n",
    ),
];

#[test]
fn cat_runs_as_people_write_it() {
    let budget = Budget::unlimited();
    for (id, text) in CAT {
        let model = load_memory_model("own.cat", text, |_| None);
        let model = model.unwrap_or_else(|error| panic!("{error}"));
        let table = Table::find(id).unwrap();
        for shape in programs(&Bound::accesses(4)) {
            let program = shape.program();
            let expected = table.outcomes(&program, &budget).unwrap();
            assert_eq!(model.outcomes(&program, &budget).unwrap(), expected, "{id}: {program:?}");
        }
        // Exchanges are atomic, even if the text does not say so.
        for text in [
            "r1=xchg(X,1) // r2=xchg(X,2)",
            "r1=xchg(X,1) // X=2; r2=X",
            "r1=add(X,1) // r2=add(X,1) // r3=X",
            "r1=xchg(X,1); r2=Y // r3=xchg(Y,1); r4=X",
        ] {
            let program = parse_notation(text).unwrap();
            let expected = table.outcomes(&program, &budget).unwrap();
            assert_eq!(model.outcomes(&program, &budget).unwrap(), expected, "{id}: {text}");
        }
    }
}

#[test]
fn recursion_over_what_is_open_is_followed() {
    let budget = Budget::unlimited();
    let load = |text: &str| load_memory_model("own.cat", text, |_| None).unwrap();
    let closed = load("\"SC\" acyclic (po | rf | co | fr)+");
    let recursive =
        load("\"SC\" let rec hb = po | rf | co | fr | (hb ; hb)\nirreflexive hb as Cyclic");
    for shape in programs(&Bound::accesses(3)) {
        let program = shape.program();
        let expected = closed.outcomes(&program, &budget).unwrap();
        assert_eq!(recursive.outcomes(&program, &budget).unwrap(), expected, "{program:?}");
    }
}

#[test]
fn the_solver_agrees_with_saturation_on_random_programs() {
    let budget = Budget::unlimited();
    for seed in 0..200 {
        let program = random::program(seed);
        for table in Table::all() {
            let model = find_memory_model(&table.name.to_lowercase()).unwrap();
            let expected = table.outcomes(&program, &budget).unwrap();
            let found = model.outcomes(&program, &budget).unwrap();
            assert_eq!(found, expected, "{table}, seed {seed}: {program:?}");
        }
    }
}
