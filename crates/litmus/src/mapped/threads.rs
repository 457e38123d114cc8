//! Programs composed of threads that were translated before.
//!
//! A contrast runs millions of programs that consist of a few thousand different threads. Each
//! thread is written and read once, as a separate test, and so are its runs for given values that
//! other threads write. Only the search of executions remains for each program.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use consistory_diagnostic::Diagnostics;
use rustc_hash::FxHashMap;

use super::mapping::Mapping;
use super::sketch::{Access, Alphabet, LOCATIONS, Sketch};
use crate::cat::dag::Memory;
use crate::cat::{CatModel, Prepared};
use crate::executions::test::{Formula, Observed, Source};
use crate::executions::unfold::{Branches, Domain, Runs, unfold};
use crate::executions::{
    Asked, FinalState, IsaError, IsaOptions, IsaOutcomes, IsaTest, Question, all_runs, limit,
    outcomes_of_runs, prepare,
};
use crate::languages::{isa_language, read_with_locations};

/// A thread in the form that a side runs.
struct Part {
    /// Number of its text: equal texts have equal numbers.
    text: u32,
    /// The thread as a separate test; every test has the same first locations.
    test: IsaTest,
    /// Runs for given values of reads.
    runs: Mutex<FxHashMap<RunsKey, Arc<Runs>>>,
}

/// Branch mode, and the values that reads of each address may return.
type RunsKey = (Branches, Vec<(i64, Vec<i64>)>);

/// Accesses of a thread, and the number of writes in the threads before it.
type PartKey = (Vec<Access>, u32);

/// Threads that a side has translated.
#[derive(Default)]
pub(super) struct ThreadTable {
    parts: Mutex<FxHashMap<PartKey, Option<Arc<Part>>>>,
    texts: Mutex<HashMap<String, u32>>,
}

/// A program of translated threads.
pub(super) struct Program {
    parts: Vec<Arc<Part>>,
    /// Locations whose final values are observed.
    locations: Vec<usize>,
}

/// Tables that a worker keeps between programs of one side.
#[derive(Default)]
pub(super) struct Scratch {
    memory: Memory,
    test: Option<IsaTest>,
    prepared: Option<Arc<Prepared>>,
}

impl ThreadTable {
    /// Composes a program; `None` if the mapping cannot write it.
    pub(super) fn program(
        &self,
        sketch: &Sketch,
        alphabet: &Alphabet,
        mapping: &Mapping,
    ) -> Result<Option<Program>, Diagnostics> {
        let mut parts = Vec::new();
        for (thread, writes_before) in sketch.threads_and_offsets() {
            match self.part(thread, writes_before, alphabet, mapping)? {
                Some(part) => parts.push(part),
                None => return Ok(None),
            }
        }
        Ok(Some(Program { parts, locations: sketch.observed_locations().collect() }))
    }

    fn part(
        &self,
        thread: &[Access],
        writes_before: u32,
        alphabet: &Alphabet,
        mapping: &Mapping,
    ) -> Result<Option<Arc<Part>>, Diagnostics> {
        let lock = || self.parts.lock().unwrap_or_else(|e| e.into_inner());
        let key = (thread.to_vec(), writes_before);
        if let Some(part) = lock().get(&key) {
            return Ok(part.clone());
        }
        let part = match Sketch::render_thread(thread, writes_before, alphabet, mapping) {
            None => None,
            Some(rendered) => {
                // The text determines which of the two kinds of C it is.
                let language = isa_language(&rendered.text).unwrap_or(mapping.language);
                let text = &rendered.text;
                let test = read_with_locations("generated test", text, language, &LOCATIONS)?;
                let mut texts = self.texts.lock().unwrap_or_else(|e| e.into_inner());
                let next = texts.len() as u32;
                let text = *texts.entry(rendered.text).or_insert(next);
                Some(Arc::new(Part { text, test, runs: Mutex::default() }))
            }
        };
        lock().insert(key, part.clone());
        Ok(part)
    }
}

impl Program {
    /// Returns the numbers of the threads' texts; programs with equal numbers are equal.
    pub(super) fn texts(&self) -> Vec<u32> {
        self.parts.iter().map(|part| part.text).collect()
    }

    /// Finds the final states: the register of each read, then the observed locations. If only some
    /// states are wanted, no others are searched.
    pub(super) fn outcomes(
        &self,
        model: &CatModel,
        options: &IsaOptions,
        wanted: Option<&BTreeSet<FinalState>>,
        scratch: &mut Scratch,
    ) -> Result<BTreeSet<FinalState>, IsaError> {
        let first = &self.parts[0].test;
        let Scratch { memory, test, prepared } = scratch;
        let prepared = match prepared {
            Some(prepared) => prepared,
            None => prepared.insert(prepare(&first.code.tags, model)?),
        };
        let test = test.get_or_insert_with(|| IsaTest {
            filter: None,
            quantifier: Asked::Forall,
            proposition: Formula::True,
            ..first.clone()
        });
        self.observe(test);
        let mut found = IsaOutcomes::default();
        let threads = self.parts.iter().map(|part| &part.test.code.threads[0]);
        let runs = all_runs(&test.code, threads, &mut found, |thread, domain, branches| {
            self.parts[thread].unfolded(domain, branches, options.unroll)
        })?;
        let question = Question { test, model, prepared, options, wanted };
        outcomes_of_runs(&question, &runs, found, memory).map(|found| found.states)
    }

    /// Makes a test observe the values that this program observes.
    fn observe(&self, test: &mut IsaTest) {
        test.observed.clear();
        let mut observe = |of: &Observed, source: Source| {
            let first = test.observed.len();
            test.observed.push(Observed { name: String::new(), source, first, ..*of });
        };
        for (thread, part) in self.parts.iter().enumerate() {
            for of in &part.test.observed {
                if let Source::Register { register, .. } = of.source {
                    observe(of, Source::Register { thread, register });
                }
            }
        }
        for &location in &self.locations {
            let is_it = |part: &Part, of: &Observed| match of.source {
                Source::Memory { address, .. } => {
                    address == part.test.code.locations[location].address
                }
                Source::Register { .. } => false,
            };
            let found = self.parts.iter().find_map(|part| {
                let of = part.test.observed.iter().find(|of| is_it(part, of))?;
                Some((of, &part.test.code.locations[location]))
            });
            if let Some((of, declared)) = found {
                observe(of, of.source.clone());
                test.code.locations[location] = declared.clone();
            }
        }
    }
}

impl Part {
    fn unfolded(&self, domain: &Domain, branches: Branches, unroll: u8) -> Arc<Runs> {
        let mut values: Vec<(i64, Vec<i64>)> =
            domain.iter().map(|(address, values)| (*address, values.clone())).collect();
        values.sort_unstable();
        let lock = || self.runs.lock().unwrap_or_else(|e| e.into_inner());
        let key = (branches, values);
        if let Some(runs) = lock().get(&key) {
            return runs.clone();
        }
        let code = &self.test.code;
        let runs = unfold(code, &code.threads[0], domain, branches, unroll, limit(branches));
        let runs = Arc::new(runs);
        lock().insert(key, runs.clone());
        runs
    }
}

#[cfg(test)]
mod tests {
    use consistory_verdict::Budget;

    use super::*;
    use crate::cat::find_isa_model;
    use crate::enumerate::{Bound, Redundant};
    use crate::executions::isa_outcomes;
    use crate::languages::read_isa_test;
    use crate::mapped::find_mapping;
    use crate::mapped::sketch::cores;

    /// Programs composed of translated threads have the same outcomes as their texts.
    #[test]
    fn threads_and_texts_agree() {
        let options = IsaOptions {
            unroll: 1,
            condition_only: false,
            keep_executions: false,
            count: false,
            budget: Budget::unlimited(),
        };
        for (table, model) in [
            ("x86", "x86tso"),
            ("c11-x86", "x86tso"),
            ("aarch64", "aarch64"),
            ("riscv", "riscv"),
            ("power", "power"),
            ("c11", "rc11"),
            ("lkmm", "lkmm"),
        ] {
            let mapping = find_mapping(table).expect("it is built in");
            let model = find_isa_model(model).expect("it is built in");
            let alphabet = Alphabet::shared(&mapping, &mapping);
            let threads = ThreadTable::default();
            let mut scratch = Scratch::default();
            let mut sketches = Vec::new();
            for accesses in 1..=4 {
                let bound = Bound {
                    accesses,
                    threads: 3,
                    per_thread: 3,
                    locations: 2,
                    fences: false,
                    dependencies: false,
                };
                for core in cores(&bound, accesses, Redundant::Keep) {
                    for weight in 0..=2 {
                        core.sketches(&alphabet, weight, &mut sketches);
                    }
                }
            }
            let mut compared = 0;
            for sketch in sketches.iter().step_by(1 + sketches.len() / 150) {
                let text = sketch.render(&alphabet, &mapping, "T").expect("the table is large");
                let test = read_isa_test("T", &text.text).expect("the table writes tests");
                let expected = isa_outcomes(&test, &model, &options).expect("it is small").states;
                let program = threads.program(sketch, &alphabet, &mapping);
                let program = program.expect("it is read").expect("the table is large");
                let found = program.outcomes(&model, &options, None, &mut scratch).expect("small");
                assert_eq!(found, expected, "{table}: {}", text.text);
                // If only some states are wanted, those of them that are possible are found.
                let mut wanted: BTreeSet<_> = expected.iter().step_by(2).cloned().collect();
                wanted.insert(vec![77; text.observed.len()]);
                let some = program.outcomes(&model, &options, Some(&wanted), &mut scratch);
                let both: BTreeSet<_> = expected.intersection(&wanted).cloned().collect();
                assert_eq!(some.expect("small"), both, "{table}: {}", text.text);
                compared += 1;
            }
            assert!(compared > 50, "{table}: only {compared}");
        }
    }
}
