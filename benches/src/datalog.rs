//! The thesis's Datalog programs (Zennou 2021, section 3.3.1).
//!
//! A history becomes facts: `rd`, `wrt`, `po` (all pairs), `wr`, `sv` (all pairs of different
//! operations on one variable) and `initread`. Rules derive `co`, `cf` and `hb`, constraints forbid
//! the bad patterns, and the history satisfies the model if and only if the program has an answer
//! set. In the rules of `hb` each relevant operation is a constant, with one copy of the rules for
//! each: for all operations in CM_1, for the last of each session in CM_2.
//!
//! The rules are those of the thesis except for two mistakes in its text:
//! - The rule `hb(X,Y,O) :- hb(X,Z,O), wr(Y,Z), wrt(X), sv(X,Y)` saturates with every read Z. The
//!   definition does so only with the reads of O's own session up to O. The reads before O have a
//!   separate rule, so here this rule is for Z = O.
//! - CCv asks `cf | co` to be acyclic, but the text only looks for cycles of two steps, each a `co`
//!   or a `cf`, and so misses `co ; cf ; co ; cf`. Here `cfco` is transitive. It then holds all
//!   that the transitivity of `cf` derives, so this rule takes the place of that one. It costs
//!   clingo time, so [`Encoding::PrintedCcv`] keeps the program as it was.

use std::fmt::Write;

use consistory_history::{Action, History, OpId};
use consistory_registers::{CausalModel, Scope};

/// A program of the thesis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// Weak causal consistency.
    Cc,
    /// Causal convergence.
    Ccv,
    /// Causal convergence as the thesis prints it, which misses some violations.
    PrintedCcv,
    /// Causal memory, over all operations.
    Cm1,
    /// Causal memory, over the last operation of each session.
    Cm2,
}

impl Encoding {
    /// Every program of the thesis's figures, in their order.
    pub const ALL: [Encoding; 4] = [Encoding::Cc, Encoding::Ccv, Encoding::Cm1, Encoding::Cm2];

    /// Returns the thesis's name for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Encoding::Cc => "CC",
            Encoding::Ccv => "CCv",
            Encoding::PrintedCcv => "CCv as printed",
            Encoding::Cm1 => "CM_1",
            Encoding::Cm2 => "CM_2",
        }
    }

    /// Returns the name that our deciders use.
    pub fn model(self) -> (CausalModel, Scope) {
        match self {
            Encoding::Cc => (CausalModel::Cc, Scope::default()),
            Encoding::Ccv | Encoding::PrintedCcv => (CausalModel::Ccv, Scope::default()),
            Encoding::Cm1 => (CausalModel::Cm, Scope::EveryOperation),
            Encoding::Cm2 => (CausalModel::Cm, Scope::LastOperations),
        }
    }
}

/// Reason why a history has no program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unencodable {
    /// An operation is neither a read nor a write that took effect.
    #[error("{op} is neither a read nor a write that took effect")]
    Operation {
        /// Its reference.
        op: String,
    },
    /// A read finds a value that was never written, which the thesis checks outside Datalog.
    #[error("{op} reads a value that was never written")]
    ThinAirRead {
        /// Its reference.
        op: String,
    },
    /// A read finds a value that two writes wrote.
    #[error("{op} reads a value that several writes wrote")]
    Ambiguous {
        /// Its reference.
        op: String,
    },
}

const CO: &str = "\
co(X,Y) :- po(X,Y).
co(X,Y) :- wr(X,Y).
co(X,Z) :- co(X,Y), co(Y,Z).
:- co(X,X).
:- co(X,Y), wrt(X), initread(Y), sv(X,Y).
:- co(X,Y), co(Y,Z), wr(X,Z), wrt(X), wrt(Y), rd(Z), sv(X,Y), sv(Y,Z).
";

const CF: &str = "\
cf(X,Y) :- co(X,Z), wr(Y,Z), wrt(X), sv(X,Y), sv(X,Z).
cfco(X,Y) :- co(X,Y).
cfco(X,Y) :- cf(X,Y).
:- cfco(X,Y), cfco(Y,X).
";

const TRANSITIVE_CFCO: &str = "cfco(X,Z) :- cfco(X,Y), cfco(Y,Z).\n";
const TRANSITIVE_CF: &str = "cf(X,Y) :- cf(X,Z), cf(Z,Y).\n";

/// `O` is replaced by an operation.
const HB: &str = "\
hb(X,O,O) :- co(X,O).
hb(X,Y,O) :- hb(Y,O,O), co(X,Y).
hb(X,Y,O) :- hb(X,Z,O), po(Z,O), wr(Y,Z), wrt(X), sv(X,Y).
hb(X,Y,O) :- hb(X,O,O), wr(Y,O), wrt(X), sv(X,Y).
hb(X,Z,O) :- hb(X,Y,O), hb(Y,Z,O).
:- hb(X,Y,O), wrt(X), sv(X,Y), po(Y,O), initread(Y).
:- hb(X,Y,O), hb(Y,X,O).
";

/// Writes the program for a history of single reads and writes in which every written value is new.
pub fn program(history: &History, encoding: Encoding) -> Result<String, Unencodable> {
    let names: Vec<String> = history.ops().map(|op| name(history, op)).collect();
    let mut text = facts(history, &names)?;
    text.push_str(CO);
    match encoding {
        Encoding::Cc => {}
        Encoding::Ccv => text.extend([CF, TRANSITIVE_CFCO]),
        Encoding::PrintedCcv => text.extend([CF, TRANSITIVE_CF]),
        Encoding::Cm1 => names.iter().for_each(|o| text.push_str(&HB.replace('O', o))),
        Encoding::Cm2 => {
            let last = history.sessions().filter_map(|session| history.session_ops(session).last());
            last.for_each(|op| text.push_str(&HB.replace('O', &names[op.index()])));
        }
    }
    Ok(text)
}

/// Returns the name that the thesis gives an operation, `"w(x,1,id0)"`.
fn name(history: &History, op: OpId) -> String {
    let shown = history.show(op).to_string().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{},id{})\"", shown.strip_suffix(')').unwrap_or(&shown), op.0)
}

fn facts(history: &History, names: &[String]) -> Result<String, Unencodable> {
    let mut text = String::new();
    let mut fact = |predicate: &str, arguments: &[OpId]| {
        let arguments: Vec<&str> = arguments.iter().map(|op| &*names[op.index()]).collect();
        writeln!(text, "{predicate}({}).", arguments.join(",")).expect("a string takes everything");
    };
    let mut of_key = vec![Vec::new(); history.key_count()];
    let mut has_initial_read = false;
    for session in history.sessions() {
        let ops: Vec<OpId> = history.session_ops(session).collect();
        for (at, &op) in ops.iter().enumerate() {
            let reference = || history.reference(op).to_string();
            if !history.is_certain(op) {
                return Err(Unencodable::Operation { op: reference() });
            }
            match history.action(op) {
                Action::Write { key, .. } => {
                    fact("wrt", &[op]);
                    of_key[key.index()].push(op);
                }
                Action::Read { key, value } => {
                    fact("rd", &[op]);
                    of_key[key.index()].push(op);
                    let mut sources =
                        history.ops().filter(|&w| history.writes(w) == Some((key, value)));
                    match (sources.next(), sources.next(), history.initial_value(key) == value) {
                        (Some(write), None, false) => fact("wr", &[write, op]),
                        (None, None, true) => {
                            fact("initread", &[op]);
                            has_initial_read = true;
                        }
                        (None, ..) => return Err(Unencodable::ThinAirRead { op: reference() }),
                        _ => return Err(Unencodable::Ambiguous { op: reference() }),
                    }
                }
                _ => return Err(Unencodable::Operation { op: reference() }),
            }
            ops[at + 1..].iter().for_each(|&later| fact("po", &[op, later]));
        }
    }
    for ops in &of_key {
        for &a in ops {
            ops.iter().filter(|&&b| b != a).for_each(|&b| fact("sv", &[a, b]));
        }
    }
    if !has_initial_read {
        // The thesis has this fact in programs without such a read, so that the predicate is
        // defined.
        text.push_str("initread(\"r(a,0,ida)\").\n");
    }
    Ok(text)
}
