//! The part of the page about isolation levels.

use std::fmt::Write as _;

use consistory_atlas::{Question, ScanOptions, Space, scan_levels};
use consistory_models::{ClientOrder, Definition, implies, levels, on_single_operations};

use crate::{separation, shown};

/// Writes a table of all pairs of levels and the smallest histories that separate them.
pub(crate) fn section(options: &ScanOptions) -> String {
    const MAX_OPERATIONS: usize = 4;
    let ids: Vec<&str> = levels().iter().map(|level| level.id).collect();
    let mut questions = Vec::new();
    for (allows, from) in ids.iter().enumerate() {
        for (forbids, to) in ids.iter().enumerate() {
            if implies(from, to).is_none() {
                questions.push(Question { allows, forbids });
            }
        }
    }
    let definitions: Vec<&Definition> = levels().iter().map(|level| &level.definition).collect();
    let space = Space::of(MAX_OPERATIONS);
    let found = scan_levels(&definitions, &questions, ClientOrder::Session, &space, options);
    let mut histories: Vec<String> = found.answers.iter().flatten().map(shown).collect();
    histories.sort_by_key(|text| (text.matches('(').count(), text.lines().count(), text.clone()));
    histories.dedup();
    let mut page = "\n## Isolation levels\n\nThe same table for \
                    [isolation levels](isolation.md), with session order; histories of \
                    transactions of up to four operations suffice. Brackets enclose a transaction; \
                    an operation outside brackets is a transaction by itself.\n\n"
        .to_owned();
    let _ = writeln!(page, "| | {} |", ids.join(" | "));
    let _ = writeln!(page, "| --- {}|", "| --- ".repeat(ids.len()));
    let number = |text: &str| histories.iter().position(|known| known == text).map(|at| at + 1);
    for (allows, from) in ids.iter().enumerate() {
        let cells: Vec<String> = (0..ids.len())
            .map(|forbids| {
                let asked = questions.iter().position(|q| *q == Question { allows, forbids });
                match asked.map(|at| &found.answers[at]) {
                    None if allows == forbids => String::new(),
                    None => "⇒".to_owned(),
                    Some(Some(history)) => match number(&shown(history)) {
                        Some(number) => format!("[L{number}](#level-history-{number})"),
                        None => "?".to_owned(),
                    },
                    Some(None) => "?".to_owned(),
                }
            })
            .collect();
        let _ = writeln!(page, "| **{from}** | {} |", cells.join(" | "));
    }
    page += "\n";
    for level in levels() {
        for claim in level.definition.implies() {
            let _ =
                writeln!(page, "- **{}** ⇒ **{}**, {}", level.id, claim.implied, claim.standing);
        }
    }
    for same in on_single_operations() {
        let _ = writeln!(
            page,
            "- **{}** is **{}** where every transaction is one operation, {}",
            same.level, same.model, same.standing
        );
    }
    for (i, text) in histories.iter().enumerate() {
        let pairs: Vec<(&str, &str)> = questions
            .iter()
            .zip(&found.answers)
            .filter(|(_, answer)| answer.as_ref().is_some_and(|history| shown(history) == *text))
            .map(|(question, _)| (ids[question.allows], ids[question.forbids]))
            .collect();
        let number = i + 1;
        let _ = writeln!(
            page,
            "\n### Level history {number}\n\n{}\n\n```text\n{text}```",
            separation(&pairs)
        );
    }
    page
}
