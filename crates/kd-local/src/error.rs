//! The one error of this crate: what happened, why, and (by [`Error::hint`]) what to do next.

use std::path::PathBuf;
use std::sync::Arc;

/// Anything that keeps a model from being loaded or from answering.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no GGUF file, or one whose parts contradict each other.
    #[error("this is not a usable GGUF file: {what}")]
    Gguf {
        /// What does not fit, with the place in the file where it is known.
        what: String,
    },
    /// A sound file that asks for something this engine does not do.
    #[error("this model needs something that the built-in engine does not do: {what}")]
    Unsupported {
        /// The architecture, tensor type or setting that is asked for.
        what: String,
    },
    /// The vocabulary or the chat template of the file cannot be used.
    #[error("the model's tokenizer cannot be used: {what}")]
    Tokenizer {
        /// What is missing or contradictory.
        what: String,
    },
    /// The prompt leaves no room for an answer.
    #[error("the prompt has {prompt} tokens, but the model can hold {limit}, answer included")]
    TooLong {
        /// Tokens of the rendered prompt.
        prompt: usize,
        /// Tokens that prompt and answer may have together.
        limit: usize,
    },
    /// The JSON schema that an answer shall follow cannot be used.
    #[error("the JSON schema for the answer cannot be used: {what}")]
    Schema {
        /// What the grammar compiler said.
        what: String,
    },
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file in question.
        path: PathBuf,
        /// What the operating system said.
        source: Arc<std::io::Error>,
    },
    /// The caller gave the job up.
    #[error("the answer was cancelled")]
    Cancelled,
    /// The thread that runs the model failed or has ended; the process goes on.
    #[error("the built-in engine failed inside: {what}")]
    Worker {
        /// The panic's message, or what the engine was doing.
        what: String,
    },
}

impl Error {
    /// What a person can do about it, in one sentence, where there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Gguf { .. } => {
                "the download may be cut short: `kd model verify` checks it, `kd model pull` fetches it again"
            }
            Self::Unsupported { .. } => {
                "take a llama or qwen2 model; or build with llama.cpp, which needs cmake, libclang and a C++ compiler (`cargo install --path crates/kd --features llama-cpp`); or use Ollama or an HTTP backend"
            }
            Self::Tokenizer { .. } => {
                "take a GGUF file that carries a byte-level BPE vocabulary, or build with llama.cpp (`cargo install --path crates/kd --features llama-cpp`)"
            }
            Self::TooLong { .. } => {
                "shorten the question or the transcript, ask for fewer tokens, or raise the context up to what the model was trained on"
            }
            Self::Schema { .. } => {
                "simplify the schema; strings and arrays need bounds (maxLength, maxItems)"
            }
            Self::Io { .. } => {
                "check the path and its permissions; `kd model path` shows which file is meant"
            }
            Self::Cancelled => return None,
            Self::Worker { .. } => {
                "ask again; should it repeat, KD_SIMD=off and KD_THREADS=1 help to narrow it down"
            }
        })
    }

    /// An [`Error::Io`] about `path`.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source: Arc::new(source),
        }
    }
}
