//! PostgreSQL's protocol, version 3: trusted login and simple queries.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use super::{Stream, malformed};
use crate::sql::{Rows, SqlConnection, SqlError};

/// A connection to PostgreSQL.
pub(crate) struct Connection {
    stream: Stream,
}

impl Connection {
    /// Logs in as `postgres` without a password.
    pub(crate) fn connect(address: SocketAddr, deadline: Instant) -> Result<Connection, SqlError> {
        let mut connection = Connection { stream: Stream::connect(address, deadline)? };
        let parameters = b"user\0postgres\0database\0postgres\0\0";
        let mut start = (parameters.len() as u32 + 8).to_be_bytes().to_vec();
        start.extend(196_608_u32.to_be_bytes());
        start.extend(parameters);
        connection.stream.send(&start)?;
        connection.until_ready()?;
        Ok(connection)
    }

    fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let head = self.stream.take(5)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let length =
            length.checked_sub(4).ok_or_else(|| malformed("a message without a length"))?;
        Ok((head[0], self.stream.take(length)?))
    }

    /// Reads messages until the server is ready for the next query.
    fn until_ready(&mut self) -> Result<Rows, SqlError> {
        let mut rows = Rows::default();
        let mut error = None;
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'Z' => return error.map_or(Ok(rows), Err),
                b'R' if body != [0; 4] => {
                    return Err(SqlError::Lost("the server asks for a password".to_owned()));
                }
                b'D' => rows.rows.push(row(&body).ok_or_else(|| malformed("a row"))?),
                b'C' => {
                    let tag = String::from_utf8_lossy(&body);
                    let count = tag.trim_end_matches('\0').rsplit(' ').next();
                    rows.affected = count.and_then(|count| count.parse().ok()).unwrap_or(0);
                }
                b'E' => {
                    let failure = failure(&body);
                    // After a fatal error the server closes the connection without a further
                    // message.
                    if let SqlError::Rejected { is_definite: false, .. } = failure {
                        return Err(failure);
                    }
                    error = Some(failure);
                }
                _ => {}
            }
        }
    }
}

impl SqlConnection for Connection {
    fn query(&mut self, sql: &str, deadline: Instant) -> Result<Rows, SqlError> {
        self.stream.set_deadline(deadline);
        let mut message = vec![b'Q'];
        message.extend((sql.len() as u32 + 5).to_be_bytes());
        message.extend(sql.as_bytes());
        message.push(0);
        self.stream.send(&message)?;
        self.until_ready()
    }
}

/// Reads the columns of a row as texts.
fn row(body: &[u8]) -> Option<Vec<Option<String>>> {
    let number = |at: usize, bytes: usize| {
        let bytes = body.get(at..at + bytes)?;
        Some(bytes.iter().fold(0_u32, |number, &byte| number << 8 | u32::from(byte)))
    };
    let mut at = 2;
    let mut columns = Vec::new();
    for _ in 0..number(0, 2)? {
        let length = number(at, 4)?;
        at += 4;
        columns.push(match length {
            u32::MAX => None,
            length => {
                let text = body.get(at..at + length as usize)?;
                at += length as usize;
                Some(String::from_utf8_lossy(text).into_owned())
            }
        });
    }
    Some(columns)
}

/// Parses an error. Severity ERROR means that the statement and its transaction were rolled back.
/// Severity FATAL, such as a shutdown, leaves open whether a running commit succeeded.
fn failure(body: &[u8]) -> SqlError {
    let fields: Vec<(u8, String)> = (body.split(|&byte| byte == 0))
        .filter_map(|field| {
            let (&kind, text) = field.split_first()?;
            Some((kind, String::from_utf8_lossy(text).into_owned()))
        })
        .collect();
    let field = |kind: u8| {
        fields.iter().find(|(other, _)| *other == kind).map_or("", |(_, text)| text.as_str())
    };
    // Field V is the severity in English, independent of the server's language.
    let severity = if field(b'V').is_empty() { field(b'S') } else { field(b'V') };
    let is_definite = severity == "ERROR" && field(b'C') != "40003";
    SqlError::Rejected { is_definite, message: format!("{} {}", field(b'C'), field(b'M')) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_errors_are_read() {
        let body = [&[0, 2, 0, 0, 0, 2][..], b"17", &[255, 255, 255, 255]].concat();
        assert_eq!(row(&body), Some(vec![Some("17".to_owned()), None]));
        assert_eq!(row(&body[..7]), None, "a row that is cut off");
        let is_definite = |text: &str| match failure(text.replace('|', "\0").as_bytes()) {
            SqlError::Rejected { is_definite, .. } => is_definite,
            SqlError::Lost(_) => panic!("an error of the server"),
        };
        assert!(is_definite("SERROR|VERROR|C40001|Mcould not serialize access|"));
        assert!(!is_definite("SFATAL|VFATAL|C57P01|Mterminating connection|"));
        assert!(!is_definite("SERROR|VERROR|C40003|Mstatement completion unknown|"));
    }
}
