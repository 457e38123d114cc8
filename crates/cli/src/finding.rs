//! What is found about a history by a model, of registers or of objects, and how it is told.

use std::io::{self, Write};

use consistory_draw::{
    DrawOptions, InsteadOf, calls_svg, explain, explain_calls, explain_calls_line, explain_line,
    history_svg,
};
use consistory_history::History;
use consistory_verdict::{
    Certificate, Judgement, ObjectCertificate, ObjectJudgement, Verdict, write_certificate,
    write_object_certificate,
};

/// A judgement.
#[derive(PartialEq)]
pub(crate) enum Finding {
    Registers(Judgement),
    /// With what the specification gives in place of what nothing explains, attempt by attempt.
    Objects(ObjectJudgement, Vec<Option<InsteadOf>>),
}

impl Finding {
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Finding::Registers(judgement) => judgement.verdict(),
            Finding::Objects(judgement, _) => judgement.verdict(),
        }
    }

    /// Names what is wrong, or why there is no answer, in a few words.
    pub(crate) fn pattern(&self, history: &History) -> String {
        match self {
            Finding::Registers(Judgement::Consistent(_))
            | Finding::Objects(ObjectJudgement::Consistent(_), _) => String::new(),
            Finding::Registers(Judgement::Undecided(stopped))
            | Finding::Objects(ObjectJudgement::Undecided(stopped), _) => stopped.to_string(),
            Finding::Registers(Judgement::Violation { pattern, .. }) => pattern.clone(),
            Finding::Objects(ObjectJudgement::Refuted(core), _) => core.pattern.clone(),
            Finding::Objects(ObjectJudgement::Violation(unexplained), _) => {
                match unexplained.returned.last() {
                    Some(&op) => format!("unexplained {}", history.reference(op)),
                    None => "unexplained".to_owned(),
                }
            }
        }
    }

    /// Tells in a sentence why the verdict of a model holds.
    pub(crate) fn sentence(&self, history: &History, model: &str) -> String {
        match self {
            Finding::Registers(judgement) => explain_line(history, model, judgement),
            Finding::Objects(judgement, _) => explain_calls_line(history, judgement),
        }
    }

    /// Tells at length why the verdict of a model holds.
    pub(crate) fn story(&self, history: &History, model: &str) -> String {
        match self {
            Finding::Registers(judgement) => explain(history, model, judgement),
            Finding::Objects(judgement, instead) => {
                explain_calls(history, model, judgement, instead)
            }
        }
    }

    /// Draws why the verdict of a model holds.
    pub(crate) fn picture(&self, history: &History, model: &str) -> String {
        match self {
            Finding::Registers(judgement) => {
                let options = DrawOptions { model: model.to_owned(), ..DrawOptions::default() };
                history_svg(history, judgement, &options)
            }
            Finding::Objects(judgement, _) => calls_svg(history, model, judgement),
        }
    }

    /// Returns what proves the verdict, if there is one.
    pub(crate) fn proof(&self) -> Option<Proof<'_>> {
        match self {
            Finding::Registers(judgement) => judgement.certificate().map(Proof::Registers),
            Finding::Objects(judgement, _) => judgement.certificate().map(Proof::Objects),
        }
    }
}

/// A certificate.
pub(crate) enum Proof<'a> {
    Registers(&'a Certificate),
    Objects(ObjectCertificate),
}

impl Proof<'_> {
    /// Returns its size in operations and edges.
    pub(crate) fn size(&self) -> usize {
        match self {
            Proof::Registers(certificate) => certificate.size(),
            Proof::Objects(certificate) => certificate.size(),
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Proof::Registers(certificate) => certificate.kind(),
            Proof::Objects(certificate) => certificate.kind(),
        }
    }

    /// Writes it as JSON.
    pub(crate) fn write(&self, history: &History, out: &mut impl Write) -> io::Result<()> {
        match self {
            Proof::Registers(certificate) => write_certificate(history, certificate, out),
            Proof::Objects(certificate) => write_object_certificate(history, certificate, out),
        }
    }
}
