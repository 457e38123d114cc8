//! Explanations of isolation levels: the anomaly, its transactions, and one sentence per
//! dependency.

use std::fmt::Write as _;

use consistory_history::{Action, History, KeyId, OpId, Status};
use consistory_verdict::{
    Anomaly, BadRead, Dependency, Judgement, Level, Relates, TransactionCertificate,
};

use crate::text::{clean, counted, quoted};

/// Largest number of dependencies that are described, including premises.
const MAX_SENTENCES: usize = 60;
/// Largest number of cases that are described.
const MAX_CASES: usize = 8;
/// Largest number of operations of a transaction that are quoted.
const MAX_QUOTED_OPS: usize = 12;

/// A judgement on an isolation level.
pub(crate) type TransactionJudgement<'a> = Judgement<&'a TransactionCertificate>;

/// Explains in plain sentences why a judgement holds.
pub(crate) fn explain_transactions(
    history: &History,
    model: &str,
    judgement: &TransactionJudgement<'_>,
) -> String {
    match judgement {
        Judgement::Undecided(stopped) => format!("Undecided for {model}: {stopped}.\n"),
        Judgement::Consistent(certificate) => explain_order(history, model, certificate),
        Judgement::Violation { certificate, .. } => explain_violation(history, model, certificate),
    }
}

/// Explains a judgement in one line.
pub(crate) fn explain_transactions_line(
    history: &History,
    judgement: &TransactionJudgement<'_>,
) -> String {
    match judgement {
        Judgement::Undecided(stopped) => format!("undecided: {stopped}"),
        Judgement::Consistent(certificate) => {
            format!("consistent: a commit order of {}", transactions(certificate.size_of_order()))
        }
        Judgement::Violation { certificate, .. } => {
            let what =
                Anomaly::of_certificate(history, certificate).map_or("", Anomaly::description);
            let mut line = format!("violation: {what}");
            match certificate {
                TransactionCertificate::BadRead { read, .. } => {
                    let _ = write!(line, ": {}", quoted(history, *read));
                }
                other => {
                    if let Some(cycle) = other.cycles().next() {
                        let _ = write!(line, ": {}", round(history, cycle));
                    }
                }
            }
            line
        }
    }
}

trait OrderSize {
    fn size_of_order(&self) -> usize;
}

impl OrderSize for TransactionCertificate {
    fn size_of_order(&self) -> usize {
        match self {
            TransactionCertificate::Order { order, .. } => order.len(),
            _ => 0,
        }
    }
}

fn transactions(count: usize) -> String {
    counted(count, "transaction")
}

fn explain_order(history: &History, model: &str, certificate: &TransactionCertificate) -> String {
    let TransactionCertificate::Order { order, snapshots, .. } = certificate else {
        return format!("Consistent with {model}.\n");
    };
    let mut text = format!("Consistent with {model}: a commit order explains every read.\n");
    for (place, &op) in order.iter().enumerate().take(MAX_QUOTED_OPS) {
        let _ = write!(text, "  {}. {}", place + 1, transaction(history, op));
        if let Some(&seen) = snapshots.get(place)
            && (seen as usize) < place
        {
            let _ = write!(text, ", from the state after the first {seen}");
        }
        text.push('\n');
    }
    if order.len() > MAX_QUOTED_OPS {
        let _ = writeln!(text, "  and {} more", transactions(order.len() - MAX_QUOTED_OPS));
    }
    text
}

fn explain_violation(
    history: &History,
    model: &str,
    certificate: &TransactionCertificate,
) -> String {
    let mut teller = Teller { history, text: String::new(), sentences: 0, cases: 0 };
    let anomaly = Anomaly::of_certificate(history, certificate);
    let what = anomaly.map_or("a cycle of dependencies", Anomaly::description);
    let _ = writeln!(teller.text, "Violates {model}: {what}.");
    teller.names(certificate);
    teller.certificate(certificate, 1);
    let weakest = Anomaly::weakest_levels(certificate);
    let is_weaker = |level: &Level| weakest.iter().all(|w| w != level && w.implies(*level));
    let weaker = Level::ALL.into_iter().rfind(is_weaker);
    let named: Vec<String> =
        weakest.iter().map(|level| format!("{} ({})", level.name(), level.id())).collect();
    let is_of_one_cycle =
        matches!(certificate, TransactionCertificate::Cycle { edges } if !has_derived_order(edges));
    let _ = match (&named[..], weaker) {
        ([], _) => Ok(()),
        (_, None) => writeln!(teller.text, "No level allows this."),
        ([one], Some(weaker)) if is_of_one_cycle => writeln!(
            teller.text,
            "The weakest level that forbids this is {one}; {} allows it.",
            weaker.id()
        ),
        ([one], Some(_)) => {
            writeln!(teller.text, "The weakest level that this argument refutes is {one}.")
        }
        (several, Some(_)) => writeln!(
            teller.text,
            "The weakest levels that forbid this are {}.",
            several.join(" and ")
        ),
    };
    teller.text
}

/// Checks whether a cycle depends on a version order that is derived from other cycles.
fn has_derived_order(cycle: &[Dependency]) -> bool {
    cycle.iter().any(|edge| {
        let is_ww = matches!(edge.relation, Relates::Ww { .. });
        (is_ww && !edge.because.is_empty()) || has_derived_order(&edge.because)
    })
}

/// Writer of sentences about a certificate.
struct Teller<'h> {
    history: &'h History,
    text: String,
    sentences: usize,
    cases: usize,
}

impl Teller<'_> {
    /// Lists the transactions in a certificate.
    fn names(&mut self, certificate: &TransactionCertificate) {
        let mut named: Vec<OpId> = Vec::new();
        let mut edges: Vec<&Dependency> = certificate.cycles().flatten().collect();
        edges.reverse();
        while let Some(edge) = edges.pop() {
            for op in [edge.from, edge.to] {
                if !named.contains(&op) {
                    named.push(op);
                }
            }
            if named.len() > MAX_QUOTED_OPS {
                break;
            }
            edges.extend(edge.because.iter().rev());
        }
        if let TransactionCertificate::BadRead { read, other, .. } = certificate {
            named.extend([*read].iter().chain(other).map(|&op| first_of(self.history, op)));
            named.dedup();
        }
        for op in named.into_iter().take(MAX_QUOTED_OPS) {
            let _ = writeln!(self.text, "  {}", transaction(self.history, op));
        }
    }

    fn certificate(&mut self, certificate: &TransactionCertificate, depth: usize) {
        match certificate {
            TransactionCertificate::Order { .. } => {}
            TransactionCertificate::BadRead { kind, read, other } => {
                let sentence = bad_read(self.history, *kind, *read, *other);
                self.line(depth, &sentence);
            }
            TransactionCertificate::Cycle { edges } => self.cycle(edges, depth),
            TransactionCertificate::SplitOrder { key, writers, branches } => {
                let key = clean(self.history.key_name(*key), 40);
                let [a, b] = writers.map(|op| name(self.history, op));
                for ((first, second), branch) in [(&a, &b), (&b, &a)].into_iter().zip(&**branches) {
                    self.case(
                        &format!("If {first} wrote an earlier version of {key} than {second}:"),
                        branch,
                        depth,
                    );
                }
            }
            TransactionCertificate::SplitRead { read, branches } => {
                let read = quoted(self.history, *read);
                for (source, branch) in branches {
                    let source = quoted(self.history, *source);
                    self.case(&format!("If {read} reads from {source}:"), branch, depth);
                }
            }
        }
    }

    fn case(&mut self, head: &str, branch: &TransactionCertificate, depth: usize) {
        self.cases += 1;
        if self.cases > MAX_CASES {
            if self.cases == MAX_CASES + 1 {
                self.line(depth, "and more cases of the same kind");
            }
            return;
        }
        self.line(depth, head);
        self.certificate(branch, depth + 1);
    }

    fn cycle(&mut self, edges: &[Dependency], depth: usize) {
        for edge in edges {
            self.edge(edge, depth);
        }
        if depth == 1 {
            let sentence = format!("Together that is a cycle: {}.", round(self.history, edges));
            self.line(depth, &sentence);
        }
    }

    fn edge(&mut self, edge: &Dependency, depth: usize) {
        self.sentences += 1;
        if self.sentences > MAX_SENTENCES {
            if self.sentences == MAX_SENTENCES + 1 {
                self.line(depth, "and so on");
            }
            return;
        }
        let mut sentence = sentence(self.history, edge);
        let is_refuted = matches!(edge.relation, Relates::Ww { .. }) && !edge.because.is_empty();
        sentence.push_str(if is_refuted { ", for otherwise:" } else { "." });
        self.line(depth, &sentence);
        if is_refuted {
            edge.because.iter().for_each(|premise| self.edge(premise, depth + 1));
        } else {
            // The version order on which an anti-dependency depends.
            for premise in edge.because.iter().filter(|p| p.list.is_some() || !p.because.is_empty())
            {
                self.edge(premise, depth + 1);
            }
        }
    }

    fn line(&mut self, depth: usize, sentence: &str) {
        let _ = writeln!(self.text, "{:width$}- {sentence}", "", width = 2 * (depth - 1));
    }
}

/// Describes a dependency and the operations that show it.
pub(crate) fn sentence(history: &History, edge: &Dependency) -> String {
    let (from, to) = (name(history, edge.from), name(history, edge.to));
    match edge.relation {
        Relates::So => {
            let session = clean(history.session_name(history.session_of(edge.from)), 40);
            format!("{from} comes before {to} in session {session}")
        }
        Relates::Rt => format!("{from} had ended before {to} began"),
        Relates::Wr { read } => format!("{to} reads from {from}: {}", quoted(history, read)),
        Relates::Ww { key } => {
            let key_name = clean(history.key_name(key), 40);
            let mut text = format!("{from} wrote an earlier version of {key_name} than {to}");
            match edge.list {
                Some(list) => {
                    let _ = write!(text, ", as {} shows", quoted(history, list));
                }
                None if edge.because.is_empty() => {
                    if let (Some(a), Some(b)) =
                        (last_write(history, edge.from, key), last_write(history, edge.to, key))
                    {
                        let _ = write!(text, ": {} before {}", history.show(a), history.show(b));
                    }
                }
                None => {}
            }
            text
        }
        Relates::Rw { read } => {
            let overwrites = history
                .key_of(read)
                .and_then(|key| last_write(history, edge.to, key))
                .map_or(String::new(), |op| format!(" by {}", history.show(op)));
            format!("{from} does not see {to}: {}, overwritten{overwrites}", quoted(history, read))
        }
    }
}

/// Describes a read that no level allows.
pub(crate) fn bad_read(
    history: &History,
    kind: BadRead,
    read: OpId,
    other: Option<OpId>,
) -> String {
    let read = quoted(history, read);
    match (kind, other.map(|op| quoted(history, op))) {
        (BadRead::Internal, _) => {
            format!("{read} does not return its transaction's own last write.")
        }
        (BadRead::Aborted, _) => {
            format!("{read} returns a value that only aborted transactions wrote.")
        }
        (BadRead::Intermediate, _) => {
            format!("{read} returns a value that was overwritten in the same transaction.")
        }
        (BadRead::Future, _) => {
            format!("{read} returns a value that its transaction writes later.")
        }
        (BadRead::ThinAir, _) => format!("{read} returns a value that was never written."),
        (BadRead::IncompatibleOrder, Some(other)) if other != read => {
            format!("{read} and {other} are not prefixes of one list.")
        }
        (BadRead::IncompatibleOrder, _) => {
            format!("{read} separates, reorders or repeats the appends of a transaction.")
        }
    }
}

/// Writes a cycle as a chain of arrows.
pub(crate) fn round(history: &History, cycle: &[Dependency]) -> String {
    let mut text = String::new();
    for edge in cycle.iter().take(MAX_QUOTED_OPS) {
        let _ = write!(text, "{} -{}-> ", name(history, edge.from), edge.relation.name());
    }
    match cycle.first() {
        Some(first) if cycle.len() <= MAX_QUOTED_OPS => text += &name(history, first.from),
        _ => text += "...",
    }
    text
}

/// Returns the name of a transaction, given its first operation.
pub(crate) fn name(history: &History, first: OpId) -> String {
    clean(&history.reference(first).to_string(), 60)
}

/// Quotes a transaction: its name and its operations.
pub(crate) fn transaction(history: &History, first: OpId) -> String {
    let mut text = format!("{} [", name(history, first));
    let ops = ops_of(history, first);
    let count = ops.len();
    for op in ops.into_iter().take(MAX_QUOTED_OPS) {
        let _ = write!(text, " {}", clean(&history.show(op).to_string(), 60));
    }
    if count > MAX_QUOTED_OPS {
        text += " ...";
    }
    text += " ]";
    text += match history.status(first) {
        Status::Ok => "",
        Status::Fail => "!",
        Status::Unknown => "?",
    };
    text
}

/// Returns the operations of a transaction.
pub(crate) fn ops_of(history: &History, op: OpId) -> Vec<OpId> {
    match history.transaction_of(op) {
        Some(id) => history.transaction(id).ops.clone().map(OpId).collect(),
        None => vec![op],
    }
}

/// Returns the first operation of the transaction that an operation belongs to.
fn first_of(history: &History, op: OpId) -> OpId {
    ops_of(history, op)[0]
}

/// Finds the last write of a key in a transaction.
fn last_write(history: &History, first: OpId, key: KeyId) -> Option<OpId> {
    ops_of(history, first).into_iter().rev().find(|&op| {
        matches!(history.action(op),
            Action::Write { key: k, .. } | Action::Rmw { key: k, .. } | Action::Append { key: k, .. }
                if k == key)
    })
}
