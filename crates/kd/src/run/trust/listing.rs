//! The list above a consent prompt: what it is about, limited and wrapped for the screen.
//!
//! Input: blocks of rows whose text comes from the folder, and the screen size. Output: lines. Only `kd` starts a line:
//! every row is wrapped here, never by the terminal, and continuation lines are marked. The rows that the answer
//! allows come last, the most dangerous ones next to the prompt, with a total.

use crate::render::wrap::width;
use kd_app::words::count;
use kd_app::words::shown_text;

/// Maximum rows shown on a screen of a purely informational block.
const CONTEXT_ROWS_MAX: usize = 5;
/// Maximum rows shown on a screen of a block of files.
const FILE_ROWS_MAX: usize = 8;
/// Maximum lines of one row on a screen; a longer one is cut in the middle.
const ROW_LINES_MAX: usize = 8;
/// Columns before the text of a row.
const INDENT: usize = 14;
/// On a screen narrower than this, the indent is smaller.
const NARROW: usize = 40;
const NARROW_INDENT: usize = 4;
/// Advice for reading a shortened list in full.
const READ_ALL: &str = "`kd trust </dev/null` prints all";

/// The screen on which a list is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Screen {
    /// Columns of the terminal; `None` if lines are not wrapped.
    pub(super) columns: Option<usize>,
    /// Rows of the terminal, if a prompt follows the list; `None` if the list is printed in full.
    pub(super) rows: Option<usize>,
}

/// A list and the total below it.
#[derive(Debug, Default)]
pub(super) struct Listing {
    context: Vec<Block>,
    asked: Vec<Block>,
}

/// Rows under one heading.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) heading: String,
    pub(super) rows: Vec<Row>,
    /// A line below the rows.
    pub(super) after: Option<String>,
    /// Maximum rows on a screen; `None` shows all.
    rows_max: Option<usize>,
    /// This block's part of the total.
    total: Option<String>,
}

/// One row. `head` is ours, `text` is untrusted.
#[derive(Debug, Default)]
pub(super) struct Row {
    head: String,
    text: String,
}

impl Row {
    /// Creates a row of `text` after a short trusted head.
    pub(super) fn new(head: impl Into<String>, text: &str) -> Self {
        Self {
            head: format!("  {}", head.into()),
            text: shown_text(text),
        }
    }

    fn lines(&self, screen: Screen) -> Vec<String> {
        let Some(columns) = screen.columns else {
            return vec![format!("{}{}", self.head, self.text)];
        };
        let mut lines = fit(&self.head, &self.text, columns);
        if screen.rows.is_some() && lines.len() > ROW_LINES_MAX {
            let last = lines.split_off(lines.len() - 2);
            let left_out = lines.len() + 3 - ROW_LINES_MAX;
            lines.truncate(ROW_LINES_MAX - 3);
            let note = format!(
                "[{} left out here; {READ_ALL}]",
                count(left_out as u64, "line")
            );
            lines.push(format!("  {note}"));
            lines.extend(last);
        }
        lines
    }
}

impl Block {
    /// Creates a block that is shown in full.
    pub(super) fn new(heading: impl Into<String>) -> Self {
        Self {
            heading: heading.into(),
            ..Self::default()
        }
    }

    /// Creates a block of files; a screen shows the first of them.
    pub(super) fn of_files(heading: impl Into<String>) -> Self {
        Self {
            rows_max: Some(FILE_ROWS_MAX),
            ..Self::new(heading)
        }
    }

    /// Sets the rows; `None` if there are none.
    pub(super) fn of_rows(self, rows: Vec<Row>) -> Option<Self> {
        (!rows.is_empty()).then_some(Self { rows, ..self })
    }

    /// Sets this block's part of the total.
    #[must_use]
    pub(super) fn with_total(self, total: String) -> Self {
        Self {
            total: Some(total),
            ..self
        }
    }

    fn lines(&self, screen: Screen) -> Vec<String> {
        let mut lines = match screen.columns {
            Some(columns) => fit("", &self.heading, columns),
            None => vec![self.heading.clone()],
        };
        lines.push(String::new());
        let most = screen.rows.and(self.rows_max).unwrap_or(usize::MAX);
        // A single omitted row is shown instead of a line saying that it is omitted.
        let shown = match self.rows.len() {
            all if all <= most.saturating_add(1) => all,
            _ => most,
        };
        for row in &self.rows[..shown] {
            lines.extend(row.lines(screen));
        }
        if let left @ 1.. = self.rows.len() - shown {
            lines.push(format!("  and {left} more; {READ_ALL}"));
        }
        if let Some(after) = &self.after {
            if !self.rows.is_empty() {
                lines.push(String::new());
            }
            lines.push(after.clone());
        }
        lines.push(String::new());
        lines
    }
}

impl Listing {
    /// Adds a block that the answer does not affect.
    pub(super) fn inform(&mut self, block: Block) {
        self.context.push(Block {
            rows_max: Some(CONTEXT_ROWS_MAX),
            ..block
        });
    }

    /// Adds a block that a yes allows. The last one added is next to the prompt.
    pub(super) fn ask_about(&mut self, block: Block) {
        self.asked.push(block);
    }

    /// Returns all lines.
    pub(super) fn lines(&self, screen: Screen) -> Vec<String> {
        let blocks = self.context.iter().chain(&self.asked);
        let mut lines: Vec<String> = blocks.flat_map(|block| block.lines(screen)).collect();
        let totals = self.asked.iter().filter_map(|block| block.total.as_deref());
        let totals: Vec<&str> = totals.collect();
        let total = format!("total: {}", totals.join("; "));
        let total = match screen.columns {
            Some(columns) => fit("", &total, columns),
            None => vec![total],
        };
        // The prompt and the answer take a line.
        let all = lines.len() + total.len() + 1;
        if let Some(rows) = screen.rows.filter(|rows| all > *rows) {
            let note = format!(
                "this list has {all} lines, the screen {rows}: scroll up to read it; {READ_ALL}"
            );
            lines.extend(fit("", &note, screen.columns.unwrap_or(usize::MAX)));
        }
        if !totals.is_empty() {
            lines.extend(total);
        }
        lines
    }
}

/// Wraps a text to fewer than `columns` columns: the first line after `head`, the others after a mark.
pub(super) fn fit(head: &str, text: &str, columns: usize) -> Vec<String> {
    let indent = match columns {
        0..NARROW => NARROW_INDENT,
        _ => INDENT,
    };
    let mark = format!("{:>indent$}", "| ");
    let mut lines = Vec::new();
    let mut line = head.to_owned();
    let mut rest = text;
    loop {
        let room = columns.saturating_sub(columns_max(&line) + 1);
        let part = part(rest, room);
        line.push_str(part);
        rest = &rest[part.len()..];
        lines.push(line);
        if rest.is_empty() {
            return lines;
        }
        line = mark.clone();
    }
}

/// Returns the beginning of a text that fits, up to a space if one is near the end.
fn part(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let fits = text.char_indices().find(|(_, c)| {
        used += char_columns_max(*c);
        used > columns
    });
    let Some((end, _)) = fits else {
        return text;
    };
    let end = end.max(text.chars().next().map_or(0, char::len_utf8));
    match text[..end].rfind(' ') {
        Some(space) if space > 0 && end - space <= columns / 3 => &text[..=space],
        _ => &text[..end],
    }
}

/// Returns the maximum columns of a text on any terminal.
fn columns_max(text: &str) -> usize {
    text.chars().map(char_columns_max).sum()
}

/// Returns the maximum columns of a character. Terminals disagree about everything but ASCII: combining marks take 0, 1
/// or 2 columns, letters of many scripts 1 or 2.
fn char_columns_max(c: char) -> usize {
    match c {
        ' '..='~' => 1,
        c => width(c.encode_utf8(&mut [0; 4])).max(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Screen = Screen {
        columns: Some(80),
        rows: Some(24),
    };

    fn hostile() -> Listing {
        let mut listing = Listing::default();
        let mut texts = Block::new("texts from here:");
        texts
            .rows
            .extend((0..40).map(|n| Row::new("", &format!("roles/reviewer-{n}.md"))));
        listing.inform(texts);
        let mut settings =
            Block::new("shop wants settings:").with_total("1 setting: 1 runs".into());
        let value = format!(
            "agents.h.command = [\"sh\",\"-c\",\"evil\"]  (.kd/config.json:1){}",
            " ".repeat(300)
        );
        settings
            .rows
            .push(Row::new(format!("{:<10}", "runs"), &value));
        listing.ask_about(settings);
        listing
    }

    #[test]
    fn what_is_allowed_is_on_the_screen_with_the_question() {
        let lines = hostile().lines(SCREEN);
        assert!(lines.len() < 24, "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("evil")), "{lines:#?}");
        assert!(
            lines.iter().any(|line| line.contains("and 35 more")),
            "{lines:#?}"
        );
        assert_eq!(lines.last().unwrap(), "total: 1 setting: 1 runs");
        let whole = hostile().lines(Screen::default());
        assert!(
            whole.iter().any(|line| line.contains("reviewer-39")),
            "{whole:#?}"
        );
    }

    #[test]
    fn a_list_that_is_too_long_ends_with_the_last_rows_and_the_total() {
        let mut listing = hostile();
        let mut settings = Block::new("and these:").with_total("60 settings: 60 runs".into());
        settings
            .rows
            .extend((0..60).map(|n| Row::new("runs      ", &format!("agents.a{n}.command"))));
        listing.ask_about(settings);
        let lines = listing.lines(SCREEN);
        let seen = &lines[lines.len() - 23..];
        assert!(
            seen.iter().any(|line| line.contains("agents.a59.command")),
            "{seen:#?}"
        );
        assert!(
            seen.iter().any(|line| line.contains("scroll up")),
            "{seen:#?}"
        );
        assert_eq!(
            seen.last().unwrap(),
            "total: 1 setting: 1 runs; 60 settings: 60 runs"
        );
    }

    #[test]
    fn no_text_begins_a_line_whatever_its_characters_and_the_terminal() {
        let all = (' '..=char::MAX).filter(|c| !c.is_ascii());
        for c in all.chain(['\n', '\t', '\r', '\u{1b}']) {
            // Escaped characters are ASCII afterwards.
            let worst: usize = shown_text(&c.to_string())
                .chars()
                .map(|c| if c.is_ascii() { 1 } else { 2 })
                .sum();
            assert!(columns_max(&shown_text(&c.to_string())) >= worst, "{c:?}");
        }
        for c in [
            '\u{605}', '\u{8e2}', '\u{9be}', '\u{dcf}', '\u{1b35}', '\u{302e}', '\u{a8fa}', 'ж',
            '漢', ' ', '\n', '\u{301}',
        ] {
            for columns in [1, 10, 20, 39, 40, 80, 200] {
                let text = format!("evil{}kd: checked", c.to_string().repeat(300));
                let lines = Row::new("runs      ", &text).lines(Screen {
                    columns: Some(columns),
                    rows: None,
                });
                for (at, line) in lines.iter().enumerate() {
                    // Below this, only a mark and a character fit.
                    let most = columns.max(16);
                    assert!(columns_max(line) < most, "{c:?} {columns}: {line:?}");
                    let mark = if columns < NARROW {
                        "  | "
                    } else {
                        "            | "
                    };
                    assert!(
                        at == 0 || line.starts_with(mark),
                        "{c:?} {columns}: {line:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn of_a_long_row_both_ends_are_shown_and_the_rest_counted() {
        let row = Row::new("runs      ", &format!("begin {} end", "x".repeat(100_000)));
        let lines = row.lines(SCREEN);
        assert_eq!(lines.len(), ROW_LINES_MAX, "{lines:#?}");
        assert!(
            lines[0].contains("begin") && lines[ROW_LINES_MAX - 1].contains("end"),
            "{lines:#?}"
        );
        assert!(lines[5].contains("lines left out"), "{lines:#?}");
        let whole = row.lines(Screen {
            columns: Some(80),
            rows: None,
        });
        assert!(whole.len() > 1000);
    }
}
