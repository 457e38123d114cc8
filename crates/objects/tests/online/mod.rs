//! Calls judged online have the same first wrong return as the complete record, at every return,
//! and the amount of stored data stays bounded.

mod agreement;
mod bounds;
mod fallbacks;
mod streams;
mod watching;
mod weak;
