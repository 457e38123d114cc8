//! Records a system under faults: `record SYSTEM WORKLOAD FOLDER SECONDS FAULTS
//! [SETTING=VALUE]...`.
//!
//! The history is written to FOLDER/history.jsonl, for `consistory check`.

use std::path::Path;
use std::time::Duration;

use consistory_drive::{
    Cluster, DriveError, FaultMix, Observer, RunOptions, Schedule, SessionRule, WorkloadKind,
    counts, find, is_inside, relaunch, run,
};

struct Printer;

impl Observer for Printer {
    fn progress(&self, message: &str) {
        eprintln!("{message}");
    }
}

fn main() -> Result<(), DriveError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, workload, folder, seconds, faults, settings @ ..] = &words[..] else {
        eprintln!("usage: record SYSTEM WORKLOAD FOLDER SECONDS FAULTS [SETTING=VALUE]...");
        return Ok(());
    };
    let system = find(name, settings)?;
    println!("{}, {}", system.version()?, system.settings());
    if system.nodes() > 0 && !is_inside() {
        let arguments: Vec<_> = std::env::args_os().skip(1).collect();
        let status = relaunch(&std::env::current_exe()?, &arguments, || false)?;
        println!("{status}");
        return Ok(());
    }
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder)?;
    let time = Duration::from_secs(seconds.parse().unwrap_or(5));
    let seed = 1;
    let mix = FaultMix::parse(faults, system.verbs(), system.nodes())?;
    let schedule = Schedule::draw(&mix, system.nodes(), time, seed);
    let cluster = match system.nodes() {
        0 => Cluster::embedded(folder),
        nodes => Cluster::isolated(nodes, schedule.links(seed), &folder.join("logs"), &[])?,
    };
    let options = RunOptions {
        workload: WorkloadKind::named(workload).unwrap_or(WorkloadKind::Register),
        time,
        seed,
        sessions: 6,
        keys: 3,
        first_key: 0,
        requests: None,
        rate: 500,
        timeout: Duration::from_secs(1),
        session_rule: SessionRule::Client,
        moves: false,
        keeps_going: true,
        folder: folder.to_owned(),
    };
    let found = run(&*system, &cluster, &schedule, &options, &Printer)?;
    println!(
        "{} operations, {:?}, started in {:?}",
        found.operations,
        counts(&found.rows),
        found.start_time
    );
    for fault in &found.faults {
        let ms = |at: u64| at / 1_000_000;
        println!(
            "{} ms: {}, ended {:?} ms, ready {:?} ms",
            ms(fault.begin),
            fault.text,
            fault.end.map(ms),
            fault.ready.map(ms)
        );
    }
    if let Some(trouble) = found.trouble {
        println!("trouble: {trouble}");
    }
    Ok(())
}
