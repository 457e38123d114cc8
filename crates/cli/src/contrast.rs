//! `consistory contrast`: how two models differ, by smallest histories.

use std::io::Write;
use std::path::Path;

use consistory_atlas::{ScanOptions, Side, Space, contrast as compare};
use consistory_check::{Model, Options, Ruling, judge};
use consistory_formats::{Format, write_history};
use consistory_history::History;
use consistory_verdict::{Budget, Verdict};

use crate::args::{ContrastArgs, OutputFormat};
use crate::certify::accept;
use crate::error::{CliError, OK, UNDECIDED, VIOLATION};
use crate::finding::Finding;
use crate::output::{Output, write_file};
use crate::report::{Outcome, Report, counted, json, quoted};
use crate::select::select;

/// Looks for histories that one of two models allows and the other forbids.
pub(crate) fn contrast(args: &ContrastArgs) -> Result<u8, CliError> {
    let names = [args.first.clone(), args.second.clone()];
    let models: [Model; 2] = select(&names)?
        .models
        .try_into()
        .map_err(|_| CliError::usage("name two different models, by id or by path"))?;
    let operations = usize::from(args.bound);
    let limited = |limit: Option<u16>, most: usize| limit.map_or(most, usize::from).min(most);
    let space = Space {
        sessions: limited(args.sessions, operations),
        variables: limited(args.variables, Space::of(operations).variables),
        fences: args.fences,
        rmws: args.rmws,
        ..Space::of(operations)
    };
    if let Some(folder) = &args.draw {
        std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
    }
    let started = std::time::Instant::now();
    let budget = Budget::unlimited().with_time(args.budget);
    let options = ScanOptions { budget, jobs: args.jobs.count() };
    let found = compare(&models, &space, &options);
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
        let separation = match &side {
            Side::Separated(history) => Some(separation(history, allows, forbids, args)?),
            _ => None,
        };
        sides.push(Shown { allows, forbids, side, separation });
    }
    let mut out = Output::open(None)?;
    let text = match args.format {
        OutputFormat::Text => page(&sides, &space, found.histories),
        OutputFormat::Json => line(&sides, &space, found.histories, millis),
    };
    out.write_all(text.as_bytes()).map_err(CliError::output)?;
    out.finish()?;
    Ok(code)
}

/// A direction of the contrast, ready to be printed.
struct Shown<'a> {
    allows: &'a Model,
    forbids: &'a Model,
    side: Side,
    separation: Option<Separation>,
}

/// A history that separates, judged by both models.
struct Separation {
    text: String,
    results: [Outcome; 2],
}

/// Judges a history by both models; what the certificates say must be what the scan said.
fn separation(
    history: &History,
    allows: &Model,
    forbids: &Model,
    args: &ContrastArgs,
) -> Result<Separation, CliError> {
    let budget = Budget::unlimited().with_time(args.budget);
    let options = Options { budget, ..Options::default() };
    let expected = [(allows, Verdict::Consistent), (forbids, Verdict::Violation)];
    let mut results = Vec::new();
    for (model, expected) in expected {
        let defect = |what: &str| {
            CliError::with_hint(
                format!("{what} for {}, of\n{}", model.id(), shown(history)),
                "this is a defect of consistory; nothing is claimed",
            )
        };
        let ruling = judge(history, std::slice::from_ref(model), &options)
            .swap_remove(0)
            .map_err(|reason| defect(&reason.to_string()))?;
        let verdict = ruling.judgement.verdict();
        let certificate = ruling.judgement.certificate();
        if verdict != expected {
            return Err(defect(&format!("the verdict is {}", verdict.as_str())));
        }
        if let Some(certificate) = certificate {
            accept(history, model, ruling.via, verdict, certificate).map_err(|rejection| {
                defect(&format!("the certificate was rejected: {rejection}"))
            })?;
        }
        let Ruling { judgement, via, time } = ruling;
        let mut outcome = Outcome::new(model.id(), Finding::Registers(judgement), via, time);
        if let (Some(folder), Verdict::Violation) = (&args.draw, verdict) {
            let plain = |id: &str| Path::new(id).file_stem().unwrap_or_default().to_os_string();
            let mut name = plain(allows.id());
            name.push("-not-");
            name.push(plain(forbids.id()));
            name.push(".svg");
            let path = folder.join(name);
            let svg = outcome.finding.picture(history, outcome.proved());
            write_file(&path, |out| out.write_all(svg.as_bytes()))?;
            outcome.drawing = Some(path.display().to_string());
        }
        results.push(outcome);
    }
    let results = <[Outcome; 2]>::try_from(results).ok().expect("two models, two results");
    Ok(Separation { text: shown(history), results })
}

/// Writes a history in text form.
pub(crate) fn shown(history: &History) -> String {
    let mut text = Vec::new();
    write_history(history, Format::Hist, &mut text)
        .expect("a history of registers can be written as text, and memory does not fail");
    String::from_utf8_lossy(&text).into_owned()
}

/// Says what was gone through.
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

fn page(sides: &[Shown<'_>], space: &Space, histories: u64) -> String {
    let mut page = String::new();
    for Shown { allows, forbids, side, separation } in sides {
        let (a, b) = (allows.id(), forbids.id());
        page += &match side {
            Side::Separated(history) => {
                let operations = counted(history.len(), "operation");
                let sessions = counted(history.session_count(), "session");
                format!("{a} allows and {b} forbids, {operations} in {sessions}:\n\n")
            }
            Side::Implied(standing) => {
                format!("{a} allows nothing that {b} forbids ({standing}).\n")
            }
            Side::NotUpTo { operations } => {
                let extent = extent(space, *operations);
                format!("{a} allows nothing that {b} forbids, {extent}.\n")
            }
            Side::Undecided { operations, stopped } => format!(
                "{a} allows nothing that {b} forbids, {}; larger ones are undecided: {stopped}.\n",
                extent(space, *operations)
            ),
        };
        if let (Some(Separation { text, results }), Side::Separated(history)) = (separation, side) {
            for line in text.lines() {
                page += &format!("    {line}\n");
            }
            for outcome in results {
                page += "\n";
                page +=
                    &outcome.finding.story(history, &outcome.named(std::slice::from_ref(outcome)));
                if let Some(drawing) = &outcome.drawing {
                    page += &format!("\nDrawn in {drawing}\n");
                }
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
    for (i, Shown { allows, forbids, side, separation }) in sides.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let (a, b) = (quoted(allows.id()), quoted(forbids.id()));
        write(&mut line, format!("{comma}{{\"allows\":{a},\"forbids\":{b},\"answer\":"));
        match side {
            Side::Separated(history) => {
                write(&mut line, "\"separated\"".to_owned());
                if let Some(Separation { text, results }) = separation {
                    write(&mut line, format!(",\"history\":{},\"judged\":", quoted(text)));
                    let report = Report {
                        source: "contrast",
                        index: i as u64,
                        history,
                        object: None,
                        results,
                        strongest: None,
                    };
                    json(&report, &mut line).expect("writing to memory does not fail");
                    // The report ends its line.
                    line.pop();
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
        line.push(b'}');
    }
    write(&mut line, format!("],\"histories\":{histories},\"millis\":{millis:.3}}}\n"));
    String::from_utf8_lossy(&line).into_owned()
}
