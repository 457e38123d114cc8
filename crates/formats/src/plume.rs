//! The text that isolation checkers exchange: one operation per line.
//!
//! ```text
//! w(1,5,0,0)     # key 1, value 5, session 0, transaction 0
//! r(1,5,1,1)
//! w(1,6,1,-1)    # an aborted write
//! ```
//!
//! The value 0 is the initial one. The order of a session is the order of its lines, and the lines
//! of one transaction are consecutive; an aborted operation between them is placed before the
//! transaction.

use std::io;

use consistory_history::{Action, Details, History, HistoryBuilder, SessionId, Status};
use rustc_hash::FxHashSet;

use crate::numbers::Numbers;
use crate::parse::{Cursor, Fault, Group, Line, Parse, Sink};

/// The transaction number of an aborted operation.
const ABORTED: i64 = -1;

/// The parser of this format.
#[derive(Default)]
pub(crate) struct Plume {
    builder: HistoryBuilder,
    /// Current transaction of each session.
    current: Vec<Current>,
    closed: FxHashSet<(SessionId, i64)>,
    last_line: u64,
}

#[derive(Default)]
struct Current {
    transaction: Option<i64>,
    group: Group,
    /// Aborted operations after the group, which may continue.
    aborted: Vec<Action>,
}

impl Current {
    fn flush_aborted(&mut self, builder: &mut HistoryBuilder, session: SessionId) {
        let details = Details { status: Status::Fail, ..Details::default() };
        for action in self.aborted.drain(..) {
            builder.push_with(session, action, details);
        }
    }

    fn close(&mut self, builder: &mut HistoryBuilder, session: SessionId) {
        self.group.close(builder, session, Status::Ok);
        self.flush_aborted(builder, session);
    }
}

impl Parse for Plume {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let Some(mut cursor) = line.content() else { return };
        if let Err(fault) = self.operation(&mut cursor) {
            sink.report(line, fault);
        }
    }

    fn end(&mut self, sink: &mut Sink) {
        for (session, current) in self.current.iter_mut().enumerate() {
            current.close(&mut self.builder, SessionId::new(session));
        }
        sink.finish(&mut self.builder, Line { number: self.last_line, text: "" });
    }
}

impl Plume {
    fn operation(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let start = cursor.at;
        let is_write = cursor.eat("w(");
        if !is_write && !cursor.eat("r(") {
            return Err(Fault::new(
                cursor.here(),
                format!("expected `r(` or `w(`, found {}", cursor.found()),
            )
            .hint(FORM));
        }
        let fields = |fault: Fault| fault.or_hint(FORM);
        let key = cursor.number("a key").map_err(fields)?;
        cursor.expect(",").map_err(fields)?;
        let value = cursor.integer().map_err(fields)?;
        cursor.expect(",").map_err(fields)?;
        let session = cursor.number("a session").map_err(fields)?;
        cursor.expect(",").map_err(fields)?;
        let transaction = cursor.integer().map_err(fields)?;
        cursor.expect(")").map_err(fields)?;
        let end = cursor.at;
        cursor.skip_spaces();
        if !cursor.is_done() {
            return Err(Fault::new(
                cursor.at..cursor.text.len(),
                "unexpected text after the operation",
            )
            .hint("a line is one operation"));
        }
        if transaction < ABORTED {
            return Err(Fault::new(start..end, format!("transaction {transaction} is negative"))
                .hint("-1 marks an aborted operation; other transactions have numbers from 0 on"));
        }
        let session = self.builder.session(session);
        let (key, value) = (self.builder.key(key), self.builder.int(value));
        let action =
            if is_write { Action::Write { key, value } } else { Action::Read { key, value } };
        if self.current.len() <= session.index() {
            self.current.resize_with(session.index() + 1, Current::default);
        }
        let current = &mut self.current[session.index()];
        if transaction == ABORTED {
            current.aborted.push(action);
            return Ok(());
        }
        if current.transaction == Some(transaction) {
            current.flush_aborted(&mut self.builder, session);
        } else {
            current.close(&mut self.builder, session);
            if let Some(last) = current.transaction.replace(transaction) {
                self.closed.insert((session, last));
            }
            if self.closed.contains(&(session, transaction)) {
                let message = format!("transaction {transaction} was over already");
                return Err(Fault::new(start..end, message)
                    .hint("the operations of a transaction follow each other in its session"));
            }
        }
        current.group.push(action);
        Ok(())
    }
}

const FORM: &str = "a line is `r(KEY,VALUE,SESSION,TRANSACTION)` or `w(...)`, all of them numbers";

/// Writes a history; transactions are numbered in order.
pub(crate) fn write(history: &History, out: &mut dyn io::Write) -> io::Result<()> {
    let sessions = Numbers::of_sessions(history);
    let keys = Numbers::of_keys(history);
    let mut transaction = -1;
    let mut last = None;
    for op in history.ops() {
        let bracket = history.transaction_of(op);
        let number = if history.status(op) == Status::Ok {
            if bracket.is_none() || bracket != last {
                transaction += 1;
                last = bracket;
            }
            transaction
        } else {
            ABORTED
        };
        let (name, key, value) = match history.action(op) {
            Action::Read { key, value } => ('r', key, value),
            Action::Write { key, value } => ('w', key, value),
            _ => unreachable!("it was checked that there are only reads and writes"),
        };
        let session = sessions.get(history.session_of(op).index());
        let key = keys.get(key.index());
        writeln!(out, "{name}({key},{},{session},{number})", history.value(value))?;
    }
    Ok(())
}
