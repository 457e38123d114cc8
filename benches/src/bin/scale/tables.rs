//! Presentation of the measurements: tables, a plot, and a comparison with the goals.

use std::time::Duration;

use consistory_benches::measure::{ratio, show_count, show_ratio, show_size, show_time};
use consistory_benches::publish::Goal;
use consistory_draw::{Plot, Series, line_plot};
use consistory_generate::Memory;

use crate::Row;
use crate::batch::Throughput;

/// A table with its explanation.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) header: &'static [&'static str],
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) note: &'static str,
}

/// Returns the tables; growth is shown for the rows with this number of threads.
pub(crate) fn sections(rows: &[Row], jobs: usize, batch: &[Throughput]) -> [Section; 4] {
    [
        Section {
            title: "Time",
            header: &[
                "memory",
                "operations",
                "threads",
                "parse .hist",
                "parse .jsonl",
                "CC",
                "CCv",
                "CM",
                "CC / .hist",
                "CCv / .hist",
                "CC / .jsonl",
                "CCv / .jsonl",
                "CM / CC",
            ],
            rows: rows.iter().map(time_row).collect(),
            note: "The quotients of CC and CCv are to the time that parsing takes, of each format.",
        },
        Section {
            title: "Certificates and memory",
            header: &[
                "memory",
                "operations",
                "threads",
                "certify CC",
                "certify CCv",
                "certify CM",
                "peak parsing",
                "peak CC",
                "peak CCv",
                "peak CM",
            ],
            rows: rows.iter().map(memory_row).collect(),
            note: "Peaks are of a process that parses the `.hist` file and decides the one model; \
                   after the slash, that also checks the certificate.",
        },
        Section {
            title: "Growth",
            header: &["memory", "operations", "parse .hist", "CC", "CCv", "CM"],
            rows: growth(rows, jobs),
            note: "By what factor the time grows from one size to the next.",
        },
        Section {
            title: "Batch",
            header: &["through", "histories", "time", "histories a minute"],
            rows: batch.iter().map(batch_row).collect(),
            note: "Histories of 10 operations of random clients on every simulated memory in turn, \
                   all in one `.hist` file: parsed, decided by CC, CCv and CM, each certificate \
                   checked, on all cores; by the library, and where it is built by `consistory \
                   check --model cc,ccv,cm --format json`, which also writes the reports.",
        },
    ]
}

fn time_row(row: &Row) -> Vec<String> {
    let mut cells = first_cells(row);
    cells.extend([row.hist.parse, row.jsonl.parse].map(show_time));
    cells.extend([row.cc.decide, row.ccv.decide, row.cm.decide].map(show_time));
    for parse in [row.hist.parse, row.jsonl.parse] {
        cells.extend([row.cc.decide, row.ccv.decide].map(|time| show_ratio(ratio(time, parse))));
    }
    cells.push(show_ratio(ratio(row.cm.decide, row.cc.decide)));
    cells
}

fn memory_row(row: &Row) -> Vec<String> {
    let models = [&row.cc, &row.ccv, &row.cm];
    let mut cells = first_cells(row);
    cells.extend(models.map(|model| show_time(model.certify)));
    cells.push(show_size(row.hist.peak_decided));
    cells.extend(models.map(|model| {
        format!("{} / {}", show_size(model.peak_decided), show_size(model.peak_certified))
    }));
    cells
}

fn first_cells(row: &Row) -> Vec<String> {
    vec![row.memory.to_string(), show_count(row.operations.into()), row.jobs.to_string()]
}

fn growth(rows: &[Row], jobs: usize) -> Vec<Vec<String>> {
    let is_step = |pair: &&[Row]| {
        pair.iter().all(|row| row.jobs == jobs && row.memory == pair[0].memory)
            && pair[0].operations < pair[1].operations
    };
    let row = |pair: &[Row]| {
        let sizes = [&pair[0], &pair[1]].map(|row| show_count(row.operations.into()));
        let factor = |time: fn(&Row) -> Duration| show_ratio(ratio(time(&pair[1]), time(&pair[0])));
        vec![
            pair[0].memory.to_string(),
            sizes.join(" to "),
            factor(|row| row.hist.parse),
            factor(|row| row.cc.decide),
            factor(|row| row.ccv.decide),
            factor(|row| row.cm.decide),
        ]
    };
    rows.windows(2).filter(is_step).map(row).collect()
}

fn batch_row(batch: &Throughput) -> Vec<String> {
    vec![
        batch.through.to_owned(),
        show_count(batch.histories),
        show_time(batch.time),
        show_count(batch.a_minute()),
    ]
}

/// Plots the rows with this number of threads.
pub(crate) fn plot(sessions: u32, rows: &[Row], jobs: usize) -> String {
    let rows = || rows.iter().filter(move |row| row.jobs == jobs);
    let mut memories: Vec<Memory> = rows().map(|row| row.memory).collect();
    memories.dedup();
    let series = |memory: Memory, name: &str, time: fn(&Row) -> Duration| Series {
        name: format!("{name}, {memory} memory"),
        points: rows()
            .filter(|row| row.memory == memory)
            .map(|row| (f64::from(row.operations), time(row).as_secs_f64()))
            .collect(),
        missing: None,
    };
    let of_memory = |memory| {
        [
            series(memory, "CM", |row| row.cm.decide),
            series(memory, "CCv", |row| row.ccv.decide),
            series(memory, "CC", |row| row.cc.decide),
            series(memory, "parse .hist", |row| row.hist.parse),
        ]
    };
    line_plot(&Plot {
        title: format!("Deciding large histories of {sessions} sessions"),
        x_label: "operations".to_owned(),
        y_label: "seconds".to_owned(),
        log_x: true,
        log_y: true,
        series: memories.into_iter().flat_map(of_memory).collect(),
    })
}

/// Goal: number of histories per minute.
const BATCH_AIM: u64 = 200_000;

/// Compares the largest histories with the goals.
pub(crate) fn aims(rows: &[Row], jobs: usize, batch: &[Throughput]) -> Vec<Goal> {
    let mut aims = Vec::new();
    let largest = rows.iter().map(|row| row.operations).max().unwrap_or(0);
    for row in rows.iter().filter(|row| row.operations == largest && row.jobs == jobs) {
        let of = format!("{} operations, {}", show_count(largest.into()), row.memory);
        for (model, time) in [("CC", row.cc.decide), ("CCv", row.ccv.decide)] {
            let [hist, jsonl] = [&row.hist, &row.jsonl].map(|parsed| ratio(time, parsed.parse));
            aims.push(Goal {
                aim: format!("{of}: {model} within 3 times the parsing"),
                measured: format!("{} of .hist, {} of .jsonl", show_ratio(hist), show_ratio(jsonl)),
                reached: Some(hist.max(jsonl) <= 3.0),
            });
        }
        let cm = ratio(row.cm.decide, row.cc.decide);
        aims.push(Goal {
            aim: format!("{of}: CM within 20 times CC"),
            measured: show_ratio(cm),
            reached: Some(cm <= 20.0),
        });
        let peak = [&row.cc, &row.ccv, &row.cm].map(|model| model.peak_certified);
        aims.push(Goal {
            aim: format!("{of}: peak under 1 GiB for CC, CCv, CM, certificate check included"),
            measured: peak.map(show_size).join(", "),
            reached: Some(peak.iter().all(|&peak| peak < 1 << 30)),
        });
        aims.push(Goal {
            aim: format!("{of}: CC, parsing included, in AWDIT's 2.5 s of user time and 0.33 GB"),
            measured: format!(
                "{}, {}",
                show_time(row.cc.user_decided),
                show_size(row.cc.peak_decided)
            ),
            reached: Some(
                row.cc.user_decided.as_secs_f64() <= 2.5 && row.cc.peak_decided <= 330_000_000,
            ),
        });
    }
    aims.extend(batch.iter().map(|batch| Goal {
        aim: format!("hundreds of thousands of small histories a minute, by the {}", batch.through),
        measured: show_count(batch.a_minute()),
        reached: Some(batch.a_minute() >= BATCH_AIM),
    }));
    aims
}
