//! The collections of the JDK and their methods.

use std::sync::Arc;

use consistory_harness::{Domain, Signature};
use consistory_history::Value;
use consistory_spec::{Object, find};

/// A collection of the JDK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JdkCollection {
    /// Name of the class, without its package.
    pub name: &'static str,
    /// The object that specifies it, as `consistory_spec::find` takes it.
    pub object: &'static str,
    /// Its methods, each with its number of arguments.
    methods: &'static [&'static str],
}

/// The error for a method that a collection does not have, or that is not tested here.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{collection} has no method `{method}`")]
pub struct UnknownMethod {
    /// Name of the collection.
    pub collection: &'static str,
    /// Name of the method.
    pub method: String,
    /// Names of the methods that can be called.
    pub known: Vec<&'static str>,
}

const MAP: &str = "put/2 get/1 getOrDefault/2 remove/1 remove/2 putIfAbsent/2 replace/2 replace/3 \
    containsKey/1 containsValue/1 size/0 isEmpty/0 clear/0 keySet/0 values/0 entrySet/0 putAll/1";
const HASH_MAP: &str = "mappingCount/0 contains/1 keys/0 elements/0";
const SORTED_MAP: &str = "firstKey/0 lastKey/0 firstEntry/0 lastEntry/0 pollFirstEntry/0 \
    pollLastEntry/0 lowerKey/1 floorKey/1 ceilingKey/1 higherKey/1 headMap/1 tailMap/1";
const SET: &str = "add/1 remove/1 contains/1 size/0 isEmpty/0 clear/0 toArray/0 iterator/0 \
    addAll/1 removeAll/1";
const SORTED_SET: &str = "first/0 last/0 pollFirst/0 pollLast/0 lower/1 floor/1 ceiling/1 higher/1";
const LIST: &str = "add/1 addIfAbsent/1 addAll/1 set/2 remove/1 removeAt/1 clear/0 get/1 \
    indexOf/1 lastIndexOf/1 contains/1 size/0 isEmpty/0 toArray/0 iterator/0";
const QUEUE: &str = "offer/1 poll/0 peek/0 remove/1 contains/1 size/0 isEmpty/0 clear/0 \
    toArray/0 iterator/0";
const DEQUE: &str = "addFirst/1 addLast/1 offerFirst/1 offerLast/1 pollFirst/0 pollLast/0 \
    removeFirst/0 removeLast/0 peekFirst/0 peekLast/0 getFirst/0 getLast/0 \
    removeFirstOccurrence/1 removeLastOccurrence/1";
const BLOCKING: &str = "drainTo/0";

/// The collections of the JDK that can be tested, and one that is deliberately wrong.
pub static JDK: [JdkCollection; 13] = [
    JdkCollection { name: "ConcurrentHashMap", object: "map", methods: &[MAP, HASH_MAP] },
    JdkCollection { name: "ConcurrentSkipListMap", object: "map", methods: &[MAP, SORTED_MAP] },
    JdkCollection { name: "ConcurrentSkipListSet", object: "set", methods: &[SET, SORTED_SET] },
    JdkCollection { name: "CopyOnWriteArraySet", object: "set", methods: &[SET] },
    JdkCollection { name: "CopyOnWriteArrayList", object: "list", methods: &[LIST] },
    JdkCollection { name: "ConcurrentLinkedQueue", object: "queue", methods: &[QUEUE] },
    JdkCollection { name: "LinkedBlockingQueue", object: "queue", methods: &[QUEUE, BLOCKING] },
    JdkCollection { name: "ArrayBlockingQueue", object: "queue(2)", methods: &[QUEUE, BLOCKING] },
    JdkCollection { name: "LinkedTransferQueue", object: "queue", methods: &[QUEUE, BLOCKING] },
    JdkCollection {
        name: "PriorityBlockingQueue",
        object: "priority-queue",
        methods: &[QUEUE, BLOCKING],
    },
    JdkCollection { name: "ConcurrentLinkedDeque", object: "deque", methods: &[DEQUE, QUEUE] },
    JdkCollection {
        name: "LinkedBlockingDeque",
        object: "deque",
        methods: &[DEQUE, QUEUE, BLOCKING],
    },
    JdkCollection { name: "Broken", object: "map", methods: &[MAP] },
];

impl JdkCollection {
    /// Finds a collection by the name of its class.
    pub fn named(name: &str) -> Option<&'static JdkCollection> {
        JDK.iter().find(|collection| collection.name == name)
    }

    /// Returns the sequential specification of the collection.
    pub fn specification(&self) -> Arc<dyn Object> {
        find(self.object).expect("the object of a collection is a ready one")
    }

    /// Lists the methods with the numbers of their arguments.
    pub fn methods(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.methods.iter().flat_map(|list| list.split_whitespace()).map(|method| {
            let (name, arguments) = method.split_once('/').expect("a slash is in each");
            (name, arguments.parse().expect("a number is after the slash"))
        })
    }

    /// Returns the signatures of the methods with the given names, or of all methods if `only` is
    /// empty.
    pub fn signatures(&self, only: &[String]) -> Result<Vec<Signature>, UnknownMethod> {
        if let Some(method) = only.iter().find(|name| self.methods().all(|(m, _)| m != **name)) {
            let mut known: Vec<&str> = self.methods().map(|(name, _)| name).collect();
            known.dedup();
            return Err(UnknownMethod { collection: self.name, method: method.clone(), known });
        }
        let object = self.specification();
        let is_asked = |name: &str| only.is_empty() || only.iter().any(|asked| asked == name);
        let signature = |(name, arguments): (&'static str, usize)| {
            let mut signature = Signature::of(&*object, name, arguments)
                .expect("the specification has the methods of its collections");
            let method = object.resolve(name, arguments).ok().flatten();
            let names = method.iter().flat_map(|method| &method.parameters);
            for (parameter, parameter_name) in signature.parameters.iter_mut().zip(names) {
                if let Some(domain) = self.domain(name, parameter_name) {
                    parameter.domain = domain;
                }
            }
            signature
        };
        Ok(self.methods().filter(|(name, _)| is_asked(name)).map(signature).collect())
    }

    /// Returns the domain of a parameter if its name does not determine it.
    fn domain(&self, method: &str, parameter: &str) -> Option<Domain> {
        let int = Value::Int;
        let pair = |key, value| Value::List(vec![int(key), int(value)]);
        Some(match parameter {
            "entries" => Domain::Of(vec![
                Value::List(vec![pair(0, 90), pair(1, 91)]),
                Value::List(vec![pair(1, 92), pair(2, 93)]),
            ]),
            "elements" => Domain::Of(vec![
                Value::List(vec![int(0), int(1)]),
                Value::List(vec![int(1), int(2)]),
            ]),
            "index" => Domain::Of(vec![int(0), int(1), int(2)]),
            "element" if self.object == "list" => Domain::Key,
            "element" if self.object != "set" && method.starts_with("remove") => Domain::Used,
            _ => return None,
        })
    }
}
