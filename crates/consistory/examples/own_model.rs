//! Judges a history by a user-defined model, together with built-in models.
//!
//! Run it with `cargo run -p consistory --example own_model`.

use consistory::{Court, Error};

/// Requires program order and reads-from to be acyclic for each key.
const PER_KEY: &str =
    r#""Program order and reads-from of each key" acyclic po & loc | wr as CyclicPerKey"#;

fn main() -> Result<(), Error> {
    let court = Court::registers().definition("per-key", PER_KEY)?.models(["cc", "sc"])?;
    let history = consistory::parse("t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)")?;
    for verdict in court.judge(&history)? {
        println!("{}: {}", verdict.model().id(), verdict.explain_line());
    }
    Ok(())
}
