//! A task: a history of calls, and the object that they are claimed to belong to.

use std::borrow::Cow;
use std::sync::Arc;

use consistory_history::{Value, ValueId};
use consistory_spec::{CallError, Object, Operation, Returns};
use rustc_hash::FxHashMap;

use crate::calls::{CallIndex, Calls, CallsError, MethodId};

/// Reason why a history cannot be judged as calls of an object.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TaskError {
    /// The history does not consist of calls.
    #[error(transparent)]
    Calls(#[from] CallsError),
    /// The object has no such call.
    #[error("{op}: {error}")]
    Call {
        /// The operation's reference.
        op: String,
        /// The reason.
        error: CallError,
    },
}

/// A call without its return; equal ones are stored once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Invocation {
    /// The method, by its name in the object's specification.
    pub method: Box<str>,
    /// The arguments.
    pub args: Vec<Value>,
}

/// A history of calls, and the object that they are claimed to belong to.
#[derive(Clone)]
pub struct Task<'h> {
    calls: Calls<'h>,
    object: Arc<dyn Object>,
    table: Arc<TaskTable<'h>>,
    /// Invocation of each operation.
    invocation_of: Vec<u32>,
    /// Return of each operation, if it is known and meaningful.
    returns: Vec<Option<u32>>,
    /// Whether each operation changes no state if it returns its recorded value.
    is_pure: Vec<bool>,
    /// Whether each operation changes no state, whatever it returns.
    is_read_only: Vec<bool>,
}

/// Data of the operations, shared by tasks derived from each other.
#[derive(Default)]
struct TaskTable<'h> {
    invocations: Vec<Invocation>,
    returns: Vec<Cow<'h, Value>>,
}

/// A method of the object, resolved from a name and a number of arguments in the history.
#[derive(Clone)]
struct Resolved {
    name: Box<str>,
    /// Number of the method, distinct for each name in the specification and number of arguments.
    number: u32,
    returns: Returns,
    is_read_only: bool,
}

impl<'h> Task<'h> {
    /// Builds the task of a history and an object.
    pub fn new(calls: Calls<'h>, object: Arc<dyn Object>) -> Result<Self, TaskError> {
        let mut table = TaskTable::default();
        let mut methods: FxHashMap<(MethodId, usize), Resolved> = FxHashMap::default();
        let mut numbers: FxHashMap<(Box<str>, usize), u32> = FxHashMap::default();
        let mut invocations: FxHashMap<(u32, &[ValueId]), u32> = FxHashMap::default();
        let mut values: FxHashMap<(ValueId, bool), u32> = FxHashMap::default();
        let mut invocation_of = Vec::with_capacity(calls.len());
        let mut returns = Vec::with_capacity(calls.len());
        let mut is_pure = Vec::with_capacity(calls.len());
        let mut is_read_only = Vec::with_capacity(calls.len());
        for place in calls.places() {
            let args = calls.args(place);
            let key = (calls.get(place).method, args.len());
            let method = match methods.get(&key) {
                Some(known) => known,
                None => {
                    let mut method = resolve(&calls, place, &*object)?;
                    let fresh = numbers.len() as u32;
                    let named = (method.name.clone(), args.len());
                    method.number = *numbers.entry(named).or_insert(fresh);
                    methods.entry(key).or_insert(method)
                }
            };
            let invocation = *invocations.entry((method.number, args)).or_insert_with(|| {
                let args = args.iter().map(|&arg| calls.value(arg).clone()).collect();
                table.invocations.push(Invocation { method: method.name.clone(), args });
                table.invocations.len() as u32 - 1
            });
            let recorded = calls.returns(place).filter(|_| method.returns != Returns::Nothing);
            let recorded = recorded.map(|id| {
                let is_unordered = method.returns == Returns::Unordered;
                *values.entry((id, is_unordered)).or_insert_with(|| {
                    table.returns.push(match calls.value(id) {
                        Value::List(list) if is_unordered => {
                            let mut list = list.clone();
                            list.sort();
                            Cow::Owned(Value::List(list))
                        }
                        value => Cow::Borrowed(value),
                    });
                    table.returns.len() as u32 - 1
                })
            });
            let value = recorded.map(|id| &*table.returns[id as usize]);
            is_pure.push(object.is_read_only(&method.name, value));
            is_read_only.push(method.is_read_only);
            invocation_of.push(invocation);
            returns.push(recorded);
        }
        let table = Arc::new(table);
        Ok(Task { calls, object, table, invocation_of, returns, is_pure, is_read_only })
    }

    /// Returns the same task in which only some operations have returned; all others become
    /// pending. Positions stay the same.
    pub fn relaxed(&self, has_returned: impl Fn(CallIndex) -> bool) -> Task<'h> {
        let mut task = self.clone();
        task.calls = self.calls.relaxed(&has_returned);
        for place in self.calls.places().filter(|&place| !has_returned(place)) {
            task.returns[place.index()] = None;
            task.is_pure[place.index()] = self.is_read_only(place);
        }
        task
    }

    /// Returns the task of some of the operations, sorted by start, with new positions.
    pub(crate) fn restricted(&self, places: &[CallIndex]) -> Task<'h> {
        let indices = || places.iter().map(|place| place.index());
        Task {
            calls: self.calls.restricted(places),
            object: Arc::clone(&self.object),
            table: Arc::clone(&self.table),
            invocation_of: indices().map(|i| self.invocation_of[i]).collect(),
            returns: indices().map(|i| self.returns[i]).collect(),
            is_pure: indices().map(|i| self.is_pure[i]).collect(),
            is_read_only: indices().map(|i| self.is_read_only[i]).collect(),
        }
    }

    /// Returns the same task with all operations overlapping.
    pub(crate) fn timeless(&self) -> Task<'h> {
        Task { calls: self.calls.timeless(), ..self.clone() }
    }

    /// Returns the calls.
    pub fn calls(&self) -> &Calls<'h> {
        &self.calls
    }

    /// Returns the object.
    pub fn object(&self) -> &dyn Object {
        &*self.object
    }

    /// Counts the operations.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Checks whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns an operation's call without its return.
    pub fn invocation(&self, place: CallIndex) -> &Invocation {
        &self.table.invocations[self.invocation_of[place.index()] as usize]
    }

    /// Returns the required return of an operation; `None` if any return is allowed.
    pub fn returns(&self, place: CallIndex) -> Option<&Value> {
        self.returns[place.index()].map(|id| &*self.table.returns[id as usize])
    }

    /// Returns an operation in the form that specifications use.
    pub(crate) fn operation(&self, place: CallIndex) -> Operation<'_> {
        let Invocation { method, args } = self.invocation(place);
        Operation { method, args, returns: self.returns(place) }
    }

    /// Checks whether an operation changes no state if it returns its recorded value.
    pub fn is_pure(&self, place: CallIndex) -> bool {
        self.is_pure[place.index()]
    }

    /// Checks whether an operation changes no state, whatever it returns: an operation that sees it
    /// does not depend on its return.
    pub fn is_read_only(&self, place: CallIndex) -> bool {
        self.is_read_only[place.index()]
    }

    /// Checks whether an operation is pending, so that the linearization need not contain it.
    pub fn is_pending(&self, place: CallIndex) -> bool {
        self.calls.get(place).is_pending
    }

    /// Lists the distinct methods, by their names in the specification.
    pub fn methods(&self) -> Vec<&str> {
        let mut methods: Vec<&str> = Vec::new();
        for place in self.calls.places() {
            let invocation = self.invocation(place);
            if !methods.contains(&&*invocation.method) {
                methods.push(&invocation.method);
            }
        }
        methods
    }

    /// Returns the number of distinct invocations.
    pub(crate) fn invocation_count(&self) -> usize {
        self.table.invocations.len()
    }

    /// Returns the number of an operation's invocation, an index below
    /// [`invocation_count`](Task::invocation_count).
    pub(crate) fn invocation_of(&self, place: CallIndex) -> u32 {
        self.invocation_of[place.index()]
    }
}

/// Finds the method of a call.
fn resolve(
    calls: &Calls<'_>,
    place: CallIndex,
    object: &dyn Object,
) -> Result<Resolved, TaskError> {
    let name = calls.method(place);
    let method = object.resolve(name, calls.args(place).len()).map_err(|error| {
        let op = calls.history().reference(calls.get(place).id).to_string();
        TaskError::Call { op, error }
    })?;
    let returns = method.map_or(Returns::Value, |method| method.returns);
    let name = method.map_or_else(|| name.into(), |method| method.name.clone());
    let is_read_only = object.is_read_only(&name, None);
    Ok(Resolved { name, number: 0, returns, is_read_only })
}
