//! What makes two questions the same, and two commands the same batch: digests of everything that decides an answer.

use super::how::How;
use jiff::Timestamp;
use kd_core::config::Config;
use kd_core::seating::SeatRequest;
use kd_sql::batch::Asked;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::Path;

/// Settings that do not change an answer.
const IRRELEVANT: [&str; 3] = ["limits", "forum", "chat"];

/// Returns the digest of how questions are asked: the method, its options, and the settings.
pub(super) fn recipe(config: &Config, how: &How) -> String {
    let mut settings = serde_json::to_value(config).unwrap_or(Value::Null);
    if let Value::Object(settings) = &mut settings {
        settings.retain(|key, _| !IRRELEVANT.contains(&key.as_str()));
    }
    let options = match how {
        How::Ask(ask) => json!({
            "seats": seats(&ask.seats),
            "to": ask.to,
            "no_conclusion": ask.no_conclusion,
            "private": ask.terms.private,
        }),
        How::Think(think) => json!({
            "fast": think.fast,
            "rigorous": think.rigorous,
            "arbiter": think.arbiter,
            "seats": seats(&think.all),
            "messages_max": think.messages_max,
            "messages_min": think.messages_min,
            "tokens_max": think.tokens_max,
            "secs_max": think.secs_max,
            "private": think.terms.private,
        }),
        How::Deliberate(deliberate) => json!({"members": deliberate.members}),
    };
    digest(&[&json!([1, how.method(), options, settings]).to_string()])
}

fn seats(seats: &SeatRequest) -> Value {
    json!({
        "members": seats.members,
        "model": seats.model,
        "temperature": seats.temperature,
        "max_tokens": seats.max_tokens,
        "seed": seats.seed,
        "timeout": seats.timeout,
        "writable": seats.writable,
    })
}

/// Returns the digest of a question that is asked in a way.
pub(super) fn question(recipe: &str, text: &str) -> String {
    digest(&[recipe, text])
}

/// Returns the digest of a batch: how it is asked, its questions in order, and where results go.
pub(super) fn batch(recipe: &str, questions: &[Asked], output: Option<&Path>) -> String {
    let output = output.map(|path| path.as_os_str().as_encoded_bytes());
    let mut hash = Sha256::new();
    part(&mut hash, recipe.as_bytes());
    part(&mut hash, output.unwrap_or_default());
    for question in questions {
        part(&mut hash, question.id.as_bytes());
        part(&mut hash, question.key.as_bytes());
    }
    hex(&hash.finalize())
}

/// Returns the id of a new batch.
pub(super) fn new_id(key: &str, now: Timestamp) -> String {
    let salt = [
        now.as_nanosecond().to_string(),
        std::process::id().to_string(),
    ];
    let digits = digest(&[key, &salt[0], &salt[1]]);
    format!("batch-{}", &digits[..8])
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    parts.iter().for_each(|one| part(&mut hash, one.as_bytes()));
    hex(&hash.finalize())
}

/// Adds a part with its length, so that no two lists of parts have the same bytes.
fn part(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ask, Think};

    #[test]
    fn only_what_decides_an_answer_changes_the_recipe() {
        let mut config = Config::default();
        let how = How::Ask(Ask::default());
        let first = recipe(&config, &how);
        config.limits.usd = Some(1.0);
        assert_eq!(
            recipe(&config, &how),
            first,
            "a raised limit goes on with the batch"
        );
        config.council.conclude = !config.council.conclude;
        assert_ne!(recipe(&config, &how), first);
        assert_ne!(
            recipe(&Config::default(), &How::Think(Think::default())),
            first
        );
        let mut ask = Ask::default();
        ask.seats.temperature = Some(0.5);
        assert_ne!(recipe(&Config::default(), &How::Ask(ask)), first);
    }

    #[test]
    fn parts_cannot_be_mistaken_for_others() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_ne!(question("r", "One?"), question("r", "One? "));
    }
}
