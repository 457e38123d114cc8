//! A local page: enter a history, a litmus test, a protocol or a model, and see the verdict, a
//! picture and the proof.
//!
//! [`Server`] listens on a socket and answers four requests: the page, the examples, the list of
//! models, and `judge`, which analyses a text. It opens no file: everything it shows is in the
//! binary or in the request, and a definition can include only the definitions of the catalogue.
//!
//! # Security
//!
//! - It listens on the loopback interface unless the caller chooses another address.
//! - The page needs the token in its address (or the cookie that the page set), and `judge` needs
//!   the token in a header, so a page of another origin cannot send requests. The `Host` header
//!   must name the address, which prevents DNS rebinding.
//! - The size of heads and bodies, the number of connections, the time to send a request and the
//!   time and memory of an analysis are limited ([`Limits`]). A slow client occupies one connection
//!   until its time is over. A panic during an analysis is an error of that request.

mod api;
mod examples;
mod http;
mod server;

pub use examples::{Example, examples};
pub use server::{Limits, Server};
