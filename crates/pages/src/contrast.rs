//! The page of a contrast: the histories that one model allows and the other forbids, in both
//! directions.

use consistory::Report;
use consistory_report::{Case, ResultRow};

/// One direction of a contrast.
pub struct ContrastSide<'a> {
    /// Id of the model that allows.
    pub allows: &'a str,
    /// Id of the model that forbids.
    pub forbids: &'a str,
    /// Result in one word: `separated`, `implied`, `none` or `undecided`.
    pub answer: &'a str,
    /// Result in a sentence.
    pub sentence: String,
    /// Separating history, judged by both models.
    pub judged: Option<&'a Report<'a>>,
}

/// Builds the page of a contrast: one row per direction.
pub fn contrast_case(title: &str, sides: &[ContrastSide<'_>]) -> Case {
    let mut case = Case::new(title, ["allowed by", "forbidden by", "answer", "history"]);
    for side in sides {
        let mut row = ResultRow::default();
        let mut size = String::new();
        row.text = side.sentence.clone() + "\n";
        if let Some(report) = side.judged {
            let history = report.history();
            size = format!("{} operations", history.len());
            for verdict in report.iter() {
                row.text += &format!("\n{}", verdict.explain());
            }
            for verdict in report.iter().filter(|verdict| verdict.is_violation()) {
                for scene in verdict.scenes() {
                    row.scenes.push(case.scenes.len());
                    case.scenes.push(scene.into());
                }
            }
            if let Some(verdict) = report.first() {
                case.text += &format!(
                    "# {} allows it, {} forbids it\n{}\n",
                    side.allows,
                    side.forbids,
                    verdict.text()
                );
            }
        }
        row.cells = vec![side.allows.into(), side.forbids.into(), side.answer.into(), size.into()];
        case.rows.push(row);
    }
    case
}
