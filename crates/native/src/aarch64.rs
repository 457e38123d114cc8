//! An assembler for AArch64, with the procedure call standard of Linux.
//!
//! `x0` points to the array of pointers and `x1` to the array of registers. The accumulator is
//! `x16` and the index `x17`; `x8`, `x15` and `x14` hold operands. Pointers are in `x2` to `x7`,
//! and the first five registers of the test in `x9` to `x13`; its other registers stay in their
//! array. The caller saves all of these registers, so the code saves none.
//!
//! A read-modify-write is a loop of exclusive accesses between two full barriers. So it is ordered
//! with all other accesses, as in the models.

use consistory_litmus::{Fence, Operator};

use crate::lower::{MemoryOperand, Target};

/// The number of a machine register.
type Register = u32;

const ACCUMULATOR: Register = 16;
const INDEX: Register = 17;
const OPERAND: Register = 8;
const OLD: Register = 15;
const STATUS: Register = 14;
const ZERO: Register = 31;
const STACK: Register = 31;
const POINTERS: [Register; 6] = [2, 3, 4, 5, 6, 7];
const HOMES: [Register; 5] = [9, 10, 11, 12, 13];

/// Machine code for AArch64, under construction.
pub(crate) struct Aarch64 {
    words: Vec<u32>,
}

impl Aarch64 {
    pub(crate) fn new() -> Self {
        Aarch64 { words: Vec::new() }
    }

    fn emit(&mut self, word: u32) {
        self.words.push(word);
    }

    /// `ldr to, [base, #8 * index]`
    fn load_entry(&mut self, to: Register, base: Register, index: usize) {
        self.emit(0xf940_0000 | (index as u32) << 10 | base << 5 | to);
    }

    /// `str from, [base, #8 * index]`
    fn store_entry(&mut self, from: Register, base: Register, index: usize) {
        self.emit(0xf900_0000 | (index as u32) << 10 | base << 5 | from);
    }

    /// `mov to, from`
    fn copy(&mut self, to: Register, from: Register) {
        self.three(0xaa00_0000, to, ZERO, from);
    }

    /// Emits an instruction `to, left, right` on machine registers.
    fn three(&mut self, operation: u32, to: Register, left: Register, right: Register) {
        self.emit(operation | right << 16 | left << 5 | to);
    }

    /// `ldr to, [pointer]` or `ldr to, [pointer, index]`
    fn load(&mut self, to: Register, operand: MemoryOperand) {
        match operand {
            MemoryOperand::Indexed(at) => self.three(0xf860_6800, to, POINTERS[at], INDEX),
            MemoryOperand::Plain(at) => self.load_entry(to, POINTERS[at], 0),
        }
    }

    /// `str from, [pointer]` or `str from, [pointer, index]`
    fn store(&mut self, from: Register, operand: MemoryOperand) {
        match operand {
            MemoryOperand::Indexed(at) => self.three(0xf820_6800, from, POINTERS[at], INDEX),
            MemoryOperand::Plain(at) => self.store_entry(from, POINTERS[at], 0),
        }
    }

    /// `ldr accumulator, [sp], #16`
    fn pop(&mut self, to: Register) {
        self.emit(0xf841_0400 | STACK << 5 | to);
    }

    /// Computes the address of an access into the index register, since exclusive accesses take no
    /// index.
    fn address(&mut self, operand: MemoryOperand) {
        match operand {
            MemoryOperand::Indexed(at) => self.three(0x8b00_0000, INDEX, POINTERS[at], INDEX),
            MemoryOperand::Plain(at) => self.copy(INDEX, POINTERS[at]),
        }
    }

    /// Emits a read-modify-write. `update` must leave the value to write in `x8`, given the value
    /// read in `x15`. It may branch out of the loop, over the store and its test.
    fn atomically(&mut self, operand: MemoryOperand, update: impl FnOnce(&mut Self)) {
        self.address(operand);
        self.fence(&Fence::Full);
        let again = self.words.len();
        // ldxr x15, [x17]
        self.emit(0xc85f_7c00 | INDEX << 5 | OLD);
        update(self);
        // stxr w14, x8, [x17]
        self.emit(0xc800_7c00 | STATUS << 16 | INDEX << 5 | OPERAND);
        // cbnz w14, again
        let back = again as i32 - self.words.len() as i32;
        self.emit(0x3500_0000 | (back as u32 & 0x7_ffff) << 5 | STATUS);
        self.fence(&Fence::Full);
        self.copy(ACCUMULATOR, OLD);
    }
}

impl Target for Aarch64 {
    const POINTERS: usize = POINTERS.len();

    fn enter(&mut self, pointers: usize, registers: usize) {
        for (index, register) in POINTERS.into_iter().take(pointers).enumerate() {
            self.load_entry(register, 0, index);
        }
        for (index, register) in HOMES.into_iter().take(registers).enumerate() {
            self.load_entry(register, 1, index);
        }
    }

    fn leave(&mut self, registers: usize) {
        for (index, register) in HOMES.into_iter().take(registers).enumerate() {
            self.store_entry(register, 1, index);
        }
        // ret
        self.emit(0xd65f_03c0);
    }

    fn constant(&mut self, value: i64) {
        // movz, then movk for each other part that is not 0.
        let part = |at: u32| (value as u64 >> (16 * at)) as u32 & 0xffff;
        self.emit(0xd280_0000 | part(0) << 5 | ACCUMULATOR);
        for at in 1..4 {
            if part(at) != 0 {
                self.emit(0xf280_0000 | at << 21 | part(at) << 5 | ACCUMULATOR);
            }
        }
    }

    fn get(&mut self, register: usize) {
        match HOMES.get(register) {
            Some(home) => self.copy(ACCUMULATOR, *home),
            None => self.load_entry(ACCUMULATOR, 1, register),
        }
    }

    fn set(&mut self, register: usize) {
        match HOMES.get(register) {
            Some(home) => self.copy(*home, ACCUMULATOR),
            None => self.store_entry(ACCUMULATOR, 1, register),
        }
    }

    fn push(&mut self) {
        // str x16, [sp, #-16]!
        self.emit(0xf81f_0c00 | STACK << 5 | ACCUMULATOR);
    }

    fn combine(&mut self, operator: Operator) {
        self.pop(OPERAND);
        let operation = match operator {
            Operator::Add => 0x8b00_0000,
            Operator::Subtract => 0xcb00_0000,
            Operator::Xor => 0xca00_0000,
            Operator::And => 0x8a00_0000,
            Operator::Or => 0xaa00_0000,
            Operator::Equal | Operator::NotEqual | Operator::Less | Operator::LessOrEqual => {
                // cmp x8, x16; cset x16: csinc with the opposite condition
                self.three(0xeb00_0000, ZERO, OPERAND, ACCUMULATOR);
                let opposite = match operator {
                    Operator::Equal => 1,
                    Operator::NotEqual => 0,
                    Operator::Less => 10,
                    _ => 12,
                };
                self.emit(0x9a9f_07e0 | opposite << 12 | ACCUMULATOR);
                return;
            }
        };
        self.three(operation, ACCUMULATOR, OPERAND, ACCUMULATOR);
    }

    fn index(&mut self) {
        // eor x17, x16, x16: AArch64 preserves this dependency.
        self.three(0xca00_0000, INDEX, ACCUMULATOR, ACCUMULATOR);
    }

    fn read(&mut self, operand: MemoryOperand) {
        self.load(ACCUMULATOR, operand);
    }

    fn read_into(&mut self, register: usize, operand: MemoryOperand) {
        match HOMES.get(register) {
            Some(home) => self.load(*home, operand),
            None => {
                self.read(operand);
                self.set(register);
            }
        }
    }

    fn write(&mut self, operand: MemoryOperand) {
        self.store(ACCUMULATOR, operand);
    }

    fn write_constant(&mut self, value: i64, operand: MemoryOperand) {
        if value == 0 {
            self.store(ZERO, operand);
        } else {
            self.constant(value);
            self.write(operand);
        }
    }

    fn expect(&mut self) {
        // The new value goes to x8, the expected one from the stack to x16.
        self.copy(OPERAND, ACCUMULATOR);
        self.pop(ACCUMULATOR);
    }

    fn exchange(&mut self, operand: MemoryOperand) {
        self.copy(OPERAND, ACCUMULATOR);
        self.atomically(operand, |_| {});
    }

    fn add(&mut self, operand: MemoryOperand) {
        self.atomically(operand, |this| {
            this.three(0x8b00_0000, OPERAND, OLD, ACCUMULATOR);
        });
    }

    fn compare_exchange(&mut self, operand: MemoryOperand) {
        self.atomically(operand, |this| {
            // cmp x15, x16; b.ne over the store and its test
            this.three(0xeb00_0000, ZERO, OLD, ACCUMULATOR);
            this.emit(0x5400_0000 | 3 << 5 | 1);
        });
    }

    fn fence(&mut self, fence: &Fence) {
        self.emit(match fence {
            // dmb ish, dmb ishld, dmb ishst
            Fence::Full | Fence::Tagged(_) => 0xd503_3bbf,
            Fence::Load => 0xd503_39bf,
            Fence::Store => 0xd503_3abf,
        });
    }

    fn jump(&mut self) -> usize {
        // cbnz x16; `land` fills in the distance.
        self.emit(0xb500_0000 | ACCUMULATOR);
        self.words.len() - 1
    }

    fn land(&mut self, jump: usize) {
        let distance = (self.words.len() - jump) as u32;
        self.words[jump] |= (distance & 0x7_ffff) << 5;
    }

    fn bytes(self) -> Vec<u8> {
        self.words.into_iter().flat_map(u32::to_le_bytes).collect()
    }
}
