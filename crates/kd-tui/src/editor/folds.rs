//! Long pasted texts that the input shows as a few words: the position of the words in the input, and the text. A
//! fold is identified by its position, so the same words typed by hand are ordinary text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The folded texts of an input, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Folds(Vec<(Range<usize>, Arc<str>)>);

impl Folds {
    /// Adds a text whose words take this range, which is outside of all others.
    pub(super) fn add(&mut self, range: Range<usize>, text: &str) {
        let at = self
            .0
            .partition_point(|(other, _)| other.start < range.start);
        self.0.insert(at, (range, text.into()));
    }

    /// Follows an edit that replaced a range by `len` bytes: texts whose words were changed are gone.
    pub(super) fn edited(&mut self, edit: &Range<usize>, len: usize) {
        self.0
            .retain(|(range, _)| range.end <= edit.start || edit.end <= range.start);
        for (range, _) in &mut self.0 {
            if edit.end <= range.start {
                let moved = |at: usize| at - edit.len() + len;
                *range = moved(range.start)..moved(range.end);
            }
        }
    }

    /// Returns the range whose inside a place is in.
    pub(super) fn around(&self, at: usize) -> Option<Range<usize>> {
        let mut ranges = self.0.iter().map(|(range, _)| range);
        ranges
            .find(|range| range.start < at && at < range.end)
            .cloned()
    }

    /// Returns those inside a range, as seen from its start.
    pub(super) fn within(&self, part: &Range<usize>) -> Self {
        let inside = self
            .0
            .iter()
            .filter(|(range, _)| part.start <= range.start && range.end <= part.end);
        let moved = inside.map(|(range, text)| {
            let range = range.start - part.start..range.end - part.start;
            (range, text.clone())
        });
        Self(moved.collect())
    }

    /// Adds others, whose places count from `at`.
    pub(super) fn extend(&mut self, others: &Self, at: usize) {
        for (range, text) in &others.0 {
            self.add(range.start + at..range.end + at, text);
        }
    }

    /// Returns the input with the folded texts in place of their words.
    pub(super) fn unfolded<'a>(&self, input: &'a str) -> Cow<'a, str> {
        if self.0.is_empty() {
            return Cow::Borrowed(input);
        }
        let mut whole = String::new();
        let mut from = 0;
        for (range, text) in &self.0 {
            whole.push_str(&input[from..range.start]);
            whole.push_str(text);
            from = range.end;
        }
        whole.push_str(&input[from..]);
        Cow::Owned(whole)
    }
}
