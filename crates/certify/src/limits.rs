//! Limits of a check: time, memory and threads.

use consistory_verdict::{Options, Stopped};
use consistory_work::side_by_side;

use crate::Rejection;

/// Number of steps between two readings of the clock.
const STEPS_PER_LOOK: usize = 1 << 14;

/// Number of items that a thread takes at a time.
const ITEMS_PER_PIECE: usize = 1 << 14;

/// Limits of time and memory and the number of threads of a check.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a>(pub(crate) &'a Options);

impl Limits<'_> {
    /// Fails if the time is over; reads the clock only once per `STEPS_PER_LOOK` steps.
    #[inline]
    pub(crate) fn step(self, step: usize) -> Result<(), Stopped> {
        match step % STEPS_PER_LOOK {
            0 => self.0.budget.check(),
            _ => Ok(()),
        }
    }

    /// Fails if a table of `entries` entries exceeds the budget.
    pub(crate) fn reserve<T>(self, entries: usize) -> Result<(), Stopped> {
        self.0.budget.reserve(entries as u64 * size_of::<T>() as u64)
    }

    /// Checks the items 0 to `items` on all threads, and returns the rejection of the smallest
    /// rejected item.
    pub(crate) fn each(
        self,
        items: usize,
        check: impl Fn(usize) -> Result<(), Rejection> + Sync,
    ) -> Result<(), Rejection> {
        let piece = |piece: usize| {
            self.0.budget.check()?;
            let start = piece * ITEMS_PER_PIECE;
            (start..items.min(start + ITEMS_PER_PIECE)).try_for_each(&check)
        };
        side_by_side(items.div_ceil(ITEMS_PER_PIECE), self.0.jobs, piece).into_iter().collect()
    }
}
