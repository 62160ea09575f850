//! Parses CSV as spreadsheets write it (RFC 4180). Input: text. Output: its cells by row, with line numbers.

use csv::{ReaderBuilder, StringRecord};

/// A row: the line on which it begins, from 1, and its cells.
pub type Row = (usize, Vec<String>);

/// A sentinel row at the end. An unclosed quote swallows it.
const END: &str = "\n\u{0}end\u{0}\n";

/// Returns the cells by row. Quotes count only at the beginning of a cell, where they hold commas, line ends and doubled
/// quotes; rows without content are left out.
///
/// # Errors
///
/// A quote that is never closed: the line on which its row begins.
pub fn rows(text: &str) -> Result<Vec<Row>, usize> {
    let mut rows = all_rows(text)?;
    rows.retain(|(_, row)| !is_empty(row));
    Ok(rows)
}

/// Returns whether no cell of a row has content.
pub(crate) fn is_empty(row: &[String]) -> bool {
    row.iter().all(|cell| cell.trim().is_empty())
}

/// Like [`rows`], with rows of empty cells; empty lines are left out.
pub(crate) fn all_rows(text: &str) -> Result<Vec<Row>, usize> {
    let text = format!("{}{END}", text.trim_start_matches('\u{feff}'));
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for record in reader.records() {
        // The text is valid UTF-8 and rows may differ in length, so no other error is possible.
        let Ok(record) = record else { break };
        let line = line_of(&text, &record);
        if record.len() == 1 && record.get(0) == Some(END.trim()) {
            return Ok(rows);
        }
        if record.iter().any(|cell| cell.contains(END)) {
            return Err(line);
        }
        rows.push((line, record.iter().map(str::to_owned).collect()));
    }
    Ok(rows)
}

/// Returns the line on which a record begins. The reader's position may precede blank lines.
fn line_of(text: &str, record: &StringRecord) -> usize {
    record.position().map_or(1, |position| {
        let from = usize::try_from(position.byte()).unwrap_or(0);
        let rest = text.get(from..).unwrap_or_default();
        let blank = rest.len() - rest.trim_start_matches(['\r', '\n']).len();
        let skipped = rest[..blank].matches('\n').count();
        usize::try_from(position.line()).unwrap_or(1) + skipped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, String)>, usize> {
        rows(text).map(|rows| {
            rows.into_iter()
                .map(|(line, row)| (line, row.join("|")))
                .collect()
        })
    }

    #[test]
    fn cells_and_lines_are_as_a_spreadsheet_shows_them() {
        for (text, expected) in [
            ("a,b\n1,2\n", vec![(1, "a|b"), (2, "1|2")]),
            ("\u{feff}a,b\r\n1,2", vec![(1, "a|b"), (2, "1|2")]),
            ("a\n\n\n,\nb\n", vec![(1, "a"), (5, "b")]),
            ("\n\na\n", vec![(3, "a")]),
            ("a,\"b,c\"\n", vec![(1, "a|b,c")]),
            (
                "\"two\nlines\",x\ny,z\n",
                vec![(1, "two\nlines|x"), (3, "y|z")],
            ),
            ("\"say \"\"hi\"\"\"\n", vec![(1, "say \"hi\"")]),
            // Inch marks are not quotes.
            (
                "voter,choice\nann,3.5\" disk\nbob,5.25\" disk\n",
                vec![
                    (1, "voter|choice"),
                    (2, "ann|3.5\" disk"),
                    (3, "bob|5.25\" disk"),
                ],
            ),
            ("", vec![]),
        ] {
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(line, row)| (line, row.to_owned()))
                .collect();
            assert_eq!(read(text), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn an_open_quote_is_told_with_its_line() {
        for (text, line) in [("\"a", 1), ("a\n\"b\nc\n", 2), ("a,b\n1,\"2\n3,4\n", 2)] {
            assert_eq!(read(text), Err(line), "{text:?}");
        }
    }
}
