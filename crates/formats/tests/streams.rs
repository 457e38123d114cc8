//! Files, folders and streams: compression, order, and malformed files without histories.

use std::fs;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_formats::{
    Format, Input, ReadError, inputs, parse_str, read, read_from, source_path, write_history,
};

/// A temporary folder of a test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("consistory-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Input {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        Input::File(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// Returns the number of operations of each history, or the error.
fn sizes(input: &Input) -> Result<Vec<usize>, ReadError> {
    read(input, None).map(|history| history.map(|history| history.len())).collect()
}

/// Builds a file of small histories; the one with index `bad` is malformed.
fn many(count: usize, bad: Option<usize>) -> String {
    let mut text = String::new();
    for i in 0..count {
        let operation = if bad == Some(i) { "w(x 1)" } else { "w(x,1)" };
        text.push_str(&format!("--- number {i}\nt0: {operation} r(y,0)\nt1: w(y,{i})\n"));
    }
    text
}

#[test]
fn compressed_files_are_read() {
    let folder = Folder::new("compressed");
    let text = "t0: w(x,1)\n---\nt0: f f\n";
    let half = text.len() / 2;
    let members = [gzip(&text.as_bytes()[..half]), gzip(&text.as_bytes()[half..])].concat();
    let frames = [zstd(&text.as_bytes()[..half]), zstd(&text.as_bytes()[half..])].concat();
    for (name, bytes) in [
        ("a.hist.gz", gzip(text.as_bytes())),
        ("b.hist.gz", members),
        ("c.hist.zst", zstd(text.as_bytes())),
        ("d.hist.zst", frames),
        // Compression is recognised by the first bytes, whatever the file is called.
        ("e.hist", gzip(text.as_bytes())),
        ("f", zstd(text.as_bytes())),
        ("g.hist.gz", text.into()),
    ] {
        assert_eq!(sizes(&folder.write(name, bytes)).unwrap(), [1, 2], "{name}");
    }
}

#[test]
fn a_truncated_compressed_file_is_an_error() {
    let folder = Folder::new("truncated");
    let text = many(1000, None);
    for (name, bytes) in
        [("a.hist.gz", gzip(text.as_bytes())), ("a.hist.zst", zstd(text.as_bytes()))]
    {
        for cut in [1, 4, 9, bytes.len() / 2, bytes.len() - 5] {
            let input = folder.write(name, &bytes[..bytes.len() - cut]);
            let error = sizes(&input).expect_err("the end is missing");
            assert!(matches!(error, ReadError::Io { .. }), "{name}, {cut}: {error}");
        }
    }
}

#[test]
fn nothing_is_claimed_of_a_malformed_file() {
    let folder = Folder::new("malformed");
    // A few histories, which are kept; many, which are read twice; and more bytes than are kept.
    let huge = format!("{}# {}\n{}", many(5, None), "x".repeat(9 << 20), many(5, Some(2)));
    for (name, text) in [
        ("few.hist", many(20, Some(19))),
        ("many.hist", many(30_000, Some(29_999))),
        ("huge.hist", huge),
    ] {
        let mut histories = read(&folder.write(name, text), None);
        let Some(Err(ReadError::Malformed(diagnostics))) = histories.next() else {
            panic!("{name}: expected diagnostics");
        };
        assert_eq!(diagnostics.count(), 1, "{name}");
        assert!(diagnostics.to_string().contains("expected `,` or `)`"), "{name}");
        assert!(histories.next().is_none(), "{name}");
    }
}

#[test]
fn all_errors_of_a_large_file_are_counted() {
    let folder = Folder::new("counted");
    let text = "t0: w(x 1) f w(y 2)\n---\n".repeat(5000);
    let Some(Err(ReadError::Malformed(diagnostics))) =
        read(&folder.write("a.hist", text), None).next()
    else {
        panic!("expected diagnostics");
    };
    assert_eq!((diagnostics.count(), diagnostics.iter().len()), (10_000, 1000));
}

#[test]
fn large_files_come_in_order() {
    let folder = Folder::new("order");
    for compress in [false, true] {
        let text = many(30_000, None);
        let bytes = if compress { zstd(text.as_bytes()) } else { text.into() };
        let mut count = 0;
        for (i, history) in read(&folder.write("a.hist", bytes), None).enumerate() {
            let history = history.unwrap();
            assert_eq!(history.name(), Some(&*format!("number {i}")));
            count += 1;
        }
        assert_eq!(count, 30_000);
    }
    let one = format!("t0: {}\n", "w(x,1) ".repeat(1_500_000));
    assert_eq!(sizes(&folder.write("one.hist", one)).unwrap(), [1_500_000]);
}

/// Reads in small pieces, and counts the bytes read.
struct Slow {
    bytes: Cursor<Vec<u8>>,
    read: Arc<AtomicUsize>,
}

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(3);
        let read = self.bytes.read(&mut buffer[..length])?;
        self.read.fetch_add(read, Ordering::Relaxed);
        Ok(read)
    }
}

#[test]
fn streams_are_read_no_further_than_needed() {
    let text = many(1000, Some(500));
    let read = Arc::new(AtomicUsize::new(0));
    let slow = Slow { bytes: Cursor::new(text.clone().into_bytes()), read: read.clone() };
    let mut histories = read_from(Box::new(BufReader::new(slow)), "<stdin>", None);
    for i in 0..500 {
        let history = histories.next().unwrap().unwrap();
        assert_eq!(history.name(), Some(&*format!("number {i}")));
        assert!(read.load(Ordering::Relaxed) < (i + 3) * text.len() / 900, "history {i}");
    }
    let Some(Err(ReadError::Malformed(diagnostics))) = histories.next() else {
        panic!("expected diagnostics");
    };
    assert_eq!(diagnostics.iter().next().unwrap().line, 1502);
    assert!(histories.next().is_none());
}

#[test]
fn the_format_is_told_by_name_or_look_or_user() {
    let folder = Folder::new("told");
    assert_eq!(sizes(&folder.write("a.txt", "w 0 1\n-\nr 0 1\n")).unwrap(), [2]);
    assert_eq!(
        sizes(&folder.write("a.json", "[[{\"events\":[[\"r\",0,1]],\"committed\":true}]]"))
            .unwrap(),
        [1]
    );
    assert_eq!(sizes(&folder.write("a.log", "{\"session\":1,\"op\":\"fence\"}")).unwrap(), [1]);
    let odd = folder.write("a.axe", "t0: f");
    assert!(matches!(sizes(&odd), Err(ReadError::Malformed(_))));
    assert_eq!(read(&odd, Some(Format::Hist)).map(|h| h.unwrap().len()).collect::<Vec<_>>(), [1]);
    let error = sizes(&folder.write("b.txt", "hello\nworld\n")).unwrap_err();
    assert!(matches!(error, ReadError::UnknownFormat { .. }));
    assert!(
        error.to_string().contains("b.txt: the format cannot be recognised (say which of hist, ")
    );
    let error = sizes(&folder.write("c", [0x7f, b'E', b'L', b'F', 0, 0, 1])).unwrap_err();
    assert!(error.to_string().ends_with("it looks like a binary file)"), "{error}");
}

#[test]
fn an_input_without_a_history_is_an_error() {
    let folder = Folder::new("empty");
    for (name, text) in [
        ("a.hist", ""),
        ("b.hist", "# a comment\n---\n---\n"),
        ("c.jsonl", "\n\n"),
        ("d.axe", "check\ncheck\n"),
        ("e.txt", " \n"),
        ("f.dbcop", "[]\n---\n"),
        ("g.json", "[[]]"),
        ("h.plume", ""),
        ("i.awdit", "---\n===\n"),
    ] {
        let error = sizes(&folder.write(name, text)).unwrap_err();
        assert!(matches!(error, ReadError::NoHistory { .. }), "{name}: {error}");
        let error = read_from(Box::new(Cursor::new(text)), name, None).next().unwrap().unwrap_err();
        assert!(matches!(error, ReadError::NoHistory { .. }), "{name}: {error}");
    }
    let diagnostics = parse_str("", Format::Hist, "a.hist").unwrap_err();
    assert!(diagnostics.to_string().starts_with("a.hist:1:1: it contains no history"));
}

#[test]
fn histories_can_be_read_on_another_thread() {
    let histories = read_from(Box::new(Cursor::new("t: f")), "a.hist", None);
    assert_eq!(std::thread::spawn(move || histories.count()).join().unwrap(), 1);
}

#[test]
fn a_missing_file_is_an_error_of_its_own() {
    let mut histories = read(&Input::File("/nowhere/a.hist".into()), None);
    let error = histories.next().unwrap().unwrap_err();
    assert!(error.to_string().starts_with("cannot read /nowhere/a.hist"), "{error}");
    assert!(histories.next().is_none());
}

#[test]
fn folders_are_walked_in_order() {
    let folder = Folder::new("walked");
    for name in ["b.hist", "a/z.axe", "a/b/c.jsonl.gz", "c.ndjson", "readme.md", "d.txt", "a.json"]
    {
        folder.write(name, "");
    }
    let jepsen = "INFO  jepsen.util - 0\t:invoke\t:read\tnil\n";
    folder.write("e/etcd.log", jepsen);
    folder.write("e/kv.txt", "{:process 0, :type :invoke, :f :get, :key \"1\", :value nil}\n");
    folder.write("e/server.log", "started: port 80\n==========\n");
    folder.write("e/notes.txt", "Notes\n=====\nto do: [ ] measure\n");
    let found = inputs(&[folder.0.clone(), "-".into(), "other.txt".into()]).unwrap();
    let names: Vec<String> = found
        .iter()
        .map(|input| input.to_string().replace(&format!("{}/", folder.0.display()), ""))
        .collect();
    let expected = ["a/b/c.jsonl.gz", "a/z.axe", "b.hist", "c.ndjson", "e/etcd.log", "e/kv.txt"];
    assert_eq!(names[..6], expected);
    assert_eq!(names[6..], ["<stdin>", "other.txt"]);
    let empty = folder.0.join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(matches!(inputs(&[empty]), Err(ReadError::EmptyFolder { .. })));
}

#[cfg(unix)]
#[test]
fn a_folder_skips_pipes_and_keeps_names_that_are_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new("special");
    let odd = folder.0.join(OsStr::from_bytes(b"odd-\xff\xe9.hist"));
    fs::write(&odd, "t: w(x,1)").unwrap();
    folder.write("plain.hist", "t: w(x,1) r(x,1)");
    folder.write("with\\xff.hist", "t: w(x,1) r(x,1) r(x,1)");
    let pipe = folder.0.join("pipe.hist");
    let _ = std::process::Command::new("mkfifo").arg(&pipe).status();
    let _socket = std::os::unix::net::UnixListener::bind(folder.0.join("socket.hist"));
    std::os::unix::fs::symlink("/dev/zero", folder.0.join("endless.hist")).unwrap();
    let found = inputs(std::slice::from_ref(&folder.0)).unwrap();
    let names: Vec<String> = found
        .iter()
        .map(|input| input.to_string().replace(&format!("{}/", folder.0.display()), ""))
        .collect();
    assert_eq!(names, [r"odd-\xff\xe9.hist", "plain.hist", r"with\xff.hist"]);
    let lengths: Vec<_> = found.iter().map(|input| sizes(input).unwrap()).collect();
    assert_eq!(lengths, [[1], [2], [3]]);
    for input in &found {
        let Input::File(path) = input else { panic!("{input} is a file") };
        assert_eq!(source_path(&input.to_string()), *path, "a name leads back to its file");
    }
}

/// An entry of Cobra's logs.
fn entry(letter: u8, numbers: &[i64]) -> Vec<u8> {
    let numbers = numbers.iter().flat_map(|number| number.to_be_bytes());
    std::iter::once(letter).chain(numbers).collect()
}

#[test]
fn a_folder_of_logs_is_one_history() {
    let folder = Folder::new("logs");
    let first = [
        entry(b'S', &[1]),
        entry(b'W', &[100, 7, 55]),
        entry(b'R', &[0, 0xbebe_ebee, 8, 0]),
        entry(b'C', &[1]),
        entry(b'S', &[2]),
        entry(b'W', &[101, 7, 56]),
    ];
    let second = [entry(b'S', &[3]), entry(b'R', &[1, 100, 7, 55]), entry(b'C', &[3])];
    folder.write("run/cobra/T2.log", second.concat());
    folder.write("run/cobra/T10.log", first.concat());
    folder.write("run/viper/J0.log", "{\"value\": [[\"w\", 1, 2, true], [\"r\", 2, 0, true]]}\n");
    folder.write("run/viper/J1.log", "{\"value\": [[\"r\", 1, 2, true]]}\n");
    folder.write("run/a.hist", "t: w(x,1)");
    let found = inputs(&[folder.0.join("run")]).unwrap();
    let texts: Vec<String> = found.iter().map(text).collect();
    assert_eq!(
        texts,
        [
            "t: w(x,1)\n",
            "2: r(7,100)\n10: [ w(7,100) r(8,0) ] w(7,101)?\n",
            "init: 2=null\n0: [ w(1,2) r(2,0) ]\n1: r(1,2)\n",
        ]
    );
    let alone = Input::File(folder.0.join("run/cobra/T2.log"));
    assert_eq!(text(&alone), "0: r(7,100)\n", "a log is recognised by its looks");
    let cut: Vec<u8> = first.concat()[..20].to_vec();
    folder.write("run/cobra/T10.log", cut);
    let error = read(&found[1], None).next().unwrap().unwrap_err().to_string();
    assert!(error.ends_with("T10.log: byte 9: the log ends in the middle of an entry"), "{error}");
}

/// Returns the histories of an input in the text notation.
fn text(input: &Input) -> String {
    let mut out = Vec::new();
    for history in read(input, None) {
        write_history(&history.unwrap(), Format::Hist, &mut out).unwrap();
    }
    String::from_utf8(out).unwrap()
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_once() {
    let folder = Folder::new("pipe");
    let path = folder.0.join("pipe.hist");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let writer = std::thread::spawn({
        let path = path.clone();
        move || fs::write(path, many(30_000, Some(29_999))).unwrap()
    });
    let mut count = 0;
    let mut errors = 0;
    for history in read(&Input::File(path), None) {
        match history {
            Ok(_) => count += 1,
            Err(_) => errors += 1,
        }
    }
    writer.join().unwrap();
    assert_eq!((count, errors), (29_999, 1));
}
