//! CSV as spreadsheets write it. Comes in: a text. Goes out: its cells, row by row.

/// A row: the line on which it began, from 1, and its cells.
pub(crate) type Row = (usize, Vec<String>);

/// Cells by row. Quotes hold commas, line ends and doubled quotes; blank rows are passed over.
///
/// # Errors
/// A quote that is never closed: the line on which its row began.
pub(crate) fn rows(text: &str) -> Result<Vec<Row>, usize> {
    let text = text.trim_start_matches('\u{feff}');
    let mut rows = Vec::new();
    let (mut row, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let (mut line, mut began) = (1, 1);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\n' {
            line += 1;
        }
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                end(&mut rows, &mut row, &mut cell, began);
                began = line;
            }
            _ => cell.push(c),
        }
    }
    if quoted {
        return Err(began);
    }
    end(&mut rows, &mut row, &mut cell, began);
    Ok(rows)
}

/// Ends a row; a blank one is passed over.
fn end(rows: &mut Vec<Row>, row: &mut Vec<String>, cell: &mut String, began: usize) {
    if cell.ends_with('\r') {
        cell.pop();
    }
    row.push(std::mem::take(cell));
    let row = std::mem::take(row);
    if row.iter().any(|c| !c.trim().is_empty()) {
        rows.push((began, row));
    }
}
