//! What a person is told who has configured nothing.

use super::init::look_around;
use kd_backends::discovery::Discovered;
use std::io::{self, Write};

/// Says who speaks; on the first question in a folder also what else was found, and how to get better answers.
pub(super) fn notice(first: bool) {
    let found = if first {
        look_around().unwrap_or_default()
    } else {
        Vec::new()
    };
    let _ = io::stderr()
        .lock()
        .write_all(text(first, &found).as_bytes());
}

fn text(first: bool, found: &[Discovered]) -> String {
    if !first {
        return "the built-in model speaks for all members (`kd init` seats others)\n".to_owned();
    }
    let names: Vec<&str> = found.iter().map(|f| f.name.as_str()).collect();
    let here = if names.is_empty() {
        String::new()
    } else {
        format!("; found here: {}", names.join(", "))
    };
    format!(
        "the small built-in model speaks for all members: it is for trying things out\n\
         for better answers: `kd init` (agent programs, keys{here}), an Ollama, or a larger GGUF with --model\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_backends::discovery::What;

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
        assert_eq!(text(false, &found).lines().count(), 1);
    }
}
