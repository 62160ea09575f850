//! Memory across questions: preferences, the domain, and the results of earlier sessions. Nothing is kept unless the
//! user opted in (`deliberation.memory.longTerm`).

use super::LINE_CHARS_MAX;
use crate::clean::clean_line;
use crate::ids::ThreadId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of sessions kept.
const SESSIONS_MAX: usize = 50;
/// Maximum number of sessions in a prompt.
const TOLD_MAX: usize = 3;

/// Memory across questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LongTerm {
    /// The user's preferences, by name.
    pub preferences: BTreeMap<String, String>,
    /// The domain of this project.
    pub domain: String,
    /// The results of earlier questions, oldest first.
    pub sessions: Vec<Session>,
}

/// The result of an earlier question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Its thread.
    pub thread: ThreadId,
    /// The question, in one line.
    pub question: String,
    /// The decision, in one line.
    pub answer: String,
    /// The message that states it.
    pub message: Option<u32>,
}

impl LongTerm {
    /// Returns whether the memory is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the result of a question; drops the oldest beyond the maximum.
    pub fn remember(&mut self, mut session: Session) {
        session.question = clean_line(&session.question, LINE_CHARS_MAX);
        session.answer = clean_line(&session.answer, LINE_CHARS_MAX);
        self.sessions
            .retain(|s| s.thread != session.thread || s.message != session.message);
        self.sessions.push(session);
        if self.sessions.len() > SESSIONS_MAX {
            self.sessions.remove(0);
        }
    }

    /// Returns the text for prompts; empty if the memory is empty.
    pub fn background(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        if !self.domain.is_empty() {
            lines.push(format!(
                "The project: {}",
                clean_line(&self.domain, LINE_CHARS_MAX)
            ));
        }
        for (name, value) in &self.preferences {
            lines.push(format!(
                "The king's preference, {}: {}",
                clean_line(name, 60),
                clean_line(value, LINE_CHARS_MAX)
            ));
        }
        let from = self.sessions.len().saturating_sub(TOLD_MAX);
        for session in &self.sessions[from..] {
            lines.push(format!(
                "Earlier, on “{}”, the council said: {}",
                session.question, session.answer
            ));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_bounded_and_told_newest() {
        let mut memory = LongTerm::default();
        assert!(memory.is_empty() && memory.background().is_empty());
        for n in 0..60u32 {
            memory.remember(Session {
                thread: ThreadId(format!("council-{n}")),
                question: format!("question {n}\nwith a second line"),
                answer: "yes".into(),
                message: Some(n),
            });
        }
        memory.preferences.insert("language".into(), "Rust".into());
        assert_eq!(memory.sessions.len(), SESSIONS_MAX);
        let told = memory.background();
        assert!(
            told.contains("question 59 with") && !told.contains("question 56"),
            "{told}"
        );
        assert!(told.contains("language: Rust"));
    }
}
