//! All possible runs of a thread, in which each read may return any value that some write may have.
//!
//! Dependencies are followed through registers: each register carries the reads from which its
//! value was computed, separately from those that only selected one of several values inside an
//! instruction (`CSEL`, a compare-and-swap), which AArch64 treats differently.

use rustc_hash::FxHashMap;

use super::code::{
    Code, Expr, Fetch, Op, Reservation, Tags, ThreadCode, Update, UpdateResult, binary, condition,
    truncate, unary,
};

/// Reads from which a value comes: directly, and through a choice. Bits are events of the thread.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sources {
    pub(crate) direct: u64,
    pub(crate) picked: u64,
}

impl Sources {
    fn join(self, other: Sources) -> Sources {
        Sources { direct: self.direct | other.direct, picked: self.picked | other.picked }
    }

    /// Returns the same reads, all of them through a choice.
    fn through_choice(self) -> Sources {
        Sources { direct: 0, picked: self.direct | self.picked }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
    /// One event that reads and writes.
    ReadWrite,
    Fence,
}

/// What the write of an atomic instruction derives from its read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Derived {
    /// Nothing: an exchange.
    Nothing,
    /// Its value: an addition.
    Value,
    /// Whether it happens: a compare-and-swap.
    Choice,
}

/// An event of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) address: i64,
    /// Value read, if it reads.
    pub(crate) read: i64,
    /// Value written, if it writes.
    pub(crate) written: i64,
    pub(crate) tags: Tags,
    /// Number of the instruction in the run.
    pub(crate) instruction: u32,
    pub(crate) address_from: Sources,
    pub(crate) data_from: Sources,
    pub(crate) control_from: Sources,
    /// Read of the same atomic instruction.
    pub(crate) atomic_with: Option<u8>,
    /// What the atomic instruction derives from its read.
    pub(crate) derived: Derived,
    /// Load exclusive that belongs to a store exclusive.
    pub(crate) exclusive_with: Option<u8>,
    /// Whether the event has a location.
    pub(crate) located: bool,
    /// Whether it comes after the previous event of the same instruction.
    pub(crate) ordered: bool,
}

impl Event {
    pub(crate) fn reads(&self) -> bool {
        matches!(self.kind, Kind::Read | Kind::ReadWrite)
    }

    pub(crate) fn writes(&self) -> bool {
        matches!(self.kind, Kind::Write | Kind::ReadWrite)
    }
}

/// A possible run of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) events: Vec<Event>,
    /// Final values of the registers.
    pub(crate) registers: Vec<i64>,
}

/// All possible runs of a thread.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    pub(crate) runs: Vec<Run>,
    /// Whether a loop was cut.
    pub(crate) cut: bool,
    /// Addresses and values of the writes of runs that end at an access to an unknown address.
    /// Another run may read such a value, and then the address is known.
    pub(crate) abandoned: Vec<(i64, i64)>,
    /// Reason why some runs could not be followed, if there is one.
    pub(crate) trouble: Option<&'static str>,
}

/// Values that a read of each address may return.
pub(crate) type Domain = FxHashMap<i64, Vec<i64>>;

const MAX_EVENTS: usize = 64;
const MAX_STEPS: u32 = 4_000;

/// Directions that a branch may take.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Branches {
    /// The direction that its condition determines.
    Decided,
    /// Both directions, whatever the condition is: for finding the values that writes may have.
    BothWays,
}

/// Finds all runs of a thread; backward jumps are followed `unroll` times.
pub(crate) fn unfold(
    code: &Code,
    thread: &ThreadCode,
    domain: &Domain,
    branches: Branches,
    unroll: u8,
    limit: usize,
) -> Runs {
    let found = Runs::default();
    let mut unfolder = Unfolder { code, thread, domain, branches, unroll, limit, found };
    let state = State {
        registers: thread.initial.iter().map(|&value| (value, Sources::default())).collect(),
        at: 0,
        op: 0,
        steps: 0,
        control: Sources::default(),
        outer: Vec::new(),
        events: Vec::new(),
        taken: Vec::new(),
        reserved: None,
    };
    unfolder.run(state);
    unfolder.found
}

#[derive(Clone)]
struct State {
    registers: Vec<(i64, Sources)>,
    /// Position of the next operation: instruction and index in it.
    at: usize,
    op: usize,
    /// Number of instructions so far.
    steps: u32,
    control: Sources,
    /// Control dependencies at the beginning of each open branch.
    outer: Vec<Sources>,
    events: Vec<Event>,
    /// Number of backward jumps to each target.
    taken: Vec<(usize, u8)>,
    /// First event and address of the last load exclusive without a store exclusive.
    reserved: Option<(u8, i64, Sources)>,
}

struct Unfolder<'a> {
    code: &'a Code,
    thread: &'a ThreadCode,
    domain: &'a Domain,
    branches: Branches,
    unroll: u8,
    limit: usize,
    found: Runs,
}

impl Unfolder<'_> {
    fn run(&mut self, mut state: State) {
        loop {
            if self.found.runs.len() >= self.limit {
                self.found.trouble = Some("the thread may run in too many ways");
                return;
            }
            if state.events.len() > MAX_EVENTS - 4 {
                self.found.trouble = Some("the thread has more than 60 events");
                return;
            }
            let Some(instruction) = self.thread.instructions.get(state.at) else {
                self.finish(state);
                return;
            };
            let Some(op) = instruction.get(state.op) else {
                state.at += 1;
                state.op = 0;
                state.steps += 1;
                if state.steps > MAX_STEPS {
                    self.found.cut = true;
                    return;
                }
                continue;
            };
            state.op += 1;
            match op {
                Op::Set(register, expr) => {
                    let value = eval(&state, expr);
                    state.registers[usize::from(*register)] = value;
                }
                Op::Fence { tags } => {
                    let event = self.event(&state, Kind::Fence, *tags);
                    state.events.push(event);
                }
                Op::FenceAt { address, tags } => {
                    let (address, from) = eval(&state, address);
                    let mut event = self.event(&state, Kind::Fence, *tags);
                    event.address = address;
                    event.address_from = from;
                    event.located = true;
                    state.events.push(event);
                }
                Op::Load { .. } => {
                    return self.load(state, op);
                }
                Op::Store { address, value, bytes, tags }
                | Op::StoreOrdered { address, value, bytes, tags } => {
                    let (address, address_from) = eval(&state, address);
                    if self.code.locate(address).is_none() {
                        self.abandon(&state);
                        return;
                    }
                    let (value, data_from) = eval(&state, value);
                    let mut event = self.event(&state, Kind::Write, *tags);
                    event.address = address;
                    event.address_from = address_from;
                    event.written = truncate(value, *bytes, false);
                    event.data_from = data_from;
                    event.located = true;
                    event.ordered = matches!(op, Op::StoreOrdered { .. });
                    state.events.push(event);
                }
                Op::StoreExclusive {
                    address,
                    values,
                    bytes,
                    tags,
                    status,
                    success,
                    failure,
                    status_depends,
                } => {
                    let mut failed = state.clone();
                    failed.registers[usize::from(*status)] = (*failure, Sources::default());
                    failed.reserved = None;
                    self.run(failed);
                    let (address, address_from) = eval(&state, address);
                    let Some((with, reserved, reserved_from)) = state.reserved else { return };
                    let is_update = reserved == address;
                    if !is_update {
                        if self.code.reservation == Reservation::Address {
                            return;
                        }
                        if self.code.locate(address).is_none() {
                            self.abandon(&state);
                            return;
                        }
                    }
                    state.reserved = None;
                    let mut status_from = address_from.join(reserved_from);
                    for (at, value) in values.iter().enumerate() {
                        let (value, data_from) = eval(&state, value);
                        let mut event = self.event(&state, Kind::Write, *tags);
                        event.address = address + at as i64 * i64::from(*bytes);
                        event.address_from = address_from;
                        event.written = truncate(value, *bytes, false);
                        event.data_from = data_from;
                        status_from = status_from.join(data_from);
                        event.exclusive_with = is_update.then_some(with + at as u8);
                        event.located = true;
                        state.events.push(event);
                    }
                    let from = if *status_depends { status_from } else { Sources::default() };
                    state.registers[usize::from(*status)] = (*success, from);
                }
                Op::Update { .. } => return self.update(state, op),
                Op::CompareAndSwapPair { .. } => return self.pair(state, op),
                Op::Branch { condition, target } => {
                    let (taken, from) = eval(&state, condition);
                    state.control = state.control.join(from);
                    if self.branches == Branches::BothWays {
                        self.run(state.clone());
                        if !self.jump(&mut state, *target) {
                            return;
                        }
                    } else if taken != 0 && !self.jump(&mut state, *target) {
                        return;
                    }
                }
                Op::Jump(target) => {
                    if !self.jump(&mut state, *target) {
                        return;
                    }
                }
                Op::End => return self.finish(state),
                Op::Assume(expr) => {
                    let (holds, _) = eval(&state, expr);
                    if holds == 0 && self.branches == Branches::Decided {
                        return;
                    }
                }
                Op::OpenControl => state.outer.push(state.control),
                Op::CloseControl => {
                    if let Some(outer) = state.outer.pop() {
                        state.control = outer;
                    }
                }
                Op::ClearExclusive => state.reserved = None,
            }
        }
    }

    /// Stores the writes of a run that ends at an access to an unknown address.
    fn abandon(&mut self, state: &State) {
        for event in state.events.iter().filter(|event| event.writes()) {
            let written = (event.address, event.written);
            if !self.found.abandoned.contains(&written) {
                self.found.abandoned.push(written);
            }
        }
    }

    fn finish(&mut self, state: State) {
        let registers = state.registers.into_iter().map(|(value, _)| value).collect();
        self.found.runs.push(Run { events: state.events, registers });
    }

    /// Continues at an instruction; `false` if the loop is cut.
    fn jump(&mut self, state: &mut State, target: usize) -> bool {
        if target <= state.at {
            let count = match state.taken.iter_mut().find(|(to, _)| *to == target) {
                Some((_, count)) => count,
                None => {
                    state.taken.push((target, 0));
                    &mut state.taken.last_mut().expect("was pushed").1
                }
            };
            *count += 1;
            if *count > self.unroll {
                self.found.cut = true;
                return false;
            }
        }
        state.at = target;
        state.op = 0;
        state.steps += 1;
        true
    }

    fn event(&self, state: &State, kind: Kind, tags: Tags) -> Event {
        Event {
            kind,
            address: 0,
            read: 0,
            written: 0,
            tags,
            instruction: state.steps,
            address_from: Sources::default(),
            data_from: Sources::default(),
            control_from: state.control,
            atomic_with: None,
            derived: Derived::Nothing,
            exclusive_with: None,
            located: false,
            ordered: false,
        }
    }

    /// Returns the values that a read may return.
    fn values(&self, address: i64) -> Vec<i64> {
        match self.domain.get(&address) {
            Some(values) => values.clone(),
            None => self.code.initial(address).into_iter().collect(),
        }
    }

    fn load(&mut self, state: State, op: &Op) {
        let Op::Load { into, address, width, tags, exclusive, ordered } = op else { return };
        let (address, address_from) = eval(&state, address);
        let values = self.values(address);
        if values.is_empty() {
            self.abandon(&state);
        }
        for value in values {
            let mut next = state.clone();
            let mut event = self.event(&next, Kind::Read, *tags);
            event.ordered = *ordered;
            event.address = address;
            event.address_from = address_from;
            event.read = value;
            event.located = true;
            let index = next.events.len();
            next.events.push(event);
            let loaded =
                truncate(truncate(value, width.bytes, width.signed), width.register, false);
            let sources = Sources { direct: 1 << index, picked: 0 };
            next.registers[usize::from(*into)] = (loaded, sources);
            if *exclusive {
                // The second half of a pair keeps the reservation of the first.
                let is_second = index > 0
                    && next.events[index - 1].instruction == next.events[index].instruction;
                if !is_second {
                    next.reserved = Some((index as u8, address, address_from));
                }
            }
            self.run(next);
        }
    }

    fn update(&mut self, state: State, op: &Op) {
        let Op::Update {
            into,
            address,
            update,
            width,
            read_tags,
            write_tags,
            failed_tags,
            merged,
            result,
        } = op
        else {
            return;
        };
        let (address, address_from) = eval(&state, address);
        let values = self.values(address);
        if values.is_empty() {
            self.abandon(&state);
        }
        for old in values {
            let mut next = state.clone();
            let old = truncate(old, width.bytes, false);
            let index = next.events.len();
            let from_read = Sources { direct: 1 << index, picked: 0 };
            let (new, data_from) = match update {
                Update::Swap(new) => {
                    let (new, from) = eval(&state, new);
                    (Some(new), from)
                }
                Update::Fetch(fetch, operand) => {
                    let (operand, from) = eval(&state, operand);
                    (Some(apply(*fetch, old, operand, width.bytes)), from)
                }
                Update::CompareAndSwap { expected, new } => {
                    let (expected, compared) = eval(&state, expected);
                    let (new, from) = eval(&state, new);
                    let equal = truncate(expected, width.bytes, false) == old;
                    (equal.then_some(new), from.join(compared.through_choice()))
                }
                Update::AddUnless { add, unless } => {
                    let (add, from) = eval(&state, add);
                    let (unless, compared) = eval(&state, unless);
                    let differs = truncate(unless, width.bytes, false) != old;
                    (differs.then(|| old.wrapping_add(add)), from.join(compared))
                }
            };
            let new = new.map(|new| truncate(new, width.bytes, false));
            let tags = if new.is_some() { *read_tags } else { *failed_tags };
            let kind = if *merged && new.is_some() { Kind::ReadWrite } else { Kind::Read };
            let mut read = self.event(&next, kind, tags);
            read.address = address;
            read.address_from = address_from;
            read.read = old;
            read.located = true;
            if let (true, Some(new)) = (*merged, new) {
                read.written = new;
                read.data_from = data_from;
            }
            next.events.push(read);
            if let (false, Some(new)) = (*merged, new) {
                let mut write = self.event(&next, Kind::Write, *write_tags);
                write.address = address;
                write.address_from = address_from;
                write.written = new;
                write.data_from = data_from;
                write.atomic_with = Some(index as u8);
                write.derived = match update {
                    Update::Swap(_) => Derived::Nothing,
                    Update::Fetch(..) | Update::AddUnless { .. } => Derived::Value,
                    Update::CompareAndSwap { .. } => Derived::Choice,
                };
                write.located = true;
                next.events.push(write);
            }
            if let Some(into) = into {
                let value = match result {
                    UpdateResult::Old => {
                        truncate(truncate(old, width.bytes, width.signed), width.register, false)
                    }
                    UpdateResult::New => truncate(new.unwrap_or(old), width.bytes, width.signed),
                    UpdateResult::Written => i64::from(new.is_some()),
                };
                next.registers[usize::from(*into)] = (value, from_read);
            }
            self.run(next);
        }
    }

    fn pair(&mut self, state: State, op: &Op) {
        let Op::CompareAndSwapPair { into, new, address, width, read_tags, write_tags } = op else {
            return;
        };
        let (address, address_from) = eval(&state, address);
        let step = i64::from(width.bytes);
        for first in self.values(address) {
            for second in self.values(address + step) {
                let mut next = state.clone();
                let index = next.events.len();
                let olds = [first, second];
                let mut equal = true;
                let mut compared = Sources::default();
                for (at, &old) in olds.iter().enumerate() {
                    let (expected, from) = state.registers[usize::from(into[at])];
                    equal &=
                        truncate(expected, width.bytes, false) == truncate(old, width.bytes, false);
                    compared = compared.join(from.through_choice());
                    let mut read = self.event(&next, Kind::Read, *read_tags);
                    read.address = address + at as i64 * step;
                    read.address_from = address_from;
                    read.read = old;
                    read.located = true;
                    next.events.push(read);
                }
                for at in 0..2 {
                    if equal {
                        let (value, from) = eval(&state, &new[at]);
                        let mut write = self.event(&next, Kind::Write, *write_tags);
                        write.address = address + at as i64 * step;
                        write.address_from = address_from;
                        write.written = truncate(value, width.bytes, false);
                        write.data_from = from.join(compared);
                        write.atomic_with = Some((index + at) as u8);
                        write.derived = Derived::Choice;
                        write.located = true;
                        next.events.push(write);
                    }
                    let sources = Sources { direct: 1 << (index + at), picked: 0 };
                    let value =
                        truncate(truncate(olds[at], width.bytes, false), width.register, false);
                    next.registers[usize::from(into[at])] = (value, sources);
                }
                self.run(next);
            }
        }
    }
}

fn apply(fetch: Fetch, old: i64, operand: i64, bytes: u8) -> i64 {
    let (so, sn) = (truncate(old, bytes, true), truncate(operand, bytes, true));
    let (uo, un) = (truncate(old, bytes, false) as u64, truncate(operand, bytes, false) as u64);
    match fetch {
        Fetch::Binary(operator) => binary(operator, old, operand),
        Fetch::Clear => old & !operand,
        Fetch::MaxSigned => so.max(sn),
        Fetch::MinSigned => so.min(sn),
        Fetch::MaxUnsigned => uo.max(un) as i64,
        Fetch::MinUnsigned => uo.min(un) as i64,
    }
}

fn eval(state: &State, expr: &Expr) -> (i64, Sources) {
    match expr {
        Expr::Const(value) => (*value, Sources::default()),
        Expr::Register(register) => state.registers[usize::from(*register)],
        Expr::Binary(operator, left, right) => {
            let ((a, from), (b, other)) = (eval(state, left), eval(state, right));
            (binary(*operator, a, b), from.join(other))
        }
        Expr::Unary(operator, of) => {
            let (value, from) = eval(state, of);
            (unary(*operator, value), from)
        }
        Expr::Extend { bytes, signed, of } => {
            let (value, from) = eval(state, of);
            (truncate(value, *bytes, *signed), from)
        }
        Expr::Select(choice, then, other) => {
            let (choice, picked) = eval(state, choice);
            let (value, from) = eval(state, if choice != 0 { then } else { other });
            (value, from.join(picked.through_choice()))
        }
        Expr::Condition(code, flags) => {
            let (flags, from) = eval(state, flags);
            (i64::from(condition(*code, flags)), from)
        }
    }
}
