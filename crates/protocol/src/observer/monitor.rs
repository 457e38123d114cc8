//! An observer and a checker, coupled.

use crate::checker::Checker;
use crate::descriptor::{Block, Symbol};
use crate::observer::{Failure, Observer};
use crate::tracking::{Effect, Shape};

/// Follows a run, and says at each step whether its constraint graph is acyclic.
#[derive(Clone, Debug)]
pub struct Monitor {
    observer: Observer,
    checker: Checker,
    symbols: Vec<Symbol>,
}

impl Monitor {
    /// Makes a monitor of a protocol, before its start state.
    pub fn new(shape: Shape) -> Self {
        Monitor { observer: Observer::new(shape), checker: Checker::new(), symbols: Vec::new() }
    }

    /// Says for each location of which block the initial value is that a start state puts there.
    #[must_use]
    pub fn with_homes(mut self, homes: &[Option<u32>]) -> Self {
        self.observer = self.observer.with_homes(homes);
        self
    }

    /// Goes on by what a rule or a start state did.
    ///
    /// A failure is final.
    pub fn step(&mut self, effect: &Effect) -> Result<(), Failure> {
        self.symbols.clear();
        let observed = self.observer.step(effect, &mut self.symbols);
        self.symbols.iter().try_for_each(|&symbol| self.checker.step(symbol))?;
        observed?;
        if self.observer.pending().is_empty() {
            return Ok(self.checker.finish()?);
        }
        if self.can_end() { Ok(()) } else { Err(Failure::NoOrder) }
    }

    /// Gives what the last step added to the descriptor.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Gives the observer.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Gives the checker.
    pub fn checker(&self) -> &Checker {
        &self.checker
    }

    /// Says whether some order of the pending stores makes the graph an acyclic constraint graph.
    fn can_end(&self) -> bool {
        let pending = self.observer.pending();
        let Some(&(block, _)) = pending.first() else {
            return self.checker.finish().is_ok();
        };
        // The order of stores to different blocks is free, so one block is done after the other.
        let of_block = |&(other, store): &(Block, usize)| (other == block).then_some(store);
        pending.iter().filter_map(of_block).any(|store| {
            let mut next = self.clone();
            next.symbols.clear();
            next.observer.complete(store, &mut next.symbols);
            let read = next.symbols.iter().try_for_each(|&symbol| next.checker.step(symbol));
            read.is_ok() && next.can_end()
        })
    }
}
