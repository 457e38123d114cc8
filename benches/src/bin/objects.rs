//! Measures the searches for histories of an object's calls: logs like those of fault-injection
//! tests, including reading and checking, and online checking of busy sessions.
//!
//! The comparison of strategies and visibilities is `jdk`'s, on recorded histories.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use consistory_benches::measure::{median, once, show_count, show_ratio, show_time};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_benches::turns::{Turns, in_turns};
use consistory_certify::certify_object;
use consistory_formats::{Format, Input, read, write_history};
use consistory_generate::{
    ObjectWorkload, Recording, RecordingWorkload, SharedObject, generate_calls, record,
};
use consistory_history::{Action, Call, Details, History, HistoryBuilder, OpId, ValueId};
use consistory_objects::{
    Calls, Engine, Online, OnlineOptions, Options, RunningId, Task, Tuning, judge_object,
};
use consistory_spec::{ObjectModel, find};
use consistory_verdict::{Budget, Verdict};

/// Measures the searches for histories of an object's calls.
#[derive(Debug, Parser)]
struct Args {
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let machine = Machine::here();
    let docs = Docs::new(args.docs);
    let mut aims = Vec::new();
    let logs = logs(&mut aims)?;
    let registers = registers(&mut aims)?;
    let hard = hard(&mut aims)?;
    let watched = watched(&mut aims)?;
    let text = format!(
        "{}\nLogs of tests, decided with the fastest search on one core; half of them with a wrong \
         return. Reading is the time to read JSON lines; the checker accepts each verdict.\n\n{}\n\
         Registers of many clients, on one core: few values, so that writes of one value overlap.\n\n{}\n\
         Hard histories in which values are repeated: the time of a depth-first search alone (at most {}), \
         and the times of the usual search on one thread and on two, medians of {ROUNDS} alternating \
         runs.\n\n{}\n\
         A million events of busy sessions, judged as they come; the last column is the largest number of \
         calls kept at a time.\n\n{}\n{}",
        provenance("objects", &machine),
        markdown(
            &["log", "histories", "all", "longest", "linearizable", "reading", "checker"],
            &logs,
        ),
        markdown(&["register", "verdict", "time", "checker"], &registers),
        show_time(DEPTH_FIRST),
        markdown(
            &["history", "verdict", "depth first", "one thread", "two threads", "gain", "checker"],
            &hard,
        ),
        markdown(&["object", "sessions", "time", "calls kept"], &watched),
        goals(&aims),
    );
    docs.refresh("objects", &text)?;
    print!("{text}");
    Ok(())
}

/// Measures logs like those of fault-injection tests.
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

/// Measures registers of many clients with repeated values.
fn registers(aims: &mut Vec<Goal>) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let object = find("register")?;
    let mut rows = Vec::new();
    let mut longest = Duration::ZERO;
    for (clients, calls, values) in [(20, 20_000, 100), (50, 20_000, 100), (50, 2000, 20)] {
        for is_wrong in [false, true] {
            // If values repeat, a wrong return need not be a violation; one of the first ones is.
            for seed in 3..13 {
                let turns = Turns { clients, calls, values, seed, is_wrong };
                let history = in_turns(&*object, &["read"], &["write"], &turns);
                let limit = Duration::from_secs(10);
                let (verdict, time) =
                    judge(&history, "register", "linearizability", Engine::Fastest, limit)?;
                longest = longest.max(time);
                if is_wrong && verdict == Verdict::Consistent {
                    continue;
                }
                let calls = show_count(calls as u64);
                rows.push(vec![
                    format!("{clients} clients, {calls} calls, {values} values"),
                    verdict.as_str().to_owned(),
                    show_time(time),
                    show_time(certify(&history, "register")?),
                ]);
                break;
            }
        }
    }
    aims.push(Goal {
        aim: "registers of up to 50 clients, values again and again: decided in a second".into(),
        measured: format!("{} at most", show_time(longest)),
        reached: Some(longest <= Duration::from_secs(1)),
    });
    Ok(rows)
}

/// Time limit of the depth-first search alone.
const DEPTH_FIRST: Duration = Duration::from_secs(3);

/// Number of alternating runs on one thread and on two for each hard history; the median counts.
const ROUNDS: usize = 3;

/// Measures long searches, on one thread and on two.
fn hard(aims: &mut Vec<Goal>) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let mut rows = Vec::new();
    let (mut one, mut two) = (Duration::ZERO, Duration::ZERO);
    for (object, takes, gives, turns) in hard_histories() {
        let (clients, calls) = (turns.clients, turns.calls);
        let spec = find(object)?;
        let history = in_turns(&*spec, takes, gives, &turns);
        let model = ObjectModel::named("linearizability").ok_or("there is no such model")?;
        let task = Task::new(Calls::new(&history)?, Arc::clone(&spec))?;
        let judged = |jobs: usize, alone: u64, limit: Duration| {
            let budget = Budget::unlimited().with_time(limit);
            let options = Options { budget, jobs, tuning: Tuning { alone, ..Tuning::default() } };
            once(|| judge_object(&task, &model, &options).judgement)
        };
        let alone = Tuning::default().alone;
        let (depth_first, deep) = judged(1, u64::MAX, DEPTH_FIRST);
        let limit = Duration::from_secs(10);
        let (judgement, _) = judged(1, alone, limit);
        let (mut by_one, mut by_two) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            for (jobs, times) in [(1, &mut by_one), (2, &mut by_two)] {
                let (again, time) = judged(jobs, alone, limit);
                if again != judgement {
                    return Err(format!("{jobs} threads give another verdict for {object}").into());
                }
                times.push(time);
            }
        }
        let (by_one, by_two) = (median(by_one), median(by_two));
        let budget = Budget::unlimited().with_time(limit);
        let (accepted, checking) = once(|| {
            let certificate = judgement.certificate()?;
            certify_object(&history, &*spec, &model, certificate, &budget).ok()
        });
        (one, two) = (one + by_one, two + by_two);
        let gain = by_one.as_secs_f64() / by_two.as_secs_f64();
        eprintln!("{object}: {} {} {gain:.2}", show_time(by_one), show_time(by_two));
        rows.push(vec![
            format!("{object}, {clients} clients, {calls} calls, {} values", turns.values),
            judgement.verdict().as_str().to_owned(),
            match depth_first.verdict() {
                Verdict::Undecided => "–".to_owned(),
                _ => show_time(deep),
            },
            show_time(by_one),
            show_time(by_two),
            format!("{gain:.2}"),
            accepted.map_or("–".to_owned(), |()| show_time(checking)),
        ]);
    }
    let gain = one.as_secs_f64() / two.as_secs_f64();
    aims.push(Goal {
        aim: "hard histories, all of them: two threads are 1.5 times as fast as one".into(),
        measured: show_ratio(gain),
        reached: Some(gain >= 1.5),
    });
    Ok(rows)
}

type Methods = &'static [&'static str];

fn hard_histories() -> Vec<(&'static str, Methods, Methods, Turns)> {
    let turns =
        |clients, calls, values, seed, is_wrong| Turns { clients, calls, values, seed, is_wrong };
    let deque: (Methods, Methods) = (&["pollFirst", "pollLast"], &["addFirst", "addLast"]);
    vec![
        ("queue", &["dequeue"], &["enqueue"], turns(9, 200, 3, 1, true)),
        ("stack", &["pop"], &["push"], turns(9, 200, 3, 4, true)),
        ("deque", deque.0, deque.1, turns(9, 200, 3, 3, false)),
        ("deque", deque.0, deque.1, turns(12, 200, 3, 3, true)),
        ("priority-queue", &["poll"], &["insert"], turns(20, 300, 6, 4, true)),
        ("priority-queue", &["poll"], &["insert"], turns(30, 300, 8, 3, true)),
    ]
}

/// Measures the time of reading a history.
fn read_again(history: &History) -> Result<Duration, Box<dyn Error>> {
    let path =
        std::env::temp_dir().join(format!("consistory-objects-{}.jsonl", std::process::id()));
    write_history(history, Format::Jsonl, &mut std::fs::File::create(&path)?)?;
    let (found, time) = once(|| read(&Input::File(path.clone()), None).count());
    std::fs::remove_file(&path)?;
    if found == 1 { Ok(time) } else { Err("one history was written".into()) }
}

/// Measures the time of checking a verdict.
fn certify(history: &History, object: &str) -> Result<Duration, Box<dyn Error>> {
    let (object, budget) = (find(object)?, Budget::unlimited());
    let model = ObjectModel::named("linearizability").ok_or("there is no such model")?;
    let task = Task::new(Calls::new(history)?, Arc::clone(&object))?;
    let judgement = judge_object(&task, &model, &Options::default()).judgement;
    let certificate = judgement.certificate().ok_or("it is undecided")?;
    let (accepted, time) = once(|| certify_object(history, &*object, &model, certificate, &budget));
    accepted?;
    Ok(time)
}

/// Measures online checking of busy sessions.
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

/// Returns a history in which one call returns the value of another call.
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
    let options = Options { budget, ..Options::tuned(Tuning { engine, ..Tuning::default() }) };
    let decide = || -> Result<Verdict, Box<dyn Error>> {
        let task = Task::new(Calls::new(history)?, Arc::clone(&object))?;
        Ok(judge_object(&task, &model, &options).judgement.verdict())
    };
    let (verdict, time) = once(decide);
    Ok((verdict?, time))
}
