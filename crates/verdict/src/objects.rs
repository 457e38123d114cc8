//! Certificates for histories of an object's calls.
//!
//! In JSON, an operation is represented by its reference:
//!
//! ```json
//! {"kind":"linearization","order":["t0:0","t1:0"],"vis":{"t0:0":[],"t1:0":["t0:0"]}}
//! {"kind":"unexplained","returned":["t0:0","t1:0"],
//!   "attempts":[{"order":["t0:0"],"vis":{"t0:0":[]},"unexplained":"t1:0"}],
//!   "before":{"order":["t0:0"]}}
//! {"kind":"core","pattern":"out-of-order","operations":["t0:0","t0:1","t1:0","t1:1"],
//!   "last":"t1:1","before":{"order":["t0:0","t0:1","t1:0"]}}
//! ```
//!
//! Without `vis`, each operation sees everything before it in the order. `last` and `before` are
//! optional.

use std::io;

use consistory_history::{History, OpId, Value as ReturnValue};
use serde_json::{Map, Value};

use crate::json::CertificateError;
use crate::{Judgement, Pattern, Verdict, json::quote};

/// The proof of a verdict on a history of an object's calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectCertificate {
    /// Consistent.
    Linearization(Linearization),
    /// Violation.
    Unexplained(Unexplained),
    /// Violation of linearizability.
    Core(Core),
}

impl ObjectCertificate {
    /// Returns the proved verdict.
    pub fn verdict(&self) -> Verdict {
        match self {
            ObjectCertificate::Linearization(_) => Verdict::Consistent,
            ObjectCertificate::Unexplained(_) | ObjectCertificate::Core(_) => Verdict::Violation,
        }
    }

    /// Returns the word that appears in reports.
    pub fn kind(&self) -> &'static str {
        match self {
            ObjectCertificate::Linearization(_) => "linearization",
            ObjectCertificate::Unexplained(_) => "unexplained",
            ObjectCertificate::Core(_) => "core",
        }
    }

    /// Returns the certificate with every operation replaced by another one, for example to convert
    /// between a history and a part of it.
    #[must_use]
    pub fn renamed(&self, name: impl Fn(OpId) -> OpId) -> Self {
        let all = |ops: &[OpId]| ops.iter().map(|&op| name(op)).collect::<Vec<_>>();
        let linearization = |found: &Linearization| Linearization {
            order: all(&found.order),
            vis: found.vis.as_ref().map(|vis| vis.iter().map(|seen| all(seen)).collect()),
        };
        match self {
            ObjectCertificate::Linearization(found) => {
                ObjectCertificate::Linearization(linearization(found))
            }
            ObjectCertificate::Unexplained(found) => ObjectCertificate::Unexplained(Unexplained {
                returned: all(&found.returned),
                attempts: found
                    .attempts
                    .iter()
                    .map(|attempt| Attempt {
                        linearization: linearization(&attempt.linearization),
                        unexplained: name(attempt.unexplained),
                    })
                    .collect(),
                before: found.before.as_ref().map(linearization),
            }),
            ObjectCertificate::Core(core) => ObjectCertificate::Core(Core {
                pattern: core.pattern.clone(),
                operations: all(&core.operations),
                prefix: core.prefix.as_ref().map(|prefix| Prefix {
                    last: name(prefix.last),
                    before: linearization(&prefix.before),
                }),
            }),
        }
    }

    /// Counts the operations that the certificate lists.
    pub fn size(&self) -> usize {
        match self {
            ObjectCertificate::Linearization(linearization) => linearization.size(),
            ObjectCertificate::Unexplained(Unexplained { returned, attempts, .. }) => {
                let attempts = attempts.iter().map(|attempt| 1 + attempt.linearization.size());
                returned.len() + attempts.sum::<usize>()
            }
            ObjectCertificate::Core(core) => core.operations.len(),
        }
    }
}

impl From<Linearization> for Judgement<ObjectCertificate> {
    fn from(linearization: Linearization) -> Self {
        Judgement::Consistent(ObjectCertificate::Linearization(linearization))
    }
}

impl From<Unexplained> for Judgement<ObjectCertificate> {
    fn from(unexplained: Unexplained) -> Self {
        let certificate = ObjectCertificate::Unexplained(unexplained);
        Judgement::Violation { pattern: Pattern::Unexplained, certificate }
    }
}

impl From<Core> for Judgement<ObjectCertificate> {
    fn from(core: Core) -> Self {
        let pattern = core.pattern.clone();
        Judgement::Violation { pattern, certificate: ObjectCertificate::Core(core) }
    }
}

/// The operations that took effect, in an order, and the operations that each of them sees.
///
/// A linearization contains every completed operation, and the pending ones that took effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Linearization {
    /// The order, first operation first.
    pub order: Vec<OpId>,
    /// For each operation of the order, the operations that it sees; `None` if each sees everything
    /// before it.
    pub vis: Option<Vec<Vec<OpId>>>,
}

impl Linearization {
    fn size(&self) -> usize {
        self.order.len() + self.vis.iter().flatten().map(Vec::len).sum::<usize>()
    }
}

/// A part of a history that no abstract execution explains.
///
/// Only the returns of `returned` count: every other operation is pending, so it may have taken
/// effect or not. If this part cannot be explained, neither can the history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unexplained {
    /// Operations that returned, in the order of their returns: the shortest failing prefix. The
    /// last one cannot be explained.
    pub returned: Vec<OpId>,
    /// Attempts that got furthest.
    pub attempts: Vec<Attempt>,
    /// An explanation of every operation that returned before the last one of `returned` in the
    /// whole history, which shows that no shorter prefix fails; `None` if there is none.
    pub before: Option<Linearization>,
}

/// A linearization that cannot be extended by an operation that should come next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The linearization.
    pub linearization: Linearization,
    /// Operation whose return the linearization does not explain.
    pub unexplained: OpId,
}

/// Return values by the specification for the operation that an [`Attempt`] does not explain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instead {
    /// Return value if the operation sees only the operations that the axioms require; `None` if
    /// the operation is impossible then.
    pub least: Option<ReturnValue>,
    /// Return value if the operation sees all operations; `None` if it is impossible then.
    pub most: Option<ReturnValue>,
}

/// A few operations that are not linearizable by themselves.
///
/// The operations are closed: if the history had a linearization, removing all other operations
/// from it would leave a linearization of these. The condition for this depends on the object; the
/// checker verifies it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Core {
    /// The pattern.
    pub pattern: Pattern,
    /// The operations.
    pub operations: Vec<OpId>,
    /// Shortest prefix of the history that the operations refute; `None` if it is unknown.
    pub prefix: Option<Prefix>,
}

/// The shortest prefix of a history that is not linearizable, in which operations that return later
/// are pending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// The operation whose return ends the prefix.
    pub last: OpId,
    /// An explanation of every operation that returned before `last`.
    pub before: Linearization,
}

/// Writes a certificate as one line of JSON, without a line break.
pub fn write_object_certificate(
    history: &History,
    certificate: &ObjectCertificate,
    out: &mut impl io::Write,
) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    let w = &mut out;
    match certificate {
        ObjectCertificate::Linearization(linearization) => {
            w.write_all(br#"{"kind":"linearization","#)?;
            write_linearization(history, linearization, w)?;
        }
        ObjectCertificate::Unexplained(Unexplained { returned, attempts, before }) => {
            w.write_all(br#"{"kind":"unexplained","returned":"#)?;
            write_ops(history, returned, w)?;
            w.write_all(br#","attempts":["#)?;
            for (i, attempt) in attempts.iter().enumerate() {
                w.write_all(if i > 0 { b",{" } else { b"{" })?;
                write_linearization(history, &attempt.linearization, w)?;
                w.write_all(br#","unexplained":"#)?;
                write_op(history, attempt.unexplained, w)?;
                w.write_all(b"}")?;
            }
            w.write_all(b"]")?;
            write_before(history, before.as_ref(), w)?;
        }
        ObjectCertificate::Core(Core { pattern, operations, prefix }) => {
            let mut name = String::new();
            quote(pattern.as_str(), &mut name);
            write!(w, r#"{{"kind":"core","pattern":{name},"operations":"#)?;
            write_ops(history, operations, w)?;
            if let Some(Prefix { last, before }) = prefix {
                w.write_all(br#","last":"#)?;
                write_op(history, *last, w)?;
                write_before(history, Some(before), w)?;
            }
        }
    }
    use io::Write;
    w.write_all(b"}")?;
    w.flush()
}

fn write_before(
    history: &History,
    before: Option<&Linearization>,
    out: &mut impl io::Write,
) -> io::Result<()> {
    let Some(before) = before else { return Ok(()) };
    out.write_all(br#","before":{"#)?;
    write_linearization(history, before, out)?;
    out.write_all(b"}")
}

fn write_linearization(
    history: &History,
    linearization: &Linearization,
    out: &mut impl io::Write,
) -> io::Result<()> {
    out.write_all(br#""order":"#)?;
    write_ops(history, &linearization.order, out)?;
    let Some(vis) = &linearization.vis else { return Ok(()) };
    out.write_all(br#","vis":{"#)?;
    for (i, (&op, seen)) in linearization.order.iter().zip(vis).enumerate() {
        if i > 0 {
            out.write_all(b",")?;
        }
        write_op(history, op, out)?;
        out.write_all(b":")?;
        write_ops(history, seen, out)?;
    }
    out.write_all(b"}")
}

fn write_ops(history: &History, ops: &[OpId], out: &mut impl io::Write) -> io::Result<()> {
    out.write_all(b"[")?;
    for (i, &op) in ops.iter().enumerate() {
        if i > 0 {
            out.write_all(b",")?;
        }
        write_op(history, op, out)?;
    }
    out.write_all(b"]")
}

fn write_op(history: &History, op: OpId, out: &mut impl io::Write) -> io::Result<()> {
    let mut text = String::new();
    quote(&history.reference(op).to_string(), &mut text);
    out.write_all(text.as_bytes())
}

/// Reads a certificate of a history of calls.
pub fn read_object_certificate(
    history: &History,
    json: &Value,
) -> Result<ObjectCertificate, CertificateError> {
    let object = json.as_object().ok_or_else(|| wrong("certificate", "an object"))?;
    match text(field(object, "", "kind")?, "kind")? {
        "linearization" => {
            Ok(ObjectCertificate::Linearization(read_linearization(history, object, "")?))
        }
        "unexplained" => {
            let returned = read_ops(history, field(object, "", "returned")?, "returned")?;
            let list = field(object, "", "attempts")?;
            let list = list.as_array().ok_or_else(|| wrong("attempts", "a list"))?;
            let read = |(i, json): (usize, &Value)| {
                let path = format!("attempts[{i}]");
                let object = json.as_object().ok_or_else(|| wrong(&path, "an object"))?;
                let prefix = format!("{path}.");
                let linearization = read_linearization(history, object, &prefix)?;
                let unexplained = field(object, &prefix, "unexplained")?;
                let unexplained = read_op(history, unexplained, &format!("{prefix}unexplained"))?;
                Ok(Attempt { linearization, unexplained })
            };
            let attempts = list.iter().enumerate().map(read).collect::<Result<_, _>>()?;
            let before = read_before(history, object)?;
            Ok(ObjectCertificate::Unexplained(Unexplained { returned, attempts, before }))
        }
        "core" => {
            let pattern = text(field(object, "", "pattern")?, "pattern")?.into();
            let operations = read_ops(history, field(object, "", "operations")?, "operations")?;
            let prefix = match read_before(history, object)? {
                Some(before) => {
                    let last = read_op(history, field(object, "", "last")?, "last")?;
                    Some(Prefix { last, before })
                }
                None => None,
            };
            Ok(ObjectCertificate::Core(Core { pattern, operations, prefix }))
        }
        kind => Err(CertificateError::Kind { path: "kind".into(), kind: kind.into() }),
    }
}

fn read_before(
    history: &History,
    object: &Map<String, Value>,
) -> Result<Option<Linearization>, CertificateError> {
    let Some(before) = object.get("before") else { return Ok(None) };
    let before = before.as_object().ok_or_else(|| wrong("before", "an object"))?;
    read_linearization(history, before, "before.").map(Some)
}

fn read_linearization(
    history: &History,
    object: &Map<String, Value>,
    prefix: &str,
) -> Result<Linearization, CertificateError> {
    let order = read_ops(history, field(object, prefix, "order")?, &format!("{prefix}order"))?;
    let Some(vis) = object.get("vis") else { return Ok(Linearization { order, vis: None }) };
    let path = format!("{prefix}vis");
    let vis = vis.as_object().ok_or_else(|| wrong(&path, "an object"))?;
    if vis.len() != order.len() {
        let (expected, found) = (order.len(), vis.len());
        return Err(CertificateError::Length { path, expected, found });
    }
    let seen = |op: &OpId| {
        let name = history.reference(*op).to_string();
        read_ops(history, field(vis, &format!("{path}."), &name)?, &format!("{path}.{name}"))
    };
    let vis = order.iter().map(seen).collect::<Result<_, _>>()?;
    Ok(Linearization { order, vis: Some(vis) })
}

fn read_ops(history: &History, json: &Value, path: &str) -> Result<Vec<OpId>, CertificateError> {
    let list = json.as_array().ok_or_else(|| wrong(path, "a list of operations"))?;
    list.iter().enumerate().map(|(i, op)| read_op(history, op, &format!("{path}[{i}]"))).collect()
}

fn read_op(history: &History, json: &Value, path: &str) -> Result<OpId, CertificateError> {
    let name = text(json, path)?;
    history.find(name).filter(|&op| !history.is_initial(op)).ok_or_else(|| {
        let (path, name) = (path.to_owned(), name.to_owned());
        CertificateError::Unknown { path, what: "operation", name }
    })
}

fn field<'a>(
    object: &'a Map<String, Value>,
    prefix: &str,
    name: &str,
) -> Result<&'a Value, CertificateError> {
    let missing = || CertificateError::Missing { path: format!("{prefix}{name}") };
    object.get(name).ok_or_else(missing)
}

fn text<'a>(json: &'a Value, path: &str) -> Result<&'a str, CertificateError> {
    json.as_str().ok_or_else(|| wrong(path, "a text"))
}

fn wrong(path: &str, expected: &'static str) -> CertificateError {
    CertificateError::Type { path: path.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use consistory_history::{Action, Call, HistoryBuilder};

    use super::*;

    fn history() -> History {
        let mut b = HistoryBuilder::new();
        for session in ["t0", "t1"] {
            let session = b.session(session);
            let call = b.call(Call { method: "pop".into(), args: vec![], returns: None });
            b.push(session, Action::Call(call));
        }
        b.finish().unwrap()
    }

    fn round_trip(text: &str) {
        let history = history();
        let json = serde_json::from_str(text).unwrap();
        let certificate = read_object_certificate(&history, &json).unwrap();
        let mut out = Vec::new();
        write_object_certificate(&history, &certificate, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn what_is_written_is_read_again() {
        round_trip(r#"{"kind":"linearization","order":["t0:0","t1:0"]}"#);
        round_trip(
            r#"{"kind":"linearization","order":["t0:0","t1:0"],"vis":{"t0:0":[],"t1:0":["t0:0"]}}"#,
        );
        round_trip(r#"{"kind":"unexplained","returned":["t0:0"],"attempts":[]}"#);
        round_trip(r#"{"kind":"core","pattern":"thin-air","operations":["t0:0"]}"#);
        round_trip(
            r#"{"kind":"core","pattern":"thin-air","operations":["t0:0"],"last":"t0:0","before":{"order":["t1:0"]}}"#,
        );
        round_trip(
            r#"{"kind":"unexplained","returned":["t0:0"],"attempts":[],"before":{"order":[]}}"#,
        );
        round_trip(
            r#"{"kind":"unexplained","returned":["t0:0","t1:0"],"attempts":[{"order":["t0:0"],"vis":{"t0:0":[]},"unexplained":"t1:0"}]}"#,
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, message) in [
            (r#"[]"#, "`certificate` is not an object"),
            (r#"{"kind":"order"}"#, "`kind`: there is no kind `order`"),
            (r#"{"kind":"linearization"}"#, "`order` is missing"),
            (
                r#"{"kind":"linearization","order":["t2:0"]}"#,
                "`order[0]`: the history has no operation `t2:0`",
            ),
            (
                r#"{"kind":"linearization","order":["t0:0"],"vis":{}}"#,
                "`vis` has 0 entries instead of 1",
            ),
            (
                r#"{"kind":"linearization","order":["t0:0"],"vis":{"t1:0":[]}}"#,
                "`vis.t0:0` is missing",
            ),
            (
                r#"{"kind":"core","pattern":"","operations":[],"before":{"order":[]}}"#,
                "`last` is missing",
            ),
            (
                r#"{"kind":"unexplained","returned":[],"attempts":[],"before":{}}"#,
                "`before.order` is missing",
            ),
            (
                r#"{"kind":"unexplained","returned":[],"attempts":[{"order":[]}]}"#,
                "`attempts[0].unexplained` is missing",
            ),
        ] {
            let json = serde_json::from_str(text).unwrap();
            let error = read_object_certificate(&history(), &json).unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
        }
    }
}
