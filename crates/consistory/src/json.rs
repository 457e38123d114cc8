//! Verdicts as JSON, as `consistory check --format json` prints them.

use std::io::{self, Write};
use std::time::Duration;

use consistory_verdict::Proof;

use crate::{Model, Report, Verdict};

/// Largest size of a certificate that is printed, in operations and edges.
pub const MAX_PRINTED_CERTIFICATE: usize = 10_000;

/// Time of reading a history from which reports show it.
pub const SHOWN_READING_TIME: Duration = Duration::from_millis(100);

/// Attachments of a verdict in a report: paths of files, and a shrunk history.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attachments {
    /// File with a certificate that is too large to print.
    pub certificate: Option<String>,
    /// The shrunk history, in the text notation.
    pub shrunk: Option<String>,
    /// File with the drawing.
    pub drawing: Option<String>,
}

impl Attachments {
    /// Checks whether there are no attachments.
    pub fn is_empty(&self) -> bool {
        *self == Attachments::default()
    }
}

impl Verdict<'_> {
    /// Writes the verdict as one JSON object.
    pub fn json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&Attachments::default(), &mut out).expect("writing to memory succeeds");
        String::from_utf8_lossy(&out).into_owned()
    }

    fn write_json(&self, attached: &Attachments, out: &mut Vec<u8>) -> io::Result<()> {
        let (model, verdict) = (quoted(self.model().id()), self.outcome().as_str());
        write!(out, "{{\"model\":{model},\"verdict\":\"{verdict}\"")?;
        if let Model::Isolation { order, .. } | Model::OwnLevel { order, .. } = self.model() {
            write!(out, ",\"order\":\"{}\"", order.id())?;
        }
        if let Some(pattern) = self.pattern() {
            write!(out, ",\"pattern\":{}", quoted(&pattern))?;
        }
        if let Some(via) = self.via() {
            write!(out, ",\"via\":{}", quoted(via))?;
        }
        if let Some(proof) = self.certificate() {
            write!(out, ",\"certificate\":")?;
            self.write_certificate(proof, attached.certificate.as_deref(), out)?;
        }
        write!(out, ",\"explanation\":{}", quoted(&self.explain_line()))?;
        if let Some(shrunk) = &attached.shrunk {
            write!(out, ",\"shrunk\":{}", quoted(shrunk))?;
        }
        if let Some(drawing) = &attached.drawing {
            write!(out, ",\"drawing\":{}", quoted(drawing))?;
        }
        write!(out, ",\"millis\":{:.3}}}", self.time().as_secs_f64() * 1e3)
    }

    /// Writes a certificate, or a substitute for one that is too large to print.
    fn write_certificate(
        &self,
        proof: &Proof,
        file: Option<&str>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let (size, kind) = (proof.size(), proof.kind());
        if size <= MAX_PRINTED_CERTIFICATE {
            return proof.write(self.history(), out);
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
}

impl Report<'_> {
    /// Writes the report as one line of JSON, without a line break.
    pub fn json(&self) -> String {
        self.json_with(&[])
    }

    /// Writes the report as one line of JSON, with the attachments of its verdicts, in order.
    pub fn json_with(&self, attached: &[Attachments]) -> String {
        let mut out = Vec::new();
        self.write_json(attached, &mut out).expect("writing to memory succeeds");
        String::from_utf8_lossy(&out).into_owned()
    }

    fn write_json(&self, attached: &[Attachments], out: &mut Vec<u8>) -> io::Result<()> {
        let history = self.history();
        write!(out, "{{\"source\":{},\"index\":{}", quoted(self.source()), self.index())?;
        if let Some(name) = history.name() {
            write!(out, ",\"name\":{}", quoted(name))?;
        }
        write!(out, ",\"digest\":\"{}\"", history.digest())?;
        let (sessions, operations) = (history.session_count(), history.len());
        write!(out, ",\"sessions\":{sessions},\"operations\":{operations}")?;
        if let Some(object) = self.object() {
            write!(out, ",\"object\":{}", quoted(object.name()))?;
        }
        if self.reading_time() >= SHOWN_READING_TIME {
            let millis = self.reading_time().as_secs_f64() * 1e3;
            write!(out, ",\"reading_millis\":{millis:.3}")?;
        }
        write!(out, ",\"results\":[")?;
        let nothing = Attachments::default();
        for (i, verdict) in self.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            verdict.write_json(attached.get(i).unwrap_or(&nothing), out)?;
        }
        out.push(b']');
        if let Some(strongest) = self.strongest() {
            let ids: Vec<String> = strongest.iter().map(|id| quoted(id)).collect();
            write!(out, ",\"strongest\":[{}]", ids.join(","))?;
        }
        out.push(b'}');
        Ok(())
    }
}

/// Writes a text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
