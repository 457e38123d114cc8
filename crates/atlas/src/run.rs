//! Runs compiled definitions on one history after another.

use consistory_models::{CheckKind, Kind};

use crate::compile::{
    Code, Computation, Instruction, ORDER, READS, RELATIONS, Register, SETS, SHAPE,
};
use crate::relation::{LIMIT, Relation, Set, full};
use crate::shape::{Shape, Source};

/// A compiled definition with its registers.
#[derive(Clone)]
pub(crate) struct Machine<'a> {
    code: &'a Code,
    registers: Registers,
    /// Whether the shape alone violates the definition.
    is_violated: bool,
    /// Number of variables.
    variables: usize,
    /// The writes of each variable.
    writes: [Set; LIMIT],
    /// The store order in which the initial writes come first and no other pair is ordered.
    initial_order: Relation,
}

/// The result of the checks so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// Some check fails, whatever choices are added.
    Violated,
    /// No check fails for the choices made so far.
    Open,
}

#[derive(Clone)]
struct Registers {
    /// Number of operations.
    size: usize,
    sets: Vec<Set>,
    relations: Vec<Relation>,
}

const WR: usize = 3;
const WW: usize = 4;

impl<'a> Machine<'a> {
    pub(crate) fn new(code: &'a Code) -> Self {
        let registers = Registers {
            size: 0,
            sets: vec![0; code.sets],
            relations: vec![Relation::default(); code.relations],
        };
        Machine {
            code,
            registers,
            is_violated: false,
            variables: 0,
            writes: [0; LIMIT],
            initial_order: Relation::default(),
        }
    }

    /// Sets the shape. Returns whether every history of this shape violates the definition.
    pub(crate) fn load(&mut self, shape: &Shape) -> Standing {
        let size = shape.len() + shape.variables();
        let registers = &mut self.registers;
        registers.size = size;
        self.variables = shape.variables();
        self.writes = [0; LIMIT];
        let mut set = [0; SETS.len()];
        let [everything, _, writes, reads, fences, initial, rmws, memory] = &mut set;
        *everything = full(size);
        let mut relations = [Relation::default(); RELATIONS.len()];
        let [_, identity, po, _, ww, loc, ext, int] = &mut relations;
        for variable in 0..shape.variables() {
            let at = shape.len() + variable;
            *initial |= 1 << at;
            po.0[at] = full(shape.len());
        }
        for i in 0..shape.len() {
            let bit = 1 << i;
            match shape.variable(i) {
                Some(variable) if shape.writes(i) => {
                    *writes |= bit;
                    self.writes[variable] |= bit;
                    ww.insert(shape.len() + variable, i);
                }
                Some(_) => {}
                None => *fences |= bit,
            }
            if shape.reads(i) {
                *reads |= bit;
            }
        }
        *rmws = *writes & *reads;
        *writes |= *initial;
        *memory = *writes | *reads;
        let variable = |i: usize| match i.checked_sub(shape.len()) {
            Some(variable) => Some(variable),
            None => shape.variable(i),
        };
        let session = |i: usize| (i < shape.len()).then(|| shape.session(i));
        for i in 0..size {
            identity.insert(i, i);
            for j in 0..size {
                if variable(i).is_some() && variable(i) == variable(j) {
                    loc.insert(i, j);
                }
                let is_internal = i == j || (session(i).is_some() && session(i) == session(j));
                if is_internal {
                    int.insert(i, j)
                } else {
                    ext.insert(i, j)
                }
                if is_internal && i < j {
                    po.insert(i, j);
                }
            }
        }
        self.initial_order = *ww;
        registers.sets[..SETS.len()].copy_from_slice(&set);
        registers.relations[..RELATIONS.len()].copy_from_slice(&relations);
        let standing = run(registers, &self.code.blocks[SHAPE]);
        self.is_violated = standing == Standing::Violated;
        standing
    }

    /// Returns whether a violation under the sources of some of the reads is final.
    pub(crate) fn prunes(&self) -> bool {
        self.code.prunes_reads
    }

    /// Examines a partial choice of sources. Returns whether some check fails already.
    pub(crate) fn look(&mut self, sources: &[Source]) -> Standing {
        self.read(sources);
        match self.settle() {
            Standing::Open if self.code.has_store_order && self.code.prunes_order => {
                self.order(self.initial_order)
            }
            standing => standing,
        }
    }

    /// Decides a history.
    pub(crate) fn satisfies(&mut self, sources: &[Source]) -> bool {
        self.read(sources);
        if self.is_violated || self.settle() == Standing::Violated {
            return false;
        }
        !self.code.has_store_order || self.search(0, self.initial_order)
    }

    fn read(&mut self, sources: &[Source]) {
        let first_initial = self.registers.size - self.variables;
        let mut wr = Relation::default();
        for &Source { read, variable, write } in sources {
            wr.insert(write.unwrap_or(first_initial + variable), read);
        }
        self.registers.relations[WR] = wr;
    }

    fn settle(&mut self) -> Standing {
        run(&mut self.registers, &self.code.blocks[READS])
    }

    fn order(&mut self, ww: Relation) -> Standing {
        self.registers.relations[WW] = ww;
        run(&mut self.registers, &self.code.blocks[ORDER])
    }

    /// Searches the orders of the writes of each variable from `variable` on.
    fn search(&mut self, mut variable: usize, ww: Relation) -> bool {
        // With at most one write there is only one order.
        while variable < self.variables && self.writes[variable].count_ones() <= 1 {
            variable += 1;
        }
        let is_last = variable == self.variables;
        if (is_last || self.code.prunes_order) && self.order(ww) == Standing::Violated {
            return false;
        }
        is_last || self.arrange(variable, self.writes[variable], ww)
    }

    /// Tries each remaining write as the next one in the order of a variable.
    fn arrange(&mut self, variable: usize, left: Set, ww: Relation) -> bool {
        if left == 0 {
            return self.search(variable + 1, ww);
        }
        bits(left).any(|write| {
            let left = left & !(1 << write);
            let mut next = ww;
            next.0[write] |= left;
            self.arrange(variable, left, next)
        })
    }
}

/// Runs a block until a check fails.
fn run(registers: &mut Registers, block: &[Instruction]) -> Standing {
    for instruction in block {
        match instruction {
            Instruction::Compute(to, step) => registers.compute(usize::from(*to), step),
            Instruction::Fixpoint { names, body } => {
                for &(kind, name, _) in names {
                    registers.clear(kind, name);
                }
                loop {
                    if run(registers, body) == Standing::Violated {
                        return Standing::Violated;
                    }
                    let mut has_changed = false;
                    for &(kind, name, value) in names {
                        has_changed |= registers.copy(kind, name, value);
                    }
                    if !has_changed {
                        break;
                    }
                }
            }
            Instruction::Each { set, operation, body, union } => {
                if let Some((kind, result, _)) = *union {
                    registers.clear(kind, result);
                }
                for at in bits(registers.sets[usize::from(*set)]) {
                    registers.sets[usize::from(*operation)] = 1 << at;
                    if run(registers, body) == Standing::Violated {
                        return Standing::Violated;
                    }
                    if let Some((kind, result, value)) = *union {
                        registers.unite(kind, result, value);
                    }
                }
            }
            Instruction::Require(check, kind, register) => {
                if !registers.holds(*check, *kind, usize::from(*register)) {
                    return Standing::Violated;
                }
            }
        }
    }
    Standing::Open
}

impl Registers {
    fn compute(&mut self, to: usize, step: &Computation) {
        let size = self.size;
        let relation = |at: Register| self.relations[usize::from(at)];
        let set = |at: Register| self.sets[usize::from(at)];
        match *step {
            Computation::Union(a, b) => self.relations[to] = relation(a).union(relation(b)),
            Computation::Intersection(a, b) => {
                self.relations[to] = relation(a).intersection(relation(b))
            }
            Computation::Difference(a, b) => {
                self.relations[to] = relation(a).difference(relation(b))
            }
            Computation::Then(a, b) => self.relations[to] = relation(a).then(&relation(b), size),
            Computation::Closure(a) => self.relations[to] = relation(a).closure(size),
            Computation::Inverse(a) => self.relations[to] = relation(a).inverse(size),
            Computation::Complement(a) => {
                let all = Relation::product(full(size), full(size));
                self.relations[to] = all.difference(relation(a));
            }
            Computation::Product(a, b) => self.relations[to] = Relation::product(set(a), set(b)),
            Computation::FromSet(a, b) => self.relations[to] = relation(a).starting_in(set(b)),
            Computation::ToSet(a, b) => self.relations[to] = relation(a).ending_in(set(b)),
            Computation::Identity(a) => {
                let identity = relation(1);
                self.relations[to] = identity.ending_in(set(a));
            }
            Computation::UnionS(a, b) => self.sets[to] = set(a) | set(b),
            Computation::IntersectionS(a, b) => self.sets[to] = set(a) & set(b),
            Computation::DifferenceS(a, b) => self.sets[to] = set(a) & !set(b),
            Computation::ComplementS(a) => self.sets[to] = full(size) & !set(a),
            Computation::Domain(a) => self.sets[to] = relation(a).domain(),
            Computation::Range(a) => self.sets[to] = relation(a).range(),
        }
    }

    fn clear(&mut self, kind: Kind, to: Register) {
        match kind {
            Kind::Set => self.sets[usize::from(to)] = 0,
            Kind::Relation => self.relations[usize::from(to)] = Relation::default(),
        }
    }

    /// Copies a register and returns whether its value changed.
    fn copy(&mut self, kind: Kind, to: Register, from: Register) -> bool {
        let (to, from) = (usize::from(to), usize::from(from));
        match kind {
            Kind::Set => {
                let value = self.sets[from];
                std::mem::replace(&mut self.sets[to], value) != value
            }
            Kind::Relation => {
                let value = self.relations[from];
                std::mem::replace(&mut self.relations[to], value) != value
            }
        }
    }

    fn unite(&mut self, kind: Kind, to: Register, from: Register) {
        let (to, from) = (usize::from(to), usize::from(from));
        match kind {
            Kind::Set => self.sets[to] |= self.sets[from],
            Kind::Relation => {
                self.relations[to] = self.relations[to].union(self.relations[from]);
            }
        }
    }

    fn holds(&self, check: CheckKind, kind: Kind, at: usize) -> bool {
        match (check, kind) {
            (CheckKind::Empty, Kind::Set) => self.sets[at] == 0,
            (CheckKind::Empty, Kind::Relation) => self.relations[at].is_empty(),
            (CheckKind::Irreflexive, _) => self.relations[at].is_irreflexive(),
            (CheckKind::Acyclic, _) => self.relations[at].is_acyclic(self.size),
        }
    }
}

/// Iterates over the operations of a set.
fn bits(mut set: Set) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(at)
    })
}
