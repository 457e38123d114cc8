//! Options of a decision.

use crate::Budget;

/// Limits and settings of a decision.
///
/// `T` contains the settings of one family of deciders, such as the engine that completes a store
/// order. These settings never change a verdict.
#[derive(Clone, Debug)]
pub struct Options<T = ()> {
    /// Time and memory for each model.
    pub budget: Budget,
    /// Number of threads that one large or hard history may use; 0 counts as 1.
    pub jobs: usize,
    /// The family's own settings.
    pub tuning: T,
}

impl<T: Default> Default for Options<T> {
    fn default() -> Self {
        Options::tuned(T::default())
    }
}

impl<T> Options<T> {
    /// Builds options without a budget, for one thread.
    pub fn tuned(tuning: T) -> Self {
        Options { budget: Budget::unlimited(), jobs: 1, tuning }
    }
}
