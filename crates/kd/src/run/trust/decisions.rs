//! `kd trust --list` and `--revoke`: the decisions that the user made about folders.

use super::super::here::Here;
use super::super::notices::notice_line;
use super::listing::fit;
use super::{json, screen};
use crate::args::trust::Trust;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::trust::{self, TrustedFolder, user_names};
use kd_app::words::{count, shown_text};
use kd_core::formats::{TRUST_LIST, TRUST_REVOKED};
use serde_json::{Value, json as object};
use std::io::Write;
use std::path::Path;

pub(super) fn list(args: &Trust, here: &Here) -> Result<Exit, Error> {
    let all = trust::decisions(here)?;
    if args.json {
        let folders: Vec<Value> = all.iter().map(value).collect();
        json::print(&object!({"v": TRUST_LIST.version, "folders": folders}))?;
        return Ok(Exit::Done);
    }
    let mut out = crate::out::stdout().lock();
    if all.is_empty() {
        writeln!(
            crate::out::stderr(),
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

/// Returns the decisions about a folder as JSON.
fn value(folder: &TrustedFolder) -> Value {
    object!({
        "path": folder.path,
        "exists": Path::new(&folder.path).exists(),
        "allowed_at": folder.allowed_at,
        "allowed_settings": folder.settings.len(),
        "declined": folder.declined_settings.is_some(),
        "programs_trusted": folder.programs.is_some(),
        "owners": folder.owners,
    })
}

pub(super) fn revoke(path: Option<&Path>, args: &Trust, here: &Here) -> Result<Exit, Error> {
    let (root, is_revoked) = trust::revoke(path, here)?;
    if args.json {
        json::print(&object!({
            "v": TRUST_REVOKED.version,
            "path": root.to_string_lossy(),
            "revoked": is_revoked,
        }))?;
        return Ok(Exit::Done);
    }
    let what = match is_revoked {
        true => "revoked: the decision about",
        false => "there was no decision about",
    };
    let root = shown_text(&root.to_string_lossy());
    notice_line(&format!("{what} {root}"));
    Ok(Exit::Done)
}
