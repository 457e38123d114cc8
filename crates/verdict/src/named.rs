//! Enums whose variants have names, plus one variant for names defined by a user.

/// Defines an enum from rows `Variant = "name",` and its conversions from and to those names.
///
/// The last variant, `Named(Box<str>)`, holds every other name.
macro_rules! named_enum {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)*
        }
        $(#[$other_doc:meta])*
        other
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            $(#[$other_doc])*
            Named(Box<str>),
        }

        impl $name {
            /// Returns the name.
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $text,)*
                    $name::Named(name) => name,
                }
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                match name {
                    $($text => $name::$variant,)*
                    other => $name::Named(other.into()),
                }
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

#[cfg(test)]
mod tests {
    use crate::{Pattern, Relation};

    #[test]
    fn a_name_and_its_variant_go_together() {
        for (pattern, name) in [
            (Pattern::CyclicCo, "CyclicCO"),
            (Pattern::WriteCoInitRead, "WriteCOInitRead"),
            (Pattern::CyclicPoloc, "CyclicPOLoc"),
            (Pattern::Unexplained, "unexplained"),
            (Pattern::Named("Mine".into()), "Mine"),
        ] {
            assert_eq!(Pattern::from(name), pattern);
            assert_eq!(pattern.as_str(), name);
        }
        for name in ["po", "ppo", "poloc", "wr", "wre", "ww", "rw", "cf", "hb", "rt", "final"] {
            assert!(!matches!(Relation::from(name), Relation::Named(_)), "{name}");
            assert_eq!(Relation::from(name).to_string(), name);
        }
        assert_eq!(Relation::from("hb-ppo"), Relation::HbPpo);
        assert_eq!(Relation::from("mine"), Relation::Named("mine".into()));
        assert_eq!(Relation::from("mine").to_string(), "mine");
    }
}
