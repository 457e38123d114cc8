//! A commit order along the forced edges, by list scheduling.
//!
//! Events are committed one by one. An event can come next if all that is forced before it has come;
//! a commit, moreover, only if nobody still has to read the versions that it overwrites; and at `si` a
//! snapshot only if no open transaction writes a key that it will write. Then every read finds its
//! source as the current version by itself, so an order that reaches the end is a proof.
//!
//! Of the events that can come next, the one that is the least far in its session goes first. Where
//! two blind writes could go either way, that may be a wrong guess, and the schedule gets stuck: some
//! commit waits for readers of the current version, which wait, in the end, for that commit. Then the
//! guess is turned round: the schedule goes back to before the current version was written, and the
//! waiting commit is put before it. A few such turns are nearly always enough; if not, the pair is
//! where a search has to look at both cases.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use consistory_history::KeyId;
use consistory_verdict::{Budget, Level, Stopped};
use rustc_hash::FxHashMap;

use crate::graph::{Adjacency, Graph, Link, Shape};
use crate::saturate::Saturation;
use crate::view::{INITIAL, OPEN};

/// How many events are committed between two looks at the budget.
const EVENTS_PER_CHECK: u32 = 4096;

const NONE: u32 = u32::MAX;

/// How a schedule ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scheduled {
    /// All events, in an order that satisfies the level.
    Complete(Vec<u32>),
    /// It got stuck too often. Whether the first or the second transaction wrote the earlier version
    /// of the key is where the guess was wrong.
    Stuck { key: KeyId, first: u32, second: u32 },
    /// It got stuck, and no guess is to blame that could be turned round.
    Lost,
}

/// Schedules the events of a saturated graph, turning at most `max_turns` guesses round.
pub(crate) fn schedule(
    saturation: &Saturation<'_, '_>,
    max_turns: usize,
    budget: &Budget,
) -> Result<Scheduled, Stopped> {
    let mut schedule = Schedule::new(saturation);
    let mut turns = 0;
    loop {
        if schedule.advance(budget)? {
            return Ok(Scheduled::Complete(schedule.done));
        }
        let Some(guess) = schedule.find_guess() else {
            return Ok(Scheduled::Lost);
        };
        if turns == max_turns {
            let Guess { key, first, second, .. } = guess;
            return Ok(Scheduled::Stuck { key, first, second });
        }
        schedule.turn(&guess);
        turns += 1;
    }
}

struct Schedule<'s, 'p, 't> {
    graph: &'s Graph<'p, 't>,
    is_snapshot_isolation: bool,
    outgoing: Adjacency,
    /// Edges of guesses that were turned round: for each event those that it waits for or precedes.
    turned: Vec<(u32, u32)>,
    turned_from: FxHashMap<u32, Vec<u32>>,
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
    /// Snapshots whose commit could not follow at once.
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
            turned: Vec::new(),
            turned_from: FxHashMap::default(),
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

    /// Chooses among the snapshots that were put off: one whose commit can follow at once, else one
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
        if let Some(list) = self.turned_from.get(&event).cloned() {
            list.into_iter().for_each(|to| self.release(to));
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
        let problem = graph.problem;
        for i in 0..self.outgoing.at(event).len() {
            self.waits[self.outgoing.at(event)[i] as usize] += 1;
        }
        let next = self.follower[event as usize];
        if next != NONE {
            self.waits[next as usize] += 1;
        }
        if let Some(list) = self.turned_from.get(&event) {
            list.iter().for_each(|&to| self.waits[to as usize] += 1);
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

    /// Finds the newest guess on a circle of events that wait for each other.
    fn find_guess(&mut self) -> Option<Guess> {
        let events = self.graph.events();
        if self.incoming.is_none() {
            let links = &self.graph.links;
            self.incoming = Some(Adjacency::new(events, links, |link: &Link| (link.to, link.from)));
        }
        let mut event = (0..events as u32).find(|&event| !self.is_done[event as usize])?;
        // Follow the waits until an event comes again; from there on they are a circle.
        let mut path: Vec<(u32, Option<Guess>)> = Vec::new();
        let mut seen = FxHashMap::default();
        while !seen.contains_key(&event) {
            seen.insert(event, path.len());
            let (awaited, guess) = self.awaits(event)?;
            path.push((event, guess));
            event = awaited;
        }
        let circle = path.split_off(seen[&event]);
        let guesses = circle.into_iter().filter_map(|(_, guess)| guess);
        guesses
            .filter(|guess| !self.is_turned(guess))
            .max_by_key(|guess| self.done_at[guess.later as usize])
    }

    /// Finds an event that another waits for, and the guess because of which it does.
    fn awaits(&self, event: u32) -> Option<(u32, Option<Guess>)> {
        let graph = self.graph;
        let problem = graph.problem;
        let is_missing = |&event: &u32| !self.is_done[event as usize];
        if self.waits[event as usize] > 0 {
            let incoming = self.incoming.as_ref()?;
            let before = graph.predecessor(event);
            let turned = self.turned.iter().filter(|&&(_, to)| to == event).map(|(from, _)| from);
            let all = incoming.at(event).iter().chain(&before).chain(turned);
            return all.copied().find(is_missing).map(|awaited| (awaited, None));
        }
        let node = graph.node(event)?;
        if event == graph.commit(node) {
            let key = problem.writes(node).find(|&key| self.readers_left(node, key) > 0);
            if let Some(key) = key {
                let slot = self.current[key.index()];
                let readers = self.readers.at(slot).iter().map(|&reader| graph.snapshot(reader));
                let awaited = readers.filter(is_missing).find(|&awaited| awaited != event)?;
                if slot as usize >= problem.tx.writes().len() {
                    return Some((awaited, None));
                }
                let first = problem.writer_of(slot as usize);
                let later = match self.is_snapshot_isolation {
                    true => graph.snapshot(first),
                    false => graph.commit(first),
                };
                return Some((awaited, Some(Guess { key, first, second: node, later })));
            }
        }
        let key = problem.writes(node).find(|key| self.open[key.index()] != NONE)?;
        let first = self.open[key.index()];
        let later = graph.snapshot(first);
        Some((graph.commit(first), Some(Guess { key, first, second: node, later })))
    }

    fn is_turned(&self, guess: &Guess) -> bool {
        let before = self.graph.commit(guess.second);
        self.turned_from.get(&before).is_some_and(|list| list.contains(&guess.later))
    }

    /// Goes back to before the first transaction of a guess and puts the second before it.
    fn turn(&mut self, guess: &Guess) {
        let (before, after) = (self.graph.commit(guess.second), guess.later);
        let mut again = Vec::new();
        while self.is_done[after as usize] {
            let Some(event) = self.take_back() else { break };
            again.push(event);
        }
        self.turned.push((before, after));
        self.turned_from.entry(before).or_default().push(after);
        self.waits[after as usize] += 1;
        again.into_iter().for_each(|event| self.offer(event));
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
