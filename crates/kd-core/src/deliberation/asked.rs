//! Reads the prompt of a stage: what a member is asked, for models that need it in fewer words.

use super::stages::{CONCLUDE_TASK, OPINION_TASK};
use crate::request::Prompt;

/// The request of a stage to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StageTask<'a> {
    /// To answer the question without other answers.
    Opinion {
        /// The question.
        question: &'a str,
    },
    /// To conclude from answers.
    Conclusion {
        /// The question.
        question: &'a str,
        /// The answers, in the order of the prompt.
        answers: Vec<&'a str>,
    },
}

/// Reads a prompt of a deliberation. `None` for other stages and other prompts.
pub(crate) fn stage_task(prompt: &Prompt) -> Option<StageTask<'_>> {
    let (_, task) = prompt
        .turn
        .strip_prefix("---\nYou are ")?
        .split_once(". ")?;
    let material: &str = &prompt.history;
    let question = material.strip_prefix("Question:\n");
    let question = question.or_else(|| {
        let rest = material.strip_prefix("Background:\n")?;
        Some(rest.split_once("\n\nQuestion:\n")?.1)
    })?;
    if task.starts_with(OPINION_TASK) {
        return Some(StageTask::Opinion { question });
    }
    if !task.starts_with(CONCLUDE_TASK) {
        return None;
    }
    let (question, fenced) = question.rsplit_once("\n\nBetween the lines marked ")?;
    let (nonce, fenced) = fenced.split_once(' ')?;
    let (begin, end) = (format!("<<{nonce} "), format!("\n{nonce}>>"));
    let mut answers = Vec::new();
    let mut rest = fenced;
    while let Some((_, fence)) = rest.split_once(begin.as_str()) {
        let (_, text) = fence.split_once('\n')?;
        let (answer, after) = text.split_once(end.as_str())?;
        answers.push(answer);
        rest = after;
    }
    Some(StageTask::Conclusion { question, answers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliberation::blind;

    fn prompt(material: &str, task: &str) -> Prompt {
        Prompt {
            rules: "R".into(),
            history: material.into(),
            turn: format!("---\nYou are ann. {task}"),
            ..Prompt::default()
        }
    }

    #[test]
    fn opinions_and_conclusions_are_read_from_their_prompts() {
        let opinion = prompt(
            "Background:\nB\n\nQuestion:\nWhy?",
            "Answer the question. Reply.",
        );
        let question = "Why?";
        assert_eq!(stage_task(&opinion), Some(StageTask::Opinion { question }));
        let items = [("Answer A, 2 votes", "One.\n\nMore."), ("Answer B", "Two.")];
        let items = items.map(|(label, text)| (label.to_owned(), text.to_owned()));
        let fenced = blind::fence("155003339ac5", &items);
        let material = format!("Question:\nWhy?\n\n{fenced}\nThe council voted.");
        let chair = prompt(&material, &format!("{CONCLUDE_TASK}. Reply with JSON."));
        let answers = vec!["One.\n\nMore.", "Two."];
        let found = stage_task(&chair);
        assert_eq!(found, Some(StageTask::Conclusion { question, answers }));
        // Others are not rewritten.
        for task in ["Vote.", "Which of these answers mean the same?"] {
            assert_eq!(stage_task(&prompt(&material, task)), None);
        }
        assert_eq!(stage_task(&prompt("Why?", OPINION_TASK)), None);
    }
}
