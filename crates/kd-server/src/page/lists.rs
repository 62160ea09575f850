//! The lists of the page: threads, some at a time or those with words that are looked for, and members that can be asked.

use super::{Face, Sent, fault, refused};
use crate::blocking::off;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kd_app::host::{Candidate, Listed, Listing};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Threads in one answer.
const AT_ONCE: usize = 50;
/// Maximum bytes of the words of a search.
const WORDS_BYTES_MAX: usize = 500;

/// Which threads are wanted.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    #[serde(default)]
    words: String,
    #[serde(default)]
    skip: usize,
}

/// The newest threads.
pub(super) async fn threads(State(face): State<Arc<Face>>) -> Response {
    list(&face, Wanted::default()).await
}

/// Threads with words in a message, or older ones. The words of a search are not part of any address.
pub(super) async fn search(State(face): State<Arc<Face>>, Sent(wanted): Sent<Wanted>) -> Response {
    list(&face, wanted).await
}

async fn list(face: &Face, Wanted { words, skip }: Wanted) -> Response {
    if words.len() > WORDS_BYTES_MAX {
        let why = format!("a search has at most {WORDS_BYTES_MAX} bytes: look for fewer words");
        return fault(StatusCode::BAD_REQUEST, &why);
    }
    let listing = Listing {
        words,
        skip,
        most: AT_ONCE,
    };
    match off(&face.host, move |host| host.list(&listing)).await {
        Ok(Ok((threads, more))) => {
            let threads: Vec<Value> = threads.into_iter().map(listed).collect();
            Json(json!({ "threads": threads, "more": more })).into_response()
        }
        Ok(Err(refusal)) => refused(&refusal),
        Err(why) => fault(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}

fn listed(thread: Listed) -> Value {
    let fork = thread.fork;
    json!({
        "id": thread.id,
        "topic": thread.topic,
        "messages": thread.messages,
        "opened": thread.opened.map(|at| at.to_string()),
        "fork": fork.map(|(of, left)| json!({ "of": of, "left": left })),
        "found": thread.found.map(|(seq, text)| json!({ "seq": seq, "text": text })),
    })
}

pub(super) async fn members(State(face): State<Arc<Face>>) -> Response {
    match off(&face.host, |host| host.members()).await {
        Ok(members) => {
            let shown = |one: &Candidate| json!({ "name": one.name, "model": one.model, "usual": one.is_usual });
            let members: Vec<Value> = members.iter().map(shown).collect();
            Json(json!({ "members": members })).into_response()
        }
        Err(why) => fault(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}
