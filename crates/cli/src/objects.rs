//! Judging histories of an object's calls, and what is printed of them.

use std::io::{self, BufRead, Read, Write};
use std::path::Path;
use std::sync::Arc;

use consistory_certify::{ObjectRejection, certify_object};
use consistory_check::subset;
use consistory_draw::{InsteadOf, calls_svg, explain_calls, explain_calls_line, table};
use consistory_formats::{Format, read, write_history};
use consistory_history::{Action, History, Value};
use consistory_objects::{
    Calls, Inference, Instead, Levels, ObjectOptions, ObjectRuling, Task, calls_of_registers,
    infer_levels, instead, judge_objects, shrink_object,
};
use consistory_spec::{
    CasRegister, KeyValue, Level, Method, NAMED, Object, ObjectModel, Register, catalogue, find,
    object_model_implies, parse_axioms, parse_levels,
};
use consistory_verdict::{
    Budget, ObjectCertificate, ObjectJudgement, Stopped, Verdict, write_object_certificate,
};

use crate::args::{CheckArgs, OutputFormat};
use crate::check::{Done, Place, StandardOutput, create_folders, jobs, worse, write_file};
use crate::convert::find_inputs;
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report};
use crate::report::{PRINTED_CERTIFICATE, coloured, heading, quoted};

/// How to judge histories of an object's calls, as the command line has it.
pub(crate) struct ObjectCourt<'a> {
    args: &'a CheckArgs,
    /// The object as it was named, if it was.
    object: Option<Named>,
    models: Vec<ObjectModel>,
    levels: Option<Vec<(Box<str>, Level)>>,
    strongest: bool,
}

/// An object and what it was called.
#[derive(Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) object: Arc<dyn Object>,
}

/// A model and what was found.
struct Outcome {
    model: ObjectModel,
    ruling: ObjectRuling,
    instead: Vec<Option<InsteadOf>>,
    file: Option<String>,
    shrunk: Option<String>,
    drawing: Option<String>,
}

impl<'a> ObjectCourt<'a> {
    /// Prepares to judge; without a name, each history is asked for its object.
    pub(crate) fn new(args: &'a CheckArgs, name: Option<&str>) -> Result<Self, CliError> {
        let mut models: Vec<ObjectModel> = Vec::new();
        let mut add = |model: ObjectModel| {
            if !models.iter().any(|known| known.id == model.id) {
                models.push(model);
            }
        };
        for id in &args.model {
            match id.as_str() {
                "all" | "strongest" => {
                    NAMED.iter().filter_map(|id| ObjectModel::named(id)).for_each(&mut add);
                }
                id => add(ObjectModel::named(id).ok_or_else(|| unknown_model(id))?),
            }
        }
        let object = name.map(Named::load).transpose()?;
        let known_method = |method: &str| match &object {
            Some(named) => known_method(&*named.object, method),
            None => Ok(method.into()),
        };
        for axioms in &args.objects.axioms {
            let mut axioms = parse_axioms("--axioms", axioms)
                .map_err(|errors| CliError::Rendered(errors.render(true)))?;
            for method in axioms.iter_mut().filter_map(|axiom| axiom.of.as_mut()).flatten() {
                *method = known_method(method)?;
            }
            add(ObjectModel::of_axioms(axioms));
        }
        let levels = args.objects.levels.as_deref().map(|levels| parse_levels("--levels", levels));
        let mut levels =
            levels.transpose().map_err(|errors| CliError::Rendered(errors.render(true)))?;
        for (method, _) in levels.iter_mut().flatten() {
            *method = known_method(method)?;
        }
        create_folders(args)?;
        Ok(ObjectCourt {
            args,
            object,
            models,
            levels,
            strongest: args.model.iter().any(|id| id == "strongest"),
        })
    }

    /// Judges a history by all the models.
    pub(crate) fn judge(&self, source: &str, number: usize, index: u64, history: &History) -> Done {
        let place = format!("{source} [{index}]");
        let (calls, named) = match self.prepare(source, history) {
            Ok(prepared) => prepared,
            Err(error) => return Done::Unreadable(error.at(&place)),
        };
        let history = calls.as_ref().unwrap_or(history);
        let task = match task(history, &named.object) {
            Ok(task) => task,
            Err(reason) => {
                let message = format!("{place}: {reason}");
                let hint = format!("it was read as calls of `{}`", named.name);
                return Done::Unreadable(CliError::with_hint(message, hint));
            }
        };
        let mut models = self.models.clone();
        if let Some(levels) = &self.levels {
            models.push(ObjectModel::of_levels(levels, Level::Complete, &task.methods()));
        }
        let mut complaints = Vec::new();
        let mut results = Vec::with_capacity(models.len());
        let rulings = judge_objects(&task, &models, &options(self.args));
        for (model, mut ruling) in models.into_iter().zip(rulings) {
            if !self.args.no_certify
                && let Some(certificate) = ruling.judgement.certificate()
                && let Err(rejection) =
                    self.accept(history, &*named.object, &model, ruling.via, &certificate)
            {
                ruling.judgement = ObjectJudgement::Undecided(match rejection {
                    ObjectRejection::Stopped(stopped) => stopped,
                    rejection => {
                        complaints.push(CliError::with_hint(
                            format!(
                                "{source} [{index}]: the certificate for {} was rejected: \
                                 {rejection}",
                                model.id
                            ),
                            "this is a defect of consistory, not of your history; the verdict is \
                             withheld",
                        ));
                        Stopped::Rejected
                    }
                });
            }
            let place = Place { source, number, index, model: &model.id.clone() };
            results.push(self.outcome(&task, model, ruling, place, &mut complaints));
        }
        let strongest = self.strongest.then(|| strongest(&results));
        let mut code = results
            .iter()
            .fold(OK, |code, outcome| worse(code, code_of(outcome.ruling.judgement.verdict())));
        if !complaints.is_empty() && code != VIOLATION {
            code = worse(code, UNDECIDED);
        }
        let docket = Docket { source, index, history, object: &named.name };
        let text = match self.args.format {
            OutputFormat::Text => docket.page(&results, strongest.as_deref()).into_bytes(),
            OutputFormat::Json => {
                let mut line = Vec::new();
                docket
                    .json(&results, strongest.as_deref(), &mut line)
                    .expect("writing to memory does not fail");
                line
            }
        };
        Done::Judged { text, code, complaints }
    }

    /// Finds the object of a history, and makes calls of reads and writes.
    fn prepare(
        &self,
        source: &str,
        history: &History,
    ) -> Result<(Option<History>, Named), CliError> {
        let named = match &self.object {
            Some(named) => named.clone(),
            None => Named::of_history(source, history)?,
        };
        prepare(history, named)
    }

    fn accept(
        &self,
        history: &History,
        object: &dyn Object,
        model: &ObjectModel,
        via: Option<&'static str>,
        certificate: &ObjectCertificate,
    ) -> Result<(), ObjectRejection> {
        accept_object(history, object, model, via, certificate, &options(self.args).budget)
    }

    /// Adds what goes to files and what the story needs.
    fn outcome(
        &self,
        task: &Task<'_>,
        model: ObjectModel,
        ruling: ObjectRuling,
        place: Place<'_>,
        complaints: &mut Vec<CliError>,
    ) -> Outcome {
        let judged_by = ruling.via.and_then(ObjectModel::named).unwrap_or_else(|| model.clone());
        let mut instead_of = Vec::new();
        if let ObjectJudgement::Violation(unexplained) = &ruling.judgement {
            let known = |found: Instead| InsteadOf { least: found.least, most: found.most };
            instead_of = (unexplained.attempts.iter())
                .map(|attempt| instead(task, &judged_by, attempt).map(known))
                .collect();
        }
        let mut outcome =
            Outcome { model, ruling, instead: instead_of, file: None, shrunk: None, drawing: None };
        let history = task.calls().history();
        let mut attempt = || -> Result<(), CliError> {
            let judgement = &outcome.ruling.judgement;
            if let (Some(folder), Some(certificate)) =
                (&self.args.certificates, judgement.certificate())
                && certificate.size() > PRINTED_CERTIFICATE
            {
                let path = folder.join(place.file_name("json"));
                write_file(&path, |out| {
                    write_object_certificate(history, &certificate, out)?;
                    out.write_all(b"\n")
                })?;
                outcome.file = Some(path.display().to_string());
            }
            if let (Some(folder), Verdict::Violation) = (&self.args.draw, judgement.verdict()) {
                let path = folder.join(place.file_name("svg"));
                let svg = calls_svg(history, &judged_by.id, judgement);
                write_file(&path, |out| out.write_all(svg.as_bytes()))?;
                outcome.drawing = Some(path.display().to_string());
            }
            if self.args.shrink && judgement.verdict() == Verdict::Violation {
                outcome.shrunk = Some(self.shrunk(task, &judged_by, judgement)?);
            }
            Ok(())
        };
        complaints.extend(attempt().err());
        outcome
    }
}

impl ObjectCourt<'_> {
    /// Shrinks a violating history and writes it as text; says if it need not be minimal.
    fn shrunk(
        &self,
        task: &Task<'_>,
        model: &ObjectModel,
        violation: &ObjectJudgement,
    ) -> Result<String, CliError> {
        let history = task.calls().history();
        let mut keep = vec![false; history.len()];
        let shrunk = shrink_object(task, model, violation, &options(self.args));
        for op in shrunk.operations {
            keep[op.index()] = true;
        }
        let mut text = Vec::new();
        if !shrunk.is_minimal {
            text.extend(b"# The budget ended before it was clear that no call can be left out.\n");
        }
        write_history(&subset(history, &keep), Format::Hist, &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Named {
    /// Finds an object by its name, or reads its file.
    pub(crate) fn load(name: &str) -> Result<Self, CliError> {
        Ok(Named { name: name.to_owned(), object: load_object(name)? })
    }

    /// Finds the object that a history is of: its file says so, or only one has its methods.
    fn of_history(source: &str, history: &History) -> Result<Self, CliError> {
        if let Some(name) = said_object(Path::new(source)) {
            return Named::load(&name);
        }
        if !history.has_calls() {
            return Named::load(if history.key_count() > 1 { "kv" } else { "cas-register" });
        }
        let has_all = |object: &dyn Object| {
            history.ops().all(|op| match history.action(op) {
                Action::Call(id) => {
                    let call = history.call(id);
                    object.resolve(&call.method, call.args.len()).is_ok()
                }
                _ => false,
            })
        };
        // Of those that have all the methods, the ones that know most of them by these names.
        let known = |object: &dyn Object| {
            let is_called = |method: &&Method| {
                history.ops().any(|op| match history.action(op) {
                    Action::Call(id) => history.call(id).method == method.name,
                    _ => false,
                })
            };
            object.methods().iter().filter(is_called).count()
        };
        let fitting: Vec<(&str, usize)> = catalogue()
            .iter()
            .filter_map(|entry| Some((entry.name, find(entry.name).ok()?)))
            .filter(|(_, object)| has_all(&**object))
            .map(|(name, object)| (name, known(&*object)))
            .collect();
        let most = fitting.iter().map(|&(_, known)| known).max();
        let fitting: Vec<&str> =
            fitting.iter().filter(|(_, n)| Some(*n) == most).map(|&(name, _)| name).collect();
        match fitting[..] {
            // The second has all methods of the first, and they do the same.
            [one] | [one @ "register", "cas-register"] => Named::load(one),
            [] => Err(CliError::with_hint(
                "no ready object has all the methods that are called",
                "name a file that describes the object with `--object PATH`",
            )),
            _ => Err(CliError::with_hint(
                format!("these may be calls of {}", fitting.join(" or ")),
                "say which with `--object`, or with a line `# object: NAME` in the file",
            )),
        }
    }
}

/// Gives the object that a comment at the beginning of a file names; a path counts from the file.
fn said_object(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok().filter(|_| path.is_file())?;
    let lines = io::BufReader::new(file.take(1 << 16)).lines();
    let comments = lines.map_while(Result::ok).take_while(|line| {
        let line = line.trim_start();
        line.is_empty() || line.starts_with('#')
    });
    let said = comments.filter_map(|line| {
        let comment = line.trim_start_matches('#').trim();
        let name = comment.strip_prefix("object:").map(|name| name.trim().to_owned());
        // As recorders of other formats write it: `@object atomic-stack`, or the bare name.
        let atomic = || comment.strip_prefix("@object")?.trim().strip_prefix("atomic-");
        let is_ready = |name: &&str| catalogue().iter().any(|entry| entry.name == *name);
        name.or_else(|| atomic().or(Some(comment)).filter(is_ready).map(ToOwned::to_owned))
    });
    let name = said.last()?;
    match name.ends_with(".object") {
        true => Some(path.parent()?.join(name).display().to_string()),
        false => Some(name),
    }
}

/// Makes calls of a history of reads and writes; its registers start with what the history says,
/// unless the object's name says something else.
pub(crate) fn prepare(
    history: &History,
    named: Named,
) -> Result<(Option<History>, Named), CliError> {
    let kind = named.name.split('(').next().unwrap_or_default();
    let is_keyed = kind == "kv";
    if history.has_calls() || history.is_empty() {
        return Ok((None, named));
    }
    if !is_keyed && !matches!(kind, "register" | "cas-register") {
        return Err(CliError::with_hint(
            format!("these are reads and writes, not calls of `{}`", named.name),
            "reads and writes are calls of `register`, `cas-register` or, with several keys, `kv`",
        ));
    }
    let mut initial: Vec<&Value> =
        history.keys().map(|key| history.value(history.initial_value(key))).collect();
    initial.dedup();
    if !is_keyed && history.key_count() > 1 {
        return Err(CliError::with_hint(
            format!("there are several registers here, and `{}` is one", named.name),
            "judge them all with `--object kv`",
        ));
    }
    let calls = calls_of_registers(history, is_keyed)
        .map_err(|error| CliError::usage(error.to_string()))?;
    let object: Arc<dyn Object> = match (kind, &initial[..]) {
        _ if named.name != kind => named.object,
        (_, []) => named.object,
        ("register", [initial, ..]) => Arc::new(Register { initial: (*initial).clone() }),
        ("cas-register", [initial, ..]) => Arc::new(CasRegister { initial: (*initial).clone() }),
        (_, [initial]) => Arc::new(KeyValue { initial: (*initial).clone() }),
        _ => return Err(CliError::usage("the registers start with different values")),
    };
    Ok((Some(calls), Named { name: named.name, object }))
}

/// Has the independent checker accept a certificate.
pub(crate) fn accept_object(
    history: &History,
    object: &dyn Object,
    model: &ObjectModel,
    via: Option<&str>,
    certificate: &ObjectCertificate,
    budget: &Budget,
) -> Result<(), ObjectRejection> {
    let weaker = via.and_then(ObjectModel::named);
    if let Some(weaker) = &weaker
        && !(certificate.verdict() == Verdict::Violation
            && object_model_implies(&model.id, &weaker.id))
    {
        let reason = format!("{} says nothing about {}", weaker.id, model.id);
        return Err(ObjectRejection::History { reason });
    }
    certify_object(history, object, weaker.as_ref().unwrap_or(model), certificate, budget)
}

/// Finds an object by its name, or reads its file.
pub(crate) fn load_object(name: &str) -> Result<Arc<dyn Object>, CliError> {
    if name.contains(['/', '\\']) || name.ends_with(".object") {
        let path = Path::new(name);
        let text =
            std::fs::read_to_string(path).map_err(|error| CliError::file("read", path, error))?;
        return match consistory_spec::parse_object(name, &text) {
            Ok(object) => Ok(Arc::new(object)),
            Err(errors) => Err(CliError::Rendered(errors.render(true))),
        };
    }
    find(name).map_err(|error| {
        CliError::with_hint(
            error.to_string(),
            "a path to an object file has a slash or ends in .object",
        )
    })
}

/// Gives the name that a specification knows a method by.
pub(crate) fn known_method(object: &dyn Object, name: &str) -> Result<Box<str>, CliError> {
    let methods = object.methods();
    let is_it = |m: &&Method| *m.name == *name || m.aliases.iter().any(|alias| **alias == *name);
    match methods.iter().find(is_it) {
        Some(method) => Ok(method.name.clone()),
        None if methods.is_empty() => Ok(name.into()),
        None => {
            let mut names: Vec<&str> = methods.iter().map(|method| &*method.name).collect();
            names.dedup();
            Err(CliError::with_hint(
                format!("the object has no method `{name}`"),
                format!("its methods are {}", names.join(", ")),
            ))
        }
    }
}

pub(crate) fn unknown_model(id: &str) -> CliError {
    CliError::with_hint(
        format!("`{id}` is no model of objects"),
        format!(
            "the models are {}, `all` and `strongest`; --axioms takes others",
            NAMED.join(", ")
        ),
    )
}

fn task<'h>(history: &'h History, object: &Arc<dyn Object>) -> Result<Task<'h>, String> {
    let calls = Calls::new(history).map_err(|error| error.to_string())?;
    Task::new(calls, Arc::clone(object)).map_err(|error| error.to_string())
}

fn options(args: &CheckArgs) -> ObjectOptions {
    let budget = Budget::unlimited().with_time(args.budget).with_memory(args.memory);
    ObjectOptions { budget, jobs: jobs(args), ..ObjectOptions::default() }
}

fn code_of(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Consistent => OK,
        Verdict::Violation => VIOLATION,
        Verdict::Undecided => UNDECIDED,
    }
}

/// Gives the satisfied named models that no other satisfied one implies.
fn strongest(results: &[Outcome]) -> Vec<String> {
    let satisfied: Vec<&str> = results
        .iter()
        .filter(|outcome| outcome.ruling.judgement.verdict() == Verdict::Consistent)
        .map(|outcome| &*outcome.model.id)
        .collect();
    let is_implied =
        |id: &str| satisfied.iter().any(|other| *other != id && object_model_implies(other, id));
    satisfied.iter().filter(|id| !is_implied(id)).map(ToString::to_string).collect()
}

/// Names what is wrong in a word, for the table.
fn pattern(history: &History, judgement: &ObjectJudgement) -> String {
    match judgement {
        ObjectJudgement::Violation(unexplained) => match unexplained.returned.last() {
            Some(&op) => format!("unexplained {}", history.reference(op)),
            None => "unexplained".to_owned(),
        },
        ObjectJudgement::Refuted(core) => core.pattern.clone(),
        ObjectJudgement::Undecided(stopped) => stopped.to_string(),
        ObjectJudgement::Consistent(_) => String::new(),
    }
}

/// A judged history under report.
struct Docket<'a> {
    source: &'a str,
    index: u64,
    history: &'a History,
    object: &'a str,
}

impl Docket<'_> {
    /// Writes the line for programs, with its line break.
    fn json(
        &self,
        results: &[Outcome],
        strongest: Option<&[String]>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let history = self.history;
        write!(out, "{{\"source\":{},\"index\":{}", quoted(self.source), self.index)?;
        if let Some(name) = history.name() {
            write!(out, ",\"name\":{}", quoted(name))?;
        }
        let (sessions, operations) = (history.session_count(), history.len());
        write!(out, ",\"sessions\":{sessions},\"operations\":{operations}")?;
        write!(out, ",\"object\":{},\"results\":[", quoted(self.object))?;
        for (i, outcome) in results.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            let ObjectRuling { judgement, via, time } = &outcome.ruling;
            let verdict = judgement.verdict();
            let (model, word) = (quoted(&outcome.model.id), verdict.as_str());
            write!(out, "{{\"model\":{model},\"verdict\":\"{word}\"")?;
            if verdict == Verdict::Violation {
                write!(out, ",\"pattern\":{}", quoted(&pattern(history, judgement)))?;
            }
            if let Some(via) = via {
                write!(out, ",\"via\":{}", quoted(via))?;
            }
            if let Some(certificate) = judgement.certificate() {
                write!(out, ",\"certificate\":")?;
                write_bounded(history, &certificate, outcome.file.as_deref(), out)?;
            }
            let explanation = explain_calls_line(history, judgement);
            write!(out, ",\"explanation\":{}", quoted(&explanation))?;
            if let Some(shrunk) = &outcome.shrunk {
                write!(out, ",\"shrunk\":{}", quoted(shrunk))?;
            }
            if let Some(drawing) = &outcome.drawing {
                write!(out, ",\"drawing\":{}", quoted(drawing))?;
            }
            write!(out, ",\"millis\":{:.3}}}", time.as_secs_f64() * 1e3)?;
        }
        out.push(b']');
        if let Some(strongest) = strongest {
            let ids: Vec<String> = strongest.iter().map(|id| quoted(id)).collect();
            write!(out, ",\"strongest\":[{}]", ids.join(","))?;
        }
        out.extend(b"}\n");
        Ok(())
    }

    /// Gives the page for people.
    fn page(&self, results: &[Outcome], strongest: Option<&[String]>) -> String {
        let history = self.history;
        let mut page = heading(self.source, self.index, history);
        let rows: Vec<Vec<String>> = results
            .iter()
            .map(|outcome| {
                let ObjectRuling { judgement, via, time } = &outcome.ruling;
                let mut detail = pattern(history, judgement);
                if let Some(via) = via {
                    detail += &format!(" (as {via})");
                }
                let time = format!("{:.1} ms", time.as_secs_f64() * 1e3);
                let verdict = judgement.verdict().as_str().to_owned();
                vec![outcome.model.id.to_string(), verdict, detail, time]
            })
            .collect();
        page += &coloured(&table(&["model", "verdict", "pattern", "time"], &rows));
        if let Some(strongest) = strongest {
            page += &match strongest {
                [] => "\nNo model that was decided is satisfied.\n".to_owned(),
                ids => format!("\nStrongest satisfied: {}\n", ids.join(", ")),
            };
        }
        // Models that fall by the same proof are explained together.
        let mut explained: Vec<&ObjectJudgement> = Vec::new();
        for outcome in results {
            let judgement = &outcome.ruling.judgement;
            if judgement.verdict() == Verdict::Violation && !explained.contains(&judgement) {
                explained.push(judgement);
                let model = outcome.ruling.via.unwrap_or(&outcome.model.id);
                page += "\n";
                page += &explain_calls(history, model, judgement, &outcome.instead);
            }
            if let Some(shrunk) = &outcome.shrunk {
                page += &format!("\nSmallest part that still violates {}:\n\n", outcome.model.id);
                for line in shrunk.lines() {
                    page += &format!("    {line}\n");
                }
            }
            if let Some(drawing) = &outcome.drawing {
                page += &format!("\nDrawn in {drawing}\n");
            }
            if let Some(file) = &outcome.file {
                page += &format!("\nCertificate for {} in {file}\n", outcome.model.id);
            }
        }
        page + "\n"
    }
}

/// Writes a certificate, or what stands for one that is too large to print.
fn write_bounded(
    history: &History,
    certificate: &ObjectCertificate,
    file: Option<&str>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let (size, kind) = (certificate.size(), certificate.kind());
    if size <= PRINTED_CERTIFICATE {
        return write_object_certificate(history, certificate, out);
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

/// Infers the visibility level that each method kept in all histories, and prints it.
pub(crate) fn infer(args: &CheckArgs) -> Result<u8, CliError> {
    let name = args.objects.object.as_deref().expect("clap demands an object");
    let named = Named::load(name)?;
    let options = options(args);
    let mut levels = Levels::default();
    // For each method the history that lowered it last.
    let mut because: Vec<(Box<str>, String)> = Vec::new();
    let (mut code, mut histories) = (OK, 0u64);
    for input in find_inputs(&args.input.paths) {
        let input = match input {
            Ok(input) => input,
            Err(error) => {
                report(&error.into());
                code = worse(code, UNREADABLE);
                continue;
            }
        };
        for (index, history) in read(&input, args.input.from).enumerate() {
            let place = format!("{input} [{index}]");
            let inferred = history.map_err(CliError::from).and_then(|history| {
                let (calls, named) =
                    prepare(&history, named.clone()).map_err(|error| error.at(&place))?;
                let task = task(calls.as_ref().unwrap_or(&history), &named.object)
                    .map_err(|reason| CliError::usage(format!("{place}: {reason}")))?;
                Ok(infer_levels(&task, &mut levels, &options))
            });
            let inferred = match inferred {
                Ok(inferred) => inferred,
                Err(error) => {
                    report(&error);
                    code = worse(code, UNREADABLE);
                    continue;
                }
            };
            histories += 1;
            match inferred {
                Ok(Inference::Kept) => {}
                Ok(Inference::Lowered(methods)) => {
                    for (method, _) in methods {
                        because.retain(|(known, _)| *known != method);
                        because.push((method, place.clone()));
                    }
                }
                Ok(Inference::Unexplained) => {
                    report(&CliError::usage(format!("{place}: no levels explain this history")));
                    code = worse(code, VIOLATION);
                }
                Err(stopped) => {
                    report(&CliError::usage(format!("{place}: undecided, {stopped}")));
                    code = worse(code, UNDECIDED);
                }
            }
        }
    }
    let because_of = |method: &str| {
        because.iter().find(|(known, _)| **known == *method).map(|(_, place)| place.as_str())
    };
    let mut text = Vec::new();
    match args.format {
        OutputFormat::Text => {
            let rows: Vec<Vec<String>> = levels
                .iter()
                .map(|(method, level)| {
                    let place = because_of(method).unwrap_or_default().to_owned();
                    vec![method.to_owned(), level.to_string(), place]
                })
                .collect();
            let plural = if histories == 1 { "y" } else { "ies" };
            text = format!("{histories} histor{plural} of {name}\n").into_bytes();
            text.extend(table(&["method", "level", "lowered by"], &rows).into_bytes());
        }
        OutputFormat::Json => {
            let entries: Vec<String> = levels
                .iter()
                .map(|(method, level)| {
                    let because = because_of(method)
                        .map_or(String::new(), |place| format!(",\"because\":{}", quoted(place)));
                    format!("{}:{{\"level\":\"{level}\"{because}}}", quoted(method))
                })
                .collect();
            let (object, entries) = (quoted(name), entries.join(","));
            let line = format!(
                "{{\"object\":{object},\"histories\":{histories},\"levels\":{{{entries}}}}}\n"
            );
            text.extend(line.into_bytes());
        }
    }
    StandardOutput::open()?.write(&text, args.format).map_err(CliError::output)?;
    Ok(code)
}
