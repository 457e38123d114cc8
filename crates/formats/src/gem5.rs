//! Logs of gem5's Ruby tester, which checks cache coherence protocols with random requests.
//!
//! ```text
//!      95: system.cpu: completed request for proc: 1 addr: 0x3fec, size: 1, data: 49
//!   22838: system.cpu: completed request for proc: 3 addr: 0x58ec, size: 4, data: 25 26 27 28
//! ```
//!
//! Only the lines that complete a request are used, in their order; a processor is a session, and
//! an address, in hexadecimal, is a key. The tester writes single bytes and checks four bytes at
//! once, so a request of size 1 is a write, and a larger one reads each of its bytes, one after the
//! other from the lowest address on; the history does not claim that the bytes were read at the
//! same time. Memory starts with zeros.

use consistory_history::{Action, HistoryBuilder};

use crate::parse::{Cursor, Fault, Line, Parse, Sink};

/// Words of a line that completes a request.
const MARKER: &str = "completed request for proc:";

/// Checks whether a line belongs to such a log: a tick, the part of the system, and a message.
pub(crate) fn is_trace_line(line: &str) -> bool {
    let Some((tick, rest)) = line.trim_start().split_once(": ") else { return false };
    let is_tick = !tick.is_empty() && tick.bytes().all(|byte| byte.is_ascii_digit());
    let is_part =
        rest.starts_with("global: ") || (rest.starts_with("system.") && rest.contains(": "));
    is_tick && is_part
}

/// The parser of these logs.
#[derive(Default)]
pub(crate) struct Gem5 {
    builder: HistoryBuilder,
    last_line: u64,
}

const FORM: &str = "a request is `completed request for proc: 1 addr: 0x3fec, size: 1, data: 49`";

impl Parse for Gem5 {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let Some(at) = line.text.find(MARKER) else { return };
        let cursor = Cursor { text: line.text, at: at + MARKER.len() };
        if let Err(fault) = self.request(cursor) {
            sink.report(line, fault.or_hint(FORM));
        }
    }

    fn end(&mut self, sink: &mut Sink) {
        sink.finish(&mut self.builder, Line { number: self.last_line, text: "" });
    }
}

impl Gem5 {
    fn request(&mut self, mut cursor: Cursor<'_>) -> Result<(), Fault> {
        let processor = cursor.number("a processor")?;
        cursor.expect("addr:")?;
        let address = address(&mut cursor)?;
        cursor.expect(",")?;
        cursor.expect("size:")?;
        let start = cursor.at;
        let size = cursor.integer()?;
        let size_span = start..cursor.at;
        cursor.expect(",")?;
        cursor.expect("data:")?;
        let mut data = Vec::new();
        loop {
            cursor.skip_spaces();
            if cursor.is_done() {
                break;
            }
            let start = cursor.at;
            let byte = cursor.integer()?;
            if !(0..256).contains(&byte) {
                let message = format!("{byte} is not a byte");
                return Err(Fault::new(start..cursor.at, message));
            }
            data.push(byte);
        }
        if size < 1 || data.len() as i64 != size {
            let message = format!("{size} bytes are announced, and {} given", data.len());
            return Err(Fault::new(size_span, message));
        }
        let session = self.builder.session(processor);
        for (offset, &byte) in data.iter().enumerate() {
            let name = format!("{:#x}", address.wrapping_add(offset as u64));
            let (key, value) = (self.builder.key(&name), self.builder.int(byte));
            let action = match size {
                1 => Action::Write { key, value },
                _ => Action::Read { key, value },
            };
            self.builder.push(session, action);
        }
        Ok(())
    }
}

/// Parses `0x3fec`.
fn address(cursor: &mut Cursor<'_>) -> Result<u64, Fault> {
    cursor.skip_spaces();
    let start = cursor.at;
    if !cursor.eat("0x") {
        let message = format!("expected an address, found {}", cursor.found());
        return Err(Fault::new(cursor.here(), message));
    }
    let digits = cursor.take_while(|c| c.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16)
        .map_err(|_| Fault::new(start..cursor.at, "an address has 1 to 16 hexadecimal digits"))
}
