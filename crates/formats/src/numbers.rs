//! Assigns numbers to names, for formats in which names are numbers.
//!
//! A name that is a number stays. The other names get the smallest free numbers, in the order in
//! which they appear in the history.

use consistory_history::History;
use rustc_hash::FxHashSet;

/// Numbers of a history's keys or sessions.
pub(crate) struct Numbers(Vec<u64>);

impl Numbers {
    pub(crate) fn of_keys(history: &History) -> Self {
        Self::new(history.keys().map(|key| history.key_name(key)).collect())
    }

    pub(crate) fn of_sessions(history: &History) -> Self {
        Self::new(history.sessions().map(|session| history.session_name(session)).collect())
    }

    fn new(names: Vec<&str>) -> Self {
        let own: Vec<Option<u64>> = names.into_iter().map(number).collect();
        let taken: FxHashSet<u64> = own.iter().flatten().copied().collect();
        let mut free = (0..).filter(|number| !taken.contains(number));
        let mut next = || free.next().expect("there are more numbers than names");
        Numbers(own.into_iter().map(|own| own.unwrap_or_else(&mut next)).collect())
    }

    /// Returns the number of a key or session.
    pub(crate) fn get(&self, index: usize) -> u64 {
        self.0[index]
    }
}

/// Parses a number in canonical form, so that `01` and `1` stay different.
fn number(name: &str) -> Option<u64> {
    let number = u64::try_from(name.parse::<i64>().ok()?).ok()?;
    (number.to_string() == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_and_words_fill_the_gaps() {
        let numbers = Numbers::new(vec!["x", "1", "01", "0", "y", "-3", "9999999999999999999"]);
        assert_eq!(numbers.0, [2, 1, 3, 0, 4, 5, 6]);
    }
}
