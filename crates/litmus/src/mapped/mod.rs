//! Contrast of models in cat, over programs that a table of instructions describes.
//!
//! A [`Mapping`] defines how loads, stores, fences and dependencies with certain names are written
//! in a language. A [`Sketch`] is a program in terms of such names; with a mapping it becomes a
//! litmus test. Two mappings with common names write one sketch in two languages, so that models of
//! different architectures can be compared, and a compilation scheme can be checked.

mod contrast;
mod mapping;
mod sketch;
mod threads;
mod translate;

pub use contrast::{
    Allowing, MappedContrast, MappedDifference, MappedError, MappedOptions, MappedSide, Runner,
    contrast_mapped,
};
pub use mapping::{Mapping, find_mapping, mapping_ids, read_mapping};
pub use sketch::{Alphabet, RenderedTest, Sketch};
pub use translate::translate_test;
