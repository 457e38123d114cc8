//! Writes JSON lines.

use std::io;

use consistory_history::{Action, History, KeyId, OpId, Status, Value, ValueId};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

/// Writes a history, with its name on every line if it has one.
pub(crate) fn write(
    history: &History,
    name: Option<&str>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let initial: Vec<_> = history
        .keys()
        .map(|key| (key, history.initial_value(key)))
        .filter(|&(key, _)| !crate::write::starts_by_default(history, key))
        .collect();
    write_bindings(history, name, "init", &initial, out)?;
    for op in history.ops() {
        serde_json::to_writer(&mut *out, &Operation { history, op, name })?;
        out.write_all(b"\n")?;
    }
    write_bindings(history, name, "final", history.finals(), out)
}

fn write_bindings(
    history: &History,
    name: Option<&str>,
    field: &'static str,
    bindings: &[(KeyId, ValueId)],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if bindings.is_empty() {
        return Ok(());
    }
    serde_json::to_writer(&mut *out, &Bindings { history, name, field, bindings })?;
    out.write_all(b"\n")
}

struct Operation<'a> {
    history: &'a History,
    op: OpId,
    name: Option<&'a str>,
}

impl Serialize for Operation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Operation { history, op, name } = *self;
        let value = |id| Json(history.value(id));
        let mut line = serializer.serialize_map(None)?;
        if let Some(name) = name {
            line.serialize_entry("history", name)?;
        }
        line.serialize_entry("session", history.session_name(history.session_of(op)))?;
        match history.action(op) {
            Action::Read { key, value: id } => {
                line.serialize_entry("op", "read")?;
                line.serialize_entry("key", history.key_name(key))?;
                line.serialize_entry("value", &value(id))?;
            }
            Action::Write { key, value: id } => {
                line.serialize_entry("op", "write")?;
                line.serialize_entry("key", history.key_name(key))?;
                line.serialize_entry("value", &value(id))?;
            }
            Action::Rmw { key, read, write } => {
                line.serialize_entry("op", "rmw")?;
                line.serialize_entry("key", history.key_name(key))?;
                line.serialize_entry("read", &value(read))?;
                line.serialize_entry("value", &value(write))?;
            }
            Action::Append { key, value: id } => {
                line.serialize_entry("op", "append")?;
                line.serialize_entry("key", history.key_name(key))?;
                line.serialize_entry("value", &value(id))?;
            }
            Action::Fence => line.serialize_entry("op", "fence")?,
            Action::Call(id) => {
                let call = history.call(id);
                let args: Vec<_> = call.args.iter().map(|&arg| value(arg)).collect();
                line.serialize_entry("call", &*call.method)?;
                line.serialize_entry("args", &args)?;
                if let Some(returns) = call.returns {
                    line.serialize_entry("returns", &value(returns))?;
                }
            }
        }
        if let Some(time) = history.time(op) {
            line.serialize_entry("start", &time.start)?;
            if let Some(end) = time.end {
                line.serialize_entry("end", &end)?;
            }
        }
        if let Some(transaction) = history.transaction_of(op) {
            line.serialize_entry("txn", &transaction.0)?;
        }
        match history.status(op) {
            Status::Ok => {}
            Status::Fail => line.serialize_entry("status", "fail")?,
            Status::Unknown => line.serialize_entry("status", "unknown")?,
        }
        line.end()
    }
}

struct Bindings<'a> {
    history: &'a History,
    name: Option<&'a str>,
    field: &'static str,
    bindings: &'a [(KeyId, ValueId)],
}

impl Serialize for Bindings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Values<'a>(&'a History, &'a [(KeyId, ValueId)]);
        impl Serialize for Values<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let Values(history, bindings) = self;
                serializer.collect_map(
                    bindings.iter().map(|&(k, v)| (history.key_name(k), Json(history.value(v)))),
                )
            }
        }
        let mut line = serializer.serialize_map(None)?;
        if let Some(name) = self.name {
            line.serialize_entry("history", name)?;
        }
        line.serialize_entry(self.field, &Values(self.history, self.bindings))?;
        line.end()
    }
}

/// A value as JSON.
struct Json<'a>(&'a Value);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(b) => serializer.serialize_bool(*b),
            Value::Int(i) => serializer.serialize_i64(*i),
            Value::Str(s) => serializer.serialize_str(s),
            Value::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Json(item))?;
                }
                list.end()
            }
        }
    }
}
