//! `consistory record`: records histories of real systems.

use consistory_formats::{Format, Writer};
use consistory_live::{CpuOptions, record_cpu};

use crate::args::{RecordArgs, RecordCommand, RecordCpuArgs};
use crate::error::{CliError, OK};
use crate::output::Output;

/// Records histories and writes them in order.
pub(crate) fn record(args: &RecordArgs) -> Result<u8, CliError> {
    match &args.command {
        RecordCommand::Cpu(args) => cpu(args),
    }
}

fn cpu(args: &RecordCpuArgs) -> Result<u8, CliError> {
    let options = CpuOptions {
        threads: args.threads,
        operations: args.operations,
        variables: args.variables,
        packed: args.packed,
        read_share: args.reads,
        fence_share: args.fences,
        rmw_share: args.rmws,
        skew: args.skew,
        rounds: args.rounds,
        seed: args.seed,
    };
    let by_name = args.output.as_deref().and_then(Format::from_path);
    let format = args.to.or(by_name).unwrap_or(Format::Hist);
    let mut output = Output::open(args.output.as_deref())?;
    let mut writer = Writer::new(format, &mut output);
    let mut failed = None;
    record_cpu(&options, |history| match writer.write(&history) {
        Ok(()) => true,
        Err(error) => {
            failed = Some(error);
            false
        }
    })
    .map_err(|error| CliError::usage(error.to_string()))?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    drop(writer);
    output.finish()?;
    Ok(OK)
}
