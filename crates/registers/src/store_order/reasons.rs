//! The assumptions behind a contradiction: the assumed orders of two writes that its proof uses.
//!
//! A contradiction is a cycle, and each derived edge of it depends on a path of older edges.
//! Unfolding these down to the assumptions yields a few pairs that cannot all hold, which the SAT
//! engine learns as a clause. This is the search of [`Saturation::explain`] without the
//! derivations. Each path has the fewest edges, and the search never leaves the part of the order
//! between the path's ends, so its cost depends on that part and not on the history.

use consistory_history::OpId;
use consistory_order::{ChainId, EdgeId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::order::ChainOrder;
use crate::reason::Reason;
use crate::store_order::saturation::Saturation;

/// Lists the assumed pairs, the earlier write first, on which the current contradiction depends.
pub(crate) fn assumptions(saturation: &Saturation<'_>) -> Vec<[OpId; 2]> {
    let mut reasons = AssumedReasons { saturation, known: FxHashSet::default(), open: Vec::new() };
    let at = saturation.cyclic;
    let edges = saturation.layers[at].layer.order.edges();
    let last = edges.len() - 1;
    // The newest edge closes the cycle.
    reasons.add(at, EdgeId::new(last));
    reasons.path(at, last as u32, edges[last].to, edges[last].from);
    reasons.unfold()
}

struct AssumedReasons<'s, 'a> {
    saturation: &'s Saturation<'a>,
    /// Visited edges, by layer and index.
    known: FxHashSet<(usize, EdgeId)>,
    open: Vec<(usize, EdgeId)>,
}

impl AssumedReasons<'_, '_> {
    fn unfold(mut self) -> Vec<[OpId; 2]> {
        let mut assumed = Vec::new();
        while let Some((at, id)) = self.open.pop() {
            let saturated = &self.saturation.layers[at];
            let edge = saturated.layer.order.edges()[id.index()];
            match edge.reason.unpack() {
                Reason::Wr | Reason::Ppo | Reason::Final => {}
                Reason::Assumed => assumed.push([edge.from, edge.to]),
                Reason::OtherLayer => {
                    self.path(1 - at, saturated.seen_of_other[id.index()], edge.from, edge.to);
                }
                Reason::Read(read) if edge.from == read => {
                    let registers = self.saturation.registers;
                    let source = registers.source[read.index()].get().expect("it is a read");
                    if !registers.history.is_initial(source) {
                        self.path(at, id.0, source, edge.to);
                    }
                }
                Reason::Read(read) => self.path(at, id.0, edge.from, read),
            }
        }
        assumed.sort_unstable();
        assumed.dedup();
        assumed
    }

    fn add(&mut self, at: usize, id: EdgeId) {
        if self.known.insert((at, id)) {
            self.open.push((at, id));
        }
    }

    /// Adds the edges of a path over the first edges of a layer; such a path exists.
    fn path(&mut self, at: usize, first_edges: u32, from: OpId, to: OpId) {
        let order = &self.saturation.layers[at].layer.order;
        for id in fewest_edges(order, first_edges, from, to) {
            self.add(at, id);
        }
    }
}

/// Lists the edges of a shortest path over the first edges of an order; such a path exists.
pub(crate) fn fewest_edges(
    order: &ChainOrder,
    first_edges: u32,
    from: OpId,
    to: OpId,
) -> Vec<EdgeId> {
    let chains = order.chains();
    let (goal, end) = (chains.chain_of(to), chains.place_of(to));
    // Arrivals by distance: the node, the edge that led to it, and the arrival from which the edge
    // started.
    let mut arrivals: Vec<(OpId, EdgeId, usize)> = vec![(from, EdgeId(u32::MAX), 0)];
    // Position from which the nodes of each chain have been visited.
    let mut looked: FxHashMap<ChainId, u32> = FxHashMap::default();
    let mut next = 0;
    while let Some(&(node, ..)) = arrivals.get(next) {
        let (chain, place) = (chains.chain_of(node), chains.place_of(node));
        if chain == goal && place <= end {
            break;
        }
        let until = looked.get(&chain).copied().unwrap_or(u32::MAX);
        for &member in chains.members(chain).iter().skip(place as usize) {
            if chains.place_of(member) >= until || !order.before(member, to) {
                break;
            }
            for id in order.edges_from(member).filter(|&id| id.0 < first_edges) {
                let reached = order.edges()[id.index()].to;
                if reached == to || order.before(reached, to) {
                    arrivals.push((reached, id, next));
                }
            }
        }
        looked.insert(chain, until.min(place));
        next += 1;
    }
    debug_assert!(next < arrivals.len(), "an edge rests on older ones");
    let mut path = Vec::new();
    while next > 0 && next < arrivals.len() {
        let (_, id, parent) = arrivals[next];
        path.push(id);
        next = parent;
    }
    path
}

#[cfg(test)]
mod tests {
    use consistory_generate::{Tangle, tangle};
    use consistory_verdict::Budget;

    use super::*;
    use crate::reads_from::candidates;
    use crate::registers::Registers;
    use crate::store_order::completion::split::unordered_pair;
    use crate::store_order::layers::{Memory, layers};
    use crate::store_order::saturation::Readers;

    /// Adds pairs. Returns whether they lead to a contradiction.
    fn contradict(saturation: &mut Saturation<'_>, pairs: &[[OpId; 2]]) -> bool {
        let budget = Budget::unlimited();
        pairs.iter().any(|&[first, second]| {
            saturation.put(first, second).is_err()
                || saturation.saturate(&budget).expect("nothing stops it").is_err()
        })
    }

    #[test]
    fn what_a_contradiction_rests_on_contradicts_itself() {
        let budget = Budget::unlimited();
        let (mut met, mut fewer) = (0, 0);
        for seed in 0..60 {
            let history = tangle(&Tangle { cells: 16, cycles: 50, seed });
            let source = candidates(&history, &Budget::unlimited()).unwrap().source;
            let registers = &Registers::new(&history, &source);
            let readers = Readers::new(registers);
            for memory in [Memory::Sequential, Memory::TotalStore, Memory::PartialStore] {
                let layers = layers(registers, memory, &budget).unwrap().expect("no cycle");
                let mut saturation = Saturation::new(registers, &readers, layers);
                assert!(saturation.saturate(&budget).unwrap().is_ok());
                let start = saturation.mark();
                let mut put = Vec::new();
                while let Some([a, b]) = unordered_pair(registers, saturation.layer()) {
                    let pair = if (seed >> (put.len() % 6)) & 1 == 0 { [a, b] } else { [b, a] };
                    put.push(pair);
                    if !contradict(&mut saturation, &[pair]) {
                        continue;
                    }
                    let clause = assumptions(&saturation);
                    assert!(clause.is_sorted_by(|a, b| a < b), "{clause:?}");
                    assert!(clause.contains(&pair), "{clause:?} without {pair:?}");
                    assert!(clause.iter().all(|pair| put.contains(pair)), "{clause:?} of {put:?}");
                    saturation.undo(start);
                    assert!(contradict(&mut saturation, &clause), "{clause:?} of {put:?}");
                    met += 1;
                    fewer += usize::from(clause.len() < put.len());
                    break;
                }
            }
        }
        assert!(met > 100 && fewer > 40, "{fewer} of {met}");
    }
}
