//! `kd chat` in plain lines, or on the screen: opens a thread, lets the user chat with the council, and says how to
//! resume.

use super::here::Here;
use super::stage::{end_if_unread, listen, take};
use super::{choice, first, fork, screen};
use crate::args::chat::Chat;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::chat::{ChatLines, mode_line};
use crate::render::clean;
use kd_app::export::{self, Format};
use kd_app::threads::{Place, Thread};
use kd_app::{Runtime, Session, ThreadRow};
use kd_core::protocols::PROTOCOLS;
use kd_core::slash::{self, Line, Slash, Way};
use kd_core::view::View;
use kd_core::{Address, Aside, Op, Roster, SeatName};
use kd_tui::signals::Caught;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use tokio::sync::mpsc;

/// Maximum threads offered.
const OFFERED: usize = 10;

/// State that is kept across threads.
struct Room<'a> {
    args: &'a Chat,
    here: &'a Here,
    chat: kd_app::Chat,
    keyboard: Keyboard,
    told: bool,
    /// The number of the last line of JSON.
    seq: u64,
    /// The view of a session whose settings the next one keeps: it is of the same thread, with other members.
    kept: Option<View>,
}

/// A message of a program that drives the chat: it may have several lines, and is no command.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    say: String,
}

/// The next thread or screen.
enum Next {
    /// An existing thread.
    Thread(Place),
    /// A new thread.
    New,
    /// Exit, with this code.
    Out(Exit),
}

pub(super) fn run(args: &Chat, here: &Here) -> Result<Exit, Error> {
    let named = !args.members.is_empty() || args.model.model.is_some() || args.privacy.private;
    if !named && args.id.is_none() && !args.again {
        choice::ask(here)?;
    }
    if !args.plain && !args.jsonl && here.can_repaint() && io::stdin().is_terminal() {
        return screen::run(args, here);
    }
    let (chat, created) = screen::open(args, here)?;
    // The face may block on a slow reader; the council runs on threads of its own, so that it never waits for us.
    let runtime = Runtime::new()?;
    let mut room = Room {
        args,
        here,
        chat,
        keyboard: Keyboard::start(),
        told: created,
        seq: 0,
        kept: None,
    };
    runtime.block_on(room.visit())
}

impl Room<'_> {
    /// Runs one thread after another until the user leaves.
    async fn visit(&mut self) -> Result<Exit, Error> {
        end_if_unread()?;
        let mut next = self.first().await?;
        loop {
            let old = match &next {
                Next::Thread(place) => Some(Thread::open(place)?),
                Next::New => None,
                Next::Out(exit) => return Ok(*exit),
            };
            next = self.sit(old).await?;
        }
    }

    /// Returns the first thread: the named one, the current one, or the user's choice.
    async fn first(&mut self) -> Result<Next, Error> {
        if self.args.new {
            return Ok(Next::New);
        }
        if let Some(id) = &self.args.id {
            return Ok(Next::Thread(self.chat.find(Some(id))?));
        }
        if let Some(place) = self.chat.current()? {
            return Ok(Next::Thread(place));
        }
        let recent = self.chat.recent(OFFERED)?;
        if recent.is_empty() || !self.keyboard.is_terminal || self.args.jsonl {
            return Ok(Next::New);
        }
        say("there is no current thread; the recent ones are:");
        for line in offer(&recent) {
            say(&line);
        }
        say("type a number or an id, or nothing for a new thread");
        loop {
            let Some(line) = self.keyboard.lines.recv().await else {
                return Ok(Next::Out(Exit::Done));
            };
            match pick(&self.chat, &recent, line.trim()) {
                Ok(next) => return Ok(next),
                Err(why) => say(&why),
            }
        }
    }

    /// Runs one thread from opening to end.
    async fn sit(&mut self, old: Option<Thread>) -> Result<Next, Error> {
        let seated = self.chat.seat(old.as_ref(), true)?;
        // Both may wait for the network, each in a runtime of its own.
        tokio::task::block_in_place(|| {
            self.chat.make_ready(&seated.roster, old.is_none())?;
            if seated.built_in {
                first::notice(std::mem::take(&mut self.told), self.here);
            }
            Ok::<_, Error>(())
        })?;
        let thread = match old {
            Some(thread) => {
                self.chat.make_current(&thread)?;
                thread
            }
            None => self.chat.create(&seated.roster)?,
        };
        let (id, folder) = (thread.id().0.clone(), thread.path().to_path_buf());
        let session = self.chat.enter(thread, seated.roster.clone())?;
        let next = self.talk(session, &seated.roster, &folder).await;
        let _ = writeln!(crate::out::stderr(), "go on: kd chat {id}");
        next
    }

    /// Runs the plain conversation.
    async fn talk(
        &mut self,
        mut session: Session,
        roster: &Roster,
        folder: &Path,
    ) -> Result<Next, Error> {
        let mut signals = listen(false)?;
        let (view, follow) = session.follow();
        let mut updates = take(follow);
        let echo = !self.keyboard.is_terminal;
        let mut face = ChatLines::new(self.here.out_styles(), view, echo);
        if self.args.jsonl {
            face = face.with_json(session.thread().clone(), roster, self.seq);
        }
        let members: Vec<SeatName> = roster.members().iter().map(|m| m.name.clone()).collect();
        if let Some(old) = self.kept.take() {
            for op in old.kept_in(&members, &face.view) {
                session.send(op)?;
            }
        }
        let mut stay = Stay {
            next: None,
            ending: false,
            stopped: false,
            gone: false,
            kept: None,
        };
        let names: Vec<&str> = members.iter().map(SeatName::as_str).collect();
        stay.show(|out| {
            let head = format!("thread {}; {}", session.thread(), names.join(", "));
            face.kd(&head, out)?;
            face.begin(out)?;
            face.kd("/help lists the commands", out)
        });
        let (mut typing, mut later) = (true, None::<String>);
        loop {
            if face.is_idle()
                && let Some(line) = later.take()
            {
                self.line(&line, &session, roster, folder, &mut face, &mut stay)?;
            }
            if !typing && !stay.ending && face.is_idle() {
                stay.end(&session, Next::Out(Exit::Done));
            }
            tokio::select! {
                update = updates.recv() => {
                    let Some(update) = update else { break };
                    stay.show(|out| face.hear(&update, out));
                    if stay.gone && !stay.ending {
                        // Our output was closed: treat it like a closed terminal.
                        stay.end(&session, Next::Out(Exit::Interrupted));
                        let _ = session.send(Op::Interrupt);
                    }
                }
                line = self.keyboard.lines.recv(), if typing
                    && later.is_none()
                    && !stay.switches()
                    && face.is_ready()
                    && (self.keyboard.is_terminal || face.has_room()) => match line {
                    // Piped lines cannot be typed again, so they are read only when they can be used.
                    Some(line) if !self.keyboard.is_terminal && waits(&line) && !face.is_idle() => {
                        later = Some(line);
                    }
                    Some(line) => {
                        stay.stopped = false;
                        self.line(&line, &session, roster, folder, &mut face, &mut stay)?;
                    }
                    None => typing = false,
                },
                signal = signals.next() => match signal {
                    Caught::End => {
                        stay.end(&session, Next::Out(Exit::Interrupted));
                        let _ = session.send(Op::Interrupt);
                    }
                    Caught::Interrupt if stay.stopped || stay.ending => {
                        stay.end(&session, Next::Out(Exit::Interrupted));
                        let _ = session.send(Op::Interrupt);
                    }
                    Caught::Interrupt => {
                        stay.stopped = true;
                        let _ = session.send(Op::Interrupt);
                        stay.show(|out| face.kd("Ctrl+C stops the running turns; again quits", out));
                    }
                    Caught::Resize | Caught::Suspend | Caught::Continue => {}
                },
            }
        }
        drop(updates);
        self.seq = face.seq();
        self.kept = stay.kept.take();
        session.close().await;
        Ok(stay.next.unwrap_or(Next::Out(Exit::Done)))
    }

    /// Prepares an aside that answers a question in another way.
    fn aside(
        &self,
        way: Way,
        question: Option<String>,
        folder: &Path,
        roster: &Roster,
        muted: &[SeatName],
    ) -> Result<Aside, Error> {
        let thread = Thread::open_folder(folder)?;
        let planned = || {
            let what = (way, question);
            self.chat.aside_in(&thread, roster, what, muted, false)
        };
        Ok(tokio::task::block_in_place(planned)?)
    }

    /// Handles a line the user typed.
    fn line(
        &self,
        line: &str,
        session: &Session,
        roster: &Roster,
        folder: &Path,
        face: &mut ChatLines,
        stay: &mut Stay,
    ) -> Result<(), Error> {
        let said = match line.trim_start().starts_with('{') && self.args.jsonl {
            true => match serde_json::from_str::<Said>(line) {
                Ok(said) => Some(said.say),
                Err(error) => {
                    let why = format!("not understood: {error}; write {{\"say\": \"…\"}}");
                    stay.show(|out| face.refuse(&why, out));
                    return Ok(());
                }
            },
            false => None,
        };
        let is_said = said.is_some();
        let (line, masked) = self.chat.secrets().mask(said.as_deref().unwrap_or(line));
        if let Some(text) = masked.line() {
            stay.show(|out| face.kd(&text, out));
        }
        let read = match is_said {
            true => Line::Say(line.trim().to_owned()),
            false => slash::read(&line),
        };
        let slash = match read {
            Line::Say(body) if body.is_empty() => {
                if is_said {
                    stay.show(|out| face.refuse("an empty message is not sent", out));
                }
                return Ok(());
            }
            Line::Say(_) if stay.ending => {
                stay.show(|out| {
                    face.refuse(
                        "quitting after the running turns: /quit again quits at once",
                        out,
                    )
                });
                return Ok(());
            }
            Line::Say(body) => {
                face.send(&body);
                session.send(Op::Say {
                    body,
                    to: Address::All,
                })?;
                return Ok(());
            }
            Line::Wrong(why) => {
                stay.show(|out| face.refuse(&why, out));
                return Ok(());
            }
            Line::Slash(slash) => slash,
        };
        let mut told: Vec<String> = Vec::new();
        let mut refused: Vec<String> = Vec::new();
        match slash {
            Slash::Op(op) => {
                let told_when_done = matches!(
                    op,
                    Op::Mute { .. } | Op::Unmute { .. } | Op::Mode { .. } | Op::Auto { .. }
                );
                match session.send(op) {
                    Ok(()) if told_when_done => face.wish(),
                    Ok(()) => {}
                    Err(error) => refused.push(error.to_string()),
                }
            }
            Slash::ShowMode => {
                let mode = face.view.mode.clone().unwrap_or_default();
                told.push(mode_line(&mode, face.view.auto_messages));
                told.extend(
                    PROTOCOLS
                        .iter()
                        .map(|kind| format!("{}: {}", kind.name, kind.doc)),
                );
            }
            Slash::ShowAuto => {
                let mode = face.view.mode.clone().unwrap_or_default();
                told.push(mode_line(&mode, face.view.auto_messages));
            }
            Slash::Members => {
                let speaks: Vec<_> = face.view.growing_turns().map(|g| g.seat.clone()).collect();
                for member in roster.members() {
                    let mut parts = vec![member.backend.clone()];
                    parts.extend(member.model.clone());
                    parts.extend(member.role.clone());
                    if face.view.muted.contains(&member.name) {
                        parts.push("muted".to_owned());
                    }
                    if speaks.contains(&member.name) {
                        parts.push("speaks now".to_owned());
                    }
                    told.push(format!("{}: {}", member.name, parts.join(", ")));
                }
            }
            Slash::Thread(Some(_)) | Slash::New | Slash::Fork(_) | Slash::Seat(_)
                if !face.is_idle() =>
            {
                refused.push("members are speaking: wait for them, or /stop first".to_owned());
            }
            Slash::Thread(None) => {
                told.extend(offer(&self.chat.recent(OFFERED)?));
                told.push("/thread ID switches to it; /new starts another".to_owned());
            }
            Slash::Thread(Some(id)) => match self.chat.find(Some(&id)) {
                Ok(place) => stay.end(session, Next::Thread(place)),
                Err(error) => refused.push(error.as_line()),
            },
            Slash::New => stay.end(session, Next::New),
            Slash::Seat(change) => {
                let thread = Thread::open_folder(folder)?;
                // The member may have to be downloaded.
                let reseat = || self.chat.reseat(&thread, &change, false);
                match tokio::task::block_in_place(reseat) {
                    Ok(line) => {
                        told.push(line);
                        stay.kept = Some(face.view.clone());
                        let place = self.chat.find(Some(&thread.id().0))?;
                        stay.end(session, Next::Thread(place));
                    }
                    Err(error) => refused.push(error.as_line()),
                }
            }
            Slash::Fork(wanted) => {
                let thread = Thread::open_folder(folder)?;
                match self.chat.fork_of(&thread, wanted) {
                    Ok(forked) => {
                        told.extend(fork::told(&forked, &[]));
                        let place = self.chat.find(Some(&forked.id().0))?;
                        stay.end(session, Next::Thread(place));
                    }
                    Err(error) => refused.push(error.as_line()),
                }
            }
            Slash::Mark(word) => {
                let thread = Thread::open_folder(folder)?;
                match self.chat.mark_in(&thread, &word, &face.view.report) {
                    Ok(marked) => told.push(marked.line()),
                    Err(error) => refused.push(error.as_line()),
                }
            }
            Slash::Export(None) if self.args.jsonl => {
                let what =
                    "the thread is no line of JSON: /export and a file's name writes it there";
                refused.push(what.to_owned());
            }
            Slash::Export(file) => told.push(write_out(&self.chat, folder, file.as_deref(), stay)?),
            Slash::Aside(..) if stay.ending => {
                refused
                    .push("quitting after the running turns: /quit again quits at once".to_owned());
            }
            Slash::Aside(way, question) => {
                let muted: Vec<_> = face.view.muted.iter().cloned().collect();
                match self.aside(way, question, folder, roster, &muted) {
                    Ok(aside) => {
                        if let Some(question) = aside.says() {
                            face.send(question);
                        }
                        session.aside(aside)?;
                    }
                    Err(error) => refused.push(error.as_line()),
                }
            }
            Slash::Copy(_) | Slash::Thinking => {
                refused.push("that needs a screen: start `kd chat` without --plain".to_owned());
            }
            Slash::Help => {
                told.extend(slash::help(false));
                told.push("@member asks one, @all asks all and lets them discuss; a \\ at the end of a line continues it".to_owned());
            }
            Slash::Quit if stay.ending => {
                // If it has already ended, that is what the user wants.
                let _ = session.send(Op::Interrupt);
            }
            Slash::Quit => {
                if face.view.is_busy() {
                    told.push(
                        "quitting after the running turns; /quit again quits at once".to_owned(),
                    );
                }
                stay.end(session, Next::Out(Exit::Done));
            }
        }
        stay.show(|out| {
            refused.iter().try_for_each(|line| face.refuse(line, out))?;
            told.iter().try_for_each(|line| face.kd(line, out))
        });
        Ok(())
    }
}

/// The state of leaving a thread.
struct Stay {
    next: Option<Next>,
    /// The session is closing.
    ending: bool,
    /// Ctrl+C was pressed, and nothing was typed since.
    stopped: bool,
    /// Our output was closed.
    gone: bool,
    /// The view of this session, if the next one keeps its settings.
    kept: Option<View>,
}

impl Stay {
    fn end(&mut self, session: &Session, next: Next) {
        self.ending = true;
        self.next = Some(next);
        // If the session is already closed, that is fine.
        let _ = session.send(Op::Close);
    }

    /// Returns whether another thread follows: further piped input is for that one.
    fn switches(&self) -> bool {
        matches!(self.next, Some(Next::Thread(_) | Next::New))
    }

    fn show(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        if !self.gone {
            self.gone = write(&mut crate::out::stdout().lock()).is_err();
        }
    }
}

/// Returns whether a line requests something that can only start, or is only clear, while no member speaks.
fn waits(line: &str) -> bool {
    matches!(
        slash::read(line),
        Line::Slash(
            Slash::Aside(..)
                | Slash::Fork(_)
                | Slash::Mark(_)
                | Slash::Seat(_)
                | Slash::New
                | Slash::Thread(Some(_))
        )
    )
}

/// Exports the thread to a file, or shows it.
fn write_out(
    chat: &kd_app::Chat,
    folder: &Path,
    file: Option<&str>,
    stay: &mut Stay,
) -> Result<String, Error> {
    let open = Thread::open_folder(folder)?;
    let Some(path) = file.map(Path::new) else {
        let text = export::text(&open, Format::Md, chat.kingdom().env())?;
        stay.show(|out| out.write_all(text.as_bytes()).and_then(|()| out.flush()));
        return Ok(
            "that is the thread as Markdown; /export and a file's name writes it there".to_owned(),
        );
    };
    Ok(match chat.export_to(&open, path) {
        Ok(()) => format!("written to {}", path.display()),
        Err(error) => Error::from(error).to_string(),
    })
}

/// Formats the offered threads, one per line.
fn offer(recent: &[ThreadRow]) -> Vec<String> {
    let line = |(i, row): (usize, &ThreadRow)| {
        let topic = match row.question.as_str() {
            "" => "(no messages yet)".to_owned(),
            question => clean::line(question),
        };
        let topic: String = topic.chars().take(60).collect();
        format!("{}  {}  {topic}", i + 1, row.id)
    };
    recent.iter().enumerate().map(line).collect()
}

/// Returns the thread the user chose from the list.
fn pick(chat: &kd_app::Chat, recent: &[ThreadRow], choice: &str) -> Result<Next, String> {
    if choice.is_empty() || choice == "/new" {
        return Ok(Next::New);
    }
    if matches!(slash::read(choice), Line::Slash(Slash::Quit)) {
        return Ok(Next::Out(Exit::Done));
    }
    let row = choice.parse::<usize>().ok();
    let row = row.and_then(|n| recent.get(n.checked_sub(1)?));
    let id = row.map_or(choice, |row| &row.id);
    chat.find(Some(id))
        .map(Next::Thread)
        .map_err(|error| error.what)
}

fn say(text: &str) {
    // If our output was closed, there will be no answer either.
    let _ = writeln!(crate::out::stdout(), "kd: {}", clean::line(text));
}

/// Lines the user types, read on a separate thread. A `\` at the end continues a line.
struct Keyboard {
    is_terminal: bool,
    lines: mpsc::Receiver<String>,
}

impl Keyboard {
    fn start() -> Self {
        let (sender, lines) = mpsc::channel(64);
        std::thread::spawn(move || {
            let mut words = String::new();
            for line in io::stdin().lock().split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end_matches('\r');
                if let Some(more) = line.strip_suffix('\\') {
                    words.push_str(more);
                    words.push('\n');
                    continue;
                }
                words.push_str(line);
                if sender.blocking_send(std::mem::take(&mut words)).is_err() {
                    return;
                }
            }
            if !words.is_empty() {
                let _ = sender.blocking_send(words);
            }
        });
        Self {
            is_terminal: io::stdin().is_terminal(),
            lines,
        }
    }
}
