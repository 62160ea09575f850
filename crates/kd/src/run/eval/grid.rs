//! Tables for the terminal.

/// Makes columns as wide as their widest cell. Aligns columns of words to the left, all others to the right.
/// `is_words` gets the index of a column and its row.
pub(super) fn lines(
    rows: &[Vec<String>],
    is_words: impl Fn(usize, &[String]) -> bool,
) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let length = |cell: &String| cell.chars().count();
    let width = |at| rows.iter().filter_map(|row| row.get(at)).map(length).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width.saturating_sub(length(cell)));
            line.push_str(if at == 0 { "  " } else { "   " });
            match is_words(at, row) {
                true => line.extend([cell, pad.as_str()]),
                false => line.extend([pad.as_str(), cell]),
            }
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
