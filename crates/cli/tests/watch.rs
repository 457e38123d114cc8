//! `consistory watch`: from standard input, a growing file and sockets.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

use support::Folder;

const GOOD: [&str; 6] = [
    r#"{"type":"invoke","session":"t0","call":"enqueue","args":[1]}"#,
    r#"{"type":"invoke","session":"t2","call":"enqueue","args":[2]}"#,
    r#"{"type":"ok","session":"t0"}"#,
    r#"{"type":"invoke","session":"t1","call":"dequeue"}"#,
    r#"{"type":"ok","session":"t1","returns":2}"#,
    r#"{"type":"info","session":"t2"}"#,
];

const BAD: [&str; 2] = [
    r#"{"type":"invoke","session":"t1","call":"dequeue"}"#,
    r#"{"type":"ok","session":"t1","returns":7}"#,
];

fn text(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_first_return_that_nothing_explains_ends_the_watch() {
    let folder = Folder::new();
    let ran = folder.run_with("watch --object queue", text(&GOOD).as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("consistent: 3 operations in 6 lines"), "{}", ran.out);

    let all = text(&GOOD) + &text(&BAD) + "this is not read any more\n";
    let ran = folder.run_with("watch --object queue", all.as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    assert_eq!(
        ran.out.lines().take(3).collect::<Vec<_>>(),
        [
            "violation: t1:1 dequeue() => 7 is not linearizable",
            "Line 8 is its return; nothing that happened before explains it.",
            "It could have returned 1.",
        ]
    );
    let ran = folder.run_with("watch --object queue --format json", all.as_bytes());
    let line = &ran.lines()[0];
    assert_eq!((&line["verdict"], &line["operation"]), (&"violation".into(), &"t1:1".into()));
    assert_eq!(line["possible"].to_string(), "[1]");
    assert_eq!(line["line"], 8);
}

#[test]
fn what_was_watched_can_be_checked_again() {
    let folder = Folder::new();
    folder.write("events.jsonl", text(&GOOD)).write("bad.jsonl", text(&GOOD) + &text(&BAD));
    for (name, code) in [("events.jsonl", 0), ("bad.jsonl", 1)] {
        let watched = folder.run(&format!("watch {name} --object queue"));
        let checked = folder.run(&format!("check {name} --object queue --model linearizability"));
        assert_eq!((watched.code, checked.code), (code, code), "{} {}", watched.out, checked.out);
    }
}

#[test]
fn what_is_generated_as_it_happens_can_be_watched() {
    let folder = Folder::new();
    for object in
        ["register", "kv", "counter", "set", "queue", "stack", "deque", "priority-queue", "lock"]
    {
        let lossy = "--events -n 400 --reads 0.6 --pending 0.02 --unannounced 0.3";
        let events = folder.run(&format!("generate --object {object} {lossy}")).out;
        let kinds = |kind: &str| events.matches(&format!("\"type\":\"{kind}\"")).count();
        assert_eq!(kinds("invoke"), 400, "{object}");
        assert!(kinds("info") > 0 && kinds("ok") + kinds("info") < 400, "{object}");
        let ran = folder.run_with(&format!("watch --object {object}"), events.as_bytes());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{object}: {}", ran.out);
        assert!(ran.out.starts_with("consistent: 400 operations"), "{object}: {}", ran.out);
    }
    // A planted violation is found online, and again in the recording.
    let planted = "generate --object register --events -n 400 --plant 1 --seed 7";
    folder.write("planted.jsonl", folder.run(planted).out);
    assert_eq!(folder.run("watch planted.jsonl --object register").code, 1);
    let check = "check planted.jsonl --object register --model linearizability";
    assert_eq!(folder.run(check).code, 1);
    // Events describe one run of one object.
    assert_eq!(folder.run("generate --events").code, 2);
    assert_eq!(folder.run("generate --object set --events --count 2").code, 2);
}

#[test]
fn calls_with_times_are_put_in_order() {
    let folder = Folder::new();
    let lines = [
        r#"{"session":"t0","call":"write","args":[1],"start":1,"end":3}"#,
        r#"{"session":"t1","call":"read","returns":1,"start":2,"end":5}"#,
        r#"{"session":"t2","call":"write","args":[2],"start":0,"end":6}"#,
        r#"{"session":"t1","call":"read","returns":2,"start":6,"end":8}"#,
        r#"{"session":"t0","call":"write","args":[3],"start":7}"#,
        r#"{"session":"t1","call":"read","returns":3,"start":9,"end":10}"#,
    ];
    let ran = folder.run_with("watch --object register", text(&lines).as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let ran = folder.run_with("watch --object register --window 1", text(&lines).as_bytes());
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("-:3: a call that started at 0 comes too late"), "{}", ran.err);
    assert!(ran.err.contains("--window"), "{}", ran.err);
}

#[test]
fn bad_lines_and_limits_have_their_own_exit_codes() {
    let folder = Folder::new();
    for (input, expected) in [
        ("{\"type\":\"ok\",\"session\":\"t0\"}\n", "t0 has no running call to complete"),
        ("{\"type\":\"invoke\",\"session\":\"t0\",\"call\":\"pop\",\"args\":[1]}\n", "argument"),
        ("nonsense\n", "expected a JSON object"),
        ("\u{fffd}{\n", "expected a JSON object"),
    ] {
        let ran = folder.run_with("watch --object queue", input.as_bytes());
        assert_eq!(ran.code, 2, "{input} {}", ran.out);
        assert!(ran.err.contains(expected), "{input} {}", ran.err);
    }
    let mut many = String::new();
    for i in 0..9 {
        many += &format!(
            "{{\"type\":\"invoke\",\"session\":\"t{i}\",\"call\":\"addLast\",\"args\":[{i}]}}\n"
        );
    }
    many += "{\"type\":\"ok\",\"session\":\"t0\"}\n";
    let ran = folder.run_with("watch --object deque --configurations 100", many.as_bytes());
    assert_eq!(ran.code, 3);
    assert!(ran.out.starts_with("undecided at t0:0: more than 100 configurations"), "{}", ran.out);
    // A queue's calls are judged without configurations; the violation is still found.
    let many = many.replace("addLast", "enqueue");
    let ran = folder.run_with("watch --object queue --configurations 100", many.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.out);
    let wrong = "{\"type\":\"invoke\",\"session\":\"t0\",\"call\":\"dequeue\"}\n\
                 {\"type\":\"ok\",\"session\":\"t0\",\"returns\":null}\n";
    let ran = folder
        .run_with("watch --object queue --configurations 100", format!("{many}{wrong}").as_bytes());
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.starts_with("violation: t0:1 dequeue() => null"), "{}", ran.out);
    assert!(ran.out.contains("It could have returned 0 or 1 or 2"), "{}", ran.out);
    let size = "{\"type\":\"invoke\",\"session\":\"t0\",\"call\":\"add\",\"args\":[1]}\n\
                {\"type\":\"invoke\",\"session\":\"t1\",\"call\":\"size\"}\n";
    let ran = folder.run_with("watch --object set", size.as_bytes());
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--whole"), "{}", ran.err);
    assert_eq!(folder.run_with("watch --object set --whole", size.as_bytes()).code, 0);
}

#[test]
fn a_growing_file_is_followed() {
    let folder = Folder::new();
    folder.write("events.jsonl", text(&GOOD));
    let child = folder
        .command("watch events.jsonl --follow --object queue --until-idle 20s")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let path = folder.path().join("events.jsonl");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    // Each line arrives in pieces.
    for line in BAD {
        for piece in [&line[..10], &line[10..], "\n"] {
            file.write_all(piece.as_bytes()).unwrap();
            file.flush().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let ran = folder.run("watch events.jsonl --follow --object register --until-idle 100ms");
    assert_eq!(ran.code, 2, "a register has no such methods: {}", ran.out);
}

/// Starts a watch that listens; returns its address.
fn listening(folder: &Folder, args: &str) -> (Child, BufReader<ChildStderr>, String) {
    let mut child = folder.command(args).stdin(Stdio::null()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening at ").expect(&line).to_owned();
    (child, errors, address)
}

#[test]
fn connections_are_taken_and_each_line_is_answered() {
    let folder = Folder::new();
    let args = "watch --listen 127.0.0.1:0 --object queue --until-idle 20s";
    let (child, _errors, address) = listening(&folder, args);
    let mut streams: Vec<TcpStream> =
        (0..2).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let mut readers: Vec<BufReader<TcpStream>> =
        streams.iter().map(|s| BufReader::new(s.try_clone().unwrap())).collect();
    for (i, line) in GOOD.iter().chain(&BAD).enumerate() {
        let (stream, reader) = (&mut streams[i % 2], &mut readers[i % 2]);
        writeln!(stream, "{line}").unwrap();
        let mut answer = String::new();
        // Lines after the end are not answered.
        if reader.read_line(&mut answer).is_ok() && !answer.is_empty() {
            assert_eq!(answer, "ok\n");
        }
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("t1:1 dequeue() => 7"));
}

#[cfg(unix)]
#[test]
fn a_unix_socket_is_listened_at_and_removed() {
    use std::os::unix::net::{UnixListener, UnixStream};
    let folder = Folder::new();
    let args = "watch --listen ./watch.socket --object queue --until-idle 300ms";
    let (child, _errors, address) = listening(&folder, args);
    assert_eq!(address, "./watch.socket");
    let mut stream = UnixStream::connect(folder.path().join("watch.socket")).unwrap();
    stream.write_all(text(&GOOD).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.starts_with("consistent: 3 operations in 6 lines"), "{shown}");
    assert!(!folder.path().join("watch.socket").exists());
    // An existing file or socket is not removed.
    folder.write("file.txt", "mine");
    drop(UnixListener::bind(folder.path().join("old.socket")).unwrap());
    for name in ["file.txt", "old.socket"] {
        let ran = folder.run(&format!("watch --listen ./{name} --object queue"));
        assert_eq!(ran.code, 2, "{name}");
        assert!(ran.err.contains("the path already exists"), "{}", ran.err);
        assert!(std::fs::symlink_metadata(folder.path().join(name)).is_ok(), "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_watch_removes_its_socket_and_nothing_else() {
    let folder = Folder::new();
    for is_replaced in [false, true] {
        let (mut child, _errors, _) =
            listening(&folder, "watch --listen ./watch.socket --object queue");
        let path = folder.path().join("watch.socket");
        if is_replaced {
            std::fs::remove_file(&path).unwrap();
            folder.write("watch.socket", "mine");
        }
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        child.wait().unwrap();
        assert_eq!(path.exists(), is_replaced);
    }
}

#[test]
fn a_client_that_crashes_ends_its_own_lines_only() {
    let folder = Folder::new();
    let args = "watch --listen 127.0.0.1:0 --object queue --until-idle 1s";
    let (child, _errors, address) = listening(&folder, args);
    let say = |stream: &mut TcpStream, line: &str| {
        writeln!(stream, "{line}").unwrap();
        let mut answer = [0; 3];
        std::io::Read::read_exact(stream, &mut answer).unwrap();
    };
    let invoke = r#"{"type":"invoke","session":"t0","call":"enqueue","args":[1]}"#;
    let mut crashing = TcpStream::connect(&address).unwrap();
    say(&mut crashing, invoke);
    crashing.write_all(b"{\"type\":\"ok\",\"ses").unwrap();
    drop(crashing);
    let mut other = TcpStream::connect(&address).unwrap();
    say(&mut other, r#"{"type":"invoke","session":"t1","call":"dequeue"}"#);
    say(&mut other, r#"{"type":"ok","session":"t1","returns":1}"#);
    let output = child.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.starts_with("consistent: 2 operations"), "{shown}");
}

#[test]
fn isolation_levels_are_judged_while_transactions_come() {
    let folder = Folder::new();
    let skew = [
        r#"{"session":"t0","txn":0,"op":"write","key":"x","value":1}"#,
        r#"{"session":"t0","txn":0,"op":"read","key":"y","value":0}"#,
        r#"{"session":"t1","txn":0,"op":"write","key":"y","value":1}"#,
        r#"{"session":"t1","txn":0,"op":"read","key":"x","value":0}"#,
    ];
    let ran = folder.run_with("watch --model rc,ra,tcc,si,ser", text(&skew).as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    let first = "ser: violation WriteSkew, complete with the transaction of t1 that ends in line 4";
    assert!(ran.out.starts_with(first), "{}", ran.out);
    assert!(ran.out.contains("\nsi: consistent\n(2 transactions in 4 lines)\n"), "{}", ran.out);

    // The same history as calls of `txn`, as events and with times.
    let calls = [
        r#"{"type":"invoke","session":"t0","call":"txn","args":[[["append","x",1],["r","y",null]]]}"#,
        r#"{"type":"invoke","session":"t1","call":"txn","args":[[["append","y",1],["r","x",null]]]}"#,
        r#"{"type":"ok","session":"t0","returns":[["append","x",1],["r","y",[]]]}"#,
        r#"{"type":"ok","session":"t1","returns":[["append","y",1],["r","x",[]]]}"#,
    ];
    let ran = folder.run_with("watch --model si,ser --format json", text(&calls).as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    let lines = ran.lines();
    assert_eq!((&lines[0]["model"], &lines[0]["line"]), (&"ser".into(), &4.into()));
    assert_eq!((&lines[1]["model"], &lines[1]["verdict"]), (&"si".into(), &"consistent".into()));

    // A stale read is allowed unless real time counts.
    let stale = [
        r#"{"session":"t0","call":"txn","args":[[["w","x",1]]],"returns":[["w","x",1]],"start":1,"end":2}"#,
        r#"{"session":"t1","call":"txn","args":[[["r","x",null]]],"returns":[["r","x",null]],"start":3,"end":4}"#,
    ];
    let ran = folder.run_with("watch --model ser", text(&stale).as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let ran = folder.run_with("watch --model ser --order realtime", text(&stale).as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    assert!(ran.out.starts_with("ser: violation StaleRead"), "{}", ran.out);
}

#[test]
fn watching_levels_says_what_it_cannot_judge() {
    let folder = Folder::new();
    let ran = folder.run_with("watch --model cc", b"");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("cc is not an isolation level"), "{}", ran.err);
    let write = r#"{"session":"t0","txn":0,"op":"write","key":"x","value":1}"#;
    let again = r#"{"session":"t1","txn":0,"op":"write","key":"x","value":1}"#;
    let ran = folder.run_with("watch --model ser", text(&[write, again]).as_bytes());
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("the value 1 is written to x a second time"), "{}", ran.err);

    // A version that is forgotten before it is read.
    let mut lines: Vec<String> = (1..200)
        .map(|i| format!(r#"{{"session":"t0","txn":{i},"op":"write","key":"x","value":{i}}}"#))
        .collect();
    lines.push(r#"{"session":"t1","txn":0,"op":"read","key":"x","value":2}"#.to_owned());
    let all: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = folder.run_with("watch --model rc,ser --window 20", all.as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (3, ""), "{}", ran.out);
    assert!(ran.out.starts_with("rc: undecided: 1 reads of versions"), "{}", ran.out);
    let ran = folder.run_with("watch --model rc,ser", all.as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
}

/// Sends a line and returns the answer, without its end; empty if the connection was closed.
fn asked(stream: &mut (impl Read + Write), line: &str) -> String {
    writeln!(stream, "{line}").unwrap();
    answer(stream)
}

/// Reads the next answer; empty if the connection was closed.
fn answer(stream: &mut impl Read) -> String {
    let mut answer = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).is_ok_and(|read| read == 1) && byte[0] != b'\n' {
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

fn ended(child: Child, mut errors: BufReader<ChildStderr>) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().unwrap();
    let mut warned = String::new();
    errors.read_to_string(&mut warned).unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), warned)
}

const ENQUEUE: &str = r#"{"type":"invoke","session":"SESSION","call":"enqueue","args":[VALUE]}"#;

fn enqueue(session: &str, value: i64) -> String {
    ENQUEUE.replace("SESSION", session).replace("VALUE", &value.to_string())
}

#[test]
fn a_malformed_line_ends_its_own_connection_only() {
    let folder = Folder::new();
    let args = "watch --listen 127.0.0.1:0 --object queue --until-idle 1500ms";
    for (wrong, reason) in [
        (&b"nonsense\n"[..], "expected a JSON object"),
        (b"\xff\xfe\n", "not UTF-8"),
        (
            br#"{"type":"invoke","session":"t1","cal":"dequeue"}
"#,
            "unknown field",
        ),
        (
            br#"{"type":"ok","session":"nobody"}
"#,
            "no running call",
        ),
        (
            br#"{"type":"invoke","session":"t1","call":"dequeue"}
"#,
            "still running",
        ),
        (
            br#"{"type":"invoke","session":"t5","call":"fly"}
"#,
            "no method",
        ),
        (
            br#"{"session":"t5","call":"dequeue","returns":1,"start":1,"end":2}
"#,
            "events and whole calls",
        ),
    ] {
        let (child, errors, address) = listening(&folder, args);
        let [mut good, mut bad] = [0; 2].map(|_| TcpStream::connect(&address).unwrap());
        assert_eq!(asked(&mut good, &enqueue("t0", 1)), "ok");
        // This call is unfinished when its client is rejected, so it may have taken effect.
        assert_eq!(asked(&mut bad, &enqueue("t1", 2)), "ok");
        bad.write_all(wrong).unwrap();
        let mut found = answer(&mut bad);
        if found == "ok" {
            found = answer(&mut bad);
        }
        assert!(found.starts_with("error: ") && found.contains(reason), "{reason}: {found}");
        assert_eq!(answer(&mut bad), "", "the connection is closed");
        assert_eq!(asked(&mut good, r#"{"type":"ok","session":"t0"}"#), "ok");
        let mut third = TcpStream::connect(&address).unwrap();
        for value in [2, 1] {
            assert_eq!(
                asked(&mut third, r#"{"type":"invoke","session":"t2","call":"dequeue"}"#),
                "ok"
            );
            let returned = format!(r#"{{"type":"ok","session":"t2","returns":{value}}}"#);
            assert_eq!(asked(&mut third, &returned), "ok");
        }
        let (code, shown, warned) = ended(child, errors);
        assert_eq!(code, Some(2), "{shown}{warned}");
        assert!(shown.starts_with("consistent: 4 operations"), "{shown}");
        assert!(shown.contains("1 line was rejected"), "{shown}");
        assert!(warned.contains(reason) && warned.contains("warning: connection 1"), "{warned}");
    }
}

#[cfg(unix)]
#[test]
fn rejected_lines_are_counted_in_every_verdict() {
    use std::os::unix::net::UnixStream;
    let folder = Folder::new();
    // Whole calls: the first of them turns out to be wrong when it is judged.
    let args = "watch --listen ./s --object queue --until-idle 1s --format json";
    let (child, errors, _) = listening(&folder, args);
    let connect = || UnixStream::connect(folder.path().join("s")).unwrap();
    let (mut one, mut other) = (connect(), connect());
    let call = |method: &str, returns: &str, start: i64| {
        format!(
            r#"{{"session":"a{start}","call":"{method}","returns":{returns},"start":{start},"end":{}}}"#,
            start + 1
        )
    };
    assert_eq!(asked(&mut one, &call("fly", "1", 1)), "ok");
    assert_eq!(asked(&mut other, &call("dequeue", "null", 3)), "ok");
    let (code, shown, warned) = ended(child, errors);
    assert_eq!(code, Some(2), "{shown}{warned}");
    let line: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&line["verdict"], &line["rejected"]), (&"consistent".into(), &1.into()));

    // A violation keeps its exit code.
    let args = "watch --listen ./s --object queue --until-idle 20s";
    let (child, errors, _) = listening(&folder, args);
    let (mut one, mut other) = (connect(), connect());
    assert!(asked(&mut one, "{}").starts_with("error: "));
    assert_eq!(asked(&mut other, r#"{"type":"invoke","session":"t2","call":"dequeue"}"#), "ok");
    asked(&mut other, r#"{"type":"ok","session":"t2","returns":7}"#);
    let (code, shown, warned) = ended(child, errors);
    assert_eq!(code, Some(1), "{shown}{warned}");
    assert!(shown.contains("1 line was rejected"), "{shown}");

    // Transactions: the operations of a transaction are judged together, when it is complete.
    let args = "watch --listen ./s --model si,ser --until-idle 1s";
    let (child, errors, _) = listening(&folder, args);
    let (mut one, mut other) = (connect(), connect());
    let write = |session: &str, key: &str| {
        format!(r#"{{"session":"{session}","txn":1,"op":"write","key":"{key}","value":1}}"#)
    };
    assert!(asked(&mut one, "[]").starts_with("error: "));
    assert_eq!(asked(&mut other, &write("t0", "x")), "ok");
    let mut third = connect();
    assert_eq!(asked(&mut third, r#"{"session":"t1","op":"wri","key":"x","value":1}"#), "ok");
    assert!(answer(&mut third).starts_with("error: "));
    assert_eq!(asked(&mut other, &write("t0", "y")), "ok");
    let (code, shown, warned) = ended(child, errors);
    assert_eq!(code, Some(2), "{shown}{warned}");
    assert!(shown.contains("si: consistent\nser: consistent\n"), "{shown}");
    assert!(shown.contains("(1 transactions in 3 lines)\n2 lines were rejected"), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_client_need_not_read_its_answers() {
    use std::os::unix::net::UnixStream;
    let folder = Folder::new();
    let args = "watch --listen ./s --object register --until-idle 1s";
    let (child, errors, _) = listening(&folder, args);
    let mut stream = UnixStream::connect(folder.path().join("s")).unwrap();
    for value in 0..3000 {
        let call = format!(r#"{{"type":"invoke","session":"t0","call":"write","args":[{value}]}}"#);
        writeln!(stream, "{call}\n{{\"type\":\"ok\",\"session\":\"t0\"}}").unwrap();
    }
    let (code, shown, warned) = ended(child, errors);
    assert_eq!(code, Some(0), "{shown}{warned}");
    assert!(shown.starts_with("consistent: 3000 operations in 6000 lines"), "{shown}");
}
