//! The atlas itself: all pairs of the catalogue.
//!
//! For every pair of models either there is a proof that the first implies the second, or a history
//! separates them, or the pair is open up to a bound. Histories of plain reads
//! and writes are gone through first; what they do not separate is looked at again with fences and
//! read-modify-writes, to a lower bound; and what is then left is asked of histories that somebody
//! knows, which need not be smallest.

use consistory_history::History;
use consistory_models::{Standing, catalogue, implications, implies};
use consistory_registers::{Model, Options, judge};
use consistory_verdict::{Stopped, Verdict};

use crate::scan::{Question, Scan, ScanIndex, ScanOptions, scan};
use crate::shape::Space;

/// How far a survey looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The most operations of histories of reads and writes.
    pub plain: usize,
    /// The most operations of histories with fences and read-modify-writes.
    pub extended: usize,
}

/// What is known of all pairs of the catalogue.
#[derive(Clone, Debug)]
pub struct Survey {
    /// How far it looked.
    pub bounds: Bounds,
    /// The pairs, the stronger model of a pair in the order of the catalogue.
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
    /// What is known.
    pub answer: Answer,
    /// Where a smallest history was found: in the first scan, of reads and writes, or in the second one,
    /// and where in it.
    pub place: Option<(usize, ScanIndex)>,
}

/// Whether one model implies another.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It does.
    Implied(Standing),
    /// It does not: no history with fewer operations is allowed by the first and forbidden by the
    /// second, of those that are looked at.
    Smallest(Box<History>),
    /// It does not, by a history that was given and need not be smallest.
    Known {
        /// The name that it was given by.
        name: String,
        /// The history.
        history: Box<History>,
    },
    /// Nothing up to the bounds tells them apart.
    Open {
        /// What is conjectured, if anything.
        conjecture: Option<Standing>,
    },
}

/// Asks of all pairs of the catalogue what is known; `known` are histories with their names.
///
/// With a share of the space, a pair that another share separates is open here, or separated by a later
/// history. All shares together are the whole survey: of each pair the history at the least place counts.
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
    /// Returns the places of the pairs of which nothing is known yet.
    fn open(&self) -> Vec<usize> {
        let is_open = |&pair: &usize| matches!(self.pairs[pair].answer, Answer::Open { .. });
        (0..self.pairs.len()).filter(is_open).collect()
    }

    /// Finds among histories that somebody knows, with their names, the smallest for each open pair.
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
