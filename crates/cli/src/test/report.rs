//! The interactive reports of tests: of a database under faults, and of a collection.

use std::io::Write;
use std::path::Path;

use consistory_drive::{CoreOperation, FaultEvent, Findings};
use consistory_harness::Fault;
use consistory_report::{Case, Chart, ResultRow, with_fact};
use consistory_scene::{Band, Emphasis, Lane, Node, NodeKind, Scene};

use crate::error::CliError;
use crate::output::write_file;
use crate::pages::Pages;
use crate::reading;

/// Writes the report of a run; `scenes` are the pictures of the smallest violation.
pub(super) fn write(path: &Path, findings: &Findings, scenes: &[Scene]) -> Result<(), CliError> {
    let case = case(findings, scenes);
    let mut pages = Pages::open(path, &findings.judged.title)?;
    let words = findings.judged.verdicts.iter();
    let words = words.map(|verdict| (verdict.model.as_str(), verdict.verdict.as_str()));
    pages.add(findings.operations, words, &case).map_err(CliError::output)?;
    pages.finish()
}

/// Adds a fact to a report that is already written.
pub(super) fn add_fact(path: &Path, name: &str, value: &str) -> Result<(), CliError> {
    let html = reading::text(path)?;
    match with_fact(&html, name, value) {
        Some(html) => write_file(path, |out| out.write_all(html.as_bytes())),
        None => Err(CliError::usage(format!("{} is no longer the report", path.display()))),
    }
}

/// Writes the report of a collection that was tested: one case per violation; `again` is the command
/// that tests it again.
pub(super) fn write_failures(
    path: &Path,
    target: &str,
    report: &consistory_harness::Report,
    again: &str,
) -> Result<(), CliError> {
    let mut pages = Pages::open(path, &format!("{target}: {} runs", report.runs))?;
    let facts = vec![
        ("programs".to_owned(), report.programs.to_string()),
        ("runs".to_owned(), report.runs.to_string()),
        ("wrong runs".to_owned(), report.bad_runs.to_string()),
    ];
    let promise = report.promise.name();
    for (number, failure) in report.failures.iter().enumerate() {
        let title = format!("{target}, violation {}", number + 1);
        let mut case = Case::new(title, ["promise", "verdict", "seen"]);
        case.facts = facts.clone();
        case.recheck = again.to_owned();
        let seen = format!("in {} of {} runs", failure.seen.0, failure.seen.1);
        let mut row = ResultRow::new([promise.as_str().into(), "violation".into(), seen.into()]);
        row.text = failure.to_string();
        if let Fault::Violation(verdict) = &failure.fault {
            for scene in verdict.scenes() {
                row.scenes.push(case.scenes.len());
                case.scenes.push(scene.into());
            }
        }
        case.rows.push(row);
        case.text = failure.program.to_string();
        let operations = failure.history.len() as u64;
        let words = [(promise.as_str(), "violation")];
        pages.add(operations, words, &case).map_err(CliError::output)?;
    }
    if report.failures.is_empty() {
        let word = if report.undecided > 0 { "undecided" } else { "consistent" };
        let mut case = Case::new(target, ["promise", "verdict"]);
        case.facts = facts;
        case.recheck = again.to_owned();
        case.rows.push(ResultRow::new([promise.as_str().into(), word.into()]));
        pages.add(0, [(promise.as_str(), word)], &case).map_err(CliError::output)?;
    }
    pages.finish()
}

fn case(findings: &Findings, scenes: &[Scene]) -> Case {
    let judged = &findings.judged;
    let mut case = Case::new(judged.title.as_str(), ["model", "verdict", "pattern"]);
    let counts = findings.counts;
    case.facts = vec![
        ("finding".to_owned(), judged.headline.clone()),
        ("operations".to_owned(), findings.operations.to_string()),
        (
            "requests".to_owned(),
            format!("{} ok, {} failed, {} unknown", counts.ok, counts.failed, counts.unknown),
        ),
        ("time".to_owned(), format!("{:.1} s", seconds(findings.time_ns))),
    ];
    case.facts.extend(judged.facts.iter().cloned());
    if !judged.strongest.is_empty() {
        case.facts.push(("strongest models that held".to_owned(), judged.strongest.join(", ")));
    }
    for fault in &findings.faults {
        case.facts.push((fault.name.clone(), told(findings, fault)));
    }
    if let Some(trouble) = &findings.trouble {
        case.facts.push(("did not recover".to_owned(), trouble.clone()));
    }
    let mut is_shown = false;
    for verdict in &judged.verdicts {
        let mut row = ResultRow::new([
            verdict.model.as_str().into(),
            verdict.verdict.as_str().into(),
            verdict.pattern.as_str().into(),
        ]);
        // The smallest violation belongs to the weakest violated model, which comes first.
        if verdict.verdict == "violation" && !is_shown && !judged.core.is_empty() {
            is_shown = true;
            row.text = judged.explanation.clone();
            for scene in scenes.iter().cloned().chain([timeline(findings)]) {
                row.scenes.push(case.scenes.len());
                case.scenes.push(scene.into());
            }
        }
        case.rows.push(row);
    }
    // Without a violation, only the faults can be shown.
    if let (Some(scene), Some(row), false) = (faults(findings), case.rows.first_mut(), is_shown) {
        row.scenes.push(case.scenes.len());
        case.scenes.push(scene.into());
    }
    case.charts = charts(findings);
    case.recheck = judged.command.clone();
    case
}

/// Builds a picture of the smallest violation in time: one lane per session, over the faults during
/// it.
fn timeline(findings: &Findings) -> Scene {
    let core = &findings.judged.core;
    let mut scene = Scene::new("The smallest violation among the faults");
    let mut sessions: Vec<&str> = core.iter().map(|operation| &*operation.session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let first = core.iter().map(|operation| operation.start).min().unwrap_or(0);
    let last = core.iter().filter_map(|operation| operation.end).max().unwrap_or(u64::MAX);
    let is_near = |fault: &&FaultEvent| fault.begin <= last && end(findings, fault) >= first;
    let near: Vec<&FaultEvent> = findings.faults.iter().filter(is_near).collect();
    let mut hit: Vec<String> =
        near.iter().filter_map(|fault| fault.node).map(|node| node.to_string()).collect();
    hit.sort_unstable();
    hit.dedup();
    scene.lanes = sessions.iter().map(|&session| Lane::new(session)).collect();
    scene.lanes.extend(hit.iter().map(Lane::new));
    let node = |(row, operation): (usize, &CoreOperation)| {
        let lane = sessions.iter().position(|session| *session == operation.session).unwrap_or(0);
        let mut label = operation.text.clone();
        if let Some(node) = &operation.node {
            label += &format!(" at {node}");
        }
        Node {
            kind: if operation.end.is_some() { NodeKind::Operation } else { NodeKind::Pending },
            emphasis: Emphasis::Proof,
            start: Some(operation.start as i64),
            end: operation.end.map(|end| end as i64),
            detail: format!("began after {:.3} s", seconds(operation.start)),
            ..Node::new(format!("{} {row}", operation.session), lane, row, label)
        }
    };
    scene.nodes = core.iter().enumerate().map(node).collect();
    // A node with a fault has its own lane.
    for (row, fault) in (core.len()..).zip(&near) {
        let Some(node) = fault.node.map(|node| node.to_string()) else { continue };
        let lane = sessions.len() + hit.iter().position(|other| *other == node).unwrap_or(0);
        let label = fault.text.strip_prefix(&format!("{node} ")).unwrap_or(&fault.text);
        scene.nodes.push(Node {
            start: Some(fault.begin as i64),
            end: Some(end(findings, fault) as i64),
            detail: told(findings, fault),
            ..Node::new(format!("{node} {row}"), lane, row, label)
        });
    }
    scene.bands = near
        .iter()
        .map(|fault| Band {
            label: label(fault),
            start: fault.begin as i64,
            end: end(findings, fault) as i64,
        })
        .collect();
    scene.notes.push(
        "Times are ranks, not to scale: an operation that ends before another begins is left of it."
            .to_owned(),
    );
    scene
}

/// Builds a picture of the faults in time, with one lane per node; `None` if there were none.
fn faults(findings: &Findings) -> Option<Scene> {
    if findings.faults.is_empty() || findings.nodes.is_empty() {
        return None;
    }
    let mut scene = Scene::new("The faults");
    scene.lanes = findings.nodes.iter().map(Lane::new).collect();
    for fault in &findings.faults {
        let hit = fault.node.map(|node| node.to_string());
        for (lane, node) in findings.nodes.iter().enumerate() {
            if hit.as_ref().is_some_and(|hit| hit != node) {
                continue;
            }
            let row = scene.nodes.len();
            let label = fault.text.strip_prefix(&format!("{node} ")).unwrap_or(&fault.text);
            scene.nodes.push(Node {
                start: Some(fault.begin as i64),
                end: Some(end(findings, fault) as i64),
                detail: told(findings, fault),
                ..Node::new(format!("{node} {row}"), lane, row, label)
            });
        }
    }
    scene.notes.push(
        "Times are ranks, not to scale. A bar ends when a write through every node worked again."
            .to_owned(),
    );
    Some(scene)
}

/// Builds the charts of rates and latencies, with the faults as bands.
fn charts(findings: &Findings) -> Vec<Chart> {
    let interval = seconds(findings.span_ns);
    let bands: Vec<(String, f64, f64)> = findings
        .faults
        .iter()
        .map(|fault| (label(fault), seconds(fault.begin), seconds(end(findings, fault))))
        .collect();
    let rate = |count: u64| Some(count as f64 / interval);
    // The last span is incomplete, and its rate would appear as a drop.
    let whole = (findings.time_ns / findings.span_ns.max(1)) as usize;
    let spans = &findings.spans[..findings.spans.len().min(whole.max(1))];
    let known = |value: f64| (value.is_finite() && value > 0.0).then_some(value);
    let rates = Chart {
        title: "Requests".to_owned(),
        unit: "per second".to_owned(),
        interval,
        series: vec![
            ("ok".to_owned(), spans.iter().map(|span| rate(span.counts.ok)).collect()),
            ("unknown".to_owned(), spans.iter().map(|span| rate(span.counts.unknown)).collect()),
            ("failed".to_owned(), spans.iter().map(|span| rate(span.counts.failed)).collect()),
        ],
        bands: bands.clone(),
    };
    let latencies = Chart {
        title: "Latency of requests that took effect".to_owned(),
        unit: "ms".to_owned(),
        interval,
        series: vec![
            ("median".to_owned(), spans.iter().map(|span| known(span.median_ms)).collect()),
            ("99 of 100 below".to_owned(), spans.iter().map(|span| known(span.p99_ms)).collect()),
        ],
        bands,
    };
    vec![rates, latencies]
}

/// Describes a fault: its effect, its time, and the measurements during it.
fn told(findings: &Findings, fault: &FaultEvent) -> String {
    let mut text = format!("{}, from {:.1} s", fault.text, seconds(fault.begin));
    text += &match fault.end {
        Some(end) => format!(" to {:.1} s", seconds(end.max(fault.begin))),
        None => format!(" to the end after {:.1} s", seconds(findings.time_ns)),
    };
    if let Some(ready) = fault.ready {
        text += &format!(", every node writable after {:.1} s", seconds(ready));
    }
    if let Some(measured) = &fault.measured {
        text += &format!("; {measured}");
    }
    text
}

fn label(fault: &FaultEvent) -> String {
    match &fault.node {
        Some(node) => format!("{} {node}", fault.name),
        None => fault.name.clone(),
    }
}

/// Returns the time at which a fault had no effect any more.
fn end(findings: &Findings, fault: &FaultEvent) -> u64 {
    fault.ready.or(fault.end).unwrap_or(findings.time_ns).max(fault.begin)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
