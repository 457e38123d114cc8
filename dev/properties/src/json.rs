//! Certificates in JSON whose fields mostly have the right names and types.

use serde_json::{Map, Value, json};

use crate::bytes::Bytes;

/// References into [`CERTIFIED`](crate::CERTIFIED), some of them wrong or in an unusual spelling.
const REFERENCES: [&str; 18] = [
    "t0:0",
    "t0:1",
    "t0:2",
    "t0:3",
    "b:0:0",
    "b:0:1",
    "b:0:2",
    "b:0:3",
    "init:x",
    "init:z",
    "init:a \"b\"",
    "t0:00",
    "t0:+1",
    "b:0:00",
    "t0:4",
    "init:",
    ":0",
    "",
];
const SESSIONS: [&str; 4] = ["t0", "b:0", "t1", ""];
const KEYS: [&str; 5] = ["x", "a \"b\"", "z", "y", ""];
const RELATIONS: [&str; 8] = ["po", "wr", "rw", "hb", "cf", "ww", "ppo", "\u{1}\"\\é"];
const KINDS: [&str; 6] = ["order", "orders", "witness", "thin-air-read", "cycle", "cases"];
const DEPTH: usize = 4;

/// Builds a certificate in JSON, or a similar value.
pub fn certificate(bytes: &mut Bytes<'_>) -> Value {
    nested(bytes, 0)
}

fn nested(bytes: &mut Bytes<'_>, depth: usize) -> Value {
    let kind = bytes.pick(&KINDS);
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value, bytes: &mut Bytes<'_>| match bytes.byte() {
        255 => {}
        254 => drop(fields.insert(name.to_owned(), anything(bytes))),
        _ => drop(fields.insert(name.to_owned(), value)),
    };
    add("kind", kind.into(), bytes);
    match kind {
        "order" => add("order", references(bytes), bytes),
        "orders" => add("orders", lists(bytes, &SESSIONS), bytes),
        "witness" => add("ww", lists(bytes, &KEYS), bytes),
        "thin-air-read" => add("read", reference(bytes), bytes),
        "cycle" => {
            add("edges", edges(bytes, 0), bytes);
            if bytes.below(2) == 1 {
                add("observer", reference(bytes), bytes);
                add("check", json!(bytes.byte()), bytes);
            }
        }
        _ => {
            let count = if bytes.below(2) == 0 {
                add("split", json!([reference(bytes), reference(bytes)]), bytes);
                2
            } else {
                let sources = references(bytes);
                let count = sources.as_array().map_or(0, Vec::len);
                add("read", reference(bytes), bytes);
                add("sources", sources, bytes);
                count
            };
            if depth < DEPTH {
                let branches: Value = (0..count).map(|_| nested(bytes, depth + 1)).collect();
                add("branches", branches, bytes);
            }
        }
    }
    if bytes.below(2) == 1 {
        let mut choices = Map::new();
        for _ in 0..bytes.below(4) {
            choices.insert(bytes.pick(&REFERENCES).to_owned(), reference(bytes));
        }
        add("wr", choices.into(), bytes);
    }
    fields.into()
}

fn edges(bytes: &mut Bytes<'_>, depth: usize) -> Value {
    let count = if depth < DEPTH { bytes.below(4) } else { 0 };
    let edge = |_| {
        let mut edge = json!({
            "from": reference(bytes), "to": reference(bytes), "relation": bytes.pick(&RELATIONS)
        });
        if bytes.below(2) == 1 {
            edge["because"] = edges(bytes, depth + 1);
        }
        edge
    };
    (0..count).map(edge).collect()
}

fn lists(bytes: &mut Bytes<'_>, names: &[&str]) -> Value {
    let mut lists = Map::new();
    for _ in 0..bytes.below(4) {
        lists.insert(bytes.pick(names).to_owned(), references(bytes));
    }
    lists.into()
}

fn references(bytes: &mut Bytes<'_>) -> Value {
    (0..bytes.below(6)).map(|_| reference(bytes)).collect()
}

fn reference(bytes: &mut Bytes<'_>) -> Value {
    bytes.pick(&REFERENCES).into()
}

fn anything(bytes: &mut Bytes<'_>) -> Value {
    match bytes.below(8) {
        0 => Value::Null,
        1 => true.into(),
        2 => json!(-1),
        3 => json!(4_294_967_296_u64),
        4 => json!(0.5),
        5 => json!([[]]),
        6 => json!({"kind": "cycle"}),
        _ => reference(bytes),
    }
}
