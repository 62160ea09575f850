//! What a person is told who has configured nothing.

use std::io::{self, Write};

/// Says who speaks, and, on the first question in a folder, how to get a better council.
pub(super) fn notice(first: bool) {
    let mut err = io::stderr().lock();
    let _ = if first {
        writeln!(
            err,
            "the small built-in model speaks for all members: it is for trying things out.\n\
             for better answers: `kd init` (agent programs, keys), an Ollama, or a larger GGUF with --model"
        )
    } else {
        writeln!(
            err,
            "the built-in model speaks for all members (`kd init` seats others)"
        )
    };
}
