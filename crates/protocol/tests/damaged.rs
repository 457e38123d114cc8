//! Damaged descriptions are either refused or run; none of them causes a panic.

use std::path::Path;

use consistory_protocol::{Explorer, Model, Options};

/// A small generator of test data.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

#[test]
fn damaged_descriptions_are_refused_or_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models");
    let mut random = Random(1);
    let (mut refused, mut run) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let words: Vec<&str> = text.split_inclusive([' ', ';', '\n', '.', '[', ']', ':']).collect();
        for _ in 0..150 {
            let mut words = words.clone();
            for _ in 0..1 + random.below(2) {
                let (a, b) = (random.below(words.len()), random.below(words.len()));
                match random.below(3) {
                    0 => drop(words.remove(a)),
                    1 => words.swap(a, b),
                    _ => words[a] = words[b],
                }
            }
            match Model::parse("damaged.m", &words.concat()) {
                Err(errors) => {
                    assert!(errors.count() > 0);
                    refused += 1;
                }
                Ok(model) => {
                    let options = Options {
                        states: Some(500),
                        symmetry: random.below(2) == 0,
                        ..Options::default()
                    };
                    Explorer::new(&model.plain()).options(options).run().unwrap();
                    let _ = model.tracked();
                    run += 1;
                }
            }
        }
    }
    assert!(refused > 100 && run > 100, "{refused} refused, {run} run");
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    let start = "var x: 0..1; startstate x := 0; end;";
    for (open, close) in [("(", ")"), ("!(", ")"), ("-", ""), ("forall i: boolean do ", " end")] {
        let text =
            format!("{start} invariant {}true{};", open.repeat(50_000), close.repeat(50_000));
        assert!(Model::parse("deep.m", &text).is_err());
    }
    let chain = format!("{start} invariant {}true;", "true & ".repeat(100_000));
    assert!(Model::parse("long.m", &chain).is_err());
    let nested = format!(
        "{start} rule begin {} x := 1; {} end;",
        "if true then ".repeat(9999),
        "end;".repeat(9999)
    );
    assert!(Model::parse("deep.m", &nested).is_err());
    let types = format!("type T: {}0..1; {start}", "array [boolean] of ".repeat(50));
    assert!(Model::parse("deep.m", &types).is_err());
}
