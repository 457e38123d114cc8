//! Judges reads and writes by several models, explains a violation, draws it and shrinks it.
//!
//! Run it with `cargo run -p consistory --example registers`.

use consistory::{Court, Error};

fn main() -> Result<(), Error> {
    let history = consistory::parse(
        "t0: w(x,1) w(y,1) w(z,1)
         t1: r(z,0) r(y,1) r(x,0)",
    )?;
    for verdict in Court::registers().models(["cc", "sc", "tso"])?.judge(&history)? {
        println!("{:<4} {}", verdict.model().id(), verdict.outcome());
    }
    let verdict = consistory::check(&history, "cc")?;
    println!("\n{verdict}");
    println!("Smallest part that violates it:\n{}", verdict.shrink()?.text());
    println!("A drawing of {} bytes, a certificate:\n{}", verdict.draw().len(), verdict.json());
    Ok(())
}
