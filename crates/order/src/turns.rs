//! A linear extension of chains that take turns, where dependencies are computed on demand.
//!
//! In its turn, every chain takes a few of its members and then goes to the end of the queue, so
//! that the result resembles an execution of concurrent chains. If a member depends on a member of
//! another chain, its chain waits until that member is taken. A chain waits for one member at a
//! time, and costs nothing while it waits. The total cost is one step per member and one step per
//! wait.

use std::collections::VecDeque;

use crate::ids::ChainId;

/// A member that must be taken before another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// Chain of the member.
    pub chain: ChainId,
    /// Position in the chain.
    pub place: u32,
}

const NOBODY: u32 = u32::MAX;

/// Visits the members of chains in turns of up to `turn` members. Returns whether all members were
/// taken, that is, whether no chains wait for each other.
///
/// `take` receives a member, by its chain and position, and the number of members taken from each
/// chain. It either takes the member or returns another member that must be taken before.
pub fn take_turns(
    lengths: &[u32],
    turn: u32,
    mut take: impl FnMut(ChainId, u32, &[u32]) -> Result<(), Awaited>,
) -> bool {
    let mut taken = vec![0u32; lengths.len()];
    // `waiting[c]` heads the list of chains that wait for a position in chain c.
    let mut waiting = vec![NOBODY; lengths.len()];
    let mut waiting_next = vec![NOBODY; lengths.len()];
    let mut waits_for_place = vec![0u32; lengths.len()];
    let mut turns: VecDeque<u32> = (0..lengths.len() as u32).collect();
    while let Some(chain) = turns.pop_front() {
        let at = chain as usize;
        let started = taken[at];
        let end = started.saturating_add(turn).min(lengths[at]);
        let mut awaited = None;
        while taken[at] < end {
            match take(ChainId(chain), taken[at], &taken) {
                Ok(()) => taken[at] += 1,
                Err(member) => {
                    awaited = Some(member);
                    break;
                }
            }
        }
        match awaited {
            Some(Awaited { chain: other, place }) => {
                waits_for_place[at] = place;
                waiting_next[at] = waiting[other.index()];
                waiting[other.index()] = chain;
            }
            None if taken[at] < lengths[at] => turns.push_back(chain),
            None => {}
        }
        if taken[at] == started {
            continue;
        }
        // Wake the chains that waited for the taken members.
        let mut waiter = std::mem::replace(&mut waiting[at], NOBODY);
        while waiter != NOBODY {
            let following = waiting_next[waiter as usize];
            if waits_for_place[waiter as usize] < taken[at] {
                turns.push_back(waiter);
            } else {
                waiting_next[waiter as usize] = waiting[at];
                waiting[at] = waiter;
            }
            waiter = following;
        }
    }
    taken == lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the order in which chains of these lengths are taken, where the first member of each
    /// pair depends on the second.
    fn order(lengths: &[u32], turn: u32, needs: &[[(u32, u32); 2]]) -> (Vec<(u32, u32)>, bool) {
        let mut order = Vec::new();
        let all = take_turns(lengths, turn, |chain, place, taken| {
            for [member, (other, before)] in needs {
                if *member == (chain.0, place) && taken[*other as usize] <= *before {
                    return Err(Awaited { chain: ChainId(*other), place: *before });
                }
            }
            order.push((chain.0, place));
            Ok(())
        });
        (order, all)
    }

    #[test]
    fn chains_take_turns_and_wait_for_what_they_need() {
        let needs = [[(0, 0), (1, 1)]];
        assert_eq!(order(&[2, 2], 1, &[]), (vec![(0, 0), (1, 0), (0, 1), (1, 1)], true));
        assert_eq!(order(&[2, 2], 2, &[]), (vec![(0, 0), (0, 1), (1, 0), (1, 1)], true));
        for turn in 1..3 {
            let waited = order(&[2, 2], turn, &needs);
            assert_eq!(waited, (vec![(1, 0), (1, 1), (0, 0), (0, 1)], true));
        }
    }

    #[test]
    fn chains_that_wait_for_each_other_or_themselves_end_it() {
        let each_other = [[(0, 1), (1, 1)], [(1, 1), (0, 1)]];
        assert_eq!(order(&[2, 2], 8, &each_other), (vec![(0, 0), (1, 0)], false));
        assert_eq!(order(&[2], 1, &[[(0, 0), (0, 1)]]), (vec![], false));
    }
}
