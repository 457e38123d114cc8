//! Sequential objects: their states, and the effect and return of each call.
//!
//! [`Specification`] is the trait that an author implements, with a state of any type. [`Object`]
//! is its type-erased form, which searches, checkers and the command line use; every specification
//! implements it.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};

use consistory_history::Value;

/// A sequential specification: the behaviour of an object whose methods are called one at a time.
///
/// Two methods are required. `invoke` must depend on the state and the call only, so a search may
/// cache its results. States are stored and compared, so nothing has to be undone.
///
/// ```
/// use consistory_history::Value;
/// use consistory_spec::Specification;
///
/// /// A flag that can be raised once.
/// struct Flag;
///
/// impl Specification for Flag {
///     type State = bool;
///
///     fn initial(&self) -> bool {
///         false
///     }
///
///     fn invoke(&self, raised: &mut bool, method: &str, _args: &[Value]) -> Option<Value> {
///         match method {
///             "raise" => Some(Value::Bool(!std::mem::replace(raised, true))),
///             "isRaised" => Some(Value::Bool(*raised)),
///             _ => None,
///         }
///     }
/// }
/// ```
pub trait Specification: Send + Sync + 'static {
    /// The state of the object.
    type State: Clone + Eq + Hash + Send + Sync + 'static;

    /// Returns the state before the first call.
    fn initial(&self) -> Self::State;

    /// Performs a call and returns its result; `None` if the call is not possible in this state,
    /// such as locking a held lock. The state is then discarded.
    ///
    /// `method` is a name of [`methods`](Self::methods), never an alias, and the number of
    /// arguments is one that the method accepts.
    fn invoke(&self, state: &mut Self::State, method: &str, args: &[Value]) -> Option<Value>;

    /// Lists the methods; an empty list stands for any, with any arguments.
    fn methods(&self) -> &[Method] {
        &[]
    }

    /// Returns the part of the object that a call is confined to, such as the key of a map's `put`.
    ///
    /// If every call of a history has a part, the parts are independent objects: a call neither
    /// changes nor observes another part. `None` if the call may concern the whole object.
    fn part(&self, _method: &str, _args: &[Value]) -> Option<Value> {
        None
    }

    /// Returns whether [`can_reach`](Self::can_reach) ever returns `false`, so that it is worth
    /// calling.
    fn looks_ahead(&self) -> bool {
        false
    }

    /// Returns whether some of the calls `by`, in some order, may lead from a state to one in which
    /// the goal, a call that changes no state, returns its recorded value.
    ///
    /// May over-approximate: `true` is always right. With it a search notices at once, and not at
    /// the next read, that it appended in the wrong order.
    fn can_reach(&self, _state: &Self::State, _goal: &Goal<'_>, _by: &[CallRef<'_>]) -> bool {
        true
    }

    /// Returns whether a call of the method that returned `returns` changes no state in which it is
    /// possible, such as a failed compare-and-set. May under-approximate: `false` is always right.
    ///
    /// `returns` is `None` if the return is unknown; a method that changes nothing then also leaves
    /// a state unchanged in which it is not possible.
    fn is_read_only(&self, method: &str, _returns: Option<&Value>) -> bool {
        self.methods().iter().any(|m| *m.name == *method && m.effect == Effect::Reads)
    }

    /// Returns `true` only if a call is possible in every state, returns no information, and leaves a
    /// state that does not depend on the previous one, such as a register's `write`. For an object
    /// with parts, the state is that of the part that the call is confined to.
    ///
    /// May under-approximate: `false` is always right. Among such calls with no read in between only
    /// the last one matters, so a search has fewer orders to try.
    fn overwrites(&self, _method: &str, _args: &[Value]) -> bool {
        false
    }

    /// Returns `false` only if, starting from `state`, it makes no difference to `op` whether `other`
    /// comes first.
    ///
    /// May over-approximate: `true` is always right. Let S be any set of operations for which the
    /// answer is `false`, performed in any order from `state` on. Then
    /// - if `op` is possible in `state` with its recorded return, it is also possible after S with
    ///   the same return, S is possible after `op`, and both orders lead to the same state;
    /// - otherwise `op` is not possible after S either.
    ///
    /// A search then need not try the operations of S before `op`: for example, an insertion at the
    /// back of a queue that is not empty before a removal from its front. And if no remaining
    /// operation depends on another one, the search can stop.
    fn depends(&self, _state: &Self::State, op: &Operation<'_>, other: &Operation<'_>) -> bool {
        let part = |op: &Operation<'_>| self.part(op.method, op.args);
        part(op).is_none_or(|one| part(other).is_none_or(|another| one == another))
    }

    /// Returns the family of the object, if there are theorems about it.
    fn family(&self) -> Option<Family> {
        None
    }

    /// Returns the bytes of a state, heap included.
    ///
    /// Searches hold many states and count them against their memory budget. The default counts no
    /// bytes on the heap: a specification whose states grow should override it, or a search may
    /// exceed its memory limit.
    fn footprint(&self, _state: &Self::State) -> usize {
        size_of::<Self::State>()
    }

    /// Formats a state for people, such as `[1, 2]` for a queue; `None` if there is no notation.
    fn show(&self, _state: &Self::State) -> Option<String> {
        None
    }
}

/// Families of objects with known theorems: which calls can be left out of a linearization, and how
/// to find one in polynomial time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Family {
    /// A register with this initial value.
    Register(Value),
    /// A set.
    Set,
    /// An unbounded queue.
    Queue,
    /// An unbounded stack.
    Stack,
    /// A priority queue that removes the least element first.
    LeastFirst,
    /// A priority queue that removes the greatest element first.
    GreatestFirst,
    /// A store of texts, lists or other values by key, with this initial value: `put`, `append` and
    /// `get`.
    Store(Value),
    /// A counter with this initial value.
    Counter(i64),
    /// An unbounded deque.
    Deque,
}

/// A call: its method and its arguments.
pub type CallRef<'a> = (&'a str, &'a [Value]);

/// A call with its return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation<'a> {
    /// The method.
    pub method: &'a str,
    /// The arguments.
    pub args: &'a [Value],
    /// The return; `None` if any value is allowed.
    pub returns: Option<&'a Value>,
}

/// A call that changes no state, with its return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Goal<'a> {
    /// The method.
    pub method: &'a str,
    /// The arguments.
    pub args: &'a [Value],
    /// The return.
    pub returns: &'a Value,
}

/// Whether calls of a method may change the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Never.
    Reads,
    /// Perhaps.
    Writes,
}

/// The return of a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returns {
    /// A value that the specification determines.
    Value,
    /// A list whose order has no meaning; recorded lists are sorted before they are compared.
    Unordered,
    /// Nothing: a recorded value is ignored.
    Nothing,
}

/// A method of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Method {
    /// Name in the specification.
    pub name: Box<str>,
    /// The names of its parameters.
    pub parameters: Vec<Box<str>>,
    /// Other names.
    pub aliases: Vec<Box<str>>,
    /// Whether it may change the state.
    pub effect: Effect,
    /// The return.
    pub returns: Returns,
    /// The word for the result, such as `bool`, `count` or `elements`; empty if there is none.
    pub result: Box<str>,
}

/// The reason why an object does not have a call.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// There is no such method.
    #[error("there is no method `{method}`; there is {}", .known.join(", "))]
    Method {
        /// The name.
        method: String,
        /// The known names.
        known: Vec<String>,
    },
    /// The method takes another number of arguments.
    #[error("`{method}` takes {}, not {found}", arguments(.expected))]
    Arguments {
        /// The method's name.
        method: String,
        /// The accepted numbers of arguments.
        expected: Vec<usize>,
        /// The given number.
        found: usize,
    },
}

/// Describes the accepted numbers of arguments.
fn arguments(numbers: &[usize]) -> String {
    let shown = numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    format!("{shown} argument{}", if numbers == [1] { "" } else { "s" })
}

/// A specification with an erased state type.
pub trait Object: Send + Sync {
    /// Returns the state before the first call.
    fn initial(&self) -> State;

    /// Performs a call; see [`Specification::invoke`].
    fn invoke(&self, state: &mut State, method: &str, args: &[Value]) -> Option<Value>;

    /// Lists the methods; see [`Specification::methods`].
    fn methods(&self) -> &[Method];

    /// Returns the part of the object that a call is confined to; see [`Specification::part`].
    fn part(&self, method: &str, args: &[Value]) -> Option<Value>;

    /// Returns whether [`can_reach`](Self::can_reach) is worth calling.
    fn looks_ahead(&self) -> bool;

    /// Returns whether some calls may lead to a goal; see [`Specification::can_reach`].
    fn can_reach(&self, state: &State, goal: &Goal<'_>, by: &[CallRef<'_>]) -> bool;

    /// Returns whether a call changes no state; see [`Specification::is_read_only`].
    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool;

    /// Returns whether a call overwrites the whole state; see [`Specification::overwrites`].
    fn overwrites(&self, method: &str, args: &[Value]) -> bool;

    /// Returns whether one operation may affect another; see [`Specification::depends`].
    fn depends(&self, state: &State, op: &Operation<'_>, other: &Operation<'_>) -> bool;

    /// Returns the family of the object; see [`Specification::family`].
    fn family(&self) -> Option<Family>;

    /// Returns the specification itself, so that its type can be tested.
    ///
    /// The certificate checker trusts hints only of the built-in objects, which it recognises by
    /// their types.
    fn as_any(&self) -> &dyn Any;

    /// Returns the bytes of a state; see [`Specification::footprint`].
    fn footprint(&self, state: &State) -> usize;

    /// Formats a state for people; see [`Specification::show`].
    fn show(&self, state: &State) -> Option<String>;

    /// Finds the method of a call by any of its names.
    ///
    /// Returns `None` for an object that lists no methods and so accepts any.
    fn resolve(&self, name: &str, arguments: usize) -> Result<Option<&Method>, CallError> {
        let methods = self.methods();
        if methods.is_empty() {
            return Ok(None);
        }
        let named = |m: &&Method| *m.name == *name || m.aliases.iter().any(|a| **a == *name);
        if let Some(method) = methods.iter().filter(named).find(|m| m.parameters.len() == arguments)
        {
            return Ok(Some(method));
        }
        let expected: Vec<usize> =
            methods.iter().filter(named).map(|m| m.parameters.len()).collect();
        if expected.is_empty() {
            // A method that takes different numbers of arguments is listed once for each of them.
            let mut known: Vec<String> = Vec::new();
            for method in methods {
                if !known.iter().any(|name| **name == *method.name) {
                    known.push(method.name.to_string());
                }
            }
            return Err(CallError::Method { method: name.to_owned(), known });
        }
        Err(CallError::Arguments { method: name.to_owned(), expected, found: arguments })
    }
}

impl<S: Specification> Object for S {
    fn initial(&self) -> State {
        State(Box::new(Specification::initial(self)))
    }

    fn invoke(&self, state: &mut State, method: &str, args: &[Value]) -> Option<Value> {
        let state = state.0.as_any_mut().downcast_mut::<S::State>();
        Specification::invoke(
            self,
            state.expect("a state is of the object that made it"),
            method,
            args,
        )
    }

    fn methods(&self) -> &[Method] {
        Specification::methods(self)
    }

    fn part(&self, method: &str, args: &[Value]) -> Option<Value> {
        Specification::part(self, method, args)
    }

    fn looks_ahead(&self) -> bool {
        Specification::looks_ahead(self)
    }

    fn can_reach(&self, state: &State, goal: &Goal<'_>, by: &[CallRef<'_>]) -> bool {
        let state = state.0.as_any().downcast_ref::<S::State>();
        let state = state.expect("a state is of the object that made it");
        Specification::can_reach(self, state, goal, by)
    }

    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool {
        Specification::is_read_only(self, method, returns)
    }

    fn overwrites(&self, method: &str, args: &[Value]) -> bool {
        Specification::overwrites(self, method, args)
    }

    fn depends(&self, state: &State, op: &Operation<'_>, other: &Operation<'_>) -> bool {
        let state = state.0.as_any().downcast_ref::<S::State>();
        let state = state.expect("a state is of the object that made it");
        Specification::depends(self, state, op, other)
    }

    fn family(&self) -> Option<Family> {
        Specification::family(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn footprint(&self, state: &State) -> usize {
        let state = state.0.as_any().downcast_ref::<S::State>();
        Specification::footprint(self, state.expect("a state is of the object that made it"))
    }

    fn show(&self, state: &State) -> Option<String> {
        let state = state.0.as_any().downcast_ref::<S::State>();
        Specification::show(self, state.expect("a state is of the object that made it"))
    }
}

/// A state of an [`Object`].
pub struct State(Box<dyn AnyState>);

impl Clone for State {
    fn clone(&self) -> Self {
        State(self.0.boxed())
    }

    fn clone_from(&mut self, other: &Self) {
        self.0.copy(&*other.0);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_equal(&*other.0)
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, mut hasher: &mut H) {
        self.0.hash_into(&mut hasher);
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("State")
    }
}

/// The operations on a state of an erased type.
trait AnyState: Any + Send + Sync {
    fn boxed(&self) -> Box<dyn AnyState>;
    fn copy(&mut self, other: &dyn AnyState);
    fn is_equal(&self, other: &dyn AnyState) -> bool;
    fn hash_into(&self, hasher: &mut dyn Hasher);
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Clone + Eq + Hash + Send + Sync + 'static> AnyState for T {
    fn boxed(&self) -> Box<dyn AnyState> {
        Box::new(self.clone())
    }

    fn copy(&mut self, other: &dyn AnyState) {
        let other = other.as_any().downcast_ref::<T>();
        self.clone_from(other.expect("states of one object have one type"));
    }

    fn is_equal(&self, other: &dyn AnyState) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
