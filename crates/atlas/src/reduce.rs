//! Skips histories that are redundant because a smaller history separates the same models.
//!
//! A smallest history that separates two models has no operation that both models ignore. For the
//! models of the catalogue, the operations listed below have no effect, because no relation that
//! their definitions build leads through them to anything new; a test finds the same smallest
//! histories with and without them.
//!
//! - **Independent sessions.** Sessions that share no variable, directly or through others, are
//!   separate histories: every path from one to the other starts at an initial write, and a path
//!   back to an initial write closes a cycle in its own part already. The whole satisfies a model
//!   if and only if both parts do.
//! - **A variable that is only read, or only written**, if no read-modify-write accesses it. Reads
//!   of an initial value that is never overwritten have no `rw`. Writes that no operation reads can
//!   be ordered consistently with the rest of the relation.
//! - **A session of one read.** Everything before the read is before the write that it reads from,
//!   and everything after the read is after that write.
//! - **A last write that is never read** can be the last of its variable; then nothing comes after
//!   it.
//! - **A first read that reads an initial value.** Only initial writes come before it.
//! - **A read that repeats the previous one**, with the same variable and source, has the same
//!   predecessors and successors.
//! - **A last read of the write right before it**: its predecessors precede that write too, and its
//!   only successors are the writes that overwrite it.
//! - **A fence** at the start or end of a session, or next to another fence or a read-modify-write,
//!   adds no order.
//!
//! For definitions outside the catalogue this need not be true, so nothing is skipped for them.

use crate::shape::{Kind, Shape, Skeleton, Source};

/// Whether histories with operations that have no effect are skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduction {
    /// Every history is examined.
    None,
    /// Histories with operations that have no effect on any model of the catalogue are skipped.
    Catalogue,
}

impl Reduction {
    /// Returns whether some history with this skeleton may be needed.
    pub(crate) fn needs_skeleton(self, skeleton: &Skeleton) -> bool {
        if self == Reduction::None {
            return true;
        }
        let kinds = &skeleton.kinds;
        (0..kinds.len()).all(|at| {
            let (is_first, is_last) = (skeleton.is_first(at), skeleton.is_last(at));
            match kinds[at] {
                Kind::Read => !(is_first && is_last),
                Kind::Fence => {
                    let orders = |kind: Kind| matches!(kind, Kind::Read | Kind::Write);
                    !is_first && !is_last && orders(kinds[at - 1]) && orders(kinds[at + 1])
                }
                Kind::Write | Kind::Rmw => true,
            }
        })
    }

    /// Returns whether some history of this shape may be needed.
    pub(crate) fn needs_shape(self, shape: &Shape<'_>) -> bool {
        if self == Reduction::None {
            return true;
        }
        let (mut read, mut written, mut last_writes) = (0u16, 0u16, [0u8; 16]);
        let mut reads = [0u8; 16];
        // The set of variables connected to each variable.
        let mut parts: Vec<u16> = Vec::new();
        for session in 0..shape.skeleton().sessions {
            let mut part = 0;
            for at in (0..shape.len()).filter(|&at| shape.session(at) == session) {
                let Some(variable) = shape.variable(at) else { continue };
                let bit = 1 << variable;
                part |= bit;
                match shape.kind(at) {
                    Kind::Read => read |= bit,
                    Kind::Write => {
                        written |= bit;
                        last_writes[variable] += u8::from(shape.skeleton().is_last(at));
                    }
                    // The operation affects verdicts even without others.
                    _ => {
                        read |= bit;
                        written |= bit;
                    }
                }
                reads[variable] += u8::from(shape.reads(at));
            }
            let (touching, mut apart): (Vec<u16>, Vec<u16>) =
                parts.into_iter().partition(|other| other & part != 0);
            apart.push(touching.into_iter().fold(part, |all, part| all | part));
            parts = apart;
        }
        read == written
            && parts.len() <= 1
            && last_writes.iter().zip(&reads).all(|(writes, reads)| writes <= reads)
    }

    /// Returns whether some history with these sources may be needed, given that the last source is
    /// the newest choice.
    pub(crate) fn may_matter(self, shape: &Shape<'_>, chosen: &[Source]) -> bool {
        let Some((&Source { read, variable, write }, before)) = chosen.split_last() else {
            return true;
        };
        if self == Reduction::None {
            return true;
        }
        let skeleton = shape.skeleton();
        if shape.kind(read) == Kind::Read {
            if skeleton.is_first(read) && write.is_none() {
                return false;
            }
            let repeats = |other: &Source| {
                other.read + 1 == read
                    && !skeleton.is_first(read)
                    && other.variable == variable
                    && other.write == write
                    && shape.kind(other.read) == Kind::Read
            };
            if before.last().is_some_and(repeats) {
                return false;
            }
            if skeleton.is_last(read) && !skeleton.is_first(read) && write == Some(read - 1) {
                return false;
            }
        }
        // Enough reads must remain for the last writes that are unread so far.
        let is_unread = |at: &usize| {
            shape.kind(*at) == Kind::Write
                && skeleton.is_last(*at)
                && shape.variable(*at) == Some(variable)
                && !chosen.iter().any(|source| source.write == Some(*at))
        };
        let unread = (0..shape.len()).filter(is_unread).count();
        let left = (read + 1..shape.len())
            .filter(|&at| shape.reads(at) && shape.variable(at) == Some(variable))
            .count();
        unread <= left
    }
}
