//! Every test of the corpus has the verdicts that its file states.

use std::path::{Path, PathBuf};

use consistory_diagnostic::Style;
use consistory_litmus::{Arch, Semantics, Table, Test, brute_force, read_test, write_test};
use consistory_verdict::Budget;

fn corpus() -> Vec<(PathBuf, Test)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus");
    let mut tests = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            match read_test(&path.display().to_string(), &text) {
                Ok(test) => tests.push((path, test)),
                Err(diagnostics) => panic!("{}", diagnostics.render(Style::Plain)),
            }
        }
    }
    tests.sort_by(|a, b| a.0.cmp(&b.0));
    tests
}

#[test]
fn verdicts_are_as_expected() {
    let budget = Budget::unlimited();
    let mut wrong = String::new();
    for (path, test) in corpus() {
        let allowed = test.info("Allowed").expect("each test says which models allow it");
        let allowed: Vec<&str> = allowed.split(',').filter(|name| !name.is_empty()).collect();
        for table in Table::all() {
            let outcomes = table.outcomes(&test.program, &budget).unwrap();
            let holds = test.holds(&outcomes).unwrap();
            if holds != allowed.contains(&table.name.as_str()) {
                wrong += &format!("{}: {table}: {holds}\n", path.display());
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_definition_says_the_same() {
    let budget = Budget::unlimited();
    for (path, test) in corpus() {
        let program = &test.program;
        let size: usize = program.threads.iter().map(|thread| thread.code.len()).sum();
        for table in Table::all() {
            let limit = if table.is_store_atomic() { 8 } else { 4 };
            if size <= limit {
                let expected = brute_force(program, &table, &budget).unwrap();
                let found = table.outcomes(program, &budget).unwrap();
                assert_eq!(found, expected, "{} {table}", path.display());
            }
        }
    }
}

#[test]
fn what_is_written_reads_back() {
    let budget = Budget::unlimited();
    let mut written = 0;
    for (path, test) in corpus() {
        for arch in [Arch::X86, Arch::Lisa] {
            let Ok(text) = write_test(&Test { arch, ..test.clone() }) else { continue };
            written += 1;
            let again = match read_test("written", &text) {
                Ok(again) => again,
                Err(diagnostics) => panic!("{text}{}", diagnostics.render(Style::Plain)),
            };
            assert_eq!(again.name, test.name);
            assert_eq!(again.info, test.info);
            for table in [Table::sc(), Table::tso(), Table::rmo(), Table::nrmo()] {
                let before = table.outcomes(&test.program, &budget).unwrap();
                let after = table.outcomes(&again.program, &budget).unwrap();
                assert_eq!(test.holds(&before), again.holds(&after), "{}\n{text}", path.display());
                assert_eq!(before.len(), after.len(), "{}\n{text}", path.display());
            }
        }
    }
    assert!(written > 80, "only {written} were written");
}
