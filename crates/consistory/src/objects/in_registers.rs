//! Converts calls of registers to reads and writes.

use consistory_history::{Action, Details, History, HistoryBuilder, Status, Value};
use consistory_spec::Family;

use super::NamedObject;

/// Operations converted between two questions whether to go on.
const OPS_PER_QUESTION: u32 = 1 << 15;

/// Methods of an object that consists of registers.
struct Registers {
    /// Name of the reading method.
    read: &'static str,
    /// Name of the writing method.
    write: &'static str,
    /// Whether the first argument is a key.
    is_keyed: bool,
    /// Whether a write that returns a value returns the one that it overwrites.
    returns_old: bool,
    initial: Value,
}

impl NamedObject {
    /// Converts a history of calls to reads and writes, if all calls read or write one register or
    /// one register per key: calls of `register`, and `get` and `put` of `kv` and `map`.
    ///
    /// Returns `None` for any other history. A call that never returned gets an unknown status, and
    /// so does a read whose result was not recorded.
    pub fn as_registers(&self, history: &History) -> Option<History> {
        self.as_registers_while(history, &mut || true)
    }

    /// Converts a history of calls as [`as_registers`](Self::as_registers) does; returns `None` as
    /// soon as a function, which is called again and again, returns `false`.
    pub(crate) fn as_registers_while(
        &self,
        history: &History,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<History> {
        // The object must start with the initial values of this history.
        let (None, started) = self.clone().as_calls(history).ok()? else { return None };
        let registers = started.registers()?;
        if !history.finals().is_empty() || history.first_long_transaction().is_some() {
            return None;
        }
        let mut b = HistoryBuilder::new();
        b.null_is_not_zero();
        history.name().iter().for_each(|name| b.set_name(name));
        for session in history.sessions() {
            let name = history.session_name(session);
            let own = b.session(name);
            for op in history.session_ops(session) {
                if op.0.is_multiple_of(OPS_PER_QUESTION) && !goes_on() {
                    return None;
                }
                let Action::Call(call) = history.action(op) else { return None };
                let call = history.call(call);
                let args: Vec<&Value> = call.args.iter().map(|&arg| history.value(arg)).collect();
                let (key, rest) = match (registers.is_keyed, &args[..]) {
                    (true, [key, rest @ ..]) => (key.to_string(), rest),
                    (true, []) => return None,
                    (false, rest) => ("register".to_owned(), rest),
                };
                let key = b.key(&key);
                let initial = b.value(registers.initial.clone());
                b.set_initial(key, initial);
                let time = history.time(op);
                let mut status = history.status(op);
                if time.is_some_and(|time| time.end.is_none()) && status == Status::Ok {
                    status = Status::Unknown;
                }
                let returns = call.returns.map(|returns| history.value(returns));
                // A method may have an alternative name, such as `read` for `get`.
                let method = self.known_method(&call.method).ok()?;
                let action = match (&*method, rest) {
                    (method, []) if method == registers.read => {
                        if returns.is_none() && status == Status::Ok {
                            status = Status::Unknown;
                        }
                        let value = b.value(returns.unwrap_or(&registers.initial).clone());
                        Action::Read { key, value }
                    }
                    (method, [value]) if method == registers.write && **value != Value::Null => {
                        let is_plain = match returns {
                            None => true,
                            Some(Value::Null) => !registers.returns_old,
                            Some(_) => false,
                        };
                        // A write of unknown status may have returned any value.
                        if !is_plain && status == Status::Ok {
                            return None;
                        }
                        let value = b.value((*value).clone());
                        Action::Write { key, value }
                    }
                    _ => return None,
                };
                b.push_with(own, action, Details { status, time, ..Details::default() });
            }
        }
        b.finish_while(goes_on).ok()
    }

    /// Returns the registers of the object, if it consists of registers.
    fn registers(&self) -> Option<Registers> {
        let keyed = |returns_old, initial| Registers {
            read: "get",
            write: "put",
            is_keyed: true,
            returns_old,
            initial,
        };
        match self.object().family() {
            Some(Family::Register(initial)) => Some(Registers {
                read: "read",
                write: "write",
                is_keyed: false,
                returns_old: false,
                initial,
            }),
            Some(Family::Store(initial)) => Some(keyed(false, initial)),
            None if self.is_ready() && self.name() == "map" => Some(keyed(true, Value::Null)),
            _ => None,
        }
    }
}
