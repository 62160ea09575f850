//! The Agent Client Protocol, version 1, through its official crate: messages, ids, and replies to the agent's
//! requests. The agent's output is decoded by [`crate::dialects`], as for every other protocol (docs/adr says why).
//! Each question has its own session; no file system or terminal access is offered.
//!
//! A read-only turn runs in a mode that [`modes`] allows, and every permission request is rejected. An agent without
//! such a mode is not asked, and one that leaves it is stopped.

use super::auth;
use super::driven::Driven;
use super::modes::{self, Step};
use super::{Link, Question, Talk, dialects};
use crate::attachments;
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, CloseSessionRequest, ContentBlock, ErrorCode,
    ImageContent, Implementation, InitializeRequest, McpServer, McpServerStdio, NewSessionRequest,
    PermissionOptionKind, PromptRequest, RequestPermissionOutcome, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionId, SetSessionConfigOptionRequest, SetSessionModeRequest,
    ToolCallUpdateFields, ToolKind,
};
use agent_client_protocol::{Agent, Client, Error, JsonRpcRequest, JsonRpcResponse, Result};
use futures::StreamExt;
use futures::channel::mpsc;
use kd_core::{Failure, FailureKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// The ACP protocol; see the module docs.
pub(in super::super) static ACP: Link = Link {
    dialect: "acp",
    talk: || Box::new(Acp::new()),
};

struct Acp {
    connection: Driven,
    words: mpsc::UnboundedSender<Word>,
    rights: Arc<Mutex<Rights>>,
    /// The reason why the agent is not asked (any more), unless the protocol itself failed.
    verdict: Verdict,
    /// The session that was prompted.
    session: Option<Value>,
}

type Verdict = Arc<Mutex<Option<Failure>>>;

/// Messages to the conversation task.
enum Word {
    Ask(Box<Question>),
    Stop,
}

impl Acp {
    fn new() -> Self {
        let (words, heard) = mpsc::unbounded();
        let rights = Arc::<Mutex<Rights>>::default();
        let leave = Arc::clone(&rights);
        let verdict = Verdict::default();
        let reason = Arc::clone(&verdict);
        let connection = Driven::new(|wire| {
            Client
                .v1()
                .on_receive_request(
                    async move |request: PermissionRequest, responder, _| {
                        let outcome = held(&leave).answer(&request);
                        responder.respond(RequestPermissionResponse::new(outcome))
                    },
                    agent_client_protocol::on_receive_request!(),
                )
                .connect_with(wire, async move |agent| {
                    converse(&agent, heard, &reason).await
                })
        });
        Self {
            connection,
            words,
            rights,
            verdict,
            session: None,
        }
    }

    fn tell(&mut self, word: Word) -> Vec<Value> {
        // If the connection is over, `broken` reports it.
        let _ = self.words.unbounded_send(word);
        self.drive()
    }

    fn drive(&mut self) -> Vec<Value> {
        let said = self.connection.drive();
        let prompt = said.iter().find(|m| m["method"] == "session/prompt");
        if let Some(prompt) = prompt {
            self.session = Some(prompt["params"]["sessionId"].clone());
        }
        said
    }

    /// Stops an agent that leaves its read-only mode during a turn: it would no longer ask for permission.
    fn watch_mode(&mut self, message: &Value) {
        let params = &message["params"];
        let ours = self.session.as_ref() == Some(&params["sessionId"]);
        if !ours || message["method"] != "session/update" {
            return;
        }
        let Some(mode) = modes::now_in_force(&params["update"]) else {
            return;
        };
        if held(&self.rights).allows(&mode) {
            return;
        }
        let mode = dialects::one_line(&mode);
        let said = format!(
            "the agent switched to its mode `{mode}` during a read-only turn and was stopped"
        );
        let failure = Failure::new(FailureKind::Refused, said).advise(
            "check what it changed (`git status`); ask with `--writable` if it may change files, or remove it from the council",
        );
        *held(&self.verdict) = Some(failure);
    }
}

impl Talk for Acp {
    fn ask(&mut self, question: Question) -> Vec<Value> {
        self.session = None;
        *held(&self.rights) = Rights::of(&question);
        self.tell(Word::Ask(Box::new(question)))
    }

    fn hear(&mut self, message: &Value) -> Vec<Value> {
        // Of notifications, only the mode matters here; the rest is for the decoder.
        if message["id"].is_null() {
            self.watch_mode(message);
            return Vec::new();
        }
        match self.connection.hear(message) {
            Ok(()) => self.drive(),
            // An unanswered request blocks some agents.
            Err(error) if message["method"].is_string() => {
                vec![json!({"jsonrpc": "2.0", "id": message["id"], "error": error})]
            }
            Err(_) => Vec::new(),
        }
    }

    fn asked(&self) -> bool {
        self.session.is_some()
    }

    fn stop(&mut self) -> Vec<Value> {
        if self.asked() {
            self.tell(Word::Stop)
        } else {
            Vec::new()
        }
    }

    fn fit(&self) -> bool {
        self.connection.over().is_none() && held(&self.verdict).is_none()
    }

    fn forbidden(&self) -> Option<Failure> {
        held(&self.verdict).clone()
    }

    fn broken(&self) -> Option<Failure> {
        let said = match self.connection.over()? {
            Some(error) => {
                let mut said = format!("the agent violated the protocol: {}", error.message);
                if let Some(what) = error.data.as_ref().and_then(|data| data["error"].as_str()) {
                    said = format!("{said}: {what}");
                }
                dialects::one_line(&said)
            }
            None => "the conversation with the agent is over".to_owned(),
        };
        Some(Failure::new(FailureKind::Decode, said))
    }
}

/// Runs the client side, from `initialize` to the last question.
async fn converse(
    agent: &ConnectionTo<Agent>,
    mut words: mpsc::UnboundedReceiver<Word>,
    verdict: &Verdict,
) -> Result<()> {
    let Some(Word::Ask(mut question)) = words.next().await else {
        return Ok(());
    };
    let us = Implementation::new("kingdom", env!("CARGO_PKG_VERSION")).title("Kingdom".to_owned());
    let hello = InitializeRequest::new(ProtocolVersion::V1).client_info(us);
    let hello = agent.send_request(Hello(hello)).block_task().await?;
    let closes = &hello["agentCapabilities"]["sessionCapabilities"]["close"];
    let closes = closes.is_object();
    let sees = hello["agentCapabilities"]["promptCapabilities"]["image"] == true;
    loop {
        let session = open(agent, &question, &hello["authMethods"], verdict).await?;
        let prompt = PromptRequest::new(session.clone(), content(&mut question, sees));
        // The decoder reads the result.
        agent.send_request(prompt).detach();
        question = loop {
            match words.next().await {
                Some(Word::Ask(next)) => break next,
                Some(Word::Stop) => {
                    agent.send_notification(CancelNotification::new(session.clone()))?;
                }
                None => return Ok(()),
            }
        };
        if closes {
            agent
                .send_request(CloseSessionRequest::new(session))
                .detach();
        }
    }
}

/// Takes the content of a question: pictures if the agent sees them, and the paths of all other files.
fn content(question: &mut Question, sees: bool) -> Vec<ContentBlock> {
    let files = std::mem::take(&mut question.files);
    let (pictures, others): (Vec<_>, Vec<_>) = files
        .iter()
        .partition(|file| sees && file.kind.is_picture());
    let mut content: Vec<ContentBlock> = Vec::new();
    for file in pictures {
        let data = attachments::base64(file);
        content.push(attachments::label(file).into());
        content.push(ContentBlock::Image(ImageContent::new(
            data,
            file.kind.media_type(),
        )));
    }
    let prompt = std::mem::take(&mut question.prompt).into_iter();
    content.extend(prompt.map(|block| block.text.into()));
    content.extend(attachments::paths(others).map(|line| format!("\n\n{line}").into()));
    content
}

/// Opens a session for one question, with its mode and model. Strictly in sequence: a refusal must not arrive after the
/// step that depends on it.
async fn open(
    agent: &ConnectionTo<Agent>,
    question: &Question,
    methods: &Value,
    verdict: &Verdict,
) -> Result<SessionId> {
    let offered = new_session(agent, question, methods, verdict).await?;
    let id = offered.session_id;
    let session = json!({"modes": offered.modes, "configOptions": offered.config_options});
    match modes::choose(&session, question.writable, question.mode) {
        Step::Keep => {}
        Step::Mode(mode) => {
            let request = SetMode(SetSessionModeRequest::new(id.clone(), mode));
            agent.send_request(request).block_task().await?;
        }
        Step::Option { id: option, value } => {
            let request = SetSessionConfigOptionRequest::new(id.clone(), option, value.as_str());
            let said = agent.send_request(SetOption(request)).block_task().await?;
            if let Some(mode) = modes::now_in_force(&said).filter(|mode| *mode != value) {
                return Err(judge(verdict, no_mode(&[mode])));
            }
        }
        Step::Refuse(there) => return Err(judge(verdict, no_mode(&there))),
    }
    if let Some(model) = &question.model {
        if offered.models.is_object() {
            let (session_id, model_id) = (id.clone(), model.clone());
            let request = SetModel {
                session_id,
                model_id,
            };
            agent.send_request(request).block_task().await?;
        } else {
            let request = SetSessionConfigOptionRequest::new(id.clone(), "model", model.as_str());
            agent.send_request(SetOption(request)).block_task().await?;
        }
    }
    Ok(id)
}

/// Sends `session/new`. If the agent requires a login first, logs in if that needs neither a browser nor a terminal.
async fn new_session(
    agent: &ConnectionTo<Agent>,
    question: &Question,
    methods: &Value,
    verdict: &Verdict,
) -> Result<NewSessionAnswer> {
    let servers = question.server.iter().map(|server| {
        let stdio = McpServerStdio::new(&server.name, &server.program).args(server.args.clone());
        McpServer::Stdio(stdio)
    });
    let new = NewSessionRequest::new(&question.folder).mcp_servers(servers.collect());
    let error = match agent
        .send_request(NewSession(new.clone()))
        .block_task()
        .await
    {
        Err(error) if error.code == ErrorCode::AuthRequired => error,
        answer => return answer,
    };
    let Some(method) = auth::without_browser(methods) else {
        return Err(judge(verdict, auth::failure(&error.message, methods)));
    };
    let login = Authenticate(AuthenticateRequest::new(method));
    if let Err(error) = agent.send_request(login).block_task().await {
        return Err(judge(verdict, auth::failure(&error.message, methods)));
    }
    agent.send_request(NewSession(new)).block_task().await
}

/// Records why the agent is not asked, and ends the conversation.
fn judge(verdict: &Verdict, failure: Failure) -> Error {
    *held(verdict) = Some(failure);
    Error::invalid_request()
}

/// Builds the failure for an agent without a read-only mode.
fn no_mode(there: &[String]) -> Failure {
    let there: Vec<String> = there.iter().map(|mode| format!("`{mode}`")).collect();
    let said = format!(
        "the agent has no known read-only mode; it offers {}",
        there.join(", ")
    );
    Failure::new(FailureKind::Invalid, dialects::one_line(&said)).advise(
        "start it in a read-only mode (a flag in `agents.<name>.command`), ask with `--writable` if it may change files, or remove it from the council",
    )
}

/// `session/new`. Only the session id of the response must match the protocol. Agents do not follow the rest of the
/// protocol strictly, and the crate drops values that do not match, so a read-only mode would be lost silently.
#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "session/new", response = NewSessionAnswer)]
struct NewSession(NewSessionRequest);

#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcResponse)]
#[serde(rename_all = "camelCase")]
struct NewSessionAnswer {
    session_id: SessionId,
    #[serde(default)]
    modes: Value,
    #[serde(default)]
    config_options: Value,
    /// Present if the model is set by [`SetModel`] and not by a session option.
    #[serde(default)]
    models: Value,
}

/// `initialize`; agents are loose with this response too.
#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "initialize", response = Value)]
struct Hello(InitializeRequest);

/// `authenticate`
#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "authenticate", response = Value)]
struct Authenticate(AuthenticateRequest);

/// `session/set_mode`; the response does not matter unless it is an error.
#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "session/set_mode", response = Value)]
struct SetMode(SetSessionModeRequest);

/// `session/set_config_option`; the response may list all options.
#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "session/set_config_option", response = Value)]
struct SetOption(SetSessionConfigOptionRequest);

/// The older request that sets the model. Before sessions had options it was the only one; Gemini CLI and a Codex
/// adapter still use it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "session/set_model", response = Value)]
#[serde(rename_all = "camelCase")]
struct SetModel {
    session_id: SessionId,
    model_id: String,
}

/// A permission request. Only the kinds of its options must match the protocol.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "session/request_permission", response = RequestPermissionResponse)]
#[serde(rename_all = "camelCase", default)]
struct PermissionRequest {
    tool_call: Value,
    options: Value,
}

/// The rights of an agent during a turn.
#[derive(Default)]
struct Rights {
    writable: bool,
    /// Council tools that may be called without asking.
    tools: Vec<String>,
    /// The mode that was checked for this program.
    mode: Option<&'static str>,
}

fn held<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rights {
    fn of(question: &Question) -> Self {
        let tools = question.server.iter().flat_map(|s| s.tools.clone());
        Self {
            writable: question.writable,
            tools: tools.collect(),
            mode: question.mode,
        }
    }

    /// Returns whether the turn may go on in this mode.
    fn allows(&self, mode: &str) -> bool {
        self.writable || self.mode == Some(mode) || modes::reads_only(mode)
    }

    /// Answers a permission request: picks an option by its kind, since each agent names them differently.
    fn answer(&self, request: &PermissionRequest) -> RequestPermissionOutcome {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        let call = ToolCallUpdateFields::deserialize(&request.tool_call).unwrap_or_default();
        let kinds = if self.writable || self.has(&call) {
            [AllowOnce, AllowAlways]
        } else {
            [RejectOnce, RejectAlways]
        };
        let options: Vec<(PermissionOptionKind, String)> = request
            .options
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|option| {
                let kind = PermissionOptionKind::deserialize(&option["kind"]).ok()?;
                Some((kind, option["optionId"].as_str()?.to_owned()))
            })
            .collect();
        let picked = kinds
            .iter()
            .find_map(|wanted| options.iter().find(|(kind, _)| kind == wanted));
        picked.map_or(RequestPermissionOutcome::Cancelled, |(_, id)| {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id.clone()))
        })
    }

    /// Returns whether a call is to one of the council's tools. Agents put prefixes before its name (`kd_`,
    /// `mcp__kd__`) and suffixes or arguments behind it. Council tools are harmless, so a call of a kind that changes
    /// something is not one.
    fn has(&self, call: &ToolCallUpdateFields) -> bool {
        use ToolKind::{Delete, Edit, Execute, Fetch, Move, SwitchMode};
        let title = call.title.as_deref().unwrap_or_default();
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
        let hands = matches!(
            call.kind,
            Some(Edit | Delete | Move | Execute | Fetch | SwitchMode)
        );
        !hands && self.tools.iter().any(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(writable: bool, model: Option<&str>) -> Question {
        Question {
            prompt: vec!["hi".into()],
            files: Vec::new(),
            marks: true,
            model: model.map(str::to_owned),
            effort: None,
            folder: "/w".into(),
            writable,
            mode: None,
            server: None,
            is_told_reads: false,
        }
    }

    /// Sends the agent's response to the last of these requests.
    fn reply(talk: &mut Acp, words: &[Value], key: &str, body: &Value) -> Vec<Value> {
        let id = &words.last().expect("something was asked")["id"];
        talk.hear(&json!({"jsonrpc": "2.0", "id": id, key: body}))
    }

    fn greeted(question: Question) -> (Acp, Vec<Value>) {
        let mut talk = Acp::new();
        let words = talk.ask(question);
        assert_eq!(methods(&words), ["initialize"]);
        let greeting = json!({"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"close": {}}}});
        let words = reply(&mut talk, &words, "result", &greeting);
        assert_eq!(methods(&words), ["session/new"]);
        (talk, words)
    }

    fn methods(words: &[Value]) -> Vec<&str> {
        words.iter().filter_map(|w| w["method"].as_str()).collect()
    }

    #[test]
    fn a_mode_that_reads_only_and_the_model_are_set_before_the_question() {
        let offered = json!({"sessionId": "s", "models": {}, "modes": {"availableModes": [
            {"id": "agent"}, {"id": "plan"}, {"id": "read-only"}]}});
        let (mut talk, words) = greeted(question(false, Some("m")));
        let words = reply(&mut talk, &words, "result", &offered);
        assert_eq!(methods(&words), ["session/set_mode"]);
        assert_eq!(words[0]["params"]["modeId"], "read-only");
        assert!(!talk.asked() && talk.stop().is_empty());
        let words = reply(&mut talk, &words, "result", &json!({}));
        assert_eq!(methods(&words), ["session/set_model"]);
        assert_eq!(
            words[0]["params"],
            json!({"sessionId": "s", "modelId": "m"})
        );
        let words = reply(&mut talk, &words, "result", &json!({}));
        assert_eq!(methods(&words), ["session/prompt"]);
        assert!(talk.asked());
        let stop = talk.stop();
        assert_eq!(methods(&stop), ["session/cancel"]);
        assert_eq!(stop[0]["params"], json!({"sessionId": "s"}));
        let end = reply(
            &mut talk,
            &words,
            "result",
            &json!({"stopReason": "cancelled"}),
        );
        assert!(end.is_empty() && talk.fit(), "{end:?}");
        assert_eq!(
            methods(&talk.ask(question(false, None))),
            ["session/close", "session/new"]
        );
        let (mut talk, words) = greeted(question(true, None));
        let words = reply(&mut talk, &words, "result", &offered);
        assert_eq!(methods(&words), ["session/prompt"]);
    }

    #[test]
    fn pictures_go_to_agents_that_see_them_and_paths_to_others() {
        let offered = json!({"sessionId": "s"});
        for sees in [true, false] {
            let mut talk = Acp::new();
            let words = talk.ask(Question {
                files: attachments::tests::files(),
                ..question(true, None)
            });
            let greeting = json!({"protocolVersion": 1, "agentCapabilities": {"promptCapabilities": {"image": sees}}});
            let words = reply(&mut talk, &words, "result", &greeting);
            let words = reply(&mut talk, &words, "result", &offered);
            assert_eq!(methods(&words), ["session/prompt"]);
            let content = words[0]["params"]["prompt"].as_array().unwrap();
            let image = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoA"});
            let has_image = content.contains(&image);
            assert_eq!(has_image, sees, "{content:?}");
            let last = content.last().unwrap()["text"].as_str().unwrap();
            assert_eq!(last.contains("a.png is at /t/a.png"), !sees, "{last}");
            assert!(last.contains("b.pdf is at /t/b.pdf"), "{last}");
        }
    }

    #[test]
    fn a_model_is_an_option_of_the_session_where_it_has_options() {
        let (mut talk, words) = greeted(question(false, Some("m")));
        let words = reply(&mut talk, &words, "result", &json!({"sessionId": "s"}));
        assert_eq!(methods(&words), ["session/set_config_option"]);
        assert_eq!(
            words[0]["params"],
            json!({"sessionId": "s", "configId": "model", "value": "m"})
        );
    }

    #[test]
    fn an_agent_that_cannot_be_held_to_reading_is_not_asked() {
        let offers = |id: &str| json!({"sessionId": "s", "modes": {"currentModeId": id, "availableModes": [{"id": id}]}});
        let (mut talk, words) = greeted(question(false, None));
        assert!(reply(&mut talk, &words, "result", &offers("yolo")).is_empty());
        let failure = talk.forbidden().expect("it is told");
        assert!(failure.message.contains("`yolo`"), "{failure}");
        assert!(failure.hint().contains("--writable"), "{}", failure.hint());
        assert!(!talk.asked() && !talk.fit() && talk.ask(question(false, None)).is_empty());
        let (mut talk, words) = greeted(question(true, None));
        let words = reply(&mut talk, &words, "result", &offers("yolo"));
        assert_eq!(methods(&words), ["session/prompt"]);
        // An option that does not apply is not a mode.
        let option = json!({"sessionId": "s", "configOptions": [{"id": "mode", "currentValue": "build",
            "options": [{"value": "build"}, {"value": "plan"}]}]});
        let (mut talk, words) = greeted(question(false, None));
        let words = reply(&mut talk, &words, "result", &option);
        assert_eq!(words[0]["params"]["value"], "plan");
        assert!(reply(&mut talk, &words, "result", &option).is_empty());
        assert!(talk.forbidden().is_some());
    }

    #[test]
    fn an_agent_that_leaves_its_mode_is_stopped() {
        let update = |session: &str, body: Value| json!({"method": "session/update", "params": {"sessionId": session, "update": body}});
        let mode = |session: &str, id: &str| {
            update(
                session,
                json!({"sessionUpdate": "current_mode_update", "currentModeId": id}),
            )
        };
        let asked = |writable: bool| {
            let (mut talk, words) = greeted(question(writable, None));
            // The mode before the question is not a change.
            assert!(talk.hear(&mode("s", "auto")).is_empty() && talk.fit());
            let words = reply(&mut talk, &words, "result", &json!({"sessionId": "s"}));
            assert_eq!(methods(&words), ["session/prompt"]);
            talk
        };
        let option = json!({"sessionUpdate": "config_option_update",
            "configOptions": [{"id": "mode", "category": "mode", "currentValue": "auto"}]});
        for (writable, said, stopped) in [
            (false, mode("s", "auto"), true),
            (false, update("s", option), true),
            (false, mode("s", "plan"), false),
            (false, mode("other", "auto"), false),
            (true, mode("s", "auto"), false),
        ] {
            let mut talk = asked(writable);
            talk.hear(&said);
            assert_eq!(talk.forbidden().is_some(), stopped, "{said}");
            assert_eq!(talk.fit(), !stopped);
            assert_eq!(methods(&talk.stop()), ["session/cancel"]);
        }
    }

    #[test]
    fn an_agent_that_wants_a_login_gets_one_where_no_person_is_needed() {
        let wants = |method: Value| {
            let mut talk = Acp::new();
            let words = talk.ask(question(false, None));
            let hello = json!({"protocolVersion": 1, "authMethods": [method]});
            let words = reply(&mut talk, &words, "result", &hello);
            let error = json!({"code": -32000, "message": "Authentication required"});
            let words = reply(&mut talk, &words, "error", &error);
            (talk, words)
        };
        let (mut talk, words) = wants(json!({"id": "api-key"}));
        assert_eq!(methods(&words), ["authenticate"]);
        assert_eq!(words[0]["params"]["methodId"], "api-key");
        let words = reply(&mut talk, &words, "result", &json!(null));
        assert_eq!(methods(&words), ["session/new"]);
        let words = reply(&mut talk, &words, "result", &json!({"sessionId": "s"}));
        assert_eq!(methods(&words), ["session/prompt"]);

        let (talk, words) = wants(json!({"id": "login", "description": "Run `agent login`"}));
        assert!(words.is_empty());
        let failure = talk.forbidden().expect("it is told");
        assert_eq!(failure.kind, FailureKind::Auth);
        assert!(
            failure.hint().contains("`agent login`"),
            "{}",
            failure.hint()
        );

        let (mut talk, words) = wants(json!({"id": "api-key"}));
        let error = json!({"code": -32602, "message": "no key is set"});
        assert!(reply(&mut talk, &words, "error", &error).is_empty());
        assert!(
            talk.forbidden()
                .is_some_and(|f| f.message.contains("no key is set"))
        );
    }

    #[test]
    fn agents_that_are_loose_with_the_envelope_are_heard() {
        let (mut talk, words) = greeted(question(false, Some("m")));
        let id = |words: &[Value]| words[0]["id"].clone();
        // A reply without `jsonrpc`, and with a null error.
        let words =
            talk.hear(&json!({"id": id(&words), "result": {"sessionId": "s"}, "error": null}));
        assert_eq!(methods(&words), ["session/set_config_option"]);
        let words = talk.hear(&json!({"id": id(&words), "result": null}));
        assert_eq!(methods(&words), ["session/prompt"]);
        let wish =
            talk.hear(&json!({"id": 1, "method": "session/request_permission", "params": "all"}));
        assert_eq!(wish[0]["result"]["outcome"]["outcome"], "cancelled");
        // An unreadable request is rejected, not ignored.
        let odd = talk.hear(&json!({"id": [1], "method": "session/request_permission"}));
        assert_eq!(
            (&odd[0]["id"], &odd[0]["error"]["code"]),
            (&json!([1]), &json!(-32600))
        );
    }

    #[test]
    fn an_error_in_any_form_ends_what_waits_for_it() {
        for error in [json!("no"), json!({"message": "no"}), json!({"code": 1e40})] {
            let (mut talk, words) = greeted(question(false, None));
            assert!(reply(&mut talk, &words, "error", &error).is_empty());
            assert!(!talk.fit(), "{error}");
        }
    }

    #[test]
    fn who_does_not_keep_to_the_protocol_is_told_so_and_is_not_asked_again() {
        let (mut talk, words) = greeted(question(false, None));
        assert!(talk.fit() && talk.broken().is_none());
        let long = json!({"session": "x".repeat(1 << 20)});
        assert!(reply(&mut talk, &words, "result", &long).is_empty());
        assert!(!talk.fit());
        let failure = talk.broken().expect("it is broken");
        assert_eq!(failure.kind, FailureKind::Decode);
        assert!(failure.message.contains("sessionId"), "{failure}");
        assert!(failure.message.len() < 400);
        assert!(talk.ask(question(false, None)).is_empty());
        let wish = talk.hear(&json!({"jsonrpc": "2.0", "id": 1, "method": "fs/read_text_file"}));
        assert_eq!(
            wish[0]["error"]["code"], -32600,
            "every request gets a response"
        );
    }

    /// Loads a recorded agent's messages: its response to each of our methods, and its own requests.
    fn recorded(file: &std::path::Path) -> Vec<(String, Value)> {
        let mut asked = std::collections::BTreeMap::new();
        let text = std::fs::read_to_string(file).expect("a recording is a text");
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut said = Vec::new();
        for line in lines {
            let message = &line["msg"];
            let (id, method) = (message["id"].to_string(), message["method"].as_str());
            match (line["dir"] == "in", method) {
                (true, Some(method)) => drop(asked.insert(id, method.to_owned())),
                (false, Some(method)) => said.push((method.to_owned(), message.clone())),
                (false, None) => {
                    said.extend(asked.remove(&id).map(|method| (method, message.clone())));
                }
                _ => {}
            }
        }
        said
    }

    #[test]
    fn every_recorded_agent_is_greeted_asked_in_its_own_words_and_refused() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/agent-streams");
        let agents = std::fs::read_dir(folder).expect("recordings");
        let agents = agents.map(|agent| agent.expect("an agent").path());
        let (mut greeted, mut opened, mut refused) = (0, 0, 0);
        for agent in agents.filter(|a| a.to_string_lossy().contains("acp-")) {
            let greeting = recorded(&agent.join("00_handshake.dialog.jsonl"));
            let hello = greeting.iter().find(|(method, _)| method == "initialize");
            let hello = &hello.expect("a greeting").1["result"];
            let fresh = || {
                let mut talk = Acp::new();
                let words = talk.ask(question(false, Some("m")));
                let words = reply(&mut talk, &words, "result", hello);
                assert_eq!(methods(&words), ["session/new"], "{}", agent.display());
                (talk, words)
            };
            greeted += 1;
            let files = std::fs::read_dir(&agent).expect("its recordings");
            for (method, message) in files.flat_map(|f| recorded(&f.expect("a file").path())) {
                if method == "session/request_permission" {
                    let answer = fresh().0.hear(&message);
                    let picked = &answer[0]["result"]["outcome"]["optionId"];
                    let options = message["params"]["options"].as_array().expect("options");
                    let picked = options.iter().find(|o| o["optionId"] == *picked);
                    let kind = picked.expect("one of them")["kind"].as_str();
                    assert!(kind.is_some_and(|k| k.starts_with("reject")), "{message}");
                    refused += 1;
                } else if method == "session/new" && message["result"].is_object() {
                    let offered = &message["result"];
                    let (mut talk, mut words) = fresh();
                    let mut asked = Vec::new();
                    let mut answer = offered.clone();
                    while !talk.asked() {
                        words = reply(&mut talk, &words, "result", &answer);
                        assert_eq!(words.len(), 1, "{}: {:?}", agent.display(), talk.broken());
                        asked.extend(methods(&words).into_iter().map(str::to_owned));
                        // The response to one option lists all options again.
                        let mut options = offered["configOptions"].clone();
                        let set = &words[0]["params"];
                        for option in options.as_array_mut().into_iter().flatten() {
                            if option["id"] == set["configId"] {
                                option["currentValue"] = set["value"].clone();
                            }
                        }
                        answer = json!({"configOptions": options});
                    }
                    let name = agent.file_name().and_then(|name| name.to_str());
                    let steps = match name.unwrap_or_default() {
                        "acp-codex" => vec!["session/set_mode", "session/set_model"],
                        "acp-codex-zed" => vec!["session/set_config_option"],
                        "acp-gemini" => vec!["session/set_mode", "session/set_model"],
                        "acp-opencode" => vec!["session/set_config_option"; 2],
                        _ => vec!["session/set_mode", "session/set_config_option"],
                    };
                    assert_eq!(asked, [steps, vec!["session/prompt"]].concat(), "{name:?}");
                    opened += 1;
                }
            }
        }
        assert!(
            greeted >= 5 && opened >= 8 && refused >= 5,
            "{greeted} {opened} {refused}"
        );
    }

    #[test]
    fn a_server_of_ours_is_named_for_the_session_and_its_tools_need_no_asking() {
        let server = kd_core::request::ToolServer {
            name: "kd".into(),
            program: "/bin/kd".into(),
            args: vec!["mcp".into()],
            tools: vec!["create_thread".into()],
        };
        let (_, opened) = greeted(Question {
            server: Some(server),
            is_told_reads: false,
            ..question(false, None)
        });
        assert_eq!(
            opened[0]["params"],
            json!({"cwd": "/w", "mcpServers": [{"name": "kd", "command": "/bin/kd", "args": ["mcp"], "env": []}]})
        );
        let rights = Rights {
            tools: vec!["create_thread".into()],
            ..Rights::default()
        };
        for (title, kind, wanted) in [
            ("create_thread (kd MCP Server)", "other", true),
            ("mcp__kd__create_thread", "other", true),
            ("kd_create_thread", "read", true),
            ("create_thread", "execute", false),
            ("rm -rf create_thread", "other", false),
            ("uncreate_threads", "other", false),
        ] {
            let call = ToolCallUpdateFields::deserialize(json!({"title": title, "kind": kind}));
            let call = call.expect("it is a call");
            assert_eq!(rights.has(&call), wanted, "{title} {kind}");
        }
    }

    #[test]
    fn permissions_are_picked_by_kind_and_everything_else_is_refused() {
        let asks = |method: &str, options: Value| {
            json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": {"sessionId": "s",
                "toolCall": {"toolCallId": "c"}, "options": options}})
        };
        let both = json!([{"kind": "odd"}, {"optionId": "yes", "kind": "allow_once"},
            {"optionId": "no", "kind": "reject_once"}]);
        let told = |writable: bool, options: &Value| {
            let (mut talk, _) = greeted(question(writable, None));
            let words = talk.hear(&asks("session/request_permission", options.clone()));
            assert_eq!(words[0]["id"], 7);
            words[0]["result"]["outcome"].clone()
        };
        let selected = |id: &str| json!({"outcome": "selected", "optionId": id});
        assert_eq!(told(false, &both), selected("no"));
        assert_eq!(told(true, &both), selected("yes"));
        for nothing in [json!([]), json!(null), json!("yes")] {
            assert_eq!(told(false, &nothing), json!({"outcome": "cancelled"}));
        }
        let (mut talk, _) = greeted(question(true, None));
        let odd = talk.hear(&asks("fs/write_text_file", json!([])));
        assert_eq!(odd[0]["error"]["code"], -32601);
    }
}
