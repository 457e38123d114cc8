//! Aligned tables for the terminal.

use crate::text::{clean, width};

/// The widest that a cell is shown.
const MAX_CELL_COLUMNS: usize = 200;

/// Aligns a table: the header, a rule, and the rows, two spaces between columns.
///
/// A column whose cells are all numbers, or empty, is aligned to the right. Rows may be shorter or
/// longer than the header. Every line ends in a newline and no line ends in a space.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(header.len());
    let header: Vec<String> = header.iter().map(|cell| clean(cell, MAX_CELL_COLUMNS)).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| clean(cell, MAX_CELL_COLUMNS)).collect())
        .collect();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let widths: Vec<usize> = (0..columns)
        .map(|c| header.get(c).into_iter().chain(cells(c)).map(|s| width(s)).max().unwrap_or(0))
        .collect();
    let right: Vec<bool> = (0..columns)
        .map(|c| {
            cells(c).any(|cell| is_number(cell))
                && cells(c).all(|cell| cell.is_empty() || is_number(cell))
        })
        .collect();

    let mut out = String::new();
    let mut line = |row: &[String]| {
        let mut text = String::new();
        for column in 0..columns {
            let cell = row.get(column).map_or("", String::as_str);
            let padding = " ".repeat(widths[column] - width(cell));
            if column > 0 {
                text.push_str("  ");
            }
            let (before, behind) = if right[column] { (&*padding, "") } else { ("", &*padding) };
            text.push_str(before);
            text.push_str(cell);
            text.push_str(behind);
        }
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(&header);
    line(&widths.iter().map(|&w| "─".repeat(w)).collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
    out
}

/// Returns whether a cell reads as a measurement: digits, maybe a sign, separators and a unit.
fn is_number(cell: &str) -> bool {
    let rest = cell.trim_start_matches(['+', '-', '−', '<', '>', '~', '≤', '≥', ' ']);
    let unit =
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '_'));
    let units = ["", "%", "x", "×", "s", "ms", "µs", "ns", "k", "M", "B", "KiB", "MiB", "GiB"];
    rest.starts_with(|c: char| c.is_ascii_digit()) && units.contains(&unit.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn rows(text: &str) -> Vec<Vec<String>> {
        text.lines().map(|line| line.split('|').map(|cell| cell.trim().into()).collect()).collect()
    }

    #[test]
    fn columns_are_aligned_by_what_they_hold() {
        let shown = table(
            &["model", "verdict", "operations", "time"],
            &rows(
                "cc | ✓ consistent | 1,000,000 | 0.9 s\nsc | ✗ violation | 4 | 12 ms\n日本 | ? undecided",
            ),
        );
        expect![[r#"
            model  verdict       operations   time
            ─────  ────────────  ──────────  ─────
            cc     ✓ consistent   1,000,000  0.9 s
            sc     ✗ violation            4  12 ms
            日本   ? undecided
        "#]]
        .assert_eq(&shown);
    }

    #[test]
    fn hostile_and_missing_cells_keep_the_lines_whole() {
        let shown = table(&["a"], &[vec!["x\ny".into(), "extra".into()], vec![]]);
        assert_eq!(shown, "a\n────  ─────\nx\\ny  extra\n\n");
        assert_eq!(table(&[], &[]), "\n\n");
    }
}
