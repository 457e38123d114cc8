//! Checks in Cargo's metadata that the checker shares no code with parsers, evaluators and
//! deciders.

use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn the_checker_links_neither_parsers_nor_deciders() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "consistory-certify", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs this test, so it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listing = String::from_utf8(output.stdout).unwrap();
    let packages: BTreeSet<&str> =
        listing.lines().filter_map(|line| line.split_whitespace().next()).collect();

    let ours: Vec<&str> =
        packages.iter().copied().filter(|name| name.starts_with("consistory-")).collect();
    assert_eq!(
        ours,
        [
            "consistory-certify",
            "consistory-definition",
            "consistory-diagnostic",
            // Test-only fault injection, which does nothing unless a test requests a failure.
            "consistory-faults",
            "consistory-history",
            "consistory-spec",
            "consistory-verdict",
            // Threads, without any knowledge of histories.
            "consistory-work",
        ]
    );
    for forbidden in ["zstd", "zstd-sys", "flate2", "miniz_oxide", "batsat", "cadical"] {
        assert!(!packages.contains(forbidden), "the checker links {forbidden}");
    }
}
