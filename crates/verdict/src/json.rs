//! Certificates in JSON.
//!
//! An operation is its reference: `t1:0`, or `init:x` for an initial write.
//!
//! ```json
//! {"kind":"order","order":["t0:0","t1:0"]}
//! {"kind":"orders","orders":{"t0":["t0:0"],"t1":["t0:0","t1:0"]}}
//! {"kind":"witness","ww":{"x":["init:x","t0:0"]}}
//! {"kind":"closure","pairs":[["t0:0","t1:0"]]}
//! {"kind":"views","views":[{"session":"t0","relation":"po","pairs":[["t0:0","t1:0"]]}]}
//! {"kind":"thin-air-read","read":"t1:0"}
//! {"kind":"cycle","edges":[{"from":"t0:0","to":"t0:1","relation":"po"},
//!   {"from":"t0:1","to":"t0:0","relation":"rw","because":[]}],"observer":"t1:3","check":0}
//! {"kind":"cases","split":["t0:0","t1:0"],"branches":[{},{}]}
//! {"kind":"cases","read":"t1:0","sources":["t0:0","init:x"],"branches":[{},{}]}
//! {"kind":"cases","key":"x","last":["t0:0","t1:0"],"branches":[{},{}]}
//! ```
//!
//! The first five may have choices for ambiguous reads: `"wr":{"t1:0":"t0:0"}`.
//!
//! Writing is streamed and not recursive: an order may list tens of millions of operations, and a
//! derivation may be deeper than a thread's stack. Reading takes a parsed value, whose maps are
//! unordered: orders, store orders and choices are returned sorted by id.

use std::collections::HashMap;
use std::fmt;
use std::io;

use consistory_history::{History, OpId, SessionId, write_quoted};
use serde_json::{Map, Value};

use crate::Relation;
use crate::certificate::{Certificate, Edge, View};

/// Largest nesting depth of cases and premises when reading.
///
/// Reading takes about one kilobyte of stack per level.
pub const MAX_DEPTH: usize = 10_000;

/// Size of the output buffer in bytes.
const CHUNK: usize = 1 << 16;

/// Reasons why a JSON value is not a certificate of a history.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CertificateError {
    /// A field is missing.
    #[error("`{path}` is missing")]
    Missing {
        /// Path within the certificate.
        path: String,
    },
    /// A value has the wrong type.
    #[error("`{path}` is not {expected}")]
    Type {
        /// Path within the certificate.
        path: String,
        /// The expected type.
        expected: &'static str,
    },
    /// The kind is unknown.
    #[error("`{path}`: there is no kind `{kind}`")]
    Kind {
        /// Path within the certificate.
        path: String,
        /// The kind.
        kind: String,
    },
    /// A reference, session or key is not in the history.
    #[error("`{path}`: the history has no {what} `{name}`")]
    Unknown {
        /// Path within the certificate.
        path: String,
        /// The kind of the referenced item.
        what: &'static str,
        /// The name of the referenced item.
        name: String,
    },
    /// A list has the wrong length.
    #[error("`{path}` has {found} entries instead of {expected}")]
    Length {
        /// Path within the certificate.
        path: String,
        /// The expected length.
        expected: usize,
        /// The actual length.
        found: usize,
    },
    /// Cases or premises are nested too deeply.
    #[error("`{path}` is nested deeper than {MAX_DEPTH} levels")]
    Depth {
        /// Path within the certificate.
        path: String,
    },
}

/// Writes a certificate as one line of JSON, without a line break.
pub fn write_certificate(
    history: &History,
    certificate: &Certificate,
    out: &mut impl io::Write,
) -> io::Result<()> {
    Writer::new(history, out).write(certificate)
}

/// Work that remains to be done.
enum Task<'a> {
    Text(&'static str),
    Certificate(&'a Certificate),
    Branches(&'a [(OpId, Certificate)]),
    Edges(&'a [Edge]),
    Hints(Option<OpId>, Option<u32>),
}

struct Writer<'a, W> {
    history: &'a History,
    out: &'a mut W,
    buffer: String,
    /// Opening quote, escaped name and colon of each session.
    prefixes: Vec<String>,
}

impl<'a, W: io::Write> Writer<'a, W> {
    fn new(history: &'a History, out: &'a mut W) -> Self {
        let prefixes = history
            .sessions()
            .map(|session| {
                let mut prefix = String::new();
                quote(history.session_name(session), &mut prefix);
                prefix.pop();
                prefix.push(':');
                prefix
            })
            .collect();
        Writer { history, out, buffer: String::with_capacity(CHUNK + 1024), prefixes }
    }

    fn write(&mut self, certificate: &'a Certificate) -> io::Result<()> {
        let mut tasks = vec![Task::Certificate(certificate)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Text(text) => self.buffer.push_str(text),
                Task::Certificate(certificate) => self.certificate(certificate, &mut tasks)?,
                Task::Branches([]) => self.buffer.push(']'),
                Task::Branches([(_, first), rest @ ..]) => {
                    tasks.push(Task::Branches(rest));
                    if !rest.is_empty() {
                        tasks.push(Task::Text(","));
                    }
                    tasks.push(Task::Certificate(first));
                }
                Task::Edges([]) => self.buffer.push(']'),
                Task::Edges([first, rest @ ..]) => {
                    self.edge(first);
                    tasks.push(Task::Edges(rest));
                    tasks.push(Task::Text(if rest.is_empty() { "}" } else { "}," }));
                    if !first.because.is_empty() {
                        self.buffer.push_str(r#","because":["#);
                        tasks.push(Task::Edges(&first.because));
                    }
                }
                Task::Hints(observer, check) => {
                    if let Some(observer) = observer {
                        self.buffer.push_str(r#","observer":"#);
                        self.op(observer);
                    }
                    if let Some(check) = check {
                        self.buffer.push_str(r#","check":"#);
                        self.number(check);
                    }
                }
            }
            self.pass_on(CHUNK)?;
        }
        self.pass_on(0)
    }

    /// Writes the head of a certificate and everything that is not nested; the rest becomes tasks,
    /// the last one first.
    fn certificate(
        &mut self,
        certificate: &'a Certificate,
        tasks: &mut Vec<Task<'a>>,
    ) -> io::Result<()> {
        tasks.push(Task::Text("}"));
        match certificate {
            Certificate::Order { order, wr } => {
                self.buffer.push_str(r#"{"kind":"order","order":"#);
                self.ops(order.iter().copied())?;
                self.choices(wr)
            }
            Certificate::SessionOrders { orders, wr } => {
                self.buffer.push_str(r#"{"kind":"orders","orders":{"#);
                for (i, (session, order)) in orders.iter().enumerate() {
                    self.name(i, self.history.session_name(*session));
                    self.ops(order.iter().copied())?;
                }
                self.buffer.push('}');
                self.choices(wr)
            }
            Certificate::Witness { ww, wr } => {
                self.buffer.push_str(r#"{"kind":"witness","ww":{"#);
                for (i, (key, order)) in ww.iter().enumerate() {
                    self.name(i, self.history.key_name(*key));
                    self.ops(order.iter().copied())?;
                }
                self.buffer.push('}');
                self.choices(wr)
            }
            Certificate::Closure { pairs, wr } => {
                self.buffer.push_str(r#"{"kind":"closure","pairs":"#);
                self.pairs(pairs)?;
                self.choices(wr)
            }
            Certificate::Views { views, wr } => {
                self.buffer.push_str(r#"{"kind":"views","views":["#);
                for (i, View { session, relation, pairs }) in views.iter().enumerate() {
                    self.buffer.push_str(if i > 0 { "," } else { "" });
                    self.buffer.push_str(r#"{"session":"#);
                    quote(self.history.session_name(*session), &mut self.buffer);
                    self.buffer.push_str(r#","relation":"#);
                    quote(relation.as_str(), &mut self.buffer);
                    self.buffer.push_str(r#","pairs":"#);
                    self.pairs(pairs)?;
                    self.buffer.push('}');
                }
                self.buffer.push(']');
                self.choices(wr)
            }
            Certificate::ThinAirRead { read } => {
                self.buffer.push_str(r#"{"kind":"thin-air-read","read":"#);
                self.op(*read);
                Ok(())
            }
            Certificate::Cycle { edges, observer, check } => {
                self.buffer.push_str(r#"{"kind":"cycle","edges":["#);
                tasks.push(Task::Hints(*observer, *check));
                tasks.push(Task::Edges(edges));
                Ok(())
            }
            Certificate::SplitOrder { writes, branches } => {
                self.buffer.push_str(r#"{"kind":"cases","split":"#);
                self.ops(writes.iter().copied())?;
                self.buffer.push_str(r#","branches":["#);
                let [first, second] = &**branches;
                tasks.extend([
                    Task::Text("]"),
                    Task::Certificate(second),
                    Task::Text(","),
                    Task::Certificate(first),
                ]);
                Ok(())
            }
            Certificate::SplitRead { read, branches } => {
                self.buffer.push_str(r#"{"kind":"cases","read":"#);
                self.op(*read);
                self.buffer.push_str(r#","sources":"#);
                self.ops(branches.iter().map(|&(source, _)| source))?;
                self.buffer.push_str(r#","branches":["#);
                tasks.push(Task::Branches(branches));
                Ok(())
            }
            Certificate::SplitLast { key, branches } => {
                self.buffer.push_str(r#"{"kind":"cases","key":"#);
                quote(self.history.key_name(*key), &mut self.buffer);
                self.buffer.push_str(r#","last":"#);
                self.ops(branches.iter().map(|&(last, _)| last))?;
                self.buffer.push_str(r#","branches":["#);
                tasks.push(Task::Branches(branches));
                Ok(())
            }
        }
    }

    fn pairs(&mut self, pairs: &[(OpId, OpId)]) -> io::Result<()> {
        self.buffer.push('[');
        for (i, &(first, second)) in pairs.iter().enumerate() {
            if i > 0 {
                self.buffer.push(',');
            }
            self.ops([first, second].into_iter())?;
        }
        self.buffer.push(']');
        Ok(())
    }

    fn ops(&mut self, ops: impl Iterator<Item = OpId>) -> io::Result<()> {
        self.buffer.push('[');
        for (i, op) in ops.enumerate() {
            if i > 0 {
                self.buffer.push(',');
            }
            self.op(op);
            self.pass_on(CHUNK)?;
        }
        self.buffer.push(']');
        Ok(())
    }

    fn choices(&mut self, wr: &[(OpId, OpId)]) -> io::Result<()> {
        for (i, &(read, source)) in wr.iter().enumerate() {
            self.buffer.push_str(if i == 0 { r#","wr":{"# } else { "," });
            self.op(read);
            self.buffer.push(':');
            self.op(source);
            self.pass_on(CHUNK)?;
        }
        if !wr.is_empty() {
            self.buffer.push('}');
        }
        Ok(())
    }

    /// Writes an edge without its premises and the closing brace.
    fn edge(&mut self, edge: &Edge) {
        self.buffer.push_str(r#"{"from":"#);
        self.op(edge.from);
        self.buffer.push_str(r#","to":"#);
        self.op(edge.to);
        self.buffer.push_str(r#","relation":"#);
        quote(edge.relation.as_str(), &mut self.buffer);
    }

    /// Writes the name of the `i`th field of an object.
    fn name(&mut self, i: usize, name: &str) {
        if i > 0 {
            self.buffer.push(',');
        }
        quote(name, &mut self.buffer);
        self.buffer.push(':');
    }

    fn op(&mut self, op: OpId) {
        let history = self.history;
        if history.is_initial(op) {
            quote(&history.reference(op).to_string(), &mut self.buffer);
        } else {
            self.buffer.push_str(&self.prefixes[history.session_of(op).index()]);
            self.number(history.index_in_session(op));
            self.buffer.push('"');
        }
    }

    fn number(&mut self, number: u32) {
        use fmt::Write;
        write!(self.buffer, "{number}").expect("a string takes everything");
    }

    /// Flushes the buffer if it holds more than `limit` bytes.
    fn pass_on(&mut self, limit: usize) -> io::Result<()> {
        if self.buffer.len() > limit {
            self.out.write_all(self.buffer.as_bytes())?;
            self.buffer.clear();
        }
        Ok(())
    }
}

pub(crate) fn quote(text: &str, buffer: &mut String) {
    write_quoted(text, buffer).expect("a string takes everything");
}

/// Reads a certificate of a history.
pub fn read_certificate(history: &History, json: &Value) -> Result<Certificate, CertificateError> {
    Reader { history }.certificate(json, &Path::ROOT)
}

/// The path of a value: a list that grows backwards on the stack, and becomes text only for an
/// error.
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
    /// Number of enclosing certificates and edges.
    depth: usize,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
}

impl Path<'_> {
    const ROOT: Path<'static> = Path { parent: None, step: Step::Root, depth: 0 };

    fn field<'a>(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Field(name), depth: self.depth }
    }

    fn index(&self, index: usize) -> Path<'_> {
        Path { parent: Some(self), step: Step::Index(index), depth: self.depth }
    }

    /// Enters an element of a list of certificates or edges.
    fn nested(&self, index: usize) -> Result<Path<'_>, CertificateError> {
        if self.depth == MAX_DEPTH {
            return Err(CertificateError::Depth { path: self.to_string() });
        }
        Ok(Path { depth: self.depth + 1, ..self.index(index) })
    }

    fn expected<T>(&self, value: Option<T>, expected: &'static str) -> Result<T, CertificateError> {
        value.ok_or_else(|| CertificateError::Type { path: self.to_string(), expected })
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = vec![self.step];
        let mut at = self;
        while let Some(parent) = at.parent {
            steps.push(parent.step);
            at = parent;
        }
        steps.pop();
        if steps.is_empty() {
            return f.write_str("certificate");
        }
        for (i, step) in steps.iter().rev().enumerate() {
            match step {
                Step::Root => {}
                Step::Field(name) if i == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

type Read<T> = Result<T, CertificateError>;

struct Reader<'a> {
    history: &'a History,
}

impl Reader<'_> {
    fn certificate(&self, json: &Value, at: &Path<'_>) -> Read<Certificate> {
        let object = at.expected(json.as_object(), "an object")?;
        let kind = text(required(object, "kind", at)?, &at.field("kind"))?;
        match kind {
            "order" => {
                let order = self.ops(required(object, "order", at)?, &at.field("order"))?;
                Ok(Certificate::Order { order, wr: self.choices(object, at)? })
            }
            "orders" => {
                let sessions = self.sessions();
                let session = |name: &str| sessions.get(name).copied();
                let json = required(object, "orders", at)?;
                let orders = self.lists(json, &at.field("orders"), "session", session)?;
                Ok(Certificate::SessionOrders { orders, wr: self.choices(object, at)? })
            }
            "witness" => {
                let key = |name: &str| self.history.find_key(name);
                let ww = self.lists(required(object, "ww", at)?, &at.field("ww"), "key", key)?;
                Ok(Certificate::Witness { ww, wr: self.choices(object, at)? })
            }
            "closure" => {
                let pairs = self.pairs(object, at)?;
                Ok(Certificate::Closure { pairs, wr: self.choices(object, at)? })
            }
            "views" => {
                let (json, at_views) = (required(object, "views", at)?, at.field("views"));
                let sessions = self.sessions();
                let view = |(i, json): (usize, &Value)| {
                    let at = at_views.index(i);
                    let object = at.expected(json.as_object(), "a view")?;
                    let at_session = at.field("session");
                    let name = text(required(object, "session", &at)?, &at_session)?;
                    let session = sessions.get(name).copied();
                    let session = session.ok_or_else(|| CertificateError::Unknown {
                        path: at_session.to_string(),
                        what: "session",
                        name: name.into(),
                    })?;
                    let relation = text(required(object, "relation", &at)?, &at.field("relation"))?;
                    let relation = Relation::from(relation);
                    Ok(View { session, relation, pairs: self.pairs(object, &at)? })
                };
                let views = list(json, &at_views)?.iter().enumerate().map(view);
                let views = views.collect::<Read<_>>()?;
                Ok(Certificate::Views { views, wr: self.choices(object, at)? })
            }
            "thin-air-read" => Ok(Certificate::ThinAirRead {
                read: self.op(required(object, "read", at)?, &at.field("read"))?,
            }),
            "cycle" => self.cycle(object, at),
            "cases" => self.cases(object, at),
            kind => Err(CertificateError::Kind {
                path: at.field("kind").to_string(),
                kind: kind.into(),
            }),
        }
    }

    fn cycle(&self, object: &Map<String, Value>, at: &Path<'_>) -> Read<Certificate> {
        let edges = self.edges(required(object, "edges", at)?, &at.field("edges"))?;
        let observer = match object.get("observer") {
            Some(observer) => Some(self.op(observer, &at.field("observer"))?),
            None => None,
        };
        let check = match object.get("check") {
            Some(check) => {
                let number = check.as_u64().and_then(|check| u32::try_from(check).ok());
                Some(at.field("check").expected(number, "the number of a check")?)
            }
            None => None,
        };
        Ok(Certificate::Cycle { edges, observer, check })
    }

    fn cases(&self, object: &Map<String, Value>, at: &Path<'_>) -> Read<Certificate> {
        let at_branches = at.field("branches");
        let branches = list(required(object, "branches", at)?, &at_branches)?;
        let branches = |expected: usize| -> Read<Vec<Certificate>> {
            of_length(branches.len(), expected, &at_branches)?;
            let read = |(i, branch)| self.certificate(branch, &at_branches.nested(i)?);
            branches.iter().enumerate().map(read).collect()
        };
        if let Some(split) = object.get("split") {
            let at_split = at.field("split");
            let writes = self.ops(split, &at_split)?;
            of_length(writes.len(), 2, &at_split)?;
            let branches: Box<[Certificate; 2]> =
                Box::new(branches(2)?.try_into().expect("the length was checked"));
            return Ok(Certificate::SplitOrder { writes: [writes[0], writes[1]], branches });
        }
        if let Some(key) = object.get("key") {
            let at_key = at.field("key");
            let name = text(key, &at_key)?;
            let key = self.history.find_key(name).ok_or_else(|| CertificateError::Unknown {
                path: at_key.to_string(),
                what: "key",
                name: name.into(),
            })?;
            let last = self.ops(required(object, "last", at)?, &at.field("last"))?;
            let branches = branches(last.len())?;
            let branches = last.into_iter().zip(branches).collect();
            return Ok(Certificate::SplitLast { key, branches });
        }
        let read = self.op(required(object, "read", at)?, &at.field("read"))?;
        let sources = self.ops(required(object, "sources", at)?, &at.field("sources"))?;
        let branches = branches(sources.len())?;
        Ok(Certificate::SplitRead { read, branches: sources.into_iter().zip(branches).collect() })
    }

    fn edges(&self, json: &Value, at: &Path<'_>) -> Read<Vec<Edge>> {
        let read = |(i, edge)| self.edge(edge, &at.nested(i)?);
        list(json, at)?.iter().enumerate().map(read).collect()
    }

    fn edge(&self, json: &Value, at: &Path<'_>) -> Read<Edge> {
        let object = at.expected(json.as_object(), "an edge")?;
        let from = self.op(required(object, "from", at)?, &at.field("from"))?;
        let to = self.op(required(object, "to", at)?, &at.field("to"))?;
        let relation = text(required(object, "relation", at)?, &at.field("relation"))?;
        let because = match object.get("because") {
            Some(premises) => self.edges(premises, &at.field("because"))?,
            None => Vec::new(),
        };
        Ok(Edge { from, to, relation: relation.into(), because })
    }

    fn choices(&self, object: &Map<String, Value>, at: &Path<'_>) -> Read<Vec<(OpId, OpId)>> {
        let Some(json) = object.get("wr") else { return Ok(Vec::new()) };
        let at = at.field("wr");
        let mut choices = Vec::new();
        for (read, source) in at.expected(json.as_object(), "an object")? {
            let at = at.field(read);
            choices.push((self.find(read, &at)?, self.op(source, &at)?));
        }
        choices.sort_unstable();
        Ok(choices)
    }

    /// Reads an object whose fields are lists of operations; `find` converts the names, and the
    /// lists are sorted by its results.
    fn lists<Id: Copy + Ord>(
        &self,
        json: &Value,
        at: &Path<'_>,
        what: &'static str,
        find: impl Fn(&str) -> Option<Id>,
    ) -> Read<Vec<(Id, Vec<OpId>)>> {
        let mut lists = Vec::new();
        for (name, ops) in at.expected(json.as_object(), "an object")? {
            let id = find(name).ok_or_else(|| CertificateError::Unknown {
                path: at.to_string(),
                what,
                name: name.clone(),
            })?;
            lists.push((id, self.ops(ops, &at.field(name))?));
        }
        lists.sort_unstable_by_key(|&(id, _)| id);
        Ok(lists)
    }

    fn ops(&self, json: &Value, at: &Path<'_>) -> Read<Vec<OpId>> {
        let read = |(i, op)| self.op(op, &at.index(i));
        list(json, at)?.iter().enumerate().map(read).collect()
    }

    fn sessions(&self) -> HashMap<&str, SessionId> {
        self.history.sessions().map(|s| (self.history.session_name(s), s)).collect()
    }

    fn pairs(&self, object: &Map<String, Value>, at: &Path<'_>) -> Read<Vec<(OpId, OpId)>> {
        let (json, at) = (required(object, "pairs", at)?, at.field("pairs"));
        let pair = |(i, pair)| self.pair(pair, &at.index(i));
        list(json, &at)?.iter().enumerate().map(pair).collect()
    }

    fn pair(&self, json: &Value, at: &Path<'_>) -> Read<(OpId, OpId)> {
        let ops = self.ops(json, at)?;
        at.expected(<[OpId; 2]>::try_from(ops).ok(), "two operations").map(|[a, b]| (a, b))
    }

    fn op(&self, json: &Value, at: &Path<'_>) -> Read<OpId> {
        self.find(text(json, at)?, at)
    }

    fn find(&self, reference: &str, at: &Path<'_>) -> Read<OpId> {
        self.history.find(reference).ok_or_else(|| CertificateError::Unknown {
            path: at.to_string(),
            what: "operation",
            name: reference.into(),
        })
    }
}

fn required<'a>(object: &'a Map<String, Value>, name: &str, at: &Path<'_>) -> Read<&'a Value> {
    object.get(name).ok_or_else(|| CertificateError::Missing { path: at.field(name).to_string() })
}

fn text<'a>(json: &'a Value, at: &Path<'_>) -> Read<&'a str> {
    at.expected(json.as_str(), "a text")
}

fn list<'a>(json: &'a Value, at: &Path<'_>) -> Read<&'a Vec<Value>> {
    at.expected(json.as_array(), "a list")
}

fn of_length(found: usize, expected: usize, at: &Path<'_>) -> Read<()> {
    if found == expected {
        return Ok(());
    }
    Err(CertificateError::Length { path: at.to_string(), expected, found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use consistory_history::{Action, HistoryBuilder, KeyId};

    /// `t0: w(x,1) w(x,2)` and `a "b": r(x,1) r(x,2)`.
    fn history() -> History {
        let mut b = HistoryBuilder::new();
        let (t0, t1) = (b.session("t0"), b.session("a \"b\""));
        let x = b.key("x\n");
        for value in [1, 2] {
            let value = b.int(value);
            b.push(t0, Action::Write { key: x, value });
            b.push(t1, Action::Read { key: x, value });
        }
        b.finish().unwrap()
    }

    fn written(history: &History, certificate: &Certificate) -> String {
        let mut out = Vec::new();
        write_certificate(history, certificate, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn read(text: &str) -> Result<Certificate, CertificateError> {
        read_certificate(&history(), &serde_json::from_str(text).unwrap())
    }

    /// Checks that a certificate is written as exactly this text, and that reading the text returns
    /// the same certificate.
    #[track_caller]
    fn check(certificate: Certificate, text: &str) {
        assert_eq!(written(&history(), &certificate), text);
        assert_eq!(read(text), Ok(certificate));
    }

    const W1: OpId = OpId(0);
    const W2: OpId = OpId(1);
    const R1: OpId = OpId(2);
    const R2: OpId = OpId(3);
    const INIT: OpId = OpId(4);

    #[test]
    fn each_kind_is_written_as_agreed_and_read_back() {
        check(
            Certificate::Order { order: vec![W1, R1, W2, R2], wr: vec![] },
            r#"{"kind":"order","order":["t0:0","a \"b\":0","t0:1","a \"b\":1"]}"#,
        );
        check(Certificate::Order { order: vec![], wr: vec![] }, r#"{"kind":"order","order":[]}"#);
        check(
            Certificate::SessionOrders {
                orders: vec![(SessionId(0), vec![W1]), (SessionId(1), vec![W1, R1])],
                wr: vec![(R1, W1), (R2, INIT)],
            },
            r#"{"kind":"orders","orders":{"t0":["t0:0"],"a \"b\"":["t0:0","a \"b\":0"]},"wr":{"a \"b\":0":"t0:0","a \"b\":1":"init:x\n"}}"#,
        );
        check(
            Certificate::Witness { ww: vec![(KeyId(0), vec![INIT, W1])], wr: vec![] },
            r#"{"kind":"witness","ww":{"x\n":["init:x\n","t0:0"]}}"#,
        );
        check(
            Certificate::Closure { pairs: vec![(INIT, W1), (W1, R2)], wr: vec![] },
            r#"{"kind":"closure","pairs":[["init:x\n","t0:0"],["t0:0","a \"b\":1"]]}"#,
        );
        let view = |relation: &'static str, session, pairs| View {
            session: SessionId(session),
            relation: relation.into(),
            pairs,
        };
        check(
            Certificate::Views {
                views: vec![view("ppo", 0, vec![]), view("poloc", 1, vec![(W1, W2)])],
                wr: vec![(R1, W1)],
            },
            r#"{"kind":"views","views":[{"session":"t0","relation":"ppo","pairs":[]},{"session":"a \"b\"","relation":"poloc","pairs":[["t0:0","t0:1"]]}],"wr":{"a \"b\":0":"t0:0"}}"#,
        );
        check(
            Certificate::ThinAirRead { read: R2 },
            r#"{"kind":"thin-air-read","read":"a \"b\":1"}"#,
        );
        let premises = vec![Edge::given(W1, R1, "wr"), Edge::given(W1, W2, "po")];
        let edges = vec![Edge::derived(R1, W2, "rw", premises), Edge::given(W2, R1, "po")];
        let written = r#"{"kind":"cycle","edges":[{"from":"a \"b\":0","to":"t0:1","relation":"rw","because":[{"from":"t0:0","to":"a \"b\":0","relation":"wr"},{"from":"t0:0","to":"t0:1","relation":"po"}]},{"from":"t0:1","to":"a \"b\":0","relation":"po"}]"#;
        check(
            Certificate::Cycle { edges: edges.clone(), observer: None, check: None },
            &format!("{written}}}"),
        );
        check(
            Certificate::Cycle { edges, observer: Some(R2), check: Some(3) },
            &format!(r#"{written},"observer":"a \"b\":1","check":3}}"#),
        );
        let leaf = || Certificate::ThinAirRead { read: R1 };
        check(
            Certificate::SplitOrder { writes: [W1, W2], branches: Box::new([leaf(), leaf()]) },
            r#"{"kind":"cases","split":["t0:0","t0:1"],"branches":[{"kind":"thin-air-read","read":"a \"b\":0"},{"kind":"thin-air-read","read":"a \"b\":0"}]}"#,
        );
        check(
            Certificate::SplitRead { read: R1, branches: vec![(W1, leaf()), (INIT, leaf())] },
            r#"{"kind":"cases","read":"a \"b\":0","sources":["t0:0","init:x\n"],"branches":[{"kind":"thin-air-read","read":"a \"b\":0"},{"kind":"thin-air-read","read":"a \"b\":0"}]}"#,
        );
        check(
            Certificate::SplitRead { read: R1, branches: vec![] },
            r#"{"kind":"cases","read":"a \"b\":0","sources":[],"branches":[]}"#,
        );
        check(
            Certificate::SplitLast { key: KeyId(0), branches: vec![(W1, leaf()), (W2, leaf())] },
            r#"{"kind":"cases","key":"x\n","last":["t0:0","t0:1"],"branches":[{"kind":"thin-air-read","read":"a \"b\":0"},{"kind":"thin-air-read","read":"a \"b\":0"}]}"#,
        );
        check(
            Certificate::SplitLast { key: KeyId(0), branches: vec![] },
            r#"{"kind":"cases","key":"x\n","last":[],"branches":[]}"#,
        );
    }

    #[test]
    fn an_error_says_which_part_is_wrong() {
        for (text, message) in [
            ("[]", "`certificate` is not an object"),
            (r#"{"order":[]}"#, "`kind` is missing"),
            (r#"{"kind":1}"#, "`kind` is not a text"),
            (r#"{"kind":"guess"}"#, "`kind`: there is no kind `guess`"),
            (r#"{"kind":"order"}"#, "`order` is missing"),
            (r#"{"kind":"order","order":{}}"#, "`order` is not a list"),
            (r#"{"kind":"order","order":["t0:0",7]}"#, "`order[1]` is not a text"),
            (
                r#"{"kind":"order","order":["t0:2"]}"#,
                "`order[0]`: the history has no operation `t0:2`",
            ),
            (
                r#"{"kind":"order","order":[],"wr":{"t0:0":"init:y"}}"#,
                "`wr.t0:0`: the history has no operation `init:y`",
            ),
            (
                r#"{"kind":"orders","orders":{"t9":[]}}"#,
                "`orders`: the history has no session `t9`",
            ),
            (
                r#"{"kind":"orders","orders":{"t0":[""]}}"#,
                "`orders.t0[0]`: the history has no operation ``",
            ),
            (r#"{"kind":"witness","ww":{"y":[]}}"#, "`ww`: the history has no key `y`"),
            (r#"{"kind":"cycle","edges":[1]}"#, "`edges[0]` is not an edge"),
            (
                r#"{"kind":"cycle","edges":[{"from":"t0:0","to":"t0:1","relation":"rw","because":[{"from":"t0:0","to":"t0:1"}]}]}"#,
                "`edges[0].because[0].relation` is missing",
            ),
            (r#"{"kind":"cycle","edges":[],"check":-1}"#, "`check` is not the number of a check"),
            (r#"{"kind":"cycle","edges":[],"observer":null}"#, "`observer` is not a text"),
            (r#"{"kind":"cases","branches":[]}"#, "`read` is missing"),
            (
                r#"{"kind":"cases","split":["t0:0","t0:1"],"branches":[{}]}"#,
                "`branches` has 1 entries instead of 2",
            ),
            (
                r#"{"kind":"cases","split":["t0:0"],"branches":[{},{}]}"#,
                "`split` has 1 entries instead of 2",
            ),
            (
                r#"{"kind":"cases","split":["t0:0","t0:1"],"branches":[{"kind":"order","order":[]},{}]}"#,
                "`branches[1].kind` is missing",
            ),
            (
                r#"{"kind":"cases","read":"t0:0","sources":["t0:1"],"branches":[]}"#,
                "`branches` has 0 entries instead of 1",
            ),
            (
                r#"{"kind":"cases","key":"y","last":[],"branches":[]}"#,
                "`key`: the history has no key `y`",
            ),
            (r#"{"kind":"cases","key":"x\n","branches":[]}"#, "`last` is missing"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded_when_read_and_not_when_written() {
        let nest = |depth: usize| {
            let mut edge = Edge::given(W1, W2, "hb");
            for _ in 0..depth {
                edge = Edge::derived(W1, W2, "hb", vec![edge]);
            }
            edge
        };
        let json = |depth: usize| {
            let edge = r#"{"from":"t0:0","to":"t0:1","relation":"hb""#;
            let open = format!("{edge},\"because\":[").repeat(depth);
            let close = "]}".repeat(depth);
            let text = format!(r#"{{"kind":"cycle","edges":[{open}{edge}}}{close}]}}"#);
            let mut parser = serde_json::Deserializer::from_str(&text);
            parser.disable_recursion_limit();
            parser.into_iter::<Value>().next().unwrap().unwrap()
        };
        let history = history();
        let read_back = || {
            let edges = vec![nest(MAX_DEPTH - 1)];
            assert_eq!(
                read_certificate(&history, &json(MAX_DEPTH - 1)),
                Ok(Certificate::Cycle { edges, observer: None, check: None })
            );
            assert!(matches!(
                read_certificate(&history, &json(MAX_DEPTH)),
                Err(CertificateError::Depth { .. })
            ));
        };
        std::thread::scope(|scope| {
            let reader = std::thread::Builder::new().stack_size(256 << 20);
            reader.spawn_scoped(scope, read_back).unwrap().join().unwrap();
        });
        let deep = Certificate::Cycle { edges: vec![nest(3_000)], observer: None, check: None };
        assert_eq!(written(&history, &deep).matches("because").count(), 3_000);
    }

    #[test]
    fn long_orders_are_passed_on_in_chunks() {
        let mut b = HistoryBuilder::new();
        let t0 = b.session("t0");
        for _ in 0..30_000 {
            b.push(t0, Action::Fence);
        }
        let history = b.finish().unwrap();
        let certificate = Certificate::Order { order: history.ops().collect(), wr: vec![] };
        let text = written(&history, &certificate);
        assert!(text.len() > 4 * CHUNK);
        let json = serde_json::from_str(&text).unwrap();
        assert_eq!(read_certificate(&history, &json), Ok(certificate));
    }
}
