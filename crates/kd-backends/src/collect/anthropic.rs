//! Anthropic's message batches: `/messages/batches`, with results in JSON Lines.
//! <https://platform.claude.com/docs/en/build-with-claude/batch-processing>

use super::wire::{
    Call, Endpoint, Outcome, Page, Parcel, State, Unanswered, checked_id, created, list,
};
use serde_json::{Value, json};

/// Maximum requests of a batch.
const REQUESTS_MAX: usize = 100_000;
/// Maximum bytes of a batch: the service's limit is 256 MB.
const BYTES_MAX: usize = 240_000_000;
/// How far the clock of the service may be behind ours, in seconds.
const SKEW: i64 = 120;

pub(super) struct Anthropic;

impl Endpoint for Anthropic {
    fn most(&self) -> (usize, usize) {
        (REQUESTS_MAX, BYTES_MAX)
    }

    fn request(&self, id: &str, mut body: Value) -> Value {
        if let Some(body) = body.as_object_mut() {
            body.remove("stream");
        }
        json!({"custom_id": id, "params": body})
    }

    fn create(&self, parcel: &Parcel<'_>, _file: Option<&str>) -> Call {
        let mut body = b"{\"requests\":".to_vec();
        body.extend_from_slice(&list(parcel.requests));
        body.push(b'}');
        Call::post("/messages/batches".to_owned(), body)
    }

    fn id(&self, response: &Value) -> Option<String> {
        checked_id(response["id"].as_str()?)
    }

    fn poll(&self, id: &str) -> Call {
        Call::get(format!("/messages/batches/{id}"))
    }

    fn state(&self, id: &str, response: &Value, _ids: &[String]) -> Option<State> {
        if response["id"] != id {
            return None;
        }
        Some(match response["processing_status"].as_str()? {
            // `results_url` is data: the results are read at the address of the service.
            "ended" => State::Ended {
                here: Vec::new(),
                files: vec![Call::get(format!("/messages/batches/{id}/results"))],
                rest: Unanswered::Missing,
            },
            _ => State::Working,
        })
    }

    fn cancel(&self, id: &str) -> Call {
        Call::post(format!("/messages/batches/{id}/cancel"), Vec::new())
    }

    fn list(&self, after: Option<&str>) -> Call {
        let after = after.map_or(String::new(), |id| format!("&after_id={id}"));
        Call::get(format!("/messages/batches?limit=100{after}"))
    }

    fn page(&self, list: &Value) -> Option<Page> {
        Page::of_data(list)
    }

    fn find(&self, batches: &[Value], _name: &str, since: i64, count: usize) -> Option<String> {
        // A batch has no name here. The ids in its results show whether it belongs to another program.
        let fits = |batch: &&Value| {
            let created = created(&batch["created_at"]);
            let counts = batch["request_counts"].as_object();
            let counts = counts.map(|counts| counts.values().filter_map(Value::as_u64).sum());
            created.is_some_and(|at| at >= since - SKEW) && counts == u64::try_from(count).ok()
        };
        self.id(batches.iter().find(fits)?)
    }

    fn outcome(&self, mut line: Value) -> Option<(String, Outcome)> {
        let id = line["custom_id"].as_str()?.to_owned();
        let result = &mut line["result"];
        let outcome = match result["type"].as_str()? {
            "succeeded" => Outcome::Reply(result["message"].take()),
            "errored" => Outcome::Error(None, result["error"].take()),
            "canceled" => Outcome::Not(Unanswered::Cancelled),
            "expired" => Outcome::Not(Unanswered::Expired),
            _ => return None,
        };
        Some((id, outcome))
    }

    fn events(&self, mut reply: Value) -> Vec<Value> {
        let stop = reply["stop_reason"].take();
        let details = reply["stop_details"].take();
        let usage = reply["usage"].clone();
        let content = reply["content"].take();
        let mut events = vec![json!({"type": "message_start", "message": reply})];
        let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
        for (index, block) in blocks.iter().enumerate() {
            events.push(
                json!({"type": "content_block_start", "index": index, "content_block": block}),
            );
            let delta = match block["type"].as_str() {
                Some("tool_use") => Some(
                    json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}),
                ),
                _ => None,
            };
            if let Some(delta) = delta {
                events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        events.push(json!({"type": "message_delta", "usage": usage,
            "delta": {"stop_reason": stop, "stop_details": details}}));
        events.push(json!({"type": "message_stop"}));
        events
    }
}
