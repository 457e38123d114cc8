//! Hints for errors in definitions, especially for authors who know herd's cat.

use consistory_diagnostic::{did_you_mean, nearest};

use crate::problem::Problem;

/// Returns a hint for an undefined name.
pub(crate) fn hint_for_name(name: &str) -> Option<&'static str> {
    match name {
        "ww" => Some("declare the store order first: `with ww from store-orders`"),
        "rf" => Some("the reads-from relation is called `wr` here"),
        "rfe" => Some("write `wr & ext`"),
        "rfi" => Some("write `wr & int`"),
        "co" => Some(
            "the store order is called `ww` here; the causal order is `co` in \"relations.cat\"",
        ),
        "fr" | "rw" | "cf" => Some("`include \"relations.cat\"` defines `rw(r)` and `cf(r)`"),
        "po-loc" => Some("write `po & loc`, or `poloc` of \"relations.cat\""),
        "addr" | "data" | "ctrl" => Some("a history does not record dependencies"),
        _ => None,
    }
}

/// Returns a hint for a syntax error.
pub(crate) fn hint_for_syntax(problem: &Problem, text: &str) -> Option<String> {
    match problem {
        Problem::Expected { expected, .. } if expected.starts_with("a statement") => match text {
            "show" | "unshow" | "flag" | "call" | "procedure" | "enum" | "requires" => {
                Some(format!("cat's `{text}` is not part of this language"))
            }
            "exists" => {
                Some("the store order is declared by `with ww from store-orders`".to_owned())
            }
            _ => did_you_mean(&nearest(
                text,
                ["let", "include", "with", "forall", "acyclic", "irreflexive", "empty"],
            )),
        },
        Problem::Expected { expected: "`in`", .. } => Some(
            "a `let` inside an expression needs `in`; is what stands before it complete?"
                .to_owned(),
        ),
        _ => None,
    }
}
