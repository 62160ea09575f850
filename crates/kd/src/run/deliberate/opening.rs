//! Prepares a deliberation for every front end: command, chat, servers. Input: settings, a question, a thread. Output:
//! a plan, and the machine with its members. A [`Report`](kd_core::deliberation::report::Report) folds what happens
//! then.

use crate::error::Error;
use crate::run::here::user_dirs;
use jiff::Timestamp;
use kd_core::config::Config;
use kd_core::deliberation::{Deliberation, Plan};
use kd_core::planner::{self, Brief, OwnedBrief, Planned};
use kd_core::prompt::PREAMBLE;
use kd_core::{Op, Roster};
use kd_engine::Opening;
use kd_eval::marks::Mark;
use kd_store::{Layout, Thread, memory};
use std::sync::Arc;

/// Returns the planner's input, including this folder's data: the user's roles and, if enabled, long-term memory.
/// `layout` is `None` if there is no project yet.
pub(in crate::run) fn brief(
    config: &Config,
    layout: Option<&Layout>,
    question: String,
    asked: String,
    seed: Option<u64>,
) -> Result<OwnedBrief, Error> {
    let remembered = match (layout, config.deliberation.memory.long_term) {
        (Some(layout), true) => memory::read(layout)?,
        _ => Default::default(),
    };
    let (marks, marks_fault) = marks();
    Ok(OwnedBrief {
        question,
        asked,
        members: Vec::new(),
        rest: Brief {
            seed: seed.unwrap_or_else(clock_seed),
            seeded: seed.is_some(),
            personas: layout.map(memory::roles).transpose()?.unwrap_or_default(),
            background: remembered.background(),
            marks,
            marks_fault,
            ..Brief::default()
        },
    })
}

/// Returns the user's marks, or why they are not used: an unreadable file must not prevent asking.
pub(in crate::run) fn marks() -> (Arc<[Mark]>, Option<String>) {
    match kd_sql::marks::read(&user_dirs()) {
        Ok(marks) => (marks.into(), None),
        Err(error) => (Arc::default(), Some(error.to_string())),
    }
}

/// Plans by rules, where a planner's work could not be shown. `members` are the candidates; empty means as configured.
pub(in crate::run) fn plan(
    config: &Config,
    layout: Option<&Layout>,
    question: &str,
    members: &[String],
) -> Result<Planned, Error> {
    let mut brief = brief(config, layout, question.into(), question.into(), None)?;
    brief.members = members.to_vec();
    brief.rest.all_sit = !members.is_empty();
    let mut planned = planner::plan(config, &brief.brief())?;
    let mode = config.deliberation.meta.planning_mode;
    if planner::wants_model(mode, question) && config.deliberation.council.members.is_none() {
        let notice = "rules planned this council: members plan in `kd deliberate` only";
        planned.notices.push(notice.into());
    }
    Ok(planned)
}

/// Returns the machine that carries out a plan in a thread, with its members. It begins with [`say`].
pub(in crate::run) fn opening(
    config: &Config,
    planned: Planned,
    thread: &Thread,
) -> Result<Opening, Error> {
    let messages = u32::try_from(thread.messages()?.messages.len()).unwrap_or(u32::MAX);
    let Planned { plan, notices } = planned;
    let seats = plan.seats.iter().map(|s| s.member.clone()).collect();
    let preamble = config
        .council
        .preamble
        .clone()
        .unwrap_or_else(|| PREAMBLE.trim().to_owned());
    let (machine, opened) = Deliberation::open(plan, notices, preamble, messages);
    Ok(Opening {
        id: thread.id().clone(),
        machine: Box::new(machine),
        opened,
        seats,
    })
}

/// Returns the op that starts it: the plan's question.
pub(in crate::run) fn say(plan: &Plan) -> Op {
    Op::Say {
        body: plan.question.clone(),
        to: kd_core::Address::All,
    }
}

/// Returns all members of a plan, for preparing their models.
pub(in crate::run) fn roster(plan: &Plan) -> Roster {
    Roster::new(plan.seats.iter().map(|s| s.member.clone()).collect(), None)
}

/// Returns a seed when the user gave none; it is recorded, so the run can be replayed.
fn clock_seed() -> u64 {
    // Integers that every JSON parser represents exactly.
    Timestamp::now().as_nanosecond() as u64 & ((1 << 53) - 1)
}
