//! x86 in Intel's and in AT&T's order of operands.

use super::cells::split;
use super::{Context, Translated, number};
use crate::executions::Language;
use crate::executions::code::{
    Binary, Expr, Fetch, Op, Register, Unary, Update, UpdateResult, Width,
};

pub(crate) const TAGS: [&str; 5] = ["X", "MFENCE", "SFENCE", "LFENCE", "A"];

const CLASSIC: [&str; 8] = ["AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP"];

/// Finds a register: its name in the language, and its size in bytes.
fn register(language: Language, text: &str) -> Option<(String, u8)> {
    let upper = text.trim().trim_start_matches('%').to_ascii_uppercase();
    let (base, bytes) = match upper.as_str() {
        "AL" | "BL" | "CL" | "DL" => (format!("{}X", &upper[..1]), 1),
        "SIL" | "DIL" | "BPL" | "SPL" => (upper[..2].to_owned(), 1),
        "RIP" | "EIP" | "IP" => ("IP".to_owned(), 8),
        "CS" | "DS" | "SS" | "ES" | "FS" | "GS" => (upper.clone(), 8),
        _ => {
            if let Some(rest) = upper.strip_prefix('R')
                && rest.starts_with(|c: char| c.is_ascii_digit())
            {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                let number: u8 = digits.parse().ok().filter(|n| (8..16).contains(n))?;
                let bytes = match &rest[digits.len()..] {
                    "" => 8,
                    "D" => 4,
                    "W" => 2,
                    "B" => 1,
                    _ => return None,
                };
                return Some((format!("r{number}"), bytes));
            }
            let (stem, bytes) = match upper.as_bytes().first() {
                Some(b'R') => (&upper[1..], 8),
                Some(b'E') => (&upper[1..], 4),
                _ => (&upper[..], 2),
            };
            (CLASSIC.contains(&stem).then(|| stem.to_owned())?, bytes)
        }
    };
    let name = match (language, base.as_str()) {
        (_, "CS" | "DS" | "SS" | "ES" | "FS" | "GS") => base.to_ascii_lowercase(),
        (Language::X86, _) => format!("E{base}"),
        _ => format!("r{}", base.to_ascii_lowercase()),
    };
    Some((name, bytes))
}

pub(crate) fn register_name(language: Language, name: &str) -> Option<String> {
    if name.starts_with('%') && register(language, name).is_none() {
        return Some(name.to_owned());
    }
    register(language, name).map(|(name, _)| name)
}

enum Operand {
    Register(Register, u8),
    Immediate(i64),
    Memory(Expr),
}

fn operand(language: Language, context: &mut Context<'_>, text: &str) -> Result<Operand, String> {
    let text = text.trim();
    if let Some((name, bytes)) = register(language, text) {
        return Ok(Operand::Register(context.register(&name), bytes));
    }
    if let Some(value) = number(text) {
        return Ok(Operand::Immediate(value));
    }
    // A segment before an address has no effect here.
    let text = match text.split_once(':') {
        Some((segment, rest)) if register(language, segment).is_some() => rest,
        _ => text,
    };
    let (offset, inner) = match (text.find(['[', '(']), text.ends_with([']', ')'])) {
        (Some(open), true) => (&text[..open], &text[open + 1..text.len() - 1]),
        _ => {
            let plain = text.chars().all(|c| c.is_alphanumeric() || c == '_');
            if plain && text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                return Ok(Operand::Memory(Expr::Const(context.builder.address(text))));
            }
            return Err(format!("`{text}` is not an operand"));
        }
    };
    let mut address = match offset.trim() {
        "" => Expr::Const(0),
        offset => match number(offset) {
            Some(value) => Expr::Const(value),
            None => Expr::Const(context.builder.address(offset.trim_start_matches('$'))),
        },
    };
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    for (at, part) in parts.iter().enumerate().take(2) {
        for term in part.split('+').map(str::trim).filter(|term| !term.is_empty()) {
            let mut value = if let Some((name, bytes)) = register(language, term) {
                context.read(&name).extend(bytes, false)
            } else if term.starts_with('%') {
                context.read(term)
            } else if let Some(value) = number(term) {
                Expr::Const(value)
            } else {
                Expr::Const(context.builder.address(term))
            };
            if let (1, Some(scale)) = (at, parts.get(2).and_then(|scale| number(scale))) {
                value = Expr::binary(Binary::Mul, value, Expr::Const(scale));
            }
            address = address.add(value);
        }
    }
    Ok(Operand::Memory(address))
}

const CONDITIONS: [(&str, u8); 16] = [
    ("E", 0),
    ("Z", 0),
    ("NE", 1),
    ("NZ", 1),
    ("AE", 2),
    ("B", 3),
    ("S", 4),
    ("NS", 5),
    ("A", 8),
    ("BE", 9),
    ("GE", 10),
    ("L", 11),
    ("G", 12),
    ("LE", 13),
    ("O", 6),
    ("NO", 7),
];

pub(crate) fn instruction(language: Language, context: &mut Context<'_>, text: &str) -> Translated {
    let mut text = text.trim();
    let mut locked = false;
    let first = text.split_whitespace().next().unwrap_or("");
    if first.eq_ignore_ascii_case("lock") {
        locked = true;
        text = text[first.len()..].trim();
    }
    let cell = split(text);
    let upper = cell.mnemonic.to_ascii_uppercase();
    let unsupported = || format!("unsupported x86 instruction `{text}`");
    match upper.as_str() {
        "NOP" | "NOPL" | "NOPW" | "NOPQ" | "ENDBR64" | "ENDBR32" => return Ok(Vec::new()),
        "MFENCE" | "SFENCE" | "LFENCE" => {
            let tags = context.tag(&upper);
            return Ok(vec![Op::Fence { tags }]);
        }
        "RET" | "RETQ" => return Ok(vec![Op::End]),
        "JMP" => {
            let target = context.target(cell.operands.first().copied().unwrap_or(""))?;
            return Ok(vec![Op::Jump(target)]);
        }
        _ => {}
    }
    if let Some(code) = upper.strip_prefix('J')
        && let Some((_, code)) = CONDITIONS.iter().find(|(name, _)| *name == code)
    {
        let target = context.target(cell.operands.first().copied().unwrap_or(""))?;
        let flags = context.read("FLAGS");
        return Ok(vec![Op::Branch { condition: Expr::Condition(*code, Box::new(flags)), target }]);
    }
    let names = [
        "MOV", "XCHG", "XADD", "CMPXCHG", "INC", "DEC", "NEG", "NOT", "ADD", "SUB", "AND", "OR",
        "XOR", "SHL", "SAL", "SHR", "SAR", "CMP", "TEST", "LEA",
    ];
    let suffix = |name: &str| match upper.strip_prefix(name)? {
        "" => Some(None),
        "B" => Some(Some(1)),
        "W" => Some(Some(2)),
        "L" => Some(Some(4)),
        "Q" => Some(Some(8)),
        _ => None,
    };
    let Some((name, size)) = names.iter().find_map(|name| Some((*name, suffix(name)?))) else {
        return Err(unsupported());
    };
    let mut operands = Vec::new();
    for text in &cell.operands {
        operands.push(operand(language, context, text)?);
    }
    // AT&T syntax has the source first; it is recognised by its registers and brackets.
    let is_intel = cell.operands.iter().any(|text| text.contains('['))
        || (language == Language::X86
            && !cell.operands.iter().any(|text| text.contains(['%', '('])));
    if !is_intel {
        operands.reverse();
    }
    let bytes = size
        .or_else(|| {
            operands.iter().find_map(|operand| match operand {
                Operand::Register(_, bytes) => Some(*bytes),
                _ => None,
            })
        })
        .unwrap_or(4);
    let mut operands = operands.into_iter();
    let Some(first) = operands.next() else { return Err("an operand is missing".to_owned()) };
    let accumulator = if language == Language::X86 { "EAX" } else { "rax" };
    Access { context, bytes, locked, accumulator, ops: Vec::new() }
        .run(name, first, operands.next())
        .ok_or_else(unsupported)
}

struct Access<'c, 'b> {
    context: &'c mut Context<'b>,
    bytes: u8,
    locked: bool,
    /// Register that compare-and-exchange compares with.
    accumulator: &'static str,
    ops: Vec<Op>,
}

impl Access<'_, '_> {
    fn width(&self) -> Width {
        // Writing half a register clears the rest; smaller parts are rare and treated in the same
        // way.
        Width { bytes: self.bytes, signed: false, register: 8 }
    }

    fn load(&mut self, address: Expr) -> Expr {
        let into = self.context.register("-memory");
        let width = self.width();
        self.ops.push(Op::Load { into, address, width, tags: 0, exclusive: false, ordered: false });
        Expr::Register(into)
    }

    fn value(&mut self, operand: Operand) -> Expr {
        match operand {
            Operand::Register(register, bytes) => Expr::Register(register).extend(bytes, false),
            Operand::Immediate(value) => Expr::Const(value).extend(self.bytes, false),
            Operand::Memory(address) => self.load(address),
        }
    }

    fn flags(&mut self, operator: Binary, left: Expr, right: Expr) {
        let flags = self.context.register("FLAGS");
        self.ops.push(Op::Set(flags, Expr::binary(operator, left, right)));
    }

    fn update(&mut self, into: Option<Register>, address: Expr, update: Update) {
        let tags = self.context.tag("X");
        self.ops.push(Op::Update {
            into,
            address,
            update,
            width: self.width(),
            read_tags: tags,
            write_tags: tags,
            failed_tags: tags,
            merged: false,
            result: UpdateResult::Old,
        });
    }

    fn run(mut self, name: &str, first: Operand, second: Option<Operand>) -> Option<Vec<Op>> {
        let bytes = self.bytes;
        let binary = match name {
            "ADD" | "INC" => Some(Binary::Add),
            "SUB" | "DEC" => Some(Binary::Sub),
            "AND" => Some(Binary::And),
            "OR" => Some(Binary::Or),
            "XOR" => Some(Binary::Xor),
            "SHL" | "SAL" => Some(Binary::ShiftLeft),
            "SHR" => Some(Binary::ShiftRight),
            "SAR" => Some(Binary::ShiftRightSigned),
            _ => None,
        };
        match (name, first, second) {
            ("MOV", Operand::Register(to, _), Some(from)) => {
                let value = self.value(from).extend(bytes, false);
                self.ops.push(Op::Set(to, value));
            }
            ("MOV", Operand::Memory(address), Some(from)) => {
                let value = self.value(from);
                self.ops.push(Op::Store { address, value, bytes, tags: 0 });
            }
            ("LEA", Operand::Register(to, _), Some(Operand::Memory(address))) => {
                self.ops.push(Op::Set(to, address));
            }
            ("XCHG", Operand::Memory(address), Some(Operand::Register(register, _)))
            | ("XCHG", Operand::Register(register, _), Some(Operand::Memory(address))) => {
                let new = Expr::Register(register).extend(bytes, false);
                self.update(Some(register), address, Update::Swap(new));
            }
            ("XCHG", Operand::Register(a, _), Some(Operand::Register(b, _))) => {
                let kept = self.context.register("-memory");
                self.ops.push(Op::Set(kept, Expr::Register(a)));
                self.ops.push(Op::Set(a, Expr::Register(b)));
                self.ops.push(Op::Set(b, Expr::Register(kept)));
            }
            ("XADD", Operand::Memory(address), Some(Operand::Register(register, _))) => {
                let operand = Expr::Register(register).extend(bytes, false);
                if self.locked {
                    self.update(
                        Some(register),
                        address,
                        Update::Fetch(Fetch::Binary(Binary::Add), operand),
                    );
                } else {
                    let old = self.load(address.clone());
                    let value = old.clone().add(operand);
                    self.ops.push(Op::Store { address, value, bytes, tags: 0 });
                    self.ops.push(Op::Set(register, old));
                }
            }
            ("CMPXCHG", Operand::Memory(address), Some(Operand::Register(register, _)))
                if self.locked =>
            {
                let accumulator = self.context.register(self.accumulator);
                let expected = Expr::Register(accumulator).extend(bytes, false);
                let new = Expr::Register(register).extend(bytes, false);
                let old = self.context.register("-memory");
                self.update(
                    Some(old),
                    address,
                    Update::CompareAndSwap { expected: expected.clone(), new },
                );
                self.flags(Binary::FlagsSub(bytes), expected, Expr::Register(old));
                self.ops.push(Op::Set(accumulator, Expr::Register(old)));
            }
            ("NEG" | "NOT", Operand::Register(to, _), None) => {
                let operator = if name == "NEG" { Unary::Negate } else { Unary::Not };
                let value = Expr::unary(operator, Expr::Register(to)).extend(bytes, false);
                self.ops.push(Op::Set(to, value));
            }
            ("CMP" | "TEST", left, Some(right)) => {
                let (left, right) = (self.value(left), self.value(right));
                let operator =
                    if name == "CMP" { Binary::FlagsSub(bytes) } else { Binary::FlagsAnd(bytes) };
                self.flags(operator, left, right);
            }
            (_, to, from) => {
                let operator = binary?;
                let right = match from {
                    Some(from) => self.value(from),
                    None => Expr::Const(1),
                };
                match to {
                    Operand::Register(to, _) => {
                        let left = Expr::Register(to).extend(bytes, false);
                        let value = Expr::binary(operator, left, right).extend(bytes, false);
                        self.ops.push(Op::Set(to, value.clone()));
                        self.flags(Binary::FlagsSub(bytes), Expr::Register(to), Expr::Const(0));
                    }
                    Operand::Memory(address) if self.locked => {
                        let old = self.context.register("-memory");
                        self.update(
                            Some(old),
                            address,
                            Update::Fetch(Fetch::Binary(operator), right.clone()),
                        );
                        let new = Expr::binary(operator, Expr::Register(old), right);
                        self.flags(Binary::FlagsSub(bytes), new, Expr::Const(0));
                    }
                    Operand::Memory(address) => {
                        let old = self.load(address.clone());
                        let value = Expr::binary(operator, old, right).extend(bytes, false);
                        self.ops.push(Op::Store { address, value: value.clone(), bytes, tags: 0 });
                        self.flags(Binary::FlagsSub(bytes), value, Expr::Const(0));
                    }
                    Operand::Immediate(_) => return None,
                }
            }
        }
        Some(self.ops)
    }
}
