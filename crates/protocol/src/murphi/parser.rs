//! Parser: from tokens to the syntax tree.
//!
//! Precedence from weakest to strongest: `? :`, `->`, `|`, `&`, `!`, comparisons, `+ -`, `* / %`;
//! so `!a = b` is `!(a = b)`. As in other tools for Murphi, any `endx` may be `end`, `begin` may be
//! missing, and superfluous `;` are accepted. After an error the parser continues after the next
//! `;`, or at the next keyword that starts a declaration or a rule.

use std::sync::Arc;

use crate::murphi::lexer::{Comment, Keyword, Lexed, Lexeme, Token, lex, number};
use crate::murphi::syntax::{
    BinaryOp, Decl, Domain, Expr, ExprKind, Ident, Item, Mark, MarkKind, Model, Param, PutArgument,
    Quantifier, Rule, RuleKind, Span, Stmt, StmtKind, Subprogram, TypeExpr, TypeKind,
};

/// Largest nesting depth of expressions, statements, types and rules in each other.
const DEPTH_LIMIT: usize = 100;

/// A problem and its position.
pub(crate) type Problem = (Span, String);

/// Parses a description; errors are appended to `problems`.
pub(crate) fn parse(text: &str, problems: &mut Vec<Problem>) -> Model {
    let Lexed { lexemes, comments, problems: lexical } = lex(text);
    problems.extend(lexical);
    let mut parser = Parser {
        text,
        lexemes: &lexemes,
        comments: &comments,
        at: 0,
        next_comment: 0,
        depth: 0,
        problems,
    };
    let mut model = Model::default();
    parser.items(&mut model);
    parser.marks(&mut model.data);
    model
}

/// Checks whether a text starts with a word that can start a description.
pub(crate) fn starts_as_murphi(text: &str) -> bool {
    let Lexed { lexemes, problems, .. } = lex(text);
    let is_first = |first: &Lexeme| problems.iter().all(|(span, _)| span.start > first.span.start);
    lexemes.first().is_some_and(|first| starts_item(first.token) && is_first(first))
}

/// A problem was reported; the caller must recover.
struct Reported;

type Parsed<T> = Result<T, Reported>;

struct Parser<'a> {
    text: &'a str,
    lexemes: &'a [Lexeme],
    comments: &'a [Comment],
    at: usize,
    /// Index of the first comment that has not been taken.
    next_comment: usize,
    depth: usize,
    problems: &'a mut Vec<Problem>,
}

/// Returns whether a keyword starts a declaration, a subprogram or a rule.
fn starts_item(token: Token) -> bool {
    use Keyword::*;
    matches!(
        token,
        Token::Keyword(
            Const
                | Type
                | Var
                | Procedure
                | Function
                | Rule
                | Ruleset
                | Startstate
                | Invariant
                | Choose
        )
    )
}

/// Returns whether a keyword ends a construct.
fn is_end(token: Token) -> bool {
    use Keyword::*;
    matches!(
        token,
        Token::Keyword(
            End | EndAlias
                | EndChoose
                | EndExists
                | EndFor
                | EndForall
                | EndFunction
                | EndIf
                | EndProcedure
                | EndRecord
                | EndRule
                | EndRuleset
                | EndStartstate
                | EndSwitch
                | EndWhile
        )
    )
}

impl Parser<'_> {
    // ---- items ----

    fn items(&mut self, model: &mut Model) {
        loop {
            self.semicolons();
            let before = self.at;
            let parsed = match self.peek() {
                Token::Eof => return,
                Token::Keyword(Keyword::Const | Keyword::Type | Keyword::Var) => {
                    self.marks(&mut model.data);
                    let mut decls = Vec::new();
                    self.section(&mut decls);
                    model.items.extend(decls.into_iter().map(Item::Decl));
                    Ok(())
                }
                Token::Keyword(Keyword::Procedure | Keyword::Function) => {
                    self.marks(&mut model.data);
                    self.subprogram().map(|s| model.items.push(Item::Subprogram(s)))
                }
                token if starts_item(token) || token == Token::Keyword(Keyword::Alias) => {
                    self.rule(&mut model.data).map(|rule| model.items.push(Item::Rule(rule)))
                }
                _ => {
                    self.expected("a declaration, a procedure, a function or a rule");
                    Err(Reported)
                }
            };
            if parsed.is_err() {
                self.recover_item(before);
            }
        }
    }

    /// Continues at the next keyword that starts an item.
    fn recover_item(&mut self, before: usize) {
        if self.at == before {
            self.at += 1;
        }
        while self.peek() != Token::Eof && !starts_item(self.peek()) {
            self.at += 1;
        }
    }

    /// Takes the comments before the current token: `--@ data` is recorded, others are marks.
    fn marks(&mut self, data: &mut Vec<Ident>) -> Vec<Mark> {
        let mut marks = Vec::new();
        while let Some(comment) = self.comments.get(self.next_comment) {
            if comment.before > self.at {
                break;
            }
            self.next_comment += 1;
            let is_here = comment.before == self.at;
            let mut inner = Parser {
                text: self.text,
                lexemes: &comment.lexemes,
                comments: &[],
                at: 0,
                next_comment: 0,
                depth: self.depth,
                problems: &mut *self.problems,
            };
            match inner.mark(comment.span) {
                Ok(Marked::Data(name)) => data.push(name),
                Ok(Marked::Rule(mark)) => {
                    if is_here && self.peek() == Token::Keyword(Keyword::Rule) {
                        marks.push(mark);
                    } else {
                        let message = "this mark is not in front of a rule";
                        self.problems.push((comment.span, message.into()));
                    }
                }
                Err(Reported) => {}
            }
        }
        marks
    }

    fn mark(&mut self, span: Span) -> Parsed<Marked> {
        const EXPECTED: &str = "`data`, `store`, `load` or `serialize`";
        if self.peek() != Token::Name {
            return Err(self.expected(EXPECTED));
        }
        let kind = match self.word() {
            "data" => {
                self.at += 1;
                let name = self.ident("the name of the data type")?;
                return self.end_of_mark().map(|()| Marked::Data(name));
            }
            "store" => MarkKind::Store,
            "load" => MarkKind::Load,
            "serialize" => MarkKind::Serialize,
            _ => return Err(self.expected(EXPECTED)),
        };
        self.at += 1;
        let mut arguments = Vec::new();
        while self.peek() == Token::Name {
            let key = self.ident("a key")?;
            self.expect(Token::Sign(b'='), "`=`")?;
            arguments.push((key, self.binary(ADDITIVE)?));
            self.eat(Token::Sign(b','));
        }
        self.end_of_mark()?;
        Ok(Marked::Rule(Mark { kind, arguments, span }))
    }

    fn end_of_mark(&mut self) -> Parsed<()> {
        self.eat(Token::Sign(b';'));
        if self.peek() == Token::Eof { Ok(()) } else { Err(self.expected("the end of the line")) }
    }

    // ---- declarations ----

    /// Parses `const`, `type` or `var` and all declarations of the section.
    fn section(&mut self, decls: &mut Vec<Decl>) {
        let Token::Keyword(keyword) = self.next() else { return };
        self.semicolons();
        while self.peek() == Token::Name {
            let parsed = match keyword {
                Keyword::Const => self.constant(),
                Keyword::Type => self.type_decl(),
                _ => self.variables(),
            };
            match parsed {
                Ok(decl) => decls.push(decl),
                Err(Reported) => self.recover_decl(),
            }
            self.semicolons();
        }
    }

    fn constant(&mut self) -> Parsed<Decl> {
        let name = self.ident("the name of a constant")?;
        self.expect(Token::Sign(b':'), "`:`")?;
        let value = self.expr()?;
        self.separator()?;
        Ok(Decl::Const { name, value })
    }

    fn type_decl(&mut self) -> Parsed<Decl> {
        let name = self.ident("the name of a type")?;
        self.expect(Token::Sign(b':'), "`:`")?;
        let ty = self.type_expr()?;
        self.separator()?;
        Ok(Decl::Type { name, ty })
    }

    fn variables(&mut self) -> Parsed<Decl> {
        let names = self.idents("the name of a variable")?;
        self.expect(Token::Sign(b':'), "`:`")?;
        let ty = self.type_expr()?;
        self.separator()?;
        Ok(Decl::Var { names, ty })
    }

    /// Requires a `;` unless the next token cannot belong to the declaration.
    fn separator(&mut self) -> Parsed<()> {
        if self.eat(Token::Sign(b';'))
            || starts_item(self.peek())
            || is_end(self.peek())
            || matches!(self.peek(), Token::Eof | Token::Keyword(Keyword::Begin))
        {
            return Ok(());
        }
        Err(self.expected("`;`"))
    }

    /// Continues after the next `;`, or at the next item.
    fn recover_decl(&mut self) {
        loop {
            match self.peek() {
                Token::Eof | Token::Keyword(Keyword::Begin) => return,
                token if starts_item(token) => return,
                Token::Sign(b';') => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn type_expr(&mut self) -> Parsed<TypeExpr> {
        self.nested(Self::type_expr_inside)
    }

    fn type_expr_inside(&mut self) -> Parsed<TypeExpr> {
        let start = self.span();
        let kind = match self.peek() {
            Token::Keyword(Keyword::Enum) => {
                self.at += 1;
                self.expect(Token::Sign(b'{'), "`{`")?;
                let mut names = Vec::new();
                while self.peek() == Token::Name {
                    names.push(self.ident("the name of a value")?);
                    if !self.eat(Token::Sign(b',')) {
                        break;
                    }
                }
                self.expect(Token::Sign(b'}'), "`,` or `}`")?;
                TypeKind::Enum(names)
            }
            Token::Keyword(Keyword::Scalarset) => {
                self.at += 1;
                self.expect(Token::Sign(b'('), "`(`")?;
                let size = self.expr()?;
                self.expect(Token::Sign(b')'), "`)`")?;
                TypeKind::Scalarset(size)
            }
            Token::Keyword(Keyword::Union) => {
                self.at += 1;
                self.expect(Token::Sign(b'{'), "`{`")?;
                let mut members = vec![self.type_expr()?];
                while self.eat(Token::Sign(b',')) && self.peek() != Token::Sign(b'}') {
                    members.push(self.type_expr()?);
                }
                self.expect(Token::Sign(b'}'), "`,` or `}`")?;
                TypeKind::Union(members)
            }
            Token::Keyword(Keyword::Record) => {
                self.at += 1;
                let mut fields = Vec::new();
                self.semicolons();
                while !(is_end(self.peek())
                    || starts_item(self.peek())
                    || self.peek() == Token::Eof)
                {
                    match self.field() {
                        Ok(field) => fields.push(field),
                        Err(Reported) => self.recover_field(),
                    }
                    self.semicolons();
                }
                self.end(Keyword::EndRecord, "a field, or `end` of the record")?;
                TypeKind::Record(fields)
            }
            Token::Keyword(Keyword::Array) => {
                self.at += 1;
                self.expect(Token::Sign(b'['), "`[`")?;
                let index = self.type_expr()?;
                self.expect(Token::Sign(b']'), "`]`")?;
                self.expect(Token::Keyword(Keyword::Of), "`of`")?;
                TypeKind::Array(Box::new(index), Box::new(self.type_expr()?))
            }
            Token::Keyword(Keyword::Multiset) => {
                self.at += 1;
                self.expect(Token::Sign(b'['), "`[`")?;
                let size = self.expr()?;
                self.expect(Token::Sign(b']'), "`]`")?;
                self.expect(Token::Keyword(Keyword::Of), "`of`")?;
                TypeKind::Multiset(size, Box::new(self.type_expr()?))
            }
            Token::Name if !self.is_range() => TypeKind::Name(self.ident("a type")?),
            Token::Name | Token::Number | Token::Sign(b'(' | b'-' | b'+') => {
                let from = self.binary(ADDITIVE)?;
                self.expect(Token::Dots, "`..`")?;
                TypeKind::Range(from, self.binary(ADDITIVE)?)
            }
            _ => return Err(self.expected("a type")),
        };
        Ok(TypeExpr { kind, span: start.to(self.last_span()) })
    }

    fn field(&mut self) -> Parsed<(Vec<Ident>, TypeExpr)> {
        let names = self.idents("the name of a field, or `end` of the record")?;
        self.expect(Token::Sign(b':'), "`:`")?;
        let ty = self.type_expr()?;
        if self.peek() != Token::Sign(b';') && !is_end(self.peek()) {
            return Err(self.expected("`;`, or `end` of the record"));
        }
        Ok((names, ty))
    }

    /// Continues after a field with an error.
    fn recover_field(&mut self) {
        loop {
            match self.peek() {
                Token::Eof | Token::Sign(b';') => return,
                token if is_end(token) || starts_item(token) => return,
                _ => self.at += 1,
            }
        }
    }

    /// Checks whether a type that starts with a name is a range: `N-1..M`.
    fn is_range(&self) -> bool {
        matches!(
            self.lexemes.get(self.at + 1).map(|l| l.token),
            Some(Token::Dots | Token::Sign(b'+' | b'-' | b'*' | b'/' | b'%' | b'(' | b'['))
        )
    }

    fn subprogram(&mut self) -> Parsed<Subprogram> {
        let is_function = self.next() == Token::Keyword(Keyword::Function);
        let name = self.ident("a name")?;
        self.expect(Token::Sign(b'('), "`(`")?;
        let mut params = Vec::new();
        self.semicolons();
        while self.peek() != Token::Sign(b')') {
            let is_var = self.eat(Token::Keyword(Keyword::Var));
            let names = self.idents("the name of a parameter, or `)`")?;
            self.expect(Token::Sign(b':'), "`:`")?;
            params.push(Param { is_var, names, ty: self.type_expr()? });
            if !self.eat(Token::Sign(b';')) && !self.eat(Token::Sign(b',')) {
                break;
            }
            self.semicolons();
        }
        self.expect(Token::Sign(b')'), "`;` or `)`")?;
        let returns = if is_function {
            self.expect(Token::Sign(b':'), "`:` and the type of the result")?;
            Some(self.type_expr()?)
        } else {
            None
        };
        self.semicolons();
        let (decls, body) = self.block();
        let end = if is_function { Keyword::EndFunction } else { Keyword::EndProcedure };
        self.end(end, "a statement, or `end`")?;
        Ok(Subprogram { name, params, returns, decls, body })
    }

    /// Parses declarations, an optional `begin`, and statements.
    fn block(&mut self) -> (Vec<Decl>, Vec<Stmt>) {
        let mut decls = Vec::new();
        loop {
            match self.peek() {
                Token::Keyword(Keyword::Const | Keyword::Type | Keyword::Var) => {
                    self.section(&mut decls);
                }
                Token::Sign(b';') => self.at += 1,
                _ => break,
            }
        }
        self.eat(Token::Keyword(Keyword::Begin));
        (decls, self.stmts())
    }

    // ---- rules ----

    fn rule(&mut self, data: &mut Vec<Ident>) -> Parsed<Rule> {
        self.nested(|parser| parser.rule_inside(data))
    }

    fn rule_inside(&mut self, data: &mut Vec<Ident>) -> Parsed<Rule> {
        let marks = self.marks(data);
        let start = self.span();
        let kind = match self.next() {
            Token::Keyword(Keyword::Rule) => {
                let priority = self.priority()?;
                let name = self.title();
                let guard = if self.has_guard() {
                    let guard = self.expr()?;
                    self.expect(Token::Guard, "`==>`")?;
                    Some(guard)
                } else {
                    None
                };
                let head = start.to(self.last_span());
                let (decls, body) = self.block();
                self.end(Keyword::EndRule, "a statement, or `end` of the rule")?;
                let kind = RuleKind::Simple { name, priority, guard, decls, body, marks };
                return Ok(Rule { kind, span: head });
            }
            Token::Keyword(Keyword::Startstate) => {
                let name = self.title();
                let head = start.to(self.last_span());
                let (decls, body) = self.block();
                self.end(Keyword::EndStartstate, "a statement, or `end` of the start state")?;
                return Ok(Rule { kind: RuleKind::Start { name, decls, body }, span: head });
            }
            Token::Keyword(Keyword::Invariant) => {
                let name = self.title();
                RuleKind::Invariant { name, condition: self.expr()? }
            }
            Token::Keyword(Keyword::Ruleset) => {
                let quantifiers = self.quantifiers()?;
                let rules = self.rules(data, Keyword::EndRuleset)?;
                RuleKind::Ruleset { quantifiers, rules }
            }
            Token::Keyword(Keyword::Alias) => {
                let aliases = self.aliases()?;
                RuleKind::Alias { aliases, rules: self.rules(data, Keyword::EndAlias)? }
            }
            Token::Keyword(Keyword::Choose) => {
                let index = self.ident("the name of an index")?;
                self.expect(Token::Sign(b':'), "`:`")?;
                let multiset = self.expr()?;
                self.semicolons();
                self.expect(Token::Keyword(Keyword::Do), "`do`")?;
                RuleKind::Choose { index, multiset, rules: self.rules(data, Keyword::EndChoose)? }
            }
            _ => {
                self.at -= 1;
                return Err(self.expected("a rule"));
            }
        };
        Ok(Rule { kind, span: start.to(self.last_span()) })
    }

    fn rules(&mut self, data: &mut Vec<Ident>, end: Keyword) -> Parsed<Vec<Rule>> {
        let mut rules = Vec::new();
        self.semicolons();
        while starts_item(self.peek()) || self.peek() == Token::Keyword(Keyword::Alias) {
            rules.push(self.rule(data)?);
            self.semicolons();
        }
        self.end(end, "a rule, or `end`")?;
        Ok(rules)
    }

    /// Parses the optional number before a rule's name.
    fn priority(&mut self) -> Parsed<Option<i32>> {
        let follower = self.lexemes.get(self.at + 1).map(|lexeme| lexeme.token);
        if self.peek() != Token::Number || follower != Some(Token::Text) {
            return Ok(None);
        }
        let priority = number(self.word());
        let span = self.span();
        self.at += 1;
        priority.map(Some).map_err(|message| {
            self.problems.push((span, message));
            Reported
        })
    }

    fn title(&mut self) -> Option<Arc<str>> {
        (self.peek() == Token::Text).then(|| self.string())
    }

    /// Checks whether a `==>` comes before any token that can occur only in a body.
    fn has_guard(&self) -> bool {
        use Keyword::*;
        for lexeme in &self.lexemes[self.at..] {
            match lexeme.token {
                Token::Guard => return true,
                Token::Sign(b';') | Token::Eof => return false,
                Token::Keyword(
                    Begin | If | While | Switch | For | Undefine | Clear | Error | Assert | Put
                    | Return | MultisetAdd | MultisetRemove | MultisetRemovePred,
                ) => return false,
                token if starts_item(token) => return false,
                _ => {}
            }
        }
        false
    }

    /// Parses quantifiers up to `do`, separated by `;` or `,`.
    fn quantifiers(&mut self) -> Parsed<Vec<Quantifier>> {
        let mut quantifiers = vec![self.quantifier()?];
        loop {
            let is_separated = self.eat(Token::Sign(b','));
            self.semicolons();
            if !is_separated && self.eat(Token::Keyword(Keyword::Do)) {
                return Ok(quantifiers);
            }
            if self.peek() != Token::Name {
                return Err(self.expected("`;` or `do`"));
            }
            quantifiers.push(self.quantifier()?);
        }
    }

    fn quantifier(&mut self) -> Parsed<Quantifier> {
        let name = self.ident("the name of a variable")?;
        let domain = if self.eat(Token::Sign(b':')) {
            Domain::Type(self.type_expr()?)
        } else if self.eat(Token::Assign) {
            let from = self.expr()?;
            self.expect(Token::Keyword(Keyword::To), "`to`")?;
            let to = self.expr()?;
            let by = if self.eat(Token::Keyword(Keyword::By)) { Some(self.expr()?) } else { None };
            Domain::Counted { from, to, by }
        } else {
            return Err(self.expected("`:` and a type, or `:=` and a range"));
        };
        Ok(Quantifier { name, domain })
    }

    fn aliases(&mut self) -> Parsed<Vec<(Ident, Expr)>> {
        let mut aliases = Vec::new();
        loop {
            let name = self.ident("the name of an alias")?;
            self.expect(Token::Sign(b':'), "`:`")?;
            aliases.push((name, self.expr()?));
            self.semicolons();
            if self.eat(Token::Keyword(Keyword::Do)) {
                return Ok(aliases);
            }
            if self.peek() != Token::Name {
                return Err(self.expected("`;` or `do`"));
            }
        }
    }

    // ---- statements ----

    /// Parses statements up to a token that ends them; an error in one statement does not affect
    /// the others.
    fn stmts(&mut self) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        loop {
            self.semicolons();
            match self.peek() {
                Token::Eof | Token::Keyword(Keyword::Else | Keyword::Elsif | Keyword::Case) => {
                    return stmts;
                }
                token if is_end(token) || starts_item(token) => return stmts,
                _ => {}
            }
            let before = self.at;
            match self.nested(Self::stmt) {
                Ok(stmt) => {
                    stmts.push(stmt);
                    let is_over = match self.peek() {
                        Token::Sign(b';')
                        | Token::Eof
                        | Token::Keyword(Keyword::Else | Keyword::Elsif | Keyword::Case) => true,
                        token => is_end(token) || starts_item(token),
                    };
                    if !is_over {
                        self.expected("`;`");
                        self.recover_stmt(before);
                    }
                }
                Err(Reported) => self.recover_stmt(before),
            }
        }
    }

    /// Continues after the next `;`, or at a token that ends statements.
    fn recover_stmt(&mut self, before: usize) {
        if self.at == before {
            self.at += 1;
        }
        loop {
            match self.peek() {
                Token::Eof | Token::Sign(b';') => return,
                token if is_end(token) || starts_item(token) => return,
                _ => self.at += 1,
            }
        }
    }

    fn stmt(&mut self) -> Parsed<Stmt> {
        let start = self.span();
        let kind = match self.peek() {
            Token::Keyword(keyword) => {
                self.at += 1;
                self.keyword_stmt(keyword)?
            }
            Token::Name => self.assignment_or_call()?,
            _ => return Err(self.expected("a statement")),
        };
        Ok(Stmt { kind, span: start.to(self.last_span()) })
    }

    fn assignment_or_call(&mut self) -> Parsed<StmtKind> {
        if self.lexemes.get(self.at + 1).map(|l| l.token) == Some(Token::Sign(b'(')) {
            let name = self.ident("a procedure")?;
            let arguments = self.arguments()?;
            return Ok(StmtKind::Call { name, arguments });
        }
        let target = self.primary()?;
        self.expect(Token::Assign, "`:=`")?;
        Ok(StmtKind::Assign { target, value: self.expr()? })
    }

    fn keyword_stmt(&mut self, keyword: Keyword) -> Parsed<StmtKind> {
        Ok(match keyword {
            Keyword::If => {
                let mut branches = Vec::new();
                let mut otherwise = Vec::new();
                loop {
                    let condition = self.expr()?;
                    self.expect(Token::Keyword(Keyword::Then), "`then`")?;
                    branches.push((condition, self.stmts()));
                    if self.eat(Token::Keyword(Keyword::Elsif)) {
                        continue;
                    }
                    if self.eat(Token::Keyword(Keyword::Else)) {
                        otherwise = self.stmts();
                    }
                    self.end(Keyword::EndIf, "a statement, `elsif`, `else` or `end` of the `if`")?;
                    break;
                }
                StmtKind::If { branches, otherwise }
            }
            Keyword::Switch => {
                let subject = self.expr()?;
                self.semicolons();
                let mut cases = Vec::new();
                while self.eat(Token::Keyword(Keyword::Case)) {
                    let mut labels = vec![self.expr()?];
                    while self.eat(Token::Sign(b',')) {
                        labels.push(self.expr()?);
                    }
                    self.expect(Token::Sign(b':'), "`,` or `:`")?;
                    cases.push((labels, self.stmts()));
                }
                let otherwise =
                    if self.eat(Token::Keyword(Keyword::Else)) { self.stmts() } else { Vec::new() };
                self.end(Keyword::EndSwitch, "`case`, `else` or `end` of the `switch`")?;
                StmtKind::Switch { subject, cases, otherwise }
            }
            Keyword::For => {
                let quantifiers = self.quantifiers()?;
                let body = self.stmts();
                self.end(Keyword::EndFor, "a statement, or `end` of the `for`")?;
                StmtKind::For { quantifiers, body }
            }
            Keyword::While => {
                let condition = self.expr()?;
                self.semicolons();
                self.expect(Token::Keyword(Keyword::Do), "`do`")?;
                let body = self.stmts();
                self.end(Keyword::EndWhile, "a statement, or `end` of the `while`")?;
                StmtKind::While { condition, body }
            }
            Keyword::Alias => {
                let aliases = self.aliases()?;
                let body = self.stmts();
                self.end(Keyword::EndAlias, "a statement, or `end` of the `alias`")?;
                StmtKind::Alias { aliases, body }
            }
            Keyword::Return => {
                let is_over = matches!(
                    self.peek(),
                    Token::Sign(b';')
                        | Token::Eof
                        | Token::Keyword(Keyword::Else | Keyword::Elsif | Keyword::Case)
                ) || is_end(self.peek());
                StmtKind::Return(if is_over { None } else { Some(self.expr()?) })
            }
            Keyword::Undefine => StmtKind::Undefine(self.primary()?),
            Keyword::Clear => StmtKind::Clear(self.primary()?),
            Keyword::MultisetAdd => {
                let [element, multiset] = self.pair()?;
                StmtKind::MultisetAdd { element, multiset }
            }
            Keyword::MultisetRemove => {
                let [index, multiset] = self.pair()?;
                StmtKind::MultisetRemove { index, multiset }
            }
            Keyword::MultisetRemovePred => {
                let (index, multiset, condition) = self.predicate()?;
                StmtKind::MultisetRemovePred { index, multiset, condition }
            }
            Keyword::Error => {
                if self.peek() != Token::Text {
                    return Err(self.expected("a message in quotes"));
                }
                StmtKind::Error(self.string())
            }
            Keyword::Assert => {
                // Some descriptions have the message before the condition.
                let title = self.title();
                let condition = self.expr()?;
                StmtKind::Assert { condition, message: title.or_else(|| self.title()) }
            }
            Keyword::Put => StmtKind::Put(if self.peek() == Token::Text {
                PutArgument::Text(self.string())
            } else {
                PutArgument::Value(self.expr()?)
            }),
            _ => {
                self.at -= 1;
                return Err(self.expected("a statement"));
            }
        })
    }

    /// Parses `(e, e)`.
    fn pair(&mut self) -> Parsed<[Expr; 2]> {
        self.expect(Token::Sign(b'('), "`(`")?;
        let first = self.expr()?;
        self.expect(Token::Sign(b','), "`,`")?;
        let second = self.expr()?;
        self.expect(Token::Sign(b')'), "`)`")?;
        Ok([first, second])
    }

    /// Parses `(i: d, e)`.
    fn predicate(&mut self) -> Parsed<(Ident, Expr, Expr)> {
        self.expect(Token::Sign(b'('), "`(`")?;
        let index = self.ident("the name of an index")?;
        self.expect(Token::Sign(b':'), "`:`")?;
        let multiset = self.expr()?;
        self.expect(Token::Sign(b','), "`,`")?;
        let condition = self.expr()?;
        self.expect(Token::Sign(b')'), "`)`")?;
        Ok((index, multiset, condition))
    }

    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.expect(Token::Sign(b'('), "`(`")?;
        let mut arguments = Vec::new();
        while self.peek() != Token::Sign(b')') {
            arguments.push(self.expr()?);
            if !self.eat(Token::Sign(b',')) {
                break;
            }
        }
        self.expect(Token::Sign(b')'), "`,` or `)`")?;
        Ok(arguments)
    }

    // ---- expressions ----

    fn expr(&mut self) -> Parsed<Expr> {
        self.nested(Self::conditional)
    }

    fn conditional(&mut self) -> Parsed<Expr> {
        let condition = self.binary(0)?;
        if !self.eat(Token::Sign(b'?')) {
            return Ok(condition);
        }
        let yes = self.expr()?;
        self.expect(Token::Sign(b':'), "`:`")?;
        let no = self.expr()?;
        let span = condition.span.to(no.span);
        let kind = ExprKind::Conditional(Box::new(condition), Box::new(yes), Box::new(no));
        self.made(kind, span)
    }

    /// Parses operators of at least the strength `level`. The right operand of an operator must be
    /// of greater strength, except for `->`, which groups to the right.
    fn binary(&mut self, level: usize) -> Parsed<Expr> {
        if level == NEGATION {
            if self.peek() != Token::Sign(b'!') {
                return self.binary(level + 1);
            }
            let start = self.span();
            self.at += 1;
            let operand = self.nested(|parser| parser.binary(level))?;
            let span = start.to(operand.span);
            return self.made(ExprKind::Not(Box::new(operand)), span);
        }
        if level > MULTIPLICATIVE {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some((_, op)) =
            INFIX[level].iter().find(|(token, _)| *token == self.peek()).copied()
        {
            self.at += 1;
            let right = if op == BinaryOp::Implies {
                self.nested(|parser| parser.binary(level))?
            } else {
                self.binary(level + 1)?
            };
            let span = left.span.to(right.span);
            let kind = ExprKind::Binary(op, Box::new(left), Box::new(right));
            left = self.made(kind, span)?;
        }
        Ok(left)
    }

    /// Builds an expression, unless a chain of operators makes the tree too high.
    fn made(&mut self, kind: ExprKind, span: Span) -> Parsed<Expr> {
        let expr = Expr::new(kind, span);
        if expr.height > HEIGHT_LIMIT {
            self.problems.push((span, "this chain of operators is too long".into()));
            return Err(Reported);
        }
        Ok(expr)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        match self.peek() {
            Token::Sign(b'-') => {
                self.at += 1;
                let operand = self.nested(Self::unary)?;
                let span = start.to(operand.span);
                self.made(ExprKind::Negate(Box::new(operand)), span)
            }
            Token::Sign(b'+') => {
                self.at += 1;
                self.nested(Self::unary)
            }
            // A `!` after a stronger operator: `a = !b`.
            Token::Sign(b'!') => {
                self.at += 1;
                let operand = self.nested(Self::unary)?;
                let span = start.to(operand.span);
                self.made(ExprKind::Not(Box::new(operand)), span)
            }
            _ => self.primary(),
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let kind = match self.peek() {
            Token::Number => match number(self.word()) {
                Ok(number) => {
                    self.at += 1;
                    ExprKind::Number(number)
                }
                Err(message) => {
                    self.problems.push((start, message));
                    return Err(Reported);
                }
            },
            Token::Keyword(Keyword::Undefined) => {
                self.at += 1;
                ExprKind::Undefined
            }
            Token::Name => {
                let name = self.ident("a name")?;
                if self.peek() == Token::Sign(b'(') {
                    let arguments = self.arguments()?;
                    ExprKind::Call { name, arguments }
                } else {
                    ExprKind::Name(name)
                }
            }
            Token::Sign(b'(') => {
                self.at += 1;
                let mut inner = self.expr()?;
                self.expect(Token::Sign(b')'), "`)`")?;
                inner.span = start.to(self.last_span());
                return Ok(inner);
            }
            Token::Keyword(keyword @ (Keyword::Forall | Keyword::Exists)) => {
                self.at += 1;
                let quantifiers = self.quantifiers()?;
                let body = Box::new(self.expr()?);
                self.semicolons();
                let is_forall = keyword == Keyword::Forall;
                let end = if is_forall { Keyword::EndForall } else { Keyword::EndExists };
                self.end(end, "an operator, or `end`")?;
                ExprKind::Quantified { is_forall, quantifiers, body }
            }
            Token::Keyword(Keyword::IsUndefined) => {
                self.at += 1;
                self.expect(Token::Sign(b'('), "`(`")?;
                let place = Box::new(self.expr()?);
                self.expect(Token::Sign(b')'), "`)`")?;
                ExprKind::IsUndefined(place)
            }
            Token::Keyword(Keyword::IsMember) => {
                self.at += 1;
                self.expect(Token::Sign(b'('), "`(`")?;
                let value = Box::new(self.expr()?);
                self.expect(Token::Sign(b','), "`,`")?;
                let ty = Box::new(self.type_expr()?);
                self.expect(Token::Sign(b')'), "`)`")?;
                ExprKind::IsMember(value, ty)
            }
            Token::Keyword(Keyword::MultisetCount) => {
                self.at += 1;
                let (index, multiset, condition) = self.predicate()?;
                ExprKind::MultisetCount {
                    index,
                    multiset: Box::new(multiset),
                    condition: Box::new(condition),
                }
            }
            _ => return Err(self.expected("an expression")),
        };
        let mut expr = self.made(kind, start.to(self.last_span()))?;
        let mut steps = 0;
        loop {
            let kind = match self.peek() {
                Token::Sign(b'.') => {
                    self.at += 1;
                    let field = self.ident("the name of a field")?;
                    ExprKind::Field(Box::new(expr), field)
                }
                Token::Sign(b'[') => {
                    self.at += 1;
                    let index = self.expr()?;
                    self.expect(Token::Sign(b']'), "`]`")?;
                    ExprKind::Index(Box::new(expr), Box::new(index))
                }
                _ => return Ok(expr),
            };
            expr = self.made(kind, start.to(self.last_span()))?;
            steps += 1;
            if steps > DEPTH_LIMIT {
                return Err(self.too_deep());
            }
        }
    }

    // ---- tokens ----

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH_LIMIT {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn too_deep(&mut self) -> Reported {
        self.problems.push((self.span(), "nested too deeply".into()));
        Reported
    }

    fn peek(&self) -> Token {
        self.lexemes[self.at.min(self.lexemes.len() - 1)].token
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn span(&self) -> Span {
        self.lexemes[self.at.min(self.lexemes.len() - 1)].span
    }

    fn last_span(&self) -> Span {
        self.lexemes[self.at.saturating_sub(1).min(self.lexemes.len() - 1)].span
    }

    fn word(&self) -> &str {
        let Span { start, end } = self.span();
        &self.text[start as usize..end as usize]
    }

    fn eat(&mut self, token: Token) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    fn semicolons(&mut self) {
        while self.eat(Token::Sign(b';')) {}
    }

    fn expect(&mut self, token: Token, expected: &str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(expected)) }
    }

    /// Takes `end`, or the keyword that ends the given construct.
    fn end(&mut self, keyword: Keyword, expected: &str) -> Parsed<()> {
        if self.eat(Token::Keyword(Keyword::End)) || self.eat(Token::Keyword(keyword)) {
            return Ok(());
        }
        Err(self.expected(expected))
    }

    fn ident(&mut self, expected: &str) -> Parsed<Ident> {
        if self.peek() != Token::Name {
            return Err(self.expected(expected));
        }
        let ident = Ident { name: self.word().into(), span: self.span() };
        self.at += 1;
        Ok(ident)
    }

    fn idents(&mut self, expected: &str) -> Parsed<Vec<Ident>> {
        let mut names = vec![self.ident(expected)?];
        while self.eat(Token::Sign(b',')) {
            names.push(self.ident(expected)?);
        }
        Ok(names)
    }

    /// Takes a string without its quotes.
    fn string(&mut self) -> Arc<str> {
        let word = self.word();
        let inner = word.strip_prefix('"').unwrap_or(word);
        let text = inner.strip_suffix('"').unwrap_or(inner).into();
        self.at += 1;
        text
    }

    fn expected(&mut self, expected: &str) -> Reported {
        let found = match self.peek() {
            Token::Eof => "the end".to_owned(),
            Token::Keyword(keyword) => format!("`{}`", keyword.text()),
            _ => format!("`{}`", self.word()),
        };
        let problem = (self.span(), format!("expected {expected}, found {found}"));
        // Each position is reported only once, whatever the parser tried there.
        if self.problems.last().is_none_or(|(span, _)| *span != problem.0) {
            self.problems.push(problem);
        }
        Reported
    }
}

/// Content of a structured comment.
enum Marked {
    Data(Ident),
    Rule(Mark),
}

/// Largest height of the tree of an expression; a chain of operators is as high as it is long.
const HEIGHT_LIMIT: u32 = 600;

const NEGATION: usize = 3;
const ADDITIVE: usize = 5;
const MULTIPLICATIVE: usize = 6;

/// Infix operators by strength; the strength of `!` has none.
const INFIX: [&[(Token, BinaryOp)]; 7] = [
    &[(Token::Arrow, BinaryOp::Implies)],
    &[(Token::Sign(b'|'), BinaryOp::Or)],
    &[(Token::Sign(b'&'), BinaryOp::And)],
    &[],
    &[
        (Token::Sign(b'<'), BinaryOp::Less),
        (Token::LessEqual, BinaryOp::LessEqual),
        (Token::Sign(b'='), BinaryOp::Equal),
        (Token::NotEqual, BinaryOp::NotEqual),
        (Token::GreaterEqual, BinaryOp::GreaterEqual),
        (Token::Sign(b'>'), BinaryOp::Greater),
    ],
    &[(Token::Sign(b'+'), BinaryOp::Add), (Token::Sign(b'-'), BinaryOp::Subtract)],
    &[
        (Token::Sign(b'*'), BinaryOp::Multiply),
        (Token::Sign(b'/'), BinaryOp::Divide),
        (Token::Sign(b'%'), BinaryOp::Remainder),
    ],
];
