//! One object per key, as Jepsen's `independent` workloads have it.

use std::collections::BTreeMap;
use std::sync::Arc;

use consistory_history::Value;

use crate::footprint::{Heap, allocated};
use crate::specification::{CallRef, Goal, Method, Object, Operation, Specification, State};

/// An object for each key: the first argument of every call is the key, and the rest of the call
/// concerns the object of that key only.
pub struct Keyed {
    object: Arc<dyn Object>,
    methods: Vec<Method>,
    initial: State,
}

impl Keyed {
    /// Builds an object per key.
    pub fn new(object: Arc<dyn Object>) -> Self {
        let with_key = |method: &Method| {
            let key = Box::from("key");
            let parameters = std::iter::once(key).chain(method.parameters.iter().cloned());
            Method { parameters: parameters.collect(), ..method.clone() }
        };
        let methods = object.methods().iter().map(with_key).collect();
        Keyed { methods, initial: object.initial(), object }
    }

    fn state<'s>(&'s self, states: &'s BTreeMap<Value, State>, key: &Value) -> &'s State {
        states.get(key).unwrap_or(&self.initial)
    }
}

/// Splits the arguments of a call into the key and the arguments for its object.
fn split(args: &[Value]) -> Option<(&Value, &[Value])> {
    args.split_first()
}

impl Specification for Keyed {
    /// The keys whose objects are not in their first state, so that equal contents are equal states.
    type State = BTreeMap<Value, State>;

    fn initial(&self) -> Self::State {
        BTreeMap::new()
    }

    fn invoke(&self, states: &mut Self::State, method: &str, args: &[Value]) -> Option<Value> {
        let (key, args) = split(args)?;
        let mut state = self.state(states, key).clone();
        let returned = self.object.invoke(&mut state, method, args)?;
        if state == self.initial {
            states.remove(key);
        } else {
            states.insert(key.clone(), state);
        }
        Some(returned)
    }

    fn methods(&self) -> &[Method] {
        &self.methods
    }

    fn part(&self, _: &str, args: &[Value]) -> Option<Value> {
        args.first().cloned()
    }

    fn looks_ahead(&self) -> bool {
        self.object.looks_ahead()
    }

    fn can_reach(&self, states: &Self::State, goal: &Goal<'_>, by: &[CallRef<'_>]) -> bool {
        let Some((key, args)) = split(goal.args) else { return true };
        let by: Vec<CallRef<'_>> = by
            .iter()
            .filter_map(|(method, args)| Some((*method, split(args)?)))
            .filter_map(|(method, (other, args))| (other == key).then_some((method, args)))
            .collect();
        let goal = Goal { args, ..*goal };
        self.object.can_reach(self.state(states, key), &goal, &by)
    }

    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool {
        self.object.is_read_only(method, returns)
    }

    fn overwrites(&self, method: &str, args: &[Value]) -> bool {
        // If the object has parts of its own, it means one of them, and not the whole of the key.
        split(args).is_some_and(|(_, args)| {
            self.object.part(method, args).is_none() && self.object.overwrites(method, args)
        })
    }

    fn depends(&self, states: &Self::State, op: &Operation<'_>, other: &Operation<'_>) -> bool {
        let (Some((key, args)), Some((other_key, other_args))) =
            (split(op.args), split(other.args))
        else {
            return true;
        };
        key == other_key
            && self.object.depends(
                self.state(states, key),
                &Operation { args, ..*op },
                &Operation { args: other_args, ..*other },
            )
    }

    fn footprint(&self, states: &Self::State) -> usize {
        let each = |(key, state): (&Value, &State)| {
            allocated(size_of::<(Value, State)>()) + key.heap() + self.object.footprint(state)
        };
        size_of::<Self::State>() + states.iter().map(each).sum::<usize>()
    }

    fn show(&self, states: &Self::State) -> Option<String> {
        let shown = |(key, state)| Some(format!("{key}: {}", self.object.show(state)?));
        let all: Option<Vec<String>> = states.iter().map(shown).collect();
        Some(format!("{{{}}}", all?.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::find;
    use crate::specification::State;

    fn call(object: &dyn Object, state: &mut State, method: &str, args: &[i64]) -> Option<Value> {
        let args: Vec<Value> = args.iter().map(|&arg| Value::Int(arg)).collect();
        object.invoke(state, method, &args)
    }

    #[test]
    fn every_key_has_an_object_of_its_own() {
        let sets = find("keyed(set)").unwrap();
        let mut state = sets.initial();
        assert_eq!(call(&*sets, &mut state, "add", &[1, 7]), Some(Value::Bool(true)));
        assert_eq!(call(&*sets, &mut state, "add", &[2, 7]), Some(Value::Bool(true)));
        assert_eq!(call(&*sets, &mut state, "add", &[1, 7]), Some(Value::Bool(false)));
        let seven = Value::List(vec![Value::Int(7)]);
        assert_eq!(call(&*sets, &mut state, "toArray", &[2]), Some(seven));
        assert_eq!(call(&*sets, &mut state, "toArray", &[3]), Some(Value::List(Vec::new())));
        // A key that is back in its first state is as if it had never been used.
        call(&*sets, &mut state, "clear", &[1]);
        call(&*sets, &mut state, "remove", &[2, 7]);
        assert!(state == sets.initial());
        assert!(sets.resolve("read", 1).is_ok() && sets.resolve("read", 0).is_err());
    }

    #[test]
    fn a_keyed_object_needs_an_object_that_starts_by_itself() {
        for name in ["keyed", "keyed()", "keyed(nothing)", "keyed(keyed(set))", "keyed(bank)"] {
            assert!(find(name).is_err(), "{name}");
        }
        for name in ["keyed(queue(3))", "keyed( register(0) )", "keyed(bank(2*10))"] {
            assert!(find(name).is_ok(), "{name}");
        }
    }
}
