//! The independent checker accepts only true certificates.
//!
//! Half of the inputs are a history and a certificate built from bytes. The other half are a true
//! certificate of one history, altered, and presented for a slightly different history. If the
//! checker accepts a certificate, by its rules or by definition, the deciders and the definitions
//! must agree.

use std::time::Duration;

use crate::{bytes::Bytes, forge, plan::Plan, text};
use consistory_certify::{certify, certify_definition};
use consistory_history::History;
use consistory_models::{EvaluateOptions, evaluate, find};
use consistory_registers::{CausalModel, ConvergentModel, Options, decide, decide_convergent};
use consistory_verdict::{Budget, Certificate, Judgement, Verdict};

const CAUSAL: [CausalModel; 3] = [CausalModel::Cc, CausalModel::Ccv, CausalModel::Cm];
const MODELS: [&str; 9] = ["cc", "ccv", "cm", "ccm", "wccm", "sc", "tso", "wsc", "wtso"];
const MOST: usize = 10;

/// Checks one input.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes(data);
    let is_true = bytes.below(2) == 1;
    let (model, edits, alterations) = (bytes.below(MODELS.len()), bytes.below(4), bytes.below(4));
    let length = bytes.below(MOST + 1);
    let mut plan = Plan::decode(&mut bytes, length);
    let mut history = plan.history();
    let certificate = if is_true {
        let judgement = proved(&history, model);
        let Some(mut certificate) = judgement.certificate().cloned() else { return };
        for _ in 0..edits {
            plan.edit(&mut bytes);
        }
        history = plan.history();
        for _ in 0..alterations {
            forge::alter(&mut certificate, &mut bytes, &history);
        }
        certificate
    } else {
        forge::certificate(&mut bytes, &history)
    };
    for (model, id) in MODELS.into_iter().enumerate() {
        for claim in [Verdict::Consistent, Verdict::Violation] {
            let definition = &find(id).expect("the catalogue has it").definition;
            if certify(&history, id, claim, &certificate).is_ok()
                || certify_definition(&history, definition, claim, &certificate).is_ok()
            {
                is_so(&history, model, claim, &certificate);
            }
        }
    }
}

fn is_so(history: &History, model: usize, claim: Verdict, certificate: &Certificate) {
    let verdict = judge(history, model).verdict();
    assert!(
        verdict == claim || verdict == Verdict::Undecided,
        "{}, {verdict:?}, accepted as {claim:?}: {certificate:?}\n{}",
        MODELS[model],
        text(history)
    );
}

/// Decides with a certificate by the rules of the model, if it has rules.
fn proved(history: &History, model: usize) -> Judgement<Certificate> {
    let convergent = match MODELS[model] {
        "ccm" => ConvergentModel::Ccm,
        "wccm" => ConvergentModel::Wccm,
        _ => return judge(history, model),
    };
    let budget = Budget::unlimited().with_time(Duration::from_secs(1));
    let options = Options { budget, ..Options::default() };
    decide_convergent(history, convergent, &options).judgement
}

/// Decides by a decider if there is one, otherwise by definition.
fn judge(history: &History, model: usize) -> Judgement<Certificate> {
    let budget = Budget::unlimited().with_time(Duration::from_secs(1));
    if let Some(causal) = CAUSAL.get(model) {
        let options = Options { budget, ..Options::default() };
        return decide(history, &[*causal], &options).remove(0).judgement;
    }
    let definition = &find(MODELS[model]).expect("the catalogue has it").definition;
    let options = EvaluateOptions { budget, ..EvaluateOptions::default() };
    evaluate(definition, history, &options).expect("it applies")
}
