//! The edge annotation constraints of section 3.1, checked symbol by symbol.
//!
//! An edge can be added only while both of its ends have an ID. Hence the constraints are checked
//! as follows:
//!
//! 2. Program order goes from each operation to the next one of its processor in the trace. Both are
//!    known when the later one enters; the edge is due until one of them loses its last ID.
//! 3. A store has at most one ST order edge into it and one out of it. In an acyclic graph these edges
//!    form paths. There is a single path exactly if only one store of the block has no edge into it
//!    and only one has no edge out of it.
//! 4. A load of a stored value has one inheritance edge, from a store of that value.
//! 5. Let k follow the store i in the ST order. Consider the loads of one processor that inherit from
//!    i. Every one except the last has a program order path to the last. No later load follows the
//!    last one, so the last one needs a forced edge to k itself. Hence the constraint is that the
//!    *last* load has a forced edge to k. Which load is the last is known only when i can get no more
//!    inheritance edges, and k may also come late. A load that has lost its IDs by then is deferred:
//!    it is kept for its forced edges. For each store that has an ID and each processor there is at
//!    most one such load. The same holds for loads of the initial value, with the first store of the
//!    block as k.

use std::collections::BTreeMap;

use crate::checker::Reason;
use crate::checker::contraction::{ActiveGraph, Slot, Slots};
use crate::descriptor::{Annotations, Block, Label, Processor};

/// State of a node besides its position in the order.
#[derive(Clone, Debug)]
struct Entry {
    /// Number of the node by entry; only the order of these numbers matters.
    entered: u64,
    label: Label,
    /// The previous operation of its processor, while the program order edge from it is due.
    due_from: Option<Slot>,
    /// The next operation of its processor, while the program order edge to it is due.
    due_to: Option<Slot>,
    /// For a store: the start of the ST order edge into it.
    predecessor: Neighbour,
    /// For a store: the end of the ST order edge out of it.
    successor: Neighbour,
    /// For a store: the last load of each processor that inherits from it and is not settled.
    readers: BTreeMap<Processor, Slot>,
    /// For a load: the start of the inheritance edge into it.
    source: Neighbour,
    /// For a load: the stores to which it has a forced edge.
    forced: Slots,
    /// For a load: the stores whose successor is gone but had a forced edge from this load.
    settled: Slots,
    /// For a load whose source is gone: the store to which it still needs a forced edge.
    needs: Option<Slot>,
}

/// Other end of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Neighbour {
    /// There is no edge yet.
    #[default]
    None,
    /// There is an edge, and its other end has an ID.
    Known(Slot),
    /// There is an edge, and its other end has no ID any more.
    Gone,
}

/// Last operation of a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Last {
    Active(Slot),
    Gone,
}

/// State of a block besides its nodes.
#[derive(Clone, Debug, Default)]
struct BlockEntry {
    /// Whether a store without an ST order edge into it has lost its IDs, so that it is the first.
    first_gone: bool,
    /// Whether a store without an ST order edge out of it has lost its IDs, so that it is the last.
    last_gone: bool,
    /// Last load of the initial value by each processor, until the first store is known.
    readers: BTreeMap<Processor, Slot>,
}

/// The state that the constraints require.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    entries: BTreeMap<Slot, Entry>,
    next: u64,
    last: BTreeMap<Processor, Last>,
    blocks: BTreeMap<Block, BlockEntry>,
    deferred: Vec<Slot>,
}

impl Ledger {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn label(&self, slot: Slot) -> Label {
        self.entries[&slot].label
    }

    /// Lists the nodes in the order in which they entered.
    pub(super) fn in_order(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.entries.keys().copied().collect();
        slots.sort_unstable_by_key(|slot| self.entries[slot].entered);
        slots
    }

    /// Adds a new node.
    pub(super) fn enter(&mut self, slot: Slot, label: Label) -> Result<(), Reason> {
        let due_from = match self.last.insert(label.processor(), Last::Active(slot)) {
            None => None,
            Some(Last::Active(before)) => {
                self.entry(before).due_to = Some(slot);
                Some(before)
            }
            Some(Last::Gone) => return Err(Reason::LostPredecessor { label }),
        };
        let block = self.blocks.entry(label.block()).or_default();
        if label.value().is_none() {
            if block.first_gone {
                return Err(Reason::NoForcedEdge { label });
            }
            block.readers.insert(label.processor(), slot);
        }
        let entry = Entry {
            entered: self.next,
            label,
            due_from,
            due_to: None,
            predecessor: Neighbour::None,
            successor: Neighbour::None,
            readers: BTreeMap::new(),
            source: Neighbour::None,
            forced: Slots::default(),
            settled: Slots::default(),
            needs: None,
        };
        self.next += 1;
        self.entries.insert(slot, entry);
        Ok(())
    }

    /// Adds the annotations of an edge.
    pub(super) fn annotate(
        &mut self,
        graph: &ActiveGraph,
        from: Slot,
        to: Slot,
        annotations: Annotations,
    ) -> Result<(), Reason> {
        if annotations.has(Annotations::PO) {
            self.program_order(graph, from, to)?;
        }
        if annotations.has(Annotations::STO) {
            self.store_order(from, to)?;
        }
        if annotations.has(Annotations::INH) {
            self.inheritance(from, to)?;
        }
        // Only forced edges that a constraint may require matter.
        let counts = !self.label(from).is_store() && self.label(to).is_store();
        if annotations.has(Annotations::FORCED) && counts {
            let entry = self.entry(from);
            entry.forced.insert(to);
            if entry.needs == Some(to) {
                entry.needs = None;
            }
        }
        Ok(())
    }

    fn program_order(&mut self, graph: &ActiveGraph, from: Slot, to: Slot) -> Result<(), Reason> {
        let (source, target) = (self.label(from), self.label(to));
        if self.entries[&to].due_from == Some(from) {
            self.entry(to).due_from = None;
            self.entry(from).due_to = None;
            return Ok(());
        }
        let next = source.processor() == target.processor()
            && graph.is_before(from, to)
            && self.is_next(from, to);
        let (from, to) = (source, target);
        Err(if next {
            Reason::ProgramOrderTwice { from, to }
        } else {
            Reason::NotNextInProgram { from, to }
        })
    }

    /// Checks whether `to` is the next operation after `from` among the kept operations of their
    /// processor.
    fn is_next(&self, from: Slot, to: Slot) -> bool {
        let (from, to) = (&self.entries[&from], &self.entries[&to]);
        let processor = from.label.processor();
        from.entered < to.entered
            && !self.entries.values().any(|between| {
                between.label.processor() == processor
                    && (from.entered + 1..to.entered).contains(&between.entered)
            })
    }

    fn store_order(&mut self, from: Slot, to: Slot) -> Result<(), Reason> {
        let (source, target) = (self.label(from), self.label(to));
        if !source.is_store() || !target.is_store() || source.block() != target.block() {
            return Err(Reason::NotStoresOfOneBlock { from: source, to: target });
        }
        if self.entries[&from].successor != Neighbour::None {
            return Err(Reason::SecondSuccessor { label: source });
        }
        if self.entries[&to].predecessor != Neighbour::None {
            return Err(Reason::SecondPredecessor { label: target });
        }
        self.entry(from).successor = Neighbour::Known(to);
        self.entry(to).predecessor = Neighbour::Known(from);
        Ok(())
    }

    fn inheritance(&mut self, from: Slot, to: Slot) -> Result<(), Reason> {
        let (source, target) = (self.label(from), self.label(to));
        let inherits = source.is_store()
            && !target.is_store()
            && source.block() == target.block()
            && source.value() == target.value();
        if !inherits {
            return Err(Reason::NotInherited { from: source, to: target });
        }
        if self.entries[&to].source != Neighbour::None {
            return Err(Reason::SecondInheritance { label: target });
        }
        self.entry(to).source = Neighbour::Known(from);
        let entered = self.entries[&to].entered;
        let processor = target.processor();
        let last = self.entries[&from].readers.get(&processor);
        if last.is_some_and(|last| self.entries[last].entered > entered) {
            return Ok(());
        }
        self.entry(from).readers.insert(processor, to);
        if self.entries[&from].successor == Neighbour::Gone && self.is_hopeless(from, to) {
            return Err(Reason::NoForcedEdge { label: target });
        }
        Ok(())
    }

    /// Checks the constraints of a node that has lost its last ID, and drops the node if possible.
    pub(super) fn retire(&mut self, graph: &mut ActiveGraph, slot: Slot) -> Result<(), Reason> {
        let entry = &self.entries[&slot];
        let label = entry.label;
        if let Some(before) = entry.due_from {
            return Err(Reason::NoProgramOrder { label: self.label(before) });
        }
        if entry.due_to.is_some() {
            return Err(Reason::NoProgramOrder { label });
        }
        let last = self.last.get_mut(&label.processor()).expect("it has an operation");
        if *last == Last::Active(slot) {
            *last = Last::Gone;
        }
        if label.is_store() {
            self.retire_store(slot)?;
            self.forget(graph, slot);
        } else {
            if label.value().is_some() && self.entries[&slot].source == Neighbour::None {
                return Err(Reason::NoInheritance { label });
            }
            if self.entries[&slot].needs.is_some() {
                return Err(Reason::NoForcedEdge { label });
            }
            self.deferred.push(slot);
        }
        Ok(())
    }

    fn retire_store(&mut self, slot: Slot) -> Result<(), Reason> {
        let Entry { label, predecessor, successor, .. } = self.entries[&slot];
        for entry in self.entries.values_mut() {
            if let Neighbour::Known(before) = predecessor
                && entry.forced.has(slot)
            {
                entry.settled.insert(before);
            }
        }
        // Loads that need a forced edge to this store must have it by now.
        let block = self.blocks.get_mut(&label.block()).expect("it has a store");
        let unsettled = match predecessor {
            Neighbour::None if block.first_gone => return Err(Reason::SecondFirst { label }),
            Neighbour::None => {
                block.first_gone = true;
                let readers = std::mem::take(&mut block.readers);
                readers.into_values().find(|reader| !self.entries[reader].forced.has(slot))
            }
            Neighbour::Known(before) => {
                self.entry(before).successor = Neighbour::Gone;
                let mut readers = self.entries[&before].readers.values().copied();
                readers.find(|&reader| self.is_hopeless(before, reader))
            }
            Neighbour::Gone => {
                let mut waiting = self.entries.iter();
                waiting.find(|(_, entry)| entry.needs == Some(slot)).map(|(&reader, _)| reader)
            }
        };
        if let Some(reader) = unsettled {
            return Err(Reason::NoForcedEdge { label: self.label(reader) });
        }
        // No further load can inherit from this store.
        let block = self.blocks.get_mut(&label.block()).expect("it has a store");
        match successor {
            Neighbour::None if block.last_gone => return Err(Reason::SecondLast { label }),
            Neighbour::None => block.last_gone = true,
            Neighbour::Known(after) => {
                self.entry(after).predecessor = Neighbour::Gone;
                for reader in self.entries[&slot].readers.clone().into_values() {
                    let deferred = self.deferred.contains(&reader);
                    let reader = self.entry(reader);
                    if !reader.forced.has(after) {
                        if deferred {
                            return Err(Reason::NoForcedEdge { label: reader.label });
                        }
                        reader.needs = Some(after);
                    }
                }
            }
            Neighbour::Gone => {
                let mut readers = self.entries[&slot].readers.values();
                if let Some(reader) = readers.find(|&r| !self.entries[r].settled.has(slot)) {
                    return Err(Reason::NoForcedEdge { label: self.label(*reader) });
                }
            }
        }
        for entry in self.entries.values_mut() {
            if entry.source == Neighbour::Known(slot) {
                entry.source = Neighbour::Gone;
            }
            entry.forced.remove(slot);
            entry.settled.remove(slot);
        }
        Ok(())
    }

    /// Checks whether a store's last reader on a processor has no forced edge to the store's
    /// successor, which is gone, and no later load with such an edge can replace it.
    fn is_hopeless(&self, store: Slot, reader: Slot) -> bool {
        let Entry { entered, label, settled, .. } = &self.entries[&reader];
        let replaces = |other: &Entry| {
            other.entered > *entered
                && other.label == *label
                && other.source == Neighbour::None
                && other.settled.has(store)
        };
        !settled.has(store) && !self.entries.values().any(replaces)
    }

    /// Drops the deferred loads on which nothing depends any more.
    pub(super) fn sweep(&mut self, graph: &mut ActiveGraph) {
        let mut deferred = std::mem::take(&mut self.deferred);
        deferred.retain(|&slot| {
            let kept = self.is_open(graph, slot);
            if !kept {
                self.forget(graph, slot);
            }
            kept
        });
        self.deferred = deferred;
    }

    /// Checks whether a load without an ID can still affect the verdict.
    fn is_open(&self, graph: &ActiveGraph, slot: Slot) -> bool {
        let Entry { entered, label, source, forced, settled, .. } = &self.entries[&slot];
        let processor = label.processor();
        let &Neighbour::Known(from) = source else {
            let readers = &self.blocks[&label.block()].readers;
            return label.value().is_none() && readers.get(&processor) == Some(&slot);
        };
        let source = &self.entries[&from];
        if source.readers.get(&processor) != Some(&slot) {
            return false;
        }
        let settled = match source.successor {
            Neighbour::None => false,
            Neighbour::Known(successor) => forced.has(successor),
            Neighbour::Gone => settled.has(from),
        };
        // An earlier load that may yet inherit from the same store relies on this one.
        let leaning = || {
            self.entries.iter().any(|(&earlier, entry)| {
                entry.entered < *entered
                    && entry.label.processor() == processor
                    && entry.label.value().is_some()
                    && entry.label.block() == label.block()
                    && !entry.label.is_store()
                    && entry.source == Neighbour::None
                    && graph.is_active(earlier)
            })
        };
        !settled || leaning()
    }

    fn forget(&mut self, graph: &mut ActiveGraph, slot: Slot) {
        let entry = self.entries.remove(&slot).expect("it was kept");
        if let Neighbour::Known(source) = entry.source {
            let readers = &mut self.entry(source).readers;
            if readers.get(&entry.label.processor()) == Some(&slot) {
                readers.remove(&entry.label.processor());
            }
        }
        graph.release(slot);
    }

    fn entry(&mut self, slot: Slot) -> &mut Entry {
        self.entries.get_mut(&slot).expect("a slot that is pointed to holds a node")
    }

    /// Appends the relevant state as bytes, with nodes in the order in which they entered.
    pub(super) fn encode(&self, graph: &ActiveGraph, out: &mut Vec<u8>) {
        let order = self.in_order();
        let place = |slot: Slot| order.iter().position(|&s| s == slot).expect("it is kept") as u32;
        let ids = graph.ids();
        number(out, order.len() as u32);
        for &slot in &order {
            let entry = &self.entries[&slot];
            let label = entry.label;
            out.push(u8::from(label.is_store()));
            number(out, label.processor().0);
            number(out, label.block().0);
            number(out, label.value().map_or(0, |value| value + 1));
            number(out, ids[slot].len() as u32);
            ids[slot].iter().for_each(|id| number(out, id.0));
            number(out, entry.due_from.map_or(0, |slot| place(slot) + 1));
            for neighbour in [entry.predecessor, entry.successor, entry.source] {
                number(
                    out,
                    match neighbour {
                        Neighbour::None => 0,
                        Neighbour::Gone => 1,
                        Neighbour::Known(slot) => place(slot) + 2,
                    },
                );
            }
            number(out, entry.needs.map_or(0, |slot| place(slot) + 1));
            let last_of = |readers: &BTreeMap<Processor, Slot>| {
                readers.get(&label.processor()) == Some(&slot)
            };
            let last_reader = match entry.source {
                Neighbour::Known(source) => last_of(&self.entries[&source].readers),
                _ => label.value().is_none() && last_of(&self.blocks[&label.block()].readers),
            };
            out.push(u8::from(last_reader));
            bits(out, order.iter().map(|&to| graph.is_before(slot, to)));
            if !label.is_store() {
                bits(out, order.iter().map(|&to| entry.forced.has(to)));
                bits(out, order.iter().map(|&of| entry.settled.has(of)));
            }
        }
        for (processor, last) in &self.last {
            number(out, processor.0);
            number(
                out,
                match *last {
                    Last::Gone => 0,
                    Last::Active(slot) => place(slot) + 1,
                },
            );
        }
        out.push(0xff);
        for (block, entry) in &self.blocks {
            number(out, block.0);
            out.push(u8::from(entry.first_gone) | u8::from(entry.last_gone) << 1);
        }
    }
}

/// Appends a number, seven bits per byte.
fn number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bits, eight per byte.
fn bits(out: &mut Vec<u8>, bits: impl Iterator<Item = bool>) {
    let mut byte = 0;
    let mut used = 0;
    for bit in bits {
        byte |= u8::from(bit) << used;
        used += 1;
        if used == 8 {
            out.push(byte);
            (byte, used) = (0, 0);
        }
    }
    if used > 0 {
        out.push(byte);
    }
}
