//! Requests and responses of HTTP/1.1, as far as the page needs them: one request per connection,
//! bodies with a length, no transfer encodings.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use consistory_faults::{Point, fail};

/// Largest size of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Largest number of bytes in one write.
const WRITTEN_AT_ONCE: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path without the query.
    pub(crate) path: String,
    pub(crate) query: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Returns a header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Reason why a request could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadRequest {
    /// The client closed the connection, or it broke.
    Gone,
    /// The bytes are not a request.
    Malformed(&'static str),
    /// The head is too long.
    HeadTooLong,
    /// The body is too long.
    BodyTooLong,
    /// The request took too long to arrive.
    Slow,
}

impl BadRequest {
    /// Returns the response to an invalid request, if the client can still receive one.
    pub(crate) fn answer(&self, max_body: usize) -> Option<Response> {
        Some(match self {
            BadRequest::Gone => return None,
            BadRequest::Malformed(what) => Response::text(400, format!("bad request: {what}\n")),
            BadRequest::HeadTooLong => Response::text(431, "the request's head is too long\n"),
            BadRequest::BodyTooLong => {
                Response::text(413, format!("the body is longer than {max_body} bytes\n"))
            }
            BadRequest::Slow => Response::text(408, "the request took too long to arrive\n"),
        })
    }
}

/// Reads one request within `time`.
pub(crate) fn read_request(
    stream: &mut TcpStream,
    max_body: usize,
    time: Duration,
) -> Result<Request, BadRequest> {
    let deadline = Instant::now() + time;
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(&bytes) {
            Ok(httparse::Status::Complete(length)) => {
                let mut request = head(&parsed)?;
                if request.header("transfer-encoding").is_some() {
                    return Err(BadRequest::Malformed("transfer encodings are not supported"));
                }
                let wanted = match request.header("content-length") {
                    None => 0,
                    Some(text) => text
                        .parse::<usize>()
                        .map_err(|_| BadRequest::Malformed("the content length is not a number"))?,
                };
                if wanted > max_body {
                    return Err(BadRequest::BodyTooLong);
                }
                let mut body = bytes.split_off(length);
                while body.len() < wanted {
                    read_some(stream, &mut body, deadline)?;
                }
                body.truncate(wanted);
                request.body = body;
                return Ok(request);
            }
            Ok(httparse::Status::Partial) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(BadRequest::HeadTooLong),
            Err(_) => return Err(BadRequest::Malformed("this is not HTTP")),
        }
        if bytes.len() >= MAX_HEAD_BYTES {
            return Err(BadRequest::HeadTooLong);
        }
        read_some(stream, &mut bytes, deadline)?;
    }
}

fn head(parsed: &httparse::Request<'_, '_>) -> Result<Request, BadRequest> {
    let target = parsed.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = Vec::new();
    for header in parsed.headers.iter() {
        let value = std::str::from_utf8(header.value)
            .map_err(|_| BadRequest::Malformed("a header is not UTF-8"))?;
        headers.push((header.name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Request {
        method: parsed.method.unwrap_or("").to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        body: Vec::new(),
    })
}

/// Reads the available bytes; fails if none arrive before the deadline.
fn read_some(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    deadline: Instant,
) -> Result<(), BadRequest> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(BadRequest::Slow);
    }
    stream.set_read_timeout(Some(left)).map_err(|_| BadRequest::Gone)?;
    let mut buffer = [0u8; 16 * 1024];
    match fail(Point::Read).and_then(|()| stream.read(&mut buffer)) {
        Ok(0) => Err(BadRequest::Gone),
        Ok(count) => {
            bytes.extend_from_slice(&buffer[..count]);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            Err(BadRequest::Slow)
        }
        Err(_) => Err(BadRequest::Gone),
    }
}

/// Writes all bytes; fails if the client has not received them before the deadline.
fn write_until(stream: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        // A blocking write waits for room for all its bytes and restarts its timeout with each
        // part.
        let part = &bytes[..bytes.len().min(WRITTEN_AT_ONCE)];
        match fail(Point::Write).and_then(|()| stream.write(part)) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A response.
pub(crate) struct Response {
    pub(crate) status: u16,
    kind: &'static str,
    /// Additional header lines, each with its line end.
    pub(crate) more: String,
    body: Vec<u8>,
}

impl Response {
    pub(crate) fn text(status: u16, text: impl Into<String>) -> Self {
        Response {
            status,
            kind: "text/plain; charset=utf-8",
            more: String::new(),
            body: text.into().into_bytes(),
        }
    }

    pub(crate) fn html(text: String) -> Self {
        Response {
            status: 200,
            kind: "text/html; charset=utf-8",
            more: String::new(),
            body: text.into_bytes(),
        }
    }

    pub(crate) fn json(status: u16, value: &serde_json::Value) -> Self {
        Response {
            status,
            kind: "application/json",
            more: String::new(),
            body: value.to_string().into_bytes(),
        }
    }

    /// Sends the response within `time` and ends the connection.
    pub(crate) fn send(&self, stream: &mut TcpStream, time: Duration) -> io::Result<()> {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            413 => "Content Too Large",
            421 => "Misdirected Request",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Error",
        };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Referrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n{}\r\n",
            self.status,
            self.kind,
            self.body.len(),
            self.more
        );
        let deadline = Instant::now() + time;
        write_until(stream, head.as_bytes(), deadline)?;
        write_until(stream, &self.body, deadline)?;
        // The server briefly reads and drops further bytes of the client: closing a socket with
        // unread bytes would reset the connection before the client has received the response.
        stream.shutdown(std::net::Shutdown::Write)?;
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        let mut rest = [0u8; 16 * 1024];
        for _ in 0..64 {
            if !matches!(stream.read(&mut rest), Ok(count) if count > 0) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A time limit per write would never end this, because the client always takes a few bytes.
    #[test]
    fn an_answer_that_is_taken_slowly_ends_with_its_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        // More bytes than the system's buffers hold.
        let length = 64 << 20;
        let answer = Response::text(200, "x".repeat(length));
        let slow = std::thread::spawn(move || {
            let (mut taken, mut buffer) = (0, vec![0; 16 << 10]);
            while let Ok(count @ 1..) = client.read(&mut buffer) {
                taken += count;
                std::thread::sleep(Duration::from_millis(1));
            }
            taken
        });
        let began = Instant::now();
        let sent = answer.send(&mut server, Duration::from_millis(400));
        assert!(sent.is_err());
        assert!(began.elapsed() >= Duration::from_millis(400));
        drop(server);
        let taken = slow.join().unwrap();
        assert!(taken > 0 && taken < length, "{taken}");
    }

    #[test]
    fn an_answer_that_is_taken_in_time_arrives_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let fast = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            client.read_to_end(&mut bytes).map(|_| bytes.len())
        });
        let answer = Response::text(200, "x".repeat(8 << 20));
        answer.send(&mut server, Duration::from_secs(60)).unwrap();
        drop(server);
        assert!(fast.join().unwrap().unwrap() > 8 << 20);
    }
}
