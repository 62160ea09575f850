//! The JSON value of a reply, of any type.

use crate::prose::without_thoughts;
use crate::{Unread, json, object};
use serde_json::Value;

/// Reads the requested value: the whole reply, the content of its only fence, or an object in its text.
///
/// # Errors
/// If the reply is empty, declines, holds no value that fits, or holds fitting objects that differ.
pub fn value(reply: &str, fits: impl Fn(&Value) -> bool) -> Result<Value, Unread> {
    // A value may contain words that look like the tags of a thought.
    let text = without_thoughts(reply);
    let whole = [reply, &text].map(|text| [Some(text.trim()), only_fence(text)]);
    let parsed = whole.into_iter().flatten().flatten();
    let mut parsed = parsed.filter_map(|json| Some((json, serde_json::from_str(json).ok()?)));
    let (json, value) = match parsed.find(|(_, value)| fits(value)) {
        Some(found) => found,
        None => (&*text, object(reply, fits)?.0),
    };
    // Which of two values of one field is meant is not known.
    match json::objects(json).iter().all(|one| one.twice.is_empty()) {
        true => Ok(value),
        false => Err(Unread::Ambiguous),
    }
}

/// Returns the content of the fence in a text that has one.
fn only_fence(text: &str) -> Option<&str> {
    let mut marks = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            marks.push((at, at + line.len()));
        }
        at += line.len();
    }
    match marks[..] {
        [(_, start), (end, _)] => text.get(start..end),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_every_type_are_read() {
        let any = |reply: &str| value(reply, |_| true);
        for (reply, read) in [
            ("[1, 2]", json!([1, 2])),
            (" \"yes\"\n", json!("yes")),
            ("null", json!(null)),
            ("{}", json!({})),
            ("Here:\n```json\n[1]\n```\nDone.", json!([1])),
            ("So {\"a\": [1]}, then.", json!({"a": [1]})),
            ("<think>[3]</think>[4]", json!([4])),
            (
                "{\"a\": \"<think>b</think>c\"}",
                json!({"a": "<think>b</think>c"}),
            ),
        ] {
            assert_eq!(any(reply), Ok(read), "{reply}");
        }
        for (reply, why) in [
            ("", Unread::Empty),
            ("yes", Unread::Missing),
            ("```\n[1]\n```\n```\n[2]\n```", Unread::Missing),
            ("{\"a\": 1} {\"a\": 2}", Unread::Ambiguous),
            ("{\"a\": 1, \"a\": 2}", Unread::Ambiguous),
            ("So [{\"b\": {\"a\": 1, \"a\": 2}}].", Unread::Ambiguous),
        ] {
            assert_eq!(any(reply), Err(why), "{reply}");
        }
        // One that fits is preferred to the whole text.
        let inner = value("```\n{\"a\": 1}\n```", |value| value.get("a").is_some());
        assert_eq!(inner, Ok(json!({"a": 1})));
        assert_eq!(value("[1]", Value::is_object), Err(Unread::Missing));
    }
}
