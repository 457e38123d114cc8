//! The contract of `check` and `certify`: exit codes, JSON, order, and handling of bad input.

mod support;

use std::io::Write;

use expect_test::expect;
use serde_json::json;
use support::{Folder, KEPT, LOST};

#[test]
fn exit_codes_say_what_was_found() {
    let folder = Folder::new();
    folder.write("kept.hist", KEPT).write("lost.hist", LOST).write("bad.hist", "t0: w(x 1)\n");
    let code = |args: &str| folder.run(args).code;
    assert_eq!(code("check kept.hist --model cc"), 0);
    assert_eq!(code("check kept.hist lost.hist --model cc"), 1);
    assert_eq!(code("check bad.hist --model cc"), 2);
    assert_eq!(code("check bad.hist lost.hist --model cc"), 2);
    assert_eq!(code("check kept.hist --model cc --budget 0s"), 3);
    assert_eq!(code("check missing.hist --model cc"), 2);
    assert_eq!(code("check kept.hist --model nonsense"), 2);
    assert_eq!(code("check kept.hist"), 0);
    assert_eq!(code("check lost.hist"), 1);
    assert_eq!(code("check kept.hist --model cc --budget soon"), 2);
    assert_eq!(code("check kept.hist --model cc --jobs 0"), 2);
    assert_eq!(code("nonsense"), 2);
    assert_eq!(code("--version"), 0);
}

#[test]
fn a_line_for_each_history_in_input_order() {
    let folder = Folder::new();
    folder.write("b.hist", format!("{KEPT}---\n{LOST}---\n{KEPT}")).write("a.hist", LOST);
    let ran = folder.run("check b.hist a.hist --model cc,ccv --format json --jobs 4");
    expect![[r#"
        [
            "b.hist[0] cc:consistent ccv:consistent",
            "b.hist[1] cc:violation ccv:violation",
            "b.hist[2] cc:consistent ccv:consistent",
            "a.hist[0] cc:violation ccv:violation",
        ]
    "#]]
    .assert_debug_eq(&ran.verdicts());
    assert_eq!(ran.code, 1);
    assert_eq!(ran.err, "");
}

#[test]
fn the_json_is_what_the_contract_says() {
    let folder = Folder::new();
    folder.write("lost.hist", LOST);
    let mut line = folder.run("check lost.hist --model cc --format json").lines().remove(0);
    assert!(line["results"][0]["millis"].as_f64().is_some());
    line["results"][0]["millis"] = json!(0);
    let digest = line.as_object_mut().unwrap().remove("digest").unwrap();
    assert_eq!(digest.as_str().map(str::len), Some(64), "{digest}");
    let explanation = line["results"][0]["explanation"].take();
    assert!(explanation.as_str().unwrap().contains("t0:0"));
    let expected = json!({
        "source": "lost.hist", "index": 0, "sessions": 2, "operations": 4,
        "results": [{
            "model": "cc", "verdict": "violation", "pattern": "WriteCOInitRead",
            "certificate": {"kind": "cycle", "edges": [
                {"from": "t0:0", "to": "t0:1", "relation": "po"},
                {"from": "t0:1", "to": "t1:0", "relation": "wr"},
                {"from": "t1:0", "to": "t1:1", "relation": "po"},
                {"from": "t1:1", "to": "t0:0", "relation": "rw", "because": [
                    {"from": "init:x", "to": "t1:1", "relation": "wr"},
                    {"from": "init:x", "to": "t0:0", "relation": "po"}]}]},
            "explanation": null, "millis": 0}],
    });
    assert_eq!(line, expected);
}

#[test]
fn sequential_consistency_carries_an_order_to_replay() {
    let folder = Folder::new();
    folder.write("kept.hist", KEPT);
    let line = folder.run("check kept.hist --model sc --format json").lines().remove(0);
    let certificate = &line["results"][0]["certificate"];
    assert_eq!(certificate["kind"], "order");
    let order: Vec<&str> =
        certificate["order"].as_array().unwrap().iter().map(|op| op.as_str().unwrap()).collect();
    let place = |op: &str| order.iter().position(|other| *other == op).unwrap();
    assert_eq!(order.len(), 4);
    assert!(place("t0:0") < place("t0:1") && place("t0:1") < place("t1:0"));
}

#[test]
fn malformed_files_yield_no_verdict_and_spare_the_others() {
    let folder = Folder::new();
    folder
        .write("in/1.hist", KEPT)
        .write("in/2.hist", format!("{LOST}---\nt0: w(x,1) wrong(y\n---\n{LOST}\nt1: q("))
        .write("in/3.hist", LOST);
    let ran = folder.run("check in --model cc --format json");
    assert_eq!(ran.verdicts(), ["in/1.hist[0] cc:consistent", "in/3.hist[0] cc:violation"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("in/2.hist:4:") && ran.err.contains("in/2.hist:9:"), "{}", ran.err);
}

#[test]
fn one_bad_line_in_a_million_is_found() {
    let folder = Folder::new();
    let mut text = String::new();
    for i in 1..=1_000_000u32 {
        if i == 777_777 {
            text += "{\"session\":\"t0\",\"op\":\"wirte\",\"key\":\"x\",\"value\":1}\n";
        } else {
            text += &format!(
                "{{\"session\":\"t{}\",\"op\":\"write\",\"key\":\"x\",\"value\":{i}}}\n",
                i % 9
            );
        }
    }
    folder.write("big.jsonl", text);
    let ran = folder.run("check big.jsonl --model cc");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("big.jsonl:777777:"), "{}", ran.err);
}

#[test]
fn standard_input_is_detected_and_streamed() {
    let folder = Folder::new();
    let ran = folder.run_with("check --model cc --format json", LOST.as_bytes());
    assert_eq!(ran.verdicts(), ["<stdin>[0] cc:violation"]);
    let jsonl = folder.run_with("convert --to jsonl", LOST.as_bytes()).out;
    let ran = folder.run_with("check - --model cc --format json", jsonl.as_bytes());
    assert_eq!(ran.verdicts(), ["<stdin>[0] cc:violation"]);
}

#[test]
fn compressed_files_are_read_and_truncated_ones_are_not() {
    let folder = Folder::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(LOST.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    folder.write("whole.hist.gz", &gzip).write("cut.hist.gz", &gzip[..gzip.len() - 9]);
    assert_eq!(folder.run("check whole.hist.gz --model cc").code, 1);
    let ran = folder.run("check cut.hist.gz --model cc");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
}

#[test]
fn a_history_that_no_model_applies_to_is_refused() {
    let folder = Folder::new();
    folder
        .write("calls.hist", "t0: put(1,0) => null\n")
        .write("long.hist", "t0: [ w(x,1) w(y,1) ]\n")
        .write("kept.hist", KEPT);
    // Transactions are judged by isolation levels, but not by models of single operations.
    for (file, models) in [("calls.hist", &["cc", "all", "strongest"][..]), ("long.hist", &["cc"])]
    {
        for model in models {
            let ran = folder.run(&format!("check {file} kept.hist --model {model} --format json"));
            assert_eq!(ran.code, 2, "{file} {model}");
            assert_eq!(ran.lines().len(), 1, "{file} {model}");
            let words = match *model {
                "cc" => "cc does not",
                // Calls are judged by models of objects, if the object can be inferred.
                _ => "these may be calls of map or kv",
            };
            assert!(ran.err.contains(file) && ran.err.contains(words), "{}", ran.err);
        }
    }
}

#[test]
fn saved_verdicts_are_certified_and_forged_ones_rejected() {
    let folder = Folder::new();
    folder.write("in.hist", format!("{KEPT}---\n{LOST}"));
    let verdicts = folder.run("check in.hist --model all --format json").out;
    folder.write("verdicts.jsonl", &verdicts);
    let ran = folder.run("certify verdicts.jsonl");
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "22 accepted, 0 rejected, 0 undecided\n"),
        "{}",
        ran.err
    );

    folder.write("forged.jsonl", verdicts.replace("\"rw\"", "\"wr\""));
    let ran = folder.run("certify forged.jsonl");
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("rejected"), "{}", ran.out);

    // An operation named in a proof about another history may be missing in this one.
    folder.write("elsewhere.jsonl", verdicts.replace("\"t0:1\"", "\"t0:7\""));
    let ran = folder.run("certify elsewhere.jsonl");
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    assert!(ran.out.contains("rejected") && ran.out.contains("t0:7"), "{}", ran.out);

    folder.write("swapped.hist", format!("{LOST}---\n{KEPT}"));
    let ran = folder.run("certify verdicts.jsonl --history swapped.hist");
    assert_eq!(ran.code, 1);

    folder.write("cut.jsonl", &verdicts[..verdicts.len() / 2]);
    assert_eq!(folder.run("certify cut.jsonl").code, 2);
    assert_eq!(folder.run("certify missing.jsonl").code, 2);
}

#[test]
fn large_certificates_go_to_files_on_demand() {
    let folder = Folder::new();
    folder.run("generate -n 20000 -s 4 -v 50 -o big.hist");
    let ran = folder.run("check big.hist --model cc,cm --format json");
    let line = ran.lines().remove(0);
    assert_eq!(line["results"][0]["certificate"]["kind"], "order");
    assert!(line["results"][0]["certificate"]["omitted"].is_string());
    folder.write("omitted.jsonl", &ran.out);
    assert_eq!(folder.run("certify omitted.jsonl").code, 2);
    let kept = "\"certificate\":{\"kind\":\"order\",\"order\":[]}";
    let first = ran.out.find("\"certificate\":{").expect("cc has one");
    let end = first + ran.out[first..].find('}').expect("it ends") + 1;
    folder.write("half.jsonl", format!("{}{kept}{}", &ran.out[..first], &ran.out[end..]));
    let half = folder.run("certify half.jsonl");
    assert_eq!(half.code, 2, "the certificate for cm was omitted");
    assert!(half.out.contains("cc: rejected"), "{}", half.out);

    let ran = folder.run("check big.hist --model cc,cm --format json --certificates certificates");
    folder.write("verdicts.jsonl", &ran.out);
    let ran = folder.run("certify verdicts.jsonl");
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "2 accepted, 0 rejected, 0 undecided\n"),
        "{}",
        ran.err
    );
}

#[test]
fn strongest_walks_the_lattice() {
    let folder = Folder::new();
    folder
        .write("a.hist", "t1: w(z,1) w(x,1) w(y,1)\nt2: w(x,2) r(z,0) r(y,1) r(x,2)\n")
        .write("b.hist", "t1: w(x,1) r(x,2)\nt2: w(x,2) r(x,1)\n")
        .write("c.hist", KEPT)
        .write("d.hist", LOST)
        .write("e.hist", "t0: w(x,1) f w(y,1)\nt1: r(y,1) f r(x,0)\n");
    let lines = folder.run("check . --model strongest --format json").lines();
    let strongest: Vec<_> = lines.iter().map(|line| line["strongest"].to_string()).collect();
    assert_eq!(strongest, [r#"["tso"]"#, r#"["cm"]"#, r#"["sc"]"#, r#"["pso"]"#, "[]"]);
}

#[test]
fn a_definition_of_ones_own_works_where_an_id_does() {
    let folder = Folder::new();
    folder
        .write("lost.hist", LOST)
        .write(
            "coherence.cat",
            "\"Coherence\"\ninclude \"relations.cat\"\nacyclic poloc | wr as Coherence\n",
        )
        .write("broken.cat", "\"Broken\"\nacyclic po | nonsense\nempty [po]\n");
    let ran = folder.run("check lost.hist --model coherence.cat,cc --format json");
    assert_eq!(ran.verdicts(), ["lost.hist[0] coherence.cat:consistent cc:violation"]);
    folder.write("verdicts.jsonl", &ran.out);
    assert_eq!(folder.run("certify verdicts.jsonl").code, 0);
    let ran = folder.run("check lost.hist --model broken.cat");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("broken.cat:2:") && ran.err.contains("broken.cat:3:"), "{}", ran.err);
}

#[test]
fn a_batch_that_is_killed_leaves_complete_lines() {
    let folder = Folder::new();
    let mut many = String::new();
    for _ in 0..50_000 {
        many += LOST;
        many += "---\n";
    }
    folder.write("many.hist", many);
    let out = std::fs::File::create(folder.path().join("out.jsonl")).unwrap();
    let mut child = folder
        .command("check many.hist --model cc,ccv,cm --format json")
        .stdout(out)
        .spawn()
        .unwrap();
    // Whenever it is killed, the output ends with a whole line.
    while folder.read("out.jsonl").is_empty() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it was killed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let text = folder.read("out.jsonl");
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = Folder::new();
    folder.write("many.hist", format!("{LOST}---\n").repeat(20_000));
    let mut child = folder.command("check many.hist --model cc --format json").spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(141), "as if the signal had ended it");
}

#[test]
fn many_histories_take_a_line_each_and_a_table() {
    let folder = Folder::new();
    folder.write("a.hist", format!("{KEPT}---\n{KEPT}")).write("b.hist", LOST);
    let ran = folder.run("check a.hist --model cc,ccv");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(
        ran.out,
        "a.hist: 2 sessions, 4 operations, consistent\n\
         a.hist [1]: 2 sessions, 4 operations, consistent\n\n\
         2 histories\n\
         model  consistent  violation  undecided\n\
         ─────  ──────────  ─────────  ─────────\n\
         cc              2          0          0\n\
         ccv             2          0          0\n"
    );
    // Violations are explained, unless only the strongest models are requested.
    let ran = folder.run("check a.hist b.hist --model cc");
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("consistent\n\nb.hist: 2 sessions"), "{}", ran.out);
    assert!(ran.out.contains("WriteCOInitRead: a read returned"), "{}", ran.out);
    assert!(ran.out.ends_with("cc              2          1          0\n"), "{}", ran.out);
    let ran = folder.run("check a.hist b.hist --model strongest");
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("a.hist: 2 sessions, 4 operations, strongest sc\n"), "{}", ran.out);
    assert!(ran.out.contains("undecided  strongest\n"), "{}", ran.out);
    assert_eq!(ran.out.lines().count(), 3 + 2 + 2 + 11, "{}", ran.out);
}

#[test]
fn proofs_that_are_nested_deep_are_read_again() {
    let folder = Folder::new();
    folder.write("lost.hist", LOST);
    let judged = folder.run("check lost.hist --model cc --format json").lines().remove(0);
    let digest = judged["digest"].as_str().unwrap().to_owned();
    // Each premise has the same edge as its own premise, which proves nothing.
    let edge = r#"{"from":"t0:0","to":"t0:1","relation":"po""#;
    let line = |depth: usize| {
        let (open, close) = (format!("{edge},\"because\":[").repeat(depth), "]}".repeat(depth));
        let cycle = format!(r#"{{"kind":"cycle","edges":[{open}{edge}}}{close}]}}"#);
        let result = format!(
            r#"{{"model":"cc","verdict":"violation","pattern":"CyclicCO","certificate":{cycle}}}"#
        );
        format!(
            r#"{{"source":"lost.hist","index":0,"digest":"{digest}","sessions":2,"operations":4,"results":[{result}]}}"#
        )
    };
    folder.write("deep.jsonl", line(5_000));
    let ran = folder.run("certify deep.jsonl");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.ends_with("0 accepted, 1 rejected, 0 undecided\n"), "{}", ran.out);
    folder.write("deeper.jsonl", line(50_000));
    let ran = folder.run("certify deeper.jsonl");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("nested 100"), "{}", ran.err);
}

#[test]
fn a_device_is_written_and_not_replaced() {
    let folder = Folder::new();
    let ran = folder.run("generate -n 1000 -o /dev/full");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("No space left"), "{}", ran.err);
    assert!(!std::fs::metadata("/dev/full").unwrap().is_file());
    let ran = folder.run("generate -n 10 -o /dev/stdout");
    assert_eq!((ran.code, ran.out), (0, folder.run("generate -n 10").out), "{}", ran.err);
    // A folder is rejected before any work is done.
    let ran = folder.run("generate -n 10 -o .");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("Is a directory"), "{}", ran.err);
}

#[test]
fn a_file_that_is_not_there_is_said_in_one_way() {
    let folder = Folder::new();
    for command in [
        "check nothing.x --model cc",
        "convert nothing.x --to jsonl",
        "certify nothing.x",
        "litmus outcomes nothing.x --model sc",
        "contrast ./nothing.x sc",
    ] {
        let ran = folder.run(command);
        assert_eq!(ran.code, 2);
        let path = if command.contains("./") { "./nothing.x" } else { "nothing.x" };
        let expected =
            format!("error: cannot read {path}: No such file or directory (os error 2)\n");
        assert_eq!(ran.err, expected, "{command}");
    }
}

#[test]
fn every_engine_says_the_same_and_a_stronger_model_settles_what_is_large() {
    let folder = Folder::new();
    folder.write("sb.hist", "t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)\n");
    for engine in ["auto", "split", "frontier", "sat"] {
        let command = format!("check sb.hist --model sc,tso,pso --engine {engine} --format json");
        let lines = folder.run(&command).lines();
        let verdicts =
            lines[0]["results"].as_array().unwrap().iter().map(|r| r["verdict"].as_str());
        let verdicts: Vec<_> = verdicts.map(Option::unwrap).collect();
        assert_eq!(verdicts, ["violation", "consistent", "consistent"], "{engine}");
    }
    assert_eq!(folder.run("check sb.hist --model sc --engine none").code, 2);

    folder.run("generate --operations 1000 --output large.hist");
    let ran = folder.run("check large.hist --model rmo --format json");
    assert_eq!((ran.code, ran.lines()[0]["results"][0]["via"].as_str()), (0, Some("pso")));
    folder.write("verdicts.jsonl", &ran.out);
    let ran = folder.run("certify verdicts.jsonl");
    assert_eq!((ran.code, ran.out.as_str()), (0, "1 accepted, 0 rejected, 0 undecided\n"));
    let spoilt = folder.read("verdicts.jsonl").replace("\"via\":\"pso\"", "\"via\":\"cc\"");
    folder.write("verdicts.jsonl", &spoilt);
    assert_eq!(folder.run("certify verdicts.jsonl").code, 1);
}

#[test]
fn kernels_are_exact_and_add_up() {
    let folder = Folder::new();
    let figure = "t0: w(z,1) w(y,1) w(x,2)\nt1: w(x,4) w(a,1)\nt2: r(a,1) w(y,3) r(z,1)\n\
                  t3: r(a,1) w(z,3) r(y,1)\n";
    folder.write("a.hist", figure);
    let ran = folder.run("kernel a.hist --pairs");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("t1:0 w(x,4) before t0:2 w(x,2)  (search)\n"), "{}", ran.out);

    folder.write("b.hist", "t0: w(x,1) w(x,2)\nt1: w(x,3) r(x,3)\n");
    let ran = folder.run("kernel a.hist b.hist --pairs --format json");
    let lines = ran.lines();
    assert_eq!((ran.code, lines.len()), (0, 3));
    assert_eq!(lines[0]["list"], serde_json::json!([["t1:0", "t0:2", "search"]]));
    assert_eq!(lines[0]["found"], serde_json::json!({"ccv": 0, "ccm": 0, "wsc": 0}));
    assert_eq!((&lines[1]["pairs"], &lines[1]["kernel"]), (&3.into(), &1.into()));
    let totals = &lines[2]["totals"];
    assert_eq!((&totals["pairs"], &totals["kernel"]), (&6.into(), &2.into()));
    assert_eq!((&totals["wsc"]["whole"], &totals["wsc"]["part"]), (&0.5.into(), &0.0.into()));

    folder.write("sb.hist", "t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)\n");
    let ran = folder.run("kernel sb.hist --format json");
    assert_eq!((ran.code, ran.lines()[0]["verdict"].as_str()), (1, Some("violation")));
    folder.write("twice.hist", "t0: w(x,1)\nt1: w(x,1) r(x,1)\n");
    assert_eq!(folder.run("kernel twice.hist").code, 2);
    folder.write("final.hist", "t0: w(x,1)\nfinal: x=1\n");
    let ran = folder.run("kernel final.hist");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("refused: there is no kernel of a history with final"), "{}", ran.err);
    assert_eq!(folder.run("kernel a.hist --budget 0s").code, 3);
}
