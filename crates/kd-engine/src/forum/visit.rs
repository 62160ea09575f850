//! Carries out a visit: shows the news, asks the agent, makes its calls, and records the end.

use super::{Forum, Granted, RunError, Stop};
use futures::StreamExt;
use kd_backends::Backend;
use kd_backends::servers::{Grant, Servers};
use kd_core::config::forum::Settings;
use kd_core::persona::Persona;
use kd_core::request::ServerAnswer;
use kd_core::request::{Deadlines, Sampling, ToolCall, ToolServer, ToolSpec};
use kd_core::seating::LOCAL;
use kd_core::{Delta, Failure, FailureKind, Launch, Member, Request, Usage};
use kd_forum::account::Proof;
use kd_forum::company::MENTIONS_SHOWN;
use kd_forum::governance::MotionState;
use kd_forum::logline::LogEvent;
use kd_forum::visit::{self, End, Scene, Step, Visit, Way};
use kd_forum::words::{Fresh, Outcome, Run};
use kd_sql::forum::{CallSettings, Caller, ForumError, RunEnd, Sight};
use serde_json::Value;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Threads with news that an agent is shown unasked.
const NEWS: i64 = 8;
/// Threads with news that the built-in model is shown unasked.
const NEWS_SMALL: i64 = 2;
/// Maximum new posts of one thread to look at.
const POSTS: i64 = 50;
/// Maximum log lines to search for calls of additional servers after a visit.
const SERVER_LINES_MAX: i64 = 5_000;
/// Backends that cannot be given tools; they are asked to answer with a single JSON object.
const PLAIN: &[&str] = &["scripted", "command"];

/// A complete answer.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) usage: Option<Usage>,
}

/// Threads with posts that an agent has not read, and the newest post of each thread with news.
type Unread = (Vec<visit::Thread>, Vec<(i64, i64)>);

impl Forum<'_> {
    /// Runs one agent's visit, from its first question to its record.
    pub(super) fn visit(
        &mut self,
        run: i64,
        name: &str,
        settings: &Settings,
    ) -> Result<Run, RunError> {
        self.log(LogEvent::RunStarted {
            agent: name.to_owned(),
        })?;
        let persona = self
            .plan
            .personas
            .iter()
            .find(|p| p.name.as_str() == name)
            .cloned();
        let end = match persona {
            Some(persona) if self.plan.remote.is_some() => {
                self.stay_elsewhere(run, &persona, settings)?
            }
            Some(persona) => self.stay(run, &persona, settings)?,
            // A resumed cycle may have fewer personas than at its start.
            None => failed(Failure::new(
                FailureKind::Missing,
                format!("there is no persona `{name}` any more"),
            )),
        };
        let recorded = self.store.run(run)?;
        let claim = end.claim.map(|claim| {
            let agrees = visit::agrees(&claim, &recorded.deeds);
            (visit::claim_text(&claim), agrees)
        });
        let ended = RunEnd {
            outcome: end.outcome,
            reason: end.reason,
            claim,
            tokens: end.tokens,
        };
        let now = self.now();
        let ended = self.store.end_run(run, &ended, now)?;
        if let (Some(claim), Some(false)) = (ended.claim.clone(), ended.claim_agrees) {
            let did = ended
                .deeds
                .last()
                .map_or_else(|| "nothing".to_owned(), |deed| deed.tool.clone());
            self.log(LogEvent::ClaimDiffers {
                agent: name.to_owned(),
                claim,
                did,
            })?;
        }
        self.log(Self::completed(&ended))?;
        Ok(ended)
    }

    fn stay(&mut self, run: i64, persona: &Persona, settings: &Settings) -> Result<End, RunError> {
        let name = persona.name.as_str();
        let member = self.member(persona);
        let way = self.way(persona, &member);
        let fence = fence();
        let granted = match way {
            // It makes one post per visit and no calls.
            Way::Small => Granted::default(),
            _ => self.plan.granted.get(name).cloned().unwrap_or_default(),
        };
        let server = self.server(run, name, settings, &fence, Some(&granted));
        let backend = match self.seat(&member) {
            Ok(backend) => backend,
            Err(failure) => return Ok(failed(failure)),
        };
        let forum = self.plan.forum.clone();
        let log_end = self.store.log_end(&forum)?;
        let servers: Vec<String> = granted.servers.iter().map(|s| s.name.clone()).collect();
        // An agent program calls them through kd's own server, which opens the connections.
        let own = (way != Way::Mcp).then_some(granted.servers);
        let grants = own.unwrap_or_default();
        let mut further = Servers::new(grants, &self.plan.servers_folder);
        let tools = self.open(run, name, &mut further)?;
        let limit = if way == Way::Small { NEWS_SMALL } else { NEWS };
        let now = self.now();
        let news = self.store.news_at(&forum, name, limit, now)?;
        let (threads, shown) = self.unread(news.threads)?;
        let mut motions = self.store.motions_for(Sight::Public, &forum, 20)?;
        motions.retain(|motion| motion.state == MotionState::Open);
        let skip_probability = persona.preferences.skip_probability;
        let scene = Scene {
            forum: forum.clone(),
            settings: settings.clone(),
            skip_probability: skip_probability.unwrap_or(settings.skip_probability),
            news: threads,
            motions,
            notes: self.store.notes(&forum, name)?,
            mentions: self.store.mentions(&forum, name, MENTIONS_SHOWN)?,
            charter: self.store.charter(&forum)?,
            own: self.store.rules(&forum)?,
            fence,
            manner: persona.manner(),
            server,
            further: tools,
            servers,
            elsewhere: None,
        };
        let mentioned: Vec<i64> = scene.mentions.0.iter().map(|m| m.post_id).collect();
        let visit = Visit::new(member, way, &scene);
        let caller = Caller::new(name, &forum)?;
        let call = |forum: &mut Self, caller: &Caller, name: &str, arguments: &Value| {
            if !further.has(name) {
                return forum.call_tool(caller, settings, name, arguments);
            }
            let now = forum.now();
            let (runtime, stop) = (&forum.runtime, &forum.stop);
            let send = || ask_server(runtime, stop, &mut further, name, arguments);
            forum.store.call_server(caller, settings, name, now, send)
        };
        let end = self.converse(run, visit, &backend, caller, call)?;
        let end = self.by_record(run, way, end, settings)?;
        self.tell_servers(name, log_end)?;
        if end.outcome.is_success() || end.outcome == Outcome::LimitExceeded {
            for (thread, post) in shown {
                self.store.saw(name, thread, post)?;
            }
            // Small models are not shown them.
            if way != Way::Small {
                let now = self.now();
                self.store.saw_mentions(name, &mentioned, now)?;
            }
            self.store.settle(&forum, name, news.through)?;
        }
        Ok(end)
    }

    /// Calls a tool of the forum.
    fn call_tool(
        &mut self,
        caller: &Caller,
        settings: &Settings,
        name: &str,
        arguments: &Value,
    ) -> Result<Value, ForumError> {
        let (now, governing) = (self.now(), self.governing());
        let settings = CallSettings {
            run: settings,
            configured: &governing,
        };
        self.store.call(caller, settings, name, arguments, now)
    }

    /// Reads the posts of threads that the agent has not read. Returns the threads with posts to show, and the newest post
    /// of each.
    fn unread(&mut self, news: Vec<Fresh>) -> Result<Unread, RunError> {
        let mut threads = Vec::with_capacity(news.len());
        let mut shown: Vec<(i64, i64)> = Vec::new();
        for fresh in news {
            let (thread, mut posts) =
                self.store
                    .thread(fresh.thread.id, fresh.seen_post_id, POSTS)?;
            // A hidden post counts as read, so that its thread is not offered forever.
            shown.extend(posts.last().map(|post| (thread.id, post.id)));
            posts.retain(|post| post.hidden_at.is_none());
            if !posts.is_empty() {
                threads.push(visit::Thread { thread, posts });
            }
        }
        Ok((threads, shown))
    }

    /// Asks the agent and runs its calls, each through `call`, until the visit is over.
    pub(super) fn converse(
        &mut self,
        run: i64,
        mut visit: Visit,
        backend: &Arc<dyn Backend>,
        caller: Caller,
        mut call: impl FnMut(&mut Self, &Caller, &str, &Value) -> Result<Value, ForumError>,
    ) -> Result<End, RunError> {
        let caller = Caller {
            run: Some(run),
            ..caller.proven(Proof::Persona)
        };
        let mut step = visit.begin();
        loop {
            step = match step {
                Step::Ask(request) => match self.ask(backend, *request) {
                    Ok(answer) => visit.answered(&answer.text, answer.calls, answer.usage.as_ref()),
                    Err(failure) if failure.kind == FailureKind::Cancelled => visit.stopped(),
                    Err(failure) => visit.failed(&failure),
                },
                Step::Call { name, arguments } => {
                    visit.called(&call(self, &caller, &name, &arguments)?)
                }
                Step::Over(end) => return Ok(end),
            };
        }
    }

    /// Connects to the additional servers of a visit, and logs which of them are unavailable.
    fn open(
        &mut self,
        run: i64,
        name: &str,
        further: &mut Servers,
    ) -> Result<Vec<ToolSpec>, RunError> {
        let tools = match stoppable(&self.runtime, &self.stop, further.tools()) {
            Some(tools) => tools,
            None => return Ok(Vec::new()),
        };
        let caller = Caller {
            run: Some(run),
            ..Caller::new(name, &self.plan.forum)?
        };
        for fault in further.faults() {
            let now = self.now();
            self.store.server_failed(&caller, fault, now)?;
        }
        Ok(tools)
    }

    /// Reports log entries about an agent's additional servers, starting at the number `since`. Another process may
    /// have written them.
    fn tell_servers(&mut self, agent: &str, since: i64) -> Result<(), RunError> {
        let forum = self.plan.forum.clone();
        for (_, line) in self.store.log_after(&forum, since, SERVER_LINES_MAX)? {
            let of = match &line.event {
                LogEvent::ServerCalled { agent, .. } | LogEvent::ServerFailed { agent, .. } => {
                    agent
                }
                _ => continue,
            };
            if of == agent {
                (self.say)(&line);
            }
        }
        Ok(())
    }

    /// Returns the end of a visit; taken from the record if another process made its calls.
    pub(super) fn by_record(
        &mut self,
        run: i64,
        way: Way,
        end: End,
        settings: &Settings,
    ) -> Result<End, RunError> {
        Ok(match way {
            Way::Mcp => visit::by_record(end, &self.store.run(run)?, settings.max_tool_calls),
            _ => end,
        })
    }

    /// Returns the program through which an agent program calls tools in this visit.
    pub(super) fn server(
        &self,
        run: i64,
        name: &str,
        settings: &Settings,
        fence: &str,
        granted: Option<&Granted>,
    ) -> Option<ToolServer> {
        let mut server = self.plan.server.clone()?;
        server.args.extend(["--as".into(), name.to_owned()]);
        server.args.extend(["--run".into(), run.to_string()]);
        let calls = settings.max_tool_calls.to_string();
        server.args.extend(["--calls".into(), calls]);
        server.args.extend(["--fence".into(), fence.to_owned()]);
        if let Some((granted, file)) = granted.and_then(|g| Some((g, g.file.as_ref()?.to_str()?))) {
            server.args.extend(["--servers".into(), file.to_owned()]);
            let names = granted.servers.iter().flat_map(Grant::names);
            server.tools.extend(names);
        }
        Some(server)
    }

    /// Returns the form in which an agent calls tools.
    pub(super) fn way(&self, persona: &Persona, member: &Member) -> Way {
        let served = self.plan.server.is_some() && self.backends.is_agent(member);
        match (persona.tools.as_deref(), persona.backend.as_str()) {
            (Some("json"), _) => Way::Json,
            (Some("mcp"), _) if served => Way::Mcp,
            (Some("native"), _) => Way::Native,
            (_, LOCAL) => Way::Small,
            (_, backend) if PLAIN.contains(&backend) => Way::Json,
            (_, _) if served => Way::Mcp,
            (_, _) if self.backends.is_agent(member) => Way::Json,
            (_, _) => Way::Native,
        }
    }

    pub(super) fn member(&self, persona: &Persona) -> Member {
        let likes = &persona.preferences;
        let council = &self.config.council;
        let name = persona.name.as_str();
        let agent = self.config.agents.get(name);
        let launch = agent
            .filter(|agent| agent.backend == persona.backend)
            .map(|agent| Launch::of(name, agent))
            .unwrap_or_default();
        Member {
            name: persona.name.clone(),
            backend: persona.backend.clone(),
            model: persona.model.clone(),
            served_as: None,
            role: None,
            persona: persona.system_prompt.clone(),
            sampling: Sampling {
                temperature: likes.temperature,
                max_tokens: likes.max_tokens,
                ..Sampling::default()
            },
            deadlines: Deadlines {
                first: Duration::from_secs(council.first_secs),
                idle: Duration::from_secs(council.idle_secs),
                total: Duration::from_secs(council.timeout),
            },
            weight: likes.weight,
            writable: false,
            reads: false,
            launch,
        }
    }

    /// Returns the member's backend, kept between visits so that a service's rate limits and a script's position carry
    /// over.
    pub(super) fn seat(&mut self, member: &Member) -> Result<Arc<dyn Backend>, Failure> {
        let name = member.name.as_str();
        if let Some(seat) = self.seats.get(name) {
            return Ok(Arc::clone(seat));
        }
        let seat = self.backends.seat(member)?;
        self.seats.insert(name.to_owned(), Arc::clone(&seat));
        Ok(seat)
    }

    pub(super) fn ask(
        &mut self,
        backend: &Arc<dyn Backend>,
        request: Request,
    ) -> Result<Answer, Failure> {
        let mut stop = self.stop.clone();
        self.runtime.block_on(async {
            tokio::select! {
                answer = collect(backend, request) => answer,
                stopped = stop.wait_for(|stop| *stop == Stop::Now) => match stopped {
                    Ok(_) => Err(Failure::new(FailureKind::Cancelled, "stopped by a person")),
                    // The front end is gone and cannot stop it; the member's deadlines still apply.
                    Err(_) => std::future::pending().await,
                },
            }
        })
    }
}

/// Calls a tool of an additional server, unless the user stops it.
fn ask_server(
    runtime: &Runtime,
    stop: &watch::Receiver<Stop>,
    further: &mut Servers,
    name: &str,
    arguments: &Value,
) -> ServerAnswer {
    let called = stoppable(runtime, stop, further.call(name, arguments)).flatten();
    called.unwrap_or_else(|| ServerAnswer::refused(name, "stopped by a person"))
}

/// Waits for a future; `None` if the user stops it.
pub(super) fn stoppable<T>(
    runtime: &Runtime,
    stop: &watch::Receiver<Stop>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut stop = stop.clone();
    runtime.block_on(async {
        let stopped = async {
            // A front end that is gone stops nothing.
            if stop.wait_for(|stop| *stop == Stop::Now).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            done = work => Some(done),
            () = stopped => None,
        }
    })
}

/// Collects a complete answer.
async fn collect(backend: &Arc<dyn Backend>, request: Request) -> Result<Answer, Failure> {
    let mut stream = backend.ask(request);
    let mut answer = Answer {
        text: String::new(),
        calls: Vec::new(),
        usage: None,
    };
    while let Some(delta) = stream.next().await {
        match delta? {
            Delta::Text { text } => answer.text.push_str(&text),
            Delta::Call { call } => answer.calls.push(call),
            Delta::Retrying { .. } => {
                answer.text.clear();
                answer.calls.clear();
            }
            Delta::Finished { text, usage, .. } => {
                if let Some(text) = text {
                    answer.text = text;
                }
                answer.usage = usage;
                return Ok(answer);
            }
            Delta::Started { .. }
            | Delta::Thinking { .. }
            | Delta::Tool { .. }
            | Delta::Notice { .. } => {}
        }
    }
    Err(Failure::new(FailureKind::Decode, "the answer was cut off"))
}

pub(super) fn failed(failure: Failure) -> End {
    End {
        outcome: Outcome::Failed,
        reason: Some(failure.to_string()),
        claim: None,
        tokens: 0,
    }
}

/// Returns a delimiter that no post can know in advance.
pub(super) fn fence() -> String {
    // Each `RandomState` has keys from the system's random source.
    format!("#{:016x}#", RandomState::new().build_hasher().finish())
}
