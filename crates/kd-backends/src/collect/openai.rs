//! OpenAI's batches: a file of requests (`/files`), a batch (`/batches`), and files of results and errors.
//! <https://platform.openai.com/docs/api-reference/batch>

use super::wire::{Call, Endpoint, Outcome, Page, Parcel, State, Unanswered, checked_id};
use serde_json::{Value, json};

/// The endpoint to which the requests of a file go.
const ENDPOINT: &str = "/v1/chat/completions";
/// Maximum requests of a file.
const REQUESTS_MAX: usize = 50_000;
/// Maximum bytes of a file: the service's limit is 200 MB.
const BYTES_MAX: usize = 190_000_000;

pub(super) struct OpenAi;

impl Endpoint for OpenAi {
    fn most(&self) -> (usize, usize) {
        (REQUESTS_MAX, BYTES_MAX)
    }

    fn request(&self, id: &str, mut body: Value) -> Value {
        if let Some(body) = body.as_object_mut() {
            body.remove("stream");
            body.remove("stream_options");
        }
        json!({"custom_id": id, "method": "POST", "url": ENDPOINT, "body": body})
    }

    fn upload(&self, parcel: &Parcel<'_>) -> Option<Call> {
        let boundary = format!("kd-{}", parcel.name);
        let mut body = Vec::new();
        let head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
             --{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{}.jsonl\"\r\n\
             content-type: application/jsonl\r\n\r\n",
            parcel.name
        );
        body.extend_from_slice(head.as_bytes());
        for request in parcel.requests {
            body.extend_from_slice(request);
            body.push(b'\n');
        }
        body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        Some(Call {
            post: true,
            path: "/files".to_owned(),
            mime: format!("multipart/form-data; boundary={boundary}"),
            body,
        })
    }

    fn create(&self, parcel: &Parcel<'_>, file: Option<&str>) -> Call {
        let body = json!({
            "input_file_id": file.unwrap_or_default(),
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {"kd": parcel.name},
        });
        Call::post("/batches".to_owned(), body.to_string().into_bytes())
    }

    fn id(&self, response: &Value) -> Option<String> {
        checked_id(response["id"].as_str()?)
    }

    fn poll(&self, id: &str) -> Call {
        Call::get(format!("/batches/{id}"))
    }

    fn state(&self, id: &str, response: &Value, _ids: &[String]) -> Option<State> {
        if response["id"] != id {
            return None;
        }
        let rest = match response["status"].as_str()? {
            "completed" => Unanswered::Missing,
            "expired" => Unanswered::Expired,
            "cancelled" => Unanswered::Cancelled,
            "failed" => return Some(failed(&response["errors"]["data"])),
            _ => return Some(State::Working),
        };
        let file = |name: &str| {
            let id = checked_id(response[name].as_str()?)?;
            Some(Call::get(format!("/files/{id}/content")))
        };
        Some(State::Ended {
            here: Vec::new(),
            files: ["output_file_id", "error_file_id"]
                .into_iter()
                .filter_map(file)
                .collect(),
            rest,
        })
    }

    fn cancel(&self, id: &str) -> Call {
        Call::post(format!("/batches/{id}/cancel"), b"{}".to_vec())
    }

    fn list(&self, after: Option<&str>) -> Call {
        let after = after.map_or(String::new(), |id| format!("&after={id}"));
        Call::get(format!("/batches?limit=100{after}"))
    }

    fn page(&self, list: &Value) -> Option<Page> {
        Page::of_data(list)
    }

    fn find(&self, batches: &[Value], name: &str, _since: i64, _count: usize) -> Option<String> {
        let ours = batches
            .iter()
            .find(|batch| batch["metadata"]["kd"] == name)?;
        self.id(ours)
    }

    fn outcome(&self, mut line: Value) -> Option<(String, Outcome)> {
        let id = line["custom_id"].as_str()?.to_owned();
        let code = line["error"]["code"].as_str();
        let outcome = match code {
            Some("batch_expired") => Outcome::Not(Unanswered::Expired),
            Some("batch_cancelled") => Outcome::Not(Unanswered::Cancelled),
            _ => {
                let status = line["response"]["status_code"].as_u64();
                let status = status.and_then(|status| u16::try_from(status).ok());
                match status {
                    Some(200..300) => Outcome::Reply(line["response"]["body"].take()),
                    Some(status) => Outcome::Error(Some(status), line["response"]["body"].take()),
                    None => Outcome::Error(None, line["error"].take()),
                }
            }
        };
        Some((id, outcome))
    }

    fn events(&self, mut reply: Value) -> Vec<Value> {
        if let Some(choices) = reply["choices"].as_array_mut() {
            for choice in choices {
                choice["delta"] = choice["message"].take();
            }
        }
        vec![reply, Value::String("[DONE]".to_owned())]
    }
}

/// Reads why a batch was refused.
fn failed(errors: &Value) -> State {
    let errors = errors.as_array().map(Vec::as_slice).unwrap_or_default();
    let codes = errors.iter().filter_map(|error| error["code"].as_str());
    let wrong = errors.iter().filter_map(|error| {
        usize::try_from(error["line"].as_u64()?)
            .ok()?
            .checked_sub(1)
    });
    State::Failed {
        why: errors
            .first()
            .map_or_else(|| super::wire::said(&Value::Null), super::wire::said),
        wrong: wrong.collect(),
        later: codes.into_iter().any(|code| code == "token_limit_exceeded"),
    }
}
