//! The data types of a parsed definition.
//!
//! A [`Definition`] contains a [`Program`] (terms, variables, functions and checks in tables, with
//! all names resolved), the files from which it was parsed, and its metadata. This crate contains
//! neither a parser nor an evaluator: `consistory-models` has both, and `consistory-certify`, which
//! must share no code with either, depends on this crate alone.
//!
//! Read next: `program.rs` for the terms, `docs/definition-language.md` for their meaning.

mod analysis;
mod applies;
mod definition;
mod program;

pub use analysis::{Analysis, Pruning};
pub use applies::{ClientOrder, DoesNotApply, applies, levels_apply};
pub use definition::{CheckView, Claim, Definition, Metadata, SourceFile, Standing};
pub use program::{
    Base, Check, CheckKind, Function, FunctionId, Group, Kind, LitmusBase, Program, Span, Term,
    TermId, Variable, VariableId,
};
