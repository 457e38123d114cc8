//! A verdict in sentences.
//!
//! A cycle is described edge by edge, starting where it is easiest to read: steps of one session
//! and the read before them form one sentence, and a derived edge is followed by its premises,
//! indented. However large the proof is, the text stays short: long lists are cut in the middle,
//! deep derivations at the bottom, and a tree of many cases on the right, each with a count of the
//! omitted parts.

use std::collections::HashSet;

use consistory_history::{Action, History, OpId};
use consistory_verdict::{Certificate, Edge, Judgement, Pattern, Relation};

use crate::judgement::RegisterJudgement;

use crate::proof::{
    Derivations, Fact, Kind, Reason, Shape, fact, kind, leaves, reason, shape, turned,
};
use crate::text::{
    clean, counted, deed, deed_at_first, ended, grouped, initial, key_name, never_ended, quoted,
    reference, session,
};

/// Number of steps above which only the first and the last are described.
const MAX_STEPS: usize = 16;
const FIRST_STEPS: usize = 10;
const LAST_STEPS: usize = 4;
/// Largest number of operations of one session in a sentence.
const MAX_SENTENCE_OPERATIONS: usize = 4;
/// Largest depth of premises and cases that are described.
const MAX_DEPTH: usize = 4;
/// Largest number of lines of the whole text, apart from the last words.
const MAX_LINES: usize = 160;
/// Largest number of operations of an order that is written out.
const MAX_SHOWN_ORDER: usize = 12;

/// Explains in plain sentences the verdict of a judgement and its reason.
///
/// For a violation: the bad pattern and its meaning, the cycle step by step, and the contradiction.
/// The text is a few lines to a few pages long, however large the certificate is.
pub(crate) fn explain_registers(
    history: &History,
    model: &str,
    judgement: &RegisterJudgement<'_>,
) -> String {
    let model = clean(model, 60);
    match judgement {
        Judgement::Consistent(certificate) => {
            let listed = listed_order(history, certificate);
            format!("The history satisfies {model}: {}{listed}.\n", shown_by(&model, certificate))
        }
        Judgement::Violation { pattern, certificate } => {
            let mut out =
                format!("The history violates {model}.\n{}\n", meaning(pattern, certificate));
            out.push('\n');
            let mut teller = Teller::new(history);
            teller.certificate(certificate, 0);
            out + &teller.finish(certificate)
        }
        Judgement::Undecided(stopped) => format!(
            "Undecided for {model}: {stopped}. No proof was found either way, so nothing is claimed \
             of this history.\n"
        ),
    }
}

/// Describes a bad pattern.
fn meaning(pattern: &Pattern, certificate: &Certificate) -> String {
    let words = match pattern {
        Pattern::ThinAirRead => "a read returned a value that was never written",
        Pattern::FutureRead => {
            "a read returned the value of a write that follows it in its own session"
        }
        Pattern::CyclicCo => {
            "program order and reads-from form a cycle, so an operation would be its own cause"
        }
        Pattern::WriteCoInitRead => {
            "a read returned the initial value although a write to the same key was in its causal \
             past"
        }
        Pattern::WriteCoRead => {
            "a read returned a value that another write in its causal past had already overwritten"
        }
        Pattern::CyclicCf => {
            "what the sessions saw forces an order of the conflicting writes, and that order \
             contradicts itself or causality"
        }
        Pattern::WriteHbInitRead => {
            "a read returned the initial value although, by what its session had seen before, a \
             write to the same key came earlier"
        }
        Pattern::CyclicHb => {
            "one session's reads force an order of the writes that it had seen, and that order \
             contradicts itself or causality"
        }
        Pattern::CyclicPww => {
            "what the sessions saw, taken together, forces an order of the writes, and that order \
             contradicts itself or causality"
        }
        Pattern::CyclicWsc => {
            "what the reads force of the order in which all operations ran contradicts itself"
        }
        Pattern::CyclicSc => {
            "no order of all operations lets each read return what was written last"
        }
        Pattern::CyclicRt => {
            "no order of all operations that keeps real time lets each read return what was written \
             last"
        }
        Pattern::CyclicPpo => {
            "the reads ask for an order that contradicts what the memory keeps of program order"
        }
        Pattern::CyclicPoloc => {
            "the reads ask for an order that contradicts the order of a session's operations on \
             one key"
        }
        Pattern::FinalValue => {
            "no order of the writes ends with the values that are given as final"
        }
        Pattern::Unexplained | Pattern::Named(_) => {
            let (first, _) = leaves(certificate, 1);
            let edges: Vec<&Edge> = match first.first().map(|leaf| leaf.certificate) {
                Some(Certificate::Cycle { edges, .. }) => edges.iter().collect(),
                _ => Vec::new(),
            };
            let why = match shape(&edges) {
                Shape::Cycle => ": a relation that must have no cycle has one",
                Shape::Pair(..) => ": a relation that must be empty is not",
                Shape::Member(_) | Shape::Nothing => "",
            };
            return format!("The model's check \"{}\" fails{why}.", clean(pattern.as_str(), 80));
        }
    };
    format!("{pattern}: {words}.")
}

/// Lists the operations of a short order that proves consistency, as `, namely t0:0 w(x,1)`.
fn listed_order(history: &History, certificate: &Certificate) -> String {
    match certificate {
        Certificate::Order { order, .. } if (2..=MAX_SHOWN_ORDER).contains(&order.len()) => {
            let listed: Vec<String> = order.iter().map(|&op| quoted(history, op)).collect();
            format!(", namely {}", listed.join(", "))
        }
        _ => String::new(),
    }
}

/// Describes what a certificate of consistency proves.
pub(crate) fn shown_by(model: &str, certificate: &Certificate) -> String {
    let (words, wr) = match certificate {
        Certificate::Order { order, wr } => {
            let operations = match order.len() {
                1 => "the one operation".into(),
                n => format!("all {} operations", grouped(n)),
            };
            let property = match model {
                "sc" => "in which each read takes the last write before it",
                "ccv" => {
                    "that respects causality and by which each read takes the last of the writes \
                     in its causal past"
                }
                "cc" => "that respects every session's order and puts each write before its reads",
                _ => "that meets the model's conditions",
            };
            (format!("there is an order of {operations} {property}"), wr)
        }
        Certificate::SessionOrders { orders, wr } => {
            let words = format!(
                "for {} there is an order of all that it had seen in which each of its reads takes \
                 the last write before it",
                match orders.len() {
                    1 => "the one session".into(),
                    n => format!("each of the {} sessions", grouped(n)),
                }
            );
            (words, wr)
        }
        Certificate::Witness { ww, wr } => {
            let words = match ww.len() {
                0 => "every check of the model holds".into(),
                n => format!(
                    "there is a store order of the writes of {} under which every check of the \
                     model holds",
                    counted(n, "key")
                ),
            };
            (words, wr)
        }
        Certificate::Closure { pairs, wr } => {
            let words = match pairs.len() {
                0 => "the rules of the model force nothing beyond program order and what was read"
                    .into(),
                n => format!(
                    "the rules of the model force {} and then nothing more, without a cycle",
                    counted(n, "more pair")
                ),
            };
            (words, wr)
        }
        Certificate::Views { views, wr } => {
            let words = match views.iter().map(|view| view.pairs.len()).sum() {
                0 => "no session's reads force an order of writes beyond causality, and none \
                      contradicts another"
                    .into(),
                n => format!(
                    "what the sessions' reads force, {} of writes, contradicts neither itself nor \
                     causality",
                    counted(n, "pair")
                ),
            };
            (words, wr)
        }
        _ => return "the certificate is one of violation, so this verdict proves nothing".into(),
    };
    match wr.len() {
        0 => words,
        n => {
            format!("for one choice of the sources of {}, {words}", counted(n, "ambiguous read"))
        }
    }
}

/// Edges that form one sentence.
enum Sentence<'a> {
    /// A session read a value, if `wr` is given, and continued.
    Run { wr: Option<&'a Edge>, po: Vec<&'a Edge> },
    /// Any other edge.
    Single(&'a Edge),
}

fn sentences<'a>(edges: &[&'a Edge]) -> Vec<Sentence<'a>> {
    let mut found: Vec<Sentence> = Vec::new();
    for &edge in edges {
        match (kind(&edge.relation), found.last_mut()) {
            (Kind::Program, Some(Sentence::Run { wr, po }))
                if po.last().or(wr.as_ref()).is_some_and(|last| last.to == edge.from)
                    && po.len() < MAX_SENTENCE_OPERATIONS =>
            {
                po.push(edge);
            }
            (Kind::Program, _) => found.push(Sentence::Run { wr: None, po: vec![edge] }),
            (Kind::ReadsFrom, _) => found.push(Sentence::Run { wr: Some(edge), po: vec![] }),
            _ => found.push(Sentence::Single(edge)),
        }
    }
    found
}

struct Teller<'a> {
    history: &'a History,
    out: String,
    lines: usize,
    /// Sentences of the cycle and its premises, each with its edges.
    steps: Vec<ToldStep<'a>>,
}

/// A sentence of a proof, with the edges that it describes.
pub(crate) struct ToldStep<'a> {
    pub(crate) sentence: String,
    pub(crate) edges: Vec<&'a Edge>,
}

/// Describes one cycle, or a read of a value that was never written, step by step.
pub(crate) fn told_steps<'a>(
    history: &'a History,
    certificate: &'a Certificate,
) -> Vec<ToldStep<'a>> {
    let mut teller = Teller::new(history);
    teller.certificate(certificate, 0);
    teller.steps
}

/// State of the description of one cycle.
struct Telling<'a> {
    derivations: Derivations<'a>,
    /// Derivations that were described completely before.
    told: HashSet<Fact<'a>>,
}

impl<'a> Telling<'a> {
    fn flatten<I>(&mut self, edges: I) -> Vec<&'a Edge>
    where
        I: IntoIterator<Item = &'a Edge, IntoIter: DoubleEndedIterator>,
    {
        self.derivations.flatten(edges.into_iter(), &mut self.told)
    }
}

impl<'a> Teller<'a> {
    fn new(history: &'a History) -> Self {
        Teller { history, out: String::new(), lines: 0, steps: Vec::new() }
    }

    /// Writes a line and records it as a step about some edges.
    fn step(&mut self, indent: usize, mark: &str, text: &str, edges: Vec<&'a Edge>) {
        if !self.is_full() {
            self.steps.push(ToldStep { sentence: text.to_owned(), edges });
        }
        self.line(indent, &format!("{mark}{text}"));
    }

    fn finish(mut self, certificate: &Certificate) -> String {
        if self.is_full() {
            let (_, cases) = leaves(certificate, 0);
            let size = match cases {
                1 => String::new(),
                n => format!(", in all {n} cases,", n = grouped(n)),
            };
            self.out += &format!(
                "\n... The rest of the proof{size} is left out; the certificate holds it.\n"
            );
        }
        self.out
    }

    fn is_full(&self) -> bool {
        self.lines >= MAX_LINES
    }

    fn line(&mut self, indent: usize, text: &str) {
        if !self.is_full() {
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.out.push_str(text);
            self.out.push('\n');
            self.lines += 1;
        }
    }

    /// Describes a certificate of violation; `depth` counts the enclosing cases.
    fn certificate(&mut self, certificate: &'a Certificate, depth: usize) {
        let indent = 2 * depth;
        let h = self.history;
        if self.is_full() {
            return;
        }
        match certificate {
            Certificate::Cycle { edges, observer, .. } => {
                if let Some(observer) = observer {
                    self.line(indent, &format!("As {} sees it:", quoted(h, *observer)));
                }
                let mut telling =
                    Telling { derivations: Derivations::of(edges), told: HashSet::new() };
                let cycle = turned(telling.flatten(edges));
                // For an operation in a set that must be empty, nothing more is to be said.
                if !matches!(shape(&cycle), Shape::Member(_)) {
                    self.steps(&cycle, indent + 2, 0, &mut telling);
                }
                let text = contradiction(h, &cycle);
                self.step(indent, "", &text, cycle);
            }
            Certificate::ThinAirRead { read } => {
                self.step(indent, "", &thin_air(h, *read), Vec::new());
            }
            Certificate::SplitLast { key, branches } if branches.is_empty() => {
                let text =
                    format!("{}, but no write of that value can be the last.", ended(h, *key));
                self.line(indent, &text);
            }
            Certificate::SplitOrder { .. }
            | Certificate::SplitRead { .. }
            | Certificate::SplitLast { .. }
                if depth == MAX_DEPTH =>
            {
                let (_, cases) = leaves(certificate, 0);
                let text =
                    format!("... {}, each with its contradiction ...", counted(cases, "case"));
                self.line(indent, &text);
            }
            Certificate::SplitOrder { writes: [a, b], branches } => {
                let text = format!(
                    "One of {} and {} comes first in the store order, and neither can.",
                    quoted(h, *a),
                    quoted(h, *b)
                );
                self.line(indent, &text);
                for (first, branch) in [a, b].into_iter().zip(branches.iter()) {
                    self.line(indent, &format!("If {} comes first:", reference(h, *first)));
                    self.certificate(branch, depth + 1);
                }
            }
            Certificate::SplitRead { read, branches } => {
                let text = format!(
                    "{} reads from one of {}, and none is possible.",
                    quoted(h, *read),
                    counted(branches.len(), "write")
                );
                self.line(indent, &text);
                for (write, branch) in branches {
                    if self.is_full() {
                        break;
                    }
                    self.line(indent, &format!("If it reads from {}:", quoted(h, *write)));
                    self.certificate(branch, depth + 1);
                }
            }
            Certificate::SplitLast { key, branches } => {
                let text = format!(
                    "{}, so one of {} is the last, and none can be.",
                    ended(h, *key),
                    counted(branches.len(), "write")
                );
                self.line(indent, &text);
                for (write, branch) in branches {
                    if self.is_full() {
                        break;
                    }
                    self.line(indent, &format!("If {} is the last:", quoted(h, *write)));
                    self.certificate(branch, depth + 1);
                }
            }
            Certificate::Order { .. }
            | Certificate::SessionOrders { .. }
            | Certificate::Witness { .. }
            | Certificate::Closure { .. }
            | Certificate::Views { .. } => {
                self.line(indent, "The certificate is one of consistency: it proves no violation.");
            }
        }
    }

    /// Describes consecutive edges; `depth` counts the enclosing derivations.
    fn steps(
        &mut self,
        edges: &[&'a Edge],
        indent: usize,
        depth: usize,
        telling: &mut Telling<'a>,
    ) {
        let all = sentences(edges);
        let count = all.len();
        let left_out = if count > MAX_STEPS { count - FIRST_STEPS - LAST_STEPS } else { 0 };
        for (i, sentence) in all.iter().enumerate() {
            if self.is_full() {
                return;
            }
            if left_out > 0 && i == FIRST_STEPS {
                self.line(indent, &format!("... {} further steps ...", grouped(left_out)));
            }
            if left_out > 0 && (FIRST_STEPS..count - LAST_STEPS).contains(&i) {
                continue;
            }
            // The cycle's own steps are numbered, and their premises are listed.
            let mark = if depth == 0 { format!("{}. ", i + 1) } else { "- ".into() };
            match sentence {
                Sentence::Run { wr, po } => {
                    let text = run(self.history, *wr, po);
                    let edges = wr.iter().chain(po).copied().collect();
                    self.step(indent, &mark, &text, edges);
                }
                Sentence::Single(edge) => self.single(&mark, edge, indent, depth, telling),
            }
        }
    }

    /// Describes one derived or assumed edge, followed by its premises.
    fn single(
        &mut self,
        mark: &str,
        edge: &'a Edge,
        indent: usize,
        depth: usize,
        telling: &mut Telling<'a>,
    ) {
        let h = self.history;
        let premises = telling.derivations.premises(edge);
        let is_new = !telling.told.contains(&fact(edge));
        let reason = reason(edge, premises);
        let text = derived(h, edge, &reason, is_new);
        self.step(indent, mark, &text, vec![edge]);
        let (Reason::Overwritten { rest, .. } | Reason::Seen { rest, .. } | Reason::Other { rest }) =
            reason;
        // An edge from an initial write needs no explanation.
        let goes_without_saying = |e: &&Edge| {
            h.is_initial(e.from) && e.because.is_empty() && kind(&e.relation) != Kind::ReadsFrom
        };
        if is_new && !rest.iter().all(goes_without_saying) {
            let indent = indent + 3;
            if depth + 1 == MAX_DEPTH {
                self.line(indent, &format!("... {} ...", counted(rest.len(), "further premise")));
            } else {
                let flat = telling.flatten(rest);
                self.steps(&flat, indent, depth + 1, telling);
            }
        }
        // Only a completely described derivation can be referred to.
        telling.told.insert(fact(edge));
    }
}

/// Describes a read of a session and its following operations.
fn run(h: &History, wr: Option<&Edge>, po: &[&Edge]) -> String {
    let did = |op: OpId| format!("{} ({})", deed(h, op), reference(h, op));
    let mut text = String::new();
    match (wr, po.first()) {
        (Some(wr), _) if h.is_initial(wr.to) => {
            return format!("{} comes first.", quoted(h, wr.to));
        }
        (Some(wr), _) if h.is_initial(wr.from) => {
            let deed = deed_at_first(h, wr.to, Some(&reference(h, wr.to)));
            text += &format!("{} {deed}", session(h, wr.to));
        }
        (Some(wr), _) => {
            text += &format!("{} {}", session(h, wr.to), did(wr.to));
            let is_own = h.session_of(wr.from) == h.session_of(wr.to);
            text += &if is_own && wr.from > wr.to {
                format!(", which it wrote only later ({})", reference(h, wr.from))
            } else if is_own {
                format!(", which it had written itself ({})", reference(h, wr.from))
            } else {
                let verb = match h.action(wr.to) {
                    Action::Rmw { .. } => "on finding what",
                    _ => "which",
                };
                let (writer, place) = (session(h, wr.from), reference(h, wr.from));
                format!(", {verb} {writer} had written ({place})")
            };
        }
        (None, Some(first)) if h.is_initial(first.from) => {
            let next = first.to;
            let value = initial(h, first.from, " was ");
            text += &format!("At first {value} ({})", reference(h, first.from));
            if h.is_initial(next) {
                return format!("{text}, before {}.", quoted(h, next));
            }
            text += &format!(", before {} {}", session(h, next), did(next));
        }
        (None, Some(first)) => {
            text +=
                &format!("{} {}, then {}", session(h, first.from), did(first.from), did(first.to));
        }
        (None, None) => {}
    }
    for edge in &po[usize::from(wr.is_none()).min(po.len())..] {
        text += &format!(", then {}", did(edge.to));
    }
    text + "."
}

/// Describes an edge that a rule derived or a case assumes.
fn derived(h: &History, edge: &Edge, reason: &Reason, is_new: bool) -> String {
    let (from, to) = (reference(h, edge.from), reference(h, edge.to));
    let relation = clean(edge.relation.as_str(), 24);
    match reason {
        _ if !is_new => {
            format!(
                "{} comes before {}, again by {relation}.",
                quoted(h, edge.from),
                quoted(h, edge.to)
            )
        }
        Reason::Overwritten { source, .. } if h.is_initial(*source) => format!(
            "{from} {}, so it happened before {to} overwrote it (rw).",
            deed_at_first(h, edge.from, None)
        ),
        Reason::Overwritten { source, .. } => {
            let is_change = matches!(h.action(edge.from), Action::Rmw { .. });
            let reading = if is_change { ", reading" } else { "" };
            format!(
                "{from} {}{reading} from {}, so it happened before {to} overwrote that (rw).",
                deed(h, edge.from),
                reference(h, *source),
            )
        }
        Reason::Seen { read, rest } => {
            let (read, seen) = (quoted(h, *read), quoted(h, edge.from));
            // A session sees only what comes by causality; other orders are inferred.
            let is_causal =
                |e: &&Edge| matches!(kind(&e.relation), Kind::Program | Kind::ReadsFrom);
            let start = if rest.iter().all(is_causal) {
                format!("{read} had seen {seen} and")
            } else {
                format!("{read} comes after {seen} and")
            };
            let source = quoted(h, edge.to);
            format!(
                "{start} still read from {source}, so {from} must come before {to} ({relation})."
            )
        }
        Reason::Other { rest } => {
            let (from, to) = (quoted(h, edge.from), quoted(h, edge.to));
            match kind(&edge.relation) {
                _ if edge.relation == Relation::Final && rest.is_empty() => {
                    format!("{from} comes before {to}, which is the last write (final).")
                }
                Kind::Store if h.is_initial(edge.from) => {
                    format!("{from} comes before {to} overwrote it (ww).")
                }
                _ if edge.relation == Relation::Rt && rest.is_empty() => {
                    let time = |op: OpId| (!h.is_initial(op)).then(|| h.time(op)).flatten();
                    match (time(edge.from).and_then(|time| time.end), time(edge.to)) {
                        (Some(end), Some(time)) => format!(
                            "{from} returned at {end}, before {to} started at {} (rt).",
                            time.start
                        ),
                        _ => format!("{from} comes before {to} in real time (rt)."),
                    }
                }
                Kind::Store if rest.is_empty() => {
                    format!("In this case {from} comes before {to} in the store order (ww).")
                }
                Kind::Overwritten if rest.is_empty() => {
                    format!("{from} happened before {to} overwrote what it read (rw).")
                }
                _ if rest.is_empty() => format!("{from} comes before {to} ({relation})."),
                _ => format!("{from} comes before {to} ({relation}), because:"),
            }
        }
    }
}

/// Describes a read of a value that was never written.
fn thin_air(h: &History, read: OpId) -> String {
    let Some((key, value)) = h.reads(read) else {
        return format!("{} reads a value that was never written.", quoted(h, read));
    };
    format!(
        "{} {} ({}), but {} was never written to {key}, and {key} was {} at first.",
        session(h, read),
        deed(h, read),
        reference(h, read),
        clean(&h.value(value).to_string(), 24),
        clean(&h.value(h.initial_value(key)).to_string(), 24),
        key = key_name(h, key),
    )
}

/// Summarises the cycle.
fn contradiction(h: &History, cycle: &[&Edge]) -> String {
    let Some(first) = cycle.first() else {
        return never_ended(h)
            .map_or("The certificate lists no edges.".into(), |words| format!("{words}."));
    };
    match shape(cycle) {
        Shape::Pair(from, to) => {
            let (from, to) = (quoted(h, from), quoted(h, to));
            return format!("So the relation that must be empty holds {from} → {to}.");
        }
        Shape::Member(op) => {
            let set = clean(first.relation.as_str(), 80);
            return format!("{} is in {set}, which the check does not allow.", quoted(h, op));
        }
        Shape::Cycle | Shape::Nothing => {}
    }
    let mut places: Vec<String> = Vec::new();
    let left_out = if cycle.len() > MAX_STEPS { cycle.len() - FIRST_STEPS - LAST_STEPS } else { 0 };
    for (i, edge) in cycle.iter().enumerate() {
        if left_out > 0 && i == FIRST_STEPS {
            places.push(format!("... {} more ...", grouped(left_out)));
        }
        if left_out == 0 || !(FIRST_STEPS..cycle.len() - LAST_STEPS).contains(&i) {
            places.push(reference(h, edge.from));
        }
    }
    places.push(reference(h, first.from));
    format!("Together: {}, a cycle.", places.join(" before "))
}
