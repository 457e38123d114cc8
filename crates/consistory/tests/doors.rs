//! Inputs are not misread: small histories that could be taken for another kind, with the verdict
//! or the error that each must lead to.

use consistory::{Court, Error, History, parse};
use consistory_formats::{Format, parse_str};

fn hist(text: &str) -> History {
    parse(text).unwrap()
}

fn edn(text: &str) -> History {
    parse_str(text, Format::Edn, "test.edn").unwrap().remove(0)
}

/// Judges a history by linearizability of its inferred object; timed reads and writes are judged
/// without an object.
fn linearizable(history: &History) -> Result<(bool, String), Error> {
    let court = Court::new().models(["linearizability"])?;
    let report = court.judge(history)?;
    let object = report.object().map(|named| named.name().to_owned()).unwrap_or_default();
    Ok((report[0].is_consistent(), object))
}

fn assert_judged(history: &History, is_consistent: bool, object: &str) {
    assert_eq!(linearizable(history).unwrap(), (is_consistent, object.to_owned()));
}

/// Checks that a history is rejected, and that the message contains these words.
fn assert_refused(history: &History, words: &str) {
    let error = linearizable(history).unwrap_err();
    let message = format!("{error} ({})", error.hint().unwrap_or_default());
    assert!(message.contains(words), "{message}");
}

#[test]
fn an_empty_list_and_nil_are_the_same() {
    for found in ["[]", "nil"] {
        let text = format!(
            "{{:process 0, :type :invoke, :f :txn, :value [[:r 9 nil]]}}\n\
             {{:process 0, :type :ok, :f :txn, :value [[:r 9 {found}]]}}\n"
        );
        let history = edn(&text);
        let court = Court::object("transactions").unwrap().models(["linearizability"]).unwrap();
        assert!(court.judge(&history).unwrap()[0].is_consistent(), "{found}");
    }
    assert_judged(&hist("t: txn([[r,x,null]]) => [[r,x,[]]] @1..2"), true, "transactions");
    assert_judged(
        &hist("t: txn([[r,x,null]]) => [[r,x,[]]] @1..2 txn([[r,x,null]]) => [[r,x,null]] @3..4"),
        true,
        "transactions",
    );
    assert_judged(&hist("t: txn([[r,x,null]]) => [[r,x,[1]]] @1..2"), false, "transactions");
}

#[test]
fn final_values_are_refused_where_nothing_looks_at_them() {
    let history = hist("t0: w(x,1)@1..2 w(x,2)@3..4\nfinal: x=1");
    assert_refused(&history, "final value of x");
    assert_refused(&hist("t0: write(1) => ? @1..2\nfinal: x=1"), "final value of x");
}

#[test]
fn initial_values_of_calls_are_obeyed() {
    let read =
        |found: i64| hist(&format!("init: x=5\nt: txn([[r,x,null]]) => [[r,x,{found}]] @1..2"));
    assert_judged(&read(5), true, "transactions");
    assert_judged(&read(4), false, "transactions");
    let read = hist("init: x=5\nt0: read() => 5 @1..2 write(6) => ? @3..4");
    assert_judged(&read, true, "register");
    assert_judged(&hist("init: x=5\nt0: read() => 5 @1..2"), true, "register");
    let stale = hist("init: x=5\nt0: read() => 4 @1..2 write(6) => ? @3..4");
    assert_judged(&stale, false, "register");
    assert_refused(&hist("init: x=5\nt0: enqueue(1) @1..2 dequeue() => 1 @3..4"), "initial value");
}

#[test]
fn keys_may_start_with_different_values() {
    let text = "t0: w(x,1)@1..2 w(y,1)@3..4\nt1: r(y,1)@5..6 r(x,1)@7..8\ninit: x=5";
    assert_judged(&hist(text), true, "");
    let text = "t0: r(x,5)@1..2 r(y,0)@3..4 r(z,7)@5..6\ninit: x=5 z=7";
    assert_judged(&hist(text), true, "");
    let text = "t0: r(x,0)@1..2 r(y,0)@3..4\ninit: x=5";
    assert_judged(&hist(text), false, "");
}

#[test]
fn jepsens_set_is_not_a_counter() {
    let history = edn("{:process 0, :type :invoke, :f :add, :value 1}
        {:process 0, :type :ok, :f :add, :value 1}
        {:process 0, :type :invoke, :f :read, :value nil}
        {:process 0, :type :ok, :f :read, :value #{1}}");
    assert_judged(&history, true, "set");
}

#[test]
fn an_object_that_could_be_another_is_asked_for() {
    let history = hist("t0: offer(2) => true @1..2 offer(1) => true @3..4 poll() => 2 @5..6");
    assert_refused(&history, "queue");
    assert_refused(&history, "priority-queue");
}

#[test]
fn a_bank_needs_balances() {
    let transfer = "transfer([[from,0],[to,1],[amount,5]]) @1..2 read() => [[1,15],[0,5]] @3..4";
    assert_refused(&hist(&format!("t0: {transfer}")), "bank");
    assert_judged(&hist(&format!("init: 0=10 1=10\nt0: {transfer}")), true, "bank");
    assert_judged(&hist(&format!("init: 0=10 1=11\nt0: {transfer}")), false, "bank");
}

#[test]
fn a_value_on_the_invocation_of_a_read_is_ignored() {
    let history = edn("[{:process 1, :type :invoke, :f :write, :value 4}
        {:process 1, :type :ok, :f :write, :value 4}
        {:process 14, :type :invoke, :f :read, :value 4}
        {:process 14, :type :ok, :f :read, :value 4}]");
    assert_judged(&history, true, "register");
}

#[test]
fn json_of_jepsen_is_read() {
    let text = "[{\"process\":0,\"type\":\"invoke\",\"f\":\"cas\",\"value\":[1,2]},
        {\"process\":0,\"type\":\"info\",\"f\":\"cas\",\"value\":[1,2]}]";
    let format = Format::sniff(text).unwrap();
    let history = parse_str(text, format, "test.json").unwrap().remove(0);
    assert_judged(&history, true, "cas-register");
}
