//! Suggestions for misspelt words.

/// Words longer than this are compared by their first characters only.
const MAX_COMPARED_CHARS: usize = 64;

/// Returns at most three candidates whose edit distance is at most a third of the length of `word`,
/// nearest first.
///
/// Upper and lower case are not distinguished.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let max_edits = word.chars().count() / 3;
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .map(|candidate| (edits(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|&(distance, _)| distance <= max_edits)
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(3);
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Renders candidates as a hint, ``did you mean `a` or `b`?``; `None` without candidates.
pub fn did_you_mean(near: &[&str]) -> Option<String> {
    if near.is_empty() {
        return None;
    }
    let quoted: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    Some(format!("did you mean {}?", quoted.join(" or ")))
}

/// Counts the insertions, deletions, substitutions and swaps of neighbours between two words.
fn edits(a: &str, b: &str) -> usize {
    let chars = |word: &str| word.chars().take(MAX_COMPARED_CHARS).collect::<Vec<char>>();
    let (a, b) = (chars(a), chars(b));
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substitute = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substitute.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(rows[i - 2][j - 2] + 1);
            }
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_suggested_and_the_nearest_first() {
        let known = ["read", "write", "rmw", "fence"];
        for (word, expected) in [
            ("raed", &["read"][..]),
            ("wirte", &["write"]),
            ("Write", &["write"]),
            ("fense", &["fence"]),
            ("rwm", &["rmw"]),
            ("enqueue", &[]),
            ("x", &[]),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest("CCV", ["cc", "sc", "ccm", "ccv"]), ["ccv", "cc", "ccm"]);
    }

    #[test]
    fn a_hint_joins_the_candidates() {
        assert_eq!(did_you_mean(&[]), None);
        assert_eq!(did_you_mean(&["a", "b"]).unwrap(), "did you mean `a` or `b`?");
    }
}
