//! Maps.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Mutex;

use crossbeam_skiplist::SkipMap;
use dashmap::DashMap;

use crate::harness::Harness;

/// Entries as a list of pairs.
type Entries = Vec<(i64, i64)>;

/// Increases the weight of the most important methods.
fn weighted<T: Send + Sync + 'static>(harness: Harness<T>, methods: &[&str]) -> Harness<T> {
    methods.iter().fold(harness, |harness, method| harness.weight(method, 4))
}

pub(super) fn skip_map() -> Harness<SkipMap<i64, i64>> {
    let harness = Harness::new(SkipMap::<i64, i64>::new)
        .method("set", |m, (k, v): (i64, i64)| {
            m.insert(k, v);
        })
        .method("get", |m, k: i64| m.get(&k).map(|e| *e.value()))
        .method("remove", |m, k: i64| m.remove(&k).map(|e| *e.value()))
        .method("getOrPut", |m, (k, v): (i64, i64)| *m.get_or_insert(k, v).value())
        .method("containsKey", |m, k: i64| m.contains_key(&k))
        .method("front", |m, ()| m.front().map(|e| (*e.key(), *e.value())))
        .method("back", |m, ()| m.back().map(|e| (*e.key(), *e.value())))
        .method("pop_front", |m, ()| m.pop_front().map(|e| (*e.key(), *e.value())))
        .method("pop_back", |m, ()| m.pop_back().map(|e| (*e.key(), *e.value())))
        .method("ceilingKey", |m, k: i64| m.lower_bound(Bound::Included(&k)).map(|e| *e.key()))
        .method("lowerKey", |m, k: i64| m.upper_bound(Bound::Excluded(&k)).map(|e| *e.key()))
        .method("len", |m, ()| m.len())
        .method("isEmpty", |m, ()| m.is_empty())
        .method("iter", |m, ()| m.iter().map(|e| (*e.key(), *e.value())).collect::<Entries>())
        .method("clear", |m, ()| m.clear());
    weighted(harness, &["set", "get", "remove"])
}

pub(super) fn dash_map() -> Harness<DashMap<i64, i64>> {
    let harness = Harness::new(DashMap::<i64, i64>::new)
        .method("put", |m, (k, v): (i64, i64)| m.insert(k, v))
        .method("get", |m, k: i64| m.get(&k).map(|e| *e.value()))
        .method("remove", |m, k: i64| m.remove(&k).map(|(_, v)| v))
        .method("remove", |m, (k, v): (i64, i64)| m.remove_if(&k, |_, old| *old == v).is_some())
        .method("getOrPut", |m, (k, v): (i64, i64)| *m.entry(k).or_insert(v))
        .method("containsKey", |m, k: i64| m.contains_key(&k))
        .method("len", |m, ()| m.len())
        .method("isEmpty", |m, ()| m.is_empty())
        .method("iter", |m, ()| m.iter().map(|e| (*e.key(), *e.value())).collect::<Entries>())
        .method("clear", |m, ()| m.clear());
    weighted(harness, &["put", "iter", "len"])
}

pub(super) fn scc_hash_map() -> Harness<scc::HashMap<i64, i64>> {
    let harness = Harness::new(scc::HashMap::<i64, i64>::new)
        .method("put", |m, (k, v): (i64, i64)| m.upsert_sync(k, v))
        .method("get", |m, k: i64| m.read_sync(&k, |_, v| *v))
        .method("remove", |m, k: i64| m.remove_sync(&k).map(|(_, v)| v))
        .method("remove", |m, (k, v): (i64, i64)| m.remove_if_sync(&k, |old| *old == v).is_some())
        .method("tryInsert", |m, (k, v): (i64, i64)| m.insert_sync(k, v).is_ok())
        .method("getOrPut", |m, (k, v): (i64, i64)| *m.entry_sync(k).or_insert(v).get())
        .method("containsKey", |m, k: i64| m.contains_sync(&k))
        .method("len", |m, ()| m.len())
        .method("isEmpty", |m, ()| m.is_empty())
        .method("iter", |m, ()| {
            let mut entries = Entries::new();
            m.iter_sync(|k, v| {
                entries.push((*k, *v));
                true
            });
            entries
        })
        .method("clear", |m, ()| m.clear_sync());
    weighted(harness, &["put", "get", "iter"])
}

pub(super) fn scc_hash_index() -> Harness<scc::HashIndex<i64, i64>> {
    let harness = Harness::new(scc::HashIndex::<i64, i64>::new)
        .method("tryInsert", |m, (k, v): (i64, i64)| m.insert_sync(k, v).is_ok())
        .method("get", |m, k: i64| m.peek_with(&k, |_, v| *v))
        .method("removeKey", |m, k: i64| m.remove_sync(&k))
        .method("remove", |m, (k, v): (i64, i64)| m.remove_if_sync(&k, |old| *old == v))
        .method("getOrPut", |m, (k, v): (i64, i64)| *m.entry_sync(k).or_insert(v).get())
        .method("containsKey", |m, k: i64| m.contains(&k))
        .method("len", |m, ()| m.len())
        .method("isEmpty", |m, ()| m.is_empty())
        .method("iter", |m, ()| {
            let mut entries = Entries::new();
            m.iter_sync(|k, v| {
                entries.push((*k, *v));
                true
            });
            entries
        })
        .method("clear", |m, ()| m.clear_sync());
    weighted(harness, &["tryInsert", "get", "removeKey"])
}

pub(super) fn scc_tree_index() -> Harness<scc::TreeIndex<i64, i64>> {
    let harness = Harness::new(scc::TreeIndex::<i64, i64>::new)
        .method("set", |m, (k, v): (i64, i64)| m.upsert_sync(k, v))
        .method("get", |m, k: i64| m.peek_with(&k, |_, v| *v))
        .method("removeKey", |m, k: i64| m.remove_sync(&k))
        .method("remove", |m, (k, v): (i64, i64)| m.remove_if_sync(&k, |old| *old == v))
        .method("tryInsert", |m, (k, v): (i64, i64)| m.insert_sync(k, v).is_ok())
        .method("containsKey", |m, k: i64| m.contains(&k))
        .method("len", |m, ()| m.len())
        .method("isEmpty", |m, ()| m.is_empty())
        .method("iter", |m, ()| {
            let guard = scc::Guard::new();
            m.iter(&guard).map(|(k, v)| (*k, *v)).collect::<Entries>()
        })
        .method("clear", |m, ()| m.clear());
    weighted(harness, &["set", "get", "removeKey"])
}

pub(super) fn papaya() -> Harness<papaya::HashMap<i64, i64>> {
    let harness = Harness::new(papaya::HashMap::<i64, i64>::new)
        .method("put", |m, (k, v): (i64, i64)| m.pin().insert(k, v).copied())
        .method("get", |m, k: i64| m.pin().get(&k).copied())
        .method("remove", |m, k: i64| m.pin().remove(&k).copied())
        .method("remove", |m, (k, v): (i64, i64)| {
            matches!(m.pin().remove_if(&k, |_, old| *old == v), Ok(Some(_)))
        })
        .method("tryInsert", |m, (k, v): (i64, i64)| m.pin().try_insert(k, v).is_ok())
        .method("getOrPut", |m, (k, v): (i64, i64)| *m.pin().get_or_insert(k, v))
        .method("containsKey", |m, k: i64| m.pin().contains_key(&k))
        .method("len", |m, ()| m.len())
        .method("isEmpty", |m, ()| m.is_empty())
        .method("iter", |m, ()| m.pin().iter().map(|(k, v)| (*k, *v)).collect::<Entries>())
        .method("clear", |m, ()| m.pin().clear());
    weighted(harness, &["put", "remove", "iter", "len"])
}

pub(super) fn flurry() -> Harness<flurry::HashMap<i64, i64>> {
    let harness = Harness::new(flurry::HashMap::<i64, i64>::new)
        .method("put", |m, (k, v): (i64, i64)| m.pin().insert(k, v).copied())
        .method("get", |m, k: i64| m.pin().get(&k).copied())
        .method("remove", |m, k: i64| m.pin().remove(&k).copied())
        .method("tryInsert", |m, (k, v): (i64, i64)| m.pin().try_insert(k, v).is_ok())
        .method("containsKey", |m, k: i64| m.pin().contains_key(&k))
        .method("len", |m, ()| m.len())
        .method("isEmpty", |m, ()| m.is_empty())
        .method("iter", |m, ()| m.pin().iter().map(|(k, v)| (*k, *v)).collect::<Entries>())
        .method("clear", |m, ()| m.pin().clear());
    weighted(harness, &["put", "remove", "iter", "len"])
}

/// A map of the standard library behind a lock.
type Locked = Mutex<BTreeMap<i64, i64>>;

pub(super) fn locked() -> Harness<Locked> {
    let harness = Harness::new(Locked::default)
        .method("put", |m, (k, v): (i64, i64)| open(m, |m| m.insert(k, v)))
        .method("get", |m, k: i64| open(m, |m| m.get(&k).copied()))
        .method("remove", |m, k: i64| open(m, |m| m.remove(&k)))
        .method("getOrPut", |m, (k, v): (i64, i64)| open(m, |m| *m.entry(k).or_insert(v)))
        .method("containsKey", |m, k: i64| open(m, |m| m.contains_key(&k)))
        .method("pop_front", |m, ()| open(m, BTreeMap::pop_first))
        .method("len", |m, ()| open(m, |m| m.len()))
        .method("isEmpty", |m, ()| open(m, |m| m.is_empty()))
        .method("iter", |m, ()| open(m, |m| m.iter().map(|(k, v)| (*k, *v)).collect::<Entries>()))
        .method("clear", |m, ()| open(m, BTreeMap::clear));
    weighted(harness, &["put", "get", "remove"])
}

/// Returns the locked value; no code panics while it is locked.
fn open<R>(map: &Locked, look: impl FnOnce(&mut BTreeMap<i64, i64>) -> R) -> R {
    look(&mut map.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}
