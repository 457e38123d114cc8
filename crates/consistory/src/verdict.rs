//! Verdicts: a history, a model, and a judgement that the checker has accepted.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use consistory_draw::{DrawOptions, explain, explain_line, explain_within, history_svg};
use consistory_formats::{Format, write_history};
use consistory_history::History;
use consistory_verdict::{
    Instead, Judgement, ObjectCertificate, Proof, Ruling, Stopped, Verdict as Outcome,
};

use crate::court::Settings;
use crate::held::Held;
use crate::model::{Minimal, Model, Rejection};
use crate::report::{Origin, Report};
use crate::{Court, Error, objects};

/// The verdict of a court on a history and a model.
#[derive(Clone, Debug)]
pub struct Verdict<'h> {
    pub(crate) history: Held<'h>,
    pub(crate) model: Model,
    pub(crate) ruling: Ruling,
    pub(crate) rejection: Option<String>,
    pub(crate) settings: Settings,
}

impl<'h> Verdict<'h> {
    /// Returns the outcome: consistent, a violation, or undecided.
    pub fn outcome(&self) -> Outcome {
        self.ruling.judgement.verdict()
    }

    /// Checks whether the history satisfies the model.
    pub fn is_consistent(&self) -> bool {
        self.outcome() == Outcome::Consistent
    }

    /// Checks whether the history violates the model.
    pub fn is_violation(&self) -> bool {
        self.outcome() == Outcome::Violation
    }

    /// Returns the model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the id of the other model whose certificate settled this one: a weaker model that is
    /// violated or a stronger one that is satisfied. The certificate is about that model.
    pub fn via(&self) -> Option<&'static str> {
        self.ruling.via
    }

    /// Returns the id of the model that the certificate is about.
    pub fn proved(&self) -> &str {
        self.ruling.via.unwrap_or(self.model.id())
    }

    /// Returns the history as it was judged.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the outcome with its certificate or, if undecided, the reason.
    pub fn judgement(&self) -> &Judgement {
        &self.ruling.judgement
    }

    /// Returns the proof of the outcome, unless it is undecided.
    pub fn certificate(&self) -> Option<&Proof> {
        self.ruling.judgement.certificate()
    }

    /// Returns the time of judging, including the check of the certificate; work shared by several
    /// models is attributed to the first of them.
    pub fn time(&self) -> Duration {
        self.ruling.time
    }

    /// Returns the reason why the checker rejected the certificate, if it did; the outcome is then
    /// undecided.
    ///
    /// A rejection is a defect of this library.
    pub fn rejection(&self) -> Option<&str> {
        self.rejection.as_deref()
    }

    /// Returns the violated pattern in a few words, if the history violates the model.
    pub fn pattern(&self) -> Option<String> {
        let Judgement::Violation { pattern, certificate } = &self.ruling.judgement else {
            return None;
        };
        if let Proof::Object(ObjectCertificate::Unexplained(unexplained)) = certificate
            && let Some(&op) = unexplained.returned.last()
        {
            return Some(format!("{pattern} {}", self.history.reference(op)));
        }
        Some(pattern.to_string())
    }

    /// Explains the outcome in plain sentences.
    pub fn explain(&self) -> String {
        let name = match self.ruling.via {
            Some(via) if self.is_violation() => format!("{via}, and so {}", self.model.id()),
            _ => self.proved().to_owned(),
        };
        without_colours(&self.explain_in_colour(&name))
    }

    /// Explains the outcome with the escape sequences of terminal colours, under a given name of
    /// the model or models that share this proof.
    pub fn explain_in_colour(&self, name: &str) -> String {
        explain(&self.history, name, &self.ruling.judgement, &self.instead())
    }

    /// Explains the outcome as [`explain_in_colour`](Self::explain_in_colour) does, with diagrams of
    /// at most `columns` columns.
    pub fn explain_within(&self, name: &str, columns: usize) -> String {
        explain_within(&self.history, name, &self.ruling.judgement, &self.instead(), columns)
    }

    /// Explains the outcome in one line.
    pub fn explain_line(&self) -> String {
        explain_line(&self.history, self.model.id(), &self.ruling.judgement)
    }

    /// Draws the history and its violation as SVG.
    pub fn draw(&self) -> String {
        let options = DrawOptions { model: self.proved().to_owned(), ..DrawOptions::default() };
        history_svg(&self.history, &self.ruling.judgement, &options)
    }

    /// Writes the history in the text notation.
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        match write_history(&self.history, Format::Hist, &mut text) {
            Ok(()) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) => format!("# {error}\n"),
        }
    }

    /// Removes operations from a violating history as long as it violates the model, and judges the
    /// remaining history.
    ///
    /// A history that does not violate the model is returned unchanged.
    pub fn shrink(&self) -> Result<Shrunk, Error> {
        let Verdict { history, ruling, settings, .. } = self;
        let model = self.model.of_proof(ruling.via);
        let (small, minimal) = model.shrink(history, &ruling.judgement, settings)?;
        let court = Court::with_model(model, settings.clone());
        let mut report = court.judge_case(small.into())?;
        Ok(Shrunk { verdict: report.verdicts.swap_remove(0), minimal })
    }

    /// Checks the certificate now, if the court did not.
    #[must_use]
    pub fn certified(self) -> Self {
        let Verdict { history, model, ruling, settings, .. } = &self;
        let accepted = model.accept_ruling(history, ruling, &settings.certify_options(1));
        self.withheld_if(accepted.err())
    }

    /// Withholds an outcome whose proof was not accepted.
    pub(crate) fn withheld_if(mut self, rejection: Option<Rejection>) -> Self {
        match rejection {
            None => {}
            Some(Rejection::Stopped(stopped)) => {
                self.ruling.judgement = Judgement::Undecided(stopped);
            }
            Some(Rejection::Unproved { reason }) => {
                self.ruling.judgement = Judgement::Undecided(Stopped::Rejected);
                self.rejection = Some(reason);
            }
        }
        self
    }

    /// Builds a report of this verdict alone.
    pub fn into_report(self) -> Report<'h> {
        let object = match &self.model {
            Model::Object { object, .. } => Some(object.clone()),
            _ => None,
        };
        let (place, history) = (Origin::default(), self.history.clone());
        Report { place, history, object, verdicts: vec![self], strongest: None }
    }

    /// Computes the return of an unexplained call in each attempt to explain it.
    fn instead(&self) -> Vec<Option<Instead>> {
        match self.model.of_proof(self.ruling.via) {
            Model::Object { object, model } => {
                objects::instead(&self.history, &object, &model, &self.ruling.judgement)
            }
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Verdict<'_> {
    /// Writes the explanation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.explain())
    }
}

/// The verdict on a part of a history that still violates the model.
#[derive(Clone, Debug)]
pub struct Shrunk {
    verdict: Verdict<'static>,
    minimal: Minimal,
}

impl Shrunk {
    /// Checks whether it is known that no further operation can be removed.
    pub fn is_minimal(&self) -> bool {
        self.minimal == Minimal::Yes
    }
}

impl Deref for Shrunk {
    type Target = Verdict<'static>;

    fn deref(&self) -> &Verdict<'static> {
        &self.verdict
    }
}

/// Removes the escape sequences of colours.
pub(crate) fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..start]);
        let sequence = &rest[start..];
        rest = sequence.find('m').map_or("", |end| &sequence[end + 1..]);
    }
    plain.push_str(rest);
    plain
}
