//! Histories in EDN, as written by Jepsen, Knossos and Elle, and Porcupine's key-value logs.
//!
//! ```text
//! {:type :invoke, :f :cas, :value [1 4], :process 101, :time 9}
//! {:type :ok,     :f :cas, :value [1 4], :process 101, :time 12}
//! {:process 9, :type :invoke, :f :append, :key "0", :value "x 9 0 y"}
//! {:process 0, :type :ok, :f :txn, :value [[:append 255 8] [:r 253 [1 3 4]]], :index 3}
//! ```
//!
//! The file is a vector, a list or a sequence of maps, one map per event; other fields are ignored,
//! and so are the events of the `:nemesis`. [`recorder`](super::recorder) builds a history from
//! events, and [`shape`](super::shape) builds calls from their fields.

use consistory_history::Value;

use super::recorder::{Event, EventType, Part, Recorder};
use crate::edn::{Form, Kind, Lines, Reader};
use crate::parse::{Line, Parse, Sink, nearest};

/// The parser of EDN histories.
#[derive(Default)]
pub(crate) struct JepsenEdn {
    reader: Reader,
    recorder: Recorder,
    last_line: u64,
}

impl Parse for JepsenEdn {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let recorder = &mut self.recorder;
        self.reader.line(line, sink, &mut |form, lines, sink| event(&form, recorder, lines, sink));
    }

    fn end(&mut self, sink: &mut Sink) {
        self.reader.end(self.last_line, sink);
        self.recorder.end(sink, Line { number: self.last_line, text: "" });
    }
}

const EVENT: &str = "an event is {:process 0, :type :invoke, :f :read, :value nil}";

/// The fields of an event that are used.
#[derive(Default)]
struct Fields<'a> {
    process: Option<&'a Form>,
    kind: Option<&'a Form>,
    f: Option<&'a Form>,
    value: Option<&'a Form>,
    key: Option<&'a Form>,
    time: Option<&'a Form>,
}

impl<'a> Fields<'a> {
    /// Collects the fields of a map, and reports duplicates.
    fn collect(items: &'a [Form], lines: &Lines<'_>, sink: &mut Sink) -> Self {
        let mut fields = Fields::default();
        for pair in items.chunks_exact(2) {
            let Kind::Keyword(name) = &pair[0].kind else { continue };
            let slot = match &**name {
                "process" => &mut fields.process,
                "type" => &mut fields.kind,
                "f" => &mut fields.f,
                "value" => &mut fields.value,
                "key" => &mut fields.key,
                "time" => &mut fields.time,
                _ => continue,
            };
            if slot.replace(&pair[1]).is_some() {
                lines.fault(&pair[0], &format!("a second :{name}"), EVENT, sink);
            }
        }
        fields
    }
}

/// Parses an event, or reports an error.
fn event(form: &Form, recorder: &mut Recorder, lines: &Lines<'_>, sink: &mut Sink) {
    let Kind::Map(items) = &form.kind else {
        return lines.fault(form, "expected an event, a map", EVENT, sink);
    };
    let fields = Fields::collect(items, lines, sink);
    let before = sink.diagnostics.count();
    let mut name = |part: Option<&Form>, field: &str| match part.map(|part| (part, part.name())) {
        None => None,
        Some((part, None)) if matches!(part.kind, Kind::Nil) => None,
        Some((part, None)) => {
            lines.fault(part, &format!("{field} is not a name"), EVENT, sink);
            None
        }
        Some((_, found)) => found,
    };
    let process = name(fields.process, ":process");
    let kind = name(fields.kind, ":type");
    let f = name(fields.f, ":f");
    let Some(kind_form) = fields.kind else {
        return lines.fault(form, ":type is missing", EVENT, sink);
    };
    if sink.diagnostics.count() > before {
        return;
    }
    // The events of faults may have values of any kind.
    if process.as_deref() == Some("nemesis") {
        return;
    }
    let kind = kind.unwrap_or_default();
    let Some(kind) = EventType::find(&kind) else {
        let hint = match nearest(&kind, EventType::NAMES) {
            Some(meant) => format!("did you mean :{meant}?"),
            None => "it is :invoke, :ok, :fail or :info".into(),
        };
        return lines.fault(kind_form, &format!("unknown type :{kind}"), &hint, sink);
    };
    let mut value_of = |part: Option<&Form>| match part.map(Form::value) {
        None => Some(None),
        Some(Ok(value)) => Some(Some(value)),
        Some(Err((place, fault))) => {
            lines.report(place, fault, sink);
            None
        }
    };
    let (Some(value), Some(key)) = (value_of(fields.value), value_of(fields.key)) else { return };
    let time = match fields.time.map(|form| &form.kind) {
        Some(&Kind::Int(time)) => Some(time),
        _ => None,
    };
    let event = Event {
        process,
        kind,
        f,
        key,
        value: value.unwrap_or(Value::Null),
        time,
        line: form.place.line,
    };
    if let Err(misfit) = recorder.event(event) {
        let part = match misfit.part {
            Part::Process => fields.process,
            Part::Name => fields.f,
            Part::Whole => None,
        };
        lines.fault(part.unwrap_or(form), &misfit.message, &misfit.hint, sink);
    }
}
