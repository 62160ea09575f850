//! `kd chat` on a terminal: opens the threads of the folder, and gives the screen of `kd-tui` its host.

use super::here::Here;
use super::notices::notice_line;
use super::{first, trust};
use crate::args::chat::Chat;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::council::told;
use kd_app::trust::Loaded;
use kd_app::{Kingdom, Runtime};
use kd_core::Timestamp;
use kd_core::config::{ChatFrame, ChatNotify, ChatScreen, ChatTheme};
use kd_core::protocols::PROTOCOLS;
use kd_tui::keymap::Keymap;
use kd_tui::notify::Notify;
use kd_tui::panels::Frame;
use kd_tui::terminal::Place;
use kd_tui::theme::{Choice, Theme, depth, ground};
use kd_tui::{App, Settings, Start};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn run(
    args: &Chat,
    here: &Here,
    (chat, created): (kd_app::Chat, bool),
) -> Result<Exit, Error> {
    let start = start(args, &chat)?;
    let runtime = Runtime::new()?;
    // Before the screen takes over: a download of a model is reported in plain lines.
    let first = match &start {
        Start::Thread(Some(id)) => chat.thread(id).map(Some)?,
        _ => None,
    };
    let seated = chat.seat(first.as_ref(), true)?;
    chat.make_ready(&seated.roster, first.is_none())?;
    // On the screen: what is printed before it takes over is hidden behind it.
    let demo = seated.built_in.then(|| first::told(created, here));
    let env = |name: &str| here.var(name);
    let styles = here.out_styles();
    let shade = if styles.color {
        depth(&env)
    } else {
        kd_tui::theme::Depth::None
    };
    let (keys, mut wrong) = keys(chat.kingdom().loaded());
    let settings = Settings {
        keys: Arc::new(keys),
        frame: match chat.kingdom().config().chat.frame {
            ChatFrame::Box => Frame::Box,
            ChatFrame::Bar => Frame::Bar,
        },
        theme: Theme::new(
            choice(chat.kingdom().config().chat.theme),
            shade,
            ground(&env),
        ),
        links: styles.color && kd_tui::text::links::are_known(&env),
        unicode: styles.unicode,
        gives_up: Some(
            args.timeout
                .unwrap_or(Duration::from_secs(chat.kingdom().config().council.timeout)),
        ),
        zone: jiff::tz::TimeZone::system(),
        modes: PROTOCOLS.iter().map(|p| p.name).collect(),
        sent: chat.sent(),
        shell: chat.kingdom().config().chat.shell,
        secrets: chat.secrets().clone(),
    };
    let mut app = App::new(settings, Timestamp::now());
    wrong.extend(demo.iter().flat_map(|text| text.lines()).map(str::to_owned));
    app.report(wrong);
    let config = &chat.kingdom().config().chat;
    let how = (notify(config.notify), place(config.screen, here));
    let ended = runtime.block_on(kd_tui::run(app, Arc::new(chat), start, how));
    drop(runtime);
    let ended = ended.map_err(|e| {
        Error::new("terminal", Exit::Error, "the terminal cannot be used")
            .because(e)
            .next("kd chat --plain works everywhere")
    })?;
    if let Some(text) = ended.transcript {
        let _ = write!(crate::out::stdout(), "{text}");
    }
    if let Some(id) = ended.thread {
        let _ = writeln!(crate::out::stderr(), "go on: kd chat {id}");
    }
    Ok(if ended.interrupted {
        Exit::Interrupted
    } else {
        Exit::Done
    })
}

/// Opens the threads of the folder; also whether the project was created for that.
pub(super) fn open(args: &Chat, here: &Here) -> Result<(kd_app::Chat, bool), Error> {
    let opened = here.make_layout()?;
    let layout = told(opened.layout, "the threads are", here);
    let loaded = trust::settings(here, Some(&layout))?;
    loaded.notices.iter().for_each(|notice| notice_line(notice));
    let kingdom = Kingdom::with(here.env(false), Some(layout), loaded);
    kingdom.sweep();
    Ok((kingdom.chat(args.request())?, opened.created))
}

/// Returns the thread to start with.
fn start(args: &Chat, chat: &kd_app::Chat) -> Result<Start, Error> {
    if args.new {
        return Ok(Start::Thread(None));
    }
    if let Some(id) = &args.id {
        return Ok(Start::Thread(Some(chat.find(Some(id))?.id.0)));
    }
    if let Some(place) = chat.current()? {
        return Ok(Start::Thread(Some(place.id.0)));
    }
    Ok(match chat.has_threads()? {
        false => Start::Thread(None),
        true => Start::Choose,
    })
}

/// Returns the keys, and the mistakes in the user's changes. A folder changes no keys, not even one whose
/// settings are allowed.
fn keys(loaded: &Loaded) -> (Keymap, Vec<String>) {
    let (keys, mut wrong) = Keymap::new(&loaded.config.chat.keys);
    wrong.extend(loaded.project.refused.iter().map(|path| {
        format!("{path} of this folder has no effect: only your own settings file sets it")
    }));
    (keys, wrong)
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

/// Returns where the screen is drawn. Zellij's own keys scroll only what is not on the alternate screen.
fn place(screen: ChatScreen, here: &Here) -> Place {
    match screen {
        ChatScreen::Never => Place::Inline,
        ChatScreen::Auto if here.var("ZELLIJ").is_some_and(|value| !value.is_empty()) => {
            Place::Inline
        }
        ChatScreen::Auto | ChatScreen::Always => Place::Alternate,
    }
}

fn notify(how: ChatNotify) -> Notify {
    match how {
        ChatNotify::Auto => Notify::Auto,
        ChatNotify::Osc => Notify::Osc,
        ChatNotify::Native => Notify::Native,
        ChatNotify::Bell => Notify::Bell,
        ChatNotify::Off => Notify::Off,
    }
}
