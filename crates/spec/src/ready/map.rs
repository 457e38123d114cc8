//! A sorted map, with the methods of the JDK's concurrent maps and of Rust's.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::LazyLock;

use consistory_history::Value;

use super::count;
use crate::footprint::Heap;
use crate::signatures::signatures;
use crate::specification::{Method, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        put(key, value) -> old as insert
        set(key, value) as store
        read get(key) -> value
        read getOrDefault(key, default) -> value
        remove(key) -> old
        removeKey(key) -> bool as remove_key
        remove(key, value) -> bool
        putIfAbsent(key, value) -> old
        tryInsert(key, value) -> bool as try_insert
        getOrPut(key, value) -> value as get_or_insert
        replace(key, value) -> old
        replace(key, expected, new) -> bool
        read containsKey(key) -> bool as contains_key
        read containsValue(value) -> bool as contains
        read size() -> count as len, mappingCount
        read isEmpty() -> bool as is_empty
        clear()
        putAll(entries)
        read keySet() -> unordered as keys, keyList
        read values() -> unordered as elements
        read entrySet() -> unordered as entries, iter
        read firstKey() -> key
        read lastKey() -> key
        read firstEntry() -> entry as front
        read lastEntry() -> entry as back
        pollFirstEntry() -> entry as pop_front
        pollLastEntry() -> entry as pop_back
        read lowerKey(key) -> key
        read floorKey(key) -> key
        read ceilingKey(key) -> key
        read higherKey(key) -> key
        read headMap(below) -> unordered
        read tailMap(from) -> unordered
        read subMap(from, below) -> unordered
        ",
    )
});

/// A map whose keys are sorted; a missing value is `null`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Map;

impl Specification for Map {
    type State = BTreeMap<Value, Value>;

    fn show(&self, state: &BTreeMap<Value, Value>) -> Option<String> {
        super::shown::map(state)
    }

    fn initial(&self) -> Self::State {
        BTreeMap::new()
    }

    fn invoke(&self, map: &mut Self::State, method: &str, args: &[Value]) -> Option<Value> {
        let or_null = |value: Option<Value>| value.unwrap_or(Value::Null);
        let key = |value: Option<(&Value, &Value)>| or_null(value.map(|(k, _)| k.clone()));
        let entry = |value: Option<(&Value, &Value)>| {
            or_null(value.map(|(k, v)| Value::List(vec![k.clone(), v.clone()])))
        };
        let owned =
            |value: Option<(Value, Value)>| or_null(value.map(|(k, v)| Value::List(vec![k, v])));
        Some(match (method, args) {
            ("put", [k, v]) => or_null(map.insert(k.clone(), v.clone())),
            ("set", [k, v]) => {
                map.insert(k.clone(), v.clone());
                Value::Null
            }
            ("get", [k]) => or_null(map.get(k).cloned()),
            ("getOrDefault", [k, default]) => map.get(k).unwrap_or(default).clone(),
            ("removeKey", [k]) => Value::Bool(map.remove(k).is_some()),
            ("tryInsert", [k, v]) => {
                let is_free = !map.contains_key(k);
                map.entry(k.clone()).or_insert_with(|| v.clone());
                Value::Bool(is_free)
            }
            ("getOrPut", [k, v]) => map.entry(k.clone()).or_insert_with(|| v.clone()).clone(),
            ("remove", [k]) => or_null(map.remove(k)),
            ("remove", [k, v]) => {
                let is_there = map.get(k) == Some(v);
                if is_there {
                    map.remove(k);
                }
                Value::Bool(is_there)
            }
            ("putIfAbsent", [k, v]) => match map.get(k) {
                Some(old) => old.clone(),
                None => or_null(map.insert(k.clone(), v.clone())),
            },
            ("replace", [k, v]) => match map.get_mut(k) {
                Some(old) => std::mem::replace(old, v.clone()),
                None => Value::Null,
            },
            ("replace", [k, expected, new]) => match map.get_mut(k) {
                Some(old) if old == expected => {
                    old.clone_from(new);
                    Value::Bool(true)
                }
                _ => Value::Bool(false),
            },
            ("containsKey", [k]) => Value::Bool(map.contains_key(k)),
            ("containsValue", [v]) => Value::Bool(map.values().any(|value| value == v)),
            ("size", []) => count(map.len()),
            ("isEmpty", []) => Value::Bool(map.is_empty()),
            ("clear", []) => {
                map.clear();
                Value::Null
            }
            ("putAll", [Value::List(all)]) => {
                for pair in all {
                    let Value::List(pair) = pair else { return None };
                    let [k, v] = pair.as_slice() else { return None };
                    map.insert(k.clone(), v.clone());
                }
                Value::Null
            }
            ("keySet", []) => Value::List(map.keys().cloned().collect()),
            ("values", []) => {
                let mut values: Vec<Value> = map.values().cloned().collect();
                values.sort();
                Value::List(values)
            }
            ("entrySet", []) => entries(map, Bound::Unbounded, Bound::Unbounded),
            ("firstKey", []) => key(map.first_key_value()),
            ("lastKey", []) => key(map.last_key_value()),
            ("firstEntry", []) => entry(map.first_key_value()),
            ("lastEntry", []) => entry(map.last_key_value()),
            ("pollFirstEntry", []) => owned(map.pop_first()),
            ("pollLastEntry", []) => owned(map.pop_last()),
            ("lowerKey", [k]) => key(map.range(..k.clone()).next_back()),
            ("floorKey", [k]) => key(map.range(..=k.clone()).next_back()),
            ("ceilingKey", [k]) => key(map.range(k.clone()..).next()),
            ("higherKey", [k]) => {
                key(map.range((Bound::Excluded(k.clone()), Bound::Unbounded)).next())
            }
            ("headMap", [below]) => entries(map, Bound::Unbounded, Bound::Excluded(below)),
            ("tailMap", [from]) => entries(map, Bound::Included(from), Bound::Unbounded),
            ("subMap", [from, below]) if from <= below => {
                entries(map, Bound::Included(from), Bound::Excluded(below))
            }
            _ => return None,
        })
    }

    fn footprint(&self, state: &Self::State) -> usize {
        Heap::footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &METHODS
    }

    fn part(&self, method: &str, args: &[Value]) -> Option<Value> {
        match method {
            "put" | "set" | "tryInsert" | "getOrPut" | "removeKey" | "get" | "getOrDefault"
            | "remove" | "putIfAbsent" | "replace" | "containsKey" => args.first().cloned(),
            _ => None,
        }
    }
}

fn entries(map: &BTreeMap<Value, Value>, from: Bound<&Value>, to: Bound<&Value>) -> Value {
    let pairs = map.range::<Value, _>((from, to));
    Value::List(pairs.map(|(k, v)| Value::List(vec![k.clone(), v.clone()])).collect())
}
