//! Deciders for small histories: the definitions of the models, executed directly as loops.

mod causal;
mod machine;

use std::collections::HashMap;
use std::fmt;

use consistory_generate::{EventAction, Memory, Workload, stream};

pub(crate) use causal::{is_cc, is_ccv, is_cm};
pub(crate) use machine::{is_pso, is_sc, is_tso};

/// The operations of each session, in program order.
pub(crate) struct Small {
    pub(crate) sessions: Vec<Vec<EventAction>>,
}

impl Small {
    pub(crate) fn generate(workload: &Workload, memory: Memory) -> Self {
        let mut sessions = vec![Vec::new(); workload.sessions as usize];
        for event in stream(workload, memory) {
            sessions[event.session as usize].push(event.action);
        }
        Self { sessions }
    }

    /// Parses `w(0,1) r(1,0) | rmw(1,0,2) f`: sessions of operations on numbered variables.
    pub(crate) fn parse(text: &str) -> Self {
        let operation = |text: &str| {
            let (name, arguments) =
                text.trim_end_matches(')').split_once('(').unwrap_or((text, ""));
            let numbers: Vec<u32> = arguments.split(',').filter_map(|n| n.parse().ok()).collect();
            match (name, numbers[..].as_ref()) {
                ("r", &[variable, value]) => EventAction::Read { variable, value: value.into() },
                ("w", &[variable, value]) => EventAction::Write { variable, value: value.into() },
                ("rmw", &[variable, read, write]) => {
                    EventAction::Rmw { variable, read: read.into(), write: write.into() }
                }
                ("f", []) => EventAction::Fence,
                _ => panic!("{text} is not an operation"),
            }
        };
        let session = |text: &str| text.split_whitespace().map(operation).collect();
        Self { sessions: text.split('|').map(session).collect() }
    }

    /// Replaces the values that are read, operation by operation, session by session.
    pub(crate) fn with_reads(&self, found: &mut dyn Iterator<Item = u64>) -> Self {
        let mut sessions = self.sessions.clone();
        for action in sessions.iter_mut().flatten() {
            if let EventAction::Read { value, .. } | EventAction::Rmw { read: value, .. } = action {
                *value = found.next().expect("a value for each read");
            }
        }
        Self { sessions }
    }

    /// Numbers the writes of each variable in the order of the sessions instead of execution order.
    pub(crate) fn renumbered(&self) -> Self {
        let mut numbers = HashMap::new();
        let mut counts = vec![0; self.variables()];
        for action in self.sessions.iter().flatten() {
            if let &EventAction::Write { variable, value }
            | &EventAction::Rmw { variable, write: value, .. } = action
            {
                counts[variable as usize] += 1;
                numbers.insert((variable, value), counts[variable as usize]);
            }
        }
        let mut sessions = self.sessions.clone();
        let number = |variable, value: &mut u64| {
            *value = numbers.get(&(variable, *value)).copied().unwrap_or(0);
        };
        for action in sessions.iter_mut().flatten() {
            match action {
                EventAction::Read { variable, value } | EventAction::Write { variable, value } => {
                    number(*variable, value);
                }
                EventAction::Rmw { variable, read, write } => {
                    number(*variable, read);
                    number(*variable, write);
                }
                EventAction::Fence => {}
            }
        }
        Self { sessions }
    }

    /// Returns the number of variables: one more than the largest that occurs.
    fn variables(&self) -> usize {
        let variable = |action: &EventAction| match *action {
            EventAction::Read { variable, .. }
            | EventAction::Write { variable, .. }
            | EventAction::Rmw { variable, .. } => variable as usize + 1,
            EventAction::Fence => 0,
        };
        self.sessions.iter().flatten().map(variable).max().unwrap_or(0)
    }
}

impl fmt::Display for Small {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, session) in self.sessions.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { " |" })?;
            for action in session {
                match action {
                    EventAction::Read { variable, value } => write!(f, " r({variable},{value})")?,
                    EventAction::Write { variable, value } => write!(f, " w({variable},{value})")?,
                    EventAction::Rmw { variable, read, write } => {
                        write!(f, " rmw({variable},{read},{write})")?;
                    }
                    EventAction::Fence => f.write_str(" f")?,
                }
            }
        }
        Ok(())
    }
}
