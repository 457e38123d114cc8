//! Single steps: a state is loaded, and rules fire on it one after the other.

use consistory_verdict::Budget;

use crate::machine::code::{Fit, MarkCode, MarkWhat, SiteId, UNDEFINED};
use crate::machine::lower::{CLEARED_LABEL, STORE_LABEL};
use crate::machine::run::{Flow, MAX_LOOP_ROUNDS, Machine, position};
use crate::system::System;
use crate::tracking::{Effect, Operation, Source};

/// Result of trying a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fired {
    /// Its guard does not hold.
    Disabled,
    /// It ran; the slots hold the state after it.
    Done,
    /// It failed.
    Fault(SiteId),
}

/// Result of checking the invariants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claimed {
    Hold,
    /// The claim that does not hold.
    Fails(usize),
    /// The claim whose evaluation failed.
    Fault(usize, SiteId),
}

/// Stores that take effect immediately in a protocol with `serialize` marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Serialization {
    /// Stores whose value is not in a location where a `serialize` mark may look for it.
    Inferred,
    /// None: every store waits until a mark serializes it.
    MarksOnly,
}

/// Runs the rules of a system on one state at a time.
pub(crate) struct Stepper<'s> {
    pub(crate) system: &'s System,
    pub(crate) machine: Machine<'s>,
    serialization: Serialization,
    /// Slots of the loaded state.
    base: Vec<i32>,
    /// Effect of the last rule on the locations; only with tracking.
    pub(crate) effect: Effect,
}

impl<'s> Stepper<'s> {
    pub(crate) fn new(system: &'s System, serialization: Serialization, budget: Budget) -> Self {
        let lowered = &system.lowered;
        let slots = lowered.slots as usize;
        Stepper {
            system,
            serialization,
            machine: Machine::new(slots, &lowered.routines, &system.layout, budget),
            base: vec![UNDEFINED; system.layout.slots.len()],
            effect: Effect::default(),
        }
    }

    /// Loads a packed state.
    pub(crate) fn load(&mut self, words: &[u64]) {
        self.system.layout.unpack(words, &mut self.base);
        self.reset();
    }

    /// Loads the slots of a state.
    pub(crate) fn load_slots(&mut self, slots: &[i32]) {
        self.base.copy_from_slice(slots);
        self.reset();
    }

    /// Returns to the loaded state.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.machine.memory[..self.base.len()].copy_from_slice(&self.base);
    }

    /// Returns the slots after the last rule.
    pub(crate) fn slots(&self) -> &[i32] {
        &self.machine.memory[..self.base.len()]
    }

    /// Packs the state after the last rule, given the words of the loaded state.
    pub(crate) fn pack_from(&self, before: &[u64], words: &mut [u64]) {
        self.system.layout.pack_changes(&self.base, self.slots(), before, words);
    }

    /// Checks whether the last rule changed nothing.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.slots() == self.base
    }

    /// Builds a start state.
    pub(crate) fn start(&mut self, number: usize) -> Fired {
        self.base.fill(UNDEFINED);
        self.reset();
        self.machine.fuel = MAX_LOOP_ROUNDS;
        let instance = &self.system.lowered.starts[number];
        for &(slot, value) in &instance.set {
            self.machine.memory[slot as usize] = value;
        }
        let code = &*instance.code;
        if let Err(site) = self.machine.prepare(&code.prelude, &code.chosen) {
            return Fired::Fault(site);
        }
        self.machine.undefine(&code.locals);
        if let Err(site) = self.machine.run(&code.body) {
            return Fired::Fault(site);
        }
        self.sort_bags();
        if self.system.flow.is_some() {
            self.label_start();
        }
        Fired::Done
    }

    /// Replaces the data of a start state by labels; equal initial values have equal numbers.
    fn label_start(&mut self) {
        let layout = &self.system.layout;
        self.effect.operations.clear();
        self.effect.sources.clear();
        // Data in the order of the locations.
        let mut values: Vec<i32> = Vec::new();
        for (&slot, number) in layout.locations.iter().zip(0..) {
            let code = &mut self.machine.memory[slot as usize];
            if *code == UNDEFINED {
                self.effect.sources.push(Source::Nothing);
                continue;
            }
            let known = values.iter().position(|value| value == code);
            let value = known.unwrap_or(values.len());
            if known.is_none() {
                values.push(*code);
            }
            self.effect.sources.push(Source::Initial { value: value as u32 });
            *code = number;
        }
        self.erase_ghosts();
    }

    /// Sets ghosts to the same value in every state, as unpacking does, because they are not part
    /// of the state.
    fn erase_ghosts(&mut self) {
        for &slot in &self.system.layout.ghosts {
            self.machine.memory[slot as usize] = CLEARED_LABEL;
        }
    }

    fn sort_bags(&mut self) {
        let layout = &self.system.layout;
        if !layout.bags.is_empty() {
            layout.sort_bags(&mut self.machine.memory[..self.base.len()]);
        }
    }

    /// Tries a rule on the loaded state; unless the rule is disabled, `reset` must follow.
    pub(crate) fn fire(&mut self, number: usize) -> Fired {
        match self.attempt(number) {
            Ok(true) => self.finish(),
            Ok(false) => Fired::Disabled,
            Err(site) => Fired::Fault(site),
        }
    }

    #[inline]
    fn attempt(&mut self, number: usize) -> Result<bool, SiteId> {
        let instance = &self.system.lowered.rules[number];
        let code = &*instance.code;
        self.machine.fuel = MAX_LOOP_ROUNDS;
        for &(slot, value) in &instance.set {
            self.machine.memory[slot as usize] = value;
        }
        let is_plain = code.prelude.is_empty() && code.chosen.is_empty();
        if !is_plain && !self.machine.prepare(&code.prelude, &code.chosen)? {
            return Ok(false);
        }
        if let Some(guard) = &code.guard
            && self.machine.eval(guard)? == 0
        {
            return Ok(false);
        }
        self.effect.operations.clear();
        for mark in &code.marks {
            let operation = self.operation(mark)?;
            self.effect.operations.push(operation);
        }
        self.machine.undefine(&code.locals);
        let _: Flow = self.machine.run(&code.body)?;
        Ok(true)
    }

    /// Sorts multisets, and determines the sources of the locations from their labels.
    fn finish(&mut self) -> Fired {
        self.sort_bags();
        let layout = &self.system.layout;
        if self.system.flow.is_some() {
            self.effect.sources.clear();
            for (&slot, number) in layout.locations.iter().zip(0..) {
                let label = self.machine.memory[slot as usize];
                // Most rules do not change most locations.
                let source = match label == number {
                    true => Source::Location(number as u32),
                    false => self.source(label),
                };
                self.effect.sources.push(source);
                // From now on the slot of a location only indicates whether it is defined.
                if label != UNDEFINED {
                    self.machine.memory[slot as usize] = number;
                }
            }
            self.erase_ghosts();
            if !self.system.serialized_locations.is_empty()
                && self.serialization == Serialization::Inferred
            {
                self.serialize_at_once();
            }
        }
        Fired::Done
    }

    /// Serializes the stores of the last rule whose value is not in a location where a mark may
    /// look for it.
    fn serialize_at_once(&mut self) {
        let Effect { operations, sources } = &mut self.effect;
        for number in 0..operations.len() {
            let Operation::Store { block, .. } = operations[number] else { continue };
            let from = Source::Store(number as u32);
            let locations = &self.system.serialized_locations;
            if !locations.iter().any(|&location| sources[location as usize] == from) {
                operations.push(Operation::Serialize { block, from });
            }
        }
    }

    /// Returns the meaning of a label for the rule that fires.
    fn source(&self, label: i32) -> Source {
        match label {
            UNDEFINED | CLEARED_LABEL => Source::Nothing,
            label if label >= STORE_LABEL => {
                let stores = self.effect.operations.iter().zip(0..);
                let mut stores = stores.filter(|(op, _)| matches!(op, Operation::Store { .. }));
                stores
                    .nth((label - STORE_LABEL) as usize)
                    .map_or(Source::Nothing, |(_, number)| Source::Store(number))
            }
            label => Source::Location(label as u32),
        }
    }

    fn operation(&mut self, mark: &MarkCode) -> Result<Operation, SiteId> {
        let proc = self.name(&mark.proc)?;
        let block = self.name(&mark.block)?;
        Ok(match &mark.kind {
            MarkWhat::Store => Operation::Store { proc, block },
            MarkWhat::Load(at) => {
                let at = self.machine.address(at)?;
                Operation::Load { proc, block, from: self.source(self.machine.memory[at as usize]) }
            }
            MarkWhat::Serialize(at) => {
                let at = self.machine.address(at)?;
                Operation::Serialize { block, from: self.source(self.machine.memory[at as usize]) }
            }
        })
    }

    fn name(&mut self, name: &Option<(crate::machine::code::Code, Fit)>) -> Result<u32, SiteId> {
        let Some((code, fit)) = name else { return Ok(0) };
        let code = self.machine.eval(code)?;
        position(&fit.pieces, code).ok_or(fit.site)
    }

    /// Checks the invariants of the loaded state.
    pub(crate) fn claims(&mut self) -> Claimed {
        for (number, claim) in self.system.lowered.claims.iter().enumerate() {
            self.machine.fuel = MAX_LOOP_ROUNDS;
            for &(slot, value) in &claim.set {
                self.machine.memory[slot as usize] = value;
            }
            let holds = match self.machine.prepare(&claim.prelude, &claim.chosen) {
                Ok(true) => self.machine.eval(&claim.condition).map(|code| code != 0),
                // There is no such element, so the claim does not apply.
                other => other.map(|_| true),
            };
            match holds {
                Ok(true) => {}
                Ok(false) => return Claimed::Fails(number),
                Err(site) => return Claimed::Fault(number, site),
            }
        }
        Claimed::Hold
    }
}
