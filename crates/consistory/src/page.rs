//! A report as a page: one case of an interactive report.

use std::collections::HashMap;

use consistory_draw::{DrawOptions, history_scenes};
use consistory_history::{Action, OpId};
use consistory_report::{Case as PageCase, ResultRow};
use consistory_scene::PictureFormat;
use consistory_verdict::{ObjectCertificate, Proof};
use serde_json::Value;

use crate::{MAX_PRINTED_CERTIFICATE, Model, Report, Shrunk, Verdict};

/// Longer histories are not written out on the page.
const MAX_TEXT_BYTES: usize = 20_000;
/// Larger consistent histories are not drawn; a violation always is.
const MAX_DRAWN_OPS: usize = 60;

impl Report<'_> {
    /// Builds the page of this history for an interactive report: verdicts, explanations, pictures
    /// with the proof step by step, and certificates.
    ///
    /// `shrunk` holds, for each verdict, the verdict on the shrunk history if there is one; its
    /// picture then replaces that of the whole. The command that checks the history again depends on
    /// where it came from and is left to the caller.
    pub fn page(&self, shrunk: &[Option<Shrunk>]) -> PageCase {
        let history = self.history();
        let mut page = PageCase::new(self.place_name(), ["model", "verdict", "pattern", "time"]);
        page.facts = vec![
            ("sessions".to_owned(), history.session_count().to_string()),
            ("operations".to_owned(), history.len().to_string()),
        ];
        if let Some(object) = self.object() {
            page.facts.push(("object".to_owned(), object.name().to_owned()));
        }
        for (index, verdict) in self.iter().enumerate() {
            let mut pattern = verdict.pattern().map_or_else(String::new, |p| p.to_string());
            if let Some(via) = verdict.via() {
                pattern = format!("{pattern} (as {via})").trim_start().to_owned();
            }
            let millis = (verdict.time().as_secs_f64() * 1e6).round() / 1e3;
            let mut row = ResultRow::new([
                verdict.model().id().into(),
                verdict.outcome().as_str().into(),
                pattern.into(),
                millis.into(),
            ]);
            row.text = verdict.explain();
            row.certificate = certificate(verdict);
            let is_small = history.len() <= MAX_DRAWN_OPS;
            if verdict.is_violation() || is_small {
                let small = shrunk.get(index).and_then(Option::as_ref);
                let scenes = small.map_or_else(|| verdict.scenes(), |small| small.scenes());
                for scene in scenes {
                    row.scenes.push(page.scenes.len());
                    page.scenes.push(scene.into());
                }
            }
            page.rows.push(row);
        }
        if let Some(verdict) = self.first() {
            let text = verdict.text();
            if text.len() <= MAX_TEXT_BYTES {
                page.text = text;
            }
        }
        page
    }

    /// Returns the source, with the index of the history unless it is the first.
    fn place_name(&self) -> String {
        match self.index() {
            0 => self.source().to_owned(),
            index => format!("{} [{index}]", self.source()),
        }
    }
}

impl Verdict<'_> {
    /// Builds the scenes that [`draw`](Self::draw) shows: one, or one per case of the proof.
    pub fn scenes(&self) -> Vec<consistory_scene::Scene> {
        let options = DrawOptions {
            model: self.proved().to_owned(),
            states: self.states(),
            ..DrawOptions::default()
        };
        history_scenes(self.history(), self.judgement(), &options)
    }

    /// Draws the history and what is wrong with it in some format.
    pub fn draw_as(&self, format: PictureFormat) -> String {
        if format == PictureFormat::Svg {
            return self.draw();
        }
        let drawn: Vec<String> = self.scenes().iter().map(|scene| format.draw(scene)).collect();
        drawn.join("\n")
    }

    /// Returns the object's state after each call of the certificate's linearization.
    ///
    /// Empty for models in which a call need not see everything before it.
    fn states(&self) -> HashMap<OpId, String> {
        let mut states = HashMap::new();
        let (Model::Object { object, .. }, Some(Proof::Object(certificate))) =
            (self.model(), self.certificate())
        else {
            return states;
        };
        let linearization = match certificate {
            ObjectCertificate::Linearization(found) => Some(found),
            ObjectCertificate::Unexplained(found) => {
                let attempts = found.attempts.iter().map(|attempt| &attempt.linearization);
                attempts.max_by_key(|linearization| linearization.order.len())
            }
            ObjectCertificate::Core(core) => core.prefix.as_ref().map(|prefix| &prefix.before),
        };
        let Some(order) = linearization.filter(|found| found.vis.is_none()) else { return states };
        let (history, object) = (self.history(), object.object());
        let mut state = object.initial();
        for &op in &order.order {
            let Action::Call(id) = history.action(op) else { return HashMap::new() };
            let call = history.call(id);
            let args: Vec<_> = call.args.iter().map(|&arg| history.value(arg).clone()).collect();
            let Ok(method) = object.resolve(&call.method, args.len()) else { return states };
            let method = method.map_or(&*call.method, |method| &*method.name);
            let (Some(_), Some(shown)) =
                (object.invoke(&mut state, method, &args), object.show(&state))
            else {
                return states;
            };
            states.insert(op, shown);
        }
        states
    }
}

/// Returns the certificate as JSON, unless it is too large for a page.
fn certificate(verdict: &Verdict<'_>) -> Value {
    let Some(proof) = verdict.certificate().filter(|proof| proof.size() <= MAX_PRINTED_CERTIFICATE)
    else {
        return Value::Null;
    };
    let mut text = Vec::new();
    match proof.write(verdict.history(), &mut text) {
        Ok(()) => serde_json::from_slice(&text).unwrap_or(Value::Null),
        Err(_) => Value::Null,
    }
}

/// Quotes a word for a shell if needed.
pub fn shell_word(word: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | ',' | '+' | ':');
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
