//! Client programs: the sequence of calls of each thread.

use std::fmt;
use std::str::FromStr;

use consistory_formats::{Diagnostics, Format, parse_str};
use consistory_history::{Action, Value, is_plain_word, write_quoted};

/// A call that a thread makes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Call {
    /// The method, by any name in the object's specification.
    pub method: Box<str>,
    /// The arguments.
    pub args: Vec<Value>,
}

impl fmt::Display for Call {
    /// Writes the call in the text notation of histories, without a return.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In a history without returns, these five names would be parsed as operations of
        // registers.
        let is_taken = matches!(&*self.method, "r" | "w" | "read" | "write" | "rmw");
        if is_plain_word(&self.method) && !is_taken {
            f.write_str(&self.method)?;
        } else {
            write_quoted(&self.method, f)?;
        }
        f.write_str("(")?;
        for (i, arg) in self.args.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{arg}")?;
        }
        f.write_str(")")
    }
}

/// A client program: a sequence of calls for each thread, all on one object.
///
/// Its text is a history without returns, and can be parsed again:
///
/// ```
/// use consistory_harness::Program;
///
/// let text = "t0: put(0,1) put(0,2)\nt1: get(0)";
/// let program: Program = text.parse().unwrap();
/// assert_eq!(program.threads[1][0].to_string(), "get(0)");
/// assert_eq!(program.to_string(), text);
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Program {
    /// The calls of each thread.
    pub threads: Vec<Vec<Call>>,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (t, calls) in self.threads.iter().enumerate() {
            let line_break = if t > 0 { "\n" } else { "" };
            write!(f, "{line_break}t{t}:")?;
            for call in calls {
                write!(f, " {call}")?;
            }
        }
        Ok(())
    }
}

/// The reason why a text is not a program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not in the notation of histories.
    #[error("{0}")]
    Notation(Diagnostics),
    /// The text does not contain exactly one program.
    #[error("there are {found} programs instead of one")]
    Count {
        /// Number of programs.
        found: usize,
    },
    /// An operation is not a call of an object.
    #[error("{op} is not a call of an object")]
    NotACall {
        /// The operation, as `session:index`.
        op: String,
    },
}

impl FromStr for Program {
    type Err = ProgramError;

    /// Parses one line per thread, `name: call call ...`; names, returns and times are ignored.
    fn from_str(text: &str) -> Result<Self, ProgramError> {
        let histories = parse_str(text, Format::Hist, "program").map_err(ProgramError::Notation)?;
        let [history] = &histories[..] else {
            return Err(ProgramError::Count { found: histories.len() });
        };
        let mut threads = Vec::new();
        for session in history.sessions() {
            let mut calls = Vec::new();
            for op in history.session_ops(session) {
                let Action::Call(id) = history.action(op) else {
                    let op = history.reference(op).to_string();
                    return Err(ProgramError::NotACall { op });
                };
                let call = history.call(id);
                let args = call.args.iter().map(|&arg| history.value(arg).clone()).collect();
                calls.push(Call { method: call.method.clone(), args });
            }
            threads.push(calls);
        }
        Ok(Program { threads })
    }
}

impl Program {
    /// Counts the calls of all threads.
    pub fn len(&self) -> usize {
        self.threads.iter().map(Vec::len).sum()
    }

    /// Checks whether there is no call.
    pub fn is_empty(&self) -> bool {
        self.threads.iter().all(Vec::is_empty)
    }

    /// Returns the program of some of the calls; threads without calls are dropped.
    pub fn filtered(&self, mut keep: impl FnMut(usize, usize) -> bool) -> Program {
        let threads = self.threads.iter().enumerate().map(|(t, calls)| {
            let kept = calls.iter().enumerate().filter(|&(i, _)| keep(t, i));
            kept.map(|(_, call)| call.clone()).collect::<Vec<_>>()
        });
        Program { threads: threads.filter(|calls| !calls.is_empty()).collect() }
    }

    /// Returns a canonical form of programs that differ only in the numbering of threads and the
    /// names of values: values are numbered by first use, separately for each argument position
    /// (the first is mostly a key), and the least such program is chosen.
    ///
    /// This is for grouping: if the order of values matters, the result may have another meaning.
    pub fn shape(&self) -> Program {
        let mut order: Vec<usize> = (0..self.threads.len()).collect();
        // With many threads there are too many orders, and sorting is sufficient.
        if order.len() > 5 {
            order.sort_by_key(|&t| &self.threads[t]);
            return self.renamed(&order);
        }
        let mut least = self.renamed(&order);
        while next_permutation(&mut order) {
            least = least.min(self.renamed(&order));
        }
        least
    }

    fn renamed(&self, order: &[usize]) -> Program {
        let mut names: Vec<Vec<&Value>> = Vec::new();
        let mut threads = Vec::with_capacity(order.len());
        for &t in order {
            let mut calls = Vec::new();
            for call in &self.threads[t] {
                let mut args = Vec::with_capacity(call.args.len());
                for (at, arg) in call.args.iter().enumerate() {
                    if names.len() <= at {
                        names.push(Vec::new());
                    }
                    let known = names[at].iter().position(|value| *value == arg);
                    if known.is_none() {
                        names[at].push(arg);
                    }
                    let number = known.unwrap_or(names[at].len() - 1);
                    args.push(Value::Int(number as i64));
                }
                calls.push(Call { method: call.method.clone(), args });
            }
            threads.push(calls);
        }
        Program { threads }
    }
}

/// Advances to the next permutation in lexicographic order. Returns whether there is one.
fn next_permutation(order: &mut [usize]) -> bool {
    let Some(at) = order.windows(2).rposition(|pair| pair[0] < pair[1]) else { return false };
    let with = order.iter().rposition(|&x| x > order[at]).unwrap_or(at + 1);
    order.swap(at, with);
    order[at + 1..].reverse();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "t0: put(0,1) get(0)\nt1: remove(0)",
            "t0: \"read\"() \"write\"(a)\nt1: \"with space\"(\"a b\",[1,null],true)",
            "t0: enqueue(1)",
        ] {
            let program: Program = text.parse().unwrap();
            assert_eq!(program.to_string(), text);
        }
        let named: Program = "alice: pop() => 3 @1..2\nbob: push(1)".parse().unwrap();
        assert_eq!(named.to_string(), "t0: pop()\nt1: push(1)");
        assert!("t0: w(x,1)".parse::<Program>().is_err());
        assert!("t0: put(1".parse::<Program>().is_err());
    }

    #[test]
    fn programs_of_one_shape_differ_in_names_only() {
        let shape = |text: &str| text.parse::<Program>().unwrap().shape();
        let of = shape("t0: put(0,1) put(0,2)\nt1: get(0)");
        assert_eq!(of, shape("t0: get(7)\nt1: put(7,5) put(7,9)"));
        assert_ne!(of, shape("t0: put(0,1) put(1,2)\nt1: get(0)"));
        let keys = shape("t0: put(0,1) put(1,2)");
        assert_eq!(
            keys,
            shape("t0: put(1,2) put(0,3)"),
            "a key is not mistaken for an equal value"
        );
        assert_ne!(of, shape("t0: put(0,1)\nt1: put(0,2) get(0)"));
    }
}
