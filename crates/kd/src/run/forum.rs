//! `kd forum …`: finds the store, the personas and the settings; each group of commands has its own file below.

mod agents;
mod company;
mod cycles;
mod fairness;
mod forget;
mod lines;
mod motions;
mod order;
mod talk;
mod token;
mod tui;
mod visit;

use super::here::Here;
use super::notices::notice_line;
use super::trust;
use crate::args::forum::{Agent, Forum, KeepSecrets, Where};
use crate::error::Error;
use crate::exit::Exit;
use kd_app::forum::ForumStore;
use kd_app::trust::Project;
use kd_core::config::Config;
use kd_core::config::forum::Settings;
use kd_forum::MAIN;
use kd_forum::order::Order;
use std::path::PathBuf;

pub(super) fn run(args: &Forum, here: &Here) -> Result<Exit, Error> {
    match args {
        Forum::Agents(args) => agents::list(args, here)?,
        Forum::Agent(Agent::New(args)) => agents::new(args, here)?,
        Forum::RunOnce(args) => return cycles::once(args, here),
        Forum::RunCycle(args) => return cycles::many(args, here),
        Forum::RunAgent(args) => return cycles::one_agent(args, here),
        Forum::Visit(args) => return visit::run(args, here),
        Forum::Audit(args) => return fairness::audit(args, here),
        Forum::Fairness(args) => return fairness::table(args, here),
        Forum::Log(args) => talk::log(args, here)?,
        Forum::Post(args) => talk::post(args, here)?,
        Forum::Reply(args) => talk::reply(args, here)?,
        Forum::Read(args) => talk::read(args, here)?,
        Forum::Search(args) => talk::search(args, here)?,
        Forum::Watch(args) => talk::watch(args, here)?,
        Forum::Tui(args) => tui::run(args, here)?,
        Forum::Motions(args) => motions::run(args, here)?,
        Forum::Notes(args) => company::notes(args, here)?,
        Forum::Profile(args) => company::profile(args, here)?,
        Forum::Charter(args) => company::charter(args, here)?,
        Forum::Rules(args) => company::rules(args, here)?,
        Forum::List(args) => company::list(args, here)?,
        Forum::Propose(args) => motions::move_it(args, here)?,
        Forum::Vote(args) => motions::vote(args, here)?,
        Forum::Edit(args) => order::edit(args, here)?,
        Forum::Hide(args) => order::about_number(args, here, |id| Order::hide(id, true))?,
        Forum::Unhide(args) => order::about_number(args, here, |id| Order::hide(id, false))?,
        Forum::Close(args) => order::about_number(args, here, |id| Order::close(id, true))?,
        Forum::Reopen(args) => order::about_number(args, here, |id| Order::close(id, false))?,
        Forum::Ban(args) => order::about_name(args, here, |name| Order::ban(name, true))?,
        Forum::Unban(args) => order::about_name(args, here, |name| Order::ban(name, false))?,
        Forum::Role(args) => order::role(args, here)?,
        Forum::Undo(args) => order::undo(args, here)?,
        Forum::Forget(args) => return forget::run(args, here),
        Forum::Members(args) => order::members(args, here)?,
        Forum::Export(args) => talk::export(args, here)?,
        Forum::Import(args) => talk::import(args, here)?,
    }
    Ok(Exit::Done)
}

impl Forum {
    /// Returns whether errors should be JSON too.
    pub(super) fn wants_json(&self) -> bool {
        match self {
            Forum::Agents(args) => args.json,
            Forum::Visit(args) => args.jsonl,
            Forum::Audit(args) => args.json,
            Forum::Fairness(args) => args.json,
            Forum::Read(args) => args.json,
            Forum::Search(args) => args.json,
            Forum::Motions(args) => args.json,
            Forum::Forget(args) => args.json,
            Forum::Members(args) => args.json,
            Forum::Rules(args) => args.json,
            Forum::RunCycle(args) => args.json || args.running.jsonl,
            _ => false,
        }
    }
}

/// A forum with an open store.
struct Site {
    forum: String,
    store: ForumStore,
    config: Config,
    agents: PathBuf,
    logs: PathBuf,
    /// The project's settings held back; empty if the user named the folder of the personas.
    project: Project,
}

impl Site {
    /// Opens the store given by flags; without flags, the configured store. Creates it if it is missing.
    fn open(place: &Where, here: &Here) -> Result<Self, Error> {
        let layout = here.make_layout()?.layout;
        let loaded = trust::settings(here, Some(&layout))?;
        let config = loaded.config;
        let at = kd_app::forum::place(place.store.as_deref(), &config, &layout, here)?;
        let agents = match &place.agents_dir {
            Some(folder) => here.folder()?.join(folder),
            None => layout.forum_agents_folder(),
        };
        let mut store = kd_app::forum::open(&at, here)?;
        store.set_secrets(kd_app::secrets::of(&config, false, here));
        let forum = place.forum.clone().unwrap_or_else(|| MAIN.to_owned());
        let held = store.held_back(&forum, &config.forum.settings)?;
        if let Some(line) = kd_app::forum::foreign::held_line(&held) {
            notice_line(&line);
        }
        Ok(Self {
            forum,
            store,
            config,
            agents,
            logs: layout.forum_logs_folder(),
            project: match &place.agents_dir {
                Some(_) => Project::default(),
                None => loaded.project,
            },
        })
    }

    /// Opens the store to write a text, whose secrets are masked unless the user allows them.
    fn open_to_write(place: &Where, secrets: &KeepSecrets, here: &Here) -> Result<Self, Error> {
        let mut site = Self::open(place, here)?;
        let allow = secrets.allow_secrets;
        site.store
            .set_secrets(kd_app::secrets::of(&site.config, allow, here));
        Ok(site)
    }

    /// Returns the settings in force, without this run's flags.
    fn settings(&mut self) -> Result<Settings, Error> {
        Ok(self
            .store
            .settings(&self.forum, &self.config.forum.settings)?)
    }
}
