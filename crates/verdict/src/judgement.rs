//! Judgements: a verdict with its certificate.

use std::time::Duration;

use crate::{Pattern, Proof, Stopped, Verdict};

/// A verdict with the certificate that proves it.
///
/// `C` is the certificate of one family within that family's deciders, and [`Proof`] elsewhere.
#[derive(Clone, PartialEq, Debug)]
pub enum Judgement<C = Proof> {
    /// The history satisfies the model.
    Consistent(C),
    /// The history violates the model.
    Violation {
        /// The pattern of the violation.
        pattern: Pattern,
        /// The proof.
        certificate: C,
    },
    /// The search stopped without an answer.
    Undecided(Stopped),
}

impl<C> Judgement<C> {
    /// Returns the verdict alone.
    pub fn verdict(&self) -> Verdict {
        match self {
            Judgement::Consistent(_) => Verdict::Consistent,
            Judgement::Violation { .. } => Verdict::Violation,
            Judgement::Undecided(_) => Verdict::Undecided,
        }
    }

    /// Returns the certificate, if the verdict is not undecided.
    pub fn certificate(&self) -> Option<&C> {
        match self {
            Judgement::Consistent(certificate) | Judgement::Violation { certificate, .. } => {
                Some(certificate)
            }
            Judgement::Undecided(_) => None,
        }
    }

    /// Borrows the certificate.
    pub fn as_ref(&self) -> Judgement<&C> {
        match self {
            Judgement::Consistent(certificate) => Judgement::Consistent(certificate),
            Judgement::Violation { pattern, certificate } => {
                Judgement::Violation { pattern: pattern.clone(), certificate }
            }
            Judgement::Undecided(stopped) => Judgement::Undecided(stopped.clone()),
        }
    }

    /// Converts the certificate.
    pub fn map<D>(self, convert: impl FnOnce(C) -> D) -> Judgement<D> {
        match self {
            Judgement::Consistent(certificate) => Judgement::Consistent(convert(certificate)),
            Judgement::Violation { pattern, certificate } => {
                Judgement::Violation { pattern, certificate: convert(certificate) }
            }
            Judgement::Undecided(stopped) => Judgement::Undecided(stopped),
        }
    }
}

/// A judgement by one model, and how it was reached.
#[derive(Clone, PartialEq, Debug)]
pub struct Ruling<C = Proof> {
    /// The judgement.
    pub judgement: Judgement<C>,
    /// The other model whose judgement settled this one: a weaker model that is violated, or a
    /// stronger one that is satisfied. The certificate is then for that model.
    pub via: Option<&'static str>,
    /// Time that the decision took; work shared by several models is counted for the first of them.
    pub time: Duration,
}

impl<C> Ruling<C> {
    /// Builds a ruling on a model that no other model settled.
    pub fn own(judgement: Judgement<C>, time: Duration) -> Self {
        Ruling { judgement, via: None, time }
    }

    /// Converts the certificate.
    pub fn map<D>(self, convert: impl FnOnce(C) -> D) -> Ruling<D> {
        let Ruling { judgement, via, time } = self;
        Ruling { judgement: judgement.map(convert), via, time }
    }
}
