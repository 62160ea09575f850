//! A service with batch endpoints, in the wire formats of OpenAI, Anthropic and Gemini: it takes batches of requests, works
//! on them while it is polled, and repeats the last words of each request. It counts the amount that it would bill.

mod shapes;

use crate::reply::Reply;
use crate::server::{Fake, Seen};
use crate::wire::Wire;
use serde_json::{Value, json};
use shapes::{echo, error, parts, result, spoil_usage, stranger, unasked};
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
    /// The usage of every result cannot be read.
    BadUsage,
    /// The response to the first submission is lost, and the list shows the batch on its third page.
    LongList,
    /// The first two responses to polls are invalid.
    Polls(NoAnswer),
}

/// A response that does not answer the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// A redirect to another host.
    Redirect,
    /// A page, as a proxy gives it.
    Page,
    /// Nothing, with status 204.
    Empty,
    /// JSON that is not an object.
    List,
    /// An object without the fields of a batch.
    Other,
    /// A batch with another id.
    Stranger,
    /// Status 403.
    Forbidden,
    /// Status 404 with the error of a service.
    Gone,
    /// Status 404 with a page, as a proxy gives it.
    Lost,
}

/// Every invalid response.
pub const NO_ANSWERS: [NoAnswer; 9] = [
    NoAnswer::Redirect,
    NoAnswer::Page,
    NoAnswer::Empty,
    NoAnswer::List,
    NoAnswer::Other,
    NoAnswer::Stranger,
    NoAnswer::Forbidden,
    NoAnswer::Gone,
    NoAnswer::Lost,
];

impl NoAnswer {
    fn reply(self) -> Reply {
        let body = |code: u16, body: &str| Reply::Status {
            code,
            headers: Vec::new(),
            body: Some(body.to_owned()),
        };
        match self {
            Self::Redirect => Reply::status_with(302, "location", "http://127.0.0.1:9/stolen"),
            Self::Page => body(200, "<!doctype html><title>Sign in</title>"),
            Self::Empty => body(204, ""),
            Self::List => body(200, "[]"),
            Self::Other => body(200, r#"{"ok": true}"#),
            Self::Stranger => body(
                200,
                r#"{"id": "other", "name": "batches/other", "status": "completed", "processing_status": "ended", "done": true}"#,
            ),
            Self::Forbidden => Reply::status(403),
            Self::Gone => Reply::status(404),
            Self::Lost => body(404, "<!doctype html><title>Not found</title>"),
        }
    }
}

/// Every fault, for tests that loop over the table.
pub const FAULTS: [BatchFault; 24] = [
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
    BatchFault::BadUsage,
    BatchFault::LongList,
    BatchFault::Polls(NoAnswer::Redirect),
    BatchFault::Polls(NoAnswer::Page),
    BatchFault::Polls(NoAnswer::Empty),
    BatchFault::Polls(NoAnswer::List),
    BatchFault::Polls(NoAnswer::Other),
    BatchFault::Polls(NoAnswer::Stranger),
    BatchFault::Polls(NoAnswer::Forbidden),
    BatchFault::Polls(NoAnswer::Gone),
    BatchFault::Polls(NoAnswer::Lost),
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
    /// The response to polls while this is set.
    silenced: Option<NoAnswer>,
    /// Invalid responses to polls.
    silences: u32,
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
    ///
    /// # Errors
    /// It cannot listen.
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

    /// Answers every poll with this, or as it should again.
    pub fn silence(&self, with: Option<NoAnswer>) {
        locked(&self.state).silenced = with;
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
            (_, "/batches" | "/messages/batches") => self.list(wire, &seen.path),
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
        let loses = matches!(self.fault, BatchFault::LostResponse | BatchFault::LongList);
        if loses && !std::mem::replace(&mut self.lost, true) {
            return Reply::Hangup;
        }
        let at = self.batches.len() - 1;
        ok(&self.shown(wire, at))
    }

    fn list(&self, wire: Wire, path: &str) -> Reply {
        let mut all: Vec<Value> = (0..self.batches.len())
            .rev()
            .map(|at| self.shown(wire, at))
            .collect();
        // Two pages of others come first; the last entry or the token of a page names its number.
        let page = (0..2).rev().find(|n| path.contains(&format!("other_{n}")));
        let page = page.map_or(0, |n| n + 1);
        let has_more = self.fault == BatchFault::LongList && page < 2;
        if has_more {
            all = vec![stranger(wire, 9), stranger(wire, page)];
        }
        ok(&match (wire, has_more) {
            (Wire::Gemini, true) => {
                json!({"operations": all, "nextPageToken": format!("other_{page}")})
            }
            (Wire::Gemini, false) => json!({"operations": all}),
            _ => json!({"data": all, "has_more": has_more}),
        })
    }

    fn find(&self, path: &str) -> Option<usize> {
        let names = |one: &Batch| path.split(['/', ':']).any(|part| part == one.id);
        self.batches.iter().position(names)
    }

    fn poll(&mut self, wire: Wire, path: &str) -> Reply {
        if let Some(none) = self.silenced {
            return none.reply();
        }
        if let BatchFault::Polls(none) = self.fault
            && self.silences < 2
        {
            self.silences += 1;
            return none.reply();
        }
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
                    if fault == BatchFault::BadUsage
                        && let Some(last) = results.last_mut()
                    {
                        spoil_usage(wire, last);
                    }
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
