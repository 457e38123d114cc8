//! A store of texts by key, as in the key-value logs of fault-injection tests.

use std::collections::HashSet;
use std::sync::LazyLock;

use consistory_history::Value;

use super::text::Text;
use crate::footprint::{Heap, allocated};
use crate::lexicon::Lexicon;
use crate::signatures::signatures;
use crate::specification::{CallRef, Family, Goal, Method, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        read get(key) -> value as read
        put(key, value) as write, set
        append(key, text)
        delete(key) as remove
        cas(key, expected, new) -> bool
        ",
    )
});

/// A key-value store; a key that was never written holds `initial`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyValue {
    /// Value of an unwritten key.
    pub initial: Value,
}

/// Content of a store: the keys whose value is not the initial one, sorted, so that equal contents
/// are equal states.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Contents(Vec<(Value, Content)>);

/// Value of a key; texts share their common prefixes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Content {
    Text(Text),
    Other(Value),
}

impl Content {
    fn new(value: &Value) -> Self {
        match value {
            Value::Str(text) => Content::Text(Text::new(text)),
            other => Content::Other(other.clone()),
        }
    }

    fn value(&self) -> Value {
        match self {
            Content::Text(text) => Value::Str(text.into()),
            Content::Other(value) => value.clone(),
        }
    }

    /// Appends a value. Returns `false` if nothing can be appended to the content.
    fn append(&mut self, more: &Value) -> bool {
        match (&mut *self, more) {
            (Content::Text(text), Value::Str(more)) => text.push(more),
            (Content::Other(Value::Null), Value::Str(_)) => *self = Content::new(more),
            (Content::Other(Value::List(list)), more) => list.push(more.clone()),
            (Content::Other(Value::Null), more) => {
                *self = Content::Other(Value::List(vec![more.clone()]));
            }
            _ => return false,
        }
        true
    }
}

impl Contents {
    fn find(&self, key: &Value) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(key))
    }

    fn get(&self, key: &Value) -> Option<&Content> {
        self.find(key).ok().map(|at| &self.0[at].1)
    }
}

impl KeyValue {
    fn current(&self, store: &Contents, key: &Value) -> Value {
        store.get(key).map_or_else(|| self.initial.clone(), Content::value)
    }

    fn set(&self, store: &mut Contents, key: &Value, content: Content) {
        let is_initial = content == Content::new(&self.initial);
        match store.find(key) {
            Ok(at) if is_initial => _ = store.0.remove(at),
            Ok(at) => store.0[at].1 = content,
            Err(_) if is_initial => {}
            Err(at) => store.0.insert(at, (key.clone(), content)),
        }
    }
}

impl Specification for KeyValue {
    type State = Contents;

    fn show(&self, store: &Contents) -> Option<String> {
        super::shown::map(store.0.iter().map(|(key, content)| (key, content.value())))
    }

    fn initial(&self) -> Contents {
        Contents::default()
    }

    fn invoke(&self, store: &mut Contents, method: &str, args: &[Value]) -> Option<Value> {
        match (method, args) {
            ("get", [key]) => return Some(self.current(store, key)),
            ("put", [key, value]) => self.set(store, key, Content::new(value)),
            ("append", [key, more]) => {
                let known = store.get(key).cloned();
                let mut content = known.unwrap_or_else(|| Content::new(&self.initial));
                if !content.append(more) {
                    return None;
                }
                self.set(store, key, content);
            }
            ("delete", [key]) => self.set(store, key, Content::new(&self.initial)),
            ("cas", [key, expected, new]) => {
                let is_equal = self.current(store, key) == *expected;
                if is_equal {
                    self.set(store, key, Content::new(new));
                }
                return Some(Value::Bool(is_equal));
            }
            _ => return None,
        }
        Some(Value::Null)
    }

    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool {
        method == "get" || (method == "cas" && returns == Some(&Value::Bool(false)))
    }

    fn looks_ahead(&self) -> bool {
        true
    }

    /// The return of a `get` is the current value, or the value of a `put`, followed by appended
    /// values, each from an `append` that is still to come.
    fn can_reach(&self, store: &Contents, goal: &Goal<'_>, by: &[CallRef<'_>]) -> bool {
        let ("get", [key]) = (goal.method, goal.args) else { return true };
        let of_key = || by.iter().filter(|(_, args)| args.first() == Some(key));
        if of_key().any(|(method, _)| !matches!(*method, "get" | "put" | "append")) {
            return true;
        }
        let puts = || of_key().filter(|(method, _)| *method == "put").map(|(_, args)| &args[1]);
        let appended =
            || of_key().filter(|(method, _)| *method == "append").map(|(_, args)| &args[1]);
        let current = store.get(key);
        match goal.returns {
            Value::Str(wanted) => {
                let rest = match current {
                    Some(Content::Text(current)) => current.rest_of(wanted),
                    None if self.initial == Value::Null => Some(&**wanted),
                    None if matches!(&self.initial, Value::Str(text) if text.is_empty()) => {
                        Some(&**wanted)
                    }
                    _ => return true,
                };
                let put = puts().filter_map(|value| match value {
                    Value::Str(text) => wanted.strip_prefix(&**text),
                    Value::Null => Some(&**wanted),
                    _ => None,
                });
                let texts = appended().filter_map(|value| match value {
                    Value::Str(text) if !text.is_empty() => Some(&**text),
                    _ => None,
                });
                rest == Some("") || is_made_of(rest.into_iter().chain(put), texts, wanted.len())
            }
            Value::List(wanted) => {
                let rest = match current {
                    Some(Content::Other(Value::List(current))) => {
                        wanted.strip_prefix(current.as_slice())
                    }
                    None if self.initial == Value::Null => Some(wanted.as_slice()),
                    _ => return true,
                };
                let mut rests = rest.into_iter().chain(puts().filter_map(|value| match value {
                    Value::List(list) => wanted.strip_prefix(list.as_slice()),
                    Value::Null => Some(wanted.as_slice()),
                    _ => None,
                }));
                rest.is_some_and(<[Value]>::is_empty) || {
                    let elements: HashSet<&Value> = appended().collect();
                    rests.any(|rest| rest.iter().all(|element| elements.contains(element)))
                }
            }
            wanted if appended().next().is_none() => {
                let is_there = match current {
                    Some(Content::Other(current)) => current == wanted,
                    Some(Content::Text(_)) => false,
                    None => self.initial == *wanted,
                };
                is_there || puts().any(|value| value == wanted)
            }
            _ => true,
        }
    }

    fn overwrites(&self, method: &str, _args: &[Value]) -> bool {
        matches!(method, "put" | "delete")
    }

    fn footprint(&self, store: &Contents) -> usize {
        let heap = |(key, content): &(Value, Content)| {
            key.heap()
                + match content {
                    Content::Text(text) => text.heap(),
                    Content::Other(value) => value.heap(),
                }
        };
        let entries = allocated(store.0.capacity() * size_of::<(Value, Content)>());
        size_of::<Contents>() + entries + store.0.iter().map(heap).sum::<usize>()
    }

    fn methods(&self) -> &[Method] {
        &METHODS
    }

    fn part(&self, _method: &str, args: &[Value]) -> Option<Value> {
        args.first().cloned()
    }

    fn family(&self) -> Option<Family> {
        Some(Family::Store(self.initial.clone()))
    }
}

/// Returns whether one of several suffixes of a text is a concatenation of some of the given texts.
fn is_made_of<'a>(
    rests: impl Iterator<Item = &'a str>,
    texts: impl Iterator<Item = &'a str>,
    length: usize,
) -> bool {
    let lexicon = Lexicon::new(texts);
    // Every step removes a text, and each result is processed once.
    let mut rests: Vec<&str> = rests.collect();
    let mut is_seen = vec![false; length + 1];
    while let Some(rest) = rests.pop() {
        if rest.is_empty() {
            return true;
        }
        if !std::mem::replace(&mut is_seen[rest.len()], true) {
            rests.extend(lexicon.beginnings(rest).map(|(_, text)| &rest[text.len()..]));
        }
    }
    false
}
