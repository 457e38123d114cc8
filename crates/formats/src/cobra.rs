//! Cobra's logs: a folder of files `T1.log`, `T2.log` and so on, one per session.
//!
//! A file is a sequence of entries, a letter and big-endian `i64` numbers:
//!
//! | entry | numbers | meaning |
//! | --- | --- | --- |
//! | `S` | transaction | a transaction starts |
//! | `R` | writing transaction, write, key, value | it reads |
//! | `W` | write, key, value | it writes |
//! | `C` | transaction | it is committed |
//!
//! Keys and values are hashes, but every write has a unique number. These numbers are the values of
//! the history, so that a read is matched with its write whatever the hashes are; the numbers
//! `0xbebeebee` and `0xdeadbeef` stand for the initial value. A transaction that was never
//! committed is indeterminate.

use consistory_history::{Action, Details, HistoryBuilder, SessionId, Status, Value};

use crate::limits::Limits;

/// Numbers of writes that stand for the initial value.
const INITIAL: [i64; 2] = [0xbebe_ebee, 0xdead_beef];

/// Adds the log of a session to a history, or returns the offset of the first error and a message.
pub(crate) fn read(
    bytes: &[u8],
    session: SessionId,
    builder: &mut HistoryBuilder,
    limits: &Limits,
) -> Result<(), (usize, String)> {
    let mut at = 0;
    let mut open: Option<(i64, Vec<Action>)> = None;
    while let Some(&letter) = bytes.get(at) {
        if !limits.has_time() {
            return Ok(());
        }
        let start = at;
        at += 1;
        let mut number = || -> Result<i64, (usize, String)> {
            let taken = bytes.get(at..at + 8);
            let taken =
                taken.ok_or((start, "the log ends in the middle of an entry".to_owned()))?;
            at += 8;
            let mut number = [0; 8];
            number.copy_from_slice(taken);
            Ok(i64::from_be_bytes(number))
        };
        let outside = || (start, "an operation outside of a transaction".to_owned());
        match letter {
            b'S' => {
                let transaction = number()?;
                if let Some((_, actions)) = open.replace((transaction, Vec::new())) {
                    close(builder, session, actions, Status::Unknown);
                }
            }
            b'R' | b'W' => {
                if letter == b'R' {
                    number()?;
                }
                let (write, key, _) = (number()?, number()?, number()?);
                let (_, actions) = open.as_mut().ok_or_else(outside)?;
                let key = builder.key(&(key as u64).to_string());
                let action = match letter {
                    b'R' if INITIAL.contains(&write) => {
                        Action::Read { key, value: builder.value(Value::Null) }
                    }
                    b'R' => Action::Read { key, value: builder.int(write) },
                    _ => Action::Write { key, value: builder.int(write) },
                };
                actions.push(action);
            }
            b'C' => {
                let transaction = number()?;
                match open.take() {
                    Some((started, actions)) if started == transaction => {
                        close(builder, session, actions, Status::Ok);
                    }
                    Some((started, _)) => {
                        let message =
                            format!("transaction {transaction} is committed while {started} runs");
                        return Err((start, message));
                    }
                    None => return Err(outside()),
                }
            }
            other => {
                let message = format!("an entry starts with S, R, W or C, not with byte {other}");
                return Err((start, message));
            }
        }
    }
    if let Some((_, actions)) = open {
        close(builder, session, actions, Status::Unknown);
    }
    Ok(())
}

/// Checks whether bytes begin like such a log.
pub(crate) fn looks_like(beginning: &[u8]) -> bool {
    const ENTRY: usize = 9;
    beginning.first() == Some(&b'S')
        && beginning.get(ENTRY).is_some_and(|next| matches!(next, b'R' | b'W' | b'C' | b'S'))
}

fn close(builder: &mut HistoryBuilder, session: SessionId, actions: Vec<Action>, status: Status) {
    let mut details = Details { status, ..Details::default() };
    if actions.len() > 1 {
        let open = builder.begin_transaction();
        builder.set_transaction_status(open, status);
        details = Details { transaction: Some(open), ..Details::default() };
    }
    for action in actions {
        builder.push_with(session, action, details);
    }
}
