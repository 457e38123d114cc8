//! The prose of the repository is plain English: phrases of its old dialect are refused.
//!
//! CONTRIBUTING.md has the glossary. This test refuses only a few phrases; it cannot decide whether
//! a sentence is clear.

use std::path::{Path, PathBuf};

/// A phrase, and what to write instead.
const REFUSED: [(&str, &str); 44] = [
    ("/// Gives ", "`Returns`, or another ordinary verb"),
    ("//! Gives ", "`Returns`, or another ordinary verb"),
    ("/// Says whether ", "`Returns whether` or `Checks whether`"),
    ("/// Tells whether ", "`Returns whether` or `Checks whether`"),
    ("each two ", "`every pair of`"),
    ("nobody knows", "`indeterminate`, or `unknown`"),
    ("those of which", "a noun"),
    (" is no target", "`is not a target`"),
    ("hat is no call", "`is not a call`"),
    ("hat is no read", "`is not a read`"),
    ("hat is no write", "`is not a write`"),
    ("hat is no fence", "`is not a fence`"),
    ("a line a ", "`one line per`"),
    ("A line a", "`one line per`"),
    ("event a line", "`one event per line`"),
    ("operation a line", "`one operation per line`"),
    ("a row a ", "`one row per`"),
    ("object a line", "`one object per line`"),
    ("are what they are", "what is returned"),
    ("is none of this object", "`does not fit this object`"),
    ("has no place there", "`does not belong there`"),
    ("text behind the ", "`text after the`"),
    ("/// Looks at every", "`Checks every`, or what is done with it"),
    ("whoever starts", "a noun"),
    ("in nobody's way", "`affects no other call`"),
    ("spur of the moment", "the technique"),
    ("further ado", "`at once`"),
    ("one a session", "`one per session`"),
    ("a step a ", "`one step per`"),
    ("what came of it", "`its return`, `its outcome`"),
    ("file a kind", "`one file per kind`"),
    ("once a view", "`once per view`"),
    ("nobody knew", "`indeterminate`"),
    ("is none that", "`is unknown`, `is not supported`"),
    ("one a thread", "`one per thread`"),
    ("/// That ", "a noun phrase"),
    ("/// Who ", "a noun phrase"),
    ("/// Up to how ", "`Largest number of`"),
    ("/// After how ", "`Number of ... after which`"),
    ("/// Among how ", "`Number of ... among which`"),
    ("/// So many ", "`Number of`"),
    ("what is known", "a noun, such as `facts`"),
    ("in line with", "`totally ordered with`"),
    ("gets nowhere", "`makes no progress`"),
];

/// Adds the sources and pages of a folder.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() {
            if !name.starts_with('.') && !["target", "out", "artifacts"].contains(&&*name) {
                collect(&path, found);
            }
        } else if [".rs", ".md", ".cat", ".toml"].iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
}

#[test]
fn no_page_and_no_comment_uses_the_old_dialect() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut paths = Vec::new();
    for folder in ["benches", "crates", "dev", "docs", "fuzz", "models", "python"] {
        collect(&root.join(folder), &mut paths);
    }
    paths.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page)));
    assert!(paths.len() > 300, "the sources were found");
    let mut refused = Vec::new();
    for path in paths.iter().filter(|path| !path.ends_with("crates/cli/tests/language.rs")) {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        for (number, line) in text.lines().enumerate() {
            // `Gives up` is an ordinary verb.
            let line = line.replace("Gives up", "");
            for (phrase, instead) in REFUSED.iter().filter(|(phrase, _)| line.contains(phrase)) {
                let place = path.strip_prefix(&root).unwrap_or(path).display();
                refused.push(format!("{place}:{}: `{phrase}`: write {instead}", number + 1));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Finds a placeholder for text that is still to be written, such as `@TABLE@` or a to-do.
fn placeholder(line: &str) -> Option<&str> {
    let words = ["TODO", "FIXME", "TBD", "XXX", "not been measured yet", "not measured yet"];
    let is_name = |text: &str| {
        text.len() > 2 && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    // Text between two signs `@`: every piece except the first and the last.
    let pieces: Vec<&str> = line.split('@').collect();
    let inner = pieces.get(1..pieces.len() - 1).unwrap_or_default();
    inner
        .iter()
        .copied()
        .find(|text| is_name(text))
        .or_else(|| words.into_iter().find(|word| line.contains(word)))
}

#[test]
fn placeholders_are_found() {
    assert_eq!(placeholder("@THROUGHPUT@"), Some("THROUGHPUT"));
    assert_eq!(placeholder("| a | @THE_TABLE@ |"), Some("THE_TABLE"));
    assert_eq!(placeholder("The table is TBD."), Some("TBD"));
    assert_eq!(placeholder("t0: w(x,1) @1..5 w(x,2) @6..7"), None);
    assert_eq!(placeholder("a@b.example, c@d.example"), None);
    assert_eq!(placeholder("plain"), None);
}

#[test]
fn no_page_has_a_placeholder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut paths = Vec::new();
    for folder in ["benches", "crates", "corpus", "dev", "docs", "fuzz", "models", "python"] {
        collect(&root.join(folder), &mut paths);
    }
    paths.retain(|path| path.extension().is_some_and(|end| end == "md"));
    let tops = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"];
    paths.extend(tops.map(|page| root.join(page)));
    assert!(paths.len() > 40, "the pages were found: {}", paths.len());
    let mut found = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        for (number, line) in text.lines().enumerate() {
            if let Some(what) = placeholder(line) {
                let place = path.strip_prefix(&root).unwrap_or(path).display();
                found.push(format!("{place}:{}: `{what}`", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "still to be written:\n{}", found.join("\n"));
}
