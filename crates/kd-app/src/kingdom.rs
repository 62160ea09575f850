//! A folder in which councils are asked.

use crate::env::Env;
use crate::error::UserError;
use crate::process::sweep;
use crate::trust;
use kd_backends::Backends;
#[cfg(feature = "forum")]
use kd_backends::Gate;
#[cfg(feature = "forum")]
use kd_backends::collect::Collector;
use kd_core::config::Config;
#[cfg(feature = "forum")]
use kd_core::ledger::Ledger;
use kd_core::secrets::Secrets;
#[cfg(feature = "forum")]
use kd_core::spending::Spent;
use kd_engine::Engine;
use kd_store::Layout;
use kd_store::config::{Loaded, Project};
use std::path::PathBuf;
#[cfg(feature = "forum")]
use std::sync::Arc;
use std::sync::OnceLock;

/// A folder with its settings, in which councils are asked.
pub struct Kingdom {
    env: Env,
    /// The project; found later if the folder had none when it was opened: the first thread creates one.
    layout: OnceLock<Layout>,
    loaded: Loaded,
    /// The backends for these settings; opened when first needed, so that questions share connections and models.
    engine: OnceLock<Engine>,
    /// Whether sessions begin with an event that lists the settings held back.
    announces: bool,
}

impl Kingdom {
    /// Opens a folder with the environment of this process. Settings that a project may not make without the user's
    /// consent are held back.
    ///
    /// # Errors
    /// If the settings cannot be read or have mistakes.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, UserError> {
        Self::open_with(Env::process().in_folder(folder))
    }

    /// Opens the working folder of an environment.
    ///
    /// # Errors
    /// Those of [`Kingdom::open`].
    pub fn open_with(env: Env) -> Result<Self, UserError> {
        let layout = env.find_layout()?;
        let loaded = env.settings(layout.as_ref())?;
        trust::tell_held(&loaded.project, &env);
        Ok(Self::with(env, layout, loaded))
    }

    /// Opens a folder whose settings were read, for a host that asks the user about them first.
    pub fn with(env: Env, layout: Option<Layout>, loaded: Loaded) -> Self {
        let found = OnceLock::new();
        if let Some(layout) = layout {
            let _ = found.set(layout);
        }
        Self {
            env,
            layout: found,
            loaded,
            engine: OnceLock::new(),
            announces: true,
        }
    }

    /// Returns this kingdom; its sessions do not announce the settings that are held back.
    #[cfg(feature = "forum")]
    pub(crate) fn not_announcing_what_is_held_back(self) -> Self {
        Self {
            announces: false,
            ..self
        }
    }

    /// The same for the questions of a batch: see [`Env::in_batch`].
    #[cfg(feature = "forum")]
    pub(crate) fn in_batch(
        &self,
        batch: &str,
        account: Arc<dyn Ledger>,
        collector: Option<Collector>,
    ) -> Self {
        let mut own = self.in_env(self.env.quiet(true).in_batch(batch, account, collector));
        // Nobody is there to answer a question of the council.
        own.configure(|config| config.deliberation.ask_back = false);
        own
    }

    /// Returns a host for the same folder with other settings and its own engine.
    #[cfg(feature = "forum")]
    pub(crate) fn changed(&self, change: impl FnOnce(&mut Config)) -> Self {
        let mut own = self.in_env(self.env.clone());
        own.configure(change);
        own
    }

    /// Returns a host with the same settings in another environment, with its own engine.
    #[cfg(feature = "forum")]
    fn in_env(&self, env: Env) -> Self {
        Self {
            env,
            layout: OnceLock::new(),
            loaded: self.loaded.clone(),
            engine: OnceLock::new(),
            announces: self.announces,
        }
    }

    /// The same without agent programs in place of services that have no key.
    #[cfg(feature = "forum")]
    pub(crate) fn without_substitutes(&self) -> Self {
        let mut own = self.in_env(self.env.clone());
        own.configure(|config| config.programs_for_models.clear());
        own
    }

    /// The same for the questions of a fleet: see [`Env::in_fleet`].
    #[cfg(feature = "forum")]
    pub(crate) fn in_fleet(
        &self,
        batch: &str,
        account: Arc<dyn Ledger>,
        gate: Arc<dyn Gate>,
        passing: Option<Arc<str>>,
    ) -> Self {
        let own = self.in_batch(batch, account, None);
        Self {
            env: own.env.in_fleet(gate, passing),
            ..own
        }
    }

    /// The amount that questions to the shared engine have spent so far.
    #[cfg(feature = "forum")]
    pub(crate) fn spent(&self) -> Spent {
        let engine = self.engine.get();
        engine.map_or_else(Spent::default, |engine| engine.spending().used())
    }

    /// Whether sessions list the settings held back.
    pub(crate) fn announces(&self) -> bool {
        self.announces
    }

    /// Changes the settings for all later questions.
    pub fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        change(&mut self.loaded.config);
        self.engine = OnceLock::new();
    }

    /// The environment.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The project, on the branch that its checkout is on now; `None` where there is none yet.
    ///
    /// A project stays the one that it was when the folder was opened, because the settings were read for it.
    pub fn layout(&self) -> Option<Layout> {
        let now = layout_now(&self.env, self.opened())?;
        // Another question may have found it at the same time: it is the same one.
        Some(match self.opened() {
            Some(_) => now,
            None => self.layout.get_or_init(|| now).clone(),
        })
    }

    /// The project as it was when it was found.
    pub(crate) fn opened(&self) -> Option<&Layout> {
        self.layout.get()
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// The settings as they were loaded, with their origins.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Returns the settings that the project requests, and which of them are held back.
    pub fn project(&self) -> &Project {
        &self.loaded.project
    }

    /// Stops agents left by runs that were killed, in any project of the user, and brings the members' states up to date.
    pub fn sweep(&self) {
        if let Some(layout) = self.layout() {
            sweep(&self.env, &layout);
        }
    }

    /// The engine for these settings: shared by all questions whose terms change nothing in them.
    pub(crate) fn engine(&self, config: &Config, secrets: Secrets) -> Engine {
        let new = || Engine::new(Backends::new(config, self.env.backend_options()));
        let engine = match *config == self.loaded.config {
            true => self.engine.get_or_init(new).clone(),
            false => new(),
        };
        let engine = engine.masking(secrets);
        #[cfg(feature = "forum")]
        let engine = self.unsharing(engine);
        engine
    }
}

/// Returns the project of an environment on the branch that its checkout is on now. It stays the one that was opened.
pub(crate) fn layout_now(env: &Env, opened: Option<&Layout>) -> Option<Layout> {
    let now = env.find_layout_accepting(&[]).ok().flatten();
    match opened {
        Some(opened) => now
            .filter(|now| now.root() == opened.root())
            .or_else(|| Some(opened.clone())),
        None => now,
    }
}
