//! The Agent Client Protocol, version 1, by hand: six methods, tolerant of whatever agents add (docs/adr says why no
//! library). Each question has a session of its own; we offer no files and no terminal.
//!
//! Read-only: a mode of that name is chosen where the agent has one, and every wish for permission is rejected.

use super::{Question, Road, Talk};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// See the file's header.
pub(in super::super) static ACP: Road = Road {
    dialect: "acp",
    talk: || Box::<Acp>::default(),
};

/// The version of the protocol.
const VERSION: u32 = 1;
/// Modes in which agents change nothing, by the ids that were checked; `plan` is none of them.
const READ_ONLY: [&str; 2] = ["read-only", "ask"];
/// Modes for those who may write, where an agent begins in one that only reads.
const WRITABLE: [&str; 2] = ["auto", "agent"];

#[derive(Default)]
struct Acp {
    /// The id of our last request.
    last: u64,
    /// Whether the greeting was exchanged.
    open: bool,
    /// Whether the agent can be told that a session is over.
    closes: bool,
    waiting: Option<Question>,
    /// What is still to be asked, one after another: what an agent refuses must not come after what it was for.
    steps: VecDeque<(&'static str, Value)>,
    writable: bool,
    /// Tools of ours that may be called without asking anybody.
    tools: Vec<String>,
    session: Option<String>,
    asked: bool,
}

impl Acp {
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
    }

    fn new_session(&mut self) -> Vec<Value> {
        let Some(question) = &self.waiting else {
            return Vec::new();
        };
        let servers: Vec<Value> = question
            .server
            .iter()
            .map(|s| json!({"name": s.name, "command": s.program, "args": s.args, "env": []}))
            .collect();
        let params = json!({"cwd": question.folder, "mcpServers": servers});
        vec![self.request("session/new", params)]
    }

    /// The session is there: its mode and model, then the question.
    fn prepare(&mut self, session: &str, offered: &Value) {
        let Some(question) = self.waiting.take() else {
            return;
        };
        self.session = Some(session.to_owned());
        let current = offered["modes"]["currentModeId"].as_str();
        let reads_only = current.is_some_and(|mode| READ_ONLY.contains(&mode));
        let wanted: &[&str] = match (question.writable, reads_only) {
            (false, _) => &READ_ONLY,
            (true, true) => &WRITABLE,
            (true, false) => &[],
        };
        if let Some(mode) = wanted.iter().find(|mode| has_mode(offered, mode)) {
            let params = json!({"sessionId": session, "modeId": mode});
            self.steps.push_back(("session/set_mode", params));
        }
        if let Some(model) = &question.model {
            self.steps.push_back(if offered["models"].is_object() {
                let params = json!({"sessionId": session, "modelId": model});
                ("session/set_model", params)
            } else {
                let params = json!({"sessionId": session, "configId": "model", "value": model});
                ("session/set_config_option", params)
            });
        }
        let prompt = json!([{"type": "text", "text": question.prompt}]);
        self.steps.push_back((
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt}),
        ));
    }

    fn step(&mut self) -> Vec<Value> {
        let Some((method, params)) = self.steps.pop_front() else {
            return Vec::new();
        };
        self.asked = method == "session/prompt";
        vec![self.request(method, params)]
    }

    /// Our word on a wish for permission: options are picked by their kind, since every agent names them otherwise.
    fn permit(&self, id: &Value, params: &Value) -> Value {
        let kinds: [&str; 2] = if self.writable || self.is_ours(&params["toolCall"]) {
            ["allow_once", "allow_always"]
        } else {
            ["reject_once", "reject_always"]
        };
        let options = params["options"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let picked = kinds
            .iter()
            .find_map(|kind| options.iter().find(|option| option["kind"] == *kind));
        let outcome = match picked {
            Some(option) => json!({"outcome": "selected", "optionId": option["optionId"]}),
            None => json!({"outcome": "cancelled"}),
        };
        json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})
    }
}

/// Kinds of calls that change something or reach far: a tool of ours has none of them.
const HANDS: [&str; 6] = ["edit", "delete", "move", "execute", "fetch", "switch_mode"];

impl Acp {
    /// Whether a call is one of a tool of ours. Agents put their own words before its name (`kd_`, `mcp__kd__`) and
    /// theirs or its arguments behind it.
    fn is_ours(&self, call: &Value) -> bool {
        let title = call["title"].as_str().unwrap_or_default();
        let word = title
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default();
        let named = |tool: &String| {
            word == tool
                || word
                    .strip_suffix(tool.as_str())
                    .is_some_and(|w| w.ends_with('_'))
        };
        let kind = call["kind"].as_str().unwrap_or("other");
        !HANDS.contains(&kind) && self.tools.iter().any(named)
    }
}

fn has_mode(offered: &Value, mode: &str) -> bool {
    let modes = offered["modes"]["availableModes"].as_array();
    modes
        .into_iter()
        .flatten()
        .any(|offered| offered["id"] == mode)
}

impl Talk for Acp {
    fn ask(&mut self, question: Question) -> Vec<Value> {
        let before = self.session.take();
        self.asked = false;
        self.steps.clear();
        self.writable = question.writable;
        self.tools = question
            .server
            .iter()
            .flat_map(|s| s.tools.clone())
            .collect();
        self.waiting = Some(question);
        if !self.open {
            let us = json!({"name": "kingdom", "title": "Kingdom", "version": env!("CARGO_PKG_VERSION")});
            let can =
                json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
            return vec![self.request(
                "initialize",
                json!({"protocolVersion": VERSION, "clientInfo": us, "clientCapabilities": can}),
            )];
        }
        let mut words = Vec::new();
        if let Some(session) = before.filter(|_| self.closes) {
            words.push(self.request("session/close", json!({"sessionId": session})));
        }
        words.extend(self.new_session());
        words
    }

    fn hear(&mut self, message: &Value) -> Vec<Value> {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("session/request_permission") => {
                return vec![self.permit(id, &message["params"])];
            }
            // A request that is not answered blocks some agents.
            Some(_) if !id.is_null() => {
                return vec![json!({"jsonrpc": "2.0", "id": id,
                    "error": {"code": -32601, "message": "not offered here"}})];
            }
            Some(_) => return Vec::new(),
            None => {}
        }
        let result = &message["result"];
        if *id != self.last || !result.is_object() {
            return Vec::new();
        }
        if !self.open {
            self.open = true;
            self.closes = result["agentCapabilities"]["sessionCapabilities"]["close"].is_object();
            return self.new_session();
        }
        if let Some(session) = result["sessionId"].as_str() {
            self.prepare(session, result);
        }
        self.step()
    }

    fn asked(&self) -> bool {
        self.asked
    }

    fn stop(&mut self) -> Vec<Value> {
        match (&self.session, self.asked) {
            (Some(session), true) => {
                vec![
                    json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}),
                ]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(writable: bool, model: Option<&str>) -> Question {
        Question {
            prompt: "hi".into(),
            model: model.map(str::to_owned),
            effort: None,
            folder: "/w".into(),
            writable,
            server: None,
        }
    }

    fn opened(writable: bool, model: Option<&str>) -> Acp {
        let mut talk = Acp::default();
        assert_eq!(
            talk.ask(question(writable, model))[0]["method"],
            "initialize"
        );
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1,
            "agentCapabilities": {"sessionCapabilities": {"close": {}}}}});
        assert_eq!(talk.hear(&answer)[0]["method"], "session/new");
        talk
    }

    fn methods(words: &[Value]) -> Vec<&str> {
        words.iter().filter_map(|w| w["method"].as_str()).collect()
    }

    #[test]
    fn a_mode_that_reads_only_and_the_model_are_set_before_the_question() {
        let offered = json!({"id": 2, "result": {"sessionId": "s", "models": {},
            "modes": {"availableModes": [{"id": "agent"}, {"id": "plan"}, {"id": "read-only"}]}}});
        let mut talk = opened(false, Some("m"));
        let words = talk.hear(&offered);
        assert_eq!(methods(&words), ["session/set_mode"]);
        assert_eq!(words[0]["params"]["modeId"], "read-only");
        assert!(!talk.asked() && talk.stop().is_empty());
        let done = |id: u64| json!({"id": id, "result": {}});
        assert_eq!(methods(&talk.hear(&done(3))), ["session/set_model"]);
        assert_eq!(methods(&talk.hear(&done(4))), ["session/prompt"]);
        assert!(talk.asked());
        assert_eq!(methods(&talk.stop()), ["session/cancel"]);
        assert_eq!(
            methods(&talk.ask(question(false, None))),
            ["session/close", "session/new"]
        );
        let mut talk = opened(true, None);
        assert_eq!(methods(&talk.hear(&offered)), ["session/prompt"]);
    }

    #[test]
    fn a_server_of_ours_is_named_for_the_session_and_its_tools_need_no_asking() {
        let mut talk = Acp::default();
        let server = kd_core::request::ToolServer {
            name: "kd".into(),
            program: "/bin/kd".into(),
            args: vec!["mcp".into()],
            tools: vec!["create_thread".into()],
        };
        talk.ask(Question {
            server: Some(server),
            ..question(false, None)
        });
        let opened = talk.hear(&json!({"id": 1, "result": {}}));
        assert_eq!(
            opened[0]["params"]["mcpServers"],
            json!([{"name": "kd", "command": "/bin/kd", "args": ["mcp"], "env": []}])
        );
        let picked = |title: &str, kind: &str| {
            let wish = json!({"id": 7, "method": "session/request_permission", "params": {
                "toolCall": {"title": title, "kind": kind}, "options": [
                {"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]}});
            let mut talk = talk_with(&talk.tools);
            talk.hear(&wish)[0]["result"]["outcome"]["optionId"].clone()
        };
        for (title, kind, wanted) in [
            ("create_thread (kd MCP Server)", "other", "yes"),
            ("mcp__kd__create_thread", "other", "yes"),
            ("kd_create_thread", "read", "yes"),
            ("create_thread", "execute", "no"),
            ("rm -rf create_thread", "other", "no"),
            ("uncreate_threads", "other", "no"),
        ] {
            assert_eq!(picked(title, kind), wanted, "{title} {kind}");
        }
    }

    fn talk_with(tools: &[String]) -> Acp {
        Acp {
            tools: tools.to_vec(),
            ..Acp::default()
        }
    }

    #[test]
    fn permissions_are_picked_by_kind_and_everything_else_is_refused() {
        let wish = json!({"id": 7, "method": "session/request_permission", "params": {"options": [
            {"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]}});
        let told = |writable: bool| {
            opened(writable, None).hear(&wish)[0]["result"]["outcome"]["optionId"].clone()
        };
        assert_eq!(told(false), "no");
        assert_eq!(told(true), "yes");
        let mut talk = opened(false, None);
        let none = talk.hear(
            &json!({"id": 8, "method": "session/request_permission", "params": {"options": []}}),
        );
        assert_eq!(
            none[0]["result"]["outcome"],
            json!({"outcome": "cancelled"})
        );
        let odd = talk.hear(&json!({"id": "x", "method": "fs/write_text_file", "params": {}}));
        assert_eq!(odd[0]["error"]["code"], -32601);
    }
}
