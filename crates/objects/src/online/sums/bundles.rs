//! The least multisets of amounts with a sum.

use rustc_hash::FxHashSet;

/// How many partial bundles are tried.
const MOST: usize = 1 << 12;

/// Lists the multisets of amounts with a sum of which no part adds up to zero; `None` if they may be
/// too many to find. `left` has how many there are of each amount.
///
/// Any such multiset can be put in an order in which each amount leads towards the sum, whichever
/// side of it the sum so far is on. So it is found step by step, and between the amounts' sizes on
/// both sides of the way no partial sum comes twice.
pub(super) fn bundles(
    pool: &[(i64, u32)],
    left: &[u32],
    sum: i64,
    most: usize,
) -> Option<Vec<Vec<u32>>> {
    let mut found: Vec<Vec<u32>> = Vec::new();
    let mut known: FxHashSet<Vec<u32>> = FxHashSet::default();
    let mut work: Vec<(Vec<u32>, i64)> = vec![(vec![0; pool.len()], sum)];
    while let Some((taken, missing)) = work.pop() {
        if missing == 0 {
            found.push(taken);
            continue;
        }
        if known.len() > MOST {
            return None;
        }
        let size: u32 = taken.iter().sum();
        let leads = |kind: &usize| (pool[*kind].0 > 0) == (missing > 0);
        let kinds = || (0..pool.len()).filter(leads).filter(|&kind| taken[kind] < left[kind]);
        let reach: i128 = kinds()
            .map(|kind| i128::from(pool[kind].0) * i128::from(left[kind] - taken[kind]))
            .sum();
        if size as usize >= most || reach.abs() < i128::from(missing).abs() {
            continue;
        }
        for kind in kinds() {
            let mut taken = taken.clone();
            taken[kind] += 1;
            if known.insert(taken.clone()) {
                work.push((taken, missing.wrapping_sub(pool[kind].0)));
            }
        }
    }
    // Who contains another has a part that adds up to zero.
    found.sort_by_cached_key(|taken| taken.iter().sum::<u32>());
    let mut least: Vec<Vec<u32>> = Vec::new();
    for taken in found {
        let contains = |less: &Vec<u32>| less.iter().zip(&taken).all(|(less, more)| less <= more);
        if !least.iter().any(contains) {
            least.push(taken);
        }
    }
    Some(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists all multisets with a sum, and then those that contain no other.
    fn by_definition(pool: &[(i64, u32)], sum: i64) -> Vec<Vec<u32>> {
        let mut all: Vec<Vec<u32>> = vec![Vec::new()];
        for &(_, count) in pool {
            let longer = |taken: &Vec<u32>| {
                let taken = taken.clone();
                (0..=count).map(move |n| [taken.clone(), vec![n]].concat())
            };
            all = all.iter().flat_map(longer).collect();
        }
        let total = |taken: &[u32]| -> i64 {
            taken.iter().zip(pool).map(|(&n, &(amount, _))| i64::from(n) * amount).sum()
        };
        all.retain(|taken| total(taken) == sum);
        let is_in = |less: &[u32], more: &[u32]| less.iter().zip(more).all(|(l, m)| l <= m);
        let is_least = |taken: &&Vec<u32>| !all.iter().any(|l| l != *taken && is_in(l, taken));
        let mut least: Vec<Vec<u32>> = all.iter().filter(is_least).cloned().collect();
        least.sort();
        least
    }

    #[test]
    fn they_are_the_least_multisets_with_the_sum() {
        let pools: [&[(i64, u32)]; 5] = [
            &[(1, 4), (-1, 3), (-2, 3)],
            &[(3, 3), (-2, 4), (5, 2)],
            &[(1, 2), (2, 2), (3, 2), (-4, 2)],
            &[(-6, 2), (4, 3), (9, 1), (-1, 1)],
            &[],
        ];
        let mut many = 0;
        for pool in pools {
            let left: Vec<u32> = pool.iter().map(|&(_, count)| count).collect();
            for sum in -20..=20 {
                let mut found = bundles(pool, &left, sum, usize::MAX).unwrap();
                found.sort();
                assert_eq!(found, by_definition(pool, sum), "{pool:?} {sum}");
                many += usize::from(found.len() > 1);
            }
        }
        assert!(many > 20, "{many}");
    }
}
