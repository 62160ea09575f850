//! The error type of this crate: what happened, why, and (by [`Error::hint`]) what to do next.

use std::path::PathBuf;
use std::sync::Arc;

/// A failure to load a model or to answer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not a GGUF file, or the file is inconsistent.
    #[error("this is not a usable GGUF file: {what}")]
    Gguf {
        /// The problem, with its offset in the file if it is known.
        what: String,
    },
    /// A valid file that needs a feature this engine does not support.
    #[error("this model needs something that the built-in engine does not support: {what}")]
    Unsupported {
        /// The unsupported architecture, tensor type or setting.
        what: String,
    },
    /// The vocabulary or the chat template of the file is unusable.
    #[error("the model's tokenizer cannot be used: {what}")]
    Tokenizer {
        /// The missing or inconsistent part.
        what: String,
    },
    /// The prompt leaves no space for an answer.
    #[error("the prompt has {prompt} tokens, but the model has room for {limit}, answer included")]
    TooLong {
        /// Tokens of the rendered prompt.
        prompt: usize,
        /// Maximum tokens of prompt and answer together.
        limit: usize,
    },
    /// The JSON schema for the answer is unusable.
    #[error("the JSON schema for the answer cannot be used: {what}")]
    Schema {
        /// The grammar compiler's message.
        what: String,
    },
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: Arc<std::io::Error>,
    },
    /// The caller cancelled the job.
    #[error("the answer was cancelled")]
    Cancelled,
    /// The thread that runs the model failed or has ended; the process continues.
    #[error("the built-in engine failed inside: {what}")]
    Worker {
        /// The panic's message, or what the engine was doing.
        what: String,
    },
}

impl Error {
    /// Returns advice for the user, in one sentence, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Gguf { .. } => {
                "the download may be cut short: `kd model verify` checks it, `kd model pull` downloads it again"
            }
            Self::Unsupported { .. } => {
                "use a llama, qwen2 or qwen3 model; or build with llama.cpp, which needs cmake, libclang and a C++ compiler (`cargo install --path crates/kd --features llama-cpp`); or use Ollama or an HTTP backend"
            }
            Self::Tokenizer { .. } => {
                "use a GGUF file with a byte-level BPE vocabulary, or build with llama.cpp (`cargo install --path crates/kd --features llama-cpp`)"
            }
            Self::TooLong { .. } => {
                "shorten the question or the transcript, ask for fewer tokens, or raise the context up to what the model was trained on"
            }
            Self::Schema { .. } => {
                "simplify the schema; strings and arrays need bounds (maxLength, maxItems)"
            }
            Self::Io { .. } => "check the path and its permissions; `kd model path` shows the file",
            Self::Cancelled => return None,
            Self::Worker { .. } => {
                "ask again; if it persists, KD_SIMD=off and KD_THREADS=1 help to narrow it down"
            }
        })
    }

    /// Creates an [`Error::Io`] about `path`.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source: Arc::new(source),
        }
    }
}
