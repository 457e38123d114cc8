//! `consistory contrast` of isolation levels: smallest histories of transactions.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use consistory::{is_path, load_definition};
use consistory_atlas::{
    Contrast, Question, ScanOptions, Side, Space, contrast_levels, scan_levels,
};
use consistory_history::History;
use consistory_models::{
    ClientOrder, Definition, EvaluateOptions, evaluate, find_level, implies, levels,
};
use consistory_verdict::{Budget, Judgement};

use crate::args::{ContrastArgs, OutputFormat};
use crate::contrast::shown;
use crate::error::{CliError, OK, UNDECIDED, VIOLATION};
use crate::output::Output;
use crate::report::{counted, quoted};

/// The most operations that separate two levels of the catalogue, and the default bound.
const LEVEL_BOUND: usize = 5;

/// An isolation level: one of the catalogue, or a user's definition.
struct Level {
    id: String,
    definition: Definition,
    is_catalogued: bool,
}

/// Contrasts two isolation levels; returns nothing if neither name is one.
pub(crate) fn contrast(args: &ContrastArgs) -> Result<Option<u8>, CliError> {
    let found = [level(&args.first)?, level(&args.second)?];
    let [first, second] = match found {
        [None, None] => return Ok(None),
        [Some(first), Some(second)] => [first, second],
        _ => {
            return Err(CliError::with_hint(
                "an isolation level and a model of registers have no histories in common",
                "compare two levels, or two models; `consistory models` lists both, and \
                 `consistory models lattice` says which levels are models on single operations",
            ));
        }
    };
    if first.id == second.id {
        return Err(CliError::usage("name two different levels, by id or by path"));
    }
    if args.draw.is_some() {
        return Err(CliError::usage("--draw is for models of registers"));
    }
    let bound = usize::from(args.bound).min(LEVEL_BOUND);
    let limited = |limit: Option<u16>, most: usize| limit.map_or(most, usize::from).min(most);
    let space = Space {
        sessions: limited(args.sessions, bound),
        variables: limited(args.variables, bound),
        rmws: args.rmws,
        ..Space::of(bound)
    };
    let options =
        ScanOptions { budget: Budget::unlimited().with_time(args.budget), jobs: args.jobs.count() };
    let started = Instant::now();
    let proof = |a: &Level, b: &Level| match a.is_catalogued && b.is_catalogued {
        true => implies(&a.id, &b.id),
        false => None,
    };
    let proofs = [proof(&first, &second), proof(&second, &first)];
    let definitions = [&first.definition, &second.definition];
    let order = args.order.into();
    let found = contrast_levels(definitions, proofs, order, &space, &options);
    let millis = started.elapsed().as_secs_f64() * 1e3;
    let mut code = OK;
    for side in &found.sides {
        code = match (side, code) {
            (Side::Separated(_), _) => VIOLATION,
            (Side::Undecided { .. }, OK) => UNDECIDED,
            _ => code,
        };
    }
    let pairs = [(&first, &second), (&second, &first)];
    let text = match args.format {
        OutputFormat::Text => page(&found, pairs, order),
        OutputFormat::Json => line(&found, pairs, order, millis),
    };
    let mut out = Output::open(None)?;
    out.write_all(text.as_bytes()).map_err(CliError::output)?;
    out.finish()?;
    Ok(Some(code))
}

/// Finds an isolation level by its id, or reads one from a file; nothing if it is another model.
fn level(name: &str) -> Result<Option<Level>, CliError> {
    if is_path(name) {
        let definition = load_definition(Path::new(name))?;
        let is_level = definition.is_transactional();
        let id = name.to_owned();
        return Ok(is_level.then_some(Level { id, definition, is_catalogued: false }));
    }
    Ok(find_level(&name.to_ascii_lowercase()).map(|level| Level {
        id: level.id.to_owned(),
        definition: level.definition.clone(),
        is_catalogued: true,
    }))
}

/// Counts the transactions of a history.
fn transactions(history: &History) -> String {
    counted(history.all_transactions().count(), "transaction")
}

/// Names the check that a level's definition finds violated.
fn pattern(level: &Level, history: &History, order: ClientOrder) -> String {
    let options = EvaluateOptions { order, ..EvaluateOptions::default() };
    match evaluate(&level.definition, history, &options) {
        Ok(Judgement::Violation { pattern, .. }) => pattern.to_string(),
        _ => String::new(),
    }
}

fn page(found: &Contrast, pairs: [(&Level, &Level); 2], order: ClientOrder) -> String {
    let mut page = String::new();
    for (side, (allows, forbids)) in found.sides.iter().zip(pairs) {
        let (a, b) = (&allows.id, &forbids.id);
        let _ = match side {
            Side::Separated(history) => {
                let text: String =
                    shown(history).lines().map(|line| format!("    {line}\n")).collect();
                writeln!(
                    page,
                    "{a} allows and {b} forbids ({}), {} in {}:\n\n{text}",
                    pattern(forbids, history, order),
                    counted(history.len(), "operation"),
                    transactions(history),
                )
            }
            Side::Implied(standing) => {
                writeln!(page, "{a} allows nothing that {b} forbids ({standing}).\n")
            }
            Side::NotUpTo { operations } => {
                let operations = counted(*operations, "operation");
                writeln!(page, "{a} allows nothing that {b} forbids, up to {operations}.\n")
            }
            Side::Undecided { operations, stopped } => writeln!(
                page,
                "{a} allows nothing that {b} forbids, up to {}; larger ones are undecided: \
                 {stopped}.\n",
                counted(*operations, "operation")
            ),
        };
    }
    let _ = writeln!(page, "{} histories decided.", found.histories);
    page
}

fn line(found: &Contrast, pairs: [(&Level, &Level); 2], order: ClientOrder, millis: f64) -> String {
    let ids: Vec<String> = pairs.iter().map(|(allows, _)| quoted(&allows.id)).collect();
    let mut line = format!("{{\"models\":[{}],\"sides\":[", ids.join(","));
    for (i, (side, (allows, forbids))) in found.sides.iter().zip(pairs).enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let (a, b) = (quoted(&allows.id), quoted(&forbids.id));
        let _ = write!(line, "{comma}{{\"allows\":{a},\"forbids\":{b},\"answer\":");
        let _ = match side {
            Side::Separated(history) => write!(
                line,
                "\"separated\",\"history\":{},\"pattern\":{}",
                quoted(&shown(history)),
                quoted(&pattern(forbids, history, order))
            ),
            Side::Implied(standing) => {
                write!(line, "\"implied\",\"by\":{}", quoted(&standing.to_string()))
            }
            Side::NotUpTo { operations } => {
                write!(line, "\"none\",\"operations\":{operations}")
            }
            Side::Undecided { operations, stopped } => write!(
                line,
                "\"undecided\",\"operations\":{operations},\"stopped\":{}",
                quoted(&stopped.to_string())
            ),
        };
        line.push('}');
    }
    let _ = writeln!(line, "],\"histories\":{},\"millis\":{millis:.3}}}", found.histories);
    line
}

/// Writes the levels' part of the atlas: a table of all pairs and the smallest histories.
pub(crate) fn atlas_section(options: &ScanOptions) -> String {
    const MOST_OPERATIONS: usize = 4;
    let ids: Vec<&str> = levels().iter().map(|level| level.id).collect();
    let mut questions = Vec::new();
    for (allows, from) in ids.iter().enumerate() {
        for (forbids, to) in ids.iter().enumerate() {
            if implies(from, to).is_none() {
                questions.push(Question { allows, forbids });
            }
        }
    }
    let definitions: Vec<&Definition> = levels().iter().map(|level| &level.definition).collect();
    let space = Space::of(MOST_OPERATIONS);
    let found = scan_levels(&definitions, &questions, ClientOrder::Session, &space, options);
    let mut histories: Vec<String> = found.answers.iter().flatten().map(shown).collect();
    histories.sort_by_key(|text| (text.matches('(').count(), text.lines().count(), text.clone()));
    histories.dedup();
    let mut page = "\n## Isolation levels\n\nThe same for [isolation levels](isolation.md), with the \
                    order of the sessions; histories of transactions up to four operations are \
                    enough. A bracket is a transaction, and so is an operation outside brackets.\n\n"
        .to_owned();
    let _ = writeln!(page, "| | {} |", ids.join(" | "));
    let _ = writeln!(page, "| --- {}|", "| --- ".repeat(ids.len()));
    let number = |text: &str| histories.iter().position(|known| known == text).map(|at| at + 1);
    for (allows, from) in ids.iter().enumerate() {
        let cells: Vec<String> = (0..ids.len())
            .map(|forbids| {
                let asked = questions.iter().position(|q| *q == Question { allows, forbids });
                match asked.map(|at| &found.answers[at]) {
                    None if allows == forbids => String::new(),
                    None => "⇒".to_owned(),
                    Some(Some(history)) => match number(&shown(history)) {
                        Some(number) => format!("[L{number}](#level-history-{number})"),
                        None => "?".to_owned(),
                    },
                    Some(None) => "?".to_owned(),
                }
            })
            .collect();
        let _ = writeln!(page, "| **{from}** | {} |", cells.join(" | "));
    }
    page += "\n";
    for level in levels() {
        for claim in level.definition.implies() {
            let _ =
                writeln!(page, "- **{}** ⇒ **{}**, {}", level.id, claim.implied, claim.standing);
        }
    }
    for same in consistory_models::on_single_operations() {
        let _ = writeln!(
            page,
            "- **{}** is **{}** where every transaction is one operation, {}",
            same.level, same.model, same.standing
        );
    }
    for (i, text) in histories.iter().enumerate() {
        let pairs: Vec<String> = questions
            .iter()
            .zip(&found.answers)
            .filter(|(_, answer)| answer.as_ref().is_some_and(|history| shown(history) == *text))
            .map(|(question, _)| format!("{} from {}", ids[question.allows], ids[question.forbids]))
            .collect();
        let number = i + 1;
        let _ = writeln!(
            page,
            "\n### Level history {number}\n\nTells {}.\n\n```text\n{text}```",
            pairs.join(", ")
        );
    }
    page
}
