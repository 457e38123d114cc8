//! The analyses that the page requests, as JSON.
//!
//! A request names a kind, a text and models; the answer has a `case` as in reports, or `errors`
//! with their positions in the text. A new request of a page cancels the page's earlier one.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use consistory::{Case as HistoryCase, Court, Error, shell_word};
use consistory_atlas::{Bounds, ScanOptions, Side, Space, contrast, contrast_levels, survey};
use consistory_diagnostic::Diagnostics;
use consistory_formats::{Format, ReadError, parse_str};
use consistory_history::History;
use consistory_litmus::{
    IsaError, IsaOptions, IsaOutcomes, Language, Outcome, Semantics, Table, Test,
    definition_witnesses, find_isa_model, isa_language, isa_model_ids, isa_outcomes, read_isa_test,
    read_test, witnesses,
};
use consistory_models::{
    ClientOrder, Definition, catalogue, find, find_level, find_memory_model, levels, memory_models,
    table,
};
use consistory_pages::{
    ContrastSide, IsaResult, ModelResult, ProtocolFindings, Witness, contrast_case, isa_case,
    litmus_case, protocol_case, survey_case,
};
use consistory_protocol::{
    Explorer, Model as Protocol, Options, Outcome as Explored, Unfinished, Violation,
};
use consistory_registers::Model as RegisterModel;
use consistory_report::{Case, look_of};
use consistory_verdict::{Budget, Family, Verdict};
use consistory_work::catch_panic;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::examples::examples;
use crate::server::Limits;

const PAGE: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/page.css");
const PROGRAM: &str = include_str!("../assets/page.js");

/// Largest number of histories of one text that are judged.
const MAX_HISTORIES: usize = 20;
/// Largest number of operations of the histories on which an edited model is compared.
const MAX_CONTRAST_OPS: usize = 5;

/// Sizes of the histories in the atlas of the page.
const ATLAS_BOUNDS: Bounds = Bounds { plain: 5, extended: 3 };

/// Builds the page with its token.
pub(crate) fn page(token: &str) -> String {
    PAGE.replace("@STYLE@", &format!("{}{STYLE}", consistory_report::STYLE))
        .replace("@TOKEN@", token)
        .replace("@PROGRAM@", &format!("{}{PROGRAM}", consistory_report::CASE_PROGRAM))
}

/// A request of the page.
#[derive(Debug, Deserialize)]
struct Question {
    kind: String,
    text: String,
    #[serde(default)]
    models: Vec<String>,
    #[serde(default)]
    object: String,
    #[serde(default)]
    order: String,
    /// Model that an edited one is compared with.
    #[serde(default)]
    against: String,
    /// Number that the page chose for itself.
    #[serde(default)]
    page: String,
}

/// Reason why a request has no result.
enum Refusal {
    /// The text has errors.
    Text(Diagnostics),
    /// Another error, with a hint.
    Sentence(String, Option<String>),
}

impl From<Diagnostics> for Refusal {
    fn from(diagnostics: Diagnostics) -> Self {
        Refusal::Text(diagnostics)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Read(ReadError::Malformed(found)) | Error::Text(found) => Refusal::Text(found),
            Error::At { error, .. } => (*error).into(),
            error => {
                let hint = match &error {
                    Error::AmbiguousObject { .. } | Error::NoObject { .. } => {
                        Some("choose the object above".to_owned())
                    }
                    error => error.hint(),
                };
                Refusal::Sentence(error.to_string(), hint)
            }
        }
    }
}

/// Analyses texts within limits.
pub(crate) struct Api {
    limits: Limits,
    /// Flag of the latest question of each page.
    latest: Mutex<HashMap<String, Arc<AtomicBool>>>,
    /// Number of analyses that run.
    running: Mutex<usize>,
    has_room: Condvar,
}

impl Api {
    pub(crate) fn new(limits: Limits) -> Self {
        Api {
            limits,
            latest: Mutex::new(HashMap::new()),
            running: Mutex::new(0),
            has_room: Condvar::new(),
        }
    }

    /// Returns the data that the page needs when it opens: examples and models.
    pub(crate) fn start(&self) -> Value {
        let rows: Vec<Value> = table()
            .iter()
            .map(|row| {
                let family = match row.family {
                    Family::Registers => "registers",
                    Family::Transactions => "transactions",
                    Family::Objects => "objects",
                };
                json!({ "id": row.id, "family": family, "title": row.title, "meaning": row.meaning })
            })
            .collect();
        let of_instructions = isa_model_ids().filter(|id| Table::find(id).is_none()).map(|id| {
            let model = find_isa_model(id);
            json!({ "id": id, "title": model.map_or(id.to_owned(), |model| model.title.clone()) })
        });
        let memory: Vec<Value> = Table::all()
            .iter()
            .map(|model| {
                let id = model.name.to_lowercase();
                let known = memory_models().iter().find(|m| m.id() == Some(&*id));
                json!({ "id": id, "title": known.map_or(model.name.as_str(), |m| m.title()) })
            })
            .chain(of_instructions)
            .collect();
        let definitions: Vec<Value> = catalogue()
            .iter()
            .chain(levels())
            .map(|model| json!({ "id": model.id, "title": model.title, "text": model.text }))
            .collect();
        let objects: Vec<&str> = consistory::spec::catalogue().iter().map(|e| e.name).collect();
        json!({
            "examples": examples(), "models": rows, "memory": memory, "definitions": definitions,
            "objects": objects, "seconds": self.limits.analysis_time.as_secs_f64(),
        })
    }

    /// Answers a request.
    pub(crate) fn judge(&self, body: &[u8]) -> Value {
        let question: Question = match serde_json::from_slice(body) {
            Ok(question) => question,
            Err(error) => {
                return json!({ "message": format!("the question is malformed: {error}") });
            }
        };
        let flag = self.announce(&question.page);
        let _room = self.wait_for_room();
        if flag.load(Ordering::Relaxed) {
            return json!({ "message": "a newer question came in", "superseded": true });
        }
        let started = Instant::now();
        let answer = catch_panic(|| self.analyse(&question, &flag));
        let millis = started.elapsed().as_secs_f64() * 1e3;
        match answer {
            Ok(Ok(cases)) => {
                let look = look_of(&cases);
                json!({ "cases": cases, "look": look, "millis": millis })
            }
            Ok(Err(Refusal::Text(diagnostics))) => json!({
                "errors": diagnostics.iter().take(100).map(|d| json!({
                    "line": d.line, "column": d.column, "length": d.length, "message": d.message,
                    "hint": d.hint, "source": &*d.source,
                })).collect::<Vec<_>>(),
                "message": format!("{} in the text", counted(diagnostics.count(), "error")),
                "millis": millis,
            }),
            Ok(Err(Refusal::Sentence(message, hint))) => {
                json!({ "message": message, "hint": hint, "millis": millis })
            }
            Err(panicked) => json!({
                "message": panicked.to_string(),
                "hint": "this is a bug in Consistory, not of your input; please report it",
            }),
        }
    }

    /// Cancels the earlier request of the same page.
    fn announce(&self, page: &str) -> Arc<AtomicBool> {
        let flag = Arc::new(AtomicBool::new(false));
        if page.is_empty() {
            return flag;
        }
        let mut latest = lock(&self.latest);
        if latest.len() > 1000 {
            latest.clear();
        }
        if let Some(earlier) = latest.insert(page.to_owned(), Arc::clone(&flag)) {
            earlier.store(true, Ordering::Relaxed);
        }
        flag
    }

    fn wait_for_room(&self) -> Room<'_> {
        let mut running = lock(&self.running);
        while *running >= self.limits.analyses {
            running = self.has_room.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        *running += 1;
        Room(self)
    }

    fn analyse(&self, question: &Question, flag: &Arc<AtomicBool>) -> Result<Vec<Case>, Refusal> {
        let task = Task { question, flag, limits: &self.limits };
        match question.kind.as_str() {
            "history" => task.histories(),
            "litmus" => task.litmus().map(|case| vec![case]),
            "protocol" => task.protocol().map(|case| vec![case]),
            "model" => task.model().map(|case| vec![case]),
            "atlas" => task.atlas().map(|case| vec![case]),
            other => Err(Refusal::Sentence(format!("no kind of input is called `{other}`"), None)),
        }
    }
}

/// A reserved place among the running analyses.
struct Room<'a>(&'a Api);

impl Drop for Room<'_> {
    fn drop(&mut self) {
        *lock(&self.0.running) -= 1;
        self.0.has_room.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// A request that is being answered.
struct Task<'a> {
    question: &'a Question,
    flag: &'a Arc<AtomicBool>,
    limits: &'a Limits,
}

impl Task<'_> {
    fn budget(&self) -> Budget {
        Budget::unlimited()
            .with_time(self.limits.analysis_time)
            .with_memory(self.limits.analysis_memory)
            .with_interrupt(Arc::clone(self.flag))
    }

    fn court(&self, court: Court) -> Court {
        court
            .budget(self.limits.analysis_time)
            .memory(self.limits.analysis_memory)
            .jobs(1)
            .interrupt(Arc::clone(self.flag))
    }

    /// Returns the ids of the models; rejects ids that could name a file.
    fn models(&self) -> Result<Vec<&str>, Refusal> {
        let ids: Vec<&str> = self.question.models.iter().map(String::as_str).collect();
        match ids.iter().find(|id| consistory::is_path(id)) {
            Some(id) => {
                let message = format!("`{id}` is a path; the page opens no files");
                Err(Refusal::Sentence(message, Some("name a model by its id".to_owned())))
            }
            None if ids.is_empty() => Ok(vec!["strongest"]),
            None => Ok(ids),
        }
    }

    /// Returns the command that judges a history of the text again, saved as `FILE`.
    fn recheck(&self, index: Option<usize>) -> String {
        let Question { models, object, order, .. } = self.question;
        let mut command = "consistory check FILE".to_owned();
        if let Some(index) = index {
            command += &format!(" --index {index}");
        }
        if !models.is_empty() {
            command += &format!(" --model {}", shell_word(&models.join(",")));
        }
        if !object.is_empty() {
            command += &format!(" --object {}", shell_word(object));
        }
        if matches!(order.as_str(), "realtime" | "none") {
            command += &format!(" --order {order}");
        }
        command
    }

    fn histories(&self) -> Result<Vec<Case>, Refusal> {
        let text = &self.question.text;
        let format = Format::sniff(text).unwrap_or(Format::Hist);
        let histories = parse_str(text, format, "history")?;
        let object = self.question.object.as_str();
        if object.contains(['/', '\\', '.']) {
            let message = "the page accepts only built-in objects, by their names".to_owned();
            return Err(Refusal::Sentence(message, None));
        }
        let court = if object.is_empty() { Court::new() } else { Court::object(object)? };
        let order = match self.question.order.as_str() {
            "realtime" => consistory::ClientOrder::Realtime,
            "none" => consistory::ClientOrder::None,
            _ => consistory::ClientOrder::Session,
        };
        let court = self.court(court.models(self.models()?)?.order(order));
        let mut cases = Vec::new();
        let many = histories.len();
        for (index, history) in histories.into_iter().take(MAX_HISTORIES).enumerate() {
            let case = HistoryCase {
                source: "history".into(),
                index: index as u64,
                ..HistoryCase::from(history)
            };
            let mut case = court.judge_case(case)?.page(&[]);
            // The editor already shows the text.
            case.text.clear();
            case.recheck = self.recheck((many > 1).then_some(index));
            cases.push(case);
        }
        Ok(cases)
    }

    fn litmus(&self) -> Result<Case, Refusal> {
        let language = isa_language(&self.question.text);
        if let Some(language) = language.filter(|l| !matches!(l, Language::X86 | Language::Lisa)) {
            return self.litmus_of_instructions(language);
        }
        let test = read_test("test", &self.question.text)?;
        let budget = self.budget();
        let mut found = Vec::new();
        let ids = self.models()?;
        let ids = if ids == ["strongest"] { vec!["sc", "tso"] } else { ids };
        for id in ids {
            found.push(self.ask_memory_model(&test, id, &budget)?);
        }
        let results: Vec<ModelResult<'_>> = found
            .iter()
            .map(|(title, outcomes, witnesses)| ModelResult {
                title: title.clone(),
                outcomes: outcomes.as_ref().map_err(Clone::clone),
                witnesses,
                word: match outcomes {
                    Ok(outcomes) => match test.holds(outcomes) {
                        Some(true) => "the condition holds".to_owned(),
                        Some(false) => "the condition does not hold".to_owned(),
                        None => String::new(),
                    },
                    Err(_) => String::new(),
                },
            })
            .collect();
        let mut case = litmus_case("the text on the left", &test, &results);
        case.facts.retain(|(name, _)| name != "file");
        Ok(case)
    }

    /// Runs a test of an instruction set or of C under models in cat.
    fn litmus_of_instructions(&self, language: Language) -> Result<Case, Refusal> {
        let test = read_isa_test("test", &self.question.text)?;
        let own = match language {
            Language::X86 | Language::X86_64 => "x86tso",
            Language::AArch64 => "aarch64",
            Language::RiscV => "riscv",
            Language::Ppc => "power",
            Language::C => "rc11",
            Language::LinuxC => "lkmm",
            Language::Lisa => "sc",
        };
        let asked = self.models()?;
        let (mut ids, others): (Vec<&str>, Vec<&str>) =
            asked.into_iter().partition(|id| isa_model_ids().any(|known| known == *id));
        if ids.is_empty() || ids == ["sc"] {
            ids = if own == "sc" { vec!["sc"] } else { vec!["sc", own] };
        }
        let options = IsaOptions {
            unroll: 2,
            condition_only: false,
            count: false,
            keep_executions: true,
            budget: self.budget(),
        };
        let mut found: Vec<Result<IsaOutcomes, String>> = Vec::new();
        for &id in &ids {
            let model = find_isa_model(id).expect("the id is known");
            let options = IsaOptions { budget: options.budget.renewed(), ..options.clone() };
            found.push(match isa_outcomes(&test, &model, &options) {
                Ok(found) => Ok(found),
                Err(IsaError::Model(diagnostics)) => return Err(diagnostics.into()),
                Err(IsaError::Program(message)) => Err(message),
                Err(IsaError::Stopped(stopped)) => Err(stopped.to_string()),
            });
        }
        let word = |found: &Result<IsaOutcomes, String>| {
            let Ok(found) = found else { return "" };
            if test.is_answered(found) {
                "the condition holds"
            } else {
                "the condition does not hold"
            }
        };
        let results: Vec<IsaResult<'_>> = ids
            .iter()
            .zip(&found)
            .map(|(id, found)| IsaResult {
                title: id,
                outcomes: found.as_ref().map_err(String::as_str),
                word: word(found),
            })
            .collect();
        let mut case = isa_case("the text on the left", "", &test, &results);
        case.facts.retain(|(name, _)| name != "file");
        if !others.is_empty() && others != ["strongest"] {
            let note = format!("{} cannot run tests of {}", others.join(", "), language.as_str());
            case.facts.push(("left out".to_owned(), note));
        }
        Ok(case)
    }

    #[allow(clippy::type_complexity)]
    fn ask_memory_model(
        &self,
        test: &Test,
        id: &str,
        budget: &Budget,
    ) -> Result<
        (String, Result<consistory_litmus::Outcomes, String>, BTreeMap<Outcome, Witness>),
        Refusal,
    > {
        let program = &test.program;
        let budget = budget.renewed();
        let (title, found, executions) = match (Table::find(id), find_memory_model(id)) {
            (Some(table), _) => (
                table.name.clone(),
                table.outcomes(program, &budget),
                witnesses(program, &table, &budget.renewed()),
            ),
            (None, Some(model)) => (
                model.title().to_owned(),
                model.outcomes(program, &budget),
                definition_witnesses(program, model, &budget.renewed()),
            ),
            (None, None) => {
                let message = match isa_model_ids().any(|known| known == id) {
                    true => format!("{id} runs tests of its own instruction set or language only"),
                    false => format!("there is no memory model `{id}`"),
                };
                return Err(Refusal::Sentence(message, None));
            }
        };
        let executions = executions.unwrap_or_default().into_iter();
        let shown = executions.map(|(outcome, found)| (outcome, Witness::Execution(found)));
        Ok((title, found.map_err(|error| error.to_string()), shown.collect()))
    }

    fn protocol(&self) -> Result<Case, Refusal> {
        let model = Protocol::parse("protocol", &self.question.text)?;
        let budget = self.budget();
        if let Err(stopped) = budget.reserve(model.estimated_bytes(1)) {
            return Err(Refusal::Sentence(format!("the protocol is too large: {stopped}"), None));
        }
        let missing = model.missing_marks();
        let system = if missing.is_some() { model.plain() } else { model.tracked()? };
        let options = Options { jobs: 1, deadlock: false, ..Options::default() };
        let judge = |history: &History| -> Verdict {
            let court = Court::registers().models(["sc"]).expect("sc is a model");
            let report = self.court(court).judge(history);
            let report = report.expect("the history of a run consists of reads and writes");
            report[0].outcome()
        };
        let explored = Explorer::new(&system).options(options).budget(budget).judge(judge).run();
        let explored = explored.map_err(|error| Refusal::Sentence(error.to_string(), None))?;
        let progress = &explored.progress;
        let facts = vec![
            ("states".to_owned(), progress.states.to_string()),
            ("depth".to_owned(), progress.depth.to_string()),
        ];
        let mut findings = ProtocolFindings {
            source: "Protocol",
            verdict: "undecided",
            headline: "",
            text: "",
            facts,
            run: None,
            judged: None,
            recheck: "consistory verify FILE.m".to_owned(),
        };
        let sentence;
        let court = self.court(Court::registers().models(["sc"])?);
        match &explored.outcome {
            Explored::Holds => {
                findings.verdict = if missing.is_some() { "unproved" } else { "consistent" };
                sentence = match missing {
                    Some(missing) => format!("nothing is proved: {missing}"),
                    None if progress.loads == 0 || progress.stores == 0 => {
                        findings.verdict = "unproved";
                        "nothing is proved: no run loads and stores".to_owned()
                    }
                    None => "sequentially consistent in every run".to_owned(),
                };
                findings.headline = &sentence;
                Ok(protocol_case(&findings))
            }
            Explored::Violated { violation: Violation::Graph { failure, history }, run } => {
                let report = court.judge(history)?;
                sentence = failure.to_string();
                let is_violation = report[0].is_violation();
                findings.verdict = if is_violation { "violation" } else { "undecided" };
                findings.headline = match is_violation {
                    true => "not sequentially consistent",
                    false => "a run fails the check, and its history was not decided in time",
                };
                findings.run = Some((&system, run, sentence.clone()));
                findings.judged = Some(&report[0]);
                findings.text = &sentence;
                Ok(protocol_case(&findings))
            }
            Explored::Violated { violation, run } => {
                sentence = match violation {
                    Violation::Fault { fault, .. } => format!("{}: {}", fault.position, fault.kind),
                    Violation::Invariant { name, .. } => format!("the invariant \"{name}\" fails"),
                    _ => "no rule is enabled".to_owned(),
                };
                findings.verdict = "violation";
                findings.headline = &sentence;
                findings.run = Some((&system, run, sentence.clone()));
                Ok(protocol_case(&findings))
            }
            Explored::Undecided { reason: Unfinished::Unexplained(found) } => {
                let report = court.judge(&found.history)?;
                sentence = found.failure.to_string();
                findings.headline = "stores take effect in another order than was taken";
                findings.run = Some((&system, &found.run, sentence.clone()));
                findings.judged = Some(&report[0]);
                Ok(protocol_case(&findings))
            }
            Explored::Undecided { reason } => {
                sentence = reason.to_string();
                findings.headline = &sentence;
                Ok(protocol_case(&findings))
            }
        }
    }

    /// Shows the lattice of models, with the histories that separate neighbouring models.
    fn atlas(&self) -> Result<Case, Refusal> {
        let options = ScanOptions { budget: self.budget(), jobs: 1, ..ScanOptions::default() };
        let survey = survey(ATLAS_BOUNDS, &[], &options).map_err(|stopped| {
            Refusal::Sentence(format!("the atlas is not complete: {stopped}"), None)
        })?;
        Ok(survey_case(&survey))
    }

    /// Compares an edited definition with a model of the catalogue.
    fn model(&self) -> Result<Case, Refusal> {
        let definition = Arc::new(consistory_models::load("model", &self.question.text, |_| None)?);
        let against = self.question.against.to_ascii_lowercase();
        let space = Space::of(MAX_CONTRAST_OPS);
        let options = ScanOptions { budget: self.budget(), jobs: 1, ..ScanOptions::default() };
        let (found, known_court) = if definition.is_transactional() {
            let known = find_level(&against).ok_or_else(|| not_comparable(&against, "level"))?;
            let pair: [&Definition; 2] = [&definition, &known.definition];
            let space = Space::of(MAX_CONTRAST_OPS - 1);
            let found = contrast_levels(pair, [None, None], ClientOrder::Session, &space, &options);
            (found, None)
        } else {
            let known =
                find(&against).map_err(|_| not_comparable(&against, "model of registers"))?;
            let is_timed = |definition: &Definition| definition.program().mentions_real_time();
            if is_timed(&definition) || is_timed(&known.definition) {
                let why = "a model that orders operations by their times (`rt`) cannot be compared: the \
                           small histories have none";
                return Err(Refusal::Sentence(why.to_owned(), None));
            }
            let own =
                RegisterModel::Own { id: "yours".into(), definition: Arc::clone(&definition) };
            let found = contrast(&[own, RegisterModel::Catalogued(known)], &space, &options);
            let court = Court::registers().definition("yours", &self.question.text)?;
            (found, Some(self.court(court.models([known.id])?)))
        };
        let names = [("yours", &*against), (&*against, "yours")];
        let mut reports = Vec::new();
        for side in &found.sides {
            reports.push(match (side, &known_court) {
                (Side::Separated(history), Some(court)) => court.judge(history).ok(),
                (Side::Separated(history), None) => {
                    let court = Court::new().models([&*against])?;
                    self.court(court).judge(history).ok()
                }
                _ => None,
            });
        }
        let sides: Vec<ContrastSide<'_>> = found
            .sides
            .iter()
            .zip(names)
            .zip(&reports)
            .map(|((side, (allows, forbids)), report)| {
                let nothing = format!("{allows} allows nothing that {forbids} forbids");
                let (answer, sentence) = match side {
                    Side::Separated(history) => {
                        let size = counted(history.len() as u64, "operation");
                        let text = written(history);
                        (
                            "separated",
                            format!("{allows} allows and {forbids} forbids, {size}:\n\n{text}"),
                        )
                    }
                    Side::Implied(standing) => ("implied", format!("{nothing} ({standing}).")),
                    Side::NotUpTo { operations } => {
                        ("none", format!("{nothing}, up to {operations} operations."))
                    }
                    Side::Undecided { operations, stopped } => (
                        "undecided",
                        format!(
                            "{nothing}, up to {operations} operations; larger ones are undecided: \
                             {stopped}."
                        ),
                    ),
                };
                ContrastSide { allows, forbids, answer, sentence, judged: report.as_ref() }
            })
            .collect();
        let title = match definition.title() {
            "" => format!("Your model and {against}"),
            title => format!("{title}, and {against}"),
        };
        let mut case = contrast_case(&title, &sides);
        case.text.clear();
        case.facts = vec![
            ("checks".to_owned(), definition.checks().len().to_string()),
            ("histories decided".to_owned(), found.histories.to_string()),
        ];
        Ok(case)
    }
}

fn not_comparable(against: &str, kind: &str) -> Refusal {
    let message =
        format!("`{against}` is not a {kind}, so it has no histories in common with yours");
    Refusal::Sentence(message, Some(format!("choose a {kind} to compare with")))
}

/// Writes a history in text form.
fn written(history: &History) -> String {
    let mut text = Vec::new();
    match consistory_formats::write_history(history, Format::Hist, &mut text) {
        Ok(()) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) => error.to_string(),
    }
}
