//! Options of random clients.

/// Random clients: their number and the mix of their operations.
///
/// ```
/// use consistory_generate::{Workload, WorkloadError};
///
/// let workload = Workload { sessions: 0, ..Workload::default() };
/// assert_eq!(workload.validate(), Err(WorkloadError::NoSessions));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Number of sessions; 4 by default.
    pub sessions: u32,
    /// Number of operations of all sessions together, distributed evenly; 100 by default.
    pub operations: u32,
    /// Number of variables; 10 by default.
    pub variables: u32,
    /// Share of reads among all operations; a half by default.
    ///
    /// All other operations are writes.
    pub read_share: f64,
    /// Share of read-modify-writes among all operations; none by default.
    pub rmw_share: f64,
    /// Share of fences among all operations; none by default.
    pub fence_share: f64,
    /// Skew of the choice of variables: `x{i}` has the weight `1 / (i + 1)^skew`.
    ///
    /// With 0, the default, the choice is uniform; with 1 it follows Zipf's law.
    pub skew: f64,
    /// Number of distinct values per variable, each write choosing one at random; with 0, the
    /// default, no value is written twice.
    pub values: u32,
    /// Largest lag of a memory: the most writes that a store buffer holds, or that one session made
    /// and another's replica has not yet applied; 16 by default.
    ///
    /// With 0, every memory except the broken one is sequentially consistent.
    pub lag: u32,
    /// Seed of every random choice; 0 by default.
    pub seed: u64,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            sessions: 4,
            operations: 100,
            variables: 10,
            read_share: 0.5,
            rmw_share: 0.0,
            fence_share: 0.0,
            skew: 0.0,
            values: 0,
            lag: 16,
            seed: 0,
        }
    }
}

/// The reason why a workload cannot run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum WorkloadError {
    /// There is no session.
    #[error("a workload needs at least one session")]
    NoSessions,
    /// There is no variable.
    #[error("a workload needs at least one variable")]
    NoVariables,
    /// A share is not a number from 0 to 1.
    #[error("the share of {of} is {share}, which is not between 0 and 1")]
    Share {
        /// The kind of operation whose share it is.
        of: &'static str,
        /// The share.
        share: f64,
    },
    /// The shares of reads, read-modify-writes and fences exceed the whole.
    #[error(
        "reads, read-modify-writes and fences together have the share {sum}, which is more than 1"
    )]
    Shares {
        /// Their sum.
        sum: f64,
    },
    /// The skew is not a number from 0 to [`Workload::MAX_SKEW`].
    #[error("the skew is {skew}, which is not between 0 and {max}", max = Workload::MAX_SKEW)]
    Skew {
        /// The skew.
        skew: f64,
    },
    /// The workload has more operations and variables than a history holds.
    #[error("{operations} operations and {variables} variables are more than a history holds")]
    TooManyOperations {
        /// Number of operations.
        operations: u32,
        /// Number of variables.
        variables: u32,
    },
    /// The memory would need more than [`Workload::MAX_CELLS`] cells.
    #[error(
        "{sessions} sessions with {variables} variables and a lag of {lag} need {cells} cells of \
         memory, more than {max}",
        max = Workload::MAX_CELLS
    )]
    TooManyCells {
        /// Number of sessions.
        sessions: u32,
        /// Number of variables.
        variables: u32,
        /// The lag.
        lag: u32,
        /// Number of cells.
        cells: u128,
    },
}

impl Workload {
    /// Largest skew; beyond it, nearly all operations act on one variable.
    pub const MAX_SKEW: f64 = 16.0;

    /// Largest number of cells, of up to 16 bytes each, of a replicated memory: per session one for
    /// each variable, and one for each session and each write that waits for delivery.
    pub const MAX_CELLS: u128 = 1 << 27;

    /// Checks that the workload can run.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        let &Self { sessions, operations, variables, lag, skew, .. } = self;
        if sessions == 0 {
            return Err(WorkloadError::NoSessions);
        }
        if variables == 0 {
            return Err(WorkloadError::NoVariables);
        }
        for (of, share) in [
            ("reads", self.read_share),
            ("read-modify-writes", self.rmw_share),
            ("fences", self.fence_share),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return Err(WorkloadError::Share { of, share });
            }
        }
        let sum = self.read_share + self.rmw_share + self.fence_share;
        // Shares whose decimal sum is 1 may exceed it a little in binary.
        if sum > 1.0 + 1e-9 {
            return Err(WorkloadError::Shares { sum });
        }
        if !(0.0..=Self::MAX_SKEW).contains(&skew) {
            return Err(WorkloadError::Skew { skew });
        }
        if operations.checked_add(variables).is_none_or(|sum| sum == u32::MAX) {
            return Err(WorkloadError::TooManyOperations { operations, variables });
        }
        let waiting = u128::from(sessions) * (u128::from(lag) + 1);
        let cells = u128::from(sessions) * (u128::from(variables) + waiting);
        if cells > Self::MAX_CELLS {
            return Err(WorkloadError::TooManyCells { sessions, variables, lag, cells });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_run_is_refused() {
        let fine = Workload::default;
        let cases: [(Workload, &str); 11] = [
            (Workload { sessions: 0, ..fine() }, "a workload needs at least one session"),
            (Workload { variables: 0, ..fine() }, "a workload needs at least one variable"),
            (
                Workload { read_share: 1.5, ..fine() },
                "the share of reads is 1.5, which is not between 0 and 1",
            ),
            (
                Workload { rmw_share: -0.1, ..fine() },
                "the share of read-modify-writes is -0.1, which is not between 0 and 1",
            ),
            (
                Workload { fence_share: f64::NAN, ..fine() },
                "the share of fences is NaN, which is not between 0 and 1",
            ),
            (
                Workload { rmw_share: 0.25, fence_share: 0.5, ..fine() },
                "reads, read-modify-writes and fences together have the share 1.25, which is more \
                 than 1",
            ),
            (Workload { skew: -1.0, ..fine() }, "the skew is -1, which is not between 0 and 16"),
            (
                Workload { skew: f64::INFINITY, ..fine() },
                "the skew is inf, which is not between 0 and 16",
            ),
            (
                Workload { operations: u32::MAX, ..fine() },
                "4294967295 operations and 10 variables are more than a history holds",
            ),
            (
                Workload { sessions: 1 << 20, ..fine() },
                "1048576 sessions with 10 variables and a lag of 16 need 18691708157952 cells of \
                 memory, more than 134217728",
            ),
            (
                Workload { sessions: u32::MAX, lag: u32::MAX, ..fine() },
                "4294967295 sessions with 10 variables and a lag of 4294967295 need \
                 79228162477370849493369487350 cells of memory, more than 134217728",
            ),
        ];
        for (workload, expected) in cases {
            let error = workload.validate().expect_err(expected);
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn what_can_run_is_accepted() {
        let fine = Workload::default;
        for workload in [
            fine(),
            Workload { operations: 0, ..fine() },
            Workload { read_share: 0.7, rmw_share: 0.2, fence_share: 0.1, ..fine() },
            Workload { sessions: 50, variables: 1000, operations: 1_000_000, ..fine() },
            Workload { sessions: 1, variables: 1, lag: 0, skew: 16.0, ..fine() },
        ] {
            assert_eq!(workload.validate(), Ok(()));
        }
    }
}
