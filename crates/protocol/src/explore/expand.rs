//! Successors of a state as packed words: the protocol's state, followed by its companion's.

use consistory_verdict::{Budget, Stopped};

use crate::explore::store::Width;
use crate::explore::symmetry::Canonical;
use crate::machine::code::SiteId;
use crate::machine::stepper::{Claimed, Fired, Serialization, Stepper};
use crate::murphi::TypeId;
use crate::system::System;
use crate::tracking::{ByBytes, Companion, Effect, Follower};

/// The subject of an exploration: a system, its companion, and the symmetry that is used.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    pub(crate) system: &'a System,
    pub(crate) companion: Option<&'a dyn Companion>,
    /// The scalarsets whose values are permuted.
    pub(crate) symmetric: &'a [TypeId],
    /// Stores that take effect immediately.
    pub(crate) serialization: Serialization,
}

impl Product<'_> {
    /// Counts the words of a state.
    pub(crate) fn words(&self) -> usize {
        self.system.layout.words + self.companion.map_or(0, |c| c.width().div_ceil(8))
    }

    /// Returns the number of words of a state, and the number of words that are usually not zero; a
    /// companion mostly uses few.
    pub(crate) fn width(&self) -> Width {
        let words = self.words();
        Width { words, head: words.min(self.system.layout.words + 2) }
    }
}

/// Errors of a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Wrong {
    /// A rule failed.
    Fault { instance: usize, site: SiteId },
    /// The companion rejects the effect of a rule.
    Rejected { instance: usize },
    /// An invariant does not hold.
    Invariant { claim: usize },
    /// The evaluation of an invariant failed.
    InvariantFault { claim: usize, site: SiteId },
    /// No rule leads to another state.
    Deadlock,
    /// The budget ran out in the middle of the step, so its result is unknown.
    Stopped,
}

/// Computes successors; each thread has its own expander.
pub(crate) struct Expander<'a> {
    product: Product<'a>,
    pub(crate) stepper: Stepper<'a>,
    canonical: Canonical<'a>,
    follower: Option<Box<dyn Follower + 'a>>,
    /// State of the companion after a step.
    after: Vec<u8>,
    /// Words of the loaded state.
    loaded: Vec<u64>,
    words: Vec<u64>,
    slots: Vec<i32>,
}

impl<'a> Expander<'a> {
    pub(crate) fn new(product: Product<'a>, budget: &Budget) -> Self {
        let width = product.companion.map_or(0, Companion::width);
        let mut stepper = Stepper::new(product.system, product.serialization, budget.clone());
        stepper.machine.symmetric = product.symmetric.to_vec();
        Expander {
            product,
            stepper,
            canonical: Canonical::new(
                product.system,
                product.companion,
                product.symmetric,
                budget.clone(),
            ),
            follower: product.companion.map(|companion| {
                companion.follower().unwrap_or_else(|| Box::new(ByBytes::new(companion)))
            }),
            after: vec![0; width],
            loaded: vec![0; product.system.layout.words],
            words: vec![0; product.words()],
            slots: Vec::new(),
        }
    }

    /// Returns the effect of the last rule on the locations.
    pub(crate) fn effect(&self) -> &Effect {
        &self.stepper.effect
    }

    /// Loads a state and checks its invariants.
    pub(crate) fn load(&mut self, words: &[u64]) -> Option<Wrong> {
        let split = self.product.system.layout.words;
        self.stepper.load(&words[..split]);
        self.loaded.copy_from_slice(&words[..split]);
        if let Some(follower) = &mut self.follower {
            unpack_bytes(&words[split..], &mut self.after);
            follower.load(&self.after);
        }
        self.claims()
    }

    fn claims(&mut self) -> Option<Wrong> {
        match self.stepper.claims() {
            _ if self.stepper.machine.stopped.is_some() => Some(Wrong::Stopped),
            Claimed::Hold => None,
            Claimed::Fails(claim) => Some(Wrong::Invariant { claim }),
            Claimed::Fault(claim, site) => Some(Wrong::InvariantFault { claim, site }),
        }
    }

    /// Builds a start state; `words` is its canonical form.
    pub(crate) fn start(&mut self, number: usize) -> Result<&[u64], Wrong> {
        self.loaded.fill(0);
        match self.stepper.start(number) {
            _ if self.stepper.machine.stopped.is_some() => return Err(Wrong::Stopped),
            Fired::Fault(site) => return Err(Wrong::Fault { instance: number, site }),
            Fired::Done | Fired::Disabled => {}
        }
        if let Some(follower) = &mut self.follower {
            self.after.fill(0);
            if follower.start(&self.stepper.effect, &mut self.after).is_err() {
                return Err(Wrong::Rejected { instance: number });
            }
        }
        self.pack();
        match self.canonical.stopped {
            Some(_) => Err(Wrong::Stopped),
            None => Ok(&self.words),
        }
    }

    /// Fires a rule on the loaded state; returns the successor's canonical form.
    ///
    /// Returns `None` if the rule is disabled. Call [`Expander::reset`] before the next rule.
    pub(crate) fn fire(&mut self, number: usize) -> Result<Option<&[u64]>, Wrong> {
        match self.stepper.fire(number) {
            _ if self.stepper.machine.stopped.is_some() => return Err(Wrong::Stopped),
            Fired::Disabled => return Ok(None),
            Fired::Fault(site) => return Err(Wrong::Fault { instance: number, site }),
            Fired::Done => {}
        }
        if let Some(follower) = &mut self.follower {
            self.after.fill(0);
            if follower.step(&self.stepper.effect, &mut self.after).is_err() {
                return Err(Wrong::Rejected { instance: number });
            }
        }
        self.pack();
        match self.canonical.stopped {
            Some(_) => Err(Wrong::Stopped),
            None => Ok(Some(&self.words)),
        }
    }

    /// Returns the reason if the last step was aborted.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.stepper.machine.stopped.clone().or_else(|| self.canonical.stopped.clone())
    }

    /// Returns to the loaded state.
    pub(crate) fn reset(&mut self) {
        self.stepper.reset();
    }

    /// Continues from the state after the last step, without renaming anything.
    pub(crate) fn advance(&mut self) {
        self.slots.clear();
        self.slots.extend_from_slice(self.stepper.slots());
        self.stepper.load_slots(&self.slots);
        self.product.system.layout.pack(&self.slots, &mut self.loaded);
        if let Some(follower) = &mut self.follower {
            follower.load(&self.after);
        }
    }

    /// Packs the representative of the state after the last step.
    fn pack(&mut self) {
        let layout = &self.product.system.layout;
        let split = layout.words;
        if self.canonical.is_trivial() {
            self.stepper.pack_from(&self.loaded, &mut self.words[..split]);
            pack_bytes(&self.after, &mut self.words[split..]);
        } else {
            let follower = self.follower.as_deref_mut();
            let (slots, bytes) = self.canonical.of(self.stepper.slots(), &self.after, follower);
            layout.pack(slots, &mut self.words[..split]);
            pack_bytes(bytes, &mut self.words[split..]);
        }
    }
}

fn pack_bytes(bytes: &[u8], words: &mut [u64]) {
    for (chunk, word) in bytes.chunks(8).zip(words) {
        let mut all = [0; 8];
        all[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(all);
    }
}

fn unpack_bytes(words: &[u64], bytes: &mut [u8]) {
    for (chunk, word) in bytes.chunks_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}
