//! Logs in to an ACP agent that requires it, if one of its methods works without a person.
//!
//! Input: `authMethods` of the response to `initialize`. A method qualifies if it reads a key or token; all others may
//! open a browser or need a terminal, and are suggested to the user instead.

use super::dialects;
use kd_core::{Failure, FailureKind};
use serde_json::Value;

/// Words in the id of a method that reads a key.
const KEYS: [&str; 4] = ["apikey", "token", "envvar", "key"];
/// Words in the id of a method that needs a person, whatever else it says.
const PERSON: [&str; 6] = ["oauth", "login", "browser", "device", "sso", "personal"];
/// Maximum number of methods in a hint.
const NAMED_MAX: usize = 4;

/// Returns the id of the first method that needs neither a browser nor a terminal.
pub(super) fn without_browser(methods: &Value) -> Option<String> {
    let fits = |method: &&Value| {
        let id = plain(method["id"].as_str().unwrap_or_default());
        if method["type"] == "terminal" || PERSON.iter().any(|word| id.contains(word)) {
            return false;
        }
        let described = method["description"].as_str().unwrap_or_default();
        method["type"] == "env_var"
            || described.to_lowercase().contains("environment variable")
            || method["_meta"]["api-key"].is_object()
            || KEYS.iter().any(|word| id.contains(word))
    };
    let found = methods.as_array()?.iter().find(fits)?;
    found["id"].as_str().map(str::to_owned)
}

/// Builds the failure for an agent that is not logged in, with its own instructions.
pub(super) fn failure(said: &str, methods: &Value) -> Failure {
    let ways: Vec<String> = methods
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|method| method["description"].as_str().or(method["name"].as_str()))
        .take(NAMED_MAX)
        .map(dialects::one_line)
        .collect();
    let said = dialects::one_line(&format!("the agent requires a login: {said}"));
    let failure = Failure::new(FailureKind::Auth, said);
    if ways.is_empty() {
        return failure.advise(
            "start the program itself once and log in, or name the variable of its key in `agents.<name>.env`",
        );
    }
    failure.advise(format!(
        "log in with the program itself, or name the variable of its key in `agents.<name>.env`; it knows: {}",
        ways.join("; ")
    ))
}

fn plain(id: &str) -> String {
    let letters = id.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_method_that_reads_a_key_is_used_without_a_person() {
        let env =
            json!([{"id": "chatgpt"}, {"id": "codex", "type": "env_var", "vars": [{"name": "K"}]}]);
        let gemini =
            json!([{"id": "oauth-personal"}, {"id": "gemini-api-key"}, {"id": "vertex-ai"}]);
        let qwen = json!([{"id": "openai", "description": "Requires setting the `OPENAI_API_KEY` environment variable"}]);
        let cline = json!([{"id": "cline", "name": "Sign in with Cline"}, {"id": "openai-codex", "name": "Sign in with ChatGPT"}]);
        let meta = json!([{"id": "x", "_meta": {"api-key": {"provider": "openai"}}}]);
        for (methods, wanted) in [
            (env, Some("codex")),
            (gemini, Some("gemini-api-key")),
            (qwen, Some("openai")),
            (cline, None),
            (meta, Some("x")),
            (
                json!([{"id": "opencode-login", "description": "Run `opencode auth login`"}]),
                None,
            ),
            (
                json!([{"id": "key", "type": "terminal"}, {"id": "oauth-token"}, {"id": "cursor_login"}]),
                None,
            ),
            (json!([{"name": "no id", "type": "env_var"}]), None),
            (json!("all"), None),
        ] {
            assert_eq!(without_browser(&methods).as_deref(), wanted, "{methods}");
        }
    }

    #[test]
    fn a_login_that_needs_a_person_is_told_in_the_agents_words() {
        let methods =
            json!([{"id": "l", "description": "Run `opencode auth login` in the terminal"}]);
        let failure = super::failure("Authentication required", &methods);
        assert_eq!(failure.kind, FailureKind::Auth);
        assert!(
            failure.message.contains("Authentication required"),
            "{failure}"
        );
        assert!(
            failure.hint().contains("`opencode auth login`"),
            "{}",
            failure.hint()
        );
        assert!(
            super::failure("no", &json!(null))
                .hint()
                .contains("agents.<name>.env")
        );
    }
}
