//! Gemini's batches: `models/…:batchGenerateContent` with the requests in its body, and an operation (`/batches/…`) that
//! holds the responses. <https://ai.google.dev/api/batch-api>

use super::wire::{
    Call, Endpoint, Outcome, Page, Parcel, State, Unanswered, checked_id, created, list, said,
};
use crate::adapters::gemini::escaped;
use serde_json::{Value, json};

/// Maximum requests of a batch.
const REQUESTS_MAX: usize = 10_000;
/// Maximum bytes of requests in the body: the service's limit is 20 MB.
const BYTES_MAX: usize = 18_000_000;
/// Maximum bytes of the token of a page.
const TOKEN_MAX: usize = 2000;

pub(super) struct Gemini;

impl Endpoint for Gemini {
    fn most(&self) -> (usize, usize) {
        (REQUESTS_MAX, BYTES_MAX)
    }

    fn request(&self, id: &str, body: Value) -> Value {
        json!({"request": body, "metadata": {"key": id}})
    }

    fn create(&self, parcel: &Parcel<'_>, _file: Option<&str>) -> Call {
        let mut body = format!("{{\"batch\":{{\"displayName\":\"{}\",", parcel.name).into_bytes();
        body.extend_from_slice(b"\"inputConfig\":{\"requests\":{\"requests\":");
        body.extend_from_slice(&list(parcel.requests));
        body.extend_from_slice(b"}}}}");
        let model = escaped(parcel.model);
        Call::post(format!("/models/{model}:batchGenerateContent"), body)
    }

    fn id(&self, response: &Value) -> Option<String> {
        checked_id(response["name"].as_str()?.strip_prefix("batches/")?)
    }

    fn poll(&self, id: &str) -> Call {
        Call::get(format!("/batches/{id}"))
    }

    fn state(&self, id: &str, response: &Value, ids: &[String]) -> Option<State> {
        if self.id(response)? != id {
            return None;
        }
        let states = [&response["metadata"]["state"], &response["state"]];
        let state = states.iter().find_map(|state| state.as_str());
        // An operation need not tell more than whether it is done.
        let done = match (response["done"].as_bool(), response["error"].is_object()) {
            (Some(true), true) => "FAILED",
            (Some(true), false) => "SUCCEEDED",
            _ => "RUNNING",
        };
        let state = state.unwrap_or(done);
        let state = state.rsplit_once("STATE_").map_or(state, |(_, word)| word);
        let rest = match state {
            "SUCCEEDED" => Unanswered::Missing,
            "EXPIRED" => Unanswered::Expired,
            "CANCELLED" => Unanswered::Cancelled,
            "FAILED" => {
                return Some(State::Failed {
                    why: said(response),
                    wrong: Vec::new(),
                    later: response["error"]["code"] == 8 || response["error"]["code"] == 429,
                });
            }
            _ => return Some(State::Working),
        };
        Some(State::Ended {
            here: replies(response, ids),
            files: Vec::new(),
            rest,
        })
    }

    fn cancel(&self, id: &str) -> Call {
        Call::post(format!("/batches/{id}:cancel"), Vec::new())
    }

    fn list(&self, after: Option<&str>) -> Call {
        let after = after.map_or(String::new(), |token| {
            format!("&pageToken={}", escaped(token))
        });
        Call::get(format!("/batches?pageSize=100{after}"))
    }

    fn page(&self, list: &Value) -> Option<Page> {
        let fields = list.as_object()?;
        let next = fields.get("nextPageToken").and_then(Value::as_str);
        // A list of nothing has no field.
        let batches = match fields.get("operations") {
            Some(all) => all.as_array()?.clone(),
            None if fields.is_empty() || next.is_some() => Vec::new(),
            None => return None,
        };
        let last = batches.last();
        Some(Page {
            oldest: last.and_then(|last| created(&last["metadata"]["createTime"])),
            next: next
                .filter(|token| (1..=TOKEN_MAX).contains(&token.len()))
                .map(str::to_owned),
            batches,
        })
    }

    fn find(&self, batches: &[Value], name: &str, _since: i64, _count: usize) -> Option<String> {
        let is_ours = |one: &&Value| one["metadata"]["displayName"] == name;
        self.id(batches.iter().find(is_ours)?)
    }

    fn outcome(&self, mut line: Value) -> Option<(String, Outcome)> {
        let id = line["metadata"]["key"].as_str()?.to_owned();
        if line["response"].is_object() {
            return Some((id, Outcome::Reply(line["response"].take())));
        }
        let error = line["error"].take();
        // Codes of gRPC: 1 cancelled, 4 deadline exceeded; others may be a status of HTTP.
        let outcome = match error["code"].as_u64() {
            Some(1) => Outcome::Not(Unanswered::Cancelled),
            Some(4) => Outcome::Not(Unanswered::Expired),
            Some(code @ 400..600) => Outcome::Error(u16::try_from(code).ok(), error),
            Some(code) => Outcome::Error(Some(status(code)), error),
            None => Outcome::Error(None, error),
        };
        Some((id, outcome))
    }

    fn events(&self, reply: Value) -> Vec<Value> {
        vec![reply]
    }
}

/// Returns the status of HTTP of a code of gRPC.
fn status(code: u64) -> u16 {
    match code {
        3 | 9 | 11 => 400,
        5 => 404,
        7 => 403,
        8 => 429,
        16 => 401,
        _ => 503,
    }
}

/// Returns the responses of an operation, each with the key of its request.
fn replies(response: &Value, ids: &[String]) -> Vec<Value> {
    let found = [
        "/response/inlinedResponses",
        "/response/output/inlinedResponses",
        "/metadata/output/inlinedResponses",
        "/output/inlinedResponses",
    ]
    .iter()
    .find_map(|at| {
        let list = response.pointer(at)?;
        list.as_array()
            .or_else(|| list["inlinedResponses"].as_array())
    });
    let mut replies = found.cloned().unwrap_or_default();
    // Responses are in the order of the requests, if they have no keys.
    let is_keyed = |one: &Value| one["metadata"]["key"].is_string();
    if replies.len() == ids.len() && !replies.iter().any(is_keyed) {
        for (reply, id) in replies.iter_mut().zip(ids) {
            reply["metadata"] = json!({"key": id});
        }
    }
    replies
}
