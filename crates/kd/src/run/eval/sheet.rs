//! A short report in one form: text for the terminal, or Markdown, from which the page is made.

use super::grid;
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
                Part::Table(columns, rows) => {
                    for line in aligned(columns, rows) {
                        let _ = writeln!(out, "{line}");
                    }
                }
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

/// Formats a table, its head first.
fn aligned(columns: &[Column], rows: &[Vec<String>]) -> Vec<String> {
    let clean = |row: &Vec<String>| row.iter().map(|text| clean::line(text)).collect();
    let head = columns
        .iter()
        .map(|column| column.head.to_owned())
        .collect();
    let rows: Vec<Vec<String>> = std::iter::once(head)
        .chain(rows.iter().map(clean))
        .collect();
    grid::lines(&rows, |at, _| {
        columns.get(at).is_some_and(|column| column.words)
    })
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
