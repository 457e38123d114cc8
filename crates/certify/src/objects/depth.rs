//! Confirms that no order and visibility explains some operations, depth first.
//!
//! Operations are appended one by one, each with a set that it sees; sets are numbers whose bits
//! are operations. For each operation the sets are grown from what the axioms demand, by one
//! operation that may change the state at a time; a set after which the operation returns what it
//! did is not grown further. (That larger sets need not be tried is the theorem of Emmi and Enea:
//! what an operation sees only obliges later ones to see more.) A position is the order of the
//! operations and what each sees, and is left at once if the same operations were reached before
//! with the same sets and the same order of those that may change the state.

use std::collections::{HashMap, HashSet, VecDeque};

use consistory_spec::{Atom, Axiom, Left, ObjectModel, State};
use consistory_verdict::{Budget, Stopped};

use super::ObjectRejection;
use super::view::View;

/// The most operations that are searched.
const MOST: usize = 128;

/// A set of operations.
type Set = u128;

struct Search<'a, 'v> {
    view: &'a View<'v>,
    axioms: Vec<&'a Axiom>,
    /// The operations, which sets number.
    events: &'a [usize],
    before_po: Vec<Set>,
    before_hb: Vec<Set>,
    is_reader: Vec<bool>,
    budget: &'a Budget,
    steps: u64,
    left: HashSet<Vec<Set>>,
    composes_lin: bool,
    mentions_vis: bool,
}

/// What is appended so far.
#[derive(Default)]
struct Position {
    order: Vec<usize>,
    done: Set,
    /// For each appended operation what was before it.
    earlier: HashMap<usize, Set>,
    sees: HashMap<usize, Set>,
}

/// Says whether some abstract execution explains the operations.
pub(crate) fn is_explained(
    view: &View<'_>,
    model: &ObjectModel,
    relevant: &[usize],
    budget: &Budget,
) -> Result<bool, ObjectRejection> {
    Search::new(view, model, relevant, budget)?.extend(&mut Position::default())
}

/// Says whether an operation can come next: `order` is appended, and `sets` says for each of it at
/// which places what it sees stands.
pub(crate) fn can_follow(
    view: &View<'_>,
    model: &ObjectModel,
    order: &[usize],
    sets: &[Vec<usize>],
    next: usize,
    budget: &Budget,
) -> Result<bool, ObjectRejection> {
    let events: Vec<usize> = order.iter().copied().chain([next]).collect();
    let mut search = Search::new(view, model, &events, budget)?;
    let mut position = Position::default();
    for (i, seen) in sets.iter().enumerate() {
        let seen = seen.iter().fold(0, |set, &at| set | 1 << at);
        position.append(i, seen);
    }
    Ok(!search.visible(&position, order.len())?.is_empty())
}

impl Position {
    fn append(&mut self, at: usize, sees: Set) {
        self.earlier.insert(at, self.done);
        self.sees.insert(at, sees);
        self.order.push(at);
        self.done |= 1 << at;
    }

    fn take_back(&mut self) {
        if let Some(at) = self.order.pop() {
            self.done &= !(1 << at);
        }
    }
}

impl<'a, 'v> Search<'a, 'v> {
    fn new(
        view: &'a View<'v>,
        model: &'a ObjectModel,
        events: &'a [usize],
        budget: &'a Budget,
    ) -> Result<Self, ObjectRejection> {
        if events.len() > MOST {
            return Err(Stopped::Size { operations: events.len(), limit: MOST }.into());
        }
        let into = |holds: &dyn Fn(usize, usize) -> bool, b: usize| {
            let before = (0..events.len()).filter(|&a| holds(events[a], events[b]));
            before.fold(0, |set, a| set | 1 << a)
        };
        let axioms: Vec<&Axiom> = model.axioms.iter().filter(|a| a.left == Left::Vis).collect();
        let all = 0..events.len();
        Ok(Search {
            view,
            events,
            before_po: all.clone().map(|b| into(&|x, y| view.program_order(x, y), b)).collect(),
            before_hb: all.clone().map(|b| into(&|x, y| view.happens_before(x, y), b)).collect(),
            is_reader: all
                .map(|i| view.object.is_read_only(&view.events[events[i]].method, None))
                .collect(),
            budget,
            steps: 0,
            left: HashSet::new(),
            composes_lin: axioms.iter().any(|a| a.right.len() > 1 && a.right.contains(&Atom::Lin)),
            mentions_vis: axioms.iter().any(|a| a.right.len() > 1 && a.right.contains(&Atom::Vis)),
            axioms,
        })
    }

    /// Tries every operation that may come next; no deeper than there are operations.
    fn extend(&mut self, position: &mut Position) -> Result<bool, ObjectRejection> {
        self.budget.check()?;
        let is_pending = |i: usize| self.view.events[self.events[i]].is_pending;
        if (0..self.events.len()).all(|i| is_pending(i) || position.done >> i & 1 == 1) {
            return Ok(true);
        }
        if !self.is_new(position) {
            return Ok(false);
        }
        for next in 0..self.events.len() {
            if position.done >> next & 1 == 1 || self.before_hb[next] & !position.done != 0 {
                continue;
            }
            for sees in self.visible(position, next)? {
                position.append(next, sees);
                let is_explained = self.extend(position)?;
                position.take_back();
                if is_explained {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn is_new(&mut self, position: &Position) -> bool {
        if self.composes_lin {
            return true;
        }
        let mut key = vec![position.done];
        let writers = position.order.iter().filter(|&&i| !self.is_reader[i]);
        key.extend(writers.map(|&i| i as Set));
        if self.mentions_vis {
            let listed = (0..self.events.len()).filter(|&i| position.done >> i & 1 == 1);
            key.extend(listed.map(|i| position.sees[&i]));
        }
        self.left.insert(key)
    }

    /// Gives the smallest sets that the next operation may see; one of them, where nothing depends
    /// on which.
    fn visible(&mut self, position: &Position, next: usize) -> Result<Vec<Set>, ObjectRejection> {
        let demanded = self.demanded(position, next, 0);
        if !self.mentions_vis {
            return Ok(self.any_visible(position, next, demanded).into_iter().collect());
        }
        let mut found: Vec<Set> = Vec::new();
        let mut reached = HashSet::from([demanded]);
        let mut work = VecDeque::from([demanded]);
        while let Some(sees) = work.pop_front() {
            self.steps += 1;
            if self.steps.is_multiple_of(64) {
                self.budget.check()?;
                let sets = reached.len() + self.left.len() * (4 + self.events.len());
                self.budget.reserve(32 * sets as u64)?;
            }
            if found.iter().any(|smaller| smaller & !sees == 0) {
                continue;
            }
            let mut state = self.after(position, sees);
            if state.as_mut().is_some_and(|state| self.view.perform(state, self.events[next])) {
                found.retain(|larger| sees & !larger != 0);
                found.push(sees);
                continue;
            }
            for i in position.order.iter().filter(|&&i| sees >> i & 1 == 0 && !self.is_reader[i]) {
                let grown = self.demanded(position, next, sees | 1 << i);
                if reached.insert(grown) {
                    work.push_back(grown);
                }
            }
        }
        Ok(found)
    }

    /// Gives a set with what is demanded after which the next operation returns what it did: the
    /// states that can be reached are followed along the order.
    fn any_visible(&self, position: &Position, next: usize, demanded: Set) -> Option<Set> {
        let mut reached = HashMap::from([(self.view.object.initial(), 0)]);
        for &i in &position.order {
            let is_demanded = demanded >> i & 1 == 1;
            if self.is_reader[i] {
                continue;
            }
            let mut further = if is_demanded { HashMap::new() } else { reached.clone() };
            for (mut state, sees) in reached {
                if self.view.invoke(&mut state, self.events[i]).is_some() {
                    further.entry(state).or_insert(sees | 1 << i);
                }
            }
            reached = further;
        }
        let fits = |state: &State| self.view.perform(&mut state.clone(), self.events[next]);
        reached.into_iter().find(|(state, _)| fits(state)).map(|(_, sees)| sees | demanded)
    }

    /// Adds to a set what the axioms demand of an operation that sees it.
    fn demanded(&self, position: &Position, next: usize, mut sees: Set) -> Set {
        let method = &self.view.events[self.events[next]].method;
        loop {
            let mut more = sees;
            for axiom in self.axioms.iter().filter(|axiom| axiom.concerns(method)) {
                let mut reached: Set = 1 << next;
                for atom in axiom.right.iter().rev() {
                    let before = |i: usize| match atom {
                        Atom::Po => self.before_po[i] & position.done,
                        Atom::Hb => self.before_hb[i] & position.done,
                        Atom::Lin if i == next => position.done,
                        Atom::Lin => position.earlier[&i],
                        Atom::Vis if i == next => sees,
                        Atom::Vis => position.sees[&i],
                    };
                    let members = (0..self.events.len()).filter(|&i| reached >> i & 1 == 1);
                    reached = members.fold(0, |set, i| set | before(i));
                }
                more |= reached;
            }
            if more == sees {
                return sees;
            }
            sees = more;
        }
    }

    /// Gives the state after the operations of a set in their order, if they are possible.
    fn after(&self, position: &Position, sees: Set) -> Option<State> {
        let mut state = self.view.object.initial();
        for &i in position.order.iter().filter(|&&i| sees >> i & 1 == 1) {
            if !self.view.see(&mut state, self.events[i]) {
                return None;
            }
        }
        Some(state)
    }
}
