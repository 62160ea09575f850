//! A loaded model that answers several jobs at once.
//!
//! A file comes in, then jobs; pieces of their answers go out through each job's sink. One thread runs the model for
//! all of them (`worker`), with helpers from the pool. A job's answer does not depend on which other jobs run, unless
//! llama.cpp evaluates the tokens (feature `llama-cpp`).

pub(crate) mod brain;
mod cache;
mod member;
mod text;
pub(crate) mod worker;

use std::path::{Path, PathBuf};
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

/// A model in memory. Cheap to clone; when the last clone goes, its thread ends and the memory is free again.
#[derive(Clone)]
pub struct Engine(Arc<Handle>);

/// How a model is loaded and run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that compute. Without: `KD_THREADS`, else the physical cores, at most 8.
    pub threads: Option<usize>,
    /// Tokens that prompt and answer may have together. Without: what the model was trained on, at most 16,384.
    pub context: Option<usize>,
    /// Bytes of evaluated beginnings that are kept for later jobs.
    pub cache_bytes: usize,
    /// Jobs that are decoded together; more wait for their turn.
    pub together: usize,
    /// Uses only the plain code, as `KD_SIMD=off` does for the whole process.
    pub plain: bool,
    /// What evaluates the tokens. Without: `KD_ENGINE` (`built-in`, `llama-cpp`), else our own model, and llama.cpp for
    /// files that ours cannot run, where the feature `llama-cpp` is built in.
    pub carrier: Option<Carrier>,
}

/// What evaluates the tokens of an [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Our own code.
    BuiltIn,
    /// llama.cpp; needs the feature `llama-cpp`.
    LlamaCpp,
}

/// What is known about a loaded model.
#[derive(Clone, Debug)]
pub struct ModelInfo {
    /// The name that the file gives, else the file's name.
    pub name: String,
    /// `llama` or `qwen2`; under llama.cpp whatever it knows.
    pub architecture: String,
    /// Weights in the file.
    pub parameters: u64,
    /// Tokens that prompt and answer may have together.
    pub context: usize,
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Length of the file.
    pub file_bytes: u64,
    /// Bytes that the packed weights take in memory.
    pub weight_bytes: u64,
    /// The licence that the file states, such as `apache-2.0`.
    pub licence: Option<String>,
    /// Which instructions compute: `scalar`, `avx2`, `avx512-vnni`, `neon`; or `llama.cpp`.
    pub simd: &'static str,
    /// Threads that compute while the machine is free.
    pub threads: usize,
}

/// One question.
#[derive(Clone, Debug)]
pub struct Job {
    /// The conversation so far; the answer is the assistant's next message.
    pub messages: Vec<ChatMessage>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Tokens after which the answer ends at the latest.
    pub max_tokens: usize,
    /// Strings that end the answer; they are not part of it.
    pub stop: Vec<String>,
    /// A JSON schema that the answer shall follow.
    pub schema: Option<Json>,
    /// A choice whose probabilities are to be told; without a schema nothing is.
    pub watch: Option<Watch>,
}

/// A choice that the schema lets the answer make (an enum of strings), for [`Piece::Choice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The labels, as the schema spells them, without quotes.
    pub labels: Vec<String>,
}

/// What a sink hears, in this order: `Started`, any number of `Text` and `Choice`, and `Done`; or `Failed` at any time.
#[derive(Clone, Debug)]
pub enum Piece {
    /// The prompt has been read.
    Started {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Those of them that were already evaluated for another job.
        shared_tokens: usize,
    },
    /// The next characters.
    Text(String),
    /// Each label of the job's [`Watch`] with its probability, before penalties and temperature; the sum is 1.
    Choice(Vec<(String, f64)>),
    /// The answer is complete.
    Done {
        /// Why it ended.
        reason: StopReason,
        /// What it took.
        usage: Usage,
    },
    /// There will be no (more) answer.
    Failed(Error),
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended it, or the schema is fulfilled.
    End,
    /// `max_tokens` or the context was used up.
    Length,
    /// A stop string was met.
    Stop,
}

/// What an answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those of them that were already evaluated for another job.
    pub shared_tokens: usize,
    /// Tokens of the answer.
    pub answer_tokens: usize,
    /// Those of them that the schema left no choice about.
    pub forced_tokens: usize,
}

/// Holds a job; dropping it cancels the job before its next token.
#[must_use = "dropping the ticket cancels the job"]
#[derive(Debug)]
pub struct Ticket {
    cancelled: Arc<AtomicBool>,
}

type Sink = Box<dyn FnMut(Piece) + Send>;

/// Lays messages out as the tokens of a prompt.
pub(crate) type Layout = dyn Fn(&[ChatMessage]) -> Result<Vec<u32>, Error> + Send + Sync;

/// A job on its way to the worker.
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
    /// Taken away to end the worker.
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
    /// Loads a GGUF file.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Gguf`], [`Error::Unsupported`] or [`Error::Tokenizer`] about the file,
    /// [`Error::Worker`] if the system gives no thread.
    pub fn load(path: &Path, options: Options) -> Result<Self, Error> {
        let name = path
            .file_stem()
            .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let carrier = match options.carrier {
            None => carrier_wanted()?,
            some => some,
        };
        if carrier == Some(Carrier::LlamaCpp) {
            return with_llama_cpp(path, name, &options);
        }
        let ours = Gguf::open(PathBuf::from(path))
            .and_then(|gguf| Self::start(gguf, name.clone(), options.clone()));
        match ours {
            Err(Error::Unsupported { .. } | Error::Tokenizer { .. })
                if carrier.is_none() && cfg!(feature = "llama-cpp") =>
            {
                with_llama_cpp(path, name, &options)
            }
            ours => ours,
        }
    }

    /// Loads a GGUF file that is already in memory. Only our own code runs it.
    ///
    /// # Errors
    /// As [`Engine::load`], without `Io`.
    pub fn from_bytes(bytes: Vec<u8>, options: Options) -> Result<Self, Error> {
        Self::start(
            Gguf::from_bytes(bytes)?,
            "a model in memory".into(),
            options,
        )
    }

    fn start(gguf: Gguf, name: String, options: Options) -> Result<Self, Error> {
        let simd = if options.plain {
            Simd::SCALAR
        } else {
            Simd::detect()
        };
        let threads = threads(&options);
        let pool = Pool::new(threads);
        // The vocabulary and the weights have nothing to do with each other, and each takes its time.
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
        // From here on nothing reads the file any more, so it may be moved or deleted.
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

    /// Starts the thread that answers.
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

    /// What is known about the model.
    pub fn info(&self) -> &ModelInfo {
        &self.0.info
    }

    /// Queues a job and returns at once. `sink` is called on the engine's thread and must not wait for anything.
    ///
    /// Every job hears `Done` or `Failed` as its last piece, once.
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
        // Understanding a schema takes milliseconds, the first time some hundred: neither the caller waits nor the
        // answers that are running.
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

    /// Tokens of the prompt that these messages make.
    pub fn count_tokens(&self, messages: &[ChatMessage]) -> usize {
        (self.0.layout)(messages).map_or(0, |prompt| prompt.len())
    }

    /// The vocabulary.
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
        // A sink may hold the last handle; the worker cannot wait for itself.
        if let Some(thread) = thread.filter(|t| t.thread().id() != std::thread::current().id()) {
            // The worker catches every panic of a step, so joining has nothing to tell.
            let _ = thread.join();
        }
    }
}

impl Ticket {
    /// Whether the job was told to end.
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

/// Threads that shall compute.
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

/// What `KD_ENGINE` asks for.
fn carrier_wanted() -> Result<Option<Carrier>, Error> {
    match std::env::var("KD_ENGINE").as_deref().map(str::trim) {
        Err(_) | Ok("" | "auto") => Ok(None),
        Ok("built-in") => Ok(Some(Carrier::BuiltIn)),
        Ok("llama-cpp") => Ok(Some(Carrier::LlamaCpp)),
        Ok(other) => Err(Error::Unsupported {
            what: format!("KD_ENGINE={other} (known: auto, built-in, llama-cpp)"),
        }),
    }
}

#[cfg(feature = "llama-cpp")]
fn with_llama_cpp(path: &Path, name: String, options: &Options) -> Result<Engine, Error> {
    crate::llama_cpp::load(path, name, options)
}

#[cfg(not(feature = "llama-cpp"))]
fn with_llama_cpp(_: &Path, _: String, _: &Options) -> Result<Engine, Error> {
    Err(Error::Unsupported {
        what: "llama.cpp, which is not built in".into(),
    })
}

#[cfg(test)]
mod tests;
