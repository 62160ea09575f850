//! An answer that grows in parts.
//!
//! Input: pieces, complete parts, retries. Output: deltas whose joined text is the answer, or the corrected text at the
//! end.

use kd_core::{Delta, Failure, FailureKind, Finish, Usage};
use std::time::Duration;

/// The parts of an answer in order, and the text shown so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    parts: Vec<Part>,
    /// The text that a reader of our deltas has.
    shown: String,
    thought: bool,
    retries: u32,
    /// The reason why the program is retrying; unset when text arrives.
    asking_again: Option<Failure>,
}

/// One block of text.
#[derive(Debug)]
struct Part {
    /// Parts of one group belong to one message and are joined without a gap.
    group: String,
    key: String,
    text: String,
    whole: bool,
}

impl Answer {
    /// Returns whether text was shown that may still turn out void.
    pub(super) fn has_halves(&self) -> bool {
        self.parts.iter().any(|p| !p.whole)
    }

    /// Returns whether no part has text.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.iter().all(|p| p.text.trim().is_empty())
    }

    /// Appends to a part; creates it if it is new.
    pub(super) fn grow(&mut self, group: &str, key: &str, piece: &str, out: &mut Vec<Delta>) {
        if piece.is_empty() {
            return;
        }
        match self
            .parts
            .iter_mut()
            .rfind(|p| p.group == group && p.key == key)
        {
            Some(part) => {
                part.text.push_str(piece);
                self.show(String::new(), piece, out);
            }
            None => {
                let gap = match self.parts.last() {
                    Some(last) if last.group == group => "",
                    _ => gap(&self.shown, piece),
                };
                self.parts.push(Part {
                    group: group.into(),
                    key: key.into(),
                    text: piece.into(),
                    whole: false,
                });
                self.show(gap.into(), piece, out);
            }
        }
    }

    /// Sets the final text of a part. Shows the text that was not shown yet.
    pub(super) fn settle(&mut self, group: &str, key: &str, whole: &str, out: &mut Vec<Delta>) {
        match self
            .parts
            .iter()
            .rfind(|p| p.group == group && p.key == key)
        {
            Some(part) => {
                if let Some(rest) = whole.strip_prefix(part.text.as_str()) {
                    let rest = rest.to_owned();
                    self.grow(group, key, &rest, out);
                }
            }
            None => self.grow(group, key, whole, out),
        }
        if let Some(part) = self
            .parts
            .iter_mut()
            .rfind(|p| p.group == group && p.key == key)
        {
            part.text = whole.into();
            part.whole = true;
        }
    }

    /// Sets the final text of the first incomplete part of a group, for protocols that do not say which part it is.
    pub(super) fn settle_next(&mut self, group: &str, whole: &str, out: &mut Vec<Delta>) {
        let key = match self.parts.iter().find(|p| p.group == group && !p.whole) {
            Some(part) => part.key.clone(),
            None => format!("whole {}", self.parts.len()),
        };
        self.settle(group, &key, whole, out);
    }

    /// Marks every part as complete.
    pub(super) fn settle_all(&mut self) {
        self.parts.iter_mut().for_each(|p| p.whole = true);
    }

    /// Handles an end of turn that states the last part. If the text matches ours, every part of that message is
    /// complete.
    pub(super) fn settle_last(&mut self, whole: &str) {
        let Some(last) = self.parts.last() else {
            return;
        };
        if whole.trim().is_empty() || last.text.trim() != whole.trim() {
            return;
        }
        let group = last.group.clone();
        for part in self.parts.iter_mut().filter(|p| p.group == group) {
            part.whole = true;
        }
    }

    /// Drops incomplete parts: they are not part of the answer.
    pub(super) fn drop_halves(&mut self) {
        self.parts.retain(|p| p.whole);
    }

    /// Marks the matching parts as incomplete.
    pub(super) fn unsettle(&mut self, is: impl Fn(&str, &str) -> bool) {
        for part in &mut self.parts {
            if is(&part.group, &part.key) {
                part.whole = false;
            }
        }
    }

    /// Handles a retry: drops incomplete parts and sends the complete ones again, since the delta voids everything.
    /// Counts the attempts if the protocol does not.
    pub(super) fn retry(
        &mut self,
        attempt: Option<u32>,
        after: Duration,
        why: Failure,
        out: &mut Vec<Delta>,
    ) {
        self.retries = attempt.unwrap_or(self.retries + 1);
        self.drop_halves();
        self.thought = false;
        self.asking_again = Some(why.clone());
        out.push(Delta::Retrying {
            attempt: self.retries,
            after,
            failure: why,
        });
        self.shown = self.text();
        if !self.shown.is_empty() {
            out.push(Delta::Text {
                text: self.shown.clone(),
            });
        }
    }

    /// Returns why the program was retrying when its stream ended: that says more than the end itself.
    pub(super) fn asking_again(&self) -> Option<&Failure> {
        self.asking_again.as_ref()
    }

    /// Emits a piece of thinking.
    pub(super) fn think(&mut self, piece: &str, out: &mut Vec<Delta>) {
        if !piece.is_empty() {
            self.thought = true;
            self.asking_again = None;
            out.push(Delta::Thinking { text: piece.into() });
        }
    }

    /// Starts a new block of thinking, streamed or complete.
    pub(super) fn think_anew(&mut self, piece: &str, out: &mut Vec<Delta>) {
        if self.thought {
            out.push(Delta::Thinking {
                text: "\n\n".into(),
            });
        }
        self.thought = false;
        self.think(piece, out);
    }

    /// Keeps only the parts of matching groups.
    pub(super) fn keep(&mut self, is: impl Fn(&str) -> bool) {
        self.parts.retain(|p| is(&p.group));
    }

    /// Returns the groups in order, with their text.
    pub(super) fn groups(&self) -> Vec<(&str, String)> {
        let mut groups: Vec<(&str, String)> = Vec::new();
        for part in &self.parts {
            match groups.last_mut() {
                Some((group, text)) if *group == part.group => text.push_str(&part.text),
                _ => groups.push((&part.group, part.text.clone())),
            }
        }
        groups
    }

    /// Returns the text of all parts, with a blank line between groups.
    pub(super) fn text(&self) -> String {
        let mut all = String::new();
        let mut group = None;
        for part in &self.parts {
            if group.is_some_and(|g| g != &part.group) {
                all.push_str(gap(&all, &part.text));
            }
            all.push_str(&part.text);
            group = Some(&part.group);
        }
        all
    }

    /// Finishes the turn, ignoring incomplete parts; fails if no text is left.
    pub(super) fn finish(
        &mut self,
        who: &str,
        finish: Finish,
        usage: Option<Usage>,
    ) -> Result<Delta, Failure> {
        self.drop_halves();
        let text = self.text();
        self.finish_with(who, text, finish, usage)
    }

    /// Finishes the turn with this text; fails if it is empty.
    pub(super) fn finish_with(
        &mut self,
        who: &str,
        text: String,
        finish: Finish,
        usage: Option<Usage>,
    ) -> Result<Delta, Failure> {
        if text.trim().is_empty() {
            return Err(Failure::new(
                FailureKind::Decode,
                format!("{who} ended its turn without an answer"),
            ));
        }
        Ok(Delta::Finished {
            finish,
            text: (text != self.shown).then_some(text),
            usage,
            choices: Vec::new(),
        })
    }

    fn show(&mut self, mut text: String, piece: &str, out: &mut Vec<Delta>) {
        self.asking_again = None;
        text.push_str(piece);
        self.shown.push_str(&text);
        out.push(Delta::Text { text });
    }
}

/// Returns the separator between two messages of one answer: a blank line, unless there is one already.
fn gap(before: &str, after: &str) -> &'static str {
    if before.is_empty() || before.ends_with("\n\n") || after.starts_with("\n\n") {
        ""
    } else if before.ends_with('\n') || after.starts_with('\n') {
        "\n"
    } else {
        "\n\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(out: &[Delta]) -> String {
        let mut text = String::new();
        for delta in out {
            match delta {
                Delta::Text { text: piece } => text.push_str(piece),
                Delta::Retrying { .. } => text.clear(),
                _ => {}
            }
        }
        text
    }

    #[test]
    fn what_is_shown_is_the_answer_through_a_retry() {
        let (mut answer, mut out) = (Answer::default(), Vec::new());
        answer.settle("m1", "0", "First.", &mut out);
        answer.grow("m2", "0", "Sec", &mut out);
        assert!(answer.has_halves());
        answer.retry(
            None,
            Duration::ZERO,
            Failure::new(FailureKind::Crashed, "cut"),
            &mut out,
        );
        assert_eq!(joined(&out), "First.");
        answer.grow("m3", "0", "Second", &mut out);
        answer.settle_next("m3", "Second.", &mut out);
        answer.settle_next("m3", " Third.", &mut out);
        assert_eq!(joined(&out), "First.\n\nSecond. Third.");
        let end = answer.finish("it", Finish::Stop, None).unwrap();
        assert!(matches!(end, Delta::Finished { text: None, .. }), "{end:?}");
    }

    #[test]
    fn a_part_that_ends_otherwise_than_it_was_shown_is_corrected() {
        let (mut answer, mut out) = (Answer::default(), Vec::new());
        answer.grow("m", "0", "Helo", &mut out);
        answer.settle("m", "0", "Hello", &mut out);
        answer.grow("n", "0", "half", &mut out);
        let end = answer.finish("it", Finish::Stop, None).unwrap();
        assert!(matches!(end, Delta::Finished { text: Some(t), .. } if t == "Hello"));
    }

    #[test]
    fn the_end_confirms_a_part_that_nobody_confirmed_before() {
        let (mut answer, mut out) = (Answer::default(), Vec::new());
        answer.grow("m", "0", "One. ", &mut out);
        answer.grow("m", "1", "Two.\n\n", &mut out);
        answer.settle_last("Three.");
        assert!(answer.has_halves());
        answer.settle_last("Two.");
        let end = answer.finish("it", Finish::Stop, None).unwrap();
        assert!(matches!(end, Delta::Finished { text: None, .. }), "{end:?}");
    }

    #[test]
    fn white_space_is_no_answer() {
        let (mut answer, mut out) = (Answer::default(), Vec::new());
        answer.settle("m", "0", " \n", &mut out);
        let failure = answer.finish("claude", Finish::Stop, None).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Decode);
    }
}
