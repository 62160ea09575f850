//! Moderation: executes the orders that [`kd_forum::order`] allows, and stores each as an entry with who, when
//! and why, which can be undone.

use super::db::{self, Db, Row, args, first_int, new_id};
use super::error::ForumError;
use super::{ForumStore, accounts, company, elected, log, names, rows};
use jiff::Timestamp;
use kd_core::names::KING;
use kd_core::names::{GUEST, READER};
use kd_forum::CLERK;
use kd_forum::account::Right;
use kd_forum::account::{Account, Kind, Proof, Role, Status};
use kd_forum::governance::{Change, MotionState};
use kd_forum::logline::{LogEvent, LogLine};
use kd_forum::order::{self, Entry, Order, Subject, Target};
use kd_forum::rules;
use kd_store::forget::TOMBSTONE;
use std::collections::BTreeSet;

const SELECT: &str = "SELECT id, forum, at, actor, what, target, before, after, reason, motion_id, undoes FROM orders";

/// Reads an entry; `None` for one about a thing that `kd` does not know.
fn entry(row: &Row) -> Result<Option<Entry>, ForumError> {
    let number = || {
        row.word(5, "the number of a post or thread", |text| {
            text.parse().ok()
        })
    };
    let target = match row.text(4)?.as_str() {
        "post" => Target::Post(number()?),
        "thread" => Target::Thread(number()?),
        "status" => Target::Status(row.line(5)?),
        "role" => Target::Role(row.line(5)?),
        "votes" => Target::Votes(row.line(5)?),
        "rule" => Target::Rule(row.line(5)?),
        "charter" => Target::Charter(row.line(5)?),
        "setting" => Target::Setting(row.line(5)?),
        _ => return Ok(None),
    };
    Ok(Some(Entry {
        id: row.int(0)?,
        forum: row.line(1)?,
        at: row.time(2)?,
        by: row.line(3)?,
        target,
        before: row.text(6)?,
        after: row.text(7)?,
        reason: row.line(8)?,
        motion_id: row.maybe_int(9)?,
        undoes: row.maybe_int(10)?,
    }))
}

/// Returns a target's columns in the table.
fn words(target: &Target) -> (&'static str, String) {
    match target {
        Target::Post(id) => ("post", id.to_string()),
        Target::Thread(id) => ("thread", id.to_string()),
        Target::Status(name) => ("status", name.clone()),
        Target::Role(name) => ("role", name.clone()),
        Target::Votes(name) => ("votes", name.clone()),
        Target::Rule(key) => ("rule", key.clone()),
        Target::Charter(forum) => ("charter", forum.clone()),
        Target::Setting(key) => ("setting", key.clone()),
    }
}

fn find(db: &mut Db, id: i64) -> Result<Entry, ForumError> {
    let row = db.row(&format!("{SELECT} WHERE id = $1"), args![id])?;
    row.map_or(Ok(None), |row| entry(&row))?
        .ok_or(ForumError::Missing { what: "entry", id })
}

/// Returns every entry, of all forums.
pub(super) fn all(db: &mut Db) -> Result<Vec<Entry>, ForumError> {
    let rows = db.rows(&format!("{SELECT} ORDER BY id"), &[])?;
    rows.iter()
        .filter_map(|row| entry(row).transpose())
        .collect()
}

/// Stores an entry under a new number.
pub(super) fn keep(db: &mut Db, entry: &Entry) -> Result<i64, ForumError> {
    let (what, target) = words(&entry.target);
    let row = db.row(
        "INSERT INTO orders (forum, at, actor, what, target, before, after, reason, motion_id, undoes) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id",
        args![
            entry.forum.as_str(), entry.at, entry.by.as_str(), what, target, entry.before.as_str(),
            entry.after.as_str(), entry.reason.as_str(), entry.motion_id, entry.undoes
        ],
    )?;
    new_id(row)
}

/// Returns the role of the member that gives an order. The user of this machine needs no account.
pub(super) fn giver(db: &mut Db, forum: &str, by: &str) -> Result<Role, ForumError> {
    match accounts::find(db, forum, by)? {
        Some(account) if account.status == Status::Banned => Err(ForumError::Forbidden(format!(
            "`{by}` is banned here and may only read"
        ))),
        Some(account) => Ok(account.role),
        None if by == KING => Ok(Role::Owner),
        None => Err(ForumError::Forbidden(format!(
            "`{by}` is not a member of this forum"
        ))),
    }
}

/// Returns the account that an order is about. A name that wrote before accounts existed gets one.
fn member(db: &mut Db, forum: &str, name: &str, now: Timestamp) -> Result<Account, ForumError> {
    if let Some(account) = accounts::find(db, forum, name)? {
        return Ok(account);
    }
    let (kind, proof) = match name {
        KING => (Kind::Person, Proof::Owner),
        _ => (Kind::Agent, Proof::Nothing),
    };
    let wrote = db.row(
        "SELECT p.id FROM posts p JOIN threads t ON t.id = p.thread_id WHERE t.forum = $1 AND p.author = $2 LIMIT 1",
        args![forum, name],
    )?;
    if wrote.is_none() && name != KING || name == CLERK {
        return Err(ForumError::Invalid(format!(
            "there is no member `{name}`; `kd forum members` lists them"
        )));
    }
    accounts::join(db, &Account::new(forum, name, kind, proof, now))
}

fn in_forum(found: &str, forum: &str, what: &'static str, id: i64) -> Result<(), ForumError> {
    match found == forum {
        true => Ok(()),
        false => Err(ForumError::Missing { what, id }),
    }
}

/// Returns the current state of a target, and the role of the account that it concerns.
fn state(
    db: &mut Db,
    forum: &str,
    target: &Target,
    now: Timestamp,
) -> Result<(String, Option<Role>), ForumError> {
    let word = |yes: bool, words: (&str, &str)| if yes { words.0 } else { words.1 }.to_owned();
    Ok(match target {
        Target::Post(id) => {
            let post = rows::posts::find(db, *id)?;
            let thread = rows::threads::find(db, post.thread_id)?;
            in_forum(&thread.forum, forum, "post", *id)?;
            if post.deleted_at.is_some() {
                return Err(ForumError::Missing {
                    what: "post",
                    id: *id,
                });
            }
            (
                word(post.hidden_at.is_some(), (order::HIDDEN, order::SHOWN)),
                None,
            )
        }
        Target::Thread(id) => {
            let thread = rows::threads::find(db, *id)?;
            in_forum(&thread.forum, forum, "thread", *id)?;
            (
                word(thread.closed_at.is_some(), (order::CLOSED, order::OPEN)),
                None,
            )
        }
        Target::Status(name) => {
            let account = member(db, forum, name, now)?;
            (account.status.word().to_owned(), Some(account.role))
        }
        Target::Role(name) => {
            let account = member(db, forum, name, now)?;
            (account.role.word().to_owned(), Some(account.role))
        }
        Target::Votes(name) => {
            let account = member(db, forum, name, now)?;
            (word(account.votes, ("yes", "no")), Some(account.role))
        }
        Target::Rule(key) => {
            let rule = rules::find(key)?;
            let rules = super::rules::all(db, forum)?;
            (rules.value(rule).to_owned(), None)
        }
        Target::Charter(of) => {
            if of != forum {
                return Err(ForumError::Invalid(format!(
                    "a charter of the forum `{of}` is set there, not in `{forum}`"
                )));
            }
            (company::charter(db, forum)?, None)
        }
        Target::Setting(key) => (elected::stored(db, forum, key)?, None),
    })
}

/// Returns the newest entry about a target.
fn newest(db: &mut Db, forum: &str, target: &Target) -> Result<Option<Entry>, ForumError> {
    let (what, target) = words(target);
    let sql =
        format!("{SELECT} WHERE forum = $1 AND what = $2 AND target = $3 ORDER BY id DESC LIMIT 1");
    let row = db.row(&sql, args![forum, what, target])?;
    row.map_or(Ok(None), |row| entry(&row))
}

/// Returns the entry of a motion that gave an order.
pub(super) fn of_motion(db: &mut Db, motion: i64) -> Result<Option<Entry>, ForumError> {
    let sql = format!("{SELECT} WHERE motion_id = $1 AND undoes IS NULL ORDER BY id LIMIT 1");
    let row = db.row(&sql, args![motion])?;
    row.map_or(Ok(None), |row| entry(&row))
}

/// Returns the motions that changed a target.
pub(super) fn motions_about(
    db: &mut Db,
    forum: &str,
    target: &Target,
) -> Result<Vec<i64>, ForumError> {
    let (what, target) = words(target);
    let rows = db.rows(
        "SELECT DISTINCT motion_id FROM orders WHERE forum = $1 AND what = $2 AND target = $3 AND motion_id IS NOT NULL",
        args![forum, what, target],
    )?;
    rows.iter().map(|row| row.int(0)).collect()
}

/// Updates motions after an order: earlier ones that changed the same target are no longer in force, except one whose
/// order is restored.
fn follow(
    db: &mut Db,
    target: &Target,
    entry: &Entry,
    given_back: Option<i64>,
) -> Result<(), ForumError> {
    for id in motions_about(db, &entry.forum, target)? {
        let motion = rows::motions::find(db, id)?;
        let state = match given_back == Some(id) {
            true => MotionState::InForce,
            false => MotionState::Undone,
        };
        let had = matches!(motion.state, MotionState::InForce | MotionState::Undone);
        let changes = matches!(motion.change(), Change::Order(_) | Change::Set(..));
        if had && entry.motion_id != Some(id) && changes {
            rows::motions::set_state(db, id, state, &motion.outcome)?;
        }
    }
    Ok(())
}

/// Returns the members whose current status or role was set by a motion.
fn lowered_by_motions(db: &mut Db, forum: &str) -> Result<BTreeSet<String>, ForumError> {
    let rows = db.rows(
        "SELECT o.target FROM orders o WHERE o.forum = $1 AND o.what IN ('status', 'role') AND o.motion_id IS NOT NULL \
         AND NOT EXISTS (SELECT 1 FROM orders n WHERE n.forum = o.forum AND n.what = o.what AND n.target = o.target AND n.id > o.id)",
        args![forum],
    )?;
    rows.iter().map(|row| row.line(0)).collect()
}

/// Returns the data about the target of a motion's order.
fn subject(db: &mut Db, forum: &str, order: &Order) -> Result<Subject, ForumError> {
    let mut of = Subject::default();
    let motion = match &order.target {
        Target::Post(id) => {
            of.name = rows::posts::find(db, *id)?.author;
            db.row(
                "SELECT m.id FROM motions m JOIN posts p ON p.thread_id = m.thread_id WHERE p.id = $1 \
                 AND p.id = (SELECT MIN(o.id) FROM posts o WHERE o.thread_id = p.thread_id)",
                args![*id],
            )?
        }
        Target::Thread(id) => {
            of.name = rows::threads::find(db, *id)?.author;
            db.row("SELECT id FROM motions WHERE thread_id = $1", args![*id])?
        }
        Target::Status(name) | Target::Role(name) | Target::Votes(name) => {
            of.name = name.clone();
            None
        }
        Target::Rule(_) | Target::Charter(_) | Target::Setting(_) => None,
    };
    of.motion = first_int(motion)?;
    let about_member = matches!(
        order.target,
        Target::Status(_) | Target::Role(_) | Target::Votes(_)
    );
    // All guests share an account.
    let account = match of.name.starts_with(GUEST) && !about_member {
        true => READER,
        false => &of.name,
    };
    of.account = accounts::find(db, forum, account)?;
    if about_member && of.account.is_none() {
        return Err(ForumError::Invalid(format!(
            "there is no member `{}`",
            of.name
        )));
    }
    match order.target {
        Target::Post(_) | Target::Thread(_) => {
            let newest = newest(db, forum, &order.target)?;
            of.set_by_member = newest.is_some_and(|entry| entry.by != CLERK);
        }
        Target::Status(_) | Target::Role(_) => {
            let lowered = lowered_by_motions(db, forum)?;
            for account in accounts::all(db, Some(forum))? {
                of.electors += usize::from(account.is_elector());
                let excluded = account.votes && !account.is_elector();
                of.excluded += usize::from(excluded && lowered.contains(&account.name));
            }
        }
        Target::Votes(_) | Target::Rule(_) | Target::Charter(_) | Target::Setting(_) => {}
    }
    Ok(of)
}

/// Describes exactly what an order of a motion would do, and the current state of its target.
///
/// # Errors
/// Members may not propose it, its target does not exist, or nothing would change.
pub(super) fn wants(db: &mut Db, forum: &str, order: &Order) -> Result<String, ForumError> {
    let of = subject(db, forum, order)?;
    let (before, _) = state(db, forum, &order.target, Timestamp::UNIX_EPOCH)?;
    order.check_motion(&of)?;
    check_changes(order, &before)?;
    let words = order.words();
    Ok(match &order.target {
        Target::Post(id) => {
            let thread = rows::posts::find(db, *id)?.thread_id;
            format!("{words} by {} in thread {thread}, now {before}", of.name)
        }
        Target::Thread(_) => format!("{words} by {}, now {before}", of.name),
        _ => format!("{words}, now {before}"),
    })
}

/// Returns why a person must confirm an order proposed by a motion.
pub(super) fn why_person(
    db: &mut Db,
    forum: &str,
    order: &Order,
) -> Result<Option<String>, ForumError> {
    let of = subject(db, forum, order)?;
    Ok(order.why_person(&of))
}

fn check_changes(order: &Order, before: &str) -> Result<(), ForumError> {
    match before == order.state {
        true => Err(ForumError::Invalid(match order.target {
            Target::Post(_) | Target::Thread(_) => {
                format!("{} is {before} already", order.target.called())
            }
            Target::Rule(_) | Target::Setting(_) => {
                format!("{} is `{before}` already", order.target.called())
            }
            Target::Charter(_) if before.is_empty() => "there is no charter".to_owned(),
            Target::Charter(_) => "the charter has this text already".to_owned(),
            _ => {
                let (what, target) = words(&order.target);
                format!("the {what} of `{target}` is `{before}` already")
            }
        })),
        false => Ok(()),
    }
}

/// Checks that the target of an entry has not changed since.
pub(super) fn check_current(db: &mut Db, forum: &str, entry: &Entry) -> Result<(), ForumError> {
    let (now_is, _) = state(db, forum, &entry.target, Timestamp::UNIX_EPOCH)?;
    match now_is == entry.after {
        true => Ok(()),
        false => Err(ForumError::Invalid(format!(
            "entry {} is not in force any more: it was changed since",
            entry.id
        ))),
    }
}

/// Sets the state of a target. `motion` is the motion whose setting is restored, if it is one.
fn set(
    db: &mut Db,
    forum: &str,
    order: &Order,
    motion: Option<i64>,
    now: Timestamp,
) -> Result<(), ForumError> {
    let at = |on: &str| (order.state == on).then_some(now);
    let mut account = match &order.target {
        Target::Post(id) => {
            let at = at(order::HIDDEN);
            db.run(
                "UPDATE posts SET hidden_at = $1 WHERE id = $2",
                args![at, *id],
            )?;
            // The opening includes its thread's title, so the thread is changed too.
            db.run(
                "UPDATE threads SET hidden_at = $1 WHERE id = (SELECT thread_id FROM posts WHERE id = $2) \
                 AND $2 = (SELECT MIN(o.id) FROM posts o WHERE o.thread_id = threads.id)",
                args![at, *id],
            )?;
            return Ok(());
        }
        Target::Thread(id) => {
            db.run(
                "UPDATE threads SET closed_at = $1 WHERE id = $2",
                args![at(order::CLOSED), *id],
            )?;
            return Ok(());
        }
        Target::Rule(key) => return super::rules::put(db, forum, key, &order.state),
        Target::Charter(_) => return company::put_charter(db, forum, &order.state, now),
        Target::Setting(key) => return elected::store(db, forum, key, &order.state, motion),
        Target::Status(name) | Target::Role(name) | Target::Votes(name) => {
            member(db, forum, name, now)?
        }
    };
    let unknown = || ForumError::Invalid(format!("`{}` is no state of an account", order.state));
    // Anyone can take a guest's name.
    if account.kind == Kind::Guest
        && !matches!(order.target, Target::Status(_))
        && !["guest", "reader", "no"].contains(&order.state.as_str())
    {
        return Err(ForumError::Invalid(format!(
            "all guests share the account `{}`: it can be guest or reader, and has no vote",
            account.name
        )));
    }
    match &order.target {
        Target::Role(_) => {
            let role = Role::parse(&order.state).ok_or_else(unknown)?;
            if account.role == Role::Owner && role != Role::Owner {
                let owners = accounts::all(db, Some(forum))?;
                let others = owners.iter().filter(|a| {
                    a.role == Role::Owner && a.status == Status::Active && a.name != account.name
                });
                if others.count() == 0 {
                    return Err(ForumError::Invalid(format!(
                        "`{}` is the only owner: give another member this role first",
                        account.name
                    )));
                }
            }
            account.role = role;
        }
        Target::Votes(_) => account.votes = order.state == "yes",
        _ => account.status = Status::parse(&order.state).ok_or_else(unknown)?,
    }
    accounts::put(db, &account)
}

/// The context of an order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Behind<'a> {
    pub(super) reason: &'a str,
    pub(super) motion: Option<i64>,
    pub(super) undoes: Option<i64>,
}

/// Executes an order. `by` is a member with the right to do so; for a motion, who confirmed it, or the forum itself.
pub(super) fn carry_out(
    db: &mut Db,
    forum: &str,
    by: &str,
    order: &Order,
    behind: Behind<'_>,
    now: Timestamp,
) -> Result<Entry, ForumError> {
    db::lock(db, forum)?;
    names::check(db, forum)?;
    let reason = order::reason(behind.reason)?;
    let (before, of) = state(db, forum, &order.target, now)?;
    match behind.motion {
        Some(_) => order.check_motion(&subject(db, forum, order)?),
        None => order.check(by, giver(db, forum, by)?, of),
    }?;
    check_changes(order, &before)?;
    let given_back = given_back(db, forum, order, behind.undoes)?;
    set(db, forum, order, given_back, now)?;
    let entry = Entry {
        id: 0,
        forum: forum.to_owned(),
        at: now,
        by: by.to_owned(),
        target: order.target.clone(),
        before,
        after: order.state.clone(),
        reason,
        motion_id: behind.motion,
        undoes: behind.undoes,
    };
    let entry = enter(db, entry)?;
    follow(db, &order.target, &entry, given_back)?;
    Ok(entry)
}

/// Stores an entry and logs it.
pub(super) fn enter(db: &mut Db, mut entry: Entry) -> Result<Entry, ForumError> {
    entry.id = keep(db, &entry)?;
    log::add(
        db,
        &LogLine {
            at: entry.at,
            forum: entry.forum.clone(),
            event: LogEvent::Order {
                entry: entry.id,
                what: entry.line(),
            },
        },
    )?;
    Ok(entry)
}

/// Returns the motion whose decision is in force again after an undo.
fn given_back(
    db: &mut Db,
    forum: &str,
    order: &Order,
    undoes: Option<i64>,
) -> Result<Option<i64>, ForumError> {
    let undone = undoes.map(|id| find(db, id)).transpose()?;
    let Some(undone) = undone else {
        return Ok(None);
    };
    if let Some(id) = undone.undoes {
        return Ok(find(db, id)?.motion_id);
    }
    // An elected setting replaces the one before it, which then counts again.
    if !matches!(order.target, Target::Setting(_)) || order.state.is_empty() {
        return Ok(None);
    }
    let (what, target) = words(&order.target);
    let sql = format!(
        "{SELECT} WHERE forum = $1 AND what = $2 AND target = $3 AND id < $4 ORDER BY id DESC LIMIT 1"
    );
    let row = db.row(&sql, args![forum, what, target, undone.id])?;
    let before = row.map_or(Ok(None), |row| entry(&row))?;
    Ok(before
        .filter(|entry| entry.after == order.state)
        .and_then(|entry| entry.motion_id))
}

/// Adds the entries of settings that motions changed before such changes had entries.
fn enter_older_settings(db: &mut Db, forum: &str) -> Result<(), ForumError> {
    const OLDER: &str = "FROM settings s JOIN motions m ON m.id = s.motion_id WHERE s.forum = $1 AND NOT EXISTS \
         (SELECT 1 FROM orders o WHERE o.forum = s.forum AND o.what = 'setting' AND o.target = s.key)";
    let row = db.row(&format!("SELECT COUNT(*) {OLDER}"), args![forum])?;
    if first_int(row)?.unwrap_or(0) == 0 {
        return Ok(());
    }
    let sql = format!(
        "INSERT INTO orders (forum, at, actor, what, target, before, after, reason, motion_id) \
         SELECT s.forum, m.created_at, $2, 'setting', s.key, '', s.value, m.title, m.id {OLDER}"
    );
    db.run(&sql, args![forum, CLERK])?;
    Ok(())
}

/// Reverts an entry, if its target has not changed since.
pub(super) fn undo(
    db: &mut Db,
    forum: &str,
    by: &str,
    id: i64,
    behind: Behind<'_>,
    now: Timestamp,
) -> Result<Entry, ForumError> {
    let entry = find(db, id)?;
    in_forum(&entry.forum, forum, "entry", id)?;
    if entry.back().state == TOMBSTONE {
        return Err(ForumError::Invalid(format!(
            "the text before entry {id} was erased"
        )));
    }
    if behind.motion.is_none() {
        let role = giver(db, forum, by)?;
        let theirs = match entry.by == CLERK {
            // Only the owner, or another motion, can revert what a motion decided.
            true => Role::Owner,
            false => giver(db, forum, &entry.by).unwrap_or(Role::Reader),
        };
        if !role.has(Right::Undo) || theirs.outranks(role) {
            return Err(ForumError::Forbidden(format!(
                "entry {id} is by {}: `{by}` may not undo it",
                entry.by
            )));
        }
    }
    check_current(db, forum, &entry)?;
    let reason = match behind.reason.trim() {
        "" => format!("undo of entry {id}"),
        reason => reason.to_owned(),
    };
    let behind = Behind {
        reason: &reason,
        undoes: Some(id),
        ..behind
    };
    carry_out(db, forum, by, &entry.back(), behind, now)
}

impl ForumStore {
    /// Executes an order of a member.
    ///
    /// # Errors
    /// The member's role may not give it, its target does not exist, or nothing would change.
    pub fn give_order(
        &mut self,
        forum: &str,
        by: &str,
        order: &Order,
        reason: &str,
        now: Timestamp,
    ) -> Result<Entry, ForumError> {
        let reason = self.masking.mask(reason).0;
        let behind = Behind {
            reason: &reason,
            ..Behind::default()
        };
        let mut order = order.clone();
        if matches!(order.target, Target::Charter(_)) {
            self.masking.mask_in_place(&mut order.state);
        }
        self.db
            .whole(|db| carry_out(db, forum, by, &order, behind, now))
    }

    /// Undoes an entry; `None` is the newest that is neither undone nor an undo itself.
    ///
    /// # Errors
    /// The member's role may not do it, or the target has changed since.
    pub fn undo_order(
        &mut self,
        forum: &str,
        by: &str,
        id: Option<i64>,
        reason: &str,
        now: Timestamp,
    ) -> Result<Entry, ForumError> {
        let reason = &*self.masking.mask(reason).0;
        self.db.whole(|db| {
            enter_older_settings(db, forum)?;
            let id = match id {
                Some(id) => id,
                None => {
                    let newest = db.row(
                        // What was erased cannot be restored.
                        "SELECT MAX(id) FROM orders o WHERE forum = $1 AND undoes IS NULL \
                         AND NOT EXISTS (SELECT 1 FROM orders u WHERE u.undoes = o.id) \
                         AND COALESCE(o.before, '') <> $2 AND NOT (o.what = 'post' AND EXISTS \
                         (SELECT 1 FROM posts p WHERE CAST(p.id AS TEXT) = o.target AND p.erased_at IS NOT NULL))",
                        args![forum, TOMBSTONE],
                    )?;
                    let newest = first_int(newest)?;
                    newest.ok_or_else(|| ForumError::Invalid("there is nothing to undo".into()))?
                }
            };
            let behind = Behind {
                reason,
                ..Behind::default()
            };
            undo(db, forum, by, id, behind, now)
        })
    }

    /// Returns whether an account is banned. A name without an account is not.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn is_banned(&mut self, forum: &str, name: &str) -> Result<bool, ForumError> {
        let account = accounts::find(&mut self.db, forum, name)?;
        Ok(account.is_some_and(|account| account.status == Status::Banned))
    }

    /// Returns the entries of a forum, the newest first.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn orders(&mut self, forum: &str, limit: i64) -> Result<Vec<Entry>, ForumError> {
        enter_older_settings(&mut self.db, forum)?;
        let sql = format!("{SELECT} WHERE forum = $1 ORDER BY id DESC LIMIT $2");
        let rows = self.db.rows(&sql, args![forum, limit])?;
        rows.iter()
            .filter_map(|row| entry(row).transpose())
            .collect()
    }

    /// Returns the entries about a post, a thread or a member, the newest first.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn orders_about(&mut self, forum: &str, target: &Target) -> Result<Vec<Entry>, ForumError> {
        let (what, target) = words(target);
        let sql = format!(
            "{SELECT} WHERE forum = $1 AND what = $2 AND target = $3 ORDER BY id DESC LIMIT 50"
        );
        let rows = self.db.rows(&sql, args![forum, what, target])?;
        rows.iter()
            .filter_map(|row| entry(row).transpose())
            .collect()
    }
}
