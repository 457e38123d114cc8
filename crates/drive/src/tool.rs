//! Runs helper programs, each with a time limit.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::DriveError;

/// Time limit of a helper program, in seconds.
const TOOL_SECONDS: &str = "60";

/// Runs a program and returns its output; `input` is its standard input.
pub(crate) fn run<A: AsRef<OsStr>>(program: &[A], input: &str) -> Result<String, DriveError> {
    let [name, args @ ..] = program else {
        return Err(DriveError::setup("there is no program to run"));
    };
    let mut command = Command::new(name);
    run_command(command.args(args), input)
}

/// Runs a command with its environment and returns its output.
pub(crate) fn run_command(command: &Command, input: &str) -> Result<String, DriveError> {
    let words: Vec<&OsStr> =
        [command.get_program()].into_iter().chain(command.get_args()).collect();
    let shown = || {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    };
    let mut limited = Command::new("timeout");
    limited.args(["--signal=KILL", TOOL_SECONDS]).args(&words);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let mut child = limited
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| DriveError::setup(format!("{}: {error}", shown())))?;
    // A program that does not read its input closes the pipe; its exit code tells whether it
    // succeeded.
    let _ = child.stdin.take().expect("the input is piped").write_all(input.as_bytes());
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let reason = reason(&said).join("; ");
    Err(DriveError::setup(format!("`{}` failed ({}): {reason}", shown(), output.status)))
}

/// Largest number of lines of a program's output in an error.
const REASON_LINES: usize = 8;

/// Returns the lines that explain why a program failed: the lines that mention an error, or else
/// the last ones.
fn reason(said: &str) -> Vec<&str> {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error = |line: &&str| line.to_ascii_lowercase().contains("error");
    let errors: Vec<&str> = lines().filter(is_error).take(REASON_LINES).collect();
    if !errors.is_empty() {
        return errors;
    }
    let mut last: Vec<&str> = lines().rev().take(REASON_LINES).collect();
    last.reverse();
    last
}

/// The folders in which programs are searched.
const FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Finds a program in the usual folders of a system.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(program)).find(|path| is_program(path))
}

/// Finds a program, or returns an error that says how to install it.
pub(crate) fn require(program: &str, packages: &str) -> Result<PathBuf, DriveError> {
    find(program).ok_or_else(|| DriveError::Missing {
        program: program.to_owned(),
        install: format!("apt-get install -y {packages}"),
    })
}

/// Returns whether a file is executable.
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Returns the first line that a program prints when asked for its version.
pub(crate) fn version(program: &Path, argument: &str) -> Result<String, DriveError> {
    let output = run(&[program.as_os_str(), OsStr::new(argument)], "")?;
    Ok(output.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_keeps_its_environment() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $TMPDIR"]).env("TMPDIR", "/somewhere");
        assert_eq!(run_command(&command, "").unwrap(), "/somewhere\n");
    }

    #[test]
    fn a_failure_says_why() {
        let script =
            "echo starting; echo '[ERROR] no space left' >&2; echo 'read the manual'; exit 1";
        let message = run(&["sh", "-c", script], "").unwrap_err().to_string();
        assert!(message.ends_with("failed (exit status: 1): [ERROR] no space left"), "{message}");
        let message = run(&["sh", "-c", "echo one; echo two; exit 3"], "").unwrap_err().to_string();
        assert!(message.ends_with("(exit status: 3): one; two"), "{message}");
    }
}
