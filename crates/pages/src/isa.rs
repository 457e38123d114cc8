//! The page of a litmus test of an instruction set or of C: every outcome with its execution.

use std::collections::BTreeSet;

use consistory_litmus::{FinalState, IsaExecution, IsaOutcomes, IsaTest};
use consistory_report::{Case, ResultRow};
use consistory_scene::{Edge, Emphasis, Lane, Node, Role, Scene};
use serde_json::Value;

use crate::cycle::mark_cycle;

/// The verdict of a model on a test.
pub struct IsaResult<'a> {
    /// Name of the model.
    pub title: &'a str,
    /// Outcomes that it allows, or why they are unknown.
    pub outcomes: Result<&'a IsaOutcomes, &'a str>,
    /// One word for the overview, for example `allowed`.
    pub word: &'a str,
}

/// Builds the scene of an execution: one lane per thread, and one for relevant initial values.
///
/// A cycle that sequential consistency forbids is highlighted.
pub fn isa_execution_scene(title: impl Into<String>, execution: &IsaExecution) -> Scene {
    let mut scene = Scene::new(title);
    let threads = execution.events.iter().filter_map(|event| event.thread).max();
    let threads = threads.map_or(0, |last| last + 1);
    scene.lanes.push(Lane::new("initially"));
    scene.lanes.extend((0..threads).map(|thread| Lane::new(format!("P{thread}"))));
    let mut next_row = vec![0; threads + 1];
    let mut last_of: Vec<Option<usize>> = vec![None; threads + 1];
    for (index, event) in execution.events.iter().enumerate() {
        let lane = event.thread.map_or(0, |thread| thread + 1);
        let row = next_row[lane];
        next_row[lane] += 1;
        let id = match event.thread {
            Some(thread) => format!("P{thread}:{row}"),
            None => format!("init:{row}"),
        };
        let emphasis = match event.thread {
            Some(_) => Emphasis::Proof,
            None => Emphasis::default(),
        };
        scene.nodes.push(Node { emphasis, ..Node::new(id, lane, row, event.label.clone()) });
        if event.thread.is_some()
            && let Some(before) = last_of[lane].replace(index)
        {
            scene.edges.push(Edge { role: Role::Context, ..Edge::new(before, index, "po") });
        }
    }
    for &(from, to, relation) in &execution.edges {
        let name = |event: usize| &scene.nodes[event].lines[0];
        let why = match relation {
            "rf" => format!("{} reads what {} wrote.", name(to), name(from)),
            "co" => format!("{} takes effect after {}.", name(to), name(from)),
            "fr" => format!("{} reads a value that {} overwrites.", name(from), name(to)),
            "addr" => format!("The address of {} depends on {}.", name(to), name(from)),
            "data" => format!("The value of {} depends on {}.", name(to), name(from)),
            _ => format!("Whether {} happens depends on {}.", name(to), name(from)),
        };
        scene.edges.push(Edge { why, ..Edge::new(from, to, relation) });
    }
    mark_cycle(&mut scene);
    scene
}

/// Builds the page of a test: one row per outcome, one column per model.
pub fn isa_case(source: &str, text: &str, test: &IsaTest, models: &[IsaResult<'_>]) -> Case {
    let mut columns = vec!["outcome"];
    columns.extend(models.iter().map(|model| model.title));
    columns.push("condition");
    let mut case = Case::new(test.name.as_str(), columns);
    case.beside = true;
    case.facts = vec![("file".to_owned(), source.to_owned())];
    for model in models {
        let said = match &model.outcomes {
            Ok(found) => {
                let plural = if found.states.len() == 1 { "" } else { "s" };
                format!("{} outcome{plural}, {}", found.states.len(), model.word)
            }
            Err(reason) => format!("undecided, {reason}"),
        };
        case.facts.push((model.title.to_owned(), said));
    }
    let found = models.iter().flat_map(|model| model.outcomes.iter());
    let every: BTreeSet<&FinalState> = found.flat_map(|found| &found.states).collect();
    for state in every {
        let shown = isa_assignment(test, state);
        let mut cells: Vec<Value> = vec![shown.as_str().into()];
        let mut row = ResultRow::default();
        for model in models {
            let title = model.title;
            let (word, scene) = match &model.outcomes {
                Ok(found) if found.states.contains(state) => {
                    let execution = found.executions.get(state);
                    let title = format!("{title} allows {shown}");
                    ("allows", execution.map(|execution| isa_execution_scene(title, execution)))
                }
                Ok(_) => {
                    let mut scene = Scene::new(format!("{title} forbids {shown}"));
                    scene.caption = "No execution of this model has this outcome.".to_owned();
                    ("forbids", Some(scene))
                }
                Err(_) => ("is undecided about", None),
            };
            cells.push(
                match word {
                    "allows" => "allowed",
                    "forbids" => "forbidden",
                    _ => "undecided",
                }
                .into(),
            );
            row.text += &format!("{title} {word} {shown}.\n");
            if let Some(scene) = scene {
                if word == "allows" && !scene.caption.is_empty() {
                    row.text += &format!("  {}\n", scene.caption);
                }
                row.scenes.push(case.scenes.len());
                case.scenes.push(scene.into());
            }
        }
        cells.push(if test.satisfies(state) { "holds" } else { "" }.into());
        row.cells = cells;
        case.rows.push(row);
    }
    case.text = text.to_owned();
    case
}

/// Formats an outcome as `1:X0=1 1:X2=0`.
pub fn isa_assignment(test: &IsaTest, state: &FinalState) -> String {
    let pairs = test.shown(state);
    let pairs: Vec<String> = pairs.iter().map(|(name, shown)| format!("{name}={shown}")).collect();
    pairs.join(" ")
}
