//! The protocol of MySQL and MariaDB: login without a password, and queries as text.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use super::{Stream, malformed};
use crate::sql::{Rows, SqlConnection, SqlError};

/// Capability flags: protocol 4.1, secure login, transactions, login by plug-in.
const CAPABILITIES: u32 = 0x0000_0200 | 0x0000_8000 | 0x0000_2000 | 0x0008_0000;

/// A connection to MariaDB.
pub(crate) struct Connection {
    stream: Stream,
    /// Sequence number of the next packet of an exchange.
    sequence: u8,
}

impl Connection {
    /// Logs in as `root` without a password.
    pub(crate) fn connect(address: SocketAddr, deadline: Instant) -> Result<Connection, SqlError> {
        let mut connection =
            Connection { stream: Stream::connect(address, deadline)?, sequence: 0 };
        let greeting = connection.packet()?;
        if greeting.first() == Some(&0xff) {
            return Err(failure(&greeting));
        }
        let mut login = CAPABILITIES.to_le_bytes().to_vec();
        login.extend((1_u32 << 24).to_le_bytes());
        login.push(45);
        login.extend([0; 23]);
        login.extend(b"root\0\0mysql_native_password\0");
        connection.send(&login)?;
        loop {
            let answer = connection.packet()?;
            match answer.first() {
                Some(0x00) => return Ok(connection),
                Some(0xff) => return Err(failure(&answer)),
                // The server asks for another login method; without a password the answer is empty.
                Some(0xfe) => connection.send(&[])?,
                _ => return Err(malformed("an answer to the log-in").into()),
            }
        }
    }

    fn packet(&mut self) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        loop {
            let head = self.stream.take(4)?;
            self.sequence = head[3].wrapping_add(1);
            let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
            whole.extend(self.stream.take(length)?);
            if length < 0xff_ffff {
                return Ok(whole);
            }
        }
    }

    fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let mut packet = (body.len() as u32).to_le_bytes()[..3].to_vec();
        packet.push(self.sequence);
        packet.extend(body);
        self.stream.send(&packet)
    }
}

impl SqlConnection for Connection {
    fn query(&mut self, sql: &str, deadline: Instant) -> Result<Rows, SqlError> {
        self.stream.set_deadline(deadline);
        self.sequence = 0;
        let mut body = vec![3];
        body.extend(sql.as_bytes());
        self.send(&body)?;
        let first = self.packet()?;
        let mut rows = Rows::default();
        match first.first() {
            Some(0xff) => return Err(failure(&first)),
            Some(0x00) => {
                let (affected, _) = integer(&first, 1).ok_or_else(|| malformed("an answer"))?;
                rows.affected = affected.unwrap_or(0);
                return Ok(rows);
            }
            _ => {}
        }
        let columns = integer(&first, 0).and_then(|(columns, _)| columns);
        let columns = columns.ok_or_else(|| malformed("a number of columns"))?;
        for _ in 0..columns {
            self.packet()?;
        }
        self.packet()?;
        loop {
            let packet = self.packet()?;
            match packet.first() {
                Some(0xff) => return Err(failure(&packet)),
                Some(0xfe) if packet.len() < 9 => return Ok(rows),
                _ => rows.rows.push(row(&packet, columns).ok_or_else(|| malformed("a row"))?),
            }
        }
    }
}

/// Reads an integer of variable length. Returns it (`None` for NULL) with the position after it.
fn integer(bytes: &[u8], at: usize) -> Option<(Option<u64>, usize)> {
    let wide = |length: usize| {
        let bytes = bytes.get(at + 1..at + 1 + length)?;
        let number = bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        Some((Some(number), at + 1 + length))
    };
    match *bytes.get(at)? {
        0xfb => Some((None, at + 1)),
        0xfc => wide(2),
        0xfd => wide(3),
        0xfe => wide(8),
        small => Some((Some(small.into()), at + 1)),
    }
}

fn row(packet: &[u8], columns: u64) -> Option<Vec<Option<String>>> {
    let mut at = 0;
    let mut row = Vec::new();
    for _ in 0..columns {
        let (length, next) = integer(packet, at)?;
        at = next;
        row.push(match length {
            None => None,
            Some(length) => {
                let text = packet.get(at..at + length as usize)?;
                at += length as usize;
                Some(String::from_utf8_lossy(text).into_owned())
            }
        });
    }
    Some(row)
}

/// Errors that prove that the statement, or the transaction of the failed COMMIT, had no effect:
/// deadlock (also a failed certification of Galera), lock wait timeout, a node that is not ready, a
/// read-only server.
const DEFINITE: [u16; 7] = [1213, 1205, 1047, 1290, 1836, 1792, 1062];

fn failure(packet: &[u8]) -> SqlError {
    let code = packet.get(1..3).map_or(0, |code| u16::from_le_bytes([code[0], code[1]]));
    let rest = packet.get(3..).unwrap_or_default();
    let text = match rest.first() {
        Some(b'#') => rest.get(6..).unwrap_or_default(),
        _ => rest,
    };
    let message = format!("{code} {}", String::from_utf8_lossy(text));
    SqlError::Rejected { is_definite: DEFINITE.contains(&code), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_integers_and_errors_are_read() {
        assert_eq!(
            row(b"\x0217\xfb\x00", 3),
            Some(vec![Some("17".into()), None, Some(String::new())])
        );
        assert_eq!(row(b"\x0517", 1), None, "a row that is cut off");
        assert_eq!(integer(&[0xfc, 1, 2], 0), Some((Some(513), 3)));
        assert_eq!(integer(&[0xfe, 1, 0, 0, 0, 0, 0, 0, 0], 0), Some((Some(1), 9)));
        let deadlock = failure(b"\xff\xbd\x04#40001Deadlock found");
        let SqlError::Rejected { is_definite, message } = deadlock else { panic!("an error") };
        assert!(is_definite);
        assert_eq!(message, "1213 Deadlock found");
        let SqlError::Rejected { is_definite, .. } = failure(b"\xff\x9c\x04Got error") else {
            panic!("an error")
        };
        assert!(!is_definite, "1180, an error while committing, says nothing");
    }
}
