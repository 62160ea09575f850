//! `kd forum hide`, `close`, `ban`, `role`, `undo` and their opposites, `edit`, and `members`: moderation by users.
//! Every order is logged with author, time and reason.

use super::super::here::Here;
use super::{lines, open, open_to_write, talk};
use crate::args::forum::{Edit, Give, GiveName, GiveRole, KeepSecrets, Members, Undo};
use crate::error::Error;
use crate::render::clean;
use kd_app::forum::Site;
use kd_forum::account::RIGHTS;
use kd_forum::account::Role;
use kd_forum::order::Order;
use serde_json::json;
use std::io::Write;

/// Maximum entries in a list.
const LISTED: i64 = 200;

/// Gives an order and prints its log entry. `keep` is the option that keeps secrets, if the command has it.
pub(super) fn give(
    site: &mut Site,
    (by, reason): (&str, &str),
    order: &Order,
    keep: Option<&KeepSecrets>,
    here: &Here,
) -> Result<(), Error> {
    let now = jiff::Timestamp::now();
    let forum = site.forum.clone();
    let reason = talk::masked(site, reason, keep, here)?;
    let entry = site.store.give_order(&forum, by, order, &reason, now)?;
    writeln!(crate::out::stdout(), "{}", clean::line(&entry.line()))?;
    Ok(())
}

/// Gives an order about a post or a thread.
pub(super) fn about_number(
    args: &Give,
    here: &Here,
    order: impl FnOnce(i64) -> Order,
) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let by = (args.author.as_str(), args.reason.as_str());
    give(&mut site, by, &order(args.number), None, here)
}

/// Gives an order about a member.
pub(super) fn about_name(
    args: &GiveName,
    here: &Here,
    order: impl FnOnce(&str) -> Order,
) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let by = (args.author.as_str(), args.reason.as_str());
    give(&mut site, by, &order(&args.name), None, here)
}

pub(super) fn role(args: &GiveRole, here: &Here) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let order = match (Role::parse(&args.role), args.role.as_str()) {
        (Some(role), _) => Order::role(&args.name, role),
        (None, "voter") => Order::votes(&args.name, true),
        (None, _) => Order::votes(&args.name, false),
    };
    let by = (args.author.as_str(), args.reason.as_str());
    give(&mut site, by, &order, None, here)
}

pub(super) fn undo(args: &Undo, here: &Here) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let forum = site.forum.clone();
    if args.list {
        let entries = site.store.orders(&forum, LISTED)?;
        let mut out = crate::out::lines(false);
        if entries.is_empty() {
            writeln!(out, "no entries")?;
        }
        for entry in &entries {
            writeln!(
                out,
                "{}  {}",
                lines::moment(entry.at),
                clean::line(&entry.line())
            )?;
        }
        out.flush()?;
        if entries.len() as i64 == LISTED {
            writeln!(crate::out::stderr(), "only the newest {LISTED} are shown")?;
        }
        return Ok(());
    }
    let now = jiff::Timestamp::now();
    let reason = args.reason.as_deref().unwrap_or_default();
    let entry = site
        .store
        .undo_order(&forum, &args.author, args.entry, reason, now)?;
    writeln!(crate::out::stdout(), "{}", clean::line(&entry.line()))?;
    Ok(())
}

pub(super) fn edit(args: &Edit, here: &Here) -> Result<(), Error> {
    let body = talk::body(&args.body)?;
    let mut site = open_to_write(&args.place, &args.secrets, here)?;
    let arguments = json!({"post_id": args.post, "body": body});
    let answer = site.act(&args.author, "edit_post", &arguments)?;
    talk::tell_masked(&answer)?;
    writeln!(crate::out::stdout(), "post {} is changed", args.post)?;
    Ok(())
}

pub(super) fn members(args: &Members, here: &Here) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let forum = site.forum.clone();
    let mut out = crate::out::lines(args.json);
    if args.rights {
        for role in Role::ALL {
            let may = RIGHTS.iter().filter(|(right, _, _)| role.has(*right));
            let may: Vec<&str> = may.map(|(_, words, _)| *words).collect();
            writeln!(out, "{:<10} {}", role.word(), may.join("; "))?;
        }
        return Ok(());
    }
    if let Some(name) = &args.name {
        let Some(member) = site.store.member(&forum, name)? else {
            return Err(
                Error::usage(format!("there is no member `{}`", clean::line(name)))
                    .next("kd forum members"),
            );
        };
        let about = lines::about_member(&mut site, &member)?;
        match args.json {
            true => writeln!(
                out,
                "{}",
                serde_json::to_string(&member).unwrap_or_default()
            )?,
            false => about
                .iter()
                .try_for_each(|line| writeln!(out, "{}", line.trim_start_matches("# ")))?,
        }
        return Ok(());
    }
    let members = site.store.members(&forum)?;
    if args.json {
        writeln!(
            out,
            "{}",
            serde_json::to_string(&members).unwrap_or_default()
        )?;
    } else if members.is_empty() {
        writeln!(
            out,
            "no members yet: they join with the first thing that they do"
        )?;
    }
    for member in members.iter().filter(|_| !args.json) {
        writeln!(
            out,
            "{:<20} {:<7} {:<10} {:<7} {}",
            clean::line(&member.name),
            member.kind.word(),
            member.role.word(),
            member.status.word(),
            if member.is_elector() { "votes" } else { "" }
        )?;
    }
    Ok(())
}
