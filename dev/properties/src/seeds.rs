//! Seeds: the inputs that a search starts from, made of the histories and definitions in the
//! repository.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use consistory_formats::{Format, parse_str};
use consistory_history::History;
use consistory_models::{EvaluateOptions, catalogue, evaluate};
use consistory_registers::{CausalModel, Options, decide};
use consistory_verdict::write_certificate;

use crate::{CERTIFIED, history, plan::Plan};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Histories on which a rule's side condition is decisive: reads of another session, and reads of a
/// buffered write.
const HISTORIES: [&str; 2] = [
    "t0: w(x,1) r(x,2) r(y,1)\nt1: w(x,2) r(x,1) w(y,1)\n",
    "t0: w(x,1) r(x,1) r(y,0)\nt1: w(y,1) r(y,1) r(x,0)\n",
];

/// Kinds of certificates that no decider returns for the one fixed history.
const CERTIFICATES: [&str; 4] = [
    r#"{"kind":"thin-air-read","read":"b:0:0"}"#,
    r#"{"kind":"orders","orders":{"t0":["t0:0","t0:1"],"b:0":["t0:0","b:0:0"]},"wr":{"b:0:0":"t0:0"}}"#,
    r#"{"kind":"cases","split":["t0:0","t0:3"],"branches":[{"kind":"cycle","edges":[]},{"kind":"cycle","edges":[{"from":"t0:0","to":"t0:1","relation":"po"},{"from":"t0:1","to":"t0:0","relation":"rw","because":[{"from":"init:x","to":"b:0:0","relation":"wr"}]}],"observer":"t0:0","check":0}]}"#,
    r#"{"kind":"cases","read":"b:0:0","sources":["t0:0","b:0:1"],"branches":[{"kind":"order","order":[]},{"kind":"witness","ww":{"x":["init:x"]}}]}"#,
];

/// Seeds of each target.
pub type Seeds = BTreeMap<&'static str, Vec<Vec<u8>>>;

/// Returns the seeds of each target, by its name.
pub fn seeds(repository: &Path) -> Result<Seeds> {
    let mut seeds = Seeds::new();
    for path in files(&repository.join("models"))? {
        add(&mut seeds, "definitions", &fs::read(path)?);
    }
    for path in files(&repository.join("corpus"))? {
        if path.extension().is_some_and(|extension| extension == "expected") {
            continue;
        }
        let content = fs::read(&path)?;
        if path.extension().is_some_and(|extension| extension == "litmus") {
            add(&mut seeds, "litmus", &content);
        }
        let format = Format::from_path(&path);
        let place =
            Format::ALL.iter().position(|&f| Some(f) == format).unwrap_or(Format::ALL.len());
        add(&mut seeds, "formats", &[&[b'0' + place as u8], &content[..]].concat());
        let (Some(format), Ok(text)) = (format, String::from_utf8(content)) else { continue };
        for history in parse_str(&text, format, "seed").unwrap_or_default() {
            add_history(&mut seeds, &history);
        }
    }
    for text in HISTORIES {
        add_history(&mut seeds, &history(text));
    }
    for text in CERTIFICATES {
        add(&mut seeds, "certificate_json", text.as_bytes());
    }
    for first in 0..8 {
        add(&mut seeds, "certificate_json", &[0, first]);
    }
    for first in 0..=Format::ALL.len() as u8 {
        add(&mut seeds, "words", &[first, 0, 4, 1, 5]);
    }
    let certified = history(CERTIFIED);
    let causal = [CausalModel::Cc, CausalModel::Ccv, CausalModel::Cm];
    let decided = decide(&certified, &causal, &Options::default());
    let defined = catalogue().iter().filter_map(|model| {
        evaluate(&model.definition, &certified, &EvaluateOptions::default()).ok()
    });
    for judgement in decided.into_iter().map(|timed| timed.judgement).chain(defined) {
        if let Some(certificate) = judgement.certificate() {
            let mut out = Vec::new();
            write_certificate(&certified, certificate, &mut out)?;
            add(&mut seeds, "certificate_json", &out);
        }
    }
    Ok(seeds)
}

/// Adds a seed of a target.
fn add(seeds: &mut Seeds, target: &'static str, content: &[u8]) {
    seeds.entry(target).or_default().push(content.to_vec());
}

/// Adds a history, alone and with certificates.
fn add_history(seeds: &mut Seeds, history: &History) {
    let Some(plan) = Plan::encode(history) else { return };
    add(seeds, "check", &plan);
    let length = history.len() as u8;
    // A certificate of each kind.
    for kind in 0..8 {
        let parts = [&[0, 0, 0, 0, length], &plan[..], &[kind]];
        add(seeds, "certificates", &parts.concat());
    }
    // Derivations: an observer, a program order, rules, and the ignored side conditions.
    let observed = (0..length).map(|observer| [observer, 0, 4, 64]);
    let others = [[255, 0, 1, 64], [255, 0, 15, 64], [255, 2, 15, 66], [255, 3, 15, 64]];
    for choices in observed.chain(others) {
        let parts = [&[0, 0, 0, 0, length], &plan[..], &[5], &choices];
        add(seeds, "certificates", &parts.concat());
    }
    // A true certificate for each model, unchanged and altered.
    for model in 0..7 {
        for alterations in 0..2 {
            let parts = [&[1, model, 0, alterations, length], &plan[..], &[1, 2, 3, 4]];
            add(seeds, "certificates", &parts.concat());
        }
    }
}

/// Lists the files in a folder and in its folders, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { pending.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}
