//! Compiles definitions into straight-line code over machine words.
//!
//! The reference evaluator interprets a definition with matrices of any size. An atlas asks the
//! same definitions about millions of histories of a few operations, so here a definition is
//! compiled once: calls are inlined, common subexpressions are computed once, `[S] ; r` becomes a
//! mask, and each instruction is hoisted as far out as its operands allow. There are three
//! outermost blocks: for values that depend only on the shape of a history, for those that also
//! depend on `wr`, and for those that depend on `ww`; inside a block there are loops for `let rec`,
//! `union` and `forall`.
//!
//! A search that chooses `wr` read by read may stop early if every extension of a violation is a
//! violation, that is, if `wr` does not occur negatively in any check. Compilation computes these
//! signs.

use consistory_models::{
    Base, CheckKind, Definition, Group, Kind, Program, Term, TermId, VariableId,
};
use consistory_verdict::{Budget, Stopped};
use rustc_hash::FxHashMap;

/// The block of values that depend only on the shape of a history.
pub(crate) const SHAPE: usize = 0;
/// The block of values that depend on `wr`.
pub(crate) const READS: usize = 1;
/// The block of values that depend on `ww`.
pub(crate) const ORDER: usize = 2;
/// Number of outermost blocks.
pub(crate) const BLOCKS: usize = 3;

/// A register, of sets or of relations.
pub(crate) type Register = u16;

/// The registers of the predefined names; more registers of both kinds follow.
pub(crate) const SETS: [Base; 8] = [
    Base::Everything,
    Base::EmptySet,
    Base::Writes,
    Base::Reads,
    Base::Fences,
    Base::InitialWrites,
    Base::ReadModifyWrites,
    Base::Memory,
];
/// See [`SETS`].
pub(crate) const RELATIONS: [Base; 8] = [
    Base::EmptyRelation,
    Base::Identity,
    Base::Po,
    Base::Wr,
    Base::Ww,
    Base::Loc,
    Base::Ext,
    Base::Int,
];

/// One computation; the result goes to the first register. Capital `S` marks operations on sets.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Computation {
    Union(Register, Register),
    Intersection(Register, Register),
    Difference(Register, Register),
    Then(Register, Register),
    Closure(Register),
    Inverse(Register),
    /// The complement of a relation.
    Complement(Register),
    Product(Register, Register),
    /// The pairs of a relation that start in a set.
    FromSet(Register, Register),
    /// The pairs of a relation that end in a set.
    ToSet(Register, Register),
    Identity(Register),
    UnionS(Register, Register),
    IntersectionS(Register, Register),
    DifferenceS(Register, Register),
    ComplementS(Register),
    Domain(Register),
    Range(Register),
}

impl Computation {
    /// Returns the kind of the result.
    fn kind(&self) -> Kind {
        match self {
            Computation::UnionS(..)
            | Computation::IntersectionS(..)
            | Computation::DifferenceS(..)
            | Computation::ComplementS(_)
            | Computation::Domain(_)
            | Computation::Range(_) => Kind::Set,
            _ => Kind::Relation,
        }
    }
}

/// A statement; statements run in sequence.
#[derive(Clone, Debug)]
pub(crate) enum Instruction {
    /// Computes a register.
    Compute(Register, Computation),
    /// Runs the body from empty values until a fixpoint: the names have the values that the body
    /// computes.
    Fixpoint { names: Vec<(Kind, Register, Register)>, body: Vec<Instruction> },
    /// Runs the body for each operation of a set, with the operation in a register as a singleton
    /// set, and unites the results.
    Each {
        set: Register,
        operation: Register,
        body: Vec<Instruction>,
        union: Option<(Kind, Register, Register)>,
    },
    /// Stops with a violation unless the check holds.
    Require(CheckKind, Kind, Register),
}

/// A compiled definition.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) blocks: [Vec<Instruction>; BLOCKS],
    pub(crate) sets: usize,
    pub(crate) relations: usize,
    /// Whether a violation under a part of `wr` remains one under the whole.
    pub(crate) prunes_reads: bool,
    /// Whether a violation under a part of `ww` remains one under the whole.
    pub(crate) prunes_order: bool,
    pub(crate) has_store_order: bool,
}

impl Code {
    /// Estimates the cost of a decision: the number of steps, counting those of loops several
    /// times.
    pub(crate) fn cost(&self) -> usize {
        fn steps(block: &[Instruction]) -> usize {
            block
                .iter()
                .map(|instruction| match instruction {
                    Instruction::Compute(..) | Instruction::Require(..) => 1,
                    Instruction::Fixpoint { body, .. } | Instruction::Each { body, .. } => {
                        4 * steps(body)
                    }
                })
                .sum()
        }
        steps(&self.blocks[READS]) + 8 * steps(&self.blocks[ORDER])
    }
}

/// A compiled expression.
#[derive(Clone, Copy, Debug)]
struct Value {
    kind: Kind,
    register: Register,
    /// The scope in which it is computed.
    home: usize,
    signs: Signs,
}

/// Signs with which the choices occur in an expression.
#[derive(Clone, Copy, Default, Debug)]
struct Signs {
    /// For `wr` and `ww` each: whether a larger choice may make the expression larger.
    positive: [bool; 2],
    /// For `wr` and `ww` each: whether a larger choice may make the expression smaller.
    negative: [bool; 2],
}

impl Signs {
    fn join(self, other: Signs) -> Signs {
        let or = |a: [bool; 2], b: [bool; 2]| [a[0] | b[0], a[1] | b[1]];
        Signs {
            positive: or(self.positive, other.positive),
            negative: or(self.negative, other.negative),
        }
    }

    fn swapped(self) -> Signs {
        Signs { positive: self.negative, negative: self.positive }
    }
}

/// A block or a loop body under construction.
#[derive(Default)]
struct Scope {
    code: Vec<Instruction>,
    known: FxHashMap<Computation, Value>,
    /// Outer scopes whose values this scope uses, one bit each.
    uses: u64,
}

/// Compiles a definition.
///
/// Calls are inlined, so a text of a few lines can expand to more steps than time or memory allow:
/// a function that calls another twice doubles them. Compilation then stops.
pub(crate) fn compile(definition: &Definition, budget: &Budget) -> Result<Code, Stopped> {
    let program = definition.program();
    let mut compiler = Compiler {
        program,
        scopes: std::iter::repeat_with(Scope::default).take(BLOCKS).collect(),
        variables: vec![None; program.variables.len()],
        globals: FxHashMap::default(),
        counts: [SETS.len() as Register, RELATIONS.len() as Register],
        signs: Signs::default(),
        budget,
        terms: 0,
    };
    for (i, group) in program.globals.iter().enumerate() {
        for &(variable, _) in &group.bindings {
            compiler.globals.insert(variable, i);
        }
    }
    for check in &program.checks {
        match &check.forall {
            None => {
                let value = compiler.term(check.term)?;
                compiler.require(check.kind, value);
            }
            Some((variable, set, groups)) => {
                let set = compiler.term(*set)?;
                let operation = compiler.open_each(*variable, set)?;
                for group in groups {
                    compiler.bind(group)?;
                }
                let value = compiler.term(check.term)?;
                compiler.require(check.kind, value);
                compiler.close_each(set, operation, None)?;
            }
        }
    }
    let Compiler { scopes, counts, signs, .. } = compiler;
    let [shape, reads, order] =
        <[Scope; BLOCKS]>::try_from(scopes).ok().expect("every loop that is opened is closed");
    Ok(Code {
        blocks: [shape.code, reads.code, order.code],
        sets: usize::from(counts[0]),
        relations: usize::from(counts[1]),
        prunes_reads: !signs.negative[0],
        prunes_order: !signs.negative[1],
        has_store_order: definition.has_store_order(),
    })
}

struct Compiler<'a> {
    program: &'a Program,
    /// The blocks and the open loops.
    scopes: Vec<Scope>,
    variables: Vec<Option<Value>>,
    /// Outermost group that binds a variable; compiled at its first use.
    globals: FxHashMap<VariableId, usize>,
    /// Number of registers, of sets and of relations.
    counts: [Register; 2],
    /// Signs with which the choices occur in the checks.
    signs: Signs,
    budget: &'a Budget,
    /// Number of compiled terms, counting each inlined copy.
    terms: u64,
}

/// Number of terms compiled between two checks of the budget.
const TERMS_PER_CHECK: u64 = 1 << 12;

impl Compiler<'_> {
    fn register(&mut self, kind: Kind) -> Result<Register, Stopped> {
        let count = &mut self.counts[usize::from(kind == Kind::Relation)];
        let register = *count;
        let limit = usize::from(Register::MAX);
        *count = count.checked_add(1).ok_or(Stopped::Expansion { limit })?;
        Ok(register)
    }

    /// Emits a step on operands, unless its value is already computed.
    fn compute(
        &mut self,
        step: Computation,
        operands: &[Value],
        signs: Signs,
    ) -> Result<Value, Stopped> {
        if let Some(known) = self.scopes.iter().find_map(|scope| scope.known.get(&step)) {
            return Ok(*known);
        }
        let home = operands.iter().map(|value| value.home).max().unwrap_or(SHAPE);
        let kind = step.kind();
        let value = Value { kind, register: self.register(kind)?, home, signs };
        for operand in operands {
            self.note_use(home, *operand);
        }
        let scope = &mut self.scopes[home];
        scope.code.push(Instruction::Compute(value.register, step.clone()));
        scope.known.insert(step, value);
        Ok(value)
    }

    /// Records that a scope uses a value, which may come from an outer scope.
    fn note_use(&mut self, scope: usize, value: Value) {
        if value.home < scope {
            self.scopes[scope].uses |= 1 << value.home;
        }
    }

    /// Emits a check in the innermost scope: a loop over the empty set checks nothing.
    fn require(&mut self, kind: CheckKind, value: Value) {
        self.signs = self.signs.join(value.signs);
        let innermost = self.scopes.len() - 1;
        let at = if innermost < BLOCKS { value.home } else { innermost };
        self.note_use(at, value);
        self.scopes[at].code.push(Instruction::Require(kind, value.kind, value.register));
    }

    /// Opens a loop over the operations of a set.
    fn open_each(&mut self, variable: VariableId, set: Value) -> Result<Value, Stopped> {
        self.scopes.push(Scope::default());
        let home = self.scopes.len() - 1;
        self.note_use(home, set);
        let register = self.register(Kind::Set)?;
        let operation = Value { kind: Kind::Set, register, home, signs: Signs::default() };
        self.variables[variable.index()] = Some(operation);
        Ok(operation)
    }

    /// Closes a loop over operations, which unites the values of its body, if it has any.
    fn close_each(
        &mut self,
        set: Value,
        operation: Value,
        body: Option<Value>,
    ) -> Result<Option<Value>, Stopped> {
        let union = match body {
            Some(body) => Some((body.kind, self.register(body.kind)?, body.register)),
            None => None,
        };
        let (set_register, operation) = (set.register, operation.register);
        let results: Vec<Value> = body.into_iter().collect();
        let home = self.close(&results, |body| Instruction::Each {
            set: set_register,
            operation,
            body,
            union,
        });
        let signs = body.map_or(set.signs, |body| set.signs.join(body.signs));
        Ok(union.map(|(kind, register, _)| Value { kind, register, home, signs }))
    }

    /// Closes the innermost loop, which produces results, and hoists it as far out as its operands
    /// allow; returns the scope.
    fn close(
        &mut self,
        results: &[Value],
        instruction: impl FnOnce(Vec<Instruction>) -> Instruction,
    ) -> usize {
        let own = self.scopes.len() - 1;
        for &value in results {
            self.note_use(own, value);
        }
        let Scope { code, uses, .. } = self.scopes.pop().expect("a loop was opened");
        let home = uses.checked_ilog2().unwrap_or(0) as usize;
        let scope = &mut self.scopes[home];
        scope.uses |= uses & !(1 << home);
        scope.code.push(instruction(code));
        home
    }

    /// Binds the names of a group.
    fn bind(&mut self, group: &Group) -> Result<(), Stopped> {
        if !group.recursive {
            let values: Vec<Value> = group
                .bindings
                .iter()
                .map(|&(_, term)| self.term(term))
                .collect::<Result<_, _>>()?;
            for (&(variable, _), value) in group.bindings.iter().zip(values) {
                self.variables[variable.index()] = Some(value);
            }
            return Ok(());
        }
        self.scopes.push(Scope::default());
        let home = self.scopes.len() - 1;
        for &(variable, _) in &group.bindings {
            let kind = self.program.variable(variable).kind;
            let register = self.register(kind)?;
            let name = Value { kind, register, home, signs: Signs::default() };
            self.variables[variable.index()] = Some(name);
        }
        let values: Vec<Value> =
            group.bindings.iter().map(|&(_, term)| self.term(term)).collect::<Result<_, _>>()?;
        // No name occurs negatively, so each value has at most the joined signs of all terms.
        let signs = values.iter().fold(Signs::default(), |signs, value| signs.join(value.signs));
        let names: Vec<(Kind, Register, Register)> = group
            .bindings
            .iter()
            .zip(&values)
            .map(|(&(variable, _), value)| {
                let name = self.variables[variable.index()].expect("it was bound above");
                (value.kind, name.register, value.register)
            })
            .collect();
        let home = self.close(&values, |body| Instruction::Fixpoint { names, body });
        for &(variable, _) in &group.bindings {
            let slot = self.variables[variable.index()].as_mut().expect("it was bound above");
            *slot = Value { home, signs, ..*slot };
        }
        Ok(())
    }

    fn variable(&mut self, variable: VariableId) -> Result<Value, Stopped> {
        if self.variables[variable.index()].is_none() {
            let program = self.program;
            let group = self.globals[&variable];
            self.bind(&program.globals[group])?;
        }
        Ok(self.variables[variable.index()].expect("a variable is bound before it is used"))
    }

    fn base(&self, base: Base) -> Value {
        let place = |table: &[Base]| table.iter().position(|&b| b == base);
        let (kind, at) = match place(&SETS) {
            Some(at) => (Kind::Set, at),
            None => {
                let at = place(&RELATIONS).expect("a predefined name is a set or a relation");
                (Kind::Relation, at)
            }
        };
        let (home, choice) = match base {
            Base::Wr => (READS, Some(0)),
            Base::Ww => (ORDER, Some(1)),
            _ => (SHAPE, None),
        };
        let mut signs = Signs::default();
        if let Some(choice) = choice {
            signs.positive[choice] = true;
        }
        Value { kind, register: at as Register, home, signs }
    }

    fn binary(
        &mut self,
        a: Value,
        b: Value,
        step: fn(Register, Register) -> Computation,
        signs: Signs,
    ) -> Result<Value, Stopped> {
        self.compute(step(a.register, b.register), &[a, b], signs)
    }

    /// Folds the operands of an associative operator.
    fn fold(
        &mut self,
        terms: &[TermId],
        on_sets: fn(Register, Register) -> Computation,
        on_relations: fn(Register, Register) -> Computation,
    ) -> Result<Value, Stopped> {
        let values: Vec<Value> =
            terms.iter().map(|&term| self.term(term)).collect::<Result<_, _>>()?;
        // Values that are available early are combined early, so that inner blocks do less work.
        let mut values = values;
        values.sort_by_key(|value| value.home);
        let mut folded = values[0];
        for &value in &values[1..] {
            let step = if value.kind == Kind::Set { on_sets } else { on_relations };
            folded = self.binary(folded, value, step, folded.signs.join(value.signs))?;
        }
        Ok(folded)
    }

    fn unary(&mut self, term: TermId, step: fn(Register) -> Computation) -> Result<Value, Stopped> {
        let value = self.term(term)?;
        self.compute(step(value.register), &[value], value.signs)
    }

    fn with_identity(&mut self, value: Value) -> Result<Value, Stopped> {
        let identity = self.base(Base::Identity);
        self.binary(identity, value, Computation::Union, value.signs)
    }

    fn term(&mut self, id: TermId) -> Result<Value, Stopped> {
        self.terms += 1;
        if self.terms.is_multiple_of(TERMS_PER_CHECK) {
            self.budget.check()?;
        }
        let program = self.program;
        match program.term(id) {
            Term::Base(base) => Ok(self.base(*base)),
            Term::Variable(variable) => self.variable(*variable),
            Term::Apply(function, arguments) => {
                let values: Vec<Value> =
                    arguments.iter().map(|&term| self.term(term)).collect::<Result<_, _>>()?;
                let function = program.function(*function);
                for (&parameter, value) in function.parameters.iter().zip(values) {
                    self.variables[parameter.index()] = Some(value);
                }
                self.term(function.body)
            }
            Term::Union(terms) => self.fold(terms, Computation::UnionS, Computation::Union),
            Term::Intersection(terms) => {
                self.fold(terms, Computation::IntersectionS, Computation::Intersection)
            }
            Term::Sequence(terms) => self.sequence(terms),
            Term::Difference(left, right) => {
                let (left, right) = (self.term(*left)?, self.term(*right)?);
                let signs = left.signs.join(right.signs.swapped());
                let step = match left.kind {
                    Kind::Set => Computation::DifferenceS,
                    Kind::Relation => Computation::Difference,
                };
                self.binary(left, right, step, signs)
            }
            Term::Product(left, right) => {
                let (left, right) = (self.term(*left)?, self.term(*right)?);
                self.binary(left, right, Computation::Product, left.signs.join(right.signs))
            }
            Term::Plus(term) => self.unary(*term, Computation::Closure),
            Term::Star(term) => {
                let plus = self.unary(*term, Computation::Closure)?;
                self.with_identity(plus)
            }
            Term::Optional(term) => {
                let value = self.term(*term)?;
                self.with_identity(value)
            }
            Term::Inverse(term) => self.unary(*term, Computation::Inverse),
            Term::Complement(term) => {
                let value = self.term(*term)?;
                let step = match value.kind {
                    Kind::Set => Computation::ComplementS(value.register),
                    Kind::Relation => Computation::Complement(value.register),
                };
                self.compute(step, &[value], value.signs.swapped())
            }
            Term::Identity(term) => self.unary(*term, Computation::Identity),
            Term::Domain(term) => self.unary(*term, Computation::Domain),
            Term::Range(term) => self.unary(*term, Computation::Range),
            Term::View(_) => unreachable!("a definition of histories has no views"),
            Term::Let(group, body) => {
                self.bind(group)?;
                self.term(*body)
            }
            Term::BigUnion { variable, set, body, .. } => {
                let set = self.term(*set)?;
                let operation = self.open_each(*variable, set)?;
                let body = self.term(*body)?;
                let union = self.close_each(set, operation, Some(body))?;
                Ok(union.expect("the body has a value"))
            }
        }
    }

    /// Compiles `a ; b ; c` from the left; `[S]` is a mask.
    fn sequence(&mut self, terms: &[TermId]) -> Result<Value, Stopped> {
        let program = self.program;
        let mut done: Option<Value> = None;
        // The intersection of the sets before the first relation.
        let mut start: Option<Value> = None;
        for &term in terms {
            if let Term::Identity(set) = program.term(term) {
                let set = self.term(*set)?;
                match (done, start) {
                    (Some(value), _) => {
                        let signs = value.signs.join(set.signs);
                        done = Some(self.binary(value, set, Computation::ToSet, signs)?);
                    }
                    (None, None) => start = Some(set),
                    (None, Some(first)) => {
                        let signs = first.signs.join(set.signs);
                        start = Some(self.binary(first, set, Computation::IntersectionS, signs)?);
                    }
                }
                continue;
            }
            let value = self.term(term)?;
            done = Some(match (done, start.take()) {
                (Some(before), _) => {
                    self.binary(before, value, Computation::Then, before.signs.join(value.signs))?
                }
                (None, Some(set)) => {
                    self.binary(value, set, Computation::FromSet, value.signs.join(set.signs))?
                }
                (None, None) => value,
            });
        }
        match (done, start) {
            (Some(value), _) => Ok(value),
            (None, Some(set)) => {
                self.compute(Computation::Identity(set.register), &[set], set.signs)
            }
            (None, None) => unreachable!("a sequence has operands"),
        }
    }
}
