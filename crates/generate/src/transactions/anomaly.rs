//! Anomalies to plant: each is the smallest history that shows it, on its own keys.

use std::fmt;
use std::str::FromStr;

use super::workload::{ClientOrder, Store};

/// A class of anomalies, by the name that Adya, Jepsen or the textbooks use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Anomaly {
    /// G0, a dirty write: two transactions overwrite each other, in both orders.
    DirtyWrite,
    /// G1a: a read of an aborted transaction's write.
    AbortedRead,
    /// G1b: a read of a value that its transaction overwrote.
    IntermediateRead,
    /// G1c: two transactions read each other's writes.
    CircularRead,
    /// A transaction sees one of another's writes and not the other (read skew, A5A).
    FracturedRead,
    /// A session reads a value and, in its next transaction, an older one.
    NonMonotonicRead,
    /// A transaction sees an effect and not its cause.
    CausalViolation,
    /// G-single through a version order: a transaction sees a write and misses an earlier one that
    /// only the order of a third key's versions puts before it.
    ReadSkew,
    /// Two transactions read one version and both overwrite it.
    LostUpdate,
    /// Two readers see two writes in opposite orders.
    LongFork,
    /// Write skew: two transactions each read a version that the other overwrites (G2-item, A5B).
    WriteSkew,
    /// Two readers see the elements of a list in opposite orders.
    IncompatibleOrder,
}

/// A name that no anomaly has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no anomaly is called {name:?}; the anomalies are {}", names())]
pub struct UnknownAnomaly {
    /// The name.
    pub name: String,
}

/// Lists the names of all anomalies.
fn names() -> String {
    Anomaly::ALL.map(Anomaly::as_str).join(", ")
}

impl Anomaly {
    /// Every anomaly, from those that no level allows to the one that only serializability forbids.
    pub const ALL: [Anomaly; 12] = [
        Anomaly::DirtyWrite,
        Anomaly::AbortedRead,
        Anomaly::IntermediateRead,
        Anomaly::CircularRead,
        Anomaly::IncompatibleOrder,
        Anomaly::FracturedRead,
        Anomaly::NonMonotonicRead,
        Anomaly::CausalViolation,
        Anomaly::ReadSkew,
        Anomaly::LostUpdate,
        Anomaly::LongFork,
        Anomaly::WriteSkew,
    ];

    /// Returns the anomaly's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Anomaly::DirtyWrite => "g0",
            Anomaly::AbortedRead => "g1a",
            Anomaly::IntermediateRead => "g1b",
            Anomaly::CircularRead => "g1c",
            Anomaly::FracturedRead => "fractured-read",
            Anomaly::NonMonotonicRead => "non-monotonic-read",
            Anomaly::CausalViolation => "causal-violation",
            Anomaly::ReadSkew => "read-skew",
            Anomaly::LostUpdate => "lost-update",
            Anomaly::LongFork => "long-fork",
            Anomaly::WriteSkew => "write-skew",
            Anomaly::IncompatibleOrder => "incompatible-order",
        }
    }

    /// Returns the number of sessions that the anomaly takes.
    pub fn sessions(self) -> u32 {
        self.text().split('|').count() as u32
    }

    /// Checks whether only lists can show the anomaly.
    pub fn needs_lists(self) -> bool {
        self == Anomaly::IncompatibleOrder
    }

    /// Checks whether a level allows the anomaly under an order of the clients.
    pub fn is_allowed_by(self, level: Store, order: ClientOrder) -> bool {
        match self {
            Anomaly::DirtyWrite
            | Anomaly::AbortedRead
            | Anomaly::IntermediateRead
            | Anomaly::CircularRead
            | Anomaly::IncompatibleOrder => false,
            Anomaly::FracturedRead => level == Store::Rc,
            // Without an order of the sessions the two reads may happen in the other order.
            Anomaly::NonMonotonicRead if order == ClientOrder::None => true,
            Anomaly::NonMonotonicRead | Anomaly::CausalViolation => {
                matches!(level, Store::Rc | Store::Ra)
            }
            Anomaly::ReadSkew => matches!(level, Store::Rc | Store::Ra | Store::Tcc),
            Anomaly::LostUpdate => matches!(level, Store::Rc | Store::Ra | Store::Tcc | Store::Pc),
            Anomaly::LongFork => matches!(level, Store::Rc | Store::Ra | Store::Tcc | Store::Psi),
            Anomaly::WriteSkew => level != Store::Ser,
        }
    }

    /// Returns the anomaly's history: sessions separated by `|`, transactions by `;`, with `!`
    /// after an aborted transaction. A read of a register returns a number; a read of a list
    /// returns all values up to it in [`version_order`], or the values between dots.
    fn text(self) -> &'static str {
        match self {
            Anomaly::DirtyWrite => "w(x,1) w(y,1) | w(x,2) w(y,2) | r(x,2) r(y,1) | r(y,1) r(x,2)",
            Anomaly::AbortedRead => "w(x,1) ! | r(x,1)",
            Anomaly::IntermediateRead => "w(x,1) w(x,2) | r(x,1)",
            Anomaly::CircularRead => "w(x,1) r(y,1) | w(y,1) r(x,1)",
            Anomaly::FracturedRead => "w(x,1) w(y,1) | r(y,0) r(x,1)",
            Anomaly::NonMonotonicRead => "w(x,1) | r(x,1) ; r(x,0)",
            Anomaly::CausalViolation => "w(x,1) | r(x,1) w(y,1) | r(y,1) r(x,0)",
            Anomaly::ReadSkew => {
                "w(x,1) w(z,1) | w(z,2) w(y,1) | r(x,0) r(y,1) | r(z,1) w(u,1) ; r(u,1) r(z,2)"
            }
            Anomaly::LostUpdate => "r(x,0) w(x,1) | r(x,0) w(x,2)",
            Anomaly::LongFork => "w(x,1) | w(y,1) | r(x,1) r(y,0) | r(x,0) r(y,1)",
            Anomaly::WriteSkew => "r(x,0) w(y,1) | r(y,0) w(x,1)",
            Anomaly::IncompatibleOrder => "w(x,1) | w(x,2) | r(x,1.2) | r(x,2.1)",
        }
    }

    /// Returns the values of a key in version order, which is numeric order in all cases but one.
    fn version_order(self, key: char) -> &'static [u32] {
        match (self, key) {
            (Anomaly::DirtyWrite, 'y') => &[2, 1],
            _ => &[1, 2],
        }
    }

    /// Returns the sessions of the anomaly, each a sequence of transactions.
    pub(super) fn sketch(self) -> Vec<Vec<SketchTransaction>> {
        let transaction = |text: &str| SketchTransaction {
            is_aborted: text.contains('!'),
            operations: text
                .split_whitespace()
                .filter(|&word| word != "!")
                .map(|word| self.operation(word))
                .collect(),
        };
        let session = |text: &str| text.split(';').map(transaction).collect();
        self.text().split('|').map(session).collect()
    }

    fn operation(self, word: &str) -> SketchOperation {
        let inner = word.trim_end_matches(')');
        let (name, arguments) = inner.split_once('(').expect("an operation has arguments");
        let (key, value) = arguments.split_once(',').expect("an operation has a key and a value");
        let key_name = key.chars().next().expect("a key has a name");
        let key = "xyzu".find(key_name).expect("the keys are x, y, z and u") as u32;
        let numbers: Vec<u32> =
            value.split('.').map(|n| n.parse().expect("values are numbers")).collect();
        let value = numbers[numbers.len() - 1];
        if name == "w" {
            return SketchOperation { key, value, read: None };
        }
        let list = if numbers.len() > 1 {
            numbers
        } else {
            let order = self.version_order(key_name);
            let length = order.iter().position(|&v| v == value).map_or(0, |at| at + 1);
            order[..length].to_vec()
        };
        SketchOperation { key, value, read: Some(list) }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Anomaly {
    type Err = UnknownAnomaly;

    fn from_str(name: &str) -> Result<Self, UnknownAnomaly> {
        Anomaly::ALL
            .into_iter()
            .find(|anomaly| anomaly.as_str().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownAnomaly { name: name.into() })
    }
}

/// A transaction of an anomaly.
pub(super) struct SketchTransaction {
    pub(super) is_aborted: bool,
    pub(super) operations: Vec<SketchOperation>,
}

/// An operation of an anomaly, on a key that is numbered within it.
pub(super) struct SketchOperation {
    pub(super) key: u32,
    /// The value of a register that is written or read, or the element that is appended.
    pub(super) value: u32,
    /// The list that a read returns; nothing for a write.
    pub(super) read: Option<Vec<u32>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anomalies_are_found_by_name() {
        for anomaly in Anomaly::ALL {
            assert_eq!(anomaly.to_string().parse(), Ok(anomaly));
        }
        let error = "g2".parse::<Anomaly>().unwrap_err().to_string();
        assert!(error.contains("g0, g1a") && error.contains("write-skew"), "{error}");
    }

    #[test]
    fn sketches_have_the_lists_that_the_version_orders_ask_for() {
        let sketch = Anomaly::DirtyWrite.sketch();
        let lists: Vec<_> =
            sketch[2][0].operations.iter().map(|op| op.read.clone().unwrap()).collect();
        assert_eq!(lists, [vec![1, 2], vec![2, 1]]);
        assert!(Anomaly::AbortedRead.sketch()[0][0].is_aborted);
        assert_eq!(Anomaly::ReadSkew.sketch()[3].len(), 2);
        assert_eq!(Anomaly::ReadSkew.sessions(), 4);
    }

    #[test]
    fn weaker_levels_allow_whatever_stronger_ones_allow() {
        let weaker: [(Store, Store); 7] = [
            (Store::Ser, Store::Si),
            (Store::Si, Store::Pc),
            (Store::Si, Store::Psi),
            (Store::Pc, Store::Tcc),
            (Store::Psi, Store::Tcc),
            (Store::Tcc, Store::Ra),
            (Store::Ra, Store::Rc),
        ];
        for anomaly in Anomaly::ALL {
            for order in ClientOrder::ALL {
                for (strong, weak) in weaker {
                    let allows = |level| anomaly.is_allowed_by(level, order);
                    assert!(!allows(strong) || allows(weak), "{anomaly} {strong} {weak}");
                }
            }
        }
    }
}
