//! Limits of a check: time, memory and threads.

use consistory_verdict::{Options, Stopped};
use consistory_work::side_by_side;

use crate::Rejection;

/// Number of steps between two looks at the clock.
const STEPS_PER_LOOK: usize = 1 << 14;

/// Number of items that a thread takes at a time.
const ITEMS_PER_PIECE: usize = 1 << 14;

/// How much time, memory and how many threads a check may take.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a>(pub(crate) &'a Options);

impl Limits<'_> {
    /// Fails when the time is over; reads the clock only at some of the steps.
    #[inline]
    pub(crate) fn step(self, step: usize) -> Result<(), Stopped> {
        match step % STEPS_PER_LOOK {
            0 => self.0.budget.check(),
            _ => Ok(()),
        }
    }

    /// Fails when a table of so many entries is more than the budget allows.
    pub(crate) fn reserve<T>(self, entries: usize) -> Result<(), Stopped> {
        self.0.budget.reserve(entries as u64 * size_of::<T>() as u64)
    }

    /// Checks the items from 0 on, on all threads, and returns the rejection of the smallest one
    /// that is rejected.
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
