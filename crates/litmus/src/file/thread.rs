//! Common code of the readers of a thread's instructions: registers, labels and jumps.

use rustc_hash::FxHashMap;

use super::layout::{location, register};
use super::lexer::{Piece, Reader, Token};
use crate::program::{
    Address, Expression, Instruction, LocationId, Operator, Program, RegisterId, Thread,
};

/// Largest number of instructions of a thread.
const INSTRUCTIONS: usize = 1000;

/// A label or an instruction of a column.
pub(super) enum Word<'t> {
    Label(Piece<'t>),
    Instruction(Piece<'t>),
}

/// The static knowledge about a register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// The register is 0.
    Zero,
    /// The register holds the address of a location, computed from these registers.
    Address(LocationId, Vec<RegisterId>),
}

/// A thread that is being read.
pub(super) struct ThreadReader<'a> {
    pub(super) reader: &'a mut Reader,
    pub(super) program: &'a mut Program,
    thread: Thread,
    labels: FxHashMap<String, usize>,
    /// Jumps whose labels have not been read yet: the jump, its label and position.
    open: Vec<(usize, String, std::ops::Range<usize>)>,
    known: FxHashMap<RegisterId, Known>,
}

impl<'a> ThreadReader<'a> {
    pub(super) fn new(reader: &'a mut Reader, program: &'a mut Program) -> Self {
        ThreadReader {
            reader,
            program,
            thread: Thread::default(),
            labels: FxHashMap::default(),
            open: Vec::new(),
            known: FxHashMap::default(),
        }
    }

    pub(super) fn register(&mut self, name: &str) -> RegisterId {
        register(&mut self.thread, name)
    }

    /// Creates a register that no test can name.
    pub(super) fn hidden(&mut self, name: &str) -> RegisterId {
        self.register(&format!("%{name}"))
    }

    pub(super) fn set_initial(&mut self, name: &str, value: i64) {
        let id = self.register(name);
        self.thread.registers[id.index()].initial = value;
    }

    pub(super) fn set_address(&mut self, name: &str, location: LocationId) {
        let id = self.register(name);
        self.known.insert(id, Known::Address(location, Vec::new()));
    }

    pub(super) fn location(&mut self, name: &str) -> LocationId {
        location(self.program, name)
    }

    pub(super) fn push(&mut self, instruction: Instruction) {
        self.thread.code.push(instruction);
    }

    /// Returns the number of instructions so far.
    pub(super) fn position(&self) -> usize {
        self.thread.code.len()
    }

    pub(super) fn known(&self, register: RegisterId) -> Option<&Known> {
        self.known.get(&register)
    }

    /// Records the static knowledge about a register that gets a new value.
    pub(super) fn learn(&mut self, register: RegisterId, known: Option<Known>) {
        // An address computed from the old value depends on a register that is overwritten.
        let is_stale = |known: &Known| match known {
            Known::Address(_, depends) => depends.contains(&register),
            Known::Zero => false,
        };
        self.known.retain(|_, known| !is_stale(known));
        match known {
            Some(known) => self.known.insert(register, known),
            None => self.known.remove(&register),
        };
    }

    pub(super) fn label(&mut self, name: Piece<'_>) {
        let at = self.position();
        if self.labels.insert(name.text.to_owned(), at).is_some() {
            self.reader.error(name.range(), format!("the label `{}` occurs twice", name.text));
        }
        self.open.retain(|(jump, label, _)| {
            let is_this = label == name.text;
            if is_this && let Instruction::Jump { target, .. } = &mut self.thread.code[*jump] {
                *target = at;
            }
            !is_this
        });
    }

    /// Adds a jump to a later label.
    pub(super) fn jump(&mut self, condition: Expression, label: Token<'_>) {
        if self.labels.contains_key(label.text) {
            self.reader.error_with_hint(
                label.range(),
                format!("`{}` is before the jump: loops are not supported", label.text),
                "unroll the loop",
            );
            return;
        }
        self.open.push((self.position(), label.text.to_owned(), label.range()));
        self.push(Instruction::Jump { condition, target: usize::MAX });
    }

    pub(super) fn unsupported(&mut self, piece: Piece<'_>, hint: &str) {
        let message = format!("the instruction `{}` is not supported", piece.text);
        self.reader.error_with_hint(piece.range(), message, hint);
    }

    pub(super) fn finish(self) -> Thread {
        if self.thread.code.len() > INSTRUCTIONS {
            let message = format!("a thread has at most {INSTRUCTIONS} instructions");
            self.reader.error(0..0, message);
        }
        for (_, label, place) in self.open {
            self.reader.error(place, format!("there is no label `{label}`"));
        }
        self.thread
    }
}

/// Builds an address that depends on the given registers.
pub(super) fn address(location: LocationId, depends: Vec<RegisterId>) -> Address {
    Address { location, depends }
}

/// Applies an operator to two expressions.
pub(super) fn binary(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right))
}
