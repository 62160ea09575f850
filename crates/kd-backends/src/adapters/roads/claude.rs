//! Claude Code, stream-json in both directions. A process is asked again after `/clear`, which begins a new session in
//! it; versions that do not know that command are not asked again.

use super::{Question, Road, Talk};
use serde_json::{Value, json};

/// See the file's header.
pub(in super::super) static CLAUDE: Road = Road {
    dialect: "claude",
    talk: || Box::<Claude>::default(),
};

#[derive(Default)]
struct Claude {
    /// Whether the process was asked before, so that its session is not empty.
    used: bool,
    /// Whether the program has said anything: one that does not know this form ends without a word.
    heard: bool,
    /// The prompt that waits until the session is emptied.
    waiting: Option<String>,
    /// The session was emptied.
    emptied: bool,
    /// The session was not emptied when it was told to be.
    stale: bool,
    interrupts: u32,
}

impl Talk for Claude {
    fn ask(&mut self, question: Question) -> Vec<Value> {
        if !std::mem::replace(&mut self.used, true) {
            return vec![user(&question.prompt)];
        }
        self.waiting = Some(question.prompt);
        self.emptied = false;
        vec![user("/clear")]
    }

    fn hear(&mut self, message: &Value) -> Vec<Value> {
        self.heard = true;
        match message["type"].as_str() {
            Some("conversation_reset") => self.emptied = true,
            Some("result") => match (self.emptied, self.waiting.take()) {
                (true, Some(prompt)) => return vec![user(&prompt)],
                (false, Some(prompt)) => {
                    self.waiting = Some(prompt);
                    self.stale = true;
                }
                (_, None) => {}
            },
            // Only tools that were allowed beforehand are used.
            Some("control_request") => {
                let id = &message["request_id"];
                return vec![
                    json!({"type": "control_response", "response": {"subtype": "success", "request_id": id,
                    "response": {"behavior": "deny", "message": "not allowed in this council"}}}),
                ];
            }
            _ => {}
        }
        Vec::new()
    }

    fn asked(&self) -> bool {
        self.heard && self.waiting.is_none()
    }

    fn stop(&mut self) -> Vec<Value> {
        if !self.asked() {
            return Vec::new();
        }
        self.interrupts += 1;
        let id = format!("stop-{}", self.interrupts);
        vec![
            json!({"type": "control_request", "request_id": id, "request": {"subtype": "interrupt"}}),
        ]
    }

    fn fit(&self) -> bool {
        !self.stale
    }
}

fn user(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(prompt: &str) -> Question {
        Question {
            prompt: prompt.into(),
            model: None,
            effort: None,
            folder: "/".into(),
            writable: false,
            mode: None,
            server: None,
        }
    }

    #[test]
    fn the_second_question_comes_after_the_session_is_emptied() {
        let mut talk = Claude::default();
        assert_eq!(talk.ask(question("one")), [user("one")]);
        assert!(!talk.asked());
        assert_eq!(talk.hear(&json!({"type": "result"})), Vec::<Value>::new());
        assert!(talk.asked());
        assert_eq!(talk.ask(question("two")), [user("/clear")]);
        assert!(!talk.asked() && talk.stop().is_empty());
        talk.hear(&json!({"type": "conversation_reset"}));
        assert_eq!(talk.hear(&json!({"type": "result"})), [user("two")]);
        assert!(talk.asked() && talk.fit());
        assert_eq!(talk.stop()[0]["request"], json!({"subtype": "interrupt"}));
    }

    #[test]
    fn a_program_that_does_not_empty_its_session_is_never_asked_in_it() {
        let mut talk = Claude::default();
        talk.ask(question("one"));
        talk.ask(question("two"));
        assert_eq!(talk.hear(&json!({"type": "result"})), Vec::<Value>::new());
        assert!(!talk.asked() && !talk.fit());
    }
}
