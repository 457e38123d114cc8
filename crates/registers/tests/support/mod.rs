//! Shared code of the tests of the deciders: executions of simulated memories, and CC, CCv and CM
//! by definition, written as simply as possible.

#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test file uses its own part")]

use std::ops::Range;

use consistory_generate::{Memory, PlantOptions, Workload, generate, plant};
use consistory_history::{History, OpId};
use consistory_registers::CausalModel;
pub use consistory_testkit::{
    Op, Random, Shape, build, every_history, every_history_of_values, is_deep, random_history,
    rounds, text,
};

/// Calls `visit` on the histories of random clients on each simulated memory, and on the same
/// histories with reads that return another write's value.
pub fn executions(seeds: Range<u64>, mut visit: impl FnMut(&History)) {
    for seed in seeds {
        for memory in Memory::ALL {
            let workload = Workload {
                sessions: 2 + seed as u32 % 5,
                operations: 20 + seed as u32 % 31,
                variables: 1 + seed as u32 % 6,
                rmw_share: if seed % 3 == 0 { 0.1 } else { 0.0 },
                seed,
                ..Workload::default()
            };
            let history = generate(&workload, memory);
            visit(&history);
            visit(&plant(
                &history,
                &PlantOptions { distance: 20, seed, ..PlantOptions::default() },
            ));
        }
    }
}

/// Decides by definition: tries every choice of `wr`, with relations as matrices of booleans.
pub fn holds(history: &History, model: CausalModel) -> bool {
    let reads: Vec<(OpId, Vec<OpId>)> = history
        .ops()
        .filter_map(|read| {
            let (key, value) = history.reads(read)?;
            let all = history.ops().chain(history.keys().map(|k| history.initial_write(k)));
            let sources =
                all.filter(|&w| w != read && history.writes(w) == Some((key, value))).collect();
            Some((read, sources))
        })
        .collect();
    let mut choice = vec![0; reads.len()];
    loop {
        let wr: Option<Vec<(OpId, OpId)>> = reads
            .iter()
            .zip(&choice)
            .map(|((read, sources), &at)| Some((*sources.get(at)?, *read)))
            .collect();
        if wr.is_some_and(|wr| holds_with(history, &wr, model)) {
            return true;
        }
        let advanced = choice.iter_mut().zip(&reads).any(|(at, (_, sources))| {
            let wraps = *at + 1 >= sources.len();
            *at = if wraps { 0 } else { *at + 1 };
            !wraps
        });
        if !advanced {
            return false;
        }
    }
}

type Matrix = Vec<Vec<bool>>;

fn close(r: &mut Matrix) {
    for k in 0..r.len() {
        for i in 0..r.len() {
            if r[i][k] {
                let through = r[k].clone();
                r[i].iter_mut().zip(through).for_each(|(slot, reached)| *slot |= reached);
            }
        }
    }
}

fn irreflexive(r: &Matrix) -> bool {
    (0..r.len()).all(|i| !r[i][i])
}

fn holds_with(history: &History, wr: &[(OpId, OpId)], model: CausalModel) -> bool {
    let n = history.len() + history.key_count();
    let recorded = history.len();
    let key = |op: usize| {
        let op = OpId::new(op);
        let counts =
            history.is_initial(op) || history.is_certain(op) || wr.iter().any(|&(w, _)| w == op);
        history.writes(op).filter(|_| counts).map(|(key, _)| key)
    };
    let same = |a: usize, b: usize| key(a).is_some() && key(a) == key(b) && a != b;
    let mut co = vec![vec![false; n]; n];
    for (a, row) in co.iter_mut().enumerate() {
        for (b, slot) in row.iter_mut().enumerate().take(recorded) {
            let (x, y) = (OpId::new(a), OpId::new(b));
            *slot = a >= recorded || (history.session_of(x) == history.session_of(y) && a < b);
        }
    }
    let po = co.clone();
    for &(w, r) in wr {
        co[w.index()][r.index()] = true;
    }
    let base = co.clone();
    close(&mut co);
    if !irreflexive(&co) {
        return false;
    }
    for &(w, r) in wr {
        let (w, r) = (w.index(), r.index());
        if (0..n).any(|v| same(w, v) && v != r && co[w][v] && co[v][r]) {
            return false;
        }
    }
    match model {
        CausalModel::Cc => true,
        CausalModel::Ccv => {
            let mut all = base;
            for &(w, r) in wr {
                for v in 0..n {
                    if same(v, w.index()) && co[v][r.index()] {
                        all[v][w.index()] = true;
                    }
                }
            }
            close(&mut all);
            irreflexive(&all)
        }
        CausalModel::Cm => (0..recorded).all(|o| {
            let past = |a: usize| a == o || co[a][o];
            let mut hb = vec![vec![false; n]; n];
            for (a, row) in hb.iter_mut().enumerate() {
                for (b, slot) in row.iter_mut().enumerate() {
                    *slot = co[a][b] && past(a) && past(b);
                }
            }
            loop {
                let mut grew = false;
                for &(w, r) in wr {
                    let (w, r) = (w.index(), r.index());
                    if r != o && !po[r][o] {
                        continue;
                    }
                    for (v, row) in hb.iter_mut().enumerate() {
                        if same(v, w) && row[r] && !row[w] {
                            row[w] = true;
                            grew = true;
                        }
                    }
                }
                close(&mut hb);
                if !grew {
                    return irreflexive(&hb);
                }
            }
        }),
    }
}
