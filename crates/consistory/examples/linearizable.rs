//! Prints whether the histories of a file of timed reads and writes, or of calls, are linearizable,
//! with an explanation if not; `--shrink` adds a smallest part of each violating history.
//!
//! Run it with `cargo run -p consistory --example linearizable -- FILE [OBJECT] [--shrink]`.

use consistory::{Court, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(file) = args.first() else { return Err("which file?".into()) };
    let object = args.get(1).filter(|arg| !arg.starts_with('-'));
    let court = object.map_or(Ok(Court::new()), |object| Court::object(object))?;
    let court = court.models(["linearizability"])?;
    for case in read(file)? {
        let report = court.judge_case(case?)?;
        let verdict = &report[0];
        let (operations, outcome) = (verdict.history().len(), verdict.outcome().as_str());
        println!("{operations} operations: {outcome} in {:?}", verdict.time());
        if verdict.is_violation() {
            println!("{}", verdict.explain());
            if args.iter().any(|arg| arg == "--shrink") {
                let shrunk = verdict.shrink()?;
                println!("{} operations suffice:\n{}", shrunk.history().len(), shrunk.explain());
            }
        }
    }
    Ok(())
}
