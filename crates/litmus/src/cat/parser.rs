//! Reads cat and bell texts, with the files that they include, into one list of statements.
//!
//! Operators from weak to strong: `|`, `++`, `;`, `\`, `&`, then products and postfix operators and
//! `~`, then `^-1`, then application.

use std::collections::HashMap;
use std::sync::Arc as Rc;

use consistory_diagnostic::{Diagnostics, Source};

use super::lexer::{Token, tokens};
use super::library;
use super::syntax::{
    Binary, Binding, Check, Condition, Expr, ExprKind, Pattern, Place, Purpose, Statement, Symbol,
    Test, Unary,
};

/// Largest nesting depth of brackets, and of includes.
const MAX_DEPTH: usize = 200;

/// The texts of a model, its names and its statements.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// Names and contents of the files, in the order of their first include.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) names: Vec<Rc<str>>,
    symbols: HashMap<Rc<str>, Symbol>,
}

impl Texts {
    pub(crate) fn symbol(&mut self, name: &str) -> Symbol {
        if let Some(&symbol) = self.symbols.get(name) {
            return symbol;
        }
        let symbol = Symbol(self.names.len() as u32);
        let name: Rc<str> = name.into();
        self.names.push(name.clone());
        self.symbols.insert(name, symbol);
        symbol
    }

    pub(crate) fn find(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }

    pub(crate) fn name(&self, symbol: Symbol) -> &str {
        &self.names[symbol.0 as usize]
    }

    /// Builds a diagnostic with a place.
    pub(crate) fn diagnostics(
        &self,
        place: Place,
        message: String,
        hint: Option<String>,
    ) -> Diagnostics {
        let (name, text) = &self.files[place.file as usize];
        let source = Source::new(name.as_str(), text);
        let start = (place.at as usize).min(text.len());
        let length = text[start..]
            .find(|c: char| !(c.is_alphanumeric() || "_.-'".contains(c)))
            .unwrap_or(text.len() - start)
            .max(text[start..].chars().next().map_or(0, char::len_utf8));
        let mut all = Diagnostics::default();
        all.push_at(&source, start..start + length, message, hint);
        all
    }
}

/// Function that returns the text of an included file.
pub(crate) type Loader<'l> = &'l dyn Fn(&str) -> Option<String>;

/// A parsed file: its statements and other properties.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) title: Option<String>,
    pub(crate) statements: Vec<Statement>,
}

/// Reads a text with the files that it includes.
pub(crate) fn read(
    texts: &mut Texts,
    name: &str,
    text: String,
    load: Loader<'_>,
    depth: usize,
) -> Result<Read, Diagnostics> {
    let file = texts.files.len() as u32;
    texts.files.push((name.to_owned(), text));
    let text = texts.files[file as usize].1.clone();
    let tokens = match tokens(&text) {
        Ok(tokens) => tokens,
        Err((at, message)) => {
            let place = Place { file, at: at as u32 };
            return Err(texts.diagnostics(place, message.to_owned(), None));
        }
    };
    let mut parser = Parser { texts, file, tokens: &tokens, at: 0, load, depth };
    match parser.model() {
        Ok(read) => Ok(read),
        Err(Stop::Here(place, message, hint)) => Err(texts.diagnostics(place, message, hint)),
        Err(Stop::Inside(diagnostics)) => Err(diagnostics),
    }
}

enum Stop {
    Here(Place, String, Option<String>),
    Inside(Diagnostics),
}

type Parsed<T> = Result<T, Stop>;

struct Parser<'a, 't> {
    texts: &'a mut Texts,
    file: u32,
    tokens: &'t [(usize, Token<'t>)],
    at: usize,
    load: Loader<'a>,
    depth: usize,
}

const KEYWORDS: [&str; 30] = [
    "let",
    "rec",
    "and",
    "in",
    "with",
    "from",
    "do",
    "end",
    "call",
    "procedure",
    "include",
    "match",
    "show",
    "unshow",
    "as",
    "fun",
    "acyclic",
    "irreflexive",
    "empty",
    "flag",
    "undefined_unless",
    "try",
    "if",
    "then",
    "else",
    "assert",
    "forall",
    "enum",
    "instructions",
    "catdep",
];

impl<'t> Parser<'_, 't> {
    fn peek(&self) -> Token<'t> {
        self.tokens[self.at].1
    }

    fn second(&self) -> Token<'t> {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)].1
    }

    fn place(&self) -> Place {
        Place { file: self.file, at: self.tokens[self.at].0 as u32 }
    }

    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn is(&self, word: &str) -> bool {
        self.peek() == Token::Word(word)
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.is(word);
        if found {
            self.next();
        }
        found
    }

    fn eat_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(s) if s == sign);
        if found {
            self.next();
        }
        found
    }

    fn found(&self) -> String {
        match self.peek() {
            Token::Word(word) => format!("`{word}`"),
            Token::Tag(tag) => format!("`'{tag}`"),
            Token::Text(text) => format!("\"{text}\""),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::Other(c) => format!("`{c}`"),
            Token::End => "the end of the file".to_owned(),
        }
    }

    fn stop<T>(&self, wanted: &str) -> Parsed<T> {
        let message = format!("expected {wanted}, found {}", self.found());
        Err(Stop::Here(self.place(), message, None))
    }

    fn expect(&mut self, word: &str) -> Parsed<()> {
        if self.eat(word) { Ok(()) } else { self.stop(&format!("`{word}`")) }
    }

    fn expect_sign(&mut self, sign: &str) -> Parsed<()> {
        if self.eat_sign(sign) { Ok(()) } else { self.stop(&format!("`{sign}`")) }
    }

    fn name(&mut self) -> Parsed<Symbol> {
        match self.peek() {
            Token::Word(word) if is_name(word) => {
                self.next();
                Ok(self.texts.symbol(word))
            }
            _ => self.stop("a name"),
        }
    }

    fn model(&mut self) -> Parsed<Read> {
        let mut read = Read { title: self.title(), ..Read::default() };
        self.eat("catdep");
        read.statements = self.statements(&[])?;
        match self.peek() {
            Token::End => Ok(read),
            _ => self.stop("a statement such as `let`, `acyclic` or `include`"),
        }
    }

    /// Parses the title: words and strings before the first statement.
    fn title(&mut self) -> Option<String> {
        let mut words: Vec<&str> = Vec::new();
        loop {
            match self.peek() {
                Token::Text(text) => words.push(text),
                Token::Word(word) if !KEYWORDS.contains(&word) => words.push(word),
                _ => break,
            }
            self.next();
        }
        // A quoted title is the title; bare words before it are the name of the architecture.
        (!words.is_empty()).then(|| words.last().copied().unwrap_or_default().to_owned())
    }

    fn statements(&mut self, ends: &[&str]) -> Parsed<Vec<Statement>> {
        let mut found = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(found),
                Token::Word(word) if ends.contains(&word) => return Ok(found),
                _ => self.statement(&mut found)?,
            }
        }
    }

    fn statement(&mut self, into: &mut Vec<Statement>) -> Parsed<()> {
        let place = self.place();
        let word = match self.peek() {
            Token::Word(word) => word,
            // `~empty r` may occur without `flag`.
            Token::Sign("~") => "",
            _ => return self.stop("a statement such as `let`, `acyclic` or `include`"),
        };
        match word {
            "let" => {
                self.next();
                let recursive = self.eat("rec");
                let bindings = Rc::new(self.bindings()?);
                if self.eat("when") {
                    return Err(Stop::Here(place, "`when` is not supported".to_owned(), None));
                }
                into.push(Statement::Let { recursive, bindings });
            }
            "include" => {
                self.next();
                let at = self.place();
                let Token::Text(name) = self.next() else { return self.stop("a file in quotes") };
                into.extend(self.include(at, name)?);
            }
            "show" | "unshow" => self.skip_show()?,
            "flag" => {
                self.next();
                into.push(self.check(place, Purpose::Flag)?);
            }
            "undefined_unless" => {
                self.next();
                into.push(self.check(place, Purpose::Undefined)?);
            }
            "assert" => {
                self.next();
                into.push(self.check(place, Purpose::Assert)?);
            }
            "" | "acyclic" | "irreflexive" | "empty" => {
                into.push(self.check(place, Purpose::Require)?);
            }
            "procedure" => {
                self.next();
                let name = self.name()?;
                let parameters = Rc::new(self.pattern()?);
                self.expect_sign("=")?;
                let body = Rc::new(self.statements(&["end"])?);
                self.expect("end")?;
                into.push(Statement::Procedure { name, parameters, body });
            }
            "call" => {
                self.next();
                let name = self.name()?;
                let argument = self.simple()?;
                if self.eat("as") {
                    self.next();
                }
                into.push(Statement::Call { place, name, argument });
            }
            "with" => {
                self.next();
                let name = self.name()?;
                self.expect("from")?;
                let from = self.expr()?;
                into.push(Statement::With { place, name, from });
            }
            "forall" => {
                self.next();
                let name = self.name()?;
                self.expect("in")?;
                let of = self.expr()?;
                self.expect("do")?;
                let body = Rc::new(self.statements(&["end"])?);
                self.expect("end")?;
                into.push(Statement::Forall { place, name, of, body });
            }
            "if" => {
                self.next();
                let condition = self.condition()?;
                self.eat("then");
                let then = self.statements(&["else", "end"])?;
                let other = if self.eat("else") { self.statements(&["end"])? } else { Vec::new() };
                self.expect("end")?;
                into.push(Statement::If { condition, then, other });
            }
            "enum" => {
                self.next();
                let name = self.name()?;
                self.expect_sign("=")?;
                self.eat_sign("||");
                let mut tags = Vec::new();
                loop {
                    match self.next() {
                        Token::Tag(tag) => tags.push(self.texts.symbol(tag)),
                        _ => return self.stop("a tag such as `'once`"),
                    }
                    if !self.eat_sign("||") {
                        break;
                    }
                }
                into.push(Statement::Enum { name, tags });
            }
            "instructions" => self.skip_instructions()?,
            _ => return self.stop("a statement such as `let`, `acyclic` or `include`"),
        }
        Ok(())
    }

    fn include(&mut self, place: Place, name: &str) -> Parsed<Vec<Statement>> {
        if self.depth >= 50 {
            let message = format!("\"{name}\" is included inside itself");
            return Err(Stop::Here(place, message, None));
        }
        let text = match library::always(name) {
            Some(text) => text.to_owned(),
            None => match (self.load)(name).or_else(|| library::find(name).map(str::to_owned)) {
                Some(text) => text,
                None => {
                    return Err(Stop::Here(
                        place,
                        format!("cannot find the file \"{name}\""),
                        Some("give its folder with -I".to_owned()),
                    ));
                }
            },
        };
        read(self.texts, name, text, self.load, self.depth + 1)
            .map(|read| read.statements)
            .map_err(Stop::Inside)
    }

    /// Skips a statement about the display of relations.
    fn skip_show(&mut self) -> Parsed<()> {
        self.next();
        loop {
            self.expr()?;
            if self.eat("as") {
                self.next();
            }
            if !self.eat_sign(",") {
                return Ok(());
            }
        }
    }

    /// Skips the declaration of the tags of an instruction: tests are assumed to have valid tags.
    fn skip_instructions(&mut self) -> Parsed<()> {
        self.next();
        while !matches!(self.peek(), Token::Sign("[") | Token::End) {
            self.next();
        }
        let mut depth = 0;
        loop {
            match self.next() {
                Token::Sign("[" | "{" | "(") => depth += 1,
                Token::Sign("]" | "}" | ")") => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                Token::End => return self.stop("`]`"),
                _ => {}
            }
        }
    }

    fn check(&mut self, place: Place, purpose: Purpose) -> Parsed<Statement> {
        let negated = self.eat_sign("~");
        let test = match self.peek() {
            Token::Word("acyclic") => Test::Acyclic,
            Token::Word("irreflexive") => Test::Irreflexive,
            Token::Word("empty") => Test::Empty,
            _ => return self.stop("`acyclic`, `irreflexive` or `empty`"),
        };
        self.next();
        let of = self.expr()?;
        let mut name = None;
        if self.eat("as") {
            match self.next() {
                Token::Word(word) => name = Some(word.into()),
                _ => return self.stop("the name of the check"),
            }
        }
        Ok(Statement::Check(Check { place, purpose, negated, test, of, name }))
    }

    fn condition(&mut self) -> Parsed<Condition> {
        let mut left = self.condition_and()?;
        while self.eat_sign("||") {
            left = Condition::Or(Box::new(left), Box::new(self.condition_and()?));
        }
        Ok(left)
    }

    fn condition_and(&mut self) -> Parsed<Condition> {
        let mut left = self.condition_atom()?;
        while self.eat_sign("&&") {
            left = Condition::And(Box::new(left), Box::new(self.condition_atom()?));
        }
        Ok(left)
    }

    fn condition_atom(&mut self) -> Parsed<Condition> {
        if self.eat("not") {
            return Ok(Condition::Not(Box::new(self.condition_atom()?)));
        }
        if let Token::Text(name) = self.peek() {
            self.next();
            return Ok(Condition::Variant(name.to_owned()));
        }
        if matches!(self.peek(), Token::Sign("(")) && matches!(self.second(), Token::Text(_)) {
            self.next();
            let inner = self.condition()?;
            self.expect_sign(")")?;
            return Ok(inner);
        }
        let left = self.expr()?;
        if self.eat("subset") {
            self.expr()?;
            return Ok(Condition::Subset(left));
        }
        self.stop("the name of a variant in quotes")
    }

    fn pattern(&mut self) -> Parsed<Pattern> {
        if self.eat_sign("(") {
            let mut names = Vec::new();
            if !self.eat_sign(")") {
                loop {
                    names.push(self.name()?);
                    if !self.eat_sign(",") {
                        break;
                    }
                }
                self.expect_sign(")")?;
            }
            return Ok(match names[..] {
                [one] => Pattern::One(one),
                _ => Pattern::Tuple(names),
            });
        }
        Ok(Pattern::One(self.name()?))
    }

    fn bindings(&mut self) -> Parsed<Vec<Binding>> {
        let mut found = Vec::new();
        loop {
            let place = self.place();
            let target = if matches!(self.peek(), Token::Sign("(")) {
                self.pattern()?
            } else {
                Pattern::One(self.name()?)
            };
            let mut parameters = Vec::new();
            while !matches!(self.peek(), Token::Sign("=")) {
                parameters.push(self.pattern()?);
            }
            self.expect_sign("=")?;
            let mut value = self.expr()?;
            for pattern in parameters.into_iter().rev() {
                let kind = ExprKind::Function(Rc::new(pattern), value);
                value = Rc::new(Expr { place, kind });
            }
            found.push(Binding { place, target, value });
            if !self.eat("and") {
                return Ok(found);
            }
        }
    }

    fn expr(&mut self) -> Parsed<Rc<Expr>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Stop::Here(self.place(), "too deeply nested".to_owned(), None));
        }
        let result = self.expr_inner();
        self.depth -= 1;
        result
    }

    fn expr_inner(&mut self) -> Parsed<Rc<Expr>> {
        let place = self.place();
        let make = |kind| Ok(Rc::new(Expr { place, kind }));
        match self.peek() {
            Token::Word("let") => {
                self.next();
                let recursive = self.eat("rec");
                let bindings = Rc::new(self.bindings()?);
                self.expect("in")?;
                let body = self.expr()?;
                make(ExprKind::Let { recursive, bindings, body })
            }
            Token::Word("fun") => {
                self.next();
                let pattern = Rc::new(self.pattern()?);
                self.expect_sign("->")?;
                let body = self.expr()?;
                make(ExprKind::Function(pattern, body))
            }
            Token::Word("try") => {
                self.next();
                let first = self.expr()?;
                self.expect("with")?;
                let second = self.expr()?;
                make(ExprKind::Try(first, second))
            }
            Token::Word("if") => {
                self.next();
                let condition = self.condition()?;
                self.expect("then")?;
                let then = self.expr()?;
                self.expect("else")?;
                let other = self.expr()?;
                make(ExprKind::If(condition, then, other))
            }
            _ => self.union(),
        }
    }

    fn matching(&mut self, place: Place) -> Parsed<Rc<Expr>> {
        let of = self.expr()?;
        self.expect("with")?;
        self.eat_sign("||");
        let (mut empty, mut some) = (None, None);
        let (mut clauses, mut default) = (Vec::new(), None);
        loop {
            match self.peek() {
                Token::Sign("{") => {
                    self.next();
                    self.expect_sign("}")?;
                    self.expect_sign("->")?;
                    empty = Some(self.expr()?);
                }
                Token::Tag(tag) => {
                    self.next();
                    self.expect_sign("->")?;
                    let tag = self.texts.symbol(tag);
                    clauses.push((tag, self.expr()?));
                }
                Token::Word("_") => {
                    self.next();
                    self.expect_sign("->")?;
                    default = Some(self.expr()?);
                }
                _ => {
                    let element = self.name()?;
                    self.expect_sign("++")?;
                    let rest = self.name()?;
                    self.expect_sign("->")?;
                    some = Some((element, rest, self.expr()?));
                }
            }
            if !self.eat_sign("||") {
                break;
            }
        }
        self.expect("end")?;
        let kind = if empty.is_some() || some.is_some() {
            ExprKind::MatchSet { of, empty, some }
        } else {
            ExprKind::MatchTag { of, clauses, default }
        };
        Ok(Rc::new(Expr { place, kind }))
    }

    /// Reads operands of one operator, grouped to the right.
    fn right(
        &mut self,
        sign: &str,
        operator: Binary,
        operand: fn(&mut Self) -> Parsed<Rc<Expr>>,
    ) -> Parsed<Rc<Expr>> {
        let place = self.place();
        let mut operands = vec![operand(self)?];
        while self.eat_sign(sign) {
            operands.push(match self.peek() {
                Token::Word("let" | "fun" | "try" | "if") => self.expr()?,
                _ => operand(self)?,
            });
        }
        let mut right = operands.pop().expect("there is a first operand");
        while let Some(left) = operands.pop() {
            right = Rc::new(Expr { place, kind: ExprKind::Binary(operator, left, right) });
        }
        Ok(right)
    }

    fn union(&mut self) -> Parsed<Rc<Expr>> {
        // A bar may precede the first operand.
        self.eat_sign("|");
        self.right("|", Binary::Union, Self::adding)
    }

    fn adding(&mut self) -> Parsed<Rc<Expr>> {
        self.right("++", Binary::Add, Self::sequence)
    }

    fn sequence(&mut self) -> Parsed<Rc<Expr>> {
        self.right(";", Binary::Seq, Self::difference)
    }

    fn difference(&mut self) -> Parsed<Rc<Expr>> {
        let place = self.place();
        let mut left = self.intersection()?;
        while self.eat_sign("\\") {
            let right = self.intersection()?;
            left = Rc::new(Expr { place, kind: ExprKind::Binary(Binary::Diff, left, right) });
        }
        Ok(left)
    }

    fn intersection(&mut self) -> Parsed<Rc<Expr>> {
        self.right("&", Binary::Inter, Self::product)
    }

    fn product(&mut self) -> Parsed<Rc<Expr>> {
        let place = self.place();
        let left = self.postfix()?;
        if matches!(self.peek(), Token::Sign("*")) {
            self.next();
            let right = self.postfix()?;
            let kind = ExprKind::Binary(Binary::Product, left, right);
            return Ok(Rc::new(Expr { place, kind }));
        }
        Ok(left)
    }

    fn postfix(&mut self) -> Parsed<Rc<Expr>> {
        let place = self.place();
        if self.eat_sign("~") {
            let of = self.postfix()?;
            return Ok(Rc::new(Expr { place, kind: ExprKind::Unary(Unary::Complement, of) }));
        }
        let mut of = self.application()?;
        loop {
            let operator = match self.peek() {
                Token::Sign("+") => Unary::Plus,
                Token::Sign("?") => Unary::Opt,
                Token::Sign("^-1") => Unary::Inverse,
                // Before an expression a star is a product.
                Token::Sign("*") if !starts_expression(self.second()) => Unary::Star,
                _ => return Ok(of),
            };
            self.next();
            of = Rc::new(Expr { place, kind: ExprKind::Unary(operator, of) });
        }
    }

    fn application(&mut self) -> Parsed<Rc<Expr>> {
        let place = self.place();
        let mut function = self.simple()?;
        while matches!(function.kind, ExprKind::Name(_) | ExprKind::Apply(..)) {
            let applies = match self.peek() {
                Token::Sign("(" | "{") | Token::Tag(_) => true,
                Token::Word(word) => is_name(word) || word == "0" || word == "_",
                _ => false,
            };
            if !applies {
                break;
            }
            let argument = self.simple()?;
            function = Rc::new(Expr { place, kind: ExprKind::Apply(function, argument) });
        }
        Ok(function)
    }

    fn simple(&mut self) -> Parsed<Rc<Expr>> {
        let place = self.place();
        let kind = match self.peek() {
            Token::Word("0") => {
                self.next();
                ExprKind::Zero
            }
            Token::Word("_") => {
                self.next();
                ExprKind::Universe
            }
            Token::Word("match") => {
                self.next();
                return self.matching(place);
            }
            Token::Word(word) if is_name(word) => {
                self.next();
                ExprKind::Name(self.texts.symbol(word))
            }
            Token::Tag(tag) => {
                self.next();
                ExprKind::Tag(self.texts.symbol(tag))
            }
            Token::Sign("[") => {
                self.next();
                let of = self.expr()?;
                self.expect_sign("]")?;
                ExprKind::Unary(Unary::Identity, of)
            }
            Token::Sign("{") => {
                self.next();
                let mut elements = Vec::new();
                if !self.eat_sign("}") {
                    loop {
                        elements.push(self.expr()?);
                        if !self.eat_sign(",") {
                            break;
                        }
                    }
                    self.expect_sign("}")?;
                }
                ExprKind::Elements(elements)
            }
            Token::Sign("(") => {
                self.next();
                let mut parts = Vec::new();
                if !self.eat_sign(")") {
                    loop {
                        parts.push(self.expr()?);
                        if !self.eat_sign(",") {
                            break;
                        }
                    }
                    self.expect_sign(")")?;
                }
                match parts.len() {
                    1 => return Ok(parts.remove(0)),
                    _ => ExprKind::Tuple(parts),
                }
            }
            _ => return self.stop("an expression"),
        };
        Ok(Rc::new(Expr { place, kind }))
    }
}

fn is_name(word: &str) -> bool {
    let mut characters = word.trim_start_matches('_').chars();
    characters.next().is_some_and(|c| c.is_ascii_alphabetic()) && !KEYWORDS.contains(&word)
}

fn starts_expression(token: Token<'_>) -> bool {
    match token {
        Token::Sign("(" | "[" | "{" | "~") | Token::Tag(_) => true,
        Token::Word(word) => is_name(word) || matches!(word, "0" | "_" | "match"),
        _ => false,
    }
}
