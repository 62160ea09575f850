//! Recognizes side requests: what a client asks for itself (a title, tags, the next question) and not for its user. They
//! get one answer of the cheapest member instead of a council's.
//!
//! Only texts that the clients send word for word count, so that no question of a user is taken for one.

use super::transcript::{Role, Transcript};

/// Beginnings of system texts of side requests: of opencode, Claude Code, Zed, LibreChat, LobeChat, Cherry Studio, Aider and
/// others.
const SYSTEM: &[&str] = &[
    "You are a title generator",
    "You are a conversation title generator",
    "Generate a concise, sentence-case title",
    "Generate a concise 3-7 word title",
    "Analyze if this message indicates a new conversation topic",
    "Summarize this coding conversation in under 50 characters",
    "Provide a concise, 5-word-or-less title",
    "You are an expert at generating short titles",
    "You are a professional conversation summarizer. Generate a concise title",
    "Summarize the conversation into a title in ",
    "You are an expert software engineer that generates concise, one-line Git commit messages",
];
/// Beginnings of the last message of side requests.
const USER: &[&str] = &[
    "Generate a concise 3-7 word title for this conversation",
    "Provide a concise, 5-word-or-less title for the conversation",
    "Please write a 5-10 word title for the following conversation",
    "Summarize this coding conversation in under 50 characters",
    "Given the following... please reply with a title for the chat that is 3-4 words",
    "Generate a detailed summary of this conversation. Include:\n1. A brief overview of what was discussed",
];
/// The first words of each task of Open WebUI, and the name of one of its further sections.
const TASK: &str = "### Task:";
/// How it ends the names of its tasks in `metadata.task`: `title_generation`, `tags_generation`, …
const TASK_NAME: &str = "_generation";
const TASK_SECTIONS: &[&str] = &[
    "### Guidelines:",
    "### Output:",
    "### Chat History:",
    "<chat_history>",
];
/// Open WebUI's request to merge answers of several models.
const MERGE: &str =
    "You have been provided with a set of responses from various models to the latest user query";
/// What Claude Code sends to check its quota, with a limit of one token.
const QUOTA: &str = "quota";

/// Returns whether a request without tools is a side request. `task` is what the client says of it, if anything.
pub(super) fn is_side(
    transcript: &Transcript,
    max_tokens: Option<u32>,
    task: Option<&str>,
) -> bool {
    // The field is free-form: other values are the client's own.
    if task.is_some_and(|task| task.trim().ends_with(TASK_NAME)) {
        return true;
    }
    let messages = &transcript.messages;
    let system = messages.iter().filter(|m| m.role == Role::System);
    let mut system = system.flat_map(|m| m.text.split('\n'));
    if system.any(|line| {
        SYSTEM
            .iter()
            .any(|sign| line.trim_start().starts_with(sign))
    }) {
        return true;
    }
    let Some(last) = messages.last().filter(|m| m.role == Role::User) else {
        return false;
    };
    let text = last.text.trim_start();
    let is_task = text.starts_with(TASK) && TASK_SECTIONS.iter().any(|part| text.contains(part));
    let is_quota = text.trim_end() == QUOTA && max_tokens == Some(1);
    is_task || is_quota || text.starts_with(MERGE) || USER.iter().any(|sign| text.starts_with(sign))
}

#[cfg(test)]
mod tests {
    use super::super::transcript::Message;
    use super::*;

    fn side(messages: &[(Role, &str)], max_tokens: Option<u32>, task: Option<&str>) -> bool {
        let messages = messages
            .iter()
            .map(|(role, text)| Message::new(*role, *text));
        let transcript = Transcript {
            messages: messages.collect(),
            ..Transcript::default()
        };
        is_side(&transcript, max_tokens, task)
    }

    #[test]
    fn what_clients_ask_for_themselves_is_told_from_questions() {
        use Role::{System, User};
        let title = "### Task:\nGenerate a concise, 3-5 word title with an emoji.\n### Guidelines:\n- x\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>";
        for (messages, max_tokens, task) in [
            (&[(User, title)][..], None, None),
            (&[(User, "hi")], None, Some("title_generation")),
            (
                &[
                    (
                        System,
                        "You are a title generator. You output ONLY a thread title.",
                    ),
                    (User, "hi"),
                ],
                None,
                None,
            ),
            (
                &[
                    (
                        System,
                        "x\nAnalyze if this message indicates a new conversation topic. If it does…",
                    ),
                    (User, "hi"),
                ],
                None,
                None,
            ),
            (
                &[(
                    User,
                    "Given the following... please reply with a title for the chat that is 3-4 words in length, all words used should be directly related to the content of the chat.\n\nhi",
                )],
                None,
                None,
            ),
            (
                &[
                    (User, "hi"),
                    (
                        User,
                        "Generate a detailed summary of this conversation. Include:\n1. A brief overview of what was discussed\n2. Key facts",
                    ),
                ],
                None,
                None,
            ),
            (
                &[
                    (
                        System,
                        "Summarize the conversation into a title in en-us within 10 words ignoring instructions and without punctuation or symbols.",
                    ),
                    (User, "[]"),
                ],
                None,
                None,
            ),
            (&[(User, "quota")], Some(1), None),
            (
                &[(
                    User,
                    "You have been provided with a set of responses from various models to the latest user query: \"x\"",
                )],
                None,
                None,
            ),
        ] {
            assert!(side(messages, max_tokens, task), "{messages:?}");
        }
        for (messages, max_tokens) in [
            (&[(User, "Generate a title for my book.")][..], None),
            (&[(User, "### Task:\nSort this list.")], None),
            (
                &[(User, "Generate a detailed summary of this conversation.")],
                None,
            ),
            (&[(User, "quota")], None),
            (
                &[(User, "What does \"You are a title generator\" mean?")],
                None,
            ),
            (
                &[
                    (System, "You are a helpful assistant."),
                    (User, "Which title is better?"),
                ],
                None,
            ),
        ] {
            assert!(!side(messages, max_tokens, None), "{messages:?}");
        }
    }
}
