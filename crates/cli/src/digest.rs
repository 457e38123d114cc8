//! What people read of histories: a page for one, and for many a line each, a page for what is
//! violated, and a table of counts at the end.

use consistory_draw::table;
use consistory_verdict::Verdict;

use crate::finding::Finding;
use crate::report::{Outcome, Report, coloured, heading};

/// What people may read of a history.
pub(crate) struct Page {
    /// All about it.
    full: String,
    /// A line, if that is enough where there are many.
    short: Option<String>,
    verdicts: Vec<(String, Verdict)>,
    /// The strongest models satisfied, if that was asked for.
    strongest: Option<Vec<String>>,
}

/// Pages, as they come.
#[derive(Default)]
pub(crate) struct Digest {
    histories: u64,
    /// The first page, until it is known whether it is the only one.
    first: Option<Page>,
    /// Whether the last thing printed was a line.
    after_line: bool,
    /// For each model how many histories are consistent, violate it and are undecided, and for
    /// how many it is one of the strongest.
    counts: Vec<(String, [u64; 4])>,
    has_strongest: bool,
}

impl Digest {
    /// Takes a page; gives what is to be printed now.
    pub(crate) fn add(&mut self, page: Page) -> Vec<u8> {
        self.histories += 1;
        for (model, verdict) in &page.verdicts {
            let place = self.counts.iter().position(|(known, _)| known == model);
            let place = place.unwrap_or_else(|| {
                self.counts.push((model.clone(), [0; 4]));
                self.counts.len() - 1
            });
            let column = match verdict {
                Verdict::Consistent => 0,
                Verdict::Violation => 1,
                Verdict::Undecided => 2,
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

    /// Gives what is to be printed at the end.
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

/// Writes all about a history, and the line that is enough where nothing is violated or only the
/// strongest models are asked for.
pub(crate) fn page(report: &Report<'_>) -> Page {
    let Report { results, strongest, .. } = report;
    let is_violated = results.iter().any(|outcome| outcome.verdict() == Verdict::Violation);
    let has_files = |outcome: &Outcome| {
        outcome.file.is_some() || outcome.drawing.is_some() || outcome.shrunk.is_some()
    };
    let is_short = !results.iter().any(has_files) && (!is_violated || strongest.is_some());
    Page {
        full: full(report),
        short: is_short.then(|| short(report)),
        verdicts: results.iter().map(|o| (o.model.clone(), o.verdict())).collect(),
        strongest: strongest.map(<[String]>::to_vec),
    }
}

fn short(report: &Report<'_>) -> String {
    let Report { source, index, history, results, strongest, .. } = report;
    let mut line = heading(source, *index, history).trim_end().to_owned();
    line += &match strongest {
        Some([]) => ", no model satisfied".to_owned(),
        Some(ids) => format!(", strongest {}", ids.join(", ")),
        None if results.iter().any(|o| o.verdict() == Verdict::Consistent) => {
            ", \u{1b}[32mconsistent\u{1b}[0m".to_owned()
        }
        None => String::new(),
    };
    for outcome in *results {
        if outcome.verdict() == Verdict::Undecided {
            let (model, why) = (&outcome.model, outcome.finding.pattern(history));
            line += &format!(", {model} \u{1b}[33mundecided\u{1b}[0m: {why}");
        }
    }
    line
}

fn full(report: &Report<'_>) -> String {
    let Report { source, index, history, results, strongest, .. } = report;
    let mut page = heading(source, *index, history);
    let rows: Vec<Vec<String>> = results
        .iter()
        .map(|outcome| {
            let mut pattern = outcome.finding.pattern(history);
            if let (Some(via), Verdict::Violation) = (outcome.via, outcome.verdict()) {
                pattern += &format!(" (as {via})");
            }
            let time = format!("{:.1} ms", outcome.time.as_secs_f64() * 1e3);
            vec![outcome.model.clone(), outcome.verdict().as_str().to_owned(), pattern, time]
        })
        .collect();
    page += &coloured(&table(&["model", "verdict", "pattern", "time"], &rows));
    if let Some(strongest) = strongest {
        page += &match strongest {
            [] => "\nNo model that was decided is satisfied.\n".to_owned(),
            ids => format!("\nStrongest satisfied: {}\n", ids.join(", ")),
        };
    }
    // Models that fall by the same proof are explained together.
    let mut explained: Vec<&Finding> = Vec::new();
    for outcome in *results {
        if outcome.verdict() == Verdict::Violation && !explained.contains(&&outcome.finding) {
            explained.push(&outcome.finding);
            page += "\n";
            page += &outcome.finding.story(history, &outcome.named(results));
        }
        if let Some(shrunk) = &outcome.shrunk {
            page += &format!("\nSmallest part that still violates {}:\n\n", outcome.model);
            for line in shrunk.lines() {
                page += &format!("    {line}\n");
            }
        }
        if let Some(drawing) = &outcome.drawing {
            page += &format!("\nDrawn in {drawing}\n");
        }
        if let Some(file) = &outcome.file {
            page += &format!("\nCertificate for {} in {file}\n", outcome.model);
        }
    }
    page += "\n";
    page
}
