//! `kd memory`: shows and deletes what is remembered across deliberations.

use super::here::Here;
use crate::args::deliberate::Memory;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use kd_app::memory;
use kd_core::formats::REMEMBERED;
use std::io::Write;

pub(super) fn run(args: &Memory, here: &Here) -> Result<Exit, Error> {
    match args {
        Memory::Show(args) => {
            let kept = memory::read(here)?;
            let mut out = crate::out::lines(args.json);
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
        Memory::Set(args) => memory::set(&args.name, &args.value, here)?,
        Memory::Forget(args) => {
            let has_changed = memory::forget(args.name.as_deref(), here)?;
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
