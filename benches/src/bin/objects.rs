//! Measures the searches for histories of an object's calls.
//!
//! First the comparison of Emmi and Enea ("Monitoring Weak Consistency", Figures 7 and 8) again:
//! histories of a map with weak iterations, one in four with a wrong return, each judged by linearizability and by happens-before
//! visibility, with minimal visibilities and with all of them, a second at most for each. The
//! program fails if two ways that end disagree. Then logs such as fault-injection tests record,
//! reading and checking included; and calls of busy sessions, judged as they come.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use consistory_benches::measure::{median, once, ratio, show_count, show_ratio, show_time};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_certify::certify_object;
use consistory_draw::{Plot, Series, line_plot};
use consistory_formats::{Format, Input, read, write_history};
use consistory_generate::{
    ObjectWorkload, Recording, RecordingWorkload, SharedObject, generate_calls, record,
};
use consistory_history::{Action, History, OpId, ValueId};
use consistory_objects::{
    Calls, Engine, ObjectOptions, Online, OnlineOptions, RunningId, Strategy, Task, Visibility,
    judge_object,
};
use consistory_spec::{ObjectModel, find};
use consistory_verdict::{Budget, Verdict};

/// Measures the searches for histories of an object's calls.
#[derive(Debug, Parser)]
struct Args {
    /// How many histories of the map are judged.
    #[arg(long, default_value_t = 4000)]
    histories: u64,
    /// How long each judgement may take, in milliseconds.
    #[arg(long, default_value_t = 1000)]
    timeout: u64,
    /// Where to write, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
}

/// A way to judge.
struct Way {
    name: &'static str,
    model: &'static str,
    engine: Engine,
}

const WAYS: [Way; 6] = [
    Way {
        name: "linearizability, Wing and Gong",
        model: "linearizability",
        engine: paper(Strategy::WingGong, Visibility::Minimal),
    },
    Way {
        name: "linearizability, just in time",
        model: "linearizability",
        engine: paper(Strategy::JustInTime, Visibility::Minimal),
    },
    Way { name: "linearizability, fastest", model: "linearizability", engine: Engine::Fastest },
    Way {
        name: "visibility, minimal",
        model: "happens-before-visibility",
        engine: paper(Strategy::WingGong, Visibility::Minimal),
    },
    Way {
        name: "visibility, minimal, just in time",
        model: "happens-before-visibility",
        engine: paper(Strategy::JustInTime, Visibility::Minimal),
    },
    Way {
        name: "visibility, all",
        model: "happens-before-visibility",
        engine: paper(Strategy::WingGong, Visibility::All),
    },
];

const fn paper(strategy: Strategy, visibility: Visibility) -> Engine {
    Engine::Paper { strategy, visibility }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let machine = Machine::here();
    let limit = Duration::from_millis(args.timeout);
    let docs = Docs::new(args.docs.clone());

    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); WAYS.len()];
    let mut verdicts = [0u64; 2];
    let mut timeouts = [0u64; WAYS.len()];
    for seed in 0..args.histories {
        // 6 to 15 calls in 2 or 3 threads.
        let calls = 6 + (seed % 10) as u32;
        let clients = if calls < 8 { 2 } else { 3 };
        let mut history = record(&RecordingWorkload {
            recording: Recording::WeakMap,
            clients,
            calls,
            keys: 6,
            lost: 0.0,
            seed,
        });
        if seed % 4 == 3 {
            history = spoiled(&history, seed);
        }
        let mut decided: [Option<Verdict>; 2] = [None; 2];
        for (i, way) in WAYS.iter().enumerate() {
            let (verdict, time) = judge(&history, "map", way.model, way.engine, limit)?;
            times[i].push(time);
            let kind = usize::from(way.model != "linearizability");
            match verdict {
                Verdict::Undecided => timeouts[i] += 1,
                verdict => {
                    if decided[kind].replace(verdict).is_some_and(|other| other != verdict) {
                        return Err(format!("{} disagrees on seed {seed}", way.name).into());
                    }
                }
            }
        }
        for (kind, verdict) in decided.iter().enumerate() {
            verdicts[kind] += u64::from(*verdict == Some(Verdict::Violation));
        }
    }
    let rows: Vec<Vec<String>> = WAYS
        .iter()
        .zip(&times)
        .zip(timeouts)
        .map(|((way, times), timeouts)| {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
            vec![
                way.name.to_owned(),
                show_time(at(0.5)),
                show_time(at(0.99)),
                show_time(at(1.0)),
                show_time(times.iter().sum()),
                show_count(timeouts),
            ]
        })
        .collect();
    eprintln!("{} histories of a map judged", args.histories);
    for (name, title, x, y) in [
        ("objects-naive.svg", "All visibilities against minimal ones", 5, 3),
        ("objects-minimal.svg", "Minimal visibilities against linearizability", 3, 0),
    ] {
        docs.figure(name, &scatter(title, x, y, &times))?;
    }
    let total = |way: usize| times[way].iter().sum::<Duration>();
    let overhead = ratio(total(3), total(0));
    let gain = ratio(total(5), total(3));
    let mut aims = vec![
        Goal {
            aim: "minimal visibilities take at most twice as long as linearizability".to_owned(),
            measured: show_ratio(overhead),
            reached: Some(overhead <= 2.0),
        },
        Goal {
            aim: "all visibilities take at least ten times as long as minimal ones".to_owned(),
            measured: show_ratio(gain),
            reached: Some(gain >= 10.0),
        },
    ];
    let logs = logs(&mut aims)?;
    let watched = watched(&mut aims)?;
    let text = format!(
        "{}\n{} histories of a map with 6 to 15 calls in 2 or 3 threads; {} are not linearizable, \
         and {} violate happens-before visibility. A judgement gets at most {}, and counts with \
         that if it does not end.\n\n{}\nLogs of tests, decided with the fastest search on one core; half of them \
         with a wrong return. Reading is that of JSON lines; the checker accepts each verdict.\n\n{}\n\
         A million events of busy sessions, judged as they come; kept is the most at a time.\n\n{}\n{}",
        provenance("objects", &machine),
        show_count(args.histories),
        show_count(verdicts[0]),
        show_count(verdicts[1]),
        show_time(limit),
        markdown(&["way", "median", "99 %", "longest", "all", "not ended"], &rows),
        markdown(
            &["log", "histories", "all", "longest", "linearizable", "reading", "checker"],
            &logs,
        ),
        markdown(&["object", "sessions", "time", "calls kept"], &watched),
        goals(&aims),
    );
    docs.refresh("objects", &text)?;
    print!("{text}");
    Ok(())
}

/// Plots one way against another, a point a history.
fn scatter(title: &str, x: usize, y: usize, times: &[Vec<Duration>]) -> String {
    let millis = |time: &Duration| time.as_secs_f64() * 1e3;
    // Points a pixel apart are one.
    let mut points: Vec<(f64, f64)> =
        times[x].iter().zip(&times[y]).map(|(a, b)| (millis(a), millis(b))).collect();
    points.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let deciles: Vec<(f64, f64)> = points
        .chunks(points.len().div_ceil(40).max(1))
        .map(|chunk| {
            let mean = |pick: fn(&(f64, f64)) -> f64| {
                (chunk.iter().map(|p| pick(p).ln()).sum::<f64>() / chunk.len() as f64).exp()
            };
            (mean(|p| p.0), mean(|p| p.1))
        })
        .collect();
    let equal = deciles.iter().map(|&(x, _)| (x, x)).collect();
    line_plot(&Plot {
        title: title.to_owned(),
        x_label: format!("{}, milliseconds", WAYS[x].name),
        y_label: "milliseconds".to_owned(),
        log_x: true,
        log_y: true,
        series: vec![
            Series { name: WAYS[y].name.to_owned(), points: deciles, missing: None },
            Series { name: "as long".to_owned(), points: equal, missing: None },
        ],
    })
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
    use consistory_history::{Action, Call, Details, HistoryBuilder};
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
    let options = ObjectOptions { budget, engine, jobs: 1 };
    let decide = || -> Result<Verdict, Box<dyn Error>> {
        let task = Task::new(Calls::new(history)?, Arc::clone(&object))?;
        Ok(judge_object(&task, &model, &options).judgement.verdict())
    };
    let (verdict, time) = once(decide);
    Ok((verdict?, time))
}
