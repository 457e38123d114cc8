//! `consistory litmus machines`: the operational models, and their diagrams.

use std::path::Path;

use consistory::is_path;
use consistory_formats::read_text;
use consistory_litmus::operational::{Machine, diagram, read_machine, svg_diagram};

use crate::args::{DiagramFormat, MachinesArgs};
use crate::error::{CliError, OK};
use crate::output;
use crate::output::table;

/// Lists the machines, or draws one.
pub(crate) fn machines(args: &MachinesArgs) -> Result<u8, CliError> {
    let text = match &args.machine {
        None => list(),
        Some(name) => {
            let machine = find(name)?;
            match args.format {
                DiagramFormat::Text => diagram(&machine),
                DiagramFormat::Svg => svg_diagram(&machine),
            }
        }
    };
    output::print(text)?;
    Ok(OK)
}

/// Finds a machine by its id, or reads it.
fn find(name: &str) -> Result<Machine, CliError> {
    if is_path(name) {
        let path = Path::new(name);
        let text = read_text(path).map_err(|error| CliError::file("read", path, error))?;
        return read_machine(name, &text).map_err(CliError::from);
    }
    Machine::by_id(&name.to_lowercase()).ok_or_else(|| {
        let known: Vec<&str> = Machine::ALL.iter().map(|machine| machine.id).collect();
        let hint = format!("there are {}, and paths", known.join(", "));
        CliError::with_hint(format!("there is no machine `{name}`"), hint)
    })
}

fn list() -> String {
    let rows: Vec<Vec<String>> = Machine::ALL
        .iter()
        .map(|machine| {
            let stage = |stage: &&[consistory_litmus::operational::Part]| {
                stage.iter().map(|part| part.name).collect::<Vec<_>>().join("&")
            };
            let pipe: Vec<String> = machine.stages.iter().map(stage).collect();
            vec![machine.id.to_owned(), pipe.join(" > "), machine.summary.to_owned()]
        })
        .collect();
    table(&["id", "wiring", "what it does"], &rows)
}
