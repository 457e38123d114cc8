//! Every decider agrees with both definitions, on all small and many random histories, and the
//! independent checker accepts every certificate.

mod support;

use consistory_certify::certify_transactions;
use consistory_formats::Format;
use consistory_history::History;
use consistory_transactions::judge;
use consistory_verdict::{Budget, ClientOrder, Judgement, Level, Verdict};
use support::{Random, Shape, Tiny, random_history};

fn parse(text: &str) -> History {
    let mut histories = consistory_formats::parse_str(text, Format::Hist, "random").unwrap();
    histories.remove(0)
}

/// Judges a history by all levels and orders; returns the number of levels that hold.
fn compare(text: &str, orders: &[ClientOrder], with_brute_force: bool) -> usize {
    let history = parse(text);
    let tiny = Tiny::new(&history);
    let mut holding = 0;
    for &order in orders {
        // Levels are judged one by one and together; together, one proof settles several levels.
        let together = judge(&history, order, &Level::ALL, &Budget::unlimited());
        let together = together.unwrap_or_else(|error| panic!("{error}\n{text}"));
        for (level, shared) in Level::ALL.into_iter().zip(&together) {
            let alone = judge(&history, order, &[level], &Budget::unlimited()).unwrap();
            for outcome in [&alone[0].judgement, &shared.judgement] {
                let (found, certificate) = match outcome {
                    Judgement::Consistent(certificate) => (Verdict::Consistent, certificate),
                    Judgement::Violation { certificate, .. } => (Verdict::Violation, certificate),
                    Judgement::Undecided(stopped) => panic!("{level} {order:?}: {stopped}\n{text}"),
                };
                let accepted = certify_transactions(&history, level, order, found, certificate);
                if let Err(rejection) = accepted {
                    panic!("{level} {order:?} {found:?}: {rejection}\n{certificate:#?}\n{text}");
                }
                holding += usize::from(found == Verdict::Consistent);
                if with_brute_force {
                    let expected = tiny.by_version_orders(level, order);
                    let commits = tiny.by_commit_orders(level, order);
                    assert_eq!(expected, commits, "the definitions: {level} {order:?}\n{text}");
                    let found = found == Verdict::Consistent;
                    assert_eq!(found, expected, "{level} {order:?}\n{text}\n{certificate:#?}");
                }
            }
        }
    }
    holding / 2
}

fn rounds(few: u64) -> u64 {
    if std::env::var_os("CONSISTORY_DEEP").is_some() { few * 25 } else { few }
}

fn random_rounds(seed: u64, count: u64, shape: Shape, orders: &[ClientOrder]) {
    let mut holding = 0;
    for round in 0..rounds(count) {
        let mut random = Random(seed + (round << 20) + 1);
        let text = random_history(&mut random, shape);
        holding += compare(&text, orders, true);
    }
    let all = rounds(count) as usize * Level::ALL.len() * orders.len();
    assert!(all / 20 < holding && holding < all, "{holding} of {all} hold: too uniform to tell");
}

const REGISTERS: Shape = Shape {
    transactions: 5,
    sessions: 3,
    keys: 2,
    ops: 4,
    lists: false,
    repeated: false,
    faults: false,
    times: false,
};

#[test]
fn registers() {
    random_rounds(1, 1500, REGISTERS, &[ClientOrder::Session, ClientOrder::None]);
}

#[test]
fn registers_of_one_key() {
    let shape = Shape { keys: 1, transactions: 6, ops: 2, ..REGISTERS };
    random_rounds(2, 400, shape, &[ClientOrder::Session, ClientOrder::None]);
}

#[test]
fn three_keys() {
    let shape = Shape { keys: 3, transactions: 6, ops: 3, ..REGISTERS };
    random_rounds(3, 200, shape, &[ClientOrder::Session, ClientOrder::None]);
}

#[test]
fn repeated_values() {
    let shape = Shape { repeated: true, transactions: 4, ops: 3, ..REGISTERS };
    random_rounds(4, 500, shape, &[ClientOrder::Session, ClientOrder::None]);
}

#[test]
fn aborted_and_indeterminate() {
    let shape = Shape { faults: true, ..REGISTERS };
    random_rounds(5, 500, shape, &[ClientOrder::Session, ClientOrder::None]);
    let shape = Shape { faults: true, repeated: true, transactions: 4, ops: 3, ..REGISTERS };
    random_rounds(6, 400, shape, &[ClientOrder::Session]);
}

#[test]
fn real_time() {
    let shape = Shape { times: true, ..REGISTERS };
    random_rounds(7, 700, shape, &[ClientOrder::Realtime]);
    let shape = Shape { times: true, faults: true, ..REGISTERS };
    random_rounds(8, 300, shape, &ClientOrder::ALL);
}

/// No path of a certificate leads through an indeterminate transaction whose writes are not read.
#[test]
fn unknown_transactions_order_nothing() {
    let registers = "\
t0: [ r(x,0) @3..4 w(x,1) @3..4 ]
t1: [ r(y,0) @1..6 ] [ r(x,4) @7..10 w(y,5) @7..10 ]
t2: [ w(y,2) @5..8 ]? [ r(x,0) @9..13 w(x,4) @9..13 r(y,0) @9..13 ]
";
    let lists = "\
t0: [ append(y,2) @1..2 ]
t1: [ r(y,[]) @1..4 append(x,1) @1..4 ]
t2: [ r(x,[1]) @3..7 ]? [ append(y,3) @8..10 r(y,[3]) @8..10 append(y,4) @8..10 ]
";
    compare(registers, &ClientOrder::ALL, true);
    compare(lists, &ClientOrder::ALL, true);
}

#[test]
fn lists() {
    let shape = Shape { lists: true, ..REGISTERS };
    random_rounds(9, 800, shape, &[ClientOrder::Session, ClientOrder::None]);
    let shape = Shape { lists: true, faults: true, times: true, ..REGISTERS };
    random_rounds(10, 400, shape, &ClientOrder::ALL);
}

/// Larger histories, for which the definitions are too slow: the checker must accept the
/// certificates.
#[test]
fn larger_histories_are_certified() {
    let shape = Shape { transactions: 40, sessions: 4, keys: 3, ops: 5, ..REGISTERS };
    for round in 0..rounds(60) {
        let mut random = Random(1000 + (round << 20));
        let lists = round % 2 == 1;
        let text = random_history(&mut random, Shape { lists, times: true, ..shape });
        compare(&text, &ClientOrder::ALL, false);
    }
}

/// Every history of up to three transactions with up to four operations in all on two keys.
#[test]
fn all_small_histories() {
    let bound = if std::env::var_os("CONSISTORY_DEEP").is_some() { 5 } else { 4 };
    let mut seen = 0;
    for lengths in [
        &[1, 1][..],
        &[2, 1],
        &[1, 2],
        &[2, 2],
        &[1, 1, 1],
        &[2, 1, 1],
        &[1, 2, 1],
        &[1, 1, 2],
        &[3, 1],
        &[1, 3],
        &[2, 2, 1],
    ] {
        let total: usize = lengths.iter().sum();
        if total > bound {
            continue;
        }
        // An operation writes x or y, or reads x or y from one of the writes or the initial one.
        let kinds = 2 + 2 * (total + 1);
        for code in 0..kinds.pow(total as u32) {
            let mut rest = code;
            let ops: Vec<usize> = (0..total)
                .map(|_| {
                    let op = rest % kinds;
                    rest /= kinds;
                    op
                })
                .collect();
            let key = |op: usize| op % 2;
            // A read names its source by index; the source must be a write of the same key.
            let is_sound = ops.iter().all(|&op| match op / 2 {
                0 | 1 => true,
                write => ops.get(write - 2).is_some_and(|&w| w / 2 == 0 && key(w) == key(op)),
            });
            if !is_sound || key(ops[0]) == 1 {
                continue;
            }
            for sessions in 0..1usize << (lengths.len() - 1) {
                let mut text = String::from("s0:");
                let mut at = 0;
                for (t, &length) in lengths.iter().enumerate() {
                    if t > 0 && sessions >> (t - 1) & 1 == 1 {
                        text += &format!("\ns{t}:");
                    }
                    text += " [";
                    for _ in 0..length {
                        let op = ops[at];
                        let name = ["x", "y"][key(op)];
                        text += &match op / 2 {
                            0 => format!(" w({name},{})", at + 1),
                            1 => format!(" r({name},0)"),
                            write => format!(" r({name},{})", write - 1),
                        };
                        at += 1;
                    }
                    text += " ]";
                }
                seen += 1;
                compare(&text, &[ClientOrder::Session], true);
            }
        }
    }
    assert!(seen > 1000, "{seen}");
}
