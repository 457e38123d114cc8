//! A sorted set of texts that finds the members that are prefixes of a text.
//!
//! In alphabetical order, every text between a text and an extension of it is also an extension of
//! it. So the prefixes of a text are among its last predecessor and the prefixes of that
//! predecessor, which are stored with each member. A search costs `log n` comparisons and one step
//! per prefix.

/// Texts that can be searched for the prefixes of another text.
#[derive(Clone, Debug)]
pub struct Lexicon<'a> {
    /// The texts in order, each with its number.
    sorted: Vec<(&'a str, usize)>,
    /// For each member, the longest of the earlier members that are prefixes of it.
    shorter: Vec<Option<usize>>,
}

impl<'a> Lexicon<'a> {
    /// Builds the set; texts are numbered in the given order.
    pub fn new(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut sorted: Vec<(&str, usize)> =
            texts.into_iter().enumerate().map(|(i, text)| (text, i)).collect();
        sorted.sort_unstable();
        let mut shorter = Vec::with_capacity(sorted.len());
        for (i, (text, _)) in sorted.iter().enumerate() {
            let mut before = i.checked_sub(1);
            while let Some(at) = before.filter(|&at| !text.starts_with(sorted[at].0)) {
                before = shorter[at];
            }
            shorter.push(before);
        }
        Lexicon { sorted, shorter }
    }

    /// Returns whether no text is a prefix of another one, or equal to it.
    pub fn is_prefix_free(&self) -> bool {
        self.shorter.iter().all(Option::is_none)
    }

    /// Returns the members that are prefixes of a text, longest first: their numbers and texts.
    pub fn beginnings(&self, text: &str) -> impl Iterator<Item = (usize, &'a str)> {
        let last = self.sorted.partition_point(|(known, _)| *known <= text).checked_sub(1);
        std::iter::successors(last, |&at| self.shorter[at])
            .map(|at| self.sorted[at])
            .filter(move |(known, _)| text.starts_with(known))
            .map(|(known, number)| (number, known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginnings_of_every_short_text_are_found() {
        let texts = ["b", "", "ab", "abba", "aab", "ab", "ba"];
        let lexicon = Lexicon::new(texts);
        assert!(!lexicon.is_prefix_free());
        assert!(Lexicon::new(["ab", "b", "aab"]).is_prefix_free());
        for code in 0..4usize.pow(6) {
            let letters = (0..6).map(|i| code >> (2 * i) & 3).take_while(|&letter| letter < 3);
            let text: String = letters.map(|letter| ['a', 'b', 'c'][letter]).collect();
            let mut found: Vec<usize> = lexicon.beginnings(&text).map(|(i, _)| i).collect();
            found.sort_unstable();
            let expected: Vec<usize> =
                (0..texts.len()).filter(|&i| text.starts_with(texts[i])).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
