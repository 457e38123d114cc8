//! Colours and meanings of relations, the same in every picture.
//!
//! The colours can be distinguished by readers with each of the common colour deficiencies, on
//! light and on dark background; a legend names them and every edge is labelled, so colour is never
//! the only distinction.

/// The colours of a relation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Colours {
    /// Colour on a light background, as `#rrggbb`.
    pub light: &'static str,
    /// Colour on a dark background.
    pub dark: &'static str,
}

/// Returns the colours of a relation.
pub fn colours(relation: &str) -> Colours {
    let (light, dark) = match relation {
        "po" | "so" | "ppo" | "poloc" | "init" => ("#5b6570", "#aab4bf"),
        "wr" | "wre" | "rf" | "rfe" | "rfi" => ("#00795f", "#35c9a5"),
        "ww" | "co" | "coe" | "st" | "wst" => ("#8f6400", "#f0b429"),
        "rw" | "fr" | "fre" => ("#c2410c", "#ff8a5c"),
        "rt" => ("#0b62a8", "#6cb8f5"),
        // Lines without a name, and numbers on the lines of a lattice.
        name if !name.starts_with(char::is_alphabetic) => ("#5b6570", "#aab4bf"),
        _ => ("#7a3e9d", "#cf9bef"),
    };
    Colours { light, dark }
}

/// Returns the meaning of a relation, in a few words for the legend.
pub fn meaning(relation: &str) -> &'static str {
    match relation {
        "po" => "program order",
        "so" => "session order",
        "ppo" => "program order that the model keeps",
        "poloc" => "program order on one key",
        "wr" | "rf" => "reads from",
        "wre" | "rfe" => "reads from another session",
        "ww" => "overwritten by",
        "co" => "coherence: overwritten by",
        "rw" | "fr" => "read before it was overwritten",
        "rt" => "ended before the other began",
        "cf" => "forced by a read that knows both writes",
        "hb" => "happens before",
        "addr" => "the address depends on the read",
        "data" => "the value depends on the read",
        "ctrl" => "a branch depends on the read",
        _ => "",
    }
}
