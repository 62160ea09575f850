//! Claude Code, stream-json in both directions. A process is reused after `/clear`, which starts a new session in it;
//! versions that do not know this command are not reused.

use super::{Link, Question, Talk};
use crate::attachments;
use kd_core::media::Attachment;
use kd_core::request::Block;
use serde_json::{Value, json};

/// Claude Code's protocol; see the module docs.
pub(in super::super) static CLAUDE: Link = Link {
    dialect: "claude",
    talk: || Box::<Claude>::default(),
};

#[derive(Default)]
struct Claude {
    /// Whether the process answered a question before, so its session is not empty.
    used: bool,
    /// Whether the program has sent anything: one that does not know this form exits silently.
    heard: bool,
    /// The prompt to send once the session is cleared.
    waiting: Option<Value>,
    /// The session was cleared.
    emptied: bool,
    /// The session was not cleared as requested.
    stale: bool,
    interrupts: u32,
}

impl Talk for Claude {
    fn ask(&mut self, question: Question) -> Vec<Value> {
        let prompt = user(&question.files, &question.prompt, question.marks);
        if !std::mem::replace(&mut self.used, true) {
            return vec![prompt];
        }
        self.waiting = Some(prompt);
        self.emptied = false;
        vec![user(&[], &["/clear".into()], false)]
    }

    fn hear(&mut self, message: &Value) -> Vec<Value> {
        self.heard = true;
        match message["type"].as_str() {
            Some("conversation_reset") => self.emptied = true,
            Some("result") => match (self.emptied, self.waiting.take()) {
                (true, Some(prompt)) => return vec![prompt],
                (false, Some(prompt)) => {
                    self.waiting = Some(prompt);
                    self.stale = true;
                }
                (_, None) => {}
            },
            // Only pre-approved tools are used.
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

/// Builds a user message: files, then the blocks of the prompt. The program passes its blocks and marks to the service, which caches everything up to a mark:
/// the next question begins with the same blocks and pays only for reading them.
fn user(files: &[Attachment], blocks: &[Block], marks: bool) -> Value {
    let mut content = attachments::anthropic_blocks(files);
    let blocks = blocks.iter().map(|block| {
        let mut content = json!({"type": "text", "text": block.text});
        if marks && block.repeats {
            content["cache_control"] = json!({"type": "ephemeral"});
        }
        content
    });
    content.extend(blocks);
    json!({"type": "user", "message": {"role": "user", "content": content}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(prompt: &str) -> Question {
        Question {
            prompt: vec![prompt.into()],
            files: Vec::new(),
            marks: true,
            model: None,
            effort: None,
            folder: "/".into(),
            writable: false,
            mode: None,
            server: None,
            is_told_reads: false,
        }
    }

    #[test]
    fn the_second_question_comes_after_the_session_is_emptied() {
        let mut talk = Claude::default();
        let user = |text: &str| user(&[], &[text.into()], true);
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
    fn the_last_message_of_a_history_is_marked_and_nothing_else() {
        let mut asked = question("rules");
        asked
            .prompt
            .extend(["king: one", "ada: two", "turn"].map(Block::from));
        asked.prompt[2].repeats = true;
        let marked = |asked: &Question| -> Vec<bool> {
            let said = Claude::default().ask(asked.clone());
            let content = said[0]["message"]["content"].as_array().unwrap().clone();
            content
                .iter()
                .map(|c| c["cache_control"].is_object())
                .collect()
        };
        assert_eq!(marked(&asked), [false, false, true, false]);
        asked.marks = false;
        assert_eq!(marked(&asked), [false; 4]);
    }

    #[test]
    fn files_are_blocks_before_the_prompt() {
        let said = Claude::default().ask(Question {
            files: attachments::tests::files(),
            ..question("hi")
        });
        let content = &said[0]["message"]["content"];
        let kinds: Vec<&Value> = content
            .as_array()
            .unwrap()
            .iter()
            .map(|c| &c["type"])
            .collect();
        assert_eq!(kinds, ["text", "image", "text", "document", "text"]);
        assert_eq!(content[1]["source"]["data"], "iVBORw0KGgoA");
        assert_eq!(content[3]["source"]["media_type"], "application/pdf");
        assert_eq!(content[4]["text"], "hi");
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
