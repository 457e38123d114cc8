//! The part of program order that a memory preserves, as chains and clocks.
//!
//! Each model of this family requires a store order `ww`, a total order of the writes of each
//! variable, that makes one or two relations acyclic (Zennou, thesis, Definitions 7 and 8). Such a
//! relation is a [`Layer`]: the preserved part of program order, `wr`, and the edges derived from
//! them.
//!
//! ```text
//!   SC    po    | wr   one layer, a chain per session
//!   TSO   ppo   | wre  a chain of each session's reads and barriers, one of its writes
//!   PSO   ppo   | wre  a chain of each session's reads and barriers, one of its writes of each variable
//!   TSO, PSO also poloc | wre   a chain for each session and variable
//! ```
//!
//! A read may overtake the writes before it in its session, so `ppo` has edges from the last read
//! or barrier to the writes after it, and from the last write to a barrier (a fence or a
//! read-modify-write). No edge of `poloc` connects different variables: the chains of different
//! variables share the columns of the clocks, which are as wide as there are sessions.
//!
//! Operations that do not count form a chain of their own without edges.
//!
//! The layers have a cycle from the start if and only if `po | wr` has one: a cycle enters a
//! session by a read, and all later operations of the session follow the read in `ppo`. An order
//! that extends `po | wr` therefore extends both layers, and the operations can be admitted in that
//! order.

use consistory_history::{OpId, SessionId};
use consistory_order::{Awaited, ChainId, take_turns};
use consistory_verdict::{Budget, Stopped};
use rustc_hash::FxHashMap;

use crate::order::{ChainOrder, Chains, Cyclic, Edge as OrderEdge};
use crate::reason::Reason;
use crate::registers::{Registers, Segments};

/// An operation that has no chain yet.
const NO_CHAIN: ChainId = ChainId(u32::MAX);

/// The part of program order that a memory preserves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// Preserves all of program order: sequential consistency.
    Sequential,
    /// Preserves all pairs except a write before a read: total store order.
    TotalStore,
    /// Preserves all pairs except a write before a read or before a write of another variable:
    /// partial store order.
    PartialStore,
}

/// One of the relations that must be acyclic.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) order: ChainOrder,
    pub(crate) segments: Segments,
    pub(crate) names: &'static Names,
}

/// Names of a layer's relations.
#[derive(Debug)]
pub(crate) struct Names {
    /// Name of the edges along a chain.
    pub(crate) run: &'static str,
    /// Name of the edge from a source to its read.
    pub(crate) wr: &'static str,
    /// Name of the edge from an initial write to another write.
    pub(crate) initial: &'static str,
    /// Name of a pair that the reads of one session force.
    pub(crate) forced: &'static str,
    /// Name of the pattern of a cycle.
    pub(crate) cycle: &'static str,
}

const SEQUENTIAL: Names =
    Names { run: "po", wr: "wr", initial: "po", forced: "hb", cycle: "CyclicSC" };
const BUFFERED: Names =
    Names { run: "ppo", wr: "wre", initial: "ww", forced: "hb-ppo", cycle: "CyclicPPO" };
const PER_VARIABLE: Names =
    Names { run: "poloc", wr: "wre", initial: "ww", forced: "hb-poloc", cycle: "CyclicPOLoc" };

/// A cycle of the given edges, with the names of its relations.
pub(crate) type CyclicLayer = (Box<Cyclic>, &'static Names);

/// The layers of a memory before their operations are admitted.
#[derive(Clone)]
pub(crate) struct Layers {
    pub(crate) layers: Vec<Layer>,
    /// All operations, in an order that extends each layer.
    pub(crate) order: Vec<OpId>,
}

impl Layers {
    /// Admits all operations.
    pub(crate) fn admit_all(self) -> Vec<Layer> {
        let Layers { mut layers, order } = self;
        for layer in &mut layers {
            order.iter().for_each(|&op| layer.order.admit(op));
        }
        layers
    }
}

/// Builds the layers of a memory. Returns a cycle if their given edges have one.
pub(crate) fn layers(
    registers: &Registers<'_>,
    memory: Memory,
    budget: &Budget,
) -> Result<Result<Layers, CyclicLayer>, Stopped> {
    let history = registers.history;
    let (sessions, wr) = (registers.chains(), registers.wr_edges());
    let order = as_they_come(registers);
    budget.check()?;
    let mut wanted = Vec::new();
    if memory == Memory::Sequential {
        wanted.push((sessions, wr, &SEQUENTIAL));
    } else {
        let is_external =
            |edge: &OrderEdge| history.session_of(edge.from) != history.session_of(edge.to);
        let external: Vec<OrderEdge> = wr.into_iter().filter(is_external).collect();
        let order = order.as_deref().unwrap_or_default();
        let (chains, mut edges) = buffers(registers, memory, order);
        edges.extend(&external);
        wanted.push((chains, edges, &BUFFERED));
        wanted.push((per_variable(registers, order), external, &PER_VARIABLE));
    }
    let Some(order) = order else {
        let (chains, edges, names) = wanted.swap_remove(0);
        return Ok(Err((Box::new(Cyclic { chains, edges }), names)));
    };
    let rows = |(chains, edges, _): &(Chains, Vec<OrderEdge>, _)| {
        4 * edges.len() as u64 * chains.width() as u64
    };
    budget.reserve(wanted.iter().map(rows).sum())?;
    let layer = |(chains, edges, names)| {
        let order = ChainOrder::unadmitted(chains, edges);
        let segments = registers.segments_by(order.chains());
        Layer { order, segments, names }
    };
    Ok(Ok(Layers { layers: wanted.into_iter().map(layer).collect(), order }))
}

/// Returns all operations in an order that extends `po | wr`, if there is one. The sessions take
/// turns.
fn as_they_come(registers: &Registers<'_>) -> Option<Vec<OpId>> {
    let history = registers.history;
    let lengths: Vec<u32> =
        history.sessions().map(|session| history.session_ops(session).len() as u32).collect();
    let mut order = Vec::with_capacity(history.len());
    let are_all = take_turns(&lengths, 1, |session, place, taken| {
        let op = history.op_at(SessionId(session.0), place);
        let source = registers.source[op.index()].get();
        if let Some(write) = source.filter(|&write| !history.is_initial(write)) {
            let (chain, place) =
                (ChainId(history.session_of(write).0), history.index_in_session(write));
            if taken[chain.index()] <= place {
                return Err(Awaited { chain, place });
            }
        }
        order.push(op);
        Ok(())
    });
    are_all.then_some(order)
}

/// Writes of a session that reach memory in program order.
struct Buffer {
    chain: ChainId,
    /// The last of these writes.
    last: OpId,
    /// Number of the session's reads and barriers that it is known to follow.
    follows: u32,
    /// Whether the last barrier is known to follow the write.
    is_drained: bool,
}

/// Returns the chains of `ppo` along an order, and the edges between the chains of a session.
fn buffers(registers: &Registers<'_>, memory: Memory, order: &[OpId]) -> (Chains, Vec<OrderEdge>) {
    let history = registers.history;
    let mut chain_of = vec![NO_CHAIN; history.len()];
    let mut chains = 0;
    let mut new_chain = || {
        chains += 1;
        ChainId(chains - 1)
    };
    let mut edges = Vec::new();
    let mut uncounted = None;
    for session in history.sessions() {
        // The chain of all operations except plain writes, its length, and its last operation.
        let mut reads: Option<ChainId> = None;
        let (mut length, mut last_read) = (0, OpId(0));
        let mut buffers: Vec<Buffer> = Vec::new();
        let mut buffer_of_key: FxHashMap<u32, usize> = FxHashMap::default();
        for op in history.session_ops(session) {
            let chain = &mut chain_of[op.index()];
            if !registers.counts(op) {
                *chain = *uncounted.get_or_insert_with(&mut new_chain);
                continue;
            }
            let read = history.reads(op);
            if let (Some(key), None) = (registers.written_key(op), read) {
                let key = if memory == Memory::PartialStore { key.0 } else { 0 };
                let buffer = *buffer_of_key.entry(key).or_insert_with(|| {
                    let (last, follows, is_drained) = (op, 0, false);
                    buffers.push(Buffer { chain: new_chain(), last, follows, is_drained });
                    buffers.len() - 1
                });
                let buffer = &mut buffers[buffer];
                if buffer.follows < length {
                    buffer.follows = length;
                    edges.push(OrderEdge { from: last_read, to: op, reason: Reason::Ppo.pack() });
                }
                (buffer.last, buffer.is_drained) = (op, false);
                *chain = buffer.chain;
                continue;
            }
            // A fence or a read-modify-write drains the buffers.
            if read.is_none() || registers.written_key(op).is_some() {
                for buffer in buffers.iter_mut().filter(|buffer| !buffer.is_drained) {
                    buffer.is_drained = true;
                    edges.push(OrderEdge { from: buffer.last, to: op, reason: Reason::Ppo.pack() });
                }
            }
            *chain = *reads.get_or_insert_with(&mut new_chain);
            (length, last_read) = (length + 1, op);
        }
    }
    (along(order, &chain_of), edges)
}

/// Returns the chains of the operations of each variable; those of one session share a column.
pub(crate) fn variables(registers: &Registers<'_>) -> Chains {
    per_variable(registers, &[])
}

/// Returns the chains of `poloc` along an order; those of one session share a column.
fn per_variable(registers: &Registers<'_>, order: &[OpId]) -> Chains {
    let history = registers.history;
    let mut chain_of = vec![NO_CHAIN; history.len()];
    let mut columns: Vec<u32> = Vec::new();
    let new_chain = |columns: &mut Vec<u32>, column: u32| {
        columns.push(column);
        ChainId(columns.len() as u32 - 1)
    };
    let mut uncounted = None;
    let mut chain_of_key = vec![NO_CHAIN; history.key_count()];
    for session in history.sessions() {
        let first = ChainId(columns.len() as u32);
        for op in history.session_ops(session) {
            let key = registers.written_key(op).or_else(|| history.reads(op).map(|(key, _)| key));
            chain_of[op.index()] = match key.filter(|_| registers.counts(op)) {
                None => *uncounted.get_or_insert_with(|| new_chain(&mut columns, 0)),
                Some(key) => {
                    let chain = &mut chain_of_key[key.index()];
                    if *chain == NO_CHAIN || *chain < first {
                        *chain = new_chain(&mut columns, session.0);
                    }
                    *chain
                }
            };
        }
    }
    along(order, &chain_of).in_columns(columns)
}

/// Builds chains along an order of all operations, or along program order if there is none.
fn along(order: &[OpId], chain_of: &[ChainId]) -> Chains {
    match order.is_empty() {
        true => Chains::along((0..chain_of.len()).map(OpId::new), chain_of),
        false => Chains::along(order.iter().copied(), chain_of),
    }
}

/// Returns whether an edge was given.
pub(crate) fn is_given(edge: &OrderEdge) -> bool {
    matches!(edge.reason.unpack(), Reason::Wr | Reason::Ppo)
}
