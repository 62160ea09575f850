//! A message: one finished file in a thread.

use crate::clean::{clean_line, clean_text};
use crate::ids::{SeatName, TurnId};
use crate::names::{ALL, KING};
use crate::request::Finish;
use crate::text::Text;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Front matter of an answer that was cut, by the token limit or at a repetition: `finish: length`.
pub(crate) const FINISH: &str = "finish";
/// The tokens of an answer that the token limit cut.
pub(crate) const CUT_AT: &str = "cut_at";
/// Front matter of a partial answer: why its turn failed.
pub(crate) const REASON: &str = "reason";
/// Maximum characters of a reason.
pub(crate) const REASON_CHARS_MAX: usize = 400;

/// The end of a member's turn, as stated in the front matter of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The answer is complete.
    Complete,
    /// The turn failed; the body holds the partial answer or the error.
    Error,
    /// The turn timed out; the body holds the partial answer.
    Timeout,
    /// The user stopped the turn; the body holds the partial answer.
    Interrupted,
}

impl Status {
    /// Returns the word in the front matter.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Complete => "complete",
            Status::Error => "error",
            Status::Timeout => "timeout",
            Status::Interrupted => "interrupted",
        }
    }

    /// Parses the word in the front matter.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "complete" => Status::Complete,
            "error" => Status::Error,
            "timeout" => Status::Timeout,
            "interrupted" => Status::Interrupted,
            _ => return None,
        })
    }
}

/// Front matter of a retried answer: the number of the failed message that it replaces.
pub const REPLACES: &str = "replaces";
/// Front matter of an answer with nothing to say: `pass: yes`.
pub const PASS: &str = "pass";

/// Front matter of a message of the user that chooses an answer: the number of the answer.
pub const CHOSEN: &str = "chosen";

/// Lines of a long message of the user that are shown while it is folded.
const FOLDED_LINES: usize = 8;
/// Maximum bytes of these lines.
const FOLDED_BYTES: usize = 2000;

/// Returns the beginning of a long message of the user, and the number of lines that follow; `None` if it is shown whole.
/// Only the length decides, not the content, so that a text cannot make parts of itself hidden.
pub fn folded(body: &str) -> Option<(&str, usize)> {
    let mut ends = body.match_indices('\n').map(|(at, _)| at);
    let lines = ends.nth(FOLDED_LINES - 1).unwrap_or(body.len());
    let end = lines.min(body.floor_char_boundary(FOLDED_BYTES));
    let (shown, rest) = body.split_at(end);
    let more = rest.trim_start_matches('\n').lines().count();
    (more > FOLDED_LINES || rest.len() > FOLDED_BYTES).then_some((shown, more))
}

/// The recipients of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// Every member.
    #[default]
    All,
    /// The user.
    King,
    /// Exactly these members.
    Seats(Vec<SeatName>),
}

impl fmt::Display for Address {
    /// Formats the `to` field: `all`, `king`, `claude`, or `claude, codex`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::All => f.write_str(ALL),
            Address::King => f.write_str(KING),
            Address::Seats(seats) => {
                for (i, seat) in seats.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{seat}")?;
                }
                Ok(())
            }
        }
    }
}

impl Address {
    /// Returns whether this member is a recipient.
    pub fn is_for(&self, seat: &SeatName) -> bool {
        match self {
            Address::All => true,
            Address::King => false,
            Address::Seats(seats) => seats.contains(seat),
        }
    }

    /// Parses a `to` field. Invalid names are ignored; an empty field is [`Address::All`].
    pub fn parse(field: &str) -> Self {
        match field.trim() {
            "" | ALL => Address::All,
            KING => Address::King,
            names => {
                let seats: Vec<_> = names
                    .split(',')
                    .filter_map(|n| SeatName::sender(n.trim()).ok())
                    .collect();
                if seats.is_empty() {
                    Address::All
                } else {
                    Address::Seats(seats)
                }
            }
        }
    }
}

/// The origin of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// The backend, for example `claude_code`, `openai`, `local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The model's own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The source of this information: `observed`, `configured` or `provider`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_source: Option<String>,
    /// The reasoning effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// The source of this information: `configured` or `provider`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort_source: Option<String>,
    /// First line of `--version` of an agent program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cli_version: Option<String>,
    /// 32 hex digits that link a queued message of the user to its replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
}

/// A message that is not on disk yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// The turn that produced it; `None` for the user's messages.
    pub turn: Option<TurnId>,
    /// `king`, a member, or a service.
    pub from: String,
    /// The recipients.
    pub to: Address,
    /// The time when it was finished.
    pub at: Timestamp,
    /// `None` for the user's messages.
    pub status: Option<Status>,
    /// Files it refers to.
    pub refs: Vec<String>,
    /// Its origin.
    pub provenance: Provenance,
    /// Further front matter, written after the known keys in this order.
    pub extra: BTreeMap<String, String>,
    /// The text.
    pub body: String,
}

impl Draft {
    /// Returns the message stored under this number.
    pub fn stored(self, seq: u32) -> Message {
        Message {
            seq,
            from: self.from,
            to: self.to,
            at: self.at,
            status: self.status,
            refs: self.refs,
            provenance: self.provenance,
            extra: self.extra,
            body: self.body.into(),
        }
    }
}

/// One finished file in a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its number in the thread, counted from 1.
    pub seq: u32,
    /// `king`, a member, or a service.
    pub from: String,
    /// The recipients.
    pub to: Address,
    /// The time when it was finished, to the second.
    pub at: Timestamp,
    /// `None` for the user's messages and in old files.
    pub status: Option<Status>,
    /// Files it refers to.
    pub refs: Vec<String>,
    /// Its origin.
    pub provenance: Provenance,
    /// Unknown front matter, kept unchanged.
    pub extra: BTreeMap<String, String>,
    /// The text.
    pub body: Text,
}

impl Message {
    /// Removes control characters from the body: files may contain anything.
    pub(crate) fn clean(&mut self) {
        if let Cow::Owned(clean) = clean_text(&self.body) {
            self.body = clean.into();
        }
    }

    /// Returns whether the user wrote it.
    pub fn is_king(&self) -> bool {
        self.from == KING
    }

    /// Returns the number of the failed message it replaces, if any.
    pub fn replaces(&self) -> Option<u32> {
        self.extra.get(REPLACES)?.parse().ok()
    }

    /// Returns whether the member passed: it had nothing to add.
    pub fn is_pass(&self) -> bool {
        self.extra.contains_key(PASS)
    }

    /// Returns whether the message only chooses an answer and asks nothing: its number belongs to an earlier answer
    /// among these messages. Whoever can write files can write any number.
    pub fn is_choice<'m>(&self, messages: impl IntoIterator<Item = &'m Self>) -> bool {
        let chosen = self.extra.get(CHOSEN).filter(|_| self.is_king());
        let Some(chosen) = chosen.and_then(|seq| seq.parse::<u32>().ok()) else {
            return false;
        };
        let is_answer = |m: &Self| !m.is_king() && m.is_sound() && !m.is_pass();
        chosen < self.seq
            && messages
                .into_iter()
                .any(|m| m.seq == chosen && is_answer(m))
    }

    /// Returns whether the user asks something with it: it is not only a choice among these messages.
    pub fn is_question<'m>(&self, messages: impl IntoIterator<Item = &'m Self>) -> bool {
        self.is_king() && !self.is_choice(messages)
    }

    /// Returns whether the answer was cut: by the token limit, or where the model repeated its prompt.
    pub fn is_cut(&self) -> bool {
        self.cut().is_some()
    }

    /// Returns what cut the answer: `length` or `repetition`.
    pub fn cut(&self) -> Option<&'static str> {
        let finish = self.extra.get(FINISH)?;
        [Finish::Length, Finish::Repetition]
            .into_iter()
            .filter_map(Finish::cut)
            .find(|word| word == finish)
    }

    /// Returns the mark at the end of an answer that was cut: `…[cut at 220 tokens]`.
    pub fn cut_mark(&self) -> Option<String> {
        self.cut_mark_at(None)
    }

    /// The same. `tokens` is the number of tokens of the answer, used if the message does not state it.
    pub(crate) fn cut_mark_at(&self, tokens: Option<u64>) -> Option<String> {
        self.cut().map(|cut| {
            if Some(cut) == Finish::Repetition.cut() {
                return "…[cut at a repetition]".to_owned();
            }
            let told = self.extra.get(CUT_AT).and_then(|n| n.parse::<u64>().ok());
            match told.or(tokens) {
                Some(1) => "…[cut at 1 token]".to_owned(),
                Some(n) => format!("…[cut at {n} tokens]"),
                None => "…[cut at the token limit]".to_owned(),
            }
        })
    }

    /// Returns the body as it is shown: with the mark of a cut, and without the words that its status says already.
    pub fn shown(&self) -> Cow<'_, str> {
        if self.status == Some(Status::Interrupted) {
            let body = self.body.trim_end();
            let body = body.strip_suffix(BROKEN_OFF).unwrap_or(body).trim_end();
            return Cow::Borrowed(if body == INTERRUPTED { "" } else { body });
        }
        match self.cut_mark() {
            Some(mark) => Cow::Owned(format!("{}{mark}", self.body.trim_end())),
            None => Cow::Borrowed(&self.body),
        }
    }

    /// Returns why the turn of a partial answer failed. `None` if it did not fail, or if the body is the reason.
    pub fn reason(&self) -> Option<String> {
        let is_failed = matches!(self.status, Some(Status::Error | Status::Timeout));
        let reason = self.extra.get(REASON).filter(|_| is_failed)?;
        // Whoever can write files can write any reason.
        let reason = clean_line(reason, REASON_CHARS_MAX);
        Some(reason).filter(|reason| !reason.is_empty())
    }

    /// Returns why it is not a complete answer, in one line: its reason, or a body that is the reason (`*Error: …*`). The
    /// body of a partial answer is none.
    pub fn why(&self) -> Option<String> {
        if self.is_sound() {
            return None;
        }
        self.reason().or_else(|| {
            let body = self.body.trim();
            let marked = body.strip_prefix('*')?.strip_suffix('*')?;
            let why = match marked.strip_prefix("Error: ") {
                Some(why) => why,
                None if body == INTERRUPTED || marked.starts_with("Empty response") => marked,
                None => return None,
            };
            let why = clean_line(why.lines().next()?, REASON_CHARS_MAX);
            Some(why).filter(|why| !why.is_empty())
        })
    }

    /// Returns whether its body is included in prompts: complete messages, and partial answers that the user stopped.
    pub fn is_told(&self) -> bool {
        let stopped = self.status == Some(Status::Interrupted) && self.body.trim() != INTERRUPTED;
        self.is_sound() || stopped
    }

    /// Returns whether it is complete: a message of the user, or a whole answer.
    ///
    /// Old files have no status; there the body decides (`*Error: …*`, `*Interrupted*`, `*Empty response…`).
    pub fn is_sound(&self) -> bool {
        match self.status {
            Some(Status::Complete) => true,
            Some(_) => false,
            None => {
                self.is_king()
                    || !["*Error: ", "*Interrupted*", "*Empty response"]
                        .iter()
                        .any(|mark| self.body.starts_with(mark))
            }
        }
    }
}

/// The body of a message whose turn the user stopped before any text, as kingdom-cli writes it.
pub(crate) const INTERRUPTED: &str = "*Interrupted*";
/// The text after the partial answer of a stopped turn, as kingdom-cli writes it.
pub(crate) const BROKEN_OFF: &str = "*[Interrupted — response may be incomplete]*";

/// Returns the messages of a thread in reading order. `messages` are sorted by number. A retried answer takes the
/// position of the failed one, which is left out. No complete message is ever left out.
pub fn settled(messages: &[Message]) -> Vec<&Message> {
    if !messages.iter().any(|m| m.extra.contains_key(REPLACES)) {
        return messages.iter().collect();
    }
    let failed: BTreeSet<(u32, &str)> = messages
        .iter()
        .filter(|m| !m.is_sound())
        .map(|m| (m.seq, m.from.as_str()))
        .collect();
    let place = |m: &Message| match m.replaces() {
        // Files may be written by anyone: a message can only replace an earlier failure of the same sender.
        Some(seq) if seq < m.seq && failed.contains(&(seq, m.from.as_str())) => seq,
        _ => m.seq,
    };
    // The last message at each position, complete before failed.
    let mut best: BTreeMap<(u32, &str), (bool, u32)> = BTreeMap::new();
    for message in messages {
        let rank = (message.is_sound(), message.seq);
        let held = best
            .entry((place(message), message.from.as_str()))
            .or_insert(rank);
        *held = rank.max(*held);
    }
    let mut read: Vec<&Message> = messages
        .iter()
        .filter(|m| m.is_sound() || best.get(&(place(m), m.from.as_str())) == Some(&(false, m.seq)))
        .collect();
    read.sort_by_key(|m| (place(m), m.from.as_str(), m.seq));
    read
}

/// Returns the index of the newest question in a thread's messages: the user's newest one that is no mere choice.
pub fn newest_question(messages: &[Message]) -> Option<usize> {
    messages.iter().rposition(|m| m.is_question(messages))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(seq: u32, from: &str, status: Status, replaces: Option<&str>) -> Message {
        let replaces = replaces.map(|seq| (REPLACES.to_owned(), seq.to_owned()));
        Message {
            seq,
            from: from.into(),
            to: Address::King,
            at: Timestamp::UNIX_EPOCH,
            status: Some(status),
            refs: Vec::new(),
            provenance: Provenance::default(),
            extra: replaces.into_iter().collect(),
            body: "x".into(),
        }
    }

    #[test]
    fn the_cause_of_a_failure_keeps_its_own_asterisks() {
        let with = |status: Option<Status>, body: &str, reason: Option<&str>| {
            let mut message = message(1, "ann", Status::Error, None);
            message.status = status;
            message.body = body.into();
            let reason = reason.map(|why| (REASON.to_owned(), why.to_owned()));
            message.extra.extend(reason);
            message.why()
        };
        let failed = Some(Status::Error);
        for (status, body, reason, why) in [
            (failed, "*Error: no **net***", None, Some("no **net**")),
            (failed, "*Error: one\ntwo*", None, Some("one")),
            (
                failed,
                "It is fo",
                Some("the *pipe* broke"),
                Some("the *pipe* broke"),
            ),
            (failed, "It is fo", None, None),
            (failed, "*It* is *fo*", None, None),
            (
                Some(Status::Interrupted),
                INTERRUPTED,
                None,
                Some("Interrupted"),
            ),
            (None, "*Error: old*", None, Some("old")),
            (Some(Status::Complete), "*Error: quoted*", None, None),
        ] {
            assert_eq!(with(status, body, reason).as_deref(), why, "{body}");
        }
    }

    #[test]
    fn only_long_messages_are_folded() {
        let lines = |n: usize| vec!["x"; n].join("\n");
        assert_eq!(folded(&lines(16)), None);
        assert_eq!(folded(&lines(17)), Some((lines(8).as_str(), 9)));
        assert_eq!(folded(""), None);
        let wide = "é".repeat(3000);
        assert_eq!(folded(&wide), Some((&wide[..2000], 1)));
        assert_eq!(folded(&wide[..4000]), None);
        // What looks like an attached file is a text like any other.
        assert_eq!(folded("[attached: `a`, 1 byte]\n```\nx\n```"), None);
    }

    #[test]
    fn the_newest_question_is_before_a_choice() {
        let mut thread = vec![
            message(1, "king", Status::Complete, None),
            message(2, "ann", Status::Complete, None),
            message(3, "king", Status::Complete, None),
        ];
        assert_eq!(newest_question(&thread), Some(2));
        thread[2].extra.insert(CHOSEN.into(), "2".into());
        assert_eq!(newest_question(&thread), Some(0));
        assert_eq!(newest_question(&thread[1..2]), None);
    }

    #[test]
    fn only_a_number_of_an_earlier_answer_is_a_choice() {
        let mut thread = vec![
            message(1, "king", Status::Complete, None),
            message(2, "ann", Status::Complete, None),
            message(3, "bob", Status::Error, None),
            message(4, "cyd", Status::Complete, None),
            message(5, "king", Status::Complete, None),
            message(6, "ann", Status::Complete, None),
        ];
        thread[3].extra.insert(PASS.into(), "yes".into());
        let huge = "1".to_owned() + &"0".repeat(30);
        for chosen in [
            "2", "1", "3", "4", "5", "6", "7", "0", "-2", "", "two", &huge,
        ] {
            thread[4].extra.insert(CHOSEN.into(), chosen.into());
            assert_eq!(thread[4].is_choice(&thread), chosen == "2", "{chosen}");
        }
        thread[5].extra.insert(CHOSEN.into(), "2".into());
        assert!(!thread[5].is_choice(&thread), "a member chooses nothing");
    }

    #[test]
    fn what_was_cut_ends_with_a_mark_that_says_by_what() {
        let finished = |finish: &str, tokens: Option<&str>| {
            let mut message = message(1, "tiny", Status::Complete, None);
            message.extra.insert(FINISH.into(), finish.into());
            if let Some(tokens) = tokens {
                message.extra.insert(CUT_AT.into(), tokens.into());
            }
            message
        };
        for (finish, tokens, shown) in [
            ("length", Some("220"), "x…[cut at 220 tokens]"),
            ("length", Some("1"), "x…[cut at 1 token]"),
            ("length", None, "x…[cut at the token limit]"),
            ("repetition", Some("220"), "x…[cut at a repetition]"),
            ("repetition", None, "x…[cut at a repetition]"),
            ("stop", None, "x"),
            ("later", None, "x"),
        ] {
            let message = finished(finish, tokens);
            assert_eq!(message.shown(), shown, "{finish}");
            assert_eq!(message.is_cut(), shown != "x", "{finish}");
        }
    }

    #[test]
    fn what_was_asked_again_stands_where_it_failed() {
        let thread = [
            message(1, "claude", Status::Error, None),
            message(2, "codex", Status::Complete, None),
            message(3, "claude", Status::Timeout, Some("1")),
            message(4, "claude", Status::Complete, Some("1")),
            // Another sender's failure, no failure, a later one, no number.
            message(5, "codex", Status::Complete, Some("1")),
            message(6, "codex", Status::Complete, Some("2")),
            message(7, "claude", Status::Error, Some("9")),
            message(9, "claude", Status::Complete, Some("x")),
        ];
        let order =
            |n: usize| -> Vec<u32> { settled(&thread[..n]).iter().map(|m| m.seq).collect() };
        assert_eq!(order(2), [1, 2]);
        assert_eq!(order(3), [3, 2], "of two failures the later one is shown");
        assert_eq!(order(4), [4, 2]);
        assert_eq!(order(8), [4, 2, 5, 6, 7, 9]);
    }

    #[test]
    fn an_address_reads_back_as_written() {
        for text in ["all", "king", "claude", "claude, codex"] {
            assert_eq!(Address::parse(text).to_string(), text);
        }
        assert_eq!(Address::parse(" , /"), Address::All);
    }
}
