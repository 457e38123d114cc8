//! AArch64 at user level.

use super::cells::{Cell, split};
use super::{Context, Translated, number};
use crate::executions::code::{
    Binary, Expr, Fetch, Op, Register, Unary, Update, UpdateResult, Width,
};

pub(crate) const TAGS: [&str; 32] = [
    "A",
    "Q",
    "L",
    "X",
    "EX",
    "NoRet",
    "ISB",
    "DMB.SY",
    "DMB.LD",
    "DMB.ST",
    "DMB.ISH",
    "DMB.ISHLD",
    "DMB.ISHST",
    "DMB.OSH",
    "DMB.OSHLD",
    "DMB.OSHST",
    "DMB.NSH",
    "DMB.NSHLD",
    "DMB.NSHST",
    "DSB.SY",
    "DSB.LD",
    "DSB.ST",
    "DSB.ISH",
    "DSB.ISHLD",
    "DSB.ISHST",
    "DSB.OSH",
    "DSB.OSHLD",
    "DSB.OSHST",
    "DSB.NSH",
    "DSB.NSHLD",
    "DSB.NSHST",
    "P",
];

const CONDITIONS: [&str; 16] = [
    "EQ", "NE", "CS", "CC", "MI", "PL", "VS", "VC", "HI", "LS", "GE", "LT", "GT", "LE", "AL", "NV",
];

/// Register that receives the writes to the zero register.
const SINK: &str = "-";

pub(crate) fn register_name(name: &str) -> Option<String> {
    if let Some(at) = name.find('%') {
        return Some(name[at..].to_owned());
    }
    let upper = name.to_ascii_uppercase();
    match upper.as_str() {
        "XZR" | "WZR" => return Some("XZR".to_owned()),
        "SP" | "WSP" => return Some("SP".to_owned()),
        "LR" => return Some("X30".to_owned()),
        "NZCV" => return Some(upper),
        _ => {}
    }
    let digits = upper.strip_prefix(['X', 'W'])?;
    let number: u8 = digits.parse().ok()?;
    (number <= 30 && !digits.starts_with('+')).then(|| format!("X{number}"))
}

/// An operand register: its name, and its width in bytes.
fn operand(text: &str) -> Result<(String, u8), String> {
    let text = text.trim();
    let name = register_name(text).ok_or_else(|| format!("`{text}` is not a register"))?;
    let narrow = text.starts_with(['W', 'w']);
    Ok((name, if narrow { 4 } else { 8 }))
}

fn condition(text: &str) -> Option<u8> {
    let upper = text.trim().to_ascii_uppercase();
    let upper = match upper.as_str() {
        "HS" => "CS",
        "LO" => "CC",
        other => other,
    };
    CONDITIONS.iter().position(|&name| name == upper).map(|at| at as u8)
}

struct Translator<'c, 'b> {
    context: &'c mut Context<'b>,
    ops: Vec<Op>,
}

impl Translator<'_, '_> {
    fn source(&mut self, text: &str) -> Result<(Expr, u8), String> {
        let (name, bytes) = operand(text)?;
        if name == "XZR" {
            return Ok((Expr::Const(0), bytes));
        }
        let read = self.context.read(&name);
        Ok((read.extend(bytes, false), bytes))
    }

    fn target(&mut self, text: &str) -> Result<(Register, u8), String> {
        let (name, bytes) = operand(text)?;
        let name = if name == "XZR" { SINK } else { &name };
        Ok((self.context.register(name), bytes))
    }

    fn is_zero(text: &str) -> bool {
        operand(text).is_ok_and(|(name, _)| name == "XZR")
    }

    /// Reads an immediate, or a register with a shift or extension in the operands after it.
    fn flexible(&mut self, operands: &[&str], bytes: u8) -> Result<Expr, String> {
        let Some(first) = operands.first() else { return Err("an operand is missing".to_owned()) };
        let value = match number(first) {
            Some(value) => Expr::Const(value),
            None => self.source(first)?.0,
        };
        match operands.get(1) {
            None => Ok(value),
            Some(shift) => shifted(value, shift, bytes),
        }
    }

    fn set(&mut self, register: Register, bytes: u8, value: Expr) {
        self.ops.push(Op::Set(register, value.extend(bytes, false)));
    }

    /// Reads `[X1,#4]!` and similar operands: the address, and the later increment of the base.
    fn address(&mut self, operands: &[&str]) -> Result<Expr, String> {
        let Some(text) = operands.first() else { return Err("an address is missing".to_owned()) };
        let (inner, writes_back) = match text.strip_suffix('!') {
            Some(inner) => (inner.trim(), true),
            None => (*text, false),
        };
        let inner = inner
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .ok_or_else(|| format!("`{text}` is not an address"))?;
        let parts = super::cells::operands(inner);
        let (base, _) = operand(parts.first().copied().unwrap_or(""))?;
        let base_register = self.context.register(&base);
        let mut address = Expr::Register(base_register);
        if let Some(offset) = parts.get(1) {
            let offset = match number(offset) {
                Some(value) => Expr::Const(value),
                None => {
                    let (name, bytes) = operand(offset)?;
                    let value =
                        if name == "XZR" { Expr::Const(0) } else { self.context.read(&name) };
                    match parts.get(2) {
                        Some(shift) => shifted(value, shift, 8)?,
                        None => value.extend(bytes, false),
                    }
                }
            };
            address = address.add(offset);
        }
        if writes_back {
            self.ops.push(Op::Set(base_register, address));
            return Ok(Expr::Register(base_register));
        }
        if let Some(after) = operands.get(1) {
            // The base changes after the access; keep its old value.
            let old = self.context.register("-base");
            self.ops.push(Op::Set(old, Expr::Register(base_register)));
            let step = match number(after) {
                Some(value) => Expr::Const(value),
                None => self.source(after)?.0,
            };
            self.ops.push(Op::Set(base_register, Expr::Register(base_register).add(step)));
            return Ok(Expr::Register(old));
        }
        Ok(address)
    }

    fn tags(&mut self, names: &[&str]) -> u64 {
        names.iter().map(|name| self.context.tag(name)).fold(0, |all, tag| all | tag)
    }
}

fn shifted(value: Expr, shift: &str, bytes: u8) -> Result<Expr, String> {
    let shift = shift.trim();
    let end =
        shift.find(|c: char| !c.is_ascii_alphabetic()).filter(|_| true).unwrap_or(shift.len());
    let mut kind = shift[..end].to_ascii_uppercase();
    let mut rest = shift[end..].trim();
    // `SXTW` has no digits, but `UXTB` and friends are letters only, so nothing was lost.
    if kind.is_empty() {
        kind = "LSL".to_owned();
        rest = shift;
    }
    let amount = if rest.is_empty() {
        0
    } else {
        number(rest).ok_or_else(|| format!("`{shift}` is not a shift"))?
    };
    let by = |operator, value| Expr::binary(operator, value, Expr::Const(amount));
    Ok(match kind.as_str() {
        "LSL" => by(Binary::ShiftLeft, value),
        "LSR" => by(Binary::ShiftRight, value.extend(bytes, false)),
        "ASR" => by(Binary::ShiftRightSigned, value.extend(bytes, true)),
        "ROR" => {
            let bits = i64::from(bytes) * 8;
            let low = by(Binary::ShiftRight, value.clone().extend(bytes, false));
            let high = Expr::binary(Binary::ShiftLeft, value, Expr::Const((bits - amount) % bits));
            Expr::binary(Binary::Or, low, high)
        }
        "UXTB" | "UXTH" | "UXTW" | "UXTX" | "SXTB" | "SXTH" | "SXTW" | "SXTX" => {
            let width = extension(&kind);
            by(Binary::ShiftLeft, value.extend(width, kind.starts_with('S')))
        }
        _ => return Err(format!("`{shift}` is not a shift")),
    })
}

fn extension(name: &str) -> u8 {
    match name.as_bytes().last() {
        Some(b'B') => 1,
        Some(b'H') => 2,
        Some(b'W') => 4,
        _ => 8,
    }
}

pub(crate) fn instruction(context: &mut Context<'_>, text: &str) -> Translated {
    let mut cell = split(text);
    let upper = cell.mnemonic.to_ascii_uppercase();
    // `DMB SY` has an operand that is part of the name.
    let mut translator = Translator { context, ops: Vec::new() };
    let arguments = std::mem::take(&mut cell.operands);
    translator.translate(&upper, &arguments).map_err(|problem| {
        if problem.is_empty() { unsupported(&cell, &arguments) } else { problem }
    })?;
    Ok(translator.ops)
}

fn unsupported(cell: &Cell<'_>, operands: &[&str]) -> String {
    format!("unsupported AArch64 instruction `{} {}`", cell.mnemonic, operands.join(","))
}

impl Translator<'_, '_> {
    fn translate(&mut self, name: &str, args: &[&str]) -> Result<(), String> {
        let need = |count: usize| {
            if args.len() < count { Err("an operand is missing".to_owned()) } else { Ok(()) }
        };
        match name {
            "NOP" => return Ok(()),
            "DMB" | "DSB" => {
                let domain = args.first().map_or("SY".to_owned(), |text| text.to_ascii_uppercase());
                let full = format!("{name}.{domain}");
                if !TAGS.contains(&full.as_str()) {
                    return Err(format!("unknown barrier `{name} {domain}`"));
                }
                let tags = self.tags(&[&full]);
                self.ops.push(Op::Fence { tags });
                return Ok(());
            }
            "ISB" => {
                let tags = self.tags(&["ISB"]);
                self.ops.push(Op::Fence { tags });
                return Ok(());
            }
            "CLREX" => {
                self.ops.push(Op::ClearExclusive);
                return Ok(());
            }
            "RET" if args.is_empty() => {
                self.ops.push(Op::End);
                return Ok(());
            }
            "B" => {
                need(1)?;
                let target = self.context.target(args[0])?;
                self.ops.push(Op::Jump(target));
                return Ok(());
            }
            "CBZ" | "CBNZ" => {
                need(2)?;
                let (value, _) = self.source(args[0])?;
                let target = self.context.target(args[1])?;
                let condition = if name == "CBZ" {
                    Expr::unary(Unary::IsZero, value)
                } else {
                    Expr::binary(Binary::NotEqual, value, Expr::Const(0))
                };
                self.ops.push(Op::Branch { condition, target });
                return Ok(());
            }
            "TBZ" | "TBNZ" => {
                need(3)?;
                let (value, _) = self.source(args[0])?;
                let bit = number(args[1]).ok_or("the bit's number is missing")?;
                let target = self.context.target(args[2])?;
                let bit = Expr::binary(Binary::ShiftRight, value, Expr::Const(bit));
                let bit = Expr::binary(Binary::And, bit, Expr::Const(1));
                let condition = if name == "TBZ" { Expr::unary(Unary::IsZero, bit) } else { bit };
                self.ops.push(Op::Branch { condition, target });
                return Ok(());
            }
            _ => {}
        }
        if let Some(code) = name.strip_prefix("B.").and_then(condition) {
            need(1)?;
            let flags = self.context.read("NZCV");
            let target = self.context.target(args[0])?;
            self.ops.push(Op::Branch { condition: Expr::Condition(code, Box::new(flags)), target });
            return Ok(());
        }
        if self.arithmetic(name, args)? || self.accesses(name, args)? || self.atomics(name, args)? {
            return Ok(());
        }
        Err(String::new())
    }

    fn arithmetic(&mut self, name: &str, args: &[&str]) -> Result<bool, String> {
        let get =
            |at: usize| args.get(at).copied().ok_or_else(|| "an operand is missing".to_owned());
        match name {
            "MOV" | "MOVZ" | "MVN" | "MOVN" | "NEG" | "NEGS" => {
                let (to, bytes) = self.target(get(0)?)?;
                let mut value = self.flexible(&args[1..], bytes)?;
                if matches!(name, "MVN" | "MOVN") {
                    value = Expr::unary(Unary::Not, value);
                } else if name.starts_with("NEG") {
                    value = Expr::unary(Unary::Negate, value);
                }
                self.set(to, bytes, value);
            }
            "MOVK" => {
                let (to, bytes) = self.target(get(0)?)?;
                let value = number(get(1)?).ok_or("a number is missing")?;
                let shift = match args.get(2) {
                    Some(shift) => number(
                        shift.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == ' '),
                    )
                    .ok_or("a shift is missing")?,
                    None => 0,
                };
                let keep = !(0xffffi64.wrapping_shl(shift as u32));
                let kept = Expr::binary(Binary::And, Expr::Register(to), Expr::Const(keep));
                let value = (value & 0xffff).wrapping_shl(shift as u32);
                self.set(to, bytes, Expr::binary(Binary::Or, kept, Expr::Const(value)));
            }
            "ADD" | "SUB" | "AND" | "ORR" | "EOR" | "BIC" | "ORN" | "EON" | "ADDS" | "SUBS"
            | "ANDS" | "BICS" => {
                let (to, bytes) = self.target(get(0)?)?;
                let (left, _) = self.source(get(1)?)?;
                let right = self.flexible(&args[2..], bytes)?;
                self.combine(name, to, bytes, left, right);
            }
            "CMP" | "CMN" | "TST" => {
                let sink = self.context.register(SINK);
                let (left, bytes) = self.source(get(0)?)?;
                let right = self.flexible(&args[1..], bytes)?;
                let with_flags = match name {
                    "CMP" => "SUBS",
                    "CMN" => "ADDS",
                    _ => "ANDS",
                };
                self.combine(with_flags, sink, bytes, left, right);
            }
            "MUL" | "MNEG" | "MADD" | "MSUB" | "SMULL" | "UMULL" | "SMNEGL" | "UMNEGL"
            | "SMADDL" | "UMADDL" | "SMSUBL" | "UMSUBL" => {
                let (to, bytes) = self.target(get(0)?)?;
                let (mut left, _) = self.source(get(1)?)?;
                let (mut right, _) = self.source(get(2)?)?;
                if name.ends_with('L') && name != "MUL" {
                    let signed = name.starts_with('S');
                    (left, right) = (left.extend(4, signed), right.extend(4, signed));
                }
                let product = Expr::binary(Binary::Mul, left, right);
                let value = if name.contains("NEG") {
                    Expr::unary(Unary::Negate, product)
                } else if name.contains("ADD") {
                    self.source(get(3)?)?.0.add(product)
                } else if name.contains("SUB") {
                    Expr::binary(Binary::Sub, self.source(get(3)?)?.0, product)
                } else {
                    product
                };
                self.set(to, bytes, value);
            }
            "LSL" | "LSR" | "ASR" | "ROR" => {
                let (to, bytes) = self.target(get(0)?)?;
                let (left, _) = self.source(get(1)?)?;
                let value = match number(get(2)?) {
                    Some(amount) => shifted(left, &format!("{name} {amount}"), bytes)?,
                    None => {
                        let (by, _) = self.source(get(2)?)?;
                        let by =
                            Expr::binary(Binary::And, by, Expr::Const(i64::from(bytes) * 8 - 1));
                        match name {
                            "LSL" => Expr::binary(Binary::ShiftLeft, left, by),
                            "LSR" => {
                                Expr::binary(Binary::ShiftRight, left.extend(bytes, false), by)
                            }
                            "ASR" => {
                                Expr::binary(Binary::ShiftRightSigned, left.extend(bytes, true), by)
                            }
                            _ => return Ok(false),
                        }
                    }
                };
                self.set(to, bytes, value);
            }
            "SXTB" | "SXTH" | "SXTW" | "UXTB" | "UXTH" | "UXTW" => {
                let (to, bytes) = self.target(get(0)?)?;
                let (value, _) = self.source(get(1)?)?;
                self.set(to, bytes, value.extend(extension(name), name.starts_with('S')));
            }
            "SBFM" | "UBFM" => {
                let (to, bytes) = self.target(get(0)?)?;
                let (value, _) = self.source(get(1)?)?;
                let bits = i64::from(bytes) * 8;
                let first = number(get(2)?).ok_or("a number is missing")?;
                let last = number(get(3)?).ok_or("a number is missing")?;
                let signed = name == "SBFM";
                // Bits up to `last` are shifted to the top of 64 bits, then down to their position.
                let up = 63 - last;
                let down = if last >= first { up + first } else { up - (bits - first) };
                let top = Expr::binary(Binary::ShiftLeft, value, Expr::Const(up));
                let operator = if signed { Binary::ShiftRightSigned } else { Binary::ShiftRight };
                self.set(to, bytes, Expr::binary(operator, top, Expr::Const(down)));
            }
            "CSEL" | "CSINC" | "CSINV" | "CSNEG" => {
                let (to, bytes) = self.target(get(0)?)?;
                let (then, _) = self.source(get(1)?)?;
                let (other, _) = self.source(get(2)?)?;
                let code = condition(get(3)?).ok_or("a condition is missing")?;
                let other = match name {
                    "CSINC" => other.add(Expr::Const(1)),
                    "CSINV" => Expr::unary(Unary::Not, other),
                    "CSNEG" => Expr::unary(Unary::Negate, other),
                    _ => other,
                };
                self.select(to, bytes, code, then, other);
            }
            "CSET" | "CSETM" => {
                let (to, bytes) = self.target(get(0)?)?;
                let code = condition(get(1)?).ok_or("a condition is missing")?;
                let one = Expr::Const(if name == "CSET" { 1 } else { -1 });
                self.select(to, bytes, code, one, Expr::Const(0));
            }
            "CINC" => {
                let (to, bytes) = self.target(get(0)?)?;
                let (value, _) = self.source(get(1)?)?;
                let code = condition(get(2)?).ok_or("a condition is missing")?;
                self.select(to, bytes, code, value.clone().add(Expr::Const(1)), value);
            }
            "RBIT" | "REV" | "REV16" | "REV32" | "REV64" => {
                let (to, bytes) = self.target(get(0)?)?;
                let (value, _) = self.source(get(1)?)?;
                let operator = match name {
                    "RBIT" => Unary::ReverseBits(bytes),
                    "REV16" => Unary::ReverseBytes(2, bytes),
                    "REV32" => Unary::ReverseBytes(4, bytes),
                    _ => Unary::ReverseBytes(bytes, bytes),
                };
                self.set(to, bytes, Expr::unary(operator, value));
            }
            "ABS" => {
                let (to, bytes) = self.target(get(0)?)?;
                let (value, _) = self.source(get(1)?)?;
                let value = value.extend(bytes, true);
                // A value that equals its magnitude is not a choice between registers.
                let sign = Expr::binary(Binary::ShiftRightSigned, value.clone(), Expr::Const(63));
                let flipped = Expr::binary(Binary::Xor, value, sign.clone());
                self.set(to, bytes, Expr::binary(Binary::Sub, flipped, sign));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn select(&mut self, to: Register, bytes: u8, code: u8, then: Expr, other: Expr) {
        let flags = self.context.read("NZCV");
        let choice = Expr::Condition(code, Box::new(flags));
        self.set(to, bytes, Expr::Select(Box::new(choice), Box::new(then), Box::new(other)));
    }

    fn combine(&mut self, name: &str, to: Register, bytes: u8, left: Expr, right: Expr) {
        let not = |expr| Expr::unary(Unary::Not, expr);
        let (operator, right) = match name.trim_end_matches('S') {
            "ADD" => (Binary::Add, right),
            "SUB" => (Binary::Sub, right),
            "AND" => (Binary::And, right),
            "ORR" => (Binary::Or, right),
            "EOR" => (Binary::Xor, right),
            "BIC" => (Binary::And, not(right)),
            "ORN" => (Binary::Or, not(right)),
            _ => (Binary::Xor, not(right)),
        };
        if name.ends_with('S') {
            let flags = match operator {
                Binary::Add => Binary::FlagsAdd(bytes),
                Binary::Sub => Binary::FlagsSub(bytes),
                _ => Binary::FlagsAnd(bytes),
            };
            let register = self.context.register("NZCV");
            self.ops.push(Op::Set(register, Expr::binary(flags, left.clone(), right.clone())));
        }
        self.set(to, bytes, Expr::binary(operator, left, right));
    }

    /// Loads and stores.
    fn accesses(&mut self, name: &str, args: &[&str]) -> Result<bool, String> {
        let get =
            |at: usize| args.get(at).copied().ok_or_else(|| "an operand is missing".to_owned());
        let (stem, bytes, signed) = size(name);
        let tags: &[&str] = match stem {
            "LDR" | "LDUR" | "STR" | "STUR" | "LDNP" | "STNP" | "LDP" | "STP" => &[],
            "LDAR" => &["A"],
            "LDAPR" | "LDAPUR" | "LDIAPP" | "LDAP" => &["Q"],
            "LDXR" | "LDXP" => &["X", "EX"],
            "LDAXR" | "LDAXP" => &["A", "X", "EX"],
            "STLR" | "STLUR" | "STILP" | "STLP" => &["L"],
            "STXR" | "STXP" => &["X", "EX"],
            "STLXR" | "STLXP" => &["L", "X", "EX"],
            _ => return Ok(false),
        };
        let tags = self.tags(tags);
        let exclusive = stem.contains('X');
        let is_pair = stem.ends_with('P');
        if stem.starts_with("LD") {
            let targets = if is_pair { 2 } else { 1 };
            let mut registers = Vec::new();
            for at in 0..targets {
                registers.push(self.target(get(at)?)?);
            }
            let wide = registers[0].1;
            let bytes = bytes.unwrap_or(wide);
            let address = self.address(&args[targets..])?;
            for (at, (register, wide)) in registers.iter().enumerate() {
                let width = Width { bytes, signed, register: *wide };
                let address = address.clone().add(Expr::Const(at as i64 * i64::from(bytes)));
                self.ops.push(Op::Load {
                    into: *register,
                    address,
                    width,
                    tags,
                    exclusive,
                    ordered: at > 0 && stem == "LDIAPP",
                });
            }
            return Ok(true);
        }
        let first = usize::from(exclusive);
        let count = if is_pair { 2 } else { 1 };
        let mut values = Vec::new();
        let mut wide = 4;
        for at in first..first + count {
            let (value, width) = self.source(get(at)?)?;
            wide = width;
            values.push(value);
        }
        let bytes = bytes.unwrap_or(wide);
        // The value is read before the base register changes.
        let kept: Vec<Expr> = values
            .into_iter()
            .enumerate()
            .map(|(at, value)| {
                if args.len() == first + count + 1 && !args[first + count].ends_with('!') {
                    return value;
                }
                let register = self.context.register(&format!("-value{at}"));
                self.ops.push(Op::Set(register, value));
                Expr::Register(register)
            })
            .collect();
        let address = self.address(&args[first + count..])?;
        if exclusive {
            let (status, _) = self.target(get(0)?)?;
            self.ops.push(Op::StoreExclusive {
                address,
                values: kept,
                bytes,
                tags,
                status,
                success: 0,
                failure: 1,
                status_depends: false,
            });
            return Ok(true);
        }
        let mut parts: Vec<(i64, Expr)> = kept
            .into_iter()
            .enumerate()
            .map(|(at, value)| (at as i64 * i64::from(bytes), value))
            .collect();
        // If the address decreases first, the values are stored from the end.
        if stem == "STILP" && args[first + count].ends_with('!') {
            parts.reverse();
        }
        for (at, (offset, value)) in parts.into_iter().enumerate() {
            let address = address.clone().add(Expr::Const(offset));
            self.ops.push(if at > 0 && stem == "STILP" {
                Op::StoreOrdered { address, value, bytes, tags }
            } else {
                Op::Store { address, value, bytes, tags }
            });
        }
        Ok(true)
    }

    /// Atomic instructions.
    fn atomics(&mut self, name: &str, args: &[&str]) -> Result<bool, String> {
        let get =
            |at: usize| args.get(at).copied().ok_or_else(|| "an operand is missing".to_owned());
        let (stem, size) = match name.as_bytes().last() {
            Some(b'B') if !name.ends_with("SUB") => (&name[..name.len() - 1], Some(1)),
            Some(b'H') => (&name[..name.len() - 1], Some(2)),
            _ => (name, None),
        };
        const FETCHES: [(&str, Fetch); 8] = [
            ("ADD", Fetch::Binary(Binary::Add)),
            ("CLR", Fetch::Clear),
            ("EOR", Fetch::Binary(Binary::Xor)),
            ("SET", Fetch::Binary(Binary::Or)),
            ("SMAX", Fetch::MaxSigned),
            ("SMIN", Fetch::MinSigned),
            ("UMAX", Fetch::MaxUnsigned),
            ("UMIN", Fetch::MinUnsigned),
        ];
        let orders = |rest: &str| match rest {
            "" => Some((false, false)),
            "A" => Some((true, false)),
            "L" => Some((false, true)),
            "AL" => Some((true, true)),
            _ => None,
        };
        if let Some((acquire, release)) = stem.strip_prefix("CASP").and_then(orders) {
            let [first, second] = [self.target(get(0)?)?, self.target(get(1)?)?];
            let (new, _) = self.source(get(2)?)?;
            let (other, _) = self.source(get(3)?)?;
            let address = self.address(&args[4..])?;
            let read_tags = self.tags(if acquire { &["X", "A"] } else { &["X"] });
            let write_tags = self.tags(if release { &["X", "L"] } else { &["X"] });
            self.ops.push(Op::CompareAndSwapPair {
                into: [first.0, second.0],
                new: [new, other],
                address,
                width: Width { bytes: first.1, signed: false, register: first.1 },
                read_tags,
                write_tags,
            });
            return Ok(true);
        }
        let (update, order, into, returns) = if let Some(order) =
            stem.strip_prefix("CAS").and_then(orders)
        {
            let (expected, _) = self.source(get(0)?)?;
            let (new, _) = self.source(get(1)?)?;
            (Update::CompareAndSwap { expected, new }, order, 0, !Self::is_zero(get(0)?))
        } else if let Some(order) = stem.strip_prefix("SWP").and_then(orders) {
            let (new, _) = self.source(get(0)?)?;
            (Update::Swap(new), order, 1, !Self::is_zero(get(1)?))
        } else {
            let mut found = None;
            for (word, fetch) in FETCHES {
                for (prefix, returns) in [("LD", true), ("ST", false)] {
                    let rest = stem.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(word));
                    if let Some(order) = rest.and_then(orders) {
                        found = Some((fetch, order, returns));
                    }
                }
            }
            let Some((fetch, order, returns)) = found else { return Ok(false) };
            let (operand, _) = self.source(get(0)?)?;
            let returns = returns && !Self::is_zero(get(1)?);
            let into = if stem.starts_with("LD") { 1 } else { usize::MAX };
            (Update::Fetch(fetch, operand), order, into, returns)
        };
        let (acquire, release) = order;
        let width_of = operand(get(0)?)?.1;
        let (target, at) = match into {
            usize::MAX => (None, 1),
            into => (Some(self.target(get(into)?)?.0), 2),
        };
        let address = self.address(&args[at..])?;
        let mut read = vec!["X"];
        // Without a result there is no acquire.
        if acquire && returns {
            read.push("A");
        }
        if !returns {
            read.push("NoRet");
        }
        let read_tags = self.tags(&read);
        let write_tags = self.tags(if release { &["X", "L"] } else { &["X"] });
        self.ops.push(Op::Update {
            into: target,
            address,
            update,
            width: Width { bytes: size.unwrap_or(width_of), signed: false, register: width_of },
            read_tags,
            write_tags,
            failed_tags: read_tags,
            merged: false,
            result: UpdateResult::Old,
        });
        Ok(true)
    }
}

/// Splits the size off a load's or store's name.
fn size(name: &str) -> (&str, Option<u8>, bool) {
    for (suffix, bytes, signed) in
        [("SB", 1, true), ("SH", 2, true), ("SW", 4, true), ("B", 1, false), ("H", 2, false)]
    {
        if let Some(stem) = name.strip_suffix(suffix)
            && matches!(
                stem,
                "LDR"
                    | "LDUR"
                    | "STR"
                    | "STUR"
                    | "LDAR"
                    | "LDAPR"
                    | "LDAPUR"
                    | "LDXR"
                    | "LDAXR"
                    | "STLR"
                    | "STLUR"
                    | "STXR"
                    | "STLXR"
                    | "LDP"
            )
        {
            return (stem, Some(bytes), signed);
        }
    }
    (name, None, false)
}
