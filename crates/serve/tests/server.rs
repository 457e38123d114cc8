//! The server answers valid requests, rejects others, and survives misbehaving clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use consistory_serve::{Limits, Server, examples};
use serde_json::{Value, json};

/// A server that runs until it is dropped.
struct Running {
    address: SocketAddr,
    token: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(limits: Limits) -> Self {
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), limits).unwrap();
        let address = server.address();
        let token = server.url().split_once("token=").unwrap().1.to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || server.run(&flag).unwrap()));
        Running { address, token, stop, thread }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends bytes and returns the status and the body of the answer.
    fn send(&self, bytes: &[u8]) -> (u16, String) {
        let mut stream = self.connect();
        // A server that rejects early closes its side before everything is sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
    }

    fn get(&self, target: &str) -> (u16, String) {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).as_bytes())
    }

    fn judge(&self, question: &Value) -> Value {
        let body = question.to_string();
        let (status, answer) = self.send(
            format!(
                "POST /api/judge HTTP/1.1\r\nHost: {}\r\nX-Token: {}\r\nContent-Length: {}\r\n\r\n{body}",
                self.address,
                self.token,
                body.len()
            )
            .as_bytes(),
        );
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(&answer).unwrap()
    }

    fn works(&self) -> bool {
        let answer = self.judge(&json!({
            "kind": "history", "text": "t0: w(x,1)\nt1: r(x,1) r(x,0)", "models": ["cc"],
        }));
        answer["cases"][0]["rows"][0]["cells"][1] == "violation"
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[test]
fn the_page_needs_its_token() {
    let server = Running::start(Limits::default());
    let (status, page) = server.get(&format!("/?token={}", server.token));
    assert_eq!(status, 200);
    assert!(page.starts_with("<!doctype html>") && page.contains(&server.token));
    assert_eq!(server.get("/").0, 403);
    assert_eq!(server.get("/?token=").0, 403);
    assert_eq!(server.get(&format!("/?token={}x", server.token)).0, 403);
    let host = server.address;
    let with_cookie = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nCookie: a=b; consistory{}={}\r\n\r\n",
        host.port(),
        server.token
    );
    assert_eq!(server.send(with_cookie.as_bytes()).0, 200);
    let post = |extra: &str| {
        format!("POST /api/judge HTTP/1.1\r\nHost: {host}\r\n{extra}Content-Length: 2\r\n\r\n{{}}")
    };
    assert_eq!(server.send(post("").as_bytes()).0, 403);
    assert_eq!(server.send(post("X-Token: wrong\r\n").as_bytes()).0, 403);
    // A page of another origin has at most the cookie, which is not sufficient.
    let cookie = format!("Cookie: consistory{}={}\r\n", host.port(), server.token);
    assert_eq!(server.send(post(&cookie).as_bytes()).0, 403);
}

#[test]
fn another_name_for_the_address_is_refused() {
    let server = Running::start(Limits::default());
    let ask = |host: &str| {
        let token = &server.token;
        server.send(format!("GET /?token={token} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).0
    };
    let port = server.address.port();
    assert_eq!(ask(&format!("localhost:{port}")), 200);
    assert_eq!(ask(&format!("127.0.0.1:{port}")), 200);
    assert_eq!(ask(&format!("evil.example:{port}")), 421);
    assert_eq!(ask("10.0.0.1"), 421);
}

#[test]
fn nothing_but_the_page_is_there() {
    let server = Running::start(Limits::default());
    for path in [
        "/etc/passwd",
        "/../../etc/passwd",
        "//etc/passwd",
        "/%2e%2e/Cargo.toml",
        "/assets/page.js",
    ] {
        assert_eq!(server.get(path).0, 404, "{path}");
    }
    assert_eq!(
        server.send(format!("PUT / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes()).0,
        405
    );
    // Models, objects and includes that are paths are not opened.
    let history = "t0: w(x,1)\nt1: r(x,1)";
    for model in ["/etc/passwd", "../models/cc.cat", "my.cat"] {
        let answer =
            server.judge(&json!({ "kind": "history", "text": history, "models": [model] }));
        assert!(answer["cases"].is_null() && answer["message"].is_string(), "{answer}");
    }
    let calls = "t0: enqueue(1) @1..2";
    let answer = server.judge(
        &json!({ "kind": "history", "text": calls, "object": "corpus/objects/buffer.object" }),
    );
    assert!(answer["cases"].is_null(), "{answer}");
    let include = "include \"/etc/passwd\"\nacyclic po as X\n";
    let answer = server.judge(&json!({ "kind": "model", "text": include, "against": "sc" }));
    assert_eq!(answer["errors"][0]["line"], 1, "{answer}");
    assert!(!answer.to_string().contains("root:"));
}

#[test]
fn every_example_has_an_answer() {
    let server =
        Running::start(Limits { analysis_time: Duration::from_secs(60), ..Limits::default() });
    for example in examples() {
        let against = example.models.first().copied().unwrap_or("");
        let answer = server.judge(&json!({
            "kind": example.kind, "text": example.text, "models": example.models,
            "object": example.object, "against": against,
        }));
        assert!(answer["cases"][0]["rows"][0].is_object(), "{}: {answer}", example.title);
    }
}

#[test]
fn errors_have_places() {
    let server = Running::start(Limits::default());
    for (kind, text, line) in [
        ("history", "t0: w(x,1)\nt1: r(x\n", 2),
        ("litmus", "X86 SB\n{ x=0; }\n P0 ;\n MOVE ;\nexists (x=1)\n", 4),
        ("protocol", "var x: 0..3;\nrule x = ==> x := 1; end;\n", 2),
        ("model", "\"M\"\nacyclic po | nonsense as X\n", 2),
    ] {
        let answer = server.judge(&json!({ "kind": kind, "text": text, "against": "sc" }));
        assert_eq!(answer["errors"][0]["line"], line, "{kind}: {answer}");
        assert!(answer["errors"][0]["column"].as_u64().unwrap() > 0);
    }
    assert!(server.judge(&json!({ "kind": "poem", "text": "" }))["message"].is_string());
    assert!(server.judge(&json!([1, 2]))["message"].is_string());
}

#[test]
fn a_question_that_takes_too_long_ends_undecided() {
    let limits = Limits { analysis_time: Duration::from_millis(50), ..Limits::default() };
    let server = Running::start(limits);
    let protocol = include_str!("../../../corpus/protocols/directory.m");
    let answer = server.judge(&json!({ "kind": "protocol", "text": protocol }));
    assert_eq!(answer["cases"][0]["rows"][0]["cells"][1], "undecided", "{answer}");
}

#[test]
fn garbage_and_oversized_requests_are_refused() {
    let server = Running::start(Limits { body_bytes: 10_000, ..Limits::default() });
    assert_eq!(server.send(b"\x00\x01\x02 garbage \xff\r\n\r\n").0, 400);
    assert_eq!(server.send(b"GET\r\n\r\n").0, 400);
    let host = server.address;
    let head = |lines: &str| format!("POST /api/judge HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n");
    assert_eq!(server.send(head("Content-Length: 10001\r\n").as_bytes()).0, 413);
    assert_eq!(server.send(head("Content-Length: 99999999999999999999\r\n").as_bytes()).0, 400);
    assert_eq!(server.send(head("Content-Length: -1\r\n").as_bytes()).0, 400);
    assert_eq!(server.send(head("Transfer-Encoding: chunked\r\n").as_bytes()).0, 400);
    assert_eq!(server.send(head(&format!("A: {}\r\n", "x".repeat(20_000))).as_bytes()).0, 431);
    assert_eq!(server.send(head(&"A: b\r\n".repeat(100)).as_bytes()).0, 431);
    assert_eq!(server.send("GET / HTTP/1.1\r\n\r\n".as_bytes()).0, 421, "no host");
    // Random bytes, the same in every run.
    let mut seed = 7u64;
    for _ in 0..200 {
        let mut bytes = Vec::new();
        for _ in 0..64 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            bytes.extend_from_slice(&seed.to_le_bytes()[3..]);
        }
        bytes.extend_from_slice(b"\r\n\r\n");
        assert_ne!(server.send(&bytes).0, 200);
    }
    assert!(server.works());
}

#[test]
fn slow_and_silent_clients_lose_their_connection() {
    let limits = Limits { request_time: Duration::from_millis(300), ..Limits::default() };
    let server = Running::start(limits);
    let mut silent = server.connect();
    let mut slow = server.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
    for stream in [&mut silent, &mut slow] {
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    assert!(server.works());
}

#[test]
fn a_thousand_connections_are_survived() {
    let limits =
        Limits { request_time: Duration::from_millis(500), connections: 8, ..Limits::default() };
    let server = Running::start(limits);
    let mut open: Vec<TcpStream> = Vec::new();
    for _ in 0..1000 {
        open.extend(TcpStream::connect(server.address));
    }
    assert!(open.len() > 500, "only {} connections were made", open.len());
    // Waiting connections are rejected at once or closed when their time is over.
    for stream in &mut open {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(
            answer.is_empty() || answer.contains(" 503 ") || answer.contains(" 408 "),
            "{answer}"
        );
    }
    drop(open);
    // A request may arrive while the last of them is still closing.
    let question = json!({ "kind": "history", "text": "t0: w(x,1)", "models": ["cc"] }).to_string();
    let request = format!(
        "POST /api/judge HTTP/1.1\r\nHost: {}\r\nX-Token: {}\r\nContent-Length: {}\r\n\r\n{question}",
        server.address,
        server.token,
        question.len()
    );
    let is_served = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        server.send(request.as_bytes()).0 == 200
    });
    assert!(is_served);
}

#[test]
fn a_newer_question_of_a_page_stops_the_older_one() {
    let server = Running::start(Limits {
        analysis_time: Duration::from_secs(120),
        analyses: 1,
        ..Limits::default()
    });
    let protocol = include_str!("../../../corpus/protocols/directory.m");
    let long = json!({ "kind": "protocol", "text": protocol, "page": "p" });
    std::thread::scope(|scope| {
        let older = scope.spawn(|| server.judge(&long));
        std::thread::sleep(Duration::from_millis(300));
        let newer = server.judge(&json!({
            "kind": "history", "text": "t0: w(x,1)", "models": ["cc"], "page": "p",
        }));
        assert!(newer["cases"].is_array());
        let older = older.join().unwrap();
        let verdict = &older["cases"][0]["rows"][0]["cells"][1];
        assert!(older["superseded"] == true || verdict == "undecided", "{older}");
    });
}
