//! Each way to be wrong, with a history and a certificate of a few lines.

use consistory_certify::{Flaw, Rejection, certify_definition};
use consistory_history::{Action, HistoryBuilder};
use consistory_models::find;
use consistory_verdict::{Certificate, Edge, Verdict};

use super::support::{definition, history, judge, op, parse, verdict};

/// Checks a certificate in JSON for a model of the catalogue, or for a definition in text.
fn certify(model: &str, claim: Verdict, text: &str, certificate: &str) -> Result<(), Rejection> {
    let own = match find(model) {
        Ok(model) => model.definition.clone(),
        Err(_) => definition(model),
    };
    let h = history(text);
    certify_definition(&h, &own, claim, &parse(&h, certificate))
}

fn consistent(model: &str, text: &str, certificate: &str) -> Result<(), Rejection> {
    certify(model, Verdict::Consistent, text, certificate)
}

fn violation(model: &str, text: &str, certificate: &str) -> Result<(), Rejection> {
    certify(model, Verdict::Violation, text, certificate)
}

const BUFFERED: &str = "t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)\n";
const RACE: &str = "t0: w(x,1) r(x,2)\nt1: w(x,2) r(x,1)\n";

#[test]
fn a_witness_chooses_all_and_nothing_else() {
    let tso = |ww: &str, wr: &str| {
        consistent("tso", RACE, &format!(r#"{{"kind":"witness","ww":{{{ww}}},"wr":{{{wr}}}}}"#))
    };
    let bad = |part: &str, op: &str| Rejection::BadStoreOrder { part: part.into(), op: op.into() };
    assert_eq!(
        tso(r#""x":["init:x","t0:0","t1:0"]"#, ""),
        Err(Rejection::CheckFails { check: "CyclicPOLoc".into() })
    );
    assert_eq!(tso(r#""x":["t0:0","init:x","t1:0"]"#, ""), Err(bad("ww.x[0]", "t0:0")));
    assert_eq!(tso(r#""x":["init:x","t0:0","t0:0"]"#, ""), Err(bad("ww.x[2]", "t0:0")));
    assert_eq!(tso(r#""x":["init:x","t0:0","t0:1"]"#, ""), Err(bad("ww.x[2]", "t0:1")));
    assert_eq!(tso(r#""x":[]"#, ""), Err(bad("ww.x[0]", "init:x")));
    assert_eq!(
        tso(r#""x":["init:x","t0:0"]"#, ""),
        Err(Rejection::Missing { part: "ww".into(), op: "t1:0".into() })
    );
    assert_eq!(
        tso(r#""x":["init:x","t0:0","t1:0"]"#, r#""t0:1":"t0:0""#),
        Err(Rejection::BadChoice { read: "t0:1".into(), write: "t0:0".into() })
    );
    assert_eq!(
        consistent("wsc", BUFFERED, r#"{"kind":"witness","ww":{"x":["init:x","t0:0"]}}"#),
        Err(Rejection::NoStoreOrder { part: "ww".into() })
    );
}

#[test]
fn what_is_consistent_reads_what_was_written_before() {
    let read = || "t0:0".to_owned();
    assert_eq!(
        consistent(
            "tso",
            "t0: r(x,1) w(x,1)\n",
            r#"{"kind":"witness","ww":{"x":["init:x","t0:1"]}}"#
        ),
        Err(Rejection::BeforeItsWrite { part: "wr".into(), read: read(), write: "t0:1".into() })
    );
    assert_eq!(
        consistent("tso", "t0: r(x,1)\n", r#"{"kind":"witness","ww":{}}"#),
        Err(Rejection::NoCandidate { read: read() })
    );
    assert_eq!(
        consistent("tso", "t0: r(x,1)\nt1: w(x,1) w(x,1)\n", r#"{"kind":"witness","ww":{}}"#),
        Err(Rejection::NoChoice { read: read() })
    );
}

#[test]
fn an_order_is_one_of_all_operations() {
    let order = |ops: &str| {
        let ops: Vec<String> = ops.split(' ').map(|op| format!("{op:?}")).collect();
        let text = "t0: w(x,1)\nt1: r(x,1) r(x,0)\n";
        consistent("sc", text, &format!(r#"{{"kind":"order","order":[{}]}}"#, ops.join(",")))
    };
    assert_eq!(order("t0:0 t1:0 t1:1"), Err(Rejection::CheckFails { check: "CyclicSC".into() }));
    assert_eq!(
        order("t0:0 t1:1 t1:0"),
        Err(Rejection::OutOfOrder { part: "order[1]".into(), op: "t1:1".into() })
    );
    assert_eq!(
        order("t1:0 t0:0 t1:1"),
        Err(Rejection::BeforeItsWrite {
            part: "order[0]".into(),
            read: "t1:0".into(),
            write: "t0:0".into()
        })
    );
    assert_eq!(
        order("t0:0 t1:0"),
        Err(Rejection::Missing { part: "order".into(), op: "t1:1".into() })
    );
}

#[test]
fn a_final_value_is_that_of_the_last_write() {
    let text = "t0: w(x,1)\nt1: w(x,2)\nfinal: x=1\n";
    let witness = |order: &str| {
        let ops = order.split(' ').map(|op| format!("{op:?}")).collect::<Vec<_>>().join(",");
        consistent("tso", text, &format!(r#"{{"kind":"witness","ww":{{"x":["init:x",{ops}]}}}}"#))
    };
    assert_eq!(witness("t1:0 t0:0"), Ok(()));
    assert_eq!(witness("t0:0 t1:0"), Err(Rejection::NotFinal { write: "t1:0".into() }));
    let none = r#"{"kind":"cycle","edges":[]}"#;
    let not_a_cycle = || Err(Rejection::NotACycle { part: "edges".into() });
    assert_eq!(violation("tso", text, none), not_a_cycle());
    assert_eq!(violation("tso", "t0: w(x,1)\nfinal: x=2\n", none), Ok(()));
    assert_eq!(violation("wsc", text, none), Err(Rejection::FinalValue { key: "x".into() }));
    assert_eq!(
        violation("tso", "t0: w(x,1)?\nfinal: x=2\n", none),
        Err(Rejection::FinalValue { key: "x".into() })
    );
    // The initial value is overwritten, so it is not the final one; a value that is not overwritten
    // may be.
    let overwritten = |from: &str, to: &str| {
        format!(
            r#"{{"kind":"cycle","edges":[{{"from":"{from}","to":"{to}","relation":"ww"}},
                {{"from":"{to}","to":"{from}","relation":"final"}}]}}"#
        )
    };
    let kept = "t0: w(x,1)\nfinal: x=0\n";
    assert_eq!(violation("sc", kept, &overwritten("init:x", "t0:0")), Ok(()));
    let rejection = violation("sc", text, &overwritten("t0:0", "t1:0"));
    assert!(matches!(rejection, Err(Rejection::Edge { .. })), "{rejection:?}");
}

#[test]
fn a_bad_read_is_one() {
    let text = "t0: r(x,1) w(x,1)\nt1: w(y,1) r(y,1) r(y,2)\n";
    let future = |read: &str, write: &str| {
        format!(
            r#"{{"kind":"cycle","edges":[{{"from":"{read}","to":"{write}","relation":"po"}},
                {{"from":"{write}","to":"{read}","relation":"wr"}}]}}"#
        )
    };
    assert_eq!(violation("cm", text, &future("t0:0", "t0:1")), Ok(()));
    let rejection = violation("cm", text, &future("t1:1", "t1:0"));
    assert!(matches!(&rejection, Err(Rejection::Edge { relation, .. }) if relation == "po"));
    let rejection = violation("cm", text, &future("t1:0", "t1:1"));
    assert!(matches!(&rejection, Err(Rejection::Edge { relation, .. }) if relation == "wr"));
    let thin_air = |read: &str| format!(r#"{{"kind":"thin-air-read","read":"{read}"}}"#);
    assert_eq!(violation("cm", text, &thin_air("t1:2")), Ok(()));
    assert_eq!(
        violation("cm", text, &thin_air("t1:1")),
        Err(Rejection::NotThinAir { part: "read".into(), op: "t1:1".into() })
    );
}

/// Returns the cycle of store buffering, which sequential consistency forbids.
fn store_buffering(relation: &str, source: &str, check: &str) -> String {
    format!(
        r#"{{"kind":"cycle","edges":[
            {{"from":"t0:0","to":"t0:1","relation":"{relation}"}},
            {{"from":"t0:1","to":"t1:0","relation":"rw[ww]","because":[
                {{"from":"{source}","to":"t0:1","relation":"wr"}},
                {{"from":"init:y","to":"t1:0","relation":"ww"}}]}},
            {{"from":"t1:0","to":"t1:1","relation":"po"}},
            {{"from":"t1:1","to":"t0:0","relation":"rw[ww]"}}]{check}}}"#
    )
}

#[test]
fn a_check_that_is_said_to_fail_does() {
    let right = store_buffering("po", "init:y", r#","check":0"#);
    assert_eq!(violation("sc", BUFFERED, &right), Ok(()));
    assert_eq!(
        violation("tso", BUFFERED, &right),
        Err(Rejection::CheckHolds { part: "check".into(), check: "CyclicPPO".into() })
    );
    assert_eq!(
        violation("sc", BUFFERED, &store_buffering("po", "init:y", r#","check":1"#)),
        Err(Rejection::NoSuchCheck { part: "check".into() })
    );
    assert_eq!(
        violation("sc", BUFFERED, &store_buffering("po", "init:y", "")),
        Err(Rejection::NotACycle { part: "edges".into() })
    );
    assert_eq!(
        violation(
            "sc",
            BUFFERED,
            &store_buffering("po", "init:y", r#","check":0,"observer":"t0:0""#)
        ),
        Err(Rejection::NoSuchCheck { part: "observer".into() })
    );
}

#[test]
fn the_edges_that_are_shown_are_there() {
    let flawed = |part: &str, relation: &str, from: &str, to: &str| Rejection::Edge {
        part: part.into(),
        relation: relation.into(),
        from: from.into(),
        to: to.into(),
        flaw: Flaw::NotGiven,
    };
    assert_eq!(
        violation("sc", BUFFERED, &store_buffering("wr", "init:y", r#","check":0"#)),
        Err(flawed("edges[0]", "wr", "t0:0", "t0:1"))
    );
    assert_eq!(
        violation("sc", BUFFERED, &store_buffering("po", "t1:0", r#","check":0"#)),
        Err(flawed("edges[1].because[0]", "wr", "t1:0", "t0:1"))
    );
    // A name `poloc` that the definition binds is known too, unlike an unbound name.
    assert_eq!(
        violation("sc", BUFFERED, &store_buffering("poloc", "init:y", r#","check":0"#)),
        Err(flawed("edges[0]", "poloc", "t0:0", "t0:1"))
    );
    assert_eq!(
        violation("sc", BUFFERED, &store_buffering("somehow", "init:y", r#","check":0"#)),
        Ok(())
    );
    let walk = |ends: &[(&str, &str)]| {
        let edges: Vec<String> = ends
            .iter()
            .map(|(from, to)| format!(r#"{{"from":"{from}","to":"{to}","relation":"r"}}"#))
            .collect();
        let json = format!(r#"{{"kind":"cycle","edges":[{}],"check":0}}"#, edges.join(","));
        violation("sc", BUFFERED, &json)
    };
    // A step of the relation may be shown by several edges, but the relation must contain the step.
    let full = [("t0:0", "t0:1"), ("t0:1", "t1:0"), ("t1:0", "t1:1"), ("t1:1", "t0:0")];
    let long =
        [("t0:0", "t1:1"), ("t1:1", "t0:1"), ("t0:1", "t1:0"), ("t1:0", "t1:1"), ("t1:1", "t0:0")];
    let short = [("t0:0", "t1:0"), ("t1:0", "t0:0")];
    let open = [("t0:0", "t0:1"), ("t0:1", "t1:0"), ("t1:0", "t1:1")];
    assert_eq!(walk(&full), Ok(()));
    assert_eq!(walk(&long), Ok(()));
    assert_eq!(walk(&short), Err(Rejection::AllowedCycle { part: "edges".into() }));
    assert_eq!(walk(&open), Err(Rejection::NotACycle { part: "edges".into() }));
    assert_eq!(walk(&[]), Err(Rejection::NotACycle { part: "edges".into() }));
}

#[test]
fn a_quantified_check_fails_for_an_operation_of_its_set() {
    let own = "forall o in R do empty [o] ; po as NotLast end";
    let cycle = |to: &str, observer: &str| {
        format!(
            r#"{{"kind":"cycle","edges":[{{"from":"t0:0","to":"{to}","relation":"po"}}],
                "check":0{observer}}}"#
        )
    };
    let text = "t0: r(x,0) w(x,1) r(x,1)\n";
    assert_eq!(violation(own, text, &cycle("t0:1", r#","observer":"t0:0""#)), Ok(()));
    let no_such = Err(Rejection::NoSuchCheck { part: "observer".into() });
    assert_eq!(violation(own, text, &cycle("t0:1", "")), no_such);
    assert_eq!(violation(own, text, &cycle("t0:1", r#","observer":"t0:1""#)), no_such);
    assert_eq!(
        violation(own, text, &cycle("t0:1", r#","observer":"t0:2""#)),
        Err(Rejection::CheckHolds { part: "check".into(), check: "NotLast".into() })
    );
}

#[test]
fn what_is_left_open_must_not_repair_a_check() {
    // Both writes write 1, so it is open whether the first one is read.
    let text = "t0: w(x,1)\nt1: w(x,1)\nt2: r(x,1)\n";
    let unread = |edge: &str| {
        format!(
            r#"{{"kind":"cycle","edges":[{{"from":"{edge}","to":"{edge}","relation":"unread"}}],
                "check":0}}"#
        )
    };
    let own = r"let unread = [(W \ IW) \ domain(wr)] empty unread as Unread";
    assert_eq!(
        violation(own, text, &unread("t0:0")),
        Err(Rejection::Unsettled { part: "check".into(), check: "Unread".into() })
    );
    let cases = format!(
        r#"{{"kind":"cases","read":"t2:0","sources":["t0:0","t1:0"],"branches":[{},{}]}}"#,
        unread("t1:0"),
        unread("t0:0")
    );
    assert_eq!(violation(own, text, &cases), Ok(()));
    // The same with the store order, most of which the initial writes leave open.
    let next = r"with ww from store-orders let next = ww \ (ww ; ww) acyclic next | ([W] ; po)^-1";
    let cycle = |middle: &str| {
        format!(
            r#"{{"kind":"cycle","check":0,"edges":[
                {{"from":"init:x","to":"{middle}","relation":"ww"}},
                {{"from":"{middle}","to":"init:x","relation":"(po)^-1"}}]}}"#
        )
    };
    assert_eq!(
        violation(next, text, &cycle("t0:0")),
        Err(Rejection::Unsettled {
            part: "check".into(),
            check: r"acyclic next | ([W] ; po)^-1".into()
        })
    );
    let split = format!(
        r#"{{"kind":"cases","split":["t0:0","t1:0"],"branches":[{},{}]}}"#,
        cycle("t0:0"),
        cycle("t1:0")
    );
    assert_eq!(violation(next, text, &split), Ok(()));
}

#[test]
fn a_write_that_may_come_to_count_can_repair_a_check() {
    // t1 reads from either write; if it reads from the indeterminate one, that write comes between.
    let text = "t0: w(x,1) w(y,1)? r(x,1)\nt1: w(y,1) r(y,1)\n";
    let own = r"let next = po \ (po ; po) empty [W] ; next ; [R] & loc as Adjacent";
    let pair = r#"{"kind":"cycle","check":0,"edges":[
        {"from":"t0:0","to":"t0:2","relation":"next"}]}"#;
    assert_eq!(
        violation(own, text, pair),
        Err(Rejection::Unsettled { part: "check".into(), check: "Adjacent".into() })
    );
    // Whether that write counts does not matter to a check of only the two operations.
    let local = r"let next = (po & loc) \ ext empty [W] ; next ; [R] & loc as Adjacent";
    assert_eq!(violation(local, text, pair), Ok(()));
}

#[test]
fn cases_are_all_the_cases() {
    let text = "t0: w(x,1) w(x,1)?\nt1: r(x,1)\nt2: w(x,2)\n";
    let leaf = r#"{"kind":"cycle","edges":[],"check":0}"#;
    let sources = |list: &str| {
        let n = list.split(',').count();
        let branches = vec![leaf; n].join(",");
        violation(
            "sc",
            text,
            &format!(
                r#"{{"kind":"cases","read":"t1:0","sources":[{list}],"branches":[{branches}]}}"#
            ),
        )
    };
    let bad = |write: &str| {
        Err(Rejection::BadCases {
            part: "sources".into(),
            read: "t1:0".into(),
            write: write.into(),
        })
    };
    assert_eq!(sources(r#""t0:0""#), bad("t0:1"));
    assert_eq!(sources(r#""t0:0","t0:1","t0:0""#), bad("t0:0"));
    assert_eq!(sources(r#""t0:0","t0:1","t2:0""#), bad("t2:0"));
    assert_eq!(
        sources(r#""t0:0","t0:1""#),
        Err(Rejection::CheckHolds { part: "branches[0].check".into(), check: "CyclicSC".into() })
    );
    let split = |model: &str, writes: &str| {
        let json = format!(r#"{{"kind":"cases","split":[{writes}],"branches":[{leaf},{leaf}]}}"#);
        violation(model, text, &json)
    };
    for pair in [r#""t0:0","t0:0""#, r#""t0:0","t1:0""#, r#""t0:0","t0:1""#] {
        let rejection = split("sc", pair);
        assert!(matches!(rejection, Err(Rejection::BadSplit { .. })), "{pair}: {rejection:?}");
    }
    assert_eq!(
        split("wsc", r#""t0:0","t2:0""#),
        Err(Rejection::NoStoreOrder { part: "split".into() })
    );
}

#[test]
fn a_claim_goes_with_its_kind() {
    let h = history(BUFFERED);
    let sc = &find("sc").unwrap().definition;
    let judgement = judge(sc, &h).unwrap();
    let (_, cycle) = verdict(&judgement);
    assert_eq!(
        certify_definition(&h, sc, Verdict::Consistent, cycle),
        Err(Rejection::Kind { kind: "cycle", claim: "consistent" })
    );
    assert_eq!(certify_definition(&h, sc, Verdict::Undecided, cycle), Err(Rejection::NoClaim));
    let order = Certificate::Order { order: Vec::new(), wr: Vec::new() };
    assert_eq!(
        certify_definition(&h, sc, Verdict::Violation, &order),
        Err(Rejection::Kind { kind: "order", claim: "violation" })
    );
    let text = "t0: [ w(x,1) w(x,2) ]\n";
    assert_eq!(
        consistent("sc", text, r#"{"kind":"order","order":["t0:0","t0:1"]}"#),
        Err(Rejection::Unsupported { what: "transactions" })
    );
}

#[test]
fn cases_and_premises_may_be_nested_deep() {
    let h = history(RACE);
    let sc = &find("sc").unwrap().definition;
    let [first, second] = [op(&h, "t0:0"), op(&h, "t1:0")];
    let mut edge = Edge::given(first, op(&h, "t0:1"), "po");
    for _ in 0..3_000 {
        edge = Edge::derived(first, second, "somehow", vec![edge]);
    }
    let leaf = || Certificate::Cycle { edges: vec![], observer: None, check: Some(0) };
    let mut deep = Certificate::Cycle { edges: vec![edge], observer: None, check: Some(0) };
    for _ in 0..3_000 {
        let branches = Box::new([deep, leaf()]);
        deep = Certificate::SplitOrder { writes: [first, second], branches };
    }
    let part = "branches[0].".repeat(3_000) + "edges";
    assert_eq!(
        certify_definition(&h, sc, Verdict::Violation, &deep),
        Err(Rejection::NotACycle { part })
    );
}

#[test]
fn there_are_limits() {
    let mut b = HistoryBuilder::new();
    let (session, key) = (b.session("t0"), b.key("x"));
    let one = b.int(1);
    for _ in 0..5_000 {
        b.push(session, Action::Read { key, value: one });
    }
    let h = b.finish().unwrap();
    let sc = &find("sc").unwrap().definition;
    let cycle = Certificate::Cycle { edges: vec![], observer: None, check: Some(0) };
    assert_eq!(
        certify_definition(&h, sc, Verdict::Violation, &cycle),
        Err(Rejection::TooLarge { operations: 5_001, limit: 2_048 })
    );
    // Certificates that need no relations have no limit of size.
    let thin_air = Certificate::ThinAirRead { read: h.ops().next().unwrap() };
    assert_eq!(certify_definition(&h, sc, Verdict::Violation, &thin_air), Ok(()));
}
