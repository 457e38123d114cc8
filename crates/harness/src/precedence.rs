//! Computes intervals of calls from counters: the known order of calls.
//!
//! A shared clock makes threads wait for each other, and hides the very interleavings that it
//! should record. So each thread has a counter of its returned calls, which only this thread writes
//! and the others read before each of their calls (Emmi and Enea, "Monitoring Weak Consistency",
//! CAV 2018, section 5, figure 6):
//!
//! ```text
//!   t0: ── read c1 ── call a0 ── c0 := 1 ── read c1 ── call a1 ── c0 := 2 ──
//!   t1: ───────────────────── read c0 ── call b0 ── c1 := 1 ────────────────
//! ```
//!
//! If b0's thread read `c0 = 1`, then a0 had returned before b0 was called. The write is a release
//! and the read an acquire, so this is a happens-before of the memory model, and the effects of the
//! calls are ordered with it. If the read missed the write, an order is lost: the recorded order is
//! sound, not complete. The paper counts calls as well as returns and reads twice between two
//! calls; this adds only the information that some calls certainly overlap, which has no
//! consequence.
//!
//! The known order is closed under transitivity. The result is contained in the real order, but
//! need not be an interval order, as the order of every history is: two threads that each miss the
//! other's last write (because of store buffers) record `a0 < a1` and `b0 < b1` and nothing between
//! them, although really `a0 < b1` or `b0 < a1`. So the calls are sorted such that a call comes
//! late only if it knows the predecessors of the others. Calls that would have to precede each
//! other share a time, and only the order of their threads remains between them. The start of a
//! call is then its position. A call counts as returned before this position if the call at the
//! position and all later calls know that it has returned. If the known order is an interval order,
//! the result is exactly this order; it never contains more.
//!
//! Cost: cubic in the number of calls of a program, in words of 64 bits.

use consistory_order::Matrix;

/// The interval of a call: its start, and its return if there is one.
pub(crate) type Span = (u32, Option<u32>);

/// Returns intervals whose order is contained in the real order.
///
/// `seen[t][i][s]` is the number of calls of thread `s` known to have returned when thread `t` made
/// its call `i`; `returned[t]` is the total number of calls of `t` that returned.
pub(crate) fn spans(seen: &[Vec<Vec<u32>>], returned: &[usize]) -> Vec<Vec<Span>> {
    let calls: Vec<(usize, usize)> =
        (0..seen.len()).flat_map(|t| (0..seen[t].len()).map(move |i| (t, i))).collect();
    let mut first = vec![0; seen.len()];
    for t in 1..seen.len() {
        first[t] = first[t - 1] + seen[t - 1].len();
    }
    let known = close(seen, returned, &calls, &first);
    let order = sort(&known, &calls);
    // For each class, the order known to it and to all later classes; computed from the last class
    // to the first.
    let mut claims: Vec<(Vec<u32>, Vec<usize>)> = Vec::new();
    for class in order.into_iter().rev() {
        let mut claim = claims.last().map_or_else(|| vec![u32::MAX; seen.len()], |c| c.0.clone());
        for &x in &class {
            claim.iter_mut().zip(&known[x]).for_each(|(a, &b)| *a = (*a).min(b));
        }
        match claims.last_mut() {
            Some((same, members)) if *same == claim => members.extend(class),
            _ => claims.push((claim, class)),
        }
    }
    claims.reverse();
    let mut spans: Vec<Vec<Span>> = seen.iter().map(|calls| vec![(0, None); calls.len()]).collect();
    for (time, (_, members)) in claims.iter().enumerate() {
        for &x in members {
            let (t, i) = calls[x];
            spans[t][i].0 = time as u32;
        }
    }
    for &(t, i) in calls.iter().filter(|&&(t, i)| i < returned[t]) {
        // The call returned just before the first time at which its return is known.
        let claimed = claims.partition_point(|(claim, _)| claim[t] <= i as u32);
        spans[t][i].1 = Some((claimed as u32).saturating_sub(1).max(spans[t][i].0));
    }
    spans
}

/// Returns for each call the number of calls of each thread known to have returned before it.
fn close(
    seen: &[Vec<Vec<u32>>],
    returned: &[usize],
    calls: &[(usize, usize)],
    first: &[usize],
) -> Vec<Vec<u32>> {
    let mut known: Vec<Vec<u32>> = calls
        .iter()
        .map(|&(t, i)| {
            let mut own: Vec<u32> = (0..seen.len())
                .map(|s| seen[t][i].get(s).map_or(0, |&n| n.min(returned[s] as u32)))
                .collect();
            own[t] = i as u32;
            own
        })
        .collect();
    loop {
        let mut is_changed = false;
        for x in 0..calls.len() {
            let (own, i) = calls[x];
            for s in 0..seen.len() {
                let Some(last) = known[x][s].checked_sub(1) else { continue };
                let before = known[first[s] + last as usize].clone();
                for (u, &n) in before.iter().enumerate() {
                    // A thread knows its own past exactly.
                    let n = if u == own { n.min(i as u32) } else { n };
                    is_changed |= n > known[x][u];
                    known[x][u] = known[x][u].max(n);
                }
            }
        }
        if !is_changed {
            return known;
        }
    }
}

/// Sorts the calls into classes that share a time.
///
/// A call must not come after another call unless it knows the full past of that call's thread:
/// that past would then be claimed to have returned before it.
fn sort(known: &[Vec<u32>], calls: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let n = calls.len();
    let mut not_behind = Matrix::empty(n);
    for (x, past) in known.iter().enumerate() {
        for (y, &(t, i)) in calls.iter().enumerate() {
            if past[t] < i as u32 {
                not_behind.insert(x, y);
            }
        }
    }
    not_behind.close();
    let is_together =
        |x: usize, y: usize| x == y || (not_behind.contains(x, y) && not_behind.contains(y, x));
    let mut left: Vec<usize> = (0..n).collect();
    // Calls that know less come first, if possible.
    left.sort_by_key(|&x| (known[x].iter().map(|&n| u64::from(n)).sum::<u64>(), x));
    let mut classes = Vec::new();
    while !left.is_empty() {
        let is_free =
            |&&x: &&usize| left.iter().all(|&y| !not_behind.contains(y, x) || is_together(x, y));
        let chosen = *left.iter().find(is_free).expect("a preorder has a least class");
        classes.push(left.extract_if(.., |y| is_together(chosen, *y)).collect());
    }
    classes
}

#[cfg(test)]
mod tests {
    use consistory_random::Random;

    use super::*;

    /// Checks whether a call is before another by their intervals, as histories define it.
    fn is_before(spans: &[Vec<Span>], (t, i): (usize, usize), (s, j): (usize, usize)) -> bool {
        let Some(end) = spans[t][i].1 else { return false };
        end < spans[s][j].0 || (t == s && end == spans[s][j].0 && i < j)
    }

    #[test]
    fn a_counter_that_was_seen_orders_calls() {
        // The call of t1 saw both calls of t0.
        let seen = [vec![vec![0, 0], vec![0, 0]], vec![vec![2, 0]]];
        let found = spans(&seen, &[2, 1]);
        assert!(is_before(&found, (0, 1), (1, 0)));
        // The call of t1 saw the first call of t0, and overlaps the second.
        let seen = [vec![vec![0, 0], vec![0, 0]], vec![vec![1, 0]]];
        let found = spans(&seen, &[2, 1]);
        assert!(is_before(&found, (0, 0), (1, 0)));
        assert!(!is_before(&found, (0, 1), (1, 0)) && !is_before(&found, (1, 0), (0, 1)));
    }

    #[test]
    fn two_threads_that_miss_each_other_overlap_and_keep_their_own_order() {
        let seen = [vec![vec![0, 0], vec![0, 0]], vec![vec![0, 0], vec![0, 0]]];
        let found = spans(&seen, &[2, 2]);
        for (t, s) in [(0, 1), (1, 0)] {
            assert!(is_before(&found, (t, 0), (t, 1)));
            for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                assert!(!is_before(&found, (t, i), (s, j)), "{found:?}");
            }
        }
    }

    #[test]
    fn what_a_seen_call_knew_is_known() {
        // The call of t2 saw the call of t1, which saw the call of t0.
        let seen = [vec![vec![0, 0, 0]], vec![vec![1, 0, 0]], vec![vec![0, 1, 0]]];
        let found = spans(&seen, &[1, 1, 1]);
        assert!(is_before(&found, (0, 0), (1, 0)) && is_before(&found, (0, 0), (2, 0)));
    }

    #[test]
    fn a_call_that_never_returned_is_before_nothing() {
        let seen = [vec![vec![0, 0]], vec![vec![7, 0]]];
        assert_eq!(spans(&seen, &[0, 1]), [[(0, None)], [(0, Some(0))]]);
    }

    /// Simulates executions with random times, in which some reads of counters are late. The
    /// resulting order must be contained in the real order, contain the order of each thread, and
    /// be complete if no read was late.
    #[test]
    fn claims_are_sound_and_complete_where_reads_are_fresh() {
        let mut random = Random::new(1, 0);
        let mut lost = 0;
        for round in 0..4_000 {
            let threads = 2 + random.below(3) as usize;
            let lateness = if round % 2 == 0 { 0 } else { 12 };
            let mut times: Vec<Vec<(u32, u32)>> = Vec::new();
            for _ in 0..threads {
                let mut clock = random.below(10);
                let mut calls = Vec::new();
                for _ in 0..1 + random.below(4) {
                    let start = clock + 1 + random.below(6);
                    let end = start + 1 + random.below(10);
                    calls.push((2 * start, 2 * end + 1));
                    clock = end;
                }
                times.push(calls);
            }
            let mut seen: Vec<Vec<Vec<u32>>> = Vec::new();
            for t in 0..threads {
                let mut of_thread: Vec<Vec<u32>> = Vec::new();
                for &(start, _) in &times[t] {
                    let read = |s: usize, late: u32| {
                        let at = start.saturating_sub(late);
                        times[s].iter().filter(|&&(_, end)| end < at).count() as u32
                    };
                    let fresh: Vec<u32> = (0..threads)
                        .map(|s| {
                            let previous = of_thread.last().map_or(0, |seen| seen[s]);
                            read(s, random.below(lateness + 1)).max(previous)
                        })
                        .collect();
                    of_thread.push(fresh);
                }
                seen.push(of_thread);
            }
            let returned: Vec<usize> = times.iter().map(Vec::len).collect();
            let found = spans(&seen, &returned);
            let calls: Vec<(usize, usize)> =
                (0..threads).flat_map(|t| (0..times[t].len()).map(move |i| (t, i))).collect();
            for &(t, i) in &calls {
                assert!(found[t][i].1.is_some_and(|end| end >= found[t][i].0));
                for &(s, j) in &calls {
                    let claimed = is_before(&found, (t, i), (s, j));
                    let real = times[t][i].1 < times[s][j].0;
                    assert!(!claimed || real, "{times:?} {seen:?} {found:?}");
                    if t == s || lateness == 0 {
                        assert_eq!(claimed, real, "{times:?} {seen:?} {found:?}");
                    }
                    lost += u32::from(real && !claimed);
                }
            }
        }
        assert!(lost > 1_000, "late reads should have lost something: {lost}");
    }
}
