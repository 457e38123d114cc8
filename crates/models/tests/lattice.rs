//! The catalogue and its lattice.

use consistory_models::{
    Standing, catalogue, find, implications, implies, lattice, lattice_dot, lattice_text, strongest,
};
use expect_test::expect;

#[test]
fn every_model_describes_itself() {
    for model in catalogue() {
        assert_eq!(model.definition.id(), Some(model.id));
        assert!(!model.name.is_empty() && !model.source.is_empty(), "{}", model.id);
        assert!(model.meaning.ends_with('.'), "{}", model.id);
        assert!(model.text.starts_with(&format!("\"{}\"", model.title)), "{}", model.id);
        for check in model.definition.checks() {
            assert_ne!(check.name, check.text, "the checks of {} have names", model.id);
        }
        for claim in model.definition.implies() {
            assert!(find(&claim.implied).is_ok(), "{} implies {}", model.id, claim.implied);
        }
    }
}

#[test]
fn unknown_ids_get_a_hint() {
    assert_eq!(find("tos").unwrap_err().hint, "did you mean `tso`?");
    assert_eq!(find("CCV").unwrap_err().hint, "did you mean `ccv` or `cc` or `ccm`?");
    let error = find("serializability").unwrap_err();
    assert_eq!(error.to_string(), "no model is called `serializability`");
    assert_eq!(error.hint, "there are cc, ccv, cm, ccm, wsc, sc, wccm, wtso, rmo, pso, tso");
}

#[test]
fn implications_follow_by_transitivity() {
    for (from, to) in [("sc", "cc"), ("sc", "wccm"), ("wsc", "wccm"), ("tso", "ccv"), ("cm", "cm")]
    {
        assert!(implies(from, to).is_some_and(|s| s.is_proved()), "{from} implies {to}");
    }
    for (from, to) in [("cc", "sc"), ("ccv", "cm"), ("tso", "cm"), ("wccm", "cm"), ("x", "x")] {
        assert_eq!(implies(from, to), None, "{from} is not known to imply {to}");
    }
    assert_eq!(implies("ccv", "cc"), Some(Standing::Definition));
    expect!["proved: sc implies wsc, wsc implies ccm, ccm implies cm"]
        .assert_eq(&implies("sc", "cm").unwrap().to_string());
    assert!(implications().iter().any(|i| (i.from, i.to) == ("wccm", "ccv")));
}

#[test]
fn the_strongest_are_implied_by_no_other() {
    assert_eq!(strongest(&["cc", "ccv", "cm"]), ["ccv", "cm"]);
    assert_eq!(strongest(&["wccm", "sc", "cc", "sc"]), ["sc"]);
    assert_eq!(strongest(&["cc", "tso", "ccv", "cm"]), ["tso", "cm"]);
    assert_eq!(strongest(&[]), [""; 0]);
}

#[test]
fn the_drawing_leaves_out_what_follows() {
    expect![[r#"
        sc    => wsc   proved: thesis, Lemma 12
        sc    => tso   proved: with one ww, both relations of TSO are part of that of SC
        wsc   => ccm   proved: thesis, Lemma 9
        wsc   => wtso  proved: the relations of wTSO are part of those of wSC (docs/models.md)
        tso   => wtso  proved: thesis, Lemma 19
        tso   => pso   proved: with one ww, both relations of PSO are part of those of TSO
        ccm   => wccm  proved: the relations of wCCM are part of those of CCM (docs/models.md)
        ccm   => cm    proved: CAV 2019, Lemma 1
        wtso  => wccm  proved: thesis, Lemma 16
        wccm  => ccv   proved: a causal path from a write leads forward in hb-ppo, or in hb-poloc within a session (docs/models.md)
        ccv   => cc    by definition
        cm    => cc    by definition
        pso   => rmo   proved: with one ww, both relations of RMO are part of those of PSO
    "#]]
    .assert_eq(&lattice_text());
    expect![[r#"
        digraph models {
          rankdir=TB;
          node [shape=box];
          cc [label="CC"];
          ccv [label="CCv"];
          cm [label="CM"];
          ccm [label="CCM"];
          wsc [label="wSC"];
          sc [label="SC"];
          wccm [label="wCCM"];
          wtso [label="wTSO"];
          rmo [label="RMO"];
          pso [label="PSO"];
          tso [label="TSO"];
          ccv -> cc;
          cm -> cc;
          ccm -> wccm;
          ccm -> cm;
          wsc -> ccm;
          wsc -> wtso;
          sc -> wsc;
          sc -> tso;
          wccm -> ccv;
          wtso -> wccm;
          pso -> rmo;
          tso -> wtso;
          tso -> pso;
        }
    "#]]
    .assert_eq(&lattice_dot());
    let mut ranks = lattice().nodes;
    ranks.sort_by_key(|&(id, rank)| (rank, id));
    expect![[r#"[("cc", 0), ("rmo", 0), ("ccv", 1), ("cm", 1), ("pso", 1), ("wccm", 2), ("ccm", 3), ("wtso", 3), ("tso", 4), ("wsc", 4), ("sc", 5)]"#]].assert_eq(&format!("{ranks:?}"));
}
