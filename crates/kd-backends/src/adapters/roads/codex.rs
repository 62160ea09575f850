//! Codex, by its app-server: JSON-RPC without the version field. Each question has a thread of its own, which is not
//! written to disk (`ephemeral`) and is let go afterwards.

use super::{Question, Road, Talk};
use serde_json::{Value, json};

/// See the file's header.
pub(in super::super) static CODEX: Road = Road {
    dialect: "codex-app-server",
    talk: || Box::<Codex>::default(),
};

#[derive(Default)]
struct Codex {
    /// The id of our last request.
    last: u64,
    /// Whether the greeting was exchanged.
    open: bool,
    /// What waits for the greeting or for its thread.
    waiting: Option<Question>,
    thread: Option<String>,
    turn: Option<String>,
    asked: bool,
}

impl Codex {
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        json!({"id": self.last, "method": method, "params": params})
    }

    fn start_thread(&mut self) -> Vec<Value> {
        let Some(question) = &self.waiting else {
            return Vec::new();
        };
        let sandbox = if question.writable {
            "workspace-write"
        } else {
            "read-only"
        };
        let mut params = json!({"cwd": question.folder, "sandbox": sandbox, "approvalPolicy": "never", "ephemeral": true});
        if let Some(model) = &question.model {
            params["model"] = json!(model);
        }
        vec![self.request("thread/start", params)]
    }

    fn start_turn(&mut self, thread: String) -> Vec<Value> {
        let Some(question) = self.waiting.take() else {
            return Vec::new();
        };
        let mut params =
            json!({"threadId": thread, "input": [{"type": "text", "text": question.prompt}]});
        if let Some(effort) = &question.effort {
            params["effort"] = json!(effort);
        }
        self.thread = Some(thread);
        self.asked = true;
        vec![self.request("turn/start", params)]
    }

    /// What the server asks of us: nothing is allowed that was not allowed beforehand.
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
        // An answer to our last request; answers to earlier ones say nothing more.
        if message["id"] != self.last || !message["result"].is_object() {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question {
            prompt: "hi".into(),
            model: Some("m".into()),
            effort: Some("low".into()),
            folder: "/w".into(),
            writable: false,
            mode: None,
            server: None,
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
