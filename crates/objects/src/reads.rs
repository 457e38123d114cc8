//! A few reads that refute a history of a register.
//!
//! A read can be left out of a history, and so can all writes of a value that is no longer read: a
//! linearizable history remains linearizable. So if some reads, with all writes of their values,
//! are not linearizable, neither is the history. This certificate is small and quick to check,
//! although the search that found the violation had to explore many operations. The last returned
//! reads are tried, in increasing number; then reads are removed again, as many at a time as
//! possible.

use consistory_history::Value;
use consistory_spec::Family;
use consistory_verdict::Budget;
use rustc_hash::FxHashSet;

use crate::calls::CallIndex;
use crate::just_in_time::{Linearization, Threads, linearize};
use crate::overwrites::is_plain;
use crate::task::Task;
use crate::timeline::Timeline;

/// Largest number of reads tried.
const MAX_READS_TRIED: usize = 1024;

/// Finds some operations that are not linearizable and thus refute the history: some reads of a
/// register, and all writes of their values. `None` if the object is not a register, if there are
/// too many reads, or if the budget runs out.
pub(crate) fn few_reads(task: &Task<'_>, budget: &Budget, alone: u64) -> Option<Vec<CallIndex>> {
    let is_register = match task.object().family()? {
        Family::Register(_) => true,
        Family::Store(_) => task.methods().iter().all(|method| matches!(*method, "get" | "put")),
        _ => false,
    };
    let timeline = Timeline::new(task);
    if !is_register || !is_plain(task, &timeline) {
        return None;
    }
    let threads = Threads::new(1, alone);
    let refutes = |reads: &[CallIndex]| {
        let some = task.restricted(&with_writes(task, reads));
        let found = linearize(&some, budget, &threads);
        found.map(|found| matches!(found, Linearization::Stuck { .. }))
    };
    let mut reads = timeline.returns;
    reads.retain(|&place| task.is_pure(place));
    let mut count = 4;
    let mut kept = loop {
        let some = &reads[reads.len().saturating_sub(count)..];
        if refutes(some).ok()? {
            break some.to_vec();
        }
        if count >= reads.len().min(MAX_READS_TRIED) {
            return None;
        }
        count *= 2;
    };
    let mut step = kept.len().div_ceil(2);
    loop {
        let mut at = 0;
        while at < kept.len() {
            let mut fewer = kept.clone();
            fewer.drain(at..(at + step).min(kept.len()));
            // On timeout, the reads that are left so far are kept.
            match refutes(&fewer).unwrap_or(false) {
                true => kept = fewer,
                false => at += step,
            }
        }
        if step == 1 {
            return Some(with_writes(task, &kept));
        }
        step = step.div_ceil(2);
    }
}

/// Adds all writes of the values of some reads; sorts them by start.
fn with_writes(task: &Task<'_>, reads: &[CallIndex]) -> Vec<CallIndex> {
    let values: FxHashSet<Option<&Value>> = reads.iter().map(|&read| task.returns(read)).collect();
    let is_read = |place: CallIndex| values.contains(&task.invocation(place).args.last());
    let writes = task.calls().places().filter(|&place| !task.is_pure(place) && is_read(place));
    let mut all: Vec<CallIndex> = writes.chain(reads.iter().copied()).collect();
    all.sort_unstable();
    all
}
