//! Transactions are unchanged after writing and reading in every format that has them.

use consistory_formats::{Format, Style, parse_str, write_history};
use consistory_history::{
    Action, Details, History, HistoryBuilder, Interval, OpId, Status, Value, calls_of_transactions,
    transactions_of_calls,
};

/// A portable random number generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

/// Builds a history of transactions on registers (`x`, `3`) and lists (`l`, `9`), in which the
/// operations of a transaction share its interval.
fn generate(seed: u64, has_times: bool) -> History {
    let random = &mut Random(seed);
    let mut b = HistoryBuilder::new();
    b.null_is_not_zero();
    let mut clock = 0;
    for session in 0..1 + random.below(3) {
        let session = b.session(&session.to_string());
        for _ in 0..1 + random.below(4) {
            let status = match random.below(5) {
                0 => Status::Fail,
                1 => Status::Unknown,
                _ => Status::Ok,
            };
            clock += 2;
            let end = (status != Status::Unknown).then_some(clock + 1);
            let time = has_times.then_some(Interval { start: clock, end });
            let count = 1 + random.below(3);
            let transaction = (count > 1).then(|| b.begin_transaction());
            let mut details = Details { status, time, transaction };
            if let Some(transaction) = transaction {
                b.set_transaction_status(transaction, status);
                details.status = Status::Ok;
            }
            for _ in 0..count {
                let value = Value::Int(random.below(4) as i64);
                let list =
                    Value::List((0..random.below(3)).map(|i| Value::Int(i as i64)).collect());
                let is_known = status == Status::Ok;
                let action = match random.below(4) {
                    0 => Action::Write {
                        key: b.key(["x", "3"][random.below(2)]),
                        value: b.value(value),
                    },
                    1 => Action::Read {
                        key: b.key(["x", "3"][random.below(2)]),
                        value: b.value(if is_known { value } else { Value::Null }),
                    },
                    2 => Action::Append {
                        key: b.key(["l", "9"][random.below(2)]),
                        value: b.value(value),
                    },
                    _ => Action::Read {
                        key: b.key(["l", "9"][random.below(2)]),
                        value: b.value(if is_known { list } else { Value::Null }),
                    },
                };
                b.push_with(session, action, details);
            }
        }
    }
    b.finish().unwrap()
}

/// Describes a history; the values of reads are included only if their transaction is committed.
fn describe(history: &History) -> Vec<String> {
    let mut lines = Vec::new();
    for transaction in history.all_transactions() {
        let session = history.session_name(history.session_of(OpId(transaction.ops.start)));
        let ops: Vec<String> = transaction
            .ops
            .clone()
            .map(|op| match history.action(OpId(op)) {
                Action::Read { key, .. } if transaction.status != Status::Ok => {
                    format!("r({})", history.key_name(key))
                }
                _ => history.show(OpId(op)).to_string(),
            })
            .collect();
        let time = history.transaction_time(&transaction);
        lines.push(format!("{session}: {} {:?} {time:?}", ops.join(" "), transaction.status));
    }
    // The order of the sessions is irrelevant; within a session the order stays.
    lines.sort_by_key(|line| line.split(':').next().map(ToOwned::to_owned));
    let holds = |key| history.value(history.initial_value(key));
    let mut initial: Vec<String> = history
        .keys()
        .filter(|&key| history.ops().any(|op| history.reads(op).is_some_and(|(k, _)| k == key)))
        .map(|key| format!("{}={}", history.key_name(key), holds(key)))
        .collect();
    initial.sort();
    lines.extend(initial);
    lines
}

#[test]
fn transactions_come_back() {
    for seed in 0..3000 {
        let history = generate(seed, seed % 2 == 0);
        for format in [Format::Hist, Format::Jsonl, Format::Edn, Format::JepsenJson] {
            let mut out = Vec::new();
            write_history(&history, format, &mut out)
                .unwrap_or_else(|error| panic!("{format}, seed {seed}: {error}"));
            let text = String::from_utf8(out).unwrap();
            let back = parse_str(&text, format, "back").unwrap_or_else(|e| {
                panic!("{format}, seed {seed}:\n{text}\n{}", e.render(Style::Plain))
            });
            assert_eq!(describe(&history), describe(&back[0]), "{format}, seed {seed}:\n{text}");
            assert_eq!(Format::sniff(&text), Some(format), "seed {seed}:\n{text}");
        }
        let calls = calls_of_transactions(&history).unwrap();
        let back = transactions_of_calls(&calls).unwrap();
        assert_eq!(describe(&history), describe(&back), "calls, seed {seed}");
    }
}

#[test]
fn jepsens_tools_read_what_is_written() {
    let text =
        "a: [ append(x,1)@3..9 r(7,[])@3..9 ] [ append(x,2)@10.. ]?\nb: [ append(y,1)@4..5 ]!\n";
    let history = &parse_str(text, Format::Hist, "").unwrap()[0];
    let mut out = Vec::new();
    write_history(history, Format::Edn, &mut out).unwrap();
    let expected = "\
{:process 0, :type :invoke, :f :txn, :value [[:append :x 1] [:r 7 nil]], :index 0, :time 3}
{:process 1, :type :invoke, :f :txn, :value [[:append :y 1]], :index 1, :time 4}
{:process 1, :type :fail, :f :txn, :value [[:append :y 1]], :index 2, :time 5}
{:process 0, :type :ok, :f :txn, :value [[:append :x 1] [:r 7 []]], :index 3, :time 9}
{:process 0, :type :invoke, :f :txn, :value [[:append :x 2]], :index 4, :time 10}
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    // The same transactions, as calls, are written in the same way.
    let calls = calls_of_transactions(history).unwrap();
    let mut out = Vec::new();
    write_history(&calls, Format::Edn, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
