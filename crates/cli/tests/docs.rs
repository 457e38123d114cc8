//! The pages are correct: their examples run, their pictures are current, and their links resolve.
//!
//! In `docs/*.md` and `README.md`, a fenced block whose info string contains `file=NAME` is written
//! to that file, in a folder of the page, next to links to the repository's `corpus` and `models`.
//! In a `console` block each line `$ COMMAND` is run there by a shell, from the first block of the
//! page to the last, and its output must match the lines below it. Only commands that start with
//! one of [`RUN`] are run. Times and the widths of columns are not compared, and JSON may be
//! formatted differently. `UPDATE_EXPECT=1 cargo test -p consistory-cli --test docs` rewrites the
//! pages and the pictures.

mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use expect_test::expect_file;
use serde_json::Value;
use support::Folder;

/// Beginnings of the commands that are run; all of them are harmless.
const RUN: [&str; 5] = ["consistory", "cat", "echo", "gzip", "ls"];

/// Folders without pages of this project.
const FOREIGN: [&str; 6] =
    [".git", "benches/out", "fuzz/artifacts", "fuzz/corpus", "mutants.out", "target"];

fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../..").canonicalize().expect("the crate is in the repository")
}

#[test]
fn the_examples_of_the_pages_print_what_the_pages_show() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    let mut run = 0;
    for path in pages(&repository().join("docs")).chain([repository().join("README.md")]) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let page = Page::run(&text);
        run += page.run;
        if update && page.text != text {
            std::fs::write(&path, page.text).unwrap();
        } else if !page.wrong.is_empty() {
            wrong.push(format!("{}:\n{}", path.display(), page.wrong.join("\n")));
        }
    }
    assert!(run > 20, "the examples were found");
    assert!(
        update || wrong.is_empty(),
        "{}\n\nUPDATE_EXPECT=1 rewrites the pages",
        wrong.join("\n\n")
    );
}

#[test]
fn the_pictures_are_what_the_tool_draws() {
    let folder = Folder::new();
    let figures = repository().join("docs/figures");
    for (picture, history, model) in [
        ("message-passing.svg", "message-passing.hist", "cc"),
        ("causal-memory.svg", "thesis-2.8a.hist", "cm"),
    ] {
        let path = repository().join("corpus/histories").join(history);
        let ran =
            folder.run(&format!("check {} -m {model} --draw . --format json", path.display()));
        let drawing = ran.lines()[0]["results"][0]["drawing"].as_str().unwrap().to_owned();
        expect_file![figures.join(picture)].assert_eq(&folder.read(&drawing));
    }
    let path = repository().join("corpus/objects/paper-figure-1.hist");
    let ran = folder.run(&format!(
        "check {} --object map -m happens-before-visibility --draw . --format json",
        path.display()
    ));
    let drawing = ran.lines()[0]["results"][0]["drawing"].as_str().unwrap().to_owned();
    expect_file![figures.join("objects.svg")].assert_eq(&folder.read(&drawing));
    let lattice = folder.run("models lattice --format svg").out;
    expect_file![figures.join("lattice.svg")].assert_eq(&lattice);
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut all = Vec::new();
    find_pages(&repository(), &mut all);
    assert!(all.len() > 5, "the pages were found");
    let mut broken = Vec::new();
    for page in &all {
        let text = std::fs::read_to_string(page).unwrap();
        for (number, link) in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { beside(page, file) };
            let leads = match std::fs::read_to_string(&target) {
                Ok(text) if !anchor.is_empty() => anchors(&text).contains(anchor),
                _ => target.exists(),
            };
            if !leads {
                broken.push(format!("{}:{number}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_page_is_in_the_index_and_every_picture_on_a_page() {
    let docs = repository().join("docs");
    let linked = |page: &Path| -> Vec<PathBuf> {
        let text = std::fs::read_to_string(page).unwrap();
        links(&text).map(|(_, link)| beside(page, link.split('#').next().unwrap())).collect()
    };
    let index = linked(&docs.join("README.md"));
    let shown: Vec<PathBuf> = pages(&docs).flat_map(|page| linked(&page)).collect();
    for page in pages(&docs).filter(|page| !page.ends_with("README.md")) {
        assert!(index.contains(&page), "docs/README.md does not link to {}", page.display());
    }
    for picture in std::fs::read_dir(docs.join("figures")).unwrap() {
        let picture = picture.unwrap().path();
        assert!(shown.contains(&picture), "no page links to {}", picture.display());
    }
}

#[test]
fn every_dependency_is_accounted_for() {
    let manifest = std::fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let page = std::fs::read_to_string(repository().join("docs/dependencies.md")).unwrap();
    let (_, rest) = manifest.split_once("[workspace.dependencies]\n").unwrap();
    let names: Vec<&str> = rest
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with("consistory"))
        .collect();
    assert!(names.len() > 10, "the dependencies were found");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "docs/dependencies.md says nothing of {name}");
    }
}

/// A page whose examples were run.
#[derive(Default)]
struct Page {
    /// Text of the page with the actual output.
    text: String,
    /// Differences between the page and the actual output.
    wrong: Vec<String>,
    /// Number of commands that were run.
    run: usize,
}

impl Page {
    /// Runs the examples of a page in order.
    fn run(text: &str) -> Self {
        let shell = Shell::new();
        let mut page = Page::default();
        let mut lines = text.lines().enumerate().peekable();
        let mut code = 0;
        while let Some((_, line)) = lines.next() {
            page.line(line);
            let Some(info) = line.strip_prefix("```") else { continue };
            if let Some(name) = info.split(' ').find_map(|word| word.strip_prefix("file=")) {
                let mut body = String::new();
                while let Some((_, line)) = lines.next_if(|(_, line)| *line != "```") {
                    body += line;
                    body += "\n";
                }
                shell.folder.write(name, &body);
                page.text += &body;
            } else if info == "console" {
                while let Some((number, line)) = lines.next_if(|(_, line)| *line != "```") {
                    page.line(line);
                    let mut shown = String::new();
                    let is_output = |line: &str| line != "```" && !line.starts_with("$ ");
                    while let Some((_, line)) = lines.next_if(|(_, line)| is_output(line)) {
                        shown += line;
                        shown += "\n";
                    }
                    let command = line.strip_prefix("$ ").unwrap_or_default();
                    if !RUN.contains(&command.split(' ').next().unwrap_or_default()) {
                        page.text += &shown;
                        continue;
                    }
                    page.run += 1;
                    let printed = shell.run(command, &mut code);
                    assert!(!printed.contains("this is a defect"), "{command}\n{printed}");
                    if is_same(&shown, &printed) {
                        page.text += &shown;
                    } else {
                        page.wrong.push(format!(
                            "line {}: {command}\nshown:\n{shown}\nprinted:\n{printed}",
                            number + 1
                        ));
                        page.text += &printed;
                    }
                }
            } else {
                while let Some((_, line)) = lines.next_if(|(_, line)| *line != "```") {
                    page.line(line);
                }
            }
            page.line("```");
            lines.next();
        }
        page
    }

    fn line(&mut self, line: &str) {
        self.text += line;
        self.text += "\n";
    }
}

/// Environment in which the examples of a page are run.
struct Shell {
    folder: Folder,
    path: String,
}

impl Shell {
    fn new() -> Self {
        let folder = Folder::new();
        for name in ["corpus", "models"] {
            symlink(repository().join(name), folder.path().join(name)).unwrap();
        }
        let binary = Path::new(env!("CARGO_BIN_EXE_consistory")).parent().unwrap();
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
        Shell { folder, path }
    }

    /// Returns the output of a command on both streams; `$?` is the exit code of the previous
    /// command.
    fn run(&self, command: &str, code: &mut i32) -> String {
        let script = format!("exec 2>&1; (exit {code}); {command}");
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(self.folder.path())
            .env("PATH", &self.path)
            .output()
            .unwrap();
        *code = output.status.code().expect("it was not killed");
        let text = String::from_utf8(output.stdout).unwrap();
        // A block of a page ends right after its last line.
        let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
        if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" }
    }
}

/// Checks whether a page shows the actual output, ignoring times and layout.
fn is_same(shown: &str, printed: &str) -> bool {
    let plain = |text: &str| -> Vec<String> { text.lines().map(without_times).collect() };
    plain(shown) == plain(printed)
        || json(shown).is_some_and(|shown| json(printed).is_some_and(|printed| shown == printed))
}

/// Units of times.
const UNITS: [&str; 3] = ["µs", "ms", "s"];

/// Replaces times by a placeholder, and runs of spaces and table lines by a single one.
fn without_times(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        match words.last_mut() {
            Some(number) if UNITS.contains(&word) && number.parse::<f64>().is_ok() => {
                *number = "0.0".into();
                words.push("ms".into());
                continue;
            }
            _ => {}
        }
        words.push(if word.chars().all(|c| c == '─') { "─".into() } else { word.into() });
    }
    words.join(" ")
}

/// Reads one or more JSON values, without their times and the digests of histories.
fn json(text: &str) -> Option<Vec<Value>> {
    let values: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_str(text).into_iter().collect();
    let mut values = values.ok().filter(|values| !values.is_empty())?;
    for value in &mut values {
        if let Some(fields) = value.as_object_mut() {
            fields.remove("digest");
        }
        if let Some(millis) = value.get_mut("millis") {
            *millis = Value::Null;
        }
        for result in value.get_mut("results").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(millis) = result.get_mut("millis") {
                *millis = Value::Null;
            }
        }
    }
    Some(values)
}

/// Lists the pages of a folder, without its subfolders.
fn pages(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    found.sort();
    found.into_iter()
}

/// Finds every page of the repository.
fn find_pages(folder: &Path, found: &mut Vec<PathBuf>) {
    found.extend(pages(folder));
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_foreign = FOREIGN.iter().any(|name| path.ends_with(name));
        if path.is_dir() && !path.is_symlink() && !is_foreign {
            find_pages(&path, found);
        }
    }
}

/// Lists the relative links of a page outside fenced blocks, with their lines.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    let prose = text.lines().enumerate().filter(move |(_, line)| {
        is_fenced ^= line.starts_with("```");
        !is_fenced
    });
    prose
        .flat_map(|(number, line)| {
            let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            targets.map(move |target| (number + 1, target))
        })
        .filter(|(_, link)| !link.contains("://") && !link.starts_with("mailto:"))
}

/// Returns the anchors of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_fenced = false;
    let headings = text.lines().filter(|line| {
        is_fenced ^= line.starts_with("```");
        !is_fenced && line.starts_with('#')
    });
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept =
                title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// Returns the path that a link of a page leads to.
fn beside(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().expect("a page is in a folder").to_path_buf();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}
