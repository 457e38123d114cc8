//! Readers of litmus tests in herd's languages.
//!
//! `layout.rs` splits a file into its parts and reads the parts that all languages share; one
//! module per language translates its instructions to the common language.

mod aarch64;
mod c;
mod cells;
mod formula;
mod initial;
mod layout;
mod lisa;
mod ppc;
mod riscv;
mod write;
mod x86;

use std::collections::HashMap;

use crate::executions::code::{
    ADDRESS_STEP, Code, Declared, Expr, FIRST_ADDRESS, Op, Register, Tags, truncate,
};

pub(crate) use layout::read_with_locations;
pub use layout::{isa_language, read_isa_test};
pub use write::write_isa_test;

/// An error message and its range of bytes in the file.
#[derive(Clone, Debug)]
pub(crate) struct Wrong {
    pub(crate) at: std::ops::Range<usize>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Wrong {
    pub(crate) fn new(at: std::ops::Range<usize>, message: impl Into<String>) -> Self {
        Wrong { at, message: message.into(), hint: None }
    }
}

/// A type in the initial section or a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Type {
    pub(crate) bytes: u8,
    pub(crate) signed: bool,
}

impl Type {
    pub(crate) const INT: Type = Type { bytes: 4, signed: true };

    /// Returns the type with a name; unknown types are treated as `int`.
    pub(crate) fn named(name: &str) -> Type {
        let (bytes, signed) = match name {
            "int8_t" | "char" => (1, true),
            "uint8_t" => (1, false),
            "int16_t" | "short" => (2, true),
            "uint16_t" => (2, false),
            "uint32_t" | "unsigned" => (4, false),
            "int64_t" | "long" | "intptr_t" => (8, true),
            "uint64_t" | "uintptr_t" => (8, false),
            _ => (4, true),
        };
        Type { bytes, signed }
    }
}

/// The program while it is being read.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) code: Code,
    /// Types of the registers with a declared type.
    pub(crate) types: HashMap<(usize, Register), Type>,
    /// Whether memory holds 64-bit numbers whatever the types are, as in C.
    pub(crate) wide: bool,
}

impl Builder {
    /// Returns a location by its name, adding it if it is new.
    pub(crate) fn location(&mut self, name: &str) -> usize {
        if let Some(at) = self.code.locations.iter().position(|known| known.name == name) {
            return at;
        }
        let at = self.code.locations.len();
        self.code.locations.push(Declared {
            name: name.to_owned(),
            address: FIRST_ADDRESS + at as i64 * ADDRESS_STEP,
            bytes: 4,
            signed: true,
            initial: vec![0],
            is_array: false,
        });
        at
    }

    pub(crate) fn address(&mut self, name: &str) -> i64 {
        let at = self.location(name);
        self.code.locations[at].address
    }

    pub(crate) fn set_type(&mut self, at: usize, of: Type) {
        let location = &mut self.code.locations[at];
        location.bytes = of.bytes;
        location.signed = of.signed;
    }

    pub(crate) fn tag(&mut self, name: &str) -> Tags {
        if let Some(at) = self.code.tags.iter().position(|tag| tag == name) {
            return 1 << at;
        }
        self.code.tags.push(name.to_owned());
        1 << (self.code.tags.len() - 1).min(63)
    }

    pub(crate) fn initial_value(&self, of: Type, value: i64) -> i64 {
        if self.wide { value } else { truncate(value, of.bytes, false) }
    }
}

/// Context of a language's reader of instructions.
pub(crate) struct Context<'b> {
    pub(crate) builder: &'b mut Builder,
    pub(crate) thread: usize,
    /// Index of the instruction after each label.
    pub(crate) labels: &'b HashMap<String, usize>,
    /// Number of the instruction.
    pub(crate) index: usize,
    /// Number of instructions.
    pub(crate) count: usize,
}

impl Context<'_> {
    pub(crate) fn register(&mut self, name: &str) -> Register {
        self.builder.code.threads[self.thread].register(name)
    }

    pub(crate) fn read(&mut self, name: &str) -> Expr {
        Expr::Register(self.register(name))
    }

    pub(crate) fn tag(&mut self, name: &str) -> Tags {
        self.builder.tag(name)
    }

    /// Returns the target of a branch: a label, or `.+8`.
    pub(crate) fn target(&self, name: &str) -> Result<usize, String> {
        if let Some(rest) = name.strip_prefix('.')
            && let Some(offset) = number(rest.trim_start_matches('+'))
            && rest.starts_with(['+', '-'])
        {
            let target = self.index as i64 + offset / 4;
            return usize::try_from(target)
                .ok()
                .filter(|&target| target <= self.count)
                .ok_or_else(|| format!("`{name}` is outside the thread"));
        }
        self.labels.get(name).copied().ok_or_else(|| format!("there is no label `{name}`"))
    }
}

/// Parses a number: decimal or hexadecimal, with an optional sign, and optionally with `#` or `$`
/// before it.
pub(crate) fn number(text: &str) -> Option<i64> {
    let text = text.trim().trim_start_matches(['#', '$']).trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(&hex.replace('_', ""), 16).ok()? as i64,
        None => digits
            .parse::<u64>()
            .ok()
            .filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()))? as i64,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

/// The operations of an instruction, or an error message.
pub(crate) type Translated = Result<Vec<Op>, String>;
