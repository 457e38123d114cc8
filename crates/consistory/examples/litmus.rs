//! Prints the outcomes of store buffering that memory models allow.
//!
//! Run it with `cargo run -p consistory --example litmus`.

use consistory::Budget;
use consistory::litmus::{Semantics, Table, parse_notation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = parse_notation("X=1; r1=Y // Y=1; r2=X")?;
    for (name, model) in [("SC", Table::sc()), ("TSO", Table::tso())] {
        let outcomes = model
            .outcomes(&program, &Budget::unlimited())
            .map_err(|stopped| stopped.to_string())?;
        let shown: Vec<String> = outcomes.iter().map(|o| format!("{:?}", o.0)).collect();
        println!("{name}: (r1, r2) is one of {}", shown.join(" "));
    }
    Ok(())
}
