//! Chains that take turns: a linear extension of what is not written down as edges.
//!
//! Every chain takes a few of its members when its turn comes, then goes to the end of the queue, so
//! that the order is about that in which chains that run side by side would have come along. A
//! member that needs one of another chain makes its chain wait until that one is taken: a chain
//! waits for one member at a time, and costs nothing while it does. In all that is a step a member and
//! a step a wait.

use std::collections::VecDeque;

/// A member that must be taken first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// Its chain.
    pub chain: u32,
    /// Its place there.
    pub place: u32,
}

const NOBODY: u32 = u32::MAX;

/// Lets chains of some lengths take turns of up to `turn` members; says whether all were taken,
/// that is, whether no chains wait for each other.
///
/// `take` is offered a member, by its chain and place, and what is taken of each chain. It takes the
/// member, or names one that is not taken and must be before.
pub fn take_turns(
    lengths: &[u32],
    turn: u32,
    mut take: impl FnMut(u32, u32, &[u32]) -> Result<(), Awaited>,
) -> bool {
    let mut taken = vec![0u32; lengths.len()];
    // `waiting[c]` heads the list of chains that wait for chain c to pass a place.
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
            match take(chain, taken[at], &taken) {
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
                waiting_next[at] = waiting[other as usize];
                waiting[other as usize] = chain;
            }
            None if taken[at] < lengths[at] => turns.push_back(chain),
            None => {}
        }
        if taken[at] == started {
            continue;
        }
        // Wake the chains that waited for what was taken.
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

    /// Takes chains of these lengths where each pair says that the first member needs the second.
    fn order(lengths: &[u32], turn: u32, needs: &[[(u32, u32); 2]]) -> (Vec<(u32, u32)>, bool) {
        let mut order = Vec::new();
        let all = take_turns(lengths, turn, |chain, place, taken| {
            for [member, (other, before)] in needs {
                if *member == (chain, place) && taken[*other as usize] <= *before {
                    return Err(Awaited { chain: *other, place: *before });
                }
            }
            order.push((chain, place));
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
