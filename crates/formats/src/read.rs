//! Reads inputs as streams of histories.
//!
//! A malformed file yields no history: its first and only item is the error, with all diagnostics.
//! So a file is parsed to its end before the first history is returned. A few histories are kept in
//! memory meanwhile; if there are many, they are dropped, and once the file is known to be
//! well-formed it is read again, one history at a time. A file with a single history, however
//! large, is parsed once. Standard input and pipes cannot be read again: their histories are
//! returned as they arrive, up to the first malformed one, whose error ends the stream.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use consistory_history::{History, HistoryBuilder};

use crate::awdit::Awdit;
use crate::axe::Axe;
use crate::dbcop::DbcopText;
use crate::dbcop_json::DbcopJson;
use crate::format::Format;
use crate::gem5::Gem5;
use crate::hist::Hist;
use crate::input::{Bytes, Input, Opened, decompress, open, source_path};
use crate::intervals::{Dialect, Intervals};
use crate::jepsen::{JepsenEdn, JepsenJson, JepsenLog};
use crate::jsonl::Jsonl;
use crate::limits::{Limits, over_limit};
use crate::limo::Limo;
use crate::parse::{Fault, Line, Parse, Sink};
use crate::plume::Plume;
use crate::timekiller::TimeKiller;
use crate::viper::Viper;
use crate::{cobra, dbcop_binary, folder};
use consistory_diagnostic::Diagnostics;
use consistory_verdict::{Budget, Stopped};

/// Reason why an input yields no histories, or no further ones.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The input could not be read.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// Path of the input.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The budget ran out during reading.
    #[error("{source}: reading stopped: {stopped}")]
    Stopped {
        /// Name of the input.
        r#source: Arc<str>,
        /// Limit that was reached.
        stopped: Stopped,
    },
    /// The input is malformed.
    #[error("{0}")]
    Malformed(Diagnostics),
    /// A binary file is malformed.
    #[error("{source}: byte {at}: {message}")]
    Binary {
        /// Name of the input.
        r#source: Arc<str>,
        /// Offset of the error in bytes.
        at: usize,
        /// Description of the error.
        message: String,
    },
    /// The format cannot be recognised.
    #[error("{source}: the format cannot be recognised ({hint})")]
    UnknownFormat {
        /// Name of the input.
        r#source: Arc<str>,
        /// Remedy.
        hint: String,
    },
    /// The input contains no history.
    #[error("{source}: it contains no history ({hint})")]
    NoHistory {
        /// Name of the input.
        r#source: Arc<str>,
        /// Remedy.
        hint: String,
    },
    /// A folder contains no file with a known extension.
    #[error(
        "{}: no histories in this folder (they end in .hist, .jsonl, .ndjson, .axe, .dbcop, \
         .plume, .awdit, .edn, .jepsen, .limo, .fastlin, .fptlin or .bincode, or in .json, .log, .out \
         or .txt if they cannot be anything else, and may be compressed as .gz or .zst)",
        path.display()
    )]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
}

impl ReadError {
    /// Converts an error of reading the bytes of an input.
    pub(crate) fn io(source: &Arc<str>, error: io::Error) -> Self {
        match over_limit(&error) {
            Some(stopped) => ReadError::Stopped { source: Arc::clone(source), stopped },
            None => ReadError::Io { path: source_path(source), error },
        }
    }
}

/// Reads the histories of an input. Unless a format is given, it is recognised by the name and the
/// beginning of the input.
///
/// If a file is malformed, the only item is its error.
pub fn read(input: &Input, format: Option<Format>) -> Histories {
    let state = State::Unopened { input: input.clone(), format };
    let limits = Limits::new(Budget::unlimited());
    Histories { source: input.to_string().into(), state, limits, spent: Duration::ZERO }
}

/// Reads the histories of an input; the budget applies to each history separately.
///
/// A history that exceeds it is an error, [`ReadError::Stopped`], and ends the stream. Time is the
/// processor time of the reading thread, if the budget can measure it; waiting for a pipe is not
/// counted.
pub fn read_within(input: &Input, format: Option<Format>, budget: Budget) -> Histories {
    Histories { limits: Limits::new(budget), ..read(input, format) }
}

/// Reads the histories of a stream, which may be compressed, as they arrive.
///
/// An error ends the stream.
pub fn read_from(
    bytes: Box<dyn BufRead + Send>,
    source_name: &str,
    format: Option<Format>,
) -> Histories {
    let source: Arc<str> = source_name.into();
    let limits = Limits::new(Budget::unlimited());
    Histories { source, state: State::Unstarted { bytes, format }, limits, spent: Duration::ZERO }
}

/// Parses a text.
pub fn parse_str(text: &str, format: Format, source: &str) -> Result<Vec<History>, Diagnostics> {
    let source: Arc<str> = source.into();
    let bytes = Box::new(io::Cursor::new(text.as_bytes().to_vec()));
    let limits = Limits::new(Budget::unlimited());
    let mut stream = Stream::new(source.clone(), format, bytes, &limits);
    let histories: Result<Vec<History>, ReadError> = std::iter::from_fn(|| stream.next()).collect();
    match histories {
        Ok(histories) if !histories.is_empty() => Ok(histories),
        Err(ReadError::Malformed(diagnostics)) => Err(diagnostics),
        Ok(_) | Err(_) => {
            let mut sink = Sink::new(source);
            let line = Line { number: 1, text: "" };
            sink.report(line, Fault::new(0..0, "it contains no history").hint(NO_HISTORY));
            Err(sink.diagnostics)
        }
    }
}

const NO_HISTORY: &str = "it is empty, or has comments and separators only";

/// Limits of the data kept while a file is parsed for the first time: bytes of the file, and
/// histories.
const MAX_KEPT_BYTES: u64 = 8 << 20;
const MAX_KEPT_HISTORIES: usize = 10_000;

/// Iterator over the histories of an input.
pub struct Histories {
    source: Arc<str>,
    state: State,
    limits: Limits,
    /// Time that reading the last history took.
    spent: Duration,
}

enum State {
    Unopened {
        input: Input,
        format: Option<Format>,
    },
    Unstarted {
        bytes: Bytes,
        format: Option<Format>,
    },
    /// All histories were parsed and kept.
    Kept(VecDeque<(History, Duration)>),
    /// Histories are parsed one by one.
    Streaming(Box<Stream>),
    Done,
}

impl Histories {
    /// Returns the name of the input.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the time that reading the last history took, as the budget counts it; zero without a
    /// limit of time.
    pub fn spent(&self) -> Duration {
        self.spent
    }

    /// Opens the input and decides how to read it.
    fn start(&mut self, state: State) -> Result<State, ReadError> {
        let failed = |error| ReadError::io(&self.source, error);
        let limits = &self.limits;
        match state {
            State::Unopened { input: Input::Folder(path, format), .. } => {
                let history = folder::read(&path, format, limits)?;
                Ok(State::Kept(VecDeque::from([(history, limits.spent())])))
            }
            State::Unopened { input, format } => {
                let Opened { bytes, is_repeatable } = open(&input, limits).map_err(failed)?;
                let (mut stream, format) = Stream::start(&self.source, bytes, format, limits)?;
                if !is_repeatable {
                    return Ok(State::Streaming(Box::new(stream)));
                }
                match first_pass(&mut stream)? {
                    Some(kept) => Ok(State::Kept(kept)),
                    None => {
                        drop(stream);
                        let Opened { bytes, .. } = open(&input, limits).map_err(failed)?;
                        let (stream, _) = Stream::start(&self.source, bytes, Some(format), limits)?;
                        Ok(State::Streaming(Box::new(stream)))
                    }
                }
            }
            State::Unstarted { bytes, format } => {
                let bytes = decompress(bytes, limits).map_err(failed)?;
                let (stream, _) = Stream::start(&self.source, bytes, format, limits)?;
                Ok(State::Streaming(Box::new(stream)))
            }
            started => Ok(started),
        }
    }
}

impl Iterator for Histories {
    type Item = Result<History, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let state = std::mem::replace(&mut self.state, State::Done);
        // On failure, the state remains `Done`.
        let mut state = match self.start(state) {
            Ok(state) => state,
            Err(error) => return Some(Err(error)),
        };
        let item = match &mut state {
            State::Kept(histories) => histories.pop_front().map(Ok),
            State::Streaming(stream) => {
                stream.next().map(|item| item.map(|history| (history, self.limits.spent())))
            }
            _ => None,
        };
        if let Some(Ok(_)) = item {
            self.state = state;
        }
        item.map(|item| {
            let (history, spent) = item?;
            self.spent = spent;
            Ok(history)
        })
    }
}

/// Parses a file to its end, and returns its histories if they are few.
fn first_pass(stream: &mut Stream) -> Result<Option<VecDeque<(History, Duration)>>, ReadError> {
    let mut kept = Some(VecDeque::new());
    while let Some(history) = stream.next() {
        let history = history?;
        if let Some(histories) = &mut kept {
            histories.push_back((history, stream.limits.spent()));
            let is_much =
                stream.bytes_read > MAX_KEPT_BYTES || histories.len() > MAX_KEPT_HISTORIES;
            if is_much && histories.len() > 1 {
                kept = None;
            }
        }
    }
    Ok(kept)
}

/// Parses histories from lines.
struct Stream {
    bytes: Bytes,
    parser: Box<dyn Parse>,
    /// Format, if it does not consist of lines.
    binary: Option<Format>,
    sink: Sink,
    line: Vec<u8>,
    line_number: u64,
    bytes_read: u64,
    count: u64,
    is_over: bool,
    limits: Limits,
}

/// A parser for binary formats, which is never called.
struct Never;

impl Parse for Never {
    fn line(&mut self, _: Line<'_>, _: &mut Sink) {}

    fn end(&mut self, _: &mut Sink) {}
}

/// Longest supported line in bytes, so that an endless line does not use all memory.
const MAX_LINE: u64 = 1 << 31;

impl Stream {
    fn new(source: Arc<str>, format: Format, bytes: Bytes, limits: &Limits) -> Self {
        let parser: Box<dyn Parse> = match format {
            Format::Hist => Box::<Hist>::default(),
            Format::Jsonl => Box::<Jsonl>::default(),
            Format::Axe => Box::<Axe>::default(),
            Format::DbcopText => Box::<DbcopText>::default(),
            Format::DbcopJson => Box::<DbcopJson>::default(),
            Format::Plume => Box::<Plume>::default(),
            Format::Awdit => Box::<Awdit>::default(),
            Format::Edn => Box::<JepsenEdn>::default(),
            Format::JepsenJson => Box::<JepsenJson>::default(),
            Format::Jepsen => Box::<JepsenLog>::default(),
            Format::Limo => Box::<Limo>::default(),
            Format::Fastlin => Box::new(Intervals::new(Dialect::Fastlin)),
            Format::Fptlin => Box::new(Intervals::new(Dialect::Fptlin)),
            Format::TimeKiller => Box::<TimeKiller>::default(),
            Format::Viper => Box::<Viper>::default(),
            Format::Gem5 => Box::<Gem5>::default(),
            Format::DbcopBinary | Format::Cobra => Box::new(Never),
        };
        Stream {
            bytes,
            parser,
            binary: format.is_binary().then_some(format),
            sink: Sink::limited(source, limits),
            line: Vec::new(),
            line_number: 0,
            bytes_read: 0,
            count: 0,
            is_over: false,
            limits: limits.clone(),
        }
    }

    /// Starts to read; recognises the format if none is given.
    fn start(
        source: &Arc<str>,
        bytes: Bytes,
        format: Option<Format>,
        limits: &Limits,
    ) -> Result<(Self, Format), ReadError> {
        let format = format.or_else(|| Format::from_path(Path::new(&**source)));
        let (bytes, format) = match format {
            Some(format) => (bytes, format),
            None => sniff(source, bytes)?,
        };
        Ok((Stream::new(source.clone(), format, bytes, limits), format))
    }

    fn next(&mut self) -> Option<Result<History, ReadError>> {
        self.limits.begin();
        loop {
            if let Some(history) = self.sink.finished.pop_front() {
                self.count += 1;
                return Some(Ok(history));
            }
            if self.is_over {
                return None;
            }
            if let Some(format) = self.binary {
                self.is_over = true;
                return Some(self.read_binary(format));
            }
            let stepped = self.step();
            if let Some(stopped) = self.limits.stopped() {
                self.is_over = true;
                let source = self.sink.source.clone();
                return Some(Err(ReadError::Stopped { source, stopped }));
            }
            if let Err(error) = stepped {
                self.is_over = true;
                return Some(Err(ReadError::io(&self.sink.source, error)));
            }
            if self.is_over {
                return self.last();
            }
        }
    }

    /// Reads an input that does not consist of lines; it is one history.
    fn read_binary(&mut self, format: Format) -> Result<History, ReadError> {
        let mut bytes = Vec::new();
        let source = self.sink.source.clone();
        if let Err(error) = self.bytes.read_to_end(&mut bytes) {
            return Err(ReadError::io(&source, error));
        }
        let built = match format {
            Format::Cobra => {
                let mut builder = HistoryBuilder::new();
                builder.null_is_not_zero();
                let session = builder.session("0");
                cobra::read(&bytes, session, &mut builder, &self.limits).map(|()| builder)
            }
            _ => dbcop_binary::read(&bytes, &self.limits),
        };
        if let Some(stopped) = self.limits.stopped() {
            return Err(ReadError::Stopped { source, stopped });
        }
        let wrong = |at, message| ReadError::Binary { source: source.clone(), at, message };
        let builder = built.map_err(|(at, message)| wrong(at, message))?;
        builder.finish().map_err(|error| wrong(0, error.to_string()))
    }

    /// Returns the last item, which results from the end of the input.
    fn last(&mut self) -> Option<Result<History, ReadError>> {
        let diagnostics = std::mem::take(&mut self.sink.diagnostics);
        if !diagnostics.is_empty() {
            self.sink.finished.clear();
            return Some(Err(ReadError::Malformed(diagnostics)));
        }
        if let Some(history) = self.sink.finished.pop_front() {
            self.count += 1;
            return Some(Ok(history));
        }
        let source = self.sink.source.clone();
        let error = ReadError::NoHistory { source, hint: NO_HISTORY.into() };
        (self.count == 0).then_some(Err(error))
    }

    /// Reads and parses a line, or handles the end of the input.
    fn step(&mut self) -> io::Result<()> {
        self.line.clear();
        let read = self.bytes.by_ref().take(MAX_LINE).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            self.is_over = true;
            self.parser.end(&mut self.sink);
            return Ok(());
        }
        self.bytes_read += read as u64;
        self.line_number += 1;
        let number = self.line_number;
        let mut line = self.line.as_slice();
        line = line.strip_suffix(b"\n").unwrap_or(line);
        line = line.strip_suffix(b"\r").unwrap_or(line);
        if number == 1 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        match std::str::from_utf8(line) {
            Ok(text) if !line.contains(&0) && (read as u64) < MAX_LINE => {
                self.parser.line(Line { number, text }, &mut self.sink);
            }
            Ok(text) if (read as u64) < MAX_LINE => {
                // Errors in the rest of the input would be meaningless.
                self.is_over = true;
                let at = line.iter().position(|&b| b == 0).unwrap_or(0);
                let fault = Fault::new(at..at + 1, "a zero byte: this is not text")
                    .hint("it may be a binary file, or a format that is not known here");
                self.sink.report(Line { number, text }, fault);
            }
            Ok(_) => {
                self.is_over = true;
                let fault = Fault::new(0..0, format!("a line of {MAX_LINE} bytes or more"));
                self.sink.report(Line { number, text: "" }, fault);
            }
            Err(error) => {
                let text = String::from_utf8_lossy(line);
                // The valid prefix is the same in both.
                let at = error.valid_up_to();
                let message = format!("byte {:#04x} is not UTF-8", line[at]);
                let hint = if line.starts_with(b"\xff\xfe") || line.starts_with(b"\xfe\xff") {
                    "it looks like UTF-16: save it as UTF-8"
                } else {
                    "it may be a binary file, or text in another encoding: save it as UTF-8"
                };
                let fault = Fault::new(at..at + 1, message).hint(hint);
                self.is_over = line.contains(&0);
                self.sink.report(Line { number, text: &text }, fault);
            }
        }
        Ok(())
    }
}

/// Number of bytes at the beginning of an input by which its format is recognised.
pub(crate) const SNIFFED_BYTES: usize = 8 << 10;

/// Recognises the format, and returns the stream from its beginning.
fn sniff(source: &Arc<str>, mut bytes: Bytes) -> Result<(Bytes, Format), ReadError> {
    let mut beginning: Vec<u8> = Vec::new();
    let mut found;
    loop {
        let failed = |error| ReadError::io(source, error);
        let buffer = bytes.fill_buf().map_err(failed)?;
        let is_over = buffer.is_empty();
        let length = buffer.len().min(SNIFFED_BYTES);
        beginning.extend_from_slice(&buffer[..length]);
        bytes.consume(length);
        // An incomplete last line may be misleading, so it is ignored.
        let complete = match beginning.iter().rposition(|&b| b == b'\n') {
            Some(end) if !is_over && beginning.len() < SNIFFED_BYTES => &beginning[..=end],
            None if !is_over && beginning.len() < SNIFFED_BYTES => continue,
            _ => &beginning[..],
        };
        let text = String::from_utf8_lossy(complete);
        // The formats of JSON differ only after the opening bracket.
        if text.trim() == "[" && !is_over && beginning.len() < SNIFFED_BYTES {
            continue;
        }
        found = Format::sniff(text.trim_start_matches('\u{feff}'));
        if found.is_some() || is_over || beginning.len() >= SNIFFED_BYTES {
            break;
        }
    }
    if beginning.contains(&0) {
        let binary = [
            (Format::DbcopBinary, dbcop_binary::looks_like(&beginning)),
            (Format::Cobra, cobra::looks_like(&beginning)),
        ];
        found = binary.into_iter().find_map(|(format, fits)| fits.then_some(format)).or(found);
    }
    let is_empty = beginning.iter().all(u8::is_ascii_whitespace);
    match found {
        Some(format) => Ok((Box::new(io::Cursor::new(beginning).chain(bytes)), format)),
        None if is_empty && beginning.len() < SNIFFED_BYTES => {
            Err(ReadError::NoHistory { source: source.clone(), hint: NO_HISTORY.into() })
        }
        None => {
            let hint = if beginning.contains(&0) {
                "it looks like a binary file".into()
            } else {
                format!("say which of {} it is", Format::ALL.map(Format::name).join(", "))
            };
            Err(ReadError::UnknownFormat { source: source.clone(), hint })
        }
    }
}
