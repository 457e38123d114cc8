//! Proves a coherence protocol, or shows the history of a run that is not sequentially consistent.
//!
//! Run it with `cargo run -p consistory --example protocol corpus/protocols/msi.m`.

use consistory::Budget;
use consistory::protocol::{Model, Options, Sequential, verify};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a protocol, as corpus/protocols/msi.m")?;
    let text = std::fs::read_to_string(&path)?;
    let model = Model::parse(&path, &text).map_err(|errors| errors.to_string())?;
    let system = model.tracked().map_err(|errors| errors.to_string())?;
    let options = Options { deadlock: false, ..Options::default() };
    let proof = verify(&system, &options, &Budget::unlimited(), &mut |_| {})?;
    match &proof.outcome {
        Sequential::Proved => println!("sequentially consistent in every run"),
        Sequential::Refused { history, .. } => println!("{}", consistory::check(history, "sc")?),
        _ => println!("not decided, or an invariant fails"),
    }
    Ok(())
}
