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
mod tui;
mod visit;

use super::here::Here;
use super::trust;
use crate::args::forum::{Agent, Forum, KeepSecrets, Where};
use crate::error::Error;
use crate::exit::Exit;
use kd_app::forum::{Site, SiteRequest};
use kd_forum::order::Order;

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
            Forum::List(args) => args.json,
            Forum::RunCycle(args) => args.json || args.running.jsonl,
            _ => false,
        }
    }
}

/// Opens a forum that exists.
fn open(place: &Where, here: &Here) -> Result<Site, Error> {
    let mut site = open_any(place, here)?;
    site.store.check_forum(&site.forum)?;
    Ok(site)
}

/// Opens the store given by flags; without flags, the configured store. Creates it if it is missing. The forum may be a
/// new one.
fn open_any(place: &Where, here: &Here) -> Result<Site, Error> {
    let layout = here.make_layout()?.layout;
    let loaded = trust::settings(here, Some(&layout))?;
    let place = SiteRequest {
        forum: place.forum.clone(),
        store: place.store.clone(),
        agents: place.agents_dir.clone(),
    };
    Ok(Site::open(&place, &layout, loaded, here)?)
}

/// Opens a forum that exists to write a text, whose secrets are masked unless the user allows them.
fn open_to_write(place: &Where, secrets: &KeepSecrets, here: &Here) -> Result<Site, Error> {
    let mut site = open(place, here)?;
    site.mask(secrets.allow_secrets, here);
    Ok(site)
}

/// Like [`open_to_write`], for what may create the forum.
fn open_to_create(place: &Where, secrets: &KeepSecrets, here: &Here) -> Result<Site, Error> {
    let mut site = open_any(place, here)?;
    site.mask(secrets.allow_secrets, here);
    Ok(site)
}
