//! The parts of a litmus file.

use std::collections::HashMap;

use consistory_diagnostic::{Diagnostics, Source};

use super::formula::Endings;
use super::{Builder, Context, Translated, Wrong};
use super::{aarch64, c, initial, lisa, ppc, riscv, x86};
use crate::executions::code::ThreadCode;
use crate::executions::{Asked, IsaTest, Language};

/// Returns the language of a test by its first line, if it is supported.
pub fn isa_language(text: &str) -> Option<Language> {
    let blank = blank_comments(text, false);
    let first = blank.split_whitespace().next()?;
    Some(match first.to_ascii_lowercase().as_str() {
        "x86" => Language::X86,
        "x86_64" => Language::X86_64,
        "aarch64" => Language::AArch64,
        "riscv" => Language::RiscV,
        "ppc" => Language::Ppc,
        "c" => {
            if c::is_linux(text) {
                Language::LinuxC
            } else {
                Language::C
            }
        }
        "lisa" | "bell" => Language::Lisa,
        _ => return None,
    })
}

/// Reads a test of any of the languages; `source` is the name that diagnostics show.
pub fn read_isa_test(source: &str, text: &str) -> Result<IsaTest, Diagnostics> {
    let Some(language) = isa_language(text) else {
        let first = text.split_whitespace().next().unwrap_or("");
        let start = text.find(first).unwrap_or(0);
        let mut wrong =
            Wrong::new(start..start + first.len(), format!("unknown language `{first}`"));
        wrong.hint = Some("there are X86, X86_64, AArch64, RISCV, PPC, C and LISA".to_owned());
        return Err(report(source, text, vec![wrong]));
    };
    read_with_locations(source, text, language, &[])
}

/// Reads a test of a known language whose first locations are given, in this order.
pub(crate) fn read_with_locations(
    source: &str,
    text: &str,
    language: Language,
    locations: &[&str],
) -> Result<IsaTest, Diagnostics> {
    read(language, text, locations).map_err(|all| report(source, text, all))
}

fn report(source: &str, text: &str, all: Vec<Wrong>) -> Diagnostics {
    let origin = Source::new(source, text);
    let mut diagnostics = Diagnostics::default();
    for wrong in all {
        let end = wrong.at.end.min(text.len());
        let start = wrong.at.start.min(end);
        diagnostics.push_at(&origin, start..end, wrong.message, wrong.hint);
    }
    diagnostics
}

fn is_c(language: Language) -> bool {
    matches!(language, Language::C | Language::LinuxC)
}

fn read(language: Language, original: &str, locations: &[&str]) -> Result<IsaTest, Vec<Wrong>> {
    let text = blank_comments(original, is_c(language));
    let one = |wrong| vec![wrong];
    // The head ends at the first brace outside strings.
    let open = find_outside_strings(&text, '{').ok_or_else(|| {
        one(Wrong::new(0..text.len().min(1), "there is no initial section `{ .. }`"))
    })?;
    let head = text[..open].trim();
    let line = head.lines().next().unwrap_or("");
    let name = line.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim());
    let name = name.split_once(" (").map_or(name, |(name, _)| name);
    let close = matching(&text, open, '{', '}')
        .ok_or_else(|| one(Wrong::new(open..open + 1, "this brace is never closed")))?;
    let mut builder = Builder::default();
    builder.code.tags = tags_of(language).iter().map(|&tag| tag.to_owned()).collect();
    for name in locations {
        builder.location(name);
    }
    let mut at = close + 1;
    let skipped = text[at..].len() - text[at..].trim_start().len();
    at += skipped;
    if text[at..].starts_with(';') {
        at += 1;
    }
    let declarations = initial::parse(&text, open + 1..close).map_err(one)?;
    let mut wrong = Vec::new();
    let end = if is_c(language) {
        c::functions(language, &text, at, &mut builder, &declarations, &mut wrong)
    } else {
        threads(language, &text, at, &mut builder, &mut wrong)
    };
    if !wrong.is_empty() {
        return Err(wrong);
    }
    initial::apply(language, declarations, &mut builder).map_err(one)?;
    let endings = Endings::read(language, &text, end, &mut builder).map_err(one)?;
    let Builder { code, .. } = builder;
    let mut test = IsaTest {
        language,
        name: name.to_owned(),
        code,
        observed: endings.observed,
        filter: endings.filter,
        quantifier: endings.asked.unwrap_or(Asked::Forall),
        proposition: endings.proposition,
        proposition_text: endings.text,
    };
    let variants = head.lines().filter_map(|line| line.trim().strip_prefix("Variant="));
    variants.flat_map(|names| names.split(',')).for_each(|name| test.apply_variant(name));
    Ok(test)
}

fn tags_of(language: Language) -> &'static [&'static str] {
    match language {
        Language::X86 | Language::X86_64 => &x86::TAGS,
        Language::AArch64 => &aarch64::TAGS,
        Language::RiscV => &riscv::TAGS,
        Language::Ppc => &ppc::TAGS,
        Language::C | Language::LinuxC => &c::TAGS,
        Language::Lisa => &lisa::TAGS,
    }
}

/// Splits a table into the cells of each column and their places, and returns the end of the table.
/// Errors are added to `wrong`.
fn split_table<'t>(
    text: &'t str,
    start: usize,
    wrong: &mut Vec<Wrong>,
) -> (Vec<Vec<(usize, &'t str)>>, usize) {
    let mut at = start;
    let mut columns: Vec<Vec<(usize, &str)>> = Vec::new();
    let mut is_first = true;
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        let begin = at + rest.len() - trimmed.len();
        if trimmed.is_empty() || starts_ending(trimmed) {
            at = begin;
            break;
        }
        let length = trimmed.find(';').unwrap_or(trimmed.len());
        let row = &trimmed[..length];
        let mut cell_at = begin;
        for (column, cell) in row.split('|').enumerate() {
            let inner = cell.trim();
            let place = cell_at + cell.len() - cell.trim_start().len();
            cell_at += cell.len() + 1;
            if is_first {
                columns.push(Vec::new());
                let number = inner.trim_start_matches(['P', 'p']);
                if number.split([':', ' ']).next().and_then(|n| n.parse::<usize>().ok())
                    != Some(column)
                {
                    let message = format!("expected the name of thread {column}, `P{column}`");
                    wrong.push(Wrong::new(place..place + inner.len().max(1), message));
                }
                continue;
            }
            match columns.get_mut(column) {
                Some(column) if !inner.is_empty() => column.push((place, inner)),
                Some(_) => {}
                None if inner.is_empty() => {}
                None => {
                    let message = "there are more columns than threads".to_owned();
                    wrong.push(Wrong::new(place..place + inner.len(), message));
                }
            }
        }
        is_first = false;
        at = (begin + length + 1).min(text.len());
    }
    (columns, at)
}

/// Splits the table at the start of a text into the cells of each column and their places.
pub(super) fn column_cells(text: &str) -> (Vec<Vec<(usize, &str)>>, usize) {
    split_table(text, 0, &mut Vec::new())
}

/// Reads a table of threads, and returns its end.
fn threads(
    language: Language,
    text: &str,
    start: usize,
    builder: &mut Builder,
    wrong: &mut Vec<Wrong>,
) -> usize {
    let (columns, at) = split_table(text, start, wrong);
    for column in &columns {
        let thread = builder.code.threads.len();
        builder.code.threads.push(ThreadCode::default());
        let mut labels = HashMap::new();
        let mut cells: Vec<(usize, &str)> = Vec::new();
        for &(place, cell) in column {
            let (mut place, mut cell) = (place, cell);
            while let Some((label, rest)) = label(language, cell) {
                labels.insert(label.to_owned(), cells.len());
                place += cell.len() - rest.len();
                cell = rest;
            }
            if !cell.is_empty() {
                cells.push((place, cell));
            }
        }
        for (index, &(place, cell)) in cells.iter().enumerate() {
            let mut context =
                Context { builder, thread, labels: &labels, index, count: cells.len() };
            match translate(language, &mut context, cell) {
                Ok(ops) => builder.code.threads[thread].instructions.push(ops),
                Err(message) => {
                    builder.code.threads[thread].instructions.push(Vec::new());
                    wrong.push(Wrong::new(place..place + cell.len(), message));
                }
            }
        }
    }
    at
}

fn translate(language: Language, context: &mut Context<'_>, cell: &str) -> Translated {
    match language {
        Language::X86 | Language::X86_64 => x86::instruction(language, context, cell),
        Language::AArch64 => aarch64::instruction(context, cell),
        Language::RiscV => riscv::instruction(context, cell),
        Language::Ppc => ppc::instruction(context, cell),
        Language::Lisa => lisa::instruction(context, cell),
        Language::C | Language::LinuxC => unreachable!("C has functions"),
    }
}

/// Splits a label off the start of a cell.
pub(super) fn label(language: Language, cell: &str) -> Option<(&str, &str)> {
    let (label, rest) = cell.split_once(':')?;
    let label = label.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    let fits = !label.is_empty() && label.chars().all(plain);
    // `%cs:0(..)` is an operand.
    (fits && language != Language::C).then_some((label, rest.trim_start()))
}

/// Checks whether a text starts with one of the parts after the program.
pub(super) fn starts_ending(text: &str) -> bool {
    let word = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '~')).next();
    let word = word.unwrap_or("");
    matches!(
        word,
        "exists"
            | "~exists"
            | "forall"
            | "locations"
            | "filter"
            | "final"
            | "scopes"
            | "observed"
            | "regions"
    ) || (word == "~" && text[1..].trim_start().starts_with("exists"))
        || (word == "not" && text[3..].trim_start().starts_with("exists"))
}

pub(super) fn find_outside_strings(text: &str, wanted: char) -> Option<usize> {
    let mut inside = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => inside = !inside,
            c if c == wanted && !inside => return Some(at),
            // An unmatched quote ends with its line.
            '\n' => inside = false,
            _ => {}
        }
    }
    None
}

pub(super) fn matching(text: &str, open: usize, left: char, right: char) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text[open..].char_indices() {
        if c == left {
            depth += 1;
        } else if c == right {
            depth -= 1;
            if depth == 0 {
                return Some(open + at);
            }
        }
    }
    None
}

/// Checks whether the comment at the start of a text is closed.
fn closes(text: &[u8]) -> bool {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with(b"(*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with(b"*)") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return true;
            }
        } else {
            at += 1;
        }
    }
    false
}

/// Replaces comments by blanks, so that offsets stay the same.
pub(super) fn blank_comments(text: &str, is_c: bool) -> String {
    if !text.contains("(*") && !(is_c && (text.contains("//") || text.contains("/*"))) {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let (mut at, mut braces) = (0, 0);
    let blank = |out: &mut Vec<u8>, from: usize, to: usize| {
        for byte in &mut out[from..to] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    while at < bytes.len() {
        let rest = &bytes[at..];
        // In C, `(*p` is code.
        let is_code = is_c
            && braces > 0
            && rest.get(2).is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, b'_' | b'('));
        if rest.starts_with(b"(*") && !is_code {
            let start = at;
            let mut depth = 0;
            let is_closed = closes(rest);
            if !is_closed {
                // An unclosed comment is ordinary text.
                at += 2;
                continue;
            }
            while at < bytes.len() {
                if bytes[at..].starts_with(b"(*") {
                    depth += 1;
                    at += 2;
                } else if bytes[at..].starts_with(b"*)") {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        break;
                    }
                } else {
                    at += 1;
                }
            }
            blank(&mut out, start, at);
        } else if is_c && rest.starts_with(b"//") {
            let start = at;
            while at < bytes.len() && bytes[at] != b'\n' {
                at += 1;
            }
            blank(&mut out, start, at);
        } else if is_c && rest.starts_with(b"/*") {
            let start = at;
            at += 2;
            while at < bytes.len() && !bytes[at..].starts_with(b"*/") {
                at += 1;
            }
            at = (at + 2).min(bytes.len());
            blank(&mut out, start, at);
        } else {
            match bytes[at] {
                b'{' => braces += 1,
                b'}' => braces -= 1,
                _ => {}
            }
            at += 1;
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}
