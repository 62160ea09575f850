//! Replaces the labels in a member's words ("Answer A") by the content that this member saw under them. Labels are
//! shuffled for each reader, so they mean nothing to other readers.

use super::answer::AnswerKind;
use super::blind;
use super::board::Board;
use super::plan::{Plan, STATED};

/// Words before a label that can only mean an answer in the prompt.
const CUES: &[&str] = &[
    "answer",
    "answers",
    "response",
    "responses",
    "candidate",
    "candidates",
    "proposal",
    "proposals",
    "antwort",
    "antworten",
    "réponse",
    "réponses",
    "respuesta",
    "respuestas",
    "答案",
    "回答",
];
/// Words before a letter that may also mean something in the question or in an answer.
const UNSURE: &[&str] = &["option", "options", "choice", "choices", "label", "选项"];
/// Words before a bare letter that is likely a label.
const BEFORE: &[&str] = &[
    "than", "for", "over", "prefer", "prefers", "choose", "chose", "pick", "picked", "follow",
    "and", "or", "vs", "versus", "while", "whereas", "but", "against", "both", "neither", "that",
    "because", "since", "although", "by",
];
/// Words after a bare letter that is likely a label.
const AFTER: &[&str] = &[
    "is", "was", "has", "gives", "gave", "does", "fails", "lacks", "wins", "makes", "offers",
    "says", "needs", "names", "explains", "covers", "ignores", "and", "or",
];
/// The note on labels whose meaning is not certain.
const NOTE: &str = " (quoted labels: as this member saw the answers)";

/// The meaning of the labels that one member saw.
pub(super) struct Labels<'a> {
    /// The meaning of each label, in order.
    pub(super) names: Vec<String>,
    /// The question and its options. If they use letters, a letter may be theirs.
    pub(super) asked: &'a str,
}

/// A word and its place.
struct Word<'t> {
    start: usize,
    end: usize,
    text: &'t str,
}

impl<'a> Labels<'a> {
    /// Replaces labels of answers by their authors in a text for the conversation. `items` are indexes of members.
    pub(super) fn of_authors(plan: &'a Plan, items: &[usize], text: &str) -> String {
        if plan.writing < STATED || items.is_empty() {
            return text.to_owned();
        }
        let seats = items.iter().filter_map(|seat| plan.seats.get(*seat));
        let labels = Self {
            names: seats
                .map(|seat| format!("the answer of {}", seat.name()))
                .collect(),
            asked: &plan.question,
        };
        labels.named_if_certain(text)
    }

    /// Returns the labels of candidates. `None` for records that keep them.
    pub(super) fn of_candidates(plan: &'a Plan, board: &'a Board, items: &[usize]) -> Option<Self> {
        let candidates = items.iter().filter_map(|at| board.candidates.get(*at));
        let name = |name: &String| match plan.answers {
            AnswerKind::Text => name.clone(),
            _ => format!("“{name}”"),
        };
        (plan.writing >= STATED).then(|| Self {
            names: candidates.map(|c| name(&c.name)).collect(),
            asked: &board.question,
        })
    }

    /// Replaces every label whose meaning is certain; quotes the others, with a note.
    pub(super) fn named(&self, text: &str) -> String {
        let lettered = self.is_lettered();
        let words = words(text);
        let mut out = String::with_capacity(text.len());
        let (mut from, mut at, mut quoted) = (0, 0, false);
        while at < words.len() {
            let cue = cue(words[at].text, CUES);
            if let Some(cue_len) = cue
                && let Some(list) = self.list(text, &words, at)
            {
                let known = !lettered && list.iter().all(|w| self.place(words[*w].text).is_some());
                let cue_from = words[at].end - cue_len;
                match known {
                    true => {
                        let start = self.article(&words, at).unwrap_or(cue_from).max(from);
                        let starts = is_sentence_start(text, start);
                        out.push_str(&text[from..start]);
                        for (nth, w) in list.iter().enumerate() {
                            if nth > 0 {
                                let gap = &text[words[list[nth - 1]].end..words[*w].start];
                                let gap =
                                    gap.replace(['(', ')', '*', '"', '“', '”', '`', '\''], "");
                                out.push_str(&gap);
                            }
                            let name = self.place(words[*w].text).map(|p| self.names[p].as_str());
                            match nth == 0 && starts {
                                true => out.push_str(&capital(name.unwrap_or_default())),
                                false => out.push_str(name.unwrap_or_default()),
                            }
                        }
                    }
                    false => {
                        out.push_str(&text[from..words[list[0]].start]);
                        for (nth, w) in list.iter().enumerate() {
                            if nth > 0 {
                                out.push_str(&text[words[list[nth - 1]].end..words[*w].start]);
                            }
                            out.push_str(&quote(text, &words[*w]));
                        }
                        quoted = true;
                    }
                }
                let last = list.last().copied().unwrap_or(at);
                from = words[last].end;
                if known && opens(text, &words, at) {
                    from += closing(&text[from..]);
                }
                at = last + 1;
                continue;
            }
            if self.is_unsure(text, &words, at, lettered) {
                out.push_str(&text[from..words[at].start]);
                out.push_str(&quote(text, &words[at]));
                from = words[at].end;
                quoted = true;
            }
            at += 1;
        }
        out.push_str(&text[from..]);
        if quoted && !out.ends_with(NOTE) {
            out.push_str(NOTE);
        }
        out
    }

    /// Replaces the labels of a long text if all are certain: its other letters may be its own.
    pub(super) fn named_if_certain(&self, text: &str) -> String {
        let named = self.named(text);
        match named.ends_with(NOTE) {
            true => text.to_owned(),
            false => named,
        }
    }

    /// Returns whether the question itself marks something with letters.
    fn is_lettered(&self) -> bool {
        let words = words(self.asked);
        words.iter().enumerate().any(|(at, w)| {
            let is_letter = w.text.len() == 1 && w.text.bytes().all(|b| b.is_ascii_alphabetic());
            let after = self.asked[w.end..].chars().next();
            let before = self.asked[..w.start].trim_end().chars().next_back();
            let marked = after == Some(')')
                || matches!(after, Some('.' | ':'))
                    && before.is_none_or(|c| ".?!:\n,;".contains(c));
            let cued = at > 0
                && [CUES, UNSURE]
                    .iter()
                    .any(|cues| cue(words[at - 1].text, cues).is_some());
            is_letter && (marked || cued && w.text.bytes().all(|b| b.is_ascii_uppercase()))
        })
    }

    fn place(&self, word: &str) -> Option<usize> {
        (0..self.names.len()).find(|place| blind::label(*place) == word)
    }

    /// Returns the labels after a cue, as indexes of words: `Answer A`, `answers (A) and B`.
    fn list(&self, text: &str, words: &[Word<'_>], cue: usize) -> Option<Vec<usize>> {
        let is_label = |w: &Word<'_>| {
            self.place(w.text).is_some()
                || w.text.len() == 1
                    && w.text.bytes().all(|b| b.is_ascii_uppercase())
                    && w.text != "I"
        };
        let gap = |a: usize, b: usize| text[words[a].end..words[b].start].trim();
        let opening = |gap: &str| gap.chars().all(|c| "(*\"“‘'`#".contains(c));
        let first = cue + 1;
        if first >= words.len() || !is_label(&words[first]) || !opening(gap(cue, first)) {
            return None;
        }
        let mut list = vec![first];
        let mut at = first;
        loop {
            let bare = |gap: &str| gap.trim_matches(|c| "()*\"“”‘’'`# ".contains(c)).to_owned();
            let next = at + 1;
            if next < words.len() && is_label(&words[next]) {
                if matches!(bare(gap(at, next)).as_str(), "," | "/" | "&") {
                    list.push(next);
                    at = next;
                    continue;
                }
            } else if next + 1 < words.len()
                && ["and", "or", "und", "oder", "et", "ou", "y", "o", "和", "vs"]
                    .contains(&words[next].text)
                && self.place(words[next + 1].text).is_some()
                && matches!(bare(gap(at, next)).as_str(), "" | ",")
                && bare(gap(next, next + 1)).is_empty()
            {
                list.push(next + 1);
                at = next + 1;
                continue;
            }
            return Some(list);
        }
    }

    /// Returns the start of an article before a cue: "the answer A".
    fn article(&self, words: &[Word<'_>], cue: usize) -> Option<usize> {
        let before = words.get(cue.checked_sub(1)?)?;
        let next = words[cue].start == before.end + 1;
        (next && before.text.eq_ignore_ascii_case("the")).then_some(before.start)
    }

    /// Returns whether a word is likely a label, without a word that says so.
    fn is_unsure(&self, text: &str, words: &[Word<'_>], at: usize, lettered: bool) -> bool {
        let word = &words[at];
        if lettered || self.place(word.text).is_none() || is_quoted(text, word) {
            return false;
        }
        let before = at.checked_sub(1).map(|at| &words[at]);
        let joined = before.is_some_and(|b| text[b.end..word.start].trim().is_empty());
        let before = before.map_or("", |b| b.text);
        if joined && cue(before, UNSURE).is_some() {
            return true;
        }
        let after = words.get(at + 1).map_or("", |w| w.text);
        match is_sentence_start(text, word.start) {
            true => AFTER.contains(&after),
            false => joined && BEFORE.contains(&before.to_lowercase().as_str()),
        }
    }
}

/// Splits a text into words. Chinese and Latin letters are different words.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut out: Vec<Word<'_>> = Vec::new();
    let mut open: Option<(usize, bool)> = None;
    let ends = text.char_indices().chain([(text.len(), ' ')]);
    for (at, c) in ends {
        let kind = c.is_alphanumeric().then(|| is_wide(c));
        if let Some((start, was)) = open
            && kind != Some(was)
        {
            out.push(Word {
                start,
                end: at,
                text: &text[start..at],
            });
            open = None;
        }
        if let (None, Some(kind)) = (open, kind) {
            open = Some((at, kind));
        }
    }
    out
}

/// Returns the length of a cue at the end of a word. A Chinese text has no spaces.
fn cue(word: &str, cues: &[&str]) -> Option<usize> {
    let lower = word.to_lowercase();
    cues.iter().find_map(|cue| match cue.starts_with(is_wide) {
        true => word.ends_with(cue).then_some(cue.len()),
        false => (lower == *cue).then_some(word.len()),
    })
}

fn is_wide(c: char) -> bool {
    c >= '\u{2e80}'
}

/// Returns whether the first label after a cue is in brackets or quotes.
fn opens(text: &str, words: &[Word<'_>], cue: usize) -> bool {
    !text[words[cue].end..words[cue + 1].start].trim().is_empty()
}

/// Returns the length of the brackets and quotes at the beginning of a text.
fn closing(text: &str) -> usize {
    let is_closing = |c: &char| ")*\"”’'`".contains(*c);
    text.chars()
        .take_while(is_closing)
        .map(char::len_utf8)
        .sum()
}

fn quote(text: &str, word: &Word<'_>) -> String {
    match is_quoted(text, word) {
        true => word.text.to_owned(),
        false => format!("“{}”", word.text),
    }
}

fn is_quoted(text: &str, word: &Word<'_>) -> bool {
    text[..word.start].ends_with(['“', '"', '‘', '`'])
        && text[word.end..].starts_with(['”', '"', '’', '`'])
}

fn is_sentence_start(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '*', '_', '“', '"', '(', '-']);
    before.is_empty() || before.ends_with(['.', '!', '?', '\n', ':', '。', '！', '？', '：'])
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> String {
        let names = ["the answer of m2", "the answer of m3", "the answer of m1"];
        let labels = Labels {
            names: names.map(str::to_owned).to_vec(),
            asked: "Which queue is best?",
        };
        labels.named(text)
    }

    #[test]
    fn labels_become_what_the_member_saw_under_them() {
        for (said, shown) in [
            (
                "Answer A gives evidence while Answer B does not.",
                "The answer of m2 gives evidence while the answer of m3 does not.",
            ),
            ("Follow answer C.", "Follow the answer of m1."),
            ("I follow the answer (B).", "I follow the answer of m3."),
            ("Follow **Answer B**.", "Follow **the answer of m3**."),
            (
                "Answers A, B and C agree.",
                "The answer of m2, the answer of m3 and the answer of m1 agree.",
            ),
            (
                "Antwort B und C sind gut.",
                "The answer of m3 und the answer of m1 sind gut.",
            ),
            ("我认为答案A更好。", "我认为the answer of m2更好。"),
            (
                "My answer: A queue decouples them.",
                "My answer: A queue decouples them.",
            ),
            (
                "A queue is best. I answer so.",
                "A queue is best. I answer so.",
            ),
            ("Vitamin C and plan B help.", "Vitamin C and plan B help."),
        ] {
            assert_eq!(named(said), shown, "{said}");
            assert_eq!(named(&named(said)), named(said), "{said}");
        }
    }

    #[test]
    fn labels_without_a_certain_meaning_are_quoted_with_a_note() {
        for (said, shown) in [
            ("Answer Z is best.", "Answer “Z” is best."),
            ("B gives evidence.", "“B” gives evidence."),
            ("It is clearer than B.", "It is clearer than “B”."),
            ("Option A is clearer.", "Option “A” is clearer."),
            (
                "Answer A is clearer than C.",
                "The answer of m2 is clearer than “C”.",
            ),
        ] {
            assert_eq!(named(said), format!("{shown}{NOTE}"), "{said}");
            assert_eq!(named(&named(said)), named(said), "{said}");
        }
        // The letters of the question may be meant.
        let labels = Labels {
            names: vec!["PostgreSQL".into(), "SQLite".into()],
            asked: "(A) SQLite or (B) PostgreSQL?",
        };
        assert_eq!(
            labels.named("Answer A is simple."),
            format!("Answer “A” is simple.{NOTE}")
        );
        assert_eq!(labels.named("Option A is simple."), "Option A is simple.");
        assert_eq!(
            labels.named_if_certain("Answer A is simple."),
            "Answer A is simple."
        );
    }
}
