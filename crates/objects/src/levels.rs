//! Visibility levels of methods, inferred from a batch of histories.
//!
//! Initially every method is assumed to see all operations linearized before it. A history that
//! these levels do not explain lowers them: among all assignments that explain it, one with the
//! fewest lowering steps is chosen, and among those one that first lowers methods that change no
//! state, because reads are more likely to be weak than writes. A history that satisfies an
//! assignment satisfies every lower one, so earlier histories stay explained.
//!
//! If several assignments qualify, the result depends on the order of the histories. It is an upper
//! bound: more histories can only lower it.

use std::collections::BTreeMap;

use consistory_spec::{Level, ObjectModel};
use consistory_verdict::{Stopped, Verdict};

use crate::court::judge_objects;
use crate::task::Task;
use crate::{Judgement, Options};

/// The level of each method that occurred.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Levels(BTreeMap<Box<str>, Level>);

impl Levels {
    /// Iterates over the methods and their levels, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Level)> {
        self.0.iter().map(|(method, &level)| (&**method, level))
    }

    /// Returns the level of a method; a method that has not occurred has the highest level.
    pub fn get(&self, method: &str) -> Level {
        self.0.get(method).copied().unwrap_or(Level::Complete)
    }

    /// Returns the model in which each method keeps its level.
    pub fn model(&self, task: &Task<'_>) -> ObjectModel {
        let levels: Vec<_> = self.0.iter().map(|(m, &level)| (m.clone(), level)).collect();
        ObjectModel::of_levels(&levels, Level::Complete, &task.methods())
    }
}

/// Effect of a history on the levels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inference {
    /// The levels explain the history unchanged.
    Kept,
    /// These methods were lowered.
    Lowered(Vec<(Box<str>, Level)>),
    /// Even the weakest levels do not explain the history.
    Unexplained,
}

/// Lowers the levels as far as a history requires.
pub fn infer_levels(
    task: &Task<'_>,
    levels: &mut Levels,
    options: &Options,
) -> Result<Inference, Stopped> {
    let methods: Vec<Box<str>> = task.methods().into_iter().map(Into::into).collect();
    for method in &methods {
        levels.0.entry(method.clone()).or_insert(Level::Complete);
    }
    let explains = |levels: &Levels| -> Result<bool, Stopped> {
        let ruling = judge_objects(task, &[levels.model(task)], options).swap_remove(0);
        match ruling.judgement {
            Judgement::Undecided(stopped) => Err(stopped),
            decided => Ok(decided.verdict() == Verdict::Consistent),
        }
    };
    if explains(levels)? {
        return Ok(Inference::Kept);
    }
    let mut weakest = levels.clone();
    for method in &methods {
        weakest.0.insert(method.clone(), Level::Weak);
    }
    if !explains(&weakest)? {
        return Ok(Inference::Unexplained);
    }
    // Methods that change no state come first, because `lowered` lowers the first methods first.
    let is_writer = |method: &str| !task.object().is_read_only(method, None);
    let mut order: Vec<&str> = methods.iter().map(|method| &**method).collect();
    order.sort_by_key(|method| (is_writer(method), *method));
    let most = Level::ALL.len() * methods.len();
    for steps in 1..=most {
        let mut found = None;
        lowered(levels, &order, steps, &mut |candidate| {
            if found.is_none() && explains(candidate)? {
                found = Some(candidate.clone());
            }
            Ok(found.is_some())
        })?;
        if let Some(found) = found {
            let changed = found.0.iter().filter(|(method, level)| levels.get(method) != **level);
            let changed = changed.map(|(method, &level)| (method.clone(), level)).collect();
            *levels = found;
            return Ok(Inference::Lowered(changed));
        }
    }
    // The weakest levels are among those tried.
    *levels = weakest;
    Ok(Inference::Kept)
}

/// Visits the levels that are `steps` steps lower, until one is accepted.
fn lowered(
    levels: &Levels,
    methods: &[&str],
    steps: usize,
    visit: &mut impl FnMut(&Levels) -> Result<bool, Stopped>,
) -> Result<bool, Stopped> {
    let Some((first, rest)) = methods.split_first() else {
        return if steps == 0 { visit(levels) } else { Ok(false) };
    };
    let current = levels.get(first) as usize;
    for down in (0..=steps.min(current)).rev() {
        let mut candidate = levels.clone();
        candidate.0.insert((*first).into(), Level::ALL[current - down]);
        if lowered(&candidate, rest, steps - down, visit)? {
            return Ok(true);
        }
    }
    Ok(false)
}
