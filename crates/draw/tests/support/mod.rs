//! Builds histories and certificates from text, and checks that SVG is well-formed.

use consistory_history::{Action, History, HistoryBuilder, OpId, Value};
use consistory_verdict::{Certificate, Edge, Judgement};

/// Reads a history: one line per session, `t0: w(x,1) r(y,0) rmw(x,1,2) f`, or `final: x=1`.
pub(crate) fn history(text: &str) -> History {
    let mut b = HistoryBuilder::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, ops) = line.split_once(':').expect("a line is a session and its operations");
        if let ("final", Some((key, value))) = (name, ops.trim().split_once('=')) {
            let (key, value) = (b.key(key), b.int(value.parse().expect("a number")));
            b.set_final(key, value);
            continue;
        }
        let session = b.session(name);
        for op in ops.split_whitespace() {
            let (method, args) =
                op.strip_suffix(')').and_then(|op| op.split_once('(')).unwrap_or((op, ""));
            let args: Vec<&str> = args.split(',').collect();
            let key = b.key(args[0]);
            let mut value = |i: usize| match args[i].parse() {
                Ok(int) => b.int(int),
                Err(_) => b.value(Value::Str(args[i].into())),
            };
            let action = match method {
                "r" => Action::Read { key, value: value(1) },
                "w" => Action::Write { key, value: value(1) },
                "rmw" => Action::Rmw { key, read: value(1), write: value(2) },
                "f" => Action::Fence,
                other => panic!("no such operation: {other}"),
            };
            b.push(session, action);
        }
    }
    b.finish().expect("the text is a history")
}

/// Reads edges: one per line, `t0:0 po t0:1`, with premises indented below.
pub(crate) fn edges(h: &History, text: &str) -> Vec<Edge> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let spaces = |line: &str| line.len() - line.trim_start().len();
    // The first line may directly follow the opening quote.
    let least = lines.iter().skip(1).map(|line| spaces(line)).min().unwrap_or(0);
    let indent = |line: &str| spaces(line).max(least);
    fn block(h: &History, lines: &[&str], indent: &dyn Fn(&str) -> usize) -> Vec<Edge> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            let deeper = |line: &&&str| indent(line) > indent(lines[at]);
            let inner = lines[at + 1..].iter().take_while(deeper).count();
            let words: Vec<&str> = lines[at].split_whitespace().collect();
            let op = |word: &str| h.find(word).unwrap_or_else(|| panic!("no operation {word}"));
            found.push(Edge {
                from: op(words[0]),
                to: op(words[2]),
                relation: words[1].into(),
                because: block(h, &lines[at + 1..at + 1 + inner], indent),
            });
            at += 1 + inner;
        }
        found
    }
    block(h, &lines, &indent)
}

/// Builds a cycle of edges in text.
pub(crate) fn cycle(h: &History, text: &str) -> Certificate {
    Certificate::Cycle { edges: edges(h, text), observer: None, check: None }
}

/// Builds the judgement of a violation.
pub(crate) fn violation(pattern: &str, certificate: Certificate) -> Judgement {
    Judgement::Violation { pattern: pattern.into(), certificate: certificate.into() }
}

/// Builds a history in which sessions pass a message around a ring, and its causal cycle.
///
/// Session i reads the value written by session i - 1 before it writes itself.
#[allow(dead_code)]
pub(crate) fn ring(sessions: usize) -> (History, Judgement) {
    let mut text = String::new();
    let mut cycle_text = String::new();
    for s in 0..sessions {
        let before = (s + sessions - 1) % sessions;
        text += &format!("t{s}: r(x{before},1) w(x{s},1)\n");
        cycle_text += &format!("t{s}:0 po t{s}:1\nt{s}:1 wr t{}:0\n", (s + 1) % sessions);
    }
    let h = history(&text);
    let certificate = cycle(&h, &cycle_text);
    (h, violation("CyclicCO", certificate))
}

/// Finds an operation.
#[allow(dead_code)]
pub(crate) fn op(h: &History, reference: &str) -> OpId {
    h.find(reference).expect("the reference is of an operation")
}

/// Fails unless `text` is one well-formed XML element whose text is escaped.
#[allow(dead_code)]
pub(crate) fn assert_well_formed(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text.trim_end();
    let mut closed_root = false;
    assert!(rest.starts_with("<svg "), "an SVG starts with its root");
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start]);
        assert!(!closed_root, "nothing follows the root");
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<'), "a tag holds no other: {tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "tags close in order");
        } else {
            let (body, is_empty) = tag.strip_suffix('/').map_or((tag, false), |body| (body, true));
            let name = body.split(' ').next().unwrap_or_default();
            assert!(
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic()),
                "name {name}"
            );
            check_attributes(&body[name.len()..]);
            if !is_empty {
                open.push(name);
            }
        }
        closed_root = open.is_empty();
        rest = &rest[end + 1..];
    }
    assert!(closed_root && rest.is_empty(), "the root is closed and ends the text");
}

fn check_text(text: &str) {
    for (at, _) in text.match_indices('&') {
        let entities = ["&lt;", "&gt;", "&amp;", "&quot;", "&#39;"];
        assert!(entities.iter().any(|e| text[at..].starts_with(e)), "bare ampersand in {text:?}");
    }
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "control character in {text:?}");
}

fn check_attributes(mut text: &str) {
    let mut seen = Vec::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").expect("an attribute has a quoted value");
        let (value, rest) = rest.split_once('"').expect("the value ends");
        assert!(name.starts_with(' '), "attributes are apart: {name}");
        assert!(!seen.contains(&name), "the attribute {name} stands once");
        assert!(!value.contains("NaN") && !value.contains("inf"), "{name} is {value}");
        check_text(value);
        seen.push(name);
        text = rest;
    }
}
