//! Murphi in practice: spellings and features of other tools.

use consistory_protocol::{ConstantValue, Exploration, Explorer, Model, Options, Outcome};

fn model(text: &str) -> Model {
    Model::parse("test.m", text).unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

fn explore(model: &Model) -> Exploration {
    let options = Options { deadlock: false, ..Options::default() };
    Explorer::new(&model.plain()).options(options).run().unwrap()
}

/// Explores a description that must hold, and returns the number of its states.
fn states(text: &str) -> u64 {
    let explored = explore(&model(text));
    assert!(matches!(explored.outcome, Outcome::Holds), "{text}\n{:?}", explored.outcome);
    explored.progress.states
}

fn errors(text: &str) -> String {
    Model::parse("test.m", text).unwrap_err().to_string()
}

#[test]
fn names_of_the_language_are_written_in_any_case() {
    let text = "Type T: Boolean; Var x: BOOLEAN; y: T; StartState x := TRUE; y := False; EndStartState;\n\
                Rule y = FALSE ==> Begin x := Undefined; y := true; EndRule;\n\
                Invariant IsUndefined(x) | x != FALSE;";
    assert_eq!(states(text), 2);
    // A name that the description declares takes precedence.
    assert_eq!(
        states("const True: 3; var x: 0..3; startstate x := True; end; invariant x = 3;"),
        1
    );
}

#[test]
fn undefined_may_be_passed_and_is_copied_on() {
    let send = "type N: 0..2; M: record src: N; aux: N; end; var m: M;\n\
                procedure Send(src: N; aux: N); begin m.src := src; m.aux := aux; end;\n\
                startstate undefine m; end;\n";
    let copied = format!(
        "{send} rule isundefined(m.src) ==> Send(1, UNDEFINED); end; invariant isundefined(m.aux);"
    );
    assert_eq!(states(&copied), 2);
    // Computing with an undefined value is still an error.
    let computed = format!(
        "{send} procedure Bad(a: N); begin m.src := a + 1; end;\n\
         rule isundefined(m.src) ==> Bad(undefined); end;"
    );
    let explored = explore(&model(&computed));
    assert!(matches!(explored.outcome, Outcome::Violated { .. }), "{:?}", explored.outcome);
    let record =
        "type M: record a: 0..1; end; procedure P(m: M); begin end; startstate P(undefined); end;";
    assert!(errors(record).contains("a simple value is needed here"));
}

#[test]
fn one_loop_or_quantifier_has_several_variables() {
    let text = "type I: 0..1; J: 0..2; var x: array [I] of array [J] of boolean;\n\
                startstate for i: I; j: J do x[i][j] := false; end; end;\n\
                ruleset i: I; j: J do rule !x[i][j] ==> for k: I, l := 0 to 2 do x[k][l] := true; end; end; end;\n\
                invariant (forall i: I; j: J do x[i][j] end) | !exists i: I; j: J do x[i][j] end;";
    assert_eq!(states(text), 2);
    assert!(errors("startstate for i: 0..1, do end; end;").contains("expected `;` or `do`"));
}

/// Only enabled rules with the least number fire; a rule without a number has 50.
#[test]
fn priorities_order_rules() {
    let text = "var x: 0..9; startstate x := 0; end;\n\
                rule 60 \"last\" x < 9 ==> x := 9; end;\n\
                rule \"usual\" x > 0 & x < 4 ==> x := x + 1; end;\n\
                rule 10 \"first\" x = 0 ==> x := 1; end;\n\
                rule 10 \"again\" x = 2 ==> x := 5; end;";
    // The states are 0, 1, 2, 5 and 9: the usual rule never leads to 3, nor the last one from 0 to
    // 9.
    assert_eq!(states(text), 5);
    assert_eq!(states(&text.replace(" 60 ", " ").replace(" 10 ", " ")), 7);
}

#[test]
fn numbers_are_decimal_hexadecimal_and_octal() {
    let text = "const A: 0x1F; B: 017; C: 00; var x: 0..40; startstate x := A; end;\n\
                rule x = 31 ==> x := B; end; rule x = 15 ==> x := C + 0XA; end;";
    assert_eq!(states(text), 3);
    assert!(errors("const A: 0x; startstate end;").contains("`0x` is not a hexadecimal number"));
    assert!(errors("const A: 09; startstate end;").contains("`09` is not an octal number"));
    assert!(errors("const A: 12ab; startstate end;").contains("`12ab` is not a number"));
    assert!(errors("const A: 0xFFFFFFFF; startstate end;").contains("too large"));
}

#[test]
fn constants_are_given_from_outside() {
    let text = "const N: 2; ON: false; M: N * 2; var x: 0..M;\n\
                startstate x := 0; end; rule x < M & (ON | x < N) ==> x := x + 1; end;";
    let with = |constants: &[(&str, ConstantValue)]| {
        let constants: Vec<(String, ConstantValue)> =
            constants.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Model::parse_with("test.m", text, &constants)
    };
    let count =
        |constants: &[(&str, ConstantValue)]| explore(&with(constants).unwrap()).progress.states;
    assert_eq!(count(&[]), 3);
    assert_eq!(count(&[("N", ConstantValue::Integer(5))]), 6);
    let both = [("N", ConstantValue::Integer(5)), ("ON", ConstantValue::Boolean(true))];
    assert_eq!(count(&both), 11);
    let unknown = with(&[("P", ConstantValue::Integer(5))]).unwrap_err().to_string();
    assert!(unknown.contains("there is no constant `P`"), "{unknown}");
    let wrong = with(&[("N", ConstantValue::Boolean(true))]).unwrap_err().to_string();
    assert!(wrong.contains("its replacement must be too"), "{wrong}");
}

#[test]
fn marks_may_have_a_space_in_front() {
    let text = include_str!("../../../corpus/protocols/serial.m");
    for (old, new) in [("--@", "-- @"), ("--@ ", "--   @"), ("--@", "--@")] {
        assert_eq!(model(&text.replace(old, new)).missing_marks(), None);
    }
    // Other words after an `@` are ordinary comments.
    assert!(model(&text.replace("--@ load", "-- @author load")).missing_marks().is_some());
    let wrong = text.replace("--@ load proc=p", "-- @load process=p");
    assert!(Model::parse("test.m", &wrong).is_err());
}
