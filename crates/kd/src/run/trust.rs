//! `kd trust`, and the question that commands ask before they act on a project's settings.
//!
//! Input: the settings as loaded, with what is held back. Output: lines on the terminal, the user's decision, and an error
//! where a member that is needed is held back.

use super::ask::notice_line;
use super::forum::foreign::ForeignForum;
use super::here::{self, Here};
use super::{terminal, thread};
use crate::args::trust::Trust;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::words::count;
use crate::render::wrap::width;
use kd_core::SeatName;
use kd_core::config::{KeyPath, Layer, effect};
use kd_core::forum::persona::Persona;
use kd_store::config::{Because, Consent, Loaded, Project, WantedSetting};
use kd_store::find::{Foreign, foreign_owners};
use kd_store::owner::user_name;
use kd_store::programs::Programs;
use kd_store::trust::{Decision, TrustStore};
use kd_store::{Layout, Thread};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Settings that a notice names.
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
    let mut lines = match (&foreign, consent) {
        (None, Some(consent)) => whose(consent),
        _ => Vec::new(),
    };
    lines.extend(
        consent
            .into_iter()
            .flat_map(|consent| listing(consent, true)),
    );
    lines.extend(tracked(&loaded.project));
    lines.extend(layout.iter().flat_map(|layout| texts(&loaded, layout)));
    lines.extend(programs.iter().flat_map(program_files));
    let forum = match (&layout, &foreign) {
        (Some(layout), None) => ForeignForum::find(layout, &loaded.config, here)?,
        // A forum is opened once its owner is accepted.
        _ => None,
    };
    lines.extend(forum.iter().flat_map(ForeignForum::lines));
    print(&lines)?;
    let consent = consent.filter(|consent| consent.decision != Decision::Allowed);
    let settings = consent.map_or(0, |consent| consent.new_settings().count());
    let nothing = untrusted.is_none() && consent.is_none();
    if nothing && foreign.is_none() && forum.is_none() {
        writeln!(io::stdout(), "trusted; `kd trust --revoke` forgets it")?;
        return Ok(Exit::Done);
    }
    if !args.yes {
        if !is_terminal() {
            return Err(Error::usage("kd trust cannot ask here")
                .because("stdin or stderr is not a terminal")
                .next("`kd trust --yes` allows what is listed above"));
        }
        if !agreed("Trust this folder with what is listed?")? {
            if let Some(consent) = consent {
                consent.decline()?;
            }
            notice_line("not trusted; what is listed stays held back");
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
            consent.root.display(),
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
            programs.top().display()
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

/// The project here. A `.kd` of another user is shown first; on a terminal the user accepts its owner or not, elsewhere
/// what is listed and allowed afterwards is what it would get, and its owner is returned.
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
    print(&owner_lines(&foreign))?;
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

/// Whose a `.kd` is, and what follows from accepting that.
fn owner_lines(foreign: &Foreign) -> Vec<String> {
    let kd = foreign.root.join(".kd");
    let mut lines = vec![
        format!("{} is not yours alone:", shown_text(&kd.to_string_lossy())),
        String::new(),
    ];
    lines.extend(owners(foreign));
    lines.push(String::new());
    let follows = "\
        Once you accept this owner, its threads count as your conversations, its\n\
        texts reach members, and its settings count as those of any project. The\n\
        owner can change all of that at any time. What needs consent is asked\n\
        about as everywhere. Another owner, or a folder that others can write to,\n\
        is not accepted with it.";
    lines.extend(follows.lines().map(str::to_owned));
    lines.push(String::new());
    lines
}

/// The other users that own a folder which is used: accepted, or named by `KD_BASE`.
fn whose(consent: &Consent) -> Vec<String> {
    let foreign = foreign_owners(&consent.root, &here::os_var);
    let mut lines: Vec<String> = foreign.iter().flat_map(owners).collect();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

fn owners(foreign: &Foreign) -> impl Iterator<Item = String> {
    let owners = foreign.owners.iter();
    owners.map(|owner| format!("  {}", shown_text(&owner.to_string())))
}

/// What agent programs run or obey here.
fn program_files(programs: &Programs) -> Vec<String> {
    let mut lines = vec![format!(
        "agent programs run and obey what is in {}:",
        shown_text(&programs.top().to_string_lossy())
    )];
    lines.push(String::new());
    let mut names = Vec::new();
    for level in programs.decided() {
        let below = level.folder.strip_prefix(programs.top());
        let below = below.unwrap_or(&level.folder);
        for file in &level.files {
            names.push(shown_text(&below.join(file).to_string_lossy()));
        }
    }
    if names.is_empty() {
        names.push("no settings, hooks or plugins of theirs".to_owned());
    }
    lines.extend(names.into_iter().map(|name| format!("  {name}")));
    lines.push(String::new());
    lines
}

/// The settings for a command that acts on them. On a terminal the user is asked once about settings that need consent;
/// elsewhere one line says what is held back.
pub(super) fn settings(here: &Here, layout: Option<&Layout>) -> Result<Loaded, Error> {
    let loaded = here.config(layout)?;
    if let Some(fault) = &loaded.project.fault {
        notice_line(&format!("decisions about folders cannot be read: {fault}"));
    }
    let loaded = decided(loaded, here, layout)?;
    if loaded.project.holds_back() {
        let held = loaded
            .project
            .held
            .iter()
            .map(|setting| setting.path.to_string());
        let members = &loaded.project.agents;
        here.hold_back(held.collect(), members.iter().cloned().collect());
    }
    Ok(loaded)
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
    /// Those that shall sit; empty means as the thread or the settings say.
    pub(super) members: &'a [String],
    /// Those that are asked.
    pub(super) asked: &'a [String],
    /// The thread that goes on.
    pub(super) thread: Option<GoesOn>,
    /// Whether a change is reviewed.
    pub(super) reviews: bool,
}

impl<'a> Named<'a> {
    /// Members that shall sit.
    pub(super) fn only(members: &'a [String]) -> Self {
        Self {
            members,
            ..Self::default()
        }
    }
}

/// A thread that goes on: who is in it, and whom of them the user seated.
pub(super) struct GoesOn {
    id: String,
    members: Vec<SeatName>,
    seated: BTreeSet<String>,
    /// Whether the user is told who is left out.
    tells: bool,
}

impl GoesOn {
    /// A thread; `id` is what the user typed to name one. Who names a thread seats its members, from now on.
    pub(super) fn of(layout: &Layout, thread: &Thread, id: Option<&str>) -> Self {
        let members = thread.members();
        let mut seated = layout.seated(thread.id());
        let is_named = id.filter(|id| !id.is_empty()).is_some_and(|id| {
            thread::resolve(layout, Some(id)).is_ok_and(|place| place.id == *thread.id())
        });
        if is_named && !members.iter().all(|name| seated.contains(name.as_str())) {
            // Without the note they sit this time.
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

    /// The same, without a word: for a screen that shows who sits.
    pub(super) fn quietly(self) -> Self {
        Self {
            tells: false,
            ..self
        }
    }

    /// The members that may not sit in it again.
    pub(super) fn left_out(&self, project: &Project) -> Vec<SeatName> {
        let is_out = |name: &&SeatName| {
            project.agents.contains(name.as_str()) || self.is_foreign(name, project)
        };
        self.members.iter().filter(is_out).cloned().collect()
    }

    /// Whether a member sits only because the folder says so.
    fn is_foreign(&self, name: &SeatName, project: &Project) -> bool {
        !self.seated.contains(name.as_str()) && !project.circle.may_sit(name.as_str())
    }
}

/// The members of a thread that may sit in it again.
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
    let next = format!("`kd ask --thread {}` seats them", thread.id);
    if stay.is_empty() {
        let what = "every member is held back".to_owned();
        if foreign.is_empty() {
            let names: Vec<&str> = project.agents.iter().map(String::as_str).collect();
            return Err(refusal(what, &names, project));
        }
        return Err(Error::new("held_back", Exit::HeldBack, what)
            .because(format!("only the folder seats {names} in {}", thread.id))
            .next(format!("{next}, `--members` others")));
    }
    if !foreign.is_empty() && thread.tells {
        notice_line(&format!(
            "held back: {names}, seated in {} by the folder alone; {next}",
            thread.id
        ));
    }
    Ok(Some(stay))
}

/// The members of the thread that can sit. Refuses a command whose members are held back: one that the user named, or all
/// of them.
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

/// Refuses members that the user named in the question or in a plan, and that are held back.
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

/// The personas that may run. Refuses where one that the user named, or every one, is held back.
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

/// One line that marks texts of the project, for the record of a deliberation; `None` where there are none.
pub(super) fn texts_line(loaded: &Loaded, layout: Option<&Layout>) -> Option<String> {
    let all = project_texts(loaded, layout?);
    (!all.is_empty()).then(|| format!("texts from this project: {}", all.join(", ")))
}

/// One line that says what is held back.
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

/// The error of a command that cannot go on; `names` are the members or personas that are missing.
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
    let mut err = io::stderr().lock();
    let texts = layout
        .map(|layout| texts(loaded, layout))
        .unwrap_or_default();
    let lines = whose(consent)
        .into_iter()
        .chain(listing(consent, false))
        .chain(tracked(&loaded.project))
        .chain(texts);
    for line in lines {
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
        Err(error) => notice_line(&format!("held back; the answer cannot be kept: {error}")),
    }
    Ok(loaded.clone())
}

/// What needs consent, one line each: all of it, or what is not allowed yet.
fn listing(consent: &Consent, all: bool) -> Vec<String> {
    let root = shown_text(&consent.root.to_string_lossy());
    let known = consent.settings.iter().filter(|s| s.allowed).count();
    let heading = match known {
        0 => format!("{root} wants settings that need your consent:"),
        _ if known == consent.settings.len() => format!("{root} has settings that you allowed:"),
        _ => format!("{root} wants new settings that need your consent:"),
    };
    let mut lines = vec![heading, String::new()];
    for setting in &consent.settings {
        if all || !setting.allowed {
            let mark = match (known, setting.allowed) {
                (0, _) => "",
                (_, true) => "     ",
                (_, false) => "new  ",
            };
            lines.push(row(setting, mark));
            lines.extend(own_programs(setting, &consent.root));
        }
    }
    if !all && known > 0 {
        let settings = count(known as u64, "setting");
        lines.push(String::new());
        lines.push(format!(
            "{settings} that you allowed before: `kd trust` lists all"
        ));
    }
    lines.push(String::new());
    lines
}

/// The files of the folder itself that a command would run, a line each: consent covers their names alone.
fn own_programs(setting: &WantedSetting, root: &Path) -> Vec<String> {
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
    let words = words.into_iter().enumerate().filter(is_own);
    words
        .map(|(_, word)| {
            let word = shown_text(word);
            format!(
                "              {word} is in this folder: a change of that file is not asked about"
            )
        })
        .collect()
}

/// What git tracks and must not.
fn tracked(project: &Project) -> Vec<String> {
    let held: Vec<&WantedSetting> = project
        .held
        .iter()
        .filter(|setting| matches!(setting.why, Because::Tracked(_)))
        .collect();
    if held.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        "held back, because git tracks .kd/config.local.json:".to_owned(),
        String::new(),
    ];
    lines.extend(held.into_iter().map(|setting| row(setting, "")));
    lines.extend([
        String::new(),
        "`git rm --cached .kd/config.local.json` stops tracking it".to_owned(),
        String::new(),
    ]);
    lines
}

/// A setting in one line; on a terminal that is narrower, continued below its own column.
fn row(setting: &WantedSetting, mark: &str) -> String {
    let text = format!(
        "{} = {}  ({})",
        setting.path,
        shown(&setting.value),
        place(setting)
    );
    let head = format!("  {:<9} {mark}", effect(&setting.path));
    let columns =
        terminal::size_of_stderr().map_or(usize::MAX, |(columns, _)| usize::from(columns).max(40));
    let mut out = head.clone();
    let mut used = width(&head);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let part = part(rest, columns.saturating_sub(used + 1));
        out.push_str(part);
        rest = &rest[part.len()..];
        if !rest.is_empty() {
            out.push_str("\n              ");
            used = 14;
        }
    }
    out
}

/// The beginning of a text that fits, up to a space where one is near the end.
fn part(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let fits = text.char_indices().find(|(_, c)| {
        used += width(c.encode_utf8(&mut [0; 4]));
        used > columns
    });
    let Some((end, _)) = fits else {
        return text;
    };
    let end = end.max(text.chars().next().map_or(0, char::len_utf8));
    match text[..end].rfind(' ') {
        Some(space) if space > 0 && end - space <= columns / 3 => &text[..=space],
        _ => &text[..end],
    }
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

/// The texts of the project that reach models, as lines.
fn texts(loaded: &Loaded, layout: &Layout) -> Vec<String> {
    let all = project_texts(loaded, layout);
    if all.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        "texts from here that members read (not held back):".to_owned(),
        String::new(),
    ];
    lines.extend(all.into_iter().map(|text| format!("  {text}")));
    lines.push(String::new());
    lines
}

/// The texts of a project that reach models: settings with their place and length, then files.
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

/// A value of a project, fit for a terminal: JSON in which everything unseen is escaped; of a long one both ends.
pub(super) fn shown(value: &Value) -> String {
    shown_text(&value.to_string())
}

/// A text in which nothing can steer the terminal or hide from the reader.
fn shown_text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        let unseen = crate::render::clean::is_unsafe(c)
            || matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{180b}'..='\u{180f}'
                | '\u{3164}' | '\u{ffa0}' | '\u{115f}' | '\u{1160}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
            || (c.is_whitespace() && c != ' ');
        if unseen {
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe
}

fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn agreed(question: &str) -> Result<bool, Error> {
    // What was typed before the question is no answer to it.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    let mut err = io::stderr().lock();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        writeln!(err)?;
    }
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
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
        writeln!(
            out,
            "{}  {}{gone}",
            shown_text(&folder.path),
            parts.join(", ")
        )?;
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
    notice_line(&format!("{what} {}", roots[0].display()));
    Ok(Exit::Done)
}

/// The folders that `kd trust` decides about from a working folder: the project's and, where its settings are those of the
/// owning checkout, that; one that is passed over now; and those with a mark for agent programs, up to the top.
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
    let top = git_top(folder);
    if roots.is_empty() {
        roots.push(top.clone());
    }
    let up = folder.ancestors().take_while(|up| up.starts_with(&top));
    roots.extend(up.map(Path::to_path_buf));
    Ok(roots)
}

fn git_top(folder: &Path) -> PathBuf {
    let top = folder.ancestors().find(|up| up.join(".git").exists());
    top.unwrap_or(folder).to_path_buf()
}
