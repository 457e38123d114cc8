//! Contrast of two models: a smallest history that each allows and the other forbids.

use consistory_history::History;
use consistory_models::{Standing, implies};
use consistory_registers::Model;
use consistory_verdict::Stopped;

use crate::scan::{Question, Scan, ScanIndex, ScanOptions, scan};
use crate::shape::Space;

/// The difference between two models.
#[derive(Clone, Debug)]
pub struct Contrast {
    /// The histories that the first model allows and the second forbids, and vice versa.
    pub sides: [Side; 2],
    /// Position at which the history of each side was found, for combining the shares of a scan.
    pub places: [Option<ScanIndex>; 2],
    /// Number of histories that were decided.
    pub histories: u64,
}

/// The answer to the question whether one model allows a history that another forbids.
#[derive(Clone, Debug)]
pub enum Side {
    /// Yes; this is a smallest such history.
    Separated(Box<History>),
    /// No, by a proof.
    Implied(Standing),
    /// No history of the space is allowed by one model and forbidden by the other.
    NotUpTo {
        /// Largest number of operations of the space.
        operations: usize,
    },
    /// The scan stopped early.
    Undecided {
        /// Largest number of operations up to which every history was examined.
        operations: usize,
        /// The reason why it stopped.
        stopped: Stopped,
    },
}

/// Searches for smallest histories that one of two models allows and the other forbids.
///
/// Directions for which the lattice of the catalogue has a proof are not searched.
pub fn contrast(models: &[Model; 2], space: &Space, options: &ScanOptions) -> Contrast {
    let proof = |from: usize, to: usize| match (&models[from], &models[to]) {
        (Model::Catalogued(from), Model::Catalogued(to)) => implies(from.id, to.id),
        _ => None,
    };
    answer_both(
        [proof(0, 1), proof(1, 0)],
        |questions| scan(models, questions, space, options),
        space,
    )
}

/// Answers for both directions whether one model allows a history that the other forbids; scans
/// only for the directions that no proof answers.
pub(crate) fn answer_both(
    proofs: [Option<Standing>; 2],
    scan: impl FnOnce(&[Question]) -> Scan,
    space: &Space,
) -> Contrast {
    let questions = [Question { allows: 0, forbids: 1 }, Question { allows: 1, forbids: 0 }];
    let asked: Vec<Question> =
        questions.into_iter().zip(&proofs).filter(|(_, p)| p.is_none()).map(|(q, _)| q).collect();
    let found = scan(&asked);
    let mut asked_places = found.places.into_iter();
    let places = [0, 1]
        .map(|side: usize| proofs[side].is_none().then(|| asked_places.next().flatten()).flatten());
    let mut answers = found.answers.into_iter();
    let sides = proofs.map(|proof| {
        if let Some(standing) = proof {
            return Side::Implied(standing);
        }
        match (answers.next().flatten(), &found.stopped) {
            (Some(history), _) => Side::Separated(Box::new(history)),
            (None, None) => Side::NotUpTo { operations: space.operations },
            (None, Some(stopped)) => {
                Side::Undecided { operations: found.complete, stopped: stopped.clone() }
            }
        }
    });
    Contrast { sides, places, histories: found.histories }
}
