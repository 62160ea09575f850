//! Seats: who takes part in a council, in which role, and who has a vote.

use super::{Brief, Choice, PlanError, agents, presets, seat};
use crate::config::{Config, MemberPlan};
use crate::deliberation::plan::{Seat, Strategy};
use crate::roles::{self, Duty};
use std::collections::BTreeSet;

/// Members that join between passes if no backup is listed.
const RESERVES: usize = 2;
/// Maximum number of members of a council.
const SEATS_MAX: usize = 9;
/// The roles of agents in a second seat: they check the answers of others.
const CHECKS: &[&str] = &["reviewer", "devil-advocate", "fact-checker"];

/// Returns the members of a plan: from the settings, from the planner, or the preset's roles assigned to the agents in
/// turn. Among several agents, each gives at most one opinion and has one vote.
pub(super) fn seats(
    config: &Config,
    brief: &Brief<'_>,
    choice: &Choice,
    preset: &presets::Preset,
    protocol: &str,
    notices: &mut Vec<String>,
) -> Result<Vec<Seat>, PlanError> {
    let settings = &config.deliberation;
    let mut agents = agents(config, brief);
    let mut known = BTreeSet::new();
    agents.retain(|agent| known.insert(agent.clone()));
    let listed = settings
        .council
        .members
        .clone()
        .or_else(|| choice.members.clone());
    if let (Some(listed), None) = (&settings.council.members, settings.council.size) {
        // The plan schema requires it.
        notices.push(format!(
            "`council.size` is missing: the {} listed members take part",
            listed.len()
        ));
    }
    let is_listed = listed.is_some();
    let mut wanted = match listed {
        Some(listed) => listed,
        None => assigned(config, brief, choice, preset, &agents),
    };
    if brief.all_sit {
        seat_all(config, &agents, is_listed, &mut wanted)?;
    }
    let backs_up = |seat: &MemberPlan| roles::duties(&seat.role).contains(&Duty::Reserve);
    let escalates = settings.iteration.strategy == Strategy::Escalate;
    if settings.iteration.enabled && (escalates || !is_listed) && !wanted.iter().any(backs_up) {
        let reserve = reserves(brief, &agents, &wanted, escalates);
        if escalates {
            notices.push(told(&reserve));
        }
        wanted.extend(reserve.into_iter().map(|model| MemberPlan {
            model,
            role: "backup".into(),
            ..MemberPlan::default()
        }));
    }
    let mut seats: Vec<Seat> = Vec::new();
    for (place, wanted) in wanted.iter().enumerate() {
        let seat = seat(config, brief, wanted, &seats, place as u64)?;
        seats.push(seat);
    }
    give_one_vote_each(&mut seats);
    let opining = seats.iter().filter(|s| s.has(Duty::Opine)).count();
    if opining == 0 {
        notices.push("no member has a role that gives opinions, so every member gives one".into());
    } else if opining == 1 && protocol != "solo" && protocol != "sample-vote" {
        notices.push(
            "only one member gives an opinion, so there is nothing to compare it with".into(),
        );
    }
    if !seats.iter().any(|s| s.has(Duty::Conclude))
        && let Some(first) = seats.iter().find(|s| s.has(Duty::Opine)).or(seats.first())
    {
        notices.push(format!(
            "no member is the synthesizer: {} concludes",
            first.name()
        ));
    }
    Ok(seats)
}

/// Assigns a preset's roles to the agents in turn.
fn assigned(
    config: &Config,
    brief: &Brief<'_>,
    choice: &Choice,
    preset: &presets::Preset,
    agents: &[String],
) -> Vec<MemberPlan> {
    let size = config.deliberation.council.size.or(choice.size);
    let size = size.map(|size| (size as usize).clamp(3, SEATS_MAX));
    // Any folder can name roles as members; beside two agents they add no opinion to a council that is to be cheap.
    let configured = agents
        .iter()
        .filter(|name| config.agents.contains_key(*name));
    let fewer = usize::from(preset.is_quick && configured.count() == 2);
    let given = roles_for(preset, size.unwrap_or(preset.roles.len() - fewer));
    let given = once_each(given, agents.len(), brief.all_sit, size);
    let chair = chair(config, brief, agents, &given);
    // A configured chair comes last, so that it has a vote only if all others have one.
    let mut voters = agents.to_vec();
    if !brief.all_sit && config.council.chair.is_some() {
        voters.sort_by_key(|agent| *agent == chair);
    }
    let mut voters = voters.iter().cycle();
    let member = |role: &&str| {
        let concludes = roles::duties(role).contains(&Duty::Conclude);
        let agent = match concludes {
            true => Some(&chair),
            false => voters.next(),
        };
        MemberPlan {
            model: agent.unwrap_or(&chair).clone(),
            role: (*role).to_owned(),
            ..MemberPlan::default()
        }
    };
    given.iter().map(member).collect()
}

/// Returns a preset's roles for a number of members: extra members take further roles; fewer drop those before the
/// last.
fn roles_for(preset: &presets::Preset, size: usize) -> Vec<&'static str> {
    let (last, rest) = match preset.roles.split_last() {
        Some((last, rest)) => (*last, rest),
        None => ("synthesizer", &[][..]),
    };
    let mut given: Vec<&'static str> = rest.iter().copied().take(size - 1).collect();
    let mut more = presets::MORE.iter().cycle();
    while given.len() < size - 1 {
        given.extend(more.next());
    }
    given.push(last);
    given
}

/// Changes roles so that each of several agents gives one opinion at most; with `all_sit`, exactly one. Further seats
/// check the answers of other members: the seats of the preset, or as many as the requested `size` leaves.
fn once_each(
    given: Vec<&'static str>,
    agents: usize,
    all_sit: bool,
    size: Option<usize>,
) -> Vec<&'static str> {
    let opines = |role: &&str| roles::duties(role).contains(&Duty::Opine);
    let Some((last, rest)) = given.split_last() else {
        return given;
    };
    let (opining, checking): (Vec<&str>, Vec<&str>) = rest.iter().copied().partition(opines);
    // One agent alone plays all roles.
    if agents == 1 || !all_sit && opining.len() <= agents {
        return given;
    }
    let more = presets::MORE.iter().copied().filter(opines).cycle();
    let count = match all_sit {
        true => agents,
        false => opining.len().min(agents),
    };
    let all = match size {
        Some(size) => (size - 1).max(count),
        None => (count + checking.len()).min((SEATS_MAX - 1).max(count)),
    };
    let checking = checking.into_iter().chain(CHECKS.iter().copied().cycle());
    let mut roles: Vec<&'static str> = opining.into_iter().chain(more).take(count).collect();
    roles.extend(checking.take(all - count));
    roles.push(last);
    roles
}

/// Returns the chair: the configured one, otherwise an agent without a vote, otherwise the first.
fn chair(config: &Config, brief: &Brief<'_>, agents: &[String], given: &[&str]) -> String {
    let others = given
        .iter()
        .filter(|role| !roles::duties(role).contains(&Duty::Conclude))
        .count();
    // Members named by the user vote, so none is free.
    let free = agents.get(others).filter(|_| !brief.all_sit);
    let chair = config.council.chair.as_ref().or(free);
    chair.unwrap_or(&agents[0]).clone()
}

/// Adds every named member that is missing, before the chair.
fn seat_all(
    config: &Config,
    named: &[String],
    is_listed: bool,
    wanted: &mut Vec<MemberPlan>,
) -> Result<(), PlanError> {
    let works = |seat: &&MemberPlan| {
        let duties = roles::duties(&seat.role);
        duties.contains(&Duty::Opine) || duties.contains(&Duty::Vote)
    };
    let is_missing = |name: &&String| {
        let mut working = wanted.iter().filter(works);
        working.all(|seat| seat.model != **name)
    };
    let mut missing: Vec<String> = named.iter().filter(is_missing).cloned().collect();
    let council = &config.deliberation.council;
    let seats = wanted.len() + missing.len();
    let most = council.size.map_or(SEATS_MAX, |size| size as usize);
    let why = if missing.is_empty() && (is_listed || seats <= most) {
        return Ok(());
    } else if council.members.is_some() {
        Some("`deliberation.council.members` lists the members".to_owned())
    } else if let Some(size) = council.size.filter(|_| seats > most) {
        Some(format!(
            "`deliberation.council.size` is {size}, and they need {seats} members"
        ))
    } else if seats > SEATS_MAX {
        Some(format!(
            "a council has at most {SEATS_MAX} members, and they need {seats}"
        ))
    } else {
        None
    };
    if let Some(why) = why {
        // A size leaves out only the members beyond it; a list leaves out all of them.
        let mut left_out = match missing.is_empty() {
            true => named.to_vec(),
            false => missing,
        };
        let surplus = match council.members {
            Some(_) => left_out.len(),
            None => seats.saturating_sub(most).min(left_out.len()),
        };
        return Err(PlanError::NoSeat {
            names: left_out.split_off(left_out.len() - surplus),
            why,
        });
    }
    let last = wanted
        .iter()
        .rposition(|seat| roles::duties(&seat.role).contains(&Duty::Conclude))
        .unwrap_or(wanted.len());
    wanted.splice(
        last..last,
        missing.drain(..).map(|model| MemberPlan {
            model,
            role: "opinion-giver".into(),
            ..MemberPlan::default()
        }),
    );
    Ok(())
}

/// Returns the agents that may join between passes: those without a seat, from the last one. One agent that plays all
/// roles joins in further ones.
fn reserves(
    brief: &Brief<'_>,
    agents: &[String],
    wanted: &[MemberPlan],
    escalates: bool,
) -> Vec<String> {
    match agents {
        [alone] if !brief.all_sit || escalates => vec![alone.clone(); RESERVES],
        _ => {
            let free = |agent: &&String| wanted.iter().all(|seat| seat.model != **agent);
            let free = agents.iter().rev().filter(free);
            free.take(RESERVES).cloned().collect()
        }
    }
}

/// Tells who joins under the strategy `escalate`.
fn told(reserve: &[String]) -> String {
    let mut names: Vec<&str> = reserve.iter().map(String::as_str).collect();
    names.dedup();
    match names.as_slice() {
        [] => "every agent has a seat, so nobody joins where agreement stays low: the members deliberate again (strategy escalate works as refine)".to_owned(),
        [name] => format!("no backup is listed, so {name} joins where agreement stays low (strategy escalate)"),
        names => format!(
            "no backup is listed, so {} join where agreement stays low (strategy escalate)",
            names.join(" and ")
        ),
    }
}

/// Leaves each of several agents one vote: in the seat in which it gives an opinion, otherwise in its first one. If all
/// seats are of one agent, each of them votes.
fn give_one_vote_each(seats: &mut [Seat]) {
    let who = |seat: &Seat| {
        let agent = seat.member.launch.agent.as_ref().unwrap_or(&seat.agent);
        (agent.clone(), seat.member.model.clone())
    };
    let votes = |seat: &Seat| seat.has(Duty::Vote) || seat.has(Duty::Reserve);
    let voters: BTreeSet<_> = seats.iter().filter(|s| votes(s)).map(who).collect();
    if voters.len() < 2 {
        return;
    }
    for one in voters {
        let of_one: Vec<usize> = (0..seats.len())
            .filter(|at| votes(&seats[*at]) && who(&seats[*at]) == one)
            .collect();
        let rank = |at: &usize| {
            let seat = &seats[*at];
            (!seat.has(Duty::Opine), seat.has(Duty::Reserve), *at)
        };
        let Some(kept) = of_one.iter().copied().min_by_key(rank) else {
            continue;
        };
        for at in of_one.into_iter().filter(|at| *at != kept) {
            seats[at].no_vote = true;
        }
    }
}
