//! A copy of the workspace in which a crate has slips, and its tests.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::Value;

use crate::plant::{self, SWITCH, Slip};

/// Error if the crate cannot be built with slips, or its tests cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    Syntax { path: PathBuf, source: syn::Error },
    #[error("{program} does not run: {source}")]
    Program { program: String, source: io::Error },
    #[error("{0} is not a crate with a src/lib.rs of the workspace")]
    NoCrate(PathBuf),
    #[error("the crate does not compile, and not because of a slip:\n{0}")]
    Compile(String),
    #[error("the tests fail without a slip: {0}")]
    Tests(PathBuf),
}

/// A copy of the workspace.
#[derive(Debug)]
pub(crate) struct Tree {
    origin: PathBuf,
    root: PathBuf,
    package: PathBuf,
}

impl Tree {
    /// Copies this workspace, for slips in one of its crates.
    pub(crate) fn copy(package: &Path) -> Result<Self, TreeError> {
        let origin = env::current_dir().map_err(file(Path::new(".")))?;
        if !origin.join(package).join("src/lib.rs").is_file() || package.is_absolute() {
            return Err(TreeError::NoCrate(package.to_owned()));
        }
        let root = origin.join("target/slips/tree");
        let listing = output(Command::new("git").args(["ls-files", "-z"]))?;
        for name in String::from_utf8_lossy(&listing).split('\0').filter(|name| !name.is_empty()) {
            let text = fs::read(origin.join(name)).map_err(file(Path::new(name)))?;
            write(&root.join(name), &text)?;
        }
        Ok(Tree { origin, root, package: package.to_owned() })
    }

    /// Returns the crate's folder in the copy.
    pub(crate) fn package(&self) -> PathBuf {
        self.root.join(&self.package)
    }

    /// Plants all slips of the crate except the refused ones.
    pub(crate) fn plant(&self, refused: &HashSet<u32>) -> Result<Vec<Slip>, TreeError> {
        let mut slips = Vec::new();
        let mut first = 1;
        for path in sources(&self.origin.join(&self.package).join("src"))? {
            let name = path.strip_prefix(self.origin.join(&self.package)).expect("below it");
            let text = fs::read_to_string(&path).map_err(file(&path))?;
            let (mut planted, mut found) =
                plant::plant(&text, &name.to_string_lossy(), first, refused)
                    .map_err(|source| TreeError::Syntax { path: path.clone(), source })?;
            // Each file has a larger range of numbers than slips, so that numbers do not change.
            first += u32::try_from(text.len()).unwrap_or(u32::MAX / 2);
            if name == Path::new("src/lib.rs") {
                planted.push_str(SWITCH);
            }
            write(&self.package().join(name), planted.as_bytes())?;
            slips.append(&mut found);
        }
        Ok(slips)
    }

    /// Builds the tests, or returns the slips that do not compile.
    pub(crate) fn build(&self) -> Result<Result<Vec<PathBuf>, HashSet<u32>>, TreeError> {
        let mut cargo = Command::new("cargo");
        cargo
            .args(["test", "--release", "--no-run", "--message-format=json", "--lib", "--tests"])
            .args(["--quiet", "--manifest-path"])
            .arg(self.package().join("Cargo.toml"))
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", self.origin.join("target/slips/build"))
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
            .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
            .env("RUSTFLAGS", "--cap-lints=allow")
            .stderr(Stdio::null());
        let printed = output(&mut cargo)?;
        let messages: Vec<Value> = printed
            .split(|&byte| byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        let errors: Vec<&Value> =
            messages.iter().filter(|line| line["message"]["level"] == "error").collect();
        if errors.is_empty() {
            return Ok(Ok(messages
                .iter()
                .filter(|line| line["profile"]["test"] == true)
                .filter_map(|line| line["executable"].as_str())
                .map(PathBuf::from)
                .collect()));
        }
        let mut ill_typed = HashSet::new();
        for error in &errors {
            let error = &error["message"];
            // For an uninitialised variable, the notes contain the place of the missing assignment.
            let notes = error["children"].as_array().into_iter().flatten();
            for part in notes.filter(|child| child["level"] == "note").chain([error]) {
                let places = part["spans"].as_array().into_iter().flatten();
                ill_typed.extend(places.filter_map(|place| self.slip_at(place)));
            }
        }
        if ill_typed.is_empty() {
            let texts = errors.iter().filter_map(|error| error["message"]["message"].as_str());
            return Err(TreeError::Compile(texts.collect::<Vec<_>>().join("\n")));
        }
        Ok(Err(ill_typed))
    }

    /// Finds the number of the last slip before the place of an error.
    fn slip_at(&self, place: &Value) -> Option<u32> {
        if place["is_primary"] != true {
            return None;
        }
        let text = fs::read_to_string(self.root.join(place["file_name"].as_str()?)).ok()?;
        let before = text.get(..place["byte_start"].as_u64()? as usize)?;
        before.rmatch_indices("u32").find_map(|(end, _)| {
            before[..end].rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        })
    }
}

/// Lists the sources below a folder, in the order of their names.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, TreeError> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(file(folder))? {
        let path = entry.map_err(file(folder))?.path();
        if path.is_dir() {
            paths.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Writes a file unless its content is unchanged, to avoid rebuilding.
fn write(path: &Path, bytes: &[u8]) -> Result<(), TreeError> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(file(folder))?;
    }
    fs::write(path, bytes).map_err(file(path))
}

fn output(command: &mut Command) -> Result<Vec<u8>, TreeError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).stdout(Stdio::piped()).output();
    output.map(|output| output.stdout).map_err(|source| TreeError::Program { program, source })
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> TreeError {
    move |source| TreeError::File { path: path.to_owned(), source }
}
