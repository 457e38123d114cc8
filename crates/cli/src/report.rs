//! What is printed of a judged history: a JSON line for programs; the page for people is a digest's.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use consistory_history::History;
use consistory_verdict::Verdict;

use crate::args::CheckArgs;
use crate::error::CliError;
use crate::finding::{Finding, Proof};
use crate::output::write_file;

/// The largest certificate that is printed, in operations and edges.
pub(crate) const PRINTED_CERTIFICATE: usize = 10_000;

/// A history and what was found.
pub(crate) struct Report<'a> {
    pub(crate) source: &'a str,
    pub(crate) index: u64,
    pub(crate) history: &'a History,
    /// The object that it is of, if it is judged as calls.
    pub(crate) object: Option<&'a str>,
    pub(crate) results: &'a [Outcome],
    /// The strongest models satisfied, if that was asked for.
    pub(crate) strongest: Option<&'a [String]>,
}

/// A model and what was found.
pub(crate) struct Outcome {
    pub(crate) model: String,
    pub(crate) finding: Finding,
    /// The model whose verdict settled it, if not its own.
    pub(crate) via: Option<&'static str>,
    pub(crate) time: Duration,
    /// Where the certificate is, if it went to a file.
    pub(crate) file: Option<String>,
    /// The violating history with nothing left to take away, in text form.
    pub(crate) shrunk: Option<String>,
    /// Where the violation is drawn.
    pub(crate) drawing: Option<String>,
}

impl Outcome {
    pub(crate) fn new(
        model: &str,
        finding: Finding,
        via: Option<&'static str>,
        time: Duration,
    ) -> Self {
        let model = model.to_owned();
        Outcome { model, finding, via, time, file: None, shrunk: None, drawing: None }
    }

    /// Writes a certificate that is too large to print, and the drawing of a violation, into the
    /// folders that the command line names.
    pub(crate) fn write_files(
        &mut self,
        history: &History,
        args: &CheckArgs,
        place: Place<'_>,
    ) -> Result<(), CliError> {
        if let (Some(folder), Some(proof)) = (&args.certificates, self.finding.proof())
            && proof.size() > PRINTED_CERTIFICATE
        {
            let path = folder.join(place.file_name("json"));
            write_file(&path, |out| {
                proof.write(history, out)?;
                out.write_all(b"\n")
            })?;
            self.file = Some(path.display().to_string());
        }
        if let (Some(folder), Verdict::Violation) = (&args.draw, self.verdict()) {
            let path = folder.join(place.file_name("svg"));
            let svg = self.finding.picture(history, self.proved());
            write_file(&path, |out| out.write_all(svg.as_bytes()))?;
            self.drawing = Some(path.display().to_string());
        }
        Ok(())
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.finding.verdict()
    }

    /// Returns the model that the proof is about.
    pub(crate) fn proved(&self) -> &str {
        self.via.unwrap_or(&self.model)
    }

    /// Names the model that the proof is about, and those among all outcomes that share its fate.
    pub(crate) fn named(&self, all: &[Outcome]) -> String {
        let follows = |other: &&Outcome| other.via.is_some() && other.finding == self.finding;
        let others: Vec<&str> =
            all.iter().filter(follows).map(|other| other.model.as_str()).collect();
        match others.split_last() {
            None => self.proved().to_owned(),
            Some((last, [])) => format!("{}, and so {last}", self.proved()),
            Some((last, rest)) => {
                format!("{}, and so {} and {last}", self.proved(), rest.join(", "))
            }
        }
    }
}

/// Which verdict a file is about.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) source: &'a str,
    pub(crate) number: usize,
    pub(crate) index: u64,
    pub(crate) model: &'a str,
}

impl Place<'_> {
    /// Gives a file name that no other verdict of the run has.
    pub(crate) fn file_name(self, extension: &str) -> String {
        let plain = |text: &str| -> String {
            let stem = Path::new(text).file_name().unwrap_or_default().to_string_lossy();
            stem.chars()
                .map(|c| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '_' })
                .take(80)
                .collect()
        };
        let Place { source, number, index, model } = self;
        format!("{number:04}-{}.{index}.{}.{extension}", plain(source), plain(model))
    }
}

/// Writes the line for programs, with its line break.
pub(crate) fn json(report: &Report<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    let Report { source, index, history, object, results, strongest } = report;
    write!(out, "{{\"source\":{},\"index\":{index}", quoted(source))?;
    if let Some(name) = history.name() {
        write!(out, ",\"name\":{}", quoted(name))?;
    }
    let (sessions, operations) = (history.session_count(), history.len());
    write!(out, ",\"sessions\":{sessions},\"operations\":{operations}")?;
    if let Some(object) = object {
        write!(out, ",\"object\":{}", quoted(object))?;
    }
    write!(out, ",\"results\":[")?;
    for (i, outcome) in results.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let Outcome { model, finding, via, time, file, shrunk, drawing } = outcome;
        let verdict = finding.verdict();
        write!(out, "{{\"model\":{},\"verdict\":\"{}\"", quoted(model), verdict.as_str())?;
        if verdict == Verdict::Violation {
            write!(out, ",\"pattern\":{}", quoted(&finding.pattern(history)))?;
        }
        if let Some(via) = via {
            write!(out, ",\"via\":{}", quoted(via))?;
        }
        if let Some(proof) = finding.proof() {
            write!(out, ",\"certificate\":")?;
            write_bounded(history, &proof, file.as_deref(), out)?;
        }
        let explanation = finding.sentence(history, model);
        write!(out, ",\"explanation\":{}", quoted(&explanation))?;
        if let Some(shrunk) = shrunk {
            write!(out, ",\"shrunk\":{}", quoted(shrunk))?;
        }
        if let Some(drawing) = drawing {
            write!(out, ",\"drawing\":{}", quoted(drawing))?;
        }
        write!(out, ",\"millis\":{:.3}}}", time.as_secs_f64() * 1e3)?;
    }
    out.push(b']');
    if let Some(strongest) = strongest {
        let ids: Vec<String> = strongest.iter().map(|id| quoted(id)).collect();
        write!(out, ",\"strongest\":[{}]", ids.join(","))?;
    }
    out.extend(b"}\n");
    Ok(())
}

/// Writes a certificate, or what stands for one that is too large to print.
fn write_bounded(
    history: &History,
    proof: &Proof<'_>,
    file: Option<&str>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let (size, kind) = (proof.size(), proof.kind());
    if size <= PRINTED_CERTIFICATE {
        return proof.write(history, out);
    }
    match file {
        Some(file) => {
            write!(out, "{{\"kind\":\"{kind}\",\"size\":{size},\"file\":{}}}", quoted(file))
        }
        None => write!(
            out,
            "{{\"kind\":\"{kind}\",\"size\":{size},\"omitted\":\"too large to print, \
             --certificates DIR writes it to a file\"}}"
        ),
    }
}

/// Writes a text as JSON has it.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Gives the line above the verdicts.
pub(crate) fn heading(source: &str, index: u64, history: &History) -> String {
    let mut page = format!("\u{1b}[1m{source}\u{1b}[0m");
    match (history.name(), index) {
        (Some(name), _) => page += &format!(" [{name}]"),
        (None, 0) => {}
        (None, index) => page += &format!(" [{index}]"),
    }
    page += &format!(
        ": {}, {}\n",
        counted(history.session_count(), "session"),
        counted(history.len(), "operation")
    );
    page
}

/// Writes a number of things, as `1 session` or `2 sessions`.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Colours the verdicts of a table.
pub(crate) fn coloured(table: &str) -> String {
    [("consistent", "32"), ("violation", "31"), ("undecided", "33")].iter().fold(
        table.to_owned(),
        |table, (word, colour)| {
            table.replace(&format!(" {word} "), &format!(" \u{1b}[{colour}m{word}\u{1b}[0m "))
        },
    )
}
