//! The input editor: multi-line text with a cursor, undo and history. Takes edits; provides the text and its rows for a
//! width. Independent of keys and terminal.

mod folds;

use crate::text::wrap;
use folds::Folds;
use kd_app::words::count;
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
    undone: Vec<State>,
    done: Vec<State>,
    /// Whether the last edit was a single typed letter: the next one joins its undo step.
    typing: bool,
    killed: (String, Folds),
    sent: Vec<String>,
    /// The sent message shown, and the draft it replaced.
    recall: Option<(usize, String, Folds)>,
    /// Long pasted texts, shown as a few words.
    folds: Folds,
    /// The draft that was put aside.
    aside: Option<State>,
    /// Whether the text may name files in words that were not typed for this message: pasted, recalled, or put here.
    foreign: bool,
}

/// The state that an undo restores.
#[derive(Clone, Debug, Default)]
struct State {
    text: String,
    cursor: usize,
    folds: Folds,
    foreign: bool,
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
        self.folds.unfolded(&self.text)
    }

    /// Returns the text if it was typed, without what is folded in it; empty if other words in it could name files.
    pub fn typed(&self) -> &str {
        if self.foreign { "" } else { &self.text }
    }

    /// Returns whether the whole text was typed.
    pub fn is_typed(&self) -> bool {
        !self.foreign && *self.whole() == self.text
    }

    /// Puts a text back that could not be sent.
    pub fn give_back(&mut self, text: &str, is_typed: bool) {
        self.set(text);
        self.foreign = !is_typed;
    }

    /// Words that were not typed are in the text now. Only an `@` names a file.
    fn note_foreign(&mut self, text: &str) {
        self.foreign |= text.contains('@');
    }

    /// Inserts a pasted text at the cursor, as one edit. A long one is shown as `[pasted 500 lines]`.
    pub fn paste(&mut self, text: &str) {
        let lines = count(text.lines().count() as u64, "line");
        self.paste_as(text, &format!("[pasted {lines}]"));
    }

    /// Inserts a text at the cursor, as one edit. A long one is shown as these words.
    pub fn paste_as(&mut self, text: &str, words: &str) {
        let lines = text.lines().count();
        let room = TEXT_MAX.saturating_sub(self.whole().len());
        let fits = text.len() <= room && self.text.len() + words.len() <= TEXT_MAX;
        if lines <= PASTED_LINES || !fits {
            self.insert(text);
            return self.note_foreign(text);
        }
        let at = self.cursor;
        self.insert(words);
        self.folds.add(at..at + words.len(), text);
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
        // Nothing is left of other words.
        self.foreign &= !self.text.is_empty();
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
        self.folds.edited(&(self.cursor..self.cursor), text.len());
        self.cursor = self.settle(self.cursor + text.len());
    }

    /// Replaces the whole text, as one edit.
    pub fn set(&mut self, text: &str) {
        self.remember();
        self.foreign &= !text.is_empty();
        self.note_foreign(text);
        self.text = text.to_owned();
        self.folds = Folds::default();
        self.cursor = self.text.len();
    }

    /// Replaces a range, as one edit, and puts the cursor after it.
    pub fn replace(&mut self, range: Range<usize>, with: &str) {
        self.remember();
        self.text.replace_range(range.clone(), with);
        self.folds.edited(&range, with.len());
        self.cursor = self.settle(range.start + with.len());
    }

    /// Takes the text for sending and adds it to the history.
    pub fn take(&mut self) -> String {
        let text = self.whole().into_owned();
        self.text.clear();
        self.folds = Folds::default();
        self.foreign = false;
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

    /// Puts the text aside, and takes back what was put aside before. Returns whether something was taken back.
    pub fn stash(&mut self) -> bool {
        let before = self.aside.take();
        let takes = before.is_some();
        let is_empty = self.text.is_empty();
        if takes || !is_empty {
            self.remember();
            let now = self.restore(before.unwrap_or_default());
            self.aside = (!is_empty).then_some(now);
            self.recall = None;
        }
        takes
    }

    /// Returns the text to save: the whole text, and the draft that was put aside.
    pub fn draft(&self) -> Cow<'_, str> {
        let text = self.whole();
        let Some(aside) = &self.aside else {
            return text;
        };
        let aside = aside.folds.unfolded(&aside.text);
        match text.is_empty() {
            true => aside,
            false => Cow::Owned(format!("{text}\n\n{aside}")),
        }
    }

    /// Undoes the last edit.
    pub fn undo(&mut self) {
        if let Some(state) = self.done.pop() {
            let now = self.restore(state);
            self.undone.push(now);
        }
    }

    /// Redoes the last undone edit.
    pub fn redo(&mut self) {
        if let Some(state) = self.undone.pop() {
            let now = self.restore(state);
            self.done.push(now);
        }
    }

    /// Restores a state, and returns the present one.
    fn restore(&mut self, state: State) -> State {
        self.typing = false;
        State {
            text: std::mem::replace(&mut self.text, state.text),
            cursor: std::mem::replace(&mut self.cursor, state.cursor),
            folds: std::mem::replace(&mut self.folds, state.folds),
            foreign: std::mem::replace(&mut self.foreign, state.foreign),
        }
    }

    /// Moves the cursor.
    pub fn go(&mut self, to: Move) {
        let target = self.target(to);
        self.cursor = self.beside(target);
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
        let first = self.folds.around(range.start);
        range.start = first.map_or(range.start, |fold| fold.start);
        let last = self.folds.around(range.end);
        range.end = last.map_or(range.end, |fold| fold.end);
        self.remember();
        if !matches!(to, Move::Left | Move::Right) {
            let text = self.text[range.clone()].to_owned();
            self.killed = (text, self.folds.within(&range));
        }
        self.text.drain(range.clone());
        self.folds.edited(&range, 0);
        self.cursor = self.settle(range.start);
    }

    /// Inserts the last deleted text.
    pub fn yank(&mut self) {
        let killed = std::mem::take(&mut self.killed);
        let (at, before) = (self.cursor, self.text.len());
        self.insert(&killed.0);
        self.note_foreign(&killed.0);
        // A text that does not fit is cut.
        if self.text.len() == before + killed.0.len() {
            self.folds.extend(&killed.1, at);
        }
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
        self.cursor = self.beside(cursor);
        self.aim = Some(aim);
        self.typing = false;
        true
    }

    /// Shows an older (-1) or newer (1) sent message. If something was typed, only messages starting with it. Returns
    /// false if there is none.
    pub fn recall(&mut self, step: i32) -> bool {
        let (from, written, folds) = match &self.recall {
            Some((at, written, folds)) => (*at, written.clone(), folds.clone()),
            None => (self.sent.len(), self.text.clone(), self.folds.clone()),
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
                let text = self.sent[i].clone();
                self.note_foreign(&text);
                self.text = text;
                self.folds = Folds::default();
                self.recall = Some((i, written, folds));
            }
            None if step > 0 && self.recall.is_some() => {
                (self.text, self.folds) = (written, folds);
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

    /// Returns a place that is not inside of a folded text: its end in the direction of a movement there.
    fn beside(&self, target: usize) -> usize {
        match self.folds.around(target) {
            Some(fold) if target < self.cursor => fold.start,
            Some(fold) => fold.end,
            None => target,
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
        self.done.push(State {
            text: self.text.clone(),
            cursor: self.cursor,
            folds: self.folds.clone(),
            foreign: self.foreign,
        });
        if self.done.len() > UNDO_MAX {
            self.done.remove(0);
        }
        self.undone.clear();
        self.typing = false;
        self.aim = None;
    }
}

#[cfg(test)]
mod tests;
