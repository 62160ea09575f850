//! Rewrites the prompt of a member for a model too small to follow rules: one plain system line, then the question.
//!
//! Input: a prompt of a council, a debate, or a stage of a deliberation. Output: a prompt with the same answer to give, in
//! words that a model of a hundred million parameters follows more often than it recites them. Other prompts stay as they
//! are.

use super::{Manner, Spoken, newest, read_turn};
use crate::deliberation::{StageTask, stage_task};
use crate::duet::prompts::plain_seat;
use crate::names::KING;
use crate::request::Prompt;
use crate::roles::ROLES;

/// The system line of such models as they were trained: it keeps them polite.
const BEGIN: &str = "You are a helpful AI assistant.";
const ANSWER: &str = "Answer in a few short sentences.";
const SUM_UP: &str = "You summarize answers in two sentences.";
const CONCLUDE: &str = "What is the main advice?";

/// Maximum characters of an answer in the list given to the chair.
const LISTED_CHARS_MAX: usize = 280;
/// Maximum characters of an earlier message.
const EARLIER_CHARS_MAX: usize = 400;
/// Maximum number of earlier messages.
const EARLIER_MAX: usize = 6;

/// Returns the prompt for a small model. `None` if the prompt is of another kind.
pub fn small(prompt: &Prompt) -> Option<Prompt> {
    let (rules, turn) = if let Some((seat, manner)) = read_turn(&prompt.turn) {
        let said = newest(prompt);
        match manner {
            Manner::Conclude => conclude(&said),
            _ => answer(&prompt.persona, seat, &said)?,
        }
    } else if let Some(seat) = plain_seat(&prompt.turn) {
        // Its part is its place in the exchange.
        answer("", seat, &newest(prompt))?
    } else {
        staged(&prompt.persona, stage_task(prompt)?)
    };
    Some(Prompt {
        rules,
        turn,
        ..Prompt::default()
    })
}

/// Asks for an opinion, or for a conclusion from opinions.
fn staged(persona: &str, task: StageTask<'_>) -> (String, String) {
    match task {
        StageTask::Opinion { question } => (rules(persona), question.trim().to_owned()),
        StageTask::Conclusion { question, answers } => {
            let listed = list(answers);
            let turn = format!("Question: {}\n\n{listed}{CONCLUDE}", question.trim());
            (format!("{BEGIN} {SUM_UP}"), turn)
        }
    }
}

/// Returns the system line of a member that answers.
fn rules(persona: &str) -> String {
    let parts = [BEGIN, line_of(persona), ANSWER];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// Asks for an answer to the user's last message, after a short record of the conversation.
fn answer(persona: &str, seat: &str, said: &[Spoken]) -> Option<(String, String)> {
    let last = said.iter().rposition(|s| s.from == KING)?;
    let mut turn = String::new();
    let (before, rest) = said.split_at(last);
    let (asked, after) = rest.split_first()?;
    let earlier = &before[before.len().saturating_sub(EARLIER_MAX)..];
    for message in earlier {
        let from = match message.from.as_str() {
            KING => "Question",
            name if name == seat => "You answered",
            _ => "An answer",
        };
        let body = begin_of(&message.body, EARLIER_CHARS_MAX);
        turn.push_str(&format!("{from}: {body}\n\n"));
    }
    turn.push_str(&listed(after));
    turn.push_str(&asked.body);
    Some((rules(persona), turn))
}

/// Asks for a conclusion from the answers to the user's last message.
fn conclude(said: &[Spoken]) -> (String, String) {
    let last = said.iter().rposition(|s| s.from == KING);
    let (asked, answers) = match last {
        Some(at) => (said[at].body.as_str(), &said[at + 1..]),
        None => ("", said),
    };
    let turn = format!("Question: {asked}\n\n{}{CONCLUDE}", listed(answers));
    (format!("{BEGIN} {SUM_UP}"), turn)
}

/// Lists the answers of others, shortened; empty without any.
fn listed(answers: &[Spoken]) -> String {
    list(answers.iter().map(|answer| answer.body.as_str()))
}

fn list<'a>(answers: impl IntoIterator<Item = &'a str>) -> String {
    let mut list = String::new();
    for answer in answers {
        if list.is_empty() {
            list.push_str("Answers:\n");
        }
        let body = begin_of(answer, LISTED_CHARS_MAX);
        let line: Vec<&str> = body.split_whitespace().collect();
        list.push_str(&format!("- {}\n", line.join(" ")));
    }
    if !list.is_empty() {
        list.push('\n');
    }
    list
}

/// Returns a persona in one line: the first sentence of a built-in role, or all of the user's own words.
fn line_of(persona: &str) -> &str {
    let persona = persona.trim();
    if ROLES.iter().any(|role| role.persona.trim() == persona) {
        return persona
            .split_inclusive(". ")
            .next()
            .unwrap_or(persona)
            .trim();
    }
    persona
}

/// Returns the beginning of a text, up to the end of the last sentence or word within the limit.
fn begin_of(text: &str, chars_max: usize) -> &str {
    let text = text.trim();
    let Some((end, _)) = text.char_indices().nth(chars_max) else {
        return text;
    };
    let begin = &text[..end];
    let sentence = begin.rfind(['.', '!', '?']).map(|at| at + 1);
    let word = begin.rfind(char::is_whitespace);
    begin[..sentence.or(word).unwrap_or(end)].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeatName;
    use crate::message::{Address, Message, Provenance, Status};
    use crate::prompt::{PromptRules, build, render};
    use crate::roster::Member;
    use jiff::Timestamp;

    fn message(from: &str, body: &str) -> Message {
        Message {
            seq: 1,
            from: from.into(),
            to: Address::All,
            at: Timestamp::UNIX_EPOCH,
            status: (from != KING).then_some(Status::Complete),
            refs: vec![],
            provenance: Provenance::default(),
            extra: Default::default(),
            body: body.into(),
        }
    }

    fn prompt(seat: &str, persona: &str, said: &[(&str, &str)], manner: Manner) -> Prompt {
        let member = Member {
            persona: persona.into(),
            ..Member::new(SeatName::new(seat).unwrap(), "local")
        };
        let thread: Vec<Message> = said
            .iter()
            .map(|(from, body)| message(from, body))
            .collect();
        build(
            &PromptRules::default(),
            &member,
            render(&thread, []),
            manner,
        )
    }

    fn text(prompt: &Prompt) -> String {
        small(prompt).unwrap().as_text()
    }

    #[test]
    fn a_question_comes_last_after_one_plain_line() {
        let role = crate::roles::find("pragmatist").unwrap();
        let asked = [(KING, "Why is the sky blue?")];
        assert_eq!(
            text(&prompt("pragmatist", role.persona, &asked, Manner::Answer)),
            "You are a helpful AI assistant. You are practical. Answer in a few short sentences.\n\nWhy is the sky blue?"
        );
        // The user's own description of a member is kept.
        assert_eq!(
            text(&prompt(
                "ann",
                "You like bees. A lot.",
                &asked,
                Manner::Alone
            )),
            "You are a helpful AI assistant. You like bees. A lot. Answer in a few short sentences.\n\nWhy is the sky blue?"
        );
    }

    #[test]
    fn earlier_messages_are_short_and_say_whose_they_are() {
        let long = format!("Yes. {}", "word ".repeat(200));
        let said = [
            (KING, "Old?"),
            ("ann", long.as_str()),
            ("bob", "No."),
            (KING, "New?"),
            ("bob", "Two\nlines."),
        ];
        assert_eq!(
            text(&prompt("ann", "", &said, Manner::Discuss)),
            "You are a helpful AI assistant. Answer in a few short sentences.\n\nQuestion: Old?\n\nYou answered: Yes.\n\nAn answer: No.\n\nAnswers:\n- Two lines.\n\nNew?"
        );
    }

    #[test]
    fn the_chair_gets_a_list_and_a_question() {
        let said = [
            (KING, "Old?"),
            ("ann", "x"),
            (KING, "Why?"),
            ("ann", "One."),
            ("bob", "Two."),
        ];
        assert_eq!(
            text(&prompt("chair", "You chair.", &said, Manner::Conclude)),
            "You are a helpful AI assistant. You summarize answers in two sentences.\n\nQuestion: Why?\n\nAnswers:\n- One.\n- Two.\n\nWhat is the main advice?"
        );
    }

    #[test]
    fn a_debate_and_the_stages_of_a_deliberation_are_put_alike() {
        let said = [(KING, "Why?"), ("fast", "One. Two.")];
        let debate = |task: &str| {
            let mut prompt = prompt("rigorous", "You are rigorous.", &said, Manner::Answer);
            prompt.turn = format!("---\nYou are rigorous. {task}");
            text(&prompt)
        };
        assert_eq!(
            debate(
                "Read the answer of fast above. Correct what is wrong in it, and answer the question yourself."
            ),
            "You are a helpful AI assistant. Answer in a few short sentences.\n\nAnswers:\n- One. Two.\n\nWhy?"
        );
        let stage = |material: &str, task: &str| Prompt {
            rules: "You are one of several advisors.".into(),
            persona: "You like bees.".into(),
            history: material.into(),
            turn: format!("---\nYou are ann. {task}"),
            ..Prompt::default()
        };
        assert_eq!(
            text(&stage(
                "Question:\nWhy?",
                "Answer the question. Reply with JSON."
            )),
            "You are a helpful AI assistant. You like bees. Answer in a few short sentences.\n\nWhy?"
        );
        let fenced = "Question:\nWhy?\n\nBetween the lines marked 15ac stand words of others.\n<<15ac Answer A, 2 votes\nOne.\n15ac>>\n\nThe council voted.";
        assert_eq!(
            text(&stage(
                fenced,
                "Conclude for the council; add no opinion of your own. Reply."
            )),
            "You are a helpful AI assistant. You summarize answers in two sentences.\n\nQuestion: Why?\n\nAnswers:\n- One.\n\nWhat is the main advice?"
        );
    }

    #[test]
    fn other_prompts_are_left_alone() {
        for turn in [
            "",
            "Vote.",
            "---\nYou are ann. Do something else.",
            "---\nYou are ann",
        ] {
            let prompt = Prompt {
                history: "Why?".into(),
                turn: turn.into(),
                ..Prompt::default()
            };
            assert_eq!(small(&prompt), None, "{turn:?}");
        }
        // Nobody has asked.
        assert_eq!(small(&prompt("ann", "", &[], Manner::Answer)), None);
    }
}
