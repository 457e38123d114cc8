//! `litmus run` and `litmus machines`: printed text and JSON.

mod support;

use support::Folder;

const SB: &str = "X86 SB
{ x=0; y=0; }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";

/// Tests are run as machine code, so only where there is an assembler.
const RUNS: bool =
    cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));

#[test]
fn a_histogram_counts_every_run_and_nothing_forbidden() {
    let folder = Folder::new();
    folder.write("SB.litmus", SB);
    let ran = folder.run("litmus run SB.litmus --runs 3000 --format json");
    if !RUNS {
        assert_eq!(ran.code, 2);
        return;
    }
    assert_eq!(ran.code, 0, "{}", ran.err);
    let line = &ran.lines()[0];
    assert_eq!(line["test"], "SB");
    assert_eq!(line["runs"], 3000);
    assert_eq!(line["forbidden"], 0);
    let outcomes = line["outcomes"].as_array().unwrap();
    let counts: u64 = outcomes.iter().map(|o| o["count"].as_u64().unwrap()).sum();
    assert_eq!(counts, 3000);
    assert!(outcomes.iter().all(|outcome| outcome["allowed"] == true));
    assert_eq!(outcomes.len() + line["unseen"].as_array().unwrap().len(), 4);
    let sometimes = outcomes
        .iter()
        .any(|o| o["outcome"]["0:EAX"] == o["outcome"]["1:EAX"] && o["outcome"]["0:EAX"] == 0);
    assert_eq!(line["condition"] != "Never", sometimes);
}

#[test]
fn what_the_model_forbids_is_flagged() {
    // Whether the relaxed outcome occurs depends on the processor; the report must be correct in
    // both cases.
    let folder = Folder::new();
    folder.write("SB.litmus", SB);
    if !RUNS {
        return;
    }
    let ran = folder.run("litmus run SB.litmus --model sc --runs 100000");
    let relaxed = ran.out.contains("FORBIDDEN");
    assert_eq!(ran.code, i32::from(relaxed), "{}", ran.out);
    let says =
        if relaxed { "SC FORBIDS the outcomes of" } else { "SC allows every observed outcome" };
    assert!(ran.out.contains(says), "{}", ran.out);
}

#[test]
fn a_file_that_cannot_be_read_does_not_stop_the_others() {
    let folder = Folder::new();
    folder.write("tests/a.litmus", "X86 nonsense").write("tests/b.litmus", SB);
    let ran = folder.run("litmus run tests --runs 10 --format json");
    assert_eq!(ran.code, 2);
    assert_eq!(ran.lines().len(), usize::from(RUNS));
    assert!(ran.err.contains("a.litmus"), "{}", ran.err);
}

#[test]
fn every_model_has_a_column_beside_what_was_seen() {
    let folder = Folder::new();
    // The classic dialect, which only the reader of instruction sets supports.
    let classic = SB.replace("$1", "1").replace("{ x=0; y=0; }", "{ };");
    folder.write("SB.litmus", &classic);
    let ran = folder.run("litmus run SB.litmus --model tso,x86tso --runs 1000 --format json");
    if !RUNS || cfg!(target_arch = "aarch64") {
        return;
    }
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines = ran.lines();
    let models: Vec<&str> = lines.iter().map(|line| line["model"].as_str().unwrap()).collect();
    assert_eq!(models, ["tso", "x86tso"]);
    assert_eq!(lines[0]["outcomes"], lines[1]["outcomes"]);
    let text = folder.run("litmus run SB.litmus --model tso,x86tso --runs 1000").out;
    assert!(text.contains("x86tso allows every observed outcome"), "{text}");
    let foreign = folder.run("litmus run SB.litmus --model nosuch --runs 10");
    assert_eq!(foreign.code, 2);
}

#[test]
fn tests_are_written_anew_and_translated() {
    let folder = Folder::new();
    folder.write("SB.litmus", SB);
    folder.write(
        "MP.litmus",
        "C MP\n{ }\nP0(atomic_int* x, atomic_int* y) {\n\
         atomic_store_explicit(x, 1, memory_order_relaxed);\n\
         atomic_store_explicit(y, 1, memory_order_release);\n}\n\
         P1(atomic_int* x, atomic_int* y) {\n\
         int r0 = atomic_load_explicit(y, memory_order_acquire);\n\
         int r1 = atomic_load_explicit(x, memory_order_relaxed);\n}\n\
         exists (1:r0=1 /\\ 1:r1=0)\n",
    );
    let same = folder.run("litmus convert SB.litmus --output tidy");
    assert_eq!(same.code, 0, "{}", same.err);
    let tidy = folder.run("litmus outcomes tidy/SB.litmus --model tso --format json");
    assert_eq!(tidy.lines()[0]["condition"], "allowed");
    let arm = folder.run("litmus convert MP.litmus --to aarch64");
    assert_eq!(arm.code, 0, "{}", arm.err);
    assert!(arm.out.contains("LDAPR W2,[X0]"), "{}", arm.out);
    folder.write("arm.litmus", &arm.out);
    let outcomes = folder.run("litmus outcomes arm.litmus --model aarch64 --format json");
    assert_eq!(outcomes.lines()[0]["condition"], "forbidden");
    assert!(folder.run("litmus convert SB.litmus --to lisa").out.starts_with("LISA SB"));
    let wrong = folder.run("litmus convert SB.litmus MP.litmus --to pdp11");
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("there is no table of instructions `pdp11`"), "{}", wrong.err);
}

#[test]
fn machines_are_listed_and_drawn() {
    let folder = Folder::new();
    let list = folder.run("litmus machines").out;
    assert!(list.contains("ntso    Pr > WQ > VQ&CQ > M"), "{list}");
    assert!(folder.run("litmus machines RMO").out.contains("FR[t,x]"));
    assert!(folder.run("litmus machines rmo --format svg").out.starts_with("<svg"));
    let unknown = folder.run("litmus machines pdp11");
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("there is no machine `pdp11`"), "{}", unknown.err);
}
