//! Measures the searches for histories of an object's calls: logs such as fault-injection tests
//! record, reading and checking included; long searches on one and on two threads; and calls of busy
//! sessions, judged as they come, of which some never return.
//!
//! The comparison of strategies and visibilities is `jdk`'s, on recorded histories.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use consistory_benches::measure::{median, once, peak_memory, show_count, show_time};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_certify::certify_object;
use consistory_formats::{Format, Input, read, write_history};
use consistory_generate::{
    ObjectWorkload, Recording, RecordingWorkload, SharedObject, generate_calls, record,
};
use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, Interval, OpId, Value, ValueId,
};
use consistory_objects::{
    Calls, Engine, ObjectOptions, Online, OnlineOptions, RunningId, Task, judge_object,
};
use consistory_spec::{Object, ObjectModel, find};
use consistory_verdict::{Budget, Verdict};

/// Measures the searches for histories of an object's calls.
#[derive(Debug, Parser)]
struct Args {
    /// Where to write, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let machine = Machine::here();
    let docs = Docs::new(args.docs);
    let mut aims = Vec::new();
    // First, so that the memory is theirs.
    let streams = streams(&mut aims)?;
    let logs = logs(&mut aims)?;
    let together = together()?;
    let watched = watched(&mut aims)?;
    let text = format!(
        "{}\nLogs of tests, decided with the fastest search on one core; half of them with a wrong \
         return. Reading is that of JSON lines; the checker accepts each verdict.\n\n{}\n\
         Searches that take long, for the verdict and its certificate, on one thread and on two; the \
         times are medians of three runs in turn.\n\n{}\n\
         A million events of busy sessions, judged as they come; kept is the most at a time.\n\n{}\n\
         {} calls each of four sessions, judged as they come; one in 1,000 never returns, and for one \
         in twenty of these nobody says so. Memory is the peak of the process so far.\n\n{}\n{}",
        provenance("objects", &machine),
        markdown(
            &["log", "histories", "all", "longest", "linearizable", "reading", "checker"],
            &logs,
        ),
        markdown(&["history", "one thread", "two threads", "ratio"], &together,),
        markdown(&["object", "sessions", "time", "calls kept"], &watched),
        show_count(CALLS),
        markdown(
            &[
                "object",
                "time",
                "lost",
                "configurations at most",
                "calls kept at most",
                "given up",
                "memory",
            ],
            &streams,
        ),
        goals(&aims),
    );
    docs.refresh("objects", &text)?;
    print!("{text}");
    Ok(())
}

/// Measures logs such as fault-injection tests record.
fn logs(aims: &mut Vec<Goal>) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let mut rows = Vec::new();
    let register = |lost: f64| RecordingWorkload {
        recording: Recording::CasRegister,
        clients: 5,
        calls: 80,
        keys: 1,
        lost,
        seed: 0,
    };
    let store = |keys: u32| RecordingWorkload {
        recording: Recording::KeyValue,
        clients: 50,
        calls: 2000,
        keys,
        lost: 0.0,
        seed: 0,
    };
    for (name, object, workload, count, all, one) in [
        ("register, 80 calls, 5 clients, 10 % lost", "cas-register", register(0.1), 100, 50, 20),
        ("register, 80 calls, 5 clients, 30 % lost", "cas-register", register(0.3), 100, 50, 20),
        ("key-value, 2,000 calls, 50 clients, 50 keys", "kv", store(50), 20, 400, 20),
        ("key-value, 2,000 calls, 50 clients, 10 keys", "kv", store(10), 20, 400, 20),
    ] {
        let mut times = Vec::new();
        let (mut reading, mut checking) = (Vec::new(), Vec::new());
        let mut linearizable = 0;
        for seed in 0..count {
            let mut history = record(&RecordingWorkload { seed, ..workload.clone() });
            if seed % 2 == 1 {
                history = spoiled(&history, seed);
            }
            let limit = Duration::from_secs(2);
            let runs =
                (0..3).map(|_| judge(&history, object, "linearizability", Engine::Fastest, limit));
            let runs: Vec<(Verdict, Duration)> = runs.collect::<Result<_, _>>()?;
            linearizable += u64::from(runs[0].0 == Verdict::Consistent);
            reading.push(read_again(&history)?);
            checking.push(certify(&history, object)?);
            times.push(median(runs.iter().map(|run| run.1).collect()));
        }
        eprintln!("{name}: {}", show_time(times.iter().sum()));
        let total: Duration = times.iter().sum();
        let longest = times.iter().max().copied().unwrap_or_default();
        aims.push(Goal {
            aim: format!("{name}: {count} in at most {all} ms, none over {one} ms"),
            measured: format!("{}, {}", show_time(total), show_time(longest)),
            reached: Some(
                total <= Duration::from_millis(all) && longest <= Duration::from_millis(one),
            ),
        });
        rows.push(vec![
            name.to_owned(),
            show_count(count),
            show_time(total),
            show_time(longest),
            show_count(linearizable),
            show_time(median(reading)),
            show_time(median(checking)),
        ]);
    }
    Ok(rows)
}

/// Measures searches that take long, on one thread and on two.
fn together() -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let queue = find("queue")?;
    let model = ObjectModel::named("linearizability").ok_or("there is no such model")?;
    let mut rows = Vec::new();
    for (name, expected) in [("accepted", Verdict::Consistent), ("rejected", Verdict::Violation)] {
        let history = reversed(9, expected == Verdict::Violation);
        let task = Task::new(Calls::new(&history)?, Arc::clone(&queue))?;
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..3 {
            for (jobs, times) in (1..).zip(&mut times) {
                let options = ObjectOptions { jobs, ..ObjectOptions::default() };
                let (judgement, time) = once(|| judge_object(&task, &model, &options).judgement);
                if judgement.verdict() != expected {
                    return Err(format!("{name}: {jobs} threads say {judgement:?}").into());
                }
                times.push(time);
            }
        }
        let [one, two] = times.map(median);
        let ratio = one.as_secs_f64() / two.as_secs_f64();
        eprintln!("{name}: {} and {}", show_time(one), show_time(two));
        rows.push(vec![
            format!("queue, 9 elements put in at once, {name}"),
            show_time(one),
            show_time(two),
            format!("{ratio:.2}×"),
        ]);
    }
    Ok(rows)
}

/// Makes a queue into which elements are put at the same time, and from which they come one by one
/// in the opposite order; or, if something is wrong, one of them twice.
fn reversed(elements: i64, is_wrong: bool) -> History {
    let mut builder = HistoryBuilder::new();
    let sessions: Vec<_> = (0..elements).map(|i| builder.session(&format!("t{i}"))).collect();
    // A value that comes again keeps the polynomial decider out of it.
    let value = |i: i64| if i == 1 { 0 } else { i };
    let mut push =
        |session: usize, method: &str, arg: Option<i64>, found: Option<i64>, start, end| {
            let args = arg.map(|arg| builder.int(arg)).into_iter().collect();
            let returns = found.map(|found| builder.int(found));
            let call = builder.call(Call { method: method.into(), args, returns });
            let time = Some(Interval { start, end: Some(end) });
            let details = Details { time, ..Details::default() };
            builder.push_with(sessions[session], Action::Call(call), details);
        };
    for i in 0..elements {
        push(i as usize, "enqueue", Some(value(i)), None, i, elements + i);
    }
    for i in 0..elements {
        let found = match is_wrong && i + 1 == elements {
            true => value(2),
            false => value(elements - 1 - i),
        };
        let start = 10 * elements + 2 * i;
        push(0, "dequeue", None, Some(found), start, start + 1);
    }
    builder.finish().expect("there are few calls")
}

/// How many calls a stream has.
const CALLS: u64 = 100_000;
/// One in so many never returns.
const LOST: u64 = 1000;

/// A generator of numbers that is the same everywhere (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Chooses a call: it has a number that no other call has, and `has_lock` if its session locked.
fn choose(object: &str, n: i64, has_lock: bool, chance: &mut Chance) -> (&'static str, Vec<Value>) {
    let int = Value::Int;
    let puts = chance.below(100) < 47;
    let key = chance.below(64) as i64;
    match (object, puts) {
        ("register", true) => ("write", vec![int(n)]),
        ("register", false) => ("read", vec![]),
        ("set", true) => ("add", vec![int(key)]),
        ("set", false) => (["remove", "contains"][chance.below(2) as usize], vec![int(key)]),
        ("map", true) => ("put", vec![int(key), int(n)]),
        ("map", false) => (["remove", "get"][chance.below(2) as usize], vec![int(key)]),
        ("queue", true) => ("enqueue", vec![int(n)]),
        ("queue", false) => ("dequeue", vec![]),
        ("stack", true) => ("push", vec![int(n)]),
        ("stack", false) => ("pop", vec![]),
        ("deque", true) => (["addFirst", "addLast"][chance.below(2) as usize], vec![int(n)]),
        ("deque", false) => (["pollFirst", "pollLast"][chance.below(2) as usize], vec![]),
        ("priority-queue", true) => {
            ("insert", vec![int(n.wrapping_mul(0x9e37_79b1) & 0xffff_ffff)])
        }
        ("priority-queue", false) => ("poll", vec![]),
        _ if has_lock => ("unlock", vec![]),
        _ => ("tryLock", vec![]),
    }
}

/// What a session does next.
enum Step {
    Call,
    TakeEffect(RunningId, &'static str, Vec<Value>),
    Return(RunningId, Value),
}

/// Measures calls that are judged as they come, of which some never return.
fn streams(aims: &mut Vec<Goal>) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for name in ["register", "set", "map", "queue", "stack", "priority-queue", "deque", "lock"] {
        let object = find(name)?;
        let (found, time) = once(|| stream(name, &object));
        let Streamed { judged, lost, most, kept, given_up, ended } = found?;
        let memory = peak_memory().map_or("?".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
        eprintln!("{name}: {} {judged} {most} {kept} {given_up} {memory}", show_time(time));
        aims.push(Goal {
            aim: format!("{name}, {} calls, some lost: all judged", show_count(CALLS)),
            measured: match &ended {
                None => show_time(time),
                Some(reason) => format!("{} judged: {reason}", show_count(judged)),
            },
            reached: Some(ended.is_none()),
        });
        rows.push(vec![
            name.to_owned(),
            show_time(time),
            show_count(lost),
            show_count(most as u64),
            show_count(kept as u64),
            show_count(given_up),
            memory,
        ]);
    }
    Ok(rows)
}

/// What came of a stream.
struct Streamed {
    judged: u64,
    lost: u64,
    most: usize,
    kept: usize,
    given_up: u64,
    /// Why it ended early, if it did.
    ended: Option<String>,
}

fn stream(name: &str, object: &Arc<dyn Object>) -> Result<Streamed, Box<dyn Error>> {
    let mut chance = Chance(7);
    let mut online = Online::new(Arc::clone(object), OnlineOptions::default());
    let mut state = object.initial();
    let mut steps: Vec<Step> = (0..4).map(|_| Step::Call).collect();
    let mut has_lock = [false; 4];
    let (mut judged, mut called, mut lost, mut kept) = (0, 0, 0, 0);
    let mut ended = None;
    while judged < CALLS && ended.is_none() {
        let s = chance.below(4) as usize;
        // A lock that is lost would never be free again.
        let can_be_lost = !has_lock[s];
        let is_lost = can_be_lost && chance.below(2 * LOST) == 0;
        steps[s] = match std::mem::replace(&mut steps[s], Step::Call) {
            Step::Call => {
                called += 1;
                let (method, args) = choose(name, called, has_lock[s], &mut chance);
                let id = online.invoke(method, args.clone())?;
                Step::TakeEffect(id, method, args)
            }
            Step::TakeEffect(id, _, _) if is_lost => {
                lost += 1;
                if chance.below(20) > 0 {
                    online.abandon(id)?;
                }
                Step::Call
            }
            Step::TakeEffect(id, method, args) => {
                let returned = object.invoke(&mut state, method, &args).ok_or("it is possible")?;
                match method {
                    "tryLock" => has_lock[s] = returned == Value::Bool(true),
                    "unlock" => has_lock[s] = false,
                    _ => {}
                }
                Step::Return(id, returned)
            }
            Step::Return(id, _) if is_lost => {
                lost += 1;
                if chance.below(20) > 0 {
                    online.abandon(id)?;
                }
                Step::Call
            }
            Step::Return(id, returned) => {
                match online.complete(id, Some(returned)) {
                    Ok(None) => judged += 1,
                    Ok(Some(wrong)) => return Err(format!("{name}: {wrong:?}").into()),
                    Err(error) => ended = Some(error.to_string()),
                }
                Step::Call
            }
        };
        kept = kept.max(online.size().kept);
    }
    let size = online.size();
    Ok(Streamed { judged, lost, most: size.most, kept, given_up: size.given_up, ended })
}

/// Measures how long it takes to read a history.
fn read_again(history: &History) -> Result<Duration, Box<dyn Error>> {
    let path =
        std::env::temp_dir().join(format!("consistory-objects-{}.jsonl", std::process::id()));
    write_history(history, Format::Jsonl, &mut std::fs::File::create(&path)?)?;
    let (found, time) = once(|| read(&Input::File(path.clone()), None).count());
    std::fs::remove_file(&path)?;
    if found == 1 { Ok(time) } else { Err("one history was written".into()) }
}

/// Measures how long the checker takes for a verdict.
fn certify(history: &History, object: &str) -> Result<Duration, Box<dyn Error>> {
    let (object, budget) = (find(object)?, Budget::unlimited());
    let model = ObjectModel::named("linearizability").ok_or("there is no such model")?;
    let task = Task::new(Calls::new(history)?, Arc::clone(&object))?;
    let judgement = judge_object(&task, &model, &ObjectOptions::default()).judgement;
    let certificate = judgement.certificate().ok_or("it is undecided")?;
    let (accepted, time) =
        once(|| certify_object(history, &*object, &model, &certificate, &budget));
    accepted?;
    Ok(time)
}

/// Measures calls of busy sessions, judged as they come.
fn watched(aims: &mut Vec<Goal>) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for object in [SharedObject::Queue, SharedObject::Stack] {
        for sessions in [8, 16] {
            let history = generate_calls(&ObjectWorkload {
                object,
                sessions,
                operations: 500_000,
                read_share: 0.52,
                pending_share: 0.0,
                plants: 0,
                distance: 100,
                seed: 1,
            });
            let mut events: Vec<(i64, bool, OpId)> = Vec::with_capacity(2 * history.len());
            for (op, time) in history.ops().filter_map(|op| Some((op, history.time(op)?))) {
                events.push((time.start, false, op));
                events.extend(time.end.map(|end| (end, true, op)));
            }
            events.sort_unstable();
            let mut online = Online::new(find(object.name())?, OnlineOptions::default());
            let mut running: HashMap<OpId, RunningId> = HashMap::new();
            let mut kept = 0;
            let (fine, time) = once(|| -> Result<bool, Box<dyn Error>> {
                for &(_, is_end, op) in &events {
                    let Action::Call(call) = history.action(op) else { continue };
                    let call = history.call(call);
                    let value = |id: &ValueId| history.value(*id).clone();
                    if !is_end {
                        let args = call.args.iter().map(value).collect();
                        running.insert(op, online.invoke(&call.method, args)?);
                    } else if let Some(id) = running.remove(&op)
                        && online.complete(id, call.returns.as_ref().map(value))?.is_some()
                    {
                        return Ok(false);
                    }
                    kept = kept.max(online.size().kept);
                }
                Ok(online.finish()?.is_none())
            });
            if !fine? {
                return Err(format!("{object} of {sessions} sessions is found wrong").into());
            }
            eprintln!("{object}, {sessions} sessions: {}, {kept} kept", show_time(time));
            let limit = Duration::from_secs(60);
            aims.push(Goal {
                aim: format!(
                    "{object}, {sessions} busy sessions, 1,000,000 events: decided in a minute"
                ),
                measured: show_time(time),
                reached: Some(time <= limit),
            });
            rows.push(vec![
                object.to_string(),
                sessions.to_string(),
                show_time(time),
                show_count(kept as u64),
            ]);
        }
    }
    Ok(rows)
}

/// Gives a history in which one call returned what another did.
fn spoiled(history: &History, seed: u64) -> History {
    let mut builder = HistoryBuilder::new();
    let reads: Vec<_> = history
        .ops()
        .filter(|&op| match history.action(op) {
            Action::Call(call) => {
                let call = history.call(call);
                matches!(&*call.method, "read" | "get") && call.returns.is_some()
            }
            _ => false,
        })
        .collect();
    let victim = reads.get(reads.len() * 3 / 4 + (seed as usize % 3));
    let other = reads.get(reads.len() / 4);
    for op in history.ops() {
        let Action::Call(id) = history.action(op) else { continue };
        let call = history.call(id);
        let mut returns = call.returns;
        if let (Some(&victim), Some(&other)) = (victim, other)
            && op == victim
            && let Action::Call(other) = history.action(other)
        {
            returns = history.call(other).returns;
        }
        let args = call.args.iter().map(|&arg| builder.value(history.value(arg).clone()));
        let args = args.collect::<Vec<_>>();
        let returns = returns.map(|value| builder.value(history.value(value).clone()));
        let id = builder.call(Call { method: call.method.clone(), args, returns });
        let session = builder.session(history.session_name(history.session_of(op)));
        let (status, time) = (history.own_status(op), history.time(op));
        let details = Details { status, time, ..Details::default() };
        builder.push_with(session, Action::Call(id), details);
    }
    builder.finish().expect("as many calls as before")
}

fn judge(
    history: &History,
    object: &str,
    model: &str,
    engine: Engine,
    limit: Duration,
) -> Result<(Verdict, Duration), Box<dyn Error>> {
    let object = find(object)?;
    let model = ObjectModel::named(model).ok_or("there is no such model")?;
    let budget = Budget::unlimited().with_time(limit);
    let options = ObjectOptions { budget, engine, ..ObjectOptions::default() };
    let decide = || -> Result<Verdict, Box<dyn Error>> {
        let task = Task::new(Calls::new(history)?, Arc::clone(&object))?;
        Ok(judge_object(&task, &model, &options).judgement.verdict())
    };
    let (verdict, time) = once(decide);
    Ok((verdict?, time))
}
