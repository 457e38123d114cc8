//! Definitions: a parsed text of the language, with its metadata.

use std::fmt;

use crate::analysis::Analysis;
use crate::program::{CheckKind, Program, Span, TermId};

/// A consistency model as data.
///
/// `consistory-models` parses texts into definitions and evaluates them.
#[derive(Clone, Debug)]
pub struct Definition {
    program: Program,
    analysis: Analysis,
    files: Vec<SourceFile>,
    metadata: Metadata,
}

/// A source file of a definition.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name that diagnostics show.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// The title and the `// @key value` lines of a definition's main file.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// The string at the start of the file, or the file's name.
    pub title: String,
    /// `@id`.
    pub id: Option<String>,
    /// `@name`.
    pub name: Option<String>,
    /// `@source`.
    pub source: Option<String>,
    /// `@meaning`.
    pub meaning: Option<String>,
    /// `@implies`.
    pub implies: Vec<Claim>,
}

/// A claimed implication: every history of the model satisfies another model too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The id of the implied model.
    pub implied: String,
    /// The evidence.
    pub standing: Standing,
}

/// Evidence for an implication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// One definition contains the other.
    Definition,
    /// There is a proof.
    Proved {
        /// Reference to the proof.
        by: String,
    },
    /// The implication held for every history that was tried.
    Checked {
        /// Description of these histories.
        bound: String,
    },
    /// The implication is believed; no verdict may rest on it.
    Conjecture {
        /// Name of the person or publication.
        by: String,
    },
}

impl Standing {
    /// Returns whether verdicts may rest on the implication.
    pub fn is_proved(&self) -> bool {
        matches!(self, Standing::Definition | Standing::Proved { .. })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Definition => f.write_str("by definition"),
            Standing::Proved { by } => write!(f, "proved: {by}"),
            Standing::Checked { bound } => write!(f, "checked: {bound}"),
            Standing::Conjecture { by } => write!(f, "conjecture: {by}"),
        }
    }
}

/// A check of a definition, with its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckView<'a> {
    /// The name after `as` or, without one, the text of the check.
    pub name: &'a str,
    /// The required property.
    pub kind: CheckKind,
    /// The whole statement.
    pub text: &'a str,
    /// Whether the property is required for each operation of a set.
    pub is_quantified: bool,
}

impl Definition {
    /// Puts a definition together from its parts.
    ///
    /// Every span of the program must lie within the text of one of the files.
    pub fn new(
        program: Program,
        analysis: Analysis,
        files: Vec<SourceFile>,
        metadata: Metadata,
    ) -> Self {
        Definition { program, analysis, files, metadata }
    }

    /// Returns the title: the string at the start of the file, or the file's name.
    pub fn title(&self) -> &str {
        &self.metadata.title
    }

    /// Returns the id, `@id`.
    pub fn id(&self) -> Option<&str> {
        self.metadata.id.as_deref()
    }

    /// Returns the short name, `@name`.
    pub fn name(&self) -> Option<&str> {
        self.metadata.name.as_deref()
    }

    /// Returns the publication that defines the model, `@source`.
    pub fn source(&self) -> Option<&str> {
        self.metadata.source.as_deref()
    }

    /// Returns the model's meaning in one sentence, `@meaning`.
    pub fn meaning(&self) -> Option<&str> {
        self.metadata.meaning.as_deref()
    }

    /// Returns the implications that the metadata claims, `@implies`.
    pub fn implies(&self) -> &[Claim] {
        &self.metadata.implies
    }

    /// Returns whether the definition quantifies over store orders, `with ww from store-orders`.
    pub fn has_store_order(&self) -> bool {
        self.program.has_store_order
    }

    /// Returns whether the definition is about transactions: an isolation level.
    pub fn is_transactional(&self) -> bool {
        self.program.is_transactional()
    }

    /// Returns the definition with its names resolved.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the analysis of signs, by which a search prunes.
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// Iterates over the checks, including those of included files, in the order of the text.
    pub fn checks(&self) -> impl ExactSizeIterator<Item = CheckView<'_>> {
        self.program.checks.iter().map(|check| {
            let text = self.text(&check.span);
            CheckView {
                name: check.name.as_deref().unwrap_or(text),
                kind: check.kind,
                text,
                is_quantified: check.forall.is_some(),
            }
        })
    }

    /// Returns the text of a term.
    pub fn term_text(&self, term: TermId) -> &str {
        self.text(self.program.span(term))
    }

    fn text(&self, span: &Span) -> &str {
        &self.files[span.file].text[span.range.clone()]
    }
}
