//! Consistency models as data.
//!
//! A model is a text in a small relational language in the style of herd's cat: sets of operations,
//! relations between them, and checks such as `acyclic po | wr | ww | rw(ww)`. The reference
//! evaluator decides any [`Definition`], including a user's, on any small history. It is a simple
//! implementation with bit matrices over all operations, and it produces a certificate for each
//! verdict. The fast deciders are optimisations of a definition, and tests compare the two.
//!
//! ```
//! use consistory_history::{Action, HistoryBuilder};
//! use consistory_models::{EvaluateOptions, evaluate, find, load};
//! use consistory_verdict::Verdict;
//!
//! // t0: w(x,1) r(y,0)      t1: w(y,1) r(x,0)
//! let mut b = HistoryBuilder::new();
//! let (x, y) = (b.key("x"), b.key("y"));
//! let (zero, one) = (b.int(0), b.int(1));
//! for (session, mine, other) in [("t0", x, y), ("t1", y, x)] {
//!     let session = b.session(session);
//!     b.push(session, Action::Write { key: mine, value: one });
//!     b.push(session, Action::Read { key: other, value: zero });
//! }
//! let history = b.finish().unwrap();
//!
//! let verdict = |definition| {
//!     evaluate(definition, &history, &EvaluateOptions::default()).unwrap().verdict()
//! };
//! assert_eq!(verdict(&find("sc").unwrap().definition), Verdict::Violation);
//! assert_eq!(verdict(&find("tso").unwrap().definition), Verdict::Consistent);
//!
//! let own = load("own.cat", "\"Reads and program order\" acyclic po | wr", |_| None).unwrap();
//! assert_eq!(verdict(&own), Verdict::Consistent);
//! ```
//!
//! [`load`] lexes, parses and resolves a text, and reports every error with its position; an
//! analysis of signs determines where a search may prune. [`evaluate`] searches `wr` and `ww`,
//! interprets the checks, and explains the checks that fail. The models are in the [`catalogue`],
//! and the implications between them in the [`lattice`](lattice()). `consistory-definition` holds
//! the types of a parsed definition.
//!
//! Next, see `docs/definition-language.md` for the language, `models/` for the definitions, and
//! `consistory-registers` for the deciders of large histories.

// The language.
mod hints;
mod kinds;
mod lexer;
mod parser;
mod polarity;
mod problem;
mod read;
mod resolve;
mod syntax;

// The evaluator.
mod choice;
mod derivation;
mod explain;
mod finals;
mod interpret;
mod ordering;
mod register;
mod search;
mod transactions;

// The models.
mod catalogue;
mod lattice;
mod levels;
mod memory;
mod table;

pub use catalogue::{Model, UnknownModel, catalogue, find, linearizability, load};
pub use consistory_definition::ClientOrder;
pub use consistory_definition::{
    Base, Check, CheckKind, CheckView, Claim, Definition, DoesNotApply, Function, FunctionId,
    Group, Kind, LitmusBase, Program, Standing, Term, TermId, Variable, VariableId, applies,
};
pub use lattice::{
    Implication, Lattice, implications, implies, lattice, lattice_dot, lattice_text, strongest,
};
pub use levels::{SingleOperations, find_level, levels, on_single_operations};
pub use memory::{MemoryModel, find_memory_model, load_memory_model, memory_models};
pub use search::{EvaluateOptions, evaluate};
pub use table::{Row, find_row, table};
