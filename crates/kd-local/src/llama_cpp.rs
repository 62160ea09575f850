//! llama.cpp as the evaluator (feature `llama-cpp`): for the architectures, vocabularies and formats that the built-in
//! code does not support, and for GPUs.
//!
//! Loads a path into an [`Engine`]. The worker, the sampler, stop strings, constraints and cancellation are shared with
//! the built-in engine; only the [`Brain`](crate::engine::brain::Brain) differs, and, where needed, the vocabulary and
//! the chat template. A batched answer may differ from the same answer alone: llama.cpp's sums depend on the batch.

mod brain;
mod layout;
mod words;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};

use llama_cpp_2::LlamaCppError;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;

use self::brain::{KEPT, LlamaBrain};
use crate::chat::ChatTemplate;
use crate::engine::worker::{self, Parts};
use crate::engine::{Engine, Layout, ModelInfo, Options, threads};
use crate::error::Error;
use crate::gguf::Gguf;
use crate::kernels::Simd;
use crate::tokenizer::Tokenizer;

/// Default for the total tokens of all sequences: llama.cpp allocates the memory at once.
const CONTEXT: usize = 8192;
/// Maximum number of jobs decoded together; llama.cpp supports 256 sequences.
const TOGETHER_MAX: usize = 200;
/// Rows computed per call; the memory for it grows with the vocabulary.
const ROWS: u32 = 256;

/// Loads a GGUF file into llama.cpp.
///
/// # Errors
/// [`Error::Io`] about the path, [`Error::Unsupported`] if llama.cpp does not accept the file or its template,
/// [`Error::Tokenizer`] about the vocabulary, [`Error::Worker`] if a thread or memory cannot be allocated.
pub(crate) fn load(path: &Path, name: String, options: &Options) -> Result<Engine, Error> {
    let file_bytes = std::fs::metadata(path)
        .map_err(|e| Error::io(path, e))?
        .len();
    let backend = backend()?;
    let model = LlamaModel::load_from_file(backend, path, &LlamaModelParams::default()).map_err(
        |e| Error::Unsupported {
            what: format!(
                "llama.cpp cannot load this file either: {e} (its own log says why: KD_LLAMA_LOG=1)"
            ),
        },
    )?;
    let model = Arc::new(model);
    let (tokenizer, layout) = read_words(path, &model)?;
    let text = |key: &str| model.meta_val_str(key).ok().filter(|text| !text.is_empty());
    let trained = model.n_ctx_train() as usize;
    let threads = threads(options);
    let info = ModelInfo {
        name: text("general.name").unwrap_or(name),
        architecture: text("general.architecture").unwrap_or_default(),
        parameters: model.n_params(),
        context: options.context.unwrap_or(CONTEXT).min(trained).max(1),
        vocab: tokenizer.vocab_len(),
        file_bytes,
        weight_bytes: model.size(),
        licence: text("general.license"),
        simd: "llama.cpp",
        threads,
    };
    let together = options.together.clamp(1, TOGETHER_MAX);
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(info.context as u32))
        .with_n_batch(info.context as u32)
        .with_n_ubatch(ROWS)
        // One more than can be alive at once: a member that takes over another's prefix briefly holds two.
        .with_n_seq_max((together + KEPT + 2) as u32)
        .with_kv_unified(true)
        .with_n_threads(threads as i32)
        .with_n_threads_batch(threads as i32);
    let (context, cache_bytes) = (info.context, options.cache_bytes);
    let (said, hear) = sync_channel(1);
    let (words, lay) = (Arc::clone(&tokenizer), Arc::clone(&layout));
    let engine = Engine::run(info, tokenizer, layout, move |requests| {
        // The context borrows the model, so it is created on the thread that owns both.
        let ready = model.new_context(backend, params);
        match ready {
            Ok(ready) => {
                let _ = said.send(None);
                let parts = Parts {
                    brain: LlamaBrain::new(ready, &model, together),
                    simd: Simd::detect(),
                    tokenizer: words,
                    layout: lay,
                    context,
                    together,
                    cache_bytes,
                };
                worker::run(parts, requests);
            }
            Err(error) => {
                let _ = said.send(Some(error.to_string()));
            }
        }
    })?;
    match hear.recv() {
        Ok(None) => Ok(engine),
        Ok(Some(why)) => Err(Error::Worker {
            what: format!("llama.cpp made no room for {context} tokens: {why}"),
        }),
        Err(_) => Err(Error::Worker {
            what: "llama.cpp failed while it started".into(),
        }),
    }
}

/// Reads vocabulary and template with the built-in code. If that is not possible, reads them with llama.cpp.
fn read_words(
    path: &Path,
    model: &Arc<LlamaModel>,
) -> Result<(Arc<Tokenizer>, Arc<Layout>), Error> {
    let ours = Gguf::open(PathBuf::from(path)).and_then(|gguf| Tokenizer::from_gguf(&gguf));
    let tokenizer = match ours {
        Ok(ours) if ours.vocab_len() <= model.n_vocab().max(0) as usize => ours,
        _ => words::read(model)?,
    };
    let tokenizer = Arc::new(tokenizer);
    let template = layout::template(model)?;
    let layout: Arc<Layout> = match ChatTemplate::from_text(&template, &tokenizer) {
        Ok(known) => {
            let tokenizer = Arc::clone(&tokenizer);
            Arc::new(move |messages| Ok(known.render(messages, &tokenizer)))
        }
        Err(_) => layout::foreign(model, &tokenizer)?,
    };
    Ok((tokenizer, layout))
}

/// Returns llama.cpp's backend, initialized once per process.
fn backend() -> Result<&'static LlamaBackend, Error> {
    static BACKEND: OnceLock<Result<LlamaBackend, LlamaCppError>> = OnceLock::new();
    let made = BACKEND.get_or_init(|| {
        let mut backend = LlamaBackend::init()?;
        if std::env::var_os("KD_LLAMA_LOG").is_none() {
            backend.void_logs();
        }
        Ok(backend)
    });
    made.as_ref().map_err(|e| Error::Worker {
        what: format!("llama.cpp did not start: {e}"),
    })
}

#[cfg(test)]
mod tests;
