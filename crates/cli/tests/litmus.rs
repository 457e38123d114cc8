//! The commands on litmus tests.

mod support;

use serde_json::{Value, json};
use support::Folder;

const SB: &str = "X86 SB\n{ x=0; y=0; }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n \
                  MOV EAX,[y] | MOV EBX,[x] ;\nexists (0:EAX=0 /\\ 1:EBX=0)\n";

#[test]
fn outcomes_are_as_the_contract_says() {
    let folder = Folder::new();
    folder.write("SB.litmus", SB);
    for style in ["axiomatic", "operational", "definition"] {
        let command = format!("litmus outcomes SB.litmus --model sc,tso --style {style}");
        let ran = folder.run(&format!("{command} --format json"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let lines: Vec<Value> =
            ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let outcome = |a: i64, b: i64| json!({"0:EAX": a, "1:EBX": b});
        let strong = json!([outcome(0, 1), outcome(1, 0), outcome(1, 1)]);
        let weak = json!([outcome(0, 0), outcome(0, 1), outcome(1, 0), outcome(1, 1)]);
        for (line, (model, outcomes, verdict)) in
            lines.iter().zip([("sc", strong, "forbidden"), ("tso", weak, "allowed")])
        {
            assert_eq!(line["test"], "SB");
            assert_eq!(line["model"], model);
            assert_eq!(line["style"], style);
            assert_eq!(line["outcomes"], outcomes);
            assert_eq!(line["condition"], verdict);
        }
        assert_eq!(lines.len(), 2);
    }
}

#[test]
fn a_wrong_test_is_reported_and_spares_the_others() {
    let folder = Folder::new();
    folder.write("tests/a.litmus", "X86 A\n{ }\n P0 ;\n FLY [x] ;\n");
    folder.write("tests/b.litmus", SB);
    let ran = folder.run("litmus outcomes tests --model tso");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("`FLY [x]` is not supported") && ran.err.contains("a.litmus:4:2"));
    assert!(ran.out.contains("SB") && ran.out.contains("allowed"), "{}", ran.out);
    let ran = folder.run("litmus outcomes tests/b.litmus --model tsso");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("ibm370, tso"), "{}", ran.err);
}

#[test]
fn a_user_of_herd_is_at_home() {
    let folder = Folder::new();
    let spelt = SB.replace("(0:EAX=0 /\\ 1:EBX=0)", "(P0:EAX = 0/\\P1:EBX = 0)");
    folder.write("tests/SB.litmus", &spelt);
    folder.write("tests/@all", "# everything\nSB.litmus\n\n@more\n");
    folder.write("tests/@more", "deep/SB2.litmus\n");
    folder.write("tests/deep/SB2.litmus", SB.replace("X86 SB", "X86 SB2"));
    let ran = folder.run("litmus outcomes tests/@all --model x86tso --format herd");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("Condition exists (0:EAX=0 /\\ 1:EBX=0)\n"), "{}", ran.out);
    assert!(ran.out.contains("Observation SB2 Sometimes 1 3\n"), "{}", ran.out);
    // Without a model, the one of the architecture.
    let ran = folder.run("litmus outcomes tests --format json");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out.matches("\"model\":\"x86tso\"").count(), 2, "{}", ran.out);
    folder.write("tests/LISA.litmus", "LISA L\n{ }\n P0 ;\n r[] r1 x ;\nexists (0:r1=0)\n");
    let ran = folder.run("litmus outcomes tests");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--model is missing"), "{}", ran.err);
    // An index file that lists itself.
    folder.write("tests/@more", "@all\n");
    let ran = folder.run("litmus outcomes tests/@all --model x86tso");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("@all lists itself"), "{}", ran.err);
    // An option with one hyphen, and a model of another architecture.
    let ran = folder.run("litmus outcomes tests/SB.litmus -model x86tso");
    assert!(ran.err.contains("--model"), "{}", ran.err);
    let ran = folder.run("litmus outcomes tests/SB.litmus --model aarch64");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("the model `aarch64` cannot run tests/SB.litmus"), "{}", ran.err);
}

#[test]
fn contrast_says_by_its_exit_code_whether_models_differ() {
    let folder = Folder::new();
    let ran = folder.run("litmus contrast --left tso --right pso --bound 4 --format json");
    assert_eq!(ran.code, 1, "{}", ran.err);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["relation"], "different");
    assert_eq!(report["differences"][0]["accesses"], 4);
    assert_eq!(report["differences"][0]["only_left"], json!([]));
    assert_eq!(report["differences"][0]["only_right"], json!([{"r1": 2, "r2": 0}]));
    let ran =
        folder.run("litmus contrast --left rmo --right rmo --right-style operational --bound 3");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("equal on all programs of up to 3 accesses"), "{}", ran.out);
    for (left, right, relation, text) in [
        ("4044", "tso", "equal", "they keep the same pairs in order"),
        ("4041", "4141", "equal", "no program of two threads and six accesses tells them apart"),
        ("ibm370", "tso", "equal-up-to-bound", "but not on all of 5 accesses"),
        (
            "rmo",
            "1010",
            "equal-up-to-bound",
            "but not on all of 3 accesses with any fences and dependencies (--dependencies)",
        ),
        ("sober", "sober", "equal", "they keep the same pairs in order"),
    ] {
        let command = format!("litmus contrast --left {left} --right {right} --bound 3");
        let ran = folder.run(&command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains(text), "{}", ran.out);
        let ran = folder.run(&format!("{command} --format json"));
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(report["relation"], relation);
    }
    let ran = folder.run("litmus contrast --left tso --right tso --bound 6 --budget 1ms");
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
}

#[test]
fn every_style_shows_how_an_outcome_comes_about() {
    let folder = Folder::new();
    folder.write(
        "SB.litmus",
        "X86 SB\n{ }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\n\
         exists (0:EAX=0 /\\ 1:EAX=0)\n",
    );
    folder.write("own.cat", "\"Own\"\nacyclic po-loc | rf | fr | co as Uniproc\n");
    for (model, style, part) in [
        ("tso", "axiomatic", "memory order: "),
        ("npso", "axiomatic", "view of P1: "),
        ("tso", "definition", "memory order: "),
        ("npso", "definition", "view of P1: "),
        ("tso", "operational", "x=1 goes into WQ[0]"),
        ("own.cat", "definition", "P0:R y=0 reads the initial value"),
    ] {
        let command =
            format!("litmus outcomes SB.litmus --model {model} --style {style} --witness");
        let ran = folder.run(&command);
        assert!(ran.out.contains(part), "{command}\n{}", ran.out);
        assert_eq!(ran.out.matches(" allows ").count(), 4, "{command}\n{}", ran.out);
        let line = folder.run(&format!("{command} --format json")).lines().remove(0);
        let witnesses = line["witnesses"].as_array().unwrap();
        assert_eq!(witnesses.len(), line["outcomes"].as_array().unwrap().len());
        assert!(witnesses.iter().all(Value::is_object), "{command}");
    }
}

#[test]
fn executions_of_instruction_sets_are_shown_drawn_and_reported() {
    let folder = Folder::new();
    let test = "AArch64 MP\n{ 0:X1=x; 0:X3=y; 1:X1=y; 1:X3=x; }\n P0 | P1 ;\n MOV W0,#1 | LDR W0,[X1] ;\n \
                STR W0,[X1] | LDR W2,[X3] ;\n STR W0,[X3] | ;\nexists (1:X0=1 /\\ 1:X2=0)\n";
    folder.write("MP.litmus", test);
    let command = "litmus outcomes MP.litmus --model sc,aarch64";
    let ran = folder.run(&format!("{command} --witness --draw pictures --report page.html"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out.matches("sc allows ").count(), 3, "{}", ran.out);
    assert_eq!(ran.out.matches("aarch64 allows ").count(), 4, "{}", ran.out);
    assert!(ran.out.contains("P0:1 -rf-> P1:0"), "{}", ran.out);
    assert!(folder.read("pictures/MP-aarch64-1-0.svg").contains("W y=1"));
    assert!(!folder.path().join("pictures/MP-sc-1-0.svg").exists());
    let lines = folder.run(&format!("{command} --witness --format json")).lines();
    assert_eq!(lines[1]["witnesses"].as_array().unwrap().len(), 4);
    assert_eq!(lines[1]["witnesses"][0]["events"][0], "init:x=0");
    let page = folder.read_report("page.html");
    assert!(page.contains("aarch64 allows 1:X0=1 1:X2=0"), "{page}");
    assert!(page.contains("sc forbids 1:X0=1 1:X2=0"), "{page}");
}

#[test]
fn a_definition_with_errors_is_shown_with_their_places() {
    let folder = Folder::new();
    folder.write("SB.litmus", SB);
    folder.write("own.cat", "\"Own\"\nacyclic po | wr\n");
    let ran = folder.run("litmus outcomes SB.litmus --model own.cat");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("the name `wr` is unknown here") && ran.err.contains("own.cat:2:14"));
}

#[test]
fn a_suite_has_the_verdicts_that_it_says() {
    let folder = Folder::new();
    let ran = folder.run("litmus generate --model rmo --bound 4 --output suite");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = folder.run("litmus outcomes suite --model sc,rmo --format json");
    let lines: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 8, "{}", ran.out);
    for line in lines {
        let expected = if line["model"] == "rmo" { "allowed" } else { "forbidden" };
        assert_eq!(line["condition"], expected, "{line}");
    }
}

#[test]
fn models_of_architectures_are_contrasted() {
    let folder = Folder::new();
    let ran =
        folder.run("litmus contrast --left sc --right x86tso --bound 4 --threads 2 --format json");
    assert_eq!(ran.code, 1, "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found["relation"], "different");
    let [difference] = &found["differences"].as_array().unwrap()[..] else { panic!("{found}") };
    assert_eq!(difference["only_left"], json!([]));
    assert_eq!(difference["only_right"], json!([{"0:EAX": 0, "1:EAX": 0}]));
    // What is written is a test.
    folder.write("found.litmus", difference["left_test"].as_str().unwrap());
    let ran = folder.run("litmus outcomes found.litmus --model sc,x86tso");
    assert!(ran.out.contains("x86tso: 4 outcomes"), "{}", ran.out);

    let one_way = "litmus contrast --left sc --right x86tso --threads 2 --only left";
    assert_eq!(folder.run(one_way).code, 0);
    let equal = folder.run("litmus contrast --left tso --right x86tso --mapping x86 --bound 3");
    assert_eq!((equal.code, equal.err.as_str()), (0, ""));
    let spent = "litmus contrast --left rc11 --right x86tso --bound 6 --budget 20ms --only right";
    assert_eq!(folder.run(spent).code, 3);
}

#[test]
fn tables_of_instructions_are_read_and_their_mistakes_named() {
    let folder = Folder::new();
    folder.write(
        "broken.map",
        "base aarch64\nload acquire LDR W{r},[{x}]\nstore release STLR {v},[{x}]\n",
    );
    let check =
        "litmus contrast --left rc11 --right aarch64 --left-mapping c11 --only right --threads 2";
    let ran = folder.run(&format!("{check} --right-mapping broken.map"));
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("Only aarch64: 1:X2 = 2; 1:X3 = 0"), "{}", ran.out);
    folder.write("wrong.map", "base aarch64\nlode acquire LDR\n");
    let ran = folder.run(&format!("{check} --right-mapping wrong.map"));
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("wrong.map:2"), "{}", ran.err);
    let ran = folder.run("litmus contrast --left sc --right ./none.cat --mapping nothing");
    assert_eq!(ran.code, 2);
    let ran = folder.run("litmus contrast --left tso --right aarch64");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("cannot run tests of AArch64"), "{}", ran.err);
}

const TWO_QUEUES: &str = "MINE: two of them\nPr[t] Processor for each thread\nWQ[t] WriteQueue for \
                          each thread\nM[x] SimpleMem for each location\n";

#[test]
fn machines_and_protocols_are_models() {
    let folder = Folder::new();
    folder.write("SB.litmus", SB);
    folder.write("mine.machine", TWO_QUEUES);
    let ran = folder.run(
        "litmus contrast --left tso --right ./mine.machine --right-style operational --bound 3",
    );
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let ran = folder.run("litmus machines ./mine.machine");
    assert!(ran.out.starts_with("MINE: two of them"), "{}", ran.out);
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/protocols");
    let ran = folder.run(&format!("litmus outcomes SB.litmus --model {root}/store-buffers.m"));
    assert!(ran.out.contains("4 outcomes, allowed"), "{}{}", ran.out, ran.err);
    let ran = folder.run(&format!("litmus contrast --left sc --right {root}/serial.m --bound 4"));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let ran =
        folder.run(&format!("litmus contrast --left sc --right {root}/store-buffers.m --bound 4"));
    assert_eq!(ran.code, 1, "{}", ran.err);
}

#[test]
fn a_style_that_does_not_apply_is_an_error() {
    let folder = Folder::new();
    folder.write("SB.litmus", SB);
    folder.write("my.cat", "acyclic po | rf | co | fr as sc\n");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus");
    let protocol = format!("{root}/protocols/serial.m");
    let arm = format!("{root}/executions/aarch64/MP.litmus");
    for command in [
        format!("litmus outcomes SB.litmus --model {protocol} --style definition"),
        "litmus contrast --left ./my.cat --left-style axiomatic --right sc".to_owned(),
        format!("litmus outcomes {arm} --model aarch64 --style operational"),
        "litmus contrast --left ./my.cat --left-style operational --right sc".to_owned(),
    ] {
        let ran = folder.run(&command);
        assert_eq!(ran.code, 2, "{command}: {}", ran.out);
    }
}
