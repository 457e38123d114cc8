//! Computes how the value of a term changes with the values of its parts.
//!
//! A name occurs positively in a term if a larger value of the name can only make the term larger,
//! and negatively if it can only make it smaller: on the right side of `\` and under `~` the signs
//! swap. The signs answer three questions:
//!
//! - whether a `let rec` has a least solution that iteration finds: it does if no name of the group
//!   occurs negatively in it;
//! - whether a violation found with a part of `wr` or `ww` remains one when pairs are added: it
//!   does if neither occurs negatively in a check, and then a search may prune;
//! - which names depend on `ww` at all, so that the others are evaluated once.
//!
//! Indeterminate writes count only if they are read from, so the predefined sets and relations grow
//! with `wr` too. Whether a pair of counting operations is in `po \ (W * R)` does not change when
//! more operations count, but `po \ (po ; po)` shrinks. Therefore a predefined name has one symbol
//! if only the pair itself matters, and another one below an operator that depends on other
//! operations.

use consistory_definition::{
    Analysis, Base, FunctionId, Group, Program, Pruning, Term, TermId, VariableId,
};
use rustc_hash::FxHashMap;

use crate::problem::Problem;
use crate::resolve::Problems;

/// Largest nesting depth of calls and expressions together; it bounds every recursion over terms.
const DEPTH_LIMIT: usize = 400;

/// A symbol that can occur in a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Symbol {
    Wr,
    Ww,
    /// The set of operations that count, if only the operations of the pair matter.
    Counting,
    /// The set of operations that count, if other operations matter too.
    CountingElsewhere,
    Variable(VariableId),
}

/// Symbols by sign, each with a position of an occurrence.
#[derive(Clone, Debug, Default)]
struct Polarity {
    positive: FxHashMap<Symbol, TermId>,
    negative: FxHashMap<Symbol, TermId>,
    depth: usize,
}

impl Polarity {
    fn of(symbol: Symbol, term: TermId) -> Self {
        Polarity { positive: [(symbol, term)].into_iter().collect(), ..Polarity::default() }
    }

    fn join(&mut self, other: &Polarity) {
        for (&symbol, &term) in &other.positive {
            self.positive.entry(symbol).or_insert(term);
        }
        for (&symbol, &term) in &other.negative {
            self.negative.entry(symbol).or_insert(term);
        }
        self.depth = self.depth.max(other.depth);
    }

    /// Swaps the signs. A term that depends only on the pair still does so under a complement.
    fn negated(mut self) -> Self {
        std::mem::swap(&mut self.positive, &mut self.negative);
        if let Some(term) = self.negative.remove(&Symbol::Counting) {
            self.positive.insert(Symbol::Counting, term);
        }
        self
    }

    /// Marks the term as the operand of an operator that depends on operations outside the pair.
    fn looking_elsewhere(mut self) -> Self {
        if let Some(term) = self.positive.remove(&Symbol::Counting) {
            self.positive.insert(Symbol::CountingElsewhere, term);
        }
        self
    }

    fn holds(&self, symbol: Symbol) -> bool {
        self.positive.contains_key(&symbol) || self.negative.contains_key(&symbol)
    }
}

/// Analyses a program whose names are resolved without problems.
pub(crate) fn analyse(program: &Program) -> Result<Analysis, Problems> {
    let mut analyser = Analyser {
        program,
        variables: FxHashMap::default(),
        functions: Vec::new(),
        negates_choices: false,
        problems: Vec::new(),
    };
    let mut late_globals = Vec::new();
    for (i, group) in program.globals.iter().enumerate() {
        analyser.functions_up_to(i);
        late_globals.push(analyser.group(group).holds(Symbol::Ww));
    }
    analyser.functions_up_to(program.globals.len());
    let mut all = Polarity::default();
    let mut late_checks = Vec::new();
    for check in &program.checks {
        let mut polarity = Polarity::default();
        if let Some((variable, set, groups)) = &check.forall {
            polarity = analyser.term(*set);
            analyser.variables.insert(*variable, Polarity::default());
            for group in groups {
                analyser.group(group);
            }
        }
        polarity.join(&analyser.term(check.term));
        late_checks.push(polarity.holds(Symbol::Ww));
        all.join(&polarity);
    }
    if !analyser.problems.is_empty() {
        return Err(analyser.problems);
    }
    let is_negative = |symbol| all.negative.contains_key(&symbol);
    let pruning = if is_negative(Symbol::Ww) {
        Pruning::AtTheEnd
    } else if is_negative(Symbol::Wr) {
        Pruning::AfterWr
    } else if is_negative(Symbol::CountingElsewhere) {
        Pruning::WithoutUncertain
    } else {
        Pruning::Always
    };
    let negates_choices = analyser.negates_choices;
    Ok(Analysis { pruning, negates_choices, late_globals, late_checks })
}

struct Analyser<'a> {
    program: &'a Program,
    /// Known signs of the variables; a variable without an entry represents itself.
    variables: FxHashMap<VariableId, Polarity>,
    functions: Vec<Polarity>,
    /// Whether a term that may depend on a choice was negated.
    negates_choices: bool,
    problems: Problems,
}

impl Analyser<'_> {
    /// Swaps the signs of a negated term, and records whether it may depend on a choice.
    fn negate(&mut self, polarity: Polarity) -> Polarity {
        let mut symbols = polarity.positive.keys().chain(polarity.negative.keys());
        self.negates_choices |=
            symbols.any(|symbol| matches!(symbol, Symbol::Wr | Symbol::Ww | Symbol::Variable(_)));
        polarity.negated()
    }

    /// Analyses the functions that are bound before the outermost group `global`.
    fn functions_up_to(&mut self, global: usize) {
        while let Some(function) = self.program.functions.get(self.functions.len())
            && function.globals_before <= global
        {
            let polarity = self.term(function.body);
            self.functions.push(polarity);
        }
    }

    fn group(&mut self, group: &Group) -> Polarity {
        let mut all = Polarity::default();
        let mut each = Vec::new();
        for &(_, term) in &group.bindings {
            let polarity = self.term(term);
            all.join(&polarity);
            each.push(polarity);
        }
        if group.recursive {
            for &(variable, _) in &group.bindings {
                let symbol = Symbol::Variable(variable);
                all.positive.remove(&symbol);
                if let Some(term) = all.negative.remove(&symbol) {
                    let name = self.program.variable(variable).name.clone();
                    let hint = "the least solution need not exist: a larger value would be smaller";
                    self.problems.push((
                        self.program.span(term).clone(),
                        Problem::NonMonotone { name },
                        Some(hint.to_owned()),
                    ));
                }
            }
        }
        for (&(variable, _), own) in group.bindings.iter().zip(each) {
            self.variables.insert(variable, if group.recursive { all.clone() } else { own });
        }
        all
    }

    fn term(&mut self, id: TermId) -> Polarity {
        let program = self.program;
        let mut polarity = match program.term(id) {
            Term::Base(Base::Wr) => Polarity::of(Symbol::Wr, id),
            // The commit order is chosen like a store order.
            Term::Base(Base::Ww | Base::CommitOrder) => Polarity::of(Symbol::Ww, id),
            Term::Base(Base::EmptySet | Base::EmptyRelation) => Polarity::default(),
            Term::Base(_) => Polarity::of(Symbol::Counting, id),
            Term::Variable(variable) => match self.variables.get(variable) {
                Some(known) => Polarity { depth: 0, ..known.clone() },
                None => Polarity::of(Symbol::Variable(*variable), id),
            },
            Term::Apply(function, arguments) => self.apply(*function, arguments),
            Term::Union(terms) | Term::Intersection(terms) => self.all(terms),
            Term::Sequence(terms) => self.all(terms).looking_elsewhere(),
            Term::Difference(left, right) => {
                let mut polarity = self.term(*left);
                let right = self.term(*right);
                polarity.join(&self.negate(right));
                polarity
            }
            Term::Product(left, right) => self.all(&[*left, *right]),
            Term::Identity(term) | Term::Inverse(term) | Term::Optional(term) => self.term(*term),
            Term::Plus(term)
            | Term::Star(term)
            | Term::Domain(term)
            | Term::Range(term)
            | Term::View(term) => self.term(*term).looking_elsewhere(),
            Term::Complement(term) => {
                let polarity = self.term(*term);
                let mut polarity = self.negate(polarity);
                polarity.join(&Polarity::of(Symbol::Counting, id));
                polarity
            }
            Term::Let(group, body) => {
                let depth = self.group(group).depth;
                let mut polarity = self.term(*body);
                polarity.depth = polarity.depth.max(depth);
                polarity
            }
            Term::BigUnion { variable, set, body, .. } => {
                self.variables.insert(*variable, Polarity::default());
                self.all(&[*set, *body]).looking_elsewhere()
            }
        };
        polarity.depth += 1;
        if polarity.depth == DEPTH_LIMIT {
            self.problems.push((program.span(id).clone(), Problem::NestedTooDeeply, None));
        }
        polarity
    }

    fn all(&mut self, terms: &[TermId]) -> Polarity {
        let mut polarity = Polarity::default();
        for &term in terms {
            polarity.join(&self.term(term));
        }
        polarity
    }

    /// Substitutes the arguments for the parameters, and the known signs for the other variables of
    /// the function's body.
    fn apply(&mut self, function: FunctionId, arguments: &[TermId]) -> Polarity {
        let arguments: Vec<Polarity> =
            arguments.iter().map(|&argument| self.term(argument)).collect();
        let parameters = &self.program.function(function).parameters;
        let Some(body) = self.functions.get(function.index()).cloned() else {
            return Polarity::default();
        };
        let value = |symbol: Symbol, term: TermId| match symbol {
            Symbol::Variable(variable) => match parameters.iter().position(|&p| p == variable) {
                Some(at) => arguments[at].clone().looking_elsewhere(),
                None => match self.variables.get(&variable) {
                    Some(known) => Polarity { depth: 0, ..known.clone() },
                    None => Polarity::of(symbol, term),
                },
            },
            _ => Polarity::of(symbol, term),
        };
        let mut result = Polarity { depth: body.depth, ..Polarity::default() };
        for (&symbol, &term) in &body.positive {
            result.join(&value(symbol, term));
        }
        for (&symbol, &term) in &body.negative {
            result.join(&value(symbol, term).negated());
        }
        for argument in &arguments {
            result.depth = result.depth.max(argument.depth);
        }
        result
    }
}
