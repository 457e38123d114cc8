//! Behaviour and output of the other commands.

#[path = "../../protocol/tests/support/variants.rs"]
mod variants;

mod support;

use std::path::Path;

use expect_test::{expect, expect_file};
use support::{Folder, KEPT, LOST};

#[test]
fn a_violation_is_explained_in_sentences() {
    let folder = Folder::new();
    folder.write("lost.hist", LOST);
    let ran = folder.run("check lost.hist --model cc --shrink");
    let shown: String = ran
        .out
        .lines()
        .map(|line| {
            let has_time = [" µs", " ms", " s"].iter().any(|unit| line.ends_with(unit));
            if has_time { "(a row with a time)\n".to_owned() } else { format!("{line}\n") }
        })
        .collect();
    expect![[r#"
        lost.hist: 2 sessions, 4 operations
        model  verdict    pattern              time
        ─────  ─────────  ───────────────  ────────
        (a row with a time)

        The history violates cc.
        WriteCOInitRead: a read returned the initial value although a write to the same key was in its causal past.

          1. t0 wrote x=1 (t0:0), then wrote y=1 (t0:1).
          2. t1 read y=1 (t1:0), which t0 had written (t0:1), then read x=0 (t1:1).
          3. t1:1 read x=0, the initial value, so it happened before t0:0 overwrote it (rw).
        Together: t0:0 before t0:1 before t1:0 before t1:1 before t0:0, a cycle.

        Smallest part that still violates cc:

            t0: w(x,1) w(y,1)
            t1: r(y,1) r(x,0)

    "#]]
    .assert_eq(&shown);
}

#[test]
fn a_violation_is_drawn() {
    let folder = Folder::new();
    folder.write("lost.hist", LOST).write("kept.hist", KEPT);
    let ran = folder.run("check lost.hist kept.hist --model cc --draw pictures --format json");
    let drawing = ran.lines()[0]["results"][0]["drawing"].as_str().unwrap().to_owned();
    let svg = folder.read(&drawing);
    assert!(svg.starts_with("<svg") && svg.contains("r(x,0)"), "{svg}");
    assert!(ran.lines()[1]["results"][0].get("drawing").is_none());
}

#[test]
fn histories_convert_between_formats_and_back() {
    let folder = Folder::new();
    folder.write("lost.hist", LOST);
    for format in ["hist", "jsonl", "axe", "dbcop", "dbcop-json", "plume", "awdit"] {
        let ran = folder.run(&format!("convert lost.hist --to {format} -o out"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{format}");
        let ran = folder.run(&format!("check out --from {format} --model cc --format json"));
        assert_eq!(ran.verdicts(), ["out[0] cc:violation"], "{format}");
    }
    folder.write("calls.hist", "t0: put(1,0) => null\n");
    let ran = folder.run("convert calls.hist --to axe -o none");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("t0:0"), "{}", ran.err);
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("none")).collect();
    assert!(left.is_empty(), "nothing is left of what failed: {left:?}");
}

#[test]
fn generated_histories_keep_the_promise_of_their_memory() {
    let folder = Folder::new();
    for (memory, model) in [("sc", "cm"), ("ccv", "ccv"), ("cm", "cm"), ("tso", "cc")] {
        let args = format!("generate -m {memory} -n 300 -s 5 -v 5 --count 20 -o runs.hist");
        assert_eq!(folder.run(&args).code, 0);
        let ran = folder.run(&format!("check runs.hist --model {model} --format json"));
        assert_eq!((ran.code, ran.lines().len()), (0, 20), "{memory}");
    }
    folder.run("generate -m broken -n 300 -s 5 -v 5 --count 20 -o runs.jsonl");
    assert_eq!(folder.run("check runs.jsonl --model cc").code, 1);
    folder.run("generate -n 300 -s 5 -v 5 --plant 20 --count 5 -o planted.hist");
    assert_eq!(folder.run("check planted.hist --model cc").code, 1);
    let (a, b) =
        (folder.run("generate --seed 7 --to jsonl"), folder.run("generate --seed 7 --to jsonl"));
    assert_eq!(a.out, b.out);
    assert_ne!(a.out, folder.run("generate --seed 8 --to jsonl").out);
    assert_eq!(folder.run("generate --sessions 0").code, 2);
    assert_eq!(folder.run("generate --reads 1.5").code, 2);
}

#[test]
fn a_stream_and_a_history_are_the_same_events() {
    let folder = Folder::new();
    let hist = folder.run("generate -m tso -n 200 --seed 3 --to hist").out;
    let streamed = folder.run("generate -m tso -n 200 --seed 3 --to jsonl").out;
    let back = folder.run_with("convert --to hist", streamed.as_bytes()).out;
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&back), sorted(&hist));
}

#[test]
fn the_catalogue_is_listed_shown_and_drawn() {
    let folder = Folder::new();
    let list = folder.run("models").out;
    let levels = ["rc", "ra", "tcc", "pc", "psi", "si", "ser"];
    let models = ["cc", "ccv", "cm", "ccm", "wsc", "sc", "wccm", "wtso", "tso", "pso", "rmo"];
    for id in models.into_iter().chain(levels) {
        assert!(list.lines().any(|line| line.starts_with(&format!("{id} "))), "{id}");
        let shown = folder.run(&format!("models show {id}"));
        assert_eq!(shown.code, 0);
        assert!(shown.out.contains("acyclic") || shown.out.contains("irreflexive"), "{id}");
    }
    assert!(folder.run("models lattice").out.contains("ccv   => cc"));
    assert!(folder.run("models lattice --format dot").out.starts_with("digraph"));
    assert!(folder.run("models lattice --format svg").out.starts_with("<svg"));
    let ran = folder.run("models show cvv");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("ccv"), "{}", ran.err);
}

#[test]
fn the_reference_of_the_command_line_is_up_to_date() {
    let folder = Folder::new();
    let mut text = String::from(
        "# Command line\n\nWhat `consistory help` prints, command by command. A test keeps this page true.\n",
    );
    // Every command, followed by its subcommands in the order of the help text.
    let mut open = vec![String::new()];
    let mut seen = 0;
    while let Some(command) = open.pop() {
        let help = folder.run(&format!("{command} --help"));
        assert_eq!(help.code, 0, "{command}");
        let help: Vec<&str> = help.out.lines().map(str::trim_end).collect();
        if !command.is_empty() {
            let shown = help.join("\n");
            text += &format!("\n## consistory{command}\n\n```text\n{}\n```\n", shown.trim_end());
            seen += 1;
        }
        let listed = help.iter().skip_while(|line| **line != "Commands:").skip(1);
        let listed: Vec<String> = listed
            .take_while(|line| !line.is_empty())
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| *name != "help")
            .map(|name| format!("{command} {name}"))
            .collect();
        open.extend(listed.into_iter().rev());
    }
    assert!(seen > 20, "the commands were found");
    for command in ["check", "test", "litmus outcomes", "man"] {
        assert!(text.contains(&format!("\n## consistory {command}\n")), "{command} is missing");
    }
    expect_file!["../../../docs/command-line.md"].assert_eq(&text);
}

#[test]
fn protocols_are_proved_or_refuted() {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/protocols");
    let proved = folder.run(&format!("verify {corpus}/msi.m --format json"));
    assert_eq!(proved.code, 0);
    assert_eq!(proved.lines()[0]["verdict"], "consistent");
    let refuted = folder.run(&format!("verify {corpus}/store-buffers.m --format json"));
    assert_eq!(refuted.code, 1);
    assert_eq!(refuted.lines()[0]["verdict"], "violation");
    assert_eq!(refuted.lines()[0]["certificate"]["kind"], "cycle");
    let short = folder.run(&format!("verify {corpus}/msi.m --states 10 --format json"));
    assert_eq!((short.code, &short.lines()[0]["verdict"]), (3, &"undecided".into()));
    folder.write("wrong.m", "var x: nothing;");
    assert_eq!(folder.run("verify wrong.m").code, 2);
}

/// Without its marks, lazy caching fails under the order in which its stores happen; this is
/// reported.
#[test]
fn a_store_order_that_does_not_fit_is_no_violation() {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/protocols");
    let lazy = std::fs::read_to_string(format!("{corpus}/lazy-caching.m")).unwrap();
    let unmarked = lazy.lines().filter(|line| !line.contains("--@ serialize"));
    let unmarked: Vec<&str> = unmarked.collect();
    folder.write("lazy.m", unmarked.join("\n"));
    let ran = folder.run("verify lazy.m --format json");
    assert_eq!(ran.code, 3, "{}", ran.out);
    let meaning = ran.lines()[0]["meaning"].as_str().unwrap().to_owned();
    assert!(
        meaning.contains("stores take effect in an order other than the assumed one"),
        "{meaning}"
    );
    let hint = ran.lines()[0]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("when \"memory write"), "{hint}");
    assert!(hint.contains("--@ serialize"), "{hint}");
    let beside = ran.lines()[0]["beside"].as_str().unwrap().to_owned();
    assert!(beside.starts_with("The search went on"), "{beside}");
}

/// The first failing run is consistent, but a later one shows store buffering: the search continues
/// to it.
#[test]
fn a_violation_is_found_behind_runs_that_do_not_fit() {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/protocols");
    let buffers = std::fs::read_to_string(format!("{corpus}/store-buffers.m")).unwrap();
    let unmarked = buffers.lines().filter(|line| !line.contains("--@ serialize"));
    folder.write("buffers.m", unmarked.collect::<Vec<_>>().join("\n"));
    let ran = folder.run("verify buffers.m");
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("a run that is not:"), "{}", ran.out);
    assert!(ran.out.contains("take effect in another order than was taken"), "{}", ran.out);
}

/// If there are no loads and stores, nothing is proved, and the output says so.
#[test]
fn what_proves_nothing_says_so() {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/protocols");
    let text = std::fs::read_to_string(format!("{corpus}/serial.m")).unwrap();
    let without = |mark: &str| -> String {
        text.lines().filter(|line| !line.contains(mark)).collect::<Vec<_>>().join("\n")
    };
    folder.write("loads.m", without("--@ store"));
    folder.write("stores.m", without("--@ load"));
    folder.write("unmarked.m", without("--@"));
    folder.write("never.m", text.replacen("\"load\"", "\"load\" false &", 1));
    for (name, reason) in [
        ("loads.m", "no rule is marked as a store"),
        ("stores.m", "no rule is marked as a load"),
        ("unmarked.m", "no rule is marked as a load or a store"),
        ("never.m", "no run loads anything"),
    ] {
        let ran = folder.run(&format!("verify {name} --format json"));
        assert_eq!((ran.code, &ran.lines()[0]["verdict"]), (4, &"unproved".into()), "{name}");
        let said = ran.lines()[0]["reason"].as_str().unwrap().to_owned();
        assert!(said.starts_with(reason), "{name}: {said}");
    }
    let plain = folder.run("verify unmarked.m --plain --format json");
    assert_eq!((plain.code, &plain.lines()[0]["verdict"]), (0, &"holds".into()));
    folder.write("spaced.m", text.replace("--@", "-- @ "));
    assert_eq!(folder.run("verify spaced.m").code, 0);
    folder.write("empty.txt", "# nothing\n");
    let ran = folder.run("verify --descriptor empty.txt");
    assert_eq!(ran.code, 4, "{}", ran.out);
}

/// A run of lazy caching ends with pending stores: its descriptor gives them an order.
#[test]
fn descriptors_of_pending_stores_are_whole() {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/protocols");
    for seed in 0..20 {
        folder.run(&format!(
            "simulate {corpus}/lazy-caching.m -n 60 --seed {seed} --descriptor -o run.txt"
        ));
        let ran = folder.run("verify --descriptor run.txt");
        assert_eq!(ran.code, 0, "{seed}: {}", ran.out);
    }
}

#[test]
fn simulated_runs_are_checked() {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/protocols");
    folder.run(&format!("simulate {corpus}/store-buffers.m -n 200 --count 20 -o runs.hist"));
    assert_eq!(folder.run("check runs.hist --model sc").code, 1);
    assert_eq!(folder.run("check runs.hist --model tso").code, 0);
    folder.run(&format!("simulate {corpus}/mesi.m -n 500 --descriptor -o run.txt"));
    assert_eq!(folder.run("verify --descriptor run.txt").code, 0);
    let damaged: String = folder.read("run.txt").replacen("po", "STo", 1);
    folder.write("damaged.txt", &damaged);
    let ran = folder.run("verify --descriptor damaged.txt");
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("rejected at line"), "{}", ran.out);
    folder.write("garbled.txt", "1 ST(P0,B1,1)\n");
    assert_eq!(folder.run("verify --descriptor garbled.txt").code, 2);
}

/// A search that stops at a limit continues from its checkpoint, to the same verdict and run.
#[test]
fn a_search_goes_on_from_its_checkpoint() {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/protocols");
    let patch = format!("{corpus}/lazy-caching-overtaking.patch");
    folder.write("overtaking.m", variants::read(Path::new(&patch)));
    let file = "overtaking.m";
    let whole = folder.run(&format!("verify {file} --format json"));
    let first = folder.run(&format!("verify {file} --states 500 --checkpoint at.ckpt"));
    assert_eq!(first.code, 3);
    assert!(first.out.contains("go on from here with --resume at.ckpt"), "{}", first.out);
    let rest = folder.run(&format!("verify {file} --format json --resume at.ckpt"));
    assert_eq!((rest.code, whole.code), (1, 1));
    let (rest, whole) = (&rest.lines()[0], &whole.lines()[0]);
    for key in ["verdict", "states", "depth", "fired", "run", "history", "certificate"] {
        assert_eq!(rest[key], whole[key], "{key}");
    }
    let other = folder.run(&format!("verify {corpus}/msi.m --resume at.ckpt"));
    assert_eq!(other.code, 2);
    assert!(
        other.err.contains("at.ckpt: the checkpoint belongs to another description"),
        "{}",
        other.err
    );
    let mut damaged = std::fs::read(folder.path().join("at.ckpt")).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 4;
    folder.write("damaged.ckpt", damaged);
    let damaged = folder.run(&format!("verify {file} --resume damaged.ckpt"));
    assert_eq!(damaged.code, 2);
    assert!(damaged.err.contains("the checkpoint is damaged"), "{}", damaged.err);
    let both = folder.run(&format!("verify {file} {file} --checkpoint at.ckpt"));
    assert_eq!(both.code, 2);
}

/// A checkpoint replaces only a checkpoint: no other file, no link, no device.
#[cfg(unix)]
#[test]
fn a_checkpoint_replaces_only_a_checkpoint() {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/protocols");
    let run = |place: &str| {
        folder.run(&format!("verify {corpus}/lazy-caching.m --states 100 --checkpoint {place}"))
    };
    folder.write("mine.txt", "mine");
    std::os::unix::fs::symlink("mine.txt", folder.path().join("link.txt")).unwrap();
    for place in ["mine.txt", "link.txt"] {
        let refused = run(place);
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains("is not a checkpoint"), "{}", refused.err);
        assert_eq!(folder.read("mine.txt"), "mine");
    }
    // Nobody reads from the pipe: a search that waited for a reader would not end.
    std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert_eq!(run("pipe").code, 2);
    assert_eq!(run(".").code, 2);
    folder.write("target.ckpt", "");
    std::os::unix::fs::symlink("target.ckpt", folder.path().join("link.ckpt")).unwrap();
    assert!(run("link.ckpt").out.contains("--resume link.ckpt"));
    assert!(folder.path().join("link.ckpt").is_symlink());
    assert!(std::fs::metadata(folder.path().join("target.ckpt")).unwrap().len() > 100);
    // Twice in a row: the second checkpoint replaces the first.
    assert!(run("again.ckpt").out.contains("--resume again.ckpt"));
    assert!(run("again.ckpt").out.contains("--resume again.ckpt"));
    run("/dev/null");
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    assert!(!folder.path().join("again.ckpt.partial").exists());
}

/// Constants from the command line, bytes that are not UTF-8, and ignored deadlocks.
#[test]
fn descriptions_come_as_they_are() {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/protocols");
    let three = folder.run(&format!("verify {corpus}/msi.m -D PROCS=3 --format json"));
    assert_eq!((three.code, &three.lines()[0]["processors"]), (0, &3.into()));
    let unknown = folder.run(&format!("verify {corpus}/msi.m -D CACHES=3"));
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("there is no constant `CACHES`"), "{}", unknown.err);
    let mut text = b"-- caf\xe9\n".to_vec();
    text.extend(std::fs::read(format!("{corpus}/serial.m")).unwrap());
    folder.write("latin.m", &text);
    assert_eq!(folder.run("verify latin.m").code, 0);
    folder.write("stuck.m", "var x: 0..1; startstate x := 0; end; rule x = 0 ==> x := 1; end;");
    assert_eq!(folder.run("verify stuck.m --plain").code, 1);
    assert_eq!(folder.run("verify stuck.m --plain --no-deadlock").code, 0);
}

#[test]
fn a_folder_of_protocols_is_a_table() {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/protocols");
    for name in ["msi.m", "store-buffers.m"] {
        let text = std::fs::read_to_string(format!("{corpus}/{name}")).unwrap();
        folder.write(name, text);
    }
    folder.write("readme.txt", "no protocol");
    let ran = folder.run("verify .");
    assert_eq!(ran.code, 1);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].starts_with("✓ ./msi.m ") && lines[0].ends_with("sequentially consistent"));
    assert!(lines[1].starts_with("✗ ./store-buffers.m "), "{}", ran.out);
    assert_eq!(lines[2], "2 files: 1 fine, 1 wrong");
    let ran = folder.run("verify . --format json");
    assert_eq!(ran.lines().len(), 2);
    assert_eq!(ran.lines()[1]["verdict"], "violation");
}

#[test]
fn what_cannot_be_read_is_said_once_with_its_place() {
    let folder = Folder::new();
    folder.write("readme.m", "# A heading\n\nand # a line with a rule\n# and more\n");
    let ran = folder.run("verify readme.m");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("this is not a description in Murphi"), "{}", ran.err);
    assert!(ran.err.contains("readme.m: 1 error"), "{}", ran.err);
    folder.write("two.txt", "1 ST(P1,B1,1)\n1 -> x\n2 LD(P1,B1,1\n");
    let ran = folder.run("verify --descriptor two.txt");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("2 | 1 -> x"), "{}", ran.err);
    assert!(ran.err.contains("two.txt: 2 errors"), "{}", ran.err);
}
