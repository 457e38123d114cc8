//! Counts the histories on which a level that needs a search ends undecided: `pc`, `psi`, `si` and `ser`.
//!
//! The histories are of many kinds: random clients on every simulated store, with few keys, blind
//! writes, skewed keys, repeated values, indeterminate transactions, appends that are never read and
//! planted anomalies; small dense histories whose reads are chosen at random; and tangled ones, which
//! encode a satisfiability problem and are the hardest known. Each level has the same budget of
//! processor time for each history. The program fails if the independent checker rejects a
//! certificate, or if two levels contradict each other.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use consistory_benches::measure::{once_on_processor, show_count, show_time};
use consistory_benches::publish::{Docs, Machine, markdown, provenance};
use consistory_certify::{LevelClaim, certify_levels};
use consistory_draw::table;
use consistory_generate::{
    Anomaly, DataKind, KeyChoice, Store, TransactionWorkload, generate_transactions,
};
use consistory_history::{Action, Details, History, HistoryBuilder};
use consistory_meter::ProcessMeter;
use consistory_transactions::judge;
use consistory_verdict::{Budget, ClientOrder, Gauge, Level, Verdict};

/// Levels that are decided by a search.
const LEVELS: [Level; 4] =
    [Level::Prefix, Level::ParallelSnapshot, Level::Snapshot, Level::Serializable];

/// Counts undecided histories.
#[derive(Debug, Parser)]
struct Args {
    /// Processor time for one level of one history, in seconds.
    #[arg(long, default_value_t = 2.0)]
    budget: f64,
    /// Number of seeds of each kind of history.
    #[arg(long, default_value_t = 10)]
    seeds: u64,
    /// Kinds of histories whose names contain this text.
    #[arg(long, default_value = "")]
    only: String,
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
}

/// A kind of history.
struct Kind {
    name: String,
    order: ClientOrder,
    histories: Box<dyn Fn(u64) -> Vec<History>>,
}

/// Outcomes of one level on the histories of a kind.
#[derive(Clone, Copy, Default)]
struct Tally {
    consistent: u64,
    violations: u64,
    undecided: u64,
    slowest: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let machine = Machine::here();
    let limit = Duration::from_secs_f64(args.budget);
    let gauge = Gauge::new(Arc::new(ProcessMeter::new()));
    let mut rows = Vec::new();
    let mut sum = [Tally::default(); LEVELS.len()];
    for kind in kinds() {
        if !kind.name.contains(&args.only) {
            continue;
        }
        let mut tallies = [Tally::default(); LEVELS.len()];
        for seed in 0..args.seeds {
            for history in (kind.histories)(seed) {
                let budget = Budget::unlimited().with_gauge(gauge.clone()).with_time(limit);
                count(&history, kind.order, &budget, &mut tallies)
                    .map_err(|error| format!("{}, seed {seed}: {error}", kind.name))?;
            }
        }
        let row = row(&kind.name, &tallies);
        eprintln!("{}", row.join("  "));
        rows.push(row);
        for (sum, tally) in sum.iter_mut().zip(tallies) {
            sum.consistent += tally.consistent;
            sum.violations += tally.violations;
            sum.undecided += tally.undecided;
            sum.slowest = sum.slowest.max(tally.slowest);
        }
    }
    rows.push(row("all", &sum));
    let names: Vec<String> = LEVELS.iter().map(|level| level.id().to_owned()).collect();
    let mut header: Vec<&str> = vec!["histories", "number"];
    header.extend(names.iter().map(String::as_str));
    let text = format!(
        "{}\nUndecided histories of each level, after {} of processor time for one level of one history, \
         and the time that the slowest decided one took.\n\n{}",
        provenance("undecided", &machine),
        show_time(limit),
        markdown(&header, &rows),
    );
    println!("{}", table(&header, &rows));
    Docs::new(args.docs).refresh("undecided", &text)?;
    Ok(())
}

fn row(name: &str, tallies: &[Tally]) -> Vec<String> {
    let number = |tally: &Tally| tally.consistent + tally.violations + tally.undecided;
    let mut row = vec![name.to_owned(), show_count(tallies.iter().map(number).max().unwrap_or(0))];
    row.extend(tallies.iter().map(|tally| {
        let Tally { undecided, slowest, .. } = tally;
        format!("{undecided} undecided, {}", show_time(*slowest))
    }));
    row
}

/// Judges a history by each level alone, checks the certificates, and counts the outcomes.
fn count(
    history: &History,
    order: ClientOrder,
    budget: &Budget,
    tallies: &mut [Tally],
) -> Result<(), Box<dyn Error>> {
    let mut found = Vec::new();
    for (level, tally) in LEVELS.into_iter().zip(tallies) {
        let (rulings, time) =
            once_on_processor(|| judge(history, order, &[level], &budget.renewed()));
        let judgement = rulings?.remove(0).judgement;
        let verdict = judgement.verdict();
        match verdict {
            Verdict::Consistent => tally.consistent += 1,
            Verdict::Violation => tally.violations += 1,
            Verdict::Undecided => tally.undecided += 1,
        }
        if let Some(certificate) = judgement.certificate() {
            tally.slowest = tally.slowest.max(time);
            let claim = LevelClaim { level, claim: verdict, certificate };
            certify_levels(history, order, &[claim]).remove(0)?;
        }
        found.push((level, verdict));
    }
    for &(stronger, verdict) in &found {
        let contradicts = |&&(weaker, other): &&(Level, Verdict)| {
            let both = (verdict, other) == (Verdict::Consistent, Verdict::Violation);
            stronger.implies(weaker) && both
        };
        if let Some((weaker, _)) = found.iter().find(contradicts) {
            return Err(format!("{stronger} holds and {weaker} is violated").into());
        }
    }
    Ok(())
}

fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    let base = TransactionWorkload::default;
    let mut on_stores = |name: &str, workload: TransactionWorkload| {
        let order = match workload.order {
            consistory_generate::ClientOrder::None => ClientOrder::None,
            consistory_generate::ClientOrder::Session => ClientOrder::Session,
            consistory_generate::ClientOrder::Realtime => ClientOrder::Realtime,
        };
        let histories = move |seed| {
            let on = |store| {
                generate_transactions(&TransactionWorkload { store, seed, ..workload.clone() })
            };
            Store::ALL.into_iter().map(on).collect()
        };
        kinds.push(Kind { name: name.to_owned(), order, histories: Box::new(histories) });
    };
    let small = || TransactionWorkload { sessions: 6, operations: 300, keys: 4, ..base() };
    let large = || TransactionWorkload { sessions: 20, operations: 20_000, keys: 200, ..base() };
    on_stores("registers, 300 operations, 4 keys", small());
    on_stores("registers, 20,000 operations", large());
    for (size, workload) in [("300", small()), ("20,000", large())] {
        let with = |change: fn(&mut TransactionWorkload)| {
            let mut workload = workload.clone();
            change(&mut workload);
            workload
        };
        on_stores(&format!("blind writes (15 % reads), {size}"), with(|w| w.read_share = 0.15));
        on_stores(&format!("few writes (85 % reads), {size}"), with(|w| w.read_share = 0.85));
        on_stores(
            &format!("Zipf keys, {size}"),
            with(|w| w.key_choice = KeyChoice::Zipf { skew: 1.0 }),
        );
        on_stores(
            &format!("hot spot (1 key, half of the operations), {size}"),
            with(|w| w.key_choice = KeyChoice::HotSpot { keys: 1, share: 0.5 }),
        );
        on_stores(
            &format!("blind writes, Zipf keys, {size}"),
            with(|w| {
                w.read_share = 0.2;
                w.key_choice = KeyChoice::Zipf { skew: 1.0 };
            }),
        );
        on_stores(
            &format!("aborted and indeterminate, {size}"),
            with(|w| {
                w.aborted_share = 0.1;
                w.indeterminate_share = 0.2;
            }),
        );
        on_stores(&format!("lists, {size}"), with(|w| w.data = DataKind::Lists));
        on_stores(
            &format!("lists, mostly unread appends, {size}"),
            with(|w| {
                w.data = DataKind::Lists;
                w.read_share = 0.1;
            }),
        );
        on_stores(
            &format!("no session order, {size}"),
            with(|w| w.order = consistory_generate::ClientOrder::None),
        );
        on_stores(
            &format!("real time, {size}"),
            with(|w| {
                w.order = consistory_generate::ClientOrder::Realtime;
                w.is_timed = true;
            }),
        );
    }
    for (values, operations) in [(2, 60), (3, 120), (10, 300), (100, 2_000)] {
        on_stores(
            &format!("{values} values per register, {operations}"),
            TransactionWorkload { values, operations, ..small() },
        );
    }
    on_stores(
        "10 values per register, indeterminate, 300",
        TransactionWorkload { values: 10, indeterminate_share: 0.2, ..small() },
    );
    kinds.push(Kind {
        name: "planted anomalies of each class, 2,000".to_owned(),
        order: ClientOrder::Session,
        histories: Box::new(planted),
    });
    for (transactions, keys) in [(8, 2), (16, 2), (16, 4), (32, 3), (32, 8), (64, 8), (64, 24)] {
        for candidates in [2, 4] {
            kinds.push(Kind {
                name: format!(
                    "random reads among the last {candidates} versions: {transactions} transactions, \
                     {keys} keys"
                ),
                order: ClientOrder::Session,
                histories: Box::new(move |seed| {
                    (0..20).map(|i| dense(seed * 20 + i, transactions, keys, candidates)).collect()
                }),
            });
        }
    }
    for (cells, cycles) in [(10, 40), (20, 80), (20, 110), (40, 160), (40, 220), (80, 320)] {
        kinds.push(Kind {
            name: format!("tangled: {cells} pairs of writers, {cycles} cycles of reads"),
            order: ClientOrder::Session,
            histories: Box::new(move |seed| vec![tangled(seed, cells, cycles, Cycle::Reads)]),
        });
        kinds.push(Kind {
            name: format!("tangled: {cells} pairs of writers, {cycles} cycles of versions"),
            order: ClientOrder::Session,
            histories: Box::new(move |seed| {
                vec![tangled(seed, cells, cycles / 4, Cycle::Versions)]
            }),
        });
    }
    kinds
}

/// Builds one history for each class of anomaly, planted into a history of a store that allows
/// nothing of the kind, and one of lists.
fn planted(seed: u64) -> Vec<History> {
    let with = |anomaly: Anomaly| {
        let data = if anomaly.needs_lists() { DataKind::Lists } else { DataKind::Registers };
        generate_transactions(&TransactionWorkload {
            sessions: 8,
            operations: 2_000,
            keys: 20,
            data,
            anomalies: vec![anomaly],
            seed,
            ..TransactionWorkload::default()
        })
    };
    Anomaly::ALL.into_iter().map(with).collect()
}

/// A small random number generator.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

/// Builds a history of transactions of up to four operations in four sessions; each read returns one
/// of the last versions of its key that were written, chosen at random.
fn dense(seed: u64, transactions: usize, keys: usize, candidates: usize) -> History {
    let mut random = Random::new(seed);
    let mut b = HistoryBuilder::new();
    let sessions: Vec<_> = (0..4).map(|s| b.session(&format!("t{s}"))).collect();
    let names: Vec<_> = (0..keys).map(|k| b.key(&format!("x{k}"))).collect();
    let mut versions = vec![vec![0]; keys];
    let mut value = 0;
    for _ in 0..transactions {
        let session = sessions[random.below(sessions.len())];
        let transaction = Some(b.begin_transaction());
        let details = Details { transaction, ..Details::default() };
        let mut own: Vec<Option<i64>> = vec![None; keys];
        for _ in 0..1 + random.below(4) {
            let key = random.below(keys);
            let action = if random.below(2) == 0 {
                value += 1;
                own[key] = Some(value);
                Action::Write { key: names[key], value: b.int(value) }
            } else {
                let known = &versions[key];
                let shown = known[known.len() - 1 - random.below(candidates.min(known.len()))];
                Action::Read { key: names[key], value: b.int(own[key].unwrap_or(shown)) }
            };
            b.push_with(session, action, details);
        }
        for (versions, own) in versions.iter_mut().zip(own) {
            versions.extend(own);
        }
    }
    b.finish().expect("transactions end where the next one begins")
}

/// The edges on the cycles of a tangled history.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cycle {
    /// A read of the earlier version precedes the later one; forbidden by `ser` and `si`.
    Reads,
    /// The earlier version precedes the later one; forbidden by every level.
    Versions,
}

/// Builds a history of transactions of single operations: pairs of blind writes, and cycles that close
/// if and only if three pairs are written in certain orders.
fn tangled(seed: u64, cells: usize, cycles: usize, kind: Cycle) -> History {
    let mut random = Random::new(seed);
    let mut b = HistoryBuilder::new();
    let one = b.int(1);
    let mut before: Vec<[Vec<Action>; 2]> = vec![Default::default(); cells];
    let mut after = before.clone();
    let mut readers: Vec<[Action; 2]> = Vec::new();
    let keys: Vec<_> = (0..cells).map(|cell| b.key(&format!("x{cell}"))).collect();
    for cycle in 0..cycles {
        let mut chosen: Vec<usize> = Vec::new();
        while chosen.len() < 3 {
            let cell = random.below(cells);
            if !chosen.contains(&cell) {
                chosen.push(cell);
            }
        }
        for (at, &cell) in chosen.iter().enumerate() {
            let earlier = random.below(2);
            let link = b.key(&format!("l{cycle}.{at}"));
            let next = b.key(&format!("l{cycle}.{}", (at + 1) % chosen.len()));
            let linked = Action::Read { key: link, value: one };
            after[cell][1 - earlier].push(Action::Write { key: next, value: one });
            match kind {
                Cycle::Reads => {
                    let value = b.int(1 + earlier as i64);
                    readers.push([linked, Action::Read { key: keys[cell], value }]);
                }
                Cycle::Versions => before[cell][earlier].push(linked),
            }
        }
    }
    for (cell, &key) in keys.iter().enumerate() {
        for writer in 0..2 {
            let session = b.session(&format!("x{cell}.{writer}"));
            let value = b.int(1 + writer as i64);
            for action in std::mem::take(&mut before[cell][writer])
                .into_iter()
                .chain([Action::Write { key, value }])
                .chain(std::mem::take(&mut after[cell][writer]))
            {
                b.push(session, action);
            }
        }
    }
    for (at, reader) in readers.into_iter().enumerate() {
        let session = b.session(&format!("c{at}"));
        reader.into_iter().for_each(|action| {
            b.push(session, action);
        });
    }
    b.finish().expect("it has no transactions of several operations, and all names are its own")
}
