//! The methods of a history, each looked up once in the object's specification.

use consistory_spec::Object;
use rustc_hash::FxHashMap;

use crate::calls::{CallIndex, Calls, MethodId};

/// The methods of a history, by their number of arguments.
pub(super) struct Methods<'a, 'h> {
    calls: &'a Calls<'h>,
    object: &'a dyn Object,
    known: FxHashMap<(MethodId, usize), Option<&'a str>>,
}

impl<'a, 'h> Methods<'a, 'h> {
    pub(super) fn new(calls: &'a Calls<'h>, object: &'a dyn Object) -> Self {
        Methods { calls, object, known: FxHashMap::default() }
    }

    /// Returns the name of an operation's method in the specification, if the object has it.
    pub(super) fn of(&mut self, place: CallIndex) -> Option<&'a str> {
        let arguments = self.calls.args(place).len();
        *self.known.entry((self.calls.get(place).method, arguments)).or_insert_with(|| {
            let method = self.object.resolve(self.calls.method(place), arguments);
            method.ok().flatten().map(|method| &*method.name)
        })
    }
}
