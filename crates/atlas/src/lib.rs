//! The atlas of models: how two models of registers differ, shown by a smallest history.
//!
//! [`contrast`] takes two models, including a user's own definitions, and enumerates all histories
//! by size, each once up to the names of sessions, variables and values, until it finds one that
//! the first allows and the second forbids, and one for the opposite direction. [`scan`] answers
//! any number of such questions at once, and [`survey`] answers them for all pairs of the
//! catalogue.
//!
//! ```
//! use consistory_atlas::{ScanOptions, Side, Space, contrast};
//! use consistory_registers::Model;
//! use consistory_models::find;
//!
//! let models = ["tso", "sc"].map(|id| Model::Catalogued(find(id).unwrap()));
//! let found = contrast(&models, &Space::of(4), &ScanOptions::default());
//! let Side::Separated(history) = &found.sides[0] else { panic!() };
//! assert_eq!(history.len(), 4, "store buffering is the smallest");
//! assert!(matches!(found.sides[1], Side::Implied(_)), "SC implies TSO");
//! ```
//!
//! The modules, in reading order: `shape` generates histories without the sources of their reads,
//! `sources` adds the sources, `reduce` skips histories that cannot matter; `relation` has small
//! relations, `compile` compiles a definition into code over them, `run` runs that code; `scan`
//! combines all of it, and `contrast` and `survey` answer the questions. `levels` does the same for
//! isolation levels, with the reference evaluator.

mod shape;

mod sources;

mod reduce;

mod relation;

mod compile;
mod run;

mod scan;

mod contrast;
mod levels;
mod survey;

pub use contrast::{Contrast, Side, contrast};
pub use levels::{contrast_levels, scan_levels};
pub use scan::{Question, Scan, ScanIndex, ScanOptions, Share, scan};
pub use shape::Space;
pub use survey::{Answer, Bounds, Pair, Survey, survey};

#[cfg(test)]
mod tests;
