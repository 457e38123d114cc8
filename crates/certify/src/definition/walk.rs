//! Checks the edges that a certificate shows for a failing check.
//!
//! The failure of the check was established by evaluation; the edges are shown to people, so they
//! must agree with it. They must form a walk: for `acyclic`, a closed one that splits into steps of
//! one or more edges, each a pair of the relation; for `irreflexive`, a closed one from an
//! operation that the relation pairs with itself; for `empty`, one from the first to the second
//! operation of a pair, or from an element to itself.
//!
//! Each edge and each of its premises, at any depth, claims that a pair is in a relation. For `po`,
//! `wr`, `ww`, and every name that the definition binds at its outermost level and nowhere else,
//! the claim must be true. Other labels, such as the application of a function, are only text.

use consistory_definition::{Base, CheckKind, Definition, Kind, VariableId};
use consistory_history::{History, OpId};
use consistory_verdict::Edge;
use rustc_hash::FxHashMap;

use super::evaluate::Evaluator;
use super::pairs::Pairs;
use crate::{Flaw, Rejection, exists, name};

/// Checks that edges show how a check fails for its subject; the ends of the edges must be in the
/// history.
pub(super) fn shows(
    kind: CheckKind,
    subject: &Pairs,
    edges: &[Edge],
    part: impl Fn() -> String,
) -> Result<(), Rejection> {
    let (Some(first), Some(last)) = (edges.first(), edges.last()) else {
        return Err(Rejection::NotACycle { part: part() });
    };
    let is_walk = edges.windows(2).all(|pair| pair[0].to == pair[1].from);
    let is_closed = kind == CheckKind::Empty || first.from == last.to;
    if !is_walk || !is_closed {
        return Err(Rejection::NotACycle { part: part() });
    }
    let is_shown = match kind {
        CheckKind::Acyclic => falls_into_steps(subject, edges),
        CheckKind::Irreflexive | CheckKind::Empty => {
            subject.contains(first.from.index(), last.to.index())
        }
    };
    if is_shown { Ok(()) } else { Err(Rejection::AllowedCycle { part: part() }) }
}

/// Returns whether a walk can be cut into pieces that each lead from the first to the second
/// operation of a pair.
fn falls_into_steps(subject: &Pairs, walk: &[Edge]) -> bool {
    // Operations at which a piece can start. They are never removed, because a piece may also
    // return to an earlier one.
    let mut starts: Vec<OpId> = walk.first().map(|edge| edge.from).into_iter().collect();
    let mut is_cut = false;
    for edge in walk {
        is_cut = starts.iter().any(|start| subject.contains(start.index(), edge.to.index()));
        if is_cut && !starts.contains(&edge.to) {
            starts.push(edge.to);
        }
    }
    is_cut
}

/// Meanings of the labels of edges.
pub(super) struct Labels<'a> {
    history: &'a History,
    meanings: FxHashMap<&'a str, Meaning>,
}

#[derive(Clone, Copy)]
enum Meaning {
    Base(Base),
    /// A pair of the store order that follows from a final value.
    Final,
    Global(VariableId),
}

impl<'a> Labels<'a> {
    pub(super) fn new(history: &'a History, definition: &'a Definition) -> Self {
        let program = definition.program();
        let mut bound: FxHashMap<&str, usize> = FxHashMap::default();
        for variable in &program.variables {
            *bound.entry(&variable.name).or_default() += 1;
        }
        let mut meanings = FxHashMap::default();
        for &(id, _) in program.globals.iter().flat_map(|group| &group.bindings) {
            let variable = program.variable(id);
            // An expression without a name is shown by its text, which may be a predefined name
            // that the definition hides further down.
            let is_predefined = matches!(&*variable.name, "id" | "loc" | "ext" | "int");
            if bound[&*variable.name] == 1 && variable.kind == Kind::Relation && !is_predefined {
                meanings.insert(&*variable.name, Meaning::Global(id));
            }
        }
        for (label, meaning) in [
            ("po", Meaning::Base(Base::Po)),
            ("wr", Meaning::Base(Base::Wr)),
            ("ww", Meaning::Base(Base::Ww)),
            ("so", Meaning::Base(Base::ClientOrder)),
            ("rt", Meaning::Base(Base::RealTime)),
            ("final", Meaning::Final),
        ] {
            // A name that the definition binds again may have either meaning, so it is only text.
            match bound.contains_key(label) {
                true => meanings.remove(label),
                false => meanings.insert(label, meaning),
            };
        }
        Labels { history, meanings }
    }

    /// Checks the claims of an edge and its premises; `finals` contains the pairs of `ww` that
    /// follow from final values.
    pub(super) fn are_true(
        &self,
        edge: &Edge,
        evaluator: &mut Evaluator<'_>,
        finals: &[(OpId, OpId)],
        part: impl Fn() -> String,
    ) -> Result<(), Rejection> {
        // Enclosing edges, each with the index of its next premise.
        let mut around: Vec<(&Edge, usize)> = vec![(edge, 0)];
        while let Some((edge, next)) = around.last_mut() {
            if *next == 0 && !self.is_true(edge, evaluator, finals) {
                let edge = *edge;
                let premises = &around[..around.len() - 1];
                let inner = premises.iter().map(|(_, next)| format!(".because[{}]", next - 1));
                let part = part() + &inner.collect::<String>();
                return Err(rejected(self.history, edge, part, Flaw::NotGiven));
            }
            match edge.because.get(*next) {
                Some(premise) => {
                    *next += 1;
                    around.push((premise, 0));
                }
                None => {
                    around.pop();
                }
            }
        }
        Ok(())
    }

    fn is_true(&self, edge: &Edge, evaluator: &mut Evaluator<'_>, finals: &[(OpId, OpId)]) -> bool {
        if !exists(self.history, edge.from) || !exists(self.history, edge.to) {
            return false;
        }
        let holds = |pairs: &Pairs| pairs.contains(edge.from.index(), edge.to.index());
        match self.meanings.get(edge.relation.as_str()) {
            Some(Meaning::Base(base)) => holds(&evaluator.base(*base).pairs),
            Some(Meaning::Final) => finals.contains(&(edge.from, edge.to)),
            Some(Meaning::Global(variable)) => {
                evaluator.global(*variable).is_some_and(|value| holds(&value.pairs))
            }
            None => true,
        }
    }
}

/// Returns the rejection of an edge.
pub(super) fn rejected(history: &History, edge: &Edge, part: String, flaw: Flaw) -> Rejection {
    Rejection::Edge {
        part,
        relation: edge.relation.to_string(),
        from: name(history, edge.from),
        to: name(history, edge.to),
        flaw,
    }
}
