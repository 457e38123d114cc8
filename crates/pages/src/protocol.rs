//! The page of a protocol: its verdict, a failing run, and the history of that run.

use consistory::Verdict;
use consistory_protocol::{Run, System};
use consistory_report::{Case, ResultRow};

use crate::run::run_scene;

/// Results for a protocol.
pub struct ProtocolFindings<'a> {
    /// Name of the file.
    pub source: &'a str,
    /// Verdict in one word.
    pub verdict: &'a str,
    /// Verdict in a few words.
    pub headline: &'a str,
    /// Explanation in sentences.
    pub text: &'a str,
    /// Names and values such as the number of states.
    pub facts: Vec<(String, String)>,
    /// Failing run, with the sentence that explains the failure.
    pub run: Option<(&'a System, &'a Run, String)>,
    /// Verdict on the history of that run.
    pub judged: Option<&'a Verdict<'a>>,
    /// Command that verifies the protocol again.
    pub recheck: String,
}

/// Builds the page of a protocol.
pub fn protocol_case(findings: &ProtocolFindings<'_>) -> Case {
    let mut case = Case::new(findings.source, ["subject", "verdict", "finding"]);
    case.facts = findings.facts.clone();
    let mut row =
        ResultRow::new(["protocol".into(), findings.verdict.into(), findings.headline.into()]);
    row.text = findings.text.to_owned();
    if let Some((system, run, caption)) = &findings.run {
        row.scenes.push(case.scenes.len());
        case.scenes.push(run_scene("A shortest run", caption, system, run).into());
    }
    case.rows.push(row);
    if let Some(judged) = findings.judged {
        let mut row = ResultRow::new([
            "history of the run".into(),
            judged.outcome().as_str().into(),
            judged.pattern().unwrap_or_default().into(),
        ]);
        row.text = judged.explain();
        for scene in judged.scenes() {
            row.scenes.push(case.scenes.len());
            case.scenes.push(scene.into());
        }
        case.rows.push(row);
        case.text = judged.text();
    }
    case.recheck = findings.recheck.clone();
    case
}
