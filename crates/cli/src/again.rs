//! The command that repeats a result of a report.
//!
//! It is built from the running command line, so that no option is forgotten: every given option is
//! kept, except for those that affect only the destination of the results or the speed.

use std::ffi::OsStr;

use clap::parser::ValueSource;
use clap::{ArgAction, CommandFactory};

use crate::args::Cli;

/// Options that do not affect results.
const LEFT_OUT: [&str; 18] = [
    "report",
    "draw",
    "draw_as",
    "format",
    "jobs",
    "resume",
    "checkpoint",
    "part",
    "certificates",
    "quiet",
    "verbose",
    "witness",
    "program",
    "color",
    "index",
    "isolated",
    "output",
    "reproduce",
];

/// Returns the command for one history of an input of `check`; `index` selects the history.
pub(crate) fn check_again(source: &str, index: Option<u64>) -> String {
    let index: Vec<String> = index.map(|index| format!("--index {index}")).into_iter().collect();
    command_of(std::env::args_os(), &[source], &index)
}

/// Returns the running command for one of its inputs.
pub(crate) fn again(inputs: &[&str]) -> String {
    command_of(std::env::args_os(), inputs, &[])
}

/// Returns the running command of `test` with the seed that was used.
pub(crate) fn test_again(target: &[&str], seed: u64) -> String {
    command_of(std::env::args_os(), target, &[format!("--seed {seed}")])
}

fn command_of(
    words: impl Iterator<Item = std::ffi::OsString>,
    inputs: &[&str],
    more: &[String],
) -> String {
    let mut command = Cli::command();
    command.build();
    // The words were parsed successfully when the program started.
    let Ok(matches) = command.try_get_matches_from_mut(words) else { return String::new() };
    let (mut command, mut matches) = (&command, &matches);
    let mut shown = vec!["consistory".to_owned()];
    while let Some((name, inner)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { return String::new() };
        shown.push(name.to_owned());
        (command, matches) = (found, inner);
    }
    let is_stdin = |input: &&str| **input == *"<stdin>" || **input == *"-";
    shown.extend(inputs.iter().map(|input| match input {
        input if is_stdin(input) => "-".to_owned(),
        // A name that looks like an option.
        input if input.starts_with('-') => shell_word(OsStr::new(&format!("./{input}"))),
        input => shell_word(&input_name(input)),
    }));
    shown.extend(more.iter().cloned());
    let is_added = |id: &str| more.iter().any(|words| words.starts_with(&format!("--{id} ")));
    for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
        let (id, Some(long)) = (arg.get_id().as_str(), arg.get_long()) else { continue };
        if is_added(long) {
            continue;
        }
        if LEFT_OUT.contains(&id) || matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            shown.push(format!("--{long}"));
            continue;
        }
        for values in matches.get_raw_occurrences(id).into_iter().flatten() {
            let values: Vec<&OsStr> = values.collect();
            let value = values.join(OsStr::new(","));
            // A value that looks like an option.
            let between = if value.as_encoded_bytes().starts_with(b"-") { '=' } else { ' ' };
            shown.push(format!("--{long}{between}{}", shell_word(&value)));
        }
    }
    if inputs.iter().any(is_stdin) {
        shown.push("< FILE".to_owned());
    }
    shown.join(" ")
}

/// Returns the name of a file in the form that the system uses.
fn input_name(source: &str) -> std::ffi::OsString {
    consistory_formats::source_path(source).into_os_string()
}

/// Quotes a word for a shell; bytes that are not characters need a shell that supports `$'...'`.
fn shell_word(word: &OsStr) -> String {
    if let Some(text) = word.to_str().filter(|text| !text.contains(char::is_control)) {
        return consistory::shell_word(text);
    }
    let mut quoted = "$'".to_owned();
    for chunk in word.as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => quoted.extend(['\\', c]),
                c if c.is_control() => {
                    let mut bytes = [0; 4];
                    for byte in c.encode_utf8(&mut bytes).bytes() {
                        quoted += &format!("\\x{byte:02x}");
                    }
                }
                c => quoted.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| quoted += &format!("\\x{byte:02x}"));
    }
    quoted + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again_of(line: &[&str], inputs: &[&str], more: &[String]) -> String {
        command_of(line.iter().map(Into::into), inputs, more)
    }

    #[test]
    fn options_that_matter_are_kept_and_words_are_quoted() {
        let line = [
            "consistory",
            "check",
            "runs",
            "b.hist",
            "--model",
            "si,my model.cat",
            "--order",
            "realtime",
            "--report",
            "r.html",
            "-j",
            "2",
            "--shrink",
            "--budget",
            "5s",
            "-q",
        ];
        assert_eq!(
            again_of(&line, &["runs/it's.jsonl"], &["--index 3".to_owned()]),
            "consistory check 'runs/it'\\''s.jsonl' --index 3 --model 'si,my model.cat' \
             --order realtime --budget 5s --shrink"
        );
        let line =
            ["consistory", "check", "--object", "queue", "--axioms", "vis >= po", "--axioms", "ar"];
        assert_eq!(
            again_of(&line, &["<stdin>"], &[]),
            "consistory check - --object queue --axioms 'vis >= po' --axioms ar < FILE"
        );
        assert_eq!(
            again_of(&["consistory", "check", "-"], &["-x\n.hist"], &[]),
            "consistory check $'./-x\\x0a.hist'"
        );
        let line = ["consistory", "verify", "a.m", "-D", "N=3", "--plain", "--report", "r.html"];
        assert_eq!(again_of(&line, &["a.m"], &[]), "consistory verify a.m --plain --define 'N=3'");
    }
}
