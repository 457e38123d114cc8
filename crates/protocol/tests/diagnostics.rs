//! Diagnostics of descriptions with errors: all errors are reported together, each with its
//! position.

use consistory_protocol::Model;
use expect_test::{Expect, expect};

fn check(text: &str, expected: Expect) {
    let errors = Model::parse("a.m", text).expect_err("it has errors");
    expected.assert_eq(&errors.to_string());
}

/// Checks the reasons why the data of a description cannot be tracked.
fn check_tracking(text: &str, expected: Expect) {
    let model = Model::parse("a.m", text).unwrap_or_else(|errors| panic!("{errors}"));
    expected.assert_eq(&model.tracked().expect_err("it cannot be tracked").to_string());
}

#[test]
fn every_error_of_syntax_is_reported() {
    check(
        "type T: 0..;\n\
         R: record a T; b: T; end;\n\
         var x: T y: T;\n\
         startstate x = 0; x := 1; y := ; end;\n\
         rule x := 1 end\n\
         rule \"unended x := 2; end;\n\
         invariant x ยง 1;\n\
         --@ keep proc=p\n\
         --@ load proc=p from=x\n\
         invariant true;\n",
        expect![[r#"
            a.m:1:12: expected an expression, found `;`
            a.m:2:13: expected `:`, found `T`
            a.m:3:10: expected `;`, found `y`
            a.m:4:14: expected `:=`, found `=`
            a.m:4:32: expected an expression, found `;`
            a.m:6:6: this string never ends
            a.m:7:1: expected a statement, or `end` of the rule, found `invariant`
            a.m:7:13: unexpected character `ย`
            a.m:7:14: unexpected character `ง`
            a.m:7:16: expected a declaration, a procedure, a function or a rule, found `1`
            a.m:8:5: expected `data`, `store`, `load` or `serialize`, found `keep`
            a.m:9:1: this mark is not in front of a rule
            a.m: 12 errors"#]],
    );
}

#[test]
fn every_error_of_names_and_types_is_reported() {
    check(
        "const N: 2; M: x;\n\
         type P: scalarset(N); C: enum { Red, Green }; C: 0..1; U: union { P, 0..3 };\n\
         R: record f: C2; g: 3..1; end; B: array [R] of boolean;\n\
         var x: 0..N; p, q: P; c: enum { Blue, Red }; r: record f: 0..1; end; m: multiset [2] of P;\n\
         function f(a: 0..1): boolean; begin a := 1; f(a); return 3; end;\n\
         procedure g(var a: 0..1); begin return 1; end;\n\
         startstate x := 5; p := x; q := p + 1; x := X; r.h := 1; r[1] := 2; end;\n\
         ruleset i: P; j := 1 to x do\n\
           rule \"a\" p < q & x ==> i := p; m[x] := p; g(x); g(1); f(1, 2); x := undefined + 1; end;\n\
           rule \"b\" f(x) = x ==> if x then y := 1; end; switch c case Red: x := Green; end; end;\n\
         end;\n\
         --@ store proc=p\n\
         rule \"c\" ismember(x, P) ==> multisetremove(p, m); assert isundefined(r); end;\n\
         invariant exists i: 0..1 do i end;\n",
        expect![[r#"
            a.m:1:16: unknown name `x`
            a.m:2:47: `C` is declared twice
            a.m:2:70: a union is made of enumerations, scalarsets and unions, not of `0..3`
            a.m:3:14: unknown name `C2`
            a.m:3:21: the range `3..1` is empty or too large
            a.m:3:42: an array cannot have `R` as its index
            a.m:4:39: `Red` is declared twice
            a.m:5:37: `a` is not a `var` parameter and cannot be changed
            a.m:5:45: `f` calls itself; there is no recursion
            a.m:5:58: `boolean` is needed here, this is an integer
            a.m:6:40: a procedure returns no value
            a.m:7:17: 5 is not in `0..2`
            a.m:7:25: `P` is needed here, this is `0..2`
            a.m:7:33: an integer is needed here, this is `P`, whose values have no order and no arithmetic
            a.m:7:33: `P` is needed here, this is an integer
            a.m:7:45: unknown name `X`; did you mean `x`?
            a.m:7:50: there is no field `h`; there is `f`
            a.m:7:58: a record has no index
            a.m:8:25: this must be constant
            a.m:9:10: an integer is needed here, this is `P`, whose values have no order and no arithmetic
            a.m:9:14: an integer is needed here, this is `P`, whose values have no order and no arithmetic
            a.m:9:18: a condition is needed here, this is `0..2`
            a.m:9:24: `i` is bound by a quantifier or an alias and cannot be changed
            a.m:9:34: an element of a multiset is named by the variable of `choose`, `multisetcount` or `multisetremovepred`
            a.m:9:45: a `var` parameter of `0..1` is needed here, this is `0..2`
            a.m:9:51: a variable is needed here
            a.m:9:55: `f` takes 1 argument, here are 2 given
            a.m:9:69: `undefined` can only be assigned or passed; test for it with `isundefined(...)`
            a.m:10:10: `boolean` and `0..2` cannot be compared
            a.m:10:26: a condition is needed here, this is `0..2`
            a.m:10:33: unknown name `y`
            a.m:10:70: `0..2` is needed here, this is `C`
            a.m:12:1: no data type is named: add a line `--@ data TYPE`
            a.m:13:22: a value of `0..2` is never in `P`
            a.m:13:44: an element of a multiset is named by the variable of `choose`, `multisetcount` or `multisetremovepred`
            a.m:13:70: a simple value is needed here, this is a record
            a.m:14:29: a condition is needed here, this is `0..1`
            a.m: 37 errors"#]],
    );
}

#[test]
fn marks_are_checked() {
    check(
        "--@ data Value\n\
         --@ data Other\n\
         type Proc: scalarset(2); Value: scalarset(2); Other: 0..1;\n\
         var cache: array [Proc] of Value; o: Other;\n\
         startstate o := 0; end;\n\
         ruleset p: Proc; v: Value; w: Value do\n\
         --@ store proc=p\n\
         --@ load proc=p from=o\n\
         --@ load from=cache[p] colour=3\n\
         --@ store proc=p value=p\n\
         rule \"a\" begin cache[p] := v; end;\n\
         end;\n",
        expect![[r#"
            a.m:2:10: the data type is named twice
            a.m:7:1: the stored value is ambiguous: name its variable with `value=`
            a.m:8:22: `from=` needs a place of the data type `Value`, this is `Other`
            a.m:9:1: this mark needs `proc=`
            a.m:9:24: `colour` has no meaning here
            a.m:10:24: `value=` needs a variable of a ruleset over the data type
            a.m: 6 errors"#]],
    );
}

#[test]
fn data_that_is_not_only_copied_is_refused() {
    check_tracking(
        "--@ data Value\n\
         type Proc: scalarset(2); Value: 0..1;\n\
         var cache: array [Proc] of Value; latest: Value; n: 0..1;\n\
         function old(v: Value): boolean; begin return v = 0; end;\n\
         startstate for p: Proc do cache[p] := 0; end; latest := 0; n := 0; end;\n\
         ruleset p: Proc; v: Value do\n\
           --@ store proc=p\n\
           rule \"store\" cache[p] = 0 ==> cache[p] := v; latest := v; end;\n\
           --@ load proc=p from=cache[p]\n\
           rule \"load\" begin assert cache[p] = latest; if cache[p] != latest then error \"old\"; end; end;\n\
           rule \"make\" begin cache[p] := 1; n := cache[p]; cache[p] := 1 - cache[p]; end;\n\
           rule \"use\" old(cache[p]) ==> for w: Value do cache[p] := w; end; cache[p] := v; end;\n\
         end;\n\
         invariant \"data\" forall p: Proc do cache[p] = latest end;\n",
        expect![[r#"
            a.m:4:47: this computes with data or compares it; tracking needs data to be copied only
            a.m:8:14: this computes with data or compares it; tracking needs data to be copied only
            a.m:11:31: this creates data; outside start states data can only be copied or stored
            a.m:11:39: this computes with data or compares it; tracking needs data to be copied only
            a.m:11:61: this creates data; outside start states data can only be copied or stored
            a.m:12:30: this ranges over the data type, which tracking erases
            a.m:12:58: no store of this rule stores this value: mark the rule with `--@ store ...`
            a.m:12:78: no store of this rule stores this value: mark the rule with `--@ store ...`
            a.m: 8 errors"#]],
    );
    check_tracking(
        "type T: 0..1; var x: T; startstate x := 0; end;",
        expect![[r#"
        a.m:1:1: no data type is named: add a line `--@ data TYPE`
        a.m: 1 error"#]],
    );
}

#[test]
fn what_only_checks_look_at_is_no_location() {
    let text = "--@ data Value\n\
         type Proc: scalarset(2); Value: scalarset(2);\n\
         var cache: array [Proc] of record data: Value; valid: boolean; end; latest, older: Value;\n\
         ruleset v: Value do startstate\n\
           for p: Proc do undefine cache[p].data; cache[p].valid := false; end;\n\
           latest := v; older := v; end; end;\n\
         ruleset p: Proc; v: Value do\n\
           --@ store proc=p\n\
           rule \"store\" begin older := latest; latest := v; cache[p].data := v; cache[p].valid := true; end;\n\
         end;\n\
         ruleset p: Proc do\n\
           --@ load proc=p from=cache[p].data\n\
           rule \"load\" cache[p].valid ==> assert cache[p].data = latest; end;\n\
         end;\n";
    let system = Model::parse("a.m", text).unwrap().tracked().unwrap();
    assert_eq!(system.location_names(), ["cache[Proc_1].data", "cache[Proc_2].data"]);
    assert_eq!(system.ghost_names(), ["latest", "older"]);
    assert_eq!(system.bits(), 2 * (1 + 2), "a bit for each location, two for each boolean");
}
