//! Finds the checks that determine the order of a key's writes.
//!
//! If a relation must be acyclic and always contains the store order, a path in it from one write
//! to another settles their order: the opposite order would close a cycle. Whether a term contains
//! the store order is decided from its structure; when in doubt, the answer is no.

use consistory_definition::{Base, Program, Term, TermId, VariableId};

/// Checks whether the value of a term contains every pair of the store order, or of the commit order
/// between the first operations of transactions; `arguments` are those of the calls around it.
pub(crate) fn contains_order(
    program: &Program,
    term: TermId,
    arguments: &mut Vec<(VariableId, TermId)>,
) -> bool {
    match program.term(term) {
        Term::Base(base) => matches!(base, Base::Ww | Base::CommitOrder),
        Term::Variable(variable) => {
            let binding = |&&(name, _): &&(VariableId, TermId)| name == *variable;
            if let Some(place) = arguments.iter().rposition(|pair| binding(&pair)) {
                // The argument is evaluated outside the call.
                let (_, argument) = arguments[place];
                let inner = arguments.split_off(place);
                let contains = contains_order(program, argument, arguments);
                arguments.extend(inner);
                return contains;
            }
            let mut bindings =
                program.globals.iter().filter(|g| !g.recursive).flat_map(|g| &g.bindings);
            bindings
                .find(|pair| binding(pair))
                .is_some_and(|&(_, term)| contains_order(program, term, arguments))
        }
        Term::Apply(function, values) => {
            let function = program.function(*function);
            let outer = arguments.len();
            arguments.extend(function.parameters.iter().copied().zip(values.iter().copied()));
            let contains = contains_order(program, function.body, arguments);
            arguments.truncate(outer);
            contains
        }
        Term::Union(terms) => terms.iter().any(|&term| contains_order(program, term, arguments)),
        Term::Plus(term) | Term::Star(term) | Term::Optional(term) => {
            contains_order(program, *term, arguments)
        }
        // Two writes of one key never belong to the same transaction.
        Term::Difference(term, without) => {
            matches!(program.term(*without), Term::Base(Base::Transaction))
                && contains_order(program, *term, arguments)
        }
        Term::Sequence(terms) => {
            let is_reflexive = |term: TermId| match program.term(term) {
                Term::Base(base) => matches!(base, Base::Transaction | Base::Identity),
                Term::Optional(_) | Term::Star(_) => true,
                _ => false,
            };
            let mut others = terms.iter().copied().filter(|&term| !is_reflexive(term));
            match (others.next(), others.next()) {
                (Some(term), None) => contains_order(program, term, arguments),
                (None, _) => terms.iter().any(|&term| contains_order(program, term, arguments)),
                _ => false,
            }
        }
        _ => false,
    }
}
