//! The atlas of models: how two models of registers differ, shown by a smallest history.
//!
//! [`contrast`] takes two models, definitions of one's own included, and goes through all
//! histories by size, each once up to the names of sessions, variables and values, until it has
//! one that the first allows and the second forbids, and one the other way round. [`scan`] asks
//! any number of such questions at once, and [`survey`] asks about all pairs of the catalogue.
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
//! The modules, in reading order: `shape` generates histories without what their reads read,
//! `sources` adds that, `reduce` leaves out what has no effect; `relation` is small relations,
//! `compile` makes code over them out of a definition, `run` runs it; `scan` puts all of it
//! together, and `contrast` and `survey` are what it is for. `levels` does the same for isolation
//! levels, by the reference evaluator.

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
