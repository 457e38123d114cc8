//! Compiles the instructions of a thread to machine code.
//!
//! The code of a thread is a function of two arrays: pointers to its locations, and its registers.
//! It loads both before the first instruction and stores the registers after the last one. In
//! between, each access of the test is one access of the processor, through a pointer that is
//! already in a register. All other values are in registers, or on the code's own stack while it
//! computes an expression.

use consistory_litmus::{
    Address, Expression, Fence, Instruction, Operator, Program, RegisterId, Thread, ThreadId,
    Update,
};
use thiserror::Error;

use crate::aarch64::Aarch64;
use crate::x86_64::X86_64;

/// A processor architecture with an assembler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Architecture {
    /// x86-64, of AMD and Intel.
    X86_64,
    /// AArch64, of Arm.
    Aarch64,
}

impl Architecture {
    /// Returns the architecture of the processor that this program runs on.
    pub fn host() -> Option<Architecture> {
        if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
            Some(Architecture::X86_64)
        } else if cfg!(all(target_arch = "aarch64", target_os = "linux")) {
            Some(Architecture::Aarch64)
        } else {
            None
        }
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86-64",
            Architecture::Aarch64 => "AArch64",
        }
    }
}

/// The reason why a thread has no machine code.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AssembleError {
    /// The program has no such thread.
    #[error("the program has no thread {thread}")]
    NoThread {
        /// The requested thread.
        thread: u32,
    },
    /// The thread needs more pointers than there are machine registers for them.
    #[error("thread {thread} accesses {found} locations, more than the limit of {limit}")]
    Locations {
        /// The thread, counted from 0.
        thread: u32,
        /// Number of locations that the thread accesses.
        found: usize,
        /// Largest number of locations.
        limit: usize,
    },
    /// The thread has more registers than can be addressed.
    #[error("thread {thread} has {found} registers, more than the limit of {limit}")]
    Registers {
        /// The thread, counted from 0.
        thread: u32,
        /// Number of registers of the thread.
        found: usize,
        /// Largest number of registers.
        limit: usize,
    },
    /// An expression is nested deeper than the stack that the code may use.
    #[error("thread {thread}, instruction {instruction}: an expression is nested too deeply")]
    Nesting {
        /// The thread, counted from 0.
        thread: u32,
        /// Index of the instruction in the thread's code.
        instruction: usize,
    },
}

/// Largest nesting depth of an expression.
const MAX_NESTING: usize = 64;

/// Largest number of registers of a thread: one instruction can address every entry of their array.
const REGISTERS: usize = 256;

/// Builds the machine code of a thread. Returns it with the locations to which it expects pointers,
/// in order.
pub fn assemble(
    program: &Program,
    thread: ThreadId,
    architecture: Architecture,
) -> Result<(Vec<u8>, Vec<usize>), AssembleError> {
    let Some(code) = program.threads.get(thread.index()) else {
        return Err(AssembleError::NoThread { thread: thread.0 });
    };
    let mut locations: Vec<usize> =
        code.code.iter().filter_map(|i| i.location()).map(|location| location.index()).collect();
    locations.sort_unstable();
    locations.dedup();
    let bytes = match architecture {
        Architecture::X86_64 => lower(code, thread, &locations, X86_64::new())?,
        Architecture::Aarch64 => lower(code, thread, &locations, Aarch64::new())?,
    };
    Ok((bytes, locations))
}

/// The memory that an instruction accesses, by the index of its pointer in the list of locations.
#[derive(Clone, Copy)]
pub(crate) enum MemoryOperand {
    /// The word at the pointer.
    Plain(usize),
    /// The word at the sum of the pointer and the index.
    Indexed(usize),
}

/// The interface of an assembler: a machine with one accumulator.
///
/// Registers of the test are numbered as in the thread, and pointers by their position in the list
/// of the thread's locations. An access may add the index register to its pointer. This register
/// always holds 0, but the 0 is computed from registers, so that the access depends on them.
pub(crate) trait Target {
    /// The largest number of pointers.
    const POINTERS: usize;

    /// Emits code that loads the pointers and the registers.
    fn enter(&mut self, pointers: usize, registers: usize);
    /// Emits code that stores the registers and returns.
    fn leave(&mut self, registers: usize);
    /// Puts a constant into the accumulator.
    fn constant(&mut self, value: i64);
    /// Puts a register into the accumulator.
    fn get(&mut self, register: usize);
    /// Puts the accumulator into a register.
    fn set(&mut self, register: usize);
    /// Puts the accumulator onto the stack.
    fn push(&mut self);
    /// Pops the left operand from the stack and applies the operator to it and the accumulator.
    fn combine(&mut self, operator: Operator);
    /// Computes the index, which is 0, from the accumulator.
    fn index(&mut self);
    /// Reads memory into the accumulator.
    fn read(&mut self, operand: MemoryOperand);
    /// Reads memory into a register.
    fn read_into(&mut self, register: usize, operand: MemoryOperand);
    /// Writes the accumulator to memory.
    fn write(&mut self, operand: MemoryOperand);
    /// Writes a constant to memory.
    fn write_constant(&mut self, value: i64, operand: MemoryOperand);
    /// Makes the accumulator the value that [`Target::compare_exchange`] expects.
    fn expect(&mut self);
    /// Exchanges the accumulator and memory.
    fn exchange(&mut self, operand: MemoryOperand);
    /// Adds the accumulator to memory, and puts the old content of memory into the accumulator.
    fn add(&mut self, operand: MemoryOperand);
    /// Writes the accumulator to memory if memory holds the expected value, and puts the old
    /// content into the accumulator.
    fn compare_exchange(&mut self, operand: MemoryOperand);
    /// Emits a fence.
    fn fence(&mut self, fence: &Fence);
    /// Emits a jump that is taken if the accumulator is not 0. Returns its position, for `land`.
    fn jump(&mut self) -> usize;
    /// Makes the current position the target of the jump at a position.
    fn land(&mut self, jump: usize);
    /// Returns the code.
    fn bytes(self) -> Vec<u8>;
}

fn lower<T: Target>(
    thread: &Thread,
    id: ThreadId,
    locations: &[usize],
    mut target: T,
) -> Result<Vec<u8>, AssembleError> {
    let registers = thread.registers.len();
    if locations.len() > T::POINTERS {
        let (found, limit) = (locations.len(), T::POINTERS);
        return Err(AssembleError::Locations { thread: id.0, found, limit });
    }
    if registers > REGISTERS {
        let (found, limit) = (registers, REGISTERS);
        return Err(AssembleError::Registers { thread: id.0, found, limit });
    }
    let pointer = |address: &Address| {
        let place = locations.binary_search(&address.location.index());
        place.expect("the list has every location that the thread accesses")
    };
    let mut jumps: Vec<(usize, usize)> = Vec::new();
    target.enter(locations.len(), registers);
    for (at, instruction) in thread.code.iter().enumerate() {
        for (_, jump) in jumps.extract_if(.., |(goal, _)| *goal == at) {
            target.land(jump);
        }
        let nesting = || AssembleError::Nesting { thread: id.0, instruction: at };
        let evaluate = |target: &mut T, value: &Expression| {
            evaluate(target, value, MAX_NESTING).then_some(()).ok_or_else(nesting)
        };
        match instruction {
            Instruction::Read { register, address } => {
                let operand = operand(&mut target, pointer(address), &address.depends);
                target.read_into(register.index(), operand);
            }
            Instruction::Write { address, value: Expression::Constant(value) } => {
                let operand = operand(&mut target, pointer(address), &address.depends);
                target.write_constant(*value, operand);
            }
            Instruction::Write { address, value } => {
                let operand = operand(&mut target, pointer(address), &address.depends);
                evaluate(&mut target, value)?;
                target.write(operand);
            }
            Instruction::Fence(fence) => target.fence(fence),
            Instruction::ReadModifyWrite { register, address, update } => {
                let operand = operand(&mut target, pointer(address), &address.depends);
                match update {
                    Update::Exchange(value) => {
                        evaluate(&mut target, value)?;
                        target.exchange(operand);
                    }
                    Update::Add(value) => {
                        evaluate(&mut target, value)?;
                        target.add(operand);
                    }
                    Update::CompareExchange { expected, new } => {
                        evaluate(&mut target, expected)?;
                        target.push();
                        evaluate(&mut target, new)?;
                        target.expect();
                        target.compare_exchange(operand);
                    }
                }
                if let Some(register) = register {
                    target.set(register.index());
                }
            }
            Instruction::Assign { register, value } => {
                evaluate(&mut target, value)?;
                target.set(register.index());
            }
            Instruction::Jump { condition, target: goal } => {
                evaluate(&mut target, condition)?;
                let jump = target.jump();
                jumps.push(((*goal).clamp(at + 1, thread.code.len()), jump));
            }
        }
    }
    for (_, jump) in jumps {
        target.land(jump);
    }
    target.leave(registers);
    Ok(target.bytes())
}

/// Returns the operand of an access. If its address depends on registers, computes an index of 0
/// from them.
fn operand<T: Target>(target: &mut T, pointer: usize, depends: &[RegisterId]) -> MemoryOperand {
    let Some((first, others)) = depends.split_first() else {
        return MemoryOperand::Plain(pointer);
    };
    target.get(first.index());
    for other in others {
        target.push();
        target.get(other.index());
        target.combine(Operator::Or);
    }
    target.index();
    MemoryOperand::Indexed(pointer)
}

/// Computes an expression into the accumulator. Returns `false` if it is nested too deeply.
fn evaluate<T: Target>(target: &mut T, value: &Expression, depth: usize) -> bool {
    if depth == 0 {
        return false;
    }
    match value {
        Expression::Constant(value) => target.constant(*value),
        Expression::Register(register) => target.get(register.index()),
        Expression::Binary(operator, left, right) => {
            if !evaluate(target, left, depth - 1) {
                return false;
            }
            target.push();
            if !evaluate(target, right, depth - 1) {
                return false;
            }
            target.combine(*operator);
        }
    }
    true
}
