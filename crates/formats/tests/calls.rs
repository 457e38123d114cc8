//! Calls that a format can express are unchanged after writing and reading, and large files are
//! read in one pass.

use consistory_formats::{Format, Style, parse_str, write_history};
use consistory_history::{Action, Call, Details, History, HistoryBuilder, Interval, Status, Value};

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

/// Possible calls of a history: method, number of arguments, and kind of return.
type Methods = &'static [(&'static str, usize, Returns)];

#[derive(Clone, Copy)]
enum Returns {
    Nothing,
    Found,
    Truth,
    True,
    /// A list, or a value that contains words.
    Any,
}

const EDN: Methods = &[
    ("read", 0, Returns::Any),
    ("get", 1, Returns::Any),
    ("cas", 2, Returns::True),
    ("write", 1, Returns::Nothing),
    ("put", 2, Returns::Nothing),
    ("dequeue", 0, Returns::Found),
    ("txn", 1, Returns::Any),
    ("acquire", 0, Returns::Nothing),
];
const LIMO: Methods =
    &[("push", 1, Returns::Nothing), ("pop", 0, Returns::Found), ("swap", 3, Returns::Truth)];
const INTERVALS: Methods = &[
    ("push", 1, Returns::Nothing),
    ("pop", 0, Returns::Found),
    ("peek", 0, Returns::Found),
    ("cas", 2, Returns::True),
];
const SET: Methods =
    &[("add", 1, Returns::True), ("remove", 1, Returns::True), ("contains", 1, Returns::Truth)];

/// Builds a history in which the time of an event is its index.
fn generate(seed: u64, methods: Methods, has_pending: bool, has_failed: bool) -> History {
    let mut random = Random(seed);
    let mut b = HistoryBuilder::new();
    let sessions = 1 + random.below(4);
    let ids: Vec<_> = (0..sessions).map(|s| b.session(&s.to_string())).collect();
    let mut open: Vec<Option<(i64, usize)>> = vec![None; sessions];
    let mut clock = 0;
    let value = |random: &mut Random, words: bool| match random.below(6) {
        0 if words => Value::Str("a \"b\"\n\\é".into()),
        1 if words => Value::List(vec![Value::Null, Value::Bool(true), Value::List(vec![])]),
        2 if words => Value::Str("x".into()),
        _ => Value::Int(random.below(9) as i64 + 1),
    };
    for _ in 0..2 + random.below(14) {
        let s = random.below(sessions);
        let Some((start, method)) = open[s].take() else {
            open[s] = Some((clock, random.below(methods.len())));
            clock += 1;
            continue;
        };
        let (method, count, returns) = methods[method];
        let words = methods.len() == EDN.len();
        let args: Vec<_> = (0..count).map(|_| value(&mut random, words)).collect();
        let is_pending = has_pending && random.below(4) == 0;
        let is_failed = has_failed && !is_pending && random.below(5) == 0;
        let returned = match returns {
            _ if is_pending || is_failed => None,
            Returns::Nothing => None,
            Returns::Found if random.below(3) == 0 => Some(Value::Null),
            Returns::Found => Some(Value::Int(random.below(9) as i64)),
            Returns::Truth => Some(Value::Bool(random.below(2) == 0)),
            Returns::True => Some(Value::Bool(true)),
            Returns::Any => Some(value(&mut random, words)),
        };
        let end = (!is_pending).then_some(clock);
        clock += 1;
        let args = args.into_iter().map(|arg| b.value(arg)).collect();
        let returns = returned.map(|value| b.value(value));
        let call = b.call(Call { method: method.into(), args, returns });
        let status = if is_failed { Status::Fail } else { Status::Ok };
        let details = Details { status, time: Some(Interval { start, end }), transaction: None };
        b.push_with(ids[s], Action::Call(call), details);
    }
    b.finish().unwrap()
}

/// Describes a history completely except for its clock: times are replaced by ranks.
fn describe(history: &History, has_sessions: bool) -> Vec<String> {
    let mut times: Vec<(i64, bool)> = history
        .ops()
        .filter_map(|op| history.time(op))
        .flat_map(|t| [Some((t.start, false)), t.end.map(|end| (end, true))])
        .flatten()
        .collect();
    times.sort_unstable();
    let rank = |time: i64, is_end: bool| times.partition_point(|&t| t < (time, is_end));
    let mut lines: Vec<String> = history
        .ops()
        .map(|op| {
            let time = history.time(op).unwrap();
            let session = history.session_name(history.session_of(op));
            format!(
                "{:>3}..{:?} {} {} {:?}",
                rank(time.start, false),
                time.end.map(|end| rank(end, true)),
                if has_sessions { session } else { "" },
                history.show(op),
                history.status(op),
            )
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn formats_of_calls_give_back_what_they_can_express() {
    for (format, methods, has_pending, has_failed) in [
        (Format::Edn, EDN, true, true),
        (Format::Limo, LIMO, false, false),
        (Format::Fastlin, INTERVALS, false, false),
        (Format::Fastlin, SET, false, false),
        (Format::Fptlin, INTERVALS, false, false),
        (Format::Fptlin, SET, false, false),
    ] {
        let mut written = 0;
        for seed in 0..1000 {
            let history = generate(seed, methods, has_pending, has_failed);
            let mut text = Vec::new();
            if history.is_empty() || write_history(&history, format, &mut text).is_err() {
                continue;
            }
            written += 1;
            let text = String::from_utf8(text).unwrap();
            let back = parse_str(&text, format, "back").unwrap_or_else(|e| {
                panic!("{format}, seed {seed}:\n{text}\n{}", e.render(Style::Plain))
            });
            let has_sessions = format != Format::Fastlin;
            let (expected, found) =
                (describe(&history, has_sessions), describe(&back[0], has_sessions));
            assert_eq!(expected, found, "{format}, seed {seed}:\n{text}");
            assert_eq!(Format::sniff(&text), Some(format), "seed {seed}:\n{text}");
        }
        assert!(written > 700, "{format}: {written}");
    }
}

#[test]
fn the_maps_of_a_bank_are_written_as_maps() {
    let text = "\
        {:process 0, :type :invoke, :f :read, :value nil, :index 0, :time 1}\n\
        {:process 0, :type :ok, :f :read, :value {0 10, 1 10}, :index 1, :time 2}\n\
        {:process 0, :type :invoke, :f :transfer, :value {:from 0, :to 1, :amount 3}, :index 2, :time 3}\n\
        {:process 0, :type :ok, :f :transfer, :value {:from 0, :to 1, :amount 3}, :index 3, :time 4}\n";
    let histories = parse_str(text, Format::Edn, "bank.edn").unwrap();
    let mut out = Vec::new();
    write_history(&histories[0], Format::Edn, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), text);
}

#[test]
fn what_formats_of_calls_cannot_express_is_named() {
    for (text, format, expected) in [
        (
            "t: rmw(x,0,1)@1..2",
            Format::Edn,
            "edn can't express `rmw(x,0,1)` (t:0): write it as hist or jsonl",
        ),
        (
            "t: [ w(x,0)@1..2 r(x,0)@1..2 ]",
            Format::JepsenJson,
            "jepsen-json can't express a write of the initial value 0 (init:x): \
             write it as hist or jsonl",
        ),
        (
            "init: x=7\nt: w(x,1)@1..2",
            Format::Edn,
            "edn can't express the initial value 7 (init:x): write it as hist or jsonl",
        ),
        (
            "t: [ w(x,1)@1..2 r(y,0)@1..2 ] r(x,1)@2..3",
            Format::Edn,
            "edn can't express a call that overlaps one of its session (t:2): \
             write it as hist or jsonl",
        ),
        (
            "t: push(1) => ?",
            Format::Limo,
            "limo can't express a call without times (t:0): \
             it has calls with times only, one after the other",
        ),
        (
            "t: push(1)@1..5 pop() => 1 @2..6",
            Format::Edn,
            "edn can't express a call that overlaps one of its session (t:1): \
             write it as hist or jsonl",
        ),
        (
            "t: push(1)@3.. pop() => 1 @3..6",
            Format::Edn,
            "edn can't express a call that overlaps one of its session (t:1): \
             write it as hist or jsonl",
        ),
        (
            "t: push(1)!@3..",
            Format::Edn,
            "edn can't express a call that failed at no time (t:0): write it as hist or jsonl",
        ),
        (
            "t: push(1)@3.. pop() => 1 @4..6",
            Format::Limo,
            "limo can't express a call that never returned before another (t:0): \
             write it as hist or jsonl",
        ),
        (
            "t: cas(1,2) => false @1..5",
            Format::Edn,
            "edn can't express `cas(1,2) => false` (t:0): write it as hist or jsonl",
        ),
        (
            "t: pop()@1..",
            Format::Fastlin,
            "fastlin can't express `pop()` (t:0): write it as hist or jsonl",
        ),
        (
            "t: pop() => 1 @1..2",
            Format::Jepsen,
            "jepsen can't express histories, since it is only read: write it as edn",
        ),
    ] {
        let history = &parse_str(text, Format::Hist, "").unwrap()[0];
        let mut out = Vec::new();
        let error = write_history(history, format, &mut out).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
        assert!(out.is_empty(), "{text}");
    }
}

#[test]
fn a_vector_of_many_events_in_one_line_is_one_history() {
    let mut text = String::from("[");
    for i in 0..50_000 {
        text.push_str(&format!("{{:type :invoke, :f :write, :value {i}, :process {}}} ", i % 5));
        text.push_str(&format!("{{:type :ok, :f :write, :value {i}, :process {}}} ", i % 5));
    }
    text.push(']');
    let histories = parse_str(&text, Format::Edn, "big.edn").unwrap();
    assert_eq!((histories.len(), histories[0].len()), (1, 50_000));
}
