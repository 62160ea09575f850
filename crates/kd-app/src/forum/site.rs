//! A forum with an open store.

use super::{ForumStore, foreign};
use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::secrets;
use crate::trust::{Loaded, Project};
use kd_core::Timestamp;
use kd_core::config::Config;
use kd_core::config::forum::Settings;
use kd_forum::MAIN;
use kd_sql::forum::{CallSettings, Caller};
use kd_store::Layout;
use serde_json::Value;
use std::path::PathBuf;

/// Where a forum is; `None` means as usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteRequest {
    /// Its name.
    pub forum: Option<String>,
    /// Its store: a file, or the address of a PostgreSQL server.
    pub store: Option<String>,
    /// The folder of the personas.
    pub agents: Option<PathBuf>,
}

/// A forum with an open store.
pub struct Site {
    /// Its name.
    pub forum: String,
    /// Its store.
    pub store: ForumStore,
    /// The settings.
    pub config: Config,
    /// The folder of the personas.
    pub agents: PathBuf,
    /// The folder of the log.
    pub logs: PathBuf,
    /// The project's settings held back; empty if the user named the folder of the personas.
    pub project: Project,
}

impl Site {
    /// Opens the store that was named, or the configured one. Creates it if it is missing. Tells which elected settings
    /// are held back.
    ///
    /// # Errors
    /// If it cannot be opened, or the working folder is unknown.
    pub fn open(
        request: &SiteRequest,
        layout: &Layout,
        loaded: Loaded,
        env: &Env,
    ) -> Result<Self, UserError> {
        let config = loaded.config;
        let at = super::place(request.store.as_deref(), &config, layout, env)?;
        let agents = match &request.agents {
            Some(folder) => env.folder()?.join(folder),
            None => layout.forum_agents_folder(),
        };
        let mut store = super::open(&at, env)?;
        store.set_secrets(secrets::of(&config, false, env));
        let forum = request.forum.clone().unwrap_or_else(|| MAIN.to_owned());
        let held = store.held_back(&forum, &config.forum.settings)?;
        if let Some(line) = foreign::held_line(&held) {
            env.warn(line);
        }
        Ok(Self {
            forum,
            store,
            config,
            agents,
            logs: layout.forum_logs_folder(),
            project: match &request.agents {
                Some(_) => Project::default(),
                None => loaded.project,
            },
        })
    }

    /// Masks secrets in texts that are written from now on, unless the user allows them.
    pub fn mask(&mut self, allow_secrets: bool, env: &Env) {
        let secrets = secrets::of(&self.config, allow_secrets, env);
        self.store.set_secrets(secrets);
    }

    /// Returns the settings in effect, without the settings of a run.
    ///
    /// # Errors
    /// If the store fails.
    pub fn settings(&mut self) -> Result<Settings, UserError> {
        Ok(self
            .store
            .settings(&self.forum, &self.config.forum.settings)?)
    }

    /// Calls a tool of the forum as a user.
    ///
    /// # Errors
    /// The user may not act here, the forum refuses, or the store fails.
    pub fn act(&mut self, author: &str, tool: &str, arguments: &Value) -> Result<Value, UserError> {
        let caller = Caller::person(author, &self.forum)?;
        let settings = self.settings()?;
        let now = Timestamp::now();
        let terms = CallSettings {
            run: &settings,
            configured: &self.config.forum.settings,
        };
        let answer = self.store.call(&caller, terms, tool, arguments, now)?;
        match answer["success"] == true {
            true => Ok(answer),
            false => {
                let why = answer["error"].as_str().unwrap_or("refused");
                Err(UserError::new(ErrorKind::ForumRefused, why).next(hint(tool)))
            }
        }
    }
}

/// Suggests what shows why a tool refused something.
fn hint(tool: &str) -> &'static str {
    match tool {
        "propose" => {
            "`kd forum propose --help` has examples; `kd forum motions` lists what was moved"
        }
        "vote" => "`kd forum motions` lists the motions, `kd forum members` who has a vote",
        _ => {
            "`kd forum rules` and `kd forum members` list who may do what; `kd forum read` lists the threads"
        }
    }
}
