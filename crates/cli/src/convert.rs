//! `consistory convert` and `consistory generate`: histories out.

use std::io::{self, Write};
use std::path::PathBuf;

use consistory_formats::{Format, Input, ReadError, Writer, inputs, read};
use consistory_generate::{
    CallStep, Event, EventAction, ObjectWorkload, PlantOptions, Plants, SharedObject, Workload,
    generate, generate_calls, plant, stream, stream_calls,
};

use crate::args::{ConvertArgs, GenerateArgs};
use crate::error::{CliError, OK, UNREADABLE, report};
use crate::output::Output;
use crate::watch::json_value;

/// Converts every history of every input; a malformed input is reported and left out.
pub(crate) fn convert(args: &ConvertArgs) -> Result<u8, CliError> {
    let mut output = Output::open(args.output.as_deref())?;
    let mut writer = Writer::new(args.to, &mut output);
    let mut code = OK;
    for input in find_inputs(&args.input.paths) {
        let histories: Box<dyn Iterator<Item = _>> = match input {
            Ok(input) => Box::new(read(&input, args.input.from)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        };
        for history in histories {
            match history {
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

/// Finds the inputs behind paths; a path that stands for none is an error of its own.
pub(crate) fn find_inputs(paths: &[PathBuf]) -> Vec<Result<Input, ReadError>> {
    paths
        .iter()
        .flat_map(|path| match inputs(std::slice::from_ref(path)) {
            Ok(found) => found.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
        .collect()
}

/// Makes histories with consecutive seeds, one after the other.
pub(crate) fn generate_histories(args: &GenerateArgs) -> Result<u8, CliError> {
    if let Some(object) = args.object {
        return generate_objects(args, object);
    }
    let workload = Workload {
        sessions: args.sessions,
        operations: args.operations,
        variables: args.variables,
        read_share: args.reads,
        rmw_share: args.rmws,
        fence_share: args.fences,
        skew: args.skew,
        values: args.values,
        lag: args.lag,
        seed: args.seed,
    };
    workload.validate().map_err(|error| CliError::usage(error.to_string()))?;
    let by_name = args.output.as_deref().and_then(Format::from_path);
    let format = args.to.or(by_name).unwrap_or(Format::Hist);
    let mut output = Output::open(args.output.as_deref())?;
    let seeds = (0..args.count).map(|i| args.seed.wrapping_add(i));
    if format == Format::Jsonl && args.plant == 0 {
        // Events come out in the order of execution, so the history need not fit in memory.
        for seed in seeds {
            let mut events = stream(&Workload { seed, ..workload.clone() }, args.memory);
            let name = (args.count > 1).then_some(seed);
            events.try_for_each(|event| write_event(event, name, &mut output))?;
        }
        output.finish()?;
        return Ok(OK);
    }
    let mut writer = Writer::new(format, &mut output);
    for seed in seeds {
        let mut history = generate(&Workload { seed, ..workload.clone() }, args.memory);
        if args.plant > 0 {
            let plants = Plants::Count(args.plant);
            history = plant(&history, &PlantOptions { plants, distance: args.distance, seed });
        }
        writer.write(&history)?;
    }
    drop(writer);
    output.finish()?;
    Ok(OK)
}

/// Makes histories of an object's calls.
fn generate_objects(args: &GenerateArgs, object: SharedObject) -> Result<u8, CliError> {
    if args.sessions == 0 {
        return Err(CliError::usage("a workload needs at least one session"));
    }
    let workload = ObjectWorkload {
        object,
        sessions: args.sessions,
        operations: args.operations,
        read_share: args.reads,
        pending_share: args.pending,
        plants: args.plant,
        distance: args.distance,
        seed: args.seed,
    };
    let by_name = args.output.as_deref().and_then(Format::from_path);
    let format = args.to.or(by_name).unwrap_or(Format::Hist);
    let mut output = Output::open(args.output.as_deref())?;
    if args.events {
        write_call_events(&workload, args.unannounced, &mut output).map_err(CliError::output)?;
        output.finish()?;
        return Ok(OK);
    }
    let mut writer = Writer::new(format, &mut output);
    for i in 0..args.count {
        let seed = args.seed.wrapping_add(i);
        writer.write(&generate_calls(&ObjectWorkload { seed, ..workload.clone() }))?;
    }
    drop(writer);
    output.finish()?;
    Ok(OK)
}

/// Writes an object's calls as they happen; of a share of those that never return nothing is said,
/// and their sessions go on under other names.
fn write_call_events(
    workload: &ObjectWorkload,
    unannounced: f64,
    out: &mut Output,
) -> io::Result<()> {
    let mut names: Vec<u32> = (0..workload.sessions).collect();
    let mut next_name = workload.sessions;
    let mut owed = 0.0;
    for (session, step) in stream_calls(workload) {
        let name = &mut names[session as usize];
        match step {
            CallStep::Invoke { method, args } => {
                let args: Vec<String> = args.iter().map(ToString::to_string).collect();
                let args = args.join(",");
                writeln!(
                    out,
                    r#"{{"type":"invoke","session":"t{name}","call":"{method}","args":[{args}]}}"#
                )?;
            }
            CallStep::Return(None) => writeln!(out, r#"{{"type":"ok","session":"t{name}"}}"#)?,
            CallStep::Return(Some(value)) => {
                let value = json_value(&value);
                writeln!(out, r#"{{"type":"ok","session":"t{name}","returns":{value}}}"#)?;
            }
            CallStep::Lost => {
                owed += unannounced;
                if owed < 1.0 {
                    writeln!(out, r#"{{"type":"info","session":"t{name}"}}"#)?;
                } else {
                    owed -= 1.0;
                    *name = next_name;
                    next_name += 1;
                }
            }
        }
    }
    Ok(())
}

/// Writes an event as a JSON line; `name` is the history's if there are several.
fn write_event(event: Event, name: Option<u64>, out: &mut Output) -> Result<(), CliError> {
    let Event { session, action } = event;
    match action {
        EventAction::Read { variable, value } => write!(
            out,
            r#"{{"session":"t{session}","op":"read","key":"x{variable}","value":{value}"#
        ),
        EventAction::Write { variable, value } => write!(
            out,
            r#"{{"session":"t{session}","op":"write","key":"x{variable}","value":{value}"#
        ),
        EventAction::Rmw { variable, read, write } => write!(
            out,
            r#"{{"session":"t{session}","op":"rmw","key":"x{variable}","read":{read},"value":{write}"#
        ),
        EventAction::Fence => write!(out, r#"{{"session":"t{session}","op":"fence""#),
    }
    .and_then(|()| match name {
        Some(name) => writeln!(out, r#","history":"{name}"}}"#),
        None => writeln!(out, "}}"),
    })
    .map_err(CliError::output)
}
