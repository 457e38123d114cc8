//! The printed form of judged histories: a page for a single history; for several, one line each, a
//! page for each violation, and a table of counts at the end.

use consistory::{Attachments, Judgement, Outcome, Report, SHOWN_READING_TIME, Verdict};
use consistory_history::escaped;

use crate::output::{diagram_columns, table};
use crate::report::{coloured, heading};
use crate::units::shown_duration;

/// The printed page of a history.
pub(crate) struct Page {
    /// The whole page.
    full: String,
    /// A line that replaces the page if there are several histories and the line is sufficient.
    short: Option<String>,
    verdicts: Vec<(String, Outcome)>,
    /// Strongest satisfied models, if requested.
    strongest: Option<Vec<String>>,
}

/// Verdicts that are explained.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detail {
    /// Violations; of several histories, those without a violation get one line each.
    Violations,
    /// All verdicts, on a page for each history.
    Everything,
}

/// The pages of a batch.
#[derive(Default)]
pub(crate) struct Digest {
    histories: u64,
    /// First page, until it is known whether it is the only one.
    first: Option<Page>,
    /// Whether the last output was a single line.
    after_line: bool,
    /// For each model, the numbers of histories that are consistent, violate it and are undecided,
    /// and the number of histories for which it is one of the strongest.
    counts: Vec<(String, [u64; 4])>,
    has_strongest: bool,
}

impl Digest {
    /// Adds a page. Returns the text to print now.
    pub(crate) fn add(&mut self, page: Page) -> Vec<u8> {
        self.histories += 1;
        for (model, verdict) in &page.verdicts {
            let place = self.counts.iter().position(|(known, _)| known == model);
            let place = place.unwrap_or_else(|| {
                self.counts.push((model.clone(), [0; 4]));
                self.counts.len() - 1
            });
            let column = match verdict {
                Outcome::Consistent => 0,
                Outcome::Violation => 1,
                Outcome::Undecided => 2,
            };
            let counts = &mut self.counts[place].1;
            counts[column] += 1;
            let is_strongest = page.strongest.iter().flatten().any(|strong| strong == model);
            counts[3] += u64::from(is_strongest);
        }
        self.has_strongest |= page.strongest.is_some();
        if self.histories == 1 {
            self.first = Some(page);
            return Vec::new();
        }
        let pages = self.first.take().into_iter().chain([page]);
        pages.map(|page| self.print(page)).collect::<String>().into_bytes()
    }

    /// Prints one of many pages.
    fn print(&mut self, page: Page) -> String {
        match page.short {
            Some(line) => {
                self.after_line = true;
                line + "\n"
            }
            None => {
                let space = if self.after_line { "\n" } else { "" };
                self.after_line = false;
                format!("{space}{}", page.full)
            }
        }
    }

    /// Returns the text to be printed at the end.
    pub(crate) fn finish(self) -> Vec<u8> {
        if let Some(page) = self.first {
            return page.full.into_bytes();
        }
        if self.counts.is_empty() {
            return Vec::new();
        }
        let mut header = vec!["model", "consistent", "violation", "undecided"];
        if self.has_strongest {
            header.push("strongest");
        }
        let rows: Vec<Vec<String>> = self
            .counts
            .iter()
            .map(|(model, counts)| {
                let numbers = counts[..header.len() - 1].iter().map(ToString::to_string);
                std::iter::once(model.clone()).chain(numbers).collect()
            })
            .collect();
        let space = if self.after_line { "\n" } else { "" };
        let text = format!("{space}{} histories\n{}", self.histories, table(&header, &rows));
        text.into_bytes()
    }
}

/// Builds the page of a history, and the line that is sufficient if no model is violated or only
/// the strongest models are requested.
pub(crate) fn page(report: &Report<'_>, attached: &[Attachments], detail: Detail) -> Page {
    let is_violated = report.iter().any(Verdict::is_violation);
    let is_short = detail == Detail::Violations
        && attached.iter().all(Attachments::is_empty)
        && (!is_violated || report.strongest().is_some());
    Page {
        full: full(report, attached, detail),
        short: is_short.then(|| short(report)),
        verdicts: report.iter().map(|v| (v.model().id().to_owned(), v.outcome())).collect(),
        strongest: report.strongest().map(<[String]>::to_vec),
    }
}

/// Returns the line above the verdicts; for calls it names the object.
fn headed(report: &Report<'_>) -> String {
    let mut line = heading(report.source(), report.index(), report.history()).trim_end().to_owned();
    if let Some(object) = report.object() {
        line += &format!(", calls of {}", escaped(object.name()));
    }
    if report.reading_time() >= SHOWN_READING_TIME {
        line += &format!(", read in {}", shown_duration(report.reading_time()));
    }
    line
}

/// Checks whether all models are undecided.
fn is_undecided(report: &Report<'_>) -> bool {
    report.iter().all(|verdict| matches!(verdict.judgement(), Judgement::Undecided(_)))
}

fn short(report: &Report<'_>) -> String {
    let mut line = headed(report);
    line += &match report.strongest() {
        Some([]) if is_undecided(report) => ", nothing decided".to_owned(),
        Some([]) => ", no model satisfied".to_owned(),
        Some(ids) => format!(", strongest {}", ids.join(", ")),
        None if report.iter().any(Verdict::is_consistent) => {
            ", \u{1b}[32mconsistent\u{1b}[0m".to_owned()
        }
        None => String::new(),
    };
    for verdict in report.iter() {
        if let Judgement::Undecided(stopped) = verdict.judgement() {
            let model = verdict.model().id();
            line += &format!(", {model} \u{1b}[33mundecided\u{1b}[0m: {stopped}");
        }
    }
    line
}

fn full(report: &Report<'_>, attached: &[Attachments], detail: Detail) -> String {
    let mut page = headed(report) + "\n";
    let rows: Vec<Vec<String>> = report.iter().map(row).collect();
    page += &coloured(&table(&["model", "verdict", "pattern", "time"], &rows));
    if let Some(strongest) = report.strongest() {
        page += &match strongest {
            [] if is_undecided(report) => "\nNothing was decided.\n".to_owned(),
            [] => "\nNo model that was decided is satisfied.\n".to_owned(),
            ids => format!("\nStrongest satisfied: {}\n", ids.join(", ")),
        };
    }
    // Models that are violated by the same proof are explained together.
    let mut explained: Vec<&Judgement> = Vec::new();
    for (verdict, attached) in report.iter().zip(attached) {
        let is_told = verdict.is_violation() || detail == Detail::Everything;
        if is_told && !explained.contains(&verdict.judgement()) {
            explained.push(verdict.judgement());
            page += "\n";
            page += &verdict.explain_within(&names(verdict, report), diagram_columns());
        }
        let model = verdict.model().id();
        if let Some(shrunk) = &attached.shrunk {
            page += &format!("\nSmallest part that still violates {model}:\n\n");
            for line in shrunk.lines() {
                page += &format!("    {line}\n");
            }
        }
        if let Some(drawing) = &attached.drawing {
            page += &format!("\nDrawn in {}\n", escaped(drawing));
        }
        if let Some(file) = &attached.certificate {
            page += &format!("\nCertificate for {model} in {}\n", escaped(file));
        }
    }
    page += "\n";
    page
}

/// Returns the row of a verdict in the table.
fn row(verdict: &Verdict<'_>) -> Vec<String> {
    let mut pattern = match verdict.judgement() {
        Judgement::Undecided(stopped) => stopped.to_string(),
        _ => verdict.pattern().unwrap_or_default(),
    };
    if let (Some(via), true) = (verdict.via(), verdict.is_violation()) {
        pattern += &format!(" (as {via})");
    }
    // Wide enough for any time below a hundred seconds, so that tables are aligned alike.
    let time = format!("{:>8}", shown_duration(verdict.time()));
    vec![verdict.model().id().to_owned(), verdict.outcome().to_string(), pattern, time]
}

/// Returns the names of the models that a proof is about, and of the models of the report that it
/// settles.
fn names(verdict: &Verdict<'_>, report: &Report<'_>) -> String {
    let proved = verdict.proved();
    let sharing = report.iter().filter(|other| other.judgement() == verdict.judgement());
    let (implied, direct): (Vec<_>, Vec<_>) = sharing.partition(|other| other.via().is_some());
    let direct = direct.iter().map(|other| other.model().id()).filter(|id| *id != proved);
    let named = enumerated(std::iter::once(proved).chain(direct));
    match implied.is_empty() {
        true => named,
        false => {
            format!(
                "{named}, and so {}",
                enumerated(implied.iter().map(|other| other.model().id()))
            )
        }
    }
}

/// Joins names as in a sentence, for example `cc, ccv and sc`.
fn enumerated<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        Some((last, rest @ [_, ..])) => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
