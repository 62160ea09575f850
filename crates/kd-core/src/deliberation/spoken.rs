//! Removes the private parts of a reply: thinking and messages that some models write into their text in tags, as the
//! [`Splitter`] does for debates and chats.

use super::plan::{PRIVATE, TAGGED};
use crate::duet::splitter::Splitter;
use serde_json::Value;

/// Returns the text of a reply without its private parts, by this version of the rules. A reply in JSON keeps its form: a tag
/// that is not closed in one text of it does not remove the other fields.
pub(super) fn spoken(reading: u32, reply: &str) -> String {
    let reply = reply.trim();
    match reading {
        0..PRIVATE => reply.to_owned(),
        PRIVATE..TAGGED => changed(reply, &|text| outside(begun(text), splitter(reading))),
        _ => changed(reply, &|text| {
            outside(kd_reading::after_thinking(text), splitter(reading))
        }),
    }
}

/// Creates a splitter for this version of the rules.
pub(super) fn splitter(reading: u32) -> Splitter {
    match reading < TAGGED {
        true => Splitter::older(),
        false => Splitter::default(),
    }
}

/// Changes the text of a reply; in JSON, each text of it.
pub(super) fn changed(reply: &str, change: &impl Fn(&str) -> String) -> String {
    match serde_json::from_str::<Value>(reply) {
        Ok(mut value @ (Value::Object(_) | Value::Array(_))) => {
            match change_texts(&mut value, change) {
                true => value.to_string(),
                false => reply.to_owned(),
            }
        }
        _ => change(reply),
    }
}

/// Changes every text of a JSON value; returns whether any differs.
fn change_texts(value: &mut Value, change: &impl Fn(&str) -> String) -> bool {
    match value {
        Value::String(text) => {
            let changed = change(text);
            let differs = changed != *text;
            *text = changed;
            differs
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |any, item| change_texts(item, change) | any),
        Value::Object(fields) => fields
            .iter_mut()
            .fold(false, |any, (_, field)| change_texts(field, change) | any),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn outside(text: &str, mut splitter: Splitter) -> String {
    let mut spoken = splitter.push(text);
    spoken.push_str(&splitter.finish().0);
    match spoken == text {
        true => spoken,
        false => spoken.trim().to_owned(),
    }
}

/// Returns the text after thinking that lacks its opening tag, by the rules of older records.
fn begun(text: &str) -> &str {
    const END: &str = "</think>";
    let lower = text.to_ascii_lowercase();
    let end = lower.find(END).filter(|end| {
        let before = &lower[..*end];
        !before.contains("<think") && !before.ends_with('`')
    });
    end.map_or(text, |end| &text[end + END.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_outside_private_tags_is_spoken() {
        for (reply, said) in [
            ("<think>Hm.</think>Yes.", "Yes."),
            ("<council>x</council>Yes, it is safe.", "Yes, it is safe."),
            ("<think>I must not say", ""),
            ("<Think>a</THINK>\n\nNo.", "No."),
            ("Yes.\n<council>Check", "Yes."),
            ("I wonder.</think>Yes.", "Yes."),
            ("I wonder.</Thinking>Yes.", "Yes."),
            (
                "Use this:\n```xml\n</reasoning>\n</think>\n```\nIt works.",
                "Use this:\n```xml\n</reasoning>\n</think>\n```\nIt works.",
            ),
            (
                "Wrap it in <reasoning> first.",
                "Wrap it in <reasoning> first.",
            ),
            ("<scratchpad>a</reasoning>b</scratchpad>Yes.", "Yes."),
            ("<reasoning>Hm.</reasoning>Yes.", "Yes."),
            ("Close it with `</think>`.", "Close it with `</think>`."),
            ("```\n<think>\n```", "```\n<think>\n```"),
            ("2 < 3", "2 < 3"),
            (" Yes. ", "Yes."),
            (
                r#"{"answer":"yes","reason":"<think>Hm.</think>It is."}"#,
                r#"{"answer":"yes","reason":"It is."}"#,
            ),
            (
                r#"{"reason":"Use <think> tags","answer":"yes"}"#,
                r#"{"answer":"yes","reason":"Use <think> tags"}"#,
            ),
            (
                r#"<think>a</think>{"answer": "yes"}"#,
                r#"{"answer": "yes"}"#,
            ),
            (r#"{"answer": "yes"}"#, r#"{"answer": "yes"}"#),
        ] {
            let once = spoken(TAGGED, reply);
            let same = |text: &str| serde_json::from_str::<Value>(text).ok();
            assert!(
                once == said || same(&once).is_some() && same(&once) == same(said),
                "{reply}: {once}"
            );
            assert_eq!(spoken(TAGGED, &once), once, "{reply}");
        }
    }

    #[test]
    fn older_records_are_read_by_their_own_rules() {
        for (reply, said) in [
            ("<thought>Hm.</thought>Yes.", "<thought>Hm.</thought>Yes."),
            ("Use <think> tags", "Use"),
            ("```\n</think>\n```", "\n```"),
        ] {
            assert_eq!(spoken(PRIVATE, reply), said, "{reply}");
            assert_eq!(spoken(PRIVATE - 1, reply), reply);
        }
    }
}
