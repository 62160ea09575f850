//! `kd memory`: shows and deletes what is remembered across deliberations.

use super::here::Here;
use crate::args::deliberate::Memory;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use kd_core::formats::REMEMBERED;
use kd_core::memory::LongTerm;
use kd_store::memory;
use std::io::Write;

pub(super) fn run(args: &Memory, here: &Here) -> Result<Exit, Error> {
    match args {
        Memory::Show(args) => {
            let kept = match here.find_layout()? {
                Some(layout) => memory::read(&layout)?,
                None => LongTerm::default(),
            };
            let mut out = crate::out::stdout().lock();
            if args.json {
                let value = serde_json::json!({
                    "v": REMEMBERED.version, "preferences": kept.preferences, "domain": kept.domain, "sessions": kept.sessions,
                });
                writeln!(out, "{}", json::text(&value, true)?)?;
                return Ok(Exit::Done);
            }
            if kept.is_empty() {
                writeln!(
                    out,
                    "nothing is remembered; `kd config set deliberation.memory.longTerm true` turns it on"
                )?;
            }
            if !kept.domain.is_empty() {
                writeln!(out, "domain: {}", clean::line(&kept.domain))?;
            }
            for (name, value) in &kept.preferences {
                writeln!(out, "{}: {}", clean::line(name), clean::line(value))?;
            }
            for session in &kept.sessions {
                let at = session.message.map_or(String::new(), |m| format!(" #{m}"));
                writeln!(
                    out,
                    "{}{at}  {}  =>  {}",
                    clean::line(&session.thread.0),
                    clean::line(&session.question),
                    clean::line(&session.answer)
                )?;
            }
        }
        Memory::Set(args) => {
            let layout = here.make_layout()?.layout;
            memory::update(&layout, |kept| match args.name.as_str() {
                "domain" => kept.domain.clone_from(&args.value),
                name => {
                    kept.preferences.insert(name.to_owned(), args.value.clone());
                }
            })?;
        }
        Memory::Forget(args) => {
            let layout = here.layout()?;
            let has_changed = memory::update(&layout, |kept| {
                let before = kept.clone();
                match args.name.as_deref() {
                    None => *kept = LongTerm::default(),
                    Some("domain") => kept.domain.clear(),
                    Some(name) => {
                        kept.preferences.remove(name);
                        kept.sessions.retain(|s| {
                            s.thread.0 != name && s.thread.0 != format!("council-{name}")
                        });
                    }
                }
                *kept != before
            })?;
            if !has_changed && args.name.is_some() {
                return Err(Error::new(
                    "unknown",
                    Exit::Usage,
                    "nothing of that name is remembered",
                )
                .next("kd memory show"));
            }
        }
    }
    Ok(Exit::Done)
}
