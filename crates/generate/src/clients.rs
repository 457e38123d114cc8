//! The clients: choice of the next session and of its operation.
//!
//! At each step one of the sessions with operations left is chosen uniformly; the memory lets some
//! time pass; the session executes one operation. The choice of operations depends on the seed
//! alone, never on the memory or on the values read.

use consistory_history::{Action, History, HistoryBuilder, KeyId, SessionId};

use crate::memory::{Machine, Memory};
use crate::random::{Choice, Chooser, Random, choices_of};
use crate::workload::Workload;

/// An executed operation: session `t{session}` performs `action`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Number of the session.
    pub session: u32,
    /// Action of the operation.
    pub action: EventAction,
}

/// The action of an executed operation; variable number i is named `x{i}`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventAction {
    /// `r(variable,value)`.
    Read {
        /// Number of the variable.
        variable: u32,
        /// Value read.
        value: u64,
    },
    /// `w(variable,value)`.
    Write {
        /// Number of the variable.
        variable: u32,
        /// Value written.
        value: u64,
    },
    /// `rmw(variable,read,write)`.
    Rmw {
        /// Number of the variable.
        variable: u32,
        /// Value read.
        read: u64,
        /// Value written.
        write: u64,
    },
    /// `f`.
    Fence,
}

/// Runs the clients on a memory and records their operations, session by session.
///
/// The history has every session and every variable, even unused ones.
///
/// # Panics
/// Panics if [`Workload::validate`] refuses the workload.
pub fn generate(workload: &Workload, memory: Memory) -> History {
    let events = stream(workload, memory);
    let mut builder = HistoryBuilder::new();
    for session in 0..workload.sessions {
        builder.session(&format!("t{session}"));
    }
    for variable in 0..workload.variables {
        builder.key(&format!("x{variable}"));
    }
    for Event { session, action } in events {
        let mut int = |value: u64| builder.int(value as i64);
        let action = match action {
            EventAction::Read { variable, value } => {
                Action::Read { key: KeyId(variable), value: int(value) }
            }
            EventAction::Write { variable, value } => {
                Action::Write { key: KeyId(variable), value: int(value) }
            }
            EventAction::Rmw { variable, read, write } => {
                Action::Rmw { key: KeyId(variable), read: int(read), write: int(write) }
            }
            EventAction::Fence => Action::Fence,
        };
        builder.push(SessionId(session), action);
    }
    builder.finish().expect("a valid workload has fewer operations than a history holds")
}

/// Runs the clients on a memory and returns their operations one by one, in execution order.
///
/// # Panics
/// Panics if [`Workload::validate`] refuses the workload.
pub fn stream(workload: &Workload, memory: Memory) -> impl ExactSizeIterator<Item = Event> + use<> {
    if let Err(error) = workload.validate() {
        panic!("{error}");
    }
    Clients::new(workload, memory.machine(workload))
}

struct Clients {
    machine: Box<dyn Machine>,
    random: Random,
    variables: Choice,
    /// Bounds for a random number from 0 to 1: below the first bound the operation is a read, below
    /// the second a read-modify-write, below the third a fence, and otherwise a write.
    bounds: [f64; 3],
    /// Sessions with operations left, and how many.
    unfinished: Vec<(u32, u32)>,
    left: u32,
    /// Greatest value written to each variable.
    written: Vec<u32>,
    /// Number of values per variable, or 0 if every value is new.
    values: u32,
}

impl Clients {
    fn new(workload: &Workload, machine: Box<dyn Machine>) -> Self {
        let Workload { sessions, operations, variables, skew, values, seed, .. } = *workload;
        let share = |session| operations / sessions + u32::from(session < operations % sessions);
        let (read, rmw) = (workload.read_share, workload.read_share + workload.rmw_share);
        Self {
            machine,
            random: choices_of(Chooser::Clients, seed),
            variables: Choice::zipf(variables, skew),
            bounds: [read, rmw, rmw + workload.fence_share],
            unfinished: (0..sessions).map(|s| (s, share(s))).filter(|&(_, n)| n > 0).collect(),
            left: operations,
            written: vec![0; variables as usize],
            values,
        }
    }

    /// Chooses the session that acts next.
    fn choose_session(&mut self) -> u32 {
        let at = self.random.below(self.unfinished.len() as u32) as usize;
        let (session, left) = &mut self.unfinished[at];
        let session = *session;
        *left -= 1;
        if *left == 0 {
            self.unfinished.swap_remove(at);
        }
        session
    }

    /// Chooses a value to write to `variable`; a value that was never written there, unless values
    /// repeat.
    fn value(&mut self, variable: u32) -> u32 {
        if self.values > 0 {
            return 1 + self.random.below(self.values);
        }
        let last = &mut self.written[variable as usize];
        *last += 1;
        *last
    }

    fn act(&mut self, session: usize) -> EventAction {
        let kind = self.random.unit();
        let [read, rmw, fence] = self.bounds;
        if (rmw..fence).contains(&kind) {
            self.machine.fence(session);
            return EventAction::Fence;
        }
        let variable = self.variables.choose(&mut self.random);
        let place = variable as usize;
        if kind < read {
            EventAction::Read { variable, value: self.machine.read(session, place).into() }
        } else if kind < rmw {
            let write = self.value(variable);
            let read = self.machine.rmw(session, place, write).into();
            EventAction::Rmw { variable, read, write: write.into() }
        } else {
            let value = self.value(variable);
            self.machine.write(session, place, value);
            EventAction::Write { variable, value: value.into() }
        }
    }
}

impl Iterator for Clients {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.left = self.left.checked_sub(1)?;
        let session = self.choose_session();
        self.machine.pass_time(session as usize);
        Some(Event { session, action: self.act(session as usize) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Clients {}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        Workload { sessions: 3, operations: 1000, variables: 5, seed: 11, ..Workload::default() }
    }

    fn events(workload: &Workload, memory: Memory) -> Vec<Event> {
        stream(workload, memory).collect()
    }

    fn show(history: &History) -> Vec<String> {
        let session = |s| {
            let ops = history.session_ops(s).map(|op| history.show(op).to_string());
            format!("{}: {}", history.session_name(s), ops.collect::<Vec<_>>().join(" "))
        };
        history.sessions().map(session).collect()
    }

    #[test]
    fn a_seed_decides_the_history() {
        let other = Workload { seed: 12, ..workload() };
        for memory in Memory::ALL {
            assert_eq!(events(&workload(), memory), events(&workload(), memory));
            assert_ne!(events(&workload(), memory), events(&other, memory));
        }
    }

    #[test]
    fn a_seed_decides_the_same_on_every_platform() {
        let workload = Workload {
            sessions: 2,
            operations: 12,
            variables: 2,
            rmw_share: 0.1,
            fence_share: 0.1,
            skew: 0.9,
            seed: 63,
            ..Workload::default()
        };
        for (memory, expected) in [
            (
                Memory::Sc,
                [
                    "t0: w(x0,1) rmw(x0,5,6) w(x0,7) r(x0,7) r(x0,7) w(x0,8)",
                    "t1: w(x0,2) rmw(x0,2,3) r(x0,3) r(x0,3) w(x0,4) w(x0,5)",
                ],
            ),
            (
                Memory::Tso,
                [
                    "t0: w(x0,1) rmw(x0,4,6) w(x0,7) r(x0,7) r(x0,7) w(x0,8)",
                    "t1: w(x0,2) rmw(x0,1,3) r(x0,3) r(x0,3) w(x0,4) w(x0,5)",
                ],
            ),
            (
                Memory::Pso,
                [
                    "t0: w(x0,1) rmw(x0,1,6) w(x0,7) r(x0,7) r(x0,7) w(x0,8)",
                    "t1: w(x0,2) rmw(x0,2,3) r(x0,3) r(x0,3) w(x0,4) w(x0,5)",
                ],
            ),
            (
                Memory::Ccv,
                [
                    "t0: w(x0,1) rmw(x0,3,6) w(x0,7) r(x0,7) r(x0,5) w(x0,8)",
                    "t1: w(x0,2) rmw(x0,2,3) r(x0,3) r(x0,3) w(x0,4) w(x0,5)",
                ],
            ),
            (
                Memory::Cm,
                [
                    "t0: w(x0,1) rmw(x0,3,6) w(x0,7) r(x0,4) r(x0,5) w(x0,8)",
                    "t1: w(x0,2) rmw(x0,1,3) r(x0,3) r(x0,3) w(x0,4) w(x0,5)",
                ],
            ),
            (
                Memory::Broken,
                [
                    "t0: w(x0,1) rmw(x0,2,6) w(x0,7) r(x0,7) r(x0,7) w(x0,8)",
                    "t1: w(x0,2) rmw(x0,1,3) r(x0,1) r(x0,3) w(x0,4) w(x0,5)",
                ],
            ),
        ] {
            assert_eq!(show(&generate(&workload, memory)), expected, "{memory}");
        }
    }

    #[test]
    fn clients_do_the_same_on_every_memory() {
        let workload = Workload { rmw_share: 0.2, fence_share: 0.1, skew: 1.0, ..workload() };
        let blind = |memory| {
            let forget = |event: Event| match event.action {
                EventAction::Read { variable, .. } => {
                    (event.session, EventAction::Read { variable, value: 0 })
                }
                EventAction::Rmw { variable, write, .. } => {
                    (event.session, EventAction::Rmw { variable, read: 0, write })
                }
                action => (event.session, action),
            };
            stream(&workload, memory).map(forget).collect::<Vec<_>>()
        };
        for memory in Memory::ALL {
            assert_eq!(blind(memory), blind(Memory::Sc));
        }
    }

    #[test]
    fn sessions_share_the_operations_evenly() {
        for memory in Memory::ALL {
            let history = generate(&workload(), memory);
            let lengths: Vec<usize> =
                history.sessions().map(|s| history.session_ops(s).len()).collect();
            assert_eq!(lengths, [334, 333, 333]);
            assert_eq!(history.key_count(), 5);
        }
        let few = generate(&Workload { operations: 2, ..workload() }, Memory::Sc);
        assert_eq!((few.session_count(), few.len()), (3, 2));
        let none = generate(&Workload { operations: 0, ..workload() }, Memory::Ccv);
        assert_eq!((none.session_count(), none.len()), (3, 0));
    }

    #[test]
    fn shares_come_out_as_asked() {
        for (read_share, rmw_share, fence_share) in
            [(0.5, 0.0, 0.0), (0.9, 0.0, 0.1), (0.2, 0.3, 0.1), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)]
        {
            let operations = 20_000;
            let workload =
                Workload { operations, read_share, rmw_share, fence_share, ..workload() };
            let mut counts = [0; 4];
            for event in stream(&workload, Memory::Sc) {
                counts[match event.action {
                    EventAction::Read { .. } => 0,
                    EventAction::Rmw { .. } => 1,
                    EventAction::Fence => 2,
                    EventAction::Write { .. } => 3,
                }] += 1;
            }
            let write_share = 1.0 - read_share - rmw_share - fence_share;
            for (count, share) in
                counts.into_iter().zip([read_share, rmw_share, fence_share, write_share])
            {
                let expected = share * f64::from(operations);
                assert!((f64::from(count) - expected).abs() < 300.0, "{counts:?}");
            }
            if read_share == 1.0 || rmw_share == 1.0 {
                assert_eq!(counts[3], 0);
            }
        }
    }

    #[test]
    fn every_written_value_is_new_and_every_read_value_written() {
        let workload = Workload { rmw_share: 0.2, ..workload() };
        for memory in Memory::ALL {
            let mut held = vec![vec![0]; 5];
            for event in stream(&workload, memory) {
                let (found, put) = match event.action {
                    EventAction::Read { variable, value } => (Some((variable, value)), None),
                    EventAction::Write { variable, value } => (None, Some((variable, value))),
                    EventAction::Rmw { variable, read, write } => {
                        (Some((variable, read)), Some((variable, write)))
                    }
                    EventAction::Fence => (None, None),
                };
                if let Some((variable, value)) = found {
                    assert!(held[variable as usize].contains(&value));
                }
                if let Some((variable, value)) = put {
                    assert!(!held[variable as usize].contains(&value));
                    held[variable as usize].push(value);
                }
            }
        }
    }

    #[test]
    fn a_stream_knows_its_length() {
        let mut events = stream(&workload(), Memory::Pso);
        assert_eq!(events.len(), 1000);
        events.next();
        assert_eq!(events.len(), 999);
        assert_eq!(events.count(), 999);
    }

    #[test]
    #[should_panic(expected = "at least one session")]
    fn what_is_refused_does_not_run() {
        generate(&Workload { sessions: 0, ..workload() }, Memory::Sc);
    }
}
