//! A court for histories: decides whether what a concurrent system did is allowed by its consistency
//! model, and shows why.
//!
//! Read a history, ask about a model, and get a [`Verdict`]: consistent, a violation, or undecided.
//! Every verdict has a certificate that an independent checker has already accepted.
//!
//! ```
//! let history = consistory::parse("t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)")?;
//! let verdict = consistory::check(&history, "cc")?;
//! assert!(verdict.is_violation());
//! assert_eq!(verdict.pattern().unwrap(), "WriteCOInitRead");
//! println!("{verdict}"); // sentences that explain why
//! std::fs::write(std::env::temp_dir().join("mp.svg"), verdict.draw())?;
//! println!("{}", verdict.shrink()?.text()); // the smallest part that still violates the model
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Court`] judges by several models, within a budget, and whole folders of histories at once:
//!
//! ```
//! use std::time::Duration;
//!
//! let court = consistory::Court::object("queue")?
//!     .models(["linearizability"])?
//!     .budget(Duration::from_secs(10));
//! let history = consistory::parse("t0: enqueue(1) @1..2\nt1: dequeue() => 2 @3..4")?;
//! for verdict in court.judge(&history)? {
//!     println!("{}: {}", verdict.model().id(), verdict.outcome());
//! }
//! // for report in court.judge_all(consistory::read("runs/")?) { ... }
//! # Ok::<(), consistory::Error>(())
//! ```
//!
//! | models of | ids |
//! | --- | --- |
//! | registers | `cc ccv cm ccm wsc sc wccm wtso tso pso rmo`, or the path of a definition file |
//! | objects | `linearizability return-value read-my-writes monotonic-reads causal-convergence happens-before-visibility` |
//!
//! `all` stands for every model that applies to a history, and `strongest` for the same with
//! [`Report::strongest`]. What lies below this crate can be used on its own: `consistory-harness`
//! tests collections, `consistory-litmus` runs litmus tests, `consistory-protocol` verifies
//! protocols.

mod court;
mod error;
mod held;
mod json;
mod model;
mod objects;
#[doc(hidden)]
pub mod pipeline;
mod read;
mod registers;
mod report;
mod select;
mod verdict;

pub use consistory_check::Engine;
pub use consistory_formats::Format;
pub use consistory_history::History;
pub use consistory_verdict::{Family, Judgement, Proof, Stopped, Verdict as Outcome};

pub use court::{Court, DEFAULT_BUDGET, DEFAULT_MEMORY, Reports};
pub use error::Error;
pub use json::{Attachments, MAX_PRINTED_CERTIFICATE};
pub use model::{Model, Rejection};
pub use objects::NamedObject;
pub use read::{Case, Cases, parse, read, read_all};
pub use report::Report;
pub use select::{is_path, load_definition};
pub use verdict::{Shrunk, Verdict};

/// Decides whether a history satisfies a model.
///
/// `model` is an id, in any case, or the path of a definition file. The object of a history of calls
/// is inferred from its methods; [`Court::object`] names it.
pub fn check<'h>(history: &'h History, model: &str) -> Result<Verdict<'h>, Error> {
    let report = Court::new().models([model])?.judge(history)?;
    report.into_iter().next().ok_or(Error::NoModel)
}
