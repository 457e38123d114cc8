//! The isolation levels of `models/`: definitions about transactions, read once.

use std::sync::LazyLock;

use consistory_definition::Standing;

use crate::catalogue::{Model, embedded, model};

/// The ids of the levels, from weak to strong; `pc` and `psi` are incomparable.
pub(crate) const LEVELS: [(&str, &str); 7] = embedded!["rc", "ra", "tcc", "pc", "psi", "si", "ser"];

static CATALOGUE: LazyLock<Vec<Model>> =
    LazyLock::new(|| LEVELS.into_iter().map(|(id, text)| model(id, text)).collect());

/// Returns the isolation levels, each after the levels that it implies.
pub fn levels() -> &'static [Model] {
    &CATALOGUE
}

/// Finds an isolation level by its id.
pub fn find_level(id: &str) -> Option<&'static Model> {
    levels().iter().find(|level| level.id == id)
}

/// A level that equals a model of registers if every transaction is a single operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SingleOperations {
    /// The id of the level.
    pub level: &'static str,
    /// The id of the model of registers.
    pub model: &'static str,
    /// Standing of the equality: proved or checked.
    pub standing: Standing,
}

/// Returns the levels that equal a model of registers if every transaction is a single operation
/// and the clients observe session order.
pub fn on_single_operations() -> [SingleOperations; 2] {
    let proved = |by: &str| Standing::Proved { by: by.to_owned() };
    [
        SingleOperations {
            level: "tcc",
            model: "ccv",
            standing: proved(
                "forced(causes+) is then cf(co), and a topological order gives the store order",
            ),
        },
        SingleOperations {
            level: "ser",
            model: "sc",
            standing: proved("the relations of both are then the same"),
        },
    ]
}
