//! `kd trust`, and the prompt that commands show before they act on a project's settings.
//!
//! Input: the loaded settings, with what is held back. Output: lines on the terminal, the user's decision, and an error
//! if a required member is held back.

mod decisions;
mod json;
mod listing;

use self::listing::{Block, Listing, Row, Screen};
use super::agreed::agreed;
use super::here::Here;
use super::notices::notice_line;
use crate::args::trust::Trust;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::forum::foreign::ForeignForum;
use kd_app::threads::Layout;
use kd_app::trust::{
    self, Because, Consent, Decision, Foreign, Loaded, Programs, Project, WantedSetting, held_line,
    place, project_texts, user_names,
};
use kd_app::words::{count, shown_text};
use kd_app::{Env, Kingdom};
use kd_core::config::effect;
use serde_json::Value;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

pub(super) fn run(args: &Trust, here: &Here) -> Result<Exit, Error> {
    if args.list {
        return decisions::list(args, here);
    }
    if let Some(path) = &args.revoke {
        return decisions::revoke(path.as_deref(), args, here);
    }
    let (layout, foreign) = with_owner(args, here)?;
    // Before git can get a file that is about to be allowed.
    if let (Some(layout), None) = (&layout, &foreign) {
        layout.protect();
    }
    let loaded = here.settings(layout.as_ref())?;
    let consent = loaded.project.consent.as_ref();
    let programs = match trust::programs(here) {
        Ok(programs) => Some(programs),
        // Settings can be allowed all the same.
        Err(error) if consent.is_some() || foreign.is_some() => {
            notice_line(&format!(
                "agent programs cannot trust this folder: {}",
                error.what
            ));
            None
        }
        Err(error) => return Err(error.into()),
    };
    let untrusted = match &programs {
        Some(programs) if !trust::trusts(programs, here)? => Some(programs),
        _ => None,
    };
    let forum = match (&layout, &foreign) {
        (Some(layout), None) => ForeignForum::find(layout, &loaded.config, here)?,
        // A forum is opened once its owner is accepted.
        _ => None,
    };
    if args.json {
        let wanted = json::Wanted {
            foreign: foreign.as_ref(),
            loaded: &loaded,
            layout: layout.as_ref(),
            programs: programs.as_ref(),
            programs_trusted: untrusted.is_none(),
            forum: forum.as_ref(),
        };
        let mut told = wanted.value(here);
        if args.yes {
            allow(foreign.as_ref(), consent, forum, untrusted, here)?;
            json::all_allowed(&mut told);
        }
        json::print(&told)?;
        return Ok(Exit::Done);
    }
    let mut listing = Listing::default();
    if let (None, Some(consent)) = (&foreign, consent) {
        whose(consent, here)
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
        listing.ask_about(settings_of(consent, true, here));
    }
    print(&listing.lines(screen()))?;
    let consent = consent.filter(|consent| consent.decision != Decision::Allowed);
    let nothing = untrusted.is_none() && consent.is_none();
    if nothing && foreign.is_none() && forum.is_none() {
        writeln!(
            crate::out::stdout(),
            "trusted; `kd trust --revoke` revokes this"
        )?;
        return Ok(Exit::Done);
    }
    if !args.yes {
        if !is_terminal() {
            let files = programs.iter().flat_map(files_of).count();
            if files == 0 && consent.is_none() && foreign.is_none() && forum.is_none() {
                writeln!(
                    crate::out::stdout(),
                    "no file and no setting to allow; `kd trust --yes` lets agent programs trust the folder as it is"
                )?;
                return Ok(Exit::Done);
            }
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
                    "not trusted; settings that you allowed before still count (`kd trust --revoke` revokes them)"
                }
            });
            return Ok(Exit::Done);
        }
    }
    allow(foreign.as_ref(), consent, forum, untrusted, here)?;
    Ok(Exit::Done)
}

/// Saves the consent to everything that is not allowed yet.
fn allow(
    foreign: Option<&Foreign>,
    consent: Option<&Consent>,
    forum: Option<ForeignForum>,
    untrusted: Option<&Programs>,
    here: &Here,
) -> Result<(), Error> {
    if let Some(foreign) = foreign {
        accept(foreign, here)?;
    }
    if let Some(consent) = consent.filter(|consent| consent.decision != Decision::Allowed) {
        let settings = consent.new_settings().count();
        consent.allow()?;
        notice_line(&format!(
            "allowed for {}: {}",
            shown_text(&consent.root.to_string_lossy()),
            count(settings as u64, "setting")
        ));
    }
    if let Some(forum) = forum {
        forum.accept(here)?;
        notice_line("the forum's elections count");
    }
    if let Some(programs) = untrusted {
        trust::trust_programs(programs, here)?;
        notice_line(&format!(
            "agent programs trust {}",
            shown_text(&programs.top().to_string_lossy())
        ));
    }
    Ok(())
}

fn print(lines: &[String]) -> Result<(), Error> {
    let mut out = crate::out::stdout().lock();
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
    if !args.json {
        print(&owner_lines(&foreign, screen()))?;
    }
    if args.yes || args.json || !is_terminal() {
        let layout = here.find_layout_accepting(std::slice::from_ref(&foreign))?;
        return Ok((layout, Some(foreign)));
    }
    if agreed("Accept this owner for this folder?")? {
        accept(&foreign, here)?;
    } else {
        notice_line("not accepted; the .kd stays unused");
    }
    Ok((here.find_layout()?, None))
}

fn accept(foreign: &Foreign, here: &Here) -> Result<(), Error> {
    trust::accept(foreign, here)?;
    notice_line(&format!(
        "accepted for {}: {}",
        shown_text(&foreign.root.to_string_lossy()),
        user_names(&foreign.users())
    ));
    Ok(())
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
fn whose(consent: &Consent, here: &Here) -> Option<Block> {
    let foreign = trust::owners(&consent.root, here);
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

/// Returns the files that agent programs run or obey here, from the top.
fn files_of(programs: &Programs) -> impl Iterator<Item = PathBuf> {
    programs.decided().flat_map(|level| {
        let below = level.folder.strip_prefix(programs.top());
        let below = below.unwrap_or(&level.folder);
        level.files.iter().map(|file| below.join(file))
    })
}

/// Lists what agent programs run or obey here.
fn program_files(programs: &Programs) -> Block {
    let mut block = Block::of_files(format!(
        "agent programs run and obey what is in {}:",
        shown_text(&programs.top().to_string_lossy())
    ));
    let rows = files_of(programs).map(|file| Row::new("", &file.to_string_lossy()));
    block.rows.extend(rows);
    let files = block.rows.len();
    if files == 0 {
        let none = "no settings, hooks or plugins";
        block.rows.push(Row::new("", none));
    }
    block.with_total(format!("{} of agent programs", count(files as u64, "file")))
}

/// Returns the terminal on which to ask, or where lines are only printed.
fn screen() -> Screen {
    let sizes = [kd_tui::terminal::size_of_stderr(), kd_tui::terminal::size()];
    let sizes = || sizes.into_iter().flatten();
    let rows = || sizes().map(|(_, rows)| usize::from(rows)).min();
    Screen {
        columns: sizes().map(|(columns, _)| usize::from(columns)).min(),
        rows: rows().filter(|_| is_terminal()),
    }
}

/// Opens the folder for a command that asks members; settings that need consent are asked about.
pub(super) fn open(here: &Here, quiet: bool) -> Result<Kingdom, Error> {
    let layout = here.find_layout()?;
    let loaded = settings(here, layout.as_ref())?;
    Ok(Kingdom::with(here.env(quiet), layout, loaded))
}

/// Returns the settings for a command that acts on them. On a terminal, asks once about settings that need consent;
/// elsewhere prints one line about what is held back.
pub(super) fn settings(here: &Here, layout: Option<&Layout>) -> Result<Loaded, Error> {
    let loaded = here.settings(layout)?;
    if let Some(fault) = &loaded.project.fault {
        notice_line(&format!("decisions about folders cannot be read: {fault}"));
    }
    decided(loaded, here, layout)
}

fn decided(loaded: Loaded, here: &Here, layout: Option<&Layout>) -> Result<Loaded, Error> {
    if !loaded.project.holds_back() {
        return Ok(loaded);
    }
    // What is held back may be a file of this checkout that git must not get.
    if let Some(layout) = layout {
        layout.protect();
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

fn ask(
    loaded: &Loaded,
    consent: &Consent,
    here: &Here,
    layout: Option<&Layout>,
) -> Result<Loaded, Error> {
    let mut listing = Listing::default();
    whose(consent, here)
        .into_iter()
        .for_each(|block| listing.inform(block));
    let texts = layout.and_then(|layout| texts(loaded, layout));
    texts.into_iter().for_each(|block| listing.inform(block));
    tracked(&loaded.project)
        .into_iter()
        .for_each(|block| listing.inform(block));
    listing.ask_about(settings_of(consent, false, here));
    let mut err = crate::out::stderr().lock();
    for line in listing.lines(screen()) {
        writeln!(err, "{line}")?;
    }
    drop(err);
    if agreed("Allow these settings in this folder?")? {
        consent.allow()?;
        let now = here.settings(layout)?;
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
fn settings_of(consent: &Consent, all: bool, env: &Env) -> Block {
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
        let remarks = trust::remarks(setting, &consent.root, env);
        let remarks = remarks.iter().map(|text| Row::new("            ", text));
        block.rows.extend(remarks);
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

/// Lists the texts of the project that reach models.
fn texts(loaded: &Loaded, layout: &Layout) -> Option<Block> {
    let all = project_texts(loaded, layout);
    let rows: Vec<Row> = all.iter().map(|text| Row::new("", text)).collect();
    let block = Block::new("texts from here that members read (not held back):");
    block.of_rows(rows)
}

/// Formats a value of a project for a terminal: JSON with all invisible characters escaped; a long one is cut in the
/// middle.
pub(super) fn shown(value: &Value) -> String {
    shown_text(&value.to_string())
}

fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::config::{KEYS, KeyPath};

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
