//! Reads a [`Definition`] from a text of the language.

use consistory_definition::{Claim, Definition, Metadata, Span, Standing};
use consistory_diagnostic::{Diagnostics, did_you_mean, nearest};

use crate::polarity::analyse;
use crate::problem::Problem;
use crate::resolve::{Dialect, Problems, Resolved, diagnostics, resolve};

/// Parses a definition in one of the dialects; `include` returns the text of an included file.
///
/// `file` is the name in diagnostics. All errors of syntax and names are reported at once; if there
/// are none, all errors of recursion and metadata.
pub(crate) fn read_definition(
    dialect: Dialect,
    file: &str,
    text: &str,
    mut include: impl FnMut(&str) -> Option<String>,
) -> Result<Definition, Diagnostics> {
    let Resolved { program, title, metadata: lines, files, mut problems } =
        resolve(file, text, dialect, &mut include);
    if !problems.is_empty() {
        return Err(diagnostics(&files, problems));
    }
    let analysis = analyse(&program).map_err(|found| diagnostics(&files, found))?;
    let title = title.unwrap_or_else(|| file.to_owned());
    let mut metadata = Metadata { title, ..Metadata::default() };
    for (key, value, span) in lines {
        add_metadata(&mut metadata, &key, value, span, &mut problems);
    }
    if !problems.is_empty() {
        return Err(diagnostics(&files, problems));
    }
    Ok(Definition::new(program, analysis, files, metadata))
}

/// Adds a line `@key value` to the metadata.
fn add_metadata(
    metadata: &mut Metadata,
    key: &str,
    value: String,
    span: Span,
    problems: &mut Problems,
) {
    match key {
        "id" => metadata.id = Some(value),
        "name" => metadata.name = Some(value),
        "source" => metadata.source = Some(value),
        "meaning" => {
            // A sentence may extend over several lines.
            match &mut metadata.meaning {
                Some(sentence) => {
                    sentence.push(' ');
                    sentence.push_str(&value);
                }
                none => *none = Some(value),
            }
        }
        "implies" => match claim(&value) {
            Some(claim) => metadata.implies.push(claim),
            None => {
                let hint = "write `@implies cc by definition`, or `proved:`, `checked:` or \
                            `conjecture:` and the evidence";
                problems.push((span, Problem::BadImplication, Some(hint.to_owned())));
            }
        },
        _ => {
            let hint = did_you_mean(&nearest(key, ["id", "name", "source", "meaning", "implies"]));
            problems.push((span, Problem::UnknownMetadata { key: key.to_owned() }, hint));
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
