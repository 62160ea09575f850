//! `kd status`: shows who has answered the newest question. The JSON has the same keys as kingdom-cli's.

use super::here::Here;
use crate::args::council::Status;
use crate::error::Error;
use crate::face::json;
use crate::render::clean;
use kd_app::threads::{State, Thread, asked_by};
use kd_core::SeatName;
use kd_core::last_round::RoundKind;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::time::Duration;

/// Time limit for agent programs left by a killed run to end.
const LEFT_OVER: Duration = Duration::from_secs(3);

pub(super) fn run(args: &Status, here: &Here) -> Result<(), Error> {
    let (layout, place) = kd_app::threads::find(here, args.id.as_deref())?;
    kd_app::process::sweep(here, &layout);
    let open = Thread::open(&place)?;
    let newest = kd_app::threads::newest(&open, 1)?;
    let turns = kd_app::threads::turns(&newest.messages);
    let turn = turns.last().copied().unwrap_or_default();
    let standing = kd_app::threads::standing(&open, turn)?;
    let states = &standing.states;
    // It is unknown whether this process asks it for the newest question or for another one.
    let asking = |seat: &SeatName| asked_by(&open, seat);
    let error = |seat: &SeatName| {
        turn.iter()
            .rev()
            .find(|m| m.from == seat.as_str())
            .and_then(kd_core::Message::why)
    };
    let mut out = crate::out::lines(args.json);
    if args.json {
        let names = |want: fn(State) -> bool| -> Vec<&SeatName> {
            states
                .iter()
                .filter(|(_, s)| want(*s))
                .map(|(n, _)| n)
                .collect()
        };
        let members: Map<String, Value> = states
            .iter()
            .map(|(seat, state)| {
                let mut member = json!({"state": state.word()});
                if matches!(state, State::Errored | State::Interrupted | State::TimedOut) {
                    member["error"] = error(seat).into();
                }
                if let Some(process) = asking(seat) {
                    member["asked_by"] = process.into();
                }
                (seat.to_string(), member)
            })
            .collect();
        let object = json!({
            "v": kd_core::formats::STATUS.version,
            "thread_id": open.id(),
            "asked_with": standing.kind.command(),
            "over": standing.is_over(),
            "expected": names(|_| true),
            "responded": names(|s| !matches!(s, State::Running | State::Pending)),
            "pending": names(|s| matches!(s, State::Running | State::Pending)),
            "members": members,
        });
        writeln!(out, "{}", json::text(&object, true)?)?;
    } else {
        let styles = here.out_styles();
        let mut head = styles.bold(&clean::line(&open.id().0));
        if standing.kind != RoundKind::Council {
            let end = if standing.is_over() {
                "ended"
            } else {
                "not ended"
            };
            let told = format!("  {}, {end}", standing.kind.command());
            head.push_str(&styles.dim(&told));
        }
        writeln!(out, "{head}")?;
        for (seat, state) in states {
            let mut word = state.told().to_owned();
            if matches!(state, State::Errored | State::TimedOut)
                && let Some(why) = error(seat)
            {
                word.push_str(&format!(": {}", clean::line(&why)));
            }
            match asking(seat) {
                None => {}
                Some(0) => word.push_str(", asked by another kd"),
                Some(process) => word.push_str(&format!(", asked by kd {process}")),
            }
            writeln!(
                out,
                "  {} {seat}  {}",
                state.mark(styles.unicode),
                styles.dim(&word)
            )?;
        }
    }
    out.flush()?;
    // Agents found left over are gone before exit.
    kd_app::process::settle(LEFT_OVER);
    Ok(())
}
