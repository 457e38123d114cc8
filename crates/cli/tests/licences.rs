//! Every dependency has a licence that goes with ours.

use std::process::Command;

use serde_json::Value;

/// Licences that may be mixed with MIT OR Apache-2.0 in a binary.
const ACCEPTED: [&str; 10] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Says whether an SPDX expression without parentheses offers an accepted choice.
fn is_accepted(expression: &str) -> bool {
    expression.replace('/', " OR ").split(" OR ").any(|choice| {
        choice.split(" AND ").all(|part| ACCEPTED.contains(&part.trim_matches(['(', ')', ' '])))
    })
}

#[test]
fn every_dependency_has_an_accepted_licence() {
    assert!(is_accepted("MIT OR GPL-3.0") && is_accepted("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(!is_accepted("GPL-3.0") && !is_accepted("MIT AND GPL-3.0"));
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--quiet", "--all-features"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 20, "the dependencies are listed");
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(is_accepted))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}
