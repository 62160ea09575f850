//! Detects echoes of a small model: a post that repeats its instructions, or a post that it was shown.

use serde_json::Value;

/// Consecutive words that count as an echo of the instructions.
const RUN: usize = 4;

/// The instructions and posts given to a small model, to compare its answer with.
#[derive(Clone, Debug, Default)]
pub(super) struct Echo {
    instructions: Vec<String>,
    posts: Vec<Vec<String>>,
}

impl Echo {
    pub(super) fn of<'a>(instructions: &str, posts: impl Iterator<Item = &'a str>) -> Self {
        Self {
            instructions: words(instructions),
            posts: posts.map(words).filter(|post| !post.is_empty()).collect(),
        }
    }

    /// Returns the text that a call repeats, if any.
    pub(super) fn find(&self, arguments: &Value) -> Option<&'static str> {
        let body = words(arguments["body"].as_str().unwrap_or_default());
        let told = |run: &[String]| self.instructions.windows(RUN).any(|known| known == run);
        if body.windows(RUN).any(told) {
            return Some("the post repeats its instructions");
        }
        let again = self.posts.contains(&body);
        again.then_some("the post repeats another word for word")
    }
}

/// Splits a text into words, without case and punctuation.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
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
