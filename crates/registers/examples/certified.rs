//! Prints the time of deciding a large history for each model, and of checking the certificate, in
//! seconds of the processor and of the clock.
//!
//! ```text
//! cargo run --release -p consistory-registers --example certified -- 1000000 16 1000 2 cc,ccv
//! ```
//!
//! The arguments are operations, sessions, keys, threads, models; a sixth, `planted`, breaks one read.

use std::time::{Duration, Instant};

use consistory_certify::certify_within;
use consistory_generate::{Memory, PlantOptions, Workload, generate, plant};
use consistory_models::find;
use consistory_registers::{Model, Options, Tuning, judge};
use consistory_verdict::Budget;

const MODELS: &str = "cc,ccv,cm,ccm,wccm,wsc,sc,wtso,tso,pso";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| {
        args.get(i).map_or(default, |arg| arg.parse().expect("a number"))
    };
    let (operations, sessions) = (number(0, 1_000_000), number(1, 16));
    let (variables, jobs) = (number(2, 1_000), number(3, 1));
    let models = args.get(4).map_or(MODELS, String::as_str);
    let workload = Workload {
        operations: operations as u32,
        sessions: sessions as u32,
        variables: variables as u32,
        seed: 1,
        ..Workload::default()
    };
    let mut history = generate(&workload, Memory::Sc);
    if args.get(5).is_some_and(|arg| arg == "planted") {
        history = plant(&history, &PlantOptions { seed: 7, ..PlantOptions::default() });
    }
    println!(
        "{:6} {:12} {:>8} {:>8}   {:>8} {:>8}   {:>6}",
        "model", "verdict", "decide", "(clock)", "certify", "(clock)", "ratio"
    );
    for id in models.split(',') {
        let model = Model::Catalogued(find(id).expect("a model"));
        let budget = Budget::unlimited().with_memory(16 << 30);
        let options = Options { budget: budget.clone(), jobs, tuning: Tuning::default() };
        let (mut rulings, deciding) = measured(|| judge(&history, &[model], &options));
        let ruling = rulings.swap_remove(0).expect("the model applies");
        let judgement = &ruling.judgement;
        let Some(certificate) = judgement.certificate() else {
            println!("{id:6} {judgement:?}");
            continue;
        };
        let shown = ruling.via.unwrap_or(id);
        let (accepted, certifying) = measured(|| {
            let options = consistory_verdict::Options { budget, jobs, tuning: () };
            certify_within(&history, shown, judgement.verdict(), certificate, &options)
        });
        accepted.expect("the certificate proves the verdict");
        println!(
            "{id:6} {:12} {:8.2} {:8.2}   {:8.2} {:8.2}   {:6.2}",
            judgement.verdict().as_str(),
            deciding.processor.as_secs_f64(),
            deciding.clock.as_secs_f64(),
            certifying.processor.as_secs_f64(),
            certifying.clock.as_secs_f64(),
            certifying.processor.as_secs_f64() / deciding.processor.as_secs_f64(),
        );
    }
}

struct Measured {
    processor: Duration,
    clock: Duration,
}

fn measured<T>(action: impl FnOnce() -> T) -> (T, Measured) {
    let (before, started) = (processor_time(), Instant::now());
    let result = action();
    (result, Measured { processor: processor_time() - before, clock: started.elapsed() })
}

/// Returns the time that the processors have spent in this process, not counting the system's; Linux
/// counts it in hundredths of a second.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, fields) = stat.rsplit_once(')').expect("the command's name is in brackets");
    let ticks = fields.split_whitespace().nth(11).and_then(|field| field.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.expect("a number"))
}
