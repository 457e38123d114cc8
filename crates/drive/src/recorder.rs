//! Records requests and their outcomes without slowing down the sessions.
//!
//! A session announces a request before it sends the first byte, and hands over the outcome after
//! it has read the last byte. A thread of the recorder collects outcomes many times per second.
//!
//! An outcome is released only when every request that was sent before its end has ended, so a
//! released request never reads from an unreleased one. Every prefix of the journal is therefore a
//! complete history. It can be judged, and remains if the tool crashes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::clock::Clock;
use crate::cluster::NodeId;
use crate::request::{Outcome, Request};

/// A request with its outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The session, counted from 0.
    pub session: u32,
    /// Number of earlier sessions of the same client, if sessions end with their connections.
    pub generation: u32,
    /// The node of the session.
    pub node: NodeId,
    /// The node that the request was sent to.
    pub server: NodeId,
    /// The request.
    pub request: Request,
    /// The outcome.
    pub outcome: Outcome,
    /// Time before the first byte was sent.
    pub start: u64,
    /// Time after the last byte was read, or when the client gave up.
    pub end: u64,
}

/// Marks a session without a request in flight.
const IDLE: u64 = u64::MAX;

/// Marks a request that is about to be sent, at a time that is not known yet.
const STARTING: u64 = 0;

/// Collects the rows of all sessions.
#[derive(Debug)]
pub struct Recorder {
    clock: Clock,
    lanes: Vec<Lane>,
}

#[derive(Debug)]
struct Lane {
    in_flight: AtomicU64,
    ended: Mutex<Vec<Row>>,
}

impl Recorder {
    /// Builds a recorder for a number of sessions.
    pub fn new(clock: Clock, sessions: usize) -> Self {
        let lane = || Lane { in_flight: AtomicU64::new(IDLE), ended: Mutex::new(Vec::new()) };
        Recorder { clock, lanes: (0..sessions).map(|_| lane()).collect() }
    }

    /// Announces a session's next request and returns its start.
    pub fn begin(&self, session: u32) -> u64 {
        let lane = &self.lanes[session as usize];
        // From now on the collector reads `STARTING`; any earlier look took place before the start.
        lane.in_flight.store(STARTING, Ordering::SeqCst);
        let start = self.clock.now();
        lane.in_flight.store(start, Ordering::SeqCst);
        start
    }

    /// Records the outcome of the announced request; `None` if the request was never sent.
    pub fn end(&self, session: u32, row: Option<Row>) {
        let lane = &self.lanes[session as usize];
        if let Some(row) = row {
            lane.ended.lock().unwrap_or_else(PoisonError::into_inner).push(row);
        }
        lane.in_flight.store(IDLE, Ordering::SeqCst);
    }

    /// Returns a time such that every request sent before it has ended.
    fn horizon(&self) -> u64 {
        let now = self.clock.now();
        let oldest = self.lanes.iter().map(|lane| lane.in_flight.load(Ordering::SeqCst)).min();
        oldest.unwrap_or(IDLE).min(now)
    }

    /// Moves ended rows to `held`, and releases those that no unreleased row can affect, in the
    /// order of their ends.
    pub fn release(&self, held: &mut Vec<Row>) -> Vec<Row> {
        let horizon = self.horizon();
        for lane in &self.lanes {
            held.append(&mut lane.ended.lock().unwrap_or_else(PoisonError::into_inner));
        }
        // An unreleased row keeps all rows that end after its start unreleased.
        held.sort_by_key(|row| std::cmp::Reverse(row.end));
        let mut horizon = horizon;
        for row in held.iter() {
            if row.end < horizon {
                break;
            }
            horizon = horizon.min(row.start);
        }
        let (mut released, kept): (Vec<Row>, Vec<Row>) =
            std::mem::take(held).into_iter().partition(|row| row.end < horizon);
        *held = kept;
        released.sort_by_key(|row| row.end);
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Action, Key, Reply};

    fn row(session: u32, request: Request, start: u64, end: u64) -> Row {
        let outcome = Outcome::Ok(vec![Reply::Done]);
        Row {
            session,
            generation: 0,
            node: NodeId(0),
            server: NodeId(0),
            request,
            outcome,
            start,
            end,
        }
    }

    #[test]
    fn a_row_waits_for_requests_that_were_sent_before_it_ended() {
        let clock = Clock::start();
        let recorder = Recorder::new(clock, 2);
        let slow = recorder.begin(0);
        let start = recorder.begin(1);
        let read = row(1, Request::Single(Action::Read(Key(0))), start, clock.now());
        recorder.end(1, Some(read.clone()));
        let mut held = Vec::new();
        assert_eq!(recorder.release(&mut held), [], "the write in flight may be what was read");
        let write = row(0, Request::Single(Action::Write(Key(0), 1)), slow, clock.now());
        recorder.end(0, Some(write.clone()));
        assert_eq!(recorder.release(&mut held), [read, write]);
        assert_eq!(held, []);
    }

    #[test]
    fn a_row_waits_for_rows_that_are_held_back() {
        let clock = Clock::start();
        let recorder = Recorder::new(clock, 3);
        let write = recorder.begin(0);
        let read = recorder.begin(1);
        let read = row(1, Request::Single(Action::Read(Key(0))), read, clock.now());
        recorder.end(1, Some(read.clone()));
        let other = recorder.begin(2);
        let write = row(0, Request::Single(Action::Write(Key(0), 1)), write, clock.now());
        recorder.end(0, Some(write.clone()));
        let mut held = Vec::new();
        // The write ended after the other request was sent, so it is held, and so is the read of
        // its value.
        assert_eq!(recorder.release(&mut held), []);
        let other = row(2, Request::Single(Action::Read(Key(1))), other, clock.now());
        recorder.end(2, Some(other.clone()));
        assert_eq!(recorder.release(&mut held), [read, write, other]);
    }

    #[test]
    fn prefixes_are_closed_under_reading() {
        // Sessions write increasing numbers into one cell and read it. A released prefix must
        // contain the write of every value that it reads.
        use std::sync::atomic::{AtomicBool, AtomicI64};
        let clock = Clock::start();
        let recorder = Recorder::new(clock, 3);
        let (cell, next, done) = (AtomicI64::new(0), AtomicI64::new(1), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let clients = [0, 1, 2].map(|session| {
                let (recorder, cell, next) = (&recorder, &cell, &next);
                scope.spawn(move || {
                    for round in 0..2_000 {
                        let start = recorder.begin(session);
                        let (request, outcome) = if round % 2 == 0 {
                            let value = next.fetch_add(1, Ordering::SeqCst);
                            cell.store(value, Ordering::SeqCst);
                            (Action::Write(Key(0), value), Reply::Done)
                        } else {
                            (Action::Read(Key(0)), Reply::Value(Some(cell.load(Ordering::SeqCst))))
                        };
                        let mut row = row(session, Request::Single(request), start, clock.now());
                        row.outcome = Outcome::Ok(vec![outcome]);
                        recorder.end(session, Some(row));
                    }
                })
            });
            let (recorder, done) = (&recorder, &done);
            let checker = scope.spawn(move || {
                let (mut held, mut written) = (Vec::new(), std::collections::BTreeSet::new());
                let mut released = 0;
                loop {
                    let last = done.load(Ordering::SeqCst);
                    let rows = recorder.release(&mut held);
                    for row in &rows {
                        if let Request::Single(Action::Write(_, value)) = row.request {
                            written.insert(value);
                        }
                    }
                    for row in &rows {
                        if let Outcome::Ok(replies) = &row.outcome
                            && let [Reply::Value(Some(value))] = replies[..]
                        {
                            assert!(value == 0 || written.contains(&value), "{value} unwritten");
                        }
                    }
                    released += rows.len();
                    if last {
                        return released;
                    }
                }
            });
            for client in clients {
                client.join().expect("clients do not panic");
            }
            done.store(true, Ordering::SeqCst);
            assert_eq!(checker.join().expect("prefixes are closed"), 6_000);
        });
    }
}
