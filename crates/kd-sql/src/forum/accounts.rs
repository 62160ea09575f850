//! The accounts of a forum: the table `members`.
//!
//! One row for each name of a forum, as a [`kd_forum::account::Account`]: `kind` (agent, person, guest), `proof`
//! (how the name was proven when it joined), `role` (owner, moderator, agent, guest, reader), `status` (active, left,
//! banned), `votes` (1: in the electorate of future motions), `joined_at`, `left_at`. `skeleton` is the form of the
//! name that look-alikes share: no two accounts of a forum have the same. A row is never removed.
//!
//! Personas join when a cycle or a visit begins and leave when their file is gone; names of tokens join when their
//! server opens the forum and leave when it opens it without them; other names join with their first action. All guests
//! (`guest-NAME`) share the account `guest`, because anyone can take any of their names.

use super::ForumStore;
use super::db::{Db, Row, args};
use super::error::ForumError;
use jiff::Timestamp;
use kd_core::names::skeleton;
use kd_forum::account::{Account, Kind, Proof, Role, Status};

const SELECT: &str =
    "SELECT forum, name, kind, proof, role, status, votes, joined_at, left_at FROM members";

/// Unknown words give the fewest rights.
fn account(row: &Row) -> Result<Account, ForumError> {
    Ok(Account {
        forum: row.line(0)?,
        name: row.line(1)?,
        kind: Kind::parse(&row.text(2)?).unwrap_or(Kind::Guest),
        proof: Proof::parse(&row.text(3)?).unwrap_or(Proof::Nothing),
        role: Role::parse(&row.text(4)?).unwrap_or(Role::Reader),
        status: Status::parse(&row.text(5)?).unwrap_or(Status::Banned),
        votes: row.int(6)? == 1,
        joined_at: row.time(7)?,
        left_at: row.maybe_time(8)?,
    })
}

pub(super) fn find(db: &mut Db, forum: &str, name: &str) -> Result<Option<Account>, ForumError> {
    let sql = format!("{SELECT} WHERE forum = $1 AND name = $2");
    db.row(&sql, args![forum, name])?
        .map(|row| account(&row))
        .transpose()
}

/// Returns every account, of all forums or of one.
pub(super) fn all(db: &mut Db, forum: Option<&str>) -> Result<Vec<Account>, ForumError> {
    let rows = match forum {
        Some(forum) => db.rows(
            &format!("{SELECT} WHERE forum = $1 ORDER BY name"),
            args![forum],
        )?,
        None => db.rows(&format!("{SELECT} ORDER BY forum, name"), &[])?,
    };
    rows.iter().map(account).collect()
}

/// Returns the account of another name that a name looks like.
pub(super) fn look_alike(
    db: &mut Db,
    forum: &str,
    name: &str,
) -> Result<Option<Account>, ForumError> {
    let sql = format!("{SELECT} WHERE forum = $1 AND skeleton = $2 AND name <> $3");
    let row = db.row(&sql, args![forum, skeleton(name), name])?;
    row.map(|row| account(&row)).transpose()
}

/// Rejects a name that looks like the name of another account.
pub(super) fn check_look(db: &mut Db, forum: &str, name: &str) -> Result<(), ForumError> {
    match look_alike(db, forum, name)? {
        Some(other) => Err(ForumError::Forbidden(format!(
            "`{name}` looks like `{}`, which is a member: choose another name",
            other.name
        ))),
        None => Ok(()),
    }
}

/// Stores an account as given, replacing the row of that name.
pub(super) fn put(db: &mut Db, account: &Account) -> Result<(), ForumError> {
    db.run(
        "INSERT INTO members (forum, name, skeleton, kind, proof, role, status, votes, joined_at, left_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (forum, name) DO UPDATE SET kind = excluded.kind, \
         proof = excluded.proof, role = excluded.role, status = excluded.status, votes = excluded.votes, \
         joined_at = excluded.joined_at, left_at = excluded.left_at",
        args![
            account.forum.as_str(),
            account.name.as_str(),
            skeleton(&account.name),
            account.kind.word(),
            account.proof.word(),
            account.role.word(),
            account.status.word(),
            i64::from(account.votes),
            account.joined_at,
            account.left_at
        ],
    )?;
    Ok(())
}

/// Admits a name with its proof: creates its account, or reactivates one that left. An account keeps its role, its vote
/// and a ban; only a stronger proof turns a guest into an agent.
pub(super) fn join(db: &mut Db, new: &Account) -> Result<Account, ForumError> {
    super::db::lock(db, &new.forum)?;
    let Some(old) = find(db, &new.forum, &new.name)? else {
        check_look(db, &new.forum, &new.name)?;
        put(db, new)?;
        return Ok(new.clone());
    };
    if old.kind != new.kind {
        return Err(ForumError::Forbidden(format!(
            "`{}` is the account of {}: choose another name",
            old.name,
            match old.kind {
                Kind::Agent => "an agent",
                Kind::Person => "a person",
                Kind::Guest => "a guest",
            }
        )));
    }
    let mut now = old.clone();
    if old.status == Status::Left {
        now.status = Status::Active;
        now.joined_at = new.joined_at;
        now.left_at = None;
    }
    if old.proof < new.proof {
        now.proof = new.proof;
        if old.role == Role::Guest {
            now.role = new.role;
            now.votes = new.votes;
        }
    }
    if now != old {
        put(db, &now)?;
    }
    Ok(now)
}

impl ForumStore {
    /// Returns the accounts of a forum, by name.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn members(&mut self, forum: &str) -> Result<Vec<Account>, ForumError> {
        all(&mut self.db, Some(forum))
    }

    /// Returns an account.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn member(&mut self, forum: &str, name: &str) -> Result<Option<Account>, ForumError> {
        find(&mut self.db, forum, name)
    }

    /// Creates an account, or reactivates one that left.
    ///
    /// # Errors
    /// If the name looks like the name of another account, or belongs to an account of another kind.
    pub fn join(&mut self, new: &Account) -> Result<Account, ForumError> {
        self.db.whole(|db| join(db, new))
    }

    /// Syncs a forum's members with its personas: those in the list join, others of this kind leave.
    ///
    /// # Errors
    /// If a name looks like the name of another account, or belongs to a person. Nothing is changed then.
    pub fn sync_personas(
        &mut self,
        forum: &str,
        names: &[&str],
        now: Timestamp,
    ) -> Result<(), ForumError> {
        self.db.whole(|db| {
            leave(db, forum, Proof::Persona, names, now)?;
            for name in names {
                join(
                    db,
                    &Account::new(forum, name, Kind::Agent, Proof::Persona, now),
                )?;
            }
            Ok(())
        })
    }

    /// Syncs the members with the names of tokens: names in the list join, and members whose token was removed leave.
    /// A name that cannot join is skipped: its holder gets the error with the first call.
    ///
    /// # Errors
    /// The database fails.
    pub fn sync_tokens(
        &mut self,
        forum: &str,
        names: &[&str],
        now: Timestamp,
    ) -> Result<(), ForumError> {
        self.db
            .whole(|db| leave(db, forum, Proof::Token, names, now))?;
        for name in names {
            let account = Account::new(forum, name, Kind::Agent, Proof::Token, now);
            match self.join(&account) {
                Err(error) if error.is_refusal() => {}
                done => drop(done?),
            }
        }
        Ok(())
    }
}

/// Deactivates the accounts with a proof whose names are not in the list.
fn leave(
    db: &mut Db,
    forum: &str,
    proof: Proof,
    names: &[&str],
    now: Timestamp,
) -> Result<(), ForumError> {
    for mut gone in all(db, Some(forum))? {
        let is_gone = gone.proof == proof && !names.contains(&gone.name.as_str());
        if is_gone && gone.status == Status::Active {
            gone.status = Status::Left;
            gone.left_at = Some(now);
            put(db, &gone)?;
        }
    }
    Ok(())
}
