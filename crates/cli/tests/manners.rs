//! Conventions of the command line: defaults, colours, amount of output, manual pages.

mod support;

use support::{Folder, KEPT, LOST};

const QUEUE: &str = "t0: enqueue(1) @1..2 enqueue(2) @3..4\nt1: dequeue() => 2 @5..6\n";

#[test]
fn without_a_model_the_strongest_are_found_for_registers_and_for_calls() {
    let folder = Folder::new();
    folder.write("kept.hist", KEPT).write("queue.hist", QUEUE);
    let lines = folder.run("check kept.hist queue.hist --format json").lines();
    assert_eq!(lines[0]["strongest"][0], "sc");
    assert_eq!(lines[1]["object"], "queue");
    assert!(lines[1]["strongest"].as_array().is_some());
    assert_eq!(lines[1]["results"].as_array().unwrap().len(), 6);
    let all = folder.run("check queue.hist --model ALL --format json").lines();
    assert_eq!(all[0]["results"].as_array().unwrap().len(), 6);
    assert!(all[0].get("strongest").is_none());
    let page = folder.run("check queue.hist").out;
    assert!(page.starts_with("queue.hist: 2 sessions, 3 operations, calls of queue\n"), "{page}");
}

#[test]
fn an_unknown_model_lists_every_family_and_suggests_the_nearest() {
    let folder = Folder::new();
    folder.write("kept.hist", KEPT);
    let ran = folder.run("check kept.hist --model ccvv");
    assert_eq!(ran.code, 2);
    for said in [
        "`ccvv`",
        "did you mean `ccv`",
        "models of registers are cc",
        "models of transactions are rc",
        "linearizability",
    ] {
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    let ran = folder.run("check kept.hist --model serializable");
    assert!(ran.err.contains("did you mean `ser`?"), "{}", ran.err);
}

#[test]
fn quiet_leaves_the_exit_code_and_verbose_explains_everything() {
    let folder = Folder::new();
    folder.write("kept.hist", KEPT).write("lost.hist", LOST).write("bad.hist", "t0: w(x 1)\n");
    let quiet = folder.run("check kept.hist lost.hist --model cc --quiet");
    assert_eq!((quiet.code, &*quiet.out, &*quiet.err), (1, "", ""));
    let quiet = folder.run("check bad.hist --model cc -q");
    assert_eq!((quiet.code, &*quiet.out), (2, ""));
    assert!(quiet.err.contains("bad.hist:1:9"), "{}", quiet.err);
    let plain = folder.run("check kept.hist kept.hist --model cc").out;
    assert!(!plain.contains("satisfies"), "{plain}");
    let verbose = folder.run("check kept.hist kept.hist --model cc -v").out;
    assert_eq!(verbose.matches("The history satisfies cc").count(), 2, "{verbose}");
    assert_eq!(folder.run("check kept.hist -q -v").code, 2);
}

#[test]
fn colours_are_used_when_they_are_wanted() {
    let folder = Folder::new();
    folder.write("lost.hist", LOST);
    let escape = '\u{1b}';
    assert!(!folder.run("check lost.hist --model cc").out.contains(escape));
    assert!(folder.run("check lost.hist --model cc --color always").out.contains(escape));
    assert!(!folder.run("--color never check lost.hist --model cc").out.contains(escape));
    assert!(folder.run("check missing.hist --color always").err.contains(escape));
    assert_eq!(folder.run("check lost.hist --color sometimes").code, 2);
}

#[test]
fn manual_pages_come_from_the_help() {
    let folder = Folder::new();
    let page = folder.run("man").out;
    assert!(page.contains(".TH consistory 1"), "{page}");
    assert_eq!(folder.run("man --output pages").code, 0);
    assert!(folder.read("pages/consistory-check.1").contains("Decide whether recorded histories"));
    assert!(folder.read("pages/consistory-litmus-run.1").contains(".TH"));
}

#[test]
fn everything_keeps_to_the_width_of_the_terminal() {
    let folder = Folder::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for (name, from) in [
        ("runs", "corpus/histories"),
        ("levels", "corpus/transactions"),
        ("calls", "corpus/objects"),
        ("tests", "corpus/litmus/x86"),
        ("protocols", "corpus/protocols"),
    ] {
        std::os::unix::fs::symlink(format!("{root}/{from}"), folder.path().join(name)).unwrap();
    }
    folder.write(
        "events.jsonl",
        concat!(
            "{\"type\":\"invoke\",\"session\":\"alice\",\"call\":\"write\",\"args\":[1]}\n",
            "{\"type\":\"ok\",\"session\":\"alice\"}\n",
            "{\"type\":\"invoke\",\"session\":\"bob\",\"call\":\"read\"}\n",
            "{\"type\":\"ok\",\"session\":\"bob\",\"returns\":0}\n",
        ),
    );
    for (command, least) in [
        ("check runs --model sc,tso", 100),
        ("check runs/message-passing.hist", 20),
        ("check levels --model ser,si", 100),
        ("check levels/long-fork.hist --anomalies", 10),
        ("check calls --model linearizability --shrink", 100),
        ("litmus outcomes tests/IRIW.litmus --model sc,tso --program --witness", 40),
        ("litmus outcomes tests --model sc,tso,pso", 20),
        ("litmus contrast --left tso --right pso --bound 6", 5),
        ("contrast tso sc", 10),
        ("contrast si ser", 5),
        ("models", 50),
        ("models lattice", 20),
        ("atlas --bound 3", 20),
        ("verify protocols/store-buffers.m", 20),
        ("watch events.jsonl --object register", 4),
        ("test --list", 20),
        ("test sqlite --time 300ms --workload list-append --output run --clients 3", 10),
    ] {
        for columns in [60, 48] {
            let lines = folder.run_on_terminal(command, columns);
            assert!(lines.len() >= least, "{command}: {lines:?}");
            for line in lines {
                // The name of a file that is too long by itself is not broken.
                let is_name = line.trim().split(' ').count() <= 2;
                let width = line.chars().count();
                assert!(width <= columns.into() || is_name, "{command}, {columns}: {line}");
            }
        }
    }
}
