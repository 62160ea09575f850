//! Lets a member at a service read the user's folder: offers it tools, makes its calls, and asks again with the results.
//!
//! Each round is one request, paid, limited and retried like any other. Users see calls as they see those of agent
//! programs; results are in no file and no log. In the last round no tool may be called, so that the member answers: after
//! [`ROUNDS_MAX`] rounds, when the results are long, or when the limits of the run leave one request. A request that already
//! has tools, and one whose member may not read, passes unchanged.

use crate::Backend;
use crate::attachments;
use crate::folder::{Bounds, FolderReader, Ran};
use crate::guard::Retry;
use crate::keys::Key;
use crate::spending::{Spending, Worst};
use crate::transport::refused::is_too_long;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::prompt::folder::{self, BadCall, FolderCall};
use kd_core::request::{Said, ToolCall, ToolChoice, ToolTalk};
use kd_core::size::size;
use kd_core::spending::{ANSWER_TOKENS_MIN, Price};
use kd_core::usage::Certainty;
use kd_core::{Delta, Failure, FailureKind, Request, Usage};
use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// Maximum rounds in which a member may call tools.
pub const ROUNDS_MAX: u32 = 8;
/// Maximum calls of a round that are made.
const CALLS_MAX: usize = 8;
/// Maximum calls of a round that are answered at all.
const CALLS_HEARD_MAX: usize = 64;
/// Maximum bytes of one result.
const RESULT_BYTES_MAX: usize = 24 << 10;
/// Maximum bytes of all results of a turn.
const TURN_BYTES_MAX: usize = 128 << 10;
/// Maximum bytes of results that are sent again, if the conversation was too long for the model.
const KEPT_BYTES_MAX: usize = 16 << 10;
/// Bytes of a request beside its texts: the names of fields, and the calls of earlier rounds.
const REQUEST_BYTES: u64 = 2 << 10;
/// Time for one call.
const CALL_TIME: Duration = Duration::from_secs(10);
/// Time for all calls of a round.
const READING_TIME: Duration = Duration::from_secs(25);
/// Time for the calls of a round, if the disk does not answer.
const ROUND_TIME: Duration = Duration::from_secs(30);
/// Maximum characters of a tool's name that services accept.
const NAME_CHARS_MAX: usize = 64;
/// Results that a limit takes back.
const LEFT_OUT: &str = "(left out: the limits of this run leave no room for it)";

/// Returns the keys of services that are known now.
pub(crate) type Keys = dyn Fn() -> Vec<Key> + Send + Sync;

/// What reading needs.
#[derive(Clone)]
pub(crate) struct Folder {
    /// Makes the calls.
    pub(crate) reader: Arc<dyn FolderReader>,
    /// The folder; `None` is the current one.
    pub(crate) path: Option<PathBuf>,
    /// The keys that no result may contain.
    pub(crate) keys: Arc<Keys>,
}

/// Offers tools, and asks again with their results.
pub(crate) struct Reads {
    inner: Arc<dyn Backend>,
    folder: Folder,
    spending: Spending,
    price: Option<Price>,
}

impl Reads {
    /// Wraps this backend, whose requests are charged to this account at this price.
    pub(crate) fn new(
        inner: Arc<dyn Backend>,
        folder: Folder,
        spending: Spending,
        price: Option<Price>,
    ) -> Self {
        Self {
            inner,
            folder,
            spending,
            price,
        }
    }
}

impl Backend for Reads {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        if !request.reads || request.tools.is_some() {
            return self.inner.ask(request);
        }
        let request = Request {
            tools: Some(Box::new(ToolTalk {
                tools: folder::specs(),
                optional: true,
                ..ToolTalk::default()
            })),
            ..request
        };
        let rounds = Rounds {
            inner: Arc::clone(&self.inner),
            folder: self.folder.clone(),
            spending: self.spending.clone(),
            answer_costs: Worst {
                bytes: bytes_of(&request),
                answer: Some(ANSWER_TOKENS_MIN),
                price: self.price,
            },
            request,
            number: 0,
            is_last: false,
            is_short: false,
            is_without_results: false,
            is_plain: false,
            answer: None,
            text: String::new(),
            has_spoken: false,
            calls: Vec::new(),
            bytes: 0,
            spent: None,
            ready: VecDeque::new(),
        };
        stream::unfold(rounds, |mut rounds| async move {
            rounds.next().await.map(|item| (item, rounds))
        })
        .boxed()
    }
}

/// State of the stream.
struct Rounds {
    inner: Arc<dyn Backend>,
    folder: Folder,
    spending: Spending,
    /// What an answer costs without results; kept while tools may be called.
    answer_costs: Worst,
    /// The next request.
    request: Request,
    /// The number of this round, from 1.
    number: u32,
    /// Whether no tool may be called in this round.
    is_last: bool,
    /// Whether the limits leave room for an answer only.
    is_short: bool,
    /// Whether results were taken back.
    is_without_results: bool,
    /// Whether the request offers no tools any more, since one with them failed.
    is_plain: bool,
    answer: Option<BoxStream<'static, Result<Delta, Failure>>>,
    /// The text of this round.
    text: String,
    /// Whether an earlier round had text.
    has_spoken: bool,
    /// The calls of this round. Made once it is complete.
    calls: Vec<ToolCall>,
    /// Bytes of all results.
    bytes: usize,
    /// Usage of the rounds so far.
    spent: Option<Usage>,
    /// Items to send next.
    ready: VecDeque<Result<Delta, Failure>>,
}

impl Rounds {
    async fn next(&mut self) -> Option<Result<Delta, Failure>> {
        if self.number == 0 {
            self.ask();
        }
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            match self.answer.as_mut()?.next().await {
                Some(Ok(delta)) => self.hear(delta).await,
                Some(Err(failure)) => self.failed(failure),
                None => self.answer = None,
            }
        }
    }

    /// Asks the next round.
    fn ask(&mut self) {
        self.spending.use_kept();
        let is_over = self.number >= ROUNDS_MAX || self.bytes >= TURN_BYTES_MAX || self.is_short;
        self.is_last = is_over || !self.spending.keep_for_later(self.answer_costs);
        match &mut self.request.tools {
            tools if self.is_last && self.number == 0 => *tools = None,
            Some(talk) => {
                if self.is_last {
                    talk.choice = ToolChoice::None;
                }
                // The first round may be the only one: nothing is marked for it.
                talk.repeats = Some(talk.said.len()).filter(|steps| *steps > 0);
            }
            None => {}
        }
        self.number += 1;
        self.send();
    }

    /// Asks for the answer, without tools.
    fn ask_plainly(&mut self) {
        self.spending.use_kept();
        self.request.tools = None;
        self.is_plain = true;
        self.is_last = true;
        self.calls.clear();
        self.send();
    }

    /// Sends the request of a round, whose text comes below that of earlier ones.
    fn send(&mut self) {
        self.has_spoken |= !self.text.trim().is_empty();
        self.text.clear();
        self.answer = Some(self.inner.ask(self.request.clone()));
    }

    /// Adds the first lines of what was read, at most this many bytes, to the prompt, for a request without tools.
    fn quote_results(&mut self, bytes: usize) {
        let said = self.request.tools.as_ref().map(|talk| &talk.said);
        let mut quoted = String::new();
        let results = said.into_iter().flatten().filter_map(|step| match step {
            Said::Tool { name, result, .. } => Some((name, result)),
            Said::Agent { .. } | Said::User { .. } | Said::Picture { .. } => None,
        });
        let lines = results.flat_map(|(name, result)| {
            let lines = result.lines().map(|line| format!("> {line}\n"));
            std::iter::once(format!("Result of {name}:\n")).chain(lines)
        });
        for line in lines {
            if quoted.len() + line.len() > bytes {
                quoted.push_str("(The rest is left out.)\n");
                break;
            }
            quoted.push_str(&line);
        }
        let turn = &mut self.request.prompt.turn;
        *turn = format!("You have read this with tools:\n{quoted}\n{turn}");
    }

    async fn hear(&mut self, delta: Delta) {
        match delta {
            Delta::Call { call } => {
                if self.calls.len() < CALLS_HEARD_MAX {
                    self.calls.push(call);
                }
                return;
            }
            Delta::Started { .. } if self.number > 1 => return,
            Delta::Text { text } if text.is_empty() => return,
            Delta::Text { text } => {
                if self.text.is_empty() && self.has_spoken {
                    let text = "\n\n".to_owned();
                    self.ready.push_back(Ok(Delta::Text { text }));
                }
                self.text.push_str(&text);
                self.ready.push_back(Ok(Delta::Text { text }));
                return;
            }
            Delta::Retrying { .. } => {
                // Everything so far is void, also for readers.
                self.calls.clear();
                self.text.clear();
                self.has_spoken = false;
            }
            Delta::Finished {
                finish,
                text,
                usage,
                choices,
            } => {
                self.answer = None;
                if let Some(text) = &text {
                    self.text.clone_from(text);
                }
                self.add(usage);
                if !self.calls.is_empty() && !self.is_last {
                    self.run().await;
                    return self.ask();
                }
                if !self.calls.is_empty() && self.text.trim().is_empty() {
                    let failure = unanswered().after(self.spent.as_ref());
                    self.ready.push_back(Err(failure));
                    return;
                }
                // A form is read from the answer alone, without the text between calls.
                let is_form = self.request.schema.is_some() && self.number > 1;
                self.ready.push_back(Ok(Delta::Finished {
                    finish,
                    text: text.or_else(|| is_form.then(|| std::mem::take(&mut self.text))),
                    usage: self.spent.take(),
                    choices,
                }));
                return;
            }
            Delta::Started { .. }
            | Delta::Thinking { .. }
            | Delta::Tool { .. }
            | Delta::Notice { .. } => {}
        }
        self.ready.push_back(Ok(delta));
    }

    /// Adds the usage of a round.
    fn add(&mut self, usage: Option<Usage>) {
        if self.number == 1 {
            self.spent = usage;
            return;
        }
        let unknown = Usage {
            certainty: Certainty::AtLeast,
            ..Usage::default()
        };
        let mut sum = self.spent.unwrap_or(unknown);
        sum.add(&usage.unwrap_or(unknown));
        sum.repeats += 1;
        self.spent = Some(sum);
    }

    /// Ends the turn; but if there is room for an answer, asks for it: without the results if these do not fit, without tools
    /// if their request did not fit or was refused.
    fn failed(&mut self, failure: Failure) {
        self.answer = None;
        let is_limit = failure.kind == FailureKind::Limit;
        if !self.is_last && (is_limit || Retry::gave_up_at_limit(&failure)) {
            self.is_short = true;
            if self.number == 1 {
                return self.ask_plainly();
            }
            if !is_limit {
                return self.ask();
            }
        }
        let said = self.request.tools.as_mut().map(|talk| &mut talk.said);
        if let (true, false, true, Some(said)) =
            (is_limit, self.is_without_results, self.number > 1, said)
        {
            for step in said {
                if let Said::Tool { result, .. } = step {
                    LEFT_OUT.clone_into(result);
                }
            }
            self.is_short = true;
            self.is_without_results = true;
            self.calls.clear();
            return self.ask();
        }
        if failure.kind == FailureKind::Invalid && self.number > 1 && !self.is_plain {
            self.quote_results(match is_too_long(&failure.message) {
                true => KEPT_BYTES_MAX,
                false => TURN_BYTES_MAX,
            });
            let (seat, why) = (&self.request.seat, &failure.message);
            let text = format!(
                "{seat} answers without further reading: its service refused to go on ({why})"
            );
            self.ready.push_back(Ok(Delta::Notice { text }));
            return self.ask_plainly();
        }
        let failure = match (&failure.used, &self.spent) {
            (None, Some(spent)) => failure.after(Some(spent)),
            _ => failure,
        };
        self.ready.push_back(Err(failure));
    }

    /// Makes the calls of a round, and adds them to the conversation.
    async fn run(&mut self) {
        let calls = sendable(std::mem::take(&mut self.calls), self.number);
        let (folder, made) = (self.folder.clone(), calls.clone());
        let left = TURN_BYTES_MAX.saturating_sub(self.bytes);
        // Stops the calls when the time is over, and when the stream is dropped.
        let stop = Stop::default();
        let flag = Arc::clone(&stop.0);
        let (done, mut heard) = tokio::sync::mpsc::unbounded_channel();
        drop(tokio::task::spawn_blocking(move || {
            run_all(&folder, &made, left, &flag, &done);
        }));
        let until = tokio::time::Instant::now() + ROUND_TIME;
        let mut results = Vec::with_capacity(calls.len());
        while results.len() < calls.len() {
            match tokio::time::timeout_at(until, heard.recv()).await {
                Ok(Some(ran)) => results.push(ran),
                Ok(None) | Err(_) => {
                    let late = || Ran::failed("the files could not be read in time");
                    results.resize_with(calls.len(), late);
                }
            }
        }
        drop(stop);
        let Some(talk) = &mut self.request.tools else {
            return;
        };
        let text = match self.text.trim() {
            "" => String::new(),
            _ => self.text.clone(),
        };
        talk.said.push(Said::Agent {
            text,
            calls: calls.iter().map(|call| call.call.clone()).collect(),
        });
        for (Sendable { call, parsed }, ran) in calls.into_iter().zip(results) {
            let about = parsed.map_or_else(|_| "a call".to_owned(), |call| call.to_string());
            let detail = match ran.failed {
                true => format!("{about}: {}", ran.text),
                false => format!("{about} ({})", size(ran.text.len() as u64)),
            };
            self.ready.push_back(Ok(Delta::Tool {
                name: call.name.clone(),
                detail,
            }));
            self.bytes += ran.text.len();
            talk.said.push(Said::Tool {
                id: call.id,
                name: call.name,
                result: ran.text,
                failed: ran.failed,
            });
        }
    }
}

/// Returns about how many bytes a request without results has on the wire.
fn bytes_of(request: &Request) -> u64 {
    let tools = request.tools.as_ref().map(|talk| &talk.tools);
    let parts = serde_json::to_string(&(&request.prompt, tools, &request.schema));
    let texts = parts.map_or(0, |text| text.len() as u64);
    attachments::tokens_max(request, 0) + texts + REQUEST_BYTES
}

/// Tells the thread that reads to stop, once it is dropped.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A call as it is sent back, and what the model meant.
#[derive(Clone)]
struct Sendable {
    call: ToolCall,
    parsed: Result<FolderCall, BadCall>,
}

/// Makes calls that every service takes back: with ids of their own, names of letters, and objects as arguments.
fn sendable(calls: Vec<ToolCall>, round: u32) -> Vec<Sendable> {
    let mut ids = BTreeSet::new();
    let mut out = Vec::with_capacity(calls.len());
    for (place, mut call) in calls.into_iter().enumerate() {
        let parsed = FolderCall::parse(&call);
        if call.id.is_empty() || !ids.insert(call.id.clone()) {
            call.id = format!("call_{round}_{place}");
            ids.insert(call.id.clone());
        }
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let length = call.name.len();
        if length == 0 || length > NAME_CHARS_MAX || !call.name.chars().all(is_letter) {
            call.name = "unknown".to_owned();
        }
        if !call.arguments.is_object() {
            call.arguments = serde_json::json!({});
        }
        out.push(Sendable { call, parsed });
    }
    out
}

/// Makes calls, in order. `left` is the maximum length of all results. Sends what each is about, and its result, as soon as
/// it is there. Ends early at `stop`.
fn run_all(
    folder: &Folder,
    calls: &[Sendable],
    mut left: usize,
    stop: &AtomicBool,
    done: &UnboundedSender<Ran>,
) {
    let until_round = Instant::now() + READING_TIME;
    let here = folder.path.clone().or_else(|| std::env::current_dir().ok());
    let keys = (folder.keys)();
    let holds_key = |text: &str| keys.iter().any(|key| key.is_in(text));
    for (place, call) in calls.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let ran = match (&call.parsed, &here) {
            (Err(why), _) => Ran::failed(why.to_string()),
            (_, None) => Ran::failed("there is no folder"),
            (Ok(_), _) if place >= CALLS_MAX => Ran::failed(format!(
                "not read: at most {CALLS_MAX} calls are made at once"
            )),
            (Ok(_), _) if left == 0 => {
                Ran::failed("not read: the results of this turn are too long already")
            }
            (Ok(call), Some(here)) => {
                let bounds = Bounds {
                    bytes: left.min(RESULT_BYTES_MAX),
                    until: until_round.min(Instant::now() + CALL_TIME),
                    stop,
                    holds_key: &holds_key,
                };
                folder.reader.run(here, call, &bounds)
            }
        };
        left = left.saturating_sub(ran.text.len());
        if done.send(ran).is_err() {
            return;
        }
    }
}

/// The failure of a member that calls tools when it has to answer.
fn unanswered() -> Failure {
    Failure::new(
        FailureKind::Decode,
        "the model called tools again in place of an answer",
    )
    .advise("ask a narrower question, attach the file with @PATH, or ask without `--tools read`")
}
