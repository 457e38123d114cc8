//! Definitions: a text of the language, checked and ready to be evaluated.

use std::fmt;

use crate::diagnostic::{DefinitionError, Problem, did_you_mean, nearest};
use crate::polarity::{Analysis, analyse};
use crate::program::{Program, TermId};
use crate::resolve::{Dialect, Resolved, SourceFile, diagnostics, resolve};
use crate::syntax::{CheckKind, Span};

/// A consistency model as data.
#[derive(Clone, Debug)]
pub struct Definition {
    pub(crate) program: Program,
    pub(crate) analysis: Analysis,
    files: Vec<SourceFile>,
    title: String,
    id: Option<String>,
    name: Option<String>,
    source: Option<String>,
    meaning: Option<String>,
    implies: Vec<Claim>,
}

/// That every history of a model satisfies another one, too, as a definition's metadata claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The id of the implied model.
    pub implied: String,
    /// How it is known.
    pub standing: Standing,
}

/// How an implication is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// One definition contains the other.
    Definition,
    /// There is a proof.
    Proved {
        /// Where it is.
        by: String,
    },
    /// It held for every history that was tried.
    Checked {
        /// Which these are.
        bound: String,
    },
    /// It is believed; no verdict may rest on it.
    Conjecture {
        /// By whom.
        by: String,
    },
}

impl Standing {
    /// Says whether verdicts may rest on it.
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

/// What a definition demands, as its text has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckView<'a> {
    /// The name behind `as`, or the text of the check.
    pub name: &'a str,
    /// What is demanded of the expression.
    pub kind: CheckKind,
    /// The whole statement.
    pub text: &'a str,
    /// Whether it is demanded for each operation of a set.
    pub is_quantified: bool,
}

impl Definition {
    /// Reads a definition; `include` gives the text of a file that it includes.
    ///
    /// `file` is the name that diagnostics show.
    pub fn parse(
        file: &str,
        text: &str,
        include: impl FnMut(&str) -> Option<String>,
    ) -> Result<Definition, DefinitionError> {
        Definition::parse_in(Dialect::Histories, file, text, include)
    }

    /// Reads a definition in one of the dialects.
    pub(crate) fn parse_in(
        dialect: Dialect,
        file: &str,
        text: &str,
        mut include: impl FnMut(&str) -> Option<String>,
    ) -> Result<Definition, DefinitionError> {
        let Resolved { program, title, metadata, files, mut problems } =
            resolve(file, text, dialect, &mut include);
        let mut definition = Definition {
            analysis: match problems.is_empty().then(|| analyse(&program)) {
                Some(Ok(analysis)) => analysis,
                Some(Err(found)) => {
                    return Err(DefinitionError { diagnostics: diagnostics(&files, found) });
                }
                None => return Err(DefinitionError { diagnostics: diagnostics(&files, problems) }),
            },
            program,
            files: Vec::new(),
            title: title.unwrap_or_else(|| file.to_owned()),
            id: None,
            name: None,
            source: None,
            meaning: None,
            implies: Vec::new(),
        };
        for (key, value, span) in metadata {
            definition.describe(&key, value, span, &mut problems);
        }
        if !problems.is_empty() {
            return Err(DefinitionError { diagnostics: diagnostics(&files, problems) });
        }
        definition.files = files;
        Ok(definition)
    }

    /// Gives the title: the string at the start, or the file's name.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Gives the id, `@id`.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Gives the short name, `@name`.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Gives where the model is from, `@source`.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Gives what the model means in a sentence, `@meaning`.
    pub fn meaning(&self) -> Option<&str> {
        self.meaning.as_deref()
    }

    /// Gives the implications that the metadata claims, `@implies`.
    pub fn implies(&self) -> &[Claim] {
        &self.implies
    }

    /// Says whether the definition quantifies over store orders, `with ww from store-orders`.
    pub fn has_store_order(&self) -> bool {
        self.program.has_store_order
    }

    /// Gives the definition with its names resolved.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Iterates over the checks, those of included files too, in the order of the text.
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

    /// Gives the text of a term.
    pub(crate) fn term_text(&self, term: TermId) -> &str {
        self.text(self.program.span(term))
    }

    fn text(&self, span: &Span) -> &str {
        &self.files[span.file].text[span.range.clone()]
    }

    fn describe(
        &mut self,
        key: &str,
        value: String,
        span: Span,
        problems: &mut crate::resolve::Problems,
    ) {
        match key {
            "id" => self.id = Some(value),
            "name" => self.name = Some(value),
            "source" => self.source = Some(value),
            "meaning" => {
                // A sentence may go over several lines.
                match &mut self.meaning {
                    Some(sentence) => {
                        sentence.push(' ');
                        sentence.push_str(&value);
                    }
                    none => *none = Some(value),
                }
            }
            "implies" => match claim(&value) {
                Some(claim) => self.implies.push(claim),
                None => {
                    let hint = "write `@implies cc by definition`, or `proved:`, `checked:` or \
                                `conjecture:` and the evidence";
                    problems.push((span, Problem::BadImplication, Some(hint.to_owned())));
                }
            },
            _ => {
                let keys = ["id", "name", "source", "meaning", "implies"];
                let hint = did_you_mean(&nearest(key, keys.into_iter()));
                problems.push((span, Problem::UnknownMetadata { key: key.to_owned() }, hint));
            }
        }
    }
}

/// Reads `cc by definition`, `ccm proved: where`, `x checked: on what`, `x conjecture: by whom`.
fn claim(value: &str) -> Option<Claim> {
    let (implied, known) = value.split_once(char::is_whitespace)?;
    let known = known.trim_start();
    let standing = if known == "by definition" {
        Standing::Definition
    } else {
        let (word, evidence) = known.split_once(':')?;
        let evidence = evidence.trim().to_owned();
        match word {
            "proved" => Standing::Proved { by: evidence },
            "checked" => Standing::Checked { bound: evidence },
            "conjecture" => Standing::Conjecture { by: evidence },
            _ => return None,
        }
    };
    Some(Claim { implied: implied.to_owned(), standing })
}
