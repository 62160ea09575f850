//! The outside as this library sees it: environment variables, the working folder, and a place for notices.

use crate::error::{ErrorKind, UserError};
use crate::folder_tools::FolderTools;
use crate::notice::Notice;
use kd_backends::backends::Reader;
use kd_backends::collect::Collector;
use kd_backends::{Backend, Gate, OwnBackends, discovery, providers};
use kd_core::Timestamp;
use kd_core::config::Config;
use kd_core::ledger::Ledger;
use kd_core::prices::Prices;
use kd_core::seating::service_of;
use kd_store::config::{ConfigPaths, Loaded};
use kd_store::find::{Foreign, Reason, foreign_owners};
use kd_store::ledger::LedgerFile;
use kd_store::owner::Distrust;
use kd_store::programs::Programs;
use kd_store::trust::TrustStore;
use kd_store::{Exposed, Layout, Opened, PassedOver, UserDirs};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

type Notify = dyn Fn(&Notice) + Send + Sync;

/// Environment variables, a working folder and a receiver of notices. Nothing else of the process is read.
///
/// Clones share the set of notices that were already given, so that a notice about the folder is given once.
#[derive(Clone)]
pub struct Env {
    vars: Arc<BTreeMap<OsString, OsString>>,
    folder: Option<PathBuf>,
    notify: Option<Arc<Notify>>,
    quiet: bool,
    backends: OwnBackends,
    told: Arc<Mutex<BTreeSet<String>>>,
    /// Whether the files that agent programs run and obey in the folder are under review.
    reviews: bool,
    /// The batch in which threads are created.
    batch: Option<Arc<str>>,
    /// The gate of a fleet, whose members are services and the built-in model only.
    gate: Option<Arc<dyn Gate>>,
    /// The folder of a worker, in which its threads are until the database has them.
    passing: Option<Arc<str>>,
    /// Where requests are recorded, in place of the user's ledger.
    account: Option<Arc<dyn Ledger>>,
    /// Gathers requests for provider batches.
    collector: Option<Collector>,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Variables hold keys.
        f.debug_struct("Env")
            .field("folder", &self.folder)
            .field("quiet", &self.quiet)
            .finish_non_exhaustive()
    }
}

impl Env {
    /// The variables and the working folder of this process, as they are now. `HOME` is the home folder of the password
    /// file where it is unset, empty or relative.
    pub fn process() -> Self {
        let mut vars: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        match kd_store::user_dirs::process_env("HOME") {
            Some(home) => drop(vars.insert("HOME".into(), home)),
            None => drop(vars.remove(OsStr::new("HOME"))),
        }
        Self {
            folder: std::env::current_dir().ok(),
            ..Self::of(vars)
        }
    }

    /// Exactly these variables, without a working folder: see [`Env::in_folder`].
    pub fn of<K: Into<OsString>, V: Into<OsString>>(
        vars: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let vars = vars.into_iter().map(|(k, v)| (k.into(), v.into()));
        Self {
            vars: Arc::new(vars.collect()),
            folder: None,
            notify: None,
            quiet: false,
            backends: OwnBackends::default(),
            told: Arc::default(),
            reviews: false,
            batch: None,
            gate: None,
            passing: None,
            account: None,
            collector: None,
        }
    }

    /// Returns this environment with another working folder. The process does not change its own.
    #[must_use]
    pub fn in_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: Some(folder.into()),
            ..self
        }
    }

    /// Returns this environment with a receiver of notices. Without one they are dropped.
    #[must_use]
    pub fn telling(self, notify: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        Self {
            notify: Some(Arc::new(notify)),
            ..self
        }
    }

    /// Returns this environment with a backend of the host. It answers for members whose `backend` has this name.
    #[must_use]
    pub fn with_backend(mut self, name: impl Into<String>, backend: Arc<dyn Backend>) -> Self {
        self.backends.0.insert(name.into(), backend);
        self
    }

    /// The same for the questions of a batch: their threads are created in it, and their requests are recorded in its
    /// account.
    #[cfg(feature = "forum")]
    #[must_use]
    pub(crate) fn in_batch(
        &self,
        batch: &str,
        account: Arc<dyn Ledger>,
        collector: Option<Collector>,
    ) -> Self {
        Self {
            batch: Some(batch.into()),
            account: Some(account),
            collector,
            ..self.clone()
        }
    }

    /// The same for a review: what agent programs run and obey in a tree under review is not trusted, even if the user
    /// trusted it before.
    pub(crate) fn in_review(&self) -> Self {
        Self {
            reviews: true,
            ..self.clone()
        }
    }

    /// Whether the questions belong to a batch.
    pub(crate) fn is_in_batch(&self) -> bool {
        self.batch.is_some()
    }

    /// Whether the questions belong to a fleet, which may run them for another user.
    pub(crate) fn is_in_fleet(&self) -> bool {
        self.gate.is_some()
    }

    /// Returns the seed for a question of a batch with provider batches: the same in every run, so that the next run asks
    /// for the same replies.
    pub(crate) fn seed_of(&self, question: &str) -> Option<u64> {
        let batch = self.batch.as_ref().filter(|_| self.collector.is_some())?;
        let mut hash = Sha256::new();
        hash.update(batch.as_bytes());
        hash.update(question);
        let first = hash.finalize();
        let first = first.as_slice().first_chunk::<8>()?;
        Some(u64::from_le_bytes(*first) & ((1 << 53) - 1))
    }

    /// The same for a fleet: other machines create threads of the batch too, and requests pass its gate. `passing`: the folder for
    /// the threads of a worker.
    #[cfg(feature = "forum")]
    #[must_use]
    pub(crate) fn in_fleet(&self, gate: Arc<dyn Gate>, passing: Option<Arc<str>>) -> Self {
        Self {
            gate: Some(gate),
            passing,
            ..self.clone()
        }
    }

    /// Returns the paths of the batch, if there is one.
    fn placed(&self, layout: Layout) -> Layout {
        match (&self.batch, &self.gate) {
            (Some(batch), Some(_)) => match &self.passing {
                Some(folder) => layout.in_fleet(batch).passing(folder),
                None => layout.in_fleet(batch),
            },
            (Some(batch), None) => layout.in_batch(batch),
            (None, _) => layout,
        }
    }

    /// Returns this environment; if `quiet`, it suppresses remarks ([`Notice::Note`]) and downloads.
    #[must_use]
    pub fn quiet(&self, quiet: bool) -> Self {
        Self {
            quiet,
            ..self.clone()
        }
    }

    /// Tells the host something.
    pub fn tell(&self, notice: &Notice) {
        let is_dropped = self.quiet && !matches!(notice, Notice::Warning(_));
        if let Some(notify) = self.notify.as_ref().filter(|_| !is_dropped) {
            notify(notice);
        }
    }

    /// Tells the host a remark that a quiet program leaves out.
    pub fn note(&self, text: impl Into<String>) {
        self.tell(&Notice::Note(text.into()));
    }

    /// Tells the host a remark that the user should see in any case.
    pub fn warn(&self, text: impl Into<String>) {
        self.tell(&Notice::Warning(text.into()));
    }

    /// Gives a warning, unless the same text was given before.
    fn warn_once(&self, text: String) {
        warn_once(&self.told, self.notify.as_deref(), text);
    }

    /// The value of a variable.
    pub fn var_os(&self, name: &str) -> Option<OsString> {
        self.vars.get(OsStr::new(name)).cloned()
    }

    /// The value of a variable, if it is text.
    pub fn var(&self, name: &str) -> Option<String> {
        self.var_os(name)?.into_string().ok()
    }

    /// Whether a variable is set to something that means yes.
    pub fn is_on(&self, name: &str) -> bool {
        self.var(name)
            .is_some_and(|v| !matches!(v.as_str(), "" | "0" | "false" | "no" | "off"))
    }

    /// Returns the time for marks and for the weekly hint: now, or the time in `KD_NOW`, for tests.
    ///
    /// # Errors
    /// `KD_NOW` is not a time.
    pub fn now(&self) -> Result<Timestamp, UserError> {
        match self.var_os("KD_NOW").filter(|text| !text.is_empty()) {
            None => Ok(Timestamp::now()),
            Some(text) => text
                .to_str()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| {
                    UserError::usage("KD_NOW is not a time")
                        .next("KD_NOW=2026-03-01T09:00:00Z, or unset it")
                }),
        }
    }

    /// The working folder.
    ///
    /// # Errors
    /// If there is none: for example if it was removed.
    pub fn folder(&self) -> Result<&Path, UserError> {
        self.folder.as_deref().ok_or_else(|| {
            UserError::new(ErrorKind::Io, "the working folder cannot be found")
                .next("go to a folder that exists")
        })
    }

    /// The variables, for backends. With `offline` nothing is downloaded.
    pub(crate) fn of_backends(&self, offline: bool) -> kd_backends::Env {
        let vars = Arc::clone(&self.vars);
        kd_backends::Env::looking_up(move |name| match name {
            "KD_OFFLINE" if offline => Some("1".into()),
            name => vars.get(OsStr::new(name)).cloned(),
        })
    }

    /// Returns the options with which agents are started: the variables, and whether the user trusts the files that
    /// agent programs run and obey in the working folder. If that cannot be determined, they are not trusted.
    pub(crate) fn backend_options(&self) -> kd_backends::Options {
        let trusts = || {
            let store = TrustStore::new(&self.user_dirs()).ok()?;
            store
                .trusts(&Programs::look(self.folder.as_deref()?).ok()?)
                .ok()
        };
        kd_backends::Options {
            trusted: !self.reviews && trusts().unwrap_or(false),
            git_data: Some(kd_store::git::data_outside),
            ledger: self.account.clone().or_else(|| self.shared_ledger()),
            collector: self.collector.clone(),
            gate: self.gate.clone(),
            reader: self.reader(),
            ..self.options_to_look()
        }
    }

    /// Returns what reads the folder for members at a service. The questions of a batch are asked without it: their replies
    /// are kept, and files change.
    fn reader(&self) -> Option<Reader> {
        let variables = self.vars.iter().filter_map(|(name, value)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        });
        let tools = || FolderTools::new(variables);
        (!self.is_in_batch() && !self.is_in_fleet()).then(|| Reader(Arc::new(tools())))
    }

    /// Returns options with which nothing is asked: they tell which members could answer. Reads no files.
    pub(crate) fn options_to_look(&self) -> kd_backends::Options {
        kd_backends::Options {
            env: self.of_backends(false),
            folder: self.folder.clone(),
            own: self.backends.clone(),
            ..kd_backends::Options::default()
        }
    }

    /// The user's own folders.
    pub(crate) fn user_dirs(&self) -> UserDirs {
        UserDirs::from_env(&|name| self.var_os(name))
    }

    /// The same, for backends; `None` if the user's folders are unknown.
    pub(crate) fn shared_ledger(&self) -> Option<Arc<dyn Ledger>> {
        let ledger = self.ledger().ok()?;
        let (told, notify) = (Arc::clone(&self.told), self.notify.clone());
        Some(Arc::new(ledger.telling(move |error| {
            let why = format!(
                "what members cost is not recorded: {error}; {}",
                error.hint()
            );
            warn_once(&told, notify.as_deref(), why);
        })))
    }

    /// Returns the record of the spending of all runs of the user.
    ///
    /// # Errors
    /// If the user's folders are unknown.
    pub fn ledger(&self) -> Result<LedgerFile, UserError> {
        let folder = self.folder.clone().unwrap_or_default();
        let found = Layout::search(&folder, &|name| self.var_os(name))
            .ok()
            .and_then(|found| found.layout);
        let project = found.map_or(folder, |layout| layout.root().to_path_buf());
        let zone = jiff::tz::TimeZone::system();
        Ok(LedgerFile::new(
            &self.user_dirs(),
            project.display().to_string(),
            zone,
        )?)
    }

    /// The project of the working folder, if there is one.
    ///
    /// # Errors
    /// If folders cannot be read.
    pub fn find_layout(&self) -> Result<Option<Layout>, UserError> {
        let found = Layout::search(self.folder()?, &|name| self.var_os(name))?;
        self.tell_passed_over(&found.passed_over);
        Ok(found.layout.map(|layout| self.placed(layout)))
    }

    /// The project of the working folder, as if the user had accepted these owners.
    ///
    /// # Errors
    /// If folders cannot be read.
    pub fn find_layout_accepting(&self, owners: &[Foreign]) -> Result<Option<Layout>, UserError> {
        let lookup = |name: &str| self.var_os(name);
        let found = Layout::search_accepting(self.folder()?, &lookup, owners)?.layout;
        Ok(found.map(|layout| self.placed(layout)))
    }

    /// The owner of the nearest `.kd`, if the owner is the only reason why it is not used. An error if accepting the
    /// owner would not be enough.
    ///
    /// # Errors
    /// If folders cannot be read.
    pub fn passed_over_for_its_owner(
        &self,
    ) -> Result<Option<Result<Foreign, Distrust>>, UserError> {
        let lookup = |name: &str| self.var_os(name);
        let found = Layout::search(self.folder()?, &lookup)?;
        let nearest = found.passed_over.first();
        Ok(nearest.and_then(|over| match over.why {
            Reason::Distrust(Distrust::Owner(_)) => Some(foreign_owners(&over.root, &lookup)),
            _ => None,
        }))
    }

    /// The project of the working folder.
    ///
    /// # Errors
    /// If there is none.
    pub fn layout(&self) -> Result<Layout, UserError> {
        let found = self.find_layout()?;
        let start = self.folder()?.to_path_buf();
        Ok(found.ok_or(kd_store::Error::NoBase { start })?)
    }

    /// The project of the working folder; it is created if there is none.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn make_layout(&self) -> Result<Opened, UserError> {
        let opened = Layout::find_or_create(self.folder()?, &|name| self.var_os(name))?;
        self.tell_passed_over(&opened.passed_over);
        self.tell_what_git_sees(&opened.layout);
        Ok(Opened {
            layout: self.placed(opened.layout),
            ..opened
        })
    }

    /// Returns the paths at which configuration files may be.
    pub fn config_paths(&self, layout: Option<&Layout>) -> ConfigPaths {
        ConfigPaths::usual(layout, &|name| self.var_os(name))
    }

    /// The settings in force. What needs consent and has none is held back.
    ///
    /// # Errors
    /// If the files cannot be read or have mistakes.
    pub fn settings(&self, layout: Option<&Layout>) -> Result<Loaded, UserError> {
        let vars = self.vars.iter().map(|(k, v)| (k.clone(), v.clone()));
        let mut loaded = kd_store::config::load(&self.config_paths(layout), vars, &[])?;
        self.fill_in(&mut loaded.config);
        Ok(loaded)
    }

    /// Adds to settings what no file of settings says: addresses of services, installed programs, their services, and prices.
    pub fn fill_in(&self, config: &mut Config) {
        providers::add_addresses(config, &self.of_backends(false));
        config.programs_for_models =
            discovery::programs_for_models(&self.of_backends(false), config);
        let variables = self.vars.iter().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value.to_str()?);
            Some((name.to_owned(), service_of(name, value)?))
        });
        config.services = variables.collect();
        config.prices = self.prices();
    }

    /// All variables.
    pub fn vars(&self) -> impl Iterator<Item = (OsString, OsString)> + '_ {
        self.vars.iter().map(|(k, v)| (k.clone(), v.clone()))
    }

    /// The prices in effect. If the user's own prices cannot be used, the prices of the program, with a warning.
    fn prices(&self) -> Prices {
        kd_store::prices::load(&self.user_dirs()).unwrap_or_else(|error| {
            self.warn_once(format!(
                "{error}; the prices in the program are used: {}",
                error.hint()
            ));
            Prices::default()
        })
    }

    /// Says once for each `.kd` in a checkout what git can commit of it.
    pub(crate) fn tell_what_git_sees(&self, layout: &Layout) {
        if self.quiet {
            return;
        }
        // Adds what its .gitignore lacks.
        layout.protect();
        let Some(exposed) = layout.exposed() else {
            return;
        };
        let kd = layout.kd();
        match exposed {
            Exposed::Messages => self.note(format!(
                "git can commit the messages of threads in {}; to keep them out, add the lines `branches/` and `archive/` to its .gitignore",
                kd.display()
            )),
            Exposed::State => self.warn(format!(
                "git can commit everything in {}, also logs, sessions and config.local.json: the .gitignore there has no effect or is overruled; to keep it out, add the line `.kd/` to .git/info/exclude",
                kd.display()
            )),
        }
        layout.note_exposed(exposed);
    }

    /// Names the `.kd` folders that are not used.
    fn tell_passed_over(&self, passed_over: &[PassedOver]) {
        for line in passed_over.iter().map(ToString::to_string) {
            self.warn_once(line);
        }
    }
}

impl From<kd_store::Error> for UserError {
    fn from(error: kd_store::Error) -> Self {
        let kind = match &error {
            kd_store::Error::NoBase { .. } | kd_store::Error::NoThread { .. } => {
                ErrorKind::NoThread
            }
            kd_store::Error::AmbiguousThread { .. } => ErrorKind::AmbiguousThread,
            kd_store::Error::Newer { .. } => ErrorKind::TooNew,
            _ => ErrorKind::Store,
        };
        let why = std::error::Error::source(&error).map(ToString::to_string);
        let mut out = UserError::new(kind, error.to_string()).next(error.hint());
        // Some errors say their cause already.
        out.why = why.filter(|why| !out.what.contains(why));
        out
    }
}

impl From<kd_store::config::ConfigError> for UserError {
    fn from(error: kd_store::config::ConfigError) -> Self {
        let count = error.problems.len();
        let what = match count {
            1 => error.problems[0].to_string(),
            _ => format!("the configuration has {count} mistakes"),
        };
        let mut out = UserError::new(ErrorKind::Config, what).next(error.hint());
        if count > 1 {
            out.why = Some(error.to_string());
        }
        out
    }
}
/// Gives a warning, unless the same text was given before.
fn warn_once(told: &Mutex<BTreeSet<String>>, notify: Option<&Notify>, text: String) {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    if told.insert(text.clone()) {
        drop(told);
        if let Some(notify) = notify {
            notify(&Notice::Warning(text));
        }
    }
}
