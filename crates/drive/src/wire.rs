//! The parts of four network protocols that clients need: one connection, one request at a time.

pub(crate) mod http;
pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod resp;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A TCP connection whose reads and writes end at a deadline.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: TcpStream,
    deadline: Instant,
    /// Received bytes; those from `taken` on are not consumed yet.
    buffer: Vec<u8>,
    taken: usize,
}

impl Stream {
    pub(crate) fn connect(address: SocketAddr, deadline: Instant) -> io::Result<Stream> {
        let socket = TcpStream::connect_timeout(&address, left(deadline)?)?;
        socket.set_nodelay(true)?;
        Ok(Stream { socket, deadline, buffer: Vec::new(), taken: 0 })
    }

    pub(crate) fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.set_write_timeout(Some(left(self.deadline)?))?;
        self.socket.write_all(bytes)
    }

    fn fill(&mut self) -> io::Result<()> {
        self.socket.set_read_timeout(Some(left(self.deadline)?))?;
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        let old = self.buffer.len();
        self.buffer.resize(old + 16 * 1024, 0);
        let read = self.socket.read(&mut self.buffer[old..]);
        self.buffer.truncate(old + *read.as_ref().unwrap_or(&0));
        match read? {
            0 => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection",
            )),
            _ => Ok(()),
        }
    }

    /// Consumes exactly `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() - self.taken < count {
            self.fill()?;
        }
        let bytes = self.buffer[self.taken..self.taken + count].to_vec();
        self.taken += count;
        Ok(bytes)
    }

    /// Consumes a line and returns it without its line end.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut from = self.taken;
        loop {
            let end = self.buffer[from..].iter().position(|&byte| byte == b'\n');
            if let Some(end) = end.map(|end| from + end) {
                let line = String::from_utf8_lossy(&self.buffer[self.taken..end]).into_owned();
                self.taken = end + 1;
                return Ok(line.trim_end_matches('\r').to_owned());
            }
            let seen = self.buffer.len() - self.taken;
            self.fill()?;
            from = self.taken + seen;
        }
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")),
        left => Ok(left),
    }
}

/// Builds an error for an answer that the protocol does not allow.
fn malformed(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}
