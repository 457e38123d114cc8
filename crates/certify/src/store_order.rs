//! Store orders: TSO and PSO.
//!
//! A history satisfies TSO, or PSO, iff no read reads from a write that follows it in its own
//! session and some store order `ww` makes both `ppo | wre | ww | rw[ww]` and
//! `poloc | wre | ww | rw[ww]` acyclic. The certificate gives `ww`. Each relation is built with few
//! edges that have the same closure, and sorted topologically; initial writes are left out, because
//! nothing comes before them.
//!
//! Cost: linear in the size of the history.

use consistory_history::{KeyId, OpId};
use consistory_verdict::Stopped;
use consistory_work::side_by_side;
use rustc_hash::FxHashMap;

use crate::limits::Limits;
use crate::reads_from::ReadsFrom;
use crate::{Rejection, name};

/// Part of program order that a memory preserves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// SC: all of it.
    Sequential,
    /// TSO: all except a plain write before a plain read.
    TotalStore,
    /// PSO: as TSO, but without plain writes before plain writes of other keys.
    PartialStore,
}

/// Checks a store order for TSO or PSO.
pub(crate) fn total(
    wr: &ReadsFrom<'_>,
    memory: Memory,
    ww: &[(KeyId, Vec<OpId>)],
    limits: Limits<'_>,
) -> Result<(), Rejection> {
    let history = wr.history;
    let next = successors(wr, ww)?;
    let mut common: Vec<(OpId, OpId)> = history
        .ops()
        .filter_map(|write| next[write.index()].map(|overwriting| (write, overwriting)))
        .collect();
    for read in history.ops() {
        let Some(write) = wr.source(read) else { continue };
        if !history.is_initial(write) {
            if history.session_of(write) != history.session_of(read) {
                common.push((write, read));
            } else if write > read {
                let (read, write) = (name(history, read), name(history, write));
                return Err(Rejection::BeforeItsWrite { part: "wr".into(), read, write });
            }
        }
        if let Some(overwriting) = next[write.index()].filter(|&overwriting| overwriting != read) {
            common.push((read, overwriting));
        }
    }
    let sorted = side_by_side(2, limits.0.jobs, |i| {
        let (relation, own) = match i {
            0 => ("ppo | wre | ww | rw", preserved_program_order(wr, memory)),
            _ => ("poloc | wre | ww | rw", program_order_per_key(wr)),
        };
        match sorted(history.len(), &[&common, &own], limits, |_, _| ())? {
            true => Ok(()),
            false => Err(Rejection::Cyclic { relation }),
        }
    });
    sorted.into_iter().collect()
}

/// Returns for each write the next write of its key. The lists must contain each write that counts
/// once, each key's initial write first.
fn successors(
    wr: &ReadsFrom<'_>,
    ww: &[(KeyId, Vec<OpId>)],
) -> Result<Vec<Option<OpId>>, Rejection> {
    let history = wr.history;
    let mut next = vec![None; history.len() + history.key_count()];
    let mut listed = vec![false; next.len()];
    for (key, writes) in ww {
        if key.index() >= history.key_count() || listed[history.initial_write(*key).index()] {
            return Err(Rejection::BadName { part: format!("ww.#{}", key.0) });
        }
        let initial = history.initial_write(*key);
        listed[initial.index()] = true;
        let part = |i: usize| format!("ww.{}[{i}]", history.key_name(*key));
        if writes.first() != Some(&initial) {
            return Err(Rejection::BadStoreOrder { part: part(0), op: name(history, initial) });
        }
        for (i, pair) in writes.windows(2).enumerate() {
            let [before, write] = [pair[0], pair[1]];
            let belongs = !history.is_initial(write)
                && wr.writes(write) == Some(*key)
                && !std::mem::replace(&mut listed[write.index()], true);
            if !belongs {
                return Err(Rejection::BadStoreOrder {
                    part: part(i + 1),
                    op: name(history, write),
                });
            }
            next[before.index()] = Some(write);
        }
    }
    match history.ops().find(|&op| wr.writes(op).is_some() && !listed[op.index()]) {
        Some(op) => Err(Rejection::Missing { part: "ww".into(), op: name(history, op) }),
        None => Ok(next),
    }
}

/// Returns pairs with the same closure as `ppo`. A plain read follows everything except plain
/// writes; under PSO, a plain write follows everything except plain writes of other keys; every
/// other operation follows everything.
pub(crate) fn preserved_program_order(wr: &ReadsFrom<'_>, memory: Memory) -> Vec<(OpId, OpId)> {
    let mut pairs = Vec::new();
    // Last plain write of each buffer.
    let mut buffers: FxHashMap<Option<KeyId>, OpId> = FxHashMap::default();
    for session in wr.history.sessions() {
        buffers.clear();
        let mut last_but_writes = None;
        for op in wr.history.session_ops(session).filter(|&op| wr.counts(op)) {
            pairs.extend(last_but_writes.map(|before| (before, op)));
            match role(wr, op) {
                Role::Read => last_but_writes = Some(op),
                Role::Write => {
                    let buffer = wr.writes(op).filter(|_| memory == Memory::PartialStore);
                    pairs.extend(buffers.insert(buffer, op).map(|before| (before, op)));
                }
                Role::Barrier => {
                    pairs.extend(buffers.drain().map(|(_, before)| (before, op)));
                    last_but_writes = Some(op);
                }
            }
        }
    }
    pairs
}

/// Returns pairs with the same closure as `poloc`.
pub(crate) fn program_order_per_key(wr: &ReadsFrom<'_>) -> Vec<(OpId, OpId)> {
    let mut pairs = Vec::new();
    let mut last = FxHashMap::default();
    for session in wr.history.sessions() {
        last.clear();
        for op in wr.history.session_ops(session).filter(|&op| wr.counts(op)) {
            if let Some(key) = key(wr, op) {
                pairs.extend(last.insert(key, op).map(|before| (before, op)));
            }
        }
    }
    pairs
}

/// Role of an operation at a store buffer, if it counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A plain read.
    Read,
    /// A plain write.
    Write,
    /// A fence or read-modify-write, ordered with everything.
    Barrier,
}

pub(crate) fn role(wr: &ReadsFrom<'_>, op: OpId) -> Role {
    match (wr.reads(op), wr.writes(op)) {
        (Some(_), None) => Role::Read,
        (None, Some(_)) => Role::Write,
        _ => Role::Barrier,
    }
}

/// Returns the key of an operation, if it has one and counts.
pub(crate) fn key(wr: &ReadsFrom<'_>, op: OpId) -> Option<KeyId> {
    wr.reads(op).or_else(|| wr.writes(op))
}

/// Visits the pairs of a relation over `size` operations in topological order: pairs that end at an
/// operation before pairs that start there. Returns whether all pairs were visited, that is,
/// whether the relation is acyclic.
pub(crate) fn sorted(
    size: usize,
    parts: &[&[(OpId, OpId)]],
    limits: Limits<'_>,
    mut visit: impl FnMut(OpId, OpId),
) -> Result<bool, Stopped> {
    let edges = || parts.iter().copied().flatten();
    limits.reserve::<OpId>(3 * size + parts.iter().map(|part| part.len()).sum::<usize>())?;
    let mut start = vec![0u32; size + 2];
    let mut incoming = vec![0u32; size];
    for (from, to) in edges() {
        start[from.index() + 2] += 1;
        incoming[to.index()] += 1;
    }
    for i in 2..start.len() {
        start[i] += start[i - 1];
    }
    let mut targets = vec![OpId(0); start[size + 1] as usize];
    for (from, to) in edges() {
        let place = &mut start[from.index() + 1];
        targets[*place as usize] = *to;
        *place += 1;
    }
    let mut ready: Vec<u32> = (0..size as u32).filter(|&op| incoming[op as usize] == 0).collect();
    let mut done = 0;
    while let Some(op) = ready.pop() {
        limits.step(done)?;
        done += 1;
        let (from, until) = (start[op as usize], start[op as usize + 1]);
        for &to in &targets[from as usize..until as usize] {
            visit(OpId(op), to);
            incoming[to.index()] -= 1;
            if incoming[to.index()] == 0 {
                ready.push(to.0);
            }
        }
    }
    Ok(done == size)
}
