//! Built-in harnesses for popular concurrent collections and, for comparison, for collections of
//! the standard library behind a lock.
//!
//! ```
//! use std::time::Duration;
//!
//! let (mut campaign, mut runner) = consistory_harness::collections::find("scc::HashMap")
//!     .unwrap()
//!     .build()
//!     .unwrap();
//! campaign.time = Duration::from_millis(200);
//! let report = campaign.run(&mut runner, |_| ()).unwrap();
//! println!("{report}");
//! ```
//!
//! Methods have the names of the specifications, which are those of Rust where possible. Operations
//! without a counterpart in a specification, such as entry handles, are left out.

mod maps;
mod queues;
mod sets;

use crate::campaign::Campaign;
use crate::harness::HarnessError;
use crate::threads::{Clock, ThreadRunner};

/// A collection that can be tested.
#[derive(Clone, Copy)]
pub struct Collection {
    /// The crate and the type, as `crossbeam-skiplist::SkipMap`.
    pub name: &'static str,
    /// The specification that it is tested against.
    pub object: &'static str,
    /// Methods that read or change the whole collection, which few collections do atomically.
    pub bulk: &'static [&'static str],
    make: fn(Clock) -> Result<(Campaign, ThreadRunner), HarnessError>,
}

impl Collection {
    /// Returns a campaign for linearizability of all methods, and a runner for its programs.
    pub fn build(&self) -> Result<(Campaign, ThreadRunner), HarnessError> {
        self.build_with(Clock::default())
    }

    /// Returns the same with a chosen clock.
    pub fn build_with(&self, clock: Clock) -> Result<(Campaign, ThreadRunner), HarnessError> {
        (self.make)(clock)
    }
}

/// Lists the collections.
pub fn catalogue() -> &'static [Collection] {
    &CATALOGUE
}

/// Finds a collection by its name, or the first one of a crate by the crate's name.
pub fn find(name: &str) -> Option<&'static Collection> {
    let of_crate = |collection: &&Collection| {
        collection.name.strip_prefix(name).is_some_and(|rest| rest.starts_with("::"))
    };
    CATALOGUE.iter().find(|c| c.name == name).or_else(|| CATALOGUE.iter().find(of_crate))
}

/// Builds an entry of the catalogue.
macro_rules! collection {
    ($name:literal, $object:literal, $harness:path, [$($bulk:literal),*]) => {
        Collection {
            name: $name,
            object: $object,
            bulk: &[$($bulk),*],
            make: |clock| $harness().object($object).clock(clock).build(),
        }
    };
}

static CATALOGUE: [Collection; 16] = [
    collection!(
        "crossbeam-skiplist::SkipMap",
        "map",
        maps::skip_map,
        ["len", "isEmpty", "iter", "clear"]
    ),
    collection!(
        "crossbeam-skiplist::SkipSet",
        "set",
        sets::skip_set,
        ["len", "isEmpty", "iter", "clear"]
    ),
    collection!("dashmap::DashMap", "map", maps::dash_map, ["len", "isEmpty", "iter", "clear"]),
    collection!("dashmap::DashSet", "set", sets::dash_set, ["len", "isEmpty", "iter", "clear"]),
    collection!("scc::HashMap", "map", maps::scc_hash_map, ["len", "isEmpty", "iter", "clear"]),
    collection!("scc::HashIndex", "map", maps::scc_hash_index, ["len", "isEmpty", "iter", "clear"]),
    collection!("scc::TreeIndex", "map", maps::scc_tree_index, ["len", "isEmpty", "iter", "clear"]),
    collection!("papaya::HashMap", "map", maps::papaya, ["len", "isEmpty", "iter", "clear"]),
    collection!("flurry::HashMap", "map", maps::flurry, ["len", "isEmpty", "iter", "clear"]),
    collection!("crossbeam-queue::SegQueue", "queue", queues::seg_queue, ["len", "isEmpty"]),
    collection!("crossbeam-queue::ArrayQueue", "queue(2)", queues::array_queue, ["len", "isEmpty"]),
    collection!("concurrent-queue::unbounded", "queue", queues::unbounded, ["len", "isEmpty"]),
    collection!("concurrent-queue::bounded", "queue(2)", queues::bounded, ["len", "isEmpty"]),
    collection!("std::mpsc", "queue", queues::mpsc, []),
    collection!("std::Mutex<VecDeque>", "queue", queues::locked, ["len", "isEmpty", "iter"]),
    collection!("std::Mutex<BTreeMap>", "map", maps::locked, ["len", "isEmpty", "iter", "clear"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_found_by_name_or_crate() {
        let name = |text: &str| find(text).map(|collection| collection.name);
        assert_eq!(name("scc::TreeIndex"), Some("scc::TreeIndex"));
        assert_eq!(name("crossbeam-skiplist"), Some("crossbeam-skiplist::SkipMap"));
        assert_eq!(name("crossbeam"), None);
    }

    /// Calls each method of each collection sequentially. The returns must be those of the
    /// specification, which shows that the adapters are right.
    #[test]
    fn adapters_do_what_the_specifications_say_when_called_once_at_a_time() {
        for collection in catalogue() {
            let (mut campaign, mut runner) = collection.build().unwrap();
            campaign.programs.threads = 1;
            campaign.programs.calls = 12;
            campaign.rounds = 1;
            campaign.runs = Some(400);
            campaign.time = std::time::Duration::from_secs(600);
            for method in collection.bulk {
                let is_known = campaign.programs.signatures.iter().any(|s| *s.method == **method);
                assert!(is_known, "{}: {method}", collection.name);
            }
            let report = campaign.run(&mut runner, |_| ()).unwrap();
            assert!(report.is_clean(), "{}: {report}", collection.name);
        }
    }
}
