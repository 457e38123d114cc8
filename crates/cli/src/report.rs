//! What is printed of a judged history: a JSON line for programs; the page for people is a digest's.

use std::io;

use consistory_check::Ruling;
use consistory_draw::explain_line;
use consistory_history::History;
use consistory_verdict::{Certificate, Judgement, Verdict, write_certificate};

/// The largest certificate that is printed, in operations and edges.
pub(crate) const PRINTED_CERTIFICATE: usize = 10_000;

/// A history and what was found.
pub(crate) struct Report<'a> {
    pub(crate) source: &'a str,
    pub(crate) index: u64,
    pub(crate) history: &'a History,
    pub(crate) results: &'a [Outcome],
    /// The strongest models satisfied, if that was asked for.
    pub(crate) strongest: Option<&'a [String]>,
}

/// A model and what was found.
pub(crate) struct Outcome {
    pub(crate) model: String,
    pub(crate) ruling: Ruling,
    /// Where the certificate is, if it went to a file.
    pub(crate) file: Option<String>,
    /// The violating history with nothing left to take away, in text form.
    pub(crate) shrunk: Option<String>,
    /// Where the violation is drawn.
    pub(crate) drawing: Option<String>,
}

impl Outcome {
    pub(crate) fn verdict(&self) -> Verdict {
        self.ruling.judgement.verdict()
    }
}

/// Writes the line for programs, with its line break.
pub(crate) fn json(report: &Report<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    use io::Write;
    let Report { source, index, history, results, strongest } = report;
    write!(out, "{{\"source\":{},\"index\":{index}", quoted(source))?;
    if let Some(name) = history.name() {
        write!(out, ",\"name\":{}", quoted(name))?;
    }
    let (sessions, operations) = (history.session_count(), history.len());
    write!(out, ",\"sessions\":{sessions},\"operations\":{operations},\"results\":[")?;
    for (i, outcome) in results.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let Ruling { judgement, via, time } = &outcome.ruling;
        let (model, verdict) = (quoted(&outcome.model), judgement.verdict().as_str());
        write!(out, "{{\"model\":{model},\"verdict\":\"{verdict}\"")?;
        if let Judgement::Violation { pattern, .. } = judgement {
            write!(out, ",\"pattern\":{}", quoted(pattern))?;
        }
        if let Some(via) = via {
            write!(out, ",\"via\":{}", quoted(via))?;
        }
        if let Some(certificate) = judgement.certificate() {
            write!(out, ",\"certificate\":")?;
            write_bounded(history, certificate, outcome.file.as_deref(), out)?;
        }
        let explanation = explain_line(history, &outcome.model, judgement);
        write!(out, ",\"explanation\":{}", quoted(&explanation))?;
        if let Some(shrunk) = &outcome.shrunk {
            write!(out, ",\"shrunk\":{}", quoted(shrunk))?;
        }
        if let Some(drawing) = &outcome.drawing {
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
    certificate: &Certificate,
    file: Option<&str>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    use io::Write;
    let size = certificate.size();
    if size <= PRINTED_CERTIFICATE {
        return write_certificate(history, certificate, out);
    }
    let kind = certificate.kind();
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
    let counted = |n: usize, one: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    };
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

/// Colours the verdicts of a table.
pub(crate) fn coloured(table: &str) -> String {
    [("consistent", "32"), ("violation", "31"), ("undecided", "33")].iter().fold(
        table.to_owned(),
        |table, (word, colour)| {
            table.replace(&format!(" {word} "), &format!(" \u{1b}[{colour}m{word}\u{1b}[0m "))
        },
    )
}
