//! Shares of the work, for machines that share nothing but files: `--part I/N`.
//!
//! A part is determined by the inputs and its number alone. The output of a part ends with a line
//! that identifies the part and the run and counts its lines, so that [`merge`](crate::merge) can
//! check that nothing is missing, truncated or duplicated. The `"place"` of a line is its position
//! in the output of the whole run.
//!
//! Histories are distributed one by one, unless there are so many input files that whole files can
//! be distributed evenly: then every file is read by one part only, the largest files first, each
//! by the part with the least work so far.

use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault};
use std::path::Path;
use std::str::FromStr;

use consistory::Cases;
use consistory_atlas::Share;

use crate::args::{OutputFormat, PartArgs};
use crate::error::CliError;

/// Number of input files per part from which whole files are distributed.
const FILES_PER_PART: usize = 4;
/// Fixed cost of an input in bytes, in addition to its size.
const FILE_COST: u64 = 4096;

/// One of several equal shares of the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Number of the part, from 0; the command line counts from 1.
    pub(crate) index: u64,
    /// Number of parts.
    pub(crate) of: u64,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| {
            Some((index.trim().parse::<u64>().ok()?, of.trim().parse::<u64>().ok()?))
        });
        match numbers {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Part { index: index - 1, of }),
            Some((index, of)) => {
                Err(format!("there is no part {index} of {of}; they count from 1"))
            }
            None => Err("a part is I/N, such as 3/64".to_owned()),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.of)
    }
}

impl Part {
    /// Returns whether an item is in the part, by its number.
    pub(crate) fn has(self, number: u64) -> bool {
        number % self.of == self.index
    }

    /// Returns the same share of a scan over all small histories.
    pub(crate) fn share(self) -> Share {
        Share { index: self.index as usize, of: self.of as usize }
    }
}

impl PartArgs {
    /// Returns the part; fails if the output format cannot be merged.
    pub(crate) fn of(self, format: OutputFormat) -> Result<Option<Part>, CliError> {
        match self.part {
            Some(_) if format != OutputFormat::Json => Err(CliError::with_hint(
                "--part needs --format json",
                "`consistory merge` then prints the tables of all parts together",
            )),
            part => Ok(part),
        }
    }
}

/// The inputs of a part.
pub(crate) struct InputShare {
    part: Part,
    /// Part of each input, if whole inputs are distributed.
    owners: Option<Vec<u64>>,
}

impl InputShare {
    pub(crate) fn new(part: Part, cases: &Cases) -> Self {
        let names: Vec<Option<String>> = cases.inputs().map(|(_, name)| name).collect();
        let is_many = names.len() as u64 >= part.of.saturating_mul(FILES_PER_PART as u64);
        let owners = is_many.then(|| {
            let size = |name: &Option<String>| {
                let data = name.as_deref().and_then(|name| Path::new(name).metadata().ok());
                FILE_COST + data.map_or(0, |data| data.len())
            };
            deal(&names.iter().map(size).collect::<Vec<u64>>(), part.of as usize)
        });
        InputShare { part, owners }
    }

    /// Checks whether the part has to read an input.
    pub(crate) fn has_input(&self, number: usize) -> bool {
        self.owners.as_ref().is_none_or(|owners| owners[number] == self.part.index)
    }

    /// Checks whether a history belongs to the part.
    pub(crate) fn has(&self, number: usize, index: u64) -> bool {
        match &self.owners {
            Some(owners) => owners[number] == self.part.index,
            None => self.part.has(number as u64 + index),
        }
    }
}

/// Distributes items of some sizes: the largest first, each to the part with the least so far.
fn deal(sizes: &[u64], parts: usize) -> Vec<u64> {
    let mut largest_first: Vec<usize> = (0..sizes.len()).collect();
    largest_first.sort_by_key(|&at| (std::cmp::Reverse(sizes[at]), at));
    let mut loads = vec![0u64; parts];
    let mut owners = vec![0; sizes.len()];
    for at in largest_first {
        let (owner, load) =
            loads.iter_mut().enumerate().min_by_key(|(_, load)| **load).expect("there is a part");
        *load += sizes[at];
        owners[at] = owner as u64;
    }
    owners
}

/// The last line of a part.
pub(crate) struct PartEnd {
    pub(crate) part: Part,
    pub(crate) command: &'static str,
    /// Digest of the settings that all parts of the run share.
    pub(crate) run: String,
    /// Number of lines before this one.
    pub(crate) lines: u64,
    /// Number of inputs that could not be read or judged.
    pub(crate) errors: u64,
    /// The exit code.
    pub(crate) code: u8,
}

impl PartEnd {
    pub(crate) fn line(&self) -> String {
        let PartEnd { part, command, run, lines, errors, code } = self;
        format!(
            "{{\"part\":\"{part}\",\"command\":\"{command}\",\"run\":\"{run}\",\"lines\":{lines},\
             \"errors\":{errors},\"code\":{code}}}\n"
        )
    }
}

/// Adds the place of a line in the output of the whole run, as its last field.
pub(crate) fn placed(line: &str, place: &[u64]) -> String {
    let open = line.trim_end().strip_suffix('}').unwrap_or(line);
    format!("{open},\"place\":{}}}\n", shown_place(place))
}

/// Writes a place as JSON, without spaces.
pub(crate) fn shown_place(place: &[u64]) -> String {
    let numbers: Vec<String> = place.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

/// Returns a digest of the settings that the parts of a run share.
pub(crate) fn run_id(command: &str, settings: &impl fmt::Debug) -> String {
    let text = format!("{} {command} {settings:?}", env!("CARGO_PKG_VERSION"));
    let hasher = BuildHasherDefault::<rustc_hash::FxHasher>::default();
    format!("{:016x}", hasher.hash_one(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_count_from_one() {
        assert_eq!("3/7".parse(), Ok(Part { index: 2, of: 7 }));
        for wrong in ["0/7", "8/7", "3", "a/b", "1/0", "-1/2"] {
            assert!(wrong.parse::<Part>().is_err(), "{wrong}");
        }
        assert_eq!(Part { index: 2, of: 7 }.to_string(), "3/7");
    }

    #[test]
    fn files_are_dealt_out_evenly() {
        let sizes: Vec<u64> = (0..100).map(|at| (at * 37) % 101 + 1).collect();
        let owners = deal(&sizes, 7);
        let load = |part: u64| -> u64 {
            owners.iter().zip(&sizes).filter(|(owner, _)| **owner == part).map(|(_, s)| s).sum()
        };
        let loads: Vec<u64> = (0..7).map(load).collect();
        let (most, least) = (loads.iter().max().unwrap(), loads.iter().min().unwrap());
        assert!(most - least <= *sizes.iter().max().unwrap() / 10, "{loads:?}");
    }
}
