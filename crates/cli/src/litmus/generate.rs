//! `consistory litmus generate`: a suite of minimal tests.

use std::io::Write;

use consistory_litmus::{
    Arch, Bound, ContrastOptions, Redundant, Side, Test, Wanted, contrast, tests_of, write_test,
};

use super::select::find;
use crate::args::{SuiteArgs, TestLanguage};
use crate::error::{CliError, OK, UNDECIDED, report};
use crate::{limits, output};

/// Writes each minimal test that the model allows and the other forbids into a folder.
pub(crate) fn generate(args: &SuiteArgs) -> Result<u8, CliError> {
    let model = find(&args.model, None)?;
    let against = find(&args.against, None)?;
    let options = ContrastOptions {
        bound: Bound::accesses(args.bound),
        redundant: Redundant::Drop,
        wanted: Wanted::Minimal,
        budget: limits::budget(args.budget).with_memory(args.memory.memory),
        jobs: args.jobs.count(),
    };
    let found = match contrast(against.semantics(), model.semantics(), &options) {
        Ok(found) => found,
        Err(error) => {
            report(&CliError::usage(format!("undecided: {error}")));
            return Ok(UNDECIDED);
        }
    };
    let arch = match args.arch {
        TestLanguage::X86 => Arch::X86,
        TestLanguage::Lisa => Arch::Lisa,
    };
    let tests = tests_of(&found.differences, Side::Right, &format!("{}-", args.model));
    std::fs::create_dir_all(&args.output)
        .map_err(|error| CliError::file("create", &args.output, error))?;
    for test in &tests {
        let info = vec![
            ("Allowed".to_owned(), model.semantics().name().to_owned()),
            ("Forbidden".to_owned(), against.semantics().name().to_owned()),
        ];
        let test = Test { arch, info, ..test.clone() };
        let text = write_test(&test).map_err(|error| CliError::usage(error.to_string()))?;
        let path = args.output.join(format!("{}.litmus", test.name));
        output::write_file(&path, |out| out.write_all(text.as_bytes()))?;
    }
    let plural = if tests.len() == 1 { "" } else { "s" };
    let (weak, strong) = (model.title(), against.title());
    let line = format!(
        "{} test{plural} of up to {} accesses that {weak} allows and {strong} forbids, in {}\n",
        tests.len(),
        args.bound,
        args.output.display()
    );
    output::print(line)?;
    Ok(OK)
}
