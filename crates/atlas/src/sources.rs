//! Sources for the reads of a shape, each choice once up to symmetry.
//!
//! A read takes its value from the initial write or from a write of its variable, but not from a
//! later write of its own session, since such a history satisfies no model. Sources are chosen read
//! by read, so that the visitor can stop as soon as the choices made settle the question.

use crate::reduce::Reduction;
use crate::shape::{Shape, Source};

/// The visitor's decision about a partial choice of sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Choose the sources of the other reads.
    Deeper,
    /// Choose another source for this read.
    Skip,
    /// Choose no more.
    Stop,
}

/// A visitor of choices of sources.
pub(crate) trait Visitor {
    /// Examines a partial choice of sources.
    fn partial(&mut self, sources: &[Source]) -> Next;
    /// Examines a complete choice of sources. Returns whether to continue.
    fn complete(&mut self, sources: &[Source]) -> bool;
}

/// Visits the choices of sources. Returns whether it visited all.
pub(crate) fn choose(
    shape: &Shape<'_>,
    automorphisms: &[&[u8]],
    reduction: &Reduction,
    visitor: &mut dyn Visitor,
) -> bool {
    let reads: Vec<usize> = (0..shape.len()).filter(|&at| shape.reads(at)).collect();
    let mut chooser = Chooser { shape, automorphisms, reduction, reads, chosen: Vec::new() };
    chooser.choose(visitor)
}

struct Chooser<'a> {
    shape: &'a Shape<'a>,
    automorphisms: &'a [&'a [u8]],
    reduction: &'a Reduction,
    reads: Vec<usize>,
    chosen: Vec<Source>,
}

impl Chooser<'_> {
    fn choose(&mut self, visitor: &mut dyn Visitor) -> bool {
        let Some(&read) = self.reads.get(self.chosen.len()) else {
            return !self.is_smallest() || visitor.complete(&self.chosen);
        };
        let shape = self.shape;
        let variable = shape.variable(read).expect("a read has a variable");
        let is_source = |&write: &usize| {
            write != read
                && shape.writes(write)
                && shape.variable(write) == Some(variable)
                && (write < read || shape.session(write) != shape.session(read))
        };
        for write in std::iter::once(None).chain((0..shape.len()).filter(is_source).map(Some)) {
            self.chosen.push(Source { read, variable, write });
            let is_last = self.chosen.len() == self.reads.len();
            let next = if !self.reduction.may_matter(shape, &self.chosen) {
                Next::Skip
            } else if is_last {
                Next::Deeper
            } else {
                visitor.partial(&self.chosen)
            };
            let goes_on = match next {
                Next::Deeper => self.choose(visitor),
                Next::Skip => true,
                Next::Stop => false,
            };
            self.chosen.pop();
            if !goes_on {
                return false;
            }
        }
        true
    }

    /// Returns whether no automorphism of the shape leads to smaller sources.
    fn is_smallest(&self) -> bool {
        self.automorphisms.iter().all(|automorphism| {
            let place = |from: usize| automorphism.iter().position(|&at| usize::from(at) == from);
            for source in &self.chosen {
                let from = usize::from(automorphism[source.read]);
                let other = self.chosen.iter().find(|other| other.read == from);
                let moved = other.and_then(|other| other.write).and_then(place);
                match moved.cmp(&source.write) {
                    std::cmp::Ordering::Less => return false,
                    std::cmp::Ordering::Greater => return true,
                    std::cmp::Ordering::Equal => {}
                }
            }
            true
        })
    }
}
