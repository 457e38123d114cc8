//! Confirms that no order and visibility explains some operations, by a depth-first search.
//!
//! Operations are appended one by one, each with a visibility set. The sets of an operation grow
//! from the set that the axioms require, by one operation that may change the state at a time; a
//! set after which the operation returns the recorded value is not grown further. (By a theorem of
//! Emmi and Enea, larger sets need not be tried: seeing more only obliges later operations to see
//! more.) A position is the order of the operations with their visibility sets. It is pruned if the
//! same operations were reached before with the same sets and the same order of the operations that
//! may change the state.
//!
//! Hence read-only operations are never added to sets, and their positions are not distinguished.
//! If the checker does not know the object, it checks that they only read in every state that
//! occurs while a set is replayed. This suffices: a set with more readers in it, or with readers at
//! other positions, passes through the same states up to the first reader that changes one of them.
//! An operation that turns out not to be a reader is no longer treated as one, and the search
//! restarts.

use std::collections::{HashMap, HashSet, VecDeque};

use consistory_spec::{Atom, Axiom, Left, ObjectModel, State};
use consistory_verdict::{BYTES_PER_ALLOCATION, Budget, Bytes, Stopped};

use super::ObjectRejection;
use super::sets::Set;
use super::view::{Considered, View};

struct DepthSearch<'a, 'v> {
    view: &'a View<'v>,
    axioms: Vec<&'a Axiom>,
    /// Operations of the search; sets contain their indices in this slice.
    events: &'a [usize],
    before_po: Vec<Set>,
    before_hb: Vec<Set>,
    is_reader: Vec<bool>,
    /// States in which the readers were checked.
    checked: HashSet<State>,
    /// A declared reader that changed a state.
    wrong_reader: Option<usize>,
    budget: &'a Budget,
    steps: u64,
    /// Bytes of the positions that were left, and of the states that were checked.
    left_bytes: usize,
    checked_bytes: usize,
    /// Positions that the search has left.
    left: HashSet<Vec<u32>>,
    /// Numbers of the sets that occur in these positions.
    sets: HashMap<Set, u32>,
    composes_lin: bool,
    mentions_vis: bool,
}

/// Operations that are appended so far.
struct Position {
    order: Vec<usize>,
    done: Set,
    /// For each appended operation, the operations before it.
    earlier: Vec<Set>,
    sees: Vec<Set>,
}

/// Choices that remain to be tried at a position.
struct Choices {
    /// Smallest operation that has not been tried as the next one.
    next: usize,
    /// Visibility sets that remain to be tried for the current operation.
    visible: Vec<Set>,
}

/// Checks whether some abstract execution explains the operations.
pub(crate) fn is_explained(
    view: &View<'_>,
    model: &ObjectModel,
    relevant: &[usize],
    budget: &Budget,
) -> Result<bool, ObjectRejection> {
    with_readers(view, relevant, |is_reader| {
        let mut search = DepthSearch::new(view, model, relevant, is_reader, budget)?;
        let found = search.run()?;
        Ok((found, search.wrong_reader))
    })
}

/// Searches with the declared readers, and again without those that turn out not to be readers.
fn with_readers(
    view: &View<'_>,
    events: &[usize],
    mut search: impl FnMut(Vec<bool>) -> Result<(bool, Option<usize>), ObjectRejection>,
) -> Result<bool, ObjectRejection> {
    let declared = view.declared_readers(Considered::Method);
    let mut is_reader: Vec<bool> = events.iter().map(|&event| declared[event]).collect();
    loop {
        let (found, wrong_reader) = search(is_reader.clone())?;
        let Some(wrong) = wrong_reader else { return Ok(found) };
        let method = &view.events[events[wrong]].method;
        for (i, &event) in events.iter().enumerate() {
            is_reader[i] &= view.events[event].method != *method;
        }
    }
}

/// Checks whether `next` can come after the operations of `order`; `sets` contains, for each of
/// them, the positions in `order` of the operations that it sees.
pub(crate) fn can_follow(
    view: &View<'_>,
    model: &ObjectModel,
    order: &[usize],
    sets: &[Vec<usize>],
    next: usize,
    budget: &Budget,
) -> Result<bool, ObjectRejection> {
    let events: Vec<usize> = order.iter().copied().chain([next]).collect();
    with_readers(view, &events, |is_reader| {
        let mut search = DepthSearch::new(view, model, &events, is_reader, budget)?;
        let mut position = Position::new(events.len());
        for (i, seen) in sets.iter().enumerate() {
            position.append(i, Set::of(events.len(), seen.iter().copied()));
        }
        let is_possible = !search.visible(&position, order.len())?.is_empty();
        Ok((is_possible, search.wrong_reader))
    })
}

impl Position {
    fn new(size: usize) -> Self {
        let none = vec![Set::empty(size); size];
        Position { order: Vec::new(), done: Set::empty(size), earlier: none.clone(), sees: none }
    }

    fn append(&mut self, at: usize, sees: Set) {
        self.earlier[at] = self.done.clone();
        self.sees[at] = sees;
        self.order.push(at);
        self.done.insert(at);
    }

    fn take_back(&mut self) {
        if let Some(at) = self.order.pop() {
            self.done.remove(at);
        }
    }
}

impl<'a, 'v> DepthSearch<'a, 'v> {
    fn new(
        view: &'a View<'v>,
        model: &'a ObjectModel,
        events: &'a [usize],
        is_reader: Vec<bool>,
        budget: &'a Budget,
    ) -> Result<Self, ObjectRejection> {
        // Four sets for each operation.
        budget.reserve((events.len() * events.len() / 2) as u64)?;
        let into = |holds: &dyn Fn(usize, usize) -> bool| -> Result<Vec<Set>, Stopped> {
            let before = |b: usize| {
                budget.check()?;
                let before = (0..events.len()).filter(|&a| holds(events[a], events[b]));
                Ok(Set::of(events.len(), before))
            };
            (0..events.len()).map(before).collect()
        };
        let axioms: Vec<&Axiom> = model.axioms.iter().filter(|a| a.left == Left::Vis).collect();
        Ok(DepthSearch {
            view,
            events,
            before_po: into(&|x, y| view.program_order(x, y))?,
            before_hb: into(&|x, y| view.happens_before(x, y))?,
            is_reader,
            checked: HashSet::new(),
            wrong_reader: None,
            budget,
            steps: 0,
            left_bytes: 0,
            checked_bytes: 0,
            left: HashSet::new(),
            sets: HashMap::new(),
            composes_lin: axioms.iter().any(|a| a.right.len() > 1 && a.right.contains(&Atom::Lin)),
            mentions_vis: axioms.iter().any(|a| a.right.len() > 1 && a.right.contains(&Atom::Vis)),
            axioms,
        })
    }

    /// Tries every operation that may come next, with every visibility set, depth first.
    fn run(&mut self) -> Result<bool, ObjectRejection> {
        let mut position = Position::new(self.events.len());
        let completed = (0..self.events.len()).filter(|&i| !self.is_pending(i));
        let completed = Set::of(self.events.len(), completed);
        if completed.is_subset(&position.done) {
            return Ok(true);
        }
        let mut stack = vec![Choices { next: 0, visible: Vec::new() }];
        while let Some(choices) = stack.last_mut() {
            self.budget.check()?;
            if self.wrong_reader.is_some() {
                return Ok(false);
            }
            if let Some(sees) = choices.visible.pop() {
                position.append(choices.next - 1, sees);
                if completed.is_subset(&position.done) {
                    return Ok(true);
                }
                match self.is_new(&position) {
                    true => stack.push(Choices { next: 0, visible: Vec::new() }),
                    false => position.take_back(),
                }
                continue;
            }
            let is_ready = |&i: &usize| {
                !position.done.contains(i) && self.before_hb[i].is_subset(&position.done)
            };
            match (choices.next..self.events.len()).find(is_ready) {
                Some(next) => {
                    choices.next = next + 1;
                    choices.visible = self.visible(&position, next)?;
                    choices.visible.reverse();
                }
                None => {
                    stack.pop();
                    position.take_back();
                }
            }
        }
        Ok(false)
    }

    fn is_pending(&self, i: usize) -> bool {
        self.view.events[self.events[i]].is_pending
    }

    fn is_new(&mut self, position: &Position) -> bool {
        if self.composes_lin {
            return true;
        }
        let sets = &mut self.sets;
        let mut number = |set: &Set| match sets.get(set) {
            Some(&known) => known,
            None => {
                let fresh = sets.len() as u32;
                sets.insert(set.clone(), fresh);
                fresh
            }
        };
        let mut key = vec![number(&position.done)];
        let writers = position.order.iter().filter(|&&i| !self.is_reader[i]);
        key.extend(writers.map(|&i| i as u32));
        if self.mentions_vis {
            key.extend(position.done.iter().map(|i| number(&position.sees[i])));
        }
        let bytes = 4 * key.capacity() + BYTES_PER_ALLOCATION as usize;
        let is_new = self.left.insert(key);
        self.left_bytes += if is_new { bytes } else { 0 };
        is_new
    }

    /// Checks the budget, for `more` bytes in addition to the tables.
    fn account(&self, more: usize) -> Result<(), ObjectRejection> {
        self.budget.check()?;
        let sets = self.sets.len() * self.set_bytes() + self.left_bytes + self.checked_bytes;
        let relations = 4 * self.events.len() * self.set_bytes();
        let tables = self.left.table_bytes() + self.sets.table_bytes() + self.checked.table_bytes();
        Ok(self.budget.reserve((sets + relations + more) as u64 + tables)?)
    }

    /// Estimates the bytes of a set in a table.
    fn set_bytes(&self) -> usize {
        size_of::<Set>() + BYTES_PER_ALLOCATION as usize + self.events.len().div_ceil(64) * 8
    }

    /// Checks that the readers do not change a state, if the checker does not know the object.
    fn check_readers(&mut self, state: &State) {
        if self.view.ready.is_some() || self.checked.contains(state) {
            return;
        }
        for i in (0..self.events.len()).filter(|&i| self.is_reader[i]) {
            let mut after = state.clone();
            if self.view.invoke(&mut after, self.events[i]).is_some() && after != *state {
                self.wrong_reader = Some(i);
            }
        }
        self.checked_bytes += 2 * self.view.object.footprint(state);
        self.checked.insert(state.clone());
    }

    /// Returns the smallest visibility sets of the next operation, or only one of them if nothing
    /// depends on the choice.
    fn visible(&mut self, position: &Position, next: usize) -> Result<Vec<Set>, ObjectRejection> {
        let demanded = self.demanded(position, next, Set::empty(self.events.len()));
        if !self.mentions_vis {
            return Ok(self.any_visible(position, next, demanded)?.into_iter().collect());
        }
        let mut found: Vec<Set> = Vec::new();
        let mut reached = HashSet::from([demanded.clone()]);
        let mut work = VecDeque::from([demanded]);
        while let Some(sees) = work.pop_front() {
            self.steps += 1;
            if self.steps.is_multiple_of(64) {
                let tables = reached.table_bytes() + work.table_bytes();
                let sets = (reached.len() + work.len() + found.len()) * self.set_bytes();
                self.account(tables as usize + sets)?;
            }
            if found.iter().any(|smaller| smaller.is_subset(&sees)) {
                continue;
            }
            let mut state = self.after(position, &sees);
            if state.as_mut().is_some_and(|state| self.view.perform(state, self.events[next])) {
                found.retain(|larger| !sees.is_subset(larger));
                found.push(sees);
                continue;
            }
            let more = position.order.iter().filter(|&&i| !sees.contains(i) && !self.is_reader[i]);
            for &i in more {
                let grown = self.demanded(position, next, sees.clone().with(i));
                if reached.insert(grown.clone()) {
                    work.push_back(grown);
                }
            }
        }
        Ok(found)
    }

    /// Returns a set that contains the demanded operations and after which the next operation
    /// returns its recorded value, by following the reachable states along the order.
    fn any_visible(
        &mut self,
        position: &Position,
        next: usize,
        demanded: Set,
    ) -> Result<Option<Set>, ObjectRejection> {
        let nothing = Set::empty(self.events.len());
        let mut reached = HashMap::from([(self.view.object.initial(), nothing)]);
        let mut state_bytes = 0;
        let writers = position.order.iter().copied().filter(|&i| !self.is_reader[i]);
        for i in writers.collect::<Vec<_>>() {
            // Both tables exist at the same time, and a table that grows moves its entries.
            let each = size_of::<(State, Set)>() + self.set_bytes() + BYTES_PER_ALLOCATION as usize;
            self.account(2 * (state_bytes + 2 * reached.len() * each))?;
            let is_demanded = demanded.contains(i);
            let mut further = if is_demanded { HashMap::new() } else { reached.clone() };
            state_bytes = 0;
            for (mut state, sees) in reached {
                state_bytes += self.view.object.footprint(&state);
                self.check_readers(&state);
                if self.view.invoke(&mut state, self.events[i]).is_some() {
                    further.entry(state).or_insert_with(|| sees.with(i));
                }
            }
            reached = further;
        }
        for state in reached.keys() {
            self.check_readers(state);
        }
        let fits = |state: &State| self.view.perform(&mut state.clone(), self.events[next]);
        let fitting = reached.into_iter().find(|(state, _)| fits(state));
        Ok(fitting.map(|(_, mut sees)| {
            sees.add(&demanded);
            sees
        }))
    }

    /// Adds to a visibility set the operations that the axioms demand.
    fn demanded(&self, position: &Position, next: usize, mut sees: Set) -> Set {
        let method = &self.view.events[self.events[next]].method;
        loop {
            let mut more = sees.clone();
            for axiom in self.axioms.iter().filter(|axiom| axiom.concerns(method)) {
                let mut reached = Set::empty(self.events.len()).with(next);
                for atom in axiom.right.iter().rev() {
                    let mut before = Set::empty(self.events.len());
                    for i in reached.iter() {
                        match atom {
                            Atom::Po => before.add_common(&self.before_po[i], &position.done),
                            Atom::Hb => before.add_common(&self.before_hb[i], &position.done),
                            Atom::Lin if i == next => before.add(&position.done),
                            Atom::Lin => before.add(&position.earlier[i]),
                            Atom::Vis if i == next => before.add(&sees),
                            Atom::Vis => before.add(&position.sees[i]),
                        }
                    }
                    reached = before;
                }
                more.add(&reached);
            }
            if more == sees {
                return sees;
            }
            sees = more;
        }
    }

    /// Returns the state after the operations of a set in their order, or `None` if one of them is
    /// impossible.
    fn after(&mut self, position: &Position, sees: &Set) -> Option<State> {
        let mut state = self.view.object.initial();
        self.check_readers(&state);
        for &i in position.order.iter().filter(|&&i| sees.contains(i)) {
            if !self.view.see(&mut state, self.events[i]) {
                return None;
            }
            self.check_readers(&state);
        }
        Some(state)
    }
}
