//! The host of servers: opens sessions and reads threads for them, with one shared engine.

use super::ask::new_thread;
use super::deliberate::opening;
use super::here::Here;
use super::{ask, forum, model, page, seats, think, thread, trust};
use crate::args::Color;
use crate::error::Error;
use crate::render::clean;
use kd_backends::remote::RemoteForum;
use kd_backends::servers::Servers;
use kd_core::config::Config;
use kd_core::duet::DuetLimits;
use kd_core::duet::seats::{DuetWishes, seat};
use kd_core::request::ServerAnswer;
use kd_core::request::ToolSpec;
use kd_core::seating::Wishes;
use kd_core::{Address, Failure, Message, Op, Timestamp};
use kd_engine::{Engine, Session};
use kd_forum::account::Proof;
use kd_forum::bounds::Budget;
use kd_forum::words::MAIN;
use kd_server::{Ask, Followed, Following, Kingdom, Listed, Method, Refusal, Started};
use kd_sql::forum::{Caller, ForumError, ForumStore};
use kd_store::Thread;
use kd_store::config::Project;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::Sender;

/// Maximum characters of a topic: the beginning of the first question.
const TOPIC_CHARS: usize = 80;

/// An agent's visit served by this process.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    /// Its number.
    pub(super) run: i64,
    /// Its call limit, if different from the forum's settings.
    pub(super) calls: Option<u32>,
    /// The word in the delimiter lines around each answer.
    pub(super) fence: Option<String>,
}

/// The remote forum in which a visit acts.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere {
    pub(super) name: String,
    pub(super) url: String,
    /// The socket that passes the token.
    pub(super) token: PathBuf,
}

/// Additional servers of a visit.
struct Further {
    /// The prefixes of their tools, known without waiting for a running call.
    starts: Vec<String>,
    servers: Mutex<Servers>,
    /// Whether their errors are in the log.
    is_told: AtomicBool,
}

impl Further {
    fn open(&self) -> MutexGuard<'_, Servers> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// This folder, its settings, and an engine.
pub(super) struct House {
    here: Here,
    config: Config,
    /// The settings the project asks for, and which are held back.
    project: Project,
    /// The notice about texts of the project.
    texts: Option<String>,
    engine: Engine,
    offline: bool,
    /// The name of the forum.
    forum_name: String,
    /// The forum's store, if given by the user.
    store: Option<String>,
    /// The visit being served.
    visit: Option<Visit>,
    /// What that visit may still be shown.
    budget: Mutex<Budget>,
    /// Names of tokens: the forum's registered agents.
    tokens: Vec<String>,
    /// Opened on first use.
    forum: Mutex<Option<ForumStore>>,
    /// The remote forum of the visit, if any.
    elsewhere: Option<Elsewhere>,
    /// Opened on first use.
    remote: Mutex<Option<RemoteForum>>,
    /// Additional servers of the visit.
    further: Option<Further>,
}

impl House {
    /// Creates the host for the working folder. Fails if settings cannot be read.
    pub(super) fn open(here: &Here, offline: bool) -> Result<Self, Error> {
        let found = here.find_layout()?;
        let loaded = trust::settings(here, found.as_ref())?;
        let texts = trust::texts_line(&loaded, found.as_ref());
        if let Some(layout) = &found {
            super::ask::sweep(layout, false);
        }
        let backends = kd_backends::Backends::new(&loaded.config, super::here::agents());
        let masked = super::secrets::of(&loaded.config, false);
        Ok(Self {
            // Output of servers has no colors.
            here: Here::new(Color::Never),
            config: loaded.config,
            project: loaded.project,
            texts,
            engine: Engine::new(backends).masking(masked),
            offline,
            forum_name: MAIN.to_owned(),
            store: None,
            visit: None,
            budget: Mutex::default(),
            tokens: Vec::new(),
            forum: Mutex::default(),
            elsewhere: None,
            remote: Mutex::default(),
            further: None,
        })
    }

    /// Sets the forum, its store and the visit.
    pub(super) fn with_forum(
        self,
        name: Option<String>,
        store: Option<String>,
        visit: Option<Visit>,
    ) -> Self {
        Self {
            forum_name: name.unwrap_or(self.forum_name),
            store,
            visit,
            ..self
        }
    }

    /// Makes the visit act in a remote forum.
    pub(super) fn with_remote(self, elsewhere: Elsewhere) -> Self {
        Self {
            elsewhere: Some(elsewhere),
            ..self
        }
    }

    /// Lets the visit call these additional servers.
    pub(super) fn with_further(self, servers: Servers) -> Self {
        let further = Further {
            starts: servers.starts(),
            servers: Mutex::new(servers),
            is_told: AtomicBool::new(false),
        };
        Self {
            further: Some(further),
            ..self
        }
    }

    /// Calls a tool of an additional server. Blocks: servers call it off their event loop.
    fn ask_server(&self, tool: &str, arguments: &Value) -> ServerAnswer {
        let called = self.further.as_ref().and_then(|further| {
            let mut servers = further.open();
            tokio::runtime::Handle::current().block_on(servers.call(tool, arguments))
        });
        called.unwrap_or_else(|| ServerAnswer::refused(tool, "there is no such tool"))
    }

    /// Calls a tool of the remote forum. Blocks: servers call it off their event loop.
    fn send(&self, elsewhere: &Elsewhere, tool: &str, arguments: &Value) -> Result<Value, String> {
        let mut open = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
        let call = async {
            let forum = match &mut *open {
                Some(forum) => forum,
                none => {
                    let Elsewhere { name, url, token } = elsewhere;
                    none.insert(RemoteForum::with_key_socket(name, url, token)?)
                }
            };
            forum.call(tool, arguments).await
        };
        let done: Result<Value, Failure> = tokio::runtime::Handle::current().block_on(call);
        done.map_err(|why| why.with_advice())
    }

    /// Sets the names of the callers' tokens.
    pub(super) fn with_tokens(self, tokens: Vec<String>) -> Self {
        Self { tokens, ..self }
    }

    fn old(&self, id: Option<&str>) -> Result<Option<Thread>, Error> {
        let Some(id) = id else { return Ok(None) };
        let place = thread::resolve(&self.here.layout()?, Some(id))?;
        Ok(Some(Thread::open(&place)?))
    }

    /// Opens the forum of this folder; creates it if missing.
    fn open_forum(&self) -> Result<ForumStore, Error> {
        let layout = self.here.make_layout()?.layout;
        let place = forum::place(self.store.as_deref(), &self.config, &layout, &self.here)?;
        let mut store = forum::open(&place)?;
        // A server with one token for all says nothing about named ones.
        if !self.tokens.is_empty() {
            let names: Vec<&str> = self.tokens.iter().map(String::as_str).collect();
            store.sync_tokens(&self.forum_name, &names, Timestamp::now())?;
        }
        Ok(store)
    }

    /// Calls a function with the forum, opening it if necessary.
    fn on_forum<T>(
        &self,
        act: impl FnOnce(&mut ForumStore) -> Result<T, ForumError>,
    ) -> Result<T, Refusal> {
        let mut open = self.forum.lock().unwrap_or_else(PoisonError::into_inner);
        let store = match &mut *open {
            Some(store) => store,
            none => none.insert(self.open_forum().map_err(refusal)?),
        };
        act(store).map_err(|e| Refusal(format!("{e}; {}", e.hint())))
    }

    /// Returns a caller with this name; during a visit, only the visiting agent.
    fn caller(
        &self,
        author: &str,
        proof: Proof,
        store: &mut ForumStore,
    ) -> Result<Caller, ForumError> {
        let mut caller = Caller::new(author, &self.forum_name)?.proven(proof);
        if let Some(&Visit { run, .. }) = self.visit.as_ref() {
            let visit = store.run(run)?;
            if visit.agent != author || visit.forum != self.forum_name {
                return Err(ForumError::Forbidden(format!(
                    "the visit {run} is not one of {author}"
                )));
            }
            caller.run = Some(run);
            caller.proof = Proof::Persona;
        }
        Ok(caller)
    }

    fn council(&self, ask: &Ask) -> Result<Session, Error> {
        let old = self.old(ask.thread.as_deref())?;
        let layout = self.here.find_layout()?;
        let thread = old.as_ref().zip(layout.as_ref());
        let named = trust::Named {
            // A client that names a thread is not the user.
            thread: thread.map(|(thread, layout)| trust::GoesOn::of(layout, thread, None)),
            ..trust::Named::only(&ask.members)
        };
        let members = trust::check(&self.project, named)?;
        let wishes = Wishes {
            members: ask.members.clone(),
            ..Wishes::default()
        };
        let seated = seats::seat_in(&self.config, wishes, members.as_deref())?;
        model::make_ready(&self.config, self.offline, true, &seated.roster)?;
        let thread = match old {
            Some(thread) => thread,
            None => new_thread(&seated.roster, true, &self.here)?,
        };
        let conclude = self.config.council.conclude;
        let open = ask::opening(&self.config, seated.roster, &thread, conclude, None)?;
        Ok(self.engine.open(thread, open)?)
    }

    fn duet(&self, ask: &Ask) -> Result<Session, Error> {
        let old = self.old(ask.thread.as_deref())?;
        trust::check(&self.project, trust::Named::only(&ask.members))?;
        let wishes = DuetWishes {
            fast: ask.members.first().cloned(),
            rigorous: ask.members.get(1).cloned(),
            ..DuetWishes::default()
        };
        let seats = seat(&self.config, &wishes)?;
        let roster = seats.roster();
        model::make_ready(&self.config, self.offline, true, &roster)?;
        let thread = match old {
            Some(thread) => thread,
            None => new_thread(&roster, true, &self.here)?,
        };
        let limits = DuetLimits::of(&self.config.think, &seats);
        let opening = think::opening(&self.config, seats, &thread, limits)?;
        Ok(self.engine.run(thread, opening)?)
    }

    /// Starts a deliberation. It begins with its own question, so the thread must be new or idle.
    fn deliberation(&self, ask: &Ask) -> Result<(Session, Op), Error> {
        let old = self.old(ask.thread.as_deref())?;
        let layout = self.here.find_layout()?;
        trust::check(&self.project, trust::Named::only(&ask.members))?;
        let mut planned =
            opening::plan(&self.config, layout.as_ref(), &ask.question, &ask.members)?;
        planned.notices.extend(self.texts.clone());
        let roster = opening::roster(&planned.plan);
        model::make_ready(&self.config, self.offline, true, &roster)?;
        let thread = match old {
            Some(thread) => thread,
            None => new_thread(&roster, true, &self.here)?,
        };
        let say = opening::say(&planned.plan);
        let opening = opening::opening(&self.config, planned, &thread)?;
        Ok((self.engine.run(thread, opening)?, say))
    }

    /// Opens a thread for reading.
    fn open_thread(&self, id: &str) -> Result<Thread, Refusal> {
        if self.visit.is_some() {
            return Err(Refusal("a visit has no threads of the council".into()));
        }
        let open = || -> Result<Thread, Error> {
            let place = thread::resolve(&self.here.layout()?, Some(id))?;
            Ok(Thread::open(&place)?)
        };
        open().map_err(refusal)
    }

    fn listed(&self) -> Result<Vec<Listed>, Error> {
        let Some(layout) = self.here.find_layout()? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        // A client has no use for the note.
        let mut left_out = thread::LeftOut::default();
        for place in layout.threads()? {
            let Some(thread) = left_out.open(&place)? else {
                continue;
            };
            let head = thread.head(1)?.messages;
            let first = head.first();
            let topic = first
                .and_then(|m| m.body.lines().find(|l| !l.trim().is_empty()))
                .unwrap_or_default();
            let listed = Listed {
                id: place.id.0.clone(),
                topic: clean::line(topic).chars().take(TOPIC_CHARS).collect(),
                messages: thread.count()?,
            };
            found.push((thread.meta().created().or(first.map(|m| m.at)), listed));
        }
        found.sort_by(|(a, x), (b, y)| (b, &y.id).cmp(&(a, &x.id)));
        Ok(found.into_iter().map(|(_, listed)| listed).collect())
    }
}

impl Kingdom for House {
    fn has(&self, method: Method) -> bool {
        let all = [Method::Ask, Method::Think, Method::Deliberate];
        self.visit.is_none() && all.contains(&method)
    }

    fn is_visit(&self) -> bool {
        self.visit.is_some()
    }

    fn ask(&self, ask: &Ask) -> Result<Started, Refusal> {
        let secrets = super::secrets::of(&self.config, false);
        let (question, masked) = secrets.mask(&ask.question);
        let ask = &Ask {
            question: question.into_owned(),
            ..ask.clone()
        };
        let say = || Op::Say {
            body: ask.question.clone(),
            to: Address::All,
        };
        let started = match ask.method {
            Method::Think => self.duet(ask).map(|session| (session, say())),
            Method::Ask => self.council(ask).map(|session| (session, say())),
            Method::Deliberate => self.deliberation(ask),
        };
        let (session, say) = started.map_err(refusal)?;
        let held = self
            .project
            .holds_back()
            .then(|| trust::held_line(&self.project));
        Ok(Started {
            session,
            say,
            notices: held.into_iter().chain(masked.line()).collect(),
        })
    }

    fn threads(&self) -> Result<Vec<Listed>, Refusal> {
        // A visit sees only the forum: the user's questions to the council are private.
        if self.visit.is_some() {
            return Ok(Vec::new());
        }
        self.listed().map_err(refusal)
    }

    fn read(&self, id: &str) -> Result<Vec<Message>, Refusal> {
        let thread = self.open_thread(id)?;
        let read = thread.messages().map_err(|e| refusal(e.into()))?;
        Ok(read.messages)
    }

    fn page(&self, id: &str) -> Result<kd_page::Thread, Refusal> {
        let thread = self.open_thread(id)?;
        let (page, _) = page::read(&thread, None).map_err(refusal)?;
        Ok(page)
    }

    fn follow(&self, id: &str, tell: Sender<Followed>) -> Result<Box<dyn Following>, Refusal> {
        let thread = self.open_thread(id)?;
        // A thread can be read even if its members are no longer available.
        let seated = seats::seat_in(&self.config, Wishes::default(), None);
        let members = seated.map(|seated| seated.roster.members().to_vec());
        page::follow(thread, &members.unwrap_or_default(), tell).map_err(refusal)
    }

    fn shown(&self, tool: &str, answer: &Value) -> Option<String> {
        let fence = self.visit.as_ref()?.fence.as_deref()?;
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        Some(budget.result(tool, answer, fence))
    }

    fn further_tools(&self) -> Vec<ToolSpec> {
        let Some(further) = &self.further else {
            return Vec::new();
        };
        // Release the lock before using the store: calls take both in the other order.
        let (tools, faults) = {
            let mut servers = further.open();
            let tools = tokio::runtime::Handle::current().block_on(servers.tools());
            (tools, servers.faults())
        };
        if !further.is_told.swap(true, Ordering::Relaxed) {
            for fault in faults {
                let tell = |store: &mut ForumStore| {
                    let run = self.visit.as_ref().map(|visit| visit.run);
                    let agent = store.run(run.unwrap_or_default())?.agent;
                    let caller = self.caller(&agent, Proof::Persona, store)?;
                    store.server_failed(&caller, fault, Timestamp::now())
                };
                // The agent has its other tools, whether or not this can be written.
                let _ = self.on_forum(tell);
            }
        }
        tools
    }

    fn has_further(&self, tool: &str) -> bool {
        let starts = self.further.iter().flat_map(|further| &further.starts);
        starts.into_iter().any(|start| tool.starts_with(start))
    }

    fn forum(
        &self,
        author: &str,
        proof: Proof,
        tool: &str,
        arguments: &Value,
    ) -> Result<Value, Refusal> {
        let call = |store: &mut ForumStore| {
            let caller = self.caller(author, proof, store)?;
            let mut settings = store.settings(&self.forum_name, &self.config.forum.settings)?;
            if let Some(calls) = self.visit.as_ref().and_then(|visit| visit.calls) {
                settings.max_tool_calls = calls;
            }
            let now = Timestamp::now();
            match &self.elsewhere {
                _ if self.has_further(tool) => {
                    store.call_server(&caller, &settings, tool, now, || {
                        self.ask_server(tool, arguments)
                    })
                }
                Some(elsewhere) => store.relay(
                    &caller,
                    &settings,
                    tool,
                    arguments,
                    now,
                    |tool, arguments| self.send(elsewhere, tool, arguments),
                ),
                None => store.call(&caller, &settings, tool, arguments, now),
            }
        };
        self.on_forum(call)
    }

    fn forum_mark(&self, author: &str) -> Result<(i64, i64), Refusal> {
        self.on_forum(|store| store.news_mark(&self.forum_name, author))
    }
}

/// Converts an error to one line, with what to do next.
fn refusal(error: Error) -> Refusal {
    Refusal(error.as_line())
}
