//! Compiles a test of AArch64 to machine code that has the test's own accesses.
//!
//! Each load, store, exclusive access, atomic instruction and barrier of the test becomes the
//! instruction of that kind, width and order. The computations and branches between them are
//! computed in registers from the same values, so that dependencies are preserved: a choice is a
//! `csel`, flags come from `adds`, `subs` or `ands`, and a branch is a branch.
//!
//! `x0` points to the array of pointers and `x1` to the array of registers, as for programs.
//! Registers of the test that initially hold addresses get the addresses of the run's cells. The
//! first registers of the test are in `x2` to `x7` and `x9` to `x13`; its other registers stay in
//! their array. Expressions are computed in `x14` to `x17` and `x8`. The caller saves all of these
//! registers.
//!
//! No access leaves its cell. An address that is always the same location of the test is used
//! directly. A computed address is first compared with the addresses of all cells, and the thread
//! ends if it equals none of them. This additional branch orders only accesses that the address
//! dependency orders as well: the access itself, and later writes.

use consistory_litmus::operations::{
    Binary, Code, Declared, Expr, Fetch, Op, Register as TestRegister, Tags, Unary, Update,
    UpdateResult, Width,
};
use consistory_litmus::{IsaTest, Language, ThreadId};

/// The number of a machine register.
type Register = u32;

const POINTERS: Register = 0;
const VALUES: Register = 1;
const HOMES: [Register; 11] = [2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13];
/// Registers for expressions. The first four are two pairs of consecutive registers, for `casp`.
const SCRATCH: [Register; 5] = [14, 15, 16, 17, 8];
const ZERO: Register = 31;

/// Extensions of the instruction set that a thread's code needs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Needs {
    /// Atomic instructions (LSE).
    pub atomics: bool,
    /// Load-acquire instructions with the weaker order (`LDAPR`, RCPC).
    pub weak_acquire: bool,
}

/// The machine code of a thread of a test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadCode {
    /// The instructions: a function of the pointers to the test's locations and of the registers.
    pub bytes: Vec<u8>,
    /// The extensions that the processor must have.
    pub needs: Needs,
}

/// Builds the machine code of a thread of a test of AArch64, or returns the reason why it has none.
pub fn assemble_test(test: &IsaTest, thread: ThreadId) -> Result<ThreadCode, String> {
    if test.language != Language::AArch64 {
        return Err(format!("this is a test of {}", test.language.as_str()));
    }
    let code = test.code();
    let Some(of) = code.threads.get(thread.index()) else {
        return Err(format!("the test has no thread {}", thread.0));
    };
    let mut emitter = Emitter {
        code,
        fixed: fixed(&of.instructions, &of.initial),
        words: Vec::new(),
        exits: Vec::new(),
        needs: Needs::default(),
    };
    for (at, &value) in of.initial.iter().enumerate() {
        let register = at as TestRegister;
        let is_home = at < HOMES.len();
        match code.locate(value) {
            Some(_) => {
                emitter.constant(SCRATCH[0], value)?;
                emitter.set(register, SCRATCH[0])?;
            }
            None if is_home => emitter.entry(LOAD, HOMES[at], VALUES, at)?,
            None => {}
        }
    }
    let mut starts = Vec::with_capacity(of.instructions.len() + 1);
    let mut jumps: Vec<(usize, usize)> = Vec::new();
    for (at, ops) in of.instructions.iter().enumerate() {
        starts.push(emitter.words.len());
        emitter.instruction(ops, &mut |place, target| {
            if target <= at {
                return Err("loops are not run: nothing bounds them".to_owned());
            }
            jumps.push((place, target));
            Ok(())
        })?;
    }
    starts.push(emitter.words.len());
    let end = emitter.words.len();
    jumps.extend(emitter.exits.iter().map(|&place| (place, usize::MAX)));
    for (place, target) in jumps {
        let goal = starts.get(target).copied().unwrap_or(end);
        let distance = (goal - place) as u32;
        // An unconditional branch has 26 bits for its distance, `cbnz` has 19.
        emitter.words[place] |= match emitter.words[place] >> 26 {
            0b00_0101 => distance & 0x3ff_ffff,
            _ => (distance & 0x7_ffff) << 5,
        };
    }
    for (at, home) in HOMES.into_iter().enumerate().take(of.registers.len()) {
        emitter.entry(STORE, home, VALUES, at)?;
    }
    // ret
    emitter.emit(0xd65f_03c0);
    let bytes = emitter.words.into_iter().flat_map(u32::to_le_bytes).collect();
    Ok(ThreadCode { bytes, needs: emitter.needs })
}

/// `ldr x, [base, #8 * index]`
const LOAD: u32 = 0xf940_0000;
/// `str x, [base, #8 * index]`
const STORE: u32 = 0xf900_0000;

/// The two bits of an access's width.
fn size(bytes: u8) -> u32 {
    bytes.trailing_zeros() << 30
}

/// Returns the value of each register that never changes.
fn fixed(instructions: &[Vec<Op>], initial: &[i64]) -> Vec<Option<i64>> {
    let mut fixed: Vec<Option<i64>> = initial.iter().map(|&value| Some(value)).collect();
    let mut forget = |register: TestRegister| fixed[usize::from(register)] = None;
    for op in instructions.iter().flatten() {
        match op {
            Op::Set(register, _) => forget(*register),
            Op::Load { into, .. } => forget(*into),
            Op::StoreExclusive { status, .. } => forget(*status),
            Op::Update { into, .. } => into.iter().for_each(|&into| forget(into)),
            Op::CompareAndSwapPair { into, .. } => into.iter().for_each(|&into| forget(into)),
            _ => {}
        }
    }
    fixed
}

struct Emitter<'t> {
    code: &'t Code,
    /// The values of registers that never change.
    fixed: Vec<Option<i64>>,
    words: Vec<u32>,
    /// Positions of the branches to the end of the thread.
    exits: Vec<usize>,
    needs: Needs,
}

impl Emitter<'_> {
    fn emit(&mut self, word: u32) {
        self.words.push(word);
    }

    fn entry(
        &mut self,
        operation: u32,
        register: Register,
        base: Register,
        index: usize,
    ) -> Result<(), String> {
        if index >= 1 << 12 {
            return Err("there are too many registers or locations".to_owned());
        }
        self.emit(operation | (index as u32) << 10 | base << 5 | register);
        Ok(())
    }

    /// Emits an instruction `to, left, right` on machine registers.
    fn three(&mut self, operation: u32, to: Register, left: Register, right: Register) {
        self.emit(operation | right << 16 | left << 5 | to);
    }

    fn copy(&mut self, to: Register, from: Register) {
        self.three(0xaa00_0000, to, ZERO, from);
    }

    /// Puts a number, or the address of this run's cell of a location, into a register.
    fn constant(&mut self, to: Register, value: i64) -> Result<(), String> {
        if let Some((location, offset)) = self.code.locate(value) {
            let Declared { name, is_array, .. } = &self.code.locations[location];
            if *is_array || offset != 0 {
                return Err(format!("the array `{name}` is not run"));
            }
            return self.entry(LOAD, to, POINTERS, location);
        }
        // movz, then movk for each further part that is not 0.
        let part = |at: u32| (value as u64 >> (16 * at)) as u32 & 0xffff;
        self.emit(0xd280_0000 | part(0) << 5 | to);
        for at in 1..4 {
            if part(at) != 0 {
                self.emit(0xf280_0000 | at << 21 | part(at) << 5 | to);
            }
        }
        Ok(())
    }

    fn get(&mut self, to: Register, from: TestRegister) -> Result<(), String> {
        match HOMES.get(usize::from(from)) {
            Some(&home) => {
                self.copy(to, home);
                Ok(())
            }
            None => self.entry(LOAD, to, VALUES, usize::from(from)),
        }
    }

    fn set(&mut self, to: TestRegister, from: Register) -> Result<(), String> {
        match HOMES.get(usize::from(to)) {
            Some(&home) => {
                self.copy(home, from);
                Ok(())
            }
            None => self.entry(STORE, from, VALUES, usize::from(to)),
        }
    }

    /// Sets a register to 1 if the flags satisfy a condition, else to 0.
    fn condition(&mut self, to: Register, condition: u32) {
        // csinc to, xzr, xzr with the opposite condition
        self.emit(0x9a9f_07e0 | (condition ^ 1) << 12 | to);
    }

    /// Computes an expression into `SCRATCH[at]`, and may use the scratch registers after it.
    fn evaluate(&mut self, at: usize, expression: &Expr) -> Result<(), String> {
        let Some(&to) = SCRATCH.get(at) else {
            return Err("an expression is nested too deeply".to_owned());
        };
        match expression {
            Expr::Const(value) => self.constant(to, *value)?,
            Expr::Register(register) => self.get(to, *register)?,
            Expr::Extend { bytes, signed, of } => {
                self.evaluate(at, of)?;
                let operation = match (bytes, signed) {
                    // uxtb, uxth, mov of the low half, sxtb, sxth, sxtw
                    (1, false) => 0x5300_1c00,
                    (2, false) => 0x5300_3c00,
                    (4, false) => {
                        self.three(0x2a00_0000, to, ZERO, to);
                        return Ok(());
                    }
                    (1, true) => 0x9340_1c00,
                    (2, true) => 0x9340_3c00,
                    (4, true) => 0x9340_7c00,
                    _ => return Ok(()),
                };
                self.emit(operation | to << 5 | to);
            }
            Expr::Unary(operator, of) => {
                self.evaluate(at, of)?;
                self.unary(*operator, to)?;
            }
            Expr::Binary(operator, left, right) => {
                self.evaluate(at, left)?;
                self.evaluate(at + 1, right)?;
                self.binary(*operator, to, SCRATCH[at + 1])?;
            }
            Expr::Select(condition, then, other) => {
                self.evaluate(at, condition)?;
                self.evaluate(at + 1, then)?;
                self.evaluate(at + 2, other)?;
                // cmp to, #0; csel to, then, other, ne
                self.emit(0xf100_001f | to << 5);
                self.three(0x9a80_1000, to, SCRATCH[at + 1], SCRATCH[at + 2]);
            }
            Expr::Condition(condition, flags) => {
                self.evaluate(at, flags)?;
                // lsl to, to, #28; msr nzcv, to
                self.emit(0xd364_8c00 | to << 5 | to);
                self.emit(0xd51b_4200 | to);
                self.condition(to, u32::from(*condition));
            }
        }
        Ok(())
    }

    /// Computes the address of an access of `bytes` bytes into the first scratch register.
    fn address(&mut self, address: &Expr, bytes: u8) -> Result<(), String> {
        if bytes > 8 {
            return Err("accesses to more than eight bytes are not run".to_owned());
        }
        let known = match address {
            Expr::Const(value) => Some(*value),
            Expr::Register(register) => self.fixed[usize::from(*register)],
            _ => None,
        };
        self.evaluate(0, address)?;
        if let Some(value) = known {
            return match self.code.locate(value) {
                Some((_, 0)) => Ok(()),
                _ => Err("an address is not a location of the test".to_owned()),
            };
        }
        let [address, cell, ..] = SCRATCH;
        let mut found = Vec::new();
        for location in 0..self.code.locations.len() {
            self.entry(LOAD, cell, POINTERS, location)?;
            self.three(0xeb00_0000, ZERO, address, cell);
            found.push(self.words.len());
            // b.eq
            self.emit(0x5400_0000);
        }
        self.exits.push(self.words.len());
        self.emit(0x1400_0000);
        for place in found {
            let distance = (self.words.len() - place) as u32;
            self.words[place] |= distance << 5;
        }
        Ok(())
    }

    fn unary(&mut self, operator: Unary, to: Register) -> Result<(), String> {
        match operator {
            // mvn, neg
            Unary::Not => self.three(0xaa20_0000, to, ZERO, to),
            Unary::Negate => self.three(0xcb00_0000, to, ZERO, to),
            Unary::IsZero => {
                self.emit(0xf100_001f | to << 5);
                self.condition(to, 0);
            }
            Unary::ReverseBits(4) => self.emit(0x5ac0_0000 | to << 5 | to),
            Unary::ReverseBits(_) => self.emit(0xdac0_0000 | to << 5 | to),
            Unary::ReverseBytes(group, bytes) => {
                let operation = match (group, bytes) {
                    (2, 4) => 0x5ac0_0400,
                    (2, 8) => 0xdac0_0400,
                    (4, 4) => 0x5ac0_0800,
                    (4, 8) => 0xdac0_0800,
                    (8, 8) => 0xdac0_0c00,
                    _ => return Err("a reversal of bytes is not run".to_owned()),
                };
                self.emit(operation | to << 5 | to);
            }
        }
        Ok(())
    }

    /// Computes `to = to op right`.
    fn binary(&mut self, operator: Binary, to: Register, right: Register) -> Result<(), String> {
        let operation = match operator {
            Binary::Add => 0x8b00_0000,
            Binary::Sub => 0xcb00_0000,
            Binary::And => 0x8a00_0000,
            Binary::Or => 0xaa00_0000,
            Binary::Xor => 0xca00_0000,
            Binary::Mul => 0x9b00_7c00,
            Binary::ShiftLeft => 0x9ac0_2000,
            Binary::ShiftRight => 0x9ac0_2400,
            Binary::ShiftRightSigned => 0x9ac0_2800,
            Binary::Div | Binary::Rem => return Err("divisions are not run".to_owned()),
            Binary::FlagsAdd(bytes) | Binary::FlagsSub(bytes) | Binary::FlagsAnd(bytes) => {
                let operation = match operator {
                    Binary::FlagsAdd(_) => 0x2b00_0000,
                    Binary::FlagsSub(_) => 0x6b00_0000,
                    _ => 0x6a00_0000,
                };
                let wide = if bytes == 8 { 1 << 31 } else { 0 };
                self.three(operation | wide, ZERO, to, right);
                // mrs to, nzcv; lsr to, to, #28
                self.emit(0xd53b_4200 | to);
                self.emit(0xd35c_fc00 | to << 5 | to);
                return Ok(());
            }
            Binary::Equal
            | Binary::NotEqual
            | Binary::Less
            | Binary::LessEqual
            | Binary::LessUnsigned
            | Binary::LessEqualUnsigned => {
                self.three(0xeb00_0000, ZERO, to, right);
                self.condition(
                    to,
                    match operator {
                        Binary::Equal => 0,
                        Binary::NotEqual => 1,
                        Binary::Less => 11,
                        Binary::LessEqual => 13,
                        Binary::LessUnsigned => 3,
                        _ => 9,
                    },
                );
                return Ok(());
            }
        };
        self.three(operation, to, to, right);
        Ok(())
    }

    fn has(&self, tags: Tags, name: &str) -> bool {
        tags & self.code.tag(name) != 0
    }

    /// Emits the operations of one instruction; `jump` is called with the position and target of
    /// each branch.
    fn instruction(
        &mut self,
        ops: &[Op],
        jump: &mut dyn FnMut(usize, usize) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut rest = ops;
        while let Some((op, after)) = rest.split_first() {
            rest = after;
            match (op, after.first()) {
                (Op::Load { .. }, Some(second @ Op::Load { .. })) => {
                    self.load_pair(op, second)?;
                    rest = &after[1..];
                }
                (Op::Store { .. }, Some(second @ Op::Store { .. })) => {
                    self.store_pair(op, second)?;
                    rest = &after[1..];
                }
                _ => self.operation(op, jump)?,
            }
        }
        Ok(())
    }

    fn operation(
        &mut self,
        op: &Op,
        jump: &mut dyn FnMut(usize, usize) -> Result<(), String>,
    ) -> Result<(), String> {
        let [first, second, third, ..] = SCRATCH;
        match op {
            Op::Set(register, value) => {
                self.evaluate(0, value)?;
                self.set(*register, first)?;
            }
            Op::Load { into, address, width, tags, exclusive, ordered: false } => {
                self.address(address, width.bytes)?;
                let acquire = self.has(*tags, "A");
                let operation = match (exclusive, acquire, self.has(*tags, "Q")) {
                    (true, false, false) => 0x085f_7c00,
                    (true, true, false) => 0x085f_fc00,
                    (false, true, false) => 0x08df_fc00,
                    (false, false, true) => {
                        self.needs.weak_acquire = true;
                        0x38bf_c000
                    }
                    (false, false, false) => match (width.signed, width.register) {
                        (false, _) => 0x3940_0000,
                        (true, 8) => 0x3980_0000,
                        (true, _) => 0x39c0_0000,
                    },
                    _ => return Err("a load is not run".to_owned()),
                };
                let is_plain = operation & 0x3900_0000 == 0x3900_0000;
                if width.signed && !is_plain {
                    return Err("signed loads that acquire are not run".to_owned());
                }
                self.emit(operation | size(width.bytes) | first << 5 | second);
                self.set(*into, second)?;
            }
            Op::Store { address, value, bytes, tags } => {
                self.address(address, *bytes)?;
                self.evaluate(1, value)?;
                let operation = if self.has(*tags, "L") { 0x089f_fc00 } else { 0x3900_0000 };
                self.emit(operation | size(*bytes) | first << 5 | second);
            }
            Op::StoreExclusive {
                address, values, bytes, tags, status, success, failure, ..
            } => {
                if (*success, *failure) != (0, 1) {
                    return Err("an exclusive store is not run".to_owned());
                }
                self.address(address, *bytes * values.len() as u8)?;
                self.evaluate(1, &values[0])?;
                let release = u32::from(self.has(*tags, "L")) << 15;
                let word = match &values[1..] {
                    [] => 0x0800_7c00 | size(*bytes) | second,
                    [other] => {
                        self.evaluate(2, other)?;
                        0x0820_0000 | size(*bytes) | third << 10 | second
                    }
                    _ => return Err("an exclusive store is not run".to_owned()),
                };
                let done = SCRATCH[3];
                self.emit(word | release | done << 16 | first << 5);
                self.set(*status, done)?;
            }
            Op::Update { into, address, update, width, read_tags, write_tags, result, .. } => {
                if *result != UpdateResult::Old {
                    return Err("an atomic update is not run".to_owned());
                }
                let acquire = self.has(*read_tags, "A");
                let release = self.has(*write_tags, "L");
                self.update(*into, address, update, *width, acquire, release)?;
            }
            Op::CompareAndSwapPair { into, new, address, width, read_tags, write_tags } => {
                self.needs.atomics = true;
                let base = SCRATCH[4];
                self.address(address, 2 * width.bytes)?;
                self.copy(base, first);
                self.get(SCRATCH[0], into[0])?;
                self.get(SCRATCH[1], into[1])?;
                // No scratch registers are left for nested expressions in the last two values.
                for (at, value) in new.iter().enumerate() {
                    match value {
                        Expr::Const(value) => self.constant(SCRATCH[2 + at], *value)?,
                        Expr::Register(register) => self.get(SCRATCH[2 + at], *register)?,
                        Expr::Extend { of, .. } => match &**of {
                            Expr::Register(register) => self.get(SCRATCH[2 + at], *register)?,
                            _ => return Err("a pair is not run".to_owned()),
                        },
                        _ => return Err("a pair is not run".to_owned()),
                    }
                }
                let wide = u32::from(width.bytes == 8) << 30;
                let acquire = u32::from(self.has(*read_tags, "A")) << 22;
                let release = u32::from(self.has(*write_tags, "L")) << 15;
                let (old, new) = (SCRATCH[0], SCRATCH[2]);
                self.emit(0x0820_7c00 | wide | acquire | release | old << 16 | base << 5 | new);
                self.set(into[0], SCRATCH[0])?;
                self.set(into[1], SCRATCH[1])?;
            }
            Op::Fence { tags } => {
                let word = self.barrier(*tags)?;
                self.emit(word);
            }
            Op::ClearExclusive => self.emit(0xd503_3f5f),
            Op::Branch { condition, target } => {
                self.evaluate(0, condition)?;
                jump(self.words.len(), *target)?;
                // cbnz
                self.emit(0xb500_0000 | first);
            }
            Op::Jump(target) => {
                jump(self.words.len(), *target)?;
                self.emit(0x1400_0000);
            }
            Op::End => {
                jump(self.words.len(), usize::MAX)?;
                self.emit(0x1400_0000);
            }
            _ => return Err("an instruction is not run".to_owned()),
        }
        Ok(())
    }

    fn update(
        &mut self,
        into: Option<TestRegister>,
        address: &Expr,
        update: &Update,
        width: Width,
        acquire: bool,
        release: bool,
    ) -> Result<(), String> {
        self.needs.atomics = true;
        let [base, operand, old, ..] = SCRATCH;
        self.address(address, width.bytes)?;
        match update {
            Update::CompareAndSwap { expected, new } => {
                self.evaluate(1, new)?;
                self.evaluate(2, expected)?;
                let order = u32::from(acquire) << 22 | u32::from(release) << 15;
                let word = 0x08a0_7c00 | size(width.bytes) | order;
                self.emit(word | old << 16 | base << 5 | operand);
            }
            Update::Swap(value) | Update::Fetch(_, value) => {
                let operation = match update {
                    Update::Fetch(fetch, _) => match fetch {
                        Fetch::Binary(Binary::Add) => 0,
                        Fetch::Clear => 1,
                        Fetch::Binary(Binary::Xor) => 2,
                        Fetch::Binary(Binary::Or) => 3,
                        Fetch::MaxSigned => 4,
                        Fetch::MinSigned => 5,
                        Fetch::MaxUnsigned => 6,
                        Fetch::MinUnsigned => 7,
                        Fetch::Binary(_) => return Err("an atomic update is not run".to_owned()),
                    },
                    _ => 8,
                };
                self.evaluate(1, value)?;
                let order = u32::from(acquire) << 23 | u32::from(release) << 22;
                let word = 0x3820_0000 | size(width.bytes) | order | operation << 12;
                // Without a result, the target is the zero register, and such an instruction does
                // not acquire.
                let result = if into.is_some() { old } else { ZERO };
                self.emit(word | operand << 16 | base << 5 | result);
            }
            Update::AddUnless { .. } => return Err("an atomic update is not run".to_owned()),
        }
        if let Some(into) = into {
            self.set(into, old)?;
        }
        Ok(())
    }

    /// Emits two loads of one instruction: `ldp`, `ldxp` or `ldaxp`.
    fn load_pair(&mut self, one: &Op, two: &Op) -> Result<(), String> {
        let (
            Op::Load { into, address, width, tags, exclusive, .. },
            Op::Load { into: other, ordered, .. },
        ) = (one, two)
        else {
            return Err("a pair is not run".to_owned());
        };
        if *ordered || self.has(*tags, "Q") || self.has(*tags, "A") && !exclusive {
            return Err("pairs that acquire are not run".to_owned());
        }
        self.address(address, 2 * width.bytes)?;
        let [base, first, second, ..] = SCRATCH;
        let wide = u32::from(width.bytes == 8);
        let word = if *exclusive {
            let acquire = u32::from(self.has(*tags, "A")) << 15;
            0x887f_0000 | wide << 30 | acquire
        } else if width.signed {
            // ldpsw
            0x6940_0000
        } else {
            0x2940_0000 | wide << 31
        };
        self.emit(word | second << 10 | base << 5 | first);
        self.set(*into, first)?;
        self.set(*other, second)
    }

    /// Emits two stores of one instruction: `stp`.
    fn store_pair(&mut self, one: &Op, two: &Op) -> Result<(), String> {
        let (Op::Store { address, value, bytes, tags }, Op::Store { value: other, .. }) =
            (one, two)
        else {
            return Err("a pair is not run".to_owned());
        };
        if self.has(*tags, "L") {
            return Err("pairs that release are not run".to_owned());
        }
        self.address(address, 2 * *bytes)?;
        self.evaluate(1, value)?;
        self.evaluate(2, other)?;
        let [base, first, second, ..] = SCRATCH;
        let wide = u32::from(*bytes == 8) << 31;
        self.emit(0x2900_0000 | wide | second << 10 | base << 5 | first);
        Ok(())
    }

    fn barrier(&self, tags: Tags) -> Result<u32, String> {
        if self.has(tags, "ISB") {
            return Ok(0xd503_3fdf);
        }
        const DOMAINS: [(&str, u32); 4] = [("SY", 12), ("ISH", 8), ("NSH", 4), ("OSH", 0)];
        const KINDS: [(&str, u32); 3] = [("LD", 1), ("ST", 2), ("", 3)];
        for (name, word) in [("DMB", 0xd503_30bf), ("DSB", 0xd503_309f)] {
            for (domain, high) in DOMAINS {
                for (kind, low) in KINDS {
                    let tag = match (domain, kind) {
                        ("SY", "") => format!("{name}.SY"),
                        ("SY", kind) => format!("{name}.{kind}"),
                        (domain, kind) => format!("{name}.{domain}{kind}"),
                    };
                    if self.has(tags, &tag) {
                        return Ok(word | (high | low) << 8);
                    }
                }
            }
        }
        Err("a barrier is not run".to_owned())
    }
}
