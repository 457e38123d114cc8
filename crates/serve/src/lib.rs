//! A local page for trying things: type or drop a history, a litmus test, a protocol or a model, and
//! see verdict, picture and proof.
//!
//! [`Server`] listens on a socket and answers four requests: the page, the examples, the list of
//! models, and `judge`, which analyses a text. It opens no file: everything it shows is in the
//! binary or in the request, and a definition can include only the definitions of the catalogue.
//!
//! # What protects it
//!
//! - It listens on the loopback interface unless the caller chooses another address.
//! - The page needs the token of its address (or the cookie that the page set), `judge` needs the
//!   token in a header, so a page of another origin can ask for nothing. The `Host` header must name
//!   the address, which stops DNS rebinding.
//! - Heads of requests, bodies, the number of connections, the time to send a request and the time and
//!   memory of an analysis are limited ([`Limits`]). A slow client occupies one connection until its
//!   time is over. A panic during an analysis is an error of that request.

mod api;
mod examples;
mod http;
mod server;

pub use examples::{Example, examples};
pub use server::{Limits, Server};
