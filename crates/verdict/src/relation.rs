//! Relations between operations, by the names of the literature.

use crate::named::named_enum;

/// A relation that an edge of a certificate belongs to.
///
/// Make one from its name with `From`: a name that is listed here never becomes
/// [`Named`](Relation::Named).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Relation {
    /// `po`: program order.
    Po,
    /// `ppo`: preserved program order, what a memory with store buffers keeps of it.
    Ppo,
    /// `poloc`: program order of one key.
    Poloc,
    /// `wr`: a read reads from a write.
    Wr,
    /// `wre`: a read reads from a write of another session.
    Wre,
    /// `ww`: store order, of two writes of one key.
    Ww,
    /// `rw`: a read comes before a write that overwrites what it read.
    Rw,
    /// `cf`: conflict, a write that a read's past holds comes before the one that it reads from.
    Cf,
    /// `hb`: what the reads of a session, or of all sessions, force.
    Hb,
    /// `hb-ppo`: the same by preserved program order.
    HbPpo,
    /// `hb-poloc`: the same by program order of one key.
    HbPoloc,
    /// `rt`: real time, an operation returned before another one started.
    Rt,
    /// `final`: a write comes before the last write of its key.
    Final,
    /// A relation that a definition binds.
    Named(Box<str>),
}

/// The relations that have a name of their own.
const KNOWN: [(Relation, &str); 13] = [
    (Relation::Po, "po"),
    (Relation::Ppo, "ppo"),
    (Relation::Poloc, "poloc"),
    (Relation::Wr, "wr"),
    (Relation::Wre, "wre"),
    (Relation::Ww, "ww"),
    (Relation::Rw, "rw"),
    (Relation::Cf, "cf"),
    (Relation::Hb, "hb"),
    (Relation::HbPpo, "hb-ppo"),
    (Relation::HbPoloc, "hb-poloc"),
    (Relation::Rt, "rt"),
    (Relation::Final, "final"),
];

named_enum!(Relation, KNOWN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_its_relation_go_together() {
        for (relation, name) in KNOWN {
            assert_eq!(Relation::from(name), relation);
            assert_eq!(relation.as_str(), name);
        }
        assert_eq!(Relation::from("mine"), Relation::Named("mine".into()));
        assert_eq!(Relation::from("mine").to_string(), "mine");
    }
}
