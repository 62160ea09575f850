//! The page: threads in a browser, live. The document itself contains no data; it fetches everything with the token,
//! and changes state only by `POST`.

mod forum;
mod lists;
mod live;

use crate::blocking::off;
use crate::body::{self, is_json};
use crate::consult::{Consultations, OpSender, Running};
use crate::identity::Identity;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use kd_app::Started;
use kd_app::host::{Host, Method, PlanChoice, Query, Refusal};
use kd_core::fork::Cut;
use kd_core::{Op, SeatName};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Path of the document.
pub(crate) const PATH: &str = "/";
/// Maximum bytes of a question in the page.
const QUESTION_BYTES_MAX: usize = 4 << 20;

/// Maximum bytes of a mark: a right answer may be a long text.
const MARK_BYTES_MAX: usize = 1 << 16;

/// State shared by the handlers.
struct Face {
    host: Arc<dyn Host>,
    running: Consultations,
    /// The running consultations of each thread.
    wishes: Mutex<BTreeMap<String, Vec<OpSender>>>,
}

/// The routes, including the document's, which needs no token.
pub(crate) fn router(host: Arc<dyn Host>, running: Consultations) -> Router {
    let face = Arc::new(Face {
        host,
        running,
        wishes: Mutex::default(),
    });
    Router::new()
        .route(PATH, get(document))
        .route("/page/batches", get(batches))
        .route("/page/threads", get(lists::threads))
        .route("/page/search", post(lists::search))
        .route("/page/members", get(lists::members))
        .route("/page/threads/{id}", get(thread))
        .route("/page/threads/{id}/stop", post(stop))
        .route("/page/threads/{id}/fork", post(fork))
        .route("/page/threads/{id}/resume", post(resume))
        .route("/page/threads/{id}/retry", post(retry))
        .merge(forum::routes())
        .merge(judgements())
        .route("/page/ask", post(ask))
        .layer(DefaultBodyLimit::max(QUESTION_BYTES_MAX))
        .with_state(face)
}

/// The routes of what the user says of answers and verdicts.
fn judgements() -> Router<Arc<Face>> {
    Router::new()
        .route("/page/threads/{id}/mark", post(mark))
        .route("/page/threads/{id}/choose", post(choose))
        .route_layer(middleware::from_fn(owner_only))
}

/// Refuses callers whose token has a name: they are others, and do not speak for the user.
async fn owner_only(
    Extension(caller): Extension<Identity>,
    request: Request,
    next: Next,
) -> Response {
    match caller.is_named() {
        true => fault(
            StatusCode::FORBIDDEN,
            "only the person who runs the server does this on the page; a token with a name takes part in the forum over MCP, under that name",
        ),
        false => next.run(request).await,
    }
}

async fn document() -> Response {
    let (text, policy) = kd_page::shell();
    let policy = format!("{policy}; frame-ancestors 'none'");
    let mut response = ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    response
}

/// Returns an error, as the page shows it.
fn fault(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

/// The body of a request: a JSON object.
struct Sent<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Sent<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        // A form of another page can be sent without asking the browser, but never as JSON.
        if !is_json(request.headers()) {
            let why = "a request has the header `Content-Type: application/json`";
            return Err(fault(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let body = Bytes::from_request(request, state).await.map_err(|_| {
            let why = "the body is longer than 4 MiB, or was cut off";
            fault(StatusCode::PAYLOAD_TOO_LARGE, why)
        })?;
        let read = body::parse(&body);
        read.map(Self)
            .map_err(|bad| fault(StatusCode::BAD_REQUEST, &bad.to_string()))
    }
}

fn refused(refusal: &Refusal) -> Response {
    fault(StatusCode::UNPROCESSABLE_ENTITY, &refusal.0)
}

async fn batches(State(face): State<Arc<Face>>) -> Response {
    match off(&face.host, |host| (host.batches(), host.fleet())).await {
        Ok((Ok(all), fleet)) => {
            let now = kd_core::Timestamp::now();
            let html = kd_page::batches(&all, fleet.as_ref(), now).into_string();
            Json(json!({ "html": html, "batches": all, "fleet": fleet })).into_response()
        }
        Ok((Err(refusal), _)) => refused(&refusal),
        Err(why) => fault(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}

async fn thread(State(face): State<Arc<Face>>, Path(id): Path<String>) -> Response {
    match live::stream(face.host.clone(), id).await {
        Ok(body) => ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response(),
        Err(refusal) => fault(StatusCode::NOT_FOUND, &refusal.0),
    }
}

/// A question from the page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    question: String,
    method: Way,
    #[serde(default)]
    thread: Option<String>,
    #[serde(default)]
    members: Vec<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    Ask,
    Think,
    Deliberate,
}

impl From<Way> for Method {
    fn from(way: Way) -> Self {
        match way {
            Way::Ask => Self::Ask,
            Way::Think => Self::Think,
            Way::Deliberate => Self::Deliberate,
        }
    }
}

async fn ask(State(face): State<Arc<Face>>, Sent(question): Sent<Question>) -> Response {
    if question.question.trim().is_empty() {
        return fault(StatusCode::BAD_REQUEST, "the question is empty");
    }
    let ask = Query {
        method: question.method.into(),
        question: question.question,
        members: question.members,
        thread: question.thread,
        plan: PlanChoice::default(),
        output: None,
    };
    start(face, move |host| host.ask(&ask)).await
}

/// The thread says what to resume: the request has an empty object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resume {}

async fn resume(
    State(face): State<Arc<Face>>,
    Path(id): Path<String>,
    Sent(Resume {}): Sent<Resume>,
) -> Response {
    start(face, move |host| host.resume(&id)).await
}

/// A member of a thread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seat {
    seat: SeatName,
}

/// Asks a member again whose last turn failed.
async fn retry(
    State(face): State<Arc<Face>>,
    Path(id): Path<String>,
    Sent(Seat { seat }): Sent<Seat>,
) -> Response {
    let mut session = match opened(&face, move |host| host.retry(&id, &seat)).await {
        Ok(started) => Session::of(&face, started),
        Err(response) => return response,
    };
    // Its first progress says that the member is asked; without one, it was refused.
    if session.running.told.recv().await.is_none() {
        return match session.running.end().await {
            Ok(_) => Json(json!({ "thread": session.thread, "notices": session.notices }))
                .into_response(),
            Err(why) => refused(&Refusal(why.to_string())),
        };
    }
    run(&face, session)
}

/// Records that the user chooses a member's newest answer, as `/pick` in a chat does.
async fn choose(
    State(face): State<Arc<Face>>,
    Path(id): Path<String>,
    Sent(Seat { seat }): Sent<Seat>,
) -> Response {
    let started = match opened(&face, move |host| host.choose(&id, &seat)).await {
        Ok(started) => started,
        Err(response) => return response,
    };
    match face.running.write(started).await {
        Ok(()) => Json(json!({ "chosen": true })).into_response(),
        Err(why) => refused(&Refusal(why.to_string())),
    }
}

/// The user's judgment of the newest verdict, as `kd mark` takes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    mark: String,
}

async fn mark(
    State(face): State<Arc<Face>>,
    Path(id): Path<String>,
    Sent(Mark { mark }): Sent<Mark>,
) -> Response {
    let word = mark.trim().to_owned();
    if word.is_empty() || word.len() > MARK_BYTES_MAX {
        let why = "a mark is `right`, `wrong`, a share, or the right answer";
        return fault(StatusCode::BAD_REQUEST, why);
    }
    match off(&face.host, move |host| host.mark(&id, &word)).await {
        Ok(Ok(line)) => Json(json!({ "marked": line })).into_response(),
        Ok(Err(refusal)) => refused(&refusal),
        Err(why) => fault(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}

/// Opens a session and runs it to its end.
async fn start(
    face: Arc<Face>,
    open: impl FnOnce(&dyn Host) -> Result<Started, Refusal> + Send + 'static,
) -> Response {
    match opened(&face, open).await {
        Ok(started) => run(&face, Session::of(&face, started)),
        Err(response) => response,
    }
}

/// Opens a session; else returns the response that says why not.
async fn opened(
    face: &Face,
    open: impl FnOnce(&dyn Host) -> Result<Started, Refusal> + Send + 'static,
) -> Result<Started, Response> {
    match off(&face.host, open).await {
        Ok(Ok(started)) => Ok(started),
        Ok(Err(refusal)) => Err(refused(&refusal)),
        Err(why) => Err(fault(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string())),
    }
}

/// A session that runs.
struct Session {
    thread: String,
    notices: Vec<String>,
    running: Running,
}

impl Session {
    fn of(face: &Face, started: Started) -> Self {
        Self {
            thread: started.session.thread().to_string(),
            notices: started.notices.clone(),
            running: face.running.start(started),
        }
    }
}

/// Lets a session run to its end.
fn run(face: &Arc<Face>, session: Session) -> Response {
    let Session {
        thread,
        notices,
        mut running,
    } = session;
    let wishes = running.wishes();
    face.lock().entry(thread.clone()).or_default().push(wishes);
    let work = face.clone();
    // The council answers even if no page is open; the answer is in the thread.
    tokio::spawn(async move {
        while running.told.recv().await.is_some() {}
        let _ = running.end().await;
        work.lock().retain(|_, all| {
            all.retain(|wishes| !wishes.is_over());
            !all.is_empty()
        });
    });
    Json(json!({ "thread": thread, "notices": notices })).into_response()
}

impl Face {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<OpSender>>> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which member to stop; `None` stops all.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stop {
    #[serde(default)]
    seat: Option<SeatName>,
}

async fn stop(
    State(face): State<Arc<Face>>,
    Path(id): Path<String>,
    Sent(stop): Sent<Stop>,
) -> Response {
    let op = match stop.seat {
        None => Op::Interrupt,
        Some(seat) => Op::Stop { seat },
    };
    let mut sent = false;
    // A member may be asked again while others still answer.
    for wishes in face.lock().get(&id).into_iter().flatten() {
        sent |= wishes.send(op.clone());
    }
    match sent {
        true => Json(json!({ "stopped": true })).into_response(),
        false => fault(
            StatusCode::CONFLICT,
            "this server is not asking anyone here: stop it where it was asked",
        ),
    }
}

/// Where to fork: before a message, at a stage, or after the last message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fork {
    #[serde(default)]
    before: Option<u32>,
    #[serde(default)]
    stage: Option<String>,
}

async fn fork(
    State(face): State<Arc<Face>>,
    Path(id): Path<String>,
    Sent(wanted): Sent<Fork>,
) -> Response {
    let cut = match (wanted.before, wanted.stage) {
        (None, None) => Cut::End,
        (Some(number), None) => Cut::Before(number),
        (None, Some(stage)) => Cut::Stage(stage),
        (Some(_), Some(_)) => {
            return fault(
                StatusCode::BAD_REQUEST,
                "give a message or a stage, not both",
            );
        }
    };
    match off(&face.host, move |host| host.fork(&id, &cut)).await {
        Ok(Ok(thread)) => Json(json!({ "thread": thread })).into_response(),
        Ok(Err(refusal)) => refused(&refusal),
        Err(why) => fault(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}
