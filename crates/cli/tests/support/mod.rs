//! Runs the binary in a temporary folder.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A folder that is removed when the test ends.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("consistory-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// Reads an HTML report: the cases that it shows, unpacked, one JSON text per chunk.
    pub fn read_report(&self, name: &str) -> String {
        const UNPACK: &str = "import base64, gzip, re, sys
for chunk in re.findall('id=\"chunk-[0-9]+\">([^<]*)<', open(sys.argv[1]).read()):
    print(gzip.decompress(base64.b64decode(chunk)).decode())";
        let output = Command::new("python3")
            .args(["-c", UNPACK, name])
            .current_dir(&self.0)
            .output()
            .expect("python3 is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the binary in the folder, with arguments separated by spaces.
    pub fn run(&self, args: &str) -> Ran {
        self.run_with(args, b"")
    }

    /// Runs the binary in the folder with a standard input.
    pub fn run_with(&self, args: &str, input: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that does not read its input closes it early.
        let _ = stdin.write_all(input);
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        Ran {
            code: output.status.code().expect("it was not killed"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the binary in the folder on a terminal with a given width; returns the lines that it
    /// shows, without colours.
    pub fn run_on_terminal(&self, args: &str, columns: u16) -> Vec<String> {
        const RUN: &str = "import fcntl, os, pty, re, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 40, int(sys.argv[1]), 0, 0))
    # Progress goes elsewhere.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.execv(sys.argv[2], sys.argv[2:])
shown = b''
while True:
    try:
        more = os.read(terminal, 65536)
    except OSError:
        break
    if not more:
        break
    shown += more
os.waitpid(pid, 0)
sys.stdout.buffer.write(re.sub(rb'\\x1b\\[[0-9;?]*[a-zA-Z]|\\r', b'', shown))";
        let output = Command::new("python3")
            .args(["-c", RUN, &columns.to_string(), env!("CARGO_BIN_EXE_consistory")])
            .args(args.split_whitespace())
            .current_dir(&self.0)
            .output()
            .expect("python3 is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    pub fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_consistory"));
        command
            .args(args.split_whitespace())
            .current_dir(&self.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Result of a run.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Reads standard output as JSON objects, one per line.
    pub fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// Returns the verdicts of each line, in order, as `source[index] model:verdict ..`.
    pub fn verdicts(&self) -> Vec<String> {
        self.lines()
            .iter()
            .map(|line| {
                let mut text = format!("{}[{}]", line["source"].as_str().unwrap(), line["index"]);
                for result in line["results"].as_array().unwrap() {
                    let (model, verdict) = (&result["model"], &result["verdict"]);
                    text += &format!(" {}:{}", model.as_str().unwrap(), verdict.as_str().unwrap());
                }
                text
            })
            .collect()
    }
}

pub const LOST: &str = "t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)\n";
pub const KEPT: &str = "t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,1)\n";
