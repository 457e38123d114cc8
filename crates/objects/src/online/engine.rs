//! The common interface of the engines that judge calls online.

use consistory_history::Value;
use consistory_spec::{Returns, State};

use super::{OnlineError, RunningId};

/// An engine that judges the calls of an object, or of one part of it, online.
///
/// If an engine does not support a call, it returns [`Taken::No`], and the next engine receives its
/// past as a few equivalent calls ([`calls`](Engine::calls)).
pub(super) trait Engine {
    /// Adds a call, if this engine supports it.
    fn invoke(&mut self, id: RunningId, call: &Incoming<'_>) -> Taken;

    /// Adds a return; at most `limit` configurations may be tried.
    fn complete(
        &mut self,
        id: RunningId,
        returned: Option<&Value>,
        limit: usize,
    ) -> Result<Completed, OnlineError>;

    /// Records that a call had no effect.
    fn fail(&mut self, id: RunningId);

    /// Records that a call is indeterminate.
    fn abandon(&mut self, id: RunningId);

    /// Ends the input, and judges the returns that are not yet judged.
    fn finish(&mut self) -> Result<Completed, OnlineError> {
        Ok(Completed::Explained)
    }

    /// Gives up the first indeterminate calls until at most `most` different ones remain.
    fn keep_indeterminate(&mut self, most: usize);

    /// Gives up the first indeterminate call, and returns whether there was one.
    fn give_up_one(&mut self) -> bool {
        false
    }

    /// Returns the calls given up since the last query.
    fn take_given_up(&mut self) -> GivenUpCalls;

    /// Checks whether another engine can replace a search of very many configurations.
    fn has_alternative(&self) -> bool {
        false
    }

    /// Returns the amount of stored data.
    fn size(&self) -> EngineSize;

    /// Checks whether the state is the initial one.
    fn is_initial(&self) -> bool;

    /// Returns the content of the part with a key, if no call may still take effect.
    fn rest(&self, _key: &Value) -> Option<Rest> {
        None
    }

    /// Returns a few calls that are equivalent to the past.
    fn calls(&mut self) -> Vec<PastCall> {
        Vec::new()
    }

    /// Returns the number of last returns that are not yet judged.
    fn unjudged(&self) -> usize {
        0
    }

    /// Asserts the invariants of the engine's tables.
    fn check_invariants(&self);
}

/// An incoming call.
#[derive(Clone, Copy)]
pub(super) struct Incoming<'a> {
    pub(super) method: &'a str,
    pub(super) args: &'a [Value],
    pub(super) returns: Returns,
}

/// Whether an engine supports a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    Yes,
    No,
}

/// The result of an engine for a return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Completed {
    /// The return is explained, or will be judged later.
    Explained,
    /// The return of a call is not explained.
    Unexplained {
        call: RunningId,
        /// A few values that the call could have returned.
        possible: Vec<Value>,
        /// Number of configurations that explained the past before this return.
        configurations: usize,
        /// Whether a call that was given up might explain it.
        certainty: Certainty,
    },
    /// There are too many configurations; the state is unchanged.
    TooMany,
}

/// Whether a violation holds for every effect of the calls that were given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Certainty {
    Certain,
    Doubtful,
}

/// Calls that an engine gave up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct GivenUpCalls {
    pub(super) count: u64,
    /// Whether every later violation of the part is in doubt because of them.
    pub(super) casts_doubt: bool,
}

/// The amount of data that an engine stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct EngineSize {
    pub(super) configurations: usize,
    /// Number of indeterminate calls.
    pub(super) indeterminate: usize,
    /// Number of other stored calls and values of registers.
    pub(super) kept: usize,
}

/// The content of a part in which no call may still take effect.
pub(super) enum Rest {
    /// One of some states.
    States(Box<[State]>),
    /// The state after a first call of a method with the key and possibly another argument.
    After(Box<str>, Option<Value>),
    /// A register with a value.
    Holds(Value),
}

/// A call that represents others of the past.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PastCall {
    /// Its id, if it is running.
    pub(super) id: Option<RunningId>,
    pub(super) access: Access,
    pub(super) start: i64,
    pub(super) end: Ending,
    /// The value that the call read.
    pub(super) returns: Option<Value>,
}

/// The effect of a call on a register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Read,
    Write(Value),
}

/// The end of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// The call returned at a time.
    At(i64),
    Running,
    Indeterminate,
}
