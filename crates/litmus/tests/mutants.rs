//! Mutated litmus tests: the parser accepts any text without a panic, and a mutant that it accepts
//! is written and read back with the same outcomes.

use std::path::Path;
use std::time::Duration;

use consistory_diagnostic::Style;
use consistory_litmus::operational::Machine;
use consistory_litmus::{Program, Semantics, Table, read_test, write_test};
use consistory_verdict::Budget;

/// Pieces of the languages, to be inserted at wrong positions.
const WORDS: [&str; 32] = [
    "|",
    ";",
    "{",
    "}",
    "P9",
    "[x]",
    "$1",
    "$-3",
    "EAX",
    "R8D",
    "MOV",
    "XCHG",
    "LOCK",
    "JE L",
    "L:",
    "r[] r1 x",
    "w[] y r1",
    "b[] r1 L",
    "f[mb]",
    "(add r1 1)",
    "exists",
    "~exists",
    "forall",
    "/\\",
    "\\/",
    "~",
    "=>",
    "(",
    ")",
    "0:EAX=1",
    "locations [x;]",
    "filter (x=0)",
];

fn mutant(text: &str, seed: u64) -> String {
    // Some steps of a linear congruential generator.
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |limit: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit.max(1)
    };
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..1 + next(4) {
        let at = next(text.len() + 1);
        let end = (at + next(6)).min(text.len());
        match next(4) {
            0 => drop(text.drain(at..end)),
            1 => drop(text.splice(at..end, WORDS[next(WORDS.len())].chars())),
            2 => {
                let copy: Vec<char> = text[at..end].to_vec();
                let to = next(text.len() + 1);
                drop(text.splice(to..to, copy));
            }
            _ => drop(text.splice(at..at, WORDS[next(WORDS.len())].chars())),
        }
    }
    text.into_iter().collect()
}

#[test]
fn mutants_of_the_corpus_are_refused_or_come_back() {
    let budget = Budget::unlimited().with_time(Duration::from_millis(500));
    let outcomes = |program: &Program| Table::tso().outcomes(program, &budget.renewed());
    let mut files = Vec::new();
    for folder in ["x86", "lisa", "paper"] {
        let folder = Path::new("../../corpus/litmus").join(folder);
        files.extend(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.sort();
    let (mut read, mut compared) = (0, 0);
    for path in &files {
        let original = std::fs::read_to_string(path).unwrap();
        for seed in 0..100 {
            let text = mutant(&original, seed);
            let test = match read_test("mutant", &text) {
                Ok(test) => test,
                Err(diagnostics) => {
                    assert!(!diagnostics.is_empty());
                    assert!(diagnostics.render(Style::Plain).contains("mutant"));
                    continue;
                }
            };
            read += 1;
            let Ok(expected) = outcomes(&test.program) else { continue };
            if let Ok(found) = Machine::TSO.outcomes(&test.program, &budget.renewed()) {
                assert_eq!(found, expected, "{text}");
                compared += 1;
            }
            let Ok(written) = write_test(&test) else { continue };
            let back = read_test("written", &written).unwrap_or_else(|errors| {
                panic!("{}\n{written}\n{text}", errors.render(Style::Plain))
            });
            let found = outcomes(&back.program).unwrap();
            assert_eq!(found, expected, "{written}\n{text}");
            assert_eq!(back.holds(&found), test.holds(&expected), "{written}\n{text}");
        }
    }
    assert!(read > 500 && compared > 400, "{read} read, {compared} compared");
}
