//! Limits of the evaluator, and histories to which it does not apply.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::support::history;
use consistory_history::{Action, Call, Details, HistoryBuilder, Status};
use consistory_models::{DoesNotApply, EvaluateOptions, applies, catalogue, evaluate, find};
use consistory_verdict::{Budget, Judgement, Stopped, Verdict};

fn stopped(options: &EvaluateOptions) -> Vec<Stopped> {
    let h = history("t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)");
    catalogue()
        .iter()
        .map(|model| match evaluate(&model.definition, &h, options).unwrap() {
            Judgement::Undecided(stopped) => stopped,
            other => panic!("{}: {other:?}", model.id),
        })
        .collect()
}

#[test]
fn a_large_history_is_refused() {
    let options = EvaluateOptions { max_operations: 3, ..EvaluateOptions::default() };
    assert!(stopped(&options).iter().all(|s| *s == Stopped::Size { operations: 4, limit: 3 }));
}

#[test]
fn budgets_are_honoured() {
    let with = |budget| EvaluateOptions { budget, ..EvaluateOptions::default() };
    let time = with(Budget::unlimited().with_time(Duration::ZERO));
    assert!(stopped(&time).iter().all(|s| matches!(s, Stopped::Time { .. })));
    let memory = with(Budget::unlimited().with_memory(16));
    assert!(stopped(&memory).iter().all(|s| matches!(s, Stopped::Memory { limit: 16, .. })));
    let flag = Arc::new(AtomicBool::new(true));
    let interrupted = with(Budget::unlimited().with_interrupt(flag));
    assert!(stopped(&interrupted).iter().all(|s| *s == Stopped::Interrupted));
}

#[test]
fn an_empty_history_satisfies_everything() {
    for text in ["", "init: x=3", "t0: f"] {
        for model in catalogue() {
            let judgement =
                evaluate(&model.definition, &history(text), &EvaluateOptions::default());
            assert_eq!(judgement.unwrap().verdict(), Verdict::Consistent, "{} {text}", model.id);
        }
    }
}

#[test]
fn calls_are_no_register_operations() {
    let mut b = HistoryBuilder::new();
    let t = b.session("t");
    let call = b.call(Call { method: "size".into(), args: vec![], returns: None });
    b.push(t, Action::Call(call));
    let h = b.finish().unwrap();
    assert_eq!(applies(&h), Err(DoesNotApply::Calls));
    let cc = &find("cc").unwrap().definition;
    assert_eq!(evaluate(cc, &h, &EvaluateOptions::default()), Err(DoesNotApply::Calls));
}

#[test]
fn long_transactions_do_not_apply_unless_they_failed() {
    for (status, operations, expected) in [
        (Status::Ok, 2, false),
        (Status::Unknown, 2, false),
        (Status::Fail, 2, true),
        (Status::Ok, 1, true),
    ] {
        let mut b = HistoryBuilder::new();
        let (t, x, one) = (b.session("t"), b.key("x"), b.int(1));
        let transaction = b.begin_transaction();
        b.set_transaction_status(transaction, status);
        for _ in 0..operations {
            let details = Details { transaction: Some(transaction), ..Details::default() };
            b.push_with(t, Action::Write { key: x, value: one }, details);
        }
        let h = b.finish().unwrap();
        assert_eq!(applies(&h).is_ok(), expected, "{status:?} {operations}");
    }
}

#[test]
fn final_values_need_a_store_order_and_certain_writes() {
    let h = history("t0: w(x,1)\nfinal: x=1");
    for model in catalogue() {
        let has_order = model.definition.has_store_order();
        assert_eq!(model.definition.applies(&h).is_ok(), has_order, "{}", model.id);
        assert_eq!(has_order, ["sc", "tso", "pso", "rmo"].contains(&model.id));
    }
    let h = history("t0: w(x,1)?\nfinal: x=1");
    let error = find("sc").unwrap().definition.applies(&h).unwrap_err();
    assert_eq!(error, DoesNotApply::UncertainFinalValue { key: "x".to_owned() });
}
