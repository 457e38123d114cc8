//! `consistory atlas`: every pair of models of registers, contrasted at once.
//!
//! There is one line of JSON per pair. In the output of a part, the line of a pair that the part
//! separates contains the place of the history, and [`merge`](crate::merge) chooses the history
//! with the smallest place.

use std::io::Write;

use consistory_atlas::{Answer, Bounds, Pair, ScanOptions, Share, Survey, survey};
use consistory_models::catalogue;

use crate::args::{AtlasArgs, OutputFormat};
use crate::contrast::shown;
use crate::error::{CliError, OK, UNDECIDED, VIOLATION, report};
use crate::limits;
use crate::output::{Output, for_terminal, table};
use crate::part::{Part, PartEnd, run_id};
use crate::report::quoted;

/// Searches for the smallest histories that separate the models of the catalogue.
pub(crate) fn atlas(args: &AtlasArgs) -> Result<u8, CliError> {
    let part = args.part.of(args.format)?;
    let bounds = Bounds { plain: usize::from(args.bound), extended: usize::from(args.extended) };
    let options = ScanOptions {
        budget: limits::budget(args.budget).with_memory(args.memory.memory),
        jobs: args.jobs.count(),
        share: part.map_or(Share::WHOLE, Part::share),
    };
    let survey = match survey(bounds, &[], &options) {
        Ok(survey) => survey,
        Err(stopped) => {
            report(&CliError::with_hint(
                format!("the search stopped: {stopped}"),
                "use a larger --budget, a smaller --bound, or divide the work with --part",
            ));
            return Ok(UNDECIDED);
        }
    };
    let is_separated = survey.pairs.iter().any(|pair| matches!(pair.answer, Answer::Smallest(_)));
    let code = if is_separated { VIOLATION } else { OK };
    let mut text = match args.format {
        OutputFormat::Text => for_terminal(page(&survey)),
        OutputFormat::Json => lines(&survey, part),
    };
    if let Some(part) = part {
        let run = run_id("atlas", &(args.bound, args.extended));
        let lines = text.lines().count() as u64;
        text += &PartEnd { part, command: "atlas", run, lines, errors: 0, code }.line();
    }
    let mut out = Output::open(None)?;
    out.write_all(text.as_bytes()).map_err(CliError::output)?;
    out.finish()?;
    Ok(code)
}

/// Writes one line per pair, then one line with totals.
fn lines(survey: &Survey, part: Option<Part>) -> String {
    let mut text = String::new();
    for Pair { from, to, answer, place } in &survey.pairs {
        text += &format!("{{\"allows\":{},\"forbids\":{}", quoted(from), quoted(to));
        text += &match answer {
            Answer::Implied(standing) => {
                format!(",\"answer\":\"implied\",\"by\":{}", quoted(&standing.to_string()))
            }
            Answer::Smallest(history) | Answer::Known { history, .. } => {
                let (size, shown) = (history.len(), quoted(&shown(history)));
                format!(",\"answer\":\"separated\",\"operations\":{size},\"history\":{shown}")
            }
            Answer::Open { .. } => ",\"answer\":\"none\"".to_owned(),
        };
        if let (Some(_), Some((scan, [operations, sessions, variables, skeleton]))) = (part, place)
        {
            text += &format!(",\"place\":[{scan},{operations},{sessions},{variables},{skeleton}]");
        }
        text += "}\n";
    }
    let Bounds { plain, extended } = survey.bounds;
    let histories = survey.histories;
    text + &format!("{{\"bound\":{plain},\"extended\":{extended},\"histories\":{histories}}}\n")
}

/// Writes a table of all pairs and the histories that separate them.
fn page(survey: &Survey) -> String {
    let mut histories: Vec<(usize, String)> = Vec::new();
    for pair in &survey.pairs {
        if let Answer::Smallest(history) = &pair.answer {
            histories.push((history.len(), shown(history)));
        }
    }
    histories.sort();
    histories.dedup();
    let number = |text: &str| histories.iter().position(|(_, known)| known == text);
    let ids: Vec<&str> = catalogue().iter().map(|model| model.id).collect();
    let cell = |from: &str, to: &str| {
        let pair = survey.pairs.iter().find(|pair| (pair.from, pair.to) == (from, to));
        match pair.map(|pair| &pair.answer) {
            None => "-".to_owned(),
            Some(Answer::Implied(_)) => "=>".to_owned(),
            Some(Answer::Smallest(history)) => {
                number(&shown(history)).map_or("?".to_owned(), |at| (at + 1).to_string())
            }
            Some(Answer::Known { .. } | Answer::Open { .. }) => "?".to_owned(),
        }
    };
    let rows: Vec<Vec<String>> = ids
        .iter()
        .map(|from| {
            let cells = ids.iter().map(|to| cell(from, to));
            std::iter::once((*from).to_owned()).chain(cells).collect()
        })
        .collect();
    let header: Vec<&str> =
        std::iter::once("allows \\ forbids").chain(ids.iter().copied()).collect();
    let Bounds { plain, extended } = survey.bounds;
    let mut page = table(&header, &rows);
    page += &format!(
        "\n=> the row implies the column; a number is a smallest history that the row allows and the \
         column forbids;\n?  nothing up to {plain} reads and writes, or {extended} operations with fences \
         and read-modify-writes.\n"
    );
    for (at, (_, text)) in histories.iter().enumerate() {
        page += &format!("\n{}\n", at + 1);
        for line in text.lines() {
            page += &format!("    {line}\n");
        }
    }
    page + &format!("\n{} histories decided, each once up to its names.\n", survey.histories)
}
