//! Histories of this machine's memory satisfy its model.

use consistory_history::{Action, History};
use consistory_live::{CpuOptions, RecordError, record_cpu};
use consistory_models::find;
use consistory_registers::{Model, Options, judge};
use consistory_verdict::Verdict;

fn recorded(options: &CpuOptions) -> Vec<History> {
    let mut histories = Vec::new();
    let report = record_cpu(options, |history| {
        histories.push(history);
        true
    })
    .unwrap();
    assert_eq!(report.histories, options.rounds);
    assert_eq!(histories.len() as u64, options.rounds);
    histories
}

/// How often SC is violated depends on the machine and its load; TSO is never violated.
#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn every_history_is_total_store_order() {
    let base = CpuOptions { rounds: 150, operations: 4, variables: 2, ..CpuOptions::default() };
    for options in [
        base.clone(),
        CpuOptions { packed: true, fence_share: 0.2, rmw_share: 0.2, ..base.clone() },
        CpuOptions { threads: 3, operations: 5, variables: 3, ..base.clone() },
        CpuOptions { operations: 20, rounds: 20, seed: 7, ..base },
    ] {
        for history in recorded(&options) {
            let tso = [Model::Catalogued(find("tso").unwrap())];
            let ruling = judge(&history, &tso, &Options::default()).remove(0).unwrap();
            assert_eq!(ruling.judgement.verdict(), Verdict::Consistent, "{options:?}");
        }
    }
}

#[test]
fn a_seed_fixes_the_programs_and_values_are_unique() {
    let options = CpuOptions {
        rounds: 20,
        operations: 30,
        fence_share: 0.1,
        rmw_share: 0.1,
        ..CpuOptions::default()
    };
    let program = |history: &History| -> Vec<String> {
        let show = |op| match history.action(op) {
            Action::Read { key, .. } => format!("r{}", history.key_name(key)),
            _ if history.writes(op).is_some() => {
                let (key, value) = history.writes(op).unwrap();
                format!("w{}={}", history.key_name(key), history.value(value))
            }
            _ => "f".to_owned(),
        };
        history.ops().map(show).collect()
    };
    let programs = |options: &CpuOptions| -> Vec<Vec<String>> {
        recorded(options).iter().map(program).collect()
    };
    let first = programs(&options);
    assert_eq!(first, programs(&options));
    assert_ne!(first, programs(&CpuOptions { seed: 1, ..options.clone() }));
    assert_ne!(first[0], first[1], "every round has a program of its own");
    for program in &first {
        let mut writes: Vec<&String> =
            program.iter().filter(|step| step.starts_with('w')).collect();
        writes.sort();
        assert!(writes.windows(2).all(|two| two[0] != two[1]));
        assert!(program.iter().any(|step| step == "f"));
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    let refused = |options: CpuOptions| record_cpu(&options, |_| true).unwrap_err();
    let base = CpuOptions::default();
    assert_eq!(
        refused(CpuOptions { threads: 0, ..base.clone() }),
        RecordError::OutOfRange { what: "the number of threads", value: 0, most: 1024 }
    );
    assert!(matches!(
        refused(CpuOptions { variables: 0, ..base.clone() }),
        RecordError::OutOfRange { .. }
    ));
    let shares = CpuOptions { fence_share: 0.7, rmw_share: 0.7, ..base.clone() };
    assert!(matches!(refused(shares), RecordError::Shares { .. }));
    let shares = CpuOptions { read_share: f64::NAN, ..base };
    assert!(matches!(refused(shares), RecordError::Shares { .. }));
}

#[test]
fn a_recording_can_be_stopped() {
    let options = CpuOptions { rounds: 1_000_000_000, ..CpuOptions::default() };
    let mut left = 5;
    let report = record_cpu(&options, |_| {
        left -= 1;
        left > 0
    })
    .unwrap();
    assert_eq!(report.histories, 5);
}
