//! A key-value store whose keys have different initial values.

use std::collections::BTreeMap;

use consistory_history::Value;

use super::keyed::{Contents, KeyValue};
use crate::specification::{CallRef, Goal, Method, Specification};

/// A key-value store in which some keys have their own initial values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartedKeyValue {
    /// The store, with the initial value of every other key.
    pub store: KeyValue,
    /// Initial values of these keys.
    pub starts: BTreeMap<Value, Value>,
}

impl Specification for StartedKeyValue {
    type State = Contents;

    fn show(&self, contents: &Contents) -> Option<String> {
        Specification::show(&self.store, contents)
    }

    fn initial(&self) -> Contents {
        let mut contents = self.store.initial();
        for (key, value) in &self.starts {
            let put = self.store.invoke(&mut contents, "put", &[key.clone(), value.clone()]);
            debug_assert!(put.is_some(), "a put is always possible");
        }
        contents
    }

    fn invoke(&self, contents: &mut Contents, method: &str, args: &[Value]) -> Option<Value> {
        self.store.invoke(contents, method, args)
    }

    fn methods(&self) -> &[Method] {
        Specification::methods(&self.store)
    }

    fn part(&self, method: &str, args: &[Value]) -> Option<Value> {
        Specification::part(&self.store, method, args)
    }

    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool {
        Specification::is_read_only(&self.store, method, returns)
    }

    fn looks_ahead(&self) -> bool {
        true
    }

    fn can_reach(&self, contents: &Contents, goal: &Goal<'_>, by: &[CallRef<'_>]) -> bool {
        Specification::can_reach(&self.store, contents, goal, by)
    }

    fn overwrites(&self, method: &str, args: &[Value]) -> bool {
        Specification::overwrites(&self.store, method, args)
    }
}
