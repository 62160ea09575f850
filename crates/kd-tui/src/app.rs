//! The state of the screen and its transitions. Takes messages (keys, records, time); returns effects for the loop to
//! carry out. Pure: no clock, no terminal, no engine.

mod chat;
mod search;
mod sending;
mod slash;

pub use self::search::Search;
pub(crate) use self::sending::Asks;
pub use self::sending::{Consent, Naming, Output};
use crate::compare::Comparison;
use crate::complete::Candidates;
use crate::editor::Editor;
use crate::keymap::{Action, Keymap};
use crate::keys::{Button, Code, Input, Key, Reply};
use crate::log::Log;
use crate::merge::{Merge, Merged};
use crate::paint::Link;
use crate::panels::{COLUMNS_MAX, Frame, Look};
use crate::picker::{Picked, Picker};
use crate::select::{Area, Selection};
use crate::text::clean;
use crate::text::style::Styles;
use crate::theme::Theme;
use kd_app::words;
use kd_app::{ChatOpening, Older, Said, ThreadRow, Unsaid};
use kd_core::media;
use kd_core::mention::{self, mentions};
use kd_core::protocols;
use kd_core::slash::{Fork, Seating, Way};
use kd_core::view::View;
use kd_core::{Event, Message, Op, Record, SeatName, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Time for which a toast is shown.
const TOAST: Duration = Duration::from_secs(6);
/// Time after which a key removes it: it was read.
const READ: Duration = Duration::from_secs(2);
/// How often the log is read for the data of a message of another program.
const RECALLS_MAX: u8 = 4;
/// Time within which a second Ctrl+C leaves the chat.
const TWICE: Duration = Duration::from_secs(2);

/// Returns the duration until a time, rounded up so that the time has passed by then.
fn remaining(now: Timestamp, until: Timestamp) -> Duration {
    crate::panels::since(now, until) + Duration::from_millis(1)
}

/// The screen's initial settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Colours.
    pub theme: Theme,
    /// Whether glyphs beyond ASCII may be written.
    pub unicode: bool,
    /// The time limit of a member.
    pub gives_up: Option<Duration>,
    /// Time zone for displayed times.
    pub zone: jiff::tz::TimeZone,
    /// Names of modes, for completion.
    pub modes: Vec<&'static str>,
    /// Messages sent in other sessions, oldest first.
    pub sent: Vec<String>,
    /// The keys.
    pub keys: Arc<Keymap>,
    /// How messages are framed.
    pub frame: Frame,
    /// Whether the terminal opens links.
    pub links: bool,
    /// Whether an input that begins with `!` is a shell line.
    pub shell: bool,
    /// Masked in the user's input.
    pub secrets: kd_core::secrets::Secrets,
}

/// Input to the screen.
#[derive(Debug)]
pub enum Msg {
    /// Terminal input.
    Input(Input),
    /// The new size of the terminal: columns and rows.
    Resize(u16, u16),
    /// The current time.
    Now(Timestamp),
    /// A record of the session.
    Record(Arc<Record>),
    /// The screen fell behind: the complete view.
    Lagged(Box<View>),
    /// A thread can be shown; its session follows.
    Opened(Box<ChatOpening>),
    /// The session accepts ops now. Carries messages written meanwhile.
    Ready(Vec<Message>),
    /// The thread cannot be used, and why.
    Failed(String),
    /// Older messages.
    Older(Older),
    /// The data of the thread's log about the messages from a number on, and how often the log was read for them.
    Recalled(u32, u8, Vec<Record>),
    /// Threads to choose from.
    Threads(Vec<ThreadRow>),
    /// A fork is on disk: its ID.
    Forked(String),
    /// The members of the thread were changed; a notice about it.
    Seated(String),
    /// The thread stays open as it is, and why.
    Stays(String),
    /// A notice that something was done.
    Told(String),
    /// A notice that should stay and be readable in full: a line in the log.
    Noted(String),
    /// An action was not done, with the reason: a line in the log, shown in full.
    Refused(String),
    /// Text returned from the editor.
    Edited(String),
    /// The output of this shell line, or why it did not run.
    Ran(String, std::io::Result<Output>),
    /// The files that this input attaches, if it names any.
    Weighed(String, Option<String>),
    /// The message whose files were read, or why it is not sent.
    Attached(Result<Said, Unsaid>),
}

/// An action for the loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send an op to the session.
    Send(Op),
    /// Read the files that a message names.
    Attach {
        /// The message.
        message: Naming,
        /// Whether the user agrees to the question about them.
        agreed: bool,
    },
    /// Look at the files that the input names.
    Weigh(String),
    /// The user is typing a message for these members: start their programs.
    Prepare(Vec<SeatName>),
    /// Answer a question, or the user's last one, in another way.
    Aside(Way, Option<String>),
    /// Open this thread, or a new one.
    Open(Option<String>),
    /// Change who takes part in the thread.
    Seat(Seating),
    /// Fork the thread and open the fork.
    Fork(Fork),
    /// Mark the newest verdict.
    Mark(String),
    /// List the threads.
    ListThreads,
    /// Fetch messages before a number.
    FetchOlder(u32, usize),
    /// Read the thread's log for messages of other programs, from this number on; the log was read this often.
    Recall(u32, u8),
    /// Copy a text to the clipboard; the second string names it.
    Copy(String, String),
    /// Export the thread to a file.
    Export(Option<String>),
    /// Edit a text in the user's editor.
    Edit(String),
    /// Run a shell line.
    Shell(String),
    /// Add a sent message to the history.
    Remember(String),
    /// Notify the user, who is looking elsewhere.
    Notify(String),
    /// Suspend this process until it is continued.
    Suspend,
    /// Repaint everything.
    Redraw,
    /// Leave once the running turns have ended.
    Close,
    /// Leave immediately.
    Leave,
}

/// The content of the screen.
#[derive(Debug)]
pub enum Screen {
    /// The log and the input.
    Chat,
    /// The thread picker.
    Picker(Picker),
    /// The help, starting at this line.
    Help(usize),
    /// The list of keys, starting at this line.
    Keys(usize),
    /// Two answers beside each other.
    Compare(Comparison),
    /// Parts of answers to tick.
    Merge(Merge),
}

/// The state of the screen.
#[derive(Debug)]
pub struct App {
    /// The displayed thread.
    pub log: Log,
    /// The input editor.
    pub editor: Editor,
    /// Completions for the input.
    pub candidates: Option<Candidates>,
    /// A search in sent messages.
    pub search: Option<Search>,
    /// The content of the screen.
    pub screen: Screen,
    /// Colours.
    pub theme: Theme,
    /// The thread's id.
    pub thread: Option<String>,
    /// Whether keys scroll instead of typing.
    pub reading: bool,
    /// Whether Shift+Enter can be distinguished from Enter.
    pub keyboard: bool,
    /// A notice and when it disappears.
    pub toast: Option<(String, Timestamp)>,
    /// Whether the screen is waiting for running turns before it leaves.
    pub leaving: bool,
    /// Whether the user left by Ctrl+C.
    pub interrupted: bool,
    /// Whether something has to be drawn.
    pub dirty: bool,
    /// The links of the last frame.
    pub links: Vec<Link>,
    /// The cards of the last frame.
    pub areas: Vec<Area>,
    /// The text marked with the mouse.
    pub selection: Option<Selection>,
    pub(crate) settings: Settings,
    members: Vec<SeatName>,
    /// Those that could not answer here when the thread was opened, and why.
    pub(crate) absent: Vec<(SeatName, String)>,
    /// Members of the thread that take no part, and why.
    pub(crate) disabled: Vec<(SeatName, String)>,
    unfolded: bool,
    focused: bool,
    now: Timestamp,
    size: (u16, u16),
    /// Ops and asides that wait for the session.
    outbox: Vec<Effect>,
    ready: bool,
    /// Whether another session is starting, with other members or for a fork. Messages wait until it is open.
    changing: bool,
    /// The member that the last change adds. It may be muted because another window had removed it.
    added: Option<SeatName>,
    /// The members that the user has muted, in whatever thread.
    muted: BTreeSet<SeatName>,
    /// Whether the members were prepared for the message being typed.
    prepared: bool,
    /// The time until which a second Ctrl+C leaves.
    armed: Option<Timestamp>,
    /// The time until which a second Esc edits the last message.
    editing: Option<Timestamp>,
    /// The time when the user stopped the members.
    stopped: Option<Timestamp>,
    /// The message sent but not in the thread yet.
    unsaid: Option<String>,
    /// The command whose op is not done or refused yet.
    wished: Option<String>,
    /// Whether the user typed all of the last message.
    is_typed: bool,
    /// The input that looks like a shell line, after the notice that it would be sent as text.
    not_run: Option<String>,
    /// Problems in the settings of the screen.
    wrong: Vec<String>,
    /// Paths in the input that may be files.
    named: Vec<Vec<String>>,
    /// The files that the input attaches.
    pub(crate) attaches: Option<String>,
    /// The message whose files are being read. Later messages wait for it.
    attaching: Option<Naming>,
    /// Messages of this window with their files, and as they were typed; the newest first.
    attached: Vec<(String, String)>,
    /// The question about its files.
    pub(crate) consent: Option<Consent>,
}

impl App {
    /// Creates an empty screen.
    pub fn new(settings: Settings, now: Timestamp) -> Self {
        Self {
            log: Log::default(),
            editor: Editor::new(settings.sent.clone()),
            candidates: None,
            search: None,
            screen: Screen::Chat,
            theme: settings.theme,
            thread: None,
            reading: false,
            keyboard: false,
            toast: None,
            leaving: false,
            interrupted: false,
            dirty: true,
            links: Vec::new(),
            areas: Vec::new(),
            selection: None,
            members: Vec::new(),
            absent: Vec::new(),
            disabled: Vec::new(),
            unfolded: false,
            focused: true,
            now,
            size: (80, 24),
            outbox: Vec::new(),
            ready: false,
            changing: false,
            added: None,
            muted: BTreeSet::new(),
            prepared: false,
            armed: None,
            editing: None,
            stopped: None,
            unsaid: None,
            wished: None,
            is_typed: false,
            not_run: None,
            wrong: Vec::new(),
            named: Vec::new(),
            attaches: None,
            attaching: None,
            attached: Vec::new(),
            consent: None,
            settings,
        }
    }

    /// Sets the problems in the settings of the screen. The user sees them once a thread is open.
    pub fn report(&mut self, wrong: Vec<String>) {
        self.wrong = wrong;
    }

    /// Handles a message; `files` completes paths.
    pub fn update(&mut self, msg: Msg, files: &dyn Fn(&str) -> Vec<String>) -> Vec<Effect> {
        let mut fx = Vec::new();
        match msg {
            Msg::Now(now) => self.pass(now),
            Msg::Input(input) => {
                self.input(input, files, &mut fx);
                self.prepare(&mut fx);
                self.weigh(&mut fx);
            }
            Msg::Resize(columns, rows) => {
                if self.size.0 != columns {
                    // Its lines are wrapped to the new width.
                    self.selection = None;
                }
                self.size = (columns, rows);
                self.dirty = true;
            }
            Msg::Record(record) => self.record(&record, &mut fx),
            Msg::Lagged(view) => {
                self.members.clone_from(&view.members);
                self.log.replace(*view);
                self.dirty = true;
            }
            Msg::Opened(opening) => self.open(*opening),
            Msg::Ready(newer) => {
                self.log.add_newer(newer);
                self.ready = true;
                self.dirty = true;
                self.post(&mut fx);
                // The user may have typed before the thread was open.
                self.prepare(&mut fx);
            }
            Msg::Failed(why) => {
                self.unpost();
                self.give_back();
                self.refuse(why);
                // The message is in the input again.
                self.weigh(&mut fx);
            }
            Msg::Older(older) => {
                self.log.add_older(older);
                self.dirty = true;
            }
            Msg::Recalled(from, times, records) => {
                self.log.view.recall(&records);
                // The program that wrote the message may be slow to log the end of its turn.
                if times < RECALLS_MAX && !self.log.view.knows_turn(from) {
                    fx.push(Effect::Recall(from, times));
                }
                self.dirty = true;
            }
            Msg::Threads(rows) => {
                self.screen = Screen::Picker(Picker::new(rows, self.thread.clone()));
                self.dirty = true;
            }
            Msg::Forked(id) => {
                self.tell(format!("this is {id}, a fork; /thread goes back"));
                fx.push(Effect::Open(Some(id)));
            }
            Msg::Seated(what) => {
                self.tell(what);
                fx.push(Effect::Open(self.thread.clone()));
            }
            Msg::Stays(why) => {
                self.changing = false;
                self.not_done(why);
                self.post(&mut fx);
            }
            Msg::Told(what) => self.tell(what),
            Msg::Noted(what) => self.note(what),
            Msg::Refused(why) => self.not_done(why),
            Msg::Weighed(typed, line) => {
                let known: Vec<&SeatName> = self.members.iter().collect();
                if mention::paths(&typed, &known) == self.named {
                    self.attaches = line.map(|line| match self.editor.typed().is_empty() {
                        true => {
                            "attaches nothing: the text has words that you did not type".to_owned()
                        }
                        false => line,
                    });
                    self.dirty = true;
                }
            }
            Msg::Attached(read) => {
                self.read(read, &mut fx);
                self.weigh(&mut fx);
            }
            Msg::Ran(line, output) => {
                self.ran(&line, output);
                self.dirty = true;
            }
            Msg::Edited(text) => {
                self.editor.set(text.trim_end_matches('\n'));
                self.dirty = true;
            }
        }
        fx
    }

    /// Returns the loaded messages as text, for the scrollback; `None` without any.
    pub fn transcript(&self) -> Option<String> {
        let look = self.look();
        let mut cards: Vec<String> = self
            .log
            .newest_first()
            .map(|m| {
                let (mark, style) = look.speaker(&m.from);
                let name = format!("{mark} {}", clean::line(&m.from));
                let shown = m.shown();
                let shown = match m.is_king() {
                    true => media::without_copies(shown),
                    false => shown,
                };
                let body = clean::text(&shown).trim_end().to_owned();
                format!("{}\n{body}\n", look.styles.paint(style, &name))
            })
            .collect();
        cards.reverse();
        (!cards.is_empty()).then(|| cards.join("\n") + "\n")
    }

    /// Returns the look of panels.
    pub fn look(&self) -> Look {
        Look {
            styles: Styles {
                color: self.theme.is_coloured(),
                unicode: self.settings.unicode,
            },
            columns: usize::from(self.size.0).min(COLUMNS_MAX),
            wide: self.size.0.into(),
            members: self.members.clone(),
            now: self.now,
            unfolded: self.unfolded,
            gives_up: self.settings.gives_up,
            zone: self.settings.zone.clone(),
            keys: self.settings.keys.clone(),
            frame: self.settings.frame,
        }
    }

    /// Returns the members, in order.
    pub fn members(&self) -> &[SeatName] {
        &self.members
    }

    /// Returns whether the session accepts ops.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Returns the columns of the input's text.
    pub fn input_columns(&self) -> usize {
        usize::from(self.size.0).saturating_sub(3).max(2)
    }

    /// Returns the time until something changes without input; `None` if nothing does.
    pub fn next_change(&self) -> Option<Duration> {
        let toast = self
            .toast
            .as_ref()
            .map(|(_, until)| remaining(self.now, *until));
        let second = self.log.is_alive().then(|| {
            let into = u64::from(self.now.subsec_nanosecond().unsigned_abs());
            Duration::from_nanos(1_000_000_000 - into.min(999_999_999))
        });
        let armed = self.armed.map(|until| remaining(self.now, until));
        toast.into_iter().chain(second).chain(armed).min()
    }

    /// Returns a request for older messages if the reader is near the oldest loaded ones.
    pub fn wants_older(&mut self) -> Option<Effect> {
        let (before, most) = self.log.wants_older()?;
        Some(Effect::FetchOlder(before, most))
    }

    fn pass(&mut self, now: Timestamp) {
        if self.log.is_alive() && now.as_second() != self.now.as_second() {
            self.dirty = true;
        }
        self.now = now;
        if self.toast.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.toast = None;
            self.dirty = true;
        }
        if self.armed.is_some_and(|until| until <= now) {
            self.armed = None;
            self.dirty = true;
        }
    }

    /// Returns whether Ctrl+C leaves now.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.is_some()
    }

    /// Returns whether Esc stops something.
    pub(crate) fn can_stop(&self) -> bool {
        self.log.view.is_busy() || !self.log.view.waiting.is_empty()
    }

    /// Shows a notice for a while.
    pub(crate) fn tell(&mut self, what: impl Into<String>) {
        let until = self.now.checked_add(TOAST).unwrap_or(self.now);
        self.toast = Some((what.into(), until));
        self.dirty = true;
    }

    /// Says in the log why something was not done: the reason and what to do may need several lines.
    fn refuse(&mut self, why: String) {
        self.log.view.fold(&Event::OpRefused { why });
        self.dirty = true;
    }

    /// Says in the log, at its end, why a command was not carried out.
    pub(crate) fn not_done(&mut self, why: impl Into<String>) {
        self.log.follow();
        self.refuse(why.into());
    }

    fn open(&mut self, opening: ChatOpening) {
        let mut old = std::mem::take(&mut self.log).view;
        if let Some(added) = self.added.take() {
            old.muted.remove(&added);
            self.muted.remove(&added);
        }
        self.log = Log::open(opening.tail, opening.has_older);
        self.log.view.recall(&opening.records);
        self.log.view.members.clone_from(&opening.members);
        self.log.view.mode = opening.mode;
        self.log.view.auto_messages = opening.auto_messages;
        self.members = opening.members;
        self.absent = opening.absent;
        self.disabled = opening.disabled;
        // The settings of the session hold until the user leaves, in every thread. A member that another window has
        // removed is muted only in this thread.
        let is_again =
            std::mem::take(&mut self.changing) && self.thread.as_ref() == Some(&opening.id);
        if !is_again {
            old.muted.clone_from(&self.muted);
        }
        let kept = old.kept_in(&self.members, &self.log.view);
        self.outbox.splice(0..0, kept.into_iter().map(Effect::Send));
        self.thread = Some(opening.id);
        for text in std::mem::take(&mut self.wrong)
            .into_iter()
            .chain(opening.notes)
        {
            self.note(text);
        }
        self.screen = Screen::Chat;
        self.ready = false;
        self.prepared = false;
        self.reading = false;
        self.search = None;
        self.leaving = false;
        if self.editor.is_empty() && !opening.draft.is_empty() {
            self.editor.set(&opening.draft);
        }
        self.dirty = true;
    }

    fn input(&mut self, input: Input, files: &dyn Fn(&str) -> Vec<String>, fx: &mut Vec<Effect>) {
        match input {
            Input::Reply(Reply::Ground(r, g, b)) => {
                if self.theme.learn(r, g, b) {
                    self.dirty = true;
                }
                return;
            }
            Input::Reply(Reply::Keyboard) => {
                self.keyboard = true;
                self.dirty = true;
                return;
            }
            Input::Reply(_) => return,
            Input::Focus(focused) => {
                self.focused = focused;
                return;
            }
            _ => {}
        }
        self.dirty = true;
        if input != Input::Key(Key::plain(Code::Char('c')).ctrl()) {
            self.armed = None;
        }
        let action = match &input {
            Input::Key(key) => self.settings.keys.action(*key),
            _ => None,
        };
        if action != Some(Action::Escape) {
            self.editing = None;
        }
        if matches!(input, Input::Key(_) | Input::Paste(_)) {
            self.selection = None;
            self.toast
                .take_if(|(_, until)| remaining(self.now, *until) + READ < TOAST);
        }
        match &mut self.screen {
            Screen::Picker(picker) => {
                let picked = match input {
                    Input::Key(key) => picker.key(key),
                    Input::Paste(text) => {
                        picker.paste(&text);
                        Picked::Nothing
                    }
                    _ => Picked::Nothing,
                };
                match picked {
                    Picked::Nothing => {}
                    Picked::Thread(id) => self.go_to(Some(id), fx),
                    Picked::New => self.go_to(None, fx),
                    Picked::Cancelled if self.thread.is_none() => fx.push(Effect::Leave),
                    Picked::Cancelled => self.screen = Screen::Chat,
                }
            }
            Screen::Help(_) | Screen::Keys(_) | Screen::Compare(_) => self.help_input(&input),
            Screen::Merge(merge) => {
                let Input::Key(key) = input else { return };
                match merge.key(key) {
                    Merged::Nothing => {}
                    Merged::Cancelled => self.screen = Screen::Chat,
                    Merged::Draft(draft) => {
                        self.screen = Screen::Chat;
                        self.reading = false;
                        self.take_back(&draft);
                    }
                }
            }
            Screen::Chat => match input {
                Input::Key(key) if self.consent.is_some() => self.consent_key(key, fx),
                Input::Paste(_) if self.consent.is_some() => {}
                Input::Key(key) if self.search.is_some() => self.search_key(key),
                Input::Paste(text) if self.search.is_some() => self.search_paste(&text),
                Input::Key(key) => self.key(key, files, fx),
                Input::Paste(text) => {
                    self.reading = false;
                    self.editor.paste(&crate::text::clean::text(&text));
                    self.complete_anew(files, false);
                }
                Input::Wheel(lines) => {
                    let look = self.look();
                    self.log.scroll(lines.into(), &look);
                }
                Input::Mouse(what, x, y) => self.mouse(what, (x, y), fx),
                _ => {}
            },
        }
    }

    /// Notifies the user, who looks elsewhere.
    fn notify(&self, what: &str, fx: &mut Vec<Effect>) {
        if !self.focused {
            let thread = self.thread.as_deref().unwrap_or("the council");
            fx.push(Effect::Notify(format!("{thread}: {what}")));
        }
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn record(&mut self, record: &Record, fx: &mut Vec<Effect>) {
        self.dirty = true;
        match &record.event {
            Event::MessageAdded { message, turn, .. } => {
                if turn.is_none() && self.log.knows(message) {
                    return;
                }
                if message.is_king() {
                    self.is_said(fx);
                } else if turn.is_none() {
                    fx.push(Effect::Recall(message.seq, 0));
                }
                self.log.came(true);
            }
            Event::SayQueued { .. } => self.is_said(fx),
            Event::SayTakenBack { body, .. } => self.come_back(body),
            Event::OpRefused { .. } => {
                let wished = self.wished.take();
                match wished.filter(|_| self.unsaid.is_none() && self.editor.is_empty()) {
                    // With one letter changed it may be what was meant.
                    Some(command) => self.editor.give_back(&command, true),
                    None => self.give_back(),
                }
            }
            Event::FloorYielded { outcome, .. } => {
                let how = match outcome {
                    kd_core::event::Outcome::Complete => "every member has answered",
                    kd_core::event::Outcome::Partial => "some members answered, some failed",
                    kd_core::event::Outcome::Failed => "no member could answer",
                    kd_core::event::Outcome::Interrupted => "stopped",
                };
                self.notify(how, fx);
            }
            Event::ThreadOpened { members, .. } => self.members.clone_from(members),
            Event::TurnFinished { turn, .. } => {
                let turn = self.log.view.turn(*turn).map(|turn| &turn.seat);
                self.absent.retain(|(absent, _)| Some(absent) != turn);
            }
            Event::SeatMuted { .. } | Event::ModeSet { .. } => self.wished = None,
            // The log and the strip draw them from the view.
            Event::TurnQueued { .. }
            | Event::TurnDelta { .. }
            | Event::StreamFound { .. }
            | Event::StreamLost { .. }
            | Event::TurnFailed { .. }
            | Event::SaveFailed { .. }
            | Event::CouncilSaid { .. }
            | Event::HeldBack { .. }
            | Event::Promised { .. }
            | Event::Noticed { .. } => {}
            Event::DuetEnded { why, exchanged, .. } => {
                let text = format!("the debate: {}", words::debate(*why, *exchanged, ""));
                self.log.view.fold(&Event::Noticed { text });
            }
            // Notices report what is visible of a deliberation in a chat; reviews are not chats.
            Event::PhaseBegan { .. } | Event::Deliberated { .. } | Event::Reviewed { .. } => {}
        }
        self.log.view.fold_record(record);
    }

    /// Goes to a thread, or to a new one, unless members are speaking in this one: their answers would be missed.
    fn go_to(&mut self, id: Option<String>, fx: &mut Vec<Effect>) {
        match self.must_wait() {
            Some(why) => {
                self.screen = Screen::Chat;
                self.not_done(why);
            }
            None => fx.push(Effect::Open(id)),
        }
    }

    /// Changes the members or forks the thread, in the background. Messages sent in the meantime wait for the new
    /// session.
    fn change(&mut self, effect: Effect, fx: &mut Vec<Effect>) {
        match self.must_wait() {
            Some(why) => self.not_done(why),
            None => {
                self.changing = true;
                fx.push(effect);
            }
        }
    }

    /// Returns the reason why another session has to wait: messages to this session would be lost.
    fn must_wait(&self) -> Option<&'static str> {
        if self.consent.is_some() {
            return Some("answer the question first: y or n");
        }
        if self.attaching.is_some() {
            return Some("a file is being read: try again in a moment");
        }
        if self.log.view.is_busy() || (self.ready && self.unsaid.is_some()) {
            return Some("members are speaking: wait for them, or stop them with Esc first");
        }
        let waits = self.changing || !self.outbox.is_empty();
        waits.then_some("the thread is not open yet: try again in a moment")
    }

    /// Marks text while the left button is held, and copies it when it is released.
    fn mouse(&mut self, what: Button, cell: (u16, u16), fx: &mut Vec<Effect>) {
        if what == Button::Pressed {
            self.selection = Selection::begin(&self.areas, cell);
            return;
        }
        let Some(selection) = &mut self.selection else {
            return;
        };
        selection.follow(&self.areas, cell);
        if what == Button::Released {
            let item = selection.item;
            match selection.text(|line| self.log.text_line(item, line)) {
                Some(text) => fx.push(Effect::Copy(text, "the selection".to_owned())),
                None => self.selection = None,
            }
        }
    }

    /// Prepares the members once per message, after its first word, which may address one of them.
    fn prepare(&mut self, fx: &mut Vec<Effect>) {
        let text = self.editor.text().trim_start();
        if !self.ready
            || self.interrupted
            || self.changing
            || self.prepared
            || text.starts_with('/')
            || !text.contains(char::is_whitespace)
        {
            return;
        }
        self.prepared = true;
        let known: Vec<&SeatName> = self.members.iter().collect();
        let said = mentions(text, &known);
        let all = said.all || said.seats.is_empty();
        let mut who = if all {
            self.members.clone()
        } else {
            said.seats
        };
        who.retain(|seat| !self.log.view.muted.contains(seat));
        // In other modes members speak in turn, and one program may serve several.
        let mode = self.log.view.mode.as_deref().and_then(protocols::find);
        if who.len() == 1 || mode.is_some_and(|mode| mode.at_once) {
            fx.push(Effect::Prepare(who));
        }
    }
}
