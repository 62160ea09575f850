//! A chat: threads to choose from, sessions that are joined, asides, drafts and files, for a screen or a plain terminal.

use crate::ErrorKind;
use crate::aside::AsidePlanner;
use crate::attach::{self, Attaching};
use crate::council::{conversation, names};
use crate::error::UserError;
use crate::export::{self, Format};
use crate::kingdom::Kingdom;
use crate::marks::{self, Marked};
use crate::request::Terms;
use crate::{files, forks, outfile, ready, resume, seating, secrets, shell, threads, trust};
use kd_core::attached;
use kd_core::deliberation::report::Report;
use kd_core::fork::Cut;
use kd_core::mention::mentions;
use kd_core::message::{Message, settled};
use kd_core::protocols::ProtocolKind;
use kd_core::seating::{SeatRequest, Seated, SeatingError};
use kd_core::secrets::Secrets;
use kd_core::slash::{Fork, Seating, Way};
use kd_core::spending::Price;
use kd_core::{Aside, Event, Record, Roster, SeatName, ThreadId, Timestamp};
use kd_engine::{Engine, Session};
use kd_store::typed::{self, WindowDraft};
use kd_store::{Layout, Place, Thread};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

/// Messages that are read before the first frame: more than any screen shows.
const TAIL: usize = 100;
/// Threads to choose from.
const THREADS_MAX: usize = 500;

/// A request to open a chat: its members and its thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The members and how they are asked.
    pub seats: SeatRequest,
    /// The thread that the user named, if any.
    pub id: Option<String>,
    /// Limits, privacy, downloads.
    pub terms: Terms,
}

/// A thread that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// Its id.
    pub id: String,
    /// The time of its last message.
    pub at: Option<Timestamp>,
    /// The number of messages.
    pub messages: usize,
    /// Its members.
    pub members: Vec<String>,
    /// The user's first question.
    pub question: String,
}

/// A thread being opened: what can be shown at once.
#[derive(Clone, Debug, Default)]
pub struct ChatOpening {
    /// Its id.
    pub id: String,
    /// Its members, in order.
    pub members: Vec<SeatName>,
    /// Those that cannot answer here, and why.
    pub absent: Vec<(SeatName, String)>,
    /// Members of the thread that your settings or decisions leave out, and why.
    pub disabled: Vec<(SeatName, String)>,
    /// Its newest messages.
    pub tail: Vec<Message>,
    /// Whether there are older ones.
    pub has_older: bool,
    /// The rule for who speaks next.
    pub mode: Option<String>,
    /// Maximum number of turns that follow the answers; `None` leaves it to the mode.
    pub auto_messages: Option<u32>,
    /// The unsent draft of the last visit.
    pub draft: String,
    /// Notices about the draft, one line each.
    pub notes: Vec<String>,
    /// The newest records of its log, for the facts and the order of its messages.
    pub records: Vec<Record>,
}

/// Messages of a thread before those that are shown.
#[derive(Clone, Debug, Default)]
pub struct Older {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// Their data from the log.
    pub records: Vec<Record>,
    /// Whether there are older ones.
    pub has_more: bool,
}

/// A message with the files that it attaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The text.
    pub body: String,
    /// Notices for the user, one line each.
    pub told: Vec<String>,
}

/// Why a message is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsaid {
    /// Files that it names need consent.
    Asks {
        /// Which, and why.
        doubts: String,
        /// The options of a command line that attaches them.
        options: String,
    },
    /// A file cannot be attached.
    Failed(UserError),
}

impl From<UserError> for Unsaid {
    fn from(error: UserError) -> Self {
        Unsaid::Failed(error)
    }
}

/// A session being opened.
pub type Joining = Pin<Box<dyn Future<Output = Result<Session, UserError>> + Send>>;

/// Threads, drafts and files, for the screen. Calls may block on the disk; every error says on one line what to
/// do.
pub trait ChatHost: Send + Sync + 'static {
    /// Returns the part of a thread (by ID or unique prefix), or of a new one, that can be shown at once.
    ///
    /// # Errors
    /// If there is no such thread, or it cannot be read or created.
    fn open(&self, id: Option<&str>) -> Result<ChatOpening, UserError>;

    /// Opens the session of a thread.
    fn join(&self, id: &str) -> Joining;

    /// Prepares an aside that answers a question, or the user's last one, in another way, or that finishes a
    /// deliberation; `muted` members are not asked.
    ///
    /// # Errors
    /// If the way cannot answer it: the reason, for the user.
    fn aside(
        &self,
        id: &str,
        way: Way,
        question: Option<String>,
        muted: &[SeatName],
    ) -> Result<Aside, UserError>;

    /// Attaches the files that a message names in the text that the user `typed`, not in pasted text. `agreed` is the
    /// user's consent to what [`Unsaid::Asks`] said about this message.
    ///
    /// # Errors
    /// If a file cannot be attached, or needs consent.
    fn attach(
        &self,
        body: &str,
        typed: &str,
        members: &[SeatName],
        agreed: bool,
    ) -> Result<Said, Unsaid>;

    /// Says what the input would attach, with its size; `None` if it names no file.
    fn weigh(&self, typed: &str, members: &[SeatName]) -> Option<String>;

    /// Returns up to `most` messages of a thread before a number, in order.
    ///
    /// # Errors
    /// If the thread cannot be read.
    fn older(&self, id: &str, before: u32, most: usize) -> Result<Older, UserError>;

    /// Returns the messages of a thread after a number.
    ///
    /// # Errors
    /// If the thread cannot be read.
    fn newer(&self, id: &str, after: u32) -> Result<Vec<Message>, UserError>;

    /// Changes who takes part in a thread. Returns a line about it; the thread has to be opened again.
    ///
    /// # Errors
    /// If a member does not exist or may not be asked, or nobody would be left.
    fn reseat(&self, id: &str, change: &Seating) -> Result<String, UserError>;

    /// Forks a thread, makes the fork the current one and returns its ID.
    ///
    /// # Errors
    /// If the thread cannot be cut there, or the fork cannot be written.
    fn fork(&self, id: &str, fork: Fork) -> Result<String, UserError>;

    /// Marks the newest verdict of a thread, whose session has this report. Returns a line that says how it is marked.
    ///
    /// # Errors
    /// If there is no verdict to mark, or the file of marks cannot be written.
    fn mark(&self, id: &str, word: &str, live: &Report) -> Result<String, UserError>;

    /// Returns the threads to choose from, newest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    fn threads(&self) -> Result<Vec<ThreadRow>, UserError>;

    /// Returns paths that the beginning of one may mean, best first; folders end in a slash.
    fn files(&self, begun: &str) -> Vec<String>;

    /// Returns the data of a thread's log about the messages from a number on.
    fn recall(&self, id: &str, from: u32) -> Vec<Record>;

    /// Saves a thread's draft so that it survives a crash; an empty text removes it.
    fn keep_draft(&self, id: &str, text: &str);

    /// Saves a sent message for the history of other sessions.
    fn remember(&self, text: &str);

    /// Exports a thread to this file, or to a default one. Returns the path.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    fn export(&self, id: &str, file: Option<&str>) -> Result<String, UserError>;

    /// Saves a text that no clipboard accepted. Returns the path.
    ///
    /// # Errors
    /// If no file can be written.
    fn spill(&self, text: &str) -> Result<String, UserError>;

    /// Runs a shell line that the user typed and agreed to, and returns its output. Blocks.
    ///
    /// # Errors
    /// If the shell cannot be started.
    fn shell(&self, line: &str) -> std::io::Result<shell::Output>;

    /// Returns an environment variable.
    fn var(&self, name: &str) -> Option<String>;
}

/// The threads of a folder, in which a user chats.
pub struct Chat {
    kingdom: Kingdom,
    layout: Layout,
    request: ChatRequest,
    secrets: Secrets,
    engine: Engine,
    /// Threads whose members were changed in this chat, and who is named for the chat there from then on: nobody, if
    /// nobody was named.
    reseated: Mutex<BTreeMap<ThreadId, Vec<String>>>,
    /// The drafts of this window, by thread.
    drafts: Mutex<BTreeMap<ThreadId, WindowDraft>>,
    /// The last message whose files need consent, with these files, which stay open.
    doubted: Mutex<Option<(String, Attaching)>>,
}

impl Kingdom {
    /// Opens the threads of the folder for a chat.
    ///
    /// # Errors
    /// If there is no project and none can be created.
    pub fn chat(mut self, request: ChatRequest) -> Result<Chat, UserError> {
        let layout = match self.layout() {
            Some(layout) => layout,
            None => self.env().make_layout()?.layout,
        };
        self.configure(|config| request.terms.lay_over(config));
        let secrets = secrets::of(self.config(), request.terms.allow_secrets, self.env());
        let engine = self.engine(self.config(), secrets.clone());
        Ok(Chat {
            engine: self.concluding(engine, self.config(), &layout, None),
            kingdom: self,
            layout,
            request,
            secrets,
            reseated: Mutex::default(),
            drafts: Mutex::default(),
            doubted: Mutex::default(),
        })
    }
}

impl Chat {
    /// The folder.
    pub fn kingdom(&self) -> &Kingdom {
        &self.kingdom
    }

    /// Returns the place where the threads are stored.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the secrets that are masked in texts of the user and the members.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The rule for who speaks next.
    pub fn protocol(&self) -> ProtocolKind {
        self.kingdom.config().council.mode
    }

    /// Messages that were sent in other sessions, oldest first.
    pub fn sent(&self) -> Vec<String> {
        typed::sent(&self.layout)
    }

    /// Finds a thread by its ID or the beginning of one; the current one without.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(&self, id: Option<&str>) -> Result<Place, UserError> {
        threads::resolve(&self.layout, id)
    }

    /// The current thread of the branch, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn current(&self) -> Result<Option<Place>, UserError> {
        Ok(self.layout.current_thread()?)
    }

    fn goes_on(&self, thread: &Thread) -> trust::GoesOn {
        trust::GoesOn::of(&self.layout, thread, self.request.id.as_deref())
    }

    /// Returns the members named for the chat, unless the members of the thread were changed in the chat.
    fn seats_of(&self, thread: Option<&Thread>) -> SeatRequest {
        let mut seats = self.request.seats.clone();
        let reseated = self.reseated.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = thread.and_then(|thread| reseated.get(thread.id())) {
            seats.members.clone_from(named);
        }
        seats
    }

    /// Changes who takes part in a thread from now on, as the user's own choice. Returns a line about it. The thread has to
    /// be opened again. Nothing is written for a member that cannot answer.
    ///
    /// # Errors
    /// If nobody has this name or it cannot answer, the folder's settings are held back, it is the last member, or the
    /// thread cannot be written.
    pub fn reseat(
        &self,
        thread: &Thread,
        change: &Seating,
        quiet: bool,
    ) -> Result<String, UserError> {
        let env = self.kingdom.env().quiet(quiet);
        let mut sitting = names(&self.seat(Some(thread), false)?.roster);
        // Other members of the thread that are not in this chat stay in the thread.
        let mut members = thread.members();
        let mut named = self.seats_of(Some(thread)).members;
        let told = match change {
            Seating::Add(name)
                if sitting.contains(name) && (members.contains(name) || members.is_empty()) =>
            {
                return Err(UserError::usage(format!("{name} is a member already")));
            }
            Seating::Add(name) => {
                let alone = [name.to_string()];
                trust::check(self.kingdom.project(), trust::Named::only(&alone), &env)?;
                // Another window may have removed from the thread who is named for this chat.
                if !sitting.contains(name) {
                    sitting.push(name.clone());
                }
                if !members.contains(name) {
                    members.push(name.clone());
                }
                if !named.is_empty() && !named.contains(&name.to_string()) {
                    named.push(name.to_string());
                }
                format!("{name} takes part from now on")
            }
            Seating::Remove(name) => {
                if !sitting.contains(name) && !members.contains(name) {
                    let what = format!("{name} is no member of this thread");
                    return Err(UserError::usage(what).next("/members lists them"));
                }
                sitting.retain(|member| member != name);
                members.retain(|member| member != name);
                named.retain(|member| member != name.as_str());
                if sitting.is_empty() {
                    let what = format!("{name} is the only member");
                    return Err(UserError::usage(what).next("/add another one first"));
                }
                format!("{name} takes part no longer; its messages stay")
            }
        };
        let request = SeatRequest {
            members: sitting.iter().map(ToString::to_string).collect(),
            ..self.request.seats.clone()
        };
        let roster = kd_core::seating::seat(self.kingdom.config(), &request)?.roster;
        let is_new = |name: &SeatName| matches!(change, Seating::Add(added) if added == name);
        let asked = roster
            .members()
            .iter()
            .filter(|member| is_new(&member.name));
        let offline = self.request.terms.offline;
        ready::make_ready_for(self.kingdom.config(), offline, &env, &roster, asked)?;
        thread.set_members(&members)?;
        // Those that only the folder adds are not the user's choice.
        self.layout.note_seated(thread.id(), &sitting)?;
        let mut reseated = self.reseated.lock().unwrap_or_else(PoisonError::into_inner);
        reseated.insert(thread.id().clone(), named);
        Ok(told)
    }

    /// Says which members of a thread cannot take part, and whether its members differ from the settings. Compares
    /// with the settings only if the user named no members for this chat and did not change them in it.
    fn differs(&self, thread: &Thread) -> Vec<Event> {
        if !self.seats_of(Some(thread)).members.is_empty() {
            return Vec::new();
        }
        let Ok(here) = self.seat(Some(thread), false) else {
            return Vec::new();
        };
        let own = self.seat(None, false).ok();
        let told = own.filter(|_| !self.is_reseated(thread)).and_then(|own| {
            differing(
                &names(&here.roster),
                &names(&own.roster),
                self.turns_follow(),
            )
        });
        let absent = seating::absent(&here, &thread.members());
        let texts = absent.into_iter().chain(told);
        texts.map(|text| Event::Noticed { text }).collect()
    }

    /// Returns whether the user changed the members of a thread in this chat.
    fn is_reseated(&self, thread: &Thread) -> bool {
        let reseated = self.reseated.lock().unwrap_or_else(PoisonError::into_inner);
        reseated.contains_key(thread.id())
    }

    /// Returns whether members speak one after another in the order of the members.
    fn turns_follow(&self) -> bool {
        let mode = self.protocol();
        let turns = self.kingdom.config().council.auto_messages;
        mode.in_order && (!mode.at_once || turns != Some(0))
    }

    /// Seats the council of a thread, or of a new one. `tells` names the members that a thread lacks.
    ///
    /// # Errors
    /// If a member does not exist or is held back.
    pub fn seat(&self, thread: Option<&Thread>, tells: bool) -> Result<Seated, UserError> {
        let seats = self.seats_of(thread);
        let thread = thread.map(|thread| match tells {
            true => self.goes_on(thread),
            false => self.goes_on(thread).quietly(),
        });
        let named = trust::Named {
            thread,
            ..trust::Named::only(&seats.members)
        };
        let env = self.kingdom.env();
        let members = trust::check(self.kingdom.project(), named, env)?;
        seating::seat(self.kingdom.config(), seats, members.as_deref())
    }

    /// Checks that members can answer, and downloads what built-in ones lack. The thread of a council that cannot answer can
    /// be read, unless it is new.
    ///
    /// # Errors
    /// If nobody can answer in a new thread, or a download fails.
    pub fn make_ready(&self, roster: &Roster, is_new: bool) -> Result<(), UserError> {
        let offline = self.request.terms.offline;
        let asked = roster.members().iter().filter(|_| is_new);
        let env = self.kingdom.env();
        ready::make_ready_for(self.kingdom.config(), offline, env, roster, asked)
    }

    /// Creates a thread for these members.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(&self, roster: &Roster) -> Result<Thread, UserError> {
        Ok(Thread::create(&self.layout, &names(roster))?)
    }

    /// Makes a thread the current one.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn make_current(&self, thread: &Thread) -> Result<(), UserError> {
        Ok(self.layout.set_current_thread(thread.id())?)
    }

    /// Opens the session of a thread; its view holds the thread as it was found. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the thread cannot be read.
    pub fn enter(&self, thread: Thread, roster: Roster) -> Result<Session, UserError> {
        let queue = self.layout.queue_folder(thread.path());
        let seed = self.request.seats.seed;
        let readers = seating::readers(roster.members());
        let open = conversation(self.kingdom.config(), roster, &thread, seed);
        let told = self.differs(&thread).into_iter().chain(offered(&thread));
        let told = told.chain(readers.map(|text| Event::Noticed { text }));
        let engine = self.engine.clone().telling(told);
        Ok(engine.join(thread, open, queue.as_deref())?)
    }

    /// Attaches the files that a message names where the user `typed` it. `agreed` is the user's consent to what
    /// [`Unsaid::Asks`] said about this message; it is for these files, whatever has taken their place since.
    ///
    /// # Errors
    /// If a file cannot be attached, or needs consent.
    pub fn attach(
        &self,
        body: &str,
        typed: &str,
        members: &[SeatName],
        agreed: bool,
    ) -> Result<Said, Unsaid> {
        let mut doubted = self.doubted.lock().unwrap_or_else(PoisonError::into_inner);
        let before = doubted
            .take()
            .filter(|(message, _)| agreed && message == body);
        let found = match before {
            Some((_, found)) => found,
            None => {
                let found = Attaching::find(typed, members, &[], self.kingdom.env())?;
                if let Some(doubts) = found.doubts() {
                    let options = found.options();
                    *doubted = Some((body.to_owned(), found));
                    return Err(Unsaid::Asks { doubts, options });
                }
                found
            }
        };
        drop(doubted);
        let read = found.read(&self.prices(typed, members))?;
        let mut told = found.missing(self.kingdom.env());
        told.extend(read.lines);
        let mut said = Said {
            body: body.to_owned(),
            told,
        };
        self.engine.attach(read.media);
        if !read.blocks.is_empty() {
            let blocks = read.blocks.into_iter().map(|mut block| {
                let masked = self.secrets.mask_in_place(&mut block);
                said.told.extend(masked.line());
                block
            });
            let blocks: Vec<String> = blocks.collect();
            said.body = attached::append(body, &blocks);
        }
        Ok(said)
    }

    /// Returns the prices of those members that a message addresses.
    fn prices(&self, typed: &str, members: &[SeatName]) -> Vec<Option<Price>> {
        let said = mentions(typed, &members.iter().collect::<Vec<_>>());
        let asked = match said.all || said.seats.is_empty() {
            true => members,
            false => said.seats.as_slice(),
        };
        let config = self.kingdom.config();
        let request = SeatRequest {
            members: asked.iter().map(ToString::to_string).collect(),
            ..self.request.seats.clone()
        };
        match kd_core::seating::seat(config, &request) {
            Ok(seated) => attach::prices(config, seated.roster.members()),
            Err(_) => vec![None],
        }
    }

    /// Prepares an aside, for example a debate, about a question or about the user's last one.
    ///
    /// # Errors
    /// If there is no question, or nobody can answer it.
    pub fn aside_in(
        &self,
        thread: &Thread,
        roster: &Roster,
        (way, question): (Way, Option<String>),
        muted: &[SeatName],
        quiet: bool,
    ) -> Result<Aside, UserError> {
        let planner = AsidePlanner {
            config: self.kingdom.config(),
            project: self.kingdom.project(),
            layout: &self.layout,
            thread,
            roster,
            muted,
            request: self.request.seats.clone(),
            offline: self.request.terms.offline,
        };
        planner.aside(way, question, &self.kingdom.env().quiet(quiet))
    }

    /// Forks a thread and makes the fork the current one.
    ///
    /// # Errors
    /// If it cannot be forked there.
    pub fn fork_of(&self, thread: &Thread, fork: Fork) -> Result<Thread, UserError> {
        forks::of_chat(&self.layout, thread, fork)
    }

    /// Forks the thread that the chat begins with, and goes on in the fork, which becomes the current thread. Nothing is
    /// forked if a member does not exist or is held back.
    ///
    /// # Errors
    /// If the members cannot be seated, or it cannot be forked.
    pub fn begin_in_fork(&mut self, source: &Thread) -> Result<Thread, UserError> {
        let seated = self.seat(Some(source), false)?;
        self.make_ready(&seated.roster, false)?;
        let forked = forks::make(&self.layout, source, &Cut::End, true)?;
        // Only a thread that the user named may seat the members of a folder.
        if let Some(id) = &mut self.request.id {
            id.clone_from(&forked.id().0);
        }
        Ok(forked)
    }

    /// Marks the newest verdict of a thread, whose session has this report.
    ///
    /// # Errors
    /// There is no verdict, or the word is not a mark of it.
    pub fn mark_in(&self, thread: &Thread, word: &str, live: &Report) -> Result<Marked, UserError> {
        marks::say(&self.layout, thread, word, Some(live), self.kingdom.env())
    }

    /// The newest threads first, up to a number of them.
    ///
    /// # Errors
    /// If a thread cannot be read.
    pub fn recent(&self, max: usize) -> Result<Vec<ThreadRow>, UserError> {
        let mut all = Vec::new();
        for place in self.layout.threads()? {
            let thread = Thread::open(&place)?;
            if thread.meta().is_council() {
                let at = thread.tail(1)?.messages.first().map(|m| m.at);
                all.push((at, place.id, thread));
            }
        }
        all.sort_by(|a, b| (b.0, &b.1).cmp(&(a.0, &a.1)));
        all.truncate(max);
        let row = |(at, id, thread): (_, ThreadId, Thread)| {
            let first = thread.head(1)?.messages;
            let first = first.first();
            Ok(ThreadRow {
                id: id.0,
                at,
                messages: thread.count()?,
                members: thread.members().iter().map(ToString::to_string).collect(),
                question: first.map(|m| m.body.to_string()).unwrap_or_default(),
            })
        };
        all.into_iter().map(row).collect()
    }

    /// Whether the branch has threads.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn has_threads(&self) -> Result<bool, UserError> {
        Ok(!self.layout.threads()?.is_empty())
    }

    /// Opens a thread by its ID or the beginning of one.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn thread(&self, id: &str) -> Result<Thread, UserError> {
        Ok(Thread::open(&self.find(Some(id))?)?)
    }

    /// Uses the draft of this window in a thread, which it keeps until it is closed.
    fn draft_of<T>(&self, id: &ThreadId, using: impl FnOnce(&mut WindowDraft) -> T) -> T {
        let mut drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
        let take = || WindowDraft::take(&self.layout, id);
        using(drafts.entry(id.clone()).or_insert_with(take))
    }

    fn opening(&self, id: Option<&str>) -> Result<ChatOpening, UserError> {
        let thread = match id {
            Some(id) => {
                let thread = self.thread(id)?;
                self.make_current(&thread)?;
                thread
            }
            None => self.create(&self.seat(None, false)?.roster)?,
        };
        let tail = thread.tail(TAIL)?.messages;
        let seated = self.seat(Some(&thread), false)?;
        let (draft, notes) = self.draft_of(thread.id(), |draft| (draft.text(), draft.unread()));
        Ok(ChatOpening {
            id: thread.id().0.clone(),
            members: names(&seated.roster),
            absent: ready::absent(self.kingdom.config(), self.kingdom.env(), &seated.roster),
            disabled: self.disabled(&thread, &seated),
            mode: Some(self.protocol().name.to_owned()),
            auto_messages: self.kingdom.config().council.auto_messages,
            has_older: tail.first().is_some_and(|m| m.seq > 1),
            draft,
            notes,
            records: recalled(&thread, tail.first().map_or(0, |m| m.seq)),
            tail,
        })
    }

    /// Returns the members of a thread that take no part, unless the user chose others for this chat.
    fn disabled(&self, thread: &Thread, seated: &Seated) -> Vec<(SeatName, String)> {
        if !self.seats_of(Some(thread)).members.is_empty() {
            return Vec::new();
        }
        let project = self.kingdom.project();
        let left_out = self.goes_on(thread).quietly().left_out(project);
        let present = names(&seated.roster);
        let why = |name: &SeatName| {
            if project.agents.contains(name.as_str()) {
                return "held back; `kd trust` allows it".to_owned();
            }
            if left_out.contains(name) {
                return format!(
                    "only the folder adds it; `kd ask --thread {}` asks it",
                    thread.id()
                );
            }
            match seated.absent.iter().find(|(absent, _)| absent == name) {
                Some((_, SeatingError::Unknown { .. })) | None => {
                    "your settings have no such agent".to_owned()
                }
                Some((_, other)) => other.to_string(),
            }
        };
        let out = thread.members().into_iter();
        let out = out.filter(|name| !present.contains(name));
        out.map(|name| {
            let why = why(&name);
            (name, why)
        })
        .collect()
    }

    /// The members that a thread lacks, as an event for the screen that shows it.
    fn held_event(&self, left_out: &[SeatName]) -> Option<Event> {
        let members: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        let settings = Vec::new();
        (!members.is_empty() && self.request.seats.members.is_empty())
            .then_some(Event::HeldBack { settings, members })
    }

    fn written(&self, id: &str, file: Option<&str>) -> Result<String, UserError> {
        let thread = self.thread(id)?;
        let path = file.map_or_else(|| PathBuf::from(format!("{id}.md")), PathBuf::from);
        self.export_to(&thread, &path)?;
        Ok(path.display().to_string())
    }

    /// Writes a thread to a file, in the form that its name asks for. Only an earlier export of this thread is replaced.
    ///
    /// # Errors
    /// If it cannot be written, or something else is there.
    pub fn export_to(&self, thread: &Thread, path: &std::path::Path) -> Result<(), UserError> {
        let (env, format) = (self.kingdom.env(), Format::of_name(path)?);
        let file = env.folder()?.join(path);
        if file.exists() && !export::is_of(thread, &file) {
            let what = format!("{} exists and is no export of this thread", path.display());
            return Err(UserError::usage(what)
                .next("give another name after /export, or move the file away first"));
        }
        outfile::write_with(path, env, |out| export::write(thread, format, env, out))
    }
}

/// Says how the members of a thread differ from the members in the settings. Another order of the same members is
/// reported only where turns follow that order.
fn differing(here: &[SeatName], own: &[SeatName], in_order: bool) -> Option<String> {
    let sorted = |names: &[SeatName]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    let same = sorted(here) == sorted(own);
    if here == own || (same && !in_order) {
        return None;
    }
    let list = |names: &[SeatName]| {
        let names: Vec<&str> = names.iter().map(SeatName::as_str).collect();
        names.join(", ")
    };
    if same {
        return Some(format!(
            "the members of this thread speak in the order {}; that of your settings is {}: /new starts a thread with the order \
             of your settings",
            list(here),
            list(own)
        ));
    }
    Some(format!(
        "the members of this thread are {}; your settings name {}: /new starts a thread with the members of your settings",
        list(here),
        list(own)
    ))
}

/// Returns the data of a thread's log about the messages from a number on. Returns nothing if the log cannot be read;
/// the messages are then shown without these data. Tokens and money in a log of another user are ignored.
fn recalled(thread: &Thread, from: u32) -> Vec<Record> {
    let mut records = kd_store::log::turns_since(thread, from).unwrap_or_default();
    if !records.is_empty() && !kd_store::log::is_own(thread) {
        for record in &mut records {
            if let Event::TurnFinished { usage, .. } = &mut record.event {
                *usage = None;
            } else if let Event::TurnFailed { failure, .. } = &mut record.event {
                failure.used = None;
            }
        }
    }
    records
}

/// Tells how to finish the deliberation of a thread, if it has not ended.
fn offered(thread: &Thread) -> Option<Event> {
    resume::offer(thread).map(|text| Event::Noticed { text })
}

impl ChatHost for Chat {
    fn open(&self, id: Option<&str>) -> Result<ChatOpening, UserError> {
        self.opening(id)
    }

    fn join(&self, id: &str) -> Joining {
        let mut left_out = Vec::new();
        let mut differs = Vec::new();
        let opened = self.thread(id).and_then(|thread| {
            left_out = self.goes_on(&thread).left_out(self.kingdom.project());
            differs = self.differs(&thread);
            let seated = self.seat(Some(&thread), false)?;
            Ok((thread, seated.roster))
        });
        let (engine, held) = (self.engine.clone(), self.held_event(&left_out));
        let (config, seats) = (self.kingdom.config().clone(), &self.request.seats);
        let (offline, seed) = (self.request.terms.offline, seats.seed);
        let env = self.kingdom.env().quiet(true);
        let layout = self.layout.clone();
        Box::pin(async move {
            let (thread, roster) = opened?;
            // Reads the whole thread while the screen is shown.
            let joining = tokio::task::spawn_blocking(move || {
                ready::make_ready_for(&config, offline, &env, &roster, [])?;
                let queue = layout.queue_folder(thread.path());
                let readers = seating::readers(roster.members());
                let open = conversation(&config, roster, &thread, seed);
                let told = held.into_iter().chain(differs).chain(offered(&thread));
                let told = told.chain(readers.map(|text| Event::Noticed { text }));
                let engine = engine.telling(told);
                Ok(engine.join_from_now(thread, open, queue.as_deref())?)
            });
            joining
                .await
                .map_err(|e| {
                    let what = format!("the thread could not be opened: {e}");
                    UserError::new(ErrorKind::Engine, what)
                })?
                .map_err(|e: UserError| match (e.kind, &e.next) {
                    (ErrorKind::Engine, Some(next)) => {
                        UserError::new(e.kind, format!("{}: {next}", e.what))
                    }
                    _ => e,
                })
        })
    }

    fn aside(
        &self,
        id: &str,
        way: Way,
        question: Option<String>,
        muted: &[SeatName],
    ) -> Result<Aside, UserError> {
        let thread = self.thread(id)?;
        let seated = self.seat(Some(&thread), false)?;
        self.aside_in(&thread, &seated.roster, (way, question), muted, true)
    }

    fn attach(
        &self,
        body: &str,
        typed: &str,
        members: &[SeatName],
        agreed: bool,
    ) -> Result<Said, Unsaid> {
        Chat::attach(self, body, typed, members, agreed)
    }

    fn weigh(&self, typed: &str, members: &[SeatName]) -> Option<String> {
        let found = Attaching::find(typed, members, &[], self.kingdom.env()).ok()?;
        found.line(&self.prices(typed, members))
    }

    fn older(&self, id: &str, before: u32, most: usize) -> Result<Older, UserError> {
        let thread = self.thread(id)?;
        let (read, has_more) = thread.before(before, most)?;
        let messages: Vec<Message> = settled(&read.messages).into_iter().cloned().collect();
        let first = messages.first().map_or(0, |message| message.seq);
        Ok(Older {
            records: recalled(&thread, first),
            messages,
            has_more,
        })
    }

    fn newer(&self, id: &str, after: u32) -> Result<Vec<Message>, UserError> {
        let thread = self.thread(id)?;
        Ok(thread.since(after)?.messages)
    }

    fn threads(&self) -> Result<Vec<ThreadRow>, UserError> {
        self.recent(THREADS_MAX)
    }

    fn files(&self, begun: &str) -> Vec<String> {
        files::beginning_with(begun, self.kingdom.env())
    }

    fn reseat(&self, id: &str, change: &Seating) -> Result<String, UserError> {
        let thread = self.thread(id)?;
        Chat::reseat(self, &thread, change, true)
    }

    fn recall(&self, id: &str, from: u32) -> Vec<Record> {
        let thread = self.thread(id);
        thread.map_or_else(|_| Vec::new(), |thread| recalled(&thread, from))
    }

    fn keep_draft(&self, id: &str, text: &str) {
        // A draft that cannot be saved does not stop the user from typing.
        let _ = self.draft_of(&ThreadId(id.to_owned()), |draft| draft.keep(text));
    }

    fn remember(&self, text: &str) {
        // A sent message needs no draft either: it is in the thread.
        let _ = typed::remember(&self.layout, text);
    }

    fn fork(&self, id: &str, fork: Fork) -> Result<String, UserError> {
        let forked = self
            .thread(id)
            .and_then(|thread| self.fork_of(&thread, fork));
        Ok(forked?.id().0.clone())
    }

    fn mark(&self, id: &str, word: &str, live: &Report) -> Result<String, UserError> {
        let marked = self
            .thread(id)
            .and_then(|thread| self.mark_in(&thread, word, live));
        Ok(marked?.line())
    }

    fn export(&self, id: &str, file: Option<&str>) -> Result<String, UserError> {
        self.written(id, file)
    }

    fn spill(&self, text: &str) -> Result<String, UserError> {
        let path = typed::keep_copied(&self.layout, text)
            .map_err(|e| UserError::new(ErrorKind::Io, format!("nothing could be copied: {e}")))?;
        Ok(path.display().to_string())
    }

    fn shell(&self, line: &str) -> std::io::Result<shell::Output> {
        shell::run(line, self.kingdom.env())
    }

    fn var(&self, name: &str) -> Option<String> {
        self.kingdom.env().var(name)
    }
}
