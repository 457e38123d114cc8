//! CC, CCv and CM: the relations as tables of all pairs, and the definitions as loops over them.

use consistory_generate::EventAction;

use super::Small;

type Relation = Vec<Vec<bool>>;

pub(crate) fn is_cc(history: &Small) -> bool {
    let Some(x) = Execution::new(history) else { return false };
    // co is irreflexive, and so is co ; rw[co].
    let overwritten =
        x.triples().any(|(w, r, other)| x.co[w][other] && other != r && x.co[other][r]);
    is_irreflexive(&x.co) && !overwritten
}

pub(crate) fn is_ccv(history: &Small) -> bool {
    let Some(x) = Execution::new(history) else { return false };
    let mut order = x.co.clone();
    for (w, r, other) in x.triples() {
        if x.co[other][r] {
            order[other][w] = true;
        }
    }
    close(&mut order);
    is_cc(history) && is_irreflexive(&order)
}

pub(crate) fn is_cm(history: &Small) -> bool {
    let Some(x) = Execution::new(history) else { return false };
    is_cc(history) && (0..x.ops.len()).all(|o| is_irreflexive(&x.hb(o)))
}

struct Op {
    /// The session; `None` for an initial write.
    session: Option<usize>,
    reads: Option<(u32, u64)>,
    writes: Option<(u32, u64)>,
}

/// Operations, the initial writes first and then session by session, and their relations.
struct Execution {
    ops: Vec<Op>,
    po: Relation,
    wr: Relation,
    co: Relation,
}

impl Execution {
    /// Builds the relations; `None` if a read returns a value that was never written.
    fn new(history: &Small) -> Option<Self> {
        let initial = |variable| Op { session: None, reads: None, writes: Some((variable, 0)) };
        let mut ops: Vec<Op> = (0..history.variables() as u32).map(initial).collect();
        for (s, session) in history.sessions.iter().enumerate() {
            for &action in session {
                let (reads, writes) = match action {
                    EventAction::Read { variable, value } => (Some((variable, value)), None),
                    EventAction::Write { variable, value } => (None, Some((variable, value))),
                    EventAction::Rmw { variable, read, write } => {
                        (Some((variable, read)), Some((variable, write)))
                    }
                    EventAction::Fence => (None, None),
                };
                ops.push(Op { session: Some(s), reads, writes });
            }
        }
        let po = relation(&ops, |a, b| {
            let first = ops[a].session.is_none() && ops[b].session.is_some();
            first || (a < b && ops[a].session.is_some() && ops[a].session == ops[b].session)
        });
        let wr = relation(&ops, |a, b| ops[b].reads.is_some() && ops[a].writes == ops[b].reads);
        let mut co = relation(&ops, |a, b| po[a][b] || wr[a][b]);
        close(&mut co);
        let has_source = |b: usize| ops[b].reads.is_none() || (0..ops.len()).any(|a| wr[a][b]);
        (0..ops.len()).all(has_source).then_some(Self { ops, po, wr, co })
    }

    /// Lists triples: a write, a read that reads from it, and another write of the same variable.
    fn triples(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let n = self.ops.len();
        let all = (0..n).flat_map(move |w| (0..n).map(move |r| (w, r)));
        let variable = |w: usize| self.ops[w].writes.map(|(variable, _)| variable);
        all.filter(|&(w, r)| self.wr[w][r]).flat_map(move |(w, r)| {
            let others = (0..n).filter(move |&o| o != w && variable(o) == variable(w));
            others.map(move |other| (w, r, other))
        })
    }

    /// Builds the happens-before relation of operation `o` as defined for causal memory.
    fn hb(&self, o: usize) -> Relation {
        let past = |a: usize| a == o || self.co[a][o];
        let mut hb = relation(&self.ops, |a, b| past(a) && past(b) && self.co[a][b]);
        loop {
            let before = hb.clone();
            for (w, r, other) in self.triples() {
                if (r == o || self.po[r][o]) && hb[other][r] {
                    hb[other][w] = true;
                }
            }
            close(&mut hb);
            if hb == before {
                return hb;
            }
        }
    }
}

fn relation(ops: &[Op], holds: impl Fn(usize, usize) -> bool) -> Relation {
    (0..ops.len()).map(|a| (0..ops.len()).map(|b| holds(a, b)).collect()).collect()
}

/// Makes a relation transitive.
fn close(relation: &mut Relation) {
    for via in 0..relation.len() {
        let row = relation[via].clone();
        for from in relation.iter_mut().filter(|from| from[via]) {
            for (to, &reached) in from.iter_mut().zip(&row) {
                *to |= reached;
            }
        }
    }
}

fn is_irreflexive(relation: &Relation) -> bool {
    (0..relation.len()).all(|a| !relation[a][a])
}
