//! Certificates of isolation levels in JSON.
//!
//! A transaction is represented by the reference of its first operation.
//!
//! ```json
//! {"kind":"order","order":["t0:0","t1:0"],"snapshots":[0,1],"wr":{"t1:0":"t0:0"}}
//! {"kind":"cycle","edges":[{"from":"t0:0","to":"t1:0","relation":"wr","read":"t1:0"},
//!   {"from":"t1:0","to":"t0:0","relation":"rw","read":"t1:1","because":[
//!     {"from":"t2:0","to":"t0:0","relation":"ww","key":"x","list":"t3:0"}]}]}
//! {"kind":"cases","key":"x","split":["t0:0","t1:0"],"branches":[{},{}]}
//! {"kind":"cases","read":"t1:0","sources":["t0:0","init:x"],"branches":[{},{}]}
//! {"kind":"bad-read","pattern":"AbortedRead","read":"t1:0"}
//! ```
//!
//! `snapshots` occurs only with `si` and `pc`, and `wr` only if reads are ambiguous.

use std::io;

use consistory_history::{History, KeyId, OpId};
use serde_json::{Map, Value};

use crate::json::{CertificateError, MAX_DEPTH, quote};
use crate::transactions::{BadRead, Dependency, Relates, TransactionCertificate};

/// Size of the output buffer in bytes.
const CHUNK: usize = 1 << 16;

/// Writes a certificate of an isolation level as one line of JSON, without a line break.
pub fn write_transaction_certificate(
    history: &History,
    certificate: &TransactionCertificate,
    out: &mut impl io::Write,
) -> io::Result<()> {
    let mut writer = Writer { history, buffer: String::new(), out };
    writer.certificate(certificate)?;
    writer.pass_on(0)
}

struct Writer<'a, W> {
    history: &'a History,
    buffer: String,
    out: &'a mut W,
}

impl<W: io::Write> Writer<'_, W> {
    fn certificate(&mut self, certificate: &TransactionCertificate) -> io::Result<()> {
        match certificate {
            TransactionCertificate::Order { order, snapshots, wr } => {
                self.buffer.push_str(r#"{"kind":"order","order":["#);
                for (i, &op) in order.iter().enumerate() {
                    self.comma(i);
                    self.op(op);
                    self.pass_on(CHUNK)?;
                }
                self.buffer.push(']');
                if !snapshots.is_empty() {
                    self.buffer.push_str(r#","snapshots":["#);
                    for (i, count) in snapshots.iter().enumerate() {
                        self.comma(i);
                        self.buffer.push_str(&count.to_string());
                        self.pass_on(CHUNK)?;
                    }
                    self.buffer.push(']');
                }
                if !wr.is_empty() {
                    self.buffer.push_str(r#","wr":{"#);
                    for (i, &(read, write)) in wr.iter().enumerate() {
                        self.comma(i);
                        self.op(read);
                        self.buffer.push(':');
                        self.op(write);
                        self.pass_on(CHUNK)?;
                    }
                    self.buffer.push('}');
                }
            }
            TransactionCertificate::Cycle { edges } => {
                self.buffer.push_str(r#"{"kind":"cycle","edges":"#);
                self.dependencies(edges);
            }
            TransactionCertificate::SplitOrder { key, writers, branches } => {
                self.buffer.push_str(r#"{"kind":"cases","key":"#);
                quote(self.history.key_name(*key), &mut self.buffer);
                self.buffer.push_str(r#","split":["#);
                self.op(writers[0]);
                self.buffer.push(',');
                self.op(writers[1]);
                self.buffer.push_str(r#"],"branches":["#);
                for (i, branch) in branches.iter().enumerate() {
                    self.comma(i);
                    self.certificate(branch)?;
                }
                self.buffer.push(']');
            }
            TransactionCertificate::SplitRead { read, branches } => {
                self.buffer.push_str(r#"{"kind":"cases","read":"#);
                self.op(*read);
                self.buffer.push_str(r#","sources":["#);
                for (i, (source, _)) in branches.iter().enumerate() {
                    self.comma(i);
                    self.op(*source);
                }
                self.buffer.push_str(r#"],"branches":["#);
                for (i, (_, branch)) in branches.iter().enumerate() {
                    self.comma(i);
                    self.certificate(branch)?;
                }
                self.buffer.push(']');
            }
            TransactionCertificate::BadRead { kind, read, other } => {
                self.buffer.push_str(r#"{"kind":"bad-read","pattern":""#);
                self.buffer.push_str(kind.name());
                self.buffer.push_str(r#"","read":"#);
                self.op(*read);
                if let Some(other) = other {
                    self.buffer.push_str(r#","other":"#);
                    self.op(*other);
                }
            }
        }
        self.buffer.push('}');
        self.pass_on(CHUNK)
    }

    fn dependencies(&mut self, edges: &[Dependency]) {
        self.buffer.push('[');
        for (i, edge) in edges.iter().enumerate() {
            self.comma(i);
            self.buffer.push_str(r#"{"from":"#);
            self.op(edge.from);
            self.buffer.push_str(r#","to":"#);
            self.op(edge.to);
            self.buffer.push_str(r#","relation":""#);
            self.buffer.push_str(edge.relation.name());
            self.buffer.push('"');
            match edge.relation {
                Relates::So | Relates::Rt => {}
                Relates::Wr { read } | Relates::Rw { read } => {
                    self.buffer.push_str(r#","read":"#);
                    self.op(read);
                }
                Relates::Ww { key } => {
                    self.buffer.push_str(r#","key":"#);
                    quote(self.history.key_name(key), &mut self.buffer);
                }
            }
            if let Some(list) = edge.list {
                self.buffer.push_str(r#","list":"#);
                self.op(list);
            }
            if !edge.because.is_empty() {
                self.buffer.push_str(r#","because":"#);
                self.dependencies(&edge.because);
            }
            self.buffer.push('}');
        }
        self.buffer.push(']');
    }

    fn comma(&mut self, i: usize) {
        if i > 0 {
            self.buffer.push(',');
        }
    }

    fn op(&mut self, op: OpId) {
        quote(&self.history.reference(op).to_string(), &mut self.buffer);
    }

    fn pass_on(&mut self, limit: usize) -> io::Result<()> {
        if self.buffer.len() > limit {
            self.out.write_all(self.buffer.as_bytes())?;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// Reads a certificate of an isolation level.
pub fn read_transaction_certificate(
    history: &History,
    json: &Value,
) -> Result<TransactionCertificate, CertificateError> {
    Reader { history }.certificate(json, "", 0)
}

type Read<T> = Result<T, CertificateError>;

struct Reader<'a> {
    history: &'a History,
}

impl Reader<'_> {
    fn certificate(&self, json: &Value, at: &str, depth: usize) -> Read<TransactionCertificate> {
        let whole = if at.is_empty() { "certificate" } else { at.trim_end_matches('.') };
        if depth > MAX_DEPTH {
            return Err(CertificateError::Depth { path: whole.into() });
        }
        let object = json.as_object().ok_or_else(|| wrong(whole, "an object"))?;
        let kind = text(field(object, at, "kind")?, &format!("{at}kind"))?;
        match kind {
            "order" => {
                let order = self.ops(field(object, at, "order")?, &format!("{at}order"))?;
                let snapshots = match object.get("snapshots") {
                    None => Vec::new(),
                    Some(json) => {
                        let path = format!("{at}snapshots");
                        let number = |json: &Value| {
                            let number = json.as_u64().and_then(|n| u32::try_from(n).ok());
                            number.ok_or_else(|| wrong(&path, "a list of counts"))
                        };
                        list(json, &path)?.iter().map(number).collect::<Read<_>>()?
                    }
                };
                Ok(TransactionCertificate::Order { order, snapshots, wr: self.wr(object, at)? })
            }
            "cycle" => {
                let path = format!("{at}edges");
                let edges = self.dependencies(field(object, at, "edges")?, &path, depth)?;
                Ok(TransactionCertificate::Cycle { edges })
            }
            "cases" => self.cases(object, at, depth),
            "bad-read" => {
                let path = format!("{at}pattern");
                let name = text(field(object, at, "pattern")?, &path)?;
                let kind = BadRead::ALL.into_iter().find(|kind| kind.name() == name);
                let kind = kind.ok_or_else(|| wrong(&path, "the name of a bad read"))?;
                let read = self.op(field(object, at, "read")?, &format!("{at}read"))?;
                let other = match object.get("other") {
                    None => None,
                    Some(other) => Some(self.op(other, &format!("{at}other"))?),
                };
                Ok(TransactionCertificate::BadRead { kind, read, other })
            }
            kind => Err(CertificateError::Kind { path: format!("{at}kind"), kind: kind.into() }),
        }
    }

    fn cases(
        &self,
        object: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Read<TransactionCertificate> {
        let path = format!("{at}branches");
        let branches = list(field(object, at, "branches")?, &path)?;
        let branch =
            |i: usize| self.certificate(&branches[i], &format!("{at}branches[{i}]."), depth + 1);
        let of_length = |expected: usize| {
            let found = branches.len();
            if found == expected {
                Ok(())
            } else {
                Err(CertificateError::Length { path: path.clone(), expected, found })
            }
        };
        if let Some(read) = object.get("read") {
            let read = self.op(read, &format!("{at}read"))?;
            let sources = self.ops(field(object, at, "sources")?, &format!("{at}sources"))?;
            of_length(sources.len())?;
            let branches = sources.into_iter().enumerate();
            let branches = branches.map(|(i, source)| Ok((source, branch(i)?)));
            let branches = branches.collect::<Read<_>>()?;
            return Ok(TransactionCertificate::SplitRead { read, branches });
        }
        let key = self.key(object, at)?;
        let path = format!("{at}split");
        let writers = self.ops(field(object, at, "split")?, &path)?;
        let found = writers.len();
        let writers = <[OpId; 2]>::try_from(writers).map_err(|_| CertificateError::Length {
            path,
            expected: 2,
            found,
        })?;
        of_length(2)?;
        let branches = Box::new([branch(0)?, branch(1)?]);
        Ok(TransactionCertificate::SplitOrder { key, writers, branches })
    }

    fn dependencies(&self, json: &Value, path: &str, depth: usize) -> Read<Vec<Dependency>> {
        let edges = list(json, path)?.iter().enumerate();
        edges.map(|(i, json)| self.dependency(json, &format!("{path}[{i}]"), depth)).collect()
    }

    fn dependency(&self, json: &Value, path: &str, depth: usize) -> Read<Dependency> {
        if depth > MAX_DEPTH {
            return Err(CertificateError::Depth { path: path.into() });
        }
        let object = json.as_object().ok_or_else(|| wrong(path, "an object"))?;
        let at = format!("{path}.");
        let op = |name: &str| self.op(field(object, &at, name)?, &format!("{at}{name}"));
        let relation = match text(field(object, &at, "relation")?, &format!("{at}relation"))? {
            "so" => Relates::So,
            "rt" => Relates::Rt,
            "wr" => Relates::Wr { read: op("read")? },
            "ww" => Relates::Ww { key: self.key(object, &at)? },
            "rw" => Relates::Rw { read: op("read")? },
            _ => return Err(wrong(&format!("{at}relation"), "so, rt, wr, ww or rw")),
        };
        let list = object.contains_key("list").then(|| op("list")).transpose()?;
        let because = match object.get("because") {
            None => Vec::new(),
            Some(json) => self.dependencies(json, &format!("{at}because"), depth + 1)?,
        };
        Ok(Dependency { from: op("from")?, to: op("to")?, relation, list, because })
    }

    fn wr(&self, object: &Map<String, Value>, at: &str) -> Read<Vec<(OpId, OpId)>> {
        let Some(json) = object.get("wr") else { return Ok(Vec::new()) };
        let path = format!("{at}wr");
        let map = json.as_object().ok_or_else(|| wrong(&path, "an object"))?;
        let pair = |(read, write): (&String, &Value)| {
            Ok((self.find(read, &path)?, self.op(write, &format!("{path}.{read}"))?))
        };
        let mut choices = map.iter().map(pair).collect::<Read<Vec<_>>>()?;
        choices.sort_unstable();
        Ok(choices)
    }

    fn key(&self, object: &Map<String, Value>, at: &str) -> Read<KeyId> {
        let path = format!("{at}key");
        let name = text(field(object, at, "key")?, &path)?;
        let unknown = || CertificateError::Unknown { path, what: "key", name: name.into() };
        self.history.find_key(name).ok_or_else(unknown)
    }

    fn ops(&self, json: &Value, path: &str) -> Read<Vec<OpId>> {
        let ops = list(json, path)?.iter().enumerate();
        ops.map(|(i, json)| self.op(json, &format!("{path}[{i}]"))).collect()
    }

    fn op(&self, json: &Value, path: &str) -> Read<OpId> {
        self.find(text(json, path)?, path)
    }

    fn find(&self, name: &str, path: &str) -> Read<OpId> {
        let unknown = || CertificateError::Unknown {
            path: path.into(),
            what: "operation",
            name: name.into(),
        };
        self.history.find(name).ok_or_else(unknown)
    }
}

fn field<'a>(object: &'a Map<String, Value>, at: &str, name: &str) -> Read<&'a Value> {
    object.get(name).ok_or_else(|| CertificateError::Missing { path: format!("{at}{name}") })
}

fn text<'a>(json: &'a Value, path: &str) -> Read<&'a str> {
    json.as_str().ok_or_else(|| wrong(path, "a text"))
}

fn list<'a>(json: &'a Value, path: &str) -> Read<&'a Vec<Value>> {
    json.as_array().ok_or_else(|| wrong(path, "a list"))
}

fn wrong(path: &str, expected: &'static str) -> CertificateError {
    CertificateError::Type { path: path.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use consistory_history::{Action, HistoryBuilder};

    use super::*;

    fn history() -> History {
        let mut b = HistoryBuilder::new();
        let x = b.key("x");
        let one = b.int(1);
        for session in ["t0", "t1"] {
            let session = b.session(session);
            b.push(session, Action::Write { key: x, value: one });
            b.push(session, Action::Read { key: x, value: one });
        }
        b.finish().unwrap()
    }

    #[test]
    fn each_kind_is_written_as_agreed_and_read_back() {
        for text in [
            r#"{"kind":"order","order":["t0:0","t1:0"]}"#,
            r#"{"kind":"order","order":["t0:0","t1:0"],"snapshots":[0,1],"wr":{"t1:1":"init:x"}}"#,
            r#"{"kind":"cycle","edges":[{"from":"t0:0","to":"t1:0","relation":"so"},{"from":"t1:0","to":"t0:0","relation":"rw","read":"t1:1","because":[{"from":"t1:0","to":"t0:0","relation":"ww","key":"x","list":"t0:1"}]}]}"#,
            r#"{"kind":"cases","key":"x","split":["t0:0","t1:0"],"branches":[{"kind":"cycle","edges":[]},{"kind":"cycle","edges":[]}]}"#,
            r#"{"kind":"cases","read":"t0:1","sources":["t1:0","init:x"],"branches":[{"kind":"cycle","edges":[]},{"kind":"bad-read","pattern":"AbortedRead","read":"t0:1"}]}"#,
            r#"{"kind":"bad-read","pattern":"IncompatibleOrder","read":"t0:1","other":"t1:1"}"#,
        ] {
            let history = history();
            let json = serde_json::from_str(text).unwrap();
            let certificate = read_transaction_certificate(&history, &json).unwrap();
            let mut out = Vec::new();
            write_transaction_certificate(&history, &certificate, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn an_error_says_which_part_is_wrong() {
        for (text, message) in [
            ("[]", "`certificate` is not an object"),
            (r#"{"kind":"witness"}"#, "`kind`: there is no kind `witness`"),
            (
                r#"{"kind":"order","order":["t9:0"]}"#,
                "`order[0]`: the history has no operation `t9:0`",
            ),
            (
                r#"{"kind":"order","order":[],"snapshots":[-1]}"#,
                "`snapshots` is not a list of counts",
            ),
            (
                r#"{"kind":"cycle","edges":[{"from":"t0:0","to":"t1:0","relation":"po"}]}"#,
                "`edges[0].relation` is not so, rt, wr, ww or rw",
            ),
            (
                r#"{"kind":"cases","key":"x","split":["t0:0"],"branches":[]}"#,
                "`split` has 1 entries instead of 2",
            ),
            (
                r#"{"kind":"cases","key":"y","split":[],"branches":[]}"#,
                "`key`: the history has no key `y`",
            ),
            (
                r#"{"kind":"bad-read","pattern":"G9","read":"t0:0"}"#,
                "`pattern` is not the name of a bad read",
            ),
        ] {
            let json = serde_json::from_str(text).unwrap();
            let error = read_transaction_certificate(&history(), &json).unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
        }
    }
}
