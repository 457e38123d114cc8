//! Histories in JSON, as written by Jepsen and elle-cli.
//!
//! ```text
//! [{"process":0,"type":"invoke","f":"txn","value":[["r","x",null],["append","y",1]],"index":0},
//!  {"process":0,"type":"ok","f":"txn","value":[["r","x",[2,3]],["append","y",1]],"index":1}]
//! ```
//!
//! The file is a list of events, or a sequence of events; other fields are ignored, and so are the
//! events of the `"nemesis"`. An object as a value becomes the list of its pairs, like a map in
//! EDN. The file is held in memory while it is read.

use consistory_history::Value;
use serde_json::value::RawValue;

use super::recorder::{Event, EventType, Part, Recorder};
use crate::document::Document;
use crate::jsonl::{Object, list, syntax_fault, text_of, value_of};
use crate::limits::Limits;
use crate::parse::{Fault, Line, Parse, Sink, nearest};

/// The parser of JSON events.
#[derive(Default)]
pub(crate) struct JepsenJson {
    text: String,
    last_line: u64,
}

impl Parse for JepsenJson {
    fn line(&mut self, line: Line<'_>, _: &mut Sink) {
        self.last_line = line.number;
        self.text.push_str(line.text);
        self.text.push('\n');
    }

    fn end(&mut self, sink: &mut Sink) {
        let mut document = Document::new(&self.text);
        let mut recorder = Recorder::default();
        let events = events(&self.text, &sink.limits);
        if sink.limits.stopped().is_some() {
            return;
        }
        match events {
            Ok(events) => {
                for part in events {
                    if !sink.limits.has_time() {
                        return;
                    }
                    event(part, &mut recorder, &mut document, sink);
                }
            }
            Err(fault) => document.report(fault, sink),
        }
        recorder.end(sink, Line { number: self.last_line, text: "" });
    }
}

/// Events of a list between two checks of the budget.
const EVENTS_PER_CHECK: usize = 1 << 12;

/// Splits a list into its events, one by one within the limits; `None` if a limit is reached or the
/// list is malformed.
fn events_of_list<'a>(text: &'a str, limits: &Limits) -> Option<Vec<&'a str>> {
    let past_space = |text: &'a str| text.trim_start_matches([' ', '\t', '\n', '\r']);
    let mut rest = past_space(text.strip_prefix('[')?);
    let mut found = Vec::new();
    if let Some(end) = rest.strip_prefix(']') {
        return past_space(end).is_empty().then_some(found);
    }
    loop {
        let mut events = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        found.push(events.next()?.ok()?.get());
        rest = past_space(&rest[events.byte_offset()..]);
        if found.len().is_multiple_of(EVENTS_PER_CHECK) && !limits.goes_on() {
            return None;
        }
        match rest.strip_prefix(',') {
            Some(more) => rest = past_space(more),
            None => return past_space(rest.strip_prefix(']')?).is_empty().then_some(found),
        }
    }
}

/// Splits a document into its events; after a limit is reached, the result has no meaning.
fn events<'a>(text: &'a str, limits: &Limits) -> Result<Vec<&'a str>, Fault> {
    let trimmed = text.trim();
    if trimmed.starts_with('[') {
        if let Some(events) = events_of_list(trimmed, limits) {
            return Ok(events);
        }
        if limits.stopped().is_some() {
            return Ok(Vec::new());
        }
        if let Err(error) = serde_json::from_str::<&RawValue>(text) {
            return Err(syntax_fault(text.trim_end(), &error));
        }
        return Ok(list(trimmed).unwrap_or_default());
    }
    let mut found = Vec::new();
    for event in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        match event {
            Ok(event) => {
                found.push(event.get());
                if found.len().is_multiple_of(EVENTS_PER_CHECK) && !limits.goes_on() {
                    return Ok(found);
                }
            }
            Err(error) => return Err(syntax_fault(text.trim_end(), &error)),
        }
    }
    Ok(found)
}

const EVENT: &str = "an event is {\"process\":0,\"type\":\"invoke\",\"f\":\"read\",\"value\":null}";

/// Parses an event, or reports an error.
fn event(text: &str, recorder: &mut Recorder, document: &mut Document<'_>, sink: &mut Sink) {
    if !text.starts_with('{') {
        return document.fault(text, "expected an event, an object", EVENT, sink);
    }
    let Object(items) = serde_json::from_str(text).unwrap_or(Object(Vec::new()));
    let names = ["process", "type", "f", "value", "key", "time"];
    let mut fields: [Option<&str>; 6] = [None; 6];
    for (name, value) in items {
        let found = text_of(name).unwrap_or_default();
        let Some(at) = names.iter().position(|known| *known == found) else { continue };
        if fields[at].replace(value).is_some() {
            return document.fault(name, &format!("a second \"{found}\""), EVENT, sink);
        }
    }
    let [process, kind, f, value, key, time] = fields.map(|part| part.filter(|p| *p != "null"));
    let process_name = process.and_then(text_of);
    if process_name.as_deref() == Some("nemesis") {
        return;
    }
    for (part, field) in [(process, "process"), (f, "f")] {
        if let Some(part) = part.filter(|part| text_of(part).is_none()) {
            return document.fault(part, &format!("\"{field}\" is not a name"), EVENT, sink);
        }
    }
    let Some(kind_part) = kind else {
        return document.fault(text, "\"type\" is missing", EVENT, sink);
    };
    let kind = text_of(kind_part).unwrap_or_default();
    let Some(kind) = EventType::find(&kind) else {
        let hint = match nearest(&kind, EventType::NAMES) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => "it is \"invoke\", \"ok\", \"fail\" or \"info\"".into(),
        };
        return document.fault(kind_part, "unknown type", &hint, sink);
    };
    let mut parsed = |part: Option<&str>| match part {
        None => Some(None),
        Some(part) => match json_value(part, document) {
            Ok(value) => Some(Some(value)),
            Err(fault) => {
                document.report(fault, sink);
                None
            }
        },
    };
    let (Some(value), Some(key)) = (parsed(value), parsed(key)) else { return };
    let event = Event {
        process: process_name.map(Into::into),
        kind,
        f: f.and_then(text_of).map(Into::into),
        key,
        value: value.unwrap_or(Value::Null),
        time: time.and_then(|time| time.parse().ok()),
        line: document.line_of(text),
    };
    if let Err(misfit) = recorder.event(event) {
        let part = match misfit.part {
            Part::Process => process,
            Part::Name => f,
            Part::Whole => None,
        };
        document.fault(part.unwrap_or(text), &misfit.message, &misfit.hint, sink);
    }
}

/// Reads a value; an object becomes the list of its pairs, in which keys that look like integers
/// become integers.
fn json_value(part: &str, document: &Document<'_>) -> Result<Value, Fault> {
    if !part.contains('{') {
        return value_of(part, document.span(part));
    }
    match part.as_bytes().first() {
        Some(b'{') => {
            let Object(items) = serde_json::from_str(part).unwrap_or(Object(Vec::new()));
            let pair = |(name, value): (&str, &str)| {
                let name = text_of(name).unwrap_or_default();
                let name = match name.parse::<i64>() {
                    Ok(number) if number.to_string() == name => Value::Int(number),
                    _ => Value::Str(name.into()),
                };
                Ok(Value::List(vec![name, json_value(value, document)?]))
            };
            Ok(Value::List(items.into_iter().map(pair).collect::<Result<_, Fault>>()?))
        }
        Some(b'[') => {
            let items = list(part).unwrap_or_default();
            let items = items.into_iter().map(|item| json_value(item, document));
            Ok(Value::List(items.collect::<Result<_, Fault>>()?))
        }
        _ => value_of(part, document.span(part)),
    }
}
