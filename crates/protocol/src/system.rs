//! A description, and what it becomes when it is to run.

use std::sync::Arc;

use consistory_diagnostic::Diagnostics;

use crate::machine::code::{FaultKind, SiteId};
use crate::machine::layout::{Layout, SlotKind, slot_names};
use crate::machine::lower::{Lowered, lower};
use crate::machine::{UNDEFINED, run::Printed};
use crate::murphi::commute::{self, Symmetric};
use crate::murphi::flow::{self, Flow};
use crate::murphi::ir::{Binder, Program};
use crate::murphi::{self, Source, Span, TypeId};
use crate::tracking::Shape;

/// A description in Murphi that was read and checked.
#[derive(Clone, Debug)]
pub struct Model {
    source: Source,
    program: Arc<Program>,
}

impl Model {
    /// Reads and checks a description; `name` is what diagnostics call it.
    pub fn parse(name: &str, text: &str) -> Result<Model, Diagnostics> {
        let source = Source::new(name, text);
        let program = Arc::new(murphi::read(&source)?);
        Ok(Model { source, program })
    }

    /// Says whether a rule is marked as a load, a store or a step of the store order.
    pub fn is_marked(&self) -> bool {
        self.program.rules.iter().any(|rule| !rule.marks.is_empty())
    }

    /// Makes a system that runs with data as it is.
    pub fn plain(&self) -> System {
        self.system(None)
    }

    /// Makes a system that runs with labels in the place of data, or says what stands against it.
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
        System { source: self.source.clone(), program, lowered, layout, flow, symmetric }
    }
}

/// A protocol that can run.
#[derive(Debug)]
pub struct System {
    pub(crate) source: Source,
    pub(crate) program: Arc<Program>,
    pub(crate) lowered: Lowered,
    pub(crate) layout: Layout,
    pub(crate) flow: Option<Flow>,
    pub(crate) symmetric: Symmetric,
}

/// A place in a description.
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

/// Something that went wrong when a rule ran, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Where.
    pub position: Position,
}

/// What a slot of a state holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The variable, as the description would write it.
    pub name: String,
    /// Its value; nothing if it is undefined.
    pub value: Option<String>,
}

impl System {
    /// Counts the bits of a packed state.
    pub fn bits(&self) -> u32 {
        self.layout.bits
    }

    /// Says which scalarsets are explored without symmetry, and why, as diagnostics with places.
    pub fn asymmetries(&self) -> Diagnostics {
        self.source.diagnostics(self.symmetric.notes.clone())
    }

    /// Counts the rules, each choice of parameters by itself.
    pub fn rules(&self) -> usize {
        self.lowered.rules.len()
    }

    /// Gives what a companion has to be built for; nothing without tracking.
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

    /// Gives the names of the locations, as the description would write them.
    pub fn location_names(&self) -> Vec<String> {
        let names = slot_names(&self.program);
        self.layout.locations.iter().map(|&slot| names[slot as usize].clone()).collect()
    }

    /// Gives the names of the variables that only checks look at.
    pub fn ghost_names(&self) -> Vec<String> {
        let ghosts = self.flow.iter().flat_map(|flow| &flow.ghosts);
        let mut names: Vec<String> =
            ghosts.map(|var| self.program.variables[var.0 as usize].name.to_string()).collect();
        names.sort();
        names
    }

    /// Gives the names of the processors.
    pub fn proc_names(&self) -> Vec<String> {
        self.flow.as_ref().map_or(Vec::new(), |flow| self.value_names(flow.proc))
    }

    /// Gives the names of the blocks; a single block without a type has the name `block`.
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

    /// Gives a rule's name with the values of its parameters.
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

    /// Gives the scalarsets of a loop that depends on the order of its rounds, if a site is of one.
    pub(crate) fn ordered_loop(&self, site: SiteId) -> Option<Vec<TypeId>> {
        let site = &self.lowered.sites[site.0 as usize];
        let types = self.symmetric.doubtful.values().flatten();
        (site.kind == FaultKind::OrderedLoop).then(|| types.copied().collect())
    }

    /// Writes out the slots of a state; `contents` are the values of its locations.
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

    /// Writes out what rules print.
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
        use crate::murphi::{Type, Types};
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
