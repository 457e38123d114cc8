//! Input lines of `watch`: from standard input, a growing file, or sockets.
//!
//! A client that writes to a socket receives `ok` for each line that was processed. If it waits for
//! `ok` before it makes the announced call, the call comes later than all calls whose returns were
//! processed before; and calls that returned were announced before. So the order in which lines
//! from several connections are processed is reliable.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
#[cfg(unix)]
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use consistory_work::spawn;

use super::client::{Client, Stream, read_rest};
use crate::args::WatchArgs;
use crate::error::{CliError, report};
use crate::interrupt;
use crate::reading::{self, Reading};

/// An item of the input.
pub(crate) enum Incoming {
    /// The beginning of a connection.
    Opened { source: Arc<str>, client: Client },
    /// A line, with its source and its number in the source.
    Line { source: Arc<str>, number: u64, text: String },
    /// A line of a connection that is not even text, or no event.
    Wrong { source: Arc<str>, error: CliError },
    /// The end of a connection.
    Closed { source: Arc<str> },
}

/// Checks whether a line can be an event, before it is accepted.
pub(crate) type Precheck = fn(&str, u64, &Arc<str>) -> Result<(), CliError>;

/// Interval between two reads of a growing file.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Largest number of waiting lines.
const MAX_WAITING_LINES: usize = 1024;
/// Longest supported line in bytes, so that an endless line does not use all memory.
const MAX_LINE_BYTES: u64 = 1 << 26;

type Lines = Box<dyn Iterator<Item = Result<Incoming, CliError>>>;

/// Opens the input that is watched; `precheck` looks at the lines of connections.
pub(crate) fn lines(args: &WatchArgs, precheck: Precheck) -> Result<Lines, CliError> {
    match (&args.listen, &args.path) {
        (Some(address), _) => listen(address, args.until_idle, precheck),
        (None, path) if path == Path::new("-") => {
            let input = BufReader::new(Reading(io::stdin()));
            Ok(Box::new(Growing::new(input, "-".into(), None, args.until_idle)))
        }
        (None, path) => {
            let file = reading::open(path)?;
            let name = path.display().to_string().into();
            let follow = args.follow.then(|| path.clone());
            Ok(Box::new(Growing::new(BufReader::new(file), name, follow, args.until_idle)))
        }
    }
}

/// The lines of an input that may grow.
struct Growing<R> {
    input: R,
    source: Arc<str>,
    number: u64,
    /// Part of the next line that was read.
    partial: Vec<u8>,
    /// Number of bytes that were read.
    taken: u64,
    /// The file that may grow.
    follow: Option<PathBuf>,
    until_idle: Option<Duration>,
}

impl<R: BufRead> Growing<R> {
    fn new(
        input: R,
        source: Arc<str>,
        follow: Option<PathBuf>,
        until_idle: Option<Duration>,
    ) -> Self {
        Growing { input, source, number: 0, partial: Vec::new(), taken: 0, follow, until_idle }
    }

    /// Returns the line that was read.
    fn take_line(&mut self) -> Result<Incoming, CliError> {
        self.number += 1;
        let bytes = std::mem::take(&mut self.partial);
        incoming(&self.source, self.number, bytes)
    }

    /// Reads further bytes, and returns whether a line is complete.
    fn read(&mut self) -> Result<bool, CliError> {
        let idle_since = Instant::now();
        loop {
            let limit = MAX_LINE_BYTES.saturating_sub(self.partial.len() as u64);
            let read = (&mut self.input).take(limit).read_until(b'\n', &mut self.partial);
            let read = match read {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(CliError::file("read", Path::new(&*self.source), error)),
            };
            self.taken += read as u64;
            if self.partial.ends_with(b"\n") {
                return Ok(true);
            }
            if self.partial.len() as u64 >= MAX_LINE_BYTES {
                return Err(too_long(&self.source));
            }
            if read > 0 {
                continue;
            }
            let is_over = self.until_idle.is_some_and(|idle| idle_since.elapsed() >= idle);
            let Some(path) = self.follow.as_ref().filter(|_| !is_over) else {
                return Ok(!self.partial.is_empty());
            };
            // Further text would be mistaken for the continuation of the old content.
            if std::fs::metadata(path).is_ok_and(|known| known.len() < self.taken) {
                return Err(CliError::with_hint(
                    format!("{} has become shorter than what was read of it", self.source),
                    "watch a file that is only appended to, and start again after a rotation",
                ));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl<R: BufRead> Iterator for Growing<R> {
    type Item = Result<Incoming, CliError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.read() {
            Ok(false) => None,
            Err(error) => Some(Err(error)),
            Ok(true) => Some(self.take_line()),
        }
    }
}

fn too_long(source: &str) -> CliError {
    CliError::usage(format!("{source}: a line of {MAX_LINE_BYTES} bytes or more"))
}

fn incoming(source: &Arc<str>, number: u64, bytes: Vec<u8>) -> Result<Incoming, CliError> {
    match String::from_utf8(bytes) {
        Ok(text) => {
            let text = text.trim_end_matches(['\n', '\r']).to_owned();
            Ok(Incoming::Line { source: Arc::clone(source), number, text })
        }
        Err(_) => Err(CliError::usage(format!("{source}:{number}: this line is not UTF-8"))),
    }
}

type Sender = SyncSender<Result<Incoming, CliError>>;

/// Listens at `HOST:PORT`, or at the path of a Unix socket.
fn listen(
    address: &str,
    until_idle: Option<Duration>,
    precheck: Precheck,
) -> Result<Lines, CliError> {
    let (sender, receiver) = sync_channel(MAX_WAITING_LINES);
    let failed = |error| CliError::Io { what: format!("cannot listen at {address}"), error };
    // A path contains a slash, which an address does not.
    let mut socket = None;
    if address.contains('/') {
        let path = Path::new(address);
        // Existing files are not removed, not even an unused socket.
        if std::fs::symlink_metadata(path).is_ok() {
            return Err(CliError::with_hint(
                format!("cannot listen at {address}: the path already exists"),
                "choose another path, or remove the existing file",
            ));
        }
        listen_unix(path, sender, precheck).map_err(failed)?;
        socket = Socket::created(path).map(Arc::new);
        if let Some(socket) = &socket {
            let socket = Arc::clone(socket);
            interrupt::before_the_end(move || socket.remove());
        }
        announce(address);
    } else {
        let listener = TcpListener::bind(address).map_err(failed)?;
        announce(&listener.local_addr().map_err(failed)?.to_string());
        spawn(move || {
            for (i, stream) in listener.incoming().flatten().enumerate() {
                serve(i, stream, sender.clone(), precheck);
            }
        })
        .map_err(failed)?;
    }
    Ok(Box::new(Received { receiver, until_idle, socket }))
}

#[cfg(unix)]
fn listen_unix(path: &Path, sender: Sender, precheck: Precheck) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    spawn(move || {
        for (i, stream) in listener.incoming().flatten().enumerate() {
            serve(i, stream, sender.clone(), precheck);
        }
    })
    .map(drop)
}

#[cfg(not(unix))]
fn listen_unix(_: &Path, _: Sender, _: Precheck) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Prints the address, so that the caller knows when to connect.
fn announce(address: &str) {
    // If standard error is closed, the message is lost.
    let _ = writeln!(io::stderr(), "listening at {address}");
}

/// Reads the lines of a connection on a separate thread, and answers them on another one.
fn serve(connection: usize, stream: impl Stream, sender: Sender, precheck: Precheck) {
    let started = stream.again().and_then(|answers| Client::start(answers)).and_then(|client| {
        let reader = client.clone();
        let started =
            spawn(move || read_connection(connection, stream, &reader, &sender, precheck));
        if started.is_err() {
            client.end();
        }
        started
    });
    if let Err(error) = started {
        // The client finds its connection closed before any line was processed.
        let what = format!("connection {connection} is refused: no thread can be started");
        report(&CliError::Io { what, error });
    }
}

fn read_connection(
    connection: usize,
    stream: impl Stream,
    client: &Client,
    sender: &Sender,
    precheck: Precheck,
) {
    let source: Arc<str> = format!("connection {connection}").into();
    let opened = Incoming::Opened { source: Arc::clone(&source), client: client.clone() };
    let mut lines = Growing::new(BufReader::new(stream), Arc::clone(&source), None, None);
    let mut is_open = sender.send(Ok(opened)).is_ok();
    while is_open && !client.is_rejected() {
        // A client that crashes resets its connection, or leaves a line incomplete: this ends
        // only its own lines.
        let line = match lines.read() {
            Ok(true) if lines.partial.ends_with(b"\n") => lines.take_line(),
            Err(error @ CliError::Usage { .. }) => Err(error),
            Ok(_) | Err(_) => break,
        };
        let checked = line.and_then(|line| {
            if let Incoming::Line { source, number, text } = &line {
                precheck(text, *number, source)?;
            }
            Ok(line)
        });
        match checked {
            Ok(line) => {
                is_open = sender.send(Ok(line)).is_ok();
                client.accept();
            }
            Err(error) => {
                client.reject(&error);
                let source = Arc::clone(&source);
                is_open = sender.send(Ok(Incoming::Wrong { source, error })).is_ok();
            }
        }
    }
    // Lines that were accepted may still be rejected, so the answers end when all are processed.
    if !is_open || sender.send(Ok(Incoming::Closed { source })).is_err() {
        client.end();
    }
    if client.is_rejected() {
        read_rest(lines.input.get_mut());
    }
}

/// The file of the Unix socket created here, which is removed with its listener.
struct Socket {
    path: PathBuf,
    /// Device and number of the file.
    identity: (u64, u64),
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<(u64, u64)> {
    None
}

impl Socket {
    fn created(path: &Path) -> Option<Self> {
        Some(Socket { path: path.to_owned(), identity: identity(path)? })
    }
}

impl Socket {
    fn remove(&self) {
        // The file may have been replaced in the meantime.
        if identity(&self.path) == Some(self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            socket.remove();
        }
    }
}

/// Lines from all connections, in the order of their arrival.
struct Received {
    receiver: Receiver<Result<Incoming, CliError>>,
    until_idle: Option<Duration>,
    /// Socket that is removed at the end.
    socket: Option<Arc<Socket>>,
}

impl Iterator for Received {
    type Item = Result<Incoming, CliError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.until_idle {
            None => self.receiver.recv().ok(),
            Some(idle) => self.receiver.recv_timeout(idle).ok(),
        }
    }
}
