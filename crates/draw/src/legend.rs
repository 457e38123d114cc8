//! What arrows look like, and what that means.

use crate::lanes::{Arrow, Basis, Role};
use crate::proof::{Kind, kind};
use crate::route::HEAD;
use crate::svg::{Canvas, FAINT, Font, MUTED, Stroke, at};
use crate::text::clean;

/// Says how an arrow is drawn.
pub(crate) fn stroke(relation: &str, role: Role, basis: Basis) -> Stroke<'static> {
    let width = match role {
        Role::Cycle => 2.4,
        Role::Premise => 1.2,
        Role::Context => 1.5,
        Role::Skipped(_) => 2.0,
    };
    let dashes = match (role, basis) {
        (Role::Skipped(_), _) => "1 5",
        (_, Basis::Given) => "",
        (_, Basis::Derived) => "8 4",
        (_, Basis::Assumed) => "2 4",
    };
    Stroke { colour: colour(relation), width, dashes }
}

/// What a legend has to explain.
#[derive(Default)]
pub(crate) struct Legend {
    relations: Vec<String>,
    looks: Vec<(Role, Basis)>,
}

impl Legend {
    /// Notes that an arrow is drawn.
    pub(crate) fn add(&mut self, arrow: &Arrow) {
        if !arrow.relation.is_empty() && !self.relations.iter().any(|r| r == arrow.relation) {
            self.relations.push(arrow.relation.to_owned());
        }
        if !self.looks.contains(&(arrow.role, arrow.basis)) {
            self.looks.push((arrow.role, arrow.basis));
        }
    }

    /// Adds what another legend has to explain.
    pub(crate) fn merge(&mut self, other: Legend) {
        self.relations.extend(other.relations);
        self.looks.extend(other.looks);
    }

    /// Draws what the colours and dashes mean, across the page from `left` to `right`; gives where
    /// it ends.
    pub(crate) fn draw(mut self, canvas: &mut Canvas, top: f64, left: f64, right: f64) -> f64 {
        if self.looks.is_empty() {
            return top;
        }
        self.relations.sort_by_key(|relation| (rank(relation), relation.clone()));
        self.relations.dedup();
        let mut entries: Vec<(String, Stroke)> = self
            .relations
            .iter()
            .map(|r| {
                let stroke = Stroke { colour: colour(r), width: 2.2, dashes: "" };
                (format!("{} {}", clean(r, 16), meaning(r)).trim_end().to_owned(), stroke)
            })
            .collect();
        for (words, role, basis) in [
            ("derived by a rule", Role::Cycle, Basis::Derived),
            ("assumed in this case", Role::Cycle, Basis::Assumed),
            ("premise of a rule", Role::Premise, Basis::Given),
        ] {
            let is_drawn = match basis {
                Basis::Given => self.looks.iter().any(|look| look.0 == role),
                _ => self.looks.iter().any(|look| look.1 == basis),
            };
            if is_drawn {
                entries.push((words.into(), stroke("", role, basis)));
            }
        }
        let font = Font::sans(12.0, MUTED);
        let mut y = top + 8.0;
        canvas.line(at(left, y), at(right, y), Stroke { colour: FAINT, width: 1.0, dashes: "" });
        y += 20.0;
        let mut x = left;
        for (words, stroke) in entries {
            let needed = 34.0 + font.measure(&words) + 18.0;
            if x > left && x + needed > right {
                x = left;
                y += 19.0;
            }
            canvas.line(at(x, y - 4.0), at(x + 20.0, y - 4.0), stroke);
            canvas.arrowhead(at(x + 28.0, y - 4.0), at(1.0, 0.0), HEAD, stroke.colour);
            canvas.text(at(x + 34.0, y), font, &words);
            x += needed;
        }
        y
    }
}

/// Gives a relation its colour, out of a palette that the colour-blind can tell apart.
fn colour(relation: &str) -> &'static str {
    match kind(relation) {
        Kind::Program => "#5b6673",
        Kind::ReadsFrom => "#00856a",
        Kind::Overwritten => "#d1490c",
        Kind::Store => "#a87900",
        Kind::Derived if relation.starts_with("cf") => "#0068b5",
        Kind::Derived if relation.contains("hb") => "#a3388c",
        Kind::Derived if relation.is_empty() => MUTED,
        Kind::Derived => "#4b3f9e",
    }
}

/// Gives the place of a relation in the legend.
fn rank(relation: &str) -> usize {
    ["po", "ppo", "poloc", "wr", "wre", "rw", "ww", "cf", "hb"]
        .iter()
        .position(|known| *known == relation)
        .unwrap_or(usize::MAX)
}

/// Says what a relation means.
fn meaning(relation: &str) -> &'static str {
    match relation {
        "po" => "program order",
        "ppo" => "preserved program order",
        "poloc" => "program order on one key",
        "wr" => "reads from",
        "wre" => "reads from another session",
        "ww" => "store order",
        "rw" => "reads what is overwritten",
        "final" => "before the last write",
        "co" => "causal order",
        "hb" => "happens before",
        _ if relation.starts_with("cf") => "conflict: seen, yet not read",
        _ => "",
    }
}
