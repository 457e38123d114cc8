//! The collections of java.util.concurrent, driven through a small Java program.
//!
//! [`JDK`] lists the collections, each with its sequential specification and the methods that can
//! be called. [`Jdk`] compiles the Java program, runs it, and implements
//! [`Runner`](consistory_harness::Runner).
//!
//! If a method of the JDK throws because there is no element, the call returns `null` here, as the
//! built-in objects do. Any other exception is returned by its name, which no object returns.
//! Blocking methods are left out.

mod collections;
mod process;
mod protocol;

pub use collections::{JDK, JdkCollection, UnknownMethod};
pub use process::{Clock, Jdk, JdkError, JdkOptions};
