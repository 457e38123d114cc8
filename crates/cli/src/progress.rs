//! The progress line of commands that judge histories, on a terminal.
//!
//! Short histories are only counted. For a history that takes longer than a second the line shows
//! its stage: being read; being judged, with the used share of the time limit; or being certified,
//! with the share of certificates that were checked.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use consistory::Stage;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::report::counted;

/// Time after which the stage of a history is shown.
const LONG_STAGE: Duration = Duration::from_secs(1);

/// Builds a progress bar on a terminal, and a hidden one elsewhere.
pub(crate) fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_style(style());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Adds the stage of the history that is being judged to a progress bar, and returns the function
/// that receives the stages. `limit` is the time limit of each model.
pub(crate) fn show_stages(
    bar: &ProgressBar,
    limit: Duration,
) -> impl Fn(Stage) + Send + Sync + 'static {
    let current: Arc<Mutex<(Option<Stage>, Instant)>> =
        Arc::new(Mutex::new((None, Instant::now())));
    let shown = Arc::clone(&current);
    bar.set_style(style().with_key("stage", move |_: &ProgressState, out: &mut dyn Write| {
        let (stage, since) = *shown.lock().unwrap_or_else(PoisonError::into_inner);
        // If the progress line cannot be written, it is left out.
        let _ = out.write_str(&stage_text(stage, since.elapsed(), limit));
    }));
    move |stage| {
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = matches!(
            (current.0, stage),
            (Some(Stage::Certifying { .. }), Stage::Certifying { .. })
        );
        let since = if is_same { current.1 } else { Instant::now() };
        *current = (Some(stage), since);
    }
}

/// Returns the style of the line: the number of judged histories, if any, the time, and the stage.
fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {counts}{elapsed}{stage}")
        .expect("the template is well-formed")
        .with_key("counts", |state: &ProgressState, out: &mut dyn Write| {
            if state.pos() > 0 {
                let _ = write!(out, "{} judged, {:.0}/s, ", state.pos(), state.per_sec());
            }
        })
        .with_key("stage", |_: &ProgressState, _: &mut dyn Write| ())
}

/// Describes a stage that has lasted for some time; nothing for a short one.
fn stage_text(stage: Option<Stage>, lasted: Duration, limit: Duration) -> String {
    match stage {
        _ if lasted < LONG_STAGE => String::new(),
        None => "; reading".to_owned(),
        Some(Stage::Judging { operations, models }) => {
            let all = limit.as_secs_f64() * models.max(1) as f64;
            let percent = (100.0 * lasted.as_secs_f64() / all.max(0.001)).min(100.0);
            format!(
                "; judging {} by {}, {percent:.0} % of the time limit used",
                counted(operations, "operation"),
                counted(models, "model")
            )
        }
        Some(Stage::Certifying { done, total }) => {
            format!("; checking certificates, {done} of {total} done")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stage: Option<Stage>, seconds: u64, expected: &str) {
        let limit = Duration::from_secs(60);
        assert_eq!(stage_text(stage, Duration::from_secs(seconds), limit), expected);
    }

    #[test]
    fn a_long_stage_shows_its_share() {
        let judging = Some(Stage::Judging { operations: 800, models: 2 });
        check(judging, 0, "");
        check(judging, 12, "; judging 800 operations by 2 models, 10 % of the time limit used");
        check(judging, 500, "; judging 800 operations by 2 models, 100 % of the time limit used");
        let certifying = Some(Stage::Certifying { done: 1, total: 3 });
        check(certifying, 2, "; checking certificates, 1 of 3 done");
        check(None, 2, "; reading");
    }
}
