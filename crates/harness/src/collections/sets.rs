//! Sets.

use crossbeam_skiplist::SkipSet;
use dashmap::DashSet;

use crate::harness::Harness;

pub(super) fn skip_set() -> Harness<SkipSet<i64>> {
    Harness::new(SkipSet::<i64>::new)
        .method("ensure", |s, x: i64| {
            s.insert(x);
        })
        .method("contains", |s, x: i64| s.contains(&x))
        .method("remove", |s, x: i64| s.remove(&x).is_some())
        .method("first", |s, ()| s.front().map(|e| *e.value()))
        .method("last", |s, ()| s.back().map(|e| *e.value()))
        .method("pop_front", |s, ()| s.pop_front().map(|e| *e.value()))
        .method("pop_back", |s, ()| s.pop_back().map(|e| *e.value()))
        .method("len", |s, ()| s.len())
        .method("isEmpty", |s, ()| s.is_empty())
        .method("iter", |s, ()| s.iter().map(|e| *e.value()).collect::<Vec<i64>>())
        .method("clear", |s, ()| s.clear())
        .weight("ensure", 4)
        .weight("contains", 4)
        .weight("remove", 4)
}

pub(super) fn dash_set() -> Harness<DashSet<i64>> {
    Harness::new(DashSet::<i64>::new)
        .method("add", |s, x: i64| s.insert(x))
        .method("contains", |s, x: i64| s.contains(&x))
        .method("remove", |s, x: i64| s.remove(&x).is_some())
        .method("len", |s, ()| s.len())
        .method("isEmpty", |s, ()| s.is_empty())
        .method("iter", |s, ()| s.iter().map(|e| *e.key()).collect::<Vec<i64>>())
        .method("clear", |s, ()| s.clear())
        .weight("add", 4)
        .weight("iter", 4)
        .weight("len", 4)
}
