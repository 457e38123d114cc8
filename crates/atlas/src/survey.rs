//! The atlas: all pairs of models of the catalogue.
//!
//! For every pair of models there is either a proof that the first implies the second, or a history
//! that separates them, or the pair is open up to a bound. Histories of plain reads and writes are
//! examined first. Pairs that they do not separate are examined again with fences and
//! read-modify-writes, to a lower bound. The pairs still open are then tried on given histories,
//! which need not be smallest.

use consistory_history::History;
use consistory_models::{Standing, catalogue, implications, implies};
use consistory_registers::{Model, Options, judge};
use consistory_verdict::{Stopped, Verdict};

use crate::scan::{Question, Scan, ScanIndex, ScanOptions, scan};
use crate::shape::Space;

/// The bounds of a survey.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Largest number of operations of histories of reads and writes.
    pub plain: usize,
    /// Largest number of operations of histories with fences and read-modify-writes.
    pub extended: usize,
}

/// The results for all pairs of the catalogue.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Bounds of the survey.
    pub bounds: Bounds,
    /// The pairs; the first model of a pair varies slowest, in the order of the catalogue.
    pub pairs: Vec<Pair>,
    /// Number of histories that were decided.
    pub histories: u64,
}

/// Two models, and whether the first implies the second.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The id of the first model.
    pub from: &'static str,
    /// The id of the second model.
    pub to: &'static str,
    /// The answer to the question whether the first implies the second.
    pub answer: Answer,
    /// Position at which a smallest history was found: the scan (first: reads and writes only;
    /// second: with fences and read-modify-writes), and the position in it.
    pub place: Option<(usize, ScanIndex)>,
}

/// The answer to the question whether one model implies another.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The first model implies the second.
    Implied(Standing),
    /// Not implied: this is a smallest history that the first allows and the second forbids, among
    /// the histories examined.
    Smallest(Box<History>),
    /// Not implied, as a given history shows, which need not be smallest.
    Known {
        /// Name of the history.
        name: String,
        /// The history.
        history: Box<History>,
    },
    /// No history up to the bounds separates them.
    Open {
        /// The conjecture, if there is one.
        conjecture: Option<Standing>,
    },
}

/// Surveys all pairs of the catalogue; `known` are histories with their names.
///
/// With only a share of the space, a pair that another share separates is open here, or separated
/// by a later history. All shares together give the whole survey: for each pair, the history at the
/// least position counts.
pub fn survey(
    bounds: Bounds,
    known: &[(String, History)],
    options: &ScanOptions,
) -> Result<Survey, Stopped> {
    let models: Vec<Model> = catalogue().iter().map(Model::Catalogued).collect();
    let ids: Vec<&'static str> = catalogue().iter().map(|model| model.id).collect();
    let mut survey = Survey { bounds, pairs: Vec::new(), histories: 0 };
    for &from in &ids {
        for &to in ids.iter().filter(|&&to| to != from) {
            let answer = match implies(from, to) {
                Some(standing) => Answer::Implied(standing),
                None => {
                    let claim = implications().iter().find(|i| (i.from, i.to) == (from, to));
                    Answer::Open { conjecture: claim.map(|claim| claim.standing.clone()) }
                }
            };
            survey.pairs.push(Pair { from, to, answer, place: None });
        }
    }
    let extended = Space { fences: true, rmws: true, ..Space::of(bounds.extended) };
    for (number, space) in [Space::of(bounds.plain), extended].into_iter().enumerate() {
        let open = survey.open();
        let place = |id: &str| ids.iter().position(|&known| known == id).expect("it has an id");
        let questions: Vec<Question> = open
            .iter()
            .map(|&pair| &survey.pairs[pair])
            .map(|pair| Question { allows: place(pair.from), forbids: place(pair.to) })
            .collect();
        let Scan { answers, places, histories, stopped, .. } =
            scan(&models, &questions, &space, options);
        if let Some(stopped) = stopped {
            return Err(stopped);
        }
        survey.histories += histories;
        for ((pair, answer), place) in open.into_iter().zip(answers).zip(places) {
            if let Some(history) = answer {
                survey.pairs[pair].answer = Answer::Smallest(Box::new(history));
                survey.pairs[pair].place = place.map(|place| (number, place));
            }
        }
    }
    survey.ask(known, options);
    Ok(survey)
}

impl Survey {
    /// Returns the indices of the pairs that are still open.
    fn open(&self) -> Vec<usize> {
        let is_open = |&pair: &usize| matches!(self.pairs[pair].answer, Answer::Open { .. });
        (0..self.pairs.len()).filter(is_open).collect()
    }

    /// Finds the smallest given history for each open pair.
    pub fn ask(&mut self, known: &[(String, History)], options: &ScanOptions) {
        let models: Vec<Model> = catalogue().iter().map(Model::Catalogued).collect();
        let court = Options { budget: options.budget.clone(), ..Options::default() };
        let mut by_size: Vec<&(String, History)> = known.iter().collect();
        by_size.sort_by_key(|(name, history)| (history.len(), name.clone()));
        for (name, history) in by_size {
            let open = self.open();
            if open.is_empty() {
                return;
            }
            let rulings = judge(history, &models, &court);
            let verdict = |id: &str| {
                let at = models.iter().position(|model| model.id() == id)?;
                rulings[at].as_ref().ok().map(|ruling| ruling.judgement.verdict())
            };
            for pair in open {
                let Pair { from, to, answer, .. } = &mut self.pairs[pair];
                if verdict(from) == Some(Verdict::Consistent)
                    && verdict(to) == Some(Verdict::Violation)
                {
                    let history = Box::new(history.clone());
                    *answer = Answer::Known { name: name.clone(), history };
                }
            }
        }
    }
}
