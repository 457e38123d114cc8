//! One step at a time: a state is loaded, rules fire on it one after the other.

use crate::machine::code::{Fit, MarkCode, MarkWhat, SiteId, UNDEFINED};
use crate::machine::lower::{CLEARED, INITIAL, STORE};
use crate::machine::run::{FUEL, Flow, Machine, position};
use crate::system::System;
use crate::tracking::{Effect, Operation, Source};

/// What came of trying a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fired {
    /// Its guard does not hold.
    Disabled,
    /// It ran; the slots hold what it left.
    Done,
    /// It went wrong.
    Fault(SiteId),
}

/// What came of checking the invariants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claimed {
    Hold,
    /// The claim that does not hold.
    Fails(usize),
    /// The claim whose evaluation went wrong.
    Fault(usize, SiteId),
}

/// Runs the rules of a system on one state at a time.
pub(crate) struct Stepper<'s> {
    pub(crate) system: &'s System,
    pub(crate) machine: Machine<'s>,
    /// The slots of the state that was loaded.
    base: Vec<i32>,
    /// What the last rule did to locations; only with tracking.
    pub(crate) effect: Effect,
}

impl<'s> Stepper<'s> {
    pub(crate) fn new(system: &'s System) -> Self {
        let lowered = &system.lowered;
        Stepper {
            system,
            machine: Machine::new(lowered.slots as usize, &lowered.routines, &system.layout),
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

    /// Goes back to the state that was loaded.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.machine.memory[..self.base.len()].copy_from_slice(&self.base);
    }

    /// Gives the slots that the last rule left.
    pub(crate) fn slots(&self) -> &[i32] {
        &self.machine.memory[..self.base.len()]
    }

    /// Packs what the last rule left, given the words of the state that was loaded.
    pub(crate) fn pack_from(&self, before: &[u64], words: &mut [u64]) {
        self.system.layout.pack_changes(&self.base, self.slots(), before, words);
    }

    /// Says whether the last rule changed nothing.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.slots() == self.base
    }

    /// Makes a start state.
    pub(crate) fn start(&mut self, number: usize) -> Fired {
        self.base.fill(UNDEFINED);
        self.reset();
        self.machine.fuel = FUEL;
        let instance = &self.system.lowered.starts[number];
        for &(slot, value) in &instance.set {
            self.machine.memory[slot as usize] = value;
        }
        let code = &*instance.code;
        if let Err(site) = self.machine.prepare(&code.prelude, &code.chosen) {
            return Fired::Fault(site);
        }
        self.machine.undefine(&code.locals);
        match self.machine.run(&code.body) {
            Ok(_) => self.finish(),
            Err(site) => Fired::Fault(site),
        }
    }

    /// Tries a rule on the state that was loaded; unless it is disabled, `reset` must follow.
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
        self.machine.fuel = FUEL;
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

    /// Sorts multisets, and reads off where the contents of locations come from.
    fn finish(&mut self) -> Fired {
        let layout = &self.system.layout;
        if !layout.bags.is_empty() {
            layout.sort_bags(&mut self.machine.memory[..self.base.len()]);
        }
        if self.system.flow.is_some() {
            self.effect.sources.clear();
            for (&slot, number) in layout.locations.iter().zip(0..) {
                let label = self.machine.memory[slot as usize];
                // Most rules leave most locations alone.
                let source = match label == number {
                    true => Source::Location(number as u32),
                    false => self.source(label),
                };
                self.effect.sources.push(source);
                // From here on a location only says whether it is defined.
                if label != UNDEFINED {
                    self.machine.memory[slot as usize] = number;
                }
            }
        }
        Fired::Done
    }

    /// Gives what a label means for the rule that fires.
    fn source(&self, label: i32) -> Source {
        match label {
            UNDEFINED | CLEARED => Source::Nothing,
            INITIAL => Source::Initial,
            label if label >= STORE => {
                let stores = self.effect.operations.iter().zip(0..);
                let mut stores = stores.filter(|(op, _)| matches!(op, Operation::Store { .. }));
                stores
                    .nth((label - STORE) as usize)
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

    /// Checks the invariants of the state that was loaded.
    pub(crate) fn claims(&mut self) -> Claimed {
        for (number, claim) in self.system.lowered.claims.iter().enumerate() {
            self.machine.fuel = FUEL;
            for &(slot, value) in &claim.set {
                self.machine.memory[slot as usize] = value;
            }
            let holds = match self.machine.prepare(&claim.prelude, &claim.chosen) {
                Ok(true) => self.machine.eval(&claim.condition).map(|code| code != 0),
                // There is no such element, so nothing is claimed of it.
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
