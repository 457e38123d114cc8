//! The language: syntax, meaning and error messages.

use crate::support::{history, judge, verdict};
use consistory_diagnostic::Style;
use consistory_models::{Definition, load};
use consistory_verdict::{Certificate, Edge, Judgement, Verdict};
use expect_test::{Expect, expect};

fn include(path: &str) -> Option<String> {
    match path {
        "loop.cat" => Some("include \"loop2.cat\"".to_owned()),
        "loop2.cat" => Some("acyclic po\ninclude \"loop.cat\"".to_owned()),
        "broken.cat" => Some("let a = po | \nlet b = a".to_owned()),
        _ => None,
    }
}

#[track_caller]
fn definition(text: &str) -> Definition {
    load("test.cat", text, include).unwrap_or_else(|error| panic!("{}", error.render(Style::Plain)))
}

/// Asserts the errors of a text: for each, a line `line:column+length message`, and its hint.
#[track_caller]
fn wrong(text: &str, expected: Expect) {
    let error = load("test.cat", text, include).expect_err("the definition is wrong");
    let shown: String = error
        .iter()
        .map(|d| {
            let file =
                if &*d.source == "test.cat" { String::new() } else { format!("{} ", d.source) };
            let hint = d.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
            format!("{file}{}:{}+{} {}{hint}\n", d.line, d.column, d.length, d.message)
        })
        .collect();
    expected.assert_eq(&shown);
    // Rendering must support every position.
    assert!(error.render(Style::Styled).contains("error"));
}

/// Pairs of expressions with equal values on a history on which most operators differ.
#[track_caller]
fn same(left: &str, right: &str) {
    let h = history("t0: w(x,1) f rmw(x,1,2) r(y,0)\nt1: w(y,1) r(x,1) w(x,3)\nt2: r(x,2) r(y,1)");
    for (a, b) in [(left, right), (right, left)] {
        let both = definition(&format!("empty ({a}) \\ ({b})"));
        assert_eq!(verdict(&both, &h), Verdict::Consistent, "{a} is not within {b}");
    }
    let some = definition(&format!("empty {left}"));
    assert_eq!(verdict(&some, &h), Verdict::Violation, "{left} is empty: nothing was tested");
}

#[test]
fn precedence_is_that_of_cat() {
    same("po | wr ; po", "po | (wr ; po)");
    same("[W] ; po & loc ; [R]", "[W] ; (po & loc) ; [R]");
    same("wr ; po \\ loc", "wr ; (po \\ loc)");
    same("po \\ loc & ext", "po \\ (loc & ext)");
    same("po \\ loc \\ wr", "(po \\ loc) \\ wr");
    same("po & W * R", "po & (W * R)");
    same("~po & loc", "(~po) & loc");
    same("~wr+", "~(wr+)");
    same("wr^-1 ; po", "(wr^-1) ; po");
    same("po ; wr*", "po ; (wr*)");
    same("W * R & po", "(W * R) & po");
    same("wr^+ | po^*", "wr+ | po*");
}

#[test]
fn operators_mean_what_they_say() {
    same("_", "R | W | F");
    same("M", "R | W");
    same("RMW", "R & W");
    same("po?", "po | id");
    same("po*", "po+ | id");
    same("[R]", "id & R * R");
    same("domain(wr)", "range(wr^-1)");
    same("ext", "~int");
    same("po & IW * _", "IW * (_ \\ IW)");
    same("id | 0", "id \\ 0");
    same("R | emptyset", "~(~R)");
    same("union o in W do po ; [o] end", "po ; [W]");
    same("union o in R do domain(wr ; [o]) end", "domain(wr)");
    same("let a = po and b = wr in a ; b", "po ; wr");
    same("let f(r, s) = [s] ; r in f(f(po, R), W)", "[W & R] ; po");
    same("let rec c = wr | po | c ; c in c", "(wr | po)+");
    same(
        "let rec a = wr | b ; po and b = wr | a ; wr in a | b",
        "wr | wr ; (po | wr) | (wr ; (po | wr)+)",
    );
}

#[test]
fn later_names_hide_earlier_ones() {
    let text = "let po = wr (* of this (* nested *) file *)\nlet f(po) = po | po // twice\nempty f(po) & int";
    assert_eq!(verdict(&definition(text), &history("t0: w(x,1) w(x,2)")), Verdict::Consistent);
    assert_eq!(verdict(&definition(text), &history("t0: w(x,1) r(x,1)")), Verdict::Violation);
}

#[test]
fn metadata_describes_a_definition() {
    let d = definition(
        "\"A title\"\n// @id own\n// @name Own\n// @source here\n// @meaning one\n// @meaning two\n\
         // @implies cc proved: there\n// @implies cm by definition\n\
         include \"cc.cat\"\nacyclic po | wr as Own\nirreflexive po",
    );
    assert_eq!((d.id(), d.name(), d.source()), (Some("own"), Some("Own"), Some("here")));
    assert_eq!((d.title(), d.meaning()), ("A title", Some("one two")));
    let claims: Vec<String> =
        d.implies().iter().map(|c| format!("{} {}", c.implied, c.standing)).collect();
    assert_eq!(claims, ["cc proved: there", "cm by definition"]);
    let checks: Vec<&str> = d.checks().map(|check| check.name).collect();
    assert_eq!(checks, ["CyclicCO", "WriteCORead", "Own", "irreflexive po"]);
}

#[test]
fn a_file_is_included_once() {
    let d = definition("include \"cc.cat\"\ninclude \"ccv.cat\"\ninclude \"cc.cat\"");
    assert_eq!(d.checks().len(), 3);
}

#[test]
fn syntax_errors_have_places() {
    wrong(
        "acyclic po |",
        expect![[r#"
            1:13+0 expected an expression, found the end of the file
        "#]],
    );
    wrong(
        "acyclic (po ; wr\nlet a = ]\nshow a\nlet b = po\nacyclick b",
        expect![[r#"
        2:1+3 expected `)`, found `let`
        2:9+1 expected an expression, found `]`
        5:1+8 expected a statement: `let`, `include`, `with`, `forall`, `acyclic`, `irreflexive` or `empty`, found `acyclick` (did you mean `acyclic`?)
    "#]],
    );
    wrong(
        "show po",
        expect![[r#"
        1:1+4 expected a statement: `let`, `include`, `with`, `forall`, `acyclic`, `irreflexive` or `empty`, found `show` (cat's `show` is not part of this language)
    "#]],
    );
    wrong(
        "acyclic po $ wr\n(* never",
        expect![[r#"
        1:12+1 unexpected character `$`
        1:14+2 expected a statement: `let`, `include`, `with`, `forall`, `acyclic`, `irreflexive` or `empty`, found `wr`
        2:1+2 this comment never ends
    "#]],
    );
    wrong(
        "include \"x",
        expect![[r#"
        1:1+10 cannot find `x` to include
        1:9+2 this string never ends
    "#]],
    );
    wrong(
        "\"nothing\"",
        expect![[r#"
            1:1+0 the definition checks nothing (add a check, for example `acyclic po | wr`)
        "#]],
    );
    wrong(
        "acyclic é | po",
        expect![[r#"
        1:9+1 unexpected character `é`
        1:11+1 expected an expression, found `|`
    "#]],
    );
}

#[test]
fn names_are_checked() {
    wrong(
        "acyclic po | rf | ww | poo\nlet f(r) = r\nacyclic f | f(po, wr) | po(wr) | f(W)\nacyclic g(po)",
        expect![[r#"
            1:14+2 undefined name `rf` (the reads-from relation is called `wr` here)
            1:19+2 undefined name `ww` (declare the store order first: `with ww from store-orders`)
            1:24+3 undefined name `poo` (did you mean `po`?)
            3:9+1 the function `f` needs arguments
            3:9+29 expected a relation, found a set (`[S]` is the identity on the set S, `S * T` a product)
            3:13+9 `f` takes 1 argument(s), found 2
            3:25+2 `po` is not a function
            4:9+1 undefined name `g`
        "#]],
    );
    wrong(
        "let rec f(x) = x ; f\nlet g(x, x) = x\nlet a = po and a = wr\nacyclic a",
        expect![[r#"
        1:11+1 a function cannot be recursive
        2:10+1 `x` is bound twice
        3:16+1 `a` is bound twice
    "#]],
    );
}

#[test]
fn sets_are_not_relations() {
    wrong(
        "acyclic W\nacyclic po ; W | R\nempty po | W\nempty W * po\nempty [po]\nempty domain(W)",
        expect![[r#"
        1:9+1 expected a relation, found a set (`[S]` is the identity on the set S, `S * T` a product)
        2:14+1 expected a relation, found a set (`[S]` is the identity on the set S, `S * T` a product)
        2:18+1 expected a relation, found a set (`[S]` is the identity on the set S, `S * T` a product)
        3:12+1 expected a relation, found a set (`[S]` is the identity on the set S, `S * T` a product)
        4:11+2 expected a set, found a relation (`domain(r)` and `range(r)` are the sets that a relation relates)
        5:8+2 expected a set, found a relation (`domain(r)` and `range(r)` are the sets that a relation relates)
        6:14+1 expected a relation, found a set (`[S]` is the identity on the set S, `S * T` a product)
    "#]],
    );
    wrong(
        "let f(r) = r ; po\nempty f(W)\nforall o in po do empty o | po end\nempty W+",
        expect![[r#"
        2:9+1 expected a relation, found a set (`[S]` is the identity on the set S, `S * T` a product)
        3:13+2 expected a set, found a relation (`domain(r)` and `range(r)` are the sets that a relation relates)
        3:29+2 expected a set, found a relation (`domain(r)` and `range(r)` are the sets that a relation relates)
        4:7+1 expected a relation, found a set (`[S]` is the identity on the set S, `S * T` a product)
    "#]],
    );
}

#[test]
fn recursion_must_be_monotone() {
    wrong(
        "let rec a = po | (wr \\ a)\nacyclic a",
        expect![[r#"
        1:24+1 `a` is defined by recursion through a complement or the right side of `\` (the least solution need not exist: a larger value would be smaller)
    "#]],
    );
    wrong(
        "let f(r) = ~r\nlet rec a = po | b and b = f(a) ; po\nacyclic a",
        expect![[r#"
        2:30+1 `a` is defined by recursion through a complement or the right side of `\` (the least solution need not exist: a larger value would be smaller)
    "#]],
    );
    // Under two complements it is monotone again.
    definition("let f(r) = ~r\nlet rec a = po | f(f(a ; wr))\nacyclic a");
    definition("let rec a = (po | a ; a) \\ id\nacyclic a");
}

#[test]
fn includes_are_checked() {
    wrong(
        "include \"loop.cat\"",
        expect![[r#"
        loop2.cat 2:1+18 `loop.cat` includes itself
    "#]],
    );
    wrong(
        "include \"nowhere.cat\"\nacyclic po",
        expect![[r#"
        1:1+21 cannot find `nowhere.cat` to include
    "#]],
    );
    wrong(
        "include \"broken.cat\"\nacyclic b | c",
        expect![[r#"
            2:9+1 undefined name `b`
            2:13+1 undefined name `c`
            broken.cat 2:10+0 expected `in`, found the end of the file (a `let` inside an expression needs `in`; is what stands before it complete?)
        "#]],
    );
}

#[test]
fn other_statements_are_checked() {
    wrong(
        "with co from store-orders\nwith ww from orders\nacyclic ww",
        expect![[r#"
        1:6+2 expected the name of the store order, `ww`, found `co`
        2:6+2 the store order is declared twice
        2:14+6 expected `store-orders` or `commit-orders`, found `orders`
    "#]],
    );
    wrong(
        "forall o in W do include \"cc.cat\" forall p in R do empty p end end\nacyclic po",
        expect![[r#"
        1:18+16 only `let` and checks can stand inside `forall`
        1:35+28 only `let` and checks can stand inside `forall`
    "#]],
    );
    wrong(
        "// @idd own\n// @implies cc\nacyclic po",
        expect![[r#"
        1:5+7 unknown metadata `@idd` (did you mean `id`?)
        2:5+10 expected a model's id and how the implication is known (write `@implies cc by definition`, or `proved:`, `checked:` or `conjecture:` and the evidence)
    "#]],
    );
}

#[test]
fn no_input_is_too_deep() {
    let deep = |open: &str, close: &str| {
        format!("acyclic {}po{}", open.repeat(5_000), close.repeat(5_000))
    };
    for text in [
        deep("(", ")"),
        deep("[", "]"),
        deep("~", ""),
        deep("", "+"),
        deep("let a = po in ", ""),
        deep("wr \\ ", ""),
        deep("f(", ")"),
        "forall o in W do ".repeat(5_000),
    ] {
        let error = load("test.cat", &text, include).unwrap_err();
        let too_deep = |d: &consistory_diagnostic::Diagnostic| d.message == "nested too deeply";
        assert!(error.iter().any(too_deep), "{}", &text[..40]);
    }
    // Nested functions are bounded as well.
    let mut text = String::from("let f0(x) = x ; x\n");
    for i in 1..500 {
        text += &format!("let f{i}(x) = f{}(x | po)\n", i - 1);
    }
    assert!(load("test.cat", &format!("{text}acyclic f499(po)"), include).is_err());
    // A long expression is not a deep one.
    let long = format!("acyclic {}po", "po | ".repeat(5_000));
    assert_eq!(verdict(&definition(&long), &history("t0: w(x,1)")), Verdict::Consistent);
}

#[test]
fn errors_are_rendered_like_those_of_rustc() {
    let error = load("own.cat", "\"Own\"\nacyclic po | rf", include).unwrap_err();
    expect![[r#"
        error: undefined name `rf`
         --> own.cat:2:14
          |
        2 | acyclic po | rf
          |              ^^
          |
          = help: the reads-from relation is called `wr` here

        own.cat: 1 error
    "#]]
    .assert_eq(&error.render(Style::Plain));
    expect![[r#"
        own.cat:2:14: undefined name `rf` (the reads-from relation is called `wr` here)
        own.cat: 1 error"#]]
    .assert_eq(&error.to_string());
}

/// Definitions that do not allow pruning are still decided: the complement of `wr` and `ww` in a
/// check.
#[test]
fn definitions_that_are_not_monotone_are_decided() {
    let both = history("t0: w(x,1) w(x,2)\nt1: w(x,1) r(x,1)");
    // Some write of each value is not read, or each is: `wr` is a choice here.
    let unread = definition("empty (W \\ IW) \\ domain(wr)");
    assert_eq!(verdict(&unread, &both), Verdict::Violation);
    assert_eq!(
        verdict(&unread, &history("t0: w(x,1)\nt1: w(x,1) r(x,1)\nt2: r(x,1)")),
        Verdict::Consistent
    );
    // In some store order no write of t1 is last.
    let last = "with ww from store-orders\nempty ((W \\ domain(ww)) \\ IW) & range(wr ; po)";
    assert_eq!(
        verdict(&definition(last), &history("t0: w(x,1)\nt1: r(x,1) w(x,2)")),
        Verdict::Consistent
    );
    assert_eq!(
        verdict(&definition(last), &history("t0: r(x,0) w(x,1)\nt1: r(x,1) w(x,2)")),
        Verdict::Violation
    );
}

fn show(h: &consistory_history::History, edge: &Edge, indent: usize, out: &mut String) {
    let (from, to) = (h.reference(edge.from), h.reference(edge.to));
    *out += &format!("{:indent$}{from} -> {to} {}\n", "", edge.relation);
    for premise in &edge.because {
        show(h, premise, indent + 2, out);
    }
}

#[track_caller]
fn explains(text: &str, h: &str, expected: Expect) {
    let h = history(h);
    let judgement = judge(&definition(text), &h);
    let Judgement::Violation {
        pattern,
        certificate: Certificate::Cycle { edges, observer, check },
    } = judgement
    else {
        panic!("{judgement:?}")
    };
    let observer = observer.map_or(String::new(), |o| format!(" for {}", h.reference(o)));
    let mut out = format!("check {} {pattern}{observer}\n", check.unwrap());
    for edge in &edges {
        show(&h, edge, 0, &mut out);
    }
    expected.assert_eq(&out);
}

#[test]
fn violations_are_derived_down_to_what_is_given() {
    explains(
        "include \"cc.cat\"",
        "t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)",
        expect![[r#"
            check 1 WriteCORead
            t0:0 -> t1:1 co
              t0:0 -> t0:1 po
              t0:1 -> t1:0 wr
              t1:0 -> t1:1 po
            t1:1 -> t0:0 rw[co]
              init:x -> t1:1 wr
              init:x -> t0:0 co
                init:x -> t0:0 po
        "#]],
    );
    explains(
        "include \"ccv.cat\"",
        "t0: w(x,1) r(x,2)\nt1: w(x,2) r(x,1)",
        expect![[r#"
        check 2 CyclicCF
        t0:0 -> t1:0 cf[co]
          t0:0 -> t0:1 co
            t0:0 -> t0:1 po
          t1:0 -> t0:1 wr
        t1:0 -> t0:0 cf[co]
          t1:0 -> t1:1 co
            t1:0 -> t1:1 po
          t0:0 -> t1:1 wr
    "#]],
    );
    explains(
        "include \"cm.cat\"",
        "t0: w(z,1) w(x,1) w(y,1)\nt1: w(x,2) r(z,0) r(y,1) r(x,2)",
        expect![[r#"
            check 2 CyclicHB for t1:3
            t0:0 -> init:z cf-seen
              t0:0 -> t1:1 hb
                t0:0 -> t0:1 co
                  t0:0 -> t0:1 po
                t0:1 -> t1:0 cf-seen
                  t0:1 -> t1:3 hb
                    t0:1 -> t1:3 co
                      t0:1 -> t0:2 po
                      t0:2 -> t1:2 wr
                      t1:2 -> t1:3 po
                  t1:0 -> t1:3 wr
                t1:0 -> t1:1 co
                  t1:0 -> t1:1 po
              init:z -> t1:1 wr
            init:z -> t0:0 co
              init:z -> t0:0 po
        "#]],
    );
    explains(
        "include \"ccm.cat\"",
        "t0: w(x,1)\nt1: w(y,1)\nt2: r(x,1) r(y,0)\nt3: r(y,1) r(x,0)",
        expect![[r#"
            check 0 CyclicPWW
            t0:0 -> t2:0 wr
            t2:0 -> t2:1 po
            t2:1 -> t1:0 rw[pww]
              init:y -> t2:1 wr
              init:y -> t1:0 pww
                init:y -> t1:0 hb
                  init:y -> t1:0 hb-of[t1:0,po,co]
                    init:y -> t1:0 co
                      init:y -> t1:0 po
            t1:0 -> t3:0 wr
            t3:0 -> t3:1 po
            t3:1 -> t0:0 rw[pww]
              init:x -> t3:1 wr
              init:x -> t0:0 pww
                init:x -> t0:0 hb
                  init:x -> t0:0 hb-of[t0:0,po,co]
                    init:x -> t0:0 co
                      init:x -> t0:0 po
        "#]],
    );
    explains(
        "include \"wsc.cat\"",
        "t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)",
        expect![[r#"
            check 0 CyclicWSC
            t0:0 -> t0:1 po
            t0:1 -> t1:0 rw[st]
              init:y -> t0:1 wr
              init:y -> t1:0 st
                init:y -> t1:0 hb
                  init:y -> t1:0 po
            t1:0 -> t1:1 po
            t1:1 -> t0:0 rw[st]
              init:x -> t1:1 wr
              init:x -> t0:0 st
                init:x -> t0:0 hb
                  init:x -> t0:0 po
        "#]],
    );
    explains(
        "include \"tso.cat\"",
        "t0: rmw(x,0,1)\nt1: rmw(x,0,2)",
        expect![[r#"
        check 0 CyclicPPO
        t0:0 -> t1:0 rw[ww]
          init:x -> t0:0 wr
          init:x -> t1:0 ww
        t1:0 -> t0:0 rw[ww]
          init:x -> t1:0 wr
          init:x -> t0:0 ww
    "#]],
    );
    explains(
        "empty wr & ext & (W * R) as Talk",
        "t0: w(x,1)\nt1: r(x,1)",
        expect![[r#"
        check 0 Talk
        t0:0 -> t1:0 wr
    "#]],
    );
    explains(
        "empty F",
        "t0: w(x,1) f",
        expect![[r#"
        check 0 empty F
        t0:1 -> t0:1 F
    "#]],
    );
    explains(
        "acyclic po | wr^-1 ; po?",
        "t0: w(x,1) r(x,1)",
        expect![[r#"
        check 0 acyclic po | wr^-1 ; po?
        t0:1 -> t0:1 wr^-1 ; po?
          t0:0 -> t0:1 wr
          t0:0 -> t0:1 po
    "#]],
    );
}

/// The guide's definitions load, and its errors are as shown.
#[test]
fn the_guide_is_true() {
    let guide = include_str!("../../../docs/definition-language.md");
    let mut blocks = guide.split("\n```").skip(1).step_by(2).map(|block| {
        let (kind, text) = block.split_once('\n').unwrap_or((block, ""));
        (kind, text)
    });
    let mut seen = [0, 0];
    while let Some((kind, text)) = blocks.next() {
        match kind {
            "cat" => {
                seen[0] += 1;
                definition(text);
            }
            "cat-wrong" => {
                seen[1] += 1;
                let error = load("own.cat", text, include).unwrap_err();
                let (_, expected) = blocks.next().expect("a wrong definition has its errors shown");
                assert_eq!(error.render(Style::Plain).trim_end(), expected.trim_end());
            }
            _ => {}
        }
    }
    assert_eq!(seen, [5, 2]);
    assert!(
        include_str!("../../../models/relations.cat").contains(
            guide.split("```cat-fragment\n").nth(1).unwrap().split("```").next().unwrap()
        )
    );
}
