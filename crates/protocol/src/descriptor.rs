//! k-graph descriptors: a constraint graph as a stream of symbols.
//!
//! The constraint graph of a run grows forever, but at any time only a few of its nodes can still
//! get an edge. Condon and Hu (2001, section 3.2) write such a graph as a string: a node gets an ID
//! from a bounded set, edges are pairs of IDs, and a node loses an ID that is given to another
//! node. A node without an ID can get no more edges. This module contains the symbols, and a text
//! form for people and pipes with one symbol per line:
//!
//! ```text
//! # Figure 3 of the paper
//! 1 ST(P1,B1,1)
//! 2 LD(P2,B1,1)
//! 1 -> 2 inh
//! 3 ST(P1,B1,2)
//! 1 -> 3 po-STo
//! add-ID 3 4
//! ```
//!
//! `LD(P1,B1,init)` loads the initial value, which the paper writes as ⊥. The ID 0 never denotes a
//! node: `add-ID 0 4` removes ID 4 from its node without giving it to another one.
//!
//! [`parse_line`] reads one line at a time, so a stream of any length needs only the memory of a
//! line.

use std::fmt;
use std::ops::{BitOr, Range};

/// A name of a node, valid until another node gets it.
///
/// No node ever has the ID 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id(pub u32);

/// Number of a processor, counting from 0; in text `P1` is the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Processor(pub u32);

/// Number of a block, counting from 0; in text `B1` is the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Block(pub u32);

/// The operation that labels a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Label {
    /// `ST(P,B,V)`.
    Store {
        /// The processor that stores.
        processor: Processor,
        /// The block that is stored to.
        block: Block,
        /// The stored value.
        value: u32,
    },
    /// `LD(P,B,V)`.
    Load {
        /// The processor that loads.
        processor: Processor,
        /// The block that is loaded.
        block: Block,
        /// The loaded value; `None` is the initial value.
        value: Option<u32>,
    },
}

impl Label {
    /// Returns the processor of the operation.
    pub fn processor(self) -> Processor {
        match self {
            Label::Store { processor, .. } | Label::Load { processor, .. } => processor,
        }
    }

    /// Returns the block of the operation.
    pub fn block(self) -> Block {
        match self {
            Label::Store { block, .. } | Label::Load { block, .. } => block,
        }
    }

    /// Returns the value; `None` is the initial value.
    pub fn value(self) -> Option<u32> {
        match self {
            Label::Store { value, .. } => Some(value),
            Label::Load { value, .. } => value,
        }
    }

    /// Checks whether the operation is a store.
    pub fn is_store(self) -> bool {
        matches!(self, Label::Store { .. })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_store() { "ST" } else { "LD" };
        let (processor, block) = (self.processor(), self.block());
        write!(f, "{kind}({processor},{block},")?;
        match self.value() {
            Some(value) => write!(f, "{value})"),
            None => f.write_str("init)"),
        }
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}", u64::from(self.0) + 1)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "B{}", u64::from(self.0) + 1)
    }
}

/// Annotations of an edge: any of four, or none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Annotations(u8);

impl Annotations {
    /// No annotation: the edge only orders its ends.
    pub const NONE: Annotations = Annotations(0);
    /// Program order.
    pub const PO: Annotations = Annotations(1);
    /// ST order.
    pub const STO: Annotations = Annotations(2);
    /// Inheritance: the load takes its value from the store.
    pub const INH: Annotations = Annotations(4);
    /// Forced: the load comes before the store that overwrites the value that it loaded.
    pub const FORCED: Annotations = Annotations(8);

    /// The annotations and their names in text.
    const NAMED: [(Annotations, &str); 4] =
        [(Self::PO, "po"), (Self::STO, "STo"), (Self::INH, "inh"), (Self::FORCED, "forced")];

    /// Checks whether all annotations of `other` are present.
    pub fn has(self, other: Annotations) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Annotations {
    type Output = Annotations;

    fn bitor(self, other: Annotations) -> Annotations {
        Annotations(self.0 | other.0)
    }
}

impl fmt::Display for Annotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (annotation, name) in Self::NAMED {
            if self.has(annotation) {
                write!(f, "{separator}{name}")?;
                separator = "-";
            }
        }
        Ok(())
    }
}

/// A symbol of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Symbol {
    /// A new node with its ID; another node with this ID loses it.
    Node {
        /// ID of the node, not 0.
        id: Id,
        /// Label of the node.
        label: Label,
    },
    /// An edge between the nodes with the two IDs.
    Edge {
        /// An ID of the edge's start.
        from: Id,
        /// An ID of the edge's end.
        to: Id,
        /// Annotations of the edge.
        annotations: Annotations,
    },
    /// Assigns a further ID to a node; another node with this ID loses it.
    AddId {
        /// An ID of the node; if no node has this ID, `id` is only removed from its node.
        node: Id,
        /// The further ID, not 0.
        id: Id,
    },
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Symbol::Node { id, label } => write!(f, "{} {label}", id.0),
            Symbol::Edge { from, to, annotations } if annotations == Annotations::NONE => {
                write!(f, "{} -> {}", from.0, to.0)
            }
            Symbol::Edge { from, to, annotations } => {
                write!(f, "{} -> {} {annotations}", from.0, to.0)
            }
            Symbol::AddId { node, id } => write!(f, "add-ID {} {}", node.0, id.0),
        }
    }
}

/// An error in a line of a descriptor.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {}: {problem}", place.start + 1)]
pub struct DescriptorError {
    /// The line, counting from 1.
    pub line: u64,
    /// Range of the error in the line, in characters counting from 0.
    pub place: Range<usize>,
    /// The line.
    pub text: String,
    /// Description of the error.
    pub problem: DescriptorProblem,
}

/// Kinds of errors in a line of a descriptor.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DescriptorProblem {
    /// The text does not continue as expected.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// Description of the expected text.
        expected: &'static str,
        /// The text that was found.
        found: String,
    },
    /// A number exceeds the limit of the format.
    #[error("{found} is too large, at most {limit} is allowed")]
    TooLarge {
        /// The number.
        found: String,
        /// The largest allowed number.
        limit: u32,
    },
    /// A processor, a block or the ID of a node is 0.
    #[error("{what} count from 1")]
    Zero {
        /// The kind that counts from 1.
        what: &'static str,
    },
    /// An annotation is repeated on one edge.
    #[error("`{name}` occurs twice")]
    Twice {
        /// The annotation.
        name: &'static str,
    },
}

/// Largest ID. The memory of a checker grows with the IDs in use, not with this limit.
pub const MAX_ID: u32 = 1 << 20;
/// Largest number of a processor, a block or a value.
pub const MAX_NUMBER: u32 = i32::MAX as u32;

/// Parses a line of a descriptor: a symbol, or `None` for white space or a comment.
pub fn parse_line(line: u64, text: &str) -> Result<Option<Symbol>, DescriptorError> {
    let text = text.trim_end_matches(['\n', '\r']);
    let mut cursor = Cursor { text, at: 0 };
    cursor.symbol().map_err(|(place, problem)| {
        let column = |byte: usize| text[..byte].chars().count();
        let place = column(place.start)..column(place.end);
        DescriptorError { line, place, text: text.to_owned(), problem }
    })
}

/// Parses a whole descriptor, and reports every error in it.
pub fn parse(text: &str) -> Result<Vec<Symbol>, Vec<DescriptorError>> {
    let mut symbols = Vec::new();
    let mut errors = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match parse_line(number, line) {
            Ok(symbol) => symbols.extend(symbol),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(symbols) } else { Err(errors) }
}

type Failure = (Range<usize>, DescriptorProblem);

struct Cursor<'a> {
    text: &'a str,
    /// Byte offset of the rest.
    at: usize,
}

impl Cursor<'_> {
    fn symbol(&mut self) -> Result<Option<Symbol>, Failure> {
        self.space();
        if self.rest().is_empty() {
            return Ok(None);
        }
        let symbol = if self.takes("add-ID") {
            let node = self.id()?;
            let id = self.node_id()?;
            Symbol::AddId { node, id }
        } else if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            let id = self.node_id()?;
            if self.takes("->") {
                let to = self.node_id()?;
                Symbol::Edge { from: id, to, annotations: self.annotations()? }
            } else {
                Symbol::Node { id, label: self.label()? }
            }
        } else {
            return Err(self.expected("an ID or `add-ID`"));
        };
        if self.rest().is_empty() { Ok(Some(symbol)) } else { Err(self.expected("the line's end")) }
    }

    fn label(&mut self) -> Result<Label, Failure> {
        let store = if self.takes("ST") {
            true
        } else if self.takes("LD") {
            false
        } else {
            return Err(self.expected("`ST`, `LD` or `->`"));
        };
        self.expect("(", "`(`")?;
        self.expect("P", "a processor as `P1`")?;
        let processor = Processor(self.counted("processors")?);
        self.expect(",", "`,`")?;
        self.expect("B", "a block as `B1`")?;
        let block = Block(self.counted("blocks")?);
        self.expect(",", "`,`")?;
        let value = if !store && (self.takes("init") || self.takes("⊥")) {
            None
        } else {
            Some(self.number(MAX_NUMBER)?)
        };
        self.expect(")", "`)`")?;
        Ok(match value {
            Some(value) if store => Label::Store { processor, block, value },
            value => Label::Load { processor, block, value },
        })
    }

    fn annotations(&mut self) -> Result<Annotations, Failure> {
        let mut all = Annotations::NONE;
        if self.rest().is_empty() {
            return Ok(all);
        }
        loop {
            let start = self.at;
            let named = Annotations::NAMED.iter().find(|(_, name)| self.takes(name));
            let Some(&(annotation, name)) = named else {
                return Err(self.expected("`po`, `STo`, `inh` or `forced`"));
            };
            if all.has(annotation) {
                let place = start..start + name.len();
                return Err((place, DescriptorProblem::Twice { name }));
            }
            all = all | annotation;
            if !self.takes("-") {
                return Ok(all);
            }
        }
    }

    fn id(&mut self) -> Result<Id, Failure> {
        self.number(MAX_ID).map(Id)
    }

    fn node_id(&mut self) -> Result<Id, Failure> {
        self.positive("the IDs of nodes", MAX_ID).map(Id)
    }

    fn counted(&mut self, what: &'static str) -> Result<u32, Failure> {
        self.positive(what, MAX_NUMBER).map(|number| number - 1)
    }

    fn positive(&mut self, what: &'static str, limit: u32) -> Result<u32, Failure> {
        let start = self.at;
        match self.number(limit)? {
            0 => Err((start..start + 1, DescriptorProblem::Zero { what })),
            number => Ok(number),
        }
    }

    fn number(&mut self, limit: u32) -> Result<u32, Failure> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(self.expected("a number"));
        }
        let place = self.at..self.at + digits;
        let found = &self.text[place.clone()];
        let number = match found.parse::<u32>() {
            Ok(number) if number <= limit => number,
            _ => {
                let found = shortened(found);
                return Err((place, DescriptorProblem::TooLarge { found, limit }));
            }
        };
        self.at += digits;
        self.space();
        Ok(number)
    }

    fn expect(&mut self, text: &str, expected: &'static str) -> Result<(), Failure> {
        if self.takes(text) { Ok(()) } else { Err(self.expected(expected)) }
    }

    /// Skips `text` and the space after it if the rest starts with `text`; returns whether it did.
    fn takes(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
            self.space();
        }
        found
    }

    fn expected(&self, expected: &'static str) -> Failure {
        let rest = self.rest();
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match rest.chars().next() {
            None => 0,
            Some(c) if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            Some(c) => c.len_utf8(),
        };
        let found = match length {
            0 => "the line's end".to_owned(),
            _ => format!("`{}`", shortened(&rest[..length])),
        };
        (self.at..self.at + length, DescriptorProblem::Expected { expected, found })
    }

    /// Returns the rest of the line, up to a comment.
    fn rest(&self) -> &str {
        let rest = &self.text[self.at..];
        rest.split_once('#').map_or(rest, |(before, _)| before)
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }
}

fn shortened(text: &str) -> String {
    const MAX_LENGTH: usize = 30;
    match text.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let text = "1 ST(P1,B1,1)\n2 LD(P2,B1,1)\n1 -> 2 inh\n3 ST(P1,B1,2)\n1 -> 3 po-STo\n\
                    4 LD(P2,B2,init)\n1 -> 4\n2 -> 4 po\n4 -> 3 forced\nadd-ID 4 1\nadd-ID 0 2\n";
        let written: String = parse(text).unwrap().iter().map(|s| format!("{s}\n")).collect();
        assert_eq!(written, text);
    }

    #[test]
    fn space_and_comments_mean_nothing() {
        let text = "# nothing\n\n  7   LD ( P3 , B1 , ⊥ )  # the initial value\r\n";
        let symbols = parse(text).unwrap();
        assert_eq!(symbols.len(), 1);
        assert_eq!(symbols[0].to_string(), "7 LD(P3,B1,init)");
    }

    #[test]
    fn every_error_has_its_place() {
        let text = "1 XX(P1,B1,1)\n1 ST(P0,B1,1)\n1 -> 0 po\n1 -> 2 po-po\n1 -> 2 pö\n\
                    99999999999 ST(P1,B1,1)\nadd-ID 1\n1 ST(P1,B1,init)\n1 -> 2 po inh\né";
        let errors: Vec<String> =
            parse(text).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "line 1, column 3: expected `ST`, `LD` or `->`, found `XX`",
                "line 2, column 7: processors count from 1",
                "line 3, column 6: the IDs of nodes count from 1",
                "line 4, column 11: `po` occurs twice",
                "line 5, column 8: expected `po`, `STo`, `inh` or `forced`, found `p`",
                "line 6, column 1: 99999999999 is too large, at most 1048576 is allowed",
                "line 7, column 9: expected a number, found the line's end",
                "line 8, column 12: expected a number, found `init`",
                "line 9, column 11: expected the line's end, found `inh`",
                "line 10, column 1: expected an ID or `add-ID`, found `é`",
            ]
        );
    }
}
