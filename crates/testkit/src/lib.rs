//! Common code of the tests of all crates: random numbers, random and exhaustive histories, and the
//! choice between short and long versions of tests.
//!
//! Only tests depend on this crate. Everything is deterministic: a failing test prints its seed or
//! its history ([`text`]), and the same seed draws the same history again.

mod histories;
mod random;
mod rounds;

pub use histories::{
    Op, Shape, build, every_history, every_history_of_values, random_history, text,
};
pub use random::Random;
pub use rounds::{is_deep, rounds};

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Checks that every test file of a crate is listed in its `tests/main.rs`, if the crate has
    /// one; a file that is missing there would never run.
    #[test]
    fn no_test_file_is_left_out_of_its_program() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut programs = 0;
        for folder in std::fs::read_dir(crates).unwrap() {
            let folder = folder.unwrap().path();
            let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
            if !manifest.contains("autotests = false") {
                continue;
            }
            programs += 1;
            let main = std::fs::read_to_string(folder.join("tests/main.rs")).unwrap();
            for file in std::fs::read_dir(folder.join("tests")).unwrap() {
                let path = file.unwrap().path();
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                let is_test = path.extension().is_some_and(|end| end == "rs") && name != "main"
                    || path.join("mod.rs").exists();
                assert!(
                    !is_test
                        || main.lines().any(|line| line == format!("mod {name};"))
                        || manifest.contains(&format!("name = \"{name}\"")),
                    "{} is not a module of tests/main.rs",
                    path.display()
                );
            }
        }
        assert!(programs > 5, "the manifests were found");
    }
}
