//! Views: CCM and wCCM.
//!
//! CCM holds if and only if `po | wr | pww | rw[pww]` has no cycle, where
//! `pww = (hb_WW | cf[hb])+`. Here `hb` is the transitive union of the relations `hb_o`, the least
//! relations that contain the causal order and, for reads r up to o in the session of o, the pair
//! `(w', w)` if w' is before r and r reads from another write w of its key. All of this is monotone
//! in `hb`, so a larger `hb` is an equally good proof, and the certificate supplies one: pairs of
//! writes, session by session.
//!
//! For each session the checker assigns every operation a level: the first operation of the session
//! that it precedes or equals, by the causal order and the session's own pairs. Then it checks for
//! each read r of the session from w, and each other write w' of the key whose level is at most r:
//!
//! - the level of w' is at most that of w, and
//! - w' is before w by the causal order and the pairs of all sessions.
//!
//! The pairs (a, b) with a before b in the second sense, and a's level at most b's, then contain
//! `hb_o` for every o of the session: the causal order does not lower levels, and the rule derives
//! no new pair. From the union the checker computes `cf`, `pww` and `rw`, with few edges that have
//! the same closure, and sorts them topologically.
//!
//! wCCM is the same twice, with `ppo` and with `poloc`, and `wre` instead of `wr`; the reads of a
//! session are then the totally ordered ones. Both relations share one `wpww`. A path of both
//! relations that ends in a write needs no `poloc`: everything before a write in its session is
//! before it in `ppo`.
//!
//! Cost: operations times chains, and for each session the past of its operations.

use consistory_history::{KeyId, OpId, SessionId};
use consistory_verdict::{Stopped, View};
use consistory_work::side_by_side;
use rustc_hash::FxHashMap;

use crate::closure::{Clocks, Columns, Readers, Writers, program_order, sources};
use crate::limits::Limits;
use crate::reads_from::ReadsFrom;
use crate::store_order::{
    Memory, Role, key, preserved_program_order, program_order_per_key, role, sorted,
};
use crate::{Rejection, exists, name};

/// Pairs of operations, the earlier first.
type Pairs = Vec<(OpId, OpId)>;

/// A part of program order that the views of the sessions extend.
struct Relation {
    name: &'static str,
    /// Name of its union with `wr`, `pww` and `rw`.
    whole: &'static str,
    own: Pairs,
    columns: Columns,
}

/// Checks that the views contain everything that the reads force, and that the resulting relations
/// are acyclic.
pub(crate) fn agree(
    wr: &ReadsFrom<'_>,
    memory: Memory,
    views: &[View],
    limits: Limits<'_>,
) -> Result<(), Rejection> {
    let history = wr.history;
    let buffered = memory != Memory::Sequential;
    let sources = sources(wr, memory)?;
    let relations = match buffered {
        false => vec![Relation {
            name: "po",
            whole: "po | wr | pww | rw",
            own: program_order(wr),
            columns: Columns::Sessions,
        }],
        true => vec![
            Relation {
                name: "ppo",
                whole: "ppo | wre | wpww | rw",
                own: preserved_program_order(wr, memory),
                columns: Columns::Buffers,
            },
            Relation {
                name: "poloc",
                whole: "poloc | wre | wpww | rw",
                own: program_order_per_key(wr),
                columns: Columns::Sessions,
            },
        ],
    };
    are_of_writes(wr, &relations, views)?;
    let forced: Vec<Pairs> = relations
        .iter()
        .map(|relation| {
            let views = views.iter().filter(|view| view.relation == relation.name);
            views.flat_map(|view| view.pairs.iter().copied()).collect()
        })
        .collect();
    let mut conflicts = Pairs::new();
    for (relation, forced) in relations.iter().zip(&forced) {
        let parts = [&relation.own[..], &sources, forced];
        let Some(clock) = Clocks::new(wr, relation.columns, &parts, limits)? else {
            return Err(Rejection::Cyclic { relation: "hb" });
        };
        let writers = Writers::new(wr, &clock);
        are_closed(wr, relation, &sources, &clock, &writers, views, limits)?;
        for read in history.ops() {
            let Some(source) = wr.source(read).filter(|&w| !history.is_initial(w)) else {
                continue;
            };
            if buffered && history.session_of(source) == history.session_of(read) {
                continue;
            }
            let key = wr.reads(read).expect("what has a source is a read");
            let latest = writers.last_before(&clock, key.index(), read);
            let conflicting = latest.filter(|&w| w != source && !clock.before(w, source));
            conflicts.extend(conflicting.map(|write| (write, source)));
        }
    }
    let all: Vec<&[(OpId, OpId)]> = forced.iter().map(Vec::as_slice).collect();
    let (ww, rw) = overwriting(wr, &relations[0], &sources, &all, &conflicts, limits)?;
    for (i, relation) in relations.iter().enumerate() {
        let mut parts = vec![&relation.own[..], &sources, &conflicts, &rw];
        // The first relation contains the pairs of the views, from which `pww` follows; the second
        // gets `pww`.
        if i == 0 {
            parts.extend(&all)
        } else {
            parts.push(&ww)
        }
        if !sorted(history.len(), &parts, limits, |_, _| ())? {
            return Err(Rejection::Cyclic { relation: relation.whole });
        }
    }
    Ok(())
}

/// Checks that the pairs are of writes of one key, and the views of relations of the model.
fn are_of_writes(
    wr: &ReadsFrom<'_>,
    relations: &[Relation],
    views: &[View],
) -> Result<(), Rejection> {
    let history = wr.history;
    let writes = |op: OpId| match exists(history, op) && !history.is_initial(op) {
        true => wr.writes(op),
        false => None,
    };
    for (i, view) in views.iter().enumerate() {
        if view.session.index() >= history.session_count()
            || relations.iter().all(|relation| view.relation != relation.name)
        {
            return Err(Rejection::BadName { part: format!("views[{i}]") });
        }
        for (j, &(first, second)) in view.pairs.iter().enumerate() {
            if writes(first).is_none() || writes(first) != writes(second) {
                let part = format!("views[{i}].pairs[{j}]");
                let (first, second) = (name(history, first), name(history, second));
                return Err(Rejection::BadSplit { part, first, second });
            }
        }
    }
    Ok(())
}

/// Checks that the reads of each session force no pair that its view does not contain.
fn are_closed(
    wr: &ReadsFrom<'_>,
    relation: &Relation,
    sources: &[(OpId, OpId)],
    clock: &Clocks<'_>,
    writers: &Writers,
    views: &[View],
    limits: Limits<'_>,
) -> Result<(), Rejection> {
    let history = wr.history;
    let before = Before::new(history.len(), &[&relation.own, sources]);
    let sessions = history.session_count();
    let pieces = sessions.min(limits.0.jobs.max(1));
    limits.reserve::<u32>(2 * history.len() * pieces)?;
    let session_is_closed = |session: SessionId, levels: &mut Levels<'_>| {
        let mut own_pairs: FxHashMap<OpId, Vec<OpId>> = FxHashMap::default();
        for view in views.iter().filter(|v| v.session == session && v.relation == relation.name) {
            for &(first, second) in &view.pairs {
                own_pairs.entry(second).or_default().push(first);
            }
        }
        for line in lines(wr, relation, session) {
            levels.fill(&line, &own_pairs, limits)?;
            let level = |op: OpId| levels.level[op.index()];
            for &read in &line {
                let Some(source) = wr.source(read) else { continue };
                let key = wr.reads(read).expect("what has a source is a read").index();
                for write in writers.last_of_each(key, |w| w != read && level(w) <= read.0) {
                    if history.is_initial(source) {
                        let [read, write, last] = [read, source, write].map(|op| name(history, op));
                        return Err(Rejection::Overwritten { read, write, last });
                    }
                    if write != source
                        && (level(write) > level(source) || !clock.before(write, source))
                    {
                        let (before, after) = (name(history, write), name(history, source));
                        return Err(Rejection::NotClosed { before, after });
                    }
                }
            }
        }
        Ok(())
    };
    let closed = side_by_side(pieces, pieces, |piece| {
        let mut levels =
            Levels { before: &before, level: vec![OUTSIDE; history.len()], found: Vec::new() };
        let mut own = history.sessions().skip(piece).step_by(pieces);
        own.try_for_each(|session| session_is_closed(session, &mut levels))
    });
    closed.into_iter().collect()
}

/// Returns the operations of a session that may read, as lists that the relation orders totally.
fn lines(wr: &ReadsFrom<'_>, relation: &Relation, session: SessionId) -> Vec<Vec<OpId>> {
    let counting = wr.history.session_ops(session).filter(|&op| wr.counts(op));
    match relation.name {
        "po" => vec![counting.collect()],
        "ppo" => vec![counting.filter(|&op| role(wr, op) != Role::Write).collect()],
        _ => {
            let mut of_key: FxHashMap<KeyId, usize> = FxHashMap::default();
            let mut lines: Vec<Vec<OpId>> = Vec::new();
            for op in counting {
                let Some(key) = key(wr, op) else { continue };
                let line = *of_key.entry(key).or_insert(lines.len());
                if line == lines.len() {
                    lines.push(Vec::new());
                }
                lines[line].push(op);
            }
            lines
        }
    }
}

/// Returns parts of `pww` and `rw[pww]` that have the same closure together with the other edges.
fn overwriting(
    wr: &ReadsFrom<'_>,
    relation: &Relation,
    sources: &[(OpId, OpId)],
    forced: &[&[(OpId, OpId)]],
    conflicts: &[(OpId, OpId)],
    limits: Limits<'_>,
) -> Result<(Pairs, Pairs), Rejection> {
    let history = wr.history;
    let mut parts = vec![&relation.own[..], sources];
    parts.extend(forced);
    let Some(clock) = Clocks::new(wr, relation.columns, &parts, limits)? else {
        return Err(Rejection::Cyclic { relation: "hb" });
    };
    let (writers, readers) = (Writers::new(wr, &clock), Readers::new(wr));
    let (mut ww, mut rw) = (Pairs::new(), Pairs::new());
    let mut latest = Vec::new();
    for write in history.ops() {
        let Some(key) = wr.writes(write) else { continue };
        latest.clear();
        latest.extend(writers.last_before(&clock, key.index(), write));
        // Only the maximal ones among the latest writes matter; the rest follow by transitivity.
        for &before in &latest {
            if !latest.iter().any(|&other| clock.before(before, other)) {
                ww.push((before, write));
            }
        }
        if latest.is_empty() {
            rw.extend(readers.of(history.initial_write(key)).map(|read| (read, write)));
        }
    }
    for &(before, write) in ww.iter().chain(conflicts) {
        rw.extend(readers.of(before).map(|read| (read, write)));
    }
    rw.retain(|(read, write)| read != write);
    Ok((ww, rw))
}

/// Direct predecessors of each operation.
struct Before {
    starts: Vec<u32>,
    ops: Vec<OpId>,
}

impl Before {
    fn new(size: usize, parts: &[&[(OpId, OpId)]]) -> Self {
        let pairs = || parts.iter().copied().flatten();
        let mut starts = vec![0; size + 1];
        for (_, to) in pairs() {
            starts[to.index() + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut ops = vec![OpId(0); starts[size] as usize];
        for &(from, to) in pairs() {
            ops[next[to.index()] as usize] = from;
            next[to.index()] += 1;
        }
        Before { starts, ops }
    }

    fn of(&self, op: OpId) -> &[OpId] {
        &self.ops[self.starts[op.index()] as usize..self.starts[op.index() + 1] as usize]
    }
}

/// Level of an operation that precedes no operation of the line.
const OUTSIDE: u32 = u32::MAX;

/// For each operation, the first operation of a line that it precedes or equals.
struct Levels<'a> {
    before: &'a Before,
    level: Vec<u32>,
    /// Operations that have a level.
    found: Vec<OpId>,
}

impl Levels<'_> {
    /// Computes the levels for a line from the causal order and the pairs `more`, which are given
    /// by their ends.
    fn fill(
        &mut self,
        line: &[OpId],
        more: &FxHashMap<OpId, Vec<OpId>>,
        limits: Limits<'_>,
    ) -> Result<(), Stopped> {
        for op in self.found.drain(..) {
            self.level[op.index()] = OUTSIDE;
        }
        let mut open = Vec::new();
        for &own in line {
            open.push(own);
            while let Some(op) = open.pop() {
                if self.level[op.index()] != OUTSIDE {
                    continue;
                }
                limits.step(self.found.len())?;
                self.level[op.index()] = own.0;
                self.found.push(op);
                open.extend(self.before.of(op));
                open.extend(more.get(&op).into_iter().flatten());
            }
        }
        Ok(())
    }
}
