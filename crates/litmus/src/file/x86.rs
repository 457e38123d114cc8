//! x86 in Intel's syntax: `MOV [x],$1`, `XCHG [x],EAX`, `LOCK INC [x]`, `CMP EAX,$1`, `JNE L`.
//!
//! An instruction that reads and writes memory without `LOCK` is a read and a write, and other
//! events may come between them; `XCHG` with memory is always locked.

use super::lexer::{Piece, Token, number, tokens};
use super::thread::{ThreadReader, Word, address, binary};
use crate::program::{Expression, Fence, Instruction, LocationId, Operator, RegisterId, Update};

const SUPPORTED: &str = "there are MOV, MFENCE, LFENCE, SFENCE, XCHG, XADD, CMPXCHG, INC, DEC, ADD, \
                         SUB, XOR, AND, OR with and without LOCK, CMP, JMP and JE, JNE, JL, JLE, JG, JGE";

/// An operand of an instruction.
#[derive(Clone)]
enum Operand {
    Register(RegisterId),
    Memory(LocationId),
    Immediate(i64),
}

/// Reads the instructions of a thread.
pub(super) fn read(thread: &mut ThreadReader<'_>, words: &[Word<'_>]) {
    // Flags are computed only if a jump may use them.
    let has_jumps = words.iter().any(|word| match word {
        Word::Instruction(piece) => {
            let word = piece.text.split_whitespace().next().unwrap_or_default();
            word.to_ascii_uppercase().starts_with('J') && !word.eq_ignore_ascii_case("JMP")
        }
        Word::Label(_) => false,
    });
    for word in words {
        match word {
            Word::Label(label) => thread.label(*label),
            Word::Instruction(piece) => {
                let mut reader = X86 { thread, has_jumps };
                if reader.instruction(*piece).is_none() {
                    thread.unsupported(*piece, SUPPORTED);
                }
            }
        }
    }
}

struct X86<'r, 'a> {
    thread: &'r mut ThreadReader<'a>,
    has_jumps: bool,
}

impl X86<'_, '_> {
    /// Reads one instruction; `None` if it is not supported.
    fn instruction(&mut self, piece: Piece<'_>) -> Option<()> {
        let all = tokens(piece);
        let (mut mnemonic, mut rest) = all.split_first()?;
        let is_locked = mnemonic.text.eq_ignore_ascii_case("LOCK");
        if is_locked {
            (mnemonic, rest) = rest.split_first()?;
        }
        let name = mnemonic.text.to_ascii_uppercase();
        if let Some(relation) = condition(&name) {
            let [label] = rest else { return None };
            let condition = match relation {
                None => Expression::Constant(1),
                Some((operator, is_swapped)) => {
                    let flags = Expression::Register(self.thread.hidden("flags"));
                    let zero = Expression::Constant(0);
                    let (left, right) = if is_swapped { (zero, flags) } else { (flags, zero) };
                    binary(operator, left, right)
                }
            };
            self.thread.jump(condition, *label);
            return Some(());
        }
        let operands = self.operands(rest)?;
        let fence = match name.as_str() {
            "MFENCE" => Some(Fence::Full),
            "LFENCE" => Some(Fence::Load),
            "SFENCE" => Some(Fence::Store),
            _ => None,
        };
        if let (Some(fence), []) = (fence, &operands[..]) {
            self.thread.push(Instruction::Fence(fence));
            return Some(());
        }
        match (name.as_str(), &operands[..]) {
            ("MOV" | "MOVL" | "MOVQ", [to, from]) if !is_locked => self.mov(to, from),
            ("XCHG" | "XCHGL" | "XCHGQ", [a, b]) => self.exchange(a, b),
            ("XADD", [Operand::Memory(at), Operand::Register(register)]) => {
                let sum = Update::Add(Expression::Register(*register));
                self.update(*at, sum, Some(*register), is_locked)
            }
            ("CMPXCHG", [Operand::Memory(at), Operand::Register(new)]) if is_locked => {
                let accumulator = self.thread.register("EAX");
                let expected = Expression::Register(accumulator);
                let old = self.thread.hidden("old");
                let update = Update::CompareExchange {
                    expected: expected.clone(),
                    new: Expression::Register(*new),
                };
                self.thread.push(Instruction::ReadModifyWrite {
                    register: Some(old),
                    address: address(*at, Vec::new()),
                    update,
                });
                self.flags(binary(Operator::Subtract, expected, Expression::Register(old)));
                let value = Expression::Register(old);
                self.thread.push(Instruction::Assign { register: accumulator, value });
                Some(())
            }
            ("INC" | "INCL" | "DEC" | "DECL", [to]) => {
                let step = if name.starts_with("INC") { 1 } else { -1 };
                self.arithmetic(Operator::Add, to, &Operand::Immediate(step), is_locked)
            }
            ("ADD", [to, from]) => self.arithmetic(Operator::Add, to, from, is_locked),
            ("SUB", [to, from]) => self.arithmetic(Operator::Subtract, to, from, is_locked),
            ("XOR", [to, from]) => self.arithmetic(Operator::Xor, to, from, is_locked),
            ("AND", [to, from]) => self.arithmetic(Operator::And, to, from, is_locked),
            ("OR", [to, from]) => self.arithmetic(Operator::Or, to, from, is_locked),
            ("CMP", [left, right]) if !is_locked => {
                let left = self.value(left, "left");
                let right = self.value(right, "right");
                self.flags(binary(Operator::Subtract, left, right));
                Some(())
            }
            _ => None,
        }
    }

    fn mov(&mut self, to: &Operand, from: &Operand) -> Option<()> {
        let instruction = match (to, from) {
            (Operand::Register(register), Operand::Memory(at)) => {
                Instruction::Read { register: *register, address: address(*at, Vec::new()) }
            }
            (Operand::Register(register), _) => {
                Instruction::Assign { register: *register, value: plain(from)? }
            }
            (Operand::Memory(at), _) => {
                Instruction::Write { address: address(*at, Vec::new()), value: plain(from)? }
            }
            (Operand::Immediate(_), _) => return None,
        };
        self.thread.push(instruction);
        Some(())
    }

    fn exchange(&mut self, a: &Operand, b: &Operand) -> Option<()> {
        let (at, register) = match (a, b) {
            (Operand::Memory(at), Operand::Register(register))
            | (Operand::Register(register), Operand::Memory(at)) => (*at, *register),
            _ => return None,
        };
        let update = Update::Exchange(Expression::Register(register));
        self.update(at, update, Some(register), true)
    }

    fn update(
        &mut self,
        at: LocationId,
        update: Update,
        register: Option<RegisterId>,
        is_locked: bool,
    ) -> Option<()> {
        if !is_locked {
            return None;
        }
        let address = address(at, Vec::new());
        self.thread.push(Instruction::ReadModifyWrite { register, address, update });
        Some(())
    }

    fn arithmetic(
        &mut self,
        operator: Operator,
        to: &Operand,
        from: &Operand,
        is_locked: bool,
    ) -> Option<()> {
        match to {
            Operand::Register(register) if !is_locked => {
                let right = self.value(from, "right");
                let value = binary(operator, Expression::Register(*register), right);
                self.thread.push(Instruction::Assign { register: *register, value });
                self.flags(Expression::Register(*register));
                Some(())
            }
            Operand::Memory(at) if is_locked => {
                let amount = plain(from)?;
                let amount = match (operator, amount) {
                    (Operator::Add, amount) => amount,
                    (Operator::Subtract, Expression::Constant(c)) => {
                        Expression::Constant(c.wrapping_neg())
                    }
                    (Operator::Subtract, amount) => {
                        binary(Operator::Subtract, Expression::Constant(0), amount)
                    }
                    _ => return None,
                };
                let old = self.has_jumps.then(|| self.thread.hidden("old"));
                self.update(*at, Update::Add(amount.clone()), old, true)?;
                if let Some(old) = old {
                    self.flags(binary(Operator::Add, Expression::Register(old), amount));
                }
                Some(())
            }
            Operand::Memory(at) => {
                let right = plain(from)?;
                let old = self.thread.hidden("left");
                let address = address(*at, Vec::new());
                self.thread.push(Instruction::Read { register: old, address: address.clone() });
                let value = binary(operator, Expression::Register(old), right);
                self.thread.push(Instruction::Write { address, value: value.clone() });
                self.flags(value);
                Some(())
            }
            _ => None,
        }
    }

    /// Returns the value of an operand; a value in memory is read into a hidden register first.
    fn value(&mut self, operand: &Operand, name: &str) -> Expression {
        match operand {
            Operand::Register(register) => Expression::Register(*register),
            Operand::Immediate(value) => Expression::Constant(*value),
            Operand::Memory(at) => {
                let register = self.thread.hidden(name);
                let address = address(*at, Vec::new());
                self.thread.push(Instruction::Read { register, address });
                Expression::Register(register)
            }
        }
    }

    fn flags(&mut self, value: Expression) {
        if self.has_jumps {
            let register = self.thread.hidden("flags");
            self.thread.push(Instruction::Assign { register, value });
        }
    }

    fn operands(&mut self, tokens: &[Token<'_>]) -> Option<Vec<Operand>> {
        let mut operands = Vec::new();
        for part in tokens.split(|token| token.text == ",") {
            operands.push(match part {
                [] if tokens.is_empty() => break,
                [dollar, digits] if dollar.text == "$" => Operand::Immediate(number(digits.text)?),
                [dollar, minus, digits] if dollar.text == "$" && minus.text == "-" => {
                    Operand::Immediate(number(digits.text)?.wrapping_neg())
                }
                [open, name, close] if open.text == "[" && close.text == "]" && name.is_word() => {
                    Operand::Memory(self.thread.location(name.text))
                }
                [name] if name.is_word() && is_register(name.text) => {
                    Operand::Register(self.thread.register(name.text))
                }
                _ => return None,
            });
        }
        Some(operands)
    }
}

fn plain(operand: &Operand) -> Option<Expression> {
    match operand {
        Operand::Register(register) => Some(Expression::Register(*register)),
        Operand::Immediate(value) => Some(Expression::Constant(*value)),
        Operand::Memory(_) => None,
    }
}

fn is_register(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let base = upper.strip_prefix(['E', 'R']).unwrap_or(&upper);
    matches!(base, "AX" | "BX" | "CX" | "DX" | "SI" | "DI" | "BP" | "SP")
        || matches!(upper.as_str(), "AL" | "BL" | "CL" | "DL")
        || upper.strip_prefix('R').is_some_and(|rest| {
            let digits = rest.strip_suffix('D').unwrap_or(rest);
            digits.parse::<u8>().is_ok_and(|number| (8..16).contains(&number))
        })
}

/// Returns how a conditional jump compares the flags with 0, and whether 0 is on the left; `JMP`
/// has no comparison.
fn condition(name: &str) -> Option<Option<(Operator, bool)>> {
    Some(match name {
        "JMP" => None,
        "JE" | "JZ" => Some((Operator::Equal, false)),
        "JNE" | "JNZ" => Some((Operator::NotEqual, false)),
        "JL" => Some((Operator::Less, false)),
        "JLE" => Some((Operator::LessOrEqual, false)),
        "JG" => Some((Operator::Less, true)),
        "JGE" => Some((Operator::LessOrEqual, true)),
        _ => return None,
    })
}
