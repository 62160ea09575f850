//! Motions: proposed, voted on, decided at the end of voting, confirmed or rejected by a person, in force until undone.
//! Every step is announced in the motion's own thread.

use super::db::{self, Db, args, first_int, new_id};
use super::elected::{store, stored};
use super::error::ForumError;
use super::order::{self, Behind};
use super::posts::{self, NewPost};
use super::rows::{self, motions::SELECT};
use super::sight::Sight;
use super::{ForumStore, accounts, cycles};
use jiff::Timestamp;
use kd_core::config::forum::{self, Settings};
use kd_forum::CLERK;
use kd_forum::account::Right;
use kd_forum::account::{Kind, Status};
use kd_forum::governance::{self, CastVote, Change, Electorate, Motion, MotionState};
use kd_forum::order::{Entry, Order, Target};
use kd_forum::words::Choice;
use kd_forum::words::MotionKind;

fn votes(db: &mut Db, id: i64) -> Result<Vec<CastVote>, ForumError> {
    let rows = db.rows("SELECT motion_id, agent, choice, reason, at FROM votes WHERE motion_id = $1 ORDER BY agent", args![id])?;
    let mut votes = Vec::with_capacity(rows.len());
    for row in &rows {
        // A choice that kd does not know counts for nothing.
        if let Some(choice) = Choice::parse(&row.text(2)?) {
            votes.push(CastVote {
                motion_id: row.int(0)?,
                agent: row.line(1)?,
                choice,
                reason: row.text(3)?,
                at: row.time(4)?,
            });
        }
    }
    Ok(votes)
}

/// Returns whether the thread of a motion is hidden, and the motion with it.
fn is_hidden(db: &mut Db, motion: &Motion) -> Result<bool, ForumError> {
    let Some(thread) = motion.thread_id else {
        return Ok(false);
    };
    Ok(rows::threads::find(db, thread)?.hidden_at.is_some())
}

/// Returns every motion with its votes.
pub(super) fn all(db: &mut Db) -> Result<Vec<(Motion, Vec<CastVote>)>, ForumError> {
    let motions: Vec<Motion> = db
        .rows(&format!("{SELECT} ORDER BY id"), &[])?
        .iter()
        .map(rows::motions::motion)
        .collect::<Result<_, _>>()?;
    motions
        .into_iter()
        .map(|motion| Ok((motion.clone(), votes(db, motion.id)?)))
        .collect()
}

/// Returns the accounts that may vote on a motion: those registered when it was proposed. Empty for a motion from
/// before accounts existed: its votes cannot be attributed.
fn electorate(db: &mut Db, motion: &Motion) -> Result<Electorate, ForumError> {
    let rows = db.rows(
        "SELECT e.name, COALESCE(m.kind, 'guest') FROM electorate e LEFT JOIN members m ON m.forum = $1 AND m.name = e.name \
         WHERE e.motion_id = $2",
        args![motion.forum.as_str(), motion.id],
    )?;
    let electors = rows.iter().map(|row| {
        let kind = Kind::parse(&row.text(1)?).unwrap_or(Kind::Guest);
        Ok((row.line(0)?, kind))
    });
    electors.collect()
}

/// Records who may vote on a motion.
fn call_electorate(db: &mut Db, forum: &str, id: i64) -> Result<(), ForumError> {
    for account in accounts::all(db, Some(forum))? {
        if account.is_elector() {
            db.run(
                "INSERT INTO electorate (motion_id, name) VALUES ($1, $2)",
                args![id, account.name],
            )?;
        }
    }
    Ok(())
}

/// A proposed motion, as text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proposal<'a> {
    pub(super) kind: MotionKind,
    pub(super) key: Option<&'a str>,
    pub(super) value: Option<&'a str>,
    pub(super) title: &'a str,
    pub(super) reason: &'a str,
}

/// Rejects a motion equal to an existing one, and one of a proposer who has reached the limit.
fn check_pace(
    db: &mut Db,
    forum: &str,
    settings: &Settings,
    what: &Proposal<'_>,
    fields: &governance::Fields,
    proposer: &str,
) -> Result<(), ForumError> {
    let refused = |why: String| Err(ForumError::Invalid(why));
    let cycle = cycles::last_number(db, forum)?;
    // Motions that are open, and those that failed recently.
    let since = cycle.saturating_sub(i64::from(settings.voting_cycles));
    let sql = format!(
        "{SELECT} WHERE forum = $1 AND (state = 'open' OR (state IN ('passed', 'rejected', 'no_quorum', 'vetoed') AND closes_after > $2)) \
         ORDER BY id"
    );
    let recent = db.rows(&sql, args![forum, since])?;
    let recent: Vec<Motion> = recent
        .iter()
        .map(rows::motions::motion)
        .collect::<Result<_, _>>()?;
    let (key, value) = (fields.key.as_deref(), fields.value.as_deref());
    let wanted = (what.kind, key, value, what.title);
    let like = |m: &&Motion| {
        let (key, value) = (m.key.as_deref(), m.value.as_deref());
        governance::is_same(wanted, (m.kind, key, value, &m.title))
    };
    match recent.iter().find(like) {
        Some(other) if other.state == MotionState::Open => {
            return refused(format!(
                "motion {} asks for the same and is open: vote on it",
                other.id
            ));
        }
        Some(other) if other.state == MotionState::Passed => {
            return refused(format!(
                "motion {} asks for the same, passed and waits for a person",
                other.id
            ));
        }
        Some(other) => {
            let again = other.closes_after + i64::from(settings.voting_cycles);
            return refused(format!(
                "motion {} asked for the same and failed: it can be moved again after cycle {again}",
                other.id
            ));
        }
        None => {}
    }
    let open: Vec<String> = recent
        .iter()
        .filter(|m| m.state == MotionState::Open && m.proposer == proposer)
        .map(|m| m.id.to_string())
        .collect();
    if open.len() >= governance::MOTIONS_OPEN {
        return refused(format!(
            "you have {} open motions ({}): wait until one is decided",
            open.len(),
            open.join(", ")
        ));
    }
    let moved = db.row(
        "SELECT COUNT(*) FROM motions WHERE forum = $1 AND proposer = $2 AND created_at >= \
         (SELECT COALESCE(MAX(started_at), 0) FROM cycles WHERE forum = $1 AND number > 0)",
        args![forum, proposer],
    )?;
    if first_int(moved)?.is_some_and(|n| n >= governance::MOTIONS_PER_CYCLE) {
        return refused("you moved a motion in this cycle: wait for the next one".into());
    }
    Ok(())
}

/// Returns the order that would undo a motion, with the entry that it reverts; `None` for motions without an order.
fn undoing(db: &mut Db, motion: &Motion) -> Result<Option<(Entry, Order)>, ForumError> {
    if !matches!(motion.change(), Change::Order(_)) {
        return Ok(None);
    }
    let entry = order::of_motion(db, motion.id)?;
    Ok(entry.map(|entry| {
        let back = entry.back();
        (entry, back)
    }))
}

/// Describes the exact effect of a change and the current value; empty if there is no change.
///
/// # Errors
/// It would change nothing, or members may not propose it.
fn wants(
    db: &mut Db,
    (forum, own): (&str, bool),
    configured: &Settings,
    change: &Change,
) -> Result<String, ForumError> {
    let invalid = |why: String| Err(ForumError::Invalid(why));
    let set = |db: &mut Db, key: &str, value: &str| {
        let now = in_force(db, own, forum, configured)?;
        let now = now.get(key).unwrap_or_default();
        let why = changes_nothing(db, forum, configured, key, value)?;
        Ok::<_, ForumError>((why, format!("`{key}` = `{value}`, now `{now}`")))
    };
    match change {
        Change::Nothing => Ok(String::new()),
        Change::Order(order) => order::wants(db, forum, order),
        Change::Set(key, value) => match set(db, key, value)? {
            (Some(why), _) => invalid(format!("the motion changes nothing: {why}")),
            (None, words) => Ok(words),
        },
        Change::Undo(id) => {
            let target = rows::motions::find(db, *id)?;
            if target.forum != forum {
                return Err(ForumError::Missing {
                    what: "motion",
                    id: *id,
                });
            }
            if target.state != MotionState::InForce {
                return invalid(format!(
                    "motion {id} is not in force: it is {}",
                    target.state.word()
                ));
            }
            if target.kind == MotionKind::Undo {
                return invalid(format!(
                    "motion {id} is an undo: move what it undid instead"
                ));
            }
            if let Some((entry, back)) = undoing(db, &target)? {
                order::check_current(db, forum, &entry)?;
                let words = order::wants(db, forum, &back)?;
                return Ok(format!("undo motion {id}: {words}"));
            }
            let before = target.key.as_deref().zip(target.before.as_deref());
            match before.map(|(key, value)| set(db, key, value)).transpose()? {
                Some((Some(why), _)) => {
                    invalid(format!("undoing motion {id} changes nothing: {why}"))
                }
                Some((None, words)) => Ok(format!("undo motion {id}: {words}")),
                None => Ok(format!("undo motion {id}")),
            }
        }
    }
}

/// Opens a motion. `configured` are the settings without the changes by motions and without those of a command.
pub(super) fn propose(
    db: &mut Db,
    (forum, own): (&str, bool),
    configured: &Settings,
    what: Proposal<'_>,
    post: &NewPost<'_>,
    now: Timestamp,
) -> Result<Motion, ForumError> {
    let stored = in_force(db, true, forum, configured)?;
    let fields = governance::check(&stored, what.kind, what.key, what.value)
        .map_err(|e| ForumError::Invalid(e.0))?;
    let change = Change::of(what.kind, fields.key.as_deref(), fields.value.as_deref());
    let wants = match wants(db, (forum, own), configured, &change)? {
        wants if wants.is_empty() => wants,
        wants => format!("\n\nWants: {wants}."),
    };
    check_pace(db, forum, configured, &what, &fields, post.author)?;
    let closes =
        cycles::last_number(db, forum)?.saturating_add(i64::from(configured.voting_cycles));
    let row = db.row(
        "INSERT INTO motions (forum, kind, key, value, title, reason, proposer, created_at, closes_after, state, outcome) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '') RETURNING id",
        args![
            forum, what.kind.word(), fields.key, fields.value, what.title, what.reason, post.author, now, closes, MotionState::Open.word()
        ],
    )?;
    let id = new_id(row)?;
    call_electorate(db, forum, id)?;
    let title = format!("Motion {id}: {}", what.title);
    let body = format!(
        "{}{wants}\n\nVotes are taken until the end of cycle {closes}.",
        what.reason
    );
    let row = db.row(
        "INSERT INTO threads (forum, title, author, created_at, updated_at, post_count, last_author, last_post_id) \
         VALUES ($1, $2, $3, $4, $4, 0, $3, 0) RETURNING id",
        args![forum, title.as_str(), post.author, now],
    )?;
    let thread = new_id(row)?;
    posts::add(
        db,
        thread,
        Some(&title),
        &NewPost {
            body: &body,
            ..*post
        },
        now,
    )?;
    db.run(
        "UPDATE motions SET thread_id = $1 WHERE id = $2",
        args![thread, id],
    )?;
    rows::motions::find(db, id)
}

/// Rejects a motion that is not visible.
pub(super) fn check_shown(db: &mut Db, sight: Sight, id: i64) -> Result<(), ForumError> {
    let motion = rows::motions::find(db, id)?;
    match sight == Sight::Public && is_hidden(db, &motion)? {
        true => Err(ForumError::Missing { what: "motion", id }),
        false => Ok(()),
    }
}

pub(super) fn vote(
    db: &mut Db,
    forum: &str,
    id: i64,
    agent: &str,
    choice: Choice,
    reason: &str,
    now: Timestamp,
) -> Result<Motion, ForumError> {
    let motion = rows::motions::find(db, id)?;
    if motion.forum != forum {
        return Err(ForumError::Missing { what: "motion", id });
    }
    if motion.state != MotionState::Open {
        return Err(ForumError::Invalid(format!(
            "motion {id} is not open: it is {}",
            motion.state.word()
        )));
    }
    let active = accounts::find(db, forum, agent)?.is_some_and(|a| a.status == Status::Active);
    if !active || !electorate(db, &motion)?.contains_key(agent) {
        return Err(ForumError::Forbidden(format!(
            "`{agent}` has no vote on motion {id}: only members who had a vote when it was moved can vote on it"
        )));
    }
    db.run(
        "INSERT INTO votes (motion_id, agent, choice, reason, at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (motion_id, agent) \
         DO UPDATE SET choice = excluded.choice, reason = excluded.reason, at = excluded.at",
        args![id, agent, choice.word(), reason, now],
    )?;
    Ok(motion)
}

/// Posts a message in the motion's thread, in the forum's name.
fn tell(db: &mut Db, motion: &Motion, text: &str, now: Timestamp) -> Result<(), ForumError> {
    if let Some(thread) = motion.thread_id {
        db::lock(db, &motion.forum)?;
        posts::add(
            db,
            thread,
            None,
            &NewPost {
                author: CLERK,
                body: text,
                ..NewPost::default()
            },
            now,
        )?;
    }
    Ok(())
}

/// The first words state the result, so that readers do not have to know the voting rule.
fn verdict(state: MotionState, outcome: &str) -> String {
    match state {
        MotionState::Passed => {
            format!("The motion passed: {outcome}. It waits for a person to confirm it.")
        }
        MotionState::NoQuorum => {
            format!("The motion failed, because too few voted: {outcome}.")
        }
        _ => format!("The motion failed: {outcome}."),
    }
}

/// Returns why a motion needs a person although its kind does not.
fn why_person(
    db: &mut Db,
    settings: &Settings,
    motion: &Motion,
) -> Result<Option<String>, ForumError> {
    if is_hidden(db, motion)? {
        return Ok(Some("it is hidden".into()));
    }
    let forum = motion.forum.as_str();
    let set = |key: &str, value: &str| Ok(governance::why_person(settings, key, value));
    let why = match motion.change() {
        Change::Nothing => Ok(None),
        Change::Set(key, value) => set(&key, &value),
        Change::Order(order) => order::why_person(db, forum, &order),
        Change::Undo(id) => {
            let target = rows::motions::find(db, id)?;
            match (undoing(db, &target)?, target.key.zip(target.before)) {
                (Some((_, back)), _) => order::why_person(db, forum, &back),
                (None, Some((key, before))) => set(&key, &before),
                (None, None) => Ok(None),
            }
        }
    };
    match why {
        // Its target is gone: nothing happens without a person.
        Err(error) if error.is_refusal() => Ok(Some(error.to_string())),
        why => why,
    }
}

/// Puts a motion in force: sets its parameter, executes its order, or reverts the undone motion. `by` is the person who
/// confirmed it, or the forum itself. A motion that cannot take effect is rejected.
fn enforce(
    db: &mut Db,
    own: bool,
    by: &str,
    motion: &Motion,
    settings: &Settings,
    outcome: &str,
    now: Timestamp,
) -> Result<(), ForumError> {
    let told = match put_in_force(db, own, by, motion, settings, now) {
        Err(error) if error.is_refusal() => {
            let why = error.to_string();
            rows::motions::set_state(db, motion.id, MotionState::Rejected, &why)?;
            let told = format!("The motion changes nothing: {why}.");
            return tell(db, motion, &told, now);
        }
        told => told?,
    };
    if let Change::Undo(id) = motion.change() {
        let outcome = rows::motions::find(db, id)?.outcome;
        rows::motions::set_state(db, id, MotionState::Undone, &outcome)?;
    }
    rows::motions::set_state(db, motion.id, MotionState::InForce, outcome)?;
    tell(db, motion, &format!("In force: {outcome}.{told}"), now)
}

/// Makes the change of a motion and describes it. All refusals come before the first write.
fn put_in_force(
    db: &mut Db,
    own: bool,
    by: &str,
    motion: &Motion,
    settings: &Settings,
    now: Timestamp,
) -> Result<String, ForumError> {
    let reason = &motion.reason;
    let behind = Behind {
        reason,
        motion: Some(motion.id),
        undoes: None,
    };
    let entry = match motion.change() {
        Change::Nothing => return Ok(String::new()),
        Change::Set(key, value) => {
            let to = (key.as_str(), value.as_str());
            return set(db, own, by, motion, settings, to, None, now);
        }
        Change::Order(order) => order::carry_out(db, &motion.forum, by, &order, behind, now)?,
        Change::Undo(id) => {
            let target = rows::motions::find(db, id)?;
            if target.state != MotionState::InForce {
                return Err(ForumError::Invalid(format!(
                    "motion {id} is no longer in force"
                )));
            }
            match (undoing(db, &target)?, target.key.zip(target.before)) {
                (Some((entry, _)), _) => order::undo(db, &motion.forum, by, entry.id, behind, now)?,
                (None, Some((key, before))) => {
                    let to = (key.as_str(), before.as_str());
                    let undoes = order::of_motion(db, target.id)?.map(|entry| entry.id);
                    return set(db, own, by, motion, settings, to, undoes, now);
                }
                (None, None) => return Ok(String::new()),
            }
        }
    };
    db.run(
        "UPDATE motions SET before = $1 WHERE id = $2",
        args![entry.before.as_str(), motion.id],
    )?;
    Ok(format!(" {}", entry.line()))
}

/// Sets a parameter for a motion, stores the entry, and describes the change.
#[expect(clippy::too_many_arguments, reason = "the parts of one entry")]
fn set(
    db: &mut Db,
    own: bool,
    by: &str,
    motion: &Motion,
    settings: &Settings,
    (key, value): (&str, &str),
    undoes: Option<i64>,
    now: Timestamp,
) -> Result<String, ForumError> {
    let reason = kd_forum::order::reason(&motion.reason)?;
    let was = stored(db, &motion.forum, key)?;
    let before = in_force(db, own, &motion.forum, settings)?
        .get(key)
        .unwrap_or_default();
    if let Some(why) = changes_nothing(db, &motion.forum, settings, key, value)? {
        return Err(ForumError::Invalid(why));
    }
    // Replaces what set the same parameter before.
    db.run(
        "UPDATE motions SET state = $1 WHERE forum = $2 AND key = $3 AND state = $4 AND id <> $5 \
         AND kind IN ('set', 'scheduler')",
        args![
            MotionState::Undone.word(),
            motion.forum.as_str(),
            key,
            MotionState::InForce.word(),
            motion.id
        ],
    )?;
    store(db, &motion.forum, key, value, Some(motion.id))?;
    let entry = Entry {
        id: 0,
        forum: motion.forum.clone(),
        at: now,
        by: by.to_owned(),
        target: Target::Setting(key.to_owned()),
        before: was,
        after: value.to_owned(),
        reason,
        motion_id: Some(motion.id),
        undoes,
    };
    order::enter(db, entry)?;
    db.run(
        "UPDATE motions SET before = $1 WHERE id = $2",
        args![before.as_str(), motion.id],
    )?;
    Ok(format!(
        " `{key}` was `{before}` and is `{value}`. Reason: {}",
        motion.reason
    ))
}

/// Returns why a motion for this value would change nothing; `None` if it would change something. Elected values count
/// here even while they are held back: the row is what changes.
fn changes_nothing(
    db: &mut Db,
    forum: &str,
    settings: &Settings,
    key: &str,
    value: &str,
) -> Result<Option<String>, ForumError> {
    let now = in_force(db, true, forum, settings)?;
    let mut then = now.clone();
    // An invalid value is rejected elsewhere, with its reason.
    if then.set(key, value).is_err() || then.get(key) != now.get(key) {
        return Ok(None);
    }
    let value = now.get(key).unwrap_or_default();
    Ok(Some(format!("`{key}` is `{value}` already")))
}

/// Checks that the decider is a person whose role may decide motions. An agent may have a high role, but is not a person.
fn check_decider(db: &mut Db, motion: &Motion, by: &str) -> Result<(), ForumError> {
    let role = order::giver(db, &motion.forum, by)?;
    let kind = accounts::find(db, &motion.forum, by)?.map_or(Kind::Person, |account| account.kind);
    if kind != Kind::Person || !role.has(Right::Decide) {
        return Err(ForumError::Forbidden(format!(
            "`{by}` may not decide motions: that is for people with the role owner"
        )));
    }
    Ok(())
}

/// Returns the settings that agents may change by motion. How motions are decided is only for people: a row that says
/// otherwise was planted, and does not count.
fn elected(
    db: &mut Db,
    forum: &str,
) -> Result<Vec<(&'static forum::Parameter, String)>, ForumError> {
    let rows = db.rows(
        "SELECT key, value FROM settings WHERE forum = $1 ORDER BY key",
        args![forum],
    )?;
    let mut elected = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(parameter) = forum::find(&row.text(0)?).filter(|p| p.votable) {
            elected.push((parameter, row.line(1)?));
        }
    }
    Ok(elected)
}

/// Returns the settings with the changes by motions; in a foreign store, only changes that save calls.
fn in_force(
    db: &mut Db,
    own: bool,
    forum: &str,
    settings: &Settings,
) -> Result<Settings, ForumError> {
    let pairs: Vec<(&str, String)> = elected(db, forum)?
        .into_iter()
        .filter(|(parameter, value)| own || parameter.foreign_may(settings, value))
        .map(|(parameter, value)| (parameter.key, value))
        .collect();
    let mut next = settings.clone();
    if next
        .set_all(pairs.iter().map(|(k, v)| (*k, v.as_str())))
        .is_err()
    {
        // Under a newer configuration some settings may no longer be valid; the others still count.
        for (key, value) in &pairs {
            let _ = next.set(key, value);
        }
    }
    Ok(next)
}

impl ForumStore {
    /// Returns the configured settings with the changes by motions, narrowed by the rules of the forum.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn settings(&mut self, forum: &str, configured: &Settings) -> Result<Settings, ForumError> {
        let settings = in_force(&mut self.db, self.own, forum, configured)?;
        self.narrow(forum, &settings)
    }

    /// Returns elected settings that are not in effect because the store is foreign, with their values.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn held_back(
        &mut self,
        forum: &str,
        configured: &Settings,
    ) -> Result<Vec<(&'static str, String)>, ForumError> {
        if self.own {
            return Ok(Vec::new());
        }
        // A delay does not have to be valid together with the other configured one.
        let wide = Settings {
            delay_secs_min: 0.0,
            delay_secs_max: f64::MAX,
            ..configured.clone()
        };
        let fits = |key: &str, value: &str| wide.clone().set(key, value).is_ok();
        Ok(elected(&mut self.db, forum)?
            .into_iter()
            .filter(|(parameter, value)| {
                !parameter.foreign_may(configured, value)
                    && fits(parameter.key, value)
                    && configured.get(parameter.key).as_ref() != Some(value)
            })
            .map(|(parameter, value)| (parameter.key, value))
            .collect())
    }

    /// Returns the settings that motions changed in a forum, with their values.
    ///
    /// # Errors
    /// The database fails or is damaged.
    pub fn elected(&mut self, forum: &str) -> Result<Vec<(&'static str, String)>, ForumError> {
        let elected = elected(&mut self.db, forum)?;
        Ok(elected
            .into_iter()
            .map(|(parameter, value)| (parameter.key, value))
            .collect())
    }

    /// Returns the forums of this store in which motions changed settings.
    ///
    /// # Errors
    /// The database fails.
    pub fn elected_forums(&mut self) -> Result<Vec<String>, ForumError> {
        let rows = self
            .db
            .rows("SELECT DISTINCT forum FROM settings ORDER BY forum", &[])?;
        rows.iter().map(|row| row.line(0)).collect()
    }

    /// Returns motions of a forum: open ones first, then the newest.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn motions(&mut self, forum: &str, limit: i64) -> Result<Vec<Motion>, ForumError> {
        self.motions_for(Sight::All, forum, limit)
    }

    /// Like [`Self::motions`], as seen by a viewer: a motion is hidden with its thread.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn motions_for(
        &mut self,
        sight: Sight,
        forum: &str,
        limit: i64,
    ) -> Result<Vec<Motion>, ForumError> {
        let shown = match sight {
            Sight::All => "",
            Sight::Public => {
                " AND NOT EXISTS (SELECT 1 FROM threads t WHERE t.id = motions.thread_id AND t.hidden_at IS NOT NULL)"
            }
        };
        let sql = format!(
            "{SELECT} WHERE forum = $1{shown} ORDER BY CASE WHEN state = 'open' THEN 0 ELSE 1 END, id DESC LIMIT $2"
        );
        self.db
            .rows(&sql, args![forum, limit])?
            .iter()
            .map(rows::motions::motion)
            .collect()
    }

    /// Returns the names that may vote on a motion.
    ///
    /// # Errors
    /// [`ForumError::Missing`] if there is no such motion; also if the database fails or is damaged.
    pub fn electorate(&mut self, id: i64) -> Result<Vec<String>, ForumError> {
        let motion = rows::motions::find(&mut self.db, id)?;
        let electorate = electorate(&mut self.db, &motion)?;
        Ok(electorate.into_keys().collect())
    }

    /// Returns a motion and its votes.
    ///
    /// # Errors
    /// Those of [`Self::electorate`].
    pub fn motion(&mut self, id: i64) -> Result<(Motion, Vec<CastVote>), ForumError> {
        Ok((
            rows::motions::find(&mut self.db, id)?,
            votes(&mut self.db, id)?,
        ))
    }

    /// Decides the motions whose voting ended with a cycle, each by its own electorate. `settings` are those without the
    /// changes by motions: a motion compares with what is stored, never with the flags of the command that runs.
    ///
    /// # Errors
    /// If the database fails or is damaged. Nothing is decided then.
    pub fn decide_motions(
        &mut self,
        forum: &str,
        cycle: i64,
        settings: &Settings,
        now: Timestamp,
    ) -> Result<Vec<Motion>, ForumError> {
        let own = self.own;
        // Votes of a foreign store need a person's confirmation.
        let settings = &Settings {
            unconfirmed: if own {
                settings.unconfirmed.clone()
            } else {
                String::new()
            },
            ..settings.clone()
        };
        self.db.whole(|db| {
            let sql = format!(
                "{SELECT} WHERE forum = $1 AND state = 'open' AND closes_after <= $2 ORDER BY id"
            );
            let due: Vec<Motion> = db
                .rows(&sql, args![forum, cycle])?
                .iter()
                .map(rows::motions::motion)
                .collect::<Result<_, _>>()?;
            let mut decided = Vec::new();
            for motion in due {
                let votes = votes(db, motion.id)?;
                let electorate = electorate(db, &motion)?;
                // Includes the changes by the motions before this one.
                let now_in_force = in_force(db, own, forum, settings)?;
                let why = why_person(db, &now_in_force, &motion)?;
                let decision =
                    governance::decide(&now_in_force, &motion, &votes, &electorate, why.as_deref());
                match decision.state {
                    MotionState::InForce => {
                        enforce(db, own, CLERK, &motion, settings, &decision.outcome, now)?
                    }
                    state => {
                        rows::motions::set_state(db, motion.id, state, &decision.outcome)?;
                        tell(db, &motion, &verdict(state, &decision.outcome), now)?;
                    }
                }
                decided.push(rows::motions::find(db, motion.id)?);
            }
            Ok(decided)
        })
    }

    /// Confirms, as a person, a motion that passed.
    ///
    /// # Errors
    /// `by` is not a person whose role may decide motions, or the motion did not pass.
    pub fn confirm_motion(
        &mut self,
        id: i64,
        by: &str,
        settings: &Settings,
        now: Timestamp,
    ) -> Result<Motion, ForumError> {
        let own = self.own;
        self.db.whole(|db| {
            let motion = rows::motions::find(db, id)?;
            check_decider(db, &motion, by)?;
            if motion.state != MotionState::Passed {
                return Err(ForumError::Invalid(match motion.state {
                    MotionState::InForce => format!("motion {id} is in force already"),
                    MotionState::Open => format!("motion {id} is still open for votes"),
                    state => format!(
                        "motion {id} is {}: only a motion that passed can be confirmed",
                        state.word()
                    ),
                }));
            }
            enforce(
                db,
                own,
                by,
                &motion,
                settings,
                &format!("{}; confirmed by {by}", motion.outcome),
                now,
            )?;
            rows::motions::find(db, id)
        })
    }

    /// Rejects, as a person, a motion that is open or passed.
    ///
    /// # Errors
    /// `by` is not a person whose role may decide motions, or the motion is decided.
    pub fn veto_motion(
        &mut self,
        id: i64,
        by: &str,
        reason: &str,
        now: Timestamp,
    ) -> Result<Motion, ForumError> {
        let reason = kd_forum::order::reason(&self.masking.mask(reason).0)?;
        self.db.whole(|db| {
            let motion = rows::motions::find(db, id)?;
            check_decider(db, &motion, by)?;
            if !matches!(motion.state, MotionState::Open | MotionState::Passed) {
                let back = match (motion.state, order::of_motion(db, id)?) {
                    (MotionState::InForce, Some(entry)) => {
                        format!("`kd forum undo {}` undoes it", entry.id)
                    }
                    (MotionState::InForce, None) => "another motion can undo it".to_owned(),
                    _ => "it is decided".to_owned(),
                };
                return Err(ForumError::Invalid(format!(
                    "motion {id} is {}: {back}",
                    motion.state.word()
                )));
            }
            rows::motions::set_state(
                db,
                id,
                MotionState::Vetoed,
                &format!("refused by {by}: {reason}"),
            )?;
            tell(
                db,
                &motion,
                &format!("Refused by {by}. Reason: {reason}"),
                now,
            )?;
            rows::motions::find(db, id)
        })
    }
}
