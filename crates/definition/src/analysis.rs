//! How a definition's checks depend on the relations that a search chooses.
//!
//! `consistory-models` computes it from the signs with which names occur. It only steers searches:
//! a checker of certificates has no use for it.

/// Dependence of a program's parts on `wr` and `ww`.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// When a violation found before all choices are made is final.
    pub pruning: Pruning,
    /// Whether something that may depend on `wr` or `ww` is negated, so that an explanation, which
    /// does not look into negations, cannot tell which choices a violation rests on.
    pub negates_choices: bool,
    /// For each outermost group whether it depends on `ww`.
    pub late_globals: Vec<bool>,
    /// For each check whether it depends on `ww`.
    pub late_checks: Vec<bool>,
}

/// When a violation found before all choices are made is final.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pruning {
    /// Whatever is added to `wr` and `ww`.
    Always,
    /// Whatever is added to `wr` and `ww`, if the operations that count are known.
    WithoutUncertain,
    /// Once `wr` is complete.
    AfterWr,
    /// Only when nothing is left to choose.
    AtTheEnd,
}
