//! The host of servers: opens sessions and reads threads for them, with one shared engine.

use crate::acting::Errand;
use crate::council::{self, Started};
use crate::deliberation::Deliberate;
use crate::error::{ErrorKind, UserError};
use crate::host::{
    Candidate, Followed, Following, Host, InForum, Listed, Listing, Method, Model, OnMotion,
    Placed, Query, Refusal,
};
use crate::kingdom::Kingdom;
use crate::request::{Ask, Question, Terms, ThreadChoice};
use crate::setup::demo_answers;
use crate::think::Think;
use crate::{forks, forum, listing, marks, page, ready, seating, secrets, threads, trust};
use kd_backends::remote::RemoteForum;
use kd_backends::servers::Servers;
use kd_core::clean::clean_line;
use kd_core::deliberation::without_marks;
use kd_core::fork::Cut;
use kd_core::request::ServerAnswer;
use kd_core::request::ToolSpec;
use kd_core::seating::SeatRequest;
use kd_core::{Failure, Message, Record, SeatName, Timestamp};
use kd_forum::account::Proof;
use kd_forum::bounds::Budget;
use kd_forum::words::MAIN;
use kd_sql::forum::{CallSettings, Caller, ForumError, ForumStore};
use kd_store::Thread;
use kd_store::config::Consent;
use kd_store::meta::COUNCIL;
use kd_store::trust::Decision;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::Sender;

/// Maximum characters of the name of a model.
const MODEL_CHARS: usize = 60;
/// Maximum characters of a setting's value.
const VALUE_CHARS: usize = 80;

/// Maximum characters of an unknown ID that is repeated to its caller.
const ID_CHARS_MAX: usize = 80;
/// The notice for clients if nothing is configured.
const DEMO: &str = "the small built-in model answers for all members: it is for trying things out; for better answers: `kd init`";

/// An agent's visit served by this process.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Its number.
    pub run: i64,
    /// Its call limit, if different from the forum's settings.
    pub calls: Option<u32>,
    /// The word in the delimiter lines around each answer.
    pub fence: Option<String>,
}

/// The remote forum in which a visit acts.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// The name in the settings.
    pub name: String,
    /// Its address.
    pub url: String,
    /// The socket that passes the token.
    pub token: PathBuf,
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

/// A folder, for servers.
pub struct FolderHost {
    kingdom: Kingdom,
    offline: bool,
    /// The name of the forum.
    forum_name: String,
    /// The forum's store, if given by the user.
    store: Option<String>,
    /// The visit being served.
    visit: Option<Visit>,
    /// The amount of text that the visit may still be shown.
    budget: Mutex<Budget>,
    /// The names of agent programs that are not offered to other machines.
    left_out: Vec<String>,
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
    /// The fleet that is watched.
    #[cfg(feature = "forum")]
    fleet: Option<crate::batch::fleet::Watch>,
}

impl FolderHost {
    /// Creates the host of a folder. With `offline` nothing is downloaded.
    pub fn new(kingdom: Kingdom, offline: bool) -> Self {
        Self {
            // Clients learn it from the notices of an answer.
            kingdom: kingdom.not_announcing_what_is_held_back(),
            offline,
            forum_name: MAIN.to_owned(),
            store: None,
            visit: None,
            budget: Mutex::default(),
            left_out: Vec::new(),
            tokens: Vec::new(),
            forum: Mutex::default(),
            elsewhere: None,
            remote: Mutex::default(),
            further: None,
            #[cfg(feature = "forum")]
            fleet: None,
        }
    }

    /// Also watches the batches of a fleet, in this database.
    #[cfg(feature = "forum")]
    #[must_use]
    pub fn with_fleet(mut self, store: Option<kd_sql::fleet::Store>) -> Self {
        self.fleet = store.map(crate::batch::fleet::Watch::new);
        self
    }

    /// Returns whether the built-in demo model answers, because nothing else is chosen.
    pub fn shows_the_demo(&self) -> bool {
        demo_answers(self.kingdom.config(), &[])
    }

    /// Serves other machines: agent programs are left out. Also returns their names.
    pub fn for_others(self) -> (Self, Vec<String>) {
        let mut left_out = Vec::new();
        let mut kingdom = self.kingdom;
        kingdom.configure(|config| left_out = config.without_programs());
        let host = Self {
            kingdom,
            left_out: left_out.clone(),
            ..self
        };
        (host, left_out)
    }

    /// Returns whether readers may see a record. Removes from it everything that reveals how the owner marks
    /// verdicts, which other machines must not see.
    fn is_for_readers(&self, record: &mut Record) -> bool {
        !self.kingdom.config().serves_others || without_marks(&mut record.event)
    }

    /// Fails if one of these names, from a request or a model of the settings, is a program that was left out.
    fn are_offered(&self, members: &[String]) -> Result<(), Refusal> {
        let mut named = members.iter();
        match named.find(|name| self.left_out.contains(name)) {
            None => Ok(()),
            Some(name) => Err(refusal(ready::program_of_others(name))),
        }
    }

    /// Sets the forum, its store and the visit.
    pub fn with_forum(
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
    pub fn with_remote(self, elsewhere: Elsewhere) -> Self {
        Self {
            elsewhere: Some(elsewhere),
            ..self
        }
    }

    /// Lets the visit call these additional servers.
    pub fn with_further(self, servers: Servers) -> Self {
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
    fn send(&self, elsewhere: &Elsewhere, tool: &str, arguments: &Value) -> Result<Value, Failure> {
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
        tokio::runtime::Handle::current().block_on(call)
    }

    /// Sets the names of the callers' tokens.
    pub fn with_tokens(self, tokens: Vec<String>) -> Self {
        Self { tokens, ..self }
    }

    /// Opens the forum of this folder; creates it if missing.
    fn open_forum(&self) -> Result<ForumStore, UserError> {
        let env = self.kingdom.env();
        let layout = env.make_layout()?.layout;
        let place = forum::place(self.store.as_deref(), self.kingdom.config(), &layout, env)?;
        let mut store = forum::open(&place, env)?;
        store.set_secrets(secrets::of(self.kingdom.config(), false, env));
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

    /// Returns whether the user who runs this has a forum here.
    ///
    /// # Errors
    /// If the caller is not that user, or the place cannot be read.
    fn has_own_forum(&self) -> Result<bool, Refusal> {
        if self.visit.is_some() || self.kingdom.config().serves_others {
            let why = "the forum's screens are those of the person who runs the server, and are not shown to other machines: use `kd forum` there";
            return Err(Refusal(why.to_owned()));
        }
        let exists = || -> Result<bool, UserError> {
            let env = self.kingdom.env();
            let Some(layout) = env.find_layout()? else {
                return Ok(false);
            };
            let place = forum::place(self.store.as_deref(), self.kingdom.config(), &layout, env)?;
            Ok(match place {
                forum::Place::File(file) => file.exists(),
                forum::Place::Server(_) => true,
            })
        };
        exists().map_err(refusal)
    }

    /// Calls a function with the forum of the user who runs this. Creates none.
    fn on_own_forum<T>(
        &self,
        act: impl FnOnce(&mut ForumStore) -> Result<T, ForumError>,
    ) -> Result<T, Refusal> {
        match self.has_own_forum()? {
            true => self.on_forum(act),
            false => Err(Refusal(
                "there is no forum in this folder: a first thread begins one".to_owned(),
            )),
        }
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

    /// Opens a session for a query, whose secrets are masked.
    fn start(&self, query: &Query) -> Result<Started, UserError> {
        let terms = Terms {
            offline: self.offline,
            output: query.output.clone(),
            ..Terms::default()
        };
        // A client of the server that names a thread is not the user.
        self.check_named(query.thread.as_deref())?;
        let thread = match query.thread.clone() {
            Some(id) => ThreadChoice::Given(id),
            None => ThreadChoice::New,
        };
        let (members, question) = (query.members.clone(), Question::new(&query.question));
        match query.method {
            Method::Ask => {
                let ask = Ask {
                    seats: SeatRequest {
                        members,
                        ..SeatRequest::default()
                    },
                    // Mentions mean nothing here.
                    address: Some(kd_core::names::ALL.to_owned()),
                    thread,
                    terms,
                    ..Ask::default()
                };
                self.kingdom.ask(ask, question)
            }
            Method::Think => {
                let think = Think {
                    fast: members.first().cloned(),
                    rigorous: members.get(1).cloned(),
                    thread,
                    terms,
                    ..Think::default()
                };
                self.kingdom.think(think, question)
            }
            Method::Deliberate => {
                let deliberate = Deliberate {
                    members,
                    thread,
                    plan: query.plan.clone(),
                    offline: self.offline,
                    output: terms.output,
                };
                self.kingdom.deliberate(deliberate, question)
            }
        }
    }

    /// Returns one line that lists the settings of the folder that are held back.
    fn held(&self) -> Option<String> {
        let project = self.kingdom.project();
        project.holds_back().then(|| trust::held_line(project))
    }

    /// Checks the ID of a thread that a client names. An empty ID would mean the newest thread, which may belong to
    /// another client. Errors for other machines name neither the folder nor its other threads.
    fn check_named(&self, id: Option<&str>) -> Result<(), UserError> {
        let Some(id) = id else {
            return Ok(());
        };
        if id.trim().is_empty() {
            let empty = UserError::new(ErrorKind::NoThread, "the ID of the thread is empty");
            return Err(empty.next("name a thread, or leave the ID out to begin a new one"));
        }
        if self.kingdom.config().serves_others {
            let layout = self.kingdom.env().layout()?;
            threads::resolve(&layout, Some(id)).map_err(|_| {
                let id = clean_line(id, ID_CHARS_MAX);
                UserError::new(ErrorKind::NoThread, format!("there is no thread `{id}`"))
            })?;
        }
        Ok(())
    }

    /// Opens a thread for reading.
    fn open_thread(&self, id: &str) -> Result<Thread, Refusal> {
        if self.visit.is_some() {
            return Err(Refusal("a visit has no threads of the council".into()));
        }
        let open = || -> Result<Thread, UserError> {
            self.check_named(Some(id))?;
            let place = threads::resolve(&self.kingdom.env().layout()?, Some(id))?;
            Ok(Thread::open(&place)?)
        };
        open().map_err(refusal)
    }

    /// Seats the council of a thread for something that is not a question.
    fn council_of(&self, id: &str) -> Result<council::Council<'_>, UserError> {
        self.kingdom.council(Ask {
            thread: ThreadChoice::Given(id.to_owned()),
            terms: Terms {
                offline: self.offline,
                ..Terms::default()
            },
            ..Ask::default()
        })
    }
}

/// Batches that are shown: the newest.
#[cfg(feature = "forum")]
const BATCHES_MAX: usize = 20;

impl Host for FolderHost {
    fn has(&self, method: Method) -> bool {
        let all = [Method::Ask, Method::Think, Method::Deliberate];
        self.visit.is_none() && all.contains(&method)
    }

    fn models(&self) -> Vec<Model> {
        let mut models = Model::of(&self.kingdom.config().serve);
        models.retain(|model| self.has(model.method));
        models
    }

    fn is_visit(&self) -> bool {
        self.visit.is_some()
    }

    fn ask(&self, query: &Query) -> Result<Started, Refusal> {
        self.are_offered(&query.members)?;
        let secrets = secrets::of(self.kingdom.config(), false, self.kingdom.env());
        let (question, masked) = secrets.mask(&query.question);
        let query = &Query {
            question: question.into_owned(),
            ..query.clone()
        };
        let demo = demo_answers(self.kingdom.config(), &query.members).then(|| DEMO.to_owned());
        let notices = self.held().into_iter().chain(masked.line()).chain(demo);
        Ok(Started {
            notices: notices.collect(),
            formats: query.output.is_some(),
            ..self.start(query).map_err(refusal)?
        })
    }

    fn act(&self, errand: &Errand) -> Result<Started, Refusal> {
        if self.visit.is_some() {
            return Err(Refusal("a visit has no council".into()));
        }
        self.are_offered(&errand.members)?;
        let named = self.check_named(errand.thread.as_deref());
        named.map_err(refusal)?;
        let started = self.kingdom.act(errand.clone(), self.offline);
        let mut started = started.map_err(refusal)?;
        started.notices.splice(0..0, self.held());
        Ok(started)
    }

    fn begin(&self) -> Result<String, Refusal> {
        if self.visit.is_some() {
            return Err(Refusal("a visit has no council".into()));
        }
        // Its members are those of the settings when a question is asked.
        let begin = || -> Result<String, UserError> {
            let layout = council::new_layout(self.kingdom.env())?;
            let thread = Thread::create_for(&layout, &[], COUNCIL)?;
            Ok(thread.id().0.clone())
        };
        begin().map_err(refusal)
    }

    fn discard(&self, id: &str) {
        let Some(layout) = self.kingdom.layout() else {
            return;
        };
        if let Ok(thread) = self.open_thread(id) {
            thread.discard_unsaid(&layout, 0);
        }
    }

    fn wants(&self) -> Option<String> {
        let project = self.kingdom.project();
        let consent = project.consent.as_ref();
        let undecided = consent.filter(|consent| consent.decision == Decision::Unknown)?;
        if !project.holds_back() {
            return None;
        }
        let mut text = trust::held_line(project);
        for setting in undecided.new_settings() {
            let value = clean_line(&setting.value.to_string(), VALUE_CHARS);
            let _ = write!(text, "\n{} = {value}", setting.path);
        }
        Some(text)
    }

    fn allow(&self) -> Result<(), Refusal> {
        let consent = self.kingdom.project().consent.as_ref();
        match consent.map(Consent::allow) {
            Some(Err(error)) => Err(refusal(error.into())),
            Some(Ok(())) | None => Ok(()),
        }
    }

    fn fork(&self, id: &str, cut: &Cut) -> Result<String, Refusal> {
        let thread = self.open_thread(id)?;
        let layout = self.kingdom.env().layout().map_err(refusal)?;
        // The current thread is the terminal's.
        let forked = forks::make(&layout, &thread, cut, false).map_err(refusal)?;
        Ok(forked.id().0.clone())
    }

    fn resume(&self, id: &str) -> Result<Started, Refusal> {
        // The thread of another branch is not shown here either.
        self.open_thread(id)?;
        let resume = || -> Result<Started, UserError> {
            let config = self.kingdom.config();
            let resuming = self
                .kingdom
                .resuming(Some(id), config.clone(), None, None)?;
            resuming.make_ready(self.offline)?;
            resuming.start(secrets::of(config, false, self.kingdom.env()))
        };
        let mut started = resume().map_err(refusal)?;
        started.notices.extend(self.held());
        Ok(started)
    }

    fn mark(&self, id: &str, word: &str) -> Result<String, Refusal> {
        if self.kingdom.config().serves_others {
            let why = "marks are those of the person who runs the server, and cannot be given from other machines: use `kd mark` there";
            return Err(Refusal(why.to_owned()));
        }
        let thread = self.open_thread(id)?;
        let env = self.kingdom.env();
        let layout = env.layout().map_err(refusal)?;
        let marked = marks::say(&layout, &thread, word, None, env).map_err(refusal)?;
        Ok(marked.line())
    }

    #[cfg(feature = "forum")]
    fn batches(&self) -> Result<Vec<kd_core::batch::Overview>, Refusal> {
        if self.visit.is_some() {
            return Ok(Vec::new());
        }
        crate::batch::overview(self.kingdom.env(), BATCHES_MAX).map_err(refusal)
    }

    #[cfg(feature = "forum")]
    fn fleet(&self) -> Option<kd_core::batch::FleetView> {
        self.fleet.as_ref().map(crate::batch::fleet::Watch::view)
    }

    fn threads(&self) -> Result<Vec<Listed>, Refusal> {
        // A visit sees only the forum: the user's questions to the council are private.
        if self.visit.is_some() {
            return Ok(Vec::new());
        }
        let all = Listing {
            most: usize::MAX,
            ..Listing::default()
        };
        self.list(&all).map(|(threads, _)| threads)
    }

    fn list(&self, wanted: &Listing) -> Result<(Vec<Listed>, bool), Refusal> {
        match self.visit {
            Some(_) => Ok((Vec::new(), false)),
            None => listing::list(self.kingdom.env(), wanted).map_err(refusal),
        }
    }

    fn members(&self) -> Vec<Candidate> {
        if self.visit.is_some() {
            return Vec::new();
        }
        let config = self.kingdom.config();
        let seated = |members: Vec<String>| {
            let request = SeatRequest {
                members,
                ..SeatRequest::default()
            };
            let seated = seating::seat(config, request, None);
            seated.map_or_else(|_| Vec::new(), |s| s.roster.members().to_vec())
        };
        let usual = seated(Vec::new());
        let others = config.agents.keys().map(ToString::to_string);
        let others = others.filter(|name| !usual.iter().any(|m| m.name.as_str() == name));
        let others: Vec<_> = others.flat_map(|name| seated(vec![name])).collect();
        let count = usual.len();
        let all = usual.into_iter().chain(others).enumerate();
        let all =
            all.filter(|(_, member)| !self.left_out.iter().any(|n| n == member.name.as_str()));
        all.map(|(at, member)| Candidate {
            name: member.name.to_string(),
            model: clean_line(
                member.model.as_deref().unwrap_or(&member.backend),
                MODEL_CHARS,
            ),
            is_usual: at < count,
        })
        .collect()
    }

    fn retry(&self, id: &str, seat: &SeatName) -> Result<Started, Refusal> {
        self.open_thread(id)?;
        self.are_offered(&[seat.to_string()])?;
        let retry = || self.council_of(id)?.again(Some(seat.clone()))?.start();
        let mut started = retry().map_err(refusal)?;
        started.notices.extend(self.held());
        Ok(started)
    }

    fn choose(&self, id: &str, seat: &SeatName) -> Result<Started, Refusal> {
        self.open_thread(id)?;
        let choose = || self.council_of(id)?.choosing(seat.clone())?.start();
        choose().map_err(refusal)
    }

    fn read(&self, id: &str) -> Result<Vec<Message>, Refusal> {
        let thread = self.open_thread(id)?;
        let read = thread.messages().map_err(|e| refusal(e.into()))?;
        Ok(read.messages)
    }

    fn page(&self, id: &str) -> Result<kd_page::Thread, Refusal> {
        let thread = self.open_thread(id)?;
        let (mut page, _) = page::read(&thread, None).map_err(refusal)?;
        page.asked = page::asked(&thread, &page.records).map_err(refusal)?;
        page.records
            .retain_mut(|record| self.is_for_readers(record));
        let layout = self.kingdom.env().layout().map_err(refusal)?;
        let lineages = forks::lineages(&layout).map_err(refusal)?;
        page.family = forks::family(&lineages, thread.id(), |id| {
            Some(format!("?thread={}", in_address(&id.0)))
        });
        Ok(page)
    }

    fn follow(&self, id: &str, tell: Sender<Followed>) -> Result<Box<dyn Following>, Refusal> {
        let thread = self.open_thread(id)?;
        // A thread can be read even if its members are no longer available.
        let seated = seating::seat(self.kingdom.config(), SeatRequest::default(), None);
        let members = seated.map(|seated| seated.roster.members().to_vec());
        page::follow(thread, &members.unwrap_or_default(), tell).map_err(refusal)
    }

    fn events(&self, id: &str, at: u64) -> Result<Option<Vec<(u64, Record)>>, Refusal> {
        let thread = self.open_thread(id)?;
        let found = kd_store::log::read_from(&thread, at).map_err(|e| refusal(e.into()))?;
        Ok(found.map(|mut records| {
            records.retain_mut(|(_, record)| self.is_for_readers(record));
            records
        }))
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

    fn forum_page(&self) -> Result<Option<kd_page::Forum>, Refusal> {
        let read = |store: &mut ForumStore| forum::page::read(store, &self.forum_name);
        match self.has_own_forum()? {
            true => self.on_forum(read).map(Some),
            false => Ok(None),
        }
    }

    fn forum_thread(&self, id: i64) -> Result<(kd_page::Topic, Vec<kd_page::Post>, bool), Refusal> {
        self.on_own_forum(|store| forum::page::read_thread(store, &self.forum_name, id))
    }

    fn decide_motion(&self, id: i64, decision: &OnMotion) -> Result<(), Refusal> {
        let forum = (
            self.forum_name.as_str(),
            &self.kingdom.config().forum.settings,
        );
        self.on_own_forum(|store| forum::page::decide(store, forum, id, decision))
    }

    fn write_in_forum(&self, what: &InForum) -> Result<Placed, Refusal> {
        let configured = &self.kingdom.config().forum.settings;
        let forum = (self.forum_name.as_str(), configured);
        let write = |store: &mut ForumStore| forum::page::write(store, forum, what);
        match (self.has_own_forum()?, what) {
            (false, InForum::Thread(..)) => self.on_forum(write),
            _ => self.on_own_forum(write),
        }
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
            let configured = &self.kingdom.config().forum.settings;
            let mut settings = store.settings(&self.forum_name, configured)?;
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
                None => {
                    let terms = CallSettings {
                        run: &settings,
                        configured,
                    };
                    store.call(&caller, terms, tool, arguments, now)
                }
            }
        };
        self.on_forum(call)
    }

    fn forum_mark(&self, author: &str) -> Result<(i64, i64), Refusal> {
        self.on_forum(|store| store.news_mark(&self.forum_name, author))
    }
}

/// Converts an error to one line, with its advice.
fn refusal(error: UserError) -> Refusal {
    Refusal(error.as_line())
}

/// Encodes a text for the query of an address.
fn in_address(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    text.bytes()
        .map(|b| match plain(b) {
            true => char::from(b).to_string(),
            false => format!("%{b:02X}"),
        })
        .collect()
}
