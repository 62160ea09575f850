//! Exports a whole store as JSON Lines, and imports it. An import assigns new numbers, so that a store can be added to
//! another; all references are converted.

use super::admit::{LeftOut, admit};
use super::company::Texts;
use super::db::{Db, args, first_int, new_id};
use super::error::ForumError;
use super::record::{Governance, Record};
use super::rows;
use super::{ForumStore, search};
use jiff::Timestamp;
use kd_core::clean::clean_line;
use kd_core::formats::{FORUM_EXPORT, Newer};
use kd_core::hex::hex;
use kd_forum::chain::{Fields, Link};
use kd_forum::company::{CHARTER_MAX, NOTES_MAX, PROFILE_MAX};
use kd_forum::governance::{Change, Motion};
use kd_forum::order::Target;
use kd_forum::words::{Post, Thread};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};

/// Rows read from the database at a time.
const PAGE: i64 = 2_000;

/// Maximum bytes of a line of an import. Posts are far shorter.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// The version of this format.
const VERSION: u32 = FORUM_EXPORT.version;

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Number of threads.
    pub threads: usize,
    /// Number of posts.
    pub posts: usize,
    /// Number of other records.
    pub others: usize,
    /// The parts that were left out: settings, each as `key = value`; motions that were open or in force and now are
    /// not; and other kinds with their number.
    pub left_out: Vec<String>,
}

/// Whether an import may contain threads that are already in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeat {
    /// The import is refused: every post would exist twice.
    #[default]
    Refused,
    /// They are added a second time.
    Allowed,
}

impl ForumStore {
    /// Writes everything, in an order that can be imported.
    ///
    /// # Errors
    /// If the database fails or is damaged, or the output cannot be written.
    pub fn export(&mut self, out: &mut dyn Write) -> Result<usize, ForumError> {
        let mut count = 0;
        let mut put = |record: &Record| -> Result<(), ForumError> {
            count += 1;
            let line =
                serde_json::to_string(record).map_err(|e| ForumError::Invalid(e.to_string()))?;
            writeln!(out, "{line}").map_err(|e| ForumError::File {
                path: "the output".into(),
                why: e.to_string(),
            })
        };
        put(&Record::Forum { version: VERSION })?;
        let db = &mut self.db;
        discussions(db, &mut put)?;
        agents(db, &mut put)?;
        history(db, &mut put)?;
        company(db, &mut put)?;
        super::order::all(db)?
            .into_iter()
            .try_for_each(|entry| put(&Record::Order(entry)))?;
        super::erase::all(db)?
            .into_iter()
            .try_for_each(|erasure| put(&Record::Erasure(erasure)))?;
        log(db, &mut put)?;
        Ok(count)
    }

    /// Imports lines that [`ForumStore::export`] wrote, all or none.
    ///
    /// # Errors
    /// A line is invalid, with its number, or the database fails. Nothing is added then.
    pub fn import(
        &mut self,
        lines: &mut dyn BufRead,
        governance: Governance,
        repeat: Repeat,
    ) -> Result<Imported, ForumError> {
        let done = self.db.whole(|db| {
            let last = db.row("SELECT MAX(id) FROM posts", &[])?;
            let mut numbers = Numbers {
                base: first_int(last)?.unwrap_or(0),
                ..Numbers::default()
            };
            let here = match repeat {
                Repeat::Refused => known_threads(db)?,
                Repeat::Allowed => BTreeMap::new(),
            };
            let (mut done, mut left) = (Imported::default(), LeftOut::default());
            let mut digest = Fields::of("kd forum import 1");
            for at in 1.. {
                let wrong = |why: String| ForumError::Import { line: at, why };
                let Some(line) = next_line(lines).map_err(wrong)? else {
                    break;
                };
                let line = line.as_str();
                if line.trim().is_empty() {
                    continue;
                }
                digest = digest.text(line.trim());
                let record: Record =
                    serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
                let written = thread_of(&record);
                let Some(record) = admit(record, governance, &mut left) else {
                    continue;
                };
                match &record {
                    Record::Thread(t) => {
                        // This includes the forum's own thread, which an import marks as foreign.
                        let own = written.and_then(|key| here.get(&key));
                        if let Some(id) = here.get(&thread_key(t)).or(own) {
                            return Err(ForumError::Repeated {
                                line: at,
                                thread: *id,
                                title: clean_line(&t.title, 60),
                            });
                        }
                        done.threads += 1;
                    }
                    Record::Post(_) => done.posts += 1,
                    Record::Forum { version } => {
                        let known = FORUM_EXPORT.check(Some((*version).into()));
                        known.map_err(|newer| wrong(format!("{newer}; {}", Newer::HINT)))?;
                    }
                    _ => done.others += 1,
                }
                numbers.add(db, record).map_err(|e| {
                    if e.is_refusal() {
                        wrong(e.to_string())
                    } else {
                        e
                    }
                })?;
            }
            numbers.settle(db)?;
            // A file without threads is identified by all its lines.
            let added = db.run(
                "INSERT INTO imports (digest, at) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                args![hex(&digest.hash()), Timestamp::now()],
            )?;
            if added == 0 && repeat == Repeat::Refused {
                return Err(ForumError::RepeatedFile);
            }
            done.left_out = left.told();
            Ok(done)
        })?;
        if !self.db.is_sqlite() {
            // Tells the planner the new size, which it would learn only minutes later. If a server does not permit
            // this, the import succeeds all the same.
            let _ = self.db.script("ANALYZE");
        }
        Ok(done)
    }
}

/// Returns the key of the thread in a record, if it is one.
fn thread_of(record: &Record) -> Option<ThreadKey> {
    match record {
        Record::Thread(t) => Some(thread_key(t)),
        _ => None,
    }
}

/// Reads a line of an import; `None` at the end.
fn next_line(lines: &mut dyn BufRead) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    let read = lines.take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut bytes);
    match read.map_err(|e| e.to_string())? {
        0 => Ok(None),
        _ if bytes.len() as u64 > LINE_BYTES_MAX => {
            Err(format!("it is longer than {} MiB", LINE_BYTES_MAX >> 20))
        }
        _ => String::from_utf8(bytes)
            .map(Some)
            .map_err(|e| e.utf8_error().to_string()),
    }
}

/// Writes threads and posts, a page at a time.
fn discussions(
    db: &mut Db,
    put: &mut impl FnMut(&Record) -> Result<(), ForumError>,
) -> Result<(), ForumError> {
    let mut after = 0;
    loop {
        let sql = format!(
            "SELECT {} FROM threads t WHERE t.id > $1 ORDER BY t.id LIMIT $2",
            rows::threads::COLUMNS
        );
        let rows = db.rows(&sql, args![after, PAGE])?;
        let Some(last) = rows.last() else { break };
        after = last.int(0)?;
        for row in &rows {
            put(&Record::Thread(rows::threads::thread(row)?))?;
        }
    }
    after = 0;
    loop {
        let rows = db.rows(
            &format!(
                "{} WHERE p.id > $1 ORDER BY p.id LIMIT $2",
                rows::posts::SELECT
            ),
            args![after, PAGE],
        )?;
        let Some(last) = rows.last() else { break };
        after = last.int(0)?;
        for row in &rows {
            let post = rows::posts::post(row)?;
            put(&Record::Post(Post {
                quoted_post_body: None,
                quoted_author: None,
                ..post
            }))?;
        }
    }
    Ok(())
}

/// Writes agents, and the marks up to which they have read.
fn agents(
    db: &mut Db,
    put: &mut impl FnMut(&Record) -> Result<(), ForumError>,
) -> Result<(), ForumError> {
    for row in db.rows(
        "SELECT name, energy, tokens, turns, skipped, last_run_at FROM agents ORDER BY id",
        &[],
    )? {
        put(&Record::Agent {
            name: row.line(0)?,
            energy: row.real(1)?,
            tokens: row.int(2)?,
            turns: row.int(3)?,
            skipped: row.int(4)?,
            last_run_at: row.maybe_time(5)?,
        })?;
    }
    for row in db.rows("SELECT a.name, s.thread_id, s.post_id FROM seen s JOIN agents a ON a.id = s.agent_id ORDER BY a.id, s.thread_id", &[])? {
        put(&Record::Seen { agent: row.line(0)?, thread_id: row.int(1)?, post_id: row.int(2)? })?;
    }
    for row in db.rows("SELECT a.name, m.forum, m.post_id FROM marks m JOIN agents a ON a.id = m.agent_id ORDER BY a.id, m.forum", &[])? {
        put(&Record::Mark { agent: row.line(0)?, forum: row.line(1)?, post_id: row.int(2)? })?;
    }
    for row in db.rows(
        "SELECT post_id, digest FROM first_words ORDER BY post_id",
        &[],
    )? {
        put(&Record::FirstWords {
            post_id: row.int(0)?,
            digest: row.text(1)?,
        })?;
    }
    Ok(())
}

/// Writes cycles, visits, accounts, motions with their votes, and settings.
fn history(
    db: &mut Db,
    put: &mut impl FnMut(&Record) -> Result<(), ForumError>,
) -> Result<(), ForumError> {
    let cycles = super::cycles::all(db)?;
    cycles
        .into_iter()
        .try_for_each(|cycle| put(&Record::Cycle(Box::new(cycle))))?;
    super::runs::all(db)?
        .into_iter()
        .try_for_each(|run| put(&Record::Run(run)))?;
    super::accounts::all(db, None)?
        .into_iter()
        .try_for_each(|account| put(&Record::Member(account)))?;
    super::motions::all(db)?
        .into_iter()
        .try_for_each(|(motion, votes)| {
            put(&Record::Motion(motion))?;
            votes
                .into_iter()
                .try_for_each(|vote| put(&Record::Vote(vote)))
        })?;
    for row in db.rows(
        "SELECT motion_id, name FROM electorate ORDER BY motion_id, name",
        &[],
    )? {
        put(&Record::Elector {
            motion_id: row.int(0)?,
            name: row.line(1)?,
        })?;
    }
    for row in db.rows(
        "SELECT forum, key, value, motion_id FROM settings ORDER BY forum, key",
        &[],
    )? {
        put(&Record::Setting {
            forum: row.line(0)?,
            key: row.line(1)?,
            value: row.line(2)?,
            motion_id: row.int(3)?,
        })?;
    }
    Ok(())
}

/// Writes the log, a page at a time.
fn log(
    db: &mut Db,
    put: &mut impl FnMut(&Record) -> Result<(), ForumError>,
) -> Result<(), ForumError> {
    let mut after = 0;
    loop {
        let rows = db.rows(
            "SELECT id, line FROM log WHERE id > $1 ORDER BY id LIMIT $2",
            args![after, PAGE],
        )?;
        let Some(last) = rows.last() else { break };
        after = last.int(0)?;
        for row in &rows {
            if let Some(line) = row.maybe_json(1)? {
                put(&Record::Log(line))?;
            }
        }
    }
    Ok(())
}

/// Writes the texts that agents save and publish besides posts.
fn company(
    db: &mut Db,
    put: &mut impl FnMut(&Record) -> Result<(), ForumError>,
) -> Result<(), ForumError> {
    let texts = |table: &str| {
        format!("SELECT forum, name, body, updated_at FROM {table} ORDER BY forum, name")
    };
    for row in db.rows(&texts("notes"), &[])? {
        let (forum, name) = (row.line(0)?, row.line(1)?);
        put(&Record::Note {
            forum,
            name,
            body: row.text(2)?,
            updated_at: row.time(3)?,
        })?;
    }
    for row in db.rows(&texts("profiles"), &[])? {
        let (forum, name) = (row.line(0)?, row.line(1)?);
        put(&Record::Profile {
            forum,
            name,
            body: row.text(2)?,
            updated_at: row.time(3)?,
        })?;
    }
    let sql = "SELECT forum, name, post_id, seen_at FROM mentions ORDER BY forum, post_id, name";
    for row in db.rows(sql, &[])? {
        let (forum, name) = (row.line(0)?, row.line(1)?);
        put(&Record::Mention {
            forum,
            name,
            post_id: row.int(2)?,
            seen_at: row.maybe_time(3)?,
        })?;
    }
    let sql = "SELECT forum, body, updated_at FROM charters ORDER BY forum";
    for row in db.rows(sql, &[])? {
        put(&Record::Charter {
            forum: row.line(0)?,
            body: row.text(1)?,
            updated_at: row.time(2)?,
        })?;
    }
    for row in db.rows(
        "SELECT forum, key, value FROM rules ORDER BY forum, key",
        &[],
    )? {
        put(&Record::Rule {
            forum: row.line(0)?,
            key: row.line(1)?,
            value: row.line(2)?,
        })?;
    }
    Ok(())
}

/// Identifies a thread: its forum, author, title and time.
type ThreadKey = (String, String, String, i64);

fn thread_key(t: &Thread) -> ThreadKey {
    (
        t.forum.clone(),
        t.author.clone(),
        t.title.clone(),
        t.created_at.as_microsecond(),
    )
}

/// Returns the threads in the store before an import, with their numbers.
fn known_threads(db: &mut Db) -> Result<BTreeMap<ThreadKey, i64>, ForumError> {
    let sql = format!("SELECT {} FROM threads t", rows::threads::COLUMNS);
    db.rows(&sql, &[])?
        .iter()
        .map(|row| rows::threads::thread(row).map(|t| (thread_key(&t), t.id)))
        .collect()
}

/// Old numbers and their replacements.
#[derive(Default)]
struct Numbers {
    threads: BTreeMap<i64, (i64, String)>,
    posts: BTreeMap<i64, i64>,
    cycles: BTreeMap<i64, i64>,
    runs: BTreeMap<i64, i64>,
    motions: BTreeMap<i64, i64>,
    orders: BTreeMap<i64, i64>,
    /// Posts whose run comes later in the file.
    waiting: Vec<(i64, i64)>,
    /// The last post that existed before the import.
    base: i64,
}

impl Numbers {
    /// Returns the value of a motion with the local number of its post, thread or motion; `None` if that does not
    /// exist.
    fn moved_value(&self, motion: &Motion) -> Option<String> {
        let number = match motion.change() {
            Change::Undo(old) => self.motions.get(&old).copied(),
            Change::Order(order) => match order.target {
                Target::Post(old) => self.posts.get(&old).copied(),
                Target::Thread(old) => self.threads.get(&old).map(|t| t.0),
                _ => return motion.value.clone(),
            },
            Change::Nothing | Change::Set(..) => return motion.value.clone(),
        };
        number.map(|id| id.to_string())
    }

    fn thread(&self, old: i64) -> Result<(i64, String), ForumError> {
        self.threads.get(&old).cloned().ok_or(ForumError::Missing {
            what: "thread",
            id: old,
        })
    }

    fn post(&self, old: i64) -> Result<i64, ForumError> {
        self.posts.get(&old).copied().ok_or(ForumError::Missing {
            what: "post",
            id: old,
        })
    }

    #[expect(clippy::too_many_lines, reason = "one match over the kinds of records")]
    fn add(&mut self, db: &mut Db, record: Record) -> Result<(), ForumError> {
        match record {
            Record::Forum { .. } => {}
            Record::Thread(t) => {
                super::db::lock(db, &t.forum)?;
                let new = new_id(db.row(
                    "INSERT INTO threads (forum, title, author, created_at, updated_at, post_count, last_author, last_post_id, deleted_at, hidden_at, closed_at) \
                     VALUES ($1, $2, $3, $4, $5, 0, $6, 0, $7, $8, $9) RETURNING id",
                    args![t.forum.as_str(), t.title.as_str(), t.author, t.created_at, t.updated_at, t.last_author, t.deleted_at, t.hidden_at, t.closed_at],
                )?)?;
                self.threads.insert(t.id, (new, t.title));
            }
            Record::Post(p) => {
                let (thread, title) = self.thread(p.thread_id)?;
                let quote = p.quote_post_id.map(|old| self.post(old)).transpose()?;
                let new = new_id(db.row(
                    "INSERT INTO posts (thread_id, author, body, quote_post_id, created_at, edited_at, deleted_at, hidden_at, erased_at) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id",
                    args![thread, p.author.as_str(), p.body.as_str(), quote, p.created_at, p.edited_at, p.deleted_at, p.hidden_at, p.erased_at],
                )?)?;
                let opens = db.row(
                    "SELECT last_post_id FROM threads WHERE id = $1",
                    args![thread],
                )?;
                let opens = first_int(opens)?.is_some_and(|n| n == 0);
                let counts = i64::from(p.deleted_at.is_none());
                db.run(
                    "UPDATE threads SET post_count = post_count + $1, last_post_id = $2 WHERE id = $3",
                    args![counts, new, thread],
                )?;
                if p.deleted_at.is_none() {
                    search::index(db, new, if opens { &title } else { "" }, &p.body, &p.author)?;
                }
                self.posts.insert(p.id, new);
                if let Some(run) = p.run_id {
                    self.waiting.push((new, run));
                }
            }
            Record::Agent {
                name,
                energy,
                tokens,
                turns,
                skipped,
                last_run_at,
            } => {
                let known = db.row("SELECT 1 FROM agents WHERE name = $1", args![name.as_str()])?;
                // This forum already counts what the agent used.
                if known.is_none() {
                    super::seen::agent_id(db, &name)?;
                    db.run(
                        "UPDATE agents SET energy = $1, tokens = $2, turns = $3, skipped = $4, last_run_at = $5 WHERE name = $6",
                        args![energy, tokens, turns, skipped, last_run_at, name],
                    )?;
                }
            }
            Record::Seen {
                agent,
                thread_id,
                post_id,
            } => {
                let agent = super::seen::agent_id(db, &agent)?;
                let (thread, _) = self.thread(thread_id)?;
                super::seen::saw(db, agent, thread, self.post(post_id)?)?;
            }
            Record::Mark {
                agent,
                forum,
                post_id,
            } => {
                let agent = super::seen::agent_id(db, &agent)?;
                db.run(
                    "INSERT INTO marks (agent_id, forum, post_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                    args![agent, forum, self.post(post_id)?],
                )?;
            }
            Record::FirstWords { post_id, digest } => {
                db.run(
                    "INSERT INTO first_words (post_id, digest) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                    args![self.post(post_id)?, digest],
                )?;
            }
            Record::Cycle(c) => {
                let c = *c;
                // Below 1, a cycle is not resumed and does not count.
                let number = match c.number {
                    1.. => super::cycles::last_number(db, &c.forum)? + 1,
                    _ => super::cycles::first_number(db, &c.forum)? - 1,
                };
                let text = |e: serde_json::Error| ForumError::Invalid(e.to_string());
                let new = new_id(db.row(
                    "INSERT INTO cycles (forum, number, cards, plan, started_at, ended_at, interval_ms) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id",
                    args![
                        c.forum.as_str(), number, serde_json::to_string(&c.cards).map_err(text)?,
                        serde_json::to_string(&c.plan).map_err(text)?, c.started_at, c.ended_at, c.interval_ms.map(|ms| ms as i64)
                    ],
                )?)?;
                self.cycles.insert(c.id, new);
                if let Some(link) = c.link.filter(|_| number > 0)
                    // No file continues a chain of this store.
                    && super::links::beginning(db, &link.chain)?.is_none()
                {
                    let post = |old: i64| match old {
                        0 => Ok(self.base),
                        old => self.post(old),
                    };
                    let link = Link {
                        after_post: post(link.after_post)?,
                        through_post: post(link.through_post)?,
                        ..link
                    };
                    super::links::insert(db, new, &link)?;
                }
            }
            Record::Run(r) => {
                let cycle = r.cycle_id.and_then(|old| self.cycles.get(&old).copied());
                let deeds: Vec<_> = r
                    .deeds
                    .iter()
                    .map(|deed| kd_forum::words::Deed {
                        thread_id: deed
                            .thread_id
                            .and_then(|old| self.threads.get(&old).map(|t| t.0)),
                        post_id: deed.post_id.and_then(|old| self.posts.get(&old).copied()),
                        ..deed.clone()
                    })
                    .collect();
                let deeds = serde_json::to_string(&deeds)
                    .map_err(|e| ForumError::Invalid(e.to_string()))?;
                let new = new_id(db.row(
                    "INSERT INTO runs (cycle_id, forum, agent, started_at, ended_at, outcome, deeds, reason, claim, claim_agrees, calls, tokens) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id",
                    args![
                        cycle, r.forum, r.agent, r.started_at, r.ended_at, r.outcome.word(), deeds, r.reason, r.claim,
                        r.claim_agrees.map(i64::from), r.calls, r.tokens
                    ],
                )?)?;
                self.runs.insert(r.id, new);
            }
            Record::Motion(m) => {
                let thread = m
                    .thread_id
                    .map(|old| self.thread(old).map(|t| t.0))
                    .transpose()?;
                let value = self.moved_value(&m);
                let new = new_id(db.row(
                    "INSERT INTO motions (forum, kind, key, value, before, title, reason, proposer, created_at, closes_after, state, outcome, thread_id) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING id",
                    args![
                        m.forum, m.kind.word(), m.key, value, m.before, m.title, m.reason, m.proposer, m.created_at,
                        m.closes_after, m.state.word(), m.outcome, thread
                    ],
                )?)?;
                self.motions.insert(m.id, new);
            }
            Record::Vote(v) => {
                let motion =
                    self.motions
                        .get(&v.motion_id)
                        .copied()
                        .ok_or(ForumError::Missing {
                            what: "motion",
                            id: v.motion_id,
                        })?;
                db.run(
                    "INSERT INTO votes (motion_id, agent, choice, reason, at) VALUES ($1, $2, $3, $4, $5)",
                    args![motion, v.agent, v.choice.word(), v.reason, v.at],
                )?;
            }
            // An existing account keeps its rights.
            Record::Member(account) => {
                if super::accounts::find(db, &account.forum, &account.name)?.is_none() {
                    super::accounts::join(db, &account)?;
                }
            }
            Record::Elector { motion_id, name } => {
                let motion = self
                    .motions
                    .get(&motion_id)
                    .copied()
                    .ok_or(ForumError::Missing {
                        what: "motion",
                        id: motion_id,
                    })?;
                db.run(
                    "INSERT INTO electorate (motion_id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                    args![motion, name],
                )?;
            }
            Record::Setting {
                forum,
                key,
                value,
                motion_id,
            } => {
                let motion = self.motions.get(&motion_id).copied().unwrap_or(0);
                db.run(
                    "INSERT INTO settings (forum, key, value, motion_id) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                    args![forum, key, value, motion],
                )?;
            }
            Record::Note {
                forum,
                name,
                body,
                updated_at,
            } => {
                let body: String = body.chars().take(NOTES_MAX).collect();
                super::company::put_new(db, Texts::Notes, &forum, &name, &body, updated_at)?;
            }
            Record::Profile {
                forum,
                name,
                body,
                updated_at,
            } => {
                let body: String = body.chars().take(PROFILE_MAX).collect();
                super::company::put_new(db, Texts::Profiles, &forum, &name, &body, updated_at)?;
            }
            Record::Mention {
                forum,
                name,
                post_id,
                seen_at,
            } => {
                db.run(
                    "INSERT INTO mentions (forum, name, post_id, seen_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                    args![forum, name, self.post(post_id)?, seen_at],
                )?;
            }
            Record::Charter {
                forum,
                body,
                updated_at,
            } => {
                let body: String = body.chars().take(CHARTER_MAX).collect();
                db.run(
                    "INSERT INTO charters (forum, body, updated_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                    args![forum, body, updated_at],
                )?;
            }
            Record::Rule { forum, key, value } => super::rules::put(db, &forum, &key, &value)?,
            Record::Order(mut entry) => {
                match &mut entry.target {
                    Target::Post(post) => *post = self.post(*post)?,
                    Target::Thread(thread) => *thread = self.thread(*thread)?.0,
                    Target::Status(_)
                    | Target::Role(_)
                    | Target::Votes(_)
                    | Target::Rule(_)
                    | Target::Charter(_)
                    | Target::Setting(_) => {}
                }
                let old = entry.id;
                entry.motion_id = entry
                    .motion_id
                    .and_then(|id| self.motions.get(&id).copied());
                entry.undoes = entry.undoes.and_then(|id| self.orders.get(&id).copied());
                let new = super::order::keep(db, &entry)?;
                self.orders.insert(old, new);
            }
            Record::Erasure(mut erasure) => {
                let item = erasure.item;
                let known = match erasure.what.as_str() {
                    "post" => self.posts.get(&item).copied(),
                    "thread" => self.threads.get(&item).map(|thread| thread.0),
                    "motion" | "vote" => self.motions.get(&item).copied(),
                    "run" => self.runs.get(&item).copied(),
                    "cycle" => self.cycles.get(&item).copied(),
                    "entry" => self.orders.get(&item).copied(),
                    _ => None,
                };
                erasure.item = known.unwrap_or(0);
                super::erase::keep(db, &erasure, true)?;
            }
            Record::Log(line) => {
                let text =
                    serde_json::to_string(&line).map_err(|e| ForumError::Invalid(e.to_string()))?;
                db.run(
                    "INSERT INTO log (forum, line) VALUES ($1, $2)",
                    args![line.forum.as_str(), text],
                )?;
            }
        }
        Ok(())
    }

    /// Links posts to the runs that wrote them, now that both exist. Drops the call's number, which only protects a run
    /// in progress.
    fn settle(&self, db: &mut Db) -> Result<(), ForumError> {
        for (post, run) in &self.waiting {
            if let Some(run) = self.runs.get(run) {
                db.run(
                    "UPDATE posts SET run_id = $1, call_no = id WHERE id = $2",
                    args![*run, *post],
                )?;
            }
        }
        Ok(())
    }
}
