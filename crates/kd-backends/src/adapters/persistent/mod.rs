//! Persistent agents: a program is started once and answers many questions, each in a fresh session, since all context
//! comes from the thread. One file per protocol covers what we send and reply; the agent's output is decoded in
//! [`crate::dialects`].
//!
//! A program that cannot be kept running (too old, an unknown flag) falls back to its one-shot form, if it has one.
//! Dropping the stream tells the agent to stop, in its own protocol; a process that obeys and used no tool is kept.

mod acp;
mod auth;
mod claude;
mod codex;
mod driven;
mod modes;
mod pool;
mod talk;

pub(crate) use pool::Pool;

pub(super) use acp::ACP;
pub(super) use claude::CLAUDE;
pub(super) use codex::CODEX;
pub(crate) use talk::Link;
pub(super) use talk::{Question, Talk};

use super::agent_cli::{self, AgentCli, is_words};
use crate::Backend;
use crate::dialects::{self, Decoder, ExitSeen};
use crate::transport::lines::{Line, Lines};
use crate::transport::process::{Moment, Running, Spec};
use futures::stream::{self, BoxStream, StreamExt};

use kd_core::{Delta, Failure, FailureKind, Request};
use serde_json::Value;
use std::collections::VecDeque;

use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Part of the error of a service that rejects our cache marks: too many, or in an order it does not accept.
const MARK: &str = "cache_control";
/// Time limit for an agent to obey the protocol's stop message.
const OBEY: Duration = Duration::from_secs(1);
/// Time limit for an idle program to exit on its own after its stdin is closed.
const LEAVE: Duration = Duration::from_millis(400);

/// A member that is a persistent agent.
#[derive(Clone)]
pub(crate) struct PersistentAgent {
    agent: AgentCli,
    link: &'static Link,
    pool: Arc<Pool>,
    /// Whether the one-shot form is the fallback.
    once: bool,
}

impl PersistentAgent {
    /// Creates a member that uses this protocol; its processes are kept in the pool.
    pub(crate) fn new(agent: AgentCli, link: &'static Link, pool: Arc<Pool>, once: bool) -> Self {
        Self {
            agent,
            link,
            pool,
            once,
        }
    }

    /// Starts a process that waits for a question, unless one is waiting already. An error here occurs again, and is
    /// reported, when it is asked. Must be called inside a tokio runtime.
    pub(crate) fn prepare(&self, writable: bool) {
        let Ok(spec) = self.agent.kept(writable, None) else {
            return;
        };
        if self.pool.lacks(&spec)
            && let Ok(process) = Process::start(self.link, spec)
        {
            self.pool.put(process);
        }
    }

    /// Returns a process for this request, a kept one if possible.
    fn open(&self, request: &Request, kept: bool) -> Result<Box<Turn>, Failure> {
        let (spec, mut question) = self.agent.warm(request)?;
        question.marks = self.pool.marks();
        let found = kept.then(|| self.pool.take(&spec)).flatten();
        let reused = found.is_some();
        let process = match found {
            Some(process) => process,
            None => Process::start(self.link, spec)?,
        };
        let mut turn = Box::new(Turn {
            process: Some(process),
            pool: Arc::clone(&self.pool),
            ready: VecDeque::new(),
            length: 0,
            reused,
            tools: false,
            began: Moment::now(),
        });
        turn.write(|talk| talk.ask(question));
        Ok(turn)
    }
}

impl Backend for PersistentAgent {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let writable = request.writable;
        // Only ACP can name a server per session: otherwise it would belong to a process shared with other members.
        if request.server().is_some() && self.once && self.link.dialect != ACP.dialect {
            return self.agent.ask(request);
        }
        if self.once && self.pool.refuses(self.agent.key()) {
            return self.agent.ask(request);
        }
        let state = State::Asked(Box::new((self.clone(), request)));
        let agent = self.agent.clone();
        let deltas = stream::unfold(state, |state| async move {
            match state {
                State::Asked(asked) => {
                    let (warm, request) = *asked;
                    match warm.open(&request, true) {
                        Ok(turn) => go(turn, Some(Box::new((warm, request)))).await,
                        Err(failure) => Some((Err(failure), State::Done)),
                    }
                }
                State::Running(turn, again) => go(turn, again).await,
                State::Once(mut deltas) => {
                    let delta = deltas.next().await?;
                    Some((delta, State::Once(deltas)))
                }
                State::Done => None,
            }
        });
        deltas
            .map(move |delta| delta.map_err(|failure| agent.advised(failure, writable)))
            .boxed()
    }
}

/// The agent and the request for one more attempt.
type Again = Option<Box<(PersistentAgent, Request)>>;

/// State of a stream.
enum State {
    Asked(Box<(PersistentAgent, Request)>),
    Running(Box<Turn>, Again),
    Once(BoxStream<'static, Result<Delta, Failure>>),
    Done,
}

/// Returns the next delta of a turn. A kept process that fails before it was asked is replaced by a new one; a new one
/// that fails so, by the one-shot form.
async fn go(mut turn: Box<Turn>, again: Again) -> Option<(Result<Delta, Failure>, State)> {
    match turn.next().await {
        Step::Delta(delta) => Some((Ok(delta), State::Running(turn, again))),
        Step::End(Err(failure)) => {
            let Some((warm, request)) = again.map(|again| *again) else {
                return Some((Err(failure), State::Done));
            };
            if warm.pool.marks() && failure.message.contains(MARK) {
                // The service accepts only the program's own marks, or the marks are not in the order that it accepts.
                warm.pool.mark_no_more();
                drop(turn);
                return match warm.open(&request, true) {
                    Ok(turn) => Box::pin(go(turn, Some(Box::new((warm, request))))).await,
                    Err(failure) => Some((Err(failure), State::Done)),
                };
            }
            let closed = !turn.asked()
                && matches!(
                    failure.kind,
                    FailureKind::Crashed | FailureKind::Decode | FailureKind::Invalid
                );
            if closed && turn.reused {
                drop(turn);
                return match warm.open(&request, false) {
                    Ok(turn) => Box::pin(go(turn, Some(Box::new((warm, request))))).await,
                    Err(failure) => Some((Err(failure), State::Done)),
                };
            }
            if closed && warm.once {
                drop(turn);
                let mut deltas = warm.agent.ask(request);
                // Told once: it is the same for each question.
                if !warm.pool.refuse(warm.agent.key()) {
                    let delta = deltas.next().await?;
                    return Some((delta, State::Once(deltas)));
                }
                let needs = warm.agent.needs_to_be_kept();
                let text = format!(
                    "started for each question, because it could not be kept running: {failure}{needs}"
                );
                return Some((Ok(Delta::Notice { text }), State::Once(deltas)));
            }
            Some((Err(failure), State::Done))
        }
        Step::End(end) => Some((end, State::Done)),
    }
}

/// A program that serves many turns.
pub(super) struct Process {
    spec: Spec,
    running: Running,
    lines: Lines,
    decoder: Box<dyn Decoder>,
    talk: Box<dyn Talk>,
}

impl Process {
    fn start(link: &Link, spec: Spec) -> Result<Self, Failure> {
        let Some(dialect) = dialects::named(link.dialect) else {
            return Err(agent_cli::unspoken());
        };
        let running = agent_cli::started(spec.clone(), Running::converse)?;
        Ok(Self {
            spec,
            running,
            lines: Lines::default(),
            decoder: dialect.decoder(),
            talk: (link.talk)(),
        })
    }

    /// Sends the messages of the protocol.
    fn write(&mut self, words: impl FnOnce(&mut dyn Talk) -> Vec<Value>) {
        for message in words(self.talk.as_mut()) {
            let mut line = message.to_string().into_bytes();
            self.decoder.sent(&line);
            line.push(b'\n');
            self.running.say(line);
        }
    }

    /// Reads once; returns the deltas, or `None` at the end of the output.
    async fn read(&mut self) -> std::io::Result<Option<Vec<Delta>>> {
        let bytes = self.running.read().await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut lines = Vec::new();
        self.lines.push(bytes, |line| {
            lines.push(match line {
                Line::Whole(line) => Ok(line.to_vec()),
                Line::TooLong(length) => Err(length),
            });
        });
        let mut out = Vec::new();
        for line in lines {
            match line {
                Ok(line) => {
                    if !self.decoder.over() {
                        out.extend(self.decoder.line(&line));
                    }
                    if let Some(message) = dialects::message(&line) {
                        self.write(|talk| talk.hear(&message));
                    }
                }
                Err(length) => out.push(dialects::too_long(length)),
            }
        }
        if out.iter().any(is_words) && !self.decoder.over() {
            self.running.rest();
        }
        Ok(Some(out))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.write(|talk| talk.leave());
    }
}

/// The next item of a turn.
enum Step {
    Delta(Delta),
    End(Result<Delta, Failure>),
}

/// One question to one process.
struct Turn {
    /// `None` once the turn is over.
    process: Option<Process>,
    pool: Arc<Pool>,
    ready: VecDeque<Delta>,
    length: usize,
    reused: bool,
    tools: bool,
    began: Moment,
}

impl Turn {
    fn write(&mut self, words: impl FnOnce(&mut dyn Talk) -> Vec<Value>) {
        if let Some(process) = &mut self.process {
            process.write(words);
        }
    }

    fn asked(&self) -> bool {
        self.process
            .as_ref()
            .is_none_or(|process| process.talk.asked())
    }

    async fn next(&mut self) -> Step {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                self.tools |= matches!(delta, Delta::Tool { .. });
                return match agent_cli::bounded(&delta, &mut self.length) {
                    Ok(()) => Step::Delta(delta),
                    Err(failure) => Step::End(Err(failure)),
                };
            }
            let Some(process) = &mut self.process else {
                return Step::End(Err(Failure::new(
                    FailureKind::Crashed,
                    "the turn has already ended",
                )));
            };
            if let Some(failure) = process.talk.forbidden() {
                return Step::End(Err(failure));
            }
            if process.decoder.over() {
                let end = process.decoder.end(&ExitSeen::default());
                if end.is_ok() && !process.talk.asked() {
                    // It answered something other than the question.
                    return Step::End(Err(Failure::new(
                        FailureKind::Decode,
                        "the program could not be asked in a new session",
                    )));
                }
                self.keep();
                return Step::End(end);
            }
            let asked = process.talk.asked();
            // After the question the decoder continues, whatever happens to our side.
            if !asked && let Some(failure) = process.talk.broken() {
                return Step::End(Err(failure));
            }
            match process.read().await {
                Ok(Some(deltas)) => {
                    if !asked {
                        // Processes started before the question do not belong to a tool.
                        self.began = Moment::now();
                    }
                    self.ready.extend(deltas);
                    if self.ready.is_empty() && !process.decoder.over() {
                        // The input had nothing to show: emit a sign of life.
                        self.ready.push_back(agent_cli::alive());
                    }
                }
                Ok(None) => {
                    let exit = process.running.exit().await;
                    return Step::End(process.decoder.end(&exit));
                }
                Err(error) => return Step::End(Err(agent_cli::unreadable(&error))),
            }
        }
    }

    /// Keeps the process of a finished turn for the next one, unless a tool left something running or the protocol is
    /// out of step.
    fn keep(&mut self) {
        if !self.asked() {
            return;
        }
        if let Some(mut process) = self.process.take() {
            let clean = !self.tools || !process.running.left_behind(self.began);
            if clean && process.talk.fit() {
                self.pool.put(process);
            } else {
                // Dropping it closes its stdin.
                process.running.wait_for(agent_cli::PATIENCE);
            }
        }
    }
}

impl Drop for Turn {
    /// Tells the agent to stop, in its own protocol, if the turn has not ended; stops the process if it does not obey.
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        if process.decoder.over() || process.running.gone() {
            return;
        }
        let words = process.talk.stop();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if words.is_empty() {
            return;
        }
        process.write(|_| words);
        process.running.wait_for(LEAVE);
        let (pool, tools) = (Arc::downgrade(&self.pool), self.tools);
        runtime.spawn(async move {
            let obeyed = timeout(OBEY, async {
                let mut tools = tools;
                while !process.decoder.over() {
                    match process.read().await {
                        Ok(Some(deltas)) => {
                            tools |= deltas.iter().any(|d| matches!(d, Delta::Tool { .. }));
                        }
                        _ => return None,
                    }
                }
                Some(tools)
            })
            .await;
            process.running.wait_for(Duration::ZERO);
            let _ = process.decoder.end(&ExitSeen::default());
            // A tool's work may continue after the agent stopped: then stop all of it.
            if let (Ok(Some(false)), Some(pool), true) =
                (obeyed, pool.upgrade(), process.talk.fit())
            {
                pool.put(process);
            }
        });
    }
}
