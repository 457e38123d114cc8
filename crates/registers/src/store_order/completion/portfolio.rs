//! The portfolio: all engines side by side, and the first answer counts.
//!
//! Which engine is fastest is not to be seen from a history: the frontier search bounds its states
//! where there are few sessions, the SAT engine learns where there are many, cases refute soon what
//! few cases refute. Most histories are easy though. For SC an order is looked for before anything is
//! saturated ([`crate::store_order::completion::greedy`]), which costs little and often suffices where there are few sessions.
//! From the saturated order a schedule is made ([`crate::store_order::completion::schedule`]), which does for most of what a
//! memory really produced.
//!
//! For the rest the SAT engine starts alone, since what threads cost would show, and the others join
//! it, each on a copy of the saturated order and a thread of its own, once it has come to a number of
//! dead ends. As soon as one answers, the others are told to stop.
//!
//! With one thread the SAT engine goes on alone, with two the frontier search joins it, with more
//! cases do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use consistory_verdict::{Budget, Stopped};

use crate::registers::Registers;
use crate::store_order::completion::frontier::Frontier;
use crate::store_order::completion::greedy::sequential_order;
use crate::store_order::completion::sat::SatSearch;
use crate::store_order::completion::schedule::schedule;
use crate::store_order::completion::split::Split;
use crate::store_order::completion::{Complete, Completed};
use crate::store_order::saturation::Saturation;

/// How many dead ends the SAT engine meets before the others join it.
const SAT_ALONE_DEAD_ENDS: usize = 32;

/// All engines, on so many threads at most.
pub(crate) struct Portfolio {
    pub(crate) threads: usize,
}

impl Complete for Portfolio {
    fn guess(&self, registers: &Registers<'_>) -> Option<Vec<u32>> {
        sequential_order(registers)
    }

    fn complete(
        &self,
        registers: &Registers<'_>,
        saturation: &mut Saturation<'_>,
        budget: &Budget,
    ) -> Result<Completed, Stopped> {
        if let Some(order) = schedule(registers, saturation, budget)? {
            return Ok(Completed::Order(order));
        }
        let mut search = SatSearch::new(registers, saturation);
        if self.threads < 2 {
            return search.complete(budget);
        }
        if let Some(completed) = search.run(SAT_ALONE_DEAD_ENDS, budget)? {
            return Ok(completed);
        }
        let others: [&(dyn Complete + Sync); 2] = [&Frontier, &Split];
        let others = others.into_iter().take(self.threads - 1).map(|it| (it, search.restart()));
        let others: Vec<_> = others.collect();
        let stop = Arc::new(AtomicBool::new(false));
        let budget = &budget.clone().with_interrupt(Arc::clone(&stop));
        thread::scope(|scope| {
            let (sender, receiver) = channel();
            for (engine, mut saturation) in others {
                let (sender, stop) = (sender.clone(), Arc::clone(&stop));
                // Without a thread for it, an engine is left out.
                let _ = consistory_work::spawn_scoped(scope, move || {
                    let answer = engine.complete(registers, &mut saturation, budget);
                    if answer.is_ok() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    // The receiver is gone if another answer was first.
                    let _ = sender.send(answer);
                });
            }
            drop(sender);
            let own = search.complete(budget);
            if own.is_ok() {
                stop.store(true, Ordering::Relaxed);
                return own;
            }
            // Another answered, or none could, or this one ran out of something.
            receiver.iter().find(Result::is_ok).unwrap_or(own)
        })
    }
}
