//! Failures of HTTP services: turns a status, a body or a broken connection into a helpful [`Failure`].

use crate::keys::Key;
use crate::providers::Service;
use kd_core::{Failure, FailureKind, Timestamp};
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::Value;
use std::error::Error as _;
use std::time::Duration;

/// Maximum length of a provider's message that is passed on, in characters.
const MESSAGE_MAX: usize = 300;
/// Longest wait requested by a service that is believed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// Builds the failure of a response with an error status.
pub(crate) fn of(
    service: &Service,
    model: &str,
    code: u16,
    headers: &HeaderMap,
    body: &str,
) -> Failure {
    let json: Option<Value> = serde_json::from_str(body).ok();
    // Gemini wraps a stream's error in a list.
    let error = json
        .as_ref()
        .map(|j| j.get(0).unwrap_or(j))
        .map(|j| j.get("error").unwrap_or(j));
    let said = error.and_then(message).unwrap_or_else(|| plain(body));
    let mut failure = from_code(code, &said);
    failure.message = match said.is_empty() {
        true => format!("`{}` answered HTTP {code}", service.name),
        false => format!("`{}` answered HTTP {code}: {said}", service.name),
    };
    if (300..400).contains(&code) {
        let to = headers
            .get(LOCATION)
            .and_then(|v| v.to_str().ok())
            .unwrap_or("nowhere");
        failure.message = format!("`{}` redirects to {}", service.name, plain(to));
        failure.advice = Some(format!(
            "set {} to the final address",
            service.address_source()
        ));
    } else if failure.kind == FailureKind::Auth && failure.advice.is_none() {
        failure.advice = Some(service.key_advice());
    } else if code == 404 {
        failure.advice = Some(format!(
            "check that the model `{model}` exists there and {} ({}) is right",
            service.address_source(),
            service.shown()
        ));
    }
    failure.retry_after = retry_after(headers).or_else(|| error.and_then(retry_delay));
    if let (FailureKind::RateLimit, Some(wait)) = (failure.kind, failure.retry_after) {
        failure.advice.get_or_insert_with(|| {
            format!(
                "the service asks to wait {} s; or ask fewer members at once, or set `providers.{}.requests_per_minute`",
                wait.as_secs_f64().ceil(),
                service.name
            )
        });
    }
    failure
}

/// Builds the failure of an error inside a stream: an error object with a type, code or status.
pub(crate) fn in_stream(error: &Value) -> Failure {
    let said = message(error)
        .unwrap_or_else(|| "the service reported an error without a message".to_owned());
    let word = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let code = |name: &str| {
        error
            .get(name)
            .and_then(|c| c.as_u64().or_else(|| c.as_str()?.parse().ok()))
    };
    let code = code("code")
        .or_else(|| code("status"))
        .and_then(|c| u16::try_from(c).ok())
        .filter(|c| *c >= 400);
    let mut failure = match code {
        Some(code) => from_code(code, &said),
        None => {
            let words = format!("{} {} {}", word("type"), word("status"), word("code"))
                .to_ascii_lowercase();
            let has = |parts: &[&str]| parts.iter().any(|p| words.contains(p));
            let code = if has(&["auth", "permission"]) {
                401
            } else if has(&["rate_limit", "resource_exhausted", "insufficient_quota"]) {
                429
            } else if has(&["invalid", "not_found", "too_large", "context_length"]) {
                400
            } else {
                529
            };
            from_code(code, &said)
        }
    };
    failure.message = format!("the service aborted the answer: {said}");
    failure.retry_after = retry_delay(error);
    failure
}

/// Builds the failure of a successful response that is not an event stream.
pub(crate) fn not_a_stream(service: &Service, mime: &str, body: &str) -> Failure {
    let json: Option<Value> = serde_json::from_str(body).ok();
    if let Some(error) = json
        .as_ref()
        .and_then(|j| j.get("error"))
        .filter(|e| !e.is_null())
    {
        return in_stream(error);
    }
    Failure::new(
        FailureKind::Invalid,
        format!(
            "`{}` answered with {} in place of a stream",
            service.name,
            plain(mime)
        ),
    )
    .advise(format!(
        "check that {} ({}) is the address of a model service",
        service.address_source(),
        service.shown()
    ))
}

/// Builds the failure of a request that could not be sent, or got no status.
pub(crate) fn unreachable(service: &Service, error: &reqwest::Error) -> Failure {
    let words = io_words(error);
    if error.is_connect() && service.is_loopback() {
        return Failure::new(
            FailureKind::Missing,
            format!("cannot connect to {} ({words})", service.shown()),
        )
        .advise(format!(
            "start the service, or set {}",
            service.address_source()
        ));
    }
    if error.is_builder() || error.is_request() && words.contains("invalid") {
        return Failure::new(
            FailureKind::Invalid,
            format!("`{}` has no usable address: {words}", service.name),
        )
        .advise(format!(
            "set {} to something like https://host/v1",
            service.address_source()
        ));
    }
    let what = if error.is_connect() {
        "cannot be reached"
    } else {
        "closed the connection"
    };
    Failure::new(
        FailureKind::Crashed,
        format!("`{}` {what} ({words})", service.name),
    )
    .advise("check whether this machine is on the network and the service is up")
}

/// Describes the innermost cause, without the address.
pub(crate) fn io_words(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.source().is_none() {
        return "the request cannot be sent".to_owned();
    }
    plain(&cause.to_string())
}

/// Removes the key from all texts of a failure.
pub(crate) fn clean(mut failure: Failure, key: Option<&Key>) -> Failure {
    if let Some(key) = key {
        failure.message = key.redact(&failure.message);
        failure.advice = failure.advice.map(|a| key.redact(&a));
    }
    failure
}

/// Returns one line of bounded length, without control characters.
pub(crate) fn plain(text: &str) -> String {
    let mut line = String::new();
    for word in text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|w| !w.is_empty())
    {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MESSAGE_MAX * 4 {
            break;
        }
    }
    match line.char_indices().nth(MESSAGE_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Returns the message of an error object of any wire format.
fn message(error: &Value) -> Option<String> {
    let words = match error {
        Value::String(words) => words,
        _ => ["message", "error", "detail"]
            .iter()
            .find_map(|name| error.get(name)?.as_str())?,
    };
    Some(plain(words))
}

pub(crate) fn from_code(code: u16, said: &str) -> Failure {
    let words = said.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|p| words.contains(p));
    let kind = match code {
        401..=403 => FailureKind::Auth,
        // Waiting does not restore credit.
        429 if has(&[
            "insufficient_quota",
            "exceeded your current quota",
            "credit balance",
        ]) =>
        {
            FailureKind::Auth
        }
        429 => FailureKind::RateLimit,
        408 | 409 | 425 | 500.. => FailureKind::Overloaded,
        _ => FailureKind::Invalid,
    };
    let failure = Failure::new(kind, said);
    match kind {
        FailureKind::Auth if code != 401 && code != 403 => {
            failure.advise("the account has no credit left: see its billing page")
        }
        FailureKind::Invalid
            if code == 413
                || has(&[
                    "too long",
                    "context length",
                    "maximum context",
                    "context_length",
                    "token count",
                ]) =>
        {
            failure
                .advise("shorten the thread or the question, or use a model with a larger context")
        }
        _ => failure,
    }
}

/// Returns the wait that the service asks for: milliseconds, seconds or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|v| v.to_str().ok())
            .map(str::trim)
    };
    let millis = text("retry-after-ms")
        .and_then(|t| t.parse::<f64>().ok())
        .map(|ms| ms / 1000.0);
    let seconds = millis.or_else(|| text(RETRY_AFTER.as_str()).and_then(|t| t.parse::<f64>().ok()));
    let wait = match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        None => {
            let date = jiff::fmt::rfc2822::DateTimeParser::new()
                .relaxed_weekday(true)
                .parse_timestamp(text(RETRY_AFTER.as_str())?)
                .ok()?;
            Duration::try_from(date.duration_since(Timestamp::now())).unwrap_or_default()
        }
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

/// Parses Gemini's `details[].retryDelay`, for example `"17s"`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let text = details.iter().find_map(|d| d.get("retryDelay")?.as_str())?;
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Some(
        Duration::try_from_secs_f64(seconds)
            .ok()?
            .min(RETRY_AFTER_MAX),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_kind() {
        let table = [
            (400, FailureKind::Invalid),
            (401, FailureKind::Auth),
            (402, FailureKind::Auth),
            (403, FailureKind::Auth),
            (404, FailureKind::Invalid),
            (413, FailureKind::Invalid),
            (418, FailureKind::Invalid),
            (422, FailureKind::Invalid),
            (429, FailureKind::RateLimit),
            (500, FailureKind::Overloaded),
            (502, FailureKind::Overloaded),
            (503, FailureKind::Overloaded),
            (504, FailureKind::Overloaded),
            (529, FailureKind::Overloaded),
        ];
        for (code, kind) in table {
            assert_eq!(from_code(code, "words").kind, kind, "{code}");
        }
        assert!(!from_code(429, "You exceeded your current quota").retryable());
    }

    #[test]
    fn the_wait_is_read_in_each_form() {
        let of = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(of("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(of("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(
            of("retry-after-ms", "1500"),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(
            of("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),
            Some(Duration::ZERO)
        );
        assert_eq!(
            of("retry-after", "Fri, 31 Dec 9998 23:59:59 GMT"),
            Some(RETRY_AFTER_MAX)
        );
        for junk in ["-3", "soon", "NaN", "1e400", ""] {
            assert_eq!(of("retry-after", junk), None, "{junk}");
        }
        let body = serde_json::json!({"details": [{"x": 1}, {"retryDelay": "17s"}]});
        assert_eq!(retry_delay(&body), Some(Duration::from_secs(17)));
    }

    #[test]
    fn a_providers_message_is_one_bounded_line() {
        let long = plain(&format!("a\u{1b}[2J\n\tb {}", "ü".repeat(5000)));
        assert!(
            long.starts_with("a [2J b üü") && long.ends_with('…'),
            "{long}"
        );
        assert!(long.chars().count() <= MESSAGE_MAX + 1);
    }
}
