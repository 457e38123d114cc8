//! SC, TSO and PSO: tries every run of the machine until one produces the history.

use std::collections::HashSet;

use consistory_generate::EventAction;

use super::Small;

pub(crate) fn is_sc(history: &Small) -> bool {
    some_run_gives(history, Buffers::None)
}

pub(crate) fn is_tso(history: &Small) -> bool {
    some_run_gives(history, Buffers::Session)
}

pub(crate) fn is_pso(history: &Small) -> bool {
    some_run_gives(history, Buffers::SessionAndVariable)
}

/// Store buffers of the machine: none, one per session, or one per session and variable.
#[derive(Clone, Copy, PartialEq)]
enum Buffers {
    None,
    Session,
    SessionAndVariable,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    /// Number of executed operations of each session.
    done: Vec<usize>,
    memory: Vec<u64>,
    /// Buffers of each session, as variables and values: one per variable, or only the first.
    buffers: Vec<Vec<Vec<(u32, u64)>>>,
}

fn some_run_gives(history: &Small, kind: Buffers) -> bool {
    let (sessions, variables) = (history.sessions.len(), history.variables());
    let start = State {
        done: vec![0; sessions],
        memory: vec![0; variables],
        buffers: vec![vec![Vec::new(); variables.max(1)]; sessions],
    };
    let mut seen = HashSet::from([start.clone()]);
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        if (0..sessions).all(|s| state.done[s] == history.sessions[s].len()) {
            return true;
        }
        let mut next: Vec<State> = Vec::new();
        for s in 0..sessions {
            for b in 0..state.buffers[s].len() {
                if let Some(&(variable, value)) = state.buffers[s][b].first() {
                    let mut drained = state.clone();
                    drained.buffers[s][b].remove(0);
                    drained.memory[variable as usize] = value;
                    next.push(drained);
                }
            }
            if let Some(&action) = history.sessions[s].get(state.done[s]) {
                next.extend(execute(&state, s, action, kind));
            }
        }
        open.extend(next.into_iter().filter(|state| seen.insert(state.clone())));
    }
    false
}

/// Returns the state after an operation, if the machine can execute it with the recorded result.
fn execute(state: &State, session: usize, action: EventAction, kind: Buffers) -> Option<State> {
    let mut after = state.clone();
    after.done[session] += 1;
    let buffer = |variable: u32| match kind {
        Buffers::SessionAndVariable => variable as usize,
        Buffers::None | Buffers::Session => 0,
    };
    let drained = state.buffers[session].iter().all(Vec::is_empty);
    let possible = match action {
        EventAction::Read { variable, value } => {
            let stores = &state.buffers[session][buffer(variable)];
            let own = stores.iter().rev().find(|store| store.0 == variable);
            own.map_or(state.memory[variable as usize], |store| store.1) == value
        }
        EventAction::Write { variable, value } if kind == Buffers::None => {
            after.memory[variable as usize] = value;
            true
        }
        EventAction::Write { variable, value } => {
            after.buffers[session][buffer(variable)].push((variable, value));
            true
        }
        EventAction::Rmw { variable, read, write } => {
            after.memory[variable as usize] = write;
            drained && state.memory[variable as usize] == read
        }
        EventAction::Fence => drained,
    };
    possible.then_some(after)
}
