//! Every dependency has a licence that is compatible with ours, and our packages can be published.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Licences that may be combined with MIT OR Apache-2.0 in a binary.
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

/// Returns whether an SPDX expression without parentheses offers an accepted choice.
fn is_accepted(expression: &str) -> bool {
    expression.replace('/', " OR ").split(" OR ").any(|choice| {
        choice.split(" AND ").all(|part| ACCEPTED.contains(&part.trim_matches(['(', ')', ' '])))
    })
}

#[test]
fn every_dependency_has_an_accepted_licence() {
    assert!(is_accepted("MIT OR GPL-3.0") && is_accepted("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(!is_accepted("GPL-3.0") && !is_accepted("MIT AND GPL-3.0"));
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 20, "the dependencies are listed");
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(is_accepted))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

/// Returns the metadata of Cargo for the workspace and all its dependencies.
fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--quiet", "--all-features"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_published_package_says_what_a_registry_shows() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let ours: Vec<&Value> = packages.iter().filter(|package| package["source"].is_null()).collect();
    // `publish = false` is an empty list of registries.
    let published: Vec<&Value> =
        ours.iter().copied().filter(|package| package["publish"].is_null()).collect();
    assert!(published.len() > 20, "the packages were found");
    let names: Vec<&str> = published.iter().map(|package| text(package, "name")).collect();
    for package in published {
        let name = text(package, "name");
        assert!(text(package, "description").len() > 20, "{name}: description");
        assert_eq!(text(package, "documentation"), format!("https://docs.rs/{name}"));
        assert!(text(package, "license") == "MIT OR Apache-2.0", "{name}: licence");
        let keywords = package["keywords"].as_array().unwrap();
        assert!((1..=5).contains(&keywords.len()), "{name}: one to five keywords");
        assert!(!package["categories"].as_array().unwrap().is_empty(), "{name}: categories");
        let folder = Path::new(text(package, "manifest_path")).parent().unwrap();
        assert!(folder.join(text(package, "readme")).is_file(), "{name}: readme");
        for needed in package["dependencies"].as_array().unwrap() {
            let of_tests = needed["kind"] == "dev" && needed["req"] == "*";
            if !needed["path"].is_null() && !of_tests {
                let other = text(needed, "name");
                assert!(names.contains(&other), "{name} needs {other}, which is not published");
                assert_ne!(needed["req"], "*", "{name} needs {other} without a version");
            }
        }
    }
}

/// Returns a field that must be a text.
fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_else(|| panic!("{}: no {field}", object["name"]))
}
