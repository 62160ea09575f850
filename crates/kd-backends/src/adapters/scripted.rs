//! A backend that plays a script: for tests, demos and fault injection. It costs nothing and needs nothing.
//!
//! In a configuration: `"backend": "scripted"`, and `model` is a builtin (`echo`, `hang`, `flood`, `overloaded`) or the
//! path of a JSON file such as
//!
//! ```json
//! {"runs": [[{"text": "half an"}, {"fail": {"kind": "decode", "message": "cut"}}],
//!           [{"thinking": "hm"}, {"sleep_ms": 50}, {"text": "A whole answer."}, {"finish": {"usage": {"input_tokens": 9, "output_tokens": 4}}}]]}
//! ```
//!
//! Each call plays the next run; the last run serves all calls that follow.

use crate::Backend;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::{Delta, Failure, FailureKind, Finish, Prompt, Request, Usage};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The models that need no file.
pub const BUILTINS: [&str; 4] = ["echo", "hang", "flood", "overloaded"];

/// Size of one piece of [`Act::Flood`], in bytes.
const FLOOD_PIECE: usize = 16 * 1024;

/// The actions of each call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// One list of acts per call; empty means an echo of the question.
    pub runs: Vec<Vec<Act>>,
}

/// One step of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// A piece of the answer.
    Text(String),
    /// A piece of thinking.
    Thinking(String),
    /// A tool was used.
    Tool {
        /// Its name.
        name: String,
        /// Its target.
        detail: String,
    },
    /// A notice for the user.
    Notice(String),
    /// The question repeated, word by word.
    Echo,
    /// Emits the given number of bytes of text, in pieces of 16 KiB.
    Flood(usize),
    /// Waits for this number of milliseconds.
    SleepMs(u64),
    /// Hangs forever.
    Hang,
    /// Fails.
    Fail(Failure),
    /// Ends the stream without [`Delta::Finished`].
    Cut,
    /// Finishes the answer. A run without an ending finishes this way too.
    Finish(Ending),
}

/// The end of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ending {
    /// Whether the token limit cut the answer off.
    pub length: bool,
    /// The whole text, if it differs from the pieces.
    pub text: Option<String>,
    /// Its usage.
    pub usage: Option<Usage>,
    /// The probability of each label.
    pub choices: Vec<(String, f64)>,
}

impl Act {
    /// Builds a piece of the answer.
    pub fn text(text: &str) -> Self {
        Act::Text(text.to_owned())
    }

    /// Builds a failure.
    pub fn fail(kind: FailureKind, message: &str) -> Self {
        Act::Fail(Failure::new(kind, message))
    }

    /// Builds a plain ending.
    pub fn finish() -> Self {
        Act::Finish(Ending::default())
    }
}

impl Script {
    /// Returns the script of a builtin name, if it exists.
    pub fn builtin(name: &str) -> Option<Self> {
        let acts = match name {
            "echo" => vec![Act::Echo],
            "hang" => vec![Act::text("…"), Act::Hang],
            "flood" => vec![Act::Flood(10 << 20)],
            "overloaded" => vec![Act::fail(
                FailureKind::Overloaded,
                "the scripted service is always busy",
            )],
            _ => return None,
        };
        Some(Self { runs: vec![acts] })
    }

    /// Loads a built-in script by its name, or the script at a path if no built-in one has this name.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a script.
    pub fn load(model: &str) -> Result<Self, Failure> {
        if let Some(script) = Self::builtin(model) {
            return Ok(script);
        }
        let path = Path::new(model);
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::new(
                FailureKind::Missing,
                format!("cannot read the script {}: {error}", path.display()),
            )
            .advise(format!(
                "`model` of a scripted member is a path or one of {}",
                BUILTINS.join(", ")
            ))
        })?;
        serde_json::from_str(&text).map_err(|error| {
            Failure::new(FailureKind::Invalid, format!("{} is not a script: {error}", path.display()))
                .advise("a script is {\"runs\": [[{\"text\": \"…\"}, {\"sleep_ms\": 5}, {\"finish\": {}}]]}")
        })
    }
}

/// Plays a script.
pub struct Scripted {
    script: Arc<Script>,
    calls: AtomicUsize,
}

impl Scripted {
    /// Creates a backend that plays this script from its start.
    pub fn new(script: Script) -> Self {
        Self {
            script: Arc::new(script),
            calls: AtomicUsize::new(0),
        }
    }
}

impl Backend for Scripted {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let last = self.script.runs.len().saturating_sub(1);
        let play = Play {
            script: Arc::clone(&self.script),
            run: call.min(last),
            played: 0,
            ready: VecDeque::new(),
            prompt: request.prompt,
            opened: false,
            over: false,
        };
        stream::unfold(play, |mut play| async move {
            play.next().await.map(|item| (item, play))
        })
        .boxed()
    }
}

/// A run being played.
struct Play {
    script: Arc<Script>,
    /// The run, and how many of its acts were played.
    run: usize,
    played: usize,
    ready: VecDeque<Result<Delta, Failure>>,
    prompt: Prompt,
    opened: bool,
    over: bool,
}

impl Play {
    async fn next(&mut self) -> Option<Result<Delta, Failure>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if self.over {
                return None;
            }
            match self.next_act() {
                Act::Hang => std::future::pending().await,
                Act::SleepMs(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                Act::Cut => self.over = true,
                act => self.act(act),
            }
        }
    }

    fn next_act(&mut self) -> Act {
        let at = self.played;
        self.played += 1;
        match self.script.runs.get(self.run) {
            Some(run) => run.get(at).cloned().unwrap_or_else(Act::finish),
            None if at == 0 => Act::Echo,
            None => Act::finish(),
        }
    }

    fn act(&mut self, act: Act) {
        // The start is reported with the first words, so that a script that hangs or fails at once gives no sign of
        // life.
        if !self.opened && !matches!(act, Act::Fail(_)) {
            self.opened = true;
            let model = Some("scripted".to_owned());
            self.ready.push_back(Ok(Delta::Started {
                model,
                version: None,
                session: None,
            }));
        }
        let delta = match act {
            Act::Text(text) => Delta::Text { text },
            Act::Thinking(text) => Delta::Thinking { text },
            Act::Tool { name, detail } => Delta::Tool { name, detail },
            Act::Notice(text) => Delta::Notice { text },
            Act::Echo => {
                return self
                    .ready
                    .extend(echo(&self.prompt).map(|text| Ok(Delta::Text { text })));
            }
            Act::Flood(bytes) => {
                let piece =
                    "All work and no play makes a dull council. ".repeat(FLOOD_PIECE / 43 + 1);
                let mut left = bytes;
                while left > 0 {
                    let part = &piece[..left.min(FLOOD_PIECE)];
                    self.ready.push_back(Ok(Delta::Text {
                        text: part.to_owned(),
                    }));
                    left -= part.len();
                }
                return;
            }
            Act::Fail(failure) => {
                self.over = true;
                self.ready.push_back(Err(failure));
                return;
            }
            Act::Finish(ending) => {
                self.over = true;
                Delta::Finished {
                    finish: if ending.length {
                        Finish::Length
                    } else {
                        Finish::Stop
                    },
                    text: ending.text,
                    usage: ending.usage,
                    choices: ending.choices,
                }
            }
            // Acts that wait or end are played by `next`.
            Act::SleepMs(_) | Act::Hang | Act::Cut => return,
        };
        self.ready.push_back(Ok(delta));
    }
}

/// Iterates over the words of the prompt's last paragraph.
fn echo(prompt: &Prompt) -> impl Iterator<Item = String> {
    let said = if prompt.history.trim().is_empty() {
        prompt.turn.as_str()
    } else {
        &prompt.history
    };
    let last = said.trim().rsplit("\n\n").next().unwrap_or_default();
    let words: Vec<String> = last
        .split_inclusive(char::is_whitespace)
        .map(str::to_owned)
        .collect();
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{request, run};

    #[tokio::test]
    async fn runs_follow_one_another_and_the_last_stays() {
        let json = r#"{"runs": [[{"text":"a"},{"fail":{"kind":"overloaded","message":"no"}}], [{"thinking":"hm"},{"text":"b"}]]}"#;
        let backend = Scripted::new(serde_json::from_str(json).unwrap());
        let (text, end) = run(&backend, request("q")).await;
        assert_eq!(
            (text.as_str(), end.unwrap_err().kind),
            ("a", FailureKind::Overloaded)
        );
        for _ in 0..2 {
            let (text, end) = run(&backend, request("q")).await;
            assert_eq!(text, "b");
            end.unwrap();
        }
    }

    #[tokio::test]
    async fn builtins_play() {
        let (text, end) = run(
            &Scripted::new(Script::builtin("echo").unwrap()),
            request("who rules here?"),
        )
        .await;
        assert_eq!(text, "who rules here?");
        end.unwrap();
        let (text, end) = run(
            &Scripted::new(Script::builtin("flood").unwrap()),
            request("q"),
        )
        .await;
        assert_eq!(text.len(), 10 << 20);
        end.unwrap();
        for name in BUILTINS {
            assert!(Script::builtin(name).is_some(), "{name}");
        }
    }

    #[tokio::test]
    async fn a_cut_ends_with_neither() {
        let backend = Scripted::new(Script {
            runs: vec![vec![Act::text("a"), Act::Cut]],
        });
        let deltas: Vec<_> = backend.ask(request("q")).collect().await;
        assert_eq!(deltas.len(), 2, "started and text");
        assert_eq!(deltas[1], Ok(Delta::Text { text: "a".into() }));
    }

    #[test]
    fn a_missing_or_broken_file_says_so() {
        assert_eq!(
            Script::load("/nowhere/x.json").unwrap_err().kind,
            FailureKind::Missing
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "{\"runs\": [[{\"tixt\": 1}]]}").unwrap();
        let failure = Script::load(file.path().to_str().unwrap()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Invalid);
        assert!(failure.message.contains("tixt"), "{failure}");
    }
}
