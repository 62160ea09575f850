//! The agent side of the Agent Client Protocol, version 1, through its official crate: editors talk to the council.
//!
//! Input: a client's requests on stdin. Output: sessions, which are threads; for each prompt the stages of the council as
//! a plan, a card for each turn of a member, progress as thoughts, and the answer as the message. A session works in the
//! folder that the client names. Settings of a folder that need consent are asked about with the protocol's own request
//! for permission.

mod replay;
mod session;
mod turn;

use crate::blocking::off;
use crate::consult::Consultations;
use crate::error::ServeError;
use crate::mcp::{BAD_PARAMS, LINE_BYTES_MAX, Lines, PARAMS_WRONG, TOO_LONG};
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, ForkSessionRequest, ForkSessionResponse, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse,
    LoadSessionRequest, LoadSessionResponse, NewSessionRequest, NewSessionResponse,
    PromptCapabilities, PromptRequest, PromptResponse, SessionCapabilities, SessionInfo,
    SessionListCapabilities, SessionMode, SessionModeState, SetSessionModeRequest,
    SetSessionModeResponse, StopReason,
};
use agent_client_protocol::{
    Agent, ByteStreams, Client, Error, RequestCancellation, Result, UntypedMessage,
};
use kd_app::host::{Host, Method, Refusal};
use kd_core::Message;
use kd_core::fork::Cut;
use kd_core::last_round::RoundKind;
use serde_json::{Value, json};
use session::{Session, Sessions};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

/// Chooses a model, in clients that know the protocol before it had modes.
const SET_MODEL: &str = "session/set_model";
/// Sessions in one page of a list.
const PAGE: usize = 100;
/// The modes of a session: name, method, title, description.
const MODES: &[(&str, Method, &str, &str)] = &[
    (
        "ask",
        Method::Ask,
        "Ask",
        "all members answer, the chair concludes",
    ),
    (
        "think",
        Method::Think,
        "Think",
        "a fast and a rigorous member answer together",
    ),
    (
        "deliberate",
        Method::Deliberate,
        "Deliberate",
        "a council plans itself, answers, reviews and votes",
    ),
];

/// Opens a folder.
pub type OpenFolder =
    Arc<dyn Fn(&Path) -> std::result::Result<Arc<dyn Host>, Refusal> + Send + Sync>;

/// The agent.
struct Council {
    open: OpenFolder,
    /// The folder of this process, for lists without one.
    folder: PathBuf,
    running: Consultations,
    sessions: Sessions,
}

/// Serves the protocol on stdin and stdout until the client is done or `stop`.
///
/// # Errors
/// If the connection fails.
pub async fn stdio(
    open: OpenFolder,
    folder: PathBuf,
    stop: impl Future<Output = ()>,
) -> std::result::Result<(), ServeError> {
    let council = Arc::new(Council {
        open,
        folder,
        running: Consultations::default(),
        sessions: Sessions::default(),
    });
    let input = Lines::new(tokio::io::stdin(), LINE_BYTES_MAX)
        .replacing_the_first()
        .compat();
    let output = tokio::io::stdout().compat_write();
    let serving = serve(Arc::clone(&council), ByteStreams::new(output, input));
    let served = tokio::select! {
        served = serving => served.map_err(|e| ServeError::Connection(e.to_string())),
        () = stop => Ok(()),
    };
    council.running.end().await;
    council.sessions.discard_unsaid();
    served
}

/// Answers requests on a connection.
#[expect(
    clippy::too_many_lines,
    reason = "one handler for each kind of request"
)]
async fn serve(
    council: Arc<Council>,
    wire: impl agent_client_protocol::ConnectTo<Agent>,
) -> Result<()> {
    let [new, load, fork, list, mode, prompt, other, cancel] =
        std::array::from_fn(|_| Arc::clone(&council));
    Agent
        .v1()
        .name("kd")
        .on_receive_request(
            async move |_: InitializeRequest, responder, _| responder.respond(about()),
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, client: ConnectionTo<Client>| {
                let council = Arc::clone(&new);
                client.spawn(async move {
                    responder.respond_with_result(council.new_session(request).await)
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, client: ConnectionTo<Client>| {
                let council = Arc::clone(&load);
                let to = client.clone();
                client.spawn(async move {
                    responder.respond_with_result(council.load_session(request, &to).await)
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        // Clients that know it may use it; it is not part of the protocol yet, and not advertised.
        .on_receive_request(
            async move |request: ForkSessionRequest, responder, client: ConnectionTo<Client>| {
                let council = Arc::clone(&fork);
                client.spawn(async move {
                    responder.respond_with_result(council.fork_session(request).await)
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ListSessionsRequest, responder, client: ConnectionTo<Client>| {
                let council = Arc::clone(&list);
                client.spawn(async move {
                    responder.respond_with_result(council.list_sessions(request).await)
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionModeRequest, responder, _| {
                responder.respond_with_result(mode.set_mode(&request))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, client: ConnectionTo<Client>| {
                let council = Arc::clone(&prompt);
                let to = client.clone();
                let cancelled = responder.cancellation();
                client.spawn(async move {
                    responder.respond_with_result(council.prompt(request, &cancelled, &to).await)
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: UntypedMessage, responder, _| match request.method() {
                SET_MODEL => responder.respond_with_result(other.set_model(request.params())),
                method => responder.respond_with_error(unknown(method)),
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: CancelNotification, _| {
                cancel.sessions.cancel(&note.session_id.to_string());
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(wire)
        .await
}

/// Returns the capabilities of this agent.
fn about() -> InitializeResponse {
    let sessions = SessionCapabilities::new().list(SessionListCapabilities::new());
    let prompts = PromptCapabilities::new().embedded_context(true);
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(prompts)
        .session_capabilities(sessions);
    let info = Implementation::new("kd", env!("CARGO_PKG_VERSION")).title("Kingdom".to_owned());
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(info)
}

/// Returns an error that the user can act on.
fn refused(why: impl ToString) -> Error {
    Error::new(-32603, why.to_string())
}

/// Returns the error for a method that this agent does not have.
fn unknown(method: &str) -> Error {
    match method {
        // A line above the limit was replaced by this.
        TOO_LONG => invalid("a message has at most 8 MiB"),
        BAD_PARAMS => invalid(PARAMS_WRONG),
        _ => Error::method_not_found(),
    }
}

/// Returns an error about a parameter.
fn invalid(why: impl Into<String>) -> Error {
    Error::new(-32602, why.into())
}

fn modes(host: &dyn Host, current: Method) -> SessionModeState {
    let here = MODES.iter().filter(|mode| host.has(mode.1));
    let all = here
        .map(|(id, _, title, what)| SessionMode::new(*id, *title).description((*what).to_owned()));
    let id = MODES
        .iter()
        .find(|mode| mode.1 == current)
        .map(|mode| mode.0);
    SessionModeState::new(id.unwrap_or("ask"), all.collect())
}

/// Returns the way in which the newest question was answered.
fn last_method(messages: &[Message]) -> Method {
    let last = messages.iter().rev().find(|message| message.is_king());
    match last.map(RoundKind::of) {
        Some(RoundKind::Debate) => Method::Think,
        Some(RoundKind::Deliberation) => Method::Deliberate,
        Some(RoundKind::Council | RoundKind::Review | RoundKind::Acting) | None => Method::Ask,
    }
}

impl Council {
    /// Opens a folder off the event loop.
    async fn host(&self, folder: &Path) -> Result<Arc<dyn Host>> {
        if !folder.is_absolute() {
            return Err(invalid("`cwd` must be an absolute path"));
        }
        if !folder.is_dir() {
            return Err(invalid("`cwd` is no folder of this machine"));
        }
        let (open, folder) = (Arc::clone(&self.open), folder.to_path_buf());
        let opened = tokio::task::spawn_blocking(move || open(&folder)).await;
        let opened = opened.map_err(|e| refused(e.to_string()))?;
        opened.map_err(|why| refused(why.0))
    }

    async fn new_session(&self, request: NewSessionRequest) -> Result<NewSessionResponse> {
        let host = self.host(&request.cwd).await?;
        let id = off(&host, Host::begin).await.map_err(refused)?;
        let id = id.map_err(|why| refused(why.0))?;
        let modes = modes(host.as_ref(), Method::Ask);
        let mut session = Session::of(host, request.cwd);
        session.is_new = true;
        self.sessions.put(id.clone(), session)?;
        Ok(NewSessionResponse::new(id).modes(modes))
    }

    async fn load_session(
        &self,
        request: LoadSessionRequest,
        client: &ConnectionTo<Client>,
    ) -> Result<LoadSessionResponse> {
        let id = request.session_id.to_string();
        self.sessions.check_idle(&id)?;
        let host = self.host(&request.cwd).await?;
        let thread = id.clone();
        let read = off(&host, move |host| host.read(&thread)).await;
        let messages = read.map_err(refused)?.map_err(|why| invalid(why.0))?;
        for update in replay::updates(&messages) {
            session::tell(client, &id, update)?;
        }
        // As chosen for the open session, else as its last question was answered.
        let method = self.sessions.method(&id);
        let method = method.unwrap_or_else(|| last_method(&messages));
        let modes = modes(host.as_ref(), method);
        let mut session = Session::of(host, request.cwd);
        session.method = method;
        self.sessions.put(id, session)?;
        Ok(LoadSessionResponse::new().modes(modes))
    }

    async fn list_sessions(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse> {
        let folder = request.cwd.unwrap_or_else(|| self.folder.clone());
        let from = match request.cursor.as_deref().map(str::parse::<usize>) {
            None => 0,
            Some(Ok(from)) => from,
            Some(Err(_)) => return Err(invalid("this cursor is not one of this agent")),
        };
        let host = self.host(&folder).await?;
        let threads = off(&host, Host::threads).await.map_err(refused)?;
        let threads = threads.map_err(|why| refused(why.0))?;
        let said: Vec<_> = threads.into_iter().filter(|t| t.messages > 0).collect();
        let page = said.iter().skip(from).take(PAGE);
        let page = page
            .map(|t| {
                SessionInfo::new(t.id.clone(), folder.clone())
                    .title(t.topic.clone())
                    .updated_at(t.updated.map(|at| at.to_string()))
            })
            .collect();
        let next = from.saturating_add(PAGE);
        let next = (next < said.len()).then(|| next.to_string());
        Ok(ListSessionsResponse::new(page).next_cursor(next))
    }

    /// Forks a session: the copy has its messages, and the mode of the open session.
    async fn fork_session(&self, request: ForkSessionRequest) -> Result<ForkSessionResponse> {
        let id = request.session_id.to_string();
        self.sessions.check_idle(&id)?;
        let host = self.host(&request.cwd).await?;
        let source = id.clone();
        let forked = off(&host, move |host| {
            let messages = host.read(&source)?;
            Ok((host.fork(&source, &Cut::End)?, last_method(&messages)))
        });
        let (forked, method) = forked
            .await
            .map_err(refused)?
            .map_err(|why: Refusal| invalid(why.0))?;
        let method = self.sessions.method(&id).unwrap_or(method);
        let modes = modes(host.as_ref(), method);
        let mut session = Session::of(host, request.cwd);
        session.method = method;
        self.sessions.put(forked.clone(), session)?;
        Ok(ForkSessionResponse::new(forked).modes(modes))
    }

    fn set_mode(&self, request: &SetSessionModeRequest) -> Result<SetSessionModeResponse> {
        let mode = request.mode_id.to_string();
        self.choose(&request.session_id.to_string(), &mode, "mode")?;
        Ok(SetSessionModeResponse::new())
    }

    /// Chooses a model, which is a mode here: `deliberate` or, as in the API of models, `kd/deliberate`.
    fn set_model(&self, params: &Value) -> Result<Value> {
        let text = |key: &str| {
            let text = params[key].as_str();
            text.ok_or_else(|| invalid(format!("`{key}` must be a string")))
        };
        let model = text("modelId")?;
        let mode = model.strip_prefix("kd/").unwrap_or(model);
        self.choose(text("sessionId")?, mode, "model")?;
        Ok(json!({}))
    }

    /// Chooses how a session answers. `what` is the client's word for it.
    fn choose(&self, session: &str, name: &str, what: &str) -> Result<()> {
        let mode = MODES.iter().find(|mode| mode.0 == name);
        let mode = mode.ok_or_else(|| {
            let names: Vec<&str> = MODES.iter().map(|mode| mode.0).collect();
            let names = names.join(", ");
            invalid(format!("there is no such {what}; {what}s: {names}"))
        })?;
        self.sessions.set_method(session, mode.1)
    }

    /// Answers a prompt. The client can cancel it by the session, or as any request.
    async fn prompt(
        &self,
        request: PromptRequest,
        cancelled: &RequestCancellation,
        client: &ConnectionTo<Client>,
    ) -> Result<PromptResponse> {
        let question = session::question(&request.prompt)?;
        let id = request.session_id.to_string();
        let begun = self.sessions.begin(&id)?;
        let answer = async {
            let host = session::with_consent(self, &begun, &id, client).await?;
            if begun.stop.is_cancelled() {
                return Ok(PromptResponse::new(StopReason::Cancelled));
            }
            turn::run(self, &begun, host, (&id, question), client).await
        };
        let stop = async {
            cancelled.cancelled().await;
            begun.stop.cancel();
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            answer = answer => answer,
            never = stop => match never {},
        }
    }
}
