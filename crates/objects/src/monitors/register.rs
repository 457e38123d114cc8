//! Registers: Gibbons and Korach's zones.
//!
//! A write and the reads of its value are a *cluster*, which has a zone ([`super::zones`]): nothing
//! else is written between them. A history is linearizable if and only if no read ends before its
//! write starts and the zones can be arranged; in a cluster the write comes first and the reads
//! follow by start.
//!
//! The initial value is a write that ended before everything. A pending write that is read has no
//! end; one that is not read, and a pending read, can be left out. Cost: O(n log n) for the sort.

use consistory_history::{Value, ValueId};
use consistory_spec::Object;
use rustc_hash::FxHashMap;

use super::intervals::Intervals;
use super::methods::Methods;
use super::zones::{Zone, arrange};
use super::{Decision, Pattern, Unsuitable, violation};
use crate::calls::{Calls, Place};

/// A write and the reads of its value.
struct Cluster {
    /// `None` for the initial value.
    write: Option<Place>,
    reads: Vec<Place>,
    zone: Zone,
}

impl Cluster {
    /// Gives the few calls that have the same zone.
    fn core(&self) -> impl Iterator<Item = Place> + use<> {
        self.write.into_iter().chain(self.zone.bounds())
    }
}

pub(super) fn decide(
    calls: &Calls<'_>,
    object: &dyn Object,
    initial: &Value,
    intervals: &Intervals,
) -> Decision {
    let start_of_all = Cluster { write: None, reads: Vec::new(), zone: Zone::before_everything() };
    let mut clusters = vec![start_of_all];
    let mut of_value: FxHashMap<ValueId, usize> = FxHashMap::default();
    let mut reads: Vec<(Place, ValueId)> = Vec::new();
    let unknown = |method: &str| Unsuitable::Method { method: method.to_owned() };
    let mut methods = Methods::new(calls, object);
    for place in calls.places() {
        let args = calls.args(place);
        let name = calls.method(place);
        match (methods.of(place), args) {
            (Some("write"), &[value]) => {
                if calls.value(value) == initial || of_value.contains_key(&value) {
                    let value = calls.value(value).clone();
                    return Err(Unsuitable::NotDifferentiated { value });
                }
                of_value.insert(value, clusters.len());
                clusters.push(Cluster {
                    write: Some(place),
                    reads: Vec::new(),
                    zone: Zone::of(place, intervals),
                });
            }
            (Some("read"), []) => match calls.returns(place) {
                _ if calls.get(place).is_pending => {}
                Some(value) => reads.push((place, value)),
                None => return Err(Unsuitable::Return { method: name.to_owned() }),
            },
            _ => return Err(unknown(name)),
        }
    }
    for (place, value) in reads {
        let found = match of_value.get(&value) {
            Some(&cluster) => cluster,
            None if calls.value(value) == initial => 0,
            None => return violation(Pattern::ThinAir, [place]),
        };
        let cluster = &mut clusters[found];
        if let Some(write) = cluster.write
            && intervals.end(place) < intervals.start(write)
        {
            return violation(Pattern::BeforeItsInsertion, [write, place]);
        }
        cluster.reads.push(place);
        cluster.zone.add(place, intervals);
    }
    // A pending write that nothing reads took no effect.
    let is_idle =
        |c: &Cluster| c.reads.is_empty() && c.write.is_some_and(|w| calls.get(w).is_pending);
    clusters.retain(|cluster| !is_idle(cluster));
    let zones: Vec<Zone> = clusters.iter().map(|cluster| cluster.zone).collect();
    let arranged = match arrange(&zones) {
        Ok(arranged) => arranged,
        Err((pattern, one, other)) => {
            return violation(pattern, clusters[one].core().chain(clusters[other].core()));
        }
    };
    let mut order = Vec::new();
    for cluster in arranged.into_iter().map(|i| &clusters[i]) {
        order.extend(cluster.write);
        let from = order.len();
        order.extend(&cluster.reads);
        order[from..].sort_unstable_by_key(|&read| intervals.start(read));
    }
    Ok(Ok(order))
}
