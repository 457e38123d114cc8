//! `contrast` and `record`, run as commands.

mod support;

use support::Folder;

#[test]
fn a_difference_is_found_judged_and_drawn() {
    let folder = Folder::new();
    let ran = folder.run("contrast tso sc --draw pictures --format json");
    assert_eq!(ran.code, 1, "{}", ran.err);
    let line = &ran.lines()[0];
    assert_eq!(line["models"].to_string(), r#"["tso","sc"]"#);
    let sides = line["sides"].as_array().unwrap();
    assert_eq!(sides[0]["answer"], "separated");
    assert_eq!(sides[0]["history"], "t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)\n");
    let results = sides[0]["judged"]["results"].as_array().unwrap();
    assert_eq!(
        (&results[0]["model"], &results[0]["verdict"]),
        (&"tso".into(), &"consistent".into())
    );
    assert_eq!((&results[1]["model"], &results[1]["verdict"]), (&"sc".into(), &"violation".into()));
    assert!(results.iter().all(|result| result["certificate"].is_object()));
    assert_eq!(results[1]["drawing"], "pictures/tso-not-sc.svg");
    assert!(folder.read("pictures/tso-not-sc.svg").starts_with("<svg"));
    assert_eq!(sides[1]["answer"], "implied");
}

#[test]
fn a_difference_of_levels_is_drawn() {
    let folder = Folder::new();
    let ran = folder.run("contrast si ser --draw pictures --draw-as text");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("Drawn in pictures/si-not-ser.txt"), "{}", ran.out);
    assert!(folder.read("pictures/si-not-ser.txt").contains("rw"));
}

#[test]
fn exit_codes_say_what_was_found() {
    let folder = Folder::new();
    folder.write(
        "visible.cat",
        "\"No sessions\" include \"transactions.cat\" with ww from store-orders \
         acyclic causes | lift(ww) | forced(lift(wr)) as Fractured",
    );
    folder.write("same.cat", "\"SC again\"\ninclude \"sc.cat\"\n");
    folder.write("nof.cat", "\"no fences\"\nempty [F] as NoF\n");
    folder.write("bad.cat", "\"bad\"\nacyclic nothing\n");
    for (command, code, words) in [
        ("contrast sc same.cat --bound 3", 0, "sc allows nothing that same.cat forbids, up to 3"),
        ("contrast tso sc --bound 3", 0, "tso allows nothing that sc forbids, up to 3"),
        ("contrast cc sc --bound 4", 1, "cc allows and sc forbids, 4 operations in 2 sessions"),
        ("contrast same.cat cc --bound 4 --sessions 2 --variables 2", 1, "same.cat allows nothing"),
        ("contrast ccv rmo --bound 2 --rmws", 1, "rmw(x,0,1)"),
        ("contrast ccv rmo --bound 4 --fences", 1, "with fences"),
        ("contrast sc nof.cat --bound 3 --fences", 1, "1 operation in 1 session:\n\n    t0: f\n"),
        ("contrast tso sc --bound 1 --fences", 0, "sc forbids, up to 1 operation, with fences."),
        ("contrast tso sc --bound 2 --sessions 1", 0, "up to 2 operations, 1 session."),
        ("contrast wsc sc --bound 12 --budget 50ms", 3, "larger ones are undecided"),
        ("contrast si ser --bound 4", 1, "t0: [ w(x,1) r(y,0) ]\n    t1: w(y,1) r(x,0)\n"),
        ("contrast si ser", 1, "ser allows nothing that si forbids (proved"),
        (
            "contrast SER si --order none --bound 3",
            0,
            "si allows nothing that ser forbids, up to 3",
        ),
        ("contrast visible.cat ra --bound 4", 1, "visible.cat allows and ra forbids"),
        ("contrast si ser --format json", 1, "\"pattern\":\"CyclicSER\""),
    ] {
        let ran = folder.run(command);
        assert_eq!(ran.code, code, "{command}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains(words), "{command}: {}", ran.out);
    }
    for command in [
        "contrast sc sc",
        "contrast sc bad.cat",
        "contrast sc nosuch",
        "contrast sc tso --bound 99",
        "contrast ser sc",
        "contrast ser ser",
    ] {
        let ran = folder.run(command);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command}");
        assert!(!ran.err.is_empty(), "{command}");
    }
}

#[test]
fn what_the_processor_did_is_written_as_histories() {
    let folder = Folder::new();
    let ran =
        folder.run("record cpu --rounds 5 --operations 6 --fences 0.2 --rmws 0.2 -o run.jsonl");
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    let lines = folder.run("check run.jsonl --model cc --format json").lines();
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|line| line["operations"] == 12 && line["sessions"] == 2));
    let hist = folder.run("record cpu --rounds 3 --operations 1");
    assert_eq!(hist.out.matches("---").count(), 2, "{}", hist.out);
    assert_eq!(folder.run("record cpu --threads 0").code, 2);
}
