//! `consistory merge`: merges the outputs of parts and their totals.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use consistory_spec::Level;
use serde_json::Value;

use crate::args::{MergeArgs, OutputFormat};
use crate::check::worse;
use crate::error::{CliError, OK, UNDECIDED, VIOLATION};
use crate::output::{Output, refuse_input, table};
use crate::part::Part;
use crate::reading;
use crate::report::quoted;

/// The output of a part.
struct PartOutput {
    path: PathBuf,
    part: Part,
    command: String,
    run: String,
    errors: u64,
    code: u8,
    lines: Vec<Line>,
}

/// A line of a part: its text without the place, the place, and its JSON value.
struct Line {
    text: String,
    place: Vec<u64>,
    value: Value,
}

/// The whole run.
struct Whole {
    lines: Vec<Line>,
    code: u8,
    errors: u64,
}

/// Merges the outputs of parts.
pub(crate) fn merge(args: &MergeArgs) -> Result<u8, CliError> {
    let mut parts = Vec::new();
    for path in &args.parts {
        parts.push(read(path)?);
    }
    let parts = complete(parts)?;
    let command = parts[0].command.clone();
    let count = parts.len();
    let whole = match command.as_str() {
        "contrast" => merge_contrast(parts)?,
        "test" => merge_tests(parts),
        "atlas" => merge_atlas(parts)?,
        _ => merge_lines(parts)?,
    };
    let text: String = whole.lines.iter().map(|line| format!("{}\n", line.text)).collect();
    if let Some(path) = &args.output {
        refuse_input(path, &args.parts)?;
        let mut out = Output::open(Some(path))?;
        out.write_all(text.as_bytes()).map_err(|error| CliError::file("write", path, error))?;
        out.finish()?;
    }
    let shown = match args.format {
        OutputFormat::Json => text,
        OutputFormat::Text => sums(&command, count, &whole),
    };
    let mut out = Output::open(None)?;
    out.write_all(shown.as_bytes()).map_err(CliError::output)?;
    out.finish()?;
    Ok(whole.code)
}

/// Reads the output of a part, whose last line identifies the part.
fn read(path: &Path) -> Result<PartOutput, CliError> {
    let text = reading::text(path)?;
    let wrong = |what: &str| {
        CliError::with_hint(
            format!("{}: {what}", path.display()),
            "a part is the complete output of a command with --part I/N --format json",
        )
    };
    if text.is_empty() {
        return Err(wrong("the part is empty"));
    }
    let mut lines: Vec<&str> = text.lines().collect();
    let end: Option<Value> =
        lines.pop().filter(|_| text.ends_with('\n')).and_then(|end| serde_json::from_str(end).ok());
    let end = end.filter(|end| end.get("part").is_some());
    let end = end.ok_or_else(|| wrong("the part is not complete: its last line is missing"))?;
    let text_of = |key: &str| end.get(key).and_then(Value::as_str).map(str::to_owned);
    let number_of = |key: &str| end.get(key).and_then(Value::as_u64);
    let (Some(part), Some(command), Some(run), Some(count), Some(errors), Some(code)) = (
        text_of("part").and_then(|part| part.parse::<Part>().ok()),
        text_of("command"),
        text_of("run"),
        number_of("lines"),
        number_of("errors"),
        number_of("code").and_then(|code| u8::try_from(code).ok()),
    ) else {
        return Err(wrong("the last line does not identify a part"));
    };
    if count != lines.len() as u64 {
        return Err(wrong(&format!("the part has {} lines and should have {count}", lines.len())));
    }
    let lines: Option<Vec<Line>> = lines.into_iter().map(line).collect();
    let lines = lines.ok_or_else(|| wrong("a line is not JSON"))?;
    Ok(PartOutput { path: path.to_owned(), part, command, run, errors, code, lines })
}

fn line(text: &str) -> Option<Line> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    let place = value.as_object_mut()?.remove("place");
    let place: Vec<u64> =
        place.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_u64).collect();
    let text = match text.rfind(",\"place\":[") {
        Some(at) if !place.is_empty() => format!("{}}}", &text[..at]),
        _ => text.to_owned(),
    };
    Some(Line { text, place, value })
}

/// Checks that the parts belong to one run and are complete, without duplicates; returns them in
/// order.
fn complete(mut parts: Vec<PartOutput>) -> Result<Vec<PartOutput>, CliError> {
    parts.sort_by_key(|part| part.part.index);
    let first = &parts[0];
    if let Some(other) = parts.iter().find(|part| {
        (part.part.of, &part.command, &part.run) != (first.part.of, &first.command, &first.run)
    }) {
        return Err(CliError::with_hint(
            format!("{} and {} are of different runs", first.path.display(), other.path.display()),
            "parts of one run have the same command, inputs, options and number of parts",
        ));
    }
    for pair in parts.windows(2) {
        if pair[0].part == pair[1].part {
            let (a, b) = (pair[0].path.display(), pair[1].path.display());
            return Err(CliError::usage(format!("part {} occurs twice: {a}, {b}", pair[0].part)));
        }
    }
    let is_missing =
        |index: &u64| parts.binary_search_by_key(index, |part| part.part.index).is_err();
    let missing: Vec<String> =
        (0..first.part.of).filter(is_missing).map(|index| (index + 1).to_string()).collect();
    if !missing.is_empty() {
        let (of, count) = (first.part.of, missing.len());
        let shown = missing.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
        let more = if count > 10 { ", ..." } else { "" };
        return Err(CliError::usage(format!("{count} of {of} parts are missing: {shown}{more}")));
    }
    Ok(parts)
}

/// Sorts lines into the order of the whole run.
fn merge_lines(parts: Vec<PartOutput>) -> Result<Whole, CliError> {
    let code = parts.iter().fold(OK, |code, part| worse(code, part.code));
    let errors = parts.iter().map(|part| part.errors).sum();
    let mut lines: Vec<Line> = parts.into_iter().flat_map(|part| part.lines).collect();
    lines.sort_by(|a, b| a.place.cmp(&b.place));
    if let Some(pair) = lines.windows(2).find(|pair| pair[0].place == pair[1].place) {
        return Err(CliError::usage(format!("this line occurs twice: {}", pair[0].text)));
    }
    Ok(Whole { lines, code, errors })
}

/// Returns the place at which the history of a side was found.
fn place_of(value: &Value) -> Option<Vec<u64>> {
    let place = value.get("place")?.as_array()?;
    place.iter().map(Value::as_u64).collect()
}

fn answer(value: &Value) -> &str {
    value.get("answer").and_then(Value::as_str).unwrap_or_default()
}

/// Chooses among the results of the parts: the first history of the scan, otherwise an undecided
/// result.
fn choose<'a>(answers: &[&'a Value], found: &str) -> &'a Value {
    let first = answers.iter().filter(|value| answer(value) == found);
    if let Some(best) = first.min_by_key(|value| place_of(value)) {
        return best;
    }
    let undecided = answers.iter().filter(|value| answer(value) == "undecided");
    let least = undecided.min_by_key(|value| value.get("operations").and_then(Value::as_u64));
    least.unwrap_or(&answers[0])
}

fn without_place(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("place");
    }
    value
}

/// Merges contrasts: each side by its smallest history.
fn merge_contrast(parts: Vec<PartOutput>) -> Result<Whole, CliError> {
    let broken =
        |part: &PartOutput| CliError::usage(format!("{}: no contrast", part.path.display()));
    let mut reports = Vec::new();
    for part in &parts {
        let report = part.lines.first().map(|line| &line.value).ok_or_else(|| broken(part))?;
        match report.get("sides").and_then(Value::as_array) {
            Some(sides) if sides.len() == 2 => reports.push((report, sides)),
            _ => return Err(broken(part)),
        }
    }
    let (first, _) = reports[0];
    let sides: Vec<Value> = (0..2)
        .map(|side| {
            let answers: Vec<&Value> = reports.iter().map(|(_, sides)| &sides[side]).collect();
            without_place(choose(&answers, "separated"))
        })
        .collect();
    let code = match sides.iter().map(answer).collect::<Vec<_>>() {
        words if words.contains(&"separated") => VIOLATION,
        words if words.contains(&"undecided") => UNDECIDED,
        _ => OK,
    };
    let sum = |key: &str| reports.iter().filter_map(|(report, _)| report.get(key)?.as_f64()).sum();
    let (histories, millis): (f64, f64) = (sum("histories"), sum("millis"));
    // Written field by field, in the order that the command uses.
    let mut text = format!("{{\"models\":{}", first["models"]);
    if let Some(space) = first.get("space") {
        text += &format!(",\"space\":{space}");
    }
    let (histories, sides) = (histories as u64, Value::from(sides));
    text += &format!(",\"sides\":{sides},\"histories\":{histories},\"millis\":{millis:.3}}}");
    let value = serde_json::from_str(&text).unwrap_or_default();
    Ok(Whole { lines: vec![Line { text, place: Vec::new(), value }], code, errors: 0 })
}

/// Merges atlases: for each pair the history with the smallest place, then the sums.
fn merge_atlas(parts: Vec<PartOutput>) -> Result<Whole, CliError> {
    let code = parts.iter().map(|part| part.code).max().unwrap_or(OK);
    let sum = |part: &PartOutput| part.lines.last()?.value.get("histories")?.as_u64();
    let histories: u64 = parts.iter().filter_map(sum).sum();
    let mut parts = parts.into_iter();
    let mut lines = parts.next().map_or_else(Vec::new, |part| part.lines);
    for part in parts {
        if part.lines.len() != lines.len() {
            return Err(CliError::usage(format!("{}: not an atlas", part.path.display())));
        }
        for (kept, line) in lines.iter_mut().zip(part.lines) {
            let is_smaller = kept.place.is_empty() || line.place < kept.place;
            if !line.place.is_empty() && is_smaller {
                *kept = line;
            }
        }
    }
    if let Some(last) = lines.last_mut() {
        let (bound, extended) = (&last.value["bound"], &last.value["extended"]);
        last.text =
            format!("{{\"bound\":{bound},\"extended\":{extended},\"histories\":{histories}}}");
    }
    Ok(Whole { lines, code, errors: 0 })
}

/// Merges campaigns: the violations of all parts, then one line with the sums.
fn merge_tests(parts: Vec<PartOutput>) -> Whole {
    const SUMMED: [&str; 7] =
        ["programs", "runs", "outcomes", "bad_runs", "undecided", "violations", "millis"];
    let code = parts.iter().fold(OK, |code, part| worse(code, part.code));
    let mut sums = [0u64; SUMMED.len()];
    let (mut lines, mut head) = (Vec::new(), String::new());
    // For each method, the weakest level in any part, which explains the outcomes of all parts.
    let mut levels: BTreeMap<String, Level> = BTreeMap::new();
    for part in parts {
        let mut of_part = part.lines;
        let Some(Line { value, .. }) = of_part.pop() else { continue };
        for (sum, key) in sums.iter_mut().zip(SUMMED) {
            *sum += value.get(key).and_then(Value::as_u64).unwrap_or(0);
        }
        let (target, object, model) = (&value["target"], &value["object"], &value["model"]);
        head = format!("{{\"target\":{target},\"object\":{object},\"model\":{model}");
        for (method, level) in value["levels"].as_object().into_iter().flatten() {
            if let Some(level) = level.as_str().and_then(Level::named) {
                let weakest = levels.entry(method.clone()).or_insert(level);
                *weakest = level.min(*weakest);
            }
        }
        lines.append(&mut of_part);
    }
    let fields = SUMMED.iter().zip(sums).map(|(key, sum)| format!(",\"{key}\":{sum}"));
    let levels = levels.iter().map(|(method, level)| format!("{}:\"{level}\"", quoted(method)));
    let (fields, levels) = (fields.collect::<String>(), levels.collect::<Vec<_>>().join(","));
    let text = format!("{head}{fields},\"levels\":{{{levels}}}}}");
    let value = serde_json::from_str(&text).unwrap_or_default();
    lines.push(Line { text, place: Vec::new(), value });
    Whole { lines, code, errors: 0 }
}

/// Adds up the totals of the parts.
fn sums(command: &str, parts: usize, whole: &Whole) -> String {
    let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut add = |row: &str, column: &str, number: u64| {
        if !order.iter().any(|known| known == row) {
            order.push(row.to_owned());
        }
        *counts.entry(row.to_owned()).or_default().entry(column.to_owned()).or_default() += number;
    };
    let word = |value: &Value, key: &str| -> Option<String> {
        value.get(key).and_then(Value::as_str).map(str::to_owned)
    };
    for line in &whole.lines {
        let value = &line.value;
        match command {
            "check" => {
                for result in value.get("results").and_then(Value::as_array).into_iter().flatten() {
                    if let (Some(model), Some(verdict)) =
                        (word(result, "model"), word(result, "verdict"))
                    {
                        add(&model, &verdict, 1);
                    }
                }
            }
            "outcomes" => {
                let undecided = value.get("undecided").map(|_| "undecided".to_owned());
                let found = undecided.or_else(|| word(value, "condition"));
                if let Some(model) = word(value, "model") {
                    add(&model, found.as_deref().unwrap_or("found"), 1);
                }
            }
            "contrast" => {
                for side in value.get("sides").and_then(Value::as_array).into_iter().flatten() {
                    if let (Some(a), Some(b)) = (word(side, "allows"), word(side, "forbids")) {
                        add(&format!("{a} allows, {b} forbids"), answer(side), 1);
                    }
                }
            }
            "atlas" => {
                if let Some(allows) = word(value, "allows") {
                    add(&allows, answer(value), 1);
                }
            }
            "test" => {
                if let (Some(target), Some(fields)) = (word(value, "target"), value.as_object())
                    && fields.contains_key("programs")
                {
                    for key in ["programs", "runs", "outcomes", "violations"] {
                        let number = fields.get(key).and_then(Value::as_u64).unwrap_or(0);
                        add(&target, key, number);
                    }
                }
            }
            _ => {}
        }
    }
    let mut columns: Vec<&str> = match command {
        "check" => vec!["consistent", "violation", "undecided"],
        "atlas" => vec!["implied", "separated", "none"],
        "test" => vec!["programs", "runs", "outcomes", "violations"],
        _ => Vec::new(),
    };
    for column in counts.values().flat_map(BTreeMap::keys) {
        if !columns.contains(&column.as_str()) {
            columns.push(column);
        }
    }
    let rows: Vec<Vec<String>> = order
        .iter()
        .map(|row| {
            let number = |column: &&str| counts[row].get(*column).copied().unwrap_or(0).to_string();
            std::iter::once(row.clone()).chain(columns.iter().map(number)).collect()
        })
        .collect();
    let (row_name, item) = match command {
        "check" => ("model", "histories"),
        "outcomes" => ("model", "lines"),
        "contrast" => ("side", "contrast"),
        "atlas" => ("allows", "lines"),
        "test" => ("target", "lines"),
        _ => ("", "lines"),
    };
    let header: Vec<&str> = std::iter::once(row_name).chain(columns.iter().copied()).collect();
    let mut text = format!("{parts} parts, {} {item}", whole.lines.len());
    if whole.errors > 0 {
        text += &format!(", {} errors", whole.errors);
    }
    text + "\n" + &table(&header, &rows)
}
