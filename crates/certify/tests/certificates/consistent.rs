//! Certificates of consistency: accepted exactly if they prove the claim.

use consistory_certify::{Rejection, certify};
use consistory_history::{OpId, SessionId};
use consistory_verdict::{Certificate, Verdict};

use super::support::{consistent, history, text};

#[test]
fn orders_that_prove_are_accepted() {
    for (model, h, certificate) in [
        ("sc", "t0: w(x,1) w(y,1); t1: r(y,1) r(x,1)", "t0:0 t0:1 t1:0 t1:1"),
        ("sc", "t0: w(x,1); t1: r(x,0) r(x,1)", "t1:0 t0:0 t1:1"),
        ("sc", "init: x=5; t0: r(x,5) w(x,1)", "t0:0 t0:1"),
        ("sc", "t0: rmw(x,0,1); t1: rmw(x,1,2) f", "t0:0 t1:0 t1:1"),
        ("sc", "t0: w(x,1) w(x,1); t1: r(x,1)", "t0:0 t1:0 t0:1 | t1:0<t0:0"),
        ("sc", "t0: w(x,1); t1: r(x,1)", "t0:0 t1:0 | t1:0<t0:0"),
        ("sc", "t0: w(x,1)! w(x,2)? w(x,3)?; t1: r(x,3)", "t0:2 t1:0"),
        ("sc", "t0: r(x,7)? r(x,8)! f!", ""),
        ("sc", "", ""),
        ("cc", "t0: w(x,1) r(x,2); t1: w(x,2) r(x,1)", "t0:0 t1:0 t0:1 t1:1"),
        ("cc", "t0: w(x,1) w(y,1); t1: r(x,0) r(y,1) r(x,1)", "t1:0 t0:0 t0:1 t1:1 t1:2"),
        ("ccv", "t0: w(x,1) r(x,2); t1: w(x,2) r(x,2)", "t0:0 t1:0 t0:1 t1:1"),
        // Store buffering: neither session has seen the other.
        ("ccv", "t0: w(x,1) r(y,0); t1: w(y,1) r(x,0)", "t0:0 t0:1 t1:0 t1:1"),
        ("cm", "t0: w(x,1) r(y,0); t1: w(y,1) r(x,0)", "t0 = t0:0 t0:1, t1 = t1:0 t1:1"),
        ("cm", "t0: w(x,1) r(x,2); t1: w(x,2) r(x,1)", "t0 = t0:0 t1:0 t0:1, t1 = t1:0 t0:0 t1:1"),
        // An order that contains more than the causal past is an equally good proof.
        ("cm", "t0: w(x,1) r(x,1); t1: w(x,2)", "t0 = t0:0 t0:1 t1:0, t1 = t1:0"),
        ("cm", "t0: w(x,1)?; t1: r(x,1)", "t0 = t0:0, t1 = t0:0 t1:0"),
        ("cm", "t0: w(x,1)!; t1: r(x,0)", "t1 = t1:0"),
        ("tso", "t0: w(x,1) r(y,0); t1: w(y,1) r(x,0)", "x@ init:x t0:0, y@ init:y t1:0"),
        (
            "tso",
            "t0: w(x,1) r(x,1) r(y,0); t1: w(y,1) r(y,1) r(x,0)",
            "x@ init:x t0:0, y@ init:y t1:0",
        ),
        ("tso", "t0: w(x,1) f r(y,1); t1: w(y,1) f r(x,0)", "x@ init:x t0:0, y@ init:y t1:0"),
        ("tso", "t0: rmw(x,0,1); t1: rmw(x,1,2)", "x@ init:x t0:0 t1:0"),
        ("tso", "t0: r(x,0)", ""),
    ] {
        let h = history(h);
        assert_eq!(
            consistent(&h, model, certificate),
            Ok(()),
            "{model} {} {certificate}",
            text(&h)
        );
    }
}

#[test]
fn a_rejection_says_which_part_and_why() {
    let passing = "t0: w(x,1) w(y,1); t1: r(y,1) r(x,1)";
    for (model, h, certificate, message) in [
        (
            "sc",
            passing,
            "t0:1 t0:0 t1:0 t1:1",
            "`order[0]`: t0:1 is not the next operation of its session that counts",
        ),
        (
            "sc",
            passing,
            "t0:0 t0:0 t0:1 t1:0 t1:1",
            "`order[1]`: t0:0 is not the next operation of its session that counts",
        ),
        ("cc", passing, "t0:0 t0:1 t1:0", "`order`: t1:1 is missing"),
        (
            "cc",
            passing,
            "t0:0 t1:0 t0:1 t1:1",
            "`order[1]`: t1:0 comes before t0:1, from which it reads",
        ),
        (
            "cc",
            passing,
            "init:x t0:0 t0:1 t1:0 t1:1",
            "`order[0]`: init:x is not a recorded operation",
        ),
        (
            "sc",
            "t0: w(x,1) r(y,0); t1: w(y,1) r(x,0)",
            "t0:0 t0:1 t1:0 t1:1",
            "t1:1 reads from init:x, but t0:0 comes later",
        ),
        ("sc", "t0: r(x,1)", "t0:0", "t0:0 reads a value that was never written"),
        ("cc", "t0: rmw(x,1,1)", "t0:0", "t0:0 reads a value that was never written"),
        ("sc", "t0: w(x,1)! ; t1: r(x,1)", "t1:0", "t1:0 reads a value that was never written"),
        (
            "cc",
            "t0: w(x,1) w(x,1); t1: r(x,1)",
            "t0:0 t1:0 t0:1",
            "`wr` does not say from which write t1:0 reads",
        ),
        (
            "cc",
            "t0: w(x,1) w(x,1); t1: r(x,1)",
            "t0:0 t0:1 t1:0 | t1:0<init:x",
            "`wr` cannot say that t1:0 reads from init:x",
        ),
        (
            "cc",
            "t0: w(x,1) w(x,1); t1: r(x,1)",
            "t0:0 t0:1 t1:0 | t0:0<t0:1",
            "`wr` cannot say that t0:0 reads from t0:1",
        ),
        (
            "cc",
            "t0: w(x,1) rmw(x,1,1)",
            "t0:0 t0:1 | t0:1<t0:1",
            "`wr` cannot say that t0:1 reads from t0:1",
        ),
        (
            "sc",
            "t0: w(x,1)? w(x,2)",
            "t0:0 t0:1",
            "`order[0]`: t0:0 is not the next operation of its session that counts",
        ),
        (
            "cc",
            "t0: w(x,1) w(x,2) w(y,1); t1: r(y,1) r(x,1)",
            "t0:0 t0:1 t0:2 t1:0 t1:1",
            "t1:1 reads from t0:0, but t0:1 comes later",
        ),
        (
            "cc",
            "t0: w(x,1) w(y,1); t1: r(y,1) r(x,0)",
            "t0:0 t0:1 t1:0 t1:1",
            "t1:1 reads from init:x, but t0:0 comes later",
        ),
        // The causal order goes through a session in between.
        (
            "cc",
            "t0: w(x,1) w(y,1); t1: r(y,1) w(z,1); t2: r(z,1) r(x,0)",
            "t0:0 t0:1 t1:0 t1:1 t2:0 t2:1",
            "t2:1 reads from init:x, but t0:0 comes later",
        ),
        (
            "ccv",
            "t0: w(x,1) w(y,1); t1: r(y,1) w(z,1); t2: w(x,2) r(z,1) r(x,2)",
            "t2:0 t0:0 t0:1 t1:0 t1:1 t2:1 t2:2",
            "t2:2 reads from t2:0, but t0:0 comes later",
        ),
        (
            "ccv",
            "t0: w(x,1) r(x,2); t1: w(x,2) r(x,2)",
            "t1:0 t0:0 t0:1 t1:1",
            "t0:1 reads from t1:0, but t0:0 comes later",
        ),
        (
            "ccv",
            "t0: w(x,1) r(x,2); t1: w(x,2) r(x,1)",
            "t0:0 t1:0 t0:1 t1:1",
            "t1:1 reads from t0:0, but t1:0 comes later",
        ),
        (
            "cm",
            "t0: w(x,1) w(x,2); t1: r(x,2) r(x,1)",
            "t0 = t0:0 t0:1, t1 = t0:0 t0:1 t1:0 t1:1",
            "t1:1 reads from t0:0, but t0:1 comes later",
        ),
        ("cm", "t0: w(x,1); t1: r(x,1)", "t1 = t0:0 t1:0", "`orders.t0`: t0:0 is missing"),
        ("cm", "t0: w(x,1); t1: r(x,1)", "t0 = t0:0, t1 = t0:0", "`orders.t1`: t1:0 is missing"),
        (
            "cm",
            "t0: w(x,1); t1: r(x,1)",
            "t0 = t0:0, t1 = t1:0",
            "`orders.t1[0]`: t1:0 comes before t0:0, from which it reads",
        ),
        (
            "tso",
            "t0: w(x,1) f r(y,0); t1: w(y,1) f r(x,0)",
            "x@ init:x t0:0, y@ init:y t1:0",
            "`ppo | wre | ww | rw` has a cycle",
        ),
        (
            "tso",
            "t0: rmw(x,0,1) r(y,0); t1: rmw(y,0,1) r(x,0)",
            "x@ init:x t0:0, y@ init:y t1:0",
            "`ppo | wre | ww | rw` has a cycle",
        ),
        ("tso", "t0: w(x,1) r(x,0)", "x@ init:x t0:0", "`poloc | wre | ww | rw` has a cycle"),
        (
            "tso",
            "t0: r(x,1) w(x,1)",
            "x@ init:x t0:1",
            "`wr`: t0:0 comes before t0:1, from which it reads",
        ),
        ("tso", "t0: w(x,1) w(x,2)", "x@ init:x t0:0", "`ww`: t0:1 is missing"),
        (
            "tso",
            "t0: w(x,1)",
            "x@ t0:0",
            "`ww.x[0]`: init:x does not belong there in the order of the writes of this key",
        ),
        (
            "tso",
            "t0: w(x,1) w(y,1)",
            "x@ init:x t0:0 t0:1",
            "`ww.x[2]`: t0:1 does not belong there in the order of the writes of this key",
        ),
        (
            "tso",
            "t0: w(x,1)",
            "x@ init:x t0:0 t0:0",
            "`ww.x[2]`: t0:0 does not belong there in the order of the writes of this key",
        ),
        ("rmo", "t0: w(x,1)", "t0:0", "there are no rules for the model `rmo`"),
    ] {
        let h = history(h);
        let rejection = consistent(&h, model, certificate).unwrap_err();
        assert_eq!(rejection.to_string(), message, "{model} {} {certificate}", text(&h));
    }
}

#[test]
fn a_claim_needs_the_right_kind_of_certificate() {
    let h = history("t0: w(x,1)");
    let order = Certificate::Order { order: vec![OpId(0)], wr: vec![] };
    let orders =
        Certificate::SessionOrders { orders: vec![(SessionId(0), vec![OpId(0)])], wr: vec![] };
    let kind = |kind, claim| Err(Rejection::Kind { kind, claim });
    assert_eq!(certify(&h, "cm", Verdict::Consistent, &order), kind("order", "consistent"));
    assert_eq!(certify(&h, "sc", Verdict::Consistent, &orders), kind("orders", "consistent"));
    assert_eq!(certify(&h, "sc", Verdict::Violation, &order), kind("order", "violation"));
    assert_eq!(certify(&h, "sc", Verdict::Undecided, &order), Err(Rejection::NoClaim));
}

#[test]
fn ids_that_the_history_does_not_have_are_rejected() {
    let h = history("t0: w(x,1); t1: r(x,1)");
    let far = OpId(u32::MAX);
    let (w, r) = (OpId(0), OpId(1));
    let order = |order: &[OpId], wr: &[(OpId, OpId)]| Certificate::Order {
        order: order.to_vec(),
        wr: wr.to_vec(),
    };
    for certificate in
        [order(&[w, far], &[]), order(&[w, r], &[(far, w)]), order(&[w, r], &[(r, far)])]
    {
        for model in ["cc", "ccv", "sc"] {
            assert!(certify(&h, model, Verdict::Consistent, &certificate).is_err());
        }
    }
    let own = |s: SessionId, op| (s, vec![w, op]);
    for orders in [
        vec![(SessionId(0), vec![w]), own(SessionId(9), r)],
        vec![(SessionId(0), vec![w]), own(SessionId(1), far)],
        vec![(SessionId(0), vec![w]), own(SessionId(1), r), own(SessionId(1), r)],
    ] {
        let certificate = Certificate::SessionOrders { orders, wr: vec![] };
        assert!(certify(&h, "cm", Verdict::Consistent, &certificate).is_err());
    }
    let x = h.find_key("x").unwrap();
    let init = h.initial_write(x);
    for ww in [
        vec![(x, vec![init, far])],
        vec![(consistory_history::KeyId(9), vec![init, w])],
        vec![(x, vec![init, w]), (x, vec![init, w])],
    ] {
        let certificate = Certificate::Witness { ww, wr: vec![] };
        assert!(certify(&h, "tso", Verdict::Consistent, &certificate).is_err());
    }
}

#[test]
fn calls_and_transactions_are_refused() {
    use consistory_history::{Action, Call, Details, HistoryBuilder};
    let empty = Certificate::Order { order: vec![], wr: vec![] };
    let mut b = HistoryBuilder::new();
    let s = b.session("s");
    let call = b.call(Call { method: "put".into(), args: vec![], returns: None });
    b.push(s, Action::Call(call));
    let h = b.finish().unwrap();
    assert!(matches!(
        certify(&h, "sc", Verdict::Consistent, &empty),
        Err(Rejection::Unsupported { .. })
    ));
    let mut b = HistoryBuilder::new();
    let s = b.session("s");
    let txn = b.begin_transaction();
    for _ in 0..2 {
        b.push_with(s, Action::Fence, Details { transaction: Some(txn), ..Details::default() });
    }
    let h = b.finish().unwrap();
    assert!(matches!(
        certify(&h, "sc", Verdict::Consistent, &empty),
        Err(Rejection::Unsupported { .. })
    ));
}
