//! Calls to the batch endpoints of a service: the same client and key as for direct requests, no redirects, and only
//! addresses that are built here.

use super::wire::Call;
use crate::keys::Key;
use crate::providers::Service;
use crate::status;
use crate::transport::http::{Dialect, key_headers};
use kd_core::{Failure, FailureKind};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Time limit until a response begins; uploads are in it.
const BEGIN_LIMIT: Duration = Duration::from_secs(600);
/// Time limit between two pieces of a response.
const IDLE_LIMIT: Duration = Duration::from_secs(120);
/// Maximum bytes of a response that is read as a whole.
const WHOLE_MAX: usize = 256 << 20;
/// Maximum bytes of a response with an error status.
const ERROR_MAX: usize = 64 << 10;
/// Maximum bytes of a line of results.
const LINE_MAX: usize = 64 << 20;

/// A service, and how it is asked.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) service: Arc<Service>,
    pub(super) dialect: &'static dyn Dialect,
    pub(super) model: String,
}

/// Why a call gave nothing.
#[derive(Debug)]
pub(super) struct CallFailure {
    /// The status of the response; `None` if there was no whole response.
    pub(super) code: Option<u16>,
    /// Whether the response comes from the service itself: an error in JSON, not the page of a proxy.
    pub(super) is_own: bool,
    /// The failure for the user.
    pub(super) failure: Failure,
}

impl CallFailure {
    /// Returns whether the same call may succeed later.
    pub(super) fn is_passing(&self) -> bool {
        match self.code {
            Some(code) => matches!(code, 408 | 409 | 425 | 429 | 500..=599),
            None => self.failure.retryable(),
        }
    }

    /// Returns whether the service may have carried out the request.
    pub(super) fn is_unclear(&self) -> bool {
        self.code
            .is_none_or(|code| code >= 500 || (200..300).contains(&code))
    }
}

impl Link {
    /// Sends a call and reads its response as JSON.
    pub(super) async fn json(&self, call: &Call) -> Result<Value, CallFailure> {
        let (mut response, key) = self.send(call).await?;
        let code = Some(response.status().as_u16());
        let mut body = Vec::new();
        while let Some(bytes) = self.chunk(&mut response, key.as_ref()).await? {
            if body.len() + bytes.len() > WHOLE_MAX {
                let what = format!("`{}` answered with more than 256 MiB", self.service.name);
                let failure = Failure::new(FailureKind::Invalid, what);
                return Err(CallFailure {
                    code,
                    is_own: false,
                    failure,
                });
            }
            body.extend_from_slice(&bytes);
        }
        serde_json::from_slice(&body).map_err(|_| {
            let what = format!("`{}` answered with no JSON", self.service.name);
            let failure = Failure::new(FailureKind::Decode, what);
            CallFailure {
                code,
                is_own: false,
                failure,
            }
        })
    }

    /// Returns the failure for a response that does not answer the request.
    pub(super) fn no_answer(&self) -> CallFailure {
        let what = format!("`{}` answered something else", self.service.name);
        CallFailure {
            code: Some(200),
            is_own: false,
            failure: Failure::new(FailureKind::Decode, what),
        }
    }

    /// Sends a call and passes each JSON line of its response to the callback. Returns the number of lines that are
    /// invalid or too long.
    ///
    /// # Errors
    /// If the response is cut. Earlier lines have been passed on already.
    pub(super) async fn lines(
        &self,
        call: &Call,
        each: &mut (dyn FnMut(Value) + Send),
    ) -> Result<u64, CallFailure> {
        let (mut response, key) = self.send(call).await?;
        let mut lines = Lines::default();
        while let Some(bytes) = self.chunk(&mut response, key.as_ref()).await? {
            lines.push(&bytes, each);
        }
        lines.end(each);
        Ok(lines.bad)
    }

    async fn chunk(
        &self,
        response: &mut reqwest::Response,
        key: Option<&Key>,
    ) -> Result<Option<Vec<u8>>, CallFailure> {
        let cut = |how: String| {
            let what = format!("the response of `{}` was cut: {how}", self.service.name);
            none(status::clean(Failure::new(FailureKind::Decode, what), key))
        };
        match tokio::time::timeout(IDLE_LIMIT, response.chunk()).await {
            Ok(Ok(bytes)) => Ok(bytes.map(|bytes| bytes.to_vec())),
            Ok(Err(error)) => Err(cut(status::io_words(&error))),
            Err(_) => Err(cut("nothing came for 120 s".to_owned())),
        }
    }

    async fn send(&self, call: &Call) -> Result<(reqwest::Response, Option<Key>), CallFailure> {
        let service = &self.service;
        let (mut headers, key) = key_headers(service, self.dialect).await.map_err(none)?;
        let clean = |failure| status::clean(failure, key.as_ref());
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        let url = format!("{}{}", service.base, call.path);
        let client = service.client().map_err(none)?;
        let request = if call.post {
            if let Ok(mime) = HeaderValue::from_str(&call.mime)
                && !call.mime.is_empty()
            {
                headers.insert(CONTENT_TYPE, mime);
            }
            client.post(url).body(call.body.clone())
        } else {
            client.get(url)
        };
        let sent = tokio::time::timeout(BEGIN_LIMIT, request.headers(headers).send()).await;
        let mut response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(none(clean(status::unreachable(service, &error)))),
            Err(_) => {
                let what = format!("`{}` gave no response for 600 s", service.name);
                return Err(none(Failure::new(FailureKind::Crashed, what)));
            }
        };
        let code = response.status().as_u16();
        if response.status().is_success() {
            return Ok((response, key));
        }
        let headers = std::mem::take(response.headers_mut());
        let mut body = Vec::new();
        while body.len() < ERROR_MAX
            && let Ok(Some(bytes)) = self.chunk(&mut response, key.as_ref()).await
        {
            body.extend_from_slice(&bytes[..bytes.len().min(ERROR_MAX - body.len())]);
        }
        let body = String::from_utf8_lossy(&body);
        let mut failure = status::of(service, &self.model, code, &headers, &body);
        if code == 404 {
            failure.advice = Some(format!(
                "check that `{}` has batch endpoints and knows the model `{}`; without --provider-batch it is asked directly",
                service.name, self.model
            ));
        }
        Err(CallFailure {
            code: Some(code),
            is_own: is_error(&body),
            failure: clean(failure),
        })
    }
}

/// Returns whether a body is an error of a service: they all have an object with `error`.
fn is_error(body: &str) -> bool {
    let body: Option<Value> = serde_json::from_str(body).ok();
    body.is_some_and(|body| body.get("error").is_some_and(|error| !error.is_null()))
}

fn none(failure: Failure) -> CallFailure {
    CallFailure {
        code: None,
        is_own: false,
        failure,
    }
}

/// Splits a response into lines of JSON.
#[derive(Default)]
struct Lines {
    open: Vec<u8>,
    /// Whether the open line is too long: it is skipped.
    skips: bool,
    bad: u64,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(Value)) {
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            if !self.skips && self.open.len() + piece.len() <= LINE_MAX {
                self.open.extend_from_slice(piece);
            } else {
                self.skips = true;
                self.open = Vec::new();
            }
            if pieces.peek().is_some() {
                self.end(each);
            }
        }
    }

    fn end(&mut self, each: &mut dyn FnMut(Value)) {
        let line = std::mem::take(&mut self.open);
        if std::mem::take(&mut self.skips) {
            self.bad += 1;
        } else if !line.trim_ascii().is_empty() {
            match serde_json::from_slice(&line) {
                Ok(value) => each(value),
                Err(_) => self.bad += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_whatever_the_pieces_and_bad_ones_are_counted() {
        let text = b"{\"a\":1}\n\nnonsense\n{\"a\":2}\r\n{\"a\":3}";
        for size in 1..text.len() {
            let (mut lines, mut seen) = (Lines::default(), Vec::new());
            let mut each = |value: Value| seen.push(value["a"].as_u64());
            text.chunks(size)
                .for_each(|piece| lines.push(piece, &mut each));
            lines.end(&mut each);
            assert_eq!(
                (seen, lines.bad),
                (vec![Some(1), Some(2), Some(3)], 1),
                "{size}"
            );
        }
    }

    #[test]
    fn a_line_that_is_too_long_costs_only_itself() {
        let (mut lines, mut seen) = (Lines::default(), 0);
        let mut each = |_: Value| seen += 1;
        lines.push(b"1\n\"", &mut each);
        let long = vec![b'x'; LINE_MAX / 2 + 1];
        lines.push(&long, &mut each);
        lines.push(&long, &mut each);
        lines.push(b"\"\n2\n", &mut each);
        lines.end(&mut each);
        assert_eq!((seen, lines.bad), (2, 1));
    }
}
