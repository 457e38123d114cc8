//! Output to standard output, or to a file that appears only when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use consistory_faults::{Point, fail};

use crate::args::OutputFormat;
use crate::error::CliError;

/// Standard output, or a file.
pub(crate) enum Output {
    Stdout(Lines),
    File { file: BufWriter<File>, partial: Option<Partial>, path: PathBuf },
}

/// A file that is not complete yet.
pub(crate) enum Partial {
    /// A file without a name, which the system removes if the process ends for any reason.
    Unnamed,
    /// A file next to its destination, for file systems that do not support files without a name;
    /// it is removed unless it is moved to the destination.
    Beside(PathBuf),
}

impl Partial {
    /// Creates a file that will be moved to `path`.
    fn create(path: &Path) -> io::Result<(File, Self)> {
        match create_unnamed(path) {
            Some(file) => Ok((file, Partial::Unnamed)),
            None => create_beside(path).map(|(name, file)| (file, Partial::Beside(name))),
        }
    }

    /// Moves the complete file to `path`, and replaces an existing file.
    fn move_to(&self, file: &File, path: &Path) -> io::Result<()> {
        match self {
            Partial::Beside(name) => std::fs::rename(name, path),
            Partial::Unnamed => {
                // Linking a file cannot replace another one, so it gets a temporary name first.
                let (name, ()) = with_name_beside(path, |name| give_name(file, name))?;
                std::fs::rename(&name, path).inspect_err(|_| {
                    let _ = std::fs::remove_file(&name);
                })
            }
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if let Partial::Beside(name) = self {
            // The file no longer exists if it was moved.
            let _ = std::fs::remove_file(name);
        }
    }
}

/// Creates a file without a name in the folder of `path`, if the file system supports such files
/// and can name them later.
#[cfg(target_os = "linux")]
fn create_unnamed(path: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let flag = i32::try_from(rustix::fs::OFlags::TMPFILE.bits()).ok()?;
    if !Path::new("/proc/self/fd").exists() {
        return None;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).custom_flags(flag).open(folder.unwrap_or(Path::new("."))).ok()
}

/// Links an unnamed file to a name, unless the name is taken.
#[cfg(target_os = "linux")]
fn give_name(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd;
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, open, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn create_unnamed(_: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn give_name(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Output {
    /// Opens a file, or standard output if there is none.
    ///
    /// The file has no name, or a temporary one in the folder of its destination, until
    /// [`Output::finish`] moves it to the destination. So a file found there is complete. Devices,
    /// pipes and targets of links are written directly.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = path else {
            return Ok(Output::Stdout(Lines::open()?));
        };
        let is_special = std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file());
        let opened = match is_special {
            true => File::create(path).map(|file| (file, None)),
            false => Partial::create(path).map(|(file, partial)| (file, Some(partial))),
        };
        let (file, partial) = opened.map_err(|e| CliError::file("create", path, e))?;
        let file = BufWriter::with_capacity(1 << 16, file);
        Ok(Output::File { file, partial, path: path.to_owned() })
    }

    /// Writes the rest of the output and moves a file to its destination.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        match self {
            Output::Stdout(mut out) => out.flush().map_err(CliError::output),
            Output::File { mut file, partial, path } => {
                fail(Point::Write)
                    .and_then(|()| file.flush())
                    .map_err(|e| CliError::file("write", &path, e))?;
                let Some(partial) = partial else { return Ok(()) };
                let moved = partial.move_to(file.get_ref(), &path);
                moved.map_err(|e| CliError::file("write", &path, e))
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Stdout(out) => out.write(bytes),
            Output::File { file, .. } => fail(Point::Write).and_then(|()| file.write(bytes)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(out) => out.flush(),
            Output::File { file, .. } => file.flush(),
        }
    }
}

/// Standard output in blocks of whole lines: the output ends with a complete line even if the process
/// is stopped or the disk is full.
///
/// Signals wait for the end of a write ([`between_writes`]). Only SIGKILL can cut a line, and no
/// program can prevent it: if the process is killed, the kernel ends a write to a file between two
/// pages. A file named by `--output` appears when it is complete, and `check --resume` removes an
/// incomplete line.
pub(crate) struct Lines {
    out: StandardOutput,
    buffer: Vec<u8>,
    /// Whether a write has failed.
    is_broken: bool,
}

/// Size of the buffer in bytes.
const BLOCK: usize = 1 << 16;

impl Lines {
    fn open() -> Result<Self, CliError> {
        Ok(Lines { out: StandardOutput::open()?, buffer: Vec::new(), is_broken: false })
    }

    /// Writes the first bytes of the buffer.
    fn pass_on(&mut self, length: usize) -> io::Result<()> {
        let written = self.out.write_whole(&self.buffer[..length]);
        self.is_broken |= written.is_err();
        self.buffer.drain(..length);
        written
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BLOCK
            && let Some(end) = self.buffer.iter().rposition(|&byte| byte == b'\n')
        {
            self.pass_on(end + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.pass_on(self.buffer.len()) }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // After an error that is reported elsewhere, whole lines are still printed.
        let end = self.buffer.iter().rposition(|&byte| byte == b'\n');
        if let (Some(end), false) = (end, self.is_broken) {
            let _ = self.pass_on(end + 1);
        }
    }
}

/// Creates a file with a new name in the folder of another one; existing files are never replaced.
pub(crate) fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    with_name_beside(path, |name| File::create_new(name))
}

/// Tries names in the folder of a file until one is free; returns the name with the result of
/// `create`.
fn with_name_beside<T>(
    path: &Path,
    create: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let name = path.file_name().unwrap_or_default();
    for number in 0u32.. {
        let mut other = name.to_owned();
        other.push(".partial");
        if number > 0 {
            other.push(number.to_string());
        }
        let other = path.with_file_name(other);
        match create(&other) {
            Ok(created) => return Ok((other, created)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("there is no free name for a temporary file in the same folder"))
}

/// Refuses to write to a file that is also read.
pub(crate) fn refuse_input(output: &Path, inputs: &[PathBuf]) -> Result<(), CliError> {
    let Ok(place) = output.canonicalize() else { return Ok(()) };
    let is_it = |input: &&PathBuf| input.canonicalize().is_ok_and(|input| input == place);
    match inputs.iter().find(is_it) {
        Some(_) => Err(CliError::with_hint(
            format!("{} is an input, and would be replaced by the output", output.display()),
            "write to another file",
        )),
        None => Ok(()),
    }
}

/// Prints a text at once, so that the output consists of whole lines.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<(), CliError> {
    StandardOutput::open()?.write_whole(text.as_ref()).map_err(CliError::output)
}

/// Writes a whole file.
pub(crate) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut Output) -> io::Result<()>,
) -> Result<(), CliError> {
    let mut out = Output::open(Some(path))?;
    write(&mut out).map_err(|error| CliError::file("write", path, error))?;
    out.finish()
}

/// Standard output without a buffer: the output consists of complete lines even if the process is
/// stopped.
pub(crate) struct StandardOutput {
    file: File,
    is_terminal: bool,
    /// Width of the terminal, if there is one.
    columns: Option<usize>,
}

/// Returns the width of the terminal if standard output is one.
fn terminal_columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    (width.0 > 0).then_some(usize::from(width.0))
}

/// Returns the maximum width of lines: the width of the terminal, and unlimited elsewhere.
pub(crate) fn columns() -> usize {
    terminal_columns().unwrap_or(usize::MAX)
}

/// Returns the maximum width of diagrams: the width of the terminal, and 116 columns elsewhere.
pub(crate) fn diagram_columns() -> usize {
    terminal_columns().map_or(116, |columns| columns.clamp(24, 200))
}

impl StandardOutput {
    pub(crate) fn open() -> Result<Self, CliError> {
        let stdout = io::stdout();
        let file = stdout.as_fd().try_clone_to_owned().map_err(CliError::output)?.into();
        let is_terminal = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        Ok(StandardOutput { file, is_terminal, columns: terminal_columns() })
    }

    /// Wraps a file to which lines are appended.
    pub(crate) fn appending(file: File) -> Self {
        StandardOutput { file, is_terminal: false, columns: None }
    }

    pub(crate) fn write(&mut self, text: &[u8], format: OutputFormat) -> io::Result<()> {
        let folded;
        let mut text = text;
        if let (OutputFormat::Text, Some(columns)) = (format, self.columns) {
            folded = folded_lines(&String::from_utf8_lossy(text), columns);
            text = folded.as_bytes();
        }
        if format == OutputFormat::Json || self.is_terminal {
            return self.write_whole(text);
        }
        let mut plain = anstream::StripStream::new(Vec::new());
        plain.write_all(text)?;
        self.write_whole(&plain.into_inner())
    }

    /// Writes a text completely, or not at all if the output is a file that cannot hold it, as on a
    /// full disk.
    fn write_whole(&mut self, text: &[u8]) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let length = self.file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
        let written = fail(Point::Write).and_then(|()| self.file.write_all(text));
        if let (Err(_), Some(length)) = (&written, length)
            && self.file.metadata().is_ok_and(|data| data.len() > length)
        {
            // Only the bytes added here are removed.
            let _ = self.file.set_len(length);
        }
        written
    }
}

/// Held while standard output, or a file of lines, is written to.
static WRITING: Mutex<()> = Mutex::new(());

/// Waits for the end of the current write, for at most `limit`; no write begins while the result is
/// held.
pub(crate) fn between_writes(limit: Duration) -> Option<MutexGuard<'static, ()>> {
    let deadline = Instant::now() + limit;
    loop {
        match WRITING.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(100)),
        }
    }
}

/// Aligns a table that keeps to the width of the terminal, if standard output is one.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    consistory_draw::table_within(header, rows, columns())
}

/// Breaks the long lines of a page for people if standard output is a terminal.
pub(crate) fn for_terminal(text: String) -> String {
    match terminal_columns() {
        Some(columns) => folded_lines(&text, columns),
        None => text,
    }
}

fn folded_lines(text: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        // There is a rule below the names of a program's threads.
        if !is_program_line(line) || !lines.peek().is_some_and(|next| next.contains("-+-")) {
            out += &folded_line(line, columns);
            continue;
        }
        let mut program = vec![line];
        while let Some(next) = lines.next_if(|next| is_program_line(next)) {
            program.push(next);
        }
        out += &folded_program(&program, columns);
    }
    out
}

/// Checks whether a line may belong to a program whose threads are printed side by side.
fn is_program_line(line: &str) -> bool {
    line.contains(" | ") || line.contains("-+-")
}

/// Arranges threads below one another if they do not fit next to one another.
fn folded_program(lines: &[&str], columns: usize) -> String {
    if lines.iter().all(|line| shown_width(line.trim_end()) <= columns) {
        return lines.concat();
    }
    let is_rule = |line: &str| line.contains("-+-");
    let cells: Vec<Vec<&str>> = lines
        .iter()
        .map(|line| line.trim_end().split(if is_rule(line) { "-+-" } else { " | " }).collect())
        .collect();
    let threads = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |thread: usize| {
        cells.iter().filter_map(|row| row.get(thread)).map(|cell| shown_width(cell)).max()
    };
    let widths: Vec<usize> = (0..threads).map(|thread| width_of(thread).unwrap_or(0)).collect();
    let mut out = String::new();
    let mut first = 0;
    while first < threads {
        let mut end = first + 1;
        let mut used = widths[first];
        while end < threads && used + 3 + widths[end] <= columns {
            used += 3 + widths[end];
            end += 1;
        }
        if first > 0 {
            out.push('\n');
        }
        for (row, line) in cells.iter().zip(lines) {
            let part: Vec<&str> = row.iter().take(end).skip(first).copied().collect();
            let shown = part.join(if is_rule(line) { "-+-" } else { " | " });
            if !shown.trim().is_empty() {
                out += shown.trim_end();
                out.push('\n');
            }
        }
        first = end;
    }
    out
}

/// Breaks a line at spaces so that it fits the terminal; continuation lines are indented like its
/// text.
///
/// In a line with columns the last column is broken. Lines of diagrams are left unchanged, and so
/// is a word that is too long by itself. Escape sequences have no width.
fn folded_line(line: &str, columns: usize) -> String {
    // A line of a litmus test in file format is also left unchanged.
    let is_drawn = line.contains(['├', '─', '╌', '│'])
        || (line.contains(" | ") && line.trim_end().ends_with(" ;"));
    if is_drawn || shown_width(line.trim_end()) <= columns || columns < 20 {
        return line.to_owned();
    }
    let body = line.trim_start();
    let mut indent = line.len() - body.len();
    // Columns are separated by two spaces.
    let last_column = line.trim_end().rfind("  ").filter(|&at| at >= indent).map(|at| at + 2);
    let (head, body) = line.split_at(last_column.unwrap_or(indent));
    if last_column.is_some() {
        indent = shown_width(head);
    }
    // The continuation of a list item is aligned with its text.
    let marker = body.split(' ').next().unwrap_or_default();
    let is_numbered = marker.strip_suffix('.').is_some_and(|digits| digits.parse::<u32>().is_ok());
    if marker == "-" || is_numbered {
        indent += marker.len() + 1;
    }
    let indent = indent.min(columns / 2);
    let mut out = head.to_owned();
    let mut used = shown_width(head);
    let mut is_first = true;
    for word in body.trim_end().split(' ') {
        let width = shown_width(word);
        if !is_first && used + 1 + width > columns {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        } else if !is_first {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += width;
        is_first = false;
    }
    if line.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Breaks a command between its options if it is too wide after a label, as a shell reads it.
pub(crate) fn folded_command(label: &str, command: &str) -> String {
    command_within(label, command, columns())
}

fn command_within(label: &str, command: &str, columns: usize) -> String {
    let indent = label.chars().count();
    let mut out = label.to_owned();
    let mut used = indent;
    for (at, option) in command.split(" --").enumerate() {
        let option = if at == 0 { option.to_owned() } else { format!("--{option}") };
        let width = option.chars().count();
        // Leave room for the space and the continuation character.
        if at > 0 && used + 1 + width + 2 > columns {
            out += &format!(" \\\n{}", " ".repeat(indent));
            used = indent;
        } else if at > 0 {
            out.push(' ');
            used += 1;
        }
        out += &option;
        used += width;
    }
    out
}

/// Counts the characters that a terminal shows, without escape sequences.
fn shown_width(text: &str) -> usize {
    let mut width = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            chars.by_ref().take_while(|c| !c.is_ascii_alphabetic()).for_each(drop);
        } else {
            width += 1;
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_the_width_of_the_terminal() {
        let line = "  1. t0 wrote x=1 \u{1b}[31m(t0:0)\u{1b}[0m, then wrote y=1 (t0:1).\n";
        let folded = folded_line(line, 30);
        assert_eq!(
            folded,
            "  1. t0 wrote x=1 \u{1b}[31m(t0:0)\u{1b}[0m, then\n     wrote y=1 (t0:1).\n"
        );
        assert!(folded.lines().all(|line| shown_width(line) <= 30));
        assert_eq!(folded_line(line, 80), line);
        let bar = "  t0 ├ enqueue(1) => null #1 ┤   ├ dequeue() => 1 #2 ┤\n";
        assert_eq!(folded_line(bar, 30), bar);
        let columns = "sc    => tso   proved: with one ww, both relations are part of it\n";
        assert_eq!(
            folded_line(columns, 40),
            "sc    => tso   proved: with one ww, both\n               relations are part of it\n"
        );
    }

    #[test]
    fn threads_that_do_not_fit_stand_below_one_another() {
        let program = "T1       | T2       | T3\n---------+----------+---------\n\
                       X <- 1   | Y <- 1   | X -> r1\n         |          | Y -> r2\nOutcome: 1\n";
        assert_eq!(folded_lines(program, 40), program);
        assert_eq!(
            folded_lines(program, 20),
            "T1       | T2\n---------+---------\nX <- 1   | Y <- 1\n         |\n\n\
             T3\n--------\nX -> r1\nY -> r2\nOutcome: 1\n"
        );
        let file = " P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n";
        assert_eq!(folded_lines(file, 20), file);
    }

    #[test]
    fn a_long_command_goes_on_as_a_shell_reads_it() {
        let command = "consistory test redis --seed 0 --time 20s --faults partition";
        assert_eq!(command_within("again:   ", command, 80), format!("again:   {command}"));
        assert_eq!(
            command_within("again:   ", command, 45),
            "again:   consistory test redis --seed 0 \\\n         --time 20s --faults partition"
        );
    }
}
