//! The Murphi language: from text to a checked program.
//!
//! In reading order: [`lexer`] and [`parser`] build the syntax tree ([`syntax`]); [`check`] turns
//! it into a checked program ([`types`], [`ir`]); [`flow`] finds where data flows, and [`commute`]
//! finds the symmetric scalarsets.

mod check;
mod check_expr;
mod check_stmt;
pub(crate) mod commute;
pub(crate) mod flow;
pub(crate) mod ir;
mod lexer;
mod parser;
mod syntax;
mod types;

use std::sync::Arc;

use consistory_diagnostic::Diagnostics;

pub use check::ConstantValue;
pub(crate) use check_expr::fold;
pub(crate) use parser::Problem;
pub(crate) use syntax::{BinaryOp, Span};
pub(crate) use types::{Piece, Type, TypeId, Types};

use ir::Program;

/// Largest size of a description in bytes.
pub(crate) const MAX_BYTES: usize = 4 << 20;

/// Reads and checks a description. Reports all syntax errors together or, if there are none, all
/// errors of names and types.
pub(crate) fn read(
    source: &Source,
    constants: &[(String, ConstantValue)],
) -> Result<Program, Diagnostics> {
    if source.text.len() > MAX_BYTES {
        let message = format!("the description is longer than {MAX_BYTES} bytes");
        return Err(source.diagnostics(vec![(Span::default(), message)]));
    }
    let mut problems = Vec::new();
    let model = parser::parse(&source.text, &mut problems);
    if !problems.is_empty() {
        // A text in another language has errors everywhere, so one message suffices.
        if model.items.is_empty() && !parser::starts_as_murphi(&source.text) {
            problems.sort_by_key(|(span, _)| span.start);
            problems.truncate(1);
            let (_, message) = &mut problems[0];
            *message = format!("this is not a description in Murphi: {message}");
        }
        return Err(source.diagnostics(problems));
    }
    let program = check::check(&model, constants, &mut problems);
    if problems.is_empty() { Ok(program) } else { Err(source.diagnostics(problems)) }
}

/// A text with its name and the positions of its lines.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    /// Start of each line.
    lines: Vec<u32>,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let breaks = text.bytes().zip(1..).filter(|&(byte, _)| byte == b'\n').map(|(_, at)| at);
        let lines = std::iter::once(0).chain(breaks).collect();
        Source { name: name.into(), text: text.into(), lines }
    }

    /// Returns the line of a position, counting from 0, and the start of the line.
    fn line(&self, at: u32) -> (usize, u32) {
        let line = self.lines.partition_point(|&start| start <= at) - 1;
        (line, self.lines[line])
    }

    /// Returns the line and column of a position, counting from 1.
    pub(crate) fn place(&self, span: Span) -> (u64, u64) {
        let (line, start) = self.line(span.start);
        let before = &self.text[start as usize..span.start as usize];
        (line as u64 + 1, before.chars().count() as u64 + 1)
    }

    /// Converts problems into diagnostics, in the order of the text.
    pub(crate) fn diagnostics(&self, mut problems: Vec<Problem>) -> Diagnostics {
        problems.sort_by_key(|(span, _)| span.start);
        problems.dedup();
        let mut diagnostics = Diagnostics::default();
        for (span, message) in problems {
            let (line, start) = self.line(span.start);
            let text = self.text[start as usize..].split('\n').next().unwrap_or_default();
            let text = text.trim_end_matches('\r');
            let range = (span.start - start) as usize..span.end.saturating_sub(start) as usize;
            // Only the first line of a range is marked.
            let end = range.end.min(text.len());
            let range = range.start.min(end)..end;
            diagnostics.push(&self.name, line as u64 + 1, text, range, message, None);
        }
        diagnostics
    }
}
