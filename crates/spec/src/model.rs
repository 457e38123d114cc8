//! The named models of objects, the implications between them, and visibility levels.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use consistory_diagnostic::Diagnostics;

use crate::axioms::{Atom, Axiom, Left, parse_axioms};

/// A consistency model of objects: axioms in addition to those of every model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectModel {
    /// Id in reports.
    pub id: Cow<'static, str>,
    /// The axioms in addition to those of every model.
    pub axioms: Vec<Axiom>,
}

/// The ids of the named models, strong ones first.
pub const NAMED: [&str; 6] = [
    "linearizability",
    "happens-before-visibility",
    "causal-convergence",
    "read-my-writes",
    "monotonic-reads",
    "return-value",
];

/// Pairs of named models such that the first implies the second; further implications follow by
/// transitivity.
///
/// Linearizability implies all models and all imply return-value consistency by definition. `hb`
/// contains `po`, and causal convergence contains `vis ; po` because it contains `vis ; vis` and
/// `po`.
const IMPLIES: [(&str, &str); 7] = [
    ("linearizability", "happens-before-visibility"),
    ("linearizability", "causal-convergence"),
    ("happens-before-visibility", "read-my-writes"),
    ("causal-convergence", "read-my-writes"),
    ("causal-convergence", "monotonic-reads"),
    ("read-my-writes", "return-value"),
    ("monotonic-reads", "return-value"),
];

impl ObjectModel {
    /// Finds a named model.
    pub fn named(id: &str) -> Option<ObjectModel> {
        let id = NAMED.into_iter().find(|known| *known == id)?;
        let vis = |right: &[Atom]| Axiom::all(Left::Vis, right);
        let axioms = match id {
            "linearizability" => vec![vis(&[Atom::Lin])],
            "happens-before-visibility" => vec![vis(&[Atom::Hb])],
            "causal-convergence" => vec![vis(&[Atom::Po]), vis(&[Atom::Vis, Atom::Vis])],
            "read-my-writes" => vec![vis(&[Atom::Po])],
            "monotonic-reads" => vec![vis(&[Atom::Vis, Atom::Po])],
            _ => Vec::new(),
        };
        Some(ObjectModel { id: Cow::Borrowed(id), axioms })
    }

    /// Builds a model from axioms; its name is their text.
    pub fn of_axioms(axioms: Vec<Axiom>) -> ObjectModel {
        let shown: Vec<String> = axioms.iter().map(ToString::to_string).collect();
        let id = if shown.is_empty() { "Ret".to_owned() } else { shown.join("; ") };
        ObjectModel { id: Cow::Owned(id), axioms }
    }

    /// Builds the model in which each method has its level; unlisted methods have `other`.
    /// `methods` are all methods that occur.
    pub fn of_levels(levels: &[(Box<str>, Level)], other: Level, methods: &[&str]) -> ObjectModel {
        let mut axioms = Vec::new();
        let level_of = |method: &str| {
            levels.iter().find(|(m, _)| **m == *method).map_or(other, |(_, level)| *level)
        };
        for level in Level::ALL {
            let of: Vec<Box<str>> = methods
                .iter()
                .filter(|method| level_of(method) >= level)
                .map(|&method| method.into())
                .collect();
            if let Some(right) = level.demands()
                && !of.is_empty()
            {
                axioms.push(Axiom { left: Left::Vis, of: Some(of), right });
            }
        }
        let shown: Vec<String> =
            methods.iter().map(|method| format!("{method}={}", level_of(method))).collect();
        ObjectModel { id: Cow::Owned(format!("levels({})", shown.join(","))), axioms }
    }

    /// Parses the form that [`id`](Self::id) returns: a named model, `levels(...)`, or axioms.
    pub fn parse(source: &str, text: &str) -> Result<ObjectModel, Diagnostics> {
        let text = text.trim();
        if let Some(model) = ObjectModel::named(text) {
            return Ok(model);
        }
        if let Some(list) = text.strip_prefix("levels(").and_then(|t| t.strip_suffix(')')) {
            let levels = parse_levels(source, list)?;
            let methods: Vec<&str> = levels.iter().map(|(method, _)| &**method).collect();
            return Ok(ObjectModel::of_levels(&levels, Level::Complete, &methods));
        }
        Ok(ObjectModel::of_axioms(parse_axioms(source, text)?))
    }

    /// Returns whether every operation sees everything linearized before it.
    pub fn is_linearizability(&self) -> bool {
        self.axioms.iter().any(|axiom| *axiom == Axiom::all(Left::Vis, &[Atom::Lin]))
    }
}

/// Returns whether a history that satisfies the named model `stronger` satisfies `weaker`.
pub fn object_model_implies(stronger: &str, weaker: &str) -> bool {
    stronger == weaker
        || IMPLIES.iter().any(|&(from, to)| from == stronger && object_model_implies(to, weaker))
}

/// Parses levels, such as `size=weak, get=monotonic`.
pub fn parse_levels(source: &str, text: &str) -> Result<Vec<(Box<str>, Level)>, Diagnostics> {
    let mut errors = Diagnostics::default();
    let mut levels: Vec<(Box<str>, Level)> = Vec::new();
    let mut at = 0;
    let source: Arc<str> = source.into();
    for entry in text.split(',') {
        let span = at..at + entry.len();
        at = span.end + 1;
        let (method, level) = entry.split_once('=').unwrap_or((entry, ""));
        let (method, level) = (method.trim(), level.trim());
        match Level::named(level) {
            _ if entry.trim().is_empty() => {}
            Some(level) if !method.is_empty() => levels.push((method.into(), level)),
            _ => {
                let names = Level::ALL.map(|level| level.to_string()).join(", ");
                let hint = format!("as in `size=weak`; the levels are {names}");
                let message = format!("expected a method and its level, found `{}`", entry.trim());
                errors.push(&source, 1, text, span, message, Some(hint));
            }
        }
    }
    if errors.is_empty() { Ok(levels) } else { Err(errors) }
}

/// A visibility level: the part of the past that an operation of a method must see.
///
/// Each level requires everything that the levels before it require.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// No requirement.
    Weak,
    /// The past of its own session: `po`.
    Own,
    /// What its session saw before: `vis ; po`.
    Monotonic,
    /// If it sees an operation, also the past of that operation's session: `po ; vis`.
    Peer,
    /// If it sees an operation, also everything that this operation saw: `vis ; vis`.
    Causal,
    /// Everything linearized before it: `lin`.
    Complete,
}

impl Level {
    /// The levels, weak ones first.
    pub const ALL: [Level; 6] =
        [Level::Weak, Level::Own, Level::Monotonic, Level::Peer, Level::Causal, Level::Complete];

    /// Finds a level by its name.
    pub fn named(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.to_string() == name)
    }

    /// Returns the relation that the level adds to the required visibility.
    pub fn demands(self) -> Option<Vec<Atom>> {
        match self {
            Level::Weak => None,
            Level::Own => Some(vec![Atom::Po]),
            Level::Monotonic => Some(vec![Atom::Vis, Atom::Po]),
            Level::Peer => Some(vec![Atom::Po, Atom::Vis]),
            Level::Causal => Some(vec![Atom::Vis, Atom::Vis]),
            Level::Complete => Some(vec![Atom::Lin]),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Weak => "weak",
            Level::Own => "self",
            Level::Monotonic => "monotonic",
            Level::Peer => "peer",
            Level::Causal => "causal",
            Level::Complete => "complete",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_named_models_exist_and_imply_the_weakest() {
        for id in NAMED {
            assert_eq!(ObjectModel::named(id).unwrap().id, id);
            assert!(object_model_implies(id, "return-value"));
            assert!(object_model_implies("linearizability", id));
        }
        assert!(ObjectModel::named("sc").is_none());
        assert!(!object_model_implies("read-my-writes", "monotonic-reads"));
        assert!(!object_model_implies("happens-before-visibility", "monotonic-reads"));
    }

    #[test]
    fn levels_become_axioms_of_methods() {
        let levels = [("size".into(), Level::Weak), ("get".into(), Level::Own)];
        let model = ObjectModel::of_levels(&levels, Level::Complete, &["put", "get", "size"]);
        let shown: Vec<String> = model.axioms.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "vis[put,get] >= po",
                "vis[put] >= vis ; po",
                "vis[put] >= po ; vis",
                "vis[put] >= vis ; vis",
                "vis[put] >= lin",
            ]
        );
        assert_eq!(model.id, "levels(put=complete,get=self,size=weak)");
        assert_eq!(ObjectModel::parse("model", &model.id), Ok(model));
        let errors = parse_levels("levels", "size=weak,get,put=none").unwrap_err();
        let shown: Vec<(u64, &str)> = errors.iter().map(|e| (e.column, &*e.message)).collect();
        assert_eq!(
            shown,
            [
                (11, "expected a method and its level, found `get`"),
                (15, "expected a method and its level, found `put=none`"),
            ]
        );
        for level in Level::ALL {
            assert_eq!(Level::named(&level.to_string()), Some(level));
        }
    }
}
