//! Properties that must hold for every input, whatever its bytes are.
//!
//! [`targets`] has one module per property. Its function `run` converts bytes to a history, a
//! certificate or a text, checks the property, and panics if it does not hold. `tests/inputs.rs`
//! changes the [`seeds`] at random and runs each target on the results; the programs in `fuzz/` let
//! libFuzzer, which is guided by coverage, look for inputs.
//!
//! | target | input | what must hold |
//! | --- | --- | --- |
//! | `formats` | a format and a text | every parser ends; what it reads comes back from every format that can express it |
//! | `definitions` | a definition | the parser ends; evaluating what it reads ends within its budget, and the checker accepts the certificate |
//! | `words` | the same, made of words | the same |
//! | `litmus` | a litmus test | the parser ends; what it reads is written and read back with the same outcomes, which axioms and machine agree on |
//! | `check` | a history | CC, CCv, CM and SC agree with their certificates, with each other, and with their definitions |
//! | `certificates` | a history and a certificate | what the checker accepts is true |
//! | `certificate_json` | a certificate in JSON | reading ends; what is read is written and read back the same |
//!
//! The modules, in reading order: [`bytes`] splits an input, [`plan`] converts it to a history,
//! [`forge`] to a certificate, with `derivation` for plausible proofs, [`json`] to a certificate in
//! JSON, and [`words`] to a text; [`properties`] checks the properties of parsers.

pub mod bytes;
mod derivation;
pub mod forge;
pub mod json;
pub mod plan;
pub mod properties;
pub mod seeds;
pub mod targets;
pub mod words;

use consistory_formats::{Format, parse_str, write_history};
use consistory_history::History;

/// Parses a history that is known to be well-formed.
pub fn history(text: &str) -> History {
    parse_str(text, Format::Hist, "fixed").expect("a fixed history is well-formed").remove(0)
}

/// Writes a history in the text notation, which can express all histories.
pub fn text(history: &History) -> String {
    let mut out = Vec::new();
    write_history(history, Format::Hist, &mut out).expect("the text notation expresses everything");
    String::from_utf8(out).expect("the text notation is text")
}

/// History of the certificates in JSON: names that need escapes in JSON, a read with two
/// candidates, an operation of each kind and of each status.
pub const CERTIFIED: &str = r#"
init: z=5
t0: w(x,1) w("a \"b\"",1) f rmw(x,1,2)
"b:0": r(x,1) w(x,1)? r(z,5) w(x,3)!
"#;
