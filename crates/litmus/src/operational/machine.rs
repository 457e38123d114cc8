//! Machines as combinations of components.
//!
//! A [`Machine`] is a pipe from the processors to the memory: its stages in the order in which a
//! request passes them. A stage is an array of components, indexed as [`Each`] states. If the index
//! includes a view, a write is sent to the components of every view at once, and so is a fence; a
//! read is sent to those of its own thread. A stage with two parts is guarded: a write enters both
//! parts and leaves when it is at the front of both.
//!
//! The machines are those of section 3 of Mador-Haim, Alur and Martin, *Generating Litmus Tests
//! for Contrasting Memory Consistency Models* (2010), and IBM 370.

use thiserror::Error;

/// A kind of component.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Component {
    /// Runs a thread: sends its reads, writes and fences in program order, and stores its
    /// registers.
    Processor,
    /// Answers a read at once or postpones it, until pending writes have passed.
    FutureRead,
    /// Delays writes in the order of their arrival; answers reads of locations that it holds; a
    /// fence waits until it is empty.
    WriteQueue,
    /// Delays writes in the same way, but a read of a location that it holds waits until the write
    /// has left.
    StallQueue,
    /// Stores the values of the location since the last fence of the thread and its last own write,
    /// and answers a read with any of them.
    SetRead,
    /// Holds the value of a location.
    SimpleMem,
}

/// Index of the instances of a part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Each {
    /// One for each thread.
    Thread,
    /// One for each location.
    Address,
    /// One for each thread and location.
    ThreadAddress,
    /// One for each writing thread and each observing thread.
    ThreadView,
    /// One for each observing thread and each location.
    ViewAddress,
}

/// An array of components of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// Name in diagrams and runs.
    pub name: &'static str,
    /// Kind of its instances.
    pub component: Component,
    /// Index of its instances.
    pub each: Each,
}

/// A memory model as a machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Machine {
    /// Id on the command line.
    pub id: &'static str,
    /// Display name.
    pub name: &'static str,
    /// Description, in one sentence, of the order that it relaxes.
    pub summary: &'static str,
    /// Stages from the processors to the memory.
    pub stages: &'static [&'static [Part]],
}

const fn part(name: &'static str, component: Component, each: Each) -> Part {
    Part { name, component, each }
}

const PR: Part = part("Pr", Component::Processor, Each::Thread);
const FR: Part = part("FR", Component::FutureRead, Each::ThreadAddress);
const SR: Part = part("SR", Component::SetRead, Each::ThreadAddress);
/// Writes of a thread, in program order.
const WQ: Part = part("WQ", Component::WriteQueue, Each::Thread);
/// Writes of a thread to a location, in program order.
const WQ_ADDRESS: Part = part("WQ", Component::WriteQueue, Each::ThreadAddress);
/// Writes of a thread to a view, in program order.
const VQ: Part = part("VQ", Component::WriteQueue, Each::ThreadView);
/// Writes to a location to a view, in an order on which all views agree.
const CQ: Part = part("CQ", Component::WriteQueue, Each::ViewAddress);
const MEMORY: Part = part("M", Component::SimpleMem, Each::Address);
/// The value of a location for one thread.
const VIEW: Part = part("M", Component::SimpleMem, Each::ViewAddress);

impl Machine {
    /// Sequential consistency: processors on one memory.
    pub const SC: Machine = Machine {
        id: "sc",
        name: "SC",
        summary: "every access happens at once and in program order",
        stages: &[&[PR], &[MEMORY]],
    };

    /// Total store order: a queue of writes for each thread, with forwarding.
    pub const TSO: Machine = Machine {
        id: "tso",
        name: "TSO",
        summary: "a write may be delayed behind later reads; its own thread sees it at once",
        stages: &[&[PR], &[WQ], &[MEMORY]],
    };

    /// IBM 370: total store order without forwarding.
    pub const IBM370: Machine = Machine {
        id: "ibm370",
        name: "IBM 370",
        summary: "a write may be delayed behind later reads of other locations",
        stages: &[&[PR], &[part("WQ", Component::StallQueue, Each::Thread)], &[MEMORY]],
    };

    /// Partial store order: a queue of writes for each thread and location.
    pub const PSO: Machine = Machine {
        id: "pso",
        name: "PSO",
        summary: "a write may also be delayed behind later writes to other locations",
        stages: &[&[PR], &[WQ_ADDRESS], &[MEMORY]],
    };

    /// Partial store and load order: reads may return earlier values of memory.
    pub const PSLO: Machine = Machine {
        id: "pslo",
        name: "PSLO",
        summary: "as PSO, and a read may happen before earlier reads",
        stages: &[&[PR], &[WQ_ADDRESS], &[SR], &[MEMORY]],
    };

    /// Relaxed memory order: reads may also return later values of memory.
    pub const RMO: Machine = Machine {
        id: "rmo",
        name: "RMO",
        summary: "reads and writes in any order, except around fences, dependencies, and a write \
                  behind an access to its location",
        stages: &[&[PR], &[FR], &[WQ_ADDRESS], &[SR], &[MEMORY]],
    };

    /// Non-store-atomic total store order: one memory per thread; writes arrive in program order
    /// and, for each location, in the same order everywhere.
    pub const NTSO: Machine = Machine {
        id: "ntso",
        name: "NTSO",
        summary: "as TSO, and threads may see the writes of different threads at different times",
        stages: &[&[PR], &[WQ], &[VQ, CQ], &[VIEW]],
    };

    /// Non-store-atomic partial store order: one memory per thread; for each location, writes
    /// arrive in the same order everywhere.
    pub const NPSO: Machine = Machine {
        id: "npso",
        name: "NPSO",
        summary: "as PSO, and threads may see writes to different locations at different times",
        stages: &[&[PR], &[WQ_ADDRESS], &[CQ], &[VIEW]],
    };

    /// Non-store-atomic relaxed memory order.
    pub const NRMO: Machine = Machine {
        id: "nrmo",
        name: "NRMO",
        summary: "as RMO, and threads may see writes to different locations at different times",
        stages: &[&[PR], &[FR], &[WQ_ADDRESS], &[CQ], &[SR], &[VIEW]],
    };

    /// Every machine, from the strongest on.
    pub const ALL: [Machine; 9] = [
        Machine::SC,
        Machine::IBM370,
        Machine::TSO,
        Machine::PSO,
        Machine::PSLO,
        Machine::RMO,
        Machine::NTSO,
        Machine::NPSO,
        Machine::NRMO,
    ];

    /// Finds a machine by its id.
    pub fn by_id(id: &str) -> Option<Machine> {
        Machine::ALL.into_iter().find(|machine| machine.id == id)
    }

    /// Returns the parts, from the processors to the memory.
    pub fn parts(&self) -> impl Iterator<Item = &'static Part> {
        self.stages.iter().flat_map(|stage| stage.iter())
    }
}

/// Reason why a combination of components is not a machine.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum WiringError {
    /// A stage is at a position where it has no meaning.
    #[error(
        "machine {machine}: {part} ({component:?} for each {each:?}) cannot be at this position"
    )]
    Misplaced {
        /// The machine's id.
        machine: &'static str,
        /// The part's name.
        part: &'static str,
        /// The kind of the part.
        component: Component,
        /// The index of the part.
        each: Each,
    },
    /// A stage that every machine has is missing.
    #[error("machine {machine}: it has no {component:?}")]
    Missing {
        /// The machine's id.
        machine: &'static str,
        /// The missing part.
        component: Component,
    },
}

/// Stages of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Whether reads may be postponed.
    pub(super) future: bool,
    /// Queues of the writing thread.
    pub(super) local: Option<Local>,
    /// Queues from all threads to each view; without them there is one memory.
    pub(super) views: Option<Views>,
    /// Whether reads may return past values.
    pub(super) past: bool,
}

/// Queues of a writing thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Local {
    /// Whether there is one queue per location instead of one for all.
    pub(super) by_address: bool,
    /// Whether the queue answers reads of locations that it holds; otherwise they wait.
    pub(super) forwards: bool,
    /// Its name.
    pub(super) name: &'static str,
}

/// Queues to the views.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Views {
    /// Whether the writes of a thread arrive in program order.
    pub(super) in_order: bool,
    /// The name of the queues for each location.
    pub(super) name: &'static str,
}

impl Shape {
    /// Determines the stages, starting from the processors.
    pub(super) fn of(machine: &Machine) -> Result<Shape, WiringError> {
        let missing = |component| WiringError::Missing { machine: machine.id, component };
        let mut shape = Shape { future: false, local: None, views: None, past: false };
        let mut stages = machine.stages.iter().copied().peekable();
        if !matches!(
            stages.next(),
            Some([Part { component: Component::Processor, each: Each::Thread, .. }])
        ) {
            return Err(missing(Component::Processor));
        }
        if let Some([Part { component: Component::FutureRead, each: Each::ThreadAddress, .. }]) =
            stages.peek()
        {
            shape.future = true;
            stages.next();
        }
        if let Some([Part { name, component, each }]) = stages.peek() {
            let forwards = *component == Component::WriteQueue;
            let queue = forwards || *component == Component::StallQueue;
            if queue && matches!(each, Each::Thread | Each::ThreadAddress) {
                let by_address = *each == Each::ThreadAddress;
                shape.local = Some(Local { by_address, forwards, name });
                stages.next();
            }
        }
        if shape.future && !shape.local.is_some_and(|local| local.by_address && local.forwards) {
            return Err(missing(Component::WriteQueue));
        }
        match stages.peek() {
            Some([Part { name, component: Component::WriteQueue, each: Each::ViewAddress }]) => {
                shape.views = Some(Views { in_order: false, name });
                stages.next();
            }
            Some(
                [
                    Part { component: Component::WriteQueue, each: Each::ThreadView, .. },
                    Part { name, component: Component::WriteQueue, each: Each::ViewAddress },
                ],
            ) => {
                shape.views = Some(Views { in_order: true, name });
                stages.next();
            }
            _ => {}
        }
        if let Some([Part { component: Component::SetRead, each: Each::ThreadAddress, .. }]) =
            stages.peek()
        {
            shape.past = true;
            stages.next();
        }
        let each = if shape.views.is_some() { Each::ViewAddress } else { Each::Address };
        match stages.next() {
            Some([last]) if last.component == Component::SimpleMem && last.each == each => {}
            Some([first, ..]) => return Err(misplaced(machine, first)),
            Some([]) | None => return Err(missing(Component::SimpleMem)),
        }
        match stages.next() {
            Some([first, ..]) => Err(misplaced(machine, first)),
            Some([]) | None => Ok(shape),
        }
    }
}

fn misplaced(machine: &Machine, part: &Part) -> WiringError {
    WiringError::Misplaced {
        machine: machine.id,
        part: part.name,
        component: part.component,
        each: part.each,
    }
}
