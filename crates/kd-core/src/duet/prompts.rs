//! Builds the prompts of a debate. The texts are beside this file, one for each part; they are short so that small
//! models can follow them.
//!
//! Input: the two members, the transcript and the part. Output: a [`Prompt`]. The transcript is rendered like a
//! council's history, in which a body cannot imitate another member's line.

use crate::ids::SeatName;
use crate::prompt::{self, HISTORY_END, History, PromptRules};
use crate::request::Prompt;
use crate::roster::Member;
use crate::seating::LOCAL;

/// Tasks of the built-in model, which only repeats instructions about tags.
const FIRST_PLAIN: &str = include_str!("prompts/first-plain.md");
const VERIFY_PLAIN: &str = include_str!("prompts/verify-plain.md");
const DECIDE_PLAIN: &str = include_str!("prompts/decide-plain.md");
const RULES: &str = include_str!("prompts/rules.md");
pub(super) const FAST: &str = include_str!("prompts/fast.md");
pub(super) const RIGOROUS: &str = include_str!("prompts/rigorous.md");

/// The part of a member in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Reply first.
    First,
    /// Answer the other member's message.
    Debate {
        /// The number of the message it would write, and the maximum.
        n: u32,
        max: u32,
    },
    /// Check an answer that the user has already read.
    Verify,
    /// Answer, because the exchange is over.
    Decide {
        /// The reason why it is over.
        why: &'a str,
    },
    /// Answer, because the other member failed.
    Alone,
}

/// Builds the prompt of one turn.
pub(super) fn build(
    rules: &PromptRules,
    member: &Member,
    other: &SeatName,
    history: History,
    part: Part<'_>,
) -> Prompt {
    let plain = member.backend == LOCAL;
    let (text, n, max, why) = match part {
        Part::First if plain => (FIRST_PLAIN, 0, 0, ""),
        Part::Verify if plain => (VERIFY_PLAIN, 0, 0, ""),
        Part::Decide { .. } | Part::Alone if plain => (DECIDE_PLAIN, 0, 0, ""),
        Part::First => (include_str!("prompts/first.md"), 0, 0, ""),
        Part::Debate { n, max } => (include_str!("prompts/debate.md"), n, max, ""),
        Part::Verify => (include_str!("prompts/verify.md"), 0, 0, ""),
        Part::Decide { why } => (include_str!("prompts/decide.md"), 0, 0, why),
        Part::Alone => (include_str!("prompts/alone.md"), 0, 0, ""),
    };
    let fill = |text: &str| {
        text.trim()
            .replace("{me}", member.name.as_str())
            .replace("{other}", other.as_str())
            .replace("{n}", &n.to_string())
            .replace("{max}", &max.to_string())
            .replace("{why}", why)
    };
    // Persona, phase prompts and write permission are the same as in every council.
    let mut prompt = prompt::build(rules, member, history, prompt::Manner::Answer);
    if !plain && !matches!(part, Part::Decide { .. } | Part::Alone) {
        prompt.rules = format!("{}\n{}", prompt.rules, fill(RULES))
            .trim()
            .to_owned();
    }
    prompt.turn = format!("{HISTORY_END}\n{}", fill(text));
    prompt
}

/// Reads the end of a prompt that [`build`] made for the built-in model: the member. `None` for other prompts.
pub(crate) fn plain_seat(turn: &str) -> Option<&str> {
    let rest = turn.strip_prefix(HISTORY_END)?;
    let (seat, task) = rest.strip_prefix("\nYou are ")?.split_once(". ")?;
    [FIRST_PLAIN, VERIFY_PLAIN, DECIDE_PLAIN]
        .into_iter()
        .filter_map(|plain| plain.trim().strip_prefix("You are {me}. "))
        .any(|plain| match plain.split_once("{other}") {
            Some((before, after)) => task.starts_with(before) && task.ends_with(after),
            None => task == plain,
        })
        .then_some(seat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_model_hears_nothing_of_tags() {
        let mut member = super::super::tests::member("fast");
        member.backend = LOCAL.into();
        let other = SeatName::new("rigorous").unwrap();
        for part in [
            Part::First,
            Part::Verify,
            Part::Decide { why: "w" },
            Part::Alone,
        ] {
            let prompt = build(
                &PromptRules::default(),
                &member,
                &other,
                "Why?".into(),
                part,
            );
            let text = prompt.as_text();
            assert!(!text.contains("tag") && !text.contains("king"), "{text}");
            assert_eq!(plain_seat(&prompt.turn), Some("fast"), "{text}");
        }
    }

    #[test]
    fn every_text_is_short_and_filled() {
        let member = super::super::tests::member("fast");
        let other = SeatName::new("rigorous").unwrap();
        for part in [
            Part::First,
            Part::Debate { n: 2, max: 6 },
            Part::Verify,
            Part::Decide { why: "it is late" },
            Part::Alone,
        ] {
            let prompt = build(
                &PromptRules::default(),
                &member,
                &other,
                "Why?".into(),
                part,
            );
            let text = prompt.as_text();
            assert!(!text.contains('{'), "{text}");
            assert!(text.contains("\nYou are fast. "), "{text}");
            assert!(text.split_whitespace().count() < 190, "{text}");
            assert_eq!(plain_seat(&prompt.turn), None, "{text}");
            let told = text.contains("<council>");
            assert_eq!(
                told,
                !matches!(part, Part::Decide { .. } | Part::Alone),
                "{text}"
            );
        }
    }
}
