//! `consistory litmus contrast`: finds the smallest test that separates two models.

use std::fmt::Write as _;

use consistory_litmus::{
    Bound, Contrast, ContrastOptions, Difference, Outcomes, Redundant, Wanted, contrast, count,
    sufficient_bound, write_table,
};
use serde_json::{Map, Value, json};

use super::select::{Model, find};
use crate::args::{LitmusContrastArgs, OutputFormat};
use crate::error::{CliError, OK, UNDECIDED, VIOLATION, report};
use crate::output::table;
use crate::{limits, output};

/// Prints the first difference between two models, or all minimal ones.
pub(crate) fn contrast_models(args: &LitmusContrastArgs) -> Result<u8, CliError> {
    if super::mapped::is_mapped(args) {
        return super::mapped::contrast(args);
    }
    if args.only.is_some() || args.decorations.is_some() {
        return Err(CliError::with_hint(
            "--only and --decorations are for models of instruction sets and C".to_owned(),
            "--mapping x86 runs these models on tests of x86".to_owned(),
        ));
    }
    if !args.include.is_empty() || args.bell.is_some() || !args.variant.is_empty() {
        return Err(CliError::with_hint(
            "--include, --bell and --variant have no effect here: they are for models in cat",
            "leave them out, or name a path of a .cat file",
        ));
    }
    let accesses = args.bound.unwrap_or(6);
    let left = find(&args.left, args.left_style)?;
    let right = find(&args.right, args.right_style)?;
    let knows_dependencies = |model: &Model| model.table().is_some_and(|t| t.knows_dependencies());
    // A protocol has no fences, and a fixed number of processors and blocks.
    let protocols = || [&left, &right].into_iter().filter_map(|model| model.protocol());
    let threads = protocols().map(|protocol| protocol.size().0).min().unwrap_or(accesses);
    let locations = protocols().map(|protocol| protocol.size().1).min().unwrap_or(usize::MAX);
    let bound = Bound {
        accesses,
        threads: args.threads.unwrap_or(accesses).min(threads),
        per_thread: args.per_thread.unwrap_or(accesses),
        locations: args.locations.min(locations),
        fences: !args.no_fences && protocols().next().is_none(),
        dependencies: args.dependencies
            && (knows_dependencies(&left) || knows_dependencies(&right)),
    };
    let options = ContrastOptions {
        bound,
        redundant: if args.keep_redundant { Redundant::Keep } else { Redundant::Drop },
        wanted: if args.all { Wanted::Minimal } else { Wanted::First },
        budget: limits::budget(args.budget).with_memory(args.memory.memory),
        jobs: args.jobs.count(),
    };
    let found = match contrast(left.semantics(), right.semantics(), &options) {
        Ok(found) => found,
        Err(error) => {
            report(&CliError::usage(format!("undecided: {error}")));
            return Ok(UNDECIDED);
        }
    };
    let equality = match found.differences.is_empty() {
        true => equality(&left, &right, &options),
        false => Equality::Bounded,
    };
    let text = match args.format {
        OutputFormat::Text => {
            output::for_terminal(text(args, &left, &right, &bound, &found, equality))
        }
        OutputFormat::Json => json_text(&left, &right, &bound, &found, equality),
    };
    output::print(text)?;
    Ok(if found.differences.is_empty() { OK } else { VIOLATION })
}

/// Scope of the equality of two models that no program within the bound separates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Equality {
    /// The models have the same rules.
    SameRules,
    /// No program of two threads and six accesses separates the models, which is sufficient for
    /// them.
    Proved,
    /// A program of this number of accesses, which exceeds the bound, separates the models.
    Broken(usize),
    /// Nothing is known beyond the bound.
    Bounded,
}

/// For some models, two threads and six accesses are sufficient: runs these programs, too.
fn equality(left: &Model, right: &Model, options: &ContrastOptions) -> Equality {
    let Some((left, right)) = left.table().zip(right.table()) else { return Equality::Bounded };
    if left.has_rules_of(right) {
        return Equality::SameRules;
    }
    let Some(enough) = sufficient_bound(left, right) else { return Equality::Bounded };
    let bound = options.bound;
    let is_covered = bound.accesses >= enough.accesses
        && bound.threads >= enough.threads
        && bound.per_thread >= enough.accesses
        && bound.locations >= enough.locations
        && bound.fences
        && (bound.dependencies || !enough.dependencies);
    if is_covered {
        return Equality::Proved;
    }
    let options = ContrastOptions { bound: enough, wanted: Wanted::First, ..options.clone() };
    match contrast(left, right, &options) {
        Ok(found) => match found.differences.first() {
            Some(difference) => Equality::Broken(difference.shape.accesses()),
            None => Equality::Proved,
        },
        Err(_) => Equality::Bounded,
    }
}

fn text(
    args: &LitmusContrastArgs,
    left: &Model,
    right: &Model,
    bound: &Bound,
    found: &Contrast,
    equality: Equality,
) -> String {
    let is_own = left.is_own() || right.is_own();
    let (left, right) = (left.title(), right.title());
    let mut text = String::new();
    if found.differences.is_empty() {
        let within = format!(
            "{left} and {right} are equal on all programs of up to {} accesses and {} addresses",
            bound.accesses, bound.locations
        );
        let _ = match equality {
            Equality::SameRules => {
                writeln!(text, "{left} and {right} are equal: they keep the same pairs in order")
            }
            Equality::Proved => writeln!(
                text,
                "{left} and {right} are equal: no program of two threads and six accesses tells \
                 them apart"
            ),
            Equality::Broken(accesses) => {
                // A difference within the bound was excluded by another option.
                let which = match accesses > bound.accesses {
                    true => "",
                    false => " with any fences and dependencies (--dependencies)",
                };
                writeln!(text, "{within}, but not on all of {accesses} accesses{which}")
            }
            Equality::Bounded => writeln!(text, "{within}"),
        };
    }
    if found.differences.is_empty() && !args.keep_redundant && is_own {
        text += "note: redundant programs were not run, which may miss a difference from a definition \
                 of your own; --keep-redundant runs them\n";
    }
    for (at, difference) in found.differences.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        text += &show(difference, &left, &right);
    }
    if args.all && !found.differences.is_empty() {
        let _ = writeln!(
            text,
            "\n{} minimal difference{} of up to {} accesses",
            found.differences.len(),
            if found.differences.len() == 1 { "" } else { "s" },
            bound.accesses
        );
    }
    if args.explain {
        let rows: Vec<Vec<String>> = found
            .run
            .iter()
            .enumerate()
            .map(|(at, run)| {
                let counts = count(bound, at + 1);
                [at as u64 + 1, counts.plain, counts.symmetric, counts.connected, *run as u64]
                    .iter()
                    .map(ToString::to_string)
                    .collect()
            })
            .collect();
        let header = ["accesses", "programs", "up to symmetry", "not redundant", "run"];
        text.push('\n');
        text += &table(&header, &rows);
    }
    text
}

fn show(difference: &Difference, left: &str, right: &str) -> String {
    let mut text = write_table(&difference.program, None);
    let names = difference.program.observed_names();
    for (title, only) in [(left, &difference.only_left), (right, &difference.only_right)] {
        for outcome in only {
            let values: Vec<String> =
                names.iter().zip(&outcome.0).map(|(n, v)| format!("{n} = {v}")).collect();
            let _ = writeln!(text, "Only {title}: {}", values.join("; "));
        }
    }
    text
}

fn json_text(
    left: &Model,
    right: &Model,
    bound: &Bound,
    found: &Contrast,
    equality: Equality,
) -> String {
    let differences: Vec<Value> = found
        .differences
        .iter()
        .map(|difference| {
            let names = difference.program.observed_names();
            let outcomes = |outcomes: &Outcomes| -> Vec<Value> {
                let object = |outcome: &consistory_litmus::Outcome| {
                    let values = outcome.0.iter().map(|&value| json!(value));
                    Value::Object(names.iter().cloned().zip(values).collect::<Map<_, _>>())
                };
                outcomes.iter().map(object).collect()
            };
            json!({
                "program": write_table(&difference.program, None),
                "accesses": difference.shape.accesses(),
                "fences": difference.shape.fences(),
                "threads": difference.program.threads.len(),
                "only_left": outcomes(&difference.only_left),
                "only_right": outcomes(&difference.only_right),
            })
        })
        .collect();
    let relation = match (found.differences.is_empty(), equality) {
        (false, _) => "different",
        (true, Equality::SameRules | Equality::Proved) => "equal",
        (true, Equality::Broken(_) | Equality::Bounded) => "equal-up-to-bound",
    };
    let report = json!({
        "left": left.id,
        "left_style": left.style.as_str(),
        "right": right.id,
        "right_style": right.style.as_str(),
        "bound": bound.accesses,
        "relation": relation,
        "programs": found.run,
        "differences": differences,
    });
    format!("{report}\n")
}
