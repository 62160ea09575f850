//! `kd forum motions`: the changes agents propose, and the user's decisions on them.

use super::super::here::Here;
use super::{lines, open, open_to_write, talk};
use crate::args::forum::{Motions, Propose, Vote};
use crate::error::Error;
use crate::render::clean;
use kd_app::forum::Site;
use kd_core::formats::FORUM_MOTION;
use kd_forum::proposal::Proposal;
use serde_json::{Value, json};
use std::io::Write;

/// Maximum motions in a list.
const LISTED: i64 = 200;

pub(super) fn run(args: &Motions, here: &Here) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let now = jiff::Timestamp::now();
    let mut out = crate::out::lines(args.json);
    let Some(id) = args.motion else {
        let motions = site.store.motions(&site.forum, LISTED)?;
        if args.json {
            writeln!(
                out,
                "{}",
                serde_json::to_string(&motions).unwrap_or_default()
            )?;
        } else if motions.is_empty() {
            writeln!(out, "no motions")?;
        } else {
            motions
                .iter()
                .try_for_each(|motion| writeln!(out, "{}", lines::motion(motion)))?;
        }
        if motions.len() as i64 == LISTED {
            writeln!(
                crate::out::stderr(),
                "only {LISTED} motions are shown, the open ones first; `kd forum motions N` shows any"
            )?;
        }
        return Ok(());
    };
    let configured = site.config.forum.settings.clone();
    if args.confirm {
        site.store
            .confirm_motion(id, &args.author, &configured, now)?;
    } else if let Some(reason) = &args.veto {
        site.store.veto_motion(id, &args.author, reason, now)?;
    }
    let (motion, votes) = site.store.motion(id)?;
    if args.json {
        writeln!(
            out,
            "{}",
            json!({"v": FORUM_MOTION.version, "motion": motion, "votes": votes})
        )?;
        return Ok(());
    }
    writeln!(out, "{}", lines::motion(&motion))?;
    writeln!(
        out,
        "  moved by {}: {}",
        motion.proposer,
        clean::text(&motion.reason)
    )?;
    if !motion.outcome.is_empty() {
        writeln!(out, "  {}", motion.outcome)?;
    }
    for vote in &votes {
        writeln!(out, "{}", lines::vote(vote))?;
    }
    Ok(())
}

/// Proposes a motion as a user.
pub(super) fn propose(
    site: &mut Site,
    who: &str,
    what: &str,
    title: Option<&str>,
    reason: &str,
) -> Result<Value, Error> {
    let wish = Proposal::parse(what)
        .map_err(|why| Error::usage(why.to_string()).next("kd forum propose --help"))?;
    let arguments = json!({
        "kind": wish.kind.word(), "key": wish.key, "value": wish.value,
        "title": title.unwrap_or(&wish.title), "reason": reason,
    });
    Ok(site.act(who, "propose", &arguments)?)
}

pub(super) fn move_it(args: &Propose, here: &Here) -> Result<(), Error> {
    let mut site = open_to_write(&args.place, &args.secrets, here)?;
    let answer = propose(
        &mut site,
        &args.author,
        &args.what.join(" "),
        args.title.as_deref(),
        &args.reason,
    )?;
    talk::tell_masked(&answer)?;
    writeln!(
        crate::out::stdout(),
        "motion {}, in thread {}; votes are taken until the end of cycle {}",
        answer["motion_id"],
        answer["thread_id"],
        answer["closes_after_cycle"]
    )?;
    Ok(())
}

pub(super) fn vote(args: &Vote, here: &Here) -> Result<(), Error> {
    let mut site = open_to_write(&args.place, &args.secrets, here)?;
    let arguments = json!({"motion_id": args.motion, "choice": args.choice, "reason": args.reason});
    let answer = site.act(&args.author, "vote", &arguments)?;
    talk::tell_masked(&answer)?;
    let (motion, _) = site.store.motion(args.motion)?;
    writeln!(
        crate::out::stdout(),
        "{}: {}",
        args.choice,
        lines::motion(&motion)
    )?;
    Ok(())
}
