//! The deciders agree with the reference evaluator and with the definitions written as plain loops,
//! and the independent checker accepts every certificate.

use crate::support::{
    Random, Shape, every_history, executions, holds, random_history, rounds, text,
};
use consistory_history::History;
use consistory_models::{EvaluateOptions, evaluate};
use consistory_registers::{CausalModel, Options, Scope, Tuning, decide};
use consistory_verdict::{Judgement, Verdict};

const MODELS: [(CausalModel, &str); 3] =
    [(CausalModel::Cc, "cc"), (CausalModel::Ccv, "ccv"), (CausalModel::Cm, "cm")];

/// Counts, for each model, the consistent histories and the violations.
#[derive(Default, Debug, PartialEq, Eq)]
struct Tally([[usize; 2]; 3]);

fn assert_agrees(history: &History, tally: &mut Tally) {
    let models = MODELS.map(|(model, _)| model);
    let judgements = decide(history, &models, &Options::default());
    for (i, ((model, id), timed)) in MODELS.into_iter().zip(judgements).enumerate() {
        let expected = holds(history, model);
        let definition = &consistory_models::find(id).unwrap().definition;
        let reference = evaluate(definition, history, &EvaluateOptions::default()).unwrap();
        let evaluated = reference.verdict() == Verdict::Consistent;
        assert_eq!(evaluated, expected, "the evaluator on {id} of\n{}", text(history));
        let verdict = timed.judgement.verdict();
        let wanted = if expected { Verdict::Consistent } else { Verdict::Violation };
        assert_eq!(verdict, wanted, "{id} of\n{}", text(history));
        tally.0[i][usize::from(!expected)] += 1;
        let certificate = timed.judgement.certificate().expect("decided");
        if let Err(rejection) = consistory_certify::certify(history, id, verdict, certificate) {
            panic!("{id} of\n{}\n{:?}\n{rejection}", text(history), timed.judgement);
        }
    }
    let every = Options::tuned(Tuning { scope: Scope::EveryOperation, ..Tuning::default() });
    let direct = &decide(history, &[CausalModel::Cm], &every)[0].judgement;
    let wanted =
        if holds(history, CausalModel::Cm) { Verdict::Consistent } else { Verdict::Violation };
    assert_eq!(direct.verdict(), wanted, "cm over every operation of\n{}", text(history));
}

#[test]
fn every_small_history() {
    let mut tally = Tally::default();
    let shapes: [&[usize]; 11] = [
        &[1],
        &[2],
        &[1, 1],
        &[3],
        &[2, 1],
        &[1, 1, 1],
        &[2, 2],
        &[3, 1],
        &[2, 1, 1],
        &[3, 2],
        &[2, 2, 1],
    ];
    for lengths in shapes {
        every_history(lengths, 2, |history| assert_agrees(history, &mut tally));
    }
    // Pinned, so that a change of the enumeration is noticed.
    assert_eq!(tally, Tally([[8_888, 5_714], [8_826, 5_776], [8_868, 5_734]]));
}

#[test]
fn every_history_of_six_operations_on_one_key() {
    let mut tally = Tally::default();
    for lengths in [&[3, 3][..], &[4, 2], &[2, 2, 2], &[3, 2, 1]] {
        every_history(lengths, 1, |history| assert_agrees(history, &mut tally));
    }
    assert_eq!(tally, Tally([[3_493, 8_907], [3_185, 9_215], [3_367, 9_033]]));
}

fn random_agrees(seeds: std::ops::Range<u64>, shape: Shape) {
    let mut tally = Tally::default();
    for seed in seeds {
        let history = random_history(&mut Random(seed), shape);
        assert_agrees(&history, &mut tally);
    }
    assert!(
        tally.0.iter().all(|[consistent, violation]| *consistent > 100 && *violation > 100),
        "{tally:?}"
    );
}

#[test]
fn random_differentiated_histories() {
    let shape = Shape { sessions: 4, operations: 12, keys: 3, duplicates: false, mixed: false };
    random_agrees(0..rounds(30_000, 120_000), shape);
}

#[test]
fn random_histories_with_all_kinds_of_operations() {
    let shape = Shape { sessions: 4, operations: 12, keys: 2, duplicates: false, mixed: true };
    random_agrees(1_000_000..1_080_000, shape);
}

#[test]
fn random_histories_with_repeated_values() {
    let shape = Shape { sessions: 3, operations: 9, keys: 2, duplicates: true, mixed: true };
    random_agrees(2_000_000..2_020_000, shape);
}

#[test]
fn executions_of_simulated_memories() {
    let mut tally = Tally::default();
    executions(0..400, |history| assert_agrees(history, &mut tally));
    assert!(
        tally.0.iter().all(|[consistent, violation]| *consistent > 500 && *violation > 500),
        "{tally:?}"
    );
}

#[test]
fn undecided_says_why() {
    let shape = Shape { sessions: 3, operations: 9, keys: 2, duplicates: false, mixed: false };
    let history = random_history(&mut Random(7), shape);
    let budget = consistory_verdict::Budget::unlimited().with_time(std::time::Duration::ZERO);
    let options = Options { budget, ..Options::default() };
    let judgement = &decide(&history, &[CausalModel::Cc], &options)[0].judgement;
    assert!(matches!(judgement, Judgement::Undecided(_)), "{judgement:?}");
}
