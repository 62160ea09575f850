//! Detects echoes of a small model: a post that repeats its instructions, or a post that it was shown.

use kd_core::echo::{Known, Repeated};
use serde_json::Value;

/// Consecutive words that count as an echo of the instructions: posts are short, and so are their instructions.
const RUN: usize = 4;

/// The instructions and posts given to a small model, to compare its answer with.
#[derive(Clone, Debug, Default)]
pub(super) struct Echo(Known);

impl Echo {
    pub(super) fn of<'a>(instructions: &str, posts: impl Iterator<Item = &'a str>) -> Self {
        let known = Known::new(RUN).instructions(instructions);
        Self(posts.fold(known, Known::whole))
    }

    /// Returns the text that a call repeats, if any.
    pub(super) fn find(&self, arguments: &Value) -> Option<&'static str> {
        let body = arguments["body"].as_str().unwrap_or_default();
        Some(match self.0.find(body)?.what {
            Repeated::Answer => "the post repeats another word for word",
            Repeated::Instructions | Repeated::Frame => "the post repeats its instructions",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn instructions_and_posts_are_known_again_and_own_words_are_not() {
        let turn = "What do you say to them, ada? One or two sentences, and nothing that was said already.";
        let echo = Echo::of(turn, ["Why do they dance?", ""].into_iter());
        for (body, found) in [
            ("In one or two sentences: bees dance.", true),
            ("ONE, or two\nsentences!", true),
            ("why do they dance", true),
            ("Why do they dance at all?", false),
            ("One or two bees dance.", false),
            ("They point the way.", false),
            ("", false),
        ] {
            let said = echo.find(&json!({"body": body}));
            assert_eq!(said.is_some(), found, "{body}: {said:?}");
        }
        assert_eq!(echo.find(&json!({})), None);
    }
}
