//! The common language into which tests of every instruction set are translated.
//!
//! An instruction is a list of small operations on registers and memory. Registers are 64 bits
//! wide; narrower arithmetic uses [`Expr::Extend`]. Addresses of locations are ordinary numbers, so
//! addresses can be computed.

/// A register of a thread, by its index in [`ThreadCode::registers`].
pub type Register = u16;

/// A set of tags, bits into [`Code::tags`].
pub type Tags = u64;

/// A binary operator on 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient; 0 for a division by 0.
    Div,
    /// Remainder.
    Rem,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift to the left.
    ShiftLeft,
    /// Shift to the right that fills with zeros.
    ShiftRight,
    /// Shift to the right that keeps the sign.
    ShiftRightSigned,
    /// 1 if equal, else 0; the other comparisons likewise.
    Equal,
    /// 1 if the operands differ, else 0.
    NotEqual,
    /// Signed comparison.
    Less,
    /// Signed comparison.
    LessEqual,
    /// Unsigned comparison.
    LessUnsigned,
    /// Unsigned comparison.
    LessEqualUnsigned,
    /// Flags NZCV of an addition of 64 or 32 bits, as in AArch64.
    FlagsAdd(u8),
    /// Flags of a subtraction.
    FlagsSub(u8),
    /// Flags of a bitwise and.
    FlagsAnd(u8),
}

/// A unary operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    /// Bitwise complement.
    Not,
    /// The number with the opposite sign.
    Negate,
    /// 1 for 0, else 0.
    IsZero,
    /// Reverses the bits of a value of the given number of bytes.
    ReverseBits(u8),
    /// Reverses the bytes within groups of the first number of bytes, in a value of the second
    /// number of bytes.
    ReverseBytes(u8, u8),
}

/// An expression over the registers of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expr {
    /// A number or an address.
    Const(i64),
    /// The value of a register.
    Register(Register),
    /// An operator and its operands.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// An operator and its operand.
    Unary(Unary, Box<Expr>),
    /// The low bytes, extended with zeros or the sign.
    Extend {
        /// Number of bytes that are kept.
        bytes: u8,
        /// Whether the sign is extended.
        signed: bool,
        /// The expression that is cut.
        of: Box<Expr>,
    },
    /// One of two values, selected by a condition: a choice inside an instruction.
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

/// Width of a loaded value in memory and in its register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Width {
    /// Bytes in memory.
    pub bytes: u8,
    /// Whether the sign is extended.
    pub signed: bool,
    /// Bytes of the register that are written; higher bytes become 0.
    pub register: u8,
}

/// Value that an atomic update writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Update {
    /// The new value.
    Swap(Expr),
    /// The old value combined with an operand; a number of bytes gives the width.
    Fetch(Fetch, Expr),
    /// The new value, if the old one is as expected.
    CompareAndSwap {
        /// The value that memory must have.
        expected: Expr,
        /// The value that is written then.
        new: Expr,
    },
    /// Adds a number unless the old value equals another one.
    AddUnless {
        /// Number that is added.
        add: Expr,
        /// Old value that is left unchanged.
        unless: Expr,
    },
}

/// Combination of the old value and an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fetch {
    /// The result of an operator.
    Binary(Binary),
    /// Bitwise and with the complement.
    Clear,
    /// Signed maximum.
    MaxSigned,
    /// Signed minimum.
    MinSigned,
    /// Unsigned maximum.
    MaxUnsigned,
    /// Unsigned minimum.
    MinUnsigned,
}

/// A step of an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Computes a register.
    Set(Register, Expr),
    /// Reads memory.
    Load {
        /// The register that receives the value.
        into: Register,
        /// The address.
        address: Expr,
        /// Width of the value in memory and in the register.
        width: Width,
        /// Tags of the event.
        tags: Tags,
        /// Whether it sets a reservation.
        exclusive: bool,
        /// Whether it comes after the previous access of the same instruction.
        ordered: bool,
    },
    /// Writes memory.
    Store {
        /// The address.
        address: Expr,
        /// The value.
        value: Expr,
        /// Bytes in memory.
        bytes: u8,
        /// Tags of the event.
        tags: Tags,
    },
    /// Writes memory, after the previous access of the same instruction.
    StoreOrdered {
        /// The address.
        address: Expr,
        /// The value.
        value: Expr,
        /// Bytes in memory.
        bytes: u8,
        /// Tags of the event.
        tags: Tags,
    },
    /// Writes if the thread holds a reservation, or fails; the status register receives the result.
    StoreExclusive {
        /// The address.
        address: Expr,
        /// Values, stored consecutively.
        values: Vec<Expr>,
        /// Bytes in memory.
        bytes: u8,
        /// Tags of the event.
        tags: Tags,
        /// Register that receives the status.
        status: Register,
        /// Status of a success.
        success: i64,
        /// Status of a failure.
        failure: i64,
        /// Whether the status of a success depends on the value and address of the write.
        status_depends: bool,
    },
    /// Reads and writes memory at once.
    Update {
        /// The register that receives a value.
        into: Option<Register>,
        /// The address.
        address: Expr,
        /// Value that is written.
        update: Update,
        /// Width of the value in memory and in the register.
        width: Width,
        /// Tags of the read.
        read_tags: Tags,
        /// Tags of the write.
        write_tags: Tags,
        /// Tags of the read if nothing is written.
        failed_tags: Tags,
        /// Whether it is one event that reads and writes, as in C.
        merged: bool,
        /// Value that `into` receives: the old value, the new one, or whether something was
        /// written.
        result: UpdateResult,
    },
    /// Compares and swaps a pair of adjacent values.
    CompareAndSwapPair {
        /// Registers with the expected values, which receive the old values.
        into: [Register; 2],
        /// The values to write.
        new: [Expr; 2],
        /// The address.
        address: Expr,
        /// Width of a value in memory and in the register.
        width: Width,
        /// Tags of the read.
        read_tags: Tags,
        /// Tags of the write.
        write_tags: Tags,
    },
    /// Orders accesses.
    Fence {
        /// Tags of the event.
        tags: Tags,
    },
    /// An event that names a location without accessing it.
    FenceAt {
        /// The address.
        address: Expr,
        /// Tags of the event.
        tags: Tags,
    },
    /// Jumps to an instruction if the condition is not 0.
    Branch {
        /// The condition.
        condition: Expr,
        /// Target instruction.
        target: usize,
    },
    /// Jumps to an instruction; no dependency results.
    Jump(usize),
    /// Ends the thread.
    End,
    /// Keeps an execution only if the expression is not 0.
    Assume(Expr),
    /// Starts the scope of the branches up to the next `CloseControl`.
    OpenControl,
    /// Ends the scope.
    CloseControl,
    /// Drops the reservation.
    ClearExclusive,
}

/// Value that an update stores in its register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpdateResult {
    /// The value before.
    Old,
    /// The value after.
    New,
    /// 1 if something was written, else 0.
    Written,
}

/// The instructions of a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadCode {
    /// Operations of each instruction; an index past the end ends the thread.
    pub instructions: Vec<Vec<Op>>,
    /// Names of the registers, as conditions spell them.
    pub registers: Vec<String>,
    /// Initial values of the registers.
    pub initial: Vec<i64>,
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
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its address, by which [`Code::locate`] finds it.
    pub address: i64,
    /// Bytes of an element.
    pub bytes: u8,
    /// Whether its type is signed.
    pub signed: bool,
    /// Initial values of the elements; a single one unless it is an array.
    pub initial: Vec<i64>,
    /// Whether it was declared as an array.
    pub is_array: bool,
}

/// First address, and distance between locations, so large that no test computes with such numbers.
pub(crate) const FIRST_ADDRESS: i64 = 0x5a51_0000;
pub(crate) const ADDRESS_STEP: i64 = 0x1_0000;

/// Addresses to which a store exclusive may write.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Reservation {
    /// Only the address of the load exclusive.
    #[default]
    Address,
    /// Any address, since a processor may reserve a larger region; the two accesses are an update
    /// only if their addresses are equal.
    Region,
}

impl Reservation {
    /// Returns what a variant of herd selects, if it concerns reservations.
    pub(crate) fn of_variant(name: &str) -> Option<Self> {
        let is_it = |known: &str| known.eq_ignore_ascii_case(name.trim());
        ["CU", "ConstrainedUnpredictable"].iter().any(|known| is_it(known)).then_some(Self::Region)
    }
}

/// A program in the common language.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The threads.
    pub threads: Vec<ThreadCode>,
    /// The locations.
    pub locations: Vec<Declared>,
    /// Names of the tags that events carry.
    pub tags: Vec<String>,
    /// Addresses to which a store exclusive may write.
    pub reservation: Reservation,
}

impl Code {
    /// Returns the location and element at an address.
    pub fn locate(&self, address: i64) -> Option<(usize, i64)> {
        let index = address.checked_sub(FIRST_ADDRESS)?;
        let (at, offset) = (index.div_euclid(ADDRESS_STEP), index.rem_euclid(ADDRESS_STEP));
        let at = usize::try_from(at).ok().filter(|&at| at < self.locations.len())?;
        Some((at, offset))
    }

    /// Returns the initial value at an address.
    pub(crate) fn initial(&self, address: i64) -> Option<i64> {
        let (at, offset) = self.locate(address)?;
        let location = &self.locations[at];
        let element = offset / i64::from(location.bytes.max(1));
        Some(location.initial.get(element as usize).copied().unwrap_or(0))
    }

    /// Returns the name of an address: `x`, `x+4`.
    pub fn address_name(&self, address: i64) -> Option<String> {
        let (at, offset) = self.locate(address)?;
        let location = &self.locations[at];
        Some(if offset == 0 {
            location.name.clone()
        } else {
            format!("{}+{offset}", location.name)
        })
    }

    /// Returns a tag's bit.
    pub fn tag(&self, name: &str) -> Tags {
        self.tags.iter().position(|tag| tag == name).map_or(0, |at| 1 << at)
    }

    /// Returns the bit of a tag, ignoring case: the kernel's bell file changed from `'acquire` to
    /// `'ACQUIRE`.
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

/// Evaluates a condition of AArch64, given by its encoding.
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
