//! Writes tests as `.litmus` files, and as the paper's tables.

use std::fmt::Write;

use thiserror::Error;

use super::{Arch, Test};
use crate::condition::{Proposition, Quantifier};
use crate::program::{
    Expression, Fence, Instruction, Observable, Operator, Outcome, Program, RegisterId, Thread,
    Update,
};

/// A construct that a language cannot express.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{} cannot express {what}", arch.as_str())]
pub struct ArchError {
    /// The language.
    pub arch: Arch,
    /// The construct.
    pub what: &'static str,
}

/// Writes a test as a `.litmus` file in the language that it names.
pub fn write_test(test: &Test) -> Result<String, ArchError> {
    let program = &test.program;
    let mut text = format!("{} {}\n", test.arch.as_str(), test.name);
    if let Some(comment) = &test.comment {
        let _ = writeln!(text, "\"{comment}\"");
    }
    for (key, value) in &test.info {
        let _ = writeln!(text, "{key}={value}");
    }
    let mut columns = Vec::new();
    let mut names = Vec::new();
    for (at, thread) in program.threads.iter().enumerate() {
        let of_thread = match test.arch {
            Arch::X86 => x86_names(thread),
            Arch::Lisa => lisa_names(thread),
        };
        let mut column =
            Column { program, thread, names: of_thread, cells: vec![format!("P{at}")] };
        column.fill(test.arch)?;
        columns.push(column.cells);
        names.push(column.names);
    }
    text.push_str("{ ");
    for location in &program.locations {
        let _ = write!(text, "{}={}; ", location.name, location.initial);
    }
    for (at, thread) in program.threads.iter().enumerate() {
        for (register, name) in thread.registers.iter().zip(&names[at]) {
            if register.initial != 0 {
                let _ = write!(text, "{at}:{name}={}; ", register.initial);
            }
        }
    }
    text.push_str("}\n");
    text.push_str(&table(&columns));
    let name = |observable: &Observable| match *observable {
        Observable::Register(thread, register) => {
            format!("{}:{}", thread.0, names[thread.index()][register.index()])
        }
        Observable::Location(location) => program.locations[location.index()].name.clone(),
    };
    let asked = test.condition.iter().map(|c| &c.proposition).chain(&test.filter);
    let mentioned: Vec<Observable> = asked.flat_map(Proposition::observables).collect();
    let is_default = mentioned.is_empty() && program.observed == program.read_registers();
    let extra: Vec<String> =
        program.observed.iter().filter(|o| !mentioned.contains(o)).map(&name).collect();
    if !extra.is_empty() && !is_default {
        let _ = writeln!(text, "locations [{};]", extra.join("; "));
    }
    if let Some(filter) = &test.filter {
        let _ = writeln!(text, "filter ({})", proposition(filter, &name));
    }
    if let Some(condition) = &test.condition {
        let word = match condition.quantifier {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::Forall => "forall",
        };
        let _ = writeln!(text, "{word} ({})", proposition(&condition.proposition, &name));
    }
    Ok(text)
}

/// Writes a program in the form of the paper's tables, with an outcome below it.
pub fn write_table(program: &Program, outcome: Option<&Outcome>) -> String {
    let columns: Vec<Vec<String>> = program
        .threads
        .iter()
        .enumerate()
        .map(|(at, thread)| {
            let lines =
                thread.code.iter().map(|instruction| sentence(program, thread, instruction));
            std::iter::once(format!("T{}", at + 1)).chain(lines).collect()
        })
        .collect();
    let mut text = String::new();
    for (row, line) in rows(&columns).enumerate() {
        let _ = writeln!(text, "{}", line.join(" | ").trim_end());
        if row == 0 {
            let rule: Vec<String> =
                line.iter().map(|cell| "-".repeat(cell.chars().count())).collect();
            let _ = writeln!(text, "{}", rule.join("-+-"));
        }
    }
    if let Some(outcome) = outcome {
        let names = program.observed_names();
        let values = names.iter().zip(&outcome.0).map(|(name, value)| format!("{name} = {value}"));
        let _ = writeln!(text, "Outcome: {}", values.collect::<Vec<_>>().join("; "));
    }
    text
}

/// Writes an instruction in the paper's notation.
fn sentence(program: &Program, thread: &Thread, instruction: &Instruction) -> String {
    let place = |at: crate::program::LocationId| &program.locations[at.index()].name;
    let register = |at: RegisterId| &thread.registers[at.index()].name;
    let show = |value: &Expression| expression(value, &|at| register(at).clone());
    let depends = |registers: &[RegisterId]| match registers {
        [] => String::new(),
        some => {
            let names: Vec<&str> = some.iter().map(|&at| register(at).as_str()).collect();
            format!(" (address from {})", names.join(", "))
        }
    };
    match instruction {
        Instruction::Read { register: into, address } => {
            format!(
                "Read {} -> {}{}",
                place(address.location),
                register(*into),
                depends(&address.depends)
            )
        }
        Instruction::Write { address, value } => {
            let (place, from) = (place(address.location), depends(&address.depends));
            format!("Write {place} <- {}{from}", show(value))
        }
        Instruction::Fence(Fence::Full) => "Fence".to_owned(),
        Instruction::Fence(Fence::Load) => "Load fence".to_owned(),
        Instruction::Fence(Fence::Store) => "Store fence".to_owned(),
        Instruction::Fence(Fence::Tagged(tag)) => format!("Fence {tag}"),
        Instruction::ReadModifyWrite { register: into, address, update } => {
            let place = place(address.location);
            let what = match update {
                Update::Exchange(value) => format!("Exchange {place} <- {}", show(value)),
                Update::Add(value) => format!("Add {place} += {}", show(value)),
                Update::CompareExchange { expected, new } => {
                    format!("Compare {place} == {}, then <- {}", show(expected), show(new))
                }
            };
            let into = into.map_or(String::new(), |into| format!(" -> {}", register(into)));
            format!("{what}{into}{}", depends(&address.depends))
        }
        Instruction::Assign { register: into, value } => {
            format!("{} = {}", register(*into), show(value))
        }
        Instruction::Jump { condition, target } => {
            format!("if {} goto {}", show(condition), target + 1)
        }
    }
}

fn expression(value: &Expression, name: &dyn Fn(RegisterId) -> String) -> String {
    match value {
        Expression::Constant(value) => value.to_string(),
        Expression::Register(register) => name(*register),
        Expression::Binary(operator, left, right) => {
            let sign = match operator {
                Operator::Add => "+",
                Operator::Subtract => "-",
                Operator::Xor => "^",
                Operator::And => "&",
                Operator::Or => "|",
                Operator::Equal => "==",
                Operator::NotEqual => "!=",
                Operator::Less => "<",
                Operator::LessOrEqual => "<=",
            };
            format!("({} {sign} {})", expression(left, name), expression(right, name))
        }
    }
}

fn proposition(proposition_: &Proposition, name: &dyn Fn(&Observable) -> String) -> String {
    let inner = |p: &Proposition| match p {
        Proposition::True | Proposition::Holds(..) | Proposition::Not(_) => proposition(p, name),
        _ => format!("({})", proposition(p, name)),
    };
    let join = |all: &[Proposition], by: &str| {
        all.iter().map(inner).collect::<Vec<_>>().join(&format!(" {by} "))
    };
    match proposition_ {
        Proposition::True => "true".to_owned(),
        Proposition::Holds(observable, value) => format!("{}={value}", name(observable)),
        Proposition::Not(negated) => format!(
            "~{}",
            match &**negated {
                Proposition::True => "true".to_owned(),
                other => format!("({})", proposition(other, name)),
            }
        ),
        Proposition::And(all) => join(all, "/\\"),
        Proposition::Or(some) => join(some, "\\/"),
        Proposition::Implies(premise, conclusion) => {
            format!("{} => {}", inner(premise), inner(conclusion))
        }
    }
}

/// Pads columns to rows of equal width.
fn rows(columns: &[Vec<String>]) -> impl Iterator<Item = Vec<String>> + '_ {
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: &Vec<String>| column.iter().map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = columns.iter().map(width).collect();
    (0..height).map(move |row| {
        let cell = |(column, &width): (&Vec<String>, &usize)| {
            format!("{:width$}", column.get(row).map_or("", String::as_str))
        };
        columns.iter().zip(&widths).map(cell).collect()
    })
}

fn table(columns: &[Vec<String>]) -> String {
    rows(columns).map(|row| format!(" {} ;\n", row.join(" | "))).collect()
}

/// Returns x86 names of registers: their own names if these are x86's, otherwise free names.
fn x86_names(thread: &Thread) -> Vec<String> {
    const NAMES: [&str; 14] = [
        "EAX", "EBX", "ECX", "EDX", "ESI", "EDI", "R8", "R9", "R10", "R11", "R12", "R13", "R14",
        "R15",
    ];
    let own = |name: &str| NAMES.iter().any(|x86| x86.eq_ignore_ascii_case(name));
    let taken: Vec<String> = thread.registers.iter().map(|r| r.name.to_ascii_uppercase()).collect();
    let mut free = NAMES.iter().filter(|name| !taken.iter().any(|t| t == *name));
    let name = |register: &crate::program::Register| match own(&register.name) {
        true => register.name.clone(),
        false => free.next().map_or_else(|| register.name.clone(), |name| (*name).to_owned()),
    };
    thread.registers.iter().map(name).collect()
}

/// Returns LISA's names of registers: `r` and a number.
fn lisa_names(thread: &Thread) -> Vec<String> {
    let is_own = |name: &str| {
        let digits = name.strip_prefix('r');
        digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
    };
    let taken: Vec<&str> = thread.registers.iter().map(|r| r.name.as_str()).collect();
    let mut free = (0..).map(|n| format!("r{n}")).filter(|name| !taken.contains(&name.as_str()));
    let name = |register: &crate::program::Register| match is_own(&register.name) {
        true => register.name.clone(),
        false => free.next().expect("there is always another number"),
    };
    thread.registers.iter().map(name).collect()
}

struct Column<'a> {
    program: &'a Program,
    thread: &'a Thread,
    names: Vec<String>,
    cells: Vec<String>,
}

impl Column<'_> {
    fn fill(&mut self, arch: Arch) -> Result<(), ArchError> {
        let code = &self.thread.code;
        let targets: Vec<usize> = code
            .iter()
            .filter_map(|instruction| match instruction {
                Instruction::Jump { target, .. } => Some(*target),
                _ => None,
            })
            .collect();
        for (at, instruction) in code.iter().enumerate() {
            if targets.contains(&at) {
                self.cells.push(format!("L{at}:"));
            }
            match arch {
                Arch::X86 => self.x86(instruction)?,
                Arch::Lisa => self.lisa(instruction)?,
            }
        }
        if targets.contains(&code.len()) {
            self.cells.push(format!("L{}:", code.len()));
        }
        Ok(())
    }

    fn name(&self, register: RegisterId) -> &str {
        &self.names[register.index()]
    }

    fn place(&self, at: crate::program::LocationId) -> &str {
        &self.program.locations[at.index()].name
    }

    fn x86(&mut self, instruction: &Instruction) -> Result<(), ArchError> {
        let cannot = |what| ArchError { arch: Arch::X86, what };
        let operand = |value: &Expression| match value {
            Expression::Constant(value) => Ok(format!("${value}")),
            Expression::Register(register) => Ok(self.name(*register).to_owned()),
            Expression::Binary(..) => Err(cannot("a computed value")),
        };
        let cell = match instruction {
            Instruction::Read { address, .. } | Instruction::Write { address, .. }
                if !address.depends.is_empty() =>
            {
                return Err(cannot("an address dependency"));
            }
            Instruction::Read { register, address } => {
                format!("MOV {},[{}]", self.name(*register), self.place(address.location))
            }
            Instruction::Write { address, value } => {
                format!("MOV [{}],{}", self.place(address.location), operand(value)?)
            }
            Instruction::Fence(Fence::Full) => "MFENCE".to_owned(),
            Instruction::Fence(Fence::Load) => "LFENCE".to_owned(),
            Instruction::Fence(Fence::Store) => "SFENCE".to_owned(),
            Instruction::Fence(Fence::Tagged(_)) => return Err(cannot("a fence with a tag")),
            Instruction::ReadModifyWrite { register, address, update } => {
                let place = format!("[{}]", self.place(address.location));
                match (register, update) {
                    (Some(register), Update::Exchange(value)) => {
                        // XCHG takes its value from the register that receives the old value.
                        let name = self.name(*register).to_owned();
                        if *value != Expression::Register(*register) {
                            let value = operand(value)?;
                            self.cells.push(format!("MOV {name},{value}"));
                        }
                        format!("XCHG {place},{name}")
                    }
                    (None, Update::Add(Expression::Constant(1))) => format!("LOCK INC {place}"),
                    (None, Update::Add(Expression::Constant(-1))) => format!("LOCK DEC {place}"),
                    (None, Update::Add(value)) => format!("LOCK ADD {place},{}", operand(value)?),
                    (Some(register), Update::Add(Expression::Register(value)))
                        if value == register =>
                    {
                        format!("LOCK XADD {place},{}", self.name(*register))
                    }
                    _ => return Err(cannot("this read-modify-write")),
                }
            }
            Instruction::Assign { register, value } => {
                format!("MOV {},{}", self.name(*register), operand(value)?)
            }
            Instruction::Jump { .. } => return Err(cannot("a jump without flags")),
        };
        self.cells.push(cell);
        Ok(())
    }

    fn lisa(&mut self, instruction: &Instruction) -> Result<(), ArchError> {
        let cannot = |what| ArchError { arch: Arch::Lisa, what };
        let cell = match instruction {
            Instruction::Read { register, address } => {
                let address = self.lisa_address(address)?;
                format!("r[] {} {address}", self.name(*register))
            }
            Instruction::Write { address, value } => {
                let address = self.lisa_address(address)?;
                format!("w[] {address} {}", self.atom(value)?)
            }
            Instruction::Fence(Fence::Full) => "f[mb]".to_owned(),
            Instruction::Fence(Fence::Load) => "f[rmb]".to_owned(),
            Instruction::Fence(Fence::Store) => "f[wmb]".to_owned(),
            Instruction::Fence(Fence::Tagged(tag)) => format!("f[{tag}]"),
            Instruction::ReadModifyWrite { register, address, update } => {
                let address = self.lisa_address(address)?;
                let register = match register {
                    Some(register) => self.name(*register).to_owned(),
                    None => self.temporary(),
                };
                match update {
                    Update::Exchange(value) => {
                        let value = self.other_than(&register, value)?;
                        format!("rmw[] {register} {value} {address}")
                    }
                    Update::Add(value) => {
                        let value = self.other_than(&register, value)?;
                        format!("rmw[] {register} (add {register} {value}) {address}")
                    }
                    Update::CompareExchange { .. } => {
                        return Err(cannot("a compare-and-exchange"));
                    }
                }
            }
            Instruction::Assign { register, value: Expression::Binary(operator, left, right) } => {
                let (left, right) = (self.atom(left)?, self.atom(right)?);
                let name = lisa_operator(*operator)?;
                format!("mov {} ({name} {left} {right})", self.name(*register))
            }
            Instruction::Assign { register, value } => {
                let value = self.atom(value)?;
                format!("mov {} {value}", self.name(*register))
            }
            Instruction::Jump { condition: Expression::Constant(value), target } => match value {
                0 => return Ok(()),
                _ => format!("b[] L{target}"),
            },
            Instruction::Jump { condition, target } => {
                format!("b[] {} L{target}", self.atom(condition)?)
            }
        };
        self.cells.push(cell);
        Ok(())
    }

    /// Writes a number or a register; any other value is computed into a register first.
    fn atom(&mut self, value: &Expression) -> Result<String, ArchError> {
        Ok(match value {
            Expression::Constant(value) => value.to_string(),
            Expression::Register(register) => self.name(*register).to_owned(),
            Expression::Binary(operator, left, right) => {
                let (left, right) = (self.atom(left)?, self.atom(right)?);
                let name = lisa_operator(*operator)?;
                let temporary = self.temporary();
                self.cells.push(format!("mov {temporary} ({name} {left} {right})"));
                temporary
            }
        })
    }

    /// Writes a value as [`Self::atom`] does, but not as the register with this name.
    fn other_than(&mut self, name: &str, value: &Expression) -> Result<String, ArchError> {
        let atom = self.atom(value)?;
        if atom != name {
            return Ok(atom);
        }
        let copy = self.temporary();
        self.cells.push(format!("mov {copy} {atom}"));
        Ok(copy)
    }

    fn lisa_address(&mut self, address: &crate::program::Address) -> Result<String, ArchError> {
        let mut sum: Option<String> = None;
        for &register in &address.depends {
            let (name, zero) = (self.name(register).to_owned(), self.temporary());
            self.cells.push(format!("mov {zero} (xor {name} {name})"));
            sum = Some(match sum {
                None => zero,
                Some(other) => {
                    let both = self.temporary();
                    self.cells.push(format!("mov {both} (add {other} {zero})"));
                    both
                }
            });
        }
        let place = self.place(address.location).to_owned();
        Ok(sum.map_or(place.clone(), |offset| format!("{place}+{offset}")))
    }

    /// Creates a register that is not used otherwise.
    fn temporary(&mut self) -> String {
        let is_taken = |name: &String| self.names.contains(name);
        let name = (0..).map(|n| format!("r{n}")).find(|name| !is_taken(name));
        let name = name.expect("there is always another number");
        self.names.push(name.clone());
        name
    }
}

fn lisa_operator(operator: Operator) -> Result<&'static str, ArchError> {
    Ok(match operator {
        Operator::Add => "add",
        Operator::Subtract => "sub",
        Operator::Xor => "xor",
        Operator::And => "and",
        Operator::Or => "or",
        Operator::Equal => "eq",
        Operator::NotEqual => "neq",
        Operator::Less | Operator::LessOrEqual => {
            return Err(ArchError { arch: Arch::Lisa, what: "a comparison by size" });
        }
    })
}
