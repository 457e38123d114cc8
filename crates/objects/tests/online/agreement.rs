//! Random streams are judged like their complete records; the cases are a table.

use consistory_generate::{ObjectWorkload, SharedObject, generate_calls};
use consistory_history::{History, OpId};
use consistory_objects::{OnlineError, OnlineOptions};

use super::watching::{check, decide, watch_until, workload};

/// Shape of random streams, and the expected results.
struct Row {
    name: &'static str,
    objects: &'static [SharedObject],
    seeds: u64,
    /// Number of sessions and of operations, for a given seed.
    size: fn(u64) -> (u32, u32),
    read_shares: &'static [f64],
    pending_shares: &'static [f64],
    plants: &'static [usize],
    distance: u32,
    options: fn(SharedObject, u64) -> OnlineOptions,
    /// Numbers of events after which a call that does not return is recorded as such.
    noticed: &'static [Option<usize>],
    expected: Expected,
    /// Least number of consistent and of violating streams, and largest number without a verdict.
    counts: (usize, usize, usize),
}

/// Expected first wrong return.
enum Expected {
    /// The one that the search on every prefix finds.
    Checked,
    /// The one that the polynomial decider on every prefix finds.
    Decided,
    /// Any, provided that the search on every prefix finds one too: some returns are ignored.
    SomeIfChecked,
}

use SharedObject::{Counter, Deque, Lock, PriorityQueue, Queue, Register, Set, Stack};

const COLLECTIONS: &[SharedObject] = &[Queue, Stack];
const AT_ONCE: &[Option<usize>] = &[Some(0)];

fn few(_: SharedObject, _: u64) -> OnlineOptions {
    OnlineOptions { configurations: 1, ..OnlineOptions::default() }
}

fn usual(_: SharedObject, _: u64) -> OnlineOptions {
    OnlineOptions::default()
}

const TABLE: &[Row] = &[
    Row {
        name: "every prefix",
        objects: &SharedObject::ALL,
        seeds: 150,
        size: |_| (3, 14),
        read_shares: &[0.5],
        pending_shares: &[0.15, 0.0, 0.0],
        plants: &[0, 1],
        distance: 5,
        options: |_, seed| OnlineOptions {
            whole: seed % 4 < 2,
            configurations: 20_000,
            ..OnlineOptions::default()
        },
        noticed: AT_ONCE,
        expected: Expected::Checked,
        counts: (150, 150, 30),
    },
    // With one configuration allowed, only the log of calls judges.
    Row {
        name: "collections without configurations",
        objects: COLLECTIONS,
        seeds: 160,
        size: |seed| (2 + seed as u32 % 4, 10 + seed as u32 % 30),
        read_shares: &[0.3, 0.5, 0.7],
        pending_shares: &[0.1, 0.0, 0.0, 0.0, 0.0],
        plants: &[0, 1],
        distance: 10,
        options: few,
        noticed: AT_ONCE,
        expected: Expected::Checked,
        counts: (60, 60, 120),
    },
    // A removal that does not return is assigned an element as soon as one is certain.
    Row {
        name: "queues with lost calls",
        objects: &[Queue],
        seeds: 2000,
        size: |seed| (2 + seed as u32 % 4, 12 + seed as u32 % 30),
        read_shares: &[0.4, 0.5, 0.6],
        pending_shares: &[0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.3, 0.3, 0.3],
        plants: &[0, 1],
        distance: 10,
        options: few,
        noticed: &[Some(0), Some(1), Some(2), Some(3), Some(4)],
        expected: Expected::Decided,
        counts: (800, 300, 900),
    },
    // The verdict does not depend on when a call is recorded as not returning.
    Row {
        name: "lost calls",
        objects: &SharedObject::ALL,
        seeds: 240,
        size: |seed| (2 + seed as u32 % 3, 10 + seed as u32 % 9),
        read_shares: &[0.4, 0.5, 0.6],
        pending_shares: &[0.1, 0.1, 0.1, 0.25, 0.25, 0.25, 0.4, 0.4, 0.4],
        plants: &[0, 1],
        distance: 8,
        options: |object, seed| {
            let has_other_way = !matches!(object, Set | Counter | Deque | Lock);
            let configurations = if has_other_way && seed % 5 > 0 { 1 } else { 20_000 };
            OnlineOptions { configurations, pending: 100, ..OnlineOptions::default() }
        },
        noticed: &[Some(0), Some(0), Some(1), Some(1), Some(4), Some(4), None, None],
        expected: Expected::Checked,
        counts: (1000, 400, 250),
    },
    Row {
        name: "very many lost calls",
        objects: &[Counter, Lock],
        seeds: 500,
        size: |seed| (2 + seed as u32 % 3, 24 + seed as u32 % 17),
        read_shares: &[0.4, 0.6, 0.7],
        pending_shares: &[0.15, 0.15, 0.15, 0.3, 0.3, 0.3, 0.5, 0.5, 0.5],
        plants: &[0, 1, 2, 5],
        distance: 30,
        options: usual,
        noticed: &[Some(0), Some(0), Some(1), Some(1), Some(6), Some(6), None, None],
        expected: Expected::Checked,
        counts: (200, 200, 300),
    },
    Row {
        name: "deques",
        objects: &[Deque],
        seeds: 240,
        size: |seed| (3 + seed as u32 % 2, 20 + seed as u32 % 16),
        read_shares: &[0.35, 0.45, 0.55],
        pending_shares: &[0.05, 0.0, 0.0, 0.0],
        plants: &[0, 0, 1, 1, 2],
        distance: 20,
        options: usual,
        noticed: &[Some(0), Some(0), Some(0), Some(0), Some(3), Some(3), Some(3), Some(3), None],
        expected: Expected::Checked,
        counts: (60, 40, 140),
    },
    // If calls are given up, neither a wrong violation nor a wrong "consistent" is reported.
    Row {
        name: "calls that are given up",
        objects: &SharedObject::ALL,
        seeds: 80,
        size: |_| (3, 16),
        read_shares: &[0.5],
        pending_shares: &[0.3],
        plants: &[0, 1],
        distance: 5,
        options: |_, _| OnlineOptions { pending: 1, whole: true, ..OnlineOptions::default() },
        noticed: AT_ONCE,
        expected: Expected::Checked,
        counts: (80, 30, 500),
    },
    Row {
        name: "overdue calls",
        objects: &SharedObject::ALL,
        seeds: 100,
        size: |_| (3, 24),
        read_shares: &[0.5],
        pending_shares: &[0.2, 0.0],
        plants: &[0, 1, 2],
        distance: 5,
        options: |_, _| OnlineOptions { overdue: 2, ..OnlineOptions::default() },
        noticed: &[None],
        expected: Expected::SomeIfChecked,
        counts: (150, 60, 700),
    },
    Row {
        name: "collections and registers with repeated values",
        objects: &[Register, PriorityQueue, Stack],
        seeds: 200,
        size: |seed| (3, 12 + seed as u32 % 8),
        read_shares: &[0.5],
        pending_shares: &[0.2, 0.0],
        plants: &[2, 3],
        distance: 6,
        options: usual,
        noticed: &[Some(2)],
        expected: Expected::Checked,
        counts: (20, 100, 300),
    },
];

fn stream(row: &Row, object: SharedObject, seed: u64) -> History {
    fn pick<T: Copy>(items: &[T], seed: u64) -> T {
        items[seed as usize % items.len()]
    }
    let (sessions, operations) = (row.size)(seed);
    generate_calls(&ObjectWorkload {
        sessions,
        operations,
        read_share: pick(row.read_shares, seed),
        pending_share: pick(row.pending_shares, seed),
        plants: pick(row.plants, seed),
        distance: row.distance,
        ..workload(object, seed)
    })
}

fn compare(row: &Row) {
    let (mut fine, mut wrong, mut unknown) = (0, 0, 0);
    for &object in row.objects {
        for seed in 0..row.seeds {
            let history = stream(row, object, seed);
            let noticed = row.noticed[seed as usize % row.noticed.len()];
            let found =
                match watch_until(&history, object.name(), (row.options)(object, seed), noticed) {
                    Ok(found) => found,
                    Err(OnlineError::TooMany { .. } | OnlineError::GivenUp { .. }) => {
                        unknown += 1;
                        continue;
                    }
                    Err(error) => panic!("{}: {object}, seed {seed}: {error}", row.name),
                };
            let expected: Option<OpId> = match row.expected {
                Expected::Checked => check(&history, object.name()),
                Expected::Decided => decide(&history, object.name()),
                Expected::SomeIfChecked => {
                    found.and_then(|found| check(&history, object.name()).map(|_| found))
                }
            };
            assert_eq!(found, expected, "{}: {object}, seed {seed}", row.name);
            match found {
                Some(_) => wrong += 1,
                None => fine += 1,
            }
        }
    }
    let (least_fine, least_wrong, most_unknown) = row.counts;
    assert!(
        fine >= least_fine && wrong >= least_wrong && unknown <= most_unknown,
        "{}: {fine} right, {wrong} wrong, {unknown} without a verdict",
        row.name
    );
}

#[test]
fn watching_agrees_with_checking() {
    TABLE.iter().for_each(compare);
}
