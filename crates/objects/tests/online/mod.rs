//! Calls that are judged as they come have the same first wrong return as the record, at every return;
//! and what is kept stays bounded.

mod agreement;
mod bounds;
mod fallbacks;
mod streams;
mod watching;
