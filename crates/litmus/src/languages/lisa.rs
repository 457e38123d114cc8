//! LISA, herd's neutral language: `r[acquire] r1 x`, `w[] x 1`, `f[mb]`, `rmw[] r1 (add r1 1) x`.

use super::{Context, Translated, number};
use crate::cat::interpret::capitalised;
use crate::executions::code::{Binary, Expr, Fetch, Op, Update, UpdateResult, Width};

pub(crate) const TAGS: [&str; 1] = ["X"];

const WORD: Width = Width { bytes: 8, signed: false, register: 8 };

/// Splits an instruction into tokens.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' | '+' | ',' | '[' | ']' => 1,
            _ => {
                rest.find(|c: char| c.is_whitespace() || "()+,[]".contains(c)).unwrap_or(rest.len())
            }
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found
}

fn is_register(text: &str) -> bool {
    text.strip_prefix('r')
        .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()))
}

struct Parser<'p, 'c, 'b> {
    context: &'c mut Context<'b>,
    tokens: Vec<&'p str>,
    at: usize,
}

impl<'p> Parser<'p, '_, '_> {
    fn peek(&self) -> &'p str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }

    fn next(&mut self) -> &'p str {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn atom(&mut self) -> Result<Expr, String> {
        let token = self.next();
        if token.is_empty() {
            return Err("an operand is missing".to_owned());
        }
        if let Some(value) = number(token) {
            return Ok(Expr::Const(value));
        }
        if is_register(token) {
            return Ok(self.context.read(token));
        }
        if token == "(" {
            let value = self.expression()?;
            if self.next() != ")" {
                return Err("a bracket is not closed".to_owned());
            }
            return Ok(value);
        }
        Ok(Expr::Const(self.context.builder.address(token)))
    }

    /// Reads `add r1 1`, without its brackets, or an atom.
    fn expression(&mut self) -> Result<Expr, String> {
        let Some(operator) = operator(self.peek()) else { return self.atom() };
        self.next();
        let left = self.atom()?;
        if self.peek() == "," {
            self.next();
        }
        let right = self.atom()?;
        Ok(match operator {
            Some(operator) => Expr::binary(operator, left, right),
            // `neq`
            None => Expr::binary(Binary::NotEqual, left, right),
        })
    }

    /// Reads `x`, `x+r1`, `r1`.
    fn address(&mut self) -> Result<Expr, String> {
        let mut address = self.atom()?;
        while self.peek() == "+" {
            self.next();
            address = address.add(self.atom()?);
        }
        if self.peek() == "[" {
            self.next();
            let index = self.atom()?;
            self.next();
            address = address.add(Expr::binary(Binary::Mul, index, Expr::Const(4)));
        }
        Ok(address)
    }
}

fn operator(word: &str) -> Option<Option<Binary>> {
    Some(Some(match word {
        "add" => Binary::Add,
        "sub" => Binary::Sub,
        "mul" => Binary::Mul,
        "xor" => Binary::Xor,
        "or" => Binary::Or,
        "and" => Binary::And,
        "eq" => Binary::Equal,
        "neq" => return Some(None),
        "lt" => Binary::Less,
        _ => return None,
    }))
}

pub(crate) fn instruction(context: &mut Context<'_>, text: &str) -> Translated {
    let text = text.trim();
    let unsupported = || format!("unsupported LISA instruction `{text}`");
    let (name, rest) = match text.find(|c: char| c == '[' || c.is_whitespace()) {
        Some(end) => (&text[..end], text[end..].trim_start()),
        None => (text, ""),
    };
    let (annotations, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((annotations, rest)) if name != "mov" => (annotations, rest),
        _ => ("", rest),
    };
    let mut tags = 0;
    for annotation in annotations.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        tags |= context.tag(&capitalised(annotation));
    }
    // A scope may be given in braces: `f[cta]{0,1}`.
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        Some((_, rest)) => rest,
        None => rest,
    };
    let mut parser = Parser { context, tokens: tokens(rest), at: 0 };
    let op = match name {
        "r" => {
            let into = parser.next();
            if !is_register(into) {
                return Err(format!("`{into}` is not a register"));
            }
            let into = parser.context.register(into);
            let address = parser.address()?;
            Op::Load { into, address, width: WORD, tags, exclusive: false, ordered: false }
        }
        "w" => {
            let address = parser.address()?;
            let value = parser.expression()?;
            Op::Store { address, value, bytes: 8, tags }
        }
        "f" => Op::Fence { tags },
        "rmw" => {
            let into = parser.next();
            let register = parser.context.register(into);
            let update = match parser.peek() {
                "(" => {
                    parser.next();
                    match operator(parser.peek()) {
                        Some(Some(operator)) => {
                            parser.next();
                            let left = parser.atom()?;
                            let right = parser.atom()?;
                            parser.next();
                            // The register denotes the old value.
                            if left == Expr::Register(register) {
                                Update::Fetch(Fetch::Binary(operator), right)
                            } else {
                                Update::Swap(Expr::binary(operator, left, right))
                            }
                        }
                        _ => {
                            parser.at -= 1;
                            Update::Swap(parser.atom()?)
                        }
                    }
                }
                _ => match operator(parser.peek()) {
                    Some(Some(operator)) => {
                        parser.next();
                        Update::Fetch(Fetch::Binary(operator), parser.atom()?)
                    }
                    _ => Update::Swap(parser.atom()?),
                },
            };
            let address = parser.address()?;
            let tags = tags | parser.context.tag("X");
            Op::Update {
                into: Some(register),
                address,
                update,
                width: WORD,
                read_tags: tags,
                write_tags: tags,
                failed_tags: tags,
                merged: false,
                result: UpdateResult::Old,
            }
        }
        "mov" => {
            let into = parser.next();
            let into = parser.context.register(into);
            let value = parser.expression()?;
            Op::Set(into, value)
        }
        "b" => {
            let first = parser.next();
            if parser.peek().is_empty() {
                let target = parser.context.target(first)?;
                return Ok(vec![Op::Jump(target)]);
            }
            if !is_register(first) {
                return Err(unsupported());
            }
            let mut condition = parser.context.read(first);
            if parser.peek() == "," {
                parser.next();
                let with = parser.atom()?;
                condition = Expr::binary(Binary::Equal, condition, with);
            }
            let label = parser.next();
            let target = parser.context.target(label)?;
            Op::Branch { condition, target }
        }
        "call" => Op::Fence { tags },
        _ => return Err(unsupported()),
    };
    Ok(vec![op])
}
