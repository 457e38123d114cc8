//! Arguments that have no effect beside the others on the command line.
//!
//! An argument that would be ignored is an error: who gives it expects something of it. Pairs that
//! never go together are told to clap where they are declared; here are those that depend on the
//! value of another argument, or on one that is missing.

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::error::CliError;

/// Arguments that have no effect if a condition holds.
struct Rule {
    /// The command, with its subcommand.
    command: &'static [&'static str],
    holds: fn(&ArgMatches) -> bool,
    /// Why these arguments have no effect.
    because: &'static str,
    /// The ids of the arguments.
    arguments: &'static [&'static str],
}

/// Checks whether an argument is on the command line.
fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Checks whether the target of a test is a collection.
fn is_collection(matches: &ArgMatches) -> bool {
    let target: Option<&String> = matches.get_one("target");
    target.is_some_and(|target| target.starts_with("jdk:") || target.starts_with("rust:"))
}

fn lacks_a_picture(matches: &ArgMatches) -> bool {
    !is_given(matches, "draw")
}

const RULES: &[Rule] = &[
    Rule {
        command: &["check"],
        holds: |matches| is_given(matches, "anomalies"),
        because: "--anomalies lists classes of anomalies and judges no model",
        arguments: &[
            "report",
            "certificates",
            "part",
            "resume",
            "no_certify",
            "verbose",
            "quiet",
            "engine",
        ],
    },
    Rule {
        command: &["check"],
        holds: |matches| is_given(matches, "infer_levels"),
        because: "--infer-levels infers one table from all histories and judges no model",
        arguments: &[
            "shrink",
            "draw",
            "report",
            "certificates",
            "part",
            "resume",
            "no_certify",
            "verbose",
            "quiet",
            "engine",
            "order",
        ],
    },
    Rule {
        command: &["watch"],
        holds: |matches| is_given(matches, "model"),
        because: "isolation levels keep transactions, not configurations of an object",
        arguments: &["configurations", "pending", "overdue", "whole"],
    },
    Rule {
        command: &["watch"],
        holds: |matches| is_given(matches, "object"),
        because: "it is for isolation levels, and calls of an object have their own real time",
        arguments: &["order"],
    },
    Rule {
        command: &["watch"],
        holds: |matches| !is_given(matches, "follow") && !is_given(matches, "listen"),
        because: "the input ends by itself; it is for --follow and --listen",
        arguments: &["until_idle"],
    },
    Rule {
        command: &["watch"],
        holds: |matches| {
            let path: Option<&std::path::PathBuf> = matches.get_one("path");
            path.is_some_and(|path| path.as_os_str() == "-")
        },
        because: "standard input is read to its end anyway; name a file that grows",
        arguments: &["follow"],
    },
    Rule {
        command: &["generate"],
        holds: |matches| !is_given(matches, "plant"),
        because: "it is for --plant",
        arguments: &["distance"],
    },
    Rule {
        command: &["generate"],
        holds: |matches| is_given(matches, "transactions"),
        because: "--anomaly plants violations in transactions",
        arguments: &["plant"],
    },
    Rule {
        command: &["generate"],
        holds: |matches| {
            let memory: Option<&consistory_generate::Memory> = matches.get_one("memory");
            !is_given(matches, "transactions")
                && memory.is_some_and(|memory| *memory == consistory_generate::Memory::Sc)
        },
        because: "the memory sc has neither store buffers nor replicas",
        arguments: &["lag"],
    },
    Rule {
        command: &["verify"],
        holds: |matches| is_given(matches, "show_tracking"),
        because: "--show-tracking explores nothing",
        arguments: &[
            "plain",
            "draw",
            "report",
            "checkpoint",
            "resume",
            "states",
            "compaction",
            "no_deadlock",
        ],
    },
    Rule {
        command: &["verify"],
        holds: |matches| is_given(matches, "descriptor"),
        because: "a descriptor is a recorded graph, without a protocol to explore",
        arguments: &["states", "no_symmetry", "constants", "no_deadlock", "compaction"],
    },
    Rule {
        command: &["litmus", "outcomes"],
        holds: |matches| {
            let format: Option<&super::OutcomesFormat> = matches.get_one("format");
            format == Some(&super::OutcomesFormat::Herd)
        },
        because: "herd's logs have outcomes only",
        arguments: &["witness", "program"],
    },
    Rule {
        command: &["test"],
        holds: |matches| is_given(matches, "list"),
        because: "--list runs nothing",
        arguments: &["faults", "workload", "settings", "model", "output", "report", "operations"],
    },
    Rule {
        command: &["test"],
        holds: is_collection,
        because: "it is for databases, and the target is a collection",
        arguments: &[
            "faults",
            "workload",
            "settings",
            "clients",
            "rate",
            "operations",
            "timeout",
            "session",
            "moves",
            "keep_going",
            "schedule",
            "reproduce",
            "output",
        ],
    },
    Rule {
        command: &["test"],
        holds: |matches| !is_collection(matches),
        because: "it is for collections, and the target is a database",
        arguments: &[
            "methods", "without", "levels", "threads", "calls", "rounds", "runs", "failures",
            "clock", "draw",
        ],
    },
    Rule {
        command: &["check"],
        holds: lacks_a_picture,
        because: "it is for --draw",
        arguments: &["draw_as"],
    },
    Rule {
        command: &["contrast"],
        holds: lacks_a_picture,
        because: "it is for --draw",
        arguments: &["draw_as"],
    },
    Rule {
        command: &["litmus", "outcomes"],
        holds: lacks_a_picture,
        because: "it is for --draw",
        arguments: &["draw_as"],
    },
    Rule {
        command: &["verify"],
        holds: lacks_a_picture,
        because: "it is for --draw",
        arguments: &["draw_as"],
    },
    Rule {
        command: &["test"],
        holds: lacks_a_picture,
        because: "it is for --draw",
        arguments: &["draw_as"],
    },
];

/// Refuses the first argument that has no effect beside the others.
pub(crate) fn refuse_ineffective(
    command: &clap::Command,
    matches: &ArgMatches,
) -> Result<(), CliError> {
    for rule in RULES {
        let (mut found, mut declared) = (Some(matches), Some(command));
        for name in rule.command {
            found = found.and_then(|matches| matches.subcommand_matches(name));
            declared = declared.and_then(|command| command.find_subcommand(name));
        }
        let (Some(matches), Some(declared)) = (found, declared) else { continue };
        let given = rule.arguments.iter().find(|id| is_given(matches, id));
        if let Some(id) = given.filter(|_| (rule.holds)(matches)) {
            let argument = declared.get_arguments().find(|argument| argument.get_id() == *id);
            let name = argument.and_then(|argument| Some(format!("--{}", argument.get_long()?)));
            let name = name.unwrap_or_else(|| (*id).to_owned());
            return Err(CliError::with_hint(
                format!("{name} has no effect here: {}", rule.because),
                "leave it out, or see `--help`",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Every rule names arguments that its command has, so that no rule is without effect itself.
    #[test]
    fn rules_name_arguments_that_exist() {
        let command = crate::args::Cli::command();
        for rule in RULES {
            let mut declared = &command;
            for name in rule.command {
                declared = declared.find_subcommand(name).expect(name);
            }
            for id in rule.arguments {
                let found = declared.get_arguments().any(|argument| argument.get_id() == *id);
                assert!(found, "{:?} has no {id}", rule.command);
            }
        }
    }
}
