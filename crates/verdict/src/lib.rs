//! Verdicts on histories with their certificates.
//!
//! A [`Judgement`] is consistent or a violation, with the certificate that proves it, or undecided,
//! with the reason why the search [`Stopped`]. A verdict without a certificate cannot be expressed.
//!
//! The types are the same for every family of models. A decider works with the certificates of its
//! own family ([`Certificate`] for registers, [`ObjectCertificate`] for an object's calls,
//! [`TransactionCertificate`] for isolation levels); a [`Proof`] is a certificate of any family.
//! [`Options`] limit a search, and a [`Ruling`] is a judgement with its time.
//!
//! This crate contains types, and the JSON form of certificates. Deciders produce certificates
//! (`consistory-registers`, `consistory-objects`, `consistory-models`). The checker
//! `consistory-certify`, which shares no code with the deciders, accepts or rejects them.

mod anomaly;
mod budget;
mod certificate;
mod json;
mod judgement;
mod memory;
mod named;
mod objects;
mod options;
mod pattern;
mod proof;
mod relation;
mod transactions;
mod transactions_json;

use std::fmt;

pub use anomaly::Anomaly;
pub use budget::{Budget, Gauge, MAX_STRETCH, Meter, Stopped, Stopwatch, Tenant};
pub use certificate::{Certificate, Edge, View};
pub use json::{CertificateError, MAX_DEPTH, read_certificate, write_certificate};
pub use judgement::{Judgement, Ruling};
pub use memory::{BYTES_PER_ALLOCATION, Bytes};
pub use objects::{
    Attempt, Core, Instead, Linearization, ObjectCertificate, Prefix, Unexplained,
    read_object_certificate, write_object_certificate,
};
pub use options::Options;
pub use pattern::Pattern;
pub use proof::{Family, Proof};
pub use relation::Relation;
pub use transactions::{BadRead, ClientOrder, Dependency, Level, Relates, TransactionCertificate};
pub use transactions_json::{read_transaction_certificate, write_transaction_certificate};

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a history satisfies a model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verdict {
    /// The history satisfies the model.
    Consistent,
    /// The history violates the model.
    Violation,
    /// The search stopped before either was proved.
    Undecided,
}

impl Verdict {
    /// Returns the word that appears in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Consistent => "consistent",
            Verdict::Violation => "violation",
            Verdict::Undecided => "undecided",
        }
    }
}
