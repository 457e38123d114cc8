//! Objects that a user defines in a file, without compilation.
//!
//! ```text
//! # A buffer with room for two.
//! state items = [];
//!
//! method put(x) as offer {
//!     if len(items) >= 2 { return false; }
//!     items = items + [x];
//!     return true;
//! }
//! method take() {
//!     require len(items) > 0;          # otherwise the call is not possible
//!     let x = items[0];
//!     items = rest(items);
//!     return x;
//! }
//! read size() { return len(items); }
//! ```
//!
//! The state consists of variables. A `method` may change them, a `read` may not: this is checked,
//! and lets searches prune. The parameters may be followed by `as` and other names, and by `in` and
//! a parameter: the part of the object that the call is confined to. `require` states when a call
//! is possible; an ill-typed expression (a number added to a truth value) also makes it impossible.
//! A method that ends without `return` returns `null`. A method without any `return` returns
//! nothing, and a recorded return is ignored.
//!
//! Statements: `x = e;`, `let x = e;`, `if e { } else { }`, `for x in e { }` over a list,
//! `require e;`, `return e;`. Expressions: numbers, texts, `true`, `false`, `null`, lists,
//! `|| && == != < <= > >= + - * / % !`, `e[i]`, and the functions
//! `len first last rest init contains indexOf without sort min max get set unset keys values`.
//! A map is a list of pairs, sorted by key: `get(m,k)`, `set(m,k,v)`, `unset(m,k)`.

mod parse;
mod run;

pub use run::ScriptObject;

use consistory_diagnostic::Diagnostics;

/// Parses an object file; `source` names it in diagnostics.
pub fn parse_object(source: &str, text: &str) -> Result<ScriptObject, Diagnostics> {
    parse::parse(source, text).map(ScriptObject::new)
}

#[cfg(test)]
mod tests {
    use consistory_history::Value;

    use super::*;
    use crate::specification::{Object, Returns};

    const BUFFER: &str = r#"
        # A buffer with room for two.
        state items = [];
        method put(x) as offer {
            if len(items) >= 2 { return false; }
            items = items + [x];
            return true;
        }
        method take() {
            require len(items) > 0;
            let x = items[0];
            items = rest(items);
            return x;
        }
        method clear() { items = []; }
        read size() { return len(items); }
    "#;

    /// Calls methods one after the other and formats their returns.
    fn calls(text: &str, calls: &[(&str, &[Value])]) -> Vec<String> {
        let object = parse_object("test.object", text).unwrap();
        let mut state = Object::initial(&object);
        calls
            .iter()
            .map(|(method, args)| {
                let method = object.resolve(method, args.len()).unwrap().unwrap().name.clone();
                let returned = Object::invoke(&object, &mut state, &method, args);
                returned.map_or("-".to_owned(), |value| value.to_string())
            })
            .collect()
    }

    #[test]
    fn a_script_does_what_it_says() {
        let one = &[Value::Int(1)][..];
        let two = &[Value::Int(2)][..];
        let shown = calls(
            BUFFER,
            &[("put", one), ("offer", two), ("put", one), ("take", &[]), ("size", &[])],
        );
        assert_eq!(shown, ["true", "true", "false", "1", "1"]);
        assert_eq!(calls(BUFFER, &[("take", &[])]), ["-"]);
    }

    #[test]
    fn what_is_read_only_and_what_returns_nothing_follows_from_the_text() {
        let object = parse_object("test.object", BUFFER).unwrap();
        assert!(Object::is_read_only(&object, "size", None));
        assert!(!Object::is_read_only(&object, "put", None));
        let clear = object.resolve("clear", 0).unwrap().unwrap();
        assert_eq!(clear.returns, Returns::Nothing);
    }

    #[test]
    fn maps_loops_and_parts() {
        let text = r#"
            state m = [], total = 0;
            method deposit(account, amount) in account {
                m = set(m, account, get(m, account, 0) + amount);
                return get(m, account);
            }
            read sum() {
                let all = 0;
                for v in values(m) { all = all + v; }
                if all == 0 { return "nothing"; } else { return all; }
            }
        "#;
        let deposit = |k: i64, n: i64| [Value::Int(k), Value::Int(n)];
        let (a, b) = (deposit(7, 5), deposit(8, 6));
        let shown = calls(
            text,
            &[("sum", &[]), ("deposit", &a), ("deposit", &b), ("deposit", &a), ("sum", &[])],
        );
        assert_eq!(shown, ["nothing", "5", "6", "10", "16"]);
        let object = parse_object("test.object", text).unwrap();
        assert_eq!(Object::part(&object, "deposit", &a), Some(Value::Int(7)));
        assert_eq!(Object::part(&object, "sum", &[]), None);
    }

    #[test]
    fn what_makes_no_sense_is_not_possible() {
        let text =
            "state n = 0; method f(x) { n = n + x; return n / 0; } read g(x) { return x[3]; }";
        assert_eq!(calls(text, &[("f", &[Value::Bool(true)]), ("g", &[Value::Null])]), ["-", "-"]);
        assert_eq!(calls(text, &[("f", &[Value::Int(1)])]), ["-"]);
    }

    #[test]
    fn every_error_is_reported_at_its_place() {
        let text = "state n = 0;\nmethod f(x) { m = 1; return len(n; }\nread g() { n = 2; }\n\
                    method f(y) { return foo(y); }\nmethod h() in z { return @; }\nstate n = 1;";
        let errors = parse_object("bad.object", text).unwrap_err();
        let shown: Vec<String> =
            errors.iter().map(|e| format!("{}:{} {}", e.line, e.column, e.message)).collect();
        assert_eq!(
            shown,
            [
                "2:15 there is no variable `m`",
                "2:34 expected `,` or `)`, found `;`",
                "3:12 `g` is a read and changes the state",
                "4:8 `f` with as many parameters is there already",
                "4:22 there is no function `foo`",
                "5:15 there is no parameter `z`",
                "5:26 expected an expression, found `@`",
                "6:7 `n` is there already",
            ]
        );
    }
}
