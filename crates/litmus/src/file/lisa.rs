//! LISA, herd's neutral language: `r[] r1 x`, `w[] x 1`, `f[mb]`, `rmw[] r1 1 x`, `mov r2 (add r1 1)`,
//! `b[] r1 L`.
//!
//! An operand is a number, a register or `(op a b)` with `add`, `sub`, `xor`, `and`, `or`, `eq` or
//! `neq`. An address is a location, `x+r2`, or a register that holds an address; a dependency must
//! not change it, as in `(xor r1 r1)`, so that every address is known. In `rmw[] r1 E x` the
//! register holds the value read, also inside `E`.

use super::lexer::{Piece, Token, number, tokens};
use super::thread::{Known, ThreadReader, Word, address, binary};
use crate::program::{Address, Expression, Fence, Instruction, Operator, RegisterId, Update};

const SUPPORTED: &str =
    "there are `r[] r1 x`, `w[] x 1`, `f[]`, `rmw[] r1 1 x`, `mov r1 (add r2 1)` and `b[] r1 L`";

/// Reads the instructions of a thread.
pub(super) fn read(thread: &mut ThreadReader<'_>, words: &[Word<'_>]) {
    for word in words {
        match word {
            Word::Label(label) => thread.label(*label),
            Word::Instruction(piece) => {
                if instruction(thread, *piece).is_none() {
                    thread.unsupported(*piece, SUPPORTED);
                }
            }
        }
    }
}

/// Reads one instruction; `None` if it is not supported.
fn instruction(thread: &mut ThreadReader<'_>, piece: Piece<'_>) -> Option<()> {
    let all = tokens(piece);
    let (name, mut rest) = all.split_first()?;
    let mut tags: Vec<&str> = Vec::new();
    if let [open, inner @ ..] = rest
        && open.text == "["
    {
        let close = inner.iter().position(|token| token.text == "]")?;
        tags = inner[..close].iter().map(|t| t.text).filter(|&t| t != ",").collect();
        rest = &inner[close + 1..];
    }
    match name.text {
        "r" => {
            let (register, rest) = take_register(thread, rest)?;
            let address = take_address(thread, rest)?;
            thread.learn(register, None);
            thread.push(Instruction::Read { register, address });
        }
        "w" => {
            // The address is everything before the last operand.
            let start = operand_start(rest)?;
            let address = take_address(thread, &rest[..start])?;
            let value = operand(thread, &rest[start..])?;
            thread.push(Instruction::Write { address, value });
        }
        "f" if rest.is_empty() => {
            let fence = match tags[..] {
                [] | ["mb" | "sync" | "mfence" | "full" | "fence"] => Fence::Full,
                ["rmb" | "lfence"] => Fence::Load,
                ["wmb" | "sfence"] => Fence::Store,
                _ => Fence::Tagged(tags.join(",")),
            };
            thread.push(Instruction::Fence(fence));
        }
        "rmw" => {
            let (register, rest) = take_register(thread, rest)?;
            let end = operand_end(rest)?;
            let value = operand(thread, &rest[..end])?;
            let address = take_address(thread, &rest[end..])?;
            let own = Expression::Register(register);
            let update = match value {
                Expression::Binary(Operator::Add, left, right) if *left == own => {
                    Update::Add(*right)
                }
                Expression::Binary(Operator::Add, left, right) if *right == own => {
                    Update::Add(*left)
                }
                value if value.registers().contains(&register) => return None,
                value => Update::Exchange(value),
            };
            thread.learn(register, None);
            let register = Some(register);
            thread.push(Instruction::ReadModifyWrite { register, address, update });
        }
        "mov" => {
            let (register, rest) = take_register(thread, rest)?;
            if let Some(known) = address_of(thread, rest) {
                // A register need not hold an address: each access names its location.
                thread.learn(register, Some(known));
                return Some(());
            }
            let value = operand(thread, rest)?;
            let known = is_zero(thread, &value).then_some(Known::Zero);
            thread.learn(register, known);
            thread.push(Instruction::Assign { register, value });
        }
        "b" => {
            let (label, condition) = rest.split_last()?;
            let condition = match condition {
                [] => Expression::Constant(1),
                condition => operand(thread, condition)?,
            };
            thread.jump(condition, *label);
        }
        _ => return None,
    }
    Some(())
}

fn is_register(token: &Token<'_>) -> bool {
    let digits = token.text.strip_prefix('r');
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

fn take_register<'t, 's>(
    thread: &mut ThreadReader<'_>,
    tokens: &'s [Token<'t>],
) -> Option<(RegisterId, &'s [Token<'t>])> {
    let (first, rest) = tokens.split_first()?;
    is_register(first).then(|| (thread.register(first.text), rest))
}

/// Reads `x`, `r3` or `x+r2`.
fn take_address(thread: &mut ThreadReader<'_>, tokens: &[Token<'_>]) -> Option<Address> {
    let (base, offset) = match tokens {
        [base] => (base, None),
        [base, plus, offset] if plus.text == "+" => (base, Some(offset)),
        _ => return None,
    };
    let (location, mut depends) = if is_register(base) {
        let register = thread.register(base.text);
        match thread.known(register)?.clone() {
            Known::Address(location, depends) => (location, depends),
            Known::Zero => return None,
        }
    } else if base.is_word() {
        (thread.location(base.text), Vec::new())
    } else {
        return None;
    };
    match offset {
        None => {}
        Some(offset) if is_register(offset) => {
            let register = thread.register(offset.text);
            matches!(thread.known(register), Some(Known::Zero)).then_some(())?;
            depends.push(register);
        }
        Some(offset) => (number(offset.text)? == 0).then_some(())?,
    }
    Some(address(location, depends))
}

/// Recognises an address as an operand: `x` or `(add x r3)`.
fn address_of(thread: &mut ThreadReader<'_>, tokens: &[Token<'_>]) -> Option<Known> {
    let parts: Vec<&Token<'_>> = match tokens {
        [single] => vec![single],
        [open, add, a, b, close] if open.text == "(" && add.text == "add" && close.text == ")" => {
            vec![a, b]
        }
        _ => return None,
    };
    let mut base = None;
    let mut depends = Vec::new();
    for part in parts {
        if is_register(part) {
            let register = thread.register(part.text);
            match thread.known(register).cloned() {
                Some(Known::Zero) => depends.push(register),
                Some(Known::Address(location, more)) if base.is_none() => {
                    base = Some(location);
                    depends.extend(more);
                }
                _ => return None,
            }
        } else if part.is_word() && base.is_none() {
            base = Some(thread.location(part.text));
        } else {
            return None;
        }
    }
    Some(Known::Address(base?, depends))
}

/// Finds the start of the last operand.
fn operand_start(tokens: &[Token<'_>]) -> Option<usize> {
    if tokens.last()?.text != ")" {
        let last = tokens.len() - 1;
        let is_signed = last > 0 && tokens[last - 1].text == "-";
        return Some(if is_signed { last - 1 } else { last });
    }
    let mut open = 0;
    for at in (0..tokens.len()).rev() {
        match tokens[at].text {
            ")" => open += 1,
            "(" => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at);
        }
    }
    None
}

/// Finds the end of the first operand.
fn operand_end(tokens: &[Token<'_>]) -> Option<usize> {
    match tokens.first()?.text {
        "-" => return (tokens.len() > 1).then_some(2),
        "(" => {}
        _ => return Some(1),
    }
    let mut open = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" => open += 1,
            ")" => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// Reads a number, a register, or `(op a b)` of numbers and registers.
fn operand(thread: &mut ThreadReader<'_>, tokens: &[Token<'_>]) -> Option<Expression> {
    match tokens {
        [minus, digits] if minus.text == "-" => {
            number(digits.text).map(|value| Expression::Constant(value.wrapping_neg()))
        }
        [single] if is_register(single) => {
            let register = thread.register(single.text);
            // An address cannot be used as a value.
            if let Some(Known::Address(..)) = thread.known(register) {
                return None;
            }
            Some(Expression::Register(register))
        }
        [single] => number(single.text).map(Expression::Constant),
        [open, name, inner @ .., close] if open.text == "(" && close.text == ")" => {
            let operator = match name.text {
                "add" => Operator::Add,
                "sub" => Operator::Subtract,
                "xor" => Operator::Xor,
                "and" => Operator::And,
                "or" => Operator::Or,
                "eq" => Operator::Equal,
                "neq" => Operator::NotEqual,
                _ => return None,
            };
            // A comma between the operands is allowed.
            let inner: Vec<Token<'_>> =
                inner.iter().copied().filter(|token| token.text != ",").collect();
            let end = operand_end(&inner)?;
            // Limit of the nesting of operands.
            if inner.iter().filter(|token| token.text == "(").count() > 8 {
                return None;
            }
            let left = operand(thread, &inner[..end])?;
            let right = operand(thread, &inner[end..])?;
            Some(binary(operator, left, right))
        }
        _ => None,
    }
}

/// Checks whether a value is 0 whatever the registers hold.
fn is_zero(thread: &ThreadReader<'_>, value: &Expression) -> bool {
    match value {
        Expression::Constant(value) => *value == 0,
        Expression::Register(register) => {
            matches!(thread.known(*register), Some(Known::Zero))
        }
        Expression::Binary(Operator::Xor | Operator::Subtract, left, right) => left == right,
        Expression::Binary(Operator::Add, left, right) => {
            is_zero(thread, left) && is_zero(thread, right)
        }
        Expression::Binary(Operator::And, left, right) => {
            is_zero(thread, left) || is_zero(thread, right)
        }
        Expression::Binary(..) => false,
    }
}
