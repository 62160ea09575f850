//! A loaded model that answers several jobs at once.
//!
//! One thread (`worker`) runs the model for all jobs, with helper threads from the pool, and sends pieces of each
//! answer to the job's sink. An answer does not depend on which other jobs run, unless llama.cpp evaluates the tokens
//! (feature `llama-cpp`).

pub(crate) mod brain;
mod cache;
mod member;
mod text;
pub(crate) mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::Value as Json;

use self::brain::Own;
use crate::chat::{ChatMessage, ChatTemplate};
use crate::constrain::{Constraint, Vocab};
use crate::error::Error;
use crate::gguf::{Gguf, Value};
use crate::kernels::Simd;
use crate::model::Model;
use crate::pool::{Pool, cores};
use crate::sampler::Sampling;
use crate::tokenizer::Tokenizer;

/// A model in memory. Cheap to clone; dropping the last clone ends its thread and frees the memory.
#[derive(Clone)]
pub struct Engine(Arc<Handle>);

/// Options for loading and running a model.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of compute threads. The default is `KD_THREADS`; if it is not set, the number of physical cores, at most
    /// 8.
    pub threads: Option<usize>,
    /// Maximum tokens of prompt and answer together. Default: the model's training context, at most 16,384.
    pub context: Option<usize>,
    /// Maximum bytes of evaluated prefixes kept for later jobs.
    pub cache_bytes: usize,
    /// Maximum number of jobs decoded together; further jobs wait.
    pub together: usize,
    /// Uses only the portable code, as `KD_SIMD=off` does for the whole process.
    pub plain: bool,
    /// The code that evaluates the tokens. By default `KD_ENGINE` decides (`built-in`, `llama-cpp`). If it is not set,
    /// the built-in code runs; with the feature `llama-cpp`, llama.cpp runs files that the built-in code does not
    /// support.
    pub carrier: Option<Carrier>,
}

/// The code that evaluates the tokens of an [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The built-in code.
    BuiltIn,
    /// llama.cpp; needs the feature `llama-cpp`.
    LlamaCpp,
}

/// Describes a loaded model.
#[derive(Clone, Debug)]
pub struct ModelInfo {
    /// The name given in the file; if there is none, the file name.
    pub name: String,
    /// `llama`, `qwen2` or `qwen3`; with llama.cpp, any architecture it supports.
    pub architecture: String,
    /// Number of weights.
    pub parameters: u64,
    /// Maximum tokens of prompt and answer together.
    pub context: usize,
    /// Number of tokens in the vocabulary.
    pub vocab: usize,
    /// File size in bytes.
    pub file_bytes: u64,
    /// Bytes that the packed weights occupy in memory.
    pub weight_bytes: u64,
    /// The licence stated in the file, such as `apache-2.0`.
    pub licence: Option<String>,
    /// The instruction set in use: `scalar`, `avx2`, `avx512-vnni`, `neon`; or `llama.cpp`.
    pub simd: &'static str,
    /// Number of compute threads on an otherwise idle machine.
    pub threads: usize,
}

/// A request for one answer.
#[derive(Clone, Debug)]
pub struct Job {
    /// The conversation so far; the answer is the assistant's next message.
    pub messages: Vec<ChatMessage>,
    /// The method of choosing tokens.
    pub sampling: Sampling,
    /// Maximum tokens of the answer.
    pub max_tokens: usize,
    /// Strings that end the answer; they are not included in it.
    pub stop: Vec<String>,
    /// A JSON schema that the answer must follow.
    pub schema: Option<Json>,
    /// A choice whose probabilities to report; ignored without a schema.
    pub watch: Option<Watch>,
}

/// A choice that the schema offers (an enum of strings), reported as [`Piece::Choice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The labels as spelled in the schema, without quotes.
    pub labels: Vec<String>,
}

/// A message to a sink: `Started`, any number of `Text` and `Choice`, then `Done`; or `Failed` at any point.
#[derive(Clone, Debug)]
pub enum Piece {
    /// The prompt has been evaluated.
    Started {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Prompt tokens that were already evaluated for another job.
        shared_tokens: usize,
    },
    /// The next text of the answer.
    Text(String),
    /// The probability of each label of the job's [`Watch`], before penalties and temperature; they sum to 1.
    Choice(Vec<(String, f64)>),
    /// The answer is complete.
    Done {
        /// The reason why it ended.
        reason: StopReason,
        /// Token counts.
        usage: Usage,
    },
    /// The job failed; no more pieces follow.
    Failed(Error),
}

/// The reason why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended it, or the schema was completed.
    End,
    /// `max_tokens` or the context limit was reached.
    Length,
    /// A stop string was reached.
    Stop,
}

/// Token counts of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens that were already evaluated for another job.
    pub shared_tokens: usize,
    /// Tokens of the answer.
    pub answer_tokens: usize,
    /// Answer tokens that the schema forced.
    pub forced_tokens: usize,
}

/// A handle to a job; dropping it cancels the job before its next token.
#[must_use = "dropping the ticket cancels the job"]
#[derive(Debug)]
pub struct Ticket {
    cancelled: Arc<AtomicBool>,
}

type Sink = Box<dyn FnMut(Piece) + Send>;

/// Converts messages to the tokens of a prompt.
pub(crate) type Layout = dyn Fn(&[ChatMessage]) -> Result<Vec<u32>, Error> + Send + Sync;

/// A job queued for the worker.
pub(crate) struct Request {
    job: Job,
    constraint: Option<Constraint>,
    sink: Sink,
    cancelled: Arc<AtomicBool>,
}

struct Handle {
    info: ModelInfo,
    tokenizer: Arc<Tokenizer>,
    layout: Arc<Layout>,
    vocab: Arc<Vocab>,
    /// Taken to end the worker.
    sender: Mutex<Option<Sender<Request>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: None,
            context: None,
            cache_bytes: 256 << 20,
            together: 16,
            plain: false,
            carrier: None,
        }
    }
}

impl Engine {
    /// Loads a GGUF file that is already in memory. Always uses the built-in code.
    ///
    /// # Errors
    /// As for [`Engine::load`], except `Io`.
    pub fn from_bytes(bytes: Vec<u8>, options: Options) -> Result<Self, Error> {
        Self::start(
            Gguf::from_bytes(bytes)?,
            "a model in memory".into(),
            options,
        )
    }

    pub(crate) fn start(gguf: Gguf, name: String, options: Options) -> Result<Self, Error> {
        let simd = if options.plain {
            Simd::SCALAR
        } else {
            Simd::detect()
        };
        let threads = threads(&options);
        let pool = Pool::new(threads);
        // The vocabulary and the weights are independent, and both take time to load.
        let (words, model) = std::thread::scope(|scope| {
            let words = scope.spawn(|| {
                let tokenizer = Tokenizer::from_gguf(&gguf)?;
                let template = ChatTemplate::from_gguf(&gguf, &tokenizer)?;
                Ok::<_, Error>((Arc::new(tokenizer), template))
            });
            let model = Model::load(&gguf, &pool, simd);
            (words.join(), model)
        });
        let lost = |_| Error::Worker {
            what: "reading the vocabulary panicked".into(),
        };
        let ((tokenizer, template), model) = (words.map_err(lost)??, model?);
        if tokenizer.vocab_len() > model.config.vocab {
            let what = format!(
                "{} tokens, but embeddings for {}",
                tokenizer.vocab_len(),
                model.config.vocab
            );
            return Err(Error::Tokenizer { what });
        }
        let text = |key: &str| gguf.meta(key).and_then(Value::as_str).map(str::to_owned);
        let info = ModelInfo {
            name: text("general.name").unwrap_or(name),
            architecture: model.config.architecture.clone(),
            parameters: gguf
                .tensors()
                .map(|t| t.dims.iter().product::<usize>() as u64)
                .sum(),
            context: options.context.unwrap_or(16_384).min(model.config.context),
            vocab: tokenizer.vocab_len(),
            file_bytes: gguf.file_len() as u64,
            weight_bytes: model.bytes() as u64,
            licence: text("general.license"),
            simd: simd.name(),
            threads,
        };
        // The file is not read after this point, so it may be moved or deleted.
        drop(gguf);
        let words = Arc::clone(&tokenizer);
        let layout: Arc<Layout> = Arc::new(move |messages| Ok(template.render(messages, &words)));
        let parts = worker::Parts {
            brain: Own::new(model, pool),
            simd,
            tokenizer: Arc::clone(&tokenizer),
            layout: Arc::clone(&layout),
            context: info.context,
            together: options.together.max(1),
            cache_bytes: options.cache_bytes,
        };
        Self::run(info, tokenizer, layout, move |requests| {
            worker::run(parts, requests);
        })
    }

    /// Starts the worker thread.
    pub(crate) fn run(
        info: ModelInfo,
        tokenizer: Arc<Tokenizer>,
        layout: Arc<Layout>,
        work: impl FnOnce(&Receiver<Request>) + Send + 'static,
    ) -> Result<Self, Error> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("kd-local".into())
            .spawn(move || work(&receiver))
            .map_err(|e| Error::Worker {
                what: format!("no thread for the model: {e}"),
            })?;
        Ok(Self(Arc::new(Handle {
            info,
            vocab: Arc::new(Vocab::new(Arc::clone(&tokenizer))),
            tokenizer,
            layout,
            sender: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
        })))
    }

    /// Describes the model.
    pub fn info(&self) -> &ModelInfo {
        &self.0.info
    }

    /// Queues a job and returns at once. `sink` is called on the engine's thread and must not block.
    ///
    /// Every job receives exactly one `Done` or `Failed`, as its last piece.
    pub fn submit(&self, job: Job, sink: impl FnMut(Piece) + Send + 'static) -> Ticket {
        let cancelled = Arc::new(AtomicBool::new(false));
        let mut request = Request {
            job,
            constraint: None,
            sink: Box::new(sink),
            cancelled: Arc::clone(&cancelled),
        };
        let ticket = Ticket { cancelled };
        let Some(sender) = self
            .0
            .sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
        else {
            fail(
                &mut request,
                Error::Worker {
                    what: "the engine has ended".into(),
                },
            );
            return ticket;
        };
        if request.job.schema.is_none() {
            send(&sender, request);
            return ticket;
        }
        // Compiling a schema takes milliseconds, and some hundred the first time; a separate thread spares both the
        // caller and the running answers the wait.
        let (vocab, slot) = (
            Arc::clone(&self.0.vocab),
            Arc::new(Mutex::new(Some(request))),
        );
        let taken = Arc::clone(&slot);
        let spawned = std::thread::Builder::new()
            .name("kd-local-schema".into())
            .spawn(move || {
                let Some(mut request) = taken.lock().unwrap_or_else(PoisonError::into_inner).take()
                else {
                    return;
                };
                match constraint(&vocab, &request.job) {
                    Ok(constraint) => {
                        request.constraint = constraint;
                        send(&sender, request);
                    }
                    Err(error) => fail(&mut request, error),
                }
            });
        if let Err(error) = spawned
            && let Some(mut request) = slot.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            fail(
                &mut request,
                Error::Worker {
                    what: format!("no thread for the schema: {error}"),
                },
            );
        }
        ticket
    }

    /// Counts the tokens of the prompt that these messages make.
    pub fn count_tokens(&self, messages: &[ChatMessage]) -> usize {
        (self.0.layout)(messages).map_or(0, |prompt| prompt.len())
    }

    /// Returns the vocabulary.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.0.tokenizer
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Engine").field(&self.0.info).finish()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // A sink may hold the last handle, and the worker cannot join itself.
        if let Some(thread) = thread.filter(|t| t.thread().id() != std::thread::current().id()) {
            // The worker catches every panic of a step, so there is no result to check.
            let _ = thread.join();
        }
    }
}

impl Ticket {
    /// Returns whether the job has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

fn constraint(vocab: &Vocab, job: &Job) -> Result<Option<Constraint>, Error> {
    let Some(schema) = &job.schema else {
        return Ok(None);
    };
    let mut constraint = Constraint::new(vocab, schema)?;
    if let Some(watch) = &job.watch
        && !constraint.watch(&watch.labels)
    {
        let what = format!(
            "it has no enum that holds the watched labels {:?}",
            watch.labels
        );
        return Err(Error::Schema { what });
    }
    Ok(Some(constraint))
}

fn send(sender: &Sender<Request>, request: Request) {
    if let Err(refused) = sender.send(request) {
        fail(
            &mut { refused.0 },
            Error::Worker {
                what: "the engine's thread has ended".into(),
            },
        );
    }
}

fn fail(request: &mut Request, error: Error) {
    member::speak(&mut request.sink, Piece::Failed(error));
}

/// Returns the number of compute threads to use.
pub(crate) fn threads(options: &Options) -> usize {
    let wanted = || {
        let text = std::env::var("KD_THREADS").ok()?;
        text.trim().parse().ok().filter(|n| *n > 0)
    };
    options
        .threads
        .or_else(wanted)
        .unwrap_or_else(|| cores().min(8))
        .clamp(1, 64)
}

#[cfg(test)]
mod tests;
