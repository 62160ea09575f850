//! The screens of the forum: all of it, one of its threads, and decisions on motions, by the user who runs the server.

use super::{Face, fault, refused};
use crate::blocking::off;
use crate::error::Stopped;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kd_app::host::{OnMotion, Refusal};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Maximum bytes of a reason.
const REASON_BYTES_MAX: usize = 1 << 16;

pub(super) async fn forum(State(face): State<Arc<Face>>) -> Response {
    let read = off(&face.host, |host| host.forum_page()).await;
    shown(read.map(|found| match found {
        Ok(forum) => Ok(kd_page::forum(&forum)),
        // That there is none is what this screen shows.
        Err(Refusal(why)) => Ok(kd_page::no_forum(&why)),
    }))
}

pub(super) async fn thread(State(face): State<Arc<Face>>, Path(id): Path<i64>) -> Response {
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

/// What the user decides on a motion.
#[derive(Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Decision {
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

pub(super) async fn decide(
    State(face): State<Arc<Face>>,
    Path(id): Path<i64>,
    wanted: Result<Json<Decision>, JsonRejection>,
) -> Response {
    let decision = match wanted {
        Ok(Json(Decision::Vote { choice, reason })) => OnMotion::Vote(choice, reason),
        Ok(Json(Decision::Confirm {})) => OnMotion::Confirm,
        Ok(Json(Decision::Refuse { reason })) => OnMotion::Refuse(reason),
        Err(why) => return fault(StatusCode::BAD_REQUEST, &why.body_text()),
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
