//! Every fixture is read, with the expected histories or diagnostics.
//!
//! Next to each fixture there is a file with the same name and `.expected`: for a valid fixture the
//! histories in the text notation, for a malformed one its diagnostics. `UPDATE_EXPECT=1` rewrites
//! them.

use std::fs;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use consistory_formats::{Format, Histories, ReadError, Style, Writer, read_from};
use expect_test::expect_file;

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/formats").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "expected"))
        .collect();
    paths.sort();
    assert!(paths.len() > 5, "the fixtures are there");
    paths
}

fn read_bytes(path: &Path, bytes: Vec<u8>) -> Histories {
    let name = path.file_name().unwrap().to_str().unwrap();
    read_from(Box::new(Cursor::new(bytes)), name, None)
}

/// Returns the histories in the text notation, or the diagnostics.
fn outcome(histories: Histories) -> Result<String, String> {
    let mut writer = Writer::new(Format::Hist, Vec::new());
    for history in histories {
        match history {
            Ok(history) => writer.write(&history).unwrap(),
            Err(ReadError::Malformed(diagnostics)) => return Err(diagnostics.render(Style::Plain)),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(String::from_utf8(writer.into_inner()).unwrap())
}

fn expected(path: &Path) -> expect_test::ExpectFile {
    let mut name = path.as_os_str().to_owned();
    name.push(".expected");
    expect_file![PathBuf::from(name)]
}

#[test]
fn valid_fixtures_mean_what_is_expected() {
    for path in fixtures("valid") {
        let text = outcome(read_bytes(&path, fs::read(&path).unwrap()));
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        expected(&path).assert_eq(&text);
        let again = outcome(read_bytes(Path::new("again.hist"), text.clone().into_bytes()));
        assert_eq!(again.as_ref(), Ok(&text), "{}", path.display());
    }
}

#[test]
fn malformed_fixtures_are_wrong_where_expected() {
    for path in fixtures("malformed") {
        match outcome(read_bytes(&path, fs::read(&path).unwrap())) {
            Ok(text) => panic!("{} was read as\n{text}", path.display()),
            Err(rendered) => expected(&path).assert_eq(&rendered),
        }
    }
}

#[test]
fn no_truncation_panics() {
    for path in fixtures("valid").into_iter().chain(fixtures("malformed")) {
        let bytes = fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            settle(&path, bytes[..length].to_vec(), &format!("cut at {length}"));
        }
    }
}

#[test]
fn no_changed_byte_panics() {
    for path in fixtures("valid").into_iter().chain(fixtures("malformed")) {
        let bytes = fs::read(&path).unwrap();
        // Every byte in a deep run, every fourth otherwise.
        let step = if std::env::var_os("CONSISTORY_DEEP").is_some() { 1 } else { 4 };
        for at in (0..bytes.len()).step_by(step) {
            for byte in *b"\"[](),:=@?!#\n 9-x\\\xc3" {
                let mut changed = bytes.clone();
                changed[at] = byte;
                settle(&path, changed, &format!("byte {at} is {byte}"));
            }
        }
    }
}

/// Reads bytes; asserts that they give errors or histories, and nothing after an error.
fn settle(path: &Path, bytes: Vec<u8>, what: &str) {
    let settled = catch_unwind(AssertUnwindSafe(|| {
        let mut histories = read_bytes(path, bytes);
        let mut count = 0;
        for history in &mut histories {
            count += 1;
            if let Err(error) = history {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
        assert!(count > 0, "neither a history nor an error");
        assert!(histories.next().is_none(), "something after the end");
    }));
    assert!(settled.is_ok(), "{}, {what}", path.display());
}
