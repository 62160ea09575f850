//! The input editor: multi-line text with a cursor, undo and history. Takes edits; provides the text and its rows for a
//! width. Independent of keys and terminal.

use crate::text::wrap;
use std::borrow::Cow;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// Maximum undo states.
const UNDO_MAX: usize = 200;
/// Maximum sent messages remembered.
const SENT_MAX: usize = 500;
/// Maximum bytes of an input.
const TEXT_MAX: usize = 4 << 20;
/// A pasted text of more lines is shown folded.
const PASTED_LINES: usize = 8;

/// A text being edited.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    text: String,
    /// A byte offset, always at a grapheme boundary.
    cursor: usize,
    /// The target column of vertical moves.
    aim: Option<usize>,
    undone: Vec<(String, usize)>,
    done: Vec<(String, usize)>,
    /// Whether the last edit was a single typed letter: the next one joins its undo step.
    typing: bool,
    killed: String,
    sent: Vec<String>,
    /// The sent message shown, and the draft it replaced.
    recall: Option<(usize, String)>,
    /// The words that stand in the text for long pasted texts, and these texts.
    folded: Vec<(String, String)>,
}

/// A cursor movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Move {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    Start,
    End,
}

impl Editor {
    /// Creates an editor with this history, oldest first.
    pub fn new(sent: Vec<String>) -> Self {
        Self {
            sent,
            ..Self::default()
        }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text with the pasted texts that are shown folded.
    pub fn whole(&self) -> Cow<'_, str> {
        let folds = self.folds();
        if folds.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let mut whole = String::new();
        let mut from = 0;
        for (range, pasted) in folds {
            whole.push_str(&self.text[from..range.start]);
            whole.push_str(pasted);
            from = range.end;
        }
        whole.push_str(&self.text[from..]);
        Cow::Owned(whole)
    }

    /// Returns the ranges of folded texts, in order, and these texts.
    fn folds(&self) -> Vec<(Range<usize>, &str)> {
        let mut folds: Vec<(Range<usize>, &str)> = Vec::new();
        for (words, pasted) in &self.folded {
            let places = self.text.match_indices(words.as_str());
            folds.extend(places.map(|(at, _)| (at..at + words.len(), pasted.as_str())));
        }
        folds.sort_by_key(|(range, _)| range.start);
        folds
    }

    /// Returns the folded text that a place is inside of.
    fn fold_at(&self, at: usize) -> Option<Range<usize>> {
        let folds = self.folds().into_iter().map(|(range, _)| range);
        folds
            .into_iter()
            .find(|range| range.start < at && at < range.end)
    }

    /// Inserts a pasted text at the cursor, as one edit. A long one is shown as `[pasted 500 lines]`.
    pub fn paste(&mut self, text: &str) {
        let lines = text.lines().count();
        let room = TEXT_MAX.saturating_sub(self.whole().len());
        if lines <= PASTED_LINES || text.len() > room {
            return self.insert(text);
        }
        let words = format!("[pasted {lines} lines]");
        let more = (2..).map(|n| format!("[pasted {lines} lines, {n}]"));
        let words = std::iter::once(words)
            .chain(more)
            .find(|words| !self.folded.iter().any(|(used, _)| used == words));
        let Some(words) = words else {
            return self.insert(text);
        };
        self.folded.push((words.clone(), text.to_owned()));
        self.insert(&words);
    }

    /// Returns the sent messages, oldest first.
    pub fn sent(&self) -> &[String] {
        &self.sent
    }

    /// Returns the cursor's byte offset.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Inserts text at the cursor, as one edit.
    pub fn insert(&mut self, text: &str) {
        let room = TEXT_MAX.saturating_sub(self.text.len());
        let text = &text[..text.floor_char_boundary(room)];
        if text.is_empty() {
            return;
        }
        let letter = text.chars().nth(1).is_none() && text != "\n" && text != " ";
        if !(letter && self.typing) {
            self.remember();
        }
        self.typing = letter;
        self.text.insert_str(self.cursor, text);
        self.cursor = self.settle(self.cursor + text.len());
    }

    /// Replaces the whole text, as one edit.
    pub fn set(&mut self, text: &str) {
        self.remember();
        self.text = text.to_owned();
        self.cursor = self.text.len();
    }

    /// Replaces a range, as one edit, and puts the cursor after it.
    pub fn replace(&mut self, range: Range<usize>, with: &str) {
        self.remember();
        self.text.replace_range(range.clone(), with);
        self.cursor = self.settle(range.start + with.len());
    }

    /// Takes the text for sending and adds it to the history.
    pub fn take(&mut self) -> String {
        let text = self.whole().into_owned();
        self.text.clear();
        self.folded.clear();
        if self.sent.last() != Some(&text) && !text.trim().is_empty() {
            self.sent.push(text.clone());
            if self.sent.len() > SENT_MAX {
                self.sent.remove(0);
            }
        }
        self.cursor = 0;
        self.done.clear();
        self.undone.clear();
        self.recall = None;
        self.typing = false;
        self.aim = None;
        text
    }

    /// Clears the text; undo restores it.
    pub fn clear(&mut self) {
        if !self.text.is_empty() {
            self.set("");
        }
        self.recall = None;
    }

    /// Undoes the last edit.
    pub fn undo(&mut self) {
        if let Some(state) = self.done.pop() {
            let now = std::mem::replace(&mut self.text, state.0);
            self.undone.push((now, self.cursor));
            self.cursor = state.1;
            self.typing = false;
        }
    }

    /// Redoes the last undone edit.
    pub fn redo(&mut self) {
        if let Some(state) = self.undone.pop() {
            let now = std::mem::replace(&mut self.text, state.0);
            self.done.push((now, self.cursor));
            self.cursor = state.1;
            self.typing = false;
        }
    }

    /// Moves the cursor.
    pub fn go(&mut self, to: Move) {
        let target = self.target(to);
        self.cursor = match self.fold_at(target) {
            Some(fold) if target < self.cursor => fold.start,
            Some(fold) => fold.end,
            None => target,
        };
        self.typing = false;
        self.aim = None;
    }

    /// Deletes from the cursor to the target of a movement. [`Editor::yank`] restores deleted words and lines.
    pub fn delete(&mut self, to: Move) {
        let target = self.target(to);
        let mut range = target.min(self.cursor)..target.max(self.cursor);
        if range.is_empty() {
            return;
        }
        // A folded text goes as a whole.
        range.start = self
            .fold_at(range.start)
            .map_or(range.start, |fold| fold.start);
        range.end = self.fold_at(range.end).map_or(range.end, |fold| fold.end);
        self.remember();
        if !matches!(to, Move::Left | Move::Right) {
            self.killed = self.text[range.clone()].to_owned();
        }
        self.text.drain(range.clone());
        self.cursor = self.settle(range.start);
    }

    /// Inserts the last deleted text.
    pub fn yank(&mut self) {
        let killed = std::mem::take(&mut self.killed);
        self.insert(&killed);
        self.killed = killed;
    }

    /// Moves up (-1) or down (1) by one row. Returns false at the edge.
    pub fn vertical(&mut self, rows: i32, columns: usize) -> bool {
        let laid = self.rows(columns);
        let at = self.row_of(&laid, self.cursor);
        let Some(target) = at
            .checked_add_signed(rows as isize)
            .and_then(|i| laid.get(i))
        else {
            return false;
        };
        let aim = self
            .aim
            .unwrap_or_else(|| wrap::width(&self.text[laid[at].start..self.cursor]));
        let mut column = 0;
        let mut cursor = target.start;
        for g in self.text[target.clone()].graphemes(true) {
            column += wrap::width(g);
            if column > aim {
                break;
            }
            cursor += g.len();
        }
        // The position after a soft break belongs to the next row.
        if cursor == target.end && self.soft(target) && cursor > target.start {
            cursor = self.before(cursor);
        }
        self.cursor = cursor;
        self.aim = Some(aim);
        self.typing = false;
        true
    }

    /// Shows an older (-1) or newer (1) sent message. If something was typed, only messages starting with it. Returns
    /// false if there is none.
    pub fn recall(&mut self, step: i32) -> bool {
        let (from, written) = match &self.recall {
            Some((at, written)) => (*at, written.clone()),
            None => (self.sent.len(), self.text.clone()),
        };
        let fits = |i: &usize| {
            let sent = &self.sent[*i];
            *sent != self.text && sent.starts_with(&written)
        };
        let found = if step < 0 {
            (0..from).rev().find(fits)
        } else {
            (from + 1..self.sent.len()).find(fits)
        };
        match found {
            Some(i) => {
                self.text = self.sent[i].clone();
                self.recall = Some((i, written));
            }
            None if step > 0 && self.recall.is_some() => {
                self.text = written;
                self.recall = None;
            }
            None => return false,
        }
        self.cursor = self.text.len();
        self.typing = false;
        true
    }

    /// Returns the rows of the text at a width, as byte ranges without line breaks. Breaks between words where
    /// possible.
    pub fn rows(&self, columns: usize) -> Vec<Range<usize>> {
        let columns = columns.max(2);
        let mut rows = Vec::new();
        let mut start = 0;
        for line in self.text.split('\n') {
            let end = start + line.len();
            let (mut from, mut used, mut rest) = (start, 0, None);
            for (at, g) in line.grapheme_indices(true) {
                let at = start + at;
                let width = wrap::width(g);
                if used + width > columns && at > from {
                    let cut = rest.filter(|r| *r > from).unwrap_or(at);
                    rows.push(from..cut);
                    from = cut;
                    used = wrap::width(&self.text[from..at]);
                    rest = None;
                }
                used += width;
                if g.chars().all(char::is_whitespace) {
                    rest = Some(at + g.len());
                }
            }
            rows.push(from..end);
            start = end + 1;
        }
        rows
    }

    /// Returns row and column of the cursor within [`Editor::rows`].
    pub fn place(&self, rows: &[Range<usize>]) -> (usize, usize) {
        let row = self.row_of(rows, self.cursor);
        let start = rows.get(row).map_or(0, |r| r.start);
        (row, wrap::width(&self.text[start..self.cursor]))
    }

    fn row_of(&self, rows: &[Range<usize>], at: usize) -> usize {
        rows.iter().rposition(|r| r.start <= at).unwrap_or_default()
    }

    /// Returns whether a row continues in the next one without a line break.
    fn soft(&self, row: &Range<usize>) -> bool {
        row.end < self.text.len() && !self.text[row.end..].starts_with('\n')
    }

    fn target(&self, to: Move) -> usize {
        let (before, after) = self.text.split_at(self.cursor);
        match to {
            Move::Left => self.before(self.cursor),
            Move::Right => self.cursor + after.graphemes(true).next().map_or(0, str::len),
            Move::WordLeft => before
                .unicode_word_indices()
                .next_back()
                .map_or(0, |(at, _)| at),
            Move::WordRight => after
                .unicode_word_indices()
                .next()
                .map_or(self.text.len(), |(at, word)| self.cursor + at + word.len()),
            Move::LineStart => before.rfind('\n').map_or(0, |at| at + 1),
            Move::LineEnd => after
                .find('\n')
                .map_or(self.text.len(), |at| self.cursor + at),
            Move::Start => 0,
            Move::End => self.text.len(),
        }
    }

    fn before(&self, at: usize) -> usize {
        self.text[..at]
            .graphemes(true)
            .next_back()
            .map_or(0, |g| at - g.len())
    }

    /// Returns the nearest grapheme boundary at or after an offset: an edit may have joined graphemes.
    fn settle(&self, at: usize) -> usize {
        let line = self.text[..at].rfind('\n').map_or(0, |n| n + 1);
        let mut end = line;
        for g in self.text[line..].graphemes(true) {
            if end >= at {
                break;
            }
            end += g.len();
        }
        end.max(at)
    }

    fn remember(&mut self) {
        self.done.push((self.text.clone(), self.cursor));
        if self.done.len() > UNDO_MAX {
            self.done.remove(0);
        }
        self.undone.clear();
        self.typing = false;
        self.aim = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn typed_letters_are_undone_by_words_and_a_paste_at_once() {
        let mut editor = Editor::default();
        for c in "two words".chars() {
            editor.insert(&c.to_string());
        }
        editor.insert("\na paste\nof three lines");
        editor.undo();
        assert_eq!(editor.text(), "two words");
        editor.undo();
        assert_eq!(editor.text(), "two ");
        editor.redo();
        assert_eq!(editor.text(), "two words");
        editor.clear();
        editor.undo();
        assert_eq!(editor.text(), "two words", "what Escape cleared comes back");
    }

    #[test]
    fn a_cursor_never_stands_inside_of_what_is_seen_as_one() {
        let mut editor = with("a👩‍👩‍👧é");
        editor.go(Move::Left);
        editor.go(Move::Left);
        assert_eq!(editor.cursor(), 1);
        editor.delete(Move::Right);
        assert_eq!(editor.text(), "aé");
        let mut joined = with("e");
        joined.insert("\u{301}");
        joined.delete(Move::Left);
        assert_eq!(joined.text(), "");
    }

    #[test]
    fn rows_break_between_words_and_hold_everything() {
        let editor = with("the quick brown fox\nabcdefghijklmnop\n\n日本語日本語");
        let rows: Vec<&str> = editor
            .rows(10)
            .into_iter()
            .map(|r| &editor.text()[r])
            .collect();
        assert_eq!(
            rows,
            [
                "the quick ",
                "brown fox",
                "abcdefghij",
                "klmnop",
                "",
                "日本語日本",
                "語"
            ]
        );
    }

    #[test]
    fn up_and_down_keep_the_column() {
        let mut editor = with("a long line\nx\nanother one");
        assert!(editor.vertical(-1, 40));
        assert_eq!(editor.cursor(), "a long line\nx".len());
        assert!(editor.vertical(-1, 40));
        assert_eq!(editor.cursor(), "a long line".len());
        assert!(!editor.vertical(-1, 40), "the edge is told");
        assert!(editor.vertical(2, 40));
        assert_eq!(editor.cursor(), editor.text().len());
    }

    #[test]
    fn what_was_sent_comes_back_and_what_was_written_is_kept() {
        let mut editor = Editor::new(vec!["first".into(), "second".into(), "first again".into()]);
        editor.insert("fi");
        assert!(editor.recall(-1));
        assert_eq!(editor.text(), "first again");
        assert!(editor.recall(-1));
        assert_eq!(editor.text(), "first", "`second` does not begin with `fi`");
        assert!(!editor.recall(-1));
        assert!(editor.recall(1));
        assert!(editor.recall(1));
        assert_eq!(editor.text(), "fi");
    }

    #[test]
    fn words_and_lines_are_killed_and_yanked() {
        let mut editor = with("one two three");
        editor.delete(Move::WordLeft);
        assert_eq!(editor.text(), "one two ");
        editor.go(Move::LineStart);
        editor.yank();
        assert_eq!(editor.text(), "threeone two ");
        editor.delete(Move::LineEnd);
        assert_eq!(editor.text(), "three");
    }

    proptest::proptest! {
        #[test]
        fn no_edit_breaks_it(
            steps in proptest::collection::vec((0u8..18, "[a👩‍👧é日 \n\u{301}]{0,4}"), 0..60),
            columns in 1usize..20,
        ) {
            let mut editor = Editor::new(vec!["sent".into(), "日本\nx".into()]);
            for (what, text) in steps {
                match what {
                    0..=4 => editor.insert(&text),
                    5 => editor.delete(Move::Left),
                    6 => editor.delete(Move::Right),
                    7 => editor.delete(Move::WordLeft),
                    8 => editor.delete(Move::LineEnd),
                    9 => editor.undo(),
                    10 => editor.redo(),
                    11 => editor.yank(),
                    12 => { editor.vertical(-1, columns); }
                    13 => { editor.vertical(1, columns); }
                    14 => editor.go(Move::WordLeft),
                    15 => editor.go(Move::WordRight),
                    16 => { editor.recall(-1); }
                    _ => { editor.recall(1); }
                }
                let rows = editor.rows(columns);
                let (row, _) = editor.place(&rows);
                proptest::prop_assert!(row < rows.len());
                proptest::prop_assert!(editor.text().is_char_boundary(editor.cursor()));
                let all: String = rows.iter().map(|r| &editor.text()[r.clone()]).collect();
                proptest::prop_assert_eq!(all, editor.text().replace('\n', ""));
            }
        }
    }
}
