//! A digest of a history: SHA-256 of its content.
//!
//! Two histories have the same digest if and only if they contain the same sessions, operations,
//! statuses, times, transactions, and initial and final values, in the same order (except for
//! collisions of the hash). The name of the history and the file from which it was read do not
//! count.

use std::fmt::Write;

use sha2::Digest;

use crate::history::{Action, History, Status};
use crate::ids::{KeyId, ValueId};

/// Number of bytes that are collected before they are hashed.
const COLLECTED: usize = 4096;

/// SHA-256 of bytes that arrive in pieces.
///
/// A digest is computed from many pieces of a few bytes each, so they are collected first.
struct Sha256 {
    hash: sha2::Sha256,
    collected: Vec<u8>,
}

impl Sha256 {
    fn new() -> Self {
        Sha256 { hash: sha2::Sha256::new(), collected: Vec::with_capacity(512) }
    }

    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        self.collected.extend_from_slice(bytes);
        if self.collected.len() >= COLLECTED {
            self.hash.update(&self.collected);
            self.collected.clear();
        }
    }

    fn finish(mut self) -> String {
        self.hash.update(&self.collected);
        let mut digest = String::with_capacity(64);
        for byte in self.hash.finalize() {
            write!(digest, "{byte:02x}").expect("a string takes what is written");
        }
        digest
    }

    #[inline]
    fn number(&mut self, number: u64) {
        self.add(&number.to_le_bytes());
    }

    /// Adds a text and its length, so that texts cannot be confused with what follows them.
    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.add(text.as_bytes());
    }
}

/// Numbers names and values in the order in which they are first used, so that a digest does not
/// depend on how a reader numbered them.
struct Renumbered {
    numbers: Vec<u32>,
    next: u32,
}

impl Renumbered {
    fn new(count: usize) -> Self {
        Renumbered { numbers: vec![u32::MAX; count], next: 0 }
    }

    /// Returns the number of an entry, and whether it is new.
    fn number(&mut self, index: usize) -> (u32, bool) {
        let slot = &mut self.numbers[index];
        let is_new = *slot == u32::MAX;
        if is_new {
            *slot = self.next;
            self.next += 1;
        }
        (*slot, is_new)
    }
}

struct Hasher<'h> {
    history: &'h History,
    sha: Sha256,
    keys: Renumbered,
    values: Renumbered,
    /// Buffer for a value in text notation.
    shown: String,
}

impl Hasher<'_> {
    fn key(&mut self, key: KeyId) {
        let (number, is_new) = self.keys.number(key.index());
        self.sha.add(&number.to_le_bytes());
        if is_new {
            let history = self.history;
            self.sha.text(history.key_name(key));
            self.value(history.initial_value(key));
        }
    }

    fn value(&mut self, value: ValueId) {
        let (number, is_new) = self.values.number(value.index());
        self.sha.add(&number.to_le_bytes());
        if is_new {
            self.shown.clear();
            write!(self.shown, "{}", self.history.value(value))
                .expect("a string takes what is written");
            self.sha.text(&self.shown);
        }
    }

    fn action(&mut self, action: Action) {
        match action {
            Action::Read { key, value } => {
                self.sha.add(b"r");
                self.key(key);
                self.value(value);
            }
            Action::Write { key, value } => {
                self.sha.add(b"w");
                self.key(key);
                self.value(value);
            }
            Action::Append { key, value } => {
                self.sha.add(b"a");
                self.key(key);
                self.value(value);
            }
            Action::Rmw { key, read, write } => {
                self.sha.add(b"u");
                self.key(key);
                self.value(read);
                self.value(write);
            }
            Action::Fence => self.sha.add(b"f"),
            Action::Call(id) => {
                let call = self.history.call(id);
                self.sha.add(b"c");
                self.sha.text(&call.method);
                self.sha.number(call.args.len() as u64);
                for &arg in &call.args {
                    self.value(arg);
                }
                match call.returns {
                    Some(value) => {
                        self.sha.add(b"=");
                        self.value(value);
                    }
                    None => self.sha.add(b"?"),
                }
            }
        }
    }
}

fn letter(status: Status) -> &'static [u8] {
    match status {
        Status::Ok => b"o",
        Status::Fail => b"!",
        Status::Unknown => b"?",
    }
}

impl History {
    /// Computes the digest of the history's content, 64 hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut hasher = Hasher {
            history: self,
            sha: Sha256::new(),
            keys: Renumbered::new(self.key_count()),
            values: Renumbered::new(self.values().len()),
            shown: String::new(),
        };
        hasher.sha.text("consistory history 1");
        hasher.sha.number(self.session_count() as u64);
        for session in self.sessions() {
            let ops = self.session_ops(session);
            hasher.sha.text(self.session_name(session));
            hasher.sha.number(ops.len() as u64);
            for op in ops {
                hasher.action(self.action(op));
                hasher.sha.add(letter(self.own_status(op)));
                match self.time(op) {
                    None => hasher.sha.add(b"-"),
                    Some(time) => {
                        hasher.sha.add(b"@");
                        hasher.sha.add(&time.start.to_le_bytes());
                        match time.end {
                            None => hasher.sha.add(b"-"),
                            Some(end) => {
                                hasher.sha.add(b".");
                                hasher.sha.add(&end.to_le_bytes());
                            }
                        }
                    }
                }
            }
        }
        for (_, transaction) in self.transactions() {
            hasher.sha.number(transaction.ops.start.into());
            hasher.sha.number(transaction.ops.end.into());
            hasher.sha.add(letter(transaction.status));
        }
        // Keys that occur only in initial values, sorted by name.
        let mut rest: Vec<KeyId> =
            self.keys().filter(|key| hasher.keys.numbers[key.index()] == u32::MAX).collect();
        rest.sort_by_key(|&key| self.key_name(key));
        for key in rest {
            hasher.key(key);
        }
        let mut finals = self.finals().to_vec();
        finals.sort_by_key(|&(key, _)| self.key_name(key));
        hasher.sha.add(b"final");
        for (key, value) in finals {
            hasher.key(key);
            hasher.value(value);
        }
        hasher.sha.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::HistoryBuilder;

    fn sha(text: &str) -> String {
        let mut sha = Sha256::new();
        sha.add(text.as_bytes());
        sha.finish()
    }

    #[test]
    fn the_hash_is_sha_256() {
        assert_eq!(sha(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(sha("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(
            sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
    }

    #[test]
    fn pieces_of_any_length_are_hashed_as_one_text() {
        let text: String = (0..3 * COLLECTED).map(|i| char::from(b'a' + (i % 23) as u8)).collect();
        for length in [55, 56, 63, 64, 65, 119, 120, COLLECTED - 1, COLLECTED, 3 * COLLECTED] {
            let text = &text[..length];
            let mut pieces = Sha256::new();
            for piece in text.as_bytes().chunks(7) {
                pieces.add(piece);
            }
            assert_eq!(pieces.finish(), sha(text), "{length}");
        }
        // A million times the letter a, which is an example of the standard.
        assert_eq!(
            sha(&"a".repeat(1_000_000)),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }

    /// Builds a history of one write, with values interned in an order of choice.
    fn write(value: i64, first: i64) -> History {
        let mut b = HistoryBuilder::new();
        let s = b.session("s");
        b.int(first);
        let x = b.key("x");
        let value = b.int(value);
        b.push(s, Action::Write { key: x, value });
        b.finish().unwrap()
    }

    #[test]
    fn a_digest_depends_on_the_content_and_not_on_numbers() {
        assert_eq!(write(1, 7).digest(), write(1, 1).digest());
        assert_ne!(write(1, 1).digest(), write(2, 1).digest());
        assert_eq!(write(1, 1).digest().len(), 64);
    }
}
