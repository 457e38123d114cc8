//! Estimates the memory of states, so that searches can respect their memory budgets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use consistory_history::Value;

/// A type whose bytes on the heap can be counted.
pub(crate) trait Heap {
    /// Returns the bytes on the heap, rounded as allocators round them.
    fn heap(&self) -> usize;

    /// Returns the bytes of the value, heap included.
    fn footprint(&self) -> usize
    where
        Self: Sized,
    {
        size_of::<Self>() + self.heap()
    }
}

/// Rounds the size of one allocation as allocators do, with their own bookkeeping.
pub(crate) fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
}

/// Returns the bytes of a value, heap included.
pub fn value_footprint(value: &Value) -> usize {
    value.footprint()
}

impl Heap for Value {
    fn heap(&self) -> usize {
        match self {
            Value::Str(text) => allocated(text.len()),
            Value::List(list) => list.heap(),
            _ => 0,
        }
    }
}

impl Heap for Vec<Value> {
    fn heap(&self) -> usize {
        allocated(self.capacity() * size_of::<Value>()) + self.iter().map(Heap::heap).sum::<usize>()
    }
}

impl Heap for VecDeque<Value> {
    fn heap(&self) -> usize {
        allocated(self.capacity() * size_of::<Value>()) + self.iter().map(Heap::heap).sum::<usize>()
    }
}

/// Capacity of a node of the standard library's B-trees, which is at least half full.
const NODE_ENTRIES: usize = 11;

/// Estimates the bytes of the nodes of a B-tree.
fn nodes(entries: usize, bytes_each: usize) -> usize {
    // Nodes are about 70 % full on average.
    let count = if entries <= NODE_ENTRIES { entries.min(1) } else { entries.div_ceil(7) };
    count * allocated(NODE_ENTRIES * bytes_each + 16)
}

impl Heap for BTreeMap<Value, Value> {
    fn heap(&self) -> usize {
        let entries = self.iter().map(|(key, value)| key.heap() + value.heap());
        nodes(self.len(), 2 * size_of::<Value>()) + entries.sum::<usize>()
    }
}

impl Heap for BTreeMap<Value, usize> {
    fn heap(&self) -> usize {
        let each = size_of::<Value>() + size_of::<usize>();
        nodes(self.len(), each) + self.keys().map(Heap::heap).sum::<usize>()
    }
}

impl Heap for BTreeSet<Value> {
    fn heap(&self) -> usize {
        nodes(self.len(), size_of::<Value>()) + self.iter().map(Heap::heap).sum::<usize>()
    }
}
