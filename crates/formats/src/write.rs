//! Writes histories in every format.
//!
//! Features that a format cannot express are detected before the first byte is written, so an
//! output never contains half a history. If a format allows only numbers as names, names that are
//! numbers stay, and other names get the smallest free numbers, in the order in which they appear.
//! dbcop's formats and AWDIT's do not name sessions: they are named 0, 1 and so on when read back.
//! The name of a history is written only in the text notation and in JSON lines.

use std::io::{self, BufWriter, Write};

use consistory_history::{Action, History, KeyId, KeyKind, OpId, Status, Value, ValueId};

use crate::events::{EventKind, take_apart};
use crate::format::Format;
use crate::intervals::{self, Dialect};
use crate::jepsen::{self, Notation};
use crate::{awdit, axe, dbcop, dbcop_binary, dbcop_json, hist, jsonl, limo, plume};

/// Reason why a history was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The format cannot express a feature of the history.
    #[error("{format} can't express {what}{}: {hint}", in_parentheses(reference))]
    NotExpressible {
        /// The format.
        format: Format,
        /// Feature that the format cannot express.
        what: String,
        /// Reference to the operation or key with this feature: `session:index`, `init:key`,
        /// `final:key` or the history's name; empty if the format is never written.
        reference: String,
        /// Remedy.
        hint: String,
    },
}

/// Returns a reference in parentheses for an error message, or an empty text if there is none.
fn in_parentheses(reference: &str) -> String {
    if reference.is_empty() { String::new() } else { format!(" ({reference})") }
}

/// Writes one history.
pub fn write_history(
    history: &History,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    check(history, format)?;
    write_body(history, format, history.name(), history.name().is_some(), out)
}

/// Writes several histories to one output.
///
/// In JSON lines every history needs a unique name: a history without a name gets its index,
/// counted from 0, and one with the name of the previous history gets its index appended to the
/// name, as in `name#1`.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    format: Format,
    count: usize,
    last_name: Option<String>,
}

impl<W: Write> Writer<W> {
    /// Builds a writer to an output.
    pub fn new(format: Format, out: W) -> Self {
        Writer { out, format, count: 0, last_name: None }
    }

    /// Writes the next history.
    pub fn write(&mut self, history: &History) -> Result<(), WriteError> {
        let has_one_only = !matches!(self.format, Format::Hist | Format::Jsonl | Format::Axe);
        if self.count > 0 && has_one_only {
            return Err(WriteError::NotExpressible {
                format: self.format,
                what: "a second history".into(),
                reference: history.name().map_or_else(|| self.count.to_string(), Into::into),
                hint: "write each history to a file of its own".into(),
            });
        }
        check(history, self.format)?;
        if self.format == Format::Jsonl {
            let name = match history.name() {
                Some(name) if self.last_name.as_deref() == Some(name) => {
                    format!("{name}#{}", self.count)
                }
                Some(name) => name.into(),
                None => self.count.to_string(),
            };
            self.last_name = Some(name);
        }
        let name = self.last_name.as_deref().or(history.name());
        let needs_separator = self.count > 0 || name.is_some();
        write_body(history, self.format, name, needs_separator, &mut self.out)?;
        self.count += 1;
        Ok(())
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }
}

fn write_body(
    history: &History,
    format: Format,
    name: Option<&str>,
    needs_separator: bool,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    match format {
        Format::Hist => {
            if needs_separator {
                hist::write_separator(name, &mut out)?;
            }
            hist::write(history, &mut out)?;
        }
        Format::Jsonl => jsonl::write(history, name, &mut out)?,
        Format::Axe => axe::write(history, &mut out)?,
        Format::DbcopText => dbcop::write(history, &mut out)?,
        Format::DbcopJson => dbcop_json::write(history, &mut out)?,
        Format::Plume => plume::write(history, &mut out)?,
        Format::Awdit => awdit::write(history, &mut out)?,
        Format::DbcopBinary => dbcop_binary::write(history, &mut out)?,
        Format::Edn => jepsen::write(history, Notation::Edn, &mut out)?,
        Format::JepsenJson => jepsen::write(history, Notation::Json, &mut out)?,
        Format::Limo => limo::write(history, &take_apart(history).unwrap_or_default(), &mut out)?,
        Format::Fastlin => intervals::write(history, Dialect::Fastlin, &mut out)?,
        Format::Fptlin => intervals::write(history, Dialect::Fptlin, &mut out)?,
        Format::Jepsen | Format::Cobra | Format::Viper | Format::TimeKiller | Format::Gem5 => {
            unreachable!("it was checked that the format can be written")
        }
    }
    Ok(out.flush()?)
}

/// Checks whether a key has the default initial value.
pub(crate) fn starts_by_default(history: &History, key: KeyId) -> bool {
    match (history.value(history.initial_value(key)), history.key_kind(key)) {
        (Value::Int(0), KeyKind::Register) => true,
        (Value::List(items), KeyKind::List | KeyKind::Mixed) => items.is_empty(),
        _ => false,
    }
}

/// Features that a format can express.
struct Abilities {
    /// Read-modify-writes and fences.
    synchronisation: bool,
    /// Objects' calls, and values that are not integers.
    objects: bool,
    /// Lists with appends.
    lists: bool,
    times: bool,
    transactions: bool,
    failed: bool,
    unknown: bool,
    /// Initial values other than 0.
    initial: bool,
    finals: bool,
    negative: bool,
    /// Operations whose status differs from that of their transaction.
    status_inside: bool,
}

const ALL: Abilities = Abilities {
    synchronisation: true,
    objects: true,
    lists: true,
    times: true,
    transactions: true,
    failed: true,
    unknown: true,
    initial: true,
    finals: true,
    negative: true,
    status_inside: true,
};

const TRANSACTIONS_ONLY: Abilities = Abilities {
    synchronisation: false,
    objects: false,
    lists: false,
    times: false,
    unknown: false,
    initial: false,
    finals: false,
    status_inside: false,
    ..ALL
};

fn abilities(format: Format) -> Abilities {
    match format {
        Format::Hist => ALL,
        Format::Edn | Format::JepsenJson => {
            Abilities { finals: false, synchronisation: false, status_inside: false, ..ALL }
        }
        Format::Limo
        | Format::Fastlin
        | Format::Fptlin
        | Format::Jepsen
        | Format::Cobra
        | Format::Viper
        | Format::TimeKiller
        | Format::Gem5 => Abilities { transactions: false, initial: false, finals: false, ..ALL },
        Format::Jsonl => Abilities { status_inside: false, ..ALL },
        Format::Axe => Abilities {
            objects: false,
            lists: false,
            transactions: false,
            failed: false,
            unknown: false,
            initial: false,
            status_inside: false,
            ..ALL
        },
        Format::DbcopText | Format::DbcopJson | Format::DbcopBinary => {
            Abilities { negative: false, ..TRANSACTIONS_ONLY }
        }
        Format::Plume => TRANSACTIONS_ONLY,
        Format::Awdit => Abilities { failed: false, ..TRANSACTIONS_ONLY },
    }
}

const USE_OURS: &str = "write it as hist or jsonl";

/// Finds the first call that a format of calls can't express.
fn check_calls(history: &History, format: Format) -> Result<(), WriteError> {
    let refuse = |what: &str, op: Option<OpId>, hint: &str| WriteError::NotExpressible {
        format,
        what: what.into(),
        reference: op.map_or_else(String::new, |op| history.reference(op).to_string()),
        hint: hint.into(),
    };
    let can_write: &dyn Fn(OpId) -> bool = match format {
        Format::Limo => &|op| limo::can_write(history, op),
        Format::Fastlin => &|op| intervals::can_write(history, op, Dialect::Fastlin),
        Format::Fptlin => &|op| intervals::can_write(history, op, Dialect::Fptlin),
        Format::Edn | Format::JepsenJson => {
            return jepsen::can_write(history).map_err(|jepsen::Obstacle { what, reference }| {
                let hint = USE_OURS.into();
                WriteError::NotExpressible { format, what, reference, hint }
            });
        }
        Format::Jepsen => {
            return Err(refuse("histories, since it is only read", None, "write it as edn"));
        }
        Format::Cobra | Format::Viper | Format::TimeKiller => {
            return Err(refuse("histories, since it is only read", None, "write it as dbcop-json"));
        }
        Format::Gem5 => {
            return Err(refuse("histories, since it is only read", None, "write it as axe"));
        }
        _ => return Ok(()),
    };
    let events = match take_apart(history) {
        Ok(events) => events,
        Err((op, what)) => {
            return Err(refuse(
                what,
                Some(op),
                "it has calls with times only, one after the other",
            ));
        }
    };
    let abandoned = events.iter().find(|event| event.kind == EventKind::Abandoned);
    if let Some(event) = abandoned.filter(|_| format == Format::Limo) {
        return Err(refuse("a call that never returned before another", Some(event.op), USE_OURS));
    }
    match history.ops().find(|&op| !can_write(op)) {
        Some(op) => Err(refuse(&format!("`{}`", history.show(op)), Some(op), USE_OURS)),
        None => Ok(()),
    }
}

/// Finds the first feature of a history that a format can't express.
fn check(history: &History, format: Format) -> Result<(), WriteError> {
    check_calls(history, format)?;
    let able = abilities(format);
    let refuse = |what: String, reference: String, hint: &str| {
        Err(WriteError::NotExpressible { format, what, reference, hint: hint.into() })
    };
    let value_fault = |id: ValueId| match history.value(id) {
        Value::Int(i) if *i >= 0 || able.negative => None,
        Value::Int(i) => Some(format!("the negative value {i}")),
        _ if able.objects => None,
        value => Some(format!("the value {value}, which is not an integer")),
    };
    for key in history.keys() {
        let value = history.initial_value(key);
        if !able.initial && !starts_by_default(history, key) {
            let what = format!("the initial value {}", history.value(value));
            let reference = history.reference(history.initial_write(key)).to_string();
            return refuse(what, reference, "there every key starts with 0");
        }
    }
    for &(key, value) in history.finals() {
        let reference = || format!("final:{}", history.key_name(key));
        if !able.finals {
            return refuse("final values".into(), reference(), USE_OURS);
        }
        if let Some(what) = value_fault(value) {
            return refuse(what, reference(), USE_OURS);
        }
    }
    for run in history.all_transactions() {
        let is_long = run.ops.len() > 1;
        for op in run.ops.clone().map(OpId) {
            let reference = || history.reference(op).to_string();
            let values = match history.action(op) {
                Action::Read { value, .. } | Action::Write { value, .. } => [Some(value), None],
                Action::Rmw { .. } if !able.synchronisation => {
                    return refuse(
                        "a read-modify-write".into(),
                        reference(),
                        "make it a transaction of a read and a write",
                    );
                }
                Action::Rmw { read, write, .. } => [Some(read), Some(write)],
                Action::Append { .. } if !able.lists => {
                    return refuse("an append to a list".into(), reference(), USE_OURS);
                }
                Action::Append { value, .. } => [Some(value), None],
                Action::Fence if !able.synchronisation => {
                    return refuse("a fence".into(), reference(), "leave the fences out");
                }
                Action::Call(_) if !able.objects => {
                    return refuse("an object's call".into(), reference(), USE_OURS);
                }
                Action::Fence | Action::Call(_) => [None, None],
            };
            if let Some(what) = values.into_iter().flatten().find_map(value_fault) {
                return refuse(what, reference(), USE_OURS);
            }
            if !able.times && history.time(op).is_some() {
                return refuse(
                    "times".into(),
                    reference(),
                    "leave them out (`convert --without-times`)",
                );
            }
            if !able.transactions && is_long {
                let what = format!("a transaction of {} operations", run.ops.len());
                return refuse(what, reference(), USE_OURS);
            }
            let status = history.status(op);
            if status == Status::Fail && !able.failed {
                return refuse(
                    "what failed or was aborted".into(),
                    reference(),
                    "leave it out, it counts for nothing",
                );
            }
            if status == Status::Unknown && !able.unknown {
                return refuse("an unknown status".into(), reference(), USE_OURS);
            }
            let is_inside = history.transaction_of(op).is_some() && status != run.status;
            if is_inside && !able.status_inside {
                return refuse(
                    "an operation whose status is not its transaction's".into(),
                    reference(),
                    "write it as hist",
                );
            }
        }
    }
    Ok(())
}
