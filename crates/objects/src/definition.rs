//! The definition of a model, executed literally: tries every linearization and every visibility.
//!
//! For each choice of the pending operations that took effect, each total order `lin` of the
//! operations that extends `hb`, and each `vis` contained in `lin`, the axioms are evaluated as
//! relations and each return is compared with that of the specification. Nothing is pruned, and no
//! code is shared with the searches, which are tested against it. It takes `n! * 2^(n * n / 2)`
//! steps, so it is limited to five or six operations.
//!
//! If the object cannot perform a visible sequence (such as locking a lock twice), the
//! specification returns nothing, so no return is right. Operations whose method never changes the
//! state have no effect on others and are skipped there.

use consistory_history::Value;
use consistory_spec::{Atom, Left, ObjectModel};

use crate::calls::CallIndex;
use crate::task::Task;

/// An abstract execution: a linearization and a visibility relation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Execution {
    /// Operations that took effect, in the order of the linearization.
    pub lin: Vec<CallIndex>,
    /// Operations visible to each operation of `lin`, in the same order.
    pub vis: Vec<Vec<CallIndex>>,
}

/// Largest number of operations for which the definition can be executed.
pub const MAX_OPERATIONS_BY_DEFINITION: usize = 6;

/// A relation over the positions of a linearization: one row per position, one bit per successor.
type Relation = [u8; 8];

/// Finds an abstract execution by which a task satisfies a model, by trying every one.
///
/// # Panics
///
/// If there are more than [`MAX_OPERATIONS_BY_DEFINITION`] operations.
pub fn decide_by_definition(task: &Task<'_>, model: &ObjectModel) -> Option<Execution> {
    assert!(task.len() <= MAX_OPERATIONS_BY_DEFINITION, "the definition is for a few operations");
    let (pending, completed): (Vec<CallIndex>, Vec<CallIndex>) =
        task.calls().places().partition(|&place| task.is_pending(place));
    (0..1u32 << pending.len()).find_map(|chosen| {
        let took_effect = pending.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
        let mut operations = completed.clone();
        operations.extend(took_effect.map(|(_, &place)| place));
        let mut found = None;
        permutations(&mut operations, 0, &mut |lin| {
            if found.is_none() && respects_happens_before(task, lin) {
                found = visibility(task, model, lin);
            }
        });
        found
    })
}

fn permutations(items: &mut Vec<CallIndex>, from: usize, visit: &mut impl FnMut(&[CallIndex])) {
    if from == items.len() {
        return visit(items);
    }
    for i in from..items.len() {
        items.swap(from, i);
        permutations(items, from + 1, visit);
        items.swap(from, i);
    }
}

fn respects_happens_before(task: &Task<'_>, lin: &[CallIndex]) -> bool {
    (0..lin.len()).all(|i| (i..lin.len()).all(|j| !task.calls().happens_before(lin[j], lin[i])))
}

/// Tries every visibility.
fn visibility(task: &Task<'_>, model: &ObjectModel, lin: &[CallIndex]) -> Option<Execution> {
    let n = lin.len();
    let pairs: Vec<(usize, usize)> = (0..n).flat_map(|b| (0..b).map(move |a| (a, b))).collect();
    (0..1u32 << pairs.len()).find_map(|chosen| {
        let mut vis: Relation = [0; 8];
        for (i, &(a, b)) in pairs.iter().enumerate() {
            if chosen >> i & 1 == 1 {
                vis[a] |= 1 << b;
            }
        }
        let holds = axioms_hold(task, model, lin, &vis) && returns_hold(task, lin, &vis);
        holds.then(|| Execution {
            lin: lin.to_vec(),
            vis: (0..n).map(|b| seen(&vis, b).map(|a| lin[a]).collect()).collect(),
        })
    })
}

fn seen(vis: &Relation, by: usize) -> impl Iterator<Item = usize> + '_ {
    (0..by).filter(move |&a| vis[a] >> by & 1 == 1)
}

fn axioms_hold(task: &Task<'_>, model: &ObjectModel, lin: &[CallIndex], vis: &Relation) -> bool {
    let relation = |holds: &dyn Fn(usize, usize) -> bool| {
        let mut rows: Relation = [0; 8];
        for (a, row) in rows.iter_mut().enumerate().take(lin.len()) {
            for b in (0..lin.len()).filter(|&b| holds(a, b)) {
                *row |= 1 << b;
            }
        }
        rows
    };
    let total = relation(&|a, b| a < b);
    let value = |atom: &Atom| match atom {
        Atom::Po => relation(&|a, b| task.calls().program_order(lin[a], lin[b])),
        Atom::Hb => relation(&|a, b| task.calls().happens_before(lin[a], lin[b])),
        Atom::Lin => total,
        Atom::Vis => *vis,
    };
    model.axioms.iter().all(|axiom| {
        let right = axiom.right.iter().map(value).reduce(|a, b| compose(&a, &b));
        let right = right.expect("an axiom composes at least one relation");
        let left = match axiom.left {
            Left::Lin => &total,
            Left::Vis => vis,
        };
        (0..lin.len()).all(|b| {
            !axiom.concerns(&task.invocation(lin[b]).method)
                || (0..lin.len()).all(|a| right[a] >> b & 1 == 0 || left[a] >> b & 1 == 1)
        })
    })
}

fn compose(a: &Relation, b: &Relation) -> Relation {
    let mut rows: Relation = [0; 8];
    for (row, middle) in rows.iter_mut().zip(a) {
        for (_, next) in b.iter().enumerate().filter(|(m, _)| middle >> m & 1 == 1) {
            *row |= next;
        }
    }
    rows
}

fn returns_hold(task: &Task<'_>, lin: &[CallIndex], vis: &Relation) -> bool {
    (0..lin.len()).all(|b| {
        let context: Vec<CallIndex> = seen(vis, b).map(|a| lin[a]).collect();
        match specified(task, &context, lin[b]) {
            Some(value) => task.returns(lin[b]).is_none_or(|wanted| *wanted == value),
            None => false,
        }
    })
}

/// Returns the return value that the specification gives for an operation after a context.
fn specified(task: &Task<'_>, context: &[CallIndex], op: CallIndex) -> Option<Value> {
    let mut state = task.object().initial();
    for &place in context.iter().filter(|&&place| !task.is_read_only(place)) {
        let call = task.invocation(place);
        task.object().invoke(&mut state, &call.method, &call.args)?;
    }
    let call = task.invocation(op);
    task.object().invoke(&mut state, &call.method, &call.args)
}
