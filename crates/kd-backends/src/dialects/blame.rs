//! Classifies failures of agent programs.
//!
//! Input: status codes, prose, exit codes, stderr. Output: [`Failure`]s.
//!
//! Programs word the same problem in many ways, and some give no code, so the wording counts too; an unrecognized
//! message keeps the kind that the caller proposes.

use super::parse::one_line;
use super::{Exit, ExitSeen};
use kd_core::{Failure, FailureKind};
use serde_json::Value;

/// Words of programs about a file that they cannot use, in lower case.
const DENIED: [&str; 6] = [
    "eacces",
    "eperm",
    "erofs",
    "permission denied",
    "operation not permitted",
    "read-only file system",
];

/// Maximum length of a copied message, in characters.
const MESSAGE_MAX: usize = 400;

/// Words that reveal a failure kind, the most certain first. All lower case.
const WORDS: [(FailureKind, &[&str]); 8] = [
    (
        FailureKind::RateLimit,
        &[
            "rate limit",
            "rate_limit",
            "ratelimit",
            "too many requests",
            "resource has been exhausted",
            "resource_exhausted",
            "quota",
            "usage limit",
            "usagelimit",
        ],
    ),
    (
        FailureKind::Auth,
        &[
            "api key",
            "api_key",
            "apikey",
            "unauthorized",
            "authenticat",
            "not logged in",
            "log in",
            "login",
            "auth method",
            "permission_denied",
            "forbidden",
            "credential",
            "missing environment variable",
            "billing",
            "token has expired",
            "token expired",
            "expired token",
            "invalid token",
            "token is invalid",
        ],
    ),
    (
        FailureKind::Invalid,
        &[
            "context window",
            "contextwindow",
            "context length",
            "context_length",
            "contextoverflow",
            "prompt is too long",
            "prompt too long",
            "maximum context",
            "input is too long",
            "exceeds the maximum length",
            "model_not_found",
            "modelnotfound",
            "does not exist",
            "may not exist",
            "unknown model",
            "unexpected argument",
            "unknown option",
            "allowed choices are",
            "invalid_request",
            "badrequest",
            "not found",
            "trusted directory",
            "untrusted",
            "not trusted",
            "trusted folder",
            "already in use",
            "already exists",
            "cannot be used",
            "requires --",
            "must be provided",
            "no previous sessions",
            "invalid session",
            "no rollout found",
        ],
    ),
    (
        FailureKind::Overloaded,
        &[
            "overloaded",
            "at capacity",
            "high demand",
            "unavailable",
            "internal server error",
            "internal error encountered",
            "internalservererror",
            "server_error",
            "bad gateway",
        ],
    ),
    (
        FailureKind::Refused,
        &[
            "safeguards",
            "content policy",
            "usage policy",
            "refus",
            "content_filter",
        ],
    ),
    (
        FailureKind::Timeout,
        &["timed out", "idle timeout", "timeout waiting"],
    ),
    (
        FailureKind::Cancelled,
        &["interrupted", "aborted", "cancelled", "canceled"],
    ),
    (
        FailureKind::Crashed,
        &[
            "connection",
            "network",
            "fetch failed",
            "econnre",
            "enotfound",
            "disconnected",
            "socket",
            "terminated",
            "stream closed",
            "closed before",
            "lookup address",
            "name resolution",
            "dns",
            "unable to connect",
        ],
    ),
];

/// Builds a failure with this message. Its kind comes from the status and the words; if neither is known, it is the
/// proposed kind.
pub(super) fn failure(said: &str, status: Option<u64>, else_kind: FailureKind) -> Failure {
    let message = one_line(&plain(said), MESSAGE_MAX);
    let kind = kind(said, status).unwrap_or(else_kind);
    advised(Failure::new(kind, message))
}

/// Returns the plain message of an error that is, or ends in, a JSON object: some programs pass on their service's
/// reply.
fn plain(said: &str) -> String {
    let Some((before, object)) = said.find('{').map(|at| said.split_at(at)) else {
        return said.to_owned();
    };
    let mut objects = serde_json::Deserializer::from_str(object).into_iter::<Value>();
    let Some(Ok(value)) = objects.next() else {
        return said.to_owned();
    };
    let error = match &value["error"] {
        Value::Null => &value,
        error => error,
    };
    let Some(inner) = error["message"].as_str().or(error.as_str()) else {
        return said.to_owned();
    };
    let code = ["status", "code"]
        .iter()
        .find_map(|key| error[*key].as_u64());
    let status = code.map_or(String::new(), |code| format!(" (status {code})"));
    // The text before it is usually a label, such as `[API Error: `.
    let before = before.trim_matches(|c: char| !c.is_alphanumeric());
    match before.is_empty() {
        true => format!("{}{status}", plain(inner)),
        false => format!("{before}: {}{status}", plain(inner)),
    }
}

/// Returns the kind that a status and words reveal.
pub(super) fn kind(said: &str, status: Option<u64>) -> Option<FailureKind> {
    let lower = said.to_lowercase();
    let worded = WORDS
        .iter()
        .find(|(_, words)| words.iter().any(|w| lower.contains(w)))
        .map(|(kind, _)| *kind);
    match status.or_else(|| status_in(&lower)) {
        // Some services answer 400 for a wrong key.
        Some(400) if worded == Some(FailureKind::Auth) => worded,
        Some(status) => kind_of_status(status).or(worded),
        None => worded,
    }
}

/// Returns the kind of an HTTP status.
pub(super) fn kind_of_status(status: u64) -> Option<FailureKind> {
    Some(match status {
        401..=403 | 407 => FailureKind::Auth,
        429 => FailureKind::RateLimit,
        408 | 504 => FailureKind::Timeout,
        400..=499 => FailureKind::Invalid,
        500..=599 => FailureKind::Overloaded,
        _ => return None,
    })
}

/// Explains a turn without a terminal event, from the exit and the program's last words.
pub(super) fn unfinished(who: &str, exit: &ExitSeen, said: Option<&str>) -> Failure {
    let heard = said.map(str::to_owned).or_else(|| last_words(&exit.stderr));
    let (kind, how) = match exit.how {
        Exit::Unseen => (
            FailureKind::Decode,
            "its stream ended before its answer was complete".to_owned(),
        ),
        Exit::Code(0) => (
            FailureKind::Decode,
            "it ended before its answer was complete".to_owned(),
        ),
        // 128 + SIGHUP, SIGINT, SIGTERM: stopped from outside.
        Exit::Code(code @ (129 | 130 | 143)) => (
            FailureKind::Cancelled,
            format!("it was stopped (exit code {code})"),
        ),
        Exit::Code(code) => (
            FailureKind::Crashed,
            format!("it ended with exit code {code} and without an answer"),
        ),
        Exit::Signal(signal @ (1 | 2 | 15)) => (
            FailureKind::Cancelled,
            format!("it was stopped by signal {signal}"),
        ),
        Exit::Signal(signal) => (
            FailureKind::Crashed,
            format!("it was killed by signal {signal}"),
        ),
    };
    // Stderr explains a failed exit; after a signal or a successful exit it is only the last log line.
    let telling = said.is_some()
        || matches!(exit.how, Exit::Code(code) if !matches!(code, 0 | 129 | 130 | 143));
    let kind = heard
        .as_deref()
        .filter(|_| telling)
        .and_then(|words| self::kind(words, None))
        .unwrap_or(kind);
    advised(Failure::new(
        kind,
        match heard {
            Some(words) => format!("{who}: {how}: {words}"),
            None => format!("{who}: {how}"),
        },
    ))
}

/// Like [`unfinished`], for a program that was retrying when its stream ended: unless it was stopped or killed, the
/// failure of the last attempt is the cause.
pub(super) fn unfinished_again(
    who: &str,
    exit: &ExitSeen,
    said: Option<&str>,
    why: Option<&Failure>,
) -> Failure {
    let failure = unfinished(who, exit, said);
    let ended_itself = matches!(exit.how, Exit::Unseen | Exit::Code(_));
    match why {
        Some(why)
            if ended_itself
                && matches!(failure.kind, FailureKind::Decode | FailureKind::Crashed) =>
        {
            let message = format!(
                "{who}: its stream ended while it was asking again: {}",
                why.message
            );
            advised(Failure::new(why.kind, message))
        }
        _ => failure,
    }
}

/// Returns the most informative line of stderr: the first that mentions an error or an unusable file. If there is none,
/// returns the last line.
fn last_words(stderr: &str) -> Option<String> {
    /// Lines that say nothing about a failure.
    const NOISE: [&str; 3] = [
        "Reading additional input from stdin",
        "[STARTUP]",
        "YOLO mode is enabled",
    ];
    let lines: Vec<String> = stderr
        .lines()
        .map(|line| one_line(line, MESSAGE_MAX))
        .filter(|line| line.len() > 1 && !NOISE.iter().any(|noise| line.starts_with(noise)))
        .collect();
    lines
        .iter()
        .find(|line| {
            let line = line.to_lowercase();
            line.contains("error") || DENIED.iter().any(|word| line.contains(word))
        })
        .or(lines.last())
        .cloned()
}

/// Returns whether a program failed because it could not use a file.
pub(crate) fn denied(failure: &Failure) -> bool {
    let said = failure.message.to_lowercase();
    DENIED.iter().any(|word| said.contains(word))
}

/// Adds advice to a failure, if its kind or its message allows more specific advice than the default.
fn advised(failure: Failure) -> Failure {
    let lower = failure.message.to_lowercase();
    match failure.kind {
        FailureKind::Auth => failure.advise("log in with the program itself, or set its key; then ask again"),
        FailureKind::Crashed
            if ["network", "connect", "lookup address", "name resolution", "dns", "enotfound", "econnre", "fetch failed"]
                .iter()
                .any(|word| lower.contains(word)) =>
        {
            failure.advise("check the network and the endpoint of the program, then ask again")
        }
        FailureKind::RateLimit if lower.contains("quota") || lower.contains("billing") => {
            failure.advise("check the plan and the quota of this account")
        }
        FailureKind::Invalid
            if ["too long", "maximum length", "context"]
                .iter()
                .any(|word| lower.contains(word)) =>
        {
            failure.advise("the thread does not fit into this model: start a new thread, or give the member a larger model")
        }
        FailureKind::Invalid
            if too_old(&lower) =>
        {
            failure.advise("update the program: this version does not know the flags that make it read-only")
        }
        FailureKind::Invalid if ["trusted", "trust this"].iter().any(|word| lower.contains(word)) => {
            failure.advise("start the program itself here once and trust the folder, or type `kd trust`")
        }
        FailureKind::Invalid if lower.contains("model") => failure.advise("set `agents.<name>.model` to a model that the program knows"),
        _ => failure,
    }
}

/// Returns whether a program's message says that it does not know one of our flags: it is too old.
pub(super) fn too_old(said: &str) -> bool {
    let said = said.to_lowercase();
    [
        "unknown option",
        "unexpected argument",
        "allowed choices are",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// Returns the HTTP status that a text names: three digits from 400 to 599 after a word that announces one.
fn status_in(lower: &str) -> Option<u64> {
    const BEFORE: [&str; 5] = ["status", "code", "error", "http", "("];
    let bytes = lower.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = bytes[at..]
            .iter()
            .position(|b| !b.is_ascii_digit())
            .map_or(bytes.len(), |n| at + n);
        let number = lower[at..end].parse::<u64>().unwrap_or(0);
        let mut from = at.saturating_sub(12);
        while !lower.is_char_boundary(from) {
            from += 1;
        }
        if end - at == 3
            && (400..600).contains(&number)
            && BEFORE.iter().any(|word| lower[from..at].contains(word))
        {
            return Some(number);
        }
        at = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_codes_of_all_programs() {
        use FailureKind::*;
        for (said, status, expected) in [
            (
                "unexpected status 401 Unauthorized: Incorrect API key provided",
                None,
                Some(Auth),
            ),
            (
                "exceeded retry limit, last status: 429 Too Many Requests",
                None,
                Some(RateLimit),
            ),
            (
                "Quota exceeded. Check your plan and billing details.",
                None,
                Some(RateLimit),
            ),
            (
                "Selected model is at capacity. Please try a different model.",
                None,
                Some(Overloaded),
            ),
            (
                "We’re currently experiencing high demand",
                None,
                Some(Overloaded),
            ),
            ("The model `stub-model` does not exist", None, Some(Invalid)),
            (
                "Codex ran out of room in the model's context window.",
                None,
                Some(Invalid),
            ),
            (
                r#"[API Error: {"error":{"code":403,"message":"Forbidden"}}]"#,
                None,
                Some(Auth),
            ),
            ("OAuth token has expired", None, Some(Auth)),
            (
                "error: option '--permission-mode <mode>' argument 'dontAsk' is invalid. Allowed choices are acceptEdits, plan.",
                None,
                Some(Invalid),
            ),
            ("failed to lookup address information", None, Some(Crashed)),
            (
                "API key not valid. Please pass a valid API key.",
                Some(400),
                Some(Auth),
            ),
            ("[API Error: terminated]", None, Some(Crashed)),
            (
                "stream disconnected before completion: idle timeout waiting for SSE",
                None,
                Some(Timeout),
            ),
            ("something else in 404 lines", None, None),
            ("anything", Some(529), Some(Overloaded)),
        ] {
            assert_eq!(kind(said, status), expected, "{said}");
        }
    }

    #[test]
    fn an_error_in_json_is_told_in_its_own_words() {
        for (said, told) in [
            (
                r#"{"error":{"code":401,"message":"OAuth token has expired","status":"UNAUTHENTICATED"}}"#,
                "OAuth token has expired (status 401)",
            ),
            (
                r#"[API Error: {"error":{"code":403,"message":"Forbidden"}}]"#,
                "API Error: Forbidden (status 403)",
            ),
            (
                r#"{"error":{"message":"{\"error\":{\"message\":\"inner\"}}","code":400}}"#,
                "inner (status 400)",
            ),
            (r#"{"message":"bare"}"#, "bare"),
            (r#"{"odd":1}"#, r#"{"odd":1}"#),
            ("a set {x} of things", "a set {x} of things"),
        ] {
            assert_eq!(failure(said, None, FailureKind::Crashed).message, told);
        }
    }

    #[test]
    fn every_cause_has_advice_of_its_own() {
        for (said, advice) in [
            ("error: unknown option '--foo'", "update"),
            (
                "argument 'dontAsk' is invalid. Allowed choices are plan",
                "update",
            ),
            (
                "Gemini CLI is not running in a trusted directory",
                "kd trust",
            ),
            ("failed to lookup address information", "network"),
            ("OAuth token has expired", "log in"),
            ("prompt is too long", "does not fit"),
        ] {
            let failure = failure(said, None, FailureKind::Crashed);
            assert!(
                failure.hint().contains(advice),
                "{said}: {}",
                failure.hint()
            );
        }
    }

    #[test]
    fn an_exit_is_explained_by_its_last_words() {
        let exit = |how, stderr: &str| ExitSeen {
            how,
            stderr: stderr.into(),
        };
        let failure = unfinished(
            "gemini",
            &exit(
                Exit::Code(41),
                "boot\n\u{1b}[31mPlease set an API key\u{1b}[0m\n",
            ),
            None,
        );
        assert_eq!(failure.kind, FailureKind::Auth);
        assert!(
            failure.message.ends_with("Please set an API key"),
            "{failure}"
        );
        let killed = unfinished(
            "codex",
            &exit(Exit::Signal(9), "Reading additional input from stdin...\n"),
            None,
        );
        assert_eq!(killed.kind, FailureKind::Crashed);
        assert_eq!(
            unfinished("x", &exit(Exit::Signal(15), "network"), None).kind,
            FailureKind::Cancelled
        );
        assert_eq!(
            unfinished("x", &ExitSeen::default(), None).kind,
            FailureKind::Decode
        );
    }
}
