//! Deciders: every verdict has a certificate that the independent checker accepts, verdicts respect
//! what implies what, and on the smallest histories they are what the definitions say.

#![no_main]

use std::time::Duration;

use consistory_certify::certify;
use consistory_check::{CausalModel, Options, Scope, decide};
use consistory_fuzz::{bytes::Bytes, plan::Plan, text};
use consistory_models::{EvaluateOptions, evaluate, find};
use consistory_verdict::{Budget, Verdict};
use libfuzzer_sys::fuzz_target;

const MODELS: [(&str, CausalModel); 3] =
    [("cc", CausalModel::Cc), ("ccv", CausalModel::Ccv), ("cm", CausalModel::Cm)];

/// How many operations a history has at most: with distinct values, with repeated values, and to be
/// decided by definition, too.
const DISTINCT: usize = 40;
const REPEATED: usize = 14;
const DEFINED: usize = 9;

fuzz_target!(|data: &[u8]| {
    let mut plan = Plan::decode(&mut Bytes(data), DISTINCT);
    if !plan.is_distinct() {
        plan.truncate(REPEATED);
    }
    let history = plan.history();
    let budget = || Budget::unlimited().with_time(Duration::from_millis(200));
    let models = MODELS.map(|(_, model)| model);
    let options = |scope| Options { budget: budget(), jobs: 1, scope };
    let decided = decide(&history, &models, &options(Scope::LastOperations));

    let verdicts: Vec<Verdict> = decided.iter().map(|timed| timed.judgement.verdict()).collect();
    for ((id, _), timed) in MODELS.iter().zip(&decided) {
        if let Some(certificate) = timed.judgement.certificate() {
            let claim = timed.judgement.verdict();
            if let Err(rejection) = certify(&history, id, claim, certificate) {
                panic!("{id}, {claim:?}: {rejection}\n{certificate:?}\n{}", text(&history));
            }
        }
    }
    for stronger in 1..3 {
        let is_broken =
            verdicts[0] == Verdict::Violation && verdicts[stronger] == Verdict::Consistent;
        assert!(!is_broken, "{} without cc:\n{}", MODELS[stronger].0, text(&history));
    }

    let every = decide(&history, &[CausalModel::Cm], &options(Scope::EveryOperation));
    agree("cm of every operation", every[0].judgement.verdict(), verdicts[2], || text(&history));
    if plan.len() <= DEFINED {
        for ((id, _), &verdict) in MODELS.iter().zip(&verdicts) {
            let definition = &find(id).expect("the catalogue has it").definition;
            let options = EvaluateOptions { budget: budget(), ..EvaluateOptions::default() };
            let defined = evaluate(definition, &history, &options).expect("it applies");
            agree(id, defined.verdict(), verdict, || text(&history));
        }
    }
});

fn agree(what: &str, a: Verdict, b: Verdict, history: impl Fn() -> String) {
    let is_decided = a != Verdict::Undecided && b != Verdict::Undecided;
    assert!(!is_decided || a == b, "{what}: {a:?}, the decider says {b:?}\n{}", history());
}
