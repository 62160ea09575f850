//! A short report in one form: text for the terminal, or Markdown, from which the page is made.

use crate::render::clean;
use kd_core::markdown::escape_line;
use std::fmt::Write;

/// A report: a title, then lines and tables.
pub(super) struct Sheet {
    pub(super) title: String,
    pub(super) parts: Vec<Part>,
}

/// A part of a report.
pub(super) enum Part {
    /// A paragraph.
    Line(String),
    /// A table: its head, and rows. The first column has words, the others have numbers, except columns of words.
    Table(Vec<Column>, Vec<Vec<String>>),
}

/// A column of a table.
pub(super) struct Column {
    pub(super) head: &'static str,
    pub(super) words: bool,
}

pub(super) fn words(head: &'static str) -> Column {
    Column { head, words: true }
}

pub(super) fn number(head: &'static str) -> Column {
    Column { head, words: false }
}

impl Sheet {
    /// Formats it for the terminal.
    pub(super) fn text(&self) -> String {
        let mut out = format!("{}\n", clean::line(&self.title));
        for part in &self.parts {
            out.push('\n');
            match part {
                Part::Line(line) => {
                    let _ = writeln!(out, "{}", clean::line(line));
                }
                Part::Table(columns, rows) => aligned(columns, rows, &mut out),
            }
        }
        out
    }

    /// Formats it as Markdown.
    pub(super) fn markdown(&self) -> String {
        let cell = |text: &str| escape_line(&clean::line(text)).replace('|', "\\|");
        let mut out = format!("# {}\n", cell(&self.title));
        for part in &self.parts {
            out.push('\n');
            match part {
                Part::Line(line) => {
                    let _ = writeln!(out, "{}", cell(line));
                }
                Part::Table(columns, rows) => {
                    let heads: Vec<&str> = columns.iter().map(|c| c.head).collect();
                    let rules = columns.iter().map(|c| if c.words { "---" } else { "---:" });
                    let _ = writeln!(out, "| {} |", heads.join(" | "));
                    let _ = writeln!(out, "|{}|", rules.collect::<Vec<_>>().join("|"));
                    for row in rows {
                        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
                        let _ = writeln!(out, "| {} |", cells.join(" | "));
                    }
                }
            }
        }
        out
    }
}

/// Aligns the columns of a table.
fn aligned(columns: &[Column], rows: &[Vec<String>], out: &mut String) {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|text| clean::line(text)).collect())
        .collect();
    let length = |text: &str| text.chars().count();
    let widths: Vec<usize> = (columns.iter().enumerate())
        .map(|(at, column)| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            let widest = cells.map(|text| length(text)).max().unwrap_or(0);
            widest.max(length(column.head))
        })
        .collect();
    let heads = columns.iter().map(|c| c.head.to_owned()).collect();
    for row in std::iter::once(&heads).chain(&rows) {
        let mut line = String::new();
        for ((text, column), width) in row.iter().zip(columns).zip(&widths) {
            let pad = " ".repeat(width.saturating_sub(length(text)));
            line.push_str(if line.is_empty() { "  " } else { "   " });
            match column.words {
                true => line.push_str(&format!("{text}{pad}")),
                false => line.push_str(&format!("{pad}{text}")),
            }
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_members_are_called_forms_no_markup() {
        let sheet = Sheet {
            title: "A title".into(),
            parts: vec![
                Part::Line("a *line*\u{1b}[2J".into()),
                Part::Table(
                    vec![words("way"), number("right")],
                    vec![
                        vec!["a|b".into(), "9".into()],
                        vec!["long name".into(), "10".into()],
                    ],
                ),
            ],
        };
        assert_eq!(
            sheet.text(),
            "A title\n\na *line*\n\n  way         right\n  a|b             9\n  long name      10\n"
        );
        assert_eq!(
            sheet.markdown(),
            "# A title\n\na \\*line\\*\n\n| way | right |\n|---|---:|\n| a\\|b | 9 |\n| long name | 10 |\n"
        );
    }
}
