//! The event loop: passes keys, records and time to the app, and its effects to the engine, the terminal and the host.
//!
//! Keys are echoed at once; pieces of answers are collected and drawn thirty times per second; without events nothing
//! is drawn, written or woken.

use crate::app::{App, Effect, Msg, Naming, Screen};
use crate::clipboard::{self, Copied};
use crate::draw::draw;
use crate::inline::FRAME;
use crate::keys::{Input, Reply};
use crate::notify::{self, Notify};
use crate::paint::Painter;
use crate::signals::{Caught, Signals};
use crate::terminal::{self, Place, Terminal};
use kd_app::{ChatHost, Session, Subscription, Update, UserError};
use kd_core::search_path;
use kd_core::slash::Way;
use kd_core::{Aside, Op, Timestamp};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Time between frames for keys. Together with [`FRAME`], the rate never stays above sixty per second.
const ECHO: Duration = Duration::from_millis(8);
/// Time to wait for more pieces after the first one in a while.
const GATHER: Duration = Duration::from_millis(2);
/// Time after which the log usually has the data of a message by another program. The pause doubles before each
/// further read.
const RECALL: Duration = Duration::from_millis(400);
/// Time without typing after which a draft is saved.
const DRAFT: Duration = Duration::from_millis(300);
/// Time limit for writing stopped turns when the user leaves immediately.
const FAREWELL: Duration = Duration::from_secs(3);

/// The initial content of the screen.
#[derive(Clone, Debug)]
pub enum Start {
    /// This thread, or a new one.
    Thread(Option<String>),
    /// The thread picker.
    Choose,
}

/// The reason why the screen ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The thread that was open.
    pub thread: Option<String>,
    /// The messages of the thread as text, if the screen was drawn in the scrollback.
    pub transcript: Option<String>,
    /// Whether it ended without a command of the user: by Ctrl+C, a signal, or a lost terminal.
    pub interrupted: bool,
}

/// Shows the chat until the user leaves. Must be called inside a multi-threaded tokio runtime.
///
/// # Errors
/// If stdin or stdout is not a terminal, the signal handlers cannot be installed, or the terminal cannot be written.
pub async fn run(
    mut app: App,
    host: Arc<dyn ChatHost>,
    start: Start,
    (notify, place): (Notify, Place),
) -> io::Result<Ended> {
    let signals = Signals::listen(false)?;
    let terminal = Terminal::enter(place)?;
    let (inbox, messages) = mpsc::unbounded_channel();
    app.update(Msg::Now(Timestamp::now()), &|_| Vec::new());
    let mut stage = Stage {
        app,
        host,
        notify,
        place,
        terminal,
        painter: Painter::default(),
        buffer: Buffer::empty(Rect::ZERO),
        session: None,
        updates: None,
        visit: 0,
        closing: Vec::new(),
        gone: false,
        inbox,
        drawn: Instant::now(),
        due: None,
        draft: String::new(),
        draft_due: None,
        title: String::new(),
        busy: false,
    };
    stage.resize();
    match start {
        Start::Thread(id) => stage.carry_out(Effect::Open(id)),
        Start::Choose => stage.carry_out(Effect::ListThreads),
    };
    stage.paint()?;
    stage.live(signals, messages).await
}

/// Messages from other tasks.
enum AppMessage {
    Msg(Msg),
    /// The session of this visit is open, or cannot be opened, and why.
    Joined(u64, Box<Result<Session, UserError>>),
    /// An aside is ready for the thread with this ID.
    Aside(String, Box<Aside>),
}

struct Stage {
    app: App,
    host: Arc<dyn ChatHost>,
    notify: Notify,
    place: Place,
    terminal: Terminal,
    painter: Painter,
    buffer: Buffer,
    session: Option<Session>,
    updates: Option<Subscription>,
    /// The number of threads opened, the present one included.
    visit: u64,
    /// Sessions closing in the background.
    closing: Vec<JoinHandle<()>>,
    /// Whether a signal arrived or the terminal is gone.
    gone: bool,
    inbox: mpsc::UnboundedSender<AppMessage>,
    drawn: Instant,
    /// The time at which to draw the next frame.
    due: Option<Instant>,
    /// The saved draft.
    draft: String,
    draft_due: Option<Instant>,
    title: String,
    /// Whether the terminal shows that members are answering.
    busy: bool,
}

impl Stage {
    async fn live(
        mut self,
        mut signals: Signals,
        mut messages: mpsc::UnboundedReceiver<AppMessage>,
    ) -> io::Result<Ended> {
        loop {
            let frame_waits = self.due.is_some();
            let change = self.app.next_change();
            let go_on = tokio::select! {
                biased;
                input = self.terminal.next() => match input {
                    Some(input) => self.input(input),
                    None => self.is_gone(),
                },
                signal = signals.next() => match signal {
                    Caught::Resize | Caught::Continue => {
                        self.resize();
                        true
                    }
                    Caught::End => self.is_gone(),
                    // Meant for a child in our process group: keys that stop kd arrive as keys.
                    Caught::Interrupt | Caught::Suspend => true,
                },
                message = messages.recv() => match message {
                    Some(message) => self.message(message),
                    None => false,
                },
                () = until(self.due), if frame_waits => {
                    let go_on = self.drain().await;
                    // A terminal that cannot be written to is gone; messages are saved all the same.
                    go_on && (self.paint().is_ok() || self.is_gone())
                }
                // While a frame is due, pieces may collect.
                update = next(&mut self.updates), if !frame_waits => {
                    let go_on = self.hear(update);
                    self.wish_frame(FRAME, GATHER);
                    go_on
                }
                () = until(self.draft_due), if self.draft_due.is_some() => {
                    self.keep_draft();
                    true
                }
                () = tokio::time::sleep(change.unwrap_or_default()), if change.is_some() => {
                    self.tell(Msg::Now(Timestamp::now()));
                    self.wish_frame(FRAME, Duration::ZERO);
                    true
                }
            };
            if !go_on {
                break;
            }
        }
        self.leave().await
    }

    /// Notes the loss of the terminal. Always returns false, for the loop.
    fn is_gone(&mut self) -> bool {
        self.gone = true;
        false
    }

    /// Stops running turns, saves partial answers, and restores the terminal.
    async fn leave(mut self) -> io::Result<Ended> {
        self.keep_draft();
        if self.busy {
            // If the terminal is gone, there is nothing to show.
            let _ = self.show_progress(false);
        }
        self.terminal.pause();
        if let Some(session) = self.session.take() {
            // If the inbox is full or the session closed, dropping it stops everything as well. Queued ops are kept, so
            // close first.
            let _ = session.send(Op::Close);
            let _ = session.send(Op::Interrupt);
            self.closing.push(tokio::spawn(session.close()));
        }
        let all = async {
            for closing in &mut self.closing {
                // A panic in the loop was reported by its hook.
                let _ = closing.await;
            }
        };
        let _ = tokio::time::timeout(FAREWELL, all).await;
        for closing in &self.closing {
            closing.abort();
        }
        Ok(Ended {
            transcript: self
                .app
                .transcript()
                .filter(|_| self.place == Place::Inline),
            thread: self.app.thread.clone(),
            interrupted: self.gone || self.app.interrupted,
        })
    }

    fn input(&mut self, input: Input) -> bool {
        if let Input::Reply(Reply::Synchronized(yes)) = input {
            self.painter.synchronized = yes;
        }
        self.tell(Msg::Now(Timestamp::now()));
        let go_on = self.tell(Msg::Input(input));
        self.wish_frame(ECHO, Duration::ZERO);
        self.wish_draft();
        go_on
    }

    /// Schedules the saving of a draft that has changed.
    fn wish_draft(&mut self) {
        if self.draft_due.is_none() && self.app.editor.draft() != self.draft.as_str() {
            self.draft_due = Some(Instant::now() + DRAFT);
        }
    }

    fn message(&mut self, message: AppMessage) -> bool {
        let go_on = match message {
            AppMessage::Msg(msg) => self.tell(msg),
            AppMessage::Aside(id, aside) => {
                let session = self.session.as_ref();
                let here = session.filter(|_| self.app.thread.as_deref() == Some(&id));
                match here.map(|s| s.aside(*aside)) {
                    Some(Err(error)) => {
                        self.tell(Msg::Failed(format!("{error}: {}", error.hint())))
                    }
                    Some(Ok(())) => true,
                    None => self.tell(Msg::Told("the thread is not open yet: try again".into())),
                }
            }
            AppMessage::Joined(visit, joined) => match *joined {
                // Another thread was opened since, or this one again.
                Ok(session) if visit != self.visit => {
                    self.closing.push(tokio::spawn(session.close()));
                    true
                }
                Err(_) if visit != self.visit => true,
                Ok(mut session) => {
                    self.updates = Some(session.subscribe());
                    self.session = Some(session);
                    let (id, seen) = (self.app.thread.clone(), self.newest());
                    let newer = id.and_then(|id| self.host.newer(&id, seen).ok());
                    self.tell(Msg::Ready(newer.unwrap_or_default()))
                }
                Err(why) => self.tell(Msg::Failed(why.as_line())),
            },
        };
        self.wish_frame(ECHO, Duration::ZERO);
        self.wish_draft();
        go_on
    }

    /// Returns the number of the newest message shown.
    fn newest(&self) -> u32 {
        let panels = self.app.log.view.panels.iter().rev();
        let mut seqs = panels.filter_map(|p| p.content.message().map(|message| message.seq));
        seqs.next().unwrap_or_default()
    }

    /// Handles an update. Returns false if the session has ended and the screen was waiting for that.
    fn hear(&mut self, update: Option<Update>) -> bool {
        match update {
            Some(Update::Record(record)) => {
                let go_on = self.tell(Msg::Record(record));
                // A message that was not sent is a draft again.
                self.wish_draft();
                go_on
            }
            Some(Update::Lagged(view)) => self.tell(Msg::Lagged(view)),
            None => {
                self.updates = None;
                !self.app.leaving
            }
        }
    }

    /// Handles all pending updates. Returns false if the session has ended and the screen was waiting for that.
    async fn drain(&mut self) -> bool {
        self.tell(Msg::Now(Timestamp::now()));
        loop {
            let update = tokio::select! {
                biased;
                update = next(&mut self.updates) => update,
                () = std::future::ready(()) => return true,
            };
            if !self.hear(update) {
                return false;
            }
        }
    }

    /// Passes a message to the app. Returns false if the user leaves.
    fn tell(&mut self, msg: Msg) -> bool {
        let host = self.host.clone();
        let effects = self.app.update(msg, &|begun| host.files(begun));
        let mut go_on = true;
        for effect in effects {
            go_on &= self.carry_out(effect);
        }
        if let Some(effect) = self.app.wants_older() {
            self.carry_out(effect);
        }
        go_on
    }

    fn carry_out(&mut self, effect: Effect) -> bool {
        match effect {
            Effect::Send(op) => {
                let sent = self.session.as_ref().map(|s| s.send(op));
                if let Some(Err(error)) = sent {
                    self.tell(Msg::Failed(format!("{error}: {}", error.hint())));
                }
            }
            Effect::Attach { message, agreed } => {
                let members = self.app.members().to_vec();
                // Files may be large, or on a slow disk.
                self.ask(move |host| {
                    let Naming { body, typed, .. } = message;
                    Msg::Attached(host.attach(&body, &typed, &members, agreed))
                });
            }
            Effect::Weigh(typed) => {
                let members = self.app.members().to_vec();
                self.ask(move |host| {
                    let line = host.weigh(&typed, &members);
                    Msg::Weighed(typed, line)
                });
            }
            Effect::Prepare(who) => {
                if let Some(session) = &self.session {
                    session.prepare(&who);
                }
            }
            Effect::Aside(way, question) => self.aside(way, question),
            Effect::Open(id) => self.open(id.as_deref()),
            Effect::Fork(fork) => {
                if let Some(id) = self.app.thread.clone() {
                    self.ask(move |host| match host.fork(&id, fork) {
                        Ok(id) => Msg::Forked(id),
                        Err(why) => Msg::Stays(why.as_line()),
                    });
                }
            }
            Effect::Seat(change) => {
                if let Some(id) = self.app.thread.clone() {
                    self.ask(move |host| match host.reseat(&id, &change) {
                        Ok(line) => Msg::Seated(line),
                        Err(why) => Msg::Stays(why.as_line()),
                    });
                }
            }
            Effect::ListThreads => self.ask(|host| match host.threads() {
                Ok(rows) => Msg::Threads(rows),
                Err(why) => Msg::Refused(why.as_line()),
            }),
            Effect::FetchOlder(before, most) => {
                if let Some(id) = self.app.thread.clone() {
                    self.ask(move |host| match host.older(&id, before, most) {
                        Ok(older) => Msg::Older(older),
                        Err(why) => Msg::Noted(why.as_line()),
                    });
                }
            }
            Effect::Recall(from, times) => {
                if let Some(id) = self.app.thread.clone() {
                    self.ask(move |host| {
                        // The log tells the end of a turn after its message.
                        std::thread::sleep(RECALL * (1 << times));
                        Msg::Recalled(from, times + 1, host.recall(&id, from))
                    });
                }
            }
            Effect::Mark(word) => {
                if let Some(id) = self.app.thread.clone() {
                    let report = self.app.log.view.report.clone();
                    self.ask(move |host| match host.mark(&id, &word, &report) {
                        Ok(line) => Msg::Told(line),
                        Err(why) => Msg::Refused(why.as_line()),
                    });
                }
            }
            Effect::Copy(text, what) => self.copy(&text, &what),
            Effect::Export(file) => {
                if let Some(id) = self.app.thread.clone() {
                    self.ask(move |host| match host.export(&id, file.as_deref()) {
                        Ok(path) => Msg::Told(format!("the thread is in {path}")),
                        Err(why) => Msg::Refused(why.as_line()),
                    });
                }
            }
            Effect::Edit(text) => self.edit(&text),
            Effect::Shell(line) => self.ask(move |host| {
                let output = host.shell(&line);
                Msg::Ran(line, output)
            }),
            Effect::Remember(text) => {
                let host = self.host.clone();
                tokio::task::spawn_blocking(move || host.remember(&text));
            }
            Effect::Notify(line) => {
                let (how, host) = (self.notify, self.host.clone());
                // A program may take a while.
                tokio::task::spawn_blocking(move || {
                    let env = |name: &str| host.var(name);
                    let mut programs = notify::programs(how, &line, &env).into_iter();
                    if !programs.any(|program| runs(&program)) {
                        let bytes = notify::bytes(how, &line, &env).unwrap_or_default();
                        // If the terminal is gone, its input ends the loop.
                        let _ = terminal::write(bytes.as_bytes());
                    }
                });
            }
            Effect::Suspend => self.away(|| {
                let own = rustix::process::getpid();
                // If suspending fails, continue.
                let _ = rustix::process::kill_process(own, rustix::process::Signal::TSTP);
            }),
            Effect::Redraw => {
                self.painter.forget();
                self.app.dirty = true;
            }
            // Keep the session: a second request to leave stops what it still waits for.
            Effect::Close => {
                return self
                    .session
                    .as_ref()
                    .is_some_and(|s| s.send(Op::Close).is_ok());
            }
            Effect::Leave => return false,
        }
        true
    }

    /// Calls the host in the background, since it may take a while.
    fn ask(&self, what: impl FnOnce(&dyn ChatHost) -> Msg + Send + 'static) {
        let (host, inbox) = (self.host.clone(), self.inbox.clone());
        tokio::task::spawn_blocking(move || inbox.send(AppMessage::Msg(what(host.as_ref()))));
    }

    fn aside(&self, way: Way, question: Option<String>) {
        let Some(id) = self.app.thread.clone() else {
            return;
        };
        let muted: Vec<_> = self.app.log.view.muted.iter().cloned().collect();
        let (host, inbox) = (self.host.clone(), self.inbox.clone());
        // A model may have to be searched for.
        tokio::task::spawn_blocking(move || {
            inbox.send(match host.aside(&id, way, question, &muted) {
                Ok(aside) => AppMessage::Aside(id, Box::new(aside)),
                Err(why) => AppMessage::Msg(Msg::Failed(why.as_line())),
            })
        });
    }

    fn open(&mut self, id: Option<&str>) {
        let opening = match self.host.open(id) {
            Ok(opening) => opening,
            Err(why) => {
                self.tell(Msg::Stays(why.as_line()));
                return;
            }
        };
        self.keep_draft();
        self.updates = None;
        if let Some(session) = self.session.take() {
            self.closing.push(tokio::spawn(session.close()));
        }
        let id = opening.id.clone();
        self.draft.clone_from(&opening.draft);
        self.tell(Msg::Opened(Box::new(opening)));
        self.visit += 1;
        let (joining, inbox, visit) = (self.host.join(&id), self.inbox.clone(), self.visit);
        tokio::spawn(async move {
            let joined = Box::new(joining.await);
            // Sending fails only if we have left.
            let _ = inbox.send(AppMessage::Joined(visit, joined));
        });
    }

    fn copy(&mut self, text: &str, what: &str) {
        let host = self.host.clone();
        let env = |name: &str| host.var(name);
        let copied = copy(&self.terminal, text, &env, &|text| host.spill(text));
        let told = copied.told(what);
        self.tell(match copied {
            // A path is shown in full.
            Copied::File(_) => Msg::Noted(told),
            _ => Msg::Told(told),
        });
    }

    fn edit(&mut self, text: &str) {
        let host = self.host.clone();
        let mut told = Msg::Refused(String::new());
        self.away(|| {
            told = match edit(text, &|name| host.var(name)) {
                Ok(text) => Msg::Edited(text),
                Err(why) => Msg::Refused(why.to_string()),
            };
        });
        self.tell(told);
    }

    /// Releases the terminal while another program uses it.
    fn away(&mut self, what: impl FnOnce()) {
        self.terminal.pause();
        what();
        // If the terminal is gone, the next read ends the loop.
        let _ = self.terminal.resume();
        self.title.clear();
        self.painter.forget();
        self.resize();
    }

    fn keep_draft(&mut self) {
        self.draft_due = None;
        let text = &*self.app.editor.draft();
        if text != self.draft
            && let Some(id) = &self.app.thread
        {
            self.host.keep_draft(id, text);
            self.draft = text.to_owned();
        }
    }

    fn resize(&mut self) {
        let (columns, rows) = self.terminal.size();
        self.tell(Msg::Resize(columns, rows));
        self.wish_frame(ECHO, Duration::ZERO);
    }

    /// Schedules a frame, at least `apart` after the last one and at least `from_now` from now.
    fn wish_frame(&mut self, apart: Duration, from_now: Duration) {
        if !self.app.dirty {
            return;
        }
        let at = (self.drawn + apart).max(Instant::now() + from_now);
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    fn paint(&mut self) -> io::Result<()> {
        self.due = None;
        if !std::mem::take(&mut self.app.dirty) {
            return Ok(());
        }
        let (columns, rows) = self.terminal.size();
        let area = Rect::new(0, 0, columns, rows);
        if self.buffer.area == area {
            self.buffer.reset();
        } else {
            self.buffer = Buffer::empty(area);
        }
        let cursor = draw(&mut self.app, &mut self.buffer);
        self.painter.link(std::mem::take(&mut self.app.links));
        if let Some(bytes) = self.painter.frame(&self.buffer, cursor) {
            self.terminal.write(bytes)?;
        }
        self.drawn = Instant::now();
        self.app.painted(Timestamp::now());
        self.entitle()
    }

    /// Shows in the taskbar whether members are answering, where the terminal can.
    fn show_progress(&self, busy: bool) -> io::Result<()> {
        let host = &self.host;
        match notify::progress(busy, &|name| host.var(name)) {
            Some(bytes) => self.terminal.write(bytes.as_bytes()),
            None => Ok(()),
        }
    }

    /// Sets the window title: the thread, and whether a member is speaking.
    fn entitle(&mut self) -> io::Result<()> {
        let busy = if self.app.log.view.is_busy() {
            "… "
        } else {
            ""
        };
        let title = match (&self.app.thread, &self.app.screen) {
            (Some(id), Screen::Chat | Screen::Help(_)) => format!("{busy}kd {id}"),
            _ => "kd chat".to_owned(),
        };
        let is_busy = self.app.log.view.is_busy();
        if is_busy != self.busy {
            self.busy = is_busy;
            self.show_progress(is_busy)?;
        }
        if title != self.title {
            let clean: String = title.chars().filter(|c| !c.is_control()).collect();
            self.terminal
                .write(format!("\x1b]2;{clean}\x1b\\").as_bytes())?;
            self.title = title;
        }
        Ok(())
    }
}

/// Creates a command that runs no code from the working folder, whether through `PATH` or through settings files there.
fn outside(name: &str, home: Option<&str>) -> Command {
    let mut command = Command::new(name);
    let path = search_path::absolute(std::env::var_os("PATH").as_deref());
    let home = home.filter(|home| Path::new(home).is_absolute() && Path::new(home).is_dir());
    command.env("PATH", path).current_dir(home.unwrap_or("/"));
    command
}

/// Runs a program without input and output. Returns false if that fails.
fn runs(program: &[String]) -> bool {
    let Some((name, args)) = program.split_first() else {
        return false;
    };
    let mut command = outside(name, None);
    command.args(args);
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = quiet.stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Pipes a text to a program. Returns false if that fails.
fn feed(program: &[&str], text: &str) -> bool {
    let [name, args @ ..] = program else {
        return false;
    };
    let child = outside(name, None)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return false;
    };
    let written = child
        .stdin
        .take()
        .is_some_and(|mut input| input.write_all(text.as_bytes()).is_ok());
    child.wait().is_ok_and(|status| status.success()) && written
}

/// Copies a text through the terminal and a program; if neither is possible, to a file.
pub(crate) fn copy(
    terminal: &Terminal,
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
    spill: &dyn Fn(&str) -> Result<String, UserError>,
) -> Copied {
    let sent = clipboard::osc52(text, env)
        .filter(|_| clipboard::takes_osc52(env))
        .is_some_and(|bytes| terminal.write(bytes.as_bytes()).is_ok());
    // A program reports whether it took the text; the terminal does not.
    let mut programs = clipboard::programs(env).into_iter();
    match programs.find(|p| feed(p, text)) {
        Some(program) => Copied::Taken(program[0]),
        None if sent => Copied::Sent,
        None => match spill(text) {
            Ok(path) => Copied::File(path),
            Err(why) => Copied::Failed(why.as_line()),
        },
    }
}

/// The reason why a text was not edited.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    /// The editor reported failure.
    #[error("{0} failed; the text is as it was")]
    Failed(String),
    /// The editor cannot be started, or its file cannot be read.
    #[error("{editor}: {error}; set VISUAL or EDITOR to another editor")]
    Unusable { editor: String, error: io::Error },
}

/// Edits a text in the user's editor.
pub(crate) fn edit(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, EditError> {
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|n| env(n).filter(|v| !v.trim().is_empty()))
        .unwrap_or_else(|| "vi".to_owned());
    match edit_in(&editor, env("HOME").as_deref(), text) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(EditError::Failed(editor)),
        Err(error) => Err(EditError::Unusable { editor, error }),
    }
}

/// Returns the edited text; `None` if the editor reported failure. The editor runs in the home folder.
fn edit_in(editor: &str, home: Option<&str>, text: &str) -> io::Result<Option<String>> {
    let mut file = tempfile::Builder::new()
        .prefix("kd-message-")
        .suffix(".md")
        .tempfile()?;
    file.write_all(text.as_bytes())?;
    // The variable may contain arguments; the shell splits them as intended.
    let status = outside("sh", home)
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("kd")
        .arg(file.path())
        .status()?;
    if !status.success() {
        return Ok(None);
    }
    std::fs::read_to_string(file.path()).map(Some)
}

async fn next(updates: &mut Option<Subscription>) -> Option<Update> {
    match updates {
        Some(updates) => updates.next().await,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
