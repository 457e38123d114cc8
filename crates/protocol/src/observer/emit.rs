//! The observer of Theorem 4.1: writes a descriptor of the constraint graph while the run proceeds.
//!
//! A node keeps its ID as long as an edge to or from it may still be needed. These nodes are the
//! last operation of each processor (program order), the last store of each block (ST order), each
//! store whose value is held in a location (inheritance) and its successor (forced edges from
//! future loads), each store that waits to be serialized, and, for each store without a successor,
//! each processor's last load of its value (forced edges). There are at most 2L + pb + p + b such
//! nodes. All other nodes return their ID, by `add-ID 0`, for later nodes.
//!
//! Values do not matter, since labels identify stores: a store is written with its ID as its value.

use crate::descriptor::{Annotations, Block, Id, Label, Processor, Symbol};
use crate::observer::Failure;
use crate::tracking::{Effect, Operation, Shape, Source};

/// Contents of a location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Contents {
    Nothing,
    /// The initial value of this block, or of any block if it is `None`.
    Initial(Option<Block>),
    /// The value of the store at this index of the table.
    Store(usize),
}

/// A store that may still get edges.
#[derive(Clone, Debug)]
struct Store {
    id: Id,
    processor: Processor,
    block: Block,
    /// Whether the store is in the ST order.
    serialized: bool,
    /// The next store in the ST order.
    successor: Option<Id>,
    /// Last load of its value by each processor, while it has no successor.
    readers: Vec<Option<Id>>,
}

/// The ST order of a block.
#[derive(Clone, Debug)]
struct Chain {
    first: Option<Id>,
    /// Index of the last store in the table.
    tail: Option<usize>,
    /// Last load of the initial value by each processor, while there is no store.
    readers: Vec<Option<Id>>,
}

/// Writes the constraint graph of a run as a descriptor.
#[derive(Clone, Debug)]
pub struct Observer {
    contents: Vec<Contents>,
    /// Whether stores wait for [`Operation::Serialize`].
    serializes: bool,
    stores: Vec<Option<Store>>,
    last: Vec<Option<Id>>,
    chains: Vec<Chain>,
    /// IDs in use.
    used: Vec<Id>,
    /// Block whose initial value each location holds, if it is known.
    homes: Vec<Option<Block>>,
}

impl Observer {
    /// Builds an observer of a protocol, before its start state.
    pub fn new(shape: Shape) -> Self {
        let nobody = vec![None; shape.procs as usize];
        let chain = Chain { first: None, tail: None, readers: nobody.clone() };
        Observer {
            contents: vec![Contents::Nothing; shape.locations as usize],
            serializes: shape.serializes,
            stores: Vec::new(),
            last: nobody,
            chains: vec![chain; shape.blocks as usize],
            used: Vec::new(),
            homes: vec![None; shape.locations as usize],
        }
    }

    /// Sets the block whose initial value a start state puts into each location, where it is known.
    #[must_use]
    pub fn with_homes(mut self, homes: &[Option<u32>]) -> Self {
        for (home, &block) in self.homes.iter_mut().zip(homes) {
            *home = block.map(Block);
        }
        self
    }

    /// Follows the effect of a rule or a start state, and appends the new symbols of the
    /// descriptor.
    pub fn step(&mut self, effect: &Effect, out: &mut Vec<Symbol>) -> Result<(), Failure> {
        let before = self.contents.clone();
        // The store that each operation performed, if it is a store.
        let mut performed: Vec<Contents> = Vec::with_capacity(effect.operations.len());
        for &operation in &effect.operations {
            let contents = |source: Source| match source {
                Source::Location(at) => before[at as usize],
                Source::Store(at) => performed[at as usize],
                Source::Initial { .. } => Contents::Initial(None),
                Source::Nothing => Contents::Nothing,
            };
            let done = match operation {
                Operation::Load { proc, block, from } => {
                    self.load(Processor(proc), Block(block), contents(from), out)?;
                    Contents::Nothing
                }
                Operation::Store { proc, block } => {
                    Contents::Store(self.store(Processor(proc), Block(block), out))
                }
                Operation::Serialize { block, from } => {
                    self.serialize(Block(block), contents(from), out)?;
                    Contents::Nothing
                }
            };
            performed.push(done);
        }
        for (at, &source) in effect.sources.iter().enumerate() {
            self.contents[at] = match source {
                Source::Location(at) => before[at as usize],
                Source::Store(at) => performed[at as usize],
                Source::Initial { .. } => Contents::Initial(self.homes[at]),
                Source::Nothing => Contents::Nothing,
            };
        }
        self.forget(out)
    }

    /// Lists the stores that wait to be serialized, by their indices for
    /// [`complete`](Self::complete).
    pub(super) fn pending(&self) -> Vec<(Block, usize)> {
        let pending = |(at, store): (usize, &Option<Store>)| {
            store.as_ref().filter(|store| !store.serialized).map(|store| (store.block, at))
        };
        self.stores.iter().enumerate().filter_map(pending).collect()
    }

    /// Serializes a pending store.
    pub(super) fn complete(&mut self, store: usize, out: &mut Vec<Symbol>) {
        self.append(store, out);
    }

    /// Counts the nodes that may still get edges.
    pub fn active(&self) -> usize {
        self.used.len()
    }

    fn load(
        &mut self,
        processor: Processor,
        block: Block,
        from: Contents,
        out: &mut Vec<Symbol>,
    ) -> Result<(), Failure> {
        let p = processor.0 as usize;
        let value = match from {
            Contents::Nothing => return Err(Failure::LoadsNothing { processor, block }),
            Contents::Initial(Some(found)) if found != block => {
                return Err(Failure::OtherBlock { expected: block, found });
            }
            Contents::Initial(_) => None,
            Contents::Store(at) => {
                let store = self.at(at);
                if store.block != block {
                    return Err(Failure::OtherBlock { expected: block, found: store.block });
                }
                Some(store.id)
            }
        };
        let label = Label::Load { processor, block, value: value.map(|id| id.0) };
        let id = self.enter(label, out);
        out.extend(value.map(|store| edge(store, id, Annotations::INH)));
        let (next, readers) = match from {
            Contents::Store(at) => {
                let store = self.stores[at].as_mut().expect("it is held");
                (store.successor, &mut store.readers)
            }
            _ => {
                let chain = &mut self.chains[block.0 as usize];
                (chain.first, &mut chain.readers)
            }
        };
        match next {
            Some(next) => out.push(edge(id, next, Annotations::FORCED)),
            None => readers[p] = Some(id),
        }
        Ok(())
    }

    fn store(&mut self, processor: Processor, block: Block, out: &mut Vec<Symbol>) -> usize {
        let id = self.fresh();
        let label = Label::Store { processor, block, value: id.0 };
        let id = self.enter(label, out);
        let readers = vec![None; self.last.len()];
        let store = Store { id, processor, block, serialized: false, successor: None, readers };
        let at = self.stores.iter().position(Option::is_none).unwrap_or(self.stores.len());
        if at == self.stores.len() {
            self.stores.push(None);
        }
        self.stores[at] = Some(store);
        if !self.serializes {
            self.append(at, out);
        }
        at
    }

    fn serialize(
        &mut self,
        block: Block,
        from: Contents,
        out: &mut Vec<Symbol>,
    ) -> Result<(), Failure> {
        match from {
            Contents::Nothing => return Err(Failure::SerializesNothing { block }),
            Contents::Initial(Some(found)) if found != block => {
                return Err(Failure::OtherBlock { expected: block, found });
            }
            Contents::Initial(_) => {}
            Contents::Store(at) => {
                let store = self.at(at);
                if store.block != block {
                    return Err(Failure::OtherBlock { expected: block, found: store.block });
                }
                if !store.serialized {
                    self.append(at, out);
                }
            }
        }
        Ok(())
    }

    /// Appends a store to the order of its block, after the loads of the value that it overwrites.
    fn append(&mut self, at: usize, out: &mut Vec<Symbol>) {
        let Store { id, block, .. } = *self.at(at);
        let chain = &mut self.chains[block.0 as usize];
        let readers = match chain.tail.replace(at) {
            None => {
                chain.first = Some(id);
                std::mem::take(&mut chain.readers)
            }
            Some(tail) => {
                let tail = self.stores[tail].as_mut().expect("the last store is kept");
                out.push(edge(tail.id, id, Annotations::STO));
                tail.successor = Some(id);
                std::mem::take(&mut tail.readers)
            }
        };
        out.extend(readers.into_iter().flatten().map(|load| edge(load, id, Annotations::FORCED)));
        self.stores[at].as_mut().expect("it is kept").serialized = true;
    }

    /// Writes a node and the program order edge to it.
    fn enter(&mut self, label: Label, out: &mut Vec<Symbol>) -> Id {
        let id = self.fresh();
        self.used.push(id);
        out.push(Symbol::Node { id, label });
        if let Some(before) = self.last[label.processor().0 as usize].replace(id) {
            out.push(edge(before, id, Annotations::PO));
        }
        id
    }

    /// Returns the smallest ID that no node has.
    fn fresh(&self) -> Id {
        (1..).map(Id).find(|id| !self.used.contains(id)).expect("there are more IDs than nodes")
    }

    /// Removes the IDs of nodes that get no more edges.
    fn forget(&mut self, out: &mut Vec<Symbol>) -> Result<(), Failure> {
        let holds = |at: usize| self.contents.contains(&Contents::Store(at));
        let is_tail = |at: usize| self.chains.iter().any(|chain| chain.tail == Some(at));
        let mut needed: Vec<Id> = self.last.iter().copied().flatten().collect();
        let mut gone = Vec::new();
        for (at, store) in self.stores.iter().enumerate() {
            let Some(store) = store else { continue };
            if !store.serialized && !holds(at) {
                let Store { processor, block, .. } = *store;
                return Err(Failure::LostStore { processor, block });
            }
            if holds(at) || is_tail(at) {
                needed.push(store.id);
                needed.extend(store.successor);
                needed.extend(store.readers.iter().copied().flatten());
            } else {
                gone.push(at);
            }
        }
        for (block, chain) in (0..).map(Block).zip(&self.chains) {
            let initial = |contents: &Contents| match contents {
                Contents::Initial(home) => home.is_none_or(|home| home == block),
                _ => false,
            };
            needed.extend(chain.first.filter(|_| self.contents.iter().any(initial)));
            needed.extend(chain.readers.iter().copied().flatten());
        }
        gone.into_iter().for_each(|at| self.stores[at] = None);
        self.used.retain(|&id| {
            let kept = needed.contains(&id);
            if !kept {
                out.push(Symbol::AddId { node: Id(0), id });
            }
            kept
        });
        Ok(())
    }

    fn at(&self, store: usize) -> &Store {
        self.stores[store].as_ref().expect("a store that is pointed to is kept")
    }
}

fn edge(from: Id, to: Id, annotations: Annotations) -> Symbol {
    Symbol::Edge { from, to, annotations }
}
