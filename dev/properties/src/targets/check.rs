//! Deciders: the independent checker accepts the certificate of every verdict, verdicts respect
//! implications, and on the smallest histories they agree with the definitions.

use std::time::Duration;

use crate::{bytes::Bytes, plan::Plan, text};
use consistory_certify::certify;
use consistory_models::{EvaluateOptions, evaluate, find};
use consistory_registers::{
    CausalModel, Options, Scope, StoreModel, Tuning, decide, decide_stored,
};
use consistory_verdict::{Budget, Verdict};

const CAUSAL: [CausalModel; 3] = [CausalModel::Cc, CausalModel::Ccv, CausalModel::Cm];
const MODELS: [&str; 4] = ["cc", "ccv", "cm", "sc"];

/// Implications between models, by index.
const IMPLIED: [(usize, usize); 5] = [(1, 0), (2, 0), (3, 0), (3, 1), (3, 2)];

/// Largest number of operations of a history: with distinct values, with repeated values, and for
/// deciding by definition.
const DISTINCT: usize = 40;
const REPEATED: usize = 14;
const DEFINED: usize = 9;

/// Checks one input.
pub fn run(data: &[u8]) {
    let mut plan = Plan::decode(&mut Bytes(data), DISTINCT);
    if !plan.is_distinct() {
        plan.truncate(REPEATED);
    }
    let history = plan.history();
    let budget = || Budget::unlimited().with_time(Duration::from_millis(200));
    let options = |scope| Options {
        budget: budget(),
        jobs: 1,
        tuning: Tuning { scope, ..Tuning::default() },
    };
    let mut decided = decide(&history, &CAUSAL, &options(Scope::LastOperations));
    decided.push(decide_stored(&history, StoreModel::Sc, &options(Scope::LastOperations)));

    let verdicts: Vec<Verdict> = decided.iter().map(|timed| timed.judgement.verdict()).collect();
    for (id, timed) in MODELS.iter().zip(&decided) {
        if let Some(certificate) = timed.judgement.certificate() {
            let claim = timed.judgement.verdict();
            if let Err(rejection) = certify(&history, id, claim, certificate) {
                panic!("{id}, {claim:?}: {rejection}\n{certificate:?}\n{}", text(&history));
            }
        }
    }
    for (stronger, weaker) in IMPLIED {
        let is_broken =
            verdicts[weaker] == Verdict::Violation && verdicts[stronger] == Verdict::Consistent;
        let names = [MODELS[stronger], MODELS[weaker]];
        assert!(!is_broken, "{} without {}:\n{}", names[0], names[1], text(&history));
    }

    let every = decide(&history, &[CausalModel::Cm], &options(Scope::EveryOperation));
    agree("cm of every operation", every[0].judgement.verdict(), verdicts[2], || text(&history));
    if plan.len() <= DEFINED {
        for (id, &verdict) in MODELS.iter().zip(&verdicts) {
            let definition = &find(id).expect("the catalogue has it").definition;
            let options = EvaluateOptions { budget: budget(), ..EvaluateOptions::default() };
            let defined = evaluate(definition, &history, &options).expect("it applies");
            agree(id, defined.verdict(), verdict, || text(&history));
        }
    }
}

fn agree(what: &str, a: Verdict, b: Verdict, history: impl Fn() -> String) {
    let is_decided = a != Verdict::Undecided && b != Verdict::Undecided;
    assert!(!is_decided || a == b, "{what}: {a:?}, the decider says {b:?}\n{}", history());
}
