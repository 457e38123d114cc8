//! The answers that a client gets on its connection.
//!
//! A thread of its own writes them, so that a client that reads no answers holds up nobody: what it
//! is owed is a number of `ok` lines, and at most one last line.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use consistory_history::escaped;
use consistory_work::spawn;
use rustc_hash::FxHashMap;

use crate::error::{CliError, report};

/// Longest time for which the rest of a rejected client's input is read, so that it gets its answer.
const REST: Duration = Duration::from_secs(1);

/// A connection that can be closed in one direction.
pub(super) trait Stream: std::io::Read + Write + Send + Sized + 'static {
    /// Returns another handle of the same connection.
    fn again(&self) -> std::io::Result<Self>;
    /// Ends the answers.
    fn end_answers(&self);
    /// Limits the time of a read.
    fn hurry(&self, limit: Duration);
}

macro_rules! stream {
    ($name:ty) => {
        impl Stream for $name {
            fn again(&self) -> std::io::Result<Self> {
                self.try_clone()
            }

            fn end_answers(&self) {
                // The client may have closed the connection before.
                let _ = self.shutdown(Shutdown::Write);
            }

            fn hurry(&self, limit: Duration) {
                let _ = self.set_read_timeout(Some(limit));
            }
        }
    };
}

stream!(TcpStream);
#[cfg(unix)]
stream!(UnixStream);

/// The client of a connection.
#[derive(Clone)]
pub(crate) struct Client(Arc<Shared>);

#[derive(Default)]
struct Shared {
    owed: Mutex<Owed>,
    changed: Condvar,
}

/// The answers that are not written yet.
#[derive(Default)]
struct Owed {
    accepted: u64,
    /// Answer to a line that was rejected.
    rejection: Option<String>,
    is_rejected: bool,
    is_over: bool,
}

impl Client {
    /// Starts the thread that answers.
    pub(super) fn start(stream: impl Stream) -> std::io::Result<Self> {
        let client = Client(Arc::default());
        let writer = client.clone();
        spawn(move || writer.write_to(stream))?;
        Ok(client)
    }

    fn owed(&self) -> MutexGuard<'_, Owed> {
        self.0.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers `ok` to a line.
    pub(super) fn accept(&self) {
        self.owed().accepted += 1;
        self.0.changed.notify_one();
    }

    /// Answers a line with the reason for which it is rejected, and ends the answers.
    pub(super) fn reject(&self, reason: &CliError) {
        let mut owed = self.owed();
        if !std::mem::replace(&mut owed.is_rejected, true) {
            let reason = reason.to_string();
            let words: Vec<&str> = reason.split_whitespace().collect();
            owed.rejection = Some(format!("error: {}\n", words.join(" ")));
        }
        drop(owed);
        self.0.changed.notify_one();
    }

    /// Checks whether a line of this client was rejected.
    pub(super) fn is_rejected(&self) -> bool {
        self.owed().is_rejected
    }

    /// Ends the answers when all are written.
    pub(super) fn end(&self) {
        self.owed().is_over = true;
        self.0.changed.notify_one();
    }

    fn write_to(&self, mut stream: impl Stream) {
        let is_idle =
            |owed: &mut Owed| owed.accepted == 0 && owed.rejection.is_none() && !owed.is_over;
        loop {
            let waited = self.0.changed.wait_while(self.owed(), is_idle);
            let mut owed = waited.unwrap_or_else(PoisonError::into_inner);
            let accepted = std::mem::take(&mut owed.accepted);
            let (rejection, is_over) = (owed.rejection.take(), owed.is_over);
            drop(owed);
            let is_last = is_over || rejection.is_some();
            let text = "ok\n".repeat(accepted as usize) + &rejection.unwrap_or_default();
            // A client need not read answers, and may be gone.
            let is_written = stream.write_all(text.as_bytes()).is_ok();
            if is_last {
                stream.end_answers();
            }
            if is_last || !is_written {
                return;
            }
        }
    }
}

/// Whether the further lines of a connection count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Yes,
    No,
}

/// The connections of a watch.
#[derive(Default)]
pub(super) struct Clients {
    /// The clients of the connections, and whether one of their lines was rejected when it was its
    /// turn; the lines before it count.
    open: FxHashMap<Arc<str>, (Client, Counts)>,
    /// Number of lines that were rejected.
    pub(super) rejected: u64,
}

impl Clients {
    /// Adds a connection.
    pub(super) fn open(&mut self, source: Arc<str>, client: Client) {
        self.open.insert(source, (client, Counts::Yes));
    }

    /// Checks whether the lines of a source count: those of a client after a rejected line do not.
    pub(super) fn counts(&self, source: &str) -> bool {
        self.open.get(source).is_none_or(|(_, counts)| *counts == Counts::Yes)
    }

    /// Rejects a line of a connection, and says so; fails with the reason if the line is of no
    /// connection.
    pub(super) fn reject(&mut self, source: &str, error: CliError) -> Result<(), CliError> {
        let Some((client, counts)) = self.open.get_mut(source) else { return Err(error) };
        client.reject(&error);
        *counts = Counts::No;
        self.rejected += 1;
        report(&error);
        let note = "the line above is rejected and its connection closed; the others go on";
        // If standard error is closed, the message is lost.
        let _ = writeln!(std::io::stderr(), "warning: {}: {note}", escaped(source));
        Ok(())
    }

    /// Ends a connection, whose lines are all processed.
    pub(super) fn close(&mut self, source: &str) {
        if let Some((client, _)) = self.open.remove(source) {
            client.end();
        }
    }
}

/// Reads the rest of a rejected client's input for a short time: closing a connection with unread
/// input could destroy the last answer.
pub(super) fn read_rest(stream: &mut impl Stream) {
    stream.hurry(REST);
    let started = std::time::Instant::now();
    let mut rest = [0; 1 << 12];
    while started.elapsed() < REST && stream.read(&mut rest).is_ok_and(|read| read > 0) {}
}
