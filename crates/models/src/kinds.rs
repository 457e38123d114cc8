//! Infers by unification which names stand for sets and which for relations.
//!
//! Every term has a kind that is known, or still unknown and shared with other terms. The kind of a
//! parameter follows from its use.

use consistory_definition::Kind;

/// A kind that may not be known yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KindId(usize);

/// Kinds under unification.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    table: Vec<KindState>,
}

#[derive(Clone, Copy, Debug)]
enum KindState {
    Known(Kind),
    Unknown,
    Same(KindId),
}

impl Kinds {
    pub(crate) fn fresh(&mut self) -> KindId {
        self.push(KindState::Unknown)
    }

    pub(crate) fn known(&mut self, kind: Kind) -> KindId {
        self.push(KindState::Known(kind))
    }

    fn push(&mut self, state: KindState) -> KindId {
        self.table.push(state);
        KindId(self.table.len() - 1)
    }

    fn root(&mut self, mut id: KindId) -> KindId {
        while let KindState::Same(next) = self.table[id.0] {
            if let KindState::Same(after) = self.table[next.0] {
                self.table[id.0] = KindState::Same(after);
            }
            id = next;
        }
        id
    }

    pub(crate) fn get(&mut self, id: KindId) -> Option<Kind> {
        let root = self.root(id);
        match self.table[root.0] {
            KindState::Known(kind) => Some(kind),
            _ => None,
        }
    }

    /// Unifies two kinds, or returns the two that differ.
    pub(crate) fn unify(&mut self, expected: KindId, found: KindId) -> Result<(), (Kind, Kind)> {
        let (a, b) = (self.root(expected), self.root(found));
        match (self.table[a.0], self.table[b.0]) {
            _ if a == b => Ok(()),
            (KindState::Known(expected), KindState::Known(found)) if expected != found => {
                Err((expected, found))
            }
            (KindState::Known(_), _) => {
                self.table[b.0] = KindState::Same(a);
                Ok(())
            }
            _ => {
                self.table[a.0] = KindState::Same(b);
                Ok(())
            }
        }
    }
}
