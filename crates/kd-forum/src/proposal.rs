//! Parses a motion as people write it: a few words that say what is proposed. Input: the words. Output: a [`Proposal`] with
//! the fields of the tool `propose`.

use super::words::MotionKind;
use crate::Refused;

/// A proposed motion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The kind of motion.
    pub kind: MotionKind,
    /// The parameter, for kind `set`; the member, for kind `role`; the rule, for kind `rule`.
    pub key: Option<String>,
    /// The new value, scheduler or role, the member, or the number of the post, thread or motion.
    pub value: Option<String>,
    /// The title, on one line.
    pub title: String,
}

/// All forms, for help and errors.
pub const FORMS: &str = "set KEY VALUE, scheduler NAME, undo MOTION, keep, text TITLE, hide POST, unhide POST, \
    close THREAD, reopen THREAD, ban NAME, unban NAME, role NAME ROLE, or rule RULE VALUE";

impl Proposal {
    /// Parses the words of a motion. Whether the values are valid is checked when it is proposed.
    ///
    /// # Errors
    /// If the words match none of the [`FORMS`].
    pub fn parse(words: &str) -> Result<Self, Refused> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let proposal = |kind, key: Option<&str>, value: Option<&str>, title: String| {
            Ok(Self {
                kind,
                key: key.map(str::to_owned),
                value: value.map(str::to_owned),
                title,
            })
        };
        match words.as_slice() {
            ["keep"] => proposal(MotionKind::Keep, None, None, "Keep the rules".into()),
            ["set", key, value] | ["set", key, "=", value] => proposal(
                MotionKind::Set,
                Some(key),
                Some(value),
                format!("Set {key} to {value}"),
            ),
            ["scheduler", name] => proposal(
                MotionKind::Scheduler,
                None,
                Some(name),
                format!("Use the scheduler {name}"),
            ),
            ["undo", number] => {
                let number = number.trim_start_matches('#');
                proposal(
                    MotionKind::Undo,
                    None,
                    Some(number),
                    format!("Undo motion {number}"),
                )
            }
            ["role", name, role] => proposal(
                MotionKind::Role,
                Some(name),
                Some(role),
                format!("Make {name} {role}"),
            ),
            ["rule", rule, value] => proposal(
                MotionKind::Rule,
                Some(rule),
                Some(value),
                format!("Set the rule {rule} to {value}"),
            ),
            ["text", title @ ..] if !title.is_empty() => {
                proposal(MotionKind::Text, None, None, title.join(" "))
            }
            [word, about] => match simple(word) {
                Some((kind @ (MotionKind::Ban | MotionKind::Unban), title)) => {
                    proposal(kind, None, Some(about), format!("{title} {about}"))
                }
                Some((kind, title)) => {
                    let number = about.trim_start_matches('#');
                    proposal(kind, None, Some(number), format!("{title} {number}"))
                }
                None => Err(Refused::invalid(form_of(word))),
            },
            [word, ..] => Err(Refused::invalid(form_of(word))),
            [] => Err(Refused::invalid(form_of(""))),
        }
    }
}

/// Returns the syntax of a kind of motion; all forms for an unknown word.
fn form_of(word: &str) -> String {
    let forms = FORMS.split(", ").map(|form| form.trim_start_matches("or "));
    let fits = |form: &&str| form.split(' ').next() == Some(word);
    match forms.into_iter().find(fits) {
        Some(form) => format!("write the motion as `{form}`"),
        None => format!("a motion is one of: {FORMS}"),
    }
}

/// Returns kinds that take one word, with the beginning of their titles.
fn simple(word: &str) -> Option<(MotionKind, &'static str)> {
    Some(match MotionKind::parse(word)? {
        kind @ MotionKind::Hide => (kind, "Hide post"),
        kind @ MotionKind::Unhide => (kind, "Show again post"),
        kind @ MotionKind::Close => (kind, "Close thread"),
        kind @ MotionKind::Reopen => (kind, "Reopen thread"),
        kind @ MotionKind::Ban => (kind, "Ban"),
        kind @ MotionKind::Unban => (kind, "Unban"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::words::MOTION_KINDS;
    use super::*;

    #[test]
    fn every_kind_of_motion_can_be_written_and_nothing_else() {
        let wishes = [
            ("keep", "keep", None, None),
            (
                "set skip_probability 0.1",
                "set",
                Some("skip_probability"),
                Some("0.1"),
            ),
            ("set a = 3", "set", Some("a"), Some("3")),
            ("scheduler williams", "scheduler", None, Some("williams")),
            ("undo #4", "undo", None, Some("4")),
            ("text  We meet\non Mondays", "text", None, None),
            ("hide #17", "hide", None, Some("17")),
            ("unhide 17", "unhide", None, Some("17")),
            ("close 3", "close", None, Some("3")),
            ("reopen 3", "reopen", None, Some("3")),
            ("ban eve", "ban", None, Some("eve")),
            ("unban eve", "unban", None, Some("eve")),
            ("role eve reader", "role", Some("eve"), Some("reader")),
            (
                "rule thread_days 30",
                "rule",
                Some("thread_days"),
                Some("30"),
            ),
        ];
        for (words, kind, key, value) in wishes {
            let proposal = Proposal::parse(words).unwrap_or_else(|e| panic!("{words}: {e}"));
            assert_eq!(
                (
                    proposal.kind.word(),
                    proposal.key.as_deref(),
                    proposal.value.as_deref()
                ),
                (kind, key, value)
            );
            assert!(!proposal.title.is_empty() && !proposal.title.contains('\n'));
        }
        for kind in MOTION_KINDS {
            assert!(wishes.iter().any(|proposal| proposal.1 == *kind), "{kind}");
            assert!(FORMS.contains(kind), "{kind}");
        }
        for words in [
            "",
            "set x",
            "set x y z",
            "undo",
            "text",
            "sell everything",
            "keep it",
            "hide",
            "ban eve bob",
            "role eve",
        ] {
            assert!(Proposal::parse(words).is_err(), "{words}");
        }
        let error = |words| Proposal::parse(words).unwrap_err().to_string();
        assert_eq!(error("role eve"), "write the motion as `role NAME ROLE`");
        assert_eq!(error("hide"), "write the motion as `hide POST`");
        assert!(error("sell everything").contains(FORMS));
    }
}
