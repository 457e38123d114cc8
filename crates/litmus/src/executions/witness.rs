//! Executions for display: one for each final state that was found.

use super::code::Code;
use super::unfold::{Event, Kind};
use crate::cat::bits::{Bits, Shape};

/// An event of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsaEvent {
    /// Number of the thread, or `None` for the initial value of a location.
    pub thread: Option<usize>,
    /// Short description, such as `R[A] x=1`.
    pub label: String,
}

/// An execution of a test that a model allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsaExecution {
    /// The events: initial values first, then each thread's in program order.
    pub events: Vec<IsaEvent>,
    /// Edges between events: `rf`, `co` and `fr` to the next write, and dependencies.
    pub edges: Vec<(usize, usize, &'static str)>,
}

impl IsaExecution {
    /// Builds the execution of some events with a choice of sources and of coherence.
    pub(super) fn new(
        code: &Code,
        events: &[(Option<usize>, Event)],
        starts: &[usize],
        shape: Shape,
        (rf, co): (&Bits, &Bits),
    ) -> Self {
        let has = |bits: &Bits, from: usize, to: usize| {
            bits[from * shape.words + to / 64] & (1 << (to % 64)) != 0
        };
        let all = 0..events.len();
        let is_next = |from: usize, to: usize| {
            has(co, from, to) && !all.clone().any(|at| has(co, from, at) && has(co, at, to))
        };
        let mut edges = Vec::new();
        for from in all.clone() {
            for to in all.clone() {
                if has(rf, from, to) {
                    edges.push((from, to, "rf"));
                    let next = all.clone().filter(|&at| at != to && is_next(from, at));
                    edges.extend(next.map(|at| (to, at, "fr")));
                }
                if is_next(from, to) {
                    edges.push((from, to, "co"));
                }
            }
        }
        for (at, (thread, event)) in events.iter().enumerate() {
            let Some(start) = thread.map(|thread| starts[thread]) else { continue };
            let reads = |bits: u64| (0..64).filter(move |bit| bits & (1 << bit) != 0);
            let sources = [(event.address_from, "addr"), (event.data_from, "data")];
            for (from, relation) in sources {
                let from = reads(from.direct | from.picked);
                edges.extend(from.map(|read| (start + read, at, relation)));
            }
            // A control dependency applies to all later events; only the first one is drawn.
            let before = match at > start {
                true => events[at - 1].1.control_from,
                false => Default::default(),
            };
            let control = event.control_from;
            let new = (control.direct | control.picked) & !(before.direct | before.picked);
            edges.extend(reads(new).map(|read| (start + read, at, "ctrl")));
        }
        let label = |&(thread, event): &(Option<usize>, Event)| IsaEvent {
            thread,
            label: label(code, thread, &event),
        };
        IsaExecution { events: events.iter().map(label).collect(), edges }
    }
}

fn label(code: &Code, thread: Option<usize>, event: &Event) -> String {
    let tags = code.tags.iter().enumerate().filter(|(at, _)| event.tags & (1 << at) != 0);
    let tags: Vec<&str> = tags.map(|(_, tag)| tag.as_str()).collect();
    let tags = if tags.is_empty() { String::new() } else { format!("[{}]", tags.join(",")) };
    let value = |value: i64| code.address_name(value).unwrap_or_else(|| value.to_string());
    let place = || value(event.address);
    match event.kind {
        _ if thread.is_none() => format!("{}={}", place(), value(event.written)),
        Kind::Read => format!("R{tags} {}={}", place(), value(event.read)),
        Kind::Write => format!("W{tags} {}={}", place(), value(event.written)),
        Kind::ReadWrite => {
            format!("RW{tags} {}={}, {}", place(), value(event.read), value(event.written))
        }
        Kind::Fence => format!("F{tags}"),
    }
}
