//! A digest of a history: SHA-256 of its content.
//!
//! Two histories have the same digest if and only if they contain the same sessions, operations,
//! statuses, times, transactions, and initial and final values, in the same order (except for
//! collisions of the hash). The name of the history and the file from which it was read do not
//! count.

use std::fmt::Write;

use crate::history::{Action, History, Status};
use crate::ids::{KeyId, ValueId};

/// The constants of the rounds: fractional parts of the cube roots of the first 64 primes.
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// Size of a block of the hash, in bytes.
const BLOCK: usize = 64;
/// Bytes that are collected before they are hashed.
const COLLECTED: usize = 64 * BLOCK;

/// SHA-256 (FIPS 180-4) of bytes that arrive in pieces.
///
/// A digest is computed from many pieces of a few bytes each, so they are collected first.
struct Sha256 {
    state: [u32; 8],
    collected: Vec<u8>,
    /// Number of bytes that were hashed.
    hashed: u64,
}

impl Sha256 {
    fn new() -> Self {
        let state = [
            0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
            0x5be0cd19,
        ];
        Sha256 { state, collected: Vec::with_capacity(8 * BLOCK), hashed: 0 }
    }

    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        self.collected.extend_from_slice(bytes);
        if self.collected.len() >= COLLECTED {
            self.compress();
        }
    }

    /// Hashes the full blocks among the collected bytes.
    fn compress(&mut self) {
        let (blocks, rest) = self.collected.as_chunks::<BLOCK>();
        blocks.iter().for_each(|block| compress(&mut self.state, block));
        let hashed = self.collected.len() - rest.len();
        self.hashed += hashed as u64;
        self.collected.drain(..hashed);
    }

    fn finish(mut self) -> String {
        let bits = (self.hashed + self.collected.len() as u64) * 8;
        self.collected.push(0x80);
        let zeros = (2 * BLOCK - 8 - self.collected.len() % BLOCK) % BLOCK;
        self.collected.resize(self.collected.len() + zeros, 0);
        self.collected.extend_from_slice(&bits.to_be_bytes());
        self.compress();
        let mut digest = String::with_capacity(BLOCK);
        for word in self.state {
            write!(digest, "{word:08x}").expect("a string takes what is written");
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

/// Hashes a block.
fn compress(state: &mut [u32; 8], block: &[u8; BLOCK]) {
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for i in 16..64 {
        let (a, b) = (words[i - 15], words[i - 2]);
        let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
        let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
        words[i] = words[i - 16].wrapping_add(s0).wrapping_add(words[i - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (&constant, &word) in ROUNDS.iter().zip(&words) {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(constant).wrapping_add(word);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
        (d, c, b, a) = (c, b, a, t1.wrapping_add(s0.wrapping_add(majority)));
    }
    for (word, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(new);
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
