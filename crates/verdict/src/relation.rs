//! Relations between operations, by their names in the literature.

use crate::named::named_enum;

named_enum! {
    /// The relation of an edge in a certificate.
    ///
    /// Convert a name with `From`: a name that is listed here never becomes
    /// [`Named`](Relation::Named).
    pub enum Relation {
        /// `po`: program order.
        Po = "po",
        /// `ppo`: preserved program order, the part of program order that a memory with store
        /// buffers preserves.
        Ppo = "ppo",
        /// `poloc`: program order of one key.
        Poloc = "poloc",
        /// `wr`: a read reads from a write.
        Wr = "wr",
        /// `wre`: a read reads from a write of another session.
        Wre = "wre",
        /// `ww`: store order, of two writes of one key.
        Ww = "ww",
        /// `rw`: a read comes before a write that overwrites its source.
        Rw = "rw",
        /// `cf`: conflict, a write in a read's past comes before the read's source.
        Cf = "cf",
        /// `hb`: the order that the reads of a session, or of all sessions, force.
        Hb = "hb",
        /// `hb-ppo`: `hb` by preserved program order.
        HbPpo = "hb-ppo",
        /// `hb-poloc`: `hb` by program order of one key.
        HbPoloc = "hb-poloc",
        /// `rt`: real time, an operation returned before another one started.
        Rt = "rt",
        /// `final`: a write comes before the last write of its key.
        Final = "final",
    }
    /// A relation that a definition binds.
    other
}
