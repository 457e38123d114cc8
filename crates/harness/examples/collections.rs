//! Tests the built-in collections for some seconds each and prints a table: first without the
//! methods that access a whole collection, then with all methods.
//!
//! `cargo run --release -p consistory-harness --features collections --example collections -- 5
//! scc` takes five seconds for each collection of scc. A folder as a further argument receives a
//! report and a picture of each failure.

use std::path::{Path, PathBuf};
use std::time::Duration;

use consistory_harness::Report;
use consistory_harness::collections::{Collection, catalogue};

fn main() {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().and_then(|text| text.parse().ok()).unwrap_or(5.0);
    let only = args.next().unwrap_or_default();
    let folder = args.next().map(PathBuf::from);
    let time = Duration::from_secs_f64(seconds);
    println!(
        "| collection | methods | runs | outcomes | bad runs | first after | smallest programs |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for collection in catalogue().iter().filter(|c| c.name.starts_with(&only)) {
        for with_bulk in [false, true] {
            if with_bulk && collection.bulk.is_empty() {
                continue;
            }
            let report = test(collection, with_bulk, time);
            println!("{}", row(collection, with_bulk, &report));
            if let Some(folder) = &folder {
                let name = format!("{}{}", collection.name.replace("::", "-"), u8::from(with_bulk));
                tell(&folder.join(name), &report).expect("the folder can be written to");
            }
        }
    }
}

fn test(collection: &Collection, with_bulk: bool, time: Duration) -> Report {
    let (mut campaign, mut runner) = collection.build().expect("the catalogue is right");
    campaign.time = time;
    campaign.failures = 6;
    if !with_bulk {
        campaign.programs.signatures.retain(|s| !collection.bulk.contains(&&*s.method));
    }
    campaign.run(&mut runner, |_| ()).expect("the catalogue is right")
}

/// Writes the report and a picture of each failure.
fn tell(path: &Path, report: &Report) -> std::io::Result<()> {
    std::fs::write(path.with_extension("txt"), report.to_string())?;
    for (number, failure) in report.failures.iter().enumerate() {
        if let Some(svg) = failure.svg() {
            std::fs::write(path.with_extension(format!("{number}.svg")), svg)?;
        }
    }
    Ok(())
}

fn row(collection: &Collection, with_bulk: bool, report: &Report) -> String {
    let programs: Vec<String> = report
        .failures
        .iter()
        .map(|failure| format!("`{}`", failure.program.to_string().replace('\n', " ∥ ")))
        .collect();
    let first = report.failures.first();
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |",
        collection.name,
        if with_bulk { "all" } else { "single" },
        report.runs,
        report.outcomes,
        report.bad_runs,
        first.map_or("–".to_owned(), |failure| format!("{:.1} s", failure.after.as_secs_f64())),
        programs.join("<br>"),
    )
}
