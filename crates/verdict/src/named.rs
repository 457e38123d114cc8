//! Enums whose variants have names, with one variant for names that a user gives.

/// Implements conversions between an enum and the names of its variants.
///
/// Expects a constant table of the variants that have a name of their own, and a variant
/// `Named(Box<str>)` for every other name.
macro_rules! named_enum {
    ($name:ident, $known:ident) => {
        impl $name {
            /// Returns the name.
            pub fn as_str(&self) -> &str {
                match self {
                    $name::Named(name) => name,
                    known => {
                        let found = $known.iter().find(|(other, _)| other == known);
                        found.map_or("", |(_, name)| name)
                    }
                }
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                let known = $known.iter().find(|(_, known)| *known == name);
                known.map_or_else(|| $name::Named(name.into()), |(known, _)| known.clone())
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                $name::from(&*name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, name: &str) -> bool {
                self.as_str() == name
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, name: &&str) -> bool {
                self.as_str() == *name
            }
        }
    };
}

pub(crate) use named_enum;
