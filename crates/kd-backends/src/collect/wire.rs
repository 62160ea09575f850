//! The batch endpoints of a wire format, without I/O: calls to send, and what their responses mean.

use serde_json::Value;

/// Maximum length of an id that a service gives.
const ID_MAX: usize = 200;

/// A call to a service, below its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Whether it is a POST.
    pub(super) post: bool,
    /// The path, with its leading slash.
    pub(super) path: String,
    /// The content type of the body.
    pub(super) mime: String,
    /// The body.
    pub(super) body: Vec<u8>,
}

impl Call {
    /// Reads something.
    pub(super) fn get(path: String) -> Self {
        Self {
            post: false,
            path,
            mime: String::new(),
            body: Vec::new(),
        }
    }

    /// Posts JSON.
    pub(super) fn post(path: String, body: Vec<u8>) -> Self {
        Self {
            post: true,
            path,
            mime: "application/json".to_owned(),
            body,
        }
    }
}

/// The state of a provider batch.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    /// It is not over.
    Working,
    /// It is over. What has no reply in these places ended as `rest` says.
    Ended {
        /// Results in the response itself.
        here: Vec<Value>,
        /// Files of results: one JSON value per line.
        files: Vec<Call>,
        /// How requests without a reply ended.
        rest: Unanswered,
    },
    /// It was refused as a whole.
    Failed {
        /// The error of the service.
        why: String,
        /// The requests that are wrong, from 0, if the service names them.
        wrong: Vec<usize>,
        /// Whether the service accepts it later: too much is waiting now.
        later: bool,
    },
}

/// How a request of a provider batch ended without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// The service did not get to it in time.
    Expired,
    /// The batch was cancelled first.
    Cancelled,
    /// The service has no result for it.
    Missing,
}

/// The result of one request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// A complete response.
    Reply(Value),
    /// An error with its status, if stated, and its body.
    Error(Option<u16>, Value),
    /// It was not asked.
    Not(Unanswered),
}

/// What a provider batch is made of.
pub(super) struct Parcel<'a> {
    /// Our name of it.
    pub(super) name: &'a str,
    /// The model of all its requests.
    pub(super) model: &'a str,
    /// Its requests, each as [`Endpoint::request`] builds it, as JSON.
    pub(super) requests: &'a [Vec<u8>],
}

/// The batch endpoints of a wire format.
pub(super) trait Endpoint: Send + Sync {
    /// Returns the maximum number of requests of a batch, and of their bytes.
    fn most(&self) -> (usize, usize);
    /// Builds one request from the body of a direct one.
    fn request(&self, id: &str, body: Value) -> Value;
    /// Returns the call that uploads the requests, if they travel in a file.
    fn upload(&self, _parcel: &Parcel<'_>) -> Option<Call> {
        None
    }
    /// Returns the call that creates the batch; `file` is the id of the upload.
    fn create(&self, parcel: &Parcel<'_>, file: Option<&str>) -> Call;
    /// Returns the id in the response to a creation or an upload.
    fn id(&self, response: &Value) -> Option<String>;
    /// Returns the call that reads the state.
    fn poll(&self, id: &str) -> Call;
    /// Reads the state; `None` if the response has none. `ids` are the requests, in order.
    fn state(&self, id: &str, response: &Value, ids: &[String]) -> Option<State>;
    /// Returns the call that cancels.
    fn cancel(&self, id: &str) -> Call;
    /// Returns the call that lists batches, newest first. `after` is the end of the previous page.
    fn list(&self, after: Option<&str>) -> Call;
    /// Reads a page of that list; `None` if the value is not a page.
    fn page(&self, list: &Value) -> Option<Page>;
    /// Finds our batch on a page by its name; without a match, by its time (seconds since 1970) and size.
    fn find(&self, batches: &[Value], name: &str, since: i64, count: usize) -> Option<String>;
    /// Reads a result; `None` if the value is not a result.
    fn outcome(&self, line: Value) -> Option<(String, Outcome)>;
    /// Returns the events of a stream that delivers this reply.
    fn events(&self, reply: Value) -> Vec<Value>;
}

/// A page of a list of batches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Page {
    /// The batches.
    pub(super) batches: Vec<Value>,
    /// What [`Endpoint::list`] takes for the next page, if there is one.
    pub(super) next: Option<String>,
    /// When the last of them was created, in seconds since 1970, if it says so.
    pub(super) oldest: Option<i64>,
}

impl Page {
    /// Reads `data` and `has_more`, as two of the services have them.
    pub(super) fn of_data(list: &Value) -> Option<Self> {
        let batches = list["data"].as_array()?.clone();
        let last = batches.last();
        let next = match list["has_more"].as_bool() {
            Some(true) => Some(checked_id(last?["id"].as_str()?)?),
            _ => None,
        };
        Some(Self {
            oldest: last.and_then(|last| created(&last["created_at"])),
            next,
            batches,
        })
    }
}

/// Reads a time: seconds since 1970, or a text.
pub(super) fn created(at: &Value) -> Option<i64> {
    let text = || Some(at.as_str()?.parse::<kd_core::Timestamp>().ok()?.as_second());
    at.as_i64().or_else(text)
}

/// Returns an id that a service gave, if it can be a part of a path.
pub(super) fn checked_id(id: &str) -> Option<String> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (!id.is_empty() && id.len() <= ID_MAX && id.bytes().all(is_plain)).then(|| id.to_owned())
}

/// Returns the texts of requests as the items of a JSON list.
pub(super) fn list(requests: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![b'['];
    for (at, request) in requests.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(request);
    }
    out.push(b']');
    out
}

/// Returns a text of an error, wherever the service puts it.
pub(super) fn said(error: &Value) -> String {
    let found = ["/error/message", "/message", "/error/error/message"]
        .iter()
        .find_map(|at| error.pointer(at)?.as_str());
    crate::status::plain(found.unwrap_or("the service gives no reason"))
}
