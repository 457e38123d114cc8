//! Progress of the judgement of a history.

use std::fmt;
use std::sync::Arc;

/// A stage in the judgement of one history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The deciders are running.
    Judging {
        /// Number of operations of the history.
        operations: usize,
        /// Number of models.
        models: usize,
    },
    /// The checker is checking the certificates.
    Certifying {
        /// Number of checked certificates.
        done: usize,
        /// Number of certificates.
        total: usize,
    },
}

/// A function that receives the stages, from any thread.
#[derive(Clone)]
pub(crate) struct Observer(pub(crate) Arc<dyn Fn(Stage) + Send + Sync>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
