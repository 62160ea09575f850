//! A forum as a web page: collects what `kd_page` renders, writes what the user writes there, and carries out
//! what the user decides about motions.

use super::{ForumError, ForumStore};
use crate::host::{InForum, OnMotion, Placed};
use kd_core::config::forum::Settings;
use kd_core::names::KING;
use kd_forum::fairness::{Look, Table};
use kd_forum::governance::{CastVote, MotionState};
use kd_forum::order::Target;
use kd_forum::proposal::{FORMS, Proposal};
use kd_forum::words::{self, Outcome};
use kd_page::{Cycle, Fairness, Forum, May, Member, Motion, Order, Post, Row, Topic, Vote, You};
use kd_sql::forum::{CallSettings, Caller};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Maximum motions, threads, orders, and cycles whose fairness is tested.
const LISTED: i64 = 100;
/// Maximum posts of a thread.
const POSTS: i64 = 500;

/// Reads a forum as its owner sees it.
///
/// # Errors
/// If the store fails.
pub fn read(store: &mut ForumStore, name: &str) -> Result<Forum, ForumError> {
    let mut motions = Vec::new();
    for motion in store.motions(name, LISTED)? {
        let (motion, votes) = store.motion(motion.id)?;
        let may = may(store, &motion)?;
        motions.push(shown_motion(motion, votes, may));
    }
    let threads = store.threads(name, LISTED)?;
    let members = store.members(name)?;
    let orders = store.orders(name, LISTED)?;
    let table = store.fairness(name, Some(LISTED), Look::Running)?;
    let forms = FORMS.split(", ").map(|form| form.trim_start_matches("or "));
    let you = members.iter().find(|one| one.name == KING);
    Ok(Forum {
        you: You {
            name: KING.to_owned(),
            // Whoever runs the forum owns it, and is a member from the first post on.
            role: you.map_or("owner", |you| you.role.word()).to_owned(),
            votes: you.is_some_and(|you| you.is_elector()),
        },
        forms: forms.map(str::to_owned).collect(),
        name: name.to_owned(),
        charter: store.charter(name)?,
        cycle: cycle(store, name)?,
        motions,
        threads: threads.into_iter().map(topic).collect(),
        members: members
            .into_iter()
            .map(|one| Member {
                kind: one.kind.word().to_owned(),
                role: one.role.word().to_owned(),
                status: one.status.word().to_owned(),
                votes: one.is_elector(),
                joined: one.joined_at,
                name: one.name,
            })
            .collect(),
        fairness: (table.cycles > 0).then(|| fairness(&table)),
        orders: orders
            .into_iter()
            .map(|entry| Order {
                at: entry.at,
                what: entry.what(),
                by: entry.by,
                reason: entry.reason,
            })
            .collect(),
    })
}

/// Reads a thread of a forum as its owner sees it: its posts, and whether there are more.
///
/// # Errors
/// [`ForumError::Missing`] if the forum has no such thread; also if the store fails.
pub fn read_thread(
    store: &mut ForumStore,
    forum: &str,
    id: i64,
) -> Result<(Topic, Vec<Post>, bool), ForumError> {
    let (thread, mut posts) = store.thread(id, 0, POSTS + 1)?;
    if thread.forum != forum {
        return Err(ForumError::Missing { what: "thread", id });
    }
    let more = posts.len() as i64 > POSTS;
    posts.truncate(POSTS as usize);
    let mut shown = Vec::new();
    for post in posts {
        shown.push(Post {
            id: post.id,
            at: post.created_at,
            fate: fate(store, forum, &post)?,
            quotes: post.quote_post_id.zip(post.quoted_author),
            author: post.author,
            body: post.body,
        });
    }
    Ok((topic(thread), shown, more))
}

/// Carries out the user's decision on a motion.
///
/// # Errors
/// If the forum refuses it, or the store fails.
pub fn decide(
    store: &mut ForumStore,
    (forum, configured): (&str, &Settings),
    motion: i64,
    decision: &OnMotion,
) -> Result<(), ForumError> {
    let now = kd_core::Timestamp::now();
    let (of, _) = store.motion(motion)?;
    if of.forum != forum {
        return Err(ForumError::Missing {
            what: "motion",
            id: motion,
        });
    }
    match decision {
        OnMotion::Vote(choice, reason) => {
            let arguments = json!({"motion_id": motion, "choice": choice, "reason": reason});
            act(store, (forum, configured), "vote", &arguments)?;
        }
        OnMotion::Confirm => {
            store.confirm_motion(motion, KING, configured, now)?;
        }
        OnMotion::Refuse(reason) => {
            store.veto_motion(motion, KING, reason, now)?;
        }
    }
    Ok(())
}

/// Writes in a forum under the user's own name.
///
/// # Errors
/// If the forum refuses it, or the store fails.
pub fn write(
    store: &mut ForumStore,
    (forum, configured): (&str, &Settings),
    what: &InForum,
) -> Result<Placed, ForumError> {
    let (tool, arguments) = match what {
        InForum::Thread(title, body) => ("create_thread", json!({"title": title, "body": body})),
        InForum::Reply(thread, body, quote) => (
            "reply_to_thread",
            json!({"thread_id": thread, "body": body, "quote_post_id": quote}),
        ),
        InForum::Motion(what, reason) => {
            let wish = Proposal::parse(what)?;
            let arguments = json!({
                "kind": wish.kind.word(), "key": wish.key, "value": wish.value,
                "title": wish.title, "reason": reason,
            });
            ("propose", arguments)
        }
    };
    let answer = act(store, (forum, configured), tool, &arguments)?;
    let thread = match what {
        InForum::Reply(thread, ..) => Some(*thread),
        InForum::Thread(..) | InForum::Motion(..) => answer["thread_id"].as_i64(),
    };
    Ok(Placed {
        thread: thread.unwrap_or_default(),
        post: answer["post_id"].as_i64(),
        masked: answer["masked"].as_str().map(str::to_owned),
    })
}

/// Calls a tool of the forum as the user; a refusal is an error.
fn act(
    store: &mut ForumStore,
    (forum, configured): (&str, &Settings),
    tool: &str,
    arguments: &Value,
) -> Result<Value, ForumError> {
    let caller = Caller::person(KING, forum)?;
    let settings = store.settings(forum, configured)?;
    let terms = CallSettings {
        run: &settings,
        configured,
    };
    let answer = store.call(&caller, terms, tool, arguments, kd_core::Timestamp::now())?;
    match answer["success"] == true {
        true => Ok(answer),
        false => {
            let why = answer["error"].as_str().unwrap_or("the forum refused it");
            Err(ForumError::Invalid(why.to_owned()))
        }
    }
}

fn may(store: &mut ForumStore, motion: &kd_forum::governance::Motion) -> Result<May, ForumError> {
    Ok(match motion.state {
        MotionState::Open => {
            let voters = store.electorate(motion.id)?;
            match voters.iter().any(|name| name == KING) {
                true => May::Vote,
                false => May::Refuse,
            }
        }
        MotionState::Passed => May::Confirm,
        MotionState::Rejected
        | MotionState::NoQuorum
        | MotionState::Vetoed
        | MotionState::InForce
        | MotionState::Undone => May::Nothing,
    })
}

fn shown_motion(motion: kd_forum::governance::Motion, votes: Vec<CastVote>, may: May) -> Motion {
    let state = match motion.state {
        MotionState::Open => format!("open until the end of cycle {}", motion.closes_after),
        MotionState::Passed => "passed, waits for you to confirm it".to_owned(),
        MotionState::NoQuorum => "failed: too few voted".to_owned(),
        MotionState::Vetoed => "refused by a person".to_owned(),
        MotionState::Rejected => "rejected".to_owned(),
        MotionState::InForce => "in force".to_owned(),
        MotionState::Undone => "undone".to_owned(),
    };
    Motion {
        id: motion.id,
        wants: motion.change().words(),
        title: motion.title,
        thread: motion.thread_id,
        state,
        proposer: motion.proposer,
        reason: motion.reason,
        outcome: motion.outcome,
        may,
        votes: votes
            .into_iter()
            .map(|vote| Vote {
                who: vote.agent,
                choice: vote.choice.word().to_owned(),
                reason: vote.reason,
            })
            .collect(),
    }
}

fn topic(thread: words::Thread) -> Topic {
    Topic {
        id: thread.id,
        posts: thread.post_count,
        updated: thread.updated_at,
        is_hidden: thread.hidden_at.is_some(),
        is_closed: thread.closed_at.is_some(),
        title: thread.title,
        author: thread.author,
    }
}

/// Describes the changes to a post since it was written.
fn fate(store: &mut ForumStore, forum: &str, post: &words::Post) -> Result<String, ForumError> {
    if post.deleted_at.is_some() {
        return Ok("deleted".to_owned());
    }
    if post.hidden_at.is_none() {
        return Ok(String::new());
    }
    let entries = store.orders_about(forum, &Target::Post(post.id))?;
    Ok(match entries.first() {
        Some(entry) => format!("hidden by {}: {}", entry.by, entry.reason),
        None => "hidden".to_owned(),
    })
}

/// Returns the running cycle, else the last one, as far as it is public.
fn cycle(store: &mut ForumStore, forum: &str) -> Result<Cycle, ForumError> {
    let Some(open) = store.open_cycle(forum)? else {
        return Ok(Cycle {
            number: store.last_cycle(forum)?,
            ..Cycle::default()
        });
    };
    let mut cycle = Cycle {
        number: open.number,
        is_running: true,
        ..Cycle::default()
    };
    let runs = store.runs_of(open.id)?;
    // By name: the order is secret.
    let mut rest: BTreeSet<String> = open
        .cards
        .candidates
        .iter()
        .map(|c| c.name.clone())
        .collect();
    for run in runs {
        rest.remove(&run.agent);
        match (run.outcome, run.reason) {
            (Outcome::Running, _) => cycle.speaking.push(run.agent),
            (outcome, Some(why)) => cycle
                .had
                .push((run.agent, format!("{}: {why}", outcome.word()))),
            (outcome, None) => cycle.had.push((run.agent, outcome.word().to_owned())),
        }
    }
    cycle.rest = rest.into_iter().collect();
    Ok(cycle)
}

fn fairness(table: &Table) -> Fairness {
    let rows = table.rows.iter().map(|row| Row {
        name: row.name.to_owned(),
        agent: row.agent.clone().unwrap_or_default(),
        value: row.value,
        entitled: row.entitled,
        p: row.p,
        line: row.line,
        pass: row.pass,
    });
    let shares = table.agents.iter();
    Fairness {
        cycles: table.cycles,
        rows: rows.collect(),
        shares: shares
            .map(|a| (a.agent.clone(), a.turns, a.turns_entitled))
            .collect(),
    }
}
