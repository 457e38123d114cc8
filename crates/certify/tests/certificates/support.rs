//! Helpers of the tests: histories and certificates in short notations, and random histories.

use consistory_certify::{Rejection, certify};
use consistory_history::{Action, Details, History, HistoryBuilder, Status};
pub(crate) use consistory_testkit::Random;
use consistory_verdict::{Certificate, Verdict, read_certificate, write_certificate};

/// The models with rules.
pub(crate) const MODELS: [&str; 5] = ["cc", "ccv", "cm", "sc", "tso"];

/// Parses a history: `t0: w(x,1) r(y,0); t1: rmw(x,1,2) f`, with `!` after a failed and `?` after
/// an indeterminate operation; `init: x=5` sets an initial value.
pub(crate) fn history(text: &str) -> History {
    let mut b = HistoryBuilder::new();
    for line in text.split([';', '\n']).map(str::trim).filter(|line| !line.is_empty()) {
        let (session, rest) = line.split_once(':').unwrap();
        for word in rest.split_whitespace() {
            if let Some((key, value)) = word.split_once('=') {
                let (key, value) = (b.key(key), b.int(value.parse().unwrap()));
                b.set_initial(key, value);
                continue;
            }
            let (word, status) = match word.as_bytes().last() {
                Some(b'!') => (&word[..word.len() - 1], Status::Fail),
                Some(b'?') => (&word[..word.len() - 1], Status::Unknown),
                _ => (word, Status::Ok),
            };
            let parts: Vec<&str> = word.trim_end_matches(')').split(['(', ',']).collect();
            let key = parts.get(1).map(|key| b.key(key));
            let mut int = |i: usize| b.int(parts[i].parse().unwrap());
            let action = match parts[0] {
                "f" => Action::Fence,
                "w" => Action::Write { value: int(2), key: key.unwrap() },
                "r" => Action::Read { value: int(2), key: key.unwrap() },
                "rmw" => Action::Rmw { read: int(2), write: int(3), key: key.unwrap() },
                other => panic!("no operation `{other}`"),
            };
            let session = b.session(session);
            b.push_with(session, action, Details { status, ..Details::default() });
        }
    }
    b.finish().unwrap()
}

/// Writes a history in the notation that [`history`] reads.
pub(crate) fn text(h: &History) -> String {
    let session = |s| {
        let ops = h.session_ops(s).map(|op| {
            let mark = match h.status(op) {
                Status::Ok => "",
                Status::Fail => "!",
                Status::Unknown => "?",
            };
            format!(" {}{mark}", h.show(op))
        });
        format!("{}:{}", h.session_name(s), ops.collect::<String>())
    };
    h.sessions().map(session).collect::<Vec<_>>().join("; ")
}

pub(crate) fn json(h: &History, certificate: &Certificate) -> String {
    let mut out = Vec::new();
    write_certificate(h, certificate, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

pub(crate) fn parse(h: &History, json: &str) -> Certificate {
    let value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    read_certificate(h, &value).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// Judges a certificate in a short notation that is expanded to JSON.
///
/// An order: `t0:0 t1:0 ...`. Session orders: `t0 = t0:0 t1:0, t1 = ...`. A store order:
/// `x: init:x t0:0, ...`. Choices may follow after a bar: `| t1:0<t0:0`.
pub(crate) fn consistent(h: &History, model: &str, certificate: &str) -> Result<(), Rejection> {
    let (body, choices) = certificate.split_once('|').unwrap_or((certificate, ""));
    let ops = |text: &str| {
        text.split_whitespace().map(|op| format!("{op:?}")).collect::<Vec<_>>().join(",")
    };
    let lists = |separator: char| {
        body.split(',')
            .filter(|part| !part.trim().is_empty())
            .map(|part| {
                let (name, list) = part.split_once(separator).unwrap();
                format!("{:?}:[{}]", name.trim(), ops(list))
            })
            .collect::<Vec<_>>()
            .join(",")
    };
    let head = match model {
        "cm" => format!(r#""kind":"orders","orders":{{{}}}"#, lists('=')),
        "tso" => format!(r#""kind":"witness","ww":{{{}}}"#, lists('@')),
        _ => format!(r#""kind":"order","order":[{}]"#, ops(body)),
    };
    let choices = choices
        .split_whitespace()
        .map(|choice| choice.split_once('<').unwrap())
        .map(|(read, write)| format!("{read:?}:{write:?}"))
        .collect::<Vec<_>>()
        .join(",");
    let certificate = parse(h, &format!(r#"{{{head},"wr":{{{choices}}}}}"#));
    certify(h, model, Verdict::Consistent, &certificate)
}

/// Judges a cycle in a short notation: `a po b, b rw c (d wr b, d po c), ...`, with an observer
/// after a bar.
pub(crate) fn violation(h: &History, model: &str, cycle: &str) -> Result<(), Rejection> {
    certify(h, model, Verdict::Violation, &parse(h, &cycle_json(cycle)))
}

pub(crate) fn cycle_json(cycle: &str) -> String {
    let (edges, observer) = cycle.split_once('|').unwrap_or((cycle, ""));
    let observer = match observer.trim() {
        "" => String::new(),
        observer => format!(r#","observer":{observer:?}"#),
    };
    let words = edges.replace('(', " ( ").replace(')', " ) ").replace(',', " ");
    let mut out = String::new();
    let mut words = words.split_whitespace().peekable();
    let mut first = true;
    while let Some(word) = words.next() {
        match word {
            "(" => unreachable!("premises come after an edge"),
            ")" => out.push_str("]}"),
            from => {
                let relation = words.next().unwrap();
                let to = words.next().unwrap();
                if !first {
                    out.push(',');
                }
                out.push_str(&format!(r#"{{"from":{from:?},"to":{to:?},"relation":{relation:?}"#));
                first = words.peek() == Some(&"(");
                if first {
                    words.next();
                    out.push_str(r#","because":["#);
                } else {
                    out.push('}');
                }
            }
        }
    }
    format!(r#"{{"kind":"cycle","edges":[{out}]{observer}}}"#)
}

/// Parameters of random histories.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) sessions: usize,
    pub(crate) ops: usize,
    pub(crate) keys: usize,
    /// Whether all writes of a key have different values, and every operation took effect.
    pub(crate) plain: bool,
}

/// Builds a history most of whose reads take values that are written somewhere.
pub(crate) fn random_history(random: &mut Random, shape: Shape) -> History {
    let keys = &["x", "y", "z"][..shape.keys];
    let mut sessions = vec![String::new(); shape.sessions];
    let mut written = vec![0; shape.keys];
    let ops: Vec<(usize, usize, usize)> = (0..shape.ops)
        .map(|_| (random.below(shape.sessions), random.below(shape.keys), random.below(100)))
        .collect();
    let writes = |kind: usize| (40..90).contains(&kind);
    for &(_, key, kind) in &ops {
        written[key] += usize::from(writes(kind));
    }
    let mut next = vec![0; shape.keys];
    for (session, key, kind) in ops {
        let found = random.below(written[key] + 1);
        let value = if shape.plain {
            next[key] += usize::from(writes(kind));
            next[key]
        } else {
            random.below(written[key].min(2) + 1)
        };
        let name = keys[key];
        let mark = match random.below(10) {
            0 if !shape.plain => "!",
            1 if !shape.plain => "?",
            _ => "",
        };
        sessions[session] += &match kind {
            0..40 => format!(" r({name},{found}){mark}"),
            40..80 => format!(" w({name},{value}){mark}"),
            80..90 => format!(" rmw({name},{found},{value}){mark}"),
            _ => format!(" f{mark}"),
        };
    }
    let lines: Vec<String> =
        sessions.iter().enumerate().map(|(i, ops)| format!("t{i}:{ops}")).collect();
    history(&lines.join("\n"))
}
