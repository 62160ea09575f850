//! Runs a forum: cycles, one agent, or visits to a forum on another machine.

use super::remote::Remote;
use super::site::Site;
use super::{personas, servers};
use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::{ready, trust};
use jiff::tz::TimeZone;
use kd_backends::Backends;
use kd_backends::transport::process;
use kd_core::Member;
use kd_core::config::forum::PARAMETERS;
use kd_core::persona::Persona;
use kd_core::request::ToolServer;
use kd_core::seating::LOCAL;
use kd_engine::forum::{Forum, Plan, RunError, Stop};
use kd_forum::logline::{LogEvent, LogLine};
use kd_forum::tools::TOOLS;
use kd_sql::forum::{Place, RunnerLog};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum time for programs of agents to end after a run.
const SETTLE: Duration = Duration::from_secs(3);

/// The clock of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Agents wait as the settings say.
    #[default]
    Real,
    /// Nothing waits, and the record shows the virtual times.
    Virtual,
    /// All agents, one after another: delays and skips only where the user sets them.
    Once,
}

/// A run of a forum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunRequest {
    /// The agents that take part; empty means all.
    pub agents: Vec<String>,
    /// Only agents of this group.
    pub group: Option<String>,
    /// Settings for this run; of several with one key, the last counts.
    pub settings: Vec<(String, String)>,
    /// Draws from this seed; the cycles are recorded as foreseeable.
    pub seed: Option<u64>,
    /// The clock.
    pub clock: Clock,
    /// The remote forum to visit, by its name in the settings; `None` runs the forum of the store.
    pub remote: Option<String>,
    /// The store as the user named it, for the tool server of agent programs.
    pub store: Option<String>,
    /// The `kd` program whose `mcp` command is that tool server.
    pub program: Option<PathBuf>,
    /// Whether the log begins with a line about settings that are held back.
    pub logs_held_back: bool,
}

/// Returns the settings given for a run: the variables, overridden by `settings`.
pub fn wishes(settings: &[(String, String)], env: &Env) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for parameter in PARAMETERS {
        let value = parameter
            .variable
            .and_then(|variable| env.var(variable))
            .filter(|v| !v.is_empty());
        all.extend(value.map(|value| (parameter.key.to_owned(), value)));
    }
    for (key, value) in settings {
        all.retain(|(known, _)| known != key);
        all.push((key.clone(), value.clone()));
    }
    all
}

impl Site {
    /// Prepares the forum, or the visit to the remote one, and lets `act` run it; `act` also gets the names of the agents.
    /// `say` receives each line of the log. `stop` is called when only the agents can still take long. It returns
    /// when the user asks to stop. Blocks; must not be called inside a tokio runtime.
    ///
    /// # Errors
    /// If a setting, a persona or a server is wrong, no agent takes part, a download fails, or the store fails.
    pub fn run<T>(
        &mut self,
        request: &RunRequest,
        env: &Env,
        mut say: impl FnMut(&LogLine),
        stop: impl FnOnce() -> Result<watch::Receiver<Stop>, UserError>,
        act: impl FnOnce(&mut Forum<'_>, &[String]) -> Result<T, RunError>,
    ) -> Result<T, UserError> {
        let mut wishes = wishes(&request.settings, env);
        let mut settings = self.settings()?;
        settings.set_all(wishes.iter().map(|(k, v)| (k.as_str(), v.as_str())))?;
        let (mut personas, residents) = chosen(request, self)?;
        trust::check_personas(&self.project, &request.agents, &mut personas)?;
        let (waits, skips) = fill_in(&mut wishes, request.clock);
        let local = personas.iter().filter(|p| p.backend == LOCAL);
        let wanted = local.map(|p| p.model.as_deref());
        ready::fetch_missing(&self.config, false, env, wanted)?;
        // A visiting agent works in an empty folder: it needs no files.
        let folder = servers::folder(env)?;
        let backends = Backends::new(&self.config, env.backend_options()).in_folder(folder.clone());
        let stop = stop()?;
        let file = RunnerLog::new(&self.logs, &self.forum, TimeZone::system());
        let mut file = Some(file);
        let mut say = |line: &LogLine| {
            // The store has the log, too: without the file, the forum continues.
            if let Some(Err(why)) = file.as_ref().map(|file| file.write(line)) {
                file = None;
                env.warn(format!("the log file is not written: {why}"));
            }
            say(line);
        };
        if request.logs_held_back && self.project.holds_back() {
            say(&self.held_back());
        }
        let calls_by_server = |persona: &Persona| {
            let member = Member::new(persona.name.clone(), &persona.backend);
            backends.is_agent(&member)
                && !matches!(persona.tools.as_deref(), Some("json" | "native"))
        };
        let has_programs = personas.iter().any(calls_by_server);
        let remote = request.remote.as_deref();
        let remote = remote.map(|name| Remote::find(name, self, has_programs, env));
        let remote = remote.transpose()?;
        let server = server(request, self, env);
        let server = match &remote {
            Some(remote) => server.and_then(|server| remote.serve(server)),
            None => server,
        };
        // The socket that passes the token is removed after the visits.
        let (remote, _token) = match remote.map(Remote::split) {
            Some((forum, token)) => (Some(forum), token),
            None => (None, None),
        };
        // Strangers write in a remote forum, so data from the user's servers must not reach it.
        let (granted, _files) = match &remote {
            Some(_) => Default::default(),
            None => servers::grant(&self.config, &personas, env)?,
        };
        let names: Vec<String> = personas.iter().map(|p| p.name.to_string()).collect();
        let plan = Plan {
            forum: self.forum.clone(),
            personas,
            residents,
            settings: self.config.forum.settings.clone(),
            wishes,
            seed: request.seed,
            is_virtual: request.clock == Clock::Virtual,
            waits,
            skips,
            server,
            granted,
            servers_folder: folder,
            remote,
        };
        let (store, config) = (&mut self.store, &self.config);
        let mut forum = Forum::new(plan, store, config, backends, stop, Box::new(&mut say))?;
        forum.settings()?;
        let ended = act(&mut forum, &names);
        drop(forum);
        process::settle(SETTLE);
        Ok(ended?)
    }

    /// The line of the log about settings that are held back.
    fn held_back(&self) -> LogLine {
        let names = self.project.held.iter();
        LogLine {
            at: jiff::Timestamp::now(),
            forum: self.forum.clone(),
            event: LogEvent::HeldBack {
                settings: names.map(|setting| setting.path.to_string()).collect(),
                agents: self.project.personas.iter().cloned().collect(),
            },
        }
    }
}

/// Adds the settings for a clock on which all agents run one after another. Agents see these settings. Returns
/// whether agents wait and may sit out.
fn fill_in(wishes: &mut Vec<(String, String)>, clock: Clock) -> (bool, bool) {
    let is_named = |start: &str| wishes.iter().any(|(key, _)| key.starts_with(start));
    let waits = clock != Clock::Once || is_named("delay_secs_");
    let skips = clock != Clock::Once || is_named("skip_probability");
    let unnamed = [
        ("delay_secs_min", waits),
        ("delay_secs_max", waits),
        ("skip_probability", skips),
    ];
    let zero = unnamed.iter().filter(|(_, is_kept)| !is_kept);
    wishes.extend(zero.map(|(key, _)| ((*key).to_owned(), "0".to_owned())));
    (waits, skips)
}

/// Returns the chosen personas, and the names of all that belong to the forum.
fn chosen(request: &RunRequest, site: &Site) -> Result<(Vec<Persona>, Vec<String>), UserError> {
    let (forum, folder) = (&site.forum, &site.agents);
    let mut personas = personas::load(folder, site.project.judged_personas.as_ref())?;
    for name in &request.agents {
        if !personas.iter().any(|p| p.name.as_str() == name) {
            let known: Vec<&str> = personas.iter().map(|p| p.name.as_str()).collect();
            return Err(UserError::new(
                ErrorKind::UnknownMember,
                format!("there is no agent `{name}`"),
            )
            .next(match known.as_slice() {
                [] => "kd forum agent new".to_owned(),
                known => format!("agents are: {}", known.join(", ")),
            }));
        }
    }
    personas.retain(|p| match &request.remote {
        // An agent whose file names no forum is not sent to strangers.
        Some(remote) => !request.agents.is_empty() || p.forums.iter().any(|name| name == remote),
        None => p.forums.is_empty() || p.forums.contains(forum),
    });
    let is_held = |p: &&Persona| site.project.personas.contains(p.name.as_str());
    let residents = personas.iter().filter(|p| !is_held(p));
    let residents = residents.map(|p| p.name.to_string()).collect();
    personas.retain(|p| {
        let asked =
            request.agents.is_empty() || request.agents.iter().any(|name| name == p.name.as_str());
        let grouped = request
            .group
            .as_ref()
            .is_none_or(|group| p.groups.contains(group));
        asked && grouped
    });
    if personas.is_empty() {
        return Err(
            UserError::new(ErrorKind::NoSeat, "no agent takes part here")
                .because(format!("looked for personas in {}", folder.display()))
                .next("kd forum agent new ada --backend local --prompt \"You love bees.\""),
        );
    }
    Ok((personas, residents))
}

/// Returns the tool server through which agent programs reach the forum.
fn server(request: &RunRequest, site: &Site, env: &Env) -> Option<ToolServer> {
    let program = request.program.clone()?;
    let mut words = vec!["mcp".to_owned(), "--forum".into(), site.forum.clone()];
    let store = match site.store.place() {
        Place::File(path) => path.to_str().map(str::to_owned),
        // An address may contain a password, which must not appear in a process list.
        Place::Server(_) => request.store.clone(),
    };
    words.extend(store.into_iter().flat_map(|s| ["--store".to_owned(), s]));
    // The agent works in an empty folder, and so does what it starts.
    let folder = env.folder().ok()?.as_os_str().to_owned();
    words.extend(["--folder".to_owned(), folder.into_string().ok()?]);
    Some(ToolServer {
        name: "kd".into(),
        program: program.into_os_string().into_string().ok()?,
        args: words,
        tools: TOOLS.iter().map(|tool| tool.name.to_owned()).collect(),
    })
}
