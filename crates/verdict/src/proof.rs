//! Proofs: certificates of any family.

use std::fmt;
use std::io;

use consistory_history::History;
use serde_json::Value;

use crate::json::{CertificateError, read_certificate, write_certificate};
use crate::objects::{read_object_certificate, write_object_certificate};
use crate::transactions_json::{read_transaction_certificate, write_transaction_certificate};
use crate::{Certificate, ObjectCertificate, TransactionCertificate};

/// A family of models, by the kind of operations in their histories.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Family {
    /// Reads and writes of registers.
    Registers,
    /// Calls of an object.
    Objects,
    /// Transactions.
    Transactions,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Registers => "registers",
            Family::Objects => "objects",
            Family::Transactions => "transactions",
        })
    }
}

/// The certificate of a verdict, for any family of models.
#[derive(Clone, PartialEq, Debug)]
pub enum Proof {
    /// A certificate for a model of registers.
    Registers(Certificate),
    /// A certificate for a model of objects.
    Object(ObjectCertificate),
    /// A certificate for an isolation level.
    Transactions(TransactionCertificate),
}

impl From<Certificate> for Proof {
    fn from(certificate: Certificate) -> Self {
        Proof::Registers(certificate)
    }
}

impl From<ObjectCertificate> for Proof {
    fn from(certificate: ObjectCertificate) -> Self {
        Proof::Object(certificate)
    }
}

impl From<TransactionCertificate> for Proof {
    fn from(certificate: TransactionCertificate) -> Self {
        Proof::Transactions(certificate)
    }
}

impl Proof {
    /// Returns the family of models that the proof is about.
    pub fn family(&self) -> Family {
        match self {
            Proof::Registers(_) => Family::Registers,
            Proof::Object(_) => Family::Objects,
            Proof::Transactions(_) => Family::Transactions,
        }
    }

    /// Returns the word for the kind of certificate that appears in reports.
    pub fn kind(&self) -> &'static str {
        match self {
            Proof::Registers(certificate) => certificate.kind(),
            Proof::Object(certificate) => certificate.kind(),
            Proof::Transactions(certificate) => certificate.kind(),
        }
    }

    /// Counts the operations and edges that the certificate lists.
    pub fn size(&self) -> usize {
        match self {
            Proof::Registers(certificate) => certificate.size(),
            Proof::Object(certificate) => certificate.size(),
            Proof::Transactions(certificate) => certificate.size(),
        }
    }

    /// Writes the certificate as one line of JSON, without a line break.
    pub fn write(&self, history: &History, out: &mut impl io::Write) -> io::Result<()> {
        match self {
            Proof::Registers(certificate) => write_certificate(history, certificate, out),
            Proof::Object(certificate) => write_object_certificate(history, certificate, out),
            Proof::Transactions(certificate) => {
                write_transaction_certificate(history, certificate, out)
            }
        }
    }

    /// Reads a certificate of a family from JSON.
    pub fn read(
        history: &History,
        family: Family,
        json: &Value,
    ) -> Result<Proof, CertificateError> {
        Ok(match family {
            Family::Registers => Proof::Registers(read_certificate(history, json)?),
            Family::Objects => Proof::Object(read_object_certificate(history, json)?),
            Family::Transactions => {
                Proof::Transactions(read_transaction_certificate(history, json)?)
            }
        })
    }
}
