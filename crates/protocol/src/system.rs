//! A description, and the runnable system that is built from it.

use std::sync::Arc;

use consistory_diagnostic::Diagnostics;

use crate::explore::GivenUp;
use crate::machine::code::{FaultKind, SiteId};
use crate::machine::layout::{Layout, SlotKind, slot_names};
use crate::machine::lower::{Lowered, lower};
use crate::machine::{UNDEFINED, run::Printed};
use crate::murphi::commute::{self, Symmetric};
use crate::murphi::flow::{self, Flow};
use crate::murphi::ir::{Binder, MarkKind, Place, PlaceStep, Program, Rule, VarId};
use crate::murphi::{self, ConstantValue, Source, Span, Type, TypeId};
use crate::tracking::Shape;

/// A description in Murphi that was read and checked.
#[derive(Clone, Debug)]
pub struct Model {
    source: Source,
    program: Arc<Program>,
    constants: Arc<[(String, ConstantValue)]>,
}

impl Model {
    /// Largest size of a description in bytes.
    pub const MAX_BYTES: u64 = murphi::MAX_BYTES as u64;

    /// Reads and checks a description; `name` is its name in diagnostics.
    pub fn parse(name: &str, text: &str) -> Result<Model, Diagnostics> {
        Model::parse_with(name, text, &[])
    }

    /// Reads and checks a description with other values for some of its constants.
    pub fn parse_with(
        name: &str,
        text: &str,
        constants: &[(String, ConstantValue)],
    ) -> Result<Model, Diagnostics> {
        let source = Source::new(name, text);
        let program = Arc::new(murphi::read(&source, constants)?);
        Ok(Model { source, program, constants: constants.into() })
    }

    /// Returns the reason why nothing can be proved about a description without marked loads or
    /// without marked stores, or `None` if it has both.
    pub fn missing_marks(&self) -> Option<&'static str> {
        let marks = || self.program.rules.iter().flat_map(|rule| &rule.marks);
        let loads = marks().any(|mark| matches!(mark.kind, MarkKind::Load { .. }));
        let stores = marks().any(|mark| matches!(mark.kind, MarkKind::Store { .. }));
        match (loads, stores) {
            (true, true) => None,
            (false, true) => Some(
                "no rule is marked as a load; put `--@ load proc=P block=B from=PLACE` in front of \
                 the rules that load",
            ),
            (true, false) => Some(
                "no rule is marked as a store; put `--@ store proc=P block=B` in front of the rules \
                 that store",
            ),
            (false, false) => Some(
                "no rule is marked as a load or a store; put `--@ load proc=P block=B from=PLACE` \
                 and `--@ store proc=P block=B` in front of the rules that load and store",
            ),
        }
    }

    /// Estimates the bytes that it takes to run the description on `jobs` threads, in addition to
    /// the visited states.
    pub fn estimated_bytes(&self, jobs: usize) -> u64 {
        estimated_bytes(&self.program, jobs)
    }

    /// Builds a system that runs with concrete data.
    pub fn plain(&self) -> System {
        self.system(None)
    }

    /// Builds a system that runs with labels instead of data, or reports what prevents this.
    pub fn tracked(&self) -> Result<System, Diagnostics> {
        match flow::analyse(&self.program) {
            Ok(flow) => Ok(self.system(Some(flow))),
            Err(problems) => Err(self.source.diagnostics(problems)),
        }
    }

    fn system(&self, flow: Option<Flow>) -> System {
        let program = Arc::clone(&self.program);
        let data = flow.as_ref().map(|flow| flow.data);
        let symmetric = commute::symmetric(&program);
        let lowered = lower(&program, &self.source.text, data, &symmetric);
        let layout = Layout::new(&program, flow.as_ref());
        let serialized_locations = serialized_locations(&program, &layout, flow.as_ref());
        let (source, constants) = (self.source.clone(), Arc::clone(&self.constants));
        System {
            source,
            constants,
            program,
            lowered,
            layout,
            flow,
            symmetric,
            serialized_locations,
        }
    }
}

/// A protocol that can run.
#[derive(Debug)]
pub struct System {
    pub(crate) source: Source,
    /// Values of constants that were given from outside.
    pub(crate) constants: Arc<[(String, ConstantValue)]>,
    pub(crate) program: Arc<Program>,
    pub(crate) lowered: Lowered,
    pub(crate) layout: Layout,
    pub(crate) flow: Option<Flow>,
    pub(crate) symmetric: Symmetric,
    /// The locations where `serialize` marks look for stores.
    pub(crate) serialized_locations: Vec<u32>,
}

/// A position in a description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// The name of the description.
    pub source: Arc<str>,
    /// The line, counting from 1.
    pub line: u64,
    /// The column in characters, counting from 1.
    pub column: u64,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.source, self.line, self.column)
    }
}

/// A failure of a running rule, and its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The kind of failure.
    pub kind: FaultKind,
    /// Its position.
    pub position: Position,
}

/// A slot of a state with its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name of the variable, as written in the description.
    pub name: String,
    /// Value of the variable; `None` if it is undefined.
    pub value: Option<String>,
}

/// Estimates the bytes of a program: those of each slot and each rule, once and per thread.
fn estimated_bytes(program: &Program, jobs: usize) -> u64 {
    const PER_SLOT: u64 = 64;
    const PER_SLOT_AND_THREAD: u64 = 160;
    const PER_RULE: u64 = 160;
    let ty = |var: &VarId| program.variables[var.0 as usize].ty;
    let slots: u64 =
        program.globals.iter().map(|var| u64::from(program.types.slots(ty(var)))).sum();
    let choices = |rule: &Rule| {
        rule.binders.iter().fold(1u64, |product, binder| match binder {
            Binder::Quantifier { values, .. } => product.saturating_mul(values.len() as u64),
            _ => product,
        })
    };
    let rules: u64 = program.rules.iter().chain(&program.starts).map(choices).sum();
    slots * (PER_SLOT + PER_SLOT_AND_THREAD * jobs.max(1) as u64) + rules * PER_RULE
}

impl System {
    /// Estimates the bytes that it takes to run on `jobs` threads, in addition to the visited
    /// states.
    pub fn estimated_bytes(&self, jobs: usize) -> u64 {
        estimated_bytes(&self.program, jobs)
    }

    /// Counts the bits of a packed state.
    pub fn bits(&self) -> u32 {
        self.layout.bits
    }

    /// Counts the rules, each combination of parameters separately.
    pub fn rules(&self) -> usize {
        self.lowered.rules.len()
    }

    /// Returns the shape for which a companion must be built; `None` without tracking.
    pub fn shape(&self) -> Option<Shape> {
        let flow = self.flow.as_ref()?;
        let types = &self.program.types;
        Some(Shape {
            procs: types.count(flow.proc),
            blocks: flow.block.map_or(1, |block| types.count(block)),
            locations: self.layout.locations.len() as u32,
            serializes: flow.serializes,
        })
    }

    /// Returns the names of the locations, as written in the description.
    pub fn location_names(&self) -> Vec<String> {
        let names = slot_names(&self.program);
        self.layout.locations.iter().map(|&slot| names[slot as usize].clone()).collect()
    }

    /// Returns the names of the variables that only checks read.
    pub fn ghost_names(&self) -> Vec<String> {
        let ghosts = self.flow.iter().flat_map(|flow| &flow.ghosts);
        let mut names: Vec<String> =
            ghosts.map(|var| self.program.variables[var.0 as usize].name.to_string()).collect();
        names.sort();
        names
    }

    /// Returns the names of the processors.
    pub fn proc_names(&self) -> Vec<String> {
        self.flow.as_ref().map_or(Vec::new(), |flow| self.value_names(flow.proc))
    }

    /// Returns the names of the blocks; a single block without a type has the name `block`.
    pub fn block_names(&self) -> Vec<String> {
        match self.flow.as_ref().and_then(|flow| flow.block) {
            Some(block) => self.value_names(block),
            None => vec!["block".to_owned()],
        }
    }

    pub(crate) fn value_names(&self, ty: TypeId) -> Vec<String> {
        let types = &self.program.types;
        let pieces = types.pieces(ty);
        let codes =
            pieces.iter().flat_map(|piece| (0..piece.count as i32).map(|i| piece.first + i));
        codes.map(|code| types.show_code(ty, code)).collect()
    }

    /// Returns a rule's name with the values of its parameters.
    pub(crate) fn rule_name(&self, instance: usize) -> String {
        let instance = &self.lowered.rules[instance];
        let rule = &self.program.rules[instance.rule as usize];
        self.with_parameters(&rule.name, &rule.binders, &instance.parameters)
    }

    pub(crate) fn start_name(&self, instance: usize) -> String {
        let instance = &self.lowered.starts[instance];
        let rule = &self.program.starts[instance.rule as usize];
        self.with_parameters(&rule.name, &rule.binders, &instance.parameters)
    }

    pub(crate) fn claim_name(&self, claim: usize) -> String {
        let claim = &self.lowered.claims[claim];
        let invariant = &self.program.invariants[claim.invariant as usize];
        self.with_parameters(&invariant.name, &invariant.binders, &claim.parameters)
    }

    fn with_parameters(&self, name: &str, binders: &[Binder], parameters: &[i32]) -> String {
        let mut out = name.to_owned();
        let mut separator = " (";
        for (binder, &code) in binders.iter().zip(parameters) {
            let (Binder::Quantifier { var, .. } | Binder::Choose { var, .. }) = binder else {
                continue;
            };
            let variable = &self.program.variables[var.0 as usize];
            if self.flow.as_ref().is_some_and(|flow| flow.data == variable.ty) {
                continue;
            }
            out += separator;
            separator = ", ";
            out += &variable.name;
            out.push('=');
            out += &self.program.types.show_code(variable.ty, code);
        }
        if separator == ", " {
            out.push(')');
        }
        out
    }

    pub(crate) fn position(&self, span: Span) -> Position {
        let (line, column) = self.source.place(span);
        Position { source: self.source.name.clone(), line, column }
    }

    pub(crate) fn rule_position(&self, instance: usize) -> Position {
        let rule = self.lowered.rules[instance].rule as usize;
        self.position(self.program.rules[rule].span)
    }

    pub(crate) fn claim_position(&self, claim: usize) -> Position {
        let invariant = self.lowered.claims[claim].invariant as usize;
        self.position(self.program.invariants[invariant].span)
    }

    pub(crate) fn fault(&self, site: SiteId) -> Fault {
        let site = &self.lowered.sites[site.0 as usize];
        Fault { kind: site.kind.clone(), position: self.position(site.span) }
    }

    /// Returns the scalarsets of a loop that depends on the order of its rounds, if the site
    /// belongs to one.
    pub(crate) fn ordered_loop(&self, site: SiteId) -> Option<&[TypeId]> {
        self.lowered.loops.get(&site).map(|types| &types[..])
    }

    /// Lists the scalarsets from which `clear` picks a value; tracked data is never permuted.
    pub(crate) fn clear_notes(&self) -> Vec<GivenUp> {
        let data = self.flow.as_ref().map(|flow| flow.data);
        let notes = self.symmetric.cleared.iter().filter(|(ty, _)| Some(*ty) != data);
        let given_up = notes.map(|&(ty, span)| GivenUp {
            scalarset: self.program.types.show(ty),
            reason: format!("`clear` at {} picks one of its values", self.position(span)),
        });
        given_up.collect()
    }

    /// Converts the slots of a state to text; `contents` are the values of its locations.
    pub(crate) fn entries(&self, memory: &[i32], contents: &[i64]) -> Vec<Entry> {
        let names = slot_names(&self.program);
        let slots = self.layout.slots.iter().zip(memory).zip(names);
        let entries = slots.map(|((slot, &code), name)| {
            let value = match slot.kind {
                _ if code == UNDEFINED => None,
                SlotKind::Flag => Some("present".to_owned()),
                SlotKind::Value => Some(self.program.types.show_code(slot.ty, code)),
                SlotKind::Location(number) => contents.get(number as usize).map(i64::to_string),
                SlotKind::Ghost => None,
            };
            Entry { name, value }
        });
        entries.collect()
    }

    /// Converts the output of rules to text.
    pub(crate) fn show_printed(&self, printed: &[Printed]) -> String {
        let mut out = String::new();
        for piece in printed {
            match piece {
                Printed::Text(text) => out += &text.replace("\\n", "\n").replace("\\t", "\t"),
                Printed::Value(codes, ty) => {
                    let mut leaves = Vec::new();
                    self.leaves(*ty, &mut leaves);
                    let shown = codes.iter().zip(leaves).map(|(&code, ty)| match code {
                        UNDEFINED => "undefined".to_owned(),
                        code => self.program.types.show_code(ty, code),
                    });
                    out += &shown.collect::<Vec<_>>().join(" ");
                }
            }
        }
        out
    }

    /// Lists the simple types of the slots of a type.
    fn leaves(&self, ty: TypeId, out: &mut Vec<TypeId>) {
        use crate::murphi::Types;
        match self.program.types.get(ty) {
            Type::Record(fields) => fields.iter().for_each(|field| self.leaves(field.ty, out)),
            Type::Array { index, element } => {
                (0..self.program.types.count(*index)).for_each(|_| self.leaves(*element, out));
            }
            Type::Multiset { capacity, element } => {
                for _ in 0..*capacity {
                    out.push(Types::BOOLEAN);
                    self.leaves(*element, out);
                }
            }
            _ => out.push(ty),
        }
    }
}

/// Finds the locations where `serialize` marks may look for stores, for any values of their
/// indices.
fn serialized_locations(program: &Program, layout: &Layout, flow: Option<&Flow>) -> Vec<u32> {
    if flow.is_none() {
        return Vec::new();
    }
    let mut slots = Vec::new();
    for rule in &program.rules {
        for mark in &rule.marks {
            if let MarkKind::Serialize { from } = &mark.kind {
                slots.extend(slots_of(program, rule, from));
            }
        }
    }
    slots.sort_unstable();
    slots.dedup();
    let locations = slots.iter().filter_map(|slot| match layout.slots[*slot as usize].kind {
        SlotKind::Location(number) => Some(number),
        _ => None,
    });
    locations.collect()
}

/// Lists the slots that a place of a rule may denote, for any values of its indices.
fn slots_of(program: &Program, rule: &Rule, place: &Place) -> Vec<u32> {
    let alias = rule.binders.iter().find_map(|binder| match binder {
        Binder::Alias { var, place: aliased } if *var == place.root => Some(aliased),
        _ => None,
    });
    let (mut slots, mut ty) = match alias {
        Some(aliased) => (slots_of(program, rule, aliased), aliased.ty),
        None => {
            let ty = |var: VarId| program.variables[var.0 as usize].ty;
            let before = program.globals.iter().take_while(|var| **var != place.root);
            let at = before.map(|var| program.types.slots(ty(*var))).sum();
            (vec![at], ty(place.root))
        }
    };
    let types = &program.types;
    for step in &place.steps {
        let (count, stride, extra) = match (step, types.get(ty)) {
            (PlaceStep::Field(offset), Type::Record(fields)) => {
                let field = fields.iter().rfind(|field| field.offset == *offset);
                ty = field.map_or(ty, |field| field.ty);
                (1, 0, *offset)
            }
            (PlaceStep::Index { over, stride, .. }, Type::Array { element, .. }) => {
                ty = *element;
                (types.count(*over), *stride, 0)
            }
            (PlaceStep::Element { stride, .. }, Type::Multiset { capacity, element }) => {
                ty = *element;
                (*capacity, *stride, 1)
            }
            _ => (1, 0, 0),
        };
        let steps = (0..count).map(|number| number * stride + extra);
        slots = steps.flat_map(|step| slots.iter().map(move |slot| slot + step)).collect();
    }
    slots
}
