//! Judges calls of an object that is not built in: a ticket counter.
//!
//! Run it with `cargo run -p consistory --example own_object`.

use std::sync::Arc;

use consistory::spec::{Specification, Value};
use consistory::{Court, Error};

/// A counter whose calls return the numbers 1, 2, 3 and so on.
struct Tickets;

impl Specification for Tickets {
    type State = i64;

    fn initial(&self) -> i64 {
        0
    }

    fn invoke(&self, last: &mut i64, method: &str, _args: &[Value]) -> Option<Value> {
        if method != "next" {
            return None;
        }
        *last += 1;
        Some(Value::Int(*last))
    }
}

fn main() -> Result<(), Error> {
    let court = Court::own_object("tickets", Arc::new(Tickets)).models(["linearizability"])?;
    for text in [
        "t0: next() => 1 @1..4\nt1: next() => 2 @2..3",
        "t0: next() => 2 @1..2\nt1: next() => 1 @3..4",
    ] {
        let history = consistory::parse(text)?;
        println!("{}", court.judge(&history)?[0]);
    }
    Ok(())
}
