//! Contrast over instructions of real architectures, directly and through tables.

use consistory_litmus::{
    Allowing, Alphabet, Bound, CatModel, CatSource, MappedContrast, MappedOptions, MappedSide,
    Redundant, Runner, Table, Wanted, contrast_mapped, find_isa_model, find_mapping, mapping_ids,
    program_of_isa, read_isa_test, read_mapping,
};
use consistory_litmus::{IsaOptions, Semantics, isa_outcomes};
use consistory_verdict::Budget;
use std::sync::Arc;

fn side(model: &str, table: &str) -> MappedSide<'static> {
    let runner = Runner::Cat(find_isa_model(model).unwrap());
    MappedSide { runner, mapping: find_mapping(table).unwrap() }
}

fn options(accesses: usize, decorations: usize) -> MappedOptions {
    MappedOptions {
        bound: Bound { threads: 2, locations: 2, ..Bound::accesses(accesses) },
        redundant: Redundant::Drop,
        wanted: Wanted::First,
        allowing: Allowing::Either,
        decorations,
        budget: Budget::unlimited(),
        jobs: 2,
    }
}

fn run(left: &MappedSide<'_>, right: &MappedSide<'_>, options: &MappedOptions) -> MappedContrast {
    let alphabet = Alphabet::shared(&left.mapping, &right.mapping);
    contrast_mapped(left, right, &alphabet, options).unwrap()
}

/// Describes the first differences: the outcomes that the left side allows, and that the right side
/// allows.
fn found(left: (&str, &str), right: (&str, &str), decorations: usize) -> [Option<String>; 2] {
    let (left, right) = (side(left.0, left.1), side(right.0, right.1));
    let alphabet = Alphabet::shared(&left.mapping, &right.mapping);
    let result = run(&left, &right, &options(4, decorations));
    let describe = |is_left: bool| {
        let fits = result.differences.iter().find(|difference| {
            let only = if is_left { &difference.only_left } else { &difference.only_right };
            !only.is_empty()
        });
        fits.map(|difference| difference.sketch.describe(&alphabet))
    };
    [describe(true), describe(false)]
}

#[test]
fn tso_is_told_from_sc_by_store_buffering() {
    let [left, right] = found(("sc", "x86"), ("x86tso", "x86"), 2);
    assert_eq!(left, None);
    assert_eq!(
        right.as_deref(),
        Some("store plain x; load plain y // store plain y; load plain x")
    );
}

#[test]
fn a_table_and_its_model_in_cat_are_equal() {
    let tso = Table::tso();
    let mapping = find_mapping("x86").unwrap();
    let left = MappedSide { runner: Runner::Semantics(&tso), mapping };
    let result = run(&left, &side("x86tso", "x86"), &options(4, 2));
    assert!(result.differences.is_empty() && result.stopped.is_none());
    assert_eq!(result.run.len(), 4);
}

#[test]
fn tables_through_c11_find_what_is_known() {
    // RC11 forbids load buffering; the usual schemes for AArch64 and Power do not.
    let load_buffering = "load relaxed x; store relaxed y // load relaxed y; store relaxed x";
    for (model, table) in [("aarch64", "c11-aarch64"), ("power", "c11-power")] {
        let [_, right] = found(("rc11", "c11"), (model, table), 0);
        assert_eq!(right.as_deref(), Some(load_buffering), "{model}");
    }
    // On x86 the scheme is sound within this bound.
    let [_, right] = found(("rc11", "c11"), ("x86tso", "c11-x86"), 1);
    assert_eq!(right, None);
}

#[test]
fn a_wrong_scheme_has_a_smallest_counterexample() {
    let text = "base aarch64\nload acquire LDR W{r},[{x}]\nstore release STLR {v},[{x}]\n";
    let broken = MappedSide {
        runner: Runner::Cat(find_isa_model("aarch64").unwrap()),
        mapping: read_mapping("broken.map", text).unwrap(),
    };
    let source = side("rc11", "c11");
    let options = MappedOptions { allowing: Allowing::Right, ..options(4, 0) };
    let result = run(&source, &broken, &options);
    let [difference] = &result.differences[..] else { panic!("one difference") };
    assert_eq!(difference.sketch.accesses(), 4);
    assert!(difference.only_left.is_empty() || !difference.only_right.is_empty());
    assert!(difference.right.text.contains("LDR") && difference.left.text.contains("acquire"));
    let fixed = text.replace("LDR", "LDAPR");
    let fixed = MappedSide {
        mapping: read_mapping("fixed.map", &fixed).unwrap(),
        runner: Runner::Cat(find_isa_model("aarch64").unwrap()),
    };
    assert!(run(&source, &fixed, &options).differences.is_empty());
}

#[test]
fn models_of_ones_own_and_minimal_differences() {
    let text = "\"x86 without a fence\"\ninclude \"cos.cat\"\nacyclic po-loc | rf | fr | co\n\
                acyclic (po & ((W * W) | (R * M))) | rfe | fr | co";
    let source = CatSource { name: "my.cat".to_owned(), text: text.to_owned() };
    let model = CatModel::read(source, None, &[], &|_| None).unwrap();
    let mapping = find_mapping("x86").unwrap();
    let mine = MappedSide { runner: Runner::Cat(Arc::new(model)), mapping };
    let options = MappedOptions { wanted: Wanted::Minimal, ..options(4, 2) };
    let result = run(&mine, &side("x86tso", "x86"), &options);
    // Store buffering needs both fences; with a write instead of a read one is enough.
    let sizes: Vec<usize> = result.differences.iter().map(|d| d.sketch.decorations()).collect();
    assert_eq!(sizes, [1, 2]);
    assert!(result.differences.iter().all(|d| d.only_right.is_empty()));
}

#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    let (left, right) = (side("riscv", "riscv"), side("riscv-tso", "riscv"));
    let describe = |jobs| {
        let result = run(&left, &right, &MappedOptions { jobs, ..options(4, 1) });
        result.differences.iter().map(|d| d.left.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(describe(1), describe(3));
}

/// The readers accept every access, fence and dependency of every table.
#[test]
fn what_tables_write_is_read() {
    for id in mapping_ids() {
        let model = match id.rsplit('-').next().unwrap() {
            "c11" => "rc11",
            "x86" => "x86tso",
            other => other,
        };
        let (left, right) = (side(model, id), side(model, id));
        let result = run(&left, &right, &options(3, 1));
        assert!(result.differences.is_empty(), "{id}");
        assert!(result.run[2] > 10, "{id}: {:?}", result.run);
    }
}

#[test]
fn tests_of_x86_64_become_programs() {
    let root = format!("{}/../../corpus/executions/x86_64", env!("CARGO_MANIFEST_DIR"));
    let budget = Budget::unlimited();
    let options = IsaOptions {
        unroll: 1,
        condition_only: false,
        count: false,
        keep_executions: false,
        budget: budget.clone(),
    };
    let mut read = 0;
    for file in std::fs::read_dir(root).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let test = read_isa_test("test", &text).unwrap();
        let program = program_of_isa(&test).unwrap();
        let expected = isa_outcomes(&test, &find_isa_model("x86tso").unwrap(), &options).unwrap();
        let found = Table::tso().outcomes(&program.program, &budget).unwrap();
        let found: Vec<Vec<i64>> = found.iter().map(|outcome| outcome.0.to_vec()).collect();
        assert_eq!(found, expected.states.into_iter().collect::<Vec<_>>(), "{}", test.name);
        read += 1;
    }
    assert!(read > 2);
}
