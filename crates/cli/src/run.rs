//! Runs of protocols: the changes of each step, as text and as a picture.

use std::io::Write;
use std::path::{Path, PathBuf};

use consistory_pages::{changes, run_scene};
use consistory_protocol::{Run, System};
use consistory_scene::PictureFormat;

use crate::error::CliError;
use crate::output::write_file;

/// Formats a run with all changes of each step.
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

/// Draws a run as swimlanes into a folder; returns the path of the file.
pub(crate) fn draw(
    folder: &Path,
    format: PictureFormat,
    source: &Path,
    system: &System,
    run: &Run,
    caption: &str,
) -> Result<PathBuf, CliError> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let scene = run_scene(format!("{name}: a shortest run"), caption, system, run);
    std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
    let place = folder.join(format!("{name}.run.{}", format.extension()));
    write_file(&place, |out| out.write_all(format.draw(&scene).as_bytes()))?;
    Ok(place)
}
