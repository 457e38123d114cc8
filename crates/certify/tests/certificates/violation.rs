//! Certificates of violations: accepted only if every edge follows and every case is closed.

use consistory_certify::{Flaw, Rejection, certify};
use consistory_history::{History, OpId};
use consistory_verdict::{Certificate, Edge, Verdict};

use super::naive;
use super::support::{MODELS, cycle_json, history, json, parse, text, violation};

/// Checks that a cycle refutes the given models and that every other model rejects it.
#[track_caller]
fn refutes(h: &str, cycle: &str, models: &[&str]) {
    let h = history(h);
    for model in MODELS {
        let verdict = violation(&h, model, cycle);
        assert_eq!(verdict.is_ok(), models.contains(&model), "{model}; {cycle}; {verdict:?}");
        assert!(verdict.is_err() || !naive::satisfies(&h, model), "{model}; {}", text(&h));
    }
}

const CAUSAL: &[&str] = &["cc", "ccv", "cm", "sc"];

#[test]
fn a_read_out_of_thin_air_refutes_every_model() {
    for (h, read, thin) in [
        ("t0: r(x,1)", "t0:0", true),
        ("t0: r(x,1) w(y,1) w(x,2)", "t0:0", true),
        ("t0: rmw(x,1,1)", "t0:0", true),
        ("t0: w(x,1)!; t1: r(x,1)", "t1:0", true),
        ("t0: w(x,1)?; t1: r(x,1)", "t1:0", false),
        ("t0: w(x,1); t1: r(x,1)", "t1:0", false),
        ("t0: r(x,0)", "t0:0", false),
        ("t0: r(x,1)?", "t0:0", false),
        ("t0: r(x,1)!", "t0:0", false),
        ("t0: w(x,1)", "t0:0", false),
        ("t0: w(x,1)", "init:x", false),
        ("t0: f", "t0:0", false),
    ] {
        let h = history(h);
        let certificate = Certificate::ThinAirRead { read: h.find(read).unwrap() };
        for model in MODELS.iter().chain(&["wsc", "my-own"]) {
            let verdict = certify(&h, model, Verdict::Violation, &certificate);
            assert_eq!(verdict.is_ok(), thin, "{model}; {}", text(&h));
        }
    }
}

#[test]
fn a_read_of_a_later_write_of_its_session_refutes_every_model() {
    let h = history("t0: r(x,1) w(y,1) w(x,1)");
    for cycle in ["t0:0 po t0:2, t0:2 wr t0:0", "t0:2 wr t0:0, t0:0 po t0:2"] {
        for model in MODELS.iter().chain(&["wsc", "my-own"]) {
            assert_eq!(violation(&h, model, cycle), Ok(()), "{model}");
        }
    }
    // By this rule alone, TSO allows a cycle of `po` and `wr` through two sessions.
    refutes(
        "t0: r(x,1) w(y,1); t1: r(y,1) w(x,1)",
        "t0:0 po t0:1, t0:1 wr t1:0, t1:0 po t1:1, t1:1 wr t0:0",
        CAUSAL,
    );
    let h = history("t0: r(x,1) w(y,1); t1: r(y,1) w(x,1)");
    let cycle = "t0:0 po t0:1, t0:1 wr t1:0, t1:0 po t1:1, t1:1 wr t0:0";
    assert!(matches!(violation(&h, "my-own", cycle), Err(Rejection::AllowedCycle { .. })));
}

#[test]
fn each_rule_refutes_the_models_that_have_it() {
    // WriteCORead, WriteCOInitRead.
    refutes(
        "t0: w(x,1) w(x,2) w(y,1); t1: r(y,1) r(x,1)",
        "t1:1 rw t0:1 (t0:0 wr t1:1, t0:0 po t0:1), t0:1 po t0:2, t0:2 wr t1:0, t1:0 po t1:1",
        CAUSAL,
    );
    refutes(
        "t0: w(x,1) w(y,1); t1: r(y,1) r(x,0)",
        "t1:1 rw t0:0 (init:x po t0:0, init:x wr t1:1), t0:0 po t0:1, t0:1 wr t1:0, t1:0 po t1:1",
        CAUSAL,
    );
    // Two read-modify-writes read the same value, though one has seen the other.
    refutes(
        "t0: rmw(x,0,1) w(y,1); t1: r(y,1) rmw(x,0,2)",
        "t1:1 rw t0:0 (init:x wr t1:1, init:x po t0:0), t0:0 po t0:1, t0:1 wr t1:0, t1:0 po t1:1",
        CAUSAL,
    );
    // CyclicCF.
    let both_ways = "t0: w(x,1) r(x,2); t1: w(x,2) r(x,1)";
    refutes(
        both_ways,
        "t0:0 cf t1:0 (t0:0 po t0:1, t1:0 wr t0:1), t1:0 cf t0:0 (t0:0 wr t1:1, t1:0 po t1:1)",
        &["ccv", "sc"],
    );
    // CyclicHB.
    refutes(
        "t0: w(z,1) w(x,1) w(y,1); t1: w(x,2) r(z,0) r(y,1) r(x,2)",
        "t0:0 hb init:z (t0:0 po t0:1, t0:1 hb t1:0 (t0:1 po t0:2, t0:2 wr t1:2, t1:2 po t1:3, \
         t1:0 wr t1:3), t1:0 po t1:1, init:z wr t1:1), init:z po t0:0 | t1:3",
        &["cm", "sc"],
    );
    // The same cycle, in which one derived edge is used again among premises.
    refutes(
        "t0: w(z,1) w(x,1) w(y,1); t1: w(x,2) r(z,0) r(y,1) r(x,2)",
        "t0:1 hb t1:0 (t0:1 po t0:2, t0:2 wr t1:2, t1:2 po t1:3, t1:0 wr t1:3), t1:0 po t1:1, \
         t1:1 rw t0:0 (init:z wr t1:1, init:z po t0:0), t0:0 po t0:1 | t1:3",
        &["sc"],
    );
    // Store buffering.
    let store_buffering = "t0:0 po t0:1, t0:1 rw t1:0 (init:y wr t0:1, init:y ww t1:0), \
         t1:0 po t1:1, t1:1 rw t0:0 (init:x wr t1:1, init:x ww t0:0)";
    refutes("t0: w(x,1) r(y,0); t1: w(y,1) r(x,0)", store_buffering, &["sc"]);
    let preserved = store_buffering.replace("po", "ppo");
    refutes("t0: w(x,1) r(y,0); t1: w(y,1) r(x,0)", &preserved, &[]);
    // With a barrier in between, TSO forbids the cycle too.
    let fenced = preserved.replace("t0:1", "t0:2").replace("t1:1", "t1:2");
    refutes("t0: w(x,1) f r(y,0); t1: w(y,1) f r(x,0)", &fenced, &["tso"]);
    refutes("t0: w(x,1) rmw(z,0,1) r(y,0); t1: w(y,1) f r(x,0)", &fenced, &["tso"]);
    refutes("t0: w(x,1) f! r(y,0); t1: w(y,1) f r(x,0)", &fenced, &[]);
    refutes("t0: w(x,1) rmw(z,0,1)? r(y,0); t1: w(y,1) f r(x,0)", &fenced, &[]);
    refutes("t0: rmw(x,0,1) r(y,0); t1: rmw(y,0,1) r(x,0)", &preserved, &["tso"]);
    // A read of a value that is overwritten in its own session.
    refutes(
        "t0: w(x,1) r(x,0)",
        "t0:0 poloc t0:1, t0:1 rw t0:0 (init:x wr t0:1, init:x ww t0:0)",
        &["tso"],
    );
    // Message passing.
    refutes(
        "t0: w(x,1) w(y,1); t1: r(y,1) r(x,0)",
        "t0:0 ppo t0:1, t0:1 wre t1:0, t1:0 ppo t1:1, t1:1 rw t0:0 (init:x wre t1:1, init:x ww t0:0)",
        &["tso"],
    );
    // A store order that the other relation forces: `cf` and a path.
    refutes(
        "t0: w(x,1) w(y,1); t1: w(x,2) r(y,1) r(x,2); t2: r(x,2) r(x,1)",
        "t0:0 cf t1:0 (t0:0 ppo t0:1, t0:1 wre t1:1, t1:1 ppo t1:2, t1:0 wr t1:2), \
         t1:0 wre t2:0, t2:0 poloc t2:1, t2:1 rw t1:0 (t0:0 wr t2:1, t0:0 cf t1:0)",
        &[],
    );
    refutes(
        "t0: w(x,1) w(y,1); t1: w(x,2) r(y,1) r(x,2); t2: r(x,2) r(x,1)",
        "t1:0 wre t2:0, t2:0 ppo t2:1, t2:1 rw t1:0 (t0:0 wr t2:1, \
         t0:0 cf t1:0 (t0:0 ppo t0:1, t0:1 wre t1:1, t1:1 ppo t1:2, t1:0 wr t1:2))",
        &["tso"],
    );
    refutes(
        "t0: w(x,1) w(x,2); t1: r(x,2) r(x,1)",
        "t0:1 wre t1:0, t1:0 poloc t1:1, t1:1 rw t0:1 (t0:0 wre t1:1, t0:0 ww t0:1 (t0:0 poloc t0:1))",
        &["tso"],
    );
}

#[test]
fn a_rejection_says_which_edge_and_why() {
    let h = "t0: w(x,1) w(x,2) w(y,1); t1: r(y,1) r(x,1)";
    let good =
        "t1:1 rw t0:1 (t0:0 wr t1:1, t0:0 po t0:1), t0:1 po t0:2, t0:2 wr t1:0, t1:0 po t1:1";
    let hb = "t0: w(z,1) w(x,1) w(y,1); t1: w(x,2) r(z,0) r(y,1) r(x,2); t2: w(u,1)";
    let elsewhere = hb.replace("; t2: w(u,1)", " w(u,1); t2: r(u,1)");
    let hb_cycle = |observer: &str| {
        format!(
            "t0:0 hb init:z (t0:0 po t0:1, t0:1 hb t1:0 (t0:1 po t0:2, t0:2 wr t1:2, t1:2 po t1:3, \
             t1:0 wr t1:3), t1:0 po t1:1, init:z wr t1:1), init:z po t0:0 {observer}"
        )
    };
    let edge = |part: &str, flaw: Flaw| (part.to_owned(), Some(flaw));
    for (model, h, cycle, (part, flaw)) in [
        (
            "cc",
            h,
            good.replace("t0:0 po t0:1", "t0:1 po t0:0"),
            edge("edges[0].because[1]", Flaw::NotGiven),
        ),
        (
            "cc",
            h,
            good.replace("t0:0 wr t1:1", "t0:1 wr t1:1"),
            edge("edges[0].because[0]", Flaw::NotGiven),
        ),
        ("cc", h, good.replace("t0:0 wr t1:1, ", ""), edge("edges[0]", Flaw::Premises)),
        (
            "cc",
            h,
            good.replace("(t0:0 wr t1:1, t0:0 po t0:1)", ""),
            edge("edges[0]", Flaw::Unproved),
        ),
        ("cc", h, good.replace("rw", "cf"), edge("edges[0]", Flaw::NoRule)),
        ("cc", h, good.replace("t0:2 wr t1:0", "t0:2 po t1:0"), edge("edges[2]", Flaw::NotGiven)),
        ("cc", h, good.replace("t0:2 wr t1:0", "t0:2 co t1:0"), edge("edges[2]", Flaw::NoRule)),
        ("cc", h, good.replace(", t1:0 po t1:1", ""), ("edges".into(), None)),
        ("cc", h, String::new(), ("edges".into(), None)),
        ("cc", h, "init:x po t0:0, t0:0 po init:x".into(), edge("edges[1]", Flaw::NotGiven)),
        ("cc", h, "t0:0 po t0:0".into(), edge("edges[0]", Flaw::NotGiven)),
        // A cycle of CC may have only one `rw`: each of these two edges follows, but the cycle has
        // both.
        (
            "cc",
            "t0: w(x,1) w(y,1) r(y,1) r(z,0); t1: w(z,1) w(u,1) r(u,1) r(x,0)",
            "t0:0 po t0:3, t0:3 rw t1:0 (init:z wr t0:3, init:z po t1:0), t1:0 po t1:3, \
             t1:3 rw t0:0 (init:x wr t1:3, init:x po t0:0)"
                .into(),
            ("edges".into(), None),
        ),
        // `cf` follows from the causal order alone.
        (
            "ccv",
            "t0: r(x,3) w(x,1) r(x,2); t1: w(x,2) r(x,3); t2: w(x,3)",
            "t0:1 cf t2:0 (t0:1 cf t1:0 (t0:1 po t0:2, t1:0 wr t0:2), t1:0 po t1:1, t2:0 wr t1:1), \
             t2:0 wr t0:0, t0:0 po t0:1"
                .into(),
            edge("edges[0]", Flaw::Premises),
        ),
        // And so does `rw` for CC.
        (
            "cc",
            "t0: w(x,1) r(y,0); t1: w(y,1) w(x,2) w(z,1); t2: r(z,1) r(x,1)",
            "t2:1 rw t1:1 (t0:0 wr t2:1, t0:0 po t0:1, t0:1 rw t1:0 (init:y wr t0:1, init:y po t1:0), \
             t1:0 po t1:1), t1:1 po t1:2, t1:2 wr t2:0, t2:0 po t2:1"
                .into(),
            edge("edges[0]", Flaw::Premises),
        ),
        // Only writes of one key are ordered by a read of that key.
        (
            "ccv",
            "t0: w(y,1) r(x,2); t1: w(x,2)",
            "t0:0 cf t1:0 (t0:0 po t0:1, t1:0 wr t0:1), t1:0 po t0:0".into(),
            edge("edges[0]", Flaw::Premises),
        ),
        (
            "cm",
            "t0: w(y,1) r(x,2); t1: w(x,2)",
            "t0:0 hb t1:0 (t0:0 po t0:1, t1:0 wr t0:1), t1:0 po t0:0 | t0:1".into(),
            edge("edges[0]", Flaw::Premises),
        ),
        ("sc", "t0: w(y,1) w(x,2)", "t0:0 ww t0:1 (t0:0 po t0:1), t0:1 po t0:0".into(), edge("edges[0]", Flaw::Premises)),
        ("sc", "t0: r(x,0) w(x,2)", "t0:0 ww t0:1 (t0:0 po t0:1), t0:1 po t0:0".into(), edge("edges[0]", Flaw::Premises)),
        ("sc", "t0: w(y,1) w(x,2)", "init:y ww t0:1, t0:1 po init:y".into(), edge("edges[0]", Flaw::Unproved)),
        ("sc", "t0: w(x,1)? w(x,2)", "init:x ww t0:0, t0:0 po init:x".into(), edge("edges[0]", Flaw::Unproved)),
        // Initial writes are not ordered among themselves.
        ("cc", "t0: w(x,1) w(y,1)", "init:x po init:y, init:y po init:x".into(), edge("edges[0]", Flaw::NotGiven)),
        // Edges of the history need no premises, so premises are not allowed there.
        (
            "cc",
            h,
            good.replace("t0:1 po t0:2", "t0:1 po t0:2 (t0:1 po t0:2)"),
            edge("edges[1]", Flaw::NotGiven),
        ),
        ("cm", hb, hb_cycle(""), edge("edges[0].because[1]", Flaw::Premises)),
        // The reads are not of the observer's session, although everything is in its past.
        (
            "cm",
            &elsewhere,
            hb_cycle("| t2:0"),
            edge("edges[0].because[1]", Flaw::Premises),
        ),
        // The derivation needs a read after the observer.
        ("cm", hb, hb_cycle("| t1:2"), edge("edges[0].because[1].because[2]", Flaw::OutsidePast)),
        ("cm", hb, hb_cycle("| t2:0"), edge("edges[0].because[0]", Flaw::OutsidePast)),
        ("cm", hb, hb_cycle("| init:x"), ("observer".into(), None)),
        (
            "sc",
            "t0: w(x,1); t1: w(x,2)",
            "t0:0 ww t1:0, t1:0 ww t0:0".into(),
            edge("edges[0]", Flaw::Unproved),
        ),
        (
            "sc",
            "t0: w(x,1); t1: w(x,2)",
            "init:x ww t0:0, t0:0 ww init:x".into(),
            edge("edges[1]", Flaw::Unproved),
        ),
        // A read-modify-write does not overwrite the value that it reads.
        (
            "sc",
            "t0: rmw(x,0,1)",
            "t0:0 rw t0:0 (init:x wr t0:0, init:x ww t0:0)".into(),
            edge("edges[0]", Flaw::Premises),
        ),
        (
            "cc",
            "t0: rmw(x,0,1)",
            "t0:0 rw t0:0 (init:x wr t0:0, init:x po t0:0)".into(),
            edge("edges[0]", Flaw::Premises),
        ),
        // An ambiguous, failed or possibly ineffective operation cannot be a premise.
        (
            "cc",
            "t0: r(x,1) w(x,1); t1: w(x,1)",
            "t0:0 po t0:1, t0:1 wr t0:0".into(),
            edge("edges[1]", Flaw::NotGiven),
        ),
        (
            "cc",
            "t0: r(x,1) w(x,1)!",
            "t0:0 po t0:1, t0:1 wr t0:0".into(),
            edge("edges[1]", Flaw::NotGiven),
        ),
        (
            "sc",
            "t0: w(x,1)? r(x,0)",
            "t0:0 po t0:1, t0:1 rw t0:0 (init:x wr t0:1, init:x po t0:0)".into(),
            edge("edges[1]", Flaw::Premises),
        ),
        // Both relations of TSO are mixed on one cycle or one path.
        (
            "tso",
            "t0: w(x,1) r(x,1) r(y,0); t1: w(y,1) r(y,1) r(x,0)",
            "t0:0 poloc t0:1, t0:1 ppo t0:2, t0:2 rw t1:0 (init:y wr t0:2, init:y ww t1:0), \
             t1:0 poloc t1:1, t1:1 ppo t1:2, t1:2 rw t0:0 (init:x wr t1:2, init:x ww t0:0)"
                .into(),
            ("edges".into(), None),
        ),
        (
            "tso",
            "t0: w(x,1) r(x,1)",
            "t0:0 wre t0:1, t0:1 po t0:0".into(),
            edge("edges[0]", Flaw::NotGiven),
        ),
        (
            "tso",
            "t0: w(x,1) r(x,1) w(y,1) w(x,2); t1: r(x,2) r(x,1)",
            "t0:3 wre t1:0, t1:0 ppo t1:1, t1:1 rw t0:3 (t0:0 wre t1:1, t0:0 poloc t0:1, t0:1 ppo t0:3)"
                .into(),
            edge("edges[2]", Flaw::Premises),
        ),
        (
            "tso",
            "t0: w(x,1) r(x,1) w(y,1) w(x,2)",
            "t0:0 ww t0:3 (t0:0 poloc t0:1, t0:1 ppo t0:3), t0:3 ww t0:0".into(),
            edge("edges[0]", Flaw::Premises),
        ),
        ("tso", "t0: w(x,1) w(y,1)", "t0:0 poloc t0:1, t0:1 poloc t0:0".into(), edge("edges[0]", Flaw::NotGiven)),
        ("tso", "t0: f w(x,1)? f", "t0:0 poloc t0:2, t0:2 poloc t0:0".into(), edge("edges[0]", Flaw::NotGiven)),
        ("sc", "t0: w(x,1) w(x,2)", "t0:0 poloc t0:1, t0:1 ww t0:0".into(), edge("edges[0]", Flaw::NoRule)),
        // A chain of `ppo` through an operation that does not count.
        (
            "tso",
            "t0: w(x,1) r(z,0)! r(y,0)",
            "t0:0 ppo t0:1, t0:1 ppo t0:0".into(),
            edge("edges[0]", Flaw::NotGiven),
        ),
    ] {
        let h = history(h);
        let (found_part, found_flaw) = match violation(&h, model, &cycle).unwrap_err() {
            Rejection::Edge { part, flaw, .. } => (part, Some(flaw)),
            Rejection::NotACycle { part }
            | Rejection::AllowedCycle { part }
            | Rejection::NotRecorded { part, .. } => (part, None),
            other => panic!("{other}"),
        };
        assert_eq!((found_part, found_flaw), (part, flaw), "{model}; {}; {cycle}", text(&h));
    }
    let rejection = violation(&history(h), "cc", &good.replace("t0:2 wr t1:0", "t0:2 po t1:0"));
    assert_eq!(
        rejection.unwrap_err().to_string(),
        "`edges[2]`: `po` from t0:2 to t1:0 does not follow: the history does not have it"
    );
}

/// Two readers that disagree on the order of two writes.
const DISAGREEMENT: &str = "t0: w(x,1); t1: w(x,2); t2: r(x,1) r(x,2); t3: r(x,2) r(x,1)";

/// Returns the proof that the first of two writes is not first, by the reader that saw the other
/// one first.
fn reversed(first: &str, second: &str, reader: &str, base: [&str; 2]) -> String {
    let [po, wr] = base;
    cycle_json(&format!(
        "{second} {wr} {reader}:0, {reader}:0 {po} {reader}:1, \
         {reader}:1 rw {second} ({first} wr {reader}:1, {first} ww {second})"
    ))
}

#[test]
fn cases_of_two_writes_have_to_be_both_closed() {
    let h = history(DISAGREEMENT);
    let cases = |split: &str, first: &str, second: &str| {
        parse(&h, &format!(r#"{{"kind":"cases","split":[{split}],"branches":[{first},{second}]}}"#))
    };
    let judge = |model: &str, certificate| certify(&h, model, Verdict::Violation, &certificate);
    for (model, base) in [("sc", ["po", "wr"]), ("tso", ["ppo", "wre"]), ("tso", ["poloc", "wre"])]
    {
        let t0_first = &reversed("t0:0", "t1:0", "t3", base);
        let t1_first = &reversed("t1:0", "t0:0", "t2", base);
        assert_eq!(judge(model, cases(r#""t0:0","t1:0""#, t0_first, t1_first)), Ok(()));
        assert_eq!(judge(model, cases(r#""t1:0","t0:0""#, t1_first, t0_first)), Ok(()));
        // An assumption holds only in its own branch.
        for (first, second) in [(t1_first, t0_first), (t0_first, t0_first), (t1_first, t1_first)] {
            let rejection = judge(model, cases(r#""t0:0","t1:0""#, first, second)).unwrap_err();
            assert!(matches!(rejection, Rejection::Edge { .. }), "{rejection}");
        }
        let rejection = judge(model, cases(r#""t0:0","t0:0""#, t0_first, t0_first)).unwrap_err();
        assert!(matches!(rejection, Rejection::BadSplit { .. }), "{rejection}");
        for split in [r#""t2:0","t1:0""#, r#""t0:0","t3:1""#] {
            let rejection = judge(model, cases(split, t0_first, t1_first)).unwrap_err();
            assert!(matches!(rejection, Rejection::BadSplit { .. }), "{rejection}");
        }
        // If the same split is nested, each level may use its own assumption.
        let nested = json(&h, &cases(r#""t0:0","t1:0""#, t0_first, t1_first));
        assert_eq!(judge(model, cases(r#""t0:0","t1:0""#, t0_first, &nested)), Ok(()));
        assert!(judge("ccv", cases(r#""t0:0","t1:0""#, t0_first, t1_first)).is_err());
    }
}

#[test]
fn a_write_that_maybe_never_happened_cannot_be_ordered() {
    let h = history("t0: w(x,1)?; t1: w(x,2)");
    let thin = Certificate::ThinAirRead { read: OpId(0) };
    let split = Certificate::SplitOrder {
        writes: [OpId(0), OpId(1)],
        branches: Box::new([thin.clone(), thin]),
    };
    let rejection = certify(&h, "sc", Verdict::Violation, &split).unwrap_err();
    assert!(matches!(rejection, Rejection::BadSplit { .. }), "{rejection}");
}

#[test]
fn cases_of_a_read_are_exactly_its_candidates() {
    let h = history("t0: r(x,1) w(x,1) w(x,1); t1: w(x,2) r(x,1)!");
    let future = |write: &str| cycle_json(&format!("t0:0 po {write}, {write} wr t0:0"));
    let judge = |read: &str, cases: &[(&str, &str)]| {
        let sources: Vec<String> = cases.iter().map(|(w, _)| format!("{w:?}")).collect();
        let branches: Vec<String> = cases.iter().map(|(_, proof)| future(proof)).collect();
        let (sources, branches) = (sources.join(","), branches.join(","));
        let json = format!(
            r#"{{"kind":"cases","read":{read:?},"sources":[{sources}],"branches":[{branches}]}}"#
        );
        certify(&h, "my-own", Verdict::Violation, &parse(&h, &json))
    };
    let (a, b) = (("t0:1", "t0:1"), ("t0:2", "t0:2"));
    assert_eq!(judge("t0:0", &[a, b]), Ok(()));
    assert_eq!(judge("t0:0", &[b, a]), Ok(()));
    for cases in [
        &[][..],
        &[a],
        &[b],
        &[a, a],
        &[a, b, a],
        &[a, b, ("t1:0", "t0:1")],
        &[a, b, ("init:x", "t0:1")],
    ] {
        let rejection = judge("t0:0", cases).unwrap_err();
        assert!(matches!(rejection, Rejection::BadCases { .. }), "{cases:?}: {rejection}");
    }
    for read in ["t0:1", "t1:0", "t1:1"] {
        for cases in [&[][..], &[a, b]] {
            let rejection = judge(read, cases).unwrap_err();
            assert!(matches!(rejection, Rejection::BadCases { .. }), "{read}: {rejection}");
        }
    }
    assert!(matches!(judge("init:x", &[]), Err(Rejection::NotRecorded { .. })));
    // A branch may use only its own choice, not the choice of another branch.
    for cases in [[("t0:1", "t0:1"), ("t0:2", "t0:1")], [("t0:1", "t0:2"), ("t0:2", "t0:2")]] {
        let rejection = judge("t0:0", &cases).unwrap_err();
        assert!(matches!(rejection, Rejection::Edge { flaw: Flaw::NotGiven, .. }), "{rejection}");
    }
}

#[test]
fn what_a_case_assumes_is_forgotten_behind_it() {
    let judge = |h: &History, proof: &Certificate| certify(h, "sc", Verdict::Violation, proof);
    let cycle = |h: &History, cycle: &str| parse(h, &cycle_json(cycle));
    // Each case of the read closes itself, but does not prove the other order of the writes.
    let h = history("t0: r(x,1) w(x,1) w(x,1)");
    let [read, a, b] = [0, 1, 2].map(OpId);
    let future = [cycle(&h, "t0:0 po t0:1, t0:1 wr t0:0"), cycle(&h, "t0:0 po t0:2, t0:2 wr t0:0")];
    let both = [(a, future[0].clone()), (b, future[1].clone())];
    let split = Certificate::SplitRead { read, branches: both.to_vec() };
    assert_eq!(judge(&h, &split), Ok(()));
    for leaf in future {
        let branches = Box::new([split.clone(), leaf]);
        let rejection =
            judge(&h, &Certificate::SplitOrder { writes: [a, b], branches }).unwrap_err();
        assert!(
            matches!(&rejection, Rejection::Edge { part, .. } if part.starts_with("branches[1]"))
        );
    }
    // The indeterminate write counts only where it is read from.
    let h = history("t0: w(x,1)? w(y,1); t1: w(x,1); t2: r(y,1) r(x,0) r(x,1)");
    let overwritten = "t2:1 rw t0:0 (init:x wr t2:1, init:x po t0:0), t0:0 po t0:1, \
         t0:1 wr t2:0, t2:0 po t2:1";
    let certificate = Certificate::SplitRead {
        read: h.find("t2:2").unwrap(),
        branches: ["t0:0", "t1:0"]
            .map(|write| (h.find(write).unwrap(), cycle(&h, overwritten)))
            .to_vec(),
    };
    let rejection = judge(&h, &certificate).unwrap_err();
    assert!(
        matches!(&rejection, Rejection::Edge { part, .. } if part == "branches[1].edges[0]"),
        "{rejection}"
    );
}

#[test]
fn nesting_has_no_bound() {
    let h = history("t0: w(x,1) w(x,2); t1: r(x,2) r(x,1)");
    let [w1, w2, r2, r1] = [0, 1, 2, 3].map(OpId);
    let mut ww = Edge::derived(w1, w2, "ww", vec![Edge::given(w1, w2, "po")]);
    for _ in 0..3_000 {
        ww = Edge::derived(w1, w2, "ww", vec![ww]);
    }
    let rw = Edge::derived(r1, w2, "rw", vec![Edge::given(w1, r1, "wr"), ww]);
    let edges = vec![rw, Edge::given(w2, r2, "wr"), Edge::given(r2, r1, "po")];
    let mut proof = Certificate::Cycle { edges, observer: None, check: None };
    for _ in 0..500 {
        let impossible = Edge::given(w2, w1, "ww");
        let edges = vec![Edge::given(w1, w2, "po"), impossible];
        let other = Certificate::Cycle { edges, observer: None, check: None };
        proof = Certificate::SplitOrder { writes: [w1, w2], branches: Box::new([proof, other]) };
    }
    assert_eq!(certify(&h, "sc", Verdict::Violation, &proof), Ok(()));
}

#[test]
fn ids_that_the_history_does_not_have_are_rejected() {
    let h = history("t0: w(x,1); t1: r(x,1)");
    let far = OpId(u32::MAX);
    let leaf = Certificate::ThinAirRead { read: far };
    let cycle = |edges, observer| Certificate::Cycle { edges, observer, check: None };
    for certificate in [
        leaf.clone(),
        cycle(vec![Edge::given(far, far, "po")], None),
        cycle(vec![Edge::given(OpId(0), far, "wr"), Edge::given(far, OpId(0), "wr")], None),
        cycle(vec![Edge::given(OpId(0), OpId(0), "po")], Some(far)),
        Certificate::SplitOrder {
            writes: [OpId(0), far],
            branches: Box::new([leaf.clone(), leaf.clone()]),
        },
        Certificate::SplitRead { read: far, branches: vec![] },
        Certificate::SplitRead { read: OpId(1), branches: vec![(far, leaf)] },
    ] {
        for model in MODELS {
            assert!(certify(&h, model, Verdict::Violation, &certificate).is_err());
        }
    }
}
