//! `consistory certify`: check saved verdicts again.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use consistory::{ClientOrder, Model, NamedObject, Outcome, Proof, Rejection, strongest_of};
use consistory_formats::{Histories, Input, inputs, read_within, source_path};
use consistory_history::{History, escaped, is_of_transaction_calls, transactions_of_calls};
use consistory_verdict::{Budget, MAX_DEPTH, Options, Stopped};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::args::CertifyArgs;
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report};
use crate::limits;
use crate::output::Output;
use crate::reading::{self, Reading};

#[derive(Default)]
struct Tally {
    accepted: u64,
    rejected: u64,
    undecided: u64,
    /// Whether a check stopped because its budget ran out.
    stopped: bool,
}

/// Size of the stack for reading nested certificates; only the used part takes memory.
const STACK_BYTES: usize = 512 << 20;
/// Largest nesting of JSON: twice that of a certificate, plus the enclosing objects.
const MAX_NESTING: usize = 2 * MAX_DEPTH + 32;

/// Checks every verdict of every file; prints the number of accepted ones.
pub(crate) fn certify(args: &CertifyArgs) -> Result<u8, CliError> {
    // Premises may be nested deeply.
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().stack_size(STACK_BYTES);
        let reader = reader.spawn_scoped(scope, || certify_all(args));
        let reader = reader
            .map_err(|error| CliError::Io { what: "cannot start a thread".to_owned(), error })?;
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn certify_all(args: &CertifyArgs) -> Result<u8, CliError> {
    let mut out = Output::open(None)?;
    let mut tally = Tally::default();
    let mut code = OK;
    for path in &args.verdicts {
        let lines: Box<dyn BufRead> = if path.as_os_str() == "-" {
            Box::new(BufReader::new(Reading(io::stdin().lock())))
        } else {
            Box::new(BufReader::with_capacity(1 << 16, reading::open(path)?))
        };
        let mut docket = Docket { args, path, current: None };
        for (number, line) in reading::lines(lines).enumerate() {
            let line = line.map_err(|error| CliError::file("read", path, error))?;
            if line.trim().is_empty() {
                continue;
            }
            let checked = docket.line(&line, &mut tally, &mut out).map_err(CliError::output)?;
            if let Err(problem) = checked {
                report(&CliError::usage(format!("{}:{}: {problem}", path.display(), number + 1)));
                code = UNREADABLE;
            }
        }
    }
    let Tally { accepted, rejected, undecided, stopped } = tally;
    writeln!(out, "{accepted} accepted, {rejected} rejected, {undecided} undecided")
        .map_err(CliError::output)?;
    out.finish()?;
    Ok(match code {
        OK if rejected > 0 => VIOLATION,
        // Without an accepted proof the result must not look like success.
        OK if stopped || accepted == 0 => UNDECIDED,
        code => code,
    })
}

/// A file of verdicts under examination, and the input that they are about.
struct Docket<'a> {
    args: &'a CertifyArgs,
    path: &'a Path,
    current: Option<Current>,
}

/// The input of the last line, read up to one of its histories.
struct Current {
    source: String,
    histories: Histories,
    index: u64,
    history: History,
}

impl Docket<'_> {
    /// Checks the verdicts of one line; rejections are printed at once.
    fn line(
        &mut self,
        line: &str,
        tally: &mut Tally,
        out: &mut Output,
    ) -> io::Result<Result<(), String>> {
        let mut rejections = Vec::new();
        let checked = self.results(line, tally, &mut rejections);
        for rejection in rejections {
            writeln!(out, "{rejection}")?;
        }
        Ok(checked)
    }

    fn results(
        &mut self,
        line: &str,
        tally: &mut Tally,
        rejections: &mut Vec<String>,
    ) -> Result<(), String> {
        let line = parse(line.as_bytes())?;
        let source = text(&line, "source")?;
        let index = line.get("index").and_then(Value::as_u64);
        let index =
            index.ok_or_else(|| "the field \"index\" is missing or no number".to_owned())?;
        let digest = text(&line, "digest").map_err(|_| {
            "the field \"digest\" is missing, so nothing ties the verdicts to a history; judge again"
                .to_owned()
        })?;
        let results = line.get("results").and_then(Value::as_array);
        let results = results.ok_or_else(|| "the field \"results\" is missing".to_owned())?;
        let folder = self.path.parent().map(Path::to_owned).unwrap_or_default();
        // Verdicts on an object's calls name the object.
        let object = line.get("object").and_then(Value::as_str).map(NamedObject::load).transpose();
        let mut object = object.map_err(|error| error.to_string())?;
        let budget = limits::budget(self.args.budget).with_memory(self.args.memory);
        let mut history = self.history(&source, index)?;
        let (calls, transactions);
        if object.is_none() && is_of_transaction_calls(history) {
            // Isolation levels apply to the transactions that the calls represent.
            transactions = transactions_of_calls(history).map_err(|error| error.to_string())?;
            history = &transactions;
        }
        let registers = object.as_ref().and_then(|named| named.as_registers(history));
        if let Some(registers) = registers.as_ref().filter(|made| made.digest() == *digest) {
            // The calls were judged as reads and writes.
            (history, object) = (registers, None);
        }
        if let Some(named) = object {
            let (made, named) = named.as_calls(history).map_err(|error| error.to_string())?;
            calls = made;
            history = calls.as_ref().unwrap_or(history);
            object = Some(named);
        }
        let mut problem = Ok(());
        if let Err(why) = describes(&line, &digest, history) {
            tally.rejected += results.len() as u64;
            rejections.push(format!("{} [{index}]: rejected: {why}", escaped(&source)));
            return Ok(());
        }
        let (mut satisfied, mut is_open) = (Vec::new(), false);
        for result in results {
            let budget = budget.renewed();
            let checked = check_result(history, object.as_ref(), &folder, result, budget);
            match checked {
                Ok(Checked::Undecided) => tally.undecided += 1,
                Ok(Checked::Accepted(model, claim)) => {
                    tally.accepted += 1;
                    satisfied.extend((claim == Outcome::Consistent).then_some(model));
                }
                Ok(Checked::Rejected { model, why }) => {
                    tally.rejected += 1;
                    let (source, model) = (escaped(&source), escaped(&model));
                    rejections.push(format!("{source} [{index}] {model}: rejected: {why}"));
                }
                Ok(Checked::Stopped { model, why }) => {
                    (tally.undecided, tally.stopped) = (tally.undecided + 1, true);
                    is_open = true;
                    let (source, model) = (escaped(&source), escaped(&model));
                    rejections.push(format!("{source} [{index}] {model}: undecided: {why}"));
                }
                // The verdicts on other models are checked nevertheless.
                Err(found) => problem = problem.and(Err(found)),
            }
        }
        // The strongest models are known only if every certificate could be checked.
        if let (Some(claimed), Ok(()), false) = (line.get("strongest"), &problem, is_open) {
            let mut found = strongest_of(satisfied.iter());
            let claimed = claimed.as_array().map(|ids| ids.iter().filter_map(Value::as_str));
            let mut claimed: Vec<String> = claimed.into_iter().flatten().map(Into::into).collect();
            found.sort();
            claimed.sort();
            if found != claimed {
                tally.rejected += 1;
                let (source, found) = (escaped(&source), found.join(", "));
                rejections.push(format!(
                    "{source} [{index}]: rejected: the strongest models are {found}, not what the \
                     line says"
                ));
            }
        }
        problem
    }

    /// Reads the input up to the history that a line is about; reopens it if necessary.
    fn history(&mut self, source: &str, index: u64) -> Result<&History, String> {
        let current = match self.current.take() {
            Some(current) if current.source == source && current.index == index => current,
            Some(Current { source: open, histories, index: at, .. })
                if open == source && at < index =>
            {
                skip(open, histories, at + 1, index)?
            }
            _ => {
                let path = self.args.history.clone().unwrap_or_else(|| source_path(source));
                if path.as_os_str() == "<stdin>" {
                    return Err(
                        "the history came from standard input; name a file with --history".into()
                    );
                }
                if self.args.history.is_none() {
                    named(&path)?;
                }
                // A folder may be one history.
                let input = match inputs(std::slice::from_ref(&path)) {
                    Ok(mut found) if found.len() == 1 => found.remove(0),
                    _ => Input::File(path),
                };
                let budget = limits::reading_budget(self.args.budget, self.args.memory);
                let histories = read_within(&input, self.args.from, budget);
                skip(source.to_owned(), histories, 0, index)?
            }
        };
        Ok(&self.current.insert(current).history)
    }
}

/// Checks whether a line is about a history: its digest, its name and its counts.
fn describes(line: &Value, digest: &str, history: &History) -> Result<(), String> {
    if *digest != history.digest() {
        return Err("the verdicts are about another history (the digests differ)".to_owned());
    }
    let counts = [("sessions", history.session_count()), ("operations", history.len())];
    for (field, count) in counts {
        let claimed = line.get(field).and_then(Value::as_u64);
        if claimed != Some(count as u64) {
            return Err(format!(
                "the history has {count} {field}, and the line gives another number"
            ));
        }
    }
    if line.get("name").and_then(Value::as_str) != history.name() {
        return Err("the history has another name".to_owned());
    }
    Ok(())
}

/// Checks whether a pattern matches the certificate.
fn pattern_fits(pattern: Option<&str>, claim: Outcome, json: &Value) -> Result<(), String> {
    let Some(pattern) = pattern else {
        return match claim {
            Outcome::Violation => Err("a violation has a pattern".to_owned()),
            _ => Ok(()),
        };
    };
    if claim != Outcome::Violation {
        return Err("only a violation has a pattern".to_owned());
    }
    let kind = json.get("kind").and_then(Value::as_str).unwrap_or_default();
    let edges = json.get("edges").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let has = |names: &[&str]| {
        edges.iter().any(|edge| {
            let relation = edge.get("relation").and_then(Value::as_str).unwrap_or_default();
            names.contains(&relation)
        })
    };
    let is_causal = !has(&["rw", "cf", "hb", "ww"]);
    let fits = match (pattern, kind) {
        ("ThinAirRead", kind) => kind == "thin-air-read",
        (_, "thin-air-read") => false,
        ("FutureRead", "cycle") => is_causal && edges.len() == 2,
        ("CyclicCO", "cycle") => is_causal,
        ("WriteCOInitRead" | "WriteCORead", "cycle") => has(&["rw"]) && !has(&["cf", "hb"]),
        ("CyclicCF", "cycle") => has(&["cf"]),
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("the certificate does not show {pattern}")) }
}

/// Result of checking a verdict.
enum Checked {
    Accepted(Model, Outcome),
    Rejected { model: String, why: String },
    Stopped { model: String, why: Stopped },
    Undecided,
}

/// Checks one verdict of a line, on a history or an object's calls.
fn check_result(
    history: &History,
    object: Option<&NamedObject>,
    folder: &Path,
    result: &Value,
    budget: Budget,
) -> Result<Checked, String> {
    let model = text(result, "model")?;
    let claim = match text(result, "verdict")?.as_str() {
        "consistent" => Outcome::Consistent,
        "violation" => Outcome::Violation,
        "undecided" => return Ok(Checked::Undecided),
        other => return Err(format!("{other:?} is not a verdict")),
    };
    let via = result.get("via").and_then(Value::as_str);
    let json = result.get("certificate").unwrap_or(&Value::Null);
    let found;
    let json = match json.get("file").and_then(Value::as_str) {
        Some(file) => {
            found = read_json(folder, file)?;
            &found
        }
        None if json.get("omitted").is_some() => {
            return Err(format!(
                "the certificate for {model} was too large to print; judge again with \
                 --certificates DIR"
            ));
        }
        None => json,
    };
    let order = result.get("order").and_then(Value::as_str).and_then(ClientOrder::find);
    let isolation = Model::isolation(&model, order.unwrap_or_default());
    let known = match (object, isolation) {
        (None, Some(isolation)) => Ok(isolation),
        (Some(object), _) => Model::of_object(object.clone(), &model),
        (None, None) => {
            Model::register(&model).map(|model| model.ordered(order.unwrap_or_default()))
        }
    };
    let known = known.map_err(|error| error.to_string())?;
    // A certificate that cannot be read, for example because it names an operation that is not in
    // the history, proves nothing.
    let pattern = result.get("pattern").and_then(Value::as_str);
    let proof = Proof::read(history, known.family_of_proofs(), json)
        .map_err(|error| error.to_string())
        .and_then(|proof| pattern_fits(pattern, claim, json).map(|()| proof));
    let options = Options { budget, ..Options::default() };
    let accepted = proof.map(|proof| known.accept(history, via, claim, &proof, &options));
    Ok(match accepted {
        Ok(Ok(())) => Checked::Accepted(known, claim),
        Ok(Err(Rejection::Stopped(why))) => Checked::Stopped { model, why },
        Ok(Err(Rejection::Unproved { reason: why })) | Err(why) => Checked::Rejected { model, why },
    })
}

fn text(value: &Value, field: &str) -> Result<String, String> {
    let found = value.get(field).and_then(Value::as_str).map(str::to_owned);
    found.ok_or_else(|| format!("the field {field:?} is missing or not a text"))
}

/// Checks that a path in a line of verdicts is a file or a folder: reading from a pipe or a device
/// may never end.
fn named(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() || found.is_dir() => Ok(()),
        Ok(_) => {
            Err(format!("{} is neither a file nor a folder", escaped(&path.to_string_lossy())))
        }
        Err(error) => Err(format!("cannot read {}: {error}", escaped(&path.to_string_lossy()))),
    }
}

fn skip(source: String, mut histories: Histories, at: u64, index: u64) -> Result<Current, String> {
    for _ in at..index {
        match histories.next() {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error.to_string()),
            None => break,
        }
    }
    match histories.next() {
        Some(Ok(history)) => Ok(Current { source, histories, index, history }),
        Some(Err(error)) => Err(error.to_string()),
        None => Err(format!("{source} has no history number {index}")),
    }
}

/// Reads a file with a certificate, at the given path or next to the file of verdicts.
fn read_json(folder: &Path, file: &str) -> Result<Value, String> {
    let beside = folder.join(file);
    let path = if Path::new(file).exists() { Path::new(file) } else { &beside };
    let text = named(path).and_then(|()| reading::text(path).map_err(|error| error.to_string()))?;
    parse(text.as_bytes()).map_err(|error| format!("{}: {error}", escaped(file)))
}

/// Parses JSON that may be nested more deeply than the parser allows by default.
fn parse(text: &[u8]) -> Result<Value, String> {
    let nesting = nesting(text);
    if nesting > MAX_NESTING {
        return Err(format!("it is nested {nesting} levels deep; the limit is {MAX_NESTING}"));
    }
    let mut parser = serde_json::Deserializer::from_slice(text);
    parser.disable_recursion_limit();
    let mut values = parser.into_iter::<Unambiguous>();
    match (values.next(), values.next()) {
        (Some(Ok(Unambiguous(value))), None) => Ok(value),
        (Some(Err(error)), _) | (_, Some(Err(error))) => Err(error.to_string()),
        (Some(Ok(_)), Some(Ok(_))) => Err("there is more than one value".to_owned()),
        (None, _) => Err("there is no value".to_owned()),
    }
}

/// JSON without duplicate keys, which readers would interpret differently.
struct Unambiguous(Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UnambiguousVisitor).map(Unambiguous)
    }
}

struct UnambiguousVisitor;

impl<'de> Visitor<'de> for UnambiguousVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unambiguous(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = serde_json::Map::new();
        while let Some((key, Unambiguous(value))) = fields.next_entry::<String, Unambiguous>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} occurs twice")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// Returns the nesting depth of brackets, ignoring those in strings.
fn nesting(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in text {
        match (in_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'[' | b'{') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
