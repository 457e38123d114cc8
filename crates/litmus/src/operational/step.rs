//! The steps of a machine from a state, and the states that they lead to.
//!
//! A step starts at one component, the actor: a processor sends its next request, a queue releases
//! its first write, a postponed read is answered, a view takes the next write. The request passes
//! through the pipe within the step. Each step has a footprint: the components that it reads and
//! those that it changes. Two possible steps commute if neither changes a component that the other
//! one reads or changes, where
//!
//! - appending to a queue and taking from it commute (a queue has two ends), and
//! - taking a write out of its thread's queue commutes with the thread's own reads: before that,
//!   the queue answers them with the write's value, after that, the memory does.
//!
//! The non-store-atomic machines differ from the paper's text in one point: a write is sent to the
//! views only when its own view has taken every older write to the location, and then its own
//! memory takes it at once. The paper's queues may delay a thread's own write to the thread's own
//! memory and answer from the queue instead. In the axioms, however, the position of a write in its
//! own view constrains the reads of other threads, so this delay must not occur.

use crate::operational::compile::{Kind, Operand, Operation, Source, Tables};
use crate::operational::component::{Item, PENDING, Queue, Small};
use crate::program::{Expression, Value};

/// The component that starts a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Actor {
    /// The processor of a thread.
    Processor(u8),
    /// A queue of a thread that writes.
    Queue(u16),
    /// The postponed read with this number in this queue.
    Waiting { queue: u16, operation: u8 },
    /// The queue of this view and location.
    View(u16),
}

/// A possible step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) actor: Actor,
    /// Value that the read returns, or [`PENDING`] if the read is postponed.
    pub(super) choice: Small,
    /// Bit of the step in a sleep set; 0 if it never sleeps.
    pub(super) sleep: u128,
    pub(super) looks: u128,
    pub(super) changes: u128,
}

impl Step {
    pub(super) fn commutes(&self, other: &Step) -> bool {
        self.changes & (other.looks | other.changes) == 0 && other.changes & self.looks == 0
    }
}

/// Result of listing the possible steps: whether all or only sufficient ones were listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// All possible steps were listed.
    All,
    /// The listed steps suffice: they commute with all steps that other components can ever take.
    Enough,
}

/// Number of bits in a footprint; components with larger numbers share bits, which can only make
/// two steps seem to conflict.
const BITS: usize = 128;

fn bit(index: usize) -> u128 {
    1 << (index % BITS)
}

impl Tables {
    // The numbering of components in footprints: processors, then for each queue its front and its
    // back, then memory.

    fn processor_bit(&self, thread: usize) -> u128 {
        bit(thread)
    }

    fn local_front(&self, queue: usize) -> u128 {
        bit(self.threads + 2 * queue)
    }

    fn local_back(&self, queue: usize) -> u128 {
        bit(self.threads + 2 * queue + 1)
    }

    fn view_front(&self, cell: usize) -> u128 {
        bit(self.threads + 2 * self.local.len() + 2 * cell)
    }

    fn view_back(&self, cell: usize) -> u128 {
        bit(self.threads + 2 * self.local.len() + 2 * cell + 1)
    }

    fn memory_bit(&self, cell: usize) -> u128 {
        bit(self.threads + 2 * self.local.len() + 2 * self.views.len() + cell)
    }

    /// Returns the index of the memory byte in which the thread sees the location, relative to the
    /// start of memory.
    pub(super) fn cell(&self, thread: usize, location: usize) -> usize {
        if self.shape.views.is_some() { thread * self.locations + location } else { location }
    }

    /// Returns the queue for the thread's accesses to the location, if there is one.
    pub(super) fn local_queue(&self, thread: usize, location: usize) -> Option<usize> {
        let local = self.shape.local?;
        Some(if local.by_address { thread * self.locations + location } else { thread })
    }

    /// Returns the range of all queues of the thread.
    fn local_queues(&self, thread: usize) -> std::ops::Range<usize> {
        match self.shape.local {
            Some(local) if local.by_address => {
                thread * self.locations..(thread + 1) * self.locations
            }
            Some(_) => thread..thread + 1,
            None => 0..0,
        }
    }

    #[inline]
    pub(super) fn program_counter(&self, state: &[u8], thread: usize) -> usize {
        self.starts[thread] + usize::from(state[thread])
    }

    fn ahead(&self, state: &[u8], thread: usize) -> super::compile::Ahead {
        // Each thread before this one has one entry more than it has operations.
        self.ahead[self.program_counter(state, thread) + thread]
    }

    fn is_answered(&self, state: &[u8], operation: &Operation) -> bool {
        operation.needs.iter().all(|slot| state[*slot] != PENDING)
    }

    fn evaluate(&self, state: &[u8], thread: usize, value: &Expression) -> Value {
        let known = |slot: &usize| match state[*slot] {
            PENDING => 0,
            small => self.values.value(small),
        };
        let registers: Vec<Value> = self.slots[thread].iter().map(known).collect();
        value.evaluate(&registers)
    }

    fn operand(&mut self, state: &[u8], operation: usize) -> Small {
        let Operation { value, thread, .. } = &self.operations[operation];
        match value {
            Operand::Constant(small) => *small,
            Operand::Computed(expression) => {
                let value = self.evaluate(state, *thread, expression);
                self.values.place(value)
            }
            Operand::Compared { .. } => unreachable!("only a compare-exchange compares"),
        }
    }

    /// Returns the value of a write in a queue, if its registers have been answered.
    fn item_value(&mut self, state: &[u8], item: Item) -> Option<Small> {
        if item.value != PENDING {
            return Some(item.value);
        }
        let operation = usize::from(item.operation);
        self.is_answered(state, &self.operations[operation]).then(|| self.operand(state, operation))
    }

    /// Checks whether another thread may still write the location, or has pending writes to it that
    /// have not reached this thread.
    fn others_write(&self, state: &[u8], thread: usize, location: usize) -> bool {
        let word = 1u64 << location;
        if let Some(queue) = self.views.get(thread * self.locations + location)
            && !queue.is_empty(state)
        {
            return true;
        }
        (0..self.threads).any(|other| {
            other != thread
                && (self.ahead(state, other).writes & word != 0
                    || self.has_in_queue(state, other, location, Kind::Write))
        })
    }

    fn others_read(&self, state: &[u8], thread: usize, location: usize) -> bool {
        (0..self.threads).any(|other| other != thread && self.may_read(state, other, location))
    }

    /// Returns whether the thread may still read the location.
    fn may_read(&self, state: &[u8], thread: usize, location: usize) -> bool {
        self.ahead(state, thread).reads & (1 << location) != 0
            || self.shape.future && self.has_in_queue(state, thread, location, Kind::Read)
    }

    fn has_in_queue(&self, state: &[u8], thread: usize, location: usize, kind: Kind) -> bool {
        let Some(queue) = self.local_queue(thread, location) else { return false };
        self.local[queue].items(state).any(|item| {
            let operation = &self.operations[usize::from(item.operation)];
            operation.location == location && operation.kind == kind
        })
    }

    /// Checks whether all writes of the thread have arrived everywhere, and all writes sent to the
    /// views too: the condition of a full fence.
    fn is_drained(&self, state: &[u8], thread: usize) -> bool {
        self.local_queues(thread).all(|queue| self.local[queue].is_empty(state))
            && self.views.iter().all(|queue| queue.is_empty(state))
    }

    /// Checks whether the run is over: the outcome can no longer change.
    pub(super) fn is_final(&self, state: &[u8]) -> bool {
        let ended = (0..self.threads).all(|t| self.program_counter(state, t) == self.starts[t + 1]);
        if !ended {
            return false;
        }
        let mut queues = self.local.iter().chain(&self.views);
        if self.observes_memory {
            return queues.all(|queue| queue.is_empty(state));
        }
        !self.shape.future
            || self.local.iter().all(|queue| {
                let mut items = queue.items(state);
                items.all(|i| self.operations[usize::from(i.operation)].kind == Kind::Write)
            })
    }

    /// Stores the outcome of a final state in `outcome`.
    pub(super) fn outcome(&mut self, state: &[u8], outcome: &mut Vec<Small>) {
        outcome.clear();
        for index in 0..self.observed.len() {
            outcome.push(match &self.observed[index] {
                Source::Register(slot) => state[*slot],
                Source::Location(location) => state[self.memory + location],
                Source::Computed(thread, expression) => {
                    let value = self.evaluate(state, *thread, expression);
                    self.values.place(value)
                }
            });
        }
    }

    /// Lists the possible steps of a state, or only sufficient ones if requested.
    pub(super) fn steps(&mut self, state: &[u8], wanted: Choice, steps: &mut Vec<Step>) -> Choice {
        steps.clear();
        for thread in 0..self.threads {
            let before = steps.len();
            let enough = self.processor_steps(state, thread, steps);
            if enough && wanted == Choice::Enough && steps.len() > before {
                steps.drain(..before);
                return Choice::Enough;
            }
        }
        for queue in 0..self.local.len() {
            if let Some(step) = self.queue_step(state, queue) {
                if wanted == Choice::Enough && self.is_private_write(state, step) {
                    steps.clear();
                    steps.push(step);
                    return Choice::Enough;
                }
                steps.push(step);
            }
            if self.shape.future && self.waiting_steps(state, queue, wanted, steps) {
                return Choice::Enough;
            }
        }
        for cell in 0..self.views.len() {
            let Some(step) = self.view_step(state, cell) else { continue };
            let (view, location) = (cell / self.locations, cell % self.locations);
            let looks = self.ahead(state, view).reads_before_fence & (1 << location) != 0
                || self.shape.future && self.has_in_queue(state, view, location, Kind::Read);
            if wanted == Choice::Enough && !looks {
                steps.clear();
                steps.push(step);
                return Choice::Enough;
            }
            steps.push(step);
        }
        Choice::All
    }

    /// Lists the steps of a processor; returns whether they suffice.
    fn processor_steps(&mut self, state: &[u8], thread: usize, steps: &mut Vec<Step>) -> bool {
        let at = self.program_counter(state, thread);
        if at == self.starts[thread + 1] {
            return false;
        }
        let (kind, location) = (self.operations[at].kind, self.operations[at].location);
        let step = Step {
            actor: Actor::Processor(thread as u8),
            choice: 0,
            sleep: self.sleep_of_processor(thread, 0),
            looks: 0,
            changes: self.processor_bit(thread),
        };
        let atomic = kind.is_atomic();
        match kind {
            Kind::Nothing => {
                steps.push(step);
                true
            }
            Kind::Assign | Kind::Jump { .. } => {
                // The operation waits for registers that have not been answered; no other component
                // changes them.
                if self.is_answered(state, &self.operations[at]) {
                    steps.push(step);
                }
                true
            }
            Kind::LoadFence => {
                let waits = self.shape.future
                    && self.local_queues(thread).any(|queue| {
                        self.local[queue].items(state).any(|item| {
                            self.operations[usize::from(item.operation)].kind == Kind::Read
                        })
                    });
                if waits {
                    return false;
                }
                let looks = if self.shape.past { self.all_memory(thread) } else { 0 };
                steps.push(Step { looks, ..step });
                !self.shape.past
            }
            Kind::FullFence => {
                if !self.is_drained(state, thread) {
                    return false;
                }
                steps.push(Step { looks: self.fence_looks(thread), ..step });
                !self.shape.past && self.shape.views.is_none()
            }
            Kind::Write => {
                if let Some(queue) = self.local_queue(thread, location) {
                    steps.push(Step { changes: step.changes | self.local_back(queue), ..step });
                    return true;
                }
                let Some((looks, changes)) = self.arrival(state, thread, location) else {
                    return false;
                };
                let step = Step { looks, changes: step.changes | changes, ..step };
                steps.push(step);
                self.is_private_write(state, step)
            }
            Kind::Read => self.read_steps(state, thread, at, step, steps),
            _ => {
                debug_assert!(atomic);
                if !self.is_drained(state, thread) || !self.is_answered(state, &self.operations[at])
                {
                    return false;
                }
                let mut changes = step.changes;
                for copy in 0..self.threads {
                    changes |= self.memory_bit(self.cell(copy, location));
                }
                steps.push(Step { looks: self.fence_looks(thread), changes, ..step });
                !self.shape.past
                    && self.shape.views.is_none()
                    && !self.others_write(state, thread, location)
                    && !self.others_read(state, thread, location)
            }
        }
    }

    /// Lists the possible answers to a read; returns whether they suffice.
    fn read_steps(
        &mut self,
        state: &[u8],
        thread: usize,
        at: usize,
        step: Step,
        steps: &mut Vec<Step>,
    ) -> bool {
        let location = self.operations[at].location;
        let ready = self.is_answered(state, &self.operations[at]);
        let others_write = self.others_write(state, thread, location);
        let before = steps.len();
        let queue = self.local_queue(thread, location);
        let own = queue.and_then(|queue| self.latest_write(state, queue, location, usize::MAX));
        if let Some(own) = own {
            if self.shape.local.is_some_and(|local| !local.forwards) {
                return false;
            }
            if ready && let Some(value) = self.item_value(state, own) {
                let sleep = self.sleep_of_processor(thread, value);
                steps.push(Step { choice: value, sleep, ..step });
            }
        } else if ready {
            let cell = self.cell(thread, location);
            let looks = self.memory_bit(cell);
            let now = state[self.memory + cell];
            // A read that had to wait for a register happens after the read that set it: its past
            // is not its thread's.
            let mut past = match self.past.get(thread * self.locations + location) {
                Some(past) if self.operations[at].needs.is_empty() => past.get(state),
                _ => 1 << now,
            };
            if self.past.is_empty() {
                let sleep = self.sleep_of_processor(thread, now);
                steps.push(Step { choice: now, sleep, looks, ..step });
                past = 0;
            }
            while past != 0 {
                let value = past.trailing_zeros() as Small;
                past &= past - 1;
                let sleep = self.sleep_of_processor(thread, value);
                steps.push(Step { choice: value, sleep, looks, ..step });
            }
        }
        let answered = steps.len() > before;
        if self.shape.future && (!answered || others_write && self.operations[at].may_wait) {
            let back = self.local_back(queue.expect("reads are left for later in queues"));
            let sleep = self.sleep_of_processor(thread, PENDING);
            let changes = step.changes | back;
            steps.push(Step { choice: PENDING, sleep, changes, ..step });
        }
        // If no other thread writes the location any more, the answer is the same at any time. A
        // read that can only be postponed may as well be postponed at once.
        !others_write || !answered
    }

    /// Returns the latest write to the location among the first `limit` items of a queue.
    fn latest_write(
        &self,
        state: &[u8],
        queue: usize,
        location: usize,
        limit: usize,
    ) -> Option<Item> {
        let before = self.local[queue].items(state).take(limit);
        let writes = before.filter(|item| {
            let operation = &self.operations[usize::from(item.operation)];
            operation.kind == Kind::Write && operation.location == location
        });
        writes.last()
    }

    /// Returns the step in which the first write of a thread's queue leaves it.
    fn queue_step(&mut self, state: &[u8], queue: usize) -> Option<Step> {
        let item = self.local[queue].front(state)?;
        let Operation { kind, thread, location, epoch, .. } =
            self.operations[usize::from(item.operation)];
        if kind != Kind::Write || self.item_value(state, item).is_none() {
            return None;
        }
        let fenced = self.local_queues(thread).any(|other| {
            self.local[other].items(state).any(|item| {
                let operation = &self.operations[usize::from(item.operation)];
                operation.kind == Kind::Write && operation.epoch < epoch
            })
        });
        if fenced {
            return None;
        }
        let (looks, changes) = self.arrival(state, thread, location)?;
        Some(Step {
            actor: Actor::Queue(queue as u16),
            choice: 0,
            sleep: self.sleep_bit(self.sleep_base() + queue),
            looks,
            changes: changes | self.local_front(queue),
        })
    }

    /// Returns the footprint of a write that arrives at the memory or is sent to the views, if this
    /// is possible.
    fn arrival(&self, state: &[u8], thread: usize, location: usize) -> Option<(u128, u128)> {
        let own = self.cell(thread, location);
        if self.shape.views.is_none() {
            return Some((0, self.memory_bit(own)));
        }
        if !self.views[own].is_empty(state) {
            return None;
        }
        let mut changes = self.memory_bit(own);
        for view in (0..self.threads).filter(|view| *view != thread) {
            changes |= self.view_back(view * self.locations + location);
        }
        Some((self.view_front(own) | self.view_back(own), changes))
    }

    /// Checks whether no other component will ever read the bytes that the write changes.
    fn is_private_write(&self, state: &[u8], step: Step) -> bool {
        let operation = match step.actor {
            Actor::Processor(thread) => self.program_counter(state, usize::from(thread)),
            Actor::Queue(queue) => match self.local[usize::from(queue)].front(state) {
                Some(item) => usize::from(item.operation),
                None => return false,
            },
            Actor::Waiting { .. } | Actor::View(_) => return false,
        };
        let Operation { thread, location, .. } = self.operations[operation];
        !self.others_read(state, thread, location) && !self.others_write(state, thread, location)
    }

    /// Lists the steps in which postponed reads are answered. Returns whether one of them alone
    /// suffices.
    fn waiting_steps(
        &mut self,
        state: &[u8],
        queue: usize,
        wanted: Choice,
        steps: &mut Vec<Step>,
    ) -> bool {
        let this = self.local[queue];
        for (position, item) in this.items(state).enumerate() {
            let at = usize::from(item.operation);
            let Operation { kind, thread, location, .. } = self.operations[at];
            if kind != Kind::Read || !self.is_answered(state, &self.operations[at]) {
                continue;
            }
            let (choice, looks) = match self.latest_write(state, queue, location, position) {
                Some(own) => match self.item_value(state, own) {
                    Some(value) => (value, 0),
                    None => continue,
                },
                None => {
                    let cell = self.cell(thread, location);
                    (state[self.memory + cell], self.memory_bit(cell))
                }
            };
            let step = Step {
                actor: Actor::Waiting { queue: queue as u16, operation: item.operation },
                choice,
                sleep: self.sleep_bit(self.sleep_base() + self.local.len() + at),
                looks,
                changes: 0,
            };
            if wanted == Choice::Enough && !self.others_write(state, thread, location) {
                steps.clear();
                steps.push(step);
                return true;
            }
            steps.push(step);
        }
        false
    }

    /// Returns the step in which a view takes the next write to a location.
    fn view_step(&self, state: &[u8], cell: usize) -> Option<Step> {
        let item = self.views[cell].front(state)?;
        let view = cell / self.locations;
        let first = &self.operations[usize::from(item.operation)];
        let in_order = self.shape.views.is_some_and(|views| views.in_order);
        // The queue of this thread and view contains exactly those of its writes that are in the
        // view's queues by location, in program order, so it needs no bytes of its own.
        let blocked = self.views[view * self.locations..(view + 1) * self.locations].iter().any(
            |queue: &Queue| {
                queue.items(state).any(|other| {
                    let earlier = &self.operations[usize::from(other.operation)];
                    earlier.thread == first.thread
                        && (in_order && earlier.index < first.index || earlier.epoch < first.epoch)
                })
            },
        );
        if blocked {
            return None;
        }
        Some(Step {
            actor: Actor::View(cell as u16),
            choice: 0,
            sleep: self
                .sleep_bit(self.sleep_base() + self.local.len() + self.operations.len() + cell),
            looks: 0,
            changes: self.view_front(cell) | self.memory_bit(cell),
        })
    }

    fn all_memory(&self, thread: usize) -> u128 {
        (0..self.locations).fold(0, |all, l| all | self.memory_bit(self.cell(thread, l)))
    }

    fn fence_looks(&self, thread: usize) -> u128 {
        let views =
            (0..self.views.len()).fold(0, |all, q| all | self.view_front(q) | self.view_back(q));
        views | if self.shape.past { self.all_memory(thread) } else { 0 }
    }

    // The numbering of steps in sleep sets: each processor with each possible answer, then queues,
    // waiting reads and views. A step without a number never sleeps.

    fn sleep_bit(&self, index: usize) -> u128 {
        if index < BITS { 1 << index } else { 0 }
    }

    fn answers(&self) -> usize {
        if self.shape.past || self.shape.future { self.constants + 1 } else { 1 }
    }

    fn sleep_base(&self) -> usize {
        self.threads * self.answers()
    }

    fn sleep_of_processor(&self, thread: usize, answer: Small) -> u128 {
        let answers = self.answers();
        let index = match usize::from(answer) {
            _ if answers == 1 => 0,
            _ if answer == PENDING => answers - 1,
            known if known < self.constants => known,
            _ => return 0,
        };
        self.sleep_bit(thread * answers + index)
    }

    /// Performs a step.
    pub(super) fn apply(&mut self, state: &mut [u8], step: Step) {
        match step.actor {
            Actor::Processor(thread) => self.run(state, usize::from(thread), step.choice),
            Actor::Queue(queue) => {
                let queue = self.local[usize::from(queue)];
                let item = queue.front(state).expect("a queue's step has an item");
                let value = self.item_value(state, item).expect("a write leaves with its value");
                queue.remove(state, 0);
                self.arrive(state, Item { value, ..item });
            }
            Actor::Waiting { queue, operation } => {
                let queue = self.local[usize::from(queue)];
                let position = queue.items(state).position(|item| item.operation == operation);
                queue.remove(state, position.expect("the read is in the queue"));
                if let Some(register) = self.operations[usize::from(operation)].register {
                    state[register] = step.choice;
                }
            }
            Actor::View(cell) => {
                let cell = usize::from(cell);
                let item = self.views[cell].front(state).expect("a view's step has an item");
                self.views[cell].remove(state, 0);
                self.take(state, cell / self.locations, item);
            }
        }
    }

    /// Performs the processor's next instruction.
    fn run(&mut self, state: &mut [u8], thread: usize, choice: Small) {
        let at = self.program_counter(state, thread);
        let Operation { kind, location, register, .. } = self.operations[at];
        state[thread] += 1;
        match kind {
            Kind::Nothing => {}
            Kind::Assign => {
                let value = self.operand(state, at);
                if let Some(register) = register {
                    state[register] = value;
                }
            }
            Kind::Jump { target } => {
                let condition = self.operand(state, at);
                if self.values.value(condition) != 0 {
                    state[thread] = (target - self.starts[thread]) as u8;
                }
            }
            Kind::LoadFence | Kind::FullFence => self.forget_past(state, thread),
            Kind::Write => {
                let answered = self.is_answered(state, &self.operations[at]);
                let value = if answered { self.operand(state, at) } else { PENDING };
                let item = Item { operation: at as u8, value };
                match self.local_queue(thread, location) {
                    Some(queue) => self.local[queue].push(state, item),
                    None => self.arrive(state, item),
                }
            }
            Kind::Read if choice == PENDING => {
                let queue = self.local_queue(thread, location);
                let queue = self.local[queue.expect("reads are left for later in queues")];
                queue.push(state, Item { operation: at as u8, value: 0 });
                if let Some(register) = register {
                    state[register] = PENDING;
                }
            }
            Kind::Read => {
                if let Some(register) = register {
                    state[register] = choice;
                }
            }
            Kind::Exchange | Kind::Add | Kind::CompareExchange => {
                self.exchange(state, at);
                self.forget_past(state, thread);
            }
        }
    }

    /// Performs a read-modify-write: all queues are empty, and it takes effect everywhere at once.
    fn exchange(&mut self, state: &mut [u8], at: usize) {
        let Operation { kind, thread, location, register, .. } = self.operations[at];
        let old = state[self.memory + self.cell(thread, location)];
        let new = match (kind, &self.operations[at].value) {
            (Kind::CompareExchange, Operand::Compared { expected, new }) => {
                let expected = self.evaluate(state, thread, expected);
                let new = self.evaluate(state, thread, new);
                (self.values.value(old) == expected).then(|| self.values.place(new))
            }
            (Kind::Add, _) => {
                let addend = self.operand(state, at);
                let sum = self.values.value(old).wrapping_add(self.values.value(addend));
                Some(self.values.place(sum))
            }
            _ => Some(self.operand(state, at)),
        };
        if let Some(register) = register {
            state[register] = old;
        }
        let Some(value) = new else { return };
        let item = Item { operation: at as u8, value };
        if self.shape.views.is_some() {
            for view in 0..self.threads {
                self.take(state, view, item);
            }
        } else {
            self.arrive(state, item);
        }
    }

    /// Moves a write to the memory, or sends it to the views.
    fn arrive(&mut self, state: &mut [u8], item: Item) {
        let Operation { thread, location, .. } = self.operations[usize::from(item.operation)];
        if self.shape.views.is_none() {
            state[self.memory + location] = item.value;
            self.remember(state, thread, thread, location, item.value);
            for other in (0..self.threads).filter(|other| *other != thread) {
                self.remember(state, other, thread, location, item.value);
            }
            return;
        }
        self.take(state, thread, item);
        for view in (0..self.threads).filter(|view| *view != thread) {
            let queue = self.views[view * self.locations + location];
            // A thread that never reads the location takes the write at once; the difference is not
            // observable, unless writes that it will read have to wait for this one.
            if queue.is_empty(state)
                && !self.views_are_ordered()
                && !self.may_read(state, view, location)
            {
                self.take(state, view, item);
            } else {
                queue.push(state, item);
            }
        }
    }

    /// Checks whether a view takes writes to different locations in an order.
    pub(super) fn views_are_ordered(&self) -> bool {
        self.shape.views.is_some_and(|views| views.in_order)
            || self.operations.iter().any(|operation| operation.epoch > 0)
    }

    /// Moves a write into the memory of a view.
    fn take(&mut self, state: &mut [u8], view: usize, item: Item) {
        let Operation { thread, location, .. } = self.operations[usize::from(item.operation)];
        state[self.memory + view * self.locations + location] = item.value;
        self.remember(state, view, thread, location, item.value);
    }

    /// Adds a write to the set of past values of a reader.
    fn remember(
        &self,
        state: &mut [u8],
        reader: usize,
        writer: usize,
        location: usize,
        value: Small,
    ) {
        let Some(past) = self.past.get(reader * self.locations + location) else { return };
        if reader == writer {
            past.reset(state, value);
        } else {
            past.insert(state, value);
        }
    }

    /// Reduces the past of the thread to the current values, which are all that its later reads can
    /// return.
    fn forget_past(&self, state: &mut [u8], thread: usize) {
        if self.past.is_empty() {
            return;
        }
        for location in 0..self.locations {
            let now = state[self.memory + self.cell(thread, location)];
            self.past[thread * self.locations + location].reset(state, now);
        }
    }
}
