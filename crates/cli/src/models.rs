//! `consistory models`: the catalogue and its lattice.

use std::io::Write;
use std::path::Path;

use consistory_draw::{LatticeEdge, LatticeNode, lattice_svg, table};
use consistory_models::{catalogue, find, lattice, lattice_dot, lattice_text};

use crate::args::{LatticeFormat, ModelsArgs, ModelsCommand};
use crate::error::{CliError, OK};
use crate::select::{is_path, load, unknown};

/// Lists the catalogue, shows a definition, or draws the lattice.
pub(crate) fn models(args: &ModelsArgs) -> Result<u8, CliError> {
    let text = match &args.command {
        None => list(),
        Some(ModelsCommand::Show { model }) => show(model)?,
        Some(ModelsCommand::Lattice { format: LatticeFormat::Text }) => lattice_text(),
        Some(ModelsCommand::Lattice { format: LatticeFormat::Dot }) => lattice_dot(),
        Some(ModelsCommand::Lattice { format: LatticeFormat::Svg }) => svg(),
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(CliError::output)?;
    Ok(OK)
}

fn list() -> String {
    let rows: Vec<Vec<String>> = catalogue()
        .iter()
        .map(|model| vec![model.id.to_owned(), model.title.clone(), model.source.clone()])
        .collect();
    let mut text = table(&["id", "model", "source"], &rows);
    text += "\n`consistory models show ID` prints a definition, `consistory models lattice` what \
             implies what.\n";
    text
}

fn show(model: &str) -> Result<String, CliError> {
    if is_path(model) {
        // Loading it reports its errors; what is shown is the text as it stands.
        load(Path::new(model))?;
        return std::fs::read_to_string(model)
            .map_err(|error| CliError::file("read", Path::new(model), error));
    }
    find(model).map(|model| model.text.to_owned()).map_err(unknown)
}

fn svg() -> String {
    let lattice = lattice();
    let place = |id: &str| lattice.nodes.iter().position(|(node, _)| *node == id);
    let top = lattice.nodes.iter().map(|(_, rank)| *rank).max().unwrap_or(0);
    let nodes: Vec<LatticeNode> = lattice
        .nodes
        .iter()
        .map(|&(id, rank)| {
            let title = find(id).map(|model| model.title.clone()).unwrap_or_default();
            LatticeNode { id: id.to_owned(), title, level: top - rank, note: String::new() }
        })
        .collect();
    let edges: Vec<LatticeEdge> = lattice
        .edges
        .iter()
        .filter_map(|edge| {
            let is_proved = edge.standing.is_proved();
            Some(LatticeEdge {
                stronger: place(edge.from)?,
                weaker: place(edge.to)?,
                label: if is_proved { String::new() } else { "conjecture".to_owned() },
                dashed: !is_proved,
            })
        })
        .collect();
    lattice_svg(&nodes, &edges)
}
