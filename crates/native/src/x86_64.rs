//! An assembler for x86-64, with the System V calling convention.
//!
//! `rdi` points to the array of pointers and `rsi` to the array of registers. The accumulator is
//! `rax`, the index `rcx`, and `rdx` holds the second operand. Pointers are in `r8` to `r13`, and
//! the first four registers of the test in `rbx`, `rbp`, `r14` and `r15`; its other registers stay
//! in their array.

use consistory_litmus::{Fence, Operator};

use crate::lower::{MemoryOperand, Target};

/// The number of a machine register.
type Register = u8;

const RAX: Register = 0;
const RCX: Register = 1;
const RDX: Register = 2;
const RSI: Register = 6;
const RDI: Register = 7;
const POINTERS: [Register; 6] = [8, 9, 10, 11, 12, 13];
const HOMES: [Register; 4] = [3, 5, 14, 15];
/// Registers that a function must preserve.
const SAVED: [Register; 6] = [3, 5, 12, 13, 14, 15];

/// Machine code for x86-64, under construction.
pub(crate) struct X86_64 {
    bytes: Vec<u8>,
}

/// A memory operand: a base, optionally `rcx`, and a displacement.
#[derive(Clone, Copy)]
struct Memory {
    base: Register,
    indexed: bool,
    distance: i32,
}

impl X86_64 {
    pub(crate) fn new() -> Self {
        X86_64 { bytes: Vec::new() }
    }

    /// Emits an instruction on a machine register and memory, 64 bits wide.
    fn memory(&mut self, prefix: &[u8], opcode: &[u8], register: Register, memory: Memory) {
        self.bytes.extend_from_slice(prefix);
        self.bytes.push(0x48 | (register >> 3) << 2 | memory.base >> 3);
        self.bytes.extend_from_slice(opcode);
        // A displacement is always encoded, since rbp and r13 cannot be bases without one. It takes
        // one byte if it fits.
        let near = i8::try_from(memory.distance);
        let mode = if near.is_ok() { 0x40 } else { 0x80 };
        let field = (register & 7) << 3;
        if memory.indexed {
            self.bytes.push(mode | field | 4);
            self.bytes.push(RCX << 3 | memory.base & 7);
        } else if memory.base & 7 == 4 {
            // The number of rsp in this field announces another byte, so r12, with the same low
            // bits, needs one.
            self.bytes.push(mode | field | 4);
            self.bytes.push(0x24);
        } else {
            self.bytes.push(mode | field | memory.base & 7);
        }
        match near {
            Ok(near) => self.bytes.push(near as u8),
            Err(_) => self.bytes.extend_from_slice(&memory.distance.to_le_bytes()),
        }
    }

    /// Emits an instruction on two machine registers, 64 bits wide.
    fn registers(&mut self, opcode: &[u8], register: Register, other: Register) {
        self.bytes.push(0x48 | (register >> 3) << 2 | other >> 3);
        self.bytes.extend_from_slice(opcode);
        self.bytes.push(0xc0 | (register & 7) << 3 | other & 7);
    }

    fn load(&mut self, register: Register, memory: Memory) {
        self.memory(&[], &[0x8b], register, memory);
    }

    fn store(&mut self, memory: Memory, register: Register) {
        self.memory(&[], &[0x89], register, memory);
    }

    fn save(&mut self, register: Register) {
        if register >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x50 | register & 7);
    }

    fn restore(&mut self, register: Register) {
        if register >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x58 | register & 7);
    }
}

/// Returns the memory operand of an entry in an array of words.
fn entry(base: Register, index: usize) -> Memory {
    // Arrays have at most a few hundred entries.
    Memory { base, indexed: false, distance: 8 * index as i32 }
}

fn at(operand: MemoryOperand) -> Memory {
    match operand {
        MemoryOperand::Plain(at) => Memory { base: POINTERS[at], indexed: false, distance: 0 },
        MemoryOperand::Indexed(at) => Memory { base: POINTERS[at], indexed: true, distance: 0 },
    }
}

impl Target for X86_64 {
    const POINTERS: usize = POINTERS.len();

    fn enter(&mut self, pointers: usize, registers: usize) {
        for register in SAVED {
            self.save(register);
        }
        for (index, register) in POINTERS.into_iter().take(pointers).enumerate() {
            self.load(register, entry(RDI, index));
        }
        for (index, register) in HOMES.into_iter().take(registers).enumerate() {
            self.load(register, entry(RSI, index));
        }
    }

    fn leave(&mut self, registers: usize) {
        for (index, register) in HOMES.into_iter().take(registers).enumerate() {
            self.store(entry(RSI, index), register);
        }
        for register in SAVED.into_iter().rev() {
            self.restore(register);
        }
        self.bytes.push(0xc3);
    }

    fn constant(&mut self, value: i64) {
        match i32::try_from(value) {
            Ok(value) => {
                self.bytes.extend_from_slice(&[0x48, 0xc7, 0xc0]);
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
            Err(_) => {
                self.bytes.extend_from_slice(&[0x48, 0xb8]);
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
    }

    fn get(&mut self, register: usize) {
        match HOMES.get(register) {
            Some(home) => self.registers(&[0x89], *home, RAX),
            None => self.load(RAX, entry(RSI, register)),
        }
    }

    fn set(&mut self, register: usize) {
        match HOMES.get(register) {
            Some(home) => self.registers(&[0x89], RAX, *home),
            None => self.store(entry(RSI, register), RAX),
        }
    }

    fn push(&mut self) {
        self.save(RAX);
    }

    fn combine(&mut self, operator: Operator) {
        self.registers(&[0x89], RAX, RDX);
        self.restore(RAX);
        let compare = |condition: u8| [0x0f, 0x90 | condition, 0xc0, 0x0f, 0xb6, 0xc0];
        match operator {
            Operator::Add => self.registers(&[0x01], RDX, RAX),
            Operator::Subtract => self.registers(&[0x29], RDX, RAX),
            Operator::Xor => self.registers(&[0x31], RDX, RAX),
            Operator::And => self.registers(&[0x21], RDX, RAX),
            Operator::Or => self.registers(&[0x09], RDX, RAX),
            Operator::Equal | Operator::NotEqual | Operator::Less | Operator::LessOrEqual => {
                self.registers(&[0x39], RDX, RAX);
                let condition = match operator {
                    Operator::Equal => 4,
                    Operator::NotEqual => 5,
                    Operator::Less => 12,
                    _ => 14,
                };
                // setcc al; movzx eax, al
                self.bytes.extend_from_slice(&compare(condition));
            }
        }
    }

    fn index(&mut self) {
        // The processor knows that the exclusive or of a register with itself is 0, without waiting
        // for it.
        self.registers(&[0x89], RAX, RCX);
        self.bytes.extend_from_slice(&[0x48, 0x83, 0xe1, 0x00]);
    }

    fn read(&mut self, operand: MemoryOperand) {
        self.load(RAX, at(operand));
    }

    fn read_into(&mut self, register: usize, operand: MemoryOperand) {
        match HOMES.get(register) {
            Some(home) => self.load(*home, at(operand)),
            None => {
                self.read(operand);
                self.set(register);
            }
        }
    }

    fn write(&mut self, operand: MemoryOperand) {
        self.store(at(operand), RAX);
    }

    fn write_constant(&mut self, value: i64, operand: MemoryOperand) {
        match i32::try_from(value) {
            Ok(value) => {
                self.memory(&[], &[0xc7], 0, at(operand));
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
            Err(_) => {
                self.constant(value);
                self.write(operand);
            }
        }
    }

    fn expect(&mut self) {
        // The new value goes to rdx, the expected one from the stack to rax.
        self.registers(&[0x89], RAX, RDX);
        self.restore(RAX);
    }

    fn exchange(&mut self, operand: MemoryOperand) {
        self.memory(&[], &[0x87], RAX, at(operand));
    }

    fn add(&mut self, operand: MemoryOperand) {
        self.memory(&[0xf0], &[0x0f, 0xc1], RAX, at(operand));
    }

    fn compare_exchange(&mut self, operand: MemoryOperand) {
        self.memory(&[0xf0], &[0x0f, 0xb1], RDX, at(operand));
    }

    fn fence(&mut self, fence: &Fence) {
        self.bytes.extend_from_slice(match fence {
            Fence::Full | Fence::Tagged(_) => &[0x0f, 0xae, 0xf0],
            Fence::Load => &[0x0f, 0xae, 0xe8],
            Fence::Store => &[0x0f, 0xae, 0xf8],
        });
    }

    fn jump(&mut self) -> usize {
        // test rax, rax; jnz; `land` fills in the distance.
        self.registers(&[0x85], RAX, RAX);
        self.bytes.extend_from_slice(&[0x0f, 0x85, 0, 0, 0, 0]);
        self.bytes.len()
    }

    fn land(&mut self, jump: usize) {
        let distance = (self.bytes.len() - jump) as u32;
        self.bytes[jump - 4..jump].copy_from_slice(&distance.to_le_bytes());
    }

    fn bytes(self) -> Vec<u8> {
        self.bytes
    }
}
