//! Random small programs with every kind of instruction.

use consistory_litmus::{
    Address, Expression, Fence, Instruction, Location, LocationId, Observable, Operator, Program,
    Register, RegisterId, Thread, Update,
};

/// A xorshift generator, which suffices for the tests.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Builds a program from a seed: two or three threads of up to four instructions on two locations.
pub(crate) fn program(seed: u64) -> Program {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..4 {
        random.below(2);
    }
    let mut program = Program::default();
    for name in ["x", "y"] {
        program.locations.push(Location { name: name.to_owned(), initial: 0 });
    }
    let threads = 2 + random.below(2);
    for _ in 0..threads {
        let mut thread = Thread::default();
        let length = 1 + random.below(if threads == 2 { 4 } else { 2 }) as usize;
        for at in 0..length {
            let instruction = instruction(&mut random, &mut thread, at, length);
            thread.code.push(instruction);
        }
        program.threads.push(thread);
    }
    program.observed = program.read_registers();
    if random.below(2) == 0 {
        program.observed.extend((0..2).map(|l| Observable::Location(LocationId::new(l))));
    }
    program
}

fn instruction(random: &mut Random, thread: &mut Thread, at: usize, length: usize) -> Instruction {
    let location = LocationId::new(random.below(2) as usize);
    let mut address = Address::from(location);
    let known = thread.registers.len() as u64;
    if known > 0 && random.below(5) == 0 {
        address.depends.push(RegisterId::new(random.below(known) as usize));
    }
    let value = if known > 0 && random.below(4) == 0 {
        let register = Expression::Register(RegisterId::new(random.below(known) as usize));
        match random.below(2) {
            0 => register,
            _ => {
                let one = Box::new(Expression::Constant(1));
                Expression::Binary(Operator::Add, Box::new(register), one)
            }
        }
    } else {
        Expression::Constant(1 + random.below(3) as i64)
    };
    match random.below(16) {
        0..=4 => Instruction::Read { register: fresh(thread), address },
        5..=9 => Instruction::Write { address, value },
        10 => Instruction::fence(),
        11 => Instruction::Fence(if random.below(2) == 0 { Fence::Load } else { Fence::Store }),
        12 | 13 => {
            let update = match random.below(3) {
                0 => Update::Exchange(value),
                1 => Update::Add(value),
                _ => Update::CompareExchange { expected: Expression::Constant(0), new: value },
            };
            Instruction::ReadModifyWrite { register: Some(fresh(thread)), address, update }
        }
        14 if known > 0 => Instruction::Assign { register: fresh(thread), value },
        15 if known > 0 => {
            let register = Expression::Register(RegisterId::new(random.below(known) as usize));
            let target = at + 1 + random.below((length - at) as u64) as usize;
            Instruction::Jump { condition: register, target }
        }
        _ => Instruction::write(location, 4),
    }
}

fn fresh(thread: &mut Thread) -> RegisterId {
    let register = RegisterId::new(thread.registers.len());
    thread.registers.push(Register { name: format!("r{}", register.0), initial: 0 });
    register
}
