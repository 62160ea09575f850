//! Codex app-server: JSON-RPC without the version field. Each question has its own thread, which is not written to
//! disk (`ephemeral`) and is released afterwards.
//!
//! Codex names the service's cache after the thread, and a fork keeps the name. So the second question of a process
//! first creates an empty thread, the root, which is never asked anything: this question and all later ones are asked
//! in forks of it, which start as empty as new threads and share one cache. Codex keeps a root only if it has a name.
//! The root is not among the sessions that Codex lists, and is deleted when the process ends.

use super::{Link, Question, Talk};
use crate::attachments;
use serde_json::{Value, json};

/// Codex's protocol; see the module docs.
pub(in super::super) static CODEX: Link = Link {
    dialect: "codex-app-server",
    talk: || Box::<Codex>::default(),
};

#[derive(Default)]
struct Codex {
    /// The id of our last request.
    last: u64,
    /// Whether `initialize` is done.
    open: bool,
    /// The question that waits for `initialize` or for its thread.
    waiting: Option<Question>,
    thread: Option<String>,
    turn: Option<String>,
    asked: bool,
    root: Root,
}

/// The thread that later threads are forks of.
#[derive(Default)]
enum Root {
    /// Nothing was asked yet.
    #[default]
    Unneeded,
    /// The first question uses a thread without a root. The next question creates the root.
    Next,
    /// It is being created.
    Begun,
    /// It was created, and is being named.
    Named(String),
    /// It can be forked.
    Ready(String),
    /// This version does not support it.
    Refused,
}

impl Codex {
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        json!({"id": self.last, "method": method, "params": params})
    }

    /// Starts the thread for the waiting question: a fork of the root, the root first, or a plain thread.
    fn start_thread(&mut self) -> Vec<Value> {
        let Some(question) = &self.waiting else {
            return Vec::new();
        };
        let root = matches!(self.root, Root::Next);
        let mut params =
            json!({"cwd": question.folder, "approvalPolicy": "never", "ephemeral": !root});
        // Set here, it would override what was set when the program started.
        match (question.writable, question.is_told_reads) {
            (true, _) => params["sandbox"] = json!("workspace-write"),
            (false, false) => params["sandbox"] = json!("read-only"),
            (false, true) => {}
        }
        if let Some(model) = &question.model {
            params["model"] = json!(model);
        }
        let method = match &self.root {
            Root::Ready(root) => {
                params["threadId"] = json!(root);
                params["excludeTurns"] = json!(true);
                "thread/fork"
            }
            _ => "thread/start",
        };
        match self.root {
            Root::Unneeded => self.root = Root::Next,
            Root::Next => self.root = Root::Begun,
            _ => {}
        }
        vec![self.request(method, params)]
    }

    /// Handles a response about the root; returns `None` if it is about something else.
    fn rooted(&mut self, message: &Value) -> Option<Vec<Value>> {
        let thread = message["result"]["thread"]["id"].as_str();
        match (std::mem::take(&mut self.root), thread) {
            (Root::Begun, Some(root)) => {
                self.root = Root::Named(root.to_owned());
                let name = json!({"threadId": root, "name": "Kingdom"});
                return Some(vec![self.request("thread/name/set", name)]);
            }
            (Root::Named(root), _) if message["result"].is_object() => {
                self.root = Root::Ready(root)
            }
            (Root::Begun | Root::Named(_), _) => self.root = Root::Refused,
            (Root::Ready(_), None) if !self.asked => self.root = Root::Refused,
            (other, _) => {
                self.root = other;
                return None;
            }
        }
        Some(self.start_thread())
    }

    fn start_turn(&mut self, thread: String) -> Vec<Value> {
        let Some(question) = self.waiting.take() else {
            return Vec::new();
        };
        let input = question.prompt.iter();
        let text = |text: &str| json!({"type": "text", "text": text});
        let input = input.map(|block| text(&block.text));
        let (pictures, others): (Vec<_>, Vec<_>) = question
            .files
            .iter()
            .partition(|file| file.kind.is_picture());
        let pictures = pictures.iter().flat_map(|file| {
            let shown = json!({"type": "localImage", "path": file.path});
            [text(&attachments::label(file)), shown]
        });
        let others = attachments::paths(others);
        let others = others.iter().map(|line| text(&format!("\n\n{line}")));
        let input: Vec<Value> = pictures.chain(input).chain(others).collect();
        let mut params = json!({"threadId": thread, "input": input});
        if let Some(effort) = &question.effort {
            params["effort"] = json!(effort);
        }
        self.thread = Some(thread);
        self.asked = true;
        vec![self.request("turn/start", params)]
    }

    /// Answers a request of the server: nothing is allowed unless it was pre-approved.
    fn refuse(&self, method: &str, id: &Value) -> Value {
        match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                json!({"id": id, "result": {"decision": "decline"}})
            }
            "applyPatchApproval" | "execCommandApproval" => {
                json!({"id": id, "result": {"decision": "denied"}})
            }
            _ => json!({"id": id, "error": {"code": -32601, "message": "not offered here"}}),
        }
    }
}

impl Talk for Codex {
    fn ask(&mut self, question: Question) -> Vec<Value> {
        let before = self.thread.take();
        self.turn = None;
        self.asked = false;
        self.waiting = Some(question);
        if !self.open {
            let us = json!({"name": "kingdom", "title": "Kingdom", "version": env!("CARGO_PKG_VERSION")});
            return vec![self.request(
                "initialize",
                json!({"clientInfo": us, "capabilities": null}),
            )];
        }
        let mut words = Vec::new();
        if let Some(thread) = before {
            words.push(self.request("thread/unsubscribe", json!({"threadId": thread})));
        }
        words.extend(self.start_thread());
        words
    }

    fn hear(&mut self, message: &Value) -> Vec<Value> {
        let method = message["method"].as_str();
        if let (Some(method), id @ (Value::Number(_) | Value::String(_))) = (method, &message["id"])
        {
            return vec![self.refuse(method, id)];
        }
        if method == Some("turn/started") {
            let params = &message["params"];
            if params["threadId"].as_str() == self.thread.as_deref() {
                self.turn = params["turn"]["id"].as_str().map(str::to_owned);
            }
            return Vec::new();
        }
        // Only the response to our last request matters.
        if message["id"] != self.last {
            return Vec::new();
        }
        if let Some(words) = self.open.then(|| self.rooted(message)).flatten() {
            return words;
        }
        if !message["result"].is_object() {
            return Vec::new();
        }
        let result = &message["result"];
        if !self.open {
            self.open = true;
            let mut words = vec![json!({"method": "initialized"})];
            words.extend(self.start_thread());
            return words;
        }
        if let Some(thread) = result["thread"]["id"].as_str() {
            return self.start_turn(thread.to_owned());
        }
        if let Some(turn) = result["turn"]["id"].as_str() {
            self.turn = Some(turn.to_owned());
        }
        Vec::new()
    }

    fn asked(&self) -> bool {
        self.asked
    }

    fn stop(&mut self) -> Vec<Value> {
        match (self.thread.clone(), self.turn.clone()) {
            (Some(thread), Some(turn)) => {
                vec![self.request(
                    "turn/interrupt",
                    json!({"threadId": thread, "turnId": turn}),
                )]
            }
            _ => Vec::new(),
        }
    }

    fn leave(&mut self) -> Vec<Value> {
        match std::mem::take(&mut self.root) {
            Root::Named(root) | Root::Ready(root) => {
                vec![self.request("thread/delete", json!({"threadId": root}))]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question {
            prompt: vec!["hi".into(), "you".into()],
            files: Vec::new(),
            marks: true,
            model: Some("m".into()),
            effort: Some("low".into()),
            folder: "/w".into(),
            writable: false,
            mode: None,
            server: None,
            is_told_reads: false,
        }
    }

    #[test]
    fn a_greeting_a_thread_a_turn_and_a_thread_of_its_own_for_the_next() {
        let mut talk = Codex::default();
        let hello = talk.ask(question());
        assert_eq!(hello[0]["method"], "initialize");
        assert!(!talk.asked());
        let next = talk.hear(&json!({"id": 1, "result": {"userAgent": "x/1"}}));
        assert_eq!(next[0], json!({"method": "initialized"}));
        assert_eq!(
            next[1],
            json!({"id": 2, "method": "thread/start", "params":
            {"cwd": "/w", "sandbox": "read-only", "approvalPolicy": "never", "ephemeral": true, "model": "m"}})
        );
        let turn = talk.hear(&json!({"id": 2, "result": {"thread": {"id": "t1"}}}));
        assert_eq!(turn[0]["params"]["threadId"], "t1");
        assert_eq!(turn[0]["params"]["effort"], "low");
        assert!(talk.asked());
        assert!(talk.stop().is_empty(), "the turn has no name yet");
        talk.hear(
            &json!({"method": "turn/started", "params": {"threadId": "t1", "turn": {"id": "u1"}}}),
        );
        assert_eq!(talk.stop()[0]["params"]["turnId"], "u1");
        let again = talk.ask(question());
        assert_eq!(again[0]["method"], "thread/unsubscribe");
        assert_eq!(again[1]["method"], "thread/start");
        assert!(!talk.asked());
    }

    #[test]
    fn pictures_are_shown_and_documents_named() {
        let mut talk = Codex::default();
        talk.ask(Question {
            files: attachments::tests::files(),
            ..question()
        });
        talk.hear(&json!({"id": 1, "result": {"userAgent": "x/1"}}));
        let turn = talk.hear(&json!({"id": 2, "result": {"thread": {"id": "t1"}}}));
        let input = turn[0]["params"]["input"].as_array().unwrap();
        assert_eq!(input.len(), 5, "{input:?}");
        assert!(
            input[0]["text"]
                .as_str()
                .unwrap()
                .starts_with("a.png (attached-")
        );
        assert_eq!(input[1], json!({"type": "localImage", "path": "/t/a.png"}));
        assert_eq!(input[2]["text"], "hi");
        assert_eq!(
            input[4]["text"],
            "\n\n(Open the attached files: b.pdf is at /t/b.pdf.)"
        );
    }

    /// Creates a process that has answered one question.
    fn used() -> Codex {
        let mut talk = Codex::default();
        talk.ask(question());
        talk.hear(&json!({"id": 1, "result": {"userAgent": "x/1"}}));
        talk.hear(&json!({"id": 2, "result": {"thread": {"id": "t1"}}}));
        talk.hear(&json!({"id": 3, "result": {"turn": {"id": "u1"}}}));
        assert!(talk.asked());
        talk
    }

    #[test]
    fn later_questions_are_asked_in_forks_of_one_empty_thread() {
        let mut talk = used();
        let root = talk.ask(question());
        assert_eq!(root[1]["params"]["ephemeral"], false);
        let named = talk.hear(&json!({"id": 5, "result": {"thread": {"id": "root"}}}));
        assert_eq!(named[0]["method"], "thread/name/set");
        let fork = talk.hear(&json!({"id": 6, "result": {}}));
        assert_eq!(
            fork,
            [json!({"id": 7, "method": "thread/fork", "params":
            {"threadId": "root", "cwd": "/w", "sandbox": "read-only", "approvalPolicy": "never", "ephemeral": true,
             "excludeTurns": true, "model": "m"}})]
        );
        assert!(!talk.asked());
        let turn = talk.hear(&json!({"id": 7, "result": {"thread": {"id": "t2"}}}));
        assert_eq!(turn[0]["params"]["threadId"], "t2");
        let input = json!([{"type": "text", "text": "hi"}, {"type": "text", "text": "you"}]);
        assert_eq!(turn[0]["params"]["input"], input);
        talk.hear(&json!({"id": 8, "result": {"turn": {"id": "u2"}}}));
        let third = talk.ask(question());
        assert_eq!(third[1]["method"], "thread/fork");
        assert_eq!(third[1]["params"]["threadId"], "root");
        assert_eq!(talk.leave()[0]["params"], json!({"threadId": "root"}));
        assert!(talk.leave().is_empty());
    }

    #[test]
    fn a_version_without_roots_has_a_new_thread_for_each_question() {
        let no =
            |id: u64| json!({"id": id, "error": {"code": -32600, "message": "unknown variant"}});
        let new = |words: &[Value]| {
            assert_eq!(words.last().unwrap()["method"], "thread/start");
            assert_eq!(words.last().unwrap()["params"]["ephemeral"], true);
        };
        // Rejected at its creation, its naming, the fork.
        for refused in [5, 6, 7] {
            let mut talk = used();
            talk.ask(question());
            let mut words = Vec::new();
            for id in 5..=refused {
                let result = json!({"thread": {"id": "root"}});
                words = talk.hear(&if id == refused {
                    no(id)
                } else {
                    json!({"id": id, "result": result})
                });
            }
            new(&words);
            assert!(!talk.asked());
            talk.hear(&json!({"id": refused + 1, "result": {"thread": {"id": "t2"}}}));
            assert!(talk.asked());
            talk.hear(&json!({"id": refused + 2, "result": {"turn": {"id": "u2"}}}));
            new(&talk.ask(question()));
        }
    }

    #[test]
    fn a_turn_that_is_refused_is_no_fault_of_the_root() {
        let mut talk = used();
        talk.root = Root::Ready("root".into());
        talk.ask(question());
        talk.hear(&json!({"id": 5, "result": {"thread": {"id": "t2"}}}));
        assert!(
            talk.hear(&json!({"id": 6, "error": {"message": "no"}}))
                .is_empty()
        );
        assert_eq!(talk.ask(question())[1]["method"], "thread/fork");
    }

    #[test]
    fn a_thread_leaves_the_sandbox_to_the_start_where_that_set_it() {
        for (writable, is_told_reads, want) in [
            (false, false, json!("read-only")),
            (false, true, Value::Null),
            (true, false, json!("workspace-write")),
            (true, true, json!("workspace-write")),
        ] {
            let mut talk = Codex::default();
            talk.ask(Question {
                writable,
                is_told_reads,
                ..question()
            });
            let next = talk.hear(&json!({"id": 1, "result": {"userAgent": "x/1"}}));
            assert_eq!(
                next[1]["params"]["sandbox"], want,
                "{writable} {is_told_reads}"
            );
        }
    }

    #[test]
    fn nothing_is_allowed_afterwards() {
        let mut talk = Codex::default();
        let asked =
            json!({"id": 9, "method": "item/commandExecution/requestApproval", "params": {}});
        assert_eq!(
            talk.hear(&asked),
            [json!({"id": 9, "result": {"decision": "decline"}})]
        );
        let odd = talk.hear(&json!({"id": "a", "method": "item/tool/call", "params": {}}));
        assert_eq!(odd[0]["error"]["code"], -32601);
    }
}
