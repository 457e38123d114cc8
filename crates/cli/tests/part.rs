//! Shares of the work: for every command with `--part`, the parts together equal the whole run.

mod support;

use serde_json::Value;
use support::{Folder, KEPT, LOST, Ran};

/// Numbers of parts that are tried.
const COUNTS: [u64; 4] = [1, 2, 7, 64];

/// Removes values that differ from run to run, and sums over the parts.
fn comparable(line: &str) -> Value {
    fn clean(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("millis");
                fields.remove("histories");
                fields.values_mut().for_each(clean);
            }
            Value::Array(values) => values.iter_mut().for_each(clean),
            _ => {}
        }
    }
    let mut value: Value = serde_json::from_str(line).expect(line);
    clean(&mut value);
    value
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(comparable).collect()
}

/// Runs all parts of a command, and returns the number of lines of each.
fn run_parts(folder: &Folder, command: &str, count: u64) -> Vec<usize> {
    (1..=count)
        .map(|part| {
            let ran = folder.run(&format!("{command} --format json --part {part}/{count}"));
            folder.write(&format!("parts-{count}/{part}.jsonl"), &ran.out);
            ran.out.lines().count() - 1
        })
        .collect()
}

fn part_files(count: u64) -> String {
    let names: Vec<String> =
        (1..=count).map(|part| format!("parts-{count}/{part}.jsonl")).collect();
    names.join(" ")
}

/// Checks that the parts of a command equal the whole run.
fn check_union(folder: &Folder, command: &str, counts: &[u64]) -> Vec<Vec<usize>> {
    let whole = folder.run(&format!("{command} --format json"));
    let mut sizes = Vec::new();
    for &count in counts {
        sizes.push(run_parts(folder, command, count));
        let merged = folder.run(&format!("merge --format json {}", part_files(count)));
        assert_eq!(lines(&merged), lines(&whole), "{command}, {count} parts: {}", merged.err);
        assert_eq!(merged.code, whole.code, "{command}, {count} parts");
    }
    sizes
}

fn many_histories(count: usize) -> String {
    let one = |at: usize| format!("--- h{at}\n{}", if at.is_multiple_of(3) { LOST } else { KEPT });
    (0..count).map(one).collect()
}

#[test]
fn parts_of_check_are_the_whole() {
    let folder = Folder::new();
    folder.write("many.hist", many_histories(150)).write("bad.hist", "t0: nonsense(\n");
    let sizes = check_union(&folder, "check many.hist bad.hist --model cc,sc", &COUNTS);
    for sizes in &sizes {
        let (most, least) = (sizes.iter().max().unwrap(), sizes.iter().min().unwrap());
        assert!(most - least <= 1, "the shares are balanced: {sizes:?}");
        assert_eq!(sizes.iter().sum::<usize>(), 150);
    }
}

#[test]
fn whole_files_are_dealt_out_when_there_are_many() {
    let folder = Folder::new();
    for at in 0..300 {
        folder.write(&format!("in/{at:03}.hist"), many_histories(1 + at % 3));
    }
    folder.write("in/broken.hist", "t0: nonsense(\n");
    let sizes = check_union(&folder, "check in --model cc", &COUNTS);
    assert!(sizes[3].iter().all(|&lines| lines > 0), "{:?}", sizes[3]);
    // The malformed file is reported by one part only.
    let told: usize = (1..=7)
        .map(|part| folder.run(&format!("check in --model cc --format json --part {part}/7")))
        .filter(|ran| ran.err.contains("broken.hist"))
        .count();
    assert_eq!(told, 1);
}

#[test]
fn parts_of_litmus_outcomes_are_the_whole() {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/litmus/x86");
    let mut names: Vec<_> = std::fs::read_dir(corpus)
        .unwrap()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "litmus"))
        .collect();
    names.sort();
    assert!(names.len() > 3, "{names:?}");
    for path in names.iter().take(20) {
        let name = format!("tests/{}", path.file_name().unwrap().to_string_lossy());
        folder.write(&name, std::fs::read(path).unwrap());
    }
    check_union(&folder, "litmus outcomes tests --model sc,tso", &COUNTS);
}

#[test]
fn parts_of_contrast_are_the_whole() {
    let folder = Folder::new();
    check_union(&folder, "contrast tso sc --bound 4", &COUNTS);
    check_union(&folder, "contrast cc ccv --bound 4", &COUNTS);
    check_union(&folder, "contrast si ser --bound 4", &COUNTS);
}

#[test]
fn parts_of_the_atlas_are_the_whole() {
    let folder = Folder::new();
    check_union(&folder, "atlas --bound 4 --extended 3", &COUNTS);
    run_parts(&folder, "atlas --bound 4 --extended 3", 2);
    let ran = folder.run("merge parts-2/1.jsonl parts-2/2.jsonl");
    assert_eq!(ran.code, 1);
    let row = ran.out.lines().find(|line| line.starts_with("tso")).unwrap();
    let numbers = row.split_whitespace().skip(1).map(|word| word.parse::<u64>().unwrap());
    assert_eq!(numbers.sum::<u64>(), 10, "each other model has one answer: {}", ran.out);
    let ran = folder.run("atlas --bound 4 --extended 2");
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("    t0: w(x,1) r(y,0)\n    t1: w(y,1) r(x,0)\n"), "{}", ran.out);
    let ran = folder.run("atlas --bound 12 --budget 1ms");
    assert_eq!((ran.code, ran.out.as_str()), (3, ""));
    assert!(ran.err.contains("--budget"), "{}", ran.err);
}

/// Runs of threads are not reproducible, so only sums are compared: the programs that were run, how
/// often, and the results for a collection protected by a lock. A test of the harness checks that
/// every part has its own programs.
#[test]
fn parts_of_a_campaign_are_the_whole() {
    let folder = Folder::new();
    let command = "test jdk:LinkedBlockingDeque --threads 2 --rounds 10 --runs 1000 --time 600s";
    let whole = folder.run(&format!("{command} --format json"));
    assert_eq!(whole.code, 0, "{}", whole.err);
    let whole = &whole.lines()[0];
    assert_eq!((&whole["programs"], &whole["runs"]), (&100.into(), &1000.into()));
    for count in COUNTS {
        run_parts(&folder, command, count);
        let merged = folder.run(&format!("merge --format json {}", part_files(count)));
        assert_eq!(merged.code, 0, "{}", merged.err);
        let merged = &merged.lines()[0];
        for sum in ["target", "object", "model", "programs", "runs", "violations", "levels"] {
            assert_eq!(merged[sum], whole[sum], "{sum}, {count} parts");
        }
    }
}

#[test]
fn merge_refuses_what_is_not_the_whole() {
    let folder = Folder::new();
    folder.write("many.hist", many_histories(10)).write("other.hist", many_histories(9));
    run_parts(&folder, "check many.hist --model cc", 2);
    let refused = |args: &str, why: &str| {
        let ran = folder.run(&format!("merge {args}"));
        assert_eq!(ran.code, 2, "{args}");
        assert!(ran.err.contains(why), "{args}: {}", ran.err);
    };
    refused("parts-2/1.jsonl", "1 of 2 parts are missing: 2");
    refused("parts-2/1.jsonl parts-2/2.jsonl parts-2/1.jsonl", "part 1/2 occurs twice");
    let whole = folder.read("parts-2/1.jsonl");
    let lines: Vec<&str> = whole.lines().collect();
    folder.write("cut.jsonl", lines[..lines.len() - 1].join("\n") + "\n");
    refused("cut.jsonl parts-2/2.jsonl", "not complete");
    folder.write("short.jsonl", lines[1..].join("\n") + "\n");
    refused("short.jsonl parts-2/2.jsonl", "should have 5");
    let other = folder.run("check other.hist --model cc --format json --part 1/2");
    folder.write("other.jsonl", other.out);
    refused("other.jsonl parts-2/2.jsonl", "different runs");
    folder.write("junk.jsonl", "junk\n");
    refused("junk.jsonl", "not complete");
    refused("missing.jsonl", "cannot read");
}

#[test]
fn tables_add_up() {
    let folder = Folder::new();
    folder.write("many.hist", many_histories(10));
    run_parts(&folder, "check many.hist --model cc", 2);
    let ran = folder.run("merge parts-2/1.jsonl parts-2/2.jsonl --output all.jsonl");
    assert_eq!(ran.code, 1);
    assert!(ran.out.starts_with("2 parts, 10 histories\n"), "{}", ran.out);
    let row: Vec<&str> = ran.out.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(row, ["cc", "6", "4", "0"]);
    assert_eq!(folder.read("all.jsonl").lines().count(), 10);
    assert!(!folder.read("all.jsonl").contains("\"place\""));
    // The merged output can be certified like that of one run.
    assert_eq!(folder.run("certify all.jsonl").code, 0);
}

#[test]
fn a_part_needs_a_number_and_json() {
    let folder = Folder::new();
    folder.write("a.hist", KEPT);
    for wrong in ["0/2", "3/2", "2", "x/y"] {
        assert_eq!(folder.run(&format!("check a.hist --format json --part {wrong}")).code, 2);
    }
    let ran = folder.run("check a.hist --model cc --part 1/2");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--format json"), "{}", ran.err);
}
