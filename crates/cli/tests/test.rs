//! `consistory test` on collections of the JDK: known violations are found, and correct methods
//! pass.

mod support;

use support::Folder;

#[test]
fn a_broken_collection_is_reported_with_a_small_program() {
    let folder = Folder::new();
    let ran = folder.run(
        "test jdk:Broken --methods putIfAbsent,get --threads 2 --keys 1 --time 60s --failures 1 \
         --draw pictures --format json",
    );
    assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{}", ran.out);
    let lines = ran.lines();
    let (violation, summary) = (&lines[0], &lines[1]);
    assert_eq!(lines.len(), 2);
    assert_eq!(violation["model"], "linearizability");
    let calls: Vec<&str> = (violation["program"].as_array().unwrap().iter())
        .flat_map(|thread| thread.as_array().unwrap())
        .map(|call| call.as_str().unwrap())
        .collect();
    assert!(calls.len() <= 4, "{calls:?}");
    assert!(calls.iter().filter(|call| call.starts_with("putIfAbsent")).count() >= 2, "{calls:?}");
    assert_eq!(violation["history"].as_array().unwrap().len(), calls.len());
    assert!(violation["bad"].as_u64().unwrap() > 0);
    assert_eq!(violation["certificate"]["kind"], "unexplained");
    let drawing = folder.read(violation["drawing"].as_str().unwrap());
    assert!(drawing.contains("putIfAbsent"));
    assert_eq!((&summary["violations"], &summary["object"]), (&1.into(), &"map".into()));

    let command = "test jdk:Broken --methods putIfAbsent --keys 1 --time 60s --failures 1";
    let ran = folder.run(&format!("{command} --report report.html"));
    assert_eq!(ran.code, 1);
    let report = folder.read_report("report.html");
    let again = report.split_once("\"recheck\":\"").unwrap().1.split_once('"').unwrap().0;
    assert!(again.starts_with("consistory test jdk:Broken --seed "), "{again}");
    for option in ["--methods putIfAbsent", "--keys 1", "--time 60s", "--failures 1"] {
        assert!(again.contains(option), "{option} in {again}");
    }
    assert_eq!(folder.run(again.strip_prefix("consistory ").unwrap()).code, 1);
    for part in ["Broken as map, by linearizability", "  t0: putIfAbsent(0,", "t1: putIfAbsent(0,"]
    {
        assert!(ran.out.contains(part), "{part} in {}", ran.out);
    }
}

#[test]
fn a_locked_collection_is_clean() {
    let folder = Folder::new();
    for options in ["", " --clock plain", " --model levels", " --levels size=weak"] {
        let target = "test jdk:LinkedBlockingDeque --runs 2000 --rounds 100 --format json";
        let ran = folder.run(&format!("{target}{options}"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
        let summary = &ran.lines()[0];
        assert_eq!((&summary["violations"], &summary["bad_runs"]), (&0.into(), &0.into()));
        assert_eq!(summary["runs"], 2000);
        let levels = summary["levels"].as_object().unwrap();
        assert!(
            levels.len() > 10 && levels.values().all(|level| level == "complete"),
            "{levels:?}"
        );
    }
}

#[test]
fn collections_of_rust_are_tested_if_they_are_built_in() {
    let folder = Folder::new();
    let ran = folder.run("test rust:std::Mutex<VecDeque> --threads 2 --runs 2000 --format json");
    if !cfg!(feature = "collections") {
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        assert!(ran.err.contains("--features collections"), "{}", ran.err);
        return;
    }
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let summary = &ran.lines()[0];
    assert_eq!((&summary["runs"], &summary["object"]), (&2000.into(), &"queue".into()));
    let ran = folder.run(
        "test rust:crossbeam-skiplist --methods set,remove --threads 2 --time 60s --failures 1",
    );
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("remove(0)"), "{}", ran.out);
    for (args, expected) in [
        ("test rust:std::HashMap", "error: `std::HashMap` is not a collection of Rust"),
        ("test rust:scc --without fly", "error: scc::HashMap has no method `fly`"),
    ] {
        let ran = folder.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args}");
        assert!(ran.err.starts_with(expected), "{args}: {}", ran.err);
    }
}

#[test]
fn what_cannot_be_tested_is_said() {
    let folder = Folder::new();
    for (args, expected) in [
        ("test map", "error: `map` is not a target"),
        ("test jdk:HashMap", "error: `HashMap` is not a collection of the JDK that can be tested"),
        ("test jdk:Broken --methods put,fly", "error: Broken has no method `fly`"),
        ("test jdk:Broken --without fly", "error: Broken has no method `fly`"),
        ("test jdk:Broken --model sc", "error: `sc` is not a model of objects"),
        ("test jdk:Broken --levels fly=weak", "error: the object has no method `fly`"),
    ] {
        let ran = folder.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args}");
        assert!(ran.err.starts_with(expected), "{args}: {}", ran.err);
    }
    let nowhere = folder.path().join("nowhere");
    let ran = folder.command("test jdk:Broken").env("JAVA_HOME", &nowhere).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let message = String::from_utf8(ran.stderr).unwrap();
    assert!(message.starts_with("error: there is no `java"), "{message}");
    assert!(message.contains("install a JDK"), "{message}");
}
