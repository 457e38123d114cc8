//! Interactive reports: one HTML file that opens in any browser, offline.
//!
//! A report is a list of [`Case`]s, such as the histories of a batch, the outcomes of a litmus test
//! or the run of a protocol. Each has a table of results; a result may have a text, a certificate
//! and a picture with steps. [`ReportWriter`] receives the cases one after the other and keeps only
//! one line per case in memory, so a batch of any size can be reported.
//!
//! The file contains everything that it needs: style, program and data. The data are compressed in
//! chunks, which the page unpacks when they are shown. A content security policy forbids any
//! request, and text from inputs enters the page as text only.
//!
//! ```
//! use consistory_report::{Case, ReportWriter, ResultRow};
//!
//! let mut report = ReportWriter::new(Vec::new(), "Two histories")?;
//! for name in ["a.hist", "b.hist"] {
//!     let row = ResultRow::new(["cc".into(), "consistent".into()]);
//!     let case = Case { rows: vec![row], ..Case::new(name, ["model", "verdict"]) };
//!     report.add(4, [("cc", "consistent")], &case)?;
//! }
//! let html = String::from_utf8(report.finish("consistory 0.1")?).unwrap();
//! assert!(html.starts_with("<!doctype html>"));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use consistory_scene::{
    NodeKind, Scene, colours, core_of, lattice_view, meaning, order_view, time_view,
};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::{Value, json};

const HEAD: &str = include_str!("../assets/report.html");
/// Style sheet of reports, which the local page shares.
pub const STYLE: &str = include_str!("../assets/report.css");
/// Program that shows a case, which reports and the local page share.
pub const CASE_PROGRAM: &str = include_str!("../assets/case.js");
const PROGRAM: &str = include_str!("../assets/report.js");

/// Size of a report from which only cases with a violation keep their pictures.
const PICTURES_OF_ALL_BYTES: u64 = 12 << 20;
/// Size of a report from which cases have no pictures and no certificates.
const PICTURES_BYTES: u64 = 16 << 20;
/// Size of a report from which cases have only their table of results.
const TABLES_ONLY_BYTES: u64 = 17 << 20;

/// Number of cases that are compressed together: a page unpacks one chunk at a time.
const CASES_PER_CHUNK: usize = 50;

/// The part of a report about one history, test or protocol.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Case {
    /// Heading, usually the name of the input.
    pub title: String,
    /// Names and values that are shown below the heading.
    pub facts: Vec<(String, String)>,
    /// Names of the columns of the table of results; a column `time` contains milliseconds.
    pub columns: Vec<String>,
    /// Results, one row each.
    pub rows: Vec<ResultRow>,
    /// Pictures; rows refer to them by index.
    pub scenes: Vec<Picture>,
    /// Whether the pictures of a row are initially shown next to each other instead of one at a
    /// time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// Index of a picture that is shown above those of the rows and links to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<usize>,
    /// For each edge of the map, the index of the row to which it links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Option<usize>>,
    /// Measurements over time, shown below the pictures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<Chart>,
    /// The input as text; empty if it is too long to be useful.
    pub text: String,
    /// Command that checks the results again.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub recheck: String,
}

impl Case {
    /// Builds a case without results.
    pub fn new<'a>(title: impl Into<String>, columns: impl IntoIterator<Item = &'a str>) -> Self {
        let columns = columns.into_iter().map(str::to_owned).collect();
        Case { title: title.into(), columns, ..Case::default() }
    }
}

/// Measurements over time, with marked spans such as faults.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Chart {
    /// Heading.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// Distance between two values in seconds; the first value is at the first distance.
    pub interval: f64,
    /// Names and values of the lines; `None` for an unknown value.
    pub series: Vec<(String, Vec<Option<f64>>)>,
    /// Labels, starts and ends of spans of time, in seconds.
    pub bands: Vec<(String, f64, f64)>,
}

/// One result of a case.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ResultRow {
    /// A value per column: texts or numbers.
    pub cells: Vec<Value>,
    /// Indices of its pictures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scenes: Vec<usize>,
    /// Explanation in sentences.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Certificate, offered for download.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub certificate: Value,
}

impl ResultRow {
    /// Builds a row without picture, text and certificate.
    pub fn new(cells: impl IntoIterator<Item = Value>) -> Self {
        ResultRow { cells: cells.into_iter().collect(), ..ResultRow::default() }
    }
}

/// A scene with the views that it can be shown in.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    scene: Scene,
    views: BTreeMap<&'static str, consistory_scene::View>,
    /// The scene without nodes that its proof does not mention, if it is smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    core: Option<Box<Picture>>,
}

impl Picture {
    /// Lays a scene out as a Hasse diagram.
    pub fn lattice(scene: Scene) -> Self {
        let views = BTreeMap::from([("lattice", lattice_view(&scene))]);
        Picture { scene, views, core: None }
    }

    /// Adds the scene that the page shows if only the core of the proof is wanted.
    ///
    /// For pictures of proofs by edges the core is computed.
    #[must_use]
    pub fn with_core(self, core: Scene) -> Self {
        Picture { core: Some(Box::new(Picture { core: None, ..Picture::from(core) })), ..self }
    }

    /// Returns the scene.
    pub fn scene(&self) -> &Scene {
        &self.scene
    }
}

impl From<Scene> for Picture {
    /// Computes the layouts of the scene: by order, and by time if its nodes have times.
    fn from(scene: Scene) -> Self {
        let has_transactions = scene.nodes.iter().any(|node| node.kind == NodeKind::Transaction);
        let things = if has_transactions { "transactions" } else { "operations" };
        // Without edges, the nodes of the proof are unknown.
        let core = if scene.edges.is_empty() { None } else { core_of(&scene, things) };
        let mut views = BTreeMap::from([("order", order_view(&scene))]);
        views.extend(time_view(&scene).map(|view| ("time", view)));
        Picture { scene, views, core: core.map(|core| Box::new(Picture::from(core))) }
    }
}

/// Writes a report case by case.
pub struct ReportWriter<W: Write> {
    out: W,
    title: String,
    /// Name of the overview's column of numbers.
    counted: String,
    /// Columns of the overview after name and size, in the order of their first use.
    columns: Vec<String>,
    overview: Vec<OverviewLine>,
    /// Details of the cases that are not written yet.
    waiting: Vec<Value>,
    chunks: usize,
    /// Number of bytes of chunks that were written.
    written: u64,
    relations: BTreeSet<String>,
}

/// The row of a case in the overview.
struct OverviewLine {
    name: String,
    size: u64,
    /// Column and word of each result.
    results: Vec<(usize, String)>,
}

impl<W: Write> ReportWriter<W> {
    /// Starts a report.
    pub fn new(mut out: W, title: &str) -> io::Result<Self> {
        let head = HEAD.replace("@STYLE@", STYLE).replace("@TITLE@", &escaped(title));
        out.write_all(head.as_bytes())?;
        Ok(ReportWriter {
            out,
            title: title.to_owned(),
            counted: "operations".to_owned(),
            columns: Vec::new(),
            overview: Vec::new(),
            waiting: Vec::new(),
            chunks: 0,
            written: 0,
            relations: BTreeSet::new(),
        })
    }

    /// Names the items that the numbers of the cases count; by default operations.
    #[must_use]
    pub fn counting(mut self, what: &str) -> Self {
        self.counted = what.to_owned();
        self
    }

    /// Adds a case of `size` operations with one word per model for the overview.
    pub fn add<'a>(
        &mut self,
        size: u64,
        results: impl IntoIterator<Item = (&'a str, &'a str)>,
        case: &Case,
    ) -> io::Result<()> {
        let mut line = OverviewLine { name: case.title.clone(), size, results: Vec::new() };
        for (model, word) in results {
            let column = self.columns.iter().position(|known| known == model);
            let column = column.unwrap_or_else(|| {
                self.columns.push(model.to_owned());
                self.columns.len() - 1
            });
            line.results.push((column, word.to_owned()));
        }
        self.overview.push(line);
        for edge in case.scenes.iter().flat_map(|picture| &picture.scene.edges) {
            if !self.relations.contains(&edge.relation) {
                self.relations.insert(edge.relation.clone());
            }
        }
        self.waiting.push(serde_json::to_value(self.within_size(case).as_ref())?);
        if self.waiting.len() == CASES_PER_CHUNK { self.write_chunk() } else { Ok(()) }
    }

    /// Writes the remaining cases and the program; `about` is shown next to the title.
    pub fn finish(mut self, about: &str) -> io::Result<W> {
        if !self.waiting.is_empty() {
            self.write_chunk()?;
        }
        let mut columns = vec!["source", self.counted.as_str()];
        columns.extend(self.columns.iter().map(String::as_str));
        let lines = self.overview.iter().map(|line| {
            let mut cells = vec![Value::from(line.name.as_str()), line.size.into()];
            cells.resize(columns.len(), Value::from(""));
            for (column, word) in &line.results {
                cells[column + 2] = word.as_str().into();
            }
            Value::from(cells)
        });
        let cases: Vec<Value> = lines.collect();
        let look = look(self.relations.iter().map(String::as_str));
        let overview = json!({
            "title": self.title, "about": about, "columns": columns, "fixed": 2,
            "cases": cases, "chunk": CASES_PER_CHUNK, "look": look,
        });
        let overview = for_script(&serde_json::to_string(&overview)?);
        write!(
            self.out,
            "<script type=\"application/json\" id=\"overview\">{overview}</script>\n\
             <script>\n{CASE_PROGRAM}</script>\n<script>\n{PROGRAM}</script>\n</body>\n</html>\n"
        )?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Returns the case, or the part of it that a large report still includes.
    fn within_size<'c>(&self, case: &'c Case) -> Cow<'c, Case> {
        let is_wrong = |row: &ResultRow| {
            row.cells.iter().any(|cell| cell.as_str().is_some_and(|word| word == "violation"))
        };
        let is_kept = self.written < PICTURES_OF_ALL_BYTES
            || (self.written < PICTURES_BYTES && case.rows.iter().any(is_wrong));
        if is_kept || case.scenes.is_empty() {
            return Cow::Borrowed(case);
        }
        let mut less = case.clone();
        less.scenes.clear();
        (less.map, less.links) = (None, Vec::new());
        let is_table_only = self.written >= TABLES_ONLY_BYTES;
        for row in &mut less.rows {
            row.scenes.clear();
            if self.written >= PICTURES_BYTES {
                row.certificate = Value::Null;
            }
            if is_table_only {
                row.text.clear();
            }
        }
        if is_table_only {
            less.text.clear();
        }
        let left_out =
            "its pictures, because this report is large; a report of this row alone contains them";
        less.facts.push(("left out".to_owned(), left_out.to_owned()));
        Cow::Owned(less)
    }

    /// Compresses the waiting cases.
    fn write_chunk(&mut self) -> io::Result<()> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        serde_json::to_writer(&mut packed, &self.waiting)?;
        let text = base64(&packed.finish()?);
        let number = self.chunks;
        writeln!(
            self.out,
            "<script type=\"application/octet-stream\" id=\"chunk-{number}\">{text}</script>"
        )?;
        self.chunks += 1;
        self.written += text.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

/// Adds a fact to the first case of a report that is already written.
///
/// Returns the new report, or `None` if `html` is not a report.
pub fn with_fact(html: &str, name: &str, value: &str) -> Option<String> {
    const MARK: &str = "id=\"chunk-0\">";
    let start = html.find(MARK)? + MARK.len();
    let end = start + html[start..].find('<')?;
    let mut cases: Vec<Value> =
        serde_json::from_reader(GzDecoder::new(&*from_base64(&html[start..end])?)).ok()?;
    let facts = cases.first_mut()?.get_mut("facts")?.as_array_mut()?;
    facts.push(json!([name, value]));
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut packed, &cases).ok()?;
    let text = base64(&packed.finish().ok()?);
    Some(format!("{}{text}{}", &html[..start], &html[end..]))
}

/// Returns the colours and meanings of the relations of some cases, as a page needs them.
pub fn look_of(cases: &[Case]) -> Value {
    let edges = cases.iter().flat_map(|case| &case.scenes).flat_map(|picture| &picture.scene.edges);
    look(edges.map(|edge| edge.relation.as_str()))
}

fn look<'a>(relations: impl Iterator<Item = &'a str>) -> Value {
    let mut palette: BTreeMap<&str, [&str; 2]> = BTreeMap::new();
    let mut meanings: BTreeMap<&str, &str> = BTreeMap::new();
    for relation in relations.chain([""]) {
        let found = colours(relation);
        palette.insert(relation, [found.light, found.dark]);
        meanings.insert(relation, meaning(relation));
    }
    json!({ "palette": palette, "meanings": meanings })
}

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '@' => out.push_str("&#64;"),
            c => out.push(c),
        }
    }
    out
}

/// Escapes JSON for a script element, so that no tag can begin in it.
fn for_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Digits of base 64.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes in base 64.
fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte))
            << (8 * (3 - three.len()));
        for digit in 0..4 {
            if digit <= three.len() {
                out.push(char::from(DIGITS[(word >> (18 - 6 * digit) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

/// Decodes base 64; `None` if the text is not base 64.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| DIGITS.iter().position(|&known| known == digit);
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.as_bytes().chunks(4) {
        let digits = four.iter().take_while(|&&digit| digit != b'=');
        let values = digits.map(|&digit| value(digit)).collect::<Option<Vec<_>>>()?;
        let word =
            values.iter().fold(0, |word, value| word << 6 | value) << (6 * (4 - values.len()));
        let bytes = [(word >> 16) as u8, (word >> 8) as u8, word as u8];
        out.extend(&bytes[..values.len().saturating_sub(1)]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_added_to_a_written_report() {
        let mut report = ReportWriter::new(Vec::new(), "title").unwrap();
        let case =
            Case { facts: vec![("seed".into(), "7".into())], ..Case::new("é <x>", ["model"]) };
        report.add(1, [], &case).unwrap();
        let html = String::from_utf8(report.finish("").unwrap()).unwrap();
        let more = with_fact(&html, "run again", "2 of <3>").unwrap();
        let chunk = |html: &str| {
            let text = html.split_once("chunk-0\">").unwrap().1.split_once('<').unwrap().0;
            let bytes = from_base64(text).unwrap();
            serde_json::from_reader::<_, Value>(GzDecoder::new(&*bytes)).unwrap()
        };
        let mut expected = chunk(&html);
        expected[0]["facts"].as_array_mut().unwrap().push(json!(["run again", "2 of <3>"]));
        assert_eq!(chunk(&more), expected);
        assert_eq!(more.matches("<script").count(), html.matches("<script").count());
        assert_eq!(with_fact("<html></html>", "a", "b"), None);
    }

    #[test]
    fn bytes_are_encoded_in_base_64() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn a_large_report_leaves_out_pictures() {
        let mut report = ReportWriter::new(Vec::new(), "large").unwrap();
        let mut scene = Scene::new("");
        scene.nodes = vec![consistory_scene::Node::new("a", 0, 0, "w(x,1)")];
        let row = |word: &str| {
            let row = ResultRow::new(["cc".into(), word.into()]);
            ResultRow { scenes: vec![0], text: "why".to_owned(), ..row }
        };
        let case = |word: &str| Case {
            rows: vec![row(word)],
            scenes: vec![scene.clone().into()],
            ..Case::new("a", ["model", "verdict"])
        };
        let [fine, wrong] = ["consistent", "violation"].map(case);
        let mut pictures = |written| {
            report.written = written;
            [&fine, &wrong].map(|case| {
                let kept = report.within_size(case);
                (kept.scenes.len() + kept.rows[0].scenes.len(), kept.rows[0].text.len())
            })
        };
        assert_eq!(pictures(0), [(2, 3), (2, 3)]);
        assert_eq!(pictures(PICTURES_OF_ALL_BYTES), [(0, 3), (2, 3)]);
        assert_eq!(pictures(PICTURES_BYTES), [(0, 3), (0, 3)]);
        assert_eq!(pictures(TABLES_ONLY_BYTES), [(0, 0), (0, 0)]);
    }

    #[test]
    fn no_input_can_leave_its_script_element() {
        let mut report = ReportWriter::new(Vec::new(), "</title><script>bad()</script>").unwrap();
        let case = Case::new("</script><script>bad()</script>", ["model"]);
        report.add(1, [("</script>", "</script>")], &case).unwrap();
        let html = String::from_utf8(report.finish("</script>").unwrap()).unwrap();
        // The page has four script elements: overview, one chunk, and two programs.
        assert_eq!(html.matches("</script>").count(), 4);
        assert!(!html.contains("bad()</script>"));
    }
}
