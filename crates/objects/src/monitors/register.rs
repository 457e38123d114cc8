//! Registers: Gibbons and Korach's zones.
//!
//! A write and the reads of its value are a *cluster*, which has a zone ([`super::zones`]): no
//! other value is written between them. A history is linearizable if and only if no read ends
//! before its write starts and the zones can be arranged; in a cluster the write comes first and
//! the reads follow by start.
//!
//! If a value is written more than once, the source of each read is determined first
//! ([`super::sources`]). A read without a known source is left out, and if the others can be
//! arranged, the general search decides. The initial value is a write that ended before all calls.
//! A pending write that is read has no end; a pending write that is not read, and a pending read,
//! can be left out. Cost: O(n log n) for the sort.

use consistory_history::{Value, ValueId};
use consistory_spec::Object;
use rustc_hash::FxHashMap;

use super::intervals::Intervals;
use super::methods::Methods;
use super::sources::{Source, Sources};
use super::zones::{Zone, arrange};
use super::{Decision, Pattern, Unsuitable, violation};
use crate::calls::{CallIndex, Calls};

/// A write and the reads of its value.
struct Cluster {
    /// `None` for the initial value.
    write: Option<CallIndex>,
    reads: Vec<CallIndex>,
    zone: Zone,
}

impl Cluster {
    /// Returns a few calls that have the same zone.
    fn core(&self) -> impl Iterator<Item = CallIndex> + use<> {
        self.write.into_iter().chain(self.zone.bounds())
    }
}

pub(super) fn decide(
    calls: &Calls<'_>,
    object: &dyn Object,
    initial: &Value,
    intervals: &Intervals,
) -> Decision {
    let mut writes: Vec<(CallIndex, ValueId)> = Vec::new();
    let mut reads: Vec<(CallIndex, ValueId)> = Vec::new();
    let mut methods = Methods::new(calls, object);
    for place in calls.places() {
        let name = calls.method(place);
        match (methods.of(place), calls.args(place)) {
            (Some("write"), &[value]) => writes.push((place, value)),
            (Some("read"), []) => match calls.returns(place) {
                _ if calls.get(place).is_pending => {}
                Some(value) => reads.push((place, value)),
                None => return Err(Unsuitable::Return { method: name.to_owned() }),
            },
            _ => return Err(Unsuitable::Method { method: name.to_owned() }),
        }
    }
    decide_accesses(calls, initial, intervals, &writes, reads)
}

/// Decides whether writes, in the order of their calls, and completed reads of one register are
/// linearizable.
pub(super) fn decide_accesses(
    calls: &Calls<'_>,
    initial: &Value,
    intervals: &Intervals,
    writes: &[(CallIndex, ValueId)],
    reads: impl IntoIterator<Item = (CallIndex, ValueId)>,
) -> Decision {
    let mut written: FxHashMap<ValueId, usize> = FxHashMap::default();
    let mut is_repeated = false;
    for (i, &(_, value)) in writes.iter().enumerate() {
        is_repeated |= calls.value(value) == initial;
        is_repeated |= written.insert(value, i + 1).is_some();
    }
    let mut clusters =
        vec![Cluster { write: None, reads: Vec::new(), zone: Zone::before_everything() }];
    clusters.extend(writes.iter().map(|&(write, _)| Cluster {
        write: Some(write),
        reads: Vec::new(),
        zone: Zone::of(write, intervals),
    }));
    let sources = is_repeated.then(|| Sources::new(writes, intervals));
    let closed = |core: Vec<CallIndex>| match &sources {
        Some(sources) => sources.closed(calls, core),
        None => core,
    };
    let mut several = None;
    for (place, value) in reads {
        let is_initial = calls.value(value) == initial;
        let found = match (&sources, written.get(&value)) {
            (None, Some(&cluster)) => cluster,
            (None, None) if is_initial => 0,
            (None, None) => return violation(Pattern::ThinAir, [place]),
            (Some(sources), _) => match sources.of(place, value, is_initial) {
                Source::Write(write) => write + 1,
                Source::Initial => 0,
                Source::Nothing if written.contains_key(&value) || is_initial => {
                    return violation(Pattern::Overwritten, closed(vec![place]));
                }
                Source::Nothing => return violation(Pattern::ThinAir, [place]),
                Source::Several => {
                    several.get_or_insert(value);
                    continue;
                }
            },
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
    // A pending write that is never read took no effect.
    let is_idle =
        |c: &Cluster| c.reads.is_empty() && c.write.is_some_and(|w| calls.get(w).is_pending);
    clusters.retain(|cluster| !is_idle(cluster));
    let zones: Vec<Zone> = clusters.iter().map(|cluster| cluster.zone).collect();
    let arranged = match arrange(&zones) {
        Ok(arranged) => arranged,
        Err((pattern, one, other)) => {
            let core = clusters[one].core().chain(clusters[other].core()).collect();
            return violation(pattern, closed(core));
        }
    };
    // The reads that were left out may affect this result, but could not have made the history
    // linearizable.
    if let Some(value) = several {
        let value = calls.value(value).clone();
        return Err(Unsuitable::NotDifferentiated { value });
    }
    let mut order = Vec::new();
    for cluster in arranged.into_iter().map(|i| &clusters[i]) {
        order.extend(cluster.write);
        let from = order.len();
        order.extend(&cluster.reads);
        order[from..].sort_unstable_by_key(|&read| intervals.start(read));
    }
    Ok(Ok(order))
}
