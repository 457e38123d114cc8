//! Runs of protocols: what changes at each step, as text and as a message sequence.

use std::path::{Path, PathBuf};

use consistory_draw::{Sequence, SequenceStep, sequence_svg};
use consistory_protocol::{Entry, Run, Step, System};

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
fn changes(before: Option<&Step>, step: &Step) -> Vec<String> {
    let value = |entry: &Entry| entry.value.clone().unwrap_or_else(|| "undefined".to_owned());
    let changes = before.into_iter().flat_map(|before| step.changes(before));
    changes.map(|(old, new)| format!("{}: {} → {}", new.name, value(old), value(new))).collect()
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
            is_wrong: false,
        });
        before = Some(step);
    }
    if let Some(last) = steps.last_mut() {
        last.is_wrong = true;
    }
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let sequence = Sequence {
        title: format!("{name}: a shortest run"),
        caption: caption.to_owned(),
        lanes: system.lane_names(),
        steps,
    };
    std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
    let place = folder.join(format!("{name}.run.svg"));
    std::fs::write(&place, sequence_svg(&sequence))
        .map_err(|e| CliError::file("write", &place, e))?;
    Ok(place)
}
