//! The council as a model, over the APIs of OpenAI (Chat Completions, Responses) and Anthropic (Messages), streamed and
//! complete, and the list of models.
//!
//! Input: a client's transcript. Output: one answer, its progress as thinking, and under `kd` each member's messages,
//! the verdict, the thread and total usage. A transcript that continues an answer of this server continues in its
//! thread. Each API is one file that parses requests into a [`Transcript`] and writes answers as a [`Wire`].

mod acts;
mod anthropic;
mod chat;
mod echo;
mod fault;
mod fields;
mod items;
mod kept;
mod offer;
mod picture;
mod response;
mod responses;
mod side;
mod stream;
mod talk;
mod transcript;

use crate::answer::Answer;
use crate::blocking::Opening;
use crate::consult::Consultations;
use crate::identity::Identity;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use fault::{Fault, Shape};
use items::Items;
use kd_app::host::{Host, Model};
use kd_core::Usage;
use kd_core::acting::Talk;
use kept::Held;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use stream::Streamed;
pub(crate) use talk::QUESTION_BYTES_MAX;
use talk::Talks;
use transcript::Transcript;

/// Path of the models.
pub(crate) const PATH: &str = "/v1";
/// Path of Anthropic's API.
const MESSAGES: &str = "/v1/messages";
/// The header that names an answer's thread.
const THREAD: &str = "x-kd-thread";
/// Maximum bytes of a model name, including the members it lists.
const MODEL_BYTES_MAX: usize = 2048;

/// The prefix of each model name.
const PREFIX: &str = "kd/";
/// The same for clients that read the text before a slash as a provider.
const PREFIX_PLAIN: &str = "kd-";

/// State shared by the handlers.
struct Face {
    host: Arc<dyn Host>,
    opening: Opening,
    running: Consultations,
    talks: Talks,
    /// The threads of conversations with tools.
    acts: acts::Acts,
    /// The items of earlier answers.
    items: Items,
    /// Number of answers so far.
    calls: AtomicU64,
}

impl Face {
    /// Begins an answer.
    fn call(&self, thread: &str, model: String, is_kept: bool) -> Call {
        let created = now();
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        Call {
            id: format!("{thread}-{created:x}-{number:x}"),
            model,
            created,
            is_kept,
        }
    }
}

/// Returns the error for a request that was not admitted: in the API's format on these routes, else as text.
pub(crate) fn turned_away(
    (path, headers): (&str, &HeaderMap),
    status: StatusCode,
    why: &'static str,
) -> Response {
    match path.starts_with(PATH) {
        true => Fault::door(status, why).response(match Shape::of(path) {
            Shape::OpenAi => shape(headers),
            Shape::Anthropic => Shape::Anthropic,
        }),
        false => (status, format!("{why}\n")).into_response(),
    }
}

/// Returns the error for a request that found no place.
pub(crate) fn busy(request: (&str, &HeaderMap), status: StatusCode, why: &'static str) -> Response {
    fault::may_be_repeated(turned_away(request, status, why))
}

/// The routes.
pub(crate) fn router(host: Arc<dyn Host>, running: Consultations) -> Router {
    let face = Arc::new(Face {
        host,
        opening: Opening::default(),
        running,
        talks: Talks::default(),
        acts: acts::Acts::default(),
        items: Items::default(),
        calls: AtomicU64::default(),
    });
    Router::new()
        .route("/v1/models", get(models))
        .route("/v1/models/", get(models))
        .route("/v1/models/{*id}", get(model))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/chat/completions/", post(chat))
        .route("/v1/responses", post(responses))
        .route("/v1/responses/", post(responses))
        .route(MESSAGES, post(messages))
        .route("/v1/messages/", post(messages))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .route("/v1/messages/count_tokens/", post(count_tokens))
        .fallback(|uri: Uri| async move { Fault::path().response(Shape::of(uri.path())) })
        .method_not_allowed_fallback(|uri: Uri| async move {
            Fault::method().response(Shape::of(uri.path()))
        })
        // Body size is limited on admission.
        .layer(DefaultBodyLimit::disable())
        .with_state(face)
}

/// Returns whether a client speaks Anthropic's API, which it shows by sending the API version.
fn shape(headers: &HeaderMap) -> Shape {
    match headers.contains_key("anthropic-version") {
        true => Shape::Anthropic,
        false => Shape::OpenAi,
    }
}

/// Returns a model's entry in a list.
fn row(shape: Shape, name: &str, what: &str) -> Value {
    match shape {
        Shape::OpenAi => {
            json!({"id": name, "object": "model", "created": 0, "owned_by": "kd", "description": what})
        }
        Shape::Anthropic => {
            json!({"id": name, "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z", "description": what})
        }
    }
}

async fn models(State(face): State<Arc<Face>>, headers: HeaderMap) -> Json<Value> {
    let shape = shape(&headers);
    let models = face.host.models();
    let rows: Vec<Value> = models
        .iter()
        .map(|model| row(shape, &format!("{PREFIX}{}", model.name), &model.doc))
        .collect();
    Json(match shape {
        Shape::OpenAi => json!({"object": "list", "data": rows}),
        Shape::Anthropic => json!({
            "first_id": rows.first().map(|row| &row["id"]),
            "last_id": rows.last().map(|row| &row["id"]),
            "has_more": false,
            "data": rows,
        }),
    })
}

async fn model(
    State(face): State<Arc<Face>>,
    headers: HeaderMap,
    id: Result<Path<String>, PathRejection>,
) -> Response {
    let shape = shape(&headers);
    let Ok(Path(id)) = id else {
        return Fault::path().response(shape);
    };
    let models = face.host.models();
    match find(&models, at_thread(&id).0) {
        Some(model) => Json(row(shape, &id, &model.doc)).into_response(),
        None => Fault::model(&id, names(&models)).response(shape),
    }
}

fn names(models: &[Model]) -> String {
    let names = models.iter().map(|model| format!("{PREFIX}{}", model.name));
    names.collect::<Vec<_>>().join(", ")
}

/// Splits the thread off the name of a model: `kd/ask@council-a8b3`.
fn at_thread(named: &str) -> (&str, Option<&str>) {
    match named.rsplit_once('@') {
        Some((model, thread)) if !thread.is_empty() => (model, Some(thread)),
        _ => (named, None),
    }
}

/// Finds a model by its name, and the members that the name lists: `kd/ask:claude,codex`.
fn find(models: &[Model], named: &str) -> Option<Model> {
    if named.len() > MODEL_BYTES_MAX {
        return None;
    }
    let (name, members) = named.split_once(':').unwrap_or((named, ""));
    let name = name
        .strip_prefix(PREFIX)
        .or_else(|| name.strip_prefix(PREFIX_PLAIN))?;
    let mut model = models.iter().find(|model| model.name == name)?.clone();
    let members = members.split(',').map(str::trim).filter(|m| !m.is_empty());
    let members: Vec<String> = members.map(str::to_owned).collect();
    if !members.is_empty() {
        model.members = members;
    }
    Some(model)
}

/// A parsed request.
struct Read {
    transcript: Transcript,
    /// The same step by step, with the tools.
    talk: Talk,
    /// Whether tools may be called, or were called before.
    acts: bool,
    /// Whether the client asks for itself, for example for a title.
    side: bool,
    streams: bool,
    wire: Box<dyn Wire>,
}

/// One answer in progress.
struct Call {
    /// Its unique ID.
    id: String,
    model: String,
    created: u64,
    /// Whether its thread is kept.
    is_kept: bool,
}

/// Writes answers in an API's format. A stream is text of server-sent events.
trait Wire: Send + 'static {
    /// Returns the ID by which a later request can continue from this answer.
    fn goes_on_by(&self, _call: &Call) -> Option<String> {
        None
    }
    /// Returns the items of the answer, to which a later request can refer, after it was written.
    fn items(&self, _call: &Call, _answer: &Answer) -> Vec<Value> {
        Vec::new()
    }
    /// Returns the field in which a request demands the form of the answer.
    fn form(&self) -> &'static str;
    /// Returns the answer as one object.
    fn whole(&self, call: &Call, answer: &Answer) -> Value;
    /// Starts a stream.
    fn begin(&mut self, call: &Call) -> String;
    /// Writes a keep-alive.
    fn quiet(&mut self, _call: &Call) -> String {
        ": the council works\n\n".to_owned()
    }
    /// Writes a line of progress.
    fn thought(&mut self, call: &Call, line: &str) -> String;
    /// Writes a piece of the answer.
    fn text(&mut self, call: &Call, piece: &str) -> String;
    /// Ends a stream after the complete text.
    fn end(&mut self, call: &Call, answer: &Answer, text: &str) -> String;
    /// Ends a stream without an answer.
    fn fail(&mut self, call: &Call, fault: &Fault) -> String;
}

/// Parses a request of an API; the second function puts items in the place of references to them.
type Reads = fn(&[u8], &Resolve<'_>) -> Result<Read, Fault>;
type Resolve<'a> = dyn Fn(&mut [Value], &'static str) -> Result<(), Fault> + 'a;

async fn chat(face: State<Arc<Face>>, caller: Extension<Identity>, body: Bytes) -> Response {
    answered(face, caller, body, chat::read, Shape::OpenAi).await
}

async fn responses(face: State<Arc<Face>>, caller: Extension<Identity>, body: Bytes) -> Response {
    answered(face, caller, body, responses::read, Shape::OpenAi).await
}

async fn messages(face: State<Arc<Face>>, caller: Extension<Identity>, body: Bytes) -> Response {
    answered(face, caller, body, anthropic::read, Shape::Anthropic).await
}

async fn count_tokens(State(face): State<Arc<Face>>, body: Bytes) -> Response {
    let counted = anthropic::count(&body).and_then(|(model, count)| {
        let models = face.host.models();
        match find(&models, at_thread(model.trim()).0) {
            Some(_) => Ok(count),
            None => Err(Fault::model(&model, names(&models))),
        }
    });
    match counted {
        Ok(count) => Json(count).into_response(),
        Err(fault) => fault.response(Shape::Anthropic),
    }
}

async fn answered(
    State(face): State<Arc<Face>>,
    Extension(caller): Extension<Identity>,
    body: Bytes,
    reads: Reads,
    shape: Shape,
) -> Response {
    let resolve = |items: &mut [Value], param| face.items.resolve(&caller, items, param);
    let answered = match reads(&body, &resolve) {
        Ok(request) => answer(&face, &caller, request).await,
        Err(fault) => Err(fault),
    };
    answered.unwrap_or_else(|fault| fault.response(shape))
}

/// Answers a request, complete or streamed.
async fn answer(face: &Arc<Face>, caller: &Identity, request: Read) -> Result<Response, Fault> {
    let models = face.host.models();
    let (named, thread) = at_thread(request.transcript.model.trim());
    let thread = thread.map(str::to_owned);
    let Some(council) = find(&models, named) else {
        return Err(Fault::model(&request.transcript.model, names(&models)));
    };
    let model = request.transcript.model.clone();
    let Read {
        transcript,
        talk,
        acts,
        side,
        streams,
        wire,
    } = request;
    let (kept, started) = if side && !acts {
        kept::aside(face, talk, council.members).await?
    } else {
        let form = talk.schema.clone();
        match kept::acting(face, caller, council.method, (talk, acts), &transcript)? {
            Some(talk) => {
                picture::check(&talk, acts, wire.form())?;
                kept::act(face, caller, (talk, thread), council.members).await?
            }
            None => {
                let field = wire.form();
                // Compiling its patterns takes a moment.
                let output = face.opening.off(&face.host, move |_| {
                    form.map(|schema| fields::output(schema, field)).transpose()
                });
                let given = (thread, output.await.map_err(Fault::broken)??);
                kept::ask(face, caller, &transcript, council, given).await?
            }
        }
    };
    let is_kept = started.scratch.is_none();
    let thread = started.session.thread().0.clone();
    let call = face.call(&thread, model, is_kept);
    let mut running = face.running.start(started);
    let mut held = Held::new(face, caller, kept);
    if streams {
        let streamed = Streamed {
            call,
            wire,
            running,
            sent: String::new(),
            void: false,
            over: false,
            held,
        };
        return Ok(with_thread(streamed.response(), &thread, is_kept));
    }
    // Progress is only for streams.
    while running.told.recv().await.is_some() {}
    let ended = running.end().await.map_err(Fault::from);
    let answer = match ended {
        Ok(answer) if answer.is_answer() => answer,
        ended => {
            held.put_back();
            return Err(match ended {
                Ok(answer) => Fault::unanswered(&answer),
                Err(fault) => fault,
            });
        }
    };
    let id = wire.goes_on_by(&call);
    held.remember(&answer, &answer.content(), id.as_deref());
    face.items.remember(caller, wire.items(&call, &answer));
    let whole = Json(wire.whole(&call, &answer)).into_response();
    Ok(with_sums(with_thread(whole, &thread, is_kept), &answer))
}

/// Adds a header that names the thread if it is kept, for clients that read only the standard fields.
fn with_thread(mut response: Response, thread: &str, is_kept: bool) -> Response {
    if let Ok(thread) = HeaderValue::from_str(thread)
        && is_kept
    {
        response.headers_mut().insert(THREAD, thread);
    }
    response
}

/// Adds headers with the outcome and the usage of all members together. A stream has sent its headers before.
fn with_sums(mut response: Response, answer: &Answer) -> Response {
    for (name, value) in answer.sums() {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Marks usage that was not reported as a whole. Clients require numbers: an unknown value counts as 0, a lower bound.
fn marked(mut value: Value, usage: &Usage) -> Value {
    if !usage.certainty.is_exact() {
        value["certainty"] = json!(usage.certainty);
    }
    value
}

/// Formats a named server-sent event.
fn named_event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Returns one of two words: for a complete answer, and for one cut off by a token limit.
fn finish(answer: &Answer, whole: &'static str, cut: &'static str) -> &'static str {
    match answer.is_cut() {
        true => cut,
        false => whole,
    }
}

/// The same, and a third word for an answer that ends with calls of the client's tools.
fn finish_or_call(
    answer: &Answer,
    whole: &'static str,
    cut: &'static str,
    calls: &'static str,
) -> &'static str {
    match answer.calls().is_empty() {
        true => finish(answer, whole, cut),
        false => calls,
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::config::{ModelConfig, ServeConfig};

    #[test]
    fn a_model_names_a_council_and_its_members() {
        let own = ModelConfig {
            members: vec!["cyd".into()],
            ..ModelConfig::default()
        };
        let serve = ServeConfig {
            models: [("fast".to_owned(), own)].into(),
            ..ServeConfig::default()
        };
        let models = Model::of(&serve);
        let found = |model: &str| {
            let model = find(&models, model)?;
            Some((model.name, model.members.join(",")))
        };
        for (model, name, members) in [
            ("kd/ask", Some("ask"), ""),
            ("kd/think", Some("think"), ""),
            ("kd/deliberate", Some("deliberate"), ""),
            ("kd/diverse", Some("diverse"), ""),
            ("kd/fast", Some("fast"), "cyd"),
            ("kd-ask", Some("ask"), ""),
            ("kd-fast:ann", Some("fast"), "ann"),
            ("kd-", None, ""),
            ("kd/fast:ann", Some("fast"), "ann"),
            ("kd/ask:claude", Some("ask"), "claude"),
            ("kd/ask: a, b,", Some("ask"), "a,b"),
            ("ask", None, ""),
            ("kd/", None, ""),
            ("gpt-5", None, ""),
            ("", None, ""),
        ] {
            let expected = name.map(|name| (name.to_owned(), members.to_owned()));
            assert_eq!(found(model), expected, "{model}");
        }
        for preset in kd_core::planner::presets::PRESETS {
            let model = find(&models, &format!("kd/{}", preset.name)).expect("a model");
            assert_eq!(model.plan.preset.as_deref(), Some(preset.name));
        }
    }
}
