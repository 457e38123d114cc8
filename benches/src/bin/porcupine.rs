//! Porcupine's own logs, judged by Porcupine and by us in one run.
//!
//! Porcupine is `porcupine-rs`, an implementation in Rust: Wing and Gong's search with Lowe's
//! cache, part by part. Its models are specialised: numbers for the register, a text for each key
//! of the store. Both start from calls in memory. Our verdict has a certificate, and its time is
//! followed by that of the independent checker; Porcupine answers yes or no, which is its default.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use consistory_benches::logs::{Log, logs};
use consistory_benches::measure::{median, once, ratio, show_ratio, show_time};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_certify::certify_object;
use consistory_history::{Action, History, Status, Value};
use consistory_objects::{Calls, Options, Task, judge_object};
use consistory_spec::{ObjectModel, find};
use consistory_verdict::{Budget, Verdict};
use porcupine_rs::{CheckResult, Model, Operation, check_operations_timeout};

/// Compares our verdicts and times on Porcupine's own logs with those of Porcupine.
#[derive(Debug, Parser)]
struct Args {
    /// Number of times that each log is judged by each, in turns; the median counts.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
}

/// Time limit of Porcupine per log.
const LIMIT: Duration = Duration::from_secs(60);

/// A register with compare-and-set, which may be empty.
#[derive(Clone)]
struct Register;

#[derive(Clone, Debug)]
enum Access {
    Read(Option<i64>),
    Write(Option<i64>),
    Cas {
        from: Option<i64>,
        to: Option<i64>,
        is_done: bool,
    },
    /// An indeterminate call.
    MaybeCas {
        from: Option<i64>,
        to: Option<i64>,
    },
    MaybeRead,
}

impl Model for Register {
    type State = Option<i64>;
    type Op = Access;
    type Metadata = ();

    fn init() -> Option<i64> {
        None
    }

    fn step(state: &Option<i64>, access: &Access) -> (bool, Option<i64>) {
        let swapped = |from: Option<i64>, to| if *state == from { to } else { *state };
        match *access {
            Access::Read(value) => (*state == value, *state),
            Access::Write(value) => (true, value),
            Access::Cas { from, to, is_done } => ((*state == from) == is_done, swapped(from, to)),
            Access::MaybeCas { from, to } => (true, swapped(from, to)),
            Access::MaybeRead => (true, *state),
        }
    }
}

/// A store of texts, key by key.
#[derive(Clone)]
struct Store;

#[derive(Clone, Debug)]
struct KeyAccess {
    key: String,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Get(Option<String>),
    Put(String),
    Append(String),
}

impl Model for Store {
    type State = String;
    type Op = KeyAccess;
    type Metadata = ();

    fn partition_operations(history: &[Operation<Self>]) -> Vec<Vec<Operation<Self>>> {
        let mut keys: Vec<(&str, Vec<Operation<Self>>)> = Vec::new();
        for operation in history {
            let key = operation.op.key.as_str();
            match keys.iter_mut().find(|(known, _)| *known == key) {
                Some((_, part)) => part.push(operation.clone()),
                None => keys.push((key, vec![operation.clone()])),
            }
        }
        keys.into_iter().map(|(_, part)| part).collect()
    }

    fn init() -> String {
        String::new()
    }

    fn step(state: &String, access: &KeyAccess) -> (bool, String) {
        match &access.change {
            Change::Get(read) => (read.as_ref().is_none_or(|read| read == state), state.clone()),
            Change::Put(text) => (true, text.clone()),
            Change::Append(text) => (true, format!("{state}{text}")),
        }
    }
}

/// A call in Porcupine's form.
struct Call<'h> {
    client: u32,
    start: i64,
    end: Option<i64>,
    method: &'h str,
    args: Vec<&'h Value>,
    returns: Option<&'h Value>,
}

/// Returns the calls of a history that may have taken effect.
fn calls(history: &History) -> Vec<Call<'_>> {
    let mut calls = Vec::new();
    for op in history.ops().filter(|&op| history.own_status(op) != Status::Fail) {
        let (Action::Call(id), Some(time)) = (history.action(op), history.time(op)) else {
            continue;
        };
        let call = history.call(id);
        let is_known = history.own_status(op) == Status::Ok;
        calls.push(Call {
            client: history.session_of(op).index() as u32,
            start: time.start,
            end: time.end.filter(|_| is_known),
            method: &call.method,
            args: call.args.iter().map(|&arg| history.value(arg)).collect(),
            returns: call.returns.map(|value| history.value(value)),
        });
    }
    calls
}

/// Converts the calls; one without an end may take effect until the end of the history.
fn operations<M: Model>(
    history: &History,
    translate: impl Fn(&Call<'_>) -> M::Op,
) -> Vec<Operation<M>> {
    let calls = calls(history);
    let translated = calls.iter().map(|call| Operation {
        client_id: Some(call.client),
        call_time: call.start,
        return_time: call.end.unwrap_or(i64::MAX),
        op: translate(call),
        metadata: None,
    });
    translated.collect()
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

fn access(call: &Call<'_>) -> Access {
    match (call.method, call.args.as_slice()) {
        ("write", [value]) => Access::Write(number(value)),
        ("cas", [from, to]) if call.end.is_none() => {
            Access::MaybeCas { from: number(from), to: number(to) }
        }
        ("cas", [from, to]) => {
            let is_done = call.returns != Some(&Value::Bool(false));
            Access::Cas { from: number(from), to: number(to), is_done }
        }
        _ if call.end.is_none() => Access::MaybeRead,
        _ => Access::Read(call.returns.and_then(number)),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        other => other.to_string(),
    }
}

fn change(call: &Call<'_>) -> KeyAccess {
    let key = call.args.first().map_or(String::new(), |key| text(key));
    let change = match (call.method, call.args.as_slice()) {
        ("put", [_, value]) => Change::Put(text(value)),
        ("append", [_, value]) => Change::Append(text(value)),
        _ => Change::Get(call.returns.filter(|_| call.end.is_some()).map(text)),
    };
    KeyAccess { key, change }
}

/// Measurements of a log.
struct Measured {
    log: Log,
    calls: usize,
    ours: Duration,
    checker: Duration,
    /// Porcupine's time, and whether it finished within the limit.
    porcupine: (Duration, bool),
}

/// Times of several logs: the total, and the longest.
struct Totals {
    ours: (Duration, Duration),
    checker: Duration,
    porcupine: (Duration, Duration),
}

impl Totals {
    fn of(logs: &[Measured]) -> Self {
        let totals = |time: fn(&Measured) -> Duration| {
            let times = || logs.iter().map(time);
            (times().sum(), times().max().unwrap_or_default())
        };
        let (checker, _) = totals(|one| one.checker);
        Totals { ours: totals(|one| one.ours), checker, porcupine: totals(|one| one.porcupine.0) }
    }

    /// Returns the ratio of Porcupine's total time to ours.
    fn ratio(&self) -> f64 {
        ratio(self.porcupine.0, self.ours.0)
    }
}

fn measure(log: Log, repeat: usize) -> Result<Measured, Box<dyn Error>> {
    let history = log.read()?;
    let object = find(log.object)?;
    let model = ObjectModel::named("linearizability").ok_or("there is no such model")?;
    let task = Task::new(Calls::new(&history)?, object.clone())?;
    let porcupine: Box<dyn Fn() -> CheckResult> = if log.object == "kv" {
        let operations = operations::<Store>(&history, change);
        Box::new(move || check_operations_timeout(&operations, LIMIT))
    } else {
        let operations = operations::<Register>(&history, access);
        Box::new(move || check_operations_timeout(&operations, LIMIT))
    };
    let (mut ours, mut checkers, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_over = false;
    for _ in 0..repeat.max(1) {
        let (judged, time) = once(|| judge_object(&task, &model, &Options::default()));
        ours.push(time);
        let expected = if log.is_linearizable { Verdict::Consistent } else { Verdict::Violation };
        if judged.judgement.verdict() != expected {
            return Err(format!("{}: another verdict", log.name()).into());
        }
        let certificate = judged.judgement.certificate().ok_or("it is decided")?;
        let budget = Budget::unlimited();
        let (accepted, time) =
            once(|| certify_object(&history, &*object, &model, certificate, &budget));
        accepted?;
        checkers.push(time);
        // A long run is not repeated.
        if !is_over {
            let (answer, time) = once(&porcupine);
            is_over = answer == CheckResult::Unknown;
            if !is_over && (answer == CheckResult::Ok) != log.is_linearizable {
                return Err(format!("{}: Porcupine says another thing", log.name()).into());
            }
            theirs.push(time);
        }
    }
    let porcupine = (median(theirs), !is_over);
    let (ours, checker) = (median(ours), median(checkers));
    Ok(Measured { log, calls: task.len(), ours, checker, porcupine })
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let machine = Machine::here();
    let mut measured = Vec::new();
    for log in logs()? {
        measured.push(measure(log, args.repeat)?);
    }
    let (stores, registers): (Vec<Measured>, Vec<Measured>) =
        measured.into_iter().partition(|one| one.log.object == "kv");
    let (etcd, kv) = (Totals::of(&registers), Totals::of(&stores));
    let both = |(all, longest): (Duration, Duration)| {
        format!("{}, longest {}", show_time(all), show_time(longest))
    };
    let mut rows = vec![vec![
        format!("etcd, {} logs", registers.len()),
        registers.iter().map(|one| one.calls).sum::<usize>().to_string(),
        both(etcd.ours),
        show_time(etcd.checker),
        both(etcd.porcupine),
        show_ratio(etcd.ratio()),
    ]];
    rows.extend(stores.iter().map(|one| {
        let (time, is_enough) = one.porcupine;
        let more = if is_enough { "" } else { "more than " };
        vec![
            one.log.name(),
            one.calls.to_string(),
            show_time(one.ours),
            show_time(one.checker),
            format!("{more}{}", show_time(time)),
            format!("{more}{}", show_ratio(ratio(time, one.ours))),
        ]
    }));
    let header = ["log", "calls", "ours", "checker", "Porcupine", "ratio"];
    let (sum, most) = etcd.ours;
    let (_, slowest) = kv.ours;
    let ms = Duration::from_millis;
    let aims = [
        Goal {
            aim: format!("the {} logs of etcd in at most 50 ms, none over 20 ms", registers.len()),
            measured: format!("{}, {}", show_time(sum), show_time(most)),
            reached: Some(sum <= ms(50) && most <= ms(20)),
        },
        Goal {
            aim: "each log of the key-value store in at most 20 ms".into(),
            measured: show_time(slowest),
            reached: Some(slowest <= ms(20)),
        },
        Goal {
            aim: "the logs of etcd faster than Porcupine".into(),
            measured: show_ratio(etcd.ratio()),
            reached: Some(etcd.ratio() > 1.0),
        },
        Goal {
            aim: "the logs of the key-value store faster than Porcupine".into(),
            measured: show_ratio(kv.ratio()),
            reached: Some(kv.ratio() > 1.0),
        },
    ];
    let text = format!(
        "{}\nMedians of {} alternating runs, from the calls in memory; ours on one thread.\n\n{}\n{}",
        provenance("porcupine --features peers", &machine),
        args.repeat,
        markdown(&header, &rows),
        goals(&aims)
    );
    print!("{text}");
    Docs::new(args.docs).refresh("porcupine", &text)?;
    Ok(())
}
