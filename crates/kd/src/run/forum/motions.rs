//! `kd forum motions`: what agents want changed, and a person's word on it.

use super::super::here::Here;
use super::Site;
use crate::args::forum::Motions;
use crate::error::Error;
use crate::render::clean;
use kd_core::forum::governance::{CastVote, Motion};
use std::io::{self, Write};

/// Motions in a list.
const LISTED: i64 = 200;

pub(super) fn run(args: &Motions, here: &Here) -> Result<(), Error> {
    let mut site = Site::open(&args.place, here)?;
    let now = jiff::Timestamp::now();
    let mut out = io::stdout().lock();
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
                .try_for_each(|motion| line(motion, &mut out))?;
        }
        if motions.len() as i64 == LISTED {
            writeln!(
                io::stderr(),
                "only {LISTED} motions are shown, the open ones first; `kd forum motions N` shows any"
            )?;
        }
        return Ok(());
    };
    let configured = site.config.forum.settings.clone();
    if args.confirm {
        site.store.confirm_motion(id, &configured, now)?;
    } else if let Some(reason) = &args.veto {
        site.store.veto_motion(id, reason, now)?;
    }
    let (motion, votes) = site.store.motion(id)?;
    if args.json {
        writeln!(
            out,
            "{}",
            serde_json::json!({"motion": motion, "votes": votes})
        )?;
        return Ok(());
    }
    line(&motion, &mut out)?;
    writeln!(
        out,
        "  moved by {}: {}",
        motion.proposer,
        clean::text(&motion.reason)
    )?;
    if !motion.outcome.is_empty() {
        writeln!(out, "  {}", motion.outcome)?;
    }
    for CastVote {
        agent,
        choice,
        reason,
        ..
    } in &votes
    {
        let reason = if reason.is_empty() {
            String::new()
        } else {
            format!(": {}", clean::text(reason))
        };
        writeln!(out, "  {:<8} {agent}{reason}", choice.word())?;
    }
    Ok(())
}

fn line(motion: &Motion, out: &mut dyn Write) -> io::Result<()> {
    let change = match (&motion.key, &motion.value) {
        (Some(key), Some(value)) => format!(" [{key} = {}]", clean::text(value)),
        (None, Some(value)) => format!(" [{}]", clean::text(value)),
        _ => String::new(),
    };
    let closes = match motion.state {
        kd_core::forum::governance::MotionState::Open => {
            format!(", open until the end of cycle {}", motion.closes_after)
        }
        _ => String::new(),
    };
    writeln!(
        out,
        "motion {:<4} {:<9} {}{change}: {}{closes}",
        motion.id,
        motion.state.word(),
        motion.kind.word(),
        clean::text(&motion.title)
    )
}
