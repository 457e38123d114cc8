//! `consistory contrast` of isolation levels: smallest histories of transactions.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use consistory::{Case, Court, Report, is_path, load_definition};
use consistory_atlas::{Contrast, ScanOptions, Share, Side, Space, contrast_levels};
use consistory_history::{History, escaped};
use consistory_models::{ClientOrder, Definition, EvaluateOptions, evaluate, find_level, implies};
use consistory_pages::ContrastSide;
use consistory_verdict::Judgement;

use crate::args::{ContrastArgs, OutputFormat};
use crate::contrast::{answer, draw_separation, shown, write_report};
use crate::error::{CliError, OK, UNDECIDED, VIOLATION};
use crate::limits;
use crate::output::{Output, for_terminal};
use crate::part::{Part, PartEnd, run_id};
use crate::report::{counted, quoted};

/// Largest number of operations that separate two built-in levels, and the default bound.
const LEVEL_BOUND: usize = 5;

/// An isolation level: a built-in one, or a user's definition.
struct Level {
    id: String,
    definition: Definition,
    is_catalogued: bool,
}

/// Contrasts two isolation levels; returns `None` if neither name is an isolation level.
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
    if args.fences {
        return Err(CliError::with_hint(
            "--fences has no effect here: isolation levels ignore fences",
            "leave it out",
        ));
    }
    let bound = usize::from(args.bound).min(LEVEL_BOUND);
    let limited = |limit: Option<u16>, most: usize| limit.map_or(most, usize::from).min(most);
    let space = Space {
        sessions: limited(args.sessions, bound),
        variables: limited(args.variables, bound),
        rmws: args.rmws,
        ..Space::of(bound)
    };
    let part = args.part.of(args.format)?;
    let options = ScanOptions {
        budget: limits::budget(args.budget).with_memory(args.memory.memory),
        jobs: args.jobs.count(),
        share: part.map_or(Share::WHOLE, Part::share),
    };
    let started = Instant::now();
    let proof = |a: &Level, b: &Level| match a.is_catalogued && b.is_catalogued {
        true => implies(&a.id, &b.id),
        false => None,
    };
    let proofs = [proof(&first, &second), proof(&second, &first)];
    let definitions = [&first.definition, &second.definition];
    let order: ClientOrder = args.order.into();
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
    let reports = match args.report.is_some() || args.drawing.draw.is_some() {
        true => judged(args, &found, pairs),
        false => vec![None, None],
    };
    let mut drawn = String::new();
    for (report, (allows, forbids)) in reports.iter().zip(pairs) {
        let violated = report.iter().flat_map(|report| report.iter()).find(|v| v.is_violation());
        let Some(verdict) = violated else { continue };
        if let Some(file) = draw_separation(verdict, &allows.id, &forbids.id, args)? {
            let _ = writeln!(drawn, "\nDrawn in {}", escaped(&file));
        }
    }
    let text = match args.format {
        OutputFormat::Text => for_terminal(page(&found, pairs, order) + &drawn),
        OutputFormat::Json => line(&found, pairs, order, millis, part),
    };
    let mut out = Output::open(None)?;
    out.write_all(text.as_bytes()).map_err(CliError::output)?;
    if let Some(part) = part {
        let run = run_id("contrast", &(&args.first, &args.second, &space, order, args.budget));
        let end = PartEnd { part, command: "contrast", run, lines: 1, errors: 0, code };
        out.write_all(end.line().as_bytes()).map_err(CliError::output)?;
    }
    out.finish()?;
    if let Some(path) = &args.report {
        write_level_report(path, args, &found, pairs, &reports)?;
    }
    Ok(Some(code))
}

/// Judges the histories that separate two levels by both of them; a user's levels have no
/// judgement.
fn judged(
    args: &ContrastArgs,
    found: &Contrast,
    pairs: [(&Level, &Level); 2],
) -> Vec<Option<Report<'static>>> {
    let judge = |history: &'_ History, allows: &Level, forbids: &Level| {
        let court = Court::new().models([&allows.id, &forbids.id]).ok()?;
        let court = court.order(args.order.into()).budget(args.budget).jobs(1);
        let case = Case { source: "contrast".into(), ..Case::from(history.clone()) };
        court.judge_case(case).ok()
    };
    let sides = found.sides.iter().zip(pairs);
    sides
        .map(|(side, (allows, forbids))| match side {
            Side::Separated(history) => judge(history, allows, forbids),
            _ => None,
        })
        .collect()
}

/// Writes an interactive report; a user's levels are shown without a judgement.
fn write_level_report(
    path: &Path,
    args: &ContrastArgs,
    found: &Contrast,
    pairs: [(&Level, &Level); 2],
    reports: &[Option<Report<'static>>],
) -> Result<(), CliError> {
    let sides: Vec<ContrastSide<'_>> = found
        .sides
        .iter()
        .zip(pairs)
        .zip(reports)
        .map(|((side, (allows, forbids)), report)| {
            let (a, b) = (&allows.id, &forbids.id);
            let sentence = match side {
                Side::Separated(history) => {
                    format!("{a} allows and {b} forbids:\n\n{}", shown(history))
                }
                Side::Implied(standing) => {
                    format!("{a} allows nothing that {b} forbids ({standing}).")
                }
                Side::NotUpTo { operations } | Side::Undecided { operations, .. } => {
                    let operations = counted(*operations, "operation");
                    format!("{a} allows nothing that {b} forbids, up to {operations}.")
                }
            };
            let judged = report.as_ref();
            ContrastSide { allows: a, forbids: b, answer: answer(side), sentence, judged }
        })
        .collect();
    write_report(path, args, &sides, found.histories)
}

/// Finds an isolation level by its id, or reads one from a file; `None` if it is another model.
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

/// Returns the name of the check of a level's definition that is violated.
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

fn line(
    found: &Contrast,
    pairs: [(&Level, &Level); 2],
    order: ClientOrder,
    millis: f64,
    part: Option<Part>,
) -> String {
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
        if let (Some(_), Some(place)) = (part, found.places[i]) {
            let _ = write!(line, ",\"place\":{place:?}");
        }
        line.push('}');
    }
    let _ = writeln!(line, "],\"histories\":{},\"millis\":{millis:.3}}}", found.histories);
    line
}
