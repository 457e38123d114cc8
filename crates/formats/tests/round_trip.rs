//! A history that a format can express is unchanged after writing and reading.

use consistory_formats::{Format, Style, WriteError, Writer, parse_str, write_history};
use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, Interval, KeyId, Status, Value, ValueId,
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

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const WORDS: [&str; 18] = [
    "x",
    "y",
    "t0",
    "1",
    "007",
    "-3",
    "99999999999999999999",
    "null",
    "true",
    "init",
    "final",
    "my key",
    "a:b",
    "#",
    "\"q\"\\",
    "größe",
    "line\nbreak\u{1}",
    "",
];
const NUMBERS: [&str; 4] = ["0", "1", "2", "17"];
const METHODS: [&str; 10] =
    ["put", "get", "read", "write", "r", "rmw", "fence", "append", "wriet", "odd method"];

/// Features that a generated history may have.
#[derive(Clone, Copy)]
struct Profile {
    words: bool,
    synchronisation: bool,
    objects: bool,
    times: bool,
    failed: bool,
    unknown: bool,
    bindings: bool,
    transactions: bool,
    short_transactions: bool,
    failed_transactions: bool,
    status_inside: bool,
    empty_sessions: bool,
    negative: bool,
    name: bool,
}

const NOTHING: Profile = Profile {
    words: false,
    synchronisation: false,
    objects: false,
    times: false,
    failed: false,
    unknown: false,
    bindings: false,
    transactions: false,
    short_transactions: false,
    failed_transactions: false,
    status_inside: false,
    empty_sessions: false,
    negative: true,
    name: false,
};

const ALL: Profile = Profile {
    words: true,
    synchronisation: true,
    objects: true,
    times: true,
    failed: true,
    unknown: true,
    bindings: true,
    transactions: true,
    short_transactions: true,
    failed_transactions: true,
    status_inside: true,
    empty_sessions: true,
    negative: true,
    name: true,
};

fn profile(format: Format) -> Profile {
    match format {
        Format::Hist => ALL,
        Format::Jsonl => Profile { status_inside: false, empty_sessions: false, ..ALL },
        Format::Axe => Profile { synchronisation: true, times: true, ..NOTHING },
        Format::DbcopText | Format::DbcopJson | Format::DbcopBinary => Profile {
            failed: true,
            transactions: true,
            failed_transactions: true,
            negative: false,
            ..NOTHING
        },
        Format::Plume => Profile { failed: true, transactions: true, ..NOTHING },
        Format::Awdit => Profile { transactions: true, ..NOTHING },
        other => unreachable!("{other} has a test of its own"),
    }
}

struct Generator<'a> {
    random: &'a mut Random,
    profile: Profile,
    builder: HistoryBuilder,
}

impl Generator<'_> {
    fn value(&mut self) -> ValueId {
        let value = self.plain_value(3);
        self.builder.value(value)
    }

    fn plain_value(&mut self, depth: usize) -> Value {
        let kind = if self.profile.words { self.random.below(8) } else { 0 };
        match kind {
            0..4 => {
                let value = [0, 1, 2, 3, i64::MAX, -1, i64::MIN];
                let bound = if self.profile.negative { value.len() } else { 5 };
                Value::Int(value[self.random.below(bound)])
            }
            4 => Value::Bool(self.random.one_in(2)),
            5 => Value::Str(self.random.pick(&WORDS).into()),
            6 if depth > 0 => {
                let length = self.random.below(3);
                Value::List((0..length).map(|_| self.plain_value(depth - 1)).collect())
            }
            _ => Value::Null,
        }
    }

    fn key(&mut self) -> KeyId {
        let names = if self.profile.words { &WORDS[..] } else { &NUMBERS };
        let name = self.random.pick(names);
        self.builder.key(name)
    }

    fn action(&mut self) -> Action {
        match self.random.below(10) {
            0 if self.profile.synchronisation => Action::Fence,
            1 if self.profile.synchronisation => {
                Action::Rmw { key: self.key(), read: self.value(), write: self.value() }
            }
            2 if self.profile.objects => {
                let method = self.random.pick(&METHODS).into();
                let args = (0..self.random.below(4)).map(|_| self.value()).collect();
                let returns = (!self.random.one_in(3)).then(|| self.value());
                Action::Call(self.builder.call(Call { method, args, returns }))
            }
            3 if self.profile.objects => {
                let key = self.builder.key(["list", "my list"][self.random.below(2)]);
                match self.random.below(4) {
                    0 => Action::Read { key, value: self.value() },
                    1 if self.random.one_in(3) => Action::Write { key, value: self.value() },
                    _ => Action::Append { key, value: self.value() },
                }
            }
            3..6 => Action::Read { key: self.key(), value: self.value() },
            _ => Action::Write { key: self.key(), value: self.value() },
        }
    }

    fn status(&mut self) -> Status {
        match self.random.below(10) {
            0 if self.profile.failed => Status::Fail,
            1 if self.profile.unknown => Status::Unknown,
            _ => Status::Ok,
        }
    }

    fn details(&mut self) -> Details {
        let time = (self.profile.times && self.random.one_in(3)).then(|| {
            let start = self.random.below(100) as i64 - 50;
            let end = (!self.random.one_in(3)).then(|| start + self.random.below(20) as i64);
            Interval { start, end }
        });
        Details { status: Status::Ok, time, transaction: None }
    }

    fn history(mut self) -> History {
        if self.profile.name && self.random.one_in(2) {
            let name = self.random.pick(&WORDS);
            self.builder.set_name(name);
        }
        if self.profile.bindings && self.random.one_in(2) {
            let key = self.key();
            let value = self.builder.int(5);
            self.builder.set_initial(key, value);
            let (key, value) = (self.key(), self.value());
            self.builder.set_final(key, value);
        }
        for index in 0..1 + self.random.below(3) {
            let name = if self.profile.words {
                // `init` would make references to its operations ambiguous.
                match self.random.pick(&WORDS) {
                    "init" => "t1".to_owned(),
                    word => word.to_string(),
                }
            } else {
                index.to_string()
            };
            let session = self.builder.session(&name);
            let least = usize::from(!self.profile.empty_sessions);
            for _ in 0..least + self.random.below(5) {
                if self.profile.transactions && self.random.one_in(3) {
                    let transaction = self.builder.begin_transaction();
                    if self.profile.failed_transactions {
                        let status = self.status();
                        self.builder.set_transaction_status(transaction, status);
                    }
                    let least = if self.profile.short_transactions { 1 } else { 2 };
                    for _ in 0..least + self.random.below(2) {
                        let mut details = self.details();
                        details.transaction = Some(transaction);
                        if self.profile.status_inside {
                            details.status = self.status();
                        }
                        let action = self.action();
                        self.builder.push_with(session, action, details);
                    }
                } else {
                    let details = Details { status: self.status(), ..self.details() };
                    let action = self.action();
                    self.builder.push_with(session, action, details);
                }
            }
        }
        self.builder.finish().unwrap()
    }
}

fn generate(seed: u64, profile: Profile) -> History {
    let random = &mut Random(seed);
    Generator { random, profile, builder: HistoryBuilder::new() }.history()
}

/// Describes a history completely, independently of how the formats write it.
fn describe(history: &History) -> Vec<String> {
    let mut lines = vec![format!("name {:?}", history.name())];
    for op in history.ops() {
        let action = match history.action(op) {
            // `show` may give the same text for different names.
            Action::Call(id) => {
                let call = history.call(id);
                let args: Vec<_> = call.args.iter().map(|&arg| history.value(arg)).collect();
                format!("{:?} {args:?} {:?}", call.method, call.returns.map(|v| history.value(v)))
            }
            _ => history.show(op).to_string(),
        };
        let bracket = history.transaction_of(op).map(|id| history.transaction(id).clone());
        let (session, status) = (history.session_name(history.session_of(op)), history.status(op));
        let time = history.time(op);
        lines.push(format!("{session:?} {action} {status:?} {time:?} {bracket:?}"));
    }
    let mut bindings: Vec<_> = history
        .keys()
        .map(|key| (history.key_name(key), history.value(history.initial_value(key))))
        .filter(|&(_, value)| *value != Value::Int(0))
        .map(|(key, value)| format!("init {key:?} {value}"))
        .collect();
    bindings.sort();
    lines.extend(bindings);
    lines.extend(
        history
            .finals()
            .iter()
            .map(|&(k, v)| format!("final {:?} {}", history.key_name(k), history.value(v))),
    );
    lines
}

fn text_of(history: &History, format: Format) -> String {
    let mut out = Vec::new();
    write_history(history, format, &mut out).unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(out).unwrap()
}

#[test]
fn every_format_gives_back_what_it_can_express() {
    for format in &Format::ALL[..7] {
        let format = *format;
        for seed in 0..2000 {
            let history = generate(seed, profile(format));
            if history.is_empty() {
                continue;
            }
            let text = text_of(&history, format);
            let back = parse_str(&text, format, "back").unwrap_or_else(|e| {
                panic!("{format}, seed {seed}:\n{text}\n{}", e.render(Style::Plain))
            });
            assert_eq!(back.len(), 1, "{format}, seed {seed}:\n{text}");
            assert_eq!(describe(&history), describe(&back[0]), "{format}, seed {seed}:\n{text}");
            if profile(format).status_inside {
                let own = |h: &History| h.ops().map(|op| h.own_status(op)).collect::<Vec<_>>();
                assert_eq!(own(&history), own(&back[0]), "{format}, seed {seed}:\n{text}");
            }
            assert_eq!(Format::sniff(&text), Some(format), "seed {seed}:\n{text}");
        }
    }
}

#[test]
fn our_formats_give_back_what_others_hold() {
    for format in [Format::Axe, Format::DbcopText, Format::Plume, Format::Awdit] {
        for seed in 0..200 {
            let history = generate(seed, profile(format));
            for ours in [Format::Hist, Format::Jsonl] {
                let back = parse_str(&text_of(&history, ours), ours, "back").unwrap();
                assert_eq!(describe(&history), describe(&back[0]), "{format}, {ours}, seed {seed}");
            }
        }
    }
}

#[test]
fn streams_of_histories_come_back() {
    for (format, profile) in [
        (Format::Hist, ALL),
        (Format::Jsonl, profile(Format::Jsonl)),
        (Format::Axe, profile(Format::Axe)),
    ] {
        let histories: Vec<History> =
            (0..300).map(|seed| generate(seed, profile)).filter(|h| !h.is_empty()).collect();
        let mut writer = Writer::new(format, Vec::new());
        for history in &histories {
            writer.write(history).unwrap();
        }
        let text = String::from_utf8(writer.into_inner()).unwrap();
        let back = parse_str(&text, format, "back").unwrap();
        assert_eq!(back.len(), histories.len(), "{format}");
        for (i, (history, back)) in histories.iter().zip(&back).enumerate() {
            // In JSON lines histories need names, because there are no separators.
            let unnamed = usize::from(format == Format::Jsonl);
            assert_eq!(describe(history)[unnamed..], describe(back)[unnamed..], "{format}, {i}");
        }
    }
}

#[test]
fn json_lines_keep_histories_of_one_name_apart() {
    let history = &parse_str("--- a\nt: f", Format::Hist, "").unwrap()[0];
    let unnamed = &parse_str("t: f", Format::Hist, "").unwrap()[0];
    let mut writer = Writer::new(Format::Jsonl, Vec::new());
    for history in [history, history, history, unnamed] {
        writer.write(history).unwrap();
    }
    let text = String::from_utf8(writer.into_inner()).unwrap();
    let back = parse_str(&text, Format::Jsonl, "").unwrap();
    let names: Vec<_> = back.iter().map(|history| history.name().unwrap()).collect();
    assert_eq!(names, ["a", "a#1", "a", "3"]);
}

#[test]
fn names_become_numbers_where_there_are_numbers_only() {
    let text = "alice: w(x,1) w(1,2)\nbob: r(x,1) r(y,0)\n7: r(0,0)\n";
    let history = &parse_str(text, Format::Hist, "").unwrap()[0];
    assert_eq!(
        text_of(history, Format::Plume),
        "w(2,1,0,0)\nw(1,2,0,1)\nr(2,1,1,2)\nr(3,0,1,3)\nr(0,0,7,4)\n"
    );
    assert_eq!(
        text_of(history, Format::Axe),
        "0: M[2] := 1\n0: M[1] := 2\n1: M[2] == 1\n1: M[3] == 0\n7: M[0] == 0\ncheck\n"
    );
    assert_eq!(
        text_of(history, Format::DbcopText),
        "[x:=1]\n[1:=2]\n---\n[x==1]\n[y==?]\n---\n[0==?]\n"
    );
}

#[test]
fn what_a_format_cannot_express_is_named_and_nothing_is_written() {
    for (text, format, expected) in [
        (
            "t: w(x,1) f",
            Format::DbcopText,
            "dbcop can't express a fence (t:1): leave the fences out",
        ),
        (
            "t: rmw(x,0,1)",
            Format::Plume,
            "plume can't express a read-modify-write (t:0): make it a transaction of a read and a write",
        ),
        (
            "t: put(1) => 2",
            Format::Axe,
            "axe can't express an object's call (t:0): write it as hist or jsonl",
        ),
        (
            "t: w(x,abc)",
            Format::Axe,
            "axe can't express the value abc, which is not an integer (t:0): write it as hist or jsonl",
        ),
        (
            "t: w(x,\"1\")",
            Format::Plume,
            "plume can't express the value \"1\", which is not an integer (t:0): write it as hist or jsonl",
        ),
        (
            "t: w(x,-1)",
            Format::DbcopJson,
            "dbcop-json can't express the negative value -1 (t:0): write it as hist or jsonl",
        ),
        (
            "t: w(x,1)@1..2",
            Format::Awdit,
            "awdit can't express times (t:0): leave them out (`convert --without-times`)",
        ),
        (
            "t: w(x,1)?",
            Format::Plume,
            "plume can't express an unknown status (t:0): write it as hist or jsonl",
        ),
        (
            "t: w(x,1)!",
            Format::Axe,
            "axe can't express what failed or was aborted (t:0): leave it out, it counts for nothing",
        ),
        (
            "t: [ w(x,1) f ]",
            Format::Axe,
            "axe can't express a transaction of 2 operations (t:0): write it as hist or jsonl",
        ),
        (
            "t: f [ w(x,1) f! ]",
            Format::Jsonl,
            "jsonl can't express an operation whose status is not its transaction's (t:2): write it as hist",
        ),
        (
            "init: x=5\nt: r(x,5)",
            Format::Axe,
            "axe can't express the initial value 5 (init:x): there every key starts with 0",
        ),
        (
            "final: x=5\nt: r(x,5)",
            Format::Awdit,
            "awdit can't express final values (final:x): write it as hist or jsonl",
        ),
    ] {
        let history = &parse_str(text, Format::Hist, "").unwrap()[0];
        let mut out = Vec::new();
        let error = write_history(history, format, &mut out).unwrap_err();
        assert!(matches!(error, WriteError::NotExpressible { .. }));
        assert_eq!(error.to_string(), expected, "{text}");
        assert!(out.is_empty(), "{text}");
    }
    let history = &parse_str("t: w(x,1)", Format::Hist, "").unwrap()[0];
    let mut writer = Writer::new(Format::Plume, Vec::new());
    writer.write(history).unwrap();
    let error = writer.write(history).unwrap_err().to_string();
    assert_eq!(
        error,
        "plume can't express a second history (1): write each history to a file of its own"
    );
}
