//! The formats: their names, file extensions and looks.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// How a history is written down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// The text notation, a line a session: `t0: w(x,1) r(y,0)`.
    Hist,
    /// JSON lines, a line an operation.
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
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 7] = [
        Format::Hist,
        Format::Jsonl,
        Format::Axe,
        Format::DbcopText,
        Format::DbcopJson,
        Format::Plume,
        Format::Awdit,
    ];

    /// Gives the name that users say.
    pub fn name(self) -> &'static str {
        match self {
            Format::Hist => "hist",
            Format::Jsonl => "jsonl",
            Format::Axe => "axe",
            Format::DbcopText => "dbcop",
            Format::DbcopJson => "dbcop-json",
            Format::Plume => "plume",
            Format::Awdit => "awdit",
        }
    }

    /// Tells the format from a file's extension; a compressed file's is the one before `.gz` or
    /// `.zst`.
    pub fn from_path(path: &Path) -> Option<Format> {
        let extension = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
        let mut found = extension(path)?;
        if matches!(&*found, "gz" | "zst") {
            found = extension(Path::new(path.file_stem()?))?;
        }
        match &*found {
            "hist" => Some(Format::Hist),
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            "axe" => Some(Format::Axe),
            "dbcop" => Some(Format::DbcopText),
            "plume" => Some(Format::Plume),
            "awdit" => Some(Format::Awdit),
            _ => None,
        }
    }

    /// Tells the format from the beginning of a text; the last line may be cut off.
    pub fn sniff(beginning: &str) -> Option<Format> {
        let first = beginning.trim_start();
        if first.starts_with('{') && !first[1..].trim_start().starts_with('M') {
            let line = first.lines().next().unwrap_or_default();
            let is_line =
                ["\"session\"", "\"init\"", "\"final\"", "\"history\"", "\"op\"", "\"call\""]
                    .iter()
                    .any(|field| line.contains(field));
            return Some(if is_line { Format::Jsonl } else { Format::DbcopJson });
        }
        if let Some(inside) = first.strip_prefix('[')
            && (inside.trim().is_empty() || inside.trim_start().starts_with(['[', '{', ']']))
        {
            return Some(Format::DbcopJson);
        }
        beginning.lines().find_map(|line| sniff_line(line.trim()))
    }
}

/// Tells the format from a line that only one format has.
fn sniff_line(line: &str) -> Option<Format> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_all = |c| !line.is_empty() && line.chars().all(|other| other == c);
    if line.is_empty() || line.starts_with('#') || line == "---" {
        return None;
    }
    if line.starts_with("//") || line.starts_with('[') {
        return Some(Format::DbcopText);
    }
    if is_all('=') || is_all('-') {
        return Some(Format::Awdit);
    }
    if line == "check" || line.starts_with("final M") {
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
    if is_number(name.trim_end()) && ["M[", "sync", "{", "<"].iter().any(|o| rest.starts_with(o)) {
        return Some(Format::Axe);
    }
    Some(Format::Hist)
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no format has.
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
            "no format is named `yaml`: choose one of hist, jsonl, axe, dbcop, dbcop-json, plume, awdit"
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
            ("[x:=1 y==2]\n", Some(Format::DbcopText)),
            ("// session 0\n[x:=1]\n", Some(Format::DbcopText)),
            ("---\n[x:=1]\n", Some(Format::DbcopText)),
            ("0: M[1] := 1\n", Some(Format::Axe)),
            ("# c\n12: sync\n", Some(Format::Axe)),
            ("0: { M[0] == 0; M[0] := 1 }\n", Some(Format::Axe)),
            ("r(1,2,3,4)\n", Some(Format::Plume)),
            ("w(1,2,3,-1)\n", Some(Format::Plume)),
            ("w 0 1\n", Some(Format::Awdit)),
            ("=====\nw 0 1\n", Some(Format::Awdit)),
            ("hello world\n", None),
            ("", None),
        ] {
            assert_eq!(Format::sniff(text), expected, "{text:?}");
        }
    }
}
