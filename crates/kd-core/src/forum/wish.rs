//! A motion as people write it: a few words that say what is moved. Input: the words. Output: a [`Wish`] with the fields
//! of the tool `propose`.

use super::governance::MotionKind;

/// What is moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// What kind of motion.
    pub kind: MotionKind,
    /// The parameter, for kind `set`.
    pub key: Option<String>,
    /// Its new value, the scheduler, or the number of the motion to undo.
    pub value: Option<String>,
    /// The motion on one line.
    pub title: String,
}

/// Every form, for help and errors.
pub const FORMS: &str = "set KEY VALUE, scheduler NAME, undo N, keep, or text TITLE";

impl Wish {
    /// Reads the words of a motion. Whether the values fit is checked when it is moved.
    ///
    /// # Errors
    /// The words have none of the [`FORMS`].
    pub fn parse(words: &str) -> Result<Self, String> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let wish = |kind, key: Option<&str>, value: Option<&str>, title: String| {
            Ok(Self {
                kind,
                key: key.map(str::to_owned),
                value: value.map(str::to_owned),
                title,
            })
        };
        match words.as_slice() {
            ["keep"] => wish(MotionKind::Keep, None, None, "Keep the rules".into()),
            ["set", key, value] | ["set", key, "=", value] => wish(
                MotionKind::Set,
                Some(key),
                Some(value),
                format!("Set {key} to {value}"),
            ),
            ["scheduler", name] => wish(
                MotionKind::Scheduler,
                None,
                Some(name),
                format!("Use the scheduler {name}"),
            ),
            ["undo", number] => {
                let number = number.trim_start_matches('#');
                wish(
                    MotionKind::Undo,
                    None,
                    Some(number),
                    format!("Undo motion {number}"),
                )
            }
            ["text", title @ ..] if !title.is_empty() => {
                wish(MotionKind::Text, None, None, title.join(" "))
            }
            _ => Err(format!("a motion is one of: {FORMS}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::governance::MOTION_KINDS;
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
        ];
        for (words, kind, key, value) in wishes {
            let wish = Wish::parse(words).unwrap_or_else(|e| panic!("{words}: {e}"));
            assert_eq!(
                (wish.kind.word(), wish.key.as_deref(), wish.value.as_deref()),
                (kind, key, value)
            );
            assert!(!wish.title.is_empty() && !wish.title.contains('\n'));
        }
        for kind in MOTION_KINDS {
            assert!(wishes.iter().any(|wish| wish.1 == *kind), "{kind}");
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
        ] {
            assert!(Wish::parse(words).is_err(), "{words}");
        }
    }
}
