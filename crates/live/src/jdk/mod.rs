//! The collections of java.util.concurrent, driven through a small Java program.
//!
//! [`JDK`] lists the collections, each with the sequential object that it promises to be and the
//! methods that can be called; [`Jdk`] compiles the Java program, runs it, and is a
//! [`Runner`](consistory_harness::Runner) of client programs.
//!
//! A method of the JDK that throws where there is no element returns `null` here, as the ready
//! objects do; any other exception is returned by its name, which no object returns. Methods that
//! wait are left out.

mod collections;
mod process;
mod protocol;

pub use collections::{JDK, JdkCollection, UnknownMethod};
pub use process::{Clock, Jdk, JdkError, JdkOptions};
