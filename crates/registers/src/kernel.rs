//! The kernel of sequential consistency: the pairs of writes that every witness agrees on.
//!
//! For a history that is SC, its kernel is the intersection of all store orders that witness it (Zennou,
//! thesis, section 4.2.2). Saturation finds a part of it: CCM's `pww` finds some pairs, wSC's order
//! almost all. Whether the rest can be found in polynomial time is open; this module finds it by
//! search:
//!
//! 1. Saturate the history ([`crate::store_order::saturation`]); every forced pair is in the
//!    kernel.
//! 2. Find a witness. It orders each pair of writes that is not forced, and only that order can be
//!    in the kernel.
//! 3. For each such pair, look for a witness with the pair reversed. If saturation or the search
//!    ([`crate::store_order::completion`]) refutes it, the pair is in the kernel and is forced from
//!    now on, with everything that it forces. Otherwise, every pair that the new witness orders
//!    differently is not in the kernel.
//!
//! One witness settles many pairs: before the search, all other open pairs are reversed too, as far
//! as saturation allows. If there is no such witness, only the pair in question is reversed.
//!
//! Cost: at worst one decision of SC per pair; usually a few in total. A search that stops leaves
//! pairs open; the results for the other pairs remain valid.

use crate::Judgement;
use consistory_history::{History, OpId};
use consistory_models::{DoesNotApply, find};
use consistory_verdict::{Budget, Stopped};

use crate::causal::convergent::happens_before;
use crate::order::{ChainOrder, Edge as OrderEdge};
use crate::reads_from::{self, Candidates};
use crate::reason::Reason;
use crate::registers::{Registers, Segments};
use crate::store_order::completion::{Complete, Completed};
use crate::store_order::finals::Finals;
use crate::store_order::latest::Latest;
use crate::store_order::layers::{Layer, Memory, layers, variables};
use crate::store_order::saturation::{Readers, Saturation};
use crate::store_order::{self, StoreModel};
use crate::{Options, thin_air_read};

/// The kernel of a history, as far as it is known.
#[derive(Debug)]
pub struct Kernel {
    /// Number of pairs of writes of one key, initial writes excluded.
    pub pairs: u64,
    /// Number of pairs that CCv orders, by the causal order and its conflicts.
    pub ccv: u64,
    /// Number of pairs that CCM orders.
    pub ccm: u64,
    /// Number of pairs that wSC orders.
    pub wsc: u64,
    /// Number of pairs known to be in the kernel.
    pub agreed: u64,
    /// Number of pairs not known to be inside or outside the kernel, because the search stopped.
    pub open: u64,
    /// Number of witnesses found.
    pub witnesses: u64,
    /// Reason why pairs are open.
    pub stopped: Option<Stopped>,
    orders: [Order; 4],
}

/// The weakest technique that orders a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finder {
    /// Causal convergence.
    Ccv,
    /// Convergent causal memory.
    Ccm,
    /// Weak sequential consistency.
    Wsc,
    /// Only the search.
    Search,
}

/// Reason why a history has no kernel.
#[derive(Debug)]
pub enum NoKernel {
    /// The history is not sequentially consistent.
    Violation(Judgement),
    /// It is unknown whether the history is sequentially consistent.
    Undecided(Stopped),
    /// The source of this read does not follow from the values.
    Ambiguous {
        /// The read.
        read: OpId,
    },
    /// The history has final values, which this computation does not support.
    FinalValues,
    /// Sequential consistency does not apply to the history.
    DoesNotApply(DoesNotApply),
}

impl From<Stopped> for NoKernel {
    fn from(stopped: Stopped) -> Self {
        NoKernel::Undecided(stopped)
    }
}

/// Finds the kernel of a register history of single operations that is differentiated.
pub fn kernel(history: &History, options: &Options) -> Result<Kernel, NoKernel> {
    let sc = find("sc").expect("the catalogue has it");
    sc.definition.applies(history).map_err(NoKernel::DoesNotApply)?;
    if !history.finals().is_empty() {
        return Err(NoKernel::FinalValues);
    }
    let budget = &options.budget.renewed();
    let candidates = reads_from::candidates(history, budget).map_err(NoKernel::Undecided)?;
    if let Some(read) = candidates.thin_air {
        return Err(NoKernel::Violation(thin_air_read(read)));
    }
    if let Some(&(read, _)) = candidates.ambiguous.first() {
        return Err(NoKernel::Ambiguous { read });
    }
    find_kernel(history, &candidates, options, budget)
}

fn find_kernel(
    history: &History,
    candidates: &Candidates,
    options: &Options,
    budget: &Budget,
) -> Result<Kernel, NoKernel> {
    let registers = &Registers::new(history, &candidates.source);
    let engine = &*options.tuning.engine.on(options.jobs);
    let refuted = || -> Result<Kernel, NoKernel> {
        let (finals, sc) = (&Finals::default(), StoreModel::Sc);
        let judgement = store_order::decide(history, candidates, finals, sc, engine, budget)?;
        Err(NoKernel::Violation(judgement))
    };
    let Ok(layers) = layers(registers, Memory::Sequential, budget)? else { return refuted() };
    let layer = layers.clone().admit_all().swap_remove(0);
    let readers = Readers::new(registers);
    let mut saturation = Saturation::new(registers, &readers, layers);
    if saturation.saturate(budget)?.is_err() {
        return refuted();
    }
    let start = saturation.mark();
    let Completed::Order(witness) = engine.complete(registers, &mut saturation, budget)? else {
        return refuted();
    };
    // An engine may leave its assumptions in the saturation.
    saturation.undo(start);
    let happens_before = happens_before(registers, layer.clone(), options.jobs, budget)?;
    let happens_before = happens_before.expect("a history that is SC is CCM");
    let ccv = order_of_writes(registers, &layer, &layer.order);
    let ccm = order_of_writes(registers, &layer, &happens_before);
    let segments = || layer.segments.clone();
    let wsc = Order { order: saturation.layer().order.clone(), segments: segments() };
    let mut query = Query { registers, engine, budget, open: vec![], witnesses: 1 };
    query.open = wsc.unordered(registers, &witness, budget)?;
    let stopped = query.ask(&mut saturation).err();
    let all = Order { order: saturation.layer().order.clone(), segments: segments() };
    query.open.retain(|&(a, b)| !all.order.before(a, b));
    let orders = [ccv, ccm, wsc, all];
    let [ccv, ccm, wsc, agreed] = [0, 1, 2, 3].map(|i: usize| orders[i].count(registers));
    let pairs = |key| {
        let writes: u64 =
            layer.segments.of(key).iter().map(|&s| layer.segments.writes(s).len() as u64).sum();
        writes * writes.saturating_sub(1) / 2
    };
    Ok(Kernel {
        pairs: history.keys().map(pairs).sum(),
        ccv,
        ccm,
        wsc,
        agreed,
        open: query.open.len() as u64,
        witnesses: query.witnesses,
        stopped,
        orders,
    })
}

impl Kernel {
    /// Calls `visit` on each pair of the kernel, the earlier write first, with the weakest
    /// technique that finds it.
    pub fn visit(&self, history: &History, mut visit: impl FnMut(OpId, OpId, Finder)) {
        let Order { order, segments } = &self.orders[3];
        let finders = [Finder::Ccv, Finder::Ccm, Finder::Wsc, Finder::Search];
        for key in history.keys() {
            let of_key = segments.of(key);
            let writes = || of_key.iter().flat_map(|&segment| segments.writes(segment));
            for &a in writes() {
                for &b in writes().filter(|&&b| order.before(a, b)) {
                    let finds = |(known, _): &(&Order, Finder)| known.order.before(a, b);
                    let finder = self.orders.iter().zip(finders).find(finds);
                    visit(a, b, finder.expect("the last finds it").1);
                }
            }
        }
    }
}

/// An order, and the writes of each key by its chains.
#[derive(Debug)]
struct Order {
    order: ChainOrder,
    segments: Segments,
}

impl Order {
    /// Counts the pairs of writes of one key that the order contains.
    fn count(&self, registers: &Registers<'_>) -> u64 {
        let mut count = 0;
        for key in registers.history.keys() {
            let segments = self.segments.of(key);
            for &own in segments {
                for (place, &write) in self.segments.writes(own).iter().enumerate() {
                    count += place as u64;
                    for &other in segments.iter().filter(|other| other.chain != own.chain) {
                        let known = self.order.count_until(write, other.chain);
                        let places = self.segments.places(other);
                        count += places.partition_point(|&place| place < known) as u64;
                    }
                }
            }
        }
        count
    }

    /// Lists the unordered pairs of writes, each in the order of a witness, pairs far apart in the
    /// witness first.
    fn unordered(
        &self,
        registers: &Registers<'_>,
        witness: &[OpId],
        budget: &Budget,
    ) -> Result<Vec<(OpId, OpId)>, Stopped> {
        let rank = ranks(witness);
        let Order { order, segments } = self;
        let mut pairs = Vec::new();
        for key in registers.history.keys() {
            let of_key = segments.of(key);
            for (i, &a) in of_key.iter().enumerate() {
                for &b in &of_key[i + 1..] {
                    budget.check()?;
                    for &w in segments.writes(a) {
                        // The writes of b ordered neither before nor after are consecutive.
                        let known = order.count_until(w, b.chain);
                        let start = segments.places(b).partition_point(|&place| place < known);
                        let rest = &segments.writes(b)[start..];
                        let end = rest.partition_point(|&v| !order.before(w, v));
                        budget.reserve(size_of::<(OpId, OpId)>() as u64 * end as u64)?;
                        pairs.extend(rest[..end].iter().map(|&v| {
                            match rank[w.index()] < rank[v.index()] {
                                true => (w, v),
                                false => (v, w),
                            }
                        }));
                    }
                }
            }
        }
        let distance = |&(a, b): &(OpId, OpId)| rank[b.index()] - rank[a.index()];
        pairs.sort_unstable_by_key(|pair| std::cmp::Reverse((distance(pair), *pair)));
        Ok(pairs)
    }
}

/// Returns the position of each operation in the witness.
fn ranks(witness: &[OpId]) -> Vec<u32> {
    let mut rank = vec![0; witness.len()];
    for (at, &op) in (0u32..).zip(witness) {
        rank[op.index()] = at;
    }
    rank
}

/// Returns `(R_WW | cf[R])+` for an order R, as an order of the writes of each key.
fn order_of_writes(registers: &Registers<'_>, layer: &Layer, order: &ChainOrder) -> Order {
    let segments = &layer.segments;
    let keys = registers.history.key_count();
    let mut latest = Latest::new(order.chains(), segments, keys);
    let mut edges = Vec::new();
    for op in registers.history.ops() {
        let reason = Reason::Read(op).pack();
        if let Some(source) = registers.source[op.index()].get()
            && !registers.history.is_initial(source)
        {
            let found = latest.find(order, segments, registers.read_key(op), op);
            let conflicting = found.iter().filter(|&&write| write != source);
            edges.extend(conflicting.map(|&from| OrderEdge { from, to: source, reason }));
        }
        if let Some(key) = registers.written_key(op) {
            let found = latest.find(order, segments, key, op);
            edges.extend(found.iter().map(|&from| OrderEdge { from, to: op, reason }));
        }
    }
    let chains = variables(registers);
    let segments = registers.segments_by(&chains);
    let order = ChainOrder::build(chains, edges).expect("it is part of every store order");
    Order { order, segments }
}

/// The pairs that all witnesses so far agree on and that are not forced.
struct Query<'a> {
    registers: &'a Registers<'a>,
    engine: &'a dyn Complete,
    budget: &'a Budget,
    open: Vec<(OpId, OpId)>,
    witnesses: u64,
}

impl Query<'_> {
    /// Searches until no pair is open. Afterwards the forced pairs are the proved ones.
    fn ask(&mut self, saturation: &mut Saturation<'_>) -> Result<(), Stopped> {
        while let Some(&(first, second)) = self.open.last() {
            self.budget.check()?;
            if saturation.layer().order.before(first, second) {
                self.open.pop();
                continue;
            }
            let start = saturation.mark();
            let found = self.turned_round(saturation, (first, second));
            saturation.undo(start);
            match found? {
                Some(witness) => {
                    self.witnesses += 1;
                    let rank = ranks(&witness);
                    self.open.retain(|&(a, b)| rank[a.index()] < rank[b.index()]);
                }
                None => {
                    self.open.pop();
                    let forced = saturation.put(first, second).is_ok();
                    let forced = forced && saturation.saturate(self.budget)?.is_ok();
                    assert!(forced, "a witness has this order");
                }
            }
        }
        Ok(())
    }

    /// Searches for a witness with the two writes of a pair reversed.
    fn turned_round(
        &self,
        saturation: &mut Saturation<'_>,
        (first, second): (OpId, OpId),
    ) -> Result<Option<Vec<OpId>>, Stopped> {
        if !self.assume(saturation, second, first)? {
            return Ok(None);
        }
        let alone = saturation.mark();
        let mut more = false;
        for &(a, b) in self.open.iter().rev().skip(1) {
            let order = &saturation.layer().order;
            if !order.before(a, b) && !order.before(b, a) {
                let before = saturation.mark();
                match self.assume(saturation, b, a)? {
                    true => more = true,
                    false => saturation.undo(before),
                }
            }
        }
        for _ in 0..=usize::from(more) {
            match self.engine.complete(self.registers, saturation, self.budget)? {
                Completed::Order(witness) => return Ok(Some(witness)),
                // There may be a witness if fewer pairs are reversed.
                Completed::Refuted(_) => saturation.undo(alone),
            }
        }
        Ok(None)
    }

    fn assume(
        &self,
        saturation: &mut Saturation<'_>,
        first: OpId,
        second: OpId,
    ) -> Result<bool, Stopped> {
        Ok(saturation.put(first, second).is_ok() && saturation.saturate(self.budget)?.is_ok())
    }
}
