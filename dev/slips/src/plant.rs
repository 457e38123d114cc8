//! Rewrites a source file so that each of its slips can be switched on by its number.
//!
//! `a < b` becomes `match slip::on() { 7 => a <= b, 8 => a > b, _ => a < b }`. Only one slip is
//! enabled at a time, so the inside of a mutated version stays unchanged, and the size of the file
//! grows by a factor of the depth of its expressions.

use std::collections::HashSet;
use std::fmt;

use proc_macro2::{Literal, Span};
use quote::{ToTokens, quote};
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Expr, Stmt, parse_quote};

/// A mutation at one place of the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slip {
    /// Its number, which the tests read from the environment; never 0.
    pub(crate) id: u32,
    file: String,
    line: usize,
    column: usize,
    function: String,
    what: String,
}

impl Slip {
    /// Returns the file, relative to the crate.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Checks whether the slip is in a file with this name, with or without its extension.
    pub(crate) fn is_in(&self, name: &str) -> bool {
        let file = self.file.rsplit('/').next().unwrap_or_default();
        file == name || file.strip_suffix(".rs") == Some(name)
    }
}

impl fmt::Display for Slip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Slip { id, file, line, column, function, what } = self;
        write!(f, "{file}:{line}:{column}: {what} in {function} (slip {id})")
    }
}

/// Module that is added to a crate with slips.
pub(crate) const SWITCH: &str = r#"
mod slip {
    static PLANTED: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
        std::env::var("SLIP").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    });
    #[inline]
    pub(crate) fn on() -> u32 {
        *PLANTED
    }
}
"#;

/// Returns a file's text with its slips, numbered from `first` on, without the refused ones.
pub(crate) fn plant(
    text: &str,
    file: &str,
    first: u32,
    refused: &HashSet<u32>,
) -> syn::Result<(String, Vec<Slip>)> {
    let mut tree = syn::parse_file(text)?;
    let mut planter =
        Planter { file, next: first, functions: Vec::new(), refused, slips: Vec::new() };
    planter.visit_file_mut(&mut tree);
    Ok((tree.into_token_stream().to_string(), planter.slips))
}

struct Planter<'a> {
    file: &'a str,
    next: u32,
    functions: Vec<String>,
    refused: &'a HashSet<u32>,
    slips: Vec<Slip>,
}

impl Planter<'_> {
    /// Numbers a slip, and returns the number as a literal unless it was refused.
    fn number(&mut self, place: Span, what: String) -> Option<Literal> {
        let id = self.next;
        self.next += 1;
        if self.refused.contains(&id) {
            return None;
        }
        let start = place.start();
        self.slips.push(Slip {
            id,
            file: self.file.to_owned(),
            line: start.line,
            column: start.column + 1,
            function: self.functions.last().cloned().unwrap_or_default(),
            what,
        });
        Some(Literal::u32_suffixed(id))
    }

    /// Adds the mutated versions of an expression.
    fn vary(&mut self, right: &mut Expr, place: Span, wrong: Vec<(String, Expr)>) {
        let mut arms = Vec::new();
        for (what, expression) in wrong {
            if let Some(id) = self.number(place, what) {
                arms.push(quote!(#id => #expression,));
            }
        }
        if !arms.is_empty() {
            *right = parse_quote!((match crate::slip::on() { #(#arms)* _ => #right }));
        }
    }

    /// Adds the mutated versions of a condition.
    fn vary_condition(&mut self, condition: &mut Expr, original: &Expr) {
        let has_own = matches!(original, Expr::Binary(_) | Expr::Unary(_) | Expr::Lit(_));
        if !has_own && !has_let(original) {
            let wrong = vec![("negate the condition".to_owned(), parse_quote!(!(#original)))];
            self.vary(condition, span(original), wrong);
        }
    }

    /// Adds a slip that makes a function return at once.
    fn vary_body(&mut self, output: &syn::ReturnType, body: &mut syn::Block, place: Span) {
        for value in plain_values(output).into_iter().rev() {
            let what = format!("return {} at once", value.to_token_stream());
            if let Some(id) = self.number(place, what.replace(" ,", ",")) {
                body.stmts.insert(0, parse_quote!(if crate::slip::on() == #id { return #value; }));
            }
        }
    }

    fn within(&mut self, name: &syn::Ident, visit: impl FnOnce(&mut Self)) {
        self.functions.push(name.to_string());
        visit(self);
        self.functions.pop();
    }
}

impl VisitMut for Planter<'_> {
    fn visit_expr_mut(&mut self, node: &mut Expr) {
        let original = node.clone();
        visit_mut::visit_expr_mut(self, node);
        match &original {
            Expr::Binary(binary) if !has_let(&original) => {
                let wrong = other_operators(&binary.op).into_iter().map(|operator| {
                    let what = format!(
                        "replace {} by {}",
                        binary.op.to_token_stream(),
                        operator.to_token_stream()
                    );
                    (what, Expr::Binary(syn::ExprBinary { op: operator, ..binary.clone() }))
                });
                self.vary(node, span(&binary.op), wrong.collect());
            }
            Expr::Unary(syn::ExprUnary { op, expr, .. }) if !matches!(op, syn::UnOp::Deref(_)) => {
                let what = format!("leave out {}", op.to_token_stream());
                self.vary(node, span(op), vec![(what, (**expr).clone())]);
            }
            Expr::If(original) => {
                if let Expr::If(node) = node {
                    self.vary_condition(&mut node.cond, &original.cond);
                }
            }
            Expr::While(original) => {
                if let Expr::While(node) = node {
                    self.vary_condition(&mut node.cond, &original.cond);
                }
            }
            _ => {}
        }
    }

    fn visit_expr_match_mut(&mut self, node: &mut syn::ExprMatch) {
        let original = node.clone();
        visit_mut::visit_expr_match_mut(self, node);
        let has_rest = original
            .arms
            .iter()
            .any(|arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none());
        for (arm, original) in node.arms.iter_mut().zip(&original.arms) {
            let place = span(&original.pat);
            if let (Some((_, guard)), Some((_, original))) = (&mut arm.guard, &original.guard) {
                if has_let(original) {
                    continue;
                }
                let wrong = vec![
                    ("take the guard as true".to_owned(), parse_quote!(true)),
                    ("take the guard as false".to_owned(), parse_quote!(false)),
                ];
                self.vary(guard, place, wrong);
            } else if has_rest
                && !matches!(original.pat, syn::Pat::Wild(_))
                && let Some(id) = self.number(place, "leave out the arm".to_owned())
            {
                arm.guard = Some((parse_quote!(if), parse_quote!(crate::slip::on() != #id)));
            }
        }
    }

    fn visit_block_mut(&mut self, node: &mut syn::Block) {
        let originals = node.stmts.clone();
        visit_mut::visit_block_mut(self, node);
        for (statement, original) in node.stmts.iter_mut().zip(&originals) {
            let Stmt::Expr(expression, Some(_)) = original else { continue };
            let does_something = match expression {
                Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_) => true,
                Expr::Binary(binary) => !other_operators(&binary.op).is_empty(),
                _ => false,
            };
            if does_something
                && let Some(id) =
                    self.number(span(expression), "leave out the statement".to_owned())
            {
                *statement = parse_quote!(if crate::slip::on() != #id { #statement });
            }
        }
    }

    fn visit_item_fn_mut(&mut self, node: &mut syn::ItemFn) {
        if node.sig.constness.is_none() && !is_test(&node.attrs) {
            self.within(&node.sig.ident.clone(), |planter| {
                planter.visit_block_mut(&mut node.block);
                planter.vary_body(&node.sig.output, &mut node.block, node.sig.ident.span());
            });
        }
    }

    fn visit_impl_item_fn_mut(&mut self, node: &mut syn::ImplItemFn) {
        if node.sig.constness.is_none() {
            self.within(&node.sig.ident.clone(), |planter| {
                planter.visit_block_mut(&mut node.block);
                planter.vary_body(&node.sig.output, &mut node.block, node.sig.ident.span());
            });
        }
    }

    fn visit_item_impl_mut(&mut self, node: &mut syn::ItemImpl) {
        let is_shown =
            node.trait_.as_ref().and_then(|(_, path, _)| path.segments.last()).is_some_and(
                |last| {
                    ["Debug", "Display", "Error", "Hash"].contains(&last.ident.to_string().as_str())
                },
            );
        if !is_shown {
            visit_mut::visit_item_impl_mut(self, node);
        }
    }

    fn visit_item_mod_mut(&mut self, node: &mut syn::ItemMod) {
        if !is_test(&node.attrs) {
            visit_mut::visit_item_mod_mut(self, node);
        }
    }

    // Constant expressions are evaluated at compile time and cannot be switched.
    fn visit_item_const_mut(&mut self, _: &mut syn::ItemConst) {}
    fn visit_impl_item_const_mut(&mut self, _: &mut syn::ImplItemConst) {}
    fn visit_item_static_mut(&mut self, _: &mut syn::ItemStatic) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_generic_argument_mut(&mut self, _: &mut syn::GenericArgument) {}
    fn visit_variant_mut(&mut self, _: &mut syn::Variant) {}
    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}
    fn visit_attribute_mut(&mut self, _: &mut syn::Attribute) {}
    fn visit_expr_const_mut(&mut self, _: &mut syn::ExprConst) {}
    fn visit_expr_repeat_mut(&mut self, node: &mut syn::ExprRepeat) {
        self.visit_expr_mut(&mut node.expr);
    }
}

fn span(node: &impl ToTokens) -> Span {
    node.to_token_stream().into_iter().next().map_or_else(Span::call_site, |token| token.span())
}

/// Checks whether an expression binds names by `let`, so that it cannot be moved.
fn has_let(expression: &Expr) -> bool {
    struct Finder(bool);
    impl<'ast> Visit<'ast> for Finder {
        fn visit_expr_let(&mut self, _: &'ast syn::ExprLet) {
            self.0 = true;
        }
        fn visit_block(&mut self, _: &'ast syn::Block) {}
        fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    }
    let mut finder = Finder(false);
    finder.visit_expr(expression);
    finder.0
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute.to_token_stream().to_string().contains("test"))
    })
}

/// Returns the operators that are easily confused with this one.
fn other_operators(operator: &BinOp) -> Vec<BinOp> {
    let others: &[&str] = match operator {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">"],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<"],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["*", "%"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::BitXor(_) => &["&", "|"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) => &["+="],
        BinOp::DivAssign(_) => &["*="],
        BinOp::RemAssign(_) => &["/="],
        BinOp::BitAndAssign(_) => &["|=", "^="],
        BinOp::BitOrAssign(_) => &["&=", "^="],
        BinOp::BitXorAssign(_) => &["|="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        _ => &[],
    };
    others.iter().map(|text| syn::parse_str(text).expect("an operator")).collect()
}

/// Returns values of a type that a function might return without doing anything.
fn plain_values(output: &syn::ReturnType) -> Vec<Expr> {
    match output {
        syn::ReturnType::Default => vec![parse_quote!(())],
        syn::ReturnType::Type(_, kind) => plain_values_of(kind),
    }
}

fn plain_values_of(kind: &syn::Type) -> Vec<Expr> {
    let syn::Type::Path(path) = kind else {
        let is_unit = matches!(kind, syn::Type::Tuple(tuple) if tuple.elems.is_empty());
        return if is_unit { vec![parse_quote!(())] } else { Vec::new() };
    };
    let Some(last) = path.path.segments.last() else { return Vec::new() };
    match last.ident.to_string().as_str() {
        "bool" => vec![parse_quote!(true), parse_quote!(false)],
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "i128"
        | "isize" => vec![parse_quote!(0), parse_quote!(1)],
        "Option" => vec![parse_quote!(None)],
        "Vec" => vec![parse_quote!(Vec::new())],
        "String" => vec![parse_quote!(String::new())],
        "Result" => {
            let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
                return Vec::new();
            };
            let Some(syn::GenericArgument::Type(inner)) = arguments.args.first() else {
                return Vec::new();
            };
            plain_values_of(inner).into_iter().map(|value| parse_quote!(Ok(#value))).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slips(text: &str) -> Vec<String> {
        let (planted, slips) = plant(text, "a.rs", 1, &HashSet::new()).unwrap();
        syn::parse_file(&planted).expect("what is planted parses");
        slips.iter().map(|slip| format!("{}:{} {}", slip.line, slip.column, slip.what)).collect()
    }

    #[test]
    fn operators_are_taken_for_others() {
        assert_eq!(
            slips("fn f(a: u32) -> char { if a < 1 { 'a' } else { 'b' } }"),
            ["1:29 replace < by <=", "1:29 replace < by >"]
        );
    }

    #[test]
    fn functions_end_at_once() {
        assert_eq!(
            slips("fn f() -> Result<bool, E> { g() }"),
            ["1:4 return Ok (false) at once", "1:4 return Ok (true) at once"]
        );
    }

    #[test]
    fn names_stay_bound() {
        assert!(
            slips("fn f() -> char { if let Some(x) = y && x { 'a' } else { 'b' } }").is_empty()
        );
    }

    #[test]
    fn constants_and_tests_are_left_alone() {
        assert!(
            slips("const A: u32 = 1 + 2; #[cfg(test)] mod tests { fn f() { g(); } }").is_empty()
        );
    }

    #[test]
    fn a_refused_slip_keeps_its_number() {
        let text = "fn f(a: u32) -> char { g(a < 1) }";
        let (_, slips) = plant(text, "a.rs", 1, &HashSet::from([1])).unwrap();
        assert_eq!(slips.iter().map(|slip| slip.id).collect::<Vec<_>>(), [2]);
    }
}
