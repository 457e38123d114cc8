//! A verdict of the reference evaluator is accepted, and its opposite is rejected.

use consistory_certify::{certify, certify_definition};
use consistory_history::History;
use consistory_verdict::{Certificate, Verdict};

use super::completions::completions;
use super::support::{
    Model, Random, SHAPES, all_models, corpus, every_history, history, json, judge, own_models,
    random_history, verdict,
};

/// Judges a history by a definition and checks the certificate; returns the verdict.
fn check(model: &Model, h: &History, about: &str) -> Option<Verdict> {
    let judgement = judge(&model.definition, h)?;
    let (claim, certificate) = verdict(&judgement);
    let accepted = certify_definition(h, &model.definition, claim, certificate);
    let shown = || format!("{} of {about}\n{}", model.name, json(h, certificate));
    assert_eq!(accepted, Ok(()), "{}", shown());
    let contrary = match claim {
        Verdict::Consistent => Verdict::Violation,
        _ => Verdict::Consistent,
    };
    let accepted = certify_definition(h, &model.definition, contrary, certificate);
    assert!(accepted.is_err(), "{}", shown());
    Some(claim)
}

#[test]
fn every_verdict_on_small_histories_is_accepted() {
    let models = all_models();
    let (mut holds, mut fails) = (0, 0);
    for operations in 1..=4 {
        every_history(operations, &mut |text| {
            let h = history(text);
            for model in &models {
                match check(model, &h, text) {
                    Some(Verdict::Consistent) => holds += 1,
                    _ => fails += 1,
                }
            }
        });
    }
    assert!(holds > 10_000 && fails > 10_000, "{holds} {fails}");
}

#[test]
fn every_verdict_on_the_corpus_is_accepted() {
    let models = all_models();
    let found = corpus();
    assert!(found.len() > 20);
    for (name, h) in &found {
        for model in &models {
            check(model, h, name);
        }
    }
}

#[test]
fn every_verdict_on_random_histories_is_accepted() {
    let models = all_models();
    let mut fails = vec![0; models.len()];
    for seed in 0..3_000u64 {
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let text = random_history(&mut Random(seed), shape);
        let h = history(&text);
        for (model, fails) in models.iter().zip(&mut fails) {
            *fails += u32::from(check(model, &h, &text) == Some(Verdict::Violation));
        }
    }
    for (model, fails) in models.iter().zip(fails) {
        assert!(fails > 50, "{fails} of {}", model.name);
    }
}

/// Checks that a definition holds iff some witness is accepted, independently of the evaluator's
/// search.
fn agrees_with_all_witnesses(model: &Model, h: &History, text: &str) -> Option<usize> {
    let definition = &model.definition;
    let judgement = judge(definition, h)?;
    let all = completions(h, definition.has_store_order(), 300)?;
    let accepted = all.iter().filter(|c| c.satisfies(h, definition)).count();
    let holds = judgement.verdict() == Verdict::Consistent;
    assert_eq!(accepted > 0, holds, "{}\n{text}", model.name);
    Some(all.len())
}

#[test]
fn a_definition_holds_iff_some_witness_is_accepted() {
    let models = all_models();
    let mut tried = 0;
    for operations in 1..=3 {
        every_history(operations, &mut |text| {
            for model in &models {
                tried += agrees_with_all_witnesses(model, &history(text), text).unwrap_or(0);
            }
        });
    }
    for seed in 0..700u64 {
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let shape = super::support::Shape { operations: shape.operations.min(5), ..shape };
        let text = random_history(&mut Random(seed + 10_000), shape);
        for model in &models {
            tried += agrees_with_all_witnesses(model, &history(&text), &text).unwrap_or(0);
        }
    }
    assert!(tried > 20_000, "{tried}");
}

/// The checker by rules and the checker by definition agree on every witness of TSO.
#[test]
fn witnesses_of_tso_are_accepted_by_both_checkers_or_by_none() {
    let tso = &consistory_models::find("tso").unwrap().definition;
    let (mut yes, mut no) = (0, 0);
    for seed in 0..400u64 {
        let text = random_history(&mut Random(seed + 20_000), SHAPES[seed as usize % 5]);
        let h = history(&text);
        for completion in completions(&h, true, 200).unwrap_or_default() {
            let certificate = completion.witness();
            let by_rules = certify(&h, "tso", Verdict::Consistent, &certificate).is_ok();
            assert_eq!(completion.satisfies(&h, tso), by_rules, "{text}{certificate:?}");
            *(if by_rules { &mut yes } else { &mut no }) += 1;
        }
    }
    assert!(yes > 200 && no > 2_000, "{yes} {no}");
}

#[test]
fn an_order_stands_for_the_store_order_that_it_gives() {
    let own = own_models();
    let sc = own.iter().find(|model| model.name == "sc").unwrap();
    let h = history("t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)\n");
    let judgement = judge(&sc.definition, &h).unwrap();
    let (claim, certificate) = verdict(&judgement);
    // This definition is not sequential consistency, so no order need be replayed.
    assert!(matches!(certificate, Certificate::Witness { .. }), "{certificate:?}");
    assert_eq!(certify_definition(&h, &sc.definition, claim, certificate), Ok(()));
    let order = Certificate::Order { order: h.ops().collect(), wr: Vec::new() };
    let accepted = certify_definition(&h, &sc.definition, Verdict::Consistent, &order);
    assert_eq!(accepted, Ok(()));
}
