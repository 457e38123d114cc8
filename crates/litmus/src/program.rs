//! The program of a litmus test.
//!
//! The core is the paper's: threads of reads into registers, writes of constants and full fences
//! ([`Instruction::read`], [`Instruction::write`], [`Instruction::fence`]). Existing tests also use
//! read-modify-writes, other fences, values computed from registers, dependencies and forward
//! jumps.
//!
//! A program has no loops: a jump goes forward, so each thread runs each instruction at most once.
//! The address of an access is known without running the program, even if it depends on a register
//! (a false address dependency), so communicating threads are known statically.

use std::collections::BTreeSet;
use std::fmt;

use consistory_history::id_type;

id_type! {
    /// A thread of a program, counted from 0.
    ThreadId
}
id_type! {
    /// A memory location of a program.
    LocationId
}
id_type! {
    /// A register of a thread; each thread has its own registers.
    RegisterId
}

/// A value of a register or location. Arithmetic wraps around.
pub type Value = i64;

/// A program: locations with initial values, threads of instructions, and the observed values.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Program {
    /// The memory, indexed by [`LocationId`].
    pub locations: Vec<Location>,
    /// The threads, indexed by [`ThreadId`].
    pub threads: Vec<Thread>,
    /// The registers and locations that an outcome records, in this order.
    pub observed: Vec<Observable>,
}

/// A memory location.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Location {
    /// Its name.
    pub name: String,
    /// The initial value.
    pub initial: Value,
}

/// A thread: its registers and its instructions.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Thread {
    /// The registers, indexed by [`RegisterId`].
    pub registers: Vec<Register>,
    /// The instructions, in program order.
    pub code: Vec<Instruction>,
}

/// A register.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Register {
    /// Its name, unique in its thread.
    pub name: String,
    /// The initial value.
    pub initial: Value,
}

/// One instruction.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Instruction {
    /// Reads a location into a register.
    Read {
        /// The target register.
        register: RegisterId,
        /// The address that is read.
        address: Address,
    },
    /// Writes a location.
    Write {
        /// The address that is written.
        address: Address,
        /// The value.
        value: Expression,
    },
    /// Orders the accesses before it in program order before those after it.
    Fence(Fence),
    /// Reads a location and writes it in one atomic step.
    ReadModifyWrite {
        /// The target register of the value read, if any.
        register: Option<RegisterId>,
        /// The address that is read and written.
        address: Address,
        /// The value that is written.
        update: Update,
    },
    /// Computes a register from registers.
    Assign {
        /// The target register.
        register: RegisterId,
        /// The value.
        value: Expression,
    },
    /// Continues at a later instruction of the thread.
    Jump {
        /// Condition; the jump is taken if it is not 0.
        condition: Expression,
        /// Index in the thread's code, greater than that of the jump and at most the length of the
        /// code.
        target: usize,
    },
}

/// The address of an access: a location, and registers on which it depends without being changed by
/// them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Address {
    /// The location.
    pub location: LocationId,
    /// The registers that the address depends on, as in `x + (r1 ^ r1)`.
    pub depends: Vec<RegisterId>,
}

/// A kind of fence.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fence {
    /// Orders all accesses: the paper's fence, x86's `MFENCE`.
    Full,
    /// Keeps earlier reads before later reads and writes: x86's `LFENCE`.
    Load,
    /// Keeps earlier writes before later writes: x86's `SFENCE`.
    Store,
    /// A fence with a tag; the built-in models treat it as a full fence.
    Tagged(String),
}

/// The update of a read-modify-write.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Update {
    /// Writes this value.
    Exchange(Expression),
    /// Writes the sum of the value read and this one.
    Add(Expression),
    /// Writes `new` if the value read is `expected`; otherwise it is only a read.
    ///
    /// In both cases it orders accesses like any read-modify-write.
    CompareExchange {
        /// The value that must be read for the write to happen.
        expected: Expression,
        /// Value that is written in this case.
        new: Expression,
    },
}

/// A value computed from constants and registers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expression {
    /// A constant.
    Constant(Value),
    /// The value of a register.
    Register(RegisterId),
    /// An operator applied to two values.
    Binary(Operator, Box<Expression>, Box<Expression>),
}

/// An operator on values. A comparison gives 1 if it holds and 0 if not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operator {
    /// The sum.
    Add,
    /// The difference.
    Subtract,
    /// Bitwise exclusive or.
    Xor,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Whether both are equal.
    Equal,
    /// Whether they differ.
    NotEqual,
    /// Whether the left is less, as signed numbers.
    Less,
    /// Whether the left is less or equal, as signed numbers.
    LessOrEqual,
}

/// A value that an outcome records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Observable {
    /// The value of a register at the end of its thread.
    Register(ThreadId, RegisterId),
    /// The final value of a location.
    Location(LocationId),
}

/// An outcome of a program: the observed values, in the order of [`Program::observed`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Outcome(pub Box<[Value]>);

/// All outcomes of a program under a model.
pub type Outcomes = BTreeSet<Outcome>;

impl Instruction {
    /// Builds a read of a location into a register.
    pub fn read(register: RegisterId, location: LocationId) -> Self {
        Instruction::Read { register, address: location.into() }
    }

    /// Builds a write of a constant.
    pub fn write(location: LocationId, value: Value) -> Self {
        Instruction::Write { address: location.into(), value: Expression::Constant(value) }
    }

    /// Builds a full fence.
    pub fn fence() -> Self {
        Instruction::Fence(Fence::Full)
    }

    /// Returns the location that the instruction accesses, if it accesses one.
    pub fn location(&self) -> Option<LocationId> {
        match self {
            Instruction::Read { address, .. }
            | Instruction::Write { address, .. }
            | Instruction::ReadModifyWrite { address, .. } => Some(address.location),
            Instruction::Fence(_) | Instruction::Assign { .. } | Instruction::Jump { .. } => None,
        }
    }

    /// Checks whether the instruction belongs to the paper's core: a read, a write of a constant or
    /// a full fence, without dependencies.
    pub fn is_core(&self) -> bool {
        match self {
            Instruction::Read { address, .. } => address.depends.is_empty(),
            Instruction::Write { address, value: Expression::Constant(_) } => {
                address.depends.is_empty()
            }
            Instruction::Fence(Fence::Full) => true,
            _ => false,
        }
    }
}

impl From<LocationId> for Address {
    fn from(location: LocationId) -> Self {
        Address { location, depends: Vec::new() }
    }
}

impl Update {
    /// Returns the value written after `old` was read; `None` if nothing is written.
    pub fn apply(&self, old: Value, registers: &[Value]) -> Option<Value> {
        match self {
            Update::Exchange(value) => Some(value.evaluate(registers)),
            Update::Add(value) => Some(old.wrapping_add(value.evaluate(registers))),
            Update::CompareExchange { expected, new } => {
                (old == expected.evaluate(registers)).then(|| new.evaluate(registers))
            }
        }
    }

    /// Returns the registers on which the written value depends, apart from the value read.
    pub fn registers(&self) -> BTreeSet<RegisterId> {
        match self {
            Update::Exchange(value) | Update::Add(value) => value.registers(),
            Update::CompareExchange { expected, new } => &expected.registers() | &new.registers(),
        }
    }
}

impl Expression {
    /// Computes the value, given the values of the thread's registers.
    pub fn evaluate(&self, registers: &[Value]) -> Value {
        match self {
            Expression::Constant(value) => *value,
            Expression::Register(register) => registers[register.index()],
            Expression::Binary(operator, left, right) => {
                operator.apply(left.evaluate(registers), right.evaluate(registers))
            }
        }
    }

    /// Returns the registers that occur in the expression.
    pub fn registers(&self) -> BTreeSet<RegisterId> {
        match self {
            Expression::Constant(_) => BTreeSet::new(),
            Expression::Register(register) => BTreeSet::from([*register]),
            Expression::Binary(_, left, right) => &left.registers() | &right.registers(),
        }
    }
}

impl Operator {
    /// Applies the operator to two values.
    pub fn apply(self, left: Value, right: Value) -> Value {
        match self {
            Operator::Add => left.wrapping_add(right),
            Operator::Subtract => left.wrapping_sub(right),
            Operator::Xor => left ^ right,
            Operator::And => left & right,
            Operator::Or => left | right,
            Operator::Equal => Value::from(left == right),
            Operator::NotEqual => Value::from(left != right),
            Operator::Less => Value::from(left < right),
            Operator::LessOrEqual => Value::from(left <= right),
        }
    }
}

impl Program {
    /// Returns whether the program is of the paper's core: reads, writes of constants, full fences.
    pub fn is_core(&self) -> bool {
        self.threads.iter().all(|thread| thread.code.iter().all(Instruction::is_core))
    }

    /// Counts the reads, writes and read-modify-writes; fences do not count.
    pub fn accesses(&self) -> usize {
        let code = self.threads.iter().flat_map(|thread| &thread.code);
        code.filter(|instruction| instruction.location().is_some()).count()
    }

    /// Returns every register that some instruction reads memory into, in order of the threads.
    ///
    /// These are the observed values unless a test specifies others.
    pub fn read_registers(&self) -> Vec<Observable> {
        let mut all = Vec::new();
        for (index, thread) in self.threads.iter().enumerate() {
            for instruction in &thread.code {
                let register = match instruction {
                    Instruction::Read { register, .. } => Some(*register),
                    Instruction::ReadModifyWrite { register, .. } => *register,
                    _ => None,
                };
                if let Some(register) = register {
                    let observable = Observable::Register(ThreadId::new(index), register);
                    if !all.contains(&observable) {
                        all.push(observable);
                    }
                }
            }
        }
        all
    }

    /// Checks whether outcomes record final values of locations.
    pub fn observes_memory(&self) -> bool {
        self.observed.iter().any(|observable| matches!(observable, Observable::Location(_)))
    }

    /// Builds the outcome of a run from the final values of registers and memory.
    ///
    /// `registers` is indexed by thread and register, `memory` by location.
    pub fn outcome<R: AsRef<[Value]>>(&self, registers: &[R], memory: &[Value]) -> Outcome {
        let value = |observable: &Observable| match *observable {
            Observable::Register(thread, register) => {
                registers[thread.index()].as_ref()[register.index()]
            }
            Observable::Location(location) => memory[location.index()],
        };
        Outcome(self.observed.iter().map(value).collect())
    }

    /// Returns the names of the observed values, in order: a register has its own name if only one
    /// observed register has this name, and `thread:name` otherwise.
    pub fn observed_names(&self) -> Vec<String> {
        self.names(false)
    }

    /// Returns the names of the observed values in herd's form: `0:EAX` for each register.
    pub fn herd_names(&self) -> Vec<String> {
        self.names(true)
    }

    fn names(&self, always_qualified: bool) -> Vec<String> {
        let plain = |observable: &Observable| match *observable {
            Observable::Register(thread, register) => {
                self.threads[thread.index()].registers[register.index()].name.as_str()
            }
            Observable::Location(location) => self.locations[location.index()].name.as_str(),
        };
        let all: Vec<&str> = self.observed.iter().map(plain).collect();
        let name = |(observable, name): (&Observable, &&str)| match observable {
            Observable::Register(thread, _)
                if always_qualified || all.iter().filter(|n| n == &name).count() > 1 =>
            {
                format!("{}:{name}", thread.0)
            }
            _ => (*name).to_owned(),
        };
        self.observed.iter().zip(&all).map(name).collect()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, value) in self.0.iter().enumerate() {
            write!(f, "{}{value}", if index == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}
