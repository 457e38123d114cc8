//! Times the deciders and the checker on generated histories (operations, sessions, keys, skew, stale)
//! or on the history in a file.

use std::time::Instant;

use consistory_certify::certify_transactions;
use consistory_history::{Action, Details, History, HistoryBuilder};
use consistory_transactions::judge;
use consistory_verdict::{Budget, ClientOrder, Judgement, Level, Verdict};

fn random(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
}

fn generate(
    ops: usize,
    sessions: usize,
    keys: usize,
    zipf: bool,
    snapshots: bool,
    plant: bool,
) -> History {
    let mut b = HistoryBuilder::new();
    let mut state = 88172645463325252u64;
    let ids: Vec<_> = (0..sessions).map(|s| b.session(&format!("s{s}"))).collect();
    let names: Vec<_> = (0..keys).map(|k| b.key(&format!("k{k}"))).collect();
    let mut versions: Vec<Vec<(usize, i64)>> = vec![vec![(0, 0)]; keys];
    let weights: Vec<f64> = (0..keys)
        .scan(0.0, |sum, k| {
            *sum += 1.0 / (k + 1) as f64;
            Some(*sum)
        })
        .collect();
    let total = weights[keys - 1];
    let mut seen = vec![0usize; sessions];
    let transactions = ops / 5;
    for t in 1..=transactions {
        let s = random(&mut state) as usize % sessions;
        // The snapshot contains all commits, or all but the last few.
        let mut snapshot = t;
        if snapshots {
            snapshot = (t - (random(&mut state) as usize % sessions).min(t - 1)).max(seen[s] + 1);
        }
        let txn = b.begin_transaction();
        let details = Details { transaction: Some(txn), ..Details::default() };
        let mut plan = Vec::new();
        for _ in 0..5 {
            let k = if zipf {
                let at = (random(&mut state) % (1 << 40)) as f64 / (1u64 << 40) as f64 * total;
                weights.partition_point(|&w| w < at).min(keys - 1)
            } else {
                random(&mut state) as usize % keys
            };
            plan.push((k, random(&mut state).is_multiple_of(2)));
        }
        if snapshots {
            // First committer wins: in case of a conflict, take the newest state.
            let conflict = plan
                .iter()
                .any(|&(k, w)| w && versions[k].last().is_some_and(|&(at, _)| at >= snapshot));
            if conflict {
                snapshot = t;
            }
        }
        let mut own: Vec<(usize, i64)> = Vec::new();
        for (k, is_write) in plan {
            if is_write {
                let value = (t * 8 + own.len()) as i64;
                own.push((k, value));
                let value = b.int(value);
                b.push_with(ids[s], Action::Write { key: names[k], value }, details);
            } else {
                let mine = own.iter().rev().find(|&&(key, _)| key == k).map(|&(_, v)| v);
                let at = versions[k].partition_point(|&(at, _)| at < snapshot);
                let mut found = versions[k][at - 1].1;
                if plant && t == transactions / 2 && at > 3 {
                    found = versions[k][at - 3].1;
                }
                let value = b.int(mine.unwrap_or(found));
                b.push_with(ids[s], Action::Read { key: names[k], value }, details);
            }
        }
        for (k, value) in own {
            if versions[k].last().is_some_and(|&(at, _)| at == t) {
                versions[k].pop();
            }
            versions[k].push((t, value));
        }
        seen[s] = t;
    }
    b.finish().unwrap()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, or: usize| args.get(i).map_or(or, |a| a.parse().unwrap());
    let has = |word: &str| args.iter().skip(1).any(|a| a == word);
    let is_file = args.first().is_some_and(|first| first.parse::<usize>().is_err());
    let history = if is_file {
        let path = std::path::PathBuf::from(&args[0]);
        let mut histories = consistory_formats::read(&consistory_formats::Input::File(path), None);
        histories.next().expect("a history").expect("a readable file")
    } else {
        let (ops, sessions, keys) = (number(0, 100_000), number(1, 20), number(2, 1_000));
        generate(ops, sessions, keys, has("zipf"), has("snapshots"), has("plant"))
    };
    let order = if has("none") { ClientOrder::None } else { ClientOrder::Session };
    let levels: Vec<Level> = args.iter().skip(1).filter_map(|a| Level::find(a)).collect();
    let levels = if levels.is_empty() {
        vec![Level::Causal, Level::Serializable, Level::Snapshot]
    } else {
        levels
    };
    for level in levels {
        let started = Instant::now();
        let ruling = judge(&history, order, &[level], &Budget::unlimited()).unwrap().remove(0);
        let decided = started.elapsed();
        let started = Instant::now();
        let (verdict, certificate) = match &ruling.judgement {
            Judgement::Consistent(c) => (Verdict::Consistent, c),
            Judgement::Violation { pattern, certificate } => {
                println!("  {}", pattern);
                (Verdict::Violation, certificate)
            }
            Judgement::Undecided(stopped) => {
                println!("{level} undecided {stopped} {decided:?}");
                continue;
            }
        };
        let accepted = certify_transactions(&history, level, order, verdict, certificate);
        println!(
            "{level} {verdict:?} decided {decided:.3?} certified {:.3?} size {} {accepted:?}",
            started.elapsed(),
            certificate.size()
        );
    }
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        println!("{}", status.lines().find(|l| l.starts_with("VmHWM")).unwrap());
    }
}
