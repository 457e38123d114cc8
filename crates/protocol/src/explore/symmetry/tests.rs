//! Representatives are exact on small systems: a comparison with all renamings of all states.

use std::collections::HashSet;

use consistory_verdict::Budget;

use super::*;
use crate::explore::{Explorer, Options};
use crate::machine::run::next_order;
use crate::machine::stepper::{Fired, Serialization, Stepper};
use crate::system::Model;

/// Visits every state by a simple search.
fn all_states(system: &System) -> HashSet<Vec<i32>> {
    let mut stepper = Stepper::new(system, Serialization::Inferred, Budget::unlimited());
    let mut found = HashSet::new();
    let mut open = Vec::new();
    for number in 0..system.lowered.starts.len() {
        assert_eq!(stepper.start(number), Fired::Done);
        open.push(stepper.slots().to_vec());
    }
    while let Some(state) = open.pop() {
        if !found.insert(state.clone()) {
            continue;
        }
        stepper.load_slots(&state);
        for rule in 0..system.lowered.rules.len() {
            if stepper.fire(rule) == Fired::Done {
                open.push(stepper.slots().to_vec());
            }
            stepper.reset();
        }
    }
    found
}

/// Returns all renamings of a state.
fn orbit(canonical: &Canonical<'_>, state: &[i32]) -> HashSet<Vec<i32>> {
    let mut work = Work {
        memory: state.to_vec(),
        orders: canonical.groups.iter().map(|group| (0..group.size).collect()).collect(),
        positions: canonical.groups.iter().map(|group| vec![0; group.size as usize]).collect(),
        candidate: vec![UNDEFINED; state.len()],
        origins: vec![0; state.len()],
        ..Work::default()
    };
    let mut orbit = HashSet::new();
    loop {
        canonical.apply(&mut work);
        orbit.insert(work.candidate.clone());
        if !work.orders.iter_mut().any(|order| next_order(order)) {
            return orbit;
        }
    }
}

fn is_exact(text: &str) {
    let system = Model::parse("test.m", text).unwrap_or_else(|e| panic!("{e}")).plain();
    let mut canonical = Canonical::new(&system, None, &system.symmetric.types, Budget::unlimited());
    let states = all_states(&system);
    let mut left: HashSet<Vec<i32>> = states.clone();
    let mut orbits = 0;
    while let Some(state) = left.iter().next().cloned() {
        let orbit = orbit(&canonical, &state);
        let first = canonical.of(&state, &[], None).0.to_vec();
        assert!(orbit.contains(&first), "the representative is a renaming");
        for renamed in &orbit {
            assert!(states.contains(renamed), "renaming leads to states that are reached");
            assert_eq!(canonical.of(renamed, &[], None).0, first, "{renamed:?} has the same one");
            left.remove(renamed);
        }
        orbits += 1;
    }
    let count = |symmetry| {
        let options = Options { symmetry, deadlock: false, ..Options::default() };
        Explorer::new(&system).options(options).run().unwrap().progress.states
    };
    assert_eq!((count(false), count(true)), (states.len() as u64, orbits), "{text}");
}

#[test]
fn representatives_are_exact() {
    for text in [
        include_str!("../../../tests/models/unions.m"),
        include_str!("../../../tests/models/multisets.m"),
        include_str!("../../../tests/models/nested.m"),
        include_str!("../../../tests/models/doubtful-loop.m"),
        &include_str!("../../../tests/models/german.m").replace("CLIENTS: 4", "CLIENTS: 2"),
        // Values that point at each other: keys do not distinguish a cycle of three from a pair.
        "type P: scalarset(5); var next: array [P] of P;\n\
         startstate undefine next; end;\n\
         ruleset p: P; q: P do\n\
           rule p != q & isundefined(next[p]) & forall r: P do isundefined(next[r]) | next[r] != q end\n\
           ==> next[p] := q; end;\n\
         end;",
        // Two scalarsets, an array over both, multisets in an array.
        "type P: scalarset(3); B: scalarset(2); var on: array [P] of array [B] of boolean;\n\
         net: array [P] of multiset [2] of record b: B; p: P; end;\n\
         startstate for p: P do for b: B do on[p][b] := false; end; end; undefine net; end;\n\
         ruleset p: P; b: B do\n\
           rule !on[p][b] & multisetcount(i: net[p], true) < 1 ==>\n\
           var m: record b: B; p: P; end; begin m.b := b; m.p := p; on[p][b] := true;\n\
           for q: P do if q != p & multisetcount(i: net[q], true) < 2 then multisetadd(m, net[q]); end; end;\n\
           end;\n\
         end;\n\
         ruleset p: P do choose i: net[p] do\n\
           rule on[net[p][i].p][net[p][i].b] ==> on[net[p][i].p][net[p][i].b] := false; multisetremove(i, net[p]); end;\n\
           rule !on[net[p][i].p][net[p][i].b] ==> multisetremove(i, net[p]); end;\n\
         end; end;",
    ] {
        is_exact(text);
    }
}
