//! The files of `--report`.

use std::io;
use std::path::Path;

use consistory_report::{Case, ReportWriter};

use crate::error::CliError;
use crate::output::Output;

/// A report file that is being written.
pub(crate) struct Pages(ReportWriter<Output>);

impl Pages {
    /// Starts a report.
    pub(crate) fn open(path: &Path, title: &str) -> Result<Self, CliError> {
        let out = Output::open(Some(path))?;
        let writer = ReportWriter::new(out, title);
        Ok(Pages(writer.map_err(|error| CliError::file("write", path, error))?))
    }

    /// Names the column of the overview that contains a number for each case.
    pub(crate) fn counting(self, what: &str) -> Self {
        Pages(self.0.counting(what))
    }

    /// Adds a case with its number and its words for the overview.
    pub(crate) fn add<'a>(
        &mut self,
        number: u64,
        words: impl IntoIterator<Item = (&'a str, &'a str)>,
        case: &Case,
    ) -> io::Result<()> {
        self.0.add(number, words, case)
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        let about = concat!("consistory ", env!("CARGO_PKG_VERSION"));
        self.0.finish(about).map_err(CliError::output)?.finish()
    }
}
