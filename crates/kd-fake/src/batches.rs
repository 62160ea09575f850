//! A service with batch endpoints, in the wire formats of OpenAI, Anthropic and Gemini: it takes batches of requests, works
//! on them while it is polled, and repeats the last words of each request. It counts what it would bill.

use crate::reply::Reply;
use crate::server::{Fake, Seen};
use crate::wire::Wire;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tokens of every answer: of the prompt, and of the reply.
pub const TOKENS: (u64, u64) = (100, 10);

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchFault {
    /// Nothing.
    #[default]
    None,
    /// The first request of every batch fails with an error.
    ItemError,
    /// The first batch expires with half of its requests done.
    Expires,
    /// The first download of results is cut in the middle.
    CutResults,
    /// Results come in the reverse order.
    Reversed,
    /// Every result comes twice, the second time with another answer.
    Twice,
    /// Results of requests that nobody sent are among them.
    Unknown,
    /// A line of results is not JSON.
    Garbage,
    /// The first result of the first batch is missing.
    Missing,
    /// The first two submissions are refused with 429 and `retry-after: 1`.
    Busy,
    /// The response to the first submission is lost: the batch exists.
    LostResponse,
    /// The first batch is refused as a whole because of its second request.
    BadLine,
    /// Responses name another host for the results, and reading results redirects there.
    Elsewhere,
}

/// Every fault, for tests that loop over the table.
pub const FAULTS: [BatchFault; 13] = [
    BatchFault::None,
    BatchFault::ItemError,
    BatchFault::Expires,
    BatchFault::CutResults,
    BatchFault::Reversed,
    BatchFault::Twice,
    BatchFault::Unknown,
    BatchFault::Garbage,
    BatchFault::Missing,
    BatchFault::Busy,
    BatchFault::LostResponse,
    BatchFault::BadLine,
    BatchFault::Elsewhere,
];

/// The service; it runs until this value is dropped.
pub struct BatchService {
    fake: Fake,
    state: Arc<Mutex<Service>>,
}

#[derive(Default)]
struct Service {
    fault: BatchFault,
    /// Batches do not end while this is set.
    held: bool,
    files: BTreeMap<String, Vec<Value>>,
    batches: Vec<Batch>,
    billed: u64,
    direct: u64,
    refused: u32,
    cut: bool,
    lost: bool,
}

#[derive(Default)]
struct Batch {
    id: String,
    name: Value,
    requests: Vec<Value>,
    polls: u32,
    state: Phase,
    results: Vec<Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Working,
    Done,
    Expired,
    Cancelled,
    Failed,
}

impl BatchService {
    /// Listens on a free loopback port.
    pub async fn start(wire: Wire, fault: BatchFault) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(Service {
            fault,
            ..Service::default()
        }));
        let shared = Arc::clone(&state);
        let addr = SocketAddr::from(([127, 0, 0, 1], 0));
        let fake = Fake::choosing(addr, move |seen, _| {
            Some((wire, locked(&shared).answer(wire, seen)))
        })
        .await?;
        Ok(Self { fake, state })
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.fake.url()
    }

    /// Returns all requests of HTTP so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.fake.seen()
    }

    /// Holds all batches, or lets them go on.
    pub fn hold(&self, held: bool) {
        locked(&self.state).held = held;
    }

    /// Returns how many requests were answered in batches, and directly: each would be billed.
    pub fn billed(&self) -> (u64, u64) {
        let state = locked(&self.state);
        (state.billed, state.direct)
    }

    /// Returns the number of requests in each batch.
    pub fn batches(&self) -> Vec<usize> {
        let state = locked(&self.state);
        state.batches.iter().map(|one| one.requests.len()).collect()
    }

    /// Returns how many batches were cancelled.
    pub fn cancelled(&self) -> usize {
        let state = locked(&self.state);
        let is_cancelled = |one: &&Batch| one.state == Phase::Cancelled;
        state.batches.iter().filter(is_cancelled).count()
    }
}

fn locked(state: &Mutex<Service>) -> MutexGuard<'_, Service> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ok(value: &Value) -> Reply {
    Reply::Status {
        code: 200,
        headers: Vec::new(),
        body: Some(value.to_string()),
    }
}

/// An answer that fits every schema of a deliberation.
fn structured() -> String {
    json!({"reason": "r", "answer": "yes", "confidence": 0.8, "choice": "A", "ranking": ["A"],
        "recommendation": "Do it.", "consensus": "c", "support": "s", "dissent": "none", "cites": ["A"]})
    .to_string()
}

/// Returns the last words of a request; JSON if it has a schema.
fn echo(wire: Wire, body: &Value) -> String {
    let schemas = [
        &body["response_format"],
        &body["output_config"],
        &body["generationConfig"]["responseJsonSchema"],
    ];
    if schemas.iter().any(|schema| schema.is_object()) {
        return structured();
    }
    let last = |list: &Value| list.as_array().and_then(|list| list.last().cloned());
    let said = match wire {
        Wire::Gemini => last(&body["contents"]).and_then(|one| last(&one["parts"])),
        _ => last(&body["messages"]),
    };
    let said = said.unwrap_or_default();
    let content = match wire {
        Wire::Gemini => said["text"].clone(),
        _ => said["content"].clone(),
    };
    let text = match content {
        Value::String(text) => text,
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect(),
        _ => String::new(),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    format!(
        "echo: {}",
        words[words.len().saturating_sub(12)..].join(" ")
    )
}

/// Returns a complete response.
fn response(wire: Wire, text: &str) -> Value {
    let (input, output) = TOKENS;
    match wire {
        Wire::Anthropic => {
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "fake-1",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": input, "output_tokens": output}})
        }
        Wire::Gemini => {
            json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]},
            "finishReason": "STOP", "index": 0}], "modelVersion": "fake-1", "responseId": "r1",
            "usageMetadata": {"promptTokenCount": input, "candidatesTokenCount": output,
                "totalTokenCount": input + output}})
        }
        Wire::OpenAi | Wire::Responses => {
            json!({"id": "c1", "object": "chat.completion", "model": "fake-1",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "refusal": null},
                "finish_reason": "stop"}],
            "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}})
        }
    }
}

/// Returns a result, as it stands in the list or file of results.
fn result(wire: Wire, id: &Value, text: &str) -> Value {
    let response = response(wire, text);
    match wire {
        Wire::Anthropic => {
            json!({"custom_id": id, "result": {"type": "succeeded", "message": response}})
        }
        Wire::Gemini => json!({"metadata": {"key": id}, "response": response}),
        _ => json!({"id": "r", "custom_id": id, "error": null,
            "response": {"status_code": 200, "request_id": "q", "body": response}}),
    }
}

/// Returns the result of a request that failed.
fn error(wire: Wire, id: &Value) -> Value {
    let message = "the fake server says no";
    match wire {
        Wire::Anthropic => {
            json!({"custom_id": id, "result": {"type": "errored", "error": {"type": "error",
            "error": {"type": "invalid_request_error", "message": message}}}})
        }
        Wire::Gemini => {
            json!({"metadata": {"key": id}, "error": {"code": 3, "message": message}})
        }
        _ => json!({"id": "r", "custom_id": id, "error": null, "response": {"status_code": 400,
            "request_id": "q", "body": {"error": {"message": message, "type": "invalid_request_error"}}}}),
    }
}

/// Returns the result of a request that was not asked.
fn unasked(wire: Wire, id: &Value, expired: bool) -> Value {
    match wire {
        Wire::Anthropic => {
            let how = if expired { "expired" } else { "canceled" };
            json!({"custom_id": id, "result": {"type": how}})
        }
        Wire::Gemini => {
            let code = if expired { 4 } else { 1 };
            json!({"metadata": {"key": id}, "error": {"code": code, "message": "not asked"}})
        }
        _ => {
            let code = if expired {
                "batch_expired"
            } else {
                "batch_cancelled"
            };
            json!({"id": "r", "custom_id": id, "response": null,
                "error": {"code": code, "message": "not asked"}})
        }
    }
}

/// The id of a request in a batch, and its body.
fn parts(wire: Wire, request: &Value) -> (Value, Value) {
    match wire {
        Wire::Anthropic => (request["custom_id"].clone(), request["params"].clone()),
        Wire::Gemini => (
            request["metadata"]["key"].clone(),
            request["request"].clone(),
        ),
        _ => (request["custom_id"].clone(), request["body"].clone()),
    }
}

impl Service {
    fn answer(&mut self, wire: Wire, seen: &Seen) -> Reply {
        let path = seen.path.split('?').next().unwrap_or_default().to_owned();
        let (_, path) = path.split_at(path.find('/').unwrap_or(0));
        let path = path.trim_start_matches("/v1beta").trim_start_matches("/v1");
        let posts = seen.method == "POST";
        match (wire, path) {
            (Wire::OpenAi, "/files") if posts => self.file(seen),
            (Wire::OpenAi, "/batches") | (Wire::Anthropic, "/messages/batches") if posts => {
                self.create(wire, &seen.json())
            }
            (Wire::Gemini, path) if path.ends_with(":batchGenerateContent") => {
                self.create(wire, &seen.json())
            }
            (_, "/batches" | "/messages/batches") => self.list(wire),
            (Wire::OpenAi, path) if path.starts_with("/files/") => self.results(wire, path),
            (Wire::Anthropic, path) if path.ends_with("/results") => self.results(wire, path),
            (_, path)
                if path.starts_with("/batches/") || path.starts_with("/messages/batches/") =>
            {
                match path.ends_with("cancel") {
                    true => self.cancel(wire, path),
                    false => self.poll(wire, path),
                }
            }
            _ => {
                self.direct += 1;
                let said = echo(wire, &seen.json());
                Reply::words(&[said.as_str()])
            }
        }
    }

    /// Takes a file of requests.
    fn file(&mut self, seen: &Seen) -> Reply {
        let is_line = |line: &&str| line.starts_with('{');
        let lines = seen.body.lines().filter(is_line);
        let requests = lines.map(|line| serde_json::from_str(line).unwrap_or_default());
        let id = format!("file-{}", self.files.len() + 1);
        self.files.insert(id.clone(), requests.collect());
        ok(&json!({"id": id, "object": "file", "purpose": "batch"}))
    }

    fn create(&mut self, wire: Wire, body: &Value) -> Reply {
        if self.fault == BatchFault::Busy && self.refused < 2 {
            self.refused += 1;
            return Reply::status_with(429, "retry-after", "1");
        }
        let (requests, name) = match wire {
            Wire::Anthropic => (body["requests"].clone(), Value::Null),
            Wire::Gemini => (
                body["batch"]["inputConfig"]["requests"]["requests"].clone(),
                body["batch"]["displayName"].clone(),
            ),
            _ => {
                let file = body["input_file_id"].as_str().unwrap_or_default();
                let requests = self.files.get(file).cloned().unwrap_or_default();
                (requests.into(), body["metadata"]["kd"].clone())
            }
        };
        let requests = requests.as_array().cloned().unwrap_or_default();
        let id = format!("batch_{}", self.batches.len() + 1);
        let refuses = self.fault == BatchFault::BadLine && self.batches.is_empty();
        self.batches.push(Batch {
            id: id.clone(),
            name,
            requests,
            state: match refuses && wire == Wire::OpenAi {
                true => Phase::Failed,
                false => Phase::Working,
            },
            ..Batch::default()
        });
        if refuses && wire != Wire::OpenAi {
            self.batches.pop();
            self.fault = BatchFault::None;
            return Reply::status(400);
        }
        if self.fault == BatchFault::LostResponse && !std::mem::replace(&mut self.lost, true) {
            return Reply::Hangup;
        }
        let at = self.batches.len() - 1;
        ok(&self.shown(wire, at))
    }

    fn list(&self, wire: Wire) -> Reply {
        let all: Vec<Value> = (0..self.batches.len())
            .rev()
            .map(|at| self.shown(wire, at))
            .collect();
        ok(&match wire {
            Wire::Gemini => json!({"operations": all}),
            _ => json!({"data": all, "has_more": false}),
        })
    }

    fn find(&self, path: &str) -> Option<usize> {
        let names = |one: &Batch| path.split(['/', ':']).any(|part| part == one.id);
        self.batches.iter().position(names)
    }

    fn poll(&mut self, wire: Wire, path: &str) -> Reply {
        let Some(at) = self.find(path) else {
            return Reply::status(404);
        };
        let held = self.held;
        let batch = &mut self.batches[at];
        batch.polls += 1;
        if batch.state == Phase::Working && batch.polls > 1 && !held {
            self.work(wire, at);
        }
        ok(&self.shown(wire, at))
    }

    fn cancel(&mut self, wire: Wire, path: &str) -> Reply {
        let Some(at) = self.find(path) else {
            return Reply::status(404);
        };
        let batch = &mut self.batches[at];
        batch.state = Phase::Cancelled;
        let requests = batch.requests.iter();
        batch.results = requests
            .map(|request| unasked(wire, &parts(wire, request).0, false))
            .collect();
        ok(&self.shown(wire, at))
    }

    /// Works on a batch until it is over.
    fn work(&mut self, wire: Wire, at: usize) {
        let fault = self.fault;
        let is_first = at == 0;
        let batch = &mut self.batches[at];
        let count = batch.requests.len();
        let mut results = Vec::new();
        for (n, request) in batch.requests.iter().enumerate() {
            let (id, body) = parts(wire, request);
            let text = echo(wire, &body);
            match fault {
                BatchFault::ItemError if n == 0 => results.push(error(wire, &id)),
                BatchFault::Expires if is_first && n >= count.div_ceil(2) => {
                    results.push(unasked(wire, &id, true));
                }
                BatchFault::Missing if is_first && n == 0 => self.billed += 1,
                _ => {
                    self.billed += 1;
                    results.push(result(wire, &id, &text));
                    if fault == BatchFault::Twice {
                        results.push(result(wire, &id, "another answer"));
                    }
                    if fault == BatchFault::Unknown {
                        results.push(result(wire, &json!("nobody-1"), "of somebody else"));
                    }
                }
            }
        }
        if fault == BatchFault::Reversed {
            results.reverse();
        }
        if fault == BatchFault::Garbage {
            results.insert(0, json!("garbage"));
        }
        batch.results = results;
        batch.state = match fault {
            BatchFault::Expires if is_first => Phase::Expired,
            _ => Phase::Done,
        };
    }

    /// Returns the results of a batch, in lines.
    fn results(&mut self, wire: Wire, path: &str) -> Reply {
        if self.fault == BatchFault::Elsewhere && wire == Wire::Anthropic && !self.cut {
            self.cut = true;
            return Reply::status_with(302, "location", "http://127.0.0.1:9/stolen");
        }
        let Some(at) = self.find(&path.replace("file-of-", "")) else {
            return Reply::status(404);
        };
        let text: String = self.batches[at]
            .results
            .iter()
            .map(|result| match result.as_str() {
                Some(text) => format!("{text}\n"),
                None => format!("{result}\n"),
            })
            .collect();
        if self.fault == BatchFault::CutResults && !std::mem::replace(&mut self.cut, true) {
            let half = text.as_bytes()[..text.len() / 2].to_vec();
            return Reply::Stream(vec![crate::Step::Raw(half.into()), crate::Step::Cut]);
        }
        Reply::Body {
            mime: "application/x-jsonl".to_owned(),
            body: text.into_bytes().into(),
        }
    }

    /// Returns a batch as the service shows it.
    fn shown(&self, wire: Wire, at: usize) -> Value {
        let batch = &self.batches[at];
        let over = batch.state != Phase::Working;
        let count = batch.requests.len();
        match wire {
            Wire::Anthropic => {
                let host = match self.fault {
                    BatchFault::Elsewhere => "http://127.0.0.1:9",
                    _ => "http://127.0.0.1",
                };
                json!({"id": batch.id, "type": "message_batch", "created_at": "2100-01-01T00:00:00Z",
                    "processing_status": if over { "ended" } else { "in_progress" },
                    "request_counts": {"processing": count, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
                    "results_url": over.then(|| format!("{host}/v1/messages/batches/{}/results", batch.id))})
            }
            Wire::Gemini => {
                let state = match batch.state {
                    Phase::Working => "BATCH_STATE_RUNNING",
                    Phase::Done => "BATCH_STATE_SUCCEEDED",
                    Phase::Expired => "BATCH_STATE_EXPIRED",
                    Phase::Cancelled => "BATCH_STATE_CANCELLED",
                    Phase::Failed => "BATCH_STATE_FAILED",
                };
                let mut shown = json!({"name": format!("batches/{}", batch.id), "done": over,
                    "metadata": {"state": state, "displayName": batch.name}});
                if over {
                    let results: Vec<&Value> = batch.results.iter().collect();
                    shown["response"] = json!({"inlinedResponses": {"inlinedResponses": results}});
                }
                shown
            }
            _ => {
                let status = match batch.state {
                    Phase::Working => "in_progress",
                    Phase::Done => "completed",
                    Phase::Expired => "expired",
                    Phase::Cancelled => "cancelled",
                    Phase::Failed => "failed",
                };
                let errors = (batch.state == Phase::Failed).then(
                    || json!({"object": "list", "data": [{"code": "invalid_line", "line": 2, "message": "line 2 is wrong"}]}),
                );
                let file =
                    (over && batch.state != Phase::Failed).then(|| format!("file-of-{}", batch.id));
                json!({"id": batch.id, "object": "batch", "status": status, "metadata": {"kd": batch.name},
                    "output_file_id": file, "error_file_id": null, "errors": errors})
            }
        }
    }
}
