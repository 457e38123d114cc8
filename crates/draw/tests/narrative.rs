//! Verdicts as sentences and as one line.

use crate::support::{cycle, edges, history, op, ring, violation};
use consistory_draw::{explain, explain_line};
use consistory_history::{Action, History, HistoryBuilder};
use consistory_verdict::{Certificate, Edge, Judgement, Stopped};
use expect_test::{Expect, expect};

/// Compares the one-line summary, an empty line, and the whole text.
fn check(h: &History, model: &str, judgement: &Judgement, expected: Expect) {
    let line = explain_line(h, model, judgement);
    assert!(line.chars().count() <= 200 && !line.contains('\n'), "one short line: {line}");
    expected.assert_eq(&format!("{line}\n\n{}", explain(h, model, judgement, &[])));
}

fn check_cycle(text: &str, model: &str, pattern: &str, cycle_text: &str, expected: Expect) {
    let h = history(text);
    check(&h, model, &violation(pattern, cycle(&h, cycle_text)), expected);
}

#[test]
fn an_initial_value_that_was_overwritten() {
    check_cycle(
        "t0: w(x,1) w(y,1)
         t1: r(y,1) r(x,0)",
        "cc",
        "WriteCOInitRead",
        "t1:0 po t1:1
         t1:1 rw t0:0
           init:x wr t1:1
           init:x po t0:0
         t0:0 po t0:1
         t0:1 wr t1:0",
        expect![[r#"
            WriteCOInitRead: t1:1 r(x,0) reads the initial value, but t0:0 w(x,1) is in its causal past

            The history violates cc.
            WriteCOInitRead: a read returned the initial value although a write to the same key was in its causal past.

              1. t0 wrote x=1 (t0:0), then wrote y=1 (t0:1).
              2. t1 read y=1 (t1:0), which t0 had written (t0:1), then read x=0 (t1:1).
              3. t1:1 read x=0, the initial value, so it happened before t0:0 overwrote it (rw).
            Together: t0:0 before t0:1 before t1:0 before t1:1 before t0:0, a cycle.
        "#]],
    );
}

#[test]
fn a_value_that_was_overwritten() {
    check_cycle(
        "t0: w(x,1) w(a,1) w(x,2) w(y,1)
         t1: r(y,1) r(x,1)",
        "cc",
        "WriteCORead",
        "t0:2 po t0:3
         t0:3 wr t1:0
         t1:0 po t1:1
         t1:1 rw t0:2
           t0:0 wr t1:1
           t0:0 po t0:2",
        expect![[r#"
            WriteCORead: t1:1 r(x,1) reads t0:0 w(x,1), but t0:2 w(x,2) had overwritten it in its causal past

            The history violates cc.
            WriteCORead: a read returned a value that another write in its causal past had already overwritten.

              1. t0 wrote x=2 (t0:2), then wrote y=1 (t0:3).
              2. t1 read y=1 (t1:0), which t0 had written (t0:3), then read x=1 (t1:1).
              3. t1:1 read x=1 from t0:0, so it happened before t0:2 overwrote that (rw).
                 - t0 wrote x=1 (t0:0), then wrote x=2 (t0:2).
            Together: t0:2 before t0:3 before t1:0 before t1:1 before t0:2, a cycle.
        "#]],
    );
}

#[test]
fn reads_that_forbid_every_model() {
    let h = history("t0: r(x,7)");
    let read = op(&h, "t0:0");
    check(
        &h,
        "sc",
        &violation("ThinAirRead", Certificate::ThinAirRead { read }),
        expect![[r#"
        ThinAirRead: t0:0 r(x,7) reads a value that was never written

        The history violates sc.
        ThinAirRead: a read returned a value that was never written.

        t0 read x=7 (t0:0), but 7 was never written to x, and x was 0 at first.
    "#]],
    );
    check_cycle(
        "t0: r(x,1) w(x,1)",
        "sc",
        "FutureRead",
        "t0:0 po t0:1
         t0:1 wr t0:0",
        expect![[r#"
            FutureRead: t0:0 r(x,1) reads t0:1 w(x,1), which follows it in its own session

            The history violates sc.
            FutureRead: a read returned the value of a write that follows it in its own session.

              1. t0 read x=1 (t0:0), then wrote x=1 (t0:1).
              2. t0 read x=1 (t0:0), which it wrote only later (t0:1).
            Together: t0:0 before t0:1 before t0:0, a cycle.
        "#]],
    );
}

#[test]
fn causality_in_a_circle() {
    let (h, judgement) = ring(2);
    check(
        &h,
        "cc",
        &judgement,
        expect![[r#"
        CyclicCO: t0:0 r(x1,1) -po-> t0:1 w(x0,1) -wr-> t1:0 r(x0,1) -po-> t1:1 w(x1,1) -wr-> t0:0

        The history violates cc.
        CyclicCO: program order and reads-from form a cycle, so an operation would be its own cause.

          1. t0 read x1=1 (t0:0), then wrote x0=1 (t0:1).
          2. t1 read x0=1 (t1:0), which t0 had written (t0:1), then wrote x1=1 (t1:1).
          3. t0 read x1=1 (t0:0), which t1 had written (t1:1).
        Together: t0:0 before t0:1 before t1:0 before t1:1 before t0:0, a cycle.
    "#]],
    );
}

#[test]
fn conflicts_in_a_circle() {
    check_cycle(
        "t0: w(x,1) r(x,2)
         t1: w(x,2) r(x,1)",
        "ccv",
        "CyclicCF",
        "t0:0 cf t1:0
           t0:0 po t0:1
           t1:0 wr t0:1
         t1:0 cf t0:0
           t1:0 po t1:1
           t0:0 wr t1:1",
        expect![[r#"
            CyclicCF: t0:0 w(x,1) -cf-> t1:0 w(x,2) -cf-> t0:0

            The history violates ccv.
            CyclicCF: what the sessions saw forces an order of the conflicting writes, and that order contradicts itself or causality.

              1. t0:1 r(x,2) had seen t0:0 w(x,1) and still read from t1:0 w(x,2), so t0:0 must come before t1:0 (cf).
                 - t0 wrote x=1 (t0:0), then read x=2 (t0:1).
              2. t1:1 r(x,1) had seen t1:0 w(x,2) and still read from t0:0 w(x,1), so t1:0 must come before t0:0 (cf).
                 - t1 wrote x=2 (t1:0), then read x=1 (t1:1).
            Together: t0:0 before t1:0 before t0:0, a cycle.
        "#]],
    );
}

#[test]
fn premises_have_premises() {
    let h = history(
        "t0: w(z,1) w(x,1) w(y,1)
         t1: w(x,2) r(z,0) r(y,1) r(x,2)",
    );
    let list = edges(
        &h,
        "t0:0 hb init:z
           t0:0 po t0:1
           t0:1 hb t1:0
             t0:1 po t0:2
             t0:2 wr t1:2
             t1:2 po t1:3
             t1:0 wr t1:3
           t1:0 po t1:1
           init:z wr t1:1
         init:z po t0:0",
    );
    let observer = Some(op(&h, "t1:3"));
    let certificate = Certificate::Cycle { edges: list, observer, check: None };
    check(
        &h,
        "cm",
        &violation("WriteHBInitRead", certificate),
        expect![[r#"
            WriteHBInitRead: t1:1 r(z,0) reads the initial value, but t0:0 w(z,1) is before it, by what its session had seen

            The history violates cm.
            WriteHBInitRead: a read returned the initial value although, by what its session had seen before, a write to the same key came earlier.

            As t1:3 r(x,2) sees it:
              1. At first z was 0 (init:z), before t0 wrote z=1 (t0:0).
              2. t1:1 r(z,0) comes after t0:0 w(z,1) and still read from the initial z=0, so t0:0 must come before init:z (hb).
                 - t0 wrote z=1 (t0:0), then wrote x=1 (t0:1).
                 - t1:3 r(x,2) had seen t0:1 w(x,1) and still read from t1:0 w(x,2), so t0:1 must come before t1:0 (hb).
                    - t0 wrote x=1 (t0:1), then wrote y=1 (t0:2).
                    - t1 read y=1 (t1:2), which t0 had written (t0:2), then read x=2 (t1:3).
                 - t1 wrote x=2 (t1:0), then read z=0 (t1:1).
            Together: init:z before t0:0 before init:z, a cycle.
        "#]],
    );
}

#[test]
fn a_path_under_one_name_is_told_as_its_steps_and_once() {
    check_cycle(
        "t0: w(x,1) w(y,1)
         t1: rmw(y,1,2) f w(x,2)
         t2: r(x,2) r(x,1)",
        "mine.model",
        "acyclic st",
        "t0:0 st t1:2
           t0:0 po t0:1
           t0:1 wr t1:0
           t1:0 po t1:1
           t1:1 po t1:2
         t1:2 wr t2:0
         t2:0 po t2:1
         t2:1 rw t1:2
           t0:0 wr t2:1
           t0:0 st t1:2
         t1:2 odd t0:0",
        expect![[r#"
            acyclic st: t0:0 w(x,1) -po-> t0:1 w(y,1) -wr-> t1:0 rmw(y,1,2) -po-> t1:1 f -po-> t1:2 w(x,2) -wr-> t2:0 r(x,2) -po-> t2:1 r(x,1) -rw-> t1:2 w(x,2) -odd-> t0:0

            The history violates mine.model.
            The model's check "acyclic st" fails: a relation that must have no cycle has one.

              1. t0 wrote x=1 (t0:0), then wrote y=1 (t0:1).
              2. t1 changed y from 1 to 2 (t1:0), on finding what t0 had written (t0:1), then passed a fence (t1:1), then wrote x=2 (t1:2).
              3. t2 read x=2 (t2:0), which t1 had written (t1:2), then read x=1 (t2:1).
              4. t2:1 read x=1 from t0:0, so it happened before t1:2 overwrote that (rw).
                 - t0:0 w(x,1) comes before t1:2 w(x,2), again by st.
              5. t1:2 w(x,2) comes before t0:0 w(x,1) (odd).
            Together: t0:0 before t0:1 before t1:0 before t1:1 before t1:2 before t2:0 before t2:1 before t1:2 before t0:0, a cycle.
        "#]],
    );
}

#[test]
fn either_order_of_two_writes() {
    let h = history(
        "t0: w(x,1)
         t1: w(x,2)
         t2: r(x,1) r(x,2)
         t3: r(x,2) r(x,1)",
    );
    let first = cycle(
        &h,
        "t1:0 wr t3:0
         t3:0 po t3:1
         t3:1 rw t1:0
           t0:0 wr t3:1
           t0:0 ww t1:0",
    );
    let second = cycle(
        &h,
        "t1:0 ww t0:0
         t0:0 wr t2:0
         t2:0 po t2:1
         t2:1 rw t0:0
           t1:0 wr t2:1
           t1:0 ww t0:0
         t0:0 st t1:0",
    );
    let writes = [op(&h, "t0:0"), op(&h, "t1:0")];
    let certificate = Certificate::SplitOrder { writes, branches: Box::new([first, second]) };
    check(
        &h,
        "sc",
        &violation("acyclic po | wr | ww | rw", certificate),
        expect![[r#"
            acyclic po | wr | ww | rw: neither of t0:0 w(x,1) and t1:0 w(x,2) can come first (2 cases)

            The history violates sc.
            The model's check "acyclic po | wr | ww | rw" fails: a relation that must have no cycle has one.

            One of t0:0 w(x,1) and t1:0 w(x,2) comes first in the store order, and neither can.
            If t0:0 comes first:
                1. t3 read x=2 (t3:0), which t1 had written (t1:0), then read x=1 (t3:1).
                2. t3:1 read x=1 from t0:0, so it happened before t1:0 overwrote that (rw).
                   - In this case t0:0 w(x,1) comes before t1:0 w(x,2) in the store order (ww).
              Together: t1:0 before t3:0 before t3:1 before t1:0, a cycle.
            If t1:0 comes first:
                1. In this case t1:0 w(x,2) comes before t0:0 w(x,1) in the store order (ww).
                2. t2 read x=1 (t2:0), which t0 had written (t0:0), then read x=2 (t2:1).
                3. t2:1 read x=2 from t1:0, so it happened before t0:0 overwrote that (rw).
                   - t1:0 w(x,2) comes before t0:0 w(x,1), again by ww.
                4. t0:0 w(x,1) comes before t1:0 w(x,2) (st).
              Together: t1:0 before t0:0 before t2:0 before t2:1 before t0:0 before t1:0, a cycle.
        "#]],
    );
}

#[test]
fn every_source_of_a_read() {
    let h = history(
        "t0: w(x,1) w(x,2) w(y,1)
         t1: r(y,1) r(x,1) w(x,1)",
    );
    let earlier = cycle(
        &h,
        "t0:1 po t0:2
         t0:2 wr t1:0
         t1:0 po t1:1
         t1:1 rw t0:1
           t0:0 wr t1:1
           t0:0 po t0:1",
    );
    let later = cycle(
        &h,
        "t1:1 po t1:2
         t1:2 wr t1:1",
    );
    let branches = vec![(op(&h, "t0:0"), earlier), (op(&h, "t1:2"), later)];
    let certificate = Certificate::SplitRead { read: op(&h, "t1:1"), branches };
    check(
        &h,
        "cc",
        &violation("WriteCORead", certificate),
        expect![[r#"
            WriteCORead: t1:1 r(x,1) can have read from none of 2 writes (2 cases)

            The history violates cc.
            WriteCORead: a read returned a value that another write in its causal past had already overwritten.

            t1:1 r(x,1) reads from one of 2 writes, and none is possible.
            If it reads from t0:0 w(x,1):
                1. t0 wrote x=2 (t0:1), then wrote y=1 (t0:2).
                2. t1 read y=1 (t1:0), which t0 had written (t0:2), then read x=1 (t1:1).
                3. t1:1 read x=1 from t0:0, so it happened before t0:1 overwrote that (rw).
                   - t0 wrote x=1 (t0:0), then wrote x=2 (t0:1).
              Together: t0:1 before t0:2 before t1:0 before t1:1 before t0:1, a cycle.
            If it reads from t1:2 w(x,1):
                1. t1 read x=1 (t1:1), then wrote x=1 (t1:2).
                2. t1 read x=1 (t1:1), which it wrote only later (t1:2).
              Together: t1:1 before t1:2 before t1:1, a cycle.
        "#]],
    );
}

#[test]
fn what_consistency_rests_on() {
    let h = history("t0: w(x,1) w(x,1)\nt1: r(x,1)");
    let order: Vec<_> = h.ops().collect();
    let wr = vec![(op(&h, "t1:0"), op(&h, "t0:0"))];
    let sessions = h.sessions().map(|s| (s, h.session_ops(s).collect())).collect();
    let x = h.find_key("x").unwrap();
    let certificates = [
        ("sc", Certificate::Order { order: order.clone(), wr: vec![] }),
        ("ccv", Certificate::Order { order, wr }),
        ("cm", Certificate::SessionOrders { orders: sessions, wr: vec![] }),
        ("tso", Certificate::Witness { ww: vec![(x, vec![])], wr: vec![] }),
        ("wsc", Certificate::Witness { ww: vec![], wr: vec![] }),
    ];
    let mut told = String::new();
    for (model, certificate) in certificates {
        let judgement = Judgement::Consistent(certificate.into());
        told += &explain(&h, model, &judgement, &[]);
        told += &explain_line(&h, model, &judgement);
        told += "\n\n";
    }
    expect![[r#"
        The history satisfies sc: there is an order of all 3 operations in which each read takes the last write before it, namely t0:0 w(x,1), t0:1 w(x,1), t1:0 r(x,1).
        consistent: there is an order of all 3 operations in which each read takes the last write before it

        The history satisfies ccv: for one choice of the sources of 1 ambiguous read, there is an order of all 3 operations that respects causality and by which each read takes the last of the writes in its causal past, namely t0:0 w(x,1), t0:1 w(x,1), t1:0 r(x,1).
        consistent: for one choice of the sources of 1 ambiguous read, there is an order of all 3 operations that respects causality and by which each read takes the last of the writes in its causal past

        The history satisfies cm: for each of the 2 sessions there is an order of all that it had seen in which each of its reads takes the last write before it.
        consistent: for each of the 2 sessions there is an order of all that it had seen in which each of its reads takes the last write before it

        The history satisfies tso: there is a store order of the writes of 1 key under which every check of the model holds.
        consistent: there is a store order of the writes of 1 key under which every check of the model holds

        The history satisfies wsc: every check of the model holds.
        consistent: every check of the model holds

    "#]].assert_eq(&told);
}

#[test]
fn why_the_search_stopped() {
    let h = history("t0: w(x,1)");
    let stopped = Stopped::Time { limit: std::time::Duration::from_secs(30) };
    check(
        &h,
        "sc",
        &Judgement::Undecided(stopped),
        expect![[r#"
            undecided: the time budget of 30s ran out

            Undecided for sc: the time budget of 30s ran out. No proof was found either way, so nothing is claimed of this history.
        "#]],
    );
}

#[test]
fn a_long_cycle_loses_its_middle() {
    let (h, judgement) = ring(1_000);
    check(
        &h,
        "cc",
        &judgement,
        expect![[r#"
        CyclicCO: t0:0 r(x999,1) -po-> t0:1 w(x0,1) -wr-> t1:0 r(x0,1) -po-> t1:1 w(x1,1) -wr-> t2:0 r(x1,1) -po-> t2:1 w(x2,1) -wr-> t3:0 r(x2,1) -po-> ... 1,992 more ... t999:1 w(x999,1) -wr-> t0:0

        The history violates cc.
        CyclicCO: program order and reads-from form a cycle, so an operation would be its own cause.

          1. t0 read x999=1 (t0:0), then wrote x0=1 (t0:1).
          2. t1 read x0=1 (t1:0), which t0 had written (t0:1), then wrote x1=1 (t1:1).
          3. t2 read x1=1 (t2:0), which t1 had written (t1:1), then wrote x2=1 (t2:1).
          4. t3 read x2=1 (t3:0), which t2 had written (t2:1), then wrote x3=1 (t3:1).
          5. t4 read x3=1 (t4:0), which t3 had written (t3:1), then wrote x4=1 (t4:1).
          6. t5 read x4=1 (t5:0), which t4 had written (t4:1), then wrote x5=1 (t5:1).
          7. t6 read x5=1 (t6:0), which t5 had written (t5:1), then wrote x6=1 (t6:1).
          8. t7 read x6=1 (t7:0), which t6 had written (t6:1), then wrote x7=1 (t7:1).
          9. t8 read x7=1 (t8:0), which t7 had written (t7:1), then wrote x8=1 (t8:1).
          10. t9 read x8=1 (t9:0), which t8 had written (t8:1), then wrote x9=1 (t9:1).
          ... 987 further steps ...
          998. t997 read x996=1 (t997:0), which t996 had written (t996:1), then wrote x997=1 (t997:1).
          999. t998 read x997=1 (t998:0), which t997 had written (t997:1), then wrote x998=1 (t998:1).
          1000. t999 read x998=1 (t999:0), which t998 had written (t998:1), then wrote x999=1 (t999:1).
          1001. t0 read x999=1 (t0:0), which t999 had written (t999:1).
        Together: t0:0 before t0:1 before t1:0 before t1:1 before t2:0 before t2:1 before t3:0 before t3:1 before t4:0 before t4:1 before ... 1,986 more ... before t998:0 before t998:1 before t999:0 before t999:1 before t0:0, a cycle.
    "#]],
    );
}

/// Builds a `cf` edge with nested `cf` premises of a given depth.
fn deep(h: &History, depth: usize) -> Certificate {
    let ops = ["t0:0", "t0:1", "t1:0", "t1:1"].map(|r| op(h, r));
    let mut edge = Edge::given(ops[0], ops[1], "po");
    for i in 0..depth {
        let relation = format!("cf{i}").into();
        let wr = Edge::given(ops[2], ops[1], "wr");
        let (from, to) = (ops[0], ops[2]);
        edge = Edge { from, to, relation, because: vec![edge, wr] };
    }
    let back = Edge::given(ops[2], ops[0], "po");
    Certificate::Cycle { edges: vec![edge, back], observer: None, check: None }
}

#[test]
fn a_deep_derivation_loses_its_bottom() {
    let h = history("t0: w(x,1) r(x,2)\nt1: w(x,2) r(x,1)");
    check(
        &h,
        "ccv",
        &violation("CyclicCF", deep(&h, 200)),
        expect![[r#"
            CyclicCF: t1:0 w(x,2) -po-> t0:0 w(x,1) -cf199-> t1:0

            The history violates ccv.
            CyclicCF: what the sessions saw forces an order of the conflicting writes, and that order contradicts itself or causality.

              1. t1 wrote x=2 (t1:0), then wrote x=1 (t0:0).
              2. t0:1 r(x,2) comes after t0:0 w(x,1) and still read from t1:0 w(x,2), so t0:0 must come before t1:0 (cf199).
                 - t0:1 r(x,2) comes after t0:0 w(x,1) and still read from t1:0 w(x,2), so t0:0 must come before t1:0 (cf198).
                    - t0:1 r(x,2) comes after t0:0 w(x,1) and still read from t1:0 w(x,2), so t0:0 must come before t1:0 (cf197).
                       - t0:1 r(x,2) comes after t0:0 w(x,1) and still read from t1:0 w(x,2), so t0:0 must come before t1:0 (cf196).
                          ... 1 further premise ...
            Together: t1:0 before t0:0 before t1:0, a cycle.
        "#]],
    );
}

#[test]
fn a_tree_of_many_cases_is_cut_short() {
    let h = history("t0: w(x,1) r(x,2)\nt1: w(x,2) r(x,1)");
    let writes = [op(&h, "t0:0"), op(&h, "t1:0")];
    let mut tree = deep(&h, 1);
    for _ in 0..12 {
        tree = Certificate::SplitOrder { writes, branches: Box::new([tree.clone(), tree]) };
    }
    let judgement = violation("CyclicHB", tree);
    let told = explain(&h, "sc", &judgement, &[]);
    assert!(told.lines().count() < 200, "{} lines", told.lines().count());
    assert!(told.contains("... 256 cases, each with its contradiction ..."), "{told}");
    let line = explain_line(&h, "sc", &judgement);
    assert_eq!(
        line,
        "CyclicHB: neither of t0:0 w(x,1) and t1:0 w(x,2) can come first (4,096 cases)"
    );

    let read = op(&h, "t0:1");
    let branches = (0..1_000).map(|_| (writes[0], deep(&h, 3))).collect();
    let told = explain(&h, "sc", &violation("x", Certificate::SplitRead { read, branches }), &[]);
    assert!(told.lines().count() < 200, "{} lines", told.lines().count());
    assert!(told.ends_with(
        "... The rest of the proof, in all 1,000 cases, is left out; the certificate holds it.\n"
    ));
}

#[test]
fn hostile_names_stay_on_their_line() {
    let mut b = HistoryBuilder::new();
    let (s, t) = (b.session("evil\nsession\u{202E}"), b.session(&"long".repeat(500)));
    let key = b.key("<script>\"&'\n");
    let one = b.int(1);
    b.push(s, Action::Write { key, value: one });
    b.push(t, Action::Read { key, value: one });
    b.push(t, Action::Write { key, value: one });
    let h = b.finish().unwrap();
    let [w, r, w2] = [0, 1, 2].map(consistory_history::OpId);
    let list = vec![Edge::given(w, r, "wr"), Edge::given(r, w2, "po"), Edge::given(w2, w, "ww")];
    let certificate = Certificate::Cycle { edges: list, observer: None, check: None };
    check(
        &h,
        "a\nmodel",
        &violation("a\npattern", certificate),
        expect![[r#"
        a\npattern: evil\nsession\u{202e}:0 w("<script>\"&'\n",1) -wr-> ... 1 more ... longlonglonglonglonglon…:1 w("<script>\"&'\n",1) -ww-> evil\nsession\u{202e}:0

        The history violates a\nmodel.
        The model's check "a\npattern" fails: a relation that must have no cycle has one.

          1. longlonglonglonglonglon… read "<script>\"&'\n"=1 (longlonglonglonglonglon…:0), which evil\nsession\u{202e} had written (evil\nsession\u{202e}:0), then wrote "<script>\"&'\n"=1 (longlonglonglonglonglon…:1).
          2. In this case longlonglonglonglonglon…:1 w("<script>\"&'\n",1) comes before evil\nsession\u{202e}:0 w("<script>\"&'\n",1) in the store order (ww).
        Together: evil\nsession\u{202e}:0 before longlonglonglonglonglon…:0 before longlonglonglonglonglon…:1 before evil\nsession\u{202e}:0, a cycle.
    "#]],
    );
}

#[test]
fn cases_of_the_last_write() {
    let h = history(
        "t0: w(x,1) r(x,2)
         t1: w(x,1) w(x,2)
         final: x=1",
    );
    let first = cycle(
        &h,
        "t0:1 rw t0:0
           t1:1 wr t0:1
           t1:1 final t0:0
         t0:0 po t0:1",
    );
    let second = cycle(
        &h,
        "t1:0 po t1:1
         t1:1 final t1:0",
    );
    let branches = vec![(op(&h, "t0:0"), first), (op(&h, "t1:0"), second)];
    let certificate = Certificate::SplitLast { key: h.find_key("x").unwrap(), branches };
    check(
        &h,
        "sc",
        &violation("FinalValue", certificate),
        expect![[r#"
        FinalValue: x is 1 in the end, and none of 2 writes can be the last (2 cases)

        The history violates sc.
        FinalValue: no order of the writes ends with the values that are given as final.

        x is 1 in the end, so one of 2 writes is the last, and none can be.
        If t0:0 w(x,1) is the last:
            1. t0 wrote x=1 (t0:0), then read x=2 (t0:1).
            2. t0:1 read x=2 from t1:1, so it happened before t0:0 overwrote that (rw).
               - t1:1 w(x,2) comes before t0:0 w(x,1), which is the last write (final).
          Together: t0:0 before t0:1 before t0:0, a cycle.
        If t1:0 w(x,1) is the last:
            1. t1 wrote x=1 (t1:0), then wrote x=2 (t1:1).
            2. t1:1 w(x,2) comes before t1:0 w(x,1), which is the last write (final).
          Together: t1:0 before t1:1 before t1:0, a cycle.
    "#]],
    );
    let none = Certificate::SplitLast { key: h.find_key("x").unwrap(), branches: vec![] };
    check(
        &h,
        "sc",
        &violation("FinalValue", none),
        expect![[r#"
        FinalValue: x is 1 in the end, but no write of that value can be the last

        The history violates sc.
        FinalValue: no order of the writes ends with the values that are given as final.

        x is 1 in the end, but no write of that value can be the last.
    "#]],
    );
}

#[test]
fn numbers_for_names_are_told_apart() {
    check_cycle(
        "0: w(0,1) w(1,1)
         1: r(1,1) r(0,0)",
        "cc",
        "WriteCOInitRead",
        "1:0 po 1:1
         1:1 rw 0:0
           init:0 wr 1:1
           init:0 po 0:0
         0:0 po 0:1
         0:1 wr 1:0",
        expect![[r#"
            WriteCOInitRead: 1:1 r(v0,0) reads the initial value, but 0:0 w(v0,1) is in its causal past

            The history violates cc.
            WriteCOInitRead: a read returned the initial value although a write to the same key was in its causal past.

              1. session 0 wrote v0=1 (0:0), then wrote v1=1 (0:1).
              2. session 1 read v1=1 (1:0), which session 0 had written (0:1), then read v0=0 (1:1).
              3. 1:1 read v0=0, the initial value, so it happened before 0:0 overwrote it (rw).
            Together: 0:0 before 0:1 before 1:0 before 1:1 before 0:0, a cycle.
        "#]],
    );
    // A key with the name v0 is not confused with the number.
    let h = history("0: w(0,1) w(v0,1)");
    let read = Certificate::ThinAirRead { read: op(&h, "0:0") };
    assert!(explain_line(&h, "cc", &violation("ThinAirRead", read)).contains("0:0 w(0,1)"));
}

#[test]
fn what_is_being_derived_is_not_referred_to() {
    // The outer derivation depends on the same pair, which only the inner one derives.
    check_cycle(
        "t0: w(x,1)
         t1: w(x,2) r(x,2) r(x,1) r(x,2)",
        "cm",
        "CyclicHB",
        "t0:0 hb t1:0
           t0:0 hb t1:0
             t0:0 wr t1:2
             t1:2 po t1:3
             t1:0 wr t1:3
           t1:0 po t1:1
           t1:0 wr t1:1
         t1:0 po t1:2
         t1:2 odd t0:0",
        expect![[r#"
            CyclicHB: t1:0 w(x,2) -po-> t1:2 r(x,1) -odd-> t0:0 w(x,1) -hb-> t1:0

            The history violates cm.
            CyclicHB: one session's reads force an order of the writes that it had seen, and that order contradicts itself or causality.

              1. t1 wrote x=2 (t1:0), then read x=1 (t1:2).
              2. t1:2 r(x,1) comes before t0:0 w(x,1) (odd).
              3. t1:1 r(x,2) comes after t0:0 w(x,1) and still read from t1:0 w(x,2), so t0:0 must come before t1:0 (hb).
                 - t1:3 r(x,2) had seen t0:0 w(x,1) and still read from t1:0 w(x,2), so t0:0 must come before t1:0 (hb).
                    - t1 read x=1 (t1:2), which t0 had written (t0:0), then read x=2 (t1:3).
                 - t1 wrote x=2 (t1:0), then read x=2 (t1:1).
            Together: t1:0 before t1:2 before t0:0 before t1:0, a cycle.
        "#]],
    );
}

#[test]
fn an_initial_value_that_was_changed() {
    check_cycle(
        "t0: rmw(x,0,1)
         t1: rmw(x,0,2)",
        "sc",
        "CyclicHB",
        "t0:0 rw t1:0
           init:x wr t0:0
           init:x po t1:0
         t1:0 rw t0:0
           init:x wr t1:0
           init:x po t0:0",
        expect![[r#"
            CyclicHB: t0:0 rmw(x,0,1) -rw-> t1:0 rmw(x,0,2) -rw-> t0:0

            The history violates sc.
            CyclicHB: one session's reads force an order of the writes that it had seen, and that order contradicts itself or causality.

              1. t0:0 changed x from its initial value 0 to 1, so it happened before t1:0 overwrote it (rw).
              2. t1:0 changed x from its initial value 0 to 2, so it happened before t0:0 overwrote it (rw).
            Together: t0:0 before t1:0 before t0:0, a cycle.
        "#]],
    );
}

#[test]
fn a_value_that_was_changed_twice() {
    check_cycle(
        "t0: w(x,1)
         t1: rmw(x,1,2)
         t2: rmw(x,1,3)",
        "sc",
        "CyclicSC",
        "t1:0 rw t2:0
           t0:0 wr t1:0
           t0:0 wr t2:0
         t2:0 rw t1:0
           t0:0 wr t2:0
           t0:0 wr t1:0",
        expect![[r#"
            CyclicSC: t1:0 rmw(x,1,2) -rw-> t2:0 rmw(x,1,3) -rw-> t1:0

            The history violates sc.
            CyclicSC: no order of all operations lets each read return what was written last.

              1. t1:0 changed x from 1 to 2, reading from t0:0, so it happened before t2:0 overwrote that (rw).
                 - t2 changed x from 1 to 3 (t2:0), on finding what t0 had written (t0:0).
              2. t2:0 changed x from 1 to 3, reading from t0:0, so it happened before t1:0 overwrote that (rw).
                 - t1 changed x from 1 to 2 (t1:0), on finding what t0 had written (t0:0).
            Together: t1:0 before t2:0 before t1:0, a cycle.
        "#]],
    );
}

#[test]
fn a_relation_that_must_be_empty() {
    check_cycle(
        "t0: r(x,0)
         t1: w(x,1) f w(y,1)",
        "mine.model",
        "X",
        "t1:0 po t1:1",
        expect![[r#"
            X: t1:0 w(x,1) -po-> t1:1 f, in a relation that must be empty

            The history violates mine.model.
            The model's check "X" fails: a relation that must be empty is not.

              1. t1 wrote x=1 (t1:0), then passed a fence (t1:1).
            So the relation that must be empty holds t1:0 w(x,1) → t1:1 f.
        "#]],
    );
}

#[test]
fn a_set_that_must_be_empty() {
    check_cycle(
        "t1: w(x,1) f w(y,1)",
        "mine.model",
        "X",
        "t1:1 F t1:1",
        expect![[r#"
        X: t1:1 f is in F, which the check does not allow

        The history violates mine.model.
        The model's check "X" fails.

        t1:1 f is in F, which the check does not allow.
    "#]],
    );
}

#[test]
fn final_values_that_cannot_be() {
    for (text, expected) in [
        (
            "t0: w(x,1)
             final: x=2",
            expect![[r#"
                FinalValue: x is 2 in the end, but no write of that value can be the last

                The history violates rmo.
                FinalValue: no order of the writes ends with the values that are given as final.

                x is 2 in the end, but no write of that value can be the last.
            "#]],
        ),
        (
            "t0: w(x,1) w(x,2)
             final: x=1
             final: x=2",
            expect![[r#"
                FinalValue: x cannot be both 1 and 2 in the end

                The history violates rmo.
                FinalValue: no order of the writes ends with the values that are given as final.

                x cannot be both 1 and 2 in the end.
            "#]],
        ),
    ] {
        let certificate = Certificate::Cycle { edges: vec![], observer: None, check: None };
        check(&history(text), "rmo", &violation("FinalValue", certificate), expected);
    }
}
