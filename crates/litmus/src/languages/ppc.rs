//! Power, 32 and 64 bit, user level.

use super::cells::split;
use super::{Context, Translated, number};
use crate::executions::code::{Binary, Expr, Op, Register, Unary, Width};

pub(crate) const TAGS: [&str; 6] = ["SYNC", "LWSYNC", "EIEIO", "ISYNC", "X", "EX"];

pub(crate) fn register_name(name: &str) -> Option<String> {
    if name.starts_with('%') {
        return Some(name.to_owned());
    }
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("cr") {
        return Some(lower);
    }
    let number: u8 = lower.strip_prefix('r').unwrap_or(&lower).parse().ok()?;
    (number < 32).then(|| format!("r{number}"))
}

fn target(context: &mut Context<'_>, text: &str) -> Result<Register, String> {
    let name = register_name(text).ok_or_else(|| format!("`{text}` is not a register"))?;
    Ok(context.register(&name))
}

fn source(context: &mut Context<'_>, text: &str) -> Result<Expr, String> {
    Ok(Expr::Register(target(context, text)?))
}

/// Reads `8(r2)`.
fn address(context: &mut Context<'_>, text: &str) -> Result<Expr, String> {
    let (offset, rest) =
        text.split_once('(').ok_or_else(|| format!("`{text}` is not an address"))?;
    let base = source(context, rest.trim_end_matches(')').trim())?;
    Ok(base.add(Expr::Const(number(offset).ok_or("an offset is missing")?)))
}

/// Reads the base and index of an indexed access; a base of `r0` is 0 only if written as `0`.
fn indexed(context: &mut Context<'_>, base: &str, index: &str) -> Result<Expr, String> {
    let base = match number(base) {
        Some(0) => Expr::Const(0),
        _ => source(context, base)?,
    };
    Ok(base.add(source(context, index)?))
}

/// Returns the flags of a comparison: less 8, greater 4, equal 2.
fn compare(left: Expr, right: Expr, unsigned: bool) -> Expr {
    let less = if unsigned { Binary::LessUnsigned } else { Binary::Less };
    let bit = |operator, a: &Expr, b: &Expr, value| {
        Expr::binary(Binary::Mul, Expr::binary(operator, a.clone(), b.clone()), Expr::Const(value))
    };
    bit(less, &left, &right, 8).add(bit(less, &right, &left, 4)).add(bit(
        Binary::Equal,
        &left,
        &right,
        2,
    ))
}

pub(crate) fn instruction(context: &mut Context<'_>, text: &str) -> Translated {
    let cell = split(text);
    let name = cell.mnemonic.to_ascii_lowercase();
    let args = &cell.operands;
    let get = |at: usize| args.get(at).copied().ok_or_else(|| "an operand is missing".to_owned());
    let unsupported = || format!("unsupported Power instruction `{}`", text.trim());
    let one = |op: Op| Ok(vec![op]);
    let fence = |context: &mut Context<'_>, tag: &str| {
        let tags = context.tag(tag);
        Ok(vec![Op::Fence { tags }])
    };
    match name.as_str() {
        "nop" => return Ok(Vec::new()),
        "sync" | "hwsync" => return fence(context, "SYNC"),
        "lwsync" => return fence(context, "LWSYNC"),
        "eieio" => return fence(context, "EIEIO"),
        "isync" => return fence(context, "ISYNC"),
        "blr" => return one(Op::End),
        "b" => {
            let target = context.target(get(0)?)?;
            return one(Op::Jump(target));
        }
        "li" | "lis" => {
            let to = target(context, get(0)?)?;
            let value = number(get(1)?).ok_or("a number is missing")?;
            let value = if name == "lis" { value << 16 } else { value };
            return one(Op::Set(to, Expr::Const(value)));
        }
        "mr" => {
            let to = target(context, get(0)?)?;
            let value = source(context, get(1)?)?;
            return one(Op::Set(to, value));
        }
        "extsw" | "extsh" | "extsb" => {
            let to = target(context, get(0)?)?;
            let value = source(context, get(1)?)?;
            let bytes = match name.as_bytes()[4] {
                b'w' => 4,
                b'h' => 2,
                _ => 1,
            };
            return one(Op::Set(to, value.extend(bytes, true)));
        }
        "clrldi" | "clrlwi" => {
            let to = target(context, get(0)?)?;
            let value = source(context, get(1)?)?;
            let bits = number(get(2)?).ok_or("a number is missing")?;
            let width = if name == "clrldi" { 64 } else { 32 };
            let kept = (width - bits).clamp(0, 64);
            let mask = if kept >= 64 { -1 } else { (1i64 << kept) - 1 };
            return one(Op::Set(to, Expr::binary(Binary::And, value, Expr::Const(mask))));
        }
        "rlwinm" | "rlwimi" => {
            let to = target(context, get(0)?)?;
            let value = source(context, get(1)?)?.extend(4, false);
            let digit = |at: usize| {
                number(args.get(at).copied().unwrap_or("")).ok_or("a number is missing")
            };
            let (shift, first, last) = (digit(2)?, digit(3)?, digit(4)?);
            let left = Expr::binary(Binary::ShiftLeft, value.clone(), Expr::Const(shift));
            let right = Expr::binary(Binary::ShiftRight, value, Expr::Const(32 - shift));
            let rotated = Expr::binary(Binary::Or, left, right).extend(4, false);
            // Bits are numbered from the left.
            let from = |bit: i64| 0xffff_ffffu32.checked_shr(bit as u32).unwrap_or(0);
            let after = |bit: i64| if bit >= 31 { 0 } else { from(bit + 1) };
            let mask =
                if first <= last { from(first) & !after(last) } else { from(first) | !after(last) };
            let mask = i64::from(mask);
            let inserted = Expr::binary(Binary::And, rotated, Expr::Const(mask));
            let result = if name == "rlwimi" {
                let kept = Expr::binary(Binary::And, Expr::Register(to), Expr::Const(!mask));
                Expr::binary(Binary::Or, kept, inserted)
            } else {
                inserted
            };
            return one(Op::Set(to, result));
        }
        "cmpw" | "cmpwi" | "cmplw" | "cmplwi" | "cmpd" | "cmpdi" | "cmpld" | "cmpldi" => {
            let (field, rest) = match args.len() {
                3 => (get(0)?.to_ascii_lowercase(), &args[1..]),
                _ => ("cr0".to_owned(), &args[..]),
            };
            let left = source(context, rest.first().copied().unwrap_or(""))?;
            let right = match number(rest.get(1).copied().unwrap_or("")) {
                Some(value) if name.ends_with('i') => Expr::Const(value),
                _ => source(context, rest.get(1).copied().unwrap_or(""))?,
            };
            let unsigned = name.contains('l');
            let bytes = if name.contains('d') { 8 } else { 4 };
            let flags = context.register(&field);
            let value =
                compare(left.extend(bytes, !unsigned), right.extend(bytes, !unsigned), unsigned);
            return one(Op::Set(flags, value));
        }
        "beq" | "bne" | "blt" | "bge" | "bgt" | "ble" => {
            let (field, label) = match args.len() {
                2 => (get(0)?.to_ascii_lowercase(), get(1)?),
                _ => ("cr0".to_owned(), get(0)?),
            };
            let goal = context.target(label)?;
            let flags = context.read(&field);
            let (bit, wanted) = match name.as_str() {
                "beq" => (2, true),
                "bne" => (2, false),
                "blt" => (8, true),
                "bge" => (8, false),
                "bgt" => (4, true),
                _ => (4, false),
            };
            let set = Expr::binary(Binary::And, flags, Expr::Const(bit));
            let condition = if wanted { set } else { Expr::unary(Unary::IsZero, set) };
            return one(Op::Branch { condition, target: goal });
        }
        "lwarx" | "ldarx" => {
            let into = target(context, get(0)?)?;
            let address = indexed(context, get(1)?, get(2)?)?;
            let bytes = if name == "lwarx" { 4 } else { 8 };
            let tags = context.tag("X") | context.tag("EX");
            let width = Width { bytes, signed: false, register: 8 };
            return one(Op::Load { into, address, width, tags, exclusive: true, ordered: false });
        }
        "stwcx." | "stdcx." => {
            let value = source(context, get(0)?)?;
            let address = indexed(context, get(1)?, get(2)?)?;
            let bytes = if name == "stwcx." { 4 } else { 8 };
            let tags = context.tag("X") | context.tag("EX");
            let status = context.register("cr0");
            return one(Op::StoreExclusive {
                address,
                values: vec![value],
                bytes,
                tags,
                status,
                success: 2,
                failure: 0,
                status_depends: true,
            });
        }
        _ => {}
    }
    if let Some((is_load, bytes, signed, is_indexed)) = access(&name) {
        let register = target(context, get(0)?)?;
        let address = if is_indexed {
            indexed(context, get(1)?, get(2)?)?
        } else {
            address(context, get(1)?)?
        };
        return one(if is_load {
            let width = Width { bytes, signed, register: 8 };
            Op::Load { into: register, address, width, tags: 0, exclusive: false, ordered: false }
        } else {
            Op::Store { address, value: Expr::Register(register), bytes, tags: 0 }
        });
    }
    let immediate = name.ends_with('i') && name != "li";
    let stem = match name.as_str() {
        "addis" => "addis",
        other => other.trim_end_matches(['i', '.']),
    };
    let operator = match stem {
        "add" | "addis" => Binary::Add,
        "sub" | "subf" => Binary::Sub,
        "mullw" | "mull" | "mulld" => Binary::Mul,
        "and" => Binary::And,
        "or" => Binary::Or,
        "xor" => Binary::Xor,
        "slw" | "slwi" | "sld" => Binary::ShiftLeft,
        "srw" | "srwi" | "srd" => Binary::ShiftRight,
        "sraw" => Binary::ShiftRightSigned,
        _ => return Err(unsupported()),
    };
    let to = target(context, get(0)?)?;
    let left = source(context, get(1)?)?;
    let right = match number(get(2)?) {
        Some(value) if stem == "addis" => Expr::Const(value << 16),
        Some(value) if immediate => Expr::Const(value),
        _ => source(context, get(2)?)?,
    };
    let (left, right) = if stem == "subf" { (right, left) } else { (left, right) };
    let mut ops = vec![Op::Set(to, Expr::binary(operator, left, right))];
    if name.ends_with('.') {
        let flags = context.register("cr0");
        ops.push(Op::Set(
            flags,
            compare(Expr::Register(to).extend(4, true), Expr::Const(0), false),
        ));
    }
    Ok(ops)
}

/// Returns the properties of an access by its name: load, bytes, signed, indexed.
fn access(name: &str) -> Option<(bool, u8, bool, bool)> {
    let (stem, is_indexed) = match name.strip_suffix('x') {
        Some(stem) => (stem, true),
        None => (name, false),
    };
    Some(match stem {
        "lbz" => (true, 1, false, is_indexed),
        "lhz" => (true, 2, false, is_indexed),
        "lha" => (true, 2, true, is_indexed),
        "lwz" => (true, 4, false, is_indexed),
        "lwa" => (true, 4, true, is_indexed),
        "ld" => (true, 8, false, is_indexed),
        "stb" => (false, 1, false, is_indexed),
        "sth" => (false, 2, false, is_indexed),
        "stw" => (false, 4, false, is_indexed),
        "std" => (false, 8, false, is_indexed),
        _ => return None,
    })
}
