//! RISC-V: RV64IA.

use super::cells::split;
use super::{Context, Translated, number};
use crate::executions::code::{
    Binary, Expr, Fetch, Op, Register, Unary, Update, UpdateResult, Width,
};

pub(crate) const TAGS: [&str; 18] = [
    "Acq",
    "Rel",
    "AcqRel",
    "Sc",
    "X",
    "EX",
    "Fence.r.r",
    "Fence.r.w",
    "Fence.r.rw",
    "Fence.w.r",
    "Fence.w.w",
    "Fence.w.rw",
    "Fence.rw.r",
    "Fence.rw.w",
    "Fence.rw.rw",
    "Fence.tso",
    "Fence.i",
    "Sync",
];

const ABI: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6",
];

pub(crate) fn register_name(name: &str) -> Option<String> {
    if name.starts_with('%') {
        return Some(name.to_owned());
    }
    let lower = name.to_ascii_lowercase();
    if let Some(at) = ABI.iter().position(|&known| known == lower) {
        return Some(format!("x{at}"));
    }
    let number: u8 = lower.strip_prefix('x')?.parse().ok()?;
    (number < 32).then(|| format!("x{number}"))
}

fn source(context: &mut Context<'_>, text: &str) -> Result<Expr, String> {
    let name = register_name(text).ok_or_else(|| format!("`{text}` is not a register"))?;
    Ok(if name == "x0" { Expr::Const(0) } else { context.read(&name) })
}

fn target(context: &mut Context<'_>, text: &str) -> Result<Register, String> {
    let name = register_name(text).ok_or_else(|| format!("`{text}` is not a register"))?;
    Ok(context.register(if name == "x0" { "-" } else { &name }))
}

/// Reads `8(x5)` and `(x5)`.
fn address(context: &mut Context<'_>, text: &str) -> Result<Expr, String> {
    let (offset, rest) =
        text.split_once('(').ok_or_else(|| format!("`{text}` is not an address"))?;
    let base = source(context, rest.trim_end_matches(')').trim())?;
    let offset =
        if offset.trim().is_empty() { 0 } else { number(offset).ok_or("an offset is missing")? };
    Ok(base.add(Expr::Const(offset)))
}

/// Splits `.aq`, `.rl` off a name.
fn order(name: &str) -> (&str, bool, bool) {
    let (mut name, mut acquire, mut release) = (name, false, false);
    for (suffix, aq, rl) in
        [(".aq.rl", true, true), (".aqrl", true, true), (".rl", false, true), (".aq", true, false)]
    {
        if let Some(stem) = name.strip_suffix(suffix) {
            (name, acquire, release) = (stem, aq, rl);
            break;
        }
    }
    (name, acquire, release)
}

fn order_tags(context: &mut Context<'_>, acquire: bool, release: bool, more: &[&str]) -> u64 {
    let mut tags = match (acquire, release) {
        (true, true) => context.tag("AcqRel"),
        (true, false) => context.tag("Acq"),
        (false, true) => context.tag("Rel"),
        (false, false) => 0,
    };
    for tag in more {
        tags |= context.tag(tag);
    }
    tags
}

pub(crate) fn instruction(context: &mut Context<'_>, text: &str) -> Translated {
    let cell = split(text);
    let lower = cell.mnemonic.to_ascii_lowercase();
    let args = &cell.operands;
    let get = |at: usize| args.get(at).copied().ok_or_else(|| "an operand is missing".to_owned());
    let unsupported = || format!("unsupported RISC-V instruction `{}`", text.trim());
    let one = |op: Op| Ok(vec![op]);
    let (name, acquire, release) = order(&lower);
    match name {
        "nop" => return Ok(Vec::new()),
        "fence" => {
            let side = |at: usize| {
                args.get(at).map_or("rw".to_owned(), |text| {
                    text.chars().filter(|c| matches!(c, 'r' | 'w')).collect::<String>()
                })
            };
            let tag = format!("Fence.{}.{}", side(0), side(1));
            if !TAGS.contains(&tag.as_str()) {
                return Err(unsupported());
            }
            let tags = context.tag(&tag);
            return one(Op::Fence { tags });
        }
        "fence.tso" | "fence.i" => {
            let tags = context.tag(if name == "fence.i" { "Fence.i" } else { "Fence.tso" });
            return one(Op::Fence { tags });
        }
        "ret" if args.is_empty() => return one(Op::End),
        "j" => {
            let target = context.target(get(0)?)?;
            return one(Op::Jump(target));
        }
        "li" | "lui" => {
            let to = target(context, get(0)?)?;
            let value = number(get(1)?).ok_or("a number is missing")?;
            let value = if name == "lui" { i64::from((value << 12) as i32) } else { value };
            return one(Op::Set(to, Expr::Const(value)));
        }
        "mv" | "sext.w" | "not" | "neg" | "negw" => {
            let to = target(context, get(0)?)?;
            let value = source(context, get(1)?)?;
            let value = match name {
                "sext.w" => value.extend(4, true),
                "not" => Expr::unary(Unary::Not, value),
                "neg" => Expr::unary(Unary::Negate, value),
                "negw" => Expr::unary(Unary::Negate, value).extend(4, true),
                _ => value,
            };
            return one(Op::Set(to, value));
        }
        "beq" | "bne" | "blt" | "bge" | "bltu" | "bgeu" | "ble" | "bgt" => {
            let (left, right) = (source(context, get(0)?)?, source(context, get(1)?)?);
            let goal = context.target(get(2)?)?;
            let condition = match name {
                "beq" => Expr::binary(Binary::Equal, left, right),
                "bne" => Expr::binary(Binary::NotEqual, left, right),
                "blt" => Expr::binary(Binary::Less, left, right),
                "bge" => Expr::binary(Binary::LessEqual, right, left),
                "ble" => Expr::binary(Binary::LessEqual, left, right),
                "bgt" => Expr::binary(Binary::Less, right, left),
                "bltu" => Expr::binary(Binary::LessUnsigned, left, right),
                _ => Expr::binary(Binary::LessEqualUnsigned, right, left),
            };
            return one(Op::Branch { condition, target: goal });
        }
        "beqz" | "bnez" => {
            let value = source(context, get(0)?)?;
            let goal = context.target(get(1)?)?;
            let operator = if name == "beqz" { Binary::Equal } else { Binary::NotEqual };
            let condition = Expr::binary(operator, value, Expr::Const(0));
            return one(Op::Branch { condition, target: goal });
        }
        "lb" | "lbu" | "lh" | "lhu" | "lw" | "lwu" | "ld" => {
            let into = target(context, get(0)?)?;
            let address = address(context, get(1)?)?;
            let bytes = letter(name.as_bytes()[1]);
            let width = Width { bytes, signed: !name.ends_with('u'), register: 8 };
            let tags = order_tags(context, acquire, release, &[]);
            return one(Op::Load { into, address, width, tags, exclusive: false, ordered: false });
        }
        "sb" | "sh" | "sw" | "sd" => {
            let value = source(context, get(0)?)?;
            let address = address(context, get(1)?)?;
            let tags = order_tags(context, acquire, release, &[]);
            return one(Op::Store { address, value, bytes: letter(name.as_bytes()[1]), tags });
        }
        "lr.w" | "lr.d" => {
            let into = target(context, get(0)?)?;
            let address = address(context, get(1)?)?;
            let width = Width { bytes: letter(name.as_bytes()[3]), signed: true, register: 8 };
            let tags = order_tags(context, acquire, release, &["EX"]);
            return one(Op::Load { into, address, width, tags, exclusive: true, ordered: false });
        }
        "sc.w" | "sc.d" => {
            let status = target(context, get(0)?)?;
            let value = source(context, get(1)?)?;
            let address = address(context, get(2)?)?;
            let tags = order_tags(context, acquire, release, &["EX"]);
            let bytes = letter(name.as_bytes()[3]);
            return one(Op::StoreExclusive {
                address,
                values: vec![value],
                bytes,
                tags,
                status,
                success: 0,
                failure: 1,
                status_depends: true,
            });
        }
        _ => {}
    }
    if let Some((operation, size)) = name.strip_prefix("amo").and_then(|rest| rest.split_once('.'))
    {
        let into = target(context, get(0)?)?;
        let value = source(context, get(1)?)?;
        let address = address(context, get(2)?)?;
        let bytes = letter(size.as_bytes().first().copied().unwrap_or(b'w'));
        let update = match operation {
            "swap" => Update::Swap(value),
            "add" => Update::Fetch(Fetch::Binary(Binary::Add), value),
            "and" => Update::Fetch(Fetch::Binary(Binary::And), value),
            "or" => Update::Fetch(Fetch::Binary(Binary::Or), value),
            "xor" => Update::Fetch(Fetch::Binary(Binary::Xor), value),
            "max" => Update::Fetch(Fetch::MaxSigned, value),
            "min" => Update::Fetch(Fetch::MinSigned, value),
            "maxu" => Update::Fetch(Fetch::MaxUnsigned, value),
            "minu" => Update::Fetch(Fetch::MinUnsigned, value),
            _ => return Err(unsupported()),
        };
        let tags = order_tags(context, acquire, release, &["X"]);
        return one(Op::Update {
            into: Some(into),
            address,
            update,
            width: Width { bytes, signed: true, register: 8 },
            read_tags: tags,
            write_tags: tags,
            failed_tags: tags,
            merged: true,
            result: UpdateResult::Old,
        });
    }
    arithmetic(context, name, args)?.map_or_else(|| Err(unsupported()), one)
}

fn letter(size: u8) -> u8 {
    match size {
        b'b' => 1,
        b'h' => 2,
        b'w' => 4,
        _ => 8,
    }
}

fn arithmetic(context: &mut Context<'_>, name: &str, args: &[&str]) -> Result<Option<Op>, String> {
    let (stem, narrow) = match name.strip_suffix('w') {
        Some(stem) if !matches!(name, "lw" | "sw") => (stem, true),
        _ => (name, false),
    };
    let (stem, immediate) = match stem {
        "sltiu" => ("sltu", true),
        _ => match stem.strip_suffix('i') {
            Some(inner) if inner.len() > 1 => (inner, true),
            _ => (stem, false),
        },
    };
    let operator = match stem {
        "add" => Binary::Add,
        "sub" => Binary::Sub,
        "mul" => Binary::Mul,
        "and" => Binary::And,
        "or" => Binary::Or,
        "xor" => Binary::Xor,
        "sll" => Binary::ShiftLeft,
        "srl" => Binary::ShiftRight,
        "sra" => Binary::ShiftRightSigned,
        "slt" => Binary::Less,
        "sltu" => Binary::LessUnsigned,
        _ => return Ok(None),
    };
    if args.len() != 3 {
        return Err("three operands are needed".to_owned());
    }
    let to = target(context, args[0])?;
    let left = source(context, args[1])?;
    let right = match number(args[2]) {
        Some(value) if immediate => Expr::Const(value),
        _ => source(context, args[2])?,
    };
    let value = Expr::binary(operator, left, right);
    Ok(Some(Op::Set(to, if narrow { value.extend(4, true) } else { value })))
}
