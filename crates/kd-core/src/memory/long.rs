//! What is remembered across questions: preferences, the domain, and how earlier sessions ended. Nothing is kept unless
//! the king opted in (`deliberation.memory.longTerm`).

use super::LINE_CHARS_MAX;
use crate::clean::clean_line;
use crate::ids::ThreadId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most sessions that are kept.
const SESSIONS_MAX: usize = 50;
/// The most sessions that a prompt tells of.
const TOLD_MAX: usize = 3;

/// What is remembered across questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LongTerm {
    /// What the king likes, by name.
    pub preferences: BTreeMap<String, String>,
    /// What this project is about.
    pub domain: String,
    /// How earlier questions ended, oldest first.
    pub sessions: Vec<Session>,
}

/// How an earlier question ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Its thread.
    pub thread: ThreadId,
    /// The question, in one line.
    pub question: String,
    /// What was decided, in one line.
    pub answer: String,
    /// The message that says so.
    pub message: Option<u32>,
}

impl LongTerm {
    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes in how a question ended; the oldest goes.
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

    /// What members are told; empty where nothing is remembered.
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
