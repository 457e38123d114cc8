//! `consistory convert`: converts histories between formats.

use std::path::PathBuf;

use consistory_formats::{Input, ReadError, Writer, inputs, read_within};
use consistory_verdict::Budget;

use crate::args::ConvertArgs;
use crate::error::{CliError, OK, UNREADABLE, report};
use crate::limits;
use crate::output::Output;

/// Converts every history of every input; malformed inputs are reported and skipped.
pub(crate) fn convert(args: &ConvertArgs) -> Result<u8, CliError> {
    let mut output = Output::open(args.output.as_deref())?;
    let mut writer = Writer::new(args.to, &mut output);
    let mut code = OK;
    // Converting has a memory limit and no time limit.
    let budget = Budget::unlimited().with_gauge(limits::gauge()).with_memory(args.memory);
    for input in find_inputs(&args.input.paths) {
        let histories: Box<dyn Iterator<Item = _>> = match input {
            Ok(input) => Box::new(read_within(&input, args.input.from, budget.clone())),
            Err(error) => Box::new(std::iter::once(Err(error))),
        };
        for history in histories {
            match history {
                Ok(history) if args.without_times => writer.write(&history.without_times())?,
                Ok(history) => writer.write(&history)?,
                Err(error) => {
                    report(&error.into());
                    code = UNREADABLE;
                }
            }
        }
    }
    drop(writer);
    output.finish()?;
    Ok(code)
}

/// Finds the inputs that paths denote; a path without inputs is an error.
pub(crate) fn find_inputs(paths: &[PathBuf]) -> Vec<Result<Input, ReadError>> {
    paths
        .iter()
        .flat_map(|path| match inputs(std::slice::from_ref(path)) {
            Ok(found) => found.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
        .collect()
}
