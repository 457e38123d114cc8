//! Memory models as tables: the pairs of program order that must be preserved.
//!
//! A model of this kind is given by four digits, for a write and a later write, a write and a later
//! read, a read and a later write, a read and a later read. Each digit states when the pair must
//! not be reordered: 0 never, 1 if both have the same address, 2 if the second depends on the
//! first, 3 if either holds, 4 always. (Mador-Haim, Alur and Martin, Litmus tests for comparing
//! memory consistency models, DAC 2011.) A full fence is ordered with all accesses, and so is a
//! read-modify-write, as on x86. An `LFENCE` keeps earlier reads before later accesses, an `SFENCE`
//! earlier writes before later writes.
//!
//! In a store-atomic model one total memory order of all events preserves these pairs, and a read
//! returns the latest of the writes to its address that are before it in memory order or in program
//! order. Otherwise there is one such order per thread, a view, and [`Views`] states the pairs on
//! which the views must agree.

use std::fmt;

use crate::program::Fence;
use crate::skeleton::{Event, EventKind, Skeleton};

/// Condition under which a pair of program order must not be reordered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Keep {
    /// Never: 0.
    Free,
    /// If both have the same address: 1.
    SameAddress,
    /// If the second depends on the first: 2.
    Dependent,
    /// If both have the same address or the second depends on the first: 3.
    Either,
    /// Always: 4.
    Always,
}

/// A memory model given by the pairs of program order that it preserves.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Table {
    /// Display name.
    pub name: String,
    /// A write and a later write.
    pub write_write: Keep,
    /// A write and a later read.
    pub write_read: Keep,
    /// A read and a later write.
    pub read_write: Keep,
    /// A read and a later read.
    pub read_read: Keep,
    /// Whether there is one memory order, or one view per thread.
    pub order: Order,
}

/// Whether all threads observe one order of events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Order {
    /// All threads: the model is store-atomic.
    Memory(Forwarding),
    /// Each thread has its own order; the orders agree at least on two writes to one address.
    Views(Views),
}

/// Visibility of a thread's own write that is not yet in memory order before the read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Forwarding {
    /// The read takes its value, without an effect on other threads' writes.
    Plain,
    /// As in SOBER: every other thread's write to the address that comes before the own write in
    /// memory order also comes before the read. This is the flaw of its TSO.
    Sober,
}

/// Pairs of events on which the views of threads agree, in addition to two writes to one address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Views {
    /// Agreement on reads that come before a write in the view of the write's own thread.
    pub causality: Causality,
    /// Agreement on fences.
    pub fences: FenceAgreement,
}

/// Condition under which a read that comes before a write in the view of the write's own thread
/// comes before it in every view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Causality {
    /// Not necessarily.
    Free,
    /// If both have the same address.
    SameAddress,
    /// Always.
    Full,
}

/// The fences on which views agree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FenceAgreement {
    /// No agreement: a fence orders events of its own thread only.
    Local,
    /// Agreement on the order of two fences.
    Fences,
    /// Agreement on the order of a fence and any event.
    Everything,
}

/// Agreement of the views in the paper's final NTSO, NPSO and NRMO.
const AGREEING: Order =
    Order::Views(Views { causality: Causality::Full, fences: FenceAgreement::Everything });
const ATOMIC: Order = Order::Memory(Forwarding::Plain);

impl Table {
    fn new(name: &str, digits: [Keep; 4], order: Order) -> Self {
        let [write_write, write_read, read_write, read_read] = digits;
        Table { name: name.to_owned(), write_write, write_read, read_write, read_read, order }
    }

    /// Returns sequential consistency.
    pub fn sc() -> Self {
        Table::new("SC", [Keep::Always; 4], ATOMIC)
    }

    /// Returns total store order.
    pub fn tso() -> Self {
        Table::new("TSO", TSO, ATOMIC)
    }

    /// Returns the model of the IBM 370: total store order without forwarding.
    pub fn ibm370() -> Self {
        let digits = [Keep::Always, Keep::SameAddress, Keep::Always, Keep::Always];
        Table::new("IBM370", digits, ATOMIC)
    }

    /// Returns partial store order.
    pub fn pso() -> Self {
        Table::new("PSO", PSO, ATOMIC)
    }

    /// Returns partial store and load order: PSO in which a read may pass earlier reads on which it
    /// does not depend.
    pub fn pslo() -> Self {
        let digits = [Keep::SameAddress, Keep::Free, Keep::Always, Keep::Dependent];
        Table::new("PSLO", digits, ATOMIC)
    }

    /// Returns relaxed memory order.
    pub fn rmo() -> Self {
        Table::new("RMO", RMO, ATOMIC)
    }

    /// Returns total store order with one view per thread.
    pub fn ntso() -> Self {
        Table::new("NTSO", TSO, AGREEING)
    }

    /// Returns partial store order with one view per thread.
    pub fn npso() -> Self {
        Table::new("NPSO", PSO, AGREEING)
    }

    /// Returns relaxed memory order with one view per thread.
    pub fn nrmo() -> Self {
        Table::new("NRMO", RMO, AGREEING)
    }

    /// Returns the total store order of SOBER, including its flaw.
    pub fn sober() -> Self {
        Table::new("SOBER", TSO, Order::Memory(Forwarding::Sober))
    }

    /// Returns the paper's drafts of NPSO in order: every draft but the last allows a test that the
    /// machine forbids.
    pub fn npso_drafts() -> Vec<Self> {
        let draft = |name, causality, fences| {
            Table::new(name, PSO, Order::Views(Views { causality, fences }))
        };
        vec![
            draft("NPSO-coherence", Causality::Free, FenceAgreement::Local),
            draft("NPSO-causality-of-one-address", Causality::SameAddress, FenceAgreement::Local),
            draft("NPSO-causality", Causality::Full, FenceAgreement::Local),
            draft("NPSO-fence-order", Causality::Full, FenceAgreement::Fences),
            Table::npso(),
        ]
    }

    /// Returns every model with a name, from strong to weak, the store-atomic ones first.
    pub fn all() -> Vec<Self> {
        vec![
            Table::sc(),
            Table::ibm370(),
            Table::tso(),
            Table::pso(),
            Table::pslo(),
            Table::rmo(),
            Table::ntso(),
            Table::npso(),
            Table::nrmo(),
            Table::sober(),
        ]
    }

    /// Finds a model by its name, or builds the store-atomic model of four digits.
    ///
    /// The digits must keep each location coherent: for a write and a write 1 or 4, a write and a
    /// read 0, 1 or 4, a read and a write 1, 3 or 4, a read and a read any.
    pub fn find(id: &str) -> Option<Self> {
        if let Some(named) = Table::all().into_iter().find(|t| t.name.eq_ignore_ascii_case(id)) {
            return Some(named);
        }
        let digits: Vec<u8> = id.bytes().collect();
        let [write_write, write_read, read_write, read_read] = digits[..] else { return None };
        let is_sound = matches!(write_write, b'1' | b'4')
            && matches!(write_read, b'0' | b'1' | b'4')
            && matches!(read_write, b'1' | b'3' | b'4');
        let keep = |digit| {
            Some(match digit {
                b'0' => Keep::Free,
                b'1' => Keep::SameAddress,
                b'2' => Keep::Dependent,
                b'3' => Keep::Either,
                b'4' => Keep::Always,
                _ => return None,
            })
        };
        let digits = [keep(write_write)?, keep(write_read)?, keep(read_write)?, keep(read_read)?];
        is_sound.then(|| Table::new(id, digits, ATOMIC))
    }

    /// Checks whether all threads observe one memory order.
    pub fn is_store_atomic(&self) -> bool {
        matches!(self.order, Order::Memory(_))
    }

    /// Checks whether another model has the same rules, whatever its name is.
    pub fn has_rules_of(&self, other: &Table) -> bool {
        Table { name: String::new(), ..self.clone() }
            == Table { name: String::new(), ..other.clone() }
    }

    /// Checks whether the model distinguishes dependencies.
    pub fn knows_dependencies(&self) -> bool {
        let depends = |keep| matches!(keep, Keep::Dependent | Keep::Either);
        [self.write_write, self.write_read, self.read_write, self.read_read]
            .into_iter()
            .any(depends)
    }

    /// Returns for each event the later events in program order that must stay after it.
    pub(crate) fn kept(&self, skeleton: &Skeleton) -> Vec<u64> {
        let dependent = if self.knows_dependencies() {
            dependencies(skeleton)
        } else {
            vec![0; skeleton.events.len()]
        };
        let mut kept = vec![0; skeleton.events.len()];
        for range in &skeleton.threads {
            for first in range.clone() {
                for second in first + 1..range.end {
                    let between = &skeleton.events[first + 1..second];
                    let is_dependent = dependent[first] & (1 << second) != 0;
                    let (a, b) = (&skeleton.events[first], &skeleton.events[second]);
                    if self.keeps(a, b, between, is_dependent) {
                        kept[first] |= 1 << second;
                    }
                }
            }
        }
        kept
    }

    fn keeps(&self, a: &Event, b: &Event, between: &[Event], is_dependent: bool) -> bool {
        if a.is_atomic || b.is_atomic || a.is_full_fence() || b.is_full_fence() {
            return true;
        }
        if a.location.is_none() || b.location.is_none() {
            return false;
        }
        let has = |fence: Fence| {
            let kind = EventKind::Fence(fence);
            between.iter().any(|event| event.kind == kind)
        };
        let is_kept = |keep| match keep {
            Keep::Free => false,
            Keep::SameAddress => a.location == b.location,
            Keep::Dependent => is_dependent,
            Keep::Either => is_dependent || a.location == b.location,
            Keep::Always => true,
        };
        match (a.writes(), b.writes()) {
            (true, true) => is_kept(self.write_write) || has(Fence::Store),
            (true, false) => is_kept(self.write_read),
            (false, true) => is_kept(self.read_write) || has(Fence::Load),
            (false, false) => is_kept(self.read_read) || has(Fence::Load),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

const TSO: [Keep; 4] = [Keep::Always, Keep::Free, Keep::Always, Keep::Always];
const PSO: [Keep; 4] = [Keep::SameAddress, Keep::Free, Keep::Always, Keep::Always];
const RMO: [Keep; 4] = [Keep::SameAddress, Keep::Free, Keep::Either, Keep::Dependent];

/// Returns for each read the events that depend on it.
///
/// An event depends on the reads from which its address or value is computed, a write also on those
/// on which an earlier jump depends. A dependency continues through memory, from a write to a later
/// read of its address in the thread (SPARC V9, D.3.3), so no value can depend on itself.
pub(crate) fn dependencies(skeleton: &Skeleton) -> Vec<u64> {
    let events = &skeleton.events;
    // Reads on which each event depends; earlier events are complete before later ones need them.
    let mut sources = vec![0u64; events.len()];
    for at in 0..events.len() {
        let mut direct = skeleton.addr[at] | skeleton.data[at];
        if events[at].writes() {
            direct |= skeleton.ctrl[at];
        }
        if events[at].reads() {
            let writes = (0..at).filter(|&write| {
                skeleton.po(write, at)
                    && events[write].writes()
                    && events[write].location == events[at].location
            });
            direct |= writes.fold(0, |set, write| set | (1 << write));
        }
        sources[at] = bits(direct).fold(direct, |set, source| set | sources[source]);
    }
    let mut dependent = vec![0; events.len()];
    for (at, &set) in sources.iter().enumerate() {
        for source in bits(set).filter(|&source| events[source].reads()) {
            dependent[source] |= 1 << at;
        }
    }
    dependent
}

/// Iterates over the elements of a set.
pub(crate) fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        next
    })
}
