//! `kd chat` on a terminal: the host of the `kd-tui` screen. Provides threads, sessions, drafts and files.

use super::ask::{clock_seed, notice_line, told};
use super::here::Here;
use super::stage::{CHILDREN, FAREWELL};
use super::{aside, export, first, model, outfile, seats, secrets, thread, trust};
use crate::args::chat::Chat;
use crate::args::export::Format;
use crate::error::Error;
use crate::exit::Exit;
use kd_backends::transport::process;
use kd_core::config::{ChatNotify, ChatTheme, Config};
use kd_core::message::{Message, settled};
use kd_core::protocols::{PROTOCOLS, ProtocolKind};
use kd_core::seating::{Seated, Wishes};
use kd_core::slash::{Fork, Way};
use kd_core::{Aside, Budget, Event, OpenCouncil, SeatName, ThreadId, Timestamp};
use kd_engine::Engine;
use kd_store::config::Project;
use kd_store::{Layout, Thread, typed};
use kd_tui::desk::Joining;
use kd_tui::notify::Notify;
use kd_tui::picker::ThreadRow;
use kd_tui::theme::{Choice, Theme, depth, ground};
use kd_tui::{App, Desk, Opening, Settings, Start};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Messages read before the first frame: more than any screen shows.
const TAIL: usize = 100;
/// Maximum threads to choose from.
const THREADS_MAX: usize = 500;
/// Maximum files offered.
const FILES_MAX: usize = 50;

pub(super) fn run(args: &Chat, here: &Here) -> Result<Exit, Error> {
    let opened = here.make_layout()?;
    let layout = told(opened.layout, "the threads are", false);
    let mut loaded = trust::settings(here, Some(&layout))?;
    args.spending.lay_over(&mut loaded.config.limits);
    args.privacy.lay_over(&mut loaded.config.council);
    for notice in &loaded.notices {
        notice_line(notice);
    }
    super::ask::sweep(&layout, false);
    let start = start(args, &layout)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(super::WORKERS)
        .enable_all()
        .build()
        .map_err(|e| Error::new("io", Exit::Error, "cannot start an OS thread").because(e))?;
    let secrets = secrets::of(&loaded.config, args.privacy.allow_secrets);
    let desk = House {
        args: args.clone(),
        engine: Engine::new(kd_backends::Backends::new(
            &loaded.config,
            super::here::agents(),
        ))
        .masking(secrets.clone()),
        layout,
        config: loaded.config,
        project: loaded.project,
    };
    // Before the screen takes over: a download of a model is reported in plain lines.
    let first = match &start {
        Start::Thread(Some(id)) => Thread::open(&thread::resolve(&desk.layout, Some(id))?).ok(),
        _ => None,
    };
    let seated = desk.seat_in(first.as_ref().map(|thread| desk.goes_on(thread)))?;
    // A thread can be read even if its members cannot answer.
    let new = seated.roster.members().iter().filter(|_| first.is_none());
    let offline = args.model.offline;
    model::make_ready_for(&desk.config, offline, false, &seated.roster, new)?;
    if seated.built_in {
        first::notice(opened.created);
    }
    let env = |name: &str| here.var(name);
    let styles = here.out_styles();
    let shade = if styles.color {
        depth(&env)
    } else {
        kd_tui::theme::Depth::None
    };
    let settings = Settings {
        theme: Theme::new(choice(desk.config.chat.theme), shade, ground(&env)),
        unicode: styles.unicode,
        gives_up: Some(
            args.timeout
                .unwrap_or(Duration::from_secs(desk.config.council.timeout)),
        ),
        zone: jiff::tz::TimeZone::system(),
        modes: PROTOCOLS.iter().map(|p| p.name).collect(),
        sent: desk.sent(),
        secrets,
    };
    let app = App::new(settings, Timestamp::now());
    let notify = notify(desk.config.chat.notify);
    let ended = runtime.block_on(kd_tui::run(app, Arc::new(desk), start, notify));
    runtime.shutdown_timeout(FAREWELL);
    // No agent program, and no tool of one, outlives the chat.
    process::settle(CHILDREN);
    let ended = ended.map_err(|e| {
        Error::new("terminal", Exit::Error, "the terminal cannot be used")
            .because(e)
            .next("kd chat --plain works everywhere")
    })?;
    if let Some(id) = ended.thread {
        let _ = writeln!(io::stderr(), "go on: kd chat {id}");
    }
    Ok(if ended.interrupted {
        Exit::Interrupted
    } else {
        Exit::Done
    })
}

/// Returns the thread to start with.
fn start(args: &Chat, layout: &Layout) -> Result<Start, Error> {
    if args.new {
        return Ok(Start::Thread(None));
    }
    if let Some(id) = &args.id {
        let place = thread::resolve(layout, Some(id))?;
        return Ok(Start::Thread(Some(place.id.0)));
    }
    if let Some(place) = layout.current_thread()? {
        return Ok(Start::Thread(Some(place.id.0)));
    }
    Ok(if layout.threads()?.is_empty() {
        Start::Thread(None)
    } else {
        Start::Choose
    })
}

fn choice(theme: ChatTheme) -> Choice {
    match theme {
        ChatTheme::Auto => Choice::Auto,
        ChatTheme::Dark => Choice::Dark,
        ChatTheme::Light => Choice::Light,
        ChatTheme::Terminal => Choice::Terminal,
        ChatTheme::Plain => Choice::Plain,
    }
}

fn notify(how: ChatNotify) -> Notify {
    match how {
        ChatNotify::Auto => Notify::Auto,
        ChatNotify::Osc => Notify::Osc,
        ChatNotify::Bell => Notify::Bell,
        ChatNotify::Off => Notify::Off,
    }
}

/// The host of the screen.
struct House {
    args: Chat,
    layout: Layout,
    config: Config,
    project: Project,
    engine: Engine,
}

/// Returns the rule for who speaks next.
fn protocol(config: &Config) -> ProtocolKind {
    config.council.mode
}

/// Formats an error as one line that says what to do.
fn line(error: impl Into<Error>) -> String {
    error.into().as_line()
}

impl House {
    fn goes_on(&self, thread: &Thread) -> trust::GoesOn {
        trust::GoesOn::of(&self.layout, thread, self.args.id.as_deref())
    }

    /// Returns the settings and members held back, for the screen.
    fn held_event(&self, left_out: &[SeatName]) -> Option<Event> {
        let members: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        let settings = Vec::new();
        (!members.is_empty() && self.args.members.is_empty())
            .then_some(Event::HeldBack { settings, members })
    }

    /// Seats the council while the screen is shown.
    fn seat(&self, thread: Option<&Thread>) -> Result<Seated, Error> {
        self.seat_in(thread.map(|thread| self.goes_on(thread).quietly()))
    }

    fn seat_in(&self, thread: Option<trust::GoesOn>) -> Result<Seated, Error> {
        let named = trust::Named {
            thread,
            ..trust::Named::only(&self.args.members)
        };
        let members = trust::check(&self.project, named)?;
        let wishes = Wishes {
            members: self.args.members.clone(),
            ..seats::wishes(&self.args.model, self.args.timeout)
        };
        seats::seat_in(&self.config, wishes, members.as_deref())
    }

    fn thread(&self, id: &str) -> Result<Thread, String> {
        let place = thread::resolve(&self.layout, Some(id)).map_err(line)?;
        Thread::open(&place).map_err(line)
    }

    fn sent(&self) -> Vec<String> {
        typed::sent(&self.layout)
    }
}

impl Desk for House {
    fn open(&self, id: Option<&str>) -> Result<Opening, String> {
        let thread = match id {
            Some(id) => {
                let thread = self.thread(id)?;
                self.layout.set_current_thread(thread.id()).map_err(line)?;
                thread
            }
            None => {
                let seated = self.seat(None).map_err(line)?;
                let names: Vec<_> = seated
                    .roster
                    .members()
                    .iter()
                    .map(|m| m.name.clone())
                    .collect();
                Thread::create(&self.layout, &names).map_err(line)?
            }
        };
        let tail = thread.tail(TAIL).map_err(line)?.messages;
        let seated = self.seat(Some(&thread)).map_err(line)?;
        Ok(Opening {
            id: thread.id().0.clone(),
            members: seated
                .roster
                .members()
                .iter()
                .map(|m| m.name.clone())
                .collect(),
            mode: Some(protocol(&self.config).name.to_owned()),
            auto_messages: self.config.council.auto_messages,
            has_older: tail.first().is_some_and(|m| m.seq > 1),
            draft: typed::draft(&self.layout, thread.id()),
            tail,
        })
    }

    fn join(&self, id: &str) -> Joining {
        let mut left_out = Vec::new();
        let opened = self.thread(id).and_then(|thread| {
            left_out = self.goes_on(&thread).left_out(&self.project);
            let seated = self.seat(Some(&thread)).map_err(line)?;
            Ok((thread, seated.roster))
        });
        let (engine, config, offline) = (
            self.engine.clone().telling(self.held_event(&left_out)),
            self.config.clone(),
            self.args.model.offline,
        );
        let seed = self.args.model.seed.unwrap_or_else(clock_seed);
        let layout = self.layout.clone();
        Box::pin(async move {
            let (thread, roster) = opened?;
            // Reads the whole thread while the screen is shown.
            let joining = tokio::task::spawn_blocking(move || {
                model::make_ready_for(&config, offline, true, &roster, []).map_err(line)?;
                let queue = layout.queue_folder(thread.path());
                let open = OpenCouncil {
                    thread: thread.id().clone(),
                    protocol: protocol(&config),
                    prompts: seats::prompts(&config, &roster, &thread.meta().phase),
                    history: Vec::new(),
                    seed,
                    limits: Budget {
                        auto_messages: config.council.auto_messages,
                        ..Budget::default()
                    },
                    conclude: false,
                    roster,
                    queue: None,
                    last: None,
                };
                engine
                    .join_from_now(thread, open, queue.as_deref())
                    .map_err(|e| format!("{e}: {}", e.hint()))
            });
            joining
                .await
                .map_err(|e| format!("the thread could not be opened: {e}"))?
        })
    }

    fn aside(
        &self,
        id: &str,
        way: Way,
        question: Option<String>,
        muted: &[SeatName],
    ) -> Result<Aside, String> {
        let thread = self.thread(id)?;
        let seated = self.seat(Some(&thread)).map_err(line)?;
        let desk = aside::Desk {
            config: &self.config,
            layout: &self.layout,
            thread: &thread,
            roster: &seated.roster,
            muted,
            wishes: seats::wishes(&self.args.model, self.args.timeout),
            offline: self.args.model.offline,
        };
        desk.aside(way, question, true).map_err(line)
    }

    fn older(&self, id: &str, before: u32, most: usize) -> Result<(Vec<Message>, bool), String> {
        let (read, more) = self.thread(id)?.before(before, most).map_err(line)?;
        let messages = settled(&read.messages).into_iter().cloned().collect();
        Ok((messages, more))
    }

    fn newer(&self, id: &str, after: u32) -> Result<Vec<Message>, String> {
        Ok(self.thread(id)?.since(after).map_err(line)?.messages)
    }

    fn threads(&self) -> Result<Vec<ThreadRow>, String> {
        let mut rows = Vec::new();
        for place in self.layout.threads().map_err(line)? {
            let thread = Thread::open(&place).map_err(line)?;
            if !thread.meta().is_council() {
                continue;
            }
            let first = thread.head(1).map_err(line)?.messages;
            let last = thread.tail(1).map_err(line)?.messages;
            rows.push(ThreadRow {
                id: place.id.0,
                at: last.first().map(|m| m.at),
                messages: thread.count().map_err(line)?,
                members: thread.members().iter().map(ToString::to_string).collect(),
                question: first
                    .first()
                    .map(|m| m.body.to_string())
                    .unwrap_or_default(),
            });
        }
        rows.sort_by(|a, b| (b.at, &b.id).cmp(&(a.at, &a.id)));
        rows.truncate(THREADS_MAX);
        Ok(rows)
    }

    fn files(&self, begun: &str) -> Vec<String> {
        let (folder, start) = begun.rsplit_once('/').unwrap_or(("", begun));
        let at = if folder.is_empty() && begun.starts_with('/') {
            Path::new("/")
        } else if folder.is_empty() {
            Path::new(".")
        } else {
            Path::new(folder)
        };
        let Ok(entries) = std::fs::read_dir(at) else {
            return Vec::new();
        };
        let mut found: Vec<String> = entries
            .flatten()
            .filter_map(|e| {
                let name = e.file_name().into_string().ok()?;
                let hidden = name.starts_with('.') && !start.starts_with('.');
                if hidden || !name.starts_with(start) || name.contains(char::is_whitespace) {
                    return None;
                }
                let slash = if e.path().is_dir() { "/" } else { "" };
                let lead = &begun[..begun.len() - start.len()];
                Some(format!("{lead}{name}{slash}"))
            })
            .collect();
        found.sort();
        found.truncate(FILES_MAX);
        found
    }

    fn keep_draft(&self, id: &str, text: &str) {
        // A draft that cannot be saved does not stop the user from typing.
        let _ = typed::keep_draft(&self.layout, &ThreadId(id.to_owned()), text);
    }

    fn remember(&self, text: &str) {
        // The same applies to a sent message: it is in the thread.
        let _ = typed::remember(&self.layout, text);
    }

    fn fork(&self, id: &str, fork: Fork) -> Result<String, String> {
        let thread = self.thread(id)?;
        let forked = super::fork::of_chat(&self.layout, &thread, fork).map_err(line)?;
        Ok(forked.id().0.clone())
    }

    fn export(&self, id: &str, file: Option<&str>) -> Result<String, String> {
        let thread = self.thread(id)?;
        let path = file.map_or_else(|| PathBuf::from(format!("{id}.md")), PathBuf::from);
        let format = Format::of_name(&path);
        if file.is_none() && path.exists() {
            return Err(format!(
                "{} already exists: /export and another name",
                path.display()
            ));
        }
        outfile::write_with(&path, |out| export::write(&thread, format, out)).map_err(line)?;
        Ok(path.display().to_string())
    }

    fn spill(&self, text: &str) -> Result<String, String> {
        let path = typed::keep_copied(&self.layout, text)
            .map_err(|e| format!("nothing could be copied: {e}"))?;
        Ok(path.display().to_string())
    }
}
