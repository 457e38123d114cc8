//! `consistory man`: manual pages, made from the same text as `--help`.

use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::Cli;
use crate::error::{CliError, OK};
use crate::output;

/// Prints the manual page of the whole command line, or writes one page per command into a folder.
pub(crate) fn man(folder: Option<&Path>) -> Result<u8, CliError> {
    let cli = Cli::command();
    let Some(folder) = folder else {
        let text = rendered(&cli)?;
        output::print(&text)?;
        return Ok(OK);
    };
    std::fs::create_dir_all(folder).map_err(|error| CliError::file("create", folder, error))?;
    clap_mangen::generate_to(cli, folder)
        .map_err(|error| CliError::file("write into", folder, error))?;
    Ok(OK)
}

fn rendered(command: &clap::Command) -> Result<Vec<u8>, CliError> {
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text).map_err(CliError::output)?;
    Ok(text)
}
