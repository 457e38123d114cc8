//! Small programs that are run for their effect, each with a limit of time.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::DriveError;

/// The seconds that any helper program may take.
const TOOL_SECONDS: &str = "60";

/// Runs a program and returns its output; `input` is its standard input.
pub(crate) fn run<A: AsRef<OsStr>>(program: &[A], input: &str) -> Result<String, DriveError> {
    let shown = || {
        let words: Vec<_> = program.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        words.join(" ")
    };
    let mut child = Command::new("timeout")
        .args(["--signal=KILL", TOOL_SECONDS])
        .args(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| DriveError::setup(format!("{}: {error}", shown())))?;
    // A program that does not read its input closes the pipe; its exit code says what happened.
    let _ = child.stdin.take().expect("the input is piped").write_all(input.as_bytes());
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let tail: Vec<&str> = said.lines().rev().take(8).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    Err(DriveError::setup(format!("`{}` failed ({}): {}", shown(), output.status, tail.join("; "))))
}

/// The folders where programs are.
const FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Finds a program in the folders where systems keep programs.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(program)).find(|path| is_program(path))
}

/// Finds a program, or says how to install it.
pub(crate) fn require(program: &str, packages: &str) -> Result<PathBuf, DriveError> {
    find(program).ok_or_else(|| DriveError::Missing {
        program: program.to_owned(),
        install: format!("apt-get install -y {packages}"),
    })
}

/// Returns whether a file can be run.
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Returns the first line that a program prints when asked for its version.
pub(crate) fn version(program: &Path, argument: &str) -> Result<String, DriveError> {
    let output = run(&[program.as_os_str(), OsStr::new(argument)], "")?;
    Ok(output.lines().next().unwrap_or_default().trim().to_owned())
}
