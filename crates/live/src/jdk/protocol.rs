//! The messages to and from the Java program; `Clients.java` describes the protocol.

use std::fmt::Write;

use consistory_harness::{Outcome, Program};
use consistory_history::Value;

/// A line of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// An outcome and the number of runs in which it occurred.
    Outcome(Outcome, u64),
    /// There are no more outcomes.
    Done,
    /// The Java program did not accept the client program.
    Refused(String),
}

/// Formats the threads of a program as lists of calls.
pub(super) fn threads(program: &Program) -> String {
    let mut text = String::new();
    for calls in &program.threads {
        text.push('|');
        for call in calls {
            let args: Vec<String> = call.args.iter().map(ToString::to_string).collect();
            write!(text, " {}({})", call.method, args.join(",")).expect("a text takes all");
        }
    }
    text
}

/// Parses a line; `None` if the protocol has no such line.
pub(super) fn answer(line: &str, program: &Program) -> Option<Answer> {
    let (kind, rest) = line.split_once(' ')?;
    match kind {
        "d" => return Some(Answer::Done),
        "e" => return Some(Answer::Refused(rest.to_owned())),
        "o" => {}
        _ => return None,
    }
    let mut words = rest.split(' ');
    let count = words.next()?.parse().ok()?;
    let mut returns = Vec::new();
    let mut seen = Vec::new();
    for calls in &program.threads {
        let (mut thread, mut counters) = (Vec::new(), Vec::new());
        for _ in calls {
            let (value, before) = words.next()?.split_once('@')?;
            thread.push(read(value)?);
            let before: Option<Vec<u32>> = before.split(',').map(|n| n.parse().ok()).collect();
            counters.push(before.filter(|before| before.len() == program.threads.len())?);
        }
        returns.push(thread);
        seen.push(counters);
    }
    words.next().is_none().then(|| Answer::Outcome(Outcome::from_counters(returns, &seen), count))
}

/// Parses a value.
fn read(text: &str) -> Option<Value> {
    let mut rest = text;
    let value = value(&mut rest, 0)?;
    rest.is_empty().then_some(value)
}

/// Largest nesting depth of lists: a list of entries, which are lists.
const MAX_LIST_DEPTH: usize = 2;

fn value(rest: &mut &str, depth: usize) -> Option<Value> {
    if let Some(inside) = rest.strip_prefix('[') {
        if depth == MAX_LIST_DEPTH {
            return None;
        }
        *rest = inside;
        let mut list = Vec::new();
        while !rest.starts_with(']') {
            if !list.is_empty() {
                *rest = rest.strip_prefix(',')?;
            }
            list.push(value(rest, depth + 1)?);
        }
        *rest = &rest[1..];
        return Some(Value::List(list));
    }
    let (word, behind) = rest.split_at(rest.find([',', ']']).unwrap_or(rest.len()));
    *rest = behind;
    Some(match word {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match word.strip_prefix('!') {
            Some(exception) => Value::Str(exception.into()),
            None => Value::Int(word.parse().ok()?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Program {
        "t0: put(1,2) putAll([[0,1],[2,3]])\nt1: entrySet()".parse().unwrap()
    }

    #[test]
    fn programs_are_lists_of_calls() {
        assert_eq!(threads(&program()), "| put(1,2) putAll([[0,1],[2,3]])| entrySet()");
    }

    #[test]
    fn answers_are_read_back() {
        let int = Value::Int;
        let list = Value::List;
        let read = answer("o 12 null@0,0 !Boom@1,1 [[1,2],[0,-1]]@1,0", &program());
        let pairs = list(vec![list(vec![int(1), int(2)]), list(vec![int(0), int(-1)])]);
        let returns = vec![vec![Value::Null, Value::Str("Boom".into())], vec![pairs]];
        let seen = [vec![vec![0, 0], vec![1, 1]], vec![vec![1, 0]]];
        let expected = Outcome::from_counters(returns, &seen);
        assert_eq!(read, Some(Answer::Outcome(expected, 12)));
        assert_eq!(answer("d 100", &program()), Some(Answer::Done));
        assert_eq!(answer("e no", &program()), Some(Answer::Refused("no".into())));
        for wrong in [
            "",
            "o",
            "x 1",
            "o 1 null@0,0 null@1,1",
            "o 1 null@0,0 null@1,1 []@0,0 []@0,0",
            "o 1 null@0,0 null@1 []@0,0",
            "o 1 null@0,0 null@1,1 [[[1]]]@0,0",
            "o 1 null@0,0 null@1,1 [1@0,0",
            "o 1 null@0,0 nil@1,1 []@0,0",
        ] {
            assert_eq!(answer(wrong, &program()), None, "{wrong}");
        }
    }
}
