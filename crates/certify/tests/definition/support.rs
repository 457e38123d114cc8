//! Helpers of the tests: definitions, histories in text, and sources of many histories.

use std::path::{Path, PathBuf};

use consistory_formats::{Format, parse_str};
use consistory_history::{History, OpId};
use consistory_models::{Definition, EvaluateOptions, catalogue, evaluate, load};
pub(crate) use consistory_testkit::Random;
use consistory_verdict::{Certificate, Judgement, Verdict, read_certificate, write_certificate};

pub(crate) fn history(text: &str) -> History {
    let histories = parse_str(text, Format::Hist, "test.hist");
    histories.unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).remove(0)
}

pub(crate) fn op(h: &History, reference: &str) -> OpId {
    h.find(reference).unwrap_or_else(|| panic!("no operation {reference}"))
}

pub(crate) fn judge(definition: &Definition, history: &History) -> Option<Judgement<Certificate>> {
    evaluate(definition, history, &EvaluateOptions::default()).ok()
}

pub(crate) fn verdict(judgement: &Judgement<Certificate>) -> (Verdict, &Certificate) {
    let certificate = judgement.certificate().expect("small histories are decided");
    (judgement.verdict(), certificate)
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

/// A definition, and its text without includes.
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) definition: Definition,
}

impl Model {
    pub(crate) fn own(name: &str, text: &str) -> Self {
        let text = flat(text, &mut Vec::new());
        Model { name: name.to_owned(), definition: definition(&text), text }
    }

    /// Returns the definition reduced to one of its checks.
    pub(crate) fn check(&self, at: usize) -> Definition {
        let mut next = 0;
        let lines = self.text.lines().map(|line| {
            let is_check = ["acyclic ", "irreflexive ", "empty "]
                .iter()
                .any(|word| line.trim_start().starts_with(word));
            next += usize::from(is_check);
            if is_check && next - 1 != at { "empty 0" } else { line }
        });
        definition(&lines.collect::<Vec<_>>().join("\n"))
    }

    /// Returns the definition without its checks.
    pub(crate) fn nothing(&self) -> Definition {
        self.check(usize::MAX)
    }
}

pub(crate) fn definition(text: &str) -> Definition {
    load("own.cat", text, |_| None).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Replaces each include statement by the text of the included file, once per file.
fn flat(text: &str, included: &mut Vec<String>) -> String {
    let mut result = String::new();
    for line in text.lines() {
        if let Some(file) = line.strip_prefix("include ") {
            let file = file.trim().trim_matches('"').to_owned();
            if !included.contains(&file) {
                let text = std::fs::read_to_string(root().join("models").join(&file)).unwrap();
                included.push(file);
                result += &flat(&text, included);
            }
        } else if !line.starts_with('"') && !line.contains("@implies") {
            result += line;
            result.push('\n');
        }
    }
    result
}

/// Returns the nine models of the catalogue, read from their files.
pub(crate) fn models() -> Vec<Model> {
    let model = |model: &consistory_models::Model| Model {
        name: model.id.to_owned(),
        text: flat(model.text, &mut Vec::new()),
        definition: model.definition.clone(),
    };
    catalogue().iter().map(model).collect()
}

/// Returns definitions of users with every operator, every kind of check, and every construct that
/// needs care in a search.
pub(crate) fn own_models() -> Vec<Model> {
    let texts = [
        (
            "coherence",
            r"with ww from store-orders
            let rw = (wr^-1 ; ww) \ id
            acyclic (po & loc) | wr | ww | rw as Incoherent",
        ),
        (
            "two updates read one write",
            r"empty ([RMW] ; wr^-1 ; wr ; [RMW]) \ id as LostUpdate
            irreflexive (po | wr)+ as CyclicCO",
        ),
        (
            "every write is read",
            r"empty (W \ IW) \ domain(wr) as Unread
            acyclic po | wr",
        ),
        (
            "choices under two negations",
            r"let known = ~(~(wr ; po) | ~ext)
            irreflexive known ; known
            empty (~(_ * _)) | (known & id)",
        ),
        (
            "the last write that counts",
            r"with ww from store-orders
            let last = W \ domain(ww)
            empty [last] ; wr ; (po & loc) ; wr^-1 ; [IW]
            acyclic ww | wr | po",
        ),
        (
            "each read for itself",
            r#"include "relations.cat"
            forall o in R do
              let past = domain(co ; [o]) | o
              let rec seen = ([past] ; po ; [past]) | seen-cf | (seen ; seen)
              and seen-cf = (WR(seen) ; [o] ; wr^-1) \ id
              irreflexive seen as SeenTwice
              empty past & range([o] ; wr ; po ; [F]) as Fenced
            end"#,
        ),
        (
            "unions of sets",
            r#"include "relations.cat"
            let fenced = union o in F do range([o] ; po) & domain(po ; [o]?) end
            let updated = union o in RMW do domain(wr ; [o]) * range([o] ; po) end
            empty fenced & range(wr & int)
            acyclic updated | po | wr+"#,
        ),
        (
            "next in the store order",
            r"with ww from store-orders
            let next = ww \ (ww ; ww)
            acyclic po | wr | ((wr^-1 ; next) \ id) as CyclicNext
            empty (next ; next) & (~(po | po^-1))",
        ),
        (
            "unread writes go first",
            r"with ww from store-orders
            let unread = ~domain(wr) & W
            acyclic ww | (([unread] ; po) & loc) | (wr & ~int)",
        ),
        (
            "sc",
            r"// @id sc
            with ww from store-orders
            acyclic (po & loc) | ww | (wr & ext)",
        ),
        (
            "sc without a store order",
            r"// @id sc
            irreflexive (po* ; wr)+ as CyclicCO",
        ),
        (
            "hidden names",
            r"let next = po \ (po ; po)
            let final = next & loc
            let po = final | next
            acyclic po | wr | (IW * (W \ IW)) as Hidden",
        ),
        (
            "nothing in between",
            r#"include "relations.cat"
            let next = (po & loc) \ ((po & loc) ; (po & loc))
            irreflexive cf(co) ; (next | co)? ; [_ \ F] as Between"#,
        ),
        (
            "double negation",
            r"let known = ~(~(po & loc) | ~int)
            irreflexive known ; (wr \ ~ext)+ ; wr^-1
            empty (~(_ * _)) | (known & id)",
        ),
        (
            "the last write wins",
            r#"include "relations.cat"
            with ww from store-orders
            let last = W \ domain(ww ; [W])
            empty [last] ; wr ; (po & loc) ; wr^-1 ; [IW]
            acyclic ww | wr | po"#,
        ),
    ];
    texts.into_iter().map(|(name, text)| Model::own(name, text)).collect()
}

pub(crate) fn all_models() -> Vec<Model> {
    models().into_iter().chain(own_models()).collect()
}

/// Returns the histories of the corpus that are about registers.
pub(crate) fn corpus() -> Vec<(String, History)> {
    let mut found = Vec::new();
    for folder in ["corpus/histories", "corpus/regressions"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "hist") {
                let text = std::fs::read_to_string(&path).unwrap();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                let histories = parse_str(&text, Format::Hist, &name).unwrap();
                found.extend(histories.into_iter().map(|history| (name.clone(), history)));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Parameters of random histories.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) sessions: usize,
    pub(crate) operations: usize,
    pub(crate) keys: usize,
    /// Number of distinct values that are written to a key; 0 for a new value each time.
    pub(crate) values: usize,
    /// One of how many writes is indeterminate or failed; 0 if none is.
    pub(crate) doubts: usize,
    /// Whether a final value is given for the first key.
    pub(crate) finals: bool,
}

pub(crate) const SHAPES: [Shape; 7] = {
    let shape = Shape { sessions: 3, operations: 7, keys: 2, values: 0, doubts: 0, finals: false };
    [
        shape,
        Shape { operations: 10, ..shape },
        Shape { values: 2, operations: 6, ..shape },
        Shape { values: 2, doubts: 3, operations: 6, ..shape },
        Shape { doubts: 4, operations: 8, ..shape },
        Shape { finals: true, keys: 1, sessions: 2, operations: 6, values: 3, ..shape },
        Shape { finals: true, operations: 5, values: 2, ..shape },
    ]
};

/// Builds a random history most of whose reads return a value that was written.
pub(crate) fn random_history(random: &mut Random, shape: Shape) -> String {
    let names = ["x", "y", "z"];
    let mut next = [0; 3];
    let mut kinds = Vec::new();
    for _ in 0..shape.operations {
        let (session, key) = (random.below(shape.sessions), random.below(shape.keys));
        let kind = random.below(20);
        let mut written = 0;
        if kind < 9 {
            next[key] += 1;
            written = if shape.values > 0 { 1 + random.below(shape.values) } else { next[key] };
        }
        kinds.push((session, key, kind, written));
    }
    let mut sessions = vec![String::new(); shape.sessions];
    for &(session, key, kind, written) in &kinds {
        let of_key = kinds.iter().filter(|other| other.1 == key && other.3 > 0);
        let values: Vec<usize> = std::iter::once(0).chain(of_key.map(|other| other.3)).collect();
        let found = values[random.below(values.len())];
        let name = names[key];
        let mark = match shape.doubts {
            0 => "",
            one_in if random.below(one_in) == 0 => ["?", "?", "?", "!"][random.below(4)],
            _ => "",
        };
        sessions[session] += &match kind {
            0..7 => format!(" w({name},{written}){mark}"),
            7 | 8 => format!(" rmw({name},{found},{written}){mark}"),
            9 => " f".to_owned(),
            _ => format!(" r({name},{found}){}", if mark == "!" { mark } else { "" }),
        };
    }
    let lines = sessions.iter().enumerate().map(|(i, ops)| format!("t{i}:{ops}\n"));
    let mut text: String = lines.collect();
    if shape.finals {
        text += &format!("final: x={}\n", random.below(shape.values + 1));
    }
    text
}

/// Calls `visit` with every history of exactly `operations` reads and writes in two sessions on
/// keys x and y, in which the writes of a key write 1, 2, ... in the order of the text.
pub(crate) fn every_history(operations: usize, visit: &mut dyn FnMut(&str)) {
    // Code 0 writes x and 1 writes y; 2 to 4 read 0, 1 and 2 from x, and 5 to 7 from y.
    for code in 0..8usize.pow(operations as u32) {
        let chosen: Vec<usize> = (0..operations).map(|i| code >> (3 * i) & 7).collect();
        let writes = |key: usize| chosen.iter().filter(|&&c| c == key).count();
        // The keys differ only in name, and a read returns only values that were written.
        let key = |c: usize| if c < 2 { c } else { (c - 2) / 3 };
        let is_possible = |&c: &usize| c < 2 || (c - 2) % 3 <= writes(key(c));
        if !chosen.iter().all(is_possible) || key(chosen[0]) == 1 {
            continue;
        }
        let mut next = [0, 0];
        let shown: Vec<String> = chosen
            .iter()
            .map(|&c| {
                let name = ["x", "y"][key(c)];
                if c >= 2 {
                    return format!("r({name},{})", (c - 2) % 3);
                }
                next[c] += 1;
                format!("w({name},{})", next[c])
            })
            .collect();
        for first in operations.div_ceil(2)..=operations {
            visit(&format!("t0: {}\nt1: {}\n", shown[..first].join(" "), shown[first..].join(" ")));
        }
    }
}
