//! The common language that tests of every instruction set are translated to.
//!
//! An instruction is a list of small operations on registers and memory. Registers are 64 bits
//! wide; narrower arithmetic is said by [`Expr::Extend`]. Locations have addresses like any number,
//! so addresses can be computed.

/// A register of a thread, by its index in [`ThreadCode::registers`].
pub(crate) type Register = u16;

/// A set of tags, bits into [`Code::tags`].
pub(crate) type Tags = u64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    LessUnsigned,
    LessEqualUnsigned,
    /// Flags NZCV of an addition, as AArch64 has them, of 64 or 32 bits.
    FlagsAdd(u8),
    FlagsSub(u8),
    FlagsAnd(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unary {
    Not,
    Negate,
    /// 1 for 0, else 0.
    IsZero,
    ReverseBits(u8),
    /// Reverses bytes within groups of so many bytes, in a value of so many bytes.
    ReverseBytes(u8, u8),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expr {
    Const(i64),
    Register(Register),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Unary(Unary, Box<Expr>),
    /// The low bytes, extended with zeros or the sign.
    Extend {
        bytes: u8,
        signed: bool,
        of: Box<Expr>,
    },
    /// One of two, by a condition: a choice inside an instruction.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A condition of AArch64 on flags.
    Condition(u8, Box<Expr>),
}

impl Expr {
    pub(crate) fn binary(operator: Binary, left: Expr, right: Expr) -> Expr {
        Expr::Binary(operator, Box::new(left), Box::new(right))
    }

    pub(crate) fn unary(operator: Unary, of: Expr) -> Expr {
        Expr::Unary(operator, Box::new(of))
    }

    pub(crate) fn extend(self, bytes: u8, signed: bool) -> Expr {
        if bytes >= 8 { self } else { Expr::Extend { bytes, signed, of: Box::new(self) } }
    }

    pub(crate) fn add(self, other: Expr) -> Expr {
        match (self, other) {
            (left, Expr::Const(0)) => left,
            (Expr::Const(0), right) => right,
            (left, right) => Expr::binary(Binary::Add, left, right),
        }
    }
}

/// How a loaded value fills its register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Width {
    /// Bytes in memory.
    pub(crate) bytes: u8,
    /// Whether the sign is extended.
    pub(crate) signed: bool,
    /// Bytes of the register that are written; those above are 0.
    pub(crate) register: u8,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Update {
    /// The new value.
    Swap(Expr),
    /// The old value combined with an operand; a number of bytes gives the width.
    Fetch(Fetch, Expr),
    /// The new value, if the old one is as expected.
    CompareAndSwap { expected: Expr, new: Expr },
    /// Adds unless the old value is this.
    AddUnless { add: Expr, unless: Expr },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fetch {
    Binary(Binary),
    /// And with the complement.
    Clear,
    MaxSigned,
    MinSigned,
    MaxUnsigned,
    MinUnsigned,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Set(Register, Expr),
    Load {
        into: Register,
        address: Expr,
        width: Width,
        tags: Tags,
        exclusive: bool,
        /// Whether it comes after the access before it in the same instruction.
        ordered: bool,
    },
    Store {
        address: Expr,
        value: Expr,
        bytes: u8,
        tags: Tags,
    },
    /// The same, after the access before it in the same instruction.
    StoreOrdered {
        address: Expr,
        value: Expr,
        bytes: u8,
        tags: Tags,
    },
    /// Writes if the thread holds a reservation of the address, or fails; the status is one of two.
    StoreExclusive {
        address: Expr,
        values: Vec<Expr>,
        bytes: u8,
        tags: Tags,
        status: Register,
        success: i64,
        failure: i64,
        /// Whether the status of a success comes from what was written and where.
        status_depends: bool,
    },
    Update {
        into: Option<Register>,
        address: Expr,
        update: Update,
        width: Width,
        read_tags: Tags,
        write_tags: Tags,
        /// Tags of the read where nothing is written.
        failed_tags: Tags,
        /// One event that reads and writes, as in C.
        merged: bool,
        /// The value that `into` receives: the old value, the new one, or whether something was written.
        result: UpdateResult,
    },
    /// Compares and swaps a pair of neighbours.
    CompareAndSwapPair {
        into: [Register; 2],
        new: [Expr; 2],
        address: Expr,
        width: Width,
        read_tags: Tags,
        write_tags: Tags,
    },
    Fence {
        tags: Tags,
    },
    /// An event that names a location without accessing it.
    FenceAt {
        address: Expr,
        tags: Tags,
    },
    /// Goes to an instruction if the condition is not 0.
    Branch {
        condition: Expr,
        target: usize,
    },
    /// Goes to an instruction; nothing depends on it.
    Jump(usize),
    /// Ends the thread.
    End,
    /// Keeps an execution only if the expression is not 0.
    Assume(Expr),
    /// Opens and closes the reach of the branches between.
    OpenControl,
    CloseControl,
    /// Drops the reservation.
    ClearExclusive,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UpdateResult {
    Old,
    New,
    Written,
}

/// The instructions of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadCode {
    /// Operations of each instruction; an index past the end ends the thread.
    pub(crate) instructions: Vec<Vec<Op>>,
    /// Names of the registers, as conditions spell them.
    pub(crate) registers: Vec<String>,
    /// Their initial values.
    pub(crate) initial: Vec<i64>,
}

impl ThreadCode {
    /// Returns the register of a name, adding it if it is new.
    pub(crate) fn register(&mut self, name: &str) -> Register {
        if let Some(at) = self.registers.iter().position(|known| known == name) {
            return at as Register;
        }
        self.registers.push(name.to_owned());
        self.initial.push(0);
        (self.registers.len() - 1) as Register
    }
}

/// A declared location.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) address: i64,
    /// Bytes of an element.
    pub(crate) bytes: u8,
    pub(crate) signed: bool,
    /// Initial values of the elements; a single one unless it is an array.
    pub(crate) initial: Vec<i64>,
    pub(crate) is_array: bool,
}

/// The first address, and the distance of locations: no test computes with such numbers.
pub(crate) const FIRST_ADDRESS: i64 = 0x5a51_0000;
pub(crate) const ADDRESS_STEP: i64 = 0x1_0000;

/// A program in the common language.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) threads: Vec<ThreadCode>,
    pub(crate) locations: Vec<Declared>,
    /// Names of the tags that events carry.
    pub(crate) tags: Vec<String>,
}

impl Code {
    /// Returns the location and element at an address.
    pub(crate) fn locate(&self, address: i64) -> Option<(usize, i64)> {
        let index = address.checked_sub(FIRST_ADDRESS)?;
        let (at, offset) = (index.div_euclid(ADDRESS_STEP), index.rem_euclid(ADDRESS_STEP));
        let at = usize::try_from(at).ok().filter(|&at| at < self.locations.len())?;
        Some((at, offset))
    }

    /// Returns the value that an address has at first.
    pub(crate) fn initial(&self, address: i64) -> Option<i64> {
        let (at, offset) = self.locate(address)?;
        let location = &self.locations[at];
        let element = offset / i64::from(location.bytes.max(1));
        Some(location.initial.get(element as usize).copied().unwrap_or(0))
    }

    /// Names an address: `x`, `x+4`.
    pub(crate) fn address_name(&self, address: i64) -> Option<String> {
        let (at, offset) = self.locate(address)?;
        let location = &self.locations[at];
        Some(if offset == 0 {
            location.name.clone()
        } else {
            format!("{}+{offset}", location.name)
        })
    }

    /// Returns a tag's bit.
    pub(crate) fn tag(&self, name: &str) -> Tags {
        self.tags.iter().position(|tag| tag == name).map_or(0, |at| 1 << at)
    }

    /// Returns the bit of a tag that a bell file spells in any case: the kernel's has changed from
    /// `'acquire` to `'ACQUIRE`.
    pub(crate) fn tag_in_any_case(&self, name: &str) -> Tags {
        match self.tag(name) {
            0 => {
                let is_it = |tag: &String| tag.eq_ignore_ascii_case(name);
                self.tags.iter().position(is_it).map_or(0, |at| 1 << at)
            }
            tag => tag,
        }
    }
}

pub(crate) fn truncate(value: i64, bytes: u8, signed: bool) -> i64 {
    match (bytes, signed) {
        (1, true) => i64::from(value as i8),
        (1, false) => i64::from(value as u8),
        (2, true) => i64::from(value as i16),
        (2, false) => i64::from(value as u16),
        (4, true) => i64::from(value as i32),
        (4, false) => i64::from(value as u32),
        _ => value,
    }
}

/// Computes a binary operator.
pub(crate) fn binary(operator: Binary, a: i64, b: i64) -> i64 {
    match operator {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::Div => {
            if b == 0 {
                0
            } else {
                a.wrapping_div(b)
            }
        }
        Binary::Rem => {
            if b == 0 {
                a
            } else {
                a.wrapping_rem(b)
            }
        }
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::ShiftLeft => {
            if (0..64).contains(&b) {
                a.wrapping_shl(b as u32)
            } else {
                0
            }
        }
        Binary::ShiftRight => {
            if (0..64).contains(&b) {
                ((a as u64) >> b) as i64
            } else {
                0
            }
        }
        Binary::ShiftRightSigned => a >> b.clamp(0, 63),
        Binary::Equal => i64::from(a == b),
        Binary::NotEqual => i64::from(a != b),
        Binary::Less => i64::from(a < b),
        Binary::LessEqual => i64::from(a <= b),
        Binary::LessUnsigned => i64::from((a as u64) < b as u64),
        Binary::LessEqualUnsigned => i64::from(a as u64 <= b as u64),
        Binary::FlagsAdd(bytes) => {
            let (a, b) = (truncate(a, bytes, false), truncate(b, bytes, false));
            let sum = truncate(a.wrapping_add(b), bytes, true);
            let carry = if bytes == 8 {
                (a as u64).checked_add(b as u64).is_none()
            } else {
                a.wrapping_add(b) >> (bytes * 8) != 0
            };
            let (sa, sb) = (truncate(a, bytes, true), truncate(b, bytes, true));
            let overflow = (sa < 0) == (sb < 0) && (sum < 0) != (sa < 0);
            flags(sum < 0, sum == 0, carry, overflow)
        }
        Binary::FlagsSub(bytes) => {
            let (sa, sb) = (truncate(a, bytes, true), truncate(b, bytes, true));
            let difference = truncate(sa.wrapping_sub(sb), bytes, true);
            let (ua, ub) = (truncate(a, bytes, false) as u64, truncate(b, bytes, false) as u64);
            let overflow = (sa < 0) != (sb < 0) && (difference < 0) != (sa < 0);
            flags(difference < 0, difference == 0, ua >= ub, overflow)
        }
        Binary::FlagsAnd(bytes) => {
            let result = truncate(a & b, bytes, true);
            flags(result < 0, result == 0, false, false)
        }
    }
}

fn flags(n: bool, z: bool, c: bool, v: bool) -> i64 {
    i64::from(n) << 3 | i64::from(z) << 2 | i64::from(c) << 1 | i64::from(v)
}

/// Computes a unary operator.
pub(crate) fn unary(operator: Unary, a: i64) -> i64 {
    match operator {
        Unary::Not => !a,
        Unary::Negate => a.wrapping_neg(),
        Unary::IsZero => i64::from(a == 0),
        Unary::ReverseBits(bytes) => {
            ((a as u64).reverse_bits() >> (64 - u32::from(bytes) * 8)) as i64
        }
        Unary::ReverseBytes(group, bytes) => {
            let source = a.to_le_bytes();
            let mut out = [0; 8];
            let width = usize::from(group);
            for (at, byte) in out.iter_mut().enumerate().take(usize::from(bytes)) {
                *byte = source[at / width * width + width - 1 - at % width];
            }
            i64::from_le_bytes(out)
        }
    }
}

/// Decides a condition of AArch64, numbered as its encoding is.
pub(crate) fn condition(code: u8, nzcv: i64) -> bool {
    let (n, z, c, v) = (nzcv >> 3 & 1 == 1, nzcv >> 2 & 1 == 1, nzcv >> 1 & 1 == 1, nzcv & 1 == 1);
    let holds = match code >> 1 {
        0 => z,
        1 => c,
        2 => n,
        3 => v,
        4 => c && !z,
        5 => n == v,
        6 => n == v && !z,
        _ => true,
    };
    if code & 1 == 1 && code < 14 { !holds } else { holds }
}
