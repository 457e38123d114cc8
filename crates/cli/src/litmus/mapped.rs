//! `consistory litmus contrast` for models in cat: programs of instruction sets and C.

use std::fmt::Write as _;
use std::path::Path;

use consistory::is_path;
use consistory_formats::read_text;
use consistory_litmus::{
    Allowing, Alphabet, Bound, Language, MappedContrast, MappedDifference, MappedError,
    MappedOptions, MappedSide, Mapping, Redundant, RenderedTest, Runner, Wanted, contrast_mapped,
    find_mapping, mapping_ids, read_mapping,
};
use serde_json::{Map, Value, json};

use super::isa::{CatArgs, find as find_cat};
use super::select::{Model, find as find_program_model};
use crate::args::{LitmusContrastArgs, OutputFormat, Style};
use crate::error::{CliError, OK, UNDECIDED, VIOLATION};
use crate::limits;
use crate::output::{self, table};

/// Architectures of built-in models, and the tables that write programs for them.
const NATIVE: [(&str, &str); 7] = [
    ("x86tso", "x86"),
    ("aarch64", "aarch64"),
    ("riscv", "riscv"),
    ("riscv-tso", "riscv"),
    ("power", "power"),
    ("rc11", "c11"),
    ("lkmm", "lkmm"),
];

fn native(name: &str) -> Option<&'static str> {
    NATIVE.iter().find(|(id, _)| name.eq_ignore_ascii_case(id)).map(|(_, table)| *table)
}

/// Checks whether a contrast is about programs of instruction sets and C.
pub(super) fn is_mapped(args: &LitmusContrastArgs) -> bool {
    let has_table =
        args.mapping.is_some() || args.left_mapping.is_some() || args.right_mapping.is_some();
    let is_plain = |style: Option<Style>| style.is_none_or(|style| style == Style::Axiomatic);
    has_table
        || (native(&args.left).is_some() && is_plain(args.left_style))
        || (native(&args.right).is_some() && is_plain(args.right_style))
}

/// Engine that runs the model of a side.
enum SideModel {
    Cat(super::isa::IsaModel),
    Program(Box<Model>),
}

struct Side {
    title: String,
    model: SideModel,
    mapping: Mapping,
}

/// Prints the smallest program of each direction that tells the models apart, or all minimal ones.
pub(super) fn contrast(args: &LitmusContrastArgs) -> Result<u8, CliError> {
    let (left_table, right_table) = tables(args)?;
    let left = side(&args.left, args.left_style, &left_table, args)?;
    let right = side(&args.right, args.right_style, &right_table, args)?;
    let mut alphabet = Alphabet::shared(&left.mapping, &right.mapping);
    if !alphabet.is_usable() {
        return Err(CliError::usage(format!(
            "the tables `{left_table}` and `{right_table}` share no load or no store"
        )));
    }
    if args.no_fences {
        alphabet = alphabet.without_fences();
    }
    if !args.dependencies {
        alphabet = alphabet.without_dependencies();
    }
    let bound = Bound {
        accesses: args.bound.unwrap_or(4),
        threads: args.threads.unwrap_or(args.bound.unwrap_or(4)),
        per_thread: args.per_thread.unwrap_or(args.bound.unwrap_or(4)),
        locations: args.locations,
        fences: false,
        dependencies: false,
    };
    let options = MappedOptions {
        bound,
        redundant: if args.keep_redundant { Redundant::Keep } else { Redundant::Drop },
        wanted: if args.all { Wanted::Minimal } else { Wanted::First },
        allowing: match args.only {
            None => Allowing::Either,
            Some(crate::args::OnlySide::Left) => Allowing::Left,
            Some(crate::args::OnlySide::Right) => Allowing::Right,
        },
        decorations: args.decorations.unwrap_or(usize::MAX),
        budget: limits::budget(args.budget).with_memory(args.memory.memory),
        jobs: args.jobs.count(),
    };
    let found = contrast_mapped(&left.mapped(), &right.mapped(), &alphabet, &options);
    let found = found.map_err(|error| match error {
        MappedError::Unreadable(diagnostics) => diagnostics.into(),
        MappedError::Program(message) => CliError::usage(message),
    })?;
    let shown =
        Shown { args, left: &left, right: &right, alphabet: &alphabet, found: &found, bound };
    let text = match args.format {
        OutputFormat::Text => shown.text(),
        OutputFormat::Json => shown.json(),
    };
    output::print(text)?;
    Ok(match (found.differences.is_empty(), found.stopped.is_some()) {
        (false, _) => VIOLATION,
        (true, true) => UNDECIDED,
        (true, false) => OK,
    })
}

/// Chooses the tables that write programs for both sides.
fn tables(args: &LitmusContrastArgs) -> Result<(String, String), CliError> {
    let given = |own: &Option<String>| own.clone().or_else(|| args.mapping.clone());
    let (left, right) = (given(&args.left_mapping), given(&args.right_mapping));
    if let (Some(left), Some(right)) = (&left, &right) {
        return Ok((left.clone(), right.clone()));
    }
    let (of_left, of_right) = (native(&args.left), native(&args.right));
    let through_c11 = |native: &str| match native {
        "c11" => "c11".to_owned(),
        other => format!("c11-{other}"),
    };
    let chosen = match (of_left, of_right) {
        (Some(a), Some(b)) if a == b => (a.to_owned(), b.to_owned()),
        (Some(a), Some(b)) => (through_c11(a), through_c11(b)),
        (Some(one), None) | (None, Some(one)) => (one.to_owned(), one.to_owned()),
        (None, None) => match (&left, &right) {
            (Some(one), None) | (None, Some(one)) => (one.clone(), one.clone()),
            _ => {
                let known: Vec<&str> = mapping_ids().collect();
                return Err(CliError::with_hint(
                    "the instruction set of these models is unknown".to_owned(),
                    format!("--mapping names a table: {}, or a file", known.join(", ")),
                ));
            }
        },
    };
    // A table given for only one side is compared with C11's for the other.
    Ok(match (left, right) {
        (Some(left), None) if of_right.is_some() && of_left != of_right => (left, chosen.1),
        (None, Some(right)) if of_left.is_some() && of_left != of_right => (chosen.0, right),
        (Some(left), None) => (left, chosen.1),
        (None, Some(right)) => (chosen.0, right),
        _ => chosen,
    })
}

pub(super) fn load_table(name: &str) -> Result<Mapping, CliError> {
    if let Some(mapping) = find_mapping(name) {
        return Ok(mapping);
    }
    if !is_path(name) && !Path::new(name).is_file() {
        let known: Vec<&str> = mapping_ids().collect();
        return Err(CliError::with_hint(
            format!("there is no table of instructions `{name}`"),
            format!("there are {}, and paths", known.join(", ")),
        ));
    }
    let path = Path::new(name);
    let text = read_text(path).map_err(|error| CliError::file("read", path, error))?;
    read_mapping(name, &text).map_err(CliError::from)
}

fn side(
    name: &str,
    style: Option<Style>,
    table: &str,
    args: &LitmusContrastArgs,
) -> Result<Side, CliError> {
    let mapping = load_table(table)?;
    let cat =
        CatArgs { include: &args.include, bell: args.bell.as_deref(), variant: &args.variant };
    let is_cat = !name.ends_with(".m") && style.is_none_or(|style| style == Style::Axiomatic);
    if is_cat && let Some(model) = find_cat(name, &cat)? {
        return Ok(Side { title: name.to_owned(), model: SideModel::Cat(model), mapping });
    }
    let model = find_program_model(name, style)?;
    if !matches!(mapping.language, Language::X86 | Language::Lisa) {
        return Err(CliError::with_hint(
            format!("the model `{name}` cannot run tests of {}", mapping.language.as_str()),
            "it takes tests of X86 and LISA: --mapping x86".to_owned(),
        ));
    }
    Ok(Side { title: model.title(), model: SideModel::Program(Box::new(model)), mapping })
}

impl Side {
    fn mapped(&self) -> MappedSide<'_> {
        let runner = match &self.model {
            SideModel::Cat(model) => Runner::Cat(model.model().clone()),
            SideModel::Program(model) => Runner::Semantics(model.semantics()),
        };
        MappedSide { runner, mapping: self.mapping.clone() }
    }
}

struct Shown<'s> {
    args: &'s LitmusContrastArgs,
    left: &'s Side,
    right: &'s Side,
    alphabet: &'s Alphabet,
    found: &'s MappedContrast,
    bound: Bound,
}

impl Shown<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        let (left, right) = (&self.left.title, &self.right.title);
        for (at, difference) in self.found.differences.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            text += &self.show(difference);
        }
        let has = |only: fn(&MappedDifference) -> bool| self.found.differences.iter().any(only);
        let (has_left, has_right) =
            (has(|d| !d.only_left.is_empty()), has(|d| !d.only_right.is_empty()));
        if self.args.all && !self.found.differences.is_empty() {
            let count = self.found.differences.len();
            let plural = if count == 1 { "" } else { "s" };
            let _ = writeln!(
                text,
                "\n{count} minimal difference{plural} of up to {} accesses",
                self.bound.accesses
            );
        }
        let within = format!(
            "programs of up to {} accesses and {} addresses",
            self.bound.accesses, self.bound.locations
        );
        let within = match self.args.decorations {
            Some(count) => {
                format!("{within} with up to {count} marks, fences and dependencies")
            }
            None => within,
        };
        let wants = |side| self.args.only.is_none() || self.args.only == Some(side);
        if let Some(stopped) = &self.found.stopped {
            let sizes = self.found.run.len();
            let _ = writeln!(
                text,
                "undecided: {stopped}; all programs of up to {sizes} accesses were run"
            );
        } else if !has_left && !has_right && self.args.only.is_none() {
            let _ = writeln!(text, "{left} and {right} are equal on all {within}");
        } else {
            use crate::args::OnlySide::{Left, Right};
            for (has, side, allows, forbids) in
                [(has_left, Left, left, right), (has_right, Right, right, left)]
            {
                if !has && wants(side) {
                    let gap = if text.is_empty() { "" } else { "\n" };
                    let _ = writeln!(
                        text,
                        "{gap}{forbids} allows all that {allows} allows, on all {within}"
                    );
                }
            }
        }
        let claims_absence = self.found.stopped.is_some()
            || !has_left && wants(crate::args::OnlySide::Left)
            || !has_right && wants(crate::args::OnlySide::Right);
        if claims_absence
            && !self.args.keep_redundant
            && self.args.decorations.is_none_or(|n| n > 2)
        {
            text += "(not run: programs of one thread with more than two marks, fences and \
                     dependencies; --keep-redundant runs them)\n";
        }
        if self.args.explain {
            let _ = writeln!(text, "\n{}", self.alphabet.summary());
            let rows: Vec<Vec<String>> = self
                .found
                .run
                .iter()
                .enumerate()
                .map(|(at, run)| vec![(at + 1).to_string(), run.to_string()])
                .collect();
            text += &table(&["accesses", "run"], &rows);
        }
        text
    }

    fn show(&self, difference: &MappedDifference) -> String {
        let program = |test: &RenderedTest| {
            let lines = test.text.lines().skip(1).filter(|line| !line.starts_with("locations"));
            lines
                .map(|line| format!("{}\n", line.trim_end()))
                .collect::<String>()
                .trim_matches('\n')
                .to_owned()
                + "\n"
        };
        let mut text = String::new();
        if difference.left.text == difference.right.text {
            text += &program(&difference.left);
        } else {
            for (side, test) in [(self.left, &difference.left), (self.right, &difference.right)] {
                let _ = write!(text, "for {}:\n{}", side.title, program(test));
            }
        }
        let shown = [
            (self.left, &difference.left, &difference.only_left),
            (self.right, &difference.right, &difference.only_right),
        ];
        for (side, test, only) in shown {
            for outcome in only {
                let values: Vec<String> =
                    test.observed.iter().zip(outcome).map(|(n, v)| format!("{n} = {v}")).collect();
                let _ = writeln!(text, "Only {}: {}", side.title, values.join("; "));
            }
        }
        text
    }

    fn json(&self) -> String {
        let outcomes = |test: &RenderedTest, only: &[Vec<i64>]| -> Vec<Value> {
            let object = |outcome: &Vec<i64>| {
                let values = outcome.iter().map(|&value| json!(value));
                Value::Object(test.observed.iter().cloned().zip(values).collect::<Map<_, _>>())
            };
            only.iter().map(object).collect()
        };
        let differences: Vec<Value> = self
            .found
            .differences
            .iter()
            .map(|difference| {
                json!({
                    "program": difference.sketch.describe(self.alphabet),
                    "left_test": difference.left.text,
                    "right_test": difference.right.text,
                    "accesses": difference.sketch.accesses(),
                    "only_left": outcomes(&difference.left, &difference.only_left),
                    "only_right": outcomes(&difference.right, &difference.only_right),
                })
            })
            .collect();
        let relation = match (self.found.differences.is_empty(), self.found.stopped.is_some()) {
            (false, _) => "different",
            (true, true) => "undecided",
            (true, false) => match self.args.only {
                None => "equal-up-to-bound",
                Some(_) => "included-up-to-bound",
            },
        };
        let report = json!({
            "left": self.args.left,
            "right": self.args.right,
            "left_language": self.left.mapping.language.as_str(),
            "right_language": self.right.mapping.language.as_str(),
            "bound": self.bound.accesses,
            "relation": relation,
            "programs": self.found.run,
            "differences": differences,
        });
        format!("{report}\n")
    }
}
