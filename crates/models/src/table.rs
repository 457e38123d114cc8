//! The table of models: one row per model, of every family.
//!
//! The rows of registers and transactions come from their definitions; the rows of objects, whose
//! axioms are in `consistory-spec`, are written here. To add a model, add its definition, which
//! produces its row; then a decider if needed, and a rule of the checker if it has a decider.

use std::sync::LazyLock;

use consistory_diagnostic::{did_you_mean, nearest};
use consistory_verdict::{BadRead, Family, Pattern};

use crate::catalogue::{Model, UnknownModel, catalogue};
use crate::levels::levels;

/// A row of the table: one model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Id on the command line.
    pub id: &'static str,
    /// Family of the model.
    pub family: Family,
    /// Full name.
    pub title: String,
    /// Meaning in one sentence.
    pub meaning: String,
    /// Publication that defines it.
    pub source: String,
    /// Patterns of violations of the model.
    pub patterns: Vec<Pattern>,
}

/// The models of objects: id, title, meaning.
const OBJECT_MODELS: [(&str, &str, &str); 6] = [
    (
        "linearizability",
        "Linearizability",
        "Each call takes effect at one moment between its start and its return.",
    ),
    (
        "happens-before-visibility",
        "Happens-before visibility",
        "Each call sees every call that returned before it started.",
    ),
    (
        "causal-convergence",
        "Causal convergence",
        "Each call sees what its session saw and did, what these calls saw, and all calls are \
         arbitrated in one order.",
    ),
    ("read-my-writes", "Read my writes", "Each call sees the earlier calls of its session."),
    (
        "monotonic-reads",
        "Monotonic reads",
        "Each call sees what the earlier calls of its session saw.",
    ),
    (
        "return-value",
        "Return-value consistency",
        "Each call returns what the object returns after some of the other calls.",
    ),
];

const OBJECT_SOURCE: &str = "Emmi and Enea, Monitoring Weak Consistency (CAV 2018)";
const LINEARIZABILITY_SOURCE: &str = "Herlihy and Wing, Linearizability (TOPLAS 1990)";

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let bad_reads = [Pattern::ThinAirRead, Pattern::FutureRead];
    let registers =
        catalogue().iter().map(|model| of_definition(model, Family::Registers, &bad_reads));
    let bad_reads = BadRead::ALL.map(|kind| Pattern::from(kind.name()));
    let transactions =
        levels().iter().map(|level| of_definition(level, Family::Transactions, &bad_reads));
    let objects = OBJECT_MODELS.into_iter().map(|(id, title, meaning)| Row {
        id,
        family: Family::Objects,
        title: title.to_owned(),
        meaning: meaning.to_owned(),
        source: match id {
            "linearizability" => LINEARIZABILITY_SOURCE.to_owned(),
            _ => OBJECT_SOURCE.to_owned(),
        },
        patterns: vec![Pattern::Unexplained],
    });
    registers.chain(transactions).chain(objects).collect()
});

/// Builds the row of a model that has a definition; `bad_reads` are patterns found before its
/// checks run.
fn of_definition(model: &Model, family: Family, bad_reads: &[Pattern]) -> Row {
    let checks = model.definition.checks().map(|check| Pattern::from(check.name));
    Row {
        id: model.id,
        family,
        title: model.title.clone(),
        meaning: model.meaning.clone(),
        source: model.source.clone(),
        patterns: bad_reads.iter().cloned().chain(checks).collect(),
    }
}

/// Returns one row per model: registers from weak to strong, isolation levels from weak to strong,
/// then objects from strong to weak.
pub fn table() -> &'static [Row] {
    &TABLE
}

/// Finds a model of any family by its id, without regard to case.
pub fn find_row(id: &str) -> Result<&'static Row, UnknownModel> {
    table().iter().find(|row| row.id.eq_ignore_ascii_case(id)).ok_or_else(|| {
        let hint = match did_you_mean(&similar_ids(id)) {
            Some(similar) => format!("{similar} {}", every_id()),
            None => every_id(),
        };
        UnknownModel { id: id.to_owned(), hint }
    })
}

/// Returns the ids most similar to `id`, or else the ids of the models whose full names are
/// similar.
fn similar_ids(id: &str) -> Vec<&'static str> {
    let by_id = nearest(id, table().iter().map(|row| row.id));
    if !by_id.is_empty() {
        return by_id;
    }
    let words = id.replace(['-', '_'], " ");
    let titles = nearest(&words, table().iter().map(|row| &*row.title));
    let rows = titles.iter().flat_map(|title| table().iter().filter(|row| row.title == **title));
    rows.map(|row| row.id).collect()
}

/// Lists the ids of all families.
fn every_id() -> String {
    let mut families: Vec<(Family, Vec<&str>)> = Vec::new();
    for row in table() {
        match families.iter_mut().find(|(family, _)| *family == row.family) {
            Some((_, ids)) => ids.push(row.id),
            None => families.push((row.family, vec![row.id])),
        }
    }
    let lists: Vec<String> = families
        .into_iter()
        .map(|(family, ids)| format!("models of {family} are {}", ids.join(", ")))
        .collect();
    lists.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_in_any_case_and_says_something() {
        for row in table() {
            assert_eq!(find_row(&row.id.to_uppercase()), Ok(row));
            for text in [&row.title, &row.meaning, &row.source] {
                assert!(!text.is_empty(), "{}", row.id);
            }
            assert!(!row.patterns.is_empty(), "{}", row.id);
        }
        let mut ids: Vec<&str> = table().iter().map(|row| row.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), table().len(), "no two models have one id");
    }

    #[test]
    fn an_unknown_id_lists_every_family_and_suggests_the_nearest() {
        let error = find_row("linearisability").unwrap_err();
        assert!(error.hint.starts_with("did you mean `linearizability`?"), "{}", error.hint);
        assert!(error.hint.contains("models of registers are cc, ccv"), "{}", error.hint);
        assert!(error.hint.contains("models of objects are linearizability"), "{}", error.hint);
        assert!(error.hint.contains("models of transactions are rc, ra, tcc"), "{}", error.hint);
        for (id, similar) in
            [("seri", "ser"), ("snapshot-isolation", "si"), ("sequential_consistency", "sc")]
        {
            let hint = find_row(id).unwrap_err().hint;
            assert!(hint.starts_with(&format!("did you mean `{similar}`")), "{hint}");
        }
    }
}
