//! Failures on demand, in builds with debug assertions: `CONSISTORY_FAIL=write:3` makes the third
//! write fail. `consistory-faults` lists the points of failure.

use std::io::Write;

use consistory_faults::{Point, arm as arm_point, has_failed};

/// Enables the point of failure named in the environment.
pub(crate) fn arm() {
    let Ok(text) = std::env::var("CONSISTORY_FAIL") else { return };
    let named = text.split_once(':').and_then(|(name, nth)| {
        Some((Point::ALL.into_iter().find(|point| point.name() == name)?, nth.parse().ok()?))
    });
    match named {
        Some((point, nth)) => arm_point(point, nth),
        None => panic!("CONSISTORY_FAIL is {text:?}, and should have the form `write:3`"),
    }
}

/// Reports on standard error whether the point was reached, so that a test knows when all were
/// tried.
pub(crate) fn tell() {
    if has_failed() {
        let _ = writeln!(std::io::stderr(), "injected");
    }
}
