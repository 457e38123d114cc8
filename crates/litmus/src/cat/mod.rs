//! Memory models in herd's language cat.
//!
//! [`CatModel`] is a text with the files that it includes. A test's architecture supplies names of
//! sets and relations; with them the model is compiled to a [`Plan`] if it only combines relations,
//! and otherwise interpreted on each candidate execution.

pub(crate) mod bits;
mod catalogue;
pub(crate) mod dag;
pub(crate) mod interpret;
mod lexer;
mod library;
mod parser;
pub(crate) mod syntax;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use consistory_diagnostic::Diagnostics;

use bits::Shape;
use dag::{Graph, Memory, NodeId, Op, Stage, passes};
use interpret::{CompiledCheck, Ground, Interpreter, Stop, UNDEFINED, Vocabulary, capitalised};
use parser::Texts;
use syntax::{Purpose, Statement};

pub use catalogue::{find_isa_model, isa_model_ids};

/// A memory model in cat.
#[derive(Debug)]
pub struct CatModel {
    /// Title in the text, or name of the file.
    pub title: String,
    texts: Texts,
    statements: Vec<Statement>,
    variants: Vec<String>,
    /// Names of the sets of events with a tag of the model's bell file.
    pub(crate) tag_sets: Vec<String>,
    /// Compiled model for each list of tags of a test.
    compiled: Mutex<HashMap<Vec<String>, Arc<Prepared>>>,
}

/// A model that is ready for the executions of one vocabulary.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) compiled: Compiled,
}

/// A model compiled for one vocabulary.
#[derive(Debug)]
pub(crate) enum Compiled {
    /// Operations on bits, stage by stage.
    Plan(Box<Plan>),
    /// The model must be interpreted on each execution.
    Interpreted,
}

/// A text of a model with its name.
#[derive(Clone, Debug)]
pub struct CatSource {
    /// Name that diagnostics show.
    pub name: String,
    /// The text.
    pub text: String,
}

impl CatModel {
    /// Reads a model, and its bell file if there is one.
    ///
    /// `load` finds included files by name; the files that herd's own models include are built in.
    pub fn read(
        model: CatSource,
        bell: Option<CatSource>,
        variants: &[String],
        load: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Diagnostics> {
        let mut texts = Texts::default();
        let mut statements = Vec::new();
        let standard = library::STANDARD.to_owned();
        statements.extend(parser::read(&mut texts, "stdlib.cat", standard, load, 0)?.statements);
        let mut tag_sets = Vec::new();
        if let Some(bell) = bell {
            let read = parser::read(&mut texts, &bell.name, bell.text, load, 0)?;
            for statement in &read.statements {
                if let Statement::Enum { tags, .. } = statement {
                    tag_sets.extend(tags.iter().map(|&tag| capitalised(texts.name(tag))));
                }
            }
            statements.extend(read.statements);
        }
        let read = parser::read(&mut texts, &model.name, model.text, load, 0)?;
        statements.extend(read.statements);
        // Names that the evaluator needs.
        texts.symbol("W");
        Ok(CatModel {
            title: read.title.unwrap_or(model.name),
            texts,
            statements,
            variants: variants.to_vec(),
            tag_sets,
            compiled: Mutex::default(),
        })
    }

    /// Compiles the model for tests with some tags, or returns the compiled model.
    ///
    /// `vocabulary` returns the names of sets and relations of such tests.
    pub(crate) fn compile(
        &self,
        tags: &[String],
        vocabulary: impl FnOnce() -> Vocabulary,
    ) -> Result<Arc<Prepared>, Diagnostics> {
        let mut known = self.compiled.lock().expect("no thread panics while it compiles");
        if let Some(prepared) = known.get(tags) {
            return Ok(prepared.clone());
        }
        let vocabulary = vocabulary();
        let mut interpreter = Interpreter::new(&self.texts, &vocabulary, &self.variants, None);
        let compiled = match interpreter.run(&self.statements) {
            Ok(()) => {
                let uses_coherence = interpreter.uses_coherence;
                Compiled::Plan(Box::new(Plan::new(
                    interpreter.graph,
                    interpreter.checks,
                    uses_coherence,
                )))
            }
            Err(Stop::NeedsExecution) => Compiled::Interpreted,
            Err(Stop::Error(place, message) | Stop::Unbound(place, message)) => {
                return Err(self.texts.diagnostics(place, message, None));
            }
        };
        let prepared = Arc::new(Prepared { vocabulary, compiled });
        known.insert(tags.to_vec(), prepared.clone());
        Ok(prepared)
    }

    /// Interprets the model on one execution: returns whether some choice allows it, and its flags.
    pub(crate) fn interpret(
        &self,
        vocabulary: &Vocabulary,
        ground: &dyn Ground,
        shape: Shape,
    ) -> Result<(bool, Vec<Arc<str>>), Diagnostics> {
        let mut interpreter =
            Interpreter::new(&self.texts, vocabulary, &self.variants, Some((ground, shape)));
        match interpreter.run(&self.statements) {
            Ok(()) => Ok((interpreter.allowed, interpreter.flags)),
            Err(Stop::Error(place, message) | Stop::Unbound(place, message)) => {
                Err(self.texts.diagnostics(place, message, None))
            }
            Err(Stop::NeedsExecution) => unreachable!("there is an execution"),
        }
    }
}

/// A step of a plan.
#[derive(Clone, Copy, Debug)]
enum Step {
    Compute(NodeId),
    Require(usize),
}

/// A compiled model.
#[derive(Debug)]
pub(crate) struct Plan {
    graph: Graph,
    checks: Vec<CompiledCheck>,
    /// Computations and checks of each stage.
    steps: [Vec<Step>; 3],
    /// Operations that flags need, computed for allowed executions only.
    flag_steps: Vec<NodeId>,
    flags: Vec<usize>,
    /// Sets and relations of the execution that are used: operation, index in the vocabulary,
    /// stage.
    pub(crate) bases: Vec<(NodeId, u32, Stage)>,
    /// Whether the model chooses a coherence order.
    pub(crate) uses_coherence: bool,
    /// Checks that stay violated when reads-from or coherence grow, and the operations that they
    /// need.
    early: Vec<Step>,
}

impl Plan {
    fn new(graph: Graph, checks: Vec<CompiledCheck>, uses_coherence: bool) -> Self {
        let mut plan = Plan {
            graph,
            checks,
            steps: Default::default(),
            flag_steps: Vec::new(),
            flags: Vec::new(),
            bases: Vec::new(),
            uses_coherence,
            early: Vec::new(),
        };
        let mut scheduled = vec![false; plan.graph.nodes.len()];
        let mut required: Vec<usize> = (0..plan.checks.len())
            .filter(|&at| matches!(plan.checks[at].purpose, Purpose::Require | Purpose::Assert))
            .collect();
        required.sort_by_key(|&at| plan.graph.node(plan.checks[at].node).stage);
        for at in required {
            let node = plan.checks[at].node;
            let mut needed = Vec::new();
            collect(&plan.graph, node, &mut scheduled, &mut needed);
            for id in needed {
                plan.steps[plan.graph.node(id).stage as usize].push(Step::Compute(id));
            }
            plan.steps[plan.graph.node(node).stage as usize].push(Step::Require(at));
        }
        for at in 0..plan.checks.len() {
            if matches!(plan.checks[at].purpose, Purpose::Flag | Purpose::Undefined) {
                let mut needed = Vec::new();
                collect(&plan.graph, plan.checks[at].node, &mut scheduled, &mut needed);
                plan.flag_steps.extend(needed);
                plan.flags.push(at);
            }
        }
        for (at, node) in plan.graph.nodes.iter().enumerate() {
            if let Op::Base(index) = node.op
                && scheduled[at]
            {
                plan.bases.push((NodeId(at as u32), index, node.stage));
            }
        }
        // Early steps: all operations after the first stage that monotone checks need.
        let mut done = vec![false; plan.graph.nodes.len()];
        for stage in 1..3 {
            for step in &plan.steps[stage] {
                let Step::Require(at) = *step else { continue };
                let check = &plan.checks[at];
                let node = plan.graph.node(check.node);
                if check.negated || !node.monotone {
                    continue;
                }
                let mut needed = Vec::new();
                collect(&plan.graph, check.node, &mut done, &mut needed);
                let later = |id: &NodeId| plan.graph.node(*id).stage != Stage::Events;
                plan.early.extend(needed.into_iter().filter(later).map(Step::Compute));
                plan.early.push(Step::Require(at));
            }
        }
        plan
    }

    /// Checks whether flags are reported, so that every allowed execution must be visited.
    pub(crate) fn has_flags(&self) -> bool {
        !self.flags.is_empty()
    }

    /// Prepares a memory for executions of some size.
    pub(crate) fn prepare(&self, memory: &mut Memory, shape: Shape) {
        memory.reset(&self.graph, shape);
    }

    /// Computes a stage; `false` if one of its checks fails.
    pub(crate) fn run(&self, memory: &mut Memory, stage: Stage) -> bool {
        self.steps(&self.steps[stage as usize], memory)
    }

    /// Performs the checks that are possible with incomplete reads-from and coherence.
    pub(crate) fn run_early(&self, memory: &mut Memory) -> bool {
        self.steps(&self.early, memory)
    }

    fn steps(&self, steps: &[Step], memory: &mut Memory) -> bool {
        for step in steps {
            match *step {
                Step::Compute(id) => memory.compute(&self.graph, id),
                Step::Require(at) => {
                    let check = &self.checks[at];
                    let value = &memory.values[check.node.0 as usize];
                    if !passes(memory.shape, check.test, check.negated, value) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Returns the flags of an allowed execution.
    pub(crate) fn raised(&self, memory: &mut Memory) -> Vec<Arc<str>> {
        for &id in &self.flag_steps {
            memory.compute(&self.graph, id);
        }
        let mut found: Vec<Arc<str>> = Vec::new();
        for &at in &self.flags {
            let check = &self.checks[at];
            let value = &memory.values[check.node.0 as usize];
            let holds = passes(memory.shape, check.test, check.negated, value);
            match check.purpose {
                Purpose::Flag if holds => found.push(check.name.clone()),
                Purpose::Undefined if !holds => found.push(UNDEFINED.into()),
                _ => {}
            }
        }
        found
    }
}

/// Collects the operations that an operation needs, itself last, without those collected before.
fn collect(graph: &Graph, id: NodeId, done: &mut [bool], into: &mut Vec<NodeId>) {
    if std::mem::replace(&mut done[id.0 as usize], true) {
        return;
    }
    for input in graph.inputs_of(id) {
        collect(graph, input, done, into);
    }
    into.push(id);
}
