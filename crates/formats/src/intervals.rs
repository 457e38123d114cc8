//! fastlin's and fptlin's histories: one operation per line, with the times of its start and end.
//!
//! ```text
//! # stack                     # queue
//! push 1 1 2                  0 1 5 ENQ 10
//! pop -1 3 4                  1 2 6 DEQ -1
//! ```
//!
//! fastlin has `method value start end` and no processes: every operation is a session of its own,
//! so that no model orders two of them by their client. fptlin has
//! `process start end METHOD value`, in its older versions `process method value start end`; the
//! second word distinguishes the two. In both formats -1 is the result of a removal or a peek on an
//! empty object, and every operation has returned. A set's operations end with their return value
//! (`CONTAINS 2 0`) or have it in their name (`contains_true 2`); a read-modify-write of a
//! register, `READ_MODIFY_WRITE 0 2`, is a `cas` that succeeded. The first line names the object;
//! other lines with `#` are comments.

use std::io;
use std::ops::Range;

use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, Interval, OpId, Status, Value,
};

use crate::numbers::Numbers;
use crate::parse::{Cursor, Fault, Line, Parse, Sink, beyond_i64};

/// One of the two formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    /// fastlin.
    Fastlin,
    /// fptlin.
    Fptlin,
}

/// The parser of both formats.
pub(crate) struct Intervals {
    dialect: Dialect,
    operations: Vec<Operation>,
    object: Option<String>,
    last_line: u64,
}

struct Operation {
    process: u64,
    start: i64,
    end: i64,
    method: &'static str,
    args: Vec<i64>,
    returns: Option<Value>,
}

impl Intervals {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Intervals { dialect, operations: Vec::new(), object: None, last_line: 0 }
    }
}

impl Parse for Intervals {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let (text, comment) = match line.text.split_once('#') {
            Some((text, comment)) => (text, Some(comment)),
            None => (line.text, None),
        };
        if text.trim().is_empty() {
            if let Some(comment) = comment.filter(|_| self.object.is_none()) {
                self.object = Some(comment.trim().to_ascii_lowercase());
            }
            return;
        }
        match self.operation(text) {
            Ok(operation) => self.operations.push(operation),
            Err(fault) => sink.report(line, fault),
        }
    }

    fn end(&mut self, sink: &mut Sink) {
        let mut operations = std::mem::take(&mut self.operations);
        // The operations of a session do not overlap.
        operations.sort_by_key(|op| (op.start, op.end));
        if self.dialect == Dialect::Fastlin {
            for (operation, number) in operations.iter_mut().zip(0..) {
                operation.process = number;
            }
        }
        let mut builder = HistoryBuilder::new();
        for op in operations {
            let session = builder.session(&op.process.to_string());
            let args = op.args.into_iter().map(|arg| builder.int(arg)).collect();
            let returns = op.returns.map(|value| builder.value(value));
            let call = builder.call(Call { method: op.method.into(), args, returns });
            let time = Some(Interval { start: op.start, end: Some(op.end) });
            let details = Details { time, ..Details::default() };
            builder.push_with(session, Action::Call(call), details);
        }
        sink.finish(&mut builder, Line { number: self.last_line, text: "" });
    }
}

const FASTLIN: &str = "a line is a method, a value, a start and an end: `push 1 1 2`";
const FPTLIN: &str =
    "a line is a process, a start, an end, a method and its values: `0 1 5 ENQ 10`";

impl Intervals {
    fn operation(&self, text: &str) -> Result<Operation, Fault> {
        let mut cursor = Cursor::new(text);
        let mut words: Vec<(&str, Range<usize>)> = Vec::new();
        loop {
            cursor.skip_spaces();
            if cursor.is_done() {
                break;
            }
            let start = cursor.at;
            let word = cursor.take_while(|c| !c.is_whitespace());
            if word.is_empty() {
                return Err(Fault::new(cursor.here(), "this is neither a word nor a space"));
            }
            words.push((word, start..cursor.at));
        }
        let form = if self.dialect == Dialect::Fastlin { FASTLIN } else { FPTLIN };
        let whole = words[0].1.start..words[words.len() - 1].1.end;
        let short = || Err(Fault::new(whole.clone(), "something is missing").hint(form));
        let is_number =
            |at: usize| words.get(at).is_some_and(|(word, _)| word.parse::<i64>().is_ok());
        let count = words.len();
        let (process, method, values, start, end) = match self.dialect {
            _ if count < 4 => return short(),
            Dialect::Fastlin => (None, 0, 1..count - 2, count - 2, count - 1),
            Dialect::Fptlin if is_number(1) => (Some(0), 3, 4..count, 1, 2),
            Dialect::Fptlin if count < 5 => return short(),
            Dialect::Fptlin => (Some(0), 1, 2..count - 2, count - 2, count - 1),
        };
        let number = |at: usize| -> Result<i64, Fault> {
            let (word, span) = &words[at];
            let digits = word.strip_prefix('-').unwrap_or(word);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                let message = format!("expected a number, found `{word}`");
                return Err(Fault::new(span.clone(), message).hint(form));
            }
            word.parse().map_err(|_| beyond_i64(span.clone(), word))
        };
        let process = match process {
            None => 0,
            Some(at) => u64::try_from(number(at)?)
                .map_err(|_| Fault::new(words[at].1.clone(), "a process is not negative"))?,
        };
        let (from, to) = (number(start)?, number(end)?);
        if to < from {
            let message = format!("it ends at {to}, before it starts at {from}");
            return Err(Fault::new(words[end].1.clone(), message));
        }
        let span = words[method].1.clone();
        let values: Vec<i64> = values.map(number).collect::<Result<_, _>>()?;
        let (method, args, returns) =
            self.call(words[method].0, &values).map_err(|message| Fault::new(span, message))?;
        Ok(Operation { process, start: from, end: to, method, args, returns })
    }

    /// Builds a call from a method's name and values.
    fn call(
        &self,
        name: &str,
        values: &[i64],
    ) -> Result<(&'static str, Vec<i64>, Option<Value>), String> {
        let is_set = self.object.as_deref() == Some("set");
        let lower = name.to_ascii_lowercase();
        let truth = |value: i64| match value {
            0 => Ok(Some(Value::Bool(false))),
            1 => Ok(Some(Value::Bool(true))),
            other => Err(format!("`{name}` returns 0 or 1, not {other}")),
        };
        let found = |value: i64| match value {
            -1 => Some(Value::Null),
            value => Some(Value::Int(value)),
        };
        Ok(match (&*lower, values) {
            ("contains_true", &[value]) => ("contains", vec![value], Some(Value::Bool(true))),
            ("contains_false", &[value]) => ("contains", vec![value], Some(Value::Bool(false))),
            ("contains", &[value, result]) => ("contains", vec![value], truth(result)?),
            ("insert" | "add", &[value, result]) => ("add", vec![value], truth(result)?),
            ("remove", &[value, result]) => ("remove", vec![value], truth(result)?),
            ("insert" | "add", &[value]) if is_set => ("add", vec![value], Some(Value::Bool(true))),
            ("remove", &[value]) => ("remove", vec![value], Some(Value::Bool(true))),
            ("push", &[value]) => ("push", vec![value], None),
            ("pop", &[value]) => ("pop", vec![], found(value)),
            ("peek", &[value]) => ("peek", vec![], found(value)),
            ("enq" | "enqueue", &[value]) => ("enqueue", vec![value], None),
            ("deq" | "dequeue", &[value]) => ("dequeue", vec![], found(value)),
            ("insert" | "add" | "offer", &[value]) => ("insert", vec![value], None),
            ("poll", &[value]) => ("poll", vec![], found(value)),
            ("write", &[value]) => ("write", vec![value], None),
            ("read", &[value]) => ("read", vec![], Some(Value::Int(value))),
            ("read_modify_write" | "rmw", &[read, written]) => {
                ("cas", vec![read, written], Some(Value::Bool(true)))
            }
            ("acquire", _) => ("acquire", values.to_vec(), None),
            ("release", _) => ("release", values.to_vec(), None),
            _ => {
                return Err(format!("no method `{name}` with {} values is known", values.len()));
            }
        })
    }
}

/// Returns the words of an operation: the method's name and the values.
fn words(history: &History, op: OpId, dialect: Dialect) -> Option<(&'static str, Vec<i64>)> {
    let Action::Call(call) = history.action(op) else { return None };
    let call = history.call(call);
    history.time(op)?.end?;
    if history.status(op) != Status::Ok {
        return None;
    }
    let mut values = Vec::new();
    for &arg in &call.args {
        let Value::Int(value) = *history.value(arg) else { return None };
        values.push(value);
    }
    let returned = call.returns.map(|id| history.value(id));
    let found = match returned {
        Some(Value::Null) => Some(-1),
        Some(&Value::Int(value)) if value != -1 => Some(value),
        _ => None,
    };
    let truth = match returned {
        Some(&Value::Bool(truth)) => Some(i64::from(truth)),
        _ => None,
    };
    let inserts = |name| returned.is_none().then_some(name);
    Some(match (&*call.method, values.len()) {
        ("push", 1) => (inserts("push")?, values),
        ("enqueue", 1) => (inserts("enq")?, values),
        ("insert", 1) => (inserts("insert")?, values),
        ("pop", 0) => ("pop", vec![found?]),
        ("peek", 0) => ("peek", vec![found?]),
        ("dequeue", 0) => ("deq", vec![found?]),
        ("poll", 0) => ("poll", vec![found?]),
        ("contains", 1) if dialect == Dialect::Fastlin => match truth? {
            0 => ("contains_false", values),
            _ => ("contains_true", values),
        },
        ("add" | "remove", 1) if dialect == Dialect::Fastlin && truth != Some(1) => return None,
        ("add", 1) if dialect == Dialect::Fastlin => ("insert", values),
        ("remove", 1) if dialect == Dialect::Fastlin => ("remove", values),
        ("contains", 1) => ("contains", vec![values[0], truth?]),
        ("add", 1) => ("insert", vec![values[0], truth?]),
        ("remove", 1) => ("remove", vec![values[0], truth?]),
        ("cas", 2) if truth == Some(1) => ("read_modify_write", values),
        _ => return None,
    })
}

/// Returns whether an operation can be written.
pub(crate) fn can_write(history: &History, op: OpId, dialect: Dialect) -> bool {
    words(history, op, dialect).is_some()
}

/// Returns the name of the object whose methods a history calls.
fn object(history: &History) -> &'static str {
    let method = |op| match history.action(op) {
        Action::Call(call) => &*history.call(call).method,
        _ => "",
    };
    let named = history.ops().find_map(|op| match method(op) {
        "push" | "pop" => Some("stack"),
        "enqueue" | "dequeue" => Some("queue"),
        "insert" | "poll" => Some("priorityqueue"),
        "add" | "contains" | "remove" => Some("set"),
        "cas" => Some("rmw"),
        _ => None,
    });
    named.unwrap_or("stack")
}

/// Writes a history, one operation per line in the order of their starts.
pub(crate) fn write(
    history: &History,
    dialect: Dialect,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let processes = Numbers::of_sessions(history);
    let mut operations: Vec<(Interval, OpId)> =
        history.ops().filter_map(|op| Some((history.time(op)?, op))).collect();
    operations.sort_by_key(|(time, op)| (time.start, *op));
    writeln!(out, "# {}", object(history))?;
    for (time, op) in operations {
        let Some((method, values)) = words(history, op, dialect) else { continue };
        let end = time.end.unwrap_or(time.start);
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        let (values, start) = (values.join(" "), time.start);
        match dialect {
            Dialect::Fastlin => writeln!(out, "{method} {values} {start} {end}")?,
            Dialect::Fptlin => {
                let process = processes.get(history.session_of(op).index());
                let method = method.to_ascii_uppercase();
                writeln!(out, "{process} {start} {end} {method} {values}")?;
            }
        }
    }
    Ok(())
}
