//! Histories to which a definition applies.

use consistory_history::{Action, History, KeyKind, OpId, Status};

use crate::definition::Definition;

/// The reason why a definition does not apply to a history.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DoesNotApply {
    /// The history contains calls of an object's methods.
    #[error("the history holds calls of an object's methods, the model is about registers")]
    Calls,
    /// The model is about real time, and an operation has no time, or has no end although it is
    /// known to have taken effect.
    #[error("the model is about real time, and it is not recorded when {op} started and returned")]
    MissingTime {
        /// The reference of the operation.
        op: String,
    },
    /// The model is about real time, and operations of one session overlap in time.
    #[error("{op} starts before an earlier operation of its session returned")]
    Overlapping {
        /// The reference of the later operation.
        op: String,
    },
    /// The history contains appends to lists.
    #[error("{first} appends to a list, the model is about registers")]
    Lists {
        /// The reference of the first append.
        first: String,
    },
    /// A key is both written and appended to.
    #[error("the key {key} is both written and appended to")]
    MixedKey {
        /// The key.
        key: String,
    },
    /// A value is appended twice to a list, so that a read of the list does not identify its
    /// writer.
    #[error("the value {value} is appended twice to the list {key}")]
    RepeatedAppend {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// The history gives the final value of a key, and the model is about transactions.
    #[error("the history gives the final value of {key}, which isolation levels do not use")]
    FinalValueOfTransactions {
        /// The key.
        key: String,
    },
    /// A transaction that may have taken effect contains more than one operation.
    #[error(
        "the history holds a transaction of {operations} operations (from {first}), the model is about single operations"
    )]
    LongTransaction {
        /// The reference of its first operation.
        first: String,
        /// Number of its operations.
        operations: usize,
    },
    /// The history gives the final value of a key, and the model has no store order.
    #[error("the history gives the final value of {key}, the model has no store order")]
    FinalValue {
        /// The key.
        key: String,
    },
    /// A final value may be that of a write of unknown status.
    #[error("the history gives the final value of {key}, which has writes of unknown status")]
    UncertainFinalValue {
        /// The key.
        key: String,
    },
}

/// The order between transactions that the clients observed: the meaning of `so` in a definition
/// about transactions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ClientOrder {
    /// No order: only the initial transaction comes before all others.
    None,
    /// The order of each session.
    #[default]
    Session,
    /// The order of each session, and each transaction before those that began after it ended.
    Realtime,
}

/// Checks that models of registers apply to a history: it contains no calls of objects, and no
/// transaction that may have taken effect has more than one operation.
pub fn applies(history: &History) -> Result<(), DoesNotApply> {
    // The operations decide, because a table of calls may remain without an operation that refers
    // to it.
    if history.has_calls() && history.ops().any(|op| matches!(history.action(op), Action::Call(_)))
    {
        return Err(DoesNotApply::Calls);
    }
    if let Some(op) = history.first_append() {
        return Err(DoesNotApply::Lists { first: history.reference(op).to_string() });
    }
    if let Some(id) = history.first_long_transaction() {
        let ops = &history.transaction(id).ops;
        return Err(DoesNotApply::LongTransaction {
            first: history.reference(OpId(ops.start)).to_string(),
            operations: ops.len(),
        });
    }
    Ok(())
}

/// Checks that all operations have times, and that the operations of each session do not overlap.
/// An operation of unknown status needs no end, and later operations need not wait for it.
fn is_timed(history: &History) -> Result<(), DoesNotApply> {
    let reference = |op: OpId| history.reference(op).to_string();
    for session in history.sessions() {
        let mut returned = i64::MIN;
        for op in history.session_ops(session) {
            let status = history.status(op);
            if status == Status::Fail {
                continue;
            }
            let Some(time) = history.time(op) else {
                return Err(DoesNotApply::MissingTime { op: reference(op) });
            };
            if time.start < returned || time.end.is_some_and(|end| end < time.start) {
                return Err(DoesNotApply::Overlapping { op: reference(op) });
            }
            match time.end {
                _ if status == Status::Unknown => {}
                Some(end) => returned = end,
                None => return Err(DoesNotApply::MissingTime { op: reference(op) }),
            }
        }
    }
    Ok(())
}

/// Checks that isolation levels apply to a history: it contains no calls of objects and no final
/// values, every key is a register or a list, and no value is appended to a list twice.
pub fn levels_apply(history: &History) -> Result<(), DoesNotApply> {
    if history.has_calls() && history.ops().any(|op| matches!(history.action(op), Action::Call(_)))
    {
        return Err(DoesNotApply::Calls);
    }
    if let Some(key) = history.keys().find(|&key| history.key_kind(key) == KeyKind::Mixed) {
        return Err(DoesNotApply::MixedKey { key: history.key_name(key).to_owned() });
    }
    if let Some(&(key, _)) = history.finals().first() {
        let key = history.key_name(key).to_owned();
        return Err(DoesNotApply::FinalValueOfTransactions { key });
    }
    let mut appended: Vec<_> = history
        .ops()
        .filter_map(|op| match history.action(op) {
            Action::Append { key, value } => Some((key, value)),
            _ => None,
        })
        .collect();
    appended.sort();
    match appended.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(DoesNotApply::RepeatedAppend {
            key: history.key_name(pair[0].0).to_owned(),
            value: history.value(pair[0].1).to_string(),
        }),
        None => Ok(()),
    }
}

impl Definition {
    /// Checks that the definition applies to a history. A definition about transactions requires
    /// [`levels_apply`]; any other definition requires [`applies`], and a store order if the
    /// history gives final values.
    pub fn applies(&self, history: &History) -> Result<(), DoesNotApply> {
        if self.is_transactional() {
            return levels_apply(history);
        }
        applies(history)?;
        if self.program().mentions_real_time() {
            is_timed(history)?;
        }
        for &(key, _) in history.finals() {
            let name = || history.key_name(key).to_owned();
            if !self.has_store_order() {
                return Err(DoesNotApply::FinalValue { key: name() });
            }
            let is_uncertain = |op: OpId| {
                !history.is_certain(op) && history.writes(op).is_some_and(|(k, _)| k == key)
            };
            if history.ops().any(is_uncertain) {
                return Err(DoesNotApply::UncertainFinalValue { key: name() });
            }
        }
        Ok(())
    }
}
