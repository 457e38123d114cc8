//! Tangled histories, which saturation alone does not decide.
//!
//! Random clients produce easy histories: the order that saturation forces leaves little open. But
//! deciding SC is NP-complete (Gibbons and Korach 1997), and this module produces hard instances.
//! Each cell has two writes, in sessions of their own. A read of one of them precedes the other
//! write if and only if it reads the earlier one. One such read for each of three cells makes a
//! cycle that closes if and only if all three cells are written in the order that the reads demand,
//! just as a clause in conjunctive normal form is false if and only if all its literals are:
//!
//! ```text
//!   x.1: w(x,1) f             x.2: w(x,2) f w(l1,1)
//!   y.1: w(y,1) f w(l0,1)     y.2: w(y,2) f
//!   c0.0: r(l0,1) r(x,1)      if w(x,1) is earlier:  r(x,1) ──▶ w(x,2) ──▶ c0.1
//!   c0.1: r(l1,1) r(y,2)      if w(y,2) is earlier:  r(y,2) ──▶ w(y,1) ──▶ c0.0
//! ```
//!
//! The fences are for PSO; the other models do not need them. Cycles share writes, so further
//! cycles arise. The history has a store order if and only if some order of every pair of writes
//! closes none of the cycles. With few cycles there is such an order, with many there is none, and
//! in between it is hard to tell.

use consistory_history::{Action, History, HistoryBuilder};

use crate::random::{Chooser, choices_of};

/// Options of tangled histories.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tangle {
    /// Number of cells.
    pub cells: u32,
    /// Largest number of cycles.
    pub cycles: u32,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Builds a tangled history.
pub fn tangle(tangle: &Tangle) -> History {
    let mut b = HistoryBuilder::new();
    let one = b.int(1);
    let cells: Vec<_> = (0..tangle.cells)
        .map(|cell| {
            let key = b.key(&format!("x{cell}"));
            let writes = [1, 2].map(|value| {
                let session = b.session(&format!("x{cell}.{value}"));
                let value = b.int(value);
                b.push(session, Action::Write { key, value });
                b.push(session, Action::Fence);
                (session, value)
            });
            (key, writes)
        })
        .collect();
    let mut random = choices_of(Chooser::Tangle, tangle.seed);
    for cycle in 0..tangle.cycles {
        let mut chosen: Vec<u32> = Vec::new();
        while chosen.len() < tangle.cells.min(3) as usize {
            let cell = random.below(tangle.cells);
            if !chosen.contains(&cell) {
                chosen.push(cell);
            }
        }
        for (at, &cell) in chosen.iter().enumerate() {
            let (key, writes) = &cells[cell as usize];
            let (earlier, later) = if random.once_in(2) { (0, 1) } else { (1, 0) };
            let link = b.key(&format!("l{cycle}.{at}"));
            let session = b.session(&format!("c{cycle}.{at}"));
            b.push(session, Action::Read { key: link, value: one });
            b.push(session, Action::Read { key: *key, value: writes[earlier].1 });
            let next = b.key(&format!("l{cycle}.{}", (at + 1) % chosen.len()));
            b.push(writes[later].0, Action::Write { key: next, value: one });
        }
    }
    b.finish().expect("it has no transactions, and all names are its own")
}
