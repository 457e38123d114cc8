//! The socket, the token and the routes.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::api::Api;
use crate::http::{Request, Response, read_request};

/// The limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest body of a request, in bytes.
    pub body_bytes: usize,
    /// Time limit for a client to send its request.
    pub request_time: Duration,
    /// Time limit for a client to receive its response.
    pub answer_time: Duration,
    /// Time limit of an analysis.
    pub analysis_time: Duration,
    /// Memory limit of an analysis, in bytes.
    pub analysis_memory: u64,
    /// Largest number of concurrent connections; further ones are rejected.
    pub connections: usize,
    /// Largest number of concurrent analyses; further ones wait.
    pub analyses: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 4 << 20,
            request_time: Duration::from_secs(10),
            answer_time: Duration::from_secs(30),
            analysis_time: Duration::from_secs(5),
            analysis_memory: 1 << 30,
            connections: 64,
            analyses: 2,
        }
    }
}

/// A bound server that is not running yet.
pub struct Server {
    listener: TcpListener,
    state: Arc<State>,
}

struct State {
    address: SocketAddr,
    token: String,
    limits: Limits,
    api: Api,
    page: String,
    open: AtomicUsize,
}

impl Server {
    /// Binds a socket and creates a token.
    pub fn bind(address: SocketAddr, limits: Limits) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let token = random_token()?;
        let page = crate::api::page(&token);
        let api = Api::new(limits.clone());
        let open = AtomicUsize::new(0);
        Ok(Server { listener, state: Arc::new(State { address, token, limits, api, page, open }) })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.state.address
    }

    /// Returns the address of the page, with the token.
    pub fn url(&self) -> String {
        let mut shown = self.state.address;
        if shown.ip().is_unspecified() {
            shown.set_ip(IpAddr::from([127, 0, 0, 1]));
        }
        format!("http://{shown}/?token={}", self.state.token)
    }

    /// Serves until the flag is set; open connections still receive their responses.
    pub fn run(self, stop: &AtomicBool) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        while !stop.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let state = Arc::clone(&self.state);
                    state.open.fetch_add(1, Ordering::Relaxed);
                    let serve = move || {
                        let _guard = OpenGuard(&state.open);
                        state.serve(stream);
                    };
                    // If no thread can be started, the connection is closed, and the client can
                    // retry.
                    if consistory_work::spawn(serve).is_err() {
                        self.state.open.fetch_sub(1, Ordering::Relaxed);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                // A connection that broke before it was accepted, or no free descriptor at the
                // moment.
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        Ok(())
    }
}

/// Counts a connection as closed when dropped, however its thread ends.
struct OpenGuard<'a>(&'a AtomicUsize);

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl State {
    fn serve(&self, mut stream: TcpStream) {
        if stream.set_nonblocking(false).is_err() {
            return;
        }
        let Limits { body_bytes, request_time, answer_time, connections, .. } = self.limits;
        let answer = if self.open.load(Ordering::Relaxed) > connections {
            Some(Response::text(503, "too many connections; try again in a moment\n"))
        } else {
            match read_request(&mut stream, body_bytes, request_time) {
                Ok(request) => Some(self.answer(&request)),
                Err(bad) => bad.answer(body_bytes),
            }
        };
        if let Some(answer) = answer {
            // The client may have closed the connection.
            let _ = answer.send(&mut stream, answer_time);
        }
    }

    fn answer(&self, request: &Request) -> Response {
        if !self.is_for_us(request) {
            return Response::text(421, "this server is not known by that name\n");
        }
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") if self.may_see_the_page(request) => {
                let mut page = Response::html(self.page.clone());
                let (port, token) = (self.address.port(), &self.token);
                page.more = format!(
                    "Set-Cookie: consistory{port}={token}; SameSite=Strict; HttpOnly; Path=/\r\n\
                     Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; \
                     style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; \
                     base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
                );
                page
            }
            ("GET", "/") => Response::text(
                403,
                "This page needs the token of the address that `consistory serve` printed.\n\
                 To open a shared example, put the part of its address from # on behind that.\n",
            ),
            ("GET", "/favicon.ico") => Response::text(404, ""),
            ("POST", "/api/judge" | "/api/start") => {
                let is_known = request.header("x-token").is_some_and(|t| same(t, &self.token));
                if !is_known {
                    return Response::text(403, "the token is missing or wrong\n");
                }
                let value = match request.path.as_str() {
                    "/api/start" => self.api.start(),
                    _ => self.api.judge(&request.body),
                };
                Response::json(200, &value)
            }
            (_, "/" | "/api/judge" | "/api/start") => Response::text(405, "wrong method\n"),
            _ => Response::text(404, "there is nothing here\n"),
        }
    }

    /// Checks whether the `Host` header names this server; otherwise another site's name was
    /// resolved to this address.
    fn is_for_us(&self, request: &Request) -> bool {
        let Some(host) = request.header("host") else { return false };
        let port = self.address.port();
        let name = host.strip_suffix(&format!(":{port}")).unwrap_or(host);
        if name == "localhost" {
            return true;
        }
        let name = name.trim_start_matches('[').trim_end_matches(']');
        match name.parse::<IpAddr>() {
            Ok(ip) => {
                ip == self.address.ip() || ip.is_loopback() || self.address.ip().is_unspecified()
            }
            Err(_) => false,
        }
    }

    fn may_see_the_page(&self, request: &Request) -> bool {
        let in_query = request.query.split('&').find_map(|pair| pair.strip_prefix("token="));
        let name = format!("consistory{}=", self.address.port());
        let cookies = request.header("cookie").unwrap_or("").split(';');
        let in_cookie = cookies.map(str::trim).find_map(|cookie| cookie.strip_prefix(&*name));
        [in_query, in_cookie].into_iter().flatten().any(|token| same(token, &self.token))
    }
}

/// Compares two tokens in a time that does not depend on the position of a difference.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |acc, (x, y)| acc | (x ^ y)) == 0
}

fn random_token() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
