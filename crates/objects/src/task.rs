//! A history of calls and the object that they are said to be of: what is to be explained.

use std::sync::Arc;

use consistory_history::Value;
use consistory_spec::{CallError, Object, Returns};
use rustc_hash::FxHashMap;

use crate::calls::{Calls, CallsError, Place};

/// Why a history cannot be judged as one of an object.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TaskError {
    /// It is no history of calls.
    #[error(transparent)]
    Calls(#[from] CallsError),
    /// The object has no such call.
    #[error("{op}: {error}")]
    Call {
        /// The operation's reference.
        op: String,
        /// What is wrong with it.
        error: CallError,
    },
}

/// A call without its return: equal ones are held once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Invocation {
    /// The method, by the name that the object's specification knows.
    pub method: Box<str>,
    /// The arguments.
    pub args: Vec<Value>,
}

/// A history of calls, and the object that they are said to be of.
#[derive(Clone)]
pub struct Task<'h> {
    calls: Calls<'h>,
    object: Arc<dyn Object>,
    invocations: Vec<Invocation>,
    /// For each operation its invocation.
    invocation_of: Vec<u32>,
    /// For each operation its return, if that is known and means something.
    returns: Vec<Option<Value>>,
    /// For each operation whether it changes no state where it returns what it did.
    is_pure: Vec<bool>,
    /// For each operation whether it changes no state, whatever it returns.
    is_read_only: Vec<bool>,
}

impl<'h> Task<'h> {
    /// Looks at a history as one of an object.
    pub fn new(calls: Calls<'h>, object: Arc<dyn Object>) -> Result<Self, TaskError> {
        let mut ids: FxHashMap<Invocation, u32> = FxHashMap::default();
        let mut invocations = Vec::new();
        let mut invocation_of = Vec::with_capacity(calls.len());
        let mut returns = Vec::with_capacity(calls.len());
        let mut is_pure = Vec::with_capacity(calls.len());
        let mut is_read_only = Vec::with_capacity(calls.len());
        for place in calls.places() {
            let args: Vec<Value> =
                calls.args(place).iter().map(|&arg| calls.value(arg).clone()).collect();
            let resolved = object.resolve(calls.method(place), args.len()).map_err(|error| {
                let op = calls.history().reference(calls.get(place).id).to_string();
                TaskError::Call { op, error }
            })?;
            let kind = resolved.map_or(Returns::Value, |method| method.returns);
            let method: Box<str> = match resolved {
                Some(method) => method.name.clone(),
                None => calls.method(place).into(),
            };
            let recorded = calls.returns(place).map(|id| calls.value(id));
            let recorded = match (kind, recorded) {
                (Returns::Nothing, _) | (_, None) => None,
                (Returns::Unordered, Some(Value::List(list))) => {
                    let mut list = list.clone();
                    list.sort();
                    Some(Value::List(list))
                }
                (_, Some(value)) => Some(value.clone()),
            };
            is_read_only.push(object.is_read_only(&method, None));
            is_pure.push(object.is_read_only(&method, recorded.as_ref()));
            returns.push(recorded);
            let invocation = Invocation { method, args };
            let id = *ids.entry(invocation).or_insert_with_key(|invocation| {
                invocations.push(invocation.clone());
                invocations.len() as u32 - 1
            });
            invocation_of.push(id);
        }
        Ok(Task { calls, object, invocations, invocation_of, returns, is_pure, is_read_only })
    }

    /// Gives the same task with only the returns of some operations looked at: all others count as
    /// pending. Places stay what they are.
    pub fn relaxed(&self, has_returned: impl Fn(Place) -> bool) -> Task<'h> {
        let mut task = self.clone();
        task.calls = self.calls.relaxed(&has_returned);
        for place in self.calls.places().filter(|&place| !has_returned(place)) {
            task.returns[place.index()] = None;
            task.is_pure[place.index()] = self.is_read_only(place);
        }
        task
    }

    /// Gives the calls.
    pub fn calls(&self) -> &Calls<'h> {
        &self.calls
    }

    /// Gives the object.
    pub fn object(&self) -> &dyn Object {
        &*self.object
    }

    /// Counts the operations.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Says whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Gives an operation's call without its return.
    pub fn invocation(&self, place: Place) -> &Invocation {
        &self.invocations[self.invocation_of[place.index()] as usize]
    }

    /// Gives what an operation has to return; `None` if anything will do.
    pub fn returns(&self, place: Place) -> Option<&Value> {
        self.returns[place.index()].as_ref()
    }

    /// Says whether an operation changes no state where it returns what it did.
    pub fn is_pure(&self, place: Place) -> bool {
        self.is_pure[place.index()]
    }

    /// Says whether an operation changes no state, whatever it returns: an operation that sees it
    /// does not ask what it returned.
    pub fn is_read_only(&self, place: Place) -> bool {
        self.is_read_only[place.index()]
    }

    /// Says whether an operation has to be in the linearization.
    pub fn is_pending(&self, place: Place) -> bool {
        self.calls.get(place).is_pending
    }

    /// Lists the distinct methods, by the names that the specification knows.
    pub fn methods(&self) -> Vec<&str> {
        let mut methods: Vec<&str> = Vec::new();
        for invocation in &self.invocations {
            if !methods.contains(&&*invocation.method) {
                methods.push(&invocation.method);
            }
        }
        methods
    }

    /// Gives the invocations; [`invocation_of`](Self::invocation_of) indexes them.
    pub(crate) fn invocations(&self) -> &[Invocation] {
        &self.invocations
    }

    /// Gives the number of an operation's invocation.
    pub(crate) fn invocation_of(&self, place: Place) -> u32 {
        self.invocation_of[place.index()]
    }
}
