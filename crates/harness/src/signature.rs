//! The methods that a program may call, their weights, and the sources of their arguments.
//!
//! Two rules make programs effective. Keys are chosen from a small set, so that threads interfere;
//! and no two calls insert the same value, so that a returned value identifies the call that
//! inserted it. The kind of each parameter follows from the specification: a key is the part that a
//! call is confined to (see `Specification::part`), or a parameter with the name of such a key.

use consistory_history::Value;
use consistory_spec::{CallError, Effect, Object};

/// A method that programs call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The method's name.
    pub method: Box<str>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Whether it may change the object's state.
    pub is_write: bool,
    /// Weight relative to other methods.
    pub weight: u32,
}

/// The source of a parameter's arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The set of values.
    pub domain: Domain,
    /// The type of the values.
    pub sort: Sort,
}

/// The set of values that a parameter takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Domain {
    /// One of a few keys.
    Key,
    /// A value that no other call of the program inserts.
    Fresh,
    /// A value that some call of the program may have inserted.
    Used,
    /// One of these; an empty list stands for `null`.
    Of(Vec<Value>),
}

/// The type of a parameter's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sort {
    /// Integers, from 0.
    #[default]
    Int,
    /// Texts: `a`, `b`, and so on.
    Text,
    /// `false` and `true`; with only two values, few calls can insert a fresh one.
    Bool,
}

impl Sort {
    /// Returns a value by its number.
    pub fn value(self, number: u32) -> Value {
        match self {
            Sort::Int => Value::Int(i64::from(number)),
            Sort::Bool => Value::Bool(!number.is_multiple_of(2)),
            Sort::Text => {
                let letter = char::from(b'a' + (number % 26) as u8);
                Value::Str(match number / 26 {
                    0 => letter.to_string().into(),
                    more => format!("{letter}{more}").into(),
                })
            }
        }
    }
}

impl Signature {
    /// Finds the method of an object, and the sources of its arguments.
    ///
    /// An object that lists no methods accepts any: then every parameter is a key.
    pub fn of(object: &dyn Object, method: &str, arity: usize) -> Result<Signature, CallError> {
        let known = object.resolve(method, arity)?;
        let is_write = known.is_none_or(|known| known.effect == Effect::Writes);
        let domains = match known {
            None => vec![Domain::Key; arity],
            Some(known) => {
                let keys = key_names(object);
                let domain = |name: &str| match is_write {
                    _ if keys.contains(&name) => Domain::Key,
                    true if !matches!(name, "expected" | "old") => Domain::Fresh,
                    _ => Domain::Used,
                };
                let mut domains: Vec<Domain> =
                    known.parameters.iter().map(|name| domain(name)).collect();
                // A method that is confined to a part and returns whether it took effect compares
                // its second argument, such as `remove(key, value)`.
                if &*known.name == "remove"
                    && let [Domain::Key, second] = &mut domains[..]
                {
                    *second = Domain::Used;
                }
                domains
            }
        };
        let parameters =
            domains.into_iter().map(|domain| Parameter { domain, sort: Sort::Int }).collect();
        Ok(Signature { method: method.into(), parameters, is_write, weight: 1 })
    }

    /// Returns the same method with another weight.
    #[must_use]
    pub fn weighted(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }
}

/// Lists the parameter names of an object's keys.
fn key_names(object: &dyn Object) -> Vec<&str> {
    let mut names = vec!["below", "from"];
    for method in object.methods() {
        let probes: Vec<Value> = (0..method.parameters.len() as i64).map(Value::Int).collect();
        if let Some(part) = object.part(&method.name, &probes)
            && let Some(at) = probes.iter().position(|probe| *probe == part)
        {
            names.push(&method.parameters[at]);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_follow_from_the_specification() {
        use Domain::{Fresh, Key, Used};
        for (object, method, expected) in [
            ("map", "put", vec![Key, Fresh]),
            ("map", "insert", vec![Key, Fresh]),
            ("map", "get", vec![Key]),
            ("map", "remove", vec![Key, Used]),
            ("map", "replace", vec![Key, Used, Fresh]),
            ("map", "containsValue", vec![Used]),
            ("map", "higherKey", vec![Key]),
            ("map", "subMap", vec![Key, Key]),
            ("map", "size", vec![]),
            ("set", "add", vec![Key]),
            ("set", "ceiling", vec![Key]),
            ("queue", "enqueue", vec![Fresh]),
            ("queue", "contains", vec![Used]),
            ("deque", "push_front", vec![Fresh]),
            ("priority-queue", "insert", vec![Fresh]),
            ("register", "write", vec![Fresh]),
        ] {
            let object = consistory_spec::find(object).unwrap();
            let signature = Signature::of(&*object, method, expected.len()).unwrap();
            let found: Vec<Domain> = signature.parameters.into_iter().map(|p| p.domain).collect();
            assert_eq!(found, expected, "{method}");
        }
        let map = consistory_spec::find("map").unwrap();
        assert!(Signature::of(&*map, "get", 3).is_err());
        assert!(Signature::of(&*map, "fetch", 1).is_err());
    }

    #[test]
    fn texts_are_distinct() {
        let texts: std::collections::BTreeSet<Value> =
            (0..80).map(|i| Sort::Text.value(i)).collect();
        assert_eq!(texts.len(), 80);
    }
}
