//! The council as a model: OpenAI's Chat Completions, streamed and whole, and the list of models.
//!
//! Comes in: the transcript of a client. Goes out: one answer, its progress as reasoning, and under `kd` who said what, the
//! verdict, the thread and what all members used. A transcript that goes on where an answer of ours ended goes on in its
//! thread.

mod talk;
mod wire;

use crate::answer::Answer;
use crate::consult::{Consultations, Running, Told};
use crate::identity::Identity;
use crate::kingdom::{Kingdom, Method, off};
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, Extension, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, body::Body};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use talk::Talks;
use wire::{Chat, Fault};

/// Where the models are.
pub(crate) const PATH: &str = "/v1";
/// Maximum bytes of a model's name, with the members that it lists.
const MODEL_BYTES_MAX: usize = 2048;
/// A stream says something at least so often: clients and proxies close silent ones.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// The models: name, method, and what it does.
const MODELS: &[(&str, Method, &str)] = &[
    (
        "kd/ask",
        Method::Ask,
        "all members answer, the chair concludes",
    ),
    (
        "kd/think",
        Method::Think,
        "a fast and a rigorous member answer together",
    ),
    (
        "kd/deliberate",
        Method::Deliberate,
        "a council plans itself, answers, reviews and votes",
    ),
];

/// What the handlers share.
struct Face {
    kingdom: Arc<dyn Kingdom>,
    running: Consultations,
    talks: Talks,
}

/// What is said at the door to a client of these routes; a text for other clients.
pub(crate) fn turned_away(path: &str, status: StatusCode, why: &'static str) -> Response {
    match path.starts_with(PATH) {
        true => Fault::door(status, why).into_response(),
        false => (status, format!("{why}\n")).into_response(),
    }
}

/// The routes.
pub(crate) fn router(kingdom: Arc<dyn Kingdom>, running: Consultations) -> Router {
    let face = Arc::new(Face {
        kingdom,
        running,
        talks: Talks::default(),
    });
    Router::new()
        .route("/v1/models", get(models))
        .route("/v1/models/{*id}", get(model))
        .route("/v1/chat/completions", post(chat))
        .fallback(|| async { Fault::path().into_response() })
        .method_not_allowed_fallback(|| async { Fault::method().into_response() })
        // The door bounds bodies.
        .layer(DefaultBodyLimit::disable())
        .with_state(face)
}

/// A model in a list.
fn row(&(name, _, what): &(&str, Method, &str)) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "kd", "description": what})
}

async fn models(State(face): State<Arc<Face>>) -> Json<Value> {
    let here = MODELS.iter().filter(|row| face.kingdom.has(row.1));
    let rows: Vec<Value> = here.map(row).collect();
    Json(json!({"object": "list", "data": rows}))
}

async fn model(State(face): State<Arc<Face>>, id: Result<Path<String>, PathRejection>) -> Response {
    let Ok(Path(id)) = id else {
        return Fault::path().into_response();
    };
    let found = method(&id).filter(|(method, _)| face.kingdom.has(*method));
    let base = found.and_then(|(method, _)| MODELS.iter().find(|row| row.1 == method));
    match base {
        Some((_, method, what)) => Json(row(&(id.as_str(), *method, *what))).into_response(),
        None => Fault::model(&id, names()).into_response(),
    }
}

fn names() -> String {
    let names: Vec<&str> = MODELS.iter().map(|row| row.0).collect();
    names.join(", ")
}

/// The method of a model, and the members that its name lists: `kd/ask:claude,codex`.
fn method(model: &str) -> Option<(Method, Vec<String>)> {
    if model.len() > MODEL_BYTES_MAX {
        return None;
    }
    let (name, members) = model.split_once(':').unwrap_or((model, ""));
    let row = MODELS.iter().find(|row| row.0 == name)?;
    let members = members.split(',').map(str::trim).filter(|m| !m.is_empty());
    Some((row.1, members.map(str::to_owned).collect()))
}

async fn chat(
    State(face): State<Arc<Face>>,
    Extension(caller): Extension<Identity>,
    body: Bytes,
) -> Response {
    match answer(&face, &caller, &body).await {
        Ok(response) => response,
        Err(fault) => fault.into_response(),
    }
}

/// Answers a request, whole or streamed.
async fn answer(face: &Arc<Face>, caller: &Identity, body: &[u8]) -> Result<Response, Fault> {
    let request = Chat::read(body)?;
    let named = method(&request.model).filter(|(method, _)| face.kingdom.has(*method));
    let Some((method, members)) = named else {
        return Err(Fault::model(&request.model, names()));
    };
    let asked = face.talks.ask(caller, &request, method, members)?;
    let ask = asked.ask.clone();
    let started = off(&face.kingdom, move |kingdom| kingdom.ask(&ask)).await;
    let mut started = started.map_err(Fault::broken)?;
    if started.is_err() && asked.ask.thread.is_some() {
        // The thread is gone, or busy: the transcript has all that is needed.
        let ask = asked.anew.clone();
        let again = off(&face.kingdom, move |kingdom| kingdom.ask(&ask)).await;
        started = again.map_err(Fault::broken)?;
    }
    let started = started.map_err(|why| Fault::refused(&why.0))?;
    let call = Call {
        id: format!("chatcmpl-{}", started.session.thread().0),
        model: request.model.clone(),
        created: now(),
    };
    let mut running = face.running.start(started);
    if request.streams() {
        let usage = request.wants_usage();
        let face = Arc::clone(face);
        let done: Done = Box::new(move |shown| match shown {
            Some((answer, text)) => face.talks.remember(&asked, answer.thread(), text),
            None => face.talks.put_back(&asked),
        });
        return Ok(call.stream(running, usage, done));
    }
    // What is told meanwhile is for streams.
    while running.told.recv().await.is_some() {}
    let ended = running.end().await.map_err(|why| Fault::refused(&why));
    let answer = match ended {
        Ok(answer) if answer.is_answer() => answer,
        Ok(answer) => {
            face.talks.put_back(&asked);
            return Err(Fault::unanswered(&answer));
        }
        Err(fault) => {
            face.talks.put_back(&asked);
            return Err(fault);
        }
    };
    face.talks
        .remember(&asked, answer.thread(), &answer.content());
    Ok(Json(call.whole(&answer)).into_response())
}

/// One completion.
struct Call {
    id: String,
    model: String,
    created: u64,
}

impl Call {
    /// The answer as one object.
    fn whole(&self, answer: &Answer) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": answer.content(), "refusal": null},
                "logprobs": null,
                "finish_reason": finish(answer),
            }],
            "usage": wire::usage(&answer.usage()),
            "kd": answer.json(),
        })
    }

    /// A piece of a stream.
    fn chunk(&self, delta: Value, finish: Option<&str>) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
        })
    }

    /// The answer as server-sent events. When the client leaves, the stream is dropped and the council interrupted.
    fn stream(self, running: Running, wants_usage: bool, done: Done) -> Response {
        let begin = self.chunk(json!({"role": "assistant", "content": ""}), None);
        let state = Streamed {
            call: self,
            running,
            sent: String::new(),
            void: false,
            over: false,
            wants_usage,
            done,
        };
        let rest = stream::unfold(state, |mut state| async move {
            let events = state.next().await?;
            Some((events, state))
        });
        let events = stream::once(async move { event(&begin) }).chain(rest);
        let body = Body::from_stream(events.map(Ok::<_, Infallible>));
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        (StatusCode::OK, headers, body).into_response()
    }
}

/// What follows a stream: is given the answer with the text as sent, or nothing where there is no answer.
type Done = Box<dyn Fn(Option<(&Answer, &str)>) + Send>;

/// A stream at work.
struct Streamed {
    call: Call,
    running: Running,
    /// What was sent.
    sent: String,
    /// Whether that is void: the answer follows as a whole at the end.
    void: bool,
    over: bool,
    wants_usage: bool,
    done: Done,
}

impl Streamed {
    /// The next events, as they go out; `None` after the last.
    async fn next(&mut self) -> Option<String> {
        if self.over {
            return None;
        }
        let told = tokio::time::timeout(SIGN_OF_LIFE, self.running.told.recv()).await;
        Some(match told {
            Err(_) => ": the council works\n\n".to_owned(),
            Ok(Some(Told::Void)) => {
                self.void |= !self.sent.is_empty();
                ": the turn begins again\n\n".to_owned()
            }
            Ok(Some(Told::Text(_))) if self.void => ": the council works\n\n".to_owned(),
            Ok(Some(Told::Text(text))) => {
                self.sent.push_str(&text);
                event(&self.call.chunk(json!({"content": text}), None))
            }
            Ok(Some(Told::Line(line))) => {
                let delta = json!({"reasoning_content": format!("{line}\n")});
                event(&self.call.chunk(delta, None))
            }
            Ok(None) => {
                self.over = true;
                self.last().await
            }
        })
    }

    /// What remains to be sent at the end.
    async fn last(&mut self) -> String {
        let answer = match self.running.end().await {
            Ok(answer) if answer.is_answer() => answer,
            Ok(answer) => {
                (self.done)(None);
                return event(&Fault::unanswered(&answer).json()) + DONE;
            }
            Err(why) => {
                (self.done)(None);
                return event(&Fault::refused(&why).json()) + DONE;
            }
        };
        let content = answer.content();
        let rest = match content.strip_prefix(&self.sent).filter(|_| !self.void) {
            Some(rest) => rest.to_owned(),
            // An attempt broke off after it had begun: the answer that counts follows.
            None => format!("\n\n*(that broke off; the answer:)*\n\n{content}"),
        };
        self.sent.push_str(&rest);
        (self.done)(Some((&answer, &self.sent)));
        let mut out = String::new();
        if !rest.is_empty() {
            out += &event(&self.call.chunk(json!({"content": rest}), None));
        }
        let mut end = self.call.chunk(json!({}), Some(finish(&answer)));
        end["kd"] = answer.json();
        out += &event(&end);
        if self.wants_usage {
            let mut usage = self.call.chunk(json!({}), None);
            usage["choices"] = json!([]);
            usage["usage"] = wire::usage(&answer.usage());
            out += &event(&usage);
        }
        out + DONE
    }
}

const DONE: &str = "data: [DONE]\n\n";

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn finish(answer: &Answer) -> &'static str {
    match answer.is_cut() {
        true => "length",
        false => "stop",
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_names_a_method_and_its_members() {
        let found = |model: &str| method(model);
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        for (model, method) in [
            ("kd/ask", Some((Method::Ask, names(&[])))),
            ("kd/think", Some((Method::Think, names(&[])))),
            ("kd/deliberate", Some((Method::Deliberate, names(&[])))),
            ("kd/ask:claude", Some((Method::Ask, names(&["claude"])))),
            ("kd/ask: a, b,", Some((Method::Ask, names(&["a", "b"])))),
            ("ask", None),
            ("kd/", None),
            ("gpt-5", None),
            ("", None),
        ] {
            assert_eq!(found(model), method, "{model}");
        }
    }
}
