//! Parses tokens into the syntax tree, with the precedence of herd's cat.
//!
//! From weakest to strongest: `|`, `;`, `\`, `&`, `*` between sets, prefix `~`, then the postfix
//! `+`, `*`, `?` and `^-1`. A `*` is a product if an operand follows it and a closure otherwise.
//! After an error the parser resumes at the next line that starts with a statement.

use std::ops::Range;

use consistory_definition::{CheckKind, Span};

use crate::lexer::{Keyword, Lexeme, Token};
use crate::problem::Problem;
use crate::syntax::{Binding, Expr, ExprKind, File, Group, Ident, Statement};

/// Largest nesting depth of expressions.
const DEPTH_LIMIT: usize = 100;

/// Parses one file; problems are appended to `problems`.
pub(crate) fn parse(
    file: usize,
    text: &str,
    lexemes: &[Lexeme],
    problems: &mut Vec<(Range<usize>, Problem)>,
) -> File {
    let mut parser = Parser { file, text, lexemes, at: 0, open: 0, problems };
    let title = (parser.peek() == Token::String).then(|| parser.string());
    let mut statements = Vec::new();
    while parser.peek() != Token::End {
        match parser.statement() {
            Ok(statement) => statements.push(statement),
            Err(Reported) => parser.recover(),
        }
    }
    File { title, statements }
}

/// The error of a parse function that has already reported its problem; the caller recovers.
struct Reported;

type Parsed<T> = Result<T, Reported>;

struct Parser<'a> {
    file: usize,
    text: &'a str,
    lexemes: &'a [Lexeme],
    at: usize,
    /// Current nesting depth of expressions.
    open: usize,
    problems: &'a mut Vec<(Range<usize>, Problem)>,
}

/// Infix operators with their strengths.
const INFIX: [(char, u8); 5] = [('|', 1), (';', 2), ('\\', 3), ('&', 4), ('*', 5)];

impl Parser<'_> {
    fn statement(&mut self) -> Parsed<Statement> {
        let start = self.here();
        match self.peek() {
            Token::Keyword(Keyword::Let) => {
                self.at += 1;
                let group = self.group()?;
                // cat allows `in` after an outermost definition.
                self.eat(Token::Keyword(Keyword::In));
                Ok(Statement::Let(group))
            }
            Token::Keyword(Keyword::Include) => {
                self.at += 1;
                if self.peek() != Token::String {
                    return Err(self.expected("the name of a file in quotes"));
                }
                let path = self.string();
                Ok(Statement::Include { path, span: self.span_from(start) })
            }
            Token::Keyword(Keyword::With) => {
                self.at += 1;
                let name = self.ident("the name of the store order, `ww`")?;
                self.expect(Token::Keyword(Keyword::From), "`from`")?;
                let from = self.ident("`store-orders`")?;
                Ok(Statement::StoreOrder { name, from })
            }
            Token::Keyword(Keyword::Acyclic) => self.check(CheckKind::Acyclic, start),
            Token::Keyword(Keyword::Irreflexive) => self.check(CheckKind::Irreflexive, start),
            Token::Keyword(Keyword::Empty) => self.check(CheckKind::Empty, start),
            Token::Keyword(Keyword::Forall) if self.open < DEPTH_LIMIT => {
                self.at += 1;
                let variable = self.ident("the name of an operation")?;
                self.expect(Token::Keyword(Keyword::In), "`in`")?;
                let set = self.expr(0)?;
                self.expect(Token::Keyword(Keyword::Do), "`do`")?;
                let mut body = Vec::new();
                self.open += 1;
                while !matches!(self.peek(), Token::Keyword(Keyword::End) | Token::End) {
                    match self.statement() {
                        Ok(statement) => body.push(statement),
                        Err(Reported) => {
                            self.open -= 1;
                            return Err(Reported);
                        }
                    }
                }
                self.open -= 1;
                self.expect(Token::Keyword(Keyword::End), "`end` of `forall`")?;
                Ok(Statement::Forall { variable, set, body, span: self.span_from(start) })
            }
            Token::Keyword(Keyword::Forall) => Err(self.report(Problem::NestedTooDeeply)),
            _ => Err(self.expected(
                "a statement: `let`, `include`, `with`, `forall`, `acyclic`, `irreflexive` or `empty`",
            )),
        }
    }

    fn check(&mut self, kind: CheckKind, start: usize) -> Parsed<Statement> {
        self.at += 1;
        let expr = self.expr(0)?;
        let name = if self.eat(Token::Keyword(Keyword::As)) {
            Some(self.ident("a name for the check")?)
        } else {
            None
        };
        Ok(Statement::Check { kind, expr, name, span: self.span_from(start) })
    }

    /// Parses the bindings after `let`.
    fn group(&mut self) -> Parsed<Group> {
        let recursive = self.eat(Token::Keyword(Keyword::Rec));
        let mut bindings = Vec::new();
        loop {
            let name = self.ident("a name to define")?;
            let mut parameters = Vec::new();
            if self.eat(Token::Mark('(')) {
                loop {
                    parameters.push(self.ident("the name of a parameter")?);
                    if !self.eat(Token::Mark(',')) {
                        break;
                    }
                }
                self.expect(Token::Mark(')'), "`,` or `)`")?;
            }
            self.expect(Token::Mark('='), "`=`")?;
            let body = self.expr(0)?;
            bindings.push(Binding { name, parameters, body });
            if !self.eat(Token::Keyword(Keyword::And)) {
                return Ok(Group { recursive, bindings });
            }
        }
    }

    /// Parses an expression whose infix operators are stronger than `weakest`.
    fn expr(&mut self, weakest: u8) -> Parsed<Expr> {
        if self.open >= DEPTH_LIMIT {
            return Err(self.report(Problem::NestedTooDeeply));
        }
        self.open += 1;
        let parsed = self.infix(weakest);
        self.open -= 1;
        parsed
    }

    fn infix(&mut self, weakest: u8) -> Parsed<Expr> {
        let start = self.here();
        let mut left = self.prefix()?;
        while let Some((operator, strength)) = self.infix_operator().filter(|&(_, s)| s > weakest) {
            self.at += 1;
            let right = self.expr(strength)?;
            let kind = match operator {
                '\\' => ExprKind::Difference(left.into(), right.into()),
                '*' => ExprKind::Product(left.into(), right.into()),
                _ => {
                    // One list for all operands, so that a long union is flat.
                    let mut operands = vec![left, right];
                    while self.eat(Token::Mark(operator)) {
                        operands.push(self.expr(strength)?);
                    }
                    match operator {
                        '|' => ExprKind::Union(operands),
                        ';' => ExprKind::Sequence(operands),
                        _ => ExprKind::Intersection(operands),
                    }
                }
            };
            left = self.node(start, kind)?;
        }
        Ok(left)
    }

    fn infix_operator(&self) -> Option<(char, u8)> {
        let Token::Mark(mark) = self.peek() else { return None };
        // A `*` that is a closure was parsed with its operand.
        INFIX.into_iter().find(|&(operator, _)| operator == mark)
    }

    fn prefix(&mut self) -> Parsed<Expr> {
        let start = self.here();
        let mut complements = 0;
        while self.eat(Token::Mark('~')) {
            complements += 1;
        }
        let mut expr = self.postfix()?;
        for _ in 0..complements {
            expr = self.node(start, ExprKind::Complement(expr.into()))?;
        }
        Ok(expr)
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let start = self.here();
        let mut expr = self.primary()?;
        loop {
            let kind: fn(Box<Expr>) -> ExprKind = match self.peek() {
                Token::Mark('+') => ExprKind::Plus,
                Token::Mark('?') => ExprKind::Optional,
                Token::Mark('*') if !self.operand_follows() => ExprKind::Star,
                Token::Inverse => ExprKind::Inverse,
                _ => return Ok(expr),
            };
            self.at += 1;
            expr = self.node(start, kind(expr.into()))?;
        }
    }

    /// Checks whether the token after the next one starts an operand of a binary `*`.
    fn operand_follows(&self) -> bool {
        let next = self.lexemes.get(self.at + 1).map_or(Token::End, |lexeme| lexeme.token);
        matches!(
            next,
            Token::Name | Token::Mark('(' | '[' | '_' | '0' | '~') | Token::Keyword(Keyword::Union)
        )
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.here();
        match self.peek() {
            Token::Name => {
                let name = self.ident("a name")?;
                if !self.eat(Token::Mark('(')) {
                    return self.node(start, ExprKind::Name(name.name));
                }
                let mut arguments = Vec::new();
                loop {
                    arguments.push(self.expr(0)?);
                    if !self.eat(Token::Mark(',')) {
                        break;
                    }
                }
                self.expect(Token::Mark(')'), "`,` or `)`")?;
                self.node(start, ExprKind::Call { name, arguments })
            }
            Token::Mark('_') => {
                self.at += 1;
                self.node(start, ExprKind::Everything)
            }
            Token::Mark('0') => {
                self.at += 1;
                self.node(start, ExprKind::EmptyRelation)
            }
            Token::Mark('(') => {
                self.at += 1;
                let expr = self.expr(0)?;
                self.expect(Token::Mark(')'), "`)`")?;
                Ok(expr)
            }
            Token::Mark('[') => {
                self.at += 1;
                let set = self.expr(0)?;
                self.expect(Token::Mark(']'), "`]`")?;
                self.node(start, ExprKind::Identity(set.into()))
            }
            Token::Keyword(Keyword::Let) => {
                self.at += 1;
                let group = self.group()?;
                self.expect(Token::Keyword(Keyword::In), "`in`")?;
                let body = self.expr(0)?.into();
                self.node(start, ExprKind::Let { group, body })
            }
            Token::Keyword(Keyword::Union) => {
                self.at += 1;
                let variable = self.ident("the name of an operation")?;
                self.expect(Token::Keyword(Keyword::In), "`in`")?;
                let set = self.expr(0)?.into();
                self.expect(Token::Keyword(Keyword::Do), "`do`")?;
                let body = self.expr(0)?.into();
                self.expect(Token::Keyword(Keyword::End), "`end` of `union`")?;
                self.node(start, ExprKind::BigUnion { variable, set, body })
            }
            _ => Err(self.expected("an expression")),
        }
    }

    /// Builds a node that spans from `start` to the last token taken.
    fn node(&mut self, start: usize, kind: ExprKind) -> Parsed<Expr> {
        let depth = |list: &[Expr]| list.iter().map(|e| e.depth).max().unwrap_or(0);
        let below = match &kind {
            ExprKind::Name(_) | ExprKind::Everything | ExprKind::EmptyRelation => 0,
            ExprKind::Call { arguments: list, .. }
            | ExprKind::Union(list)
            | ExprKind::Intersection(list)
            | ExprKind::Sequence(list) => depth(list),
            ExprKind::Difference(a, b) | ExprKind::Product(a, b) => a.depth.max(b.depth),
            ExprKind::Plus(e)
            | ExprKind::Star(e)
            | ExprKind::Optional(e)
            | ExprKind::Inverse(e)
            | ExprKind::Complement(e)
            | ExprKind::Identity(e) => e.depth,
            ExprKind::Let { group, body } => {
                group.bindings.iter().map(|b| b.body.depth).fold(body.depth, usize::max)
            }
            ExprKind::BigUnion { set, body, .. } => set.depth.max(body.depth),
        };
        let span = self.span_from(start);
        if below >= DEPTH_LIMIT {
            self.problems.push((span.range, Problem::NestedTooDeeply));
            return Err(Reported);
        }
        Ok(Expr { kind, span, depth: below + 1 })
    }

    fn ident(&mut self, expected: &'static str) -> Parsed<Ident> {
        if self.peek() != Token::Name {
            return Err(self.expected(expected));
        }
        let start = self.here();
        let name = self.text[self.lexemes[self.at].range.clone()].to_owned();
        self.at += 1;
        Ok(Ident { name, span: self.span_from(start) })
    }

    /// Takes a string token and returns the text between its quotes.
    fn string(&mut self) -> String {
        let text = &self.text[self.lexemes[self.at].range.clone()];
        self.at += 1;
        text.trim_start_matches('"').trim_end_matches('"').to_owned()
    }

    fn peek(&self) -> Token {
        self.lexemes[self.at].token
    }

    fn eat(&mut self, token: Token) -> bool {
        let is_next = self.peek() == token;
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, token: Token, expected: &'static str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(expected)) }
    }

    fn expected(&mut self, expected: &'static str) -> Reported {
        let lexeme = &self.lexemes[self.at];
        let found = match lexeme.token {
            Token::End => "the end of the file".to_owned(),
            _ => format!("`{}`", &self.text[lexeme.range.clone()]),
        };
        self.report(Problem::Expected { expected, found })
    }

    fn report(&mut self, problem: Problem) -> Reported {
        self.problems.push((self.lexemes[self.at].range.clone(), problem));
        Reported
    }

    /// Skips to the next line that starts with a statement.
    fn recover(&mut self) {
        let is_fresh = |lexeme: &Lexeme| {
            lexeme.starts_line
                && matches!(
                    lexeme.token,
                    Token::Keyword(
                        Keyword::Let
                            | Keyword::Include
                            | Keyword::With
                            | Keyword::Forall
                            | Keyword::Acyclic
                            | Keyword::Irreflexive
                            | Keyword::Empty
                    )
                )
        };
        while self.peek() != Token::End && !is_fresh(&self.lexemes[self.at]) {
            self.at += 1;
        }
    }

    fn here(&self) -> usize {
        self.lexemes[self.at].range.start
    }

    fn span_from(&self, start: usize) -> Span {
        let end = self.at.checked_sub(1).map_or(start, |last| self.lexemes[last].range.end);
        Span { file: self.file, range: start..end.max(start) }
    }
}
