//! Rewrites tests in a uniform layout.
//!
//! The output consists of the first line, the lines of `Key=value`, the initial section by threads,
//! a table whose columns have the same width (or functions whose lines are indented by their
//! braces), and the condition in brackets. Comments are dropped. Reading the output gives the same
//! program and condition.

use std::fmt::Write as _;

use consistory_diagnostic::Diagnostics;

use super::layout::{
    blank_comments, column_cells, find_outside_strings, label, matching, read_isa_test,
};
use crate::executions::{Asked, IsaTest, Language};

/// Writes a test of an instruction set or C, given as text, in a uniform layout.
///
/// `source` is the name in diagnostics if the test cannot be read.
pub fn write_isa_test(source: &str, text: &str) -> Result<String, Diagnostics> {
    let test = read_isa_test(source, text)?;
    Ok(written(&test, text))
}

fn written(test: &IsaTest, original: &str) -> String {
    let language = test.language;
    let is_c = matches!(language, Language::C | Language::LinuxC);
    let text = blank_comments(original, is_c);
    let open = find_outside_strings(&text, '{').unwrap_or(0);
    let close = matching(&text, open, '{', '}').unwrap_or(open);
    let mut out = String::new();
    for line in text[..open].lines().map(str::trim).filter(|line| !line.is_empty()) {
        let _ = writeln!(out, "{line}");
    }
    initial(&text[open + 1..close], &mut out);
    let rest = text[close + 1..].trim_start();
    let rest = rest.strip_prefix(';').unwrap_or(rest);
    let end = if is_c { functions(rest, &mut out) } else { table(language, rest, &mut out) };
    endings(test, &rest[end..], &mut out);
    out
}

/// Writes the initial section: first locations, then one line per thread.
fn initial(text: &str, out: &mut String) {
    let mut lines: Vec<(Option<usize>, Vec<String>)> = vec![(None, Vec::new())];
    for statement in text.split(';') {
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        if statement.is_empty() {
            continue;
        }
        let thread = statement.split_once(':').and_then(|(before, _)| {
            before.rsplit([' ', '*']).next()?.trim_start_matches('P').parse::<usize>().ok()
        });
        match lines.iter_mut().find(|(known, _)| *known == thread) {
            Some((_, line)) => line.push(statement),
            None => lines.push((thread, vec![statement])),
        }
    }
    lines.sort_by_key(|(thread, _)| *thread);
    out.push_str("{\n");
    for (_, line) in lines.iter().filter(|(_, line)| !line.is_empty()) {
        let _ = writeln!(out, "{};", line.join("; "));
    }
    out.push_str("}\n");
}

/// Writes the table of a test in assembler, and returns its end.
fn table(language: Language, text: &str, out: &mut String) -> usize {
    let (columns, end) = column_cells(text);
    let mut cells: Vec<Vec<String>> = Vec::new();
    for column in &columns {
        let mut lines: Vec<String> = Vec::new();
        for &(_, cell) in column {
            let mut cell = cell;
            let mut line = String::new();
            while let Some((name, rest)) = label(language, cell) {
                let _ = write!(line, "{name}: ");
                cell = rest;
            }
            line += &cell.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(line.trim_end().to_owned());
        }
        cells.push(lines);
    }
    let widths: Vec<usize> = cells
        .iter()
        .map(|lines| lines.iter().map(|line| line.chars().count()).max().unwrap_or(0).max(2))
        .collect();
    let rows = cells.iter().map(Vec::len).max().unwrap_or(0);
    for row in 0..=rows {
        for (thread, lines) in cells.iter().enumerate() {
            let name = format!("P{thread}");
            let cell = match row {
                0 => name.as_str(),
                row => lines.get(row - 1).map_or("", String::as_str),
            };
            let sign = if thread == 0 { "" } else { "|" };
            let _ = write!(out, "{sign} {cell:<width$} ", width = widths[thread]);
        }
        out.push_str(";\n");
    }
    end
}

/// Writes functions of C, and returns the end of the last one.
fn functions(text: &str, out: &mut String) -> usize {
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|open| at + open) {
        let head = text[at..open].split_whitespace().collect::<Vec<_>>().join(" ");
        let is_function = head.starts_with('P') && head.ends_with(')');
        let Some(close) = matching(text, open, '{', '}').filter(|_| is_function) else { break };
        let _ = writeln!(out, "\n{head}\n{{");
        let mut depth: usize = 1;
        for line in text[open + 1..close].lines().map(str::trim).filter(|line| !line.is_empty()) {
            let closing = line.chars().take_while(|&c| c == '}').count();
            depth = depth.saturating_sub(closing);
            let _ = writeln!(out, "{}{line}", "    ".repeat(depth.max(1)));
            let opened = line.matches('{').count();
            let closed = line.matches('}').count() - closing;
            depth = (depth + opened).saturating_sub(closed);
        }
        out.push_str("}\n");
        at = close + 1;
    }
    out.push('\n');
    at
}

/// Writes the parts after the program.
fn endings(test: &IsaTest, text: &str, out: &mut String) {
    for (word, left, right) in [("scopes", '(', ')'), ("locations", '[', ']')] {
        for start in words(text, word) {
            let after = start + word.len();
            let Some(open) = text[after..].find(left).map(|open| after + open) else { continue };
            let Some(close) = matching(text, open, left, right) else { continue };
            if matches!(text[after..open].trim(), "" | ":") {
                let inner = text[open..=close].split_whitespace().collect::<Vec<_>>().join(" ");
                let colon = if word == "scopes" { ":" } else { "" };
                let _ = writeln!(out, "{word}{colon} {inner}");
            }
        }
    }
    for start in words(text, "filter") {
        let rest = &text[start + "filter".len()..];
        let ends = ["exists", "~exists", "~ exists", "not exists", "forall", "final", "locations"];
        let end = ends.iter().filter_map(|end| words(rest, end).next()).min();
        let inner = rest[..end.unwrap_or(rest.len())].split_whitespace().collect::<Vec<_>>();
        let inner = inner.join(" ");
        let _ = writeln!(out, "filter {}", bracketed(inner.trim_end_matches(';').trim()));
    }
    if test.quantifier == Asked::Forall && test.proposition_text == "true" && !text.contains("true")
    {
        return;
    }
    let _ = writeln!(out, "{} {}", test.quantifier.as_str(), bracketed(&test.proposition_text));
}

/// Returns the positions at which a word occurs by itself.
fn words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '~');
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}

impl IsaTest {
    /// Returns the condition as herd's logs have it: `exists (0:EAX=1 /\ x=2)`.
    pub fn condition_text(&self) -> String {
        let mut text = String::new();
        for word in self.proposition_text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            // A thread may be spelt `P0`.
            let thread = word.strip_prefix(['P', 'p']).and_then(|rest| rest.strip_suffix(':'));
            let is_thread = thread
                .is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()));
            text += if is_thread { &word[1..] } else { word };
        }
        let text = text.replace(" = ", "=").replace("= ", "=").replace(" =", "=");
        let text = text.replace("/\\", " /\\ ").replace("\\/", " \\/ ").replace("=>", " => ");
        let words: Vec<&str> = text.split_whitespace().collect();
        format!("{} {}", self.quantifier.as_str(), bracketed(&words.join(" ")))
    }
}

/// Returns a proposition in a single pair of brackets.
fn bracketed(proposition: &str) -> String {
    let is_wrapped = proposition.starts_with('(')
        && matching(proposition, 0, '(', ')') == Some(proposition.len() - 1);
    if is_wrapped { proposition.to_owned() } else { format!("({proposition})") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn tests_below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                tests_below(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "litmus") {
                found.push(path);
            }
        }
    }

    /// Returns the final states under sequential consistency, and whether each satisfies the
    /// condition.
    fn states(test: &IsaTest) -> BTreeSet<(String, bool)> {
        let model = crate::find_isa_model("sc").unwrap();
        let options = crate::IsaOptions {
            unroll: 2,
            condition_only: false,
            count: false,
            keep_executions: false,
            budget: consistory_verdict::Budget::unlimited(),
        };
        let found = crate::isa_outcomes(test, &model, &options).unwrap_or_else(|_| panic!());
        let shown = |state| format!("{:?}", test.shown(state));
        found.states.iter().map(|state| (shown(state), test.satisfies(state))).collect()
    }

    /// Every test of the corpus, and of the folder that `CONSISTORY_LITMUS_TESTS` names, is
    /// unchanged after writing and reading.
    #[test]
    fn what_is_written_is_read_back_as_the_same_test() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
        let mut paths = Vec::new();
        tests_below(&corpus.join("executions"), &mut paths);
        tests_below(&corpus.join("litmus"), &mut paths);
        if let Some(further) = std::env::var_os("CONSISTORY_LITMUS_TESTS") {
            tests_below(Path::new(&further), &mut paths);
        }
        let (mut languages, mut count) = (Vec::new(), 0);
        for path in paths {
            let text = fs::read_to_string(&path).unwrap();
            let Ok(mut test) = read_isa_test("test", &text) else { continue };
            count += 1;
            if !languages.contains(&test.language) {
                languages.push(test.language);
            }
            let shown = path.display();
            let once = write_isa_test("test", &text).unwrap();
            let mut again = read_isa_test("written", &once)
                .unwrap_or_else(|error| panic!("{shown}: {error}\n{once}"));
            // Only the brackets around the condition may differ.
            test.proposition_text.clear();
            again.proposition_text.clear();
            // Registers in the initial section are numbered in its order, so programs that are not
            // identical are compared by their outcomes.
            if format!("{test:?}") != format!("{again:?}") {
                assert_eq!(states(&test), states(&again), "{shown}:\n{once}");
                assert_eq!(test.quantifier, again.quantifier, "{shown}");
            }
            assert_eq!(write_isa_test("written", &once).unwrap(), once, "{shown}");
        }
        eprintln!("{count} tests");
        assert_eq!(languages.len(), 8, "{languages:?}");
    }

    #[test]
    fn a_test_is_laid_out_by_threads() {
        let text = "AArch64 MP (* message passing *)\n\"two lines\"\n{ 1:X1=y; uint64_t x; \
                    0:X1=x;\n0:X2 = y; 1:X2=x }\nP0|P1;\nMOV W0,#1|L:LDR W0,[X1];\n\
                    STR W0,[X1]|CBZ W0,L;\n|LDR  W3,[X2];\nlocations [x;]\n~exists 1:X3=0";
        let wanted = "AArch64 MP\n\"two lines\"\n{\nuint64_t x;\n0:X1=x; 0:X2 = y;\n\
                      1:X1=y; 1:X2=x;\n}\n P0          | P1             ;\n \
                      MOV W0,#1   | L: LDR W0,[X1] ;\n \
                      STR W0,[X1] | CBZ W0,L       ;\n             | LDR W3,[X2]    ;\n\
                      locations [x;]\n~exists (1:X3=0)\n";
        assert_eq!(write_isa_test("MP", text).unwrap(), wanted);
    }
}
