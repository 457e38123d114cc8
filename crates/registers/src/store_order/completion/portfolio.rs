//! The portfolio: all engines in parallel; the first answer counts.
//!
//! A history does not show which engine will be fastest: the frontier search has few states for few
//! sessions, the SAT engine learns from many sessions, and cases refute quickly if few are needed.
//! Most histories are easy, however. For SC, a greedy run is tried before saturation
//! ([`crate::store_order::completion::greedy`]); it is cheap and often succeeds for few sessions.
//! From the saturated order a schedule is built ([`crate::store_order::completion::schedule`]),
//! which succeeds on most histories that a memory really produced.
//!
//! For the rest, the SAT engine starts alone, since starting threads has a cost. After a number of
//! dead ends the other engines join it, each on a thread of its own with a copy of the saturated
//! order. When one answers, the others are stopped.
//!
//! With one thread the SAT engine continues alone; with two the frontier search joins it, with more
//! the case split does too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use consistory_history::OpId;
use consistory_verdict::{Budget, Stopped};

use crate::registers::Registers;
use crate::store_order::completion::frontier::Frontier;
use crate::store_order::completion::greedy::sequential_order;
use crate::store_order::completion::sat::SatSearch;
use crate::store_order::completion::schedule::schedule;
use crate::store_order::completion::split::Split;
use crate::store_order::completion::{Complete, Completed};
use crate::store_order::saturation::Saturation;

/// Number of dead ends of the SAT engine after which the others join it.
const SAT_ALONE_DEAD_ENDS: usize = 32;

/// All engines, on a limited number of threads.
pub(crate) struct Portfolio {
    pub(crate) threads: usize,
}

impl Complete for Portfolio {
    fn guess(&self, registers: &Registers<'_>) -> Option<Vec<OpId>> {
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
                // An engine without a thread is left out.
                let _ = consistory_work::spawn_scoped(scope, move || {
                    let answer = engine.complete(registers, &mut saturation, budget);
                    if answer.is_ok() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    // The receiver is gone if another answer came first.
                    let _ = sender.send(answer);
                });
            }
            drop(sender);
            let own = search.complete(budget);
            if own.is_ok() {
                stop.store(true, Ordering::Relaxed);
                return own;
            }
            // Another engine answered, or none could, or this one ran out of budget.
            receiver.iter().find(Result::is_ok).unwrap_or(own)
        })
    }
}
