//! dbcop's binary histories of 2019.
//!
//! Numbers are little endian. A history has five `u64` (its id, and the requested numbers of nodes,
//! variables, transactions and events), three texts (information, start and end; each a `u64`
//! length and its bytes), and its sessions: a `u64` count, and for each a `u64` count of
//! transactions. A transaction is a `u64` count of events, the events, and a byte that is nonzero
//! if it was committed. An event is a byte that is nonzero for a write, `u64` variable, `u64`
//! value, and a byte that is nonzero if it succeeded.
//!
//! Value 0 is the initial one. The name of a session is its index, counted from 0.

use std::io;

use consistory_history::{Action, Details, History, HistoryBuilder, OpId, Status, Value};

use crate::limits::Limits;
use crate::numbers::Numbers;

/// Reads a history, or returns the offset of the first error and a message.
pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<HistoryBuilder, (usize, String)> {
    let mut reader = Bytes { bytes, at: 0 };
    reader.header()?;
    let mut builder = HistoryBuilder::new();
    let sessions = reader.count(8, "sessions")?;
    for index in 0..sessions {
        let session = builder.session(&index.to_string());
        for _ in 0..reader.count(9, "transactions")? {
            let mut events = Vec::new();
            for _ in 0..reader.count(18, "events")? {
                if !limits.has_time() {
                    return Ok(builder);
                }
                let is_write = reader.truth()?;
                let variable = reader.number()?;
                let at = reader.at;
                let value = i64::try_from(reader.number()?)
                    .map_err(|_| (at, "a value is beyond the 64-bit integers".to_owned()))?;
                let has_succeeded = reader.truth()?;
                let key = builder.key(&variable.to_string());
                let value = builder.int(value);
                let action = match is_write {
                    true => Action::Write { key, value },
                    false => Action::Read { key, value },
                };
                events.push((action, has_succeeded));
            }
            let status = if reader.truth()? { Status::Ok } else { Status::Fail };
            let transaction = (events.len() > 1).then(|| {
                let open = builder.begin_transaction();
                builder.set_transaction_status(open, status);
                open
            });
            for (action, has_succeeded) in events {
                let status = match (has_succeeded, transaction) {
                    (false, _) => Status::Fail,
                    (true, Some(_)) => Status::Ok,
                    (true, None) => status,
                };
                builder.push_with(session, action, Details { status, time: None, transaction });
            }
        }
    }
    match bytes.len() - reader.at {
        0 => Ok(builder),
        rest => Err((reader.at, format!("{rest} bytes follow the history"))),
    }
}

/// Checks whether bytes begin like such a history.
pub(crate) fn looks_like(beginning: &[u8]) -> bool {
    const MAX_COUNT: u64 = 1 << 40;
    let mut reader = Bytes { bytes: beginning, at: 0 };
    let numbers = (0..5).map_while(|_| reader.number().ok()).take_while(|&n| n < MAX_COUNT).count();
    let texts = (0..3).map_while(|_| reader.text().ok()).count();
    numbers == 5 && texts == 3
}

/// Bytes that are read from the front.
struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

type Fallible<T> = Result<T, (usize, String)>;

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Fallible<&'a [u8]> {
        let end = self.at.checked_add(length);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or((self.at, "the history ends in the middle".to_owned()))?;
        self.at += length;
        Ok(taken)
    }

    fn number(&mut self) -> Fallible<u64> {
        let mut number = [0; 8];
        number.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(number))
    }

    fn truth(&mut self) -> Fallible<bool> {
        match self.take(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            other => Err((self.at - 1, format!("{} is not a truth value", other[0]))),
        }
    }

    /// Reads the number of following items, each of at least `least` bytes.
    fn count(&mut self, least: u64, what: &str) -> Fallible<u64> {
        let at = self.at;
        let count = self.number()?;
        let rest = (self.bytes.len() - self.at) as u64;
        if count.saturating_mul(least) > rest {
            return Err((at, format!("{count} {what} do not fit in the {rest} bytes that follow")));
        }
        Ok(count)
    }

    fn text(&mut self) -> Fallible<&'a str> {
        let at = self.at;
        let length = self.count(1, "bytes of text")?;
        let text = self.take(length as usize)?;
        std::str::from_utf8(text).map_err(|_| (at, "a text is not UTF-8".to_owned()))
    }

    fn header(&mut self) -> Fallible<()> {
        for _ in 0..5 {
            self.number()?;
        }
        for _ in 0..3 {
            self.text()?;
        }
        Ok(())
    }
}

/// Writes a history, including sessions without operations.
pub(crate) fn write(history: &History, out: &mut dyn io::Write) -> io::Result<()> {
    let keys = Numbers::of_keys(history);
    let transactions: Vec<_> = history.all_transactions().collect();
    let longest = transactions.iter().map(|t| t.ops.len()).max().unwrap_or(0);
    let mut bytes = Vec::new();
    let number = |bytes: &mut Vec<u8>, n: u64| bytes.extend(n.to_le_bytes());
    for n in [
        0,
        history.session_count() as u64,
        history.key_count() as u64,
        transactions.len() as u64,
        longest as u64,
    ] {
        number(&mut bytes, n);
    }
    for text in [history.name().unwrap_or_default(), "", ""] {
        number(&mut bytes, text.len() as u64);
        bytes.extend(text.as_bytes());
    }
    number(&mut bytes, history.session_count() as u64);
    let mut rest = transactions.iter().peekable();
    for session in history.sessions() {
        let mut of_session = Vec::new();
        while let Some(transaction) =
            rest.next_if(|t| history.session_of(OpId(t.ops.start)) == session)
        {
            of_session.push(transaction);
        }
        number(&mut bytes, of_session.len() as u64);
        for transaction in of_session {
            number(&mut bytes, transaction.ops.len() as u64);
            for op in transaction.ops.clone().map(OpId) {
                let (is_write, key, value) = match history.action(op) {
                    Action::Read { key, value } => (0, key, value),
                    Action::Write { key, value } => (1, key, value),
                    _ => unreachable!("it was checked that there are only reads and writes"),
                };
                let &Value::Int(value) = history.value(value) else {
                    unreachable!("it was checked that values are integers")
                };
                bytes.push(is_write);
                number(&mut bytes, keys.get(key.index()));
                number(&mut bytes, value as u64);
                bytes.push(1);
            }
            bytes.push(u8::from(transaction.status == Status::Ok));
        }
        out.write_all(&bytes)?;
        bytes.clear();
    }
    out.write_all(&bytes)
}
