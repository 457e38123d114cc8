//! Reading histories: texts, files, folders, standard input.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use consistory_formats::{Format, Histories, Input, inputs, parse_str, read_within};
use consistory_history::History;
use consistory_verdict::Budget;

use crate::Error;

/// A history and its source.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the source, such as the path of its file.
    pub source: Arc<str>,
    /// Number of the source among all sources, counted from 0.
    pub number: usize,
    /// Index of the history in its source, counted from 0.
    pub index: u64,
    /// The history.
    pub history: Arc<History>,
    /// Time that reading it took, if reading is limited; it counts towards the time of each model.
    pub reading: Duration,
}

impl From<History> for Case {
    fn from(history: History) -> Self {
        let (source, history) = ("history".into(), Arc::new(history));
        Case { source, number: 0, index: 0, history, reading: Duration::ZERO }
    }
}

/// Parses one history, in the text notation or as JSON lines.
pub fn parse(text: &str) -> Result<History, Error> {
    let format = match text.trim_start().starts_with('{') {
        true => Format::Jsonl,
        false => Format::Hist,
    };
    let mut histories = parse_str(text, format, "text")?;
    match histories.len() {
        1 => Ok(histories.remove(0)),
        histories => Err(Error::Several { histories }),
    }
}

/// Reads the histories of a file, of all files in a folder, or of standard input (`-`).
///
/// The format is detected, and so is compression by gzip or zstd. A malformed file yields one error
/// with all positions, and no history.
pub fn read(path: impl AsRef<Path>) -> Result<Cases, Error> {
    let path = path.as_ref().to_owned();
    let found = inputs(std::slice::from_ref(&path))?;
    Ok(Cases::new(found.into_iter().map(Ok).collect(), None, Budget::unlimited()))
}

/// Reads the histories of several paths; a path that cannot be read yields an error as its item.
pub fn read_all(paths: &[PathBuf], format: Option<Format>) -> Cases {
    read_all_within(paths, format, Budget::unlimited())
}

/// Reads the histories of several paths, each within a budget
/// ([`Court::reading_budget`](crate::Court::reading_budget)).
pub fn read_all_within(paths: &[PathBuf], format: Option<Format>, budget: Budget) -> Cases {
    let found = paths.iter().flat_map(|path| match inputs(std::slice::from_ref(path)) {
        Ok(found) => found.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error.into())],
    });
    Cases::new(found.collect(), format, budget)
}

/// The histories of some inputs, in order.
pub struct Cases {
    inputs: std::vec::IntoIter<(usize, Result<Input, Error>)>,
    format: Option<Format>,
    budget: Budget,
    current: Option<Source>,
    last: usize,
    /// Index of the only history to yield from each input.
    index: Option<u64>,
}

/// The input that is being read.
struct Source {
    name: Arc<str>,
    number: usize,
    histories: Histories,
    /// Index of the next history.
    next: u64,
}

impl Cases {
    fn new(inputs: Vec<Result<Input, Error>>, format: Option<Format>, budget: Budget) -> Self {
        let inputs: Vec<(usize, Result<Input, Error>)> = inputs.into_iter().enumerate().collect();
        Cases { inputs: inputs.into_iter(), format, budget, current: None, last: 0, index: None }
    }

    /// Lists the remaining inputs with their numbers; one that cannot be read has no name.
    pub fn inputs(&self) -> impl Iterator<Item = (usize, Option<String>)> + '_ {
        let name = |input: &Result<Input, Error>| input.as_ref().ok().map(ToString::to_string);
        self.inputs.as_slice().iter().map(move |(number, input)| (*number, name(input)))
    }

    /// Skips the inputs whose numbers the function rejects, without opening them.
    #[must_use]
    pub fn only(self, is_kept: impl Fn(usize) -> bool) -> Self {
        let kept: Vec<_> = self.inputs.filter(|(number, _)| is_kept(*number)).collect();
        Cases { inputs: kept.into_iter(), ..self }
    }

    /// Yields only the history with this index from each input; an input without it yields an
    /// error.
    #[must_use]
    pub fn at_index(self, index: u64) -> Self {
        Cases { index: Some(index), ..self }
    }

    /// Returns the number of the last item's input, errors included.
    pub fn last_input(&self) -> usize {
        self.last
    }
}

impl Iterator for Cases {
    type Item = Result<Case, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(Source { name, number, histories, next }) = &mut self.current {
                match histories.next() {
                    Some(Ok(_)) if self.index.is_some_and(|only| only > *next) => {
                        *next += 1;
                        continue;
                    }
                    Some(Ok(history)) => {
                        let (source, index) = (Arc::clone(name), *next);
                        let (history, reading) = (Arc::new(history), histories.spent());
                        let case = Case { source, number: *number, index, history, reading };
                        *next += 1;
                        if self.index.is_some() {
                            // The rest of this input is not needed.
                            self.current = None;
                        }
                        return Some(Ok(case));
                    }
                    Some(Err(error)) => {
                        if self.index.is_some() {
                            self.current = None;
                        }
                        return Some(Err(error.into()));
                    }
                    None => {
                        let (source, histories) = (name.to_string(), *next);
                        self.current = None;
                        if let Some(index) = self.index {
                            return Some(Err(Error::NoSuchIndex { source, index, histories }));
                        }
                    }
                }
            }
            let (number, input) = self.inputs.next()?;
            self.last = number;
            match input {
                Err(error) => return Some(Err(error)),
                Ok(input) => {
                    let name: Arc<str> = input.to_string().into();
                    let budget = self.budget.clone();
                    let histories = read_within(&input, self.format, budget);
                    self.current = Some(Source { name, number, histories, next: 0 });
                }
            }
        }
    }
}
