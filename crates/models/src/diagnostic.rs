//! What is wrong with a definition, and where.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// What a name or expression stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A set of operations.
    Set,
    /// A relation between operations.
    Relation,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Set => "a set",
            Kind::Relation => "a relation",
        })
    }
}

/// What can be wrong with a definition.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// A character that the language does not use.
    #[error("unexpected character `{found}`")]
    UnexpectedCharacter {
        /// The character.
        found: char,
    },
    /// A comment `(*` without its `*)`.
    #[error("this comment never ends")]
    UnterminatedComment,
    /// A string without its closing quote on the same line.
    #[error("this string never ends")]
    UnterminatedString,
    /// Something else should stand here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What should stand here.
        expected: &'static str,
        /// What does.
        found: String,
    },
    /// Expressions are nested beyond any need.
    #[error("nested too deeply")]
    NestedTooDeeply,
    /// The text is longer than any definition.
    #[error("the definition is longer than {limit} bytes")]
    TooLong {
        /// How long it may be.
        limit: usize,
    },
    /// Nothing has that name.
    #[error("undefined name `{name}`")]
    UndefinedName {
        /// The name.
        name: String,
    },
    /// A name that is not a function's is applied to arguments.
    #[error("`{name}` is not a function")]
    NotAFunction {
        /// The name.
        name: String,
    },
    /// A function stands without its arguments.
    #[error("the function `{name}` needs arguments")]
    MissingArguments {
        /// The function.
        name: String,
    },
    /// A function has too few or too many arguments.
    #[error("`{name}` takes {expected} argument(s), found {found}")]
    WrongArity {
        /// The function.
        name: String,
        /// How many it takes.
        expected: usize,
        /// How many it was given.
        found: usize,
    },
    /// A set where a relation is needed, or the other way round.
    #[error("expected {expected}, found {found}")]
    WrongKind {
        /// What is needed.
        expected: Kind,
        /// What stands there.
        found: Kind,
    },
    /// A least solution need not exist.
    #[error("`{name}` is defined by recursion through a complement or the right side of `\\`")]
    NonMonotone {
        /// The recursive name.
        name: String,
    },
    /// A function is defined by `let rec`.
    #[error("a function cannot be recursive")]
    RecursiveFunction,
    /// A parameter or name is bound twice at once.
    #[error("`{name}` is bound twice")]
    BoundTwice {
        /// The name.
        name: String,
    },
    /// A file that includes itself.
    #[error("`{path}` includes itself")]
    CyclicInclude {
        /// The included file.
        path: String,
    },
    /// An included file that cannot be found.
    #[error("cannot find `{path}` to include")]
    UnknownInclude {
        /// The included file.
        path: String,
    },
    /// A key of a metadata line that means nothing.
    #[error("unknown metadata `@{key}`")]
    UnknownMetadata {
        /// The key.
        key: String,
    },
    /// An `@implies` line whose standing cannot be read.
    #[error("expected a model's id and how the implication is known")]
    BadImplication,
    /// The store order is declared more than once.
    #[error("the store order is declared twice")]
    SecondStoreOrder,
    /// Total orders are declared more than once.
    #[error("there is a memory order or the threads' views already")]
    SecondTotalOrder,
    /// A statement that cannot stand inside `forall`.
    #[error("only `let` and checks can stand inside `forall`")]
    MisplacedInForall,
    /// A definition that checks nothing.
    #[error("the definition checks nothing")]
    NoChecks,
}

/// A problem and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The file, as it was named.
    pub source: String,
    /// The line, counting from 1.
    pub line: usize,
    /// The column in characters, counting from 1.
    pub column: usize,
    /// How many characters are meant, at least 1.
    pub length: usize,
    /// The whole line.
    pub text: String,
    /// What is wrong.
    pub problem: Problem,
    /// What may help.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// Gives what is wrong in a sentence.
    pub fn message(&self) -> String {
        self.problem.to_string()
    }

    /// Makes the diagnostic of a byte range of a text; only its first line is kept.
    pub(crate) fn at(
        source: &str,
        text: &str,
        range: std::ops::Range<usize>,
        problem: Problem,
        hint: Option<String>,
    ) -> Self {
        let before = &text[..range.start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..].split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let start = (range.start - line_start).min(line.len());
        let end = range.end.saturating_sub(line_start).clamp(start, line.len());
        Diagnostic {
            source: source.to_owned(),
            line: before.matches('\n').count() + 1,
            column: line[..start].chars().count() + 1,
            length: line[start..end].chars().count().max(1),
            text: line.to_owned(),
            problem,
            hint,
        }
    }
}

/// All that is wrong with a definition, in the order of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefinitionError {
    /// The diagnostics, at least one.
    pub diagnostics: Vec<Diagnostic>,
}

impl DefinitionError {
    /// Renders the diagnostics as rustc does, with or without colour.
    pub fn render(&self, style: Style) -> String {
        let renderer = match style {
            Style::Plain => Renderer::plain(),
            Style::Styled => Renderer::styled(),
        };
        let rendered: Vec<String> = self
            .diagnostics
            .iter()
            .map(|diagnostic| {
                let byte = |chars: usize| {
                    let text = &diagnostic.text;
                    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
                };
                let start = byte(diagnostic.column - 1);
                let end = byte(diagnostic.column - 1 + diagnostic.length);
                let snippet = Snippet::source(diagnostic.text.as_str())
                    .path(diagnostic.source.as_str())
                    .line_start(diagnostic.line)
                    .annotation(AnnotationKind::Primary.span(start..end));
                let message = diagnostic.message();
                let mut group: Group<'_> = Level::ERROR.primary_title(&message).element(snippet);
                if let Some(hint) = &diagnostic.hint {
                    group = group.element(Level::HELP.message(hint));
                }
                renderer.render(&[group])
            })
            .collect();
        rendered.join("\n\n")
    }
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:{}:{}: {}", d.source, d.line, d.column, d.problem)?;
        }
        Ok(())
    }
}

impl std::error::Error for DefinitionError {}

/// Whether rendered text has colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Without escape codes.
    Plain,
    /// With ANSI colours.
    Styled,
}

/// Finds the names nearest to `name`: those within a third of its length in edits, best first.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let bound = name.chars().count() / 3;
    let mut near: Vec<(usize, &str)> = candidates
        .map(|candidate| (edits(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|&(distance, _)| distance <= bound)
        .collect();
    near.sort();
    near.dedup();
    near.truncate(3);
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Shows names as a hint: `did you mean ...?`.
pub(crate) fn did_you_mean(near: &[&str]) -> Option<String> {
    if near.is_empty() {
        return None;
    }
    let quoted: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    Some(format!("did you mean {}?", quoted.join(" or ")))
}

/// Counts the insertions, deletions, substitutions and swaps of neighbours between two words.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substitute = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substitute.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(rows[i - 2][j - 2] + 1);
            }
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
