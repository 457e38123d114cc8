//! Converts tests of instruction sets to programs for tables, machines and the processor.
//!
//! A [`Program`] has accesses to statically known locations, full fences and updates, and few
//! operators. A test that uses only these is converted; for any other test the error names the
//! unsupported construct.

use super::code::{
    Binary, Code, Expr, Fetch, Op, Tags, ThreadCode, Update as IsaUpdate, UpdateResult,
};
use super::test::{Asked, Formula, IsaTest, Language, Source};
use crate::condition::{Condition, Proposition, Quantifier};
use crate::file::{Arch, Test};
use crate::program::{
    Address, Expression, Fence, Instruction, Location, LocationId, Observable, Operator, Program,
    Register, RegisterId, Thread, ThreadId, Update,
};

/// Largest constant that fits into the narrower registers of a test.
const MAX_CONSTANT: i64 = 1 << 30;

/// Converts a test of x86 or AArch64 to a program, or returns why this is impossible.
pub fn program_of_isa(test: &IsaTest) -> Result<Test, String> {
    let is_known = matches!(test.language, Language::X86 | Language::X86_64 | Language::AArch64);
    if !is_known {
        return Err(format!("tests of {} are not run on the processor", test.language.as_str()));
    }
    translated(test, |translation, thread| translation.instructions(thread))
}

/// Builds the frame of a program from a test: locations, registers and condition, without
/// instructions.
pub fn frame_of_isa(test: &IsaTest) -> Result<Test, String> {
    translated(test, |_, _| Ok(()))
}

fn translated(
    test: &IsaTest,
    mut instructions: impl FnMut(&mut Translation<'_>, &ThreadCode) -> Result<(), String>,
) -> Result<Test, String> {
    let code = &test.code;
    let mut program = Program::default();
    for location in &code.locations {
        if location.is_array {
            return Err(format!("`{}` is an array", location.name));
        }
        let initial = location.initial.first().copied().unwrap_or(0);
        program.locations.push(Location { name: location.name.clone(), initial });
    }
    for thread in &code.threads {
        let initial = |&value: &i64| if code.locate(value).is_some() { 0 } else { value };
        let registers = thread.registers.iter().zip(&thread.initial);
        let mut translation = Translation {
            code,
            language: test.language,
            known: thread.initial.iter().map(|&value| Some(value)).collect(),
            thread: Thread {
                registers: registers
                    .map(|(name, value)| Register { name: name.clone(), initial: initial(value) })
                    .collect(),
                code: Vec::new(),
            },
        };
        instructions(&mut translation, thread)?;
        program.threads.push(translation.thread);
    }
    let observables: Vec<Observable> = test
        .observed
        .iter()
        .map(|observed| match observed.source {
            Source::Register { thread, register } => {
                let register = RegisterId::new(usize::from(register));
                Ok(Observable::Register(ThreadId::new(thread), register))
            }
            Source::Memory { address, count: 1, .. } => match code.locate(address) {
                Some((at, 0)) => Ok(Observable::Location(LocationId::new(at))),
                _ => Err(format!("`{}` is not a location", observed.name)),
            },
            Source::Memory { .. } => Err(format!("`{}` is an array", observed.name)),
        })
        .collect::<Result<_, String>>()?;
    let filter =
        test.filter.as_ref().map(|formula| proposition(formula, &observables)).transpose()?;
    let condition = Condition {
        quantifier: match test.quantifier {
            Asked::Exists => Quantifier::Exists,
            Asked::NotExists => Quantifier::NotExists,
            Asked::Forall => Quantifier::Forall,
        },
        proposition: proposition(&test.proposition, &observables)?,
    };
    program.observed = observables;
    Ok(Test {
        arch: Arch::X86,
        name: test.name.clone(),
        comment: None,
        info: Vec::new(),
        program,
        filter,
        condition: Some(condition),
    })
}

fn proposition(formula: &Formula, observables: &[Observable]) -> Result<Proposition, String> {
    let inner = |formula: &Formula| proposition(formula, observables);
    Ok(match formula {
        Formula::True => Proposition::True,
        Formula::False => Proposition::Not(Box::new(Proposition::True)),
        Formula::Not(of) => Proposition::Not(Box::new(inner(of)?)),
        Formula::And(a, b) => Proposition::And(vec![inner(a)?, inner(b)?]),
        Formula::Or(a, b) => Proposition::Or(vec![inner(a)?, inner(b)?]),
        Formula::Implies(a, b) => Proposition::Implies(Box::new(inner(a)?), Box::new(inner(b)?)),
        Formula::Equal(at, values) => match values[..] {
            [value] => Proposition::Holds(observables[*at], value),
            _ => return Err("the condition compares arrays".to_owned()),
        },
        Formula::Same(..) => return Err("the condition compares two registers".to_owned()),
    })
}

struct Translation<'t> {
    code: &'t Code,
    language: Language,
    /// Values of the registers that are known statically.
    known: Vec<Option<i64>>,
    thread: Thread,
}

impl Translation<'_> {
    fn instructions(&mut self, thread: &ThreadCode) -> Result<(), String> {
        for op in thread.instructions.iter().flatten() {
            if *op == Op::End {
                break;
            }
            self.operation(op)?;
        }
        Ok(())
    }

    fn operation(&mut self, op: &Op) -> Result<(), String> {
        let instruction = match op {
            Op::Set(register, value) => {
                let at = usize::from(*register);
                let constant = self.constant(value);
                self.known[at] = constant;
                if constant.is_some_and(|value| self.code.locate(value).is_some()) {
                    return Ok(());
                }
                // Flags that no jump uses are not computed.
                let Ok(value) = self.expression(value) else {
                    if self.thread.registers[at].name == "FLAGS" {
                        return Ok(());
                    }
                    return Err("a register is computed by an unsupported operation".to_owned());
                };
                Instruction::Assign { register: RegisterId::new(at), value }
            }
            Op::Load { into, address, tags, exclusive, .. } => {
                self.check_tags(*tags)?;
                if *exclusive {
                    return Err("exclusive accesses are not run".to_owned());
                }
                let address = self.address(address)?;
                self.known[usize::from(*into)] = None;
                Instruction::Read { register: RegisterId::new(usize::from(*into)), address }
            }
            Op::Store { address, value, tags, .. } => {
                self.check_tags(*tags)?;
                let (address, value) = (self.address(address)?, self.expression(value)?);
                Instruction::Write { address, value }
            }
            Op::Update { into, address, update, read_tags, write_tags, result, .. } => {
                if self.language == Language::AArch64 {
                    self.check_tags(*read_tags)?;
                    self.check_tags(*write_tags)?;
                }
                if *result != UpdateResult::Old {
                    return Err("this update is not run".to_owned());
                }
                let address = self.address(address)?;
                let update = match update {
                    IsaUpdate::Swap(value) => Update::Exchange(self.expression(value)?),
                    IsaUpdate::Fetch(Fetch::Binary(Binary::Add), value) => {
                        Update::Add(self.expression(value)?)
                    }
                    IsaUpdate::CompareAndSwap { expected, new } => Update::CompareExchange {
                        expected: self.expression(expected)?,
                        new: self.expression(new)?,
                    },
                    _ => return Err("this update is not run".to_owned()),
                };
                if let Some(into) = into {
                    self.known[usize::from(*into)] = None;
                }
                let register = into.map(|into| RegisterId::new(usize::from(into)));
                Instruction::ReadModifyWrite { register, address, update }
            }
            Op::Fence { tags } => Instruction::Fence(self.fence(*tags)?),
            Op::End => return Ok(()),
            Op::Branch { .. } | Op::Jump(_) => return Err("jumps are not run".to_owned()),
            _ => return Err("an instruction is not run".to_owned()),
        };
        self.thread.code.push(instruction);
        Ok(())
    }

    /// Names the tags of a set.
    fn tag_names(&self, tags: Tags) -> impl Iterator<Item = &str> {
        let named = self.code.tags.iter().enumerate();
        named.filter(move |(at, _)| tags >> at & 1 == 1).map(|(_, name)| name.as_str())
    }

    fn check_tags(&self, tags: Tags) -> Result<(), String> {
        match self.tag_names(tags).find(|name| matches!(*name, "A" | "Q" | "L")) {
            Some(_) if self.language == Language::AArch64 => {
                Err("acquire and release accesses are not run".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn fence(&self, tags: Tags) -> Result<Fence, String> {
        let names: Vec<&str> = self.tag_names(tags).collect();
        let is = |known: &[&str]| names.iter().any(|name| known.contains(name));
        if is(&["MFENCE", "DMB.SY", "DMB.ISH", "DSB.SY", "DSB.ISH"]) {
            Ok(Fence::Full)
        } else if is(&["LFENCE", "DMB.LD", "DMB.ISHLD"]) {
            Ok(Fence::Load)
        } else if is(&["SFENCE", "DMB.ST", "DMB.ISHST"]) {
            Ok(Fence::Store)
        } else {
            Err(format!("the fence {} is not run", names.join(" ")))
        }
    }

    fn address(&self, address: &Expr) -> Result<Address, String> {
        let place = self.constant(address).and_then(|address| self.code.locate(address));
        match place {
            Some((at, 0)) => Ok(LocationId::new(at).into()),
            _ => Err("an address is not known without running the test".to_owned()),
        }
    }

    /// Computes a value that is known statically.
    fn constant(&self, expression: &Expr) -> Option<i64> {
        match expression {
            Expr::Const(value) => Some(*value),
            Expr::Register(register) => self.known[usize::from(*register)],
            Expr::Binary(operator, a, b) => {
                Some(super::code::binary(*operator, self.constant(a)?, self.constant(b)?))
            }
            Expr::Extend { bytes, signed, of } => {
                let value = self.constant(of)?;
                // Addresses have 64 bits.
                match self.code.locate(value) {
                    Some(_) => Some(value),
                    None => Some(super::code::truncate(value, *bytes, *signed)),
                }
            }
            _ => None,
        }
    }

    fn expression(&self, expression: &Expr) -> Result<Expression, String> {
        if let Some(value) = self.constant(expression) {
            if self.code.locate(value).is_some() {
                return Err("addresses as values are not run".to_owned());
            }
            if !(-MAX_CONSTANT..=MAX_CONSTANT).contains(&value) {
                return Err(format!("the number {value} is too large"));
            }
            return Ok(Expression::Constant(value));
        }
        match expression {
            Expr::Register(register) => {
                Ok(Expression::Register(RegisterId::new(usize::from(*register))))
            }
            // Numbers are small, so that only widths of one or two bytes truncate them.
            Expr::Extend { bytes: 4.., of, .. } => self.expression(of),
            Expr::Binary(operator, a, b) => {
                let operator = match operator {
                    Binary::Add => Operator::Add,
                    Binary::Sub => Operator::Subtract,
                    Binary::Xor => Operator::Xor,
                    Binary::And => Operator::And,
                    Binary::Or => Operator::Or,
                    Binary::Equal => Operator::Equal,
                    Binary::NotEqual => Operator::NotEqual,
                    _ => return Err("an operator is not run".to_owned()),
                };
                let (a, b) = (self.expression(a)?, self.expression(b)?);
                Ok(Expression::Binary(operator, Box::new(a), Box::new(b)))
            }
            _ => Err("an expression is not run".to_owned()),
        }
    }
}
