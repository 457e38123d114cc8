//! An observer whose descriptor is read by a checker at once.

use crate::checker::Checker;
use crate::descriptor::{Block, Symbol};
use crate::observer::initials::InitialValues;
use crate::observer::{Failure, Observer};
use crate::tracking::{Effect, Shape};

/// Follows a run, and checks after each step whether its constraint graph is acyclic.
#[derive(Clone, Debug)]
pub struct Monitor {
    observer: Observer,
    checker: Checker,
    initials: InitialValues,
    symbols: Vec<Symbol>,
}

impl Monitor {
    /// Builds a monitor of a protocol, before its start state.
    pub fn new(shape: Shape) -> Self {
        Monitor {
            observer: Observer::new(shape),
            checker: Checker::new(),
            initials: InitialValues::new(shape.locations as usize, shape.blocks as usize),
            symbols: Vec::new(),
        }
    }

    /// Sets the block whose initial value a start state puts into each location, where it is known.
    #[must_use]
    pub fn with_homes(mut self, homes: &[Option<u32>]) -> Self {
        self.observer = self.observer.with_homes(homes);
        self
    }

    /// Follows the effect of a rule or a start state.
    ///
    /// A failure is final.
    pub fn step(&mut self, effect: &Effect) -> Result<(), Failure> {
        self.symbols.clear();
        let observed = self.observer.step(effect, &mut self.symbols);
        self.symbols.iter().try_for_each(|&symbol| self.checker.step(symbol))?;
        observed?;
        let known = self.initials.step(effect);
        known.map_err(|block| Failure::TwoInitialValues { block: Block(block) })?;
        if self.observer.pending().is_empty() {
            return Ok(self.checker.finish()?);
        }
        self.ending().map(drop).ok_or(Failure::NoOrder)
    }

    /// Returns the symbols that the last step added to the descriptor.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Returns the observer.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Returns the checker.
    pub fn checker(&self) -> &Checker {
        &self.checker
    }

    /// Returns symbols that end the run's descriptor: they put the pending stores into an order in
    /// which the graph is an acyclic constraint graph. Returns `None` if there is no such order.
    pub fn ending(&self) -> Option<Vec<Symbol>> {
        let pending = self.observer.pending();
        let Some(&(block, _)) = pending.first() else {
            return self.checker.finish().is_ok().then(Vec::new);
        };
        // The orders of stores to different blocks are independent, so the blocks are completed one
        // by one.
        let of_block = |&(other, store): &(Block, usize)| (other == block).then_some(store);
        pending.iter().filter_map(of_block).find_map(|store| {
            let mut next = self.clone();
            next.symbols.clear();
            next.observer.complete(store, &mut next.symbols);
            next.symbols.iter().try_for_each(|&symbol| next.checker.step(symbol)).ok()?;
            let mut symbols = std::mem::take(&mut next.symbols);
            symbols.extend(next.ending()?);
            Some(symbols)
        })
    }
}
