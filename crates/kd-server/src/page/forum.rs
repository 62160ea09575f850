//! The screens of the forum: all of it, one of its threads, and what the user who runs the server writes and decides there.

use super::{Face, fault, owner_only, refused, unread};
use crate::blocking::off;
use crate::error::Stopped;
use axum::Json;
use axum::Router;
use axum::extract::rejection::{JsonRejection, PathRejection};
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
    wanted: Result<Json<NewThread>, JsonRejection>,
) -> Response {
    match wanted {
        Ok(Json(NewThread { title, body })) => write(&face, InForum::Thread(title, body)).await,
        Err(why) => unread(&why),
    }
}

async fn reply(
    State(face): State<Arc<Face>>,
    id: Result<Path<i64>, PathRejection>,
    wanted: Result<Json<Reply>, JsonRejection>,
) -> Response {
    let Ok(Path(id)) = id else {
        return no_number();
    };
    match wanted {
        Ok(Json(Reply { body, quote })) => write(&face, InForum::Reply(id, body, quote)).await,
        Err(why) => unread(&why),
    }
}

async fn propose(
    State(face): State<Arc<Face>>,
    wanted: Result<Json<NewMotion>, JsonRejection>,
) -> Response {
    match wanted {
        Ok(Json(NewMotion { what, reason })) => write(&face, InForum::Motion(what, reason)).await,
        Err(why) => unread(&why),
    }
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
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
enum Decision {
    Vote {
        choice: String,
        #[serde(default)]
        reason: String,
    },
    Confirm {},
    Refuse {
        reason: String,
    },
}

async fn decide(
    State(face): State<Arc<Face>>,
    id: Result<Path<i64>, PathRejection>,
    wanted: Result<Json<Decision>, JsonRejection>,
) -> Response {
    let Ok(Path(id)) = id else {
        return no_number();
    };
    let decision = match wanted {
        Ok(Json(Decision::Vote { choice, reason })) => OnMotion::Vote(choice, reason),
        Ok(Json(Decision::Confirm {})) => OnMotion::Confirm,
        Ok(Json(Decision::Refuse { reason })) => OnMotion::Refuse(reason),
        Err(why) => return unread(&why),
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
