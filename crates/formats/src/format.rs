//! The formats: their names, file extensions and characteristic beginnings.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::{gem5, jepsen, viper};

/// A notation of histories.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// The text notation, one line per session: `t0: w(x,1) r(y,0)`.
    Hist,
    /// JSON lines, one operation per line.
    Jsonl,
    /// Memory traces: `0: M[1] := 1`.
    Axe,
    /// dbcop's text: `[x:=1 y==2]`.
    DbcopText,
    /// dbcop's JSON: sessions of transactions of events.
    DbcopJson,
    /// The text that isolation checkers exchange: `w(KEY,VALUE,SESSION,TRANSACTION)`.
    Plume,
    /// AWDIT's text: `w 0 1`, with lines of `-` and `=` in between.
    Awdit,
    /// Events in EDN, as Jepsen, Knossos, Elle and Porcupine's key-value tests have them.
    Edn,
    /// Events in JSON, as Jepsen and elle-cli have them.
    JepsenJson,
    /// Jepsen's logs: `INFO  jepsen.util - 0 :invoke :read nil`.
    Jepsen,
    /// LiMo's events: `[1] call push(1)`.
    Limo,
    /// fastlin's operations: `push 1 1 2`.
    Fastlin,
    /// fptlin's operations: `0 1 5 ENQ 10`.
    Fptlin,
    /// dbcop's binary histories of 2019.
    DbcopBinary,
    /// Cobra's folders of binary logs, one file per session.
    Cobra,
    /// Viper's folders of JSON lines, one file per session.
    Viper,
    /// TimeKiller's JSON: transactions with timestamps.
    TimeKiller,
    /// Logs of gem5's Ruby tester.
    Gem5,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 18] = [
        Format::Hist,
        Format::Jsonl,
        Format::Axe,
        Format::DbcopText,
        Format::DbcopJson,
        Format::Plume,
        Format::Awdit,
        Format::Edn,
        Format::JepsenJson,
        Format::Jepsen,
        Format::Limo,
        Format::Fastlin,
        Format::Fptlin,
        Format::DbcopBinary,
        Format::Cobra,
        Format::Viper,
        Format::TimeKiller,
        Format::Gem5,
    ];

    /// Returns the name of the format on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Hist => "hist",
            Format::Jsonl => "jsonl",
            Format::Axe => "axe",
            Format::DbcopText => "dbcop",
            Format::DbcopJson => "dbcop-json",
            Format::Plume => "plume",
            Format::Awdit => "awdit",
            Format::Edn => "edn",
            Format::JepsenJson => "jepsen-json",
            Format::Jepsen => "jepsen",
            Format::Limo => "limo",
            Format::Fastlin => "fastlin",
            Format::Fptlin => "fptlin",
            Format::DbcopBinary => "dbcop-binary",
            Format::Cobra => "cobra",
            Format::Viper => "viper",
            Format::TimeKiller => "timekiller",
            Format::Gem5 => "gem5",
        }
    }

    /// Recognises the format by a file's extension; for a compressed file, by the extension before
    /// `.gz` or `.zst`.
    pub fn from_path(path: &Path) -> Option<Format> {
        match &*extension(path)? {
            "hist" => Some(Format::Hist),
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            "axe" => Some(Format::Axe),
            "dbcop" => Some(Format::DbcopText),
            "plume" => Some(Format::Plume),
            "awdit" => Some(Format::Awdit),
            "edn" => Some(Format::Edn),
            "jepsen" => Some(Format::Jepsen),
            "limo" => Some(Format::Limo),
            "fastlin" => Some(Format::Fastlin),
            "fptlin" => Some(Format::Fptlin),
            "bincode" => Some(Format::DbcopBinary),
            _ => None,
        }
    }

    /// Checks whether a text that starts like this format can hardly be of another kind.
    pub(crate) fn is_unmistakable(self) -> bool {
        use Format::{Axe, Edn, Gem5, Jepsen, JepsenJson, Jsonl, Limo, Plume, TimeKiller};
        matches!(self, Jsonl | Axe | Plume | Edn | Jepsen | JepsenJson | Limo | TimeKiller | Gem5)
    }

    /// Checks whether the format consists of bytes instead of lines of text.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Format::DbcopBinary | Format::Cobra)
    }

    /// Recognises the format by the beginning of a text; the last line may be cut off.
    pub fn sniff(beginning: &str) -> Option<Format> {
        let first = beginning.trim_start();
        if is_edn(first) {
            return Some(Format::Edn);
        }
        if first.starts_with('{') && !first[1..].trim_start().starts_with('M') {
            return Some(sniff_json_object(first));
        }
        if let Some(inside) = first.strip_prefix('[') {
            let inside = inside.trim_start();
            if inside.is_empty() || inside.starts_with(['[', ']']) {
                return Some(Format::DbcopJson);
            }
            if inside.starts_with('{') {
                let is_of_transactions = ["\"ops\"", "\"sid\""].iter().any(|f| inside.contains(f))
                    && !inside.contains("\"process\"");
                let found =
                    if is_of_transactions { Format::TimeKiller } else { Format::JepsenJson };
                return Some(found);
            }
        }
        if beginning.lines().take(100).any(gem5::is_trace_line) {
            return Some(Format::Gem5);
        }
        beginning.lines().find_map(|line| sniff_line(line.trim()))
    }
}

/// Recognises the format of a text that starts with a JSON object.
fn sniff_json_object(text: &str) -> Format {
    let line = text.lines().next().unwrap_or_default();
    let has = |fields: &[&str]| fields.iter().any(|field| line.contains(field));
    if has(&["\"session\"", "\"init\"", "\"final\"", "\"history\"", "\"op\"", "\"call\""]) {
        Format::Jsonl
    } else if has(&["\"type\""]) && has(&["\"process\"", "\"f\"", "\"value\""]) {
        Format::JepsenJson
    } else if viper::looks_like(text) {
        Format::Viper
    } else {
        Format::DbcopJson
    }
}

/// Returns a file's extension in lower case; for a compressed file, the extension before `.gz` or
/// `.zst`.
pub(crate) fn extension(path: &Path) -> Option<String> {
    let of = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
    match of(path)? {
        compressed if matches!(&*compressed, "gz" | "zst") => of(Path::new(path.file_stem()?)),
        found => Some(found),
    }
}

/// Checks whether a text starts like a history in EDN: with a map of keywords, possibly tagged, and
/// possibly in a vector or list.
fn is_edn(text: &str) -> bool {
    let mut rest = text;
    while rest.starts_with(';') {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    rest = rest.strip_prefix(['[', '(']).unwrap_or(rest).trim_start();
    if let Some(tagged) = rest.strip_prefix('#') {
        let tag = tagged.trim_start_matches(|c: char| c.is_alphanumeric() || ".-_/".contains(c));
        // A tag is directly before its map, unlike a comment.
        rest = if tag.len() < tagged.len() { tag } else { rest };
    }
    rest.strip_prefix('{').is_some_and(|inside| inside.trim_start().starts_with(':'))
}

/// Recognises a format of calls by a line.
fn sniff_call(line: &str) -> Option<Format> {
    if jepsen::event_start(line).is_some() || jepsen::is_message(line) {
        return Some(Format::Jepsen);
    }
    let thread = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    if let Some((thread, rest)) = thread {
        let is_event = ["call ", "return"].iter().any(|word| rest.trim_start().starts_with(word));
        let is_thread = !thread.is_empty() && thread.bytes().all(|b| b.is_ascii_digit());
        return (is_thread && is_event).then_some(Format::Limo);
    }
    let words: Vec<&str> = line.split_ascii_whitespace().take(8).collect();
    let is_number = |word: &&str| word.parse::<i64>().is_ok();
    let is_method = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    match words[..] {
        [method, ref rest @ ..]
            if is_method(method) && (3..=4).contains(&rest.len()) && rest.iter().all(is_number) =>
        {
            Some(Format::Fastlin)
        }
        [process, start, end, method, ref rest @ ..]
            if [process, start, end].iter().all(is_number)
                && is_method(method)
                && rest.iter().all(is_number) =>
        {
            Some(Format::Fptlin)
        }
        [process, method, ref rest @ ..]
            if is_number(&process)
                && is_method(method)
                && (3..=4).contains(&rest.len())
                && rest.iter().all(is_number) =>
        {
            Some(Format::Fptlin)
        }
        _ => None,
    }
}

/// Recognises the format by a line that occurs in only one format.
fn sniff_line(line: &str) -> Option<Format> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_all = |c| !line.is_empty() && line.chars().all(|other| other == c);
    if line.is_empty() || line.starts_with('#') || line == "---" {
        return None;
    }
    if let Some(format) = sniff_call(line) {
        return Some(format);
    }
    if line.starts_with("//") || line.starts_with('[') {
        return Some(Format::DbcopText);
    }
    if is_all('=') || is_all('-') {
        return Some(Format::Awdit);
    }
    if line == "check" || line.starts_with("final M") || line.starts_with("final v") {
        return Some(Format::Axe);
    }
    if let Some(rest) = line.strip_prefix(['r', 'w']) {
        if let Some(rest) = rest.strip_prefix('(') {
            let is_plume = rest.split(',').count() == 4 && !rest.contains(':');
            return is_plume.then_some(Format::Plume);
        }
        if rest.starts_with([' ', '\t']) && rest.split_ascii_whitespace().count() == 2 {
            return Some(Format::Awdit);
        }
    }
    if line.starts_with("--- ") {
        return Some(Format::Hist);
    }
    let (name, rest) = line.split_once(':')?;
    let rest = rest.trim_start();
    let is_access = |rest: &str| {
        let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_assigned = [":=", "=="].iter().any(|o| behind.trim_start().starts_with(o));
        behind.len() < rest.len() && is_assigned
    };
    let is_axe = ["M[", "sync", "{", "<"].iter().any(|o| rest.starts_with(o))
        || rest.strip_prefix('v').is_some_and(is_access);
    if is_number(name.trim_end()) && is_axe {
        return Some(Format::Axe);
    }
    let name = name.trim();
    let is_quoted = name.starts_with('"');
    (is_quoted || !name.contains(char::is_whitespace)).then_some(Format::Hist)
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that does not belong to any format.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no format is named `{name}`: choose one of {}", Format::ALL.map(Format::name).join(", "))]
pub struct UnknownFormatName {
    /// The name.
    pub name: String,
}

impl FromStr for Format {
    type Err = UnknownFormatName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormatName { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_an_unknown_one_lists_them() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert_eq!(
            "yaml".parse::<Format>().unwrap_err().to_string(),
            "no format is named `yaml`: choose one of hist, jsonl, axe, dbcop, dbcop-json, plume, awdit, edn, \
             jepsen-json, jepsen, limo, fastlin, fptlin, dbcop-binary, cobra, viper, timekiller, gem5"
        );
    }

    #[test]
    fn extensions_tell_the_format() {
        for (path, expected) in [
            ("a.hist", Some(Format::Hist)),
            ("a.b.HIST", Some(Format::Hist)),
            ("dir.axe/a.jsonl.gz", Some(Format::Jsonl)),
            ("a.ndjson.zst", Some(Format::Jsonl)),
            ("a.axe", Some(Format::Axe)),
            ("a.dbcop", Some(Format::DbcopText)),
            ("a.plume", Some(Format::Plume)),
            ("a.awdit", Some(Format::Awdit)),
            ("history.edn", Some(Format::Edn)),
            ("a.limo.gz", Some(Format::Limo)),
            ("a.txt", None),
            ("a.json", None),
            ("a.gz", None),
            ("hist", None),
            (".gz", None),
        ] {
            assert_eq!(Format::from_path(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn looks_tell_the_format() {
        for (text, expected) in [
            ("# c\n\nt0: w(x,1)\n", Some(Format::Hist)),
            ("---\nt0: w(x,1)\n", Some(Format::Hist)),
            ("--- first\nt0: w(x,1)\n", Some(Format::Hist)),
            ("0: w(x,1)\n", Some(Format::Hist)),
            ("w: w(x,1)\n", Some(Format::Hist)),
            ("\"my: session\": f\n", Some(Format::Hist)),
            ("{\"session\":\"a\",\"op\":\"fence\"}\n", Some(Format::Jsonl)),
            ("{\"init\":{\"x\":1}}\n", Some(Format::Jsonl)),
            ("{\n \"params\": {}, \"data\": []}", Some(Format::DbcopJson)),
            ("[[{\"events\":[]", Some(Format::DbcopJson)),
            ("[\n", Some(Format::DbcopJson)),
            ("[\n  [\n", Some(Format::DbcopJson)),
            ("[{\"process\":0,\"type\":\"invoke\"", Some(Format::JepsenJson)),
            ("{\"type\":\"ok\",\"f\":\"txn\",\"value\":[]}\n", Some(Format::JepsenJson)),
            ("[\n {\"tid\":1,\"sid\":2,\"ops\":[]}]\n", Some(Format::TimeKiller)),
            ("{\"value\": [[\"r\", 1, 2, true]]}\n", Some(Format::Viper)),
            ("      0: global: Adding false sharing checks\n", Some(Format::Gem5)),
            (" 95: system.cpu: completed request for proc: 1 addr: 0x3\n", Some(Format::Gem5)),
            ("[x:=1 y==2]\n", Some(Format::DbcopText)),
            ("// session 0\n[x:=1]\n", Some(Format::DbcopText)),
            ("---\n[x:=1]\n", Some(Format::DbcopText)),
            ("0: M[1] := 1\n", Some(Format::Axe)),
            ("# c\n12: sync\n", Some(Format::Axe)),
            ("0: v1 := 1\n", Some(Format::Axe)),
            ("0: v1(1) => 2\n", Some(Format::Hist)),
            ("0: { M[0] == 0; M[0] := 1 }\n", Some(Format::Axe)),
            ("r(1,2,3,4)\n", Some(Format::Plume)),
            ("w(1,2,3,-1)\n", Some(Format::Plume)),
            ("w 0 1\n", Some(Format::Awdit)),
            ("=====\nw 0 1\n", Some(Format::Awdit)),
            ("[{:process 0, :type :invoke", Some(Format::Edn)),
            ("; c\n({:process 0", Some(Format::Edn)),
            ("{:process 9, :type :invoke, :f :get, :key \"0\"}\n", Some(Format::Edn)),
            ("#jepsen.history.Op{:index 0, :process 0}\n", Some(Format::Edn)),
            ("# {:process 0}\nt0: w(x,1)\n", Some(Format::Hist)),
            ("INFO  jepsen.util - 0\t:invoke\t:read\tnil\n", Some(Format::Jepsen)),
            ("INFO  jepsen.core - Worker 0 starting\n3  :ok :read 1\n", Some(Format::Jepsen)),
            ("\nlein test jepsen.system.etcd-test\n", Some(Format::Jepsen)),
            ("INFO  jepsen.os.debian - :n4 setting up debian\n", Some(Format::Jepsen)),
            (
                "2024-01-02 03:04:05,678{GMT}\tINFO\t[jepsen worker 0] jepsen.util: 0\t:invoke\t:read\tnil\n",
                Some(Format::Jepsen),
            ),
            ("my session: f\n", None),
            ("# @object atomic-stack\n[1] call push(1)\n", Some(Format::Limo)),
            ("# stack\npush 1 1 2\n", Some(Format::Fastlin)),
            ("# queue\n0 1 5 ENQ 10\n", Some(Format::Fptlin)),
            ("# stack\n0 push 1 1 2\n", Some(Format::Fptlin)),
            ("hello world\n", None),
            ("", None),
        ] {
            assert_eq!(Format::sniff(text), expected, "{text:?}");
        }
    }
}
