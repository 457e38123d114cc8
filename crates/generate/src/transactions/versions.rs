//! Versions of keys, and the trait by which a store chooses among them.

/// A committed version of a key: the state of the key after one transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Version {
    /// Position of the writer in the commit order; 0 for the initial version.
    pub(super) position: u32,
    /// Client that ran the writer, [`Version::NO_CLIENT`] for the initial version.
    pub(super) client: u32,
    /// Number of the writer among its client's writers, counted from 1; 0 for the initial version.
    pub(super) sequence: u32,
    /// Value of a register.
    pub(super) value: u32,
    /// Length of a list.
    pub(super) length: u32,
}

impl Version {
    pub(super) const NO_CLIENT: u32 = u32::MAX;

    /// The state of every key before the first transaction.
    pub(super) const INITIAL: Version =
        Version { position: 0, client: Version::NO_CLIENT, sequence: 0, value: 0, length: 0 };
}

/// Identity of a transaction that committed and wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Commit {
    /// Position in the commit order, counted from 1.
    pub(super) position: u32,
    /// Number among the writers of its client, counted from 1.
    pub(super) sequence: u32,
}

/// The versions of one key that some transaction may still read, in commit order.
#[derive(Default)]
pub(super) struct KeyVersions {
    versions: Vec<Version>,
    /// Number of versions at which old ones are dropped.
    limit: usize,
    /// Elements of a list, in commit order.
    pub(super) elements: Vec<u32>,
}

impl KeyVersions {
    const LEAST_LIMIT: usize = 64;

    /// Returns the version that was committed last.
    pub(super) fn latest(&self) -> Version {
        self.versions.last().copied().unwrap_or(Version::INITIAL)
    }

    /// Iterates over the versions from the last committed to the initial one.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = Version> {
        // Dropped versions were older than one that every reader accepts, so no reader gets to the
        // initial version by mistake.
        self.versions.iter().rev().copied().chain([Version::INITIAL])
    }

    /// Adds a version; drops those that are older than a version that every transaction sees.
    pub(super) fn push(&mut self, version: Version, is_settled: impl Fn(&Version) -> bool) {
        self.versions.push(version);
        if self.versions.len() < self.limit.max(Self::LEAST_LIMIT) {
            return;
        }
        if let Some(settled) = self.versions.iter().rposition(is_settled) {
            self.versions.drain(..settled);
        }
        self.limit = 2 * self.versions.len();
    }
}

/// Whether a transaction writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    ReadOnly,
    Writes,
}

/// Decides which versions a transaction reads, and so which isolation level a store has.
///
/// The clients run a transaction at its commit: [`prepare`](Isolation::prepare), then
/// [`version`](Isolation::version) for each external read in program order, then
/// [`commit`](Isolation::commit) unless it aborts. Hence the order of these calls is the commit
/// order.
pub(super) trait Isolation {
    /// Records that a transaction of `client` begins; everything committed so far ended before it.
    fn begin(&mut self, client: usize);

    /// Chooses the set that the transaction sees; `written` are the latest versions of the keys
    /// that it writes.
    fn prepare(&mut self, client: usize, written: &[Version]);

    /// Returns the version of a key that the transaction reads.
    fn version(&mut self, client: usize, key: &KeyVersions) -> Version;

    /// Commits the transaction; one that writes nothing has no position in the commit order of versions.
    fn commit(&mut self, client: usize, effect: Effect) -> Option<Commit>;

    /// Checks whether every transaction from now on sees a version, or a later one of its key.
    fn is_settled(&self, version: &Version) -> bool;

    /// Lets a client see everything committed so far in all of its later transactions.
    fn catch_up(&mut self, client: usize);
}
