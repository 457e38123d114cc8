//! Aligned tables for the terminal.

use crate::text::{clean, width};

/// Largest width of a cell, in columns.
const MAX_CELL_COLUMNS: usize = 200;

/// Smallest width of a column of text.
const MIN_TEXT_COLUMNS: usize = 10;

/// Aligns a table: the header, a rule, and the rows, two spaces between columns.
///
/// A column whose cells are all numbers, or empty, is aligned to the right. Rows may be shorter or
/// longer than the header. Every line ends in a newline and no line ends in a space.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    table_within(header, rows, usize::MAX)
}

/// Aligns a table like [`table`], and breaks the cells of its widest columns of text into several
/// lines if it would be wider than `columns`. Columns that still do not fit are written as further
/// tables below, each with the first column.
pub fn table_within(header: &[&str], rows: &[Vec<String>], columns: usize) -> String {
    let most = columns;
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(header.len());
    let header: Vec<String> = header.iter().map(|cell| clean(cell, MAX_CELL_COLUMNS)).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| clean(cell, MAX_CELL_COLUMNS)).collect())
        .collect();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let mut widths: Vec<usize> = (0..columns)
        .map(|c| header.get(c).into_iter().chain(cells(c)).map(|s| width(s)).max().unwrap_or(0))
        .collect();
    let right: Vec<bool> = (0..columns)
        .map(|c| {
            cells(c).any(|cell| is_number(cell))
                && cells(c).all(|cell| cell.is_empty() || is_number(cell))
        })
        .collect();

    while widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1) > most {
        let texts = (0..columns).filter(|&c| !right[c] && widths[c] > MIN_TEXT_COLUMNS);
        let Some(widest) = texts.max_by_key(|&c| widths[c]) else { break };
        widths[widest] -= 1;
    }
    if widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1) > most && columns > 2 {
        let mut used = widths[0];
        let fitting = widths[1..].iter().take_while(|&&width| {
            used += 2 + width;
            used <= most
        });
        let cut = 1 + fitting.count().max(1);
        if cut < columns {
            let of = |columns: &dyn Fn(usize) -> bool| {
                let header: Vec<&str> = (header.iter().enumerate())
                    .filter(|(column, _)| columns(*column))
                    .map(|(_, cell)| cell.as_str())
                    .collect();
                let row = |row: &Vec<String>| {
                    let cells = row.iter().enumerate().filter(|(column, _)| columns(*column));
                    cells.map(|(_, cell)| cell.clone()).collect()
                };
                table_within(&header, &rows.iter().map(row).collect::<Vec<_>>(), most)
            };
            let (left, right) =
                (of(&|column| column < cut), of(&|column| column == 0 || column >= cut));
            return left + "\n" + &right;
        }
    }

    let mut out = String::new();
    let mut line = |row: &[String]| {
        let cells: Vec<Vec<String>> =
            row.iter().zip(&widths).map(|(cell, &width)| broken(cell, width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        for at in 0..height {
            let part = |column: usize| cells.get(column).and_then(|lines| lines.get(at));
            physical_line(&mut out, &widths, &right, part);
        }
    };
    line(&header);
    line(&widths.iter().map(|&w| "─".repeat(w)).collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
    out
}

/// Breaks a cell into lines of at most `columns` columns, at spaces where possible.
fn broken(cell: &str, columns: usize) -> Vec<String> {
    if width(cell) <= columns {
        return vec![cell.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in cell.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && width(line) + 1 + width(word) <= columns {
            line.push(' ');
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(String::new());
        }
        for c in word.chars() {
            let line = lines.last_mut().expect("there is always a line");
            if width(line) + width(c.encode_utf8(&mut [0; 4])) <= columns || line.is_empty() {
                line.push(c);
            } else {
                lines.push(c.to_string());
            }
        }
    }
    lines
}

/// Writes one line of a table.
fn physical_line<'a>(
    out: &mut String,
    widths: &[usize],
    right: &[bool],
    part: impl Fn(usize) -> Option<&'a String>,
) {
    let mut text = String::new();
    for column in 0..widths.len() {
        let cell = part(column).map_or("", String::as_str);
        let padding = " ".repeat(widths[column].saturating_sub(width(cell)));
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
}

/// Checks whether a cell looks like a measurement: digits, maybe a sign, separators and a unit.
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
    fn a_table_keeps_to_the_width_of_the_terminal() {
        let shown = table_within(
            &["model", "verdict", "pattern", "time"],
            &rows(
                "rmo | undecided | it has 3045 operations, this way of deciding takes at most 200 | 79 ms",
            ),
            50,
        );
        expect![[r#"
            model  verdict    pattern                     time
            ─────  ─────────  ─────────────────────────  ─────
            rmo    undecided  it has 3045 operations,    79 ms
                              this way of deciding
                              takes at most 200
        "#]]
        .assert_eq(&shown);
        let shown = table_within(&["a"], &rows("abcdefghijklmnopqrstuvwxyz"), 5);
        assert_eq!(shown, "a\n──────────\nabcdefghij\nklmnopqrst\nuvwxyz\n");
    }

    #[test]
    fn hostile_and_missing_cells_keep_the_lines_whole() {
        let shown = table(&["a"], &[vec!["x\ny".into(), "extra".into()], vec![]]);
        assert_eq!(shown, "a\n────  ─────\nx\\ny  extra\n\n");
        assert_eq!(table(&[], &[]), "\n\n");
    }

    #[test]
    fn columns_that_do_not_fit_stand_below() {
        let shown = table_within(&["model", "aa", "bb", "cc"], &rows("x|1|2|3\ny|44|5|6"), 15);
        expect![[r#"
            model  aa  bb
            ─────  ──  ──
            x       1   2
            y      44   5

            model  cc
            ─────  ──
            x       3
            y       6
        "#]]
        .assert_eq(&shown);
    }
}
