//! Decides sequential consistency and TSO without saturation, as in related work: the baselines.
//!
//! - [`by_encoding`] is the standard encoding into boolean satisfiability that Zennou et al. (2019,
//!   and the thesis, sections 4.1.4 and 5.1.4) call SC-SAT and TSO-SAT: the store order is total,
//!   and the acyclic relation is transitive. An acyclic relation has a linear extension, so there
//!   is one variable for every pair of operations, which says which one comes first, and
//!   transitivity takes two clauses for every three operations. For TSO the relation of `ppo` is
//!   over all operations, that of `poloc` over those of each variable. It uses the same CaDiCaL as
//!   the SAT engine.
//! - [`by_frontier`] is the bounded-thread search of Biswas and Enea (2019), which the thesis calls
//!   DBCOP, for SC: a state is the position in each session, a read runs if memory has its value, a
//!   write when no operation needs the value that it replaces any more, and no state is entered
//!   twice.
//!
//! Both take differentiated histories in which every operation took effect.

use std::time::{Duration, Instant};

use cadical::{Callbacks, Solver};
use consistory_history::{Action, History, OpId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Model that is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlainModel {
    /// Sequential consistency.
    Sc,
    /// Total store order.
    Tso,
}

/// Result of a baseline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plain {
    /// Whether the history satisfies the model.
    Decided(bool),
    /// The time limit was reached.
    OutOfTime,
}

/// Number of steps between two checks of the clock.
const STEPS_PER_LOOK: u32 = 1 << 12;

/// A time limit that is checked from time to time.
struct Clock {
    end: Instant,
    steps: u32,
}

impl Clock {
    fn new(limit: Duration) -> Self {
        Clock { end: Instant::now() + limit, steps: 0 }
    }

    fn is_over(&mut self) -> bool {
        self.steps = self.steps.wrapping_add(1);
        self.steps.is_multiple_of(STEPS_PER_LOOK) && Instant::now() >= self.end
    }
}

struct Stop(Instant);

impl Callbacks for Stop {
    fn terminate(&mut self) -> bool {
        Instant::now() >= self.0
    }
}

/// Returns the source of each operation; initial writes have indices after the operations.
///
/// # Panics
/// If a read has not exactly one candidate.
fn sources(history: &History) -> Vec<Option<OpId>> {
    let mut writes = FxHashMap::default();
    for key in history.keys() {
        writes.insert((key, history.initial_value(key)), history.initial_write(key));
    }
    for op in history.ops() {
        if let Some(written) = history.writes(op) {
            assert_eq!(writes.insert(written, op), None, "the history is differentiated");
        }
    }
    history
        .ops()
        .map(|op| history.reads(op).map(|read| *writes.get(&read).expect("somebody wrote it")))
        .collect()
}

/// A linear order of some operations as variables.
struct Linear {
    /// Number of variables before the first one.
    offset: i32,
    size: i32,
}

impl Linear {
    /// Returns the literal for one operation before another.
    fn before(&self, a: usize, b: usize) -> i32 {
        let variable = |a: i32, b: i32| self.offset + a * (2 * self.size - a - 1) / 2 + (b - a);
        let (a, b) = (a as i32, b as i32);
        if a < b { variable(a, b) } else { -variable(b, a) }
    }

    fn end(&self) -> i32 {
        self.offset + self.size * (self.size - 1) / 2
    }

    /// Adds the clauses of transitivity; returns `false` on timeout.
    fn close(&self, solver: &mut Solver<Stop>, clock: &mut Clock) -> bool {
        let size = self.size as usize;
        for a in 0..size {
            for b in a + 1..size {
                for c in b + 1..size {
                    if clock.is_over() {
                        return false;
                    }
                    let (ab, bc, ac) = (self.before(a, b), self.before(b, c), self.before(a, c));
                    solver.add_clause([-ab, -bc, ac]);
                    solver.add_clause([ab, bc, -ac]);
                }
            }
        }
        true
    }
}

/// Decides by the plain encoding.
///
/// # Panics
/// If a read has not exactly one candidate.
pub fn by_encoding(history: &History, model: PlainModel, limit: Duration) -> Plain {
    let mut clock = Clock::new(limit);
    let mut solver: Solver<Stop> = Solver::new();
    solver.set_callbacks(Some(Stop(clock.end)));
    let sources = sources(history);
    let all = Linear { offset: 0, size: history.len() as i32 };
    let ops: Vec<OpId> = history.ops().collect();
    let at = |op: OpId| op.index();
    for session in history.sessions() {
        let ops: Vec<OpId> = history.session_ops(session).collect();
        for (i, &a) in ops.iter().enumerate() {
            let mut barrier = false;
            for &b in &ops[i + 1..] {
                if model == PlainModel::Sc || barrier || is_kept(history, a, b) {
                    solver.add_clause([all.before(at(a), at(b))]);
                }
                barrier |= is_barrier(history, b);
            }
        }
    }
    explain_reads(
        history,
        &sources,
        &ops,
        model == PlainModel::Sc,
        &mut solver,
        &|a, b| all.before(at(a), at(b)),
        &all,
    );
    if !all.close(&mut solver, &mut clock) {
        return Plain::OutOfTime;
    }
    if model == PlainModel::Tso && !per_variable(history, &sources, &all, &mut solver, &mut clock) {
        return Plain::OutOfTime;
    }
    solver.solve().map_or(Plain::OutOfTime, Plain::Decided)
}

/// Adds the consequences of the sources: sources come before their reads, and a write that
/// overwrites a source comes after its reads. Sources of the same session are included if
/// `internal` is set. `before` returns literals of one relation, `ww` those of the store order.
fn explain_reads(
    history: &History,
    sources: &[Option<OpId>],
    ops: &[OpId],
    internal: bool,
    solver: &mut Solver<Stop>,
    before: &dyn Fn(OpId, OpId) -> i32,
    ww: &Linear,
) {
    for &read in ops {
        let (Some(source), Some((key, _))) = (sources[read.index()], history.reads(read)) else {
            continue;
        };
        let initial = history.is_initial(source);
        let external = !initial && history.session_of(source) != history.session_of(read);
        if !initial && (external || internal) {
            solver.add_clause([before(source, read)]);
        }
        let overwrites =
            |op: OpId| op != read && op != source && history.writes(op).is_some_and(|w| w.0 == key);
        for &write in ops.iter().filter(|&&op| overwrites(op)) {
            match initial {
                true => solver.add_clause([before(read, write)]),
                false => solver
                    .add_clause([-ww.before(source.index(), write.index()), before(read, write)]),
            }
        }
    }
}

/// Adds the relation of `poloc`, variable by variable; it shares the store order.
fn per_variable(
    history: &History,
    sources: &[Option<OpId>],
    all: &Linear,
    solver: &mut Solver<Stop>,
    clock: &mut Clock,
) -> bool {
    let mut offset = all.end();
    for key in history.keys() {
        let accesses = |op: &OpId| {
            let accessed = history.reads(*op).or_else(|| history.writes(*op));
            accessed.is_some_and(|(accessed, _)| accessed == key)
        };
        let ops: Vec<OpId> = history.ops().filter(accesses).collect();
        let own = Linear { offset, size: ops.len() as i32 };
        offset = own.end();
        let place: FxHashMap<OpId, usize> =
            ops.iter().enumerate().map(|(i, &op)| (op, i)).collect();
        for (i, &a) in ops.iter().enumerate() {
            for (j, &b) in ops.iter().enumerate().skip(i + 1) {
                // Operations of a session have ids in program order.
                if history.session_of(a) == history.session_of(b) {
                    solver.add_clause([own.before(i, j)]);
                }
                if history.writes(a).is_some() && history.writes(b).is_some() {
                    let (here, there) = (own.before(i, j), all.before(a.index(), b.index()));
                    solver.add_clause([-here, there]);
                    solver.add_clause([here, -there]);
                }
            }
        }
        let before = |a: OpId, b: OpId| own.before(place[&a], place[&b]);
        // A session has written the values that it reads from itself before.
        explain_reads(history, sources, &ops, true, solver, &before, all);
        if !own.close(solver, clock) {
            return false;
        }
    }
    true
}

/// Checks whether TSO keeps two operations of a session in order without intermediate operations.
fn is_kept(history: &History, a: OpId, b: OpId) -> bool {
    let is_write = |op| matches!(history.action(op), Action::Write { .. });
    let is_read = |op| matches!(history.action(op), Action::Read { .. });
    !(is_write(a) && is_read(b))
}

fn is_barrier(history: &History, op: OpId) -> bool {
    !matches!(history.action(op), Action::Read { .. } | Action::Write { .. })
}

/// Decides sequential consistency by the plain search.
///
/// # Panics
/// If a read has not exactly one candidate.
pub fn by_frontier(history: &History, limit: Duration) -> Plain {
    let mut clock = Clock::new(limit);
    let sources = sources(history);
    let lengths: Vec<u32> =
        history.sessions().map(|session| history.session_ops(session).len() as u32).collect();
    let mut unread = vec![0u32; history.len() + history.key_count()];
    for source in sources.iter().flatten() {
        unread[source.index()] += 1;
    }
    let mut memory: Vec<OpId> = history.keys().map(|key| history.initial_write(key)).collect();
    let mut heads = vec![0u32; lengths.len()];
    let mut seen: FxHashSet<Box<[u32]>> = FxHashSet::default();
    // Operations that ran, with the replaced value, and the session to be tried next after each.
    let mut ran: Vec<(OpId, Option<OpId>)> = Vec::new();
    let mut next = 0;
    loop {
        if ran.len() == history.len() {
            return Plain::Decided(true);
        }
        if clock.is_over() {
            return Plain::OutOfTime;
        }
        let mut moved = false;
        for session in next..heads.len() {
            if heads[session] == lengths[session] {
                continue;
            }
            let op =
                history.op_at(history.sessions().nth(session).expect("it exists"), heads[session]);
            let source = sources[op.index()];
            let key = history.reads(op).or_else(|| history.writes(op)).map(|(key, _)| key.index());
            let has_source =
                source.is_none_or(|source| key.is_some_and(|key| memory[key] == source));
            let is_free = |key: usize| unread[memory[key].index()] == u32::from(source.is_some());
            if !has_source || (history.writes(op).is_some() && !key.is_some_and(is_free)) {
                continue;
            }
            heads[session] += 1;
            if !seen.insert(heads.clone().into_boxed_slice()) {
                heads[session] -= 1;
                continue;
            }
            if let Some(source) = source {
                unread[source.index()] -= 1;
            }
            let replaced = match (history.writes(op), key) {
                (Some(_), Some(key)) => Some(std::mem::replace(&mut memory[key], op)),
                _ => None,
            };
            ran.push((op, replaced));
            moved = true;
            break;
        }
        if moved {
            next = 0;
            continue;
        }
        let Some((op, replaced)) = ran.pop() else { return Plain::Decided(false) };
        let session = history.session_of(op).index();
        heads[session] -= 1;
        if let Some(source) = sources[op.index()] {
            unread[source.index()] += 1;
        }
        if let (Some(replaced), Some((key, _))) = (replaced, history.writes(op)) {
            memory[key.index()] = replaced;
        }
        next = session + 1;
    }
}
