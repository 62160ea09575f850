//! Limits on what a visit feeds the model: a maximum per answer and one for the whole visit.
//!
//! Every request of a visit repeats the answers before it, so a large answer is paid for many times. Tools whose
//! answers grow with the forum fill a [`Page`] and say where to continue. Answers from another machine are cut by
//! [`Budget`], which every answer of a visit passes.

use kd_core::clean::clean_text;
use serde_json::Value;

/// Maximum characters of one answer, as JSON. A post of [`super::tools::BODY_MAX`] quotes or line breaks fits.
pub const ANSWER_CHARS_MAX: usize = 48_000;
/// Maximum characters of all answers of one visit.
pub const VISIT_CHARS_MAX: usize = 200_000;
/// Characters of an answer still shown once the visit's budget is used up: enough to report the result of a post or a
/// vote.
pub const LEAST_CHARS: usize = 600;
/// Characters of a post in lists; `read_thread` returns the rest.
pub const EXCERPT: usize = 600;

/// An answer page, filled item by item.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    room: usize,
    is_empty: bool,
    is_full: bool,
}

impl Page {
    /// Creates a page with the space that these other fields leave in one answer.
    pub fn beside(answer: &Value) -> Self {
        // The fields that say where to continue are added later.
        let other = size(answer) + 200;
        Self {
            room: ANSWER_CHARS_MAX.saturating_sub(other),
            is_empty: true,
            is_full: false,
        }
    }

    /// Returns a share of the remaining space, for one of several lists.
    #[must_use]
    pub fn part(&self, of: usize) -> Self {
        Self {
            room: self.room / of.max(1),
            is_empty: true,
            is_full: false,
        }
    }

    /// Returns whether an item fits, and counts it if so. The first one always fits, so that readers make progress.
    pub fn takes(&mut self, item: &Value) -> bool {
        let size = size(item) + 1;
        let fits = self.is_empty || size <= self.room;
        self.is_full |= !fits;
        if fits {
            self.room = self.room.saturating_sub(size);
            self.is_empty = false;
        }
        fits
    }

    /// Returns whether an item still fits.
    pub fn has_room(&self, item: &Value) -> bool {
        size(item) < self.room
    }

    /// Returns whether an item was refused.
    pub fn is_full(&self) -> bool {
        self.is_full
    }
}

/// The characters that a visit may still be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            left: VISIT_CHARS_MAX,
        }
    }
}

impl Budget {
    /// Returns a tool's answer as fenced data, followed by a note if it was cut.
    pub fn result(&mut self, tool: &str, answer: &Value, fence: &str) -> String {
        let name: String = clean_text(tool).split_whitespace().collect();
        let text = answer.to_string();
        let most = self.left.clamp(LEAST_CHARS, ANSWER_CHARS_MAX);
        let Some((at, _)) = text.char_indices().nth(most) else {
            self.left = self.left.saturating_sub(text.chars().count());
            return format!("{fence} result of {name}\n{text}\n{fence} end");
        };
        self.left = self.left.saturating_sub(most);
        let advice = match self.left {
            0 => format!(
                "this visit has seen its maximum of {VISIT_CHARS_MAX} characters: act on what you read, or end it"
            ),
            _ => format!(
                "an answer has up to {ANSWER_CHARS_MAX} characters, and a visit {VISIT_CHARS_MAX}: ask for less with `limit`, or read on with `after_post_id` or `offset`"
            ),
        };
        format!(
            "{fence} result of {name}\n{}\n{fence} end\nThe answer was cut after {most} characters; {advice}.",
            &text[..at]
        )
    }
}

/// Returns the beginning of an untrusted text.
pub fn excerpt(text: &str, most: usize) -> String {
    let clean = clean_text(text);
    match clean.char_indices().nth(most) {
        Some((at, _)) => format!("{}… (read_thread shows all)", &clean[..at]),
        None => clean.into_owned(),
    }
}

/// Returns the length of a value as JSON, in characters.
fn size(value: &Value) -> usize {
    value.to_string().chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::BODY_MAX;
    use serde_json::json;

    #[test]
    fn no_answer_and_no_visit_shows_more_than_its_maximum() {
        let fat = json!({"success": true, "x": "wörd \" ".repeat(200_000)});
        let mut budget = Budget::default();
        let (mut all, mut notes) = (0, 0);
        for _ in 0..50 {
            let shown = budget.result("read_thread", &fat, "#f#");
            let chars = shown.chars().count();
            assert!(chars <= ANSWER_CHARS_MAX + 400, "{chars}");
            let (data, note) = shown.rsplit_once("\n#f# end\n").expect("fenced, and cut");
            assert!(data.starts_with("#f# result of read_thread\n"));
            notes += usize::from(note.contains("`after_post_id`"));
            all += chars;
        }
        assert!(all <= VISIT_CHARS_MAX + 50 * (LEAST_CHARS + 400), "{all}");
        assert_eq!(notes, VISIT_CHARS_MAX / ANSWER_CHARS_MAX);
        // The result of an action is reported even then.
        let posted = budget.result("reply_to_thread", &json!({"success": true}), "#f#");
        assert!(posted.ends_with("#f# end"), "{posted}");
    }

    #[test]
    fn the_longest_post_fits_into_a_page() {
        let post = json!({"body": "\"".repeat(BODY_MAX), "quote": "\n".repeat(EXCERPT), "opening": "\n".repeat(EXCERPT)});
        assert!(size(&post) < ANSWER_CHARS_MAX - 2_000);
        let mut page = Page::beside(&json!({"success": true}));
        assert!(page.takes(&post) && !page.takes(&post) && page.takes(&json!(1)));
    }
}
