//! Proves a coherence protocol, or shows the history of a run that is not sequentially consistent.
//!
//! Run it with `cargo run -p consistory --example protocol corpus/protocols/msi.m`.

use consistory::protocol::{Explorer, Model, Options, Outcome, Violation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a protocol, as corpus/protocols/msi.m")?;
    let text = std::fs::read_to_string(&path)?;
    let model = Model::parse(&path, &text).map_err(|errors| errors.to_string())?;
    let system = model.tracked().map_err(|errors| errors.to_string())?;
    let options = Options { deadlock: false, ..Options::default() };
    let explored = Explorer::new(&system).options(options).run()?;
    match explored.outcome {
        Outcome::Holds => println!("sequentially consistent in every run"),
        Outcome::Violated { violation: Violation::Graph { history, .. }, .. } => {
            println!("{}", consistory::check(&history, "sc")?);
        }
        _ => println!("not decided, or an invariant fails"),
    }
    Ok(())
}
