//! The paper's programs on one line: `X=1; r1=Y // Y=1; fence; r2=X`.
//!
//! Threads are separated by `//`, instructions by `;`. `X=1` writes, `r1=X` reads, `fence` is a
//! full fence. A register is an `r` and digits; any other word is a location with initial value 0.
//! In addition to the core: `X=r1` writes a register, `r2=xchg(X,1)` exchanges and `r2=add(X,1)`
//! adds.

use thiserror::Error;

use crate::program::{
    Address, Expression, Instruction, Location, LocationId, Program, Register, RegisterId, Thread,
    Update, Value,
};

/// Error: a line is not a program.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("thread {thread}: `{text}` is not an instruction")]
pub struct NotationError {
    /// The thread, counted from 0.
    pub thread: usize,
    /// Text that was found.
    pub text: String,
}

/// Reads a program in the one-line notation; it observes every register that is read into.
pub fn parse_notation(text: &str) -> Result<Program, NotationError> {
    let mut program = Program::default();
    for (index, code) in text.split("//").enumerate() {
        let mut thread = Thread::default();
        for part in code.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let instruction = instruction(part, &mut program, &mut thread)
                .ok_or_else(|| NotationError { thread: index, text: part.to_owned() })?;
            thread.code.push(instruction);
        }
        program.threads.push(thread);
    }
    program.observed = program.read_registers();
    Ok(program)
}

fn instruction(text: &str, program: &mut Program, thread: &mut Thread) -> Option<Instruction> {
    if text == "fence" {
        return Some(Instruction::fence());
    }
    let (left, right) = text.split_once('=')?;
    let (left, right) = (left.trim(), right.trim());
    if !is_register(left) {
        let address = location(left, program)?;
        return Some(Instruction::Write { address, value: value(right, thread)? });
    }
    if let Some((name, arguments)) = right.split_once('(') {
        let (target, operand) = arguments.strip_suffix(')')?.split_once(',')?;
        let operand = value(operand.trim(), thread)?;
        let update = match name.trim() {
            "xchg" => Update::Exchange(operand),
            "add" => Update::Add(operand),
            _ => return None,
        };
        let address = location(target.trim(), program)?;
        let register = Some(register(left, thread));
        return Some(Instruction::ReadModifyWrite { register, address, update });
    }
    let address = location(right, program)?;
    Some(Instruction::Read { register: register(left, thread), address })
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_register(text: &str) -> bool {
    let digits = text.strip_prefix('r');
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

fn value(text: &str, thread: &mut Thread) -> Option<Expression> {
    if is_register(text) {
        return Some(Expression::Register(register(text, thread)));
    }
    text.parse::<Value>().ok().map(Expression::Constant)
}

fn register(name: &str, thread: &mut Thread) -> RegisterId {
    let known = thread.registers.iter().position(|register| register.name == name);
    RegisterId::new(known.unwrap_or_else(|| {
        thread.registers.push(Register { name: name.to_owned(), initial: 0 });
        thread.registers.len() - 1
    }))
}

fn location(name: &str, program: &mut Program) -> Option<Address> {
    if !is_word(name) || is_register(name) || name == "fence" {
        return None;
    }
    let known = program.locations.iter().position(|location| location.name == name);
    let index = known.unwrap_or_else(|| {
        program.locations.push(Location { name: name.to_owned(), initial: 0 });
        program.locations.len() - 1
    });
    Some(LocationId::new(index).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_is_read() {
        let program = parse_notation("X=1; fence; r1=Y // Y=2; r2=Y; r3=X").unwrap();
        assert!(program.is_core());
        assert_eq!(program.accesses(), 5);
        assert_eq!(program.observed_names(), ["r1", "r2", "r3"]);
        assert_eq!(program.threads[0].code[1], Instruction::fence());
    }

    #[test]
    fn registers_that_clash_are_qualified() {
        let program = parse_notation("r1=X // r1=X; r2=X").unwrap();
        assert_eq!(program.observed_names(), ["0:r1", "1:r1", "r2"]);
    }

    #[test]
    fn what_is_no_instruction_is_named() {
        for (text, thread, found) in
            [("X=1 // r1=2", 1, "r1=2"), ("X", 0, "X"), ("r1=xchg(X)", 0, "r1=xchg(X)")]
        {
            let error = parse_notation(text).unwrap_err();
            assert_eq!(error, NotationError { thread, text: found.to_owned() });
        }
    }
}
