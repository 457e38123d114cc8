//! Builds histories from the columns of a table.
//!
//! `consistory/tables.py` converts the columns of a pandas or Arrow table to three forms: integers
//! as the bytes of 64-bit numbers, texts as codes into a dictionary, and lists of Python objects
//! for everything else. This module converts them to operations, with the meaning of the fields of
//! JSON lines.

use std::sync::Arc;

use consistory_history::{
    Action, Call, Details, HistoryBuilder, Interval, KeyId, OpenTransaction, SessionId, Status,
    Value, ValueId,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::error::simple;
use crate::history::History;
use crate::value::to_value;

/// A column of a table.
enum Column<'py> {
    /// Numbers of 8 bytes each, and for each whether it is present; without the second part, all
    /// are present.
    Ints(Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>),
    /// Codes of 4 bytes each, or -1 for a missing value, into a table of values.
    Codes(Bound<'py, PyBytes>, Vec<Value>),
    /// Arbitrary objects.
    Objects(Bound<'py, PyList>),
}

/// The content of a cell of a column.
enum Cell<'a> {
    Nothing,
    Int(i64),
    /// A value of the dictionary, with its code.
    Code(usize, &'a Value),
    Value(Value),
}

impl<'py> Column<'py> {
    fn new(column: &Bound<'py, PyAny>) -> PyResult<Self> {
        let parts = column.cast::<PyTuple>()?;
        let kind: String = parts.get_item(0)?.extract()?;
        match kind.as_str() {
            "ints" => {
                let valid = parts.get_item(2)?;
                let valid = match valid.is_none() {
                    true => None,
                    false => Some(valid.cast_into::<PyBytes>()?),
                };
                Ok(Column::Ints(parts.get_item(1)?.cast_into::<PyBytes>()?, valid))
            }
            "codes" => {
                let dictionary = parts.get_item(2)?;
                let values = dictionary.try_iter()?.map(|value| to_value(&value?));
                let values = values.collect::<PyResult<Vec<Value>>>()?;
                Ok(Column::Codes(parts.get_item(1)?.cast_into::<PyBytes>()?, values))
            }
            _ => Ok(Column::Objects(parts.get_item(1)?.cast_into::<PyList>()?)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Column::Ints(bytes, _) => bytes.as_bytes().len() / 8,
            Column::Codes(bytes, _) => bytes.as_bytes().len() / 4,
            Column::Objects(list) => list.len(),
        }
    }

    fn cell(&self, row: usize) -> PyResult<Cell<'_>> {
        Ok(match self {
            Column::Ints(_, Some(valid)) if valid.as_bytes()[row] == 0 => Cell::Nothing,
            Column::Ints(bytes, _) => {
                let number = bytes.as_bytes()[row * 8..][..8].try_into();
                Cell::Int(i64::from_le_bytes(number.expect("eight bytes")))
            }
            Column::Codes(bytes, values) => {
                let code = bytes.as_bytes()[row * 4..][..4].try_into();
                match usize::try_from(i32::from_le_bytes(code.expect("four bytes"))) {
                    Err(_) => Cell::Nothing,
                    Ok(code) => match values.get(code) {
                        Some(Value::Null) => Cell::Nothing,
                        Some(value) => Cell::Code(code, value),
                        None => return Err(PyValueError::new_err("a code beyond its dictionary")),
                    },
                }
            }
            Column::Objects(list) => {
                let object = list.get_item(row)?;
                if object.is_none() { Cell::Nothing } else { Cell::Value(to_value(&object)?) }
            }
        })
    }
}

/// Ids of dictionary entries in the history that is being built.
struct Ids<I> {
    /// Number of the history to which the id belongs, and the id.
    known: Vec<(u32, I)>,
}

impl<I: Copy> Ids<I> {
    fn new(column: Option<&Column<'_>>, none: I) -> Self {
        let size = match column {
            Some(Column::Codes(_, values)) => values.len(),
            _ => 0,
        };
        Ids { known: vec![(0, none); size] }
    }

    /// Returns the id of a code; creates it once per history.
    fn get(&mut self, history: u32, code: usize, make: impl FnOnce() -> I) -> I {
        let (stamp, id) = &mut self.known[code];
        if *stamp != history {
            (*stamp, *id) = (history, make());
        }
        *id
    }
}

/// The columns of a table, by their meaning.
struct Table<'py> {
    history: Option<Column<'py>>,
    session: Column<'py>,
    op: Option<Column<'py>>,
    key: Option<Column<'py>>,
    value: Option<Column<'py>>,
    read: Option<Column<'py>>,
    call: Option<Column<'py>>,
    args: Option<Column<'py>>,
    returns: Option<Column<'py>>,
    start: Option<Column<'py>>,
    end: Option<Column<'py>>,
    txn: Option<Column<'py>>,
    status: Option<Column<'py>>,
    initial: Vec<(String, Value)>,
    finals: Vec<(String, Value)>,
    /// Name of the table's source.
    source: Arc<str>,
}

/// Transaction that the next operation of a session may belong to.
type Current = Option<(Value, OpenTransaction, Status)>;

/// Builds the histories of a table, one for each run of rows with the same name.
pub(crate) fn from_columns(
    py: Python<'_>,
    rows: usize,
    columns: &Bound<'_, PyDict>,
) -> PyResult<Vec<History>> {
    let column = |name: &str| -> PyResult<Option<Column<'_>>> {
        let Some(found) = columns.get_item(name)?.filter(|found| !found.is_none()) else {
            return Ok(None);
        };
        let column = Column::new(&found)?;
        if column.len() != rows {
            let message = format!("the column {name} has {} rows, not {rows}", column.len());
            return Err(PyValueError::new_err(message));
        }
        Ok(Some(column))
    };
    let bindings = |name: &str| -> PyResult<Vec<(String, Value)>> {
        let Some(found) = columns.get_item(name)?.filter(|found| !found.is_none()) else {
            return Ok(Vec::new());
        };
        let found = found.cast_into::<PyDict>()?;
        found.iter().map(|(key, value)| Ok((key.str()?.to_string(), to_value(&value)?))).collect()
    };
    let Some(session) = column("session")? else {
        return Err(simple(
            py,
            "ReadError",
            "there is no column session",
            Some("columns are named as the fields of JSON lines: session, op, key, value, ..."),
        ));
    };
    let source = columns.get_item("source")?.filter(|found| !found.is_none());
    let source: String = source.map_or(Ok("table".to_owned()), |found| found.extract())?;
    let table = Table {
        session,
        history: column("history")?,
        op: column("op")?,
        key: column("key")?,
        value: column("value")?,
        read: column("read")?,
        call: column("call")?,
        args: column("args")?,
        returns: column("returns")?,
        start: column("start")?,
        end: column("end")?,
        txn: column("txn")?,
        status: column("status")?,
        initial: bindings("init")?,
        finals: bindings("final")?,
        source: source.into(),
    };
    table.build(py, rows)
}

impl Table<'_> {
    fn build(&self, py: Python<'_>, rows: usize) -> PyResult<Vec<History>> {
        let mut built: Vec<History> = Vec::new();
        let mut sessions = Ids::new(Some(&self.session), SessionId(0));
        let mut keys = Ids::new(self.key.as_ref(), KeyId(0));
        let mut values = Ids::new(self.value.as_ref(), ValueId(0));
        let mut reads = Ids::new(self.read.as_ref(), ValueId(0));
        let mut builder = HistoryBuilder::new();
        let mut open: Vec<Current> = Vec::new();
        let (mut name, mut number): (Option<Value>, u32) = (None, 0);
        for row in 0..rows {
            let wrong = |message: String, hint: Option<&str>| {
                simple(py, "ReadError", format!("row {row}: {message}"), hint)
            };
            let at = |error: PyErr| wrong(error.value(py).to_string(), None);
            let (is_new, next) = self.is_new_history(row, number, &name).map_err(at)?;
            if is_new {
                if number > 0 {
                    let done = std::mem::take(&mut builder);
                    built.push(self.finish(py, done, built.len())?);
                }
                number += 1;
                open.clear();
                if let Some(next) = &next {
                    builder.set_name(&text(next));
                }
                self.set_initial(&mut builder);
                name = next;
            }
            let session = match self.session.cell(row).map_err(at)? {
                Cell::Nothing => return Err(wrong("there is no session".into(), None)),
                Cell::Code(code, value) => {
                    sessions.get(number, code, || builder.session(&text(value)))
                }
                Cell::Int(id) => builder.session(&id.to_string()),
                Cell::Value(value) => builder.session(&text(&value)),
            };
            let status = match cell(&self.status, row).map_err(at)? {
                Cell::Nothing => Status::Ok,
                Cell::Code(_, Value::Str(word)) => status(word).ok_or_else(|| {
                    wrong(format!("unknown status {word:?}"), Some("it is ok, fail or unknown"))
                })?,
                Cell::Value(Value::Str(word)) => status(&word).ok_or_else(|| {
                    wrong(format!("unknown status {word:?}"), Some("it is ok, fail or unknown"))
                })?,
                _ => return Err(wrong("a status is a text".into(), None)),
            };
            let time = |column: &Option<Column<'_>>| match cell(column, row) {
                Ok(Cell::Nothing) => Ok(None),
                Ok(Cell::Int(time) | Cell::Value(Value::Int(time))) => Ok(Some(time)),
                Ok(Cell::Code(_, Value::Int(time))) => Ok(Some(*time)),
                Ok(_) => Err(wrong("a time is an integer".into(), None)),
                Err(error) => Err(at(error)),
            };
            let (start, end) = (time(&self.start)?, time(&self.end)?);
            let interval = match (start, end) {
                (None, None) => None,
                (Some(start), Some(end)) if end < start => {
                    let message = format!("it ends at {end}, before it starts at {start}");
                    return Err(wrong(message, None));
                }
                (Some(start), end) => Some(Interval { start, end }),
                (None, Some(_)) => return Err(wrong("it has an end and no start".into(), None)),
            };
            let op = cell(&self.op, row).map_err(at)?;
            let call = cell(&self.call, row).map_err(at)?;
            let action = match (&op, &call) {
                (Cell::Nothing, Cell::Nothing) => {
                    return Err(wrong(
                        "there is neither an op nor a call".into(),
                        Some("op is read, write, rmw, append or fence; call is a method's name"),
                    ));
                }
                (Cell::Nothing, method) => {
                    let method = match method {
                        Cell::Code(_, value) => text(value),
                        Cell::Value(value) => text(value),
                        _ => return Err(wrong("a call is a text".into(), None)),
                    };
                    let args = match cell(&self.args, row).map_err(at)? {
                        Cell::Nothing => Vec::new(),
                        Cell::Value(Value::List(args)) => args,
                        Cell::Code(_, Value::List(args)) => args.clone(),
                        _ => return Err(wrong("args is a list".into(), None)),
                    };
                    let args = args.into_iter().map(|arg| builder.value(arg)).collect();
                    let has_returned = status == Status::Ok
                        && !matches!(interval, Some(Interval { end: None, .. }));
                    let returns = match cell(&self.returns, row).map_err(at)? {
                        Cell::Nothing if self.returns.is_some() && has_returned => {
                            Some(builder.value(Value::Null))
                        }
                        Cell::Nothing => None,
                        Cell::Int(number) => Some(builder.int(number)),
                        Cell::Code(_, value) => Some(builder.value(value.clone())),
                        Cell::Value(value) => Some(builder.value(value)),
                    };
                    Action::Call(builder.call(Call { method: method.into(), args, returns }))
                }
                (op, Cell::Nothing) => {
                    let word = match op {
                        Cell::Code(_, Value::Str(word)) => word,
                        Cell::Value(Value::Str(word)) => word,
                        _ => return Err(wrong("an op is a text".into(), None)),
                    };
                    let kind = operation(word).ok_or_else(|| {
                        let hint = "it is read, write, rmw, append or fence; a method is a call";
                        wrong(format!("unknown operation {word:?}"), Some(hint))
                    })?;
                    if kind == Kind::Fence {
                        Action::Fence
                    } else {
                        let key = match cell(&self.key, row).map_err(at)? {
                            Cell::Nothing => return Err(wrong("there is no key".into(), None)),
                            Cell::Code(code, value) => {
                                keys.get(number, code, || builder.key(&text(value)))
                            }
                            Cell::Int(id) => builder.key(&id.to_string()),
                            Cell::Value(value) => builder.key(&text(&value)),
                        };
                        let found = cell(&self.value, row).map_err(at)?;
                        let value = intern(found, number, &mut builder, &mut values);
                        match kind {
                            Kind::Read => Action::Read { key, value },
                            Kind::Write => Action::Write { key, value },
                            Kind::Append => Action::Append { key, value },
                            Kind::Rmw => {
                                let found = cell(&self.read, row).map_err(at)?;
                                let read = intern(found, number, &mut builder, &mut reads);
                                Action::Rmw { key, read, write: value }
                            }
                            Kind::Fence => Action::Fence,
                        }
                    }
                }
                _ => {
                    let hint = "op is for registers, call for an object's methods";
                    return Err(wrong("a row has an op or a call, not both".into(), Some(hint)));
                }
            };
            let transaction = match cell(&self.txn, row).map_err(at)? {
                Cell::Nothing => None,
                Cell::Int(number) => Some(Value::Int(number)),
                Cell::Code(_, value) => Some(value.clone()),
                Cell::Value(value) => Some(value),
            };
            let mut details = Details { status, time: interval, transaction: None };
            if self.txn.is_some() {
                if open.len() <= session.index() {
                    open.resize_with(session.index() + 1, || None);
                }
                let current = &mut open[session.index()];
                match transaction {
                    None => *current = None,
                    Some(name) => {
                        let entered = enter(&mut builder, current, name, status);
                        details =
                            Details { status: Status::Ok, transaction: Some(entered), ..details };
                    }
                }
            }
            builder.push_with(session, action, details);
        }
        if number > 0 {
            built.push(self.finish(py, builder, built.len())?);
        }
        Ok(built)
    }

    /// Checks whether a row starts a history, and returns the name of that history.
    fn is_new_history(
        &self,
        row: usize,
        number: u32,
        name: &Option<Value>,
    ) -> PyResult<(bool, Option<Value>)> {
        let found = match cell(&self.history, row)? {
            Cell::Nothing => None,
            Cell::Int(number) => {
                if number_is(name, number) {
                    return Ok((false, None));
                }
                Some(Value::Int(number))
            }
            Cell::Code(_, value) => {
                if name.as_ref() == Some(value) {
                    return Ok((false, None));
                }
                Some(value.clone())
            }
            Cell::Value(value) => Some(value),
        };
        Ok((number == 0 || found != *name, found))
    }

    fn set_initial(&self, builder: &mut HistoryBuilder) {
        for (key, value) in &self.initial {
            let (key, value) = (builder.key(key), builder.value(value.clone()));
            builder.set_initial(key, value);
        }
    }

    fn finish(
        &self,
        py: Python<'_>,
        mut builder: HistoryBuilder,
        index: usize,
    ) -> PyResult<History> {
        for (key, value) in &self.finals {
            let (key, value) = (builder.key(key), builder.value(value.clone()));
            builder.set_final(key, value);
        }
        let built =
            builder.finish().map_err(|error| simple(py, "ReadError", error.to_string(), None))?;
        if built.sessions().any(|session| built.session_name(session) == "init") {
            let message = "a session cannot be called \"init\"";
            let hint = "`init:x` is the initial write of x; give the session another name";
            return Err(simple(py, "ReadError", message, Some(hint)));
        }
        let source = Arc::clone(&self.source);
        Ok(History { source, index: index as u64, ..History::new(built) })
    }
}

fn number_is(name: &Option<Value>, number: i64) -> bool {
    matches!(name, Some(Value::Int(known)) if *known == number)
}

/// Opens or continues the transaction of an operation: that of the previous operation of its
/// session, if the names are equal.
fn enter(
    builder: &mut HistoryBuilder,
    current: &mut Current,
    name: Value,
    status: Status,
) -> OpenTransaction {
    if let Some((known, open, worst)) = current
        && *known == name
    {
        let worse = match (*worst, status) {
            (Status::Fail, _) | (_, Status::Fail) => Status::Fail,
            (Status::Unknown, _) | (_, Status::Unknown) => Status::Unknown,
            _ => Status::Ok,
        };
        if worse != *worst {
            *worst = worse;
            builder.set_transaction_status(*open, worse);
        }
        return *open;
    }
    let open = builder.begin_transaction();
    builder.set_transaction_status(open, status);
    *current = Some((name, open, status));
    open
}

fn cell<'a>(column: &'a Option<Column<'_>>, row: usize) -> PyResult<Cell<'a>> {
    column.as_ref().map_or(Ok(Cell::Nothing), |column| column.cell(row))
}

/// Returns the id of a cell's value; a missing value is `null`, the key's initial value.
fn intern(
    found: Cell<'_>,
    history: u32,
    builder: &mut HistoryBuilder,
    ids: &mut Ids<ValueId>,
) -> ValueId {
    match found {
        Cell::Nothing => builder.value(Value::Null),
        Cell::Int(number) => builder.int(number),
        Cell::Code(code, value) => ids.get(history, code, || builder.value(value.clone())),
        Cell::Value(value) => builder.value(value),
    }
}

/// Returns the text of a name; numbers are also names.
fn text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        other => other.to_string(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Rmw,
    Append,
    Fence,
}

fn operation(word: &str) -> Option<Kind> {
    Some(match word {
        "read" => Kind::Read,
        "write" => Kind::Write,
        "rmw" => Kind::Rmw,
        "append" => Kind::Append,
        "fence" => Kind::Fence,
        _ => return None,
    })
}

fn status(word: &str) -> Option<Status> {
    Some(match word {
        "ok" => Status::Ok,
        "fail" => Status::Fail,
        "unknown" => Status::Unknown,
        _ => return None,
    })
}
