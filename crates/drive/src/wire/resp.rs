//! Redis's protocol: a request is a list of texts, and an answer has one of five types.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use super::{Stream, malformed};

/// An answer of Redis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Nil,
    Text(String),
    Integer(i64),
    List(Vec<Answer>),
    Error(String),
}

impl Answer {
    /// Returns the text of a text answer, or an integer as text.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Answer::Text(text) => Some(text.clone()),
            Answer::Integer(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

/// A connection to Redis.
pub(crate) struct Connection {
    stream: Stream,
}

impl Connection {
    pub(crate) fn connect(address: SocketAddr, deadline: Instant) -> io::Result<Connection> {
        Ok(Connection { stream: Stream::connect(address, deadline)? })
    }

    pub(crate) fn set_deadline(&mut self, deadline: Instant) {
        self.stream.set_deadline(deadline);
    }

    /// Sends a command and returns the answer.
    pub(crate) fn ask(&mut self, words: &[&str]) -> io::Result<Answer> {
        Ok(self.ask_all(&[words])?.remove(0))
    }

    /// Sends several commands at once and returns their answers.
    pub(crate) fn ask_all(&mut self, commands: &[&[&str]]) -> io::Result<Vec<Answer>> {
        let mut request = String::new();
        for words in commands {
            request += &format!("*{}\r\n", words.len());
            for word in *words {
                request += &format!("${}\r\n{word}\r\n", word.len());
            }
        }
        self.stream.send(request.as_bytes())?;
        commands.iter().map(|_| self.answer()).collect()
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let line = self.stream.line()?;
        let kind = line.as_bytes().first().copied().unwrap_or(b' ');
        let rest = line.get(1..).unwrap_or_default();
        let number = || rest.parse::<i64>().map_err(|_| malformed(format!("an answer `{line}`")));
        Ok(match kind {
            b'+' => Answer::Text(rest.to_owned()),
            b'-' => Answer::Error(rest.to_owned()),
            b':' => Answer::Integer(number()?),
            b'$' => match usize::try_from(number()?) {
                Ok(length) => {
                    let mut bytes = self.stream.take(length + 2)?;
                    bytes.truncate(length);
                    Answer::Text(String::from_utf8_lossy(&bytes).into_owned())
                }
                Err(_) => Answer::Nil,
            },
            b'*' => match usize::try_from(number()?) {
                Ok(count) => {
                    Answer::List((0..count).map(|_| self.answer()).collect::<io::Result<_>>()?)
                }
                Err(_) => Answer::Nil,
            },
            _ => return Err(malformed(format!("an answer `{line}`"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    #[test]
    fn every_kind_of_answer_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let expected = b"*2\r\n$3\r\nGET\r\n$1\r\nx\r\n";
            let mut request = vec![0; expected.len()];
            socket.read_exact(&mut request).unwrap();
            assert_eq!(request, expected);
            // In two pieces, cut inside a text.
            socket.write_all(b"*5\r\n+OK\r\n:-7\r\n$5\r\na\r").unwrap();
            socket.write_all(b"\nbc\r\n$-1\r\n-READONLY no\r\n").unwrap();
        });
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut connection = Connection::connect(address, deadline).unwrap();
        let answer = connection.ask(&["GET", "x"]).unwrap();
        let expected = Answer::List(vec![
            Answer::Text("OK".into()),
            Answer::Integer(-7),
            Answer::Text("a\r\nbc".into()),
            Answer::Nil,
            Answer::Error("READONLY no".into()),
        ]);
        assert_eq!(answer, expected);
        server.join().unwrap();
        assert!(connection.ask(&["GET", "x"]).is_err(), "the server is gone");
    }
}
