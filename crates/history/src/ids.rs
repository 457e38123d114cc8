//! Ids: `u32` newtypes that index the tables of a [`History`](crate::History).

/// Defines a `u32` newtype that indexes a table, with `new`, `index` and conversions.
#[macro_export]
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Builds the id of the table's entry `index`.
            #[inline]
            pub fn new(index: usize) -> Self {
                debug_assert!(u32::try_from(index).is_ok());
                Self(index as u32)
            }

            /// Returns the index into the table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<u32> for $name {
            #[inline]
            fn from(number: u32) -> Self {
                Self(number)
            }
        }

        impl From<$name> for u32 {
            #[inline]
            fn from(id: $name) -> u32 {
                id.0
            }
        }
    };
}

id_type! {
    /// An operation, or the initial write of a key.
    ///
    /// The operations of a session have consecutive ids, in program order; the ids after the last
    /// operation's are the initial writes, one per key, in the order of the keys.
    OpId
}
id_type! {
    /// A session: a thread, process or client.
    SessionId
}
id_type! {
    /// A key: a variable, address or register.
    KeyId
}
id_type! {
    /// An interned value.
    ValueId
}
id_type! {
    /// A call of an object's method.
    CallId
}
id_type! {
    /// A transaction that the history brackets.
    TxnId
}
