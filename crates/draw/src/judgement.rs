//! Explanations and drawings of a judgement, for models of all families.

use consistory_history::{History, OpId};
use consistory_scene::Scene;
use consistory_verdict::{Certificate, Instead, Judgement, Proof};

use crate::calls::{CallProof, USUAL_COLUMNS, explain_calls, explain_calls_line};
use crate::calls_scene::{calls_scene, calls_svg, drawn};
use crate::narrative::explain_registers;
use crate::registers_scene::{DrawOptions, registers_scenes, registers_svg};
use crate::summary::explain_registers_line;
use crate::transactions::{TransactionJudgement, explain_transactions, explain_transactions_line};
use crate::transactions_scene::{transactions_scenes, transactions_svg};

/// A judgement on reads and writes.
pub(crate) type RegisterJudgement<'a> = Judgement<&'a Certificate>;

/// A judgement with the family of its history.
enum ByFamily<'a> {
    Registers(RegisterJudgement<'a>),
    Calls(CallProof<'a>),
    Transactions(TransactionJudgement<'a>),
}

fn by_family<'a>(history: &History, judgement: &'a Judgement) -> ByFamily<'a> {
    match judgement {
        Judgement::Consistent(Proof::Registers(certificate)) => {
            ByFamily::Registers(Judgement::Consistent(certificate))
        }
        Judgement::Violation { pattern, certificate: Proof::Registers(certificate) } => {
            ByFamily::Registers(Judgement::Violation { pattern: pattern.clone(), certificate })
        }
        Judgement::Consistent(Proof::Object(certificate))
        | Judgement::Violation { certificate: Proof::Object(certificate), .. } => {
            ByFamily::Calls(Ok(certificate))
        }
        Judgement::Consistent(Proof::Transactions(certificate)) => {
            ByFamily::Transactions(Judgement::Consistent(certificate))
        }
        Judgement::Violation { pattern, certificate: Proof::Transactions(certificate) } => {
            let pattern = pattern.clone();
            ByFamily::Transactions(Judgement::Violation { pattern, certificate })
        }
        Judgement::Undecided(stopped) if history.has_calls() => ByFamily::Calls(Err(stopped)),
        Judgement::Undecided(stopped) => ByFamily::Registers(Judgement::Undecided(stopped.clone())),
    }
}

/// Explains in plain sentences why a judgement holds.
///
/// `instead` has an entry for each attempt of an unexplained object history, as far as they are
/// known. The diagram of an object's calls has colours for a terminal.
pub fn explain(
    history: &History,
    model: &str,
    judgement: &Judgement,
    instead: &[Option<Instead>],
) -> String {
    explain_within(history, model, judgement, instead, USUAL_COLUMNS)
}

/// Explains like [`explain`], with a diagram of calls that is at most `columns` wide.
///
/// Sentences are not broken into lines.
pub fn explain_within(
    history: &History,
    model: &str,
    judgement: &Judgement,
    instead: &[Option<Instead>],
    columns: usize,
) -> String {
    match by_family(history, judgement) {
        ByFamily::Registers(judgement) => explain_registers(history, model, &judgement),
        ByFamily::Calls(proof) => explain_calls(history, model, proof, instead, columns),
        ByFamily::Transactions(judgement) => explain_transactions(history, model, &judgement),
    }
}

/// Explains in one line the verdict of a judgement and its reason.
pub fn explain_line(history: &History, model: &str, judgement: &Judgement) -> String {
    match by_family(history, judgement) {
        ByFamily::Registers(judgement) => explain_registers_line(history, model, &judgement),
        ByFamily::Calls(proof) => explain_calls_line(history, proof),
        ByFamily::Transactions(judgement) => explain_transactions_line(history, &judgement),
    }
}

/// Draws a history and, if the judgement is a violation, its proof.
///
/// Reads and writes are drawn in one lane per session: the edges of a cycle are arrows in the
/// colour of their relation, dashed if a rule derives them, with thin premises; a proof by cases
/// has one panel per case; without a cycle the arrows show the source of each read. An object's
/// calls are drawn as bars over time, with the linearization as numbered points, and transactions
/// as boxes with their operations, with the dependencies of a cycle between them.
pub fn history_svg(history: &History, judgement: &Judgement, options: &DrawOptions) -> String {
    match by_family(history, judgement) {
        ByFamily::Registers(judgement) => registers_svg(history, &judgement, options),
        ByFamily::Calls(proof) => calls_svg(history, options, proof),
        ByFamily::Transactions(judgement) => transactions_svg(history, &judgement, options),
    }
}

/// Builds the scenes of a history and its judgement: one, or one per case of a proof by cases.
///
/// They contain the proof as steps, for interactive pages.
pub fn history_scenes(
    history: &History,
    judgement: &Judgement,
    options: &DrawOptions,
) -> Vec<Scene> {
    match by_family(history, judgement) {
        ByFamily::Registers(judgement) => registers_scenes(history, &judgement, options),
        ByFamily::Calls(proof) => vec![calls_scene(history, options, proof)],
        ByFamily::Transactions(judgement) => transactions_scenes(history, &judgement, options),
    }
}

/// Lists the calls in the picture of a history of calls; empty for other histories.
pub fn drawn_calls(history: &History, judgement: &Judgement) -> Vec<OpId> {
    match by_family(history, judgement) {
        ByFamily::Calls(proof) => drawn(history, proof),
        ByFamily::Registers(_) | ByFamily::Transactions(_) => Vec::new(),
    }
}
