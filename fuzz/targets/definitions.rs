//! The language of definitions: any text is parsed or refused, and what is parsed can be evaluated
//! within a budget.

#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use consistory_fuzz::history;
use consistory_history::History;
use consistory_models::{EvaluateOptions, Style, evaluate, load};
use consistory_verdict::{Budget, Judgement};
use libfuzzer_sys::fuzz_target;

/// Store buffering, and one with repeated values, a read-modify-write and an unknown status.
static HISTORIES: LazyLock<[History; 2]> = LazyLock::new(|| {
    [
        history("t0: w(x,1) r(y,0)\nt1: w(y,1) f r(x,0)\n"),
        history("t0: w(x,1) rmw(x,1,2)\nt1: w(x,1)? r(x,2) r(y,0)\nt2: w(y,3) w(x,4) r(x,1)\n"),
    ]
});

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let include = |path: &str| match path {
        "own.cat" => Some(text.to_owned()),
        "other.cat" => Some("let other = po & loc".to_owned()),
        _ => None,
    };
    let definition = match load("own.cat", text, include) {
        Ok(definition) => definition,
        Err(error) => {
            assert!(!error.diagnostics.is_empty());
            return drop((error.to_string(), error.render(Style::Styled)));
        }
    };
    assert!(definition.checks().all(|check| !check.text.is_empty()));
    for history in &*HISTORIES {
        let budget = Budget::unlimited().with_time(Duration::from_millis(50));
        let options = EvaluateOptions { budget, ..EvaluateOptions::default() };
        if let Ok(Judgement::Violation { certificate, .. }) =
            evaluate(&definition, history, &options)
        {
            let mut out = Vec::new();
            consistory_verdict::write_certificate(history, &certificate, &mut out)
                .expect("a list of bytes takes everything");
        }
    }
});
