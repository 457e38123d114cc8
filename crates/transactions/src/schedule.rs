//! A commit order along the forced edges, by list scheduling with conflict analysis.
//!
//! Events are committed one by one. An event can be next if all its forced predecessors are done.
//! In addition, a commit can be next only if no uncommitted transaction still has to read a version
//! that it overwrites; and at `si`, a snapshot can be next only if no open transaction writes a key
//! that its own transaction writes. Then the current version of a key is always the source of the
//! read at hand, so an order that contains all events is a proof.
//!
//! Of the events that can be next, the one at the earliest position of its session is chosen. If
//! either of two blind writes could come first, this choice is a guess. After a wrong guess the
//! schedule gets stuck: events wait for each other in a circle, some of them only because of
//! guesses. As in conflict-driven SAT solvers, the schedule learns from the guesses on the circle:
//! they cannot all be right. The newest guess is undone, and its event must now wait for one of the
//! transactions that it was scheduled before, as long as the older guesses hold. If the circle
//! contains no guess, the level is violated.
//!
//! ```text
//!   guesses  w1(x) before w2(x),  w3(y) before w4(y)
//!   circle   w2 waits for a reader of w1's x, which reads from w4,
//!            w4 waits for a reader of w3's y, which reads from w2
//!   learned  while w1 is before w2, w3 has to wait for w4
//! ```
//!
//! When the older guesses are undone, the event need not wait any longer. The contradiction is
//! kept, and checked before an event would complete it again. Without a limit on the number of
//! conflicts, the search is complete.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use consistory_history::KeyId;
use consistory_verdict::{Budget, Level, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::{Adjacency, Graph, Link, Shape};
use crate::saturate::Saturation;
use crate::view::{INITIAL, OPEN};

/// Number of events committed between two checks of the budget.
const EVENTS_PER_CHECK: u32 = 4096;

/// Largest number of guesses of a contradiction that is kept after its guesses were undone, and
/// largest number of contradictions kept for each event.
const MAX_REMEMBERED_GUESSES: usize = 12;
const MAX_CONTRADICTIONS_PER_EVENT: usize = 32;

/// Largest number of transactions that an event may prefer to wait for.
const MAX_PREFERENCES: usize = 8;

const NONE: u32 = u32::MAX;

/// Result of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scheduled {
    /// All events, in an order that satisfies the level.
    Complete(Vec<u32>),
    /// There were too many conflicts. The last wrong guess was the order in which `first` and
    /// `second` wrote `key`.
    Stuck { key: KeyId, first: u32, second: u32 },
    /// No order exists. The pairs are writers of a key whose order was guessed and then refuted.
    Refuted(Vec<(KeyId, [u32; 2])>),
}

/// Limits at which a schedule gives up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Largest number of successive conflicts without progress.
    pub(crate) conflicts: usize,
    /// Largest total number of conflicts: a constant, and a number per scheduled event.
    pub(crate) base: usize,
    pub(crate) per_event: usize,
}

/// Schedules the events of a saturated graph.
pub(crate) fn schedule(
    saturation: &Saturation<'_, '_>,
    patience: Patience,
    budget: &Budget,
) -> Result<Scheduled, Stopped> {
    let mut schedule = Schedule::new(saturation);
    let (mut farthest, mut conflicts, mut all) = (0, 0, 0usize);
    loop {
        if schedule.advance(budget)? {
            return Ok(Scheduled::Complete(schedule.done));
        }
        budget.check()?;
        let mut guesses = schedule.conflict();
        if schedule.done.len() > farthest {
            farthest = schedule.done.len();
            conflicts = 0;
        }
        conflicts += 1;
        all += 1;
        let Some(newest) = guesses.iter().map(|guess| schedule.age(guess)).max() else {
            return Ok(Scheduled::Refuted(schedule.wrong_guesses));
        };
        let turned: Vec<Guess> =
            guesses.extract_if(.., |guess| schedule.age(guess) == newest).collect();
        let most = patience.per_event.saturating_mul(farthest).saturating_add(patience.base);
        if conflicts == patience.conflicts || all > most {
            let Guess { key, first, second, .. } = turned[0];
            return Ok(Scheduled::Stuck { key, first, second });
        }
        schedule.turn(&turned, guesses);
    }
}

struct Schedule<'s, 'p, 't> {
    graph: &'s Graph<'p, 't>,
    is_snapshot_isolation: bool,
    outgoing: Adjacency,
    /// Learned constraints, including those that no longer hold.
    lessons: Vec<Lesson>,
    /// Lessons in force, by the events that they wait for and by the event that waits.
    lessons_from: FxHashMap<u32, Vec<u32>>,
    lessons_to: FxHashMap<u32, Vec<u32>>,
    /// Lessons that end when an event is undone.
    lessons_under: FxHashMap<u32, Vec<u32>>,
    /// Sets of guesses that cannot all be right, and their indices by the event of each guess.
    contradictions: Vec<Box<[Guess]>>,
    contradictions_at: FxHashMap<u32, Vec<u32>>,
    /// Events that each event prefers to wait for, from lessons that ended.
    preferences: FxHashMap<u32, Vec<u32>>,
    /// Guesses that are wrong whatever the other guesses are.
    wrong_guesses: Vec<(KeyId, [u32; 2])>,
    /// Number of events of each chain that are done.
    chain_done: Vec<u32>,
    /// Edges that enter each event; built on first use.
    incoming: Option<Adjacency>,
    /// Transactions that read each version.
    readers: Adjacency,
    follower: Vec<u32>,
    /// Number of missing predecessors of each event.
    waits: Vec<u32>,
    is_done: Vec<bool>,
    /// Index in `done` of each event that is done; meaningless for others.
    done_at: Vec<u32>,
    done: Vec<u32>,
    /// Candidates, by position in their session.
    ready: BinaryHeap<Reverse<(u64, u32)>>,
    /// Snapshots whose commit cannot follow at once, and events that prefer to wait.
    reluctant: Vec<u32>,
    /// Whether each transaction's snapshot may be done although its commit cannot follow at once.
    taken_early: Vec<bool>,
    /// Position of each transaction in its session, for comparison between sessions.
    rank: Vec<u64>,
    /// Slot of each read's version. The writes have slots in the order of the nodes, followed by
    /// one slot for the initial version of each key.
    read_slot: Vec<u32>,
    /// Number of transactions that still have to read each version.
    unread: Vec<u32>,
    /// Slot of the current version of each key.
    current: Vec<u32>,
    /// Open transaction that writes each key, at `si`.
    open: Vec<u32>,
    /// Events that wait until each version has been read, or until no open transaction writes a
    /// key.
    waiting_version: Vec<Vec<u32>>,
    waiting_key: Vec<Vec<u32>>,
    /// Versions that commits replaced, newest last.
    replaced: Vec<u32>,
}

impl<'s, 'p, 't> Schedule<'s, 'p, 't> {
    fn new(saturation: &'s Saturation<'p, 't>) -> Self {
        let graph = &saturation.graph;
        let problem = graph.problem;
        let tx = problem.tx;
        let events = graph.events();
        let mut waits = vec![0u32; events];
        for link in &graph.links {
            waits[link.to as usize] += 1;
        }
        let mut follower = vec![NONE; events];
        for event in 0..events as u32 {
            if let Some(before) = graph.predecessor(event) {
                follower[before as usize] = event;
                waits[event as usize] += 1;
            }
        }
        let (writes, keys) = (tx.writes().len(), tx.history().key_count());
        let slot_of = |source: u32, key: KeyId| match source {
            INITIAL => (writes + key.index()) as u32,
            _ => {
                let places = tx.writes_of(source);
                let found = tx.writes()[places.clone()].iter().position(|w| w.key == key);
                (places.start + found.expect("a source writes the key")) as u32
            }
        };
        let mut unread = vec![0u32; writes + keys];
        let mut read_slot = vec![NONE; tx.reads().len()];
        let mut reading: Vec<(u32, u32)> = Vec::new();
        for node in 0..tx.len() as u32 {
            for read in tx.reads_of(node) {
                let source = problem.sources[read];
                if source == OPEN {
                    continue;
                }
                let slot = slot_of(source, problem.key_of(read as u32));
                // A transaction that reads a version twice counts as one reader.
                if !read_slot[tx.reads_of(node).start..read].contains(&slot) {
                    unread[slot as usize] += 1;
                    read_slot[read] = slot;
                    reading.push((slot, node));
                }
            }
        }
        let rank = (0..tx.len() as u32)
            .map(|node| match tx.time(node) {
                Some((start, _)) => (start as u64) ^ (1 << 63),
                None => {
                    let length = problem.members(problem.chain_of[node as usize]).len() as u64;
                    ((u64::from(problem.place_of[node as usize]) << 31) / length.max(1)) << 1
                }
            })
            .collect();
        let mut schedule = Schedule {
            graph,
            is_snapshot_isolation: saturation.level == Level::Snapshot,
            outgoing: Adjacency::new(events, &graph.links, |link: &Link| (link.from, link.to)),
            lessons: Vec::new(),
            lessons_from: FxHashMap::default(),
            lessons_to: FxHashMap::default(),
            lessons_under: FxHashMap::default(),
            contradictions: Vec::new(),
            contradictions_at: FxHashMap::default(),
            preferences: FxHashMap::default(),
            wrong_guesses: Vec::new(),
            chain_done: vec![0; graph.width],
            incoming: None,
            readers: Adjacency::of_pairs(writes + keys, &reading),
            follower,
            waits,
            is_done: vec![false; events],
            done_at: vec![0; events],
            done: Vec::with_capacity(events),
            ready: BinaryHeap::new(),
            reluctant: Vec::new(),
            taken_early: vec![false; tx.len()],
            rank,
            read_slot,
            unread,
            current: (writes as u32..(writes + keys) as u32).collect(),
            open: vec![NONE; keys],
            waiting_version: vec![Vec::new(); writes + keys],
            waiting_key: vec![Vec::new(); keys],
            replaced: Vec::new(),
        };
        for event in 0..events as u32 {
            schedule.offer(event);
        }
        schedule
    }

    /// Makes an event a candidate if all its predecessors are done.
    fn offer(&mut self, event: u32) {
        if self.waits[event as usize] == 0 && !self.is_done[event as usize] {
            // Moments of real time and commits go first, then snapshots by position in their
            // session.
            let rank = match self.graph.node(event) {
                None => 0,
                Some(node) if event > self.graph.snapshot(node) => 0,
                Some(node) => self.rank[node as usize] + 1,
            };
            self.ready.push(Reverse((rank, event)));
        }
    }

    /// Commits events until all are done, or no event can be. Returns whether all are done.
    fn advance(&mut self, budget: &Budget) -> Result<bool, Stopped> {
        let mut steps = 0u32;
        loop {
            let event = match self.ready.pop() {
                Some(Reverse((_, event))) => event,
                None => match self.least_reluctant() {
                    Some(event) => event,
                    None => return Ok(self.done.len() == self.graph.events()),
                },
            };
            if self.waits[event as usize] != 0 || self.is_done[event as usize] {
                continue;
            }
            steps += 1;
            if steps.is_multiple_of(EVENTS_PER_CHECK) {
                budget.check()?;
            }
            if self.is_allowed(event) {
                self.commit(event);
            }
        }
    }

    /// Chooses a postponed event: a snapshot whose commit can follow at once, else one for whose
    /// read another event waits, else the one at the earliest position of its session.
    fn least_reluctant(&mut self) -> Option<u32> {
        let mut kept = std::mem::take(&mut self.reluctant);
        kept.retain(|&event| self.waits[event as usize] == 0 && !self.is_done[event as usize]);
        kept.sort_unstable();
        kept.dedup();
        let graph = self.graph;
        let cost = |&event: &u32| {
            let node = event >> graph.shape.shift();
            let reads = graph.problem.tx.reads_of(node);
            let is_awaited =
                |&slot: &u32| slot != NONE && !self.waiting_version[slot as usize].is_empty();
            let class = if self.can_commit_at_once(node) {
                0
            } else if self.would_lock_out(node) {
                3
            } else if self.read_slot[reads].iter().any(is_awaited) {
                1
            } else {
                2
            };
            (class, self.rank[node as usize])
        };
        let best = kept.iter().copied().min_by_key(cost);
        if let Some(best) = best {
            kept.retain(|&event| event != best);
            let node = best >> graph.shape.shift();
            self.taken_early[node as usize] = true;
        }
        self.reluctant = kept;
        best
    }

    /// Checks whether an open transaction would, at `si`, prevent another transaction's snapshot
    /// for which its own commit has to wait.
    fn would_lock_out(&self, node: u32) -> bool {
        let problem = self.graph.problem;
        self.is_snapshot_isolation
            && problem.writes(node).any(|key| {
                let readers = self.readers.at(self.current[key.index()]).iter();
                let mut waiting = readers.filter(|&&reader| {
                    reader != node && !self.is_done[self.graph.snapshot(reader) as usize]
                });
                waiting.any(|&reader| {
                    problem.writes(reader).any(|written| problem.does_write(node, written))
                })
            })
    }

    /// Checks whether a transaction's commit could directly follow its snapshot.
    fn can_commit_at_once(&self, node: u32) -> bool {
        let graph = self.graph;
        let problem = graph.problem;
        let own = &self.read_slot[problem.tx.reads_of(node)];
        self.waits[graph.commit(node) as usize] == 1
            && problem.writes(node).all(|key| {
                let slot = self.current[key.index()];
                self.unread[slot as usize] == u32::from(own.contains(&slot))
            })
    }

    /// Checks whether an event can be next; if not, registers the event to wait for the obstacle.
    fn is_allowed(&mut self, event: u32) -> bool {
        let graph = self.graph;
        let Some(node) = graph.node(event) else { return true };
        let problem = graph.problem;
        if self.must_wait(event) {
            return false;
        }
        if !self.taken_early[node as usize]
            && let Some(preferred) = self.preferences.get(&event)
            && preferred.iter().any(|&other| !self.is_done[other as usize])
        {
            self.reluctant.push(event);
            return false;
        }
        let is_apart = graph.shape == Shape::Split && event == graph.snapshot(node);
        if is_apart && !self.taken_early[node as usize] && !self.can_commit_at_once(node) {
            self.reluctant.push(event);
            return false;
        }
        if event == graph.snapshot(node) && self.is_snapshot_isolation {
            let blocked = problem.writes(node).find(|key| self.open[key.index()] != NONE);
            if let Some(key) = blocked {
                self.waiting_key[key.index()].push(event);
                return false;
            }
        }
        if event == graph.commit(node) {
            let blocked = problem.writes(node).find(|&key| self.readers_left(node, key) > 0);
            if let Some(key) = blocked {
                self.waiting_version[self.current[key.index()] as usize].push(event);
                return false;
            }
        }
        true
    }

    /// Counts the other transactions that still have to read the current version of a key.
    fn readers_left(&self, node: u32, key: KeyId) -> u32 {
        let slot = self.current[key.index()];
        let own = self.graph.shape == Shape::Whole
            && self.read_slot[self.graph.problem.tx.reads_of(node)].contains(&slot);
        self.unread[slot as usize] - u32::from(own)
    }

    fn commit(&mut self, event: u32) {
        self.is_done[event as usize] = true;
        self.done_at[event as usize] = self.done.len() as u32;
        self.done.push(event);
        self.chain_done[self.graph.spot(event).0 as usize] += 1;
        let graph = self.graph;
        let problem = graph.problem;
        if let Some(node) = graph.node(event) {
            if event == graph.snapshot(node) {
                for read in problem.tx.reads_of(node) {
                    let slot = self.read_slot[read];
                    if slot != NONE {
                        self.unread[slot as usize] -= 1;
                        if self.unread[slot as usize] <= 1 {
                            self.wake(slot);
                        }
                    }
                }
                if self.is_snapshot_isolation {
                    for key in problem.writes(node) {
                        self.open[key.index()] = node;
                    }
                }
            }
            if event == graph.commit(node) && problem.counts[node as usize] {
                for (slot, write) in
                    problem.tx.writes_of(node).zip(&problem.tx.writes()[problem.tx.writes_of(node)])
                {
                    let key = write.key.index();
                    self.replaced.push(std::mem::replace(&mut self.current[key], slot as u32));
                    if self.is_snapshot_isolation {
                        self.open[key] = NONE;
                        for event in std::mem::take(&mut self.waiting_key[key]) {
                            self.offer(event);
                        }
                    }
                }
            }
        }
        let next = self.follower[event as usize];
        for i in 0..self.outgoing.at(event).len() {
            self.release(self.outgoing.at(event)[i]);
        }
        if next != NONE {
            self.release(next);
        }
        for lesson in self.lessons_from.get(&event).cloned().unwrap_or_default() {
            let lesson = &mut self.lessons[lesson as usize];
            lesson.done += 1;
            if lesson.done == 1 {
                let to = lesson.to;
                self.release(to);
            }
        }
    }

    fn release(&mut self, event: u32) {
        self.waits[event as usize] -= 1;
        self.offer(event);
    }

    /// Makes the events that wait for a version candidates again.
    fn wake(&mut self, slot: u32) {
        for event in std::mem::take(&mut self.waiting_version[slot as usize]) {
            self.offer(event);
        }
    }

    /// Undoes the newest event.
    fn take_back(&mut self) -> Option<u32> {
        let event = self.done.pop()?;
        self.is_done[event as usize] = false;
        let graph = self.graph;
        self.chain_done[graph.spot(event).0 as usize] -= 1;
        let problem = graph.problem;
        for i in 0..self.outgoing.at(event).len() {
            self.waits[self.outgoing.at(event)[i] as usize] += 1;
        }
        let next = self.follower[event as usize];
        if next != NONE {
            self.waits[next as usize] += 1;
        }
        for &lesson in self.lessons_from.get(&event).into_iter().flatten() {
            let lesson = &mut self.lessons[lesson as usize];
            lesson.done -= 1;
            if lesson.done == 0 {
                self.waits[lesson.to as usize] += 1;
            }
        }
        for lesson in self.lessons_under.remove(&event).unwrap_or_default() {
            self.forget(lesson);
        }
        if let Some(node) = graph.node(event) {
            if event == graph.commit(node) && problem.counts[node as usize] {
                for write in problem.tx.writes()[problem.tx.writes_of(node)].iter().rev() {
                    let key = write.key.index();
                    let before = self.replaced.pop().expect("each commit notes what it replaces");
                    let slot = std::mem::replace(&mut self.current[key], before);
                    if self.is_snapshot_isolation {
                        self.open[key] = node;
                    }
                    self.wake(slot);
                }
            }
            if event == graph.snapshot(node) {
                self.taken_early[node as usize] = false;
                if self.is_snapshot_isolation {
                    for key in problem.writes(node) {
                        self.open[key.index()] = NONE;
                        for event in std::mem::take(&mut self.waiting_key[key.index()]) {
                            self.offer(event);
                        }
                    }
                }
                for read in problem.tx.reads_of(node) {
                    let slot = self.read_slot[read];
                    if slot != NONE {
                        self.unread[slot as usize] += 1;
                    }
                }
            }
        }
        Some(event)
    }

    /// Returns guesses that cannot all be right: because of them, events wait for each other in a
    /// circle.
    fn conflict(&mut self) -> Vec<Guess> {
        if self.incoming.is_none() {
            let links = &self.graph.links;
            let events = self.graph.events();
            self.incoming = Some(Adjacency::new(events, links, |link: &Link| (link.to, link.from)));
        }
        // Follow the waits until an event repeats; this event waits for itself.
        let mut event = self.some_missing();
        let mut seen = FxHashSet::default();
        while seen.insert(event) {
            event = self.blocked(event).awaited();
        }
        // Each of the events reached from here waits for another one of them.
        let mut guesses = Vec::new();
        let mut open = vec![event];
        seen.clear();
        seen.insert(event);
        while let Some(event) = open.pop() {
            let mut reach = |awaited: u32| {
                if seen.insert(awaited) {
                    open.push(awaited);
                }
            };
            match self.blocked(event) {
                Blocked::Forced { awaited } => reach(awaited),
                Blocked::Guess { awaited, guess } => {
                    reach(awaited);
                    guesses.push(guess);
                }
                Blocked::Lesson { lesson } => {
                    lesson.from.iter().for_each(|&awaited| reach(awaited));
                    guesses.extend(&lesson.reasons);
                }
            }
        }
        guesses.sort_unstable_by_key(|guess| (guess.first, guess.second));
        guesses.dedup_by_key(|guess| (guess.first, guess.second));
        guesses
    }

    /// Returns an event that is not done although its predecessors in the chain are.
    fn some_missing(&self) -> u32 {
        let graph = self.graph;
        let first = (0u32..).zip(&self.chain_done).find_map(|(chain, &done)| {
            graph.event_at(chain, done).filter(|&event| !self.is_done[event as usize])
        });
        first.expect("the schedule is stuck before its end")
    }

    /// Returns the event, guess or lesson for which an event waits when the schedule is stuck.
    fn blocked(&self, event: u32) -> Blocked<'_> {
        let graph = self.graph;
        let problem = graph.problem;
        let is_missing = |&event: &u32| !self.is_done[event as usize];
        if self.waits[event as usize] > 0 {
            let before = graph.predecessor(event);
            let incoming = self.incoming.as_ref().expect("it was built before");
            let mut all = incoming.at(event).iter().chain(&before).copied();
            if let Some(awaited) = all.find(is_missing) {
                return Blocked::Forced { awaited };
            }
            let lessons = self.lessons_to.get(&event).into_iter().flatten();
            let mut lessons = lessons.map(|&lesson| &self.lessons[lesson as usize]);
            let lesson = lessons.find(|lesson| lesson.done == 0);
            return Blocked::Lesson { lesson: lesson.expect("something is missing") };
        }
        let node = graph.node(event).expect("a moment of real time waits only for what ends");
        if event == graph.commit(node) {
            let key = problem.writes(node).find(|&key| self.readers_left(node, key) > 0);
            if let Some(key) = key {
                let slot = self.current[key.index()];
                let readers = self.readers.at(slot).iter().map(|&reader| graph.snapshot(reader));
                let awaited = readers.filter(is_missing).find(|&awaited| awaited != event);
                let awaited = awaited.expect("readers are left");
                if slot as usize >= problem.tx.writes().len() {
                    return Blocked::Forced { awaited };
                }
                let first = problem.writer_of(slot as usize);
                return self.guess(awaited, key, first, node);
            }
        }
        let key = problem.writes(node).find(|key| self.open[key.index()] != NONE);
        let key = key.expect("nothing else can be in the way of an event");
        let first = self.open[key.index()];
        self.guess(graph.commit(first), key, first, node)
    }

    /// Returns a wait for `awaited` because transaction `first` was scheduled before `second`; it
    /// is a guess unless this order is forced.
    fn guess(&self, awaited: u32, key: KeyId, first: u32, second: u32) -> Blocked<'_> {
        let graph = self.graph;
        let (later, target) = match self.is_snapshot_isolation {
            true => (graph.snapshot(first), graph.snapshot(second)),
            false => (graph.commit(first), graph.commit(second)),
        };
        let chain = graph.problem.chain_of[first as usize] as usize;
        if graph.past_of(target)[chain] > graph.commit_place(first) {
            return Blocked::Forced { awaited };
        }
        Blocked::Guess { awaited, guess: Guess { key, first, second, later } }
    }

    /// Returns the index at which a guess was made.
    fn age(&self, guess: &Guess) -> u32 {
        self.done_at[guess.later as usize]
    }

    /// Undoes the event of some guesses, and makes it wait for one of the transactions that it was
    /// scheduled before, as long as the reasons hold.
    fn turn(&mut self, guesses: &[Guess], reasons: Vec<Guess>) {
        let to = guesses[0].later;
        let mut again = Vec::new();
        while self.is_done[to as usize] {
            let Some(event) = self.take_back() else { break };
            again.push(event);
        }
        self.remember(guesses, &reasons);
        if let ([guess], []) = (guesses, &reasons[..]) {
            self.wrong_guesses.push((guess.key, [guess.first, guess.second]));
        }
        self.learn(guesses, reasons);
        again.into_iter().for_each(|event| self.offer(event));
    }

    /// Makes the event of some guesses wait for one of the transactions that it would be scheduled
    /// before.
    fn learn(&mut self, guesses: &[Guess], reasons: Vec<Guess>) {
        let to = guesses[0].later;
        let mut from: Vec<u32> =
            guesses.iter().map(|guess| self.graph.commit(guess.second)).collect();
        from.sort_unstable();
        from.dedup();
        let id = self.lessons.len() as u32;
        if let Some(newest) = reasons.iter().max_by_key(|guess| self.age(guess)) {
            self.lessons_under.entry(newest.later).or_default().push(id);
        }
        for &event in &from {
            self.lessons_from.entry(event).or_default().push(id);
        }
        self.lessons_to.entry(to).or_default().push(id);
        self.lessons.push(Lesson { from, to, reasons, done: 0 });
        self.waits[to as usize] += 1;
    }

    /// Stores guesses that cannot all be right.
    fn remember(&mut self, guesses: &[Guess], reasons: &[Guess]) {
        if reasons.is_empty() || guesses.len() + reasons.len() > MAX_REMEMBERED_GUESSES {
            return;
        }
        let all: Box<[Guess]> = guesses.iter().chain(reasons).copied().collect();
        let id = self.contradictions.len() as u32;
        for (i, guess) in all.iter().enumerate() {
            if all[..i].iter().any(|other| other.later == guess.later) {
                continue;
            }
            let list = self.contradictions_at.entry(guess.later).or_default();
            if list.len() == MAX_CONTRADICTIONS_PER_EVENT {
                list.remove(0);
            }
            list.push(id);
        }
        self.contradictions.push(all);
    }

    /// Checks whether an event would complete a known contradiction; if so, adds a lesson that
    /// makes it wait.
    fn must_wait(&mut self, event: u32) -> bool {
        let Some(list) = self.contradictions_at.get(&event) else { return false };
        let done = |event: u32| self.is_done[event as usize];
        let stands = |guess: &Guess| {
            let second = self.graph.commit(guess.second);
            if guess.later == event {
                return !done(second);
            }
            done(guess.later)
                && (!done(second)
                    || self.done_at[second as usize] > self.done_at[guess.later as usize])
        };
        let all = list.iter().map(|&id| &self.contradictions[id as usize]);
        let Some(found) = { all }.find(|guesses| guesses.iter().all(stands)) else { return false };
        let (guesses, reasons): (Vec<Guess>, Vec<Guess>) =
            found.iter().partition(|guess| guess.later == event);
        self.learn(&guesses, reasons);
        true
    }

    /// Ends a lesson whose reasons no longer hold; it remains as a preference.
    fn forget(&mut self, id: u32) {
        let Lesson { from, to, done, .. } = &mut self.lessons[id as usize];
        let (from, to, done) = (std::mem::take(from), *to, *done);
        for event in &from {
            if let Some(list) = self.lessons_from.get_mut(event) {
                list.retain(|&lesson| lesson != id);
            }
        }
        if let Some(list) = self.lessons_to.get_mut(&to) {
            list.retain(|&lesson| lesson != id);
        }
        if done == 0 {
            self.waits[to as usize] -= 1;
            self.offer(to);
        }
        let preferred = self.preferences.entry(to).or_default();
        for event in from {
            if !preferred.contains(&event) && preferred.len() < MAX_PREFERENCES {
                preferred.push(event);
            }
        }
    }
}

/// The guess that transaction `first` comes before transaction `second`, both of which write `key`.
#[derive(Clone, Copy, Debug)]
struct Guess {
    key: KeyId,
    first: u32,
    second: u32,
    /// Event of `first` that would have to come after the commit of `second` if the guess is wrong.
    later: u32,
}

/// A learned constraint: given the guesses `reasons`, event `to` waits for at least one of `from`.
#[derive(Debug)]
struct Lesson {
    from: Vec<u32>,
    to: u32,
    reasons: Vec<Guess>,
    /// Number of events of `from` that are done.
    done: u32,
}

/// Reason why an event cannot be next.
enum Blocked<'l> {
    /// It waits for an event that comes first whatever the guesses are.
    Forced { awaited: u32 },
    /// It waits for an event that comes first because of a guess.
    Guess { awaited: u32, guess: Guess },
    /// It waits for one of the events of a lesson.
    Lesson { lesson: &'l Lesson },
}

impl Blocked<'_> {
    /// Returns an event that is awaited.
    fn awaited(&self) -> u32 {
        match *self {
            Blocked::Forced { awaited } | Blocked::Guess { awaited, .. } => awaited,
            Blocked::Lesson { lesson } => lesson.from[0],
        }
    }
}
