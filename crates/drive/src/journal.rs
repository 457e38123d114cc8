//! Rows as JSON lines, in the format that `check` reads.
//!
//! Operations of registers and lists are written as operations; sets, queues and compare-and-set as
//! calls of an object. Session names identify the client: `c1` is the first one. An indeterminate
//! operation moves to a session of its own, such as `c1_7`, because it may take effect at any later
//! time, even after later operations of its client.

use std::fmt::Write;

use crate::recorder::Row;
use crate::request::{Action, Change, Key, Outcome, Reply, Request};

/// The rule by which operations are grouped into sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SessionRule {
    /// All operations of a client, over any number of connections, except indeterminate ones.
    #[default]
    Client,
    /// All operations over one connection; an indeterminate operation is the last of its session.
    Connection,
}

/// The form in which reads and writes are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// As operations of registers.
    #[default]
    Operations,
    /// As calls of the object `map`.
    Calls,
}

/// Converts rows to lines.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    rule: SessionRule,
    style: Style,
    transactions: u64,
    indeterminate: u64,
    lines: u64,
}

/// The outcome of an operation, as the journal records it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    Fail,
    Unknown,
}

impl Journal {
    /// Builds an empty journal.
    pub fn new(rule: SessionRule, style: Style) -> Self {
        Journal { rule, style, ..Journal::default() }
    }

    /// Returns the number of lines so far, which is the number of recorded operations.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Appends the lines of a row; none if it had no effect and read nothing.
    pub fn append(&mut self, row: &Row, text: &mut String) {
        let status = match row.outcome {
            Outcome::Ok(_) => Status::Ok,
            Outcome::Failed(_) => Status::Fail,
            Outcome::Unknown { .. } => Status::Unknown,
        };
        if status != Status::Ok && row.request.is_read() {
            return;
        }
        let replies: &[Reply] = match &row.outcome {
            Outcome::Ok(replies) | Outcome::Unknown { replies, .. } => replies,
            Outcome::Failed(_) => &[],
        };
        let session = self.session(row, status);
        let mut tail = format!(",\"start\":{}", row.start);
        match status {
            Status::Ok => {
                let _ = write!(tail, ",\"end\":{}", row.end);
            }
            Status::Fail => {
                let _ = write!(tail, ",\"end\":{},\"status\":\"fail\"", row.end);
            }
            Status::Unknown => tail += ",\"status\":\"unknown\"",
        }
        let mut line = |middle: String| {
            self.lines += 1;
            let _ = writeln!(text, "{{\"session\":\"{session}\",{middle}{tail}}}");
        };
        match &row.request {
            Request::Single(Action::Update(key, change)) => {
                if let (Status::Ok, [Reply::Value(read)]) = (status, replies) {
                    line(format!(
                        "\"op\":\"rmw\",\"key\":\"{key}\",\"read\":{},\"value\":{}",
                        shown(*read),
                        change.apply(*read)
                    ));
                } else if let Some(value) = written(*change, replies.first()) {
                    line(operation("write", *key, value));
                }
            }
            Request::Single(step) => match (self.style, step, replies.first()) {
                (Style::Calls, Action::Write(key, value), _) => {
                    line(format!("\"call\":\"set\",\"args\":[\"{key}\",{value}]"));
                }
                (Style::Calls, Action::Read(key), Some(Reply::Value(value))) => {
                    let value = shown(*value);
                    line(format!("\"call\":\"get\",\"args\":[\"{key}\"],\"returns\":{value}"));
                }
                (_, step, reply) => of_step(step, reply, status).into_iter().for_each(line),
            },
            Request::Transaction(steps) => {
                let id = self.transactions;
                self.transactions += 1;
                for (at, step) in steps.iter().enumerate() {
                    for middle in of_step(step, replies.get(at), status) {
                        line(format!("{middle},\"txn\":{id}"));
                    }
                }
            }
            Request::CompareAndSet { key, old, new } => {
                let returns = match (replies, old) {
                    ([Reply::Success(done)], _) => format!(",\"returns\":{done}"),
                    _ => String::new(),
                };
                line(match old {
                    Some(old) => {
                        format!("\"call\":\"replace\",\"args\":[\"{key}\",{old},{new}]{returns}")
                    }
                    None => format!("\"call\":\"tryInsert\",\"args\":[\"{key}\",{new}]{returns}"),
                });
            }
            Request::Add(element) => {
                line(format!("\"call\":\"ensure\",\"args\":[{element}]"));
            }
            Request::Members => {
                // A read of the set becomes one call per element, in `members`.
            }
            Request::Enqueue(element) => {
                line(format!("\"call\":\"enqueue\",\"args\":[{element}]"));
            }
            Request::Dequeue => {
                let returns = match replies {
                    [Reply::Value(value)] => format!(",\"returns\":{}", shown(*value)),
                    _ => String::new(),
                };
                line(format!("\"call\":\"dequeue\",\"args\":[]{returns}"));
            }
        }
    }

    /// Appends the calls for a read of the whole set: one call of `contains` for each element that
    /// was ever added, all with the read's interval, each in its own session.
    pub fn members(&mut self, row: &Row, added: &[i64], text: &mut String) {
        let Outcome::Ok(replies) = &row.outcome else { return };
        let [Reply::List(found)] = &replies[..] else { return };
        let found: rustc_hash::FxHashSet<i64> = found.iter().copied().collect();
        for element in added {
            self.lines += 1;
            let _ = writeln!(
                text,
                "{{\"session\":\"{}-{element}\",\"call\":\"contains\",\"args\":[{element}],\
                 \"returns\":{},\"start\":{},\"end\":{}}}",
                row.node,
                found.contains(element),
                row.start,
                row.end
            );
        }
    }

    fn session(&mut self, row: &Row, status: Status) -> String {
        let number = row.session + 1;
        match self.rule {
            SessionRule::Client if status == Status::Unknown => {
                self.indeterminate += 1;
                format!("c{number}_{}", self.indeterminate)
            }
            SessionRule::Connection if row.generation > 0 => {
                format!("c{number}-{}", row.generation + 1)
            }
            _ => format!("c{number}"),
        }
    }
}

/// Returns the fields of a step's operations; reads are recorded only if the whole request took
/// effect.
fn of_step(step: &Action, reply: Option<&Reply>, status: Status) -> Vec<String> {
    let read =
        |key: &Key, value: String| format!("\"op\":\"read\",\"key\":\"{key}\",\"value\":{value}");
    let mut operations = Vec::new();
    if status == Status::Ok {
        match (step, reply) {
            (Action::Read(key) | Action::Update(key, _), Some(Reply::Value(value))) => {
                operations.push(read(key, shown(*value)));
            }
            (Action::ReadList(key), Some(Reply::List(list))) => {
                operations.push(read(key, shown_list(list)));
            }
            _ => {}
        }
    }
    match step {
        Action::Write(key, value) => operations.push(operation("write", *key, *value)),
        Action::Append(key, value) => operations.push(operation("append", *key, *value)),
        Action::Update(key, change) => {
            operations.extend(written(*change, reply).map(|value| operation("write", *key, value)));
        }
        Action::Read(_) | Action::ReadList(_) => {}
    }
    operations
}

/// Returns the value that an update wrote or may have written.
///
/// A client sends the write after it has read. So if there is no reply and the value depends on the
/// read, the write was never sent.
fn written(change: Change, reply: Option<&Reply>) -> Option<i64> {
    match (change, reply) {
        (Change::Put(value), _) => Some(value),
        (change, Some(Reply::Value(read))) => Some(change.apply(*read)),
        (Change::Transfer { .. }, _) => None,
    }
}

fn operation(name: &str, key: Key, value: i64) -> String {
    format!("\"op\":\"{name}\",\"key\":\"{key}\",\"value\":{value}")
}

fn shown(value: Option<i64>) -> String {
    value.map_or("null".to_owned(), |value| value.to_string())
}

fn shown_list(list: &[i64]) -> String {
    let items: Vec<String> = list.iter().map(i64::to_string).collect();
    format!("[{}]", items.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::NodeId;

    fn lines(rule: SessionRule, rows: &[(Request, Outcome)]) -> String {
        let mut journal = Journal::new(rule, Style::Operations);
        let mut text = String::new();
        for (at, (request, outcome)) in rows.iter().enumerate() {
            let row = Row {
                session: 0,
                generation: at as u32,
                node: NodeId(0),
                server: NodeId(0),
                request: request.clone(),
                outcome: outcome.clone(),
                start: 10 * at as u64 + 1,
                end: 10 * at as u64 + 5,
            };
            journal.append(&row, &mut text);
        }
        text
    }

    #[test]
    fn an_indeterminate_write_moves_to_a_session_of_its_own() {
        let rows = [
            (Request::Single(Action::Write(Key(1), 7)), Outcome::Ok(vec![Reply::Done])),
            (Request::Single(Action::Write(Key(1), 8)), Outcome::unknown("timeout")),
            (Request::Single(Action::Read(Key(1))), Outcome::unknown("timeout")),
            (Request::Single(Action::Read(Key(1))), Outcome::Ok(vec![Reply::Value(None)])),
        ];
        assert_eq!(
            lines(SessionRule::Client, &rows),
            "{\"session\":\"c1\",\"op\":\"write\",\"key\":\"k1\",\"value\":7,\"start\":1,\"end\":5}\n\
             {\"session\":\"c1_1\",\"op\":\"write\",\"key\":\"k1\",\"value\":8,\"start\":11,\"status\":\"unknown\"}\n\
             {\"session\":\"c1\",\"op\":\"read\",\"key\":\"k1\",\"value\":null,\"start\":31,\"end\":35}\n"
        );
        let sessions: Vec<String> = lines(SessionRule::Connection, &rows)
            .lines()
            .map(|line| line.split('"').nth(3).unwrap().to_owned())
            .collect();
        assert_eq!(sessions, ["c1", "c1-2", "c1-4"]);
    }

    #[test]
    fn a_transaction_has_one_line_per_operation() {
        let steps = vec![
            Action::Update(Key(0), Change::Put(5)),
            Action::Append(Key(1), 6),
            Action::ReadList(Key(1)),
        ];
        let replies = vec![Reply::Value(Some(3)), Reply::Done, Reply::List(vec![2, 6])];
        let text = lines(
            SessionRule::Client,
            &[
                (Request::Transaction(steps.clone()), Outcome::Ok(replies)),
                (Request::Transaction(steps), Outcome::failed("deadlock")),
            ],
        );
        let parts: Vec<String> = text
            .lines()
            .map(|line| line.replace("\"session\":\"c1\",", "").replace('"', ""))
            .collect();
        assert_eq!(
            parts,
            [
                "{op:read,key:k0,value:3,txn:0,start:1,end:5}",
                "{op:write,key:k0,value:5,txn:0,start:1,end:5}",
                "{op:append,key:k1,value:6,txn:0,start:1,end:5}",
                "{op:read,key:k1,value:[2,6],txn:0,start:1,end:5}",
                "{op:write,key:k0,value:5,txn:1,start:11,end:15,status:fail}",
                "{op:append,key:k1,value:6,txn:1,start:11,end:15,status:fail}",
            ]
        );
    }
}
