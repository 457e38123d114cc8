//! The page of a litmus test: every outcome, with a witness for each model.

use std::collections::BTreeMap;

use consistory_litmus::{Execution, Outcome, Outcomes, Test, write_table};
use consistory_report::{Case, ResultRow};
use consistory_scene::Scene;
use serde_json::Value;

use crate::execution::execution_scene;

/// Witness of an outcome.
pub enum Witness {
    /// An execution.
    Execution(Execution),
    /// Steps of an operational machine, one line each.
    Run(Vec<String>),
}

/// The verdict of a model on a test.
pub struct ModelResult<'a> {
    /// Name of the model.
    pub title: String,
    /// Outcomes that it allows, or why they are unknown.
    pub outcomes: Result<&'a Outcomes, String>,
    /// Witness of each outcome.
    pub witnesses: &'a BTreeMap<Outcome, Witness>,
    /// One word for the overview, for example `allowed`.
    pub word: String,
}

/// Builds the page of a test: one row per outcome, one column per model.
pub fn litmus_case(source: &str, test: &Test, models: &[ModelResult<'_>]) -> Case {
    let mut columns = vec!["outcome"];
    columns.extend(models.iter().map(|model| model.title.as_str()));
    let proposition = test.condition.as_ref().map(|condition| &condition.proposition);
    if proposition.is_some() {
        columns.push("condition");
    }
    let mut case = Case::new(test.name.as_str(), columns);
    case.beside = true;
    let threads = test.program.threads.len();
    case.facts =
        vec![("file".to_owned(), source.to_owned()), ("threads".to_owned(), threads.to_string())];
    for model in models {
        let said = match &model.outcomes {
            Ok(outcomes) => {
                let count = test.filtered(outcomes).count();
                let plural = if count == 1 { "" } else { "s" };
                format!("{count} outcome{plural}, {}", model.word)
            }
            Err(reason) => format!("undecided, {reason}"),
        };
        case.facts.push((model.title.clone(), said.trim_end_matches(", ").to_owned()));
    }
    let mut every = Outcomes::new();
    for model in models {
        let found = model.outcomes.iter();
        every.extend(found.flat_map(|outcomes| test.filtered(outcomes).cloned()));
    }
    for outcome in &every {
        let shown = assignment(test, outcome);
        let mut cells: Vec<Value> = vec![shown.as_str().into()];
        let mut row = ResultRow::default();
        let holds = proposition.map(|p| p.holds(&test.program, outcome));
        for model in models {
            let (word, witness) = match &model.outcomes {
                Ok(found) if found.contains(outcome) => ("allowed", model.witnesses.get(outcome)),
                Ok(_) => ("forbidden", None),
                Err(_) => ("undecided", None),
            };
            cells.push(word.into());
            match witness {
                Some(Witness::Execution(execution)) => {
                    let title = format!("{} allows {shown}", model.title);
                    let scene = execution_scene(&test.program, title, execution);
                    row.text += &format!("{} allows {shown}.\n  {}\n", model.title, scene.caption);
                    row.scenes.push(case.scenes.len());
                    case.scenes.push(scene.into());
                }
                Some(Witness::Run(lines)) => {
                    row.text += &format!("{} allows {shown}:\n", model.title);
                    lines.iter().for_each(|line| row.text += &format!("  {line}\n"));
                }
                None if word == "allowed" => {
                    row.text += &format!("{} allows {shown}.\n", model.title);
                }
                None if word == "forbidden" => {
                    let mut scene = Scene::new(format!("{} forbids {shown}", model.title));
                    scene.caption = "No execution of this model has this outcome.".to_owned();
                    row.scenes.push(case.scenes.len());
                    case.scenes.push(scene.into());
                    row.text += &format!(
                        "{} forbids {shown}: no execution has this outcome.\n",
                        model.title
                    );
                }
                None => row.text += &format!("{} is undecided about {shown}.\n", model.title),
            }
        }
        if let Some(holds) = holds {
            cells.push(if holds { "holds" } else { "" }.into());
        }
        row.cells = cells;
        case.rows.push(row);
    }
    case.text = write_table(&test.program, None);
    case
}

/// Formats an outcome as `r1=0 r2=1`.
pub fn assignment(test: &Test, outcome: &Outcome) -> String {
    let names = test.program.observed_names();
    let pairs = names.iter().zip(&outcome.0).map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join(" ")
}
