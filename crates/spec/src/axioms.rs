//! Consistency models of objects: axioms over `po`, `hb`, `lin` and `vis`, and their syntax.
//!
//! An abstract execution of a history adds a total order `lin` and a relation `vis`. A model is a
//! set of axioms `lin >= rel` and `vis >= rel`, where `rel` composes `po`, `hb`, `lin` and `vis`
//! (the grammar of Emmi and Enea, "Monitoring Weak Consistency", Figure 2). Every model also has
//! `Ret` (each return is that of the specification after the visible operations in `lin` order),
//! `lin >= vis` and `lin >= hb`.
//!
//! ```text
//! axioms ::= axiom { separator axiom }          separator ::= ";" | "," | line break
//! axiom  ::= "Ret" | left ">=" rel
//! left   ::= "lin" | "vis" [ "[" method { "," method } "]" ]
//! rel    ::= atom { ";" atom }                  atom ::= "po" | "hb" | "lin" | "vis"
//! ```
//!
//! A `;` composes unless an axiom follows it. `vis[size] >= po` applies only to calls of `size`:
//! this gives each method its own visibility level.

use std::fmt;
use std::ops::Range;

use consistory_diagnostic::{Cursor, Diagnostics, Source};

/// A relation that an axiom composes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Atom {
    /// The order of each session.
    Po,
    /// The order of real time.
    Hb,
    /// The linearization.
    Lin,
    /// The visibility.
    Vis,
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Atom::Po => "po",
            Atom::Hb => "hb",
            Atom::Lin => "lin",
            Atom::Vis => "vis",
        })
    }
}

/// The relation that an axiom bounds from below.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Left {
    /// The linearization.
    Lin,
    /// The visibility.
    Vis,
}

/// An axiom `left >= atom ; ... ; atom`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Axiom {
    /// The bounded relation.
    pub left: Left,
    /// The methods of the operations to which the axiom applies (the targets of its pairs); `None`
    /// for all.
    pub of: Option<Vec<Box<str>>>,
    /// The composed relations, from left to right; never empty.
    pub right: Vec<Atom>,
}

impl Axiom {
    /// Builds an axiom for all operations.
    pub fn all(left: Left, right: &[Atom]) -> Self {
        Axiom { left, of: None, right: right.to_vec() }
    }

    /// Returns whether the axiom applies to operations of a method.
    pub fn concerns(&self, method: &str) -> bool {
        self.of.as_ref().is_none_or(|methods| methods.iter().any(|m| **m == *method))
    }
}

impl fmt::Display for Axiom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.left {
            Left::Lin => "lin",
            Left::Vis => "vis",
        })?;
        if let Some(methods) = &self.of {
            write!(f, "[{}]", methods.join(","))?;
        }
        f.write_str(" >= ")?;
        for (i, atom) in self.right.iter().enumerate() {
            write!(f, "{}{atom}", if i > 0 { " ; " } else { "" })?;
        }
        Ok(())
    }
}

/// Parses axioms; `source` names the text in diagnostics.
pub fn parse_axioms(source: &str, text: &str) -> Result<Vec<Axiom>, Diagnostics> {
    let mut parser = Parser {
        source: Source::new(source, text),
        text,
        tokens: tokens(text),
        next: 0,
        errors: Diagnostics::default(),
    };
    let axioms = parser.axioms();
    if parser.errors.is_empty() { Ok(axioms) } else { Err(parser.errors) }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    Word,
    Contains,
    Semicolon,
    Comma,
    Break,
    Open,
    Close,
    Other,
    End,
}

fn tokens(text: &str) -> Vec<(Token, Range<usize>)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut cursor = Cursor::new(text);
    loop {
        let start = cursor.at;
        let Some(c) = cursor.bump() else { break };
        let token = match c {
            '\n' => Token::Break,
            c if c.is_whitespace() => continue,
            '#' => {
                cursor.take_line();
                continue;
            }
            ';' | '∘' => Token::Semicolon,
            ',' => Token::Comma,
            '[' => Token::Open,
            ']' => Token::Close,
            '⊇' => Token::Contains,
            '>' if cursor.eat("=") => Token::Contains,
            c if is_word(c) => {
                cursor.take_while(is_word);
                Token::Word
            }
            _ => Token::Other,
        };
        found.push((token, start..cursor.at));
    }
    found.push((Token::End, text.len()..text.len()));
    found
}

struct Parser<'a> {
    source: Source<'a>,
    text: &'a str,
    tokens: Vec<(Token, Range<usize>)>,
    next: usize,
    errors: Diagnostics,
}

impl Parser<'_> {
    fn axioms(&mut self) -> Vec<Axiom> {
        let mut axioms = Vec::new();
        loop {
            while matches!(self.peek(), Token::Semicolon | Token::Comma | Token::Break) {
                self.next += 1;
            }
            if self.peek() == Token::End {
                return axioms;
            }
            match self.axiom() {
                Some(Some(axiom)) => axioms.push(axiom),
                Some(None) => {}
                None => self.recover(),
            }
        }
    }

    /// Parses an axiom; `Ret`, which every model has, is not stored.
    fn axiom(&mut self) -> Option<Option<Axiom>> {
        let left = match self.word() {
            Some("Ret" | "ret") => {
                self.next += 1;
                return Some(None);
            }
            Some("lin") => Left::Lin,
            Some("vis") => Left::Vis,
            _ => {
                return self
                    .fail("expected an axiom", "an axiom is `vis >= ...`, `lin >= ...` or `Ret`");
            }
        };
        self.next += 1;
        let of = if self.peek() == Token::Open { Some(self.methods()?) } else { None };
        if self.peek() != Token::Contains {
            return self
                .fail("expected `>=`", "an axiom bounds `lin` or `vis` from below: `vis >= po`");
        }
        self.next += 1;
        let mut right = vec![self.atom()?];
        while self.peek() == Token::Semicolon && !self.axiom_follows() {
            self.next += 1;
            right.push(self.atom()?);
        }
        if !matches!(self.peek(), Token::Semicolon | Token::Comma | Token::Break | Token::End) {
            return self.fail(
                "expected `;` or the end of the axiom",
                "relations are composed by `;`, and a union is two axioms",
            );
        }
        Some(Some(Axiom { left, of, right }))
    }

    fn methods(&mut self) -> Option<Vec<Box<str>>> {
        let mut methods = Vec::new();
        loop {
            self.next += 1;
            match self.word() {
                Some(word) => methods.push(word.into()),
                None => {
                    return self
                        .fail("expected a method's name", "as in `vis[size,contains] >= po`");
                }
            }
            self.next += 1;
            match self.peek() {
                Token::Comma => {}
                Token::Close => {
                    self.next += 1;
                    return Some(methods);
                }
                _ => return self.fail("expected `,` or `]`", "as in `vis[size,contains] >= po`"),
            }
        }
    }

    fn atom(&mut self) -> Option<Atom> {
        let atom = match self.word() {
            Some("po") => Atom::Po,
            Some("hb") => Atom::Hb,
            Some("lin") => Atom::Lin,
            Some("vis") => Atom::Vis,
            _ => {
                return self
                    .fail("expected a relation", "the relations are `po`, `hb`, `lin` and `vis`");
            }
        };
        self.next += 1;
        Some(atom)
    }

    /// Returns whether the text after the next `;` is empty or begins an axiom.
    fn axiom_follows(&self) -> bool {
        let token = |ahead: usize| {
            self.tokens.get(self.next + ahead).map_or(Token::End, |(token, _)| *token)
        };
        match token(1) {
            Token::Word => {
                let (_, range) = &self.tokens[self.next + 1];
                matches!(&self.text[range.clone()], "Ret" | "ret")
                    || matches!(token(2), Token::Contains | Token::Open)
            }
            Token::End | Token::Break | Token::Semicolon | Token::Comma => true,
            _ => false,
        }
    }

    fn recover(&mut self) {
        while !matches!(self.peek(), Token::Semicolon | Token::Comma | Token::Break | Token::End) {
            self.next += 1;
        }
    }

    fn peek(&self) -> Token {
        self.tokens[self.next].0
    }

    fn word(&self) -> Option<&str> {
        let (token, range) = &self.tokens[self.next];
        (*token == Token::Word).then(|| &self.text[range.clone()])
    }

    fn fail<T>(&mut self, message: &str, hint: &str) -> Option<T> {
        let range = self.tokens[self.next].1.clone();
        let message = match &self.text[range.clone()] {
            "" | "\n" => format!("{message}, found the end of the line"),
            found => format!("{message}, found `{found}`"),
        };
        self.errors.push_at(&self.source, range, message, Some(hint.to_owned()));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        parse_axioms("axioms", text).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_semicolon_composes_unless_an_axiom_follows() {
        assert_eq!(shown("vis >= po; vis >= vis ; vis"), ["vis >= po", "vis >= vis ; vis"]);
        assert_eq!(shown("vis >= hb;lin>=vis;po; Ret;"), ["vis >= hb", "lin >= vis ; po"]);
        assert_eq!(
            shown("vis ⊇ vis ∘ po, vis[size,get] >= lin"),
            ["vis >= vis ; po", "vis[size,get] >= lin"]
        );
        assert_eq!(
            shown("# nothing more\nvis >= po # mine\n\nvis >= hb ; vis\n"),
            ["vis >= po", "vis >= hb ; vis"]
        );
        assert_eq!(shown(""), [""; 0]);
    }

    #[test]
    fn every_error_is_reported_at_its_place() {
        let errors = parse_axioms(
            "<axioms>",
            "vis => po; po >= vis; vis >= rf\nvis >= po | hb; lin >= hb;; vis[] >= po; vis >=",
        )
        .unwrap_err();
        let shown: Vec<String> =
            errors.iter().map(|e| format!("{}:{} {}", e.line, e.column, e.message)).collect();
        assert_eq!(
            shown,
            [
                "1:5 expected `>=`, found `=`",
                "1:12 expected an axiom, found `po`",
                "1:30 expected a relation, found `rf`",
                "2:11 expected `;` or the end of the axiom, found `|`",
                "2:33 expected a method's name, found `]`",
                "2:48 expected a relation, found the end of the line",
            ]
        );
    }
}
