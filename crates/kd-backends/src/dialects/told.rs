//! Errors printed as an answer: some agents print the error of their service as text, and then end the turn normally.
//!
//! Input: the text of a turn for which no tokens were reported. Output: the failure, or nothing if the text may be an
//! answer. An answer that explains an error is not an error.

use super::blame;
use kd_core::{Failure, FailureKind};

/// Maximum length of a text that is treated as an error, in bytes; the JSON at its end counts as one.
const ERROR_MAX: usize = 1000;
/// Beginnings of errors, in lower case.
const ERRORS: [&str; 17] = [
    "error:",
    "api error",
    "[api error",
    "request failed:",
    "request failed with status code",
    "failed to authenticate",
    "authentication failed",
    "authentication error",
    "authentication_error",
    "stream error:",
    "stream disconnected",
    "fatal error:",
    "unexpected status",
    "invalid api key",
    "unexpected server status",
    "http error",
    "axioserror:",
];
/// Beginnings of sentences about a limit, in lower case.
const LIMITS: [&str; 14] = [
    "you've hit your",
    "you have hit your",
    "you've reached your",
    "you have reached your",
    "you have exhausted your",
    "you've exhausted your",
    "you exceeded your current quota",
    "your quota will reset",
    "quota exceeded",
    "usage limit reached",
    "claude usage limit reached",
    "claude ai usage limit reached",
    "credit balance is too low",
    "your credit balance is too low",
];
/// The subject of those sentences.
const LIMITED: [&str; 6] = ["limit", "quota", "capacity", "credit", "usage", "requests"];
/// Words by which an answer explains an error, or gives advice about one, in lower case.
const EXPLAINS: [&str; 20] = [
    " means ",
    " mean ",
    " indicates ",
    " is what ",
    " is returned ",
    " is raised ",
    " is shown ",
    " occurs ",
    " happens ",
    " appears ",
    " usually ",
    " typically ",
    " for example",
    " e.g.",
    " because ",
    " refers to ",
    " handling ",
    " users ",
    " is the ",
    " is a ",
];
/// Beginnings of lines that report progress, in lower case.
const PROGRESS: [&str; 8] = [
    "thinking",
    "retrying",
    "attempt",
    "connecting",
    "reconnecting",
    "loading",
    "loaded ",
    "warning:",
];

/// Returns the failure if a text ends in an error and says nothing else.
pub(super) fn told_as_text(said: &str) -> Option<Failure> {
    let said = said.trim();
    let (text, has_json) = without_json(said);
    if text.len() > ERROR_MAX || text.contains('`') {
        return None;
    }
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let (last, before) = lines.split_last()?;
    let is_one = match before {
        _ if is_error(last) => {
            before.iter().all(|line| is_progress(line) || is_error(line))
                // The service's own reply shows that the error is none of the answer.
                || has_json && before.iter().all(|line| !line.ends_with(':'))
        }
        // An error, then where in the program it was.
        [first, ..] => is_error(first) && !text.contains("\n\n"),
        [] => false,
    };
    if !is_one || explains(text) {
        return None;
    }
    let error = match is_error(last) {
        true => said.find(*last).map_or(said, |at| &said[at..]),
        false => said,
    };
    let kind =
        blame::kind(error, None).or_else(|| is_limit(last).then_some(FailureKind::RateLimit));
    Some(blame::failure(bare(error), None, kind?))
}

/// Returns a text without the JSON object at its end, and whether there was one.
fn without_json(said: &str) -> (&str, bool) {
    let is_object = |at: &usize| {
        let rest = said[*at..].trim_end_matches([']', '.']);
        serde_json::from_str::<serde_json::Value>(rest).is_ok()
    };
    let mut starts = said.match_indices('{').map(|(at, _)| at);
    match starts.next().filter(is_object) {
        Some(at) if at > 0 => (said[..at].trim_end(), true),
        _ => (said, false),
    }
}

/// Returns a line without the signs before its words: `⚠️`, `…`, `**`.
fn bare(line: &str) -> &str {
    line.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '[')
}

fn is_error(line: &str) -> bool {
    let low = bare(line).to_lowercase().replace('’', "'");
    let is_quoted = line.starts_with(['"', '“', '\'', '>', '«', '„']);
    !is_quoted && (ERRORS.iter().any(|word| low.starts_with(word)) || is_limit(line))
}

fn is_limit(line: &str) -> bool {
    let low = bare(line).to_lowercase().replace('’', "'");
    LIMITS.iter().any(|word| low.starts_with(word)) && LIMITED.iter().any(|word| low.contains(word))
}

fn is_progress(line: &str) -> bool {
    const CHARS_MAX: usize = 80;
    let low = bare(line).to_lowercase();
    let goes_on = line.ends_with('…') || line.ends_with("...");
    line.chars().count() <= CHARS_MAX
        && (goes_on || PROGRESS.iter().any(|word| low.starts_with(word)))
}

fn explains(text: &str) -> bool {
    let low = text.to_lowercase();
    EXPLAINS.iter().any(|word| low.contains(word))
}

#[cfg(test)]
mod tests {
    use super::told_as_text;
    use kd_core::FailureKind;

    #[test]
    fn an_error_that_is_all_there_is_of_an_answer_is_one() {
        let kind = |said| told_as_text(said).map(|failure| failure.kind);
        for (said, wanted) in [
            (
                "Error: Authentication failed (401). Log in again.",
                FailureKind::Auth,
            ),
            ("[API Error: 429 Too Many Requests]", FailureKind::RateLimit),
            (
                "Failed to authenticate. API Error: 401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"OAuth token has expired.\"}}",
                FailureKind::Auth,
            ),
            (
                "Failed to authenticate. API Error: 401 Invalid credentials",
                FailureKind::Auth,
            ),
            (
                "⚠️ Error: You've hit your usage limit. Upgrade to Pro, or try again at 5:12 PM.",
                FailureKind::RateLimit,
            ),
            (
                "You have exhausted your capacity on this model. Your quota will reset after 3h12m.",
                FailureKind::RateLimit,
            ),
            (
                "You have exhausted your capacity on this model.",
                FailureKind::RateLimit,
            ),
            (
                "You’ve hit your limit · resets 3pm (Europe/Berlin)",
                FailureKind::RateLimit,
            ),
            (
                "Claude AI usage limit reached|1760000000",
                FailureKind::RateLimit,
            ),
            ("Credit balance is too low", FailureKind::RateLimit),
            (
                "…Request failed with status code 401 (Unauthorized)",
                FailureKind::Auth,
            ),
            (
                "AxiosError: Request failed with status code 503",
                FailureKind::Overloaded,
            ),
            (
                "Thinking…\nError: 429 {\"error\":{\"code\":429,\"message\":\"Resource has been exhausted\"}}",
                FailureKind::RateLimit,
            ),
            (
                "Error: 429 {\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"Too many\"\n  }\n}",
                FailureKind::RateLimit,
            ),
            (
                "I would begin with SQLite.\n\nAPI Error: 529 {\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
                FailureKind::Overloaded,
            ),
            (
                "Attempt 1 of 3\n\nRetrying in 5 s...\n\nError: 503 Service Unavailable",
                FailureKind::Overloaded,
            ),
            ("Invalid API key · Please run /login", FailureKind::Auth),
            (
                "Error: fetch failed\n    at node:internal (index.js:12)",
                FailureKind::Crashed,
            ),
        ] {
            assert_eq!(kind(said), Some(wanted), "{said}");
        }
    }

    #[test]
    fn an_answer_about_an_error_is_an_answer() {
        for answer in [
            "Error: this is what the program prints when a variable is missing.\n\nYour login is fine.",
            "Error handling belongs where the login is.",
            "The text says: Error: Authentication failed",
            "Error: take the second one",
            "Error: 401 means that your token has expired. Log in again.",
            "It prints this:\n\nError: 401 Unauthorized",
            "The log ends with:\nAPI Error: 429 {\"error\":\"quota\"}",
            "Log in again. The last line was `Error: 401 Unauthorized`.",
            "```\nError: 401 Unauthorized\n```",
            "\"Error: 401 Unauthorized\"",
            "> Error: 429 Too Many Requests",
            "You've hit your stride: keep the design.",
            "You have reached your answer: 42.",
            "A request failed with status code 401 because the key was missing.",
            "Request failed with status code 401 means that the key is wrong.",
            "Authentication failed is the right choice.",
            "Rate limit the API with a token bucket.",
            "Choose B.\nError: 429 usually goes away after a minute.",
            "SQLite.\nA quota is not needed.",
            "Usage limits: 100 requests a day.\nPick the second plan.",
            "Use exponential backoff when you see a 429 (Too Many Requests).",
            "Quota exceeded errors should be retried, because they are temporary.",
            "Answer: yes\nError: none",
            "{\"answer\": \"Error: 401 Unauthorized\"}",
            "{\"reason\": \"quota\", \"answer\": \"yes\"}",
            "",
        ] {
            assert_eq!(told_as_text(answer), None, "{answer}");
        }
    }

    #[test]
    fn the_failure_tells_the_words_of_the_service() {
        let failure = told_as_text("⚠️ Error: You've hit your usage limit.");
        let message = failure.map(|failure| failure.message);
        assert_eq!(
            message.as_deref(),
            Some("Error: You've hit your usage limit.")
        );
    }
}
