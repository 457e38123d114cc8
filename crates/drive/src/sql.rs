//! Requests as SQL, the same for all SQL databases.
//!
//! A request certainly had no effect in two cases. Either a statement of its transaction failed
//! before COMMIT was sent: nothing is committed without COMMIT. Or COMMIT, or a statement outside a
//! transaction, was answered by an error that means that the database rolled back. If the
//! connection is lost after COMMIT was sent, or during a statement outside a transaction, the
//! outcome is indeterminate.

use std::time::Instant;

use crate::request::{Action, Key, Outcome, Reply, Request};
use crate::system::Client;

/// The result of a statement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<Vec<Option<String>>>,
    /// Number of changed rows.
    pub(crate) affected: u64,
}

/// The reason why a statement did not return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SqlError {
    /// The database answered with an error.
    Rejected {
        /// Whether the error proves that the statement (and for COMMIT, the transaction) had no
        /// effect.
        is_definite: bool,
        message: String,
    },
    /// There was no answer.
    Lost(String),
}

impl From<std::io::Error> for SqlError {
    fn from(error: std::io::Error) -> Self {
        SqlError::Lost(error.to_string())
    }
}

impl std::fmt::Display for SqlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SqlError::Rejected { message, .. } | SqlError::Lost(message) => f.write_str(message),
        }
    }
}

/// A connection that runs SQL.
pub(crate) trait SqlConnection: Send {
    /// Runs one statement.
    fn query(&mut self, sql: &str, deadline: Instant) -> Result<Rows, SqlError>;
}

/// A dialect of SQL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
    MariaDb,
}

impl Dialect {
    /// Returns the statements that create the tables.
    pub(crate) fn tables(self) -> Vec<String> {
        let (list, id, engine) = match self {
            Dialect::Sqlite => ("text", "integer primary key autoincrement", ""),
            Dialect::Postgres => ("text", "bigserial primary key", ""),
            Dialect::MariaDb => ("longtext", "bigint auto_increment primary key", " engine=InnoDB"),
        };
        vec![
            format!("create table registers(k varchar(20) primary key, v bigint){engine}"),
            format!("create table lists(k varchar(20) primary key, v {list}){engine}"),
            format!("create table elements(v bigint primary key){engine}"),
            format!("create table queue(id {id}, v bigint){engine}"),
        ]
    }

    fn write(self, key: Key, value: i64) -> String {
        let update = match self {
            Dialect::MariaDb => format!("on duplicate key update v = {value}"),
            _ => format!("on conflict (k) do update set v = {value}"),
        };
        format!("insert into registers values ('{key}', {value}) {update}")
    }

    fn append(self, key: Key, value: i64) -> String {
        let update = match self {
            Dialect::MariaDb => format!("on duplicate key update v = concat(v, ',{value}')"),
            _ => format!("on conflict (k) do update set v = lists.v || ',{value}'"),
        };
        format!("insert into lists values ('{key}', '{value}') {update}")
    }

    fn insert_if_absent(self, key: Key, value: i64) -> String {
        match self {
            Dialect::MariaDb => format!("insert ignore into registers values ('{key}', {value})"),
            _ => format!("insert into registers values ('{key}', {value}) on conflict do nothing"),
        }
    }

    fn dequeue(self) -> &'static str {
        match self {
            Dialect::MariaDb => "delete from queue order by id limit 1 returning v",
            _ => "delete from queue where id = (select min(id) from queue) returning v",
        }
    }
}

/// A client that sends SQL.
pub(crate) struct SqlClient<C> {
    pub(crate) connection: C,
    pub(crate) dialect: Dialect,
    /// The statement that begins a transaction.
    pub(crate) begin: &'static str,
}

impl<C: SqlConnection> SqlClient<C> {
    /// Runs a step.
    fn step(&mut self, step: &Action, deadline: Instant) -> Result<Reply, SqlError> {
        let query = |client: &mut Self, sql: String| client.connection.query(&sql, deadline);
        match step {
            Action::Read(key) => {
                let rows = query(self, format!("select v from registers where k = '{key}'"))?;
                Ok(Reply::Value(number(&rows)))
            }
            Action::Write(key, value) => {
                query(self, self.dialect.write(*key, *value))?;
                Ok(Reply::Done)
            }
            Action::ReadList(key) => {
                let rows = query(self, format!("select v from lists where k = '{key}'"))?;
                let text = rows.rows.first().and_then(|row| row.first().cloned().flatten());
                let items = text.iter().flat_map(|text| text.split(','));
                Ok(Reply::List(items.filter_map(|item| item.parse().ok()).collect()))
            }
            Action::Append(key, value) => {
                query(self, self.dialect.append(*key, *value))?;
                Ok(Reply::Done)
            }
            Action::Update(key, change) => {
                let rows = query(self, format!("select v from registers where k = '{key}'"))?;
                let read = number(&rows);
                query(self, self.dialect.write(*key, change.apply(read)))?;
                Ok(Reply::Value(read))
            }
        }
    }

    /// Runs steps in a transaction.
    fn transaction(&mut self, steps: &[Action], deadline: Instant) -> Outcome {
        if let Err(error) = self.connection.query(self.begin, deadline) {
            // The answer may still arrive, and must not be taken for the answer to the next
            // statement.
            return Outcome::Failed(format!("{BROKEN}{error}"));
        }
        let mut replies = Vec::new();
        for step in steps {
            match self.step(step, deadline) {
                Ok(reply) => replies.push(reply),
                Err(error) => {
                    // Nothing was committed. If the rollback fails too, the connection is replaced.
                    if self.connection.query("rollback", deadline).is_err() {
                        return Outcome::Failed(format!("{BROKEN}{error}"));
                    }
                    return Outcome::failed(error);
                }
            }
        }
        match self.connection.query("commit", deadline) {
            Ok(_) => Outcome::Ok(replies),
            Err(SqlError::Rejected { is_definite: true, message }) => {
                match self.connection.query("rollback", deadline) {
                    Ok(_) => Outcome::Failed(message),
                    Err(_) => Outcome::Failed(format!("{BROKEN}{message}")),
                }
            }
            Err(error) => Outcome::Unknown { replies, reason: error.to_string() },
        }
    }

    fn alone(&mut self, sql: &str, deadline: Instant) -> Result<Rows, Outcome> {
        self.connection.query(sql, deadline).map_err(|error| match error {
            SqlError::Rejected { is_definite: true, message } => Outcome::Failed(message),
            error => Outcome::unknown(error),
        })
    }
}

/// Prefix of the reason of a failure after which the connection cannot be used any more.
pub(crate) const BROKEN: &str = "connection lost: ";

impl<C: SqlConnection> Client for SqlClient<C> {
    fn run(&mut self, request: &Request, deadline: Instant) -> Outcome {
        let run = |client: &mut Self| -> Result<Reply, Outcome> {
            Ok(match request {
                Request::Transaction(steps) => return Err(client.transaction(steps, deadline)),
                Request::Single(step @ Action::Update(..)) => {
                    return Err(client.transaction(std::slice::from_ref(step), deadline));
                }
                Request::Single(step) => {
                    client.step(step, deadline).map_err(|error| match error {
                        SqlError::Rejected { is_definite: true, message } => {
                            Outcome::Failed(message)
                        }
                        error => Outcome::unknown(error),
                    })?
                }
                Request::CompareAndSet { key, old: Some(old), new } => {
                    // MariaDB reports no changed row if the value stays the same, but the update
                    // succeeded.
                    let sql =
                        format!("update registers set v = {new} where k = '{key}' and v = {old}");
                    if old == new {
                        let sql =
                            format!("select v from registers where k = '{key}' and v = {old}");
                        Reply::Success(!client.alone(&sql, deadline)?.rows.is_empty())
                    } else {
                        Reply::Success(client.alone(&sql, deadline)?.affected > 0)
                    }
                }
                Request::CompareAndSet { key, old: None, new } => {
                    let sql = client.dialect.insert_if_absent(*key, *new);
                    Reply::Success(client.alone(&sql, deadline)?.affected > 0)
                }
                Request::Add(element) => {
                    client.alone(&format!("insert into elements values ({element})"), deadline)?;
                    Reply::Done
                }
                Request::Members => {
                    let rows = client.alone("select v from elements", deadline)?;
                    let texts = rows.rows.iter().filter_map(|row| row.first().cloned().flatten());
                    Reply::List(texts.filter_map(|text| text.parse().ok()).collect())
                }
                Request::Enqueue(element) => {
                    client.alone(&format!("insert into queue(v) values ({element})"), deadline)?;
                    Reply::Done
                }
                Request::Dequeue => {
                    let sql = client.dialect.dequeue();
                    Reply::Value(number(&client.alone(sql, deadline)?))
                }
            })
        };
        match run(self) {
            Ok(reply) => Outcome::Ok(vec![reply]),
            Err(outcome) => outcome,
        }
    }
}

/// Returns the number in the first column of the first row.
fn number(rows: &Rows) -> Option<i64> {
    rows.rows.first()?.first()?.as_ref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Change;

    /// A server that answers late. Each answer of `script` belongs to the oldest statement without
    /// an answer. `None` stands for an answer that does not arrive in time.
    struct Late {
        script: Vec<Option<Result<Rows, SqlError>>>,
        sent: Vec<String>,
    }

    impl SqlConnection for Late {
        fn query(&mut self, sql: &str, _deadline: Instant) -> Result<Rows, SqlError> {
            self.sent.push(sql.to_owned());
            match self.script.is_empty() {
                true => Err(SqlError::Lost("closed".to_owned())),
                false => {
                    self.script.remove(0).unwrap_or(Err(SqlError::Lost("no answer".to_owned())))
                }
            }
        }
    }

    /// Runs an update as a transaction and returns the outcome and the sent statements.
    fn run(script: Vec<Option<Result<Rows, SqlError>>>) -> (Outcome, Vec<String>) {
        let connection = Late { script, sent: Vec::new() };
        let mut client = SqlClient { connection, dialect: Dialect::Postgres, begin: "begin" };
        let request = Request::Transaction(vec![Action::Update(Key(1), Change::Put(5))]);
        let outcome = client.run(&request, Instant::now());
        (outcome, client.connection.sent)
    }

    fn is_broken(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Failed(reason) if reason.starts_with(BROKEN))
    }

    #[test]
    fn a_connection_with_an_answer_under_way_is_never_used_again() {
        let ok = || Some(Ok(Rows::default()));
        let refused = || {
            let message = "40001 could not serialize access".to_owned();
            Some(Err(SqlError::Rejected { is_definite: true, message }))
        };
        // No answer to BEGIN: nothing happened, and the connection is discarded.
        let (outcome, sent) = run(vec![None]);
        assert!(is_broken(&outcome), "{outcome:?}");
        assert_eq!(sent, ["begin"]);
        // No answer to a step, nor to ROLLBACK: nothing was committed.
        assert!(is_broken(&run(vec![ok(), None, None]).0));
        // A step that is refused and rolled back leaves the connection usable.
        let (outcome, sent) = run(vec![ok(), refused(), ok()]);
        assert!(matches!(outcome, Outcome::Failed(_)) && !is_broken(&outcome), "{outcome:?}");
        assert_eq!(sent.last().map(String::as_str), Some("rollback"));
        // No answer to COMMIT: the outcome is indeterminate, and the values read are kept.
        let (outcome, _) = run(vec![ok(), ok(), ok(), None]);
        assert!(matches!(&outcome, Outcome::Unknown { replies, .. } if replies.len() == 1));
        // COMMIT is refused, and then the connection is lost.
        assert!(is_broken(&run(vec![ok(), ok(), ok(), refused(), None]).0));
        // Every statement is answered.
        assert_eq!(run(vec![ok(), ok(), ok(), ok()]).0, Outcome::Ok(vec![Reply::Value(None)]));
    }
}
