//! The first-run message.

use super::here::Here;
use super::notices::say;
use kd_app::setup::{Discovered, look_around};

/// Says who answers and what else was found; on the first question in a folder, also how to get better answers.
pub(super) fn notice(first: bool, here: &Here) {
    say(&told(first, here));
}

/// Returns the same text, for a separate screen.
pub(super) fn told(first: bool, here: &Here) -> String {
    let found = look_around(here).unwrap_or_default();
    text(first, &found)
}

fn text(first: bool, found: &[Discovered]) -> String {
    let names: Vec<&str> = found.iter().map(|f| f.name.as_str()).collect();
    if !first {
        let more = match names.join(", ") {
            none if none.is_empty() => " (`kd init` sets up others)".to_owned(),
            names => format!("; found here: {names} (`kd init` sets them up)"),
        };
        return format!("the built-in model answers for all members{more}\n");
    }
    let here = if names.is_empty() {
        String::new()
    } else {
        format!("; found here: {}", names.join(", "))
    };
    format!(
        "the small built-in model answers for all members: it is for trying things out\n\
         for better answers: `kd init` (agent programs, keys{here}), Ollama, or `kd model use qwen2.5-1.5b`\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_app::setup::What;

    #[test]
    fn the_first_notice_is_honest_and_names_the_ways_on() {
        let found = [Discovered {
            what: What::Ollama(Vec::new()),
            name: "Ollama".into(),
            backend: "ollama".into(),
        }];
        let said = text(true, &found);
        assert!(
            said.contains("trying things out") && said.contains("found here: Ollama"),
            "{said}"
        );
        let later = text(false, &found);
        assert!(later.contains("found here: Ollama"), "{later}");
        assert_eq!(later.lines().count(), 1);
        assert_eq!(text(false, &[]).lines().count(), 1);
    }
}
