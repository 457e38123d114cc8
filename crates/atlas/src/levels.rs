//! Isolation levels: smallest histories of transactions that separate two of them.
//!
//! The shapes are those of register histories. Each is examined under every grouping of its
//! operations into transactions, fewest brackets first, and decided by the reference evaluator.
//! Small bounds suffice: four operations separate every pair of levels that can be separated.

use consistory_definition::Definition;
use consistory_history::History;
use consistory_models::{ClientOrder, EvaluateOptions, Standing, evaluate};
use consistory_verdict::{Stopped, Verdict};

use crate::contrast::{Contrast, answer_both};
use crate::reduce::Reduction;
use crate::scan::{Outline, Question, Scan, ScanIndex, ScanOptions};
use crate::shape::{Shape, Source, Space, skeletons};
use crate::sources::{Next, Visitor, choose};

/// Searches for smallest histories of transactions that one of two definitions allows and the other
/// forbids; `proofs` are the known implications between them.
pub fn contrast_levels(
    definitions: [&Definition; 2],
    proofs: [Option<Standing>; 2],
    order: ClientOrder,
    space: &Space,
    options: &ScanOptions,
) -> Contrast {
    let scan = |questions: &[Question]| scan_levels(&definitions, questions, order, space, options);
    answer_both(proofs, scan, space)
}

/// Searches for a smallest history of transactions for each question.
///
/// The space must be small ([`Space::is_small`]) and have no fences, which affect no level.
pub fn scan_levels(
    definitions: &[&Definition],
    questions: &[Question],
    order: ClientOrder,
    space: &Space,
    options: &ScanOptions,
) -> Scan {
    assert!(space.is_small(), "operations and variables are at most sixteen together");
    let evaluation =
        EvaluateOptions { order, budget: options.budget.clone(), ..Default::default() };
    let mut search = LevelSearch {
        definitions,
        questions,
        evaluation,
        place: [0; 4],
        scan: Scan {
            answers: vec![None; questions.len()],
            places: vec![None; questions.len()],
            complete: 0,
            histories: 0,
            stopped: None,
        },
    };
    let space = Space { fences: false, ..space.clone() };
    for operations in 1..=space.operations {
        for sessions in 1..=space.sessions.min(operations) {
            let skeletons = skeletons(&space, operations, sessions).into_iter().enumerate();
            for (number, skeleton) in skeletons.filter(|(number, _)| options.share.has(*number)) {
                for variables in 1..=space.variables.min(operations) {
                    search.place = [operations, sessions, number, variables];
                    let goes_on = skeleton.shapes(variables, &mut |shape, automorphisms| {
                        let mut visitor = Brackets { search: &mut search, shape };
                        choose(shape, automorphisms, &Reduction::None, &mut visitor)
                    });
                    if !goes_on {
                        if search.scan.stopped.is_none() {
                            search.scan.complete = space.operations;
                        }
                        return search.scan;
                    }
                }
            }
        }
        search.scan.complete = operations;
    }
    search.scan
}

struct LevelSearch<'a> {
    definitions: &'a [&'a Definition],
    questions: &'a [Question],
    evaluation: EvaluateOptions,
    /// Index of the current shape.
    place: ScanIndex,
    scan: Scan,
}

impl LevelSearch<'_> {
    /// Decides the open questions for a history. Returns whether any question is still open.
    fn ask(&mut self, history: &History) -> Result<bool, Stopped> {
        self.scan.histories += 1;
        let mut verdicts: Vec<Option<bool>> = vec![None; self.definitions.len()];
        for (at, question) in self.questions.iter().enumerate() {
            if self.scan.answers[at].is_some() {
                continue;
            }
            let mut holds = |place: usize| match verdicts[place] {
                Some(holds) => Ok(holds),
                None => {
                    let holds = self.holds(place, history)?;
                    verdicts[place] = Some(holds);
                    Ok(holds)
                }
            };
            if !holds(question.forbids)? && holds(question.allows)? {
                self.scan.answers[at] = Some(history.clone());
                self.scan.places[at] = Some(self.place);
            }
        }
        Ok(self.scan.answers.iter().any(Option::is_none))
    }

    fn holds(&self, place: usize, history: &History) -> Result<bool, Stopped> {
        let judgement = evaluate(self.definitions[place], history, &self.evaluation)
            .expect("histories of registers with transactions fit every level");
        match judgement.verdict() {
            Verdict::Consistent => Ok(true),
            Verdict::Violation => Ok(false),
            Verdict::Undecided => Err(match judgement {
                consistory_verdict::Judgement::Undecided(stopped) => stopped,
                _ => unreachable!("an undecided judgement says why"),
            }),
        }
    }
}

/// Examines the histories of one shape under every bracketing.
struct Brackets<'a, 'b> {
    search: &'a mut LevelSearch<'b>,
    shape: &'a Shape<'a>,
}

impl Visitor for Brackets<'_, '_> {
    fn partial(&mut self, _sources: &[Source]) -> Next {
        Next::Deeper
    }

    fn complete(&mut self, sources: &[Source]) -> bool {
        if self.search.scan.answers.iter().all(Option::is_some) {
            return false;
        }
        let outline = Outline::of(self.shape);
        let skeleton = self.shape.skeleton();
        let joints: Vec<usize> =
            (0..self.shape.len()).filter(|&at| !skeleton.is_first(at)).collect();
        let mut all: Vec<u32> = (0..1u32 << joints.len()).collect();
        all.sort_by_key(|brackets| brackets.count_ones());
        for brackets in all {
            let is_joined = |at: usize| {
                joints.iter().position(|&joint| joint == at).is_some_and(|i| brackets >> i & 1 == 1)
            };
            let history = outline.transactions(sources, is_joined);
            match self.search.ask(&history) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(stopped) => {
                    self.search.scan.stopped = Some(stopped);
                    return false;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Side;
    use consistory_models::{implies, levels};

    fn text(history: &History) -> String {
        let mut text = String::new();
        for session in history.sessions() {
            text += &format!("{}:", history.session_name(session));
            for transaction in history.all_transactions() {
                let ops: Vec<_> = transaction.ops.clone().map(consistory_history::OpId).collect();
                if history.session_of(ops[0]) != session {
                    continue;
                }
                let shown: Vec<String> =
                    ops.iter().map(|&op| history.show(op).to_string()).collect();
                match ops.len() {
                    1 => text += &format!(" {}", shown[0]),
                    _ => text += &format!(" [ {} ]", shown.join(" ")),
                }
            }
            text += "\n";
        }
        text
    }

    #[test]
    fn every_pair_of_levels_is_implied_or_separated_by_four_operations() {
        let definitions: Vec<&Definition> = levels().iter().map(|l| &l.definition).collect();
        let mut questions = Vec::new();
        for (a, from) in levels().iter().enumerate() {
            for (b, to) in levels().iter().enumerate().filter(|&(b, _)| b != a) {
                if implies(from.id, to.id).is_none() {
                    questions.push(Question { allows: a, forbids: b });
                }
            }
        }
        let order = ClientOrder::Session;
        let found =
            scan_levels(&definitions, &questions, order, &Space::of(4), &ScanOptions::default());
        assert_eq!(found.stopped, None);
        for (question, answer) in questions.iter().zip(&found.answers) {
            let (allows, forbids) = (levels()[question.allows].id, levels()[question.forbids].id);
            assert!(answer.is_some(), "{allows} allows nothing that {forbids} forbids");
        }
        let answer = |allows: &str, forbids: &str| {
            let place = |id| levels().iter().position(|level| level.id == id).unwrap();
            let wanted = Question { allows: place(allows), forbids: place(forbids) };
            let at = questions.iter().position(|&question| question == wanted).unwrap();
            text(found.answers[at].as_ref().unwrap())
        };
        assert_eq!(answer("rc", "ra"), "t0: w(x,1) r(x,0)\n");
        assert_eq!(answer("ra", "tcc"), "t0: r(x,1) r(x,0)\nt1: w(x,1)\n");
        assert_eq!(answer("pc", "psi"), "t0: w(x,1) r(x,2)\nt1: [ r(x,0) w(x,2) ]\n");
        assert_eq!(answer("psi", "pc"), "t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)\n");
        assert_eq!(answer("si", "ser"), "t0: [ w(x,1) r(y,0) ]\nt1: w(y,1) r(x,0)\n");
    }

    #[test]
    fn what_is_claimed_to_be_implied_is_not_separated() {
        let find = |id: &str| &levels().iter().find(|level| level.id == id).unwrap().definition;
        for (strong, weak) in [("ser", "si"), ("si", "pc"), ("si", "psi"), ("psi", "tcc")] {
            let found = contrast_levels(
                [find(strong), find(weak)],
                [None, None],
                ClientOrder::Session,
                &Space::of(3),
                &ScanOptions::default(),
            );
            assert!(matches!(found.sides[0], Side::NotUpTo { operations: 3 }), "{strong} {weak}");
        }
    }
}
