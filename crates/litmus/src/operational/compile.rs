//! A program on a machine, as tables: its operations, and the layout of a state.

use crate::operational::component::{PastSet, Queue, Small, Values};
use crate::operational::machine::{Machine, Shape};
use crate::operational::{MachineError, Unsupported};
use crate::program::{
    Expression, Fence, Instruction, Observable, Program, RegisterId, Thread, Update,
};

/// Largest number of operations of a program: an operation is a byte in a queue, and 0 means none.
const OPERATIONS: usize = 254;

/// Largest number of locations and of threads: sets of them are words.
const LOCATIONS: usize = 64;

/// Largest number of values in a set of past values.
const PAST_VALUES: usize = 64;

/// A program on a machine.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) shape: Shape,
    pub(super) threads: usize,
    pub(super) locations: usize,
    /// The operations of all threads, one after the other.
    pub(super) operations: Vec<Operation>,
    /// Index of each thread's first operation, followed by the number of operations.
    pub(super) starts: Vec<usize>,
    /// For each operation, the accesses that its thread may still make from there on; one
    /// additional entry per thread.
    pub(super) ahead: Vec<Ahead>,
    /// Size of a state in bytes.
    pub(super) size: usize,
    /// Queues of the writing threads: one per thread, or one per thread and location.
    pub(super) local: Vec<Queue>,
    /// Queues to the views: one per view and location; those of capacity 0 are always empty.
    pub(super) views: Vec<Queue>,
    /// Offset of the memory: one byte per location, or per view and location.
    pub(super) memory: usize,
    /// Past values: one set per thread and location.
    pub(super) past: Vec<PastSet>,
    /// The origin of each value that an outcome records.
    pub(super) observed: Vec<Source>,
    /// Whether outcomes include the final contents of memory.
    pub(super) observes_memory: bool,
    /// The slots of each thread's registers, for expressions.
    pub(super) slots: Vec<Vec<usize>>,
    pub(super) initial: Vec<u8>,
    pub(super) values: Values,
    /// Number of values known before the first step.
    pub(super) constants: usize,
}

/// An operation of a thread.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    pub(super) thread: usize,
    pub(super) index: usize,
    pub(super) location: usize,
    /// Offset in the state of the value read or computed, if it is used.
    pub(super) register: Option<usize>,
    /// Registers (as positions in the state) that must have been answered before the operation.
    pub(super) needs: Vec<usize>,
    pub(super) value: Operand,
    /// Number of the thread's store fences before it.
    pub(super) epoch: u8,
    /// Whether the thread has a later operation that a postponed read can let pass.
    pub(super) may_wait: bool,
}

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Read,
    Write,
    FullFence,
    LoadFence,
    Nothing,
    Exchange,
    Add,
    CompareExchange,
    Assign,
    Jump { target: usize },
}

impl Kind {
    pub(super) fn is_atomic(self) -> bool {
        matches!(self, Kind::Exchange | Kind::Add | Kind::CompareExchange)
    }

    /// Checks whether no operation of the thread passes it in either direction.
    pub(super) fn is_full(self) -> bool {
        self == Kind::FullFence || self.is_atomic()
    }
}

/// The value that an operation writes or computes. Registers are numbered by slot.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Operand {
    Constant(Small),
    Computed(Expression),
    Compared { expected: Expression, new: Expression },
}

/// The origin of an observed value at the end.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Source {
    Register(usize),
    Computed(usize, Expression),
    Location(usize),
}

/// The accesses that a thread may still make.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ahead {
    pub(super) reads: u64,
    pub(super) writes: u64,
    /// Locations that it may read before its next fence.
    pub(super) reads_before_fence: u64,
}

impl Tables {
    pub(super) fn new(program: &Program, machine: &Machine) -> Result<Tables, MachineError> {
        let shape = Shape::of(machine)?;
        let count = program.threads.iter().map(|thread| thread.code.len()).sum::<usize>();
        let (threads, locations) = (program.threads.len(), program.locations.len());
        for (what, size, limit) in [
            ("instructions", count, OPERATIONS),
            ("threads", threads, LOCATIONS),
            ("locations", locations, LOCATIONS),
        ] {
            if size > limit {
                return Err(MachineError::TooLarge { what, size, limit });
            }
        }
        let mut tables = Tables {
            shape,
            threads,
            locations,
            operations: Vec::with_capacity(count),
            starts: vec![0],
            ahead: Vec::with_capacity(count + threads),
            size: threads,
            local: Vec::new(),
            views: Vec::new(),
            memory: 0,
            past: Vec::new(),
            observed: Vec::new(),
            observes_memory: program.observes_memory(),
            slots: Vec::with_capacity(threads),
            initial: vec![0; threads],
            values: Values::new(if shape.past { PAST_VALUES } else { usize::MAX }),
            constants: 0,
        };
        for location in &program.locations {
            tables.values.place(location.initial);
        }
        let mut finals = Vec::with_capacity(threads);
        for (index, thread) in program.threads.iter().enumerate() {
            let unsupported = |at: usize, why| {
                MachineError::Unsupported(Box::new(Unsupported {
                    machine: machine.id,
                    thread: index,
                    instruction: at,
                    text: crate::operational::run::instruction_text(
                        program,
                        index,
                        &thread.code[at],
                    ),
                    why,
                }))
            };
            let registers = Registers::of(program, index, thread, shape)
                .map_err(|(at, why)| unsupported(at, why))?;
            finals.push(tables.thread(index, thread, registers, unsupported)?);
        }
        tables.lay_out(program);
        for observable in &program.observed {
            tables.observed.push(match *observable {
                Observable::Location(location) => Source::Location(location.index()),
                Observable::Register(thread, register) => {
                    let thread = thread.index();
                    match &finals[thread][register.index()] {
                        Expression::Register(slot) => {
                            Source::Register(tables.slots[thread][slot.index()])
                        }
                        other => Source::Computed(thread, other.clone()),
                    }
                }
            });
        }
        if tables.values.overflowed() {
            return Err(tables.too_many_values());
        }
        tables.constants = tables.values.len();
        Ok(tables)
    }

    pub(super) fn too_many_values(&self) -> MachineError {
        let limit = self.values.len();
        MachineError::TooLarge { what: "values", size: limit + 1, limit }
    }

    /// Adds the operations of a thread; returns the final value of each of its registers.
    fn thread(
        &mut self,
        index: usize,
        thread: &Thread,
        mut registers: Registers,
        unsupported: impl Fn(usize, &'static str) -> MachineError,
    ) -> Result<Vec<Expression>, MachineError> {
        let start = self.operations.len();
        let mut epoch = 0u8;
        let mut jumps = false;
        // This thread's slots follow the program counters and the slots of earlier threads.
        let base = self.size;
        for (at, instruction) in thread.code.iter().enumerate() {
            let mut operation = Operation {
                kind: Kind::Nothing,
                thread: index,
                index: at,
                location: instruction.location().map_or(0, |location| location.index()),
                register: None,
                needs: Vec::new(),
                value: Operand::Constant(0),
                epoch,
                may_wait: false,
            };
            let mut needs: Vec<RegisterId> = Vec::new();
            let mut defines = None;
            match instruction {
                Instruction::Read { register, address } => {
                    operation.kind = Kind::Read;
                    registers.address(&address.depends, &mut needs);
                    if !needs.is_empty() && self.shape.past {
                        if !self.shape.future {
                            let why = "this machine reorders reads and does not follow addresses \
                                       that depend on them";
                            return Err(unsupported(at, why));
                        }
                        if jumps {
                            let why = "this machine does not follow an address that depends on a \
                                       register after a jump";
                            return Err(unsupported(at, why));
                        }
                    }
                    defines = Some(*register);
                }
                Instruction::Write { address, value } => {
                    operation.kind = Kind::Write;
                    registers.address(&address.depends, &mut needs);
                    operation.value = self.resolved(registers.resolve(value), &mut needs);
                }
                Instruction::Fence(fence) => match fence {
                    Fence::Full | Fence::Tagged(_) => operation.kind = Kind::FullFence,
                    Fence::Load => operation.kind = Kind::LoadFence,
                    Fence::Store => {
                        if jumps && self.shape.local.is_some_and(|local| local.by_address) {
                            let why = "this machine does not support a store fence after a jump";
                            return Err(unsupported(at, why));
                        }
                        epoch += 1;
                    }
                },
                Instruction::ReadModifyWrite { register, address, update } => {
                    registers.address(&address.depends, &mut needs);
                    (operation.kind, operation.value) = match update {
                        Update::Exchange(value) => {
                            (Kind::Exchange, self.resolved(registers.resolve(value), &mut needs))
                        }
                        Update::Add(value) => {
                            (Kind::Add, self.resolved(registers.resolve(value), &mut needs))
                        }
                        Update::CompareExchange { expected, new } => {
                            let expected = registers.resolve(expected);
                            let new = registers.resolve(new);
                            needs.extend(expected.registers());
                            needs.extend(new.registers());
                            (Kind::CompareExchange, Operand::Compared { expected, new })
                        }
                    };
                    defines = *register;
                }
                Instruction::Assign { register, value } => {
                    let value = registers.resolve(value);
                    if registers.renamed {
                        registers.current[register.index()] = value;
                    } else {
                        operation.kind = Kind::Assign;
                        operation.value = self.resolved(value, &mut needs);
                        defines = Some(*register);
                    }
                }
                Instruction::Jump { condition, target } => {
                    jumps = true;
                    let target = (*target).clamp(at + 1, thread.code.len());
                    operation.kind = Kind::Jump { target: start + target };
                    operation.value = self.resolved(registers.resolve(condition), &mut needs);
                }
            }
            // Operations wait for registers only if a read can be postponed.
            if self.shape.future {
                operation.needs = needs.iter().map(|slot| base + slot.index()).collect();
            }
            operation.register =
                defines.and_then(|register| registers.define(register)).map(|slot| base + slot);
            self.operations.push(operation);
        }
        self.starts.push(self.operations.len());
        for initial in &registers.initial {
            let initial = self.values.place(*initial);
            self.initial.push(initial);
        }
        self.slots.push((base..base + registers.initial.len()).collect());
        self.size += registers.initial.len();
        self.look_ahead(start);
        Ok(registers.current)
    }

    fn resolved(&mut self, value: Expression, needs: &mut Vec<RegisterId>) -> Operand {
        needs.extend(value.registers());
        match value {
            Expression::Constant(value) => Operand::Constant(self.values.place(value)),
            value => Operand::Computed(value),
        }
    }

    /// Fills in the accesses ahead of each operation of the thread whose operations start at `start`.
    fn look_ahead(&mut self, start: usize) {
        let mut ahead = Ahead::default();
        let mut worth_waiting = false;
        let mut all = vec![ahead];
        for operation in self.operations[start..].iter_mut().rev() {
            let bit = 1 << operation.location;
            operation.may_wait = worth_waiting;
            if operation.kind.is_full() {
                ahead.reads_before_fence = 0;
                worth_waiting = false;
            }
            if operation.kind == Kind::Read || operation.kind.is_atomic() {
                ahead.reads |= bit;
                ahead.reads_before_fence |= bit;
            }
            if operation.kind == Kind::Write || operation.kind.is_atomic() {
                ahead.writes |= bit;
            }
            // A later read can be answered from the past, unless it has to wait for a register;
            // without a past, postponing a read is the only way to have a later one before it.
            worth_waiting |= match operation.kind {
                Kind::Write => true,
                Kind::Read => !operation.needs.is_empty() || !self.shape.past,
                _ => false,
            };
            all.push(ahead);
        }
        self.ahead.extend(all.into_iter().rev());
    }

    /// Assigns a position to every component.
    fn lay_out(&mut self, program: &Program) {
        let (threads, locations) = (self.threads, self.locations);
        let mut at = self.size;
        let mut writes = vec![0; threads * locations];
        let mut reads = vec![0; threads * locations];
        for operation in &self.operations {
            let cell = operation.thread * locations + operation.location;
            match operation.kind {
                Kind::Write => writes[cell] += 1,
                Kind::Read => reads[cell] += 1,
                kind if kind.is_atomic() => reads[cell] += 1,
                _ => {}
            }
        }
        let mut queue = |capacity: usize| {
            let queue = Queue { at, capacity };
            at += queue.bytes();
            queue
        };
        match self.shape.local {
            Some(local) if local.by_address => {
                for cell in 0..threads * locations {
                    let waiting = if self.shape.future { reads[cell] } else { 0 };
                    self.local.push(queue(writes[cell] + waiting));
                }
            }
            Some(_) => {
                for thread in 0..threads {
                    let all = &writes[thread * locations..(thread + 1) * locations];
                    self.local.push(queue(all.iter().sum()));
                }
            }
            None => {}
        }
        if self.shape.views.is_some() {
            for view in 0..threads {
                for location in 0..locations {
                    let others = (0..threads).filter(|thread| *thread != view);
                    let sent = others.map(|thread| writes[thread * locations + location]).sum();
                    // A location that a view never reads need not reach it, unless a location that
                    // it reads waits for it.
                    let looks = self.views_are_ordered() || reads[view * locations + location] > 0;
                    self.views.push(queue(if looks { sent } else { 0 }));
                }
            }
        }
        self.memory = at;
        let copies = if self.shape.views.is_some() { threads } else { 1 };
        at += copies * locations;
        if self.shape.past {
            let computed =
                self.operations.iter().any(|op| !matches!(op.value, Operand::Constant(_)))
                    || self.operations.iter().any(|op| op.kind == Kind::Add);
            let width = if computed { 8 } else { self.values.len().div_ceil(8).min(8) };
            for _ in 0..threads * locations {
                self.past.push(PastSet { at, width });
                at += width;
            }
        }
        self.size = at;
        self.initial.resize(at, 0);
        for copy in 0..copies {
            for (index, location) in program.locations.iter().enumerate() {
                self.initial[self.memory + copy * locations + index] =
                    self.values.place(location.initial);
            }
        }
        for (cell, past) in self.past.iter().enumerate() {
            let initial = self.values.place(program.locations[cell % locations].initial);
            past.reset(&mut self.initial, initial);
        }
    }
}

/// The representation of a thread's registers.
///
/// If reads are answered at once, a register is a slot. If a read can be postponed, each read has a
/// slot of its own and a computed register is its expression over slots, so that no value is
/// overwritten that a later operation needs.
struct Registers {
    /// The current expression of each register, over slots.
    current: Vec<Expression>,
    /// Initial value of each slot.
    initial: Vec<i64>,
    /// Whether each read has its own slot.
    renamed: bool,
    /// Registers that are used.
    looked_at: Vec<bool>,
}

impl Registers {
    fn of(
        program: &Program,
        index: usize,
        thread: &Thread,
        shape: Shape,
    ) -> Result<Registers, (usize, &'static str)> {
        let looked_at = looked_at(program, index, thread);
        if shape.future {
            let jumps = thread.code.iter().any(|i| matches!(i, Instruction::Jump { .. }));
            if jumps {
                check_single_assignment(thread)?;
            }
            let current = thread.registers.iter().map(|r| Expression::Constant(r.initial));
            let mut registers = Registers {
                current: current.collect(),
                initial: Vec::new(),
                renamed: !jumps,
                looked_at,
            };
            if jumps {
                registers.one_slot_each(thread);
            }
            return Ok(registers);
        }
        let mut registers =
            Registers { current: Vec::new(), initial: Vec::new(), renamed: false, looked_at };
        registers.one_slot_each(thread);
        Ok(registers)
    }

    fn one_slot_each(&mut self, thread: &Thread) {
        self.current.clear();
        for (register, looked_at) in thread.registers.iter().zip(&self.looked_at) {
            if *looked_at {
                self.current.push(Expression::Register(RegisterId::new(self.initial.len())));
                self.initial.push(register.initial);
            } else {
                self.current.push(Expression::Constant(register.initial));
            }
        }
    }

    /// Returns the slot for a value read or computed into the register, if the register is used.
    fn define(&mut self, register: RegisterId) -> Option<usize> {
        if !self.looked_at[register.index()] {
            return None;
        }
        if self.renamed {
            let slot = self.initial.len();
            self.initial.push(0);
            self.current[register.index()] = Expression::Register(RegisterId::new(slot));
            return Some(slot);
        }
        match self.current[register.index()] {
            Expression::Register(slot) => Some(slot.index()),
            _ => None,
        }
    }

    fn resolve(&self, value: &Expression) -> Expression {
        match value {
            Expression::Constant(value) => Expression::Constant(*value),
            Expression::Register(register) => self.current[register.index()].clone(),
            Expression::Binary(operator, left, right) => Expression::Binary(
                *operator,
                Box::new(self.resolve(left)),
                Box::new(self.resolve(right)),
            ),
        }
    }

    fn address(&self, depends: &[RegisterId], needs: &mut Vec<RegisterId>) {
        for register in depends {
            needs.extend(self.current[register.index()].registers());
        }
    }
}

/// Returns for each register whether an outcome or an instruction uses it.
fn looked_at(program: &Program, index: usize, thread: &Thread) -> Vec<bool> {
    let mut looked_at = vec![false; thread.registers.len()];
    for observable in &program.observed {
        if let Observable::Register(of, register) = observable
            && of.index() == index
        {
            looked_at[register.index()] = true;
        }
    }
    for instruction in &thread.code {
        let mut look = |value: &Expression| {
            for register in value.registers() {
                looked_at[register.index()] = true;
            }
        };
        match instruction {
            Instruction::Write { value, .. } | Instruction::Assign { value, .. } => look(value),
            Instruction::Jump { condition, .. } => look(condition),
            Instruction::ReadModifyWrite { update, .. } => {
                for register in update.registers() {
                    look(&Expression::Register(register));
                }
            }
            Instruction::Read { .. } | Instruction::Fence(_) => {}
        }
        if let Instruction::Read { address, .. }
        | Instruction::Write { address, .. }
        | Instruction::ReadModifyWrite { address, .. } = instruction
        {
            for register in &address.depends {
                look(&Expression::Register(*register));
            }
        }
    }
    looked_at
}

/// Rejects a thread with jumps that sets a register twice or computes one, because its registers
/// cannot be renamed before the run.
fn check_single_assignment(thread: &Thread) -> Result<(), (usize, &'static str)> {
    let mut set = vec![false; thread.registers.len()];
    for (at, instruction) in thread.code.iter().enumerate() {
        let register = match instruction {
            Instruction::Read { register, .. } => Some(*register),
            Instruction::ReadModifyWrite { register, .. } => *register,
            Instruction::Assign { .. } => {
                return Err((at, "this machine does not compute registers in a thread with jumps"));
            }
            _ => None,
        };
        if let Some(register) = register
            && std::mem::replace(&mut set[register.index()], true)
        {
            let why = "this machine sets a register only once in a thread with jumps";
            return Err((at, why));
        }
    }
    Ok(())
}
