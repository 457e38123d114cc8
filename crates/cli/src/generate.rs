//! `consistory generate`: histories of simulated memories, stores and objects.

use std::io::{self, Write};

use consistory_formats::{Format, Writer};
use consistory_generate::{
    CallStep, DataKind, Event, EventAction, ExecutedTransaction, KeyChoice, ObjectWorkload,
    OperationAction, PlantOptions, Plants, SharedObject, TransactionWorkload, Workload, generate,
    generate_calls, generate_transactions, plant, stream, stream_calls, stream_transactions,
};
use consistory_history::{History, Interval, Status};

use crate::args::{GenerateArgs, TransactionArgs};
use crate::error::{CliError, OK};
use crate::output::Output;
use crate::watch::json_value;

/// Default number of appends after which a list is replaced by a new one.
const APPENDS_PER_LIST: u32 = 32;

/// Writes histories with consecutive seeds.
pub(crate) fn generate_histories(args: &GenerateArgs) -> Result<u8, CliError> {
    if let Some(object) = args.object {
        return generate_objects(args, object);
    }
    if args.transactions.transactions {
        return generate_transactional(args);
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
        // Events are written in the order of execution, so the history need not fit in memory.
        for seed in seeds {
            let mut events = stream(&Workload { seed, ..workload.clone() }, args.memory);
            let name = (args.count > 1).then_some(seed);
            events.try_for_each(|event| write_event(event, name, &mut output))?;
        }
        output.finish()?;
        return Ok(OK);
    }
    let mut writer = Writer::new(format, &mut output);
    // Histories of a batch in which fewer reads than asked for could be planted.
    let mut short = 0;
    for seed in seeds {
        let mut history = generate(&Workload { seed, ..workload.clone() }, args.memory);
        if args.plant > 0 {
            let plants = Plants::Count(args.plant);
            let planted = plant(&history, &PlantOptions { plants, distance: args.distance, seed });
            let read = |history: &History, op| {
                history.reads(op).map(|(_, value)| history.value(value).clone())
            };
            let count =
                history.ops().filter(|&op| read(&history, op) != read(&planted, op)).count();
            short += u64::from(count < args.plant);
            if count < args.plant && args.count == 1 {
                return Err(CliError::with_hint(
                    format!("only {count} of {} reads can get another value", args.plant),
                    "ask for more operations, or for fewer planted reads",
                ));
            }
            history = planted;
        }
        writer.write(&history)?;
    }
    drop(writer);
    output.finish()?;
    if short > 0 {
        let (count, plant) = (args.count, args.plant);
        let warning = format!("{short} of {count} histories have fewer than {plant} planted reads");
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
    Ok(OK)
}

/// Writes histories of an object's calls.
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

/// Writes histories of transactions.
fn generate_transactional(args: &GenerateArgs) -> Result<u8, CliError> {
    let workload = transaction_workload(args);
    workload.validate().map_err(|error| CliError::usage(error.to_string()))?;
    if args.plant > 0 && args.transactions.lists {
        return Err(CliError::with_hint(
            "--plant changes what reads of registers return",
            "for lists, plant anomalies: --anomaly g1c",
        ));
    }
    let by_name = args.output.as_deref().and_then(Format::from_path);
    let format = args.to.or(by_name).unwrap_or(Format::Hist);
    let mut output = Output::open(args.output.as_deref())?;
    let seeds = (0..args.count).map(|i| args.seed.wrapping_add(i));
    if format == Format::Jsonl && args.plant == 0 {
        for seed in seeds {
            let name = (args.count > 1).then_some(seed);
            let workload = TransactionWorkload { seed, ..workload.clone() };
            for (number, transaction) in stream_transactions(&workload).enumerate() {
                write_transaction(&transaction, number, name, &mut output)
                    .map_err(CliError::output)?;
            }
        }
        output.finish()?;
        return Ok(OK);
    }
    let mut writer = Writer::new(format, &mut output);
    for seed in seeds {
        let mut history = generate_transactions(&TransactionWorkload { seed, ..workload.clone() });
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

/// Returns the workload that the arguments describe.
fn transaction_workload(args: &GenerateArgs) -> TransactionWorkload {
    let options: &TransactionArgs = &args.transactions;
    let default_writes = if options.lists { APPENDS_PER_LIST } else { 0 };
    TransactionWorkload {
        store: options.level,
        order: options.order,
        sessions: args.sessions,
        operations: args.operations,
        keys: args.variables,
        sizes: options.size.clone(),
        read_share: args.reads,
        data: if options.lists { DataKind::Lists } else { DataKind::Registers },
        key_choice: match options.hot {
            Some((keys, share)) => KeyChoice::HotSpot { keys, share },
            None => KeyChoice::Zipf { skew: args.skew },
        },
        values: args.values,
        writes_per_key: options.writes_per_key.unwrap_or(default_writes),
        aborted_share: options.aborted,
        indeterminate_share: options.indeterminate,
        is_timed: options.times,
        lag: args.lag,
        anomalies: options.anomaly.clone(),
        seed: args.seed,
    }
}

/// Writes a transaction as JSON lines; `name` is the history's if there are several.
fn write_transaction(
    transaction: &ExecutedTransaction,
    number: usize,
    name: Option<u64>,
    out: &mut Output,
) -> io::Result<()> {
    let session = transaction.session;
    for operation in &transaction.operations {
        let key = operation.key;
        write!(out, r#"{{"session":"t{session}","txn":{number}"#)?;
        match &operation.action {
            OperationAction::Read(value) => {
                write!(out, r#","op":"read","key":"x{key}","value":{value}"#)?;
            }
            OperationAction::Write(value) => {
                write!(out, r#","op":"write","key":"x{key}","value":{value}"#)?;
            }
            OperationAction::ReadList(elements) => {
                write!(out, r#","op":"read","key":"x{key}","value":{elements:?}"#)?;
            }
            OperationAction::Append(element) => {
                write!(out, r#","op":"append","key":"x{key}","value":{element}"#)?;
            }
        }
        if let Some(Interval { start, end }) = operation.time {
            write!(out, r#","start":{start}"#)?;
            if let Some(end) = end {
                write!(out, r#","end":{end}"#)?;
            }
        }
        match transaction.status {
            Status::Ok => {}
            Status::Fail => write!(out, r#","status":"fail""#)?,
            Status::Unknown => write!(out, r#","status":"unknown""#)?,
        }
        if let Some(name) = name {
            write!(out, r#","history":"{name}""#)?;
        }
        out.write_all(b"}\n")?;
    }
    Ok(())
}

/// Writes an object's calls in the order of execution. For a share of the calls that never return
/// no event is written, and their sessions continue under other names.
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
