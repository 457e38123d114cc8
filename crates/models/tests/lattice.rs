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
    assert_eq!(error.to_string(), "there is no model `serializability`");
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
        ser   => si    proved: with one ww, each step of a cycle of SI is a path of SER
        wsc   => ccm   proved: thesis, Lemma 9
        wsc   => wtso  proved: the relations of wTSO are part of those of wSC (docs/models.md)
        tso   => wtso  proved: thesis, Lemma 19
        tso   => pso   proved: with one ww, both relations of PSO are part of those of TSO
        si    => pc    proved: with one ww, the relation of PC is part of that of SI
        si    => psi   proved: with one ww, each step of a cycle of PSI is one of SI
        ccm   => wccm  proved: the relations of wCCM are part of those of CCM (docs/models.md)
        ccm   => cm    proved: CAV 2019, Lemma 1
        wtso  => wccm  proved: thesis, Lemma 16
        pc    => tcc   proved: Biswas and Enea 2019, what causally precedes a transaction is in its prefix
        psi   => tcc   proved: with one ww, a write that causally precedes a read and overwrites what it read closes a cycle
        wccm  => ccv   proved: a causal path from a write leads forward in hb-ppo, or in hb-poloc within a session (docs/models.md)
        tcc   => ra    proved: so | wr is part of its closure
        ccv   => cc    by definition
        cm    => cc    by definition
        pso   => rmo   proved: with one ww, both relations of RMO are part of those of PSO
        ra    => rc    proved: the source of an earlier read is before the reader in so | wr
        tcc   =  ccv   where every transaction is one operation, proved: forced(causes+) is then cf(co), and a topological order gives the store order
        ser   =  sc    where every transaction is one operation, proved: the relations of both are then the same
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
          rc [label="RC"];
          ra [label="RA"];
          tcc [label="TCC"];
          pc [label="PC"];
          psi [label="PSI"];
          si [label="SI"];
          ser [label="SER"];
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
          ra -> rc;
          tcc -> ra;
          pc -> tcc;
          psi -> tcc;
          si -> pc;
          si -> psi;
          ser -> si;
        }
    "#]]
    .assert_eq(&lattice_dot());
    let mut ranks = lattice().nodes;
    ranks.sort_by_key(|&(id, rank)| (rank, id));
    expect![[r#"[("cc", 0), ("rc", 0), ("rmo", 0), ("ccv", 1), ("cm", 1), ("pso", 1), ("ra", 1), ("tcc", 2), ("wccm", 2), ("ccm", 3), ("pc", 3), ("psi", 3), ("wtso", 3), ("si", 4), ("tso", 4), ("wsc", 4), ("sc", 5), ("ser", 5)]"#]].assert_eq(&format!("{ranks:?}"));
}
