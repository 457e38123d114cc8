//! Writes the atlas: for every pair of models of the catalogue a proof that the first implies the
//! second, a smallest history that separates them, or the extent of the search.
//!
//! ```text
//! cargo run --release -p consistory-atlas-page -- \
//!     --bound 8 --extended 6 --known corpus/histories --histories corpus/atlas > docs/atlas.md
//! cargo run --release -p consistory-atlas-page -- \
//!     --bound 8 --extended 6 --known corpus/histories --format svg > docs/figures/atlas.svg
//! ```
//!
//! The search can be divided: `consistory atlas --part I/N --format json` on every machine,
//! `consistory merge`, and then `--survey MERGED.jsonl` here instead of the bounds.
//!
//! `consistory contrast` does the same for two models of a user's choice.

mod levels;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};
use consistory_atlas::{Answer, Bounds, Pair, ScanOptions, Survey, survey};
use consistory_formats::{Format, inputs, parse_str, read, write_history};
use consistory_history::{Action, History};
use consistory_models::{Implication, Lattice, catalogue, find, lattice};
use consistory_pages::{AtlasEdge, lattice_scene, register_lattice};
use consistory_registers::{Model, Options, judge};
use consistory_scene::lattice_view;
use consistory_verdict::{Budget, Judgement};
use serde_json::Value;

/// Contrast all pairs of models of the catalogue.
#[derive(Debug, Parser)]
struct AtlasArgs {
    /// Largest number of operations of a history of reads and writes.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=12))]
    bound: u16,
    /// Largest number of operations of a history with fences and read-modify-writes.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=12))]
    extended: u16,
    /// Output of `consistory atlas --format json` or `consistory merge`, instead of a search.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bound", "extended"])]
    survey: Option<PathBuf>,
    /// Files or folders with histories to try if no smaller history is found.
    #[arg(long, value_name = "PATH")]
    known: Vec<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = AtlasFormat::Markdown)]
    format: AtlasFormat,
    /// Write the smallest histories into this folder, with their expected verdicts.
    #[arg(long, value_name = "DIR")]
    histories: Option<PathBuf>,
    /// Number of threads.
    #[arg(short, long, value_name = "N", default_value_t = 2)]
    jobs: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum AtlasFormat {
    /// The page of the documentation.
    Markdown,
    /// A picture of the lattice with the histories that separate its models.
    Svg,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = AtlasArgs::parse();
    let bounds = Bounds { plain: usize::from(args.bound), extended: usize::from(args.extended) };
    let mut known = Vec::new();
    for input in inputs(&args.known)? {
        for history in read(&input, None) {
            known.push((input.to_string(), history?));
        }
    }
    let options = ScanOptions {
        budget: Budget::unlimited(),
        jobs: args.jobs.max(1),
        ..ScanOptions::default()
    };
    let survey = match &args.survey {
        None => survey(bounds, &known, &options).map_err(|stopped| stopped.to_string())?,
        Some(path) => {
            let mut survey = read_survey(&fs::read_to_string(path)?)?;
            survey.ask(&known, &options);
            survey
        }
    };
    let sheets = sheets(&survey);
    if let Some(folder) = &args.histories {
        write_histories(folder, &sheets)?;
    }
    print!(
        "{}",
        match args.format {
            AtlasFormat::Markdown => markdown(&survey, &sheets, &options),
            AtlasFormat::Svg => svg(&survey, &sheets),
        }
    );
    Ok(())
}

/// Reads a survey from the lines that `consistory atlas --format json` writes.
fn read_survey(text: &str) -> Result<Survey, Box<dyn Error>> {
    // Proved implications are known without a search.
    let options = ScanOptions::default();
    let mut survey = survey(Bounds { plain: 1, extended: 1 }, &[], &options)
        .map_err(|stopped| stopped.to_string())?;
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        let number = |key: &str| line[key].as_u64().map(|number| number as usize);
        if let (Some(plain), Some(extended)) = (number("bound"), number("extended")) {
            survey.bounds = Bounds { plain, extended };
            survey.histories = line["histories"].as_u64().unwrap_or(0);
        }
        let Some(history) = line["history"].as_str() else { continue };
        let mut histories = parse_str(history, Format::Hist, "survey")?;
        let is_asked = |pair: &&mut Pair| line["allows"] == pair.from && line["forbids"] == pair.to;
        match (survey.pairs.iter_mut().find(is_asked), histories.pop()) {
            (Some(pair), Some(history)) => pair.answer = Answer::Smallest(Box::new(history)),
            _ => return Err(format!("there is no such pair: {line}").into()),
        }
    }
    Ok(survey)
}

/// Formats a history as text.
fn shown(history: &History) -> String {
    let mut text = Vec::new();
    write_history(history, Format::Hist, &mut text)
        .expect("a history of registers can be written as text, and memory does not fail");
    String::from_utf8_lossy(&text).into_owned()
}

/// Formats a number with its noun.
fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A history and the pairs that it separates.
struct Sheet {
    /// Number on the page, from 1.
    number: usize,
    history: History,
    text: String,
    /// File of the history, if it need not be smallest.
    known: Option<String>,
    pairs: Vec<(&'static str, &'static str)>,
}

impl Sheet {
    /// Returns the path of the file with the history.
    fn file(&self) -> String {
        match &self.known {
            Some(known) => known.clone(),
            None => format!("corpus/atlas/{}", self.file_name()),
        }
    }

    fn file_name(&self) -> String {
        format!("{:02}.hist", self.number)
    }

    fn is_plain(&self) -> bool {
        let is_plain =
            |op| matches!(self.history.action(op), Action::Read { .. } | Action::Write { .. });
        self.history.ops().all(is_plain)
    }
}

/// Lists the models that allow a history and those that forbid it, from pairs of such models.
fn separation(pairs: &[(&str, &str)]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for &(allows, forbids) in pairs {
        match groups.iter_mut().find(|(model, _)| *model == allows) {
            Some((_, others)) => others.push(forbids),
            None => groups.push((allows, vec![forbids])),
        }
    }
    let mut sentences: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for (allows, others) in groups {
        match sentences.iter_mut().find(|(_, known)| *known == others) {
            Some((models, _)) => models.push(allows),
            None => sentences.push((vec![allows], others)),
        }
    }
    let sentences: Vec<String> = sentences
        .iter()
        .map(|(allow, forbid)| {
            format!("Allowed by {}; forbidden by {}.", allow.join(", "), forbid.join(", "))
        })
        .collect();
    sentences.join(" ")
}

/// Collects the histories of a survey, smallest first.
fn sheets(survey: &Survey) -> Vec<Sheet> {
    let mut sheets: Vec<Sheet> = Vec::new();
    for Pair { from, to, answer, .. } in &survey.pairs {
        let (history, known) = match answer {
            Answer::Smallest(history) => (history, None),
            Answer::Known { name, history } => (history, Some(name.clone())),
            Answer::Implied(_) | Answer::Open { .. } => continue,
        };
        let text = shown(history);
        match sheets.iter_mut().find(|sheet| sheet.text == text) {
            Some(sheet) => sheet.pairs.push((from, to)),
            None => {
                let history = (**history).clone();
                sheets.push(Sheet { number: 0, history, text, known, pairs: vec![(from, to)] });
            }
        }
    }
    sheets.sort_by_key(|sheet| {
        let history = &sheet.history;
        let size = (history.len(), history.session_count(), history.key_count());
        (sheet.known.is_some(), !sheet.is_plain(), size, sheet.text.clone())
    });
    for (i, sheet) in sheets.iter_mut().enumerate() {
        sheet.number = i + 1;
    }
    sheets
}

/// Writes the smallest histories, each with its verdicts under all models.
fn write_histories(folder: &Path, sheets: &[Sheet]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let models: Vec<Model> = catalogue().iter().map(Model::Catalogued).collect();
    for sheet in sheets.iter().filter(|sheet| sheet.known.is_none()) {
        let rulings = judge(&sheet.history, &models, &Options::default());
        let verdicts: Vec<String> = models
            .iter()
            .zip(rulings)
            .filter_map(|(model, ruling)| {
                let judgement = ruling.ok()?.judgement;
                Some(match judgement {
                    Judgement::Violation { .. } => format!("{} violation", model.id()),
                    Judgement::Consistent(_) => format!("{} consistent", model.id()),
                    Judgement::Undecided(_) => return None,
                })
            })
            .collect();
        let kind = if sheet.is_plain() { "" } else { "with fences or read-modify-writes " };
        let mut text =
            format!("# A smallest history {kind}that the first allows and the second forbids:\n");
        for pairs in sheet.pairs.chunks(6) {
            let pairs: Vec<String> = pairs.iter().map(|(a, b)| format!("{a} > {b}")).collect();
            let _ = writeln!(text, "# separates: {}", pairs.join("; "));
        }
        for verdicts in verdicts.chunks(4) {
            let _ = writeln!(text, "# expect: {}", verdicts.join("; "));
        }
        text += &sheet.text;
        fs::write(folder.join(sheet.file_name()), text)?;
    }
    Ok(())
}

fn sheet_of<'a>(sheets: &'a [Sheet], pair: &Pair) -> Option<&'a Sheet> {
    sheets.iter().find(|sheet| sheet.pairs.contains(&(pair.from, pair.to)))
}

const SLIPS: &str = "
## Examples that do not separate

Two examples in the papers do not separate the models that they are meant to separate ([slips 3 and 4](models.md#slips-in-the-papers)). Independent reads of independent writes ([iriw.hist](../corpus/histories/iriw.hist)) satisfy neither CCM nor wCCM, so they do not separate these from any stronger model. The history of the thesis's Figure 5.6a violates even CCv and wTSO. With separate variables for each side it separates wSC from SC and wTSO from TSO ([weak-tso-not-tso.hist](../corpus/histories/weak-tso-not-tso.hist)), and with fences wSC and wTSO from PSO and RMO ([weak-sc-not-pso.hist](../corpus/histories/weak-sc-not-pso.hist)).
";

fn markdown(survey: &Survey, sheets: &[Sheet], options: &ScanOptions) -> String {
    let Bounds { plain, extended } = survey.bounds;
    let mut page = format!(
        "# Atlas\n\n\
         For every pair of [models of registers](models.md), this page states that the first implies \
         the second, or shows a smallest history that the first allows and the second forbids. \
         [Isolation levels](#isolation-levels) have their own table.\n\n\
         | entry | meaning |\n\
         | --- | --- |\n\
         | `⇒` | the model of the row implies that of the column, by definition or by a \
         [proof](#proofs) |\n\
         | a number | a history, shown below, that the row allows and the column forbids; no smaller \
         history of its kind separates them, unless noted otherwise |\n\
         | `?` | [open](#open): no history of up to {plain} reads and writes separates the two, and \
         none of up to {extended} operations with fences and read-modify-writes |\n\n\
         This page is written by `cargo run --release -p consistory-atlas-page -- --bound {plain} \
         --extended {extended} --known corpus/histories --histories corpus/atlas`. It decided {} \
         histories. Histories that differ only by the names of sessions, variables and values are \
         decided once, and operations without an effect on any of the models are left out \
         ([how](techniques.md#the-atlas)). The histories are in \
         [`corpus/atlas`](../corpus/atlas), where the tests judge them by every model.\n\n\
         ![The lattice of models; an edge's number is a history that the weaker model allows and \
         the stronger forbids](figures/atlas.svg)\n\n",
        survey.histories
    );
    let ids: Vec<&str> = catalogue().iter().map(|model| model.id).collect();
    let _ = writeln!(page, "| | {} |", ids.join(" | "));
    let _ = writeln!(page, "| --- {}|", "| --- ".repeat(ids.len()));
    for from in &ids {
        let cells: Vec<String> = ids
            .iter()
            .map(|to| {
                let Some(pair) = survey.pairs.iter().find(|p| p.from == *from && p.to == *to)
                else {
                    return String::new();
                };
                match (&pair.answer, sheet_of(sheets, pair)) {
                    (Answer::Implied(_), _) => "⇒".to_owned(),
                    (_, Some(sheet)) => format!("[{0}](#history-{0})", sheet.number),
                    _ => "?".to_owned(),
                }
            })
            .collect();
        let _ = writeln!(page, "| **{from}** | {} |", cells.join(" | "));
    }
    page += "\n## Proofs\n\nAll other implications follow from these. The proofs that are not from the \
             papers are in [models.md](models.md#tso-implies-ccv).\n\n";
    page += &proofs();
    page += "\n## Open\n\n";
    page += &open_pairs(survey);
    page += SLIPS;
    page += "\n## Histories\n";
    for sheet in sheets {
        let number = sheet.number;
        let operations = counted(sheet.history.len(), "operation");
        let sessions = counted(sheet.history.session_count(), "session");
        let file = sheet.file();
        let note = if sheet.known.is_some() { "; it need not be smallest" } else { "" };
        let _ = writeln!(
            page,
            "\n### History {number}\n\n{} {operations}, {sessions}, \
             [{file}](../{file}){note}.\n\n```text\n{}```",
            separation(&sheet.pairs),
            sheet.text
        );
    }
    page += &levels::section(options);
    page
}

/// Lists the pairs that neither a proof nor a history settles.
fn open_pairs(survey: &Survey) -> String {
    let Bounds { plain, extended } = survey.bounds;
    let mut lines = String::new();
    for model in catalogue() {
        let of = survey.pairs.iter().filter(|pair| pair.from == model.id);
        let open: Vec<String> = of
            .filter_map(|pair| match &pair.answer {
                Answer::Open { conjecture: None } => Some(pair.to.to_owned()),
                Answer::Open { conjecture: Some(standing) } => {
                    Some(format!("{} ({standing})", pair.to))
                }
                _ => None,
            })
            .collect();
        if !open.is_empty() {
            let _ = writeln!(lines, "- **{}**: {}", model.id, open.join(", "));
        }
    }
    if lines.is_empty() {
        return "No pair is open: each one is settled by a proof or a history, and no implication \
                rests on the search alone.\n"
            .to_owned();
    }
    format!(
        "It is open whether the first model implies each of the others. No history of up to {plain} \
         reads and writes, or of up to {extended} operations with fences and read-modify-writes, is a \
         counterexample:\n\n{lines}"
    )
}

/// Lists the implications that the others follow from, and how each is known.
fn proofs() -> String {
    let mut lines = String::new();
    let is_register = |implication: &&Implication| find(implication.from).is_ok();
    for Implication { from, to, standing } in lattice().edges.iter().filter(is_register) {
        let _ = writeln!(lines, "- **{from}** ⇒ **{to}**, {standing}");
    }
    lines
}

/// Lists the edges of the lattice of registers, each with the history that separates its models.
fn edges<'a>(lattice: &'a Lattice, survey: &Survey, sheets: &'a [Sheet]) -> Vec<AtlasEdge<'a>> {
    let edge = |edge: &'a Implication| {
        let back = survey.pairs.iter().find(|p| p.from == edge.to && p.to == edge.from);
        let sheet = back.and_then(|pair| sheet_of(sheets, pair));
        let mut label = sheet.map_or("?".to_owned(), |sheet| sheet.number.to_string());
        if !edge.standing.is_proved() {
            label += ", open";
        }
        AtlasEdge {
            stronger: edge.from,
            weaker: edge.to,
            standing: edge.standing.to_string(),
            label,
            history: sheet.map(|sheet| &sheet.history),
        }
    };
    lattice.edges.iter().map(edge).collect()
}

/// Draws the lattice; an edge's number is a history that the weaker model allows and the stronger
/// forbids.
fn svg(survey: &Survey, sheets: &[Sheet]) -> String {
    let lattice = register_lattice();
    let edges = edges(&lattice, survey, sheets);
    let mut scene = lattice_scene(&lattice, |stronger, weaker| {
        let edge = edges.iter().find(|edge| edge.stronger == stronger && edge.weaker == weaker);
        edge.map_or(String::new(), |edge| edge.label.clone())
    });
    scene.caption += " An edge's number is a history that the weaker model allows and the stronger \
                      forbids:";
    let is_used = |sheet: &&Sheet| {
        edges.iter().any(|edge| edge.history.is_some_and(|h| std::ptr::eq(h, &sheet.history)))
    };
    for sheet in sheets.iter().filter(is_used) {
        let lines: Vec<&str> = sheet.text.lines().collect();
        let note = if sheet.known.is_some() { " (need not be smallest)" } else { "" };
        scene.notes.push(format!("{}   {}{note}", sheet.number, lines.join(" // ")));
    }
    consistory_scene::svg(&scene, &lattice_view(&scene))
}
