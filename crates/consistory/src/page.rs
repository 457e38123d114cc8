//! A report as a page: one case of an interactive report.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use consistory_draw::{DrawOptions, drawn_calls, history_scenes};
use consistory_history::{Action, OpId};
use consistory_report::{Case as PageCase, Picture, ResultRow};
use consistory_scene::{Emphasis, PictureFormat, Scene};
use consistory_verdict::{Judgement, ObjectCertificate, Proof};
use serde_json::Value;

use crate::model::Minimal;
use crate::{Court, MAX_PRINTED_CERTIFICATE, Model, Report, Shrunk, Verdict, objects};

/// Largest text of a history that the page shows, in bytes.
const MAX_TEXT_BYTES: usize = 20_000;
/// Largest number of operations of a consistent history that is drawn; a violation always is.
const MAX_DRAWN_OPS: usize = 60;
/// Minimum time of the search for the core of an object's history.
const SHORTEST_CORE_SEARCH: Duration = Duration::from_millis(50);

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
                for picture in pictures(verdict, small) {
                    row.scenes.push(page.scenes.len());
                    page.scenes.push(picture);
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

    /// Draws the history and its violation in a given format.
    pub fn draw_as(&self, format: PictureFormat) -> String {
        if format == PictureFormat::Svg {
            return self.draw();
        }
        let drawn: Vec<String> = self.scenes().iter().map(|scene| format.draw(scene)).collect();
        drawn.join("\n")
    }

    /// Returns the object's state after each call of the certificate's linearization that is drawn.
    ///
    /// Empty for models in which a call need not see all calls before it.
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
        let drawn: HashSet<OpId> = drawn_calls(history, self.judgement()).into_iter().collect();
        let mut state = object.initial();
        for &op in &order.order {
            let Action::Call(id) = history.action(op) else { return HashMap::new() };
            let call = history.call(id);
            let args: Vec<_> = call.args.iter().map(|&arg| history.value(arg).clone()).collect();
            let Ok(method) = object.resolve(&call.method, args.len()) else { return states };
            let method = method.map_or(&*call.method, |method| &*method.name);
            if object.invoke(&mut state, method, &args).is_none() {
                return states;
            }
            // A state may be as large as the history, so only states that are shown are written.
            if drawn.contains(&op) {
                let Some(shown) = object.show(&state) else { return states };
                states.insert(op, shown);
            }
        }
        states
    }
}

/// Lays out the scenes of a verdict, or of the verdict on the shrunk history.
fn pictures(verdict: &Verdict<'_>, small: Option<&Shrunk>) -> Vec<Picture> {
    if let Some(small) = small {
        return small.scenes().into_iter().map(Picture::from).collect();
    }
    let mut scenes = verdict.scenes();
    match (&mut scenes[..], core_scene(verdict)) {
        ([scene], Some(core)) if core.nodes.len() < scene.nodes.len() => {
            let needed: HashSet<&str> = core.nodes.iter().map(|node| &*node.id).collect();
            for node in &mut scene.nodes {
                if node.emphasis < Emphasis::Wrong {
                    let is_needed = needed.contains(&*node.id);
                    node.emphasis = if is_needed { Emphasis::Proof } else { Emphasis::Plain };
                }
            }
            vec![Picture::from(scenes.remove(0)).with_core(core)]
        }
        _ => scenes.into_iter().map(Picture::from).collect(),
    }
}

/// Builds the scene of the calls that the violation of an object's model needs, with the furthest
/// attempt to explain them alone.
///
/// The search for these calls takes at most as long as judging took, so that a report does not take
/// much longer than its verdicts. Returns `None` if none are found in that time, or if the
/// certificate itself names a few calls.
fn core_scene(verdict: &Verdict<'_>) -> Option<Scene> {
    let Some(Proof::Object(ObjectCertificate::Unexplained(_))) = verdict.certificate() else {
        return None;
    };
    let judged = verdict.model.of_proof(verdict.via());
    let Model::Object { object, model } = &judged else { return None };
    let settings = verdict.settings.within(verdict.time().max(SHORTEST_CORE_SEARCH));
    let (history, options) = (verdict.history(), settings.object_options(1));
    let (operations, minimal) =
        objects::needed(history, object, model, verdict.judgement(), &options).ok()??;
    let small = objects::part(history, &operations);
    let court = Court::with_model(judged.clone(), settings);
    let mut report = court.judge_case(small.into()).ok()?;
    let small = report.verdicts.swap_remove(0);
    let Judgement::Violation { pattern, certificate: Proof::Object(certificate) } =
        small.judgement()
    else {
        return None;
    };
    // Both list the same operations by session, so equal positions mean equal operations.
    let kept: HashSet<OpId> = operations.iter().copied().collect();
    let whole = history.sessions().flat_map(|session| history.session_ops(session));
    let whole: Vec<OpId> = whole.filter(|op| kept.contains(op)).collect();
    let part = small.history();
    let part = part.sessions().flat_map(|session| part.session_ops(session));
    let in_whole: HashMap<OpId, OpId> = part.zip(whole).collect();
    let states = small.states();
    let options = DrawOptions {
        model: verdict.proved().to_owned(),
        states: states.into_iter().map(|(op, state)| (in_whole[&op], state)).collect(),
        ..DrawOptions::default()
    };
    let certificate = Proof::Object(certificate.renamed(|op| in_whole[&op]));
    let judgement = Judgement::Violation { pattern: pattern.clone(), certificate };
    let mut scene = history_scenes(history, &judgement, &options).pop()?;
    let others = history.len() - operations.len();
    let (calls, they) = if others == 1 { ("call", "it") } else { ("calls", "they") };
    scene.notes.push(format!(
        "The other {others} {calls} of the history cannot help, whatever {they} returned."
    ));
    if minimal == Minimal::Unknown {
        scene.notes.push("Fewer calls may be enough: the time to find out was over.".to_owned());
    }
    Some(scene)
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
