//! A mark: a verdict, each member's answer, and whether the verdict was right.

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The version of [`Mark`]. Other versions are refused.
pub const VERSION: u32 = 1;

/// A verdict that the user has marked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// [`VERSION`].
    pub v: u32,
    /// The project of the thread: the name of its state folder.
    pub project: String,
    /// The thread.
    pub thread: String,
    /// The number of the message with the verdict.
    pub message: u32,
    /// The time when it was marked. In a file, a time outside the calendar, for example because of its offset, is
    /// read as the end of the calendar.
    #[serde(deserialize_with = "time")]
    pub at: Timestamp,
    /// The origin of the mark.
    pub by: By,
    /// The kind of question: `choice`, `yes-no`, `number`, …
    pub kind: String,
    /// The protocol of the deliberation.
    pub protocol: String,
    /// The members that were asked for a vote.
    pub members: Vec<Member>,
    /// The models of the members that were not asked, or stopped, because the others had decided. Such marks say
    /// nothing about these models, but the council is the same as when all are asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unasked: Vec<String>,
    /// The rule by which members are not asked, if the protocol has several: `settled` until nothing can change, `margin`
    /// until asking all would gain little, `certainty 0.9` until the chance of being right is that high. Verdicts that
    /// ended by different rules do not compare: the same score promises more the more members could have dissented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<String>,
    /// The winning answer, in the form used for comparison; `None` for open text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    /// The credit of the verdict, from 0 (wrong) to 1 (right).
    pub credit: f64,
    /// The right answer, if the user gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Number of requests to members.
    pub calls: u64,
    /// Cost in US dollars.
    pub usd: f64,
}

/// Reads a time. Parts of `9999-12-31` are outside the calendar in every time zone: such a time is read as the
/// nearest end of the calendar.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(from)?;
    let error = match text.parse() {
        Ok(at) => return Ok(at),
        Err(error) => error,
    };
    // A date with a time and an offset that is not a time must be beyond the calendar.
    let nearest = Pieces::parse(&text).ok().and_then(|pieces| {
        pieces.time()?;
        pieces.offset()?;
        Some(match pieces.date().year() > 0 {
            true => Timestamp::MAX,
            false => Timestamp::MIN,
        })
    });
    nearest.ok_or_else(|| D::Error::custom(error))
}

/// The origin of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The user.
    User,
    /// A command configured by the user, by its exit code.
    Command,
    /// A list of right answers.
    Gold,
    /// A file of imported marks.
    Import,
}

/// A member and what it answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its name in the council.
    pub name: String,
    /// Its model, with the version if known. Marks are evidence about models, not names.
    pub model: String,
    /// Its answer, in the form used for comparison; `None` if it gave none, or for open text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether it supported the verdict.
    pub backs: bool,
    /// Its stated confidence, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

impl Mark {
    /// Returns whether the verdict counts as right.
    pub fn is_right(&self) -> bool {
        self.credit >= 0.5
    }

    /// Returns whether a member was right; `None` if that is unknown. If the verdict was wrong and the right
    /// answer is unknown, members with other answers may have been right or wrong.
    pub fn was_right(&self, member: &Member) -> Option<bool> {
        match (&self.answer, self.is_right()) {
            (Some(answer), _) if self.winner.is_some() => Some(member.key.as_ref() == Some(answer)),
            (_, true) => Some(member.backs),
            (_, false) => member.backs.then_some(false),
        }
    }

    /// Returns whether both mark the same verdict.
    pub fn is_of(&self, other: &Mark) -> bool {
        (self.message, &self.thread, &self.project)
            == (other.message, &other.thread, &other.project)
    }

    /// Returns the names of the models of its council, asked or not, sorted: marks of the same models are comparable.
    pub fn models(&self) -> Vec<&str> {
        let asked = self.members.iter().map(|m| m.model.as_str());
        let mut models: Vec<&str> = asked
            .chain(self.unasked.iter().map(String::as_str))
            .collect();
        models.sort_unstable();
        models
    }
}

/// Strips the version (a date or tag) from a model name. Versions of one model are similar, but not equal.
pub fn family(model: &str) -> &str {
    let model = model.split_once('@').map_or(model, |(name, _)| name);
    let model = match model.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => model,
    };
    let digits = |text: &str, n: usize| text.len() == n && text.bytes().all(|b| b.is_ascii_digit());
    let mut rest = model;
    while let Some((name, part)) = rest.rsplit_once('-') {
        let is_version = [8, 6, 4, 3, 2].iter().any(|n| digits(part, *n));
        if !(is_version || part == "latest" || part == "preview") || name.is_empty() {
            break;
        }
        rest = name;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, key: &str, backs: bool) -> Member {
        Member {
            name: name.into(),
            model: format!("vendor/{name}"),
            key: Some(key.into()),
            backs,
            confidence: None,
        }
    }

    pub(super) fn mark(credit: f64, answer: Option<&str>) -> Mark {
        Mark {
            v: VERSION,
            project: "p-1".into(),
            thread: "council-1".into(),
            message: 5,
            at: Timestamp::UNIX_EPOCH,
            by: By::User,
            kind: "number".into(),
            protocol: "council".into(),
            members: vec![
                member("a", "391", true),
                member("b", "391", true),
                member("c", "381", false),
                member("d", "42", false),
            ],
            unasked: Vec::new(),
            stopping: None,
            winner: Some("391".into()),
            credit,
            answer: answer.map(str::to_owned),
            calls: 4,
            usd: 0.01,
        }
    }

    #[test]
    fn a_mark_tells_of_members_what_follows_from_it_and_no_more() {
        let told = |mark: &Mark| -> Vec<Option<bool>> {
            mark.members.iter().map(|m| mark.was_right(m)).collect()
        };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(told(&mark(1.0, None)), [yes, yes, no, no]);
        assert_eq!(told(&mark(0.0, None)), [no, no, None, None]);
        assert_eq!(told(&mark(0.0, Some("381"))), [no, no, yes, no]);
        assert_eq!(told(&mark(0.0, Some("7"))), [no; 4]);
        let mut silent = mark(1.0, Some("391"));
        silent.members[3].key = None;
        assert_eq!(told(&silent), [yes, yes, no, no]);
    }

    #[test]
    fn versions_of_a_model_are_one_family() {
        for (model, expected) in [
            ("claude-3-5-haiku-20241022", "claude-3-5-haiku"),
            ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
            ("gpt-4o-latest", "gpt-4o"),
            ("qwen3:0.6b", "qwen3"),
            ("claude_code@2.1.330", "claude_code"),
            ("gemini-1.5-flash", "gemini-1.5-flash"),
            ("o3", "o3"),
            ("host:8080/model", "host:8080/model"),
            ("-2024", "-2024"),
            ("", ""),
        ] {
            assert_eq!(family(model), expected, "{model}");
        }
    }

    #[test]
    fn a_mark_reads_as_it_was_written() {
        for mark in [mark(1.0, None), mark(0.7, Some("381"))] {
            let text = serde_json::to_string(&mark).expect("JSON");
            assert_eq!(serde_json::from_str::<Mark>(&text).expect("read"), mark);
        }
    }
}
