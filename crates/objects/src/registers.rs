//! Histories of reads and writes as calls, of one register or of a store of several.
//!
//! `w(x,1)` becomes `write(1)`, `r(x,1)` becomes `read() => 1` and `rmw(x,0,1)` becomes
//! `cas(0,1) => true`; if there are several keys, the key is the first argument. Operations keep
//! their ids.

use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, KeyId, OpId, Status, Value, ValueId,
};

use crate::calls::CallsError;

/// Converts a history of reads and writes to calls, with their keys if there may be several.
pub fn calls_of_registers(history: &History, keyed: bool) -> Result<History, CallsError> {
    let mut builder = HistoryBuilder::new();
    if let Some(name) = history.name() {
        builder.set_name(name);
    }
    if let Some(&(key, _)) = history.finals().first() {
        return Err(CallsError::FinalValue { key: history.key_name(key).to_owned() });
    }
    let reference = |op: OpId| history.reference(op).to_string();
    if let Some(txn) = history.first_long_transaction() {
        let op = reference(OpId(history.transaction(txn).ops.start));
        return Err(CallsError::InTransaction { op });
    }
    for session in history.sessions() {
        let same = builder.session(history.session_name(session));
        for op in history.session_ops(session) {
            let mut call = |method: &str, key: KeyId, args: &[ValueId], returns: Option<Value>| {
                let key = keyed.then(|| Value::Str(history.key_name(key).into()));
                let args = args.iter().map(|&arg| history.value(arg).clone());
                let args = key.into_iter().chain(args).map(|arg| builder.value(arg)).collect();
                let returns = returns.map(|value| builder.value(value));
                builder.call(Call { method: method.into(), args, returns })
            };
            let call = match history.action(op) {
                Action::Read { key, value } => {
                    call("read", key, &[], Some(history.value(value).clone()))
                }
                Action::Write { key, value } => call("write", key, &[value], None),
                Action::Rmw { key, read, write } => {
                    call("cas", key, &[read, write], Some(Value::Bool(true)))
                }
                Action::Append { .. } | Action::Fence | Action::Call(_) => {
                    return Err(CallsError::NotACall { op: reference(op) });
                }
            };
            // An aborted transaction of one operation failed.
            let status: Status = history.status(op);
            let details = Details { status, time: history.time(op), ..Details::default() };
            builder.push_with(same, Action::Call(call), details);
        }
    }
    Ok(builder.finish().expect("as many operations as before"))
}
