//! `consistory contrast`: smallest histories that separate two models.

use std::io::Write;
use std::path::Path;

use consistory::{Attachments, Case, Court, Outcome, Report, Verdict};
use consistory_atlas::{ScanIndex, ScanOptions, Share, Side, Space, contrast as compare};
use consistory_formats::{Format, write_history};
use consistory_history::{History, escaped};
use consistory_pages::{ContrastSide, contrast_case};
use consistory_registers::Model;

use crate::again::again;
use crate::args::{ContrastArgs, OrderArg, OutputFormat};
use crate::error::{CliError, OK, UNDECIDED, VIOLATION};
use crate::level_contrast;
use crate::limits;
use crate::output::{Output, for_terminal, write_file};
use crate::pages::Pages;
use crate::part::{Part, PartEnd, run_id};
use crate::report::{counted, quoted};

/// Searches for histories that one of two models allows and the other forbids.
pub(crate) fn contrast(args: &ContrastArgs) -> Result<u8, CliError> {
    if let Some(code) = level_contrast::contrast(args)? {
        return Ok(code);
    }
    if args.order != OrderArg::Session {
        return Err(CliError::with_hint(
            "--order has no effect here: it is for isolation levels",
            "models of registers have no such choice",
        ));
    }
    let models = [register_model(&args.first)?, register_model(&args.second)?];
    if models[0].id() == models[1].id() {
        return Err(CliError::usage("name two different models, by id or by path"));
    }
    if let Some(timed) = models.iter().find(|m| m.definition().program().mentions_real_time()) {
        return Err(CliError::with_hint(
            format!(
                "{} orders operations by their times, and the small histories have none",
                timed.id()
            ),
            "compare the definition without `rt`",
        ));
    }
    let operations = usize::from(args.bound);
    let limited = |limit: Option<u16>, most: usize| limit.map_or(most, usize::from).min(most);
    let space = Space {
        sessions: limited(args.sessions, operations),
        variables: limited(args.variables, Space::of(operations).variables),
        fences: args.fences,
        rmws: args.rmws,
        ..Space::of(operations)
    };
    if let Some(folder) = &args.drawing.draw {
        std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
    }
    let started = std::time::Instant::now();
    let budget = limits::budget(args.budget).with_memory(args.memory.memory);
    let part = args.part.of(args.format)?;
    let share = part.map_or(Share::WHOLE, Part::share);
    let options = ScanOptions { budget, jobs: args.jobs.count(), share };
    let found = compare(&models, &space, &options);
    let places = found.places;
    let millis = started.elapsed().as_secs_f64() * 1e3;
    let mut code = OK;
    let mut sides = Vec::new();
    for (side, (allows, forbids)) in
        found.sides.into_iter().zip([(&models[0], &models[1]), (&models[1], &models[0])])
    {
        code = match (&side, code) {
            (Side::Separated(_), _) => VIOLATION,
            (Side::Undecided { .. }, OK) => UNDECIDED,
            _ => code,
        };
        let index = sides.len() as u64;
        let separation = match &side {
            Side::Separated(history) => Some(separation(history, index, allows, forbids, args)?),
            _ => None,
        };
        let place = part.and(places[sides.len()]);
        sides.push(Shown { allows, forbids, side, separation, place });
    }
    let mut out = Output::open(None)?;
    let text = match args.format {
        OutputFormat::Text => for_terminal(page(&sides, &space, found.histories)),
        OutputFormat::Json => line(&sides, &space, found.histories, millis),
    };
    out.write_all(text.as_bytes()).map_err(CliError::output)?;
    if let Some(part) = part {
        let run = run_id("contrast", &(&args.first, &args.second, &space, args.budget));
        let end = PartEnd { part, command: "contrast", run, lines: 1, errors: 0, code };
        out.write_all(end.line().as_bytes()).map_err(CliError::output)?;
    }
    out.finish()?;
    if let Some(path) = &args.report {
        let shown = sides.iter().map(|shown| ContrastSide {
            allows: shown.allows.id(),
            forbids: shown.forbids.id(),
            answer: answer(&shown.side),
            sentence: sentence(shown, &space),
            judged: shown.separation.as_ref().map(|separation| &separation.report),
        });
        write_report(path, args, &shown.collect::<Vec<_>>(), found.histories)?;
    }
    Ok(code)
}

/// Writes an interactive report of a contrast.
pub(crate) fn write_report(
    path: &Path,
    args: &ContrastArgs,
    sides: &[ContrastSide<'_>],
    histories: u64,
) -> Result<(), CliError> {
    let (first, second) = (&args.first, &args.second);
    let title = format!("{first} and {second}");
    let mut case = contrast_case(&title, sides);
    case.facts = vec![
        ("histories decided".to_owned(), histories.to_string()),
        ("largest".to_owned(), counted(usize::from(args.bound), "operation")),
    ];
    case.recheck = again(&[first, second]);
    let mut pages = Pages::open(path, &format!("Contrast of {title}"))?;
    pages.add(0, [], &case).map_err(CliError::output)?;
    pages.finish()
}

/// Returns a word for the result of a direction.
pub(crate) fn answer(side: &Side) -> &'static str {
    match side {
        Side::Separated(_) => "separated",
        Side::Implied(_) => "implied",
        Side::NotUpTo { .. } => "none",
        Side::Undecided { .. } => "undecided",
    }
}

/// A direction of the contrast, ready to be printed.
struct Shown<'a> {
    allows: &'a Model,
    forbids: &'a Model,
    side: Side,
    separation: Option<Separation>,
    /// Index of the history in the scan, in the output of a part.
    place: Option<ScanIndex>,
}

/// A separating history, judged by both models.
struct Separation {
    text: String,
    report: Report<'static>,
    /// File with the drawing.
    drawing: Option<String>,
}

/// Finds a model of registers.
fn register_model(name: &str) -> Result<Model, CliError> {
    match consistory::Model::register(name)? {
        consistory::Model::Register(model) => Ok(model),
        model => Err(CliError::usage(format!("`{}` is not a model of registers", model.id()))),
    }
}

/// Draws a history that one model forbids and another allows, if a folder for drawings was given;
/// returns the name of the file.
pub(crate) fn draw_separation(
    verdict: &Verdict<'_>,
    allows: &str,
    forbids: &str,
    args: &ContrastArgs,
) -> Result<Option<String>, CliError> {
    let Some(folder) = &args.drawing.draw else { return Ok(None) };
    std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
    let plain = |id: &str| Path::new(id).file_stem().unwrap_or_default().to_os_string();
    let format = args.drawing.format();
    let mut name = plain(allows);
    name.push("-not-");
    name.push(plain(forbids));
    name.push(format!(".{}", format.extension()));
    let path = folder.join(name);
    let drawn = verdict.draw_as(format);
    write_file(&path, |out| out.write_all(drawn.as_bytes()))?;
    Ok(Some(path.display().to_string()))
}

/// Judges a history by both models; the certified verdicts must agree with the scan.
fn separation(
    history: &History,
    index: u64,
    allows: &Model,
    forbids: &Model,
    args: &ContrastArgs,
) -> Result<Separation, CliError> {
    let court = Court::registers().models([allows.id(), forbids.id()])?;
    let court = court.budget(args.budget).jobs(1);
    let case = Case { source: "contrast".into(), index, ..Case::from(history.clone()) };
    let report = court.judge_case(case)?;
    let mut drawing = None;
    for (verdict, expected) in report.iter().zip([Outcome::Consistent, Outcome::Violation]) {
        let defect = |what: String| {
            CliError::with_hint(
                format!("{what} for {}, of\n{}", verdict.model().id(), shown(history)),
                "this is a bug in Consistory; the result is withheld",
            )
        };
        if let Some(rejection) = verdict.rejection() {
            return Err(defect(format!("the certificate was rejected: {rejection}")));
        }
        if verdict.outcome() != expected {
            return Err(defect(format!("the verdict is {}", verdict.outcome())));
        }
        if verdict.is_violation() {
            drawing = draw_separation(verdict, allows.id(), forbids.id(), args)?;
        }
    }
    Ok(Separation { text: shown(history), report, drawing })
}

/// Writes a history in text form.
pub(crate) fn shown(history: &History) -> String {
    let mut text = Vec::new();
    write_history(history, Format::Hist, &mut text)
        .expect("a history of registers can be written as text, and memory does not fail");
    String::from_utf8_lossy(&text).into_owned()
}

/// Describes the histories that were examined.
fn extent(space: &Space, operations: usize) -> String {
    let mut words = format!("up to {}", counted(operations, "operation"));
    let limits = [
        (space.sessions < operations).then(|| counted(space.sessions, "session")),
        (space.variables < operations / 2).then(|| counted(space.variables, "variable")),
    ];
    for limit in limits.into_iter().flatten() {
        words += &format!(", {limit}");
    }
    let extras = [(space.fences, "fences"), (space.rmws, "read-modify-writes")];
    for (_, extra) in extras.into_iter().filter(|(is_there, _)| *is_there) {
        words += &format!(", with {extra}");
    }
    words
}

/// Describes the result of one direction.
fn sentence(shown: &Shown<'_>, space: &Space) -> String {
    let (a, b) = (shown.allows.id(), shown.forbids.id());
    match &shown.side {
        Side::Separated(history) => {
            let operations = counted(history.len(), "operation");
            let sessions = counted(history.session_count(), "session");
            format!("{a} allows and {b} forbids, {operations} in {sessions}:")
        }
        Side::Implied(standing) => format!("{a} allows nothing that {b} forbids ({standing})."),
        Side::NotUpTo { operations } => {
            let extent = extent(space, *operations);
            format!("{a} allows nothing that {b} forbids, {extent}.")
        }
        Side::Undecided { operations, stopped } => format!(
            "{a} allows nothing that {b} forbids, {}; larger ones are undecided: {stopped}.",
            extent(space, *operations)
        ),
    }
}

fn page(sides: &[Shown<'_>], space: &Space, histories: u64) -> String {
    let mut page = String::new();
    for shown in sides {
        page += &sentence(shown, space);
        page += if shown.separation.is_some() { "\n\n" } else { "\n" };
        if let Some(Separation { text, report, drawing }) = &shown.separation {
            for line in text.lines() {
                page += &format!("    {line}\n");
            }
            for verdict in report.iter() {
                page += "\n";
                page += &verdict.explain();
            }
            if let Some(drawing) = drawing {
                page += &format!("\nDrawn in {}\n", escaped(drawing));
            }
        }
        page += "\n";
    }
    page += &format!("{histories} histories decided, each once up to its names.\n");
    page
}

fn line(sides: &[Shown<'_>], space: &Space, histories: u64, millis: f64) -> String {
    let mut line = Vec::new();
    let Space { operations, sessions, variables, fences, rmws } = space;
    let write = |line: &mut Vec<u8>, text: String| line.extend(text.into_bytes());
    let ids: Vec<String> = sides.iter().map(|side| quoted(side.allows.id())).collect();
    write(
        &mut line,
        format!(
            "{{\"models\":[{}],\"space\":{{\"operations\":{operations},\"sessions\":{sessions},\
             \"variables\":{variables},\"fences\":{fences},\"rmws\":{rmws}}},\"sides\":[",
            ids.join(",")
        ),
    );
    for (i, Shown { allows, forbids, side, separation, place }) in sides.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let (a, b) = (quoted(allows.id()), quoted(forbids.id()));
        write(&mut line, format!("{comma}{{\"allows\":{a},\"forbids\":{b},\"answer\":"));
        match side {
            Side::Separated(_) => {
                write(&mut line, "\"separated\"".to_owned());
                if let Some(Separation { text, report, drawing }) = separation {
                    let drawing = Attachments { drawing: drawing.clone(), ..Default::default() };
                    let judged = report.json_with(&[Attachments::default(), drawing]);
                    write(&mut line, format!(",\"history\":{},\"judged\":{judged}", quoted(text)));
                }
            }
            Side::Implied(standing) => {
                write(&mut line, format!("\"implied\",\"by\":{}", quoted(&standing.to_string())));
            }
            Side::NotUpTo { operations } => {
                write(&mut line, format!("\"none\",\"operations\":{operations}"));
            }
            Side::Undecided { operations, stopped } => {
                let why = quoted(&stopped.to_string());
                write(
                    &mut line,
                    format!("\"undecided\",\"operations\":{operations},\"stopped\":{why}"),
                );
            }
        }
        if let Some(place) = place {
            write(&mut line, format!(",\"place\":{place:?}"));
        }
        line.push(b'}');
    }
    write(&mut line, format!("],\"histories\":{histories},\"millis\":{millis:.3}}}\n"));
    String::from_utf8_lossy(&line).into_owned()
}
