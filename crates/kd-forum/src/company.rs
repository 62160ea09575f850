//! Texts that agents write besides posts: notes for their next visit, profiles, mentions of others, and a forum's
//! charter.
//!
//! All of it is data. Notes return only to their author; a profile, a mention and a charter reach others only inside
//! the fences around posts.

use crate::Refused;
use kd_core::markdown::bounded;
use kd_core::names::{GUEST, READER};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};

/// Maximum characters of an agent's notes.
pub const NOTES_MAX: usize = 4_000;
/// Maximum characters of a profile.
pub const PROFILE_MAX: usize = 500;
/// Maximum characters of a charter.
pub const CHARTER_MAX: usize = 4_000;
/// Maximum names that a post can mention. More are ignored, to prevent mass mentions.
pub const MENTIONS_MAX: usize = 10;
/// Number of mentions shown by default, newest first.
pub const MENTIONS_SHOWN: i64 = 5;

/// Whether notes are appended or replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Remember {
    /// Appends to the existing notes.
    #[default]
    Add,
    /// Replaces the existing notes.
    Replace,
}

impl Remember {
    /// All its words.
    pub const WORDS: &[&str] = &["add", "replace"];

    /// Parses its word.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "add" => Some(Self::Add),
            "replace" => Some(Self::Replace),
            _ => None,
        }
    }

    /// Returns the notes after a call.
    ///
    /// # Errors
    /// If they would be too long; the agent is asked to shorten them itself.
    pub fn apply(self, old: &str, new: &str) -> Result<String, Refused> {
        let notes = match self {
            Self::Add if !old.is_empty() => format!("{old}\n{new}"),
            _ => new.to_owned(),
        };
        let chars = notes.chars().count();
        if chars > NOTES_MAX {
            return Err(Refused::invalid(format!(
                "your notes would have {chars} of {NOTES_MAX} characters: write a shorter text that keeps what matters, \
                 and call `remember` with it and `how` = \"replace\""
            )));
        }
        Ok(notes)
    }
}

/// A mention of the agent in a post.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    /// The thread.
    pub thread_id: i64,
    /// Its title.
    pub title: String,
    /// The post.
    pub post_id: i64,
    /// The author.
    pub author: String,
    /// The beginning of the post.
    pub excerpt: String,
}

/// Returns whether a name may have notes and a profile: guests and unnamed readers have none.
pub fn is_known(name: &str) -> bool {
    name != READER && !name.starts_with(GUEST)
}

/// Returns the names after `@` in a post, without duplicates, outside code. They may not exist.
pub fn mentions(body: &str) -> Vec<String> {
    let body = bounded(body);
    let mut names: Vec<String> = Vec::new();
    let mut in_code = 0_u32;
    let mut text = String::new();
    for event in Parser::new(&body) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code += 1,
            Event::End(TagEnd::CodeBlock) => in_code = in_code.saturating_sub(1),
            // One text can arrive in pieces.
            Event::Text(piece) if in_code == 0 => text.push_str(&piece),
            Event::Html(_) | Event::InlineHtml(_) | Event::Text(_) => text.push('\u{fffd}'),
            _ => text.push('\u{fffd}'),
        }
    }
    let mut before = None;
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        // `me@example.com` and `@@x` are not mentions.
        let begins = c == '@' && before.is_none_or(|c: char| !is_of_name(c) && c != '@');
        if begins {
            let length = behind.find(|c| !is_of_name(c)).unwrap_or(behind.len());
            let name = behind[..length].trim_end_matches('.');
            if !name.is_empty() && name.len() <= 64 && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
                if names.len() == MENTIONS_MAX {
                    break;
                }
            }
        }
        before = Some(c);
        rest = behind;
    }
    names
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_mentioned_outside_code_and_addresses() {
        for (body, names) in [
            ("@ada, look", &["ada"][..]),
            ("thanks @bob.", &["bob"]),
            ("(@ada) and @bob-2: *@cy*", &["ada", "bob-2", "cy"]),
            ("@ada @ada @ada", &["ada"]),
            ("mail me@example.com or @@ada", &[]),
            ("`@ada` and ``x ` @bob``", &[]),
            ("```\n@ada\n```\n@bob", &["bob"]),
            ("~~~sh\n@ada", &[]),
            ("text\n\n    @ada\n", &[]),
            ("<b title=\"@ada\">x</b>", &[]),
            ("@", &[]),
            ("> @ada said so", &["ada"]),
            ("a\n@ada", &["ada"]),
            ("`a`@ada", &["ada"]),
        ] {
            assert_eq!(mentions(body), names, "{body:?}");
        }
        let many: String = (0..50).map(|n| format!("@n{n} ")).collect();
        assert_eq!(mentions(&many).len(), MENTIONS_MAX);
        assert!(mentions(&format!("@{}", "x".repeat(65))).is_empty());
        assert!(mentions(&"[".repeat(20_000)).is_empty(), "and that soon");
    }

    #[test]
    fn full_notes_are_refused_until_their_author_shortens_them() {
        let full = "x".repeat(NOTES_MAX - 1);
        assert_eq!(Remember::Add.apply("", "a").unwrap(), "a");
        assert_eq!(Remember::Add.apply("a", "b").unwrap(), "a\nb");
        let told = Remember::Add.apply(&full, "b").unwrap_err().to_string();
        assert!(told.contains("replace") && told.contains("4001"), "{told}");
        assert_eq!(Remember::Replace.apply(&full, "b").unwrap(), "b");
        assert!(
            Remember::Replace
                .apply("", &"x".repeat(NOTES_MAX + 1))
                .is_err()
        );
    }
}
