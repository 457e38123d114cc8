//! The machine code of both assemblers, compared with listings.

use consistory_litmus::{
    Address, Expression, Fence, Instruction, Location, LocationId, Operator, Program, Register,
    RegisterId, Thread, ThreadId, Update,
};
use consistory_native::{Architecture, AssembleError, assemble};

/// A thread with every kind of instruction.
fn everything() -> Program {
    let location = |name: &str| Location { name: name.to_owned(), initial: 0 };
    let register = |name: &str| Register { name: name.to_owned(), initial: 0 };
    let r = RegisterId::new;
    let x = || Address::from(LocationId::new(0));
    let y = || Address { location: LocationId::new(1), depends: vec![r(0), r(1)] };
    let constant = Expression::Constant;
    let get = |at| Expression::Register(r(at));
    let binary =
        |operator, left, right| Expression::Binary(operator, Box::new(left), Box::new(right));
    let code = vec![
        Instruction::Read { register: r(0), address: x() },
        Instruction::Read { register: r(6), address: y() },
        Instruction::Write { address: x(), value: constant(1) },
        Instruction::Write { address: y(), value: constant(-1) },
        Instruction::Write { address: x(), value: constant(0x1234_5678_9abc_def0) },
        Instruction::Fence(Fence::Full),
        Instruction::Fence(Fence::Load),
        Instruction::Fence(Fence::Store),
        Instruction::ReadModifyWrite {
            register: Some(r(1)),
            address: x(),
            update: Update::Exchange(constant(2)),
        },
        Instruction::ReadModifyWrite { register: None, address: y(), update: Update::Add(get(6)) },
        Instruction::ReadModifyWrite {
            register: Some(r(2)),
            address: x(),
            update: Update::CompareExchange { expected: get(0), new: constant(3) },
        },
        Instruction::Jump { condition: get(2), target: 13 },
        Instruction::Assign {
            register: r(3),
            value: binary(
                Operator::Xor,
                binary(Operator::Add, get(0), get(1)),
                binary(Operator::Subtract, get(2), binary(Operator::And, get(3), get(4))),
            ),
        },
        Instruction::Assign {
            register: r(4),
            value: binary(
                Operator::Or,
                binary(Operator::Equal, get(0), get(1)),
                binary(
                    Operator::NotEqual,
                    binary(Operator::Less, get(2), get(3)),
                    binary(Operator::LessOrEqual, get(4), get(5)),
                ),
            ),
        },
    ];
    let registers = ["r0", "r1", "r2", "r3", "r4", "r5", "r6"].map(register).to_vec();
    Program {
        locations: ["x", "y"].map(location).to_vec(),
        threads: vec![Thread { registers, code }],
        observed: Vec::new(),
    }
}

/// Compares machine code with a listing by the GNU disassembler: one instruction per line, its
/// bytes and, for people, its text.
fn check(architecture: Architecture, listing: &str) {
    let (code, locations) = assemble(&everything(), ThreadId::new(0), architecture).unwrap();
    assert_eq!(locations, [0, 1]);
    let mut rest = code.as_slice();
    for line in listing.lines() {
        let (bytes, _) = line.split_once("  ").unwrap();
        let expected = bytes.len() / 2;
        let (found, after) = rest.split_at(expected.min(rest.len()));
        let found: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, bytes, "{line}");
        rest = after;
    }
    assert!(rest.is_empty(), "{} bytes more than listed", rest.len());
}

#[test]
fn x86_64_code_is_as_listed() {
    check(Architecture::X86_64, include_str!("listings/x86_64.txt"));
}

#[test]
fn aarch64_code_is_as_listed() {
    check(Architecture::Aarch64, include_str!("listings/aarch64.txt"));
}

#[test]
fn what_has_no_room_is_said() {
    let mut program = everything();
    let locations = (0..7).map(|l| Location { name: format!("x{l}"), initial: 0 });
    program.locations = locations.collect();
    program.threads[0].code = (0..7).map(|l| Instruction::write(LocationId::new(l), 1)).collect();
    for architecture in [Architecture::X86_64, Architecture::Aarch64] {
        let error = assemble(&program, ThreadId::new(0), architecture).unwrap_err();
        assert_eq!(error, AssembleError::Locations { thread: 0, found: 7, limit: 6 });
    }
    let mut deep = Expression::Constant(1);
    for _ in 0..100 {
        deep = Expression::Binary(Operator::Add, Box::new(deep), Box::new(Expression::Constant(1)));
    }
    program.threads[0].code =
        vec![Instruction::Assign { register: RegisterId::new(0), value: deep }];
    let error = assemble(&program, ThreadId::new(0), Architecture::X86_64).unwrap_err();
    assert_eq!(error, AssembleError::Nesting { thread: 0, instruction: 0 });
}
