//! The parts of a `.litmus` file: head, initial values, columns and condition.

use super::lexer::{Piece, Reader, Token, number, tokens};
use super::proposition::Propositions;
use super::thread::{ThreadReader, Word};
use super::{Arch, Test, lisa, x86};
use crate::condition::{Condition, Quantifier};
use crate::program::{Location, LocationId, Observable, Program, Register, RegisterId, Thread};

/// Largest number of threads of a test.
const THREADS: usize = 64;

/// Reads a whole test; `None` if there is no head, no braces or no columns.
pub(super) fn read(reader: &mut Reader) -> Option<Test> {
    let text = reader.text.clone();
    let whole = Piece { text: &text, start: 0 };
    let Some(open) = text.find('{') else {
        reader.error_with_hint(
            0..text.lines().next().unwrap_or_default().len(),
            "a litmus test needs initial values in braces",
            "write `{ x=0; y=0; }`, or `{ }`, behind the test's name",
        );
        return None;
    };
    let Some(close) = text[open..].find('}').map(|at| open + at) else {
        reader.error(open..open + 1, "this brace is never closed");
        return None;
    };
    let part = |from: usize, to: usize| Piece { text: &text[from..to], start: from };
    let mut test = head(reader, part(0, open))?;
    let mut initial = Vec::new();
    initial_values(reader, part(open + 1, close), &mut test.program, &mut initial);
    let rows_end = columns(reader, whole, close + 1, &mut test, initial)?;
    asked(reader, part(rows_end, text.len()), &mut test);
    Some(test)
}

/// Reads `ARCH NAME`, strings and `KEY=value` lines.
fn head(reader: &mut Reader, piece: Piece<'_>) -> Option<Test> {
    let mut lines = piece.split('\n').map(|line| line.trim()).filter(|line| !line.text.is_empty());
    let first = lines.next();
    let Some((first, (word, name))) =
        first.and_then(|line| line.text.split_once(char::is_whitespace).map(|two| (line, two)))
    else {
        let place = first.map_or(0..0, |line| line.range());
        reader.error(place, "expected an architecture and the test's name, as in `X86 SB`");
        return None;
    };
    let arch = match word.to_ascii_uppercase().as_str() {
        "X86" => Arch::X86,
        "LISA" | "BELL" => Arch::Lisa,
        _ => {
            reader.error_with_hint(
                first.start..first.start + word.len(),
                format!("the architecture `{word}` is not supported"),
                "X86 and LISA are",
            );
            return None;
        }
    };
    let mut test = Test {
        arch,
        name: name.trim().to_owned(),
        comment: None,
        info: Vec::new(),
        program: Program::default(),
        filter: None,
        condition: None,
    };
    for line in lines {
        if let Some(comment) = line.text.strip_prefix('"') {
            test.comment = Some(comment.trim_end_matches('"').to_owned());
        } else if let Some((key, value)) = line.text.split_once('=') {
            test.info.push((key.trim().to_owned(), value.trim().to_owned()));
        } else {
            let hint = "before the braces stand strings and `KEY=value` lines";
            reader.error_with_hint(line.range(), "this line means nothing", hint);
        }
    }
    Some(test)
}

/// The initial value of a register.
pub(super) struct InitialRegister {
    thread: usize,
    name: String,
    value: InitialValue,
}

#[derive(Clone, Copy)]
pub(super) enum InitialValue {
    Number(i64),
    Address(LocationId),
}

/// Reads `x=0; 0:EAX=1; 1:r2=y`.
fn initial_values(
    reader: &mut Reader,
    piece: Piece<'_>,
    program: &mut Program,
    registers: &mut Vec<InitialRegister>,
) {
    for entry in piece.split(';').map(|entry| entry.trim()).filter(|e| !e.text.is_empty()) {
        let all = tokens(entry);
        // A type before the name is ignored.
        let start = all.iter().position(|t| t.text == "=" || t.text == ":").unwrap_or(all.len());
        let words = &all[start.saturating_sub(1).min(all.len())..];
        let bare = |token: &Token<'_>| token.is_word();
        let known = match words {
            [name] if bare(name) => {
                location(program, name.text);
                true
            }
            [name, eq, value @ ..] if bare(name) && eq.text == "=" => match signed(value) {
                Some(value) => {
                    let id = location(program, name.text);
                    program.locations[id.index()].initial = value;
                    true
                }
                None => false,
            },
            [thread, colon, name, eq, value @ ..]
                if colon.text == ":" && eq.text == "=" && bare(name) =>
            {
                let value = match (signed(value), value) {
                    (Some(value), _) => Some(InitialValue::Number(value)),
                    (None, [at]) if bare(at) => {
                        Some(InitialValue::Address(location(program, at.text)))
                    }
                    _ => None,
                };
                let thread = number(thread.text).and_then(|t| usize::try_from(t).ok());
                match thread.zip(value) {
                    Some((thread, value)) => {
                        let name = name.text.to_owned();
                        registers.push(InitialRegister { thread, name, value });
                        true
                    }
                    None => false,
                }
            }
            [thread, colon, name] if colon.text == ":" && bare(name) => {
                number(thread.text).is_some()
            }
            _ => false,
        };
        if !known {
            let hint = "write `x=1` for a location and `0:EAX=1` for a register";
            reader.error_with_hint(entry.range(), "this is no initial value", hint);
        }
    }
}

/// Reads a number with an optional sign, which must be the whole input.
fn signed(tokens: &[Token<'_>]) -> Option<i64> {
    match tokens {
        [digits] => number(digits.text),
        [minus, digits] if minus.text == "-" => number(digits.text).map(|value| -value),
        _ => None,
    }
}

/// Finds a location by its name, or adds it.
pub(super) fn location(program: &mut Program, name: &str) -> LocationId {
    let known = program.locations.iter().position(|location| location.name == name);
    LocationId::new(known.unwrap_or_else(|| {
        program.locations.push(Location { name: name.to_owned(), initial: 0 });
        program.locations.len() - 1
    }))
}

/// Reads the columns of instructions; returns their end.
fn columns(
    reader: &mut Reader,
    whole: Piece<'_>,
    from: usize,
    test: &mut Test,
    initial: Vec<InitialRegister>,
) -> Option<usize> {
    let mut rows: Vec<Vec<Piece<'_>>> = Vec::new();
    let mut end = from;
    let rest = Piece { text: &whole.text[from..], start: from };
    for row in rest.text.split_inclusive(';') {
        let start = from + (row.as_ptr() as usize - rest.text.as_ptr() as usize);
        if !row.ends_with(';') || starts_question(row.trim_start()) {
            break;
        }
        let row = Piece { text: &row[..row.len() - 1], start };
        let mut cells: Vec<Piece<'_>> = row.split('|').map(|cell| cell.trim()).collect();
        // An empty text after the last `|` is an empty cell.
        if row.text.ends_with('|') {
            cells.push(Piece { text: "", start: row.start + row.text.len() });
        }
        end = start + row.text.len() + 1;
        rows.push(cells);
    }
    let Some((head, body)) = rows.split_first() else {
        reader.error(from..from, "expected the columns of the threads, each row ended by `;`");
        return None;
    };
    if head.len() > THREADS {
        reader.error(head[THREADS].range(), format!("a test has at most {THREADS} threads"));
        return None;
    }
    for (at, cell) in head.iter().enumerate() {
        if cell.text.split(':').next() != Some(&format!("P{at}")) {
            reader.error(cell.range(), format!("expected `P{at}`, found `{}`", cell.text));
        }
    }
    for row in body.iter().filter(|row| row.len() > head.len()) {
        let message = format!("there is no thread for column {}", head.len() + 1);
        reader.error(row[head.len()].range(), message);
    }
    for column in 0..head.len() {
        let mut words: Vec<Word<'_>> = Vec::new();
        for cell in body.iter().filter_map(|row| row.get(column)) {
            split_labels(*cell, &mut words);
        }
        let mut thread = ThreadReader::new(reader, &mut test.program);
        for entry in initial.iter().filter(|entry| entry.thread == column) {
            match entry.value {
                InitialValue::Number(value) => thread.set_initial(&entry.name, value),
                InitialValue::Address(location) => thread.set_address(&entry.name, location),
            }
        }
        match test.arch {
            Arch::X86 => x86::read(&mut thread, &words),
            Arch::Lisa => lisa::read(&mut thread, &words),
        }
        let thread: Thread = thread.finish();
        test.program.threads.push(thread);
    }
    if let Some(entry) = initial.iter().find(|entry| entry.thread >= head.len()) {
        let message = format!("there is no thread {} for register {}", entry.thread, entry.name);
        reader.error(from..from, message);
    }
    Some(end)
}

/// Splits `L: INSTRUCTION` into its label and its instruction.
fn split_labels<'t>(cell: Piece<'t>, words: &mut Vec<Word<'t>>) {
    let mut rest = cell;
    while let Some(colon) = rest.text.find(':') {
        let label = Piece { text: &rest.text[..colon], start: rest.start }.trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if label.text.is_empty() || !label.text.chars().all(is_name) {
            break;
        }
        words.push(Word::Label(label));
        rest = Piece { text: &rest.text[colon + 1..], start: rest.start + colon + 1 }.trim();
    }
    if !rest.text.is_empty() {
        words.push(Word::Instruction(rest));
    }
}

fn starts_question(text: &str) -> bool {
    let word = text.split(|c: char| c.is_whitespace() || c == '(' || c == '[').next();
    matches!(word, Some("exists" | "~exists" | "forall" | "locations" | "filter" | "~"))
}

/// Reads `locations [..]`, `filter P` and the condition.
fn asked(reader: &mut Reader, piece: Piece<'_>, test: &mut Test) {
    let all = tokens(piece);
    let mut parser = Propositions::new(reader, &mut test.program, &all, piece.range().end);
    let mut observed = Vec::new();
    let mut quantifier = None;
    while let Some(token) = parser.peek() {
        match token.text {
            "locations" => {
                parser.advance();
                parser.locations(&mut observed);
            }
            "filter" => {
                parser.advance();
                test.filter = parser.proposition();
                if test.filter.is_none() {
                    return;
                }
            }
            "exists" | "forall" => {
                parser.advance();
                let found = match (token.text, quantifier) {
                    ("forall", _) => Quantifier::Forall,
                    (_, Some(())) => Quantifier::NotExists,
                    _ => Quantifier::Exists,
                };
                let Some(proposition) = parser.proposition() else { return };
                test.condition = Some(Condition { quantifier: found, proposition });
            }
            "~" => {
                parser.advance();
                quantifier = Some(());
                if parser.peek().is_none_or(|next| next.text != "exists") {
                    parser.expected("`exists`");
                    return;
                }
            }
            _ => {
                parser.expected("`exists`, `~exists`, `forall`, `locations` or `filter`");
                return;
            }
        }
    }
    let mentioned = test.condition.iter().map(|condition| &condition.proposition);
    for proposition in mentioned.chain(&test.filter) {
        observed.extend(proposition.observables());
    }
    let mut unique: Vec<Observable> = Vec::new();
    for observable in observed {
        if !unique.contains(&observable) {
            unique.push(observable);
        }
    }
    unique.sort_by_key(|observable| match observable {
        Observable::Register(thread, register) => (0, thread.0, register.0),
        Observable::Location(location) => (1, location.0, 0),
    });
    test.program.observed = if unique.is_empty() { test.program.read_registers() } else { unique };
}

/// Finds a register of a thread by its name, or adds it.
pub(super) fn register(thread: &mut Thread, name: &str) -> RegisterId {
    let known = thread.registers.iter().position(|register| register.name == name);
    RegisterId::new(known.unwrap_or_else(|| {
        thread.registers.push(Register { name: name.to_owned(), initial: 0 });
        thread.registers.len() - 1
    }))
}
