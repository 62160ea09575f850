//! `kd trust`, and the prompt that commands show before they act on a project's settings.
//!
//! Input: the loaded settings, with what is held back. Output: lines on the terminal, the user's decision, and an error
//! if a required member is held back.

mod listing;

use self::listing::{Block, Listing, Row, Screen, fit, shown_text};
use super::agreed::agreed;
use super::ask::notice_line;
use super::forum::foreign::ForeignForum;
use super::here::{self, Here};
use super::{terminal, thread};
use crate::args::trust::Trust;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::words::count;
use kd_backends::adapters::agent_cli::given_by_name;
use kd_core::SeatName;
use kd_core::config::{KeyPath, Layer, effect};
use kd_core::persona::Persona;
use kd_store::config::{Because, Consent, Loaded, Project, WantedSetting};
use kd_store::find::{Foreign, foreign_owners};
use kd_store::git;
use kd_store::owner::user_name;
use kd_store::programs::Programs;
use kd_store::trust::{Decision, TrustStore};
use kd_store::{Layout, Thread};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Maximum settings named in a notice.
const NAMED_MAX: usize = 3;

pub(super) fn run(args: &Trust, here: &Here) -> Result<Exit, Error> {
    if args.list {
        return list();
    }
    if let Some(path) = &args.revoke {
        return revoke(path.as_deref(), here);
    }
    let (layout, foreign) = with_owner(args, here)?;
    let loaded = here.config(layout.as_ref())?;
    let store = store()?;
    let consent = loaded.project.consent.as_ref();
    let programs = match Programs::look(&here.folder()?) {
        Ok(programs) => Some(programs),
        // Settings can be allowed all the same.
        Err(error) if consent.is_some() || foreign.is_some() => {
            notice_line(&format!("agent programs cannot trust this folder: {error}"));
            None
        }
        Err(error) => return Err(error.into()),
    };
    let untrusted = match &programs {
        Some(programs) if !store.trusts(programs)? => Some(programs),
        _ => None,
    };
    let forum = match (&layout, &foreign) {
        (Some(layout), None) => ForeignForum::find(layout, &loaded.config, here)?,
        // A forum is opened once its owner is accepted.
        _ => None,
    };
    let mut listing = Listing::default();
    if let (None, Some(consent)) = (&foreign, consent) {
        whose(consent)
            .into_iter()
            .for_each(|block| listing.inform(block));
    }
    let texts = layout.iter().filter_map(|layout| texts(&loaded, layout));
    texts.for_each(|block| listing.inform(block));
    tracked(&loaded.project)
        .into_iter()
        .for_each(|block| listing.inform(block));
    if let Some(forum) = &forum {
        listing.ask_about(elected(forum));
    }
    if let Some(programs) = &programs {
        let block = program_files(programs);
        match untrusted {
            Some(_) => listing.ask_about(block),
            None => listing.inform(block),
        }
    }
    if let Some(consent) = consent {
        listing.ask_about(settings_of(consent, true));
    }
    print(&listing.lines(screen()))?;
    let consent = consent.filter(|consent| consent.decision != Decision::Allowed);
    let settings = consent.map_or(0, |consent| consent.new_settings().count());
    let nothing = untrusted.is_none() && consent.is_none();
    if nothing && foreign.is_none() && forum.is_none() {
        writeln!(io::stdout(), "trusted; `kd trust --revoke` forgets it")?;
        return Ok(Exit::Done);
    }
    if !args.yes {
        if !is_terminal() {
            return Err(Error::usage("kd trust needs a terminal to ask")
                .because("stdin or stderr is not a terminal")
                .next("`kd trust --yes` allows what is listed above"));
        }
        if !agreed("Trust this folder with what is listed?")? {
            if let Some(consent) = consent {
                consent.decline()?;
            }
            notice_line(match consent {
                Some(_) => "not trusted; what is new in the list stays held back",
                None => {
                    "not trusted; settings that you allowed before still count (`kd trust --revoke` takes them back)"
                }
            });
            return Ok(Exit::Done);
        }
    }
    if let Some(foreign) = &foreign {
        accept(foreign)?;
    }
    if let Some(consent) = consent {
        consent.allow()?;
        notice_line(&format!(
            "allowed for {}: {}",
            shown_text(&consent.root.to_string_lossy()),
            count(settings as u64, "setting")
        ));
    }
    if let Some(forum) = forum {
        forum.accept()?;
        notice_line("the forum's elections count");
    }
    if let Some(programs) = untrusted {
        store.trust_programs(programs)?;
        notice_line(&format!(
            "agent programs trust {}",
            shown_text(&programs.top().to_string_lossy())
        ));
    }
    Ok(Exit::Done)
}

fn print(lines: &[String]) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

/// Returns the project here. First shows a `.kd` of another user; on a terminal, the user accepts its owner or not.
/// Elsewhere, what is then listed and allowed assumes acceptance, and the owner is returned.
fn with_owner(args: &Trust, here: &Here) -> Result<(Option<Layout>, Option<Foreign>), Error> {
    let foreign = match here.passed_over_for_its_owner()? {
        None => return Ok((here.find_layout()?, None)),
        Some(Ok(foreign)) => foreign,
        Some(Err(why)) => {
            let layout = here.find_layout()?;
            notice_line(&format!("its owner cannot be accepted: {why}"));
            return Ok((layout, None));
        }
    };
    print(&owner_lines(&foreign, screen()))?;
    if args.yes || !is_terminal() {
        let layout = here.find_layout_accepting(std::slice::from_ref(&foreign))?;
        return Ok((layout, Some(foreign)));
    }
    if agreed("Accept this owner for this folder?")? {
        accept(&foreign)?;
    } else {
        notice_line("not accepted; the .kd stays unused");
    }
    Ok((here.find_layout()?, None))
}

fn accept(foreign: &Foreign) -> Result<(), Error> {
    let users = foreign.users();
    store()?.accept_owners(&foreign.root, &users)?;
    notice_line(&format!(
        "accepted for {}: {}",
        shown_text(&foreign.root.to_string_lossy()),
        user_names(&users)
    ));
    Ok(())
}

fn user_names(users: &BTreeSet<u32>) -> String {
    let names: Vec<String> = users.iter().map(|user| user_name(*user)).collect();
    names.join(", ")
}

/// Describes the owner of a `.kd`, and what accepting it means.
fn owner_lines(foreign: &Foreign, screen: Screen) -> Vec<String> {
    let kd = foreign.root.join(".kd");
    let mut block = Block::new(format!(
        "{} is not yours alone:",
        shown_text(&kd.to_string_lossy())
    ));
    block.rows = owners(foreign).collect();
    let mut listing = Listing::default();
    listing.inform(block);
    let mut lines = listing.lines(screen);
    let follows = "\
        Once you accept this owner, its threads count as your conversations, its\n\
        texts reach members, and its settings count as those of any project. The\n\
        owner can change all of that at any time. kd still asks about settings that\n\
        need consent. This does not accept another owner, or a folder that others\n\
        can write to.";
    lines.extend(follows.lines().map(str::to_owned));
    lines.push(String::new());
    lines
}

/// Lists other users that own a folder in use: accepted, or named by `KD_BASE`.
fn whose(consent: &Consent) -> Option<Block> {
    let foreign = foreign_owners(&consent.root, &here::os_var);
    let rows: Vec<Row> = foreign.iter().flat_map(owners).collect();
    let block = Block::new("not yours alone:");
    block.of_rows(rows)
}

fn owners(foreign: &Foreign) -> impl Iterator<Item = Row> {
    let owners = foreign.owners.iter();
    owners.map(|owner| Row::new("", &owner.to_string()))
}

/// Lists what a foreign forum has elected.
fn elected(forum: &ForeignForum) -> Block {
    let (heading, settings) = forum.listed();
    let total = count(settings.len() as u64, "elected setting");
    let mut block = Block::of_files(shown_text(&heading)).with_total(total);
    let rows = settings.iter().map(|setting| Row::new("", setting));
    block.rows = rows.collect();
    block
}

/// Lists what agent programs run or obey here.
fn program_files(programs: &Programs) -> Block {
    let mut block = Block::of_files(format!(
        "agent programs run and obey what is in {}:",
        shown_text(&programs.top().to_string_lossy())
    ));
    for level in programs.decided() {
        let below = level.folder.strip_prefix(programs.top());
        let below = below.unwrap_or(&level.folder);
        for file in &level.files {
            let file = below.join(file);
            block.rows.push(Row::new("", &file.to_string_lossy()));
        }
    }
    let files = block.rows.len();
    if files == 0 {
        let none = "no settings, hooks or plugins";
        block.rows.push(Row::new("", none));
    }
    block.with_total(format!("{} of agent programs", count(files as u64, "file")))
}

/// Returns the terminal on which to ask, or where lines are only printed.
fn screen() -> Screen {
    let sizes = [terminal::size_of_stderr(), terminal::size()];
    let sizes = || sizes.into_iter().flatten();
    let rows = || sizes().map(|(_, rows)| usize::from(rows)).min();
    Screen {
        columns: sizes().map(|(columns, _)| usize::from(columns)).min(),
        rows: rows().filter(|_| is_terminal()),
    }
}

/// Returns the settings for a command that acts on them. On a terminal, asks once about settings that need consent;
/// elsewhere prints one line about what is held back.
pub(super) fn settings(here: &Here, layout: Option<&Layout>) -> Result<Loaded, Error> {
    let loaded = here.config(layout)?;
    if let Some(fault) = &loaded.project.fault {
        notice_line(&format!("decisions about folders cannot be read: {fault}"));
    }
    let loaded = decided(loaded, here, layout)?;
    remember_held(here, &loaded);
    Ok(loaded)
}

/// Like [`settings`], for settings that are not those on disk: never asks, only prints what is held back.
pub(super) fn hold(here: &Here, loaded: &Loaded) {
    if let Some(fault) = &loaded.project.fault {
        notice_line(&format!("decisions about folders cannot be read: {fault}"));
    }
    if loaded.project.holds_back() {
        notice_line(&held_line(&loaded.project));
    }
    remember_held(here, loaded);
}

fn remember_held(here: &Here, loaded: &Loaded) {
    if loaded.project.holds_back() {
        let held = loaded
            .project
            .held
            .iter()
            .map(|setting| setting.path.to_string());
        let members = &loaded.project.agents;
        here.hold_back(held.collect(), members.iter().cloned().collect());
    }
}

fn decided(loaded: Loaded, here: &Here, layout: Option<&Layout>) -> Result<Loaded, Error> {
    if !loaded.project.holds_back() {
        return Ok(loaded);
    }
    let undecided = |consent: &&Consent| consent.decision == Decision::Unknown;
    if let Some(consent) = loaded.project.consent.as_ref().filter(undecided)
        && is_terminal()
    {
        return ask(&loaded, consent, here, layout);
    }
    notice_line(&held_line(&loaded.project));
    Ok(loaded)
}

/// The members that a command is about.
#[derive(Default)]
pub(super) struct Named<'a> {
    /// The requested members; empty means as in the thread or settings.
    pub(super) members: &'a [String],
    /// The members to ask.
    pub(super) asked: &'a [String],
    /// The thread to continue.
    pub(super) thread: Option<GoesOn>,
    /// Whether a change is reviewed.
    pub(super) reviews: bool,
}

impl<'a> Named<'a> {
    /// Creates a value for requested members only.
    pub(super) fn only(members: &'a [String]) -> Self {
        Self {
            members,
            ..Self::default()
        }
    }
}

/// A continued thread: its members, and which of them the user chose.
pub(super) struct GoesOn {
    id: String,
    members: Vec<SeatName>,
    seated: BTreeSet<String>,
    /// Whether to tell the user who is left out.
    tells: bool,
}

impl GoesOn {
    /// Describes a thread; `id` is what the user typed to name one. Naming a thread means choosing its members from now
    /// on.
    pub(super) fn of(layout: &Layout, thread: &Thread, id: Option<&str>) -> Self {
        let members = thread.members();
        let mut seated = layout.seated(thread.id());
        let is_named = id.filter(|id| !id.is_empty()).is_some_and(|id| {
            thread::resolve(layout, Some(id)).is_ok_and(|place| place.id == *thread.id())
        });
        if is_named && !members.iter().all(|name| seated.contains(name.as_str())) {
            // Without the note, they take part this time.
            let _ = layout.note_seated(thread.id(), &members);
            seated.extend(members.iter().map(ToString::to_string));
        }
        Self {
            id: thread.id().0.clone(),
            members,
            seated,
            tells: true,
        }
    }

    /// Suppresses notes, for a screen that shows the members.
    pub(super) fn quietly(self) -> Self {
        Self {
            tells: false,
            ..self
        }
    }

    /// Returns the members that may not take part again.
    pub(super) fn left_out(&self, project: &Project) -> Vec<SeatName> {
        let is_out = |name: &&SeatName| {
            project.agents.contains(name.as_str()) || self.is_foreign(name, project)
        };
        self.members.iter().filter(is_out).cloned().collect()
    }

    /// Returns whether a member takes part only because of the folder's settings.
    fn is_foreign(&self, name: &SeatName, project: &Project) -> bool {
        !self.seated.contains(name.as_str()) && !project.circle.may_sit(name.as_str())
    }
}

/// Returns the members of a thread that may take part again.
fn going_on(project: &Project, thread: &GoesOn) -> Result<Option<Vec<SeatName>>, Error> {
    let is_held = |name: &SeatName| project.agents.contains(name.as_str());
    let gone = thread.left_out(project);
    let stays = |name: &&SeatName| !gone.contains(name);
    let stay: Vec<SeatName> = thread.members.iter().filter(stays).cloned().collect();
    let foreign: Vec<&str> = gone
        .iter()
        .filter(|name| !is_held(name))
        .map(SeatName::as_str)
        .collect();
    let names = foreign.join(", ");
    let next = format!("`kd ask --thread {}` uses them", thread.id);
    if stay.is_empty() {
        let what = "every member is held back".to_owned();
        if foreign.is_empty() {
            let names: Vec<&str> = project.agents.iter().map(String::as_str).collect();
            return Err(refusal(what, &names, project));
        }
        return Err(Error::new("held_back", Exit::HeldBack, what)
            .because(format!("only the folder adds {names} to {}", thread.id))
            .next(format!("{next}, `--members` others")));
    }
    if !foreign.is_empty() && thread.tells {
        notice_line(&format!(
            "held back: {names}, added to {} only by the folder; {next}",
            thread.id
        ));
    }
    Ok(Some(stay))
}

/// Returns the members of the thread that can take part. Refuses a command if a member the user named, or every member,
/// is held back.
pub(super) fn check(project: &Project, named: Named<'_>) -> Result<Option<Vec<SeatName>>, Error> {
    let held = |name: &&str| project.agents.contains(*name);
    let all = named.members.iter().chain(named.asked);
    let mut all = all.map(|name| name.trim().trim_start_matches('@'));
    if let Some(name) = all.find(held) {
        return Err(refusal(
            format!("member {name} is held back"),
            &[name],
            project,
        ));
    }
    if !named.members.is_empty() {
        return Ok(named.thread.map(|thread| thread.members));
    }
    let everyone = || {
        Err({
            let names: Vec<&str> = project.agents.iter().map(String::as_str).collect();
            refusal("every member is held back".to_owned(), &names, project)
        })
    };
    match named.thread {
        Some(thread) if !thread.members.is_empty() => going_on(project, &thread),
        _ if project.everyone || (named.reviews && project.reviewers) => everyone(),
        thread => Ok(thread.map(|thread| thread.members)),
    }
}

/// Refuses members held back that the user named in the question or in a plan.
pub(super) fn check_named<'n>(
    project: &Project,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<(), Error> {
    let held = names
        .into_iter()
        .find(|name| project.agents.contains(*name));
    held.map_or(Ok(()), |name| {
        let what = format!("member {name} is held back");
        Err(refusal(what, &[name], project))
    })
}

/// Returns the personas that may run. Refuses if one that the user named, or every one, is held back.
pub(super) fn check_personas(
    project: &Project,
    named: &[String],
    personas: &mut Vec<Persona>,
) -> Result<(), Error> {
    let is_held = |name: &str| project.personas.contains(name);
    if let Some(name) = named.iter().find(|name| is_held(name)) {
        return Err(refusal(
            format!("persona {name} is held back"),
            &[name],
            project,
        ));
    }
    personas.retain(|persona| !is_held(persona.name.as_str()));
    if personas.is_empty() {
        return Err(refusal(
            "every persona is held back".to_owned(),
            &[],
            project,
        ));
    }
    Ok(())
}

/// Returns one line about texts of the project, for the record of a deliberation; `None` if there are none.
pub(super) fn texts_line(loaded: &Loaded, layout: Option<&Layout>) -> Option<String> {
    let all = project_texts(loaded, layout?);
    (!all.is_empty()).then(|| format!("texts from this project: {}", all.join(", ")))
}

/// Returns one line about what is held back.
pub(super) fn held_line(project: &Project) -> String {
    let names: Vec<String> = project.held.iter().map(|s| s.path.to_string()).collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    let mut named = names
        .into_iter()
        .take(NAMED_MAX)
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        let _ = write!(named, " and {more} more");
    }
    let what = count(project.held.len() as u64, "project setting");
    format!("held back: {what} ({named}); {}", next(project))
}

fn next(project: &Project) -> &'static str {
    match &project.consent {
        Some(_) => "`kd trust` shows and allows them",
        None => "`git rm --cached .kd/config.local.json` stops tracking the file",
    }
}

/// Returns the error of a command that cannot continue; `names` are the missing members or personas.
fn refusal(what: String, names: &[&str], project: &Project) -> Error {
    let is_theirs = |setting: &&WantedSetting| {
        names.iter().any(|name| {
            setting.path.is_within(&KeyPath::new(["agents", *name]))
                || setting.value.get("name").and_then(Value::as_str) == Some(name)
        })
    };
    let theirs = project.held.iter().find(is_theirs);
    let cause = theirs
        .or(project.held.first())
        .map_or_else(String::new, |setting| {
            let (path, why) = (&setting.path, setting.why.words());
            format!("{path} ({}) {why}", place(setting))
        });
    Error::new("held_back", Exit::HeldBack, what)
        .because(cause)
        .next(next(project))
}

fn ask(
    loaded: &Loaded,
    consent: &Consent,
    here: &Here,
    layout: Option<&Layout>,
) -> Result<Loaded, Error> {
    let mut listing = Listing::default();
    whose(consent)
        .into_iter()
        .for_each(|block| listing.inform(block));
    let texts = layout.and_then(|layout| texts(loaded, layout));
    texts.into_iter().for_each(|block| listing.inform(block));
    tracked(&loaded.project)
        .into_iter()
        .for_each(|block| listing.inform(block));
    listing.ask_about(settings_of(consent, false));
    let mut err = io::stderr().lock();
    for line in listing.lines(screen()) {
        writeln!(err, "{line}")?;
    }
    drop(err);
    if agreed("Allow these settings in this folder?")? {
        consent.allow()?;
        let now = here.config(layout)?;
        if now
            .project
            .consent
            .as_ref()
            .is_some_and(|now| now.decision != Decision::Allowed)
        {
            notice_line("the settings changed while you were asked; what is new is held back");
        }
        return Ok(now);
    }
    match consent.decline() {
        Ok(()) => {
            notice_line("held back; not asked again until they change (`kd trust` allows them)")
        }
        Err(error) => notice_line(&format!("held back; the answer cannot be saved: {error}")),
    }
    Ok(loaded.clone())
}

/// Effects of settings, most dangerous last.
const EFFECTS: &[&str] = &[
    "", "limit", "price", "votes", "calls", "model", "members", "other", "resets", "file", "sees",
    "key", "sends to", "flags", "rights", "runs",
];

fn danger(setting: &WantedSetting) -> usize {
    let effect = effect(&setting.path);
    let rank = EFFECTS.iter().position(|known| *known == effect);
    rank.unwrap_or(EFFECTS.len())
}

/// Lists what needs consent: all of it, or what is not yet allowed; most dangerous last.
fn settings_of(consent: &Consent, all: bool) -> Block {
    let root = shown_text(&consent.root.to_string_lossy());
    let known = consent.settings.iter().filter(|s| s.allowed).count();
    let mut block = Block::new(match known {
        0 => format!("{root} wants settings that need your consent:"),
        _ if known == consent.settings.len() => format!("{root} has settings that you allowed:"),
        _ => format!("{root} wants new settings that need your consent:"),
    });
    let mut settings: Vec<&WantedSetting> = consent
        .settings
        .iter()
        .filter(|setting| all || !setting.allowed)
        .collect();
    settings.sort_by_key(|setting| (!setting.allowed, danger(setting)));
    for setting in &settings {
        let mark = match (known, setting.allowed) {
            (0, _) => "",
            (_, true) => "     ",
            (_, false) => "new  ",
        };
        block.rows.push(row(setting, mark));
        block.rows.extend(own_programs(setting, &consent.root));
    }
    if !all && known > 0 {
        let settings = count(known as u64, "setting");
        block.after = Some(format!(
            "{settings} that you allowed before: `kd trust` lists all"
        ));
    }
    settings.retain(|setting| !setting.allowed);
    match settings.is_empty() {
        true => block,
        false => block.with_total(by_effect(&settings)),
    }
}

/// Counts the settings by effect.
fn by_effect(settings: &[&WantedSetting]) -> String {
    let mut all: Vec<(&str, usize)> = Vec::new();
    for setting in settings {
        let effect = effect(&setting.path);
        match all.iter_mut().find(|(known, _)| *known == effect) {
            Some((_, number)) => *number += 1,
            None => all.push((effect, 1)),
        }
    }
    let all: Vec<String> = all
        .iter()
        .map(|(effect, n)| format!("{n} {effect}"))
        .collect();
    let number = count(settings.len() as u64, "setting");
    format!("{number} to allow ({})", all.join(", "))
}

/// Lists files of the folder itself that a command would run, one row each: consent covers only their names.
fn own_programs(setting: &WantedSetting, root: &Path) -> Vec<Row> {
    let last = setting.path.segments().last().map(String::as_str);
    if !matches!(last, Some("command" | "key_command")) {
        return Vec::new();
    }
    let words: Vec<&str> = match &setting.value {
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        Value::String(line) => line.split_whitespace().collect(),
        _ => Vec::new(),
    };
    let here = std::env::current_dir().unwrap_or_else(|_| root.to_path_buf());
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let is_own = |(at, word): &(usize, &str)| {
        let named = *at == 0 && word.contains('/') && Path::new(word).is_relative();
        named
            || [&here, &root].iter().any(|from| {
                let file = from.join(word).canonicalize();
                file.is_ok_and(|file| file.is_file() && file.starts_with(&root))
            })
    };
    let by_name = match last {
        Some("command") => by_name(&words, &here),
        _ => Vec::new(),
    };
    let words = words.into_iter().enumerate().filter(is_own);
    words
        .map(|(_, word)| {
            let text =
                format!("{word} is in this folder: kd does not ask again when that file changes");
            Row::new("            ", &text)
        })
        .chain(by_name)
        .collect()
}

/// Lists what the sandbox lets a command do because of its program's name.
fn by_name(words: &[&str], folder: &Path) -> Vec<Row> {
    let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let (places, is_outside) = given_by_name(&argv, folder, &super::here::env());
    let writes = match places.is_empty() {
        true => None,
        false => Some(format!(
            "because of its name it may write {}, in read-only turns too",
            places.join(", ")
        )),
    };
    let outside =
        is_outside.then(|| "because of its name it runs outside of the sandbox".to_owned());
    let texts = writes.into_iter().chain(outside);
    texts.map(|text| Row::new("            ", &text)).collect()
}

/// Lists what git tracks and must not.
fn tracked(project: &Project) -> Option<Block> {
    let held = project.held.iter();
    let held = held.filter(|setting| matches!(setting.why, Because::Tracked(_)));
    let rows: Vec<Row> = held.map(|setting| row(setting, "")).collect();
    let mut block = Block::new("held back, because git tracks .kd/config.local.json:");
    block.after = Some("`git rm --cached .kd/config.local.json` stops tracking it".to_owned());
    block.of_rows(rows)
}

/// Formats a setting as a row.
fn row(setting: &WantedSetting, mark: &str) -> Row {
    let (path, value) = (&setting.path, &setting.value);
    let head = format!("{:<9} {mark}", effect(path));
    Row::new(head, &format!("{path} = {value}  ({})", place(setting)))
}

fn place(setting: &WantedSetting) -> String {
    if let [forum, agents, file] = setting.path.segments()
        && (forum, agents) == (&"forum".to_owned(), &"agents".to_owned())
    {
        return format!(".kd/forum/agents/{}", shown_text(file));
    }
    let file = match setting.origin.layer {
        Layer::Local => ".kd/config.local.json",
        _ => ".kd/config.json",
    };
    setting
        .origin
        .line
        .map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

/// Lists the texts of the project that reach models.
fn texts(loaded: &Loaded, layout: &Layout) -> Option<Block> {
    let all = project_texts(loaded, layout);
    let rows: Vec<Row> = all.iter().map(|text| Row::new("", text)).collect();
    let block = Block::new("texts from here that members read (not held back):");
    block.of_rows(rows)
}

/// Returns the texts of a project that reach models: settings with their path and length, then files.
pub(super) fn project_texts(loaded: &Loaded, layout: &Layout) -> Vec<String> {
    let mut all: Vec<String> = loaded
        .project
        .texts
        .iter()
        .map(|text| {
            let file = match text.origin.layer {
                Layer::Local => ".kd/config.local.json",
                _ => ".kd/config.json",
            };
            let line = text
                .origin
                .line
                .map_or_else(String::new, |line| format!(":{line}"));
            let chars = text.value.as_str().map_or(0, |text| text.chars().count());
            let length = if chars == 0 {
                String::new()
            } else {
                format!(", {}", count(chars as u64, "character"))
            };
            format!("{} ({file}{line}{length})", text.path)
        })
        .collect();
    let files = kd_store::memory::text_files(layout);
    all.extend(
        files
            .into_iter()
            .map(|(name, bytes)| format!("{} ({})", shown_text(&name), count(bytes, "byte"))),
    );
    all
}

/// Formats a value of a project for a terminal: JSON with all invisible characters escaped; a long one is cut in the
/// middle.
pub(super) fn shown(value: &Value) -> String {
    shown_text(&value.to_string())
}

fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn store() -> Result<TrustStore, Error> {
    Ok(TrustStore::new(&here::user_dirs())?)
}

fn list() -> Result<Exit, Error> {
    let all = store()?.list()?;
    let mut out = io::stdout().lock();
    if all.is_empty() {
        writeln!(
            io::stderr(),
            "no decisions yet; `kd trust` in a folder makes one"
        )?;
    }
    for folder in all {
        let mut parts = Vec::new();
        if let (false, Some(at)) = (folder.settings.is_empty(), &folder.allowed_at) {
            parts.push(format!(
                "allowed {at}, {}",
                count(folder.settings.len() as u64, "setting")
            ));
        }
        if folder.declined_settings.is_some() {
            parts.push("declined".to_owned());
        }
        if folder.programs.is_some() {
            parts.push("agent programs trusted".to_owned());
        }
        if !folder.owners.is_empty() {
            parts.push(format!("owner accepted: {}", user_names(&folder.owners)));
        }
        let gone = if Path::new(&folder.path).exists() {
            ""
        } else {
            "  (gone)"
        };
        let text = format!("{}  {}{gone}", shown_text(&folder.path), parts.join(", "));
        for line in fit("", &text, screen().columns.unwrap_or(usize::MAX)) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(Exit::Done)
}

fn revoke(path: Option<&Path>, here: &Here) -> Result<Exit, Error> {
    let store = store()?;
    let folder = here.folder()?;
    let roots: Vec<PathBuf> = match path {
        Some(path) => vec![folder.join(path)],
        None => decided_here(&folder, here)?,
    };
    let mut gone = false;
    for root in &roots {
        gone |= store.revoke(root)?;
    }
    let what = match gone {
        true => "forgotten: the decision about",
        false => "there was no decision about",
    };
    let root = shown_text(&roots[0].to_string_lossy());
    notice_line(&format!("{what} {root}"));
    Ok(Exit::Done)
}

/// Returns the folders that `kd trust` decides about from a working folder: the project's and, if its settings are
/// those of the owning checkout, that one; an ignored one; and those with marks of agent programs, up to the top.
fn decided_here(folder: &Path, here: &Here) -> Result<Vec<PathBuf>, Error> {
    let mut roots = Vec::new();
    if let Some(Ok(foreign)) = here.passed_over_for_its_owner()? {
        roots.push(foreign.root);
    }
    if let Some(layout) = here.find_layout()? {
        let settings = here.config_paths(Some(&layout));
        roots.extend(settings.repository().map(Path::to_path_buf));
        roots.push(layout.root().to_path_buf());
    }
    let top = git::top(folder).unwrap_or(folder).to_path_buf();
    if roots.is_empty() {
        roots.push(top.clone());
    }
    let up = folder.ancestors().take_while(|up| up.starts_with(&top));
    roots.extend(up.map(Path::to_path_buf));
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::config::KEYS;

    #[test]
    fn every_effect_has_a_place_in_the_order_of_dangers() {
        for key in KEYS {
            let effect = effect(&KeyPath::new(key.pattern()));
            assert!(EFFECTS.contains(&effect), "{} {effect}", key.path);
        }
        assert!(EFFECTS.contains(&effect(&KeyPath::new(["forum", "agents", "x"]))));
        assert!(EFFECTS.contains(&effect(&KeyPath::new(["deliberation"]))));
    }
}
