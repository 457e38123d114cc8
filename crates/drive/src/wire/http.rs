//! A client that posts JSON over HTTP 1.1 on a persistent connection.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use serde_json::Value;

use super::{Stream, malformed};

/// A connection to an HTTP server.
pub(crate) struct Connection {
    stream: Stream,
    host: String,
}

impl Connection {
    pub(crate) fn connect(address: SocketAddr, deadline: Instant) -> io::Result<Connection> {
        Ok(Connection { stream: Stream::connect(address, deadline)?, host: address.to_string() })
    }

    /// Posts a document and returns the status and the answer.
    pub(crate) fn post(
        &mut self,
        path: &str,
        body: &Value,
        deadline: Instant,
    ) -> io::Result<(u16, Value)> {
        self.stream.set_deadline(deadline);
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.send(request.as_bytes())?;
        let status = self.stream.line()?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.ok_or_else(|| malformed(format!("a status `{status}`")))?;
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.stream.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    length =
                        value.parse().map_err(|_| malformed("a length that is not a number"))?;
                }
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                _ => {}
            }
        }
        let mut answer = Vec::new();
        if chunked {
            loop {
                let size = self.stream.line()?;
                let size = usize::from_str_radix(size.trim(), 16)
                    .map_err(|_| malformed("a chunk without a size"))?;
                answer.extend(self.stream.take(size)?);
                self.stream.line()?;
                if size == 0 {
                    break;
                }
            }
        } else {
            answer = self.stream.take(length)?;
        }
        let answer = serde_json::from_slice(&answer)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&answer).into_owned()));
        Ok((code, answer))
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes a text in base 64.
pub(crate) fn base64(text: &str) -> String {
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            match at <= chunk.len() {
                true => out.push(char::from(ALPHABET[(bits >> (18 - 6 * at) & 63) as usize])),
                false => out.push('='),
            }
        }
    }
    out
}

/// Decodes base 64; other characters are skipped.
pub(crate) fn from_base64(text: &str) -> String {
    let digits: Vec<u32> = (text.bytes())
        .filter_map(|byte| ALPHABET.iter().position(|&known| known == byte))
        .map(|digit| digit as u32)
        .collect();
    let mut bytes = Vec::new();
    for chunk in digits.chunks(4) {
        let bits = chunk.iter().enumerate().fold(0, |bits, (at, d)| bits | d << (18 - 6 * at));
        bytes.extend(bits.to_be_bytes()[1..].iter().take(chunk.len().saturating_sub(1)));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_there_and_back() {
        for (text, encoded) in [
            ("", ""),
            ("k", "aw=="),
            ("k1", "azE="),
            ("k12", "azEy"),
            ("light work", "bGlnaHQgd29yaw=="),
        ] {
            assert_eq!(base64(text), encoded);
            assert_eq!(from_base64(encoded), text);
        }
    }

    #[test]
    fn answers_with_a_length_and_in_chunks_are_read() {
        use std::io::{Read, Write};
        use std::time::Duration;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let answers = [
                "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
                "HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\n\r\n\
                 3\r\n{\"a\r\n4\r\n\":2}\r\n0\r\n\r\n",
            ];
            for answer in answers {
                let mut seen = Vec::new();
                while !seen.ends_with(b"{}") {
                    let mut byte = [0];
                    socket.read_exact(&mut byte).unwrap();
                    seen.push(byte[0]);
                }
                socket.write_all(answer.as_bytes()).unwrap();
            }
        });
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut connection = Connection::connect(address, deadline).unwrap();
        let mut post = || connection.post("/", &serde_json::json!({}), deadline).unwrap();
        assert_eq!(post(), (200, serde_json::json!({"a": 1})));
        assert_eq!(post(), (503, serde_json::json!({"a": 2})));
        server.join().unwrap();
    }
}
