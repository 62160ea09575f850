//! Carries out what an agent calls for. Comes in: who calls, and a call of [`kd_core::forum::tools`]. Goes out: the
//! answer as JSON in the shapes of the first forum server: `{"success": true, …}`, or `{"success": false, "error": …}`
//! with words that the agent can act on. Only a broken database is an error of ours.

use super::company::Texts;
use super::db::Db;
use super::error::ForumError;
use super::motions::{self, Proposal};
use super::order::Sight;
use super::posts::NewPost;
use super::{ForumStore, accounts, pace, runs};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kd_core::clean::clean_line;
use kd_core::forum::CLERK;
use kd_core::forum::account::{Account, Kind, Proof, Role, Status};
use kd_core::forum::company::{self, NOTES_MAX};
use kd_core::forum::fairness::Look;
use kd_core::forum::governance::{Motion, MotionState};
use kd_core::forum::settings::Settings;
use kd_core::forum::tools::{self, Call};
use kd_core::forum::words::{Deed, Post, Thread};
use kd_core::ids::{KING, SeatName};
use kd_core::names::{GUEST, READER};
use serde_json::{Value, json};

/// The most posts of one `read_thread`.
const POSTS_MAX: i64 = 500;

/// Cycles that an agent is shown the fairness of.
const FAIRNESS_CYCLES: i64 = 1_000;

/// Who calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Caller {
    /// The name that everything is written under.
    pub name: String,
    /// The forum.
    pub forum: String,
    /// Whether it is a person.
    pub person: bool,
    /// How the name was proven. A name that was not is that of a guest.
    pub proof: Proof,
    /// The visit that the call belongs to; none for calls outside one, which are not counted.
    pub run: Option<i64>,
}

impl Caller {
    /// A caller whose name was checked: no agent writes as the forum itself.
    pub fn new(name: &str, forum: &str) -> Result<Self, ForumError> {
        if name == CLERK {
            return Err(ForumError::Forbidden(format!(
                "`{CLERK}` is the forum itself: write under your own name"
            )));
        }
        SeatName::writer(name).map_err(|e| ForumError::Invalid(e.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            forum: forum.to_owned(),
            person: false,
            proof: Proof::Nothing,
            run: None,
        })
    }

    /// The same caller, whose name was proven so.
    #[must_use]
    pub fn proven(self, proof: Proof) -> Self {
        Self { proof, ..self }
    }

    /// The person who owns the forum.
    pub fn person(name: &str, forum: &str) -> Result<Self, ForumError> {
        // The one name that no agent can have.
        let checked = if name == KING { "person" } else { name };
        Ok(Self {
            name: name.to_owned(),
            person: true,
            proof: Proof::Owner,
            ..Self::new(checked, forum)?
        })
    }

    /// The account that this caller acts as, if it has none yet.
    fn account(&self, now: Timestamp) -> Result<Account, ForumError> {
        let kind = match self.person {
            true => Kind::Person,
            false if self.name.starts_with(GUEST) => Kind::Guest,
            false if self.proof == Proof::Nothing => {
                return Err(ForumError::Forbidden(format!(
                    "nothing shows that you are `{}`: use a token with this name, or start the server with `--as`",
                    self.name
                )));
            }
            false => Kind::Agent,
        };
        // Anyone can take the name of a guest, so they are one account.
        let name = match kind {
            Kind::Guest => READER,
            _ => &self.name,
        };
        Ok(Account::new(&self.forum, name, kind, self.proof, now))
    }
}

impl ForumStore {
    /// Reads and carries out a call by its name and arguments. Inside a visit it is counted first, whether it can be read
    /// or not; the call over the limit is refused.
    pub fn call(
        &mut self,
        caller: &Caller,
        settings: &Settings,
        name: &str,
        arguments: &Value,
        now: Timestamp,
    ) -> Result<Value, ForumError> {
        let settings = &self.narrow(&caller.forum, settings)?;
        let (number, call) = match self.read(caller, settings, name, arguments)? {
            Ok(read) => read,
            Err(answer) => return Ok(answer),
        };
        told(self.act(caller, settings, &call, number, now))
    }

    /// Counts and reads a call: its number in the visit and what it asks for, else the answer that refuses it.
    pub(super) fn read(
        &mut self,
        caller: &Caller,
        settings: &Settings,
        name: &str,
        arguments: &Value,
    ) -> Result<Result<(i64, Call), Value>, ForumError> {
        let counted = self.count(caller, settings, name, arguments)?;
        Ok(
            counted.and_then(|number| match tools::read(name, arguments) {
                Ok(call) => Ok((number, call)),
                Err(why) => Err(refused(&why)),
            }),
        )
    }

    /// Counts a call of a visit; its number, else the answer that refuses it.
    fn count(
        &mut self,
        caller: &Caller,
        settings: &Settings,
        name: &str,
        arguments: &Value,
    ) -> Result<Result<i64, Value>, ForumError> {
        let Some(run) = caller.run else {
            return Ok(Ok(0));
        };
        // Nobody acts in the visit of another.
        let of = (caller.forum.as_str(), caller.name.as_str());
        let counted = match tools::leaves(name, arguments) {
            true => runs::check_open(&mut self.db, run, of),
            false => runs::count_call(&mut self.db, run, of),
        };
        let number = match counted {
            Ok(number) => number,
            Err(error) if error.is_refusal() => return Ok(Err(refused(&error.to_string()))),
            Err(error) => return Err(error),
        };
        if number > i64::from(settings.max_tool_calls) {
            return Ok(Err(refused(&format!(
                "tool call limit exceeded ({} a visit): your visit is over",
                settings.max_tool_calls
            ))));
        }
        Ok(Ok(number))
    }

    pub(super) fn act(
        &mut self,
        caller: &Caller,
        settings: &Settings,
        call: &Call,
        number: i64,
        now: Timestamp,
    ) -> Result<Value, ForumError> {
        let me = caller.name.as_str();
        let forum = caller.forum.as_str();
        let sight = match caller.person {
            true => Sight::All,
            false => Sight::Public,
        };
        let key = caller.run.map(|run| (run, number));
        match call {
            Call::ListThreads { limit } => {
                let threads = match caller.person {
                    true => self.threads(forum, *limit)?,
                    false => self.threads_shown(forum, *limit, now)?,
                };
                let mut listed = Vec::with_capacity(threads.len());
                for thread in &threads {
                    let (_, opening) = self.thread_for(sight, thread.id, 0, 1)?;
                    listed.push(thread_json(thread, opening.first()));
                }
                let mut answer = json!({"success": true, "threads": listed, "count": listed.len()});
                let charter = self.charter(forum)?;
                if !charter.is_empty() {
                    answer["charter"] = charter.into();
                }
                Ok(answer)
            }
            Call::ReadThread { thread_id, after_post_id } => {
                let (thread, first) = self.thread_for(sight, *thread_id, 0, 1)?;
                in_forum(&thread, forum)?;
                let opening = first.first();
                let after = (*after_post_id).max(opening.map_or(0, |post| post.id));
                let (_, replies) = self.thread_for(sight, *thread_id, after, POSTS_MAX)?;
                // What was handed over is seen; in a very long thread that is not yet its end.
                if let (Some(last), false) = (replies.last().or(opening), caller.person) {
                    self.saw_at(me, *thread_id, last.id, now)?;
                }
                let shown: Vec<Value> = replies.iter().map(post_json).collect();
                let mut answer = json!({"success": true, "thread": thread_json(&thread, opening), "posts": shown, "post_count": (thread.post_count - 1).max(0)});
                if let (Some(last), true) = (replies.last(), replies.len() as i64 == POSTS_MAX) {
                    answer["more_after_post_id"] = last.id.into();
                }
                Ok(answer)
            }
            Call::SearchThreads { query, search_in, limit } => {
                let hits = self.search_for(sight, forum, query, *search_in, *limit)?;
                let found: Vec<Value> = hits
                    .iter()
                    .map(|hit| {
                        let mut thread = thread_json(&hit.thread, None);
                        thread["post_id"] = hit.post_id.into();
                        thread["post_author"] = hit.author.as_str().into();
                        thread["excerpt"] = hit.excerpt.as_str().into();
                        thread
                    })
                    .collect();
                Ok(json!({"success": true, "threads": found, "count": found.len(), "query": query}))
            }
            Call::CreateThread { title, body } => self.db_deed(caller, settings, call, now, |store| {
                let new = NewPost { author: me, body, quote: None, call: key };
                let (thread, post) = store.create_thread(forum, title, &new, now)?;
                let answer = json!({"success": true, "thread_id": thread.id, "post_id": post.id, "message": format!("thread {} is open", thread.id)});
                Ok((deed(call, Some(thread.id), Some(post.id), None), answer))
            }),
            Call::ReplyToThread { thread_id, body, quote_post_id } => self.db_deed(caller, settings, call, now, |store| {
                let into = super::threads::find(&mut store.db, *thread_id)?;
                in_forum(&into, forum)?;
                if into.hidden_at.is_some() && sight == Sight::Public {
                    return Err(ForumError::Missing { what: "thread", id: *thread_id });
                }
                let rules = store.rules(forum)?;
                rules.check_age(*thread_id, into.updated_at, now).map_err(ForumError::Forbidden)?;
                let new = NewPost { author: me, body, quote: *quote_post_id, call: key };
                let post = store.reply(*thread_id, &new, now)?;
                let answer = json!({"success": true, "post_id": post.id, "thread_id": thread_id, "message": format!("post {} is written", post.id)});
                Ok((deed(call, Some(*thread_id), Some(post.id), None), answer))
            }),
            Call::EditPost { post_id, body } => self.db_deed(caller, settings, call, now, |store| {
                post_in_forum(store, *post_id, forum)?;
                let post = store.edit_post(*post_id, me, body, now)?;
                let answer = json!({"success": true, "post_id": post_id, "thread_id": post.thread_id});
                Ok((deed(call, Some(post.thread_id), Some(*post_id), None), answer))
            }),
            Call::DeletePost { post_id } => self.db_deed(caller, settings, call, now, |store| {
                post_in_forum(store, *post_id, forum)?;
                let post = store.delete_post(*post_id, me, caller.person, now)?;
                let answer = json!({"success": true, "post_id": post_id, "thread_id": post.thread_id});
                Ok((deed(call, Some(post.thread_id), Some(*post_id), None), answer))
            }),
            Call::News { limit } => self.news_json(me, forum, *limit, now),
            Call::Remember { text, how } => {
                self.check_owns_notes(caller, now)?;
                let notes = self.remember(forum, me, *how, text, now)?;
                let used = notes.chars().count();
                Ok(json!({"success": true, "notes": notes, "characters": used, "characters_max": NOTES_MAX}))
            }
            Call::Recall => {
                self.check_owns_notes(caller, now)?;
                Ok(json!({"success": true, "notes": self.notes(forum, me)?}))
            }
            Call::WriteProfile { text } => self.db_deed(caller, settings, call, now, |store| {
                known(me)?;
                super::company::put(&mut store.db, Texts::Profiles, forum, me, text, now)?;
                Ok((deed(call, None, None, None), json!({"success": true, "message": "your profile is written"})))
            }),
            Call::ReadProfile { name } => {
                let profile = self.profile(forum, name)?;
                let banned = accounts::find(&mut self.db, forum, name)?
                    .is_some_and(|account| account.status == Status::Banned);
                match profile.is_empty() || (banned && sight == Sight::Public) {
                    true => Ok(refused(&format!("`{}` has written no profile", clean_line(name, 64)))),
                    false => Ok(json!({"success": true, "name": name, "profile": profile})),
                }
            }
            Call::ReadRules => {
                let rules = self.rules(forum)?;
                let set: Vec<Value> = rules
                    .set()
                    .map(|(rule, value)| json!({"rule": rule.key, "value": value, "means": rule.doc}))
                    .collect();
                let account = accounts::find(&mut self.db, forum, me)?;
                let role = account.map_or(Role::Reader, |account| account.role);
                Ok(json!({"success": true, "charter": self.charter(forum)?, "rules": set, "you": me, "role": role}))
            }
            Call::ReadLog { limit } => {
                let lines: Vec<String> = self.log_tail(forum, *limit)?.iter().map(|line| line.text(&TimeZone::UTC)).collect();
                Ok(json!({"success": true, "lines": lines, "count": lines.len(), "times": "UTC"}))
            }
            Call::Fairness {} => self.fairness_json(me, forum),
            Call::ListMotions { limit } => {
                let motions = self.motions_for(sight, forum, *limit)?;
                let mut listed = Vec::with_capacity(motions.len());
                for motion in motions {
                    let (_, votes) = self.motion(motion.id)?;
                    let of = self.electorate(motion.id)?.len();
                    listed.push(json!({"motion": motion, "votes": votes, "electorate": of}));
                }
                Ok(json!({"success": true, "motions": listed, "count": listed.len()}))
            }
            Call::Propose { kind, key: parameter, value, title, reason } => self.db_deed(caller, settings, call, now, |store| {
                let what = Proposal { kind: *kind, key: parameter.as_deref(), value: value.as_deref(), title, reason };
                super::posts::lock(&mut store.db, forum)?;
                let new = NewPost { author: me, call: key, ..NewPost::default() };
                let motion = motions::propose(&mut store.db, forum, settings, what, &new, now)?;
                let answer = json!({"success": true, "motion_id": motion.id, "thread_id": motion.thread_id, "closes_after_cycle": motion.closes_after});
                Ok((deed(call, motion.thread_id, None, Some(motion.id)), answer))
            }),
            Call::Vote { motion_id, choice, reason } => self.db_deed(caller, settings, call, now, |store| {
                let motion = motions::vote(&mut store.db, sight, forum, *motion_id, me, *choice, reason, now)?;
                let answer = json!({"success": true, "motion_id": motion_id, "choice": choice});
                Ok((deed(call, motion.thread_id, None, Some(*motion_id)), answer))
            }),
            Call::Skip { reason } | Call::Finish { reason, .. } => {
                if let Some(run) = caller.run {
                    let (claim, said) = match call {
                        Call::Finish { did, thread_id, .. } if did != "skip" => ((did.clone(), *thread_id), None),
                        _ => (("skip".to_owned(), None), Some(reason.as_str()).filter(|r| !r.is_empty())),
                    };
                    self.db.whole(|db| runs::leaves(db, run, &claim, said))?;
                }
                Ok(json!({"success": true, "message": "your visit is over", "reason": reason}))
            }
        }
    }

    /// Checks that a caller is the one whose notes have its name.
    fn check_owns_notes(&mut self, caller: &Caller, now: Timestamp) -> Result<(), ForumError> {
        known(&caller.name)?;
        let account = caller.account(now)?;
        match accounts::find(&mut self.db, &account.forum, &account.name)? {
            Some(known) if known.kind != account.kind => Err(ForumError::Forbidden(format!(
                "the notes of `{}` are its own",
                account.name
            ))),
            Some(_) => Ok(()),
            None => accounts::check_look(&mut self.db, &account.forum, &account.name),
        }
    }

    /// What is new to a name. Nothing counts as read by that.
    fn news_json(
        &mut self,
        me: &str,
        forum: &str,
        limit: i64,
        now: Timestamp,
    ) -> Result<Value, ForumError> {
        let mut threads = Vec::new();
        for fresh in self.news_at(forum, me, limit, now)?.threads {
            let mut thread = thread_json(&fresh.thread, None);
            thread["after_post_id"] = fresh.seen_post_id.into();
            threads.push(thread);
        }
        let (mentions, mention_count) = self.mentions(forum, me, limit)?;
        let open = |motion: &Motion| motion.state == MotionState::Open;
        let motions: Vec<Motion> = self
            .motions_for(Sight::Public, forum, limit)?
            .into_iter()
            .filter(open)
            .collect();
        Ok(json!({
            "success": true, "threads": threads, "count": threads.len(), "mentions": mentions, "mention_count": mention_count,
            "motions": motions,
        }))
    }

    /// The verdict for an agent. It may look as often as it likes.
    fn fairness_json(&mut self, me: &str, forum: &str) -> Result<Value, ForumError> {
        let table = self.fairness(forum, Some(FAIRNESS_CYCLES), Look::Running)?;
        let next = self.next_commitment(forum)?;
        let failed: Vec<&str> = table
            .rows
            .iter()
            .filter(|row| row.pass == Some(false))
            .map(|row| row.name)
            .collect();
        let you = table.agents.iter().find(|share| share.agent == me);
        Ok(json!({
            "success": true, "cycles": table.cycles, "foreseeable_cycles": table.foreseeable, "fair": table.passes(), "failed": failed,
            "you": you, "agents": table.agents, "rows": table.rows, "next_commitment": next.map(|(_, next)| next),
        }))
    }

    /// Does something that others see, if the caller's account may, and enters it in the run: all of it or nothing.
    fn db_deed(
        &mut self,
        caller: &Caller,
        settings: &Settings,
        call: &Call,
        now: Timestamp,
        act: impl FnOnce(&mut Self) -> Result<(Deed, Value), ForumError>,
    ) -> Result<Value, ForumError> {
        self.whole(|store| {
            let rules = store.rules(&caller.forum)?;
            let account = accounts::join(&mut store.db, &caller.account(now)?)?;
            if let Some(tool) = tools::find(call.tool()) {
                account.may(tool, settings).map_err(ForumError::Forbidden)?;
            }
            rules.check(&account, call).map_err(ForumError::Forbidden)?;
            // A visit is bounded by its calls; a person is at home here.
            if caller.run.is_none() && !caller.person {
                pace::count(&mut store.db, &account, settings, now)?;
            }
            let (deed, answer) = act(store)?;
            if let Some(run) = caller.run {
                runs::did(&mut store.db, run, deed)?;
            }
            Ok(answer)
        })
    }

    /// Several calls of this store as one transaction.
    pub(super) fn whole<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, ForumError>,
    ) -> Result<T, ForumError> {
        Db::begin(&mut self.db)?;
        let done = act(self);
        Db::end(&mut self.db, done)
    }
}

/// Whoever keeps something must be known: notes of a made-up name would be anybody's.
fn known(name: &str) -> Result<(), ForumError> {
    match company::is_known(name) {
        true => Ok(()),
        false => Err(ForumError::Forbidden(
            "a guest has no notes and no profile: take part under a name of your own".into(),
        )),
    }
}

/// An agent sees one forum.
fn in_forum(thread: &Thread, forum: &str) -> Result<(), ForumError> {
    if thread.forum == forum {
        Ok(())
    } else {
        Err(ForumError::Missing {
            what: "thread",
            id: thread.id,
        })
    }
}

fn post_in_forum(store: &mut ForumStore, id: i64, forum: &str) -> Result<(), ForumError> {
    let thread = store.post(id)?.thread_id;
    let thread = super::threads::find(&mut store.db, thread)?;
    in_forum(&thread, forum).map_err(|_| ForumError::Missing { what: "post", id })
}

fn deed(call: &Call, thread_id: Option<i64>, post_id: Option<i64>, motion_id: Option<i64>) -> Deed {
    Deed {
        tool: call.tool().to_owned(),
        thread_id,
        post_id,
        motion_id,
    }
}

/// What a call brought; a refusal is an answer too.
pub(super) fn told(done: Result<Value, ForumError>) -> Result<Value, ForumError> {
    match done {
        Err(error) if error.is_refusal() => Ok(refused(&error.to_string())),
        done => done,
    }
}

pub(super) fn refused(why: &str) -> Value {
    json!({"success": false, "error": why})
}

fn thread_json(thread: &Thread, opening: Option<&Post>) -> Value {
    let mut value = json!({
        "id": thread.id, "title": thread.title, "author": thread.author, "created_at": thread.created_at,
        "updated_at": thread.updated_at, "post_count": (thread.post_count - 1).max(0),
        "last_post_author": thread.last_author, "last_post_id": thread.last_post_id,
    });
    if let Some(opening) = opening {
        value["body"] = opening.body.as_str().into();
        value["opening_post_id"] = opening.id.into();
        if let Some(at) = opening.edited_at {
            value["opening_edited_at"] = at.to_string().into();
        }
    }
    value
}

fn post_json(post: &Post) -> Value {
    serde_json::to_value(post).unwrap_or_default()
}
