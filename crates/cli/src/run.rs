//! Runs of protocols: what changes at each step, as text and as a message sequence.

use std::path::{Path, PathBuf};

use consistory_draw::{Sequence, SequenceStep, sequence_svg};
use consistory_protocol::{Entry, Run, RunStep, System};

use crate::error::CliError;

/// Writes a run with all that each step changes.
pub(crate) fn with_changes(run: &Run) -> String {
    let mut text = String::new();
    let mut before = None;
    for step in &run.steps {
        text += &format!("    {}\n", step.rule);
        changes(before, step).iter().for_each(|change| text += &format!("        {change}\n"));
        step.printed.lines().for_each(|line| text += &format!("        prints {line}\n"));
        before = Some(step);
    }
    text
}

/// Lists what a step changes; nothing for a start state.
///
/// The elements of a multiset have no places: what counts is which were added and taken. Fields of a
/// record that all become defined, or undefined, are one change.
fn changes(before: Option<&RunStep>, step: &RunStep) -> Vec<String> {
    let Some(before) = before else { return Vec::new() };
    let mut lines = Vec::new();
    let mut fields: Vec<(&Entry, &Entry)> = Vec::new();
    for (old, new) in step.changes(before).filter(|(_, new)| !new.name.contains('{')) {
        if fields.first().is_some_and(|(_, first)| record(first) != record(new)) {
            flush(&mut fields, &mut lines);
        }
        fields.push((old, new));
    }
    flush(&mut fields, &mut lines);
    let (taken, added) = (elements(before), elements(step));
    let without = |all: &[(String, String)], others: &[(String, String)]| {
        let mut left = all.to_vec();
        for other in others {
            if let Some(at) = left.iter().position(|element| element == other) {
                left.remove(at);
            }
        }
        left
    };
    let line = |sign: &str, (bag, element): (String, String)| format!("{bag} {sign} {element}");
    lines.extend(without(&taken, &added).into_iter().map(|element| line("−", element)));
    lines.extend(without(&added, &taken).into_iter().map(|element| line("+", element)));
    lines
}

fn value(entry: &Entry) -> &str {
    entry.value.as_deref().unwrap_or("undefined")
}

/// Gives the record that an entry is a field of, and the field.
fn record(entry: &Entry) -> Option<&str> {
    entry.name.rsplit_once('.').map(|(record, _)| record)
}

fn field(entry: &Entry) -> &str {
    entry.name.rsplit_once('.').map_or(&*entry.name, |(_, field)| field)
}

/// Writes the changes of a record's fields, as one if it can be.
fn flush(fields: &mut Vec<(&Entry, &Entry)>, lines: &mut Vec<String>) {
    let fields = std::mem::take(fields);
    if let [(_, first), _, ..] = fields[..]
        && let Some(name) = record(first)
    {
        if fields.iter().all(|(_, new)| new.value.is_none()) {
            return lines.push(format!("{name}: cleared"));
        }
        if fields.iter().all(|(old, _)| old.value.is_none()) {
            let new = fields.iter().map(|(_, new)| format!("{} {}", field(new), value(new)));
            let new = new.collect::<Vec<_>>().join(", ");
            return lines.push(format!("{name}: ({new})"));
        }
    }
    let change =
        |&(old, new): &(&Entry, &Entry)| format!("{}: {} → {}", new.name, value(old), value(new));
    lines.extend(fields.iter().map(change));
}

/// Lists the elements of all multisets of a state, with the names of the multisets.
fn elements(step: &RunStep) -> Vec<(String, String)> {
    let mut elements: Vec<(String, String, String)> = Vec::new();
    for entry in &step.state {
        let Some((bag, rest)) = entry.name.split_once('{') else { continue };
        let Some((number, part)) = rest.split_once('}') else { continue };
        let Some(value) = &entry.value else { continue };
        if part.is_empty() && value == "present" {
            elements.push((bag.to_owned(), number.to_owned(), String::new()));
        } else if let Some((_, _, shown)) = elements.last_mut().filter(|e| e.1 == number) {
            let separator = if shown.is_empty() { "" } else { ", " };
            let part = part.trim_start_matches('.');
            *shown +=
                &format!("{separator}{part}{}{value}", if part.is_empty() { "" } else { " " });
        }
    }
    elements.into_iter().map(|(bag, _, shown)| (bag, format!("({shown})"))).collect()
}

/// Draws a run as a message sequence into a folder; gives where it is.
pub(crate) fn draw(
    folder: &Path,
    source: &Path,
    system: &System,
    run: &Run,
    caption: &str,
) -> Result<PathBuf, CliError> {
    let mut before = None;
    let mut steps = Vec::new();
    for step in &run.steps {
        steps.push(SequenceStep {
            label: step.rule.clone(),
            actor: step.actor.map(|lane| lane as usize),
            touched: step.touched.iter().map(|&lane| lane as usize).collect(),
            notes: changes(before, step),
            tag: step.operations.join(" "),
            is_wrong: false,
        });
        before = Some(step);
    }
    if let Some(last) = steps.last_mut() {
        last.is_wrong = true;
    }
    let mut lanes = system.lane_names();
    // The last lane is for what is shared, if a step touches any of it.
    let shared = lanes.len() - 1;
    if !steps.iter().any(|step| step.touched.contains(&shared)) {
        lanes.pop();
    }
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let sequence = Sequence {
        title: format!("{name}: a shortest run"),
        caption: caption.to_owned(),
        lanes,
        steps,
    };
    std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
    let place = folder.join(format!("{name}.run.svg"));
    std::fs::write(&place, sequence_svg(&sequence))
        .map_err(|e| CliError::file("write", &place, e))?;
    Ok(place)
}
