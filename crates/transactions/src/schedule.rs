//! A commit order along the forced edges, by list scheduling with conflict analysis.
//!
//! Events are committed one by one. An event can come next if all that is forced before it has come;
//! a commit, moreover, only if nobody still has to read the versions that it overwrites; and at `si` a
//! snapshot only if no open transaction writes a key that it will write. Then every read finds its
//! source as the current version by itself, so an order that reaches the end is a proof.
//!
//! Of the events that can come next, the one that is the least far in its session goes first. Where
//! two blind writes could go either way, that is a guess, and if it is wrong, the schedule gets stuck:
//! events wait for each other in a circle, some of them only because of guesses. As in conflict-driven
//! SAT solvers the guesses on the circle are what is learned: not all of them can be right. The newest
//! one is taken back, and its event now has to wait for one of the transactions that it was put
//! before, as long as the older guesses stand. If no guess is to blame, the level is violated.
//!
//! ```text
//!   guesses  w1(x) before w2(x),  w3(y) before w4(y)
//!   circle   w2 waits for a reader of w1's x, which reads from w4,
//!            w4 waits for a reader of w3's y, which reads from w2
//!   learned  while w1 is before w2, w3 has to wait for w4
//! ```
//!
//! When the older guesses are taken back, the event need not wait any longer; but the contradiction
//! is remembered, and checked before an event would complete it again. Without a bound on the
//! conflicts the search is complete.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use consistory_history::KeyId;
use consistory_verdict::{Budget, Level, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::{Adjacency, Graph, Link, Shape};
use crate::saturate::Saturation;
use crate::view::{INITIAL, OPEN};

/// How many events are committed between two looks at the budget.
const EVENTS_PER_CHECK: u32 = 4096;

/// How many guesses a contradiction may have that is kept after its guesses are taken back, and how
/// many are kept for each event.
const MAX_REMEMBERED_GUESSES: usize = 12;
const MAX_CONTRADICTIONS_PER_EVENT: usize = 32;

/// How many transactions an event may prefer to wait for.
const MAX_PREFERENCES: usize = 8;

const NONE: u32 = u32::MAX;

/// How a schedule ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scheduled {
    /// All events, in an order that satisfies the level.
    Complete(Vec<u32>),
    /// There were too many conflicts. Whether the first or the second transaction wrote the earlier
    /// version of the key is where the last guess was wrong.
    Stuck { key: KeyId, first: u32, second: u32 },
    /// No order exists. The pairs of writers are those whose order was guessed wrong.
    Refuted(Vec<(KeyId, [u32; 2])>),
}

/// When a schedule gives up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// The most conflicts without getting further than before.
    pub(crate) conflicts: usize,
    /// The most conflicts in all for each event that was reached, after as many as above.
    pub(crate) conflicts_per_event: usize,
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
        let most = patience.conflicts_per_event.saturating_mul(farthest);
        if conflicts == patience.conflicts || all - patience.conflicts.min(all) > most {
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
    /// What was learned, the parts that were taken back included.
    lessons: Vec<Lesson>,
    /// The lessons in force by the events that they wait for, and by the event that waits.
    lessons_from: FxHashMap<u32, Vec<u32>>,
    lessons_to: FxHashMap<u32, Vec<u32>>,
    /// The lessons that end when an event is taken back.
    lessons_under: FxHashMap<u32, Vec<u32>>,
    /// Guesses that cannot all be right, and where they are found by the event of each.
    contradictions: Vec<Box<[Guess]>>,
    contradictions_at: FxHashMap<u32, Vec<u32>>,
    /// The events that each event should rather wait for, from lessons that ended.
    preferences: FxHashMap<u32, Vec<u32>>,
    /// Guesses that were turned round whatever the other guesses.
    wrong_guesses: Vec<(KeyId, [u32; 2])>,
    /// How many events of each chain are done.
    chain_done: Vec<u32>,
    /// The edges that enter each event, once they are needed.
    incoming: Option<Adjacency>,
    /// The transactions that read each version.
    readers: Adjacency,
    follower: Vec<u32>,
    /// How many forced predecessors of each event are missing.
    waits: Vec<u32>,
    is_done: Vec<bool>,
    /// When each event was taken; only of use while it is done.
    done_at: Vec<u32>,
    done: Vec<u32>,
    /// Candidates, the least far in its session first.
    ready: BinaryHeap<Reverse<(u64, u32)>>,
    /// Snapshots whose commit could not follow at once, and events that prefer to wait.
    reluctant: Vec<u32>,
    /// Whether each transaction's snapshot may be taken although its commit cannot follow at once.
    taken_early: Vec<bool>,
    /// How far each transaction is in its session.
    rank: Vec<u64>,
    /// The version of each read and write, by slot: writes in the order of the nodes, then one
    /// initial version per key.
    read_slot: Vec<u32>,
    /// Transactions that still have to read each version.
    unread: Vec<u32>,
    /// The slot of the current version of each key.
    current: Vec<u32>,
    /// At `si`, the open transaction that writes each key.
    open: Vec<u32>,
    /// Events that wait for each version to be read, or each key to be closed.
    waiting_version: Vec<Vec<u32>>,
    waiting_key: Vec<Vec<u32>>,
    /// The versions that commits replaced, newest last.
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
                // A transaction that reads a version twice is one reader of it.
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

    /// Makes an event a candidate if all that is forced before it is done.
    fn offer(&mut self, event: u32) {
        if self.waits[event as usize] == 0 && !self.is_done[event as usize] {
            // Commits go first, then snapshots by how far they are; moments of real time at once.
            let rank = match self.graph.node(event) {
                None => 0,
                Some(_) if event % self.graph.shape.events() == 1 => 0,
                Some(node) => self.rank[node as usize] + 1,
            };
            self.ready.push(Reverse((rank, event)));
        }
    }

    /// Commits events until all are done, or none can be.
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

    /// Chooses among the events that were put off: a snapshot whose commit can follow at once, else one
    /// that somebody waits for, else the least far in its session.
    fn least_reluctant(&mut self) -> Option<u32> {
        let mut kept = std::mem::take(&mut self.reluctant);
        kept.retain(|&event| self.waits[event as usize] == 0 && !self.is_done[event as usize]);
        kept.sort_unstable();
        kept.dedup();
        let graph = self.graph;
        let cost = |&event: &u32| {
            let node = event / graph.shape.events();
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
            let node = best / graph.shape.events();
            self.taken_early[node as usize] = true;
        }
        self.reluctant = kept;
        best
    }

    /// Checks whether an open transaction would keep others, at `si`, from taking the snapshot that its
    /// own commit has to wait for.
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

    /// Checks whether an event can come next; otherwise it waits for what is in its way.
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

    /// Takes the newest event back.
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

    /// Finds guesses that cannot all be right: events that wait for each other because of them.
    fn conflict(&mut self) -> Vec<Guess> {
        if self.incoming.is_none() {
            let links = &self.graph.links;
            let events = self.graph.events();
            self.incoming = Some(Adjacency::new(events, links, |link: &Link| (link.to, link.from)));
        }
        // Follow the waits until an event comes again; it waits for itself.
        let mut event = self.some_missing();
        let mut seen = FxHashSet::default();
        while seen.insert(event) {
            event = self.blocked(event).awaited();
        }
        // None of the events that it waits for, directly or not, can come before all the others.
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

    /// Returns an event that is not done although all before it in its chain is.
    fn some_missing(&self) -> u32 {
        let graph = self.graph;
        let first = (0u32..).zip(&self.chain_done).find_map(|(chain, &done)| {
            graph.event_at(chain, done).filter(|&event| !self.is_done[event as usize])
        });
        first.expect("the schedule is stuck before its end")
    }

    /// Says what an event that is not done is waiting for when nothing can go on.
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

    /// Says that an event is awaited because one transaction was put before another, unless that is
    /// forced.
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

    /// Returns when a guess was made.
    fn age(&self, guess: &Guess) -> u32 {
        self.done_at[guess.later as usize]
    }

    /// Takes back the event of some guesses and lets it wait for one of the transactions that it was
    /// put before, as long as the reasons stand.
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

    /// Lets the event of some guesses wait for one of the transactions that it would be put before.
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

    /// Keeps guesses that cannot all be right.
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

    /// Checks whether an event would complete a contradiction that is known; if so, it has to wait.
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

    /// Ends a lesson whose reasons no longer stand; it remains as a preference.
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

/// Two transactions that write a key, of which the first was taken before the second.
#[derive(Clone, Copy, Debug)]
struct Guess {
    key: KeyId,
    first: u32,
    second: u32,
    /// The event of the first that would have to come after the commit of the second.
    later: u32,
}

/// An event has to wait for one of some others, because of guesses.
#[derive(Debug)]
struct Lesson {
    from: Vec<u32>,
    to: u32,
    reasons: Vec<Guess>,
    /// How many of the others are done.
    done: u32,
}

/// What an event is waiting for.
enum Blocked<'l> {
    /// An event that comes first whatever the guesses.
    Forced { awaited: u32 },
    /// An event that comes first because of a guess.
    Guess { awaited: u32, guess: Guess },
    /// One of the events of a lesson.
    Lesson { lesson: &'l Lesson },
}

impl Blocked<'_> {
    /// Returns an event that is waited for.
    fn awaited(&self) -> u32 {
        match *self {
            Blocked::Forced { awaited } | Blocked::Guess { awaited, .. } => awaited,
            Blocked::Lesson { lesson } => lesson.from[0],
        }
    }
}
