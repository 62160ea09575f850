//! Builds the prompt of a member: rules, persona, history, and its turn.
//!
//! Input: the rules of the council, the member, the history as text. Output: a [`Prompt`]. All prompt texts are in this
//! folder, and the personas in `roles/`. They are short so that small models can follow them.

pub mod folder;
mod history;
mod small;

pub(crate) use history::END as HISTORY_END;
pub use history::{History, Spoken, imitated, newest, parse, render};
pub use small::small;

use crate::ids::SeatName;
use crate::request::Prompt;
use crate::roster::Member;
use crate::speech::PASS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The beginning of every prompt, unless `council.preamble` overrides it.
pub const PREAMBLE: &str = include_str!("preamble.md");

/// Added to the rules of members that may not write.
const READ_ONLY: &str = "You may read files; change nothing.";

/// The rules that precede each member's persona.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptRules {
    /// The beginning: `council.preamble`.
    pub preamble: String,
    /// The phase prompt, such as `prompts.council`. May be empty.
    pub phase: String,
    /// Phase prompts of individual members, which replace the shared one.
    pub phase_of: BTreeMap<SeatName, String>,
    /// Whether to tell read-only members not to change files. Pointless for models without tools.
    pub say_read_only: bool,
    /// Maximum sentences of a conclusion.
    pub conclusion_sentences: u32,
}

impl Default for PromptRules {
    fn default() -> Self {
        Self {
            preamble: PREAMBLE.trim().to_owned(),
            phase: String::new(),
            phase_of: BTreeMap::new(),
            say_read_only: false,
            conclusion_sentences: 5,
        }
    }
}

/// The kind of turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// Answer the user, along with others.
    Answer,
    /// Answer the user, who asked only this member.
    Alone,
    /// Continue the discussion.
    Discuss,
    /// Conclude from the answers.
    Conclude,
}

/// Builds the prompt of one member. `history` comes from [`render`]; the members of a round share it.
pub fn build(rules: &PromptRules, member: &Member, history: History, manner: Manner) -> Prompt {
    let phase = rules.phase_of.get(&member.name).unwrap_or(&rules.phase);
    let read_only = if rules.say_read_only && !member.writable {
        READ_ONLY
    } else {
        ""
    };
    let mut shared = String::new();
    for part in [rules.preamble.trim(), read_only, phase.trim()] {
        if !shared.is_empty() && !part.is_empty() {
            shared.push('\n');
        }
        shared.push_str(part);
    }
    Prompt {
        rules: shared,
        persona: member.persona.trim().to_owned(),
        history: history.text,
        starts: history.starts,
        turn: turn(&member.name, manner, rules.conclusion_sentences),
    }
}

/// Returns the end of the prompt: the mark after the history, and who speaks next.
fn turn(seat: &SeatName, manner: Manner, sentences: u32) -> String {
    format!(
        "{}\nYou are {seat}. {}",
        history::END,
        task(manner, sentences)
    )
}

/// Returns the task of the member.
fn task(manner: Manner, sentences: u32) -> String {
    match manner {
        Manner::Answer => "Answer the question.".to_owned(),
        Manner::Alone => "You alone are asked. Answer the question.".to_owned(),
        Manner::Discuss => format!(
            "Continue the discussion. Respond to the points raised above. If you have nothing to add, say only: {PASS}."
        ),
        Manner::Conclude => format!(
            "Conclude in at most {sentences} sentences: what the council recommends, why, and who disagreed."
        ),
    }
}

/// Reads the end of a prompt that [`build`] made: the member, and its kind of turn. `None` for other prompts.
fn read_turn(turn: &str) -> Option<(&str, Manner)> {
    let rest = turn.strip_prefix(history::END)?;
    let (seat, said) = rest.strip_prefix("\nYou are ")?.split_once(". ")?;
    let digits = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    let manners = [
        Manner::Answer,
        Manner::Alone,
        Manner::Discuss,
        Manner::Conclude,
    ];
    let manner = manners
        .into_iter()
        .find(|manner| digits(&task(*manner, 0)) == digits(said))?;
    Some((seat, manner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, persona: &str) -> Member {
        Member {
            persona: persona.into(),
            ..Member::new(SeatName::new(name).unwrap(), "local")
        }
    }

    #[test]
    fn a_fresh_question_is_short_and_in_order() {
        let rules = PromptRules {
            phase: "Be kind.".into(),
            ..PromptRules::default()
        };
        let prompt = build(
            &rules,
            &member("codex", "You doubt.\n"),
            "Why?".into(),
            Manner::Answer,
        );
        let text = prompt.as_text();
        assert!(text.starts_with(PREAMBLE.trim()));
        assert!(
            text.ends_with(
                "Be kind.\n\nYou doubt.\n\nWhy?\n\n---\nYou are codex. Answer the question."
            ),
            "{text}"
        );
        assert!(text.split_whitespace().count() < 80, "{text}");
    }

    #[test]
    fn a_phase_of_ones_own_replaces_the_shared_one() {
        let codex = member("codex", "");
        let mut rules = PromptRules {
            preamble: "P".into(),
            phase: "shared".into(),
            say_read_only: true,
            ..PromptRules::default()
        };
        rules.phase_of.insert(codex.name.clone(), "own".into());
        let own = build(&rules, &codex, History::default(), Manner::Alone);
        assert_eq!(own.rules, format!("P\n{READ_ONLY}\nown"));
        let mut writer = member("claude", "");
        writer.writable = true;
        let shared = build(&rules, &writer, History::default(), Manner::Discuss);
        assert_eq!(shared.rules, "P\nshared");
    }
}
