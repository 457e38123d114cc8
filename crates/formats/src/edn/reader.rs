//! Builds EDN forms from lines.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::form::{Form, Kind, Place};
use crate::hist::MAX_NESTING;
use crate::parse::{Fault, Line, Sink};

/// Words and brackets of a line between two checks of the budget.
const STEPS_PER_CHECK: u32 = 1 << 15;

/// Reads forms from lines.
pub(crate) struct Reader {
    /// Open collections, outermost first; the first entry stands for the input itself.
    stack: Vec<Open>,
    /// Number of open collections that are nested too deeply to be stored.
    too_deep: usize,
    string: Option<OpenString>,
    kept: Kept,
    words: FxHashSet<Arc<str>>,
    /// Whether to read a single form, complete even if it is a vector, and stop after it.
    is_single: bool,
    /// Number of forms emitted.
    count: u64,
}

/// Reads the form that starts at byte `at` of a line; the text after it is ignored.
pub(crate) fn form_at(line: Line<'_>, at: usize, sink: &mut Sink) -> Option<Form> {
    let mut reader = Reader { is_single: true, ..Reader::default() };
    let mut found = None;
    reader.line_from(line, at, sink, &mut |form, _, _| found = Some(form));
    reader.end(line.number, sink);
    found
}

/// A collection that is not closed yet.
struct Open {
    bracket: Bracket,
    place: Place,
    items: Vec<Form>,
    /// Number of following forms to discard.
    discarded: usize,
    /// Whether its forms are emitted one by one.
    is_stream: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Input,
    Round,
    Square,
    Curly,
    Set,
}

impl Bracket {
    fn close(self) -> char {
        match self {
            Bracket::Round => ')',
            Bracket::Square => ']',
            Bracket::Curly | Bracket::Set => '}',
            Bracket::Input => ' ',
        }
    }
}

/// A text that ends in a later line.
struct OpenString {
    place: Place,
    text: String,
}

/// Lines of the form that is being read.
#[derive(Default)]
struct Kept {
    lines: Vec<(u64, String)>,
    /// Line in which the outermost vector was opened, for error messages.
    opener: Option<(u64, String)>,
}

/// Lines that an error may refer to: those of the form that is being read, and the current one.
pub(crate) struct Lines<'a> {
    kept: &'a Kept,
    current: Line<'a>,
}

impl Lines<'_> {
    /// Reports a fault whose span is in the line of `place`.
    pub(crate) fn report(&self, place: Place, fault: Fault, sink: &mut Sink) {
        let is_it = |(number, _): &&(u64, String)| *number == place.line;
        let earlier = self.kept.lines.iter().find(is_it);
        let text = match earlier.or(self.kept.opener.as_ref().filter(is_it)) {
            _ if place.line == self.current.number => self.current.text,
            Some((_, text)) => text,
            None => "",
        };
        sink.report(Line { number: place.line, text }, fault);
    }

    /// Reports an error about a form.
    pub(crate) fn fault(&self, form: &Form, message: &str, hint: &str, sink: &mut Sink) {
        let fault = Fault::new(form.place.start..form.place.end, message).hint(hint);
        self.report(form.place, fault, sink);
    }
}

/// Function that receives each form.
type Emit<'a> = &'a mut dyn FnMut(Form, &Lines<'_>, &mut Sink);

impl Default for Reader {
    fn default() -> Self {
        let place = Place { line: 1, start: 0, end: 0 };
        let input = Open {
            bracket: Bracket::Input,
            place,
            items: Vec::new(),
            discarded: 0,
            is_stream: true,
        };
        Reader {
            stack: vec![input],
            too_deep: 0,
            string: None,
            kept: Kept::default(),
            words: FxHashSet::default(),
            is_single: false,
            count: 0,
        }
    }
}

impl Reader {
    /// Reads a line; passes each complete form to `emit`.
    pub(crate) fn line(&mut self, line: Line<'_>, sink: &mut Sink, emit: Emit<'_>) {
        self.line_from(line, 0, sink, emit);
    }

    fn line_from(&mut self, line: Line<'_>, mut at: usize, sink: &mut Sink, emit: Emit<'_>) {
        if let Some(open) = self.string.take() {
            at = self.string(line, 0, open, sink, emit);
        }
        let bytes = line.text.as_bytes();
        let mut steps = 0_u32;
        while let Some(&byte) = bytes.get(at) {
            if self.is_single && self.count > 0 {
                break;
            }
            // A line may be as long as the whole input.
            steps += 1;
            if steps.is_multiple_of(STEPS_PER_CHECK) && !sink.limits.goes_on() {
                return;
            }
            at = match byte {
                b' ' | b'\t' | b'\r' | b',' | 0x0b | 0x0c => at + 1,
                b';' => bytes.len(),
                b'(' => self.open(Bracket::Round, line, at..at + 1, sink),
                b'[' => self.open(Bracket::Square, line, at..at + 1, sink),
                b'{' => self.open(Bracket::Curly, line, at..at + 1, sink),
                b')' | b']' | b'}' => {
                    self.close(byte as char, line, at, sink, emit);
                    at + 1
                }
                b'"' => {
                    let place = Place { line: line.number, start: at, end: line.text.len() };
                    let open = OpenString { place, text: String::new() };
                    self.string(line, at + 1, open, sink, emit)
                }
                b'\\' => self.character(line, at, sink, emit),
                b'#' => self.dispatch(line, at, sink, emit),
                // Metadata: a form that annotates the next one.
                b'^' => {
                    self.discard_next();
                    at + 1
                }
                b'\'' | b'`' | b'~' | b'@' => {
                    let fault = Fault::new(at..at + 1, format!("`{}` is not EDN", byte as char))
                        .hint("this is data, not a program");
                    sink.report(line, fault);
                    at + 1
                }
                _ => self.word(line, at, sink, emit),
            };
        }
        self.keep(line);
    }

    /// Ends the input after the last line.
    pub(crate) fn end(&mut self, last_line: u64, sink: &mut Sink) {
        let current = Line { number: last_line + 1, text: "" };
        let mut unclosed = Vec::new();
        if let Some(string) = self.string.take() {
            let place = Place { end: string.place.start + 1, ..string.place };
            unclosed.push((place, "this text is never closed".to_owned()));
        }
        for open in self.stack.drain(1..).rev() {
            let message = format!("this is never closed by `{}`", open.bracket.close());
            unclosed.push((open.place, message));
        }
        let lines = Lines { kept: &self.kept, current };
        // Only the innermost unclosed collection is reported; the others follow from it.
        if let Some((place, message)) = unclosed.into_iter().next() {
            let fault = Fault::new(place.start..place.end, message).hint("is the input cut off?");
            lines.report(place, fault, sink);
        }
        *self = Reader::default();
    }

    /// Keeps a line as long as a form that began in it is being read.
    fn keep(&mut self, line: Line<'_>) {
        let depth = self.stack.iter().take_while(|open| open.is_stream).count();
        let first = match (self.stack.get(depth), &self.string) {
            (Some(open), _) => open.place.line,
            (None, Some(string)) => string.place.line,
            (None, None) => u64::MAX,
        };
        let passed = self.kept.lines.partition_point(|&(number, _)| number < first);
        self.kept.lines.drain(..passed);
        if first <= line.number {
            self.kept.lines.push((line.number, line.text.to_owned()));
        }
    }

    fn open(
        &mut self,
        bracket: Bracket,
        line: Line<'_>,
        span: std::ops::Range<usize>,
        sink: &mut Sink,
    ) -> usize {
        let depth = self.stack.iter().filter(|open| !open.is_stream).count();
        if self.too_deep > 0 || depth > MAX_NESTING {
            if self.too_deep == 0 {
                let message = format!("collections nest at most {MAX_NESTING} deep");
                sink.report(line, Fault::new(span.clone(), message));
            }
            self.too_deep += 1;
            return span.end;
        }
        let outer = self.stack.last().expect("the input itself is never closed");
        let is_stream = !self.is_single
            && outer.bracket == Bracket::Input
            && outer.discarded == 0
            && matches!(bracket, Bracket::Round | Bracket::Square);
        if is_stream {
            const SHOWN: usize = 100;
            let end = line.text.len().min(span.start + SHOWN);
            let end = (span.end..=end).rev().find(|&i| line.text.is_char_boundary(i));
            let shown = &line.text[..end.unwrap_or(span.end)];
            self.kept.opener = Some((line.number, shown.to_owned()));
        }
        let place = Place { line: line.number, start: span.start, end: span.end };
        let end = span.end;
        self.stack.push(Open { bracket, place, items: Vec::new(), discarded: 0, is_stream });
        end
    }

    fn close(&mut self, found: char, line: Line<'_>, at: usize, sink: &mut Sink, emit: Emit<'_>) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let Some(depth) = self.stack.iter().rposition(|open| open.bracket.close() == found) else {
            let fault = Fault::new(at..at + 1, format!("`{found}` closes nothing"));
            return sink.report(line, fault);
        };
        let is_right = depth + 1 == self.stack.len();
        if !is_right {
            let open = self.stack.last().expect("a bracket above the closed one is still open");
            let expected = open.bracket.close();
            let message = format!("`{found}` where `{expected}` was expected");
            let hint = format!("what it is to close opens in line {}", open.place.line);
            sink.report(line, Fault::new(at..at + 1, message).hint(hint));
            self.stack.truncate(depth + 1);
        }
        let Open { bracket, place, items, is_stream, .. } =
            self.stack.pop().expect("the position was found in it");
        if is_stream || !is_right {
            return;
        }
        // The whole form is marked if it is in one line.
        let place = match place.line == line.number {
            true => Place { end: at + 1, ..place },
            false => place,
        };
        let kind = match bracket {
            Bracket::Curly if items.len() % 2 == 1 => {
                let lines = Lines { kept: &self.kept, current: line };
                let key = items.last().expect("an odd number is not zero");
                lines.fault(key, "a key without a value", "a map is keys and values in turn", sink);
                return;
            }
            Bracket::Curly => Kind::Map(items),
            _ => Kind::Sequence(items),
        };
        self.add(Form { kind, place }, line, sink, emit);
    }

    /// Adds a form to the innermost open collection, or emits it.
    fn add(&mut self, form: Form, line: Line<'_>, sink: &mut Sink, emit: Emit<'_>) {
        if self.too_deep > 0 {
            return;
        }
        let open = self.stack.last_mut().expect("the input itself is never closed");
        if open.discarded > 0 {
            open.discarded -= 1;
        } else if open.is_stream {
            self.count += 1;
            emit(form, &Lines { kept: &self.kept, current: line }, sink);
        } else {
            open.items.push(form);
        }
    }

    fn discard_next(&mut self) {
        if self.too_deep == 0 {
            self.stack.last_mut().expect("the input itself is never closed").discarded += 1;
        }
    }

    /// Parses a text that starts at `at`, and returns the position after it.
    fn string(
        &mut self,
        line: Line<'_>,
        mut at: usize,
        mut open: OpenString,
        sink: &mut Sink,
        emit: Emit<'_>,
    ) -> usize {
        let text = line.text;
        loop {
            let rest = &text[at..];
            let Some(length) = rest.find(['"', '\\']) else {
                open.text.push_str(rest);
                open.text.push('\n');
                self.string = Some(open);
                return text.len();
            };
            open.text.push_str(&rest[..length]);
            at += length;
            if text.as_bytes()[at] == b'"' {
                let end = if open.place.line == line.number { at + 1 } else { open.place.end };
                let place = Place { end, ..open.place };
                let kind = Kind::Text(open.text.into());
                self.add(Form { kind, place }, line, sink, emit);
                return at + 1;
            }
            let (c, length) = escape(&text[at + 1..]);
            match c {
                Some(c) => open.text.push(c),
                None => {
                    let fault = Fault::new(at..at + 1 + length, "unknown escape")
                        .hint("escapes are \\t \\r \\n \\b \\f \\\\ \\\" and \\u with four digits");
                    sink.report(line, fault);
                }
            }
            at += 1 + length;
        }
    }

    /// Parses a character: `\a`, `\newline`, `\u0041`.
    fn character(&mut self, line: Line<'_>, at: usize, sink: &mut Sink, emit: Emit<'_>) -> usize {
        let rest = &line.text[at + 1..];
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let length = first + rest[first..].find(is_delimiter).unwrap_or(rest.len() - first);
        let word = &rest[..length];
        let end = at + 1 + length;
        let mut chars = word.chars();
        let c = match (chars.next(), chars.next()) {
            (Some(c), None) => Some(c),
            (Some('u'), Some(_)) => escape(word).0.filter(|_| word.len() == 5),
            _ => match word {
                "newline" => Some('\n'),
                "return" => Some('\r'),
                "space" => Some(' '),
                "tab" => Some('\t'),
                "backspace" => Some('\u{8}'),
                "formfeed" => Some('\u{c}'),
                _ => None,
            },
        };
        match c {
            Some(c) => {
                let place = Place { line: line.number, start: at, end };
                let kind = Kind::Text(c.to_string().into());
                self.add(Form { kind, place }, line, sink, emit);
            }
            None => sink.report(line, Fault::new(at..end, "unknown character")),
        }
        end
    }

    /// Parses what follows `#`: a set, a discarded form, a tag.
    fn dispatch(&mut self, line: Line<'_>, at: usize, sink: &mut Sink, emit: Emit<'_>) -> usize {
        match line.text.as_bytes().get(at + 1) {
            Some(b'{') => self.open(Bracket::Set, line, at..at + 2, sink),
            Some(b'_') => {
                self.discard_next();
                at + 2
            }
            // `##NaN`, `##Inf`.
            Some(b'#') => self.word(line, at + 1, sink, emit),
            _ => {
                let rest = &line.text[at + 1..];
                let length = rest.find(is_delimiter).unwrap_or(rest.len());
                if length == 0 {
                    let fault = Fault::new(at..at + 1, "expected a tag after `#`");
                    sink.report(line, fault);
                }
                at + 1 + length
            }
        }
    }

    /// Parses a number, a keyword, a symbol or a literal.
    fn word(&mut self, line: Line<'_>, at: usize, sink: &mut Sink, emit: Emit<'_>) -> usize {
        let rest = &line.text[at..];
        let length = rest.find(is_delimiter).unwrap_or(rest.len()).max(1);
        let word = &rest[..length];
        let end = at + length;
        let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
        let kind = match word {
            "nil" => Kind::Nil,
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            _ if unsigned.starts_with(|c: char| c.is_ascii_digit()) => match number(word) {
                Some(kind) => kind,
                None => {
                    let fault = Fault::new(at..end, format!("`{word}` is not a number"));
                    sink.report(line, fault);
                    return end;
                }
            },
            ":" => {
                sink.report(line, Fault::new(at..end, "a keyword without a name"));
                return end;
            }
            _ => match word.strip_prefix(':') {
                Some(name) => Kind::Keyword(self.intern(name)),
                None => Kind::Symbol(self.intern(word)),
            },
        };
        let place = Place { line: line.number, start: at, end };
        self.add(Form { kind, place }, line, sink, emit);
        end
    }

    /// Returns the shared copy of a keyword.
    fn intern(&mut self, word: &str) -> Arc<str> {
        /// Largest number of different words that are shared; recorders use far fewer.
        const MAX_WORDS: usize = 100_000;
        match self.words.get(word) {
            Some(word) => Arc::clone(word),
            None => {
                let word: Arc<str> = word.into();
                if self.words.len() < MAX_WORDS {
                    self.words.insert(Arc::clone(&word));
                }
                word
            }
        }
    }
}

fn is_delimiter(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\r' | ',' | '(' | ')' | '[' | ']' | '{' | '}' | '"' | ';' | '\u{b}' | '\u{c}'
    )
}

/// Parses an escape after the backslash; returns the character, or `None` if it is invalid, and its
/// length in bytes.
fn escape(rest: &str) -> (Option<char>, usize) {
    let Some(c) = rest.chars().next() else { return (None, 0) };
    let plain = match c {
        't' => '\t',
        'r' => '\r',
        'n' => '\n',
        'b' => '\u{8}',
        'f' => '\u{c}',
        '\\' => '\\',
        '"' => '"',
        'u' => {
            let digits = rest.get(1..5).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
            let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            return (code.and_then(char::from_u32), if code.is_some() { 5 } else { 1 });
        }
        _ => return (None, c.len_utf8()),
    };
    (Some(plain), 1)
}

/// Parses a number.
fn number(word: &str) -> Option<Kind> {
    let digits = word.strip_suffix('N').unwrap_or(word);
    if let Ok(number) = digits.parse() {
        return Some(Kind::Int(number));
    }
    let is_ratio = |(above, below): (&str, &str)| {
        let above = above.strip_prefix(['-', '+']).unwrap_or(above);
        [above, below].iter().all(|part| part.bytes().all(|b| b.is_ascii_digit()))
            && !below.is_empty()
    };
    let is_number = digits.strip_suffix('M').unwrap_or(digits).parse::<f64>().is_ok()
        || word.split_once('/').is_some_and(is_ratio);
    is_number.then(|| Kind::Number(word.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text; returns the values of its forms and its errors.
    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let mut reader = Reader::default();
        let mut sink = Sink::new("a.edn".into());
        let mut values = Vec::new();
        let mut last = 0;
        for (i, text) in text.lines().enumerate() {
            last = i as u64 + 1;
            reader.line(
                Line { number: last, text },
                &mut sink,
                &mut |form, lines, sink| match form.value() {
                    Ok(value) => values.push(value.to_string()),
                    Err((place, fault)) => lines.report(place, fault, sink),
                },
            );
        }
        reader.end(last, &mut sink);
        (values, sink.diagnostics.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_whole_notation_is_read() {
        for (text, expected) in [
            ("nil true false 7 -3 +5 12N", "null true false 7 -3 5 12"),
            ("1.5 2/3 1e3 4.0M", "\"1.5\" \"2/3\" \"1e3\" \"4.0M\""),
            (":read :a/b sym + -", "read a/b sym \"+\" \"-\""),
            (r#""a\n\"b\"A" \a \newline \u0041"#, r#""a\n\"b\"A" a "\n" A"#),
            ("{:a 1, :b [1 2 (3)]} #{x y}", "[[a,1],[b,[1,2,[3]]]] [x,y]"),
            ("[1 2\n\n 3] 4", "1 2 3 4"),
            ("(1 [2 3])", "1 [2,3]"),
            ("1 #_2 3 #_ #_ 4 5 6 #_[7 8] 9", "1 3 6 9"),
            ("^{:line 3} [1] #inst \"2020\" #a.b/C{:x 1} ##NaN", "1 \"2020\" [[x,1]] \"#NaN\""),
            ("{:a ; no }\n 1}", "[[a,1]]"),
            ("{:text \"two\nlines\"}", "[[text,\"two\\nlines\"]]"),
        ] {
            let (values, errors) = read(text);
            assert_eq!(errors, [""; 0], "{text}");
            assert_eq!(values.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn every_error_has_its_place() {
        for (text, expected) in [
            (
                "{:a 1\n :b}",
                vec!["a.edn:2:2: a key without a value (a map is keys and values in turn)"],
            ),
            (
                "[{:a 1]\n ) 12x",
                vec![
                    "a.edn:1:7: `]` where `}` was expected (what it is to close opens in line 1)",
                    "a.edn:2:2: `)` closes nothing",
                    "a.edn:2:4: `12x` is not a number",
                ],
            ),
            (
                "[1\n {:a\n \"x",
                vec!["a.edn:3:2: this text is never closed (is the input cut off?)"],
            ),
            ("[1 2", vec!["a.edn:1:1: this is never closed by `]` (is the input cut off?)"]),
            (
                r#""\q" : \foo"#,
                vec![
                    "a.edn:1:2: unknown escape (escapes are \\t \\r \\n \\b \\f \\\\ \\\" and \\u with four digits)",
                    "a.edn:1:6: a keyword without a name",
                    "a.edn:1:8: unknown character",
                ],
            ),
            (
                "99999999999999999999",
                vec![
                    "a.edn:1:1: `99999999999999999999` is beyond the 64-bit integers (integers go from -9223372036854775808 to 9223372036854775807)",
                ],
            ),
        ] {
            assert_eq!(read(text).1, expected, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_an_overflow() {
        let text = "{:a ".repeat(100_000);
        let (_, errors) = read(&text);
        assert_eq!(errors.len(), 2, "too deep, and never closed: {errors:?}");
        let text = format!("{}1{} 2", "[".repeat(1000), "]".repeat(1000));
        let (values, errors) = read(&text);
        assert_eq!(values.last().unwrap(), "2", "what follows is read");
        assert_eq!(errors, ["a.edn:1:67: collections nest at most 64 deep"]);
    }
}
