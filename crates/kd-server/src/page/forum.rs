//! The screens of the forum: all of it, one of its threads, and what the user who runs the server writes and decides there.

use super::{Face, Sent, fault, owner_only, refused};
use crate::blocking::off;
use crate::error::Stopped;
use axum::Json;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use kd_app::host::{InForum, OnMotion, Placed, Refusal};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Maximum bytes of a reason. Posts are limited by the size of a request, and by the limits of the forum.
const REASON_BYTES_MAX: usize = 1 << 16;

/// The routes. They are for the user that runs the server: reading and writing happen in the name of the owner.
pub(super) fn routes() -> Router<Arc<Face>> {
    Router::new()
        .route("/page/forum", get(forum))
        .route("/page/forum/threads", post(begin))
        .route("/page/forum/threads/{id}", get(thread).post(reply))
        .route("/page/forum/motions", post(propose))
        .route("/page/forum/motions/{id}", post(decide))
        .route_layer(middleware::from_fn(owner_only))
}

async fn forum(State(face): State<Arc<Face>>) -> Response {
    let read = off(&face.host, |host| host.forum_page()).await;
    shown(read.map(|found| match found {
        Ok(Some(forum)) => Ok(kd_page::forum(&forum)),
        Ok(None) => Ok(kd_page::forum_to_begin()),
        // Why it is not shown is what this screen shows.
        Err(Refusal(why)) => Ok(kd_page::no_forum(&why)),
    }))
}

async fn thread(State(face): State<Arc<Face>>, id: Result<Path<i64>, PathRejection>) -> Response {
    let Ok(Path(id)) = id else {
        return no_number();
    };
    let read = off(&face.host, move |host| host.forum_thread(id)).await;
    shown(
        read.map(|found| {
            found.map(|(topic, posts, more)| kd_page::forum_thread(&topic, &posts, more))
        }),
    )
}

fn shown(page: Result<Result<kd_page::Markup, Refusal>, Stopped>) -> Response {
    match page {
        Ok(Ok(html)) => Json(json!({ "html": html.into_string() })).into_response(),
        Ok(Err(refusal)) => refused(&refusal),
        Err(why) => fault(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}

/// A new thread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewThread {
    title: String,
    body: String,
}

/// A post in a thread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    body: String,
    #[serde(default)]
    quote: Option<i64>,
}

/// A motion in the words of `kd forum propose`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewMotion {
    what: String,
    reason: String,
}

async fn begin(
    State(face): State<Arc<Face>>,
    Sent(NewThread { title, body }): Sent<NewThread>,
) -> Response {
    write(&face, InForum::Thread(title, body)).await
}

async fn reply(
    State(face): State<Arc<Face>>,
    id: Result<Path<i64>, PathRejection>,
    Sent(Reply { body, quote }): Sent<Reply>,
) -> Response {
    let Ok(Path(id)) = id else {
        return no_number();
    };
    write(&face, InForum::Reply(id, body, quote)).await
}

async fn propose(
    State(face): State<Arc<Face>>,
    Sent(NewMotion { what, reason }): Sent<NewMotion>,
) -> Response {
    write(&face, InForum::Motion(what, reason)).await
}

fn no_number() -> Response {
    fault(
        StatusCode::BAD_REQUEST,
        "threads and motions of the forum have numbers",
    )
}

async fn write(face: &Face, what: InForum) -> Response {
    match off(&face.host, move |host| host.write_in_forum(&what)).await {
        Ok(Ok(Placed {
            thread,
            post,
            masked,
        })) => Json(json!({ "thread": thread, "post": post, "masked": masked })).into_response(),
        Ok(Err(refusal)) => refused(&refusal),
        Err(why) => fault(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}

/// The user's decision on a motion.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    decision: Kind,
    #[serde(default)]
    choice: Option<String>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Vote,
    Confirm,
    Refuse,
}

impl Decision {
    /// Returns the decision.
    ///
    /// # Errors
    /// If it has too many fields, or too few.
    fn read(self) -> Result<OnMotion, &'static str> {
        match (self.decision, self.choice, self.reason) {
            (Kind::Vote, Some(choice), reason) => {
                Ok(OnMotion::Vote(choice, reason.unwrap_or_default()))
            }
            (Kind::Vote, None, _) => Err("`choice` is missing"),
            (Kind::Confirm, None, None) => Ok(OnMotion::Confirm),
            (Kind::Confirm, ..) => Err("a confirmation has no `choice` and no `reason`"),
            (Kind::Refuse, None, Some(reason)) => Ok(OnMotion::Refuse(reason)),
            (Kind::Refuse, None, None) => Err("`reason` is missing"),
            (Kind::Refuse, Some(_), _) => Err("a refusal has no `choice`"),
        }
    }
}

async fn decide(
    State(face): State<Arc<Face>>,
    id: Result<Path<i64>, PathRejection>,
    Sent(wanted): Sent<Decision>,
) -> Response {
    let Ok(Path(id)) = id else {
        return no_number();
    };
    let decision = match wanted.read() {
        Ok(decision) => decision,
        Err(why) => return fault(StatusCode::BAD_REQUEST, why),
    };
    if let OnMotion::Vote(_, reason) | OnMotion::Refuse(reason) = &decision
        && reason.len() > REASON_BYTES_MAX
    {
        return fault(
            StatusCode::BAD_REQUEST,
            "the reason is too long: shorten it",
        );
    }
    match off(&face.host, move |host| host.decide_motion(id, &decision)).await {
        Ok(Ok(())) => Json(json!({ "done": true })).into_response(),
        Ok(Err(refusal)) => refused(&refusal),
        Err(why) => fault(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}
