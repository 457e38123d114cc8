//! What can be said of a history: three verdicts, each with what supports it.
//!
//! A [`Judgement`] is consistent or a violation, with the [`Certificate`] that proves it, or
//! undecided, with the reason why the search [`Stopped`]. A verdict without a certificate cannot
//! be expressed. An [`ObjectJudgement`] is the same for histories of an object's calls. A [`Budget`]
//! bounds every search.
//!
//! This crate holds types, and how a certificate is written in JSON. Deciders produce them
//! (`consistory-check`, `consistory-models`), and `consistory-certify`, which shares no code with
//! the deciders, accepts or rejects them.

mod budget;
mod certificate;
mod json;
mod objects;

pub use budget::{Budget, Stopped};
pub use certificate::{Certificate, Edge, Relation, View};
pub use json::{CertificateError, MAX_DEPTH, read_certificate, write_certificate};
pub use objects::{
    Attempt, Core, Linearization, ObjectCertificate, ObjectJudgement, Prefix, Unexplained,
    read_object_certificate, write_object_certificate,
};

/// Whether a history satisfies a model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verdict {
    /// It does.
    Consistent,
    /// It does not.
    Violation,
    /// The budget ran out before either was proved.
    Undecided,
}

impl Verdict {
    /// Gives the word that reports use.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Consistent => "consistent",
            Verdict::Violation => "violation",
            Verdict::Undecided => "undecided",
        }
    }
}

/// A verdict and what supports it.
#[derive(Clone, PartialEq, Debug)]
pub enum Judgement {
    /// The history satisfies the model.
    Consistent(Certificate),
    /// The history violates the model.
    Violation {
        /// The bad pattern's name in the literature, for example `WriteCORead`, or the name of the
        /// check that fails in a definition.
        pattern: String,
        /// The proof.
        certificate: Certificate,
    },
    /// The search stopped without an answer.
    Undecided(Stopped),
}

impl Judgement {
    /// Gives the verdict alone.
    pub fn verdict(&self) -> Verdict {
        match self {
            Judgement::Consistent(_) => Verdict::Consistent,
            Judgement::Violation { .. } => Verdict::Violation,
            Judgement::Undecided(_) => Verdict::Undecided,
        }
    }

    /// Gives the certificate, if the verdict is not undecided.
    pub fn certificate(&self) -> Option<&Certificate> {
        match self {
            Judgement::Consistent(certificate) | Judgement::Violation { certificate, .. } => {
                Some(certificate)
            }
            Judgement::Undecided(_) => None,
        }
    }
}
