//! The facade: histories in, certified verdicts out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use consistory::{Case, Court, Error, Family, Outcome, Stage};

const MESSAGE_PASSING: &str = "t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)";
const STORE_BUFFERING: &str = "t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)";
const OUT_OF_ORDER: &str =
    "t0: enqueue(1) @1..2 enqueue(2) @3..4\nt1: dequeue() => 2 @5..6 dequeue() => 1 @7..8";

#[test]
fn a_violation_is_explained_drawn_shrunk_and_written() {
    let text = format!("{MESSAGE_PASSING} w(z,1)\nt2: r(z,1) w(u,2)");
    let history = consistory::parse(&text).unwrap();
    let verdict = consistory::check(&history, "CC").unwrap();
    assert_eq!(verdict.outcome(), Outcome::Violation);
    assert_eq!(verdict.pattern().unwrap(), "WriteCOInitRead");
    assert!(verdict.explain().starts_with("The history violates cc.\nWriteCOInitRead: "));
    assert!(verdict.draw().starts_with("<svg"));
    assert!(verdict.json().contains("\"pattern\":\"WriteCOInitRead\""));
    let shrunk = verdict.shrink().unwrap();
    assert!(shrunk.is_minimal() && shrunk.is_violation());
    assert_eq!(shrunk.history().len(), 4);
    assert_eq!(shrunk.text().trim(), "t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)");
}

#[test]
fn a_stronger_model_falls_with_a_weaker_one_and_its_proof_is_still_accepted() {
    let history = consistory::parse(MESSAGE_PASSING).unwrap();
    let report = Court::registers().models(["tso", "rmo", "cc"]).unwrap().judge(&history).unwrap();
    assert_eq!(report.iter().map(|v| v.via()).collect::<Vec<_>>(), [Some("cc"), None, None]);
    assert!(report[0].is_violation() && report[0].rejection().is_none());
    assert!(report[0].explain().starts_with("The history violates cc, and so tso."));
    assert!(report[1].is_consistent());
}

#[test]
fn without_models_the_strongest_are_reported_for_registers_and_for_calls() {
    let court = Court::new();
    let history = consistory::parse(STORE_BUFFERING).unwrap();
    let report = court.judge(&history).unwrap();
    assert!(report.object().is_none());
    assert!(report.strongest().unwrap().contains(&"tso".to_owned()), "{:?}", report.strongest());
    assert!(!report.strongest().unwrap().contains(&"sc".to_owned()));
    let history = consistory::parse(OUT_OF_ORDER).unwrap();
    let report = court.judge(&history).unwrap();
    assert_eq!(report.object().unwrap().name(), "queue");
    assert!(report.iter().all(|verdict| verdict.model().family() == Family::Objects));
    assert!(report[0].is_violation(), "{}", report[0]);
    assert!(!report.strongest().unwrap().contains(&"linearizability".to_owned()));
    assert!(!report[0].explain().contains('\u{1b}'), "an explanation is plain text");
}

#[test]
fn an_object_of_a_file_and_levels_of_its_methods() {
    let court = Court::object("set").unwrap().levels("size=weak").unwrap();
    let history = consistory::parse("t0: add(1) => true @1..2 size() => 0 @3..4").unwrap();
    let report = court.judge(&history).unwrap();
    assert_eq!(report.len(), 1);
    assert!(report[0].is_consistent(), "{}", report[0]);
    assert!(matches!(
        Court::object("set").unwrap().levels("grow=weak"),
        Err(Error::UnknownMethod { .. })
    ));
}

#[test]
fn errors_say_what_is_wrong_and_what_to_do() {
    let unknown = Court::new().models(["linearisability"]).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no model `linearisability`");
    assert!(unknown.hint().unwrap().contains("`linearizability`"));
    let mixed = Court::new().models(["sc", "ser"]).unwrap_err();
    assert_eq!(mixed.to_string(), "`ser` is not a model of registers");
    assert!(
        Court::new().models(["sc", "linearizability"]).is_ok(),
        "it is a model of registers too"
    );
    assert!(matches!(Court::object("quue"), Err(Error::UnknownObject { .. })));
    let malformed = consistory::parse("t0: w(x 1)").unwrap_err();
    assert!(malformed.to_string().starts_with("text:1:9: "), "{malformed}");
    assert!(matches!(consistory::parse("t0: w(x,1)\n---\nt0: w(x,1)"), Err(Error::Several { .. })));
    let calls = consistory::parse(OUT_OF_ORDER).unwrap();
    let refused = Court::registers().models(["sc"]).unwrap().judge(&calls).unwrap_err();
    assert!(refused.to_string().starts_with("sc does not apply: "), "{refused}");
    assert!(consistory::read("/no/such/file").unwrap().next().unwrap().is_err());
}

#[test]
fn many_histories_are_reported_on_in_the_order_in_which_they_come() {
    let texts = [MESSAGE_PASSING, STORE_BUFFERING];
    let cases = (0..200u64).map(move |index| {
        if index == 100 {
            return Err(Error::NoModel);
        }
        let history = consistory::parse(texts[index as usize % 2])?;
        Ok(Case { index, ..Case::from(history) })
    });
    let court = Court::registers().models(["cc"]).unwrap().jobs(3).budget(Duration::from_secs(9));
    let reports: Vec<_> = court.judge_all(cases).collect();
    assert_eq!(reports.len(), 200);
    for (index, report) in reports.iter().enumerate() {
        match report {
            Ok(report) => {
                assert_eq!(report.index(), index as u64);
                assert_eq!(report[0].is_violation(), index % 2 == 0);
            }
            Err(error) => assert!(index == 100 && matches!(error, Error::NoModel)),
        }
    }
}

#[test]
fn stages_are_reported() {
    let certified = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&certified);
    let court = Court::registers().models(["cc", "sc"]).unwrap().on_progress(move |stage| {
        if let Stage::Certifying { done, total } = stage {
            assert!(done <= total && total == 2);
            seen.fetch_max(done, Ordering::Relaxed);
        }
    });
    court.judge(&consistory::parse(MESSAGE_PASSING).unwrap()).unwrap();
    assert_eq!(certified.load(Ordering::Relaxed), 2);
}

/// Serializability, as a user-defined model.
const OWN_SERIALIZABILITY: &str = "\"Own\"\ninclude \"transactions.cat\"\nwith ww from store-orders\n\
    acyclic causes | lift(ww) | lift(rw(ww)) as CyclicOwn";

#[test]
fn own_and_catalogued_levels_are_judged_in_one_call() {
    use consistory::ClientOrder;
    let skew = consistory::parse("a: [ r(x,0) w(y,1) ]\nb: [ r(y,0) w(x,1) ]").unwrap();
    let court = |first: &[&str], then: &[&str]| {
        let court = Court::new().models(first).unwrap();
        court.definition("own.cat", OWN_SERIALIZABILITY).unwrap().models(then).unwrap()
    };
    let ids = |court: &Court| court.named_models().map(str::to_owned).collect::<Vec<_>>();
    for court in [court(&[], &["si", "ser"]), court(&["si", "ser"], &[])] {
        let report = court.judge(&skew).unwrap();
        let judged: Vec<_> = report.iter().map(|v| (v.model().id(), v.outcome())).collect();
        let expected = |id: &str| match id {
            "si" => Outcome::Consistent,
            _ => Outcome::Violation,
        };
        assert_eq!(judged.len(), 3);
        assert_eq!(judged.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids(&court));
        assert!(judged.iter().all(|(id, outcome)| *outcome == expected(id)), "{judged:?}");
        assert!(report.iter().all(|verdict| verdict.model().family() == Family::Transactions));
        let own = report.iter().find(|verdict| verdict.model().id() == "own.cat").unwrap();
        assert_eq!(own.pattern().unwrap(), "CyclicOwn");
        assert!(own.shrink().unwrap().is_violation());
    }
    // The order affects both.
    let stale = consistory::parse("a: w(x,1) @1..2\nb: r(x,0) @3..4").unwrap();
    let sessions = consistory::parse("a: [ w(x,1) ] [ r(x,0) ]").unwrap();
    for (history, order, expected) in [
        (&stale, ClientOrder::Session, Outcome::Consistent),
        (&stale, ClientOrder::Realtime, Outcome::Violation),
        (&sessions, ClientOrder::Session, Outcome::Violation),
        (&sessions, ClientOrder::None, Outcome::Consistent),
    ] {
        let report = court(&[], &["ser"]).order(order).judge(history).unwrap();
        assert_eq!(report.iter().count(), 2);
        for verdict in report.iter() {
            assert_eq!(verdict.outcome(), expected, "{} {order:?}", verdict.model().id());
            assert!(verdict.json().contains(&format!("\"order\":\"{}\"", order.id())));
        }
    }
    // Models of registers and isolation levels cannot be combined.
    assert!(court(&[], &[]).models(["si", "sc"]).is_err());
    assert!(court(&["sc"], &[]).models(["si"]).is_err());
    assert!(court(&[], &["sc"]).judge(&stale).unwrap().iter().count() == 2);
}
