//! Parses an object file.

use std::ops::Range;

use consistory_diagnostic::{Cursor, Diagnostics, Escapes, Source};
use consistory_history::Value;

/// An object as defined in its file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// The variables of the state with their initial values.
    pub(crate) state: Vec<(Box<str>, Expression)>,
    pub(crate) methods: Vec<Definition>,
}

#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) name: Box<str>,
    pub(crate) parameters: Vec<Box<str>>,
    pub(crate) aliases: Vec<Box<str>>,
    /// Index of the parameter that names the part.
    pub(crate) part: Option<usize>,
    pub(crate) body: Vec<Statement>,
    /// Number of parameters and local variables.
    pub(crate) locals: usize,
    pub(crate) changes_state: bool,
    pub(crate) returns: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Variable {
    State(usize),
    Local(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Set(Variable, Expression),
    If(Expression, Vec<Statement>, Vec<Statement>),
    For(usize, Expression, Vec<Statement>),
    Require(Expression),
    Return(Expression),
}

#[derive(Clone, Debug)]
pub(crate) enum Expression {
    Value(Value),
    Variable(Variable),
    List(Vec<Expression>),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    At(Box<Expression>, Box<Expression>),
    Call(Function, Vec<Expression>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
}

macro_rules! functions {
    ($($name:literal $variant:ident $arguments:pat => $shown:literal),* $(,)?) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Function { $($variant),* }

        /// Finds a function, and checks its number of arguments.
        fn function(name: &str, arguments: usize) -> Option<Result<Function, &'static str>> {
            match name {
                $($name => Some(match arguments {
                    $arguments => Ok(Function::$variant),
                    #[allow(unreachable_patterns, reason = "some take any number")]
                    _ => Err($shown),
                }),)*
                _ => None,
            }
        }
    };
}

functions! {
    "len" Len 1 => "1 argument",
    "first" First 1 => "1 argument",
    "last" Last 1 => "1 argument",
    "rest" Rest 1 => "1 argument",
    "init" Init 1 => "1 argument",
    "contains" Contains 2 => "2 arguments",
    "indexOf" IndexOf 2 => "2 arguments",
    "without" Without 2 => "2 arguments",
    "sort" Sort 1 => "1 argument",
    "min" Min 1 => "1 argument",
    "max" Max 1 => "1 argument",
    "get" Get 2 | 3 => "2 or 3 arguments",
    "set" Set 3 => "3 arguments",
    "unset" Unset 2 => "2 arguments",
    "keys" Keys 1 => "1 argument",
    "values" Values 1 => "1 argument",
}

/// Largest nesting depth of expressions and blocks.
const MAX_NESTING: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Word,
    Number,
    Text,
    Sign,
    End,
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    range: Range<usize>,
}

pub(super) fn parse(source: &str, text: &str) -> Result<Program, Diagnostics> {
    let mut parser = Parser {
        source: Source::new(source, text),
        text,
        tokens: tokens(text),
        next: 0,
        depth: 0,
        errors: Diagnostics::default(),
        program: Program::default(),
        scopes: Vec::new(),
        current: Current::default(),
    };
    parser.file();
    if parser.program.methods.is_empty() && parser.errors.is_empty() {
        parser.error_here("an object has at least one method", None);
    }
    if parser.errors.is_empty() { Ok(parser.program) } else { Err(parser.errors) }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut cursor = Cursor::new(text);
    while let Some(c) = cursor.peek_char() {
        let start = cursor.at;
        let kind = match c {
            c if c.is_whitespace() => {
                cursor.bump();
                continue;
            }
            '#' => {
                cursor.take_line();
                continue;
            }
            c if c.is_alphabetic() || c == '_' => {
                cursor.take_while(|c| c.is_alphanumeric() || c == '_');
                Kind::Word
            }
            c if c.is_ascii_digit() => {
                cursor.take_while(|c| c.is_ascii_digit());
                Kind::Number
            }
            '"' => {
                // The parser reports a text without its closing quote.
                cursor.take_string(Escapes::None);
                Kind::Text
            }
            _ => {
                if cursor.eat_any(&["||", "&&", "==", "!=", "<=", ">="]).is_none() {
                    cursor.bump();
                }
                Kind::Sign
            }
        };
        found.push(Token { kind, range: start..cursor.at });
    }
    found.push(Token { kind: Kind::End, range: text.len()..text.len() });
    found
}

/// State of parsing the current method.
#[derive(Default)]
struct Current {
    locals: usize,
    changes_state: bool,
    returns: bool,
}

struct Parser<'a> {
    source: Source<'a>,
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    errors: Diagnostics,
    program: Program,
    /// The local variables in scope, innermost last.
    scopes: Vec<(Box<str>, usize)>,
    current: Current,
}

impl<'a> Parser<'a> {
    fn file(&mut self) {
        while self.kind() != Kind::End {
            let read = match self.word() {
                Some("state") => self.state(),
                Some("method" | "read") => self.method(),
                _ => self.fail("`state`, `method` or `read`"),
            };
            if read.is_none() {
                self.skip_to_definition();
            }
        }
    }

    fn state(&mut self) -> Option<()> {
        self.next += 1;
        loop {
            let range = self.range();
            let name = self.name("a variable's name")?;
            if self.program.state.iter().any(|(known, _)| *known == name) {
                self.error(range, &format!("`{name}` is there already"), None);
            }
            self.expect("=")?;
            let value = self.expression()?;
            self.program.state.push((name, value));
            if !self.take(",") {
                break;
            }
        }
        self.expect(";")
    }

    fn method(&mut self) -> Option<()> {
        let is_read = self.word() == Some("read");
        self.next += 1;
        let range = self.range();
        let name = self.name("a method's name")?;
        self.expect("(")?;
        let mut parameters: Vec<Box<str>> = Vec::new();
        if !self.take(")") {
            loop {
                parameters.push(self.name("a parameter's name")?);
                if !self.take(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        let is_known = |m: &Definition| m.name == name && m.parameters.len() == parameters.len();
        if self.program.methods.iter().any(is_known) {
            let message = format!("`{name}` with as many parameters is there already");
            self.error(range.clone(), &message, None);
        }
        let mut aliases = Vec::new();
        if self.take_word("as") {
            aliases.push(self.name("another name")?);
            while self.take(",") {
                aliases.push(self.name("another name")?);
            }
        }
        let mut part = None;
        if self.take_word("in") {
            let range = self.range();
            let of = self.name("a parameter's name")?;
            part = parameters.iter().position(|p| *p == of);
            if part.is_none() {
                self.error(range, &format!("there is no parameter `{of}`"), None);
            }
        }
        self.current = Current { locals: parameters.len(), ..Current::default() };
        self.scopes = parameters.iter().cloned().zip(0..).collect();
        let first = self.range();
        let body = self.block()?;
        let Current { locals, changes_state, returns } = std::mem::take(&mut self.current);
        if is_read && changes_state {
            let at = first.start + 1;
            let at = at + self.text[at..].find(|c: char| !c.is_whitespace()).unwrap_or(0);
            let hint = "write `method` if it should";
            self.error(
                at..at + 1,
                &format!("`{name}` is a read and changes the state"),
                Some(hint),
            );
        }
        self.program.methods.push(Definition {
            name,
            parameters,
            aliases,
            part,
            body,
            locals,
            changes_state,
            returns,
        });
        Some(())
    }

    fn block(&mut self) -> Option<Vec<Statement>> {
        self.deeper(|parser| {
            parser.expect("{")?;
            let in_sight = parser.scopes.len();
            let mut statements = Vec::new();
            while !parser.take("}") {
                if parser.kind() == Kind::End {
                    return parser.fail("`}`");
                }
                match parser.statement() {
                    Some(statement) => statements.push(statement),
                    None => parser.skip_statement(),
                }
            }
            parser.scopes.truncate(in_sight);
            Some(statements)
        })
    }

    fn statement(&mut self) -> Option<Statement> {
        match self.word() {
            Some("if") => {
                self.next += 1;
                let condition = self.expression()?;
                let then = self.block()?;
                let otherwise = match self.take_word("else") {
                    true if self.word() == Some("if") => vec![self.deeper(Self::statement)?],
                    true => self.block()?,
                    false => Vec::new(),
                };
                Some(Statement::If(condition, then, otherwise))
            }
            Some("for") => {
                self.next += 1;
                let name = self.name("a variable's name")?;
                if !self.take_word("in") {
                    return self.fail("`in`");
                }
                let list = self.expression()?;
                let slot = self.local(name);
                let body = self.block()?;
                self.scopes.pop();
                Some(Statement::For(slot, list, body))
            }
            Some("let") => {
                self.next += 1;
                let name = self.name("a variable's name")?;
                self.expect("=")?;
                let value = self.expression()?;
                self.expect(";")?;
                Some(Statement::Set(Variable::Local(self.local(name)), value))
            }
            Some("require") => {
                self.next += 1;
                let condition = self.expression()?;
                self.expect(";")?;
                Some(Statement::Require(condition))
            }
            Some("return") => {
                self.next += 1;
                let value = self.expression()?;
                self.expect(";")?;
                self.current.returns = true;
                Some(Statement::Return(value))
            }
            Some(_) => {
                let range = self.range();
                let name = self.name("a statement")?;
                let variable = self.variable(&name, range);
                self.expect("=")?;
                let value = self.expression()?;
                self.expect(";")?;
                self.current.changes_state |= matches!(variable, Some(Variable::State(_)));
                // An unknown variable is an error, and the program is not used.
                Some(Statement::Set(variable.unwrap_or(Variable::Local(0)), value))
            }
            None => self.fail("a statement"),
        }
    }

    fn local(&mut self, name: Box<str>) -> usize {
        let slot = self.current.locals;
        self.current.locals += 1;
        self.scopes.push((name, slot));
        slot
    }

    fn variable(&mut self, name: &str, range: Range<usize>) -> Option<Variable> {
        let local = self.scopes.iter().rev().find(|(known, _)| **known == *name);
        let state = self.program.state.iter().position(|(known, _)| **known == *name);
        let found = match (local, state) {
            (Some(&(_, slot)), _) => Some(Variable::Local(slot)),
            (None, Some(at)) => Some(Variable::State(at)),
            (None, None) => None,
        };
        if found.is_none() {
            let hint = "`state x = ...;` and `let x = ...;` make variables";
            self.error(range, &format!("there is no variable `{name}`"), Some(hint));
        }
        found
    }

    fn expression(&mut self) -> Option<Expression> {
        self.deeper(|parser| parser.binary(0))
    }

    /// Parses operators of at least a given precedence.
    fn binary(&mut self, least: u8) -> Option<Expression> {
        let mut left = self.unary()?;
        while let Some((operator, strength)) = self.operator().filter(|&(_, s)| s >= least) {
            self.next += 1;
            let right = self.deeper(|parser| parser.binary(strength + 1))?;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn operator(&self) -> Option<(Operator, u8)> {
        if self.kind() != Kind::Sign {
            return None;
        }
        Some(match self.shown() {
            "||" => (Operator::Or, 1),
            "&&" => (Operator::And, 2),
            "==" => (Operator::Equal, 3),
            "!=" => (Operator::Unequal, 3),
            "<" => (Operator::Less, 3),
            "<=" => (Operator::AtMost, 3),
            ">" => (Operator::Greater, 3),
            ">=" => (Operator::AtLeast, 3),
            "+" => (Operator::Plus, 4),
            "-" => (Operator::Minus, 4),
            "*" => (Operator::Times, 5),
            "/" => (Operator::Over, 5),
            "%" => (Operator::Modulo, 5),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Option<Expression> {
        if self.take("!") {
            return Some(Expression::Not(Box::new(self.deeper(Self::unary)?)));
        }
        if self.take("-") {
            return Some(Expression::Negative(Box::new(self.deeper(Self::unary)?)));
        }
        let mut value = self.primary()?;
        while self.take("[") {
            let index = self.expression()?;
            self.expect("]")?;
            value = Expression::At(Box::new(value), Box::new(index));
        }
        Some(value)
    }

    fn primary(&mut self) -> Option<Expression> {
        let (kind, range, shown) = (self.kind(), self.range(), self.shown());
        match (kind, shown) {
            (Kind::Number, digits) => {
                self.next += 1;
                match digits.parse() {
                    Ok(number) => Some(Expression::Value(Value::Int(number))),
                    Err(_) => {
                        self.error(range, "the number is too large", None);
                        None
                    }
                }
            }
            (Kind::Text, text) => {
                self.next += 1;
                match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
                    Some(inside) => Some(Expression::Value(Value::Str(inside.into()))),
                    None => {
                        self.error(range, "this text never ends", None);
                        None
                    }
                }
            }
            (Kind::Word, word) => {
                self.next += 1;
                let value = match word {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    "null" => Value::Null,
                    name if self.take("(") => return self.call(name, range),
                    name => return Some(Expression::Variable(self.variable(name, range)?)),
                };
                Some(Expression::Value(value))
            }
            (Kind::Sign, "(") => {
                self.next += 1;
                let inside = self.expression()?;
                self.expect(")")?;
                Some(inside)
            }
            (Kind::Sign, "[") => {
                self.next += 1;
                Some(Expression::List(self.list("]")?))
            }
            _ => self.fail("an expression"),
        }
    }

    fn call(&mut self, name: &str, range: Range<usize>) -> Option<Expression> {
        let arguments = self.list(")")?;
        match function(name, arguments.len()) {
            Some(Ok(function)) => Some(Expression::Call(function, arguments)),
            Some(Err(takes)) => {
                let message = format!("`{name}` takes {takes}, not {}", arguments.len());
                self.error(range, &message, None);
                None
            }
            None => {
                self.error(range, &format!("there is no function `{name}`"), None);
                None
            }
        }
    }

    fn list(&mut self, close: &str) -> Option<Vec<Expression>> {
        let mut items = Vec::new();
        if self.take(close) {
            return Some(items);
        }
        loop {
            items.push(self.expression()?);
            if self.take(close) {
                return Some(items);
            }
            if !self.take(",") {
                return self.fail(&format!("`,` or `{close}`"));
            }
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth == MAX_NESTING {
            self.error_here("nested too deeply", None);
            return None;
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    fn skip_statement(&mut self) {
        while self.kind() != Kind::End && !matches!(self.shown(), "}" | "{") {
            self.next += 1;
            if self.text[self.tokens[self.next - 1].range.clone()] == *";" {
                return;
            }
        }
        if self.shown() == "{" {
            // A block with an invalid head is skipped as a whole.
            let mut open = 0;
            while self.kind() != Kind::End {
                match self.shown() {
                    "{" => open += 1,
                    "}" => open -= 1,
                    _ => {}
                }
                self.next += 1;
                if open == 0 {
                    return;
                }
            }
        }
    }

    fn skip_to_definition(&mut self) {
        self.depth = 0;
        loop {
            match self.word() {
                Some("state" | "method" | "read") => return,
                _ if self.kind() == Kind::End => return,
                _ => self.next += 1,
            }
        }
    }

    fn kind(&self) -> Kind {
        self.tokens[self.next].kind
    }

    fn range(&self) -> Range<usize> {
        self.tokens[self.next].range.clone()
    }

    fn shown(&self) -> &'a str {
        &self.text[self.range()]
    }

    fn word(&self) -> Option<&'a str> {
        (self.kind() == Kind::Word).then(|| self.shown())
    }

    fn name(&mut self, what: &str) -> Option<Box<str>> {
        match self.word() {
            Some(word) => {
                self.next += 1;
                Some(word.into())
            }
            None => self.fail(what),
        }
    }

    fn take(&mut self, sign: &str) -> bool {
        let is_next = self.kind() == Kind::Sign && self.shown() == sign;
        self.next += usize::from(is_next);
        is_next
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.word() == Some(word);
        self.next += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, sign: &str) -> Option<()> {
        if self.take(sign) { Some(()) } else { self.fail(&format!("`{sign}`")) }
    }

    fn fail<T>(&mut self, expected: &str) -> Option<T> {
        let found = match self.shown() {
            "" => "the end of the file".to_owned(),
            found => format!("`{found}`"),
        };
        self.error_here(&format!("expected {expected}, found {found}"), None);
        None
    }

    fn error_here(&mut self, message: &str, hint: Option<&str>) {
        self.error(self.range(), message, hint);
    }

    fn error(&mut self, range: Range<usize>, message: &str, hint: Option<&str>) {
        self.errors.push_at(&self.source, range, message, hint.map(str::to_owned));
    }
}
