//! Finds the settings of a folder that are held back, and the members that are therefore left out.

mod decide;

pub use decide::{
    Because, Decision, Foreign, Programs, TrustedFolder, accept, decisions, owners, programs,
    remarks, revoke, trust_programs, trusts, user_names,
};

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::threads;
use crate::words::{count, shown_text};
use kd_core::SeatName;
use kd_core::config::{KeyPath, Layer};
use kd_core::persona::Persona;
pub use kd_store::config::{Consent, Loaded, Project, WantedSetting};
use kd_store::{Layout, Thread};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Settings that a notice names.
const NAMED_MAX: usize = 3;

/// The members that a command is about.
#[derive(Default)]
pub struct Named<'a> {
    /// The requested members; empty means as in the thread or settings.
    pub members: &'a [String],
    /// The members to ask.
    pub asked: &'a [String],
    /// The thread to continue.
    pub thread: Option<GoesOn>,
    /// Whether a change is reviewed.
    pub reviews: bool,
}

impl<'a> Named<'a> {
    /// Creates a value for requested members only.
    pub fn only(members: &'a [String]) -> Self {
        Self {
            members,
            ..Self::default()
        }
    }
}

/// A continued thread: its members, and which of them the user chose.
pub struct GoesOn {
    id: String,
    members: Vec<SeatName>,
    seated: BTreeSet<String>,
    /// Whether to tell the user who is left out.
    tells: bool,
}

impl GoesOn {
    /// Describes a thread; `id` is what the user typed to name one. Naming a thread means choosing its members from now
    /// on.
    pub fn of(layout: &Layout, thread: &Thread, id: Option<&str>) -> Self {
        let members = thread.members();
        let mut seated = layout.seated(thread.id());
        let is_named = id.filter(|id| !id.is_empty()).is_some_and(|id| {
            threads::resolve(layout, Some(id)).is_ok_and(|place| place.id == *thread.id())
        });
        if is_named && !members.iter().all(|name| seated.contains(name.as_str())) {
            // If the note cannot be written, they take part this time only.
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
    pub fn quietly(self) -> Self {
        Self {
            tells: false,
            ..self
        }
    }

    /// Returns the members that may not take part again.
    pub fn left_out(&self, project: &Project) -> Vec<SeatName> {
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
fn going_on(
    project: &Project,
    thread: &GoesOn,
    env: &Env,
) -> Result<Option<Vec<SeatName>>, UserError> {
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
        return Err(UserError::new(ErrorKind::HeldBack, what)
            .because(format!("only the folder adds {names} to {}", thread.id))
            .next(format!("{next}, `--members` others")));
    }
    if !foreign.is_empty() && thread.tells {
        env.warn(format!(
            "held back: {names}, added to {} only by the folder; {next}",
            thread.id
        ));
    }
    Ok(Some(stay))
}

/// Reports the settings held back to the host, and whether decisions cannot be read.
pub(crate) fn tell_held(project: &Project, env: &Env) {
    if let Some(fault) = &project.fault {
        env.warn(format!("decisions about folders cannot be read: {fault}"));
    }
    if project.holds_back() {
        env.warn(held_line(project));
    }
}

/// Returns the members of the thread that can take part. Refuses a command if a member the user named, or every member,
/// is held back.
///
/// # Errors
/// As said above.
pub fn check(
    project: &Project,
    named: Named<'_>,
    env: &Env,
) -> Result<Option<Vec<SeatName>>, UserError> {
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
        Some(thread) if !thread.members.is_empty() => going_on(project, &thread, env),
        _ if project.everyone || (named.reviews && project.reviewers) => everyone(),
        thread => Ok(thread.map(|thread| thread.members)),
    }
}

/// Refuses members held back that the user named in the question or in a plan.
///
/// # Errors
/// If one is held back.
pub fn check_named<'n>(
    project: &Project,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<(), UserError> {
    let held = names
        .into_iter()
        .find(|name| project.agents.contains(*name));
    held.map_or(Ok(()), |name| {
        let what = format!("member {name} is held back");
        Err(refusal(what, &[name], project))
    })
}

/// Returns the personas that may run. Refuses if one that the user named, or every one, is held back.
///
/// # Errors
/// If a named persona, or every persona, is held back.
pub fn check_personas(
    project: &Project,
    named: &[String],
    personas: &mut Vec<Persona>,
) -> Result<(), UserError> {
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
pub fn texts_line(loaded: &Loaded, layout: Option<&Layout>) -> Option<String> {
    let all = project_texts(loaded, layout?);
    (!all.is_empty()).then(|| format!("texts from this project: {}", all.join(", ")))
}

/// Returns one line about settings that are held back.
pub fn held_line(project: &Project) -> String {
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
fn refusal(what: String, names: &[&str], project: &Project) -> UserError {
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
    UserError::new(ErrorKind::HeldBack, what)
        .because(cause)
        .next(next(project))
}

/// The file and line of a setting.
pub fn place(setting: &WantedSetting) -> String {
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

/// Returns the texts of a project that reach models: settings with their path and length, then files.
pub fn project_texts(loaded: &Loaded, layout: &Layout) -> Vec<String> {
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
