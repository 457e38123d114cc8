//! Decides whether the recorded history of a concurrent system is allowed by a consistency model,
//! and explains why.
//!
//! Read a history, choose a model, and get a [`Verdict`]: consistent, a violation, or undecided.
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
//! A [`Court`] judges by several models within a budget, and judges whole folders of histories:
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
//! | transactions | `rc ra tcc pc psi si ser`, with the order that the clients observed ([`Court::order`]) |
//! | objects | `linearizability return-value read-my-writes monotonic-reads causal-convergence happens-before-visibility` |
//!
//! `all` stands for every model that applies to a history; `strongest` also reports
//! [`Report::strongest`]. [`Court::own_object`] judges by a user-defined object and
//! [`Court::definition`] by a user-defined model. `litmus` and `protocol` take programs and
//! protocols instead of histories. `examples/` has a program for each.

mod court;
mod error;
mod held;
mod json;
mod model;
mod objects;
mod page;
mod progress;
mod read;
mod registers;
mod report;
mod select;
mod transactions;
mod verdict;

/// Litmus tests: small programs, and the outcomes that memory models allow them.
///
/// ```
/// use consistory::Budget;
/// use consistory::litmus::{Semantics, Table, parse_notation};
///
/// // Store buffering: can both threads read 0?
/// let program = parse_notation("X=1; r1=Y // Y=1; r2=X").unwrap();
/// let both_read_0 = |model: Table| {
///     let outcomes = model.outcomes(&program, &Budget::unlimited()).unwrap();
///     outcomes.iter().any(|outcome| *outcome.0 == [0, 0])
/// };
/// assert!(!both_read_0(Table::sc()) && both_read_0(Table::tso()));
/// ```
#[cfg(feature = "litmus")]
pub use consistory_litmus as litmus;
/// Coherence protocols in Murphi: every run explored, sequential consistency proved.
///
/// ```
/// use consistory::protocol::{Explorer, Model, Options, Outcome};
///
/// let text = std::fs::read_to_string("../../corpus/protocols/serial.m").unwrap();
/// let system = Model::parse("serial.m", &text).unwrap().tracked().unwrap();
/// let options = Options { deadlock: false, ..Options::default() };
/// let explored = Explorer::new(&system).options(options).run().unwrap();
/// assert!(matches!(explored.outcome, Outcome::Holds));
/// ```
#[cfg(feature = "protocol")]
pub use consistory_protocol as protocol;

/// Sequential specifications of objects: built-in ones, and the trait for user-defined ones.
pub mod spec {
    pub use consistory_history::Value;
    pub use consistory_spec::*;
}

pub use consistory_formats::Format;
pub use consistory_history::History;
pub use consistory_registers::Engine;
pub use consistory_verdict::{
    Budget, ClientOrder, Family, Judgement, Level, Proof, Stopped, Verdict as Outcome,
};

pub use court::{Court, Reports};
pub use error::Error;
pub use json::Attachments;
pub use model::{Model, Rejection};
pub use objects::NamedObject;
pub use progress::Stage;
pub use read::{Case, Cases, parse, read, read_all};
pub use report::Report;
pub use transactions::{FoundAnomalies, FoundAnomaly, anomalies};
pub use verdict::{Shrunk, Verdict};

// Helpers shared by the programs of this workspace, not part of the documented interface.
#[doc(hidden)]
pub use consistory_work::pipeline;
#[doc(hidden)]
pub use court::{DEFAULT_BUDGET, DEFAULT_MEMORY, MIN_READING_TIME, strongest_of};
#[doc(hidden)]
pub use json::{MAX_PRINTED_CERTIFICATE, SHOWN_READING_TIME};
#[doc(hidden)]
pub use page::shell_word;
#[doc(hidden)]
pub use read::read_all_within;
#[doc(hidden)]
pub use select::{is_path, load_definition};

/// Decides whether a history satisfies a model.
///
/// `model` is an id, in any case, or the path of a definition file. The object of a history of calls
/// is inferred from its methods; [`Court::object`] names it.
pub fn check<'h>(history: &'h History, model: &str) -> Result<Verdict<'h>, Error> {
    let report = Court::new().models([model])?.judge(history)?;
    report.into_iter().next().ok_or(Error::NoModel)
}
