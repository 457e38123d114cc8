//! Dependence of a definition's checks on the relations that a search chooses.
//!
//! `consistory-models` computes the analysis from the signs with which names occur. The analysis
//! only steers searches; a checker of certificates does not use it.

/// Dependence of a program's parts on `wr` and `ww`.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Condition under which a violation that is found before all choices are made is final.
    pub pruning: Pruning,
    /// Whether an expression that may depend on `wr` or `ww` is negated. An explanation does not
    /// look into negations, so it then cannot tell which choices a violation rests on.
    pub negates_choices: bool,
    /// For each outermost group, whether it depends on `ww`.
    pub late_globals: Vec<bool>,
    /// For each check, whether it depends on `ww`.
    pub late_checks: Vec<bool>,
}

/// Condition under which a violation that is found before all choices are made is final.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pruning {
    /// Final, whatever is added to `wr` and `ww`.
    Always,
    /// Final, whatever is added to `wr` and `ww`, if the operations that count are known.
    WithoutUncertain,
    /// Final once `wr` is complete.
    AfterWr,
    /// Final only when no choice remains.
    AtTheEnd,
}
