//! Judges calls of a queue, and all histories of a folder on all cores.
//!
//! Run it with `cargo run -p consistory --example queue [FOLDER]`.

use std::time::Duration;

use consistory::{Court, Error};

fn main() -> Result<(), Error> {
    let court = Court::object("queue")?.models(["strongest"])?.budget(Duration::from_secs(10));
    let history = consistory::parse(
        "t0: enqueue(1) @1..2
         t1: enqueue(2) @3..4 dequeue() => 2 @5..6",
    )?;
    let report = court.judge(&history)?;
    println!("strongest satisfied: {:?}\n\n{}", report.strongest(), report[0]);
    if let Some(folder) = std::env::args().nth(1) {
        for report in court.judge_all(consistory::read(folder)?) {
            println!("{}", report?.json());
        }
    }
    Ok(())
}
