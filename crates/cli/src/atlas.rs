//! `consistory atlas`: all pairs of the catalogue.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use consistory_atlas::{Answer, Bounds, Pair, ScanOptions, Survey, survey};
use consistory_check::{Model, Options, judge};
use consistory_draw::{LatticeCard, LatticeEdge, LatticeNode, lattice_with_cards_svg};
use consistory_formats::read;
use consistory_history::{Action, History};
use consistory_models::{Implication, catalogue, find, lattice};
use consistory_verdict::{Budget, Judgement};

use crate::args::{AtlasArgs, AtlasFormat};
use crate::contrast::shown;
use crate::convert::find_inputs;
use crate::error::{CliError, OK, UNDECIDED, report};
use crate::level_contrast::atlas_section;
use crate::output::{Output, write_file};
use crate::report::{counted, quoted};

/// Contrasts all pairs and prints what is known.
pub(crate) fn atlas(args: &AtlasArgs) -> Result<u8, CliError> {
    let bounds = Bounds { plain: usize::from(args.bound), extended: usize::from(args.extended) };
    let mut known = Vec::new();
    for input in find_inputs(&args.known) {
        let input = input?;
        let name = input.to_string();
        for history in read(&input, None) {
            known.push((name.clone(), history?));
        }
    }
    let options =
        ScanOptions { budget: Budget::unlimited().with_time(args.budget), jobs: args.jobs.count() };
    let survey = match survey(bounds, &known, &options) {
        Ok(survey) => survey,
        Err(stopped) => {
            report(&CliError::with_hint(
                format!("the atlas is not complete: {stopped}"),
                "give it more time, or lower --bound or --extended",
            ));
            return Ok(UNDECIDED);
        }
    };
    let sheets = sheets(&survey);
    if let Some(folder) = &args.histories {
        write_histories(folder, &sheets)?;
    }
    let text = match args.format {
        AtlasFormat::Text => text(&survey, &sheets),
        AtlasFormat::Markdown => markdown(&survey, &sheets, &options),
        AtlasFormat::Svg => svg(&survey, &sheets),
        AtlasFormat::Json => json(&survey),
    };
    let mut out = Output::open(None)?;
    out.write_all(text.as_bytes()).map_err(CliError::output)?;
    out.finish()?;
    Ok(OK)
}

/// A history and the pairs that it separates.
struct Sheet {
    /// Its number, from 1.
    number: usize,
    history: History,
    text: String,
    /// The file it is from, if it need not be smallest.
    known: Option<String>,
    pairs: Vec<(&'static str, &'static str)>,
}

impl Sheet {
    /// Gives the name of the file that holds it.
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

    fn separates(&self) -> String {
        let pairs: Vec<String> = self.pairs.iter().map(|(a, b)| format!("{a} from {b}")).collect();
        pairs.join(", ")
    }
}

/// Collects the histories of a survey, smallest first.
fn sheets(survey: &Survey) -> Vec<Sheet> {
    let mut sheets: Vec<Sheet> = Vec::new();
    for Pair { from, to, answer } in &survey.pairs {
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
fn write_histories(folder: &Path, sheets: &[Sheet]) -> Result<(), CliError> {
    std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
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
        write_file(&folder.join(sheet.file_name()), |out| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}

fn sheet_of<'a>(sheets: &'a [Sheet], pair: &Pair) -> Option<&'a Sheet> {
    sheets.iter().find(|sheet| sheet.pairs.contains(&(pair.from, pair.to)))
}

fn text(survey: &Survey, sheets: &[Sheet]) -> String {
    let mut text = String::new();
    for pair in &survey.pairs {
        let (from, to) = (pair.from, pair.to);
        let _ = match &pair.answer {
            Answer::Implied(standing) => writeln!(text, "{from:<5} => {to:<5} {standing}"),
            Answer::Open { .. } => writeln!(text, "{from:<5} ?> {to:<5} {}", open(survey)),
            Answer::Smallest(_) | Answer::Known { .. } => {
                let line = sheet_of(sheets, pair).map_or_else(String::new, |sheet| {
                    let lines: Vec<&str> = sheet.text.lines().collect();
                    let note = if sheet.known.is_some() { " (need not be smallest)" } else { "" };
                    format!("{}{note}", lines.join(" // "))
                });
                writeln!(text, "{from:<5} /> {to:<5} {line}")
            }
        };
    }
    text
}

fn open(survey: &Survey) -> String {
    let Bounds { plain, extended } = survey.bounds;
    format!(
        "open: nothing up to {plain} reads and writes, or {extended} operations with fences and read-modify-writes"
    )
}

fn json(survey: &Survey) -> String {
    let mut text = String::new();
    for Pair { from, to, answer } in &survey.pairs {
        let _ = write!(text, "{{\"from\":\"{from}\",\"to\":\"{to}\",\"answer\":");
        let Bounds { plain, extended } = survey.bounds;
        let _ = match answer {
            Answer::Implied(standing) => {
                write!(text, "\"implied\",\"by\":{}", quoted(&standing.to_string()))
            }
            Answer::Smallest(history) => {
                write!(text, "\"smallest\",\"history\":{}", quoted(&shown(history)))
            }
            Answer::Known { name, history } => write!(
                text,
                "\"known\",\"source\":{},\"history\":{}",
                quoted(name),
                quoted(&shown(history))
            ),
            Answer::Open { conjecture } => {
                let conjecture = conjecture
                    .as_ref()
                    .map_or("null".to_owned(), |standing| quoted(&standing.to_string()));
                write!(
                    text,
                    "\"open\",\"plain\":{plain},\"extended\":{extended},\"conjecture\":{conjecture}"
                )
            }
        };
        text += "}\n";
    }
    text
}

const SLIPS: &str = "
## Examples that do not separate

Two of the papers' separating examples do not do what is said of them ([slips 3 and 4](models.md#slips-in-the-papers)): independent reads of independent writes ([iriw.hist](../corpus/histories/iriw.hist)) satisfy neither CCM nor wCCM, so they tell those from nothing stronger; and the history of the thesis's Figure 5.6a already violates CCv and wTSO. With variables of their own for each side the latter tells wSC from SC and wTSO from TSO ([weak-tso-not-tso.hist](../corpus/histories/weak-tso-not-tso.hist)), and with fences wSC and wTSO from PSO and RMO ([weak-sc-not-pso.hist](../corpus/histories/weak-sc-not-pso.hist)).
";

fn markdown(survey: &Survey, sheets: &[Sheet], options: &ScanOptions) -> String {
    let Bounds { plain, extended } = survey.bounds;
    let mut page = format!(
        "# Atlas\n\n\
         For each two models of the catalogue, whether the first implies the second. `⇒` is proved \
         or by definition, as [Proofs](#proofs) says. A number is a history that the first (the \
         row) allows and the second (the column) forbids; it is shown below, and no smaller one of \
         its kind does that, unless it says otherwise. `?` is [open](#open): nothing up to {plain} \
         reads and writes tells them apart, nor up to {extended} operations with fences and \
         read-modify-writes.\n\n\
         This page is written by `consistory atlas --bound {plain} --extended {extended} --known \
         corpus/histories --histories corpus/atlas --format markdown`, which went through {} \
         histories, each once up to the names of sessions, variables and values, and without \
         operations that make no difference to any model of the catalogue. The histories are in \
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
    page += "\n## Proofs\n\nThe implications that all others follow from; the proofs that are not \
             the papers' are in [models.md](models.md#tso-implies-ccv).\n\n";
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
            "\n### History {number}\n\nTells {}. {operations}, {sessions}, \
             [{file}](../{file}){note}.\n\n```text\n{}```",
            sheet.separates(),
            sheet.text
        );
    }
    page += &atlas_section(options);
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
        return "Nothing: each pair is settled by a proof or a history, and no implication rests \
                on the search alone.\n"
            .to_owned();
    }
    format!(
        "Whether the first implies each of the others, of which nothing up to {plain} reads and \
         writes, or {extended} operations with fences and read-modify-writes, is a \
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

/// Draws the lattice; an edge says which history the weaker model allows and the stronger forbids.
fn svg(survey: &Survey, sheets: &[Sheet]) -> String {
    let mut lattice = lattice();
    lattice.nodes.retain(|(id, _)| find(id).is_ok());
    let place = |id: &str| lattice.nodes.iter().position(|(node, _)| *node == id);
    let top = lattice.nodes.iter().map(|(_, rank)| *rank).max().unwrap_or(0);
    let nodes: Vec<LatticeNode> = lattice
        .nodes
        .iter()
        .map(|&(id, rank)| LatticeNode {
            id: id.to_owned(),
            title: catalogue()
                .iter()
                .find(|model| model.id == id)
                .map(|model| model.title.clone())
                .unwrap_or_default(),
            level: top - rank,
            note: String::new(),
        })
        .collect();
    let mut used: Vec<usize> = Vec::new();
    let mut edges: Vec<LatticeEdge> = Vec::new();
    for edge in &lattice.edges {
        let (Some(stronger), Some(weaker)) = (place(edge.from), place(edge.to)) else { continue };
        let back = survey.pairs.iter().find(|p| p.from == edge.to && p.to == edge.from);
        let sheet = back.and_then(|pair| sheet_of(sheets, pair));
        let dashed = !edge.standing.is_proved();
        let mut label = sheet.map_or("?".to_owned(), |sheet| sheet.number.to_string());
        if dashed {
            label += ", open";
        }
        used.extend(sheet.map(|sheet| sheet.number));
        edges.push(LatticeEdge { stronger, weaker, label, dashed });
    }
    let cards: Vec<LatticeCard> = sheets
        .iter()
        .filter(|sheet| used.contains(&sheet.number))
        .map(|sheet| LatticeCard {
            label: format!("{}", sheet.number),
            lines: sheet.text.lines().map(str::to_owned).collect(),
            note: if sheet.known.is_some() { "need not be smallest" } else { "" }.to_owned(),
        })
        .collect();
    lattice_with_cards_svg(&nodes, &edges, &cards)
}
