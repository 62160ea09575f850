//! The environment: folder, variables, terminal. Commands access these only through this file.

use super::ask::notice_line;
use crate::args::Color;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::style::Styles;
use kd_backends::discovery;
use kd_core::config::Config;
use kd_core::ledger::Ledger;
use kd_core::prices::Prices;
use kd_core::{Event, SeatName};
use kd_store::config::{ConfigPaths, Loaded};
use kd_store::find::{Foreign, Reason, foreign_owners};
use kd_store::ledger::LedgerFile;
use kd_store::owner::Distrust;
use kd_store::programs::Programs;
use kd_store::trust::TrustStore;
use kd_store::{Layout, PassedOver, UserDirs};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, PoisonError};

/// Returns the options for running agents: the environment, and whether the user trusts what agent programs run and
/// obey in the working folder. If that or the state folder is unreliable, it is not trusted.
pub(super) fn agents() -> kd_backends::Options {
    let trusts = || {
        let folder = std::env::current_dir().ok()?;
        let store = TrustStore::new(&UserDirs::from_env(&os_var)).ok()?;
        store.trusts(&Programs::look(&folder).ok()?).ok()
    };
    kd_backends::Options {
        trusted: trusts().unwrap_or(false),
        git_data: Some(kd_store::git::data_outside),
        ledger: ledger()
            .ok()
            .map(|ledger| Arc::new(ledger) as Arc<dyn Ledger>),
        env: env(),
        ..kd_backends::Options::default()
    }
}

/// Returns the environment for asking members, with the same home folder as for settings files.
pub(super) fn env() -> kd_backends::Env {
    kd_backends::Env::looking_up(os_var)
}

/// Adds what no settings file contains: installed programs, and prices.
pub(super) fn fill_in(config: &mut Config) {
    config.programs_for_models = discovery::programs_for_models(&env(), config);
    config.prices = prices();
}

/// Returns the price table in force; if the user's own is unusable, the built-in one, with a note.
fn prices() -> Prices {
    static TOLD: Once = Once::new();
    kd_store::prices::load(&user_dirs()).unwrap_or_else(|error| {
        TOLD.call_once(|| {
            notice_line(&format!(
                "{error}; the prices in the program are used: {}",
                error.hint()
            ));
        });
        Prices::default()
    })
}

/// Opens the ledger of all the user's spending.
pub(super) fn ledger() -> Result<LedgerFile, Error> {
    let folder = std::env::current_dir().unwrap_or_default();
    let found = Layout::search(&folder, &os_var)
        .ok()
        .and_then(|found| found.layout);
    let project = found.map_or(folder, |layout| layout.root().to_path_buf());
    let zone = jiff::tz::TimeZone::system();
    Ok(LedgerFile::new(
        &user_dirs(),
        project.display().to_string(),
        zone,
    )?)
}

/// The environment of a command.
pub(super) struct Here {
    color: Color,
    held: Mutex<Held>,
}

/// What is held back of the folder.
#[derive(Clone, Default)]
struct Held {
    settings: Vec<String>,
    members: Vec<String>,
}

impl Here {
    pub(super) fn new(color: Color) -> Self {
        Self {
            color,
            held: Mutex::default(),
        }
    }

    /// Records this folder's settings held back, and the members left out because of them, for JSON output.
    pub(super) fn hold_back(&self, settings: Vec<String>, members: Vec<String>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Held { settings, members };
    }

    /// Records members left out of a thread of this folder.
    pub(super) fn leave_out(&self, members: &[SeatName]) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for name in members.iter().map(ToString::to_string) {
            if !held.members.contains(&name) {
                held.members.push(name);
            }
        }
    }

    /// Returns the settings held back and the members left out, as the event that a session begins with.
    pub(super) fn held_event(&self) -> Option<Event> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Held { settings, members } = held.clone();
        let nothing = settings.is_empty() && members.is_empty();
        (!nothing).then_some(Event::HeldBack { settings, members })
    }

    /// Returns an environment variable, if it is valid text.
    pub(super) fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// Returns whether a variable is set to a value that means yes.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.var(name)
            .is_some_and(|v| !matches!(v.as_str(), "" | "0" | "false" | "no" | "off"))
    }

    /// Returns the working folder.
    pub(super) fn folder(&self) -> Result<PathBuf, Error> {
        std::env::current_dir().map_err(|e| {
            Error::new("io", Exit::Error, "the working folder cannot be found")
                .because(e)
                .next("go to a folder that exists")
        })
    }

    /// Returns the project here, if there is one.
    pub(super) fn find_layout(&self) -> Result<Option<Layout>, Error> {
        let found = Layout::search(&self.folder()?, &os_var)?;
        tell(&found.passed_over);
        Ok(found.layout)
    }

    /// Returns the project here, as if the user had accepted these owners.
    pub(super) fn find_layout_accepting(
        &self,
        owners: &[Foreign],
    ) -> Result<Option<Layout>, Error> {
        Ok(Layout::search_accepting(&self.folder()?, &os_var, owners)?.layout)
    }

    /// Returns the owner of the nearest `.kd`, if it is ignored only because of its owner. Returns an error if
    /// accepting the owner would not be enough.
    pub(super) fn passed_over_for_its_owner(
        &self,
    ) -> Result<Option<Result<Foreign, Distrust>>, Error> {
        let found = Layout::search(&self.folder()?, &os_var)?;
        let nearest = found.passed_over.first();
        Ok(nearest.and_then(|over| match over.why {
            Reason::Distrust(Distrust::Owner(_)) => Some(foreign_owners(&over.root, &os_var)),
            _ => None,
        }))
    }

    /// Returns the project here, or an error if there is none.
    pub(super) fn layout(&self) -> Result<Layout, Error> {
        let start = self.folder()?;
        let found = self.find_layout()?;
        Ok(found.ok_or(kd_store::Error::NoBase { start })?)
    }

    /// Returns the project here; creates it if there is none.
    pub(super) fn make_layout(&self) -> Result<kd_store::Opened, Error> {
        let opened = Layout::find_or_create(&self.folder()?, &os_var)?;
        tell(&opened.passed_over);
        Ok(opened)
    }

    /// Returns the possible paths of configuration files.
    pub(super) fn config_paths(&self, layout: Option<&Layout>) -> ConfigPaths {
        ConfigPaths::usual(layout)
    }

    /// Returns the settings in force. Holds back those that need consent and have none; commands that act on settings
    /// use `trust::settings`, which asks.
    pub(super) fn config(&self, layout: Option<&Layout>) -> Result<Loaded, Error> {
        let mut loaded =
            kd_store::config::load(&self.config_paths(layout), std::env::vars_os(), &[])?;
        fill_in(&mut loaded.config);
        Ok(loaded)
    }

    /// Returns the styles of stdout.
    pub(super) fn out_styles(&self) -> Styles {
        self.styles(io::stdout().is_terminal())
    }

    /// Returns the styles of stderr.
    pub(super) fn err_styles(&self) -> Styles {
        self.styles(io::stderr().is_terminal())
    }

    fn styles(&self, terminal: bool) -> Styles {
        Styles::decide(self.color.into(), terminal, &|name| self.var(name))
    }

    /// Returns whether stdout is a terminal on which lines can be repainted, and the user allows it.
    pub(super) fn can_repaint(&self) -> bool {
        let dumb = self.var("TERM").is_none_or(|t| t.is_empty() || t == "dumb");
        io::stdout().is_terminal() && !dumb && !self.is_on("ACCESSIBLE")
    }

    /// Returns the columns for text on stdout: the terminal's, else 80.
    pub(super) fn columns(&self) -> usize {
        super::terminal::size().map_or(80, |(columns, _)| columns.into())
    }
}

/// Returns the user's folders.
pub(super) fn user_dirs() -> kd_store::UserDirs {
    kd_store::UserDirs::from_env(&os_var)
}

/// Names the ignored `.kd` folders, each once.
fn tell(passed_over: &[PassedOver]) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    for line in passed_over.iter().map(ToString::to_string) {
        if told.insert(line.clone()) {
            super::ask::notice_line(&line);
        }
    }
}

/// Returns a variable of the environment, as seen by everything that looks for the user's files.
pub(super) fn os_var(name: &str) -> Option<OsString> {
    kd_store::user_dirs::process_env(name)
}

impl From<kd_store::Error> for Error {
    fn from(error: kd_store::Error) -> Self {
        let kind = match &error {
            kd_store::Error::NoBase { .. } | kd_store::Error::NoThread { .. } => "no_thread",
            kd_store::Error::AmbiguousThread { .. } => "ambiguous_thread",
            kd_store::Error::Newer { .. } => "too_new",
            _ => "store",
        };
        let why = std::error::Error::source(&error).map(ToString::to_string);
        let mut out = Error::new(kind, Exit::Error, error.to_string()).next(error.hint());
        // Some errors already contain their cause.
        out.why = why.filter(|why| !out.what.contains(why));
        out
    }
}

impl From<kd_store::config::ConfigError> for Error {
    fn from(error: kd_store::config::ConfigError) -> Self {
        let count = error.problems.len();
        let what = match count {
            1 => error.problems[0].to_string(),
            _ => format!("the configuration has {count} mistakes"),
        };
        let mut out = Error::new("config", Exit::Usage, what).next(error.hint());
        if count > 1 {
            out.why = Some(error.to_string());
        }
        out
    }
}
