//! Protocols of the corpus, including broken variants.
//!
//! A variant is a unified diff, `name.patch`, whose first line names the file that it changes:
//! `patch -o name.m base.m name.patch` writes the variant as a description.

use std::path::{Path, PathBuf};

/// Lists the descriptions and variants in a folder, sorted by name.
#[allow(dead_code, reason = "some tests read one protocol only")]
pub(crate) fn protocols(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_protocol = |path: &PathBuf| path.extension().is_some_and(|e| e == "m" || e == "patch");
    let mut paths: Vec<PathBuf> = entries.filter(is_protocol).collect();
    paths.sort();
    paths
}

/// Reads a description, or builds that of a variant.
pub(crate) fn read(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    if path.extension().is_some_and(|extension| extension == "m") {
        return text;
    }
    let base = text.lines().next().and_then(|line| line.strip_prefix("--- "));
    let base = base.unwrap_or_else(|| panic!("{}: no base is named", path.display()));
    apply(&read(&path.parent().unwrap().join(base)), &text)
}

/// Applies a unified diff, all lines of which must match.
fn apply(base: &str, patch: &str) -> String {
    let old: Vec<&str> = base.lines().collect();
    let (mut at, mut new) = (0, String::new());
    let keep = |upto: usize, at: &mut usize, new: &mut String| {
        old[*at..upto].iter().for_each(|line| *new += &format!("{line}\n"));
        *at = upto;
    };
    for line in patch.lines().skip(2) {
        if let Some(hunk) = line.strip_prefix("@@ -") {
            let start: usize = hunk.split([',', ' ']).next().unwrap().parse().unwrap();
            keep(start - 1, &mut at, &mut new);
            continue;
        }
        let (sign, text) = line.split_at(1.min(line.len()));
        match sign {
            "+" => new += &format!("{text}\n"),
            _ => {
                assert_eq!(old[at], text, "line {} of the base", at + 1);
                if sign != "-" {
                    new += &format!("{text}\n");
                }
                at += 1;
            }
        }
    }
    keep(old.len(), &mut at, &mut new);
    new
}
