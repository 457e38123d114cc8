//! Packs a state into words, and names its slots.
//!
//! A slot of a type with n values takes the bits of n + 1 codes, where 0 is undefined. No slot
//! straddles two words. With tracking, a location takes one bit (whether it is defined), and the
//! data of ghosts takes none.

use crate::machine::code::UNDEFINED;
use crate::machine::lower::CLEARED_LABEL;
use crate::machine::run::position;
use crate::murphi::flow::Flow;
use crate::murphi::ir::Program;
use crate::murphi::{Piece, Type, TypeId};

/// A multiset among the slots of a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bag {
    pub(crate) at: u32,
    pub(crate) capacity: u32,
    pub(crate) stride: u32,
}

/// A slot of a state.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) ty: TypeId,
    pub(crate) kind: SlotKind,
    word: u32,
    shift: u32,
    mask: u64,
    encoding: Encoding,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotKind {
    Value,
    /// Whether an element of a multiset is present.
    Flag,
    /// With tracking: a location.
    Location(u32),
    /// With tracking: data that only checks read.
    Ghost,
}

#[derive(Clone, Debug)]
enum Encoding {
    /// The code plus this number; undefined is 0.
    Linear(i32),
    Pieces(Box<[Piece]>),
    Defined,
    Nothing,
}

/// All slots of a state.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) slots: Vec<Slot>,
    pub(crate) words: usize,
    pub(crate) bits: u32,
    pub(crate) bags: Vec<Bag>,
    /// The slot of each location.
    pub(crate) locations: Vec<u32>,
    /// The slots of ghosts.
    pub(crate) ghosts: Vec<u32>,
}

impl Slot {
    fn encode(&self, code: i32) -> u64 {
        if code == UNDEFINED {
            return 0;
        }
        let value = match &self.encoding {
            Encoding::Linear(shift) => i64::from(code) + i64::from(*shift),
            Encoding::Pieces(pieces) => i64::from(position(pieces, code).unwrap_or(0)) + 1,
            Encoding::Defined => 1,
            Encoding::Nothing => 0,
        };
        value as u64 & self.mask
    }
}

impl Layout {
    pub(crate) fn new(program: &Program, flow: Option<&Flow>) -> Self {
        let mut layout = Layout {
            slots: Vec::new(),
            words: 0,
            bits: 0,
            bags: Vec::new(),
            locations: Vec::new(),
            ghosts: Vec::new(),
        };
        for &var in &program.globals {
            let is_ghost = flow.is_some_and(|flow| flow.ghosts.contains(&var));
            let data = flow.map(|flow| flow.data);
            layout.add(program, program.variables[var.0 as usize].ty, data, is_ghost);
        }
        let widths: Vec<u32> = layout
            .slots
            .iter()
            .map(|slot| {
                let codes = match &slot.encoding {
                    Encoding::Nothing => 1,
                    Encoding::Defined => 2,
                    _ if slot.kind == SlotKind::Flag => 2,
                    _ => u64::from(program.types.count(slot.ty)) + 1,
                };
                u64::BITS - (codes - 1).leading_zeros()
            })
            .collect();
        layout.bits = widths.iter().sum();
        // The number of distinct values is smallest if all words have about the same number of
        // bits.
        let full = layout.bits.div_ceil(layout.bits.div_ceil(u64::BITS).max(1));
        let mut used = full;
        for (slot, &bits) in layout.slots.iter_mut().zip(&widths) {
            if bits > 0 && (used >= full || used + bits > u64::BITS) {
                layout.words += 1;
                used = 0;
            }
            slot.word = layout.words.saturating_sub(1) as u32;
            slot.shift = if bits == 0 { 0 } else { used };
            slot.mask = ((1u128 << bits) - 1) as u64;
            used += bits;
        }
        layout.words = layout.words.max(1);
        layout
    }

    fn add(&mut self, program: &Program, ty: TypeId, data: Option<TypeId>, is_ghost: bool) {
        let types = &program.types;
        match types.get(ty) {
            Type::Record(fields) => {
                fields.iter().for_each(|field| self.add(program, field.ty, data, is_ghost));
            }
            Type::Array { index, element } => {
                for _ in 0..types.count(*index) {
                    self.add(program, *element, data, is_ghost);
                }
            }
            Type::Multiset { capacity, element } => {
                let (at, stride) = (self.slots.len() as u32, 1 + types.slots(*element));
                self.bags.push(Bag { at, capacity: *capacity, stride });
                for _ in 0..*capacity {
                    self.slot(ty, SlotKind::Flag, Encoding::Linear(0));
                    self.add(program, *element, data, is_ghost);
                }
            }
            _ if data == Some(ty) && is_ghost => {
                self.ghosts.push(self.slots.len() as u32);
                self.slot(ty, SlotKind::Ghost, Encoding::Nothing);
            }
            _ if data == Some(ty) => {
                let number = self.locations.len() as u32;
                self.locations.push(self.slots.len() as u32);
                self.slot(ty, SlotKind::Location(number), Encoding::Defined);
            }
            _ => {
                let pieces = types.pieces(ty);
                let encoding = match pieces[..] {
                    [piece] => Encoding::Linear(1 - piece.first),
                    _ => Encoding::Pieces(pieces.into()),
                };
                self.slot(ty, SlotKind::Value, encoding);
            }
        }
    }

    fn slot(&mut self, ty: TypeId, kind: SlotKind, encoding: Encoding) {
        self.slots.push(Slot { ty, kind, word: 0, shift: 0, mask: 0, encoding });
    }

    /// Packs the slots of a state.
    pub(crate) fn pack(&self, memory: &[i32], words: &mut [u64]) {
        words.fill(0);
        for (slot, &code) in self.slots.iter().zip(memory) {
            words[slot.word as usize] |= slot.encode(code) << slot.shift;
        }
    }

    /// Packs the slots of a state, most of which are equal to those of a packed state.
    pub(crate) fn pack_changes(
        &self,
        base: &[i32],
        memory: &[i32],
        before: &[u64],
        words: &mut [u64],
    ) {
        words.copy_from_slice(before);
        for ((slot, &code), &old) in self.slots.iter().zip(memory).zip(base) {
            if code != old {
                let word = &mut words[slot.word as usize];
                *word = *word & !(slot.mask << slot.shift) | slot.encode(code) << slot.shift;
            }
        }
    }

    /// Unpacks a state; a defined location holds its own number.
    pub(crate) fn unpack(&self, words: &[u64], memory: &mut [i32]) {
        for (slot, code) in self.slots.iter().zip(memory) {
            let value = (words[slot.word as usize] >> slot.shift) & slot.mask;
            *code = match (&slot.encoding, value) {
                (Encoding::Nothing, _) => CLEARED_LABEL,
                (_, 0) => UNDEFINED,
                (Encoding::Linear(shift), value) => (value as i64 - i64::from(*shift)) as i32,
                (Encoding::Pieces(pieces), value) => code_at(pieces, value as u32 - 1),
                (Encoding::Defined, _) => match slot.kind {
                    SlotKind::Location(number) => number as i32,
                    _ => 0,
                },
            };
        }
    }

    /// Sorts the multisets of a state, present elements first. Data is compared last, so that with
    /// tracking the order depends on labels as little as possible.
    pub(crate) fn sort_bags(&self, memory: &mut [i32]) {
        for bag in &self.bags {
            let (at, stride) = (bag.at as usize, bag.stride as usize);
            let slots = &self.slots[at..at + stride];
            let area = &mut memory[at..at + bag.capacity as usize * stride];
            // An absent element has no contents, even if a rule wrote to an element that it had
            // removed.
            for element in area.chunks_exact_mut(stride) {
                if element[0] == UNDEFINED {
                    element.fill(UNDEFINED);
                }
            }
            let is_sorted = area
                .chunks_exact(stride)
                .zip(area.chunks_exact(stride).skip(1))
                .all(|(a, b)| compare(slots, a, b).is_le());
            if !is_sorted {
                let mut elements: Vec<Vec<i32>> =
                    area.chunks_exact(stride).map(<[i32]>::to_vec).collect();
                elements.sort_by(|a, b| compare(slots, a, b));
                for (to, from) in area.chunks_exact_mut(stride).zip(&elements) {
                    to.copy_from_slice(from);
                }
            }
        }
    }
}

/// Compares two elements of a multiset: first without data, then by labels; ghosts are ignored.
fn compare(slots: &[Slot], a: &[i32], b: &[i32]) -> std::cmp::Ordering {
    let erased = |slot: &Slot, code: i32| match slot.kind {
        SlotKind::Location(_) => i32::from(code != UNDEFINED),
        SlotKind::Ghost => 0,
        _ => code,
    };
    let labelled = |slot: &Slot, code: i32| match slot.kind {
        SlotKind::Ghost => 0,
        _ => code,
    };
    let parts = || slots.iter().zip(a.iter().zip(b));
    let without = parts().map(|(slot, (&a, &b))| erased(slot, b).cmp(&erased(slot, a)));
    let with = parts().map(|(slot, (&a, &b))| labelled(slot, b).cmp(&labelled(slot, a)));
    without.chain(with).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
}

fn code_at(pieces: &[Piece], mut position: u32) -> i32 {
    for piece in pieces {
        if position < piece.count {
            return piece.first + position as i32;
        }
        position -= piece.count;
    }
    0
}

/// Returns the name of each slot of a state, as written in a description.
pub(crate) fn slot_names(program: &Program) -> Vec<String> {
    let mut names = Vec::new();
    for &var in &program.globals {
        let variable = &program.variables[var.0 as usize];
        add_names(program, variable.ty, variable.name.to_string(), &mut names);
    }
    names
}

fn add_names(program: &Program, ty: TypeId, name: String, out: &mut Vec<String>) {
    let types = &program.types;
    match types.get(ty) {
        Type::Record(fields) => {
            for field in fields {
                add_names(program, field.ty, format!("{name}.{}", field.name), out);
            }
        }
        Type::Array { index, element } => {
            let pieces = types.pieces(*index);
            for at in 0..types.count(*index) {
                let shown = types.show_code(*index, code_at(&pieces, at));
                add_names(program, *element, format!("{name}[{shown}]"), out);
            }
        }
        Type::Multiset { capacity, element } => {
            for at in 0..*capacity {
                out.push(format!("{name}{{{at}}}"));
                add_names(program, *element, format!("{name}{{{at}}}"), out);
            }
        }
        _ => out.push(name),
    }
}
