//! Texts that grow at the end and share common prefixes.
//!
//! A search holds a state for every order of appends that it tries, and these states have long
//! common prefixes. So a text is a chain of full chunks, shared by all texts that begin with them,
//! and a tail. The chunk boundaries depend on the text only, so equal texts have equal chunks. The
//! hash is computed incrementally, so an append costs the appended bytes plus at most one chunk.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::footprint::{Heap, allocated};

/// Bytes per chunk.
const CHUNK: usize = 512;

/// A text that is cheap to copy and to extend.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    full: Option<Arc<Chunk>>,
    /// Fewer than [`CHUNK`] bytes.
    tail: Vec<u8>,
    length: usize,
    hash: u64,
}

#[derive(Debug)]
struct Chunk {
    before: Option<Arc<Chunk>>,
    bytes: Box<[u8]>,
}

impl Text {
    pub(super) fn new(text: &str) -> Self {
        let mut new = Text::default();
        new.push(text);
        new
    }

    pub(super) fn push(&mut self, text: &str) {
        let mut bytes = text.as_bytes();
        self.length += bytes.len();
        for &byte in bytes {
            self.hash = (self.hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(MULTIPLIER);
        }
        while self.tail.len() + bytes.len() >= CHUNK {
            let (more, rest) = bytes.split_at(CHUNK - self.tail.len());
            self.tail.extend(more);
            let bytes_of_chunk = std::mem::take(&mut self.tail).into_boxed_slice();
            self.full = Some(Arc::new(Chunk { before: self.full.take(), bytes: bytes_of_chunk }));
            bytes = rest;
        }
        self.tail.extend(bytes);
    }

    /// Returns the rest of another text if this text is a prefix of it.
    pub(super) fn rest_of<'a>(&self, other: &'a str) -> Option<&'a str> {
        let rest = other.get(self.length..)?;
        let mut bytes = &other.as_bytes()[..self.length];
        bytes = bytes.strip_suffix(&*self.tail)?;
        let mut chunk = &self.full;
        while let Some(last) = chunk {
            bytes = bytes.strip_suffix(&*last.bytes)?;
            chunk = &last.before;
        }
        Some(rest)
    }
}

impl Heap for Text {
    /// Full chunks are shared with the text that this one was made from; one of them is counted
    /// here.
    fn heap(&self) -> usize {
        let chunk = if self.full.is_some() { allocated(CHUNK) / 2 } else { 0 };
        chunk + allocated(self.tail.capacity())
    }
}

/// An odd number without a pattern.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl From<&Text> for Box<str> {
    fn from(text: &Text) -> Self {
        let mut bytes = vec![0; text.length];
        let mut end = text.length - text.tail.len();
        bytes[end..].copy_from_slice(&text.tail);
        let mut chunk = &text.full;
        while let Some(last) = chunk {
            bytes[end - CHUNK..end].copy_from_slice(&last.bytes);
            end -= CHUNK;
            chunk = &last.before;
        }
        String::from_utf8(bytes).expect("texts were appended whole").into()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        if (self.length, self.hash) != (other.length, other.hash) || self.tail != other.tail {
            return false;
        }
        let (mut one, mut two) = (&self.full, &other.full);
        while let (Some(a), Some(b)) = (one, two) {
            if Arc::ptr_eq(a, b) {
                return true;
            }
            if a.bytes != b.bytes {
                return false;
            }
            (one, two) = (&a.before, &b.before);
        }
        true
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.hash);
    }
}

impl Drop for Chunk {
    /// Drops the chain in a loop, because recursion over a long chain would overflow the stack.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut chunk) = before.and_then(Arc::into_inner) {
            before = chunk.before.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_what_was_appended() {
        let pieces: Vec<String> = (0..3000).map(|i| format!("x {i} é")).collect();
        let whole = pieces.concat();
        let mut one = Text::default();
        pieces.iter().for_each(|piece| one.push(piece));
        let two = Text::new(&whole);
        assert_eq!(one, two);
        assert_eq!(one.hash, two.hash);
        assert_eq!(&*Box::<str>::from(&one), whole);
        let more = format!("{whole}y");
        assert_eq!(one.rest_of(&more), Some("y"));
        assert_eq!(one.rest_of(&whole), Some(""));
        assert_eq!(one.rest_of(&whole[..whole.len() - 2]), None);
        assert_eq!(one.rest_of(&format!("y{whole}")), None);
        assert_ne!(one, Text::new(&more));
        assert_eq!(Text::default(), Text::new(""));
        let mut long = Text::default();
        (0..200_000).for_each(|_| long.push(&"0123456789".repeat(60)));
        drop(long);
    }
}
