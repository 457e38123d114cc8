//! What the ways to judge calls as they come have in common.

use consistory_history::Value;
use consistory_spec::{Returns, State};

use super::{OnlineError, RunningId};

/// A way to judge the calls of an object, or of one part of it, as they come.
///
/// An engine that cannot take a call hands over to the next one: it says [`Taken::No`], and its past
/// is told to the next engine as a few calls ([`calls`](Engine::calls)).
pub(super) trait Engine {
    /// Takes a call, if this engine can judge it.
    fn invoke(&mut self, id: RunningId, call: &Incoming<'_>) -> Taken;

    /// Takes a return; at most `limit` configurations may be tried.
    fn complete(
        &mut self,
        id: RunningId,
        returned: Option<&Value>,
        limit: usize,
    ) -> Result<Completed, OnlineError>;

    /// Takes that a call had no effect.
    fn fail(&mut self, id: RunningId);

    /// Takes that a call is indeterminate: nobody will know whether it had an effect.
    fn abandon(&mut self, id: RunningId);

    /// Takes the end, and judges the returns that are not judged yet.
    fn finish(&mut self) -> Result<Completed, OnlineError> {
        Ok(Completed::Explained)
    }

    /// Gives up the first indeterminate calls until `most` different ones are left.
    fn keep_indeterminate(&mut self, most: usize);

    /// Gives up the first indeterminate call, and returns whether there was one.
    fn give_up_one(&mut self) -> bool {
        false
    }

    /// Returns what was given up since it was asked last.
    fn take_given_up(&mut self) -> GivenUpCalls;

    /// Checks whether there is another way than to try very many configurations.
    fn has_alternative(&self) -> bool {
        false
    }

    /// Returns how much is kept.
    fn size(&self) -> EngineSize;

    /// Checks whether everything is as it was at first.
    fn is_initial(&self) -> bool;

    /// Returns what the part with a key holds, if nothing may still take effect.
    fn rest(&self, _key: &Value) -> Option<Rest> {
        None
    }

    /// Returns a few calls after which everything is explained that is explained now.
    fn calls(&mut self) -> Vec<PastCall> {
        Vec::new()
    }

    /// Counts the last returns that are not judged yet.
    fn unjudged(&self) -> usize {
        0
    }

    /// Asserts what always holds for the engine's tables.
    fn check_invariants(&self);
}

/// A call as it comes.
#[derive(Clone, Copy)]
pub(super) struct Incoming<'a> {
    pub(super) method: &'a str,
    pub(super) args: &'a [Value],
    pub(super) returns: Returns,
}

/// Whether an engine can judge a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    Yes,
    No,
}

/// What an engine says about a return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Completed {
    /// Something explains it, or it will be judged later.
    Explained,
    /// Nothing explains the return of a call.
    Unexplained {
        call: RunningId,
        /// A few values that it could have returned.
        possible: Vec<Value>,
        /// The number of configurations that explained what had happened before.
        configurations: usize,
        /// Whether a call that was given up might explain it.
        certainty: Certainty,
    },
    /// There are too many configurations; nothing has changed.
    TooMany,
}

/// Whether something is wrong whatever the calls did that were given up.
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

/// How much an engine keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct EngineSize {
    pub(super) configurations: usize,
    /// The indeterminate calls.
    pub(super) indeterminate: usize,
    /// The calls that are kept beside, and the values of registers.
    pub(super) kept: usize,
}

/// What a part is in which nothing may still take effect.
pub(super) enum Rest {
    /// One of some states.
    States(Box<[State]>),
    /// The state after a first call of a method with the key and perhaps another argument.
    After(Box<str>, Option<Value>),
    /// A register with a value.
    Holds(Value),
}

/// A call that stands for others of the past.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PastCall {
    /// Its id, if it is running.
    pub(super) id: Option<RunningId>,
    pub(super) access: Access,
    pub(super) start: i64,
    pub(super) end: Ending,
    /// The value that it read.
    pub(super) returns: Option<Value>,
}

/// What a call does to a register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Read,
    Write(Value),
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// It returned at a time.
    At(i64),
    Running,
    Indeterminate,
}
