//! A question to the council: seats it, decides whom to ask, and opens the session.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use crate::request::{Ask, Question, ThreadChoice};
use crate::seating::{self, REVIEW, has_hands};
use crate::{forks, output, ready, secrets, threads, trust};
use jiff::Timestamp;
use kd_core::config::Config;
use kd_core::cost::Cost;
use kd_core::last_round::RoundKind;
use kd_core::media::Attachment;
use kd_core::mention::mentions;
use kd_core::protocols::ProtocolKind;
use kd_core::seating::Seated;
use kd_core::secrets::Secrets;
use kd_core::spending::{Ceiling, Price};
use kd_core::{
    Address, Budget, Event, LastRound, Member, Op, OpenCouncil, Roster, SeatName, ThreadId,
};
use kd_engine::{Session, agents};
use kd_store::meta::COUNCIL;
use kd_store::{Durability, Elsewhere, Layout, Lease, Thread};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use tempfile::TempDir;

impl Kingdom {
    /// Asks the council a question: seats it, opens or continues a thread, and starts its session. Must be called inside a
    /// tokio runtime.
    ///
    /// # Errors
    /// If no member can answer, or the thread cannot be opened.
    pub fn ask(&self, ask: Ask, question: impl Into<Question>) -> Result<Started, UserError> {
        self.council(ask)?.asked(question.into())?.start()
    }

    /// Seats a council for a question that is not known yet.
    ///
    /// # Errors
    /// If a member does not exist or is held back, or the thread cannot be read.
    pub fn council(&self, ask: Ask) -> Result<Council<'_>, UserError> {
        Council::seat(self, ask, None)
    }

    /// Seats those who review a change.
    ///
    /// # Errors
    /// Those of [`Kingdom::council`].
    pub fn reviewers(&self, ask: Ask) -> Result<Council<'_>, UserError> {
        Council::seat(self, ask, Some(REVIEW))
    }
}

/// An open session, and the operation that asks the question.
pub struct Started {
    /// The session.
    pub session: Session,
    /// The operation to send into it.
    pub say: Op,
    /// Notices for the user to read before the answer, for example settings that are held back.
    pub notices: Vec<String>,
    /// The thread.
    pub opened: Opened,
    /// Whether one member acts with the tools of a program.
    pub acts: bool,
    /// Whether the answer is put into a JSON schema too.
    pub formats: bool,
    /// Held until the session is over: only one process may continue a deliberation.
    pub lease: Option<Lease>,
    /// The folder of a thread that only this session uses, removed when dropped.
    pub scratch: Option<TempDir>,
}

impl Started {
    /// A session in a thread that lasts, without tools of a program.
    pub(crate) fn new(session: Session, say: Op, opened: Opened) -> Self {
        Started {
            session,
            say,
            notices: Vec::new(),
            opened,
            acts: false,
            formats: false,
            lease: None,
            scratch: None,
        }
    }
}

/// The thread of a session.
#[derive(Debug)]
pub struct Opened {
    /// The place where it is stored.
    pub layout: Layout,
    /// Its ID.
    pub id: ThreadId,
    /// Its folder.
    pub folder: PathBuf,
    /// Whether it was created for this session.
    pub is_new: bool,
    /// Whether it became the current thread, once that is known.
    made_current: Option<Receiver<Result<(), kd_store::Error>>>,
    /// The number of messages it was created with: a fork has those of its source.
    begun: usize,
}

impl Opened {
    /// Describes the thread of a session; `is_new` means that it was created for this session. Protects the folder that
    /// the session writes to.
    pub(crate) fn of(layout: Layout, thread: &Thread, is_new: bool) -> Self {
        layout.protect();
        Self {
            layout,
            id: thread.id().clone(),
            folder: thread.path().to_path_buf(),
            is_new,
            made_current: None,
            begun: thread.meta().lineage().map_or(0, |of| of.messages as usize),
        }
    }

    /// Makes the thread the current one.
    pub(crate) fn make_current(&mut self) {
        let (tell, made_current) = mpsc::channel();
        let _ = tell.send(self.layout.set_current_thread(&self.id));
        self.made_current = Some(made_current);
    }

    /// Removes the folder of a new thread if the question could not be written to it.
    pub fn discard_unsaid(&self) {
        if self.is_new
            && let Ok(thread) = Thread::open_folder(&self.folder)
        {
            thread.discard_unsaid(&self.layout, self.begun);
        }
    }

    /// Returns the reason why the thread did not become the current one, if that failed.
    pub fn not_made_current(&self) -> Option<UserError> {
        match self.made_current.as_ref()?.try_recv() {
            Ok(Err(error)) => Some(error.into()),
            _ => None,
        }
    }

    /// Removes agents that have ended from the members' states.
    pub fn tidy(&self) {
        // States are only for display.
        let _ = agents::tidy(&self.layout);
    }
}

/// A council that is seated for a question.
pub struct Council<'k> {
    kingdom: &'k Kingdom,
    ask: Ask,
    config: Config,
    phase: String,
    old: Option<Thread>,
    seated: Seated,
    left_out: Vec<SeatName>,
}

impl<'k> Council<'k> {
    /// Seats the council. `phase` is the phase of a new thread; `None` means a council.
    pub(crate) fn seat(
        kingdom: &'k Kingdom,
        mut ask: Ask,
        phase: Option<&str>,
    ) -> Result<Self, UserError> {
        let (env, project) = (kingdom.env(), kingdom.project());
        let mut config = kingdom.config().clone();
        ask.terms.lay_over(&mut config);
        let old = continued(&ask.thread, kingdom)?;
        // Known before any program is started.
        config.council.private |= old.as_ref().is_some_and(|t| t.meta().is_private());
        let id = ask.thread.by_user();
        let thread = old
            .as_ref()
            .and_then(|thread| Some(trust::GoesOn::of(&kingdom.layout()?, thread, id)));
        let phase = match (phase, &old) {
            (Some(phase), _) => phase.to_owned(),
            (None, old) => old
                .as_ref()
                .map_or(COUNCIL.into(), |t| t.meta().phase.clone()),
        };
        if phase == REVIEW && ask.seats.members.is_empty() && old.is_none() {
            ask.seats.members.clone_from(&config.council.review_members);
        }
        let named = trust::Named {
            members: &ask.seats.members,
            asked: &ask.to,
            thread,
            reviews: phase == REVIEW,
        };
        let left_out = match &named.thread {
            Some(thread) => thread.left_out(project),
            None => Vec::new(),
        };
        let members = trust::check(project, named, env)?;
        if ask.seats.members.iter().any(|name| name.trim().is_empty()) {
            return Err(UserError::usage("--members has an empty name").next(
                "kd ask --members claude,codex \"…\"; `kd doctor` lists the members found here",
            ));
        }
        let seated =
            seating::seat(&config, ask.seats.clone(), members.as_deref()).map_err(|error| {
                error.next("`kd ask --members …` with these names, or `kd init` to set up others")
            })?;
        if let Some(absent) = seating::absent(&seated, members.as_deref().unwrap_or_default()) {
            env.warn(absent);
        }
        Ok(Self {
            kingdom,
            ask,
            config,
            phase,
            old,
            seated,
            left_out,
        })
    }

    /// Returns the settings of the question.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the members.
    pub fn members(&self) -> &[Member] {
        self.seated.roster.members()
    }

    /// The members that the thread lacks because they are held back.
    pub fn left_out(&self) -> &[SeatName] {
        &self.left_out
    }

    /// Prepares a question: masks secrets, decides which members it addresses, and checks that they can answer. Writes
    /// nothing yet.
    ///
    /// # Errors
    /// If a name means nobody, or nobody can answer.
    pub fn asked(self, mut question: Question) -> Result<Prepared, UserError> {
        let (env, project) = (self.kingdom.env(), self.kingdom.project());
        let masked = self.secrets();
        secrets::mask(&masked, &mut question, env);
        let to = match &self.ask.address {
            Some(exactly) => Address::parse(exactly),
            None => {
                let held = project.agents.iter();
                let held: Vec<SeatName> =
                    held.filter_map(|name| SeatName::new(name).ok()).collect();
                let said = mentions(&question.asked, &held.iter().collect::<Vec<_>>());
                trust::check_named(project, said.seats.iter().map(SeatName::as_str))?;
                let to = seating::address(&question, &self.ask.to, &self.seated.roster)?;
                if let Some(unseated) =
                    seating::unseated(&question, &self.config, &self.seated.roster)
                {
                    env.note(unseated);
                }
                // The council reports it for messages to everyone.
                if to != Address::All
                    && let Some(miss) = seating::near_miss(&question, &self.seated.roster)
                {
                    env.note(miss);
                }
                to
            }
        };
        let Question { text, media, .. } = question;
        let prepared = self.prepared(Op::Say { body: text, to }, masked, None)?;
        Ok(Prepared { media, ..prepared })
    }

    /// Prepares to ask again the members that did not answer the newest question, or only `seat`.
    ///
    /// # Errors
    /// If members are still answering, or the newest question was not asked to a council.
    pub fn again(self, seat: Option<SeatName>) -> Result<Prepared, UserError> {
        let last = match &self.old {
            Some(thread) => retriable(thread)?,
            None => None,
        };
        let masked = self.secrets();
        self.prepared(Op::Retry { seat }, masked, last)
    }

    /// Prepares to record that the user chooses a member's newest answer. Nobody is asked.
    ///
    /// # Errors
    /// If members are still answering.
    pub fn choosing(self, seat: SeatName) -> Result<Prepared, UserError> {
        let running = self.old.as_ref().map(threads::running).transpose()?;
        if let Some(seat) = running.iter().flatten().next() {
            let what = format!("{seat} is still answering");
            return Err(UserError::new(ErrorKind::Busy, what).next("choose when it has ended"));
        }
        let masked = self.secrets();
        self.prepared(Op::Choose { seat }, masked, None)
    }

    fn secrets(&self) -> Secrets {
        let allow = self.ask.terms.allow_secrets;
        secrets::of(&self.config, allow, self.kingdom.env())
    }

    fn prepared(
        self,
        op: Op,
        masked: Secrets,
        last: Option<LastRound>,
    ) -> Result<Prepared, UserError> {
        let (env, roster) = (self.kingdom.env(), &self.seated.roster);
        for notice in &self.kingdom.loaded().notices {
            env.note(notice);
        }
        let writers: Vec<&str> = roster
            .members()
            .iter()
            .filter(|member| member.writable && has_hands(member))
            .map(|member| member.name.as_str())
            .collect();
        if !writers.is_empty() {
            env.note(format!("may change files here: {}", writers.join(", ")));
        }
        seating::note_readers(roster, env);
        let to = match &op {
            Op::Say { to, .. } => to.clone(),
            // Nobody is asked.
            Op::Choose { .. } => Address::King,
            _ => Address::All,
        };
        let asked = roster.members().iter();
        ready::make_ready_for(
            &self.config,
            self.ask.terms.offline,
            env,
            roster,
            asked.filter(|member| to.is_for(&member.name)),
        )?;
        let engine = self.kingdom.engine(&self.config, masked);
        let asks = matches!(op, Op::Say { .. });
        let schema = self.ask.terms.output.filter(|_| asks);
        let found = self.kingdom.layout();
        let conclude = self.config.council.conclude && !self.ask.no_conclusion;
        Ok(Prepared {
            op,
            engine: engine
                .telling(held_event(self.kingdom, &self.left_out))
                .formatting(output::shared(schema)),
            env: env.clone(),
            in_new_project: found.is_none(),
            place: match (self.old, found) {
                (Some(thread), Some(layout)) if self.ask.thread.forks() => {
                    Place::Fork(layout, Box::new(thread))
                }
                (Some(thread), Some(layout)) => Place::Old(layout, Box::new(thread)),
                (_, found) => Place::New {
                    phase: self.phase,
                    found,
                },
            },
            seated: self.seated,
            config: self.config,
            conclude,
            seed: self.ask.seats.seed,
            last,
            media: Vec::new(),
        })
    }
}

/// Returns the event with which a session begins if settings of a folder are held back; `left_out` are members that are
/// missing from a thread.
pub(crate) fn held_event(kingdom: &Kingdom, left_out: &[SeatName]) -> Option<Event> {
    if !kingdom.announces() {
        return None;
    }
    let project = kingdom.project();
    let (mut settings, mut members) = (Vec::new(), Vec::new());
    if project.holds_back() {
        settings.extend(project.held.iter().map(|setting| setting.path.to_string()));
        members.extend(project.agents.iter().cloned());
    }
    for name in left_out.iter().map(ToString::to_string) {
        if !members.contains(&name) {
            members.push(name);
        }
    }
    let nothing = settings.is_empty() && members.is_empty();
    (!nothing).then_some(Event::HeldBack { settings, members })
}

/// The thread to continue, if any.
pub(crate) fn continued(
    choice: &ThreadChoice,
    kingdom: &Kingdom,
) -> Result<Option<Thread>, UserError> {
    let Some(id) = choice.wanted() else {
        return Ok(None);
    };
    let place = match kingdom.layout() {
        Some(layout) => threads::resolve(&layout, Some(id))?,
        None => threads::find(kingdom.env(), Some(id))?.1,
    };
    Ok(Some(Thread::open(&place)?))
}

/// The thread of a question.
enum Place {
    /// One on disk.
    Old(Layout, Box<Thread>),
    /// A fork of one on disk.
    Fork(Layout, Box<Thread>),
    /// A new one of this phase, in the project if there is one.
    New {
        phase: String,
        found: Option<Layout>,
    },
}

/// A question that can be asked.
pub struct Prepared {
    op: Op,
    seated: Seated,
    place: Place,
    config: Config,
    engine: kd_engine::Engine,
    env: Env,
    in_new_project: bool,
    conclude: bool,
    seed: Option<u64>,
    last: Option<LastRound>,
    media: Vec<Attachment>,
}

impl Prepared {
    /// The operation that asks.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// The members.
    pub fn roster(&self) -> &Roster {
        &self.seated.roster
    }

    /// Whether the built-in model answers for everyone because nothing is configured.
    pub fn is_built_in(&self) -> bool {
        self.seated.built_in
    }

    /// Whether the folder held no project.
    pub fn is_in_new_project(&self) -> bool {
        self.in_new_project
    }

    /// Opens or creates the thread and makes it the current one, for a host that asks in another process.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn enter(self) -> Result<(Layout, Thread), UserError> {
        let (layout, thread, new) = enter(self.place, &self.seated.roster, &self.env)?;
        let opened = Opened::of(layout.clone(), &thread, new);
        let enter = || -> Result<(), UserError> {
            kd_store::attachments::keep(thread.path(), &self.media)?;
            if new {
                layout.set_current_thread(thread.id())?;
            }
            Ok(())
        };
        enter().inspect_err(|_| opened.discard_unsaid())?;
        Ok((layout, thread))
    }

    /// Opens the session. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the thread cannot be created or opened.
    pub fn start(self) -> Result<Started, UserError> {
        let roster = self.seated.roster;
        // Programs start while the thread is created.
        self.engine
            .prepare(at_once(&self.op, &roster, self.config.council.mode));
        let (layout, thread, new) = enter(self.place, &roster, &self.env)?;
        let (tell, made_current) = mpsc::channel();
        let opened = Opened {
            made_current: Some(made_current),
            ..Opened::of(layout.clone(), &thread, new)
        };
        let kept = kd_store::attachments::keep(thread.path(), &self.media);
        if let Err(error) = kept {
            opened.discard_unsaid();
            return Err(error.into());
        }
        let open = opening(&self.config, roster, &thread, self.conclude, self.seed);
        let mut open = open.inspect_err(|_| opened.discard_unsaid())?;
        open.last = self.last;
        let id = thread.id().clone();
        // This prepares the next question; members do not wait for it.
        let then = move || {
            if new {
                let _ = tell.send(layout.set_current_thread(&id));
            }
        };
        match self.engine.open_and(thread, open, then) {
            Ok(session) => Ok(Started::new(session, self.op, opened)),
            Err(error) => {
                opened.discard_unsaid();
                Err(error.into())
            }
        }
    }
}

/// Returns the thread, created if necessary, and whether it must still be made the current one.
fn enter(place: Place, roster: &Roster, env: &Env) -> Result<(Layout, Thread, bool), UserError> {
    match place {
        Place::Old(layout, thread) => {
            env.tell_what_git_sees(&layout);
            Ok((layout, *thread, false))
        }
        Place::Fork(layout, source) => {
            env.tell_what_git_sees(&layout);
            let forked = forks::to_ask_in(&layout, &source, env)?;
            Ok((layout, forked, true))
        }
        Place::New { phase, found } => {
            let layout = match found {
                Some(layout) => {
                    env.tell_what_git_sees(&layout);
                    told(layout, "the thread is", env)
                }
                None => new_layout(env)?,
            };
            let thread = Thread::create_for(&layout, &names(roster), &phase)?;
            let thread = thread.with_durability(durability(env));
            Ok((layout, thread, true))
        }
    }
}

/// The newest round of a thread as its log tells it, if its members may be asked again.
fn retriable(thread: &Thread) -> Result<Option<LastRound>, UserError> {
    if let Some(seat) = threads::running(thread)?.first() {
        let what = format!("{seat} is still answering");
        return Err(UserError::new(ErrorKind::Busy, what)
            .next("`kd council watch` follows it; retry when it has ended"));
    }
    let newest = threads::newest(thread, 1)?;
    let turns = threads::turns(&newest.messages);
    let turn = turns.last().copied().unwrap_or_default();
    let last = threads::last_round(thread, turn)?;
    let king = turn.first().filter(|m| m.is_king());
    let kind = match (&last, king) {
        (Some(last), _) => last.kind,
        (None, king) => king.map(RoundKind::of).unwrap_or_default(),
    };
    if kind == RoundKind::Council {
        return Ok(last);
    }
    let command = kind.command();
    let what = format!(
        "the newest question was asked with `kd {command}`; `kd council retry` asks members of a council again"
    );
    let again = match kind {
        RoundKind::Debate => format!("`kd think --thread {} \"…\"` asks again", thread.id()),
        RoundKind::Review => "`kd review` reviews again, in a new thread".to_owned(),
        RoundKind::Acting => "the program that asked `kd serve` can ask again".to_owned(),
        _ => "`kd deliberate \"…\"` asks again, in a new thread".to_owned(),
    };
    Err(UserError::new(ErrorKind::NotACouncil, what).next(again))
}

/// Returns the thread of a question: `old`, a fork of it if `choice` asks for one, or a new one. Also whether it was
/// created for the question. A fork is not the current thread yet.
pub(crate) fn entered(
    choice: &ThreadChoice,
    old: Option<Thread>,
    roster: &Roster,
    env: &Env,
) -> Result<(Layout, Thread, bool), UserError> {
    let Some(old) = old else {
        let (layout, thread) = new_thread(roster, env)?;
        return Ok((layout, thread, true));
    };
    let layout = env.layout()?;
    match choice.forks() {
        true => {
            let forked = forks::to_ask_in(&layout, &old, env)?;
            Ok((layout, forked, true))
        }
        false => Ok((layout, old, false)),
    }
}

/// A new thread for these members.
pub(crate) fn new_thread(roster: &Roster, env: &Env) -> Result<(Layout, Thread), UserError> {
    let layout = new_layout(env)?;
    let thread = Thread::create(&layout, &names(roster))?;
    Ok((layout, thread.with_durability(durability(env))))
}

/// How well a new thread survives a power failure. One of a fleet is in the database when its result is.
fn durability(env: &Env) -> Durability {
    match env.is_in_fleet() {
        true => Durability::Buffered,
        false => Durability::default(),
    }
}

/// The names of the members.
pub(crate) fn names(roster: &Roster) -> Vec<SeatName> {
    roster.members().iter().map(|m| m.name.clone()).collect()
}

/// Returns the place where new threads are created.
///
/// # Errors
/// If the folder cannot be created.
pub fn new_layout(env: &Env) -> Result<Layout, UserError> {
    Ok(told(env.make_layout()?.layout, "the thread is", env))
}

/// Returns the place unchanged. Notifies the host if files created there are not stored in the working folder.
pub fn told(layout: Layout, what_is: &str, env: &Env) -> Layout {
    if let Some(why) = layout.elsewhere() {
        let place = format!("{what_is} saved in {}", layout.kd().display());
        env.note(match why {
            // The user was notified of the reason when the folder was skipped.
            Elsewhere::PassedOver(_) => place,
            why => format!("{why}; {place}"),
        });
    }
    layout
}

/// The members whose turn comes at once.
fn at_once<'a>(
    op: &Op,
    roster: &'a Roster,
    mode: ProtocolKind,
) -> impl Iterator<Item = &'a Member> {
    let to = match op {
        Op::Say { to, .. } => to.clone(),
        _ => Address::King,
    };
    let alone = matches!(&to, Address::Seats(seats) if seats.len() == 1);
    let members = roster.members().iter();
    members.filter(move |m| (alone || mode.at_once) && to.is_for(&m.name))
}

/// A council that answers one question in a thread.
///
/// # Errors
/// If the thread cannot be read.
pub fn opening(
    config: &Config,
    roster: Roster,
    thread: &Thread,
    conclude: bool,
    seed: Option<u64>,
) -> Result<OpenCouncil, UserError> {
    let limits = Budget {
        // One question, one round of answers: a discussion is requested in the configuration.
        auto_messages: config.council.auto_messages.or(Some(0)),
        conclusion: conclusion_price(config, &roster),
        ..Budget::default()
    };
    Ok(OpenCouncil {
        history: thread.messages()?.messages,
        limits,
        conclude,
        ..conversation(config, roster, thread, seed)
    })
}

/// A council that talks in a thread until the user leaves.
pub fn conversation(
    config: &Config,
    roster: Roster,
    thread: &Thread,
    seed: Option<u64>,
) -> OpenCouncil {
    OpenCouncil {
        thread: thread.id().clone(),
        protocol: config.council.mode,
        prompts: seating::prompts(config, &roster, &thread.meta().phase),
        history: Vec::new(),
        seed: seed.unwrap_or_else(clock_seed),
        limits: Budget {
            auto_messages: config.council.auto_messages,
            ..Budget::default()
        },
        conclude: false,
        roster,
        queue: None,
        last: None,
    }
}

/// The highest price of a token of the conclusion, where a limit is set: members may write it in place of the chair.
fn conclusion_price(config: &Config, roster: &Roster) -> Option<Price> {
    if config.limits.ceiling() == Ceiling::default() {
        return None;
    }
    let who = roster.chair().into_iter().chain(roster.members());
    let prices = who.map(|member| Cost::of(config, member).price().unwrap_or_default());
    prices.reduce(|a, b| Price {
        input: a.input.max(b.input),
        output: a.output.max(b.output),
    })
}

/// A seed for a run whose user gave none; it is recorded where a run can be replayed. A whole number that every reader of
/// JSON keeps.
pub fn clock_seed() -> u64 {
    Timestamp::now().as_nanosecond() as u64 & ((1 << 53) - 1)
}

impl From<kd_engine::Error> for UserError {
    fn from(error: kd_engine::Error) -> Self {
        let kind = match error {
            kd_engine::Error::Private(_) => ErrorKind::Private,
            _ => ErrorKind::Engine,
        };
        UserError::new(kind, error.to_string()).next(error.hint())
    }
}
