//! `consistory simulate`: random runs of a protocol, as histories or descriptors.

use std::io::Write;

use consistory_formats::{Format, Writer};
use consistory_protocol::descriptor::Symbol;
use consistory_protocol::{Monitor, System, TraceNames, history, simulate as run};

use crate::args::SimulateArgs;
use crate::error::{CliError, OK};
use crate::output::Output;
use crate::verify::read_model;

/// Generates runs with consecutive seeds.
pub(crate) fn simulate(args: &SimulateArgs) -> Result<u8, CliError> {
    let model = read_model(&args.path, &args.constants)?;
    let system = model.tracked().map_err(CliError::from)?;
    if args.descriptor && args.count != 1 {
        return Err(CliError::usage("a descriptor is of one run"));
    }
    let by_name = args.output.as_deref().and_then(Format::from_path);
    let format = args.to.or(by_name).unwrap_or(Format::Hist);
    let mut output = Output::open(args.output.as_deref())?;
    if args.descriptor {
        write_descriptor(args, &system, &mut output)?;
    } else {
        let names = TraceNames { procs: system.proc_names(), blocks: system.block_names() };
        let mut writer = Writer::new(format, &mut output);
        for seed in (0..args.count).map(|i| args.seed.wrapping_add(i)) {
            let simulation = run(&system, args.operations, seed);
            let history = history(&names, &simulation.effects)
                .map_err(|error| CliError::usage(error.to_string()))?;
            writer.write(&history)?;
        }
    }
    output.finish()?;
    Ok(OK)
}

/// Writes the descriptor of a run, up to the point at which its constraint graph fails.
///
/// A run may end with stores that are not serialized yet; the descriptor then ends with an order
/// for them.
fn write_descriptor(
    args: &SimulateArgs,
    system: &System,
    output: &mut Output,
) -> Result<(), CliError> {
    let shape = system.shape().expect("a system that tracks has a shape");
    let mut monitor = Monitor::new(shape).with_homes(&system.location_homes());
    let mut write = |symbols: &[Symbol]| -> Result<(), CliError> {
        symbols.iter().try_for_each(|symbol| writeln!(output, "{symbol}").map_err(CliError::output))
    };
    let mut failed = None;
    for effect in &run(system, args.operations, args.seed).effects {
        let stepped = monitor.step(effect);
        write(monitor.symbols())?;
        if let Err(failure) = stepped {
            failed = Some(failure);
            break;
        }
    }
    match failed {
        None => write(&monitor.ending().unwrap_or_default()),
        Some(failure) => writeln!(output, "# {failure}").map_err(CliError::output),
    }
}
