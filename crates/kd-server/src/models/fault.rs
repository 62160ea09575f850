//! Errors in the format of each API.

use crate::answer::Answer;
use crate::error::{NoAnswer, Stopped};
use axum::Json;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use kd_core::clean::clean_line;
use serde_json::{Value, json};

/// Maximum characters of a name repeated in an error.
pub(super) const NAME_CHARS_MAX: usize = 80;

/// After how many seconds a request that found no place may be repeated.
const RETRY_AFTER: &str = "2";

/// The error format of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// OpenAI.
    OpenAi,
    /// Anthropic.
    Anthropic,
}

impl Shape {
    /// Returns the format that clients of a path expect.
    pub(super) fn of(path: &str) -> Self {
        match path.starts_with(super::MESSAGES) {
            true => Shape::Anthropic,
            false => Shape::OpenAi,
        }
    }
}

/// A failure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) status: StatusCode,
    code: Option<&'static str>,
    pub(super) param: Option<&'static str>,
    pub(super) message: String,
    /// Headers of the response: what the members that were asked have cost.
    headers: Vec<(&'static str, String)>,
}

impl Fault {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            code: None,
            param: None,
            message: message.into(),
            headers: Vec::new(),
        }
    }

    /// The request is invalid.
    pub(super) fn invalid(param: Option<&'static str>, message: impl Into<String>) -> Self {
        Self {
            param,
            ..Self::new(StatusCode::BAD_REQUEST, message)
        }
    }

    /// There is no such model.
    pub(super) fn model(model: &str, names: String) -> Self {
        let model = clean_line(model, NAME_CHARS_MAX);
        let message = format!("there is no model `{model}`; models: {names}");
        Self {
            code: Some("model_not_found"),
            param: Some("model"),
            ..Self::new(StatusCode::NOT_FOUND, message)
        }
    }

    /// The answer to continue from is unknown.
    pub(super) fn previous(id: &str) -> Self {
        let id = clean_line(id, NAME_CHARS_MAX);
        let message = format!(
            "no answer `{id}` to continue from: it is unknown, or the conversation has moved on; send the conversation as `input`"
        );
        Self {
            code: Some("previous_response_not_found"),
            param: Some("previous_response_id"),
            ..Self::new(StatusCode::BAD_REQUEST, message)
        }
    }

    /// A result names a call that the conversation does not contain.
    pub(super) fn orphan(id: &str, param: &'static str) -> Self {
        let id = clean_line(id, NAME_CHARS_MAX);
        let why =
            format!("a result names the call `{id}`, which the conversation does not contain");
        Self::invalid(Some(param), why)
    }

    /// The request was not admitted.
    pub(super) fn door(status: StatusCode, why: &str) -> Self {
        let code = (status == StatusCode::UNAUTHORIZED).then_some("invalid_api_key");
        Self {
            code,
            ..Self::new(status, why)
        }
    }

    /// There is no such endpoint.
    pub(super) fn path() -> Self {
        let message = "there is no such endpoint; there are /v1/models, /v1/chat/completions, /v1/responses, /v1/messages and /v1/messages/count_tokens";
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// The endpoint requires another method.
    pub(super) fn method() -> Self {
        let message = "GET /v1/models; POST /v1/chat/completions, /v1/responses, /v1/messages and /v1/messages/count_tokens";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, message)
    }

    /// Another request is at work in the thread.
    pub(super) fn taken() -> Self {
        let why = "another request of a program is being answered in this thread: repeat this one after it";
        Self::new(StatusCode::CONFLICT, why)
    }

    /// The host refused, for a reason the user can change.
    pub(super) fn refused(why: &str) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, why)
    }

    /// No member answered.
    pub(super) fn unanswered(answer: &Answer) -> Self {
        let thread = answer.thread().map(|thread| format!(" (thread {thread})"));
        let message = answer.failure() + &thread.unwrap_or_default();
        Self {
            headers: answer.sums(),
            ..Self::new(StatusCode::BAD_GATEWAY, message)
        }
    }

    /// An internal error.
    pub(super) fn broken(why: Stopped) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, why.to_string())
    }

    /// Formats the error for an API.
    pub(super) fn json(&self, shape: Shape) -> Value {
        let Self {
            code,
            param,
            message,
            ..
        } = self;
        let ours = self.status.is_server_error();
        match shape {
            Shape::OpenAi => {
                let kind = if self.status == StatusCode::TOO_MANY_REQUESTS {
                    "rate_limit_error"
                } else if ours {
                    "api_error"
                } else {
                    "invalid_request_error"
                };
                json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
            }
            Shape::Anthropic => {
                let kind = match self.status.as_u16() {
                    401 => "authentication_error",
                    403 => "permission_error",
                    404 | 405 => "not_found_error",
                    413 => "request_too_large",
                    429 => "rate_limit_error",
                    503 => "overloaded_error",
                    _ if ours => "api_error",
                    _ => "invalid_request_error",
                };
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
        }
    }

    /// Returns the error response.
    pub(super) fn response(&self, shape: Shape) -> Response {
        // Clients would retry, and members would be paid again.
        let headers = [("x-should-retry", "false")];
        let mut response = (self.status, headers, Json(self.json(shape))).into_response();
        for (name, value) in &self.headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(*name, value);
            }
        }
        match self.status {
            StatusCode::CONFLICT => may_be_repeated(response),
            _ => response,
        }
    }
}

impl From<NoAnswer> for Fault {
    fn from(why: NoAnswer) -> Self {
        match &why {
            NoAnswer::Refused(why) => Self::refused(why),
            // It is not a fault of the request.
            NoAnswer::Failed(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, why.to_string()),
        }
    }
}

/// Marks the error response of a request that found no place: nobody was asked, so it may be repeated.
pub(super) fn may_be_repeated(mut response: Response) -> Response {
    for (name, value) in [("x-should-retry", "true"), ("retry-after", RETRY_AFTER)] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_council_that_breaks_is_no_fault_of_the_request() {
        for (why, status, kind) in [
            (
                NoAnswer::Refused("say which".into()),
                422,
                "invalid_request_error",
            ),
            (NoAnswer::Failed("it panicked".into()), 500, "api_error"),
        ] {
            let said = why.to_string();
            let fault = Fault::from(why);
            assert_eq!((fault.status.as_u16(), &fault.message), (status, &said));
            assert_eq!(fault.json(Shape::OpenAi)["error"]["type"], kind);
            assert_eq!(fault.json(Shape::Anthropic)["error"]["type"], kind);
        }
    }
}
