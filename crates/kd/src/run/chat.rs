//! `kd chat` in plain lines, or on the screen: opens a thread, lets the user chat with the council, and says how to
//! resume.

mod keyboard;
mod lines;
mod naming;

use self::keyboard::{Input, Keyboard, Typed};
use self::lines::waits;
use self::naming::Asked;
use super::here::Here;
use super::notices::notice_line;
use super::stage::{Stops, end_if_unread, listen, take};
use super::{choice, first, screen};
use crate::args::chat::Chat;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::chat::ChatLines;
use crate::render::clean;
use kd_app::threads::{Place, Thread};
use kd_app::{Runtime, Session, ThreadRow};
use kd_core::slash::{self, Line, Slash};
use kd_core::view::View;
use kd_core::{Op, Roster, SeatName};
use kd_tui::signals::Caught;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

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
    /// The view of the last session, whose settings the next one keeps.
    kept: Option<View>,
    /// The members that the user has muted, in whatever thread.
    muted: BTreeSet<SeatName>,
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
    // Without a thread to fork, no project is created either.
    let source = args.fork.then(|| source(args, here)).transpose()?;
    let (mut chat, created) = screen::open(args, here)?;
    let forked = source
        .map(|source| in_a_fork(args, &mut chat, &source))
        .transpose()?;
    let args = forked.as_ref().unwrap_or(args);
    if !args.plain && !args.jsonl && here.can_repaint() && io::stdin().is_terminal() {
        return screen::run(args, here, (chat, created));
    }
    // Output may block on a slow reader. The council runs on separate threads, so that it never waits for the output.
    let runtime = Runtime::new()?;
    let mut room = Room {
        args,
        here,
        chat,
        keyboard: Keyboard::start(args.jsonl),
        told: created,
        seq: 0,
        kept: None,
        muted: BTreeSet::new(),
    };
    runtime.block_on(room.visit())
}

/// Returns the thread that a chat forks.
fn source(args: &Chat, here: &Here) -> Result<Thread, Error> {
    let (_, place) = kd_app::threads::find(here, args.id.as_deref())?;
    Ok(Thread::open(&place)?)
}

/// Forks the thread of a chat, and returns the arguments that continue in the fork.
fn in_a_fork(args: &Chat, chat: &mut kd_app::Chat, source: &Thread) -> Result<Chat, Error> {
    let running = kd_app::threads::running(source)?;
    let forked = chat.begin_in_fork(source)?;
    for line in super::fork::told(&forked, &running) {
        notice_line(&line);
    }
    Ok(Chat {
        // The fork is the current thread now.
        id: args.id.as_ref().map(|_| forked.id().0.clone()),
        again: args.id.is_none(),
        fork: false,
        ..args.clone()
    })
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
            let line = line.said().map_or_else(|_| String::new(), Input::into_text);
            match pick(&self.chat, &recent, line.trim()) {
                Ok(next) => return Ok(next),
                Err(why) => say(&why),
            }
        }
    }

    /// Runs one thread from opening to end.
    async fn sit(&mut self, old: Option<Thread>) -> Result<Next, Error> {
        let seated = self.chat.seat(old.as_ref(), true)?;
        // Both may wait for the network, each in its own runtime.
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
        let mut signals = Stops::of(listen(false)?, &session, |signal, is_second| {
            let leaves = is_second || signal == Caught::End;
            // What waits is kept for the next session, or it is not sent at all.
            let first = if leaves { Op::Close } else { Op::TakeBack };
            vec![first, Op::Interrupt]
        });
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
            gone: false,
            kept: None,
            muted: std::mem::take(&mut self.muted),
            asked: None,
        };
        let names: Vec<&str> = members.iter().map(SeatName::as_str).collect();
        stay.show(|out| {
            let head = format!("thread {}; {}", session.thread(), names.join(", "));
            face.kd(&head, out)?;
            face.begin(out)?;
            face.kd("/help lists the commands", out)
        });
        let (mut typing, mut later) = (true, None::<Typed>);
        loop {
            if stay.ending {
                signals.set_second(true);
            }
            if face.is_idle()
                && let Some(line) = later.take()
            {
                self.line(&line, &session, roster, folder, &mut face, &mut stay);
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
                    Some(line) if !self.keyboard.is_terminal && waits(&line.text, &face) => {
                        later = Some(line);
                    }
                    Some(line) => {
                        signals.set_second(false);
                        self.line(&line, &session, roster, folder, &mut face, &mut stay);
                    }
                    None => typing = false,
                },
                (signal, is_second) = signals.next() => match signal {
                    Caught::End => stay.leaves(),
                    Caught::Interrupt if is_second => stay.leaves(),
                    Caught::Interrupt => {
                        stay.show(|out| face.kd("Ctrl+C stops the running turns; again quits", out));
                    }
                    Caught::Resize | Caught::Suspend | Caught::Continue => {}
                },
            }
        }
        while let Some((signal, is_second)) = signals.arrived() {
            if signal == Caught::End || (signal == Caught::Interrupt && is_second) {
                stay.leaves();
            }
        }
        drop(updates);
        self.seq = face.seq();
        self.kept = stay.kept.take();
        self.muted = std::mem::take(&mut stay.muted);
        session.close().await;
        Ok(stay.next.unwrap_or(Next::Out(Exit::Done)))
    }
}

/// The state of leaving a thread.
struct Stay {
    next: Option<Next>,
    /// The session is closing.
    ending: bool,
    /// Our output was closed.
    gone: bool,
    /// The view of this session, whose settings the next one keeps.
    kept: Option<View>,
    /// The members that the user has muted, in whatever thread.
    muted: BTreeSet<SeatName>,
    /// A message whose files need consent.
    asked: Option<Asked>,
}

impl Stay {
    /// Goes to another thread, with the settings of this session. A member that another program has removed is muted only in
    /// this thread.
    fn go_to(&mut self, session: &Session, next: Next, view: &View) {
        let mut kept = view.clone();
        kept.muted.clone_from(&self.muted);
        self.kept = Some(kept);
        self.end(session, next);
    }

    fn end(&mut self, session: &Session, next: Next) {
        self.ending = true;
        self.next = Some(next);
        // If the session is already closed, that is fine.
        let _ = session.send(Op::Close);
    }

    /// Notes that a signal has closed the session.
    fn leaves(&mut self) {
        self.ending = true;
        self.next = Some(Next::Out(Exit::Interrupted));
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
