//! Histories in EDN, as Jepsen and Knossos keep them, and Porcupine's key-value logs.
//!
//! ```text
//! {:type :invoke, :f :cas, :value [1 4], :process 101, :time 9}
//! {:type :ok,     :f :cas, :value [1 4], :process 101, :time 12}
//! {:process 9, :type :invoke, :f :append, :key "0", :value "x 9 0 y"}
//! ```
//!
//! The file is a vector, a list or bare maps, an event a map; fields other than these are left
//! out, and so are the events of the `:nemesis`. `:ok` completes a call, `:fail` says that it did
//! not take effect, and after `:info`, or if nothing more is heard of it, nobody knows. How events
//! become calls:
//!
//! | `:f` | arguments | return |
//! | --- | --- | --- |
//! | `:cas` | the two of the pair | `true` |
//! | `:read`, `:get`, `:dequeue`, `:pop` and the like | the `:key`, if there is one | the `:value` of `:ok` |
//! | any other | the `:key`, and the `:value` unless it is nil | the `:value` of `:ok`, unless it is nil or that of `:invoke` |

use std::io;

use consistory_history::{Action, History, OpId, Status, Value};

use crate::edn::{Form, Kind, Lines, Reader, write_value};
use crate::events::{Event, EventKind, Events, Invocation, Outcome};
use crate::parse::{Line, Parse, Sink, nearest};

/// The parser of EDN histories.
#[derive(Default)]
pub(crate) struct JepsenEdn {
    reader: Reader,
    events: Events,
    last_line: u64,
}

impl Parse for JepsenEdn {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let events = &mut self.events;
        self.reader.line(line, sink, &mut |form, lines, sink| event(&form, events, lines, sink));
    }

    fn end(&mut self, sink: &mut Sink) {
        self.reader.end(self.last_line, sink);
        self.events.end(sink, Line { number: self.last_line, text: "" });
    }
}

const EVENT: &str = "an event is {:process 0, :type :invoke, :f :read, :value nil}";

/// The fields of an event that matter.
#[derive(Default)]
struct Fields<'a> {
    process: Option<&'a Form>,
    kind: Option<&'a Form>,
    f: Option<&'a Form>,
    value: Option<&'a Form>,
    key: Option<&'a Form>,
}

fn event(form: &Form, events: &mut Events, lines: &Lines<'_>, sink: &mut Sink) {
    let Kind::Map(items) = &form.kind else {
        return lines.fault(form, "expected an event, a map", EVENT, sink);
    };
    let mut fields = Fields::default();
    for pair in items.chunks_exact(2) {
        let Kind::Keyword(name) = &pair[0].kind else { continue };
        let slot = match &**name {
            "process" => &mut fields.process,
            "type" => &mut fields.kind,
            "f" => &mut fields.f,
            "value" => &mut fields.value,
            "key" => &mut fields.key,
            _ => continue,
        };
        if slot.replace(&pair[1]).is_some() {
            lines.fault(&pair[0], &format!("a second :{name}"), EVENT, sink);
        }
    }
    let Fields { process, kind, f, value, key } = fields;
    let mut names =
        [process, kind, f].into_iter().zip([":process", ":type", ":f"]).map(|(part, name)| {
            match part {
                None => {
                    lines.fault(form, &format!("{name} is missing"), EVENT, sink);
                    None
                }
                Some(part) => {
                    let found = part.name();
                    if found.is_none() {
                        lines.fault(part, &format!("{name} is no name"), EVENT, sink);
                    }
                    found.map(|name| (part, name))
                }
            }
        });
    let (process, kind, f) = (names.next(), names.next(), names.next());
    let (
        Some(Some((process_form, process))),
        Some(Some((kind_form, kind))),
        Some(Some((f_form, f))),
    ) = (process, kind, f)
    else {
        return;
    };
    if process == "nemesis" {
        return;
    }
    let mut value_of = |part: Option<&Form>| match part.map(Form::value) {
        None => Some(None),
        Some(Ok(value)) => Some(Some(value)),
        Some(Err((place, fault))) => {
            lines.report(place, fault, sink);
            None
        }
    };
    let (Some(value), Some(key)) = (value_of(value), value_of(key)) else { return };
    let value = value.unwrap_or(Value::Null);
    let name = format!("process {process}");
    let result = match &*kind {
        "invoke" => events.invoke(&process, invocation(f, key, value), form.place.line),
        "ok" | "fail" | "info" => match events.invocation(&process) {
            Err(unpaired) => Err(unpaired),
            Ok(invoked) if invoked.method != f => {
                let message = format!("{name} has invoked :{}, not :{f}", invoked.method);
                return lines.fault(f_form, &message, "a call is completed by its own name", sink);
            }
            Ok(invoked) => {
                let outcome = match &*kind {
                    "ok" => Outcome::Returned(returns(invoked, value)),
                    "fail" => Outcome::Failed,
                    _ => Outcome::Unknown,
                };
                events.complete(&process, outcome)
            }
        },
        other => {
            let known = ["invoke", "ok", "fail", "info"];
            let hint = match nearest(other, known) {
                Some(meant) => format!("did you mean :{meant}?"),
                None => "it is :invoke, :ok, :fail or :info".into(),
            };
            return lines.fault(kind_form, &format!("unknown type :{other}"), &hint, sink);
        }
    };
    if let Err(unpaired) = result {
        let (message, hint) = unpaired.describe(&name);
        lines.fault(process_form, &message, &hint, sink);
    }
}

/// Methods that return what they find.
const READS: [&str; 12] = [
    "read",
    "get",
    "dequeue",
    "deq",
    "pop",
    "poll",
    "peek",
    "take",
    "size",
    "remove-min",
    "delete-min",
    "txn",
];

/// Makes a call of an event's fields.
pub(crate) fn invocation(f: String, key: Option<Value>, value: Value) -> Invocation {
    let is_keyed = key.is_some();
    let mut args: Vec<Value> = key.into_iter().collect();
    match value {
        Value::Null => {}
        Value::List(pair) if f == "cas" && pair.len() == 2 => args.extend(pair),
        // A key says what is read; the value is what will be found.
        _ if is_keyed && READS.contains(&&*f) => {}
        value => args.push(value),
    }
    Invocation { method: f, args }
}

/// Gives what a call returned, by the value of its completion.
pub(crate) fn returns(invoked: &Invocation, value: Value) -> Option<Value> {
    match &*invoked.method {
        "cas" => Some(Value::Bool(true)),
        method if READS.contains(&method) => Some(value),
        _ if value == Value::Null || invoked.args.last() == Some(&value) => None,
        _ => Some(value),
    }
}

/// An operation in the fields of its events: the key, and the values of both events.
struct Shape {
    key: Option<Value>,
    invoked: Value,
    completed: Value,
}

/// Finds how a call is written, if it can be: what is written must be read as the same call.
fn shape(history: &History, op: OpId) -> Option<Shape> {
    let Action::Call(call) = history.action(op) else { return None };
    let call = history.call(call);
    let value = |id| history.value(id).clone();
    let args: Vec<Value> = call.args.iter().map(|&id| value(id)).collect();
    let is_plain = !call.method.is_empty()
        && call.method.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/'));
    // What the nemesis does is not read.
    if !is_plain || history.session_name(history.session_of(op)) == "nemesis" {
        return None;
    }
    let returned = call.returns.map(value);
    let key_and = |at: usize| (args.first().cloned(), args.get(at).cloned().unwrap_or(Value::Null));
    let (key, invoked) = match (&*call.method, args.len()) {
        (_, 0) => (None, Value::Null),
        ("cas", 2) => (None, Value::List(args.clone())),
        ("cas", 3) => (args.first().cloned(), Value::List(args[1..].to_vec())),
        (method, 1) if READS.contains(&method) => key_and(1),
        (_, 1) => (None, args[0].clone()),
        (_, 2) => key_and(1),
        _ => return None,
    };
    let completed = match &returned {
        _ if &*call.method == "cas" => invoked.clone(),
        Some(value) => value.clone(),
        None => invoked.clone(),
    };
    let read = invocation(call.method.to_string(), key.clone(), invoked.clone());
    let has_end = history.status(op) == Status::Ok && history.time(op)?.end.is_some();
    let is_same = read.args == args && (!has_end || returns(&read, completed.clone()) == returned);
    is_same.then_some(Shape { key, invoked, completed })
}

/// Says whether an operation can be written.
pub(crate) fn can_write(history: &History, op: OpId) -> bool {
    shape(history, op).is_some()
}

/// Writes a history, an event a line; `can_write` holds for every operation.
pub(crate) fn write(
    history: &History,
    events: &[Event],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut line = String::new();
    for &Event { op, kind } in events {
        let Some(shape) = shape(history, op) else { continue };
        let Action::Call(call) = history.action(op) else { continue };
        let (kind, value) = match kind {
            EventKind::Invoked => ("invoke", &shape.invoked),
            EventKind::Abandoned => ("info", &shape.invoked),
            EventKind::Completed if history.status(op) == Status::Fail => ("fail", &shape.invoked),
            EventKind::Completed => ("ok", &shape.completed),
        };
        line.clear();
        let process = history.session_name(history.session_of(op));
        let written = (|| -> std::fmt::Result {
            use std::fmt::Write;
            line.push_str("{:process ");
            match process.parse::<i64>() {
                Ok(number) if number.to_string() == process => write!(line, "{number}")?,
                _ => write_value(&Value::Str(process.into()), &mut line)?,
            }
            write!(line, ", :type :{kind}, :f :{}", history.call(call).method)?;
            if let Some(key) = &shape.key {
                line.push_str(", :key ");
                write_value(key, &mut line)?;
            }
            line.push_str(", :value ");
            write_value(value, &mut line)?;
            line.push('}');
            Ok(())
        })();
        written.map_err(io::Error::other)?;
        writeln!(out, "{line}")?;
    }
    Ok(())
}
