//! C tests: the atomics of C11 and the functions of the Linux kernel.
//!
//! A parameter is the location with its name, a local variable a register. Each access of a
//! statement is a separate instruction, in the order of evaluation. Instructions that depend on a
//! branch are inside it.

use super::initial::Declaration;
use super::{Builder, Wrong, number};
use crate::executions::Language;
use crate::executions::code::{
    Binary, Expr, Fetch, Op, Register, Tags, ThreadCode, Unary, Update, UpdateResult, Width,
};

pub(crate) const TAGS: [&str; 43] = [
    // C11.
    "ACQ",
    "REL",
    "ACQ_REL",
    "SC",
    "RLX",
    "CON",
    "A",
    "NA",
    "LK",
    "LS",
    // C11 and the kernel.
    "RMW",
    "UL",
    // The kernel.
    "Once",
    "Release",
    "Acquire",
    "Noreturn",
    "Mb",
    "Rmb",
    "Wmb",
    "Barrier",
    "Rcu-lock",
    "Rcu-unlock",
    "Sync-rcu",
    "Before-atomic",
    "After-atomic",
    "After-spinlock",
    "After-unlock-lock",
    "After-srcu-read-unlock",
    "Srcu-lock",
    "Srcu-unlock",
    "Sync-srcu",
    "LKR",
    "LKW",
    "LF",
    "RL",
    "RU",
    "X",
    "EX",
    "Fence",
    "Atomic",
    "Con",
    "Rlx",
    "Lock",
];

const WORD: Width = Width { bytes: 8, signed: true, register: 8 };

/// Returns whether a test uses functions of the Linux kernel.
pub(crate) fn is_linux(text: &str) -> bool {
    const SIGNS: [&str; 14] = [
        "READ_ONCE",
        "WRITE_ONCE",
        "smp_",
        "rcu_",
        "spin_lock",
        "spinlock_t",
        "atomic_t",
        "srcu_",
        "xchg(",
        "xchg_",
        "atomic_read",
        "atomic_set",
        "atomic_inc",
        "spin_unlock",
    ];
    !text.contains("memory_order") && SIGNS.iter().any(|sign| text.contains(sign))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token<'t> {
    Word(&'t str),
    Number(i64),
    Sign(&'t str),
    End,
}

fn tokens(text: &str, range: std::ops::Range<usize>) -> Vec<(usize, Token<'_>)> {
    const SIGNS: [&str; 14] =
        ["&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "->", "+=", "-=", "|=", "++", "--"];
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let rest = &text[at..range.end];
        let Some(first) = rest.chars().next() else { break };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let length = if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            found.push((at, Token::Word(&rest[..end])));
            end
        } else if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            let digits = rest[..end].trim_end_matches(['u', 'U', 'l', 'L']);
            found.push((at, number(digits).map_or(Token::Sign(&rest[..end]), Token::Number)));
            end
        } else {
            let length = SIGNS
                .iter()
                .find(|sign| rest.starts_with(**sign))
                .map_or(first.len_utf8(), |s| s.len());
            found.push((at, Token::Sign(&rest[..length])));
            length
        };
        at += length;
    }
    found.push((range.end, Token::End));
    found
}

/// Reads the functions of the threads, and returns the end of the last one.
pub(crate) fn functions(
    _language: Language,
    text: &str,
    start: usize,
    builder: &mut Builder,
    declarations: &[Declaration],
    wrong: &mut Vec<Wrong>,
) -> usize {
    builder.wide = true;
    for declaration in declarations {
        if declaration.thread.is_none() {
            builder.location(&declaration.name);
        }
    }
    let mut at = start;
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        let begin = at + rest.len() - trimmed.len();
        if trimmed.is_empty() || super::layout::starts_ending(trimmed) {
            return begin;
        }
        // A return type may come before the name.
        let Some(open) = text[begin..].find('(').map(|open| begin + open) else {
            wrong.push(Wrong::new(
                begin..begin + 1,
                "expected a function such as `P0(int *x) { .. }`",
            ));
            return text.len();
        };
        let name = text[begin..open].split_whitespace().last().unwrap_or("");
        let thread = builder.code.threads.len();
        if name.trim_start_matches(['P', 'p']).parse() != Ok(thread) {
            let message = format!("expected the function of thread {thread}, `P{thread}`");
            wrong.push(Wrong::new(begin..open, message));
            return text.len();
        }
        let closed = super::layout::matching(text, open, '(', ')');
        let body = closed.and_then(|close| text[close..].find('{').map(|brace| close + brace));
        let end = body.and_then(|body| super::layout::matching(text, body, '{', '}'));
        let (Some(close), Some(body), Some(end)) = (closed, body, end) else {
            wrong.push(Wrong::new(begin..open, "the function has no body, or it is not closed"));
            return text.len();
        };
        let mut parameters = Vec::new();
        for parameter in text[open + 1..close].split(',') {
            let name = parameter
                .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .rfind(|w| !w.is_empty());
            if let Some(name) = name.filter(|name| *name != "void") {
                builder.location(name);
                parameters.push(name.to_owned());
            }
        }
        builder.code.threads.push(ThreadCode::default());
        let mut parser = Parser {
            tokens: tokens(text, body + 1..end),
            at: 0,
            builder,
            thread,
            parameters,
            locals: Vec::new(),
            temporaries: 0,
        };
        while parser.peek() != Token::End {
            if let Err((place, message)) = parser.statement() {
                wrong.push(Wrong::new(place..place + 1, message));
                break;
            }
        }
        at = end + 1;
    }
}

type Parsed<T> = Result<T, (usize, String)>;

struct Parser<'t, 'b> {
    tokens: Vec<(usize, Token<'t>)>,
    at: usize,
    builder: &'b mut Builder,
    thread: usize,
    parameters: Vec<String>,
    locals: Vec<String>,
    temporaries: usize,
}

const TYPES: [&str; 34] = [
    "int",
    "char",
    "long",
    "short",
    "unsigned",
    "signed",
    "void",
    "struct",
    "const",
    "volatile",
    "intptr_t",
    "uintptr_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "atomic_int",
    "atomic_t",
    "spinlock_t",
    "bool",
    "_Bool",
    "__int128_t",
    "__uint128_t",
    "__int128",
    "int128_t",
    "atomic_uint",
    "atomic_long",
    "_Atomic",
    "mutex",
    "srcu_struct",
];

impl<'t> Parser<'t, '_> {
    fn peek(&self) -> Token<'t> {
        self.tokens[self.at].1
    }

    fn peek_at(&self, ahead: usize) -> Token<'t> {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].1
    }

    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(s) if s == sign);
        if found {
            self.next();
        }
        found
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err((self.tokens[self.at].0, message.into()))
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { self.fail(format!("expected `{sign}`")) }
    }

    fn code(&mut self) -> &mut Vec<Vec<Op>> {
        &mut self.builder.code.threads[self.thread].instructions
    }

    fn emit(&mut self, op: Op) {
        self.code().push(vec![op]);
    }

    fn tags(&mut self, names: &[&str]) -> Tags {
        names.iter().map(|name| self.builder.tag(name)).fold(0, |all, tag| all | tag)
    }

    fn temporary(&mut self) -> Register {
        self.temporaries += 1;
        let name = format!("-{}", self.temporaries);
        self.builder.code.threads[self.thread].register(&name)
    }

    fn register(&mut self, name: &str) -> Register {
        self.builder.code.threads[self.thread].register(name)
    }

    fn is_type(&self) -> bool {
        matches!(self.peek(), Token::Word(word) if TYPES.contains(&word))
    }

    fn statement(&mut self) -> Parsed<()> {
        match self.peek() {
            Token::Sign(";") => {
                self.next();
                return Ok(());
            }
            Token::Sign("{") => {
                self.next();
                while !self.eat("}") {
                    if self.peek() == Token::End {
                        return self.fail("expected `}`");
                    }
                    self.statement()?;
                }
                return Ok(());
            }
            Token::Word("if") => {
                self.next();
                self.expect("(")?;
                let condition = self.expression()?;
                self.expect(")")?;
                let skip = self.branch(Expr::unary(Unary::IsZero, condition));
                self.statement()?;
                if self.peek() == Token::Word("else") {
                    self.next();
                    self.emit(Op::Jump(0));
                    let over = self.code().len() - 1;
                    self.land(skip);
                    self.statement()?;
                    let end = self.code().len();
                    self.code()[over] = vec![Op::Jump(end)];
                } else {
                    self.land(skip);
                }
                self.emit(Op::CloseControl);
                return Ok(());
            }
            Token::Word("while") => {
                self.next();
                let start = self.code().len();
                self.expect("(")?;
                let condition = self.expression()?;
                self.expect(")")?;
                let out = self.branch(Expr::unary(Unary::IsZero, condition));
                self.statement()?;
                // The condition is evaluated again, so its branch is closed first.
                self.emit(Op::CloseControl);
                self.emit(Op::Jump(start));
                self.land(out);
                self.emit(Op::CloseControl);
                return Ok(());
            }
            Token::Word("return") => {
                self.next();
                if !matches!(self.peek(), Token::Sign(";")) {
                    self.expression()?;
                }
                self.expect(";")?;
                self.emit(Op::End);
                return Ok(());
            }
            Token::Word("do") => {
                self.next();
                let start = self.code().len();
                self.statement()?;
                self.next();
                self.expect("(")?;
                let condition = self.expression()?;
                self.expect(")")?;
                self.expect(";")?;
                self.emit(Op::Branch { condition, target: start });
                return Ok(());
            }
            _ => {}
        }
        if self.is_type() {
            while self.is_type() || matches!(self.peek(), Token::Sign("*")) {
                self.next();
            }
            loop {
                let Token::Word(name) = self.next() else {
                    return self.fail("expected a variable");
                };
                self.locals.push(name.to_owned());
                let register = self.register(name);
                if self.eat("=") {
                    let value = self.expression()?;
                    self.emit(Op::Set(register, value));
                }
                if !self.eat(",") {
                    break;
                }
                while self.eat("*") {}
            }
            return self.expect(";");
        }
        // `r = e;`, `*p = e;` or a call.
        if let (Token::Word(name), Token::Sign(sign @ ("=" | "+=" | "-=" | "++" | "--"))) =
            (self.peek(), self.peek_at(1))
            && !self.parameters.iter().any(|known| known == name)
        {
            self.next();
            self.next();
            let register = self.register(name);
            let value = match sign {
                "=" => self.expression()?,
                "++" => Expr::Register(register).add(Expr::Const(1)),
                "--" => Expr::Register(register).add(Expr::Const(-1)),
                sign => {
                    let operator = if sign == "+=" { Binary::Add } else { Binary::Sub };
                    Expr::binary(operator, Expr::Register(register), self.expression()?)
                }
            };
            self.emit(Op::Set(register, value));
            return self.expect(";");
        }
        let start = self.at;
        if matches!(self.peek(), Token::Sign("*"))
            || matches!((self.peek(), self.peek_at(1)), (Token::Word(_), Token::Sign("[")))
        {
            let address = self.place()?;
            if self.eat("=") {
                let value = self.expression()?;
                let tags = self.tags(&["NA"]);
                self.emit(Op::Store { address, value, bytes: 8, tags });
                return self.expect(";");
            }
            self.at = start;
        }
        self.expression()?;
        self.expect(";")
    }

    /// Emits a branch to be landed later, and opens its scope of control dependencies.
    fn branch(&mut self, condition: Expr) -> usize {
        self.emit(Op::OpenControl);
        self.emit(Op::Branch { condition, target: usize::MAX });
        self.code().len() - 1
    }

    fn land(&mut self, branch: usize) {
        let end = self.code().len();
        if let Some(Op::Branch { target, .. }) = self.code()[branch].first_mut() {
            *target = end;
        }
    }

    /// Reads `*p`, `a[i]` as an address.
    fn place(&mut self) -> Parsed<Expr> {
        if self.eat("*") {
            return self.unary();
        }
        if self.eat("(") {
            // `(*p)`
            if matches!(self.peek(), Token::Sign("*")) && !self.is_cast() {
                let place = self.place()?;
                self.expect(")")?;
                return Ok(place);
            }
            self.at -= 1;
        }
        if let (Token::Word(name), Token::Sign("[")) = (self.peek(), self.peek_at(1)) {
            self.next();
            self.next();
            let index = self.expression()?;
            self.expect("]")?;
            let base = self.name(name);
            return Ok(base.add(Expr::binary(Binary::Mul, index, Expr::Const(4))));
        }
        if let Token::Word(name) = self.peek()
            && self.parameters.iter().any(|known| known == name)
        {
            self.next();
            return Ok(self.name(name));
        }
        self.fail("expected an access such as `*x`")
    }

    fn name(&mut self, name: &str) -> Expr {
        if self.parameters.iter().any(|known| known == name)
            && !self.locals.iter().any(|known| known == name)
        {
            return Expr::Const(self.builder.address(name));
        }
        Expr::Register(self.register(name))
    }

    fn is_cast(&self) -> bool {
        matches!(self.peek_at(0), Token::Word(word) if TYPES.contains(&word))
    }

    fn expression(&mut self) -> Parsed<Expr> {
        self.binary_level(0)
    }

    fn binary_level(&mut self, level: usize) -> Parsed<Expr> {
        const LEVELS: [&[&str]; 10] = [
            &["||"],
            &["&&"],
            &["|"],
            &["^"],
            &["&"],
            &["==", "!="],
            &["<", "<=", ">", ">="],
            &["<<", ">>"],
            &["+", "-"],
            &["*", "/", "%"],
        ];
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary_level(level + 1)?;
        loop {
            let Token::Sign(sign) = self.peek() else { return Ok(left) };
            if !signs.contains(&sign) {
                return Ok(left);
            }
            self.next();
            let right = self.binary_level(level + 1)?;
            let truth = |e| Expr::binary(Binary::NotEqual, e, Expr::Const(0));
            left = match sign {
                "||" => Expr::binary(Binary::Or, truth(left), truth(right)),
                "&&" => Expr::binary(Binary::And, truth(left), truth(right)),
                ">" => Expr::binary(Binary::Less, right, left),
                ">=" => Expr::binary(Binary::LessEqual, right, left),
                sign => {
                    let operator = match sign {
                        "|" => Binary::Or,
                        "^" => Binary::Xor,
                        "&" => Binary::And,
                        "==" => Binary::Equal,
                        "!=" => Binary::NotEqual,
                        "<" => Binary::Less,
                        "<=" => Binary::LessEqual,
                        "<<" => Binary::ShiftLeft,
                        ">>" => Binary::ShiftRightSigned,
                        "+" => Binary::Add,
                        "-" => Binary::Sub,
                        "*" => Binary::Mul,
                        "/" => Binary::Div,
                        _ => Binary::Rem,
                    };
                    Expr::binary(operator, left, right)
                }
            };
        }
    }

    fn load(&mut self, address: Expr, tags: &[&str]) -> Expr {
        let into = self.temporary();
        let tags = self.tags(tags);
        self.emit(Op::Load { into, address, width: WORD, tags, exclusive: false, ordered: false });
        Expr::Register(into)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        match self.peek() {
            Token::Sign("!") => {
                self.next();
                Ok(Expr::unary(Unary::IsZero, self.unary()?))
            }
            Token::Sign("-") => {
                self.next();
                Ok(Expr::unary(Unary::Negate, self.unary()?))
            }
            Token::Sign("~") => {
                self.next();
                Ok(Expr::unary(Unary::Not, self.unary()?))
            }
            Token::Sign("+") => {
                self.next();
                self.unary()
            }
            Token::Sign("&") => {
                self.next();
                // `&x` of a parameter's target, or `&*x`.
                if matches!(self.peek(), Token::Sign("*")) {
                    return self.place();
                }
                match self.next() {
                    Token::Word(name) => Ok(Expr::Const(self.builder.address(name))),
                    _ => self.fail("expected a location"),
                }
            }
            Token::Sign("*") => {
                let address = self.place()?;
                Ok(self.load(address, &["NA"]))
            }
            Token::Sign("(") => {
                self.next();
                if self.is_cast() {
                    while !self.eat(")") {
                        if self.peek() == Token::End {
                            return self.fail("expected `)`");
                        }
                        self.next();
                    }
                    return self.unary();
                }
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Number(value) => {
                self.next();
                Ok(Expr::Const(value))
            }
            Token::Word(name) => {
                if matches!(self.peek_at(1), Token::Sign("(")) {
                    return self.call(name);
                }
                if matches!(self.peek_at(1), Token::Sign("[")) {
                    let address = self.place()?;
                    return Ok(self.load(address, &["NA"]));
                }
                self.next();
                Ok(self.name(name))
            }
            _ => self.fail("expected an expression"),
        }
    }

    fn call(&mut self, name: &'t str) -> Parsed<Expr> {
        let place = self.tokens[self.at].0;
        self.next();
        self.next();
        // The argument of READ_ONCE(*x) and similar macros is the accessed location; other
        // functions take its address.
        let by_name = matches!(
            name,
            "READ_ONCE"
                | "WRITE_ONCE"
                | "ACCESS_ONCE"
                | "rcu_dereference"
                | "rcu_assign_pointer"
                | "smp_store_mb"
                | "READ_ONCE_NOCHECK"
                | "rcu_dereference_check"
                | "xchg_"
                | "lockless_dereference"
        );
        let mut arguments: Vec<Expr> = Vec::new();
        let mut order: Vec<&str> = Vec::new();
        while !self.eat(")") {
            if self.peek() == Token::End {
                return self.fail("expected `)`");
            }
            if let Token::Word(word) = self.peek()
                && let Some(word) = word.strip_prefix("memory_order_")
            {
                self.next();
                order.push(word);
            } else if by_name && arguments.is_empty() {
                let address = self.place()?;
                arguments.push(address);
            } else {
                let value = self.expression()?;
                arguments.push(value);
            }
            if !self.eat(",") && !matches!(self.peek(), Token::Sign(")")) {
                return self.fail("expected `,` or `)`");
            }
        }
        let count = arguments.len();
        let result = self.function(name, &mut arguments, &order);
        result
            .ok_or_else(|| (place, format!("unsupported function `{name}` with {count} arguments")))
    }

    /// Evaluates a function call; `None` if the function is unknown.
    fn function(&mut self, name: &str, arguments: &mut Vec<Expr>, order: &[&str]) -> Option<Expr> {
        let nothing = Expr::Const(0);
        let fence = match name {
            "smp_mb" => Some("Mb"),
            "smp_rmb" => Some("Rmb"),
            "smp_wmb" => Some("Wmb"),
            "barrier" => Some("Barrier"),
            "rcu_read_lock" => Some("Rcu-lock"),
            "rcu_read_unlock" => Some("Rcu-unlock"),
            "synchronize_rcu" | "synchronize_rcu_expedited" => Some("Sync-rcu"),
            "smp_mb__before_atomic" => Some("Before-atomic"),
            "smp_mb__after_atomic" => Some("After-atomic"),
            "smp_mb__after_spinlock" => Some("After-spinlock"),
            "smp_mb__after_unlock_lock" => Some("After-unlock-lock"),
            "smp_mb__after_srcu_read_unlock" => Some("After-srcu-read-unlock"),
            _ => None,
        };
        if let Some(tag) = fence {
            let tags = self.tags(&[tag]);
            self.emit(Op::Fence { tags });
            return Some(nothing);
        }
        let mut take = || if arguments.is_empty() { None } else { Some(arguments.remove(0)) };
        match name {
            "READ_ONCE"
            | "ACCESS_ONCE"
            | "READ_ONCE_NOCHECK"
            | "rcu_dereference"
            | "rcu_dereference_check"
            | "atomic_read"
            | "lockless_dereference" => {
                let address = take()?;
                return Some(self.load(address, &["Once"]));
            }
            "smp_load_acquire" | "atomic_read_acquire" => {
                let address = take()?;
                return Some(self.load(address, &["Acquire"]));
            }
            "WRITE_ONCE" | "atomic_set" | "smp_store_release" | "rcu_assign_pointer"
            | "atomic_set_release" | "smp_store_mb" => {
                let (address, value) = (take()?, take()?);
                let release = matches!(
                    name,
                    "smp_store_release" | "rcu_assign_pointer" | "atomic_set_release"
                );
                let tags = self.tags(&[if release { "Release" } else { "Once" }]);
                self.emit(Op::Store { address, value, bytes: 8, tags });
                if name == "smp_store_mb" {
                    let tags = self.tags(&["Mb"]);
                    self.emit(Op::Fence { tags });
                }
                return Some(nothing);
            }
            "srcu_read_lock" | "srcu_down_read" => {
                let address = take()?;
                return Some(self.load(address, &["Srcu-lock"]));
            }
            "srcu_read_unlock" | "srcu_up_read" => {
                let (address, value) = (take()?, take()?);
                let tags = self.tags(&["Srcu-unlock"]);
                self.emit(Op::Store { address, value, bytes: 8, tags });
                return Some(nothing);
            }
            "synchronize_srcu" | "synchronize_srcu_expedited" => {
                let address = take()?;
                let tags = self.tags(&["Sync-srcu"]);
                self.emit(Op::FenceAt { address, tags });
                return Some(nothing);
            }
            "spin_lock" => {
                let address = take()?;
                let held = self.load(address.clone(), &["LKR"]);
                self.emit(Op::Assume(Expr::unary(Unary::IsZero, held)));
                let tags = self.tags(&["LKW"]);
                self.emit(Op::Store { address, value: Expr::Const(1), bytes: 8, tags });
                return Some(nothing);
            }
            "spin_unlock" => {
                let address = take()?;
                let tags = self.tags(&["UL"]);
                self.emit(Op::Store { address, value: Expr::Const(0), bytes: 8, tags });
                return Some(nothing);
            }
            "spin_trylock" => {
                let address = take()?;
                let update =
                    Update::CompareAndSwap { expected: Expr::Const(0), new: Expr::Const(1) };
                let tags = [self.tags(&["LKR"]), self.tags(&["LKW"]), self.tags(&["LF"])];
                return Some(self.update(address, update, tags, false, UpdateResult::Written));
            }
            "spin_is_locked" => {
                // A read of 1 is another kind of event than a read of 0.
                let address = take()?;
                let update =
                    Update::CompareAndSwap { expected: Expr::Const(0), new: Expr::Const(0) };
                let tags = [self.tags(&["RU"]), 0, self.tags(&["RL"])];
                let free = self.update(address, update, tags, true, UpdateResult::Written);
                return Some(Expr::unary(Unary::IsZero, free));
            }
            _ => {}
        }
        if let Some(result) = self.kernel_update(name, arguments) {
            return Some(result);
        }
        self.c11(name, arguments, order)
    }

    fn update(
        &mut self,
        address: Expr,
        update: Update,
        tags: [Tags; 3],
        merged: bool,
        result: UpdateResult,
    ) -> Expr {
        let into = self.temporary();
        self.emit(Op::Update {
            into: Some(into),
            address,
            update,
            width: WORD,
            read_tags: tags[0],
            write_tags: tags[1],
            failed_tags: tags[2],
            merged,
            result,
        });
        Expr::Register(into)
    }

    /// The kernel's atomic updates.
    fn kernel_update(&mut self, name: &str, arguments: &[Expr]) -> Option<Expr> {
        let (stem, order) = ["_relaxed", "_acquire", "_release"]
            .iter()
            .find_map(|suffix| Some((name.strip_suffix(suffix)?, *suffix)))
            .unwrap_or((name, ""));
        let argument = |at: usize| arguments.get(at).cloned();
        let (read, write) = match order {
            "_relaxed" => ("Once", "Once"),
            "_acquire" => ("Acquire", "Once"),
            "_release" => ("Once", "Release"),
            _ => ("Mb", "Mb"),
        };
        let tags =
            [self.tags(&[read, "RMW"]), self.tags(&[write, "RMW"]), self.tags(&["Once", "RMW"])];
        match stem {
            "xchg" | "atomic_xchg" => {
                let update = Update::Swap(argument(1)?);
                return Some(self.update(argument(0)?, update, tags, false, UpdateResult::Old));
            }
            "cmpxchg" | "atomic_cmpxchg" => {
                let update = Update::CompareAndSwap { expected: argument(1)?, new: argument(2)? };
                return Some(self.update(argument(0)?, update, tags, false, UpdateResult::Old));
            }
            "atomic_add_unless" => {
                let update = Update::AddUnless { add: argument(1)?, unless: argument(2)? };
                return Some(self.update(argument(0)?, update, tags, false, UpdateResult::Written));
            }
            _ => {}
        }
        let rest = stem.strip_prefix("atomic_")?;
        let (fetches, rest) = match rest.strip_prefix("fetch_") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (rest, kind) = ["_return", "_and_test", "_negative"]
            .iter()
            .find_map(|suffix| Some((rest.strip_suffix(suffix)?, *suffix)))
            .unwrap_or((rest, ""));
        let (operator, operand, at) = match rest {
            "add" => (Binary::Add, argument(0)?, 1),
            "sub" => (Binary::Sub, argument(0)?, 1),
            "inc" => (Binary::Add, Expr::Const(1), 0),
            "dec" => (Binary::Sub, Expr::Const(1), 0),
            "or" => (Binary::Or, argument(0)?, 1),
            "and" => (Binary::And, argument(0)?, 1),
            "xor" => (Binary::Xor, argument(0)?, 1),
            _ => return None,
        };
        let address = argument(at)?;
        let update = Update::Fetch(Fetch::Binary(operator), operand);
        if !fetches && kind.is_empty() {
            let tags = [self.tags(&["Noreturn", "RMW"]), self.tags(&["Once", "RMW"]), 0];
            self.update(address, update, tags, false, UpdateResult::Old);
            return Some(Expr::Const(0));
        }
        let result = if fetches { UpdateResult::Old } else { UpdateResult::New };
        let value = self.update(address, update, tags, false, result);
        Some(match kind {
            "_and_test" => Expr::unary(Unary::IsZero, value),
            "_negative" => Expr::binary(Binary::Less, value, Expr::Const(0)),
            _ => value,
        })
    }

    /// C11's functions.
    fn c11(&mut self, name: &str, arguments: &[Expr], order: &[&str]) -> Option<Expr> {
        let argument = |at: usize| arguments.get(at).cloned();
        let tag = |order: &str| {
            Some(match order {
                "relaxed" => "RLX",
                "acquire" => "ACQ",
                "release" => "REL",
                "acq_rel" => "ACQ_REL",
                "seq_cst" => "SC",
                "consume" => "CON",
                _ => return None,
            })
        };
        let stem = name.strip_suffix("_explicit").unwrap_or(name);
        let first = tag(order.first().copied().unwrap_or("seq_cst"))?;
        match stem {
            "atomic_thread_fence" => {
                let tags = self.tags(&[first, "A"]);
                self.emit(Op::Fence { tags });
                return Some(Expr::Const(0));
            }
            "atomic_load" => return Some(self.load(argument(0)?, &[first, "A"])),
            "atomic_store" | "atomic_init" => {
                let tags = self.tags(&[first, "A"]);
                self.emit(Op::Store { address: argument(0)?, value: argument(1)?, bytes: 8, tags });
                return Some(Expr::Const(0));
            }
            "atomic_exchange" => {
                let tags = self.tags(&[first, "A", "RMW"]);
                let update = Update::Swap(argument(1)?);
                return Some(self.update(
                    argument(0)?,
                    update,
                    [tags, tags, tags],
                    true,
                    UpdateResult::Old,
                ));
            }
            "atomic_compare_exchange_strong" | "atomic_compare_exchange_weak" => {
                let expected_at = argument(1)?;
                let expected = self.load(expected_at.clone(), &["NA"]);
                let failed = tag(order.get(1).copied().unwrap_or("seq_cst"))?;
                let tags = self.tags(&[first, "A", "RMW"]);
                let failed_tags = self.tags(&[failed, "A"]);
                let update =
                    Update::CompareAndSwap { expected: expected.clone(), new: argument(2)? };
                let old = self.update(
                    argument(0)?,
                    update,
                    [tags, tags, failed_tags],
                    true,
                    UpdateResult::Old,
                );
                let equal = Expr::binary(Binary::Equal, expected, old.clone());
                // On failure, the value read is stored in the location of the expected value.
                let over = self.branch(equal.clone());
                let tags = self.tags(&["NA"]);
                self.emit(Op::Store { address: expected_at, value: old, bytes: 8, tags });
                self.land(over);
                self.emit(Op::CloseControl);
                return Some(equal);
            }
            _ => {}
        }
        let operator = match stem.strip_prefix("atomic_fetch_")? {
            "add" => Binary::Add,
            "sub" => Binary::Sub,
            "or" => Binary::Or,
            "and" => Binary::And,
            "xor" => Binary::Xor,
            _ => return None,
        };
        let tags = self.tags(&[first, "A", "RMW"]);
        let update = Update::Fetch(Fetch::Binary(operator), argument(1)?);
        Some(self.update(argument(0)?, update, [tags, tags, tags], true, UpdateResult::Old))
    }
}
